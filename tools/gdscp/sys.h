/* SPDX-License-Identifier: MIT */
/* sys.h - the system calls that can leave a copy half done: what tests replace. */
#ifndef GDSCP_SYS_H
#define GDSCP_SYS_H

#include <sys/types.h>

/* As the calls of those names: -1 and errno. */
struct gdscp_sys {
	int (*ftruncate)(int fd, off_t size);
	int (*fallocate)(int fd, int mode, off_t off, off_t len);
	int (*fsync)(int fd);
	int (*renameat2)(int from_dir, const char *from, int to_dir, const char *to,
			 unsigned int flags);
};

extern const struct gdscp_sys *gdscp_sys;

#endif /* GDSCP_SYS_H */
