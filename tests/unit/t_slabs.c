// SPDX-License-Identifier: MIT
/*
 * t_slabs.c - what the slab arrays do: how much host and GPU memory the library takes, in which
 * pieces, and that every request is right however little it is. Memory is counted between the
 * library and CUDA. Fails when a cap is passed, a piece is larger than the largest slab, a
 * request hangs for want of memory or has a wrong byte, or the properties tell another size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "gpu.h"
#include "opengds.h"

#define MIB (1024 * 1024)
#define LARGE (MIB + 12345)
#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)

/* -- memory that the library takes of CUDA -- */

struct count {
	atomic_size_t live, peak, largest;
};

static struct count host, device;
static struct gpu_ops counting;

static void take(struct count *c, size_t n)
{
	size_t now = atomic_fetch_add(&c->live, n) + n, old = atomic_load(&c->peak);

	while (now > old && !atomic_compare_exchange_weak(&c->peak, &old, now))
		;
	old = atomic_load(&c->largest);
	while (n > old && !atomic_compare_exchange_weak(&c->largest, &old, n))
		;
}

#define PIECES 256
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t at;
	size_t size;
} piece[PIECES];

static void note(uint64_t at, size_t size)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < PIECES && piece[i].at; i++)
		;
	if (i < PIECES) {
		piece[i].at = at;
		piece[i].size = size;
	}
	pthread_mutex_unlock(&lock);
}

static size_t forget(uint64_t at)
{
	size_t size = 0;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < PIECES; i++)
		if (piece[i].at == at) {
			size = piece[i].size;
			piece[i].at = 0;
		}
	pthread_mutex_unlock(&lock);
	return size;
}

static int count_host_alloc(void *ctx, size_t size, void **at)
{
	int r = gpu_cuda.host_alloc(ctx, size, at);

	if (!r) {
		take(&host, size);
		note((uintptr_t)*at, size);
	}
	return r;
}

static void count_host_free(void *ctx, void *at, size_t size)
{
	atomic_fetch_sub(&host.live, forget((uintptr_t)at));
	gpu_cuda.host_free(ctx, at, size);
}

static int count_alloc(void *ctx, size_t size, uint64_t *va)
{
	int r = gpu_cuda.alloc(ctx, size, va);

	if (!r) {
		take(&device, size);
		note(*va, size);
	}
	return r;
}

static void count_free(void *ctx, uint64_t va)
{
	atomic_fetch_sub(&device.live, forget(va));
	gpu_cuda.free(ctx, va);
}

static int setup(void **state)
{
	memset(&host, 0, sizeof(host));
	memset(&device, 0, sizeof(device));
	counting = gpu_cuda;
	counting.host_alloc = count_host_alloc;
	counting.host_free = count_host_free;
	counting.alloc = count_alloc;
	counting.free = count_free;
	gpu = &counting;
	return fake_setup(state);
}

static int teardown(void **state)
{
	fake_teardown(state);
	gpu = &gpu_cuda;
	/* all of it was given back */
	assert_int_equal(atomic_load(&host.live), 0);
	assert_int_equal(atomic_load(&device.live), 0);
	return 0;
}

/* -- some threads, one file -- */

#define THREADS 6

static struct {
	CUfileHandle_t fh;
	const char *want;
	size_t size;
	uint32_t route;
	atomic_ulong wrong;
} shared;

static void *reader(void *arg)
{
	struct ogds_report rep = OGDS_REPORT_INIT;
	size_t skip = 100 * (uintptr_t)arg + 1;
	char *got = malloc(shared.size);
	CUdeviceptr d;
	ssize_t n;
	int i;

	if (cuCtxSetCurrent(fake_ctx) || cuMemAlloc(&d, shared.size))
		atomic_fetch_add(&shared.wrong, 1);
	for (i = 0; i < 2; i++) {
		n = cuFileRead(shared.fh, (void *)(uintptr_t)d, shared.size - skip, skip, 0);
		ogds_last_io(&rep);
		if (n != (ssize_t)(shared.size - skip) || rep.bytes[shared.route] != (size_t)n ||
		    cuMemcpyDtoH(got, d, n) || memcmp(got, shared.want + skip, n)) {
			fprintf(stderr, "thread %zu: %zd, errno %d, by route %llu\n",
				(size_t)(uintptr_t)arg, n, errno,
				(unsigned long long)rep.bytes[shared.route]);
			atomic_fetch_add(&shared.wrong, 1);
		}
	}
	cuMemFree(d);
	free(got);
	return NULL;
}

