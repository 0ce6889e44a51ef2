/* SPDX-License-Identifier: MIT */
/*
 * sum.h - a sum of a file's bytes: no two that differ in one word have the same. In an emulated
 * guest SHA-256 of the file takes longer than all operations on it.
 */
#ifndef MATRIX_SUM_H
#define MATRIX_SUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t matrix_sum(const uint8_t *data, size_t n)
{
	uint64_t sum = n, word;
	size_t at;

	for (at = 0; at < n; at += sizeof(word)) {
		word = 0;
		memcpy(&word, data + at, n - at < sizeof(word) ? n - at : sizeof(word));
		/* each step can be undone, so what differs once differs at the end */
		sum = (sum ^ word) * 0x9e3779b97f4a7c15ULL;
		sum ^= sum >> 32;
	}
	return sum;
}

#endif /* MATRIX_SUM_H */
