// SPDX-License-Identifier: MIT
/* stamp.c - file content that tells where it belongs, and which run wrote it. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "stamp.h"

#define WORDS (STAMP_BLOCK / sizeof(uint64_t))
#define MAGIC 0x314f495344474f00ULL	/* "\0OGDSIO1": no generation */
#define MAGIC_GEN 0x324f495344474f00ULL	/* "\0OGDSIO2" */

static void fill_block(uint64_t *w, uint64_t block, uint64_t generation)
{
	uint64_t base = (block + 1) * 0x9e3779b97f4a7c15ULL;
	size_t i = 2;

	base ^= base >> 29;
	w[0] = htole64(generation ? MAGIC_GEN : MAGIC);
	w[1] = htole64(block);
	if (generation) {
		base ^= generation * 0xbf58476d1ce4e5b9ULL;
		w[i++] = htole64(generation);
	}
	for (; i < WORDS; i++)
		w[i] = htole64(base + i * 0x0101010101010101ULL);
}

void stamp_fill(void *buf, size_t len, uint64_t off, uint64_t generation)
{
	uint64_t block[WORDS];
	uint8_t *at = buf;
	size_t skip, n;

	while (len) {
		skip = off % STAMP_BLOCK;
		n = STAMP_BLOCK - skip < len ? STAMP_BLOCK - skip : len;
		fill_block(block, off / STAMP_BLOCK, generation);
		memcpy(at, (uint8_t *)block + skip, n);
		at += n;
		off += n;
		len -= n;
	}
}

static bool read_head(const void *buf, uint64_t *number, uint64_t *generation)
{
	uint64_t head[3];

	memcpy(head, buf, sizeof(head));
	*number = le64toh(head[1]);
	*generation = le64toh(head[0]) == MAGIC_GEN ? le64toh(head[2]) : 0;
	return *generation || le64toh(head[0]) == MAGIC;
}

/* Is it, whole, the stamp that its own first words say? */
static bool is_stamp(const void *buf, uint64_t *number, uint64_t *generation)
{
	uint64_t block[WORDS];

	if (!read_head(buf, number, generation))
		return false;
	fill_block(block, *number, *generation);
	return !memcmp(block, buf, STAMP_BLOCK);
}

bool stamp_generation(const void *block, uint64_t number, uint64_t *generation)
{
	uint64_t found;

	return read_head(block, &found, generation) && found == number;
}

/*
 * The head of the wrong block's own stamp, further on in what was read. Earlier it cannot be:
 * then the block before would have been wrong first.
 */
static bool find_shifted(const uint8_t *buf, size_t len, size_t at, uint64_t number,
			 uint64_t generation, struct stamp_miss *miss)
{
	uint64_t block[WORDS];
	const size_t head = 4 * sizeof(uint64_t);
	size_t i;

	fill_block(block, number, generation);
	for (i = at + 1; i + head <= len; i++) {
		if (memcmp(buf + i, block, head))
			continue;
		miss->kind = STAMP_SHIFTED;
		miss->shift = i - at;
		return miss->shift % STAMP_BLOCK;	/* by whole blocks it is in another place */
	}
	return false;
}

/* What the wrong block in buf + at is; only whole blocks can tell. */
static void name_block(const uint8_t *buf, size_t len, size_t at, uint64_t number,
		       uint64_t generation, struct stamp_miss *miss)
{
	uint64_t other, other_gen;

	if (find_shifted(buf, len, at, number, generation, miss))
		return;
	miss->kind = STAMP_WRONG;
	if (at + STAMP_BLOCK > len || !is_stamp(buf + at, &other, &other_gen))
		return;
	miss->other_off = other * STAMP_BLOCK;
	miss->other_generation = other_gen;
	if (other_gen == generation)
		miss->kind = STAMP_MISPLACED;
	else
		miss->kind = other == number ? STAMP_STALE : STAMP_FOREIGN;
}

int stamp_check(const void *buf, size_t len, uint64_t off, uint64_t generation,
		struct stamp_miss *miss)
{
	uint64_t block[WORDS], pos = off;
	const uint8_t *at = buf, *want;
	size_t left = len, skip, n, i;

	while (left) {
		skip = pos % STAMP_BLOCK;
		n = STAMP_BLOCK - skip < left ? STAMP_BLOCK - skip : left;
		fill_block(block, pos / STAMP_BLOCK, generation);
		want = (uint8_t *)block + skip;
		if (memcmp(at, want, n))
			break;
		at += n;
		pos += n;
		left -= n;
	}
	if (!left)
		return 0;
	for (i = 0; at[i] == want[i]; i++)
		;
	memset(miss, 0, sizeof(*miss));
	miss->off = pos + i;
	miss->len = n - i < sizeof(miss->want) ? n - i : sizeof(miss->want);
	memcpy(miss->want, want + i, miss->len);
	memcpy(miss->found, at + i, miss->len);
	if (!skip)
		name_block(buf, len, (size_t)(at - (const uint8_t *)buf), pos / STAMP_BLOCK,
			   generation, miss);
	return -EILSEQ;
}
