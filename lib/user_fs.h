/* SPDX-License-Identifier: MIT */
/*
 * user_fs.h - files of user-space file systems: the table of functions that a program passes
 * with CU_FILE_HANDLE_TYPE_USERSPACE_FS, called with host memory.
 *
 * The functions run on any thread of the program or of the library, several at once, with no
 * lock of the library held. They may call cuFile*, but not deregister their own handle.
 */
#ifndef USER_FS_H
#define USER_FS_H

#include <stddef.h>
#include <sys/types.h>

#include "cufile.h"

struct user_fs;

/*
 * Copies the table; asks for the type, which goes to `name`, and for the addresses of RDMA
 * devices. 0, -ENOMEM, or an error: there is neither read nor write.
 */
int user_fs_new(const CUfileFSOps_t *ops, void *handle, struct user_fs **out, char *name,
		size_t len);

/*
 * All of it, or up to where the file ends: bytes, or an error (errmap.h). What the functions
 * return: bytes, fewer than asked for as well, 0 at the end; -errno; -1 with errno set, or
 * minus a CUfileOpError.
 */
ssize_t user_fs_read(struct user_fs *u, void *buf, size_t size, off_t off);
ssize_t user_fs_write(struct user_fs *u, const void *buf, size_t size, off_t off);

/* Waits for the calls that run; later ones fail with HANDLE_NOT_REGISTERED and reach nobody. */
void user_fs_leave(struct user_fs *u);

/* After user_fs_leave. */
void user_fs_free(struct user_fs *u);

#endif /* USER_FS_H */
