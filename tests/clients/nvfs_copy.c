// SPDX-License-Identifier: MIT
/*
 * nvfs_copy.c - moves a verified file to or from GPU memory on one route, with the proof.
 *
 *   nvfs_copy make FILE SIZE SEED
 *   nvfs_copy check FILE OFFSET SIZE SEED
 *   nvfs_copy read|write --route nvfs|bounce --file F --size S [--buffer B] [--gpu N]
 *             [--seed X] [--section NAME] [--no-proof] [--no-digest]
 *
 * read: file -> GPU; write: GPU -> file, which is made anew. A file larger than the
 * buffer goes piece by piece, each through fresh GPU memory, so that each is poisoned
 * before. Prints one line "RESULT key=value ..."; exit status 0, 1 failed or wrong data,
 * 3 the route was refused.
 *
 * What is timed is the moving alone, not the making, poisoning or checking.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_checkpoint.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define SLOT (8 * 1024 * 1024)	/* host memory of the bounce route */
#define CHECK (4 * 1024 * 1024)

struct copy {
	bool write, bounce, proof, digest;
	const char *file, *section;
	size_t size, buffer;
	uint64_t seed;
	int gpu;

	int fd;
	void *slot;
	struct nvfs nv;
	struct t_gpu dev;

	/* sums over the pieces */
	double seconds, guest_cpu, self_cpu;
	uint64_t bar, range, ram, unresolved, bytes;
	bool poisoned;
	char sha256[65];	/* of the last piece of GPU memory, seen from outside */
	char file_sha256[65];	/* of the last piece of the file, if asked for */
};

/* -- the two routes; both move n bytes between the GPU memory and the file at off -- */

static int move_bounce(struct copy *c, CUdeviceptr gpu, size_t n, off_t off)
{
	size_t at, len;
	ssize_t got;

	for (at = 0; at < n; at += len) {
		len = n - at < SLOT ? n - at : SLOT;
		if (c->write)
			t_gpu_get(c->slot, gpu + at, len);
		got = c->write ? pwrite(c->fd, c->slot, len, off + at) :
				 pread(c->fd, c->slot, len, off + at);
		if (got != (ssize_t)len) {
			fprintf(stderr, "%s at %lld: %s\n", c->file, (long long)(off + at),
				got < 0 ? strerror(errno) : "short");
			return got < 0 ? -errno : -EIO;
		}
		if (!c->write)
			t_gpu_put(gpu + at, c->slot, len);
	}
	return 0;
}

static int move_nvfs(struct copy *c, struct nvfs_map *map, size_t n, off_t off)
{
	ssize_t got;

	got = c->write ? nvfs_write(map, c->fd, n, off, 0) : nvfs_read(map, c->fd, n, off, 0);
	if (got < 0)
		return got;
	if (got == (ssize_t)n)
		return 0;
	nvfs_say("%s at %lld: EIO: %zd of %zu bytes moved; is the file shorter?", c->file,
		 (long long)off, got, n);
	return -EIO;
}

/* -- checks -- */

static void gpu_fill(CUdeviceptr gpu, size_t n, uint64_t seed, uint64_t first)
{
	size_t at, len;
	char *buf = malloc(CHECK);

	if (!buf)
		t_die("out of memory");
	for (at = 0; at < n; at += len) {
		len = n - at < CHECK ? n - at : CHECK;
		t_pattern_fill(buf, len, seed, first + at / T_BLOCK);
		t_gpu_put(gpu + at, buf, len);
	}
	free(buf);
}

static int gpu_check(CUdeviceptr gpu, size_t n, uint64_t seed, uint64_t first)
{
	char *buf = malloc(CHECK), why[160];
	size_t at, len;
	int err = 0;

	if (!buf)
		t_die("out of memory");
	for (at = 0; at < n && !err; at += len) {
		len = n - at < CHECK ? n - at : CHECK;
		t_gpu_get(buf, gpu + at, len);
		err = t_pattern_check(buf, len, seed, first + at / T_BLOCK, why, sizeof(why));
	}
	free(buf);
	if (err)
		fprintf(stderr, "GPU memory: %s\n", why);
	return err;
}

