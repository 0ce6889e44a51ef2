// SPDX-License-Identifier: MIT
/*
 * stream.c - streams that are late. Each has its own thread; an operation starts after
 * what it depends on, plus a random delay, and only then reads its source.
 *
 * Legacy default stream: an operation in it follows everything queued before in the
 * blocking streams of its context, and what they queue later follows it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

static __thread bool in_host_function;

bool sim_in_host_function(void)
{
	return in_host_function;
}

static uint64_t next_random(uint64_t *state)
{
	/* splitmix64: any seed will do, 0 too */
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static void sleep_us(uint64_t us)
{
	struct timespec ts = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

void sim_stream_unref(CUstream stream)
{
	if (--stream->refs == 0)
		free(stream);
}

void sim_stream_unlink(CUstream stream)
{
	CUstream *link;

	if (!stream->ctx)
		return;
	for (link = &stream->ctx->streams; *link; link = &(*link)->next) {
		if (*link == stream) {
			*link = stream->next;
			break;
		}
	}
	stream->ctx = NULL;
}

CUresult sim_stream_new(CUcontext ctx, unsigned int flags, int priority, CUstream *out)
{
	CUstream s = calloc(1, sizeof(*s));

	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->ctx = ctx;
	s->flags = flags;
	s->priority = priority;
	s->refs = 1;
	s->tail = &s->head;
	s->random = sim.seed + (sim.nstreams++ << 32);
	s->next = ctx->streams;
	ctx->streams = s;
	*out = s;
	return CUDA_SUCCESS;
}

static bool is_blocking(const struct CUstream_st *s)
{
	return !(s->flags & CU_STREAM_NON_BLOCKING);
}

/* The work that is in flight now in the streams of ctx, but for one. */
static CUresult snapshot(CUcontext ctx, CUstream except, bool blocking_only, struct sim_dep **out,
			 unsigned int *n)
{
	struct sim_dep *deps;
	unsigned int room = 0;
	CUstream s;

	*out = NULL;
	*n = 0;
	for (s = ctx->streams; s; s = s->next)
		room++;
	deps = calloc(room + 1, sizeof(*deps));
	if (!deps)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (s = ctx->streams; s; s = s->next) {
		if (s == except || s->done == s->queued || (blocking_only && !is_blocking(s)))
			continue;
		s->refs++;
		deps[*n].stream = s;
		deps[(*n)++].seq = s->queued;
	}
	*out = deps;
	return CUDA_SUCCESS;
}

static void wait_deps(struct sim_dep *deps, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		while (deps[i].stream->done < deps[i].seq)
			pthread_cond_wait(&sim.changed, &sim.lock);
		sim_stream_unref(deps[i].stream);
	}
	free(deps);
}

void sim_wait(CUstream stream, uint64_t seq)
{
	stream->refs++;
	while (stream->done < seq)
		pthread_cond_wait(&sim.changed, &sim.lock);
	sim_stream_unref(stream);
}

/* Everything queued so far in the context is done. */
void sim_ctx_wait(CUcontext ctx)
{
	struct sim_dep *deps;
	unsigned int n;
	CUstream s;

	if (!snapshot(ctx, NULL, false, &deps, &n)) {
		wait_deps(deps, n);
		return;
	}
	/* no memory for the list: wait until nothing runs at all */
	for (s = ctx->streams; s; s = s->done < s->queued ? ctx->streams : s->next) {
		if (s->done < s->queued)
			pthread_cond_wait(&sim.changed, &sim.lock);
	}
}

static void fill(const struct sim_op *op)
{
	uint32_t word = op->value;
	size_t i;

	if (op->width == 1) {
		memset(op->dst, (int)op->value, op->size);
		return;
	}
	for (i = 0; i < op->size; i += sizeof(word))
		memcpy(op->dst + i, &word, sizeof(word));
}

static bool value_has_come(const struct sim_op *op)
{
	uint64_t now, want = op->value;

	if (op->size == 4)
		now = __atomic_load_n((uint32_t *)op->dst, __ATOMIC_ACQUIRE);
	else
		now = __atomic_load_n((uint64_t *)op->dst, __ATOMIC_ACQUIRE);
	switch (op->flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return op->size == 4 ? (int32_t)(uint32_t)(now - want) >= 0 :
				       (int64_t)(now - want) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == want;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & want) != 0;
	default:
		return (op->size == 4 ? (uint32_t)~(now | want) : ~(now | want)) != 0;
	}
}

