// SPDX-License-Identifier: MIT
/*
 * nvfs_unbind.c - the GPU's driver is unbound under I/O.
 *
 *   nvfs_unbind --file F --card ADDRESS [--pages]
 *
 * Threads read and write, each with a mapping of its own, synchronous and asynchronous ones.
 * Then the driver of the card is unbound. That must be over within 5 seconds; each request
 * ends with all its bytes, or with EIO or EBUSY, and after the unbinding none succeeds. --pages: by
 * pread and pwrite on the pages in the process; these end with EFAULT or short.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"

#define THREADS 4
#define SIZE (2UL * 1024 * 1024)

struct worker {
	struct nvfs *nv;
	struct nvfs_map map;
	struct nvfs_ogds_pages view;
	int fd, n;
	atomic_ulong moved;
	ssize_t last;		/* how it ended */
	char why[256];
};

static atomic_bool unbound;
static atomic_int bad;
static bool pages;

static ssize_t request(struct worker *w, uint64_t value)
{
	bool write = value % 2;
	off_t off = w->n * SIZE;
	int err;

	if (pages) {
		char *at = (char *)(uintptr_t)w->view.pages + w->view.offset;
		ssize_t got = write ? pwrite(w->fd, at, SIZE, off) : pread(w->fd, at, SIZE, off);

		return got < 0 ? -errno : got;
	}
	if (w->n % 2)
		return write ? nvfs_write(&w->map, w->fd, SIZE, off, 0) :
			       nvfs_read(&w->map, w->fd, SIZE, off, 0);
	err = nvfs_start(&w->map, write, w->fd, SIZE, off, 0, value);
	return err ? err : nvfs_wait(&w->map, value, 20);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t value = 0;
	ssize_t got;

	for (;;) {
		bool after = atomic_load(&unbound);

		got = request(w, ++value);
		if (got != (ssize_t)SIZE)
			break;
		atomic_fetch_add(&w->moved, 1);
		if (after) {
			printf("  thread %d: a request succeeds after the unbinding\n", w->n);
			atomic_store(&bad, 1);
			break;
		}
	}
	w->last = got;
	snprintf(w->why, sizeof(w->why), "%.200s", got < 0 ? nvfs_error() : "");
	if (pages ? got < 0 && got != -EFAULT : got != -EIO && got != -EBUSY) {
		printf("  thread %d: ended with %zd (%s)\n", w->n, got,
		       got < 0 ? nvfs_errname(got) : "short");
		atomic_store(&bad, 1);
	}
	return NULL;
}

static bool all_moving(struct worker *w)
{
	int i;

	for (i = 0; i < THREADS; i++)
		if (atomic_load(&w[i].moved) < 4)
			return false;
	return true;
}

static double unbind(const char *card)
{
	double t0 = t_now();
	int fd = t_open("/sys/bus/pci/drivers/gpu-sim/unbind", O_WRONLY);

	if (write(fd, card, strlen(card)) != (ssize_t)strlen(card))
		t_die("unbind %s: %s", card, strerror(errno));
	close(fd);
	return t_now() - t0;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	struct worker w[THREADS] = { 0 };
	pthread_t thread[THREADS];
	const double limit = 5;
	double took;
	struct t_gpu dev;
	CUdeviceptr gpu;
	struct nvfs nv;
	int i, tries;

	pages = argc == 6 && !strcmp(argv[5], "--pages");
	if (argc < 5 || argc > 5 + pages || strcmp(argv[1], "--file") || strcmp(argv[3], "--card")) {
		fputs("usage: nvfs_unbind --file F --card ADDRESS [--pages]\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	t_gpu_open(&dev, 0);
	gpu = t_gpu_alloc(THREADS * SIZE);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	for (i = 0; i < THREADS; i++) {
		w[i].nv = &nv;
		w[i].n = i;
		w[i].fd = t_open(argv[2], O_RDWR | O_DIRECT);
		if (nvfs_map(&nv, &w[i].map, gpu + i * SIZE, SIZE, 0, dev.pdevinfo))
			t_die("%s", nvfs_error());
		if (pages && nvfs_pages(&w[i].map, &w[i].view))
			t_die("%s", nvfs_error());
	}
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, &w[i]))
			t_die("pthread_create");
	for (tries = 0; tries < 1500 && !all_moving(w); tries++)
		nanosleep(&pause, NULL);
	if (!all_moving(w))
		t_die("the threads move nothing");

	took = unbind(argv[4]);
	atomic_store(&unbound, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("unbound in %.2f s\n", took);
	if (took > limit) {
		printf("  that is more than %.1f s\n", limit);
		atomic_store(&bad, 1);
	}
	for (i = 0; i < THREADS; i++) {
		printf("  thread %d: %lu requests, then %s (%s)\n", i, atomic_load(&w[i].moved),
		       w[i].last < 0 ? nvfs_errname(w[i].last) : "?", w[i].why);
		if (nvfs_unmap(&w[i].map))
			t_die("%s", nvfs_error());
		if (pages)
			nvfs_pages_unmap(&w[i].view);
		close(w[i].fd);
	}
	nvfs_close(&nv);
	return atomic_load(&bad);
}
