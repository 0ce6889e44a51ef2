/* SPDX-License-Identifier: MIT */
/*
 * stats_rows.h - statistics by route, GPU and file, and the pools: what stats.c counts beside
 * the numbers of cuFileGetStats*.
 */
#ifndef STATS_ROWS_H
#define STATS_ROWS_H

#include <stdbool.h>

#include "stats.h"

/* Row of a request's size, and of the time that it took. */
unsigned int stats_bucket(uint64_t bytes);

/* `a` is what is published from now on; NULL: nothing, and no file has a row any more. */
void stats_rows_publish(struct stats_area *a);

/* The row of a file, which it keeps as long as it is registered; without a lock of a shard. */
unsigned int stats_rows_file(struct file *f);

/* The lock of the shard is held. `file`: of stats_rows_file(), for level 3. */
void stats_rows_count(struct stats_rows *rows, int level, const struct stats_done *d,
		      unsigned int file);

/* The locks of all shards are held: everything but what is used now begins anew. */
void stats_rows_reset(struct stats_area *a);

#endif /* STATS_ROWS_H */
