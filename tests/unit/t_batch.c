// SPDX-License-Identifier: MIT
/*
 * t_batch.c - batches, on the machine of cufile_fake.h: every entry is performed once and
 * reported once with its own cookie and its exact result; limits and refusals; cancel,
 * reuse, destroy and close at any time. Runs under TSan as well.
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
#include "opengds.h"

#define PIECE 8192
#define PIECES 64

static struct {
	CUfileHandle_t fh;
	int fd;
	char *gpu;
	char file[PIECE * PIECES], got[PIECE * PIECES];
	CUfileIOParams_t params[PIECES];
	CUfileIOEvents_t events[PIECES];
} m;

static void file_content(void)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/f", fake.dir);
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, m.file, sizeof(m.file), 0), sizeof(m.file));
	close(fd);
}

static int setup(void **state)
{
	CUdeviceptr p;
	unsigned int i;

	fake_setup(state);
	m.fh = fake_register(fake_file("f", sizeof(m.file), 42), O_RDWR | O_DIRECT, &m.fd);
	file_content();
	assert_int_equal(cuMemAlloc(&p, sizeof(m.file)), 0);
	m.gpu = (char *)(uintptr_t)p;
	memset(m.params, 0, sizeof(m.params));
	for (i = 0; i < PIECES; i++) {
		m.params[i].mode = CUFILE_BATCH;
		m.params[i].fh = m.fh;
		m.params[i].opcode = CUFILE_READ;
		m.params[i].cookie = &m.params[i];
		m.params[i].u.batch.devPtr_base = m.gpu;
		m.params[i].u.batch.devPtr_offset = i * PIECE;
		/* every other one at a place that is no multiple of 4096 */
		m.params[i].u.batch.file_offset = i * PIECE;
		m.params[i].u.batch.size = i % 2 ? PIECE : PIECE - 100;
	}
	return 0;
}

static int teardown(void **state)
{
	fake_teardown(state);
	close(m.fd);
	cuMemFree((uintptr_t)m.gpu);
	return 0;
}

static CUfileBatchHandle_t batch(unsigned int nr)
{
	CUfileBatchHandle_t b = NULL;

	assert_int_equal(cuFileBatchIOSetUp(&b, nr).err, 0);
	assert_non_null(b);
	return b;
}

/* Waits for n events; each must be one of params[first .. first + n), once, complete. */
static void reap(CUfileBatchHandle_t b, unsigned int first, unsigned int n)
{
	unsigned int have = 0, nr, i;
	char seen[PIECES] = { 0 };

	while (have < n) {
		nr = n - have;
		assert_int_equal(cuFileBatchIOGetStatus(b, 1, &nr, m.events, NULL).err, 0);
		assert_true(nr >= 1 && nr <= n - have);
		for (i = 0; i < nr; i++) {
			size_t which = (CUfileIOParams_t *)m.events[i].cookie - m.params;

			assert_true(which >= first && which < first + n);
			assert_false(seen[which]++);
			assert_int_equal(m.events[i].status, CUFILE_COMPLETE);
			assert_int_equal(m.events[i].ret, m.params[which].u.batch.size);
		}
		have += nr;
	}
}

static void gpu_is_file(void)
{
	unsigned int i;

	assert_int_equal(cuMemcpyDtoH(m.got, (uintptr_t)m.gpu, sizeof(m.got)), 0);
	for (i = 0; i < PIECES; i++)
		assert_memory_equal(m.got + i * PIECE, m.file + i * PIECE,
				    m.params[i].u.batch.size);
}

