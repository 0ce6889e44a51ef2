/* SPDX-License-Identifier: MIT */
/*
 * gpu.h - what the library needs of the CUDA driver: the seam in front of lib/cuda.c.
 *
 * libcuda.so.1 is loaded at run time. Calls that touch a GPU make the context they are
 * given current and put the caller's back. They return 0 or the CUresult (> 0), and never
 * keep a lock of the library. Address spaces: *_va is a device address (of host memory
 * when there is no device), everything else a host pointer.
 */
#ifndef GPU_H
#define GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_MAX 64

enum gpu_mem {
	GPU_MEM_HOST,		/* the CPU's: pageable, or pinned by CUDA */
	GPU_MEM_DEVICE,
	GPU_MEM_MANAGED,	/* moves between both */
};

struct gpu_ptr {
	enum gpu_mem kind;
	int dev;		/* index of the device; -1 for host memory */
	void *ctx;		/* CUDA context that owns it */
	bool mapped;		/* it has none (device_own): of cuMemCreate, or of a pool */
	/*
	 * Of the allocation; device and managed memory only. Of mapped memory it may be all that
	 * was reserved there, with several mappings in it and holes between them.
	 */
	uint64_t base_va;
	size_t len;
	uint64_t at_va;		/* what was asked for */
	uint64_t id;		/* of the allocation, or the mapping at at_va; never used twice */
};

/* A thing copies are queued on: a stream of one context. */
struct gpu_stream {
	void *ctx;
	void *stream;
};

/* A mark in a stream: it is done when all that was queued before it is. */
struct gpu_event {
	void *ctx;
	void *event;
};

struct gpu_ops {
	/* Loads and initialises CUDA, once. `what` gets the text of a failure. */
	int (*open)(char *what, size_t len);
	int (*count)(void);
	const char *(*error)(int result);	/* "CUDA_ERROR_NO_DEVICE"; never NULL */

	int (*pointer)(const void *ptr, struct gpu_ptr *out);
	/* gpu_ptr.id alone, of device memory: many times cheaper. An error: it is none. */
	int (*id)(uint64_t va, uint64_t *id);
	/* The primary context of a device, retained until primary_put. */
	int (*primary_get)(int dev, void **ctx);
	void (*primary_put)(int dev);
	/* PCI address as nvidia-fs takes it: domain << 32 | bus << 8 | devfn */
	int (*pci)(int dev, uint64_t *pdevinfo, char *text, size_t len);

	int (*uuid)(int dev, uint8_t out[16]);

	int (*alloc)(void *ctx, size_t size, uint64_t *va);
	void (*free)(void *ctx, uint64_t va);
	/* Pinned, for every context; in large pages where it is large enough and there are some. */
	int (*host_alloc)(void *ctx, size_t size, void **host);
	void (*host_free)(void *ctx, void *host, size_t size);

	int (*stream_new)(void *ctx, struct gpu_stream *out);
	void (*stream_free)(struct gpu_stream *s);
	int (*to_gpu)(struct gpu_stream *s, uint64_t dst_va, const void *src, size_t size);
	int (*to_host)(struct gpu_stream *s, void *dst, uint64_t src_va, size_t size);
	int (*inside)(struct gpu_stream *s, uint64_t dst_va, uint64_t src_va, size_t size);
	int (*sync)(struct gpu_stream *s);	/* until all that was queued is done */

	/*
	 * `sleeps`: event_sync() of it sleeps. That the mark is reached is an interrupt then, and
	 * wakes a thread of CUDA's: more of the processor than a small copy is worth.
	 */
	int (*event_new)(void *ctx, bool sleeps, struct gpu_event *out);
	void (*event_free)(struct gpu_event *e);
	/* The mark moves to here; of a stream of the same context. */
	int (*event_record)(struct gpu_event *e, struct gpu_stream *s);
	int (*event_query)(struct gpu_event *e, bool *done);
	int (*event_sync)(struct gpu_event *e);	/* until it is done */

	/* -- a stream of the caller's, as he passes it -- */
	/* Runs fn(arg) when its turn comes. fn must not call CUDA. */
	int (*host_func)(void *stream, void (*fn)(void *arg), void *arg);
	/* The stream waits until *word (pinned host memory) has reached value. */
	int (*wait_word)(void *stream, uint32_t *word, uint32_t value);
	int (*stream_sync)(void *stream);

	/* The 64 bytes of a CUDA IPC handle of the allocation that begins at va. */
	int (*ipc)(void *ctx, uint64_t va, unsigned char out[64]);
	/*
	 * What one cuMemMap put at va: all of that. Of other memory the allocation. Where there
	 * are several beside each other, the one that va is in.
	 */
	int (*mapping)(void *ctx, uint64_t va, uint64_t *base_va, size_t *len);
	/*
	 * A descriptor, to be closed, of memory of cuMemCreate whose mapping is va .. va + len; -1:
	 * it is not one piece of memory. An error: it is other memory, or was made without the
	 * type POSIX_FILE_DESCRIPTOR.
	 */
	int (*export_fd)(void *ctx, uint64_t va, size_t len, int *fd);

	/* Memory operations on this memory are synchronous from now on (needed for DMA). */
	int (*sync_memops)(uint64_t va, void *ctx);
};

extern const struct gpu_ops gpu_cuda;

/* What the library calls; set before the first open, by tests only. */
extern const struct gpu_ops *gpu;

#endif /* GPU_H */
