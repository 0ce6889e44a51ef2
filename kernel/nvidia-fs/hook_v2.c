// SPDX-License-Identifier: GPL-2.0-only
/*
 * hook_v2.c - the iterator form of the hook: the driver asks for one piece of GPU memory
 * after the other, each as long as it goes on in DMA addresses, over bvecs and bios.
 *
 * As in hook_v1.c nothing sleeps or locks here. Where the driver is in the request stands
 * in its iterator, in the block layer's own members, so that nothing is allocated.
 *
 * References: each piece holds one of the mapping that iter_start named as the cookie,
 * since unmap_page is given no other name. A piece of another mapping (two processes' bios
 * merged into one request) holds one of the cookie's mapping, too: its own mapping is kept
 * by the request of io.c that owns the carriers, which ends only after the driver's.
 */
#include <linux/blk-mq.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "hook.h"
#include "trace.h"

#ifdef HAVE_BLK_DMA_ITER
#include <linux/blk-mq-dma.h>
#include <linux/blk-integrity.h>
#include <linux/dma-mapping.h>

/* the bvec at the iterator; false at the end of the request */
static bool nvfs_v2_bvec(struct blk_map_iter *it, struct bio_vec *bv)
{
	while (!it->iter.bi_size) {
		if (!it->bio->bi_next)
			return false;	/* and stays at the end, however often asked */
		it->bio = it->bio->bi_next;
		it->iter = it->bio->bi_iter;
		it->bvecs = it->bio->bi_io_vec;
	}
	*bv = mp_bvec_iter_bvec(it->bvecs, it->iter);
	return true;
}

/* The first bytes of a piece. 0, or NVFS_IO_ERR. */
static int nvfs_v2_begin(struct nvfs_peer *peer, const struct nvfs_place *pl,
			 struct blk_dma_iter *iter, u64 *run_end)
{
	u32 page = pl->gpu_off >> NVFS_GPU_PAGE_SHIFT;
	struct nvfs_peer_map *pm = rcu_dereference(pl->m->peer_map[peer->slot]);

	if (!pm) {
		set_bit(0, &pl->m->missed);
		return NVFS_IO_ERR;
	}
	if (page >= pl->m->pin.pages)
		return NVFS_IO_ERR;
	iter->addr = pm->dma->dma_addresses[page] + (pl->gpu_off & (NVFS_GPU_PAGE_SIZE - 1));
	*run_end = (u64)pm->run_end[page] << NVFS_GPU_PAGE_SHIFT;
	return 0;
}

/*
 * The next piece: from the iterator's place on, as long as mapping, block and GPU address
 * go on. 1 (and *end, just past it), 0 at the end, NVFS_BAD_REQ at host memory, NVFS_IO_ERR.
 * RCU read lock held.
 */
static int nvfs_v2_piece(struct nvfs_peer *peer, struct blk_dma_iter *iter, struct nvfs_place *end)
{
	struct nvfs_place pl;
	u64 run_end = 0, n;
	struct bio_vec bv;
	int r;

	iter->len = 0;
	while (nvfs_v2_bvec(&iter->iter, &bv)) {
		r = nvfs_place(bv.bv_page, bv.bv_offset, &pl);
		if (r <= 0)	/* a piece before it is whole: the next call sees this */
			return iter->len ? 1 : r ? NVFS_IO_ERR : NVFS_BAD_REQ;
		if (!iter->len) {
			r = nvfs_v2_begin(peer, &pl, iter, &run_end);
			if (r)
				return r;
		} else if (pl.m != end->m || pl.pos != end->pos || pl.gpu_off != end->gpu_off ||
			   pl.gpu_off >= run_end) {
			return 1;
		}
		n = min_t(u64, bv.bv_len, run_end - pl.gpu_off);
		n = min_t(u64, n, ((u64)pl.m->nblocks << NVFS_BLOCK_SHIFT) - pl.pos);
		n = min_t(u64, n, U32_MAX - iter->len);
		if (!n || !nvfs_place_owned(&pl, n))
			return iter->len ? 1 : NVFS_IO_ERR;
		nvfs_blocks_mark(pl.m, pl.pos, n);
		nvfs_blocks_by(pl.m, pl.pos, n, peer->slot);
		bvec_iter_advance(iter->iter.bvecs, &iter->iter.iter, n);
		iter->len += n;
		*end = pl;
		end->pos += n;
		end->gpu_off += n;
	}
	return iter->len ? 1 : 0;
}

/*
 * Hand out the next piece, with its reference of m. A request that is of GPU memory only in
 * part fails, counted; its earlier pieces come back through unmap_page. RCU read lock held.
 */
