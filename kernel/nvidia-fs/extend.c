// SPDX-License-Identifier: GPL-2.0-only
/*
 * extend.c - the ioctls from number 32 on: ours. They answer like system calls, with their
 * own errno, but for RW, whose request answers as READ and WRITE do.
 */
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "nvidia-fs.h"
#include "io.h"
#include "log.h"
#include "p2p.h"
#include "view.h"

/* What this module can do. The caller's structure may be shorter or longer than ours. */
long nvfs_ogds_query(void __user *arg)
{
	struct nvfs_ogds_query q = {
		.version = NVFS_OGDS_VERSION,
		.features = NVFS_OGDS_FEATURES,
		.max_batch = NVFS_MAX_BATCH,
		.max_window = NVFS_MAX_SHADOW_SIZE,
	};
	u32 room;

	if (get_user(room, (u32 __user *)arg))
		return -EFAULT;
	if (room < NVFS_OGDS_QUERY_MIN)
		return -EINVAL;
	q.size = sizeof(q);
	if (copy_to_user(arg, &q, min_t(u32, room, sizeof(q))))
		return -EFAULT;
	room = min_t(u32, room, PAGE_SIZE);
	if (room > sizeof(q) && clear_user(arg + sizeof(q), room - sizeof(q)))
		return -EFAULT;
	return 0;
}

/* munmap of all but the address range, and back only when the GPU memory is released. */
long nvfs_ogds_unmap(void __user *arg)
{
	struct nvfs_ogds_unmap u;

	if (copy_from_user(&u, arg, sizeof(u)))
		return -EFAULT;
	if (u.flags || u.reserved)
		return -EINVAL;
	return nvfs_mapping_withdraw(u.cpuvaddr);
}

static ssize_t nvfs_ogds_run(const struct nvfs_ioctl_ioargs *a, bool write, struct nvfs_witness *w)
{
	u64 start = nvfs_io_begin(write);
	struct nvfs_req rq;
	ssize_t r;

	r = nvfs_req_open(&rq, a, write);
	if (!r) {
		rq.witness = w;
		r = nvfs_windows(&rq, a->size);
		nvfs_req_close(&rq);
	}
	nvfs_io_end(write, r, start);
	return r;
}

/* One synchronous request that tells which way its bytes went. */
long nvfs_ogds_rw(void __user *arg)
{
	struct nvfs_ogds_rw a;
	struct nvfs_witness w = { 0 };
	u8 op;

	if (copy_from_user(&a, arg, sizeof(a)))
		return -EFAULT;
	op = (a.io.flags & NVFS_IO_OPTYPE_MASK) >> NVFS_IO_OPTYPE_SHIFT;
	if (op != NVFS_IO_OP_READ && op != NVFS_IO_OP_WRITE)
		a.io.ioctl_return = -EINVAL;
	else if (!(a.io.flags & NVFS_IO_SYNC))
		a.io.ioctl_return = -EOPNOTSUPP;
	else
		a.io.ioctl_return = nvfs_ogds_run(&a.io, op == NVFS_IO_OP_WRITE, &w);
	a.dma_bytes = w.dma_bytes;
	a.cpu_bytes = w.cpu_bytes;
	memset(a.driver, 0, sizeof(a.driver));
	a.drives = nvfs_peers_named(w.slots, a.driver, sizeof(a.driver));
	a.reserved = 0;
	if (copy_to_user(arg, &a, sizeof(a)))
		return -EFAULT;
	return a.io.ioctl_return < 0 ? -EPERM : 0;
}

/* What stands for the GPU memory of a mapping: chosen before MAP, told after it. */
long nvfs_ogds_carriers(void __user *arg)
{
	struct nvfs_ogds_carriers c;
	struct nvfs_mapping *m;
	int r = 0;

	if (copy_from_user(&c, arg, sizeof(c)))
		return -EFAULT;
	if (c.want > NVFS_CARRIERS_WANT_P2PDMA || c.reserved)
		return -EINVAL;
	m = nvfs_mapping_get(c.cpuvaddr);
	if (!m)
		return -EINVAL;
	c.have = 0;
	memset(c.reason, 0, sizeof(c.reason));
	spin_lock(&m->lock);
	if (c.want && m->state != NVFS_FREE)
		r = -EBUSY;
	else if (c.want)
		m->choice = c.want - NVFS_CARRIERS_WANT_AUTO;
	if (m->state == NVFS_READY) {
		c.have = NVFS_CARRIERS_HAVE_SHADOW;
		if (m->p2p)
			c.have |= NVFS_CARRIERS_HAVE_P2PDMA;
		else
			strscpy(c.reason, nvfs_p2p_text(m->p2p_why), sizeof(c.reason));
	}
	spin_unlock(&m->lock);
	nvfs_mapping_put(m);
	if (!r && copy_to_user(arg, &c, sizeof(c)))
		r = -EFAULT;
	return r;
}

/* The P2PDMA pages of a mapping, in the caller's address space. */
long nvfs_ogds_pages(struct file *file, void __user *arg)
{
	struct nvfs_ogds_pages a;
	struct nvfs_mapping *m;
	long r;

	if (copy_from_user(&a, arg, sizeof(a)))
		return -EFAULT;
	if (a.reserved)
		return -EINVAL;
	m = nvfs_mapping_get(a.cpuvaddr);
	if (!m)
		return -EINVAL;
	a.pages = 0;
	a.size = 0;
	a.seen = 0;
	a.seen_size = 0;
	a.offset = 0;
	memset(a.reason, 0, sizeof(a.reason));
	r = nvfs_view_open(file, m, &a);
	nvfs_mapping_put(m);
	if (copy_to_user(arg, &a, sizeof(a))) {
		if (!r)
			nvfs_view_close(&a);
		r = -EFAULT;
	}
	return r;
}
