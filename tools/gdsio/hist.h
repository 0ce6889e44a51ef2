/* SPDX-License-Identifier: MIT */
/*
 * hist.h - latencies in cells of a fixed number: percentiles without keeping each value.
 *
 * Cells are exact below 128 ns and 1/64 of their value wide above. One writer at a time.
 */
#ifndef GDSIO_HIST_H
#define GDSIO_HIST_H

#include <stdint.h>

#define HIST_BITS 6	/* cells of an octave: 2^6 */
#define HIST_CELLS ((65 - HIST_BITS) << HIST_BITS)

struct gdsio_hist {
	uint64_t n;
	uint64_t max;		/* ns, exact */
	uint64_t cell[HIST_CELLS];
};

void gdsio_hist_put(struct gdsio_hist *h, uint64_t ns);
void gdsio_hist_add(struct gdsio_hist *sum, const struct gdsio_hist *h);

/*
 * The value that `part` of 100000 values do not exceed, rounded up by 1/64 at most and never
 * above the largest; 0 when there is none.
 */
uint64_t gdsio_hist_part(const struct gdsio_hist *h, uint32_t part);

#endif /* GDSIO_HIST_H */
