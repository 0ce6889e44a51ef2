// SPDX-License-Identifier: MIT
/* differ_stats.c - cases of differ: statistics, size of BAR1. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "differ.h"

static CUfileStatsLevel1_t l1;
static CUfileStatsLevel2_t l2;
static CUfileStatsLevel3_t l3;

static void closed(struct d *d, long arg)
{
	int level = 99;

	d_err("set", lib.SetStatsLevel(1));
	d_err("get", lib.GetStatsLevel(&level));
	d_err("start", lib.StatsStart());
	d_err("stop", lib.StatsStop());
	d_err("reset", lib.StatsReset());
	d_err("l1", lib.GetStatsL1(&l1));
	d_err("l2", lib.GetStatsL2(&l2));
	d_err("l3", lib.GetStatsL3(&l3));
	d_num("uses", lib.UseCount());
}

static void level(struct d *d, long value)
{
	int level = 99;

	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetStatsLevel(&level));
	d_num("first", level);
	d_err("set", lib.SetStatsLevel(value));
	d_err("get", lib.GetStatsLevel(&level));
	d_num("level", level);
}

static void nulls(struct d *d, long which)
{
	d_err("open", lib.DriverOpen());
	d_err("set", lib.SetStatsLevel(3));
	d_err("start", lib.StatsStart());
	switch (which) {
	case 0:
		d_err("level", lib.GetStatsLevel(NULL));
		break;
	case 1:
		d_err("l1", lib.GetStatsL1(NULL));
		break;
	case 2:
		d_err("l2", lib.GetStatsL2(NULL));
		break;
	case 3:
		d_err("l3", lib.GetStatsL3(NULL));
		break;
	}
}

/* Which levels can be asked for when this one is set. */
static void above(struct d *d, long value)
{
	d_err("open", lib.DriverOpen());
	if (value >= 0)
		d_err("set", lib.SetStatsLevel(value));
	d_err("start", lib.StatsStart());
	d_err("l1", lib.GetStatsL1(&l1));
	d_err("l2", lib.GetStatsL2(&l2));
	d_err("l3", lib.GetStatsL3(&l3));
}

static void order(struct d *d, long what)
{
	d_err("open", lib.DriverOpen());
	if (what)
		d_err("set", lib.SetStatsLevel(1));
	d_err("stop", lib.StatsStop());
	d_err("reset", lib.StatsReset());
	d_err("start", lib.StatsStart());
	d_err("start", lib.StatsStart());
	d_err("reset", lib.StatsReset());
	d_err("stop", lib.StatsStop());
	d_err("stop", lib.StatsStop());
	d_err("start", lib.StatsStart());
	d_err("stop", lib.StatsStop());
}

static void begin(struct d *d, int value)
{
	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR | O_DIRECT);
	d_err("buffer", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("set", lib.SetStatsLevel(value));
	d_err("start", lib.StatsStart());
}

static void counter(const char *step, CUfileOpCounter_t c)
{
	d_say("%s=%llu/%llu", step, (unsigned long long)c.ok, (unsigned long long)c.err);
}

static void io(struct d *d)
{
	lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0);
	lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0);
	lib.Write(d->fh, d_ptr(d, 0), 4 * K, 0, 0);
}

static void counts(struct d *d, long arg)
{
	begin(d, 1);
	io(d);
	d_err("l1", lib.GetStatsL1(&l1));
	counter("read", l1.read_ops);
	counter("write", l1.write_ops);
	d_num("read-bytes", l1.read_bytes);
	d_num("write-bytes", l1.write_bytes);
	d_flag("latency", l1.read_lat_sum_us);
}

static void counts_registrations(struct d *d, long arg)
{
	CUfileHandle_t fh;
	int fd;

	begin(d, 1);
	fh = d->fh;
	fd = open("data", O_RDONLY);
	d_register(d, fd);
	d_register(d, fd);
	d_register(d, -1);
	lib.HandleDeregister(fh);
	lib.BufRegister(d_ptr(d, M), M, 0);
	lib.BufRegister(d_ptr(d, M), M, 0);
	lib.BufDeregister(d_ptr(d, M));
	lib.BufDeregister(d_ptr(d, M));
	d_err("l1", lib.GetStatsL1(&l1));
	counter("handle", l1.hdl_register_ops);
	counter("handle-gone", l1.hdl_deregister_ops);
	counter("buffer", l1.buf_register_ops);
	counter("buffer-gone", l1.buf_deregister_ops);
	close(fd);
}