/* What needs no lock; in the stream's thread. */
static void execute(CUstream handle, struct sim_op *op)
{
	switch (op->kind) {
	case SIM_OP_COPY:
		memmove(op->dst, op->src, op->size);
		break;
	case SIM_OP_SET:
		fill(op);
		break;
	case SIM_OP_HOST:
	case SIM_OP_CALLBACK:
		in_host_function = true;
		if (op->fn)
			op->fn(op->data);
		else
			op->callback(handle, CUDA_SUCCESS, op->data);
		in_host_function = false;
		break;
	case SIM_OP_WRITE_VALUE:
		if (op->size == 4)
			__atomic_store_n((uint32_t *)op->dst, (uint32_t)op->value,
					 __ATOMIC_RELEASE);
		else
			__atomic_store_n((uint64_t *)op->dst, op->value, __ATOMIC_RELEASE);
		break;
	case SIM_OP_WAIT_VALUE:
		while (!value_has_come(op))
			sleep_us(20);
		break;
	default:
		break;
	}
	/* write-combined stores are out before anybody is told */
	__sync_synchronize();
}

static void op_free(struct sim_op *op)
{
	if (op->event)
		sim_event_unref(op->event);
	free(op->staging);
	free(op);
}

static void run_one(CUstream s, struct sim_op *op)
{
	struct timespec now;

	wait_deps(op->deps, op->ndeps);
	if (op->kind == SIM_OP_WAIT_EVENT) {
		while (op->event->done < op->gen)
			pthread_cond_wait(&sim.changed, &sim.lock);
	} else if (op->kind != SIM_OP_NOP) {
		pthread_mutex_unlock(&sim.lock);
		if (!op->prompt && sim.delay_us)
			sleep_us(next_random(&s->random) % (sim.delay_us + 1));
		execute(s, op);
		pthread_mutex_lock(&sim.lock);
	}
	if (op->kind == SIM_OP_RECORD && op->event->done < op->gen) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		op->event->ns = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
		op->event->done = op->gen;
	}
}

static void *stream_thread(void *arg)
{
	CUstream s = arg;
	struct sim_op *op;

	pthread_mutex_lock(&sim.lock);
	for (;;) {
		while (!s->head && !s->closing)
			pthread_cond_wait(&sim.changed, &sim.lock);
		op = s->head;
		if (!op)
			break;
		s->head = op->next;
		if (!s->head)
			s->tail = &s->head;
		run_one(s, op);
		s->done = op->seq;
		op_free(op);
		pthread_cond_broadcast(&sim.changed);
	}
	sim_stream_unlink(s);
	sim_stream_unref(s);
	pthread_mutex_unlock(&sim.lock);
	return NULL;
}

/* Signals are the program's business, not that of our threads. */
static bool start_thread(CUstream s)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&thread, &attr, stream_thread, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		return false;
	s->refs++;
	s->has_thread = true;
	return true;
}

/* Takes the operation over, also when it fails. */
CUresult sim_enqueue(CUstream s, struct sim_op *op, uint64_t *seq)
{
	CUstream legacy = s->ctx->legacy;
	CUresult r = CUDA_SUCCESS;

	if (!s->has_thread && !start_thread(s))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r && s == legacy) {
		r = snapshot(s->ctx, s, true, &op->deps, &op->ndeps);
	} else if (!r && is_blocking(s) && legacy->done < legacy->queued) {
		op->deps = calloc(1, sizeof(*op->deps));
		if (op->deps) {
			legacy->refs++;
			op->deps[0].stream = legacy;
			op->deps[0].seq = legacy->queued;
			op->ndeps = 1;
		} else {
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (r) {
		op_free(op);
		return r;
	}
	op->seq = ++s->queued;
	if (seq)
		*seq = op->seq;
	*s->tail = op;
	s->tail = &op->next;
	pthread_cond_broadcast(&sim.changed);
	return CUDA_SUCCESS;
}

/* The handle's reference goes; queued work still runs. */
void sim_stream_close(CUstream s)
{
	s->closing = true;
	if (!s->has_thread || s->done == s->queued)
		sim_stream_unlink(s);
	pthread_cond_broadcast(&sim.changed);
	sim_stream_unref(s);
}

/* What a caller's handle means, in the current context. */
CUresult sim_stream_get(CUstream handle, CUstream *out)
{
	static __thread char self;	/* its address names the thread */
	CUcontext ctx;
	CUresult r;
	CUstream s;

	r = sim_ctx_current(&ctx);
	if (r)
		return r;
	if (!handle || handle == CU_STREAM_LEGACY) {
		*out = ctx->legacy;
		return CUDA_SUCCESS;
	}
	if (handle == CU_STREAM_PER_THREAD) {
		for (s = ctx->streams; s; s = s->next) {
			if (s->per_thread == &self) {
				*out = s;
				return CUDA_SUCCESS;
			}
		}
		r = sim_stream_new(ctx, CU_STREAM_DEFAULT, 0, out);
		if (!r)
			(*out)->per_thread = &self;
		return r;
	}
	for (ctx = sim.contexts; ctx; ctx = ctx->next) {
		for (s = ctx->streams; s; s = s->next) {
			if (s == handle && !s->closing && s != ctx->legacy) {
				*out = s;
				return CUDA_SUCCESS;
			}
		}
	}
	return CUDA_ERROR_INVALID_HANDLE;
}
