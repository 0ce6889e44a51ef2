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
 * A request ends at its first piece that is short or fails: `stop`. What lies before it counts,
 * nothing behind it does, though some of it may have been moved.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define LOG_MODULE "cufio-bounce"
#include "bounce.h"
#include "crew.h"
#include "driver.h"
#include "errmap.h"
#include "lane.h"
#include "log.h"
#include "os.h"
#include "probes.h"
#include "rw.h"
#include "slots.h"

#define DEPTH 3				/* slots of a thread: read, queued, copied */
#define PIECE_MIN ((uint64_t)128 * 1024) /* less costs more by the call than it brings */
#define PIECE_STEP ((uint64_t)64 * 1024)
#define SPIN_NS 20000			/* then a wait for a copy sleeps */

/*
 * Final while it runs, but for the last part: next, the piece that nobody has taken; lock
 * guards stop (read without it), got and err.
 */
struct flow {
	struct crew_work work;
	struct request *rq;
	pthread_t caller;
	int64_t off;
	uint64_t size, va;
	int64_t start;		/* off, down to a whole block */
	uint64_t piece;		/* bytes, whole blocks; from `start` on */
	uint64_t n;		/* pieces */
	bool direct;		/* by O_DIRECT, as far as blocks are whole */

	_Atomic uint64_t next;
	pthread_mutex_t lock;
	_Atomic uint64_t stop;	/* the first piece that is not whole; n: none */
	uint64_t got;		/* bytes of that one */
	int err;		/* how it ended, or 0 */
};

/* Threads that are at a flow, and callers among them. */
static atomic_uint working, callers;

/* The slots that one thread has under way, the oldest at `first`. */
struct hand {
	struct {
		struct slot *slot;
		uint64_t piece;
	} at[DEPTH];
	unsigned int first, n;
};

/* -- pieces -- */

static int64_t begin_of(const struct flow *f, uint64_t i)
{
	return i ? f->start + (int64_t)(i * f->piece) : f->off;
}

static uint64_t bytes_of(const struct flow *f, uint64_t i)
{
	int64_t end = i + 1 < f->n ? begin_of(f, i + 1) : f->off + (int64_t)f->size;

	return end - begin_of(f, i);
}

/* Its memory lies in a slot as its bytes lie in their block. */
static size_t skip_of(const struct flow *f, uint64_t i)
{
	return begin_of(f, i) % PLAN_BLOCK;
}

static uint64_t va_of(const struct flow *f, uint64_t i)
{
	return f->va + (begin_of(f, i) - f->off);
}

/*
 * Piece i is not whole: `got` bytes of it, and an error or (the file ended) 0. An error of a
 * short piece, whose bytes did not arrive, comes after that.
 */
static void stop_at(struct flow *f, uint64_t i, uint64_t got, int err)
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

/* The next piece to be done; false: none. */
static bool next_piece(struct flow *f, uint64_t *i)
{
	*i = atomic_fetch_add(&f->next, 1);
	if (*i >= atomic_load(&f->stop))
		return false;
	if (!driver_closing())
		return true;
	stop_at(f, *i, 0, ERR(DRIVER_CLOSING));
	return false;
}

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
	char *host = s->host + skip_of(f, i);
	int r = f->rq->op == OGDS_OP_READ ? gpu->to_gpu(s->s, va_of(f, i), host, n) :
					    gpu->to_host(s->s, host, va_of(f, i), n);

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
		stop_at(f, *i, 0, cuda_failed(f->rq, bytes_of(f, *i), *r));
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
	if (!s && next_piece(f, &i))
		stop_at(f, i, 0, err);
	return s;
}

/* -- reads -- */

