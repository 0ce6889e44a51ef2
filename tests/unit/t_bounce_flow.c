// SPDX-License-Identifier: MIT
/*
 * t_bounce_flow.c - how requests go through host memory: what happens at the same time, what
 * stays in the calling thread and in order, what O_DIRECT gets, which memory is taken of CUDA,
 * by whom and when it goes back. What must overlap waits for what it must overlap with, so
 * that an order one after another hangs, and fails by the clock. Under TSan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "gpu.h"
#include "opengds.h"
#include "os.h"
#include "ring_fake.h"
#include "tree.h"

#define MIB ((size_t)1024 * 1024)
#define SIZE (4 * MIB)
#define HELPERS 4
#define CALLS 4096
#define ALARMS 256

static struct os_ops ops;
static const struct os_ops *base;
static struct gpu_ops seen;

/* What was called. lock guards calls, n. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct call {
	bool write, own, direct;	/* own: by the test's thread; direct: of an O_DIRECT descriptor */
	uintptr_t memory;
	size_t size;
	off_t off;
} calls[CALLS];
static unsigned int ncalls;

static pthread_t test_thread;
static atomic_uint copies, reads, writes, inside, most_inside;
static atomic_uint hosts, streams, events;	/* made and not freed */
static atomic_uint alarms;			/* the same of events that sleep */
static void *alarm_of[ALARMS];			/* these; lock */
static atomic_uint alarms_set, queries;
static atomic_uint by_others;			/* what waits for the GPU, not by the test's thread */
static atomic_uint host_limit;			/* how many pieces of host memory there can be */
static atomic_ullong ahead;			/* ns, of the clock */
static atomic_int near, back;			/* memory_near, memory_back */

/* Who waits for whom; 0: nobody. */
static atomic_uint reads_together;	/* a read ends when so many have been inside at a time */
static atomic_uint copy_waits_for_reads; /* a copy is done only when so many reads have begun */
static atomic_bool small_reads_wait;	/* those of 100 bytes */
static atomic_uint write_waits_for_copies; /* a write begins only when so many are queued */

static bool own(void)
{
	return pthread_equal(pthread_self(), test_thread);
}

static void note(int fd, bool write, const void *memory, size_t size, off_t off)
{
	pthread_mutex_lock(&lock);
	if (ncalls < CALLS)
		calls[ncalls++] = (struct call){
			.write = write,
			.own = own(),
			.direct = fcntl(fd, F_GETFL) & O_DIRECT,
			.memory = (uintptr_t)memory,
			.size = size,
			.off = off,
		};
	pthread_mutex_unlock(&lock);
}

static void raise_to(atomic_uint *n, unsigned int value)
{
	unsigned int have = atomic_load(n);

	while (have < value && !atomic_compare_exchange_weak(n, &have, value))
		;
}

static ssize_t some_pread(int fd, void *buf, size_t size, off_t off)
{
	ssize_t r;

	note(fd, false, buf, size, off);
	atomic_fetch_add(&reads, 1);
	raise_to(&most_inside, atomic_fetch_add(&inside, 1) + 1);
	while (atomic_load(&most_inside) < atomic_load(&reads_together))
		sched_yield();
	while (size == 100 && atomic_load(&small_reads_wait))
		usleep(100);
	r = base->pread(fd, buf, size, off);
	atomic_fetch_sub(&inside, 1);
	return r;
}

static ssize_t some_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	note(fd, true, buf, size, off);
	atomic_fetch_add(&writes, 1);
	while (atomic_load(&copies) < atomic_load(&write_waits_for_copies))
		sched_yield();
	return base->pwrite(fd, buf, size, off);
}

/* In the stream, before a copy. */
static void until_reads(void *arg)
{
	while (atomic_load(&reads) < atomic_load(&copy_waits_for_reads))
		usleep(100);
}

static int some_to_gpu(struct gpu_stream *s, uint64_t dst_va, const void *src, size_t size)
{
	int r = 0;

	atomic_fetch_add(&copies, 1);
	if (atomic_load(&copy_waits_for_reads))
		r = gpu_cuda.host_func(s->stream, until_reads, NULL);
	return r ? r : gpu_cuda.to_gpu(s, dst_va, src, size);
}

