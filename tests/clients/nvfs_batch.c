// SPDX-License-Identifier: MIT
/*
 * nvfs_batch.c - the rules of BATCH_IO, one by one.
 *
 *   nvfs_batch --dir D
 *
 * Prints "ok RULE" or "BAD RULE: ...". One GPU buffer, one mapping for each of its 64-KiB
 * parts; entry i reads or writes part i of the file's first half or second half.
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
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_row.h"

#define N NVFS_MAX_BATCH
#define PART 65536UL
#define HALF (N * PART)		/* of the file, and the GPU buffer */
#define FILE_SEED 21
#define SECONDS 30.0

static struct nvfs nv;
static struct t_gpu dev;
static struct nvfs_map map[N];
static struct nvfs_ioctl_ioargs entry[N + 1];
static CUdeviceptr gpu;
static char *buf;
static uint64_t value = 1;
static int fd, fd_wo;

/* Entries 0..n-1: odd ones write, even ones read, each its part; fences start anew. */
static void fill(unsigned int n)
{
	unsigned int i;

	value++;
	for (i = 0; i < n; i++) {
		struct nvfs_ioctl_ioargs *a = &entry[i];

		memset(a, 0, sizeof(*a));
		if (nvfs_fill_file(a, fd))
			t_die("fstat failed");
		a->cpuvaddr = (uintptr_t)map[i].cpu;
		a->size = PART;
		a->offset = i * PART + (i & 1 ? HALF : 0);
		a->devptroff = i * PART;
		a->end_fence_value = value;
		a->flags = (i & 1 ? NVFS_IO_OP_WRITE : NVFS_IO_OP_READ) << NVFS_IO_OPTYPE_SHIFT;
		a->ioctl_return = 0x5a5a;
	}
	/* what reads must replace, and what writes must store */
	for (i = 0; i < n; i++) {
		if (i & 1)
			t_pattern_fill(buf + i * PART, PART, value, i * PART / T_BLOCK);
		else
			memset(buf + i * PART, 0xcc, PART);
	}
	t_gpu_put(gpu, buf, n * PART);
}

/* 0, or -1 and errno */
static int batch(unsigned int n, const void *at)
{
	struct nvfs_ioctl_batch b = { .ctx_id = 7, .nents = n, .entries = (uintptr_t)at };

	return ioctl(nv.fd[0], NVFS_IOCTL_BATCH_IO, &b);
}

/* all n entries have ended well, with the right bytes */
static bool all_right(unsigned int n, const char **why)
{
	static char text[200];
	unsigned int i;
	ssize_t got;

	*why = text;
	for (i = 0; i < n; i++) {
		got = entry[i].flags & NVFS_IO_SYNC ? entry[i].ioctl_return :
		      nvfs_wait(&map[i], value, SECONDS);
		snprintf(text, sizeof(text), "entry %u: result %zd", i, got);
		if (got != (ssize_t)PART)
			return false;
	}
	t_gpu_get(buf, gpu, n * PART);
	for (i = 0; i < n; i += 2)
		if (t_pattern_check(buf + i * PART, PART, FILE_SEED, i * PART / T_BLOCK, text,
				    sizeof(text)))
			return false;
	for (i = 1; i < n; i += 2)
		if (pread(fd, buf, PART, HALF + i * PART) != (ssize_t)PART ||
		    t_pattern_check(buf, PART, value, i * PART / T_BLOCK, text, sizeof(text)))
			return false;
	return true;
}

/* no entry moved a byte or touched a fence, also a moment later */
static bool untouched(unsigned int n)
{
	unsigned int i;
	size_t j;

	usleep(20000);
	for (i = 0; i < n; i++)
		if (map[i].fence->end_fence_val == value)
			return false;
	t_gpu_get(buf, gpu, n * PART);
	for (i = 0; i < n; i += 2)
		for (j = 0; j < PART; j++)
			if (buf[i * PART + j] != (char)0xcc)
				return false;
	return true;
}

