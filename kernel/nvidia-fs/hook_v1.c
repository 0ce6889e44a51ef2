// SPDX-License-Identifier: GPL-2.0-only
/*
 * hook_v1.c - the scatterlist form of the hook: the table that storage drivers call, and
 * how drivers are found.
 *
 * The callbacks run in the dispatch path and in hard IRQ: no sleeping, no locks. A page
 * leads to its carrier, the carrier to mapping and block, the block to a place in the
 * pinned GPU range, and that, for the device that asks, to a DMA address. All of it was
 * prepared in process context; what is missing fails the request.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/device/driver.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/seq_file.h>

#include "nvidia-fs.h"
#include "log.h"

/* a byte of a carrier, as the block layer names it, told by mapping and place */
struct nvfs_place {
	struct nvfs_mapping *m;
	u64 pos;	/* bytes, in the mapping's blocks */
	u64 gpu_off;	/* bytes, in the pinned range */
};

/* n pages on; right on every memory model, and across two carriers that touch */
static struct page *nvfs_page_at(struct page *page, unsigned long n)
{
	return pfn_to_page(page_to_pfn(page) + n);
}

/* 1: found; 0: host memory; -1: a carrier, but of no request */
static int nvfs_place(struct page *page, unsigned int off, struct nvfs_place *pl)
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
static bool nvfs_place_owned(const struct nvfs_place *pl, u32 len)
{
	u32 b0 = pl->pos >> NVFS_BLOCK_SHIFT;
	u32 b1 = (pl->pos + len - 1) >> NVFS_BLOCK_SHIFT;

	return b1 < pl->m->nblocks && pl->m->gpu_blk[b1] == pl->m->gpu_blk[b0] + (b1 - b0);
}

/* bytes from gpu_off to the end of its run, for everybody */
static u64 nvfs_run_left(const struct nvfs_mapping *m, u64 gpu_off)
{
	u32 end = READ_ONCE(m->pin.run_end[gpu_off >> NVFS_GPU_PAGE_SHIFT]);

	return ((u64)end << NVFS_GPU_PAGE_SHIFT) - gpu_off;
}

/* the list being built, and the segment that may still grow */
struct nvfs_sg_walk {
	struct scatterlist *sg;		/* the last entry filled, or NULL */
	struct scatterlist *next;
	int n;
	int marked;			/* where the original's consumers put the end mark */
	bool past;			/* beyond such a mark */
	struct nvfs_place end;		/* just past the last entry */
};

/* Append, or join; false when the list has no room. */
static bool nvfs_sg_push(struct nvfs_sg_walk *w, struct page *page, unsigned int off, u32 len,
			 const struct nvfs_place *pl)
{
	bool last;

	/* the same mapping, the next block, the next GPU byte, and the same run as before */
	if (w->sg && w->end.m == pl->m && w->end.pos == pl->pos && w->end.gpu_off == pl->gpu_off &&
	    nvfs_run_left(pl->m, pl->gpu_off - 1) > 1) {
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
			w->next->page_link = SG_END;
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
 * Build the list of GPU segments of a request. All pages carriers: their number; none or
 * only some: 0, the driver takes its stock path, which is right for the host pages (and
 * the request that owns the carriers sees that nobody mapped them).
 */
static int nvfs_v1_map_sg(struct request_queue *q, struct request *req, struct scatterlist *sgl)
{
	struct nvfs_sg_walk w = { .next = sgl, .marked = req->nr_phys_segments };
	struct req_iterator iter;
	struct bio_vec bv;
	bool host = false;
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
				if (!w.n)
					goto out;	/* the usual host request */
				host = true;
				goto out;
			}
			n = min_t(u64, len, nvfs_run_left(pl.m, pl.gpu_off));
			n = min_t(u64, n, ((u64)pl.m->nblocks << NVFS_BLOCK_SHIFT) - pl.pos);
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
	if (host) {
		nvfs_stat_inc(NVFS_ST_MIXED);
		return 0;
	}
	if (r <= 0)
		return r < 0 ? NVFS_IO_ERR : 0;
	sg_mark_end(w.sg);
	if (w.n > req->nr_phys_segments)
		req->nr_phys_segments = w.n;
	return w.n;
}

/* RCU read lock held. 0, NVFS_BAD_REQ for host memory, NVFS_IO_ERR */
static int nvfs_v1_map_one(struct nvfs_peer *peer, struct scatterlist *sg)
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
	if (last >= pl.m->pin.pages || last >= pm->run_end[page] ||
	    !nvfs_place_owned(&pl, sg->length))
		return NVFS_IO_ERR;
	sg_dma_address(sg) = pm->dma->dma_addresses[page] +
			     (pl.gpu_off & (NVFS_GPU_PAGE_SIZE - 1));
	sg_dma_len(sg) = sg->length;
	kref_get(&pl.m->ref);	/* the request holds one, so this never finds zero */
	nvfs_blocks_mark(pl.m, pl.pos, sg->length);
	return 0;
}

