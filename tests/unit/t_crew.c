// SPDX-License-Identifier: MIT
/*
 * t_crew.c - threads that help a request along: each piece is taken once, by several threads at
 * a time; a helper that has begun is waited for, one that has not never begins; a request
 * needs no thread; no call to sleepers is missed; nothing is left after a close. Under TSan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"
#include "cufile_fake.h"
#include "os.h"

#define HELPERS 4
#define PIECES 1000
#define CALLERS 8

static const struct os_ops *base;	/* of the machine */
static struct os_ops ops;
static atomic_int threads_left;	/* what os->thread still makes */

static int some_thread(pthread_t *t, void *(*run)(void *arg), void *arg)
{
	if (atomic_fetch_sub(&threads_left, 1) <= 0)
		return -EAGAIN;
	return os_real.thread(t, run, arg);
}

/* Who is about to sleep takes his time: whatever happens in between must not be missed. */
static void late_sleep(atomic_uint *word, unsigned int seen)
{
	usleep(seen % 3 * 100);
	os_real.sleep_on(word, seen);
}

static void open_with(const char *execution)
{
	char json[128];

	snprintf(json, sizeof(json), "{\"execution\": {%s}}", execution);
	fake_configure(json);
	if (os != &ops)
		base = os;
	ops = *base;
	ops.thread = some_thread;
	ops.sleep_on = late_sleep;
	os = &ops;
	atomic_store(&threads_left, 1000);
	assert_int_equal(cuFileDriverOpen().err, 0);
	alarm(100);	/* who is never called would be waited for for ever */
}

static int setup(void **state)
{
	fake_setup(state);
	open_with("\"max_io_threads\": 4");
	return 0;
}

static int setup_bare(void **state)
{
	return fake_setup(state);
}

static int teardown(void **state)
{
	alarm(0);
	return fake_teardown(state);
}

static void until(atomic_uint *n, unsigned int at_least)
{
	while (atomic_load(n) < at_least)
		sched_yield();
}

/* -- work: pieces, each to be taken once -- */

struct pieces {
	struct crew_work work;
	atomic_uint next, runs;
	unsigned int n, wait_for;	/* nobody takes a piece before so many have come */
	unsigned char taken[PIECES];	/* plain: TSan sees whether the end is waited for */
};

static void take_pieces(struct crew_work *w)
{
	struct pieces *p = (struct pieces *)w;
	unsigned int i;

	atomic_fetch_add(&p->runs, 1);
	until(&p->runs, p->wait_for);
	while ((i = atomic_fetch_add(&p->next, 1)) < p->n)
		p->taken[i]++;
}

/* The number of pieces that were not taken just once. */
static unsigned int wrong_of(const struct pieces *p)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < p->n; i++)
		wrong += p->taken[i] != 1;
	return wrong;
}

static void t_together(void **state)
{
	unsigned int i;

	for (i = 0; i < 200; i++) {
		struct pieces p = { .work.run = take_pieces, .n = PIECES };

		p.wait_for = 1 + i % (HELPERS + 1);
		crew_run(&p.work, p.wait_for - 1);
		assert_int_equal(wrong_of(&p), 0);
		assert_int_equal(atomic_load(&p.runs), p.wait_for);
	}
	assert_int_equal(crew_size(), HELPERS);
}

/* More than there can be are asked for: as many as there can be come. */
static void t_too_many(void **state)
{
	struct pieces p = { .work.run = take_pieces, .n = PIECES, .wait_for = HELPERS + 1 };

	crew_run(&p.work, 100);
	assert_int_equal(wrong_of(&p), 0);
	assert_int_equal(atomic_load(&p.runs), HELPERS + 1);
}

/* Sleepers are called whatever they were about to do. */
static void t_no_call_missed(void **state)
{
	uint64_t seed = 4;
	unsigned int i;

	for (i = 0; i < 2000; i++) {
		struct pieces p = { .work.run = take_pieces, .n = 10, .wait_for = 2 };

		crew_run(&p.work, 1);
		assert_int_equal(wrong_of(&p), 0);
		usleep(fake_random(&seed) % 300);
	}
}

