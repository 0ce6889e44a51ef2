// SPDX-License-Identifier: MIT
/*
 * t_holes.c - which blocks of a read the fence page lists as holes, against a model. User
 * space zeroes what is listed: fails when a block with a mapped sector, or with content
 * that the CPU put there, is listed, or when a hole is not, or is at another place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "uapi/nvfs.h"

typedef uint8_t u8;
typedef uint32_t u32;

#include "holes.h"

#define BLOCKS 4096

static u8 sectors[BLOCKS];
static bool zeros[BLOCKS];
static struct nvfs_fence_hole hole[NVFS_FENCE_MAX_HOLES];

static bool zero(const void *arg, u32 blk)
{
	return ((const bool *)arg)[blk];
}

static u32 list(u32 blocks, u32 max, u32 *n)
{
	memset(hole, 0xee, sizeof(hole));
	return nvfs_holes_list(sectors, blocks, zero, zeros, hole, max, n);
}

static void reset(void)
{
	memset(sectors, 0xff, sizeof(sectors));
	memset(zeros, 1, sizeof(zeros));
}

static void none(void **state)
{
	u32 n;

	reset();
	assert_int_equal(list(BLOCKS, NVFS_FENCE_MAX_HOLES, &n), BLOCKS);
	assert_int_equal(n, 0);
	assert_int_equal(list(0, NVFS_FENCE_MAX_HOLES, &n), 0);
	assert_int_equal(n, 0);
}

static void all(void **state)
{
	u32 n;

	reset();
	memset(sectors, 0, sizeof(sectors));
	assert_int_equal(list(BLOCKS, NVFS_FENCE_MAX_HOLES, &n), BLOCKS);
	assert_int_equal(n, 1);
	assert_int_equal(hole[0].start, 0);
	assert_int_equal(hole[0].npages, BLOCKS);
}

/* A block that a drive filled in part is data, whatever its carrier holds. */
static void part_of_a_block(void **state)
{
	u32 n, bit;

	for (bit = 0; bit < 8; bit++) {
		reset();
		sectors[7] = 1u << bit;
		assert_int_equal(list(16, NVFS_FENCE_MAX_HOLES, &n), 16);
		assert_int_equal(n, 0);
	}
}

/* What the CPU filled (inline data, a fallback) is no hole, and parts the run around it. */
static void filled_by_cpu(void **state)
{
	u32 n;

	reset();
	memset(sectors + 2, 0, 6);
	zeros[4] = false;
	assert_int_equal(list(16, NVFS_FENCE_MAX_HOLES, &n), 16);
	assert_int_equal(n, 2);
	assert_int_equal(hole[0].start, 2);
	assert_int_equal(hole[0].npages, 2);
	assert_int_equal(hole[1].start, 5);
	assert_int_equal(hole[1].npages, 3);
}

/* No entry is written behind the last one; the answer is where the list ran full. */
static void runs_full(void **state)
{
	u32 n, i;

	reset();
	for (i = 0; i < BLOCKS; i += 2)
		sectors[i] = 0;
	assert_int_equal(list(BLOCKS, 100, &n), 200);
	assert_int_equal(n, 100);
	assert_int_equal(hole[99].start, 198);
	assert_int_equal(hole[100].start, 0xeeee);
	assert_int_equal(list(200, 100, &n), 200);
	assert_int_equal(n, 100);
}

/* Random blocks: listed, all of them and no other, in runs that do not touch. */
static void model(void **state)
{
	u32 round, i, j, n, told, end;
	bool listed[BLOCKS];

	srand(1);
	for (round = 0; round < 300; round++) {
		u32 blocks = 1 + rand() % BLOCKS;

		for (i = 0; i < BLOCKS; i++) {
			sectors[i] = rand() % 3 ? 0 : rand();
			zeros[i] = rand() % 5;
		}
		told = list(blocks, NVFS_FENCE_MAX_HOLES, &n);
		assert_true(n <= NVFS_FENCE_MAX_HOLES && told <= blocks);
		assert_true(told == blocks || n == NVFS_FENCE_MAX_HOLES);
		memset(listed, 0, sizeof(listed));
		for (i = 0, end = 0; i < n; i++) {
			assert_true(!i || hole[i].start > end);
			end = hole[i].start + hole[i].npages;
			assert_true(hole[i].npages && end <= told);
			for (j = hole[i].start; j < end; j++)
				listed[j] = true;
		}
		for (i = 0; i < told; i++)
			assert_int_equal(listed[i], !sectors[i] && zeros[i]);
		if (told < blocks)
			assert_true(!sectors[told] && zeros[told]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none),
		cmocka_unit_test(all),
		cmocka_unit_test(part_of_a_block),
		cmocka_unit_test(filled_by_cpu),
		cmocka_unit_test(runs_full),
		cmocka_unit_test(model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
