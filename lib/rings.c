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

/* lock guards all but `off`, which a refusal sets for good. made: those that exist. */
static struct {
	pthread_mutex_t lock;
	struct os_ring *idle[RINGS_MOST];
	unsigned int n, made;
	atomic_bool off;
} rings = { .lock = PTHREAD_MUTEX_INITIALIZER };

void rings_open(const struct config *c)
{
	atomic_store(&rings.off, c->prefer_iouring_set && !c->prefer_iouring);
}

static void refused(int err)
{
	pthread_mutex_lock(&rings.lock);
	rings.made--;
	pthread_mutex_unlock(&rings.lock);
	if (atomic_exchange(&rings.off, true))
		return;
	log_info("io_uring_setup: %s: requests of a drive go by threads instead; allow io_uring (sysctl kernel.io_uring_disabled, a container's seccomp profile), or say properties.prefer_iouring false",
		 log_errno(err));
}

struct os_ring *ring_take(void)
{
	struct os_ring *r = NULL;
	bool make = false;
	int err;

	if (atomic_load_explicit(&rings.off, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&rings.lock);
	if (rings.n)
		r = rings.idle[--rings.n];
	else if (rings.made < RINGS_MOST)
		make = true;
	rings.made += make;
	pthread_mutex_unlock(&rings.lock);
	if (!make)
		return r;
	err = os->ring_new(RING_DEPTH, &r);
	if (!err)
		return r;
	refused(err);
	return NULL;
}

void ring_give(struct os_ring *r)
{
	pthread_mutex_lock(&rings.lock);
	rings.idle[rings.n++] = r;
	pthread_mutex_unlock(&rings.lock);
}

void rings_release(void)
{
	while (rings.n)
		os->ring_free(rings.idle[--rings.n]);
	rings.made = 0;
}
