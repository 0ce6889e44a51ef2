/* SPDX-License-Identifier: GPL-2.0-only */
/* plug_test_abi.h - the one ioctl of /dev/plug-test, for plug_test.c and its client. */
#ifndef PLUG_TEST_ABI_H
#define PLUG_TEST_ABI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PLUG_MAX_STEPS 64
#define PLUG_MAX_LEN (1024 * 1024)

enum { PLUG_IOCTL, PLUG_READ, PLUG_WRITE };

/* An ioctl of another file, or direct I/O of host memory that the kernel allocates. */
struct plug_step {
	__u32 kind;
	__s32 fd;
	__u64 cmd;	/* of the ioctl */
	__u64 arg;	/* of the ioctl, or the caller's buffer */
	__u64 offset;	/* in the file, bytes */
	__u64 len;	/* bytes, whole pages */
	__s64 result;
};

/* The steps are submitted in their order inside one plug, then the plug is released. */
struct plug_run {
	__u64 steps;	/* address of struct plug_step[] */
	__u32 count;
	__u32 reserved;
};

#define PLUG_RUN _IOW('P', 0xd0, struct plug_run)

#endif /* PLUG_TEST_ABI_H */
