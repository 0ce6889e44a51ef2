// SPDX-License-Identifier: MIT
/* differ_handle.c - cases of differ: registered files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "differ.h"

static void null_arguments(struct d *d, long arg)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh;

	descr.handle.fd = d_open(d, "data", O_RDWR);
	if (arg)
		d_err("register", lib.HandleRegister(NULL, &descr));
	else
		d_err("register", lib.HandleRegister(&fh, NULL));
}

static void bad_fd(struct d *d, long arg)
{
	d_err("register", d_register(d, arg));
	d_flag("handle", d->fh);
}

static void closed_fd(struct d *d, long arg)
{
	int fd;

	/* first, or its log takes the number */
	d_err("open", lib.DriverOpen());
	fd = open("data", O_RDWR);
	close(fd);
	d_err("register", d_register(d, fd));
}

static void of_path(struct d *d, const char *path, int flags)
{
	d_err("register", d_register(d, d_open(d, path, flags)));
}

static void directory(struct d *d, long arg) { of_path(d, ".", O_RDONLY); }
static void device(struct d *d, long arg) { of_path(d, "/dev/null", O_RDWR); }
static void proc_file(struct d *d, long arg) { of_path(d, "/proc/self/status", O_RDONLY); }

static void pipe_or_socket(struct d *d, long arg)
{
	int fd[2] = { -1, -1 };

	if (arg ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd))
		return;
	d_err("register", d_register(d, fd[0]));
	close(fd[0]);
	close(fd[1]);
}

static void type(struct d *d, long arg)
{
	CUfileDescr_t descr = { .type = arg };
	CUfileHandle_t fh;

	descr.handle.fd = d_open(d, "data", O_RDWR);
	d_err("register", lib.HandleRegister(&fh, &descr));
}

static void twice(struct d *d, long arg)
{
	CUfileHandle_t first;

	d_err("register", d_register(d, d_open(d, "data", O_RDWR)));
	first = d->fh;
	d_err("again", d_register(d, d->fd));
	lib.HandleDeregister(first);
	d_err("after", d_register(d, d->fd));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
}

/* Two descriptors of one file: by dup, or by a second open. */
static void two_fds(struct d *d, long arg)
{
	CUfileHandle_t first;
	int fd;

	d_err("register", d_register(d, d_open(d, "data", O_RDWR)));
	first = d->fh;
	fd = arg ? dup(d->fd) : open("data", O_RDWR);
	d_err("second", d_register(d, fd));
	d_flag("same-handle", first == d->fh);
	d_io("read", lib.Read(first, d_ptr(d, 0), 4 * K, 0, 0));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	close(fd);
}

/* A number that was closed while registered, and names another file now. */
static void fd_reused(struct d *d, long arg)
{
	int fd, other;

	fd = open("data", O_RDWR);
	d_err("register", d_register(d, fd));
	close(fd);
	other = open("other", O_RDWR | O_CREAT, 0644);
	if (ftruncate(other, 64 * K))
		return;
	if (other != fd) {
		dup2(other, fd);
		close(other);
	}
	d_err("register", d_register(d, fd));
	close(fd);
}

static void flag(struct d *d, long arg)
{
	if (d_open(d, "data", arg) < 0)
		return;
	d_err("register", d_register(d, d->fd));
	if (!d->fh)
		return;
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_data(d, "data", 0, 64 * K, 0);
}

static void tmpfile_flag(struct d *d, long arg)
{
	of_path(d, ".", O_TMPFILE | O_RDWR);
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
}

static void path_flag(struct d *d, long arg) { of_path(d, "data", O_PATH); }

static void unlinked(struct d *d, long arg)
{
	d_open(d, "data", O_RDWR);
	unlink("data");
	d_err("register", d_register(d, d->fd));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_data(d, "data", 0, 64 * K, 0);
}

static void unlinked_later(struct d *d, long arg)
{
	d_err("register", d_register(d, d_open(d, "data", O_RDWR)));
	unlink("data");
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_data(d, "data", 0, 64 * K, 0);
}

static void empty_file(struct d *d, long arg)
{
	d_err("register", d_register(d, d_open(d, "empty", O_RDWR | O_CREAT)));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
}

/* On memory: no drive, no O_DIRECT on older kernels. */
static void on_tmpfs(struct d *d, long arg)
{
	unsigned char buf[64 * K];
	size_t i;
	char path[] = "/dev/shm/differ.XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0)
		d_not_here("no file can be made in /dev/shm");
	unlink(path);
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = d_byte(i);
	if (write(fd, buf, sizeof(buf)) != (ssize_t)sizeof(buf))
		d_not_here("no room in /dev/shm");
	d_err("register", d_register(d, fd));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), sizeof(buf), 0, 0));
	d_data(d, "data", 0, sizeof(buf), 0);
	close(fd);
}

static void deregister_none(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	lib.HandleDeregister(arg ? NEVER : NULL);
	d_num("uses", lib.UseCount());
}

static void deregister_closed(struct d *d, long arg)
{
	lib.HandleDeregister(NEVER);
	d_num("uses", lib.UseCount());
}

