// SPDX-License-Identifier: MIT
/* handles.c - tables from opaque numbers to objects. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handles.h"

#define SLOT_BITS 24
#define STIR 0x9e3779b97f4a7c15ULL
#define UNSTIR 0xf1de83e19937733dULL

_Static_assert(STIR * UNSTIR == 1, "the factors are not each other's inverse");

/* t->lock held */
static struct handle_slot *find(struct handles *t, void *handle)
{
	uint64_t raw = (uint64_t)(uintptr_t)handle * UNSTIR;
	uint64_t index = (raw & ((1u << SLOT_BITS) - 1)) - 1;
	struct handle_slot *s;

	if (index >= t->slots)
		return NULL;
	s = &t->slot[index];
	return s->object && s->generation == raw >> SLOT_BITS ? s : NULL;
}

void *handles_get(struct handles *t, void *handle)
{
	pthread_mutex_t *part = shards_read(&t->lock);
	struct handle_slot *s = find(t, handle);
	void *object = NULL;

	if (s) {
		object = s->object;
		t->hold(object);
	}
	shards_done(part);
	return object;
}

void *handles_borrow(struct handles *t, void *handle, enum borrow_kind kind)
{
	pthread_mutex_t *part = shards_read(&t->lock);
	struct handle_slot *s = find(t, handle);
	void *object = s ? s->object : NULL;

	if (object && !borrow(kind, object))
		t->hold(object);
	shards_done(part);
	return object;
}

/* t->lock held for writing */
static int grow(struct handles *t)
{
	unsigned int n = t->slots ? t->slots * 2 : 64, i;
	struct handle_slot *s;

	if (n >= 1u << SLOT_BITS)
		return -ENFILE;
	s = realloc(t->slot, n * sizeof(*s));
	if (!s)
		return -ENOMEM;
	memset(s + t->slots, 0, (n - t->slots) * sizeof(*s));
	for (i = t->slots; i < n; i++)
		s[i].generation = i + 1 < n ? i + 1 : HANDLES_NONE;
	t->free = t->slots;
	t->slot = s;
	t->slots = n;
	return 0;
}

/* t->lock held for writing. A first generation that another run of the program did not have. */
static void next_generation(struct handles *t)
{
	struct timespec now;

	if (!t->generation) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		t->generation = (uint64_t)now.tv_nsec << 8 ^ now.tv_sec;
	}
	t->generation = (t->generation + 1) & (UINT64_MAX >> SLOT_BITS);
}

int handles_put_in(struct handles *t, void *object, void **handle)
{
	struct handle_slot *s;
	uint32_t i;
	int r = 0;

	shards_write(&t->lock);
	if (t->free == HANDLES_NONE)
		r = grow(t);
	if (!r) {
		i = t->free;
		s = &t->slot[i];
		t->free = s->generation;
		next_generation(t);
		s->object = object;
		s->generation = t->generation;
		*handle = (void *)(uintptr_t)((t->generation << SLOT_BITS | (i + 1)) * STIR);
	}
	shards_write_done(&t->lock);
	return r;
}

void *handles_take_out(struct handles *t, void *handle)
{
	void *object = NULL;
	struct handle_slot *s;

	shards_write(&t->lock);
	s = find(t, handle);
	if (s) {
		object = s->object;
		s->object = NULL;
		s->generation = t->free;
		t->free = s - t->slot;
	}
	shards_write_done(&t->lock);
	return object;
}

void *handles_drain(struct handles *t)
{
	void *object = NULL;

	shards_write(&t->lock);
	/* from the end, so that nothing is looked at twice */
	while (t->slots && !object) {
		t->slots--;
		object = t->slot[t->slots].object;
	}
	if (!object) {
		free(t->slot);
		t->slot = NULL;
	}
	t->free = HANDLES_NONE;
	shards_write_done(&t->lock);
	return object;
}
