// SPDX-License-Identifier: MIT
/*
 * stats_rows.c - statistics by route, GPU and file, and the pools of slots.
 *
 * A file gets a row at its first request that is counted, and keeps it while a handle is
 * registered. Handles of one name share it. When all rows are taken, the one gives way that
 * nobody uses and that moved least: its numbers go to the row of all others, so the table holds
 * the hottest files and the sums stay right.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "stats_rows.h"

#define ROW_WORDS (sizeof(struct stats_row) / sizeof(uint64_t))

_Atomic(struct stats_area *) stats_shown;

/*
 * lock guards the names and users in the area, and what follows; taken before any lock of a
 * shard. For a row that nobody uses: what it moved, and when it was left (by `clock`).
 */
static struct {
	pthread_mutex_t lock;
	uint64_t clock;
	struct {
		uint64_t moved, left;
	} idle[STATS_FILES];
} tab = { .lock = PTHREAD_MUTEX_INITIALIZER };

void stats_rows_publish(struct stats_area *a)
{
	pthread_mutex_lock(&tab.lock);
	atomic_store_explicit(&stats_shown, a, memory_order_release);
	tab.clock = 0;
	memset(tab.idle, 0, sizeof(tab.idle));
	pthread_mutex_unlock(&tab.lock);
}

/* -- rows -- */

/* 0: below 4 KiB; each one twice as far */
unsigned int stats_bucket(uint64_t bytes)
{
	unsigned int i = 0;

	while (i < STATS_BUCKETS - 1 && bytes >= (uint64_t)4096 << i)
		i++;
	return i;
}

/* 0: below a microsecond; each one twice as far */
static unsigned int time_bucket(uint64_t ns)
{
	unsigned int i = 0;

	while (i < STATS_TIMES - 1 && ns >= (uint64_t)1000 << i)
		i++;
	return i;
}

static void count_ok(struct stats_way *w, int level, uint64_t bytes, uint64_t ns)
{
	stats_add(&w->n, 1);
	stats_add(&w->bytes, bytes);
	stats_add(&w->ns, ns);
	if (level < 2)
		return;
	stats_add(&w->size[stats_bucket(bytes)], 1);
	stats_add(&w->time[time_bucket(ns)], 1);
}

static void count_route(struct stats_row *row, int level, const struct stats_done *d,
			unsigned int i)
{
	struct stats_way *w = &row->way[d->op];

	stats_add(&row->seq, 1);
	if (d->spent->failed & 1u << i)
		stats_add(&w->err, 1);
	stats_add(&w->retried, d->spent->retried[i]);
	if (!d->failed && d->rep->bytes[i])
		count_ok(w, level, d->rep->bytes[i], d->spent->ns[i]);
	stats_add(&row->seq, 1);
}

/* A whole request, of a GPU or of a file. */
static void count_whole(struct stats_row *row, int level, const struct stats_done *d)
{
	struct stats_way *w = &row->way[d->op];
	uint64_t bytes = 0;
	unsigned int i;

	stats_add(&row->seq, 1);
	for (i = 0; i < OGDS_ROUTES; i++) {
		stats_add(&w->retried, d->spent->retried[i]);
		if (d->failed)
			continue;
		stats_add(&w->route[i], d->rep->bytes[i]);
		bytes += d->rep->bytes[i];
	}
	if (d->failed)
		stats_add(&w->err, 1);
	else
		count_ok(w, level, bytes, d->ns);
	stats_add(&row->seq, 1);
}

void stats_rows_count(struct stats_rows *rows, int level, const struct stats_done *d,
		      unsigned int file)
{
	unsigned int i;

	for (i = 0; i < OGDS_ROUTES; i++)
		if (d->rep->bytes[i] || d->spent->failed & 1u << i)
			count_route(&rows->route[i], level, d, i);
	if (level < 3)
		return;
	if (d->dev >= 0 && d->dev < STATS_GPUS)
		count_whole(&rows->gpu[d->dev], level, d);
	count_whole(&rows->file[file], level, d);
}

/* -- files -- */

/* The name, or the end of a long one, from the start of a character on. */
static void set_file(struct stats_file *e, const struct file *f)
{
	static const char mark[] = "...";
	size_t len = strlen(f->name), skip = 0, at = 0;
	/* the library itself has no more of it */
	bool ends = len < FACTS_PATH - 1;
	size_t room = STATS_FILE_NAME - 1 - (ends ? 0 : strlen(mark));

	if (len > room) {
		at = strlen(mark);
		skip = len - (room - at);
		while ((f->name[skip] & 0xc0) == 0x80)
			skip++;
		memcpy(e->name, mark, at);
	}
	memcpy(e->name + at, f->name + skip, len - skip);
	if (!ends)
		memcpy(e->name + at + len - skip, mark, strlen(mark));
}

