// SPDX-License-Identifier: GPL-2.0-only
/*
 * rdma.c - the RDMA registration of a mapping: kept for file systems that move the bytes by
 * RDMA and ask for it; nothing here registers memory with an adapter.
 */
#include <linux/string.h>

#include "nvidia-fs.h"
#include "log.h"

#define NVFS_RDMA_MIN_VERSION 2

/*
 * SET: keep the key, and what it stands for. A record that is refused takes the old one
 * with it, so that no stale key is used. 0 or -EINVAL.
 */
int nvfs_rdma_set(const struct nvfs_ioctl_set_rdma *s)
{
	struct nvfs_mapping *m = nvfs_mapping_get(s->cpuvaddr);
	bool ok = s->nkeys == 1 && s->version >= NVFS_RDMA_MIN_VERSION, ready;

	if (!m) {
		nvfs_say("SET_RDMA_REG_INFO: 0x%llx is not the start of a mapping of this process (-EINVAL)\n",
			 s->cpuvaddr);
		return -EINVAL;
	}
	spin_lock(&m->lock);
	ready = m->state == NVFS_READY;
	memset(&m->rdma, 0, sizeof(m->rdma));
	if (ok && ready) {
		m->rdma.version = s->version;
		m->rdma.flags = s->flags;
		m->rdma.lid = s->lid;
		m->rdma.qp_num = s->qp_num;
		m->rdma.rem_vaddr = m->pin.va + m->page_off;
		m->rdma.size = min_t(u64, m->size, U32_MAX);
		m->rdma.rkey = s->rkey[0];
		m->rdma.gid[0] = s->gid[0];
		m->rdma.gid[1] = s->gid[1];
		m->rdma.dc_key = s->dc_key;
	}
	spin_unlock(&m->lock);
	if (!ok)
		nvfs_say("SET_RDMA_REG_INFO: %u keys of version %u, wanted is 1 of version %u or later (-EINVAL)\n",
			 s->nkeys, s->version, NVFS_RDMA_MIN_VERSION);
	else if (!ready)
		nvfs_say("SET_RDMA_REG_INFO: the mapping at 0x%lx stands for no GPU memory (-EINVAL): do MAP first\n",
			 m->cpuvaddr);
	nvfs_mapping_put(m);
	return ok && ready ? 0 : -EINVAL;
}

/* GET: what SET kept, zeros when there is nothing. 0 or -EINVAL. */
int nvfs_rdma_get(struct nvfs_ioctl_get_rdma *g)
{
	struct nvfs_mapping *m = nvfs_mapping_get(g->cpuvaddr);

	if (!m) {
		nvfs_say("GET_RDMA_REG_INFO: 0x%llx is not the start of a mapping of this process (-EINVAL)\n",
			 g->cpuvaddr);
		return -EINVAL;
	}
	spin_lock(&m->lock);
	g->info = m->rdma;
	spin_unlock(&m->lock);
	nvfs_mapping_put(m);
	return 0;
}

/* CLEAR: 0, or -EPERM, which is what the ABI says of an address that is no mapping. */
int nvfs_rdma_clear(u64 cpuvaddr)
{
	struct nvfs_mapping *m = nvfs_mapping_get(cpuvaddr);

	if (!m) {
		nvfs_say("CLEAR_RDMA_REG_INFO: 0x%llx is not the start of a mapping of this process (-EPERM)\n",
			 cpuvaddr);
		return -EPERM;
	}
	spin_lock(&m->lock);
	memset(&m->rdma, 0, sizeof(m->rdma));
	spin_unlock(&m->lock);
	nvfs_mapping_put(m);
	return 0;
}
