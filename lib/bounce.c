// SPDX-License-Identifier: MIT
/*
 * bounce.c - one request through host memory: cut into pieces, which the caller and those of
 * the crew that are idle take by turns.
 *
 *	read:	pread of a piece into a slot | copy to the GPU, while the next one is read
 *	write:	copies of some pieces into slots | pwrite of the first, while the others are copied
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
#include "driver.h"
#include "errmap.h"
#include "flow.h"
#include "lane.h"
#include "log.h"
#include "os.h"
#include "probes.h"
#include "rw.h"
#include "slots.h"

#define DEPTH 3				/* slots of a thread: read, queued, copied */
#define SPIN_NS 20000			/* then a wait for a copy sleeps */

/* The slots that one thread has under way, the oldest at `first`. */
struct hand {
	struct {
		struct slot *slot;
		uint64_t piece;
	} at[DEPTH];
	unsigned int first, n;
};

/* -- copies -- */

static int cuda_failed(const struct request *rq, size_t n, int r)
{
	log_error("%zu bytes between host and GPU %s: %s: check the GPU with nvidia-smi", n,
		  rq->dev->pci, gpu->error(r));
	return err_cuda(r);
}

/* Queues the copy of n bytes of piece i and marks its end. 0 or CUDA's error: nothing is queued. */
static int queue_copy(const struct flow *f, struct slot *s, uint64_t i, size_t n)
{
	char *host = s->host + flow_skip(f, i);
	int r = f->rq->op == OGDS_OP_READ ? gpu->to_gpu(s->s, flow_va(f, i), host, n) :
					    gpu->to_host(s->s, host, flow_va(f, i), n);

	if (r)
		return r;
	r = gpu->event_record(&s->mark, s->s);
	if (r)
		gpu->sync(s->s);
	return r;
}

/* Until the last copy of the slot is over. */
static int wait_copy(struct slot *s)
{
	uint64_t until = 0;
	bool done;
	int r;

	for (;;) {
		r = gpu->event_query(&s->mark, &done);
		if (r || done)
			return r;
		if (!until)
			until = os->now_ns() + SPIN_NS;
		else if (os->now_ns() > until)
			return gpu->event_sync(&s->mark);
	}
}

/* -- the slots of a thread -- */

static void push(struct hand *h, struct slot *s, uint64_t i)
{
	unsigned int at = (h->first + h->n++) % DEPTH;

	h->at[at].slot = s;
	h->at[at].piece = i;
}

/* The oldest one; its copy is done (*r is 0) or failed, and that is noted. */
static struct slot *pop(struct flow *f, struct hand *h, uint64_t *i, int *r)
{
	struct slot *s = h->at[h->first].slot;

	*i = h->at[h->first].piece;
	h->first = (h->first + 1) % DEPTH;
	h->n--;
	*r = wait_copy(s);
	if (*r)
		flow_stop(f, *i, 0, cuda_failed(f->rq, flow_bytes(f, *i), *r));
	return s;
}

/* One more slot, or NULL. Who has none yet may wait for one, if it is he that must go on. */
static struct slot *one_more(struct flow *f, const struct hand *h)
{
	unsigned int may = f->rq->deferred ? 0 : SLOT_MAY_MAKE;
	struct slot *s;
	uint64_t i;
	int err;

	if (h->n == DEPTH || atomic_load(&f->next) >= atomic_load(&f->stop))
		return NULL;
	if (h->n)
		return slot_take(f->rq->dev, 0, &err);
	if (!pthread_equal(pthread_self(), f->caller))
		return slot_take(f->rq->dev, may, &err);
	s = slot_take(f->rq->dev, may | SLOT_MAY_WAIT, &err);
	if (!s && flow_next(f, &i))
		flow_stop(f, i, 0, err);
	return s;
}

/* -- reads -- */

static void read_pieces(struct flow *f)
{
	struct hand h = { .n = 0 };
	struct slot *s;
	uint64_t i;
	ssize_t got;
	int r;

	for (;;) {
		s = one_more(f, &h);
		if (!s && h.n)
			s = pop(f, &h, &i, &r);
		if (!s)
			return;
		if (!flow_next(f, &i))
			break;
		got = flow_fill(f, s->host, i);
		if (got < (ssize_t)flow_bytes(f, i))
			flow_stop(f, i, got < 0 ? 0 : got, got < 0 ? got : 0);
		r = got > 0 ? queue_copy(f, s, i, got) : 0;
		if (r)
			flow_stop(f, i, 0, cuda_failed(f->rq, got, r));
		if (got > 0 && !r)
			push(&h, s, i);
		else
			slot_give(s);
	}
	slot_give(s);
	while (h.n)
		slot_give(pop(f, &h, &i, &r));
}

/* -- writes -- */

/* Only the bytes asked for; whole blocks of them apart, where O_DIRECT takes these. */
static void drain(struct flow *f, struct slot *s, uint64_t i)
{
	size_t skip = flow_skip(f, i), left = flow_bytes(f, i), done = 0, n;
	ssize_t r;

	for (; left; done += n, left -= n) {
		n = left;
		if (f->direct && (skip + done) % PLAN_BLOCK)
			n = PLAN_BLOCK - skip;
		else if (f->direct && left > PLAN_BLOCK)
			n = left / PLAN_BLOCK * PLAN_BLOCK;
		n = n < left ? n : left;
		r = file_pwrite(f->rq->file, s->host + skip + done, n, flow_begin(f, i) + done);
		if (r == (ssize_t)n)
			continue;
		flow_stop(f, i, done + (r > 0 ? r : 0), r < 0 ? r : -EIO);
		return;
	}
}

static void write_pieces(struct flow *f)
{
	struct hand h = { .n = 0 };
	struct slot *s = NULL;
	bool more = true;
	uint64_t i;
	int r;

	for (;;) {
		while (s || (more && (s = one_more(f, &h)))) {
			more = more && flow_next(f, &i);
			r = more ? queue_copy(f, s, i, flow_bytes(f, i)) : 0;
			if (r)
				flow_stop(f, i, 0, cuda_failed(f->rq, flow_bytes(f, i), r));
			more = more && !r;
			if (more)
				push(&h, s, i);
			else
				slot_give(s);
			s = NULL;
		}
		if (!h.n)
			return;
		s = pop(f, &h, &i, &r);
		PROBE4(cufio-internal-write-bb, f->rq->file->user_fd, flow_begin(f, i),
		       flow_bytes(f, i), r);
		if (i < atomic_load(&f->stop))
			drain(f, s, i);
	}
}

/* -- a request -- */

static void run(struct crew_work *w)
{
	struct flow *f = (struct flow *)w;
	unsigned int n = flow_enter();

	/* one for each request and thread, until there are enough */
	if (f->n > 1 && !f->rq->deferred)
		slots_grow(f->rq->dev, DEPTH * n);
	if (f->rq->op == OGDS_OP_READ)
		read_pieces(f);
	else
		write_pieces(f);
	flow_leave();
}

ssize_t bounce_flow(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	struct flow f = { .work.run = run, .most = slot_bytes(), .helpers = UINT_MAX };
	ssize_t r = flow_run(&f, rq, off, size, va, done);

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
		return cuda_failed(rq, got, r);
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
