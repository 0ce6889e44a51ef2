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

#endif /* FILE_FACTS_H */
