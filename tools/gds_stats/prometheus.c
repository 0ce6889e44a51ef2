// SPDX-License-Identifier: MIT
/*
 * prometheus.c - the text exposition format: all samples of a metric together, below its HELP and
 * TYPE; base units; counters end in _total. By file there are no histograms: too many series.
 */
#include <inttypes.h>
#include <stddef.h>

#include "out.h"

struct out {
	FILE *f;
	const struct snapshot *const *s;
	unsigned int n;
};

static const char *const op_name[2] = { "read", "write" };

static void begin(const struct out *o, const char *name, const char *type, const char *help)
{
	fprintf(o->f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* "NAME{pid="1",command="x"": what every sample begins with */
static void put_start(const struct out *o, const struct snapshot *s, const char *name)
{
	fprintf(o->f, "%s{pid=\"%d\",command=\"", name, s->pid);
	put_label(o->f, s->command);
	fputs("\"", o->f);
}

static void put_pair(const struct out *o, const char *label, const char *value)
{
	fprintf(o->f, ",%s=\"", label);
	put_label(o->f, value);
	fputs("\"", o->f);
}

/* -- of a process -- */

static void put_info(const struct out *o)
{
	unsigned int i;

	begin(o, "opengds_statistics_level", "gauge", "Level of statistics of the process, 1 to 3.");
	for (i = 0; i < o->n; i++) {
		put_start(o, o->s[i], "opengds_statistics_level");
		fprintf(o->f, "} %d\n", o->s[i]->level);
	}
	begin(o, "opengds_collecting", "gauge", "1 while statistics are collected, else 0.");
	for (i = 0; i < o->n; i++) {
		put_start(o, o->s[i], "opengds_collecting");
		fprintf(o->f, "} %d\n", o->s[i]->running);
	}
}

static void put_operations(const struct out *o)
{
	static const char name[] = "opengds_operations_total";
	const CUfileOpCounter_t *c;
	unsigned int i, j, k;

	begin(o, name, "counter", "Calls of the cuFile API, and entries of batches.");
	for (i = 0; i < o->n; i++) {
		for (j = 0; j < OPERATIONS; j++) {
			if (!operations[j].label)
				continue;
			c = operation_count(&operations[j], &o->s[i]->all.detailed.basic);
			for (k = 0; k < 2; k++) {
				put_start(o, o->s[i], name);
				put_pair(o, "operation", operations[j].label);
				put_pair(o, "result", k ? "error" : "ok");
				fprintf(o->f, "} %" PRIu64 "\n", (uint64_t)(k ? c->err : c->ok));
			}
		}
	}
}

/* -- of rows: by route, GPU, file -- */

/* Which rows there are of a process: how many, their label, its value and their numbers. */
struct kind {
	const char *prefix, *label, *what;
	unsigned int (*count)(const struct snapshot *s);
	const char *(*value)(const struct snapshot *s, unsigned int i, char out[16]);
	const struct stats_way *(*way)(const struct snapshot *s, unsigned int i);
};

static unsigned int count_routes(const struct snapshot *s)
{
	return s->routes;
}

static const char *route_value(const struct snapshot *s, unsigned int i, char out[16])
{
	return s->route_name[i];
}

static const struct stats_way *route_way(const struct snapshot *s, unsigned int i)
{
	return s->route[i];
}

static unsigned int count_gpus(const struct snapshot *s)
{
	return s->level >= 3 ? s->all.num_gpus : 0;
}

static const char *gpu_value(const struct snapshot *s, unsigned int i, char out[16])
{
	snprintf(out, 16, "%u", i);
	return out;
}

static const struct stats_way *gpu_way(const struct snapshot *s, unsigned int i)
{
	return s->gpu[i];
}

/* The last one is of all others. */
static unsigned int count_files(const struct snapshot *s)
{
	return s->level >= 3 ? s->files + 1 : 0;
}

static const char *file_value(const struct snapshot *s, unsigned int i, char out[16])
{
	return i < s->files ? s->file[i].name : "";
}

static const struct stats_way *file_way(const struct snapshot *s, unsigned int i)
{
	return i < s->files ? s->file[i].way : s->others;
}

static const struct kind by_route = { "opengds_route", "route", "by route", count_routes,
				      route_value, route_way };
static const struct kind by_gpu = { "opengds_gpu", "gpu", "by GPU", count_gpus, gpu_value,
				    gpu_way };
static const struct kind by_file = { "opengds_file", "file", "by file (no name: all others)",
				     count_files, file_value, file_way };

static void put_row_start(const struct out *o, const struct kind *k, const struct snapshot *s,
			  unsigned int row, unsigned int op, const char *name)
{
	char number[16];

	put_start(o, s, name);
	put_pair(o, k->label, k->value(s, row, number));
	put_pair(o, "op", op_name[op]);
}

/* One number of each row: the word of that index in struct stats_way. */
static void put_counter(const struct out *o, const struct kind *k, const char *suffix, size_t word,
			const char *help)
{
	char name[64], text[160];
	unsigned int i, j, op;

	snprintf(name, sizeof(name), "%s_%s", k->prefix, suffix);
	snprintf(text, sizeof(text), "%s, %s.", help, k->what);
	begin(o, name, "counter", text);
	for (i = 0; i < o->n; i++) {
		for (j = 0; j < k->count(o->s[i]); j++) {
			for (op = 0; op < 2; op++) {
				put_row_start(o, k, o->s[i], j, op, name);
				fprintf(o->f, "} %" PRIu64 "\n",
					((const uint64_t *)&k->way(o->s[i], j)[op])[word]);
			}
		}
	}
}

/*
 * bound(i): the upper end of row i. What was counted at level 1 has no row: it is in +Inf alone,
 * so that _count is right.
 */
static void put_histogram_of(const struct out *o, const struct kind *k, const struct snapshot *s,
			     unsigned int row, unsigned int op, const char *name,
			     const uint64_t *rows, unsigned int n, double (*bound)(unsigned int i),
			     double sum)
{
	const struct stats_way *w = &k->way(s, row)[op];
	uint64_t below = 0, count;
	char bucket[80];
	unsigned int i;

	snprintf(bucket, sizeof(bucket), "%s_bucket", name);
	for (i = 0; i < n - 1; i++) {
		below += rows[i];
		put_row_start(o, k, s, row, op, bucket);
		fprintf(o->f, ",le=\"%.9g\"} %" PRIu64 "\n", bound(i), below);
	}
	count = below + rows[n - 1];
	count = count > w->n ? count : w->n;
	put_row_start(o, k, s, row, op, bucket);
	fprintf(o->f, ",le=\"+Inf\"} %" PRIu64 "\n", count);
	snprintf(bucket, sizeof(bucket), "%s_sum", name);
	put_row_start(o, k, s, row, op, bucket);
	fprintf(o->f, "} %.9g\n", sum);
	snprintf(bucket, sizeof(bucket), "%s_count", name);
	put_row_start(o, k, s, row, op, bucket);
	fprintf(o->f, "} %" PRIu64 "\n", count);
}

static double size_bound(unsigned int i)
{
	/* a row ends before the lower end of the next */
	return (double)((uint64_t)4096 << i) - 1;
}

static double time_bound(unsigned int i)
{
	return (double)((uint64_t)1 << i) / 1e6;
}

static void put_histograms(const struct out *o, const struct kind *k)
{
	char name[64], text[160];
	unsigned int i, j, op;

	snprintf(name, sizeof(name), "%s_request_seconds", k->prefix);
	snprintf(text, sizeof(text), "Time of requests that succeeded, %s.", k->what);
	begin(o, name, "histogram", text);
	for (i = 0; i < o->n; i++) {
		for (j = 0; j < k->count(o->s[i]); j++) {
			for (op = 0; op < 2; op++) {
				const struct stats_way *w = &k->way(o->s[i], j)[op];

				put_histogram_of(o, k, o->s[i], j, op, name, w->time, STATS_TIMES,
						 time_bound, (double)w->ns / 1e9);
			}
		}
	}
	snprintf(name, sizeof(name), "%s_request_bytes", k->prefix);
	snprintf(text, sizeof(text), "Bytes of requests that succeeded, %s.", k->what);
	begin(o, name, "histogram", text);
	for (i = 0; i < o->n; i++) {
		for (j = 0; j < k->count(o->s[i]); j++) {
			for (op = 0; op < 2; op++) {
				const struct stats_way *w = &k->way(o->s[i], j)[op];

				put_histogram_of(o, k, o->s[i], j, op, name, w->size,
						 STATS_BUCKETS, size_bound, (double)w->bytes);
			}
		}
	}
}

#define WORD(member) (offsetof(struct stats_way, member) / sizeof(uint64_t))

static void put_kind(const struct out *o, const struct kind *k)
{
	put_counter(o, k, "bytes_total", WORD(bytes), "Bytes moved");
	put_counter(o, k, "requests_total", WORD(n), "Requests that moved bytes");
	put_counter(o, k, "errors_total", WORD(err), "Requests of which a part or all failed");
	put_counter(o, k, "retried_bytes_total", WORD(retried),
		    "Bytes that failed on a direct route and went another way");
}

static void put_pools(const struct out *o)
{
	static const char *const pool[2] = { "staged", "host" };
	static const struct {
		const char *name, *type, *help;
		size_t word;
	} what[] = {
		{ "opengds_pool_slots", "gauge", "Slots of the pool.",
		  offsetof(struct stats_pool, slots) },
		{ "opengds_pool_slots_used", "gauge", "Slots that are used now.",
		  offsetof(struct stats_pool, used) },
		{ "opengds_pool_slot_bytes", "gauge", "Bytes of a slot.",
		  offsetof(struct stats_pool, slot_bytes) },
		{ "opengds_pool_waits_total", "counter", "Requests that found no slot and waited.",
		  offsetof(struct stats_pool, waits) },
	};
	unsigned int i, j, g, p;

	for (j = 0; j < sizeof(what) / sizeof(what[0]); j++) {
		begin(o, what[j].name, what[j].type, what[j].help);
		for (i = 0; i < o->n; i++) {
			for (g = 0; g < 2 * o->s[i]->all.num_gpus; g++) {
				const struct snapshot *s = o->s[i];
				const struct stats_pool *of = g % 2 ? &s->host[g / 2] :
								      &s->staged[g / 2];
				char number[16];

				p = g % 2;
				snprintf(number, sizeof(number), "%u", g / 2);
				put_start(o, s, what[j].name);
				put_pair(o, "gpu", number);
				put_pair(o, "pool", pool[p]);
				fprintf(o->f, "} %" PRIu64 "\n",
					((const uint64_t *)of)[what[j].word / sizeof(uint64_t)]);
			}
		}
	}
}

void out_prometheus(FILE *f, const struct snapshot *const *s, unsigned int n)
{
	const struct out o = { f, s, n };

	put_info(&o);
	put_operations(&o);
	put_kind(&o, &by_route);
	put_histograms(&o, &by_route);
	put_kind(&o, &by_gpu);
	put_histograms(&o, &by_gpu);
	put_kind(&o, &by_file);
	put_pools(&o);
}
