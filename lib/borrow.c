// SPDX-License-Identifier: MIT
/* borrow.c - references for the length of one call. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "borrow.h"
#include "shards.h"

#define SLOTS 128
#define COUNTED ((uintptr_t)1)

/* A slot is written by its thread, and by who collects. */
static struct {
	_Alignas(64) _Atomic uintptr_t of[BORROW_KINDS];
} slot[SLOTS];

/* What this thread noted in its slot; no other looks at it. */
static __thread const void *noted[BORROW_KINDS];

static _Atomic uintptr_t *mine(enum borrow_kind kind)
{
	return &slot[shards_thread() % SLOTS].of[kind];
}

bool borrow(enum borrow_kind kind, void *object)
{
	uintptr_t empty = 0;

	if (noted[kind] ||
	    !atomic_compare_exchange_strong(mine(kind), &empty, (uintptr_t)object))
		return false;
	noted[kind] = object;
	return true;
}

bool borrow_back(enum borrow_kind kind, const void *object)
{
	if (noted[kind] != object)
		return false;
	noted[kind] = NULL;
	return !(atomic_exchange(mine(kind), 0) & COUNTED);
}

void borrow_collect(enum borrow_kind kind, void *object, void (*hold)(void *object),
		    void (*drop)(void *object))
{
	uintptr_t want;
	int i;

	for (i = 0; i < SLOTS; i++) {
		want = (uintptr_t)object;
		if (atomic_load(&slot[i].of[kind]) != want)
			continue;
		/* first counted, then marked: it is given back between the two, or after */
		hold(object);
		if (!atomic_compare_exchange_strong(&slot[i].of[kind], &want, want | COUNTED))
			drop(object);
	}
}
