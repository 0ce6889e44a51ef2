// SPDX-License-Identifier: MIT
/*
 * cpus.c - processors that this process can keep busy: its affinity, and the quota of its
 * control groups, by version 2 of their interface or by version 1.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"
#include "read.h"

#define CPUS_MOST 8192
#define ALL (~0u)

static unsigned int whole_cpus(unsigned long long quota, unsigned long long period)
{
	unsigned long long n = period ? (quota + period - 1) / period : 0;

	return n && n < CPUS_MOST ? (unsigned int)n : ALL;
}

/* Of one group: "max 100000", "150000 100000"; ALL: none. */
static unsigned int quota_v2(const char *root, const char *group)
{
	unsigned long long quota, period;
	char text[64];

	if (facts_read_in(root, group, "cpu.max", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%llu %llu", &quota, &period) != 2)
		return ALL;
	return whole_cpus(quota, period);
}

static unsigned int quota_v1(const char *root, const char *group)
{
	char text[64], per[64];

	/* "-1": none */
	if (facts_read_in(root, group, "cpu.cfs_quota_us", text, sizeof(text)) <= 0 ||
	    facts_read_in(root, group, "cpu.cfs_period_us", per, sizeof(per)) <= 0 ||
	    text[0] == '-')
		return ALL;
	return whole_cpus(strtoull(text, NULL, 10), strtoull(per, NULL, 10));
}

/*
 * The least of the group and all above it. In a container the path may be that outside of
 * it: then only the last step, the mount itself, is there, and that is the container's group.
 */
static unsigned int quota_up(const char *root, const char *mount, const char *path, bool v2)
{
	char group[FACTS_SYSFS_PATH];
	size_t top = strlen(mount);
	unsigned int n, least = ALL;
	char *slash;

	if (snprintf(group, sizeof(group), "%s%s", mount, path) >= (int)sizeof(group))
		return ALL;
	for (;;) {
		n = v2 ? quota_v2(root, group) : quota_v1(root, group);
		if (n < least)
			least = n;
		slash = strrchr(group, '/');
		if (!slash || (size_t)(slash - group) < top)
			return least;
		*slash = '\0';
	}
}

/* A line is "0::/path" (version 2) or "4:cpu,cpuacct:/path". */
static unsigned int quota_line(const char *root, char *line)
{
	char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
	char *name, *save;

	if (!path)
		return ALL;
	*path++ = '\0';
	names++;
	if (!*names)
		return quota_up(root, "sys/fs/cgroup", path, true);
	for (name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save))
		if (!strcmp(name, "cpu"))
			return quota_up(root, "sys/fs/cgroup/cpu", path, false);
	return ALL;
}

static unsigned int quota(const char *root)
{
	unsigned int n, least = ALL;
	char text[4096], *line, *save;

	if (facts_read(root, "proc/self/cgroup", text, sizeof(text)) <= 0)
		return ALL;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		n = quota_line(root, line);
		if (n < least)
			least = n;
	}
	return least;
}

unsigned int facts_cpus(const char *root)
{
	static const size_t bytes = CPU_ALLOC_SIZE(CPUS_MOST);
	unsigned long mask[CPUS_MOST / 8 / sizeof(unsigned long)];
	unsigned int n, most;
	long online;

	/* of the first thread: the calling one may be tied to a processor of its own */
	if (!sched_getaffinity(getpid(), bytes, (cpu_set_t *)mask)) {
		n = CPU_COUNT_S(bytes, (cpu_set_t *)mask);
	} else {
		online = sysconf(_SC_NPROCESSORS_ONLN);
		n = online > 0 ? online : 1;
	}
	most = quota(root);
	return n > most ? most : n;
}
