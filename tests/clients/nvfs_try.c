// SPDX-License-Identifier: MIT
/*
 * nvfs_try.c - one request with chosen faults, for the shell tests.
 *
 *   nvfs_try read|write --file F [options]
 *
 * Prints "OK bytes" or "ERR ERRNO text", and then "GPU poison|data|pattern|other": what
 * the GPU buffer holds afterwards (pattern: that of --seed, from --file-off on). With
 * --carriers also what stood for GPU memory; with --pages what a process gets of its pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpu_sim.h"
#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"

struct try {
	bool write, direct, closed, host_memory, pages;
	int access, gpu;
	const char *file, *proc, *dev;
	size_t size, buffer, shadow;
	off_t file_off;
	uint64_t gpu_off, seed;
};

static const char *content(CUdeviceptr gpu, const struct try *t)
{
	size_t n = t->size < t->buffer ? t->size : t->buffer, i, poison = 0;
	uint64_t *buf = malloc(t->buffer);
	char why[160];

	if (!buf)
		t_die("out of memory");
	t_gpu_get(buf, gpu, t->buffer);
	for (i = 0; i < t->buffer / sizeof(*buf); i++)
		poison += buf[i] == GPU_SIM_POISON;
	if (poison == t->buffer / sizeof(*buf))
		return "poison";
	if (t->gpu_off + n <= t->buffer &&
	    !t_pattern_check((char *)buf + t->gpu_off, n, t->seed, t->file_off / T_BLOCK, why,
			     sizeof(why)))
		return "pattern";
	return "other";
}

static int result(ssize_t got)
{
	if (got < 0)
		printf("ERR %s %s\n", nvfs_errname(got), nvfs_error());
	else
		printf("OK %zd\n", got);
	return got < 0;
}

/* "CARRIERS p2pdma" or "CARRIERS shadow: why not p2pdma" */
static void carriers(const struct nvfs *nv, const struct nvfs_map *map)
{
	struct nvfs_ogds_carriers c = { .cpuvaddr = (uintptr_t)map->cpu };

	if (ioctl(nv->fd[0], NVFS_IOCTL_OGDS_CARRIERS, &c))
		printf("CARRIERS %s\n", nvfs_errname(errno));
	else if (c.have & NVFS_CARRIERS_HAVE_P2PDMA)
		printf("CARRIERS p2pdma\n");
	else
		printf("CARRIERS shadow: %.160s\n", c.reason);
}

/* "PAGES ok" or "PAGES ERRNO: why not" */
static void pages(const struct nvfs *nv, const struct nvfs_map *map)
{
	struct nvfs_ogds_pages p = { .cpuvaddr = (uintptr_t)map->cpu };

	if (ioctl(nv->fd[0], NVFS_IOCTL_OGDS_PAGES, &p))
		printf("PAGES %s: %.160s\n", nvfs_errname(-errno), p.reason);
	else
		printf("PAGES ok\n");
}

static uint32_t want_carriers(const char *name)
{
	return !strcmp(name, "shadow") ? NVFS_CARRIERS_WANT_SHADOW :
	       !strcmp(name, "p2pdma") ? NVFS_CARRIERS_WANT_P2PDMA : NVFS_CARRIERS_WANT_AUTO;
}

