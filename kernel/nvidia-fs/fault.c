// SPDX-License-Identifier: GPL-2.0-only
/*
 * fault.c - fault attributes in debugfs; built only where the kernel has them. They take part
 * in /proc/PID/fail-nth, too.
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fault-inject.h>

#include "fault.h"

static struct fault_attr nvfs_fault_attr[NVFS_FAULTS] = {
	[0 ... NVFS_FAULTS - 1] = FAULT_ATTR_INITIALIZER,
};

/* names of the original's */
static const char * const nvfs_fault_name[NVFS_FAULTS] = {
	[NVFS_FAULT_DMA] = "dma_error",
	[NVFS_FAULT_VERIFY_AREA] = "rw_verify_area_error",
	[NVFS_FAULT_FENCE_PAGE] = "end_fence_get_user_pages_fast_error",
	[NVFS_FAULT_P2P_PAGE] = "invalid_p2p_get_page",
	[NVFS_FAULT_TRANSIT] = "io_transit_state_fail",
	[NVFS_FAULT_SHADOW_PAGES] = "pin_shadow_pages_error",
	[NVFS_FAULT_INSERT_PAGE] = "vm_insert_page_error",
};

static struct dentry *nvfs_fault_dir;

bool nvfs_fault(enum nvfs_fault which)
{
	return should_fail(&nvfs_fault_attr[which], 1);
}

/* Without debugfs the places never fail; nothing else depends on it. */
void nvfs_faults_init(void)
{
	unsigned int i;

	nvfs_fault_dir = debugfs_create_dir("nvfs_inject_fault", NULL);
	for (i = 0; i < NVFS_FAULTS && !IS_ERR(nvfs_fault_dir); i++)
		fault_create_debugfs_attr(nvfs_fault_name[i], nvfs_fault_dir,
					  &nvfs_fault_attr[i]);
}

void nvfs_faults_exit(void)
{
	debugfs_remove_recursive(nvfs_fault_dir);
}
