/* SPDX-License-Identifier: MIT */
/*
 * handles.h - tables from the opaque numbers that callers hold to objects of ours.
 *
 * A handle is a slot's number and its generation, stirred by an odd factor: an old handle,
 * an address or a number made up is recognised as none of this table's. Any thread.
 */
#ifndef HANDLES_H
#define HANDLES_H

#include <stdint.h>

#include "borrow.h"
#include "shards.h"

struct handle_slot {
	void *object;		/* NULL: free */
	uint64_t generation;	/* of a free slot: the next free one, HANDLES_NONE at the end */
};

#define HANDLES_NONE UINT32_MAX

/*
 * lock guards all of it. `hold` takes a reference on an object while the lock keeps it in
 * the table. A look-up, an insertion and a removal cost the same whatever the table holds.
 */
struct handles {
	struct shards lock;
	struct handle_slot *slot;
	unsigned int slots;
	uint32_t free;		/* the first free slot, or HANDLES_NONE */
	uint64_t generation;
	void (*hold)(void *object);
};

#define HANDLES_INIT(fn) { .lock = SHARDS_INIT, .free = HANDLES_NONE, .hold = (fn) }

/* The object, held; NULL: no such handle. */
void *handles_get(struct handles *t, void *handle);

/* The same for the length of one call of this thread: borrowed (borrow.h), else held. */
void *handles_borrow(struct handles *t, void *handle, enum borrow_kind kind);

/* 0, -ENOMEM, -ENFILE. The caller's reference becomes the table's. */
int handles_put_in(struct handles *t, void *object, void **handle);

/*
 * Out of the table; the table's reference becomes the caller's, who collects what was borrowed.
 * NULL: no such handle.
 */
void *handles_take_out(struct handles *t, void *handle);

/* Any object, out of the table; NULL: empty. With nobody else in the table. */
void *handles_drain(struct handles *t);

#endif /* HANDLES_H */
