/* SPDX-License-Identifier: MIT */
/* pieces.h - a plan is carried out; for rw.c alone. */
#ifndef PIECES_H
#define PIECES_H

#include <stdint.h>
#include <sys/types.h>

struct plan;
struct request;

/*
 * The pieces of *p, the first at `off` of the file and at `va`. Bytes, fewer than planned at the
 * end of the file or after an error that the next request meets; or an error with nothing moved.
 * rq->rep gets what each route moved. Blocks.
 */
ssize_t pieces_run(struct request *rq, const struct plan *p, int64_t off, uint64_t va);

/*
 * `size` bytes at `off` of the file and at `va` have gone by a route, which ended with r: n of
 * them, for `reason` when it is no direct one. rq->rep gets them.
 */
void pieces_note(struct request *rq, unsigned int route, int64_t off, uint64_t size, uint64_t va,
		 ssize_t r, uint64_t n, unsigned int reason);

#endif /* PIECES_H */
