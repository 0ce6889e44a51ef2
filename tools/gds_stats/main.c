// SPDX-License-Identifier: MIT
/*
 * gds_stats - what processes that use cuFile did: once, in a layout that scripts know, as JSON or
 * for Prometheus, or live.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "out.h"
#include "source.h"

#ifndef GDS_STATS_VERSION
#define GDS_STATS_VERSION "unknown"
#endif

enum status { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

enum how { HOW_TEXT, HOW_LIVE, HOW_JSON, HOW_PROMETHEUS };

struct args {
	enum how how;
	int pid;		/* 0: all */
	int level;		/* 0: that of the process */
	double interval;
	bool left;
};

static const char help[] =
	"usage: gds_stats -p PID [-l LEVEL] [--left]\n"
	"       gds_stats --live [-p PID] [--interval SECONDS]\n"
	"       gds_stats --json | --prometheus [-p PID] [--left]\n"
	"\n"
	"Statistics of processes that use cuFile and collect some: \"profile\":\n"
	"{\"cufile_stats\": 1, 2 or 3} in their cufile.json, or cuFileSetStatsLevel.\n"
	"\n"
	"  -p PID         this process; without it all that you may read\n"
	"  -l LEVEL       1 counters, 2 and histograms, 3 and by GPU and file (that of\n"
	"                 the process)\n"
	"  --left         what a process of this number that was killed has left\n"
	"  --live         look at it while it goes on; q quits\n"
	"  --interval S   of the live view, 0.1 to 60 seconds (1)\n"
	"  --json         one document, docs/gds_stats.md\n"
	"  --prometheus   the text format that Prometheus reads\n"
	"  -h, --help     this help\n"
	"  -v, --version  version\n"
	"\n"
	"exit status: 0; 1 a process that cannot be read, or an error; 2 wrong usage\n";

static void __attribute__((format(printf, 1, 2))) complain(const char *fmt, ...)
{
	char text[SOURCE_WHY + 64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fflush(stdout);
	fprintf(stderr, "gds_stats: %s\n", text);
}

static int __attribute__((format(printf, 1, 2))) refuse(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	complain("%s (gds_stats --help shows all options)", text);
	return -EINVAL;
}

/* A whole number from min to max. */
static int number(const char *text, long min, long max, int *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < min || v > max)
		return -EINVAL;
	*out = (int)v;
	return 0;
}

static int seconds(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end == text || *end || !(*out >= 0.1 && *out <= 60) ? -EINVAL : 0;
}

static int check(const struct args *a)
{
	if (a->how == HOW_TEXT && !a->pid)
		return refuse("which process? Give its number with -p, or --live, --json or --prometheus for all");
	if (a->level && a->how != HOW_TEXT)
		return refuse("-l is for the text of one process: the other forms have all of it");
	if (a->left && (!a->pid || a->how == HOW_LIVE))
		return refuse("--left is of one process (-p), and it does not live");
	return 0;
}

/* 0, -EINVAL: refused, or 1: all that was asked for is done. */
static int parse(int argc, char **argv, struct args *a)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "interval", required_argument, NULL, 'i' },
		{ "json", no_argument, NULL, 'J' },
		{ "left", no_argument, NULL, 'D' },
		{ "live", no_argument, NULL, 'L' },
		{ "prometheus", no_argument, NULL, 'P' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	int opt, forms = 0;

	*a = (struct args){ .interval = 1 };
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":hl:p:v", longs, NULL)) != -1) {
		switch (opt) {
		case 'h':
			fputs(help, stdout);
			return 1;
		case 'v':
			puts("gds_stats version :" GDS_STATS_VERSION " (OpenGDS)");
			return 1;
		case 'p':
			if (number(optarg, 1, 0x7fffffff, &a->pid))
				return refuse("-p %s: it takes the number of a process", optarg);
			break;
		case 'l':
			if (number(optarg, 1, 3, &a->level))
				return refuse("-l %s: it takes a level, 1 to 3", optarg);
			break;
		case 'i':
			if (seconds(optarg, &a->interval))
				return refuse("--interval %s: it takes seconds, 0.1 to 60", optarg);
			break;
		case 'D':
			a->left = true;
			break;
		case 'J':
		case 'L':
		case 'P':
			a->how = opt == 'J' ? HOW_JSON : opt == 'L' ? HOW_LIVE : HOW_PROMETHEUS;
			forms++;
			break;
		case ':':
			return refuse("%s needs a value", argv[optind - 1]);
		default:
			return refuse("%s is no option", argv[optind - 1]);
		}
	}
	if (optind < argc)
		return refuse("%s: what is this? A process is named by -p", argv[optind]);
	if (forms > 1)
		return refuse("--live, --json and --prometheus exclude each other");
	return check(a);
}

static void print_text(const struct snapshot *s, int level)
{
	int has = s->level ? s->level : 1;

	if (level > has)
		complain("process %d collects level %d: what is above it is 0 (\"profile\": {\"cufile_stats\": %d} has all of it)",
			 s->pid, s->level, level);
	out_text(stdout, s, level ? level : has);
}

/* Sources that can be read, as one document. */
static int print(const struct args *a, const struct source *src, unsigned int n)
{
	struct snapshot *all = calloc(n ? n : 1, sizeof(*all));
	const struct snapshot **s = calloc(n ? n : 1, sizeof(*s));
	unsigned int i, got = 0;
	int r = all && s ? 0 : -ENOMEM;

	for (i = 0; !r && i < n; i++) {
		if (source_read(&src[i], &all[i]))
			complain("the statistics of process %d were cut short while they were read",
				 src[i].pid);
		else
			s[got++] = &all[i];
	}
	if (!r && a->pid && !got)
		r = -EBUSY;
	else if (!r && a->how == HOW_JSON)
		out_json(stdout, s, got);
	else if (!r && a->how == HOW_PROMETHEUS)
		out_prometheus(stdout, s, got);
	else if (!r)
		print_text(s[0], a->level);
	free(s);
	free(all);
	return r;
}

static int print_one(const struct args *a)
{
	char why[SOURCE_WHY];
	struct source one;
	int r = source_open(a->pid, a->left, &one, why);

	if (r) {
		complain("%s", why);
		return r;
	}
	r = print(a, &one, 1);
	source_close(&one);
	return r;
}

static int print_all(const struct args *a)
{
	struct source *src;
	int n = source_list(&src), i, r;

	if (n < 0) {
		complain("/proc: %s", strerror(-n));
		return n;
	}
	r = print(a, src, n);
	for (i = 0; i < n; i++)
		source_close(&src[i]);
	free(src);
	return r;
}

int main(int argc, char **argv)
{
	char why[SOURCE_WHY];
	struct args a;
	int r = parse(argc, argv, &a);

	if (r < 0)
		return EXIT_USAGE;
	if (!r && a.how == HOW_LIVE) {
		r = live_run(a.pid, a.interval, why);
		if (r)
			complain("%s", why);
	} else if (!r) {
		r = a.pid ? print_one(&a) : print_all(&a);
	}
	if (ferror(stdout) || fflush(stdout)) {
		complain("standard output: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}
