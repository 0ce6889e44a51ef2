// SPDX-License-Identifier: MIT
/*
 * nvfs_pairs.c - several drives and several cards: every pair by itself, then all at once.
 *
 *   nvfs_pairs --cards N DIR...        one directory on each drive
 *
 * By itself: the bytes must go over that card's BAR and no other. At once: one thread a
 * pair, reading and writing, and the sum over each card's BAR must be exactly its share.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_checkpoint.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define SIZE (4UL * 1024 * 1024)
#define ROUNDS 4
#define MAX_PAIRS 16

struct pair {
	struct nvfs *nv;
	int card;
	uint64_t seed;
	char path[512];
	int fd;
	CUcontext ctx;
	CUdeviceptr gpu;
	struct nvfs_map map;
	char sha256[65];	/* of the file */
	char why[256];
	int rounds;
	bool bad;
};

static void *work(void *arg)
{
	struct pair *p = arg;
	ssize_t got;
	int i;

	for (i = 0; i < p->rounds && !p->bad; i++) {
		got = nvfs_read(&p->map, p->fd, SIZE, 0, 0);
		if (got == (ssize_t)SIZE)
			got = nvfs_write(&p->map, p->fd, SIZE, SIZE, 0);
		if (got != (ssize_t)SIZE) {
			snprintf(p->why, sizeof(p->why), "%.200s",
				 got < 0 ? nvfs_error() : "short");
			p->bad = true;
		}
	}
	return NULL;
}

static int check_copy(struct pair *p)
{
	int fd = t_open(p->path, O_RDONLY), err;
	char *buf = malloc(SIZE), why[160];

	if (!buf)
		t_die("out of memory");
	t_file_drop(fd);
	if (pread(fd, buf, SIZE, SIZE) != (ssize_t)SIZE)
		t_die("%s: short", p->path);
	err = t_pattern_check(buf, SIZE, p->seed, 0, why, sizeof(why));
	if (err)
		printf("  %s: %s\n", p->path, why);
	free(buf);
	close(fd);
	return err ? 1 : 0;
}

static void prepare(struct pair *p)
{
	struct t_gpu dev;

	t_gpu_open(&dev, p->card);
	p->ctx = dev.ctx;
	p->gpu = t_gpu_alloc(SIZE);
	t_file_make(p->path, SIZE, p->seed);
	t_file_digest(p->path, p->sha256);
	p->fd = t_open(p->path, O_RDWR | O_DIRECT);
	if (nvfs_map(p->nv, &p->map, p->gpu, SIZE, 0, dev.pdevinfo))
		t_die("%s, card %d: %s", p->path, p->card, nvfs_error());
}

static void finish(struct pair *p)
{
	if (nvfs_unmap(&p->map))
		t_die("%s", nvfs_error());
	cuCtxSetCurrent(p->ctx);
	t_gpu_free(p->gpu);
	close(p->fd);
	unlink(p->path);
}

/* Run n pairs at once and account for every byte. */
static int run(struct pair *p, int n, int rounds, int cards)
{
	uint64_t want[T_MAX_CARDS] = { 0 };
	pthread_t thread[MAX_PAIRS];
	struct t_range range;
	struct t_proof proof;
	int i, bad = 0;

	for (i = 0; i < n; i++) {
		p[i].rounds = rounds;
		prepare(&p[i]);
		range = (struct t_range){ p[i].gpu, SIZE };
		if (t_checkpoint(T_MARK_NONE, "pair", &range, 1, &proof))
			exit(1);
		if (!proof.poisoned) {
			printf("  card %d: GPU memory is not poisoned before\n", p[i].card);
			bad = 1;
		}
		want[p[i].card] += 2 * rounds * SIZE;
	}
	if (t_checkpoint(T_MARK_BEGIN, "pairs", NULL, 0, &proof))
		exit(1);
	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, work, &p[i]))
			t_die("pthread_create: %s", strerror(errno));
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	if (t_checkpoint(T_MARK_END, "pairs", NULL, 0, &proof))
		exit(1);

	for (i = 0; i < cards; i++) {
		if (proof.bar[i] == want[i])
			continue;
		printf("  card %d: %llu bytes over its BAR, wanted %llu\n", i,
		       (unsigned long long)proof.bar[i], (unsigned long long)want[i]);
		bad = 1;
	}
	for (i = 0; i < n; i++) {
		range = (struct t_range){ p[i].gpu, SIZE };
		if (t_checkpoint(T_MARK_NONE, "pair", &range, 1, &proof))
			exit(1);
		if (p[i].bad)
			printf("  %s, card %d: %s\n", p[i].path, p[i].card, p[i].why);
		else if (strcmp(proof.sha256, p[i].sha256))
			printf("  %s, card %d: GPU memory is %.12s, the file %.12s\n", p[i].path,
			       p[i].card, proof.sha256, p[i].sha256);
		else if (!check_copy(&p[i]))
			continue;
		bad = 1;
	}
	for (i = 0; i < n; i++)
		finish(&p[i]);
	return bad;
}

int main(int argc, char **argv)
{
	struct pair p[MAX_PAIRS];
	int cards, n = 0, bad = 0, c, d, one;
	struct nvfs nv;

	if (argc < 4 || strcmp(argv[1], "--cards")) {
		fputs("usage: nvfs_pairs --cards N DIR...\n", stderr);
		return 2;
	}
	cards = atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	memset(p, 0, sizeof(p));
	for (d = 3; d < argc; d++) {
		for (c = 0; c < cards && n < MAX_PAIRS; c++, n++) {
			p[n].nv = &nv;
			p[n].card = c;
			p[n].seed = 1000 + n;
			snprintf(p[n].path, sizeof(p[n].path), "%s/pair%d", argv[d], c);
		}
	}
	for (d = 0; d < n; d++) {
		one = run(&p[d], 1, 1, cards);
		printf("%s %s with card %d\n", one ? "BAD" : "ok ", p[d].path, p[d].card);
		bad |= one;
	}
	one = run(p, n, ROUNDS, cards);
	printf("%s %d pairs at once, %d rounds\n", one ? "BAD" : "ok ", n, ROUNDS);
	nvfs_close(&nv);
	return bad | one;
}
