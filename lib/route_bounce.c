// SPDX-License-Identifier: MIT
/* route_bounce.c - host memory and the copy engine: what works everywhere. */
#include "bounce.h"
#include "probes.h"
#include "route.h"
#include "rw.h"

static unsigned int probe(const struct plan_in *in)
{
	return REASON_NONE;
}

static ssize_t run(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	ssize_t r = rq->primary ? bounce_flow(rq, off, size, va, done) :
				  bounce_steps(rq, off, size, va, done);

	PROBE4(cufio-internal-bb-done, rq->file->user_fd, off, *done, r < 0 ? r : 0);
	return r;
}

const struct route route_bounce = {
	.size = sizeof(struct route),
	.name = "bounce",
	.score = 10,
	.edges = true,
	.probe = probe,
	.run = run,
};
