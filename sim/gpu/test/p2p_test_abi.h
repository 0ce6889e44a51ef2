/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * p2p_test_abi.h - how tests make the kernel side call nvidia_p2p_*, by ioctls of
 * /dev/gpu-sim-test in the process that owns the memory.
 */
#ifndef GPU_SIM_P2P_TEST_ABI_H
#define GPU_SIM_P2P_TEST_ABI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define P2P_TEST_SLOTS 64
#define P2P_TEST_PAGES 64	/* physical or DMA addresses told at most */

enum p2p_test_op {
	P2P_TEST_GET,		/* va, len, flags; out: version, entries, page_size, addr[] */
	P2P_TEST_PUT,		/* va */
	P2P_TEST_MAP,		/* peer; out: entries, addr[] */
	P2P_TEST_UNMAP,
	P2P_TEST_STATE,		/* out: callbacks, blocked, put_ret */
	P2P_TEST_FORGET		/* the slot is free again; nothing is called */
};

/* of GET */
#define P2P_TEST_PERSISTENT (1U << 0)
#define P2P_TEST_CB_UNMAP (1U << 1)	/* the callback unmaps what is mapped */
#define P2P_TEST_CB_PUT (1U << 2)	/* another thread puts while the callback runs */

struct p2p_test {
	__u32 op;		/* enum p2p_test_op */
	__u32 slot;
	__s32 ret;		/* what the nvidia_p2p_* call returned */
	__u32 flags;
	__u64 va;
	__u64 len;
	__u64 peer;		/* domain << 32 | bus << 8 | devfn */
	__u32 version;
	__u32 entries;
	__u32 page_size;
	__u32 callbacks;	/* how often the callback ran */
	__u32 blocked;		/* CB_PUT: the put had not returned when the callback did */
	__s32 put_ret;		/* CB_PUT: and what it returned then */
	__u64 addr[P2P_TEST_PAGES];
};

#define P2P_TEST_IOC _IOWR('G', 0xb0, struct p2p_test)

#endif /* GPU_SIM_P2P_TEST_ABI_H */
