// SPDX-License-Identifier: MIT
/*
 * t_bar.c - reads that end in GPU memory by stores through BAR1, on the driver of rm_fake.h.
 * Fails when a byte is wrong, a request takes another way than it says, a refusal or a lie of
 * the driver is believed, or anything of the driver stays.
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
#include "facts.h"
#include "opengds.h"
#include "os.h"
#include "rm_fake.h"
#include "rounds.h"
#include "t_bar.h"

/* -- what it is for -- */

static void t_sizes(void **state)
{
	enum { SIZE = 300000, ROOM = 400000 };
	static const size_t sizes[] = { 1, 7, 63, 64, 65, 128, 511, 4095, 4096, 4097, 12288,
					50001 };
	static const off_t offs[] = { 0, 1, 511, 4096, 4100, 131072, SIZE - 4096, SIZE - 60 };
	const char *path;
	CUfileHandle_t fh;
	CUdeviceptr p;
	unsigned int i, k;
	char *want;
	int fd;

	rm_fake_begin(16 * GIB);
	path = fake_file("f", SIZE, 11);
	want = contents(path, SIZE);
	fh = fake_register(path, O_RDONLY, &fd);
	p = gpu_new(ROOM);
	OK(cuFileBufRegister((void *)(uintptr_t)p, ROOM, 0));
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (k = 0; k < sizeof(offs) / sizeof(*offs); k++) {
			size_t left = SIZE - offs[k], n = sizes[i] < left ? sizes[i] : left;
			size_t at = 5 * i + 4096 * k;

			clear(p, ROOM);
			read_by(fh, p, sizes[i], offs[k], at, n, OGDS_ROUTE_BAR);
			check_memory(p, ROOM, want + offs[k], at, at + n);
		}
	assert_int_equal(atomic_load(&rm_fake.made), 1);
	assert_int_equal(cuFileRead(fh, (void *)(uintptr_t)p, 4096, SIZE, 0), 0);
	assert_int_equal(atomic_load(&rm_fake.dups), 1);
	OK(cuFileBufDeregister((void *)(uintptr_t)p));
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	assert_int_equal(atomic_load(&rm_fake.views), 0);
	cuFileHandleDeregister(fh);
	cuMemFree(p);
	close(fd);
	free(want);
}

/* The drive writes into host memory first: its pages cannot be a drive's target. */
static void t_odirect(void **state)
{
	enum { SIZE = 3 * 1024 * 1024 + 8192 };
	const char *path;
	CUfileHandle_t fh;
	CUdeviceptr p;
	char *want;
	int fd;

	rm_fake_begin(16 * GIB);
	fake_configure("{ \"opengds\": { \"routes\": [\"bar\", \"host\"] } }");
	path = fake_file("f", SIZE, 12);
	want = contents(path, SIZE);
	fh = fake_register(path, O_RDONLY | O_DIRECT, &fd);
	p = gpu_new(4 * MIB);
	OK(cuFileBufRegister((void *)(uintptr_t)p, 4 * MIB, 0));
	read_by(fh, p, SIZE, 0, 4096 + 16, SIZE, OGDS_ROUTE_BAR);
	check_memory(p, 4 * MIB, want, 4096 + 16, 4096 + 16 + SIZE);
	clear(p, 4 * MIB);
	read_by(fh, p, 4096, 8192, 3, 4096, OGDS_ROUTE_BAR);
	read_by(fh, p, 100, 3, 8192, 100, OGDS_ROUTE_BAR);
	clear(p + 8192, 100);
	check_memory(p, 4 * MIB, want + 8192, 3, 3 + 4096);
	cuFileHandleDeregister(fh);
	cuFileBufDeregister((void *)(uintptr_t)p);
	cuMemFree(p);
	close(fd);
	free(want);
}

