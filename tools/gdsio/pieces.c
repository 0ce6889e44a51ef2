// SPDX-License-Identifier: MIT
/* pieces.c - the data set among threads, and one thread's walk through its part. */
#include "pieces.h"

#define BLOCK 4096

static uint64_t boundary(uint64_t total, uint64_t chunk, unsigned int threads, unsigned int index)
{
	return index == threads ? total : total / chunk * index / threads * chunk;
}

void gdsio_slice(uint64_t total, uint64_t unit, unsigned int threads, unsigned int index,
		 uint64_t *off, uint64_t *len)
{
	uint64_t chunk = unit;

	if (total / chunk < threads)
		chunk = total / BLOCK < threads ? 1 : BLOCK;
	*off = boundary(total, chunk, threads, index);
	*len = boundary(total, chunk, threads, index + 1) - *off;
}

void gdsio_cursor_init(struct gdsio_cursor *c, const struct gdsio_sizes *io, uint64_t start,
		       uint64_t len, bool random, uint64_t seed)
{
	*c = (struct gdsio_cursor){
		.io = io,
		.start = start,
		.len = len,
		.size = io->min,
		.rng = seed,
		.unit = io->min,
		.random = random,
	};
}

/* splitmix64 */
uint64_t gdsio_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static uint64_t next_size(struct gdsio_cursor *c)
{
	const struct gdsio_sizes *io = c->io;
	uint64_t size = c->size;

	if (!io->step)
		return io->min;
	if (c->random)
		return io->min + io->step *
		       (gdsio_random(&c->rng) % ((io->max - io->min) / io->step + 1));
	c->size = io->max - size >= io->step ? size + io->step : io->min;
	return size;
}

bool gdsio_cursor_next(struct gdsio_cursor *c, off_t *off, size_t *size)
{
	uint64_t n, places, at = c->done;

	if (c->done >= c->len)
		return false;
	n = next_size(c);
	if (n > c->len - c->done)
		n = c->len - c->done;
	if (c->random) {
		places = (c->len - n) / c->unit + 1;
		at = gdsio_random(&c->rng) % places * c->unit;
	}
	*off = (off_t)(c->start + at);
	*size = n;
	c->done += n;
	return true;
}

void gdsio_cursor_again(struct gdsio_cursor *c)
{
	c->done = 0;
}
