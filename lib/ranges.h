/* SPDX-License-Identifier: MIT */
/*
 * ranges.h - a set of address ranges: who covers these bytes? Ranges may overlap and hold
 * each other; no two begin at one address.
 *
 * A look-up costs the same for a hundred ranges and for a hundred thousand. A range of length L
 * is of class k, the least with L <= 2^k; cut at multiples of 2^k, addresses are blocks, and it
 * lies in one block of its class or in two. A hash table holds it under each of them. Who looks
 * for an address asks for one block of each class that there are ranges of, a cache line or two
 * each: in a block there are at most three ranges that do not overlap.
 *
 * Where more than RANGES_SAME ranges of one class share a block, they are kept in order
 * (crowd.h) and the block's slot leads there: what lies in one another, or begins byte by
 * byte, costs a search among its like, and nobody else.
 *
 * Some 64 to 700 bytes of memory a range; the table shrinks as well. No lock: the caller has
 * one.
 */
#ifndef RANGES_H
#define RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crowd.h"

#define RANGES_SAME 8

struct ranges_slot {
	uint64_t key;		/* class and block; 0: free */
	struct range range;	/* end 0: `what` is the block's struct crowd */
};

/* All zero: empty. */
struct ranges {
	struct ranges_slot *slot;
	size_t room;		/* slots, a power of 2 or 0; at most half of them are taken */
	size_t used;		/* that are taken */
	unsigned int shift;	/* the upper 64 - shift bits of a hash are its slot */
	size_t n;		/* ranges in all */
	uint64_t classes;	/* bit k: there are some of class k */
	size_t of_class[64];
	size_t left;		/* from this slot on all are free; for ranges_drain */
};

/* 0, -EEXIST: one begins at start, -ENOMEM and all is as it was. start < end. */
int ranges_add(struct ranges *r, uint64_t start, uint64_t end, void *what);

/* What begins at start; NULL: nothing. _take: and it is taken out. */
void *ranges_at(const struct ranges *r, uint64_t start);
void *ranges_take(struct ranges *r, uint64_t start);

/*
 * What holds all of va .. va + size, of several that which begins last; NULL: nothing does.
 * *touched: something holds the byte at va.
 */
void *ranges_cover(const struct ranges *r, uint64_t va, uint64_t size, bool *touched);

/* Any of them, taken out; NULL, and all memory given back: there is none. */
void *ranges_drain(struct ranges *r);

#endif /* RANGES_H */
