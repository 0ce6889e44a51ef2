/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * p2p.h - P2PDMA carriers: struct pages of the card's own BAR as what the file system sees, so
 * that a storage driver without the hook moves the bytes. p2p.c makes the pages, p2p_io.c uses
 * them in requests.
 *
 *   nvfs_p2p_lock (mutex)   cards, units, which mapping has pages. Below the device lock of the
 *                           card, above nvfs_mapping.lock. No request takes it.
 *
 * A mapping's struct nvfs_p2p is set by MAP before READY. It goes in the teardown, or when the
 * card's driver is unbound; the latter makes the mapping REVOKED first and waits until nobody
 * uses it (nvfs_mapping.users). So whoever has entered the mapping may use it, and before that
 * nvfs_p2p_hold() has to be asked.
 */
#ifndef NVIDIA_FS_P2P_H
#define NVIDIA_FS_P2P_H

#include <linux/bits.h>
#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "nvidia-fs.h"

#define NVFS_P2P_UNIT_SHIFT 21		/* the kernel gives pages to 2 MiB of a BAR at least */
#define NVFS_P2P_UNIT BIT_ULL(NVFS_P2P_UNIT_SHIFT)

/* in nvfs_mapping.by: the sectors went in a command together with somebody else's pages */
#define NVFS_BY_MIXED 0xfe

/* A card whose BAR has pages because of us; from the first mapping to the last one. */
struct nvfs_p2p_gpu {
	struct list_head node;		/* nvfs_p2p_gpus; nvfs_p2p_lock, as all down to parts */
	struct list_head users;		/* struct nvfs_p2p */
	struct xarray parts;		/* by unit of the BAR */
	unsigned int nparts, nforeign;	/* how many, and of them the card's driver's own */
	struct pci_dev *pdev;		/* referenced; constant, as all below */
	int bar;
	u64 start;			/* CPU physical address of the BAR */
	u16 hint;			/* of the I/O priority: keeps its requests apart */
	struct rcu_head rcu;

	spinlock_t lock;		/* the verdicts */
	unsigned long gen;		/* of the peers that they are about */
	u64 asked, allowed;		/* bit n: the kernel's word on the peer in slot n */
};

/* The pages of one mapping. */
struct nvfs_p2p {
	struct nvfs_mapping *m;
	struct nvfs_p2p_gpu *gpu;
	struct list_head node;		/* gpu->users */
	u32 npages;			/* GPU pages, */
	u32 *unit;			/* ... which unit of the BAR each of them is in, */
	u32 nheld;			/* ... and of how many we hold the unit; nvfs_p2p_lock */
	/*
	 * A window that owns blocks [first, first + n) has its bvecs in bv[first...], at most n,
	 * and start[i] is the block where bv[i] begins. The block layer passes our own array on,
	 * so the address of a bvec names mapping and block: that is how a request is known again
	 * when it goes to the drive.
	 */
	u32 nbv;
	struct bio_vec *bv;
	u32 *start;
	struct nvfs_p2p_step {
		struct hlist_node node;	/* nvfs_p2p_hash, by address of bv; RCU */
		struct nvfs_p2p *p;
	} step[2];
	struct rcu_head rcu;
};

extern struct mutex nvfs_p2p_lock;

/* carriers=, or with `auto` what m's owner has chosen */
enum nvfs_carriers nvfs_carriers_of(const struct nvfs_mapping *m);

const char *nvfs_p2p_text(enum nvfs_p2p_why why);

/* p2p.c */
int nvfs_p2p_init(void);
void nvfs_p2p_exit(void);
void nvfs_p2p_map(struct nvfs_mapping *m);
void nvfs_p2p_unmap(struct nvfs_mapping *m);
void nvfs_p2p_unbind(struct pci_dev *pdev);
bool nvfs_p2p_ours(const struct nvfs_p2p *p);
void nvfs_p2p_count(enum nvfs_p2p_why why);
void nvfs_p2p_show(struct seq_file *s);

/* p2p_io.c */
struct block_device;
struct nvfs_req;
struct nvfs_p2p *nvfs_p2p_hold(struct nvfs_mapping *m);
u64 nvfs_p2p_phys(const struct nvfs_mapping *m, u64 gpu_off);
enum nvfs_p2p_why nvfs_p2p_watch(struct nvfs_p2p *p);
void nvfs_p2p_unwatch(struct nvfs_p2p *p);
void nvfs_p2p_watch_no_more(void);
enum nvfs_p2p_why nvfs_p2p_drive(struct nvfs_mapping *m, struct block_device *bdev,
				 struct pci_dev *drive);
u32 nvfs_p2p_bvec(struct nvfs_mapping *m, u32 first, u32 n, u64 gpu_off);
u16 nvfs_p2p_ioprio(const struct nvfs_mapping *m, u16 ioprio);
bool nvfs_p2p_mixed(const struct nvfs_mapping *m, u32 first, size_t len);
void *nvfs_p2p_addr(const struct nvfs_mapping *m, u32 blk);
ssize_t nvfs_p2p_settle(const struct nvfs_req *rq, u32 first, size_t len);

#endif /* NVIDIA_FS_P2P_H */
