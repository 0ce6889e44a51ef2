/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nvfs_hook.h - what nvidia-fs and a storage driver say to each other (ABIs "v1" and "v2").
 *
 * The provider (nvidia-fs) fills the table; the consumer (nvme, nvme-rdma, ...) exports
 * a pair of functions, looked up by name, that take and drop it. A request belongs to
 * the provider when its pages are carriers: host pages that stand for GPU memory.
 *
 * Consumer's contract, in the order of one request:
 *  1. under rcu_read_lock, with the table pointer read once and an in-flight count
 *     raised, call blk_rq_map_sg; 0: host memory, go on as always; -1: fail the request.
 *  2. dma_map_sg_attrs on that list; nents: dma_address/dma_length of each entry are
 *     set, each entry holds one reference; anything else: nothing is held, fail it.
 *  3. at completion (hard IRQ is fine) dma_unmap_sg, once, then drop the count.
 * Neither call of ours sleeps. unregister must not return while the count is raised.
 *
 * Room: `sgl` ends at the entry that carries the end mark. The original's consumers put
 * the mark at entry nr_phys_segments and always have NVFS_SG_IMPLIED entries; a provider
 * runs past a mark that stands just there, up to that many, and past no other. A consumer
 * that has more room than nr_phys_segments marks its real end. A request can need
 *     2 * (bvecs of the request) + payload / 64 KiB
 * entries at most, since each bvec is cut at GPU runs of at least 64 KiB.
 *
 * v2 is for drivers that walk a request with the block layer's DMA iterator. In place of
 * 1 and 2:
 *  a. the iterator and the iova state zeroed, iter_start; 1: addr and len are the first
 *     piece, *cookie is set; 0: host memory if iter->status is still BLK_STS_OK, else fail
 *     the request.
 *  b. iter_next for each further piece, until 0; then iter->status tells end from error.
 * and in place of 3, also for the pieces mapped before an error: unmap_page with the cookie,
 * once a piece. No piece is kept by a call that returned 0.
 */
#ifndef OPENGDS_NVFS_HOOK_H
#define OPENGDS_NVFS_HOOK_H

#include <linux/types.h>
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/dma-direction.h>

struct request_queue;
struct request;
struct scatterlist;
struct device;
struct page;
struct dma_iova_state;
struct blk_dma_iter;
struct nvfs_rdma_info;

/* feature bits (ft_bmap) */
#define NVFS_FT_PREP_SGLIST (1ULL << 0)
#define NVFS_FT_MAP_SGLIST (1ULL << 1)
#define NVFS_FT_IS_GPU_PAGE (1ULL << 2)
#define NVFS_FT_DEVICE_PRIORITY (1ULL << 3)
#define NVFS_FT_GPU_SGLIST_RDMA (1ULL << 4)
#define NVFS_FT_ITER_START (1ULL << 5)
#define NVFS_FT_ITER_NEXT (1ULL << 6)

#define NVFS_FT_V1 0x1fULL
#define NVFS_FT_V2 0x6cULL

/* return values of the calls below */
#define NVFS_IO_ERR (-1)	/* fail the request */
#define NVFS_BAD_REQ (-2)	/* no GPU pages in it */
#define NVFS_CPU_REQ (-2)

/* entries that every consumer of the original has, whatever its end mark says */
#define NVFS_SG_IMPLIED 126

struct nvfs_dma_rw_ops {
	unsigned long long ft_bmap;
	/* > 0: entries built, last one end-marked; 0: host memory; NVFS_IO_ERR */
	int (*nvfs_blk_rq_map_sg)(struct request_queue *q, struct request *req,
				  struct scatterlist *sgl);
	/* nents, NVFS_BAD_REQ or NVFS_IO_ERR; on success one reference an entry */
	int (*nvfs_dma_map_sg_attrs)(struct device *dev, struct scatterlist *sgl, int nents,
				     enum dma_data_direction dir, unsigned long attrs);
	/* entries released, 0: none was ours, NVFS_IO_ERR; any context */
	int (*nvfs_dma_unmap_sg)(struct device *dev, struct scatterlist *sgl, int nents,
				 enum dma_data_direction dir);
	bool (*nvfs_is_gpu_page)(struct page *page);
	unsigned int (*nvfs_gpu_index)(struct page *page);
	unsigned int (*nvfs_device_priority)(struct device *dev, unsigned int gpu_index);
	int (*nvfs_get_gpu_sglist_rdma_info)(struct scatterlist *sgl, int nents,
					     struct nvfs_rdma_info *info);
};

