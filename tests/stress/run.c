// SPDX-License-Identifier: MIT
/* run.c - the threads, the progress, and what a failure prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../unit/cufile_fake.h"
#include "../unit/t_descriptors.h"
#include "stress.h"

#define HANG 180		/* seconds without a call */

/* -- chance -- */

size_t st_below(struct worker *w, size_t n)
{
	return t_random_below(&w->rnd, n);
}

bool st_one_in(struct worker *w, unsigned int n)
{
	return !st_below(w, n);
}

size_t st_size(struct worker *w, size_t most)
{
	unsigned int bits = 0;
	size_t top;

	while (most >> bits)
		bits++;
	top = (size_t)1 << st_below(w, bits + 1);
	return 1 + st_below(w, top < most ? top : most);
}

/* -- what was called, and what went wrong -- */

static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

static void print_trace(const struct worker *w, unsigned int most)
{
	unsigned long i = w->calls > most ? w->calls - most : 0;
	const struct traced *t;

	for (; i < w->calls; i++) {
		t = &w->trace[i % TRACE];
		fprintf(stderr, "  %lu: ", i + 1);
		/* the formats are this program's own */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		fprintf(stderr, t->fmt, t->arg[0], t->arg[1], t->arg[2], t->arg[3], t->arg[4],
			t->arg[5]);
#pragma GCC diagnostic pop
		fprintf(stderr, ": %ld (%d)\n", t->result, t->err);
	}
}

static void print_setup(const struct stress *s)
{
	const struct setup *t = &s->set;

	fprintf(stderr,
		"  epoch %u: strict %d, force_compat %d, allow_compat %d, system memory %d, module %d, theirs %d, faults %d, words %d, whole %d %d, routes %#x, threads %u, batch %zu, direct %zu KB, GPU slabs %zu x %zu KB, host slabs %zu x %zu KB, statistics %d, log %s\n",
		s->epoch, t->strict, t->force_compat, t->allow_compat, t->system_memory, t->module,
		t->theirs, t->faults, t->words, t->whole[0], t->whole[1], t->routes, t->threads,
		t->batch, t->direct_kb, t->slab_count, t->slab_kb, t->posix_count, t->posix_kb,
		t->stats, t->level);
}

void st_bad(struct worker *w, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&failing);
	fflush(stdout);
	fprintf(stderr, "BAD seed %llu, %u threads, thread %u, call %lu: ",
		(unsigned long long)w->all->opt.seed, w->all->opt.threads, w->n, w->calls);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	print_setup(w->all);
	fprintf(stderr, "  the last calls of the thread, and what they gave:\n");
	print_trace(w, TRACE);
	fflush(stderr);
	_exit(1);
}

void st_call(struct worker *w, const char *fmt, long a, long b, long c, long d, long e, long f)
{
	struct traced *t = &w->trace[w->calls % TRACE];

	*t = (struct traced){ .fmt = fmt, .arg = { a, b, c, d, e, f }, .result = -77777 };
	w->calls++;
	atomic_store_explicit(&w->shown, w->calls, memory_order_relaxed);
}

void st_result(struct worker *w, long result, int err)
{
	struct traced *t = &w->trace[(w->calls - 1) % TRACE];

	t->result = result;
	t->err = err;
}

void st_status(struct worker *w, CUfileError_t got, int err, int cu)
{
	st_result(w, got.err, got.cu_err);
	if ((int)got.err != err || (int)got.cu_err != cu)
		st_bad(w, "status %d (CUDA %d); it must be %d (CUDA %d)", got.err, got.cu_err, err,
		       cu);
}

/* -- a thread -- */

/* The direct route fails now and then: nobody may notice. */
static void fault(struct worker *w)
{
	static const int error[] = { EIO, EIO, ENOMEM, EOPNOTSUPP };
	const struct setup *s = &w->all->set;

	if (!s->faults || !st_one_in(w, 40))
		return;
	switch (st_below(w, 4)) {
	case 0:
		atomic_store(&fake.io_error, error[st_below(w, 4)]);
		atomic_store(&fake.io_failures, 1 + st_below(w, 3));
		break;
	case 1:
		atomic_store(&fake.cpu_reads, 1 + st_below(w, 3));
		break;
	case 2:
		atomic_store(&fake.map_error, st_one_in(w, 3) ? EINVAL : 0);
		break;
	default:
		if (s->theirs)
			atomic_store(&fake.lost_writes, 1 + st_below(w, 3));
	}
}

