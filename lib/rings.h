/* SPDX-License-Identifier: MIT */
/*
 * rings.h - io_uring for large requests: one thread keeps a drive busy.
 *
 * A ring is made when a request finds none idle, and stays until the close. One of which the kernel
 * took no more requests is closed when it is given back; a second later another one may be made.
 * Where io_uring is refused (an old kernel, a sysctl, a container) or prefer_iouring is false there
 * is none, and threads do the same.
 */
#ifndef RINGS_H
#define RINGS_H

#include <stddef.h>

#define RING_DEPTH 8		/* requests under way of one caller */
#define RING_MIN ((size_t)512 * 1024)	/* less is one request of the drive, by pread or pwrite */
#define RING_DEEP 256		/* small requests of a batch under way at a time */

struct config;
struct os_ring;

/* By the opening thread. */
void rings_open(const struct config *c);

/* One of the caller's own, with nothing under way, until ring_give(). NULL: there is none. */
struct os_ring *ring_take(void);
void ring_give(struct os_ring *r);
/* The same with room for RING_DEEP. */
struct os_ring *ring_take_deep(void);
void ring_give_deep(struct os_ring *r);

/* At close, nobody inside. */
void rings_release(void);

#endif /* RINGS_H */
