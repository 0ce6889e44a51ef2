// SPDX-License-Identifier: MIT
/* cufile_errors_open.c - cases of cufile_errors: the driver and files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cufile_errors.h"

/* -- open, close, use count -- */

static void open_counts(struct t *t)
{
	e_want_uses(t, "before the first use", 0);
	e_want(t, "the first cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_want_uses(t, "after an open", 1);
	e_want(t, "the second cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_want_uses(t, "after two opens", 2);
	e_want(t, "cuFileDriverClose", cuFileDriverClose(), 0);
	e_want_uses(t, "after a close", 1);
	e_want(t, "cuFileDriverClose", cuFileDriverClose(), 0);
	e_want_uses(t, "after the last close", 0);
	e_want(t, "a close too many", cuFileDriverClose(), CU_FILE_DRIVER_NOT_INITIALIZED);
}

static void open_by_handle(struct t *t)
{
	e_file(t, O_RDWR);
	e_want_uses(t, "after cuFileHandleRegister", 1);
	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_want_uses(t, "after an open on top", 2);
}

static void open_by_buffer(struct t *t)
{
	e_gpu(t);
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M, 0), 0);
	e_want_uses(t, "after cuFileBufRegister", 1);
}

static void open_by_read(struct t *t)
{
	e_gpu(t);
	e_want_io(t, "cuFileRead", cuFileRead(NEVER, e_mem(t), 1, 0, 0), -1,
		CU_FILE_HANDLE_NOT_REGISTERED);
	/* no file can be there while it is closed */
	e_want_uses(t, "after cuFileRead", 0);
}

static void open_by_write(struct t *t)
{
	e_gpu(t);
	e_want_io(t, "cuFileWrite", cuFileWrite(NEVER, e_mem(t), 1, 0, 0), -1,
		CU_FILE_HANDLE_NOT_REGISTERED);
	e_want_uses(t, "after cuFileWrite", 0);
}

static void close_never_open(struct t *t)
{
	e_want(t, "cuFileDriverClose", cuFileDriverClose(), CU_FILE_DRIVER_NOT_INITIALIZED);
	e_want_uses(t, "after that", 0);
}

/* The symbol of old programs; the header's macro leads everybody else to _v2. */
static void close_legacy(struct t *t)
{
#pragma push_macro("cuFileDriverClose")
#undef cuFileDriverClose
	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_want(t, "cuFileDriverClose, the old symbol", cuFileDriverClose(), 0);
#pragma pop_macro("cuFileDriverClose")
	e_want_uses(t, "after that", 0);
}

static void close_releases(struct t *t)
{
	CUfileHandle_t old;

	e_file(t, O_RDWR);
	old = t->fh;
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M, 0), 0);
	e_want(t, "cuFileDriverClose", cuFileDriverClose(), 0);
	e_want(t, "cuFileBufDeregister after the last close", cuFileBufDeregister(e_mem(t)),
	     CU_FILE_DRIVER_CLOSING);
	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_want_io(t, "a read by a handle from before the close", cuFileRead(old, e_mem(t), 1, 0, 0), -1,
		CU_FILE_HANDLE_NOT_REGISTERED);
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M, 0), 0);
	e_want(t, "cuFileHandleRegister of the same fd", e_register_fd(t, t->fd), 0);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	e_want_bytes(t, M, 0);
}

/* Descriptors 0 to 2 may be closed in the caller; nobody may close them for it. */
static void keep_stdio(struct t *t)
{
	struct stat before[3], after;
	int i;

	for (i = 0; i < 3; i++)
		if (fstat(i, &before[i]))
			t_die("descriptor %d is not open", i);
	cuFileDriverOpen();
	e_gpu(t);
	cuFileBufRegister(e_mem(t), M, 0);
	cuFileDriverClose();
	for (i = 0; i < 3; i++)
		if (fstat(i, &after) || after.st_ino != before[i].st_ino)
			e_breach(t, "descriptor %d is not what it was", i);
}

static void open_refused(struct t *t)
{
	e_object(t, "nvidia-fs");
	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), CU_FILE_DRIVER_NOT_INITIALIZED);
	e_want_uses(t, "after that", 0);
	e_gpu(t);
	e_want(t, "cuFileHandleRegister", e_register_fd(t, t_open(t->path, O_RDWR)),
	     CU_FILE_DRIVER_NOT_INITIALIZED);
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M, 0),
	     CU_FILE_DRIVER_NOT_INITIALIZED);
	keep_stdio(t);
}

static void open_compat(struct t *t)
{
	e_object(t, "running in compatible mode");
	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), 0);
}

static void log_unwritable(struct t *t)
{
	e_file(t, O_RDWR);
	e_want(t, "cuFileHandleRegister", e_register_fd(t, t->fd), CU_FILE_HANDLE_ALREADY_REGISTERED);
}

