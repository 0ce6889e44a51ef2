// SPDX-License-Identifier: MIT
/* errmap.c - the only place where -errno becomes a CUfileOpError. */
#include <errno.h>
#include <stdio.h>

#define LOG_MODULE "cufio-err"
#include "errmap.h"
#include "gpu.h"
#include "log.h"

/* System errors of open, close and registration; what is not listed is INTERNAL_ERROR. */
static const struct {
	int sys;
	CUfileOpError code;
} table[] = {
	{ EBADF, CU_FILE_INVALID_VALUE },
	{ EINVAL, CU_FILE_INVALID_VALUE },
	{ EFAULT, CU_FILE_INVALID_VALUE },
	{ EACCES, CU_FILE_PERMISSION_DENIED },
	{ EPERM, CU_FILE_PERMISSION_DENIED },
	{ EROFS, CU_FILE_PERMISSION_DENIED },
	{ ENOMEM, CU_FILE_NOMEM_ERROR },
	{ EIO, CU_FILE_IO_ERROR },
	{ ENODEV, CU_FILE_DRIVER_NOT_INITIALIZED },
	{ EMFILE, CU_FILE_GETNEWFD_FAILED },
	{ ENFILE, CU_FILE_GETNEWFD_FAILED },
	{ EPROTO, CU_FILE_DRIVER_VERSION_READ_ERROR },
	{ EPROTONOSUPPORT, CU_FILE_DRIVER_VERSION_MISMATCH },
	{ EOPNOTSUPP, CU_FILE_IO_NOT_SUPPORTED },
};

CUfileError_t errmap_status(int err)
{
	CUfileError_t e = { CU_FILE_SUCCESS, 0 };
	size_t i;

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
	e.err = CU_FILE_INTERNAL_ERROR;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].sys == -err)
			e.err = table[i].code;
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
