// SPDX-License-Identifier: GPL-2.0-only
/*
 * stats.c - counters, one set a CPU, summed when read. A counter of things that exist
 * (opens, active mappings) may be negative on one CPU; only the sum means something.
 */
#include <linux/math64.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "nvidia-fs.h"
#include "log.h"

#define NVFS_STATS_VERSION "4.0"
#define NVFS_GDS_VERSION "1.17.1.22"	/* the release whose ABI this is */

DEFINE_PER_CPU(struct nvfs_stats, nvfs_stats);

static bool nvfs_stat_is_gauge(enum nvfs_stat which)
{
	switch (which) {
	case NVFS_ST_MAP_ACTIVE:
	case NVFS_ST_OPS_READ:
	case NVFS_ST_OPS_WRITE:
	case NVFS_ST_OPS_BATCH:
	case NVFS_ST_OPENS:
	case NVFS_ST_SHADOW_BYTES:
		return true;
	default:
		return false;
	}
}

s64 nvfs_stat_sum(enum nvfs_stat which)
{
	s64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(nvfs_stats, cpu).v[which]);
	return sum;
}

/* Cumulative counters go back to zero; what exists is still counted. */
void nvfs_stats_reset(void)
{
	enum nvfs_stat i;
	int cpu;

	for (i = 0; i < NVFS_ST_COUNT; i++) {
		if (nvfs_stat_is_gauge(i))
			continue;
		for_each_possible_cpu(cpu)
			WRITE_ONCE(per_cpu(nvfs_stats, cpu).v[i], 0);
	}
	nvfs_gpustat_reset();
}

static void show(struct seq_file *s, const char *name, enum nvfs_stat which, char end)
{
	seq_printf(s, "%s=%lld%c", name, nvfs_stat_sum(which), end);
}

/* what a mean is made of: totals of the requests that succeeded */
static void show_speed(struct seq_file *s, const char *name, enum nvfs_stat ok,
		       enum nvfs_stat bytes, enum nvfs_stat ns)
{
	u64 n = nvfs_stat_sum(ok), us = div_u64(nvfs_stat_sum(ns), NSEC_PER_USEC);
	u64 mib = (u64)nvfs_stat_sum(bytes) >> 20;

	seq_printf(s, "%s\t\t\t\t: Bandwidth(MiB/s)=%llu Avg-Latency(usec)=%llu\n", name,
		   us ? div64_u64(mib * USEC_PER_SEC, us) : 0, n ? div64_u64(us, n) : 0);
}

static void show_batches(struct seq_file *s)
{
	u64 ok = nvfs_stat_sum(NVFS_ST_BATCH_OK);
	u64 us = div_u64(nvfs_stat_sum(NVFS_ST_BATCH_NS), NSEC_PER_USEC);

	seq_puts(s, "Batches\t\t\t\t: ");
	show(s, "n", NVFS_ST_BATCH, ' ');
	show(s, "ok", NVFS_ST_BATCH_OK, ' ');
	show(s, "err", NVFS_ST_BATCH_ERR, ' ');
	seq_printf(s, "Avg-Submit-Latency(usec)=%llu\n", ok ? div64_u64(us, ok) : 0);
}

static void show_reads(struct seq_file *s)
{
	seq_puts(s, "Reads\t\t\t\t: ");
	if (nvfs_rw_stats_enabled) {
		show(s, "n", NVFS_ST_READ, ' ');
		show(s, "ok", NVFS_ST_READ_OK, ' ');
	}
	show(s, "err", NVFS_ST_READ_ERR, ' ');
	if (nvfs_rw_stats_enabled)
		seq_printf(s, "readMiB=%lld ", nvfs_stat_sum(NVFS_ST_READ_BYTES) >> 20);
	show(s, "io_state_err", NVFS_ST_READ_STATE, '\n');
	if (nvfs_rw_stats_enabled)
		show_speed(s, "Reads", NVFS_ST_READ_OK, NVFS_ST_READ_BYTES, NVFS_ST_READ_NS);
	seq_puts(s, "Sparse Reads\t\t\t: ");
	show(s, "n", NVFS_ST_SPARSE, ' ');
	show(s, "io", NVFS_ST_SPARSE_IO, ' ');
	show(s, "holes", NVFS_ST_SPARSE_HOLES, ' ');
	show(s, "pages", NVFS_ST_SPARSE_BLOCKS, '\n');
}

