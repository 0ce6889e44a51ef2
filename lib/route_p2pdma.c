// SPDX-License-Identifier: MIT
/*
 * route_p2pdma.c - direct by plain O_DIRECT on the GPU's own pages, which nvidia-fs has mapped into
 * the process. The drive's driver needs no hook, and md hands such pages on.
 *
 * A file system may move bytes by CPU instead: they are right all the same, for a CPU that touches
 * such a page touches GPU memory, but slow and not direct. So what a drive has moved is looked up
 * after each step, where the module notes it; the first block that is not noted ends the piece as a
 * hole does, and another route moves it, counted as its own.
 */
#include <errno.h>
#include <string.h>

#define LOG_MODULE "cufio-p2p"
#include "driver.h"
#include "errmap.h"
#include "os.h"
#include "probes.h"
#include "route.h"
#include "route_p2pdma.h"
#include "rw.h"

/* One system call moves at most this, so that a close is noticed. */
#define STEP_BYTES ((uint64_t)16 * 1024 * 1024)

#define SECTOR 512
#define ALL_SECTORS 0xff

static unsigned int probe(const struct plan_in *in)
{
	if (in->kind == GPU_MEM_MANAGED)
		return REASON_MANAGED_MEMORY;
	if (in->file_pages_reason)
		return in->file_pages_reason;
	if (in->module_reason)
		return in->module_reason;
	if (((uint64_t)in->off ^ in->va) % PLAN_BLOCK)
		return REASON_OFFSET_MISMATCH;
	return in->registered ? in->pages_reason : REASON_NOT_REGISTERED;
}

/* Of n bytes at the front, how many a drive has moved: whole blocks, or all. */
static size_t by_drive(const uint8_t *seen, size_t n)
{
	size_t whole = n / PLAN_BLOCK, i = 0;
	unsigned int rest = (n % PLAN_BLOCK + SECTOR - 1) / SECTOR;

	while (i < whole && seen[i] == ALL_SECTORS)
		i++;
	/* behind the last whole block may be somebody else's, or nothing */
	if (i == whole && (!rest || !(~seen[i] & ((1u << rest) - 1))))
		return n;
	return i * PLAN_BLOCK;
}

static ssize_t step(struct request *rq, char *at, uint8_t *seen, size_t n, int64_t off)
{
	const struct file *f = rq->file;
	ssize_t r;

	memset(seen, 0, n / PLAN_BLOCK);
	r = rq->op == OGDS_OP_READ ? os->pread(f->fd_direct, at, n, off) :
				     os->pwrite(f->fd_direct, at, n, off);
	PROBE4(cufio-internal-io-done, f->fd_direct, off, n, r);
	/* the end of a file ends a read; what ends a write is an error that was lost */
	return r || rq->op == OGDS_OP_READ ? r : -EIO;
}

/* Where memory at va stands in the process, and what is noted of it. */
static char *pages_at(const struct request *rq, uint64_t va, uint8_t **seen)
{
	const struct nvfs_win *win = &rq->buf->win;
	char *at = win->pages + (va - win->gpu_va);

	*seen = (uint8_t *)win->seen_map + (at - (char *)win->pages_map) / PLAN_BLOCK;
	return at;
}

void p2pdma_io(const struct request *rq, int64_t off, size_t size, uint64_t va, struct os_io *io)
{
	uint8_t *seen;

	memset(io, 0, sizeof(*io));
	io->fd = rq->file->fd_direct;
	io->write = rq->op == OGDS_OP_WRITE;
	io->buf = pages_at(rq, va, &seen);
	io->size = size;
	io->off = off;
	memset(seen, 0, size / PLAN_BLOCK);
}

bool p2pdma_moved(const struct request *rq, const struct os_io *io, uint64_t va, ssize_t r)
{
	uint8_t *seen;

	PROBE4(cufio-internal-io-done, io->fd, io->off, io->size, r);
	pages_at(rq, va, &seen);
	return r == (ssize_t)io->size && by_drive(seen, io->size) == io->size;
}

static ssize_t run(struct request *rq, int64_t off, uint64_t size, uint64_t va, uint64_t *done)
{
	size_t n, direct;
	uint8_t *seen;
	char *at;
	ssize_t r;

	*done = 0;
	while (*done < size) {
		if (driver_closing())
			return ERR(DRIVER_CLOSING);
		n = size - *done < STEP_BYTES ? size - *done : STEP_BYTES;
		at = pages_at(rq, va + *done, &seen);
		r = step(rq, at, seen, n, off + *done);
		if (r <= 0)
			return r < 0 ? r : (ssize_t)*done;
		direct = by_drive(seen, r);
		*done += direct;
		if (direct < (size_t)r)
			return -ENOTBLK;
		/* a read of less than whole blocks has met the end of the file */
		if (r % PLAN_BLOCK)
			break;
	}
	return *done;
}

const struct route route_p2pdma = {
	.size = sizeof(struct route),
	.name = "p2pdma",
	.score = 90,
	.direct = true,
	.probe = probe,
	.run = run,
};
