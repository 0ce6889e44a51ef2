// SPDX-License-Identifier: MIT
/*
 * t_cold.c - descriptors without O_DIRECT: what the page cache holds is read from there, what it
 * does not hold, of requests of 1 MiB and more, by the library's own O_DIRECT descriptor. What
 * the kernel tells of its pages is scripted. Fails when a cached byte costs the drive, when a
 * kernel or a file system that cannot tell is believed, and when a byte is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "os.h"
#include "ring_fake.h"

#define MIB ((size_t)1024 * 1024)
#define SIZE (4 * MIB)
#define CACHED (2 * MIB)	/* the first half of the file is, by the script */

static struct os_ops ops;
static const struct os_ops *base;

static enum { NO_CALL, BLIND, HALF, REFUSED } kernel;
static atomic_uint asked, direct, through;	/* direct, through: bytes */
static bool no_direct, odd;

static int64_t some_cached(int fd, off_t off, size_t size)
{
	atomic_fetch_add(&asked, 1);
	assert_false(fcntl(fd, F_GETFL) & O_DIRECT);
	switch (kernel) {
	case NO_CALL:
		return -ENOSYS;
	case REFUSED:
		return -EPERM;
	case BLIND:
		return 0;
	default:
		break;
	}
	if (off >= (off_t)CACHED)
		return 0;
	return off + size > CACHED ? CACHED - off : size;
}

static ssize_t some_pread(int fd, void *buf, size_t size, off_t off)
{
	bool is = fcntl(fd, F_GETFL) & O_DIRECT;

	/* a file system that wants more than 4 KiB */
	if (is && odd)
		return -EINVAL;
	atomic_fetch_add(is ? &direct : &through, size);
	return base->pread(fd, buf, size, off);
}

static int some_open(const char *path, int flags)
{
	if (no_direct && (flags & O_DIRECT))
		return -EINVAL;
	return base->open(path, flags);
}

static struct fake_pair m;

static void begin(const char *execution, int flags)
{
	char json[160];

	snprintf(json, sizeof(json), "{\"execution\": {%s}, \"properties\": {\"force_compat_mode\": true}}",
		 execution);
	fake_configure(json);
	fake_pair_open(&m, SIZE, 77, flags);
}

static int setup(void **state)
{
	fake_setup(state);
	kernel = HALF;
	no_direct = odd = false;
	base = os;
	ops = *os;
	ops.cached = some_cached;
	ops.pread = some_pread;
	/* here threads do it; t_bounce_ring has the same by io_uring */
	ring_fake_none(&ops);
	ops.open = some_open;
	os = &ops;
	alarm(60);
	return 0;
}

static int teardown(void **state)
{
	alarm(0);
	fake_teardown(state);
	fake_pair_close(&m);
	return 0;
}

/* One request; the bytes are right, so many came from the drive, and the rest from the cache. */
static void read_is(size_t size, size_t off, size_t from_drive)
{
	atomic_store(&direct, 0);
	atomic_store(&through, 0);
	fake_gpu_set(m.gpu, 0, SIZE);
	assert_int_equal(cuFileRead(m.fh, m.gpu, size, off, 0), size);
	assert_int_equal(cuMemcpyDtoH(m.got, (uintptr_t)m.gpu, size), 0);
	assert_memory_equal(m.got, m.file + off, size);
	assert_int_equal(atomic_load(&direct), from_drive);
	assert_int_equal(atomic_load(&through), size - from_drive);
}

#define ALONE "\"parallel_io\": false"
#define FOUR "\"max_io_threads\": 4"

static void t_cold_goes_direct(void **state)
{
	begin(ALONE, 0);
	/* the first one shows whether the kernel tells */
	read_is(MIB, 0, 0);
	read_is(MIB, MIB, 0);
	read_is(MIB, 2 * MIB, MIB);
	read_is(SIZE, 0, 2 * MIB);
	/* the last piece, a quarter, ends in the middle of a block: not for the drive */
	read_is(2 * MIB - 100, 2 * MIB, 3 * MIB / 2);
}

/* The same by several threads, each of which asks for its pieces. */
static void t_cold_together(void **state)
{
	begin(FOUR, 0);
	read_is(2 * MIB, 0, 0);
	read_is(2 * MIB, 2 * MIB, 2 * MIB);
	read_is(2 * MIB, 0, 0);
}

/* Only what is large is worth a call. */
static void t_small_is_not_asked_for(void **state)
{
	begin(FOUR, 0);
	read_is(MIB, 0, 0);
	atomic_store(&asked, 0);
	read_is(MIB - 1, 2 * MIB, 0);
	read_is(4096, 3 * MIB, 0);
	assert_int_equal(atomic_load(&asked), 0);
}

/* A kernel without the call, one that refuses it, a file system without pages of its own. */
static void t_nobody_tells(void **state)
{
	static const int dumb[] = { NO_CALL, REFUSED, BLIND };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		kernel = dumb[i];
		begin(ALONE, 0);
		atomic_store(&asked, 0);
		read_is(SIZE, 0, 0);
		read_is(MIB, 2 * MIB, 0);
		/* asked once, and never again for this file */
		assert_int_equal(atomic_load(&asked), 1);
		if (i < 2) {
			assert_int_equal(cuFileDriverClose().err, 0);
			fake_pair_close(&m);
		}
	}
}

/* It told, and does not any more. */
static void t_falls_silent(void **state)
{
	begin(ALONE, 0);
	read_is(MIB, 0, 0);
	kernel = REFUSED;
	read_is(MIB, 2 * MIB, 0);
	kernel = HALF;
	atomic_store(&asked, 0);
	read_is(MIB, 2 * MIB, 0);
	assert_int_equal(atomic_load(&asked), 0);
}

static void t_no_descriptor(void **state)
{
	no_direct = true;
	begin(FOUR, 0);
	read_is(MIB, 0, 0);
	read_is(MIB, 2 * MIB, 0);
}

/* The file system wants larger blocks: the page cache serves it after all. */
static void t_odd_alignment(void **state)
{
	odd = true;
	begin(FOUR, 0);
	read_is(MIB, 0, 0);
	read_is(MIB, 2 * MIB, 0);
}

/* With the caller's O_DIRECT the drive is read, whatever is cached, and nobody is asked. */
static void t_callers_flag(void **state)
{
	begin(FOUR, O_DIRECT);
	atomic_store(&asked, 0);
	read_is(SIZE, 0, SIZE);
	assert_int_equal(atomic_load(&asked), 0);
}

/* Host memory goes the same way. */
static void t_host_memory(void **state)
{
	char *host;

	begin(FOUR, 0);
	assert_int_equal(posix_memalign((void **)&host, 4096, MIB), 0);
	read_is(MIB, 0, 0);
	atomic_store(&direct, 0);
	assert_int_equal(cuFileRead(m.fh, host, MIB, 2 * MIB, 0), MIB);
	assert_int_equal(atomic_load(&direct), MIB);
	read_is(MIB, 2 * MIB, MIB);
	assert_memory_equal(host, m.got, MIB);
	free(host);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_cold_goes_direct), T(t_cold_together), T(t_small_is_not_asked_for),
		T(t_nobody_tells),     T(t_falls_silent),  T(t_no_descriptor),
		T(t_odd_alignment),    T(t_callers_flag),  T(t_host_memory),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
