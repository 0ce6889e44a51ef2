// SPDX-License-Identifier: MIT
/* os.c - the system calls, as they are. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os.h"
#include "os_ring.h"

/* The caller's programs may have closed 0, 1 or 2: no file of ours may become stdin. */
int os_above_stdio(int fd)
{
	int up, err;

	if (fd < 0 || fd > 2)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	err = errno;
	close(fd);
	errno = err;
	return up;
}

static int real_open(const char *path, int flags)
{
	int fd;

	do {
		fd = open(path, flags | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	fd = os_above_stdio(fd);
	return fd < 0 ? -errno : fd;
}

static int real_close(int fd)
{
	return close(fd) ? -errno : 0;
}

static int real_dup(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return up < 0 ? -errno : up;
}

static int real_getfl(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -errno : flags;
}

static int real_fstat(int fd, struct stat *st)
{
	return fstat(fd, st) ? -errno : 0;
}

static int real_statx(int fd, struct statx *st)
{
	unsigned int mask = STATX_BASIC_STATS;

#ifdef STATX_DIOALIGN
	mask |= STATX_DIOALIGN;
#endif
	return statx(fd, "", AT_EMPTY_PATH, mask, st) ? -errno : 0;
}

static int64_t real_size(int fd, const struct stat *st)
{
	uint64_t bytes;

	if (!S_ISBLK(st->st_mode))
		return st->st_size;
	return ioctl(fd, BLKGETSIZE64, &bytes) ? -errno : (int64_t)bytes;
}

/* SEEK_HOLE finds the end of the file when there is none before: that is no hole. */
static int real_hole(int fd, off_t off, size_t size)
{
	off_t at = lseek(fd, off, SEEK_HOLE);
	struct stat st;

	if (at < 0 || fstat(fd, &st))
		return -errno;
	return at < off + (off_t)size && at < st.st_size;
}

static int64_t real_mount_id(int fd)
{
#ifdef STATX_MNT_ID
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st))
		return -errno;
	if (st.stx_mask & STATX_MNT_ID)
		return st.stx_mnt_id;
#endif
	return -ENOSYS;
}

static int real_fileattr(int fd, unsigned int *flags)
{
	int value;

	if (ioctl(fd, FS_IOC_GETFLAGS, &value))
		return -errno;
	*flags = value;
	return 0;
}

static ssize_t real_pread(int fd, void *buf, size_t size, off_t off)
{
	ssize_t n;

	do {
		n = pread(fd, buf, size, off);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t real_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	ssize_t n;

	do {
		n = pwrite(fd, buf, size, off);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

#ifndef SYS_cachestat
#define SYS_cachestat 451	/* of every architecture, since 6.5 */
#endif

static int64_t real_cached(int fd, off_t off, size_t size)
{
	struct {
		uint64_t off, len;
	} range = { off, size };
	struct {
		uint64_t cache, dirty, writeback, evicted, recently_evicted; /* pages */
	} got = { 0 };

	if (syscall(SYS_cachestat, fd, &range, &got, 0))
		return -errno;
	return (int64_t)got.cache * sysconf(_SC_PAGESIZE);
}

static int real_ioctl(int fd, unsigned long nr, void *arg)
{
	int r = ioctl(fd, nr, arg);

	return r < 0 ? -errno : r;
}

static void *real_mmap_node(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void *real_mmap_page(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

#define LARGE ((size_t)2 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23	/* since 5.14 */
#endif

static void *real_mmap_large(size_t size)
{
	char *p, *at;
	size_t i;

	if (!size || size % LARGE)
		return NULL;
	p = mmap(NULL, size + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)p + LARGE - 1) / LARGE * LARGE);
	if (at > p)
		munmap(p, at - p);
	munmap(at + size, p + LARGE - at);
	madvise(at, size, MADV_HUGEPAGE);
	madvise(at, size, MADV_DONTFORK);
	if (madvise(at, size, MADV_POPULATE_WRITE))
		for (i = 0; i < size; i += 4096)
			((volatile char *)at)[i] = 0;
	return at;
}

static int real_munmap(void *at, size_t size)
{
	return munmap(at, size) ? -errno : 0;
}

#define NODES (sizeof(((struct os_policy *)0)->nodes) * 8)
#define MPOL_PREFERRED 1

static bool real_memory_near(int node, struct os_policy *was)
{
	unsigned long nodes[NODES / 8 / sizeof(unsigned long)] = { 0 };
	const size_t bits = 8 * sizeof(nodes[0]);

	if (node < 0 || (size_t)node >= NODES)
		return false;
	memset(was, 0, sizeof(*was));
	if (syscall(SYS_get_mempolicy, &was->mode, was->nodes, NODES, NULL, 0))
		return false;
	nodes[node / bits] = 1ul << node % bits;
	/* the kernel takes one bit less than it is told */
	return !syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, NODES);
}

static void real_memory_back(const struct os_policy *was)
{
	syscall(SYS_set_mempolicy, was->mode, was->nodes, NODES);
}

static uint64_t real_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int real_thread(pthread_t *t, void *(*run)(void *arg), void *arg)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(t, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

static void real_sleep_on(atomic_uint *word, unsigned int seen)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void real_wake(atomic_uint *word, unsigned int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static uint64_t real_mount_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/mnt", &st) ? 0 : st.st_ino;
}

static bool real_mounts_changed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };

	/* the kernel reports a change as POLLERR too, which needs no asking */
	return poll(&p, 1, 0) != 0;
}

const struct os_ops os_real = {
	.open = real_open,
	.close = real_close,
	.dup = real_dup,
	.getfl = real_getfl,
	.fstat = real_fstat,
	.statx = real_statx,
	.size = real_size,
	.fileattr = real_fileattr,
	.hole = real_hole,
	.pread = real_pread,
	.pwrite = real_pwrite,
	.cached = real_cached,
	.ring_new = os_ring_new,
	.ring_free = os_ring_free,
	.ring_begin = os_ring_begin,
	.ring_add = os_ring_add,
	.ring_go = os_ring_go,
	.ring_next = os_ring_next,
	.ring_broken = os_ring_broken,
	.ioctl = real_ioctl,
	.mmap_node = real_mmap_node,
	.mmap_page = real_mmap_page,
	.mmap_large = real_mmap_large,
	.munmap = real_munmap,
	.memory_near = real_memory_near,
	.memory_back = real_memory_back,
	.now_ns = real_now_ns,
	.thread = real_thread,
	.sleep_on = real_sleep_on,
	.wake = real_wake,
	.mount_id = real_mount_id,
	.mount_ns = real_mount_ns,
	.mounts_changed = real_mounts_changed,
};

const struct os_ops *os = &os_real;
const char *os_root = "";
