// SPDX-License-Identifier: GPL-2.0-only
/*
 * repair.c - bytes that the CPU moves between host pages and GPU memory, so that they are
 * right whatever a file system did.
 *
 *   repair    a request went over carriers, and no driver took DMA addresses for some of
 *             its sectors. READ: the file system filled these sectors of the carriers (a
 *             hole, a fallback to the page cache); they are stored into the GPU memory.
 *             WRITE: it took bytes from the carriers, which have none; the range is
 *             written once more, by CPU.
 *   by CPU    files that are not surely direct (way.c): host pages of our own, which no
 *             hook knows, take the place of carriers. A write fetches the GPU's bytes
 *             into them first.
 *
 * GPU memory is reached through the card's BAR, at the physical addresses of the GPU
 * driver's page table, mapped write-combining for as long as the request needs. All of it
 * in process context, between nvfs_mapping_enter() and nvfs_mapping_leave(), which keep
 * the page table. Success is reported when the stores are in the card.
 */
#include <linux/bvec.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "io.h"
#include "nvidia-fs.h"
#include "log.h"
#include "p2p.h"
#include "sectors.h"
#include "trace.h"

#define NVFS_BAR_PIECE SZ_1M		/* mapped at a time */
#define NVFS_HOST_ORDER 6		/* host pages of one step: 256 KiB where a page has 4 */

/* A part of the pinned range that the CPU can reach; moves along as it is asked for. */
struct nvfs_bar {
	struct nvfs_mapping *m;
	void __iomem *io;
	u64 from, to;		/* bytes, in the pinned range */
	bool stored;
};

/*
 * What was stored is in the card when this returns: out of the write-combining buffers by
 * the barrier, and off the bus since a read does not overtake posted writes.
 */
static void nvfs_bar_close(struct nvfs_bar *b)
{
	if (!b->io)
		return;
	if (b->stored) {
		wmb();	/* empties the buffers that combine stores */
		(void)readl(b->io);
	}
	iounmap(b->io);
	b->io = NULL;
	b->stored = false;
}

/* Where byte gpu_off is, and how many follow it; ERR_PTR(-errno). Blocks. */
static void __iomem *nvfs_bar_at(struct nvfs_bar *b, u64 gpu_off, u64 *left)
{
	const struct nvfs_pin *pin = &b->m->pin;
	u32 page = gpu_off >> NVFS_GPU_PAGE_SHIFT;
	u64 phys;

	if (!b->io || gpu_off < b->from || gpu_off >= b->to) {
		nvfs_bar_close(b);
		if (page >= pin->pages)
			return (void __iomem *)ERR_PTR(-EINVAL);
		phys = pin->table->pages[page]->physical_address;
		b->from = (u64)page << NVFS_GPU_PAGE_SHIFT;
		b->to = (u64)READ_ONCE(pin->run_end[page]) << NVFS_GPU_PAGE_SHIFT;
		b->to = min(b->to, b->from + NVFS_BAR_PIECE);
		/* a GPU whose memory is the machine's own is none that we know how to reach */
		if (region_intersects(phys, b->to - b->from, IORESOURCE_SYSTEM_RAM,
				      IORES_DESC_NONE) != REGION_DISJOINT) {
			nvfs_say("GPU memory at 0x%llx is no device memory (-EOPNOTSUPP): use host memory for this file\n",
				 phys);
			return (void __iomem *)ERR_PTR(-EOPNOTSUPP);
		}
		b->io = ioremap_wc(phys, b->to - b->from);
		if (!b->io) {
			nvfs_say("GPU memory at 0x%llx cannot be mapped (-ENOMEM): free some memory\n",
				 phys);
			return (void __iomem *)ERR_PTR(-ENOMEM);
		}
	}
	*left = b->to - gpu_off;
	return b->io + (gpu_off - b->from);
}

/* Copy len bytes between host memory and the GPU memory at gpu_off. 0 or -errno. Blocks. */
static int nvfs_bar_copy(struct nvfs_bar *b, u64 gpu_off, void *host, size_t len, bool to_gpu)
{
	while (len) {
		void __iomem *io;
		size_t n;
		u64 left;

		io = nvfs_bar_at(b, gpu_off, &left);
		if (IS_ERR((void __force *)io))
			return PTR_ERR((void __force *)io);
		n = min_t(u64, len, left);
		if (to_gpu)
			memcpy_toio(io, host, n);
		else
			memcpy_fromio(host, io, n);
		b->stored |= to_gpu;
		host += n;
		gpu_off += n;
		len -= n;
	}
	return 0;
}

/* -- once a file -- */

/*
 * True the first time for this file and reason, as far as is remembered: a later file may
 * take its place in the table, and then it is told once more.
 */
bool nvfs_once(const struct nvfs_req *rq, u32 why)
{
	static u64 told[256];
	const struct inode *inode = file_inode(rq->file);
	u64 *p, key;

	key = hash_64(inode->i_ino, 64) ^ hash_64(inode->i_sb->s_dev, 64) ^
	      hash_64((u64)inode->i_generation << 8 | why << 1 | rq->write, 64);
	p = &told[hash_64(key, ilog2(ARRAY_SIZE(told)))];
	if (READ_ONCE(*p) == key)
		return false;
	WRITE_ONCE(*p, key);
	return true;
}

/* -- by CPU -- */

static struct page *nvfs_host_pages(size_t len, u32 *order)
{
	struct page *page;

	for (*order = min_t(u32, get_order(len), NVFS_HOST_ORDER);; --*order) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

		if (*order)
			gfp |= __GFP_COMP | __GFP_NORETRY;
		page = alloc_pages(gfp, *order);
		if (page || !*order)
			return page;
	}
}

