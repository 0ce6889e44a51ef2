// SPDX-License-Identifier: GPL-2.0-only
/*
 * hook_v1.c - the scatterlist form of the hook: the tables that storage drivers call.
 *
 * The callbacks run in the dispatch path and in hard IRQ: no sleeping, no locks. A page
 * leads to its carrier, the carrier to mapping and block, the block to a place in the
 * pinned GPU range, and that, for the device that asks, to a DMA address. All of it was
 * prepared in process context; what is missing fails the request.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/scatterlist.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "hook.h"
#include "trace.h"

/* the list being built, and the segment that may still grow */
struct nvfs_sg_walk {
	struct scatterlist *sg;		/* the last entry filled, or NULL */
	struct scatterlist *next;
	int n;
	int marked;			/* where the original's consumers put the end mark */
	bool past;			/* beyond such a mark */
	u32 max;			/* bytes in an entry */
	struct nvfs_place end;		/* just past the last entry */
};

/* Append, or join; false when the list has no room. */
static bool nvfs_sg_push(struct nvfs_sg_walk *w, struct page *page, unsigned int off, u32 len,
			 const struct nvfs_place *pl)
{
	bool last;

	/* the same mapping, the next block, the next GPU byte, and the same run as before */
	if (w->sg && w->end.m == pl->m && w->end.pos == pl->pos && w->end.gpu_off == pl->gpu_off &&
	    nvfs_run_left(pl->m, pl->gpu_off - 1) > 1 && len <= w->max - w->sg->length) {
		w->sg->length += len;
	} else {
		if (!w->next)
			return false;
		w->sg = w->next;
		last = sg_is_last(w->sg);
		if (last && w->n + 1 < NVFS_SG_IMPLIED && (w->past || w->n + 1 == w->marked)) {
			/* past the mark, but inside what the original's consumers have */
			w->past = true;
			w->next = w->sg + 1;
			sg_init_table(w->next, 1);
		} else {
			w->next = last ? NULL : sg_next(w->sg);
		}
		sg_unmark_end(w->sg);
		sg_set_page(w->sg, nvfs_page_at(page, off >> PAGE_SHIFT), len, off & ~PAGE_MASK);
		w->n++;
	}
	w->end = *pl;
	w->end.pos += len;
	w->end.gpu_off += len;
	return true;
}

/*
 * Build the list of GPU segments of a request, of at most max bytes each. All pages carriers:
 * their number; none: 0, the driver takes its own path. A request of both (two owners' bios
 * were merged) fails: the driver's own path would store the carriers' zeros in a file.
 */
static int nvfs_v1_map_sg(struct request *req, struct scatterlist *sgl, u32 max)
{
	struct nvfs_sg_walk w = { .next = sgl, .marked = req->nr_phys_segments, .max = max };
	struct req_iterator iter;
	struct bio_vec bv;
	bool mixed = false;
	int r = 0;

	rcu_read_lock();
	rq_for_each_bvec(bv, req, iter) {
		unsigned int off = bv.bv_offset, len = bv.bv_len;

		while (len) {
			struct nvfs_place pl;
			u32 n;

			r = nvfs_place(bv.bv_page, off, &pl);
			if (r < 0)
				goto out;
			if (!r) {
				mixed = w.n || nvfs_any_carrier(iter.bio->bi_next);
				goto out;
			}
			n = min_t(u64, len, nvfs_run_left(pl.m, pl.gpu_off));
			n = min_t(u64, n, ((u64)pl.m->nblocks << NVFS_BLOCK_SHIFT) - pl.pos);
			n = min(n, max);
			r = -1;
			if (!nvfs_place_owned(&pl, n) ||
			    !nvfs_sg_push(&w, bv.bv_page, off, n, &pl)) {
				nvfs_stat_inc(NVFS_ST_SG_EXT);
				goto out;
			}
			off += n;
			len -= n;
			r = w.n;
		}
	}
out:
	rcu_read_unlock();
	if (mixed) {
		nvfs_stat_inc(NVFS_ST_MIXED);
		return NVFS_IO_ERR;
	}
	if (r <= 0)
		return r < 0 ? NVFS_IO_ERR : 0;
	sg_mark_end(w.sg);
	if (w.n > req->nr_phys_segments)
		req->nr_phys_segments = w.n;
	return w.n;
}