static void nvfs_v1_unmap_one(struct scatterlist *sg)
{
	const struct nvfs_carrier *c = nvfs_carrier_find(sg_page(sg));

	nvfs_mapping_put(c->m);
}

static int nvfs_v1_dma_map(struct device *dev, struct scatterlist *sgl, int nents,
			   enum dma_data_direction dir, unsigned long attrs)
{
	struct nvfs_peer *peer;
	struct scatterlist *sg;
	int i, j, r = NVFS_IO_ERR;

	rcu_read_lock();
	peer = nvfs_peer_find(dev);
	if (!peer || READ_ONCE(peer->dead)) {
		struct nvfs_place pl;

		if (nvfs_place(sg_page(sgl), sgl->offset, &pl) == 1)
			set_bit(0, &pl.m->missed);
		else
			r = NVFS_BAD_REQ;
		goto out;
	}
	/* counted first: who drains the peer waits for what it does not see yet */
	atomic_add(nents, &peer->segments);
	for_each_sg(sgl, sg, nents, i) {
		r = nvfs_v1_map_one(peer, sg);
		if (r)
			goto undo;
	}
	r = nents;
	goto out;
undo:
	for_each_sg(sgl, sg, i, j)
		nvfs_v1_unmap_one(sg);
	atomic_sub(nents, &peer->segments);
	if (i)
		r = NVFS_IO_ERR;	/* some were ours: mixed */
out:
	rcu_read_unlock();
	if (r == NVFS_IO_ERR)
		nvfs_stat_inc(NVFS_ST_DMA_MAP_ERR);
	return r;
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
		nvfs_v1_unmap_one(sg);
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

static bool nvfs_v1_is_gpu_page(struct page *page)
{
	bool r;

	rcu_read_lock();
	r = nvfs_carrier_find(page);
	rcu_read_unlock();
	return r;
}

static unsigned int nvfs_v1_gpu_index(struct page *page)
{
	return UINT_MAX;		/* unknown */
}

static unsigned int nvfs_v1_device_priority(struct device *dev, unsigned int gpu_index)
{
	return UINT_MAX;		/* unknown */
}

static int nvfs_v1_rdma_info(struct scatterlist *sgl, int nents, struct nvfs_rdma_info *info)
{
	return NVFS_IO_ERR;		/* no mapping has a registered key */
}

static struct nvfs_dma_rw_ops nvfs_v1_ops = {
	/* only what works: the last two answer "unknown" and are not announced */
	.ft_bmap = NVFS_FT_PREP_SGLIST | NVFS_FT_MAP_SGLIST | NVFS_FT_IS_GPU_PAGE,
	.nvfs_blk_rq_map_sg = nvfs_v1_map_sg,
	.nvfs_dma_map_sg_attrs = nvfs_v1_dma_map,
	.nvfs_dma_unmap_sg = nvfs_v1_dma_unmap,
	.nvfs_is_gpu_page = nvfs_v1_is_gpu_page,
	.nvfs_gpu_index = nvfs_v1_gpu_index,
	.nvfs_device_priority = nvfs_v1_device_priority,
	.nvfs_get_gpu_sglist_rdma_info = nvfs_v1_rdma_info,
};

/* -- storage drivers -- */

struct nvfs_hook {
	const char *key;		/* in /proc/driver/nvidia-fs/modules */
	const char *pci_driver;		/* to name its version, or NULL */
	const char *reg_name;
	const char *unreg_name;
	nvfs_unregister_dma_ops_fn unreg;	/* NULL: not attached */
	const char *reason;		/* why not */
};

static struct nvfs_hook nvfs_hooks[] = {	/* nvfs_hook_lock */
	{
		.key = "nvme",
		.pci_driver = "nvme",
		.reg_name = "nvme_v1_register_nvfs_dma_ops",
		.unreg_name = "nvme_v1_unregister_nvfs_dma_ops",
	},
};

static DEFINE_MUTEX(nvfs_hook_lock);
static unsigned int nvfs_hooks_attached;	/* written under nvfs_hook_lock */

bool nvfs_hooks_any(void)
{
	return READ_ONCE(nvfs_hooks_attached);
}

static void nvfs_hook_attach(struct nvfs_hook *h)
{
	nvfs_register_dma_ops_fn reg = __symbol_get(h->reg_name);
	nvfs_unregister_dma_ops_fn unreg = __symbol_get(h->unreg_name);
	const char *reason = NULL;
	int r = 0;

	if (!reg && !unreg) {
		reason = "no loaded module exports its hook: is it loaded, and is it the patched one?";
	} else if (!reg) {
		reason = "half a hook: the register symbol is missing";
	} else if (!unreg) {
		reason = "half a hook: the unregister symbol is missing";
	} else {
		r = reg(&nvfs_v1_ops);
		if (r)
			reason = "it refused the v1 table";
	}

	if (reason) {
		if (reason != h->reason)	/* a new one */
			nvfs_note("%s: not attached: %s (%s, %d)\n", h->key, reason, h->reg_name,
				  r);
		if (unreg)
			__symbol_put(h->unreg_name);
	} else {
		h->unreg = unreg;	/* its reference keeps the driver loaded */
		WRITE_ONCE(nvfs_hooks_attached, nvfs_hooks_attached + 1);
		nvfs_note("%s: attached (v1)\n", h->key);
	}
	h->reason = reason;
	if (reg)
		__symbol_put(h->reg_name);
}

/* Attach what is loaded and not attached. Blocks. */
void nvfs_hooks_attach(void)
{
	unsigned int i;

	mutex_lock(&nvfs_hook_lock);
	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++)
		if (!nvfs_hooks[i].unreg)
			nvfs_hook_attach(&nvfs_hooks[i]);
	mutex_unlock(&nvfs_hook_lock);
}

