// SPDX-License-Identifier: GPL-2.0-only
/*
 * fault.c - faults and moods on order, as module parameters (also at run time, through
 * /sys/module/gpu_sim/parameters, by root).
 *
 * A fault is written as TIMES[:ERRNO]: the next TIMES calls fail with that errno (-1: all
 * of them, 0: none). Reading tells how many are left.
 */
#include <linux/delay.h>

#include "gpu_sim.h"
#include "nv_p2p_abi.h"

struct gpu_fault_order {
	spinlock_t lock;	/* all below; taken in any context */
	int times;		/* lock */
	int error;		/* lock; positive */
};

#define GPU_FAULT_INIT(site, errno)                                                            \
	[site] = { .lock = __SPIN_LOCK_UNLOCKED(gpu_faults[site].lock), .error = errno }

static struct gpu_fault_order gpu_faults[GPU_FAULT_SITES] = {
	GPU_FAULT_INIT(GPU_FAULT_ALLOC, ENOMEM),
	GPU_FAULT_INIT(GPU_FAULT_GET_PAGES, EINVAL),	/* what a GeForce answers */
	GPU_FAULT_INIT(GPU_FAULT_DMA_MAP, EIO),
	GPU_FAULT_INIT(GPU_FAULT_RM, EIO),
};

static int gpu_fault_set(const char *val, const struct kernel_param *kp)
{
	struct gpu_fault_order *f = kp->arg;
	int times, error = 0;

	if (sscanf(val, "%d:%d", &times, &error) < 1 || times < -1)
		return -EINVAL;
	error = abs(error);
	if (error > MAX_ERRNO)
		return -EINVAL;
	spin_lock(&f->lock);
	f->times = times;
	if (error)
		f->error = error;
	spin_unlock(&f->lock);
	return 0;
}

static int gpu_fault_show(char *buf, const struct kernel_param *kp)
{
	struct gpu_fault_order *f = kp->arg;

	return scnprintf(buf, PAGE_SIZE, "%d:%d\n", READ_ONCE(f->times), READ_ONCE(f->error));
}

static const struct kernel_param_ops gpu_fault_ops = {
	.set = gpu_fault_set,
	.get = gpu_fault_show,
};

module_param_cb(fault_alloc, &gpu_fault_ops, &gpu_faults[GPU_FAULT_ALLOC], 0644);
MODULE_PARM_DESC(fault_alloc, "TIMES[:ERRNO] for allocations (ENOMEM)");
module_param_cb(fault_get_pages, &gpu_fault_ops, &gpu_faults[GPU_FAULT_GET_PAGES], 0644);
MODULE_PARM_DESC(fault_get_pages, "TIMES[:ERRNO] for nvidia_p2p_get_pages* (EINVAL, as a GeForce)");
module_param_cb(fault_dma_map, &gpu_fault_ops, &gpu_faults[GPU_FAULT_DMA_MAP], 0644);
MODULE_PARM_DESC(fault_dma_map, "TIMES[:ERRNO] for nvidia_p2p_dma_map_pages (EIO)");
module_param_cb(fault_rm, &gpu_fault_ops, &gpu_faults[GPU_FAULT_RM], 0644);
MODULE_PARM_DESC(fault_rm, "TIMES[:ERRNO] for requests to the resource manager, frees aside (EIO)");

/* 0, or the negative errno that this call has to fail with. */
int gpu_fault(enum gpu_fault_site site)
{
	struct gpu_fault_order *f = &gpu_faults[site];
	int ret = 0;

	spin_lock(&f->lock);
	if (f->times) {
		ret = -f->error;
		if (f->times > 0)
			f->times--;
	}
	spin_unlock(&f->lock);
	return ret;
}

static unsigned int callback_delay_ms;
module_param(callback_delay_ms, uint, 0644);
MODULE_PARM_DESC(callback_delay_ms, "wait before each free callback, under the RM lock (0)");

void gpu_fault_delay_callback(void)
{
	unsigned int ms = READ_ONCE(callback_delay_ms);

	if (ms)
		msleep(min(ms, 60000U));
}

static unsigned int bar1_mb;
module_param(bar1_mb, uint, 0644);
MODULE_PARM_DESC(bar1_mb, "MiB that may be pinned at once, of each card; 0: all of it (0)");

u64 gpu_fault_bar1_bytes(void)
{
	unsigned int mb = READ_ONCE(bar1_mb);

	return mb ? (u64)mb << 20 : U64_MAX;
}

static unsigned int table_version = 2;
module_param(table_version, uint, 0644);
MODULE_PARM_DESC(table_version, "major of page tables, 1 or 2 (2); others are taken as they are");

u32 gpu_fault_table_version(void)
{
	unsigned int v = READ_ONCE(table_version);

	switch (v) {
	case 1:
		return NVIDIA_P2P_PAGE_TABLE_VERSION_1;
	case 2:
		return NVIDIA_P2P_PAGE_TABLE_VERSION_2;
	default:
		return v;
	}
}

static unsigned int page_kb = 64;
module_param(page_kb, uint, 0644);
MODULE_PARM_DESC(page_kb, "KiB of a page in page tables: 64 or 128 (64)");

u32 gpu_fault_page_shift(void)
{
	return READ_ONCE(page_kb) == 128 ? GPU_SIM_PAGE_SHIFT + 1 : GPU_SIM_PAGE_SHIFT;
}

static unsigned int rm_lie;
module_param(rm_lie, uint, 0644);
MODULE_PARM_DESC(rm_lie, "KiB, multiple of 4: mappings of the resource manager show what lies that much further on in the object (0)");

/* Bytes, a multiple of the page size. */
u64 gpu_fault_rm_lie(void)
{
	return ((u64)READ_ONCE(rm_lie) << 10) & PAGE_MASK;
}
