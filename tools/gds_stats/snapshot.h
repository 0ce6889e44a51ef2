/* SPDX-License-Identifier: MIT */
/* snapshot.h - the statistics of one process at one moment, out of its shared memory. */
#ifndef GDS_STATS_SNAPSHOT_H
#define GDS_STATS_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "cufile.h"
#include "stats_shm.h"

/* Nothing in it is outside its range, whatever the segment holds. Index of [2]: 0 read, 1 write. */
struct snap_file {
	char name[STATS_FILE_NAME];
	uint64_t users;		/* handles that are registered */
	struct stats_way way[2];
};

struct snapshot {
	int pid;		/* in the namespace of who looks */
	char command[32];
	int level;		/* 0..3 */
	bool running;		/* it is being collected now */
	uint64_t ns;		/* how long it has been */
	uint64_t taken_ns;	/* monotonic clock */
	CUfileStatsLevel3_t all;
	unsigned int routes, files;
	char route_name[STATS_ROUTES][STATS_ROUTE_NAME];
	struct stats_way route[STATS_ROUTES][2];
	struct stats_way gpu[STATS_GPUS][2];	/* all.num_gpus of them */
	struct stats_pool staged[STATS_GPUS], host[STATS_GPUS];
	struct snap_file file[STATS_FILES];
	struct stats_way others[2];	/* of files that have no row */
};

/* All but pid and command. */
void snapshot_take(const struct stats_area *a, uint64_t now_ns, struct snapshot *out);

/* What one direction of all routes did together. */
struct stats_way snapshot_sum(const struct snapshot *s, int op);

#endif /* GDS_STATS_SNAPSHOT_H */