static int some_to_host(struct gpu_stream *s, void *dst, uint64_t src_va, size_t size)
{
	atomic_fetch_add(&copies, 1);
	return gpu_cuda.to_host(s, dst, src_va, size);
}

static int some_host_alloc(void *ctx, size_t size, void **host)
{
	int r;

	if (!own())
		atomic_fetch_add(&by_others, 1);
	r = atomic_fetch_add(&hosts, 1) < atomic_load(&host_limit) ?
		    gpu_cuda.host_alloc(ctx, size, host) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		atomic_fetch_sub(&hosts, 1);
	return r;
}

static void some_host_free(void *ctx, void *host, size_t size)
{
	if (!own())
		atomic_fetch_add(&by_others, 1);
	atomic_fetch_sub(&hosts, 1);
	gpu_cuda.host_free(ctx, host, size);
}

static int some_stream_new(void *ctx, struct gpu_stream *s)
{
	int r = gpu_cuda.stream_new(ctx, s);

	if (!own())
		atomic_fetch_add(&by_others, 1);
	if (!r)
		atomic_fetch_add(&streams, 1);
	return r;
}

static void some_stream_free(struct gpu_stream *s)
{
	atomic_fetch_sub(&streams, 1);
	gpu_cuda.stream_free(s);
}

static bool is_alarm(const void *event)
{
	unsigned int i;

	for (i = 0; i < ALARMS && alarm_of[i] != event; i++)
		;
	return i < ALARMS;
}

static void *swap_alarm(void *old, void *new)
{
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < ALARMS && alarm_of[i] != old; i++)
		;
	if (i < ALARMS)
		alarm_of[i] = new;
	pthread_mutex_unlock(&lock);
	return i < ALARMS ? old : NULL;
}

static int some_event_new(void *ctx, bool sleeps, struct gpu_event *e)
{
	int r = gpu_cuda.event_new(ctx, sleeps, e);

	if (!r && sleeps)
		swap_alarm(NULL, e->event);
	if (!r)
		atomic_fetch_add(sleeps ? &alarms : &events, 1);
	return r;
}

static void some_event_free(struct gpu_event *e)
{
	atomic_fetch_sub(swap_alarm(e->event, NULL) ? &alarms : &events, 1);
	gpu_cuda.event_free(e);
}

static int some_event_record(struct gpu_event *e, struct gpu_stream *s)
{
	bool sleeps;

	pthread_mutex_lock(&lock);
	sleeps = is_alarm(e->event);
	pthread_mutex_unlock(&lock);
	if (sleeps)
		atomic_fetch_add(&alarms_set, 1);
	return gpu_cuda.event_record(e, s);
}

static int some_event_query(struct gpu_event *e, bool *done)
{
	atomic_fetch_add(&queries, 1);
	return gpu_cuda.event_query(e, done);
}

/* The large pages: how many there are; none, or such that CUDA has them already. */
static atomic_int large;
static bool no_large, large_taken;

static void *some_large(size_t size)
{
	void *p = no_large ? NULL : base->mmap_large(size);

	if (!p)
		return NULL;
	atomic_fetch_add(&large, 1);
	if (large_taken)
		assert_int_equal(cuMemHostRegister(p, size, 0), 0);
	return p;
}

static int some_munmap(void *at, size_t size)
{
	if (size && !(size % (2 * MIB)))
		atomic_fetch_sub(&large, 1);
	if (large_taken)
		cuMemHostUnregister(at);
	return base->munmap(at, size);
}

/* The clock stands, or goes by a second whenever somebody looks. */
static atomic_bool clock_stands, clock_runs;

static uint64_t later(void)
{
	if (atomic_load(&clock_stands))
		return 1000000000;
	if (atomic_load(&clock_runs))
		atomic_fetch_add(&ahead, 1000000000);
	return base->now_ns() + atomic_load(&ahead);
}

static bool some_near(int node, struct os_policy *was)
{
	atomic_store(&near, node);
	return node >= 0;
}

static void some_back(const struct os_policy *was)
{
	atomic_fetch_add(&back, 1);
}

