/* SPDX-License-Identifier: MIT */
/*
 * workers.h - threads of the library, for what the caller does not wait for.
 *
 * Threads are made when work arrives and none is idle, up to the cap (max_io_threads where
 * configured, else the processors that the process may use, 4 at least and 16 at most); they
 * stay until the close. A job never waits for another job, so any number may be queued.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdbool.h>

struct job {
	void (*run)(struct job *job);	/* the job's memory is its own business afterwards */
	struct job *next;		/* of the queue */
};

/* False: there can be no thread; the job was not taken. Runs in the order of submission. */
bool workers_submit(struct job *job);

/* How many threads there may be; 0: none (configured so). */
unsigned int workers_cap(void);
/* Processors that the process may use, of this open. */
unsigned int workers_cpus(void);

/* At close: waits until the queue is empty and all threads are gone. Only jobs submit. */
void workers_release(void);

#endif /* WORKERS_H */
