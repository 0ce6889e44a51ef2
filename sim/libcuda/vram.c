// SPDX-License-Identifier: MIT
/*
 * vram.c - blocks of device memory: a reservation for the device address, the card's
 * pages behind it, and the private mapping that copies go through.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "internal.h"

/* Where a block was freed last: CUDA gives an address out again as soon as it can. */
static _Atomic uintptr_t freed_va;

static void *pages(uintptr_t at_va, size_t size)
{
	return mmap((void *)at_va, size, sim.host ? PROT_READ | PROT_WRITE : PROT_NONE,
		    (sim.host ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/*
 * Address space, aligned to 2 MiB, of whole 2-MiB blocks. NULL: there is none. Host memory that
 * stands for VRAM is shared: others may have a mapping of it, too.
 */
static void *reserve(size_t size)
{
	uintptr_t again_va = atomic_exchange(&freed_va, 0);
	uint8_t *p;
	size_t head;

	if (again_va) {
		p = pages(again_va, size);
		if (p == (void *)again_va)
			return p;
		if (p != MAP_FAILED)
			munmap(p, size);
	}
	p = pages(0, size + SIM_BLOCK);
	if (p == MAP_FAILED)
		return NULL;
	head = -(uintptr_t)p & (SIM_BLOCK - 1);
	if (head)
		munmap(p, head);
	munmap(p + head + size, SIM_BLOCK - head);
	return p + head;
}

static CUresult block_on_card(struct sim_device *d, struct sim_block *b)
{
	struct gpu_sim_alloc a = { .size = b->size, .va = b->va };
	struct gpu_sim_free f = { 0 };

	if (ioctl(d->fd, GPU_SIM_IOC_ALLOC, &a))
		return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY :
		       errno == ENODEV ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_UNKNOWN;
	b->handle = a.handle;
	b->object = a.object;
	b->cpu = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, a.handle);
	if (b->cpu == MAP_FAILED) {
		f.handle = a.handle;
		ioctl(d->fd, GPU_SIM_IOC_FREE, &f);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* sim.lock held. The lowest one that no block has: as the driver's, they come again. */
static uint32_t object_name(void)
{
	uint32_t name = 0x5c000000;
	const struct sim_block *o;

	do {
		name++;
		for (o = sim.blocks; o && o->object != name; o = o->next)
			;
	} while (o);
	return name;
}

/* sim.lock held */
static CUresult block_on_host(struct sim_device *d, struct sim_block *b)
{
	uint64_t *word = (uint64_t *)b->cpu;
	size_t i;

	if (b->size > d->info.vram_bytes - d->host_used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (i = 0; i < b->size / sizeof(*word); i++)
		word[i] = GPU_SIM_POISON;
	b->object = object_name();
	d->host_used += b->size;
	return CUDA_SUCCESS;
}

/* sim.lock held. */
CUresult sim_block_new(CUcontext ctx, size_t size, bool shared, struct sim_block **out)
{
	struct sim_device *d = sim_device(ctx->dev);
	struct sim_block *b;
	void *va;
	CUresult r;

	if (size > d->info.vram_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b = calloc(1, sizeof(*b));
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->size = (size + SIM_BLOCK - 1) & ~(SIM_BLOCK - 1);
	b->dev = ctx->dev;
	b->ctx = ctx;
	b->shared = shared;
	va = reserve(b->size);
	if (!va) {
		free(b);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	b->va = (uintptr_t)va;
	b->cpu = va;
	r = sim.host ? block_on_host(d, b) : block_on_card(d, b);
	if (r) {
		munmap(va, b->size);
		free(b);
		return r;
	}
	b->next = sim.blocks;
	sim.blocks = b;
	*out = b;
	return CUDA_SUCCESS;
}

/* sim.lock held. Memory without an address and of no context. */
CUresult sim_block_bare(CUdevice dev, size_t size, struct sim_block **out)
{
	struct sim_device *d = sim_device(dev);
	struct sim_block *b = calloc(1, sizeof(*b));
	void *cpu = MAP_FAILED;
	CUresult r;

	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->size = size;
	b->dev = dev;
	if (sim.host)
		cpu = pages(0, size);
	b->cpu = cpu;
	if (!sim.host)
		r = block_on_card(d, b);
	else
		r = cpu == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : block_on_host(d, b);
	if (r) {
		if (cpu != MAP_FAILED)
			munmap(cpu, size);
		free(b);
		return r;
	}
	b->next = sim.blocks;
	sim.blocks = b;
	*out = b;
	return CUDA_SUCCESS;
}

/* As sim_block_free(), of one that has no address any more. */
void sim_block_bare_free(struct sim_block *b)
{
	struct sim_device *d = sim_device(b->dev);
	struct gpu_sim_free f = { .handle = b->handle };

	munmap(b->cpu, b->size);
	if (sim.host) {
		pthread_mutex_lock(&sim.lock);
		d->host_used -= b->size;
		pthread_mutex_unlock(&sim.lock);
	} else {
		ioctl(d->fd, GPU_SIM_IOC_FREE, &f);
	}
	free(b);
}

/*
 * The block is off sim.blocks already. No lock is held: freeing waits for whoever pinned
 * the memory to let go of it, and that may need other threads of this process.
 */
void sim_block_free(struct sim_block *b)
{
	struct sim_device *d = sim_device(b->dev);
	struct gpu_sim_free f = { .handle = b->handle };

	if (sim.host) {
		pthread_mutex_lock(&sim.lock);
		d->host_used -= b->size;
		pthread_mutex_unlock(&sim.lock);
	} else {
		munmap(b->cpu, b->size);
		ioctl(d->fd, GPU_SIM_IOC_FREE, &f);
	}
	munmap((void *)b->va, b->size);
	atomic_store(&freed_va, b->va);
	free(b);
}

SIM_EXPORT int gpu_sim_where(const void *ptr, size_t size, struct gpu_sim_piece *pieces,
			     unsigned int n)
{
	struct gpu_sim_where w = {
		.va = (uintptr_t)ptr,
		.len = size,
		.pieces = (uintptr_t)pieces,
		.count = n,
	};
	struct sim_range *range;
	int fd = -1;

	if (sim_enter() || sim.host)
		return -ENODEV;
	pthread_mutex_lock(&sim.lock);
	range = sim_range_at((uintptr_t)ptr, size);
	if (range && range->kind == SIM_DEVICE)
		fd = sim.device[range->block->dev].fd;
	pthread_mutex_unlock(&sim.lock);
	if (fd < 0)
		return -ENOENT;
	return ioctl(fd, GPU_SIM_IOC_WHERE, &w) ? -errno : (int)w.count;
}
