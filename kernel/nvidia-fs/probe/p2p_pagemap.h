/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * p2p_pagemap.h - the structure that the kernel's P2PDMA core takes a page map to be part of.
 * No header of the kernel has it: HAVE_P2P_PAGEMAP.c compares this one with the kernel's.
 */
#ifndef NVIDIA_FS_P2P_PAGEMAP_H
#define NVIDIA_FS_P2P_PAGEMAP_H

#include <linux/memremap.h>
#include <linux/pci-p2pdma.h>

struct nvfs_p2p_pagemap {
	struct dev_pagemap pgmap;
	struct p2pdma_provider *mem;
};

#endif /* NVIDIA_FS_P2P_PAGEMAP_H */
