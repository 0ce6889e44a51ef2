/* SPDX-License-Identifier: MIT */
/*
 * route_p2pdma.h - requests that go by the GPU's pages whole, for who gives the kernel many of them
 * at once. Memory is registered and has its pages in the process; all is in whole blocks.
 */
#ifndef ROUTE_P2PDMA_H
#define ROUTE_P2PDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct os_io;
struct request;

/* What to ask of the kernel, its tag apart. Nothing is noted of that memory afterwards. */
void p2pdma_io(const struct request *rq, int64_t off, size_t size, uint64_t va, struct os_io *io);

/* It ended with r (as pread's): true when a drive has moved all of it. */
bool p2pdma_moved(const struct request *rq, const struct os_io *io, uint64_t va, ssize_t r);

#endif /* ROUTE_P2PDMA_H */
