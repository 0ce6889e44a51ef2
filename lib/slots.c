// SPDX-License-Identifier: MIT
/* slots.c - pinned host memory that bytes pass through on their way to a GPU or from it. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "cufio-slot"
#include "config.h"
#include "device.h"
#include "errmap.h"
#include "log.h"
#include "os.h"
#include "slots.h"
#include "stats.h"

#define STREAMS 16			/* of a device: threads do not meet in one */
#define IDLE_NS ((uint64_t)10000000000)	/* memory that is unused for so long goes back */
#define LOOK_NS ((uint64_t)1000000000)	/* and that is looked at once in so long */
#define RETRY_NS ((uint64_t)10000000000) /* after a failure to make one */

/*
 * lock guards all of it but what is said; it is never held over a call to CUDA. A slot is on
 * `idle`, the last used first, or held by one thread. `made` counts those that exist or that
 * somebody is making; a taker waits on `given` for one, or for room to make one. A stream is
 * published by its number in `n`, and stays until the close.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct slot *idle;
	unsigned int made, going;	/* going: of made, those that are being given back */
	unsigned int lent[GPU_MAX];	/* by device */
	unsigned int cap;	/* of all; 0: SLOTS_MOST for each device in use. Final, as bytes */
	size_t bytes;
	uint64_t no_more_until;	/* ns; one could not be made */
	struct {
		struct gpu_stream s[STREAMS];
		unsigned int n, turn;
		bool making;	/* somebody makes the next */
	} of[GPU_MAX];
	unsigned int used;	/* devices that have streams */
	_Atomic uint64_t looked;	/* ns; at what lies idle */
} slots = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER };

void slots_open(const struct config *c)
{
	size_t bytes = HOST_SLOT_BYTES, cap = 0;

	if (c->posix_slabs_set) {
		if (c->posix_slab_kb[c->nposix_slabs - 1] < bytes / 1024)
			bytes = c->posix_slab_kb[c->nposix_slabs - 1] * 1024;
		cap = config_slabs_kb(c->posix_slab_kb, c->posix_slab_count, c->nposix_slabs) /
		      (bytes / 1024);
		cap = cap > GPU_MAX * SLOTS_MOST ? GPU_MAX * SLOTS_MOST : cap;
	}
	slots.bytes = bytes;
	slots.cap = cap;
}

size_t slot_bytes(void)
{
	return slots.bytes;
}

/* slots.lock held */
static unsigned int most(void)
{
	return slots.cap ? slots.cap : SLOTS_MOST * (slots.used ? slots.used : 1);
}

/* slots.lock held. The last used one of this device, else (any) of whichever. */
static struct slot *pick(int dev, bool any)
{
	struct slot **at, *s;

	for (at = &slots.idle; (s = *at); at = &s->next) {
		if (!any && s->dev != dev)
			continue;
		*at = s->next;
		return s;
	}
	return NULL;
}

/* -- streams -- */

/* slots.lock held, and left meanwhile. One more stream of the device: 0 or CUDA's error. */
static int make_stream(struct device *d)
{
	struct gpu_stream fresh;
	int r;

	slots.of[d->index].making = true;
	pthread_mutex_unlock(&slots.lock);
	r = gpu->stream_new(d->ctx, &fresh);
	pthread_mutex_lock(&slots.lock);
	slots.of[d->index].making = false;
	pthread_cond_broadcast(&slots.given);
	if (r)
		return r;
	if (!slots.of[d->index].n)
		slots.used++;
	slots.of[d->index].s[slots.of[d->index].n++] = fresh;
	return 0;
}

/* slots.lock held, and left meanwhile. `make`: not only the first one is made. */
static struct gpu_stream *next_stream(struct device *d, bool make, int *r)
{
	unsigned int *n = &slots.of[d->index].n;

	while (!*n && slots.of[d->index].making)
		pthread_cond_wait(&slots.given, &slots.lock);
	*r = 0;
	if (!slots.of[d->index].making && (!*n || (make && *n < STREAMS)))
		*r = make_stream(d);
	if (!*n)
		return NULL;
	*r = 0;
	return &slots.of[d->index].s[slots.of[d->index].turn++ % *n];
}

/* -- slots -- */

