// SPDX-License-Identifier: MIT
/*
 * blockdev.c - what a block device is, from sysfs alone.
 *
 * root/sys/dev/block/MAJOR:MINOR links to the device's folder. podman gives a container an empty one
 * in its place; there the links of root/sys/class/block are tried until the numbers are right. The
 * folder's place tells the kind:
 *
 *	devices/.../0000:01:00.0/nvme/nvme0/nvme0n1	a drive on PCI
 *	devices/virtual/nvme-fabrics/ctl/nvme0/nvme0n1	over a network
 *	devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1
 *		the head of a namespace that several controllers may reach. The subsystem's
 *		folder links to its controllers, and the folder of each that reaches the
 *		namespace holds nvme0cCn1, of the head's numbers and the controller's (C).
 *
 * A kernel with native multipath makes a head for any drive that says it could have several
 * controllers. Most have one: then the head is as good as the drive.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "read.h"

/* Cuts the last component of a path. */
static void parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

static int name_of(const char *path, char *out)
{
	const char *base = facts_base(path);

	if (strlen(base) >= FACTS_NAME)
		return -ENAMETOOLONG;
	memcpy(out, base, strlen(base) + 1);
	return 0;
}

/* "nvme" number: true, and the number */
static bool is_controller(const char *name, unsigned int *number)
{
	int end = 0;

	return sscanf(name, "nvme%9u%n", number, &end) == 1 && isdigit((unsigned char)name[4]) &&
	       !name[end];
}

/* The PCI address of a controller by the path of its folder: .../ADDRESS/nvme/nvmeN */
static bool controller_pci(const char *controller, char *pci)
{
	char path[FACTS_SYSFS_PATH];

	snprintf(path, sizeof(path), "%s", controller);
	parent(path);
	if (strcmp(facts_base(path), "nvme"))
		return false;
	parent(path);
	if (!facts_is_pci(facts_base(path)))
		return false;
	return !name_of(path, pci);
}

/* 1 when the entry of the subsystem's folder is a controller that reaches the head, else 0 */
static int one_path(const char *root, const char *subsystem, const char *entry,
		    unsigned int head, unsigned int ns, char *pci)
{
	char controller[FACTS_SYSFS_PATH], node[64];
	unsigned int c;

	if (!is_controller(entry, &c) ||
	    facts_link(root, subsystem, entry, controller, sizeof(controller)))
		return 0;
	snprintf(node, sizeof(node), "nvme%uc%un%u", head, c, ns);
	if (!facts_there(root, controller, node))
		return 0;
	pci[0] = '\0';
	controller_pci(controller, pci);
	return 1;
}

/* A head, and what reaches it so far */
struct reach {
	const char *root, *subsystem;
	unsigned int head, ns;
	int n;
	char *pci;
};

static int count_path(void *arg, const char *entry)
{
	struct reach *r = arg;

	r->n += one_path(r->root, r->subsystem, entry, r->head, r->ns, r->pci);
	return 0;
}

/* Counts the controllers that reach the head; `pci` is of the last one, "" without. */
static int paths(const char *root, const char *subsystem, unsigned int head, unsigned int ns,
		 char *pci)
{
	struct reach r = { root, subsystem, head, ns, 0, pci };
	int err = facts_entries(root, subsystem, count_path, &r);

	return err ? err : r.n;
}

