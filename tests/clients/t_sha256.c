// SPDX-License-Identifier: MIT
/* t_sha256.c - SHA-256 (FIPS 180-4), so that clients need no library for it. */
#include <stdio.h>
#include <string.h>

#include "t_pattern.h"

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static inline uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* One round; the caller rotates the names instead of the values. */
#define ROUND(a, b, c, d, e, f, g, h, i)						\
	do {										\
		uint32_t t = h + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +		\
			     ((e & f) ^ (~e & g)) + K[i] + w[i];			\
		d += t;									\
		h = t + (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) +				\
		    ((a & b) ^ (a & c) ^ (b & c));					\
	} while (0)

static void block(uint32_t s[8], const uint8_t *p)
{
	uint32_t a = s[0], b = s[1], c = s[2], d = s[3];
	uint32_t e = s[4], f = s[5], g = s[6], h = s[7];
	uint32_t w[64];
	int i;

	for (i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10);
	for (i = 0; i < 64; i += 8) {
		ROUND(a, b, c, d, e, f, g, h, i);
		ROUND(h, a, b, c, d, e, f, g, i + 1);
		ROUND(g, h, a, b, c, d, e, f, i + 2);
		ROUND(f, g, h, a, b, c, d, e, i + 3);
		ROUND(e, f, g, h, a, b, c, d, i + 4);
		ROUND(d, e, f, g, h, a, b, c, i + 5);
		ROUND(c, d, e, f, g, h, a, b, i + 6);
		ROUND(b, c, d, e, f, g, h, a, i + 7);
	}
	s[0] += a;
	s[1] += b;
	s[2] += c;
	s[3] += d;
	s[4] += e;
	s[5] += f;
	s[6] += g;
	s[7] += h;
}

void t_sha256_init(struct t_sha256 *s)
{
	static const uint32_t start[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memcpy(s->h, start, sizeof(start));
	s->len = 0;
}

void t_sha256_add(struct t_sha256 *s, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t have = s->len % 64, n;

	s->len += len;
	if (have) {
		n = 64 - have < len ? 64 - have : len;
		memcpy(s->part + have, p, n);
		p += n;
		len -= n;
		if (have + n < 64)
			return;
		block(s->h, s->part);
	}
	for (; len >= 64; p += 64, len -= 64)
		block(s->h, p);
	memcpy(s->part, p, len);
}

void t_sha256_end(struct t_sha256 *s, char hex[65])
{
	uint64_t bits = s->len * 8;
	uint8_t tail[72] = { 0x80 };
	size_t pad = 64 - (s->len + 8) % 64;
	int i;

	for (i = 0; i < 8; i++)
		tail[pad + i] = bits >> (56 - 8 * i);
	t_sha256_add(s, tail, pad + 8);
	for (i = 0; i < 8; i++)
		snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
}

void t_sha256(const void *buf, size_t len, char hex[65])
{
	struct t_sha256 s;

	t_sha256_init(&s);
	t_sha256_add(&s, buf, len);
	t_sha256_end(&s, hex);
}
