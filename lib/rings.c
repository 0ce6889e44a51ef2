// SPDX-License-Identifier: MIT
/* rings.c - the rings that requests take and give back. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define LOG_MODULE "cufio-ring"
#include "config.h"
#include "log.h"
#include "os.h"
#include "rings.h"

#define RINGS_MOST 64		/* more requests at a time than that go by threads */
#define DEEP_MOST 16		/* no more threads than that serve batches */

/* made: those that exist */
struct kept {
	unsigned int depth, most;
	struct os_ring *idle[RINGS_MOST];
	unsigned int n, made;
};

/* lock guards all but `off`, which a refusal sets for good. */
static struct {
	pthread_mutex_t lock;
	struct kept small, deep;
	atomic_bool off;
} rings = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.small = { .depth = RING_DEPTH, .most = RINGS_MOST },
	.deep = { .depth = RING_DEEP, .most = DEEP_MOST },
};

void rings_open(const struct config *c)
{
	atomic_store(&rings.off, c->prefer_iouring_set && !c->prefer_iouring);
}

static void refused(struct kept *k, int err)
{
	pthread_mutex_lock(&rings.lock);
	k->made--;
	pthread_mutex_unlock(&rings.lock);
	if (atomic_exchange(&rings.off, true))
		return;
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
		make = true;
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
}

void rings_release(void)
{
	release(&rings.small);
	release(&rings.deep);
}
