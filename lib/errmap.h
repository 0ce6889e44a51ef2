/* SPDX-License-Identifier: MIT */
/*
 * errmap.h - errors inside the library, and their one translation at its border.
 *
 * Inside, a function returns 0 (or bytes) or one of three kinds of negative number:
 *
 *	-4095 .. -1	-errno of a system call
 *	-5050 .. -5001	-CUfileOpError
 *	below -10000	-(10000 + CUresult)
 */
#ifndef ERRMAP_H
#define ERRMAP_H

#include "cufile.h"

#define ERR_CUDA_BASE 10000

/* e.g. ERR(INVALID_VALUE) */
#define ERR(name) (-(int)CU_FILE_##name)

static inline int err_cuda(int result)
{
	return -(ERR_CUDA_BASE + result);
}

/* What a function returns that returns CUfileError_t. */
CUfileError_t errmap_status(int err);

/* What cuFileRead and cuFileWrite leave in errno. */
int errmap_errno(int err);

/* "EINVAL", "5022 (invalid arguments)", "CUDA_ERROR_..."; per-thread text */
const char *errmap_text(int err);

#endif /* ERRMAP_H */
