// SPDX-License-Identifier: MIT
/*
 * prop_judge.c - which way a request went, and whether that is the one that the cell expects.
 *
 * Whole 4-KiB blocks have to take the expected route, with the expected reason where it is not the
 * one that was asked for. What the model knows better than the table is excepted: see README.md.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "prop.h"

static const char * const took[TOOKS] = {
	[TOOK_NVFS] = "nvfs", [TOOK_P2PDMA] = "p2pdma", [TOOK_STAGED] = "staged",
	[TOOK_BAR] = "bar", [TOOK_BOUNCE] = "bounce", [TOOK_CPU] = "cpu", [TOOK_NONE] = "none",
};

const char *took_name(unsigned int t)
{
	return t < TOOKS ? took[t] : "unknown";
}

static bool is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static void count(struct prop *p, const char *route, const char *reason, uint64_t bytes)
{
	struct tally *t = p->tally;

	while (t < p->tally + TALLIES - 1 && t->route && !(is(t->route, route) &&
							   is(t->reason, reason)))
		t++;
	t->route = route;
	t->reason = reason;
	t->requests++;
	t->bytes += bytes;
}

/* Of direct routes: the one that this cell may take; TOOKS: none. */
static unsigned int direct_takes(const struct prop *p)
{
	unsigned int t;

	for (t = TOOK_NVFS; t <= TOOK_STAGED; t++)
		if (p->takes[t])
			return t;
	return TOOKS;
}

static bool mismatch(const struct prop *p, const struct request *r)
{
	return (p->way == WAY_NVFS || p->way == WAY_P2PDMA) &&
	       ((p->mem + r->target) ^ (uint64_t)r->off) % T_BLOCK;
}

/* Reasons that the library learns when a request runs; others stand before the first one. */
static bool learnt(const char *reason)
{
	return reason && (is(reason, "R-MODULE-REFUSED") || is(reason, "R-PAGES-DEVICE"));
}

/*
 * Why this request may go another way than the cell's, or NULL. *must: it has to.
 */
static const char *exception(const struct prop *p, const struct request *r, bool *must)
{
	bool sure = model_sure(p, r->off, r->size);

	*must = false;
	if (mismatch(p, r) && (direct_takes(p) < TOOKS || learnt(p->reason))) {
		*must = direct_takes(p) < TOOKS && !p->reason;
		return "R-OFFSET-MISMATCH";
	}
	if (direct_takes(p) == TOOKS || sure)
		return NULL;
	if (!r->write)
		return "R-HOLE";
	return p->write_hole ? "R-FS-CPU" : NULL;
}

/*
 * The library asks SEEK_HOLE for the name of what no drive moved, and that takes unwritten blocks
 * for data when somebody has read them through the page cache.
 */
static bool excused(const char *other, const char *reason)
{
	return other && (is(reason, other) || (is(other, "R-HOLE") && is(reason, "R-FS-CPU")));
}

static void judged(struct prop *p, struct request *r, unsigned int t, const char *reason)
{
	if (t >= TOOKS || !p->takes[t])
		bad(p, "took %s (%s), expected %s%s%s", took_name(t), reason,
		    took_name(direct_takes(p) < TOOKS ? direct_takes(p) :
			      p->takes[TOOK_BAR] ? TOOK_BAR : TOOK_BOUNCE),
		    p->reason ? " for " : "", p->reason ? p->reason : "");
	if (t > TOOK_STAGED && p->way != WAY_RAW) {
		if (!p->reason || !is(reason, p->reason))
			bad(p, "the reason is %s, expected %s", reason,
			    p->reason ? p->reason : "none");
		p->why = p->reason;
	}
	p->judged[t]++;
	r->route = took_name(t);
	r->reason = reason;
}

/* -- the library's report -- */

static void judge_refused(struct prop *p, struct request *r, const struct ogds_report *rep)
{
	const char *reason = ogds_reason_id(rep->reason), *other;
	bool must;

	if (r->err != CU_FILE_IO_NOT_SUPPORTED || !p->strict)
		bad(p, "failed: %d: %s (%s)", r->err, IS_CUFILE_ERR(r->err) ?
		    cufileop_status_error(r->err) : strerror(r->err), reason);
	if (!is(ogds_reason_id(rep->refused_by), "R-STRICT"))
		bad(p, "refused by %s, expected R-STRICT", ogds_reason_id(rep->refused_by));
	r->refused = true;
	count(p, "refused", reason, 0);
	other = exception(p, r, &must);
	if (excused(other, reason)) {
		r->touched = is(other, "R-HOLE") || is(other, "R-FS-CPU");
		return;
	}
	judged(p, r, TOOK_NONE, reason);
}

/*
 * Strict, and a piece in the middle could not go direct when it ran: what lies before it counts, as
 * with pread.
 */
static bool refused_later(struct prop *p, struct request *r, const struct ogds_report *rep,
			  size_t moved)
{
	const char *reason = ogds_reason_id(rep->reason), *other;
	bool must;

	if (!p->strict || r->got >= (ssize_t)moved ||
	    !is(ogds_reason_id(rep->refused_by), "R-STRICT"))
		return false;
	other = exception(p, r, &must);
	/* the part of a block in front was moved before that was learnt */
	if (must || (!excused(other, reason) &&
		     !(learnt(p->reason) && is(reason, p->reason) && r->got < T_BLOCK)))
		return false;
	r->refused = r->touched = true;
	count(p, "refused", reason, r->got);
	return true;
}