static void counts_errors(struct d *d, long arg)
{
	begin(d, 1);
	lib.Read(NULL, d_ptr(d, 0), 4 * K, 0, 0);
	lib.Read(NEVER, d_ptr(d, 0), 4 * K, 0, 0);
	lib.Read(d->fh, d_ptr(d, 0), 4 * K, -4096, 0);
	lib.Read(d->fh, d_ptr(d, 0), 2 * M, 0, 0);
	d_err("l1", lib.GetStatsL1(&l1));
	counter("read", l1.read_ops);
	d_num("read-bytes", l1.read_bytes);
}

static void counts_stopped(struct d *d, long arg)
{
	begin(d, 1);
	io(d);
	d_err("stop", lib.StatsStop());
	io(d);
	d_err("l1", lib.GetStatsL1(&l1));
	counter("read", l1.read_ops);
	d_err("start", lib.StatsStart());
	io(d);
	d_err("l1", lib.GetStatsL1(&l1));
	counter("read", l1.read_ops);
	d_err("reset", lib.StatsReset());
	d_err("l1", lib.GetStatsL1(&l1));
	counter("read", l1.read_ops);
}

static void counts_not_started(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR | O_DIRECT);
	d_err("set", lib.SetStatsLevel(1));
	io(d);
	d_err("l1", lib.GetStatsL1(&l1));
	counter("read", l1.read_ops);
}

static void counts_batch(struct d *d, long arg)
{
	CUfileIOParams_t p[4] = { 0 };
	CUfileIOEvents_t ev[4];
	CUfileBatchHandle_t b;
	struct timespec wait = { 5, 0 };
	unsigned int i, nr = 4;

	begin(d, 1);
	for (i = 0; i < 4; i++) {
		p[i].mode = CUFILE_BATCH;
		p[i].fh = d->fh;
		p[i].u.batch.devPtr_base = d_ptr(d, 0);
		p[i].u.batch.file_offset = p[i].u.batch.devPtr_offset = i * 4 * K;
		p[i].u.batch.size = 4 * K;
	}
	lib.BatchIOSetUp(&b, 4);
	lib.BatchIOSubmit(b, 4, p, 0);
	lib.BatchIOGetStatus(b, 4, &nr, ev, &wait);
	lib.BatchIOCancel(b);
	lib.BatchIODestroy(b);
	d_err("l1", lib.GetStatsL1(&l1));
	counter("setup", l1.batch_setup_ops);
	counter("submit", l1.batch_submit_ops);
	counter("complete", l1.batch_complete_ops);
	counter("cancel", l1.batch_cancel_ops);
	counter("destroy", l1.batch_destroy_ops);
	d_num("bytes", l1.batch_read_bytes);
}

static void histogram(struct d *d, long arg)
{
	int i;

	begin(d, 2);
	lib.Read(d->fh, d_ptr(d, 0), 1000, 0, 0);
	lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0);
	lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0);
	lib.Read(d->fh, d_ptr(d, 0), M, 0, 0);
	lib.Write(d->fh, d_ptr(d, 0), 8 * K, 0, 0);
	d_err("l2", lib.GetStatsL2(&l2));
	for (i = 0; i < 32; i++)
		if (l2.read_size_kb_hist[i])
			d_say("r%d=%llu", i, (unsigned long long)l2.read_size_kb_hist[i]);
	for (i = 0; i < 32; i++)
		if (l2.write_size_kb_hist[i])
			d_say("w%d=%llu", i, (unsigned long long)l2.write_size_kb_hist[i]);
}

static void by_gpu(struct d *d, long arg)
{
	const CUfilePerGpuStats_t *g = &l3.per_gpu_stats[0];

	begin(d, 3);
	io(d);
	lib.Read(d->fh, d_ptr(d, 0), 1000, 10, 0);
	lib.Read(d->fh, d_ptr(d, 0), 4 * K, -4096, 0);
	memset(&l3, 0, sizeof(l3));
	d_err("l3", lib.GetStatsL3(&l3));
	d_flag("gpus", l3.num_gpus);
	d_num("reads", g->n_total_reads);
	d_num("posix", g->n_posix_reads);
	d_num("nvfs", g->n_nvfs_reads);
	d_num("unaligned", g->n_unaligned_reads);
	d_num("errors", g->n_reads_err);
	d_num("bytes", g->read_bytes);
	d_num("writes", g->n_total_writes);
	d_num("written", g->writes_bytes);
}

