// SPDX-License-Identifier: MIT
/*
 * t_files.c - many registered files and buffers, and what the library keeps of each, on the
 * machine of cufile_fake.h. Fails when a handle of many finds another file, a registration of
 * many is not found, a descriptor stays, or the limit of descriptors is told as anything else.
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
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "buffer.h"
#include "cufile_fake.h"
#include "t_descriptors.h"

/* The library is open, so is its log, and it watches the mount table. */
static void begin(void)
{
	int fd;

	assert_int_equal(cuFileDriverOpen().err, 0);
	assert_int_equal(cuFileRead(NULL, NULL, 1, 0, 0), -1);
	cuFileHandleDeregister(fake_register(fake_file("first", 4096, 1), O_RDWR, &fd));
	close(fd);
}

static CUfileError_t register_fd(int fd, CUfileHandle_t *fh)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd };

	return cuFileHandleRegister(fh, &d);
}

/* What file `i` begins with. */
struct word {
	char text[16];
};

static struct word word_of(unsigned int i)
{
	struct word w = { "" };

	snprintf(w.text, sizeof(w.text), "file %u", i);
	return w;
}

/* A file that begins with its word; the caller closes the descriptor. */
static int numbered_file(unsigned int i)
{
	struct word w = word_of(i);
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "f%u", i);
	fd = open(fake_file(name, 4096, i + 1), O_RDWR);
	assert_int_equal(pwrite(fd, &w, sizeof(w), 0), sizeof(w));
	return fd;
}

/* Each of some hundred files by its own handle. */
static void t_many_files(void **state)
{
	enum { N = 300 };
	CUfileHandle_t fh[N];
	unsigned int i, before;
	int fd[N];
	struct word want, got;

	begin();
	before = t_descriptors();
	for (i = 0; i < N; i++) {
		fd[i] = numbered_file(i);
		assert_int_equal(register_fd(fd[i], &fh[i]).err, 0);
	}
	for (i = 0; i < N; i++) {
		want = word_of(i * 7 % N);
		assert_int_equal(cuFileRead(fh[i * 7 % N], &got, sizeof(got), 0, 0), sizeof(got));
		assert_memory_equal(&got, &want, sizeof(want));
	}
	/* every other one goes; the rest is still itself */
	for (i = 0; i < N; i += 2)
		cuFileHandleDeregister(fh[i]);
	for (i = 0; i < N; i++) {
		want = word_of(i);
		errno = 0;
		assert_int_equal(cuFileRead(fh[i], &got, sizeof(got), 0, 0),
				 i % 2 ? (int)sizeof(got) : -1);
		assert_int_equal(errno, i % 2 ? 0 : CU_FILE_HANDLE_NOT_REGISTERED);
		if (i % 2)
			assert_memory_equal(&got, &want, sizeof(want));
	}
	for (i = 0; i < N; i++) {
		if (i % 2)
			cuFileHandleDeregister(fh[i]);
		close(fd[i]);
	}
	assert_int_equal(t_descriptors(), before);
}

/* At the limit of descriptors a registration fails with 5031, keeps nothing, and works again. */
static void t_no_descriptors(void **state)
{
	struct rlimit old, tight;
	CUfileHandle_t fh[64];
	unsigned int n, before;
	int fd, up, again[64];
	CUfileError_t e = { 0 };

	begin();
	fd = open(fake_file("f", 8192, 1), O_RDWR);
	for (n = 0; n < 64; n++)
		again[n] = dup(fd);
	before = t_descriptors();
	up = open("/dev/null", O_RDONLY);
	close(up);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = old;
	/* an odd number of free ones: of the last pair one can be had and one cannot */
	tight.rlim_cur = up + 21;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	for (n = 0; n < 64; n++) {
		e = register_fd(again[n], &fh[n]);
		if (e.err)
			break;
	}
	assert_int_equal(e.err, CU_FILE_GETNEWFD_FAILED);
	assert_int_equal(n, 10);
	/* one goes, one fits again */
	cuFileHandleDeregister(fh[0]);
	assert_int_equal(register_fd(again[0], &fh[0]).err, 0);
	assert_int_equal(register_fd(again[11], &fh[11]).err, CU_FILE_GETNEWFD_FAILED);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	while (n--)
		cuFileHandleDeregister(fh[n]);
	assert_int_equal(t_descriptors(), before);
	for (n = 0; n < 64; n++)
		close(again[n]);
	close(fd);
}

