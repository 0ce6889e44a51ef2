/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * p2p_pagemap.h - the structure that the kernel's P2PDMA core takes a page map to be part of.
 * No header of the kernel has it: the probes compare the two that are known with the kernel's.
 */
#ifndef NVIDIA_FS_P2P_PAGEMAP_H
#define NVIDIA_FS_P2P_PAGEMAP_H

#include <linux/memremap.h>
#include <linux/pci-p2pdma.h>

/* HAVE_P2P_PAGEMAP.c: since providers are objects of their own, which need no pool */
struct nvfs_p2p_pagemap_mem {
	struct dev_pagemap pgmap;
	struct p2pdma_provider *mem;
};

/* HAVE_P2P_PAGEMAP_BUS.c: before that */
struct nvfs_p2p_pagemap_bus {
	struct pci_dev *provider;
	u64 bus_offset;
	struct dev_pagemap pgmap;
};

#endif /* NVIDIA_FS_P2P_PAGEMAP_H */
