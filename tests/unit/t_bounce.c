// SPDX-License-Identifier: MIT
/*
 * t_bounce.c - requests through host memory against a model: sizes, offsets, ends of files and
 * failures at any byte, with many slots and with one, with helpers and without. Fails when a
 * byte is wrong or moved where nobody asked for it, when a result counts a byte behind a failure
 * or leaves out more than a piece before it, and when a request hangs. Under TSan.
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
#include "os.h"
#include "ring_fake.h"
#include "rounds.h"

#define MIB ((size_t)1024 * 1024)
#define MOST (3 * MIB + 777)	/* bytes of the file at the start */
#define ROOM (4 * MIB)		/* of the models, and of GPU memory */
#define THREADS 6
#define NONE UINT64_MAX
#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)

enum fault { NO_FAULT, FILE_FAILS, FILE_ENDS, COPY_FAILS, MARK_FAILS, END_AND_COPY, FAULTS };

/* One request's, and of the whole process: tests with faults run one request at a time. */
static struct {
	_Atomic uint64_t file_fails;	/* pread and pwrite of this byte of the file fail */
	_Atomic uint64_t file_ends;	/* pread finds the end here */
	_Atomic uint64_t copy_fails;	/* a copy of this byte of GPU memory cannot be queued */
	_Atomic uint64_t mark_fails;	/* the mark behind a copy of this byte tells an error */
	_Atomic(void *) bad_mark;
	atomic_bool slow;		/* file operations take a random time */
} fault;

static __thread bool mark_next;
static __thread uint64_t seed;

static struct os_ops ops;
static const struct os_ops *base;
static struct gpu_ops faulty;

static bool holds(uint64_t from, uint64_t n, _Atomic uint64_t *at)
{
	uint64_t byte = atomic_load(at);

	return byte != NONE && byte >= from && byte - from < n;
}

static void dawdle(void)
{
	if (!seed)
		seed = 99 + (uintptr_t)&seed;
	if (atomic_load(&fault.slow) && fake_random(&seed) % 4 == 0)
		usleep(fake_random(&seed) % 400);
}

static ssize_t some_pread(int fd, void *buf, size_t size, off_t off)
{
	uint64_t end = atomic_load(&fault.file_ends);
	ssize_t r;

	dawdle();
	if (holds(off, size, &fault.file_fails))
		return -EIO;
	r = base->pread(fd, buf, size, off);
	if (r < 0 || end == NONE || off + (uint64_t)r <= end)
		return r;
	return (uint64_t)off < end ? end - off : 0;
}

static ssize_t some_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	dawdle();
	if (holds(off, size, &fault.file_fails))
		return -EIO;
	return base->pwrite(fd, buf, size, off);
}

static int on_copy(uint64_t va, size_t size)
{
	if (holds(va, size, &fault.copy_fails))
		return CUDA_ERROR_UNKNOWN;
	mark_next = holds(va, size, &fault.mark_fails);
	return 0;
}

static int some_to_gpu(struct gpu_stream *s, uint64_t dst_va, const void *src, size_t size)
{
	int r = on_copy(dst_va, size);

	return r ? r : gpu_cuda.to_gpu(s, dst_va, src, size);
}

static int some_to_host(struct gpu_stream *s, void *dst, uint64_t src_va, size_t size)
{
	int r = on_copy(src_va, size);

	return r ? r : gpu_cuda.to_host(s, dst, src_va, size);
}

static int some_record(struct gpu_event *e, struct gpu_stream *s)
{
	if (mark_next)
		atomic_store(&fault.bad_mark, e->event);
	mark_next = false;
	return gpu_cuda.event_record(e, s);
}

static int some_query(struct gpu_event *e, bool *done)
{
	int r = gpu_cuda.event_query(e, done);

	if (!r && *done && e->event == atomic_load(&fault.bad_mark)) {
		*done = false;
		return CUDA_ERROR_UNKNOWN;
	}
	return r;
}

static void no_fault(void)
{
	atomic_store(&fault.file_fails, NONE);
	atomic_store(&fault.file_ends, NONE);
	atomic_store(&fault.copy_fails, NONE);
	atomic_store(&fault.mark_fails, NONE);
	atomic_store(&fault.bad_mark, NULL);
}

