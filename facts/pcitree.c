// SPDX-License-Identifier: MIT
/*
 * pcitree.c - GPUs, NVMe drives, network functions and the bridges above them, from sysfs alone.
 *
 * root/sys/bus/pci/devices/ADDRESS links to the function's folder, whose path is its place:
 *
 *	devices/pci0000:00/0000:00:01.0/0000:01:00.0
 *	        complex    root port    the function
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "read.h"

#define NVIDIA 0x10de
#define NET_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

/* Of the lines of `resource` */
#define FLAG_MEMORY 0x200
#define FLAG_PREFETCH 0x2000

static bool is_drive_name(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && n < FACTS_PCI_ADDRESS && !strncmp(name, "nvme", 4) &&
	       strspn(name + 4, "0123456789") == n - 4;
}

static int take_name(void *arg, const char *name)
{
	struct facts_pci *p = arg;

	if (!is_drive_name(name))
		return 0;
	memcpy(p->name, name, strlen(name) + 1);
	return 1;
}

/* A name that can be printed anywhere as it is */
static int take_net(void *arg, const char *name)
{
	struct facts_pci *p = arg;
	size_t n = strlen(name);

	if (n >= FACTS_PCI_ADDRESS || strspn(name, NET_NAME) != n)
		return 0;
	memcpy(p->name, name, n + 1);
	return 1;
}

/* Copies a component of a path when it looks like one; -EPROTO: it does not. */
static int component(const char *from, size_t n, char *out)
{
	if (n >= FACTS_PCI_ADDRESS)
		return -EPROTO;
	memcpy(out, from, n);
	out[n] = '\0';
	return 0;
}

/* "pci0000:00" */
static bool is_complex(const char *name)
{
	return !strncmp(name, "pci", 3) && strspn(name + 3, "0123456789abcdef:") == strlen(name + 3);
}

/* parent and complex of a function, by the path of its folder */
static int place(const char *path, struct facts_pci *p)
{
	char one[FACTS_PCI_ADDRESS], last[FACTS_PCI_ADDRESS] = "";
	size_t n;

	for (; *path; path += n) {
		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (component(path, n, one))
			continue;	/* "devices" and the like, longer than any that counts */
		if (!path[n])
			break;		/* the function itself */
		if (is_complex(one)) {
			memcpy(p->complex, one, sizeof(one));
			last[0] = '\0';
		} else if (facts_is_pci(one)) {
			memcpy(last, one, sizeof(one));
		}
	}
	memcpy(p->parent, last, sizeof(last));
	return p->complex[0] ? 0 : -EPROTO;
}

/* False: it does not matter. */
static bool kind_of(const char *root, const char *path, long class, struct facts_pci *p)
{
	if (class >> 8 == 0x0604)
		p->kind = p->parent[0] ? FACTS_PCI_SWITCH : FACTS_PCI_ROOT_PORT;
	else if (class >> 8 == 0x0108)
		p->kind = FACTS_PCI_NVME;
	else if ((class >> 16 == 0x03 && p->vendor == NVIDIA) || facts_there(root, path, "gpu_sim"))
		p->kind = FACTS_PCI_GPU;
	else if (class >> 16 == 0x02)
		p->kind = FACTS_PCI_NIC;
	else
		return false;
	return true;
}

struct tree {
	const char *root;
	bool nics;
	struct facts_pci *out;
	size_t n, max;
};

/* One function. What cannot be read is left out: it may be going away just now. */
static int function(void *arg, const char *name)
{
	char path[FACTS_SYSFS_PATH], sub[FACTS_SYSFS_PATH];
	long class, vendor, device, numa;
	struct facts_pci p = { .numa = -1 };
	struct tree *t = arg;

	if (!facts_is_pci(name) || component(name, strlen(name), p.address) ||
	    facts_link(t->root, FACTS_PCI_DEVICES, name, path, sizeof(path)) || place(path, &p) ||
	    !facts_number(t->root, path, "class", &class) ||
	    !facts_number(t->root, path, "vendor", &vendor) ||
	    !facts_number(t->root, path, "device", &device))
		return 0;
	p.vendor = vendor;
	p.device = device;
	if (facts_number(t->root, path, "numa_node", &numa) && numa >= 0 && numa <= INT_MAX)
		p.numa = numa;
	if (!kind_of(t->root, path, class, &p) || (p.kind == FACTS_PCI_NIC && !t->nics))
		return 0;
	if (p.kind == FACTS_PCI_NVME && !facts_join(path, "nvme", sub, sizeof(sub)))
		facts_entries(t->root, sub, take_name, &p);
	if (p.kind == FACTS_PCI_NIC && !facts_join(path, "net", sub, sizeof(sub)))
		facts_entries(t->root, sub, take_net, &p);
	if (t->n == t->max)
		return -EOVERFLOW;
	t->out[t->n++] = p;
	return 0;
}

static bool before(const struct facts_pci *p, const struct facts_pci *q)
{
	size_t n = strlen(p->address), m = strlen(q->address);

	/* a domain of more digits comes after those of fewer */
	return n != m ? n < m : strcmp(p->address, q->address) < 0;
}

