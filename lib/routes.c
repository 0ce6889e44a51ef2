// SPDX-License-Identifier: MIT
/*
 * routes.c - the table of routes. io_uring's buffers of dma-buf memory, when there is a kernel that
 * has them, are one more way of route_p2pdma.c to reach the same pages: no entry here.
 */
#include "route.h"

const struct route *const route_table[OGDS_ROUTES] = {
	[OGDS_ROUTE_NVFS] = &route_nvfs,     [OGDS_ROUTE_P2PDMA] = &route_p2pdma,
	[OGDS_ROUTE_STAGED] = &route_staged, [OGDS_ROUTE_BAR] = &route_bar,
	[OGDS_ROUTE_BOUNCE] = &route_bounce, [OGDS_ROUTE_HOST] = &route_host,
};