/* 100,000 registrations of host memory at once: each is found, by interior pointers too. */
static void t_many_buffers(void **state)
{
	enum { N = 100000, STEP = 64 };
	char *mem = mmap(NULL, (size_t)N * STEP, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct buffer *b;
	unsigned int i;
	int err;

	assert_true(mem != MAP_FAILED);
	for (i = 0; i < N; i++)
		assert_int_equal(cuFileBufRegister(mem + (size_t)i * STEP, STEP / 2, 0).err, 0);
	assert_int_equal(cuFileBufRegister(mem + 5 * STEP, 3, 0).err,
			 CU_FILE_MEMORY_ALREADY_REGISTERED);
	for (i = 0; i < N; i++) {
		b = buffer_get((uintptr_t)mem + (uint64_t)i * STEP, 7, STEP / 2 - 7, &err);
		assert_non_null(b);
		assert_int_equal(b->va, (uintptr_t)mem + (uint64_t)i * STEP);
		assert_null(buffer_get((uintptr_t)mem + (uint64_t)i * STEP, 7, STEP / 2, &err));
		assert_int_equal(err, -CU_FILE_INVALID_MAPPING_RANGE);
		buffer_put(b);
		/* between two of them is nobody */
		assert_null(buffer_get((uintptr_t)mem + (uint64_t)i * STEP + STEP / 2, 0, 1, &err));
		assert_int_equal(err, 0);
	}
	for (i = 0; i < N; i += 2)
		assert_int_equal(cuFileBufDeregister(mem + (size_t)i * STEP).err, 0);
	assert_int_equal(cuFileBufDeregister(mem).err, CU_FILE_MEMORY_NOT_REGISTERED);
	/* the rest is dropped by the close */
	assert_int_equal(cuFileDriverClose().err, 0);
	munmap(mem, (size_t)N * STEP);
}

/* Descriptors that there is room for, `want` at most: the hard limit is not everybody's to raise. */
static rlim_t raise_limit(rlim_t want, struct rlimit *old)
{
	struct rlimit up;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, old), 0);
	up.rlim_cur = want;
	up.rlim_max = old->rlim_max > want ? old->rlim_max : want;
	if (!setrlimit(RLIMIT_NOFILE, &up))
		return want;
	print_message("# %llu descriptors are needed, %llu allowed (%s): raise ulimit -Hn, and sysctl fs.nr_open\n",
		      (unsigned long long)want, (unsigned long long)old->rlim_max, strerror(errno));
	up.rlim_cur = up.rlim_max = old->rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &up), 0);
	return old->rlim_max;
}

/*
 * 100,000 handles at once, on a hundred files: each finds its own. With fewer descriptors it is
 * done with what they suffice for, and counts as skipped.
 */
static void t_hundred_thousand_files(void **state)
{
	enum { MANY = 100000, NAMES = 100, SPARE = 1000 };
	CUfileHandle_t *fh = calloc(MANY, sizeof(*fh));
	int *fd = calloc(MANY, sizeof(*fd)), first[NAMES];
	unsigned int i, k, before, n;
	struct rlimit old;
	struct word want, got;

	n = (raise_limit(3 * MANY + SPARE, &old) - SPARE) / 3;
	begin();
	before = t_descriptors();
	for (k = 0; k < NAMES; k++)
		first[k] = numbered_file(k);
	for (i = 0; i < n; i++) {
		fd[i] = i < NAMES ? first[i] : dup(first[i % NAMES]);
		assert_true(fd[i] >= 0);
		assert_int_equal(register_fd(fd[i], &fh[i]).err, 0);
	}
	for (i = 0; i < 20000; i++) {
		k = (uint64_t)i * 104729 % n;
		want = word_of(k % NAMES);
		assert_int_equal(cuFileRead(fh[k], &got, sizeof(got), 0, 0), sizeof(got));
		assert_memory_equal(&got, &want, sizeof(want));
	}
	for (i = 0; i < n; i += 2)
		cuFileHandleDeregister(fh[i]);
	for (i = 0; i < 20000; i++) {
		k = (uint64_t)i * 104729 % n;
		assert_int_equal(cuFileRead(fh[k], &got, sizeof(got), 0, 0),
				 k % 2 ? (int)sizeof(got) : -1);
	}
	/* the close takes the rest */
	assert_int_equal(cuFileDriverClose().err, 0);
	for (i = 0; i < n; i++)
		close(fd[i]);
	/* the log, and what watches the mount table, are closed as well */
	assert_true(t_descriptors() <= before);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	free(fh);
	free(fd);
	if (n < MANY)
		skip();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		T(t_many_files), T(t_no_descriptors), T(t_many_buffers),
		T(t_hundred_thousand_files),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