static void step(struct worker *w)
{
	unsigned int dice = st_below(w, 100);

	fault(w);
	if (dice < 42)
		rq_one(w);
	else if (dice < 50)
		rq_vector(w);
	else if (dice < 65)
		bt_one(w);
	else if (dice < 78)
		sm_one(w);
	else if (dice < 83)
		ob_register(w);
	else if (dice < 86)
		ob_deregister(w);
	else if (dice < 90)
		ob_buf_register(w);
	else if (dice < 93)
		ob_buf_deregister(w);
	else if (dice < 96)
		ob_come_and_go(w);
	else
		cl_one(w);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct stress *s = w->all;
	unsigned long until, check;

	if (cuCtxSetCurrent(fake_ctx))
		st_bad(w, "cuCtxSetCurrent fails");
	for (;;) {
		pthread_barrier_wait(&s->begin);
		if (s->stop)
			return NULL;
		ob_begin(w);
		sm_begin(w);
		until = w->calls + s->quota;
		check = w->calls + s->opt.look;
		while (w->calls < until && !atomic_load_explicit(&s->time_is_up,
								 memory_order_relaxed)) {
			step(w);
			if (w->calls < check)
				continue;
			md_check_all(w);
			check = w->calls + s->opt.look;
		}
		bt_end(w);
		sm_end(w);
		md_check_all(w);
		ob_end(w);
		pthread_barrier_wait(&s->end);
	}
}

/* -- progress -- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static unsigned long calls_of(struct stress *s)
{
	unsigned long n = 0;
	unsigned int i;

	for (i = 0; i < s->opt.threads; i++)
		n += atomic_load_explicit(&s->w[i].shown, memory_order_relaxed);
	return n;
}

/* Nobody stops it: what the threads wrote last is read as it is. */
__attribute__((no_sanitize_thread)) static void hangs(struct stress *s)
{
	unsigned int i;

	fprintf(stderr, "BAD seed %llu, %u threads: no call has come back for %d s\n",
		(unsigned long long)s->opt.seed, s->opt.threads, HANG);
	print_setup(s);
	for (i = 0; i < s->opt.threads; i++) {
		fprintf(stderr, "  thread %u:\n", i);
		print_trace(&s->w[i], 3);
	}
	abort();
}

static atomic_bool watching;

static void *watch(void *arg)
{
	struct stress *s = arg;
	double t0 = now(), told = t0, moved = t0;
	unsigned long n, last = 0;

	while (atomic_load(&watching)) {
		usleep(50000);
		n = calls_of(s);
		if (n != last)
			moved = now();
		last = n;
		if (s->opt.seconds > 0 && now() - t0 >= s->opt.seconds)
			atomic_store(&s->time_is_up, true);
		if (now() - moved > HANG)
			hangs(s);
		if (s->opt.quiet || now() - told < 10)
			continue;
		told = now();
		printf("stress: seed %llu: %lu calls in %.0f s\n", (unsigned long long)s->opt.seed,
		       n, told - t0);
		fflush(stdout);
	}
	return NULL;
}

/* -- all of it -- */

static void epochs(struct stress *s)
{
	const struct options *opt = &s->opt;
	unsigned long left;

	for (s->epoch = 0; !atomic_load(&s->time_is_up); s->epoch++) {
		s->quota = opt->epoch / 2 + st_below(&s->w[0], opt->epoch);
		if (opt->calls) {
			left = opt->calls > calls_of(s) ? opt->calls - calls_of(s) : 0;
			if (!left)
				break;
			if (s->quota > left / opt->threads + 1)
				s->quota = left / opt->threads + 1;
		}
		se_choose(s);
		se_stage(s);
		se_open(s);
		pthread_barrier_wait(&s->begin);
		pthread_barrier_wait(&s->end);
		se_close(s);
		if (st_one_in(&s->w[0], 2))
			se_closed(s);
	}
}

int stress_run(const struct options *opt)
{
	struct stress *s = calloc(1, sizeof(*s));
	unsigned int i, before;
	double t0 = now();
	pthread_t watcher;

	if (!s)
		return -1;
	s->opt = *opt;
	fake_machine("ext4", "rw,data=ordered", true);
	before = t_descriptors();
	pthread_barrier_init(&s->begin, NULL, opt->threads + 1);
	pthread_barrier_init(&s->end, NULL, opt->threads + 1);
	for (i = 0; i < opt->threads; i++) {
		s->w[i].all = s;
		s->w[i].n = i;
		s->w[i].rnd = opt->seed * 1000003 + i;
	}
	se_begin(s);
	for (i = 0; i < opt->threads; i++)
		if (pthread_create(&s->w[i].thread, NULL, work, &s->w[i]))
			return -1;
	atomic_store(&watching, true);
	if (pthread_create(&watcher, NULL, watch, s))
		return -1;
	epochs(s);
	s->stop = true;
	pthread_barrier_wait(&s->begin);
	for (i = 0; i < opt->threads; i++)
		pthread_join(s->w[i].thread, NULL);
	atomic_store(&watching, false);
	pthread_join(watcher, NULL);
	se_end(s);
	if (t_descriptors() != before)
		st_bad(&s->w[0], "%u descriptors were open before, %u are now", before,
		       t_descriptors());
	printf("stress: seed %llu: %lu calls of %u threads in %u epochs, %.0f s: all as the model says\n",
	       (unsigned long long)opt->seed, calls_of(s), opt->threads, s->epoch, now() - t0);
	fflush(stdout);
	fake_check();
	fake_end();
	pthread_barrier_destroy(&s->begin);
	pthread_barrier_destroy(&s->end);
	free(s);
	return 0;
}
