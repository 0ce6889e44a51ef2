// SPDX-License-Identifier: MIT
/* snapshot.c - from the shared memory of a process that goes on counting. */
#include <string.h>

#include "snapshot.h"

#define ROW_WORDS (sizeof(struct stats_row) / sizeof(uint64_t))
#define WAY_WORDS (sizeof(struct stats_way) / sizeof(uint64_t))

static void add_way(struct stats_way *to, const struct stats_way *from)
{
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;
	size_t i;

	for (i = 0; i < WAY_WORDS; i++)
		t[i] += f[i];
}

/* A row of all shards together; `first`: its place in the rows of the first shard. */
static void sum_row(const struct stats_area *a, const struct stats_row *first,
		    struct stats_way out[2], unsigned int *tries)
{
	size_t offset = (const char *)first - (const char *)&a->rows[0], i;
	struct stats_row row;

	memset(out, 0, 2 * sizeof(out[0]));
	for (i = 0; i < STATS_SHARDS; i++) {
		const char *at = (const char *)&a->rows[i] + offset;

		stats_words((const uint64_t *)at, (uint64_t *)&row, ROW_WORDS, tries);
		add_way(&out[0], &row.way[0]);
		add_way(&out[1], &row.way[1]);
	}
}

/* False: the row is nobody's. */
static bool take_file(const struct stats_area *a, unsigned int i, struct snap_file *f,
		      unsigned int *tries)
{
	const uint64_t *words = (const uint64_t *)&a->file[i];
	struct stats_file e;

	do {
		stats_words(words, (uint64_t *)&e, sizeof(e) / sizeof(*words), tries);
		sum_row(a, &a->rows[0].file[i], f->way, tries);
		/* meanwhile another file may have got it */
	} while (__atomic_load_n(words, __ATOMIC_ACQUIRE) != e.seq && *tries && (*tries)--);
	memcpy(f->name, e.name, sizeof(f->name));
	f->name[sizeof(f->name) - 1] = '\0';
	f->users = e.users;
	return f->name[0];
}

static void take_pools(const struct stats_pool *from, struct stats_pool *to, unsigned int *tries)
{
	unsigned int i;

	for (i = 0; i < STATS_GPUS; i++)
		stats_words((const uint64_t *)&from[i], (uint64_t *)&to[i],
			    sizeof(*to) / sizeof(uint64_t), tries);
}

void snapshot_take(const struct stats_area *a, uint64_t now_ns, struct snapshot *out)
{
	unsigned int i, tries = STATS_TRIES;
	uint64_t level = __atomic_load_n(&a->level, __ATOMIC_RELAXED), routes = a->routes;

	out->taken_ns = now_ns;
	out->level = level > 3 ? 3 : (int)level;
	out->running = __atomic_load_n(&a->since_ns, __ATOMIC_RELAXED);
	out->ns = stats_area_ns(a, now_ns, &tries);
	stats_area_read(a, now_ns, &out->all);
	out->routes = routes > STATS_ROUTES ? STATS_ROUTES : (unsigned int)routes;
	memcpy(out->route_name, a->route_name, sizeof(out->route_name));
	for (i = 0; i < STATS_ROUTES; i++) {
		out->route_name[i][STATS_ROUTE_NAME - 1] = '\0';
		sum_row(a, &a->rows[0].route[i], out->route[i], &tries);
	}
	for (i = 0; i < STATS_GPUS; i++)
		sum_row(a, &a->rows[0].gpu[i], out->gpu[i], &tries);
	take_pools(a->staged, out->staged, &tries);
	take_pools(a->host, out->host, &tries);
	out->files = 0;
	for (i = 0; i < STATS_FILES; i++)
		if (take_file(a, i, &out->file[out->files], &tries))
			out->files++;
	sum_row(a, &a->rows[0].file[STATS_FILES], out->others, &tries);
}

struct stats_way snapshot_sum(const struct snapshot *s, int op)
{
	struct stats_way sum = { 0 };
	unsigned int i;

	for (i = 0; i < s->routes; i++)
		add_way(&sum, &s->route[i][op]);
	return sum;
}
