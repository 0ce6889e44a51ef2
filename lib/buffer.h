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

struct bar;
struct device;

/*
 * One registration. All members are final once it is in the table but `users`, which counts
 * the requests on it that are not borrowed (borrow.h) and grows only while the table is held;
 * deregistering takes it out of the table, waits until nobody uses it and unpins.
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

	/* 0: nobody asked for the bar yet, 1: a thread makes it, 2: bar and bar_reason are final */
	atomic_uint bar_state;
	struct bar *bar;	/* NULL: it has none */
	unsigned int bar_reason;	/* why */

	atomic_bool pages_asked;	/* win.pages and pages_reason are final */
	unsigned int pages_reason;	/* why it has no pages in the process */
};

/*
 * The registration for `size` bytes at base + off, in use until buffer_put: of several whose
 * range holds all of them the one that begins last. NULL with *err 0: none, the memory is not
 * registered, or only in part; NULL with *err set: it was asked for by the start of a
 * registration that it leaves.
 */
struct buffer *buffer_get(uint64_t base, uint64_t off, size_t size, int *err);
/* What begins at va was registered of other memory than `now`: it bounds nothing. */
bool buffer_stale(uint64_t va, const struct gpu_ptr *now);
/* By the thread that got it. */
void buffer_put(struct buffer *b);

/*
 * Its bar, as long as the buffer is in use, made at the first call. NULL: there is none, with
 * *reason, or (REASON_NONE) another thread makes it now.
 */
struct bar *buffer_bar(struct buffer *b, unsigned int *reason);

/* REASON_NONE: its memory is at win.pages; made at the first call, which others wait for. */
unsigned int buffer_pages(struct buffer *b);

/* At close, nobody inside. */
void buffers_release(void);

#endif /* BUFFER_H */
