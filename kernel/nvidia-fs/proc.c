// SPDX-License-Identifier: GPL-2.0-only
/* proc.c - /proc/driver/nvidia-fs: formats that user space parses, byte for byte. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "nvidia-fs.h"
#include "p2p.h"

static struct proc_dir_entry *nvfs_proc;
static struct proc_dir_entry *nvfs_proc_link;

static int version_show(struct seq_file *s, void *v)
{
	seq_printf(s, "version: %u.%u\n", NVFS_VERSION_MAJOR, NVFS_VERSION_MINOR);
	return 0;
}

static int devcount_show(struct seq_file *s, void *v)
{
	seq_printf(s, "%u\n", nvfs_device_count);
	return 0;
}

static int modules_show(struct seq_file *s, void *v)
{
	nvfs_hooks_show(s);
	return 0;
}

static int peer_distance_show(struct seq_file *s, void *v)
{
	return nvfs_peer_distance_show(s);
}

static int peer_affinity_show(struct seq_file *s, void *v)
{
	return nvfs_peer_affinity_show(s);
}

static int bridges_show(struct seq_file *s, void *v)
{
	return nvfs_bridges_show(s);
}

/* our own: what works here, and why not */
static int opengds_show(struct seq_file *s, void *v)
{
	seq_printf(s, "version: %s\npin_mode: %s\n", NVFS_VERSION_STRING, nvfs_pin_mode);
	nvfs_hooks_show_reasons(s);
	nvfs_p2p_show(s);
	/* bytes that a CPU moved where a drive might have; writes done again after all */
	seq_printf(s, "cpu_read_bytes: %lld\ncpu_write_bytes: %lld\nrewrites: %lld\n",
		   nvfs_stat_sum(NVFS_ST_CPU_READ_BYTES),
		   nvfs_stat_sum(NVFS_ST_CPU_WRITE_BYTES), nvfs_stat_sum(NVFS_ST_REWRITES));
	/* bytes that a drive moved over P2PDMA carriers */
	seq_printf(s, "p2pdma_read_bytes: %lld\np2pdma_write_bytes: %lld\n",
		   nvfs_stat_sum(NVFS_ST_P2P_READ_BYTES), nvfs_stat_sum(NVFS_ST_P2P_WRITE_BYTES));
	return nvfs_ways_show(s);
}

static int users_show(struct seq_file *s, void *v)
{
	nvfs_users_show(s);
	return 0;
}

static int stats_show(struct seq_file *s, void *v)
{
	nvfs_stats_show(s);
	return 0;
}

static int stats_open(struct inode *inode, struct file *file)
{
	return single_open(file, stats_show, NULL);
}

/* by root, who may whatever the mode says */
static ssize_t stats_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	nvfs_stats_reset();
	return len;
}

static const struct proc_ops stats_ops = {
	.proc_open = stats_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = stats_write,
};

int nvfs_proc_init(void)
{
	nvfs_proc = proc_mkdir("driver/nvidia-fs", NULL);
	if (!nvfs_proc)
		return -ENOMEM;
	/* a short way for people; nothing needs it, so it may fail */
	nvfs_proc_link = proc_symlink("fs/nvfs", NULL, "../driver/nvidia-fs");
	if (proc_create_single("version", 0444, nvfs_proc, version_show) &&
	    proc_create_single("devcount", 0444, nvfs_proc, devcount_show) &&
	    proc_create_single("modules", 0444, nvfs_proc, modules_show) &&
	    proc_create_single("peer_distance", 0444, nvfs_proc, peer_distance_show) &&
	    proc_create_single("peer_affinity", 0444, nvfs_proc, peer_affinity_show) &&
	    proc_create_single("bridges", 0444, nvfs_proc, bridges_show) &&
	    proc_create_single("opengds", 0444, nvfs_proc, opengds_show) &&
	    proc_create_single("users", 0400, nvfs_proc, users_show) &&
	    proc_create("stats", 0444, nvfs_proc, &stats_ops))
		return 0;
	nvfs_proc_exit();
	return -ENOMEM;
}

void nvfs_proc_exit(void)
{
	proc_remove(nvfs_proc_link);
	proc_remove(nvfs_proc);
}