/* The head of a namespace, `folder` its subsystem's */
static int head_kind(const char *root, const char *folder, struct facts_block *out)
{
	unsigned int head, ns;
	int n, end = 0;

	out->kind = FACTS_BLOCK_NVME_MULTIPATH;
	if (sscanf(out->disk, "nvme%9un%9u%n", &head, &ns, &end) != 2 || out->disk[end])
		return 0;
	n = paths(root, folder, head, ns, out->pci);
	if (n == -ENOENT || n == -EACCES)
		n = 0;
	if (n < 0)
		return n;
	if (n == 1)
		out->kind = out->pci[0] ? FACTS_BLOCK_NVME : FACTS_BLOCK_NVME_FABRIC;
	else
		out->pci[0] = '\0';
	return 0;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* `disk`: the path of the whole disk's folder */
static int kind_of(const char *root, const char *disk, struct facts_block *out)
{
	char folder[FACTS_SYSFS_PATH];
	unsigned int number;

	if (starts(out->disk, "dm-") || facts_there(root, disk, "dm")) {
		out->kind = FACTS_BLOCK_DM;
		return 0;
	}
	if ((starts(out->disk, "md") && isdigit((unsigned char)out->disk[2])) ||
	    facts_there(root, disk, "md")) {
		out->kind = FACTS_BLOCK_MD;
		return 0;
	}
	if (!starts(out->disk, "nvme"))
		return 0;
	snprintf(folder, sizeof(folder), "%s", disk);
	parent(folder);
	if (starts(facts_base(folder), "nvme-subsys"))
		return head_kind(root, folder, out);
	if (!is_controller(facts_base(folder), &number))
		return 0;
	out->kind = controller_pci(folder, out->pci) ? FACTS_BLOCK_NVME : FACTS_BLOCK_NVME_FABRIC;
	return 0;
}

/* The queue's limits; a file that is not there leaves its member unknown. */
static void limits(const char *root, const char *disk, struct facts_block *out)
{
	char text[64], *end;
	unsigned long n;

	if (facts_read_in(root, disk, "queue/logical_block_size", text, sizeof(text)) > 0) {
		errno = 0;
		n = strtoul(text, &end, 10);
		if (!errno && !*end && n <= UINT_MAX)
			out->logical_block = (unsigned int)n;
	}
	/* "none", "nop" (bytes beside the data that mean nothing), or what the bytes are */
	if (facts_read_in(root, disk, "integrity/format", text, sizeof(text)) > 0)
		out->integrity = strcmp(text, "none") && strcmp(text, "nop");
}

struct wanted {
	const char *root, *numbers;
	char *path;
	size_t len;
};

static int has_numbers(void *arg, const char *name)
{
	const struct wanted *w = arg;
	char text[32];

	if (facts_link(w->root, "sys/class/block", name, w->path, w->len) ||
	    facts_read_in(w->root, w->path, "dev", text, sizeof(text)) < 0)
		return 0;
	return !strcmp(text, w->numbers);
}

/* The device's own folder: 0 or -errno. */
static int folder(const char *root, unsigned int major, unsigned int minor, char *path, size_t len)
{
	char numbers[32];
	struct wanted w = { root, numbers, path, len };
	int r;

	snprintf(numbers, sizeof(numbers), "%u:%u", major, minor);
	r = facts_link(root, "sys/dev/block", numbers, path, len);
	if (r != -ENOENT)
		return r;
	r = facts_entries(root, "sys/class/block", has_numbers, &w);
	return r > 0 ? 0 : r ? r : -ENOENT;
}

static int find(const char *root, unsigned int major, unsigned int minor, struct facts_block *out)
{
	char path[FACTS_SYSFS_PATH];
	int ret;

	ret = folder(root, major, minor, path, sizeof(path));
	if (ret)
		return ret;
	ret = name_of(path, out->name);
	if (ret)
		return ret;
	if (facts_there(root, path, "partition"))
		parent(path);
	ret = name_of(path, out->disk);
	if (!ret)
		ret = kind_of(root, path, out);
	if (!ret)
		limits(root, path, out);
	return ret;
}

int facts_block_find(const char *root, unsigned int major, unsigned int minor,
		     struct facts_block *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	ret = find(root, major, minor, out);
	if (ret)
		memset(out, 0, sizeof(*out));
	return ret;
}

/* The folder of the whole disk */
static int disk_dir(const char *root, unsigned int major, unsigned int minor, char *path,
		    size_t len)
{
	int r = folder(root, major, minor, path, len);

	if (!r && facts_there(root, path, "partition"))
		parent(path);
	return r;
}

int facts_block_text(const char *root, unsigned int major, unsigned int minor, const char *name,
		     char *buf, size_t len)
{
	char path[FACTS_SYSFS_PATH];
	int r = disk_dir(root, major, minor, path, sizeof(path));

	return r ? r : facts_read_in(root, path, name, buf, len);
}

struct below {
	const char *root, *slaves;
	int (*each)(void *arg, unsigned int major, unsigned int minor);
	void *arg;
};

static int one_below(void *arg, const char *name)
{
	const struct below *b = arg;
	char path[FACTS_SYSFS_PATH], text[32];
	unsigned int major, minor;

	if (facts_link(b->root, b->slaves, name, path, sizeof(path)) ||
	    facts_read_in(b->root, path, "dev", text, sizeof(text)) < 0 ||
	    sscanf(text, "%9u:%9u", &major, &minor) != 2)
		return 0;
	return b->each(b->arg, major, minor);
}

int facts_block_below(const char *root, unsigned int major, unsigned int minor,
		      int (*each)(void *arg, unsigned int major, unsigned int minor), void *arg)
{
	char path[FACTS_SYSFS_PATH], slaves[FACTS_SYSFS_PATH];
	struct below b = { root, slaves, each, arg };
	int r = disk_dir(root, major, minor, path, sizeof(path));

	if (!r)
		r = facts_join(path, "slaves", slaves, sizeof(slaves));
	if (!r)
		r = facts_entries(root, slaves, one_below, &b);
	return r == -ENOENT ? 0 : r;
}
