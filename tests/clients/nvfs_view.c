// SPDX-License-Identifier: MIT
/*
 * nvfs_view.c - the P2PDMA pages of a mapping in a process, rule by rule.
 *
 *   nvfs_view --dir D [--refused WORD]
 *
 * D: on a file system of a drive. --refused: there are no pages, and the reason has that word.
 * Prints "ok RULE" or "BAD RULE: ...".
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_row.h"

#define K 1024UL
#define M (K * K)
#define SIZE (4 * M)		/* two units of pages at least */
#define SKIP (12 * K)		/* of the buffer in its first GPU page */
#define SEED 51

static struct nvfs nv;
static struct t_gpu dev;
static struct nvfs_map map;
static struct nvfs_ogds_pages view;
static CUdeviceptr gpu;
static char *pages, *buf;	/* the buffer in the process; scratch of SIZE */
static unsigned char *seen;
static int fd;			/* O_DIRECT, SIZE bytes of the pattern */

/* 0 or the errno */
static int call(struct nvfs_ogds_pages *p)
{
	return ioctl(nv.fd[0], NVFS_IOCTL_OGDS_PAGES, p) ? errno : 0;
}

/* how many of n blocks from the buffer's start on have just these sectors noted */
static size_t noted(size_t n, unsigned char sectors)
{
	size_t i, found = 0;

	for (i = 0; i < n; i++)
		found += seen[i] == sectors;
	return found;
}

/* The buffer holds the pattern from block `first` on, as another process would see it. */
static bool holds(size_t len, uint64_t first, char *why)
{
	t_gpu_get(buf, gpu, len);
	return !t_pattern_check(buf, len, SEED, first, why, 160);
}

/* a memset does not wait for itself */
static void poison(void)
{
	if (cuMemsetD8(gpu, 0xee, SIZE) || cuCtxSynchronize())
		t_die("cuMemsetD8 failed");
}

static void map_it(void)
{
	if (nvfs_map(&nv, &map, gpu, SIZE, 0, dev.pdevinfo))
		t_die("%s", nvfs_error());
}

static void open_it(void)
{
	if (nvfs_pages(&map, &view))
		t_die("%s", nvfs_error());
	pages = (char *)(uintptr_t)view.pages + view.offset;
	seen = (unsigned char *)(uintptr_t)view.seen + view.offset / T_BLOCK;
}

/* -- the call -- */

static void arguments(void)
{
	struct nvfs_ogds_pages p = { .cpuvaddr = (uintptr_t)map.cpu, .reserved = 1 };
	int r, status;
	pid_t pid;

	t_row(call(&p) == EINVAL, "a reserved word that is set", "errno %d", errno);
	p = (struct nvfs_ogds_pages){ .cpuvaddr = (uintptr_t)map.cpu + 4096 };
	t_row(call(&p) == EINVAL, "no mapping", "errno %d", errno);
	t_row(call(NULL) == EFAULT, "address 0", "errno %d", errno);
	pid = fork();
	if (!pid) {
		p.cpuvaddr = (uintptr_t)map.cpu;
		_exit(call(&p));
	}
	waitpid(pid, &status, 0);
	t_row(WIFEXITED(status) && WEXITSTATUS(status) == EINVAL, "another process's mapping",
	      "status 0x%x", status);
	p = (struct nvfs_ogds_pages){ .cpuvaddr = (uintptr_t)mmap(NULL, 64 * K,
		PROT_READ | PROT_WRITE, MAP_SHARED, nv.fd[0], 0) };
	r = call(&p);
	t_row(r == EINVAL, "before MAP", "errno %d", r);
	munmap((void *)(uintptr_t)p.cpuvaddr, 64 * K);
}

static void what_it_gives(void)
{
	struct nvfs_ogds_pages again;

	t_row(view.offset == SKIP && view.size == SIZE + 64 * K && !(view.pages % 4096) &&
	      view.seen_size >= view.size / T_BLOCK, "what it gives", "%u, %llu, %llu",
	      view.offset, (unsigned long long)view.size, (unsigned long long)view.seen_size);
	t_row(nvfs_pages(&map, &again) == -EBUSY, "a second time", "%s", nvfs_error());
}

