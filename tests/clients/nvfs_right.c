// SPDX-License-Identifier: MIT
/*
 * nvfs_right.c - reads or writes a file of any kind and looks whether every byte is right.
 *
 *   nvfs_right read|write --file F --size S [--cpu all|none|some|any|BYTES] [--seed X]
 *              [--direct-only]
 *
 * Goes over the first S bytes in one request and then, unless BYTES are to be counted, in
 * parts that start and end inside GPU pages. Each goes to fresh GPU memory with a guard on
 * both sides, every word of which is poison before. After it
 *
 *   read    GPU memory has the bytes that an ordinary read of the file gives; what lies
 *           beyond the blocks of the result is still poison;
 *   write   the file has the bytes of the GPU memory, and what it had elsewhere; the GPU
 *           memory has not changed.
 *
 * --cpu: how much of it the module moved by CPU, as it tells. Prints "OK bytes cpu" for
 * each request, or "ERR ERRNO text"; exit status 0, 1 wrong, 2 usage, 3 refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define GUARD (64 * 1024)
#define POISON 0xb7

struct right {
	bool write;
	const char *file, *cpu;
	size_t size;
	uint64_t seed;
	struct nvfs nv;
	struct t_gpu dev;
	int fd;
	size_t moved, by_cpu;	/* over all requests */
};

static void *must_alloc(size_t n)
{
	void *p = calloc(1, n);

	if (!p)
		t_die("out of memory");
	return p;
}

/* The module's own counters; see proc.c. */
static long long cpu_bytes(bool write)
{
	const char *want = write ? "cpu_write_bytes: %lld" : "cpu_read_bytes: %lld";
	FILE *f = fopen("/proc/driver/nvidia-fs/opengds", "re");
	long long v = -1;
	char line[256];

	while (f && v < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, want, &v) != 1)
			v = -1;
	if (f)
		fclose(f);
	if (v < 0)
		t_die("/proc/driver/nvidia-fs/opengds does not tell what the CPU moved");
	return v;
}

/* The file's bytes [0, size) as an ordinary reader sees them; how many there are. */
static size_t file_content(const char *path, char *buf, size_t size)
{
	int fd = t_open(path, O_RDONLY);
	size_t have = 0;
	ssize_t n;

	t_file_drop(fd);
	while (have < size && (n = pread(fd, buf + have, size - have, have)) != 0) {
		if (n < 0)
			t_die("%s: read at %zu: %s", path, have, strerror(errno));
		have += n;
	}
	close(fd);
	return have;
}

/* 0, or 1 and a line: the first byte of [from, to) where a and b differ */
static int differ(const char *what, const char *a, const char *b, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++) {
		if (a[i] == b[i])
			continue;
		printf("WRONG %s: byte %zu is %02x, expected %02x\n", what, i,
		       (unsigned char)a[i], (unsigned char)b[i]);
		return 1;
	}
	return 0;
}

/* GPU memory of `size` after a request of `len` at gpu_off that moved `got` */
static int check_gpu(const struct right *t, const char *gpu, char *want, const char *file,
		     size_t off, size_t gpu_off, size_t len, size_t got)
{
	size_t at = GUARD + gpu_off, blocks = (got + T_BLOCK - 1) / T_BLOCK * T_BLOCK;
	size_t all = 2 * GUARD + t->size + GUARD;

	if (t->write)
		return differ("GPU memory after a write", gpu, want, 0, all);
	memcpy(want + at, file + off, got);
	return differ("guard before", gpu, want, 0, at) ||
	       differ("GPU memory", gpu, want, at, at + got) ||
	       differ("beyond the result", gpu, want, at + blocks, at + len) ||
	       differ("guard behind", gpu, want, at + len, all);
}

static int check_file(const struct right *t, const char *before, size_t had, const char *gpu,
		      size_t off, size_t len, size_t gpu_off)
{
	size_t room = t->size + T_BLOCK, have, end = off + len > had ? off + len : had;
	char *now = must_alloc(room), *want = must_alloc(room);
	int bad = 0;

	have = file_content(t->file, now, room);
	memcpy(want, before, had);
	memcpy(want + off, gpu + GUARD + gpu_off, len);
	if (have != end) {
		printf("WRONG file: %zu bytes of it, expected %zu\n", have, end);
		bad = 1;
	}
	bad = bad || differ("file", now, want, 0, have);
	free(now);
	free(want);
	return bad;
}

