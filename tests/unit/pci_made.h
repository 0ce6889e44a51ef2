/* SPDX-License-Identifier: MIT */
/* pci_made.h - PCI functions of a made-up /sys below `made_root`, for the tests that read them. */
#ifndef PCI_MADE_H
#define PCI_MADE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tree.h"

static char made_root[] = "/dev/shm/t_pci.XXXXXX";

static inline int made_setup(void **state)
{
	memcpy(made_root + sizeof(made_root) - 7, "XXXXXX", 6);
	return mkdtemp(made_root) ? 0 : -1;
}

static inline int made_teardown(void **state)
{
	return tree_remove(made_root) ? 0 : -1;
}

static inline void made_file(const char *dir, const char *name, const char *text)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_true(tree_put(made_root, path, text));
}

/* `path`: "sys/devices/pci0000:00/0000:00:01.0/..." */
static inline void made_function(const char *path, const char *class, const char *vendor)
{
	char link[128], to[300];

	made_file(path, "class", class);
	made_file(path, "vendor", vendor);
	made_file(path, "device", "0x1");
	snprintf(link, sizeof(link), "sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
	snprintf(to, sizeof(to), "../../../%s", path + strlen("sys/"));
	assert_true(tree_link(made_root, link, to));
}

/* "16.0 GT/s PCIe", 16: what it has now and what it can */
static inline void made_link(const char *path, const char *speed, unsigned int width,
			     const char *max_speed, unsigned int max_width)
{
	char text[16];

	made_file(path, "current_link_speed", speed);
	made_file(path, "max_link_speed", max_speed);
	snprintf(text, sizeof(text), "%u", width);
	made_file(path, "current_link_width", text);
	snprintf(text, sizeof(text), "%u", max_width);
	made_file(path, "max_link_width", text);
}

static inline void made_config(const char *dir, const unsigned char *bytes, size_t n)
{
	char path[512];
	FILE *f;

	assert_true(tree_path(path, sizeof(path), made_root, dir));
	snprintf(path, sizeof(path), "%s/%s/config", made_root, dir);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static inline void made_word(unsigned char *b, unsigned int at, uint32_t v)
{
	b[at] = v;
	b[at + 1] = v >> 8;
	b[at + 2] = v >> 16;
	b[at + 3] = v >> 24;
}

/* A configuration space of 4096 bytes whose one extended capability is ACS */
static inline void made_acs(const char *dir, unsigned int control)
{
	unsigned char b[4096] = { 0 };

	made_word(b, 0x100, 0x0001000d);
	made_word(b, 0x104, control << 16 | 0x5f);
	made_config(dir, b, sizeof(b));
}

#endif /* PCI_MADE_H */
