// SPDX-License-Identifier: MIT
/* extents.c - holes by SEEK_DATA and SEEK_HOLE, where the file system has them. */
#include <errno.h>
#include <unistd.h>

#include "extents.h"

void extents_begin(struct extents *e, int fd, uint64_t size, uint64_t most)
{
	*e = (struct extents){ .fd = fd, .size = size, .most = most };
}

/* The stretch that `at` is in: 0 or -errno. */
static int find_stretch(struct extents *e)
{
	off_t data, hole;

	e->in_hole = false;
	e->end = e->size;
	if (e->blind)
		return 0;
	data = lseek(e->fd, (off_t)e->at, SEEK_DATA);
	if (data < 0 && errno == ENXIO) {
		/* nothing but a hole up to the end, wherever that is by now */
		e->in_hole = true;
		return 0;
	}
	if (data < 0 && errno == EINVAL) {
		e->blind = true;
		return 0;
	}
	if (data < 0)
		return -errno;
	data -= data % (off_t)EXTENT_BLOCK;
	if (data > (off_t)e->at) {
		e->in_hole = true;
		e->end = (uint64_t)data < e->size ? (uint64_t)data : e->size;
		return 0;
	}
	/* a stretch of data has a block at least: what is below its start was looked at */
	hole = lseek(e->fd, (off_t)e->at, SEEK_HOLE);
	if (hole < 0)
		return errno == ENXIO ? 0 : -errno;
	e->end = ((uint64_t)hole + EXTENT_BLOCK - 1) / EXTENT_BLOCK * EXTENT_BLOCK;
	if (e->end <= e->at)
		e->end = e->at + EXTENT_BLOCK;
	if (e->end > e->size)
		e->end = e->size;
	return 0;
}

int extents_next(struct extents *e, struct piece *out)
{
	int r;

	if (e->at >= e->size)
		return 0;
	if (e->at >= e->end) {
		r = find_stretch(e);
		if (r)
			return r;
	}
	out->off = e->at;
	out->len = e->end - e->at;
	out->hole = e->in_hole;
	if (!out->hole && out->len > e->most)
		out->len = e->most;
	e->at += out->len;
	return 1;
}
