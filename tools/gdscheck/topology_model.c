// SPDX-License-Identifier: MIT
/* topology_model.c - the PCI tree in the order of a drawing, and the words for what is in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topology.h"

#define FUNCTIONS 1024

/*
 * A root port's link is the one below it, and so is that of the lower ports of a switch: levels
 * alternate, whole links and the inside of a switch. What is no bridge always has its own.
 */
static bool has_link(const struct topo_node *node)
{
	return !topo_is_bridge(node) || node->depth % 2;
}

static unsigned int lower(unsigned int a, unsigned int b)
{
	return !b || (a && a < b) ? a : b;
}

static void look_at_link(const char *root, struct topo_node *node, const char *above)
{
	struct facts_pci_link own, up = { 0 };

	if (!has_link(node) || facts_pci_link(root, node->pci.address, &own))
		return;
	if (above)
		facts_pci_link(root, above, &up);
	node->speed = own.speed ? own.speed : up.speed;
	node->width = own.width ? own.width : up.width;
	node->could_speed = lower(own.max_speed, up.max_speed);
	node->could_width = lower(own.max_width, up.max_width);
	node->link = node->speed && node->width;
	node->slow = node->link && (node->speed < node->could_speed ||
				    node->width < node->could_width);
}

static void look_at(const char *root, struct topo_node *node, const char *above)
{
	look_at_link(root, node, above);
	if (topo_is_bridge(node))
		node->acs_err = facts_pci_acs(root, node->pci.address, &node->acs);
	node->iommu_err = facts_pci_iommu(root, node->pci.address, &node->iommu);
}

/* Is all[b] the next one of the same bridge, or of the same root complex, behind all[a]? */
static bool is_sibling(const struct topo *t, size_t a, size_t b)
{
	return !strcmp(t->all[a].parent, t->all[b].parent) &&
	       (t->all[a].parent[0] || !strcmp(t->all[a].complex, t->all[b].complex));
}

/* From the last one to the first: what is put on the stack last is drawn first. */
static size_t push(const struct topo *t, const char *parent, const char *complex, size_t *stack,
		   size_t top)
{
	size_t i;

	for (i = t->nall; i-- > 0;)
		if (!strcmp(t->all[i].parent, parent) &&
		    (!complex || !strcmp(t->all[i].complex, complex)))
			stack[top++] = i;
	return top;
}

static void add(const char *root, struct topo *t, size_t i)
{
	const struct facts_pci *above = facts_pci_above(t->all, t->nall, &t->all[i]);
	struct topo_node *node = &t->node[t->n];
	size_t j;

	node->fact = &t->all[i];
	node->pci = t->all[i];
	node->above = above ? t->place[above - t->all] : TOPO_NONE;
	node->depth = above ? t->node[node->above].depth + 1 : 0;
	node->last = true;
	for (j = i + 1; j < t->nall; j++)
		if (is_sibling(t, i, j))
			node->last = false;
	look_at(root, node, above ? above->address : NULL);
	t->place[i] = t->n++;
}

/* Root complex after root complex, as their first functions come. */
static void arrange(const char *root, struct topo *t, size_t *stack)
{
	size_t i, j, top;

	for (i = 0; i < t->nall; i++) {
		if (t->all[i].parent[0])
			continue;
		for (j = 0; j < i; j++)
			if (!strcmp(t->all[j].complex, t->all[i].complex))
				break;
		if (j < i)
			continue;
		top = push(t, "", t->all[i].complex, stack, 0);
		while (top) {
			j = stack[--top];
			add(root, t, j);
			top = push(t, t->all[j].address, NULL, stack, top);
		}
	}
}

int topo_read(const char *root, struct topo *t)
{
	size_t *stack;
	int n;

	memset(t, 0, sizeof(*t));
	t->all = calloc(FUNCTIONS, sizeof(*t->all));
	if (!t->all)
		return -ENOMEM;
	n = facts_pci_tree_nics(root, t->all, FUNCTIONS);
	if (n <= 0)
		return n;
	t->nall = (size_t)n;
	t->node = calloc(t->nall, sizeof(*t->node));
	t->place = calloc(t->nall, sizeof(*t->place));
	stack = calloc(t->nall, sizeof(*stack));
	if (t->node && t->place && stack)
		arrange(root, t, stack);
	n = t->node && t->place && stack ? 0 : -ENOMEM;
	free(stack);
	return n;
}

void topo_free(struct topo *t)
{
	free(t->node);
	free(t->place);
	free(t->all);
	memset(t, 0, sizeof(*t));
}

/* ---- pairs ---- */

static const struct topo_node *above(const struct topo *t, const struct topo_node *node)
{
	return node->above == TOPO_NONE ? NULL : &t->node[node->above];
}

/* The bridges from one end up to where they meet, that one with them, or to the root complex. */
static void walk(const struct topo *t, const struct topo_node *from, struct topo_pair *p)
{
	const struct topo_node *b;

	for (b = above(t, from); b; b = above(t, b)) {
		if (b->acs_err || !b->acs.readable)
			p->unread = true;
		else if ((b->acs.on & FACTS_ACS_REDIRECT) && !p->redirects)
			p->redirects = b;
		if (b == p->meet)
			return;
	}
}

static bool translates(const struct topo_node *node)
{
	return node->iommu.state == FACTS_IOMMU_DMA || node->iommu.state == FACTS_IOMMU_DMA_FQ;
}