/* Not qsort, which can take memory of the heap. */
static void sort(struct facts_pci *out, size_t n)
{
	struct facts_pci one;
	size_t i, j;

	for (i = 1; i < n; i++) {
		one = out[i];
		for (j = i; j && before(&one, &out[j - 1]); j--)
			out[j] = out[j - 1];
		out[j] = one;
	}
}

static bool is_bridge(const struct facts_pci *p)
{
	return p->kind == FACTS_PCI_ROOT_PORT || p->kind == FACTS_PCI_SWITCH;
}

static bool has_below(const struct tree *t, const struct facts_pci *p)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (!strcmp(t->out[i].parent, p->address))
			return true;
	return false;
}

/* Takes bridges away that have nothing below, until each has; an upper one may follow. */
static void prune(struct tree *t)
{
	size_t i, kept, had;

	do {
		had = t->n;
		for (i = kept = 0; i < had; i++)
			if (!is_bridge(&t->out[i]) || has_below(t, &t->out[i]))
				t->out[kept++] = t->out[i];
		t->n = kept;
	} while (t->n != had);
}

static int tree(struct tree *t)
{
	int r = facts_entries(t->root, FACTS_PCI_DEVICES, function, t);

	if (r)
		return r;
	prune(t);
	sort(t->out, t->n);
	return (int)t->n;
}

int facts_pci_tree(const char *root, struct facts_pci *out, size_t max)
{
	struct tree t = { .root = root, .out = out, .max = max };

	return tree(&t);
}

int facts_pci_tree_nics(const char *root, struct facts_pci *out, size_t max)
{
	struct tree t = { .root = root, .nics = true, .out = out, .max = max };

	return tree(&t);
}

int facts_pci_numa(const char *root, const char *address)
{
	char path[FACTS_SYSFS_PATH];
	long node;

	if (!facts_is_pci(address) ||
	    facts_link(root, FACTS_PCI_DEVICES, address, path, sizeof(path)) ||
	    !facts_number(root, path, "numa_node", &node) || node < 0 || node > INT_MAX)
		return -1;
	return node;
}

/* Calls nothing: fills start and bytes of the six BARs, prefetchable or not. */
static int bars(const char *root, const char *address, uint64_t *start, uint64_t *bytes,
		bool *prefetch)
{
	char text[4096], *line = text;
	unsigned long long from, to, flags;
	unsigned int i;
	int r;

	r = facts_pci_text(root, address, "resource", text, sizeof(text));
	if (r < 0)
		return r;
	/* the first six lines are the BARs, what follows are others' windows */
	for (i = 0; i < 6; i++) {
		if (sscanf(line, "%llx %llx %llx", &from, &to, &flags) != 3)
			return -EPROTO;
		start[i] = bytes[i] = 0;
		prefetch[i] = flags & FLAG_PREFETCH;
		if ((flags & FLAG_MEMORY) && to > from) {
			start[i] = from;
			bytes[i] = to - from + 1;
		}
		line = strchr(line, '\n');
		if (!line++)
			return i == 5 ? 0 : -EPROTO;
	}
	return 0;
}

int facts_pci_bar1(const char *root, const char *address, uint64_t *bytes)
{
	uint64_t start[6], size[6];
	bool prefetch[6];
	unsigned int i;
	int r;

	*bytes = 0;
	r = bars(root, address, start, size, prefetch);
	for (i = 0; !r && i < 6; i++)
		if (prefetch[i] && size[i] > *bytes)
			*bytes = size[i];
	return r;
}

int facts_pci_bar(const char *root, const char *address, unsigned int bar, uint64_t *start_bus,
		  uint64_t *bytes)
{
	uint64_t start[6], size[6];
	bool prefetch[6];
	int r;

	*start_bus = *bytes = 0;
	if (bar >= 6)
		return -EINVAL;
	r = bars(root, address, start, size, prefetch);
	if (r)
		return r;
	*start_bus = start[bar];
	*bytes = size[bar];
	return 0;
}

int facts_pci_text(const char *root, const char *address, const char *name, char *buf, size_t len)
{
	char path[FACTS_SYSFS_PATH];
	int r;

	if (!facts_is_pci(address))
		return -EINVAL;
	r = facts_link(root, FACTS_PCI_DEVICES, address, path, sizeof(path));
	return r ? r : facts_read_in(root, path, name, buf, len);
}

int facts_pci_target(const char *root, const char *address, const char *name, char *buf,
		     size_t len)
{
	char path[FACTS_SYSFS_PATH], to[FACTS_SYSFS_PATH];
	int r;

	if (!facts_is_pci(address))
		return -EINVAL;
	r = facts_link(root, FACTS_PCI_DEVICES, address, path, sizeof(path));
	if (!r)
		r = facts_link(root, path, name, to, sizeof(to));
	if (r)
		return r;
	r = snprintf(buf, len, "%s", facts_base(to));
	return r < 0 || (size_t)r >= len ? -EOVERFLOW : 0;
}
