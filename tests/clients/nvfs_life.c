// SPDX-License-Identifier: MIT
/*
 * nvfs_life.c - the ends a mapping can come to in the middle of I/O.
 *
 *   nvfs_life MODE --file F [--rounds N] [--seed X] [--persistent] [--async] [--pages]
 *
 *   kill     a child with I/O in several threads is killed with SIGKILL
 *   exit     it ends by itself, with the threads still busy
 *   munmap   the carrier range is unmapped under the threads
 *   free     the GPU memory is freed under the threads
 *   idle     the GPU memory is freed after the threads, under the mapping
 *   close    all nodes are closed under the threads; the mapping must go on working
 *
 * --async: each thread has a mapping of its own to the same memory and asynchronous
 * requests on it, which nobody waits for when the process ends.
 *
 * --pages: requests are pread and pwrite on the P2PDMA pages in the process; one
 * that the end cuts may be short.
 *
 * After each round the memory must be poison again, which the driver makes it when it is
 * given back: a drive that still wrote after the free would show there. A request ends
 * with all its bytes or with an error, never with fewer bytes and never with wrong ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu_sim.h"
#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define THREADS 3
#define SIZE (4UL * 1024 * 1024)
#define PART (1024UL * 1024)	/* with --pages: what a thread has for itself */
#define FILE_SEED 77

struct life {
	const char *mode, *file;
	int rounds;
	uint64_t seed;
	bool persistent, async, pages;

	struct nvfs nv;
	struct t_gpu dev;
	CUdeviceptr gpu;
	struct nvfs_map map[THREADS];	/* the first one, or with --async one a thread */
	struct nvfs_ogds_pages view;	/* with --pages */
	atomic_int started;
	int fd;
	atomic_bool stop;
	atomic_bool ended;	/* the mapping's end was ordered: errors are fair now */
	atomic_ulong moved, failed;
	atomic_int bad;
};

static uint32_t random_below(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % n;
}

static void pause_us(unsigned int us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000L };

	nanosleep(&t, NULL);
}

/* A request that is never signalled is a hang: the caller would wait for ever. */
static ssize_t request(struct life *l, struct nvfs_map *map, bool write, size_t n, size_t off,
		       uint64_t *value)
{
	ssize_t got;
	int err;

	if (l->pages) {
		char *at = (char *)(uintptr_t)l->view.pages + l->view.offset + off;

		got = write ? pwrite(l->fd, at, n, off) : pread(l->fd, at, n, off);
		return got < 0 ? -errno : got;
	}
	if (!l->async)
		return write ? nvfs_write(map, l->fd, n, off, off) :
			       nvfs_read(map, l->fd, n, off, off);
	err = nvfs_start(map, write, l->fd, n, off, off, ++*value);
	if (err)
		return err;
	got = nvfs_wait(map, *value, 20);
	if (got == -ETIMEDOUT) {
		fprintf(stderr, "the fence of a request of %zu was never signalled\n", n);
		atomic_store(&l->bad, 1);
	}
	return got;
}

/* Reads and writes the same content, so that whatever is interrupted the file is right. */
static void *work(void *arg)
{
	static const size_t sizes[] = { 4096, 65536, 1024 * 1024, SIZE };
	struct life *l = arg;
	int i = atomic_fetch_add(&l->started, 1) % THREADS;
	struct nvfs_map *map = &l->map[l->async ? i : 0];
	uint64_t value = 0;
	uint64_t rnd = (uintptr_t)&rnd ^ l->seed;
	size_t n, off;
	ssize_t got;
	bool late;

	while (!atomic_load(&l->stop)) {
		n = sizes[random_below(&rnd, l->pages ? 3 : 4)];
		if (l->pages)	/* DMA debugging warns of two requests on one page */
			off = i * PART + random_below(&rnd, (PART - n) / 65536 + 1) * 65536UL;
		else
			off = random_below(&rnd, (SIZE - n) / 65536 + 1) * 65536UL;
		got = request(l, map, false, n, off, &value);
		late = atomic_load(&l->ended);
		if (got == (ssize_t)n)
			atomic_fetch_add(&l->moved, 1);
		else if (late && (got < 0 || l->pages))
			atomic_fetch_add(&l->failed, 1);
		else {
			fprintf(stderr, "read of %zu at %zu gave %zd: %s\n", n, off, got,
				got < 0 ? nvfs_error() : "short");
			atomic_store(&l->bad, 1);
			break;
		}
		if (got != (ssize_t)n)
			break;
		got = request(l, map, true, n, off, &value);
		if ((got < 0 || l->pages) && atomic_load(&l->ended))
			break;
		if (got != (ssize_t)n) {
			fprintf(stderr, "write of %zu at %zu gave %zd: %s\n", n, off, got,
				got < 0 ? nvfs_error() : "short");
			atomic_store(&l->bad, 1);
			break;
		}
	}
	return NULL;
}

