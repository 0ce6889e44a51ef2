// SPDX-License-Identifier: GPL-2.0-only
/*
 * io.c - one request: checked, cut into windows, submitted, and believed only as far as a
 * driver took DMA addresses for it. Synchronous ones are run here, others by async.c.
 *
 * The file system gets a bvec iterator over carriers. Nothing stops it from moving the
 * bytes by CPU instead of passing the pages down (a hole, inline data, a buffered
 * fallback); the return value does not tell. So each sector that a driver maps is noted
 * by the hook, and what is unnoted inside the result goes to repair.c.
 *
 * Files that are not surely direct never see a carrier (way.c), since the file system
 * might take bytes from it, or put bytes into it, that the GPU memory does not have.
 */
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/stat.h>
#include <linux/uio.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "io.h"
#include "log.h"
#include "p2p.h"
#include "refuse.h"
#include "trace.h"

const char *nvfs_dir(bool write)
{
	return write ? "WRITE" : "READ";
}

static int nvfs_check_range(const struct nvfs_ioctl_ioargs *a)
{
	if (a->offset < 0)
		return nvfs_refused(negative_offset, -EINVAL);
	if (a->offset % NVFS_BLOCK_SIZE)
		return nvfs_refused(offset_in_block, -EINVAL);
	if (a->size % NVFS_BLOCK_SIZE)
		return nvfs_refused(size_in_block, -EINVAL);
	if (a->size > (u64)(S64_MAX - a->offset))
		return nvfs_refused(range_overflow, -EINVAL);
	return 0;
}

static int nvfs_check_mode(struct file *file, bool write)
{
	struct inode *inode = file_inode(file);

	if (S_ISDIR(inode->i_mode)) {
		nvfs_say("%s: fd is a directory (-EISDIR)\n", nvfs_dir(write));
		return nvfs_refused(directory, -EISDIR);
	}
	if (!S_ISREG(inode->i_mode) && !S_ISBLK(inode->i_mode)) {
		nvfs_say("%s: fd is neither a regular file nor a block device (-EINVAL)\n",
			 nvfs_dir(write));
		return nvfs_refused(no_file_kind, -EINVAL);
	}
	if (!(file->f_mode & (write ? FMODE_WRITE : FMODE_READ))) {
		nvfs_say("%s: %pD is not open for this direction (-EBADF)\n", nvfs_dir(write),
			 file);
		if (write)
			return nvfs_refused(not_for_writing, -EBADF);
		return nvfs_refused(not_for_reading, -EBADF);
	}
	if (write && !(file->f_mode & FMODE_CAN_WRITE))
		return nvfs_refused(cannot_write, -EINVAL);
	if (!write && !(file->f_mode & FMODE_CAN_READ))
		return nvfs_refused(cannot_read, -EINVAL);
	return 0;
}

/* The file is the one the caller means, as fstat told him. */
static int nvfs_check_inode(struct file *file, const struct nvfs_ioctl_ioargs *a)
{
	struct inode *inode = file_inode(file);
	dev_t dev = S_ISBLK(inode->i_mode) ? inode->i_rdev : inode->i_sb->s_dev;
	u64 ino = inode->i_ino;
	struct kstat st;
	int r = 0;

	if (!a->inum)
		return nvfs_refused(no_inum, -EINVAL);
	if (S_ISBLK(inode->i_mode) && !a->majdev)
		return nvfs_refused(no_majdev, -EINVAL);
	if ((a->inum != ino || a->majdev != MAJOR(dev) || a->mindev != MINOR(dev)) &&
	    !S_ISBLK(inode->i_mode)) {
		/* subvolumes and stacked file systems tell fstat other numbers */
		if (vfs_getattr(&file->f_path, &st, STATX_INO, AT_STATX_SYNC_AS_STAT))
			return -ESTALE;
		ino = st.ino;
		dev = st.dev;
	}
	if (a->inum != ino)
		r = nvfs_refused(stale_inum, -ESTALE);
	else if (a->majdev != MAJOR(dev))
		r = nvfs_refused(stale_major, -ESTALE);
	else if (a->mindev != MINOR(dev))
		r = nvfs_refused(stale_minor, -ESTALE);
	else if (a->generation && a->generation != inode->i_generation)
		r = nvfs_refused(stale_generation, -ESTALE);
	if (r)
		nvfs_say("inode %llu on %u:%u was asked for, but the fd is %pD, inode %llu on %u:%u (-ESTALE)\n",
			 a->inum, a->majdev, a->mindev, file, ino, MAJOR(dev), MINOR(dev));
	return r;
}

