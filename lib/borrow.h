/* SPDX-License-Identifier: MIT */
/*
 * borrow.h - references on shared objects for the length of one call, without a shared
 * counter: many threads that read one file into one buffer would hand its cache line round.
 *
 * A thread notes what it uses in a slot of its own while the object's table is held for
 * reading. Who takes an object out of the table holds all of it for writing, so it sees
 * every note that was made before, and turns each into a counted reference:
 *
 *	slot: EMPTY --borrow--> OBJECT --give back--> EMPTY
 *	                        OBJECT --collect--> COUNTED --give back, and drop one--> EMPTY
 *
 * A slot belongs to one thread at a time; two threads whose numbers fall on one slot, and a
 * thread that borrows twice, count instead. An object is given back by the thread that
 * borrowed it.
 */
#ifndef BORROW_H
#define BORROW_H

#include <stdbool.h>

enum borrow_kind { BORROW_FILE, BORROW_BUFFER, BORROW_KINDS };

/* The table of the object is held for reading. False: not noted, the caller counts it. */
bool borrow(enum borrow_kind kind, void *object);

/* True: nothing is left to do. False: it is counted (by the caller, or since): drop that. */
bool borrow_back(enum borrow_kind kind, const void *object);

/*
 * The object is out of its table, which was held for writing since. Every note of it becomes a
 * counted reference: hold() makes one; drop() takes one back that was not needed, which is never
 * the last one (the caller has one).
 */
void borrow_collect(enum borrow_kind kind, void *object, void (*hold)(void *object),
		    void (*drop)(void *object));

#endif /* BORROW_H */
