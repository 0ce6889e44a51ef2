// SPDX-License-Identifier: GPL-2.0-only
/*
 * topo.c - which GPUs, network adapters and drives this machine has, for the proc files: a
 * picture of all PCI functions, taken when somebody reads it, so that what is plugged in
 * later is there, too. What follows from the picture is topo_tree.c's.
 */
#include <linux/bitfield.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "nvidia-fs.h"
#include "log.h"
#include "topo_tree.h"

static char *nvfs_extra_gpu = "";
module_param_named(extra_gpu, nvfs_extra_gpu, charp, 0444);
MODULE_PARM_DESC(extra_gpu, "PCI functions that count as GPUs besides NVIDIA's, as vvvv:dddd");
static u16 nvfs_extra_vendor, nvfs_extra_device;	/* constant after init */

/* Functions, each referenced, and what is known of them, by the same index. */
struct nvfs_picture {
	struct nvfs_tree tree;
	struct nvfs_node *node;
	struct pci_dev **dev;
};

static u16 nvfs_acs_ctrl(struct pci_dev *pdev)
{
	u16 ctrl, at = pci_find_ext_capability(pdev, PCI_EXT_CAP_ID_ACS);

	if (!at || pci_read_config_word(pdev, at + PCI_ACS_CTRL, &ctrl))
		return 0;
	return ctrl == 0xffff ? 0 : ctrl;	/* all ones: nobody answered */
}

static bool nvfs_near(int a, int b)
{
	return node_distance(a, b) <= LOCAL_DISTANCE;
}

/* dev[] holds what is before index n; bridges come before what is below them. */
static int nvfs_index_of(const struct nvfs_picture *p, const struct pci_dev *pdev, unsigned int n)
{
	while (n--)
		if (p->dev[n] == pdev)
			return n;
	return NVFS_NO_NODE;
}

/* Below the rescan lock, so no function comes or goes meanwhile. */
static void nvfs_node_fill(struct nvfs_picture *p, unsigned int i)
{
	struct pci_dev *pdev = p->dev[i], *up = pci_upstream_bridge(pdev);
	struct nvfs_node *d = &p->node[i];
	u16 sta = 0;

	pcie_capability_read_word(pdev, PCI_EXP_LNKSTA, &sta);
	*d = (struct nvfs_node){
		.domain = pci_domain_nr(pdev->bus),
		.bus = pdev->bus->number,
		.devfn = pdev->devfn,
		.bridge = pci_is_bridge(pdev),
		.vendor = pdev->vendor,
		.device = pdev->device,
		.class = pdev->class,
		.parent = up ? nvfs_index_of(p, up, p->tree.n) : NVFS_NO_NODE,
		.numa = dev_to_node(&pdev->dev),
		.acs = nvfs_acs_ctrl(pdev),
		.width = FIELD_GET(PCI_EXP_LNKSTA_NLW, sta),
		.speed = FIELD_GET(PCI_EXP_LNKSTA_CLS, sta),
		/* the simulated card is one without being told */
		.gpu = pdev->dev.driver && !strcmp(pdev->dev.driver->name, "gpu-sim"),
	};
}

static void nvfs_picture_free(struct nvfs_picture *p)
{
	unsigned int i;

	for (i = 0; i < p->tree.n; i++)
		pci_dev_put(p->dev[i]);
	kvfree(p->dev);
	kvfree(p->node);
}

/*
 * 0 or -ENOMEM. Takes pci_lock_rescan_remove(), below which drivers are unbound and so
 * nvfs_topo_lock is taken: the caller holds neither that nor a lock of the GPU driver's.
 */
