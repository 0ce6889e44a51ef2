// SPDX-License-Identifier: MIT
/* args.c - the command line: job groups, sizes, and what is refused. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "args.h"

#define MAX_IO (1ULL << 30)
#define MAX_SIZE (1ULL << 50)

/* Options of the interface that this version does not have. */
static const char later[] = "pmBURFaMJP";

struct parser {
	struct gdsio_args *args;
	struct gdsio_job *job;	/* the group that is being filled */
	bool has_size, has_io, has_files;
	char *why;
	size_t why_len;
};

static int __attribute__((format(printf, 2, 3))) refuse(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int parse_number(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; text[i] >= '0' && text[i] <= '9'; i++) {
		if (v > (UINT64_MAX - 9) / 10)
			return -EINVAL;
		v = v * 10 + (unsigned int)(text[i] - '0');
	}
	if (!i || text[i] || v > max)
		return -EINVAL;
	*value = v;
	return 0;
}

int gdsio_parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMG";
	size_t len = strlen(text);
	unsigned int shift = 0;
	const char *unit;
	char digits[24];
	uint64_t v;

	if (!len || len >= sizeof(digits))
		return -EINVAL;
	snprintf(digits, sizeof(digits), "%s", text);
	unit = strchr(units, digits[len - 1] & ~0x20);
	if (unit && *unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		digits[len - 1] = '\0';
	}
	if (parse_number(digits, UINT64_MAX >> shift, &v))
		return -EINVAL;
	*bytes = v << shift;
	return 0;
}

static int take_number(struct parser *p, int opt, const char *text, uint64_t max, uint64_t *value)
{
	if (parse_number(text, max, value))
		return refuse(p, "-%c %s: it takes a number from 0 to %" PRIu64, opt, text, max);
	return 0;
}

static int take_size(struct parser *p, int opt, const char *text, uint64_t min, uint64_t max,
		     uint64_t *value)
{
	if (gdsio_parse_size(text, value))
		return refuse(p, "-%c %s: it takes a size, digits and then K, M or G", opt, text);
	if (*value < min || *value > max)
		return refuse(p, "-%c %s: the size must be from %" PRIu64 " to %" PRIu64 " bytes",
			      opt, text, min, max);
	return 0;
}

/* SIZE, or MIN:MAX:STEP */
static int take_io(struct parser *p, const char *text)
{
	char part[3][24] = { "", "", "" };
	struct gdsio_sizes *io = &p->args->io;
	uint64_t v[3];
	int n = 0, i;

	if (!strchr(text, ':')) {
		if (take_size(p, 'i', text, 1, MAX_IO, &v[0]))
			return -EINVAL;
		*io = (struct gdsio_sizes){ v[0], v[0], 0 };
		return 0;
	}
	if (sscanf(text, "%23[^:]:%23[^:]:%23[^:]%n", part[0], part[1], part[2], &n) != 3 ||
	    text[n])
		return refuse(p, "-i %s: it takes SIZE or MIN:MAX:STEP", text);
	for (i = 0; i < 3; i++) {
		if (take_size(p, 'i', part[i], 1, MAX_IO, &v[i]))
			return -EINVAL;
	}
	if (v[0] > v[1])
		return refuse(p, "-i %s: MIN is larger than MAX", text);
	*io = (struct gdsio_sizes){ v[0], v[1], v[2] };
	return 0;
}

static int next_job(struct parser *p)
{
	struct gdsio_args *a = p->args;

	if (a->jobs == GDSIO_MAX_JOBS)
		return refuse(p, "more than %d job groups (-f or -D)", GDSIO_MAX_JOBS);
	p->job = &a->job[a->jobs++];
	*p->job = (struct gdsio_job){ .gpu = -1, .node = -1 };
	return 0;
}

/* An option that its group already has begins the next group. */
static int take_job_option(struct parser *p, int opt, const char *text)
{
	uint64_t v = 0;
	bool taken;

	if (opt == 'd' && take_number(p, opt, text, 255, &v))
		return -EINVAL;
	if (opt == 'n' && take_number(p, opt, text, 1023, &v))
		return -EINVAL;
	if (opt == 'w' && (take_number(p, opt, text, GDSIO_MAX_THREADS, &v) || !v))
		return refuse(p, "-w %s: it takes a number of threads from 1 to %d", text,
			      GDSIO_MAX_THREADS);
	taken = !p->job || (opt == 'd' && p->job->gpu >= 0) || (opt == 'n' && p->job->node >= 0) ||
		(opt == 'w' && p->job->threads) || ((opt == 'f' || opt == 'D') && p->job->path);
	if (taken && next_job(p))
		return -EINVAL;
	switch (opt) {
	case 'd': p->job->gpu = (int)v; break;
	case 'n': p->job->node = (int)v; break;
	case 'w': p->job->threads = (unsigned int)v; break;
	default:
		if (!*text)
			return refuse(p, "-%c: the name is empty", opt);
		if (p->has_files && p->args->dirs != (opt == 'D'))
			return refuse(p, "-f and -D exclude each other; name files or folders");
		p->has_files = true;
		p->args->dirs = opt == 'D';
		p->job->path = text;
	}
	return 0;
}

