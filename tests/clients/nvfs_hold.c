// SPDX-License-Identifier: MIT
/*
 * nvfs_hold.c - holds a mapping until told, then shows that it still works.
 *
 *   nvfs_hold FILE STEM      FILE: 4 MiB of the pattern of seed 1
 *
 * Makes STEM.ready when the mapping stands, waits for STEM.go, then reads the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define SIZE (4UL * 1024 * 1024)

int main(int argc, char **argv)
{
	struct timespec pause = { .tv_nsec = 50000000 };
	char path[512], why[160], *buf = malloc(SIZE);
	struct nvfs_map map;
	struct t_gpu dev;
	struct nvfs nv;
	CUdeviceptr gpu;
	int fd, i;

	if (argc != 3 || !buf) {
		fputs("usage: nvfs_hold FILE STEM\n", stderr);
		return 2;
	}
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	fd = t_open(argv[1], O_RDONLY | O_DIRECT);
	gpu = t_gpu_alloc(SIZE);
	if (nvfs_map(&nv, &map, gpu, SIZE, 0, dev.pdevinfo))
		t_die("%s", nvfs_error());
	snprintf(path, sizeof(path), "%s.ready", argv[2]);
	close(t_open(path, O_CREAT | O_WRONLY));
	snprintf(path, sizeof(path), "%s.go", argv[2]);
	for (i = 0; access(path, F_OK); i++) {
		if (i == 6000)	/* five minutes: a tracer or a checker makes all of it slow */
			t_die("%s did not come", path);
		nanosleep(&pause, NULL);
	}
	if (nvfs_read(&map, fd, SIZE, 0, 0) != (ssize_t)SIZE)
		t_die("%s", nvfs_error());
	t_gpu_get(buf, gpu, SIZE);
	if (t_pattern_check(buf, SIZE, 1, 0, why, sizeof(why)))
		t_die("wrong data: %s", why);
	puts("OK");
	return 0;
}
