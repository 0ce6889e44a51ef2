// SPDX-License-Identifier: MIT
/*
 * t_bounce_ring.c - large requests of a drive by one thread and io_uring: what is under way at the
 * same time, what order the drive answers in, what it answers when it fails, and what happens
 * where io_uring is refused, from the beginning or later. The ring is scripted, or the kernel's.
 * Fails when a byte is wrong, when a thread helps, when what should overlap waits, and when an
 * error gets lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "gpu.h"
#include "opengds.h"
#include "os.h"
#include "ring_fake.h"

#define MIB ((size_t)1024 * 1024)
#define SECOND ((uint64_t)1000000000)
#define SIZE (4 * MIB)
#define ODD 4097		/* not a multiple of anything */

static struct os_ops ops;
static const struct os_ops *base;
static struct gpu_ops seen;
static uint64_t seed = 5;

static bool bad_plain;			/* plain calls fail at ring_fake.bad_off, too */
static atomic_uint plain, plain_direct;	/* calls of pread and pwrite */
static unsigned int read_by_plain;	/* sum over rounds() */
static atomic_uint copy_waits_for;	/* a copy is done only when so many have begun */
static _Atomic uint64_t ahead;		/* ns that the library's clock is ahead by */
static uint64_t start_ns;

static bool touches(off_t off, size_t size)
{
	return off <= ring_fake.bad_off && ring_fake.bad_off < off + (off_t)size;
}

static ssize_t some_pread(int fd, void *buf, size_t size, off_t off)
{
	atomic_fetch_add(fcntl(fd, F_GETFL) & O_DIRECT ? &plain_direct : &plain, 1);
	if (bad_plain && touches(off, size))
		return -EIO;
	return base->pread(fd, buf, size, off);
}

static ssize_t some_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	atomic_fetch_add(fcntl(fd, F_GETFL) & O_DIRECT ? &plain_direct : &plain, 1);
	if (bad_plain && touches(off, size))
		return -EIO;
	return base->pwrite(fd, buf, size, off);
}

/* The test's time, not that of a slow machine: only a hundredth of that goes by. */
static uint64_t later(void)
{
	return start_ns + (base->now_ns() - start_ns) / 100 + atomic_load(&ahead);
}

/* In the stream, before a copy. */
static void until_begun(void *arg)
{
	while (atomic_load(&ring_fake.begun) < atomic_load(&copy_waits_for))
		usleep(100);
}

static int some_to_gpu(struct gpu_stream *s, uint64_t dst_va, const void *src, size_t size)
{
	int r = 0;

	if (atomic_load(&copy_waits_for))
		r = gpu_cuda.host_func(s->stream, until_begun, NULL);
	return r ? r : gpu_cuda.to_gpu(s, dst_va, src, size);
}

/* -- one file, one piece of GPU memory -- */

static struct fake_pair m;

static void forget(void)
{
	ring_fake_forget();
	atomic_store(&plain, 0);
	atomic_store(&plain_direct, 0);
}

#define PLAIN ""
#define NEVER "\"prefer_iouring\": false, "
#define ONE_SLOT "\"posix_pool_slab_size_kb\": [64], \"posix_pool_slab_count\": [1], "

static void open_flags(const char *properties, int flags)
{
	char json[256], log[80];

	snprintf(log, sizeof(log), "%s/log", fake.dir);
	setenv("CUFILE_LOGFILE_PATH", log, 1);
	snprintf(json, sizeof(json),
		 "{\"logging\": {\"level\": \"INFO\"}, \"execution\": {\"max_io_threads\": 4}, "
		 "\"properties\": {%s\"force_compat_mode\": true}}",
		 properties);
	fake_configure(json);
	fake_pair_open(&m, SIZE, 31, flags);
	forget();
}

static void open_file(const char *properties)
{
	open_flags(properties, O_DIRECT);
}