static int take_xfer(struct parser *p, const char *text)
{
	uint64_t v;

	if (take_number(p, 'x', text, 7, &v))
		return -EINVAL;
	if (v >= XFERS)
		return refuse(p, "-x %s is not in this version; it has 0 (GPUD), 1 (CPUONLY) and 2 "
			      "(CPU_GPU)", text);
	p->args->xfer = (enum gdsio_xfer)v;
	return 0;
}

/* Options with a number or a size, of the whole run. */
static int take_value(struct parser *p, int opt, const char *text)
{
	struct gdsio_args *a = p->args;
	uint64_t v;

	switch (opt) {
	case 's':
		p->has_size = true;
		return take_size(p, opt, text, 1, MAX_SIZE, &a->size);
	case 'o':
		return take_size(p, opt, text, 0, MAX_SIZE, &a->start);
	case 'i':
		p->has_io = true;
		return take_io(p, text);
	case 'x':
		return take_xfer(p, text);
	case 'k':
		return take_number(p, opt, text, UINT64_MAX / 16, &a->seed);
	case 'I':
		if (take_number(p, opt, text, RW_RANDWRITE, &v))
			return -EINVAL;
		a->rw = (enum gdsio_rw)v;
		return 0;
	case 'T':
		if (take_number(p, opt, text, 1000000, &v) || !v)
			return refuse(p, "-T %s: it takes seconds from 1 to 1000000", text);
		a->seconds = (unsigned int)v;
		return 0;
	default:
		if (take_number(p, opt, text, 1, &v))
			return -EINVAL;
		a->buffered = v == 1;
		return 0;
	}
}

static int take(struct parser *p, int opt, char *const *argv)
{
	struct gdsio_args *a = p->args;

	switch (opt) {
	case 'f': case 'D': case 'd': case 'n': case 'w':
		return take_job_option(p, opt, optarg);
	case 's': case 'o': case 'i': case 'x': case 'k': case 'I': case 'T': case 'O':
		return take_value(p, opt, optarg);
	case 'b': a->no_register = true; return 0;
	case 'V': a->verify = true; return 0;
	case 'A': a->allow_fallback = true; return 0;
	case 'h': a->help = true; return 0;
	case 'v': a->version = true; return 0;
	case ':':
		return refuse(p, "-%c needs a value", optopt);
	case '?':
		if (optopt)
			return refuse(p, "-%c is no option", optopt);
		return refuse(p, "%s is no option", argv[optind - 1]);
	default:
		return refuse(p, "-%c is not in this version", opt);
	}
}

static int check_jobs(struct parser *p)
{
	struct gdsio_args *a = p->args;
	const struct gdsio_job *job;
	unsigned int i;

	if (!a->jobs)
		return refuse(p, "no file: name one with -f, or a folder with -D");
	for (i = 0; i < a->jobs; i++) {
		job = &a->job[i];
		if (!job->path)
			return refuse(p, "job group %u has no file; each has -f or -D, -d and -w",
				      i + 1);
		if (!job->threads)
			return refuse(p, "%s: how many threads? Give -w with it", job->path);
		if (job->gpu < 0 && a->xfer != XFER_CPUONLY)
			return refuse(p, "%s: which GPU? Give -d with it", job->path);
		if (job->threads > a->size)
			return refuse(p, "%s: %" PRIu64 " bytes (-s) are too few for %u threads",
				      job->path, a->size, job->threads);
		a->threads += job->threads;
	}
	if (a->threads > GDSIO_MAX_THREADS)
		return refuse(p, "%u threads in all; %d are the limit", a->threads,
			      GDSIO_MAX_THREADS);
	return 0;
}

static int check(struct parser *p)
{
	if (!p->has_size)
		return refuse(p, "how many bytes? Give the size of the data set with -s");
	if (!p->has_io)
		return refuse(p, "how many bytes at once? Give the I/O size with -i");
	return check_jobs(p);
}

int gdsio_args_parse(int argc, char **argv, struct gdsio_args *args, char *why, size_t why_len)
{
	static const char known[] = ":f:D:d:n:w:s:o:i:x:k:I:T:O:bVhv" "pm:B:URFa:M:JP:";
	static const struct option longs[] = {
		{ "allow-fallback", no_argument, NULL, 'A' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	struct parser p = { .args = args, .why = why, .why_len = why_len };
	int opt;

	memset(args, 0, sizeof(*args));
	opterr = 0;
	optind = 0;	/* glibc: start anew */
	while ((opt = getopt_long(argc, argv, known, longs, NULL)) != -1) {
		if (strchr(later, opt))
			return refuse(&p, "-%c is not in this version", opt);
		if (take(&p, opt, argv))
			return -EINVAL;
		if (args->help || args->version)
			return 0;
	}
	if (optind < argc)
		return refuse(&p, "%s: configuration files are not in this version; use options",
			      argv[optind]);
	return check(&p);
}
