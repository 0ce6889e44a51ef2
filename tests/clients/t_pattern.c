// SPDX-License-Identifier: MIT
/* t_pattern.c - file content that tells where it belongs. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "t_pattern.h"

#define WORDS (T_BLOCK / sizeof(uint64_t))

/* Words 2.. of a block: a cheap mix, never equal between two blocks of one seed. */
static uint64_t base_word(uint64_t seed, uint64_t block)
{
	uint64_t x = (seed ^ 0x9e3779b97f4a7c15ULL) + block * 0xbf58476d1ce4e5b9ULL;

	x ^= x >> 31;
	return x * 0x94d049bb133111ebULL;
}

void t_pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t first)
{
	uint64_t *w = buf, base;
	size_t b, i;

	for (b = 0; b < len / T_BLOCK; b++, w += WORDS) {
		base = base_word(seed, first + b);
		w[0] = seed;
		w[1] = first + b;
		for (i = 2; i < WORDS; i++)
			w[i] = base + i * 0x0101010101010101ULL;
	}
}

static bool block_is(const uint64_t *w, uint64_t seed, uint64_t block)
{
	uint64_t base = base_word(seed, block), bad;
	size_t i;

	bad = (w[0] ^ seed) | (w[1] ^ block);
	for (i = 2; i < WORDS; i++)
		bad |= w[i] ^ (base + i * 0x0101010101010101ULL);
	return !bad;
}

static bool block_is_one_word(const uint64_t *w)
{
	return !memcmp(w, w + 1, T_BLOCK - sizeof(*w));
}

int t_pattern_check(const void *buf, size_t len, uint64_t seed, uint64_t first, char *why,
		    size_t why_len)
{
	const uint64_t *w = buf;
	size_t b;

	for (b = 0; b < len / T_BLOCK; b++, w += WORDS) {
		if (block_is(w, seed, first + b))
			continue;
		if (block_is_one_word(w))
			snprintf(why, why_len, "block %llu holds the word %016llx all over",
				 (unsigned long long)(first + b), (unsigned long long)w[0]);
		else if (block_is(w, w[0], w[1]))
			snprintf(why, why_len, "block %llu of seed %#llx holds block %llu of seed "
				 "%#llx", (unsigned long long)(first + b),
				 (unsigned long long)seed, (unsigned long long)w[1],
				 (unsigned long long)w[0]);
		else
			snprintf(why, why_len, "block %llu is torn or foreign (%016llx %016llx..)",
				 (unsigned long long)(first + b), (unsigned long long)w[0],
				 (unsigned long long)w[1]);
		return -EILSEQ;
	}
	return 0;
}
