/* SPDX-License-Identifier: MIT */
/* md5.h - MD5 (RFC 1321): against mistakes of machines, not against people. */
#ifndef GDSCP_MD5_H
#define GDSCP_MD5_H

#include <stddef.h>
#include <stdint.h>

#define MD5_BYTES 16

struct md5 {
	uint32_t a, b, c, d;
	uint64_t len;		/* bytes so far */
	uint8_t block[64];
};

void md5_begin(struct md5 *m);
void md5_add(struct md5 *m, const void *data, size_t len);
void md5_end(struct md5 *m, uint8_t out[MD5_BYTES]);

/* 32 digits, as md5sum prints them. */
void md5_text(const uint8_t sum[MD5_BYTES], char out[2 * MD5_BYTES + 1]);

#endif /* GDSCP_MD5_H */
