// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvfs.c - requests whose pages stand for GPU memory: who knows about them, map, unmap.
 *
 * A provider (nvidia-fs) registers a table of callbacks (nvfs_hook.h). While it is there,
 * the first page of each bio of a read or write is shown to it; a request with GPU pages
 * gets its addresses from the provider and its lists from nvfs_build.c, everything else
 * goes the driver's own way.
 *
 * Life of a registration, and what protects it:
 *  - nvfs_user is written under nvfs_lock and read under RCU. Callbacks that run without
 *    a reference (nvfs_is_gpu_page) run under rcu_read_lock.
 *  - each GPU request holds one reference of user->inflight, taken before the provider is
 *    asked about it and dropped after it was told that the request is over. Such a request
 *    carries its own pointer to the user; the global one is never looked at for it again.
 *  - unregister clears the pointer, waits for the readers (synchronize_rcu), kills the
 *    reference and waits until the last request has dropped it. Then nothing of the
 *    provider is in use, and it may be unloaded.
 * Map runs in the dispatch path and unmap in hard IRQ: nothing here sleeps but
 * (un)register.
 */
#define pr_fmt(fmt) "nvme: nvfs: " fmt

#include <linux/blk-integrity.h>
#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/percpu-refcount.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "nvfs.h"

#define NVFS_FT_NEEDED (NVFS_FT_PREP_SGLIST | NVFS_FT_MAP_SGLIST)

struct nvfs_user {
	const struct nvfs_dma_rw_ops *ops;	/* the provider's; valid until unregister returns */
	struct percpu_ref inflight;	/* one of each GPU request, one of ours until unregister */
	struct completion idle;		/* inflight reached zero */
};

struct nvfs_user __rcu *nvfs_user;
static DEFINE_MUTEX(nvfs_lock);

static DEFINE_PER_CPU(unsigned long, nvfs_requests);
static DEFINE_PER_CPU(unsigned long, nvfs_errors);

/* sums a per-CPU counter; kp->arg is the per-CPU pointer */
static int nvfs_get_count(char *buf, const struct kernel_param *kp)
{
	unsigned long __percpu *count = (unsigned long __percpu __force *)kp->arg;
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *per_cpu_ptr(count, cpu);
	return sysfs_emit(buf, "%lu\n", sum);
}

static const struct kernel_param_ops nvfs_count_ops = {
	.get = nvfs_get_count,
};

module_param_cb(nvfs_requests, &nvfs_count_ops, (void __force *)&nvfs_requests, 0444);
MODULE_PARM_DESC(nvfs_requests, "read-only: requests sent to GPU memory");
module_param_cb(nvfs_errors, &nvfs_count_ops, (void __force *)&nvfs_errors, 0444);
MODULE_PARM_DESC(nvfs_errors, "read-only: requests of GPU memory that were failed");

static void nvfs_idle(struct percpu_ref *ref)
{
	struct nvfs_user *user = container_of(ref, struct nvfs_user, inflight);

	complete(&user->idle);
}

/*
 * Pages of one bio have one owner; a request merged from several bios may be mixed, and
 * the provider decides what becomes of such a one. So one question a bio is enough.
 * Under rcu_read_lock.
 */
static bool nvfs_has_gpu_page(const struct nvfs_dma_rw_ops *ops, struct request *req)
{
	struct bio *bio;

	if (!(ops->ft_bmap & NVFS_FT_IS_GPU_PAGE))
		return req->bio;
	__rq_for_each_bio(bio, req)
		if (ops->nvfs_is_gpu_page(bio_page(bio)))
			return true;
	return false;
}

/* Room a request can need (nvfs_hook.h), counted by bvecs as merging may hide some. */
static unsigned int nvfs_room(struct request *req)
{
	unsigned int n = 0;
	struct req_iterator it;
	struct bio_vec bv;

	rq_for_each_bvec(bv, req, it)
		n++;
	n = max_t(unsigned int, n, blk_rq_nr_phys_segments(req));
	return 2 * n + blk_rq_payload_bytes(req) / SZ_64K;
}

static blk_status_t nvfs_fail(const struct nvfs_target *t, struct request *req, const char *why,
			      int code)
{
	this_cpu_inc(nvfs_errors);
	dev_err_ratelimited(t->dev,
			    "nvfs: %s of %u bytes of GPU memory at sector %llu failed: %s (%d); see the log of the provider\n",
			    rq_data_dir(req) == WRITE ? "write" : "read",
			    blk_rq_payload_bytes(req), (unsigned long long)blk_rq_pos(req), why,
			    code);
	return BLK_STS_IOERR;
}

static const char *nvfs_reason(int err)
{
	switch (err) {
	case -EIO:
		return "GPU addresses do not continue on 4-KiB borders";
	case -EFBIG:
		return "too many list pages";
	default:
		return "GPU addresses are not the request's bytes";
	}
}

/*
 * The request with a reference of its user held. True: ours, *status says how it went and
 * on success *slot is set; else the reference is still the caller's. False: not ours.
 */
static bool nvfs_map_held(struct nvfs_user *user, const struct nvfs_target *t, struct request *req,
			  struct nvme_command *cmd, struct nvfs_rq **slot, blk_status_t *status)
{
	const struct nvfs_dma_rw_ops *ops = user->ops;
	unsigned int room = nvfs_room(req);
	unsigned short segments = req->nr_phys_segments;
	struct nvfs_rq *rq;
	int n, err;

	rq = kmalloc(struct_size(rq, sgl, room), GFP_ATOMIC | __GFP_NOWARN);
	if (!rq) {
		*status = BLK_STS_RESOURCE;
		return true;
	}
	rq->user = user;
	rq->dev = t->dev;
	rq->dir = rq_dma_dir(req);
	rq->lists.nr = 0;
	sg_init_table(rq->sgl, room);

