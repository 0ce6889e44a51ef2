// SPDX-License-Identifier: MIT
/*
 * t_sim_stream.c - the simulated CUDA's streams are late. What must be seen late is held
 * back by a value that the stream waits for, so nothing here depends on timing.
 */
#include "t_sim.h"

/* A copy from pinned or device memory takes what is there when the stream gets to it. */
static void late_source(void **state)
{
	CUdeviceptr dev = alloc(4096), other = alloc(4096);
	unsigned char *pinned, out[4096];
	struct gate g;

	OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	memset(pinned, 1, 4096);
	make_gate(&g, CU_STREAM_NON_BLOCKING);
	OK(cuMemcpyHtoDAsync(dev, pinned, 4096, g.stream));
	OK(cuMemcpyDtoDAsync(other, dev, 2048, g.stream));
	assert_int_equal(cuStreamQuery(g.stream), CUDA_ERROR_NOT_READY);
	assert_true(poisoned(dev, 4096));
	memset(pinned, 2, 4096);
	open_gate(&g);
	free_gate(&g);
	OK(cuMemcpyDtoH(out, dev, 4096));
	assert_int_equal(out[0], 2);
	assert_int_equal(out[4095], 2);
	OK(cuMemcpyDtoH(out, other, 4096));
	assert_int_equal(out[2047], 2);
	assert_int_not_equal(out[2048], 2);
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(dev));
	OK(cuMemFree(other));
}

/* The target of a late copy holds the old bytes until then. */
static void late_target(void **state)
{
	CUdeviceptr dev = alloc(4096);
	unsigned char *pinned;
	struct gate g;

	OK(cuMemsetD8(dev, 5, 4096));
	OK(cuCtxSynchronize());
	OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	memset(pinned, 1, 4096);
	make_gate(&g, CU_STREAM_NON_BLOCKING);
	OK(cuMemcpyDtoHAsync(pinned, dev, 4096, g.stream));
	assert_int_equal(pinned[0], 1);
	assert_int_equal(pinned[4095], 1);
	open_gate(&g);
	OK(cuStreamSynchronize(g.stream));
	assert_int_equal(pinned[0], 5);
	assert_int_equal(pinned[4095], 5);
	free_gate(&g);
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(dev));
}

/* A pageable source belongs to the caller again when the call returns. */
static void pageable_source(void **state)
{
	unsigned char *in = malloc(4096), out[4096];
	CUdeviceptr dev = alloc(4096);
	struct gate g;

	memset(in, 1, 4096);
	make_gate(&g, CU_STREAM_NON_BLOCKING);
	OK(cuMemcpyHtoDAsync(dev, in, 4096, g.stream));
	memset(in, 2, 4096);
	free(in);
	assert_true(poisoned(dev, 4096));
	open_gate(&g);
	free_gate(&g);
	OK(cuMemcpyDtoH(out, dev, 4096));
	assert_int_equal(out[4095], 1);
	OK(cuMemFree(dev));
}

/* SYNC_MEMOPS: an asynchronous call has done its work when it returns. */
static void sync_memops(void **state)
{
	CUdeviceptr a = alloc(4096), b = alloc(4096);
	unsigned int on = 1;
	CUstream s;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
	assert_int_equal(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_BUFFER_ID, a),
			 CUDA_ERROR_INVALID_VALUE);
	on = 0;
	OK(cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
	assert_int_equal(on, 1);
	OK(cuMemcpyDtoDAsync(a, b, 4096, s));
	OK(cuStreamQuery(s));
	OK(cuMemsetD8Async(a, 1, 4096, s));
	OK(cuStreamQuery(s));
	OK(cuStreamDestroy(s));
	OK(cuMemFree(a));
	OK(cuMemFree(b));
}

static void default_stream(void **state)
{
	CUdeviceptr dev = alloc(4096);
	unsigned char *pinned;
	CUstream after, apart;
	struct gate g;

	OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	memset(pinned, 1, 4096);
	OK(cuStreamCreate(&after, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
	make_gate(&g, CU_STREAM_DEFAULT);

	/* follows the gated stream; what follows it in a blocking stream is held back too */
	OK(cuMemsetD8Async(dev, 2, 4096, NULL));
	OK(cuMemcpyDtoHAsync(pinned, dev, 2048, after));
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuStreamQuery(after), CUDA_ERROR_NOT_READY);
	/* a non-blocking stream does not care */
	OK(cuMemcpyDtoHAsync(pinned + 2048, dev, 2048, apart));
	OK(cuStreamSynchronize(apart));
	assert_int_equal(pinned[2048], (unsigned char)GPU_SIM_POISON);
	assert_int_equal(pinned[0], 1);
	open_gate(&g);
	OK(cuStreamSynchronize(after));
	assert_int_equal(pinned[0], 2);
	OK(cuStreamSynchronize(NULL));
	OK(cuStreamQuery(NULL));
	free_gate(&g);
	OK(cuStreamDestroy(after));
	OK(cuStreamDestroy(apart));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(dev));
}