static void show_writes(struct seq_file *s)
{
	seq_puts(s, "Writes\t\t\t\t: ");
	if (nvfs_rw_stats_enabled) {
		show(s, "n", NVFS_ST_WRITE, ' ');
		show(s, "ok", NVFS_ST_WRITE_OK, ' ');
	}
	show(s, "err", NVFS_ST_WRITE_ERR, ' ');
	if (nvfs_rw_stats_enabled)
		seq_printf(s, "writeMiB=%lld ", nvfs_stat_sum(NVFS_ST_WRITE_BYTES) >> 20);
	show(s, "io_state_err", NVFS_ST_WRITE_STATE, ' ');
	/* the file system keeps its page cache coherent; there is no step of ours to count */
	seq_puts(s, "pg-cache=0 pg-cache-fail=0 pg-cache-eio=0\n");
	if (nvfs_rw_stats_enabled)
		show_speed(s, "Writes", NVFS_ST_WRITE_OK, NVFS_ST_WRITE_BYTES, NVFS_ST_WRITE_NS);
}

/* The network stack's own way to GPU memory. */
static bool nvfs_peer_direct(void)
{
	struct path path;

	if (kern_path("/sys/kernel/mm/memory_peers/nv_mem/version", LOOKUP_FOLLOW, &path))
		return false;
	path_put(&path);
	return true;
}

void nvfs_stats_show(struct seq_file *s)
{
	seq_printf(s, "GDS Version: %s \n", NVFS_GDS_VERSION);
	seq_printf(s, "NVFS statistics(ver: %s)\n", NVFS_STATS_VERSION);
	seq_printf(s, "NVFS Driver(version: %s)\n", NVFS_VERSION_STRING);
	seq_printf(s, "Mellanox PeerDirect Supported: %s\n", nvfs_peer_direct() ? "True" : "False");
	seq_printf(s, "IO stats: %s, peer IO stats: %s\n",
		   nvfs_rw_stats_enabled ? "Enabled" : "Disabled",
		   nvfs_peer_stats_enabled ? "Enabled" : "Disabled");
	seq_printf(s, "Logging level: %s\n\n",
		   nvfs_dbg_enabled ? "debug" : nvfs_info_enabled ? "info" : "warn");
	seq_printf(s, "Active Shadow-Buffer (MiB): %lld\n",
		   nvfs_stat_sum(NVFS_ST_SHADOW_BYTES) >> 20);
	seq_printf(s, "Active Process: %lld\n",
		   div_s64(nvfs_stat_sum(NVFS_ST_OPENS), nvfs_device_count ?: 1));
	if (nvfs_rw_stats_enabled)
		show_batches(s);
	show_reads(s);
	show_writes(s);
	seq_puts(s, "Mmap\t\t\t\t: ");
	show(s, "n", NVFS_ST_MMAP, ' ');
	show(s, "ok", NVFS_ST_MMAP_OK, ' ');
	show(s, "err", NVFS_ST_MMAP_ERR, ' ');
	show(s, "munmap", NVFS_ST_MUNMAP, '\n');
	seq_puts(s, "Bar1-map\t\t\t: ");
	show(s, "n", NVFS_ST_MAP, ' ');
	show(s, "ok", NVFS_ST_MAP_OK, ' ');
	show(s, "err", NVFS_ST_MAP_ERR, ' ');
	show(s, "free", NVFS_ST_MAP_FREE, ' ');
	show(s, "callbacks", NVFS_ST_CALLBACK, ' ');
	show(s, "active", NVFS_ST_MAP_ACTIVE, ' ');
	show(s, "delay-frees", NVFS_ST_DELAY_FREE, '\n');
	seq_puts(s, "Error\t\t\t\t: ");
	show(s, "cpu-gpu-pages", NVFS_ST_MIXED, ' ');
	show(s, "sg-ext", NVFS_ST_SG_EXT, ' ');
	show(s, "dma-map", NVFS_ST_DMA_MAP_ERR, ' ');
	show(s, "dma-ref", NVFS_ST_DMA_REF_ERR, '\n');
	seq_puts(s, "Ops\t\t\t\t: ");
	show(s, "Read", NVFS_ST_OPS_READ, ' ');
	show(s, "Write", NVFS_ST_OPS_WRITE, ' ');
	show(s, "BatchIO", NVFS_ST_OPS_BATCH, '\n');
	nvfs_gpustats_show(s);
}
