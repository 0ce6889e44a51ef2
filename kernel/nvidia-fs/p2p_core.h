/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * p2p_core.h - what p2p.c needs of the kernel's P2PDMA core, in its two forms. A page map of ours
 * is embedded in the structure that the core expects; which one it is was proven when the module
 * was built (probe/HAVE_P2P_PAGEMAP*.c).
 *
 * In the older form the core knows a card only once it has a pool. So the first unit comes by
 * the pool, and all of it is taken at once: p2pmem/allocate can hand out none of it. It stays
 * until the card's driver is unbound, as the driver's devres; we let it go before that, and
 * when this module goes.
 */
#ifndef NVIDIA_FS_P2P_CORE_H
#define NVIDIA_FS_P2P_CORE_H

#include "probe/p2p_pagemap.h"

#if defined(HAVE_P2P_PAGEMAP) || defined(HAVE_P2P_PAGEMAP_BUS)
#define NVFS_HAVE_P2P 1
#endif

#ifdef HAVE_P2P_PAGEMAP
#define nvfs_p2p_pagemap nvfs_p2p_pagemap_mem
#define NVFS_P2P_NEEDS_POOL 0

/* Tell the core about a card, and the page map about the core. 0 or -errno. Device lock held. */
static inline int nvfs_p2p_core(struct nvfs_p2p_pagemap *map, struct pci_dev *pdev, int bar)
{
	int r = pcim_p2pdma_init(pdev);

	if (r)
		return r;
	map->mem = pcim_p2pdma_provider(pdev, bar);
	return map->mem ? 0 : -ENODEV;
}

static inline struct device *nvfs_p2p_owner(const struct nvfs_p2p_pagemap *map)
{
	return map->mem->owner;
}

/* With a reference, or NULL. */
static inline struct dev_pagemap *nvfs_p2p_pgmap_at(u64 phys)
{
	return get_dev_pagemap(PHYS_PFN(phys));
}

/* A page of ours that nobody has gets its first reference. */
static inline void nvfs_p2p_first_ref(struct page *page)
{
	set_page_count(page, 1);
}

static inline void nvfs_p2p_last_ref(struct folio *folio)
{
	percpu_ref_put(&page_pgmap(&folio->page)->ref);
}

#define NVFS_P2P_PGMAP_OPS { .folio_free = nvfs_p2p_last_ref }
#elif defined(HAVE_P2P_PAGEMAP_BUS)
#define nvfs_p2p_pagemap nvfs_p2p_pagemap_bus
#define NVFS_P2P_NEEDS_POOL 1

static inline int nvfs_p2p_core(struct nvfs_p2p_pagemap *map, struct pci_dev *pdev, int bar)
{
	map->provider = pdev;
	map->bus_offset = pci_bus_address(pdev, bar) - pci_resource_start(pdev, bar);
	return 0;
}

static inline struct device *nvfs_p2p_owner(const struct nvfs_p2p_pagemap *map)
{
	return &map->provider->dev;
}

static inline struct dev_pagemap *nvfs_p2p_pgmap_at(u64 phys)
{
	return get_dev_pagemap(PHYS_PFN(phys), NULL);
}

static inline void nvfs_p2p_first_ref(struct page *page)
{
	/* it has it: this core's free pages have the count 1 */
}

static inline void nvfs_p2p_last_ref(struct page *page)
{
	percpu_ref_put(&page->pgmap->ref);
}

#define NVFS_P2P_PGMAP_OPS { .page_free = nvfs_p2p_last_ref }
#endif

#endif /* NVIDIA_FS_P2P_CORE_H */
