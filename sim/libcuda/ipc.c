// SPDX-License-Identifier: MIT
/*
 * ipc.c - CUDA IPC handles. Their 64 bytes hold what driver 580 puts there: words 4 and 5 the
 * size of the allocation, word 7 its place in the driver's object, 12 and 13 client and object.
 * On a card these are the module's names; by them /dev/nvidiactl gives the memory another one.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

SIM_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	uint32_t word[sizeof(*pHandle) / sizeof(uint32_t)] = { 0 };
	CUresult r = sim_enter();
	struct sim_range *range;

	if (r)
		return r;
	if (!pHandle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	range = sim_range_find(dptr);
	if (range && range->kind == SIM_DEVICE && range->ctx) {
		word[4] = range->size;
		word[5] = (uint64_t)range->size >> 32;
		word[7] = range->start - range->block->va;
		word[12] = sim_device(range->block->dev)->info.rm_client;
		word[13] = range->block->object;
		memcpy(pHandle, word, sizeof(word));
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT int gpu_sim_rm_object(uint32_t object, void **at, size_t *size)
{
	struct sim_block *b;
	int r = -ENOENT;

	if (sim_enter() || !sim.host)
		return -ENOENT;
	pthread_mutex_lock(&sim.lock);
	for (b = sim.blocks; b && r; b = b->next)
		if (b->object == object && b->va) {
			*at = (void *)b->va;
			*size = b->size;
			r = 0;
		}
	pthread_mutex_unlock(&sim.lock);
	return r;
}