static void good(unsigned int n, const char *name)
{
	const char *why = "";
	int r;

	fill(n);
	r = batch(n, entry);
	t_row(!r && all_right(n, &why), name, "returned %d (%s): %s", r, r ? strerror(errno) : "-",
	    why);
}

/* Entry `at` is broken by the caller and has code `want`; all others are told off. */
static void refused(const char *name, unsigned int n, unsigned int at, long want)
{
	unsigned int i;
	bool codes = true, still;
	int r = batch(n, entry), err = errno;

	for (i = 0; i < n; i++)
		codes = codes && entry[i].ioctl_return == (i == at ? want : -ECANCELED);
	still = untouched(n);
	t_row(r == -1 && err == EPERM && codes && still, name,
	    "returned %d (%s), code %lld of entry %u, others %s, memory %s", r, strerror(err),
	    (long long)entry[at].ioctl_return, at, codes ? "right" : "wrong",
	    still ? "untouched" : "touched");
}

/* requests of GPU memory that the drive has got */
static long commands(void)
{
	FILE *f = fopen("/sys/module/nvme/parameters/nvfs_requests", "re");
	long n;

	if (!f || fscanf(f, "%ld", &n) != 1)
		t_die("nvfs_requests of the nvme module: %s", strerror(errno));
	fclose(f);
	return n;
}

/* Neighbours in the file: the block layer joins them, so a command has parts of many mappings. */
static void adjacent(void)
{
	const char *name = "256 entries that are joined to fewer commands";
	char why[200] = "";
	long before, n;
	int i, r;

	fill(N);
	for (i = 1; i < N; i += 2) {
		entry[i].offset = i * PART;
		entry[i].flags = NVFS_IO_OP_READ << NVFS_IO_OPTYPE_SHIFT;
	}
	before = commands();
	r = batch(N, entry);
	for (i = 0; i < N && !r; i++)
		if (nvfs_wait(&map[i], value, SECONDS) != (ssize_t)PART)
			r = i + 1;
	n = commands() - before;
	t_gpu_get(buf, gpu, HALF);
	if (!r)
		r = t_pattern_check(buf, HALF, FILE_SEED, 0, why, sizeof(why));
	t_row(!r && n <= N / 2, name, "%d, %ld commands, %s", r, n, why);
}

static void refusals(void)
{
	fill(N);
	entry[100].size = 512;
	refused("one bad size refuses all", N, 100, -EINVAL);
	good(N, "and then 256 entries go through");
	fill(N);
	entry[N - 1].fd = -1;
	refused("a bad fd in the last one", N, N - 1, -EINVAL);
	fill(8);
	entry[5].cpuvaddr = entry[2].cpuvaddr;
	entry[5].devptroff = entry[2].devptroff;
	refused("two entries on one mapping", 8, 5, -EBUSY);
	fill(8);
	entry[3].end_fence_value = 0;
	refused("no fence value", 8, 3, -EINVAL);
	fill(8);
	entry[4].flags = 2 << NVFS_IO_OPTYPE_SHIFT;
	refused("operation 2", 8, 4, -EINVAL);
	fill(8);
	entry[4].flags = 7 << NVFS_IO_OPTYPE_SHIFT;
	refused("operation 7", 8, 4, -EINVAL);
	fill(8);
	entry[4].flags |= NVFS_IO_SYNC;
	entry[4].offset = 512;
	refused("a synchronous entry with a bad offset", 8, 4, -EINVAL);
	fill(8);
	entry[2].fd = fd_wo;
	refused("a read of a write-only fd", 8, 2, -EBADF);
	fill(8);
	entry[2].fd = fd_wo;
	entry[2].flags = 5 << NVFS_IO_OPTYPE_SHIFT;
	refused("... under another operation's name", 8, 2, -EINVAL);
	good(8, "and then 8 entries go through");
}

static void call(const char *name, unsigned int n, const void *at, int want)
{
	int r, err;

	fill(8);
	r = batch(n, at);
	err = r ? errno : 0;
	t_row(err == want && untouched(8), name, "errno %s", nvfs_errname(err));
}

