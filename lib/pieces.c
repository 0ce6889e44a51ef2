// SPDX-License-Identifier: MIT
/*
 * pieces.c - a plan is carried out: piece after piece, each by its route; what a direct route fails
 * at goes by another one, if it may, and all of it is counted.
 */
#include <errno.h>

#define LOG_MODULE "cufio"
#include "driver.h"
#include "errmap.h"
#include "log.h"
#include "os.h"
#include "pieces.h"
#include "probes.h"
#include "route.h"
#include "rw.h"
#include "uapi/nvfs.h"

/* More than a request of the module has: one that failed lies in as many bytes. */
#define STEP ((uint64_t)NVFS_MAX_SHADOW_SIZE)

/* Does a whole block of these lie in a hole, or a part of one? A drive reads no less. */
static bool in_hole(const struct request *rq, int64_t off, uint64_t size)
{
	int64_t from = off / PLAN_BLOCK * PLAN_BLOCK;
	int64_t to = (off + size + PLAN_BLOCK - 1) / PLAN_BLOCK * PLAN_BLOCK;

	return os->hole(rq->file->nvfs.fd, from, to - from) == 1;
}

/* Why a direct piece failed at off, of `size` bytes: known causes by their own name. */
static unsigned int why_failed(struct request *rq, const struct ogds_piece *q, int64_t off,
			       uint64_t size, int err)
{
	unsigned int why = REASON_NONE;

	switch (err) {
	case -EREMOTEIO:
	case -EINVAL:
		/* the kernel's verdict on drive and GPU: it refuses pages, or to map them */
		if (q->route == OGDS_ROUTE_P2PDMA)
			return REASON_PAGES_DEVICE;
		break;
	case -ENOTBLK:
		/* a name only: the CPU reads it again whatever it was */
		if (rq->op == OGDS_OP_READ && in_hole(rq, off, size))
			return REASON_HOLE;
		return REASON_FS_CPU;
	case -EOPNOTSUPP:
		return REASON_MODULE_REFUSED;
	case -ENOMEM:
		/* the first request that is staged on a GPU is the one that learns it cannot be */
		if (rq->dev && q->route != OGDS_ROUTE_BOUNCE)
			why = staging_reason(&rq->dev->staging);
	}
	return why ? why : REASON_DIRECT_FAILED;
}

/* A direct route failed, and another one may do it: OGDS_ROUTES: none. Learns, and says so. */
static unsigned int other_direct(struct request *rq, const struct ogds_piece *q, int err,
				 unsigned int why)
{
	const struct facts_reason_text *t = facts_reason(why);
	unsigned int next;

	if (why == REASON_PAGES_DEVICE) {
		device_set_no_p2p(rq->dev, file_device(rq->file));
	} else if (why == REASON_MODULE_REFUSED) {
		atomic_store(&rq->file->refused, why);
		rq->in.file_reason = why;
		rw_find_pages(rq, &rq->in);
	} else {
		return OGDS_ROUTES;
	}
	next = plan_next(&rq->in, q->route);
	if (next != OGDS_ROUTES && file_say_once(rq->file, why))
		log_notice("%s: %s: %llu bytes at %lld by %s: %s; done by %s (%s: %s; %s)",
			   rw_call_name(rq->op), rq->file->name, (unsigned long long)q->size,
			   (long long)q->file_off, route_table[q->route]->name, errmap_text(err),
			   route_table[next]->name, t->id, t->text, t->remedy);
	return next;
}

