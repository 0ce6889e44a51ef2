/* SPDX-License-Identifier: MIT */
/* os_ring.h - what os.c takes of os_ring.c, and the other way round; others call by os.h. */
#ifndef OS_RING_H
#define OS_RING_H

#include <stdbool.h>
#include <sys/types.h>

struct os_io;
struct os_ring;

int os_ring_new(unsigned int depth, struct os_ring **out);
void os_ring_free(struct os_ring *r);
int os_ring_begin(struct os_ring *r, const struct os_io *io);
int os_ring_add(struct os_ring *r, const struct os_io *io);
unsigned int os_ring_go(struct os_ring *r);
void *os_ring_next(struct os_ring *r, ssize_t *result);
bool os_ring_broken(const struct os_ring *r);

/* fd, or when it is 0, 1 or 2 another number for it; -1 and errno, fd is closed then. */
int os_above_stdio(int fd);

#endif /* OS_RING_H */