static void by_gpu_buffers(struct d *d, long arg)
{
	const CUfilePerGpuStats_t *g = &l3.per_gpu_stats[0];

	begin(d, 3);
	lib.BufRegister(d_ptr(d, M), M, 0);
	lib.BufRegister(d_ptr(d, 2 * M), 64 * K, 0);
	lib.BufRegister(d_ptr(d, 2 * M), 64 * K, 0);
	lib.BufDeregister(d_ptr(d, M));
	memset(&l3, 0, sizeof(l3));
	d_err("l3", lib.GetStatsL3(&l3));
	d_num("mmap", g->n_mmap);
	d_num("ok", g->n_mmap_ok);
	d_num("err", g->n_mmap_err);
	d_num("free", g->n_mmap_free);
	d_num("bytes", g->reg_bytes);
}

static void configured(struct d *d, long arg)
{
	int level = 99;

	d_file(d, O_RDWR | O_DIRECT);
	d_err("get", lib.GetStatsLevel(&level));
	d_num("level", level);
	io(d);
	memset(&l1, 0, sizeof(l1));
	d_err("l1", lib.GetStatsL1(&l1));
	counter("read", l1.read_ops);
}

static void level_kept(struct d *d, long arg)
{
	int level = 99;

	d_err("open", lib.DriverOpen());
	d_err("set", lib.SetStatsLevel(2));
	d_err("close", lib.DriverClose_v2());
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetStatsLevel(&level));
	d_num("level", level);
}

/* -- BAR1; arg: the GPU's number -- */

static void bar(struct d *d, long arg)
{
	size_t kb = 0;

	d_err("get", lib.GetBARSizeInKB(arg, &kb));
	d_flag("some", kb);
	d_num("uses", lib.UseCount());
}

static void bar_open(struct d *d, long arg)
{
	size_t kb = 0;

	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetBARSizeInKB(arg, &kb));
	d_flag("some", kb);
}

static void bar_null(struct d *d, long arg)
{
	d_err("get", lib.GetBARSizeInKB(0, NULL));
}

#define STATS(n) \
	"{ \"properties\": { \"allow_compat_mode\": true }, \"profile\": { \"cufile_stats\": " n " } }\n"

const struct d_case stats_cases[] = {
	{ "stats-closed", closed },
	{ "stats-level-0", level, 0 },
	{ "stats-level-1", level, 1 },
	{ "stats-level-3", level, 3 },
	{ "stats-level-4", level, 4 },
	{ "stats-level-minus-1", level, -1 },
	{ "stats-level-kept", level_kept },
	{ "stats-null-level", nulls, 0 },
	{ "stats-null-1", nulls, 1 },
	{ "stats-null-2", nulls, 2 },
	{ "stats-null-3", nulls, 3 },
	{ "stats-above-unset", above, -1 },
	{ "stats-above-0", above, 0 },
	{ "stats-above-1", above, 1 },
	{ "stats-above-2", above, 2 },
	{ "stats-above-3", above, 3 },
	{ "stats-order-0", order, 0 },
	{ "stats-order-1", order, 1 },
	{ "stats-counts", counts },
	{ "stats-counts-registrations", counts_registrations },
	{ "stats-counts-errors", counts_errors },
	{ "stats-counts-stopped", counts_stopped },
	{ "stats-counts-not-started", counts_not_started },
	{ "stats-counts-batch", counts_batch },
	{ "stats-histogram", histogram },
	{ "stats-by-gpu", by_gpu },
	{ "stats-by-gpu-buffers", by_gpu_buffers },
	{ "stats-configured-1", configured, 0, STATS("1") },
	{ "stats-configured-3", configured, 0, STATS("3") },
	{ "stats-configured-9", configured, 0, STATS("9") },
	{ "bar-0", bar, 0 },
	{ "bar-0-open", bar_open, 0 },
	{ "bar-99", bar, 99 },
	{ "bar-minus-1", bar, -1 },
	{ "bar-99-open", bar_open, 99 },
	{ "bar-null", bar_null },
	{ NULL }
};
