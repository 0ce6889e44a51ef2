// SPDX-License-Identifier: MIT
/* crew.c - threads of the library that help one request along. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define LOG_MODULE "cufio-crew"
#include "cpu.h"
#include "crew.h"
#include "log.h"
#include "os.h"
#include "workers.h"

#define MOST 32			/* largest value of max_io_threads */
#define SPIN_NS 50000		/* more than a sleep and a wake cost, less than anybody minds */
#define SLEEPING (1u << 31)	/* of crew_work.inside: its caller sleeps, or is about to */
#define UNKNOWN (~0u)

/*
 * A work that wants helpers is on the list, first come first served, one helper at a time in
 * turn; it leaves the list with its last wanted helper, or when its caller has done.
 *
 * lock guards the list, slot (a thread's handle, set before it is counted out of `starting`),
 * slots, idle, refused and leaving. It is held for some instructions, never over a system call.
 * wanted: the sum of w->wanted of the list. Written under the lock, read without it.
 * bell: changes under the lock, when wanted grows and when `leaving` is set. Who finds no work
 *	takes it under the same lock, and sleeps only while it is the same: no ring is missed.
 * spinning, asleep: idle threads that look at `wanted`, and that sleep or are about to. Hints.
 * size, spinners: of this open; size is UNKNOWN until somebody asks.
 */
static struct {
	pthread_mutex_t lock;
	struct crew_work *first, **last;
	struct {
		pthread_t thread;
		bool there;
	} slot[MOST];
	unsigned int slots;	/* used: threads there are, or that a caller is starting */
	unsigned int idle;	/* of them, those that have no work */
	bool refused;		/* one could not be started: there will be no more */
	bool leaving;
	atomic_uint wanted, bell, spinning, asleep;
	atomic_uint size, spinners;
} crew = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.last = &crew.first,
	.size = UNKNOWN,
};

/* -- the list; crew.lock held -- */

static void append(struct crew_work *w)
{
	w->next = NULL;
	*crew.last = w;
	crew.last = &w->next;
}

static void take_out(struct crew_work *w)
{
	struct crew_work **at = &crew.first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (!*at)
		crew.last = at;
}

/* The next work for a helper, who has begun it then; NULL: none. */
static struct crew_work *begin(void)
{
	struct crew_work *w = crew.first;

	if (!w)
		return NULL;
	take_out(w);
	if (--w->wanted)
		append(w);
	atomic_fetch_sub(&crew.wanted, 1);
	atomic_fetch_add(&w->inside, 1);
	crew.idle--;
	return w;
}

/* -- helpers -- */

/* A helper is back. The work may be gone as soon as the caller can know that. */
static void come_back(struct crew_work *w)
{
	if (atomic_fetch_sub(&w->inside, 1) == (SLEEPING | 1))
		os->wake(&w->inside, 1);
}

/* Until there may be work. Spins first, where that keeps no processor from anybody. */
static void wait_for_bell(unsigned int seen, bool slow)
{
	bool spin = atomic_fetch_add(&crew.spinning, 1) < atomic_load(&crew.spinners) && !slow;
	uint64_t until = spin ? os->now_ns() + SPIN_NS : 0;
	unsigned int i;

	while (spin && os->now_ns() < until) {
		for (i = 0; i < 32 && spin; i++) {
			spin = !atomic_load(&crew.wanted);
			cpu_relax();
		}
	}
	atomic_fetch_sub(&crew.spinning, 1);
	if (atomic_load(&crew.wanted))
		return;
	atomic_fetch_add(&crew.asleep, 1);
	os->sleep_on(&crew.bell, seen);
	atomic_fetch_sub(&crew.asleep, 1);
}

/* What a pinned caller's thread would hand down to us is not ours. */
static void go_anywhere(void)
{
	unsigned long mask[1024 / sizeof(unsigned long)];

	if (!sched_getaffinity(getpid(), sizeof(mask), (cpu_set_t *)mask))
		sched_setaffinity(0, sizeof(mask), (cpu_set_t *)mask);
}

static void *serve(void *arg)
{
	struct crew_work *w;
	unsigned int seen;
	bool slow = false;

	go_anywhere();
	pthread_mutex_lock(&crew.lock);
	while (!crew.leaving) {
		w = begin();
		seen = atomic_load(&crew.bell);
		pthread_mutex_unlock(&crew.lock);
		if (w) {
			slow = w->slow;
			w->run(w);
			come_back(w);
		} else {
			wait_for_bell(seen, slow);
		}
		pthread_mutex_lock(&crew.lock);
		if (w)
			crew.idle++;
	}
	pthread_mutex_unlock(&crew.lock);
	return NULL;
}

