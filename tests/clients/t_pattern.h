/* SPDX-License-Identifier: MIT */
/*
 * t_pattern.h - file content that tells where it belongs, and its digest.
 *
 * Every 4-KiB block starts with the seed and its own number; all its words depend on
 * both, so a block that landed elsewhere is named, not only noticed.
 */
#ifndef T_PATTERN_H
#define T_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define T_BLOCK 4096

/* len: a multiple of 4096; first: number of the first block */
void t_pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t first);

/* 0, or -EILSEQ with a text in why that says which block is what instead */
int t_pattern_check(const void *buf, size_t len, uint64_t seed, uint64_t first, char *why,
		    size_t why_len);

/* Lower-case hex digest of buf, 64 digits and a NUL. */
void t_sha256(const void *buf, size_t len, char hex[65]);

struct t_sha256 {
	uint32_t h[8];
	uint64_t len;
	uint8_t part[64];
};

void t_sha256_init(struct t_sha256 *s);
void t_sha256_add(struct t_sha256 *s, const void *buf, size_t len);
void t_sha256_end(struct t_sha256 *s, char hex[65]);

#endif /* T_PATTERN_H */
