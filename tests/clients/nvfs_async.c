// SPDX-License-Identifier: MIT
/*
 * nvfs_async.c - the rules of asynchronous requests, one by one.
 *
 *   nvfs_async --dir D
 *
 * Prints "ok RULE" or "BAD RULE: ...". GPU memory is poisoned before each read, and a file's
 * part is cleared before each write, so that what is found there was moved by the request.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_row.h"

#define K 1024UL
#define M (1024UL * 1024)
#define SIZE (20 * M)		/* GPU buffer and file: more than the largest mapping */
#define FILE_SEED 11
#define SECONDS 30.0

static struct nvfs nv;
static struct t_gpu dev;
static struct nvfs_map large, small;	/* 16 MiB and 256 KiB, both to the whole buffer */
static CUdeviceptr gpu;
static char *buf;
static uint64_t value = 100;		/* no fence value comes twice */
static int fd;

static void poison(size_t off, size_t n)
{
	memset(buf, 0xcc, n);
	t_gpu_put(gpu + off, buf, n);
}

/* 0, or a text of what is wrong with n bytes of GPU memory that should be the file's */
static const char *gpu_is_file(size_t off, size_t n)
{
	static char why[160];

	t_gpu_get(buf, gpu + off, n);
	return t_pattern_check(buf, n, FILE_SEED, off / T_BLOCK, why, sizeof(why)) ? why : NULL;
}

static void reads(struct nvfs_map *map, const char *which)
{
	static const size_t sizes[] = { 4 * K, 64 * K, 256 * K, 1 * M, 16 * M, 20 * M };
	const char *why;
	char name[80];
	ssize_t got;
	size_t i;
	int err;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "read of %zu KiB on the %s mapping", sizes[i] / K,
			 which);
		poison(0, sizes[i]);
		err = nvfs_start(map, false, fd, sizes[i], 0, 0, ++value);
		got = err ? err : nvfs_wait(map, value, SECONDS);
		why = got == (ssize_t)sizes[i] ? gpu_is_file(0, sizes[i]) : nvfs_error();
		t_row(got == (ssize_t)sizes[i] && !why, name, "result %zd: %s", got, why);
	}
}

static void writes(struct nvfs_map *map, const char *which)
{
	static const size_t sizes[] = { 4 * K, 1 * M, 20 * M };
	char name[80], why[160] = "";
	ssize_t got;
	size_t i;
	int err;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "write of %zu KiB on the %s mapping", sizes[i] / K,
			 which);
		t_pattern_fill(buf, sizes[i], 1000 + value, 0);
		t_gpu_put(gpu, buf, sizes[i]);
		err = nvfs_start(map, true, fd, sizes[i], SIZE, 0, value + 1);
		got = err ? err : nvfs_wait(map, value + 1, SECONDS);
		err = got < 0 ? got : pread(fd, buf, sizes[i], SIZE) != (ssize_t)sizes[i];
		if (!err)
			err = t_pattern_check(buf, sizes[i], 1000 + value, 0, why, sizeof(why));
		t_row(got == (ssize_t)sizes[i] && !err, name, "result %zd, %s", got, why);
		value++;
	}
}

static void ends(void)
{
	ssize_t got;
	int err;

	err = nvfs_start(&large, false, fd, 0, 0, 0, ++value);
	got = err ? err : nvfs_wait(&large, value, SECONDS);
	t_row(!got, "size 0 is over at once and signals", "%zd", got);
	err = nvfs_start(&large, false, fd, 64 * K, 0, 0, ++value);
	got = err ? err : nvfs_wait(&large, value, SECONDS);
	t_row(got == 64 * K, "and the mapping takes the next one", "%zd", got);
	if (ftruncate(fd, SIZE - 60 * K))
		t_die("ftruncate: %s", strerror(errno));
	err = nvfs_start(&large, false, fd, 64 * K, SIZE - 64 * K, 0, ++value);
	got = err ? err : nvfs_wait(&large, value, SECONDS);
	t_row(got == 4 * K, "a read is short at the end of the file", "%zd", got);
	err = nvfs_start(&large, false, fd, 64 * K, SIZE, 0, ++value);
	got = err ? err : nvfs_wait(&large, value, SECONDS);
	t_row(!got, "a read behind the end has 0 bytes", "%zd", got);
}

/* what a refused request leaves alone: the fence, and the mapping's readiness */
static void refusals(void)
{
	struct nvfs_ioctl_ioargs a = { 0 };
	uint64_t before = large.fence->end_fence_val;
	ssize_t got;
	int err;

	if (nvfs_fill_file(&a, fd))
		t_die("fstat failed");
	a.cpuvaddr = (uintptr_t)large.cpu;
	a.size = 64 * K;
	err = nvfs_submit(nv.fd[0], false, &a, &got);
	t_row(err == -EINVAL, "fence value 0 is refused", "%d", err);
	a.end_fence_value = ++value;
	a.size = 512;
	err = nvfs_submit(nv.fd[0], false, &a, &got);
	t_row(err == -EINVAL, "a bad size is refused", "%d", err);
	a.size = 64 * K;
	a.fd = -1;
	err = nvfs_submit(nv.fd[0], false, &a, &got);
	t_row(err == -EINVAL, "a bad fd is refused", "%d", err);
	t_row(large.fence->end_fence_val == before, "refusals leave the fence alone", "%llu",
	    (unsigned long long)large.fence->end_fence_val);
	err = nvfs_start(&large, false, fd, 64 * K, 0, 0, ++value);
	got = err ? err : nvfs_wait(&large, value, SECONDS);
	t_row(got == 64 * K, "and the mapping works", "%zd", got);
}

