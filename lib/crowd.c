// SPDX-License-Identifier: MIT
/* crowd.c - address ranges in order: a sorted array in chunks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"

/* A search reads starts only: they stand alone, in as few cache lines as can be. */
struct crowd_chunk {
	size_t n;
	_Alignas(64) uint64_t start[CROWD_CHUNK];
	struct {
		uint64_t end;
		void *what;
	} at[CROWD_CHUNK];
};

/* Number of chunks whose first range begins at or below va. */
static size_t chunks_upto(const struct crowd *w, uint64_t va)
{
	size_t lo = 0, hi = w->heads, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (w->head[mid].first <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Number of ranges of the chunk that begin at or below va. */
static size_t upto(const struct crowd_chunk *c, uint64_t va)
{
	size_t lo = 0, hi = c->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (c->start[mid] <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void set_head(struct crowd_head *h)
{
	const struct crowd_chunk *c = h->chunk;
	size_t i;

	h->first = c->start[0];
	h->reach = 0;
	for (i = 0; i < c->n; i++)
		if (c->at[i].end > h->reach)
			h->reach = c->at[i].end;
}

/* Moves n ranges of a chunk to another place, of the same chunk or of another one. */
static void move(struct crowd_chunk *to, size_t at, const struct crowd_chunk *from, size_t first,
		 size_t n)
{
	memmove(to->start + at, from->start + first, n * sizeof(to->start[0]));
	memmove(to->at + at, from->at + first, n * sizeof(to->at[0]));
}

/* A new, empty chunk at place i of the heads: 0 or -ENOMEM */
static int new_chunk(struct crowd *w, size_t i)
{
	size_t room = w->room ? w->room * 2 : 4;
	struct crowd_chunk *c;
	void *p;

	if (w->heads == w->room) {
		p = realloc(w->head, room * sizeof(w->head[0]));
		if (!p)
			return -ENOMEM;
		w->head = p;
		w->room = room;
	}
	c = aligned_alloc(64, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->n = 0;
	memmove(w->head + i + 1, w->head + i, (w->heads - i) * sizeof(w->head[0]));
	w->head[i].chunk = c;
	w->heads++;
	return 0;
}

/* With the last one all memory goes. */
static void drop_chunk(struct crowd *w, size_t i)
{
	free(w->head[i].chunk);
	w->heads--;
	memmove(w->head + i, w->head + i + 1, (w->heads - i) * sizeof(w->head[0]));
	if (w->heads)
		return;
	free(w->head);
	memset(w, 0, sizeof(*w));
}

/* A full chunk becomes two halves: 0 or -ENOMEM */
static int split(struct crowd *w, size_t i)
{
	struct crowd_chunk *low, *high;
	int r = new_chunk(w, i + 1);

	if (r)
		return r;
	low = w->head[i].chunk;
	high = w->head[i + 1].chunk;
	high->n = low->n / 2;
	low->n -= high->n;
	move(high, 0, low, low->n, high->n);
	set_head(&w->head[i]);
	set_head(&w->head[i + 1]);
	return 0;
}

static int first_chunk(struct crowd *w)
{
	int r = new_chunk(w, 0);

	if (r) {
		free(w->head);
		memset(w, 0, sizeof(*w));
	}
	return r;
}

int crowd_add(struct crowd *w, const struct range *range)
{
	size_t i = chunks_upto(w, range->start), at;
	struct crowd_chunk *c;
	int r;

	/* below the first of all it goes to the front of the first chunk */
	if (i)
		i--;
	r = w->heads ? 0 : first_chunk(w);
	if (r)
		return r;
	c = w->head[i].chunk;
	at = upto(c, range->start);
	if (c->n == CROWD_CHUNK) {
		r = split(w, i);
		if (r)
			return r;
		if (at > c->n) {
			at -= c->n;
			c = w->head[++i].chunk;
		}
	}
	move(c, at + 1, c, at, c->n - at);
	c->start[at] = range->start;
	c->at[at].end = range->end;
	c->at[at].what = range->what;
	c->n++;
	w->n++;
	w->head[i].first = c->start[0];
	if (c->n == 1 || range->end > w->head[i].reach)
		w->head[i].reach = range->end;
	return 0;
}

static void copy_out(const struct crowd_chunk *c, size_t at, struct range *out)
{
	out->start = c->start[at];
	out->end = c->at[at].end;
	out->what = c->at[at].what;
}

/* The chunk of the range that begins at start, and its place there; false: none does. */
static bool begins(const struct crowd *w, uint64_t start, size_t *chunk, size_t *at)
{
	const struct crowd_chunk *c;
	size_t i = chunks_upto(w, start), j;

	if (!i)
		return false;
	c = w->head[i - 1].chunk;
	j = upto(c, start);
	*chunk = i - 1;
	*at = j - 1;
	return c->start[j - 1] == start;
}

bool crowd_at(const struct crowd *w, uint64_t start, struct range *out)
{
	size_t i, at;

	if (!begins(w, start, &i, &at))
		return false;
	copy_out(w->head[i].chunk, at, out);
	return true;
}

bool crowd_any(const struct crowd *w, struct range *out)
{
	if (w->heads)
		copy_out(w->head[w->heads - 1].chunk, 0, out);
	return w->heads;
}

/* Chunks that are mostly empty would make a search long: two of them become one. */
static void join(struct crowd *w, size_t i)
{
	struct crowd_chunk *low, *high;

	if (i + 1 >= w->heads)
		return;
	low = w->head[i].chunk;
	high = w->head[i + 1].chunk;
	if (low->n + high->n > CROWD_CHUNK / 2)
		return;
	move(low, low->n, high, 0, high->n);
	low->n += high->n;
	drop_chunk(w, i + 1);
	set_head(&w->head[i]);
}

void crowd_take(struct crowd *w, uint64_t start)
{
	struct crowd_chunk *c;
	size_t i, at;

	if (!begins(w, start, &i, &at))
		return;
	c = w->head[i].chunk;
	c->n--;
	w->n--;
	move(c, at, c, at + 1, c->n - at);
	if (!c->n) {
		drop_chunk(w, i);
		return;
	}
	set_head(&w->head[i]);
	join(w, i);
	if (i)
		join(w, i - 1);
}

bool crowd_cover(const struct crowd *w, uint64_t va, uint64_t size, bool *touched,
		 struct range *out)
{
	const struct crowd_chunk *c;
	size_t i, at;

	for (i = chunks_upto(w, va); i-- > 0;) {
		if (w->head[i].reach <= va)
			continue;
		/* some range here holds va; whether one holds enough is another question */
		if (*touched && w->head[i].reach - va < size)
			continue;
		c = w->head[i].chunk;
		for (at = upto(c, va); at-- > 0;) {
			if (c->at[at].end <= va)
				continue;
			*touched = true;
			if (size > c->at[at].end - va)
				continue;
			copy_out(c, at, out);
			return true;
		}
	}
	return false;
}