static int nvfs_v2_give(struct device *dev, struct nvfs_mapping *m, struct blk_dma_iter *iter)
{
	struct nvfs_peer *peer = nvfs_peer_find(dev);
	struct nvfs_place end = { };
	int r;

	if (!peer || READ_ONCE(peer->dead)) {
		nvfs_peer_missed(m, dev);
		r = NVFS_IO_ERR;
		goto fail;
	}
	/* counted first: who drains the peer waits for what it does not see yet */
	atomic_inc(&peer->segments);
	r = nvfs_fault(NVFS_FAULT_DMA) ? NVFS_IO_ERR : nvfs_v2_piece(peer, iter, &end);
	if (r == 1) {
		kref_get(&m->ref);	/* its own request holds one, so this never finds zero */
		trace_nvfs_dma_map(dev, end.m, end.gpu_off - iter->len, iter->len, iter->addr);
		return 1;
	}
	atomic_dec(&peer->segments);
	if (!r)
		return 0;
fail:
	nvfs_stat_inc(r == NVFS_BAD_REQ ? NVFS_ST_MIXED : NVFS_ST_DMA_MAP_ERR);
	iter->status = BLK_STS_IOERR;
	return 0;
}

static int nvfs_v2_iter_start(struct request *req, struct device *dev,
			      struct dma_iova_state *state, struct blk_dma_iter *iter,
			      void **cookie)
{
	struct nvfs_place pl;
	int r;

	iter->status = BLK_STS_OK;
	if ((req_op(req) != REQ_OP_READ && req_op(req) != REQ_OP_WRITE) || !req->bio ||
	    (req->rq_flags & RQF_SPECIAL_PAYLOAD) || blk_integrity_rq(req))
		return 0;
	rcu_read_lock();
	r = nvfs_place(bio_page(req->bio), bio_offset(req->bio), &pl);
	if (r == 1) {
		iter->p2pdma.map = PCI_P2PDMA_MAP_NONE;
		iter->iter.bio = req->bio;
		iter->iter.iter = req->bio->bi_iter;
		iter->iter.bvecs = req->bio->bi_io_vec;
		iter->iter.is_integrity = false;
		*cookie = pl.m;
		r = nvfs_v2_give(dev, pl.m, iter);
	} else if (r) {
		nvfs_stat_inc(NVFS_ST_DMA_MAP_ERR);
		iter->status = BLK_STS_IOERR;
		r = 0;
	} else if (nvfs_any_carrier(req->bio->bi_next)) {
		nvfs_stat_inc(NVFS_ST_MIXED);
		iter->status = BLK_STS_IOERR;
	}
	rcu_read_unlock();
	return r;
}

static int nvfs_v2_iter_next(struct request *req, struct device *dev,
			     struct dma_iova_state *state, struct blk_dma_iter *iter)
{
	const struct nvfs_carrier *c;
	int r = 0;

	rcu_read_lock();
	/* the cookie again: iter_start looked at the same page */
	c = nvfs_carrier_find(bio_page(req->bio));
	if (c)
		r = nvfs_v2_give(dev, c->m, iter);
	else
		iter->status = BLK_STS_IOERR;
	rcu_read_unlock();
	return r;
}

static int nvfs_v2_unmap_page(struct device *dev, void *cookie, dma_addr_t addr, size_t size,
			      enum dma_data_direction dir)
{
	struct nvfs_peer *peer;

	if (!cookie)
		return NVFS_IO_ERR;
	rcu_read_lock();
	peer = nvfs_peer_find(dev);
	if (peer)
		atomic_dec(&peer->segments);
	rcu_read_unlock();
	trace_nvfs_dma_unmap(dev, cookie, size, addr);
	nvfs_mapping_put(cookie);
	return 0;
}

struct nvfs_dma_rw_blk_iter_ops nvfs_v2_ops = {
	.ft_bmap = NVFS_FT_V2,
	.nvfs_blk_rq_dma_map_iter_start = nvfs_v2_iter_start,
	.nvfs_blk_rq_dma_map_iter_next = nvfs_v2_iter_next,
	.nvfs_dma_unmap_page = nvfs_v2_unmap_page,
	.nvfs_is_gpu_page = nvfs_is_gpu_page,
	.nvfs_gpu_index = nvfs_gpu_index,
	.nvfs_device_priority = nvfs_device_priority,
	.nvfs_get_gpu_sglist_rdma_info = nvfs_rdma_info,
};

#endif /* HAVE_BLK_DMA_ITER */
