// SPDX-License-Identifier: MIT
/*
 * sim_check.c - checks of the simulated GPU in a guest, as root:
 *
 *   sim_check pattern NAME      NAME as in GPU_SIM_SCATTER, which must be set to it
 *   sim_check poison            fresh and freed memory holds the poison
 *   sim_check cards N           N cards, each with memory of its own
 *   sim_check access            device pointers are not for the CPU; fork has no GPU
 *   sim_check hold BYTES        allocate, write, say "held" and wait to be killed
 *   sim_check gone              the card is unbound (by the caller, at "held"): errors, no crash
 *
 * VRAM is looked at through the card's BAR in sysfs, not through the simulator.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"
#include "gpu_sim.h"
#include "t_vram.h"

#define MAX_PIECES 8192
#define MIB ((size_t)1 << 20)

static void die(const char *what, const char *why)
{
	fprintf(stderr, "sim_check: %s: %s\n", what, why);
	exit(1);
}

static void cu(CUresult r, const char *what)
{
	const char *name = "?";

	if (r) {
		cuGetErrorName(r, &name);
		die(what, name);
	}
}

#define CU(call) cu(call, #call)
#define CHECK(cond) ((cond) ? (void)0 : die("not true", #cond))

static void open_gpu(int index)
{
	CUcontext ctx;

	CU(cuInit(0));
	CU(cuDevicePrimaryCtxRetain(&ctx, index));
	CU(cuCtxSetCurrent(ctx));
}

/* Word i of a test pattern; never the poison. */
static uint64_t word(uint64_t seed, size_t i)
{
	return (seed + 1) * 0x9e3779b97f4a7c15ULL ^ i;
}

static uint64_t *words(uint64_t seed, size_t bytes)
{
	uint64_t *p = malloc(bytes);
	size_t i;

	if (!p)
		die("malloc", strerror(errno));
	for (i = 0; i < bytes / sizeof(*p); i++)
		p[i] = word(seed, i);
	return p;
}

static int where(CUdeviceptr ptr, size_t size, struct gpu_sim_piece *pieces)
{
	int n = gpu_sim_where((void *)(uintptr_t)ptr, size, pieces, MAX_PIECES);

	if (n < 0)
		die("gpu_sim_where", strerror(-n));
	CHECK(n > 0 && n <= MAX_PIECES);
	return n;
}

/* The pieces are the range, and the BAR holds what the range should hold. */
static void compare_bar(CUdeviceptr ptr, size_t size, const void *expect)
{
	static struct gpu_sim_piece p[MAX_PIECES];
	int n = where(ptr, size, p), i;
	size_t done = 0, len;
	uint8_t *bar = t_vram_map(0, &len);

	for (i = 0; i < n; i++) {
		CHECK(p[i].card == 0 && p[i].buf_off == done);
		CHECK(p[i].card_off + p[i].len <= len);
		CHECK(!memcmp(bar + p[i].card_off, (const uint8_t *)expect + done, p[i].len));
		done += p[i].len;
	}
	CHECK(done == size);
	munmap(bar, len);
}

static void check_shape(const char *name, const struct gpu_sim_piece *p, int n, size_t size)
{
	int i, rising = 0;

	for (i = 1; i < n; i++)
		rising += p[i].card_off > p[i - 1].card_off;
	printf("%s: %d pieces for %zu KiB, %d of %d steps up\n", name, n, size >> 10, rising,
	       n - 1);
	if (!strcmp(name, "contig"))
		CHECK(n == 1);
	else if (!strcmp(name, "2m"))
		CHECK((size_t)n == size / (2 * MIB) && rising == 0);
	else if (!strcmp(name, "64k") || !strcmp(name, "reverse"))
		CHECK((size_t)n == size / 65536 && rising == 0);
	else if (!strcmp(name, "alternate"))
		CHECK((size_t)n == size / 65536 && rising == n - 1);
	else
		CHECK((size_t)n > size / 65536 / 2 && rising > n / 4 && rising < 3 * n / 4);
}

