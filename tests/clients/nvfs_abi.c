// SPDX-License-Identifier: MIT
/*
 * nvfs_abi.c - the ioctl ABI, row by row: what is refused, with which code, at which place
 * of the structure, and in which order.
 *
 *   nvfs_abi --file F
 *
 * A failing request returns -1 with errno EPERM and the code inside the structure. Every
 * row starts from a request that works and breaks some of it; rows that break two things
 * pin the order of checks. After each refusal the same mapping must take a good request.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"

#define SIZE (1024UL * 1024)
#define FILE_SIZE (2 * SIZE)
#define ANY_ERROR 1	/* a row that must fail, the code being the driver's business */

static struct nvfs nv;
static struct t_gpu dev;
static struct nvfs_map ready;		/* mapped */
static CUdeviceptr gpu;
static void *unmapped;			/* mmapped, no MAP done */
static int fd, fd_ro, fd_wo, fd_buffered, fd_dir, fd_append;
static int bad;

static void verdict(const char *name, int ret, int err, long code, long want)
{
	bool ok = want == ANY_ERROR ? code < 0 : code == want;

	ok = ok && (want ? ret == -1 && err == EPERM : ret == 0);
	printf("%s %s", ok ? "ok " : "BAD", name);
	if (!ok) {
		printf(": returned %d, errno %s, code %ld; wanted code %ld", ret,
		       ret ? nvfs_errname(err) : "none", code, want);
		bad = 1;
	}
	putchar('\n');
}

/* -- READ and WRITE -- */

static void good_io(struct nvfs_ioctl_ioargs *a)
{
	memset(a, 0, sizeof(*a));
	if (nvfs_fill_file(a, fd))
		t_die("fstat failed");
	a->cpuvaddr = (uintptr_t)ready.cpu;
	a->size = 65536;
	a->flags = NVFS_IO_SYNC;
}

static void io_row(const char *name, bool write, struct nvfs_ioctl_ioargs *a, long want)
{
	struct nvfs_ioctl_ioargs good;
	char text[160];
	int ret, err;

	a->ioctl_return = 0x5a5a;
	ret = ioctl(nv.fd[1 % nv.nfds], write ? NVFS_IOCTL_WRITE : NVFS_IOCTL_READ, a);
	err = errno;
	snprintf(text, sizeof(text), "%s: %s", write ? "WRITE" : "READ", name);
	verdict(text, ret, err, want > ANY_ERROR ? a->ioctl_return - want : a->ioctl_return,
		want > ANY_ERROR ? 0 : want);
	good_io(&good);
	if (ioctl(nv.fd[0], NVFS_IOCTL_READ, &good) || good.ioctl_return != 65536) {
		printf("BAD %s: a good read fails after it: %lld\n", name,
		       (long long)good.ioctl_return);
		bad = 1;
	}
}

#define IO(write, name, want, ...)			\
	do {						\
		struct nvfs_ioctl_ioargs a;		\
							\
		good_io(&a);				\
		__VA_ARGS__;				\
		io_row(name, write, &a, want);		\
	} while (0)

static void other_file(struct nvfs_ioctl_ioargs *a, int other)
{
	if (nvfs_fill_file(a, other))
		t_die("fstat failed");
}