/* A direct route failed. 0: the CPU does it; else the error that the request ends with. */
static int fall_back(struct request *rq, const struct plan *p, const struct ogds_piece *q, int err,
		     unsigned int why)
{
	const struct facts_reason_text *t = facts_reason(why);

	/* what another route cannot mend */
	if (err == -ENOSPC || err == -EDQUOT || err == -EFBIG || err == ERR(DRIVER_CLOSING))
		return err;
	if (driver_closing())
		return ERR(DRIVER_CLOSING);
	if (p->no_fall_back) {
		rq->rep->reason = why;
		rq->rep->refused_by = p->no_fall_back;
		log_error("%s: %s: %llu bytes at %lld by %s: %s (%s: %s; %s): %s: %s",
			  rw_call_name(rq->op), rq->file->name, (unsigned long long)q->size,
			  (long long)q->file_off, route_table[q->route]->name, errmap_text(err),
			  t->id, t->text, t->remedy, facts_reason(p->no_fall_back)->id,
			  facts_reason(p->no_fall_back)->text);
		/* no fault of the drive, but a known cause: what the next plan would say, too */
		return why != REASON_DIRECT_FAILED ? ERR(IO_NOT_SUPPORTED) : err;
	}
	if (file_say_once(rq->file, why))
		log_notice("%s: %s: %llu bytes at %lld by %s: %s; done through host memory (%s: %s; %s)",
			   rw_call_name(rq->op), rq->file->name, (unsigned long long)q->size,
			   (long long)q->file_off, route_table[q->route]->name, errmap_text(err),
			   t->id, t->text, t->remedy);
	return 0;
}

static void count(struct ogds_report *rep, unsigned int route, int64_t off, uint64_t n,
		  unsigned int reason)
{
	uint64_t whole = plan_whole(off, n);

	rep->bytes[route] += n;
	if (route == OGDS_ROUTE_HOST)
		return;
	rep->whole_bytes += whole;
	rep->edge_bytes += n - whole;
	if (OGDS_DIRECT_MASK & 1u << route)
		rep->whole_direct += whole;
	else if (whole && !rep->reason)
		rep->reason = reason;
}

/* The piece is over: n bytes, or an error. */
static void probe_piece(const struct request *rq, unsigned int route, int64_t off, uint64_t size,
			uint64_t va, int64_t n)
{
	uint64_t at = va - (rq->buf ? rq->buf->va : rq->dev ? rq->mem.base_va : va);
	int fd = rq->file->user_fd, gpu_id = rq->dev ? rq->dev->index : -1;

	if (route_table[route]->direct) {
		if (rq->op == OGDS_OP_READ)
			PROBE6(cufio_gds_read, fd, off, size, at, n, gpu_id);
		else
			PROBE6(cufio_gds_write, fd, off, size, at, n, gpu_id);
		return;
	}
	if (rq->op == OGDS_OP_READ) {
		PROBE6(cufio_px_read, fd, off, size, at, n, gpu_id);
		return;
	}
	PROBE6(cufio_px_write, fd, off, size, at, n, gpu_id);
	if ((off | size) % PLAN_BLOCK)
		PROBE6(cufio_gds_unaligned_write, fd, off, size, at, n, gpu_id);
}

/* Each request comes here: no call. */
static inline void note(struct request *rq, unsigned int route, int64_t off, uint64_t size,
			uint64_t va, ssize_t r, uint64_t n, unsigned int reason)
{
	struct facts_nvfs v;

	probe_piece(rq, route, off, size, va, r < 0 && !n ? r : (int64_t)n);
	count(rq->rep, route, off, n, reason);
	if (!route_table[route]->direct || !n)
		return;
	nvfs_version(&v);
	if (v.ours)
		rq->rep->witnessed += n;
}

void pieces_note(struct request *rq, unsigned int route, int64_t off, uint64_t size, uint64_t va,
		 ssize_t r, uint64_t n, unsigned int reason)
{
	note(rq, route, off, size, va, r, n, reason);
}

/* Bytes that one route did of a piece, from `done` on; *err: 0, or how it ended. */
static uint64_t run_route(struct request *rq, unsigned int route, const struct ogds_piece *q,
			  uint64_t done, uint64_t size, uint64_t va, unsigned int reason, int *err)
{
	bool measured = rq->bar && size >= WAY_MEASURED && !rq->by_drive &&
			(route == OGDS_ROUTE_BAR || route == OGDS_ROUTE_BOUNCE);
	uint64_t n = 0, began = measured || rq->spent ? os->now_ns() : 0, ns = 0;
	ssize_t r;

	r = route_table[route]->run(rq, q->file_off + done, size, va + done, &n);
	if (began)
		ns = os->now_ns() - began;
	if (measured && n == size)
		way_took(&rq->dev->ways, route == OGDS_ROUTE_BAR ? WAY_STORE : WAY_COPY, size, ns);
	if (rq->spent) {
		rq->spent->ns[route] += ns;
		rq->spent->failed |= (unsigned int)(r < 0) << route;
	}
	note(rq, route, q->file_off + done, size, va + done, r, n, reason);
	*err = r < 0 ? r : 0;
	return n;
}

