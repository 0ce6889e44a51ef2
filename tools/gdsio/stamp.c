// SPDX-License-Identifier: MIT
/* stamp.c - file content that tells where it belongs. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "stamp.h"

#define WORDS (STAMP_BLOCK / sizeof(uint64_t))
#define MAGIC 0x314f495344474f00ULL	/* "\0OGDSIO1" */

static void fill_block(uint64_t *w, uint64_t block)
{
	uint64_t base = (block + 1) * 0x9e3779b97f4a7c15ULL;
	size_t i;

	base ^= base >> 29;
	w[0] = htole64(MAGIC);
	w[1] = htole64(block);
	for (i = 2; i < WORDS; i++)
		w[i] = htole64(base + i * 0x0101010101010101ULL);
}

void stamp_fill(void *buf, size_t len, uint64_t off)
{
	uint64_t block[WORDS];
	uint8_t *at = buf;
	size_t skip, n;

	while (len) {
		skip = off % STAMP_BLOCK;
		n = STAMP_BLOCK - skip < len ? STAMP_BLOCK - skip : len;
		fill_block(block, off / STAMP_BLOCK);
		memcpy(at, (uint8_t *)block + skip, n);
		at += n;
		off += n;
		len -= n;
	}
}

/* The place that the block in buf was stamped for; only whole blocks can tell. */
static void name_other(const uint8_t *buf, size_t skip, size_t n, struct stamp_miss *miss)
{
	uint64_t block[WORDS], head[2];

	if (skip || n != STAMP_BLOCK)
		return;
	memcpy(head, buf, sizeof(head));
	fill_block(block, le64toh(head[1]));
	miss->other = !memcmp(block, buf, STAMP_BLOCK);
	miss->other_off = le64toh(head[1]) * STAMP_BLOCK;
}

int stamp_check(const void *buf, size_t len, uint64_t off, struct stamp_miss *miss)
{
	uint64_t block[WORDS];
	const uint8_t *at = buf, *want;
	size_t skip, n, i;

	while (len) {
		skip = off % STAMP_BLOCK;
		n = STAMP_BLOCK - skip < len ? STAMP_BLOCK - skip : len;
		fill_block(block, off / STAMP_BLOCK);
		want = (uint8_t *)block + skip;
		if (memcmp(at, want, n))
			break;
		at += n;
		off += n;
		len -= n;
	}
	if (!len)
		return 0;
	for (i = 0; at[i] == want[i]; i++)
		;
	memset(miss, 0, sizeof(*miss));
	miss->off = off + i;
	miss->len = n - i < sizeof(miss->want) ? n - i : sizeof(miss->want);
	memcpy(miss->want, want + i, miss->len);
	memcpy(miss->found, at + i, miss->len);
	name_other(at, skip, n, miss);
	return -EILSEQ;
}
