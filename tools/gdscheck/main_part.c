// SPDX-License-Identifier: MIT
/* main_part.c - runs the parts of gdscheck, for their tests. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "prove.h"
#include "topology.h"

int main(int argc, char **argv)
{
	FILE *f = stdin;
	int status;

	if (argc >= 3 && !strcmp(argv[1], "--explain-error"))
		return gc_explain_error(argv[2], stdout);
	if (argc >= 2 && !strcmp(argv[1], "--explain-log")) {
		if (argc > 2 && !(f = fopen(argv[2], "re"))) {
			perror(argv[2]);
			return EXPLAIN_EXIT_READ;
		}
		status = gc_explain_log(f, stdout);
		if (f != stdin)
			fclose(f);
		return status;
	}
	if (argc >= 3 && !strcmp(argv[1], "--topology"))
		return argc > 3 ? gc_topology_svg(argv[2], argv[3]) : gc_topology(argv[2], stdout);
	if (argc >= 3 && !strcmp(argv[1], "--prove"))
		return gc_prove(argv[2], argc > 3 && !strcmp(argv[3], "--json"), stdout);
	fprintf(stderr, "usage: gdscheck-part --explain-error CODE | --explain-log [FILE] | --prove PATH [--json] | --topology ROOT [SVG]\n");
	return 2;
}