/* Several threads: all sizes around the border, ends of files, O_DIRECT and not. */
static void t_shared(void **state)
{
	enum { SIZE = 3 * 1024 * 1024 + 777, ROOM = 4 * 1024 * 1024 };
	static const size_t sizes[] = { 262143, 262144, 1048577, SIZE, 4000000 };
	static const off_t offs[] = { 0, 1, 4096, SIZE - 300000 };
	unsigned int i, k, direct;
	const char *path;
	CUfileHandle_t fh;
	CUdeviceptr p;
	char *want;
	int fd;

	rm_fake_begin(16 * GIB);
	fake_configure("{ \"opengds\": { \"routes\": [\"bar\", \"host\"] } }");
	path = fake_file("f", SIZE, 21);
	want = contents(path, SIZE);
	p = gpu_new(ROOM);
	for (direct = 0; direct < 2; direct++) {
		fh = fake_register(path, O_RDONLY | (direct ? O_DIRECT : 0), &fd);
		OK(cuFileBufRegister((void *)(uintptr_t)p, ROOM, 0));
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			for (k = 0; k < sizeof(offs) / sizeof(*offs); k++) {
				size_t left = SIZE - offs[k], n = sizes[i] < left ? sizes[i] : left;
				size_t at = 3 * i + 512 * k;

				if (k >= T_ROUNDS(4) + i % 4)
					continue;
				clear(p, ROOM);
				read_by(fh, p, sizes[i], offs[k], at, n, OGDS_ROUTE_BAR);
				check_memory(p, ROOM, want + offs[k], at, at + n);
			}
		cuFileHandleDeregister(fh);
		OK(cuFileBufDeregister((void *)(uintptr_t)p));
		close(fd);
	}
	cuMemFree(p);
	free(want);
}

/* Edges of a direct request; its whole blocks stay direct. */
static void t_edges(void **state)
{
	enum { SIZE = 65536 };
	struct ogds_report r;
	const char *path;
	CUfileHandle_t fh;
	CUdeviceptr p;
	char *want;
	int fd;

	fake_end();
	fake_machine("ext4", "rw,data=ordered", true);
	rm_fake_begin(16 * GIB);
	path = fake_file("f", SIZE, 13);
	want = contents(path, SIZE);
	fh = fake_register(path, O_RDONLY | O_DIRECT, &fd);
	p = gpu_new(SIZE);
	OK(cuFileBufRegister((void *)(uintptr_t)p, SIZE, 0));
	/* one that has none makes nothing of the driver */
	read_by(fh, p, 16384, 4096, 4096, 16384, OGDS_ROUTE_NVFS);
	assert_int_equal(atomic_load(&rm_fake.clients), 0);
	clear(p, SIZE);
	assert_int_equal(cuFileRead(fh, (void *)(uintptr_t)p, 20000, 1000, 1000), 20000);
	last(&r);
	assert_int_equal(r.bytes[OGDS_ROUTE_BAR], 4096 - 1000 + 21000 - 20480);
	assert_int_equal(r.bytes[OGDS_ROUTE_NVFS], 20480 - 4096);
	check_memory(p, SIZE, want + 1000, 1000, 21000);
	cuFileHandleDeregister(fh);
	cuFileBufDeregister((void *)(uintptr_t)p);
	cuMemFree(p);
	close(fd);
	free(want);
}

/* -- a driver that refuses, or lies -- */

/* A read of registered memory is right and by bounce; then nothing is left of the driver. */
static void still_right(const char *what)
{
	enum { SIZE = 100000 };
	CUfileHandle_t fh;
	CUdeviceptr p;
	const char *path;
	char *want;
	int fd;

	path = fake_file("f", SIZE, 14);
	want = contents(path, SIZE);
	fh = fake_register(path, O_RDONLY, &fd);
	p = gpu_new(SIZE);
	OK(cuFileBufRegister((void *)(uintptr_t)p, SIZE, 0));
	print_message("# %s\n", what);
	read_by(fh, p, 50000, 10, 20, 50000, OGDS_ROUTE_BOUNCE);
	check_memory(p, SIZE, want + 10, 20, 50020);
	read_by(fh, p, 4096, 0, 20, 4096, OGDS_ROUTE_BOUNCE);
	cuFileHandleDeregister(fh);
	OK(cuFileBufDeregister((void *)(uintptr_t)p));
	cuMemFree(p);
	close(fd);
	free(want);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	rm_fake_check();
}

static void t_refused(void **state)
{
	static const int results[] = { -EACCES, -EINVAL, 0x56 };
	unsigned int i;
	char what[64];
	int step;

	for (step = RM_OPEN_CONTROL; step < RM_PEERS; step++)
		for (i = 0; i < 3; i++) {
			if (results[i] > 0 && (step == RM_OPEN_CONTROL || step == RM_OPEN_NODE ||
					       step == RM_REGISTER || step == RM_MMAP))
				continue;
			rm_fake_begin(16 * GIB);
			rm_fake.result = results[i];
			atomic_store(&rm_fake.fail, step);
			snprintf(what, sizeof(what), "step %d fails with %d", step, results[i]);
			still_right(what);
			fake_end();
			fake_machine("ext4", "rw", false);
		}
	rm_fake_begin(16 * GIB);
}

