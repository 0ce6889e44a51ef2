// SPDX-License-Identifier: MIT
/*
 * bounce.c - one request through host memory: cut into pieces, which the caller and those of
 * the crew that are idle take by turns.
 *
 *	read:	pread of a piece into a slot | copy to the GPU, while the next one is read
 *	write:	copies of some pieces into slots | pwrite of the first, while the others are copied
 *
 * What is the drive's, a large request of O_DIRECT or of a file that is not cached, needs no
 * second thread where io_uring is to be had: bounce_ring.c.
 *
 * Each thread has up to DEPTH slots under way. What it does with them it does in the order of
 * its pieces, so a caller that is alone does all of it in the order of the file.
 *
 * Pieces, and where a request ends: flow.h.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#define LOG_MODULE "cufio-bounce"
#include "bounce.h"
#include "bounce_copy.h"
#include "driver.h"
#include "errmap.h"
#include "flow.h"
#include "lane.h"
#include "log.h"
#include "os.h"
#include "probes.h"
#include "rings.h"
#include "rw.h"
#include "slots.h"

#define DEPTH 3				/* slots of a thread: read, queued, copied */

/* The slots that one thread has under way, the oldest at `first`. */
struct hand {
	struct {
		struct slot *slot;
		uint64_t piece;
	} at[DEPTH];
	unsigned int first, n;
};

/* -- the slots of a thread -- */

static void push(struct hand *h, struct slot *s, uint64_t i)
{
	unsigned int at = (h->first + h->n++) % DEPTH;

	h->at[at].slot = s;
	h->at[at].piece = i;
}

/* The oldest one; its copy is over, or failed, and that is noted. */
static struct slot *pop(struct flow *f, struct hand *h, uint64_t *i, bool *ok)
{
	struct slot *s = h->at[h->first].slot;

	*i = h->at[h->first].piece;
	h->first = (h->first + 1) % DEPTH;
	h->n--;
	*ok = copy_wait(f, s, *i);
	return s;
}

static struct slot *one_more(struct flow *f, const struct hand *h)
{
	return h->n < DEPTH ? slot_more(f, h->n) : NULL;
}

/* -- reads -- */

static void read_pieces(struct flow *f)
{
	struct hand h = { .n = 0 };
	struct slot *s;
	uint64_t i;
	bool ok;

	for (;;) {
		s = one_more(f, &h);
		if (!s && h.n)
			s = pop(f, &h, &i, &ok);
		if (!s)
			return;
		if (!flow_next(f, &i))
			break;
		if (piece_came(f, s, i, flow_fill(f, s->host, i)))
			push(&h, s, i);
		else
			slot_give(s);
	}
	slot_give(s);
	while (h.n)
		slot_give(pop(f, &h, &i, &ok));
}

/* -- writes -- */

static void write_pieces(struct flow *f)
{
	struct hand h = { .n = 0 };
	struct slot *s = NULL;
	bool more = true, ok;
	uint64_t i;

	for (;;) {
		while (s || (more && (s = one_more(f, &h)))) {
			more = more && flow_next(f, &i) && copy_queue(f, s, i, flow_bytes(f, i));
			if (more)
				push(&h, s, i);
			else
				slot_give(s);
			s = NULL;
		}
		if (!h.n)
			return;
		s = pop(f, &h, &i, &ok);
		PROBE4(cufio-internal-write-bb, f->rq->file->user_fd, flow_begin(f, i),
		       flow_bytes(f, i), ok ? 0 : -EIO);
		if (i < atomic_load(&f->stop))
			piece_write(f, s, i);
	}
}

/* -- a request -- */

static void run(struct crew_work *w)
{
	struct flow *f = (struct flow *)w;
	unsigned int n = flow_enter();

	/* one for each request and thread, until there are enough */
	if (f->n > 1 && !f->rq->deferred)
		slots_grow(f->rq->dev, (f->ring ? RING_DEPTH : DEPTH) * n);
	if (f->ring)
		bounce_by_ring(f);
	else if (f->rq->op == OGDS_OP_READ)
		read_pieces(f);
	else
		write_pieces(f);
	flow_leave();
}

ssize_t bounce_flow(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	struct flow f = { .work.run = run, .most = slot_bytes(), .helpers = UINT_MAX };
	ssize_t r;

	if (rq->by_drive && size >= RING_MIN && rq->file->may_ring)
		f.ring = ring_take();
	r = flow_run(&f, rq, off, size, va, done);
	if (f.ring)
		ring_give(f.ring);
	if (!rq->deferred)
		slots_trim();
	return r;
}

/* -- memory of a context that is not ours to keep anything in -- */

static ssize_t step(struct request *rq, struct lane *l, struct slot *s, int64_t off, size_t n,
		    uint64_t va, uint64_t request)
{
	bool read = rq->op == OGDS_OP_READ;
	ssize_t got = n;
	int r;

	if (read) {
		got = file_pread(rq->file, s->host, n, off, request);
		PROBE4(cufio-internal-read-bb, rq->file->user_fd, off, n, got);
		if (got <= 0)
			return got;
	}
	r = read ? gpu->to_gpu(&l->s, va, s->host, got) : gpu->to_host(&l->s, s->host, va, n);
	if (!r)
		r = gpu->sync(&l->s);
	if (!read)
		PROBE4(cufio-internal-write-bb, rq->file->user_fd, off, n, r);
	if (r)
		return copy_failed(rq, got, r);
	return read ? got : file_pwrite(rq->file, s->host, n, off);
}

ssize_t bounce_steps(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	struct lane *l;
	struct slot *s;
	ssize_t r = 0;
	size_t n;
	int err;

	*done = 0;
	l = lane_take(rq->mem.ctx, false, rq->deferred, &err);
	if (!l)
		return err;
	s = slot_take(rq->dev, SLOT_MAY_WAIT | (rq->deferred ? 0 : SLOT_MAY_MAKE), &err);
	r = s ? 0 : err;
	while (!r && *done < size) {
		if (driver_closing()) {
			r = ERR(DRIVER_CLOSING);
			break;
		}
		/* later steps begin at a multiple of 4 KiB, so that O_DIRECT serves them */
		n = slot_bytes() - (off + *done) % PLAN_BLOCK;
		if (n > size - *done)
			n = size - *done;
		r = step(rq, l, s, off + *done, n, va + *done, size);
		if (r <= 0)
			break;
		*done += r;
		/* fewer than asked: the file ended */
		r = (size_t)r < n ? 1 : 0;
	}
	if (s)
		slot_give(s);
	lane_give(l);
	return r < 0 ? r : (ssize_t)*done;
}