/* An idle one that fits no device any more: its memory stays, for who comes next. */
static void detach(struct slot *s)
{
	if (s->dev < 0)
		return;
	gpu->event_free(&s->mark);
	gpu->event_free(&s->alarm);
	s->dev = -1;
}

/* For this device from now on. 0 or CUDA's error: it belongs to none then. */
static int attach(struct slot *s, struct device *d, bool make)
{
	int r;

	detach(s);
	pthread_mutex_lock(&slots.lock);
	s->s = next_stream(d, make, &r);
	pthread_mutex_unlock(&slots.lock);
	if (!r)
		r = gpu->event_new(d->ctx, false, &s->mark);
	if (!r) {
		r = gpu->event_new(d->ctx, true, &s->alarm);
		if (r)
			gpu->event_free(&s->mark);
	}
	if (!r)
		s->dev = d->index;
	else
		log_error("GPU %s: a stream or an event: %s: free GPU memory, or destroy streams",
			  d->pci, gpu->error(r));
	return r;
}

static void destroy(struct slot *s)
{
	detach(s);
	gpu->host_free(s->ctx, s->host, slots.bytes);
	free(s);
}

/* Pinned memory near the GPU. It is counted in `made` already. NULL: *r is CUDA's error. */
static struct slot *make(struct device *d, int *r)
{
	struct slot *s = calloc(1, sizeof(*s));
	struct os_policy was;
	void *host = NULL;
	bool near;

	*r = 0;
	if (!s)
		return NULL;
	s->dev = s->lent = -1;
	near = os->memory_near(d->node, &was);
	*r = gpu->host_alloc(d->ctx, slots.bytes, &host);
	if (near)
		os->memory_back(&was);
	if (*r) {
		free(s);
		return NULL;
	}
	s->host = host;
	s->ctx = d->ctx;
	return s;
}

/* slots.lock held. One more, or one less, is taken for this device. */
static void lend(int dev, int more, bool waited)
{
	struct stats_area *a = stats_show();

	slots.lent[dev] += more;
	if (a)
		stats_pool(a->host, dev, slots.bytes, slots.made, slots.lent[dev], waited);
}

static void put(struct slot *s)
{
	s->next = slots.idle;
	slots.idle = s;
}

/* It was counted (and lent, lent >= 0), and could not be made: how many there are without it. */
static unsigned int not_made(int lent)
{
	unsigned int left;

	pthread_mutex_lock(&slots.lock);
	left = --slots.made;
	if (lent >= 0)
		lend(lent, -1, false);
	slots.no_more_until = os->now_ns() + RETRY_NS;
	pthread_cond_broadcast(&slots.given);
	pthread_mutex_unlock(&slots.lock);
	return left;
}

static bool may_make(unsigned int may)
{
	if (!slots.made)
		return may != 0;
	return (may & SLOT_MAY_MAKE) && slots.made < most() &&
	       (!slots.no_more_until || os->now_ns() >= slots.no_more_until);
}

static struct slot *take_new(struct device *d, bool *others, int *err)
{
	struct slot *s;
	int r;

	s = make(d, &r);
	if (s)
		return s;
	*others = not_made(d->index);
	if (*others)
		log_notice("cuMemHostAlloc of %zu bytes: %s: going on with what there is; free host memory, or raise the memory limit",
			   slots.bytes, r ? gpu->error(r) : "ENOMEM");
	else
		log_error("cuMemHostAlloc of %zu bytes: %s: free host memory, or raise the memory limit",
			  slots.bytes, r ? gpu->error(r) : "ENOMEM");
	*err = r ? err_cuda(r) : -ENOMEM;
	return NULL;
}

struct slot *slot_take(struct device *d, unsigned int may, int *err)
{
	struct slot *s;
	bool fresh = false, others, waited = false;
	int r;

