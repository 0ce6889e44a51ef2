/* SPDX-License-Identifier: MIT */
/*
 * flow.h - one request cut into pieces that several threads take by turns: the caller, and
 * those of the crew that are idle.
 *
 * A request ends at its first piece that is short or fails: `stop`. What lies before it counts,
 * nothing behind it does, though some of it may have been moved.
 */
#ifndef FLOW_H
#define FLOW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "crew.h"
#include "rw.h"

/*
 * Who begins one sets work.run, most, helpers and ring. Final while it runs, but for the last part:
 * next, the piece that nobody has taken; lock guards stop (read without it), got and err.
 */
struct flow {
	struct crew_work work;	/* first: run() casts it back */
	uint64_t most;		/* bytes of a piece, whole blocks */
	unsigned int helpers;	/* at most */
	struct os_ring *ring;	/* the caller alone does it, by this; NULL: none */
	unsigned int depth;	/* pieces of his at the ring at a time */

	struct request *rq;
	pthread_t caller;
	int64_t off;
	uint64_t size, va;
	int64_t start;		/* off, down to a whole block */
	uint64_t piece;		/* bytes, whole blocks; from `start` on */
	uint64_t n;		/* pieces */
	bool direct;		/* by O_DIRECT, as far as blocks are whole */
	bool in_order;		/* pieces are written one after another: the file grows */

	_Atomic uint64_t next;
	pthread_mutex_t lock;
	_Atomic uint64_t stop;	/* the first piece that is not whole; n: none */
	uint64_t got;		/* bytes of that one */
	int err;		/* how it ended, or 0 */
};

/* As run() of a route (route.h): the request in pieces, by work.run in several threads. */
ssize_t flow_run(struct flow *f, struct request *rq, int64_t off, uint64_t size, uint64_t va,
		 uint64_t *done);

/* -- for work.run -- */

/* The next piece to be done; false: none. */
bool flow_next(struct flow *f, uint64_t *i);

/*
 * Piece i is not whole: `got` bytes of it, and an error or (the file ended) 0. An error of a
 * short piece, whose bytes did not arrive, comes after that.
 */
void flow_stop(struct flow *f, uint64_t i, uint64_t got, int err);

/* A thread begins, or ends, its part: the number of those that are at any flow. */
unsigned int flow_enter(void);
void flow_leave(void);

static inline int64_t flow_begin(const struct flow *f, uint64_t i)
{
	return i ? f->start + (int64_t)(i * f->piece) : f->off;
}

static inline uint64_t flow_bytes(const struct flow *f, uint64_t i)
{
	int64_t end = i + 1 < f->n ? flow_begin(f, i + 1) : f->off + (int64_t)f->size;

	return end - flow_begin(f, i);
}

/* Its memory lies in a slot as its bytes lie in their block. */
static inline size_t flow_skip(const struct flow *f, uint64_t i)
{
	return flow_begin(f, i) % PLAN_BLOCK;
}

static inline uint64_t flow_va(const struct flow *f, uint64_t i)
{
	return f->va + (flow_begin(f, i) - f->off);
}

/* Piece i of a file into host memory `slot`, f->most bytes, where flow_skip() says. */
ssize_t flow_fill(const struct flow *f, char *slot, uint64_t i);

#endif /* FLOW_H */
