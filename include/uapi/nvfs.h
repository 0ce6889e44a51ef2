/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * nvfs.h - the ioctl ABI of /dev/nvidia-fs*, shared by the module and user space.
 *
 * The layout is the one of NVIDIA's nvidia-fs 2.12 .. 2.28; every offset is asserted
 * below, in both worlds. A block is always 4096 bytes, a GPU page always 65536 bytes.
 *
 * Address spaces, told by name:
 *   cpuvaddr   a user address inside the caller's mapping of a device node
 *   gpuvaddr   a device address of the caller's GPU memory
 *   offset     a byte offset into the data file
 *   devptroff  a byte offset into the GPU buffer that MAP named
 */
#ifndef OPENGDS_UAPI_NVFS_H
#define OPENGDS_UAPI_NVFS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#define NVFS_ABI_ASSERT(cond) static_assert(cond)
#else
#include <stddef.h>
#if defined(__cplusplus)
#define NVFS_ABI_ASSERT(cond) static_assert(cond, #cond)
#else
#define NVFS_ABI_ASSERT(cond) _Static_assert(cond, #cond)
#endif
#endif

#define NVFS_BLOCK_SIZE 4096
#define NVFS_BLOCK_SHIFT 12
#define NVFS_GPU_PAGE_SIZE 65536
#define NVFS_GPU_PAGE_SHIFT 16

/* Largest mapping of a device node, and so the largest single window of one request. */
#define NVFS_MAX_SHADOW_SIZE (16 * 1024 * 1024)
#define NVFS_MAX_DEVICES 16
#define NVFS_MAX_BATCH 256

/*
 * MAP: ties a mapping of a device node to a range of GPU memory.
 * On failure the ioctl returns -1 with errno EPERM, and the negative errno that tells
 * the cause stands in end_fence_addr.
 */
struct nvfs_ioctl_map {
	__s64 size;		/* GPU buffer, bytes */
	__u64 pdevinfo;		/* of the GPU: domain << 32 | bus << 8 | devfn; a hint */
	__u64 cpuvaddr;		/* start of the mapping, exactly as mmap returned it */
	__u64 gpuvaddr;		/* start of the GPU buffer, any alignment */
	__u64 end_fence_addr;	/* in: a 4-KiB aligned writable page; out, on failure: -errno */
	__u32 sbuf_block;	/* length of the mapping in blocks */
	__u16 is_bounce_buffer;	/* 1: a cache of the library, 0: the application's memory */
	__u8 pad[2];		/* bytes 46..47 */
} __attribute__((packed, aligned(8)));

/*
 * READ, WRITE: one request. On failure the ioctl returns -1 with errno EPERM, and the
 * negative errno stands in ioctl_return.
 */
struct nvfs_ioctl_ioargs {
	__u64 cpuvaddr;		/* as in MAP */
	__s64 offset;		/* into the file, a multiple of 4096 */
	__u64 size;		/* bytes, a multiple of 4096 */
	__u64 end_fence_value;	/* asynchronous requests only, non-zero */
	__s64 ioctl_return;	/* out: bytes moved, or -errno */
	__u64 inum;		/* inode number, as fstat told it */
	__u32 generation;	/* 0: not checked */
	__u32 majdev;		/* device of the file (of a block device: its own) */
	__u32 mindev;
	__u64 devptroff;	/* into the GPU buffer, bytes; stands unaligned at 60 */
	__u8 pad0[4];		/* bytes 68..71 */
	__s32 fd;		/* the data file, opened with O_DIRECT */
	__u8 flags;		/* NVFS_IO_* and the operation type (batches) */
	__u8 pad1[3];		/* bytes 77..79 */
} __attribute__((packed, aligned(8)));

#define NVFS_IO_SYNC (1u << 0)
#define NVFS_IO_HIPRI (1u << 1)		/* accepted, without effect */
#define NVFS_IO_ALLOWREADS (1u << 2)	/* accepted, without effect: no read past the file's mode */
#define NVFS_IO_USE_RKEYS (1u << 3)
#define NVFS_IO_OPTYPE_SHIFT 4
#define NVFS_IO_OPTYPE_MASK (7u << NVFS_IO_OPTYPE_SHIFT)
#define NVFS_IO_OP_READ 0		/* operation types, for batches only */
#define NVFS_IO_OP_WRITE 1
/*
 * Ours alone, the original passes it over: rather fail than let the CPU move a byte.
 * -EOPNOTSUPP before anything was submitted when the file is not surely direct; -ENOTBLK
 * when it turns out afterwards (a hole), which no drive and no file system returns.
 */