static void gpu_clear(void)
{
	assert_int_equal(cuMemsetD8((uintptr_t)m.gpu, 0, sizeof(m.got)), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
}

static void t_read(void **state)
{
	CUfileBatchHandle_t b = batch(PIECES);

	assert_int_equal(cuFileBufRegister(m.gpu, sizeof(m.got), 0).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	reap(b, 0, PIECES);
	gpu_is_file();
	cuFileBatchIODestroy(b);
	assert_int_equal(cuFileBufDeregister(m.gpu).err, 0);
}

/* Which way the entries went: nothing is lost, and nothing is told twice. */
static void t_report(void **state)
{
	struct ogds_report rep = OGDS_REPORT_INIT;
	CUfileBatchHandle_t b = batch(PIECES);
	unsigned int i, done;
	uint64_t routes;

	for (done = 0; done < 3 * PIECES;) {
		assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
		reap(b, 0, PIECES);
		assert_int_equal(ogds_handle_io(m.fh, &rep), 0);
		assert_int_equal(rep.struct_size, sizeof(rep));
		assert_int_equal(rep.sequence, PIECES);
		assert_int_equal(rep.result, PIECES / 2 * (PIECE + PIECE - 100));
		for (routes = 0, i = 0; i < OGDS_ROUTE_SLOTS; i++)
			routes += rep.bytes[i];
		assert_int_equal(routes, rep.result);
		assert_int_equal(rep.whole_direct, rep.whole_bytes);
		assert_int_equal(rep.whole_bytes + rep.edge_bytes, rep.result);
		assert_int_equal(rep.error, 0);
		done += rep.sequence;
	}
	assert_int_equal(ogds_handle_io(m.fh, &rep), 0);
	assert_int_equal(rep.sequence, 0);
	assert_int_equal(ogds_handle_io(m.gpu, &rep), -EINVAL);
	cuFileBatchIODestroy(b);
}

static void t_write(void **state)
{
	CUfileBatchHandle_t b = batch(PIECES);
	uint64_t seed = 7;
	unsigned int i;

	fake_fill(m.file, sizeof(m.file), &seed);
	assert_int_equal(cuMemcpyHtoD((uintptr_t)m.gpu, m.file, sizeof(m.file)), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	for (i = 0; i < PIECES; i++)
		m.params[i].opcode = CUFILE_WRITE;
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	/* what the caller passed is not looked at again */
	for (i = 0; i < PIECES; i++)
		m.params[i].fh = NULL;
	reap(b, 0, PIECES);
	gpu_clear();
	for (i = 0; i < PIECES; i++) {
		m.params[i].fh = m.fh;
		m.params[i].opcode = CUFILE_READ;
	}
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	reap(b, 0, PIECES);
	gpu_is_file();
	cuFileBatchIODestroy(b);
}

static void t_limits(void **state)
{
	CUfileBatchHandle_t b = NULL;
	unsigned int nr = 1;

	assert_int_equal(cuFileBatchIOSetUp(&b, 0).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBatchIOSetUp(&b, 129).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBatchIOSetUp(NULL, 1).err, CU_FILE_INVALID_VALUE);
	b = batch(4);
	assert_int_equal(cuFileBatchIOSubmit(NULL, 1, m.params, 0).err, 5040);
	assert_int_equal(cuFileBatchIOSubmit(m.fh, 1, m.params, 0).err, 5040);
	assert_int_equal(cuFileBatchIOSubmit(b, 0, m.params, 0).err, 5040);
	assert_int_equal(cuFileBatchIOSubmit(b, 5, m.params, 0).err, 5040);
	/* one bad entry, and nothing is queued */
	m.params[2].fh = b;
	assert_int_equal(cuFileBatchIOSubmit(b, 3, m.params, 0).err, 5040);
	m.params[2].fh = m.fh;
	m.params[1].mode = 0;
	assert_int_equal(cuFileBatchIOSubmit(b, 3, m.params, 0).err, 5040);
	m.params[1].mode = CUFILE_BATCH;
	m.params[1].u.batch.file_offset = -4096;
	assert_int_equal(cuFileBatchIOSubmit(b, 3, m.params, 0).err, 5040);
	m.params[1].u.batch.file_offset = PIECE;
	m.params[1].u.batch.devPtr_offset -= 1 << 30;
	assert_int_equal(cuFileBatchIOSubmit(b, 3, m.params, 0).err, 5040);
	m.params[1].u.batch.devPtr_offset += 1 << 30;
	assert_int_equal(cuFileBatchIOGetStatus(b, 0, &nr, m.events, NULL).err, 0);
	assert_int_equal(nr, 0);
	/* what is not asked for keeps its place */
	assert_int_equal(cuFileBatchIOSubmit(b, 3, m.params, 0).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(b, 2, m.params, 0).err, 5040);
	assert_int_equal(cuFileBatchIOSubmit(b, 1, m.params + 3, 0).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(b, 1, m.params, 0).err, 5040);
	reap(b, 0, 4);
	nr = 1;
	assert_int_equal(cuFileBatchIOGetStatus(b, 2, &nr, m.events, NULL).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBatchIOGetStatus(m.fh, 0, &nr, m.events, NULL).err, 5041);
	assert_int_equal(cuFileBatchIOCancel(m.fh).err, 0);
	cuFileBatchIODestroy(b);
	assert_int_equal(cuFileBatchIOSubmit(b, 1, m.params, 0).err, 5040);
	cuFileBatchIODestroy(b);
}

static void t_results(void **state)
{
	CUfileBatchHandle_t b = batch(4);
	unsigned int nr = 4, i;

	ogds_handle_set_strict(m.fh, true);
	atomic_store(&fake.io_error, EIO);
	atomic_store(&fake.io_failures, 1);
	m.params[0].u.batch.size = PIECE;
	assert_int_equal(cuFileBatchIOSubmit(b, 1, m.params, 0).err, 0);
	assert_int_equal(cuFileBatchIOGetStatus(b, 1, &nr, m.events, NULL).err, 0);
	assert_int_equal(nr, 1);
	assert_int_equal(m.events[0].status, CUFILE_FAILED);
	assert_int_equal((ssize_t)m.events[0].ret, -EIO);
	ogds_handle_set_strict(m.fh, false);

	m.params[0].opcode = 5;
	m.params[1].u.batch.file_offset = sizeof(m.file);
	m.params[2].u.batch.file_offset = sizeof(m.file) - 10;
	assert_int_equal(cuFileBatchIOSubmit(b, 3, m.params, 0).err, 0);
	nr = 4;
	/* more than there are: all of them, at once */
	assert_int_equal(cuFileBatchIOGetStatus(b, 4, &nr, m.events, NULL).err, 0);
	assert_int_equal(nr, 3);
	for (i = 0; i < 3; i++) {
		size_t which = (CUfileIOParams_t *)m.events[i].cookie - m.params;

		assert_int_equal(m.events[i].status, which ? CUFILE_COMPLETE : CUFILE_FAILED);
		assert_int_equal((ssize_t)m.events[i].ret,
				 which == 0 ? -EINVAL : which == 1 ? 0 : 10);
	}
	cuFileBatchIODestroy(b);
}

static void t_timeout(void **state)
{
	struct timespec t = { 0, 20000000 }, none = { 0, 0 };
	CUfileBatchHandle_t b = batch(2);
	unsigned int nr = 2;

	atomic_store(&fake.io_delay_us, 300000);
	assert_int_equal(cuFileBatchIOSubmit(b, 2, m.params, 0).err, 0);
	assert_int_equal(cuFileBatchIOGetStatus(b, 0, &nr, m.events, &none).err, 0);
	assert_int_equal(nr, 0);
	nr = 2;
	assert_int_equal(cuFileBatchIOGetStatus(b, 2, &nr, m.events, &t).err, 0);
	assert_int_equal(nr, 0);
	/* a time that is none: milliseconds in an int, as some programs pass it */
	t.tv_sec = 5000;
	t.tv_nsec = -1;
	nr = 2;
	assert_int_equal(cuFileBatchIOGetStatus(b, 2, &nr, m.events, &t).err, 0);
	assert_int_equal(nr, 2);
	cuFileBatchIODestroy(b);
}

static void t_cancel(void **state)
{
	CUfileBatchHandle_t b = batch(PIECES);
	unsigned int nr = PIECES, i, cancelled = 0;

	fake_configure("{\"execution\": {\"max_io_threads\": 2}}");
	atomic_store(&fake.io_delay_us, 20000);
	for (i = 0; i < PIECES; i++)
		m.params[i].u.batch.size = PIECE;
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	assert_int_equal(cuFileBatchIOCancel(b).err, 0);
	/* each is reported, those that had not begun as cancelled */
	assert_int_equal(cuFileBatchIOGetStatus(b, PIECES, &nr, m.events, NULL).err, 0);
	assert_int_equal(nr, PIECES);
	for (i = 0; i < nr; i++) {
		cancelled += m.events[i].status == CUFILE_CANCELED;
		assert_true(m.events[i].status == CUFILE_CANCELED ||
			    m.events[i].status == CUFILE_COMPLETE);
	}
	assert_true(cancelled > 0);
	atomic_store(&fake.io_delay_us, 0);
	/* usable again, whether anybody asks for the events or not */
	for (i = 0; i < 3; i++) {
		assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
		assert_int_equal(cuFileBatchIOCancel(b).err, 0);
	}
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	reap(b, 0, PIECES);
	gpu_is_file();
	cuFileBatchIODestroy(b);
}

static void t_reuse(void **state)
{
	CUfileBatchHandle_t b = batch(3);
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		assert_int_equal(cuFileBatchIOSubmit(b, 3, m.params + i % 60, 0).err, 0);
		reap(b, i % 60, 3);
	}
	cuFileBatchIODestroy(b);
}

static void t_destroy_and_close(void **state)
{
	CUfileBatchHandle_t b = batch(PIECES), c;

	atomic_store(&fake.io_delay_us, 2000);
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	cuFileBatchIODestroy(b);
	b = batch(PIECES);
	c = batch(PIECES);
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(c, PIECES, m.params, 0).err, 0);
	/* without a destroy */
	assert_int_equal(cuFileDriverClose().err, 0);
	assert_int_equal(cuFileUseCount(), 0);
	/* a batch needs the library open, and does not open it */
	assert_int_equal(cuFileBatchIOSetUp(&b, 1).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileUseCount(), 0);
}

/* No thread: the caller does it, and all the same holds. */
static void t_no_threads(void **state)
{
	CUfileBatchHandle_t b;

	cuFileDriverClose();
	fake_configure("{\"execution\": {\"max_io_threads\": 0}}");
	close(m.fd);
	m.fh = fake_register(fake_file("f", sizeof(m.file), 42), O_RDWR, &m.fd);
	for (unsigned int i = 0; i < PIECES; i++)
		m.params[i].fh = m.fh;
	b = batch(PIECES);
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	reap(b, 0, PIECES);
	gpu_is_file();
	cuFileBatchIODestroy(b);
}

static void t_ten_thousand(void **state)
{
	const unsigned int n = 10000;
	CUfileIOParams_t *p = calloc(n, sizeof(*p));
	CUfileIOEvents_t *ev = calloc(n, sizeof(*ev));
	char *got = malloc(n * 512), *seen = calloc(n, 1);
	CUfileBatchHandle_t b;
	unsigned int i, nr = n;
	CUdeviceptr gpu;

	cuFileDriverClose();
	fake_configure("{\"properties\": {\"io_batchsize\": 16384}}");
	assert_int_equal(cuMemAlloc(&gpu, n * 512), 0);
	close(m.fd);
	m.fh = fake_register(fake_file("f", sizeof(m.file), 42), O_RDWR, &m.fd);
	for (i = 0; i < n; i++) {
		p[i] = m.params[i % PIECES];
		p[i].fh = m.fh;
		p[i].cookie = (void *)(uintptr_t)i;
		/* each has memory of its own: they run side by side */
		p[i].u.batch.devPtr_base = (void *)(uintptr_t)gpu;
		p[i].u.batch.devPtr_offset = i * 512;
		p[i].u.batch.file_offset = i * 512 % sizeof(m.file);
		p[i].u.batch.size = 512;
	}
	b = batch(n);
	assert_int_equal(cuFileBatchIOSubmit(b, n, p, 0).err, 0);
	assert_int_equal(cuFileBatchIOGetStatus(b, n, &nr, ev, NULL).err, 0);
	assert_int_equal(nr, n);
	for (i = 0; i < n; i++) {
		assert_int_equal(ev[i].status, CUFILE_COMPLETE);
		assert_int_equal(ev[i].ret, 512);
		assert_false(seen[(uintptr_t)ev[i].cookie]++);
	}
	cuFileBatchIODestroy(b);
	assert_int_equal(cuMemcpyDtoH(got, gpu, n * 512), 0);
	for (i = 0; i < n; i++)
		assert_memory_equal(got + i * 512, m.file + i * 512 % sizeof(m.file), 512);
	cuMemFree(gpu);
	free(got);
	free(p);
	free(ev);
	free(seen);
}

/* What batches do is counted as such, not as single requests. */
static void t_statistics(void **state)
{
	CUfileStatsLevel1_t l1;
	CUfileBatchHandle_t b;
	size_t bytes = 0;
	unsigned int i;

	assert_int_equal(cuFileSetStatsLevel(1).err, 0);
	assert_int_equal(cuFileStatsStart().err, 0);
	b = batch(PIECES);
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES, m.params, 0).err, 0);
	reap(b, 0, PIECES);
	assert_int_equal(cuFileBatchIOSubmit(b, PIECES + 1, m.params, 0).err, 5040);
	assert_int_equal(cuFileBatchIOCancel(b).err, 0);
	cuFileBatchIODestroy(b);
	assert_int_equal(cuFileStatsStop().err, 0);
	assert_int_equal(cuFileGetStatsL1(&l1).err, 0);
	for (i = 0; i < PIECES; i++)
		bytes += m.params[i].u.batch.size;
	assert_int_equal(l1.batch_setup_ops.ok, 1);
	assert_int_equal(l1.batch_submit_ops.ok, 1);
	assert_int_equal(l1.batch_submit_ops.err, 1);
	assert_int_equal(l1.batch_cancel_ops.ok, 1);
	assert_int_equal(l1.batch_destroy_ops.ok, 1);
	assert_int_equal(l1.batch_complete_ops.ok, 1);
	assert_int_equal(l1.batch_read_bytes, bytes);
	assert_int_equal(l1.read_ops.ok, 0);
}