/* `n` bytes are there, and what lies behind all that was asked for is as it was. */
static void read_gives(size_t size, size_t off, ssize_t n)
{
	size_t i;

	fake_gpu_set(m.gpu, 0x5a, SIZE);
	forget();
	errno = 0;
	assert_int_equal(cuFileRead(m.fh, m.gpu, size, off, 0), n);
	if (n < 0)
		return;
	assert_int_equal(cuMemcpyDtoH(m.got, (uintptr_t)m.gpu, SIZE), 0);
	assert_memory_equal(m.got, m.file + off, n);
	for (i = size; i < SIZE; i++)
		assert_int_equal(m.got[i], 0x5a);
	assert_int_equal(atomic_load(&ring_fake.by_others), 0);
}

/* Other bytes into the file, and the model of it. */
static void write_gives(size_t size, size_t off, ssize_t n)
{
	char *fresh = malloc(size);

	fake_fill(fresh, size, &seed);
	assert_int_equal(cuMemcpyHtoD((uintptr_t)m.gpu, fresh, size), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	forget();
	assert_int_equal(cuFileWrite(m.fh, m.gpu, size, off, 0), n);
	if (n > 0)
		memcpy(m.file + off, fresh, n);
	free(fresh);
	assert_int_equal(atomic_load(&ring_fake.by_others), 0);
}

static void file_is_right(size_t to)
{
	fake_pair_file_is_right(&m, to);
}

static unsigned int log_has(const char *what)
{
	char cmd[256], n[16] = "";
	FILE *p;

	snprintf(cmd, sizeof(cmd), "cat %s/log 2>/dev/null | grep -c -e '%s'", fake.dir, what);
	p = popen(cmd, "r");
	assert_non_null(fgets(n, sizeof(n), p));
	pclose(p);
	return strtoul(n, NULL, 10);
}

static void common(void)
{
	read_by_plain = 0;
	bad_plain = false;
	atomic_store(&copy_waits_for, 0);
	base = os;
	ops = *os;
	ops.pread = some_pread;
	ops.pwrite = some_pwrite;
	ops.now_ns = later;
	atomic_store(&ahead, 0);
	start_ns = base->now_ns();
	seen = gpu_cuda;
	seen.to_gpu = some_to_gpu;
	gpu = &seen;
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

static int setup_fuse(void **state)
{
	fake_setup(state);
	fake_machine("fuse.sshfs", "rw", false);
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
	fake_teardown(state);
	fake_pair_close(&m);
	gpu = &gpu_cuda;
	assert_int_equal(atomic_load(&ring_fake.rings), 0);
	return 0;
}

/* -- what is right -- */

static void t_reads(void **state)
{
	static const struct {
		size_t size, off;
	} of[] = {
		{ SIZE, 0 }, { SIZE - 4096, 4096 }, { MIB, ODD }, { SIZE - ODD, ODD },
		{ 524288, 0 }, { 524289, 4095 }, { 3 * MIB + 1, 100 }, { SIZE - 8191, 1 },
	};
	unsigned int i, j;

	open_file(PLAIN);
	for (ring_fake.order = RING_FIRST; ring_fake.order <= RING_ANY; ring_fake.order++) {
		for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
			for (j = 0; j < 2; j++)
				read_gives(of[i].size, of[i].off, of[i].size);
			assert_true(atomic_load(&ring_fake.begun) >= 2);
			/* all of it by the ring, but at most what ends behind the last block */
			assert_int_equal(atomic_load(&plain) + atomic_load(&plain_direct), 0);
		}
	}
	/* the file ends first, in the middle of a block */
	assert_int_equal(ftruncate(m.fd, 2 * MIB + 77), 0);
	read_gives(3 * MIB, MIB, MIB + 77);
	read_gives(SIZE, 0, 2 * MIB + 77);
}

/* Of a file system of which nobody knows whether io_uring goes on in the right place. */
static void t_unknown(void **state)
{
	open_file(PLAIN);
	read_gives(SIZE, 0, SIZE);
	write_gives(3 * MIB, MIB, 3 * MIB);
	assert_int_equal(atomic_load(&ring_fake.begun), 0);
	assert_int_equal(atomic_load(&ring_fake.rings), 0);
	file_is_right(SIZE);
}

static void t_writes(void **state)
{
	static const struct {
		size_t size, off;
	} of[] = {
		{ SIZE, 0 }, { SIZE - 4096, 4096 }, { MIB, ODD }, { SIZE - ODD, ODD },
		{ 524288, 8192 }, { 524289, 4095 }, { 3 * MIB + 1, 100 },
	};
	unsigned int i, j;

	open_file(PLAIN);
	for (ring_fake.order = RING_FIRST; ring_fake.order <= RING_ANY; ring_fake.order++) {
		for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
			for (j = 0; j < 2; j++)
				write_gives(of[i].size, of[i].off, of[i].size);
			assert_true(atomic_load(&ring_fake.begun) >= 1);
			file_is_right(SIZE);
		}
	}
}

