/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nvfs.h - what pci.c and the hook (nvfs.c, nvfs_build.c, and nvfs_v1.c or nvfs_v2.c)
 * know of each other.
 *
 * The hook needs none of pci.c's private structures: pci.c hands over the few things of
 * a queue that matter (struct nvfs_target) and keeps one pointer a request. A request is
 * the hook's from a nvfs_map() that returned true with BLK_STS_OK until nvfs_unmap(); in
 * between the pointer is set, at all other times it is NULL, so that unmap can tell the
 * two kinds apart by it alone and requests of the host cost one test.
 */
#ifndef NVME_HOST_NVFS_H
#define NVME_HOST_NVFS_H

#include <linux/blk-mq.h>
#include <linux/dma-direction.h>
#include <linux/dmapool.h>
#include <linux/nvme.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>

#include "nvfs_hook.h"

struct nvfs_user;

/* the queue a request goes to; only read during nvfs_map(), the pools live as long as dev */
struct nvfs_target {
	struct device *dev;		/* the PCI function, for DMA */
	struct dma_pool *page_pool;	/* 4-KiB lists */
	struct dma_pool *small_pool;	/* 256-byte lists */
	bool sgl;			/* this queue takes SGLs */
	u32 sgl_threshold;		/* from so many bytes a run on they are better; 0: never */
};

/* 8 MiB that start inside a page: 2048 list entries, 511 a page and 512 in the last */
#define NVFS_MAX_LISTS 5

/* PRP or SGL lists of one request */
struct nvfs_lists {
	struct dma_pool *pool;		/* where all of them came from */
	void *list[NVFS_MAX_LISTS];
	dma_addr_t first_dma;		/* of list[0]; the others are linked from slot 511 */
	unsigned int nr;
};

/* A GPU request between map and unmap; owned by the request. */
struct nvfs_rq {
	struct nvfs_user *user;		/* holds one reference of user->inflight */
	const void *ops;		/* its table, for the form */
	void *cookie;			/* v2: what the provider wants back with each piece */
	struct device *dev;
	enum dma_data_direction dir;
	int nents;			/* pieces in sgl */
	struct nvfs_lists lists;
	struct scatterlist sgl[];
};

/* whoever is registered; written under a mutex, read under RCU */
extern struct nvfs_user __rcu *nvfs_user;

/* the whole cost for requests of the host while nobody is registered */
static inline bool nvfs_attached(void)
{
	return unlikely(rcu_access_pointer(nvfs_user));
}

bool nvfs_map(const struct nvfs_target *t, struct request *req, struct nvme_command *cmd,
	      struct nvfs_rq **slot, blk_status_t *status);
void nvfs_unmap(struct nvfs_rq **slot);

int nvfs_build(const struct nvfs_target *t, struct scatterlist *sgl, int nents, u32 payload,
	       struct nvme_command *cmd, struct nvfs_lists *l);
void nvfs_free_lists(struct nvfs_lists *l);

/* nvfs.c, for the forms */
int nvfs_register(const void *ops, unsigned long long bits, bool (*is_gpu_page)(struct page *page),
		  const void *name);
void nvfs_unregister(void);

/* nvfs_v1.c or nvfs_v2.c: how the provider is asked */
int nvfs_form_map(struct nvfs_rq *rq, struct request *req, unsigned int room, const char **why);
int nvfs_form_unmap(struct nvfs_rq *rq);

int nvme_v1_register_nvfs_dma_ops(struct nvfs_dma_rw_ops *ops);
void nvme_v1_unregister_nvfs_dma_ops(void);
int nvme_v2_register_nvfs_dma_ops(struct nvfs_dma_rw_blk_iter_ops *ops);
void nvme_v2_unregister_nvfs_dma_ops(void);

#endif /* NVME_HOST_NVFS_H */