/* Detach all; returns when no driver holds one of our segments. */
void nvfs_hooks_detach(void)
{
	unsigned int i;

	mutex_lock(&nvfs_hook_lock);
	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++) {
		struct nvfs_hook *h = &nvfs_hooks[i];

		if (!h->unreg)
			continue;
		h->unreg();
		h->unreg = NULL;
		WRITE_ONCE(nvfs_hooks_attached, nvfs_hooks_attached - 1);
		__symbol_put(h->unreg_name);
	}
	mutex_unlock(&nvfs_hook_lock);
}

static const char *nvfs_hook_version(const struct nvfs_hook *h)
{
	struct device_driver *drv = NULL;

	if (h->pci_driver)
		drv = driver_find(h->pci_driver, &pci_bus_type);
	return drv && drv->owner ? drv->owner->version : NULL;
}

void nvfs_hooks_show(struct seq_file *s)
{
	unsigned int i;

	mutex_lock(&nvfs_hook_lock);
	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++)
		if (nvfs_hooks[i].unreg)
			seq_printf(s, "%s: %s\n", nvfs_hooks[i].key,
				   nvfs_hook_version(&nvfs_hooks[i]) ?: "(null)");
	mutex_unlock(&nvfs_hook_lock);
	seq_puts(s, "wekafsio: 1\n");
}

void nvfs_hooks_show_reasons(struct seq_file *s)
{
	unsigned int i;

	mutex_lock(&nvfs_hook_lock);
	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++)
		seq_printf(s, "driver %s: %s%s\n", nvfs_hooks[i].key,
			   nvfs_hooks[i].unreg ? "attached (v1)" : "not attached: ",
			   nvfs_hooks[i].unreg ? "" : nvfs_hooks[i].reason ?: "not tried");
	mutex_unlock(&nvfs_hook_lock);
}
