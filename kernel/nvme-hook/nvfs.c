// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvfs.c - requests whose pages stand for GPU memory: who knows about them, map, unmap.
 *
 * A provider (nvidia-fs) registers a table of callbacks (nvfs_hook.h). While it is there,
 * the first page of each bio of a read or write is shown to it; a request with GPU pages
 * gets its addresses from the provider and its lists from nvfs_build.c, everything else
 * goes the driver's own way. How the provider is asked is the business of the one form of
 * the ABI that is linked in: nvfs_v1.c or nvfs_v2.c.
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

struct nvfs_user {
	const void *ops;		/* the provider's table; valid until unregister returns */
	bool (*is_gpu_page)(struct page *page);	/* of that table; NULL: not to be asked */
	struct percpu_ref inflight;	/* one of each GPU request, one of ours until unregister */
	struct completion idle;		/* inflight reached zero */
};

struct nvfs_user __rcu *nvfs_user;
static DEFINE_MUTEX(nvfs_lock);

enum { NVFS_REQUESTS, NVFS_ERRORS, NVFS_COUNTS };

struct nvfs_counts {
	unsigned long v[NVFS_COUNTS];
};

static DEFINE_PER_CPU(struct nvfs_counts, nvfs_counts);

/* sums a per-CPU counter; kp->arg says which (a per-CPU pointer is no constant everywhere) */
static int nvfs_get_count(char *buf, const struct kernel_param *kp)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(&nvfs_counts, cpu)->v[(unsigned long)kp->arg];
	return sysfs_emit(buf, "%lu\n", sum);
}

static const struct kernel_param_ops nvfs_count_ops = {
	.get = nvfs_get_count,
};

module_param_cb(nvfs_requests, &nvfs_count_ops, (void *)NVFS_REQUESTS, 0444);
MODULE_PARM_DESC(nvfs_requests, "read-only: requests sent to GPU memory");
module_param_cb(nvfs_errors, &nvfs_count_ops, (void *)NVFS_ERRORS, 0444);
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
static bool nvfs_has_gpu_page(const struct nvfs_user *user, struct request *req)
{
	struct bio *bio;

	if (!user->is_gpu_page)
		return req->bio;
	__rq_for_each_bio(bio, req)
		if (user->is_gpu_page(bio_page(bio)))
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
	this_cpu_inc(nvfs_counts.v[NVFS_ERRORS]);
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
	unsigned short segments = req->nr_phys_segments;
	unsigned int room = nvfs_room(req);
	const char *why = "the provider refused it";
	struct nvfs_rq *rq;
	int n, err;

	rq = kmalloc(struct_size(rq, sgl, room), GFP_ATOMIC | __GFP_NOWARN);
	if (!rq) {
		*status = BLK_STS_RESOURCE;
		return true;
	}
	rq->user = user;
	rq->ops = user->ops;
	rq->cookie = NULL;
	rq->dev = t->dev;
	rq->dir = rq_dma_dir(req);
	rq->lists.nr = 0;
	sg_init_table(rq->sgl, room);

	n = nvfs_form_map(rq, req, room, &why);
	/*
	 * The original provider raises the count of segments. The driver's own path sizes by
	 * it, and would get this request next if the provider let it go at a second try.
	 */
	req->nr_phys_segments = segments;
	if (!n) {
		kfree(rq);
		return false;
	}
	if (n < 0) {
		*status = nvfs_fail(t, req, why, n);
		goto free_rq;
	}
	rq->nents = n;

	err = nvfs_build(t, rq->sgl, rq->nents, blk_rq_payload_bytes(req), cmd, &rq->lists);
	if (err) {
		*status = err == -ENOMEM ? BLK_STS_RESOURCE :
					   nvfs_fail(t, req, nvfs_reason(err), err);
		goto unmap;
	}
	this_cpu_inc(nvfs_counts.v[NVFS_REQUESTS]);
	*slot = rq;
	*status = BLK_STS_OK;
	return true;

unmap:
	nvfs_form_unmap(rq);
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
	ours = user && nvfs_has_gpu_page(user, req) && percpu_ref_tryget_live(&user->inflight);
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
	n = nvfs_form_unmap(rq);
	if (n != rq->nents)
		dev_err_ratelimited(rq->dev,
				    "nvfs: the provider released %d of %d pieces of GPU memory: it may stay pinned\n",
				    n, rq->nents);
	kfree(rq);
	percpu_ref_put(&user->inflight);
}

/*
 * The part of a registration that both forms have; @ops was checked. @name is what the log
 * calls the provider by: one of its functions.
 */
int nvfs_register(const void *ops, unsigned long long bits, bool (*is_gpu_page)(struct page *page),
		  const void *name)
{
	struct nvfs_user *user;
	int err;

	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return -ENOMEM;
	user->ops = ops;
	if (bits & NVFS_FT_IS_GPU_PAGE)
		user->is_gpu_page = is_gpu_page;
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
	pr_info("provider %ps registered (feature bits %#llx)\n", name, bits);
	return 0;

unlock:
	mutex_unlock(&nvfs_lock);
	percpu_ref_exit(&user->inflight);
free_user:
	kfree(user);
	return err;
}

/*
 * The end of a registration. May sleep; returns when the provider's last request is over
 * and none of its code runs any more. Does nothing when nobody is registered.
 */
void nvfs_unregister(void)
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
	pr_info("provider unregistered\n");
	percpu_ref_exit(&user->inflight);
	kfree(user);
}
