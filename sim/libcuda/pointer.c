// SPDX-License-Identifier: MIT
/*
 * pointer.c - what CUDA tells about a pointer.
 */
#include <string.h>

#include "internal.h"

/* The size of an attribute's value; 0: not known here. */
static size_t attribute_size(CUpointer_attribute a)
{
	switch (a) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return 8;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return 4;
	/* unsigned int by the reference; the driver writes it as one */
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		return 4;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return 1;
	default:
		return 0;
	}
}

/* The value as a number, little endian. False: the range has no such attribute. */
static bool attribute_value(const struct sim_range *range, uintptr_t addr, CUpointer_attribute a,
			    uint64_t *value)
{
	bool device = range->kind == SIM_DEVICE;
	uintptr_t start = range->start;
	size_t size = range->size;

	/* of mapped memory the reservation is told, as CUDA's reference has it */
	if (a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || a == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
		sim_vmm_reservation(range, &start, &size);
	switch (a) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*value = (uintptr_t)range->ctx;
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*value = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*value = addr;
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*value = addr;
		return !device;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*value = range->sync_memops;
		return true;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*value = range->id;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*value = device ? range->block->dev : range->ctx->dev;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*value = start;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*value = size;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*value = 1;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*value = device ? range->block->size : range->size;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*value = device ? range->block->va : range->start;
		return true;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*value = 3;	/* read and write */
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*value = device ? range->block->handle : range->id;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*value = device && !sim.host;
		return true;
	default:
		*value = 0;
		return true;
	}
}

static CUresult get(void *data, CUpointer_attribute a, CUdeviceptr ptr, bool missing_is_zero)
{
	size_t size = attribute_size(a);
	struct sim_range *range;
	uint64_t value = 0;
	CUcontext ctx;
	CUresult r;

	if (!data || !size)
		return a == CU_POINTER_ATTRIBUTE_P2P_TOKENS ? CUDA_ERROR_NOT_SUPPORTED :
							      CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (r == CUDA_ERROR_INVALID_CONTEXT)
		r = CUDA_SUCCESS;	/* the question needs no context */
	if (!r) {
		range = sim_range_find(ptr);
		if (range ? !attribute_value(range, ptr, a, &value) : true)
			r = CUDA_ERROR_INVALID_VALUE;
		/* what stands in the list of attributes that were asked for in one go */
		if (r && missing_is_zero) {
			value = a == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint32_t)-2 : 0;
			r = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&sim.lock);
	if (!r)
		memcpy(data, &value, size);
	return r;
}

SIM_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
					  CUdeviceptr ptr)
{
	CUresult r = sim_enter();

	return r ? r : get(data, attribute, ptr, false);
}

SIM_EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes,
					   CUpointer_attribute *attributes, void **data,
					   CUdeviceptr ptr)
{
	CUresult r = sim_enter();
	unsigned int i;

	if (r)
		return r;
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < numAttributes && !r; i++)
		r = get(data[i], attributes[i], ptr, true);
	return r;
}

SIM_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
					  CUdeviceptr ptr)
{
	CUresult r = sim_enter();
	struct sim_range *range;
	unsigned int on;

	if (r)
		return r;
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&on, value, sizeof(on));
	pthread_mutex_lock(&sim.lock);
	range = sim_range_find(ptr);
	if (range && range->kind == SIM_DEVICE)
		range->sync_memops = on != 0;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sim.lock);
	return r;
}