/* -- the end -- */

struct gate {
	struct crew_work work;
	pthread_t caller;
	atomic_uint runs, inside;
	atomic_bool open;
	unsigned int want;
	int left;
};

static void *call(void *arg)
{
	struct gate *g = arg;

	crew_run(&g->work, g->want);
	return NULL;
}

static void pass_gate(struct crew_work *w)
{
	struct gate *g = (struct gate *)w;

	atomic_fetch_add(&g->runs, 1);
	atomic_fetch_add(&g->inside, 1);
	while (!atomic_load(&g->open))
		usleep(100);
	atomic_fetch_sub(&g->inside, 1);
}

/* All helpers are busy: a request goes on without them, and none of them begins it later. */
static void t_withdrawn(void **state)
{
	struct gate g = { .work.run = pass_gate, .want = HELPERS };
	struct pieces p = { .work.run = take_pieces, .n = PIECES };
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, call, &g), 0);
	until(&g.inside, HELPERS + 1);
	crew_run(&p.work, HELPERS);
	assert_int_equal(wrong_of(&p), 0);
	assert_int_equal(atomic_load(&p.runs), 1);
	atomic_store(&g.open, true);
	pthread_join(t, NULL);
	assert_int_equal(atomic_load(&g.runs), HELPERS + 1);
	/* they are idle again, and have looked for work */
	t_too_many(state);
	assert_int_equal(atomic_load(&p.runs), 1);
}

/* Helpers that become idle while a request runs come to it. */
static void t_late_helpers(void **state)
{
	struct gate first = { .work.run = pass_gate, .want = HELPERS };
	struct gate second = { .work.run = pass_gate, .want = 2 };
	pthread_t t[2];

	assert_int_equal(pthread_create(&t[0], NULL, call, &first), 0);
	until(&first.inside, HELPERS + 1);
	assert_int_equal(pthread_create(&t[1], NULL, call, &second), 0);
	until(&second.inside, 1);
	atomic_store(&first.open, true);
	until(&second.inside, 3);
	atomic_store(&second.open, true);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
}

/* The caller is through at once, a helper only later: he is waited for. */
static void dawdle(struct crew_work *w)
{
	struct gate *g = (struct gate *)w;

	if (pthread_equal(pthread_self(), g->caller)) {
		until(&g->runs, g->want);
		return;
	}
	atomic_fetch_add(&g->runs, 1);
	usleep(g->left);
	g->left++;
}

static void t_begun_is_waited_for(void **state)
{
	int us;

	for (us = 0; us < 30000; us = us * 2 + 10) {
		struct gate g = { .work.run = dawdle, .caller = pthread_self(), .want = 1 };

		g.left = us;
		crew_run(&g.work, 1);
		assert_int_equal(g.left, us + 1);
	}
}

/* -- within one another -- */

struct nest {
	struct crew_work work;
	unsigned int depth;
	atomic_uint *count;
};

static void go_deeper(struct crew_work *w)
{
	struct nest *n = (struct nest *)w;
	struct nest inner = { .work.run = go_deeper, .depth = n->depth - 1, .count = n->count };

	atomic_fetch_add(n->count, 1);
	if (n->depth)
		crew_run(&inner.work, HELPERS);
}

static void t_nested(void **state)
{
	atomic_uint count = 0;
	struct nest n = { .work.run = go_deeper, .depth = 3, .count = &count };
	unsigned int i;

	for (i = 0; i < 100; i++)
		crew_run(&n.work, HELPERS);
	assert_true(atomic_load(&count) >= 100 * 4);
}

/* -- many callers -- */

static atomic_uint wrong;

static void *caller(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		struct pieces p = { .work.run = take_pieces, .n = 1 + fake_random(&seed) % PIECES };

		crew_run(&p.work, fake_random(&seed) % (2 * HELPERS));
		if (wrong_of(&p))
			atomic_fetch_add(&wrong, 1);
		if (i % 64 == 0)
			usleep(200);
	}
	return NULL;
}