#define NVFS_IO_DIRECT_ONLY (1u << 7)

/*
 * BATCH_IO: 0 when every entry is submitted. -1 with errno EPERM when one was refused:
 * nothing is submitted then, and each entry's ioctl_return has its own negative errno
 * (-ECANCELED: there was nothing wrong with it).
 */
struct nvfs_ioctl_batch {
	__u64 ctx_id;		/* opaque to the kernel */
	__u64 nents;		/* 1 .. NVFS_MAX_BATCH */
	__u64 entries;		/* user address of nents nvfs_ioctl_ioargs */
} __attribute__((packed, aligned(8)));

struct nvfs_rdma_info {
	__u8 version;
	__u8 flags;		/* bit 0: gid valid */
	__u16 lid;
	__u32 qp_num;
	__u64 rem_vaddr;
	__u32 size;
	__u32 rkey;
	__u64 gid[2];
	__u32 dc_key;
	__u32 pad;		/* bytes 44..47 */
};

struct nvfs_ioctl_set_rdma {
	__u64 cpuvaddr;
	__u64 gid[2];
	__u32 qp_num;
	__u16 lid;
	__u8 flags;
	__u8 version;
	__u32 dc_key;
	__u32 rkey[16];
	__u32 nkeys;
} __attribute__((packed, aligned(8)));

struct nvfs_ioctl_get_rdma {
	__u64 cpuvaddr;
	__u64 gpu_buf_offset;	/* unused */
	struct nvfs_rdma_info info;	/* out */
} __attribute__((packed, aligned(8)));

struct nvfs_ioctl_clear_rdma {
	__u64 cpuvaddr;
} __attribute__((packed, aligned(8)));

/*
 * The end-fence page. For asynchronous requests the kernel stores result, then (after a
 * write barrier) end_fence_val; `state` tells of holes and of GPU memory freed under us.
 */
#define NVFS_FENCE_MAX_HOLES 768
#define NVFS_FENCE_START_MAGIC 0xabc0cba1abc2cba3ULL
#define NVFS_FENCE_META_VERSION 1

enum nvfs_fence_state {
	NVFS_FENCE_CLEAN = 0,
	NVFS_FENCE_SPARSE = 1,	/* holes are listed */
	NVFS_FENCE_DIED = 2,	/* the GPU memory was freed under us */
};

struct nvfs_fence_hole {
	__u16 start;		/* blocks, relative to start_fd_offset */
	__u16 npages;		/* blocks */
};

struct nvfs_fence_page {
	__u64 end_fence_val;
	__s64 result;
	__u32 state;		/* enum nvfs_fence_state */
	__u32 pad;
	__u64 start_magic;
	__u32 meta_version;
	__u32 nholes;
	__s64 start_fd_offset;
	struct nvfs_fence_hole hole[NVFS_FENCE_MAX_HOLES];
};

/*
 * The size field of the numbers is that of an int, whatever the structure: an accident of
 * the original that became the ABI.
 */
#define NVFS_IOCTL_MAGIC 't'
#define NVFS_IOCTL(nr) _IOW(NVFS_IOCTL_MAGIC, nr, int)

#define NVFS_IOCTL_REMOVE NVFS_IOCTL(1)
#define NVFS_IOCTL_READ NVFS_IOCTL(2)
#define NVFS_IOCTL_MAP NVFS_IOCTL(3)
#define NVFS_IOCTL_WRITE NVFS_IOCTL(4)
#define NVFS_IOCTL_SET_RDMA_REG_INFO NVFS_IOCTL(5)
#define NVFS_IOCTL_GET_RDMA_REG_INFO NVFS_IOCTL(6)
#define NVFS_IOCTL_CLEAR_RDMA_REG_INFO NVFS_IOCTL(7)
#define NVFS_IOCTL_BATCH_IO NVFS_IOCTL(8)

/*
 * Numbers from 32 on are ours, none of the original's. Ask QUERY first: a module that does
 * not know it answers ENOTTY. These calls return 0, or -1 with their own errno.
 */
#define NVFS_IOCTL_OGDS_QUERY NVFS_IOCTL(32)
#define NVFS_IOCTL_OGDS_UNMAP NVFS_IOCTL(33)
#define NVFS_IOCTL_OGDS_RW NVFS_IOCTL(34)
#define NVFS_IOCTL_OGDS_CARRIERS NVFS_IOCTL(35)
#define NVFS_IOCTL_OGDS_PAGES NVFS_IOCTL(36)

