/* SPDX-License-Identifier: MIT */
/*
 * stamp.h - content that is a function of the place in the file alone, byte by byte, so
 * that whoever reads later, in pieces of any size, knows what must stand there.
 *
 * Each 4-KiB block begins with a magic word and its number; all further words depend on
 * the number, so a block that landed elsewhere can be named. Words are little endian.
 */
#ifndef GDSIO_STAMP_H
#define GDSIO_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAMP_BLOCK 4096

struct stamp_miss {
	uint64_t off;		/* file offset of the first wrong byte */
	size_t len;		/* bytes from there that `want` and `found` have, 1 to 8 */
	uint8_t want[8];
	uint8_t found[8];
	bool other;		/* the wrong byte's block has the stamp of another place: */
	uint64_t other_off;	/* that one */
};

/* What stands at [off, off + len) of the file. */
void stamp_fill(void *buf, size_t len, uint64_t off);

/* 0, or -EILSEQ and the first byte that differs. */
int stamp_check(const void *buf, size_t len, uint64_t off, struct stamp_miss *miss);

#endif /* GDSIO_STAMP_H */
