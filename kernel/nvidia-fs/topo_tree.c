// SPDX-License-Identifier: GPL-2.0-only
/*
 * topo_tree.c - distance, rank, way and link of PCI functions, as functions of an array.
 *
 * A walk from a function upwards ends after as many steps as there are functions, so that an
 * array with a circle in it costs a wrong number and no hang.
 */
#include <linux/errno.h>

#include "topo_tree.h"

#define NVFS_VENDOR_NVIDIA 0x10de
#define NVFS_CLASS_VGA 0x0300
#define NVFS_CLASS_3D 0x0302
#define NVFS_CLASS_NVME 0x010802
#define NVFS_CLASS_ETHERNET 0x0200
#define NVFS_CLASS_INFINIBAND 0x0207
#define NVFS_RANK_FASTEST 160	/* 32 lanes of generation 5 */

/* A display function of the vendor's, or one that somebody calls a GPU. */
bool nvfs_node_is_gpu(const struct nvfs_tree *t, unsigned int i)
{
	const struct nvfs_node *d = &t->node[i];
	u32 class = d->class >> 8;

	if (d->gpu)
		return true;
	if (d->vendor == NVFS_VENDOR_NVIDIA)
		return class == NVFS_CLASS_3D || class == NVFS_CLASS_VGA;
	return t->extra_vendor && d->vendor == t->extra_vendor && d->device == t->extra_device;
}

/* The last column of peer_distance, or NULL for what is no peer. */
const char *nvfs_node_peer_class(const struct nvfs_tree *t, unsigned int i)
{
	u32 class = t->node[i].class;

	if (class == NVFS_CLASS_NVME)
		return "nvme";
	if (class >> 8 == NVFS_CLASS_ETHERNET || class >> 8 == NVFS_CLASS_INFINIBAND)
		return "network";
	return NULL;
}

/* A bridge that some traffic from below may not pass straight on. */
bool nvfs_node_acs(const struct nvfs_tree *t, unsigned int i)
{
	return t->node[i].bridge && t->node[i].acs & NVFS_ACS_ANY;
}

/*
 * The link that the function's bytes go over. Conventional functions, those inside a root
 * complex and virtual functions have none of their own: then it is that of the port above.
 */
void nvfs_node_link(const struct nvfs_tree *t, unsigned int i, u8 *width, u8 *speed)
{
	unsigned int left = t->n;
	int at = i;

	for (; at >= 0 && left; at = t->node[at].parent, left--) {
		*width = t->node[at].width;
		*speed = t->node[at].speed;
		if (*width)
			return;
	}
	*width = 0;
	*speed = 0;
}

static unsigned int nvfs_depth(const struct nvfs_tree *t, unsigned int i)
{
	unsigned int n = 0;
	int at;

	for (at = t->node[i].parent; at >= 0 && n < t->n; at = t->node[at].parent)
		n++;
	return n;
}

/* The lowest bridge above both, and how many bridges are below it on each side. */
static int nvfs_common(const struct nvfs_tree *t, unsigned int a, unsigned int b,
		       unsigned int *below_a, unsigned int *below_b)
{
	unsigned int na = nvfs_depth(t, a), nb = nvfs_depth(t, b), da = 0, db = 0;
	int at = t->node[a].parent, bt = t->node[b].parent;

	for (; na > nb; na--, da++)
		at = t->node[at].parent;
	for (; nb > na; nb--, db++)
		bt = t->node[bt].parent;
	for (; at >= 0 && at != bt && na; na--, da++, db++) {
		at = t->node[at].parent;
		bt = t->node[bt].parent;
	}
	*below_a = da;
	*below_b = db;
	return at == bt ? at : NVFS_NO_NODE;
}

static bool nvfs_same_place(const struct nvfs_tree *t, unsigned int a, unsigned int b)
{
	int na = t->node[a].numa, nb = t->node[b].numa;

	if (na == nb)
		return true;
	return na != NVFS_NO_NODE && nb != NVFS_NO_NODE && t->near && t->near(na, nb);
}

