/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * topo_tree.h - a machine's PCI functions as an array, and what follows from it: how far two
 * are from each other, which way the bytes between them go, how fast a function's link is.
 *
 * Pure: topo.c fills the array from the kernel's devices, tests/unit/t_topo.c from drawings.
 */
#ifndef NVIDIA_FS_TOPO_TREE_H
#define NVIDIA_FS_TOPO_TREE_H

#include <linux/types.h>

#define NVFS_MAX_PCI_DEPTH 16	/* proc file peer_affinity has columns for so many bridges */
#define NVFS_CROSS_LOCAL 127	/* from here on: no bridge in common */
#define NVFS_CROSS_REMOTE 254	/* ... and another NUMA node */
#define NVFS_NO_NODE (-1)	/* NUMA node, or parent */

/* bits of the ACS control register; any of them counts for "ACS is on" */
#define NVFS_ACS_ANY 0x7f
#define NVFS_ACS_REDIRECT 0x2c	/* request redirect, completion redirect, egress control */

/* One function. Constant once the array is filled. */
struct nvfs_node {
	u32 domain;		/* above 0xffff for the domains that VMD makes */
	u8 bus, devfn;
	bool bridge;
	u16 vendor, device;
	u32 class;		/* base, sub, programming interface: 24 bits */
	int parent;		/* index of the bridge above; NVFS_NO_NODE: on a root bus */
	int numa;		/* NVFS_NO_NODE: unknown */
	u16 acs;		/* ACS control register; 0 without the capability */
	u8 width, speed;	/* of its own link, as it runs; 0: it has none, or it is down */
	bool gpu;		/* one whatever vendor and class say */
};

struct nvfs_tree {
	const struct nvfs_node *node;
	unsigned int n;
	/* both known and different: are they one place all the same? NULL: no */
	bool (*near)(int numa_a, int numa_b);
	u16 extra_vendor, extra_device;	/* functions of this kind are GPUs; 0: none */
};

/* which way bytes go between two functions */
enum nvfs_way {
	NVFS_WAY_SWITCH,	/* a bridge below the root hands them on */
	NVFS_WAY_HOST,		/* no bridge in common: through the host bridge */
	NVFS_WAY_REDIRECT,	/* ACS of a bridge on the way sends them up to the host bridge */
};

bool nvfs_node_is_gpu(const struct nvfs_tree *t, unsigned int i);
const char *nvfs_node_peer_class(const struct nvfs_tree *t, unsigned int i);
bool nvfs_node_acs(const struct nvfs_tree *t, unsigned int i);
void nvfs_node_link(const struct nvfs_tree *t, unsigned int i, u8 *width, u8 *speed);
u32 nvfs_tree_distance(const struct nvfs_tree *t, unsigned int gpu, unsigned int peer);
bool nvfs_is_cross(u32 distance);
u32 nvfs_tree_rank(const struct nvfs_tree *t, unsigned int gpu, unsigned int peer);
enum nvfs_way nvfs_tree_way(const struct nvfs_tree *t, unsigned int a, unsigned int b, int *at);
int nvfs_extra_gpu_parse(const char *text, u16 *vendor, u16 *device);

#endif /* NVIDIA_FS_TOPO_TREE_H */