static void io_rows(void)
{
	int closed = dup(fd);

	close(closed);
	IO(false, "64 KiB", 65536, (void)0);
	IO(true, "64 KiB", 65536, (void)0);
	IO(false, "the whole buffer", (long)SIZE, a.size = SIZE);
	IO(false, "short at the end of the file", 4096, a.offset = FILE_SIZE - 4096);
	IO(false, "behind the end of the file", 0, a.offset = FILE_SIZE);
	/* waits for ever when those that moved nothing have kept their blocks */
	IO(false, "the whole buffer after them", (long)SIZE, a.size = SIZE);
	IO(false, "negative offset", -EINVAL, a.offset = -4096);
	IO(false, "offset 512", -EINVAL, a.offset = 512);
	IO(false, "size 512", -EINVAL, a.size = 512);
	IO(false, "size 4097", -EINVAL, a.size = 4097);
	IO(false, "offset + size overflows", -EINVAL, a.offset = INT64_MAX - 4095);
	IO(false, "size 2^64 - 4096", -EINVAL, a.size = -4096ULL);
	IO(false, "fd -1", -EINVAL, a.fd = -1);
	IO(false, "closed fd", -EINVAL, a.fd = closed);
	IO(false, "write-only fd", -EBADF, other_file(&a, fd_wo));
	IO(false, "write-only fd and allowreads", -EBADF, other_file(&a, fd_wo);
	   a.flags |= NVFS_IO_ALLOWREADS);
	IO(true, "read-only fd", -EBADF, other_file(&a, fd_ro));
	IO(true, "O_APPEND fd", -EINVAL, other_file(&a, fd_append));
	IO(false, "directory", ANY_ERROR, other_file(&a, fd_dir));
	IO(false, "inode number 0", -EINVAL, a.inum = 0);
	IO(false, "wrong inode number", -ESTALE, a.inum++);
	IO(false, "wrong major", -ESTALE, a.majdev++);
	IO(false, "wrong minor", -ESTALE, a.mindev++);
	IO(false, "wrong generation", -ESTALE, a.generation = 0xdeadbeef);
	IO(false, "address 0", -EINVAL, a.cpuvaddr = 0);
	IO(false, "address inside the mapping", -EINVAL, a.cpuvaddr += 4096);
	IO(false, "address of other memory", -EINVAL, a.cpuvaddr = (uintptr_t)ready.fence);
	IO(false, "address above user space", -EINVAL, a.cpuvaddr = -65536ULL);
	IO(false, "mapping without MAP", -EBUSY, a.cpuvaddr = (uintptr_t)unmapped);
	IO(false, "file without O_DIRECT", -EINVAL, other_file(&a, fd_buffered));
	IO(false, "GPU offset 512", -EINVAL, a.devptroff = 512);
	IO(false, "larger than the GPU buffer", -EINVAL, a.size = SIZE + 4096);
	IO(false, "past the GPU buffer", -EINVAL, a.devptroff = SIZE - 4096);
	IO(false, "GPU offset 2^64 - 4096", -EINVAL, a.devptroff = -4096ULL);
	IO(false, "leaves the GPU page it starts in", -EINVAL, a.devptroff = 4096);
	IO(false, "ends with the GPU page it starts in", 61440, a.devptroff = 4096;
	   a.size = 61440);

	/* the order of checks */
	IO(false, "order: range before fd", -EINVAL, a.offset = -1; other_file(&a, fd_wo));
	IO(false, "order: mode before inode", -EBADF, other_file(&a, fd_wo); a.inum++);
	IO(false, "order: inode before address", -ESTALE, a.inum++; a.cpuvaddr = 0);
	IO(false, "order: inode before state", -ESTALE, a.inum++;
	   a.cpuvaddr = (uintptr_t)unmapped);
	IO(false, "order: state before O_DIRECT", -EBUSY, other_file(&a, fd_buffered);
	   a.cpuvaddr = (uintptr_t)unmapped);
}

/* -- MAP -- */

static void good_map(struct nvfs_ioctl_map *m, void *cpu, void *fence)
{
	memset(m, 0, sizeof(*m));
	m->size = SIZE;
	m->cpuvaddr = (uintptr_t)cpu;
	m->gpuvaddr = gpu;
	m->end_fence_addr = (uintptr_t)fence;
	m->sbuf_block = SIZE / 4096;
}

static void *pages(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		t_die("mmap: %s", strerror(errno));
	return p;
}

