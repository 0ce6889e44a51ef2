// SPDX-License-Identifier: MIT
/*
 * t_batch_pages.c - small entries of a batch by the GPU's pages in the process: all of them in one
 * system call, and what cannot go so, or did not, goes as every other entry.
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

#include <cuda.h>

#include "cufile_fake.h"
#include "opengds.h"
#include "ring_fake.h"

#define K 1024UL
#define N 256
#define PIECE (4 * K)
#define SIZE (N * PIECE)
#define LARGE (128 * K)
#define SECOND ((uint64_t)1000000000)
#define ONLY "{\"opengds\": {\"routes\": [\"p2pdma\", \"bounce\"]}, " \
	"\"properties\": {\"io_batchsize\": 1024}}"

static struct os_ops ops;
static const struct os_ops *base;
static atomic_uint plain;	/* requests without a ring */
static _Atomic uint64_t ahead;	/* ns that the library's clock is ahead by */
static uint64_t start_ns;
static off_t plain_bad;		/* that of this offset fails */

/* A file of SIZE, registered memory as large and a batch; entry i is piece order[i] of both. */
static struct {
	CUfileHandle_t fh;
	CUfileBatchHandle_t batch;
	CUdeviceptr alloc;
	char *gpu, *file, *got;
	int fd;
	unsigned int order[N], seen[N];
	CUfileIOParams_t params[N];
	CUfileIOEvents_t events[N];
} t;

static ssize_t plain_pread(int fd, void *at, size_t n, off_t off)
{
	atomic_fetch_add(&plain, 1);
	return off == plain_bad ? -EIO : base->pread(fd, at, n, off);
}

static ssize_t plain_pwrite(int fd, const void *at, size_t n, off_t off)
{
	atomic_fetch_add(&plain, 1);
	return base->pwrite(fd, at, n, off);
}

/* The test's time, not that of a slow machine: only a hundredth of that goes by. */
static uint64_t later(void)
{
	return start_ns + (base->now_ns() - start_ns) / 100 + atomic_load(&ahead);
}

static void begin(const char *json)
{
	uint64_t seed = 11;
	unsigned int i, j;

	fake_configure(json);
	t.fh = fake_register(fake_file("a", SIZE, 1), O_RDWR, &t.fd);
	assert_int_equal(cuMemAlloc(&t.alloc, SIZE), 0);
	t.gpu = (char *)(uintptr_t)t.alloc;
	t.file = malloc(SIZE);
	t.got = malloc(SIZE);
	fake_fill(t.file, SIZE, &seed);
	assert_int_equal(pwrite(t.fd, t.file, SIZE, 0), SIZE);
	assert_int_equal(cuFileBufRegister(t.gpu, SIZE, 0).err, 0);
	assert_int_equal(cuFileBatchIOSetUp(&t.batch, N).err, 0);
	for (i = 0; i < N; i++) {
		j = fake_random(&seed) % (i + 1);
		t.order[i] = t.order[j];
		t.order[j] = i;
	}
	memset(t.params, 0, sizeof(t.params));
	for (i = 0; i < N; i++) {
		t.params[i].mode = CUFILE_BATCH;
		t.params[i].fh = t.fh;
		t.params[i].cookie = &t.params[i];
		t.params[i].u.batch.devPtr_base = t.gpu;
		t.params[i].u.batch.devPtr_offset = t.order[i] * PIECE;
		t.params[i].u.batch.file_offset = t.order[i] * PIECE;
		t.params[i].u.batch.size = PIECE;
	}
	atomic_store(&plain, 0);
}

static void end(void)
{
	cuFileBatchIODestroy(t.batch);
	assert_int_equal(cuFileBufDeregister(t.gpu).err, 0);
	cuFileHandleDeregister(t.fh);
	cuMemFree(t.alloc);
	close(t.fd);
	free(t.file);
	free(t.got);
}

