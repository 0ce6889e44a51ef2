/* SPDX-License-Identifier: MIT */
/*
 * slots.h - pinned host memory that bytes pass through on their way to a GPU or from it.
 *
 * A slot is a piece of pinned memory with a mark of its last copy, and belongs to one of a
 * device's copy streams. Slots are made when needed, on the NUMA node of the GPU that they are
 * made for, and given back to the system when they lie idle. Pinned memory serves every GPU: a
 * slot of another is taken over where no more may be made.
 *
 * posix_pool_slab_* caps them all where it is configured: a slot is as large as the largest slab,
 * HOST_SLOT_BYTES at most, and there are as many as all slabs together have room for, one at least.
 * Unset, there may be SLOTS_MOST of HOST_SLOT_BYTES for each GPU in use.
 *
 * Making one can wait for the whole GPU, and so can giving one back. So:
 *
 *   - who holds a slot makes none and waits for none: who waits for a slot waits for somebody
 *     that is under way;
 *   - who a stream waits for (rw_run(), `deferred`) makes none while there is any.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu.h"

#define HOST_SLOT_BYTES ((size_t)2048 * 1024)
#define SLOTS_MOST 64

struct config;
struct device;

struct slot {
	char *host;		/* slot_bytes(), 4-KiB aligned; of all contexts */
	void *ctx;		/* the one that it was made in */
	struct gpu_event mark;	/* for the holder; of the device's context */
	struct gpu_event alarm;	/* to sleep until the mark */
	struct gpu_stream *s;	/* shared: wait for the mark, not for all of it */
	int dev;		/* index of the device; -1: of none, without a mark */
	int lent;		/* index of the device that it is taken for; -1: of none */
	uint64_t since;		/* ns; when it was given back */
	struct slot *next;	/* of the idle ones */
};

/* By the opening thread. */
void slots_open(const struct config *c);
/* Of each slot of this open: a multiple of 4096. */
size_t slot_bytes(void);

enum {
	SLOT_MAY_MAKE = 1,
	SLOT_MAY_WAIT = 2,
};

/*
 * A slot for copies to and from this device. NULL: there is none, or *err is set (errmap.h).
 * With neither flag it is for a thread that holds slots, and calls CUDA for nothing that waits.
 */
struct slot *slot_take(struct device *d, unsigned int may, int *err);
void slot_give(struct slot *s);

/* Makes an idle one if there are fewer than n, and may be more. The caller holds none. */
void slots_grow(struct device *d, unsigned int n);
/* Gives memory back that nobody has used for some seconds. The caller holds none. */
void slots_trim(void);

/* Streams, and n slots or as many as can be had, so that none need be made later: 0 or an error. */
int slots_prepare(struct device *d, unsigned int n);

/* At close, nobody inside. */
void slots_release(void);

#endif /* SLOTS_H */