/* One request over [off, off + len) of the file and GPU memory from gpu_off on. */
static int request(struct right *t, size_t off, size_t len, size_t gpu_off)
{
	size_t all = 2 * GUARD + t->size + GUARD, room = t->size + T_BLOCK, had;
	char *file = must_alloc(room), *want = must_alloc(all), *gpu = must_alloc(all);
	CUdeviceptr mem = t_gpu_alloc(all);
	long long cpu;
	struct nvfs_map map;
	ssize_t got;
	int bad;

	memset(want, POISON, all);
	if (t->write)
		t_pattern_fill(want + GUARD + gpu_off, len, ++t->seed, off / T_BLOCK);
	t_gpu_put(mem, want, all);
	had = file_content(t->file, file, room);
	if (nvfs_map(&t->nv, &map, mem, all, 0, t->dev.pdevinfo))
		t_die("%s", nvfs_error());
	cpu = cpu_bytes(t->write);
	got = t->write ? nvfs_write(&map, t->fd, len, off, GUARD + gpu_off) :
			 nvfs_read(&map, t->fd, len, off, GUARD + gpu_off);
	cpu = cpu_bytes(t->write) - cpu;
	if (t->write && fsync(t->fd))
		t_die("%s: fsync: %s", t->file, strerror(errno));
	t_gpu_get(gpu, mem, all);

	if (got < 0) {
		printf("ERR %s %s\n", nvfs_errname(got), nvfs_error());
		return 3;
	}
	printf("OK %zd %lld\n", got, cpu);
	t->moved += got;
	t->by_cpu += cpu;
	if (t->write ? got != (ssize_t)len :
		       got != (ssize_t)(had < off ? 0 : had - off < len ? had - off : len)) {
		printf("WRONG result: %zd bytes of %zu at %zu\n", got, len, off);
		return 1;
	}
	bad = check_gpu(t, gpu, want, file, off, gpu_off, len, got);
	if (!bad && t->write)
		bad = check_file(t, file, had, gpu, off, len, gpu_off);
	nvfs_unmap(&map);
	t_gpu_free(mem);
	free(file);
	free(want);
	free(gpu);
	return bad;
}

static bool cpu_as_told(const struct right *t)
{
	if (!strcmp(t->cpu, "any"))
		return true;
	if (!strcmp(t->cpu, "all"))
		return t->by_cpu == t->moved;
	if (!strcmp(t->cpu, "none"))
		return !t->by_cpu;
	if (!strcmp(t->cpu, "some"))
		return t->by_cpu && t->by_cpu < t->moved;
	return t->by_cpu == t_size(t->cpu);
}

static int run(struct right *t)
{
	int bad;

	if (nvfs_open(&t->nv, NULL, NULL))
		t_die("%s", nvfs_error());
	t_gpu_open(&t->dev, 0);
	t->fd = t_open(t->file, O_DIRECT | (t->write ? O_RDWR : O_RDONLY));
	bad = request(t, 0, t->size, 0);
	if (!bad && !(*t->cpu >= '0' && *t->cpu <= '9') && t->size >= 128 * 1024) {
		/* a block; over the end of a GPU page; a part from inside one to inside one */
		bad = request(t, 2 * T_BLOCK, T_BLOCK, 3 * T_BLOCK);
		if (!bad)
			bad = request(t, T_BLOCK, 2 * T_BLOCK, GUARD - T_BLOCK);
		if (!bad)
			bad = request(t, 5 * T_BLOCK, t->size - 9 * T_BLOCK, 7 * T_BLOCK);
	}
	if (!bad && !cpu_as_told(t)) {
		printf("WRONG way: the CPU moved %zu bytes of %zu, expected: %s\n", t->by_cpu,
		       t->moved, t->cpu);
		bad = 1;
	}
	close(t->fd);
	nvfs_close(&t->nv);
	return bad;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: nvfs_right read|write --file F --size S [--seed X]\n"
	      "                  [--cpu all|none|some|any|BYTES] [--direct-only]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "file", 1, 0, 'f' }, { "size", 1, 0, 's' }, { "cpu", 1, 0, 'c' },
		{ "seed", 1, 0, 'x' }, { "direct-only", 0, 0, 'd' }, { 0 },
	};
	struct right t = { .cpu = "any", .seed = 100 };
	int o;

	if (argc < 2 || (strcmp(argv[1], "read") && strcmp(argv[1], "write")))
		usage();
	t.write = !strcmp(argv[1], "write");
	while ((o = getopt_long(argc - 1, argv + 1, "", opts, NULL)) != -1) {
		switch (o) {
		case 'f': t.file = optarg; break;
		case 's': t.size = t_size(optarg); break;
		case 'c': t.cpu = optarg; break;
		case 'x': t.seed = strtoull(optarg, NULL, 0); break;
		case 'd': nvfs_direct_only = true; break;
		default: usage();
		}
	}
	if (!t.file || !t.size || t.size % T_BLOCK)
		usage();
	return run(&t);
}