static void forget(void)
{
	ncalls = 0;
	atomic_store(&copies, 0);
	atomic_store(&reads, 0);
	atomic_store(&writes, 0);
	atomic_store(&most_inside, 0);
	atomic_store(&reads_together, 0);
	atomic_store(&copy_waits_for_reads, 0);
	atomic_store(&write_waits_for_copies, 0);
	atomic_store(&by_others, 0);
	atomic_store(&alarms_set, 0);
	atomic_store(&queries, 0);
}

/* -- one file, one piece of GPU memory -- */

static struct fake_pair m;

static void open_file(const char *json, int flags)
{
	fake_configure(json);
	fake_pair_open(&m, SIZE, 31, flags);
	forget();
}

static void gpu_holds(size_t at, size_t off, size_t size)
{
	assert_int_equal(cuMemcpyDtoH(m.got, (uintptr_t)m.gpu + at, size), 0);
	assert_memory_equal(m.got, m.file + off, size);
}

static void read_all(size_t size, size_t off)
{
	fake_gpu_set(m.gpu, 0x5a, SIZE);
	forget();
	assert_int_equal(cuFileRead(m.fh, m.gpu, size, off, 0), size);
	gpu_holds(0, off, size);
}

/* Other bytes into the file; the model is that of the file afterwards. */
static void write_all(size_t size, size_t off, unsigned char byte)
{
	memset(m.file + off, byte, size);
	fake_gpu_set(m.gpu, byte, SIZE);
	assert_int_equal(cuFileWrite(m.fh, m.gpu, size, off, 0), size);
}

static void file_is_right(void)
{
	fake_pair_file_is_right(&m, SIZE);
}

static int setup(void **state)
{
	fake_setup(state);
	test_thread = pthread_self();
	forget();
	atomic_store(&host_limit, 10000);
	atomic_store(&ahead, 0);
	atomic_store(&near, -2);
	atomic_store(&back, 0);
	base = os;
	ops = *os;
	ops.pread = some_pread;
	ops.pwrite = some_pwrite;
	/* here threads do it; io_uring is t_bounce_ring's */
	ring_fake_none(&ops);
	ops.mmap_large = some_large;
	ops.munmap = some_munmap;
	no_large = large_taken = false;
	ops.now_ns = later;
	ops.memory_near = some_near;
	ops.memory_back = some_back;
	os = &ops;
	seen = gpu_cuda;
	seen.to_gpu = some_to_gpu;
	seen.to_host = some_to_host;
	seen.host_alloc = some_host_alloc;
	seen.host_free = some_host_free;
	seen.stream_new = some_stream_new;
	seen.stream_free = some_stream_free;
	seen.event_new = some_event_new;
	seen.event_free = some_event_free;
	seen.event_record = some_event_record;
	seen.event_query = some_event_query;
	atomic_store(&clock_stands, false);
	atomic_store(&clock_runs, false);
	gpu = &seen;
	alarm(60);
	return 0;
}

static int teardown(void **state)
{
	alarm(0);
	fake_teardown(state);
	fake_pair_close(&m);
	gpu = &gpu_cuda;
	/* all of it went back at the close */
	assert_int_equal(atomic_load(&hosts), 0);
	assert_int_equal(atomic_load(&streams), 0);
	assert_int_equal(atomic_load(&events), 0);
	assert_int_equal(atomic_load(&alarms), 0);
	assert_int_equal(atomic_load(&large), 0);
	return 0;
}

#define COMPAT "\"properties\": {\"force_compat_mode\": true}"
#define FOUR "{\"execution\": {\"max_io_threads\": 4}, " COMPAT "}"
#define ALONE "{\"execution\": {\"parallel_io\": false}, " COMPAT "}"

/* -- what happens at the same time -- */

static void t_reads_together(void **state)
{
	static const size_t size[] = { MIB, SIZE };
	unsigned int i;

	open_file(FOUR, 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(cuMemsetD8((uintptr_t)m.gpu, 0, SIZE), 0);
		assert_int_equal(cuCtxSynchronize(), 0);
		forget();
		atomic_store(&reads_together, HELPERS + 1);
		assert_int_equal(cuFileRead(m.fh, m.gpu, size[i], 0, 0), size[i]);
		gpu_holds(0, 0, size[i]);
	}
}