static void pattern(const char *name)
{
	static struct gpu_sim_piece p[MAX_PIECES];
	const size_t big = 8 * MIB, part = 5 * 65536 + 4096;
	uint64_t *in = words(1, big), *out = malloc(big);
	CUdeviceptr a, b, small[3];
	int i;

	open_gpu(0);
	CU(cuMemAlloc(&a, big));
	CHECK(a % (2 * MIB) == 0);
	check_shape(name, p, where(a, big, p), big);
	CU(cuMemcpyHtoD(a, in, big));
	CU(cuCtxSynchronize());
	compare_bar(a, big, in);
	/* a range that starts and ends inside pages */
	compare_bar(a + 3 * 4096, part, (uint8_t *)in + 3 * 4096);
	CHECK(gpu_sim_where((void *)(uintptr_t)(a + big - 4096), 8192, p, 1) == -ENOENT);
	/* device to device, and back */
	CU(cuMemAlloc(&b, big));
	CU(cuMemcpyDtoD(b, a, big));
	CU(cuMemcpyDtoH(out, b, big));
	CHECK(!memcmp(in, out, big));
	compare_bar(b, big, in);
	CU(cuMemsetD32(b, 0x12345678, big / 4));
	CU(cuCtxSynchronize());
	CU(cuMemcpyDtoH(out, b, big));
	CHECK(out[0] == 0x1234567812345678ULL && out[big / 8 - 1] == out[0]);
	/* small ones share a block, and do not disturb each other */
	for (i = 0; i < 3; i++)
		CU(cuMemAlloc(&small[i], 70000));
	CHECK(small[1] - small[0] == 70144 && small[2] - small[1] == 70144);
	for (i = 0; i < 3; i++)
		CU(cuMemcpyHtoD(small[i], in + i * 16384, 70000));
	CU(cuCtxSynchronize());
	for (i = 0; i < 3; i++)
		compare_bar(small[i], 70000, in + i * 16384);
	CU(cuMemFree(small[1]));
	CU(cuMemFree(a));
	CU(cuMemFree(b));
	CU(cuMemFree(small[0]));
	CU(cuMemFree(small[2]));
	CHECK(cuMemFree(a) == CUDA_ERROR_INVALID_VALUE);
	free(in);
	free(out);
}

static bool poisoned(const uint8_t *p, size_t len)
{
	const uint64_t poison = GPU_SIM_POISON;
	size_t i;

	for (i = 0; i < len; i += sizeof(poison)) {
		if (memcmp(p + i, &poison, sizeof(poison)))
			return false;
	}
	return true;
}

static void poison(void)
{
	static struct gpu_sim_piece p[MAX_PIECES];
	const size_t size = 4 * MIB;
	uint64_t *in = words(2, size), *out = malloc(size);
	CUdeviceptr a;
	uint8_t *bar;
	size_t len;
	int n, i;

	open_gpu(0);
	bar = t_vram_map(0, &len);
	CHECK(poisoned(bar, len));
	CU(cuMemAlloc(&a, size));
	CU(cuMemcpyDtoH(out, a, size));
	CHECK(poisoned((uint8_t *)out, size));
	CU(cuMemcpyHtoD(a, in, size));
	CU(cuCtxSynchronize());
	n = where(a, size, p);
	CHECK(!poisoned(bar + p[0].card_off, p[0].len));
	CU(cuMemFree(a));
	for (i = 0; i < n; i++)
		CHECK(poisoned(bar + p[i].card_off, p[i].len));
	CHECK(poisoned(bar, len));
	/* and at process death: the caller looks at the same with another run of us */
	CU(cuMemAlloc(&a, size));
	CU(cuMemcpyHtoD(a, in, size));
	CU(cuCtxSynchronize());
	munmap(bar, len);
	printf("poison ok\n");
	free(in);
	free(out);
}

static void cards(int want)
{
	CUcontext ctx[GPU_SIM_MAX_CARDS];
	CUdeviceptr p[GPU_SIM_MAX_CARDS];
	char pci[2][32] = { "", "" };
	struct gpu_sim_piece piece;
	CUuuid uuid[2];
	uint64_t *in;
	uint8_t *bar;
	size_t len;
	int n, i;

	CU(cuInit(0));
	CU(cuDeviceGetCount(&n));
	CHECK(n == want && gpu_sim_cards() == want);
	for (i = 0; i < n; i++) {
		CU(cuDevicePrimaryCtxRetain(&ctx[i], i));
		CU(cuCtxSetCurrent(ctx[i]));
		CU(cuMemAlloc(&p[i], 2 * MIB));
		in = words(100 + i, 2 * MIB);
		CU(cuMemcpyHtoD(p[i], in, 2 * MIB));
		CU(cuCtxSynchronize());
		free(in);
		CU(cuDeviceGetPCIBusId(pci[i & 1], sizeof(pci[0]), i));
		CU(cuDeviceGetUuid(&uuid[i & 1], i));
		if (i) {
			CHECK(strcmp(pci[i & 1], pci[(i - 1) & 1]) > 0);
			CHECK(memcmp(&uuid[0], &uuid[1], sizeof(uuid[0])));
		}
	}
	for (i = 0; i < n; i++) {
		CHECK(gpu_sim_where((void *)(uintptr_t)p[i], 4096, &piece, 1) == 1);
		CHECK((int)piece.card == i);
		bar = t_vram_map(i, &len);
		CHECK(*(uint64_t *)(bar + piece.card_off + 8) == word(100 + i, 1));
		munmap(bar, len);
	}
	/* across cards, by plain copies */
	if (n > 1) {
		uint64_t got;

		CU(cuMemcpy(p[1], p[0], MIB));
		CU(cuCtxSetCurrent(ctx[0]));
		CU(cuMemcpyDtoH(&got, p[1] + 8, 8));
		/* the copy was queued in card 1's context: wait for that one */
		CU(cuCtxSetCurrent(ctx[1]));
		CU(cuCtxSynchronize());
		CU(cuMemcpyDtoH(&got, p[1] + 8, 8));
		CHECK(got == word(100, 1));
	}
	printf("%d cards ok\n", n);
}

