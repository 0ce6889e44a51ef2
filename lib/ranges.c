// SPDX-License-Identifier: MIT
/* ranges.c - a set of address ranges: a hash table of the blocks in which they lie. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ranges.h"

#define LEAST_ROOM 64
/* Shorter ranges count as if they had 64 bytes, so that class and block fit in a key. */
#define LEAST_CLASS 6

static unsigned int class_of(uint64_t start, uint64_t end)
{
	uint64_t len = end - start;
	unsigned int k = len > 1 ? 64 - __builtin_clzll(len - 1) : 0;

	/* more than 2^63 bytes lie in both blocks of 2^63 */
	return k < LEAST_CLASS ? LEAST_CLASS : k > 63 ? 63 : k;
}

/* Of the block of class k that holds va. Never 0. */
static uint64_t key_of(unsigned int k, uint64_t va)
{
	return va >> k << LEAST_CLASS | (k - LEAST_CLASS + 1);
}

static size_t home(const struct ranges *r, uint64_t key)
{
	uint64_t h = key * 0x9e3779b97f4a7c15ULL;

	/* blocks that lie at equal distances must not meet */
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
	return h >> r->shift;
}

static size_t after(const struct ranges *r, size_t i)
{
	return (i + 1) & (r->room - 1);
}

static struct crowd *crowd_of(const struct ranges_slot *s)
{
	return s->range.end ? NULL : s->range.what;
}

/* -- slots -- */

/* There is room. */
static void put(struct ranges *r, uint64_t key, const struct range *range)
{
	size_t i = home(r, key);

	while (r->slot[i].key)
		i = after(r, i);
	r->slot[i].key = key;
	r->slot[i].range = *range;
	r->used++;
	if (i >= r->left)
		r->left = i + 1;
}

/* Frees slot i: those behind it that a search would not find any more move up. */
static void drop(struct ranges *r, size_t i)
{
	size_t mask = r->room - 1, j;

	for (j = after(r, i); r->slot[j].key; j = after(r, j)) {
		if (((j - home(r, r->slot[j].key)) & mask) < ((j - i) & mask))
			continue;
		r->slot[i] = r->slot[j];
		i = j;
	}
	r->slot[i].key = 0;
	r->used--;
}

static int resize(struct ranges *r, size_t room)
{
	struct ranges_slot *slot = aligned_alloc(64, room * sizeof(*slot));
	struct ranges old = *r;
	size_t i;

	if (!slot)
		return -ENOMEM;
	memset(slot, 0, room * sizeof(*slot));
	r->slot = slot;
	r->room = room;
	r->shift = 64 - __builtin_ctzll(room);
	r->used = r->left = 0;
	for (i = 0; i < old.room; i++)
		if (old.slot[i].key)
			put(r, old.slot[i].key, &old.slot[i].range);
	free(old.slot);
	return 0;
}

/* -- a block's ranges -- */

/* The block of `key` has as many ranges as may stand in slots of their own: 0 or -ENOMEM. */
static int make_crowd(struct ranges *r, uint64_t key, const struct range *more)
{
	struct range as = { .what = calloc(1, sizeof(struct crowd)) };
	struct crowd *w = as.what;
	struct range one;
	size_t i;
	int ret;

	if (!w)
		return -ENOMEM;
	ret = crowd_add(w, more);
	for (i = home(r, key); !ret && r->slot[i].key; i = after(r, i))
		if (r->slot[i].key == key)
			ret = crowd_add(w, &r->slot[i].range);
	if (ret) {
		while (crowd_any(w, &one))
			crowd_take(w, one.start);
		free(w);
		return ret;
	}
	for (i = home(r, key); r->slot[i].key;) {
		if (r->slot[i].key == key)
			drop(r, i);	/* another one may stand there now */
		else
			i = after(r, i);
	}
	put(r, key, &as);
	return 0;
}

/* There is room for one more slot. 0 or -ENOMEM. */
static int put_in(struct ranges *r, uint64_t key, const struct range *range)
{
	unsigned int same = 0;
	struct crowd *w;
	size_t i;

	for (i = home(r, key); r->slot[i].key; i = after(r, i)) {
		if (r->slot[i].key != key)
			continue;
		w = crowd_of(&r->slot[i]);
		if (w)
			return crowd_add(w, range);
		same++;
	}
	if (same == RANGES_SAME)
		return make_crowd(r, key, range);
	put(r, key, range);
	return 0;
}

