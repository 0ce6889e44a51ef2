/* SPDX-License-Identifier: MIT */
/*
 * bar.h - GPU memory as the CPU sees it through BAR1: reads of files end in it by stores.
 *
 * A struct bar stands for one range of one allocation of CUDA. It holds the driver's memory
 * object by a second name, so the whole object stays allocated as long as the bar does, also
 * when CUDA frees it. Therefore only registered ranges and small allocations have one, and
 * it goes at deregistration, when the allocation is another one by now, or when it is idle.
 *
 * The range is seen through windows: one for all of it where BAR1 is large, else pieces, of
 * which as many exist as there is room for; the one that was used longest ago makes room.
 *
 *	window: EMPTY --begin--> BUSY --mapped and proven--> READY --evicted--> EMPTY
 *	                         BUSY --failed--> EMPTY, and the bar is off with its reason
 *
 * Proof, before a window is used: CUDA writes random words to the first and the last bytes
 * of what the request will overwrite anyway, the CPU must find them in the window, and CUDA
 * puts back what was there. A window that shows something else turns the way off for the GPU:
 * what the driver said about one object is not to be believed about the next.
 *
 * bar_gpu.lock guards the states, users and the sum of what is mapped; it is never held over
 * a system call of the driver or a copy. A window that is READY and `fixed` (of one window
 * for all) is read without it.
 */
#ifndef BAR_H
#define BAR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu.h"

struct bar;
struct device;
struct rm;

#define BAR_CACHED 16		/* unregistered allocations at a time */
#define BAR_CACHED_BYTES ((size_t)64 << 20)	/* of one of them at most */
#define BAR_CACHED_SUM ((size_t)256 << 20)	/* of them together */

/* Of one GPU; in struct device. All but `reason` is guarded by lock. */
struct bar_gpu {
	pthread_mutex_t lock;
	struct device *dev;
	struct rm *rm;			/* NULL until the first use */
	bool opening;			/* a thread connects */
	atomic_uint reason;		/* why there is no such way on this GPU, or REASON_NONE */
	uint64_t room, used;		/* bytes of BAR1 that may be mapped, and are */
	struct bar *windows;		/* bars that are not `fixed`, for eviction */
	uint64_t clock;			/* raised by each use of such a window */
	struct {			/* unregistered allocations */
		uint64_t id;		/* 0: free */
		unsigned int seen;	/* requests so far */
		uint64_t used_ns;	/* when it was used last */
		unsigned int reason;	/* why it has no bar */
		struct bar *bar;	/* NULL before its second request, or when it has none */
		size_t len;
	} cached[BAR_CACHED];
	uint64_t cached_bytes;
	_Atomic uint64_t swept_ns;	/* when idle ones were looked for last */
};

void bar_gpu_init(struct bar_gpu *g, struct device *dev);
/* At close, nobody inside, all bars put. */
void bar_gpu_release(struct bar_gpu *g);

/*
 * The bar of va .. va + len, which lie in `mem`; the caller's to put. Nothing is mapped yet. Of
 * memory of cuMemCreate (object.h) they have to be in one mapping, that of mem->at_va.
 * NULL with *reason: this memory has none. Calls the driver; waits for no GPU.
 */
struct bar *bar_new(struct device *dev, const struct gpu_ptr *mem, uint64_t va, size_t len,
		    unsigned int *reason);
void bar_hold(struct bar *b);
/* It has all of va .. va + len. Beside it there may be other memory of the same reservation. */
bool bar_holds(const struct bar *b, uint64_t va, size_t len);
void bar_put(struct bar *b);

/*
 * The one of an unregistered allocation, held; NULL: it has none, or not yet: the first
 * request of an allocation is not worth one. Drops those that nobody used for a while.
 */
struct bar *bar_cached(struct device *dev, const struct gpu_ptr *mem, unsigned int *reason);

/*
 * The allocation is being registered: it has a bar of its own from now on. And while the CPU sees
 * memory write-combined, the kernel makes no P2PDMA pages of it (kernel/nvidia-fs/p2p.c).
 */
void bar_cached_drop(struct device *dev, uint64_t id);

/* Part of a window, in use. */
struct bar_use {
	struct bar *bar;
	unsigned int window;
	char *at;		/* of the va asked for */
	size_t len;		/* bytes that can be stored there, at most what was asked for */
};

/*
 * Makes va .. va + len writable, or the front of it. [first_va, end_va): what the request
 * overwrites, for the proof. 0: until bar_done; -EBUSY: another thread maps it, or there is
 * no room now; another error: this way is off, *reason says why. Stores are combined: the
 * caller ends with bar_fence() before it tells anybody.
 */
int bar_use(struct bar *b, uint64_t va, size_t len, uint64_t first_va, uint64_t end_va,
	    struct bar_use *u, unsigned int *reason);
void bar_done(struct bar_use *u);
/* bar_use() of this place needs no proof, which takes a lane: the caller may hold one. */
bool bar_ready(struct bar *b);
void bar_fence(void);

#endif /* BAR_H */