/* All of them read everything by this route; then one writes. */
static void all_read(uint32_t route, size_t size)
{
	const char *path = fake_file("f", size, 12);
	char *want = malloc(size), *got = malloc(size);
	pthread_t t[THREADS];
	uint64_t seed = 8;
	CUdeviceptr d;
	uintptr_t i;
	int fd, look = open(path, O_RDONLY);

	memset(&shared, 0, sizeof(shared));
	shared.fh = fake_register(path, O_RDWR | O_DIRECT, &fd);
	shared.want = want;
	shared.size = size;
	shared.route = route;
	assert_int_equal(pread(look, want, size, 0), size);
	alarm(100);	/* memory that nobody gives back would be waited for for ever */
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, reader, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	alarm(0);
	assert_int_equal(atomic_load(&shared.wrong), 0);
	assert_int_equal(cuMemAlloc(&d, size), 0);
	fake_fill(want, size, &seed);
	assert_int_equal(cuMemcpyHtoD(d, want, size), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	assert_int_equal(cuFileWrite(shared.fh, (void *)(uintptr_t)d, size - 7, 0, 7), size - 7);
	assert_int_equal(pread(look, got, size - 7, 0), size - 7);
	assert_memory_equal(got, want + 7, size - 7);
	cuMemFree(d);
	cuFileHandleDeregister(shared.fh);
	close(fd);
	close(look);
	free(want);
	free(got);
}

/* -- the host's -- */

static void t_host_default(void **state)
{
	fake_configure("{\"properties\": {\"force_compat_mode\": true}}");
	all_read(OGDS_ROUTE_BOUNCE, LARGE);
	assert_int_equal(atomic_load(&host.largest), 2 * MIB);
	assert_in_range(atomic_load(&host.peak), 2 * MIB, 128 * MIB);
}

/* 4 KiB twice and 64 KiB once: 72 KB, so one piece of 64 KiB for six threads. */
static void t_host_capped(void **state)
{
	static const size_t kb[] = { 4, 64 }, count[] = { 2, 1 };

	fake_configure("{\"properties\": {\"force_compat_mode\": true}}");
	OK(cuFileSetParameterPosixPoolSlabArray(kb, count, 2));
	all_read(OGDS_ROUTE_BOUNCE, 300001);
	assert_int_equal(atomic_load(&host.largest), 65536);
	assert_int_equal(atomic_load(&host.peak), 65536);
}

/* The smallest there can be, by the file: three pieces of 4 KiB. */
static void t_host_smallest(void **state)
{
	fake_configure("{\"properties\": {\"force_compat_mode\": true, "
		       "\"posix_pool_slab_size_kb\": [4], \"posix_pool_slab_count\": [3]}}");
	all_read(OGDS_ROUTE_BOUNCE, 60001);
	assert_int_equal(atomic_load(&host.largest), 4096);
	assert_in_range(atomic_load(&host.peak), 4096, 3 * 4096);
}

/* Slabs of 16 GiB cost what is used of them. */
static void t_host_giant(void **state)
{
	static const size_t kb[] = { 4096, 16777216 }, count[] = { 10, 5 };

	fake_configure("{\"execution\": {\"max_io_threads\": 4}, "
		       "\"properties\": {\"force_compat_mode\": true}}");
	OK(cuFileSetParameterPosixPoolSlabArray(kb, count, 2));
	all_read(OGDS_ROUTE_BOUNCE, LARGE);
	assert_int_equal(atomic_load(&host.largest), 2 * MIB);
	assert_in_range(atomic_load(&host.peak), 2 * MIB, 3 * (THREADS + 4) * 2 * MIB);
}

/* -- the GPU's -- */

/* What staging took: a slab may be allocated a GPU page larger, to lie at the start of one. */
static void assert_staging(size_t largest, size_t all)
{
	assert_in_range(atomic_load(&device.largest), largest, largest + 65536);
	assert_in_range(atomic_load(&device.peak), largest, all + all / largest * 65536);
}

static void t_gpu_capped(void **state)
{
	static const size_t kb[] = { 512, 1024 }, count[] = { 2, 2 };

	OK(cuFileSetParameterGpuBounceBufferSlabArray(kb, count, 2));
	all_read(OGDS_ROUTE_STAGED, LARGE);
	assert_staging(MIB, 3 * MIB);
}

static void t_gpu_larger(void **state)
{
	static const size_t kb[] = { 4096 }, count[] = { 3 };

	OK(cuFileSetParameterGpuBounceBufferSlabArray(kb, count, 1));
	all_read(OGDS_ROUTE_STAGED, 5 * MIB + 12345);
	assert_staging(4 * MIB, 12 * MIB);
}

static void t_gpu_giant(void **state)
{
	static const size_t kb[] = { 4096, 16777216 }, count[] = { 10, 5 };

	OK(cuFileSetParameterGpuBounceBufferSlabArray(kb, count, 2));
	all_read(OGDS_ROUTE_STAGED, 5 * MIB + 12345);
	assert_staging(16 * MIB, 128 * MIB);
}

/* Less than one slot: there is no staging, and requests say so. */
static void t_gpu_too_small(void **state)
{
	static const size_t kb[] = { 4 }, count[] = { 128 };
	struct ogds_report rep = OGDS_REPORT_INIT;

	OK(cuFileSetParameterGpuBounceBufferSlabArray(kb, count, 1));
	all_read(OGDS_ROUTE_BOUNCE, LARGE);
	assert_int_equal(ogds_last_io(&rep), 0);
	assert_string_equal(ogds_reason_id(rep.reason), "R-NO-STAGING");
	assert_int_equal(atomic_load(&device.peak), 0);
}

/* What one call of the module moves, and the host memory that a registered buffer costs. */
static void t_gpu_window(void **state)
{
	static const struct {
		size_t kb;
		unsigned long ios;	/* for 2 MiB */
	} row[] = { { 512, 4 }, { 1024, 2 }, { 4, 32 }, { 100, 32 }, { 16777216, 1 } };
	CUfileHandle_t fh;
	size_t one = 1, i;
	CUdeviceptr d;
	int fd;

	assert_int_equal(cuMemAlloc(&d, 2 * MIB), 0);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		OK(cuFileSetParameterGpuBounceBufferSlabArray(&row[i].kb, &one, 1));
		fh = fake_register(fake_file("f", 2 * MIB, 3), O_RDWR | O_DIRECT, &fd);
		OK(cuFileBufRegister((void *)(uintptr_t)d, 2 * MIB, 0));
		atomic_store(&fake.ios, 0);
		assert_int_equal(cuFileRead(fh, (void *)(uintptr_t)d, 2 * MIB, 0, 0), 2 * MIB);
		assert_int_equal(atomic_load(&fake.ios), row[i].ios);
		OK(cuFileDriverClose());
		close(fd);
	}
	cuMemFree(d);
}

