/* SPDX-License-Identifier: MIT */
/* soft.h - random content that can be compressed: what file systems do then is part of the test. */
#ifndef MATRIX_SOFT_H
#define MATRIX_SOFT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of 64 bytes the first 16 stay, and the others are the last of these. */
static inline void t_soft(uint8_t *data, size_t n)
{
	size_t at;

	for (at = 16; at < n; at += 64)
		memset(data + at, data[at - 1], n - at < 48 ? n - at : 48);
}

#endif /* MATRIX_SOFT_H */