static void calls(void)
{
	char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (edge == MAP_FAILED || mprotect(edge + 4096, 4096, PROT_NONE))
		t_die("mmap: %s", strerror(errno));
	call("0 entries", 0, entry, EINVAL);
	call("257 entries", N + 1, entry, EINVAL);
	call("2^32 - 1 entries", UINT32_MAX, entry, EINVAL);
	call("entries at address 0", 8, NULL, EFAULT);
	call("entries in kernel memory", 8, (void *)0xffff888000000000UL, EFAULT);
	fill(8);
	memcpy(edge + 4096 - 4 * sizeof(*entry), entry, 4 * sizeof(*entry));
	call("entries cut off by a hole", 8, edge + 4096 - 4 * sizeof(*entry), EFAULT);
	munmap(edge, 8192);
}

/* One entry fails when it runs: the others do not notice. */
static void one_fails(void)
{
	struct rlimit old, r;
	ssize_t first, second;
	int ret;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	r = old;
	r.rlim_cur = HALF + 2 * PART;	/* entry 1 fits, entry 3 does not */
	fill(4);
	setrlimit(RLIMIT_FSIZE, &r);
	ret = batch(4, entry);
	setrlimit(RLIMIT_FSIZE, &old);
	first = nvfs_wait(&map[1], value, SECONDS);
	second = nvfs_wait(&map[3], value, SECONDS);
	t_row(!ret && first == (ssize_t)PART && second == -EFBIG &&
	    entry[3].ioctl_return == -EFBIG &&
	    nvfs_wait(&map[0], value, SECONDS) == (ssize_t)PART,
	    "one entry fails, the others do not", "returned %d, %zd and %zd", ret, first, second);
}

static void with_sync(void)
{
	const char *why = "";
	int i, r;

	fill(16);
	for (i = 3; i < 16; i += 4) {
		entry[i].flags |= NVFS_IO_SYNC;
		entry[i - 1].flags |= NVFS_IO_SYNC;
	}
	r = batch(16, entry);
	t_row(!r && all_right(16, &why), "synchronous entries among them", "returned %d: %s", r, why);
}

/* The results cannot be stored, the requests are done all the same. */
static void read_only(void)
{
	struct nvfs_ioctl_ioargs *copy;
	const char *why = "";
	int r;

	copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		t_die("mmap: %s", strerror(errno));
	fill(8);
	memcpy(copy, entry, 8 * sizeof(*entry));
	mprotect(copy, 4096, PROT_READ);
	r = batch(8, copy);
	t_row(!r && all_right(8, &why), "entries in read-only memory", "returned %d: %s", r, why);
	munmap(copy, 4096);
}

int main(int argc, char **argv)
{
	char path[512];
	int i;

	if (argc != 3 || strcmp(argv[1], "--dir")) {
		fputs("usage: nvfs_batch --dir D\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(path, sizeof(path), "%s/batch", argv[2]);
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	buf = aligned_alloc(4096, HALF);
	if (!buf)
		t_die("out of memory");
	t_file_make(path, 2 * HALF, FILE_SEED);
	fd = t_open(path, O_RDWR | O_DIRECT);
	fd_wo = t_open(path, O_WRONLY | O_DIRECT);
	gpu = t_gpu_alloc(HALF);
	for (i = 0; i < N; i++)
		if (nvfs_map(&nv, &map[i], gpu, HALF, PART, dev.pdevinfo))
			t_die("%s", nvfs_error());

	good(1, "1 entry");
	good(N, "256 entries");
	adjacent();
	refusals();
	calls();
	one_fails();
	with_sync();
	read_only();

	for (i = 0; i < N; i++)
		nvfs_unmap(&map[i]);
	t_gpu_free(gpu);
	nvfs_close(&nv);
	close(fd);
	close(fd_wo);
	unlink(path);
	return t_rows_bad();
}
