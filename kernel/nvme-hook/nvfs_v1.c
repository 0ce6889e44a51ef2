// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvfs_v1.c - ABI v1: the provider fills a scatterlist of ours and maps it. For drivers
 * that map their own requests with a scatterlist.
 */
#define pr_fmt(fmt) "nvme: nvfs: " fmt

#include <linux/blk-mq.h>
#include <linux/dma-mapping.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/printk.h>

#include "nvfs.h"

#define NVFS_FT_NEEDED (NVFS_FT_PREP_SGLIST | NVFS_FT_MAP_SGLIST)

/*
 * Pieces mapped, in rq->sgl; 0: not the provider's, nothing is held; negative: failed,
 * nothing is held, and *why may have been set. Atomic.
 */
int nvfs_form_map(struct nvfs_rq *rq, struct request *req, unsigned int room, const char **why)
{
	const struct nvfs_dma_rw_ops *ops = rq->ops;
	int nents, n;

	nents = ops->nvfs_blk_rq_map_sg(req->q, req, rq->sgl);
	if (nents <= 0)
		return nents;
	if (nents > room)
		return NVFS_IO_ERR;

	n = ops->nvfs_dma_map_sg_attrs(rq->dev, rq->sgl, nents, rq->dir, DMA_ATTR_NO_WARN);
	if (n != nents) {
		*why = "the provider has no DMA mapping for this device";
		return n < 0 ? n : NVFS_IO_ERR;
	}
	return nents;
}

/* How many pieces the provider took back. Any context. */
int nvfs_form_unmap(struct nvfs_rq *rq)
{
	const struct nvfs_dma_rw_ops *ops = rq->ops;

	return ops->nvfs_dma_unmap_sg(rq->dev, rq->sgl, rq->nents, rq->dir);
}

/**
 * nvme_v1_register_nvfs_dma_ops() - let a provider own requests of this driver
 * @ops: its table; must stay valid until nvme_v1_unregister_nvfs_dma_ops() has returned
 *
 * May sleep. Returns 0, -EINVAL (no table, or callbacks missing), -EOPNOTSUPP (feature
 * bits 0 and 1 are needed), -EBUSY (somebody is registered), -ENOMEM.
 */
int nvme_v1_register_nvfs_dma_ops(struct nvfs_dma_rw_ops *ops)
{
	unsigned long long missing;

	if (!ops)
		return -EINVAL;
	missing = NVFS_FT_NEEDED & ~ops->ft_bmap;
	if (missing) {
		pr_err("register: the provider lacks%s%s (feature bits %#llx): load one that speaks ABI v1\n",
		       missing & NVFS_FT_PREP_SGLIST ? " bit 0 (prep sglist)" : "",
		       missing & NVFS_FT_MAP_SGLIST ? " bit 1 (map sglist)" : "", ops->ft_bmap);
		return -EOPNOTSUPP;
	}
	if (!ops->nvfs_blk_rq_map_sg || !ops->nvfs_dma_map_sg_attrs || !ops->nvfs_dma_unmap_sg ||
	    ((ops->ft_bmap & NVFS_FT_IS_GPU_PAGE) && !ops->nvfs_is_gpu_page))
		return -EINVAL;
	return nvfs_register(ops, ops->ft_bmap, ops->nvfs_is_gpu_page, ops->nvfs_blk_rq_map_sg);
}
EXPORT_SYMBOL_GPL(nvme_v1_register_nvfs_dma_ops);

/**
 * nvme_v1_unregister_nvfs_dma_ops() - the end of a registration
 *
 * May sleep; returns when the provider's last request is over and none of its code runs
 * any more. Does nothing when nobody is registered.
 */
void nvme_v1_unregister_nvfs_dma_ops(void)
{
	nvfs_unregister();
}
EXPORT_SYMBOL_GPL(nvme_v1_unregister_nvfs_dma_ops);

MODULE_INFO(nvfs, "v1");
MODULE_DESCRIPTION("with the nvfs hook, ABI v1: reads and writes GPU memory (OpenGDS)");
