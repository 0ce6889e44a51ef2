/* SPDX-License-Identifier: MIT */
/*
 * stats.h - counting what the library does, between Start and Stop.
 *
 * All calls that count are made inside driver_enter() .. driver_leave(). While nothing is
 * collected they cost one relaxed load.
 */
#ifndef STATS_H
#define STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opengds.h"
#include "os.h"
#include "stats_shm.h"

/* The level while it collects, else 0. */
extern atomic_int stats_gate;

/* When a thing begins that stats_io and the like count at its end; 0: it is not counted. */
static inline uint64_t stats_begin(void)
{
	return atomic_load_explicit(&stats_gate, memory_order_relaxed) ? os->now_ns() : 0;
}

/*
 * One request that took ns. Of `rep` its bytes count; dev: of its memory, -1 on the host.
 * failed: it moved nothing.
 */
void stats_io(enum ogds_op op, const struct ogds_report *rep, int dev, uint64_t ns, bool failed);

void stats_count(enum stats_what what, bool ok);

/* A registration of memory of `dev`, -1: of the host. */
void stats_register(int dev, size_t size, bool ok);
void stats_deregister(int dev, size_t size, bool ok);

/* A submission of n entries that took ns; of a refused one no entry counts. */
void stats_batch_submit(unsigned int n, uint64_t ns, bool ok);
/* One entry is done. Its bytes count here, not as those of a request. */
void stats_batch_entry(enum ogds_op op, const struct ogds_report *rep, bool failed);
/* All entries of a submission are done, ns after it; what they moved together. */
void stats_batch_complete(uint64_t read_bytes, uint64_t write_bytes, uint64_t ns, bool ok);

/* By the opening thread; level 0..3, above 0 it collects at once. */
void stats_open(size_t level);
/* At close, nobody inside: the table goes to the log, the memory away. */
void stats_release(void);
/* At an exit with somebody inside: other processes see it no more. */
void stats_unpublish(void);

#endif /* STATS_H */
