// SPDX-License-Identifier: GPL-2.0-only
/*
 * HAVE_P2P_PAGEMAP.c - can p2p.c make P2PDMA pages with a page map of its own? The core's
 * structure around a page map is the first of p2p_pagemap.h (by the kernel's type information,
 * or its source), a provider exists without a pool, free pages have the count 0, and
 * folio_free is what is called for the last reference.
 *
 * btf: pci_p2pdma_pagemap p2pdma_provider
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

static_assert(sizeof(struct nvfs_p2p_pagemap_mem) == SIZE(pci_p2pdma_pagemap));
static_assert(offsetof(struct nvfs_p2p_pagemap_mem, pgmap) == AT(pci_p2pdma_pagemap, pgmap));
static_assert(offsetof(struct nvfs_p2p_pagemap_mem, mem) == AT(pci_p2pdma_pagemap, mem));
static_assert(sizeof(struct p2pdma_provider) == SIZE(p2pdma_provider));
static_assert(offsetof(struct p2pdma_provider, owner) == AT(p2pdma_provider, owner));

static void last(struct folio *folio)
{
	percpu_ref_put(&page_pgmap(&folio->page)->ref);
}

const struct dev_pagemap_ops ops = { .folio_free = last };

static void issue(void *data, struct request *rq)
{
}

int probe(struct pci_dev *pdev, struct nvfs_p2p_pagemap_mem *map, struct kiocb *kb);
int probe(struct pci_dev *pdev, struct nvfs_p2p_pagemap_mem *map, struct kiocb *kb)
{
	int r = pcim_p2pdma_init(pdev);

	check_trace_callback_type_block_rq_issue(issue);
	kb->ki_ioprio = IOPRIO_PRIO_VALUE_HINT(IOPRIO_CLASS_BE, 0, IOPRIO_NR_HINTS - 1);
	map->mem = pcim_p2pdma_provider(pdev, 0);
	map->pgmap.ops = &ops;
	put_dev_pagemap(get_dev_pagemap(0));
	return r;
}
