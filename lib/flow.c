// SPDX-License-Identifier: MIT
/* flow.c - one request in pieces. */
#include <stdatomic.h>

#include "driver.h"
#include "errmap.h"
#include "flow.h"
#include "os.h"
#include "probes.h"
#include "rings.h"

#define PIECE_MIN ((uint64_t)128 * 1024) /* less costs more by the call than it brings */
#define PIECE_STEP ((uint64_t)64 * 1024)
#define USER_PIECE ((uint64_t)1024 * 1024)
#define RING_PIECE ((uint64_t)1024 * 1024) /* of one of several callers */
#define RING_LEAST 3		/* two at the drive while one is copied */

/* Threads that are at a flow, and callers among them. */
static atomic_uint working, callers;

unsigned int flow_enter(void)
{
	return atomic_fetch_add(&working, 1) + 1;
}

void flow_leave(void)
{
	atomic_fetch_sub(&working, 1);
}

void flow_stop(struct flow *f, uint64_t i, uint64_t got, int err)
{
	uint64_t stop;

	pthread_mutex_lock(&f->lock);
	stop = atomic_load(&f->stop);
	if (i < stop || (i == stop && err)) {
		atomic_store(&f->stop, i);
		f->got = got;
		f->err = err;
	}
	pthread_mutex_unlock(&f->lock);
}

bool flow_next(struct flow *f, uint64_t *i)
{
	*i = atomic_fetch_add(&f->next, 1);
	if (*i >= atomic_load(&f->stop))
		return false;
	if (!driver_closing())
		return true;
	flow_stop(f, *i, 0, ERR(DRIVER_CLOSING));
	return false;
}

ssize_t flow_fill(const struct flow *f, char *slot, uint64_t i)
{
	size_t skip = flow_skip(f, i), n = flow_bytes(f, i), span;
	ssize_t got;

	if (f->direct) {
		span = (skip + n + PLAN_BLOCK - 1) / PLAN_BLOCK * PLAN_BLOCK;
		got = file_pread(f->rq->file, slot, span, flow_begin(f, i) - skip,
				 f->size);
		if (got >= 0)
			got = (size_t)got <= skip ? 0 : got - skip < n ? got - skip : n;
	} else {
		got = file_pread(f->rq->file, slot + skip, n, flow_begin(f, i), f->size);
	}
	PROBE4(cufio-internal-read-bb, f->rq->file->user_fd, flow_begin(f, i), n, got);
	return got;
}

/*
 * May several threads do it? Writers into the page cache would only wait for one another, at the
 * lock of the file; and a file grows in order, so that none that fails leaves a hole behind.
 */
static bool can_share(const struct request *rq, int64_t off, uint64_t size, bool direct)
{
	if (rq->file->user)
		return false;
	return rq->op == OGDS_OP_READ || (direct && off + (int64_t)size <= file_size(rq->file));
}

/* Bytes of a piece, so that each of the threads has some and nobody waits long for the last. */
static uint64_t piece_of(uint64_t size, unsigned int threads, uint64_t most)
{
	uint64_t n = size / (threads > 1 ? threads * 2 : 4);

	n = (n + PIECE_STEP - 1) / PIECE_STEP * PIECE_STEP;
	n = n < PIECE_MIN ? PIECE_MIN : n;
	return n < most ? n : most;
}

/*
 * Pieces of a caller that is alone at the drives are large and many; callers beside one another
 * bring the depth themselves, and too much of it costs them.
 */
static uint64_t ring_piece(struct flow *f, uint64_t size, unsigned int all)
{
	uint64_t parts = size <= 1 << 20 ? 2 : size <= 4 << 20 ? 4 : 8;
	uint64_t most = all > 1 && f->most > RING_PIECE ? RING_PIECE : f->most;
	uint64_t n = (size / parts + PIECE_STEP - 1) / PIECE_STEP * PIECE_STEP;

	f->depth = RING_DEPTH / all > RING_LEAST ? RING_DEPTH / all : RING_LEAST;
	n = n < PIECE_MIN ? PIECE_MIN : n;
	return n < most ? n : most;
}

/* What the functions of a user-space file system are called with. */
static uint64_t user_piece(uint64_t most)
{
	return most < USER_PIECE ? most : USER_PIECE;
}

ssize_t flow_run(struct flow *f, struct request *rq, int64_t off, uint64_t size, uint64_t va,
		 uint64_t *done)
{
	unsigned int helpers = 0, all = atomic_fetch_add(&callers, 1) + 1;
	/* a part of it would cost the drive and the processor as much, and bring nothing */
	bool lone = rq->by_drive && size < RING_MIN;
	uint64_t stop;

	f->rq = rq;
	f->caller = pthread_self();
	f->off = off;
	f->size = size;
	f->va = va;
	f->start = off - off % PLAN_BLOCK;
	f->direct = file_prefers_direct(rq->file) || f->ring;
	f->in_order = !can_share(rq, off, size, f->direct);
	/* nobody spins while a drive is at it */
	f->work.slow = f->direct || rq->by_drive;
	/* the crew is for all who are at it, and a caller is a thread, too */
	if (size > PIECE_MIN && !f->in_order && !f->ring && !lone)
		helpers = (crew_size() + 1) / all;
	helpers -= helpers ? 1 : 0;
	helpers = helpers < f->helpers ? helpers : f->helpers;
	if (rq->file->user)
		f->piece = user_piece(f->most);
	else if (f->ring)
		f->piece = ring_piece(f, size, all);
	else if (lone)
		f->piece = f->most;
	else
		f->piece = piece_of(size, helpers + 1, f->most);
	f->n = (off - f->start + size + f->piece - 1) / f->piece;
	f->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	atomic_init(&f->next, 0);
	atomic_init(&f->stop, f->n);
	f->got = 0;
	f->err = 0;
	if (helpers >= f->n)
		helpers = f->n ? f->n - 1 : 0;
	crew_run(&f->work, helpers);
	atomic_fetch_sub(&callers, 1);
	pthread_mutex_destroy(&f->lock);
	stop = atomic_load(&f->stop);
	*done = stop == f->n ? size : flow_begin(f, stop) - off + f->got;
	return stop < f->n && f->err ? f->err : (ssize_t)*done;
}
