// SPDX-License-Identifier: MIT
/*
 * route_bar.c - CPU stores through BAR1: what the page cache holds, without the copy engine.
 * A drive cannot write there (these pages have no struct page), so it reads into a slot, from
 * where the CPU stores.
 */
#include <errno.h>
#include <string.h>

#include "bar.h"
#include "driver.h"
#include "errmap.h"
#include "flow.h"
#include "probes.h"
#include "route.h"
#include "slots.h"

/* More processors do not store faster than the bus takes it. */
#define STORERS 8
/* From here on several threads do it. */
#define SHARED ((uint64_t)256 * 1024)

/* Not asked: the planner knows from plan_in whether the memory has a bar. */
static unsigned int probe(const struct plan_in *in)
{
	return in->bar ? REASON_NONE : REASON_ABSENT;
}

/* -- in the calling thread -- */

/* *n: bytes to read, in and out. */
static ssize_t step(struct request *rq, char *at, size_t *n, int64_t off)
{
	struct slot *s;
	ssize_t got;
	int err;

	if (!file_direct(rq->file, *n, off))
		return file_pread_much(rq->file, at, *n, off);
	s = slot_take(rq->dev, SLOT_MAY_WAIT | (rq->deferred ? 0 : SLOT_MAY_MAKE), &err);
	if (!s)
		return err;
	if (*n > slot_bytes())
		*n = slot_bytes();
	got = file_pread(rq->file, s->host, *n, off, 0);
	if (got > 0)
		memcpy(at, s->host, got);
	slot_give(s);
	return got;
}

static ssize_t steps(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	unsigned int reason;
	struct bar_use u;
	ssize_t r = 0;
	size_t n;

	while (*done < size) {
		if (driver_closing())
			return ERR(DRIVER_CLOSING);
		if (bar_use(rq->bar, va + *done, size - *done, va, va + size, &u, &reason))
			return -EAGAIN;
		n = u.len;
		r = step(rq, u.at, &n, off + *done);
		bar_done(&u);
		if (r <= 0)
			break;
		*done += r;
		/* fewer than asked: the file ended */
		if ((size_t)r < n)
			break;
	}
	return r < 0 ? r : 0;
}

/* -- in several threads; the range is one window, and proven -- */

static ssize_t store(struct flow *f, struct slot *s, uint64_t i)
{
	size_t n = flow_bytes(f, i);
	unsigned int reason;
	struct bar_use u;
	ssize_t got;

	if (bar_use(f->rq->bar, flow_va(f, i), n, f->va, f->va + f->size, &u, &reason))
		return -EAGAIN;
	if (s) {
		got = flow_fill(f, s->host, i);
		if (got > 0)
			memcpy(u.at, s->host + flow_skip(f, i), got);
	} else {
		got = file_pread(f->rq->file, u.at, n, flow_begin(f, i), 0);
	}
	bar_done(&u);
	return got;
}

static void run_pieces(struct crew_work *w)
{
	struct flow *f = (struct flow *)w;
	bool mine = pthread_equal(pthread_self(), f->caller);
	struct slot *s = NULL;
	ssize_t got;
	uint64_t i;
	int err = 0;

	flow_enter();
	atomic_fetch_add(&f->rq->dev->ways.threads, 1);
	if (f->direct)
		s = slot_take(f->rq->dev, (mine ? SLOT_MAY_WAIT : 0) |
					  (f->rq->deferred ? 0 : SLOT_MAY_MAKE), &err);
	/* a helper without a slot leaves it to the others */
	while ((s || !f->direct || mine) && flow_next(f, &i)) {
		got = f->direct && !s ? err : store(f, s, i);
		if (got < (ssize_t)flow_bytes(f, i))
			flow_stop(f, i, got < 0 ? 0 : got, got < 0 ? got : 0);
	}
	if (s)
		slot_give(s);
	bar_fence();
	atomic_fetch_sub(&f->rq->dev->ways.threads, 1);
	flow_leave();
}

/* -EAGAIN: this way is not there, or not now. */
static ssize_t run(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	struct flow f = { .work.run = run_pieces, .most = slot_bytes(), .helpers = STORERS - 1 };
	unsigned int reason;
	struct bar_use u;
	ssize_t r;

	*done = 0;
	if (size < SHARED) {
		r = steps(rq, off, size, va, done);
	} else if (bar_use(rq->bar, va, size, va, va + size, &u, &reason)) {
		r = -EAGAIN;
	} else {
		bar_done(&u);
		atomic_fetch_add(&rq->dev->ways.requests, 1);
		if (bar_ready(rq->bar))
			r = flow_run(&f, rq, off, size, va, done);
		else
			r = steps(rq, off, size, va, done);
		atomic_fetch_sub(&rq->dev->ways.requests, 1);
	}
	bar_fence();
	PROBE4(cufio-internal-bb-done, rq->file->user_fd, off, *done, r < 0 ? r : 0);
	/* the mapping is gone, after a reset of the GPU for example */
	if (r == -EFAULT)
		r = -EAGAIN;
	return r < 0 ? r : (ssize_t)*done;
}

const struct route route_bar = {
	.size = sizeof(struct route),
	.name = "bar",
	.score = 20,
	.edges = true,
	.probe = probe,
	.run = run,
};