/* One thread keeps as many under way as a drive is quick with, once there is memory for them. */
static void t_deep(void **state)
{
	unsigned int i;

	open_file(PLAIN);
	/* how soon depends on when copies end */
	for (i = 0; i < 12 || (i < 1000 && atomic_load(&ring_fake.most) < 4); i++)
		read_gives(SIZE, 0, SIZE);
	assert_in_range(atomic_load(&ring_fake.most), 4, 8);
	for (i = 0; i < 12 || (i < 1000 && atomic_load(&ring_fake.most) < 2); i++)
		write_gives(SIZE, 0, SIZE);
	assert_in_range(atomic_load(&ring_fake.most), 2, 8);
}

/* A copy does not keep the next reads from being begun. */
static void t_overlap(void **state)
{
	unsigned int i;

	open_file(PLAIN);
	for (i = 0; i < 12; i++)
		read_gives(SIZE, 0, SIZE);
	atomic_store(&copy_waits_for, 4);
	read_gives(SIZE, 0, SIZE);
}

/* A file that grows: one write at a time, from the front, so that a failure leaves no hole. */
static void t_growing(void **state)
{
	open_file(PLAIN);
	ring_fake.order = RING_LAST;
	write_gives(SIZE, 0, SIZE);
	assert_int_equal(ftruncate(m.fd, 4096), 0);
	write_gives(SIZE, 0, SIZE);
	assert_int_equal(atomic_load(&ring_fake.most), 1);
	assert_false(ring_fake.falls);
	file_is_right(SIZE);
}

/* Less than that is one request of the drive anyway. */
static void t_small(void **state)
{
	open_file(PLAIN);
	read_gives(131072, 0, 131072);
	read_gives(524287, 1, 524287);
	assert_int_equal(atomic_load(&plain_direct), 1);
	write_gives(65536, 0, 65536);
	write_gives(520192, 4096, 520192);
	assert_int_equal(atomic_load(&plain_direct), 1);
	assert_int_equal(atomic_load(&ring_fake.asked), 0);
	file_is_right(SIZE);
}

static void t_one_slot(void **state)
{
	open_file(ONE_SLOT);
	read_gives(SIZE - ODD, ODD, SIZE - ODD);
	assert_int_equal(atomic_load(&ring_fake.most), 1);
	write_gives(SIZE - ODD, ODD, SIZE - ODD);
	file_is_right(SIZE);
}

/* -- a descriptor without O_DIRECT: what the page cache holds is read from there -- */

static off_t cached_from, cached_to;	/* by the script */

static int64_t some_cached(int fd, off_t off, size_t size)
{
	off_t from = off > cached_from ? off : cached_from;
	off_t to = off + (off_t)size < cached_to ? off + (off_t)size : cached_to;

	return to > from ? to - from : 0;
}

/* So many bytes by the drive, and no thread helps. */
static void cold_read(size_t size, size_t off, unsigned int pieces, unsigned int by_cache)
{
	read_gives(size, off, size);
	assert_int_equal(atomic_load(&ring_fake.begun), pieces);
	assert_int_equal(atomic_load(&plain), by_cache);
	assert_int_equal(atomic_load(&plain_direct), 0);
}

