// SPDX-License-Identifier: MIT
/* route_staged.c - direct into GPU memory of the library, then one copy inside the GPU. */
#include <errno.h>

#define LOG_MODULE "cufio-stage"
#include "driver.h"
#include "errmap.h"
#include "lane.h"
#include "log.h"
#include "os.h"
#include "route.h"
#include "rw.h"

static unsigned int probe(const struct plan_in *in)
{
	if (in->file_reason)
		return in->file_reason;
	if (in->module_reason)
		return in->module_reason;
	if (in->other_context)
		return REASON_OTHER_CONTEXT;
	return in->staging_reason;
}

static int copy(struct request *rq, struct lane *l, uint64_t dst_va, uint64_t src_va, size_t n)
{
	uint64_t t0 = os->now_ns();
	int r = gpu->inside(&l->s, dst_va, src_va, n);

	if (!r)
		r = gpu->sync(&l->s);
	if (r) {
		log_error("%zu bytes inside GPU %s: %s: check the GPU with nvidia-smi", n,
			  rq->dev->pci, gpu->error(r));
		return err_cuda(r);
	}
	pin_cost_copied(&rq->dev->cost, n, os->now_ns() - t0);
	return 0;
}

/* One fill of the stage: whole blocks around what is left, the bytes asked for of them. */
static ssize_t read_step(struct request *rq, struct stage *st, struct lane *l, int64_t off,
			 uint64_t left, uint64_t va)
{
	size_t skip = off % PLAN_BLOCK, span, n, moved;
	ssize_t r;
	int err;

	span = (skip + left + PLAN_BLOCK - 1) / PLAN_BLOCK * PLAN_BLOCK;
	if (span > st->size)
		span = st->size;
	r = nvfs_win_io(&st->slab->win, false, &rq->file->nvfs, span, off - skip,
			st->va - st->slab->va, &moved);
	if (r < 0)
		return r;
	if ((size_t)r <= skip)
		return 0;
	n = r - skip < left ? r - skip : left;
	err = copy(rq, l, va, st->va + skip, n);
	return err ? err : (ssize_t)n;
}

static ssize_t write_step(struct request *rq, struct stage *st, struct lane *l, int64_t off,
			  uint64_t left, uint64_t va)
{
	size_t n = left < st->size ? left : st->size, moved;
	int r = copy(rq, l, st->va, va, n);

	if (r)
		return r;
	return nvfs_win_io(&st->slab->win, true, &rq->file->nvfs, n, off, st->va - st->slab->va,
			   &moved);
}

static ssize_t run(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	struct stage st;
	struct lane *l;
	ssize_t r = 0;
	int err;

	*done = 0;
	l = lane_take(rq->dev->ctx, true, rq->deferred, &err);
	if (!l)
		return err;
	r = staging_take(&rq->dev->staging, size + off % PLAN_BLOCK, rq->deferred, &st);
	if (r)
		goto give;
	while (*done < size) {
		if (driver_closing()) {
			r = ERR(DRIVER_CLOSING);
			break;
		}
		r = (rq->op == OGDS_OP_READ ? read_step : write_step)(
			rq, &st, l, off + *done, size - *done, va + *done);
		if (r <= 0)
			break;
		*done += r;
	}
	staging_give(&rq->dev->staging, &st);
give:
	lane_give(l);
	return r < 0 ? r : (ssize_t)*done;
}

const struct route route_staged = {
	.size = sizeof(struct route),
	.name = "staged",
	.score = 50,
	.direct = true,
	.edges = true,
	.probe = probe,
	.run = run,
};