/* A second request while one is in flight; synchronous ones may run beside it. */
static void one_at_a_time(void)
{
	int tries, busy = 0, under_way = 0, err;
	uint64_t first;
	ssize_t got, sync = 64 * K;

	for (tries = 0; tries < 50 && !(busy && under_way); tries++) {
		first = ++value;
		err = nvfs_start(&large, false, fd, 12 * M, 0, 0, first);
		if (err)
			break;
		under_way += !nvfs_over(&large, first);
		err = nvfs_start(&large, false, fd, 64 * K, 0, 0, first + 1);
		busy += err == -EBUSY;
		value++;
		if (nvfs_read(&large, fd, 64 * K, 16 * M, 16 * M) != 64 * K)
			sync = -1;
		got = nvfs_wait(&large, err ? first : value, SECONDS);
		if (got != (err ? 12 * (ssize_t)M : 64 * (ssize_t)K)) {
			t_row(false, "a request survives the refusal of a second one", "%zd", got);
			return;
		}
	}
	t_row(under_way, "the ioctl returns while the drive works", "never in %d tries", tries);
	t_row(busy, "a second one in flight on a mapping is EBUSY", "never in %d tries", tries);
	t_row(sync == 64 * K, "synchronous requests run beside it", "failed");
	t_row(!gpu_is_file(0, 12 * M), "and the bytes are right", "%s", gpu_is_file(0, 12 * M));
}

/* Many mappings at once: each fence has the result of its own request. */
static void many(void)
{
	struct nvfs_map map[24];
	size_t i, n = sizeof(map) / sizeof(map[0]);
	uint64_t first = value + 1;
	ssize_t got = 0;
	int err = 0;

	poison(0, n * 64 * K);
	for (i = 0; i < n; i++)
		if (nvfs_map(&nv, &map[i], gpu, SIZE, 64 * K, dev.pdevinfo))
			t_die("%s", nvfs_error());
	for (i = 0; i < n && !err; i++)
		err = nvfs_start(&map[i], false, fd, (i % 16 + 1) * 4 * K, i * 64 * K, i * 64 * K,
				 ++value);
	for (i = 0; i < n && !err; i++) {
		got = nvfs_wait(&map[i], first + i, SECONDS);
		if (got != (ssize_t)((i % 16 + 1) * 4 * K) ||
		    gpu_is_file(i * 64 * K, (i % 16 + 1) * 4 * K))
			err = -EILSEQ;
	}
	t_row(!err, "24 mappings, 24 requests in flight", "request %zu: %d, %zd", i, err, got);
	for (i = 0; i < n; i++)
		nvfs_unmap(&map[i]);
}

/* The submitter's limits hold, also behind the first window. */
static void limits(const char *path)
{
	struct rlimit old, r;
	ssize_t got;
	int err, f = t_open(path, O_RDWR | O_DIRECT | O_CREAT | O_TRUNC);

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	r = old;
	r.rlim_cur = 1 * M;
	setrlimit(RLIMIT_FSIZE, &r);
	err = nvfs_start(&small, true, f, 64 * K, 2 * M, 0, ++value);
	got = err ? err : nvfs_wait(&small, value, SECONDS);
	t_row(got == -EFBIG, "a write past RLIMIT_FSIZE is EFBIG", "%zd", got);
	err = nvfs_start(&small, true, f, 4 * M, 0, 0, ++value);
	got = err ? err : nvfs_wait(&small, value, SECONDS);
	t_row(got > 0 && got <= 1 * (ssize_t)M && lseek(f, 0, SEEK_END) <= 1 * (off_t)M,
	    "a long write stops at RLIMIT_FSIZE", "%zd", got);
	setrlimit(RLIMIT_FSIZE, &old);
	close(f);
	unlink(path);
}

/* An fd closed in flight changes nothing: the request has its own reference. */
static void closed(const char *path)
{
	ssize_t got;
	int err, f = t_open(path, O_RDONLY | O_DIRECT);

	poison(0, 12 * M);
	err = nvfs_start(&large, false, f, 12 * M, 0, 0, ++value);
	close(f);
	got = err ? err : nvfs_wait(&large, value, SECONDS);
	t_row(got == 12 * M && !gpu_is_file(0, 12 * M), "the file is closed in flight", "%zd", got);
}

int main(int argc, char **argv)
{
	char path[512], other[512];

	if (argc != 3 || strcmp(argv[1], "--dir")) {
		fputs("usage: nvfs_async --dir D\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(path, sizeof(path), "%s/async", argv[2]);
	snprintf(other, sizeof(other), "%s/limit", argv[2]);
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	buf = aligned_alloc(4096, SIZE);
	if (!buf)
		t_die("out of memory");
	t_file_make(path, SIZE, FILE_SEED);
	fd = t_open(path, O_RDWR | O_DIRECT);
	gpu = t_gpu_alloc(SIZE);
	if (nvfs_map(&nv, &large, gpu, SIZE, 16 * M, dev.pdevinfo) ||
	    nvfs_map(&nv, &small, gpu, SIZE, 256 * K, dev.pdevinfo))
		t_die("%s", nvfs_error());

	reads(&large, "large");
	reads(&small, "small");
	closed(path);
	refusals();
	one_at_a_time();
	many();
	writes(&large, "large");
	writes(&small, "small");
	limits(other);
	ends();

	nvfs_unmap(&large);
	nvfs_unmap(&small);
	t_gpu_free(gpu);
	nvfs_close(&nv);
	close(fd);
	unlink(path);
	return t_rows_bad();
}
