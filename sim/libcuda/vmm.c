// SPDX-License-Identifier: MIT
/*
 * vmm.c - virtual memory management: addresses are reserved, memory is made, and the one is mapped
 * at the other. Such memory belongs to no context and has no IPC handle; it can be exported as a
 * descriptor when it was made for that, as with CUDA.
 *
 * Less than CUDA's: memory is mapped whole, and at one address at a time; descriptors are not
 * imported. More: pages that no cuMemSetAccess opened cannot be copied to or from.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

/* What cuMemCreate made. It goes when nobody has a handle of it and it is mapped nowhere. */
struct sim_vmm {
	CUmemGenericAllocationHandle handle;
	struct sim_block *block;	/* its va: where it is mapped; 0: nowhere */
	unsigned int types;		/* of handles that it may be exported as */
	unsigned int refs;		/* handles */
	struct sim_vmm *next;
};

struct sim_reservation {
	uintptr_t va;
	size_t size;
	struct sim_reservation *next;
};

/* sim.lock */
static struct sim_vmm *vmms;
static struct sim_reservation *reservations;
static CUmemGenericAllocationHandle last_handle;
static uintptr_t freed_va;	/* where a reservation was given back last */

static struct sim_vmm *vmm_find(CUmemGenericAllocationHandle handle)
{
	struct sim_vmm *v;

	for (v = vmms; v && v->handle != handle; v = v->next)
		;
	return v;
}

static struct sim_vmm *vmm_of(const struct sim_block *block)
{
	struct sim_vmm *v;

	for (v = vmms; v && v->block != block; v = v->next)
		;
	return v;
}

/* The block when nobody needs it any more: to be freed without the lock. NULL: somebody does. */
static struct sim_block *vmm_drop(struct sim_vmm *v)
{
	struct sim_block *b = v->block;
	struct sim_vmm **link;

	if (v->refs || b->va)
		return NULL;
	for (link = &vmms; *link != v; link = &(*link)->next)
		;
	*link = v->next;
	free(v);
	sim_block_unlink(b);
	return b;
}

static bool is_device_memory(const CUmemAllocationProp *prop)
{
	return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
	       prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id >= 0 &&
	       prop->location.id < sim.ndevices;
}

SIM_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity,
						  const CUmemAllocationProp *prop,
						  CUmemAllocationGranularity_flags option)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!granularity || !is_device_memory(prop))
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = SIM_BLOCK;
	return CUDA_SUCCESS;
}

/* -- addresses -- */

