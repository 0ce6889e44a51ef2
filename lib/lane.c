// SPDX-License-Identifier: MIT
/* lane.c - streams and pinned host memory for copies. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define LOG_MODULE "cufio-lane"
#include "errmap.h"
#include "lane.h"
#include "log.h"

/*
 * lock guards both. A lane is on `idle` or held by one thread. `made` counts those that
 * exist; a taker waits on `given` when it is LANE_MAX and no idle one fits.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct lane *idle;
	unsigned int made;
} lanes = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER };

static void destroy(struct lane *l)
{
	if (l->host)
		gpu->host_free(l->s.ctx, l->host);
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

struct lane *lane_take(void *ctx, int keep, int *err)
{
	struct lane *l, *old = NULL;
	int r;

	pthread_mutex_lock(&lanes.lock);
	for (;;) {
		l = pick(ctx, false);
		if (l || lanes.made < LANE_MAX)
			break;
		old = pick(ctx, true);
		if (old) {
			lanes.made--;
			break;
		}
		pthread_cond_wait(&lanes.given, &lanes.lock);
	}
	if (!l)
		lanes.made++;
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
	lanes.made--;
	pthread_cond_signal(&lanes.given);
	pthread_mutex_unlock(&lanes.lock);
	return NULL;
}

int lane_host(struct lane *l)
{
	int r;

	if (l->host)
		return 0;
	r = gpu->host_alloc(l->s.ctx, LANE_BYTES, &l->host);
	if (!r)
		return 0;
	l->host = NULL;
	log_error("cuMemHostAlloc of %d bytes: %s: free host memory, or raise the memory limit",
		  LANE_BYTES, gpu->error(r));
	return err_cuda(r);
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
	pthread_cond_signal(&lanes.given);
	pthread_mutex_unlock(&lanes.lock);
}

void lanes_release(void)
{
	struct lane *l;

	while ((l = lanes.idle)) {
		lanes.idle = l->next;
		lanes.made--;
		destroy(l);
	}
}
