// SPDX-License-Identifier: MIT
/*
 * plan.c - the planner. Its rules, each with a test in t_plan and a mutant:
 *
 *  1. A read ends at the end of the file.
 *  2. Host memory takes the route host, whole.
 *  3. Whole 4-KiB blocks go by the best route that can take them; the reason beside another
 *     than the best is the best one's.
 *  4. Parts of a block are never written or read direct in place: they are edges, by the CPU.
 *     Staging memory is the library's, so a staged read takes its edges along.
 *  5. A file or a module that cannot go direct makes the whole request one piece, by the CPU:
 *     by bar when it is a read, the memory has one and it is quicker or an edge, else by bounce.
 *  6. strict: no plan whose whole blocks do not all go direct, whatever else is allowed.
 *  7. force_compat_mode: no direct route.
 *  8. A route that "routes" leaves out is not taken.
 *  9. allow_compat_mode false: whole blocks of GPU memory go direct or not at all; edges may
 *     bounce.
 *
 * 6 > 7 > 8 > 9: strict beside force_compat_mode refuses, because each forbids what the
 * other wants.
 */
#include <string.h>

#include "errmap.h"
#include "plan.h"
#include "route.h"

static int64_t up(int64_t off)
{
	return (off + PLAN_BLOCK - 1) / PLAN_BLOCK * PLAN_BLOCK;
}

static int64_t down(int64_t off)
{
	return off / PLAN_BLOCK * PLAN_BLOCK;
}

uint64_t plan_whole(int64_t off, uint64_t size)
{
	int64_t from = up(off), to = down(off + size);

	return to > from ? to - from : 0;
}

static void add(struct plan *p, int64_t off, int64_t end, unsigned int route,
		unsigned int reason)
{
	struct ogds_piece *q;

	if (end <= off)
		return;
	q = &p->piece[p->n++];
	q->file_off = off;
	q->size = end - off;
	q->route = route;
	q->reason = reason;
	if (route_table[route]->direct)
		p->whole_direct += plan_whole(off, end - off);
}

static void refuse(struct plan *p, unsigned int rule, unsigned int reason)
{
	p->n = 0;
	p->whole_direct = 0;
	p->error = ERR(IO_NOT_SUPPORTED);
	p->reason = reason;
	p->refused_by = rule;
}

static bool allowed(const struct plan_in *in, unsigned int route)
{
	return in->routes & 1u << route;
}

static unsigned int ask(const struct plan_in *in, unsigned int route)
{
	if (in->force_compat)
		return REASON_FORCE_COMPAT;
	if (!allowed(in, route))
		return REASON_ROUTE_DENIED;
	return route_table[route]->probe(in);
}

/* The direct routes, by score; t_plan holds it against the table. */
const uint8_t plan_order[PLAN_DIRECT] = { OGDS_ROUTE_NVFS, OGDS_ROUTE_P2PDMA, OGDS_ROUTE_STAGED };

/*
 * The best direct route that takes the whole blocks; OGDS_ROUTES: none. Why p2pdma is not it
 * explains something to who wants no other; to the rest the others' reasons do.
 */
static unsigned int choose(const struct plan_in *in, unsigned int *reason)
{
	bool asked = !allowed(in, OGDS_ROUTE_NVFS) && !allowed(in, OGDS_ROUTE_STAGED);
	unsigned int i, why;

	*reason = REASON_NONE;
	for (i = 0; i < PLAN_DIRECT; i++) {
		why = ask(in, plan_order[i]);
		if (why == REASON_NONE)
			return plan_order[i];
		/* that it is not allowed explains less than a refusal */
		if (!*reason || (why != REASON_ROUTE_DENIED &&
				 (plan_order[i] == OGDS_ROUTE_P2PDMA) == asked))
			*reason = why;
	}
	return OGDS_ROUTES;
}

unsigned int plan_next(const struct plan_in *in, unsigned int route)
{
	bool behind = false;
	unsigned int i;

	for (i = 0; i < PLAN_DIRECT; i++) {
		if (behind && ask(in, plan_order[i]) == REASON_NONE)
			return plan_order[i];
		behind |= plan_order[i] == route;
	}
	return OGDS_ROUTES;
}

