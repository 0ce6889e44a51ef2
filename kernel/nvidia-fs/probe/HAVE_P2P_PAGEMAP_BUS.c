// SPDX-License-Identifier: GPL-2.0-only
/*
 * HAVE_P2P_PAGEMAP_BUS.c - the same as HAVE_P2P_PAGEMAP.c for kernels whose core has the second
 * structure of p2p_pagemap.h: the card needs a pool before page maps of ours are taken, free
 * pages have the count 1, and page_free is what is called for the last reference.
 *
 * btf: pci_p2pdma_pagemap
 * source: drivers/pci/p2pdma.c
 */
#ifdef SOURCE_drivers_pci_p2pdma_c
#include SOURCE_drivers_pci_p2pdma_c
#define AT(type, member) offsetof(struct type, member)
#define SIZE(type) sizeof(struct type)
#else
#define AT(type, member) BTF_##type##_##member
#define SIZE(type) BTF_SIZEOF_##type
#endif

#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/mm.h>
#include <linux/tracepoint.h>
#include <trace/events/block.h>
#include "p2p_pagemap.h"

#ifndef CONFIG_PCI_P2PDMA
#error "a kernel without P2PDMA"
#endif

static_assert(sizeof(struct nvfs_p2p_pagemap_bus) == SIZE(pci_p2pdma_pagemap));
static_assert(offsetof(struct nvfs_p2p_pagemap_bus, provider) == AT(pci_p2pdma_pagemap, provider));
static_assert(offsetof(struct nvfs_p2p_pagemap_bus, bus_offset) ==
	      AT(pci_p2pdma_pagemap, bus_offset));
static_assert(offsetof(struct nvfs_p2p_pagemap_bus, pgmap) == AT(pci_p2pdma_pagemap, pgmap));

static void last(struct page *page)
{
	percpu_ref_put(&page->pgmap->ref);
}

const struct dev_pagemap_ops ops = { .page_free = last };

static void issue(void *data, struct request *rq)
{
}

void probe(struct nvfs_p2p_pagemap_bus *map, struct kiocb *kb);
void probe(struct nvfs_p2p_pagemap_bus *map, struct kiocb *kb)
{
	check_trace_callback_type_block_rq_issue(issue);
	kb->ki_ioprio = IOPRIO_PRIO_VALUE_HINT(IOPRIO_CLASS_BE, 0, IOPRIO_NR_HINTS - 1);
	map->pgmap.ops = &ops;
	put_dev_pagemap(get_dev_pagemap(0, NULL));
}