#define NVFS_OGDS_VERSION 1
#define NVFS_OGDS_QUERY_MIN 16		/* size, version and features */

#define NVFS_OGDS_MANY (1ULL << 0)	/* many synchronous requests on one mapping at a time */
#define NVFS_OGDS_ASYNC (1ULL << 1)
#define NVFS_OGDS_ASYNC_LONG (1ULL << 2) /* ... of any length, not one window only */
#define NVFS_OGDS_BATCH (1ULL << 3)	/* with a code for each entry that is refused */
#define NVFS_OGDS_SPARSE (1ULL << 4)	/* holes are listed in the fence page */
#define NVFS_OGDS_COMPAT32 (1ULL << 5)	/* 32-bit callers */
#define NVFS_OGDS_RDMA (1ULL << 6)
#define NVFS_OGDS_UNMAP (1ULL << 7)
#define NVFS_OGDS_WITNESS (1ULL << 8)	/* NVFS_IOCTL_OGDS_RW */
#define NVFS_OGDS_CARRIERS (1ULL << 9)	/* NVFS_IOCTL_OGDS_CARRIERS */
#define NVFS_OGDS_PAGES (1ULL << 10)	/* NVFS_IOCTL_OGDS_PAGES */
#define NVFS_OGDS_FEATURES 0x7ffULL	/* all of them */

struct nvfs_ogds_query {
	__u32 size;		/* in: bytes there is room for, 16 or more; out: bytes known */
	__u32 version;		/* NVFS_OGDS_VERSION */
	__u64 features;		/* NVFS_OGDS_* */
	__u32 max_batch;	/* entries */
	__u32 max_window;	/* bytes that a mapping of a node can have */
	__u8 reserved[40];	/* bytes 24..63, 0 */
} __attribute__((packed, aligned(8)));

/*
 * UNMAP: releases the GPU memory of a mapping, and returns when it is released: after the
 * requests in flight. The address range stays the caller's, without use, until munmap.
 */
struct nvfs_ogds_unmap {
	__u64 cpuvaddr;		/* as in MAP */
	__u32 flags;		/* 0 */
	__u32 reserved;		/* bytes 12..15, 0 */
} __attribute__((packed, aligned(8)));

/*
 * RW: a synchronous READ or WRITE (by the operation type in io.flags) that tells which way
 * the bytes went. Answers as READ and WRITE do; the witness is there after a failure, too.
 */
struct nvfs_ogds_rw {
	struct nvfs_ioctl_ioargs io;
	__u64 dma_bytes;	/* out: whose DMA addresses a storage driver took, in sectors */
	__u64 cpu_bytes;	/* out: that the file system moved by CPU */
	__u32 drives;		/* out: storage functions that took addresses */
	__u32 reserved;		/* bytes 100..103, 0 */
	char driver[24];	/* out: name of their driver, NUL-terminated; of the first one */
} __attribute__((packed, aligned(8)));

#define NVFS_CARRIERS_TELL 0		/* choose nothing */
#define NVFS_CARRIERS_WANT_AUTO 1	/* what the module does by itself */
#define NVFS_CARRIERS_WANT_SHADOW 2	/* host pages, for drives whose driver has the hook */
#define NVFS_CARRIERS_WANT_P2PDMA 3	/* pages of the card's BAR */

#define NVFS_CARRIERS_HAVE_SHADOW (1U << 0)
#define NVFS_CARRIERS_HAVE_P2PDMA (1U << 1)

/*
 * CARRIERS: what stands for the GPU memory of a mapping in its requests. Chosen before MAP; told
 * after it. The module's parameter `carriers`, unless it is `auto`, goes before the choice.
 */
struct nvfs_ogds_carriers {
	__u64 cpuvaddr;		/* as in MAP */
	__u32 want;		/* NVFS_CARRIERS_TELL or _WANT_* */
	__u32 have;		/* out: NVFS_CARRIERS_HAVE_*, 0 before MAP */
	__u64 reserved;		/* bytes 16..23, 0 */
	char reason[168];	/* out: why it has no pages of the BAR, NUL-terminated */
} __attribute__((packed, aligned(8)));

/*
 * PAGES: maps the P2PDMA pages of a mapping into the caller, for plain O_DIRECT requests on them.
 * After MAP. 0; EINVAL no mapping; EBUSY they are mapped already; ENODEV this kernel has none,
 * EOPNOTSUPP the mapping has none, and `reason` says why; ENOMEM. Both ranges are the
 * caller's to munmap, each as a whole. The pages have no use (EFAULT, SIGBUS) from the end of the
 * mapping on, whoever ends it.
 *
 * What a drive moved: byte n of `seen` is for the 4096 bytes at n * 4096 of `pages`, its bit k for
 * their sector k of 512 bytes. The module sets a bit when a storage driver has mapped the sector
 * for DMA, before the request ends. The caller clears them before a request; what is not set after
 * it was moved by a CPU.
 */
