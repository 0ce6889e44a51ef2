/* SPDX-License-Identifier: MIT */
/* bounce_copy.h - the parts of a piece's way through a slot: for bounce.c and bounce_ring.c. */
#ifndef BOUNCE_COPY_H
#define BOUNCE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow.h"
#include "slots.h"

/* Logs it: CUDA's error r as ours. */
int copy_failed(const struct request *rq, size_t n, int r);

/*
 * One more slot for a thread that holds others, or none yet. NULL: there is none, or nothing to be
 * done. Who holds none may wait for one, if it is he that must go on.
 */
struct slot *slot_more(struct flow *f, bool holds);

/* Queues the copy of n bytes of piece i and marks its end. False: that failed, and is noted. */
bool copy_queue(struct flow *f, struct slot *s, uint64_t i, size_t n);
/* The copy is over, or failed; nobody waits. */
bool copy_over(struct slot *s);
/* Until it is over. False: it failed, and that is noted. */
bool copy_wait(struct flow *f, struct slot *s, uint64_t i);

/*
 * A piece of which `got` bytes came into its slot, or an error: notes what is missing, and queues
 * the copy. False: there is none, the slot is the caller's.
 */
bool piece_came(struct flow *f, struct slot *s, uint64_t i, ssize_t got);

/* The bytes of a slot into the file; whole blocks apart, where O_DIRECT takes them. */
void piece_write(struct flow *f, struct slot *s, uint64_t i);

/* All pieces, by this thread and f->ring. */
void bounce_by_ring(struct flow *f);

#endif /* BOUNCE_COPY_H */