static void file_digest(struct copy *c, size_t n, off_t off)
{
	int fd = t_open(c->file, O_RDONLY);
	char *buf = malloc(CHECK);
	struct t_sha256 s;
	size_t at, len;

	if (!buf)
		t_die("out of memory");
	t_file_drop(fd);
	t_sha256_init(&s);
	for (at = 0; at < n; at += len) {
		len = n - at < CHECK ? n - at : CHECK;
		if (pread(fd, buf, len, off + at) != (ssize_t)len)
			t_die("%s: read at %lld: %s", c->file, (long long)(off + at),
			      strerror(errno));
		t_sha256_add(&s, buf, len);
	}
	t_sha256_end(&s, c->file_sha256);
	free(buf);
	close(fd);
}

static void begin(struct copy *c, CUdeviceptr gpu, size_t n, off_t off)
{
	struct t_range range = { gpu, n };
	struct t_proof proof;
	char name[128];

	if (c->proof) {
		snprintf(name, sizeof(name), "%s.poison", c->section);
		if (t_checkpoint(T_MARK_BEGIN, name, &range, 1, &proof))
			exit(1);
		c->poisoned &= proof.poisoned && proof.bytes == n;
	}
	if (c->write)
		gpu_fill(gpu, n, c->seed, off / T_BLOCK);
	if (c->proof && t_checkpoint(T_MARK_BEGIN, c->section, NULL, 0, &proof))
		exit(1);
}

static void end(struct copy *c, CUdeviceptr gpu, size_t n, off_t off)
{
	struct t_range range = { gpu, n };
	struct t_proof proof;

	if (!c->proof)
		return;
	if (t_checkpoint(T_MARK_END, c->section, &range, 1, &proof))
		exit(1);
	c->bar += proof.bar_all;
	c->range += proof.range;
	c->ram += proof.ram;
	c->unresolved += proof.unresolved;
	memcpy(c->sha256, proof.sha256, sizeof(c->sha256));
	if (!c->digest)
		return;
	file_digest(c, n, off);
	if (strcmp(c->sha256, c->file_sha256))
		t_die("%s at %lld: GPU memory is %.12s, the file %.12s", c->file,
		      (long long)off, c->sha256, c->file_sha256);
}

static int refuse(struct copy *c)
{
	printf("RESULT route=nvfs op=%s refused=%s\n", c->write ? "write" : "read", nvfs_error());
	return 3;
}

static int piece(struct copy *c, size_t n, off_t off)
{
	double wall, guest, self;
	struct nvfs_map map;
	CUdeviceptr gpu;
	int err;

	gpu = t_gpu_alloc(n);
	if (!c->bounce && nvfs_map(&c->nv, &map, gpu, n, 0, c->dev.pdevinfo))
		return refuse(c);

	begin(c, gpu, n, off);
	wall = t_now();
	guest = t_cpu_guest();
	self = t_cpu_self();
	err = c->bounce ? move_bounce(c, gpu, n, off) : move_nvfs(c, &map, n, off);
	c->self_cpu += t_cpu_self() - self;
	c->guest_cpu += t_cpu_guest() - guest;
	c->seconds += t_now() - wall;
	if (err && !c->bounce)
		return refuse(c);
	if (err)
		return 1;
	end(c, gpu, n, off);
	if (!c->write && gpu_check(gpu, n, c->seed, off / T_BLOCK))
		return 1;
	c->bytes += n;

	if (!c->bounce && nvfs_unmap(&map))
		t_die("%s", nvfs_error());
	t_gpu_free(gpu);
	return 0;
}

static void report(const struct copy *c)
{
	double gib = c->bytes / 1073741824.0;

	printf("RESULT route=%s op=%s bytes=%llu seconds=%.3f guest_cpu_s_per_gib=%.2f "
	       "self_cpu_s_per_gib=%.2f verified=yes", c->bounce ? "bounce" : "nvfs",
	       c->write ? "write" : "read", (unsigned long long)c->bytes, c->seconds,
	       c->guest_cpu / gib, c->self_cpu / gib);
	if (c->proof)
		printf(" poisoned=%s bar_bytes=%llu range_bytes=%llu ram_bytes=%llu "
		       "unresolved=%llu gpu_sha256=%s", c->poisoned ? "yes" : "no",
		       (unsigned long long)c->bar, (unsigned long long)c->range,
		       (unsigned long long)c->ram, (unsigned long long)c->unresolved, c->sha256);
	if (c->proof && c->digest)
		printf(" file_sha256=%s", c->file_sha256);
	putchar('\n');
}