/* tab.lock held. One for a file that has none: STATS_FILES when there is none to be had. */
static unsigned int find_room(const struct stats_area *a)
{
	unsigned int i, best = STATS_FILES;

	for (i = 0; i < STATS_FILES; i++) {
		if (!a->file[i].name[0])
			return i;
		if (a->file[i].users)
			continue;
		if (best == STATS_FILES || tab.idle[i].moved < tab.idle[best].moved ||
		    (tab.idle[i].moved == tab.idle[best].moved &&
		     tab.idle[i].left < tab.idle[best].left))
			best = i;
	}
	return best;
}

static void add_words(uint64_t *to, uint64_t *from)
{
	size_t i;

	stats_add(&to[0], 1);
	stats_add(&from[0], 1);
	for (i = 1; i < ROW_WORDS; i++) {
		stats_add(&to[i], from[i]);
		stats_put(&from[i], 0);
	}
	stats_add(&to[0], 1);
	stats_add(&from[0], 1);
}

/* tab.lock held; its name is being changed. What a row has counted becomes the others'. */
static void give_up(struct stats_area *a, unsigned int row)
{
	unsigned int i;

	stats_lock_all();
	for (i = 0; i < STATS_SHARDS; i++)
		add_words((uint64_t *)&a->rows[i].file[STATS_FILES],
			  (uint64_t *)&a->rows[i].file[row]);
	stats_unlock_all();
}

static void take(struct stats_area *a, unsigned int row, const struct stats_file *want)
{
	uint64_t *to = (uint64_t *)&a->file[row];
	const uint64_t *from = (const uint64_t *)want;
	size_t i;

	stats_add(&to[0], 1);
	if (a->file[row].name[0])
		give_up(a, row);
	for (i = 1; i < sizeof(*want) / sizeof(*to); i++)
		stats_put(&to[i], from[i]);
	stats_add(&to[0], 1);
}

unsigned int stats_rows_file(struct file *f)
{
	unsigned int row = atomic_load_explicit(&f->stats_row, memory_order_relaxed), i;
	struct stats_file want = { 0 };
	struct stats_area *a;

	if (row)
		return row - 1;
	set_file(&want, f);
	pthread_mutex_lock(&tab.lock);
	a = stats_show();
	/* another thread may have been here meanwhile */
	row = atomic_load_explicit(&f->stats_row, memory_order_relaxed);
	if (!row) {
		for (i = 0; i < STATS_FILES && strcmp(a->file[i].name, want.name); i++)
			;
		if (i == STATS_FILES) {
			i = find_room(a);
			if (i < STATS_FILES)
				take(a, i, &want);
		}
		if (i < STATS_FILES)
			stats_add(&a->file[i].users, 1);
		row = i + 1;
		atomic_store_explicit(&f->stats_row, row, memory_order_relaxed);
	}
	pthread_mutex_unlock(&tab.lock);
	return row - 1;
}

void stats_file_gone(struct file *f)
{
	unsigned int row = atomic_load_explicit(&f->stats_row, memory_order_relaxed), i, op;
	struct stats_area *a;

	/* none, or that of the others */
	if (!row || row > STATS_FILES)
		return;
	row--;
	pthread_mutex_lock(&tab.lock);
	a = stats_show();
	if (a) {
		stats_add(&a->file[row].users, -(uint64_t)1);
		tab.idle[row].left = ++tab.clock;
		tab.idle[row].moved = 0;
		for (i = 0; !a->file[row].users && i < STATS_SHARDS; i++)
			for (op = 0; op < 2; op++)
				tab.idle[row].moved +=
					__atomic_load_n(&a->rows[i].file[row].way[op].bytes,
							__ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&tab.lock);
}

void stats_pool(struct stats_pool of[STATS_GPUS], int dev, size_t slot_bytes, size_t slots,
		size_t used, bool waited)
{
	struct stats_pool *p = &of[dev];

	if (dev < 0 || dev >= STATS_GPUS)
		return;
	stats_add(&p->seq, 1);
	stats_put(&p->slot_bytes, slot_bytes);
	stats_put(&p->slots, slots);
	stats_put(&p->used, used);
	if (used > p->most)
		stats_put(&p->most, used);
	stats_add(&p->waits, waited);
	stats_add(&p->seq, 1);
}

/* -- reset -- */

void stats_rows_reset(struct stats_area *a)
{
	uint64_t *word = (uint64_t *)a->rows, *end = (uint64_t *)(a->rows + STATS_SHARDS);
	size_t i;

	for (; word < end; word += ROW_WORDS) {
		stats_add(&word[0], 1);
		for (i = 1; i < ROW_WORDS; i++)
			stats_put(&word[i], 0);
		stats_add(&word[0], 1);
	}
}
