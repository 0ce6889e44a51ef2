// SPDX-License-Identifier: GPL-2.0-only
/*
 * batch.c - BATCH_IO: many requests in one call, all of them or none.
 *
 * Every entry is checked, and has what it needs, before the first one is submitted. One bad
 * entry refuses the batch: nothing moves, no fence is touched, everything is given back, and
 * each entry's ioctl_return says what was wrong with it (-ECANCELED: nothing). Once they are
 * submitted, entries succeed and fail on their own, each by its fence; those with the sync
 * flag run one after the other at the end, and have their result in ioctl_return.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nvidia-fs.h"
#include "io.h"
#include "log.h"

struct nvfs_entry {
	struct nvfs_ioctl_ioargs a;
	struct nvfs_async *x;	/* prepared, or NULL */
	struct nvfs_req rq;	/* of one with the sync flag */
	bool open;		/* rq holds references */
	bool write;
	u64 start;		/* nvfs_io_begin(), where open */
};

static int nvfs_entry_prepare(struct nvfs_entry *e)
{
	u8 op = (e->a.flags & NVFS_IO_OPTYPE_MASK) >> NVFS_IO_OPTYPE_SHIFT;
	int r;

	if (op != NVFS_IO_OP_READ && op != NVFS_IO_OP_WRITE) {
		nvfs_say("BATCH_IO: operation %u is neither read (0) nor write (1) (-EINVAL)\n",
			 op);
		return -EINVAL;
	}
	e->write = op == NVFS_IO_OP_WRITE;
	if (!(e->a.flags & NVFS_IO_SYNC)) {
		e->x = nvfs_async_prepare(&e->a, e->write);
		if (!IS_ERR(e->x))
			return 0;
		r = PTR_ERR(e->x);
		e->x = NULL;
		return r;
	}
	e->start = nvfs_io_begin(e->write);
	r = nvfs_req_open(&e->rq, &e->a, e->write);
	e->open = !r;
	if (r)
		nvfs_io_end(e->write, r, e->start);
	return r;
}

static void nvfs_entry_drop(struct nvfs_entry *e)
{
	if (e->x)
		nvfs_async_drop(e->x, -ECANCELED);
	e->x = NULL;
	if (e->open) {
		nvfs_req_close(&e->rq);
		nvfs_io_end(e->write, -ECANCELED, e->start);
	}
	e->open = false;
}

/* How many entries are refused; each ioctl_return says why. Then nothing is held. */
static u32 nvfs_batch_prepare(struct nvfs_entry *e, u32 n, u64 ctx)
{
	u32 i, bad = 0;

	for (i = 0; i < n; i++) {
		int r = nvfs_entry_prepare(&e[i]);

		e[i].a.ioctl_return = r;
		if (!r)
			continue;
		nvfs_say("BATCH_IO (context 0x%llx): entry %u of %u is refused (%d), so none is submitted\n",
			 ctx, i, n, r);
		bad++;
	}
	for (i = 0; bad && i < n; i++) {
		nvfs_entry_drop(&e[i]);
		if (!e[i].a.ioctl_return)
			e[i].a.ioctl_return = -ECANCELED;
	}
	return bad;
}

static void nvfs_batch_submit(struct nvfs_entry *e, u32 n)
{
	struct blk_plug plug;
	u32 i;

	blk_start_plug(&plug);
	for (i = 0; i < n; i++)
		if (e[i].x)
			e[i].a.ioctl_return = nvfs_async_submit(e[i].x);
	blk_finish_plug(&plug);
	for (i = 0; i < n; i++) {
		if (!e[i].open)
			continue;
		e[i].a.ioctl_return = nvfs_windows(&e[i].rq, e[i].a.size);
		nvfs_req_close(&e[i].rq);
		nvfs_io_end(e[i].write, e[i].a.ioctl_return, e[i].start);
	}
}

static int nvfs_batch_copy_in(struct nvfs_entry *e, const struct nvfs_ioctl_ioargs __user *u,
			      u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (copy_from_user(&e[i].a, &u[i], sizeof(u[i])))
			return -EFAULT;
	return 0;
}

/*
 * 0: all entries are submitted, and those with the sync flag are over. -EPERM: an entry was
 * refused; the codes stand in the entries. Another -errno: the call itself was wrong.
 */
int nvfs_batch(const struct nvfs_ioctl_batch *b)
{
	struct nvfs_ioctl_ioargs __user *u = u64_to_user_ptr(b->entries);
	u64 start = ktime_get_ns();
	struct nvfs_entry *e;
	u32 i, n = b->nents;
	int r = -EINVAL;

	nvfs_stat_inc(NVFS_ST_OPS_BATCH);
	nvfs_stat_inc(NVFS_ST_BATCH);
	if (!b->nents || b->nents > NVFS_MAX_BATCH) {
		nvfs_say("BATCH_IO: %llu entries, 1 to %u are possible (-EINVAL)\n", b->nents,
			 NVFS_MAX_BATCH);
		goto out;
	}
	r = -ENOMEM;
	e = kvcalloc(n, sizeof(*e), GFP_KERNEL_ACCOUNT);
	if (!e)
		goto out;
	r = nvfs_batch_copy_in(e, u, n);
	if (r)
		goto free;
	if (nvfs_batch_prepare(e, n, b->ctx_id))
		r = -EPERM;
	else
		nvfs_batch_submit(e, n);
	for (i = 0; i < n; i++)
		if (put_user(e[i].a.ioctl_return, &u[i].ioctl_return) && r)
			r = -EFAULT;	/* submitted ones tell by their fences */
free:
	kvfree(e);
out:
	nvfs_stat_dec(NVFS_ST_OPS_BATCH);
	nvfs_stat_inc(r ? NVFS_ST_BATCH_ERR : NVFS_ST_BATCH_OK);
	if (!r)
		nvfs_stat_add(NVFS_ST_BATCH_NS, ktime_get_ns() - start);
	return r;
}
