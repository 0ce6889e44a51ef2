// SPDX-License-Identifier: MIT
/*
 * nvfs_plug.c - requests of GPU memory and of host memory to neighbours on a drive, in one plug.
 *
 *   nvfs_plug --drive DEVICE       (overwrites its first MiB)
 *
 * Stripes of 64 KiB, each the neighbour of the one before: host and GPU memory in turns,
 * read and written, with the one and the other first, by plug-test.ko. Every byte is compared.
 * Before it the same is done with host memory alone, and must have been joined: else the plug
 * joins nothing here and the rest proves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../kernel/hook-test/plug_test_abi.h"
#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define STRIPE (64UL * 1024)
#define STRIPES 16
#define TOTAL (STRIPES * STRIPE)

static struct {
	struct nvfs nv;
	struct t_gpu dev;
	const char *drive, *name;
	int plug, fd;
	CUdeviceptr gpu;
	struct nvfs_map map[STRIPES];
	char *buf;
} s;

/* Requests that were joined to others, of this direction, since the drive came. */
static unsigned long joined(bool write)
{
	unsigned long v[8] = { 0 };
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/block/%s/stat", s.name);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%lu %lu %lu %lu %lu %lu", v, v + 1, v + 2, v + 3, v + 4, v + 5) != 6)
		t_die("%s: no numbers", path);
	fclose(f);
	return write ? v[5] : v[1];
}

static void fill(uint64_t seed)
{
	int i;

	for (i = 0; i < STRIPES; i++)
		t_pattern_fill(s.buf + i * STRIPE, STRIPE, seed, i * (STRIPE / T_BLOCK));
}

static void drive_io(bool write)
{
	ssize_t n = write ? pwrite(s.fd, s.buf, TOTAL, 0) : pread(s.fd, s.buf, TOTAL, 0);

	if (n != (ssize_t)TOTAL)
		t_die("%s: %s", s.drive, strerror(errno));
}

static int check(uint64_t seed, const char *what)
{
	char why[160];

	if (!t_pattern_check(s.buf, TOTAL, seed, 0, why, sizeof(why)))
		return 0;
	printf("  %s: %s\n", what, why);
	return 1;
}

/* gpu: -1 none of them, 0 the even stripes are GPU memory, 1 the odd ones */
static int run(bool write, int gpu, uint64_t value)
{
	struct nvfs_ioctl_ioargs args[STRIPES] = { 0 };
	struct plug_step step[STRIPES] = { 0 };
	struct plug_run r = { (uintptr_t)step, STRIPES, 0 };
	int i, bad = 0;

	for (i = 0; i < STRIPES; i++) {
		step[i].kind = write ? PLUG_WRITE : PLUG_READ;
		step[i].fd = s.fd;
		step[i].arg = (uintptr_t)(s.buf + i * STRIPE);
		step[i].offset = i * STRIPE;
		step[i].len = STRIPE;
		if (i % 2 != gpu)
			continue;
		if (nvfs_fill_file(&args[i], s.fd))
			t_die("fstat: %s", strerror(errno));
		args[i].cpuvaddr = (uintptr_t)s.map[i].cpu;
		args[i].offset = i * STRIPE;
		args[i].size = STRIPE;
		args[i].end_fence_value = value;
		step[i].kind = PLUG_IOCTL;
		step[i].fd = s.nv.fd[0];
		step[i].cmd = write ? NVFS_IOCTL_WRITE : NVFS_IOCTL_READ;
		step[i].arg = (uintptr_t)&args[i];
	}
	if (ioctl(s.plug, PLUG_RUN, &r))
		t_die("plug-test: %s", strerror(errno));
	for (i = 0; i < STRIPES; i++) {
		ssize_t got = step[i].result;

		if (i % 2 == gpu && !got)
			got = nvfs_wait(&s.map[i], value, 30);
		if (got == (ssize_t)STRIPE)
			continue;
		printf("  stripe %d (%s memory): %s\n", i, i % 2 == gpu ? "GPU" : "host",
		       got < 0 ? nvfs_errname(got) : "short");
		bad = 1;
	}
	return bad;
}

static int read_case(int gpu, uint64_t seed)
{
	int i, bad;

	fill(seed);
	drive_io(true);
	memset(s.buf, 0x11, TOTAL);
	t_gpu_put(s.gpu, s.buf, TOTAL);
	bad = run(false, gpu, seed);
	for (i = 0; i < STRIPES; i++)
		if (i % 2 == gpu)
			t_gpu_get(s.buf + i * STRIPE, s.gpu + i * STRIPE, STRIPE);
	return bad | check(seed, "read");
}

static int write_case(int gpu, uint64_t seed)
{
	int bad, i;

	memset(s.buf, 0x22, TOTAL);
	drive_io(true);
	fill(seed);
	t_gpu_put(s.gpu, s.buf, TOTAL);
	/* what must come from GPU memory is not in host memory */
	for (i = 0; i < STRIPES; i++)
		if (i % 2 == gpu)
			memset(s.buf + i * STRIPE, 0x33, STRIPE);
	bad = run(true, gpu, seed);
	drive_io(false);
	return bad | check(seed, "write");
}

int main(int argc, char **argv)
{
	int gpu, w, i, bad = 0, one;
	unsigned long before;
	uint64_t seed = 100;
	bool huge;

	if (argc != 3 || strcmp(argv[1], "--drive")) {
		fputs("usage: nvfs_plug --drive DEVICE\n", stderr);
		return 2;
	}
	s.drive = argv[2];
	s.name = strrchr(s.drive, '/') ? strrchr(s.drive, '/') + 1 : s.drive;
	setvbuf(stdout, NULL, _IOLBF, 0);
	t_gpu_open(&s.dev, 0);
	if (nvfs_open(&s.nv, NULL, NULL))
		t_die("%s", nvfs_error());
	s.plug = t_open("/dev/plug-test", O_RDWR);
	s.fd = t_open(s.drive, O_RDWR | O_DIRECT);
	s.buf = t_host_alloc(TOTAL, &huge);
	s.gpu = t_gpu_alloc(TOTAL);
	for (i = 0; i < STRIPES; i++)
		if (nvfs_map(&s.nv, &s.map[i], s.gpu + i * STRIPE, STRIPE, 0, s.dev.pdevinfo))
			t_die("%s", nvfs_error());
	for (w = 0; w < 2; w++) {
		before = joined(w);
		one = w ? write_case(-1, ++seed) : read_case(-1, ++seed);
		if (!one && joined(w) == before) {
			printf("  nothing was joined: this plug proves nothing\n");
			one = 1;
		}
		printf("%s %s of host memory alone: %lu joined\n", one ? "BAD" : "ok ",
		       w ? "write" : "read", joined(w) - before);
		bad |= one;
		for (gpu = 0; gpu < 2; gpu++) {
			one = w ? write_case(gpu, ++seed) : read_case(gpu, ++seed);
			printf("%s %s of host and GPU memory in turns, %s first\n",
			       one ? "BAD" : "ok ", w ? "write" : "read", gpu ? "host" : "GPU");
			bad |= one;
		}
	}
	for (i = 0; i < STRIPES; i++)
		if (nvfs_unmap(&s.map[i]))
			t_die("%s", nvfs_error());
	t_gpu_free(s.gpu);
	nvfs_close(&s.nv);
	return bad;
}