static void t_liar(void **state)
{
	static const struct {
		int lie, other;
	} lies[] = { { 4096, 0 }, { 65536, 0 }, { 0, 1 } };
	unsigned int i;

	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		rm_fake_begin(16 * GIB);
		atomic_store(&rm_fake.lie, lies[i].lie);
		atomic_store(&rm_fake.other, lies[i].other);
		still_right("the mapping shows other memory");
		/* once is enough: the driver is not asked again in this open */
		assert_int_equal(atomic_load(&rm_fake.made), 1);
		fake_end();
		fake_machine("ext4", "rw", false);
	}
	rm_fake_begin(16 * GIB);
}

/* A request that ends short has overwritten nothing behind its end, not even for the proof. */
static void t_short(void **state)
{
	CUfileHandle_t fh;
	CUdeviceptr p;
	const char *path;
	char *want;
	int fd;

	rm_fake_begin(16 * GIB);
	path = fake_file("f", 5000, 15);
	want = contents(path, 5000);
	fh = fake_register(path, O_RDONLY, &fd);
	p = gpu_new(65536);
	OK(cuFileBufRegister((void *)(uintptr_t)p, 65536, 0));
	read_by(fh, p, 60000, 0, 100, 5000, OGDS_ROUTE_BAR);
	check_memory(p, 65536, want, 100, 5100);
	cuFileHandleDeregister(fh);
	cuFileBufDeregister((void *)(uintptr_t)p);
	cuMemFree(p);
	close(fd);
	free(want);
}

/* -- memory -- */

/* Freed while registered: the same address is other memory, and the old one is not written. */
static void t_freed(void **state)
{
	enum { SIZE = 65536 };
	CUfileHandle_t fh;
	CUdeviceptr p, q, beside;
	const char *path;
	char *want;
	int fd;

	rm_fake_begin(16 * GIB);
	path = fake_file("f", 8192, 16);
	want = contents(path, 8192);
	fh = fake_register(path, O_RDONLY, &fd);
	/* what lies beside it keeps the object, so that the address is given out again */
	p = gpu_new(SIZE);
	beside = gpu_new(SIZE);
	OK(cuFileBufRegister((void *)(uintptr_t)p, SIZE, 0));
	read_by(fh, p, 8192, 0, 0, 8192, OGDS_ROUTE_BAR);
	cuMemFree(p);
	q = gpu_new(SIZE);
	assert_true(q == p);
	/* by the way of memory that nobody registered and that is new */
	read_by(fh, q, 8000, 100, 50, 8000, OGDS_ROUTE_BOUNCE);
	check_memory(q, SIZE, want + 100, 50, 8050);
	clear(q, SIZE);
	OK(cuFileBufRegister((void *)(uintptr_t)q, SIZE, 0));
	read_by(fh, q, 8000, 100, 50, 8000, OGDS_ROUTE_BAR);
	check_memory(q, SIZE, want + 100, 50, 8050);
	cuFileHandleDeregister(fh);
	cuFileBufDeregister((void *)(uintptr_t)q);
	cuMemFree(q);
	cuMemFree(beside);
	close(fd);
	free(want);
}

static uint64_t clock_ns;

static uint64_t test_clock(void)
{
	return clock_ns;
}

