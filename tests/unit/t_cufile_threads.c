// SPDX-License-Identifier: MIT
/*
 * t_cufile_threads.c - many threads in the library at once, and a close among them, on the
 * machine of cufile_fake.h. Runs under TSan as well.
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

#define PART (128 * 1024)
#define THREADS 8

/* cmocka's asserts are for the test's own thread: what goes wrong here is counted. */
static struct {
	CUfileHandle_t fh;
	void *memory;
	atomic_bool stop, closing;
	atomic_ulong done, refused, wrong;
} shared;

static void wrong(uintptr_t thread, const char *what, long value)
{
	fprintf(stderr, "thread %zu: %s: %ld (errno %d)\n", (size_t)thread, what, value, errno);
	atomic_fetch_add(&shared.wrong, 1);
	atomic_store(&shared.stop, true);
}

/* What a close that comes in between explains. */
static bool explained(int code)
{
	bool yes = atomic_load(&shared.closing) &&
		   (code == CU_FILE_HANDLE_NOT_REGISTERED || code == CU_FILE_DRIVER_CLOSING ||
		    code == CU_FILE_MEMORY_NOT_REGISTERED);

	if (yes)
		atomic_fetch_add(&shared.refused, 1);
	return yes;
}

/* One write and one read of random bytes; false: the thread is done. */
static bool round_trip(uintptr_t id, uint64_t *seed, char *p, char *want, char *got)
{
	size_t size = 1 + fake_random(seed) % (PART - 4096), i;
	off_t off = id * PART + fake_random(seed) % 4096;
	ssize_t n;

	fake_fill(want, PART, seed);
	if (cuMemcpyHtoD((uintptr_t)p, want, PART) || cuCtxSynchronize())
		wrong(id, "cuMemcpyHtoD", 0);
	n = cuFileWrite(shared.fh, p, size, off, 0);
	if (n == (ssize_t)size) {
		memset(got, 0, PART);
		if (cuMemcpyHtoD((uintptr_t)p, got, PART) || cuCtxSynchronize())
			wrong(id, "cuMemcpyHtoD", 0);
		n = cuFileRead(shared.fh, p + 3, size, off, 0);
	}
	if (n != (ssize_t)size) {
		if (n >= 0 || !explained(errno))
			wrong(id, "request", n);
		return false;
	}
	if (cuMemcpyDtoH(got, (uintptr_t)p + 3, size))
		wrong(id, "cuMemcpyDtoH", 0);
	for (i = 0; i < size; i++)
		if (got[i] != want[i]) {
			wrong(id, "byte", i);
			return false;
		}
	return true;
}

static void *io_thread(void *arg)
{
	uintptr_t id = (uintptr_t)arg;
	uint64_t seed = 77 + id;
	char *want = malloc(PART), *got = malloc(PART);
	CUdeviceptr d = 0;
	char *p;
	bool go = true;
	int e;

	if (cuCtxSetCurrent(fake_ctx) || cuMemAlloc(&d, PART + 4096))
		wrong(id, "cuMemAlloc", 0);
	p = (char *)(uintptr_t)d;
	while (go && !atomic_load(&shared.stop)) {
		e = id % 2 ? cuFileBufRegister(p, PART + 4096, 0).err : 0;
		if (e) {
			if (!explained(e))
				wrong(id, "cuFileBufRegister", e);
			break;
		}
		go = round_trip(id, &seed, p, want, got);
		e = id % 2 ? cuFileBufDeregister(p).err : 0;
		if (e && !explained(e))
			wrong(id, "cuFileBufDeregister", e);
		atomic_fetch_add(&shared.done, 1);
	}
	cuMemFree(d);
	free(want);
	free(got);
	return NULL;
}

static void run_threads(unsigned long rounds, bool close_under)
{
	const char *path = fake_file("f", (THREADS + 1) * PART, 9);
	pthread_t t[THREADS];
	uintptr_t i;
	int fd;

	memset(&shared, 0, sizeof(shared));
	shared.fh = fake_register(path, O_RDWR | O_DIRECT, &fd);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, io_thread, (void *)i), 0);
	while (atomic_load(&shared.done) < rounds && !atomic_load(&shared.stop))
		usleep(1000);
	atomic_store(&shared.closing, close_under);
	if (close_under)
		assert_int_equal(cuFileDriverClose().err, 0);
	atomic_store(&shared.stop, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&shared.wrong), 0);
	close(fd);
}

static void t_threads(void **state)
{
	run_threads(100, false);
	assert_int_equal(atomic_load(&shared.refused), 0);
}

static void t_close_under_io(void **state)
{
	unsigned int i;

	atomic_store(&fake.io_delay_us, 300);
	for (i = 0; i < 10; i++) {
		run_threads(20, true);
		while (cuFileUseCount() > 0)
			cuFileDriverClose();
	}
}

/* -- a buffer goes while requests run on it -- */

#define SLOW (PART / 4)	/* bytes of a thread */

static void *slow_read(void *arg)
{
	off_t at = (uintptr_t)arg * SLOW;
	ssize_t n = cuFileRead(shared.fh, shared.memory, SLOW, at, at);

	if (n != SLOW)
		wrong(0, "cuFileRead", n);
	atomic_fetch_add(&shared.done, 1);
	return NULL;
}

/* The deregistration waits for them, and no longer: they have the pinned memory until then. */
static void t_deregister_under_io(void **state)
{
	const char *path = fake_file("f", PART, 9);
	pthread_t t[3];
	CUdeviceptr d;
	unsigned int i, round;
	unsigned long ios;
	int fd;

	memset(&shared, 0, sizeof(shared));
	shared.fh = fake_register(path, O_RDWR | O_DIRECT, &fd);
	assert_int_equal(cuMemAlloc(&d, PART), 0);
	shared.memory = (void *)(uintptr_t)d;
	atomic_store(&fake.io_delay_us, 30000);
	alarm(60);	/* one that is not woken would wait for ever */
	for (round = 0; round < 3; round++) {
		assert_int_equal(cuFileBufRegister((void *)(uintptr_t)d, PART, 0).err, 0);
		ios = atomic_load(&fake.ios);
		atomic_store(&shared.done, 0);
		for (i = 0; i < 3; i++)
			assert_int_equal(pthread_create(&t[i], NULL, slow_read,
							(void *)(uintptr_t)i), 0);
		while (atomic_load(&fake.ios) < ios + 3)
			usleep(200);
		assert_int_equal(cuFileBufDeregister((void *)(uintptr_t)d).err, 0);
		assert_int_equal(atomic_load(&fake.maps), atomic_load(&fake.unmaps));
		for (i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
		assert_int_equal(atomic_load(&shared.done), 3);
		assert_int_equal(atomic_load(&shared.wrong), 0);
	}
	alarm(0);
	cuMemFree(d);
	close(fd);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = { T(t_threads), T(t_close_under_io),
					   T(t_deregister_under_io) };

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
