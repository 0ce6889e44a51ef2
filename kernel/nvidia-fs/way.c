// SPDX-License-Identifier: GPL-2.0-only
/*
 * way.c - which files are surely direct: the list of what may see a carrier.
 *
 * A carrier stands for GPU memory only as long as nobody but a hooked driver looks at it.
 * Who maps it for the drive *and* reads or writes it by CPU (checksums, encryption in
 * place, protection information, a copy for a second disk) is wrong in a way that the
 * noted sectors cannot show. So the list names what is known to leave the pages alone;
 * everything else is moved by repair.c through host pages, which is right for all.
 *
 *   surely direct   a PCI NVMe function with a hooked driver, or one that takes P2PDMA pages
 *                   (p2p.h), no protection information, no stable pages; and on it the raw
 *                   device or partition, ext4 and XFS
 *                   with a file of which statx says that it does direct I/O (not journalled,
 *                   inline, encrypted, compressed, verity, DAX; XFS: not on the realtime
 *                   device)
 *   by CPU          all others
 *   refused         a file system that wants a larger direct I/O block than ours
 */
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/fileattr.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/stat.h>

#include "io.h"
#include "nvidia-fs.h"
#include "log.h"
#include "p2p.h"

#ifndef HAVE_FILE_KATTR
#define file_kattr fileattr
#endif

static const char * const nvfs_direct_fs[] = { "ext4", "xfs" };

/* Of the nvme driver, or something else that hangs below a PCI function? */
static bool nvfs_is_nvme(const struct block_device *bdev)
{
	const struct module *owner = bdev->bd_disk->fops->owner;

	return !owner || !strcmp(owner->name, "nvme_core");
}

/*
 * The drive below a block device: why it does not DMA from carriers, or NULL; then rq says of
 * which kind they are. The driver's hook comes first, it needs nothing of the kernel.
 */
static const char *nvfs_why_drive(struct nvfs_req *rq, struct block_device *bdev)
{
	struct device *dev = disk_to_dev(bdev->bd_disk);
	bool nvme = nvfs_is_nvme(bdev), ok = false;

	if (bdev_stable_writes(bdev))
		return "on a device that wants stable pages";
	if (bdev_get_integrity(bdev))
		return "on a device with protection information";
	while (dev && !dev_is_pci(dev))
		dev = dev->parent;
	if (dev && nvfs_carriers_of(rq->m) != NVFS_CARRIERS_P2PDMA) {
		rcu_read_lock();
		ok = nvfs_peer_find(dev) && (nvme ? nvfs_hooks_serve(dev_driver_string(dev)) :
						    nvfs_hooks_any());
		rcu_read_unlock();
	}
	if (ok)
		return NULL;
	rq->p2p_why = nvfs_p2p_drive(rq->m, bdev, dev && nvme ? to_pci_dev(dev) : NULL);
	rq->p2p = !rq->p2p_why;
	return rq->p2p ? NULL : "not on an NVMe namespace of a driver with the hook";
}

/* XFS may keep it on another device than the one that the super block names. */
static bool nvfs_on_realtime(struct file *file)
{
	const struct inode *inode = file_inode(file);
	struct file_kattr fa = {};

	if (!inode->i_op->fileattr_get)
		return false;
	return inode->i_op->fileattr_get(file_dentry(file), &fa) ||
	       (fa.fsx_xflags & FS_XFLAG_REALTIME);
}

/*
 * Does the file system pass the caller's pages down for this file? It says so itself:
 * a file that it reads or writes through the page cache has no alignment for direct I/O.
 */
static const char *nvfs_why_file(const struct kstat *st)
{
	if (st->attributes & STATX_ATTR_COMPRESSED)
		return "compressed";
	if (st->attributes & STATX_ATTR_ENCRYPTED)
		return "encrypted";
	if (st->attributes & STATX_ATTR_VERITY)
		return "protected by fs-verity";
	if (!(st->result_mask & STATX_DIOALIGN))
		return "on a file system that does not tell how it does direct I/O";
	if (!st->dio_mem_align || !st->dio_offset_align)
		return "read and written through the page cache (journalled or inline data)";
	return NULL;
}