static void judge_library(struct prop *p, struct request *r, size_t moved)
{
	struct ogds_report rep = OGDS_REPORT_INIT;
	unsigned int i, direct = direct_takes(p), t = TOOKS;
	const char *reason, *other;
	uint64_t sum = 0;
	bool must;

	if (ogds_last_io(&rep) || !rep.sequence)
		bad(p, "ogds_last_io has nothing of it");
	if (r->got < 0) {
		judge_refused(p, r, &rep);
		return;
	}
	if (refused_later(p, r, &rep, moved))
		return;
	if (r->got != (ssize_t)moved)
		bad(p, "returned %zd, expected %zu (%s)", r->got, moved, ogds_reason_id(rep.reason));
	reason = ogds_reason_id(rep.reason);
	for (i = 0; i < OGDS_ROUTES; i++) {
		sum += rep.bytes[i];
		if (rep.bytes[i])
			count(p, ogds_route_name(i), OGDS_DIRECT_MASK & 1u << i ? "-" :
			      rep.whole_direct < rep.whole_bytes ? reason : "R-EDGE", rep.bytes[i]);
	}
	if (rep.result != r->got || sum != moved || rep.whole_bytes != r->whole ||
	    rep.whole_direct > rep.whole_bytes)
		bad(p, "the report is of %" PRId64 " bytes, %" PRIu64 " by routes, %" PRIu64
		    " of whole blocks, %" PRIu64 " of these direct; expected %zu, %zu",
		    rep.result, sum, rep.whole_bytes, rep.whole_direct, moved, r->whole);
	if (!r->whole)
		return;
	other = exception(p, r, &must);
	if (rep.whole_direct == r->whole) {
		for (i = TOOK_NVFS; i <= TOOK_STAGED; i++)
			if (rep.bytes[i])
				t = t == TOOKS ? i : TOOKS + 1;
		if (must)
			bad(p, "direct by %s, though %s stands against it", took_name(t), other);
		if (t != direct && direct < TOOKS)
			bad(p, "direct by %s, expected %s", took_name(t), took_name(direct));
		judged(p, r, t, "-");
		return;
	}
	/* a part direct, a part not: of a cell that is direct, around an exception */
	if (excused(other, reason) && (p->takes[TOOK_NVFS] || p->takes[TOOK_P2PDMA] ||
					    p->takes[TOOK_STAGED] || learnt(p->reason)))
		return;
	t = !rep.bytes[OGDS_ROUTE_BOUNCE] ? TOOK_BAR : TOOK_BOUNCE;
	/* stores are for reads, and for all of them as long as they are small */
	if (p->way == WAY_BAR && (t == TOOK_BAR) == r->write && !(p->pins && !r->write))
		bad(p, "took %s", took_name(t));
	judged(p, r, t, reason);
}

/* -- the module's witness -- */

static void judge_raw(struct prop *p, struct request *r, size_t moved)
{
	bool sure = model_sure(p, r->off, r->size);
	bool maybe = !sure && (!r->write || p->write_hole);
	const char *route;

	if (r->got < 0) {
		/* -ENOTBLK: a sector that no driver mapped; -EOPNOTSUPP: before a byte moved */
		r->refused = p->strict && (r->err == ENOTBLK || r->err == EOPNOTSUPP);
		if (!r->refused)
			bad(p, "failed: %s: %s", nvfs_errname(r->err), nvfs_error());
		r->touched = r->err == ENOTBLK;
		count(p, "refused", nvfs_errname(r->err), 0);
		if (r->err == ENOTBLK && maybe && p->takes[TOOK_NVFS])
			return;
		if (r->err == ENOTBLK)
			bad(p, "a sector was not mapped by any driver, and all had data");
		judged(p, r, TOOK_NONE, "-");
		return;
	}
	if (r->got != (ssize_t)moved)
		bad(p, "returned %zd, expected %zu", r->got, moved);
	if (r->dma + r->cpu < moved)
		bad(p, "the witness has %" PRIu64 " bytes by DMA and %" PRIu64 " by CPU of %zu",
		    r->dma, r->cpu, moved);
	if (!moved)
		return;
	route = r->dma >= moved ? "nvfs" : !r->dma ? "cpu" : "nvfs+cpu";
	count(p, route, "-", moved);
	if (p->takes[TOOK_NVFS] && maybe && r->dma < moved)
		return;
	judged(p, r, r->dma >= moved && !r->cpu ? TOOK_NVFS : !r->dma ? TOOK_CPU : TOOKS, "-");
}

void judge(struct prop *p, struct request *r)
{
	off_t from = (r->off + T_BLOCK - 1) & ~(T_BLOCK - 1L), to;
	size_t moved = r->size;

	if (!r->write)
		moved = r->off < p->end ? least(r->size, p->end - r->off) : 0;
	to = (r->off + moved) & ~(T_BLOCK - 1L);
	r->whole = from < to ? to - from : 0;
	if (p->way == WAY_RAW)
		judge_raw(p, r, moved);
	else
		judge_library(p, r, moved);
}

/* -- at the end -- */

void tally_print(const struct prop *p)
{
	unsigned int i, n = 0;

	for (i = 0; i < TALLIES && p->tally[i].route; i++)
		printf("route %s %s %lu requests %" PRIu64 " bytes\n", p->tally[i].route,
		       p->tally[i].reason, p->tally[i].requests, p->tally[i].bytes);
	printf("%s: ", p->child ? "child took" : "took");
	for (i = 0; i < TOOKS; i++)
		if (p->judged[i])
			printf("%s%s", n++ ? "+" : "", took[i]);
	printf("%s %s\n", n ? "" : "nothing", p->why ? p->why : "-");
}

void judge_all(const struct prop *p)
{
	unsigned int t;

	for (t = 0; t < TOOKS; t++)
		if (p->takes[t] && !p->judged[t])
			bad(p, "no request of whole blocks took %s", took[t]);
}
