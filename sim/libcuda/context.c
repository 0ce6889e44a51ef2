// SPDX-License-Identifier: MIT
/*
 * context.c - primary and own contexts, and the stack of current ones of each thread.
 */
#include <stdlib.h>

#include "internal.h"

#define STACK_DEPTH 64

/* A destroyed context may still stand here; sim_ctx_exists() tells. */
static __thread struct {
	CUcontext ctx[STACK_DEPTH];
	unsigned int depth;
} stack;

bool sim_ctx_exists(CUcontext ctx)
{
	CUcontext c;

	for (c = sim.contexts; c; c = c->next) {
		if (c == ctx)
			return true;
	}
	return false;
}

/* The context an API call works in; also refuses calls out of host functions. */
CUresult sim_ctx_current(CUcontext *ctx)
{
	if (sim_in_host_function())
		return CUDA_ERROR_NOT_PERMITTED;
	*ctx = stack.depth ? stack.ctx[stack.depth - 1] : NULL;
	if (!*ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return sim_ctx_exists(*ctx) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* sim.lock held. */
static CUresult ctx_new(CUdevice dev, unsigned int flags, bool primary, CUcontext *out)
{
	CUcontext ctx = calloc(1, sizeof(*ctx));
	CUresult r;

	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->dev = dev;
	ctx->flags = flags;
	ctx->primary = primary;
	r = sim_stream_new(ctx, CU_STREAM_DEFAULT, 0, &ctx->legacy);
	if (r) {
		free(ctx);
		return r;
	}
	ctx->next = sim.contexts;
	sim.contexts = ctx;
	*out = ctx;
	return CUDA_SUCCESS;
}

/* Let its work end, then take everything that lives in it. sim.lock held; dropped inside. */
static void ctx_free(CUcontext ctx)
{
	CUcontext *link;
	CUevent *event, e;
	CUstream s;

	sim_ctx_wait(ctx);
	for (link = &sim.contexts; *link; link = &(*link)->next) {
		if (*link == ctx) {
			*link = ctx->next;
			break;
		}
	}
	while ((s = ctx->streams)) {
		sim_stream_unlink(s);
		if (!s->closing)
			sim_stream_close(s);
	}
	for (event = &sim.events; *event;) {
		e = *event;
		if (e->ctx != ctx) {
			event = &e->next;
			continue;
		}
		*event = e->next;
		sim_event_unref(e);
	}
	pthread_mutex_unlock(&sim.lock);
	sim_ctx_free_memory(ctx);
	pthread_mutex_lock(&sim.lock);
	free(ctx);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult r = sim_enter();
	struct sim_device *d;

	if (r)
		return r;
	d = sim_device(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	if (!d->primary)
		r = ctx_new(dev, d->primary_flags, true, &d->primary);
	if (!r) {
		d->primary->retained++;
		*pctx = d->primary;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

/* Drop one retain, or all of them. */
static CUresult primary_drop(CUdevice dev, bool all)
{
	CUresult r = sim_enter();
	struct sim_device *d;
	CUcontext gone = NULL;

	if (r)
		return r;
	d = sim_device(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&sim.lock);
	if (!d->primary && !all)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (d->primary && (all || --d->primary->retained == 0))
		gone = d->primary;
	if (gone) {
		d->primary = NULL;
		ctx_free(gone);
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return primary_drop(dev, false);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return primary_drop(dev, true);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	CUresult r = sim_enter();
	struct sim_device *d;

	if (r)
		return r;
	d = sim_device(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned int)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	d->primary_flags = flags;
	if (d->primary)
		d->primary->flags = flags;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult r = sim_enter();
	struct sim_device *d;

	if (r)
		return r;
	d = sim_device(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	*flags = d->primary_flags;
	*active = d->primary != NULL;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext ctx)
{
	if (stack.depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack.ctx[stack.depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);
CUresult cuCtxCreate_v3(CUcontext *pctx, void *params, int n, unsigned int flags, CUdevice dev);

SIM_EXPORT CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!pctx || flags & ~(unsigned int)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&sim.lock);
	r = stack.depth == STACK_DEPTH ? CUDA_ERROR_OUT_OF_MEMORY :
					 ctx_new(dev, flags, false, pctx);
	if (!r)
		r = push(*pctx);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

/* Execution affinity: there is nothing to share out here. */
SIM_EXPORT CUresult cuCtxCreate_v3(CUcontext *pctx, void *params, int n, unsigned int flags,
				   CUdevice dev)
{
	if (params || n)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuCtxCreate_v2(pctx, flags, dev);
}

SIM_EXPORT CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params,
				   unsigned int flags, CUdevice dev)
{
	if (params)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuCtxCreate_v2(pctx, flags, dev);
}

SIM_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	if (!sim_ctx_exists(ctx) || ctx->primary) {
		r = CUDA_ERROR_INVALID_CONTEXT;
	} else {
		if (stack.depth && stack.ctx[stack.depth - 1] == ctx)
			stack.depth--;
		ctx_free(ctx);
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	if (ctx && !sim_ctx_exists(ctx)) {
		r = CUDA_ERROR_INVALID_CONTEXT;
	} else {
		if (stack.depth)
			stack.depth--;
		if (ctx)
			r = push(ctx);
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = stack.depth ? stack.ctx[stack.depth - 1] : NULL;
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_exists(ctx) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (pctx)
		*pctx = stack.ctx[stack.depth];
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	CUresult r = sim_enter();
	CUcontext ctx;

	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r)
		*device = ctx->dev;
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuCtxSynchronize(void)
{
	CUresult r = sim_enter();
	CUcontext ctx;

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r)
		sim_ctx_wait(ctx);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_ALIAS(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease");
SIM_ALIAS(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset");
SIM_ALIAS(cuDevicePrimaryCtxSetFlags_v2, "cuDevicePrimaryCtxSetFlags");
SIM_ALIAS(cuCtxDestroy_v2, "cuCtxDestroy");
SIM_ALIAS(cuCtxPushCurrent_v2, "cuCtxPushCurrent");
SIM_ALIAS(cuCtxPopCurrent_v2, "cuCtxPopCurrent");
