// SPDX-License-Identifier: MIT
/* report.c - the result line that scripts read, and which way the bytes went. */
#include <inttypes.h>

#include "report.h"

#define BLOCK 4096
#define GIB (1024.0 * 1024 * 1024)

const struct gdsio_part gdsio_parts[GDSIO_PARTS] = {
	{ "p50", 50000 }, { "p90", 90000 }, { "p99", 99000 }, { "p99.9", 99900 }, { "max", 100000 },
};

static void note_reason(struct gdsio_tally *t, uint32_t reason)
{
	const uint32_t last = GDSIO_REASON_WORDS * 64 - 1;

	if (reason > last)
		reason = last;
	t->reason[reason / 64] |= 1ULL << reason % 64;
}

void gdsio_tally_io(struct gdsio_tally *t, const struct ogds_report *io)
{
	unsigned int i;

	for (i = 0; i < OGDS_ROUTES; i++)
		t->route[i] += io->bytes[i];
	t->whole += io->whole_bytes;
	t->direct += io->whole_direct;
	t->edge += io->edge_bytes;
	t->retried += io->retried;
	t->witnessed += io->witnessed;
	if (io->whole_direct < io->whole_bytes)
		note_reason(t, io->reason);
}

void gdsio_tally_plain(struct gdsio_tally *t, enum ogds_route route, uint64_t off, uint64_t len)
{
	uint64_t first = (off + BLOCK - 1) / BLOCK, last = (off + len) / BLOCK;
	uint64_t whole = last > first ? (last - first) * BLOCK : 0;

	t->route[route] += len;
	t->whole += whole;
	t->edge += len - whole;
}

void gdsio_tally_add(struct gdsio_tally *sum, const struct gdsio_tally *t)
{
	unsigned int i;

	sum->bytes += t->bytes;
	sum->written += t->written;
	sum->checked += t->checked;
	sum->ops += t->ops;
	sum->ns += t->ns;
	for (i = 0; i < OGDS_ROUTES; i++)
		sum->route[i] += t->route[i];
	sum->whole += t->whole;
	sum->direct += t->direct;
	sum->edge += t->edge;
	sum->retried += t->retried;
	sum->witnessed += t->witnessed;
	for (i = 0; i < GDSIO_REASON_WORDS; i++)
		sum->reason[i] |= t->reason[i];
	gdsio_hist_add(&sum->hist, &t->hist);
}

bool gdsio_fell_back(const struct gdsio_result *r)
{
	return gdsio_by_cufile(r->xfer) && !r->host_memory && r->tally.direct < r->tally.whole;
}

uint64_t gdsio_unattributed(const struct gdsio_tally *t)
{
	uint64_t known = 0;
	unsigned int i;

	for (i = 0; i < OGDS_ROUTES; i++)
		known += t->route[i];
	return known < t->bytes ? t->bytes - known : 0;
}

double gdsio_rate(const struct gdsio_result *r, uint64_t bytes)
{
	return r->seconds > 0 ? bytes / GIB / r->seconds : 0.0;
}

double gdsio_cpu_per_gib(const struct gdsio_result *r)
{
	return r->tally.bytes ? r->cpu_seconds * GIB / r->tally.bytes : 0.0;
}

const char *gdsio_checksum(const struct gdsio_result *r)
{
	if (r->compared)
		return r->tally.bytes && r->tally.checked == r->tally.bytes ? "verified" :
									      "not_checked";
	return r->stamped ? "stamped" : "not_checked";
}

/* Bytes in KiB: a whole number wherever it is one, for the scripts. */
static const char *kib(uint64_t bytes, char text[32])
{
	if (bytes % 1024)
		snprintf(text, 32, "%.3f", bytes / 1024.0);
	else
		snprintf(text, 32, "%" PRIu64, bytes / 1024);
	return text;
}