/* Unregistered: from the second request on, small ones only, a sum at most, not for ever. */
static void t_unregistered(void **state)
{
	enum { N = 5 };
	static struct os_ops ops;
	CUfileHandle_t fh;
	CUdeviceptr p[N], big;
	const char *path;
	unsigned int i;
	char *want;
	int fd;

	rm_fake_begin(16 * GIB);
	ops = *os;
	ops.now_ns = test_clock;
	os = &ops;
	clock_ns = 1000000000;
	path = fake_file("f", 8192, 17);
	want = contents(path, 8192);
	fh = fake_register(path, O_RDONLY, &fd);
	p[0] = gpu_new(MIB);
	read_by(fh, p[0], 8192, 0, 0, 8192, OGDS_ROUTE_BOUNCE);
	clear(p[0], MIB);
	read_by(fh, p[0], 8192, 0, 77, 8192, OGDS_ROUTE_BAR);
	check_memory(p[0], MIB, want, 77, 77 + 8192);
	/* freed, and the address given out again: the other memory is written */
	cuMemFree(p[0]);
	p[0] = gpu_new(MIB);
	read_by(fh, p[0], 8192, 0, 77, 8192, OGDS_ROUTE_BOUNCE);
	check_memory(p[0], MIB, want, 77, 77 + 8192);
	/* too large */
	big = gpu_new(65 * MIB);
	for (i = 0; i < 4; i++)
		read_by(fh, big, 8192, 0, 0, 8192, OGDS_ROUTE_BOUNCE);
	/* what nobody used for a while goes with the next request, of whatever memory */
	assert_int_equal(atomic_load(&rm_fake.dups), 1);
	clock_ns += 3000000000u;
	read_by(fh, big, 8192, 0, 0, 8192, OGDS_ROUTE_BOUNCE);
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	cuMemFree(big);
	read_by(fh, p[0], 8192, 0, 77, 8192, OGDS_ROUTE_BAR);
	assert_int_equal(atomic_load(&rm_fake.dups), 1);
	/* registered from now on: that has a bar of its own, and until it is used there is none */
	OK(cuFileBufRegister((void *)(uintptr_t)p[0], MIB, 0));
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	read_by(fh, p[0], 8192, 0, 77, 8192, OGDS_ROUTE_BAR);
	assert_int_equal(atomic_load(&rm_fake.dups), 1);
	OK(cuFileBufDeregister((void *)(uintptr_t)p[0]));
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	cuMemFree(p[0]);
	/* all together no more than their sum allows: 4 of 60 MiB */
	for (i = 0; i < N; i++) {
		clock_ns += 1000;
		assert_int_equal(cuMemAlloc(&p[i], 60 * MIB), 0);
		read_by(fh, p[i], 8192, 0, 0, 8192, OGDS_ROUTE_BOUNCE);
		cuFileRead(fh, (void *)(uintptr_t)p[i], 8192, 0, 4096);
		check_memory(p[i], 4096, want, 0, 4096);
	}
	assert_int_equal(atomic_load(&rm_fake.dups), 4);
	for (i = 0; i < N; i++)
		cuMemFree(p[i]);
	cuFileHandleDeregister(fh);
	close(fd);
	free(want);
	cuFileDriverClose();
}

/* -- a small BAR1 -- */

static void t_windows(void **state)
{
	enum { N = 6 };
	const size_t size = 20 * MIB;
	uint64_t seed = 99;
	CUfileHandle_t fh;
	CUdeviceptr p[N];
	unsigned int i, k;
	const char *path;
	char *want, *got = malloc(size);
	int fd;

	/* three quarters of 32 MiB: three windows */
	rm_fake_begin(32 * MIB);
	path = fake_file("f", 4 * MIB, 18);
	want = contents(path, 4 * MIB);
	fh = fake_register(path, O_RDONLY, &fd);
	for (i = 0; i < N; i++) {
		p[i] = gpu_new(size);
		OK(cuFileBufRegister((void *)(uintptr_t)p[i], size, 0));
	}
	for (k = 0; k < 200; k++) {
		size_t n = fake_random(&seed) % 50000 + 1, at = fake_random(&seed) % (size - n);
		off_t off = fake_random(&seed) % (4 * MIB - n);

		i = fake_random(&seed) % N;
		/* some across the border of two windows */
		if (k % 4 == 0)
			at = 8 * MIB - n / 2;
		read_by(fh, p[i], n, off, at, n, OGDS_ROUTE_BAR);
		assert_int_equal(cuMemcpyDtoH(got, p[i] + at, n), 0);
		assert_memory_equal(got, want + off, n);
	}
	assert_true(atomic_load(&rm_fake.most) <= 24 * MIB);
	assert_true(atomic_load(&rm_fake.made) > 6);
	for (i = 0; i < N; i++) {
		OK(cuFileBufDeregister((void *)(uintptr_t)p[i]));
		cuMemFree(p[i]);
	}
	cuFileHandleDeregister(fh);
	close(fd);
	free(want);
	free(got);
}

/* -- many threads -- */

enum { THREADS = 8, PART = 2 * 1024 * 1024, ROUNDS = 150 };

struct worker {
	pthread_t thread;
	CUfileHandle_t fh;
	CUdeviceptr p;
	const char *want;
	unsigned int n;
	uint64_t seed;
	unsigned long bad, bar;
};