static int nvfs_check_file(struct file *file, const struct nvfs_ioctl_ioargs *a, bool write)
{
	if (!(file->f_flags & O_DIRECT)) {
		nvfs_say("%s: %pD is not open with O_DIRECT (-EINVAL)\n", nvfs_dir(write), file);
		return nvfs_refused(not_direct, -EINVAL);
	}
	if (write && (file->f_flags & O_APPEND)) {
		nvfs_say("WRITE: %pD is open with O_APPEND, an offset has no meaning there (-EINVAL)\n",
			 file);
		return nvfs_refused(append, -EINVAL);
	}
	if (!(a->flags & NVFS_IO_SYNC) && !a->end_fence_value) {
		nvfs_say("%s: an asynchronous request needs an end_fence_value other than 0 (-EINVAL)\n",
			 nvfs_dir(write));
		return nvfs_refused(no_fence_value, -EINVAL);
	}
	return 0;
}

/* The range is inside the GPU buffer, in blocks, and inside one GPU page if it starts in one. */
static int nvfs_check_gpu(const struct nvfs_mapping *m, const struct nvfs_ioctl_ioargs *a,
			  bool write)
{
	u32 in_page;

	if (a->size > m->size || a->devptroff > m->size - a->size) {
		nvfs_say("%s: %llu bytes at %llu, but the buffer has %llu (-EINVAL)\n",
			 nvfs_dir(write), a->size, a->devptroff, m->size);
		if (a->size > m->size)
			return nvfs_refused(more_than_buffer, -EINVAL);
		return nvfs_refused(past_buffer, -EINVAL);
	}
	if ((m->page_off + a->devptroff) % NVFS_BLOCK_SIZE) {
		nvfs_say("%s: the GPU address is not 4-KiB aligned (buffer offset %llu) (-EINVAL)\n",
			 nvfs_dir(write), a->devptroff);
		return nvfs_refused(gpu_in_block, -EINVAL);
	}
	in_page = (m->page_off + a->devptroff) % NVFS_GPU_PAGE_SIZE;
	if (in_page && a->size > NVFS_GPU_PAGE_SIZE - in_page) {
		nvfs_say("%s: %llu bytes from inside a GPU page (buffer offset %llu) leave it (-EINVAL)\n",
			 nvfs_dir(write), a->size, a->devptroff);
		return nvfs_refused(leaves_gpu_page, -EINVAL);
	}
	return 0;
}

/* One call of the file system, at rq->pos. Bytes moved, or -errno. Blocks. */
ssize_t nvfs_submit(const struct nvfs_req *rq, struct bio_vec *bv, u32 nbv, size_t len)
{
	struct iov_iter iter;
	struct kiocb kb;
	ssize_t r;

	iov_iter_bvec(&iter, rq->write ? ITER_SOURCE : ITER_DEST, bv, nbv, len);
	init_sync_kiocb(&kb, rq->file);
	kb.ki_pos = rq->pos;
	kb.ki_flags |= IOCB_DIRECT;	/* whatever fcntl() did since the check */
	if (rq->p2p)
		kb.ki_ioprio = nvfs_p2p_ioprio(rq->m, kb.ki_ioprio);
	trace_nvfs_submit(rq, len, false);
	if (nvfs_fault(NVFS_FAULT_VERIFY_AREA))
		return -EIO;
	if (!rq->write)
		return vfs_iocb_iter_read(rq->file, &kb, &iter);
#ifndef HAVE_FILE_WRITE_STARTED
	file_start_write(rq->file);
#endif
	r = vfs_iocb_iter_write(rq->file, &kb, &iter);
#ifndef HAVE_FILE_WRITE_STARTED
	file_end_write(rq->file);
#endif
	return r;
}

int nvfs_window_begin(const struct nvfs_req *rq, struct nvfs_window *w, size_t len)
{
	struct nvfs_mapping *m = rq->m;
	int r;

	w->n = len >> NVFS_BLOCK_SHIFT;
	w->bv = w->own;
	r = nvfs_blocks_take(m, w->n, rq->gpu_off >> NVFS_BLOCK_SHIFT, &w->first);
	if (r)
		return r;
	if (rq->p2p) {
		w->bv = m->p2p->bv + w->first;
		w->nbv = nvfs_p2p_bvec(m, w->first, w->n, rq->gpu_off);
		return 0;
	}
	w->nbv = nvfs_blocks_bvec(m, w->first, w->n, w->bv, NVFS_BVECS_INLINE);
	if (w->nbv)
		return 0;
	w->bv = kvmalloc_array(m->ncarriers, sizeof(*w->bv), GFP_KERNEL);
	if (!w->bv) {
		nvfs_blocks_give(m, w->first, w->n);
		return -ENOMEM;
	}
	w->nbv = nvfs_blocks_bvec(m, w->first, w->n, w->bv, m->ncarriers);
	return 0;
}