/* -- bytes -- */

static void by_the_drive(void)
{
	static const size_t size[] = { 4 * K, 64 * K, M, SIZE };
	char name[64], why[160] = "";
	ssize_t n;
	size_t i;

	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		poison();
		memset(seen, 0, SIZE / T_BLOCK);
		n = pread(fd, pages, size[i], 0);
		snprintf(name, sizeof(name), "pread of %zu KiB by the drive", size[i] / K);
		t_row(n == (ssize_t)size[i] && holds(size[i], 0, why) &&
		      noted(SIZE / T_BLOCK, 0xff) == size[i] / T_BLOCK &&
		      noted(SIZE / T_BLOCK, 0) == (SIZE - size[i]) / T_BLOCK, name,
		      "%zd, %zu blocks noted, %s", n, noted(SIZE / T_BLOCK, 0xff), why);
	}
	memset(seen, 0, SIZE / T_BLOCK);
	t_pattern_fill(buf, M, SEED, 1000);
	t_gpu_put(gpu, buf, M);
	n = pwrite(fd, pages, M, M);
	poison();
	t_row(n == M && noted(M / T_BLOCK, 0xff) == M / T_BLOCK, "pwrite by the drive",
	      "%zd, %zu blocks noted", n, noted(M / T_BLOCK, 0xff));
	n = pread(fd, pages, M, M);
	t_row(n == M && holds(M, 1000, why), "... and the file has it", "%zd %s", n, why);
}

static void vectors(void)
{
	static struct iovec iov[256];
	char why[160] = "";
	size_t i;
	ssize_t n;

	for (i = 0; i < 256; i++)
		iov[i] = (struct iovec){ pages + (255 - i) * 8 * K, 4 * K };
	memset(seen, 0, SIZE / T_BLOCK);
	n = preadv(fd, iov, 256, 2 * M);
	t_gpu_get(buf, gpu, SIZE);
	for (i = 0; n == M && i < 256; i++)
		if (t_pattern_check(buf + (255 - i) * 8 * K, 4 * K, SEED, 512 + i, why,
				    sizeof(why)))
			n = -1;
	t_row(n == M && noted(SIZE / T_BLOCK, 0xff) == 256, "preadv of 256 pieces", "%zd %s", n, why);
	/* both kinds in one call: in one command all may be taken for those of the first */
	iov[0] = (struct iovec){ buf, 64 * K };
	iov[1] = (struct iovec){ pages, 64 * K };
	iov[2] = (struct iovec){ buf + 64 * K, 64 * K };
	memset(buf, 0, 128 * K);
	memset(seen, 0, SIZE / T_BLOCK);
	n = preadv(fd, iov, 3, 2 * M);
	t_row(n == 192 * (ssize_t)K && !t_pattern_check(buf, 64 * K, SEED, 512, why, sizeof(why)) &&
	      !t_pattern_check(buf + 64 * K, 64 * K, SEED, 544, why, sizeof(why)) &&
	      noted(16, 0xff) + noted(16, 0) == 16, "host memory and pages in one call", "%zd %s", n, why);
}

