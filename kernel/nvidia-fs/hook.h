/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hook.h - what both forms of the hook (hook_v1.c, hook_v2.c) know: from a page of a request
 * to a place in GPU memory. All of it runs under rcu_read_lock, in any context.
 */
#ifndef NVIDIA_FS_HOOK_H
#define NVIDIA_FS_HOOK_H

#include <linux/blk-mq.h>
#include <linux/mm.h>

#include "nvidia-fs.h"

/* a byte of a carrier, as the block layer names it, told by mapping and place */
struct nvfs_place {
	struct nvfs_mapping *m;
	u64 pos;	/* bytes, in the mapping's blocks */
	u64 gpu_off;	/* bytes, in the pinned range */
};

/* n pages on; right on every memory model, and across two carriers that touch */
static inline struct page *nvfs_page_at(struct page *page, unsigned long n)
{
	return pfn_to_page(page_to_pfn(page) + n);
}

/* 1: found; 0: host memory; -1: a carrier, but of no request */
static inline int nvfs_place(struct page *page, unsigned int off, struct nvfs_place *pl)
{
	struct page *at = nvfs_page_at(page, off >> PAGE_SHIFT);
	const struct nvfs_carrier *c = nvfs_carrier_find(at);
	u32 blk, gpu_blk;

	if (!c)
		return 0;
	pl->m = c->m;
	pl->pos = ((u64)c->first << NVFS_BLOCK_SHIFT) +
		  ((u64)(page_to_pfn(at) - page_to_pfn(c->page)) << PAGE_SHIFT) +
		  (off & ~PAGE_MASK);
	blk = pl->pos >> NVFS_BLOCK_SHIFT;
	gpu_blk = blk < c->m->nblocks ? READ_ONCE(c->m->gpu_blk[blk]) : NVFS_NO_GPU_BLOCK;
	if (gpu_blk == NVFS_NO_GPU_BLOCK)
		return -1;
	pl->gpu_off = ((u64)gpu_blk << NVFS_BLOCK_SHIFT) + (pl->pos & (NVFS_BLOCK_SIZE - 1));
	return 1;
}

/* len bytes from pl on belong to one request, all of them */
static inline bool nvfs_place_owned(const struct nvfs_place *pl, u32 len)
{
	u32 b0 = pl->pos >> NVFS_BLOCK_SHIFT;
	u32 b1 = (pl->pos + len - 1) >> NVFS_BLOCK_SHIFT;

	return b1 < pl->m->nblocks && pl->m->gpu_blk[b1] == pl->m->gpu_blk[b0] + (b1 - b0);
}

/* bytes from gpu_off to the end of its run, for everybody */
static inline u64 nvfs_run_left(const struct nvfs_mapping *m, u64 gpu_off)
{
	u32 end = READ_ONCE(m->pin.run_end[gpu_off >> NVFS_GPU_PAGE_SHIFT]);

	return ((u64)end << NVFS_GPU_PAGE_SHIFT) - gpu_off;
}

/* Is one of the bios from this one on of GPU memory? One look a bio: its pages have one owner. */
static inline bool nvfs_any_carrier(struct bio *bio)
{
	for (; bio; bio = bio->bi_next)
		if (nvfs_carrier_find(bio_page(bio)))
			return true;
	return false;
}

/* the tables; hooks.c hands them to the storage drivers */
extern struct nvfs_dma_rw_ops nvfs_v1_nvme_ops;
extern struct nvfs_dma_rw_ops nvfs_v1_ops;
#ifdef HAVE_BLK_DMA_ITER
extern struct nvfs_dma_rw_blk_iter_ops nvfs_v2_ops;
#endif

/* hook_v1.c: the same in both forms */
bool nvfs_is_gpu_page(struct page *page);
unsigned int nvfs_gpu_index(struct page *page);
unsigned int nvfs_device_priority(struct device *dev, unsigned int gpu_index);
int nvfs_rdma_info(struct scatterlist *sgl, int nents, struct nvfs_rdma_info *info);

#endif /* NVIDIA_FS_HOOK_H */
