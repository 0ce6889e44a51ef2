// SPDX-License-Identifier: MIT
/*
 * copy.c - copies and fills. What the caller waits for, as with CUDA:
 *
 *   host, pinned      asynchronous calls read and write it when the stream gets there
 *   host, pageable    as a source it is read before an asynchronous call returns; as a
 *                     target the call returns when it is written
 *   device to device, fills: also the plain calls return before they are done
 *   pageable to device: also the plain call returns when the source has been read
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum side { ANY, HOST, DEVICE };

struct end {
	uint8_t *cpu;
	bool device;
	bool pageable;
	bool sync_memops;
};

static CUresult resolve(uintptr_t addr, size_t size, enum side side, struct end *end)
{
	struct sim_range *range = sim_range_find(addr);

	if (!range) {
		/* a hole of a device block, or a host address nobody told us of */
		if (!addr || side == DEVICE || sim_block_find(addr))
			return CUDA_ERROR_INVALID_VALUE;
		end->cpu = (uint8_t *)addr;
		end->pageable = true;
		return CUDA_SUCCESS;
	}
	if (!sim_range_at(addr, size) || range->closed ||
	    (side == HOST && range->kind == SIM_DEVICE))
		return CUDA_ERROR_INVALID_VALUE;
	end->cpu = sim_range_cpu(range, addr);
	end->device = range->kind == SIM_DEVICE;
	end->sync_memops = range->sync_memops;
	return CUDA_SUCCESS;
}

/* sim.lock held. */
static CUresult enqueue_and_wait(CUstream stream, struct sim_op *op, bool wait)
{
	uint64_t seq;
	CUresult r;

	op->prompt = wait;
	r = sim_enqueue(stream, op, &seq);
	if (!r && wait)
		sim_wait(stream, seq);
	return r;
}

static CUresult copy_locked(uintptr_t dst, uintptr_t src, size_t size, enum side dst_side,
			    enum side src_side, CUstream handle, bool async)
{
	struct end to = { 0 }, from = { 0 };
	struct sim_op *op;
	CUstream stream;
	CUresult r;
	bool wait;

	r = sim_stream_get(handle, &stream);
	if (r || !size)
		return r;
	r = resolve(dst, size, dst_side, &to);
	if (!r)
		r = resolve(src, size, src_side, &from);
	if (r)
		return r;
	wait = !(to.device && (from.device || from.pageable)) && !async;
	wait = wait || to.pageable || to.sync_memops || from.sync_memops;
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->kind = SIM_OP_COPY;
	op->dst = to.cpu;
	op->src = from.cpu;
	op->size = size;
	if (from.pageable && !wait) {
		op->staging = malloc(size);
		if (!op->staging) {
			free(op);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(op->staging, from.cpu, size);
		op->src = op->staging;
	}
	return enqueue_and_wait(stream, op, wait);
}

/* Of mapped memory what is in one mapping: the next one begins where it ends. */
static size_t in_one(uintptr_t addr, size_t size)
{
	struct sim_range *range = sim_range_find(addr);
	size_t left;

	if (!range || range->kind != SIM_DEVICE || range->ctx)
		return size;
	left = range->size - (addr - range->start);
	return left < size ? left : size;
}

/* All of it can be copied: nothing of a copy that cannot is done. */
static CUresult resolve_all(uintptr_t addr, size_t size, enum side side)
{
	CUresult r = CUDA_SUCCESS;
	struct end end;
	size_t n;

	for (; !r && size; addr += n, size -= n) {
		n = in_one(addr, size);
		r = resolve(addr, n, side, &end);
	}
	return r;
}

/* sim.lock held. A copy over several mappings is one of each of them. */
static CUresult copy_all(uintptr_t dst, uintptr_t src, size_t size, enum side dst_side,
			 enum side src_side, CUstream stream, bool async)
{
	size_t n = in_one(dst, in_one(src, size));
	CUresult r;

	if (n == size)
		return copy_locked(dst, src, size, dst_side, src_side, stream, async);
	r = resolve_all(dst, size, dst_side);
	if (!r)
		r = resolve_all(src, size, src_side);
	for (; !r && size; dst += n, src += n, size -= n) {
		n = in_one(dst, in_one(src, size));
		r = copy_locked(dst, src, n, dst_side, src_side, stream, async);
	}
	return r;
}

static CUresult copy(uintptr_t dst, uintptr_t src, size_t size, enum side dst_side,
		     enum side src_side, CUstream stream, bool async)
{
	CUresult r = sim_enter();
	CUcontext ctx;

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r)
		r = copy_all(dst, src, size, dst_side, src_side, stream, async);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy(dst, src, ByteCount, ANY, ANY, NULL, false);
}

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy(dstDevice, (uintptr_t)srcHost, ByteCount, DEVICE, HOST, NULL, false);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy((uintptr_t)dstHost, srcDevice, ByteCount, HOST, DEVICE, NULL, false);
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
				    size_t ByteCount)
{
	return copy(dstDevice, srcDevice, ByteCount, DEVICE, DEVICE, NULL, false);
}

SIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
				  CUstream hStream)
{
	return copy(dst, src, ByteCount, ANY, ANY, hStream, true);
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost,
					 size_t ByteCount, CUstream hStream)
{
	return copy(dstDevice, (uintptr_t)srcHost, ByteCount, DEVICE, HOST, hStream, true);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
					 CUstream hStream)
{
	return copy((uintptr_t)dstHost, srcDevice, ByteCount, HOST, DEVICE, hStream, true);
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
					 size_t ByteCount, CUstream hStream)
{
	return copy(dstDevice, srcDevice, ByteCount, DEVICE, DEVICE, hStream, true);
}

/* sim.lock held. In one mapping. */
static CUresult fill_locked(uintptr_t dst, uint64_t value, unsigned int width, size_t size,
			    CUstream stream, bool async)
{
	struct end to = { 0 };
	struct sim_op *op;
	CUresult r;

	r = resolve(dst, size, DEVICE, &to);
	if (r)
		return r;
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->kind = SIM_OP_SET;
	op->dst = to.cpu;
	op->size = size;
	op->value = value;
	op->width = width;
	return enqueue_and_wait(stream, op, to.sync_memops || (!to.device && !async));
}

static CUresult fill(uintptr_t dst, uint64_t value, unsigned int width, size_t n, CUstream handle,
		     bool async)
{
	CUresult r = sim_enter();
	CUstream stream;
	CUcontext ctx;
	size_t size;

	if (r)
		return r;
	if (dst % width || n > SIZE_MAX / 2 / width)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r)
		r = sim_stream_get(handle, &stream);
	size = n * width;
	if (!r)
		r = resolve_all(dst, size, DEVICE);
	for (; !r && size; dst += n, size -= n) {
		n = in_one(dst, size);
		r = fill_locked(dst, value, width, n, stream, async);
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return fill(dstDevice, uc, 1, N, NULL, false);
}

SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return fill(dstDevice, ui, 4, N, NULL, false);
}

SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
				    CUstream hStream)
{
	return fill(dstDevice, uc, 1, N, hStream, true);
}

SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
				     CUstream hStream)
{
	return fill(dstDevice, ui, 4, N, hStream, true);
}