/* Stores through BAR1 are no way, or not now: the rest of the piece by the copy engine. */
static uint64_t without_bar(struct request *rq, const struct ogds_piece *q,
			    uint64_t done, uint64_t va, int *err)
{
	if (!(driver_config()->routes & 1u << OGDS_ROUTE_BOUNCE)) {
		rq->rep->refused_by = REASON_ROUTE_DENIED;
		*err = ERR(IO_NOT_SUPPORTED);
		return 0;
	}
	return run_route(rq, OGDS_ROUTE_BOUNCE, q, done, q->size - done, va, q->reason, err);
}

/* Not where staging had no memory to begin with: nothing was asked of a drive. */
static bool was_tried(unsigned int why)
{
	return why != REASON_PIN_LIMIT && why != REASON_PIN_FAILED && why != REASON_PIN_GATED &&
	       why != REASON_NO_STAGING;
}

/* Bytes that failed on this route, and are done again by another one */
static void count_retried(struct request *rq, unsigned int route, uint64_t bytes)
{
	rq->rep->retried += bytes;
	if (rq->spent)
		rq->spent->retried[route] += bytes;
}

/*
 * One piece. Bytes moved, or an error with nothing moved. Fewer bytes than asked: the end
 * of the file, or an error after the first ones (*err). Where no drive can do a part (a
 * hole), the CPU does that part and the drive goes on behind it.
 */
static uint64_t run_piece(struct request *rq, const struct plan *p, const struct ogds_piece *q,
			  uint64_t va, int *err)
{
	unsigned int why, next, reason = q->reason;
	struct ogds_piece other = *q;
	uint64_t done = 0, n, left;
	int failed;

	for (;;) {
		done += run_route(rq, q->route, q, done, q->size - done, va, reason, err);
		if (*err == -EAGAIN && q->route == OGDS_ROUTE_BAR)
			return done + without_bar(rq, q, done, va, err);
		if (!*err || !route_table[q->route]->direct)
			return done;
		left = q->size - done;
		why = why_failed(rq, q, q->file_off + done, left < STEP ? left : STEP, *err);
		failed = *err;
		next = other_direct(rq, q, failed, why);
		if (next != OGDS_ROUTES) {
			count_retried(rq, q->route, left);
			other.route = next;
			q = &other;
			reason = why;
			continue;
		}
		*err = fall_back(rq, p, q, failed, why);
		if (*err)
			return done;
		if ((why == REASON_HOLE || why == REASON_FS_CPU) && left > STEP)
			left = STEP;
		if (was_tried(why))
			count_retried(rq, q->route, left);
		PROBE5(cufio_px_io_retry, rq->file->user_fd, q->file_off + done, left, failed,
		       rq->dev->index);
		n = run_route(rq, OGDS_ROUTE_BOUNCE, q, done, left, va, why, err);
		done += n;
		if (*err || n < left || done == q->size)
			return done;
	}
}

ssize_t pieces_run(struct request *rq, const struct plan *p, int64_t off, uint64_t va)
{
	uint64_t total = 0, n;
	unsigned int i;
	int err = 0;

	for (i = 0; i < p->n && !err; i++) {
		const struct ogds_piece *q = &p->piece[i];

		if (driver_closing())
			err = ERR(DRIVER_CLOSING);
		else
			total += n = run_piece(rq, p, q, va + (q->file_off - off), &err);
		if (!err && n < q->size)
			break;
	}
	if (err && (!total || err == ERR(DRIVER_CLOSING))) {
		log_error("%s: %s at %lld: %s", rw_call_name(rq->op), rq->file->name, (long long)off,
			  errmap_text(err));
		return err;
	}
	return total;
}
