/* SPDX-License-Identifier: MIT */
/*
 * lane.h - what one copy needs while it runs: a stream.
 *
 * Lanes are made when needed, LANE_MAX at most, and kept until the close; who finds none
 * waits for one. A thread that waits for a lane holds none, so there is always progress.
 *
 * posix_pool_slab_* caps their number where it is configured: as many as all slabs together have
 * room for pieces of the largest, of LANE_BYTES at most; one at least.
 */
#ifndef LANE_H
#define LANE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu.h"

#define LANE_BYTES (1024 * 1024)
#define LANE_MAX 64

struct lane {
	struct gpu_stream s;
	struct lane *next;
	int foreign;		/* of a context not ours to keep: goes when it is given back */
};

struct config;

/* By the opening thread. */
void lanes_open(const struct config *c);

/*
 * A lane of the context; `keep`: it is a primary context of ours. NULL with *err set. `wait`:
 * none is made while the context has some, because making one can wait for the whole GPU.
 * Who holds a lane must not take another: it could wait for one that waits for this one.
 */
struct lane *lane_take(void *ctx, int keep, bool wait, int *err);

/* Lanes for the context, n of them or as many as can be had: 0 or an error. */
int lanes_prepare(void *ctx, unsigned int n);
void lane_give(struct lane *l);

/* At close, nobody inside. */
void lanes_release(void);

#endif /* LANE_H */
