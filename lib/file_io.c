// SPDX-License-Identifier: MIT
/* file_io.c - reading and writing a registered file by the CPU's way. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "file.h"
#include "os.h"
#include "shards.h"
#include "probes.h"
#include "user_fs.h"

#define BLOCK 4096
#define PATCH_BYTES (256 * 1024)
#define COLD_MIN ((uint64_t)1024 * 1024) /* smaller requests go through the page cache */
#define COLD_LOOK ((uint64_t)1024 * 1024) /* of a request's beginning; a piece is asked for itself */
#define COLD_PART 16	/* cold: less than a 16th is cached */

/*
 * A partial block of a file that can only be had with O_DIRECT is read, changed and
 * written back; two of our threads may not do that to one block at once. (Other processes
 * are as with any O_DIRECT writer.)
 */
static pthread_mutex_t patching = PTHREAD_MUTEX_INITIALIZER;

int64_t file_size(const struct file *f)
{
	struct stat st;
	int fd = f->fd_cached >= 0 ? f->fd_cached : f->fd_direct;
	int r;

	if (f->user)
		return INT64_MAX;
	r = os->fstat(fd, &st);
	return r ? r : os->size(fd, &st);
}

static bool aligned(const void *buf, size_t size, off_t off)
{
	return !(((uintptr_t)buf | size | (size_t)off) & (BLOCK - 1));
}

/* Reads until all is there or the file ends. */
static ssize_t pread_all(int fd, void *buf, size_t size, off_t off)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = os->pread(fd, (char *)buf + done, size - done, off + done);
		if (n < 0)
			return n;
		done += n;
		/* O_DIRECT at the end of the file: what is left is no whole block */
		if (!n || (done & (BLOCK - 1)))
			break;
	}
	return done;
}

static ssize_t pread_cached(int fd, void *buf, size_t size, off_t off)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = os->pread(fd, (char *)buf + done, size - done, off + done);
		if (n < 0)
			return n;
		if (!n)
			break;
		done += n;
	}
	return done;
}

static ssize_t pwrite_all(int fd, const void *buf, size_t size, off_t off)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = os->pwrite(fd, (const char *)buf + done, size - done, off + done);
		if (n <= 0)
			return n ? n : -EIO;
		done += n;
	}
	return done;
}

/* Only O_DIRECT is there: whole blocks around the range, through memory of our own. */
static ssize_t pread_around(int fd, void *buf, size_t size, off_t off)
{
	size_t skip, n, done = 0;
	char *blocks;
	ssize_t r = 0;

	if (posix_memalign((void **)&blocks, BLOCK, PATCH_BYTES))
		return -ENOMEM;
	while (done < size) {
		skip = (off + done) & (BLOCK - 1);
		n = PATCH_BYTES - skip < size - done ? PATCH_BYTES - skip : size - done;
		r = pread_all(fd, blocks, (skip + n + BLOCK - 1) & ~(size_t)(BLOCK - 1),
			      off + done - skip);
		if (r < 0)
			break;
		if ((size_t)r < skip + n)
			n = (size_t)r > skip ? r - skip : 0;
		memcpy((char *)buf + done, blocks + skip, n);
		done += n;
		if ((size_t)r < skip + n || !n)
			break;
	}
	free(blocks);
	return r < 0 ? r : (ssize_t)done;
}

static ssize_t patch(int fd, char *blocks, const void *buf, size_t n, off_t start, size_t skip)
{
	size_t span = (skip + n + BLOCK - 1) & ~(size_t)(BLOCK - 1);
	ssize_t r = pread_all(fd, blocks, span, start);

	PROBE4(cufile-internal-rmw, fd, start, span, r);
	if (r < 0)
		return r;
	memset(blocks + r, 0, span - r);
	memcpy(blocks + skip, buf, n);
	if ((size_t)r < skip + n && skip + n < span)
		return -EINVAL;	/* would leave the file longer than asked for */
	return pwrite_all(fd, blocks, span, start);
}

static ssize_t pwrite_around(int fd, const void *buf, size_t size, off_t off)
{
	size_t skip, n, done = 0;
	char *blocks;
	ssize_t r = 0;

	if (posix_memalign((void **)&blocks, BLOCK, PATCH_BYTES))
		return -ENOMEM;
	pthread_mutex_lock(&patching);
	while (done < size && r >= 0) {
		skip = (off + done) & (BLOCK - 1);
		n = PATCH_BYTES - skip < size - done ? PATCH_BYTES - skip : size - done;
		r = patch(fd, blocks, (const char *)buf + done, n, off + done - skip, skip);
		if (r >= 0)
			done += n;
	}
	pthread_mutex_unlock(&patching);
	free(blocks);
	return r < 0 && !done ? r : (ssize_t)done;
}

bool file_prefers_direct(const struct file *f)
{
	return f->fd_direct >= 0 && ((f->flags & O_DIRECT) || driver_config()->force_odirect);
}

/*
 * What the kernel says of a file's pages is believed only after it has told of pages that were
 * read a moment ago: a stacked file system keeps them elsewhere, and has none of its own.
 */