/* Plain fills and device copies return before they are done, copies to the host do not. */
static void plain_calls(void **state)
{
	CUdeviceptr dev = alloc(4096);
	unsigned char out[4096];
	struct gate g;

	make_gate(&g, CU_STREAM_DEFAULT);
	OK(cuMemsetD8(dev, 3, 4096));
	OK(cuMemcpyDtoD(dev + 2048, dev, 1024));
	assert_int_equal(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
	open_gate(&g);
	OK(cuMemcpyDtoH(out, dev, 4096));
	assert_int_equal(out[4095], 3);
	free_gate(&g);
	OK(cuMemFree(dev));
}

static void events(void **state)
{
	CUdeviceptr dev = alloc(4096);
	CUevent start, end, untimed;
	unsigned char *pinned;
	struct gate g;
	CUstream s;
	float ms;

	OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, 0));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	assert_int_equal(cuEventCreate(&end, 0x80), CUDA_ERROR_INVALID_VALUE);
	/* never recorded: complete, and nothing to wait for */
	OK(cuEventQuery(start));
	OK(cuStreamWaitEvent(s, start, 0));
	OK(cuStreamSynchronize(s));
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);

	make_gate(&g, CU_STREAM_NON_BLOCKING);
	OK(cuEventRecord(start, s));
	OK(cuEventSynchronize(start));	/* the streams run by themselves: before the other begins */
	OK(cuMemsetD8Async(dev, 9, 4096, g.stream));
	OK(cuEventRecord(end, g.stream));
	OK(cuStreamWaitEvent(s, end, 0));
	OK(cuMemcpyDtoHAsync(pinned, dev, 4096, s));
	assert_int_equal(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
	open_gate(&g);
	OK(cuEventSynchronize(end));
	OK(cuStreamSynchronize(s));
	assert_int_equal(pinned[4095], 9);
	OK(cuEventElapsedTime(&ms, start, end));
	assert_true(ms > 0);
	assert_int_equal(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
	/* destroyed while it is waited for */
	OK(cuEventRecord(end, g.stream));
	OK(cuStreamWaitEvent(s, end, 0));
	OK(cuEventDestroy(end));
	assert_int_equal(cuEventQuery(end), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamSynchronize(s));
	OK(cuEventDestroy(start));
	OK(cuEventDestroy(untimed));
	free_gate(&g);
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(dev));
}

struct calls {
	atomic_int n;
	int order[2];
	CUresult inside;
	CUstream stream;
};

static void host_function(void *data)
{
	struct calls *c = data;
	CUdeviceptr p;

	c->order[0] = ++c->n;
	c->inside = cuMemAlloc(&p, 4096);
}

static void host_callback(CUstream stream, CUresult status, void *data)
{
	struct calls *c = data;

	assert_int_equal(status, CUDA_SUCCESS);
	c->stream = stream;
	c->order[1] = ++c->n;
}

