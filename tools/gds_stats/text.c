// SPDX-License-Identifier: MIT
/*
 * text.c - the layout that scripts parse, and below it, under headings of ours, what the
 * vendor's tool does not have: routes, latencies, files.
 */
#include <inttypes.h>

#include "out.h"
#include "stats_text.h"

/* Of the layout: with the libraries whose structures ours are. */
#define LAYOUT 9

static const char *const op_name[2] = { "Read", "Write" };

static void put_line(void *arg, const char *text)
{
	fprintf(arg, "%s\n", text);
}

static double gib(uint64_t bytes)
{
	return (double)bytes / (1 << 30);
}

static uint64_t mib(uint64_t bytes)
{
	return bytes >> 20;
}

static void put_sizes(FILE *f, const CUfileStatsLevel2_t *l)
{
	char name[32];
	unsigned int i;

	fputs("READ-WRITE SIZE HISTOGRAM :\n", f);
	for (i = 0; i < STATS_BUCKETS; i++)
		fprintf(f, "%s: %" PRIu64 " %" PRIu64 "\n", size_name(i, name),
			(uint64_t)l->read_size_kb_hist[i], (uint64_t)l->write_size_kb_hist[i]);
}

static void put_gpu(FILE *f, unsigned int i, const CUfilePerGpuStats_t *g)
{
	char uuid[40];

	fprintf(f, "GPU %u(UUID: %s)", i, uuid_text(g->uuid, uuid));
	fprintf(f, " Read: bw=%g util(%%)=%" PRIu64 " n=%" PRIu64 " posix=%" PRIu64
		" unalign=%" PRIu64 " dr=%" PRIu64 " r_sparse=%" PRIu64 " r_inline=%" PRIu64
		" err=%" PRIu64 " MiB=%" PRIu64,
		gib(g->read_bw_bytes_per_sec), (uint64_t)g->read_utilization,
		(uint64_t)g->n_total_reads, (uint64_t)g->n_posix_reads,
		(uint64_t)g->n_unaligned_reads, (uint64_t)g->n_dr_reads,
		(uint64_t)g->n_sparse_regions, (uint64_t)g->n_inline_regions,
		(uint64_t)g->n_reads_err, mib(g->read_bytes));
	fprintf(f, " Write: bw=%g util(%%)=%" PRIu64 " n=%" PRIu64 " posix=%" PRIu64
		" unalign=%" PRIu64 " dr=%" PRIu64 " err=%" PRIu64 " MiB=%" PRIu64,
		gib(g->write_bw_bytes_per_sec), (uint64_t)g->write_utilization,
		(uint64_t)g->n_total_writes, (uint64_t)g->n_posix_writes,
		(uint64_t)g->n_unaligned_writes, (uint64_t)g->n_dr_writes,
		(uint64_t)g->n_writes_err, mib(g->writes_bytes));
	fprintf(f, " BufRegister: n=%" PRIu64 " err=%" PRIu64 " free=%" PRIu64 " MiB=%" PRIu64 "\n",
		(uint64_t)g->n_mmap, (uint64_t)g->n_mmap_err, (uint64_t)g->n_mmap_free,
		mib(g->reg_bytes));
}

/* One pool of threads serves all GPUs: it is shown as that of the first. */
static void put_threads(FILE *f, const CUfileStatsLevel1_t *l)
{
	uint64_t in = l->batch_enqueued_ops.ok;
	uint64_t out = l->batch_processed_ops.ok + l->batch_processed_ops.err;

	fputs("PER GPU THREAD POOL STATS:\n", f);
	fprintf(f, "gpu node: 0 enqueues:%" PRIu64 " completes:%" PRIu64
		" pending suspends:0 pending yields:0 active:%" PRIu64 " suspends:0\n",
		in, out, in > out ? in - out : 0);
}