static void clear(void)
{
	assert_int_equal(cuMemsetD8(t.alloc, 0xee, SIZE), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
}

static void submit(CUfileOpcode_t op)
{
	unsigned int i;

	for (i = 0; i < N; i++)
		t.params[i].opcode = op;
	assert_int_equal(cuFileBatchIOSubmit(t.batch, N, t.params, 0).err, 0);
}

/* Each entry's event, once. */
static void reap(void)
{
	unsigned int nr = N, i;

	memset(t.seen, 0, sizeof(t.seen));
	assert_int_equal(cuFileBatchIOGetStatus(t.batch, N, &nr, t.events, NULL).err, 0);
	assert_int_equal(nr, N);
	for (i = 0; i < N; i++)
		assert_int_equal(t.seen[(CUfileIOParams_t *)t.events[i].cookie - t.params]++, 0);
}

/* The same, and all of them are whole. */
static void all_whole(void)
{
	unsigned int i;

	reap();
	for (i = 0; i < N; i++) {
		assert_int_equal(t.events[i].status, CUFILE_COMPLETE);
		assert_int_equal(t.events[i].ret, PIECE);
	}
}

static void gpu_is_file(void)
{
	assert_int_equal(cuMemcpyDtoH(t.got, t.alloc, SIZE), 0);
	assert_memory_equal(t.got, t.file, SIZE);
}

/* What the file's requests did since the last look. */
static struct ogds_report report(void)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	assert_int_equal(ogds_handle_io(t.fh, &r), 0);
	return r;
}

static void all_direct(void)
{
	struct ogds_report r = report();

	assert_int_equal(r.sequence, N);
	assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], SIZE);
	assert_int_equal(r.whole_direct, SIZE);
	assert_int_equal(r.witnessed, SIZE);
	assert_int_equal(r.retried, 0);
}

static void t_together(void **state)
{
	unsigned int i;

	begin(ONLY);
	for (i = 0; i < 3; i++) {
		clear();
		ring_fake_forget();
		submit(CUFILE_READ);
		all_whole();
		gpu_is_file();
		all_direct();
		assert_int_equal(atomic_load(&ring_fake.goes), 1);
		assert_int_equal(atomic_load(&ring_fake.begun), N);
		assert_int_equal(atomic_load(&plain), 0);
	}
	/* and back, the other way round */
	for (i = 0; i < SIZE; i++)
		t.file[i] ^= 0x5a;
	assert_int_equal(cuMemcpyHtoD(t.alloc, t.file, SIZE), 0);
	cuCtxSynchronize();
	ring_fake_forget();
	submit(CUFILE_WRITE);
	all_whole();
	all_direct();
	assert_int_equal(atomic_load(&ring_fake.goes), 1);
	assert_int_equal(atomic_load(&plain), 0);
	assert_int_equal(pread(t.fd, t.got, SIZE, 0), SIZE);
	assert_memory_equal(t.got, t.file, SIZE);
	end();
}

/* The statistics know each of them. */
static void t_counted(void **state)
{
	CUfileStatsLevel1_t s;

	begin(ONLY);
	assert_int_equal(cuFileSetStatsLevel(1).err, 0);
	assert_int_equal(cuFileStatsStart().err, 0);
	submit(CUFILE_READ);
	all_whole();
	assert_int_equal(cuFileGetStatsL1(&s).err, 0);
	assert_int_equal(s.batch_processed_ops.ok, N);
	assert_int_equal(s.batch_posix_processed_ops.ok, 0);
	assert_int_equal(s.batch_read_bytes, SIZE);
	assert_int_equal(cuFileStatsStop().err, 0);
	end();
}

/* Among entries that can go so stand others: each ends as it does alone. */
static void t_among_others(void **state)
{
	CUdeviceptr other;
	struct ogds_report r;
	unsigned int i, n = 0;

	begin(ONLY);
	assert_int_equal(cuMemAlloc(&other, SIZE), 0);
	assert_int_equal(ftruncate(t.fd, SIZE - 3 * PIECE + 700), 0);
	clear();
	assert_int_equal(cuMemsetD8(other, 0xee, SIZE), 0);
	cuCtxSynchronize();
	for (i = 0; i < N; i++) {
		off_t at = t.order[i] * PIECE;

		if (at % (8 * PIECE) == PIECE) {
			t.params[i].u.batch.devPtr_base = (void *)(uintptr_t)other;
		} else if (at % (8 * PIECE) == 2 * PIECE) {
			t.params[i].u.batch.size = PIECE - 100;
		} else if (at % (8 * PIECE) == 3 * PIECE) {
			t.params[i].u.batch.file_offset += 512;
			t.params[i].u.batch.size = PIECE - 512;
		} else if (at < SIZE - 3 * (off_t)PIECE) {
			n++;
		}
	}
	submit(CUFILE_READ);
	reap();
	for (i = 0; i < N; i++) {
		CUfileIOParams_t *p = t.events[i].cookie;
		off_t from = p->u.batch.file_offset, left = SIZE - 3 * PIECE + 700 - from;
		size_t want = p->u.batch.size;

		if (left < (off_t)want)
			want = left < 0 ? 0 : left;
		assert_int_equal(t.events[i].status, CUFILE_COMPLETE);
		assert_int_equal(t.events[i].ret, want);
		assert_int_equal(cuMemcpyDtoH(t.got, (uintptr_t)p->u.batch.devPtr_base +
					      p->u.batch.devPtr_offset, PIECE), 0);
		assert_memory_equal(t.got, t.file + from, want);
	}
	r = report();
	assert_true(r.bytes[OGDS_ROUTE_P2PDMA] >= n * PIECE);
	assert_true(atomic_load(&ring_fake.begun) >= n);
	cuMemFree(other);
	end();
}

