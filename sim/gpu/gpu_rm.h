/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_rm.h - objects of the simulated resource manager: the part of the GPU driver's own
 * interface that lib/rm uses, on /dev/nvidiactl, /dev/nvidiaN and below /proc/driver/nvidia.
 *
 * Everything is guarded by the RM lock, but where said.
 *
 *   ctl      an open /dev/nvidiactl. Its clients end with it. Once it was exported to, it names
 *            memory, for ever, and uses it; who has the descriptor may import that.
 *   client   a name space of objects, of one process; a fork has none of it.
 *   object   a device, a subdevice, an address space, a peers object, or a second name of CUDA's
 *            memory. Such a name uses the memory (gpu_mem.users): its pages stay allocated
 *            until the last name is freed, whatever CUDA frees meanwhile.
 *   entry    of a peers object: memory that other drivers may pin by CUDA's address. It ends by
 *            request, or with the name of the memory, the peers object or its address space.
 *            Only a card that is a GeForce (parameter) looks at them.
 *   node     an open /dev/nvidiaN. States: plain -> registered with a ctl, which it holds ->
 *            with a view, one for ever. A view is live until its name is freed, or the card
 *            is dead: then mappings of it fault. A mapping holds the file, so that the
 *            node's release comes after the last mapping.
 */
#ifndef GPU_RM_H
#define GPU_RM_H

#include <linux/xarray.h>

#include "gpu_sim.h"
#include "wire.h"

struct file;

/* Of a second name; the driver has a class number for it that no client needs. */
#define GPU_CLASS_MEMORY 0

/* An address, once in a peers object. */
struct gpu_entry {
	struct list_head link;		/* peers->entries, the oldest first */
	struct gpu_object *memory;
	u64 va, len, off;		/* bytes; off: in the memory */
};

struct gpu_ctl {
	struct list_head clients;
	struct gpu_mem *exported;	/* referenced, and used; set once */
};

struct gpu_rm_client {
	u32 name;			/* constant */
	struct pid *tgid;		/* referenced; constant */
	struct list_head link;		/* ctl->clients */
	struct xarray objects;		/* by name */
	u32 nobjects;
	unsigned long attached;		/* bit: index of a card */
};

struct gpu_object {
	u32 name, parent, class;	/* constant */
	struct gpu_card *card;		/* referenced; constant */
	struct gpu_mem *mem;		/* of GPU_CLASS_MEMORY: referenced, and used; constant */
	/* of RM_CLASS_PEERS, from here on */
	struct pid *tgid;		/* that made it, referenced; constant */
	struct list_head peers;		/* gpu_peers, the oldest first */
	struct list_head entries;
	u32 va_space;			/* joined; 0: none yet */
	struct list_head gone;		/* once it is freed; the freer's own */
	bool last;			/* freed, and the memory's last user */
};

struct gpu_node {
	struct gpu_card *card;		/* referenced; constant */
	struct pid *tgid;		/* referenced; constant */
	struct address_space *mapping;	/* of the file, to zap its mappings; constant */
	struct file *ctl;		/* referenced; set once */
	struct list_head link;		/* card->views, while the view is live */
	struct gpu_object *object;	/* what it shows, while it is live */
	/* as `object`, referenced, and the next three. W: RM lock + card->life; R: either */
	struct gpu_mem *mem;
	u64 off, len;			/* bytes, in mem; len 0: no view yet */
	u64 lie;			/* shown is what lies so much further on */
};

/* rm.c */
extern struct proc_dir_entry *gpu_proc;	/* NULL: rm=0; constant */
extern const struct file_operations gpu_ctl_fops;

/* rm_peers.c; RM lock held */
void gpu_peers_add(struct gpu_object *peers);
void gpu_peers_forget(struct gpu_rm_client *client, struct gpu_object *object);
u32 gpu_peers_size(u32 command);
u32 gpu_peers_control(struct gpu_rm_client *client, u32 name, u32 command, const void *params);

/* rm_node.c; RM lock held */
u32 gpu_node_show(struct file *file, struct file *ctl, struct gpu_object *object, u64 off, u64 len);
void gpu_node_forget(struct gpu_object *object);

#endif /* GPU_RM_H */
