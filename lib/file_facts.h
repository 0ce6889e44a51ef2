/* SPDX-License-Identifier: MIT */
/* file_facts.h - whether a file can go direct, from what the machine says about it. */
#ifndef FILE_FACTS_H
#define FILE_FACTS_H

#include "file.h"

/*
 * REASON_NONE, or why not. The module has the last word at each request; this one spares
 * the requests that it would refuse and names the cause. Reads /proc and /sys. pages: for
 * requests on GPU pages in the process, of which the kernel has the last word.
 */
unsigned int file_facts(const struct file *f, bool pages);

/*
 * May its requests go by io_uring? When a file system moves less than asked, io_uring goes on by
 * itself, where the file system says that it is by now. FUSE does not say it (fuse_direct_IO() of
 * Linux 6.12 leaves ki_pos as it was): what follows comes from the request's beginning, and the
 * count is full. So only those file systems are named that do it by iomap or
 * generic_file_read_iter(), and block devices.
 */
bool file_may_ring(const struct file *f);

#endif /* FILE_FACTS_H */
