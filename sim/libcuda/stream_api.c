// SPDX-License-Identifier: MIT
/*
 * stream_api.c - cuStream* and cuEvent*.
 */
#include <stdlib.h>

#include "internal.h"

void sim_event_unref(CUevent event)
{
	if (--event->refs == 0)
		free(event);
}

/* sim.lock is taken, and the handle is good, when this returns CUDA_SUCCESS. */
static CUresult lock_stream(CUstream handle, CUstream *s)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	pthread_mutex_lock(&sim.lock);
	r = sim_stream_get(handle, s);
	if (r)
		pthread_mutex_unlock(&sim.lock);
	return r;
}

static CUresult event_check(CUevent event)
{
	CUevent e;

	for (e = sim.events; e; e = e->next) {
		if (e == event)
			return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult lock_event(CUevent event)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	if (sim_in_host_function())
		return CUDA_ERROR_NOT_PERMITTED;
	pthread_mutex_lock(&sim.lock);
	r = event_check(event);
	if (r)
		pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	CUresult r = sim_enter();
	CUcontext ctx;

	if (r)
		return r;
	if (!phStream || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r)
		r = sim_stream_new(ctx, flags, priority, phStream);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return cuStreamCreateWithPriority(phStream, Flags, 0);
}

SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream)
{
	CUresult r;
	CUstream s;

	if (!hStream || hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	r = lock_stream(hStream, &s);
	if (r)
		return r;
	sim_stream_close(s);
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamSynchronize(CUstream hStream)
{
	struct sim_op *op;
	uint64_t seq;
	CUstream s;
	CUresult r = lock_stream(hStream, &s);

	if (r)
		return r;
	if (s != s->ctx->legacy) {
		sim_wait(s, s->queued);
	} else {
		/* an operation that does nothing, but waits for all that the stream waits for */
		op = calloc(1, sizeof(*op));
		r = op ? sim_enqueue(s, op, &seq) : CUDA_ERROR_OUT_OF_MEMORY;
		if (!r)
			sim_wait(s, seq);
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuStreamQuery(CUstream hStream)
{
	CUstream s, other;
	CUresult r = lock_stream(hStream, &s);

	if (r)
		return r;
	if (s->done < s->queued)
		r = CUDA_ERROR_NOT_READY;
	for (other = s == s->ctx->legacy ? s->ctx->streams : NULL; other; other = other->next) {
		if (!(other->flags & CU_STREAM_NON_BLOCKING) && other->done < other->queued)
			r = CUDA_ERROR_NOT_READY;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	CUstream s;
	CUresult r;

	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	r = lock_stream(hStream, &s);
	if (r)
		return r;
	*pctx = s->ctx;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	CUstream s;
	CUresult r;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = lock_stream(hStream, &s);
	if (r)
		return r;
	*flags = s->flags;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	CUstream s;
	CUresult r;

	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	r = lock_stream(hStream, &s);
	if (r)
		return r;
	*priority = s->priority;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

/* Queue a copy of what is asked for. sim.lock held. */
static CUresult queue(CUstream s, const struct sim_op *what)
{
	struct sim_op *op = malloc(sizeof(*op));

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*op = *what;
	if (op->event)
		op->event->refs++;
	return sim_enqueue(s, op, NULL);
}

static CUresult queue_on(CUstream handle, const struct sim_op *what)
{
	CUstream s;
	CUresult r = lock_stream(handle, &s);

	if (r)
		return r;
	r = queue(s, what);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct sim_op op = { .kind = SIM_OP_HOST, .fn = fn, .data = userData };

	return fn ? queue_on(hStream, &op) : CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
					unsigned int flags)
{
	struct sim_op op = { .kind = SIM_OP_CALLBACK, .callback = callback, .data = userData };

	return callback && !flags ? queue_on(hStream, &op) : CUDA_ERROR_INVALID_VALUE;
}

/* Write or wait for a value in device memory or in pinned host memory. */
static CUresult value_op(CUstream handle, CUdeviceptr addr, uint64_t value, unsigned int size,
			 unsigned int flags, enum sim_op_kind kind)
{
	struct sim_op op = { .kind = kind, .value = value, .size = size, .flags = flags };
	struct sim_range *range;
	CUstream s;
	CUresult r;

	if (!addr || addr % size)
		return CUDA_ERROR_INVALID_VALUE;
	r = lock_stream(handle, &s);
	if (r)
		return r;
	range = sim_range_at(addr, size);
	if (range) {
		op.dst = sim_range_cpu(range, addr);
		r = queue(s, &op);
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

static CUresult write_value(CUstream s, CUdeviceptr addr, uint64_t value, unsigned int size,
			    unsigned int flags)
{
	if (flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return value_op(s, addr, value, size, flags, SIM_OP_WRITE_VALUE);
}

static CUresult wait_value(CUstream s, CUdeviceptr addr, uint64_t value, unsigned int size,
			   unsigned int flags)
{
	if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (flags > CU_STREAM_WAIT_VALUE_NOR)
		return CUDA_ERROR_INVALID_VALUE;
	return value_op(s, addr, value, size, flags, SIM_OP_WAIT_VALUE);
}

SIM_EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					    unsigned int flags)
{
	return write_value(stream, addr, value, 4, flags);
}

SIM_EXPORT CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
					    unsigned int flags)
{
	return write_value(stream, addr, value, 8, flags);
}

SIM_EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					   unsigned int flags)
{
	return wait_value(stream, addr, value, 4, flags);
}

SIM_EXPORT CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
					   unsigned int flags)
{
	return wait_value(stream, addr, value, 8, flags);
}

SIM_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct sim_op op = { .kind = SIM_OP_WAIT_EVENT, .event = hEvent };
	CUstream s;
	CUresult r;

	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = lock_stream(hStream, &s);
	if (r)
		return r;
	r = event_check(hEvent);
	if (!r && hEvent->done < hEvent->wanted) {
		op.gen = hEvent->wanted;
		r = queue(s, &op);
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	const unsigned int known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
	CUresult r = sim_enter();
	CUcontext ctx;
	CUevent e;

	if (r)
		return r;
	if (!phEvent || Flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim.lock);
	r = sim_ctx_current(&ctx);
	if (!r) {
		e->refs = 1;
		e->flags = Flags;
		e->ctx = ctx;
		e->next = sim.events;
		sim.events = e;
		*phEvent = e;
	}
	pthread_mutex_unlock(&sim.lock);
	if (r)
		free(e);
	return r;
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent hEvent)
{
	CUresult r = lock_event(hEvent);
	CUevent *link;

	if (r)
		return r;
	for (link = &sim.events; *link != hEvent; link = &(*link)->next)
		;
	*link = hEvent->next;
	sim_event_unref(hEvent);
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	struct sim_op op = { .kind = SIM_OP_RECORD, .event = hEvent };
	CUstream s;
	CUresult r = lock_stream(hStream, &s);

	if (r)
		return r;
	r = event_check(hEvent);
	if (!r && hEvent->ctx != s->ctx)
		r = CUDA_ERROR_INVALID_HANDLE;
	if (!r) {
		op.gen = hEvent->wanted + 1;
		r = queue(s, &op);
	}
	if (!r)
		hEvent->wanted = op.gen;
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuEventQuery(CUevent hEvent)
{
	CUresult r = lock_event(hEvent);

	if (r)
		return r;
	if (hEvent->done < hEvent->wanted)
		r = CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent hEvent)
{
	CUresult r = lock_event(hEvent);
	uint64_t gen;

	if (r)
		return r;
	gen = hEvent->wanted;
	hEvent->refs++;
	while (hEvent->done < gen)
		pthread_cond_wait(&sim.changed, &sim.lock);
	sim_event_unref(hEvent);
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	CUresult r;

	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	r = lock_event(hStart);
	if (r)
		return r;
	r = event_check(hEnd);
	if (r || (hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING || !hStart->wanted ||
	    !hEnd->wanted)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (hStart->done < hStart->wanted || hEnd->done < hEnd->wanted)
		r = CUDA_ERROR_NOT_READY;
	else
		*pMilliseconds = (float)((double)(int64_t)(hEnd->ns - hStart->ns) / 1e6);
	pthread_mutex_unlock(&sim.lock);
	return r;
}

SIM_ALIAS(cuStreamDestroy_v2, "cuStreamDestroy");
SIM_ALIAS(cuEventDestroy_v2, "cuEventDestroy");
SIM_ALIAS(cuEventElapsedTime_v2, "cuEventElapsedTime");
SIM_ALIAS(cuStreamWriteValue32_v2, "cuStreamWriteValue32");
SIM_ALIAS(cuStreamWriteValue64_v2, "cuStreamWriteValue64");
SIM_ALIAS(cuStreamWaitValue32_v2, "cuStreamWaitValue32");
SIM_ALIAS(cuStreamWaitValue64_v2, "cuStreamWaitValue64");