static_assert(sizeof(struct nvfs_dma_rw_ops) == 64);
static_assert(offsetof(struct nvfs_dma_rw_ops, nvfs_blk_rq_map_sg) == 8);
static_assert(offsetof(struct nvfs_dma_rw_ops, nvfs_dma_map_sg_attrs) == 16);
static_assert(offsetof(struct nvfs_dma_rw_ops, nvfs_dma_unmap_sg) == 24);
static_assert(offsetof(struct nvfs_dma_rw_ops, nvfs_is_gpu_page) == 32);
static_assert(offsetof(struct nvfs_dma_rw_ops, nvfs_gpu_index) == 40);
static_assert(offsetof(struct nvfs_dma_rw_ops, nvfs_device_priority) == 48);
static_assert(offsetof(struct nvfs_dma_rw_ops, nvfs_get_gpu_sglist_rdma_info) == 56);

struct nvfs_dma_rw_blk_iter_ops {
	unsigned long long ft_bmap;
	/* 1: a piece; 0: host memory, or an error (iter->status) */
	int (*nvfs_blk_rq_dma_map_iter_start)(struct request *req, struct device *dev,
					      struct dma_iova_state *state,
					      struct blk_dma_iter *iter, void **cookie);
	/* 1: a piece; 0: no more, or an error (iter->status) */
	int (*nvfs_blk_rq_dma_map_iter_next)(struct request *req, struct device *dev,
					     struct dma_iova_state *state,
					     struct blk_dma_iter *iter);
	/* 0, or NVFS_IO_ERR; any context */
	int (*nvfs_dma_unmap_page)(struct device *dev, void *cookie, dma_addr_t addr, size_t size,
				   enum dma_data_direction dir);
	bool (*nvfs_is_gpu_page)(struct page *page);
	unsigned int (*nvfs_gpu_index)(struct page *page);
	unsigned int (*nvfs_device_priority)(struct device *dev, unsigned int gpu_index);
	int (*nvfs_get_gpu_sglist_rdma_info)(struct scatterlist *sgl, int nents,
					     struct nvfs_rdma_info *info);
};

static_assert(sizeof(struct nvfs_dma_rw_blk_iter_ops) == 64);
static_assert(offsetof(struct nvfs_dma_rw_blk_iter_ops, nvfs_blk_rq_dma_map_iter_start) == 8);
static_assert(offsetof(struct nvfs_dma_rw_blk_iter_ops, nvfs_blk_rq_dma_map_iter_next) == 16);
static_assert(offsetof(struct nvfs_dma_rw_blk_iter_ops, nvfs_dma_unmap_page) == 24);
static_assert(offsetof(struct nvfs_dma_rw_blk_iter_ops, nvfs_is_gpu_page) == 32);
static_assert(offsetof(struct nvfs_dma_rw_blk_iter_ops, nvfs_gpu_index) == 40);
static_assert(offsetof(struct nvfs_dma_rw_blk_iter_ops, nvfs_device_priority) == 48);
static_assert(offsetof(struct nvfs_dma_rw_blk_iter_ops, nvfs_get_gpu_sglist_rdma_info) == 56);

typedef int (*nvfs_register_dma_ops_fn)(struct nvfs_dma_rw_ops *ops);
typedef int (*nvfs_register_blk_iter_ops_fn)(struct nvfs_dma_rw_blk_iter_ops *ops);
typedef void (*nvfs_unregister_dma_ops_fn)(void);

#endif /* OPENGDS_NVFS_HOOK_H */