/* A CPU moved some: those are done again, and not called direct. */
static void t_by_a_cpu(void **state)
{
	struct ogds_report r;

	begin(ONLY);
	clear();
	atomic_store(&fake.cpu_pages, 10);
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	r = report();
	assert_int_equal(r.sequence, N);
	assert_int_equal(r.result, SIZE);
	/* what was done again a drive moved */
	assert_int_equal(r.whole_direct, SIZE);
	assert_true(atomic_load(&plain) >= 10);
	end();
}

/* The kernel refuses the pages of this device: known after one. */
static void t_refused(void **state)
{
	struct ogds_report r;

	begin(ONLY);
	clear();
	atomic_store(&fake.page_error, EREMOTEIO);
	atomic_store(&fake.page_failures, 2 * N);
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	r = report();
	assert_int_equal(r.whole_direct, 0);
	assert_string_equal(ogds_reason_id(r.reason), "R-PAGES-DEVICE");
	ring_fake_forget();
	submit(CUFILE_READ);
	all_whole();
	assert_int_equal(atomic_load(&ring_fake.goes), 0);
	end();
}

static void t_ring_error(void **state)
{
	unsigned int i;

	begin(ONLY);
	clear();
	ring_fake.bad_off = 5 * PIECE + 1;
	ring_fake.bad_result = -EIO;
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	assert_int_equal(atomic_load(&plain), 1);
	/* and when a drive means it, the entry says so, and only it */
	plain_bad = 5 * PIECE;
	submit(CUFILE_READ);
	reap();
	for (i = 0; i < N; i++) {
		CUfileIOParams_t *p = t.events[i].cookie;
		bool bad = p->u.batch.file_offset == 5 * PIECE;

		assert_int_equal(t.events[i].status, bad ? CUFILE_FAILED : CUFILE_COMPLETE);
		assert_int_equal(t.events[i].ret, bad ? (size_t)-EIO : PIECE);
	}
	end();
}

/* The kernel takes fewer than it was given, or has no ring. */
static void t_fewer(void **state)
{
	begin(ONLY);
	ring_fake.may_begin = 100;
	clear();
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	all_direct();
	assert_int_equal(atomic_load(&ring_fake.begun), 100);
	assert_int_equal(atomic_load(&plain), N - 100);
	/* that ring is gone, and a second later there is another one */
	assert_int_equal(atomic_load(&ring_fake.rings), 0);
	ring_fake_forget();
	ring_fake.may_begin = ~0u;
	clear();
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	all_direct();
	assert_int_equal(atomic_load(&ring_fake.asked), 1);
	assert_int_equal(atomic_load(&ring_fake.goes), 0);
	atomic_store(&ahead, SECOND + 1);
	clear();
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	all_direct();
	assert_int_equal(atomic_load(&ring_fake.asked), 2);
	assert_int_equal(atomic_load(&ring_fake.begun), N);
	ring_fake_forget();
	ring_fake.may_add = 7;
	clear();
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	all_direct();
	assert_int_equal(atomic_load(&ring_fake.begun), 7);
	end();
}

static void t_no_ring(void **state)
{
	ring_fake.new_error = -EPERM;
	begin(ONLY);
	clear();
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	all_direct();
	assert_int_equal(atomic_load(&plain), N);
	end();
}

