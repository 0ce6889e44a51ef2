// SPDX-License-Identifier: MIT
/* hist.c - a histogram of latencies with cells that grow with the value. */
#include "hist.h"

#define PER (1u << HIST_BITS)
#define WHOLE 100000

static unsigned int cell_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < PER)
		return (unsigned int)ns;
	shift = 63 - HIST_BITS - (unsigned int)__builtin_clzll(ns);
	return (shift << HIST_BITS) + (unsigned int)(ns >> shift);
}

/* The largest value of a cell */
static uint64_t cell_end(unsigned int i)
{
	unsigned int shift;

	if (i < PER)
		return i;
	shift = (i >> HIST_BITS) - 1;
	return (((uint64_t)(i - (shift << HIST_BITS)) + 1) << shift) - 1;
}

void gdsio_hist_put(struct gdsio_hist *h, uint64_t ns)
{
	h->n++;
	h->cell[cell_of(ns)]++;
	if (ns > h->max)
		h->max = ns;
}

void gdsio_hist_add(struct gdsio_hist *sum, const struct gdsio_hist *h)
{
	unsigned int i;

	sum->n += h->n;
	if (h->max > sum->max)
		sum->max = h->max;
	for (i = 0; h->n && i < HIST_CELLS; i++)
		sum->cell[i] += h->cell[i];
}

uint64_t gdsio_hist_part(const struct gdsio_hist *h, uint32_t part)
{
	/* without an overflow: whole thousands of values, and what is left of them */
	const uint64_t rank = h->n / WHOLE * part + (h->n % WHOLE * part + WHOLE - 1) / WHOLE;
	uint64_t seen = 0, end;
	unsigned int i;

	for (i = 0; i < HIST_CELLS; i++) {
		seen += h->cell[i];
		if (!seen || seen < rank)
			continue;
		end = cell_end(i);
		return end < h->max ? end : h->max;
	}
	return 0;
}
