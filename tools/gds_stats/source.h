/* SPDX-License-Identifier: MIT */
/* source.h - processes whose statistics can be read, and why one's cannot. */
#ifndef GDS_STATS_SOURCE_H
#define GDS_STATS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "snapshot.h"

#define SOURCE_WHY 640

/* One process; all 0: none. */
struct source {
	int pid;
	char command[32];
	const struct stats_area *area;
};

/*
 * Also of a process in a container: its own /dev/shm is looked into. `left`: what a process that
 * was killed has left behind. 0, or -errno and why, with what to do.
 */
int source_open(int pid, bool left, struct source *s, char why[SOURCE_WHY]);
void source_close(struct source *s);

/* -EBUSY: the memory became shorter while it was read. */
int source_read(const struct source *s, struct snapshot *out);

/* Whether the process is there still. */
bool source_lives(const struct source *s);

/*
 * All processes that publish and that this user may read, by number. -ENOMEM, or how many; *at is
 * the caller's to free, each of it to be closed.
 */
int source_list(struct source **at);

#endif /* GDS_STATS_SOURCE_H */
