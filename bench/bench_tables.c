// SPDX-License-Identifier: MIT
/*
 * bench_tables.c - what a look-up costs when many files and buffers are registered.
 *
 *   bench_tables [--threads N] [--seconds S]
 *
 * A line each for 100, 1,000, 10,000 and 100,000 registrations of buffers that are
 *
 *	equal	of one size, side by side
 *	mixed	of five sizes from 4 KiB to 16 MiB
 *	nested	pieces of larger ones that are registered as well
 *	tower	all of them in one another
 *
 * with nanoseconds of one look-up by the start of a buffer and by an address inside it, in
 * random order, and beside each how many times that of 100 it is. `miss` is one dependent read
 * in random order of as many places as there are registrations, spread over as much memory as
 * they take: a look-up needs two, of its slot and of the buffer, so that `floor` is the ratio of
 * one that does nothing else for the larger number. Then the same for handles, and the look-ups a
 * second of 1, 2, 4, ... N threads (default: as many as there are processors) in the full
 * tables, and how many times that of one thread. Nothing is registered with a GPU: the tables
 * are asked as a request asks them.
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
#define SPACE (4ULL << 40)	/* addresses to register; nothing is there */
#define PLACE 256		/* bytes that a registration takes of the library's memory */

enum what { HANDLE, START, INSIDE, WHATS };
enum kind { MIXED, NESTED, TOWER, EQUAL, KINDS };
static const char *const kind_name[] = { "mixed", "nested", "tower", "equal" };

struct spot {
	uint64_t at, len;
};

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
static enum kind kind;
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

/* Where buffer i is. Whatever lies around it, it is what begins last at its own bytes. */
static struct spot spot_of(size_t i)
{
	static const uint64_t size[] = { 4096, 20000, 300000, 2 << 20, (16 << 20) + 4096 };
	uint64_t k = i * 7919 % MOST;

	switch (kind) {
	case MIXED:
		return (struct spot){ (k << 25) + k % 7 * 4096, size[k % 5] };
	case NESTED:
		/* the first of sixteen holds the others */
		return (struct spot){ k << 16, k % 16 ? 32768 : 1 << 20 };
	case TOWER:
		return (struct spot){ k * 64, 64 * (4 * MOST - 2 * k) };
	default:
		return (struct spot){ k * 4096, 2048 };
	}
}

/* Up to n buffers, or handles, in no order. */
static void fill(enum what what, size_t n)
{
	CUfileError_t e;
	struct spot s;

	for (; have < n; have++) {
		if (what == HANDLE) {
			if (handles_put_in(&handles, &thing[have], &thing[have].handle))
				die("handles_put_in", have);
			continue;
		}
		s = spot_of(have);
		e = cuFileBufRegister(mem + s.at, s.len, 0);
		if (e.err)
			die("cuFileBufRegister", e.err);
	}
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
	va = (uintptr_t)mem + spot_of(i).at;
	b = buffer_get(va, what == INSIDE ? 40 : 0, 16, &err);
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

/* Nanoseconds of one read that the next one waits for, in places of n registrations. */
static double measure_miss(size_t n)
{
	char *at = aligned_alloc(4096, n * PLACE + 4096), **p;
	double best = 0, t0, took;
	uint64_t seed = 77;
	size_t i, k, swap, *order = malloc(n * sizeof(*order));
	int try;

	if (!at || !order)
		die("memory", ENOMEM);
	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n; i > 1; i--) {
		k = next(&seed) % i;
		swap = order[k];
		order[k] = order[i - 1];
		order[i - 1] = swap;
	}
	for (i = 0; i < n; i++)
		*(char **)(at + order[i] * PLACE) = at + order[(i + 1) % n] * PLACE;
	p = (char **)at;
	for (try = 0; try < 10; try++) {
		t0 = clock_of(CLOCK_THREAD_CPUTIME_ID);
		took = 0;
		for (i = 0; i % 1024 || took < seconds / 10; i++) {
			p = (char **)*p;
			__asm__ volatile("" : "+r"(p));
			if (i % 1024 == 1023)
				took = clock_of(CLOCK_THREAD_CPUTIME_ID) - t0;
		}
		took = took / i * 1e9;
		if (!try || took < best)
			best = took;
	}
	free(at);
	free(order);
	return best;
}

/* Lines of one kind: of the look-ups `from` .. `to` - 1. */
static void compare(const char *title, enum what from, enum what to)
{
	static const char *const name[] = { "handle", "start", "inside" };
	double first[WHATS], took, miss, first_miss = 0;
	enum what what;
	unsigned int n;

	printf("%s\n", title);
	for (n = 100; n <= MOST; n *= 10) {
		fill(from, n);
		miss = measure_miss(n);
		if (n == 100)
			first_miss = miss;
		printf("%7u registered:", n);
		for (what = from; what < to; what++) {
			took = measure(what);
			if (n == 100)
				first[what] = took;
			printf("  %s %.0f ns (%.2f, floor %.2f)", name[what], took,
			       took / first[what],
			       (first[what] + 2 * (miss - first_miss)) / first[what]);
		}
		printf("  miss %.0f ns\n", miss);
		fflush(stdout);
	}
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
	unsigned int n, most = 0;
	double one = 0, rate;
	cpu_set_t set;
	int c;

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
	mem = mmap(NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		die("mmap", errno);
	for (kind = 0; kind < KINDS; kind++) {
		/* the close takes all registrations */
		if (kind && cuFileDriverClose().err)
			die("cuFileDriverClose", 0);
		have = 0;
		compare(kind_name[kind], START, WHATS);
	}
	kind = EQUAL;
	have = 0;
	compare("handles", HANDLE, START);
	for (n = 1; n <= most; n *= 2) {
		rate = threads(n);
		if (n == 1)
			one = rate;
		printf("%6u threads: %.2f million look-ups a second (%.2f)\n", n, rate / 1e6,
		       rate / one);
	}
	return cuFileDriverClose().err;
}
