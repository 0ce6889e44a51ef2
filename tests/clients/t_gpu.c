// SPDX-License-Identifier: MIT
/* t_gpu.c - CUDA, files and time for the test clients; failures end the program. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "t_gpu.h"
#include "t_pattern.h"

#define CHUNK (1024 * 1024)
#define HUGE_PAGE (2 * 1024 * 1024UL)

void t_die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void cu(CUresult res, const char *what)
{
	const char *name = NULL;

	if (res == CUDA_SUCCESS)
		return;
	cuGetErrorName(res, &name);
	t_die("%s: %s", what, name ? name : "unknown CUDA error");
}

void t_gpu_open(struct t_gpu *gpu, int index)
{
	unsigned int domain, bus, dev, fn;
	char pci[32];
	int count;

	cu(cuInit(0), "cuInit");
	cu(cuDeviceGetCount(&count), "cuDeviceGetCount");
	if (index >= count)
		t_die("GPU %d: there are %d; is gpu-sim.ko loaded?", index, count);
	cu(cuDeviceGet(&gpu->dev, index), "cuDeviceGet");
	cu(cuDevicePrimaryCtxRetain(&gpu->ctx, gpu->dev), "cuDevicePrimaryCtxRetain");
	cu(cuCtxSetCurrent(gpu->ctx), "cuCtxSetCurrent");
	cu(cuDeviceGetPCIBusId(pci, sizeof(pci), gpu->dev), "cuDeviceGetPCIBusId");
	if (sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &dev, &fn) != 4)
		t_die("GPU %d: \"%s\" is no PCI address", index, pci);
	gpu->pdevinfo = (uint64_t)domain << 32 | bus << 8 | dev << 3 | fn;
}

CUdeviceptr t_gpu_alloc(size_t size)
{
	CUdeviceptr ptr;

	cu(cuMemAlloc(&ptr, size), "cuMemAlloc");
	return ptr;
}

void t_gpu_free(CUdeviceptr ptr)
{
	cu(cuMemFree(ptr), "cuMemFree");
}

void t_gpu_put(CUdeviceptr dst, const void *src, size_t size)
{
	cu(cuMemcpyHtoD(dst, src, size), "cuMemcpyHtoD");
	/* from pageable memory it returns before the bytes have arrived */
	cu(cuCtxSynchronize(), "cuCtxSynchronize");
}

void t_gpu_get(void *dst, CUdeviceptr src, size_t size)
{
	cu(cuMemcpyDtoH(dst, src, size), "cuMemcpyDtoH");
}

void *t_host_alloc(size_t size, bool *huge)
{
	size_t len = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	void *p;

	p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	*huge = p != MAP_FAILED;
	if (*huge)
		return p;
	p = aligned_alloc(HUGE_PAGE, len);
	if (!p)
		t_die("%zu bytes of host memory: %s", len, strerror(errno));
	madvise(p, len, MADV_HUGEPAGE);
	memset(p, 0, len);
	return p;
}

size_t t_size(const char *text)
{
	unsigned long long v;
	char *end;

	v = strtoull(text, &end, 0);
	switch (*end) {
	case 'G':
		v <<= 10;
		/* fall through */
	case 'M':
		v <<= 10;
		/* fall through */
	case 'K':
		v <<= 10;
		end++;
	}
	if (end == text || *end)
		t_die("\"%s\" is no size (digits, then K, M or G)", text);
	return v;
}

double t_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

double t_cpu_self(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Idle time is exact where ticks are not: a tick sees only who runs when it strikes. */
double t_cpu_guest(void)
{
	unsigned long long idle, iowait;
	double up, hz = sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");
	int got;

	if (!f)
		t_die("/proc/stat: %s", strerror(errno));
	got = fscanf(f, "cpu %*u %*u %*u %llu %llu", &idle, &iowait);
	fclose(f);
	up = t_now();
	if (got != 2)
		t_die("/proc/stat: no cpu line");
	return up * sysconf(_SC_NPROCESSORS_ONLN) - (idle + iowait) / hz;
}

int t_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		t_die("%s: %s", path, strerror(errno));
	return fd;
}

void t_file_drop(int fd)
{
	if (fsync(fd))
		t_die("fsync: %s", strerror(errno));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

void t_file_make(const char *path, size_t size, uint64_t seed)
{
	int fd = t_open(path, O_RDWR | O_CREAT | O_TRUNC);
	char *buf = malloc(CHUNK);
	size_t at, n;

	if (!buf)
		t_die("out of memory");
	for (at = 0; at < size; at += n) {
		n = size - at < CHUNK ? size - at : CHUNK;
		t_pattern_fill(buf, n, seed, at / T_BLOCK);
		if (pwrite(fd, buf, n, at) != (ssize_t)n)
			t_die("%s: write at %zu: %s", path, at, strerror(errno));
	}
	free(buf);
	t_file_drop(fd);
	close(fd);
}

int t_file_check(const char *path, size_t off, size_t size, uint64_t seed, char *why,
		 size_t why_len)
{
	int fd = t_open(path, O_RDONLY), err = 0;
	char *buf = malloc(CHUNK);
	size_t at, n;

	if (!buf)
		t_die("out of memory");
	t_file_drop(fd);
	for (at = off; at < off + size && !err; at += n) {
		n = off + size - at < CHUNK ? off + size - at : CHUNK;
		if (pread(fd, buf, n, at) != (ssize_t)n)
			t_die("%s: read at %zu: %s", path, at, strerror(errno));
		err = t_pattern_check(buf, n, seed, at / T_BLOCK, why, why_len);
	}
	free(buf);
	close(fd);
	return err;
}

void t_file_digest(const char *path, char hex[65])
{
	int fd = t_open(path, O_RDONLY);
	char *buf = malloc(CHUNK);
	struct t_sha256 s;
	ssize_t n;

	if (!buf)
		t_die("out of memory");
	t_file_drop(fd);
	t_sha256_init(&s);
	while ((n = read(fd, buf, CHUNK)) > 0)
		t_sha256_add(&s, buf, n);
	if (n < 0)
		t_die("%s: read: %s", path, strerror(errno));
	t_sha256_end(&s, hex);
	free(buf);
	close(fd);
}
