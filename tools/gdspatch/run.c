// SPDX-License-Identifier: MIT
/* run.c - other programs: no shell, their output where ours goes. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "gdspatch.h"

extern char **environ;

int (*gp_exec_hook)(const char *const *argv, struct gp_error *err);

int gp_exec(const char *const *argv, struct gp_error *err)
{
	int r, status = 0;
	pid_t pid;

	if (gp_exec_hook)
		return gp_exec_hook(argv, err);
	fflush(NULL);
	r = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ);
	if (r) {
		gp_refuse(err, GP_TOOL_FAILED, argv[0], 0, "", "this program", "%s (%s)",
			  strerror(r), strerrorname_np(r));
		return -ECHILD;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	gp_refuse(err, GP_TOOL_FAILED, argv[0], 0, argv[1] ? argv[1] : "", "status 0", "%s %d",
		  WIFEXITED(status) ? "status" : "signal",
		  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return -ECHILD;
}
