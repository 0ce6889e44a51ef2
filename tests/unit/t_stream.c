// SPDX-License-Identifier: MIT
/*
 * t_stream.c - stream operations, on the machine of cufile_fake.h: they run in the order of
 * the stream, take size and offsets when their turn comes, report through *bytes_p, any
 * number of them; both ways to wait (a word in memory, a host function). Under TSan as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "gpu.h"
#include "opengds.h"

#define SIZE (256 * 1024)

static struct {
	CUfileHandle_t fh;
	int fd;
	char *gpu, file[SIZE], got[SIZE];
	CUstream stream;
	/* the four numbers of one operation */
	size_t size;
	off_t off, buf_off;
	ssize_t bytes;
} m;

static struct ogds_report rep;
static struct gpu_ops wordless;
static atomic_bool gate;

static int no_word(void *stream, uint32_t *word, uint32_t value)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static int setup(void **state)
{
	CUdeviceptr p;
	char path[160];
	int fd;

	fake_setup(state);
	m.fh = fake_register(fake_file("f", SIZE, 5), O_RDWR | O_DIRECT, &m.fd);
	snprintf(path, sizeof(path), "%s/f", fake.dir);
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, m.file, SIZE, 0), SIZE);
	close(fd);
	assert_int_equal(cuMemAlloc(&p, SIZE), 0);
	m.gpu = (char *)(uintptr_t)p;
	assert_int_equal(cuMemsetD8(p, 0, SIZE), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	assert_int_equal(cuStreamCreate(&m.stream, CU_STREAM_NON_BLOCKING), 0);
	m.size = SIZE;
	m.off = m.buf_off = 0;
	m.bytes = 0;
	rep = (struct ogds_report)OGDS_REPORT_INIT;
	atomic_store(&gate, false);
	return 0;
}

static int teardown(void **state)
{
	cuStreamDestroy(m.stream);
	fake_teardown(state);
	close(m.fd);
	cuMemFree((uintptr_t)m.gpu);
	gpu = &gpu_cuda;
	return 0;
}

static int read_all(void)
{
	return cuFileReadAsync(m.fh, m.gpu, &m.size, &m.off, &m.buf_off, &m.bytes, m.stream).err;
}

static void wait_stream(void)
{
	assert_int_equal(cuStreamSynchronize(m.stream), 0);
}

static void gpu_is(const char *want, size_t at, size_t n)
{
	assert_int_equal(cuMemcpyDtoH(m.got, (uintptr_t)m.gpu + at, n), 0);
	assert_memory_equal(m.got, want, n);
}

static void t_read(void **state)
{
	assert_int_equal(read_all(), 0);
	wait_stream();
	assert_int_equal(m.bytes, SIZE);
	gpu_is(m.file, 0, SIZE);
	assert_true(atomic_load(&fake.bytes) >= SIZE);
	assert_int_equal(ogds_handle_io(m.fh, &rep), 0);
	assert_int_equal(rep.sequence, 1);
	assert_int_equal(rep.result, SIZE);
	assert_int_equal(rep.whole_direct, SIZE);
	/* through a host pointer */
	m.size = 1000;
	m.off = 3;
	memset(m.got, 0, SIZE);
	assert_int_equal(cuFileReadAsync(m.fh, m.got, &m.size, &m.off, &m.buf_off, &m.bytes,
					 m.stream).err, 0);
	wait_stream();
	assert_int_equal(m.bytes, 1000);
	assert_memory_equal(m.got, m.file + 3, 1000);
}

/* After what stands before it in the stream, before what stands behind it. */
static void t_order(void **state)
{
	static char copy[SIZE];

	assert_int_equal(read_all(), 0);
	assert_int_equal(cuMemcpyDtoHAsync(copy, (uintptr_t)m.gpu, SIZE, m.stream), 0);
	assert_int_equal(cuMemsetD8Async((uintptr_t)m.gpu, 0x77, SIZE, m.stream), 0);
	assert_int_equal(cuFileWriteAsync(m.fh, m.gpu, &m.size, &m.off, &m.buf_off, &m.bytes,
					  m.stream).err, 0);
	wait_stream();
	assert_memory_equal(copy, m.file, SIZE);
	assert_int_equal(m.bytes, SIZE);
	memset(copy, 0x77, SIZE);
	{
		char path[160];
		int fd;

		snprintf(path, sizeof(path), "%s/f", fake.dir);
		fd = open(path, O_RDONLY);
		assert_int_equal(pread(fd, m.got, SIZE, 0), SIZE);
		close(fd);
	}
	assert_memory_equal(m.got, copy, SIZE);
}

/* Holds the stream until the test has submitted what it wants behind it. */
static void change_later(void *arg)
{
	while (!atomic_load(&gate))
		usleep(100);
	m.size = 8192;
	m.off = 4096;
	m.buf_off = 12288;
}

