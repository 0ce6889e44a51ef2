// SPDX-License-Identifier: MIT
/*
 * nvfs_direct.c - the three-part proof, case by case: poison seen from outside before,
 * content seen from outside after, and exactly the data bytes in the controller's trace.
 *
 *   nvfs_direct --dir MOUNTPOINT [--gpu N] [--quick] [--only read|write]
 *
 * Each case maps a GPU buffer, moves `size` bytes, and compares the whole buffer with an
 * image built here: pattern where the file was read to, poison everywhere else. So a
 * block that went one GPU page further shows, and so does one byte too many.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_sim.h"
#include "nvfs_client.h"
#include "t_checkpoint.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define K 1024UL
#define M (1024UL * 1024)
#define FILE_SIZE (40 * M)
#define FILE_SEED 0xf11e
#define GPU_SEED 0x69b0

struct kase {
	size_t buffer;		/* mapped GPU bytes */
	size_t skip;		/* where the mapped buffer starts in its allocation */
	size_t shadow;		/* 0: the client's choice */
	size_t size;
	off_t file_off;
	size_t gpu_off;
	bool quick;		/* also run on slow kernels and in the topology tests */
};

static const struct kase cases[] = {
	{ 4 * K, 0, 0, 4 * K, 0, 0, true },
	{ 64 * K, 0, 0, 4 * K, 68 * K, 60 * K, false },
	{ 32 * K, 12 * K, 0, 32 * K, 4 * K, 0, true },	/* buffer inside a GPU page */
	{ 64 * K, 0, 0, 64 * K, 0, 0, true },
	{ 256 * K, 0, 0, 64 * K, 12 * K, 128 * K, false },
	{ 1 * M, 0, 0, 1 * M, 4 * K, 0, true },
	{ 2 * M, 0, 0, 1 * M, 1 * M + 4 * K, 20 * K, false },	/* starts inside a GPU page */
	{ 2 * M, 8 * K, 0, 1 * M, 64 * K, 56 * K, false },	/* unaligned buffer start */
	{ 8 * M, 0, 0, 8 * M, 0, 0, true },
	{ 8 * M, 0, 0, 8 * M - 64 * K, 8 * K, 64 * K, false },
	{ 16 * M, 0, 0, 16 * M, 4 * M, 0, false },
	{ 16 * M, 0, 1 * M, 16 * M, 12 * K, 0, true },		/* 16 windows */
	{ 32 * M, 0, 64 * K, 3 * M, 1 * M, 29 * M, false },	/* 48 windows of one GPU page */
	{ 24 * M, 0, 0, 24 * M, 16 * M, 0, false },		/* window 16 MiB, then 8 MiB */
};

struct setup {
	struct nvfs nv;
	struct t_gpu gpu;
	int card;
	const char *dir;
	char path[512];
	int fd;
};

static const char *short_size(size_t n, char *buf, size_t len)
{
	if (n && !(n % M))
		snprintf(buf, len, "%zuM", n / M);
	else
		snprintf(buf, len, "%zuK", n / K);
	return buf;
}

static void name_case(const struct kase *k, bool write, char *name, size_t len)
{
	char s[5][24];

	snprintf(name, len, "%s %s file+%s gpu+%s of %s%s shadow %s", write ? "write" : "read",
		 short_size(k->size, s[0], 24), short_size(k->file_off, s[1], 24),
		 short_size(k->gpu_off, s[2], 24), short_size(k->buffer, s[3], 24),
		 k->skip ? " (unaligned)" : "",
		 k->shadow ? short_size(k->shadow, s[4], 24) : "auto");
}

/* The digest that the whole allocation must have: fill outside, pattern inside. */
static void image_digest(const struct kase *k, size_t alloc, bool write, char hex[65])
{
	char *img = malloc(alloc);
	uint64_t *w = (uint64_t *)img;
	size_t i;

	if (!img)
		t_die("out of memory");
	if (write) {
		t_pattern_fill(img, alloc, GPU_SEED, 0);
	} else {
		for (i = 0; i < alloc / sizeof(*w); i++)
			w[i] = GPU_SIM_POISON;
		t_pattern_fill(img + k->skip + k->gpu_off, k->size, FILE_SEED,
			       k->file_off / T_BLOCK);
	}
	t_sha256(img, alloc, hex);
	free(img);
}

static int check_proof(const struct setup *s, const struct kase *k, size_t alloc, bool write,
		       const struct t_proof *p)
{
	char hex[65];
	int bad = 0;

	if (p->bar_all != k->size || p->range != k->size || p->bar[s->card] != k->size) {
		printf("  the controllers moved %llu bytes over BARs, %llu over card %d, %llu of "
		       "them in the buffer; wanted %zu\n", (unsigned long long)p->bar_all,
		       (unsigned long long)p->bar[s->card], s->card,
		       (unsigned long long)p->range, k->size);
		bad = 1;
	}
	if (p->unresolved) {
		printf("  %llu I/O addresses have no translation in the trace\n",
		       (unsigned long long)p->unresolved);
		bad = 1;
	}
	image_digest(k, alloc, write, hex);
	if (strcmp(hex, p->sha256)) {
		printf("  GPU memory seen from outside is %.12s, wanted %.12s\n", p->sha256, hex);
		bad = 1;
	}
	return bad;
}

