// SPDX-License-Identifier: MIT
/*
 * nvfs_caps.c - makes mappings of given sizes and says how far each came.
 *
 *   nvfs_caps [--hold STEM] SHADOW:GPU...
 *
 * For each pair a mapping of SHADOW bytes and, unless GPU is 0, a MAP of GPU bytes to it.
 * Prints "OK", "mmap ERRNO" or "MAP ERRNO", one word or two for each pair, in one line. With
 * --hold it makes STEM.ready and keeps what it has until STEM.go is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"

static int node;
static uint64_t pdevinfo;

static int map(char *cpu, size_t shadow, CUdeviceptr gpu, size_t size)
{
	void *fence = aligned_alloc(NVFS_BLOCK_SIZE, NVFS_BLOCK_SIZE);
	struct nvfs_ioctl_map a = {
		.size = size, .pdevinfo = pdevinfo, .cpuvaddr = (uintptr_t)cpu, .gpuvaddr = gpu,
		.end_fence_addr = (uintptr_t)fence, .sbuf_block = shadow / NVFS_BLOCK_SIZE,
	};

	if (!fence)
		t_die("out of memory");
	memset(fence, 0, NVFS_BLOCK_SIZE);
	if (!ioctl(node, NVFS_IOCTL_MAP, &a))
		return 0;
	return errno == EPERM ? -(int)(int64_t)a.end_fence_addr : errno;
}

static void pair(const char *text)
{
	const char *colon = strchr(text, ':');
	char shadow_text[32];
	size_t shadow, size;
	char *cpu;
	int r;

	if (!colon || colon - text >= (int)sizeof(shadow_text))
		t_die("%s: not SHADOW:GPU", text);
	snprintf(shadow_text, sizeof(shadow_text), "%.*s", (int)(colon - text), text);
	shadow = t_size(shadow_text);
	size = t_size(colon + 1);
	cpu = mmap(NULL, shadow, PROT_READ | PROT_WRITE, MAP_SHARED, node, 0);
	if (cpu == MAP_FAILED) {
		printf("mmap %s ", nvfs_errname(errno));
		return;
	}
	r = size ? map(cpu, shadow, t_gpu_alloc(size), size) : 0;
	printf("%s%s ", r ? "MAP " : "OK", r ? nvfs_errname(r) : "");
}

static void hold(const char *stem)
{
	struct timespec pause = { .tv_nsec = 50000000 };
	char path[512];
	int i;

	snprintf(path, sizeof(path), "%s.ready", stem);
	close(t_open(path, O_CREAT | O_WRONLY));
	snprintf(path, sizeof(path), "%s.go", stem);
	for (i = 0; access(path, F_OK); i++) {
		if (i == 1200)
			t_die("%s did not come", path);
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	const char *stem = NULL;
	struct t_gpu dev;
	int at = 1;

	if (argc > 3 && !strcmp(argv[1], "--hold")) {
		stem = argv[2];
		at = 3;
	}
	if (at >= argc) {
		fputs("usage: nvfs_caps [--hold STEM] SHADOW:GPU...\n", stderr);
		return 2;
	}
	node = open("/dev/nvidia-fs0", O_RDWR | O_CLOEXEC);
	if (node < 0) {
		printf("open %s\n", nvfs_errname(errno));
		return 1;
	}
	t_gpu_open(&dev, 0);
	pdevinfo = dev.pdevinfo;
	for (; at < argc; at++)
		pair(argv[at]);
	putchar('\n');
	fflush(stdout);
	if (stem)
		hold(stem);
	return 0;
}
