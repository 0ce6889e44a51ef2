// SPDX-License-Identifier: MIT
/* route_host.c - host pointers: nothing but the file system. */
#define LOG_MODULE "cufio-host"
#include "driver.h"
#include "errmap.h"
#include "route.h"
#include "rw.h"

/* One system call moves at most this, so that a close is noticed. */
#define STEP_BYTES ((uint64_t)16 * 1024 * 1024)

static unsigned int probe(const struct plan_in *in)
{
	return in->kind == GPU_MEM_HOST ? REASON_NONE : REASON_HOST_MEMORY;
}

static ssize_t run(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	uint64_t n;
	ssize_t r = 0;

	*done = 0;
	while (*done < size) {
		char *at = (char *)(uintptr_t)va + *done;

		if (driver_closing()) {
			r = ERR(DRIVER_CLOSING);
			break;
		}
		n = size - *done < STEP_BYTES ? size - *done : STEP_BYTES;
		r = rq->op == OGDS_OP_READ ? file_pread(rq->file, at, n, off + *done, size) :
					     file_pwrite(rq->file, at, n, off + *done);
		if (r <= 0)
			break;
		*done += r;
		if ((uint64_t)r < n)
			break;
	}
	return r < 0 ? r : (ssize_t)*done;
}

const struct route route_host = {
	.size = sizeof(struct route),
	.name = "host",
	.score = 1,
	.edges = true,
	.probe = probe,
	.run = run,
};
