// SPDX-License-Identifier: GPL-2.0-only
/*
 * carrier.c - host pages that stand for GPU memory in front of the block layer.
 *
 * A mapping owns as many carrier blocks as its mmap is long. A request takes a range of
 * blocks, any range that is free, so that many requests run on one mapping, also on the
 * same GPU memory; a block belongs to one request at a time. Who finds none waits his
 * turn, first come first served.
 *
 * Carriers are as large as the allocator gives (2 MiB at most): the block layer counts
 * physical segments, and a command is cut where it runs out of them.
 */
#include <linux/bitmap.h>
#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "io.h"
#include "sectors.h"

#define NVFS_CARRIER_ORDER 9		/* 2 MiB where a page has 4 KiB */
#define NVFS_BLOCKS_PER_PAGE (PAGE_SIZE >> NVFS_BLOCK_SHIFT)

/* head page's pfn -> carrier; written by MAP and the teardown, read under RCU */
static DEFINE_XARRAY(nvfs_carriers);

struct nvfs_waiter {
	struct list_head node;	/* nvfs_mapping.waiters */
	struct task_struct *task;
	u32 n;
	u32 first;
	bool granted;		/* nvfs_mapping.lock */
};

/* Out of line: what has a mapping does not come here, and hookcost.sh sees what does. */
static noinline const struct nvfs_carrier *nvfs_carrier_search(unsigned long pfn)
{
	return xa_load(&nvfs_carriers, pfn);
}

/*
 * The carrier that a page belongs to, or NULL for host memory. Any context. A page of a
 * request in flight keeps its carrier alive, so the result needs no reference.
 */
const struct nvfs_carrier *nvfs_carrier_find(struct page *page)
{
	struct folio *folio = page_folio(page);

	/* what processes and the page cache do I/O with has a mapping; carriers have none */
	if (READ_ONCE(folio->mapping))
		return NULL;
	return nvfs_carrier_search(folio_pfn(folio));
}

static int nvfs_carrier_add(struct nvfs_mapping *m, u32 first, u32 order)
{
	struct nvfs_carrier *c = &m->carriers[m->ncarriers];
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	int r;

	if (order)
		gfp |= __GFP_COMP | __GFP_NORETRY;
	c->page = alloc_pages(gfp, order);
	if (!c->page)
		return -ENOMEM;
	c->m = m;
	c->first = first;
	c->order = order;
	r = xa_err(xa_store(&nvfs_carriers, page_to_pfn(c->page), c, GFP_KERNEL));
	if (r) {
		__free_pages(c->page, order);
		return r;
	}
	m->ncarriers++;
	return 0;
}

/* Called by MAP alone. Blocks. On failure nvfs_carriers_free() undoes the part done. */
int nvfs_carriers_alloc(struct nvfs_mapping *m, u32 nblocks)
{
	u32 pages = DIV_ROUND_UP(nblocks, NVFS_BLOCKS_PER_PAGE);
	u32 order = NVFS_CARRIER_ORDER, done = 0;
	int r;

	m->carriers = kvmalloc_array(pages, sizeof(*m->carriers), GFP_KERNEL_ACCOUNT);
	m->gpu_blk = kvmalloc_array(nblocks, sizeof(*m->gpu_blk), GFP_KERNEL_ACCOUNT);
	m->sectors = kvzalloc(nblocks, GFP_KERNEL_ACCOUNT);
	m->busy = bitmap_zalloc(nblocks, GFP_KERNEL_ACCOUNT);
	m->by = kvmalloc(nblocks, GFP_KERNEL_ACCOUNT);
	if (!m->carriers || !m->gpu_blk || !m->sectors || !m->busy || !m->by)
		return -ENOMEM;
	memset32(m->gpu_blk, NVFS_NO_GPU_BLOCK, nblocks);
	memset(m->by, NVFS_NO_PEER, nblocks);
	m->nblocks = nblocks;

	while (done < pages) {
		while ((1u << order) > pages - done)
			order--;
		if (nvfs_fault(NVFS_FAULT_SHADOW_PAGES))
			return -ENOMEM;
		r = nvfs_carrier_add(m, done * NVFS_BLOCKS_PER_PAGE, order);
		if (r == -ENOMEM && order) {
			order--;	/* fragmented memory: smaller ones do, only slower */
			continue;
		}
		if (r)
			return r;
		done += 1u << order;
	}
	return 0;
}