/* len bytes went over P2PDMA pages, by whomever: what can be said of them before all else. */
static ssize_t nvfs_p2p_judge(const struct nvfs_req *rq, u32 first, size_t len)
{
	struct nvfs_witness w = { 0 };

	if (nvfs_p2p_mixed(rq->m, first, len)) {
		nvfs_say("%s: %pD, %zu bytes at %lld went in one command with other memory (-EIO): does a cgroup set I/O priorities? Use the I/O scheduler `none` with it, or carriers=shadow\n",
			 nvfs_dir(rq->write), rq->file, len, rq->pos);
		return -EIO;
	}
	nvfs_blocks_witness(rq->m, first, len, &w);
	nvfs_stat_add(rq->write ? NVFS_ST_P2P_WRITE_BYTES : NVFS_ST_P2P_READ_BYTES, w.dma_bytes);
	return len;
}

ssize_t nvfs_window_end(const struct nvfs_req *rq, struct nvfs_window *w, ssize_t r)
{
	struct nvfs_mapping *m = rq->m;
	u32 n = w->n, first = w->first, bad, regions;

	if (w->bv != w->own && !rq->p2p)
		kvfree(w->bv);
	if (r <= 0)
		goto give;
	if (rq->p2p)
		r = nvfs_p2p_judge(rq, first, r);
	if (r < 0)
		goto give;
	if (rq->witness)
		nvfs_blocks_witness(m, first, r, rq->witness);
	if (READ_ONCE(nvfs_peer_stats_enabled)) {
		struct nvfs_witness w = { 0 };

		nvfs_blocks_witness(m, first, r, &w);
		nvfs_gpustat_used(m, w.slots);
	}
	bad = nvfs_blocks_unmapped(m, first, r, &regions);
	if (bad) {
		if (!rq->write)
			nvfs_fence_holes(m, rq->pos, first, r, rq->p2p);
		r = nvfs_repair(rq, first, r, bad, regions);
	}
give:
	trace_nvfs_complete(rq, r);
	nvfs_blocks_give(m, first, n);
	return r;
}

/*
 * One window of at most the mapping's blocks. Bytes moved, all of them by DMA, or -errno.
 * The caller has entered the mapping.
 */
static ssize_t nvfs_window(const struct nvfs_req *rq, size_t len)
{
	struct nvfs_window w;
	ssize_t r;

	r = nvfs_window_begin(rq, &w, len);
	if (r)
		return r;
	r = nvfs_submit(rq, w.bv, w.nbv, len);
	return nvfs_window_end(rq, &w, r);
}

/*
 * File systems zero what a read asks for past the end of the file. Carriers that are host pages
 * keep that from the GPU; of P2PDMA pages nothing is asked past the last block.
 */
size_t nvfs_before_end(const struct nvfs_req *rq, size_t len)
{
	const struct inode *inode = file_inode(rq->file);
	loff_t size = i_size_read(inode);

	if (!rq->p2p || rq->write || !S_ISREG(inode->i_mode))
		return len;
	if (rq->pos >= size)
		return 0;
	return min_t(u64, len, round_up(size - rq->pos, NVFS_BLOCK_SIZE));
}

ssize_t nvfs_windows(struct nvfs_req *rq, size_t size)
{
	struct nvfs_mapping *m = rq->m;
	size_t done = 0, max = (size_t)m->nblocks << NVFS_BLOCK_SHIFT;
	enum nvfs_state why;
	bool again = true;
	ssize_t r;

	while (done < size) {
		size_t len = nvfs_before_end(rq, min(size - done, max));

		if (!len)
			break;
		r = rq->by_cpu ? 0 : nvfs_peers_refresh(m);
		if (r)
			return r;
		if (!nvfs_mapping_enter(m, &why))
			return -EIO;	/* unmapped or freed since the last window */
		r = rq->by_cpu ? nvfs_by_cpu(rq, len) : nvfs_window(rq, len);
		nvfs_mapping_leave(m);
		if (r < 0 && again && test_and_clear_bit(0, &m->missed)) {
			/* a drive that came while we were submitting: once more, with it */
			again = false;
			nvfs_peers_scan();
			continue;
		}
		if (r < 0)
			return r;
		if (rq->by_cpu && rq->witness)
			rq->witness->cpu_bytes += r;
		done += r;
		rq->pos += r;
		rq->gpu_off += r;
		if (r < len)
			break;
	}
	return done;
}

static int nvfs_state_errno(enum nvfs_state state, bool write)
{
	static const char * const why[] = {
		[NVFS_FREE] = "no MAP was done for it",
		[NVFS_INIT] = "its MAP is still running",
		[NVFS_REVOKED] = "its GPU memory was freed",
		[NVFS_CLOSED] = "it is being unmapped",
	};

	nvfs_say("%s: the mapping cannot be used: %s (-EBUSY)\n", nvfs_dir(write), why[state]);
	nvfs_stat_inc(write ? NVFS_ST_WRITE_STATE : NVFS_ST_READ_STATE);
	return -EBUSY;
}

