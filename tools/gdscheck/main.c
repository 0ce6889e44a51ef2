// SPDX-License-Identifier: MIT
/*
 * gdscheck - what works here, why not, and what to do about it.
 *
 * The short options are those that scripts for GPUDirect Storage know. Without any, the doctor
 * judges the machine. A command is a row of the table below.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "gdscheck.h"
#include "prove.h"
#include "topology.h"

#ifndef GDSCHECK_VERSION
#define GDSCHECK_VERSION "unknown"
#endif

struct options {
	bool json, all;
	const char *root;
	char **path;		/* what follows the options */
	size_t paths;
};

/* Each command returns an exit status. */
static int do_platform(const struct options *o, const char *arg)
{
	return gc_platform(stdout);
}

static int do_file(const struct options *o, const char *arg)
{
	return gc_verify_file(arg, stdout);
}

static int do_versions(const struct options *o, const char *arg)
{
	return gc_versions(stdout);
}

static int do_clients(const struct options *o, const char *arg)
{
	return gc_clients(stdout);
}

static int do_doctor(const struct options *o, const char *arg)
{
	struct gc_machine *m = malloc(sizeof(*m));
	struct gc_report r;
	int status = GC_EXIT_ERROR;

	if (!m || gc_machine_read(m, o->root, o->path, o->paths))
		goto out;
	if (gc_doctor(m, &r)) {
		fprintf(stderr, "gdscheck: %s\n", strerror(ENOMEM));
		goto out;
	}
	status = gc_report_status(&r);
	if (!o->json)
		gc_report_text(&r, o->all, stdout);
	else if (gc_report_json(m, &r, stdout))
		status = GC_EXIT_ERROR;
	gc_report_free(&r);
out:
	free(m);
	return status;
}

static int do_record(const struct options *o, const char *arg)
{
	return gc_record(o->root, arg, stdout);
}

static int do_prove(const struct options *o, const char *arg)
{
	return gc_prove(arg, o->json, stdout);
}

static int do_topology(const struct options *o, const char *arg)
{
	return gc_topology(o->root, stdout);
}

static int do_svg(const struct options *o, const char *arg)
{
	return gc_topology_svg(o->root, arg);
}

static int do_explain_error(const struct options *o, const char *arg)
{
	return gc_explain_error(arg, stdout);
}

static int do_explain_log(const struct options *o, const char *arg)
{
	FILE *f = strcmp(arg, "-") ? fopen(arg, "re") : stdin;
	int status;

	if (!f) {
		fprintf(stderr, "gdscheck: %s: %s: give a kernel log or a cufile.log, or - for standard input\n",
			arg, strerror(errno));
		return EXPLAIN_EXIT_READ;
	}
	status = gc_explain_log(f, stdout);
	if (f != stdin)
		fclose(f);
	return status;
}

static int do_help(const struct options *o, const char *arg);

static const struct command {
	int opt;		/* a letter, or a number above all letters */
	const char *name;	/* of the long option */
	const char *arg;	/* what it takes; NULL: nothing */
	int (*run)(const struct options *o, const char *arg);
	const char *help;
} commands[] = {
	{ 256, "doctor", NULL, do_doctor, "judge this machine (so it does without options)" },
	{ 258, "prove", "PATH", do_prove, "move bytes there each way, and tell who moved them" },
	{ 259, "topology", NULL, do_topology, "GPUs, drives and NICs, and what is between them" },
	{ 260, "svg", "FILE", do_svg, "the same as a picture" },
	{ 261, "explain-error", "CODE", do_explain_error, "-22, 5008, 205, EINVAL, R-FS-TYPE: causes and next steps" },
	{ 262, "explain-log", "FILE", do_explain_log, "the lines of a kernel log or cufile.log; - reads standard input" },
	{ 'p', "platform", NULL, do_platform, "what the stack is capable of, for scripts" },
	{ 'f', "file", "FILE", do_file, "register FILE and read 4 KiB of it into each GPU" },
	{ 'v', "version", NULL, do_versions, "versions of the library and of nvidia-fs" },
	{ 'V', "clients", NULL, do_clients, "versions of the clients of other file systems" },
	{ 257, "record", "FILE", do_record, "what the doctor reads, names replaced, as a tar archive" },
	{ 'h', "help", NULL, do_help, "this help" },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

enum modifier { JSON = 512, ROOT };

static const struct {
	int opt;
	const char *name, *arg, *help;
} modifiers[] = {
	{ 'a', "all", NULL, "the doctor: also what was skipped, and notes" },
	{ JSON, "json", NULL, "the doctor, --prove: for programs" },
	{ ROOT, "root", "DIR", "the doctor, --record, --topology, --svg: the recorded machine in DIR" },
};

#define MODIFIERS (sizeof(modifiers) / sizeof(modifiers[0]))

static void help_row(int opt, const char *name, const char *arg, const char *help)
{
	char left[64], letter[8] = "    ";

	if (opt < 256)
		snprintf(letter, sizeof(letter), "-%c, ", opt);
	snprintf(left, sizeof(left), "%s--%s%s%s", letter, name, arg ? " " : "", arg ? arg : "");
	printf("  %-22s %s\n", left, help);
}

static int do_help(const struct options *o, const char *arg)
{
	size_t i;

	puts("usage: gdscheck [--doctor] [-a] [--json] [--root DIR] [FILE...]\n"
	     "       gdscheck -p | -f FILE | -v | -V | --record FILE\n"
	     "       gdscheck --prove PATH [--json] | --topology | --svg FILE\n"
	     "       gdscheck --explain-error CODE | --explain-log FILE\n"
	     "\n"
	     "What works here, why not, and what to do. FILE...: the doctor judges these files or\n"
	     "folders instead of all file systems on NVMe drives.\n");
	for (i = 0; i < COMMANDS; i++)
		help_row(commands[i].opt, commands[i].name, commands[i].arg, commands[i].help);
	for (i = 0; i < MODIFIERS; i++)
		help_row(modifiers[i].opt, modifiers[i].name, modifiers[i].arg, modifiers[i].help);
	puts("\nexit status: 0 all is well; 1 an error, or -p and -f: verification failed; 2 wrong usage;\n"
	     "3 the doctor warns; 4 something keeps bytes from going direct\n"
	     "--prove: 0 seen going direct; 3 right, not direct; 4 data was wrong; 5 a request failed\n"
	     "--explain-error, --explain-log: 0 known; 1 unknown; 2 cannot be read\n"
	     "OpenGDS " GDSCHECK_VERSION);
	return GC_EXIT_OK;
}

static const struct command *find(int opt)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		if (commands[i].opt == opt)
			return &commands[i];
	return NULL;
}