static int nvfs_picture_take(struct nvfs_picture *p)
{
	struct pci_dev *pdev = NULL;
	unsigned int n = 0, i;

	*p = (struct nvfs_picture){
		.tree = {
			.near = nvfs_near,
			.extra_vendor = nvfs_extra_vendor,
			.extra_device = nvfs_extra_device,
		},
	};
	pci_lock_rescan_remove();
	for_each_pci_dev(pdev)
		n++;
	p->dev = kvcalloc(n, sizeof(*p->dev), GFP_KERNEL);
	p->node = kvcalloc(n, sizeof(*p->node), GFP_KERNEL);
	if (!p->dev || !p->node)
		goto unlock;
	/* functions of an SR-IOV driver's may still come, without that lock */
	for_each_pci_dev(pdev) {
		if (p->tree.n == n) {
			pci_dev_put(pdev);
			break;
		}
		p->dev[p->tree.n++] = pci_dev_get(pdev);
	}
	for (i = 0; i < p->tree.n; i++)
		nvfs_node_fill(p, i);
	p->tree.node = p->node;
unlock:
	pci_unlock_rescan_remove();
	if (p->tree.node)
		return 0;
	nvfs_picture_free(p);
	return -ENOMEM;
}

static int nvfs_picture_index(const struct nvfs_picture *p, const struct pci_dev *pdev)
{
	return nvfs_index_of(p, pdev, p->tree.n);
}

/* Percent of what `gpu` exchanged with its peers that had no bridge in common with it. */
u32 nvfs_cross_percent(struct pci_dev *gpu)
{
	struct nvfs_picture p;
	u64 all = 0, cross = 0;
	unsigned int i;
	int g;

	if (nvfs_picture_take(&p))
		return 0;
	g = nvfs_picture_index(&p, gpu);
	for (i = 0; g >= 0 && i < p.tree.n; i++) {
		u64 n = nvfs_gpustat_count(gpu, p.dev[i]);

		all += n;
		cross += n && nvfs_is_cross(nvfs_tree_distance(&p.tree, g, i)) ? n : 0;
	}
	nvfs_picture_free(&p);
	return all ? div64_u64(cross * 100, all) : 0;
}

static void nvfs_addr_show(struct seq_file *s, const struct nvfs_node *d)
{
	seq_printf(s, "%04x:%02x:%02x.%d", d->domain, d->bus, PCI_SLOT(d->devfn),
		   PCI_FUNC(d->devfn));
}

static void nvfs_pair_show(struct seq_file *s, const struct nvfs_picture *p, unsigned int gpu,
			   unsigned int peer, const char *class)
{
	const struct nvfs_tree *t = &p->tree;
	u8 width, speed;

	nvfs_node_link(t, peer, &width, &speed);
	nvfs_addr_show(s, &t->node[gpu]);
	seq_puts(s, " \t");
	nvfs_addr_show(s, &t->node[peer]);
	seq_printf(s, " \t0x%08x\t0x%04x\t0x%02x\t0x%02x\t0x%02x\t%llu\t%s\n",
		   nvfs_tree_rank(t, gpu, peer), nvfs_tree_distance(t, gpu, peer), width, speed,
		   t->node[peer].numa & 0xff, nvfs_gpustat_count(p->dev[gpu], p->dev[peer]), class);
}

static void nvfs_way_show(struct seq_file *s, const struct nvfs_picture *p, unsigned int gpu,
			  unsigned int peer, const char *class)
{
	static const char * const text[] = {
		[NVFS_WAY_SWITCH] = "handed on by ",
		[NVFS_WAY_HOST] = "through the host bridge",
		[NVFS_WAY_REDIRECT] = "redirected to the host bridge by ACS of ",
	};
	enum nvfs_way way;
	int at;

	way = nvfs_tree_way(&p->tree, gpu, peer, &at);
	seq_puts(s, "way ");
	nvfs_addr_show(s, &p->tree.node[gpu]);
	seq_putc(s, ' ');
	nvfs_addr_show(s, &p->tree.node[peer]);
	seq_printf(s, ": %s", text[way]);
	if (at >= 0)
		nvfs_addr_show(s, &p->tree.node[at]);
	seq_putc(s, '\n');
}

