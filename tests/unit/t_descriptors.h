/* SPDX-License-Identifier: MIT */
/* t_descriptors.h - how many descriptors this process has open; for tests that look for leaks. */
#ifndef T_DESCRIPTORS_H
#define T_DESCRIPTORS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>

/* Only to be compared with itself: the folder's own entries and descriptor are counted, too. */
static inline unsigned int t_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif /* T_DESCRIPTORS_H */