/* an NVMe function has no limit of its own: its driver builds lists of any run */
static int nvfs_v1_map_sg_nvme(struct request_queue *q, struct request *req,
			       struct scatterlist *sgl)
{
	return nvfs_v1_map_sg(req, sgl, U32_MAX);
}

static int nvfs_v1_map_sg_any(struct request_queue *q, struct request *req,
			      struct scatterlist *sgl)
{
	return nvfs_v1_map_sg(req, sgl, queue_max_segment_size(q));
}

/* RCU read lock held. 0, NVFS_BAD_REQ for host memory, NVFS_IO_ERR */
static int nvfs_v1_map_one(struct device *dev, struct nvfs_peer *peer, struct scatterlist *sg)
{
	struct nvfs_peer_map *pm;
	struct nvfs_place pl;
	u32 page, last;
	int r;

	r = nvfs_place(sg_page(sg), sg->offset, &pl);
	if (r <= 0)
		return r ? NVFS_IO_ERR : NVFS_BAD_REQ;
	pm = rcu_dereference(pl.m->peer_map[peer->slot]);
	if (!pm) {
		set_bit(0, &pl.m->missed);
		return NVFS_IO_ERR;
	}
	page = pl.gpu_off >> NVFS_GPU_PAGE_SHIFT;
	last = (pl.gpu_off + sg->length - 1) >> NVFS_GPU_PAGE_SHIFT;
	if (nvfs_fault(NVFS_FAULT_DMA) || last >= pl.m->pin.pages || last >= pm->run_end[page] ||
	    !nvfs_place_owned(&pl, sg->length))
		return NVFS_IO_ERR;
	sg_dma_address(sg) = pm->dma->dma_addresses[page] +
			     (pl.gpu_off & (NVFS_GPU_PAGE_SIZE - 1));
	sg_dma_len(sg) = sg->length;
	kref_get(&pl.m->ref);	/* the request holds one, so this never finds zero */
	nvfs_blocks_mark(pl.m, pl.pos, sg->length);
	nvfs_blocks_by(pl.m, pl.pos, sg->length, peer->slot);
	trace_nvfs_dma_map(dev, pl.m, pl.gpu_off, sg->length, sg_dma_address(sg));
	return 0;
}

static void nvfs_v1_unmap_one(struct device *dev, struct scatterlist *sg)
{
	const struct nvfs_carrier *c = nvfs_carrier_find(sg_page(sg));

	trace_nvfs_dma_unmap(dev, c->m, sg_dma_len(sg), sg_dma_address(sg));
	nvfs_mapping_put(c->m);
}

/* RCU read lock held. Is an entry of GPU memory? */
static bool nvfs_v1_any(struct scatterlist *sgl, int nents)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i)
		if (nvfs_carrier_find(sg_page(sg)))
			return true;
	return false;
}

/* All entries mapped: 0. None of GPU memory: NVFS_BAD_REQ. Else NVFS_IO_ERR, none is held. */
static int nvfs_v1_map_all(struct device *dev, struct nvfs_peer *peer,
			   struct scatterlist *sgl, int nents)
{
	struct scatterlist *sg;
	int i, j, r = 0;

	/* counted first: who drains the peer waits for what it does not see yet */
	atomic_add(nents, &peer->segments);
	for_each_sg(sgl, sg, nents, i) {
		r = nvfs_v1_map_one(dev, peer, sg);
		if (r)
			break;
	}
	if (!r)
		return 0;
	for_each_sg(sgl, sg, i, j)
		nvfs_v1_unmap_one(dev, sg);
	atomic_sub(nents, &peer->segments);
	if (r == NVFS_BAD_REQ && nvfs_v1_any(sgl, nents)) {
		nvfs_stat_inc(NVFS_ST_MIXED);
		return NVFS_IO_ERR;
	}
	if (r == NVFS_IO_ERR)
		nvfs_stat_inc(NVFS_ST_DMA_MAP_ERR);
	return r;
}

