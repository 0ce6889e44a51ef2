// SPDX-License-Identifier: MIT
/*
 * versions.c - the nvidia-fs module that is loaded, by its files in /proc.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"
#include "read.h"

#define DIR "proc/driver/nvidia-fs/"
#define DEVCOUNT_MAX 4096	/* more is no count of nodes */

/* "version: 2.28", or with a third number: 0 or -EPROTO */
static int version(const char *text, struct facts_nvfs *out)
{
	static const char label[] = "version: ";
	int end = 0, patch_end = 0;
	unsigned int patch;

	if (strncmp(text, label, strlen(label)))
		return -EPROTO;
	text += strlen(label);
	/* sscanf alone would take signs and blanks */
	if (text[strspn(text, "0123456789.")] ||
	    sscanf(text, "%4u.%4u%n", &out->major, &out->minor, &end) != 2)
		return -EPROTO;
	text += end;
	if (sscanf(text, ".%6u%n", &patch, &patch_end) == 1)
		text += patch_end;
	return *text ? -EPROTO : 0;
}

static int devcount(const char *text, struct facts_nvfs *out)
{
	int end = 0;

	if (text[0] < '0' || text[0] > '9' || sscanf(text, "%6u%n", &out->devcount, &end) != 1 ||
	    text[end] || out->devcount > DEVCOUNT_MAX)
		return -EPROTO;
	return 0;
}

int facts_nvfs_find(const char *root, struct facts_nvfs *out)
{
	char text[128], path[PATH_MAX];
	struct facts_nvfs v = { 0 };
	int n;

	memset(out, 0, sizeof(*out));
	n = facts_read(root, DIR "version", text, sizeof(text));
	if (n < 0)
		return n == -ENOENT || n == -ENOTDIR ? -ENODEV : n == -EOVERFLOW ? -EPROTO : n;
	if (version(text, &v))
		return -EPROTO;
	n = facts_read(root, DIR "devcount", text, sizeof(text));
	if (n < 0)
		return n == -ENOENT || n == -EOVERFLOW ? -EPROTO : n;
	if (devcount(text, &v))
		return -EPROTO;
	n = facts_join(root, DIR "opengds", path, sizeof(path));
	if (n)
		return n;
	v.ours = !access(path, F_OK);
	*out = v;
	return 0;
}