static void judge(const struct topo *t, struct topo_pair *p)
{
	const struct facts_pci *meet;

	p->way = facts_pci_way(t->all, t->nall, p->gpu->fact, p->drive->fact, &meet);
	p->meet = meet ? &t->node[t->place[meet - t->all]] : NULL;
	walk(t, p->gpu, p);
	walk(t, p->drive, p);
	p->translated = translates(p->gpu) ? p->gpu : translates(p->drive) ? p->drive : NULL;
}

bool topo_pair(const struct topo *t, size_t *i, size_t *j, struct topo_pair *out)
{
	for (; *i < t->n; ++*i, *j = 0) {
		if (t->node[*i].pci.kind != FACTS_PCI_GPU)
			continue;
		for (; *j < t->n; ++*j) {
			if (t->node[*j].pci.kind != FACTS_PCI_NVME)
				continue;
			*out = (struct topo_pair){ .gpu = &t->node[*i], .drive = &t->node[*j] };
			judge(t, out);
			++*j;
			return true;
		}
	}
	return false;
}

/* ---- words ---- */

bool topo_is_bridge(const struct topo_node *node)
{
	return node->pci.kind == FACTS_PCI_ROOT_PORT || node->pci.kind == FACTS_PCI_SWITCH;
}

const char *topo_kind(const struct topo_node *node)
{
	switch (node->pci.kind) {
	case FACTS_PCI_ROOT_PORT:
		return "root port";
	case FACTS_PCI_SWITCH:
		return node->depth % 2 ? "switch" : "switch port";
	case FACTS_PCI_GPU:
		return "GPU";
	case FACTS_PCI_NVME:
		return "drive";
	case FACTS_PCI_NIC:
		return "network";
	}
	return "";
}

const char *topo_link(const struct topo_node *node, char *buf, size_t len)
{
	int n;

	buf[0] = '\0';
	if (!node->link)
		return buf;
	n = snprintf(buf, len, "link %u.%u GT/s x%u", node->speed / 1000, node->speed / 100 % 10,
		     node->width);
	if (node->slow && n > 0 && (size_t)n < len)
		snprintf(buf + n, len - (size_t)n, ", SLOW: both ends can %u.%u GT/s x%u",
			 node->could_speed / 1000, node->could_speed / 100 % 10,
			 node->could_width);
	return buf;
}

static const struct {
	unsigned int bit;
	const char *name;
} acs_bits[] = {
	{ FACTS_ACS_REQUEST, "request" },
	{ FACTS_ACS_COMPLETION, "completion" },
	{ FACTS_ACS_EGRESS, "egress" },
};

const char *topo_acs(const struct topo_node *node, char *buf, size_t len)
{
	size_t i, at;

	buf[0] = '\0';
	if (!topo_is_bridge(node))
		return buf;
	if (node->acs_err || !node->acs.readable)
		snprintf(buf, len, "ACS not readable");
	else if (!node->acs.there)
		snprintf(buf, len, "no ACS");
	else if (!(node->acs.on & FACTS_ACS_REDIRECT))
		snprintf(buf, len, "ACS redirects nothing");
	if (buf[0])
		return buf;
	at = (size_t)snprintf(buf, len, "ACS REDIRECTS");
	for (i = 0; i < sizeof(acs_bits) / sizeof(acs_bits[0]) && at < len; i++)
		if (node->acs.on & acs_bits[i].bit)
			at += (size_t)snprintf(buf + at, len - at, " %s", acs_bits[i].name);
	return buf;
}

const char *topo_iommu(const struct topo_node *node, char *buf, size_t len)
{
	static const char *const states[] = {
		[FACTS_IOMMU_NONE] = "no IOMMU",	  [FACTS_IOMMU_IDENTITY] = "IOMMU identity",
		[FACTS_IOMMU_DMA] = "IOMMU TRANSLATES",	  [FACTS_IOMMU_DMA_FQ] = "IOMMU TRANSLATES (lazy)",
		[FACTS_IOMMU_BLOCKED] = "IOMMU BLOCKS",	  [FACTS_IOMMU_UNKNOWN] = "IOMMU of an unknown kind",
	};
	int n;

	buf[0] = '\0';
	if (topo_is_bridge(node))
		return buf;
	if (node->iommu_err) {
		snprintf(buf, len, "IOMMU not readable");
		return buf;
	}
	n = snprintf(buf, len, "%s", states[node->iommu.state]);
	if (node->iommu.group >= 0 && n > 0 && (size_t)n < len)
		snprintf(buf + n, len - (size_t)n, ", group %d", node->iommu.group);
	return buf;
}

const char *topo_way(const struct topo_pair *p, char *buf, size_t len)
{
	static const char *const ways[] = {
		[FACTS_PCI_WAY_SWITCH] = "same switch", [FACTS_PCI_WAY_PORT] = "same root port",
		[FACTS_PCI_WAY_HOST] = "same host bridge", [FACTS_PCI_WAY_OTHER] = "other host bridge",
	};
	size_t at;

	at = (size_t)snprintf(buf, len, "%s", ways[p->way]);
	if (p->meet && at < len)
		at += (size_t)snprintf(buf + at, len - at, " (meet at %s)", p->meet->pci.address);
	if (p->meet && p->redirects && at < len)
		at += (size_t)snprintf(buf + at, len - at, ", but ACS of %s sends it up to the host bridge",
				       p->redirects->pci.address);
	else if (p->meet && p->unread && at < len)
		at += (size_t)snprintf(buf + at, len - at, ", if ACS is off (not readable: run as root)");
	if (p->translated && at < len)
		snprintf(buf + at, len - at, ", addresses of %s are translated",
			 p->translated->pci.address);
	return buf;
}
