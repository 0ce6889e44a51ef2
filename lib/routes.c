// SPDX-License-Identifier: MIT
/*
 * routes.c - the table of routes, and the entry of the one that is not built yet: p2pdma
 * (plain O_DIRECT on GPU pages).
 */
#include <errno.h>

#include "route.h"

static unsigned int probe(const struct plan_in *in)
{
	return REASON_ABSENT;
}

/* Not reached: the planner gives nothing to a route whose probe refuses. */
static ssize_t run(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	*done = 0;
	return -ENOSYS;
}

const struct route route_p2pdma = {
	.size = sizeof(struct route),
	.name = "p2pdma",
	.score = 90,
	.direct = true,
	.probe = probe,
	.run = run,
};

const struct route *const route_table[OGDS_ROUTES] = {
	[OGDS_ROUTE_NVFS] = &route_nvfs,     [OGDS_ROUTE_P2PDMA] = &route_p2pdma,
	[OGDS_ROUTE_STAGED] = &route_staged, [OGDS_ROUTE_BAR] = &route_bar,
	[OGDS_ROUTE_BOUNCE] = &route_bounce, [OGDS_ROUTE_HOST] = &route_host,
};