static sigjmp_buf back;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

/* The signal that touching the address brings, or 0. */
static int touch(CUdeviceptr p)
{
	volatile uint8_t *at = (volatile uint8_t *)(uintptr_t)p;
	int sig;

	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	sig = sigsetjmp(back, 1);
	if (!sig)
		(void)*at;
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	return sig;
}

static void access_check(void)
{
	struct gpu_sim_alloc bad = { .size = 65536, .va = 4096 };
	CUdeviceptr p;
	int status, fd;
	pid_t pid;

	open_gpu(0);
	CU(cuMemAlloc(&p, 4 * MIB));
	CHECK(touch(p) == SIGSEGV);
	pid = fork();
	if (!pid)
		_exit(cuMemFree(p) == CUDA_ERROR_NOT_INITIALIZED &&
		      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	CU(cuMemsetD8(p, 1, 4096));
	CU(cuCtxSynchronize());

	fd = open("/dev/gpu-sim0", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(ioctl(fd, GPU_SIM_IOC_ALLOC, &bad) && errno == EINVAL);
	bad.va = p;
	CHECK(ioctl(fd, GPU_SIM_IOC_ALLOC, &bad) && errno == EEXIST);
	bad.va = 1ULL << 40;
	bad.size = 1ULL << 60;
	CHECK(ioctl(fd, GPU_SIM_IOC_ALLOC, &bad) && errno == ENOMEM);
	bad.size = 65536;
	bad.pattern = GPU_SIM_PATTERNS;
	CHECK(ioctl(fd, GPU_SIM_IOC_ALLOC, &bad) && errno == EINVAL);
	CHECK(ioctl(fd, GPU_SIM_IOC_ALLOC, NULL) && errno == EFAULT);
	CHECK(ioctl(fd, 0x1234) && errno == ENOTTY);
	CHECK(mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == ENOENT);
	bad.pattern = 0;
	CHECK(!ioctl(fd, GPU_SIM_IOC_ALLOC, &bad) && bad.size == 65536);
	CHECK(mmap(NULL, 131072, PROT_READ, MAP_SHARED, fd, bad.handle) == MAP_FAILED);
	CHECK(mmap(NULL, 65536, PROT_READ, MAP_PRIVATE, fd, bad.handle) == MAP_FAILED);
	{
		struct gpu_sim_free f = { .handle = bad.handle };
		void *m = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, bad.handle);

		CHECK(m != MAP_FAILED && touch((uintptr_t)m) == 0);
		CHECK(!ioctl(fd, GPU_SIM_IOC_FREE, &f));
		CHECK(touch((uintptr_t)m) == SIGBUS);
		CHECK(ioctl(fd, GPU_SIM_IOC_FREE, &f) && errno == ENOENT);
		munmap(m, 65536);
	}
	close(fd);
	CU(cuMemFree(p));
	printf("access ok\n");
}

static void hold(size_t bytes)
{
	CUdeviceptr p;

	open_gpu(0);
	CU(cuMemAlloc(&p, bytes));
	CU(cuMemsetD8(p, 0x11, bytes));
	CU(cuCtxSynchronize());
	printf("held\n");
	fflush(stdout);
	for (;;)
		pause();
}

static void gone(void)
{
	struct gpu_sim_alloc a = { .size = 65536, .va = 1ULL << 40 };
	struct gpu_sim_free f = { 0 };
	int fd = open("/dev/gpu-sim0", O_RDWR | O_CLOEXEC);
	void *m;

	CHECK(fd >= 0 && !ioctl(fd, GPU_SIM_IOC_ALLOC, &a));
	m = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, a.handle);
	CHECK(m != MAP_FAILED && touch((uintptr_t)m) == 0);
	printf("held\n");
	fflush(stdout);
	(void)getchar();
	CHECK(touch((uintptr_t)m) == SIGBUS);
	f.handle = a.handle;
	a.va += 65536;
	CHECK(ioctl(fd, GPU_SIM_IOC_ALLOC, &a) && errno == ENODEV);
	CHECK(!ioctl(fd, GPU_SIM_IOC_FREE, &f));
	close(fd);
	printf("gone ok\n");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "pattern"))
		pattern(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "poison"))
		poison();
	else if (argc == 3 && !strcmp(argv[1], "cards"))
		cards(atoi(argv[2]));
	else if (argc == 2 && !strcmp(argv[1], "access"))
		access_check();
	else if (argc == 3 && !strcmp(argv[1], "hold"))
		hold(strtoull(argv[2], NULL, 0));
	else if (argc == 2 && !strcmp(argv[1], "gone"))
		gone();
	else
		die("usage", "pattern NAME | poison | cards N | access | hold BYTES | gone");
	return 0;
}