/* One thread: the next piece is read while the first is on its way to the GPU. */
static void t_read_overlaps_copy(void **state)
{
	open_file(ALONE, 0);
	/* the first time one piece of host memory is there and another is made */
	read_all(SIZE, 0);
	read_all(SIZE, 0);
	forget();
	atomic_store(&copy_waits_for_reads, 2);
	assert_int_equal(cuFileRead(m.fh, m.gpu, SIZE, 0, 0), SIZE);
	gpu_holds(0, 0, SIZE);
}

/* One thread: the next piece leaves the GPU while the first is written. */
static void t_write_overlaps_copy(void **state)
{
	open_file(ALONE, 0);
	write_all(SIZE, 0, 1);
	write_all(SIZE, 0, 2);
	forget();
	atomic_store(&write_waits_for_copies, 2);
	write_all(SIZE, 0, 3);
	file_is_right();
}

/* -- what does not -- */

static void *read_little(void *arg)
{
	char *at = m.gpu + SIZE - (1 + (uintptr_t)arg) * 4096;

	if (cuCtxSetCurrent(fake_ctx) || cuFileRead(m.fh, at, 100, 0, 0) != 100)
		return &m;
	return NULL;
}

/* The crew is for all: with as many callers as there are threads nobody has a helper. */
static void t_crew_is_shared(void **state)
{
	pthread_t t[HELPERS];
	unsigned int mine = 0, all;
	uintptr_t i;
	void *bad;
	ssize_t n;

	open_file(FOUR, 0);
	atomic_store(&small_reads_wait, true);
	for (i = 0; i < HELPERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, read_little, (void *)i), 0);
	while (atomic_load(&inside) < HELPERS)
		usleep(100);
	pthread_mutex_lock(&lock);
	ncalls = 0;
	pthread_mutex_unlock(&lock);
	n = cuFileRead(m.fh, m.gpu, 2 * MIB, 0, 0);
	pthread_mutex_lock(&lock);
	all = ncalls;
	for (i = 0; i < all; i++)
		mine += calls[i].own;
	pthread_mutex_unlock(&lock);
	atomic_store(&small_reads_wait, false);
	for (i = 0; i < HELPERS; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(n, 2 * MIB);
	assert_int_equal(all, 4);
	assert_int_equal(mine, 4);
	gpu_holds(0, 0, 2 * MIB);
}

