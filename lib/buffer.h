/* SPDX-License-Identifier: MIT */
/*
 * buffer.h - registered memory: found by interval, pinned where it is GPU memory.
 */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu.h"
#include "nvfs.h"

struct device;

/*
 * One registration. All members are final once it is in the table but `users`, which counts
 * the requests on it and grows only while the table is held; deregistering takes it out of the
 * table, waits until nobody uses it and unpins.
 */
struct buffer {
	uint64_t va;		/* as registered; of host memory: its address */
	size_t len;
	atomic_uint users;	/* beside what a look-up reads */
	struct gpu_ptr mem;
	struct device *dev;	/* NULL: host memory */
	bool pinned;
	unsigned int reason;	/* why it is not pinned */
	struct nvfs_win win;	/* when pinned */
};

/*
 * The registration for `size` bytes at base + off, in use until buffer_put: of several whose
 * range holds all of them the one that begins last. NULL with *err 0: none, the memory is not
 * registered, or only in part; NULL with *err set: it was asked for by the start of a
 * registration that it leaves.
 */
struct buffer *buffer_get(uint64_t base, uint64_t off, size_t size, int *err);
void buffer_put(struct buffer *b);

/* At close, nobody inside. */
void buffers_release(void);

#endif /* BUFFER_H */
