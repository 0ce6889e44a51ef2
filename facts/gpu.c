// SPDX-License-Identifier: MIT
/*
 * gpu.c - the GPU driver that is loaded: its version and flavour, what it says of a card and of
 * its settings, and the version of the library that belongs to it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "facts.h"
#include "read.h"

#define DRIVER "proc/driver/nvidia/"

/* The first word that is a version, "580.95.05": 0 or -EPROTO */
static int version_in(const char *text, char *out, size_t len)
{
	size_t n;

	for (; *text; text += n) {
		text += strspn(text, " \t");
		n = strcspn(text, " \t");
		if (n && n < len && strspn(text, "0123456789.") == n && memchr(text, '.', n)) {
			memcpy(out, text, n);
			out[n] = '\0';
			return 0;
		}
	}
	return -EPROTO;
}

int facts_gpu_driver(const char *root, struct facts_gpu_driver *out)
{
	char text[256];
	int r;

	memset(out, 0, sizeof(*out));
	r = facts_label(root, DRIVER "version", "NVRM version", text, sizeof(text));
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? -ENODEV : r == -ENODATA ? -EPROTO : r;
	if (version_in(text, out->version, sizeof(out->version)))
		return -EPROTO;
	out->major = (unsigned int)strtoul(out->version, NULL, 10);
	out->open = strstr(text, "Open Kernel Module");
	return 0;
}

int facts_gpu_info(const char *root, const char *address, const char *label, char *buf, size_t len)
{
	char path[FACTS_PATH];

	snprintf(path, sizeof(path), DRIVER "gpus/%s/information", address);
	return facts_label(root, path, label, buf, len);
}

bool facts_registry(const char *list, const char *key, unsigned long *value)
{
	size_t k = strlen(key), n;
	const char *eq;
	char *end;

	for (; *list; list += n + (list[n] != '\0')) {
		list += strspn(list, " \"");
		n = strcspn(list, ";\"");
		eq = memchr(list, '=', n);
		if (!eq || (size_t)(eq - list) != k || strncasecmp(list, key, k))
			continue;
		*value = strtoul(eq + 1, &end, 0);
		return end > eq + 1;
	}
	return false;
}

int facts_libcuda(const char *root, char *version, size_t len, char *path, size_t path_len)
{
	static const char *const dirs[] = {
		"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib",
	};
	static const char prefix[] = "libcuda.so.";
	char to[FACTS_SYSFS_PATH];
	const char *base;
	unsigned int i;
	int n;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (facts_link(root, dirs[i], "libcuda.so.1", to, sizeof(to)))
			continue;
		base = facts_base(to);
		if (strncmp(base, prefix, strlen(prefix)))
			continue;
		n = snprintf(version, len, "%s", base + strlen(prefix));
		if (n < 0 || (size_t)n >= len)
			continue;
		n = snprintf(path, path_len, "%s/libcuda.so.1", dirs[i]);
		return n < 0 || (size_t)n >= path_len ? -EOVERFLOW : 0;
	}
	return -ENOENT;
}
