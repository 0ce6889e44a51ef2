/* SPDX-License-Identifier: MIT */
/* run.h - the command gdscp, apart from main(), for tests. */
#ifndef GDSCP_RUN_H
#define GDSCP_RUN_H

/* Exit statuses */
enum {
	GDSCP_OK = 0,
	GDSCP_FAILED = 1,
	GDSCP_USAGE = 2,
	GDSCP_NOT_DIRECT = 3,
};

/* The status; when a signal ended it, it does not return but ends by that signal. */
int gdscp_run(int argc, char **argv);

#endif /* GDSCP_RUN_H */