static ssize_t nvfs_host_step(const struct nvfs_req *rq, struct nvfs_bar *bar, struct page *page,
			      size_t len)
{
	void *host = page_address(page);
	struct bio_vec bv;
	ssize_t r;

	if (rq->write) {
		r = nvfs_bar_copy(bar, rq->gpu_off, host, len, false);
		if (r)
			return r;
	}
	bvec_set_page(&bv, page, len, 0);
	r = nvfs_submit(rq, &bv, 1, len);
	trace_nvfs_complete(rq, r);
	if (r > 0 && !rq->write) {
		int err = nvfs_bar_copy(bar, rq->gpu_off, host, r, true);

		if (err)
			r = err;
	}
	return r;
}

/*
 * Move len bytes with the CPU alone: no carriers, so nobody can map one. Bytes moved (short
 * at the end of the file), or -errno. Blocks. The caller has entered the mapping.
 */
ssize_t nvfs_by_cpu(const struct nvfs_req *request, size_t len)
{
	struct nvfs_req rq = *request;
	struct nvfs_bar bar = { .m = rq.m };
	size_t done = 0, step;
	struct page *page;
	ssize_t r = 0;
	u32 order;

	page = nvfs_host_pages(len, &order);
	if (!page)
		return -ENOMEM;
	while (done < len) {
		step = min_t(size_t, len - done, PAGE_SIZE << order);
		r = fatal_signal_pending(current) ? -EINTR : nvfs_host_step(&rq, &bar, page, step);
		if (r <= 0)
			break;
		done += r;
		rq.pos += r;
		rq.gpu_off += r;
		if (r < step)
			break;
	}
	nvfs_bar_close(&bar);
	__free_pages(page, order);
	nvfs_stat_add(rq.write ? NVFS_ST_CPU_WRITE_BYTES : NVFS_ST_CPU_READ_BYTES, done);
	return r < 0 ? r : done;
}

/* -- repair -- */

/* Store what the file system put into unnoted sectors of the carriers. Bytes, or -errno. */
static ssize_t nvfs_fill_gpu(const struct nvfs_req *rq, u32 first, size_t len)
{
	const u8 *sectors = rq->m->sectors + first;
	u32 end = DIV_ROUND_UP(len, NVFS_SECTOR), at = 0, n;
	struct nvfs_bar bar = { .m = rq->m };
	size_t moved = 0;
	int r = 0;

	while (!r && (at = nvfs_sectors_next(sectors, at, end, &n)) < end) {
		u64 off = (u64)at * NVFS_SECTOR;
		/* not past the end of the file */
		size_t bytes = min_t(u64, (u64)n * NVFS_SECTOR, len - off);
		char *host = nvfs_block_addr(rq->m, first + (off >> NVFS_BLOCK_SHIFT));

		r = nvfs_bar_copy(&bar, rq->gpu_off + off, host + off % NVFS_BLOCK_SIZE, bytes,
				  true);
		moved += bytes;
		at += n;
	}
	nvfs_bar_close(&bar);
	return r ?: moved;
}

/*
 * A write that is refused now has put the carriers' zeros into the file, also where it had data:
 * ext4 takes all of a request through the page cache when a part of it is a hole of a file without
 * extents. So the caller's bytes are written, as if it were not refused.
 */
static void nvfs_unspoil(const struct nvfs_req *rq, size_t len)
{
	ssize_t r = nvfs_by_cpu(rq, len);

	nvfs_stat_inc(NVFS_ST_REWRITES);
	if (r < 0 || (size_t)r < len)
		nvfs_say("WRITE: %pD, %zu bytes at %lld: refused, and writing them again by CPU ended with %zd: the file has zeros there, write the range again\n",
			 rq->file, len, rq->pos, r);
}

/*
 * The file system is done with len bytes over the carriers from block `first` on, and `bad`
 * blocks, in `regions` runs, have sectors that no driver took DMA addresses for. Make them
 * right. The bytes of the request that are right then, or -errno. Blocks.
 */
ssize_t nvfs_repair(const struct nvfs_req *rq, u32 first, size_t len, u32 bad, u32 regions)
{
	const char *fs = file_inode(rq->file)->i_sb->s_type->name;
	ssize_t r;

	if (!rq->write) {
		nvfs_stat_inc(NVFS_ST_SPARSE_IO);
		nvfs_stat_add(NVFS_ST_SPARSE_HOLES, regions);
		nvfs_stat_add(NVFS_ST_SPARSE_BLOCKS, bad);
	}
	if (rq->direct_only) {
		nvfs_say("%s: %pD, %zu bytes at %lld: %u blocks were not moved by DMA (a hole, or %s went through the CPU) and direct only was asked for (-ENOTBLK): use host memory for it\n",
			 rq->write ? "WRITE" : "READ", rq->file, len, rq->pos, bad, fs);
		if (rq->write && !rq->p2p)
			nvfs_unspoil(rq, len);
		return -ENOTBLK;
	}
	if (nvfs_once(rq, 1))
		nvfs_say("%s: %pD, %zu bytes at %lld: %u blocks were not moved by DMA (a hole, or %s went through the CPU): %s\n",
			 rq->write ? "WRITE" : "READ", rq->file, len, rq->pos, bad, fs,
			 rq->write && !rq->p2p ? "written again by the CPU" : "the CPU moved them");
	if (rq->p2p)
		return nvfs_p2p_settle(rq, first, len);
	if (rq->write) {
		nvfs_stat_inc(NVFS_ST_REWRITES);
		return nvfs_by_cpu(rq, len);
	}
	r = nvfs_fill_gpu(rq, first, len);
	if (r < 0)
		return r;
	nvfs_stat_add(NVFS_ST_CPU_READ_BYTES, r);
	return len;
}
