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
	void *object = NULL;
	struct handle_slot *s;

	pthread_rwlock_rdlock(&t->lock);
	s = find(t, handle);
	if (s) {
		object = s->object;
		t->hold(object);
	}
	pthread_rwlock_unlock(&t->lock);
	return object;
}

/* t->lock held for writing */
static int grow(struct handles *t)
{
	unsigned int n = t->slots ? t->slots * 2 : 64;
	struct handle_slot *s;

	if (n >= 1u << SLOT_BITS)
		return -ENFILE;
	s = realloc(t->slot, n * sizeof(*s));
	if (!s)
		return -ENOMEM;
	memset(s + t->slots, 0, (n - t->slots) * sizeof(*s));
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
	unsigned int i;
	int r = 0;

	pthread_rwlock_wrlock(&t->lock);
	for (i = t->first_free; i < t->slots && t->slot[i].object; i++)
		;
	if (i == t->slots)
		r = grow(t);
	if (!r) {
		next_generation(t);
		t->slot[i].object = object;
		t->slot[i].generation = t->generation;
		t->first_free = i + 1;
		*handle = (void *)(uintptr_t)((t->generation << SLOT_BITS | (i + 1)) * STIR);
	}
	pthread_rwlock_unlock(&t->lock);
	return r;
}

/* t->lock held for writing */
static void *empty(struct handles *t, struct handle_slot *s)
{
	void *object = s->object;

	s->object = NULL;
	if ((unsigned int)(s - t->slot) < t->first_free)
		t->first_free = s - t->slot;
	return object;
}

void *handles_take_out(struct handles *t, void *handle)
{
	void *object = NULL;
	struct handle_slot *s;

	pthread_rwlock_wrlock(&t->lock);
	s = find(t, handle);
	if (s)
		object = empty(t, s);
	pthread_rwlock_unlock(&t->lock);
	return object;
}

void *handles_drain(struct handles *t)
{
	void *object = NULL;

	pthread_rwlock_wrlock(&t->lock);
	/* from the end, so that nothing is looked at twice */
	while (t->slots && !object) {
		t->slots--;
		object = t->slot[t->slots].object;
	}
	if (!object) {
		free(t->slot);
		t->slot = NULL;
	}
	t->first_free = 0;
	pthread_rwlock_unlock(&t->lock);
	return object;
}
