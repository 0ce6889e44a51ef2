/* SPDX-License-Identifier: MIT */
/*
 * ranges.h - a set of address ranges: who covers these bytes? Ranges may overlap and hold
 * each other; no two begin at one address.
 *
 * A sorted array in chunks of at most RANGES_CHUNK, with the highest end of each chunk beside
 * it: a look-up is two binary searches in a few cache lines and (mostly) one comparison, an
 * insertion moves one chunk. Where many ranges lie inside one another and none of the near
 * ones covers, a look-up passes whole chunks by their highest end: it costs about n / 64
 * comparisons at the worst. No lock: the caller has one.
 */
#ifndef RANGES_H
#define RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGES_CHUNK 128

struct ranges_chunk;

struct ranges_head {
	uint64_t first;		/* the lowest start in the chunk */
	uint64_t reach;		/* the highest end in the chunk */
	struct ranges_chunk *chunk;	/* never an empty one */
};

/* All zero: empty. */
struct ranges {
	struct ranges_head *head;	/* by `first` */
	size_t heads, room;
	size_t n;			/* ranges in all */
};

/* 0, -EEXIST: one begins at start, -ENOMEM. start < end. */
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
