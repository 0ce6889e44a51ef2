// SPDX-License-Identifier: MIT
/* route_nvfs.c - direct, through the nvidia-fs module, into the caller's own memory. */
#include <errno.h>

#define LOG_MODULE "cufio-nvfs"
#include "errmap.h"
#include "log.h"
#include "os.h"
#include "route.h"
#include "rw.h"

static unsigned int probe(const struct plan_in *in)
{
	if (in->kind == GPU_MEM_MANAGED)
		return REASON_MANAGED_MEMORY;
	if (in->file_reason)
		return in->file_reason;
	if (in->module_reason)
		return in->module_reason;
	if (((uint64_t)in->off ^ in->va) % PLAN_BLOCK)
		return REASON_OFFSET_MISMATCH;
	if (in->registered ? in->pin_reason : !in->pin_now)
		return in->pin_reason;
	return REASON_NONE;
}

/* Unregistered memory, pinned for this piece. -EAGAIN: it cannot be, nothing was done. */
static ssize_t run_pinned_now(struct request *rq, int64_t off, uint64_t size, uint64_t va,
			      uint64_t *done)
{
	uint64_t t0 = os->now_ns(), spent;
	struct nvfs_win win;
	size_t n = 0;
	ssize_t r;

	if (device_pin(rq->dev, size))
		return -EAGAIN;
	r = gpu->sync_memops(va, rq->mem.ctx);
	if (!r)
		r = nvfs_win_open(&win, va, size, rq->dev->pdevinfo, NVFS_WIN_TRY);
	if (r) {
		device_unpin(rq->dev, size);
		/* do not try again on this GPU */
		pin_cost_pinned(&rq->dev->cost, size, UINT64_MAX / 1024);
		return -EAGAIN;
	}
	spent = os->now_ns() - t0;
	r = nvfs_win_io(&win, rq->op == OGDS_OP_WRITE, &rq->file->nvfs, size, off, 0, &n);
	*done = n;
	t0 = os->now_ns();
	nvfs_win_close(&win);
	device_unpin(rq->dev, size);
	pin_cost_pinned(&rq->dev->cost, size, spent + os->now_ns() - t0);
	return r;
}

static ssize_t run(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	size_t n = 0;
	ssize_t r;

	if (!rq->buf) {
		r = run_pinned_now(rq, off, size, va, done);
		return r == -EAGAIN ? route_staged.run(rq, off, size, va, done) : r;
	}
	r = nvfs_win_io(&rq->buf->win, rq->op == OGDS_OP_WRITE, &rq->file->nvfs, size, off,
			va - rq->buf->va, &n);
	*done = n;
	return r;
}

const struct route route_nvfs = {
	.size = sizeof(struct route),
	.name = "nvfs",
	.score = 100,
	.direct = true,
	.probe = probe,
	.run = run,
};
