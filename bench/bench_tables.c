// SPDX-License-Identifier: MIT
/*
 * bench_tables.c - what a look-up costs when many files and buffers are registered.
 *
 *   bench_tables [--threads N] [--seconds S]
 *
 * A line each for 100, 1,000, 10,000 and 100,000 registrations: nanoseconds of one look-up
 * (handle; start of a buffer; an address inside one), in random order, and beside each how
 * many times that of 100 it is. Then the look-ups a second of 1, 2, 4, ... N threads (default:
 * as many as there are processors) in the full tables, and how many times that of one thread.
 * Nothing is registered with a GPU: the tables are asked as a request asks them.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "buffer.h"
#include "cufile.h"
#include "handles.h"

#define MOST 100000
#define STEP 4096	/* bytes from one buffer to the next */

enum what { HANDLE, START, INSIDE, WHATS };

struct thing {
	atomic_uint refs;
	void *handle;
};

static void hold(void *object)
{
	atomic_fetch_add(&((struct thing *)object)->refs, 1);
}

static struct handles handles = HANDLES_INIT(hold);
static struct thing thing[MOST];
static char *mem;
static size_t have;		/* registered so far */
static atomic_bool stop;
static double seconds = 0.5;

static void die(const char *what, int code)
{
	fprintf(stderr, "bench_tables: %s: %d\n", what, code);
	exit(1);
}

static double clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

/* Up to n of each, in no order. */
static void fill(size_t n)
{
	CUfileError_t e;
	size_t i;

	for (i = have; i < n; i++) {
		if (handles_put_in(&handles, &thing[i], &thing[i].handle))
			die("handles_put_in", i);
		e = cuFileBufRegister(mem + (i * 7919 % MOST) * STEP, STEP / 2, 0);
		if (e.err)
			die("cuFileBufRegister", e.err);
	}
	have = n;
}

static void look(enum what what, size_t i)
{
	struct buffer *b;
	struct thing *t;
	uint64_t va;
	int err;

	if (what == HANDLE) {
		t = handles_get(&handles, thing[i].handle);
		if (t != &thing[i])
			die("a handle was not found", i);
		atomic_fetch_sub(&t->refs, 1);
		return;
	}
	va = (uintptr_t)mem + (i * 7919 % MOST) * STEP;
	b = buffer_get(va, what == INSIDE ? 1000 : 0, 16, &err);
	if (!b || b->va != va)
		die("a buffer was not found", i);
	buffer_put(b);
}

static size_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % have;
}

/* Nanoseconds of this thread's own time for one look-up, the least of ten tries. */
static double measure(enum what what)
{
	uint64_t seed = 20261129;
	double best = 0, t0, took;
	unsigned long n;
	int try;

	for (try = 0; try < 10; try++) {
		t0 = clock_of(CLOCK_THREAD_CPUTIME_ID);
		took = 0;
		for (n = 0; n % 1024 || took < seconds / 10; n++) {
			look(what, next(&seed));
			if (n % 1024 == 1023)
				took = clock_of(CLOCK_THREAD_CPUTIME_ID) - t0;
		}
		took = took / n * 1e9;
		if (!try || took < best)
			best = took;
	}
	return best;
}

static void *thread(void *arg)
{
	unsigned long *n = arg;
	uint64_t seed = 77 + (uintptr_t)arg;

	for (*n = 0; !atomic_load(&stop); ++*n)
		look(*n % WHATS, next(&seed));
	return NULL;
}

static double threads(unsigned int n)
{
	pthread_t t[256];
	unsigned long done[256 * 8], all = 0;	/* a cache line each */
	unsigned int i;
	double t0;

	atomic_store(&stop, false);
	t0 = now();
	for (i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, thread, &done[i * 8]))
			die("pthread_create", errno);
	while (now() - t0 < seconds)
		usleep(1000);
	atomic_store(&stop, true);
	t0 = now() - t0;
	for (i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
		all += done[i * 8];
	}
	return all / t0;
}

int main(int argc, char **argv)
{
	static const struct option option[] = {
		{ "threads", required_argument, NULL, 't' },
		{ "seconds", required_argument, NULL, 's' },
		{ 0 },
	};
	static const char *const name[] = { "handle", "start", "inside" };
	double first[WHATS], took, one = 0, rate;
	unsigned int n, most = 0;
	cpu_set_t set;
	int c, what;

	while ((c = getopt_long(argc, argv, "", option, NULL)) != -1) {
		if (c == 't')
			most = atoi(optarg);
		else if (c == 's')
			seconds = atof(optarg);
		else
			return 2;
	}
	if (!most)
		most = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	if (most > 256 || seconds <= 0) {
		fprintf(stderr, "bench_tables: 1 to 256 threads, more than 0 seconds\n");
		return 2;
	}
	setenv("CUFILE_LOGFILE_PATH", "/dev/null", 0);
	mem = mmap(NULL, (size_t)MOST * STEP, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		die("mmap", errno);
	for (n = 100; n <= MOST; n *= 10) {
		fill(n);
		printf("%6u registered:", n);
		for (what = 0; what < WHATS; what++) {
			took = measure(what);
			if (n == 100)
				first[what] = took;
			printf("  %s %.0f ns (%.2f)", name[what], took, took / first[what]);
		}
		printf("\n");
	}
	for (n = 1; n <= most; n *= 2) {
		rate = threads(n);
		if (n == 1)
			one = rate;
		printf("%6u threads: %.2f million look-ups a second (%.2f)\n", n, rate / 1e6,
		       rate / one);
	}
	return cuFileDriverClose().err;
}
