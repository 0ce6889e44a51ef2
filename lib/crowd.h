/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - address ranges in order: what ranges.h keeps where very many lie at one place.
 *
 * A sorted array in chunks of at most CROWD_CHUNK, with the highest end of each chunk beside
 * it: a look-up is two binary searches in a few cache lines and (mostly) one comparison, an
 * insertion moves one chunk. Where none of the near ones covers, a look-up passes whole chunks
 * by their highest end: it costs about n / 64 comparisons at the worst. No two begin at one
 * address, which the caller sees to. No lock: the caller has one.
 */
#ifndef CROWD_H
#define CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CROWD_CHUNK 128

struct range {
	uint64_t start, end;	/* start < end */
	void *what;
};

struct crowd_chunk;

struct crowd_head {
	uint64_t first;		/* the lowest start in the chunk */
	uint64_t reach;		/* the highest end in the chunk */
	struct crowd_chunk *chunk;	/* never an empty one */
};

/* All zero: empty, and without memory. */
struct crowd {
	struct crowd_head *head;	/* by `first` */
	size_t heads, room;
	size_t n;			/* ranges in all */
};

/* 0, or -ENOMEM and all is as it was. */
int crowd_add(struct crowd *w, const struct range *range);

/* What begins at start, copied to *out; false: nothing does. _any: one of them. */
bool crowd_at(const struct crowd *w, uint64_t start, struct range *out);
bool crowd_any(const struct crowd *w, struct range *out);

/* What begins at start is taken out, and with the last one all memory is given back. */
void crowd_take(struct crowd *w, uint64_t start);

/*
 * What holds all of va .. va + size, of several that which begins last, copied to *out; false:
 * nothing does. *touched becomes true when something holds the byte at va, else it stays.
 */
bool crowd_cover(const struct crowd *w, uint64_t va, uint64_t size, bool *touched,
		 struct range *out);

#endif /* CROWD_H */
