// SPDX-License-Identifier: MIT
/* json.c - snapshots as one JSON document. Its members are described in docs/gds_stats.md. */
#include <inttypes.h>

#include "out.h"

static void put_member(FILE *f, const char *name, uint64_t value, const char *after)
{
	fprintf(f, "\"%s\": %" PRIu64 "%s", name, value, after);
}

static void put_numbers(FILE *f, const char *name, const uint64_t *v, unsigned int n)
{
	unsigned int i;

	fprintf(f, "\"%s\": [", name);
	for (i = 0; i < n; i++)
		fprintf(f, "%s%" PRIu64, i ? ", " : "", v[i]);
	fputs("]", f);
}

static void put_way(FILE *f, const struct snapshot *s, const struct stats_way *w, bool routes)
{
	unsigned int i, n = 0;

	fputs("{", f);
	put_member(f, "requests", w->n, ", ");
	put_member(f, "errors", w->err, ", ");
	put_member(f, "bytes", w->bytes, ", ");
	put_member(f, "ns", w->ns, ", ");
	put_member(f, "retried_bytes", w->retried, ", ");
	if (routes) {
		fputs("\"route_bytes\": {", f);
		for (i = 0; i < s->routes; i++) {
			if (!w->route[i])
				continue;
			fputs(n++ ? ", \"" : "\"", f);
			put_json(f, s->route_name[i]);
			fprintf(f, "\": %" PRIu64, w->route[i]);
		}
		fputs("}, ", f);
	}
	put_numbers(f, "sizes", w->size, STATS_BUCKETS);
	fputs(", ", f);
	put_numbers(f, "times", w->time, STATS_TIMES);
	fputs("}", f);
}

static void put_both(FILE *f, const struct snapshot *s, const struct stats_way *way, bool routes)
{
	fputs("\"read\": ", f);
	put_way(f, s, &way[0], routes);
	fputs(",\n\t\t\t \"write\": ", f);
	put_way(f, s, &way[1], routes);
}

static void put_pool(FILE *f, const char *name, const struct stats_pool *p)
{
	fprintf(f, ",\n\t\t\t \"%s\": {", name);
	put_member(f, "slot_bytes", p->slot_bytes, ", ");
	put_member(f, "slots", p->slots, ", ");
	put_member(f, "used", p->used, ", ");
	put_member(f, "most", p->most, ", ");
	put_member(f, "waits", p->waits, "}");
}

static void put_operations(FILE *f, const CUfileStatsLevel1_t *l)
{
	const CUfileOpCounter_t *c;
	unsigned int i;

	fputs("\t\t \"operations\": {", f);
	for (i = 0; i < OPERATIONS; i++) {
		c = operation_count(&operations[i], l);
		fprintf(f, "%s\n\t\t\t\"%s\": {\"ok\": %" PRIu64 ", \"errors\": %" PRIu64 "}",
			i ? "," : "", operations[i].name, (uint64_t)c->ok, (uint64_t)c->err);
	}
	fputs("\n\t\t },\n", f);
}

static void put_totals(FILE *f, const CUfileStatsLevel1_t *l)
{
	fputs("\t\t \"requests\": {", f);
	put_member(f, "read_bytes", l->read_bytes, ", ");
	put_member(f, "write_bytes", l->write_bytes, ", ");
	put_member(f, "read_us", l->read_lat_sum_us, ", ");
	put_member(f, "write_us", l->write_lat_sum_us, "},\n");
	fputs("\t\t \"batches\": {", f);
	put_member(f, "read_bytes", l->batch_read_bytes, ", ");
	put_member(f, "write_bytes", l->batch_write_bytes, ", ");
	put_member(f, "submit_us", l->batch_submit_lat_sum_us, ", ");
	put_member(f, "completion_us", l->batch_completion_lat_sum_us, "},\n");
}

static void put_gpu(FILE *f, const struct snapshot *s, unsigned int i)
{
	const CUfilePerGpuStats_t *g = &s->all.per_gpu_stats[i];
	char uuid[40];

	fprintf(f, "\t\t\t{\"index\": %u, \"uuid\": \"%s\", ", i, uuid_text(g->uuid, uuid));
	put_member(f, "registrations", g->n_mmap_ok, ", ");
	put_member(f, "registration_errors", g->n_mmap_err, ", ");
	put_member(f, "deregistrations", g->n_mmap_free, ", ");
	put_member(f, "registered_bytes", g->reg_bytes, ",\n\t\t\t ");
	put_both(f, s, s->gpu[i], true);
	put_pool(f, "staged", &s->staged[i]);
	put_pool(f, "host_slots", &s->host[i]);
	fputs("}", f);
}

static void put_process(FILE *f, const struct snapshot *s)
{
	unsigned int i;

	fprintf(f, "\t\t{\"pid\": %d, \"command\": \"", s->pid);
	put_json(f, s->command);
	fprintf(f, "\", \"level\": %d, \"collecting\": %s, \"ns\": %" PRIu64 ",\n", s->level,
		s->running ? "true" : "false", s->ns);
	put_operations(f, &s->all.detailed.basic);
	put_totals(f, &s->all.detailed.basic);
	fputs("\t\t \"routes\": [", f);
	for (i = 0; i < s->routes; i++) {
		fprintf(f, "%s\n\t\t\t{\"name\": \"", i ? "," : "");
		put_json(f, s->route_name[i]);
		fputs("\", ", f);
		put_both(f, s, s->route[i], false);
		fputs("}", f);
	}
	fputs("\n\t\t ],\n\t\t \"gpus\": [", f);
	for (i = 0; i < s->all.num_gpus; i++) {
		fputs(i ? ",\n" : "\n", f);
		put_gpu(f, s, i);
	}
	fputs("\n\t\t ],\n\t\t \"files\": [", f);
	for (i = 0; i < s->files; i++) {
		fprintf(f, "%s\n\t\t\t{\"name\": \"", i ? "," : "");
		put_json(f, s->file[i].name);
		fprintf(f, "\", \"handles\": %" PRIu64 ",\n\t\t\t ", s->file[i].users);
		put_both(f, s, s->file[i].way, true);
		fputs("}", f);
	}
	fputs("\n\t\t ],\n\t\t \"other_files\": {", f);
	put_both(f, s, s->others, true);
	fputs("}}", f);
}

void out_json(FILE *f, const struct snapshot *const *s, unsigned int n)
{
	unsigned int i;

	fputs("{\n\t\"version\": 1,\n\t\"processes\": [", f);
	for (i = 0; i < n; i++) {
		fputs(i ? ",\n" : "\n", f);
		put_process(f, s[i]);
	}
	fputs("\n\t]\n}\n", f);
}
