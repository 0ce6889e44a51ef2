// SPDX-License-Identifier: MIT
/* fs_cache.c - file systems that were looked at. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fs_cache.h"
#include "os.h"

#define KEPT 32
#define BLOCK_NS ((uint64_t)1000000000)	/* sysfs tells of no change: it is read again after this */

/*
 * lock guards all of it, also while files are read: registrations of files on one new file
 * system wait for the one that reads. `watch`: mountinfo, open as long as anything is kept; it
 * belongs to the namespace `ns`.
 */
static struct {
	pthread_mutex_t lock;
	int watch;		/* -1: not open */
	uint64_t ns;
	unsigned int n, next;	/* next: the place of the one after n == KEPT */
	struct {
		dev_t dev;
		uint64_t block_at;	/* when facts.block was read */
		struct fs_facts facts;
	} kept[KEPT];
	unsigned long reads;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER, .watch = -1 };

/* cache.lock held */
static void forget(void)
{
	if (cache.watch >= 0)
		os->close(cache.watch);
	cache.watch = -1;
	cache.n = cache.next = 0;
}

/* cache.lock held. True: from here on the kernel tells of changes. */
static bool watch(void)
{
	char path[PATH_MAX];

	if (cache.watch >= 0)
		return true;
	/* the number first: a namespace that changes in between is noticed at the next look */
	cache.ns = os->mount_ns();
	if (!cache.ns || snprintf(path, sizeof(path), "%s/proc/self/mountinfo", os_root) >=
				 (int)sizeof(path))
		return false;
	cache.watch = os->open(path, O_RDONLY);
	return cache.watch >= 0;
}

/* cache.lock held. Drops what is kept when it is not true any more. */
static void check(void)
{
	if (cache.watch >= 0 &&
	    (os->mount_ns() != cache.ns || os->mounts_changed(cache.watch)))
		forget();
}

static void look_block(dev_t dev, struct fs_facts *out)
{
	memset(&out->block, 0, sizeof(out->block));
	out->block_err = facts_block_find(os_root, major(dev), minor(dev), &out->block);
}

/* cache.lock held */
static void keep(dev_t dev, const struct fs_facts *facts)
{
	unsigned int i = cache.n < KEPT ? cache.n++ : cache.next++ % KEPT;

	cache.kept[i].dev = dev;
	cache.kept[i].block_at = os->now_ns();
	cache.kept[i].facts = *facts;
}

void fs_cache_find(dev_t dev, int fd, struct fs_facts *out)
{
	unsigned int i;
	bool watched;

	pthread_mutex_lock(&cache.lock);
	check();
	for (i = 0; i < cache.n; i++)
		if (cache.kept[i].dev == dev) {
			if (os->now_ns() - cache.kept[i].block_at > BLOCK_NS) {
				look_block(dev, &cache.kept[i].facts);
				cache.kept[i].block_at = os->now_ns();
			}
			*out = cache.kept[i].facts;
			goto out;
		}
	/* watched before it is read, so that no change falls in between */
	watched = watch();
	cache.reads++;
	memset(out, 0, sizeof(*out));
	out->mount_err = facts_mount_find(os_root, major(dev), minor(dev), &out->mount);
	look_block(dev, out);
	/* what is not in the table may be there next time, by a way that is not told of */
	if (watched && !out->mount_err)
		keep(dev, out);
	/* nor does the table tell what becomes of a number that it has not */
	if (out->mount_err == -ENOENT && fd >= 0)
		out->mount_err = facts_mount_by_id(os_root, os->mount_id(fd), &out->mount);
out:
	pthread_mutex_unlock(&cache.lock);
}

unsigned long fs_cache_reads(void)
{
	unsigned long n;

	pthread_mutex_lock(&cache.lock);
	n = cache.reads;
	pthread_mutex_unlock(&cache.lock);
	return n;
}

void fs_cache_release(void)
{
	pthread_mutex_lock(&cache.lock);
	forget();
	pthread_mutex_unlock(&cache.lock);
}