static void print_line(FILE *f, const struct gdsio_result *r)
{
	const struct gdsio_tally *t = &r->tally;
	char done[32], all[32], size[3][32];

	fprintf(f, "IoType: %s XferType: %s Threads: %u ", gdsio_rw_name(r->rw),
		gdsio_xfer_name(r->xfer), r->threads);
	if (gdsio_has_depth(r->xfer))
		fprintf(f, "IoDepth: %u ", r->depth);
	fprintf(f, "DataSetSize: %s/%s(KiB) ", kib(t->bytes, done), kib(r->requested, all));
	if (r->io.step)
		fprintf(f, "IOSize: %s-%s-%s(KiB) ", kib(r->io.min, size[0]),
			kib(r->io.max, size[1]), kib(r->io.step, size[2]));
	else
		fprintf(f, "IOSize: %s(KiB) ", kib(r->io.min, size[0]));
	fprintf(f, "Throughput: %.6f GiB/sec, Avg_Latency: %.6f usecs ops: %" PRIu64
		" total_time %.6f secs\n", gdsio_rate(r, t->bytes),
		t->ops ? t->ns / 1000.0 / t->ops : 0.0, t->ops, r->seconds);
}

void gdsio_print_routes(FILE *f, const struct gdsio_tally *t)
{
	/* these stand in every report; the others where they moved something */
	const unsigned int always = 1u << OGDS_ROUTE_NVFS | 1u << OGDS_ROUTE_STAGED |
				    1u << OGDS_ROUTE_BOUNCE | 1u << OGDS_ROUTE_HOST;
	unsigned int i;

	fputs("Routes:", f);
	for (i = 0; i < OGDS_ROUTES; i++) {
		if (!t->route[i] && !(always & 1u << i))
			continue;
		fprintf(f, " %s: %" PRIu64 " (%.2f%%)", ogds_route_name(i), t->route[i],
			t->bytes ? 100.0 * t->route[i] / t->bytes : 0.0);
	}
	fprintf(f, " whole_blocks: %" PRIu64 " direct: %" PRIu64 " edge: %" PRIu64
		" retried: %" PRIu64 " witnessed: %" PRIu64 "\n", t->whole, t->direct, t->edge,
		t->retried, t->witnessed);
}

/* One rate says nothing of two ways: each has the share that it moved in the same time. */
static void print_shares(FILE *f, const struct gdsio_result *r)
{
	unsigned int i, ways = 0;

	for (i = 0; i < OGDS_ROUTES; i++)
		ways += r->tally.route[i] != 0;
	if (ways < 2)
		return;
	fputs("Shares:", f);
	for (i = 0; i < OGDS_ROUTES; i++) {
		if (r->tally.route[i])
			fprintf(f, " %s: %.6f GiB/sec", ogds_route_name(i),
				gdsio_rate(r, r->tally.route[i]));
	}
	fputc('\n', f);
}

static void print_state(FILE *f, const struct gdsio_result *r)
{
	const struct gdsio_tally *t = &r->tally;
	unsigned int i;

	fputs("Latency:", f);
	for (i = 0; i < GDSIO_PARTS; i++)
		fprintf(f, " %s: %.3f", gdsio_parts[i].name,
			gdsio_hist_part(&t->hist, gdsio_parts[i].part) / 1000.0);
	fprintf(f, " usecs\nState: queue_depth: %u checksum: %s compared: %" PRIu64
		" cpu: %.6f s/GiB", r->threads * r->depth, gdsio_checksum(r), t->checked,
		gdsio_cpu_per_gib(r));
	if (r->mix)
		fprintf(f, " mix: %u read: %" PRIu64 " written: %" PRIu64, r->mix,
			t->bytes - t->written, t->written);
	fputc('\n', f);
}

static void print_reasons(FILE *f, const struct gdsio_tally *t)
{
	unsigned int i;

	for (i = 0; i < GDSIO_REASON_WORDS * 64; i++) {
		if (t->reason[i / 64] & 1ULL << i % 64)
			fprintf(f, "Reason: %s: %s; %s\n", ogds_reason_id(i), ogds_reason_text(i),
				ogds_reason_remedy(i));
	}
}

void gdsio_report(FILE *f, const struct gdsio_result *r)
{
	print_line(f, r);
	gdsio_print_routes(f, &r->tally);
	if (gdsio_fell_back(r))
		print_reasons(f, &r->tally);
	print_shares(f, r);
	print_state(f, r);
	fflush(f);
}
