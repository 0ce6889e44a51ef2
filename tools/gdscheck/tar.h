/* SPDX-License-Identifier: MIT */
/*
 * tar.h - a writer of tar archives as POSIX.1-2001 has them: files, folders and symbolic links,
 * long names in extended headers.
 */
#ifndef GC_TAR_H
#define GC_TAR_H

#include <stddef.h>
#include <stdio.h>

/*
 * Appends one member; times and owners are 0. -ENAMETOOLONG: a name of about a KiB; -EIO: the
 * archive cannot be written.
 */
int tar_file(FILE *f, const char *path, unsigned int mode, const void *data, size_t len);
int tar_dir(FILE *f, const char *path);
int tar_link(FILE *f, const char *path, const char *to);

/* The two blocks that end it. 0 or -EIO */
int tar_end(FILE *f);

#endif /* GC_TAR_H */