static int run(struct copy *c)
{
	char why[160];
	bool huge;
	size_t off, n;
	int err;

	t_gpu_open(&c->dev, c->gpu);
	if (c->bounce)
		c->slot = t_host_alloc(SLOT, &huge);
	else if (nvfs_open(&c->nv, NULL, NULL))
		return refuse(c);
	c->fd = t_open(c->file, O_DIRECT | O_RDWR | (c->write ? O_CREAT | O_TRUNC : 0));

	for (off = 0; off < c->size; off += n) {
		n = c->size - off < c->buffer ? c->size - off : c->buffer;
		err = piece(c, n, off);
		if (err)
			return err;
	}
	if (c->write && fsync(c->fd))
		t_die("%s: fsync: %s", c->file, strerror(errno));
	close(c->fd);
	if (t_file_check(c->file, 0, c->size, c->seed, why, sizeof(why)))
		t_die("%s: %s", c->file, why);
	report(c);
	if (c->proof && !c->poisoned)
		t_die("GPU memory was not poisoned before; the proof says nothing");
	return 0;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: nvfs_copy make FILE SIZE SEED\n"
	      "       nvfs_copy check FILE OFFSET SIZE SEED\n"
	      "       nvfs_copy read|write --route nvfs|bounce --file F --size S\n"
	      "                 [--buffer B] [--gpu N] [--seed X] [--section NAME]\n"
	      "                 [--no-proof] [--no-digest]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "route", 1, 0, 'r' }, { "file", 1, 0, 'f' }, { "size", 1, 0, 's' },
		{ "buffer", 1, 0, 'b' }, { "gpu", 1, 0, 'g' }, { "seed", 1, 0, 'x' },
		{ "section", 1, 0, 'n' }, { "no-proof", 0, 0, 'p' }, { "no-digest", 0, 0, 'd' },
		{ 0 },
	};
	struct copy c = { .proof = true, .digest = true, .poisoned = true, .seed = 1 };
	const char *route = NULL;
	int o;

	if (argc == 5 && !strcmp(argv[1], "make")) {
		t_file_make(argv[2], t_size(argv[3]), strtoull(argv[4], NULL, 0));
		return 0;
	}
	if (argc == 6 && !strcmp(argv[1], "check")) {
		char why[160];

		if (t_file_check(argv[2], t_size(argv[3]), t_size(argv[4]),
				 strtoull(argv[5], NULL, 0), why, sizeof(why)))
			t_die("%s: %s", argv[2], why);
		return 0;
	}
	if (argc < 2 || (strcmp(argv[1], "read") && strcmp(argv[1], "write")))
		usage();
	c.write = !strcmp(argv[1], "write");
	while ((o = getopt_long(argc - 1, argv + 1, "", opts, NULL)) != -1) {
		switch (o) {
		case 'r': route = optarg; break;
		case 'f': c.file = optarg; break;
		case 's': c.size = t_size(optarg); break;
		case 'b': c.buffer = t_size(optarg); break;
		case 'g': c.gpu = atoi(optarg); break;
		case 'x': c.seed = strtoull(optarg, NULL, 0); break;
		case 'n': c.section = optarg; break;
		case 'p': c.proof = false; break;
		case 'd': c.digest = false; break;
		default: usage();
		}
	}
	if (!route || !c.file || !c.size || c.size % T_BLOCK || c.buffer % T_BLOCK ||
	    (strcmp(route, "nvfs") && strcmp(route, "bounce")))
		usage();
	c.bounce = !strcmp(route, "bounce");
	if (!c.buffer)
		c.buffer = c.size;
	if (!c.section)
		c.section = argv[1];
	return run(&c);
}
