// SPDX-License-Identifier: MIT
/* args.c - the command line: job groups, sizes, and what is refused. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "args.h"
#include "number.h"

#define MAX_IO (1ULL << 30)
#define MAX_SIZE (1ULL << 50)
#define MAX_ALIGN 15	/* the next 4-KiB step is the next GPU page */

/* What a transfer type is, for the checks here. */
static const struct {
	const char *name;
	bool cufile, depth, stream, copies;
} xfers[XFERS] = {
	[XFER_GPUD] = { "GPUD", .cufile = true },
	[XFER_CPUONLY] = { "CPUONLY" },
	[XFER_CPU_GPU] = { "CPU_GPU", .copies = true },
	[XFER_CPU_ASYNC_GPU] = { "CPU_ASYNC_GPU", .copies = true, .stream = true },
	[XFER_CPU_CACHED_GPU] = { "CPU_CACHED_GPU", .copies = true },
	[XFER_GPUD_ASYNC] = { "GPUD_ASYNC", .cufile = true, .stream = true },
	[XFER_GPU_BATCH] = { "GPU_BATCH", .cufile = true, .depth = true },
	[XFER_GPU_BATCH_STREAM] = { "GPU_BATCH_STREAM", .cufile = true, .depth = true,
				    .stream = true },
};

const char *gdsio_rw_name(enum gdsio_rw rw)
{
	static const char *const name[] = {
		[RW_READ] = "READ",
		[RW_WRITE] = "WRITE",
		[RW_RANDREAD] = "RANDREAD",
		[RW_RANDWRITE] = "RANDWRITE",
	};

	return name[rw];
}

const char *gdsio_xfer_name(enum gdsio_xfer xfer)
{
	return xfers[xfer].name;
}

int gdsio_xfer_find(const char *name)
{
	int i;

	for (i = 0; i < XFERS; i++) {
		if (!strcasecmp(name, xfers[i].name))
			return i;
	}
	return -1;
}

bool gdsio_by_cufile(enum gdsio_xfer xfer)
{
	return xfers[xfer].cufile;
}

bool gdsio_has_depth(enum gdsio_xfer xfer)
{
	return xfers[xfer].depth;
}

bool gdsio_on_stream(enum gdsio_xfer xfer)
{
	return xfers[xfer].stream;
}

bool gdsio_in_gpu(const struct gdsio_args *a)
{
	return a->xfer != XFER_CPUONLY && a->mem <= MEM_VMM;
}

bool gdsio_needs_gpu(const struct gdsio_args *a)
{
	return gdsio_in_gpu(a) || a->mem == MEM_CUDA_HOST || xfers[a->xfer].stream;
}