static void t_late_numbers(void **state)
{
	assert_int_equal(cuLaunchHostFunc(m.stream, change_later, NULL), 0);
	assert_int_equal(read_all(), 0);
	atomic_store(&gate, true);
	wait_stream();
	assert_int_equal(m.bytes, 8192);
	gpu_is(m.file + 4096, 12288, 8192);
	memset(m.file, 0, 4096);
	gpu_is(m.file, 0, 4096);
}

static void t_fixed_numbers(void **state)
{
	/* flags that nobody knows promise nothing */
	assert_int_equal(cuFileStreamRegister(m.stream, 0x1f).err, 0);
	assert_int_equal(cuFileStreamRegister(m.stream, 0xf).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuLaunchHostFunc(m.stream, change_later, NULL), 0);
	assert_int_equal(read_all(), 0);
	atomic_store(&gate, true);
	wait_stream();
	/* those of the submission */
	assert_int_equal(m.size, 8192);
	assert_int_equal(m.bytes, SIZE);
	gpu_is(m.file, 0, SIZE);
	assert_int_equal(cuFileStreamDeregister(m.stream).err, 0);
	assert_int_equal(cuFileStreamDeregister(m.stream).err, CU_FILE_INVALID_VALUE);
}

static void t_errors(void **state)
{
	assert_int_equal(cuFileReadAsync(m.fh, m.gpu, NULL, &m.off, &m.buf_off, &m.bytes,
					 m.stream).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileReadAsync(m.fh, m.gpu, &m.size, &m.off, &m.buf_off, NULL,
					 m.stream).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileReadAsync(m.gpu, m.gpu, &m.size, &m.off, &m.buf_off, &m.bytes,
					 m.stream).err, CU_FILE_INVALID_VALUE);
	/* what the request itself meets is told by *bytes_p */
	m.off = -1;
	assert_int_equal(read_all(), 0);
	wait_stream();
	assert_int_equal(m.bytes, -CU_FILE_INVALID_VALUE);
	m.off = 0;
	ogds_handle_set_strict(m.fh, true);
	atomic_store(&fake.io_error, EIO);
	atomic_store(&fake.io_failures, 1);
	assert_int_equal(read_all(), 0);
	wait_stream();
	assert_int_equal(m.bytes, -EIO);
	assert_int_equal(ogds_handle_io(m.fh, &rep), 0);
	assert_int_equal(rep.sequence, 2);
	assert_int_equal(rep.error, CU_FILE_INVALID_VALUE);
	assert_string_equal(ogds_reason_id(rep.reason), "R-DIRECT-FAILED");
	assert_string_equal(ogds_reason_id(rep.refused_by), "R-STRICT");
	/* the end of the file */
	m.off = SIZE;
	assert_int_equal(read_all(), 0);
	wait_stream();
	assert_int_equal(m.bytes, 0);
	/* no threads, no streams */
	cuFileDriverClose();
	fake_configure("{\"execution\": {\"parallel_io\": false}}");
	assert_int_equal(cuFileReadAsync(m.fh, m.gpu, &m.size, &m.off, &m.buf_off, &m.bytes,
					 m.stream).err, CU_FILE_ASYNC_NOT_SUPPORTED);
}

#define MANY 600

static void t_many(void **state)
{
	static size_t size[MANY];
	static off_t off[MANY], buf_off[MANY];
	static ssize_t bytes[MANY];
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		size[i] = 400;
		off[i] = buf_off[i] = i * 400;
		bytes[i] = 0;
		assert_int_equal(cuFileReadAsync(m.fh, m.gpu, &size[i], &off[i], &buf_off[i],
						 &bytes[i], m.stream).err, 0);
	}
	wait_stream();
	for (i = 0; i < MANY; i++)
		assert_int_equal(bytes[i], 400);
	gpu_is(m.file, 0, MANY * 400);
}

