/* SPDX-License-Identifier: MIT */
/*
 * fs_cache.h - file systems that were looked at: the mount table and sysfs are read once for
 * each, not for each file.
 *
 * What is kept is good as long as the mount table of this process is the one it was read from:
 * the kernel tells of every mount, unmount and remount there (poll of mountinfo), and another
 * mount namespace has another number. A mounted file system keeps its block device; what that is
 * (a second path may come) is looked up again after a second. Where the table cannot be watched
 * nothing is kept.
 */
#ifndef FS_CACHE_H
#define FS_CACHE_H

#include <sys/types.h>

#include "facts.h"

struct fs_facts {
	int mount_err;			/* facts_mount_find: 0, or why there is no `mount` */
	struct facts_mount mount;
	int block_err;			/* facts_block_find of the same number */
	struct facts_block block;
};

/*
 * Of the file system with this st_dev; fd: a file there, for numbers that the table has not
 * (btrfs), or -1. Any thread inside driver_enter().
 */
void fs_cache_find(dev_t dev, int fd, struct fs_facts *out);

/* How often the mount table was read, for tests. */
unsigned long fs_cache_reads(void);

/* At close. */
void fs_cache_release(void);

#endif /* FS_CACHE_H */