int gdsio_refuse(struct gdsio_parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int take_number(struct gdsio_parser *p, int opt, const char *text, uint64_t min,
		       uint64_t max, uint64_t *value)
{
	if (gdsio_parse_number(text, max, value) || *value < min)
		return gdsio_refuse(p, "-%c %s: it takes a number from %" PRIu64 " to %" PRIu64,
				    opt, text, min, max);
	return 0;
}

int gdsio_take_size(struct gdsio_parser *p, int opt, const char *text, uint64_t min,
		    uint64_t *value)
{
	const uint64_t max = opt == 'i' ? MAX_IO : MAX_SIZE;

	if (gdsio_parse_size(text, value))
		return gdsio_refuse(p, "-%c %s: it takes a size, digits and then K, M or G", opt,
				    text);
	if (*value < min || *value > max)
		return gdsio_refuse(p, "-%c %s: the size must be from %" PRIu64 " to %" PRIu64
				    " bytes", opt, text, min, max);
	return 0;
}

/* SIZE, or MIN:MAX:STEP */
static int take_io(struct gdsio_parser *p, const char *text)
{
	char part[3][24] = { "", "", "" };
	struct gdsio_sizes *io = &p->args->io;
	uint64_t v[3];
	int n = 0, i;

	p->has_io = true;
	if (!strchr(text, ':')) {
		if (gdsio_take_size(p, 'i', text, 1, &v[0]))
			return -EINVAL;
		*io = (struct gdsio_sizes){ v[0], v[0], 0 };
		return 0;
	}
	if (sscanf(text, "%23[^:]:%23[^:]:%23[^:]%n", part[0], part[1], part[2], &n) != 3 ||
	    text[n])
		return gdsio_refuse(p, "-i %s: it takes SIZE or MIN:MAX:STEP", text);
	for (i = 0; i < 3; i++) {
		if (gdsio_take_size(p, 'i', part[i], 1, &v[i]))
			return -EINVAL;
	}
	if (v[0] > v[1])
		return gdsio_refuse(p, "-i %s: MIN is larger than MAX", text);
	*io = (struct gdsio_sizes){ v[0], v[1], v[2] };
	return 0;
}

int gdsio_next_job(struct gdsio_parser *p)
{
	struct gdsio_args *a = p->args;

	if (a->jobs == GDSIO_MAX_JOBS)
		return gdsio_refuse(p, "more than %d job groups (-f or -D)", GDSIO_MAX_JOBS);
	p->job = &a->job[a->jobs++];
	*p->job = (struct gdsio_job){ .gpu = -1, .node = -1 };
	return 0;
}

static int take_path(struct gdsio_parser *p, int opt, const char *text)
{
	struct gdsio_args *a = p->args;

	if (!*text)
		return gdsio_refuse(p, "-%c: the name is empty", opt);
	if (p->has_files && a->dirs != (opt == 'D'))
		return gdsio_refuse(p, "-f and -D exclude each other; name files or folders");
	p->has_files = true;
	a->dirs = opt == 'D';
	p->job->path = text;
	return 0;
}

/* An option that its group already has begins the next group. */
static int take_job_option(struct gdsio_parser *p, int opt, const char *text)
{
	uint64_t v = 0;
	bool taken;

	if (opt == 'd' && take_number(p, opt, text, 0, 255, &v))
		return -EINVAL;
	if (opt == 'n' && take_number(p, opt, text, 0, 1023, &v))
		return -EINVAL;
	if (opt == 'w' && take_number(p, opt, text, 1, GDSIO_MAX_THREADS, &v))
		return gdsio_refuse(p, "-w %s: it takes a number of threads from 1 to %d", text,
				    GDSIO_MAX_THREADS);
	taken = !p->job || (opt == 'd' && p->job->gpu >= 0) || (opt == 'n' && p->job->node >= 0) ||
		(opt == 'w' && p->job->threads) || ((opt == 'f' || opt == 'D') && p->job->path);
	if (taken && gdsio_next_job(p))
		return -EINVAL;
	switch (opt) {
	case 'd': p->job->gpu = (int)v; return 0;
	case 'n': p->job->node = (int)v; return 0;
	case 'w': p->job->threads = (unsigned int)v; return 0;
	default: return take_path(p, opt, text);
	}
}

/* The names of the result line are numbers, too. */
static int take_xfer(struct gdsio_parser *p, const char *text)
{
	int named = gdsio_xfer_find(text);
	uint64_t v;

	if (named >= 0)
		v = (uint64_t)named;
	else if (gdsio_parse_number(text, XFERS - 1, &v))
		return gdsio_refuse(p, "-x %s: unknown transfer type; it takes a number from 0 to "
				    "%d", text, XFERS - 1);
	p->args->xfer = (enum gdsio_xfer)v;
	return 0;
}

/* Options with a number or a size, of the whole run. */
static int take_value(struct gdsio_parser *p, int opt, const char *text)
{
	static const struct {
		char opt;
		uint64_t min, max;
	} range[] = {
		{ 'k', 0, UINT64_MAX / 16 }, { 'I', 0, RW_RANDWRITE }, { 'm', 0, MEMS - 1 },
		{ 'B', 1, GDSIO_MAX_BATCH }, { 'M', 1, 99 }, { 'a', 0, MAX_ALIGN }, { 'O', 0, 1 },
	};
	struct gdsio_args *a = p->args;
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		if (range[i].opt == opt &&
		    take_number(p, opt, text, range[i].min, range[i].max, &v))
			return -EINVAL;
	}
	switch (opt) {
	case 's':
		p->has_size = true;
		return gdsio_take_size(p, opt, text, 1, &a->size);
	case 'o': return gdsio_take_size(p, opt, text, 0, &a->start);
	case 'i': return take_io(p, text);
	case 'x': return take_xfer(p, text);
	case 'k': a->seed = v; return 0;
	case 'I': a->rw = (enum gdsio_rw)v; return 0;
	case 'm':
		p->has_mem = true;
		a->mem = (enum gdsio_mem)v;
		return 0;
	case 'B':
		p->has_batch = true;
		a->batch = (unsigned int)v;
		return 0;
	case 'M': a->mix = (unsigned int)v; return 0;
	case 'a': a->align = (unsigned int)v; return 0;
	case 'O': a->buffered = v == 1; return 0;
	default:
		if (take_number(p, opt, text, 1, 1000000, &v))
			return gdsio_refuse(p, "-T %s: it takes seconds from 1 to 1000000", text);
		a->seconds = (unsigned int)v;
		return 0;
	}
}

