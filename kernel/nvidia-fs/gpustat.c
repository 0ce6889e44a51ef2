// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpustat.c - what is pinned of each GPU, and who its peers were. A GPU is known from its
 * first pin on, by its UUID; which PCI function it is follows from where its memory lies.
 */
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "nvidia-fs.h"

#define NVFS_MAX_GPUS 64

struct nvfs_gpustat {
	u8 uuid[NVIDIA_P2P_GPU_UUID_LEN];
	int domain;			/* PCI address; -1: not found */
	u8 bus, devfn;
	u64 registered;			/* bytes, of applications */
	u64 cache;			/* bytes, of the library */
	u64 max;			/* of both, bytes */
	atomic64_t used[NVFS_MAX_PEERS];	/* submissions, by the peer's slot */
};

static struct nvfs_gpustat nvfs_gpustats[NVFS_MAX_GPUS];	/* filled from the front */
static unsigned int nvfs_ngpustats;
static DEFINE_MUTEX(nvfs_gpustat_lock);		/* all but `used`; a leaf */

/* number of the BAR, or -1 */
static int nvfs_pci_bar(struct pci_dev *pdev, u64 phys)
{
	int i;

	for (i = 0; i < PCI_STD_NUM_BARS; i++)
		if (pci_resource_len(pdev, i) && phys >= pci_resource_start(pdev, i) &&
		    phys <= pci_resource_end(pdev, i))
			return i;
	return -1;
}

/* The function in whose BAR an address lies, referenced, and which BAR; or NULL. Blocks. */
struct pci_dev *nvfs_pci_at(u64 phys, int *bar)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev) {
		*bar = pci_is_bridge(pdev) ? -1 : nvfs_pci_bar(pdev, phys);
		if (*bar >= 0)
			return pdev;
	}
	return NULL;
}

static void nvfs_gpustat_locate(struct nvfs_gpustat *g, u64 phys)
{
	struct pci_dev *pdev;
	int bar;

	g->domain = -1;
	pdev = nvfs_pci_at(phys, &bar);
	if (!pdev)
		return;
	g->domain = pci_domain_nr(pdev->bus);
	g->bus = pdev->bus->number;
	g->devfn = pdev->devfn;
	pci_dev_put(pdev);
}

/* nvfs_gpustat_lock held; NULL when there are too many */
static struct nvfs_gpustat *nvfs_gpustat_get(const u8 *uuid, u64 phys)
{
	struct nvfs_gpustat *g = nvfs_gpustats;
	unsigned int i;

	for (i = 0; i < nvfs_ngpustats; i++, g++)
		if (!memcmp(g->uuid, uuid, sizeof(g->uuid)))
			return g;
	if (nvfs_ngpustats == NVFS_MAX_GPUS)
		return NULL;
	memcpy(g->uuid, uuid, sizeof(g->uuid));
	nvfs_gpustat_locate(g, phys);
	nvfs_ngpustats++;
	return g;
}

static u64 *nvfs_gpustat_field(struct nvfs_mapping *m)
{
	return m->is_bounce ? &m->gpu->cache : &m->gpu->registered;
}

/* m's memory is pinned. Process context. */
void nvfs_gpustat_pin(struct nvfs_mapping *m, const struct nvidia_p2p_page_table *t)
{
	static const u8 unknown[NVIDIA_P2P_GPU_UUID_LEN];

	mutex_lock(&nvfs_gpustat_lock);
	m->gpu = nvfs_gpustat_get(t->gpu_uuid ?: unknown, t->pages[0]->physical_address);
	if (m->gpu) {
		*nvfs_gpustat_field(m) += m->size;
		m->gpu->max = max(m->gpu->max, m->gpu->registered + m->gpu->cache);
	}
	mutex_unlock(&nvfs_gpustat_lock);
}

void nvfs_gpustat_unpin(struct nvfs_mapping *m)
{
	mutex_lock(&nvfs_gpustat_lock);
	if (m->gpu)
		*nvfs_gpustat_field(m) -= m->size;
	m->gpu = NULL;
	mutex_unlock(&nvfs_gpustat_lock);
}

/* A submission of m's went to the peers of these slots. */
void nvfs_gpustat_used(struct nvfs_mapping *m, u64 slots)
{
	unsigned int i;

	for (i = 0; m->gpu && i < NVFS_MAX_PEERS; i++)
		if (slots & BIT_ULL(i))
			atomic64_inc(&m->gpu->used[i]);
}

/* Submissions between a GPU and a peer, as far as they were counted. */
u64 nvfs_gpustat_count(struct pci_dev *gpu, struct pci_dev *peer)
{
	struct nvfs_peer *p;
	unsigned int i;
	int slot = -1;
	u64 n = 0;

	rcu_read_lock();
	p = nvfs_peer_find(&peer->dev);
	if (p)
		slot = p->slot;
	rcu_read_unlock();
	if (slot < 0)
		return 0;
	mutex_lock(&nvfs_gpustat_lock);
	for (i = 0; i < nvfs_ngpustats; i++) {
		struct nvfs_gpustat *g = &nvfs_gpustats[i];

		if (g->domain == pci_domain_nr(gpu->bus) && g->bus == gpu->bus->number &&
		    g->devfn == gpu->devfn)
			n += atomic64_read(&g->used[slot]);
	}
	mutex_unlock(&nvfs_gpustat_lock);
	return n;
}

/* Cumulative numbers go back to zero; what is pinned is still pinned. */
void nvfs_gpustat_reset(void)
{
	unsigned int i, j;

	mutex_lock(&nvfs_gpustat_lock);
	for (i = 0; i < nvfs_ngpustats; i++) {
		nvfs_gpustats[i].max = nvfs_gpustats[i].registered + nvfs_gpustats[i].cache;
		for (j = 0; j < NVFS_MAX_PEERS; j++)
			atomic64_set(&nvfs_gpustats[i].used[j], 0);
	}
	mutex_unlock(&nvfs_gpustat_lock);
}

/* percent of this GPU's submissions that crossed root ports */
static u32 nvfs_gpustat_cross(const struct nvfs_gpustat *g)
{
	struct pci_dev *gpu;
	u32 percent = 0;

	gpu = g->domain < 0 ? NULL : pci_get_domain_bus_and_slot(g->domain, g->bus, g->devfn);
	if (gpu)
		percent = nvfs_cross_percent(gpu);
	pci_dev_put(gpu);
	return percent;
}

void nvfs_gpustats_show(struct seq_file *s)
{
	unsigned int i, n;

	mutex_lock(&nvfs_gpustat_lock);
	n = nvfs_ngpustats;
	mutex_unlock(&nvfs_gpustat_lock);
	for (i = 0; i < n; i++) {	/* entries stay, and their identity never changes */
		struct nvfs_gpustat *g = &nvfs_gpustats[i];

		seq_printf(s, "GPU %04x:%02x:%02x.%d  uuid:%pUb : Registered_MiB=%llu Cache_MiB=%llu max_pinned_MiB=%llu ",
			   max(g->domain, 0), g->bus, PCI_SLOT(g->devfn), PCI_FUNC(g->devfn),
			   g->uuid, READ_ONCE(g->registered) >> 20, READ_ONCE(g->cache) >> 20,
			   READ_ONCE(g->max) >> 20);
		if (READ_ONCE(nvfs_peer_stats_enabled))
			seq_printf(s, "cross_root_port(%%)=%u", nvfs_gpustat_cross(g));
		seq_putc(s, '\n');
	}
}