	*err = 0;
again:
	pthread_mutex_lock(&slots.lock);
	for (;;) {
		s = pick(d->index, false);
		fresh = !s && may_make(may);
		if (!s && !fresh)
			s = pick(d->index, true);
		if (s || fresh || !(may & SLOT_MAY_WAIT))
			break;
		pthread_cond_wait(&slots.given, &slots.lock);
		waited = true;
	}
	slots.made += fresh;
	if (s || fresh)
		lend(d->index, 1, waited);
	pthread_mutex_unlock(&slots.lock);
	if (fresh) {
		s = take_new(d, &others, err);
		if (!s && others && (may & SLOT_MAY_WAIT)) {
			*err = 0;
			goto again;
		}
	}
	if (s)
		s->lent = d->index;
	if (!s || s->dev == d->index)
		return s;
	r = attach(s, d, may & SLOT_MAY_MAKE);
	if (!r)
		return s;
	*err = err_cuda(r);
	slot_give(s);
	return NULL;
}

void slot_give(struct slot *s)
{
	s->since = os->now_ns();
	pthread_mutex_lock(&slots.lock);
	put(s);
	if (s->lent >= 0)
		lend(s->lent, -1, false);
	s->lent = -1;
	pthread_cond_broadcast(&slots.given);
	pthread_mutex_unlock(&slots.lock);
}

void slots_grow(struct device *d, unsigned int n)
{
	struct slot *s;
	bool more;
	int r;

	pthread_mutex_lock(&slots.lock);
	n = n < most() ? n : most();
	more = slots.made && slots.made < n && may_make(SLOT_MAY_MAKE);
	slots.made += more;
	pthread_mutex_unlock(&slots.lock);
	if (!more)
		return;
	s = make(d, &r);
	if (!s) {
		not_made(-1);
		return;
	}
	/* one that cannot be attached is kept all the same: its taker tries again */
	attach(s, d, true);
	slot_give(s);
}

/* slots.lock held. What lies at the end of the list, and has for long; one stays. */
static struct slot *take_old(uint64_t now)
{
	struct slot **at = &slots.idle, *s;

	if (slots.made - slots.going < 2 || !*at)
		return NULL;
	while ((*at)->next)
		at = &(*at)->next;
	s = *at;
	if (now < s->since + IDLE_NS)
		return NULL;
	*at = NULL;
	slots.going++;
	return s;
}

void slots_trim(void)
{
	uint64_t now = os->now_ns(), looked = atomic_load(&slots.looked);
	struct slot *s;

	if (now < looked + LOOK_NS || !atomic_compare_exchange_strong(&slots.looked, &looked, now))
		return;
	for (;;) {
		pthread_mutex_lock(&slots.lock);
		s = take_old(now);
		pthread_mutex_unlock(&slots.lock);
		if (!s)
			return;
		destroy(s);
		/* only now is there room: no moment has more than the cap */
		pthread_mutex_lock(&slots.lock);
		slots.made--;
		slots.going--;
		pthread_cond_broadcast(&slots.given);
		pthread_mutex_unlock(&slots.lock);
	}
}

int slots_prepare(struct device *d, unsigned int n)
{
	struct slot *s;
	unsigned int i;
	int r = 0;

	pthread_mutex_lock(&slots.lock);
	while (!r && slots.of[d->index].n < STREAMS) {
		if (slots.of[d->index].making)
			pthread_cond_wait(&slots.given, &slots.lock);
		else
			r = make_stream(d);
	}
	if (slots.of[d->index].n)
		r = 0;
	/* others bounce, too */
	n = n < most() / 2 ? n : most() / 2;
	pthread_mutex_unlock(&slots.lock);
	if (r) {
		log_error("GPU %s: cuStreamCreate: %s: free GPU memory, or destroy streams", d->pci,
			  gpu->error(r));
		return err_cuda(r);
	}
	/* one is enough for progress */
	s = slot_take(d, SLOT_MAY_MAKE | SLOT_MAY_WAIT, &r);
	if (!s)
		return r;
	slot_give(s);
	for (i = 1; i < n; i++)
		slots_grow(d, n);
	return 0;
}

void slots_release(void)
{
	struct slot *s;
	unsigned int i;

	while ((s = slots.idle)) {
		slots.idle = s->next;
		destroy(s);
	}
	for (i = 0; i < GPU_MAX; i++)
		while (slots.of[i].n)
			gpu->stream_free(&slots.of[i].s[--slots.of[i].n]);
	slots.made = slots.used = 0;
	slots.no_more_until = 0;
	atomic_store(&slots.looked, 0);
}
