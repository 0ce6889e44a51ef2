// SPDX-License-Identifier: MIT
/* numa.c - threads on the processors of a NUMA node (-n). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdsio.h"

/* "0-3,8,10-11" */
static int parse_list(const char *text, cpu_set_t *set)
{
	unsigned long first, last;
	char *end;

	CPU_ZERO(set);
	while (*text && *text != '\n') {
		first = strtoul(text, &end, 10);
		last = first;
		if (end != text && *end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
		}
		if (end == text || last < first || last >= CPU_SETSIZE)
			return -EPROTO;
		for (; first <= last; first++)
			CPU_SET(first, set);
		text = end + (*end == ',');
	}
	return CPU_COUNT(set) ? 0 : -ENODEV;
}

int gdsio_numa_bind(const char *root, int node, cpu_set_t *was)
{
	char path[PATH_MAX], list[4096] = "";
	cpu_set_t set;
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d/cpulist", root, node);
	f = fopen(path, "re");
	if (!f || !fgets(list, sizeof(list), f)) {
		gdsio_err("-n %d: this machine has no such node (%s); leave out -n, or see "
			  "/sys/devices/system/node", node, path);
		err = -EIO;
	} else {
		err = parse_list(list, &set);
		if (err)
			gdsio_err("-n %d: the node has no processors (%s: %.60s)", node, path,
				  list);
	}
	if (f)
		fclose(f);
	if (err)
		return -EIO;
	sched_getaffinity(0, sizeof(*was), was);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return 0;
	gdsio_err("-n %d: sched_setaffinity: %s; may this process run on that node?", node,
		  strerror(errno));
	return -EIO;
}