static void open_all(struct life *l)
{
	t_gpu_open(&l->dev, 0);
	if (nvfs_open(&l->nv, NULL, NULL))
		t_die("%s", nvfs_error());
	l->fd = t_open(l->file, O_RDWR | O_DIRECT);
}

static void set_up(struct life *l)
{
	char *buf = malloc(SIZE);
	int i;

	if (!buf)
		t_die("out of memory");
	l->gpu = t_gpu_alloc(SIZE);
	t_pattern_fill(buf, SIZE, FILE_SEED, 0);
	t_gpu_put(l->gpu, buf, SIZE);
	free(buf);
	for (i = 0; i < (l->async ? THREADS : 1); i++)
		if (nvfs_map(&l->nv, &l->map[i], l->gpu, SIZE, 0, l->dev.pdevinfo))
			t_die("%s", nvfs_error());
	if (l->pages && nvfs_pages(&l->map[0], &l->view))
		t_die("%s", nvfs_error());
}

static void start(struct life *l, pthread_t *thread)
{
	int i;

	atomic_store(&l->stop, false);
	atomic_store(&l->ended, false);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, l))
			t_die("pthread_create failed");
}

static void join(struct life *l, pthread_t *thread)
{
	int i;

	atomic_store(&l->stop, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Memory that was given back is poison; what a late DMA left is not. */
static int check_fresh(const char *when)
{
	CUdeviceptr gpu = t_gpu_alloc(SIZE);
	uint64_t *buf = malloc(SIZE);
	size_t i, n = SIZE / sizeof(*buf);
	int bad = 0;

	if (!buf)
		t_die("out of memory");
	t_gpu_get(buf, gpu, SIZE);
	for (i = 0; i < n && buf[i] == GPU_SIM_POISON; i++)
		;
	if (i < n) {
		fprintf(stderr, "%s: fresh GPU memory holds %016llx at %zu: written after it "
			"was free\n", when, (unsigned long long)buf[i], i * sizeof(*buf));
		bad = 1;
	}
	free(buf);
	t_gpu_free(gpu);
	return bad;
}

/* -- rounds in this process -- */

static void end_by_munmap(struct life *l)
{
	int i;

	for (i = 0; i < THREADS; i++)
		if (l->map[i].cpu)
			munmap(l->map[i].cpu, l->map[i].shadow);
}

/* after the threads: with munmap the mapping itself is gone already */
static void unmap_all(struct life *l, bool munmapped)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		if (!munmapped)
			nvfs_unmap(&l->map[i]);
		else if (l->map[i].fence)
			munmap(l->map[i].fence, 4096);
	}
	memset(l->map, 0, sizeof(l->map));
	if (l->pages)
		nvfs_pages_unmap(&l->view);
}

static void end_by_free(struct life *l)
{
	t_gpu_free(l->gpu);
}

static void end_by_close(struct life *l)
{
	nvfs_close(&l->nv);
}

