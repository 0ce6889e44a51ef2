// SPDX-License-Identifier: MIT
/* lane.c - streams and pinned host memory for copies. */
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
 * lock guards all of it. A lane is on `idle`, held by one thread, or on `bare`: without a stream,
 * with host memory that the next one made takes over. `made` counts those with a stream; a taker
 * waits on `given` when it is `most` and no idle one fits. made and bare are `most` at the most.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct lane *idle, *bare;
	unsigned int made, most;	/* most, bytes: final while the library is open */
	size_t bytes;
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
	lanes.bytes = bytes;
	lanes.most = most;
}

size_t lane_bytes(void)
{
	return lanes.bytes;
}

/* Waits for the GPUs: at the close only. */
static void destroy(struct lane *l)
{
	if (l->host)
		gpu->host_free(l->host_ctx, l->host);
	if (l->s.stream)
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

void lanes_context(void *ctx)
{
	pthread_mutex_lock(&lanes.lock);
	made_of(ctx);
	pthread_mutex_unlock(&lanes.lock);
}

/* lanes.lock held. One without a stream is kept for what it has. */
static void keep_bare(struct lane *l)
{
	if (!l->host) {
		free(l);
		return;
	}
	l->next = lanes.bare;
	lanes.bare = l;
}

/* lanes.lock held */
static struct lane *take_bare(void)
{
	struct lane *l = lanes.bare;

	if (l)
		lanes.bare = l->next;
	return l;
}

/* Its old stream goes, which does not wait; its host memory serves any context. */
static int new_stream(struct lane *l, void *ctx)
{
	if (l->s.stream)
		gpu->stream_free(&l->s);
	memset(&l->s, 0, sizeof(l->s));
	return gpu->stream_new(ctx, &l->s);
}

enum when_none { MAKE, WAIT, LEAVE };

/* LEAVE: NULL and no error when it would have to wait for one that somebody holds. */
static struct lane *take(void *ctx, int keep, enum when_none how, int *err)
{
	struct lane *l, *used = NULL;
	int r = 0;

	pthread_mutex_lock(&lanes.lock);
	for (;;) {
		l = pick(ctx, false);
		if (l)
			break;
		if (!(how == WAIT && keep && made_of(ctx) && *made_of(ctx))) {
			if (lanes.made < lanes.most)
				break;
			used = pick(ctx, true);
			if (used) {
				count(used->s.ctx, true, -1);
				break;
			}
		}
		if (how == LEAVE) {
			pthread_mutex_unlock(&lanes.lock);
			return NULL;
		}
		pthread_cond_wait(&lanes.given, &lanes.lock);
	}
	if (!l) {
		count(ctx, keep, 1);
		if (!used)
			used = take_bare();
	}
	pthread_mutex_unlock(&lanes.lock);
	if (l)
		return l;

	l = used ? used : calloc(1, sizeof(*l));
	r = l ? new_stream(l, ctx) : 0;
	if (l && !r) {
		l->foreign = !keep;
		return l;
	}
	if (r)
		log_error("cuStreamCreate: %s: free GPU memory, or destroy streams",
			  gpu->error(r));
	*err = r ? err_cuda(r) : -ENOMEM;
	pthread_mutex_lock(&lanes.lock);
	if (l)
		keep_bare(l);
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
		r = lane_host(held[i]);
	}
	/* one is enough for progress */
	if (i > 1)
		r = 0;
	while (i--)
		lane_give(held[i]);
	return r;
}

int lane_host(struct lane *l)
{
	int r;

	if (l->host)
		return 0;
	pthread_mutex_lock(&lanes.lock);
	/* what is not ours to keep may be gone before the memory is */
	l->host_ctx = l->foreign ? lanes.of[0].ctx : l->s.ctx;
	pthread_mutex_unlock(&lanes.lock);
	r = gpu->host_alloc(l->host_ctx, lanes.bytes, &l->host);
	if (!r)
		return 0;
	l->host = NULL;
	log_error("cuMemHostAlloc of %zu bytes: %s: free host memory, or raise the memory limit",
		  lanes.bytes, gpu->error(r));
	return err_cuda(r);
}

void lane_give(struct lane *l)
{
	bool gone = l->foreign;

	if (gone) {
		gpu->stream_free(&l->s);
		memset(&l->s, 0, sizeof(l->s));
	}
	pthread_mutex_lock(&lanes.lock);
	if (gone) {
		lanes.made--;
		keep_bare(l);
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
	while ((l = take_bare()))
		destroy(l);
	lanes.made = 0;
	memset(lanes.of, 0, sizeof(lanes.of));
}