/* By the module where that may do it, and large ones by themselves. */
static void t_not_so(void **state)
{
	unsigned int i;

	begin("{\"opengds\": {\"routes\": [\"nvfs\", \"p2pdma\", \"bounce\"]}, "
	      "\"properties\": {\"io_batchsize\": 1024}}");
	clear();
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	assert_int_equal(report().bytes[OGDS_ROUTE_NVFS], SIZE);
	assert_int_equal(atomic_load(&ring_fake.goes), 0);
	end();
	cuFileDriverClose();
	begin(ONLY);
	clear();
	for (i = 0; i < SIZE / LARGE; i++) {
		t.params[i].u.batch.devPtr_offset = i * LARGE;
		t.params[i].u.batch.file_offset = i * LARGE;
		t.params[i].u.batch.size = LARGE;
		t.params[i].opcode = CUFILE_READ;
	}
	assert_int_equal(cuFileBatchIOSubmit(t.batch, SIZE / LARGE, t.params, 0).err, 0);
	i = N;
	assert_int_equal(cuFileBatchIOGetStatus(t.batch, N, &i, t.events, NULL).err, 0);
	assert_int_equal(i, SIZE / LARGE);
	gpu_is_file();
	assert_int_equal(atomic_load(&ring_fake.goes), 0);
	end();
}

/* Many batches at a time, and cancels: each entry ends once, whole or not begun. */
static void *one_batch(void *arg)
{
	unsigned int round, i, nr, left;
	CUfileIOParams_t params[64];
	CUfileIOEvents_t events[64];
	CUfileBatchHandle_t b;

	for (round = 0; round < 20; round++) {
		if (cuFileBatchIOSetUp(&b, 64).err)
			return t.gpu;
		memcpy(params, t.params + (size_t)arg * 64, sizeof(params));
		if (cuFileBatchIOSubmit(b, 64, params, 0).err)
			return t.gpu;
		if (round % 3 == 1)
			cuFileBatchIOCancel(b);
		if (round % 3 == 2) {
			cuFileBatchIODestroy(b);
			continue;
		}
		for (left = 64; left; left -= nr) {
			nr = left;
			if (cuFileBatchIOGetStatus(b, 1, &nr, events, NULL).err || !nr)
				return t.gpu;
			for (i = 0; i < nr; i++)
				if (events[i].status != CUFILE_CANCELED &&
				    (events[i].status != CUFILE_COMPLETE || events[i].ret != PIECE))
					return t.gpu;
		}
		cuFileBatchIODestroy(b);
	}
	return NULL;
}

static void t_many(void **state)
{
	pthread_t thread[4];
	void *bad;
	size_t i;

	begin(ONLY);
	clear();
	for (i = 0; i < N; i++)
		t.params[i].opcode = CUFILE_READ;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, one_batch, (void *)i), 0);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
	gpu_is_file();
	/* a close with entries on their way */
	assert_int_equal(cuFileBatchIOSubmit(t.batch, N, t.params, 0).err, 0);
	assert_int_equal(cuFileDriverClose().err, 0);
	cuMemFree(t.alloc);
	close(t.fd);
	free(t.file);
	free(t.got);
}

/* The kernel's own ring. */
static void t_kernel(void **state)
{
	begin(ONLY);
	clear();
	submit(CUFILE_READ);
	all_whole();
	gpu_is_file();
	assert_int_equal(report().result, SIZE);
	end();
}

static void common(void)
{
	base = os;
	plain_bad = -1;
	ops = *os;
	ops.pread = plain_pread;
	ops.pwrite = plain_pwrite;
	ops.now_ns = later;
	atomic_store(&ahead, 0);
	start_ns = base->now_ns();
	os = &ops;
	alarm(100);
}

static int setup(void **state)
{
	fake_setup(state);
	common();
	ring_fake_in(&ops, base);
	return 0;
}

static int setup_kernel(void **state)
{
	fake_setup(state);
	common();
	return 0;
}

static int teardown(void **state)
{
	alarm(0);
	return fake_teardown(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(t_together), T(t_counted), T(t_among_others), T(t_by_a_cpu), T(t_refused),
		T(t_ring_error), T(t_fewer), T(t_no_ring), T(t_not_so), T(t_many),
		cmocka_unit_test_setup_teardown(t_kernel, setup_kernel, teardown),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
