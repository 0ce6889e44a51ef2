/* SPDX-License-Identifier: MIT */
/* topology.h - where GPUs, drives and network cards are, and what is between them. */
#ifndef GDSCHECK_TOPOLOGY_H
#define GDSCHECK_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "facts.h"

enum {
	TOPOLOGY_EXIT_TOLD = 0,
	TOPOLOGY_EXIT_FAILED = 1,	/* /sys could not be read, or the file not be written */
};

/*
 * The PCI tree of GPUs, drives and network functions below `root` ("": this machine) as text.
 * Returns the exit status; what failed is told in `out`.
 */
int gc_topology(const char *root, FILE *out);

/* The same as a picture: SVG that needs nothing else. What failed is told on stderr. */
int gc_topology_svg(const char *root, const char *file);

/* ---- the two of them share this ---- */

struct topo_node {
	struct facts_pci pci;
	const struct facts_pci *fact;	/* in topo.all */
	size_t above;		/* index of the bridge above, TOPO_NONE at a root complex */
	unsigned int depth;	/* 0 at a root complex */
	bool last;		/* no other of the same bridge, or root complex, follows */
	bool link;		/* the function has a link to what is above it */
	unsigned int speed, width;		/* now, MT/s and lanes; 0: not known */
	unsigned int could_speed, could_width;	/* what both ends can */
	bool slow;		/* now is below that */
	int acs_err;		/* of bridges: 0, or -errno */
	struct facts_pci_acs acs;
	int iommu_err;
	struct facts_pci_iommu iommu;
};

#define TOPO_NONE ((size_t)-1)

struct topo {
	struct topo_node *node;	/* as they stand in the tree, from above */
	size_t n;
	struct facts_pci *all;	/* as facts_pci_tree_nics() gives them */
	size_t nall;
	size_t *place;		/* of all[i] in node */
};

/* 0 or -errno; topo_free() in any case */
int topo_read(const char *root, struct topo *t);
void topo_free(struct topo *t);

/* A GPU and a drive */
struct topo_pair {
	const struct topo_node *gpu, *drive;
	enum facts_pci_way way;
	const struct topo_node *meet;		/* NULL: no bridge */
	const struct topo_node *redirects;	/* the first bridge whose ACS does; NULL: none */
	bool unread;				/* a bridge on the way tells no ACS */
	const struct topo_node *translated;	/* an IOMMU changes its addresses; NULL: none */
};

/* The pairs one after the other: *i and *j are 0 before the first. False: no more. */
bool topo_pair(const struct topo *t, size_t *i, size_t *j, struct topo_pair *out);

/* Words for both: into buf, and given back */
const char *topo_kind(const struct topo_node *node);
const char *topo_link(const struct topo_node *node, char *buf, size_t len);
const char *topo_acs(const struct topo_node *node, char *buf, size_t len);
const char *topo_iommu(const struct topo_node *node, char *buf, size_t len);
const char *topo_way(const struct topo_pair *pair, char *buf, size_t len);
bool topo_is_bridge(const struct topo_node *node);

#endif /* GDSCHECK_TOPOLOGY_H */
