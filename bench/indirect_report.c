// SPDX-License-Identifier: MIT
/* indirect_report.c - the table, for people. */
#include <string.h>

#include "indirect.h"

struct table {
	const struct side_run *run;
	const struct side_cell *cell;
	unsigned int cells;
};

/* Bytes between host and GPU memory, by calls of this size from so many threads. */
static double copy_rate(const struct table *t, const struct side_cell *like)
{
	const struct side_cell *c;

	for (c = t->cell; t->run->copy && c < t->cell + t->cells; c++)
		if (!((c->o.flags ^ like->o.flags) & SIDE_WRITE) && c->o.size == like->o.size &&
		    c->o.threads == like->o.threads && c->rounds[t->run->copy])
			return side_rate(c, t->run->copy);
	return 0;
}

static double engine(const struct table *t, uint32_t write)
{
	const struct side_cell *c;
	double best = 0, v;

	for (c = t->cell; t->run->copy && c < t->cell + t->cells; c++) {
		if ((c->o.flags & SIDE_WRITE) != write)
			continue;
		v = side_rate(c, t->run->copy);
		best = v > best ? v : best;
	}
	return best;
}

/* The file into host memory, by any number of threads that was measured. */
static double best_raw(const struct table *t, const struct side_cell *like, unsigned int *threads)
{
	const struct side_cell *c;
	double best = 0, v;

	for (c = t->cell; c < t->cell + t->cells; c++) {
		if ((c->o.flags ^ like->o.flags) & (SIDE_WRITE | SIDE_DIRECT) ||
		    c->o.size != like->o.size)
			continue;
		v = side_rate(c, t->run->raw);
		if (v > best) {
			best = v;
			*threads = c->o.threads;
		}
	}
	return best;
}

struct indirect_limit indirect_limit(const struct side_run *run, const struct side_cell *cell,
				     unsigned int cells, const struct side_cell *c)
{
	const struct table t = { run, cell, cells };
	struct indirect_limit file, gpu = { 0, "copy engine" };
	const struct indirect_limit store = { run->store ? side_rate(c, run->store) : 0, "stores" };
	bool split = c->o.size >= SIDE_SPLIT;
	unsigned int i, n;

	file.gib_s = split ? best_raw(&t, c, &n) : side_rate(c, run->raw);
	file.name = c->o.flags & SIDE_DIRECT ? "drive" : "page cache";
	gpu.gib_s = split ? engine(&t, c->o.flags & SIDE_WRITE) : copy_rate(&t, c);
	for (i = 0; i < run->limits && !(c->o.flags & SIDE_WRITE); i++) {
		if (run->limit[i].gib_s <= gpu.gib_s)
			continue;
		gpu.gib_s = run->limit[i].gib_s;
		gpu.name = run->limit[i].name;
	}
	if (gpu.gib_s && (!file.gib_s || gpu.gib_s < file.gib_s))
		file = gpu;
	/* that is a way from the file to the GPU whole, where it is the quicker one */
	return store.gib_s > file.gib_s ? store : file;
}

static void head(FILE *f, const struct table *t)
{
	const struct side_run *r = t->run;
	unsigned int i;

	fprintf(f, "\n%-8s %-5s %5s %4s |", "file", "", "size", "thr");
	for (i = 0; i < r->libs; i++)
		fprintf(f, " %8.8s", r->s[i].name);
	fprintf(f, " %8s | %8s %8s %8s %8s |", "us/call", "raw", "best raw", "copy", "store");
	if (!r->no_compare) {
		for (i = 1; i < r->libs; i++)
			fprintf(f, " :%-7.7s", r->s[i].name);
		fprintf(f, " %6s %6s %-14s |", ":raw", ":limit", "which is");
	}
	fputs(" CPU s/GiB:", f);
	for (i = 0; i < r->libs; i++)
		fprintf(f, " %7.7s", r->s[i].name);
	fprintf(f, " %7s", "raw");
	fputc('\n', f);
}

static void number(FILE *f, int width, double v)
{
	if (v > 0)
		fprintf(f, " %*.2f", width, v);
	else
		fprintf(f, " %*s", width, "-");
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static void row(FILE *f, const struct table *t, const struct side_cell *c)
{
	struct indirect_limit limit = indirect_limit(t->run, t->cell, t->cells, c);
	const struct side_run *r = t->run;
	double ours = side_rate(c, 0), raw = side_rate(c, r->raw);
	unsigned int i, threads = 0;
	char size[16];

	fprintf(f, "%-8s %-5s %5s %4u |", c->kind, c->o.flags & SIDE_WRITE ? "write" : "read",
		side_size_text(c->o.size, size), c->o.threads);
	for (i = 0; i < r->libs; i++) {
		if (c->failed[i])
			fprintf(f, " %8s", "FAILED");
		else
			number(f, 8, side_rate(c, i));
	}
	number(f, 8, ours > 0 ? c->o.threads * (c->o.size / SIDE_GIB) / ours * 1e6 : 0);
	fputs(" |", f);
	number(f, 8, raw);
	if (c->o.size >= SIDE_SPLIT || c->o.flags & SIDE_DIRECT)
		number(f, 8, best_raw(t, c, &threads));
	else
		fprintf(f, " %8s", "");
	number(f, 8, copy_rate(t, c));
	number(f, 8, r->store ? side_rate(c, r->store) : 0);
	fputs(" |", f);
	if (!r->no_compare) {
		for (i = 1; i < r->libs; i++)
			number(f, 8, ratio(ours, side_rate(c, i)));
		number(f, 6, ratio(ours, raw));
		number(f, 6, ratio(ours, limit.gib_s));
		fprintf(f, " %-14.14s |", limit.gib_s > 0 ? limit.name : "");
	}
	fprintf(f, " %10s", "");
	for (i = 0; i < r->libs; i++)
		number(f, 7, side_cpu_gib(c, i));
	number(f, 7, side_cpu_gib(c, r->raw));
	fputc('\n', f);
}

void indirect_report(FILE *f, const struct side_run *run, const struct side_cell *cell,
		     unsigned int cells)
{
	const struct table t = { run, cell, cells };
	struct side_cell like = { .o = { .size = 4096, .threads = 1 } };
	uint32_t last = ~0u;
	unsigned int i, op;
	double v;

	head(f, &t);
	for (i = 0; i < cells; i++) {
		if (cell[i].hidden)
			continue;
		if (last != (cell[i].o.flags & (SIDE_WRITE | SIDE_DIRECT)) && last != ~0u)
			fputc('\n', f);
		last = cell[i].o.flags & (SIDE_WRITE | SIDE_DIRECT);
		row(f, &t, &cell[i]);
	}
	fprintf(f, "\nGiB/s, medians of %d rounds of %.0f ms; buffers %s\n", run->rounds,
		run->seconds * 1000, run->unregistered ? "not registered" : "registered");
	for (op = 0; op < 2; op++) {
		like.o.flags = op ? SIDE_WRITE : 0;
		v = copy_rate(&t, &like);
		if (!v)
			continue;
		fprintf(f, "copy engine, %s the GPU: %.2f GiB/s; one call of 4 KiB: %.2f us\n",
			op ? "from" : "to", engine(&t, like.o.flags), 4096 / SIDE_GIB / v * 1e6);
	}
	for (i = 0; i < run->limits; i++)
		fprintf(f, "%s: %.2f GiB/s (%s)\n", run->limit[i].name, run->limit[i].gib_s,
			run->limit[i].command);
	if (run->failed)
		fprintf(f, "%u FAILED: see above\n", run->failed);
	else
		fputs("every byte of the last rounds was compared\n", f);
}
