/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * gpu_sim_abi.h - the ioctl ABI of /dev/gpu-sim*, shared by gpu-sim.ko and user space.
 *
 * Address spaces, told by name:
 *   va         a device address: lies in a PROT_NONE reservation of the caller
 *   card_off   a byte offset into a card's VRAM, which is its BAR 2
 *   handle     names an allocation of the caller, and is the offset to mmap it at
 */
#ifndef GPU_SIM_ABI_H
#define GPU_SIM_ABI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#define GPU_SIM_ASSERT(cond) static_assert(cond)
#else
#include <stddef.h>
#if defined(__cplusplus)
#define GPU_SIM_ASSERT(cond) static_assert(cond, #cond)
#else
#define GPU_SIM_ASSERT(cond) _Static_assert(cond, #cond)
#endif
#endif

#define GPU_SIM_ABI 1
#define GPU_SIM_MAX_CARDS 16
#define GPU_SIM_PAGE_SIZE 65536
#define GPU_SIM_PAGE_SHIFT 16
/* Device pointers are cut from reservations aligned to this. */
#define GPU_SIM_BLOCK_SIZE (2 * 1024 * 1024)

/* What VRAM that belongs to nobody holds, as little-endian 64-bit words. */
#define GPU_SIM_POISON 0xbadc0ffee0ddf00dULL

/*
 * How the 64-KiB pages of one allocation lie in VRAM. A card whose free pages do not
 * allow the pattern deviates from it rather than fail; GPU_SIM_WHERE tells the truth.
 */
enum gpu_sim_pattern {
	GPU_SIM_DEFAULT = 0,	/* what SET_PATTERN chose for this file, else CONTIG */
	GPU_SIM_CONTIG = 1,	/* one run */
	GPU_SIM_2M = 2,		/* 2-MiB runs, the later ones at lower addresses */
	GPU_SIM_64K = 3,	/* single pages in descending order: nothing ever joins */
	GPU_SIM_ALTERNATE = 4,	/* every other page, ascending */
	GPU_SIM_RANDOM = 5,	/* single pages, order drawn from the seed */
	GPU_SIM_PATTERNS
};

#define GPU_SIM_INFO_POISONS (1U << 0)	/* VRAM is poisoned at load and free */

struct gpu_sim_info {
	__u32 abi;		/* GPU_SIM_ABI */
	__u32 index;		/* rank by PCI address */
	__u32 pci_domain;
	__u32 pci_bdf;		/* bus << 8 | device << 3 | function */
	__u64 vram_bytes;
	__u64 free_bytes;
	__u64 poison;		/* GPU_SIM_POISON */
	__u32 page_size;	/* GPU_SIM_PAGE_SIZE */
	__u32 flags;		/* GPU_SIM_INFO_* */
	__u8 uuid[16];
	char name[32];
	__u32 rm_client;	/* how the resource manager calls this file */
	__u8 reserved[28];	/* bytes 100..127 */
};

GPU_SIM_ASSERT(sizeof(struct gpu_sim_info) == 128);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, pci_domain) == 8);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, pci_bdf) == 12);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, vram_bytes) == 16);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, free_bytes) == 24);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, poison) == 32);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, page_size) == 40);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, flags) == 44);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, uuid) == 48);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, name) == 64);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, rm_client) == 96);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_info, reserved) == 100);

struct gpu_sim_alloc {
	__u64 size;		/* bytes; rounded up to whole pages, the result is told */
	/* 64-KiB aligned, free of other allocations of the process; 0: none yet, see MAP */
	__u64 va;
	__u64 handle;		/* out */
	__u32 pattern;		/* enum gpu_sim_pattern */
	__u32 object;		/* out: its name in the resource manager */
	__u64 seed;		/* of GPU_SIM_RANDOM */
};

GPU_SIM_ASSERT(sizeof(struct gpu_sim_alloc) == 40);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_alloc, va) == 8);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_alloc, handle) == 16);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_alloc, pattern) == 24);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_alloc, object) == 28);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_alloc, seed) == 32);

struct gpu_sim_free {
	__u64 handle;
	__u64 reserved;		/* bytes 8..15, 0 */
};

GPU_SIM_ASSERT(sizeof(struct gpu_sim_free) == 16);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_free, reserved) == 8);

struct gpu_sim_pattern_arg {
	__u32 pattern;		/* enum gpu_sim_pattern, not DEFAULT */
	__u32 reserved;		/* bytes 4..7, 0 */
	__u64 seed;
};

GPU_SIM_ASSERT(sizeof(struct gpu_sim_pattern_arg) == 16);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_pattern_arg, reserved) == 4);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_pattern_arg, seed) == 8);

/* One physically contiguous piece of a device range. */
struct gpu_sim_piece {
	__u32 card;		/* index of the card */
	__u32 reserved;		/* bytes 4..7, 0 */
	__u64 card_off;
	__u64 len;
	__u64 buf_off;		/* where the piece stands in the range asked for */
};

GPU_SIM_ASSERT(sizeof(struct gpu_sim_piece) == 32);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_piece, card_off) == 8);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_piece, len) == 16);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_piece, buf_off) == 24);

struct gpu_sim_where {
	__u64 va;
	__u64 len;
	__u64 pieces;		/* user address of `count` struct gpu_sim_piece */
	__u32 count;		/* in: room; out: pieces there are, also when room was less */
	__u32 reserved;		/* bytes 28..31, 0 */
};

GPU_SIM_ASSERT(sizeof(struct gpu_sim_where) == 32);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_where, len) == 8);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_where, pieces) == 16);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_where, count) == 24);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_where, reserved) == 28);

/* Memory without an address gets one; va 0: it loses it, and pins with a callback end. */
struct gpu_sim_map {
	__u64 handle;
	__u64 va;		/* as that of struct gpu_sim_alloc */
};

GPU_SIM_ASSERT(sizeof(struct gpu_sim_map) == 16);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_map, va) == 8);

/*
 * A fresh descriptor of /dev/nvidiactl names the memory from now on, in whichever process it is,
 * and keeps it as long as it is open.
 */
struct gpu_sim_export {
	__u64 handle;
	__s32 fd;
	__u32 reserved;		/* bytes 12..15, 0 */
};

GPU_SIM_ASSERT(sizeof(struct gpu_sim_export) == 16);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_export, fd) == 8);
GPU_SIM_ASSERT(offsetof(struct gpu_sim_export, reserved) == 12);

/*
 * Errors: EINVAL bad arguments, EEXIST the va overlaps another allocation, ENOMEM no
 * room, EBUSY it has an address (MAP), ENOENT unknown handle or range, ENODEV the card is
 * gone, EPERM another process opened the file (a fork has none of its parent's GPU memory).
 */
#define GPU_SIM_IOC_INFO _IOR('G', 0xa0, struct gpu_sim_info)
#define GPU_SIM_IOC_ALLOC _IOWR('G', 0xa1, struct gpu_sim_alloc)
#define GPU_SIM_IOC_FREE _IOW('G', 0xa2, struct gpu_sim_free)
#define GPU_SIM_IOC_PATTERN _IOW('G', 0xa3, struct gpu_sim_pattern_arg)
#define GPU_SIM_IOC_WHERE _IOWR('G', 0xa4, struct gpu_sim_where)
#define GPU_SIM_IOC_MAP _IOW('G', 0xa5, struct gpu_sim_map)
#define GPU_SIM_IOC_EXPORT _IOW('G', 0xa6, struct gpu_sim_export)

#endif /* GPU_SIM_ABI_H */