/* The tables as getopt takes them; a leading ':' tells a missing value from an unknown option. */
static void option_lists(char *letters, struct option *longs)
{
	size_t i, n = 0;

	letters[n++] = ':';
	for (i = 0; i < COMMANDS + MODIFIERS; i++) {
		int opt = i < COMMANDS ? commands[i].opt : modifiers[i - COMMANDS].opt;
		const char *arg = i < COMMANDS ? commands[i].arg : modifiers[i - COMMANDS].arg;

		longs[i] = (struct option){
			i < COMMANDS ? commands[i].name : modifiers[i - COMMANDS].name,
			arg ? required_argument : no_argument, NULL, opt,
		};
		if (opt >= 256)
			continue;
		letters[n++] = (char)opt;
		if (arg)
			letters[n++] = ':';
	}
	letters[n] = '\0';
	memset(&longs[COMMANDS + MODIFIERS], 0, sizeof(longs[0]));
}

static int usage(const char *what, const char *why)
{
	fprintf(stderr, "gdscheck: %s: %s (gdscheck -h shows all options)\n", what, why);
	return GC_EXIT_USAGE;
}

/* What was given beside a command that has no use for it, or NULL */
static const char *misplaced(const struct command *c, const struct options *o)
{
	if (c->run == do_doctor || c->run == do_help)
		return NULL;
	if (o->json && c->run != do_prove)
		return "--json";
	if (o->root[0] && c->run != do_record && c->run != do_topology && c->run != do_svg)
		return "--root";
	return o->all ? "--all" : o->paths ? o->path[0] : NULL;
}

/* One after the other, in the order that they were asked for; the first failure is the status. */
int main(int argc, char **argv)
{
	struct { const struct command *c; const char *arg; } todo[2 * COMMANDS];
	struct option longs[COMMANDS + MODIFIERS + 1];
	char letters[2 * (COMMANDS + MODIFIERS) + 2];
	struct options o = { .root = "" };
	int opt, status = GC_EXIT_OK, one;
	size_t n = 0, i;

	option_lists(letters, longs);
	opterr = 0;
	while ((opt = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct command *c = find(opt);

		if (c && n < 2 * COMMANDS) {
			todo[n].c = c;
			todo[n++].arg = optarg;
		} else if (opt == JSON) {
			o.json = true;
		} else if (opt == 'a') {
			o.all = true;
		} else if (opt == ROOT) {
			o.root = optarg;
		} else {
			return usage(argv[optind - 1], opt == ':' ? "it needs a value" :
				     c ? "too many commands" : "no such option");
		}
	}
	o.path = argv + optind;
	o.paths = (size_t)(argc - optind);
	if (!n) {
		todo[n].c = find(256);
		todo[n++].arg = NULL;
	}
	for (i = 0; i < n; i++) {
		const char *wrong = misplaced(todo[i].c, &o);

		if (wrong)
			return usage(wrong, "that command does not take it");
		one = todo[i].c->run(&o, todo[i].arg);
		if (!status)
			status = one;
	}
	if (ferror(stdout) || fflush(stdout)) {
		fprintf(stderr, "gdscheck: standard output: %s\n", strerror(errno));
		return GC_EXIT_ERROR;
	}
	return status;
}