struct nvfs_ogds_pages {
	__u64 cpuvaddr;		/* as in MAP */
	__u64 pages;		/* out: address of the first one */
	__u64 size;		/* out: bytes, whole GPU pages */
	__u64 seen;		/* out: address of the bytes that say what was moved */
	__u64 seen_size;	/* out: bytes */
	__u32 offset;		/* out: where in the first GPU page the GPU buffer begins */
	__u32 reserved;		/* bytes 44..47, 0 */
	char reason[168];	/* out: after ENODEV and EOPNOTSUPP, NUL-terminated */
} __attribute__((packed, aligned(8)));

#define NVFS_ABI_AT(type, member, off) NVFS_ABI_ASSERT(offsetof(struct type, member) == (off))

NVFS_ABI_ASSERT(NVFS_IOCTL_REMOVE == 0x40047401);
NVFS_ABI_ASSERT(NVFS_IOCTL_READ == 0x40047402);
NVFS_ABI_ASSERT(NVFS_IOCTL_MAP == 0x40047403);
NVFS_ABI_ASSERT(NVFS_IOCTL_WRITE == 0x40047404);
NVFS_ABI_ASSERT(NVFS_IOCTL_SET_RDMA_REG_INFO == 0x40047405);
NVFS_ABI_ASSERT(NVFS_IOCTL_GET_RDMA_REG_INFO == 0x40047406);
NVFS_ABI_ASSERT(NVFS_IOCTL_CLEAR_RDMA_REG_INFO == 0x40047407);
NVFS_ABI_ASSERT(NVFS_IOCTL_BATCH_IO == 0x40047408);

NVFS_ABI_ASSERT(sizeof(struct nvfs_ioctl_map) == 48);
NVFS_ABI_AT(nvfs_ioctl_map, size, 0);
NVFS_ABI_AT(nvfs_ioctl_map, pdevinfo, 8);
NVFS_ABI_AT(nvfs_ioctl_map, cpuvaddr, 16);
NVFS_ABI_AT(nvfs_ioctl_map, gpuvaddr, 24);
NVFS_ABI_AT(nvfs_ioctl_map, end_fence_addr, 32);
NVFS_ABI_AT(nvfs_ioctl_map, sbuf_block, 40);
NVFS_ABI_AT(nvfs_ioctl_map, is_bounce_buffer, 44);

NVFS_ABI_ASSERT(sizeof(struct nvfs_ioctl_ioargs) == 80);
NVFS_ABI_AT(nvfs_ioctl_ioargs, cpuvaddr, 0);
NVFS_ABI_AT(nvfs_ioctl_ioargs, offset, 8);
NVFS_ABI_AT(nvfs_ioctl_ioargs, size, 16);
NVFS_ABI_AT(nvfs_ioctl_ioargs, end_fence_value, 24);
NVFS_ABI_AT(nvfs_ioctl_ioargs, ioctl_return, 32);
NVFS_ABI_AT(nvfs_ioctl_ioargs, inum, 40);
NVFS_ABI_AT(nvfs_ioctl_ioargs, generation, 48);
NVFS_ABI_AT(nvfs_ioctl_ioargs, majdev, 52);
NVFS_ABI_AT(nvfs_ioctl_ioargs, mindev, 56);
NVFS_ABI_AT(nvfs_ioctl_ioargs, devptroff, 60);
NVFS_ABI_AT(nvfs_ioctl_ioargs, fd, 72);
NVFS_ABI_AT(nvfs_ioctl_ioargs, flags, 76);

NVFS_ABI_ASSERT(sizeof(struct nvfs_ioctl_batch) == 24);
NVFS_ABI_AT(nvfs_ioctl_batch, nents, 8);
NVFS_ABI_AT(nvfs_ioctl_batch, entries, 16);

NVFS_ABI_ASSERT(sizeof(struct nvfs_rdma_info) == 48);
NVFS_ABI_AT(nvfs_rdma_info, lid, 2);
NVFS_ABI_AT(nvfs_rdma_info, qp_num, 4);
NVFS_ABI_AT(nvfs_rdma_info, rem_vaddr, 8);
NVFS_ABI_AT(nvfs_rdma_info, size, 16);
NVFS_ABI_AT(nvfs_rdma_info, rkey, 20);
NVFS_ABI_AT(nvfs_rdma_info, gid, 24);
NVFS_ABI_AT(nvfs_rdma_info, dc_key, 40);