static void by_a_cpu(const char *dir)
{
	char path[256], why[160] = "";
	int cached, hole;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/view.dat", dir);
	cached = t_open(path, O_RDWR);
	memset(seen, 0, SIZE / T_BLOCK);
	poison();
	n = pread(cached, pages, 64 * K, 2 * M);
	t_row(n == 64 * K && holds(64 * K, 512, why) && noted(SIZE / T_BLOCK, 0) == SIZE / T_BLOCK,
	      "a read through the page cache is not noted", "%zd, %zu blocks noted, %s", n,
	      noted(SIZE / T_BLOCK, 0xff), why);
	close(cached);

	snprintf(path, sizeof(path), "%s/hole.dat", dir);
	hole = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	if (hole < 0 || ftruncate(hole, M))
		t_die("%s: %s", path, strerror(errno));
	pwrite(hole, pages, 16 * K, 32 * K);
	memset(seen, 0, SIZE / T_BLOCK);
	poison();
	n = pread(hole, pages, 64 * K, 0);
	t_gpu_get(buf, gpu, 64 * K);
	t_row(n == 64 * K && !buf[0] && !memcmp(buf, buf + 1, 32 * K - 1) && noted(16, 0) == 12 &&
	      noted(16, 0xff) == 4, "a hole is not noted, what is around it is", "%zd, %zu and %zu",
	      n, noted(16, 0), noted(16, 0xff));
	close(hole);

	t_pattern_fill(buf, 64 * K, SEED, 7);
	memcpy(pages, buf, 64 * K);
	(void)*(volatile char *)pages;
	t_row(holds(64 * K, 7, why), "stores of the CPU", "%s", why);
	t_row(!memcmp(pages, buf, 64 * K), "loads of the CPU", "other bytes");
}

/* -- what a process may do with the range -- */

static int die_touching(const char *at)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		(void)*(volatile const char *)at;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* mremap gives what mmap gives, and has no like in the table below */
static int moved(void *at, size_t to, int flags)
{
	return mremap(at, view.size, to, flags) == MAP_FAILED ? errno : 0;
}

static void ranges(void)
{
	char *start = (char *)(uintptr_t)view.pages, why[160] = "";
	int r;

	t_row(munmap(start + 64 * K, 64 * K) && errno == ENOMEM, "munmap of a part", "%d", errno);
	t_row(mprotect(start, 64 * K, PROT_READ) && errno == ENOMEM, "mprotect of a part", "%d",
	      errno);
	t_row(mprotect(start, view.size, PROT_READ | PROT_EXEC) && errno == EACCES,
	      "mprotect to executable", "%d", errno);
	r = moved(start, view.size * 2, MREMAP_MAYMOVE);
	t_row(r, "mremap to grow", "it grew");
	r = moved(start, 64 * K, 0);
	t_row(r == ENOMEM, "mremap to shrink", "%d", r);
	/* read-only: a drive may read the memory, not write it */
	t_row(!mprotect(start, view.size, PROT_READ) && pread(fd, pages, 4 * K, 0) < 0 &&
	      errno == EFAULT && pwrite(fd, pages, 4 * K, 0) == 4 * K, "all of it read-only", "%d",
	      errno);
	t_row(!mprotect(start, view.size, PROT_READ | PROT_WRITE) &&
	      pread(fd, pages, SIZE, 0) == SIZE, "... and back", "%d", errno);
	t_row(!madvise(start, view.size, MADV_DONTNEED) &&
	      pread(fd, pages, 4 * K, 2 * M) == 4 * K && holds(4 * K, 512, why), "MADV_DONTNEED", "%d %s", errno, why);
	t_row(die_touching(pages) == SIGSEGV, "a child does not have it", "it touched");
	if (!madvise(start, view.size, MADV_DOFORK))
		t_row(die_touching(pages + M) != SIGKILL, "a child that was given it", "killed");
	t_row(pread(fd, pages, SIZE, 0) == SIZE, "it works after all this", "%d", errno);
}

/* The place of a view in the node is no secret: it is another process's all the same. */
static int guess(void)
{
	size_t len[] = { view.size, view.seen_size };
	unsigned long id, i;

	for (id = 1; id <= 64; id++)
		for (i = 0; i < 2; i++)
			if (mmap(NULL, len[i], PROT_READ | PROT_WRITE, MAP_SHARED, nv.fd[0],
				 (off_t)(id << 32 | i << 31) << 12) != MAP_FAILED || errno != EIO)
				return 1;
	return 0;
}

static void another_process(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(guess());
	waitpid(pid, &status, 0);
	t_row(WIFEXITED(status) && !WEXITSTATUS(status), "another process guesses its place",
	      "status 0x%x", status);
}

