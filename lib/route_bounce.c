// SPDX-License-Identifier: MIT
/* route_bounce.c - host memory and the copy engine: what works everywhere. */
#include <errno.h>

#define LOG_MODULE "cufio-bounce"
#include "driver.h"
#include "errmap.h"
#include "lane.h"
#include "log.h"
#include "probes.h"
#include "route.h"
#include "rw.h"

static unsigned int probe(const struct plan_in *in)
{
	return REASON_NONE;
}

static int cuda_failed(const struct request *rq, size_t n, int r)
{
	log_error("%zu bytes between host and GPU %s: %s: check the GPU with nvidia-smi", n,
		  rq->dev->pci, gpu->error(r));
	return err_cuda(r);
}

static ssize_t read_step(struct request *rq, struct lane *l, int64_t off, size_t n, uint64_t va)
{
	ssize_t got = file_pread(rq->file, l->host, n, off);
	int r;

	PROBE4(cufio-internal-read-bb, rq->file->user_fd, off, n, got);
	if (got <= 0)
		return got;
	r = gpu->to_gpu(&l->s, va, l->host, got);
	if (!r)
		r = gpu->sync(&l->s);
	return r ? cuda_failed(rq, got, r) : got;
}

static ssize_t write_step(struct request *rq, struct lane *l, int64_t off, size_t n, uint64_t va)
{
	int r = gpu->to_host(&l->s, l->host, va, n);

	if (!r)
		r = gpu->sync(&l->s);
	PROBE4(cufio-internal-write-bb, rq->file->user_fd, off, n, r);
	return r ? cuda_failed(rq, n, r) : file_pwrite(rq->file, l->host, n, off);
}

static ssize_t run(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	struct lane *l;
	ssize_t r = 0;
	size_t n;
	int err;

	*done = 0;
	l = lane_take(rq->primary ? rq->dev->ctx : rq->mem.ctx, rq->primary, rq->deferred, &err);
	if (!l)
		return err;
	r = lane_host(l);
	while (!r && *done < size) {
		if (driver_closing()) {
			r = ERR(DRIVER_CLOSING);
			break;
		}
		/* later steps begin at a multiple of 4 KiB, so that O_DIRECT serves them */
		n = lane_bytes() - (off + *done) % PLAN_BLOCK;
		if (n > size - *done)
			n = size - *done;
		r = (rq->op == OGDS_OP_READ ? read_step : write_step)(rq, l, off + *done, n,
								      va + *done);
		if (r <= 0)
			break;
		*done += r;
		/* fewer than asked: the file ended */
		r = (size_t)r < n ? 1 : 0;
	}
	lane_give(l);
	PROBE4(cufio-internal-bb-done, rq->file->user_fd, off, *done, r < 0 ? r : 0);
	return r < 0 ? r : (ssize_t)*done;
}

const struct route route_bounce = {
	.size = sizeof(struct route),
	.name = "bounce",
	.score = 10,
	.edges = true,
	.probe = probe,
	.run = run,
};
