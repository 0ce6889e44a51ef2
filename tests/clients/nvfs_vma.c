// SPDX-License-Identifier: MIT
/*
 * nvfs_vma.c - what a process can do to its mapping of a node, and what must come of it.
 *
 *   nvfs_vma --file F
 *
 * Each case ends with a whole request on the mapping: after a refused call it must still
 * work, and after an allowed one (MADV_DONTNEED, a touch) as well.
 */
#define K 1024UL
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define SIZE (1024 * K)

static struct nvfs nv;
static struct t_gpu dev;
static int fd, bad;

static void verdict(const char *name, bool ok, const char *fmt, long a, long b)
{
	printf("%s %s", ok ? "ok " : "BAD", name);
	if (!ok) {
		printf(": ");
		printf(fmt, a, b);
		bad = 1;
	}
	putchar('\n');
}

/* -- mmap itself: length, offset, protection, sharing -- */

static void mmap_case(const char *name, size_t len, int prot, int flags, off_t off, int want)
{
	void *p = mmap(NULL, len, prot, flags, nv.fd[0], off);
	int got = p == MAP_FAILED ? errno : 0;

	verdict(name, got == want, "errno %ld, wanted %ld", got, want);
	if (p != MAP_FAILED)
		munmap(p, len);
}

static void mmap_cases(void)
{
	const int rw = PROT_READ | PROT_WRITE;

	mmap_case("mmap 4K", 4 * K, rw, MAP_SHARED, 0, 0);
	mmap_case("mmap 60K", 60 * K, rw, MAP_SHARED, 0, 0);
	mmap_case("mmap 64K", 64 * K, rw, MAP_SHARED, 0, 0);
	mmap_case("mmap 16M", 16384 * K, rw, MAP_SHARED, 0, 0);
	mmap_case("mmap 68K", 68 * K, rw, MAP_SHARED, 0, EINVAL);
	mmap_case("mmap 16M+64K", 16448 * K, rw, MAP_SHARED, 0, EINVAL);
	mmap_case("mmap at offset 4K", 64 * K, rw, MAP_SHARED, 4096, EIO);
	mmap_case("mmap private", 64 * K, rw, MAP_PRIVATE, 0, EINVAL);
	mmap_case("mmap read-only", 64 * K, PROT_READ, MAP_SHARED, 0, EINVAL);
	mmap_case("mmap write-only", 64 * K, PROT_WRITE, MAP_SHARED, 0, EINVAL);
	mmap_case("mmap executable", 64 * K, rw | PROT_EXEC, MAP_SHARED, 0, EINVAL);
}

/* -- calls on a mapping that is in use -- */

static int partial_munmap(char *p)
{
	return munmap(p + 64 * K, 64 * K);
}

static int partial_mprotect(char *p)
{
	return mprotect(p, 64 * K, PROT_READ);
}

static int make_executable(char *p)
{
	return mprotect(p, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static int move_away(char *p)
{
	void *to = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED)
		return 0;
	err = errno;
	munmap(to, SIZE);
	errno = err;
	return -1;
}

static int grow(char *p)
{
	return mremap(p, SIZE, 2 * SIZE, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0;
}

static int shrink(char *p)
{
	return mremap(p, SIZE, SIZE / 2, 0) == MAP_FAILED ? -1 : 0;
}

static int duplicate(char *p)
{
	return mremap(p, 0, SIZE, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0;
}

static int dont_need(char *p)
{
	int r = madvise(p, SIZE, MADV_DONTNEED);

	((volatile char *)p)[SIZE / 2] = 1;
	return r;
}

static int touch(char *p)
{
	memset(p, 0x5a, SIZE);
	return 0;
}

static int fork_child(char *p)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* the child has no such mapping: a touch must kill it, nothing worse */
		((volatile char *)p)[0] = 1;
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : -1;
}

static int fork_with_dofork(char *p)
{
	int status;
	pid_t pid;

	if (madvise(p, SIZE, MADV_DOFORK))
		return errno == EINVAL ? 0 : -1;
	pid = fork();
	if (!pid) {
		((volatile char *)p)[0] = 1;
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return 0;
}

struct call {
	const char *name;
	int (*make)(char *p);
	int want;		/* errno, 0: must succeed, -1: either way */
};

static const struct call calls[] = {
	{ "munmap of a part", partial_munmap, ENOMEM },
	{ "mprotect of a part", partial_mprotect, ENOMEM },
	{ "mprotect to executable", make_executable, EACCES },
	{ "mremap to another place", move_away, ENOMEM },
	{ "mremap to grow", grow, -1 },
	{ "mremap to shrink", shrink, ENOMEM },
	{ "mremap to duplicate", duplicate, -1 },
	{ "MADV_DONTNEED and a touch", dont_need, 0 },
	{ "stores into the mapping", touch, 0 },
	{ "fork: the child has no mapping", fork_child, 0 },
	{ "fork after MADV_DOFORK", fork_with_dofork, 0 },
};

static void call_case(const struct call *c)
{
	char *buf = malloc(SIZE), why[160];
	struct nvfs_map map;
	CUdeviceptr gpu;
	ssize_t n;
	int r, err;

	if (!buf)
		t_die("out of memory");
	gpu = t_gpu_alloc(SIZE);
	if (nvfs_map(&nv, &map, gpu, SIZE, SIZE, dev.pdevinfo))
		t_die("%s", nvfs_error());
	r = c->make(map.cpu);
	err = r ? errno : 0;
	verdict(c->name, c->want == -1 || err == c->want, "errno %ld, wanted %ld", err, c->want);

	n = nvfs_read(&map, fd, SIZE, 0, 0);
	t_gpu_get(buf, gpu, SIZE);
	/* a call that went through may have taken the mapping away; then it must say so */
	if (n != (ssize_t)SIZE && (err || c->want == 0))
		printf("BAD %s: the mapping then fails: %s\n", c->name, nvfs_error()), bad = 1;
	else if (n == (ssize_t)SIZE && t_pattern_check(buf, SIZE, 5, 0, why, sizeof(why)))
		printf("BAD %s: wrong data then: %s\n", c->name, why), bad = 1;
	nvfs_unmap(&map);
	t_gpu_free(gpu);
	free(buf);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 3 || strcmp(argv[1], "--file")) {
		fputs("usage: nvfs_vma --file F\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	t_file_make(argv[2], SIZE, 5);
	fd = t_open(argv[2], O_RDWR | O_DIRECT);
	mmap_cases();
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		call_case(&calls[i]);
	nvfs_close(&nv);
	return bad;
}
