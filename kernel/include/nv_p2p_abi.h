/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nv_p2p_abi.h - the GPU driver's pinning interface (nvidia_p2p_*), as an ABI.
 *
 * Pages are 64 KiB; va and len of every call are multiples of that. Page tables exist in
 * two majors (1 up to driver 575, 2 since 580) that differ by `flags` at the end only, so
 * a reader of the first 32 bytes takes both. All calls may sleep.
 *
 *  callback pins    get_pages with a callback: the driver calls it when the memory goes
 *                   away; when it has returned, the driver frees the table and every
 *                   DMA mapping made from it. put_pages after that is harmless.
 *  persistent pins  the memory stays until put_pages_persistent, also past its free and
 *                   past the end of the process.
 */
#ifndef OPENGDS_NV_P2P_ABI_H
#define OPENGDS_NV_P2P_ABI_H

#include <linux/types.h>
#include <linux/build_bug.h>
#include <linux/stddef.h>

struct pci_dev;

#define NVIDIA_P2P_PAGE_TABLE_VERSION_1 0x00010002
#define NVIDIA_P2P_PAGE_TABLE_VERSION_2 0x00020000
#define NVIDIA_P2P_DMA_MAPPING_VERSION_2 0x00020003
#define NVIDIA_P2P_MAJOR(version) ((version) >> 16)

#define NVIDIA_P2P_GPU_UUID_LEN 16

enum nvidia_p2p_page_size_type {
	NVIDIA_P2P_PAGE_SIZE_4KB = 0,
	NVIDIA_P2P_PAGE_SIZE_64KB = 1,
	NVIDIA_P2P_PAGE_SIZE_128KB = 2,
};

struct nvidia_p2p_page {
	u64 physical_address;
	u8 reserved[24];	/* bytes 8..31 */
};

struct nvidia_p2p_page_table {
	u32 version;
	u32 page_size;		/* enum nvidia_p2p_page_size_type */
	struct nvidia_p2p_page **pages;
	u32 entries;
	u8 *gpu_uuid;
	u32 flags;		/* since major 2; bit 0: CPU cacheable */
};

struct nvidia_p2p_dma_mapping {
	u32 version;
	u32 page_size_type;
	u32 entries;
	u64 *dma_addresses;
	void *private;
	struct pci_dev *pci_dev;
};

static_assert(sizeof(struct nvidia_p2p_page) == 32);
static_assert(offsetof(struct nvidia_p2p_page_table, page_size) == 4);
static_assert(offsetof(struct nvidia_p2p_page_table, pages) == 8);
static_assert(offsetof(struct nvidia_p2p_page_table, entries) == 16);
static_assert(offsetof(struct nvidia_p2p_page_table, gpu_uuid) == 24);
static_assert(offsetof(struct nvidia_p2p_page_table, flags) == 32);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, entries) == 8);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, dma_addresses) == 16);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, private) == 24);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, pci_dev) == 32);

int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 va, u64 len,
			 struct nvidia_p2p_page_table **table,
			 void (*free_callback)(void *data), void *data);
int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 va,
			 struct nvidia_p2p_page_table *table);
int nvidia_p2p_get_pages_persistent(u64 va, u64 len, struct nvidia_p2p_page_table **table,
				    u32 flags);
int nvidia_p2p_put_pages_persistent(u64 va, struct nvidia_p2p_page_table *table, u32 flags);
int nvidia_p2p_dma_map_pages(struct pci_dev *peer, struct nvidia_p2p_page_table *table,
			     struct nvidia_p2p_dma_mapping **mapping);
int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer, struct nvidia_p2p_page_table *table,
			       struct nvidia_p2p_dma_mapping *mapping);
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *table);
int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *mapping);

#endif /* OPENGDS_NV_P2P_ABI_H */
