// SPDX-License-Identifier: MIT
/*
 * memory.c - ranges that CUDA knows: device memory (small pieces share a 2-MiB block, as
 * CUDA's do) and pinned host memory.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define SMALL ((size_t)1 << 20)		/* up to here allocations share blocks */

/* Index of the first range that starts above addr. */
static size_t range_above(uintptr_t addr)
{
	size_t lo = 0, hi = sim.nranges, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (sim.range[mid]->start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct sim_range *sim_range_find(uintptr_t addr)
{
	size_t i = range_above(addr);
	struct sim_range *r = i ? sim.range[i - 1] : NULL;

	return r && addr - r->start < r->size ? r : NULL;
}

/* The range that holds all of [addr, addr + size). */
struct sim_range *sim_range_at(uintptr_t addr, size_t size)
{
	struct sim_range *r = sim_range_find(addr);

	return r && size <= r->size - (addr - r->start) ? r : NULL;
}

/* Takes a copy. The caller knows that it overlaps nothing. */
CUresult sim_range_add(const struct sim_range *range)
{
	size_t i = range_above(range->start), room;
	struct sim_range **grown, *copy;

	if (sim.nranges == sim.range_room) {
		room = sim.range_room ? 2 * sim.range_room : 64;
		grown = realloc(sim.range, room * sizeof(*grown));
		if (!grown)
			return CUDA_ERROR_OUT_OF_MEMORY;
		sim.range = grown;
		sim.range_room = room;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*copy = *range;
	copy->id = ++sim.next_id;
	memmove(sim.range + i + 1, sim.range + i, (sim.nranges - i) * sizeof(*sim.range));
	sim.range[i] = copy;
	sim.nranges++;
	return CUDA_SUCCESS;
}

void sim_range_remove(struct sim_range *range)
{
	size_t i = range_above(range->start) - 1;

	sim.nranges--;
	memmove(sim.range + i, sim.range + i + 1, (sim.nranges - i) * sizeof(*sim.range));
	free(range);
}

struct sim_block *sim_block_find(uintptr_t addr)
{
	struct sim_block *b;

	for (b = sim.blocks; b; b = b->next) {
		if (b->va && addr >= b->va && addr - b->va < b->size)
			return b;
	}
	return NULL;
}

void sim_block_unlink(struct sim_block *block)
{
	struct sim_block **link;

	for (link = &sim.blocks; *link; link = &(*link)->next) {
		if (*link == block) {
			*link = block->next;
			return;
		}
	}
}

/* First fit. 0: no room. */
static uintptr_t room_in_block(const struct sim_block *b, size_t size)
{
	uintptr_t at = b->va;
	size_t i;

	for (i = range_above(b->va - 1); i < sim.nranges && sim.range[i]->start < b->va + b->size;
	     i++) {
		if (sim.range[i]->start - at >= size)
			return at;
		at = sim.range[i]->start + sim.range[i]->room;
	}
	return b->va + b->size - at >= size ? at : 0;
}

static CUresult device_alloc(CUcontext ctx, size_t size, CUdeviceptr *out)
{
	struct sim_range range = { .kind = SIM_DEVICE, .size = size, .ctx = ctx };
	struct sim_block *b, *fresh = NULL;
	CUresult r;

	range.room = (size + SIM_GRAIN - 1) & ~(SIM_GRAIN - 1);
	for (b = size <= SMALL ? sim.blocks : NULL; b; b = b->next) {
		if (!b->shared || b->ctx != ctx)
			continue;
		range.start = room_in_block(b, range.room);
		if (range.start)
			break;
	}
	if (!b) {
		r = sim_block_new(ctx, size, size <= SMALL, &fresh);
		if (r)
			return r;
		b = fresh;
		range.start = b->va;
	}
	range.block = b;
	r = sim_range_add(&range);
	if (r) {
		if (fresh) {
			sim_block_unlink(fresh);
			pthread_mutex_unlock(&sim.lock);
			sim_block_free(fresh);
			pthread_mutex_lock(&sim.lock);
		}
		return r;
	}
	b->users++;
	*out = range.start;
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	CUresult r = sim_enter();
	CUcontext ctx;

	if (r)
		return r;
	if (!dptr || !bytesize)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytesize > SIZE_MAX / 2)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r)
		r = device_alloc(ctx, bytesize, dptr);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

/* Poison goes back over what shares its block; whole blocks are poisoned by the card.
 * Returns the block when it is to be freed, without the lock. */
static struct sim_block *device_free(struct sim_range *range)
{
	struct sim_block *b = range->block;
	const uint64_t poison = GPU_SIM_POISON;
	uint8_t *cpu = sim_range_cpu(range, range->start);
	size_t i;

	if (b->shared && b->users > 1) {
		for (i = 0; i < range->room; i += sizeof(poison))
			memcpy(cpu + i, &poison, sizeof(poison));
	}
	sim_range_remove(range);
	if (--b->users)
		return NULL;
	sim_block_unlink(b);
	return b;
}

SIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	CUresult r = sim_enter();
	struct sim_block *b = NULL;
	struct sim_range *range;
	CUcontext ctx;

	if (r)
		return r;
	if (!dptr)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r) {
		range = sim_range_find(dptr);
		if (!range || range->kind != SIM_DEVICE || !range->ctx || range->start != dptr) {
			r = CUDA_ERROR_INVALID_VALUE;
		} else {
			/* work that may still use it ends first; the wait drops the lock */
			sim_ctx_wait(range->ctx);
			range = sim_range_find(dptr);
			if (range && range->start == dptr)
				b = device_free(range);
			else
				r = CUDA_ERROR_INVALID_VALUE;
		}
	}
	pthread_mutex_unlock(&sim.lock);
	if (b)
		sim_block_free(b);
	return r;
}