/* The range that begins at start stands in the block of key. A small crowd is none any more. */
static void take_from(struct ranges *r, uint64_t key, uint64_t start)
{
	struct range one;
	struct crowd *w;
	size_t i;

	for (i = home(r, key); r->slot[i].key; i = after(r, i)) {
		if (r->slot[i].key != key)
			continue;
		w = crowd_of(&r->slot[i]);
		if (!w && r->slot[i].range.start != start)
			continue;
		if (w) {
			crowd_take(w, start);
			if (w->n > RANGES_SAME / 2 || r->used + w->n > r->room / 2)
				return;
		}
		drop(r, i);
		while (w && crowd_any(w, &one)) {
			crowd_take(w, one.start);
			put(r, key, &one);
		}
		free(w);
		return;
	}
}

/* -- all of them -- */

static bool begins_at(const struct ranges *r, uint64_t start, struct range *out)
{
	const struct ranges_slot *s;
	uint64_t m, key;
	size_t i;

	for (m = r->classes; m; m &= m - 1) {
		key = key_of(__builtin_ctzll(m), start);
		for (i = home(r, key); (s = &r->slot[i])->key; i = after(r, i)) {
			if (s->key != key)
				continue;
			if (crowd_of(s)) {
				if (crowd_at(crowd_of(s), start, out))
					return true;
			} else if (s->range.start == start) {
				*out = s->range;
				return true;
			}
		}
	}
	return false;
}

int ranges_add(struct ranges *r, uint64_t start, uint64_t end, void *what)
{
	struct range range = { .start = start, .end = end, .what = what }, other;
	unsigned int k = class_of(start, end);
	uint64_t first = key_of(k, start), last = key_of(k, end - 1);
	int ret = 0;

	if (begins_at(r, start, &other))
		return -EEXIST;
	if (r->used + 2 > r->room / 2)
		ret = resize(r, r->room ? r->room * 2 : LEAST_ROOM);
	if (!ret)
		ret = put_in(r, first, &range);
	if (!ret && last != first) {
		ret = put_in(r, last, &range);
		if (ret)
			take_from(r, first, start);
	}
	if (ret)
		return ret;
	r->n++;
	r->of_class[k]++;
	r->classes |= 1ULL << k;
	return 0;
}

void *ranges_at(const struct ranges *r, uint64_t start)
{
	struct range range;

	return begins_at(r, start, &range) ? range.what : NULL;
}

void *ranges_take(struct ranges *r, uint64_t start)
{
	struct range range;
	uint64_t first, last;
	unsigned int k;

	if (!begins_at(r, start, &range))
		return NULL;
	k = class_of(range.start, range.end);
	first = key_of(k, range.start);
	last = key_of(k, range.end - 1);
	take_from(r, first, start);
	if (last != first)
		take_from(r, last, start);
	r->n--;
	if (!--r->of_class[k])
		r->classes &= ~(1ULL << k);
	/* without memory for a smaller one the large one serves on */
	if (r->room > LEAST_ROOM && r->used < r->room / 8)
		resize(r, r->room / 2);
	return range.what;
}

void *ranges_cover(const struct ranges *r, uint64_t va, uint64_t size, bool *touched)
{
	struct range best = { 0 }, one;
	const struct ranges_slot *s;
	uint64_t m, key;
	size_t i;

	*touched = false;
	for (m = r->classes; m; m &= m - 1) {
		key = key_of(__builtin_ctzll(m), va);
		for (i = home(r, key); (s = &r->slot[i])->key; i = after(r, i)) {
			if (s->key != key)
				continue;
			one = s->range;
			if (crowd_of(s)) {
				if (!crowd_cover(crowd_of(s), va, size, touched, &one))
					continue;
			} else {
				if (va < one.start || va >= one.end)
					continue;
				*touched = true;
				if (size > one.end - va)
					continue;
			}
			/* nothing begins later than here */
			if (one.start == va)
				return one.what;
			if (!best.end || one.start > best.start)
				best = one;
		}
	}
	return best.what;
}

void *ranges_drain(struct ranges *r)
{
	const struct ranges_slot *s;
	struct range one;

	/* what moves up when a slot is freed comes from below `left` */
	for (; r->left; r->left--) {
		s = &r->slot[r->left - 1];
		if (!s->key)
			continue;
		one = s->range;
		if (crowd_of(s))
			crowd_any(crowd_of(s), &one);
		return ranges_take(r, one.start);
	}
	free(r->slot);
	memset(r, 0, sizeof(*r));
	return NULL;
}