void nvfs_carriers_free(struct nvfs_mapping *m)
{
	u32 i;

	for (i = 0; i < m->ncarriers; i++)
		xa_erase(&nvfs_carriers, page_to_pfn(m->carriers[i].page));
	/* only a request in flight could find them, and it would hold a reference */
	for (i = 0; i < m->ncarriers; i++)
		__free_pages(m->carriers[i].page, m->carriers[i].order);
	m->ncarriers = 0;
	kvfree(m->carriers);
	kvfree(m->gpu_blk);
	kvfree(m->sectors);
	kvfree(m->by);
	bitmap_free(m->busy);
	m->carriers = NULL;
	m->gpu_blk = NULL;
	m->sectors = NULL;
	m->by = NULL;
	m->busy = NULL;
	m->nblocks = 0;
}

/* Index of the carrier that holds a block. */
static u32 nvfs_carrier_of(const struct nvfs_mapping *m, u32 blk)
{
	u32 lo = 0, hi = m->ncarriers;

	while (hi - lo > 1) {
		u32 mid = (lo + hi) / 2;

		if (m->carriers[mid].first <= blk)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* The carrier's memory of a block. */
void *nvfs_block_addr(const struct nvfs_mapping *m, u32 blk)
{
	const struct nvfs_carrier *c = &m->carriers[nvfs_carrier_of(m, blk)];

	return page_address(c->page) + ((u64)(blk - c->first) << NVFS_BLOCK_SHIFT);
}

/* m->lock held */
static bool nvfs_blocks_try(struct nvfs_mapping *m, u32 n, u32 *first)
{
	unsigned long at = bitmap_find_next_zero_area(m->busy, m->nblocks, 0, n, 0);

	if (at >= m->nblocks)
		return false;
	bitmap_set(m->busy, at, n);
	*first = at;
	return true;
}

/* Give waiters what is free, in their order. m->lock held, so no waiter leaves meanwhile. */
static void nvfs_blocks_serve(struct nvfs_mapping *m)
{
	struct nvfs_waiter *w, *tmp;

	list_for_each_entry_safe(w, tmp, &m->waiters, node) {
		if (!nvfs_blocks_try(m, w->n, &w->first))
			break;
		list_del(&w->node);
		w->granted = true;
		wake_up_process(w->task);
	}
}

/*
 * Take n (<= nblocks) consecutive blocks and let them stand for the GPU memory from
 * gpu_blk on. Waits for blocks; -EINTR when the caller is being killed, -EIO when the
 * mapping goes away meanwhile. The caller has entered the mapping.
 */
int nvfs_blocks_take(struct nvfs_mapping *m, u32 n, u32 gpu_blk, u32 *first)
{
	struct nvfs_waiter w = { .task = current, .n = n };
	int r = 0;
	u32 i;

	spin_lock(&m->lock);
	if (list_empty(&m->waiters) && nvfs_blocks_try(m, n, &w.first)) {
		spin_unlock(&m->lock);
	} else {
		list_add_tail(&w.node, &m->waiters);
		for (;;) {
			set_current_state(TASK_KILLABLE);
			if (w.granted)
				break;
			if (m->state != NVFS_READY)
				r = -EIO;
			else if (fatal_signal_pending(current))
				r = -EINTR;
			if (r) {
				list_del(&w.node);
				nvfs_blocks_serve(m);	/* he may have been in the way */
				break;
			}
			spin_unlock(&m->lock);
			schedule();
			spin_lock(&m->lock);
		}
		__set_current_state(TASK_RUNNING);
		spin_unlock(&m->lock);
		if (r)
			return r;
	}
	for (i = 0; i < n; i++)
		m->gpu_blk[w.first + i] = gpu_blk + i;
	memset(m->sectors + w.first, 0, n);
	*first = w.first;
	return 0;
}

/*
 * Blocks that no driver took the address of may hold what the CPU put there: they are
 * zeroed before anybody uses them again.
 */
static void nvfs_blocks_clean(struct nvfs_mapping *m, u32 first, u32 n)
{
	u32 i;

	if (!memchr_inv(m->sectors + first, NVFS_SECTORS_ALL, n))
		return;
	for (i = first; i < first + n; i++)
		if (m->sectors[i] != NVFS_SECTORS_ALL)
			memset(nvfs_block_addr(m, i), 0, NVFS_BLOCK_SIZE);
}

void nvfs_blocks_give(struct nvfs_mapping *m, u32 first, u32 n)
{
	nvfs_blocks_clean(m, first, n);
	memset32(m->gpu_blk + first, NVFS_NO_GPU_BLOCK, n);

	spin_lock(&m->lock);
	bitmap_clear(m->busy, first, n);
	nvfs_blocks_serve(m);
	spin_unlock(&m->lock);
}

/* The state has changed: let everybody who waits look at it. */
void nvfs_blocks_wake_all(struct nvfs_mapping *m)
{
	struct nvfs_waiter *w;

	spin_lock(&m->lock);
	list_for_each_entry(w, &m->waiters, node)
		wake_up_process(w->task);
	spin_unlock(&m->lock);
}

/* Bvecs for n blocks, one a carrier; the number used, or 0 when max is too small. */
u32 nvfs_blocks_bvec(struct nvfs_mapping *m, u32 first, u32 n, struct bio_vec *bv, u32 max)
{
	u32 c = nvfs_carrier_of(m, first), used = 0;

	for (; n; c++) {
		const struct nvfs_carrier *k = &m->carriers[c];
		u32 in = first - k->first;
		u32 have = (NVFS_BLOCKS_PER_PAGE << k->order) - in;
		u64 off = (u64)in << NVFS_BLOCK_SHIFT;

		if (used == max)
			return 0;
		have = min(have, n);
		bvec_set_page(&bv[used++], k->page + (off >> PAGE_SHIFT),
			      have << NVFS_BLOCK_SHIFT, off & ~PAGE_MASK);
		first += have;
		n -= have;
	}
	return used;
}

/*
 * How many of the first len bytes of a range were not DMA-mapped, in blocks that hold
 * any such byte, and in how many runs of blocks. 0: every sector was.
 */
u32 nvfs_blocks_unmapped(struct nvfs_mapping *m, u32 first, size_t len, u32 *regions)
{
	return nvfs_sectors_missing(m->sectors + first, len, regions);
}

/*
 * A driver has taken DMA addresses for len bytes at byte pos of the mapping's blocks.
 * Any context. Idempotent: a requeued request maps again.
 */
void nvfs_blocks_mark(struct nvfs_mapping *m, u64 pos, u32 len)
{
	nvfs_sectors_mark(m->sectors, pos, len);
}

/* ... and the driver is the one of the peer in this slot. After nvfs_blocks_mark(). */
void nvfs_blocks_by(struct nvfs_mapping *m, u64 pos, u32 len, unsigned int slot)
{
	u32 b0 = pos >> NVFS_BLOCK_SHIFT;

	memset(m->by + b0, slot, ((pos + len - 1) >> NVFS_BLOCK_SHIFT) - b0 + 1);
}

/* Add to w which way the first len bytes of a range went. */
void nvfs_blocks_witness(struct nvfs_mapping *m, u32 first, size_t len, struct nvfs_witness *w)
{
	u32 n = DIV_ROUND_UP_ULL(len, NVFS_BLOCK_SIZE), i;
	u64 dma = 0;

	for (i = first; i < first + n; i++) {
		dma += (u64)hweight8(m->sectors[i]) << SECTOR_SHIFT;
		if (m->sectors[i] && m->by[i] < NVFS_MAX_PEERS)
			w->slots |= BIT_ULL(m->by[i]);
	}
	dma = min_t(u64, dma, len);	/* the last sector is moved whole */
	w->dma_bytes += dma;
	w->cpu_bytes += len - dma;
}
