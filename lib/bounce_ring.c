// SPDX-License-Identifier: MIT
/*
 * bounce_ring.c - one request through host memory by one thread: what the drive does goes on by
 * itself (io_uring), as many pieces of it as the drive is quick with.
 *
 *	read:	IDLE --begun--> DRIVE --over, copy queued--> GPU --over--> IDLE
 *	write:	IDLE --copy queued--> GPU --over, begun--> DRIVE --over--> IDLE
 *
 * A part holds a slot in every state but IDLE. Copies are looked after in the order in which they
 * were queued. What the ring cannot do, or did not do whole, this thread does by plain calls, which
 * also find the error: an alignment of more than 4 KiB, the end of a file, a drive that fails.
 */
#include <errno.h>
#include <stdatomic.h>

#include "bounce_copy.h"
#include "os.h"
#include "probes.h"
#include "rings.h"
#include "rw.h"

struct part {
	struct slot *slot;
	uint64_t piece;
	struct part *next;	/* of the idle ones, or of those at the GPU */
};

/* Of one request and thread. */
struct deck {
	struct flow *f;
	struct part part[RING_DEPTH];
	struct part *idle;
	struct part *gpu, **gpu_last;
	unsigned int at_drive, at_gpu;
	bool no_more;		/* nothing is begun any more */
};

static void set_idle(struct deck *d, struct part *p)
{
	slot_give(p->slot);
	p->next = d->idle;
	d->idle = p;
}

static void push_gpu(struct deck *d, struct part *p)
{
	p->next = NULL;
	*d->gpu_last = p;
	d->gpu_last = &p->next;
	d->at_gpu++;
}

/* The slot of p begins with the block in which the piece begins. */
static size_t span(const struct flow *f, uint64_t i)
{
	return (flow_skip(f, i) + flow_bytes(f, i) + PLAN_BLOCK - 1) / PLAN_BLOCK * PLAN_BLOCK;
}

static bool begin_at_drive(struct deck *d, struct part *p)
{
	struct flow *f = d->f;
	const struct os_io io = {
		.fd = f->rq->file->fd_direct,
		.write = f->rq->op == OGDS_OP_WRITE,
		.buf = p->slot->host,
		.size = span(f, p->piece),
		.off = flow_begin(f, p->piece) - flow_skip(f, p->piece),
		.tag = p,
	};

	if (os->ring_begin(f->ring, &io))
		return false;
	d->at_drive++;
	return true;
}

/* -- reads -- */

static void came(struct deck *d, struct part *p, ssize_t got)
{
	struct flow *f = d->f;
	uint64_t i = p->piece;

	PROBE4(cufio-internal-read-bb, f->rq->file->user_fd, flow_begin(f, i), flow_bytes(f, i),
	       got);
	if (piece_came(f, p->slot, i, got))
		push_gpu(d, p);
	else
		set_idle(d, p);
}

static void begin_read(struct deck *d, struct part *p)
{
	struct flow *f = d->f;

	if (!file_piece_by_drive(f->rq->file, flow_bytes(f, p->piece), flow_begin(f, p->piece)) ||
	    !begin_at_drive(d, p))
		came(d, p, flow_fill(f, p->slot->host, p->piece));
}

static void end_read(struct deck *d, struct part *p, ssize_t got)
{
	struct flow *f = d->f;
	size_t n = flow_bytes(f, p->piece);

	if (got >= (ssize_t)(flow_skip(f, p->piece) + n))
		got = n;
	else
		got = flow_fill(f, p->slot->host, p->piece);
	came(d, p, got);
}

/* -- writes -- */

static void begin_write(struct deck *d, struct part *p, bool ok)
{
	struct flow *f = d->f;
	uint64_t i = p->piece;
	bool whole = !flow_skip(f, i) && !(flow_bytes(f, i) % PLAN_BLOCK);

	PROBE4(cufio-internal-write-bb, f->rq->file->user_fd, flow_begin(f, i), flow_bytes(f, i),
	       ok ? 0 : -EIO);
	if (i >= atomic_load(&f->stop)) {
		set_idle(d, p);
	} else if (!whole || !begin_at_drive(d, p)) {
		piece_write(f, p->slot, i);
		set_idle(d, p);
	}
}

static void end_write(struct deck *d, struct part *p, ssize_t done)
{
	struct flow *f = d->f;

	if (done != (ssize_t)flow_bytes(f, p->piece) && p->piece < atomic_load(&f->stop))
		piece_write(f, p->slot, p->piece);
	set_idle(d, p);
}

/* -- both -- */

/* As many more as there is room for. */
static void begin(struct deck *d)
{
	struct flow *f = d->f;
	struct part *p;

	while (!d->no_more && d->idle) {
		p = d->idle;
		p->slot = slot_more(f, d->at_drive || d->at_gpu);
		if (!p->slot)
			return;
		d->idle = p->next;
		if (!flow_next(f, &p->piece)) {
			d->no_more = true;
			set_idle(d, p);
		} else if (f->rq->op == OGDS_OP_READ) {
			begin_read(d, p);
		} else if (copy_queue(f, p->slot, p->piece, flow_bytes(f, p->piece))) {
			push_gpu(d, p);
		} else {
			d->no_more = true;
			set_idle(d, p);
		}
	}
}

/* The oldest copy is over, or waited for; false: neither. */
static bool step_gpu(struct deck *d, bool wait)
{
	struct part *p = d->gpu;
	bool ok;

	if (!p || (!wait && !copy_over(p->slot)))
		return false;
	/* its write has to wait for the one before */
	if (d->f->in_order && d->at_drive)
		return false;
	ok = copy_wait(d->f, p->slot, p->piece);
	d->gpu = p->next;
	if (!d->gpu)
		d->gpu_last = &d->gpu;
	d->at_gpu--;
	if (d->f->rq->op == OGDS_OP_READ)
		set_idle(d, p);
	else
		begin_write(d, p, ok);
	return true;
}

/* One is over that the drive did; waits for it. */
static void step_drive(struct deck *d)
{
	ssize_t result;
	struct part *p = os->ring_next(d->f->ring, &result);

	d->at_drive--;
	if (d->f->rq->op == OGDS_OP_READ)
		end_read(d, p, result);
	else
		end_write(d, p, result);
}

void bounce_by_ring(struct flow *f)
{
	struct deck d = { .f = f };
	unsigned int i;

	d.gpu_last = &d.gpu;
	for (i = f->depth; i-- > 0;) {
		d.part[i].next = d.idle;
		d.idle = &d.part[i];
	}
	for (;;) {
		begin(&d);
		if (step_gpu(&d, !d.at_drive))
			continue;
		if (!d.at_drive)
			return;
		step_drive(&d);
	}
}