/* As proc file peer_distance has it: 1 is next to each other. */
u32 nvfs_tree_distance(const struct nvfs_tree *t, unsigned int gpu, unsigned int peer)
{
	unsigned int g, p;
	int common = nvfs_common(t, gpu, peer, &g, &p);
	u32 d = g + p + 1;

	if (common < 0)
		return (nvfs_same_place(t, gpu, peer) ? NVFS_CROSS_LOCAL : NVFS_CROSS_REMOTE) +
		       nvfs_depth(t, gpu) + nvfs_depth(t, peer) + 1;
	/* with ACS the bytes go over the top; the GPU's own bridge does not count */
	if (g && nvfs_node_acs(t, common))
		d += nvfs_depth(t, common);
	return d;
}

bool nvfs_is_cross(u32 distance)
{
	return distance >= NVFS_CROSS_LOCAL;
}

/* Lower is better: near first, then the wider and faster link of the peer. */
u32 nvfs_tree_rank(const struct nvfs_tree *t, unsigned int gpu, unsigned int peer)
{
	u8 width, speed;
	u32 fast;

	nvfs_node_link(t, peer, &width, &speed);
	fast = (u32)width * speed;
	return nvfs_tree_distance(t, gpu, peer) << 16 |
	       (NVFS_RANK_FASTEST - (fast < NVFS_RANK_FASTEST ? fast : NVFS_RANK_FASTEST));
}

static bool nvfs_redirects(const struct nvfs_tree *t, int i)
{
	return t->node[i].acs & NVFS_ACS_REDIRECT;
}

/* The first function from i on, up to `end` and with it, that redirects, or NVFS_NO_NODE. */
static int nvfs_redirect_below(const struct nvfs_tree *t, int i, int end)
{
	unsigned int left = t->n;

	for (; i >= 0 && left; i = t->node[i].parent, left--) {
		if (nvfs_redirects(t, i))
			return i;
		if (i == end)
			break;
	}
	return NVFS_NO_NODE;
}

/*
 * Which way the bytes between a and b go. *at: the bridge that hands them on or that
 * redirects them; NVFS_NO_NODE where it is the host bridge. The kernel's own judgement
 * (pci_p2pdma_distance()) looks at the same functions: both ends, since a function of a
 * multi-function device may redirect, all bridges between, and the one in common.
 */
enum nvfs_way nvfs_tree_way(const struct nvfs_tree *t, unsigned int a, unsigned int b, int *at)
{
	unsigned int da, db;
	int common = nvfs_common(t, a, b, &da, &db);

	*at = common;
	if (common < 0)
		return NVFS_WAY_HOST;
	*at = nvfs_redirect_below(t, a, common);
	if (*at < 0)
		*at = nvfs_redirect_below(t, b, common);
	if (*at >= 0)
		return NVFS_WAY_REDIRECT;
	*at = common;
	return NVFS_WAY_SWITCH;
}

static int nvfs_hex4(const char *s)
{
	int i, v = 0;

	for (i = 0; i < 4; i++) {
		char c = s[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			v = v << 4 | (c - 'A' + 10);
		else
			return -EINVAL;
	}
	return v;
}

/* "vvvv:dddd" and perhaps a newline; the empty text is none. 0 or -EINVAL. */
int nvfs_extra_gpu_parse(const char *text, u16 *vendor, u16 *device)
{
	int v, d;

	*vendor = 0;
	*device = 0;
	if (!text || !*text)
		return 0;
	v = nvfs_hex4(text);
	if (v <= 0 || text[4] != ':')
		return -EINVAL;
	d = nvfs_hex4(text + 5);
	if (d < 0 || (text[9] && !(text[9] == '\n' && !text[10])))
		return -EINVAL;
	*vendor = v;
	*device = d;
	return 0;
}
