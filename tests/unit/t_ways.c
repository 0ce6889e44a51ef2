// SPDX-License-Identifier: MIT
/*
 * t_ways.c - stores or the copy engine: which one the costs that were seen speak for. Fails when
 * the cheaper one is not taken in the end, when one slow beginning decides for ever, or when
 * nothing is tried again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "way_cost.h"

#define MIB ((size_t)1 << 20)

/* n requests; a way costs so many ns each, the first one of a way `first` times that. */
static unsigned int copies(struct way_cost *c, size_t size, unsigned int n, const uint64_t ns[WAYS],
			   const uint64_t first[WAYS])
{
	unsigned int i, copied = 0, seen[WAYS] = { 0 };
	enum way w;

	for (i = 0; i < n; i++) {
		w = way_choose(c, size);
		way_took(c, w, size, seen[w]++ ? ns[w] : ns[w] * first[w]);
		copied += w == WAY_COPY;
	}
	return copied;
}

static void t_small(void **state)
{
	struct way_cost c = { 0 };
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		assert_int_equal(way_choose(&c, WAY_MEASURED - 1), WAY_STORE);
		way_took(&c, WAY_STORE, WAY_MEASURED - 1, 1000000000);
	}
}

static void t_cheaper(void **state)
{
	static const uint64_t one[] = { 1, 1 };
	struct way_cost c = { 0 };

	/* nothing is known: by size */
	assert_int_equal(way_choose(&c, MIB), WAY_STORE);
	assert_int_equal(way_choose(&c, 32 * MIB), WAY_COPY);
	assert_in_range(copies(&c, MIB, 1000, (uint64_t[]){ 50000, 100000 }, one), 1, 60);
	assert_in_range(copies(&c, 32 * MIB, 1000, (uint64_t[]){ 2000000, 1000000 }, one), 900,
			999);
	/* each class of sizes is for itself */
	assert_in_range(copies(&c, MIB, 1000, (uint64_t[]){ 50000, 100000 }, one), 1, 60);
	/* the machine changes: so does the way */
	copies(&c, MIB, 2000, (uint64_t[]){ 500000, 100000 }, one);
	assert_in_range(copies(&c, MIB, 1000, (uint64_t[]){ 500000, 100000 }, one), 900, 999);
}

/* What costs much more is tried seldom, and found soon when it does no more. */
static void t_dear(void **state)
{
	static const uint64_t one[] = { 1, 1 }, dear[] = { 10000, 25000 };
	struct way_cost c = { 0 };

	copies(&c, WAY_MEASURED, WAY_RETRY, dear, one);
	assert_in_range(copies(&c, WAY_MEASURED, 4 * WAY_RETRY_DEAR, dear, one), 1, 8);
	/* the ways change places: by the one that is taken, and by the other */
	assert_in_range(copies(&c, WAY_MEASURED, WAY_RETRY_DEAR, (uint64_t[]){ 50000, 25000 },
			       one), WAY_RETRY_DEAR / 2, WAY_RETRY_DEAR);
	copies(&c, WAY_MEASURED, 4 * WAY_RETRY_DEAR, dear, one);
	copies(&c, WAY_MEASURED, 2 * WAY_RETRY_DEAR, (uint64_t[]){ 10000, 4000 }, one);
	assert_in_range(copies(&c, WAY_MEASURED, 1000, (uint64_t[]){ 10000, 4000 }, one), 900,
			1000);
}

/* The first copy made pinned memory and streams: a hundred times what one costs. */
static void t_slow_beginning(void **state)
{
	static const uint64_t ns[] = { 3000000, 1500000 };
	struct way_cost c = { 0 };

	copies(&c, 32 * MIB, 64, ns, (uint64_t[]){ 1, 100 });
	assert_in_range(copies(&c, 32 * MIB, 640, ns, (uint64_t[]){ 1, 1 }), 600, 639);
}

/* Large requests take both while many threads store. */
static void t_both(void **state)
{
	struct way_cost c = { 0 };

	way_took(&c, WAY_STORE, 16 * MIB, 1000);
	way_took(&c, WAY_COPY, 16 * MIB, 1000000);
	assert_int_equal(way_choose(&c, 16 * MIB), WAY_STORE);
	atomic_store(&c.threads, WAY_STORERS);
	assert_int_equal(way_choose(&c, 16 * MIB), WAY_COPY);
	assert_int_equal(way_choose(&c, MIB), WAY_STORE);
	atomic_store(&c.requests, WAY_STORERS);
	assert_int_equal(way_choose(&c, MIB), WAY_COPY);
	assert_int_equal(way_choose(&c, 128 * 1024), WAY_STORE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_small),
		cmocka_unit_test(t_cheaper),
		cmocka_unit_test(t_dear),
		cmocka_unit_test(t_slow_beginning),
		cmocka_unit_test(t_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
