/* SPDX-License-Identifier: MIT */
/* report.h - counts of what was moved, and the lines that tell them. */
#ifndef GDSIO_REPORT_H
#define GDSIO_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "args.h"
#include "hist.h"
#include "opengds.h"

#define GDSIO_REASON_WORDS 4	/* reasons 0 .. 255; what is above counts as 255 */

/* What was moved, by one thread or by all. */
struct gdsio_tally {
	uint64_t bytes;
	uint64_t written;			/* of them; of a mix both kinds are there */
	uint64_t checked;			/* bytes that were compared with their stamps */
	uint64_t ops;
	uint64_t ns;				/* of all I/Os, added */
	uint64_t route[OGDS_ROUTES];		/* bytes */
	uint64_t whole;				/* bytes of whole 4-KiB blocks */
	uint64_t direct;			/* of them, moved direct */
	uint64_t edge;				/* bytes of parts of a block */
	uint64_t retried;
	uint64_t witnessed;
	uint64_t reason[GDSIO_REASON_WORDS];	/* bit n: reason n */
	struct gdsio_hist hist;			/* of the latencies of the I/Os */
};

/* One pass over the data set. */
struct gdsio_result {
	enum gdsio_rw rw;
	enum gdsio_xfer xfer;
	bool host_memory;	/* asked for: nothing of it could go direct */
	bool stamped;		/* what was written has stamps */
	bool compared;		/* what was read was compared with them */
	unsigned int threads;
	unsigned int depth;	/* I/Os of a thread at a time */
	unsigned int mix;	/* percent of reads; 0: no mix */
	struct gdsio_sizes io;
	uint64_t requested;	/* bytes */
	double seconds;
	double cpu_seconds;	/* of the process, user and system */
	struct gdsio_tally tally;
};

void gdsio_tally_io(struct gdsio_tally *t, const struct ogds_report *io);

/* An I/O that the file system did by itself, all of it by one route. */
void gdsio_tally_plain(struct gdsio_tally *t, enum ogds_route route, uint64_t off, uint64_t len);

void gdsio_tally_add(struct gdsio_tally *sum, const struct gdsio_tally *t);

/* Whole blocks were asked for by a transfer type of cuFile, and some took another way. */
bool gdsio_fell_back(const struct gdsio_result *r);

/* Bytes moved of which no route is known. */
uint64_t gdsio_unattributed(const struct gdsio_tally *t);

/* GiB a second of so many bytes of a pass; 0 for no time */
double gdsio_rate(const struct gdsio_result *r, uint64_t bytes);

/* CPU seconds for each GiB; 0 for nothing */
double gdsio_cpu_per_gib(const struct gdsio_result *r);

/* "verified", "stamped" or "not_checked" */
const char *gdsio_checksum(const struct gdsio_result *r);

/* The percentiles that are told, in 1/100000, and their names. */
#define GDSIO_PARTS 5
extern const struct gdsio_part {
	const char *name;
	uint32_t part;
} gdsio_parts[GDSIO_PARTS];

/* The line of routes. */
void gdsio_print_routes(FILE *f, const struct gdsio_tally *t);

/* The result line, those of routes, latencies and state, a line for each reason. */
void gdsio_report(FILE *f, const struct gdsio_result *r);

#endif /* GDSIO_REPORT_H */
