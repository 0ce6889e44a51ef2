/* SPDX-License-Identifier: MIT */
/*
 * os.h - the system calls that the library makes: the seam that unit tests replace.
 *
 * Every call returns a result >= 0 or -errno, restarts after EINTR where nothing is lost by
 * that, and opens with O_CLOEXEC. Descriptors are never 0, 1 or 2.
 */
#ifndef OS_H
#define OS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Where the memory of a thread comes from. */
struct os_policy {
	int mode;
	unsigned long nodes[16];
};

/* A request of a file that goes on by itself; of an O_DIRECT descriptor, so in whole blocks. */
struct os_io {
	int fd;
	bool write;
	void *buf;
	size_t size;
	off_t off;
	void *tag;
};

struct os_ring;

struct os_ops {
	int (*open)(const char *path, int flags);
	int (*close)(int fd);
	int (*dup)(int fd);
	int (*getfl)(int fd);		/* the O_ flags of an open descriptor */
	int (*fstat)(int fd, struct stat *st);
	/* attributes and alignments: STATX_BASIC_STATS | STATX_DIOALIGN where known */
	int (*statx)(int fd, struct statx *st);
	int64_t (*size)(int fd, const struct stat *st);	/* of a file or block device */
	int (*fileattr)(int fd, unsigned int *flags);	/* FS_IOC_GETFLAGS */
	/* 1: part of these bytes is a hole inside the file, 0: none; moves the file's offset */
	int (*hole)(int fd, off_t off, size_t size);
	ssize_t (*pread)(int fd, void *buf, size_t size, off_t off);
	ssize_t (*pwrite)(int fd, const void *buf, size_t size, off_t off);
	/* bytes of these that the page cache holds, in whole pages; -ENOSYS: nobody can tell */
	int64_t (*cached)(int fd, off_t off, size_t size);
	/*
	 * io_uring: a ring has room for `depth` requests under way, is used by one thread at a
	 * time, and freed with none under way. 0 or -errno.
	 */
	int (*ring_new)(unsigned int depth, struct os_ring **out);
	void (*ring_free)(struct os_ring *r);
	/* 0: file and memory stay as they are until ring_next() tells; -errno: it is not begun. */
	int (*ring_begin)(struct os_ring *r, const struct os_io *io);
	/*
	 * Many in one system call: ring_add() notes one (-errno: it does not), ring_go() begins
	 * what was noted and waits as far as signals let. How many were begun: the first ones
	 * noted; the others never will be.
	 */
	int (*ring_add)(struct os_ring *r, const struct os_io *io);
	unsigned int (*ring_go)(struct os_ring *r);
	/* Waits until one that was begun is over: its tag, and a result as pread's. */
	void *(*ring_next)(struct os_ring *r, ssize_t *result);
	/* The kernel refused what stood in its queue: it begins nothing any more. */
	bool (*ring_broken)(const struct os_ring *r);
	int (*ioctl)(int fd, unsigned long nr, void *arg);
	/* shared, read and write; NULL and errno */
	void *(*mmap_node)(int fd, size_t size);
	/* private, zeroed, present; NULL and errno */
	void *(*mmap_page)(size_t size);
	/*
	 * Private, zeroed, present, and the processor's large pages where there are some; not in a
	 * child. NULL: `size` is not a multiple of 2 MiB, or there is no memory.
	 */
	void *(*mmap_large)(size_t size);
	int (*munmap)(void *at, size_t size);
	/*
	 * The memory that this thread makes the kernel allocate comes from this NUMA node, as
	 * far as there is some, until memory_back(). False: it may not be told; nothing changed.
	 */
	bool (*memory_near)(int node, struct os_policy *was);
	void (*memory_back)(const struct os_policy *was);
	uint64_t (*now_ns)(void);			/* monotonic */
	/* A thread, to be joined, with all signals blocked: they are the program's. */
	int (*thread)(pthread_t *t, void *(*run)(void *arg), void *arg);
	/*
	 * Sleeps while *word is `seen`; also wakes for no reason. wake: n of those that sleep. It
	 * does not look at *word, which may be gone by then.
	 */
	void (*sleep_on)(atomic_uint *word, unsigned int seen);
	void (*wake)(atomic_uint *word, unsigned int n);
	/* number of the mount that an open file was reached by, as in mountinfo */
	int64_t (*mount_id)(int fd);
	/* number of this process's mount namespace; 0: not known */
	uint64_t (*mount_ns)(void);
	/* fd: mountinfo. True: the table changed since it was opened, or nobody can tell. */
	bool (*mounts_changed)(int fd);
};

extern const struct os_ops os_real;

/* What the library calls; set before the first open, by tests only. */
extern const struct os_ops *os;

/* The tree that facts are read below; "" but in tests. */
extern const char *os_root;

#endif /* OS_H */