static ssize_t fill(const struct flow *f, struct slot *s, uint64_t i)
{
	size_t skip = skip_of(f, i), n = bytes_of(f, i), span;
	ssize_t got;

	if (f->direct) {
		span = (skip + n + PLAN_BLOCK - 1) / PLAN_BLOCK * PLAN_BLOCK;
		got = file_pread(f->rq->file, s->host, span, begin_of(f, i) - skip, f->size);
		if (got >= 0)
			got = (size_t)got <= skip ? 0 : got - skip < n ? got - skip : n;
	} else {
		got = file_pread(f->rq->file, s->host + skip, n, begin_of(f, i), f->size);
	}
	PROBE4(cufio-internal-read-bb, f->rq->file->user_fd, begin_of(f, i), n, got);
	return got;
}

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
		if (!next_piece(f, &i))
			break;
		got = fill(f, s, i);
		if (got < (ssize_t)bytes_of(f, i))
			stop_at(f, i, got < 0 ? 0 : got, got < 0 ? got : 0);
		r = got > 0 ? queue_copy(f, s, i, got) : 0;
		if (r)
			stop_at(f, i, 0, cuda_failed(f->rq, got, r));
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
	size_t skip = skip_of(f, i), left = bytes_of(f, i), done = 0, n;
	ssize_t r;

	for (; left; done += n, left -= n) {
		n = left;
		if (f->direct && (skip + done) % PLAN_BLOCK)
			n = PLAN_BLOCK - skip;
		else if (f->direct && left > PLAN_BLOCK)
			n = left / PLAN_BLOCK * PLAN_BLOCK;
		n = n < left ? n : left;
		r = file_pwrite(f->rq->file, s->host + skip + done, n, begin_of(f, i) + done);
		if (r == (ssize_t)n)
			continue;
		stop_at(f, i, done + (r > 0 ? r : 0), r < 0 ? r : -EIO);
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
			more = more && next_piece(f, &i);
			r = more ? queue_copy(f, s, i, bytes_of(f, i)) : 0;
			if (r)
				stop_at(f, i, 0, cuda_failed(f->rq, bytes_of(f, i), r));
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
		PROBE4(cufio-internal-write-bb, f->rq->file->user_fd, begin_of(f, i),
		       bytes_of(f, i), r);
		if (i < atomic_load(&f->stop))
			drain(f, s, i);
	}
}

/* -- a request -- */

static void run(struct crew_work *w)
{
	struct flow *f = (struct flow *)w;
	unsigned int n = atomic_fetch_add(&working, 1) + 1;

	/* one for each request and thread, until there are enough */
	if (f->n > 1 && !f->rq->deferred)
		slots_grow(f->rq->dev, DEPTH * n);
	if (f->rq->op == OGDS_OP_READ)
		read_pieces(f);
	else
		write_pieces(f);
	atomic_fetch_sub(&working, 1);
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
static uint64_t piece_of(uint64_t size, unsigned int threads)
{
	uint64_t n = size / (threads > 1 ? threads * 2 : 4);

	n = (n + PIECE_STEP - 1) / PIECE_STEP * PIECE_STEP;
	n = n < PIECE_MIN ? PIECE_MIN : n;
	return n < slot_bytes() ? n : slot_bytes();
}

ssize_t bounce_flow(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	struct flow f = {
		.work.run = run,
		.rq = rq,
		.caller = pthread_self(),
		.off = off,
		.size = size,
		.va = va,
		.start = off - off % PLAN_BLOCK,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	unsigned int helpers = 0, all = atomic_fetch_add(&callers, 1) + 1;
	uint64_t stop;

	f.direct = file_prefers_direct(rq->file);
	/* the crew is for all who are at it, and a caller is a thread, too */
	if (size > PIECE_MIN && can_share(rq, off, size, f.direct))
		helpers = (crew_size() + 1) / all;
	helpers -= helpers ? 1 : 0;
	f.piece = rq->file->user ? slot_bytes() : piece_of(size, helpers + 1);
	f.n = (off - f.start + size + f.piece - 1) / f.piece;
	atomic_init(&f.stop, f.n);
	if (helpers >= f.n)
		helpers = f.n ? f.n - 1 : 0;
	crew_run(&f.work, helpers);
	atomic_fetch_sub(&callers, 1);
	pthread_mutex_destroy(&f.lock);
	if (!rq->deferred)
		slots_trim();
	stop = atomic_load(&f.stop);
	*done = stop == f.n ? size : begin_of(&f, stop) - off + f.got;
	return stop < f.n && f.err ? f.err : (ssize_t)*done;
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