static void *reads(void *arg)
{
	struct ogds_report r = OGDS_REPORT_INIT;
	struct worker *w = arg;
	char *got = malloc(65536);
	unsigned int i;

	cuCtxSetCurrent(fake_ctx);
	for (i = 0; i < ROUNDS; i++) {
		size_t n = fake_random(&w->seed) % 65536 + 1;
		size_t at = w->n * (size_t)PART + fake_random(&w->seed) % (PART - n);
		off_t off = fake_random(&w->seed) % (MIB - n);

		if (cuFileRead(w->fh, (void *)(uintptr_t)w->p, n, off, at) != (ssize_t)n)
			w->bad++;
		cuMemcpyDtoH(got, w->p + at, n);
		w->bad += memcmp(got, w->want + off, n) != 0;
		ogds_last_io(&r);
		w->bar += r.bytes[OGDS_ROUTE_BAR] == n;
	}
	free(got);
	return NULL;
}

/* One buffer, its first use by all of them at once; bar1: large or small. */
static void threads(uint64_t bar1)
{
	struct worker w[THREADS] = { 0 };
	unsigned long bar = 0;
	CUfileHandle_t fh;
	CUdeviceptr p;
	const char *path;
	unsigned int i;
	char *want;
	int fd;

	rm_fake_begin(bar1);
	path = fake_file("f", MIB, 19);
	want = contents(path, MIB);
	fh = fake_register(path, O_RDONLY, &fd);
	p = gpu_new((size_t)THREADS * PART);
	OK(cuFileBufRegister((void *)(uintptr_t)p, (size_t)THREADS * PART, 0));
	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .fh = fh, .p = p, .want = want, .n = i, .seed = i + 1 };
		assert_int_equal(pthread_create(&w[i].thread, NULL, reads, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].bad, 0);
		bar += w[i].bar;
	}
	assert_true(bar > 0);
	OK(cuFileBufDeregister((void *)(uintptr_t)p));
	cuFileHandleDeregister(fh);
	cuMemFree(p);
	close(fd);
	free(want);
}

static void t_threads(void **state)
{
	threads(16 * GIB);
}

static void t_threads_small(void **state)
{
	/* one window of 8 MiB for two that are wanted */
	threads(11 * MIB);
}

/* -- configuration -- */

static void t_routes(void **state)
{
	CUfileHandle_t fh;
	CUdeviceptr p;
	int fd;

	rm_fake_begin(16 * GIB);
	fake_configure("{ \"opengds\": { \"routes\": [\"bounce\", \"host\"] } }");
	fh = fake_register(fake_file("f", 8192, 20), O_RDWR, &fd);
	p = gpu_new(8192);
	OK(cuFileBufRegister((void *)(uintptr_t)p, 8192, 0));
	read_by(fh, p, 8192, 0, 0, 8192, OGDS_ROUTE_BOUNCE);
	assert_int_equal(atomic_load(&rm_fake.clients), 0);
	/* writes are the copy engine's: the CPU reads through BAR1 a thousand times slower */
	assert_int_equal(cuFileWrite(fh, (void *)(uintptr_t)p, 100, 5, 0), 100);
	cuFileHandleDeregister(fh);
	cuFileBufDeregister((void *)(uintptr_t)p);
	close(fd);
	cuFileDriverClose();
	/* a module that could do whole blocks, and may not */
	fake_end();
	fake_machine("ext4", "rw", true);
	rm_fake_begin(16 * GIB);
	fake_configure("{ \"opengds\": { \"routes\": [\"bar\", \"host\"] } }");
	fh = fake_register(fake_file("f", 8192, 20), O_RDWR, &fd);
	OK(cuFileBufRegister((void *)(uintptr_t)p, 8192, 0));
	read_by(fh, p, 8192, 0, 0, 8192, OGDS_ROUTE_BAR);
	assert_int_equal(atomic_load(&fake.maps), 1);
	cuFileHandleDeregister(fh);
	cuFileBufDeregister((void *)(uintptr_t)p);
	cuMemFree(p);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(t_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(t_odirect, setup, teardown),
		cmocka_unit_test_setup_teardown(t_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(t_edges, setup, teardown),
		cmocka_unit_test_setup_teardown(t_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(t_liar, setup, teardown),
		cmocka_unit_test_setup_teardown(t_short, setup, teardown),
		cmocka_unit_test_setup_teardown(t_freed, setup, teardown),
		cmocka_unit_test_setup_teardown(t_unregistered, setup, teardown),
		cmocka_unit_test_setup_teardown(t_windows, setup, teardown),
		cmocka_unit_test_setup_teardown(t_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(t_threads_small, setup, teardown),
		cmocka_unit_test_setup_teardown(t_routes, setup, teardown),
	};

	alarm(200);	/* what a failed test leaves behind may be waited for for ever */
	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
