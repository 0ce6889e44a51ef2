/* SPDX-License-Identifier: MIT */
/*
 * stamp.h - content that is a function of the place in the file and of the run that wrote
 * it, byte by byte, so that whoever reads later, in pieces of any size, knows what must
 * stand there.
 *
 * Each 4-KiB block begins with a magic word, its number, and the generation: a number of
 * the run. All further words depend on both, so a block that landed elsewhere, one that an
 * earlier run left, and one that is shifted can be named. Words are little endian.
 * Generation 0 has no word of its own: that is the form of the first version of gdsio.
 */
#ifndef GDSIO_STAMP_H
#define GDSIO_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAMP_BLOCK 4096

/* What the wrong bytes are, as far as the block that holds them tells. */
enum stamp_kind {
	STAMP_WRONG,		/* nothing is known */
	STAMP_MISPLACED,	/* a whole stamp of this run, of other_off */
	STAMP_STALE,		/* the stamp of other_generation, of this place */
	STAMP_FOREIGN,		/* of another generation and another place */
	STAMP_SHIFTED,		/* the stamp of this block begins `shift` bytes too late */
};

struct stamp_miss {
	uint64_t off;		/* file offset of the first wrong byte */
	size_t len;		/* bytes from there that `want` and `found` have, 1 to 8 */
	uint8_t want[8];
	uint8_t found[8];
	enum stamp_kind kind;
	uint64_t other_off;
	uint64_t other_generation;
	uint64_t shift;		/* bytes */
};

/* What stands at [off, off + len) of the file. */
void stamp_fill(void *buf, size_t len, uint64_t off, uint64_t generation);

/* 0, or -EILSEQ and the first byte that differs. */
int stamp_check(const void *buf, size_t len, uint64_t off, uint64_t generation,
		struct stamp_miss *miss);

/* What the head of block `number` says; false: it is not the head of that block's stamp. */
bool stamp_generation(const void *block, uint64_t number, uint64_t *generation);

#endif /* GDSIO_STAMP_H */
