// SPDX-License-Identifier: MIT
/* file_facts.c - whether a file can go direct. */
#include <linux/fs.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "driver.h"
#include "file_facts.h"
#include "fs_cache.h"
#include "os.h"

#ifndef STATX_ATTR_VERITY
#define STATX_ATTR_VERITY 0x00100000
#endif

static bool listed(const char (*list)[64], const char *name)
{
	int i;

	for (i = 0; i < CONFIG_DENY && list[i][0]; i++)
		if (!strcmp(list[i], name))
			return true;
	return false;
}

static bool mount_listed(const char (*list)[CONFIG_PATH], const char *point)
{
	int i;

	for (i = 0; i < CONFIG_DENY && list[i][0]; i++)
		if (!strcmp(list[i], point))
			return true;
	return false;
}

/* pages: for requests on GPU pages, which md hands on by itself. */
static unsigned int block_facts(const struct facts_block *b, bool pages)
{
	const struct config *c = driver_config();

	if (listed(c->deny_devices, b->name) || listed(c->deny_devices, b->disk))
		return REASON_ROUTE_DENIED;
	switch (b->kind) {
	case FACTS_BLOCK_NVME:
		break;
	case FACTS_BLOCK_MD:
	case FACTS_BLOCK_NVME_MULTIPATH:
		if (pages)
			break;
		return REASON_STACKED;
	case FACTS_BLOCK_DM:
		return REASON_STACKED;
	default:
		return REASON_NOT_NVME;
	}
	if (listed(c->deny_drivers, "nvme"))
		return REASON_ROUTE_DENIED;
	return b->integrity ? REASON_INTEGRITY : REASON_NONE;
}

/* Direct I/O of these passes the caller's pages to the driver unchanged. */
static unsigned int fs_facts(const struct facts_mount *m)
{
	const struct config *c = driver_config();

	if (listed(c->deny_filesystems, m->fs) || mount_listed(c->deny_mounts, m->point))
		return REASON_ROUTE_DENIED;
	if (!strcmp(m->fs, "xfs"))
		return REASON_NONE;
	if (strcmp(m->fs, "ext4"))
		return REASON_FS_TYPE;
	return facts_option(m->options, "data", "journal") ? REASON_FS_JOURNAL : REASON_NONE;
}

static unsigned int inode_facts(const struct file *f)
{
	const uint64_t rewritten = STATX_ATTR_COMPRESSED | STATX_ATTR_ENCRYPTED | STATX_ATTR_VERITY;
	struct statx st;
	unsigned int flags;

	if (!os->fileattr(f->user_fd, &flags) && (flags & FS_JOURNAL_DATA_FL))
		return REASON_FS_JOURNAL;
	if (os->statx(f->user_fd, &st))
		return REASON_NONE;
	if (st.stx_attributes & rewritten)
		return REASON_FS_ATTRIBUTE;
#ifdef STATX_DIOALIGN
	if (st.stx_mask & STATX_DIOALIGN) {
		if (!st.stx_dio_mem_align || !st.stx_dio_offset_align)
			return REASON_NO_ODIRECT;
		if (st.stx_dio_offset_align > 4096)
			return REASON_DIO_ALIGN;
	}
#endif
	return REASON_NONE;
}

static unsigned int device_facts(const struct file *f, bool pages)
{
	struct facts_block b;
	unsigned int r;

	if (facts_block_find(os_root, major(f->st.st_rdev), minor(f->st.st_rdev), &b))
		return REASON_NOT_NVME;
	r = block_facts(&b, pages);
	return r ? r : f->fd_direct < 0 ? REASON_NO_ODIRECT : REASON_NONE;
}

bool file_may_ring(const struct file *f)
{
	static const char *const known[] = { "ext4", "xfs", "btrfs", "f2fs", "ext3", "ext2" };
	struct fs_facts fs;
	unsigned int i;

	if (f->user)
		return false;
	if (S_ISBLK(f->st.st_mode))
		return true;
	fs_cache_find(f->st.st_dev, f->user_fd, &fs);
	for (i = 0; !fs.mount_err && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(fs.mount.fs, known[i]))
			return true;
	return false;
}

unsigned int file_facts(const struct file *f, bool pages)
{
	struct fs_facts fs;
	unsigned int r;

	if (S_ISBLK(f->st.st_mode))
		return device_facts(f, pages);
	fs_cache_find(f->st.st_dev, f->user_fd, &fs);
	if (fs.mount_err)
		return REASON_FS_UNKNOWN;
	r = fs_facts(&fs.mount);
	if (!r)
		r = fs.block_err ? REASON_NOT_NVME : block_facts(&fs.block, pages);
	if (!r)
		r = inode_facts(f);
	if (!r && f->fd_direct < 0)
		r = REASON_NO_ODIRECT;
	return r;
}
