// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvfs_v2.c - ABI v2: the provider walks the request and gives one mapped piece at a time.
 * For drivers that map their own requests with the block layer's DMA iterator.
 */
#define pr_fmt(fmt) "nvme: nvfs: " fmt

#include <linux/blk-mq.h>
#include <linux/blk-mq-dma.h>
#include <linux/dma-mapping.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/printk.h>

#include "nvfs.h"

#define NVFS_FT_NEEDED (NVFS_FT_ITER_START | NVFS_FT_ITER_NEXT)

/*
 * Pieces mapped, in rq->sgl; 0: not the provider's, nothing is held; negative: failed,
 * nothing is held, and *why may have been set. Atomic.
 *
 * A provider tells host memory and an error apart by iter.status alone, and may leave the
 * iterator as it was: so it is set up before.
 */
int nvfs_form_map(struct nvfs_rq *rq, struct request *req, unsigned int room, const char **why)
{
	const struct nvfs_dma_rw_blk_iter_ops *ops = rq->ops;
	struct dma_iova_state state = { };
	struct blk_dma_iter iter = { .status = BLK_STS_OK };
	int more;

	rq->nents = 0;
	more = ops->nvfs_blk_rq_dma_map_iter_start(req, rq->dev, &state, &iter, &rq->cookie);
	while (more > 0 && rq->nents < room) {
		sg_dma_address(&rq->sgl[rq->nents]) = iter.addr;
		sg_dma_len(&rq->sgl[rq->nents]) = iter.len;
		rq->nents++;
		more = ops->nvfs_blk_rq_dma_map_iter_next(req, rq->dev, &state, &iter);
	}
	if (more > 0) {
		*why = "more pieces of GPU memory than the request can have";
		ops->nvfs_dma_unmap_page(rq->dev, rq->cookie, iter.addr, iter.len, rq->dir);
	} else if (!more && iter.status == BLK_STS_OK) {
		return rq->nents;
	}
	nvfs_form_unmap(rq);
	return NVFS_IO_ERR;
}

/* How many pieces the provider took back. Any context. */
int nvfs_form_unmap(struct nvfs_rq *rq)
{
	const struct nvfs_dma_rw_blk_iter_ops *ops = rq->ops;
	int i, n = 0;

	for (i = 0; i < rq->nents; i++)
		if (!ops->nvfs_dma_unmap_page(rq->dev, rq->cookie, sg_dma_address(&rq->sgl[i]),
					      sg_dma_len(&rq->sgl[i]), rq->dir))
			n++;
	return n;
}

/**
 * nvme_v2_register_nvfs_dma_ops() - let a provider own requests of this driver
 * @ops: its table; must stay valid until nvme_v2_unregister_nvfs_dma_ops() has returned
 *
 * May sleep. Returns 0, -EINVAL (no table, or callbacks missing), -EOPNOTSUPP (feature
 * bits 5 and 6 are needed), -EBUSY (somebody is registered), -ENOMEM.
 */
int nvme_v2_register_nvfs_dma_ops(struct nvfs_dma_rw_blk_iter_ops *ops)
{
	unsigned long long missing;

	if (!ops)
		return -EINVAL;
	missing = NVFS_FT_NEEDED & ~ops->ft_bmap;
	if (missing) {
		pr_err("register: the provider lacks%s%s (feature bits %#llx): load one that speaks ABI v2\n",
		       missing & NVFS_FT_ITER_START ? " bit 5 (iter start)" : "",
		       missing & NVFS_FT_ITER_NEXT ? " bit 6 (iter next)" : "", ops->ft_bmap);
		return -EOPNOTSUPP;
	}
	if (!ops->nvfs_blk_rq_dma_map_iter_start || !ops->nvfs_blk_rq_dma_map_iter_next ||
	    !ops->nvfs_dma_unmap_page ||
	    ((ops->ft_bmap & NVFS_FT_IS_GPU_PAGE) && !ops->nvfs_is_gpu_page))
		return -EINVAL;
	return nvfs_register(ops, ops->ft_bmap, ops->nvfs_is_gpu_page,
			     ops->nvfs_blk_rq_dma_map_iter_start);
}
EXPORT_SYMBOL_GPL(nvme_v2_register_nvfs_dma_ops);

/**
 * nvme_v2_unregister_nvfs_dma_ops() - the end of a registration
 *
 * May sleep; returns when the provider's last request is over and none of its code runs
 * any more. Does nothing when nobody is registered.
 */
void nvme_v2_unregister_nvfs_dma_ops(void)
{
	nvfs_unregister();
}
EXPORT_SYMBOL_GPL(nvme_v2_unregister_nvfs_dma_ops);

MODULE_INFO(nvfs, "v2");
MODULE_DESCRIPTION("with the nvfs hook, ABI v2: reads and writes GPU memory (OpenGDS)");
