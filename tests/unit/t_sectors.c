// SPDX-License-Identifier: MIT
/*
 * t_sectors.c - the bookkeeping that decides whether a byte counts as moved by DMA, against
 * a model that keeps one flag a sector. Fails when a sector nobody noted passes as noted, or
 * the other way round, or when the walk over what is to be repaired leaves one out; also
 * when two threads noting parts of one block lose one of them.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define try_cmpxchg(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* the kernel's: the first byte that is not c, or NULL */
static const void *memchr_inv(const void *p, int c, size_t n)
{
	const u8 *s = p;

	for (; n; n--, s++)
		if (*s != (u8)c)
			return s;
	return NULL;
}

#include "sectors.h"

#define BLOCKS 40
#define SECTORS (BLOCKS * 8)

/* The walk over what is missing visits each such sector below end once, and no other. */
static void check_walk(const u8 *s, const bool *model, u32 end)
{
	u32 at = 0, n = 0, i, seen = 0;

	while ((at = nvfs_sectors_next(s, at, end, &n)) < end) {
		assert_true(n > 0 && at + n <= end);
		assert_int_equal(at / 8, (at + n - 1) / 8);	/* in one block */
		for (i = seen; i < at; i++)
			assert_true(model[i]);
		for (i = at; i < at + n; i++)
			assert_false(model[i]);
		at += n;
		seen = at;
	}
	assert_int_equal(at, end);
	for (i = seen; i < end; i++)
		assert_true(model[i]);
}

static void t_model(void **state)
{
	u8 s[BLOCKS + 1];
	bool model[SECTORS];
	unsigned int round, i, k;

	(void)state;
	srand(1);
	for (round = 0; round < 20000; round++) {
		memset(s, 0, BLOCKS);
		s[BLOCKS] = 0xc3;		/* nothing may be written there */
		memset(model, 0, sizeof(model));
		for (k = 0; k < 1 + round % 4; k++) {
			u32 first = (u32)rand() % SECTORS;
			u32 n = 1 + (u32)rand() % (SECTORS - first);

			if (rand() % 2)
				n = 1 + n % 9 < SECTORS - first ? 1 + n % 9 : 1;
			nvfs_sectors_mark(s, (u64)first * 512, n * 512);
			memset(model + first, true, n);
		}
		for (i = 0; i < SECTORS; i++)
			assert_int_equal(!!(s[i / 8] & (1u << (i % 8))), model[i]);
		for (k = 0; k < 8; k++) {
			size_t len = (size_t)rand() % (BLOCKS * 4096 + 1);
			u32 bad = 0, runs = 0, regions, b;
			bool before = false;

			for (b = 0; b * 4096 < len; b++) {
				bool missing = false;

				for (i = b * 8; i < (b + 1) * 8 && (size_t)i * 512 < len; i++)
					missing |= !model[i];
				bad += missing;
				runs += missing && !before;
				before = missing;
			}
			assert_int_equal(nvfs_sectors_missing(s, len, &regions), bad);
			assert_int_equal(regions, runs);
			check_walk(s, model, (len + 511) / 512);
		}
		assert_int_equal(s[BLOCKS], 0xc3);
	}
}

static void t_edges(void **state)
{
	u8 s[4] = { 0 };
	u32 regions;

	(void)state;
	assert_int_equal(nvfs_sectors_missing(s, 0, &regions), 0);
	assert_int_equal(nvfs_sectors_missing(s, 1, &regions), 1);
	nvfs_sectors_mark(s, 0, 512);
	assert_int_equal(nvfs_sectors_missing(s, 1, &regions), 0);
	assert_int_equal(nvfs_sectors_missing(s, 512, &regions), 0);
	assert_int_equal(nvfs_sectors_missing(s, 513, &regions), 1);
	nvfs_sectors_mark(s, 512, 3584);
	assert_int_equal(s[0], 0xff);
	assert_int_equal(s[1], 0);
	nvfs_sectors_mark(s, 4096 + 1024, 2048);	/* a hole on both sides */
	assert_int_equal(s[1], 0x3c);
	assert_int_equal(nvfs_sectors_missing(s, 8192, &regions), 1);
	nvfs_sectors_mark(s, 4096, 8192);
	assert_int_equal(nvfs_sectors_missing(s, 12288, &regions), 0);
	nvfs_sectors_mark(s, 0, 12288);			/* a requeued request maps again */
	assert_int_equal(nvfs_sectors_missing(s, 12288, &regions), 0);
	assert_int_equal(s[3], 0);
}

struct part {
	u8 *s;
	unsigned int sector;
};

static void *mark_sector(void *arg)
{
	struct part *p = arg;
	unsigned int b;

	for (b = 0; b < BLOCKS; b++)
		nvfs_sectors_mark(p->s, (u64)b * 4096 + p->sector * 512, 512);
	return NULL;
}

static void t_threads(void **state)
{
	unsigned int round, i;

	(void)state;
	for (round = 0; round < 50; round++) {
		u8 s[BLOCKS] = { 0 };
		u32 regions;
		struct part part[8];
		pthread_t th[8];

		for (i = 0; i < 8; i++) {
			part[i] = (struct part){ s, i };
			assert_int_equal(pthread_create(&th[i], NULL, mark_sector, &part[i]), 0);
		}
		for (i = 0; i < 8; i++)
			pthread_join(th[i], NULL);
		assert_int_equal(nvfs_sectors_missing(s, sizeof(s) * 4096, &regions), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_edges),
		cmocka_unit_test(t_model),
		cmocka_unit_test(t_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
