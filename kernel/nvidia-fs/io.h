/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io.h - one request between its checks and its result, for io.c (synchronous), async.c
 * and batch.c.
 */
#ifndef NVIDIA_FS_IO_H
#define NVIDIA_FS_IO_H

#include <linux/bvec.h>
#include <linux/fs.h>

#include "nvidia-fs.h"

#define NVFS_BVECS_INLINE 8

/* Which way the bytes of a request went. */
struct nvfs_witness {
	u64 dma_bytes;
	u64 cpu_bytes;
	u64 slots;		/* bit n: the peer of slot n took addresses */
};

struct nvfs_req {
	struct nvfs_mapping *m;
	struct file *file;
	loff_t pos;		/* in the file */
	u64 gpu_off;		/* in the pinned range */
	bool write;
	struct nvfs_witness *witness;	/* or NULL */
};

/* Carrier blocks that one submission owns, and the bvecs that name them. */
struct nvfs_window {
	u32 first;
	u32 n;
	u32 nbv;
	struct bio_vec *bv;	/* own, or allocated; stays until the file system is through */
	struct bio_vec own[NVFS_BVECS_INLINE];
};

const char *nvfs_dir(bool write);

/*
 * Every check of the ABI, in its order. 0 with references to file and mapping in rq, to be
 * given back by nvfs_req_close(), or -errno with none.
 */
int nvfs_req_open(struct nvfs_req *rq, const struct nvfs_ioctl_ioargs *a, bool write);
void nvfs_req_close(struct nvfs_req *rq);

/*
 * Take blocks for len bytes (what the mapping has, at most). The caller has entered the
 * mapping. May wait for blocks.
 */
int nvfs_window_begin(const struct nvfs_req *rq, struct nvfs_window *w, size_t len);

/*
 * r: what the file system said. Returns the bytes that are where they belong, or -errno,
 * and gives the blocks back. Process context.
 */
ssize_t nvfs_window_end(const struct nvfs_req *rq, struct nvfs_window *w, ssize_t r);

/* All of it, window by window. Blocks. Bytes moved (short at the end of the file), or -errno. */
ssize_t nvfs_windows(struct nvfs_req *rq, size_t size);

/* Statistics of one request; start: nvfs_io_begin()'s result. */
u64 nvfs_io_begin(bool write);
void nvfs_io_end(bool write, ssize_t r, u64 start);

#endif /* NVIDIA_FS_IO_H */
