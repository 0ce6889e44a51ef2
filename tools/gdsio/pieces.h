/* SPDX-License-Identifier: MIT */
/* pieces.h - which bytes of a data set a thread moves, and in which order. */
#ifndef GDSIO_PIECES_H
#define GDSIO_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* I/O sizes in bytes: min, min + step, ... up to max, then min again. step 0: only min. */
struct gdsio_sizes {
	uint64_t min;
	uint64_t max;
	uint64_t step;
};

/* A walk through [start, start + len) of a file; one thread's. */
struct gdsio_cursor {
	const struct gdsio_sizes *io;
	uint64_t start;
	uint64_t len;
	uint64_t done;		/* bytes handed out in this round */
	uint64_t size;		/* next one, in order */
	uint64_t rng;
	uint64_t unit;		/* random pieces begin at multiples of it; the smallest size */
	bool random;
};

/*
 * The part of thread `index` of `threads` in `total` bytes: parts follow each other and
 * cover all. Where each thread has a whole I/O, parts are multiples of `unit` (but for the
 * rest at the end); else of 4096; else of 1.
 */
void gdsio_slice(uint64_t total, uint64_t unit, unsigned int threads, unsigned int index,
		 uint64_t *off, uint64_t *len);

void gdsio_cursor_init(struct gdsio_cursor *c, const struct gdsio_sizes *io, uint64_t start,
		       uint64_t len, bool random, uint64_t seed);

/* Numbers that look random; any seed is a good one. */
uint64_t gdsio_random(uint64_t *state);

/*
 * The next piece; false when as many bytes as the part has were handed out. The same seed
 * gives the same pieces.
 */
bool gdsio_cursor_next(struct gdsio_cursor *c, off_t *off, size_t *size);

/* Another round; random pieces go on where they were. */
void gdsio_cursor_again(struct gdsio_cursor *c);

#endif /* GDSIO_PIECES_H */
