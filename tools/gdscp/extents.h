/* SPDX-License-Identifier: MIT */
/* extents.h - a file in pieces, data and holes one after another. */
#ifndef GDSCP_EXTENTS_H
#define GDSCP_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#define EXTENT_BLOCK ((uint64_t)4096)

struct piece {
	uint64_t off, len;
	bool hole;
};

struct extents {
	int fd;			/* its offset is moved */
	uint64_t size;		/* of the file; nothing behind it is looked at */
	uint64_t most;		/* bytes of a piece of data: whole blocks */
	uint64_t at, end;	/* next piece; end of the stretch that it is in */
	bool in_hole;
	bool blind;		/* the file system tells of no holes: all is data */
};

void extents_begin(struct extents *e, int fd, uint64_t size, uint64_t most);

/* 1, 0 at the end, or -errno. Data begins and ends at whole blocks, but for the end of the file. */
int extents_next(struct extents *e, struct piece *out);

#endif /* GDSCP_EXTENTS_H */