/* A refused MAP leaves the mapping as it was: the good one then goes through. */
static void map_row(const char *name, void *cpu, void *fence, struct nvfs_ioctl_map *m, long want)
{
	struct nvfs_ioctl_map good;
	char text[160];
	int ret, err;

	ret = ioctl(nv.fd[0], NVFS_IOCTL_MAP, m);
	err = errno;
	snprintf(text, sizeof(text), "MAP: %s", name);
	verdict(text, ret, err, ret ? (long)m->end_fence_addr : 0, want);
	if (!ret)
		return;
	good_map(&good, cpu, fence);
	if (ioctl(nv.fd[0], NVFS_IOCTL_MAP, &good)) {
		printf("BAD MAP: %s: a good one fails after it: %lld\n", name,
		       (long long)good.end_fence_addr);
		bad = 1;
	}
}

#define MAP(name, want, ...)							\
	do {									\
		void *cpu = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,		\
				 MAP_SHARED, nv.fd[0], 0);			\
		void *fence = pages(4096, PROT_READ | PROT_WRITE);		\
		struct nvfs_ioctl_map m;					\
										\
		if (cpu == MAP_FAILED)						\
			t_die("mmap of the node: %s", strerror(errno));		\
		good_map(&m, cpu, fence);					\
		__VA_ARGS__;							\
		map_row(name, cpu, fence, &m, want);				\
		munmap(cpu, SIZE);						\
		munmap(fence, 4096);						\
	} while (0)

static void map_rows(void)
{
	void *read_only = pages(4096, PROT_READ), *hole = pages(8192, PROT_READ | PROT_WRITE);
	struct nvfs_ioctl_map again;
	int ret;

	if (mprotect(hole, 4096, PROT_NONE))
		t_die("mprotect: %s", strerror(errno));
	MAP("1 MiB", 0, (void)0);
	MAP("as the library's cache", 0, m.is_bounce_buffer = 1);
	MAP("size 0", -EINVAL, m.size = 0);
	MAP("size -1", -EINVAL, m.size = -1);
	MAP("size 2^63 - 1", ANY_ERROR, m.size = INT64_MAX);
	MAP("GPU address 0", -EINVAL, m.gpuvaddr = 0);
	MAP("GPU range wraps", ANY_ERROR, m.gpuvaddr = -65536ULL);
	MAP("GPU address is host memory", ANY_ERROR, m.gpuvaddr = (uintptr_t)hole + 4096);
	MAP("range past the allocation", ANY_ERROR, m.size = 1L << 40);
	MAP("address inside the mapping", -EINVAL, m.cpuvaddr += 4096);
	MAP("address of other memory", -EINVAL, m.cpuvaddr = (uintptr_t)hole + 4096);
	MAP("address 0", -EINVAL, m.cpuvaddr = 0);
	MAP("0 blocks", -EINVAL, m.sbuf_block = 0);
	MAP("one block more than the mapping", -EINVAL, m.sbuf_block++);
	MAP("2^32 - 1 blocks", -EINVAL, m.sbuf_block = UINT32_MAX);
	MAP("fence 0", -EINVAL, m.end_fence_addr = 0);
	MAP("fence unaligned", -EINVAL, m.end_fence_addr += 8);
	MAP("fence without access", ANY_ERROR, m.end_fence_addr = (uintptr_t)hole);
	MAP("fence read-only", ANY_ERROR, m.end_fence_addr = (uintptr_t)read_only);
	MAP("fence in kernel space", ANY_ERROR, m.end_fence_addr = 0xffff888000000000ULL);

	good_map(&again, ready.cpu, ready.fence);
	ret = ioctl(nv.fd[0], NVFS_IOCTL_MAP, &again);
	verdict("MAP: a second time", ret, errno, (long)again.end_fence_addr, -EBUSY);
	munmap(read_only, 4096);
	munmap(hole, 8192);
}

/* -- the rest: numbers, pointers, and how much is copied -- */

