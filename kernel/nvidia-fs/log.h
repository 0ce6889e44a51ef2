/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * log.h - how the module says why. One line a reason, rate-limited, naming the caller,
 * the object and the next step; never on the path of a request that succeeds, unless
 * dbg_enabled asks for it.
 */
#ifndef NVIDIA_FS_LOG_H
#define NVIDIA_FS_LOG_H

#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>

#define NVFS_LOG "nvidia-fs: "

extern bool nvfs_info_enabled;	/* main.c; parameters that root may change at any time */
extern bool nvfs_dbg_enabled;

#define nvfs_if(cond, print) do { if (READ_ONCE(cond)) print; } while (0)

/* something the caller did, or that happened to the caller */
#define nvfs_say(fmt, ...) \
	nvfs_if(nvfs_info_enabled, pr_info_ratelimited(NVFS_LOG "%s[%d]: " fmt, current->comm, \
						       current->tgid, ##__VA_ARGS__))

/* something about the machine */
#define nvfs_note(fmt, ...) nvfs_if(nvfs_info_enabled, pr_info(NVFS_LOG fmt, ##__VA_ARGS__))

/* something is wrong with the machine, or with how the module was loaded; always told */
#define nvfs_warn(fmt, ...) pr_warn(NVFS_LOG fmt, ##__VA_ARGS__)

/* what is going on; tells for whom where that is known */
#define nvfs_dbg(fmt, ...) \
	nvfs_if(nvfs_dbg_enabled, printk_ratelimited(KERN_DEBUG NVFS_LOG "dbg: %s[%d]: " fmt, \
						     current->comm, current->tgid, ##__VA_ARGS__))

#endif /* NVIDIA_FS_LOG_H */
