/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_sim.h - objects and locks of the simulated GPU driver.
 *
 * Locks, outermost first:
 *   gpu_rm_lock()     one mutex for the whole driver, like the real driver's "RM API" lock.
 *                     Held while free callbacks run. Never taken under mmap_lock.
 *   card->life        rw semaphore: may the card's BAR be touched and mapped? Taken for
 *                     writing under the RM lock; for reading under mmap_lock (faults, mmap)
 *                     and while VRAM is written. No user memory is touched under it.
 *   pin->lock         mutex: the DMA mappings of one page table. Not held over callbacks.
 *
 * Lifetimes:
 *   card   kref: PCI binding, open files, allocations. States: live -> dead (unbind,
 *          hot unplug), one way. A dead card's BAR is not touched any more.
 *   mem    kref: the client's list, mappings (VMAs), pins. Its VRAM pages are another
 *          matter: `users` counts the allocation itself, each pin, and each second name and
 *          descriptor in the resource manager (gpu_rm.h); the last one out poisons the
 *          pages and gives them back.
 *          States: allocated -> freed (ioctl, last close, process death), one way.
 *   pin    one page table that nvidia_p2p_get_pages* handed out. Holds mem and the module.
 *          States: live (in the hash) -> gone, by put, or by the driver after the callback.
 *   dma    one mapping of a pin for a peer; dies by unmap or with its pin. Holds the peer.
 *
 * rmmod: open files, mappings and pins hold the module, so it fails at once with EBUSY.
 */
#ifndef GPU_SIM_H
#define GPU_SIM_H

#include <linux/idr.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/types.h>

#include "gpu_sim_abi.h"
#include "probe.h"

#define GPU_SIM_BAR 2
#define GPU_SIM_NAME "OpenGDS simulated GPU"
#define GPU_SIM_GEFORCE_NAME "OpenGDS simulated GeForce"

struct pid;
struct address_space;
struct proc_dir_entry;

struct gpu_card {
	struct kref ref;
	struct pci_dev *pdev;		/* referenced; constant */
	struct miscdevice misc;		/* /dev/gpu-simN */
	char name[16];			/* "gpu-simN" */
	unsigned int index;
	u8 uuid[16];
	phys_addr_t phys;		/* CPU physical address of the BAR; constant */
	u64 bus;			/* PCI bus address of the BAR; constant */
	u32 npages;			/* of 64 KiB; constant */

	struct rw_semaphore life;
	bool dead;			/* W: RM lock + life; R: either */
	u8 __iomem *vram;		/* the whole BAR; valid while !dead */

	/* under the RM lock; the counters are read without it by sysfs */
	unsigned long *used;		/* bit set: page belongs to a mem, or is being poisoned */
	u32 nfree;
	u64 next_handle;		/* never reused, so a handle names one mem for ever */
	u32 npins;
	u64 pinned;			/* bytes */
	struct list_head clients;
	struct list_head link;		/* in the list of cards */
	struct list_head views;		/* struct gpu_node with a live view */
	u32 nviews;
	u64 viewed;			/* bytes that they show */
	u32 nnames;			/* second names of memory */

	struct miscdevice node;		/* /dev/nvidiaN */
	char node_name[16];		/* "nvidiaN" */
	struct proc_dir_entry *proc;	/* below /proc/driver/nvidia/gpus; constant once bound */

	atomic_t nmaps;			/* DMA mappings */
};

/* One open file of a card. */
struct gpu_client {
	struct gpu_card *card;		/* referenced; constant */
	struct pid *tgid;		/* the process that opened it, referenced; constant */
	struct address_space *mapping;	/* of the file, to zap its mappings; constant */
	u32 rm_name;			/* as CUDA IPC handles tell it; constant */
	struct ida objects;		/* names of its memory in IPC handles, lowest first */
	struct list_head link;		/* card->clients, since its first mem; RM lock */
	struct list_head mems;		/* W: RM lock + card->life; R: either */
	u32 nmems;			/* RM lock */
	u32 pattern;			/* RM lock */
	u64 seed;			/* RM lock */
};

struct gpu_mem {
	struct kref ref;
	struct gpu_card *card;		/* referenced; constant */
	struct list_head link;		/* client->mems */
	u64 va;				/* 0: none. RM lock; constant unless by MAP */
	u64 size, handle;		/* constant */
	u32 object;			/* as CUDA IPC handles tell it, until it is freed */
	bool freed;			/* W: RM lock + card->life; R: either */
	u32 users;			/* RM lock */
	struct list_head pins;		/* RM lock */
	u32 npages;
	u32 page[];			/* page numbers in the card, in the order of va; constant */
};

/* dev.c */
int gpu_dev_register(struct gpu_card *card);
void gpu_dev_unregister(struct gpu_card *card);
void gpu_dev_kill(struct gpu_card *card);
struct gpu_mem *gpu_mem_find(struct pid *tgid, u64 va, u64 len);
void gpu_mem_get(struct gpu_mem *mem);
void gpu_mem_put(struct gpu_mem *mem);
bool gpu_mem_unuse(struct gpu_mem *mem);
struct gpu_client *gpu_client_named(u32 name);
struct gpu_mem *gpu_mem_named(struct gpu_client *client, u32 object);

/* vram.c */
int gpu_vram_init(struct gpu_card *card);
void gpu_vram_exit(struct gpu_card *card);
int gpu_vram_take(struct gpu_card *card, struct gpu_mem *mem, u32 pattern, u64 seed);
void gpu_vram_release(struct gpu_mem *mem);
bool gpu_vram_poisons(void);

/* pci.c */
extern struct list_head gpu_cards;	/* RM lock */
extern bool gpu_wc;			/* the BAR's mappings are write-combined; constant */

void gpu_card_get(struct gpu_card *card);
void gpu_card_put(struct gpu_card *card);

/* p2p.c */
void gpu_rm_lock(void);
void gpu_rm_unlock(void);
void gpu_rm_assert_held(void);
void gpu_p2p_revoke(struct gpu_mem *mem);
int gpu_p2p_init(void);

/* rm.c */
u32 gpu_rm_new_client(void);
int gpu_rm_init(void);
void gpu_rm_exit(void);

int gpu_rm_export(struct gpu_mem *mem, int fd);

/* rm_peers.c */
bool gpu_peers_decide(void);
struct gpu_mem *gpu_peers_find(u64 va, u64 len, u32 *first);

/* rm_node.c */
int gpu_node_add(struct gpu_card *card);
void gpu_node_del(struct gpu_card *card);
void gpu_node_kill(struct gpu_card *card);

/* fault.c */
enum gpu_fault_site {
	GPU_FAULT_ALLOC, GPU_FAULT_GET_PAGES, GPU_FAULT_DMA_MAP, GPU_FAULT_RM, GPU_FAULT_SITES
};

int gpu_fault(enum gpu_fault_site site);
void gpu_fault_delay_callback(void);
u64 gpu_fault_bar1_bytes(void);
u32 gpu_fault_table_version(void);
u32 gpu_fault_page_shift(void);
u64 gpu_fault_rm_lie(void);

static inline phys_addr_t gpu_page_phys(const struct gpu_mem *mem, u32 i)
{
	return mem->card->phys + ((u64)mem->page[i] << GPU_SIM_PAGE_SHIFT);
}

#endif /* GPU_SIM_H */
