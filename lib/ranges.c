// SPDX-License-Identifier: MIT
/* ranges.c - a set of address ranges: a sorted array in chunks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ranges.h"

/* A search reads starts only: they stand alone, in as few cache lines as can be. */
struct ranges_chunk {
	size_t n;
	_Alignas(64) uint64_t start[RANGES_CHUNK];
	struct {
		uint64_t end;
		void *what;
	} at[RANGES_CHUNK];
};

/* Number of chunks whose first range begins at or below va. */
static size_t chunks_upto(const struct ranges *r, uint64_t va)
{
	size_t lo = 0, hi = r->heads, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (r->head[mid].first <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Number of ranges of the chunk that begin at or below va. */
static size_t upto(const struct ranges_chunk *c, uint64_t va)
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

static void set_head(struct ranges_head *h)
{
	const struct ranges_chunk *c = h->chunk;
	size_t i;

	h->first = c->start[0];
	h->reach = 0;
	for (i = 0; i < c->n; i++)
		if (c->at[i].end > h->reach)
			h->reach = c->at[i].end;
}

/* Moves n ranges of a chunk to another place, of the same chunk or of another one. */
static void move(struct ranges_chunk *to, size_t at, const struct ranges_chunk *from, size_t first,
		 size_t n)
{
	memmove(to->start + at, from->start + first, n * sizeof(to->start[0]));
	memmove(to->at + at, from->at + first, n * sizeof(to->at[0]));
}

/* A new, empty chunk at place i of the heads: 0 or -ENOMEM */
static int new_chunk(struct ranges *r, size_t i)
{
	size_t room = r->room ? r->room * 2 : 16;
	struct ranges_chunk *c;
	void *p;

	if (r->heads == r->room) {
		p = realloc(r->head, room * sizeof(r->head[0]));
		if (!p)
			return -ENOMEM;
		r->head = p;
		r->room = room;
	}
	c = aligned_alloc(64, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->n = 0;
	memmove(r->head + i + 1, r->head + i, (r->heads - i) * sizeof(r->head[0]));
	r->head[i].chunk = c;
	r->heads++;
	return 0;
}

static void drop_chunk(struct ranges *r, size_t i)
{
	free(r->head[i].chunk);
	r->heads--;
	memmove(r->head + i, r->head + i + 1, (r->heads - i) * sizeof(r->head[0]));
}

/* A full chunk becomes two halves: 0 or -ENOMEM */
static int split(struct ranges *r, size_t i)
{
	struct ranges_chunk *low, *high;
	int ret = new_chunk(r, i + 1);

	if (ret)
		return ret;
	low = r->head[i].chunk;
	high = r->head[i + 1].chunk;
	high->n = low->n / 2;
	low->n -= high->n;
	move(high, 0, low, low->n, high->n);
	set_head(&r->head[i]);
	set_head(&r->head[i + 1]);
	return 0;
}

int ranges_add(struct ranges *r, uint64_t start, uint64_t end, void *what)
{
	size_t i = chunks_upto(r, start), at;
	struct ranges_chunk *c;
	int ret;

	/* below the first of all it goes to the front of the first chunk */
	if (i)
		i--;
	ret = r->heads ? 0 : new_chunk(r, 0);
	if (ret)
		return ret;
	c = r->head[i].chunk;
	at = upto(c, start);
	if (at && c->start[at - 1] == start)
		return -EEXIST;
	if (c->n == RANGES_CHUNK) {
		ret = split(r, i);
		if (ret)
			return ret;
		if (at > c->n) {
			at -= c->n;
			c = r->head[++i].chunk;
		}
	}
	move(c, at + 1, c, at, c->n - at);
	c->start[at] = start;
	c->at[at].end = end;
	c->at[at].what = what;
	c->n++;
	r->n++;
	r->head[i].first = c->start[0];
	if (c->n == 1 || end > r->head[i].reach)
		r->head[i].reach = end;
	return 0;
}

/* The chunk of the range that begins at start, and its place there; false: none does. */
static bool find(const struct ranges *r, uint64_t start, size_t *chunk, size_t *at)
{
	const struct ranges_chunk *c;
	size_t i = chunks_upto(r, start), j;

	if (!i)
		return false;
	c = r->head[i - 1].chunk;
	j = upto(c, start);
	*chunk = i - 1;
	*at = j - 1;
	return c->start[j - 1] == start;
}

void *ranges_at(const struct ranges *r, uint64_t start)
{
	size_t i, at;

	return find(r, start, &i, &at) ? r->head[i].chunk->at[at].what : NULL;
}

/* Chunks that are mostly empty would make a search long: two of them become one. */
static void join(struct ranges *r, size_t i)
{
	struct ranges_chunk *low, *high;

	if (i + 1 >= r->heads)
		return;
	low = r->head[i].chunk;
	high = r->head[i + 1].chunk;
	if (low->n + high->n > RANGES_CHUNK / 2)
		return;
	move(low, low->n, high, 0, high->n);
	low->n += high->n;
	drop_chunk(r, i + 1);
	set_head(&r->head[i]);
}

void *ranges_take(struct ranges *r, uint64_t start)
{
	struct ranges_chunk *c;
	size_t i, at;
	void *what;

	if (!find(r, start, &i, &at))
		return NULL;
	c = r->head[i].chunk;
	what = c->at[at].what;
	c->n--;
	r->n--;
	move(c, at, c, at + 1, c->n - at);
	if (!c->n) {
		drop_chunk(r, i);
		return what;
	}
	set_head(&r->head[i]);
	join(r, i);
	if (i)
		join(r, i - 1);
	return what;
}

void *ranges_cover(const struct ranges *r, uint64_t va, uint64_t size, bool *touched)
{
	const struct ranges_chunk *c;
	size_t i, at;

	*touched = false;
	for (i = chunks_upto(r, va); i-- > 0;) {
		if (r->head[i].reach <= va)
			continue;
		/* some range here holds va; whether one holds enough is another question */
		if (*touched && r->head[i].reach - va < size)
			continue;
		c = r->head[i].chunk;
		for (at = upto(c, va); at-- > 0;) {
			if (c->at[at].end <= va)
				continue;
			*touched = true;
			if (size <= c->at[at].end - va)
				return c->at[at].what;
		}
	}
	return NULL;
}

void *ranges_drain(struct ranges *r)
{
	struct ranges_chunk *c;
	void *what;

	if (!r->heads) {
		free(r->head);
		memset(r, 0, sizeof(*r));
		return NULL;
	}
	c = r->head[r->heads - 1].chunk;
	what = c->at[--c->n].what;
	r->n--;
	/* the head's reach may be too high now, which a search only pays for */
	if (!c->n)
		drop_chunk(r, r->heads - 1);
	return what;
}
