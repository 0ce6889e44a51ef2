/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * log.h - how the module says why. One line a reason, rate-limited, naming the caller,
 * the object and the next step; never on the path of a request that succeeds.
 */
#ifndef NVIDIA_FS_LOG_H
#define NVIDIA_FS_LOG_H

#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>

#define NVFS_LOG "nvidia-fs: "

/* something the caller did, or that happened to the caller */
#define nvfs_say(fmt, ...) \
	pr_info_ratelimited(NVFS_LOG "%s[%d]: " fmt, current->comm, current->tgid, ##__VA_ARGS__)

/* something about the machine */
#define nvfs_note(fmt, ...) pr_info(NVFS_LOG fmt, ##__VA_ARGS__)

#endif /* NVIDIA_FS_LOG_H */
