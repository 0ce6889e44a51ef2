/* SPDX-License-Identifier: MIT */
/*
 * nvfs.h - the client of the nvidia-fs module: its nodes, and windows onto GPU memory.
 *
 * The session is opened and closed with the library; what cannot be opened is a reason
 * (facts/reasons.h), never an error. Every function may be called inside
 * driver_enter() .. driver_leave().
 */
#ifndef NVFS_H
#define NVFS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "facts.h"

/*
 * A range of GPU memory, pinned by the module, that files can be read into. No two threads
 * open or close one window at once; any number do I/O on it. Not to be copied.
 */
struct nvfs_win {
	void *cpu;		/* mapping of a node: a name for the window, no data stands there */
	size_t shadow;		/* its length: the most that one ioctl moves */
	uint64_t gpu_va;	/* any alignment */
	size_t size;
	void *fence;		/* a page that the module writes to */
	int node;
	struct peers_use *listed;	/* why its memory could be pinned (peers.h), or NULL */
	/* its P2PDMA pages in the process: at the window's first byte; NULL: not asked for, or none */
	char *pages;
	/*
	 * What is mapped for them: whole GPU pages, and for each 4096 bytes of these what of it a
	 * drive has moved, a bit a sector.
	 */
	void *pages_map, *seen_map;
	size_t pages_size, seen_size;
	/*
	 * Held over each ioctl on a module that is not ours: there a second request on the same
	 * mapping is refused while one is in flight.
	 */
	pthread_mutex_t one;
};

/* The file of a request, as the module wants it told. */
struct nvfs_file {
	int fd;			/* open with O_DIRECT */
	uint64_t inum;
	unsigned int major, minor;
};

void nvfs_open(void);
void nvfs_close(void);
unsigned int nvfs_reason(void);	/* REASON_NONE: usable */
void nvfs_version(struct facts_nvfs *v);

#define NVFS_WIN_STAGING 1	/* memory of the library, not of the user */
#define NVFS_WIN_TRY 2		/* the caller knows another way: EINVAL is no error yet */

/* Pins. 0 or -errno of the module's MAP. */
int nvfs_win_open(struct nvfs_win *w, uint64_t gpu_va, size_t size, uint64_t pdevinfo,
		  unsigned int flags);
/* Fills `pages` to `seen_size`: REASON_NONE, or why there are none. Once, by one thread. */
unsigned int nvfs_win_pages(struct nvfs_win *w);
/* Unpins; no request may be in flight. */
void nvfs_win_close(struct nvfs_win *w);

/*
 * Bytes moved or -errno; a read has fewer than size at the end of the file. Multiples of
 * 4096: size, off, and gpu_va + gpu_off. When *done is less than size after an error, that
 * many bytes had been moved. -ENOTBLK: not by the drive, a hole or a file system that
 * copies, and the memory is as it was or half filled; -EIO also for a write that came short.
 */
ssize_t nvfs_win_io(struct nvfs_win *w, bool write, const struct nvfs_file *f, size_t size,
		    off_t off, uint64_t gpu_off, size_t *done);

#endif /* NVFS_H */