static void host_functions(void **state)
{
	struct calls c = { .inside = CUDA_SUCCESS };
	struct gate g;

	make_gate(&g, 0);
	OK(cuLaunchHostFunc(g.stream, host_function, &c));
	OK(cuStreamAddCallback(g.stream, host_callback, &c, 0));
	assert_int_equal(cuStreamAddCallback(g.stream, host_callback, &c, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchHostFunc(g.stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(c.n, 0);
	open_gate(&g);
	OK(cuStreamSynchronize(g.stream));
	assert_int_equal(c.order[0], 1);
	assert_int_equal(c.order[1], 2);
	assert_int_equal(c.inside, CUDA_ERROR_NOT_PERMITTED);
	assert_ptr_equal(c.stream, g.stream);
	free_gate(&g);
}

/* One condition of a wait: it holds with `now`, and does not with `other`. */
static void wait_for(uint64_t want, uint64_t other, uint64_t now, unsigned int flags, bool wide)
{
	uint64_t *flag;
	CUstream s;

	OK(cuMemHostAlloc((void **)&flag, 4096, 0));
	*flag = other;
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	if (wide)
		OK(cuStreamWaitValue64(s, (uintptr_t)flag, want, flags));
	else
		OK(cuStreamWaitValue32(s, (uintptr_t)flag, (uint32_t)want, flags));
	usleep(2000);
	assert_int_equal(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	if (wide)
		__atomic_store_n(flag, now, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)flag, (uint32_t)now, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(s));
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(flag));
}

static void values(void **state)
{
	CUdeviceptr dev = alloc(4096);
	uint64_t out = 0;
	CUstream s;

	wait_for(5, 4, 6, CU_STREAM_WAIT_VALUE_GEQ, false);
	wait_for(1, 0xfffffffe, 2, CU_STREAM_WAIT_VALUE_GEQ, false);	/* cyclic */
	wait_for(5, 6, 5, CU_STREAM_WAIT_VALUE_EQ, false);
	wait_for(6, 1, 4, CU_STREAM_WAIT_VALUE_AND, false);
	wait_for(0xffff0000, 0xffff, 0x7fff, CU_STREAM_WAIT_VALUE_NOR, false);
	wait_for(5ULL << 40, 4ULL << 40, 6ULL << 40, CU_STREAM_WAIT_VALUE_GEQ, true);
	wait_for(5ULL << 40, 5, 5ULL << 40, CU_STREAM_WAIT_VALUE_EQ, true);

	OK(cuStreamCreate(&s, 0));
	OK(cuStreamWriteValue64(s, dev + 8, 0x1122334455667788ULL, 0));
	OK(cuStreamWriteValue32(s, dev + 8, 0x99, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
	OK(cuStreamWaitValue64(s, dev + 8, 0x1122334400000099ULL, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH(&out, dev + 8, 8));
	assert_true(out == 0x1122334400000099ULL);
	assert_int_equal(cuStreamWriteValue32(s, dev + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWriteValue64(s, dev + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWriteValue64(s, (uintptr_t)&out, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWaitValue32(s, dev, 0, 4), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWaitValue32(s, dev, 0, CU_STREAM_WAIT_VALUE_FLUSH),
			 CUDA_ERROR_NOT_SUPPORTED);
	OK(cuStreamDestroy(s));
	OK(cuMemFree(dev));
}

/* Destroying a stream does not end its work, and the context still waits for it. */
static void stream_destroy(void **state)
{
	CUdeviceptr dev = alloc(4096);
	unsigned char out[16];
	struct gate g;

	make_gate(&g, 0);
	OK(cuMemsetD8Async(dev, 4, 4096, g.stream));
	OK(cuStreamDestroy(g.stream));
	assert_int_equal(cuStreamDestroy(g.stream), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuStreamQuery(g.stream), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	open_gate(&g);
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(out, dev, sizeof(out)));
	assert_int_equal(out[15], 4);
	OK(cuMemFreeHost(g.flag));
	OK(cuMemFree(dev));
}

static void *free_it(void *arg)
{
	CUdeviceptr *p = arg;

	OK(cuCtxSetCurrent(ctx));
	OK(cuMemFree(*p));
	return NULL;
}

/* Freeing waits for work that may use the memory. */
static void free_waits(void **state)
{
	CUdeviceptr dev = alloc(4 * MIB);
	unsigned char *pinned;
	pthread_t thread;
	struct gate g;

	OK(cuMemHostAlloc((void **)&pinned, 4 * MIB, 0));
	make_gate(&g, CU_STREAM_NON_BLOCKING);
	OK(cuMemsetD8Async(dev, 6, 4 * MIB, g.stream));
	OK(cuMemcpyDtoHAsync(pinned, dev, 4 * MIB, g.stream));
	assert_int_equal(pthread_create(&thread, NULL, free_it, &dev), 0);
	usleep(5000);
	open_gate(&g);
	pthread_join(thread, NULL);
	assert_int_equal(pinned[4 * MIB - 1], 6);
	free_gate(&g);
	OK(cuMemFreeHost(pinned));
}

/* Every thread has a default stream of its own, and allocations do not get mixed up. */
static void *worker(void *arg)
{
	uintptr_t seed = (uintptr_t)arg;
	unsigned char *pinned;
	CUdeviceptr p;
	int i;

	OK(cuCtxSetCurrent(ctx));
	OK(cuMemHostAlloc((void **)&pinned, 70000, 0));
	for (i = 0; i < 30; i++) {
		unsigned char v = (unsigned char)(seed * 31 + i);
		size_t size = 1000 + (seed * 997 + i * 331) % 69000;

		p = alloc(size);
		OK(cuMemsetD8Async(p, v, size, CU_STREAM_PER_THREAD));
		OK(cuMemcpyDtoHAsync(pinned, p, size, CU_STREAM_PER_THREAD));
		OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
		assert_int_equal(pinned[0], v);
		assert_int_equal(pinned[size - 1], v);
		OK(cuMemFree(p));
	}
	OK(cuMemFreeHost(pinned));
	return NULL;
}

static void threads(void **state)
{
	pthread_t thread[4];
	uintptr_t i;

	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, worker, (void *)i), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/* A child has no GPU, and its first call says so instead of hanging. */
static void fork_child(void **state)
{
	CUdeviceptr p = alloc(4096);
	struct gate g;
	int status;
	pid_t pid;

	make_gate(&g, 0);	/* a thread that the child does not have */
	pid = fork();
	if (!pid)
		_exit(cuMemFree(p) == CUDA_ERROR_NOT_INITIALIZED &&
		      cuStreamSynchronize(g.stream) == CUDA_ERROR_NOT_INITIALIZED &&
		      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	open_gate(&g);
	free_gate(&g);
	OK(cuMemFree(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T_SIM(late_source),
		T_SIM(late_target),
		T_SIM(pageable_source),
		T_SIM(sync_memops),
		T_SIM(default_stream),
		T_SIM(plain_calls),
		T_SIM(events),
		T_SIM(host_functions),
		T_SIM(values),
		T_SIM(stream_destroy),
		T_SIM(free_waits),
		T_SIM(threads),
		T_SIM(fork_child),
	};

	settings();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