void sim_ctx_free_memory(CUcontext ctx)
{
	struct sim_block *b, *gone = NULL, **link;
	size_t i;

	pthread_mutex_lock(&sim.lock);
	for (i = sim.nranges; i-- > 0;) {
		if (sim.range[i]->ctx != ctx)
			continue;
		if (sim.range[i]->kind == SIM_HOST_ALLOC)
			munmap((void *)sim.range[i]->start, sim.range[i]->size);
		sim_range_remove(sim.range[i]);
	}
	for (link = &sim.blocks; *link;) {
		b = *link;
		if (b->ctx == ctx) {
			*link = b->next;
			b->next = gone;
			gone = b;
		} else {
			link = &b->next;
		}
	}
	pthread_mutex_unlock(&sim.lock);
	while (gone) {
		b = gone;
		gone = b->next;
		sim_block_free(b);
	}
}

SIM_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct gpu_sim_info info;
	CUresult r = sim_enter();
	struct sim_device *d;
	CUcontext ctx;

	if (r)
		return r;
	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r) {
		d = sim_device(ctx->dev);
		*total = d->info.vram_bytes;
		if (sim.host)
			*free_bytes = d->info.vram_bytes - d->host_used;
		else if (!ioctl(d->fd, GPU_SIM_IOC_INFO, &info))
			*free_bytes = info.free_bytes;
		else
			r = CUDA_ERROR_UNKNOWN;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	CUresult r = sim_enter();
	struct sim_range *range;
	CUcontext ctx;

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r) {
		range = sim_range_find(dptr);
		if (!range || range->kind != SIM_DEVICE) {
			r = CUDA_ERROR_NOT_FOUND;
		} else {
			if (pbase)
				*pbase = range->start;
			if (psize)
				*psize = range->size;
		}
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

static bool overlaps_known(uintptr_t start, size_t size)
{
	size_t i = range_above(start + size - 1);

	return i && sim.range[i - 1]->start + sim.range[i - 1]->size > start;
}

static CUresult host_add(void *p, size_t size, enum sim_kind kind, unsigned int flags)
{
	struct sim_range range = {
		.start = (uintptr_t)p,
		.size = size,
		.room = size,
		.kind = kind,
		.flags = flags,
	};
	CUresult r;

	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&range.ctx);
	if (!r && overlaps_known(range.start, size))
		r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!r)
		r = sim_range_add(&range);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	const unsigned int known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
				   CU_MEMHOSTALLOC_WRITECOMBINED;
	CUresult r = sim_enter();
	void *p;

	if (r)
		return r;
	if (!pp || !bytesize || bytesize > SIZE_MAX / 2 || Flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	p = mmap(NULL, bytesize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* all pinned host memory is mapped for the device, as with unified addressing */
	r = host_add(p, bytesize, SIM_HOST_ALLOC, Flags | CU_MEMHOSTALLOC_DEVICEMAP);
	if (r) {
		munmap(p, bytesize);
		return r;
	}
	*pp = p;
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

/* Forget host memory that starts at p, once no work can use it any more. */
static CUresult host_remove(void *p, enum sim_kind kind, size_t *size)
{
	CUresult r, missing = kind == SIM_HOST_ALLOC ? CUDA_ERROR_INVALID_VALUE :
						       CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	struct sim_range *range;
	CUcontext ctx;

	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r) {
		for (ctx = sim.contexts; ctx; ctx = ctx->next)
			sim_ctx_wait(ctx);
		range = sim_range_find((uintptr_t)p);
		if (!range || range->kind != kind || range->start != (uintptr_t)p) {
			r = missing;
		} else {
			*size = range->size;
			sim_range_remove(range);
		}
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuMemFreeHost(void *p)
{
	CUresult r = sim_enter();
	size_t size;

	if (r)
		return r;
	r = host_remove(p, SIM_HOST_ALLOC, &size);
	if (!r)
		munmap(p, size);
	return r;
}

SIM_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	const unsigned int known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
				   CU_MEMHOSTREGISTER_READ_ONLY;
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!p || !bytesize || bytesize > SIZE_MAX / 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & ~known)
		return CUDA_ERROR_NOT_SUPPORTED;
	return host_add(p, bytesize, SIM_HOST_REGISTERED, Flags);
}

SIM_EXPORT CUresult cuMemHostUnregister(void *p)
{
	CUresult r = sim_enter();
	size_t size;

	return r ? r : host_remove(p, SIM_HOST_REGISTERED, &size);
}

/* The pinned range that p lies in. */
static CUresult host_look(void *p, unsigned int *flags)
{
	struct sim_range *range;
	CUcontext ctx;
	CUresult r;

	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r) {
		range = sim_range_find((uintptr_t)p);
		if (!range || range->kind == SIM_DEVICE)
			r = CUDA_ERROR_INVALID_VALUE;
		else
			*flags = range->flags;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	CUresult r = sim_enter();
	unsigned int flags;

	if (r)
		return r;
	if (!pdptr || Flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = host_look(p, &flags);
	if (!r)
		*pdptr = (uintptr_t)p;
	return r;
}

SIM_EXPORT CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	return pFlags ? host_look(p, pFlags) : CUDA_ERROR_INVALID_VALUE;
}

SIM_ALIAS(cuMemHostRegister_v2, "cuMemHostRegister");