static int run(const struct try *t)
{
	CUdeviceptr gpu = 0;
	struct nvfs_map map;
	struct t_gpu dev;
	struct nvfs nv;
	uint64_t va;
	void *host;
	bool huge;
	ssize_t got;
	char *buf;
	int fd, err;

	err = nvfs_open(&nv, t->proc, t->dev);
	if (err)
		return result(err);
	t_gpu_open(&dev, t->gpu);
	gpu = t_gpu_alloc(t->buffer);
	va = gpu;
	if (t->host_memory) {
		host = t_host_alloc(t->buffer, &huge);
		va = (uintptr_t)host;
	}
	if (t->write && !t->host_memory) {
		buf = malloc(t->buffer);
		if (!buf)
			t_die("out of memory");
		t_pattern_fill(buf, t->buffer, t->seed, t->file_off / T_BLOCK);
		t_gpu_put(gpu, buf, t->buffer);
		free(buf);
	}
	err = nvfs_map(&nv, &map, va, t->buffer, t->shadow, dev.pdevinfo);
	if (err)
		return result(err);

	fd = t_open(t->file, t->access | (t->direct ? O_DIRECT : 0) |
		    (t->access != O_RDONLY ? O_CREAT : 0));
	if (t->closed)
		close(fd);
	got = t->write ? nvfs_write(&map, fd, t->size, t->file_off, t->gpu_off) :
			 nvfs_read(&map, fd, t->size, t->file_off, t->gpu_off);
	err = result(got);
	printf("GPU %s\n", content(gpu, t));
	if (nvfs_want_carriers)
		carriers(&nv, &map);
	if (t->pages)
		pages(&nv, &map);
	nvfs_unmap(&map);
	nvfs_close(&nv);
	t_gpu_free(gpu);
	return err;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: nvfs_try read|write --file F [--size S] [--buffer B] [--shadow S]\n"
	      "                [--file-off O] [--gpu-off O] [--gpu N] [--seed X]\n"
	      "                [--access ro|wo|rw] [--no-direct] [--closed] [--host-memory]\n"
	      "                [--proc DIR] [--dev DIR] [--direct-only]\n"
	      "                [--carriers auto|shadow|p2pdma] [--pages]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "file", 1, 0, 'f' }, { "size", 1, 0, 's' }, { "buffer", 1, 0, 'b' },
		{ "shadow", 1, 0, 'w' }, { "file-off", 1, 0, 'o' }, { "gpu-off", 1, 0, 'q' },
		{ "gpu", 1, 0, 'g' }, { "seed", 1, 0, 'x' }, { "access", 1, 0, 'a' },
		{ "no-direct", 0, 0, 'n' }, { "closed", 0, 0, 'c' }, { "host-memory", 0, 0, 'h' },
		{ "proc", 1, 0, 'p' }, { "dev", 1, 0, 'd' }, { "direct-only", 0, 0, 'D' },
		{ "carriers", 1, 0, 'k' }, { "pages", 0, 0, 'P' },
		{ 0 },
	};
	struct try t = { .direct = true, .access = O_RDWR, .size = 65536, .seed = 1 };
	int o;

	if (argc < 2 || (strcmp(argv[1], "read") && strcmp(argv[1], "write")))
		usage();
	t.write = !strcmp(argv[1], "write");
	while ((o = getopt_long(argc - 1, argv + 1, "", opts, NULL)) != -1) {
		switch (o) {
		case 'f': t.file = optarg; break;
		case 's': t.size = t_size(optarg); break;
		case 'b': t.buffer = t_size(optarg); break;
		case 'w': t.shadow = t_size(optarg); break;
		case 'o': t.file_off = t_size(optarg); break;
		case 'q': t.gpu_off = t_size(optarg); break;
		case 'g': t.gpu = atoi(optarg); break;
		case 'x': t.seed = strtoull(optarg, NULL, 0); break;
		case 'a':
			t.access = !strcmp(optarg, "ro") ? O_RDONLY :
				   !strcmp(optarg, "wo") ? O_WRONLY : O_RDWR;
			break;
		case 'n': t.direct = false; break;
		case 'c': t.closed = true; break;
		case 'h': t.host_memory = true; break;
		case 'p': t.proc = optarg; break;
		case 'd': t.dev = optarg; break;
		case 'D': nvfs_direct_only = true; break;
		case 'k': nvfs_want_carriers = want_carriers(optarg); break;
		case 'P': t.pages = true; break;
		default: usage();
		}
	}
	if (!t.file)
		usage();
	if (!t.buffer)
		t.buffer = t.gpu_off + t.size;
	return run(&t);
}
