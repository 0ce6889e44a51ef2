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

struct file;

/* What the parts of a request took, by route; kept while it is counted. */
struct stats_spent {
	uint64_t ns[OGDS_ROUTES];
	uint64_t retried[OGDS_ROUTES];	/* bytes that failed on it, and another did */
	unsigned int failed;		/* bit n: a part failed on route n */
};

/* A request that is over. */
struct stats_done {
	enum ogds_op op;
	const struct ogds_report *rep;	/* of it its bytes count */
	const struct stats_spent *spent;
	struct file *file;
	int dev;	/* of its memory, -1 on the host */
	uint64_t ns;
	bool failed;	/* it moved nothing */
};

/* The level while it collects, else 0. */
extern atomic_int stats_gate;

static inline bool stats_on(void)
{
	return atomic_load_explicit(&stats_gate, memory_order_relaxed);
}

/* When a thing begins that stats_io and the like count at its end; 0: it is not counted. */
static inline uint64_t stats_begin(void)
{
	return stats_on() ? os->now_ns() : 0;
}

void stats_io(const struct stats_done *d);

void stats_count(enum stats_what what, bool ok);

/* A registration of memory of `dev`, -1: of the host. */
void stats_register(int dev, size_t size, bool ok);
void stats_deregister(int dev, size_t size, bool ok);

/* A submission of n entries that took ns; of a refused one no entry counts. */
void stats_batch_submit(unsigned int n, uint64_t ns, bool ok);
/* One entry is done. Its bytes count here, not as those of a request. */
void stats_batch_entry(const struct stats_done *d);
/* All entries of a submission are done, ns after it; what they moved together. */
void stats_batch_complete(uint64_t read_bytes, uint64_t write_bytes, uint64_t ns, bool ok);

/* Its last reference is gone. */
void stats_file_gone(struct file *f);

/* What is published; NULL: nothing is. Stays while somebody is inside. */
extern _Atomic(struct stats_area *) stats_shown;

static inline struct stats_area *stats_show(void)
{
	return atomic_load_explicit(&stats_shown, memory_order_acquire);
}

/*
 * Of a pool of `dev`, whose lock is held, while stats_show(): slots there are, and those used
 * (of host memory: by this GPU). waited: somebody has, for one.
 */
void stats_pool(struct stats_pool of[STATS_GPUS], int dev, size_t slot_bytes, size_t slots,
		size_t used, bool waited);

/* The locks of all shards, for what must see no request in between. */
void stats_lock_all(void);
void stats_unlock_all(void);

/* By the opening thread; level 0..3, above 0 it collects at once. */
void stats_open(size_t level);
/* At close, nobody inside: the table goes to the log, the memory away. */
void stats_release(void);
/* At an exit with somebody inside: other processes see it no more. */
void stats_unpublish(void);

#endif /* STATS_H */