static void errno_row(const char *name, unsigned long nr, void *arg, int want)
{
	int ret = ioctl(nv.fd[0], nr, arg), err = ret ? errno : 0;
	bool ok = err == want;

	printf("%s %s", ok ? "ok " : "BAD", name);
	if (!ok) {
		printf(": errno %s, wanted %s", nvfs_errname(err), nvfs_errname(want));
		bad = 1;
	}
	putchar('\n');
}

static void other_rows(void)
{
	char *edge = pages(8192, PROT_READ | PROT_WRITE);
	struct nvfs_ioctl_ioargs a;
	struct nvfs_ioctl_map m;
	struct nvfs_ioctl_batch b = { .nents = 0 };
	void *cpu;

	if (mprotect(edge + 4096, 4096, PROT_NONE))
		t_die("mprotect: %s", strerror(errno));
	errno_row("REMOVE", NVFS_IOCTL_REMOVE, NULL, 0);
	errno_row("number 0", NVFS_IOCTL(0), &a, ENOTTY);
	errno_row("number 9", NVFS_IOCTL(9), &a, ENOTTY);
	errno_row("number 255", NVFS_IOCTL(255), &a, ENOTTY);
	errno_row("another driver's magic", _IOW('u', 2, int), &a, ENOTTY);
	errno_row("READ, address 0", NVFS_IOCTL_READ, NULL, EFAULT);
	errno_row("MAP, address 0", NVFS_IOCTL_MAP, NULL, EFAULT);
	errno_row("MAP, kernel address", NVFS_IOCTL_MAP, (void *)0xffff888000000000UL, EFAULT);
	errno_row("READ, cut off by a hole", NVFS_IOCTL_READ, edge + 4096 - 72, EFAULT);
	errno_row("BATCH_IO without entries", NVFS_IOCTL_BATCH_IO, &b, EINVAL);

	/* only the command's own structure is read: nothing behind it need be there */
	good_io(&a);
	memcpy(edge + 4096 - sizeof(a), &a, sizeof(a));
	errno_row("READ at the end of a page", NVFS_IOCTL_READ, edge + 4096 - sizeof(a), 0);
	cpu = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, nv.fd[0], 0);
	good_map(&m, cpu, ready.fence);
	memcpy(edge + 4096 - sizeof(m), &m, sizeof(m));
	errno_row("MAP at the end of a page", NVFS_IOCTL_MAP, edge + 4096 - sizeof(m), 0);
	munmap(cpu, SIZE);
	munmap(edge, 8192);
}

int main(int argc, char **argv)
{
	char dir[512];

	if (argc != 3 || strcmp(argv[1], "--file")) {
		fputs("usage: nvfs_abi --file F\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	t_file_make(argv[2], FILE_SIZE, 3);
	snprintf(dir, sizeof(dir), "%s", argv[2]);
	*strrchr(dir, '/') = '\0';
	fd = t_open(argv[2], O_RDWR | O_DIRECT);
	fd_ro = t_open(argv[2], O_RDONLY | O_DIRECT);
	fd_wo = t_open(argv[2], O_WRONLY | O_DIRECT);
	fd_buffered = t_open(argv[2], O_RDWR);
	fd_append = t_open(argv[2], O_RDWR | O_DIRECT | O_APPEND);
	fd_dir = t_open(dir, O_RDONLY | O_DIRECTORY);
	gpu = t_gpu_alloc(SIZE);
	if (nvfs_map(&nv, &ready, gpu, SIZE, SIZE, dev.pdevinfo))
		t_die("%s", nvfs_error());
	unmapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, nv.fd[0], 0);
	if (unmapped == MAP_FAILED)
		t_die("mmap of the node: %s", strerror(errno));

	io_rows();
	map_rows();
	other_rows();

	munmap(unmapped, SIZE);
	nvfs_unmap(&ready);
	t_gpu_free(gpu);
	nvfs_close(&nv);
	return bad;
}