/* When the request began, or 0 while the statistics are off. */
u64 nvfs_io_begin(bool write)
{
	nvfs_stat_inc(write ? NVFS_ST_OPS_WRITE : NVFS_ST_OPS_READ);
	if (!READ_ONCE(nvfs_rw_stats_enabled))
		return 0;
	nvfs_stat_inc(write ? NVFS_ST_WRITE : NVFS_ST_READ);
	return ktime_get_ns();
}

void nvfs_io_end(bool write, ssize_t r, u64 start)
{
	nvfs_stat_dec(write ? NVFS_ST_OPS_WRITE : NVFS_ST_OPS_READ);
	if (r < 0) {
		nvfs_stat_inc(write ? NVFS_ST_WRITE_ERR : NVFS_ST_READ_ERR);
	} else if (start) {
		nvfs_stat_inc(write ? NVFS_ST_WRITE_OK : NVFS_ST_READ_OK);
		nvfs_stat_add(write ? NVFS_ST_WRITE_BYTES : NVFS_ST_READ_BYTES, r);
		nvfs_stat_add(write ? NVFS_ST_WRITE_NS : NVFS_ST_READ_NS,
			      ktime_get_ns() - start);
	}
}

/* fewer blocks than bytes: it has holes, or looks as if */
static bool nvfs_is_sparse(const struct inode *inode)
{
	return S_ISREG(inode->i_mode) &&
	       (u64)inode->i_blocks << SECTOR_SHIFT < (u64)i_size_read(inode);
}

/* The checks that need the file; on success rq has a reference to the mapping. */
static int nvfs_req_check(struct nvfs_req *rq, const struct nvfs_ioctl_ioargs *a)
{
	bool write = rq->write;
	enum nvfs_state state;
	int r;

	r = nvfs_check_mode(rq->file, write);
	if (!r)
		r = nvfs_check_inode(rq->file, a);
	if (r)
		return r;
	rq->m = nvfs_mapping_get(a->cpuvaddr);
	if (!rq->m) {
		nvfs_say("%s: 0x%llx is not the start of a mapping of this process (-EINVAL)\n",
			 nvfs_dir(write), a->cpuvaddr);
		return nvfs_refused(no_mapping, -EINVAL);
	}
	state = READ_ONCE(rq->m->state);
	if (state != NVFS_READY) {
		r = nvfs_refused(not_ready, nvfs_state_errno(state, write));
		goto put;
	}
	smp_rmb();	/* READY was set after what MAP filled in */
	r = nvfs_check_file(rq->file, a, write);
	if (!r)
		r = nvfs_check_gpu(rq->m, a, write);
	if (!r)
		r = nvfs_way(rq, a->flags & NVFS_IO_DIRECT_ONLY);
	if (r)
		goto put;
	if (!write && nvfs_is_sparse(file_inode(rq->file)))
		nvfs_stat_inc(NVFS_ST_SPARSE);
	rq->gpu_off = rq->m->page_off + a->devptroff;
	return 0;
put:
	nvfs_mapping_put(rq->m);
	return r;
}

int nvfs_req_open(struct nvfs_req *rq, const struct nvfs_ioctl_ioargs *a, bool write)
{
	int r = nvfs_check_range(a);

	if (r) {
		nvfs_say("%s: offset %lld and size %llu must be multiples of 4096 (-EINVAL)\n",
			 nvfs_dir(write), a->offset, a->size);
		return r;
	}
	*rq = (struct nvfs_req){ .file = fget(a->fd), .pos = a->offset, .write = write };
	if (!rq->file) {
		nvfs_say("%s: fd %d is not open (-EINVAL)\n", nvfs_dir(write), a->fd);
		return nvfs_refused(no_file, -EINVAL);
	}
	r = nvfs_req_check(rq, a);
	if (r)
		fput(rq->file);
	return r;
}

void nvfs_req_close(struct nvfs_req *rq)
{
	nvfs_mapping_put(rq->m);
	fput(rq->file);
}

/*
 * READ and WRITE, synchronous. The result (bytes, or -errno) goes to args->ioctl_return;
 * returns 0 or the same -errno. Blocks until the drive is through.
 */
int nvfs_rw(struct nvfs_ioctl_ioargs *a, bool write)
{
	u64 start = nvfs_io_begin(write);
	struct nvfs_req rq;
	ssize_t r;

	r = nvfs_req_open(&rq, a, write);
	if (!r) {
		r = nvfs_windows(&rq, a->size);
		nvfs_req_close(&rq);
	}
	nvfs_io_end(write, r, start);
	nvfs_dbg("%s: fd %d, %llu bytes at %lld: %zd\n", nvfs_dir(write), a->fd, a->size,
		 a->offset, r);
	a->ioctl_return = r;
	return r < 0 ? r : 0;
}