static bool says_no(CUfileError_t e)
{
	return e.err == CU_FILE_DRIVER_NOT_INITIALIZED || e.err == CU_FILE_INVALID_VALUE;
}

/* What a child of fork() gets: an error at once, from whatever it calls. */
static int forked(struct t *t)
{
	ssize_t n = cuFileRead(t->fh, e_mem(t), M, 0, 0);

	if (n != -1 || (errno != CU_FILE_DRIVER_NOT_INITIALIZED && errno != EINVAL))
		return 2;
	if (!says_no(cuFileDriverOpen()) || !says_no(cuFileBufRegister(e_mem(t), M, 0)))
		return 3;
	if (!says_no(cuFileDriverClose()))
		return 4;
	cuFileHandleDeregister(t->fh);
	return 0;
}

static void fork_child(struct t *t)
{
	int status;
	pid_t pid;

	e_file(t, O_RDWR);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	pid = fork();
	if (!pid) {
		alarm(20);
		exit(forked(t));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		t_die("fork: %s", strerror(errno));
	if (WIFSIGNALED(status))
		e_breach(t, "the child of a fork was ended by signal %d (14: it hung)",
		       WTERMSIG(status));
	else if (WEXITSTATUS(status))
		e_breach(t, "the child of a fork: call %d answered wrongly", WEXITSTATUS(status));
	e_want_io(t, "a read after the fork", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
}

/* -- files -- */

static void handle_null(struct t *t)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh;

	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_object(t, "cuFileHandleRegister");
	descr.handle.fd = t_open(t->path, O_RDWR);
	e_want(t, "NULL fh", cuFileHandleRegister(NULL, &descr), CU_FILE_INVALID_VALUE);
	e_want(t, "NULL descr", cuFileHandleRegister(&fh, NULL), CU_FILE_INVALID_VALUE);
}

static void handle_bad_fd(struct t *t)
{
	e_object(t, "fd 900");
	e_want(t, "fd -1", e_register_fd(t, -1), CU_FILE_INVALID_VALUE);
	e_want(t, "a closed fd", e_register_fd(t, 900), CU_FILE_INVALID_VALUE);
}

static void handle_directory(struct t *t)
{
	e_object(t, "%s", t->dir);
	e_want(t, "a directory", e_register_fd(t, t_open(t->dir, O_RDONLY)),
	     CU_FILE_INVALID_FILE_TYPE);
}

static void handle_pipe(struct t *t)
{
	int fd[2];

	if (pipe(fd))
		t_die("pipe: %s", strerror(errno));
	e_object(t, "pipe:");
	e_want(t, "a pipe", e_register_fd(t, fd[0]), CU_FILE_INVALID_FILE_TYPE);
}

static void handle_socket(struct t *t)
{
	e_object(t, "socket:");
	e_want(t, "a socket", e_register_fd(t, socket(AF_UNIX, SOCK_STREAM, 0)),
	     CU_FILE_INVALID_FILE_TYPE);
}

static void handle_block(struct t *t)
{
	e_gpu(t);
	e_want(t, "a block device", e_register_fd(t, t_open(t->block, O_RDONLY | O_DIRECT)), 0);
	e_want_io(t, "a read of it", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
}

static void want_type(struct t *t, int type)
{
	CUfileDescr_t descr = { .type = type };
	CUfileHandle_t fh;

	e_object(t, "%d", type);
	descr.handle.fd = t_open(t->path, O_RDWR);
	e_want(t, "this handle type", cuFileHandleRegister(&fh, &descr), CU_FILE_IO_NOT_SUPPORTED);
}

static void handle_win32(struct t *t)
{
	want_type(t, CU_FILE_HANDLE_TYPE_OPAQUE_WIN32);
}

static void handle_unknown_type(struct t *t)
{
	want_type(t, 99);
}

static void handle_userspace(struct t *t)
{
	want_type(t, CU_FILE_HANDLE_TYPE_USERSPACE_FS);	/* fs_ops NULL */
}

static void handle_twice(struct t *t)
{
	CUfileHandle_t first;

	e_file(t, O_RDWR);
	first = t->fh;
	e_object(t, "%s", t->path);
	e_want(t, "the same fd again", e_register_fd(t, t->fd), CU_FILE_HANDLE_ALREADY_REGISTERED);
	cuFileHandleDeregister(first);
	e_want(t, "the same fd after Deregister", e_register_fd(t, t->fd), 0);
}

static void want_flag(struct t *t, int flag)
{
	e_object(t, "%s", t->path);
	e_want(t, "this open flag", e_register_fd(t, t_open(t->path, O_RDWR | flag)),
	     CU_FILE_INVALID_FILE_OPEN_FLAG);
}

static void flag_append(struct t *t) { want_flag(t, O_APPEND); }
static void flag_nonblock(struct t *t) { want_flag(t, O_NONBLOCK); }
static void flag_nofollow(struct t *t) { want_flag(t, O_NOFOLLOW); }

static void no_odirect(struct t *t)
{
	e_file(t, O_RDWR);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	e_want_bytes(t, M, 0);
}

/* A file system that no drive is below. */
static void other_fs(struct t *t, int err)
{
	snprintf(t->path, sizeof(t->path), "/dev/shm/cufile_errors.%d", (int)getpid());
	e_make_file(t->path);
	e_object(t, "%s", t->path);
	t->fd = t_open(t->path, O_RDWR);
	unlink(t->path);
	e_want(t, "a file on tmpfs", e_register_fd(t, t->fd), err);
	if (err)
		return;
	e_gpu(t);
	e_want_io(t, "a read of it", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	e_want_bytes(t, M, 0);
}

static void fs_compat(struct t *t) { other_fs(t, 0); }
static void fs_refused(struct t *t) { other_fs(t, CU_FILE_IO_NOT_SUPPORTED); }

static void attribute(struct t *t)
{
	int fd = t_open(t->path, O_RDWR), old, flags;

	e_object(t, "%s", t->path);
	if (ioctl(fd, FS_IOC_GETFLAGS, &old))
		t_die("%s: attributes: %s", t->path, strerror(errno));
	flags = old | FS_APPEND_FL;
	if (ioctl(fd, FS_IOC_SETFLAGS, &flags))
		t_die("%s: append attribute: %s", t->path, strerror(errno));
	e_want(t, "a file with the append attribute", e_register_fd(t, fd), CU_FILE_IO_NOT_SUPPORTED);
	ioctl(fd, FS_IOC_SETFLAGS, &old);
}

static void handle_unknown(struct t *t)
{
	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_object(t, "%p", NEVER);
	cuFileHandleDeregister(NEVER);
	cuFileHandleDeregister(NULL);
	e_want_uses(t, "after Deregister of no handle", 1);
}

static void handle_keeps_fd(struct t *t)
{
	e_file(t, O_RDWR);
	cuFileHandleDeregister(t->fh);
	if (fcntl(t->fd, F_GETFD) < 0)
		e_breach(t, "Deregister closed the caller's descriptor");
}

static void handle_fd_closed(struct t *t)
{
	e_file(t, O_RDWR);
	close(t->fd);
	e_want_io(t, "a read after close(fd)", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	e_want_bytes(t, M, 0);
}

const struct kase open_kases[] = {
	{ "open-counts", open_counts },
	{ "open-by-handle", open_by_handle },
	{ "open-by-buffer", open_by_buffer },
	{ "open-by-read", open_by_read, "ERROR" },
	{ "open-by-write", open_by_write, "ERROR" },
	{ "close-never-open", close_never_open },
	{ "close-legacy", close_legacy },
	{ "close-releases", close_releases },
	{ "keep-stdio", keep_stdio },
	{ "open-refused", open_refused, "ERROR", NO_MODULE, COMPAT_OFF },
	{ "open-compat", open_compat, "NOTICE", NO_MODULE },
	{ "log-unwritable", log_unwritable, NULL, ANY, "CUFILE_LOGFILE_PATH=/proc/none/cufile.log" },
	{ "fork-child", fork_child },
	{ "handle-null", handle_null, "ERROR" },
	{ "handle-bad-fd", handle_bad_fd, "ERROR" },
	{ "handle-directory", handle_directory, "ERROR" },
	{ "handle-pipe", handle_pipe, "ERROR" },
	{ "handle-socket", handle_socket, "ERROR" },
	{ "handle-block", handle_block, NULL, BLOCK },
	{ "handle-win32", handle_win32, "ERROR" },
	{ "handle-unknown-type", handle_unknown_type, "ERROR" },
	{ "handle-userspace", handle_userspace, "ERROR" },
	{ "handle-twice", handle_twice, "ERROR" },
	{ "flag-append", flag_append, "ERROR" },
	{ "flag-nonblock", flag_nonblock, "ERROR" },
	{ "flag-nofollow", flag_nofollow, "ERROR" },
	{ "no-odirect", no_odirect },
	{ "fs-compat", fs_compat, "NOTICE" },
	{ "fs-refused", fs_refused, "ERROR", MODULE, COMPAT_OFF },
	{ "attribute", attribute, "ERROR", MODULE, COMPAT_OFF },
	{ "handle-unknown", handle_unknown, "ERROR" },
	{ "handle-keeps-fd", handle_keeps_fd },
	{ "handle-fd-closed", handle_fd_closed },
	{ NULL }
};