static void t_cold(void **state)
{
	ops.cached = some_cached;
	cached_from = 0;
	cached_to = SIZE;
	open_flags(PLAIN, 0);
	/* shows that the kernel tells */
	read_gives(MIB, 0, MIB);
	cached_to = MIB;
	cold_read(MIB, MIB, 2, 0);
	read_gives(MIB - 50, 2 * MIB, MIB - 50);
	assert_int_equal(atomic_load(&ring_fake.begun), 0);
	cold_read(3 * MIB - 100, MIB + 50, 4, 0);
	/* its end is cached */
	cached_from = 3 * MIB;
	cached_to = SIZE;
	cold_read(2 * MIB, 2 * MIB, 2, 2);
	/* its beginning is: no work for a ring */
	read_gives(2 * MIB, 3 * MIB - 100, MIB + 100);
	assert_int_equal(atomic_load(&ring_fake.begun), 0);
	/* writes go where the caller's descriptor goes */
	write_gives(2 * MIB, 2 * MIB, 2 * MIB);
	assert_int_equal(atomic_load(&ring_fake.begun), 0);
	file_is_right(SIZE);
}

/* -- what fails -- */

/* The ring's request fails, or moves less; the plain one does not. */
static void t_fails_once(void **state)
{
	static const ssize_t result[] = { -EIO, -EAGAIN, -EINVAL, 0, 4096, 4095 };
	unsigned int i;

	open_file(PLAIN);
	ring_fake.order = RING_ANY;
	for (i = 0; i < sizeof(result) / sizeof(result[0]); i++) {
		ring_fake.bad_off = i % 2 ? 0 : (off_t)(SIZE / 2 + 5000);
		ring_fake.bad_result = result[i];
		read_gives(SIZE, 0, SIZE);
		assert_true(atomic_load(&plain_direct) >= 1);
		write_gives(SIZE, 0, SIZE);
		ring_fake.bad_off = -1;
		file_is_right(SIZE);
	}
}

/* What lies before the first piece that failed counts, nothing behind it, whatever came first. */
static void t_fails(void **state)
{
	ssize_t n;

	open_file(PLAIN);
	ring_fake.bad_off = 2 * MIB + 5000;
	ring_fake.bad_result = -EIO;
	bad_plain = true;
	for (ring_fake.order = RING_FIRST; ring_fake.order <= RING_ANY; ring_fake.order++) {
		read_gives(SIZE, 0, 2 * MIB);
		write_gives(SIZE, 0, 2 * MIB);
		/* later pieces may have been written: the model does not have them */
		assert_int_equal(cuFileRead(m.fh, m.file, 2 * MIB, 0, 0), 2 * MIB);
		file_is_right(2 * MIB);
	}
	read_gives(MIB, 2 * MIB, -1);
	assert_int_equal(errno, EIO);
	n = cuFileWrite(m.fh, m.gpu, MIB, 2 * MIB, 0);
	assert_int_equal(n, -1);
	assert_int_equal(errno, EIO);
}

/* The kernel begins no more of them, in the middle of a request. */
static void t_stops_beginning(void **state)
{
	open_file(PLAIN);
	for (ring_fake.may_begin = 0; ring_fake.may_begin < 4; ring_fake.may_begin++) {
		read_gives(SIZE, 0, SIZE);
		assert_int_equal(atomic_load(&ring_fake.begun), ring_fake.may_begin);
		assert_true(atomic_load(&plain_direct) >= 1);
		atomic_fetch_add(&ahead, SECOND);
		write_gives(SIZE, 0, SIZE);
		assert_int_equal(atomic_load(&ring_fake.begun), ring_fake.may_begin);
		file_is_right(SIZE);
		atomic_fetch_add(&ahead, SECOND);
	}
}

