/* SPDX-License-Identifier: MIT */
/*
 * file.h - registered files: the object behind CUfileHandle_t.
 *
 * The library keeps up to two descriptors of its own on each file, one with O_DIRECT and
 * one without, opened anew so that the caller's flags and offset are never touched and the
 * caller may close his. All members are final after registration but `refs`, `strict`,
 * `refused`, `said`, `stats_row` and `cache_tells` (atomics).
 */
#ifndef FILE_H
#define FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "cufile.h"
#include "facts.h"
#include "nvfs.h"
#include "opengds.h"

/* The kernel counts who uses a descriptor: 16 threads at one go no faster than 4. */
#define FILE_MORE 7
#define FILE_MUCH 1000

struct user_fs;

struct file {
	atomic_uint refs;
	struct user_fs *user;	/* of a user-space file system: there are no descriptors */
	int user_fd;		/* the caller's number: for messages and for 5028; or -1 */
	int flags;		/* O_ flags of the caller's descriptor */
	int fd_direct;		/* ours, with O_DIRECT; -1: the file has none */
	int fd_cached;		/* ours, without; -1: only the one above could be had */
	/* more like that, for threads that read it much: fd + 1; 0: not opened, -1: cannot be */
	atomic_int fd_more[FILE_MORE];
	atomic_uint reads;	/* small ones from the page cache, up to FILE_MUCH */
	struct stat st;		/* as registered */
	struct nvfs_file nvfs;
	char name[FACTS_PATH];	/* path, or "fd 7" */
	unsigned int reason;	/* why it does not go direct (facts) */
	unsigned int pages_reason; /* the same for requests on GPU pages in the process */
	bool may_ring;		/* io_uring is right for it, see file_facts.h */
	atomic_bool strict;
	atomic_uint refused;	/* a reason learnt from a request, or 0 */
	_Atomic uint64_t said;	/* bit n: reason n stands in the log */
	atomic_uint stats_row;	/* its row in the statistics + 1; 0: none yet */
	atomic_uint cache_tells; /* file_io.c: whether the kernel tells what of it is cached */
	pthread_mutex_t sum_lock;
	struct ogds_report sum;	/* of batch and stream requests, see ogds_handle_io(); sum_lock */
};

/* The file of a handle, referenced; NULL: no such handle. */
struct file *file_get(CUfileHandle_t fh);
void file_put(struct file *f);

/* The same for one call of one thread, cheaper when many threads use one file. */
struct file *file_borrow(CUfileHandle_t fh);
void file_return(struct file *f);

/*
 * Current size in bytes, or -errno. A user-space file system tells where a file ends by what it
 * reads: the size of its files is INT64_MAX.
 */
int64_t file_size(const struct file *f);

/*
 * pread and pwrite of a piece, whatever its alignment, until all of it is moved or (reads)
 * the file ends: bytes or -errno. The caller's O_DIRECT is kept where alignment allows. Without
 * it, what the page cache does not hold is read by our own O_DIRECT descriptor, if it is a piece
 * of a large `request` (bytes).
 */
ssize_t file_pread(struct file *f, void *buf, size_t size, off_t off, uint64_t request);
ssize_t file_pwrite(const struct file *f, const void *buf, size_t size, off_t off);

/* The same from the page cache, for small reads of many threads at once. */
ssize_t file_pread_much(struct file *f, void *buf, size_t size, off_t off);

/* file_pread of this range into memory aligned to 4 KiB is a drive's own transfer. */
bool file_direct(const struct file *f, size_t size, off_t off);

/*
 * A request of some size that is a drive's to do: O_DIRECT is wanted, or (reads) what it begins with is not
 * in the page cache. Then fd_direct is there. May cost a system call.
 */
bool file_by_drive(struct file *f, bool read, size_t size, off_t off);
/* The same of a piece of it. */
bool file_piece_by_drive(struct file *f, size_t size, off_t off);

/* O_DIRECT where alignment allows: the caller's flag decides, or force_odirect_mode. */
bool file_prefers_direct(const struct file *f);

/* The device that it lies on: of its file system, or itself. */
static inline dev_t file_device(const struct file *f)
{
	return S_ISBLK(f->st.st_mode) ? f->st.st_rdev : f->st.st_dev;
}

/* True the first time for this file and reason: the caller says it. */
bool file_say_once(struct file *f, unsigned int reason);

/* At close, nobody inside. */
void files_release(void);

#endif /* FILE_H */