static void put_gpus(FILE *f, const struct snapshot *s)
{
	unsigned int i;

	fputs("PER_GPU STATS:\n", f);
	for (i = 0; i < s->all.num_gpus; i++)
		put_gpu(f, i, &s->all.per_gpu_stats[i]);
	fputs("PER_GPU POOL BUFFER STATS:\n", f);
	for (i = 0; i < s->all.num_gpus; i++) {
		const struct stats_pool *p = &s->staged[i];

		fprintf(f, "GPU : %u pool_size_MiB : %" PRIu64 " usage : %" PRIu64 "/%" PRIu64
			" used_MiB : %" PRIu64 "\n", i, mib(p->slots * p->slot_bytes), p->used,
			p->slots, mib(p->used * p->slot_bytes));
	}
	fputs("PER_GPU POSIX POOL BUFFER STATS:\n", f);
	for (i = 0; i < s->all.num_gpus; i++) {
		const struct stats_pool *p = &s->host[i];

		fprintf(f, "GPU %u", i);
		if (p->slot_bytes)
			fprintf(f, " %" PRIu64 "(KiB) :%" PRIu64 "/%" PRIu64, p->slot_bytes >> 10,
				p->used, p->slots);
		fputs("\n", f);
	}
	/* there is no RDMA here; scripts look for the headings */
	fputs("PER_GPU RDMA STATS:\nRDMA MRSTATS:\npeer name nr_mrs mr_size(MiB)\n", f);
	put_threads(f, &s->all.detailed.basic);
}

/* -- ours -- */

static double average_us(const struct stats_way *w)
{
	return w->n ? (double)w->ns / (double)w->n / 1000 : 0;
}

static void put_way(FILE *f, const struct snapshot *s, const struct stats_way *way, bool routes)
{
	unsigned int op, i;

	for (op = 0; op < 2; op++) {
		const struct stats_way *w = &way[op];

		fprintf(f, " %s: n=%" PRIu64 " err=%" PRIu64 " MiB=%" PRIu64
			" avg(us)=%.1f retried_MiB=%" PRIu64, op_name[op], w->n, w->err,
			mib(w->bytes), average_us(w), mib(w->retried));
		for (i = 0; routes && i < s->routes; i++)
			if (w->route[i])
				fprintf(f, " %s_MiB=%" PRIu64, s->route_name[i], mib(w->route[i]));
	}
	fputs("\n", f);
}

static void put_route_histograms(FILE *f, const struct snapshot *s, unsigned int route)
{
	const struct stats_way *w = s->route[route];
	char name[32];
	unsigned int i;

	if (!w[0].n && !w[1].n)
		return;
	fprintf(f, "OPENGDS ROUTE %s SIZE HISTOGRAM :\n", s->route_name[route]);
	for (i = 0; i < STATS_BUCKETS; i++)
		if (w[0].size[i] || w[1].size[i])
			fprintf(f, "%s: %" PRIu64 " %" PRIu64 "\n", size_name(i, name),
				w[0].size[i], w[1].size[i]);
	fprintf(f, "OPENGDS ROUTE %s LATENCY HISTOGRAM :\n", s->route_name[route]);
	for (i = 0; i < STATS_TIMES; i++)
		if (w[0].time[i] || w[1].time[i])
			fprintf(f, "%s: %" PRIu64 " %" PRIu64 "\n", time_name(i, name),
				w[0].time[i], w[1].time[i]);
}

static void put_files(FILE *f, const struct snapshot *s)
{
	unsigned int i;

	fputs("OPENGDS FILE STATS:\n", f);
	for (i = 0; i < s->files; i++) {
		fputs("FILE ", f);
		put_plain(f, s->file[i].name);
		fprintf(f, " handles=%" PRIu64, s->file[i].users);
		put_way(f, s, s->file[i].way, true);
	}
	if (s->others[0].n || s->others[0].err || s->others[1].n || s->others[1].err) {
		fputs("FILES (all others)", f);
		put_way(f, s, s->others, true);
	}
}

void out_text(FILE *f, const struct snapshot *s, int level)
{
	unsigned int i;

	fprintf(f, "cuFile STATS VERSION : %d\n", LAYOUT);
	stats_text_global(&s->all.detailed.basic, put_line, f);
	if (level >= 2)
		put_sizes(f, &s->all.detailed);
	if (level >= 3)
		put_gpus(f, s);
	fputs("OPENGDS ROUTE STATS:\n", f);
	for (i = 0; i < s->routes; i++) {
		fprintf(f, "ROUTE %s", s->route_name[i]);
		put_way(f, s, s->route[i], false);
	}
	for (i = 0; level >= 2 && i < s->routes; i++)
		put_route_histograms(f, s, i);
	if (level < 3)
		return;
	fputs("OPENGDS PER_GPU ROUTE STATS:\n", f);
	for (i = 0; i < s->all.num_gpus; i++) {
		fprintf(f, "GPU %u", i);
		put_way(f, s, s->gpu[i], true);
	}
	put_files(f, s);
}
