/* SPDX-License-Identifier: MIT */
/*
 * device.h - the GPUs of this open: primary context, PCI address, what is pinned.
 *
 * A device is made at its first use and lives until the close; the pointer stays valid
 * inside driver_enter() .. driver_leave().
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bar.h"
#include "peers.h"
#include "pin_cost.h"
#include "staged.h"
#include "way_cost.h"

#define DEVICE_NO_P2P 32

struct device {
	int index;
	void *ctx;		/* primary context, retained */
	uint64_t pdevinfo;	/* as nvidia-fs takes it */
	char pci[32];		/* "0000:01:00.0" */
	int node;		/* NUMA node that it is at, or -1 */
	atomic_size_t pinned;	/* bytes, buffers and staging together */
	struct staging staging;
	struct pin_cost cost;	/* of pinning for one request, against staging */
	struct bar_gpu bar;	/* stores through BAR1 */
	struct peers_gpu peers;	/* pins of a GeForce */
	struct way_cost ways;	/* of those against the copy engine */
	/* device numbers of files (+ 1) whose device does not take this GPU's pages; 0: free */
	_Atomic uint64_t no_p2p[DEVICE_NO_P2P];
};

/* NULL with *err set (errmap.h); one log line names the device. */
struct device *device_get(int index, int *err);

/*
 * Memory of no context, as that of cuMemCreate and of pools, is the device's: what is done with it
 * is done in the primary one, and it is told as mapped.
 */
void device_own(const struct device *d, struct gpu_ptr *mem);

/* Counts `size` more pinned bytes: 0, or -ENOMEM: max_device_pinned_mem_size_kb is used up. */
int device_pin(struct device *d, size_t size);
void device_unpin(struct device *d, size_t size);

/* The kernel's verdict on P2PDMA between this GPU and the device of files, kept until the close. */
bool device_no_p2p(struct device *d, dev_t files);
void device_set_no_p2p(struct device *d, dev_t files);

/* At close, nobody inside. */
void devices_release(void);

#endif /* DEVICE_H */
