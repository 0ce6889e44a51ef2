/* SPDX-License-Identifier: MIT */
/*
 * t_sim.h - what the tests of the simulated CUDA share. Included by one C file a program.
 */
#ifndef T_SIM_H
#define T_SIM_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda.h"
#include "cuda_runtime.h"
#include "gpu_sim.h"

#define MIB ((size_t)1 << 20)
#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static CUcontext ctx;	/* current, during a test */

static inline int setup(void **state)
{
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	return 0;
}

static inline int teardown(void **state)
{
	size_t free_bytes, total;

	/* a test that lost memory fails here */
	OK(cuMemGetInfo(&free_bytes, &total));
	assert_int_equal(free_bytes, total);
	OK(cuCtxSetCurrent(NULL));
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}

static inline CUdeviceptr alloc(size_t size)
{
	CUdeviceptr p;

	OK(cuMemAlloc(&p, size));
	return p;
}

/* A stream that does nothing until open_gate(). */
struct gate {
	CUstream stream;
	uint32_t *flag;
};

static inline void make_gate(struct gate *g, unsigned int flags)
{
	OK(cuStreamCreate(&g->stream, flags));
	OK(cuMemHostAlloc((void **)&g->flag, 4096, 0));
	*g->flag = 0;
	OK(cuStreamWaitValue32(g->stream, (uintptr_t)g->flag, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static inline void open_gate(struct gate *g)
{
	__atomic_store_n(g->flag, 1, __ATOMIC_RELEASE);
}

static inline void free_gate(struct gate *g)
{
	OK(cuStreamSynchronize(g->stream));
	OK(cuStreamDestroy(g->stream));
	OK(cuMemFreeHost(g->flag));
}

static inline bool poisoned(CUdeviceptr p, size_t size)
{
	uint64_t *buf = malloc(size);
	bool yes = true;
	size_t i;

	OK(cuMemcpyDtoH(buf, p, size));
	for (i = 0; i < size / sizeof(*buf); i++)
		yes = yes && buf[i] == GPU_SIM_POISON;
	free(buf);
	return yes;
}

/* The simulator's own settings, before its first use. */
static inline void settings(void)
{
	setenv("GPU_SIM_HOST_GPUS", "2", 1);
	setenv("GPU_SIM_HOST_MB", "64", 1);
	setenv("GPU_SIM_DELAY_US", "300", 1);
	setenv("GPU_SIM_SEED", "42", 1);
}

#define T_SIM(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif /* T_SIM_H */
