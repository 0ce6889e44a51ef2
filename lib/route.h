/* SPDX-License-Identifier: MIT */
/*
 * route.h - the ways of a byte, as a table. A route that is not there yet is an entry that
 * refuses with its reason; nobody asks whether there is one.
 */
#ifndef ROUTE_H
#define ROUTE_H

#include "plan.h"

struct request;

struct route {
	size_t size;		/* of this structure */
	const char *name;
	unsigned int score;	/* the higher is asked first */
	bool direct;
	bool edges;		/* takes parts of a block as well (reads) */
	/* REASON_NONE: it can take the whole blocks of the request. No side effect. */
	unsigned int (*probe)(const struct plan_in *in);
	/*
	 * Moves `size` bytes between file offset `off` and memory `va`. Bytes (fewer only at
	 * the end of the file), or an error (errmap.h). *done: bytes at the front that are
	 * moved although the rest failed. Blocks.
	 */
	ssize_t (*run)(struct request *rq, int64_t off, uint64_t size, uint64_t va,
		       uint64_t *done);
};

extern const struct route route_nvfs, route_p2pdma, route_staged, route_bar, route_bounce,
	route_host;

/* By number, enum ogds_route. */
extern const struct route *const route_table[OGDS_ROUTES];

#endif /* ROUTE_H */
