// SPDX-License-Identifier: MIT
/*
 * pcilink.c - what is between two PCI functions: where they meet, the links, what the bridges
 * redirect (ACS), and what the IOMMU makes of addresses.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"
#include "read.h"

#define CONFIG_BYTES 4096
#define CONFIG_CLOSED 64	/* bytes that everybody may read */
#define EXTENDED 256		/* where the extended capabilities begin */
#define CAP_ACS 0x000d
#define WIDTH_MAX 32		/* 255 is what the kernel says of a link that answers nothing */

/* ---- where two meet ---- */

const struct facts_pci *facts_pci_above(const struct facts_pci *all, size_t n,
					const struct facts_pci *p)
{
	size_t i;

	for (i = 0; p->parent[0] && i < n; i++)
		if (!strcmp(all[i].address, p->parent))
			return &all[i];
	return NULL;
}

enum facts_pci_way facts_pci_way(const struct facts_pci *all, size_t n, const struct facts_pci *a,
				 const struct facts_pci *b, const struct facts_pci **meet)
{
	const struct facts_pci *p, *q;

	for (p = facts_pci_above(all, n, a); p; p = facts_pci_above(all, n, p))
		for (q = facts_pci_above(all, n, b); q; q = facts_pci_above(all, n, q))
			if (p == q) {
				*meet = p;
				return p->kind == FACTS_PCI_SWITCH ? FACTS_PCI_WAY_SWITCH :
								     FACTS_PCI_WAY_PORT;
			}
	*meet = NULL;
	return strcmp(a->complex, b->complex) ? FACTS_PCI_WAY_OTHER : FACTS_PCI_WAY_HOST;
}

/* ---- links ---- */

/* Follows the link of a function to its folder; -EINVAL: the address is none. */
static int folder(const char *root, const char *address, char *path, size_t len)
{
	return facts_is_pci(address) ? facts_link(root, FACTS_PCI_DEVICES, address, path, len) :
				       -EINVAL;
}

/* "16.0 GT/s PCIe", "8 GT/s": MT/s. 0 for "Unknown", and when there is no such file */
static unsigned int speed(const char *root, const char *path, const char *name)
{
	unsigned int whole, tenth = 0;
	char text[64], *end;
	unsigned long n;

	if (facts_read_in(root, path, name, text, sizeof(text)) <= 0 || text[0] < '0' ||
	    text[0] > '9')
		return 0;
	n = strtoul(text, &end, 10);
	if (n > 1000)
		return 0;
	whole = n;
	if (end[0] == '.' && end[1] >= '0' && end[1] <= '9') {
		tenth = end[1] - '0';
		end += 2;
	}
	return strncmp(end, " GT/s", 5) ? 0 : whole * 1000 + tenth * 100;
}

static unsigned int width(const char *root, const char *path, const char *name)
{
	long n;

	return facts_number(root, path, name, &n) && n > 0 && n <= WIDTH_MAX ? n : 0;
}

int facts_pci_link(const char *root, const char *address, struct facts_pci_link *out)
{
	char path[FACTS_SYSFS_PATH];
	int r;

	memset(out, 0, sizeof(*out));
	r = folder(root, address, path, sizeof(path));
	if (r)
		return r;
	out->speed = speed(root, path, "current_link_speed");
	out->width = width(root, path, "current_link_width");
	out->max_speed = speed(root, path, "max_link_speed");
	out->max_width = width(root, path, "max_link_width");
	return 0;
}

/* ---- ACS ---- */

static uint32_t le(const unsigned char *p, unsigned int bytes)
{
	uint32_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

/* The configuration space, as much of it as may be read: bytes or -errno */
static int config(const char *root, const char *path, unsigned char *buf)
{
	char full[PATH_MAX], at[FACTS_SYSFS_PATH];
	ssize_t got;
	size_t n = 0;
	int fd, r;

	r = facts_join(path, "config", at, sizeof(at));
	if (!r)
		r = facts_join(root, at, full, sizeof(full));
	if (r)
		return r;
	if (facts_seen)
		facts_seen(root, at, FACTS_LOOK_FILE);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		got = read(fd, buf + n, CONFIG_BYTES - n);
		if (got > 0)
			n += got;
	} while ((got > 0 && n < CONFIG_BYTES) || (got < 0 && errno == EINTR));
	r = got < 0 ? -errno : (int)n;
	close(fd);
	return r;
}

int facts_pci_acs(const char *root, const char *address, struct facts_pci_acs *out)
{
	unsigned char buf[CONFIG_BYTES];
	char path[FACTS_SYSFS_PATH];
	unsigned int at, left;
	uint32_t head;
	int r;

	memset(out, 0, sizeof(*out));
	r = folder(root, address, path, sizeof(path));
	if (!r)
		r = config(root, path, buf);
	if (r < 0)
		return r == -EACCES || r == -EPERM ? 0 : r;
	out->readable = r > CONFIG_CLOSED;
	/* a list that leads back to its start ends all the same */
	for (at = EXTENDED, left = (CONFIG_BYTES - EXTENDED) / 8; left; left--) {
		if (at < EXTENDED || at + 8 > (unsigned int)r)
			return 0;
		head = le(buf + at, 4);
		if (!head || head == UINT32_MAX)
			return 0;
		if ((head & 0xffff) == CAP_ACS) {
			out->there = true;
			out->able = le(buf + at + 4, 2);
			out->on = le(buf + at + 6, 2);
			return 0;
		}
		at = head >> 20 & ~3U;
	}
	return 0;
}

/* ---- IOMMU ---- */

static enum facts_iommu state_of(const char *type)
{
	static const struct {
		const char *text;
		enum facts_iommu state;
	} table[] = {
		{ "identity", FACTS_IOMMU_IDENTITY }, { "DMA", FACTS_IOMMU_DMA },
		{ "DMA-FQ", FACTS_IOMMU_DMA_FQ },     { "blocked", FACTS_IOMMU_BLOCKED },
		{ "unmanaged", FACTS_IOMMU_BLOCKED },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(type, table[i].text))
			return table[i].state;
	return FACTS_IOMMU_UNKNOWN;
}

int facts_pci_iommu(const char *root, const char *address, struct facts_pci_iommu *out)
{
	char path[FACTS_SYSFS_PATH], group[FACTS_SYSFS_PATH], type[32];
	int r;

	*out = (struct facts_pci_iommu){ .state = FACTS_IOMMU_NONE, .group = -1 };
	r = folder(root, address, path, sizeof(path));
	if (r)
		return r;
	r = facts_link(root, path, "iommu_group", group, sizeof(group));
	if (r)
		return r == -ENOENT ? 0 : r;
	out->group = (int)strtol(facts_base(group), NULL, 10);
	r = facts_read_in(root, group, "type", type, sizeof(type));
	out->state = r < 0 ? FACTS_IOMMU_UNKNOWN : state_of(type);
	return 0;
}