static int nvfs_v1_dma_map(struct device *dev, struct scatterlist *sgl, int nents,
			   enum dma_data_direction dir, unsigned long attrs)
{
	struct nvfs_peer *peer;
	struct nvfs_place pl;
	int r;

	rcu_read_lock();
	peer = nvfs_peer_find(dev);
	if (peer && !READ_ONCE(peer->dead)) {
		r = nvfs_v1_map_all(dev, peer, sgl, nents);
	} else if (!nvfs_v1_any(sgl, nents)) {
		r = NVFS_BAD_REQ;
	} else {
		if (nvfs_place(sg_page(sgl), sgl->offset, &pl) == 1)
			nvfs_peer_missed(pl.m, dev);
		nvfs_stat_inc(NVFS_ST_DMA_MAP_ERR);
		r = NVFS_IO_ERR;
	}
	rcu_read_unlock();
	return r ?: nents;
}

static int nvfs_v1_dma_unmap(struct device *dev, struct scatterlist *sgl, int nents,
			     enum dma_data_direction dir)
{
	struct nvfs_peer *peer;
	struct scatterlist *sg;
	int i, n = 0;

	rcu_read_lock();
	for_each_sg(sgl, sg, nents, i) {
		if (!nvfs_carrier_find(sg_page(sg)))
			continue;
		nvfs_v1_unmap_one(dev, sg);
		n++;
	}
	if (n) {
		peer = nvfs_peer_find(dev);
		if (peer)
			atomic_sub(n, &peer->segments);
	}
	rcu_read_unlock();
	if (n && n != nents) {
		nvfs_stat_inc(NVFS_ST_MIXED);
		return NVFS_IO_ERR;
	}
	return n;
}

bool nvfs_is_gpu_page(struct page *page)
{
	bool r;

	rcu_read_lock();
	r = nvfs_carrier_find(page);
	rcu_read_unlock();
	return r;
}

unsigned int nvfs_gpu_index(struct page *page)
{
	return UINT_MAX;		/* unknown */
}

unsigned int nvfs_device_priority(struct device *dev, unsigned int gpu_index)
{
	return UINT_MAX;		/* unknown */
}

int nvfs_rdma_info(struct scatterlist *sgl, int nents, struct nvfs_rdma_info *info)
{
	return NVFS_IO_ERR;		/* no mapping has a registered key */
}

#define NVFS_V1_OPS(map_sg)                                                                 \
	{                                                                                   \
		.ft_bmap = NVFS_V1_BITS, .nvfs_blk_rq_map_sg = map_sg,                      \
		.nvfs_dma_map_sg_attrs = nvfs_v1_dma_map,                                   \
		.nvfs_dma_unmap_sg = nvfs_v1_dma_unmap, .nvfs_is_gpu_page = nvfs_is_gpu_page, \
		.nvfs_gpu_index = nvfs_gpu_index,                                           \
		.nvfs_device_priority = nvfs_device_priority,                               \
		.nvfs_get_gpu_sglist_rdma_info = nvfs_rdma_info,                            \
	}

/*
 * Bit 4 is not announced: no mapping has a key. Bit 3 is, since Lustre takes no table
 * without it, and "unknown" is an answer.
 */
#define NVFS_V1_BITS (NVFS_FT_V1 & ~NVFS_FT_GPU_SGLIST_RDMA)

struct nvfs_dma_rw_ops nvfs_v1_nvme_ops = NVFS_V1_OPS(nvfs_v1_map_sg_nvme);
struct nvfs_dma_rw_ops nvfs_v1_ops = NVFS_V1_OPS(nvfs_v1_map_sg_any);