/* Two streams at once, and the default stream; a close with operations in them. */
static void t_streams_and_close(void **state)
{
	size_t size = SIZE / 2;
	off_t off = SIZE / 2, zero = 0;
	ssize_t a = 0, b = 0, c = 0;
	CUstream other;
	int i;

	assert_int_equal(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuFileReadAsync(m.fh, m.gpu, &size, &zero, &zero, &a, m.stream).err, 0);
	assert_int_equal(cuFileReadAsync(m.fh, m.gpu, &size, &off, &off, &b, other).err, 0);
	assert_int_equal(cuStreamSynchronize(other), 0);
	wait_stream();
	assert_int_equal(a, size);
	assert_int_equal(b, size);
	gpu_is(m.file, 0, SIZE);
	assert_int_equal(cuFileReadAsync(m.fh, m.gpu, &size, &zero, &zero, &c, NULL).err, 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	assert_int_equal(c, size);

	atomic_store(&fake.io_delay_us, 3000);
	for (i = 0; i < 20; i++)
		assert_int_equal(read_all(), 0);
	assert_int_equal(cuFileDriverClose().err, 0);
	/* nothing hangs: what had not begun was refused */
	wait_stream();
	assert_true(m.bytes == SIZE || m.bytes == -CU_FILE_DRIVER_CLOSING);
	cuStreamDestroy(other);
}

static int setup_wordless(void **state)
{
	wordless = gpu_cuda;
	wordless.wait_word = no_word;
	gpu = &wordless;
	return setup(state);
}

/*
 * What is queued before may wait for the caller, who waits for the library: a submission
 * makes staging memory, and whatever comes of that it does nothing that waits for the GPU.
 */
static void submit_behind_gate(const char *json, int map_error)
{
	cuFileDriverClose();
	close(m.fd);
	fake_configure(json);
	atomic_store(&fake.map_error, map_error);
	m.fh = fake_register(fake_file("f", SIZE, 5), O_RDWR | O_DIRECT, &m.fd);
	m.size = SIZE;
	m.off = m.buf_off = 0;
	atomic_store(&gate, false);
	assert_int_equal(cuLaunchHostFunc(m.stream, change_later, NULL), 0);
	alarm(60);	/* it would wait for ever */
	assert_int_equal(read_all(), 0);
	alarm(0);
	atomic_store(&gate, true);
	wait_stream();
	assert_int_equal(m.bytes, 8192);
	gpu_is(m.file + 4096, 12288, 8192);
}

static void t_behind_gate(void **state)
{
	CUdeviceptr odd;

	/* the next small allocation begins inside a GPU page */
	assert_int_equal(cuMemAlloc(&odd, 1000), 0);
	submit_behind_gate("{\"properties\": {\"gpu_bounce_buffer_slab_config\":\n"
			   "{\"slab_size_kb\": [1024], \"slab_count\": [4]}}}", 0);
	submit_behind_gate("{}", EINVAL);
	/* what could not be pinned is tried again */
	atomic_store(&fake.map_error, 0);
	assert_int_equal(cuFileRead(m.fh, m.gpu, SIZE, 0, 0), SIZE);
	gpu_is(m.file, 0, SIZE);
	cuMemFree(odd);
}

/* -- the first operations of many threads at once -- */

#define FIRST 8

static struct gpu_ops slow;

static int slow_alloc(void *ctx, size_t size, void **host)
{
	usleep(20000);
	return gpu_cuda.host_alloc(ctx, size, host);
}

static void *first_read(void *arg)
{
	static size_t size[FIRST];
	static off_t off[FIRST], buf_off[FIRST];
	static ssize_t bytes[FIRST];
	uintptr_t i = (uintptr_t)arg;
	CUstream stream;

	if (cuCtxSetCurrent(fake_ctx) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
		return (void *)1;
	size[i] = 1000;
	off[i] = buf_off[i] = i * 1000;
	if (cuFileReadAsync(m.fh, m.gpu, &size[i], &off[i], &buf_off[i], &bytes[i], stream).err ||
	    cuStreamSynchronize(stream) || bytes[i] != 1000)
		return (void *)2;
	cuStreamDestroy(stream);
	return NULL;
}

/*
 * Each prepares lanes for the library's threads, more than there are for all of them: who has
 * one does not wait for what the others have.
 */
static void t_first_of_many(void **state)
{
	pthread_t t[FIRST];
	uintptr_t i;
	void *bad;

	cuFileDriverClose();
	close(m.fd);
	fake_configure("{\"properties\": {\"force_compat_mode\": true,\n"
		       "\"posix_pool_slab_size_kb\": [4], \"posix_pool_slab_count\": [4]}}");
	slow = gpu_cuda;
	slow.host_alloc = slow_alloc;
	gpu = &slow;
	m.fh = fake_register(fake_file("f", SIZE, 5), O_RDWR, &m.fd);
	alarm(60);	/* they would wait for ever */
	for (i = 0; i < FIRST; i++)
		assert_int_equal(pthread_create(&t[i], NULL, first_read, (void *)i), 0);
	for (i = 0; i < FIRST; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	alarm(0);
	gpu_is(m.file, 0, FIRST * 1000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define W(f) cmocka_unit_test_setup_teardown(f, setup_wordless, teardown)
	/* the last ones for good without words: the library does not try again */
	const struct CMUnitTest tests[] = {
		T(t_read),   T(t_order), T(t_late_numbers), T(t_fixed_numbers),
		T(t_errors), T(t_many),  T(t_streams_and_close), T(t_first_of_many),
		T(t_behind_gate),
		W(t_read),   W(t_order), W(t_late_numbers), W(t_errors),
		W(t_many),   W(t_streams_and_close),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