/* The ring of which it took no more is gone; a second later there is a new one, and that stays. */
static void t_made_anew(void **state)
{
	unsigned int i;

	open_file(PLAIN);
	ring_fake.may_begin = 1;
	read_gives(SIZE, 0, SIZE);
	assert_int_equal(atomic_load(&ring_fake.rings), 0);
	ring_fake.may_begin = ~0u;
	for (i = 0; i < 5; i++)
		read_gives(SIZE, 0, SIZE);
	write_gives(SIZE, 0, SIZE);
	file_is_right(SIZE);
	assert_int_equal(atomic_load(&ring_fake.asked), 1);
	assert_int_equal(log_has("io_uring_enter: the kernel took no request"), 1);
	atomic_fetch_add(&ahead, SECOND);
	for (i = 0; i < 5; i++) {
		read_gives(SIZE, 0, SIZE);
		assert_true(atomic_load(&ring_fake.begun) >= 2);
		assert_int_equal(atomic_load(&plain_direct), 0);
	}
	assert_int_equal(atomic_load(&ring_fake.asked), 2);
	assert_int_equal(atomic_load(&ring_fake.rings), 1);
}

/* Each one breaks at once: no more of them than seconds go by, and one line says so. */
static void t_breaks_for_ever(void **state)
{
	unsigned int i;

	open_file(PLAIN);
	ring_fake.may_begin = 0;
	for (i = 0; i < 40; i++) {
		read_gives(MIB, 0, MIB);
		atomic_fetch_add(&ahead, SECOND / 10);
	}
	assert_in_range(atomic_load(&ring_fake.asked), 3, 5);
	assert_int_equal(atomic_load(&ring_fake.rings), 0);
	assert_int_equal(log_has("io_uring"), 1);
}

/* -- where there is none -- */

static void t_refused(void **state)
{
	unsigned int i;

	open_file(PLAIN);
	ring_fake.new_error = -EPERM;
	for (i = 0; i < 5; i++) {
		read_gives(SIZE, 0, SIZE);
		atomic_fetch_add(&ahead, SECOND);
	}
	write_gives(SIZE, 0, SIZE);
	file_is_right(SIZE);
	assert_int_equal(atomic_load(&ring_fake.asked), 1);
	assert_true(atomic_load(&plain_direct) > 1);
	assert_int_equal(log_has("io_uring_setup: EPERM"), 1);
}

/* What is short for a moment is asked for again, once a second. */
static void t_no_memory(void **state)
{
	unsigned int i;

	open_file(PLAIN);
	ring_fake.new_error = -ENOMEM;
	for (i = 0; i < 20; i++) {
		read_gives(SIZE, 0, SIZE);
		atomic_fetch_add(&ahead, SECOND / 10);
	}
	assert_in_range(atomic_load(&ring_fake.asked), 2, 3);
	assert_true(atomic_load(&plain_direct) > 1);
	assert_int_equal(log_has("io_uring_setup: ENOMEM"), 1);
	ring_fake.new_error = 0;
	atomic_fetch_add(&ahead, SECOND);
	read_gives(SIZE, 0, SIZE);
	assert_true(atomic_load(&ring_fake.begun) >= 2);
}

static void t_never(void **state)
{
	open_file(NEVER);
	read_gives(SIZE, 0, SIZE);
	write_gives(SIZE, 0, SIZE);
	assert_int_equal(atomic_load(&ring_fake.asked), 0);
	assert_int_equal(log_has("io_uring"), 0);
}

/* -- several callers -- */

static void *read_much(void *arg)
{
	char *at = m.gpu + (uintptr_t)arg * MIB;
	unsigned int i;

	if (cuCtxSetCurrent(fake_ctx))
		return &m;
	for (i = 0; i < 20; i++)
		if (cuFileRead(m.fh, m.gpu, MIB, (uintptr_t)arg * MIB, at - m.gpu) != (ssize_t)MIB)
			return &m;
	return NULL;
}