/* -- callers -- */

/* How many threads are to be started for what is wanted; from slot *at on. crew.lock held. */
static unsigned int want_more(unsigned int *at)
{
	unsigned int wanted = atomic_load(&crew.wanted), most = crew_size(), n;

	*at = crew.slots;
	if (crew.refused || crew.idle >= wanted || crew.slots >= most)
		return 0;
	n = wanted - crew.idle < most - crew.slots ? wanted - crew.idle : most - crew.slots;
	crew.slots += n;
	crew.idle += n;
	return n;
}

static void start(unsigned int at, unsigned int n)
{
	unsigned int i, have = 0;
	pthread_t t;
	int r = 0;

	for (; n; at++, n--) {
		r = os->thread(&t, serve, NULL);
		pthread_mutex_lock(&crew.lock);
		if (r)
			break;
		crew.slot[at].thread = t;
		crew.slot[at].there = true;
		pthread_mutex_unlock(&crew.lock);
	}
	if (!n)
		return;
	crew.idle -= n;
	crew.refused = true;
	for (i = 0; i < MOST; i++)
		have += crew.slot[i].there;
	atomic_store(&crew.size, have);
	pthread_mutex_unlock(&crew.lock);
	log_warn("a thread that helps with I/O: %s: requests go on with %u of them; raise the limit of processes (ulimit -u)",
		 log_errno(r), have);
}

/* Wakes whom the list has work for, as far as they do not look at it anyway. */
static void ring(void)
{
	unsigned int wanted = atomic_load(&crew.wanted), spin = atomic_load(&crew.spinning);

	if (wanted > spin && atomic_load(&crew.asleep))
		os->wake(&crew.bell, wanted - spin);
}

/* Waits until nobody is inside of it. Spins first: what is left is at most a piece each. */
static void wait_for_helpers(struct crew_work *w)
{
	uint64_t until = 0;
	unsigned int n, i;

	do {
		for (i = 0; i < 32; i++) {
			if (!atomic_load(&w->inside))
				return;
			cpu_relax();
		}
		if (!until)
			until = os->now_ns() +
				(atomic_load(&crew.spinners) && !w->slow ? SPIN_NS : 0);
	} while (os->now_ns() < until);
	n = atomic_fetch_or(&w->inside, SLEEPING) | SLEEPING;
	for (; n != SLEEPING; n = atomic_load(&w->inside))
		os->sleep_on(&w->inside, n);
}

void crew_run(struct crew_work *w, unsigned int helpers)
{
	unsigned int at, n;

	if (helpers && helpers > crew_size())
		helpers = crew_size();
	if (!helpers) {
		w->run(w);
		return;
	}
	atomic_init(&w->inside, 0);
	pthread_mutex_lock(&crew.lock);
	w->wanted = helpers;
	append(w);
	atomic_fetch_add(&crew.wanted, helpers);
	atomic_fetch_add(&crew.bell, 1);
	n = want_more(&at);
	pthread_mutex_unlock(&crew.lock);
	ring();
	if (n)
		start(at, n);

	w->run(w);

	pthread_mutex_lock(&crew.lock);
	if (w->wanted) {
		take_out(w);
		atomic_fetch_sub(&crew.wanted, w->wanted);
	}
	pthread_mutex_unlock(&crew.lock);
	wait_for_helpers(w);
}

unsigned int crew_size(void)
{
	unsigned int n = atomic_load_explicit(&crew.size, memory_order_relaxed);

	if (n == UNKNOWN) {
		n = workers_cap();
		n = n > MOST ? MOST : n;
		atomic_store(&crew.spinners, workers_cpus() / 2);
		atomic_store(&crew.size, n);
	}
	return n;
}

void crew_release(void)
{
	unsigned int i;

	pthread_mutex_lock(&crew.lock);
	crew.leaving = true;
	atomic_fetch_add(&crew.bell, 1);
	pthread_mutex_unlock(&crew.lock);
	os->wake(&crew.bell, MOST);
	/* joined, not only told: their code must not be unmapped under them by a dlclose */
	for (i = 0; i < crew.slots; i++)
		if (crew.slot[i].there)
			pthread_join(crew.slot[i].thread, NULL);
	memset(crew.slot, 0, sizeof(crew.slot));
	crew.slots = crew.idle = 0;
	crew.leaving = crew.refused = false;
	atomic_store(&crew.size, UNKNOWN);
}