static int setup(void **state)
{
	fake_setup(state);
	no_fault();
	base = os;
	ops = *os;
	ops.pread = some_pread;
	ops.pwrite = some_pwrite;
	ring_fake_none(&ops);
	os = &ops;
	faulty = gpu_cuda;
	faulty.to_gpu = some_to_gpu;
	faulty.to_host = some_to_host;
	faulty.event_record = some_record;
	faulty.event_query = some_query;
	gpu = &faulty;
	alarm(110);	/* what nobody gives back would be waited for for ever */
	return 0;
}

static int teardown(void **state)
{
	alarm(0);
	fake_teardown(state);
	gpu = &gpu_cuda;
	return 0;
}

/* -- the model: what file and GPU memory hold -- */

struct model {
	CUfileHandle_t fh;
	int fd, look;
	char *gpu_at;		/* device address */
	size_t file_size;
	char *file, *gpu, *now;
	uint64_t seed;
};

static void model_open(struct model *m, const char *name, int flags, uint64_t its_seed)
{
	const char *path = fake_file(name, MOST, its_seed);
	CUdeviceptr d;

	m->seed = its_seed;
	m->fh = fake_register(path, O_RDWR | flags, &m->fd);
	m->look = open(path, O_RDONLY);
	m->file = calloc(1, ROOM);
	m->gpu = calloc(1, ROOM);
	m->now = calloc(1, ROOM);
	m->file_size = MOST;
	assert_int_equal(pread(m->look, m->file, ROOM, 0), MOST);
	assert_int_equal(cuMemAlloc(&d, ROOM), 0);
	m->gpu_at = (char *)(uintptr_t)d;
	fake_fill(m->gpu, ROOM, &m->seed);
	assert_int_equal(cuMemcpyHtoD(d, m->gpu, ROOM), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
}

static void model_close(struct model *m)
{
	cuFileHandleDeregister(m->fh);
	close(m->fd);
	close(m->look);
	cuMemFree((uintptr_t)m->gpu_at);
	free(m->file);
	free(m->gpu);
	free(m->now);
}

/* Of a read, what the file has. */
static size_t in_file(const struct model *m, size_t size, size_t off)
{
	if (off >= m->file_size)
		return 0;
	return m->file_size - off < size ? m->file_size - off : size;
}

/* What one request did: text, or NULL when all is as it must be. */
static const char *judge_read(struct model *m, size_t size, size_t off, size_t at, ssize_t r,
			      enum fault kind, uint64_t byte, size_t piece)
{
	size_t whole = in_file(m, size, off), from = 0, touched = whole, i;

	if (kind == FILE_ENDS)
		whole = touched = byte - off;
	if (kind == NO_FAULT || kind == FILE_ENDS) {
		if (r != (ssize_t)whole)
			return "result";
	} else {
		/* the piece that failed begins at most `piece` before the byte */
		from = byte - off > piece ? byte - off - piece : 0;
		if (r < 0 ? errno != EIO || from : (size_t)r < from || (size_t)r > byte - off)
			return "result of a request that failed";
	}
	if (cuMemcpyDtoH(m->now, (uintptr_t)m->gpu_at, ROOM))
		return "cuMemcpyDtoH";
	if (r > 0 && memcmp(m->now + at, m->file + off, r))
		return "a byte that was read";
	if (memcmp(m->now, m->gpu, at) ||
	    memcmp(m->now + at + touched, m->gpu + at + touched, ROOM - at - touched))
		return "a byte that nobody asked for";
	for (i = r > 0 ? r : 0; i < touched; i++)
		if (m->now[at + i] != m->gpu[at + i] && m->now[at + i] != m->file[off + i])
			return "a byte behind the result that is neither old nor new";
	memcpy(m->gpu, m->now, ROOM);
	return NULL;
}

static const char *judge_write(struct model *m, size_t size, size_t off, size_t at, ssize_t r,
			       enum fault kind, uint64_t byte, size_t piece)
{
	size_t from = 0, end = off + size, i;
	ssize_t n;

	if (kind == NO_FAULT) {
		if (r != (ssize_t)size)
			return "result";
	} else {
		from = byte - off > piece ? byte - off - piece : 0;
		if (r < 0 ? errno != EIO || from : (size_t)r < from || (size_t)r > byte - off)
			return "result of a request that failed";
	}
	memset(m->now, 0, ROOM);
	n = pread(m->look, m->now, ROOM, 0);
	if (n < (ssize_t)m->file_size || (n > (ssize_t)m->file_size && n > (ssize_t)end) ||
	    (kind == NO_FAULT && n < (ssize_t)end))
		return "size of the file";
	if (r > 0 && memcmp(m->now + off, m->gpu + at, r))
		return "a byte that was written";
	if (memcmp(m->now, m->file, off) || memcmp(m->now + end, m->file + end, ROOM - end))
		return "a byte that nobody asked for";
	for (i = r > 0 ? r : 0; i < size; i++)
		if (m->now[off + i] != m->file[off + i] && m->now[off + i] != m->gpu[at + i])
			return "a byte behind the result that is neither old nor new";
	memcpy(m->file, m->now, ROOM);
	m->file_size = n;
	return NULL;
}

/* Small and large, at blocks and anywhere. */
static size_t some_number(uint64_t *s, size_t most)
{
	size_t n = fake_random(s) % (fake_random(s) % 3 ? most : most < 9000 ? most : 9000);

	return fake_random(s) % 2 ? n / 4096 * 4096 : n;
}

/* -- one request at a time, with faults -- */

static enum fault some_fault(struct model *m, bool read, size_t size, size_t off, size_t at,
			     uint64_t *byte)
{
	enum fault kind = fake_random(&m->seed) % 2 ? NO_FAULT : fake_random(&m->seed) % FAULTS;
	size_t whole = read ? in_file(m, size, off) : size;
	uint64_t va = (uintptr_t)m->gpu_at + at - off;

	if (!whole || (!read && (kind == FILE_ENDS || kind == END_AND_COPY)))
		return NO_FAULT;
	*byte = off + fake_random(&m->seed) % whole;
	if (kind == FILE_FAILS) {
		atomic_store(&fault.file_fails, *byte);
	} else if (kind == FILE_ENDS || kind == END_AND_COPY) {
		atomic_store(&fault.file_ends, *byte);
		if (kind == END_AND_COPY && *byte == off)
			kind = FILE_ENDS;
		if (kind == END_AND_COPY)
			atomic_store(&fault.mark_fails, va + --*byte);
	} else if (kind == COPY_FAILS) {
		atomic_store(&fault.copy_fails, va + *byte);
	} else if (kind == MARK_FAILS) {
		atomic_store(&fault.mark_fails, va + *byte);
	}
	return kind;
}

static void random_requests(int flags, unsigned int n, uint64_t its_seed, size_t slot)
{
	size_t size, off, at, piece;
	uint64_t byte = 0;
	struct model m;
	enum fault kind;
	const char *bad;
	unsigned int i;
	ssize_t r;
	bool read;

	model_open(&m, "f", flags, its_seed);
	atomic_store(&fault.slow, true);
	for (i = 0; i < T_ROUNDS(n); i++) {
		read = fake_random(&m.seed) % 2;
		size = 1 + some_number(&m.seed, 2 * MIB + 5000);
		off = some_number(&m.seed, ROOM - size);
		at = some_number(&m.seed, ROOM - size);
		kind = some_fault(&m, read, size, off, at, &byte);
		errno = 0;
		r = read ? cuFileRead(m.fh, m.gpu_at, size, off, at) :
			   cuFileWrite(m.fh, m.gpu_at, size, off, at);
		no_fault();
		/* a piece begins at a block, and is as large as a slot at most */
		piece = slot + 4096;
		bad = read ? judge_read(&m, size, off, at, r, kind, byte, piece) :
			     judge_write(&m, size, off, at, r, kind, byte, piece);
		if (bad)
			fail_msg("seed %llu, request %u: %s of %zu at %zu, buffer offset %zu, fault %d at %llu: %zd, errno %d: %s",
				 (unsigned long long)its_seed, i, read ? "read" : "write", size,
				 off, at, kind, (unsigned long long)byte, r, errno, bad);
	}
	atomic_store(&fault.slow, false);
	model_close(&m);
}

static void configure(const char *execution, const char *slabs)
{
	char json[256];

	snprintf(json, sizeof(json),
		 "{\"execution\": {%s}, \"properties\": {\"force_compat_mode\": true%s}}",
		 execution, slabs);
	fake_configure(json);
}

#define FOUR "\"max_io_threads\": 4"
#define ALONE "\"parallel_io\": false"
#define ONE_SLOT ", \"posix_pool_slab_size_kb\": [64], \"posix_pool_slab_count\": [1]"
#define FEW_SLOTS ", \"posix_pool_slab_size_kb\": [4, 128], \"posix_pool_slab_count\": [1, 5]"

static void t_random(void **state)
{
	configure(FOUR, "");
	random_requests(0, 120, 1, MIB);
}

static void t_random_direct(void **state)
{
	configure(FOUR, "");
	random_requests(O_DIRECT, 120, 2, MIB);
}

static void t_random_alone(void **state)
{
	configure(ALONE, "");
	random_requests(0, 80, 3, MIB);
}

static void t_random_one_slot(void **state)
{
	configure(FOUR, ONE_SLOT);
	random_requests(O_DIRECT, 60, 4, 65536);
}

static void t_random_few_slots(void **state)
{
	configure(FOUR, FEW_SLOTS);
	random_requests(0, 80, 5, 131072);
}

/* The same by io_uring, whose requests fail and end as the plain ones do, and come in any order. */
static void by_ring(void)
{
	ring_fake_in(&ops, &ops);
	ring_fake.order = RING_ANY;
}

static void t_random_ring(void **state)
{
	by_ring();
	configure(FOUR, "");
	random_requests(O_DIRECT, 60, 6, MIB);
	assert_true(atomic_load(&ring_fake.begun) > T_ROUNDS(40));
}

static void t_random_ring_few_slots(void **state)
{
	by_ring();
	configure(FOUR, FEW_SLOTS);
	random_requests(O_DIRECT, 40, 7, 131072);
}

/* -- many at once, each with file and memory of its own -- */

static atomic_uint wrong;

static void *one_of_many(void *arg)
{
	struct model *m = arg;
	size_t size, off, at;
	const char *bad;
	unsigned int i;
	ssize_t r;
	bool read;

	if (cuCtxSetCurrent(fake_ctx))
		atomic_fetch_add(&wrong, 1);
	for (i = 0; i < T_ROUNDS(12); i++) {
		read = fake_random(&m->seed) % 2;
		size = 1 + some_number(&m->seed, 2 * MIB + 5000);
		off = some_number(&m->seed, ROOM - size);
		at = some_number(&m->seed, ROOM - size);
		r = read ? cuFileRead(m->fh, m->gpu_at, size, off, at) :
			   cuFileWrite(m->fh, m->gpu_at, size, off, at);
		bad = read ? judge_read(m, size, off, at, r, NO_FAULT, 0, 0) :
			     judge_write(m, size, off, at, r, NO_FAULT, 0, 0);
		if (!bad)
			continue;
		fprintf(stderr, "request %u: %s of %zu at %zu, buffer offset %zu: %zd, errno %d: %s\n",
			i, read ? "read" : "write", size, off, at, r, errno, bad);
		atomic_fetch_add(&wrong, 1);
		break;
	}
	return NULL;
}

static void many_at_once(int flags)
{
	struct model m[THREADS];
	pthread_t t[THREADS];
	char name[16];
	unsigned int i;

	atomic_store(&wrong, 0);
	for (i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		model_open(&m[i], name, flags, 100 + i);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, one_of_many, &m[i]), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	for (i = 0; i < THREADS; i++)
		model_close(&m[i]);
}

static void t_many(void **state)
{
	configure(FOUR, "");
	many_at_once(0);
}

static void t_many_ring(void **state)
{
	by_ring();
	configure(FOUR, "");
	many_at_once(O_DIRECT);
}

static void t_many_one_slot(void **state)
{
	configure(FOUR, ONE_SLOT);
	many_at_once(O_DIRECT);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_random),	   T(t_random_direct),	  T(t_random_alone),
		T(t_random_one_slot), T(t_random_few_slots), T(t_many),
		T(t_many_one_slot), T(t_random_ring), T(t_random_ring_few_slots),
		T(t_many_ring),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