/* -- properties -- */

static void assert_sizes(size_t direct_kb, unsigned int cache_kb)
{
	CUfileDrvProps_t p;

	OK(cuFileDriverOpen());
	OK(cuFileDriverGetProperties(&p));
	assert_int_equal(p.nvfs.max_direct_io_size, direct_kb);
	assert_int_equal(p.max_device_cache_size, cache_kb);
}

static void t_properties(void **state)
{
	static const size_t kb[] = { 1024, 8192 }, count[] = { 10, 3 };
	static const size_t giant[] = { 16777216 }, many[] = { 65536 };

	assert_sizes(16384, 131072);
	OK(cuFileDriverClose());
	OK(cuFileSetParameterGpuBounceBufferSlabArray(kb, count, 2));
	assert_sizes(8192, 10 * 1024 + 3 * 8192);
	/* a setter is later, and wins */
	OK(cuFileDriverSetMaxDirectIOSize(2048));
	OK(cuFileDriverSetMaxCacheSize(5000));
	assert_sizes(2048, 5000);
	OK(cuFileDriverClose());
	OK(cuFileDriverClose());
	/* more than the member holds */
	OK(cuFileSetParameterGpuBounceBufferSlabArray(giant, many, 1));
	assert_sizes(16777216, UINT_MAX);
	OK(cuFileDriverClose());
	assert_sizes(16384, 131072);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_host_default), T(t_host_capped), T(t_host_smallest), T(t_host_giant),
		T(t_gpu_capped),   T(t_gpu_larger),  T(t_gpu_giant),	 T(t_gpu_too_small),
		T(t_gpu_window),   T(t_properties),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
