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
	bool by_cpu;		/* no carriers: repair.c moves all of it */
	bool direct_only;	/* the caller rather fails than have the CPU move a byte */
	bool p2p;		/* over the GPU memory's own pages, not over host pages */
	enum nvfs_p2p_why p2p_why;	/* for the message when it is not */
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

/* How much of len bytes at rq->pos may be submitted; 0 at the end of the file. */
size_t nvfs_before_end(const struct nvfs_req *rq, size_t len);

/* All of it, window by window. Blocks. Bytes moved (short at the end of the file), or -errno. */
ssize_t nvfs_windows(struct nvfs_req *rq, size_t size);

/* One submission of bvecs to the file system, synchronous. Bytes or -errno. */
ssize_t nvfs_submit(const struct nvfs_req *rq, struct bio_vec *bv, u32 nbv, size_t len);

/* way.c: which files are surely direct */
int nvfs_way(struct nvfs_req *rq, bool direct_only);

/* repair.c: bytes that the CPU moves between host pages and GPU memory */
ssize_t nvfs_by_cpu(const struct nvfs_req *rq, size_t len);
ssize_t nvfs_repair(const struct nvfs_req *rq, u32 first, size_t len, u32 bad, u32 regions);
bool nvfs_once(const struct nvfs_req *rq, u32 why);

/* Statistics of one request; start: nvfs_io_begin()'s result. */
u64 nvfs_io_begin(bool write);
void nvfs_io_end(bool write, ssize_t r, u64 start);

#endif /* NVIDIA_FS_IO_H */
