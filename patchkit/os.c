// SPDX-License-Identifier: MIT
/* os.c - the system calls that change something (a seam for tests), and files as a whole. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "patchkit.h"

static int libc_open(const char *path, int flags, mode_t mode)
{
	return open(path, flags, mode);
}

const struct pk_os pk_os_libc = {
	.open = libc_open,
	.write = write,
	.fsync = fsync,
	.close = close,
	.rename = rename,
	.unlink = unlink,
	.mkdir = mkdir,
	.rmdir = rmdir,
};

const struct pk_os *pk_os = &pk_os_libc;

int pk_read_file(const char *path, char **data, size_t *len, mode_t *mode)
{
	size_t done = 0;
	struct stat st;
	ssize_t n = 0;
	char *p = NULL;
	int fd, r = 0;

	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	if (!r) {
		p = malloc(st.st_size + 1);
		if (!p)
			r = -ENOMEM;
	}
	while (!r && done < (size_t)st.st_size) {
		n = read(fd, p + done, st.st_size - done);
		if (n < 0)
			r = -errno;
		else if (!n)
			break;
		else
			done += n;
	}
	close(fd);
	if (r) {
		free(p);
		return r;
	}
	p[done] = '\0';
	*data = p;
	*len = done;
	if (mode)
		*mode = st.st_mode & 07777;
	return 0;
}

int pk_write_file(const char *path, const char *data, size_t len, mode_t mode)
{
	int fd, r = 0;

	/* a leftover of a crash may be there, and read-only */
	if (pk_os->unlink(path) && errno != ENOENT)
		return -errno;
	fd = pk_os->open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (!r && len) {
		ssize_t n = pk_os->write(fd, data, len);

		if (n < 0) {
			r = errno == EINTR ? 0 : -errno;
			continue;
		}
		data += n;
		len -= n;
	}
	if (!r && fchmod(fd, mode))
		r = -errno;
	if (!r && pk_os->fsync(fd))
		r = -errno;
	if (pk_os->close(fd) && !r)
		r = -errno;
	if (r)
		pk_os->unlink(path);
	return r;
}

int pk_sync_dir_of(const char *path)
{
	char *copy = strdup(path);
	int fd, r = 0;

	if (!copy)
		return -ENOMEM;
	fd = pk_os->open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	free(copy);
	if (fd < 0)
		return -errno;
	/* some file systems (9p, overlays) cannot: there a rename is all there is */
	if (pk_os->fsync(fd) && errno != EINVAL && errno != EOPNOTSUPP)
		r = -errno;
	pk_os->close(fd);
	return r;
}
