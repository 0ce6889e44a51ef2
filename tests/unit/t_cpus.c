// SPDX-License-Identifier: MIT
/*
 * t_cpus.c - how many processors the process can keep busy: its affinity, and the quotas of its
 * control groups in recorded trees. Fails when a group above is passed over, when half a
 * processor becomes none, or when a container's own view of its group is not found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "tree.h"

static char root[64];
static unsigned int all;

static int setup(void **state)
{
	cpu_set_t set;

	snprintf(root, sizeof(root), "/tmp/t_cpus.XXXXXX");
	if (!mkdtemp(root) || sched_getaffinity(0, sizeof(set), &set))
		return -1;
	all = CPU_COUNT(&set);
	return 0;
}

static int teardown(void **state)
{
	return tree_remove(root) ? 0 : -1;
}

static void put(const char *path, const char *text)
{
	assert_true(tree_put(root, path, text));
}

static unsigned int least(unsigned int quota)
{
	return quota < all ? quota : all;
}

static void t_no_quota(void **state)
{
	assert_int_equal(facts_cpus(root), all);
	put("proc/self/cgroup", "0::/\n");
	assert_int_equal(facts_cpus(root), all);
	put("sys/fs/cgroup/cpu.max", "max 100000\n");
	assert_int_equal(facts_cpus(root), all);
	put("proc/self/cgroup", "nonsense\n\n4:cpu\n::\n");
	assert_int_equal(facts_cpus(root), all);
}

static void t_v2(void **state)
{
	put("proc/self/cgroup", "0::/a.slice/b\n");
	put("sys/fs/cgroup/a.slice/b/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/a.slice/cpu.max", "50000 100000\n");
	/* half of one is one; it is the group above that has it */
	assert_int_equal(facts_cpus(root), 1);
	put("sys/fs/cgroup/a.slice/cpu.max", "110000 100000\n");
	assert_int_equal(facts_cpus(root), least(2));
	put("sys/fs/cgroup/a.slice/b/cpu.max", "100000 100000\n");
	assert_int_equal(facts_cpus(root), 1);
	/* nonsense is no quota */
	put("sys/fs/cgroup/a.slice/b/cpu.max", "100000 0\n");
	put("sys/fs/cgroup/a.slice/cpu.max", "0 100000\n");
	assert_int_equal(facts_cpus(root), all);
}

/* The path is that on the host, of which the container sees its own group alone, as the root. */
static void t_container(void **state)
{
	put("proc/self/cgroup", "0::/system.slice/docker-123.scope\n");
	put("sys/fs/cgroup/cpu.max", "100000 100000\n");
	assert_int_equal(facts_cpus(root), 1);
	put("proc/self/cgroup", "0::/../other\n");
	assert_int_equal(facts_cpus(root), 1);
}

static void t_v1(void **state)
{
	put("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x/y\n0::/\n");
	put("sys/fs/cgroup/cpu/x/y/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu/x/y/cpu.cfs_period_us", "100000\n");
	assert_int_equal(facts_cpus(root), all);
	put("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "20000\n");
	put("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
	assert_int_equal(facts_cpus(root), 1);
	/* of another controller */
	put("proc/self/cgroup", "4:cpuset:/x/y\n");
	assert_int_equal(facts_cpus(root), all);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = { T(t_no_quota), T(t_v2), T(t_container), T(t_v1) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
