/* SPDX-License-Identifier: MIT */
/*
 * handles.h - tables from the opaque numbers that callers hold to objects of ours.
 *
 * A handle is a slot's number and its generation, stirred by an odd factor: an old handle,
 * an address or a number made up is recognised as none of this table's. Any thread.
 */
#ifndef HANDLES_H
#define HANDLES_H

#include <pthread.h>
#include <stdint.h>

struct handle_slot {
	void *object;		/* NULL: free */
	uint64_t generation;
};

/*
 * lock guards all of it. `hold` takes a reference on an object while the lock keeps it in
 * the table.
 */
struct handles {
	pthread_rwlock_t lock;
	struct handle_slot *slot;
	unsigned int slots, first_free;
	uint64_t generation;
	void (*hold)(void *object);
};

/* The object, held; NULL: no such handle. */
void *handles_get(struct handles *t, void *handle);

/* 0, -ENOMEM, -ENFILE. The caller's reference becomes the table's. */
int handles_put_in(struct handles *t, void *object, void **handle);

/* Out of the table; the table's reference becomes the caller's. NULL: no such handle. */
void *handles_take_out(struct handles *t, void *handle);

/* Any object, out of the table; NULL: empty. With nobody else in the table. */
void *handles_drain(struct handles *t);

#endif /* HANDLES_H */