/*
 * Asking statx costs a small request a tenth of its time, and for ext4 the answer hangs on what
 * can be looked at: encrypted, verity and DAX are flags of the inode; journalled files have
 * address space operations of their own (ext4_set_aops(), also when it changes on an open
 * file); inline data is a flag of the file. Its size says nothing of that: one that has grown
 * out of its inode has its data there until it is written back. So for a file without these
 * flags one answer holds for all with the same operations. The operations of which statx said
 * so last, or NULL. No lock: one word.
 */
static const struct address_space_operations *nvfs_ext4_direct;

static bool nvfs_ext4_plain(struct file *file)
{
	const struct inode *inode = file_inode(file);
	struct file_kattr fa = {};

	if (!S_ISREG(inode->i_mode) || strcmp(inode->i_sb->s_type->name, "ext4") ||
	    (inode->i_flags & (S_ENCRYPTED | S_VERITY | S_DAX)) || !inode->i_op->fileattr_get)
		return false;
	/* the flag is set when the first byte goes there, and gone when the last one has left */
	return !inode->i_op->fileattr_get(file_dentry(file), &fa) &&
	       !(fa.flags & FS_INLINE_DATA_FL);
}

/* Why the CPU has to move this file's bytes, or NULL. -errno in *err: it cannot either. */
static const char *nvfs_why_cpu(struct nvfs_req *rq, int *err)
{
	struct file *file = rq->file;
	struct inode *inode = file_inode(file);
	const struct address_space_operations *ops = READ_ONCE(inode->i_mapping->a_ops);
	const char *fs = inode->i_sb->s_type->name, *why;
	bool plain = nvfs_ext4_plain(file);
	struct kstat st;

	*err = 0;
	if (!nvfs_hooks_any() && READ_ONCE(rq->m->p2p_why)) {
		rq->p2p_why = READ_ONCE(rq->m->p2p_why);
		return "on a machine where no storage driver with the hook is attached";
	}
	if (S_ISBLK(inode->i_mode))
		return nvfs_why_drive(rq, I_BDEV(file->f_mapping->host));
	if (plain && ops == READ_ONCE(nvfs_ext4_direct))
		return nvfs_why_drive(rq, inode->i_sb->s_bdev);
	*err = vfs_getattr(&file->f_path, &st, STATX_DIOALIGN, AT_STATX_DONT_SYNC);
	if (*err)
		return "not to be looked at";
	if ((st.result_mask & STATX_DIOALIGN) && st.dio_mem_align &&
	    st.dio_offset_align > NVFS_BLOCK_SIZE) {
		*err = -EOPNOTSUPP;
		return "of a larger direct I/O block than 4096";
	}
	why = nvfs_why_file(&st);
	if (why)
		return why;
	if (match_string(nvfs_direct_fs, ARRAY_SIZE(nvfs_direct_fs), fs) < 0)
		return "on a file system that is not known to leave the pages to the drive";
	if (IS_DAX(inode))
		return "in memory (DAX)";
	if (!inode->i_sb->s_bdev)
		return "on no block device";
	if (!strcmp(fs, "xfs") && nvfs_on_realtime(file))
		return "on the realtime device";
	if (plain)
		WRITE_ONCE(nvfs_ext4_direct, ops);
	return nvfs_why_drive(rq, inode->i_sb->s_bdev);
}

/* Choose the way of a request; 0, or -EOPNOTSUPP before anything is submitted. */
int nvfs_way(struct nvfs_req *rq, bool direct_only)
{
	const char *why;
	int err;

	rq->direct_only = direct_only;
	why = nvfs_why_cpu(rq, &err);
	if (!why)
		return 0;
	if (rq->p2p_why)
		nvfs_p2p_count(rq->p2p_why);
	if (!err && direct_only)
		err = -EOPNOTSUPP;
	if (err) {
		nvfs_say("%pD (%s) is %s%s%s (%d): use host memory for it\n", rq->file,
			 file_inode(rq->file)->i_sb->s_type->name, why,
			 rq->p2p_why ? "; P2PDMA: " : "",
			 rq->p2p_why ? nvfs_p2p_text(rq->p2p_why) : "", err);
		return err;
	}
	rq->by_cpu = true;
	if (nvfs_once(rq, 0))
		nvfs_say("%pD (%s) is %s%s%s: the CPU moves its bytes\n", rq->file,
			 file_inode(rq->file)->i_sb->s_type->name, why,
			 rq->p2p_why ? "; P2PDMA: " : "",
			 rq->p2p_why ? nvfs_p2p_text(rq->p2p_why) : "");
	return 0;
}
