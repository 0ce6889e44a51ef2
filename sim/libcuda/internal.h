/* SPDX-License-Identifier: MIT */
/*
 * internal.h - objects of the simulated CUDA driver.
 *
 * One mutex, sim.lock, guards everything below; sim.changed is broadcast whenever a stream
 * or an event makes progress. Bytes are copied, host functions run and the card's ioctls
 * that can wait are made without it.
 */
#ifndef SIM_LIBCUDA_INTERNAL_H
#define SIM_LIBCUDA_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda.h"
#include "gpu_sim.h"

#define SIM_EXPORT __attribute__((visibility("default")))
/* The function under its first name as well, which programs may ask dlsym() for. */
#define SIM_ALIAS(fn, old) \
	extern __typeof__(fn) fn##_first __asm__(old) \
		__attribute__((alias(#fn), visibility("default")))
#define SIM_MAX_DEVICES GPU_SIM_MAX_CARDS
#define SIM_BLOCK ((size_t)GPU_SIM_BLOCK_SIZE)
#define SIM_GRAIN ((size_t)512)		/* small allocations are aligned to this */

struct sim_device {
	int fd;				/* of /dev/gpu-simN; -1: host memory */
	struct gpu_sim_info info;
	uint64_t host_used;		/* bytes, host memory mode */
	CUcontext primary;		/* NULL while inactive */
	unsigned int primary_flags;
};

/* One allocation of the card: what the kernel knows. */
struct sim_block {
	uintptr_t va;			/* device address; PROT_NONE on a card; 0: none (vmm.c) */
	size_t size;
	uint8_t *cpu;			/* the private mapping that copies go through */
	uint64_t handle;
	CUdevice dev;
	CUcontext ctx;			/* NULL: of none, made by cuMemCreate */
	bool shared;			/* holds small allocations */
	uint32_t object;		/* what IPC handles call it; another's once it is freed */
	unsigned int users;		/* allocations in it */
	struct sim_block *next;
};

enum sim_kind { SIM_DEVICE, SIM_HOST_ALLOC, SIM_HOST_REGISTERED };

/* A range that CUDA knows by its address: device memory or pinned host memory. */
struct sim_range {
	uintptr_t start;
	size_t size;			/* as asked for */
	size_t room;			/* taken in the block */
	enum sim_kind kind;
	unsigned int flags;		/* of host memory */
	int sync_memops;
	uint64_t id;			/* unique per allocation, for ever */
	bool closed;			/* no access was given to it (vmm.c) */
	CUcontext ctx;			/* NULL: of none (vmm.c) */
	struct sim_block *block;	/* SIM_DEVICE */
};

struct CUctx_st {
	CUdevice dev;
	bool primary;
	unsigned int retained;		/* primary: retains */
	unsigned int flags;
	CUstream legacy;
	CUstream streams;		/* all of them, the legacy one too */
	CUcontext next;
};

enum sim_op_kind {
	SIM_OP_NOP, SIM_OP_COPY, SIM_OP_SET, SIM_OP_HOST, SIM_OP_CALLBACK, SIM_OP_RECORD,
	SIM_OP_WAIT_EVENT, SIM_OP_WRITE_VALUE, SIM_OP_WAIT_VALUE
};

struct sim_dep {
	CUstream stream;		/* counted */
	uint64_t seq;
};

struct sim_op {
	struct sim_op *next;
	enum sim_op_kind kind;
	bool prompt;			/* a caller waits for it: no delay */
	uint64_t seq;
	unsigned int ndeps;
	struct sim_dep *deps;
	/* copy, set, values */
	uint8_t *dst;
	const uint8_t *src;
	size_t size;			/* bytes; of one value for values */
	uint64_t value;
	unsigned int width;		/* of a set's element */
	unsigned int flags;
	void *staging;			/* freed with the operation */
	/* host functions */
	CUhostFn fn;
	CUstreamCallback callback;
	void *data;
	/* events */
	CUevent event;			/* counted */
	uint64_t gen;
};

/*
 * A stream's operations run one by one, on its own thread, in the order of their seq.
 * States: open -> closing (destroyed: the thread ends when the queue is empty).
 */
struct CUstream_st {
	CUcontext ctx;			/* NULL once destroyed */
	CUstream next;			/* in ctx->streams */
	unsigned int flags;
	int priority;
	unsigned int refs;		/* handle, thread, dependencies */
	bool closing;
	const void *per_thread;		/* names the thread whose default stream it is */
	bool has_thread;
	uint64_t queued, done;		/* seq of the last operation queued, completed */
	uint64_t random;		/* state of the delays; the thread's own */
	struct sim_op *head, **tail;
};

/* record() raises wanted, its execution raises done: an event is complete when equal. */
struct CUevent_st {
	unsigned int refs;		/* handle, operations */
	unsigned int flags;
	uint64_t wanted, done;
	uint64_t ns;			/* when done last rose */
	CUevent next;			/* in sim.events */
	CUcontext ctx;

};

struct sim_state {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ready;			/* cuInit() succeeded */
	bool forked;			/* this is a child of the process that called it */
	int ndevices;
	bool host;			/* no card: host memory stands for VRAM */
	struct sim_device device[SIM_MAX_DEVICES];
	CUcontext contexts;
	CUevent events;
	struct sim_block *blocks;
	struct sim_range **range;	/* sorted by start */
	size_t nranges, range_room;
	uint64_t next_id;
	uint64_t nstreams;
	uint64_t seed;
	unsigned int delay_us;
};

extern struct sim_state sim;

/* device.c */
CUresult sim_enter(void);		/* initialised? takes nothing */
struct sim_device *sim_device(CUdevice dev);

/* context.c; sim.lock held */
CUresult sim_ctx_current(CUcontext *ctx);
bool sim_ctx_exists(CUcontext ctx);

/* vram.c */
CUresult sim_block_new(CUcontext ctx, size_t size, bool shared, struct sim_block **out);
void sim_block_free(struct sim_block *block);	/* without sim.lock */
CUresult sim_block_bare(CUdevice dev, size_t size, struct sim_block **out);
void sim_block_bare_free(struct sim_block *block);	/* without sim.lock */

/* memory.c; sim.lock held */
struct sim_range *sim_range_find(uintptr_t addr);
CUresult sim_range_add(const struct sim_range *range);
struct sim_range *sim_range_at(uintptr_t addr, size_t size);
void sim_range_remove(struct sim_range *range);
struct sim_block *sim_block_find(uintptr_t addr);
void sim_block_unlink(struct sim_block *block);
void sim_ctx_free_memory(CUcontext ctx);	/* without sim.lock */

static inline uint8_t *sim_range_cpu(const struct sim_range *range, uintptr_t addr)
{
	if (range->kind != SIM_DEVICE)
		return (uint8_t *)addr;
	return range->block->cpu + (addr - range->block->va);
}

/* vmm.c; sim.lock held. The reservation that mapped memory lies in; false: it is other memory. */
bool sim_vmm_reservation(const struct sim_range *range, uintptr_t *va, size_t *size);

/* stream.c; sim.lock held except where said */
CUresult sim_stream_get(CUstream handle, CUstream *out);
CUresult sim_stream_new(CUcontext ctx, unsigned int flags, int priority, CUstream *out);
void sim_stream_close(CUstream stream);
void sim_stream_unlink(CUstream stream);
void sim_stream_unref(CUstream stream);
CUresult sim_enqueue(CUstream stream, struct sim_op *op, uint64_t *seq);
void sim_wait(CUstream stream, uint64_t seq);
void sim_ctx_wait(CUcontext ctx);
bool sim_in_host_function(void);		/* takes nothing */
void sim_event_unref(CUevent event);

#endif /* SIM_LIBCUDA_INTERNAL_H */
