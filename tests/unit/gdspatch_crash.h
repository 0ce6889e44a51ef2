/* SPDX-License-Identifier: MIT */
/*
 * gdspatch_crash.h - gdspatch dies, or is refused a write, at the n-th call that changes
 * something or runs a program. For t_gdspatch_crash and t_gdspatch_crash_install.
 */
#ifndef GDSPATCH_CRASH_H
#define GDSPATCH_CRASH_H

#include "gdspatch_root.h"

enum fault { DIES, FAILS };

static enum fault fault;
static int left, total;

static inline bool strikes(void)
{
	if (left-- > 0)
		return false;
	if (fault == DIES)
		_exit(42);
	errno = EROFS;
	return true;
}

static inline int s_open(const char *path, int flags, mode_t mode)
{
	return strikes() ? -1 : pk_os_libc.open(path, flags, mode);
}

static inline ssize_t s_write(int fd, const void *data, size_t len)
{
	/* half of it is what a crash leaves */
	if (!left && len > 1 && write(fd, data, len / 2) < 0)
		return -1;
	return strikes() ? -1 : write(fd, data, len);
}

static inline int s_fsync(int fd)
{
	return strikes() ? -1 : 0;
}

static inline int s_close(int fd)
{
	bool bad = strikes();

	close(fd);
	return bad ? -1 : 0;
}

static inline int s_rename(const char *from, const char *to)
{
	return strikes() ? -1 : rename(from, to);
}

static inline int s_unlink(const char *path)
{
	return strikes() ? -1 : unlink(path);
}

static inline int s_mkdir(const char *path, mode_t mode)
{
	return strikes() ? -1 : mkdir(path, mode);
}

static inline int s_rmdir(const char *path)
{
	return strikes() ? -1 : rmdir(path);
}

static const struct pk_os os_seam = {
	s_open, s_write, s_fsync, s_close, s_rename, s_unlink, s_mkdir, s_rmdir,
};

/* a program, too, is a place to die at: before it has done anything */
static inline int seam_exec(const char *const *argv, struct gp_error *err)
{
	if (!strikes())
		return fake_exec(argv, err);
	gp_refuse(err, GP_TOOL_FAILED, argv[0], 0, "", "status 0", "status 1");
	return -ECHILD;
}

static inline int with_seam(enum fault how, int n, const char *line)
{
	int status;

	fault = how;
	left = n;
	pk_os = &os_seam;
	gp_exec_hook = seam_exec;
	status = run("%s", line);
	pk_os = &os_quick;
	gp_exec_hook = fake_exec;
	return left < 0 ? 40 + status : status;
}

/* the command, whose n-th call is its last (in a child), or fails as all after it do */
static inline bool struck(enum fault how, int n, const char *line, int *status)
{
	int st;

	if (how == FAILS) {
		*status = with_seam(how, n, line);
	} else {
		pid_t pid = fork();

		if (!pid)
			_exit(with_seam(how, n, line));
		assert_int_equal(waitpid(pid, &st, 0), pid);
		assert_true(WIFEXITED(st));
		*status = WEXITSTATUS(st);
	}
	if (*status < 40) {
		assert_int_equal(*status, 0);
		return false;
	}
	total++;
	return true;
}

#endif /* GDSPATCH_CRASH_H */