enum { CACHE_UNKNOWN, CACHE_TELLS, CACHE_SILENT };

/* Worth asking: a piece of a large request for the page cache, that O_DIRECT could read. */
static bool may_be_cold(const struct file *f, const void *buf, size_t size, off_t off,
			uint64_t request)
{
	return request >= COLD_MIN && f->fd_direct >= 0 && f->fd_cached >= 0 &&
	       !file_prefers_direct(f) && aligned(buf, size, off) &&
	       atomic_load_explicit(&f->cache_tells, memory_order_relaxed) != CACHE_SILENT;
}

/* The page cache holds next to nothing of it. */
static bool is_cold(struct file *f, size_t size, off_t off)
{
	int64_t n;

	if (atomic_load_explicit(&f->cache_tells, memory_order_relaxed) != CACHE_TELLS)
		return false;
	n = os->cached(f->fd_cached, off, size);
	if (n < 0)
		atomic_store_explicit(&f->cache_tells, CACHE_SILENT, memory_order_relaxed);
	return n >= 0 && (uint64_t)n < size / COLD_PART;
}

bool file_piece_by_drive(struct file *f, size_t size, off_t off)
{
	return file_prefers_direct(f) || is_cold(f, size, off);
}

bool file_by_drive(struct file *f, bool read, size_t size, off_t off)
{
	if (f->user || f->fd_direct < 0)
		return false;
	if (file_prefers_direct(f))
		return true;
	return read && size >= COLD_MIN && f->fd_cached >= 0 &&
	       is_cold(f, size < COLD_LOOK ? size : COLD_LOOK, off);
}

/* These bytes have just come through the page cache. */
static void learn(struct file *f, size_t size, off_t off)
{
	unsigned int unknown = CACHE_UNKNOWN;

	if (atomic_load_explicit(&f->cache_tells, memory_order_relaxed) == CACHE_UNKNOWN && size)
		atomic_compare_exchange_strong(&f->cache_tells, &unknown,
					       os->cached(f->fd_cached, off, size) > 0 ?
						       CACHE_TELLS : CACHE_SILENT);
}

ssize_t file_pread(struct file *f, void *buf, size_t size, off_t off, uint64_t request)
{
	bool ask = may_be_cold(f, buf, size, off, request);
	ssize_t r = -EINVAL;

	if (f->user)
		return user_fs_read(f->user, buf, size, off);
	if ((file_prefers_direct(f) && aligned(buf, size, off)) || (ask && is_cold(f, size, off)))
		r = pread_all(f->fd_direct, buf, size, off);
	/* EINVAL: this file wants another alignment than 4 KiB */
	if (r == -EINVAL && f->fd_cached >= 0) {
		r = pread_cached(f->fd_cached, buf, size, off);
		if (ask && r > 0)
			learn(f, r, off);
	}
	if (r == -EINVAL && f->fd_cached < 0)
		r = pread_around(f->fd_direct, buf, size, off);
	return r;
}

/* Opens one more like fd_cached; -1 for good where that cannot be. */
static int open_more(struct file *f, atomic_int *more)
{
	int seen = 0, fd;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd_cached);
	fd = os->open(path, O_RDONLY);
	if (atomic_compare_exchange_strong(more, &seen, fd >= 0 ? fd + 1 : -1))
		return fd >= 0 ? fd : f->fd_cached;
	if (fd >= 0)
		os->close(fd);
	return seen > 0 ? seen - 1 : f->fd_cached;
}

ssize_t file_pread_much(struct file *f, void *buf, size_t size, off_t off)
{
	unsigned int thread = shards_thread() % (FILE_MORE + 1);
	atomic_int *more;
	int fd;

	if (f->user || f->fd_cached < 0 || !thread || (f->flags & O_ACCMODE) == O_WRONLY)
		return file_pread(f, buf, size, off, 0);
	more = &f->fd_more[thread - 1];
	fd = atomic_load_explicit(more, memory_order_acquire);
	if (fd > 0)
		return pread_cached(fd - 1, buf, size, off);
	if (!fd && atomic_load_explicit(&f->reads, memory_order_relaxed) < FILE_MUCH)
		atomic_fetch_add_explicit(&f->reads, 1, memory_order_relaxed);
	else if (!fd)
		return pread_cached(open_more(f, more), buf, size, off);
	return pread_cached(f->fd_cached, buf, size, off);
}

bool file_direct(const struct file *f, size_t size, off_t off)
{
	return !f->user && file_prefers_direct(f) && aligned(NULL, size, off);
}

ssize_t file_pwrite(const struct file *f, const void *buf, size_t size, off_t off)
{
	ssize_t r = -EINVAL;

	if (f->user)
		return user_fs_write(f->user, buf, size, off);
	if (file_prefers_direct(f) && aligned(buf, size, off))
		r = pwrite_all(f->fd_direct, buf, size, off);
	if (r == -EINVAL && f->fd_cached >= 0)
		r = pwrite_all(f->fd_cached, buf, size, off);
	else if (r == -EINVAL)
		r = pwrite_around(f->fd_direct, buf, size, off);
	return r;
}