NVFS_ABI_ASSERT(sizeof(struct nvfs_ioctl_set_rdma) == 104);
NVFS_ABI_AT(nvfs_ioctl_set_rdma, gid, 8);
NVFS_ABI_AT(nvfs_ioctl_set_rdma, qp_num, 24);
NVFS_ABI_AT(nvfs_ioctl_set_rdma, lid, 28);
NVFS_ABI_AT(nvfs_ioctl_set_rdma, flags, 30);
NVFS_ABI_AT(nvfs_ioctl_set_rdma, version, 31);
NVFS_ABI_AT(nvfs_ioctl_set_rdma, dc_key, 32);
NVFS_ABI_AT(nvfs_ioctl_set_rdma, rkey, 36);
NVFS_ABI_AT(nvfs_ioctl_set_rdma, nkeys, 100);

NVFS_ABI_ASSERT(sizeof(struct nvfs_ioctl_get_rdma) == 64);
NVFS_ABI_AT(nvfs_ioctl_get_rdma, info, 16);
NVFS_ABI_ASSERT(sizeof(struct nvfs_ioctl_clear_rdma) == 8);

NVFS_ABI_ASSERT(NVFS_IOCTL_OGDS_QUERY == 0x40047420);
NVFS_ABI_ASSERT(sizeof(struct nvfs_ogds_query) == 64);
NVFS_ABI_AT(nvfs_ogds_query, features, 8);
NVFS_ABI_AT(nvfs_ogds_query, max_batch, 16);
NVFS_ABI_AT(nvfs_ogds_query, max_window, 20);
NVFS_ABI_ASSERT(NVFS_IOCTL_OGDS_UNMAP == 0x40047421);
NVFS_ABI_ASSERT(sizeof(struct nvfs_ogds_unmap) == 16);
NVFS_ABI_AT(nvfs_ogds_unmap, flags, 8);
NVFS_ABI_AT(nvfs_ogds_unmap, reserved, 12);
NVFS_ABI_ASSERT(NVFS_IOCTL_OGDS_RW == 0x40047422);
NVFS_ABI_ASSERT(sizeof(struct nvfs_ogds_rw) == 128);
NVFS_ABI_AT(nvfs_ogds_rw, dma_bytes, 80);
NVFS_ABI_AT(nvfs_ogds_rw, cpu_bytes, 88);
NVFS_ABI_AT(nvfs_ogds_rw, drives, 96);
NVFS_ABI_AT(nvfs_ogds_rw, driver, 104);

NVFS_ABI_ASSERT(NVFS_IOCTL_OGDS_CARRIERS == 0x40047423);
NVFS_ABI_ASSERT(sizeof(struct nvfs_ogds_carriers) == 192);
NVFS_ABI_AT(nvfs_ogds_carriers, want, 8);
NVFS_ABI_AT(nvfs_ogds_carriers, have, 12);
NVFS_ABI_AT(nvfs_ogds_carriers, reason, 24);

NVFS_ABI_ASSERT(NVFS_IOCTL_OGDS_PAGES == 0x40047424);
NVFS_ABI_ASSERT(sizeof(struct nvfs_ogds_pages) == 216);
NVFS_ABI_AT(nvfs_ogds_pages, pages, 8);
NVFS_ABI_AT(nvfs_ogds_pages, size, 16);
NVFS_ABI_AT(nvfs_ogds_pages, seen, 24);
NVFS_ABI_AT(nvfs_ogds_pages, seen_size, 32);
NVFS_ABI_AT(nvfs_ogds_pages, offset, 40);
NVFS_ABI_AT(nvfs_ogds_pages, reason, 48);

NVFS_ABI_ASSERT(sizeof(struct nvfs_fence_page) == 3120);
NVFS_ABI_AT(nvfs_fence_page, result, 8);
NVFS_ABI_AT(nvfs_fence_page, state, 16);
NVFS_ABI_AT(nvfs_fence_page, start_magic, 24);
NVFS_ABI_AT(nvfs_fence_page, meta_version, 32);
NVFS_ABI_AT(nvfs_fence_page, nholes, 36);
NVFS_ABI_AT(nvfs_fence_page, start_fd_offset, 40);
NVFS_ABI_AT(nvfs_fence_page, hole, 48);

#endif /* OPENGDS_UAPI_NVFS_H */
