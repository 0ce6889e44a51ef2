// SPDX-License-Identifier: GPL-2.0-only
/* 6.18 and later: the block layer's DMA iterator, in the form that hook_v2.c fills */
#include <linux/blk-mq-dma.h>
#include <linux/dma-mapping.h>

void probe(struct blk_dma_iter *iter, struct dma_iova_state *state, struct bio *bio);
void probe(struct blk_dma_iter *iter, struct dma_iova_state *state, struct bio *bio)
{
	state->addr = 0;
	iter->addr = 0;
	iter->len = 0;
	iter->status = BLK_STS_OK;
	iter->p2pdma.map = PCI_P2PDMA_MAP_NONE;
	iter->iter.bio = bio;
	iter->iter.iter = bio->bi_iter;
	iter->iter.bvecs = bio->bi_io_vec;
	iter->iter.is_integrity = false;
}
