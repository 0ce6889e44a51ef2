/* SPDX-License-Identifier: MIT */
/* report.h - counts of what was moved, and the lines that tell them. */
#ifndef GDSIO_REPORT_H
#define GDSIO_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "args.h"
#include "opengds.h"

#define GDSIO_REASON_WORDS 4	/* reasons 0 .. 255; what is above counts as 255 */

/* What was moved, by one thread or by all. */
struct gdsio_tally {
	uint64_t bytes;
	uint64_t ops;
	uint64_t ns;				/* of all I/Os, added */
	uint64_t route[OGDS_ROUTES];		/* bytes */
	uint64_t whole;				/* bytes of whole 4-KiB blocks */
	uint64_t direct;			/* of them, moved direct */
	uint64_t edge;				/* bytes of parts of a block */
	uint64_t retried;
	uint64_t witnessed;
	uint64_t reason[GDSIO_REASON_WORDS];	/* bit n: reason n */
};

/* One pass over the data set. */
struct gdsio_result {
	enum gdsio_rw rw;
	enum gdsio_xfer xfer;
	unsigned int threads;
	struct gdsio_sizes io;
	uint64_t requested;	/* bytes */
	double seconds;
	struct gdsio_tally tally;
};

void gdsio_tally_io(struct gdsio_tally *t, const struct ogds_report *io);

/* An I/O that the file system did by itself, all of it by one route. */
void gdsio_tally_plain(struct gdsio_tally *t, enum ogds_route route, uint64_t off, uint64_t len);

void gdsio_tally_add(struct gdsio_tally *sum, const struct gdsio_tally *t);

/* Whole blocks were asked for by the direct transfer type, and some took another way. */
bool gdsio_fell_back(const struct gdsio_result *r);

/* The result line, the line of routes, a line for each reason. */
void gdsio_report(FILE *f, const struct gdsio_result *r);

#endif /* GDSIO_REPORT_H */
