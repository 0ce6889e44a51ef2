// SPDX-License-Identifier: MIT
/* lane.c - streams for copies. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "cufio-lane"
#include "config.h"
#include "errmap.h"
#include "lane.h"
#include "log.h"

/*
 * lock guards both. A lane is on `idle` or held by one thread. `made` counts those that
 * exist; a taker waits on `given` when it is `most` and no idle one fits.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct lane *idle;
	unsigned int made, most;	/* most: final while the library is open */
	struct {
		void *ctx;
		unsigned int made;
	} of[GPU_MAX];		/* of `made`, those of each context of ours */
} lanes = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER };

void lanes_open(const struct config *c)
{
	size_t bytes = LANE_BYTES, most = LANE_MAX;

	if (c->posix_slabs_set) {
		if (c->posix_slab_kb[c->nposix_slabs - 1] < bytes / 1024)
			bytes = c->posix_slab_kb[c->nposix_slabs - 1] * 1024;
		most = config_slabs_kb(c->posix_slab_kb, c->posix_slab_count, c->nposix_slabs) /
		       (bytes / 1024);
		most = most > LANE_MAX ? LANE_MAX : most;
	}
	lanes.most = most;
}

static void destroy(struct lane *l)
{
	gpu->stream_free(&l->s);
	free(l);
}

/* lanes.lock held. One of this context, else (when no more may be made) any to replace. */
static struct lane *pick(void *ctx, bool any)
{
	struct lane **at, *l;

	for (at = &lanes.idle; (l = *at); at = &l->next) {
		if (!any && l->s.ctx != ctx)
			continue;
		*at = l->next;
		return l;
	}
	return NULL;
}

/* lanes.lock held. Of a context of ours; NULL: there are as many contexts as devices. */
static unsigned int *made_of(void *ctx)
{
	int i;

	for (i = 0; i < GPU_MAX; i++) {
		if (!lanes.of[i].ctx)
			lanes.of[i].ctx = ctx;
		if (lanes.of[i].ctx == ctx)
			return &lanes.of[i].made;
	}
	return NULL;
}

/* lanes.lock held */
static void count(void *ctx, bool keep, int by)
{
	unsigned int *of = keep ? made_of(ctx) : NULL;

	lanes.made += by;
	if (of)
		*of += by;
}

enum when_none { MAKE, WAIT, LEAVE };

/* LEAVE: NULL and no error when it would have to wait for one that somebody holds. */
static struct lane *take(void *ctx, int keep, enum when_none how, int *err)
{
	struct lane *l, *old = NULL;
	int r;

	pthread_mutex_lock(&lanes.lock);
	for (;;) {
		l = pick(ctx, false);
		if (l)
			break;
		if (!(how == WAIT && keep && made_of(ctx) && *made_of(ctx))) {
			if (lanes.made < lanes.most)
				break;
			old = pick(ctx, true);
			if (old) {
				count(old->s.ctx, !old->foreign, -1);
				break;
			}
		}
		if (how == LEAVE) {
			pthread_mutex_unlock(&lanes.lock);
			return NULL;
		}
		pthread_cond_wait(&lanes.given, &lanes.lock);
	}
	if (!l)
		count(ctx, keep, 1);
	pthread_mutex_unlock(&lanes.lock);
	if (l)
		return l;
	if (old)
		destroy(old);

	l = calloc(1, sizeof(*l));
	r = l ? gpu->stream_new(ctx, &l->s) : 0;
	if (l && !r) {
		l->foreign = !keep;
		return l;
	}
	if (r)
		log_error("cuStreamCreate: %s: free GPU memory, or destroy streams",
			  gpu->error(r));
	free(l);
	*err = r ? err_cuda(r) : -ENOMEM;
	pthread_mutex_lock(&lanes.lock);
	count(ctx, keep, -1);
	pthread_cond_broadcast(&lanes.given);
	pthread_mutex_unlock(&lanes.lock);
	return NULL;
}

struct lane *lane_take(void *ctx, int keep, bool wait, int *err)
{
	return take(ctx, keep, wait ? WAIT : MAKE, err);
}

int lanes_prepare(void *ctx, unsigned int n)
{
	unsigned int most = lanes.most / 2 ? lanes.most / 2 : 1, i, have;
	struct lane *held[LANE_MAX];
	int r = 0;

	pthread_mutex_lock(&lanes.lock);
	have = made_of(ctx) ? *made_of(ctx) : 0;
	pthread_mutex_unlock(&lanes.lock);
	if (have >= n)
		return 0;
	for (i = 0; i < n && i < most && !r; i++) {
		/* the first may be waited for; then others that prepare wait for those held here */
		held[i] = take(ctx, true, i ? LEAVE : MAKE, &r);
		if (!held[i])
			break;
	}
	/* one is enough for progress */
	if (i > 1)
		r = 0;
	while (i--)
		lane_give(held[i]);
	return r;
}

void lane_give(struct lane *l)
{
	bool gone = l->foreign;

	if (gone)
		destroy(l);
	pthread_mutex_lock(&lanes.lock);
	if (gone) {
		lanes.made--;
	} else {
		l->next = lanes.idle;
		lanes.idle = l;
	}
	pthread_cond_broadcast(&lanes.given);
	pthread_mutex_unlock(&lanes.lock);
}

void lanes_release(void)
{
	struct lane *l;

	while ((l = lanes.idle)) {
		lanes.idle = l->next;
		destroy(l);
	}
	lanes.made = 0;
	memset(lanes.of, 0, sizeof(lanes.of));
}
