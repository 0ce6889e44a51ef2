// SPDX-License-Identifier: GPL-2.0-only
/*
 * topo.c - which GPUs, network adapters and drives this machine has and how far apart they
 * are: looked up when somebody reads it, so that what is plugged in later is there, too.
 */
#include <linux/bitfield.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/topology.h>

#include "nvidia-fs.h"
#include "topo.h"

#define NVFS_CLASS_INFINIBAND 0x0207	/* the kernel's headers have no name for it */

/* A display function of the vendor's, or one that the simulated driver has. */
static bool nvfs_is_gpu(const struct pci_dev *pdev)
{
	u32 class = pdev->class >> 8;

	if (pdev->vendor == PCI_VENDOR_ID_NVIDIA)
		return class == PCI_CLASS_DISPLAY_3D || class == PCI_CLASS_DISPLAY_VGA;
	return pdev->dev.driver && !strcmp(pdev->dev.driver->name, "gpu-sim");
}

static const char *nvfs_peer_class(const struct pci_dev *pdev)
{
	if (pdev->class == PCI_CLASS_STORAGE_EXPRESS)
		return "nvme";
	if (pdev->class >> 8 == PCI_CLASS_NETWORK_ETHERNET ||
	    pdev->class >> 8 == NVFS_CLASS_INFINIBAND)
		return "network";
	return NULL;
}

static bool nvfs_acs_on(struct pci_dev *bridge)
{
	u16 ctrl, at = pci_find_ext_capability(bridge, PCI_EXT_CAP_ID_ACS);

	if (!at || pci_read_config_word(bridge, at + PCI_ACS_CTRL, &ctrl))
		return false;
	return ctrl & 0x7f;
}

static u64 nvfs_pci_id(const struct pci_dev *pdev)
{
	return (u64)pci_domain_nr(pdev->bus) << 32 | pci_dev_id((struct pci_dev *)pdev);
}

static void nvfs_path_of(struct pci_dev *pdev, struct nvfs_path *path)
{
	struct pci_dev *up = pci_upstream_bridge(pdev);

	for (path->n = 0; up && path->n < NVFS_MAX_PCI_DEPTH; up = pci_upstream_bridge(up)) {
		path->bridge[path->n] = nvfs_pci_id(up);
		path->acs[path->n++] = nvfs_acs_on(up);
	}
}

static bool nvfs_same_node(struct pci_dev *a, struct pci_dev *b)
{
	int na = dev_to_node(&a->dev), nb = dev_to_node(&b->dev);

	if (na == NUMA_NO_NODE || nb == NUMA_NO_NODE)
		return na == nb;
	return node_distance(na, nb) <= LOCAL_DISTANCE;
}

u32 nvfs_pci_distance(struct pci_dev *gpu, struct pci_dev *peer)
{
	struct nvfs_path g, p;

	nvfs_path_of(gpu, &g);
	nvfs_path_of(peer, &p);
	return nvfs_path_distance(&g, &p, nvfs_same_node(gpu, peer));
}

bool nvfs_is_cross(u32 distance)
{
	return distance >= NVFS_CROSS_LOCAL;
}

static void nvfs_addr_show(struct seq_file *s, const struct pci_dev *pdev)
{
	seq_printf(s, "%04x:%02x:%02x.%d", pci_domain_nr(pdev->bus), pdev->bus->number,
		   PCI_SLOT(pdev->devfn), PCI_FUNC(pdev->devfn));
}

static void nvfs_pair_show(struct seq_file *s, struct pci_dev *gpu, struct pci_dev *peer,
			   const char *class)
{
	u32 distance = nvfs_pci_distance(gpu, peer), width, speed;
	u16 sta = 0;

	pcie_capability_read_word(peer, PCI_EXP_LNKSTA, &sta);
	width = FIELD_GET(PCI_EXP_LNKSTA_NLW, sta);
	speed = FIELD_GET(PCI_EXP_LNKSTA_CLS, sta);
	nvfs_addr_show(s, gpu);
	seq_puts(s, " \t");
	nvfs_addr_show(s, peer);
	seq_printf(s, " \t0x%08x\t0x%04x\t0x%02x\t0x%02x\t0x%02x\t%llu\t%s\n",
		   nvfs_path_rank(distance, width, speed), distance, width, speed,
		   dev_to_node(&peer->dev) & 0xff, nvfs_gpustat_count(gpu, peer), class);
}

/* Calls fn for each GPU; blocks. */
void nvfs_each_gpu(void (*fn)(struct seq_file *s, struct pci_dev *gpu), struct seq_file *s)
{
	struct pci_dev *gpu = NULL;

	for_each_pci_dev(gpu)
		if (nvfs_is_gpu(gpu))
			fn(s, gpu);
}

static void nvfs_peers_of(struct seq_file *s, struct pci_dev *gpu)
{
	struct pci_dev *peer = NULL;

	for_each_pci_dev(peer) {
		const char *class = nvfs_peer_class(peer);

		if (class)
			nvfs_pair_show(s, gpu, peer, class);
	}
}

void nvfs_peer_distance_show(struct seq_file *s)
{
	seq_puts(s, "gpu\t\tpeer\t\tpeerrank\tp2pdist\tlink\tgen\tnuma\tnp2p\tclass\n");
	nvfs_each_gpu(nvfs_peers_of, s);
}

/* Bridges that send peer-to-peer traffic over the root: what makes a pair slow. */
void nvfs_bridges_show(struct seq_file *s)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev) {
		if (!pci_is_bridge(pdev) || !nvfs_acs_on(pdev))
			continue;
		nvfs_addr_show(s, pdev);
		seq_putc(s, '\n');
	}
}

static void nvfs_affinity_of(struct seq_file *s, struct pci_dev *gpu)
{
	u64 count[2 * NVFS_MAX_PCI_DEPTH + 1] = { 0 };
	struct pci_dev *peer = NULL;
	unsigned int i;

	for_each_pci_dev(peer) {
		u64 n = nvfs_gpustat_count(gpu, peer);
		u32 d;

		if (!n)
			continue;
		d = nvfs_pci_distance(gpu, peer);
		count[nvfs_is_cross(d) ? ARRAY_SIZE(count) - 1 :
		      min_t(u32, d, 2 * NVFS_MAX_PCI_DEPTH) - 1] += n;
	}
	seq_puts(s, "GPU :");
	nvfs_addr_show(s, gpu);
	seq_puts(s, " :");
	for (i = 0; i < ARRAY_SIZE(count); i++)
		seq_printf(s, "%llu ", count[i]);
	seq_putc(s, '\n');
}

void nvfs_peer_affinity_show(struct seq_file *s)
{
	if (!READ_ONCE(nvfs_peer_stats_enabled))
		return;
	seq_puts(s, "GPU peer affinity, by distance\n\n");
	seq_puts(s, "submissions to peers at distance 1 to 32, then to those below another root port\n");
	nvfs_each_gpu(nvfs_affinity_of, s);
}
