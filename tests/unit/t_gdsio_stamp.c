// SPDX-License-Identifier: MIT
/*
 * t_gdsio_stamp.c - gdsio's stamps and its histogram of latencies.
 *
 * Guards that every reader can check stamps byte by byte, whatever piece it has; that a
 * block of another place, one that an earlier run left and one that is shifted are found and
 * named; that the form on the drive stays what it is; and that percentiles are those of the
 * sorted values, to 1/64. Each fails here when a wrong block would pass or be misnamed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "../../tools/gdsio/hist.c"
#include "../../tools/gdsio/pieces.c"
#include "../../tools/gdsio/stamp.c"

/* 0: the first form, without a generation */
static const uint64_t generations[] = { 0, 1, 0xfedcba9876543210ULL };

#define GEN 0x1122334455667788ULL

static void is_a_function_of_the_place(void **state)
{
	static uint8_t whole[5 * STAMP_BLOCK], part[3 * STAMP_BLOCK];
	static const uint64_t base = 3 * STAMP_BLOCK;
	struct stamp_miss miss;
	size_t off, len, g;

	for (g = 0; g < 3; g++) {
		stamp_fill(whole, sizeof(whole), base, generations[g]);
		for (off = 0; off < 2 * STAMP_BLOCK; off += 97) {
			for (len = 1; len < sizeof(part) - 1; len += 1 + len * 3) {
				memset(part, 0x5a, sizeof(part));
				stamp_fill(part, len, base + off, generations[g]);
				assert_memory_equal(part, whole + off, len);
				assert_int_equal(part[len], 0x5a);
				assert_int_equal(stamp_check(whole + off, len, base + off,
							     generations[g], &miss), 0);
			}
		}
		assert_int_equal(stamp_check(whole, sizeof(whole), base, generations[g], &miss), 0);
		assert_memory_not_equal(whole, whole + STAMP_BLOCK, STAMP_BLOCK);
	}
}

/* What a later version of the program must still read. */
static void stays_what_it_is(void **state)
{
	static const uint8_t first[24] = {
		0x00, 'O', 'G', 'D', 'S', 'I', 'O', '1',
		7, 0, 0, 0, 0, 0, 0, 0,
		0xf9, 0x90, 0x8f, 0x79, 0xce, 0xcf, 0xbd, 0xf3,
	}, second[32] = {
		0x00, 'O', 'G', 'D', 'S', 'I', 'O', '2',
		7, 0, 0, 0, 0, 0, 0, 0,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xc2, 0x8a, 0x97, 0xc5, 0xd2, 0xc6, 0xf8, 0x86,
	};
	uint8_t head[32];

	stamp_fill(head, sizeof(head), 7 * STAMP_BLOCK, 0);
	assert_memory_equal(head, first, sizeof(first));
	stamp_fill(head, sizeof(head), 7 * STAMP_BLOCK, GEN);
	assert_memory_equal(head, second, sizeof(second));
}

static void finds_each_byte(void **state)
{
	static uint8_t buf[2 * STAMP_BLOCK + 1000];
	static const uint64_t base = 123457;
	struct stamp_miss miss;
	size_t i;

	stamp_fill(buf, sizeof(buf), base, GEN);
	for (i = 0; i < sizeof(buf); i++) {
		buf[i] ^= 0x10;
		assert_int_equal(stamp_check(buf, sizeof(buf), base, GEN, &miss), -EILSEQ);
		assert_int_equal(miss.off, base + i);
		assert_int_equal(miss.found[0], buf[i]);
		assert_int_equal(miss.want[0], buf[i] ^ 0x10);
		assert_true(miss.len >= 1 && miss.len <= 8);
		buf[i] ^= 0x10;
	}
}

static void names_swapped_blocks(void **state)
{
	static uint8_t buf[4 * STAMP_BLOCK], one[STAMP_BLOCK];
	struct stamp_miss miss;

	stamp_fill(buf, sizeof(buf), 0, GEN);
	memcpy(one, buf + STAMP_BLOCK, STAMP_BLOCK);
	memcpy(buf + STAMP_BLOCK, buf + 3 * STAMP_BLOCK, STAMP_BLOCK);
	memcpy(buf + 3 * STAMP_BLOCK, one, STAMP_BLOCK);
	assert_int_equal(stamp_check(buf, sizeof(buf), 0, GEN, &miss), -EILSEQ);
	assert_int_equal(miss.kind, STAMP_MISPLACED);
	assert_int_equal(miss.other_off, 3 * STAMP_BLOCK);
	assert_int_equal(miss.other_generation, GEN);
	assert_in_range(miss.off, STAMP_BLOCK, 2 * STAMP_BLOCK - 1);

	memset(buf + STAMP_BLOCK, 0, STAMP_BLOCK);
	assert_int_equal(stamp_check(buf, sizeof(buf), 0, GEN, &miss), -EILSEQ);
	assert_int_equal(miss.kind, STAMP_WRONG);
}

