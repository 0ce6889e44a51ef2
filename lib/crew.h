/* SPDX-License-Identifier: MIT */
/*
 * crew.h - threads of the library that help one request along.
 *
 * The caller does its work itself and shares it with who is idle: run() takes the next piece of
 * the request, by a counter of the caller's, until there is none, in any number of threads at
 * the same time. Nothing is queued for a thread that has not begun, so a request needs none:
 * it goes on when there can be no thread, when all are busy, and inside of a helper, too.
 *
 * Threads are made at first need, as many as workers_cap() says, and stay until the close.
 */
#ifndef CREW_H
#define CREW_H

#include <stdatomic.h>
#include <stdbool.h>

struct crew_work {
	/* Called in several threads at once. Returns when it finds nothing more to do. */
	void (*run)(struct crew_work *w);
	/* It waits for a drive most of the time: nobody spins until a helper is back or wanted. */
	bool slow;

	/* -- private to crew.c -- */
	struct crew_work *next;		/* of those that want helpers; crew.lock */
	unsigned int wanted;		/* helpers that may still begin; crew.lock */
	atomic_uint inside;		/* helpers that have begun and are not back, and a flag */
};

/*
 * w->run(w) in the calling thread and in up to `helpers` others. Returns when all that had
 * begun have come back; who has not begun when the caller's own run() returned never will.
 * What a helper wrote is seen by the caller afterwards. *w need not be initialised but run and
 * slow.
 */
void crew_run(struct crew_work *w, unsigned int helpers);

/* How many helpers there can be; 0: none (so configured, or no thread can be made). */
unsigned int crew_size(void);

/* At close, nobody inside. */
void crew_release(void);

#endif /* CREW_H */