static void deregister_twice(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR);
	lib.HandleDeregister(d->fh);
	lib.HandleDeregister(d->fh);
	d_num("uses", lib.UseCount());
	d_flag("fd-open", fcntl(d->fd, F_GETFD) >= 0);
}

static void fd_closed_before(struct d *d, long arg)
{
	int fd = open("data", O_RDWR | (arg ? O_DIRECT : 0));

	d_err("register", d_register(d, fd));
	close(fd);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_io("unaligned", lib.Read(d->fh, d_ptr(d, 0), 1000, 10, 0));
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	lib.HandleDeregister(d->fh);
}

/* -- user-space file systems -- */

static int fs_calls;

static const char *fs_type(const void *handle)
{
	fs_calls++;
	return "differ";
}

static int fs_list(const void *handle, sockaddr_t **addr)
{
	fs_calls++;
	return -1;
}

static int fs_priority(const void *handle, char *p, size_t n, loff_t off, sockaddr_t *addr)
{
	fs_calls++;
	return -1;
}

static ssize_t fs_read(const void *handle, char *p, size_t n, loff_t off,
		       const cufileRDMAInfo_t *info)
{
	fs_calls++;
	return -EIO;
}

static ssize_t fs_write(const void *handle, const char *p, size_t n, loff_t off,
			const cufileRDMAInfo_t *info)
{
	fs_calls++;
	return -EIO;
}

static void userspace(struct d *d, long arg)
{
	static const CUfileFSOps_t ops = { fs_type, fs_list, fs_priority, fs_read, fs_write };
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS };
	CUfileHandle_t fh = NULL;

	fs_calls = 0;
	descr.handle.handle = d;
	descr.fs_ops = arg ? &ops : NULL;
	d_err("register", lib.HandleRegister(&fh, &descr));
	if (fh) {
		d_io("read", lib.Read(fh, d_ptr(d, 0), 64 * K, 0, 0));
		d_flag("called", fs_calls);
	}
}

static void many(struct d *d, long arg)
{
	static CUfileHandle_t fh[200];
	int fd[200], i, ok = 0;

	for (i = 0; i < 200; i++) {
		fd[i] = open("data", O_RDWR);
		ok += !d_register(d, fd[i]).err;
		fh[i] = d->fh;
	}
	d_num("registered", ok);
	d_io("read", lib.Read(fh[199], d_ptr(d, 0), 4 * K, 0, 0));
	for (i = 0; i < 200; i++) {
		lib.HandleDeregister(fh[i]);
		close(fd[i]);
	}
	d_num("uses", lib.UseCount());
}

const struct d_case handle_cases[] = {
	{ "handle-null-fh", null_arguments, 1 },
	{ "handle-null-descr", null_arguments, 0 },
	{ "handle-fd-minus-1", bad_fd, -1 },
	{ "handle-fd-900", bad_fd, 900 },
	{ "handle-fd-closed", closed_fd },
	{ "handle-directory", directory },
	{ "handle-device", device },
	{ "handle-proc", proc_file },
	{ "handle-pipe", pipe_or_socket, 0 },
	{ "handle-socket", pipe_or_socket, 1 },
	{ "handle-type-0", type, 0 },
	{ "handle-type-win32", type, CU_FILE_HANDLE_TYPE_OPAQUE_WIN32 },
	{ "handle-type-99", type, 99 },
	{ "handle-userspace-null", userspace, 0 },
	{ "handle-userspace", userspace, 1 },
	{ "handle-twice", twice },
	{ "handle-two-opens", two_fds, 0 },
	{ "handle-dup", two_fds, 1 },
	{ "handle-fd-reused", fd_reused },
	{ "handle-rdonly", flag, O_RDONLY },
	{ "handle-rdonly-direct", flag, O_RDONLY | O_DIRECT },
	{ "handle-rdwr", flag, O_RDWR },
	{ "handle-rdwr-direct", flag, O_RDWR | O_DIRECT },
	{ "handle-wronly", flag, O_WRONLY },
	{ "handle-append", flag, O_RDWR | O_APPEND },
	{ "handle-nonblock", flag, O_RDWR | O_NONBLOCK },
	{ "handle-noatime", flag, O_RDWR | O_NOATIME },
	{ "handle-noctty", flag, O_RDWR | O_NOCTTY },
	{ "handle-nofollow", flag, O_RDWR | O_NOFOLLOW },
	{ "handle-sync", flag, O_RDWR | O_SYNC },
	{ "handle-dsync", flag, O_RDWR | O_DSYNC },
	{ "handle-tmpfile", tmpfile_flag },
	{ "handle-path", path_flag },
	{ "handle-unlinked", unlinked },
	{ "handle-unlinked-later", unlinked_later },
	{ "handle-empty", empty_file },
	{ "handle-tmpfs", on_tmpfs },
	{ "handle-deregister-null", deregister_none, 0 },
	{ "handle-deregister-unknown", deregister_none, 1 },
	{ "handle-deregister-closed", deregister_closed },
	{ "handle-deregister-twice", deregister_twice },
	{ "handle-fd-closed-before", fd_closed_before, 0 },
	{ "handle-fd-closed-before-direct", fd_closed_before, 1 },
	{ "handle-many", many },
	{ NULL }
};