/* No long-term pin, no pipe, no other process gets such a page. */
static void others(void)
{
	struct iovec here = { buf, 4 * K }, there = { pages, 4 * K };
	int pipefd[2], r;

	if (pipe(pipefd))
		t_die("pipe: %s", strerror(errno));
	r = vmsplice(pipefd[1], &there, 1, 0) < 0 ? errno : 0;
	t_row(r, "vmsplice into a pipe is refused", "it went");
	r = process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 ? errno : 0;
	t_row(r, "process_vm_readv is refused", "it went");
	close(pipefd[0]);
	close(pipefd[1]);
}

/* -- its end -- */

static void unmap_and_again(void)
{
	nvfs_pages_unmap(&view);
	open_it();
	t_row(pread(fd, pages, SIZE, 0) == SIZE && noted(SIZE / T_BLOCK, 0xff) == SIZE / T_BLOCK,
	      "unmapped and mapped again", "%d", errno);
}

static void ends(void)
{
	struct nvfs_ogds_unmap u = { .cpuvaddr = (uintptr_t)map.cpu };
	struct nvfs_ogds_pages p;

	t_row(!ioctl(nv.fd[0], NVFS_IOCTL_OGDS_UNMAP, &u), "UNMAP with the pages mapped", "%d",
	      errno);
	t_row(pread(fd, pages, 4 * K, 0) < 0 && errno == EFAULT, "then a request: EFAULT", "%d", errno);
	memset(seen, 0, 4);
	t_row(die_touching(pages) == SIGSEGV && die_touching((char *)seen) == SIGSEGV,
	      "a child has neither range", "it touched");
	nvfs_unmap(&map);
	nvfs_pages_unmap(&view);

	map_it();
	open_it();
	t_row(pread(fd, pages, SIZE, 0) == SIZE, "a new mapping", "%d", errno);
	nvfs_unmap(&map);
	ioctl(nv.fd[0], NVFS_IOCTL_REMOVE, NULL);	/* what was unmapped before is gone then */
	t_row(pread(fd, pages, 4 * K, 0) < 0 && errno == EFAULT, "munmap: EFAULT", "%d", errno);
	p = (struct nvfs_ogds_pages){ .cpuvaddr = (uintptr_t)map.cpu };
	t_row(call(&p) == EINVAL, "... and no pages any more", "%d", errno);
	nvfs_pages_unmap(&view);
}

static void refused(const char *word)
{
	int r = nvfs_pages(&map, &view);

	t_row((r == -EOPNOTSUPP || r == -ENODEV) && strstr(view.reason, word) && !view.pages &&
	      !view.seen,
	      "no pages, and the reason", "%d: %s", r, view.reason);
	t_row(mmap(NULL, view.size ?: SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, nv.fd[0],
		   1L << 44) == MAP_FAILED && errno == EIO, "a guessed place in the node", "%d",
	      errno);
}

int main(int argc, char **argv)
{
	char path[256];

	if ((argc != 3 && argc != 5) || strcmp(argv[1], "--dir") ||
	    (argc == 5 && strcmp(argv[3], "--refused"))) {
		fputs("usage: nvfs_view --dir D [--refused WORD]\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	snprintf(path, sizeof(path), "%s/view.dat", argv[2]);
	t_file_make(path, SIZE, SEED);
	fd = t_open(path, O_RDWR | O_DIRECT);
	gpu = t_gpu_alloc(SIZE + 64 * K) + SKIP;
	if (posix_memalign((void **)&buf, 4096, SIZE))
		t_die("no memory");
	map_it();
	if (argc == 5) {
		refused(argv[4]);
		nvfs_close(&nv);
		return t_rows_bad();
	}
	arguments();
	open_it();
	what_it_gives();
	by_the_drive();
	vectors();
	by_a_cpu(argv[2]);
	ranges();
	others();
	another_process();
	unmap_and_again();
	ends();
	nvfs_close(&nv);
	return t_rows_bad();
}
