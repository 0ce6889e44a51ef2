// SPDX-License-Identifier: MIT
/*
 * t_topo.c - the distance between a GPU and a peer, from the bridges above them, and the
 * rank made of it. Fails when a pair is nearer or farther than the rule of the proc files
 * says, or when a nearer one does not rank before a farther one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef uint32_t u32;
typedef uint64_t u64;

#include "topo.h"

#define PATH(...) { sizeof((u64[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ }, { false } }

static void under_one_switch(void **state)
{
	/* own port, upstream port, root port */
	struct nvfs_path g = PATH(11, 2, 1), p = PATH(12, 2, 1);

	assert_int_equal(nvfs_path_distance(&g, &p, true), 3);
	assert_int_equal(nvfs_path_distance(&g, &p, false), 3);
}

static void one_port_for_both(void **state)
{
	struct nvfs_path g = PATH(11, 1), p = PATH(11, 1);

	assert_int_equal(nvfs_path_distance(&g, &p, true), 1);
	g.acs[0] = true;	/* the GPU's own bridge does not count */
	assert_int_equal(nvfs_path_distance(&g, &p, true), 1);
}

static void switches_in_switches(void **state)
{
	struct nvfs_path g = PATH(21, 3, 2, 1), p = PATH(31, 30, 22, 2, 1);

	assert_int_equal(nvfs_path_distance(&g, &p, true), 2 + 3 + 1);
}

/* ACS at the lowest bridge in common sends the bytes up to the top and back. */
static void acs(void **state)
{
	struct nvfs_path g = PATH(11, 3, 2, 1), p = PATH(12, 3, 2, 1);

	g.acs[1] = true;
	assert_int_equal(nvfs_path_distance(&g, &p, true), 3 + 2);
	g.acs[1] = false;
	g.acs[0] = g.acs[2] = g.acs[3] = true;	/* others do not */
	assert_int_equal(nvfs_path_distance(&g, &p, true), 3);
}

static void across_root_ports(void **state)
{
	struct nvfs_path g = PATH(11, 1), p = PATH(12, 2), bus = { 0 };

	assert_int_equal(nvfs_path_distance(&g, &p, true), 127 + 2 + 2 + 1);
	assert_int_equal(nvfs_path_distance(&g, &p, false), 254 + 2 + 2 + 1);
	assert_int_equal(nvfs_path_distance(&g, &bus, true), 127 + 2 + 1);
	assert_int_equal(nvfs_path_distance(&bus, &p, true), 127 + 2 + 1);
	assert_int_equal(nvfs_path_distance(&bus, &bus, true), 127 + 1);
}

static void rank(void **state)
{
	assert_int_equal(nvfs_path_rank(3, 16, 4), 3 << 16 | (160 - 64));
	assert_int_equal(nvfs_path_rank(3, 32, 6), 3 << 16);
	assert_int_equal(nvfs_path_rank(3, 0, 0), 3 << 16 | 160);
	assert_true(nvfs_path_rank(3, 1, 1) < nvfs_path_rank(4, 32, 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(under_one_switch),
		cmocka_unit_test(one_port_for_both),
		cmocka_unit_test(switches_in_switches),
		cmocka_unit_test(acs),
		cmocka_unit_test(across_root_ports),
		cmocka_unit_test(rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
