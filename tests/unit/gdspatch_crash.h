/* SPDX-License-Identifier: MIT */
/*
 * gdspatch_crash.h - gdspatch dies, or is refused a write, at the n-th call that changes
 * something or runs a program. For t_gdspatch_crash and t_gdspatch_crash_install.
 *
 * To die is to jump out: nothing is cleaned up, open files are closed as the kernel would, and
 * what was in memory is lost (that is, leaked). A process for each death took a minute.
 */
#ifndef GDSPATCH_CRASH_H
#define GDSPATCH_CRASH_H

#include "gdspatch_root.h"

/* LeakSanitizer asks: whatever the options say, there is nothing to look for. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

enum fault { DIES, FAILS };

static enum fault fault;
static int left, total;
static jmp_buf death;

static inline bool strikes(void)
{
	if (left-- > 0)
		return false;
	if (fault == DIES)
		longjmp(death, 1);
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

/* what the kernel does for a process that is gone; its locks go with the files */
static inline void close_all(void)
{
	for (int fd = 3; fd < 100; fd++)
		if (fd != said_fd[0] && fd != said_fd[1] && fd != kept_fd[0] && fd != kept_fd[1])
			close(fd);
}

/* the command, whose n-th call is its last, or fails as all after it do; false: it has fewer */
static inline bool struck(enum fault how, int n, const char *line, int *status)
{
	fault = how;
	left = n;
	pk_os = &os_seam;
	gp_exec_hook = seam_exec;
	if (!setjmp(death)) {
		*status = run("%s", line);
	} else {
		*status = GP_EXIT_SYSTEM;
		fflush(NULL);
		restore(1, out_text, sizeof(out_text));
		restore(2, err_text, sizeof(err_text));
		close_all();
	}
	pk_os = &os_quick;
	gp_exec_hook = fake_exec;
	if (left >= 0) {
		assert_int_equal(*status, 0);
		return false;
	}
	total++;
	return true;
}

#endif /* GDSPATCH_CRASH_H */