static int round_here(struct life *l, unsigned int us)
{
	bool munmapped = !strcmp(l->mode, "munmap"), idle = !strcmp(l->mode, "idle");
	bool freed = idle || !strcmp(l->mode, "free");
	pthread_t thread[THREADS];

	set_up(l);
	start(l, thread);
	pause_us(us);
	if (idle)
		join(l, thread);
	atomic_store(&l->ended, true);
	if (munmapped)
		end_by_munmap(l);
	else if (freed)
		end_by_free(l);
	else
		end_by_close(l);

	/* a callback pin is gone when cuMemFree returns; a persistent one with munmap */
	if (freed && !l->persistent && check_fresh("after cuMemFree"))
		atomic_store(&l->bad, 1);
	if (!idle)
		join(l, thread);
	unmap_all(l, munmapped);
	if (!freed)
		t_gpu_free(l->gpu);
	if (!l->nv.nfds && nvfs_open(&l->nv, NULL, NULL))
		t_die("%s", nvfs_error());
	return atomic_load(&l->bad);
}

/* -- rounds in a child -- */

static int round_child(struct life *l, unsigned int us)
{
	bool killed = !strcmp(l->mode, "kill");
	pthread_t thread[THREADS];
	int status, ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		t_die("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		t_die("fork: %s", strerror(errno));
	if (!pid) {
		open_all(l);
		set_up(l);
		start(l, thread);
		if (write(ready[1], "", 1) != 1)
			_exit(3);
		pause_us(us);
		if (!killed)
			_exit(atomic_load(&l->bad));
		pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		t_die("the child ended before it began");
	close(ready[0]);
	if (killed) {
		pause_us(us);
		kill(pid, SIGKILL);
	}
	if (waitpid(pid, &status, 0) != pid)
		t_die("waitpid: %s", strerror(errno));
	if (killed)
		return !WIFSIGNALED(status);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

static int run(struct life *l)
{
	bool child = !strcmp(l->mode, "kill") || !strcmp(l->mode, "exit");
	uint64_t rnd = l->seed;
	int i, bad = 0;
	char why[160];

	t_file_make(l->file, SIZE, FILE_SEED);
	if (!child)
		open_all(l);
	for (i = 0; i < l->rounds && !bad; i++) {
		unsigned int us = random_below(&rnd, 30000);

		bad = child ? round_child(l, us) : round_here(l, us);
	}
	if (!child) {
		nvfs_close(&l->nv);
		close(l->fd);
		printf("%s: %d rounds, %lu requests moved, %lu ended with an error\n", l->mode, i,
		       atomic_load(&l->moved), atomic_load(&l->failed));
	} else {
		printf("%s: %d rounds\n", l->mode, i);
		t_gpu_open(&l->dev, 0);
	}
	if (check_fresh("at the end"))
		bad = 1;
	if (t_file_check(l->file, 0, SIZE, FILE_SEED, why, sizeof(why))) {
		fprintf(stderr, "%s: %s\n", l->file, why);
		bad = 1;
	}
	return bad;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "file", 1, 0, 'f' }, { "rounds", 1, 0, 'r' }, { "seed", 1, 0, 'x' },
		{ "persistent", 0, 0, 'p' }, { "async", 0, 0, 'a' }, { "pages", 0, 0, 'P' },
		{ 0 },
	};
	static const char *const modes[] = {
		"kill", "exit", "munmap", "free", "idle", "close",
	};
	struct life l = { .rounds = 20, .seed = 1 };
	size_t i;
	int o;

	for (i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i]))
			l.mode = modes[i];
	while (l.mode && (o = getopt_long(argc - 1, argv + 1, "", opts, NULL)) != -1) {
		switch (o) {
		case 'f': l.file = optarg; break;
		case 'r': l.rounds = atoi(optarg); break;
		case 'x': l.seed = strtoull(optarg, NULL, 0); break;
		case 'p': l.persistent = true; break;
		case 'a': l.async = true; break;
		case 'P': l.pages = true; break;
		default: l.mode = NULL;
		}
	}
	if (!l.mode || !l.file) {
		fputs("usage: nvfs_life kill|exit|munmap|free|idle|close --file F [--rounds N]\n"
		      "                 [--seed X] [--persistent] [--async] [--pages]\n", stderr);
		return 2;
	}
	return run(&l);
}