	rq->nents = ops->nvfs_blk_rq_map_sg(req->q, req, rq->sgl);
	/*
	 * The original provider raises the count of segments. The driver's own path sizes by
	 * it, and would get this request next if the provider let it go at a second try.
	 */
	req->nr_phys_segments = segments;
	if (!rq->nents) {
		kfree(rq);
		return false;
	}
	if (rq->nents < 0 || rq->nents > room) {
		*status = nvfs_fail(t, req, "the provider refused it", rq->nents);
		goto free_rq;
	}

	n = ops->nvfs_dma_map_sg_attrs(t->dev, rq->sgl, rq->nents, rq->dir, DMA_ATTR_NO_WARN);
	if (n != rq->nents) {
		*status = nvfs_fail(t, req, "the provider has no DMA mapping for this device", n);
		goto free_rq;
	}

	err = nvfs_build(t, rq->sgl, rq->nents, blk_rq_payload_bytes(req), cmd, &rq->lists);
	if (err) {
		*status = err == -ENOMEM ? BLK_STS_RESOURCE :
					   nvfs_fail(t, req, nvfs_reason(err), err);
		goto unmap;
	}
	this_cpu_inc(nvfs_requests);
	*slot = rq;
	*status = BLK_STS_OK;
	return true;

unmap:
	ops->nvfs_dma_unmap_sg(rq->dev, rq->sgl, rq->nents, rq->dir);
free_rq:
	kfree(rq);
	return true;
}

/**
 * nvfs_map() - take a request if it is of GPU memory
 * @t: the queue it goes to
 * @req: a request with data
 * @cmd: its command, all set but the data pointer
 * @slot: where the request keeps what nvfs_unmap() needs; NULL on entry
 * @status: result, written only if the request is ours
 *
 * Atomic; may be called again for a request that was failed or requeued. Returns false if
 * the request is not ours: nothing was changed, the driver goes on as always. Otherwise
 * BLK_STS_OK with *slot set; BLK_STS_RESOURCE when memory is short for now;
 * BLK_STS_IOERR when the provider or the addresses do not allow it.
 */
bool nvfs_map(const struct nvfs_target *t, struct request *req, struct nvme_command *cmd,
	      struct nvfs_rq **slot, blk_status_t *status)
{
	struct nvfs_user *user;
	bool ours;

	if ((req_op(req) != REQ_OP_READ && req_op(req) != REQ_OP_WRITE) ||
	    (req->rq_flags & RQF_SPECIAL_PAYLOAD) || blk_integrity_rq(req))
		return false;

	rcu_read_lock();
	user = rcu_dereference(nvfs_user);
	ours = user && nvfs_has_gpu_page(user->ops, req) && percpu_ref_tryget_live(&user->inflight);
	rcu_read_unlock();
	if (!ours)
		return false;

	ours = nvfs_map_held(user, t, req, cmd, slot, status);
	if (!ours || *status != BLK_STS_OK)
		percpu_ref_put(&user->inflight);
	return ours;
}

/* The command is over, or never went out. Any context. */
void nvfs_unmap(struct nvfs_rq **slot)
{
	struct nvfs_rq *rq = *slot;
	struct nvfs_user *user = rq->user;
	int n;

	*slot = NULL;
	nvfs_free_lists(&rq->lists);
	n = user->ops->nvfs_dma_unmap_sg(rq->dev, rq->sgl, rq->nents, rq->dir);
	if (n != rq->nents)
		dev_err_ratelimited(rq->dev,
				    "nvfs: the provider released %d of %d pieces of GPU memory: it may stay pinned\n",
				    n, rq->nents);
	kfree(rq);
	percpu_ref_put(&user->inflight);
}

static int nvfs_check_ops(const struct nvfs_dma_rw_ops *ops)
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
	return 0;
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
	struct nvfs_user *user;
	int err;

	err = nvfs_check_ops(ops);
	if (err)
		return err;
	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return -ENOMEM;
	user->ops = ops;
	init_completion(&user->idle);
	err = percpu_ref_init(&user->inflight, nvfs_idle, 0, GFP_KERNEL);
	if (err)
		goto free_user;

	mutex_lock(&nvfs_lock);
	if (rcu_access_pointer(nvfs_user)) {
		err = -EBUSY;
		goto unlock;
	}
	rcu_assign_pointer(nvfs_user, user);
	mutex_unlock(&nvfs_lock);
	pr_info("provider %ps registered (feature bits %#llx)\n", ops->nvfs_blk_rq_map_sg,
		ops->ft_bmap);
	return 0;

unlock:
	mutex_unlock(&nvfs_lock);
	percpu_ref_exit(&user->inflight);
free_user:
	kfree(user);
	return err;
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
	struct nvfs_user *user;

	mutex_lock(&nvfs_lock);
	user = rcu_replace_pointer(nvfs_user, NULL, lockdep_is_held(&nvfs_lock));
	mutex_unlock(&nvfs_lock);
	if (!user)
		return;

	synchronize_rcu();
	percpu_ref_kill(&user->inflight);
	while (!wait_for_completion_timeout(&user->idle, 10 * HZ))
		pr_warn("unregister: still waiting for requests of GPU memory: is a drive hung?\n");
	pr_info("provider %ps unregistered\n", user->ops->nvfs_blk_rq_map_sg);
	percpu_ref_exit(&user->inflight);
	kfree(user);
}
EXPORT_SYMBOL_GPL(nvme_v1_unregister_nvfs_dma_ops);

MODULE_INFO(nvfs, "v1");
MODULE_DESCRIPTION("with the nvfs hook, ABI v1: reads and writes GPU memory (OpenGDS)");