/* Nothing can be there but what is mapped. NULL: there is no room. */
static void *nowhere(uintptr_t at_va, size_t size)
{
	void *p = mmap((void *)at_va, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static uintptr_t reserve(size_t size, size_t align)
{
	uintptr_t again = freed_va, head;
	uint8_t *p;

	freed_va = 0;
	if (again && !(again & (align - 1))) {
		p = nowhere(again, size);
		if (p == (void *)again)
			return again;
		if (p)
			munmap(p, size);
	}
	p = nowhere(0, size + align);
	if (!p)
		return 0;
	head = -(uintptr_t)p & (align - 1);
	if (head)
		munmap(p, head);
	munmap(p + head + size, align - head);
	return (uintptr_t)p + head;
}

SIM_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
					CUdeviceptr addr, unsigned long long flags)
{
	struct sim_reservation *v;
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!ptr || !size || size % SIM_BLOCK || size > SIZE_MAX / 4 || flags ||
	    (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	v = calloc(1, sizeof(*v));
	if (!v)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim.lock);
	v->size = size;
	v->va = reserve(size, alignment > SIM_BLOCK ? alignment : SIM_BLOCK);
	if (v->va) {
		v->next = reservations;
		reservations = v;
		*ptr = v->va;
	} else {
		free(v);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

bool sim_vmm_reservation(const struct sim_range *range, uintptr_t *va, size_t *size)
{
	const struct sim_reservation *v;

	if (range->kind != SIM_DEVICE || range->ctx)
		return false;
	for (v = reservations; v; v = v->next)
		if (range->start >= v->va && range->start - v->va < v->size) {
			*va = v->va;
			*size = v->size;
			return true;
		}
	return false;
}

/* Does any memory lie there? sim.lock held. */
static bool is_mapped(uintptr_t va, size_t size)
{
	struct sim_vmm *v;

	for (v = vmms; v; v = v->next)
		if (v->block->va && va < v->block->va + v->block->size && v->block->va < va + size)
			return true;
	return false;
}

SIM_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct sim_reservation **link, *v;
	CUresult r = sim_enter();

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	for (link = &reservations; *link && (*link)->va != ptr; link = &(*link)->next)
		;
	v = *link;
	if (!v || v->size != size || is_mapped(ptr, size)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		*link = v->next;
		munmap((void *)v->va, v->size);
		freed_va = v->va;
		free(v);
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

/* -- memory -- */

SIM_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
				const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult r = sim_enter();
	struct sim_vmm *v;

	if (r)
		return r;
	if (!handle || !size || size % SIM_BLOCK || flags || !is_device_memory(prop))
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	v = calloc(1, sizeof(*v));
	if (!v)
		return CUDA_ERROR_OUT_OF_MEMORY;
	v->types = prop->requestedHandleTypes;
	v->refs = 1;
	pthread_mutex_lock(&sim.lock);
	r = sim_block_bare(prop->location.id, size, &v->block);
	if (!r) {
		v->handle = *handle = ++last_handle;
		v->next = vmms;
		vmms = v;
	}
	pthread_mutex_unlock(&sim.lock);
	if (r)
		free(v);
	return r;
}

SIM_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct sim_block *b = NULL;
	CUresult r = sim_enter();
	struct sim_vmm *v;

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	v = vmm_find(handle);
	if (v && v->refs) {
		v->refs--;
		b = vmm_drop(v);
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim.lock);
	if (b)
		sim_block_bare_free(b);
	return r;
}

SIM_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult r = sim_enter();
	struct sim_range *range;
	struct sim_vmm *v;

	if (r)
		return r;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	range = sim_range_find((uintptr_t)addr);
	v = range && range->kind == SIM_DEVICE ? vmm_of(range->block) : NULL;
	if (v) {
		v->refs++;
		*handle = v->handle;
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

/*
 * A descriptor that names the block: on a card one of the driver's control node, in host memory a
 * file with the name that gpu_sim_rm_object() takes. < 0: there is none.
 */
static int export_block(const struct sim_block *b)
{
	struct gpu_sim_export e = { .handle = b->handle };

	if (sim.host) {
		e.fd = memfd_create("gpu-sim", MFD_CLOEXEC);
		if (e.fd >= 0 && pwrite(e.fd, &b->object, sizeof(b->object), 0) ==
					 sizeof(b->object))
			return e.fd;
	} else {
		e.fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
		if (e.fd >= 0 && !ioctl(sim_device(b->dev)->fd, GPU_SIM_IOC_EXPORT, &e))
			return e.fd;
	}
	if (e.fd >= 0)
		close(e.fd);
	return -1;
}

SIM_EXPORT CUresult cuMemExportToShareableHandle(void *shareableHandle,
						 CUmemGenericAllocationHandle handle,
						 CUmemAllocationHandleType handleType,
						 unsigned long long flags)
{
	CUresult r = sim_enter();
	struct sim_vmm *v;
	int fd;

	if (r)
		return r;
	if (!shareableHandle || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	v = vmm_find(handle);
	if (!v || !v->refs || !(v->types & handleType)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		fd = export_block(v->block);
		if (fd < 0)
			r = CUDA_ERROR_OPERATING_SYSTEM;
		else
			memcpy(shareableHandle, &fd, sizeof(fd));
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

/* -- the one at the other; sim.lock held -- */

static bool is_reserved(uintptr_t va, size_t size)
{
	const struct sim_reservation *v;

	for (v = reservations; v; v = v->next)
		if (va >= v->va && va - v->va <= v->size && size <= v->size - (va - v->va))
			return true;
	return false;
}

/* va 0: away from where it is */
static CUresult move(struct sim_block *b, uintptr_t va)
{
	struct gpu_sim_map m = { .handle = b->handle, .va = va };
	const int fixed = MREMAP_MAYMOVE | MREMAP_FIXED;

	if (!sim.host)
		return ioctl(sim_device(b->dev)->fd, GPU_SIM_IOC_MAP, &m) ? CUDA_ERROR_UNKNOWN :
									  CUDA_SUCCESS;
	if (va)
		return mremap(b->cpu, 0, b->size, fixed, (void *)va) == (void *)va ?
			       CUDA_SUCCESS :
			       CUDA_ERROR_OUT_OF_MEMORY;
	return mmap((void *)b->va, b->size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED ?
		       CUDA_ERROR_OUT_OF_MEMORY :
		       CUDA_SUCCESS;
}

static CUresult map(struct sim_vmm *v, uintptr_t va)
{
	struct sim_block *b = v->block;
	struct sim_range range = {
		.kind = SIM_DEVICE, .start = va, .size = b->size, .room = b->size, .block = b,
		.closed = true,
	};
	CUresult r = move(b, va);

	if (r)
		return r;
	b->va = va;
	r = sim_range_add(&range);
	if (r) {
		move(b, 0);
		b->va = 0;
	}
	return r;
}

SIM_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
			     CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult r = sim_enter();
	struct sim_vmm *v;

	if (r)
		return r;
	if (offset || flags || ptr % SIM_BLOCK)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	v = vmm_find(handle);
	if (!v || !v->refs || !is_reserved(ptr, size) || is_mapped(ptr, size))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (v->block->size != size || v->block->va)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else
		r = map(v, ptr);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

/* The memory mapped at ptr, when that is all of size. */
static struct sim_vmm *mapped_at(uintptr_t ptr, size_t size)
{
	struct sim_vmm *v;

	for (v = vmms; v && !(v->block->va && v->block->va == ptr); v = v->next)
		;
	return v && v->block->size == size ? v : NULL;
}

SIM_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct sim_block *b = NULL;
	CUresult r = sim_enter();
	struct sim_vmm *v;
	CUcontext ctx;

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	/* work that may still use it ends first; the wait drops the lock */
	for (ctx = mapped_at(ptr, size) ? sim.contexts : NULL; ctx; ctx = ctx->next)
		sim_ctx_wait(ctx);
	v = mapped_at(ptr, size);
	if (!v) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		sim_range_remove(sim_range_find(ptr));
		r = move(v->block, 0);
		v->block->va = 0;
		b = vmm_drop(v);
	}
	pthread_mutex_unlock(&sim.lock);
	if (b)
		sim_block_bare_free(b);
	return r;
}

SIM_EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
				   size_t count)
{
	CUresult r = sim_enter();
	struct sim_vmm *v;

	if (r)
		return r;
	if (!desc || count != 1 || desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	v = mapped_at(ptr, size);
	if (!v)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (desc->location.id != v->block->dev)
		r = CUDA_ERROR_NOT_SUPPORTED;	/* a peer's */
	else
		sim_range_find(ptr)->closed = desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	pthread_mutex_unlock(&sim.lock);
	return r;
}
