// SPDX-License-Identifier: MIT
/*
 * nvfs_sparse.c - the list of holes that a read leaves in the fence page.
 *
 *   nvfs_sparse --dir D
 *
 * Prints "ok RULE" or "BAD RULE: ...". Each case makes a file with known holes and reads
 * it. Where the read succeeds GPU memory must be the file's, zeros in the holes; where it
 * fails, it must be with -EIO. The list is judged in both cases.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define BLOCKS 2048UL
#define SIZE (BLOCKS * 4096)
#define SEED 31
#define SECONDS 30.0

static struct nvfs nv;
static struct t_gpu dev;
static struct nvfs_map map;
static CUdeviceptr gpu;
static char *want, *got_buf;
static uint64_t value = 1;
static const char *dir;
static int bad;

struct hole {
	unsigned int start, n;	/* blocks of the file */
};

struct layout {
	const char *name;
	unsigned int first, n;	/* what is read, in blocks */
	struct hole hole[4];
	bool unwritten;		/* extents that are allocated and not written */
	bool async;
};

static const struct layout layouts[] = {
	{ "no hole", 0, 64, { { 0, 0 } }, false, false },
	{ "a hole in the middle", 0, 64, { { 10, 5 } }, false, false },
	{ "at both ends", 0, 64, { { 0, 1 }, { 60, 4 } }, false, false },
	{ "three", 0, 2048, { { 16, 16 }, { 100, 1 }, { 1024, 1000 } }, false, false },
	{ "nothing else", 0, 32, { { 0, 32 } }, false, false },
	{ "outside of what is read", 64, 64, { { 0, 16 }, { 256, 16 } }, false, false },
	{ "cut by the start and the end of it", 64, 64, { { 48, 32 }, { 120, 64 } }, false, false },
	{ "unwritten extents", 0, 64, { { 8, 8 }, { 40, 2 } }, true, false },
	{ "asynchronous", 32, 64, { { 40, 5 }, { 90, 10 } }, false, true },
};

static int make_file(const char *path, size_t blocks)
{
	if (blocks > BLOCKS)
		blocks = BLOCKS;
	t_file_make(path, blocks * 4096, SEED);
	t_pattern_fill(want, blocks * 4096, SEED, 0);
	return t_open(path, O_RDWR | O_DIRECT);
}

static void punch(int fd, unsigned int start, unsigned int n, bool unwritten)
{
	int mode = unwritten ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	if (fallocate(fd, mode, start * 4096L, n * 4096L))
		t_die("fallocate: %s", strerror(errno));
	memset(want + start * 4096L, 0, n * 4096L);
}

/* The read, and what of it can be judged without the list: NULL, or what is wrong. */
static const char *judge_read(int fd, unsigned int first, unsigned int n, bool async)
{
	static char why[120];
	size_t len = n * 4096UL;
	ssize_t got;

	memset(got_buf, 0xcc, len);
	t_gpu_put(gpu, got_buf, len);
	map.fence->state = NVFS_FENCE_CLEAN;
	map.fence->nholes = 0xdead;
	if (async) {
		got = nvfs_start(&map, false, fd, len, first * 4096L, 0, ++value);
		got = got ? got : nvfs_wait(&map, value, SECONDS);
	} else {
		got = nvfs_read(&map, fd, len, first * 4096L, 0);
	}
	snprintf(why, sizeof(why), "result %zd", got);
	if (got == -EIO)
		return NULL;
	if (got != (ssize_t)len)
		return why;
	t_gpu_get(got_buf, gpu, len);
	return memcmp(got_buf, want + first * 4096L, len) ? "GPU memory is not the file's" : NULL;
}

/* The fence lists the holes of the layout that lie in what was read, and no more. */
static const char *judge_list(const struct layout *l)
{
	const struct nvfs_fence_page *f = map.fence;
	unsigned int i, at = 0, start, end;
	static char why[160];

	for (i = 0; i < 4 && l->hole[i].n; i++) {
		start = l->hole[i].start > l->first ? l->hole[i].start : l->first;
		end = l->hole[i].start + l->hole[i].n;
		end = end < l->first + l->n ? end : l->first + l->n;
		if (start >= end)
			continue;
		snprintf(why, sizeof(why), "hole %u is {%u, %u}, not {%u, %u}", at,
			 f->hole[at].start, f->hole[at].npages, start - l->first, end - start);
		if (f->hole[at].start != start - l->first || f->hole[at].npages != end - start)
			return why;
		at++;
	}
	if (!at)
		return f->state == NVFS_FENCE_CLEAN ? NULL : "state is not clean";
	snprintf(why, sizeof(why), "state %u, magic %llx, version %u, %u holes, offset %lld",
		 f->state, (unsigned long long)f->start_magic, f->meta_version, f->nholes,
		 (long long)f->start_fd_offset);
	return f->state == NVFS_FENCE_SPARSE && f->start_magic == NVFS_FENCE_START_MAGIC &&
	       f->meta_version == NVFS_FENCE_META_VERSION && f->nholes == at &&
	       f->start_fd_offset == l->first * 4096L ? NULL : why;
}

static void row(const char *name, const char *why)
{
	printf("%s %s%s%s\n", why ? "BAD" : "ok ", name, why ? ": " : "", why ? why : "");
	if (why)
		bad = 1;
}

static void run(const struct layout *l)
{
	char path[512];
	const char *why;
	int fd, i;

	snprintf(path, sizeof(path), "%s/sparse", dir);
	fd = make_file(path, l->first + l->n + 320);
	for (i = 0; i < 4 && l->hole[i].n; i++)
		punch(fd, l->hole[i].start, l->hole[i].n, l->unwritten);
	fsync(fd);
	why = judge_read(fd, l->first, l->n, l->async);
	row(l->name, why ? why : judge_list(l));
	close(fd);
	unlink(path);
}

/* The list has room for 768; its end is where the next hole would stand. */
static void full_list(void)
{
	const struct nvfs_fence_page *f = map.fence;
	char path[512], text[80];
	const char *why;
	unsigned int i;
	int fd;

	snprintf(path, sizeof(path), "%s/sparse", dir);
	fd = make_file(path, BLOCKS);
	for (i = 0; i < 900; i++)
		punch(fd, i * 2 + 1, 1, false);
	fsync(fd);
	why = judge_read(fd, 0, BLOCKS, false);
	for (i = 0; !why && i < NVFS_FENCE_MAX_HOLES; i++) {
		if (f->hole[i].start == i * 2 + 1 && f->hole[i].npages == 1)
			continue;
		snprintf(text, sizeof(text), "hole %u is {%u, %u}", i, f->hole[i].start,
			 f->hole[i].npages);
		why = text;
	}
	if (!why && (f->state != NVFS_FENCE_SPARSE || f->nholes != NVFS_FENCE_MAX_HOLES))
		why = "the list does not have 768 holes";
	row("900 holes of one block", why);
	close(fd);
	unlink(path);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 3 || strcmp(argv[1], "--dir")) {
		fputs("usage: nvfs_sparse --dir D\n", stderr);
		return 2;
	}
	dir = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	want = malloc(SIZE);
	got_buf = malloc(SIZE);
	if (!want || !got_buf)
		t_die("out of memory");
	gpu = t_gpu_alloc(SIZE);
	if (nvfs_map(&nv, &map, gpu, SIZE, SIZE, dev.pdevinfo))
		t_die("%s", nvfs_error());
	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		run(&layouts[i]);
	full_list();
	nvfs_unmap(&map);
	t_gpu_free(gpu);
	nvfs_close(&nv);
	return bad;
}