int gdsio_take(struct gdsio_parser *p, int opt, const char *text)
{
	struct gdsio_args *a = p->args;

	switch (opt) {
	case 'f': case 'D': case 'd': case 'n': case 'w':
		return take_job_option(p, opt, text);
	case 's': case 'o': case 'i': case 'x': case 'k': case 'I': case 'T': case 'O':
	case 'm': case 'B': case 'M': case 'a':
		return take_value(p, opt, text);
	case 'P':
		return gdsio_refuse(p, "-P %s: this library has no RDMA of its own; mount the "
				    "remote file system and name a file in it with -f", text);
	case 'b': a->no_register = true; return 0;
	case 'p': a->nvlink = true; return 0;
	case 'U': a->unaligned = true; return 0;
	case 'R': a->random_fill = true; return 0;
	case 'F': a->refill = true; return 0;
	case 'V': a->verify = true; return 0;
	case 'J': a->per_job = true; return 0;
	case 'A': a->allow_fallback = true; return 0;
	case 'j': a->json = true; return 0;
	case 'g': a->progress = true; return 0;
	case 'y': a->verify_after = true; return 0;
	case 'h': a->help = true; return 0;
	default: a->version = true; return 0;
	}
}

static int check_jobs(struct gdsio_parser *p)
{
	struct gdsio_args *a = p->args;
	struct gdsio_job *job;
	unsigned int i;

	if (!a->jobs)
		return gdsio_refuse(p, "no file: name one with -f, or a folder with -D");
	for (i = 0; i < a->jobs; i++) {
		job = &a->job[i];
		job->size = job->size ? job->size : a->size;
		job->start = job->own_start ? job->start : a->start;
		if (!job->path)
			return gdsio_refuse(p, "job group %u has no file; each has -f or -D, -d "
					    "and -w", i + 1);
		if (!job->threads)
			return gdsio_refuse(p, "%s: how many threads? Give -w with it", job->path);
		if (job->gpu < 0 && gdsio_needs_gpu(a))
			return gdsio_refuse(p, "%s: which GPU? Give -d with it", job->path);
		if (!job->size)
			return gdsio_refuse(p, "how many bytes? Give the size of the data set with "
					    "-s");
		if (job->threads > job->size)
			return gdsio_refuse(p, "%s: %" PRIu64 " bytes (-s) are too few for %u "
					    "threads", job->path, job->size, job->threads);
		a->threads += job->threads;
	}
	if (a->threads > GDSIO_MAX_THREADS)
		return gdsio_refuse(p, "%u threads in all; %d are the limit", a->threads,
				    GDSIO_MAX_THREADS);
	return 0;
}

