/* SPDX-License-Identifier: MIT */
/*
 * staged.h - GPU memory of the library that drives move bytes into and out of.
 *
 * A slab is one allocation and one pinned window, cut into slots of SLOT_BYTES; a request
 * takes a run of free slots of one slab. Slabs are made when a request finds no free slot
 * and the cap allows one more; they go at the close. The cap, per GPU:
 * max_device_cache_size_kb or gpu_bounce_buffer_slab_config where configured, else
 * "staging_max_mb" of "opengds". With that slab configuration no slab of ours is larger than
 * its largest, or than one slot.
 */
#ifndef STAGED_H
#define STAGED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nvfs.h"

#define SLOT_BYTES ((size_t)1024 * 1024)
#define SLAB_SLOTS 16
#define SLABS_MAX 64

struct device;

struct slab {
	uint64_t alloc_va;	/* as allocated */
	uint64_t va;		/* 64-KiB aligned: the first slot */
	unsigned int slots;
	uint32_t used;		/* bit n: slot n is somebody's; staging.lock */
	struct nvfs_win win;
};

/*
 * lock guards `used` of all slabs and what follows; `given` is signalled when slots come
 * back. While `growing` one thread makes a slab without the lock. A slab's other members
 * are final once it counts in `slabs`.
 */
struct staging {
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct device *dev;
	struct slab *slab[SLABS_MAX];
	unsigned int slabs;
	bool growing;
	size_t bytes;		/* in all slabs */
	unsigned int used;	/* slots in all slabs */
	/*
	 * Allocations that could not be pinned, by slots; 0: none. They wait for the next try or
	 * the close: a free waits for all that runs on the GPU, and what runs may wait for us.
	 * Who is `growing` has them.
	 */
	uint64_t spare_va[SLAB_SLOTS + 1];
	unsigned int reason;	/* why no slab could be made; REASON_NONE */
};

/* A run of slots that a thread holds. */
struct stage {
	struct slab *slab;
	unsigned int first, n;
	uint64_t va;
	size_t size;
};

void staging_init(struct staging *s, struct device *dev);
/* At close, nobody inside. */
void staging_release(struct staging *s);

/* REASON_NONE: slots can be had (now or after others gave theirs back). Makes no slab. */
unsigned int staging_reason(struct staging *s);

/*
 * At least one slot, as many as `want` bytes need where they are free. Blocks until there
 * is one. `wait`: no slab is made while there is one, because that can wait for the whole
 * GPU. 0, or -ENOMEM: no slab can be made (staging_reason says why from now on).
 */
int staging_take(struct staging *s, size_t want, bool wait, struct stage *out);
void staging_give(struct staging *s, struct stage *st);

#endif /* STAGED_H */