static void t_many_callers(void **state)
{
	pthread_t t[CALLERS];
	uintptr_t i;

	atomic_store(&wrong, 0);
	for (i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, caller, (void *)i), 0);
	for (i = 0; i < CALLERS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
}

/* -- no threads, few threads -- */

static void t_none_configured(void **state)
{
	static const char *const none[] = { "\"parallel_io\": false", "\"max_io_threads\": 0" };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct pieces p = { .work.run = take_pieces, .n = PIECES };

		open_with(none[i]);
		assert_int_equal(crew_size(), 0);
		crew_run(&p.work, HELPERS);
		assert_int_equal(wrong_of(&p), 0);
		assert_int_equal(atomic_load(&p.runs), 1);
		assert_int_equal(atomic_load(&threads_left), 1000);
		assert_int_equal(cuFileDriverClose().err, 0);
	}
}

/* The process may have no more threads: those that there are help, and nobody asks again. */
static void t_refused(void **state)
{
	unsigned int n, i;

	for (n = 0; n < HELPERS; n++) {
		open_with("\"max_io_threads\": 4");
		atomic_store(&threads_left, n);
		for (i = 0; i < 20; i++) {
			struct pieces p = { .work.run = take_pieces, .n = PIECES };

			p.wait_for = i ? n + 1 : 1;
			crew_run(&p.work, HELPERS);
			assert_int_equal(wrong_of(&p), 0);
			assert_int_equal(crew_size(), n);
		}
		assert_int_equal(atomic_load(&threads_left), -1);
		assert_int_equal(cuFileDriverClose().err, 0);
	}
}

/* -- what kind of threads -- */

static unsigned int tasks(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Made at first need, all gone after a close, there again after the next open. */
static void t_gone(void **state)
{
	unsigned int before = tasks(), i;

	for (i = 0; i < 3; i++) {
		t_too_many(state);
		assert_int_equal(tasks(), before + HELPERS);
		assert_int_equal(cuFileDriverClose().err, 0);
		/* a thread that was joined may still be listed for a moment */
		while (tasks() != before)
			usleep(100);
		assert_int_equal(cuFileDriverOpen().err, 0);
	}
}

struct kind {
	struct crew_work work;
	pthread_t caller;
	atomic_uint runs;
	sigset_t blocked;
	cpu_set_t cpus;
};

static void look(struct crew_work *w)
{
	struct kind *k = (struct kind *)w;

	if (pthread_equal(pthread_self(), k->caller)) {
		until(&k->runs, 1);
		return;
	}
	pthread_sigmask(SIG_SETMASK, NULL, &k->blocked);
	sched_getaffinity(0, sizeof(k->cpus), &k->cpus);
	atomic_fetch_add(&k->runs, 1);
}

/* In a thread that is tied to one processor, as those of data loaders are. */
static void *pinned_caller(void *arg)
{
	struct kind *k = arg;
	cpu_set_t one;
	int i = 0;

	sched_getaffinity(0, sizeof(one), &one);
	while (!CPU_ISSET(i, &one))
		i++;
	CPU_ZERO(&one);
	CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
	k->caller = pthread_self();
	crew_run(&k->work, 1);
	return NULL;
}

static void t_kind(void **state)
{
	struct kind k = { .work.run = look };
	cpu_set_t mine;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, pinned_caller, &k), 0);
	pthread_join(t, NULL);
	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	if (CPU_COUNT(&mine) < 2)
		print_message("one processor: that helpers are not tied is not seen\n");
	assert_true(CPU_EQUAL(&mine, &k.cpus));
	assert_true(sigismember(&k.blocked, SIGTERM) && sigismember(&k.blocked, SIGPROF));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define B(f) cmocka_unit_test_setup_teardown(f, setup_bare, teardown)
	const struct CMUnitTest tests[] = {
		T(t_together),	T(t_too_many),	T(t_no_call_missed), T(t_withdrawn),
		T(t_late_helpers), T(t_begun_is_waited_for), T(t_nested), T(t_many_callers),
		B(t_none_configured), B(t_refused), T(t_gone), T(t_kind),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