/* What cannot be meant together. */
static int check_together(struct gdsio_parser *p)
{
	struct gdsio_args *a = p->args;

	if (p->has_batch && !xfers[a->xfer].depth)
		return gdsio_refuse(p, "-B: %s moves one piece at a time; batches are -x 6 and 7",
				    xfers[a->xfer].name);
	if (a->mix && !xfers[a->xfer].depth)
		return gdsio_refuse(p, "-M: %s has no batches to mix; batches are -x 6 and 7",
				    xfers[a->xfer].name);
	if (a->mix && (a->verify || a->verify_after))
		return gdsio_refuse(p, "-M with -V: what a mixed batch must read is not known; "
				    "leave out one of them");
	if (a->verify_after && (gdsio_is_write(a->rw) || a->verify))
		return gdsio_refuse(p, "--verify-after is for reads without -V; writes have -V");
	if (xfers[a->xfer].copies && !gdsio_in_gpu(a))
		return gdsio_refuse(p, "-m %d with -x %d: that type copies to GPU memory; -m 0 or "
				    "1, or -x 1 for host memory", a->mem, a->xfer);
	if (a->xfer == XFER_CPUONLY && p->has_mem && a->mem == MEM_VMM)
		return gdsio_refuse(p, "-m 1 with -x 1: that type moves to host memory; -m 2, 3 or "
				    "4");
	if (a->align && !gdsio_in_gpu(a))
		return gdsio_refuse(p, "-a is about GPU buffers, and there are none");
	return 0;
}

static int check(struct gdsio_parser *p)
{
	struct gdsio_args *a = p->args;
	unsigned int i;
	bool sizes = p->has_size;

	for (i = 0; !p->has_size && i < a->jobs; i++)
		sizes = a->job[i].size && (sizes || !i);
	if (!sizes)
		return gdsio_refuse(p, "how many bytes? Give the size of the data set with -s");
	if (!p->has_io)
		return gdsio_refuse(p, "how many bytes at once? Give the I/O size with -i");
	if (!a->batch)
		a->batch = 1;
	if (a->xfer == XFER_CPU_CACHED_GPU)
		a->buffered = true;
	if (a->unaligned)
		a->rw = gdsio_is_write(a->rw) ? RW_RANDWRITE : RW_RANDREAD;
	return check_together(p) ? -EINVAL : check_jobs(p);
}

int gdsio_args_parse(int argc, char **argv, struct gdsio_args *args, char *why, size_t why_len)
{
	static const char known[] = ":f:D:d:n:w:s:o:i:x:k:I:T:O:m:B:M:a:P:bpURFVJhv";
	static const struct option longs[] = {
		{ "allow-fallback", no_argument, NULL, 'A' },
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "progress", no_argument, NULL, 'g' },
		{ "verify-after", no_argument, NULL, 'y' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	struct gdsio_parser p = { .args = args, .why = why, .why_len = why_len };
	int opt;

	memset(args, 0, sizeof(*args));
	opterr = 0;
	optind = 0;	/* glibc: start anew */
	while ((opt = getopt_long(argc, argv, known, longs, NULL)) != -1) {
		if (opt == ':')
			return gdsio_refuse(&p, "-%c needs a value", optopt);
		if (opt == '?' && optopt)
			return gdsio_refuse(&p, "-%c is no option", optopt);
		if (opt == '?')
			return gdsio_refuse(&p, "%s is no option", argv[optind - 1]);
		if (gdsio_take(&p, opt, optarg))
			return -EINVAL;
		if (args->help || args->version)
			return 0;
	}
	if (optind + 1 < argc)
		return gdsio_refuse(&p, "%s: one job file at a time", argv[optind + 1]);
	if (optind < argc && args->jobs)
		return gdsio_refuse(&p, "%s: a job file has the files of its own; leave out -f and "
				    "-D", argv[optind]);
	if (optind < argc && gdsio_jobfile(&p, argv[optind]))
		return -EINVAL;
	return check(&p);
}
