// SPDX-License-Identifier: MIT
/* topology.c - the tree as text. */
#include <errno.h>
#include <string.h>

#include "topology.h"

/* "|  |  `- ": the lines of those above that go on, then the branch */
static void branches(const struct topo *t, const struct topo_node *node, FILE *out)
{
	const struct topo_node *up;
	unsigned int d, steps;

	for (d = 0; d < node->depth; d++) {
		up = node;
		for (steps = node->depth - d; steps; steps--)
			up = &t->node[up->above];
		fputs(up->last ? "   " : "|  ", out);
	}
	fputs(node->last ? "`- " : "|- ", out);
}

static void comma(const char *text, FILE *out)
{
	if (text[0])
		fprintf(out, ", %s", text);
}

static void print_node(const struct topo *t, const struct topo_node *node, FILE *out)
{
	char buf[160];

	branches(t, node, out);
	fprintf(out, "%s %s%s%s [%04x:%04x]", node->pci.address, topo_kind(node),
		node->pci.name[0] ? " " : "", node->pci.name, node->pci.vendor, node->pci.device);
	comma(topo_link(node, buf, sizeof(buf)), out);
	comma(topo_acs(node, buf, sizeof(buf)), out);
	comma(topo_iommu(node, buf, sizeof(buf)), out);
	if (!topo_is_bridge(node) && node->pci.numa >= 0)
		fprintf(out, ", NUMA node %d", node->pci.numa);
	fputc('\n', out);
}

static void print_pairs(const struct topo *t, FILE *out)
{
	struct topo_pair p;
	size_t i = 0, j = 0;
	char buf[320];
	bool any = false;

	while (topo_pair(t, &i, &j, &p)) {
		if (!any)
			fprintf(out, "\nfrom GPU to drive, the way of their bytes:\n");
		any = true;
		fprintf(out, "  %s - %s%s%s: %s\n", p.gpu->pci.address, p.drive->pci.address,
			p.drive->pci.name[0] ? " " : "", p.drive->pci.name,
			topo_way(&p, buf, sizeof(buf)));
	}
	if (!any)
		fprintf(out, "\nno pair: this machine shows no GPU together with an NVMe drive\n");
}

static void print_hints(const struct topo *t, FILE *out)
{
	bool slow = false, redirects = false;
	size_t i;

	for (i = 0; i < t->n; i++) {
		slow |= t->node[i].slow;
		redirects |= t->node[i].acs.on & FACTS_ACS_REDIRECT;
	}
	if (slow)
		fprintf(out, "SLOW: an idle GPU lowers its link's speed, so look again under load; else reseat it, or look in the firmware\n");
	if (redirects)
		fprintf(out, "REDIRECTS: bytes between functions below such a bridge go by the root complex; pci=disable_acs_redir=ADDRESS, or ACS off in the firmware, ends that\n");
}

int gc_topology(const char *root, FILE *out)
{
	const char *complex = "";
	struct topo t;
	size_t i;
	int r;

	r = topo_read(root, &t);
	if (r) {
		topo_free(&t);
		fprintf(out, "%s/sys/bus/pci/devices: %s; mount /sys, in a container read-only\n", root,
			strerror(-r));
		return TOPOLOGY_EXIT_FAILED;
	}
	for (i = 0; i < t.n; i++) {
		if (strcmp(complex, t.node[i].pci.complex))
			fprintf(out, "%s root complex\n", t.node[i].pci.complex);
		complex = t.node[i].pci.complex;
		print_node(&t, &t.node[i], out);
	}
	print_pairs(&t, out);
	print_hints(&t, out);
	topo_free(&t);
	return TOPOLOGY_EXIT_TOLD;
}
