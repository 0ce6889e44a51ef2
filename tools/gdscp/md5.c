// SPDX-License-Identifier: MIT
/* md5.c - MD5, on processors of either byte order. */
#include <stdio.h>
#include <string.h>

#include "md5.h"

/* floor(2^32 * |sin(i + 1)|), i in radians */
static const uint32_t sine[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

static uint32_t word_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t left(uint32_t v, unsigned int n)
{
	return v << n | v >> (32 - n);
}

/* One step, and the four that make the state come round; f of b, c, d; word k of the block. */
#define STEP(f, a, b, c, d, k, i, n) \
	((a) = (b) + left((a) + f(b, c, d) + word[(k) % 16] + sine[i], n))
#define STEPS(f, i, k, dk, n0, n1, n2, n3)                            \
	do {                                                          \
		STEP(f, a, b, c, d, k, i, n0);                        \
		STEP(f, d, a, b, c, (k) + (dk), (i) + 1, n1);         \
		STEP(f, c, d, a, b, (k) + 2 * (dk), (i) + 2, n2);     \
		STEP(f, b, c, d, a, (k) + 3 * (dk), (i) + 3, n3);     \
	} while (0)

#define F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define G(x, y, z) F(z, x, y)
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))

static void add_block(struct md5 *m, const uint8_t *p)
{
	uint32_t a = m->a, b = m->b, c = m->c, d = m->d, word[16];
	unsigned int i;

	for (i = 0; i < 16; i++)
		word[i] = word_at(p + 4 * i);
	for (i = 0; i < 16; i += 4)
		STEPS(F, i, i, 1, 7, 12, 17, 22);
	for (i = 0; i < 16; i += 4)
		STEPS(G, 16 + i, 5 * i + 1, 5, 5, 9, 14, 20);
	for (i = 0; i < 16; i += 4)
		STEPS(H, 32 + i, 3 * i + 5, 3, 4, 11, 16, 23);
	for (i = 0; i < 16; i += 4)
		STEPS(I, 48 + i, 7 * i, 7, 6, 10, 15, 21);
	m->a += a;
	m->b += b;
	m->c += c;
	m->d += d;
}

void md5_begin(struct md5 *m)
{
	*m = (struct md5){ .a = 0x67452301, .b = 0xefcdab89, .c = 0x98badcfe, .d = 0x10325476 };
}

void md5_add(struct md5 *m, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t have = m->len % 64, n;

	m->len += len;
	if (have) {
		n = len < 64 - have ? len : 64 - have;
		memcpy(m->block + have, p, n);
		if (have + n < 64)
			return;
		add_block(m, m->block);
		p += n;
		len -= n;
	}
	for (; len >= 64; p += 64, len -= 64)
		add_block(m, p);
	memcpy(m->block, p, len);
}

static void put_word(uint8_t *p, uint32_t v)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

void md5_end(struct md5 *m, uint8_t out[MD5_BYTES])
{
	uint64_t bits = m->len * 8;
	uint8_t pad[72] = { 0x80 };
	size_t n = 64 - (m->len + 8) % 64;

	put_word(pad + n, (uint32_t)bits);
	put_word(pad + n + 4, (uint32_t)(bits >> 32));
	md5_add(m, pad, n + 8);
	put_word(out, m->a);
	put_word(out + 4, m->b);
	put_word(out + 8, m->c);
	put_word(out + 12, m->d);
}

void md5_text(const uint8_t sum[MD5_BYTES], char out[2 * MD5_BYTES + 1])
{
	unsigned int i;

	for (i = 0; i < MD5_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", sum[i]);
}
