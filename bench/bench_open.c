// SPDX-License-Identifier: MIT
/*
 * bench_open.c - what opening, closing and the first read of a fresh process cost beyond
 * CUDA's own start.
 *
 *   bench_open --file F [--runs N] [--raw] [--check]
 *
 * Each run is a process of its own. It starts CUDA (driver, primary context, one allocation),
 * then times
 *
 *   open        cuFileDriverOpen
 *   close       cuFileDriverClose
 *   register    cuFileHandleRegister of F, and the open that comes with it
 *   first read  cuFileRead of 4 KiB of F into GPU memory; the stream and the pinned memory
 *               that it makes are CUDA's part and are timed apart
 *   again       the same read once more
 *
 * and prints the median of N (20) with the least and the most, in microseconds, and the median
 * of the calling thread's processor time: on the simulated GPU, whose streams run late on
 * purpose, and on a busy machine that is the library's part alone. --raw: a line a run.
 * --check: exit status 1 when open and close take over 5 ms, or the registration and the first
 * read over 2 ms beyond CUDA's part.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

#include "cufile.h"

#define BYTES 4096
#define RUNS_MOST 1000

enum part { OPEN, CLOSE, REGISTER, FIRST, CUDA, AGAIN, PARTS };

static const char *const name[] = { "open", "close", "register", "first read", "of it CUDA",
				    "again" };

static void die(const char *what, int code)
{
	fprintf(stderr, "bench_open: %s: %d\n", what, code);
	exit(2);
}

/* Microseconds, by the clock on the wall and of this thread's processor time. */
struct moment {
	double wall, own;
};

static double clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static struct moment now(void)
{
	return (struct moment){ clock_of(CLOCK_MONOTONIC), clock_of(CLOCK_THREAD_CPUTIME_ID) };
}

/* Since *since, which becomes now. */
static struct moment step(struct moment *since)
{
	struct moment t = now(), took = { t.wall - since->wall, t.own - since->own };

	*since = t;
	return took;
}

static void cufile(const char *what, CUfileError_t e)
{
	if (e.err)
		die(what, e.err);
}

static void cuda(const char *what, CUresult r)
{
	if (r)
		die(what, r);
}

/* What the library asks of CUDA for its first copy: a stream, pinned memory, copy, wait. */
static struct moment cuda_alone(CUdeviceptr d)
{
	struct moment t = now();
	CUstream s;
	void *host;

	cuda("cuStreamCreate", cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	cuda("cuMemHostAlloc", cuMemHostAlloc(&host, 1024 * 1024, CU_MEMHOSTALLOC_PORTABLE));
	cuda("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync(d, host, BYTES, s));
	cuda("cuStreamSynchronize", cuStreamSynchronize(s));
	return step(&t);
}

static void run(const char *file, struct moment took[PARTS])
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh;
	CUcontext ctx;
	CUdeviceptr d;
	CUdevice dev;
	struct moment t;
	int fd;

	cuda("cuInit", cuInit(0));
	cuda("cuDeviceGet", cuDeviceGet(&dev, 0));
	cuda("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&ctx, dev));
	cuda("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
	cuda("cuMemAlloc", cuMemAlloc(&d, BYTES));
	fd = open(file, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		die(file, errno);

	t = now();
	cufile("cuFileDriverOpen", cuFileDriverOpen());
	took[OPEN] = step(&t);
	cufile("cuFileDriverClose", cuFileDriverClose());
	took[CLOSE] = step(&t);

	descr.handle.fd = fd;
	cufile("cuFileHandleRegister", cuFileHandleRegister(&fh, &descr));
	took[REGISTER] = step(&t);
	if (cuFileRead(fh, (void *)(uintptr_t)d, BYTES, 0, 0) != BYTES)
		die("cuFileRead", errno);
	took[FIRST] = step(&t);
	if (cuFileRead(fh, (void *)(uintptr_t)d, BYTES, 0, 0) != BYTES)
		die("cuFileRead", errno);
	took[AGAIN] = step(&t);
	took[CUDA] = cuda_alone(d);
}

/* A process for each. */
static void one(const char *file, struct moment took[PARTS])
{
	int p[2], status;
	pid_t child;

	if (pipe(p))
		die("pipe", errno);
	fflush(stdout);
	child = fork();
	if (child < 0)
		die("fork", errno);
	if (!child) {
		run(file, took);
		_exit(write(p[1], took, PARTS * sizeof(*took)) != PARTS * sizeof(*took));
	}
	close(p[1]);
	if (read(p[0], took, PARTS * sizeof(*took)) != PARTS * sizeof(*took))
		die("a run ended without its result", 0);
	close(p[0]);
	waitpid(child, &status, 0);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static struct moment took[PARTS][RUNS_MOST];

/* Of n runs the number at place `at` by size. */
static double ranked(int part, int n, int own, int at)
{
	static double v[RUNS_MOST];
	int i;

	for (i = 0; i < n; i++)
		v[i] = own ? took[part][i].own : took[part][i].wall;
	qsort(v, n, sizeof(v[0]), by_size);
	return v[at];
}

static void runs(const char *file, int n, int raw)
{
	struct moment here[PARTS];
	int i, part;

	for (i = 0; i < n; i++) {
		one(file, here);
		for (part = 0; part < PARTS; part++) {
			took[part][i] = here[part];
			if (raw)
				printf("%s%.0f", part ? "\t" : "", here[part].wall);
		}
		if (raw)
			printf("\n");
	}
}

int main(int argc, char **argv)
{
	static const struct option option[] = {
		{ "file", required_argument, NULL, 'f' },
		{ "runs", required_argument, NULL, 'n' },
		{ "raw", no_argument, NULL, 'r' },
		{ "check", no_argument, NULL, 'c' },
		{ 0 },
	};
	double open_close[2], first[2], middle[PARTS];
	const char *file = NULL;
	int c, part, own, n = 20, raw = 0, check = 0;

	while ((c = getopt_long(argc, argv, "", option, NULL)) != -1) {
		if (c == 'f')
			file = optarg;
		else if (c == 'n')
			n = atoi(optarg);
		else if (c == 'r')
			raw = 1;
		else if (c == 'c')
			check = 1;
		else
			return 2;
	}
	if (!file || n < 1 || n > RUNS_MOST) {
		fprintf(stderr, "usage: bench_open --file F [--runs 1..%d] [--raw] [--check]\n",
			RUNS_MOST);
		return 2;
	}
	setenv("CUFILE_LOGFILE_PATH", "/dev/null", 0);
	runs(file, n, raw);
	for (part = 0; part < PARTS; part++)
		printf("%-10s %8.0f us (%.0f .. %.0f), processor time %.0f us\n", name[part],
		       ranked(part, n, 0, n / 2), ranked(part, n, 0, 0), ranked(part, n, 0, n - 1),
		       ranked(part, n, 1, n / 2));
	for (own = 0; own < 2; own++) {
		for (part = 0; part < PARTS; part++)
			middle[part] = ranked(part, n, own, n / 2);
		open_close[own] = middle[OPEN] + middle[CLOSE];
		first[own] = middle[REGISTER] + middle[FIRST] - middle[CUDA];
		printf("%s: open and close %.0f us, register and first read beyond CUDA %.0f us\n",
		       own ? "processor time" : "wall", open_close[own], first[own]);
	}
	return check && (open_close[0] > 5000 || first[0] > 2000);
}
