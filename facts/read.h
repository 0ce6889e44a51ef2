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

/* "0000:01:00.0"; a domain can have more than four digits ("10000:..." behind a VMD). */
bool facts_is_pci(const char *name);

/* The last component of a path */
const char *facts_base(const char *path);

#endif /* FACTS_READ_H */