static unsigned int tasks(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A small request changes no thread, is one piece and one copy, and needs no second slot. */
static void t_small_stays(void **state)
{
	unsigned int before, i;

	open_file(FOUR, 0);
	read_all(4096, 0);
	before = tasks();
	for (i = 0; i < 20; i++) {
		read_all(1 + i * 6553, i * 4096);
		assert_int_equal(ncalls, 1);
		assert_true(calls[0].own);
		assert_int_equal(atomic_load(&copies), 1);
	}
	assert_int_equal(tasks(), before);
	assert_int_equal(atomic_load(&hosts), 1);
}

/* Into the page cache one after another, by the caller, whatever threads there are. */
static void t_writes_in_order(void **state)
{
	off_t next = 5;
	unsigned int i;

	open_file(FOUR, 0);
	write_all(SIZE - 5, 5, 7);
	for (i = 0; i < ncalls; i++) {
		assert_true(calls[i].own);
		assert_int_equal(calls[i].off, next);
		next += calls[i].size;
	}
	assert_int_equal(next, SIZE);
	file_is_right();
}

/* A file that grows does so in order, also with O_DIRECT. */
static void t_growing_in_order(void **state)
{
	off_t next = 0;
	unsigned int i;

	open_file(FOUR, O_DIRECT);
	assert_int_equal(ftruncate(m.fd, SIZE - 4096), 0);
	write_all(SIZE, 0, 9);
	for (i = 0; i < ncalls; i++) {
		assert_true(calls[i].own);
		assert_int_equal(calls[i].off, next);
		next += calls[i].size;
	}
	file_is_right();
}

/* -- O_DIRECT -- */

static void all_aligned(bool write)
{
	unsigned int i;

	assert_true(ncalls > 0);
	for (i = 0; i < ncalls; i++) {
		assert_true(calls[i].direct);
		assert_int_equal(calls[i].write, write);
		assert_int_equal((calls[i].memory | calls[i].size | calls[i].off) % 4096, 0);
	}
}

/* Whatever is asked for, the drive reads whole blocks, and several of them at a time. */
static void t_direct_reads(void **state)
{
	open_file(FOUR, O_DIRECT);
	read_all(SIZE, 0);
	all_aligned(false);
	read_all(SIZE - 5000, 4999);
	all_aligned(false);
	read_all(100, 8000);
	all_aligned(false);
	forget();
	atomic_store(&reads_together, HELPERS + 1);
	assert_int_equal(cuFileRead(m.fh, m.gpu, MIB, 0, 0), MIB);
}

/* All but the parts of blocks at the ends goes to the drive, and nothing else is touched. */
static void t_direct_writes(void **state)
{
	size_t whole = 0, parts = 0;
	unsigned int i;

	open_file(FOUR, O_DIRECT);
	write_all(2 * MIB, 4096, 11);
	all_aligned(true);
	forget();
	write_all(2 * MIB + 100, 4000, 12);
	for (i = 0; i < ncalls; i++) {
		if (!calls[i].direct) {
			parts += calls[i].size;
			continue;
		}
		whole += calls[i].size;
		assert_int_equal((calls[i].memory | calls[i].size | calls[i].off) % 4096, 0);
	}
	assert_int_equal(whole, 2 * MIB);
	assert_int_equal(parts, 100);
	file_is_right();
}

/* -- memory -- */

/* Nothing before the first request; then no more than each thread can use. */
static void t_memory_grows(void **state)
{
	unsigned int i;

	open_file(FOUR, 0);
	assert_int_equal(atomic_load(&hosts), 0);
	assert_int_equal(atomic_load(&streams), 0);
	for (i = 0; i < 30; i++) {
		forget();
		atomic_store(&reads_together, HELPERS + 1);
		assert_int_equal(cuFileRead(m.fh, m.gpu, SIZE, 0, 0), SIZE);
		assert_in_range(atomic_load(&hosts), HELPERS + 1, 3 * (HELPERS + 1));
	}
	assert_in_range(atomic_load(&streams), 1, 16);
	assert_int_equal(atomic_load(&events), atomic_load(&hosts));
	assert_int_equal(atomic_load(&alarms), atomic_load(&hosts));
}

/* What nobody used for long goes back with the next request; one piece stays. */
static void t_memory_returned(void **state)
{
	unsigned int i, had;

	open_file(FOUR, 0);
	for (i = 0; i < 10; i++)
		read_all(SIZE, 0);
	had = atomic_load(&hosts);
	assert_true(had > 2);
	read_all(4096, 0);
	assert_int_equal(atomic_load(&hosts), had);
	atomic_store(&ahead, 60000000000);
	read_all(4096, 0);
	assert_int_equal(atomic_load(&hosts), 1);
	assert_int_equal(atomic_load(&events), 1);
	read_all(SIZE, 0);
}

/* CUDA has less than we would take: it goes on with that, and asks again only later. */
static void t_memory_refused(void **state)
{
	static const unsigned int limit[] = { 1, 2, 5 };
	unsigned int i, j;

	open_file(FOUR, 0);
	for (i = 0; i < 3; i++) {
		atomic_store(&host_limit, limit[i]);
		for (j = 0; j < 10; j++) {
			read_all(SIZE, 0);
			assert_in_range(atomic_load(&hosts), 1, limit[i]);
		}
		assert_int_equal(atomic_load(&hosts), limit[i]);
		atomic_fetch_add(&ahead, 60000000000);
	}
}

/* In large pages where the system has them and CUDA takes them, else as CUDA makes it. */
static void t_large_pages(void **state)
{
	open_file(FOUR, 0);
	read_all(SIZE, 0);
	assert_int_equal(atomic_load(&large), atomic_load(&hosts));
}

static void t_no_large_pages(void **state)
{
	no_large = true;
	open_file(FOUR, 0);
	read_all(SIZE, 0);
	assert_int_equal(atomic_load(&large), 0);
}

static void t_large_pages_refused(void **state)
{
	large_taken = true;
	open_file(FOUR, 0);
	read_all(SIZE, 0);
	assert_int_equal(atomic_load(&large), 0);
	assert_true(atomic_load(&hosts) > 0);
}

static void t_no_memory(void **state)
{
	open_file(FOUR, 0);
	atomic_store(&host_limit, 0);
	errno = 0;
	assert_int_equal(cuFileRead(m.fh, m.gpu, SIZE, 0, 0), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(cuFileWrite(m.fh, m.gpu, 4096, 0, 0), -1);
	assert_int_equal(atomic_load(&writes), 0);
	/* there is some again, and nobody has to wait for it */
	atomic_store(&host_limit, 10);
	read_all(SIZE, 0);
}

/* Made near the GPU, and the thread's own memory comes from where it came from. */
static void t_near_the_gpu(void **state)
{
	char pci[32], path[96], to[96];
	uint64_t info;

	assert_int_equal(gpu_cuda.pci(0, &info, pci, sizeof(pci)), 0);
	snprintf(path, sizeof(path), "sys/devices/pci0000:00/%s/numa_node", pci);
	assert_true(tree_put(os_root, path, "7\n"));
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", pci);
	snprintf(to, sizeof(to), "../../../devices/pci0000:00/%s", pci);
	assert_true(tree_link(os_root, path, to));
	open_file(FOUR, 0);
	read_all(4096, 0);
	assert_int_equal(atomic_load(&near), 7);
	assert_int_equal(atomic_load(&back), 1);
}

/*
 * A stream waits for a request: neither the thread that does it nor one that helps does what
 * can wait for the GPU, not with memory that could grow, not with memory that is old.
 */
static void t_stream_waits_for_nothing(void **state)
{
	static size_t size = SIZE;
	static off_t off, at;
	static ssize_t bytes;
	CUstream stream;
	unsigned int i;

	open_file(FOUR, 0);
	assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
	for (i = 0; i < 12; i++) {
		bytes = 0;
		if (i == 6)
			atomic_store(&ahead, 60000000000);
		assert_int_equal(cuFileReadAsync(m.fh, m.gpu, &size, &off, &at, &bytes, stream).err,
				 0);
		assert_int_equal(cuStreamSynchronize(stream), 0);
		assert_int_equal(bytes, SIZE);
		gpu_holds(0, 0, SIZE);
	}
	assert_int_equal(atomic_load(&by_others), 0);
	cuStreamDestroy(stream);
}

/* Memory of another context than the primary one. */
static void t_other_context(void **state)
{
	CUcontext other;
	CUdevice dev;
	CUdeviceptr d;
	char *p;

	open_file(FOUR, O_DIRECT);
	assert_int_equal(cuDeviceGet(&dev, 0), 0);
	assert_int_equal(cuCtxCreate(&other, NULL, 0, dev), 0);
	assert_int_equal(cuMemAlloc(&d, SIZE), 0);
	p = (char *)(uintptr_t)d;
	assert_int_equal(cuFileRead(m.fh, p, SIZE - 10, 10, 0), SIZE - 10);
	assert_int_equal(cuMemcpyDtoH(m.got, d, SIZE - 10), 0);
	assert_memory_equal(m.got, m.file + 10, SIZE - 10);
	memmove(m.file, m.file + 10, 2 * MIB + 1);
	assert_int_equal(cuFileWrite(m.fh, p, 2 * MIB + 1, 0, 0), 2 * MIB + 1);
	file_is_right();
	/* nothing of ours is left in it */
	assert_int_equal(cuCtxDestroy(other), 0);
	assert_int_equal(cuCtxSetCurrent(fake_ctx), 0);
	read_all(SIZE, 0);
}

/* -- two GPUs: the memory of a second context is said to be another's -- */

static CUcontext second;

static int two_pointer(const void *at, struct gpu_ptr *out)
{
	int r = gpu_cuda.pointer(at, out);

	if (!r && out->ctx == second)
		out->dev = 1;
	return r;
}

static int two_primary_get(int dev, void **ctx)
{
	if (!dev)
		return gpu_cuda.primary_get(0, ctx);
	*ctx = second;
	return 0;
}

static void two_primary_put(int dev)
{
	if (!dev)
		gpu_cuda.primary_put(0);
}

static int two_pci(int dev, uint64_t *info, char *text, size_t len)
{
	return gpu_cuda.pci(0, info, text, len);
}

/* One slot for both: each takes it over from the other, and none is made a second time. */
static void t_taken_over(void **state)
{
	CUdeviceptr d;
	CUdevice dev;
	unsigned int i;

	seen.pointer = two_pointer;
	seen.primary_get = two_primary_get;
	seen.primary_put = two_primary_put;
	seen.pci = two_pci;
	assert_int_equal(cuDeviceGet(&dev, 0), 0);
	assert_int_equal(cuCtxCreate(&second, NULL, 0, dev), 0);
	assert_int_equal(cuMemAlloc(&d, SIZE), 0);
	assert_int_equal(cuCtxSetCurrent(fake_ctx), 0);
	open_file("{\"execution\": {\"max_io_threads\": 4}, \"properties\": {\"force_compat_mode\": true, "
		  "\"posix_pool_slab_size_kb\": [64], \"posix_pool_slab_count\": [1]}}", 0);
	for (i = 0; i < 6; i++) {
		read_all(200000, i * 4000);
		assert_int_equal(cuFileRead(m.fh, (void *)(uintptr_t)d, 200000, i * 4001, 0),
				 200000);
		assert_int_equal(cuMemcpyDtoH(m.got, d, 200000), 0);
		assert_memory_equal(m.got, m.file + i * 4001, 200000);
		assert_int_equal(atomic_load(&hosts), 1);
		assert_int_equal(atomic_load(&events), 1);
	}
	assert_int_equal(cuFileDriverClose().err, 0);
	cuMemFree(d);
	assert_int_equal(cuCtxDestroy(second), 0);
	second = NULL;
}

/* -- waiting for a copy -- */

/* Nobody is woken for a copy that is over before its caller would sleep: it has no alarm. */
static void t_quick_copy_wakes_nobody(void **state)
{
	unsigned int i;

	open_file(FOUR, 0);
	read_all(4096, 0);
	forget();
	atomic_store(&clock_stands, true);
	for (i = 0; i < 100; i++) {
		write_all(4096, i * 4096, i);
		assert_int_equal(cuFileRead(m.fh, m.gpu, 4096, i * 4096, 0), 4096);
	}
	write_all(SIZE, 0, 7);
	assert_int_equal(atomic_load(&alarms_set), 0);
	file_is_right();
}

/* In the stream, before a copy. */
static void for_a_while(void *arg)
{
	usleep(30000);
}

static int slow_to_host(struct gpu_stream *s, void *dst, uint64_t src_va, size_t size)
{
	int r = gpu_cuda.host_func(s->stream, for_a_while, NULL);

	return r ? r : gpu_cuda.to_host(s, dst, src_va, size);
}

/* Who waits for long sleeps, and looks again when he is woken. */
static void t_slow_copy_sleeps(void **state)
{
	open_file(FOUR, 0);
	read_all(4096, 0);
	seen.to_host = slow_to_host;
	fake_gpu_set(m.gpu, 9, SIZE);
	memset(m.file, 9, 4096);
	forget();
	atomic_store(&clock_runs, true);
	assert_int_equal(cuFileWrite(m.fh, m.gpu, 4096, 0, 0), 4096);
	assert_int_equal(atomic_load(&alarms_set), 1);
	assert_in_range(atomic_load(&queries), 2, 4);
	file_is_right();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_reads_together), T(t_read_overlaps_copy), T(t_write_overlaps_copy),
		T(t_small_stays), T(t_writes_in_order), T(t_growing_in_order), T(t_direct_reads),
		T(t_direct_writes), T(t_memory_grows), T(t_memory_returned), T(t_memory_refused),
		T(t_no_memory), T(t_near_the_gpu), T(t_stream_waits_for_nothing), T(t_taken_over),
		T(t_other_context), T(t_crew_is_shared), T(t_large_pages), T(t_no_large_pages),
		T(t_large_pages_refused), T(t_quick_copy_wakes_nobody), T(t_slow_copy_sleeps),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
