// SPDX-License-Identifier: MIT
/* t_random.c - random numbers by a seed, and bytes that are nowhere else. */
#include <string.h>

#include "t_random.h"

uint64_t t_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

size_t t_random_below(uint64_t *state, size_t n)
{
	return t_random(state) % n;
}

void t_random_fresh(uint64_t *state, void *buf, size_t len)
{
	uint64_t word = t_random(state);
	size_t at;

	for (at = 0; at + sizeof(word) <= len; at += sizeof(word)) {
		word += 0xd6e8feb86659fd93ULL;
		memcpy((char *)buf + at, &word, sizeof(word));
	}
	word += 0xd6e8feb86659fd93ULL;
	memcpy((char *)buf + at, &word, len - at);
}
