/* SPDX-License-Identifier: MIT */
/*
 * codes.h - the one table of error numbers: what a number means in this stack, where it is
 * met, its likely causes, how to tell them apart, and the next step. The library's translation
 * of errno into CUfileOpError is here, too. All texts are static; nothing is ever NULL but
 * what is said to be.
 */
#ifndef FACTS_CODES_H
#define FACTS_CODES_H

#include <stddef.h>

#define FACTS_ENOTSUPP 524	/* the kernel's own; user space has no name for it */
#define FACTS_CAUSES 4

struct facts_cause {
	const char *what;	/* NULL: no more causes */
	const char *tell;	/* how to see that it is this one */
	const char *next;
};

struct facts_code {
	int number;		/* errno above 0, CUfileOpError or CUresult */
	const char *name;	/* "EINVAL", "CU_FILE_IO_NOT_SUPPORTED", "CUDA_ERROR_..." */
	const char *means;
	const char *seen;
	struct facts_cause cause[FACTS_CAUSES];	/* the likeliest first */
};

/* NULL: the number has no entry. The index goes from 0; NULL behind the last one. */
const struct facts_code *facts_code_errno(int number);
const struct facts_code *facts_code_cufile(int number);
const struct facts_code *facts_code_cuda(int number);
const struct facts_code *facts_code_errno_at(size_t index);
const struct facts_code *facts_code_cufile_at(size_t index);
const struct facts_code *facts_code_cuda_at(size_t index);

/* The CUfileOpError that stands for an errno (above 0) of open, close and registration. */
int facts_code_of_errno(int number);

#endif /* FACTS_CODES_H */