/* One piece, or an edge, the CPU's way. */
static void indirect(const struct plan_in *in, struct plan *p, int64_t off, int64_t end,
		     unsigned int reason)
{
	bool bar = in->op == OGDS_OP_READ && in->bar && allowed(in, OGDS_ROUTE_BAR);
	bool bounce = allowed(in, OGDS_ROUTE_BOUNCE);

	if (end <= off || p->error)
		return;
	if (!bar && !bounce)
		refuse(p, REASON_ROUTE_DENIED, REASON_ROUTE_DENIED);
	else if (bar && (!bounce || in->bar_quicker || end - off < PLAN_BLOCK))
		add(p, off, end, OGDS_ROUTE_BAR, reason);
	else
		add(p, off, end, OGDS_ROUTE_BOUNCE, reason);
}

static void cut(const struct plan_in *in, struct plan *p, int64_t end, unsigned int route,
		unsigned int reason)
{
	int64_t from = up(in->off), to = down(end);
	unsigned int tail = in->op == OGDS_OP_READ && end == in->file_size ? REASON_EOF_BLOCK :
									     REASON_EDGE;

	if (route_table[route]->edges && in->op == OGDS_OP_READ) {
		add(p, in->off, end, route, reason);
		return;
	}
	indirect(in, p, in->off, from, REASON_EDGE);
	if (!p->error)
		add(p, from, to, route, reason);
	indirect(in, p, to, end, tail);
}

bool plan_quick(const struct plan_in *in, struct plan *p)
{
	unsigned int reason;

	if (in->op != OGDS_OP_READ || !in->bar || !in->bar_quicker || in->strict ||
	    in->kind != GPU_MEM_DEVICE || !allowed(in, OGDS_ROUTE_BAR) ||
	    (!in->allow_compat && !in->force_compat) || choose(in, &reason) != OGDS_ROUTES)
		return false;
	/* what plan_make() leaves, but for pieces that are not there */
	p->n = 0;
	p->error = 0;
	p->reason = p->refused_by = p->no_fall_back = REASON_NONE;
	p->whole = plan_whole(in->off, in->size);
	p->whole_direct = 0;
	add(p, in->off, in->off + in->size, OGDS_ROUTE_BAR, p->whole ? reason : REASON_EDGE);
	return true;
}

void plan_make(const struct plan_in *in, struct plan *p)
{
	int64_t end = in->off + in->size;
	unsigned int route, reason;

	memset(p, 0, sizeof(*p));
	if (in->op == OGDS_OP_READ && end > in->file_size)
		end = in->file_size > in->off ? in->file_size : in->off;
	if (end == in->off)
		return;
	if (in->kind == GPU_MEM_HOST) {
		if (allowed(in, OGDS_ROUTE_HOST))
			add(p, in->off, end, OGDS_ROUTE_HOST, REASON_HOST_MEMORY);
		else
			refuse(p, REASON_ROUTE_DENIED, REASON_ROUTE_DENIED);
		return;
	}
	p->whole = plan_whole(in->off, end - in->off);
	if (in->strict)
		p->no_fall_back = REASON_STRICT;
	else if (!in->allow_compat)
		p->no_fall_back = REASON_COMPAT_FORBIDDEN;
	else if (!allowed(in, OGDS_ROUTE_BOUNCE))
		p->no_fall_back = REASON_ROUTE_DENIED;
	if (!p->whole) {
		indirect(in, p, in->off, end,
			 in->op == OGDS_OP_READ && end == in->file_size ? REASON_EOF_BLOCK :
									REASON_EDGE);
		return;
	}
	route = choose(in, &reason);
	if (route != OGDS_ROUTES)
		cut(in, p, end, route, reason);
	else if (in->strict)
		refuse(p, REASON_STRICT, reason);
	else if (!in->allow_compat && !in->force_compat)
		refuse(p, REASON_COMPAT_FORBIDDEN, reason);
	else
		indirect(in, p, in->off, end, reason);
}
