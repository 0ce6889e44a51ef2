// SPDX-License-Identifier: MIT
/* rings.c - the rings that requests take and give back. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOG_MODULE "cufio-ring"
#include "config.h"
#include "log.h"
#include "os.h"
#include "rings.h"

#define RINGS_MOST 64		/* more requests at a time than that go by threads */
#define DEEP_MOST 16		/* no more threads than that serve batches */
#define AGAIN_NS ((uint64_t)1000000000)	/* from one that broke to the next one that is made */

/* made: those that exist. no_more_until: ns; none is made before it; 0: one may be */
struct kept {
	unsigned int depth, most;
	struct os_ring *idle[RINGS_MOST];
	unsigned int n, made;
	uint64_t no_more_until;
};

/* lock guards all but `off`, which a refusal sets for good, and `said`. */
static struct {
	pthread_mutex_t lock;
	struct kept small, deep;
	atomic_bool off;
	atomic_bool said;	/* the line of this open about what may pass */
} rings = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.small = { .depth = RING_DEPTH, .most = RINGS_MOST },
	.deep = { .depth = RING_DEEP, .most = DEEP_MOST },
};

void rings_open(const struct config *c)
{
	atomic_store(&rings.off, c->prefer_iouring_set && !c->prefer_iouring);
	atomic_store(&rings.said, false);
}

/* One less, and none in its place for a while: who breaks each ring makes them in no loop. */
static void one_less(struct kept *k)
{
	uint64_t until = os->now_ns() + AGAIN_NS;

	pthread_mutex_lock(&rings.lock);
	k->made--;
	k->no_more_until = until;
	pthread_mutex_unlock(&rings.lock);
}

/* No memory or no descriptors is a matter of the moment, anything else of the kernel or process. */
static void refused(struct kept *k, int err)
{
	bool later = err == -ENOMEM || err == -EAGAIN || err == -EMFILE || err == -ENFILE;

	one_less(k);
	if (later ? atomic_exchange(&rings.said, true) : atomic_exchange(&rings.off, true))
		return;
	if (later)
		log_info("io_uring_setup: %s: requests of a drive go by threads for a second, then it is tried again; free memory, or raise the limit of descriptors (ulimit -n)",
			 log_errno(err));
	else
		log_info("io_uring_setup: %s: requests of a drive go by threads instead; allow io_uring (sysctl kernel.io_uring_disabled, a container's seccomp profile), or say properties.prefer_iouring false",
			 log_errno(err));
}

static struct os_ring *take(struct kept *k)
{
	struct os_ring *r = NULL;
	bool make = false;
	int err;

	if (atomic_load_explicit(&rings.off, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&rings.lock);
	if (k->n)
		r = k->idle[--k->n];
	else if (k->made < k->most)
		make = !k->no_more_until || os->now_ns() >= k->no_more_until;
	k->made += make;
	pthread_mutex_unlock(&rings.lock);
	if (!make)
		return r;
	err = os->ring_new(k->depth, &r);
	if (!err)
		return r;
	refused(k, err);
	return NULL;
}

static void give(struct kept *k, struct os_ring *r)
{
	if (os->ring_broken(r)) {
		os->ring_free(r);
		one_less(k);
		if (!atomic_exchange(&rings.said, true))
			log_info("io_uring_enter: the kernel took no request: this one went by plain calls, others go by threads for a second, then it is tried again; allow io_uring (a container's seccomp profile), or say properties.prefer_iouring false");
		return;
	}
	pthread_mutex_lock(&rings.lock);
	k->idle[k->n++] = r;
	pthread_mutex_unlock(&rings.lock);
}

struct os_ring *ring_take(void)
{
	return take(&rings.small);
}

void ring_give(struct os_ring *r)
{
	give(&rings.small, r);
}

struct os_ring *ring_take_deep(void)
{
	return take(&rings.deep);
}

void ring_give_deep(struct os_ring *r)
{
	give(&rings.deep, r);
}

static void release(struct kept *k)
{
	while (k->n)
		os->ring_free(k->idle[--k->n]);
	k->made = 0;
	k->no_more_until = 0;
}

void rings_release(void)
{
	release(&rings.small);
	release(&rings.deep);
}
