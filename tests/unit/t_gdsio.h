/* SPDX-License-Identifier: MIT */
/* t_gdsio.h - for the tests of gdsio: sizes, and a command line. */
#ifndef T_GDSIO_H
#define T_GDSIO_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "../../tools/gdsio/jobfile.c"
#include "../../tools/gdsio/number.c"

#define K 1024UL
#define M (1024UL * 1024)
#define G (1024UL * 1024 * 1024)

/* -- the command line -- */

static struct gdsio_args args;
static char why[512];

static int parse(const char *line)
{
	static char words[1024];
	char *argv[256], *save = NULL, *word;
	int argc = 1;

	argv[0] = (char *)"gdsio";
	snprintf(words, sizeof(words), "%s", line);
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	why[0] = '\0';
	return gdsio_args_parse(argc, argv, &args, why, sizeof(why));
}

static void parse_ok(const char *line)
{
	if (parse(line))
		fail_msg("'%s' is refused: %s", line, why);
}

static void parse_bad(const char *line, const char *text)
{
	if (parse(line) != -EINVAL)
		fail_msg("'%s' is taken", line);
	if (!strstr(why, text))
		fail_msg("'%s': \"%s\" does not say \"%s\"", line, why, text);
}

#endif /* T_GDSIO_H */
