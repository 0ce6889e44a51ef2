// SPDX-License-Identifier: MIT
/* errmap.c - the only place where -errno becomes a CUfileOpError. */
#include <errno.h>
#include <stdio.h>

#define LOG_MODULE "cufio-err"
#include "codes.h"
#include "errmap.h"
#include "gpu.h"
#include "log.h"

CUfileError_t errmap_status(int err)
{
	CUfileError_t e = { CU_FILE_SUCCESS, 0 };

	if (err >= 0)
		return e;
	if (err < -ERR_CUDA_BASE) {
		e.err = CU_FILE_CUDA_DRIVER_ERROR;
		e.cu_err = -err - ERR_CUDA_BASE;
		return e;
	}
	if (err < -CUFILEOP_BASE_ERR) {
		e.err = -err;
		return e;
	}
	e.err = facts_code_of_errno(-err);
	return e;
}

int errmap_errno(int err)
{
	return err < -ERR_CUDA_BASE ? EIO : -err;
}

const char *errmap_text(int err)
{
	static __thread char text[160];

	if (err < -ERR_CUDA_BASE)
		snprintf(text, sizeof(text), "%s (%d)", gpu->error(-err - ERR_CUDA_BASE),
			 -err - ERR_CUDA_BASE);
	else if (err < -CUFILEOP_BASE_ERR)
		snprintf(text, sizeof(text), "%d (%s)", -err, cufileop_status_error(-err));
	else
		snprintf(text, sizeof(text), "%s", log_errno(err));
	return text;
}
