/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * topo.h - how far two PCI functions are from each other. Pure, so that
 * tests/unit/t_topo.c runs it.
 */
#ifndef NVIDIA_FS_TOPO_H
#define NVIDIA_FS_TOPO_H

#define NVFS_MAX_PCI_DEPTH 16
#define NVFS_CROSS_LOCAL 127	/* from here on: no bridge in common */
#define NVFS_CROSS_REMOTE 254	/* ... and another NUMA node */

/* the bridges above a function: [0] is its own, [n - 1] the topmost */
struct nvfs_path {
	u32 n;
	u64 bridge[NVFS_MAX_PCI_DEPTH];		/* PCI address, any unique number */
	bool acs[NVFS_MAX_PCI_DEPTH];
};

/* local: both are on one NUMA node, as far as is known */
static inline u32 nvfs_path_distance(const struct nvfs_path *g, const struct nvfs_path *p,
				     bool local)
{
	u32 gi = g->n, pi = p->n, d;

	while (gi && pi && p->bridge[pi - 1] != g->bridge[gi - 1])
		pi--;
	if (!gi || !pi)
		return (local ? NVFS_CROSS_LOCAL : NVFS_CROSS_REMOTE) + g->n + p->n + 1;
	while (gi && pi && g->bridge[gi - 1] == p->bridge[pi - 1]) {
		gi--;
		pi--;
	}
	d = gi + pi + 1;
	/* gi is now the lowest one in common; with ACS the bytes go over the top */
	if (gi && g->acs[gi])
		d += g->n - 1 - gi;
	return d;
}

/* Lower is better: near first, then the wider and faster link. */
static inline u32 nvfs_path_rank(u32 distance, u32 width, u32 speed)
{
	u32 fast = width * speed;

	return distance << 16 | (160 - (fast < 160 ? fast : 160));
}

#endif /* NVIDIA_FS_TOPO_H */