static void restore_file(const struct setup *s, const struct kase *k)
{
	int fd = t_open(s->path, O_RDWR);
	char *buf = malloc(k->size);

	if (!buf)
		t_die("out of memory");
	t_pattern_fill(buf, k->size, FILE_SEED, k->file_off / T_BLOCK);
	if (pwrite(fd, buf, k->size, k->file_off) != (ssize_t)k->size)
		t_die("%s: write: %s", s->path, strerror(errno));
	t_file_drop(fd);
	free(buf);
	close(fd);
}

/* What was written is there, and what stands around it is what stood there before. */
static int check_file(const struct setup *s, const struct kase *k)
{
	int fd = t_open(s->path, O_RDONLY), err;
	char *buf = malloc(k->size), why[160];

	if (!buf)
		t_die("out of memory");
	t_file_drop(fd);
	if (pread(fd, buf, k->size, k->file_off) != (ssize_t)k->size)
		t_die("%s: read: %s", s->path, strerror(errno));
	err = t_pattern_check(buf, k->size, GPU_SEED, (k->skip + k->gpu_off) / T_BLOCK, why,
			      sizeof(why));
	free(buf);
	close(fd);
	if (!err && k->file_off)
		err = t_file_check(s->path, 0, k->file_off, FILE_SEED, why, sizeof(why));
	if (!err)
		err = t_file_check(s->path, k->file_off + k->size,
				   FILE_SIZE - k->file_off - k->size, FILE_SEED, why,
				   sizeof(why));
	if (err)
		printf("  file: %s\n", why);
	return err ? 1 : 0;
}

static void fill_gpu(CUdeviceptr gpu, size_t n)
{
	char *buf = malloc(n);

	if (!buf)
		t_die("out of memory");
	t_pattern_fill(buf, n, GPU_SEED, 0);
	t_gpu_put(gpu, buf, n);
	free(buf);
}

static int run_case(struct setup *s, const struct kase *k, bool write)
{
	size_t alloc = (k->skip + k->buffer + 65535) & ~65535UL;
	struct t_range range;
	struct nvfs_map map;
	struct t_proof p;
	CUdeviceptr gpu;
	char name[160];
	ssize_t got;
	int bad = 0;

	name_case(k, write, name, sizeof(name));
	gpu = t_gpu_alloc(alloc);
	range = (struct t_range){ gpu, alloc };
	if (t_checkpoint(T_MARK_BEGIN, "poison", &range, 1, &p))
		exit(1);
	if (!p.poisoned || p.bytes != alloc) {
		printf("  GPU memory is not poisoned before; the case would prove nothing\n");
		bad = 1;
	}
	if (write)
		fill_gpu(gpu, alloc);
	if (nvfs_map(&s->nv, &map, gpu + k->skip, k->buffer, k->shadow, s->gpu.pdevinfo))
		t_die("%s: %s", name, nvfs_error());

	if (t_checkpoint(T_MARK_BEGIN, "move", NULL, 0, &p))
		exit(1);
	got = write ? nvfs_write(&map, s->fd, k->size, k->file_off, k->gpu_off) :
		      nvfs_read(&map, s->fd, k->size, k->file_off, k->gpu_off);
	if (t_checkpoint(T_MARK_END, "move", &range, 1, &p))
		exit(1);

	if (got != (ssize_t)k->size) {
		printf("  returned %zd: %s\n", got, got < 0 ? nvfs_error() : "short");
		bad = 1;
	} else {
		bad |= check_proof(s, k, alloc, write, &p);
		if (write)
			bad |= check_file(s, k);
	}
	if (nvfs_unmap(&map))
		t_die("%s: %s", name, nvfs_error());
	t_gpu_free(gpu);
	if (write)
		restore_file(s, k);
	printf("%s %s\n", bad ? "BAD" : "ok ", name);
	return bad;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: nvfs_direct --dir D [--gpu N] [--quick] [--only read|write]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "dir", 1, 0, 'd' }, { "gpu", 1, 0, 'g' }, { "quick", 0, 0, 'q' },
		{ "only", 1, 0, 'o' }, { 0 },
	};
	struct setup s = { 0 };
	const char *only = NULL;
	bool quick = false;
	int o, bad = 0, done = 0, w;
	size_t i;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'd': s.dir = optarg; break;
		case 'g': s.card = atoi(optarg); break;
		case 'q': quick = true; break;
		case 'o': only = optarg; break;
		default: usage();
		}
	}
	if (!s.dir || (only && strcmp(only, "read") && strcmp(only, "write")))
		usage();
	setvbuf(stdout, NULL, _IOLBF, 0);

	t_gpu_open(&s.gpu, s.card);
	if (nvfs_open(&s.nv, NULL, NULL))
		t_die("%s", nvfs_error());
	snprintf(s.path, sizeof(s.path), "%s/direct.dat", s.dir);
	t_file_make(s.path, FILE_SIZE, FILE_SEED);
	s.fd = t_open(s.path, O_RDWR | O_DIRECT);

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (quick && !cases[i].quick)
			continue;
		for (w = 0; w < 2; w++) {
			if (only && strcmp(only, w ? "write" : "read"))
				continue;
			bad += run_case(&s, &cases[i], w);
			done++;
		}
	}
	close(s.fd);
	unlink(s.path);
	nvfs_close(&s.nv);
	printf("%d cases, %d bad\n", done, bad);
	return bad || !done;
}