/* Each has a ring of its own, and the next one uses it again. */
static void t_callers(void **state)
{
	pthread_t t[4];
	uintptr_t i;
	void *bad;

	open_file(PLAIN);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, read_much, (void *)i), 0);
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(cuMemcpyDtoH(m.got, (uintptr_t)m.gpu, SIZE), 0);
	assert_memory_equal(m.got, m.file, SIZE);
	assert_in_range(atomic_load(&ring_fake.asked), 1, 4);
	assert_int_equal(atomic_load(&ring_fake.rings), atomic_load(&ring_fake.asked));
}

/* -- the kernel's own -- */

static bool kernel_has(void)
{
	struct os_ring *r;

	if (os_real.ring_new(2, &r))
		return false;
	os_real.ring_free(r);
	return true;
}

static void rounds(void)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		read_gives(SIZE - ODD, ODD, SIZE - ODD);
		read_by_plain += atomic_load(&plain_direct);
		write_gives(SIZE - 3 * ODD, ODD, SIZE - 3 * ODD);
		file_is_right(SIZE);
	}
}

static void t_kernel(void **state)
{
	if (!kernel_has()) {
		print_message("this kernel gives no io_uring: not run against it\n");
		skip();
	}
	open_file(PLAIN);
	rounds();
	assert_int_equal(read_by_plain, 0);
	assert_int_equal(log_has("io_uring"), 0);
}

/* A descriptor 0, 1 or 2 that somebody closed is not taken for a ring. */
static void t_not_stdio(void **state)
{
	struct os_ring *r;
	int in;

	open_file(PLAIN);
	if (!kernel_has())
		skip();
	in = dup(0);
	close(0);
	assert_int_equal(os_real.ring_new(2, &r), 0);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	os_real.ring_free(r);
	if (in >= 0) {
		dup2(in, 0);
		close(in);
	}
}

/* From now on this system call of this thread is answered with EPERM. */
static void forbid(int nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static void *later_forbidden(void *arg)
{
	if (cuCtxSetCurrent(fake_ctx))
		return &m;
	rounds();
	/* the ring stays, and the kernel takes nothing from it any more */
	forbid(SYS_io_uring_enter);
	rounds();
	return NULL;
}

static void *first_forbidden(void *arg)
{
	if (cuCtxSetCurrent(fake_ctx))
		return &m;
	forbid(SYS_io_uring_setup);
	rounds();
	return NULL;
}

static void in_thread(void *(*run)(void *arg))
{
	pthread_t t;
	void *bad;

	open_file(PLAIN);
	assert_int_equal(pthread_create(&t, NULL, run, NULL), 0);
	pthread_join(t, &bad);
	assert_null(bad);
}

static void t_seccomp(void **state)
{
	if (!kernel_has())
		skip();
	in_thread(first_forbidden);
	assert_int_equal(log_has("io_uring_setup: EPERM"), 1);
	assert_true(read_by_plain > 0);
}

static void t_seccomp_later(void **state)
{
	if (!kernel_has())
		skip();
	in_thread(later_forbidden);
	assert_true(read_by_plain > 0);
	/* this thread may: the next ring is not the one that broke */
	atomic_fetch_add(&ahead, SECOND);
	read_by_plain = 0;
	rounds();
	assert_int_equal(read_by_plain, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define K(f) cmocka_unit_test_setup_teardown(f, setup_kernel, teardown)
#define F(f) cmocka_unit_test_setup_teardown(f, setup_fuse, teardown)
	const struct CMUnitTest tests[] = {
		T(t_reads),  T(t_writes),	T(t_deep),	  T(t_overlap),
		T(t_growing), T(t_small),	T(t_one_slot),	  T(t_fails_once),
		T(t_fails),  T(t_stops_beginning), T(t_made_anew), T(t_breaks_for_ever),
		T(t_refused), T(t_no_memory),	T(t_never),
		T(t_callers), K(t_kernel),	K(t_not_stdio),	  K(t_seccomp),
		K(t_seccomp_later), T(t_cold),	F(t_unknown),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
