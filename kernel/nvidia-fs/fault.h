/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fault.h - places where a test makes the module fail: debugfs nvfs_inject_fault/, one
 * folder a place, the kernel's own fault attributes. docs/module.md says what each means.
 */
#ifndef NVIDIA_FS_FAULT_H
#define NVIDIA_FS_FAULT_H

#include <linux/types.h>

enum nvfs_fault {
	NVFS_FAULT_DMA,			/* a storage driver gets no address for a segment */
	NVFS_FAULT_VERIFY_AREA,		/* the file system refuses a window */
	NVFS_FAULT_FENCE_PAGE,		/* the fence page cannot be pinned */
	NVFS_FAULT_P2P_PAGE,		/* the GPU driver's page table is unusable */
	NVFS_FAULT_TRANSIT,		/* the mapping has left its state meanwhile */
	NVFS_FAULT_SHADOW_PAGES,	/* no memory for a carrier */
	NVFS_FAULT_INSERT_PAGE,		/* a touched page cannot be put into the process */
	NVFS_FAULTS,
};

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
/* True when the place has to fail now. Any context. */
bool nvfs_fault(enum nvfs_fault which);
void nvfs_faults_init(void);
void nvfs_faults_exit(void);
#else
static inline bool nvfs_fault(enum nvfs_fault which)
{
	return false;
}

static inline void nvfs_faults_init(void) { }
static inline void nvfs_faults_exit(void) { }
#endif

#endif /* NVIDIA_FS_FAULT_H */
