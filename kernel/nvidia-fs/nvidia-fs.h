/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nvidia-fs.h - the module's own objects: mapping, carrier, peer, and who may touch what.
 *
 * The way of one request: io.c finds the mapping by the caller's address, takes carrier
 * blocks from it, and hands them to the file system as a bvec iterator. A storage driver
 * with the hook asks hook_v1.c or hook_v2.c for DMA addresses: page -> carrier -> block ->
 * GPU offset -> the address that this peer reaches it by. What nobody asked for was not
 * DMAed.
 *
 * Lock order: nvfs_topo_lock -> (GPU driver's own locks) -> nvfs_mapping.lock; and a card's
 * device lock -> nvfs_p2p_lock -> nvfs_mapping.lock.
 * The GPU driver's free callback runs under the GPU driver's locks and takes
 * nvfs_mapping.lock only.
 */
#ifndef NVIDIA_FS_H
#define NVIDIA_FS_H

#include <linux/types.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "nvfs.h"
#include "nvfs_hook.h"
#include "nv_p2p_abi.h"
#include "probe.h"

#define NVFS_VERSION_MAJOR 2
#define NVFS_VERSION_MINOR 28
#define NVFS_VERSION_PATCH 4
#define NVFS_VERSION_STRING "2.28.4"

#define NVFS_MAX_PEERS 64
#define NVFS_NO_GPU_BLOCK U32_MAX
#define NVFS_NO_PEER 0xff

/*
 * States of a mapping; changed under nvfs_mapping.lock only. mapping.pml is the same for spin,
 * and tests/unit/t_model.sh compares the two.
 *
 *   from      to        who                          when
 *   -         FREE      mmap of a node
 *   FREE      INIT      MAP                          one at a time; a second gets -EBUSY
 *   INIT      READY     MAP                          pinned, mapped for every peer
 *   INIT      FREE      MAP                          failed, everything undone
 *   INIT      REVOKED   GPU driver's free callback   MAP then fails with -EIO
 *   REVOKED   FREE      MAP                          ... everything undone
 *   READY     REVOKED   GPU driver's free callback   waits until `users` is 0
 *   FREE, INIT, READY, REVOKED -> CLOSED             munmap, exit; does not wait
 *   FREE, READY, REVOKED -> CLOSED                   UNMAP; waits for the last reference
 *
 * The unbinding of the GPU's driver does as its free callback does, for mappings with P2PDMA
 * pages (p2p.c). A request in flight may be asynchronous: it has no task then, see async.c.
 *
 * Only READY takes new requests. Requests in flight end by themselves: they hold `users`
 * (keeps the pin usable) and a reference (keeps the object). CLOSED has no way out; the
 * last reference queues the teardown, which runs in a work item because it sleeps and
 * takes the GPU driver's locks, while the last reference may go in hard IRQ or below
 * mmap_lock.
 */
enum nvfs_state {
	NVFS_FREE,
	NVFS_INIT,
	NVFS_READY,
	NVFS_REVOKED,
	NVFS_CLOSED,
};

/* what a user has, in bytes, and what is limited */
enum nvfs_charge { NVFS_CHARGE_SHADOW, NVFS_CHARGE_PINNED, NVFS_CHARGES };

/* why a mapping, or a request, has no P2PDMA carriers; texts in p2p.c */
enum nvfs_p2p_why {
	NVFS_P2P_USED,		/* it has */
	NVFS_P2P_OFF,
	NVFS_P2P_HOOKED,
	NVFS_P2P_NO_CONFIG,
	NVFS_P2P_NO_PROOF,
	NVFS_P2P_NO_WITNESS,
	NVFS_P2P_NO_BAR,
	NVFS_P2P_NO_DRIVER,
	NVFS_P2P_WC,
	NVFS_P2P_FOREIGN,
	NVFS_P2P_PAGES,
	NVFS_P2P_QUEUE,
	NVFS_P2P_PAIR,
	NVFS_P2P_DRIVE,
	NVFS_P2P_GONE,
	NVFS_P2P_DRIVERS,
	NVFS_P2P_WHYS,
};

/* what may stand for GPU memory: the administrator's choice, or a mapping's */
enum nvfs_carriers { NVFS_CARRIERS_AUTO, NVFS_CARRIERS_SHADOW, NVFS_CARRIERS_P2PDMA };

struct bio_vec;
struct nvfs_mapping;
struct nvfs_p2p;
struct nvfs_view;

/*
 * A carrier: physically contiguous host pages that stand for GPU memory while a request
 * is in flight. Never mapped into a process. Set up by MAP, found by page through
 * nvfs_carrier_find(), freed by the teardown.
 */
struct nvfs_carrier {
	struct nvfs_mapping *m;
	struct page *page;	/* head */
	u32 first;		/* its first block in the mapping */
	u32 order;
};

/* DMA addresses of one pinned range for one peer; replaced and read under RCU */
struct nvfs_peer_map {
	struct nvidia_p2p_dma_mapping *dma;
	u32 *run_end;		/* per GPU page: first page past the run that is contiguous */
};

/* how the GPU memory is held; written by MAP (INIT) and by the teardown */
struct nvfs_pin {
	struct nvidia_p2p_page_table *table;
	u64 va;			/* multiple of 64 KiB */
	u64 len;		/* multiple of 64 KiB */
	bool persistent;
	bool gone;		/* freed by the GPU driver: nothing to unmap; nvfs_mapping.lock */
	bool callback_done;	/* ... and its callback is through with us; likewise */
	u32 pages;		/* of 64 KiB */
	/*
	 * Per GPU page, the first page past its run, common to the physical addresses and
	 * to all peers: a segment inside it is contiguous for everybody. Only ever shrinks.
	 */
	u32 *run_end;
};

struct nvfs_mapping {
	/* identity; constant after mmap */
	struct mm_struct *mm;		/* compared, never dereferenced */
	unsigned long cpuvaddr;
	size_t vma_size;
	struct nvfs_user *user;		/* who made it, charged with vma_size */
	struct hlist_node node;		/* nvfs_hash; nvfs_hash_lock, RCU */
	struct kref ref;		/* the VMA, each request, each mapped segment */
	struct rcu_head rcu;
	struct work_struct teardown;

	spinlock_t lock;		/* the fields down to `waiters`; process context only */
	enum nvfs_state state;
	unsigned int users;		/* who needs the DMA mappings to stay */
	wait_queue_head_t idle;		/* users == 0 */
	unsigned long *busy;		/* bitmap of blocks that a request owns */
	struct list_head waiters;	/* requests that wait for blocks, first come first served */
	bool async;		/* the fence page belongs to an asynchronous request; lock */
	struct mutex sparse_lock;	/* the hole list of the fence page; a leaf */
	struct nvfs_rdma_info rdma;	/* lock; zeros: none */

	unsigned long p2p_pair;		/* the drive its pages go to; one word, no lock; p2p_io.c */

	/* set by MAP before READY, constant until the teardown */
	bool mapped;			/* MAP succeeded: there is something to tear down */
	u64 size;			/* GPU buffer, bytes */
	u32 page_off;			/* its start inside the first GPU page */
	struct nvfs_pin pin;
	u64 charged;			/* of the pin, bytes, to `user` */
	bool is_bounce;
	struct nvfs_gpustat *gpu;	/* where its bytes are counted, or NULL */
	struct nvfs_p2p *p2p;		/* P2PDMA pages, or NULL: p2p.h says who may use it */
	enum nvfs_p2p_why p2p_why;	/* ... and why not; for messages */
	struct nvfs_view *view;		/* these pages in its process, or NULL; lock; view.h */
	enum nvfs_carriers choice;	/* of its owner; set before MAP, lock */
	struct page *fence;		/* pinned user page, or NULL */
	u32 nblocks;
	u32 ncarriers;
	struct nvfs_carrier *carriers;	/* by first block */
	/*
	 * Per block: where in the pinned range it stands (in blocks), and which of its eight
	 * sectors a driver has DMA-mapped. Written by the owning request before submission
	 * and after completion, and by the hook in between (sectors only).
	 */
	u32 *gpu_blk;
	u8 *sectors;
	u8 *by;			/* per block: slot of the peer that mapped it last; likewise */

	struct list_head pinned;	/* nvfs_pinned; nvfs_topo_lock */
	unsigned long peer_gen;		/* nvfs_topo_lock; read racily as a hint */
	struct nvfs_peer_map __rcu *peer_map[NVFS_MAX_PEERS];	/* written under nvfs_topo_lock */
	unsigned long missed;		/* bit 0: a peer without a mapping asked */
};

/* mapping.c */
void nvfs_mapping_revoke(struct nvfs_mapping *m, bool freed);
void nvfs_vma_flags(struct vm_area_struct *vma);
int nvfs_mmap(struct file *file, struct vm_area_struct *vma);
struct nvfs_mapping *nvfs_mapping_get(u64 cpuvaddr);
void nvfs_mapping_put(struct nvfs_mapping *m);
bool nvfs_mapping_enter(struct nvfs_mapping *m, enum nvfs_state *why);
void nvfs_mapping_leave(struct nvfs_mapping *m);
int nvfs_map(struct nvfs_ioctl_map *args);
int nvfs_mapping_withdraw(u64 cpuvaddr);
void nvfs_mapping_flush(void);
int nvfs_mapping_init(void);
void nvfs_mapping_exit(void);

/* carrier.c */
int nvfs_carriers_alloc(struct nvfs_mapping *m, u32 nblocks);
void nvfs_carriers_free(struct nvfs_mapping *m);
const struct nvfs_carrier *nvfs_carrier_find(struct page *page);
int nvfs_blocks_take(struct nvfs_mapping *m, u32 n, u32 gpu_blk, u32 *first);
void nvfs_blocks_give(struct nvfs_mapping *m, u32 first, u32 n);
void nvfs_blocks_wake_all(struct nvfs_mapping *m);
u32 nvfs_blocks_bvec(struct nvfs_mapping *m, u32 first, u32 n, struct bio_vec *bv, u32 max);
u32 nvfs_blocks_unmapped(struct nvfs_mapping *m, u32 first, size_t len, u32 *regions);
void nvfs_blocks_mark(struct nvfs_mapping *m, u64 pos, u32 len);
void nvfs_blocks_by(struct nvfs_mapping *m, u64 pos, u32 len, unsigned int slot);
struct nvfs_witness;
void nvfs_blocks_witness(struct nvfs_mapping *m, u32 first, size_t len, struct nvfs_witness *w);
void *nvfs_block_addr(const struct nvfs_mapping *m, u32 blk);

/* gpu.c: the only file that calls nvidia_p2p_* */
int nvfs_gpu_init(void);
int nvfs_gpu_get(void);
void nvfs_gpu_put(void);
int nvfs_gpu_pin(struct nvfs_mapping *m, u64 va, u64 len);
void nvfs_gpu_unpin(struct nvfs_mapping *m);
int nvfs_gpu_addresses(struct nvfs_mapping *m, u64 *phys);
struct nvfs_peer_map *nvfs_gpu_map_peer(struct nvfs_mapping *m, struct pci_dev *pdev);
void nvfs_gpu_unmap_peer(struct nvfs_mapping *m, struct nvfs_peer_map *pm, struct pci_dev *pdev);
extern char *nvfs_pin_mode;

/* pci.c: storage functions that may DMA, and their mappings */
struct nvfs_peer {
	struct pci_dev *pdev;		/* referenced */
	unsigned int slot;
	bool dead;			/* its driver is being unbound */
	atomic_t segments;		/* mapped and not unmapped yet */
};

extern struct mutex nvfs_topo_lock;
int nvfs_peers_init(void);
void nvfs_peers_exit(void);
void nvfs_peers_scan(void);
struct nvfs_peer *nvfs_peer_find(struct device *dev);
void nvfs_peer_missed(struct nvfs_mapping *m, struct device *dev);
int nvfs_peers_map(struct nvfs_mapping *m);
void nvfs_peers_unmap(struct nvfs_mapping *m);
int nvfs_peers_refresh(struct nvfs_mapping *m);
void nvfs_peers_changed(void);
unsigned long nvfs_peers_gen(void);
unsigned int nvfs_peers_named(u64 slots, char *driver, size_t len);

/* hooks.c: storage drivers with the hook; hook_v1.c and hook_v2.c are what they call */
int nvfs_hooks_init(void);
void nvfs_hooks_exit(void);
void nvfs_hooks_attach(void);
bool nvfs_hooks_any(void);
bool nvfs_hooks_serve(const char *driver);
struct seq_file;
void nvfs_hooks_show(struct seq_file *s);
void nvfs_hooks_show_reasons(struct seq_file *s);

/* io.c */
int nvfs_rw(struct nvfs_ioctl_ioargs *args, bool write);

/* async.c */
struct nvfs_async;
struct nvfs_async *nvfs_async_prepare(const struct nvfs_ioctl_ioargs *a, bool write);
ssize_t nvfs_async_submit(struct nvfs_async *x);
void nvfs_async_drop(struct nvfs_async *x, int r);
int nvfs_async_rw(struct nvfs_ioctl_ioargs *args, bool write);
void nvfs_async_flush(void);
int nvfs_async_init(void);
void nvfs_async_exit(void);

/* batch.c */
int nvfs_batch(const struct nvfs_ioctl_batch *b);

/* rdma.c */
int nvfs_rdma_set(const struct nvfs_ioctl_set_rdma *s);
int nvfs_rdma_get(struct nvfs_ioctl_get_rdma *g);
int nvfs_rdma_clear(u64 cpuvaddr);

/* extend.c */
long nvfs_ogds_query(void __user *arg);
long nvfs_ogds_unmap(void __user *arg);
long nvfs_ogds_rw(void __user *arg);
long nvfs_ogds_carriers(void __user *arg);
long nvfs_ogds_pages(struct file *file, void __user *arg);

/* fence.c */
void nvfs_fence_state(struct nvfs_mapping *m, u32 state);
void nvfs_fence_signal(struct nvfs_mapping *m, s64 result, u64 value);
size_t nvfs_fence_holes(struct nvfs_mapping *m, loff_t pos, u32 first, size_t len, bool p2p);

/* topo.c */
int nvfs_topo_init(void);
u32 nvfs_cross_percent(struct pci_dev *gpu);
int nvfs_peer_distance_show(struct seq_file *s);
int nvfs_peer_affinity_show(struct seq_file *s);
int nvfs_bridges_show(struct seq_file *s);
int nvfs_ways_show(struct seq_file *s);

/* gpustat.c */
struct pci_dev *nvfs_pci_at(u64 phys, int *bar);
void nvfs_gpustat_pin(struct nvfs_mapping *m, const struct nvidia_p2p_page_table *t);
void nvfs_gpustat_unpin(struct nvfs_mapping *m);
void nvfs_gpustat_used(struct nvfs_mapping *m, u64 slots);
u64 nvfs_gpustat_count(struct pci_dev *gpu, struct pci_dev *peer);
void nvfs_gpustat_reset(void);
void nvfs_gpustats_show(struct seq_file *s);

/* user.c: what each user has */
struct nvfs_user;
struct nvfs_user *nvfs_user_get(void);
void nvfs_user_put(struct nvfs_user *u);
int nvfs_user_charge(struct nvfs_user *u, enum nvfs_charge what, u64 bytes);
void nvfs_user_uncharge(struct nvfs_user *u, enum nvfs_charge what, u64 bytes);
void nvfs_users_show(struct seq_file *s);

/* proc.c */
int nvfs_proc_init(void);
void nvfs_proc_exit(void);

/* stats.c: per-CPU, summed when read; units in the names */
enum nvfs_stat {
	NVFS_ST_READ, NVFS_ST_READ_OK, NVFS_ST_READ_ERR, NVFS_ST_READ_BYTES, NVFS_ST_READ_STATE,
	NVFS_ST_WRITE, NVFS_ST_WRITE_OK, NVFS_ST_WRITE_ERR, NVFS_ST_WRITE_BYTES,
	NVFS_ST_WRITE_STATE,
	NVFS_ST_MMAP, NVFS_ST_MMAP_OK, NVFS_ST_MMAP_ERR, NVFS_ST_MUNMAP,
	NVFS_ST_MAP, NVFS_ST_MAP_OK, NVFS_ST_MAP_ERR, NVFS_ST_MAP_FREE, NVFS_ST_CALLBACK,
	NVFS_ST_MAP_ACTIVE, NVFS_ST_DELAY_FREE,
	NVFS_ST_MIXED, NVFS_ST_SG_EXT, NVFS_ST_DMA_MAP_ERR, NVFS_ST_DMA_REF_ERR,
	NVFS_ST_SPARSE, NVFS_ST_SPARSE_IO, NVFS_ST_SPARSE_HOLES, NVFS_ST_SPARSE_BLOCKS,
	NVFS_ST_READ_NS, NVFS_ST_WRITE_NS, NVFS_ST_OPS_READ, NVFS_ST_OPS_WRITE,
	NVFS_ST_BATCH, NVFS_ST_BATCH_OK, NVFS_ST_BATCH_ERR, NVFS_ST_BATCH_NS,
	NVFS_ST_OPS_BATCH,
	NVFS_ST_OPENS, NVFS_ST_SHADOW_BYTES,
	NVFS_ST_CPU_READ_BYTES, NVFS_ST_CPU_WRITE_BYTES, NVFS_ST_REWRITES,
	NVFS_ST_P2P_READ_BYTES, NVFS_ST_P2P_WRITE_BYTES,
	NVFS_ST_COUNT,
};

struct nvfs_stats {
	s64 v[NVFS_ST_COUNT];
};

DECLARE_PER_CPU(struct nvfs_stats, nvfs_stats);
#define nvfs_stat_add(which, n) this_cpu_add(nvfs_stats.v[which], n)
#define nvfs_stat_inc(which) nvfs_stat_add(which, 1)
#define nvfs_stat_dec(which) nvfs_stat_add(which, -1)
s64 nvfs_stat_sum(enum nvfs_stat which);
void nvfs_stats_reset(void);
void nvfs_stats_show(struct seq_file *s);
extern bool nvfs_rw_stats_enabled;
extern bool nvfs_peer_stats_enabled;
extern unsigned int nvfs_device_count;

#endif /* NVIDIA_FS_H */