/* Calls fn for each GPU and each of its peers. 0 or -ENOMEM. Blocks. */
static int nvfs_each_pair(struct seq_file *s,
			  void (*fn)(struct seq_file *s, const struct nvfs_picture *p,
				     unsigned int gpu, unsigned int peer, const char *class))
{
	struct nvfs_picture p;
	unsigned int g, i;
	int r = nvfs_picture_take(&p);

	if (r)
		return r;
	for (g = 0; g < p.tree.n; g++) {
		if (!nvfs_node_is_gpu(&p.tree, g))
			continue;
		for (i = 0; i < p.tree.n; i++) {
			const char *class = nvfs_node_peer_class(&p.tree, i);

			if (class)
				fn(s, &p, g, i, class);
		}
	}
	nvfs_picture_free(&p);
	return 0;
}

int nvfs_peer_distance_show(struct seq_file *s)
{
	seq_puts(s, "gpu\t\tpeer\t\tpeerrank\tp2pdist\tlink\tgen\tnuma\tnp2p\tclass\n");
	return nvfs_each_pair(s, nvfs_pair_show);
}

/* Our own: which way the bytes of each pair go, and which bridge is to blame. */
int nvfs_ways_show(struct seq_file *s)
{
	return nvfs_each_pair(s, nvfs_way_show);
}

/* Bridges that send peer-to-peer traffic over the root: what makes a pair slow. */
int nvfs_bridges_show(struct seq_file *s)
{
	struct nvfs_picture p;
	unsigned int i;
	int r = nvfs_picture_take(&p);

	if (r)
		return r;
	for (i = 0; i < p.tree.n; i++) {
		if (!nvfs_node_acs(&p.tree, i))
			continue;
		nvfs_addr_show(s, &p.tree.node[i]);
		seq_putc(s, '\n');
	}
	nvfs_picture_free(&p);
	return 0;
}

static void nvfs_affinity_of(struct seq_file *s, const struct nvfs_picture *p, unsigned int gpu)
{
	u64 count[2 * NVFS_MAX_PCI_DEPTH + 1] = { 0 };
	unsigned int i;

	for (i = 0; i < p->tree.n; i++) {
		u64 n = nvfs_gpustat_count(p->dev[gpu], p->dev[i]);
		u32 d;

		if (!n)
			continue;
		d = nvfs_tree_distance(&p->tree, gpu, i);
		count[nvfs_is_cross(d) ? ARRAY_SIZE(count) - 1 :
		      min_t(u32, d, 2 * NVFS_MAX_PCI_DEPTH) - 1] += n;
	}
	seq_puts(s, "GPU :");
	nvfs_addr_show(s, &p->tree.node[gpu]);
	seq_puts(s, " :");
	for (i = 0; i < ARRAY_SIZE(count); i++)
		seq_printf(s, "%llu ", count[i]);
	seq_putc(s, '\n');
}

int nvfs_peer_affinity_show(struct seq_file *s)
{
	struct nvfs_picture p;
	unsigned int i;
	int r;

	if (!READ_ONCE(nvfs_peer_stats_enabled))
		return 0;
	r = nvfs_picture_take(&p);
	if (r)
		return r;
	seq_puts(s, "GPU peer affinity, by distance\n\n");
	seq_puts(s, "submissions to peers at distance 1 to 32, then to those below another root port\n");
	for (i = 0; i < p.tree.n; i++)
		if (nvfs_node_is_gpu(&p.tree, i))
			nvfs_affinity_of(s, &p, i);
	nvfs_picture_free(&p);
	return 0;
}

int nvfs_topo_init(void)
{
	int r = nvfs_extra_gpu_parse(nvfs_extra_gpu, &nvfs_extra_vendor, &nvfs_extra_device);

	if (r)
		nvfs_note("extra_gpu=%s: not of the form vvvv:dddd, hexadecimal, as lspci -n shows it (-EINVAL)\n",
			  nvfs_extra_gpu);
	return r;
}
