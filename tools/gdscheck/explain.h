/* SPDX-License-Identifier: MIT */
/* explain.h - what an error number, a reason or a line of a log means in this stack. */
#ifndef GDSCHECK_EXPLAIN_H
#define GDSCHECK_EXPLAIN_H

#include <stdio.h>

enum {
	EXPLAIN_EXIT_KNOWN = 0,	/* something was known, and told */
	EXPLAIN_EXIT_UNKNOWN = 1, /* nothing was */
	EXPLAIN_EXIT_READ = 2,	/* the log could not be read */
};

/*
 * Tells all about a number ("-22", "22", "5008", "205"), a name ("EINVAL",
 * "CU_FILE_IO_NOT_SUPPORTED", "IO_NOT_SUPPORTED", "CUDA_ERROR_MAP_FAILED") or the id of a reason
 * ("R-FS-TYPE"). A number above 0 that means several things is told in each meaning. Returns
 * the exit status: known, or unknown with what can be asked for.
 */
int gc_explain_error(const char *code, FILE *out);

/*
 * Reads a kernel log, a cufile.log, or both in one, and tells each kind of line that it knows
 * once, with its number and the first such line. Returns the exit status.
 */
int gc_explain_log(FILE *in, FILE *out);

/* A kind of line */
struct explain_kind {
	const char *name;
	const char *has[3];	/* texts that the line has, in this order; NULL: no more */
	const char *means;
	const char *next;
};

/* The kind of one line; NULL: none that is known. */
const struct explain_kind *explain_kind(const char *line);

/*
 * The error number that a line tells ("refused: -22", "(-EOPNOTSUPP)", "errno 5"), above 0;
 * 0: none.
 */
int explain_errno(const char *line);

#endif /* GDSCHECK_EXPLAIN_H */
