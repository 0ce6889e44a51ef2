/* SPDX-License-Identifier: MIT */
/* read.h - files below a root directory, without memory of the heap. Private to facts/. */
#ifndef FACTS_READ_H
#define FACTS_READ_H

#include <stdbool.h>
#include <stddef.h>

#define FACTS_SYSFS_PATH 1024	/* of a path below the root, with its NUL */
#define FACTS_PCI_DEVICES "sys/bus/pci/devices"

/*
 * The text of root/path, at most len - 1 bytes, without white space at its end. Its length
 * or -errno; -EOVERFLOW when the file is longer.
 */
int facts_read(const char *root, const char *path, char *buf, size_t len);

/*
 * Follows the symbolic link dir/name by its text alone, so that a link of a recorded tree
 * stays in the tree. `dir` and the result begin without a slash and are below the root.
 * -EINVAL: the file is no link; -EXDEV: the link leads out of the root.
 */
int facts_link(const char *root, const char *dir, const char *name, char *out, size_t len);

/* root "/" path into out: 0 or -ENAMETOOLONG */
int facts_join(const char *root, const char *path, char *out, size_t len);

/* root/dir/name: is there; its text, as facts_read */
bool facts_there(const char *root, const char *dir, const char *name);
int facts_read_in(const char *root, const char *dir, const char *name, char *buf, size_t len);

/* A number of a small file, as sysfs writes them; false: it is not there, or none. */
bool facts_number(const char *root, const char *dir, const char *name, long *out);

/*
 * Calls `each` with the entries of a folder, dots aside, until it returns other than 0; returns
 * that, or -errno.
 */
int facts_entries(const char *root, const char *dir, int (*each)(void *arg, const char *name),
		  void *arg);

/*
 * The same with the lines of a file of any length, without their ends; what is past
 * FACTS_LINE - 1 bytes of one is left out. Also of /dev/kmsg, up to its last line.
 */
#define FACTS_LINE 16384
int facts_lines(const char *root, const char *path, int (*each)(void *arg, char *line),
		void *arg);

/*
 * Called with every path that is looked at, and how: all that a copy of the tree needs so that
 * the same questions get the same answers. NULL but in a recorder, which sets it before it asks
 * anything and is one thread.
 */
enum facts_look {
	FACTS_LOOK_FILE,	/* its content, through a link at its end */
	FACTS_LOOK_LINK,
	FACTS_LOOK_THERE,	/* that it is there, and its mode */
	FACTS_LOOK_DIR,		/* the names in it */
};
extern void (*facts_seen)(const char *root, const char *path, enum facts_look how);

/* "0000:01:00.0"; a domain can have more than four digits ("10000:..." behind a VMD). */
bool facts_is_pci(const char *name);

/* The last component of a path */
const char *facts_base(const char *path);

#endif /* FACTS_READ_H */
