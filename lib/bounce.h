/* SPDX-License-Identifier: MIT */
/* bounce.h - one request through host memory, in pieces that overlap: for route_bounce.c. */
#ifndef BOUNCE_H
#define BOUNCE_H

#include <stdint.h>
#include <sys/types.h>

struct request;

/* As run() of a route (route.h). The memory is of the device's primary context. */
ssize_t bounce_flow(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done);

/* The same of any context, one piece after another. */
ssize_t bounce_steps(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done);

#endif /* BOUNCE_H */