/* Many threads, each with a batch of its own on one file, and a canceller. */
static void *batcher(void *arg)
{
	unsigned int first = (uintptr_t)arg * 8, nr, i, have, rounds;
	CUfileIOEvents_t ev[8];
	CUfileBatchHandle_t b;
	uintptr_t bad = 0;

	if (cuFileBatchIOSetUp(&b, 8).err)
		return (void *)1;
	for (rounds = 0; rounds < 30; rounds++) {
		if (cuFileBatchIOSubmit(b, 8, m.params + first, 0).err)
			bad |= 2;
		if (rounds % 5 == 4) {
			if (cuFileBatchIOCancel(b).err)
				bad |= 4;
			continue;
		}
		for (have = 0; have < 8 && !bad; have += nr) {
			nr = 8 - have;
			if (cuFileBatchIOGetStatus(b, 1, &nr, ev, NULL).err || !nr)
				bad |= 8;
			for (i = 0; i < nr; i++)
				if (ev[i].status != CUFILE_COMPLETE)
					bad |= 16;
		}
	}
	cuFileBatchIODestroy(b);
	return (void *)bad;
}

static void t_threads(void **state)
{
	pthread_t t[PIECES / 8];
	void *bad;
	uintptr_t i;

	for (i = 0; i < PIECES / 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, batcher, (void *)i), 0);
	for (i = 0; i < PIECES / 8; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	gpu_is_file();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_read),   T(t_report),  T(t_write), T(t_limits), T(t_results),
		T(t_timeout), T(t_cancel), T(t_reuse), T(t_destroy_and_close),
		T(t_no_threads), T(t_ten_thousand), T(t_statistics),
		T(t_threads),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