/* The right block of the run before: a write that never reached the drive. */
static void names_stale_blocks(void **state)
{
	static uint8_t buf[4 * STAMP_BLOCK];
	struct stamp_miss miss;

	stamp_fill(buf, sizeof(buf), 0, GEN);
	stamp_fill(buf + 2 * STAMP_BLOCK, STAMP_BLOCK, 2 * STAMP_BLOCK, GEN - 1);
	assert_int_equal(stamp_check(buf, sizeof(buf), 0, GEN, &miss), -EILSEQ);
	assert_int_equal(miss.kind, STAMP_STALE);
	assert_int_equal(miss.other_generation, GEN - 1);
	assert_in_range(miss.off, 2 * STAMP_BLOCK, 3 * STAMP_BLOCK - 1);

	/* of the first form, and of a place that it is not */
	stamp_fill(buf + 2 * STAMP_BLOCK, STAMP_BLOCK, 9 * STAMP_BLOCK, 0);
	assert_int_equal(stamp_check(buf, sizeof(buf), 0, GEN, &miss), -EILSEQ);
	assert_int_equal(miss.kind, STAMP_FOREIGN);
	assert_int_equal(miss.other_off, 9 * STAMP_BLOCK);
	assert_int_equal(miss.other_generation, 0);
}

/* A copy that begins a few bytes late. By whole blocks it is in another place. */
static void names_shifted_blocks(void **state)
{
	static uint8_t buf[4 * STAMP_BLOCK];
	static const int shifts[] = { 1, 8, 512, 2048, 4095 };
	struct stamp_miss miss;
	size_t i;

	for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		stamp_fill(buf, sizeof(buf), 0, GEN);
		memmove(buf + STAMP_BLOCK + shifts[i], buf + STAMP_BLOCK, STAMP_BLOCK);
		assert_int_equal(stamp_check(buf, sizeof(buf), 0, GEN, &miss), -EILSEQ);
		assert_int_equal(miss.kind, STAMP_SHIFTED);
		assert_int_equal(miss.shift, shifts[i]);
	}
	stamp_fill(buf, sizeof(buf), 0, GEN);
	memmove(buf + STAMP_BLOCK, buf, 3 * STAMP_BLOCK);
	assert_int_equal(stamp_check(buf, sizeof(buf), 0, GEN, &miss), -EILSEQ);
	assert_int_equal(miss.kind, STAMP_MISPLACED);
	assert_int_equal(miss.other_off, 0);
}

/* A reader learns the generation from the head of a block, also where the rest is wrong. */
static void tells_its_generation(void **state)
{
	static uint8_t block[STAMP_BLOCK];
	uint64_t generation;

	stamp_fill(block, sizeof(block), 5 * STAMP_BLOCK, GEN);
	block[1000] ^= 1;
	assert_true(stamp_generation(block, 5, &generation));
	assert_true(generation == GEN);
	assert_false(stamp_generation(block, 6, &generation));
	stamp_fill(block, sizeof(block), 5 * STAMP_BLOCK, 0);
	assert_true(stamp_generation(block, 5, &generation));
	assert_int_equal(generation, 0);
	memset(block, 0, sizeof(block));
	assert_false(stamp_generation(block, 0, &generation));
}

/* -- latencies -- */

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The smallest of the sorted values that `part` of 100000 do not exceed. */
static uint64_t reference(const uint64_t *sorted, size_t n, uint32_t part)
{
	size_t rank = (n * part + 99999) / 100000;

	return sorted[rank ? rank - 1 : 0];
}

static void percentiles_are_those_of_the_values(void **state)
{
	static const uint32_t parts[] = { 0, 1, 50000, 90000, 99000, 99900, 99999, 100000 };
	static uint64_t value[5000];
	static struct gdsio_hist h;
	uint64_t rng = 3, want, got;
	size_t n, i;
	int spread;

	for (spread = 1; spread < 64; spread += 3) {
		for (n = 1; n <= 5000; n = n * 3 + 1) {
			memset(&h, 0, sizeof(h));
			for (i = 0; i < n; i++) {
				value[i] = gdsio_random(&rng) >> (64 - spread);
				gdsio_hist_put(&h, value[i]);
			}
			qsort(value, n, sizeof(value[0]), by_value);
			for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
				want = reference(value, n, parts[i]);
				got = gdsio_hist_part(&h, parts[i]);
				if (got < want || got > want + want / 64)
					fail_msg("%zu values of %d bits, part %u: %llu, not %llu",
						 n, spread, parts[i], (unsigned long long)got,
						 (unsigned long long)want);
			}
			assert_true(gdsio_hist_part(&h, 100000) == value[n - 1]);
		}
	}
}

static void small_values_are_exact(void **state)
{
	static struct gdsio_hist h, sum;
	uint64_t v;

	for (v = 0; v < 128; v++) {
		memset(&h, 0, sizeof(h));
		gdsio_hist_put(&h, v);
		gdsio_hist_put(&h, UINT64_MAX);
		assert_true(gdsio_hist_part(&h, 50000) == v);
		assert_true(gdsio_hist_part(&h, 100000) == UINT64_MAX);
		gdsio_hist_add(&sum, &h);
	}
	assert_int_equal(sum.n, 256);
	assert_true(gdsio_hist_part(&sum, 25000) == 63);
	memset(&h, 0, sizeof(h));
	assert_int_equal(gdsio_hist_part(&h, 50000), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_a_function_of_the_place),
		cmocka_unit_test(stays_what_it_is),
		cmocka_unit_test(finds_each_byte),
		cmocka_unit_test(names_swapped_blocks),
		cmocka_unit_test(names_stale_blocks),
		cmocka_unit_test(names_shifted_blocks),
		cmocka_unit_test(tells_its_generation),
		cmocka_unit_test(percentiles_are_those_of_the_values),
		cmocka_unit_test(small_values_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
