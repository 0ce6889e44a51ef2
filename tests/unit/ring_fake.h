/* SPDX-License-Identifier: MIT */
/*
 * ring_fake.h - io_uring by a script: requests are performed when they are waited for, in an order
 * that the test chooses, by the test's own pread and pwrite, whose faults are the ring's too.
 */
#ifndef RING_FAKE_H
#define RING_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os.h"

/* What the ring is to do, and what it saw. */
struct ring_fake {
	enum { RING_FIRST, RING_LAST, RING_ANY } order;
	int new_error;			/* of ring_new */
	unsigned int may_begin;		/* then ring_begin fails, and ring_go begins no more */
	unsigned int may_add;		/* then ring_add fails */
	off_t bad_off;			/* a request that touches this byte ends with bad_result */
	ssize_t bad_result;
	const struct os_ops *by;	/* moves the bytes */
	pthread_t caller;
	atomic_uint asked, rings;	/* ring_new, and those that there are */
	atomic_uint begun, most, by_others, goes;
	off_t last_off;
	bool falls;			/* an offset was below the one before */
};

extern struct ring_fake ring_fake;

/* Does everything right from now on, by os->pread and pwrite of `by`; puts itself into ops. */
void ring_fake_in(struct os_ops *ops, const struct os_ops *by);
/* Puts a kernel that refuses io_uring into ops: threads do it. */
void ring_fake_none(struct os_ops *ops);

/* Forgets what was seen, but for the rings. */
void ring_fake_forget(void);

#endif /* RING_FAKE_H */
