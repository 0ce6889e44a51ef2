/* SPDX-License-Identifier: MIT */
/*
 * t_bar.h - what tests of the route bar have in common: a machine without a direct way, and one
 * read that is looked at byte by byte.
 */
#ifndef T_BAR_H
#define T_BAR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "opengds.h"
#include "rm_fake.h"

#define MIB ((size_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)

static int setup(void **state)
{
	fake_machine("ext4", "rw", false);
	return 0;
}

static int teardown(void **state)
{
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	rm_fake_check();
	fake_end();
	return 0;
}

static char *contents(const char *path, size_t size)
{
	char *p = malloc(size);
	int fd = open(path, O_RDONLY);

	assert_int_equal(pread(fd, p, size, 0), size);
	close(fd);
	return p;
}

static void clear(CUdeviceptr p, size_t size)
{
	fake_gpu_set((char *)(uintptr_t)p, 0xee, size);
}

static inline CUdeviceptr gpu_new(size_t size)
{
	return (uintptr_t)fake_gpu(size);
}

/* All of [p, p + size) is as in want, where not NULL, between from and to, and else 0xee. */
static void check_memory(CUdeviceptr p, size_t size, const char *want, size_t from, size_t to)
{
	char *got = malloc(size);
	size_t i;

	assert_int_equal(cuMemcpyDtoH(got, p, size), 0);
	for (i = 0; i < size; i++)
		if (got[i] != (i >= from && i < to ? want[i - from] : (char)0xee))
			fail_msg("byte %zu is %02x", i, got[i] & 0xff);
	free(got);
}

static void last(struct ogds_report *r)
{
	memset(r, 0, sizeof(*r));
	r->struct_size = sizeof(*r);
	assert_int_equal(ogds_last_io(r), 0);
}

/* One read; it went by this route alone. */
static void read_by(CUfileHandle_t fh, CUdeviceptr p, size_t size, off_t off, off_t buf_off,
		    ssize_t want, enum ogds_route route)
{
	struct ogds_report r;

	assert_int_equal(cuFileRead(fh, (void *)(uintptr_t)p, size, off, buf_off), want);
	last(&r);
	assert_int_equal(r.bytes[route], want);
	assert_int_equal(r.whole_bytes + r.edge_bytes, want);
}

#endif /* T_BAR_H */
