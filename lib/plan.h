/* SPDX-License-Identifier: MIT */
/*
 * plan.h - cuts a request into pieces and gives each a route and the reason.
 *
 * Pure: everything it looks at stands in struct plan_in, so that a unit test can ask
 * about any machine. Which route takes what is the routes' own knowledge (route.h).
 */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "facts.h"
#include "gpu.h"
#include "opengds.h"

#define PLAN_BLOCK 4096
#define PLAN_MAX 3

struct plan_in {
	enum ogds_op op;
	int64_t off;		/* in the file */
	uint64_t size;
	uint64_t va;		/* of the first byte of memory */
	int64_t file_size;	/* reads end here */
	enum gpu_mem kind;

	unsigned int file_reason;	/* why the file does not go direct, or REASON_NONE */
	unsigned int file_pages_reason;	/* why requests of it on GPU pages in the process do not */
	unsigned int module_reason;	/* why nvidia-fs cannot be used */
	bool registered;		/* the memory lies in a registration */
	unsigned int pin_reason;	/* why that is not pinned */
	unsigned int pages_reason;	/* why its pages are not in the process */
	bool pin_now;			/* unregistered, and worth pinning for one request */
	bool other_context;		/* memory of a CUDA context that is not the primary one */
	unsigned int staging_reason;	/* why there is no staging memory */
	bool bar;			/* a read can end in stores through BAR1 */
	bool bar_quicker;		/* and is thought to be quicker so than copies */

	bool strict, force_compat, allow_compat;
	uint32_t routes;	/* allowed ones, bit n: route n */
};

struct plan {
	unsigned int n;
	struct ogds_piece piece[PLAN_MAX];
	int error;		/* 0, or an error (errmap.h): nothing may be done */
	unsigned int reason;	/* of the error */
	/* the rule: REASON_STRICT, REASON_COMPAT_FORBIDDEN or REASON_ROUTE_DENIED */
	unsigned int refused_by;
	uint64_t whole, whole_direct;	/* bytes of whole blocks, and of them direct ones */
	unsigned int no_fall_back;	/* the rule that keeps a direct piece from another way */
};

void plan_make(const struct plan_in *in, struct plan *p);

/* The direct routes, the best one first. */
#define PLAN_DIRECT 3
extern const uint8_t plan_order[PLAN_DIRECT];

/* The direct route that comes next when `route` has failed; OGDS_ROUTES: none. */
unsigned int plan_next(const struct plan_in *in, unsigned int route);

/*
 * The plan of a read that goes by bar whole wherever the file ends: then file_size need not be
 * known, which takes a system call. False: it may be another, ask plan_make().
 */
bool plan_quick(const struct plan_in *in, struct plan *p);

/* Bytes of [off, off + size) in whole blocks. */
uint64_t plan_whole(int64_t off, uint64_t size);

#endif /* PLAN_H */
