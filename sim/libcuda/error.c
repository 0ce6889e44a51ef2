// SPDX-License-Identifier: MIT
/*
 * error.c - names and texts of CUDA errors.
 */
#include "internal.h"

#define E(name, text) { CUDA_##name, "CUDA_" #name, text }

static const struct {
	CUresult error;
	const char *name;
	const char *text;
} errors[] = {
	E(SUCCESS, "no error"),
	E(ERROR_INVALID_VALUE, "invalid argument"),
	E(ERROR_OUT_OF_MEMORY, "out of memory"),
	E(ERROR_NOT_INITIALIZED, "initialization error"),
	E(ERROR_DEINITIALIZED, "driver shutting down"),
	E(ERROR_STUB_LIBRARY, "stub library in place of the driver's"),
	E(ERROR_DEVICE_UNAVAILABLE, "device busy or gone"),
	E(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	E(ERROR_INVALID_DEVICE, "invalid device ordinal"),
	E(ERROR_INVALID_CONTEXT, "invalid device context"),
	E(ERROR_MAP_FAILED, "mapping failed"),
	E(ERROR_UNMAP_FAILED, "unmapping failed"),
	E(ERROR_ALREADY_MAPPED, "already mapped"),
	E(ERROR_NOT_MAPPED, "not mapped"),
	E(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these devices"),
	E(ERROR_OPERATING_SYSTEM, "an operating system call failed"),
	E(ERROR_INVALID_HANDLE, "invalid resource handle"),
	E(ERROR_ILLEGAL_STATE, "the operation is not allowed in this state"),
	E(ERROR_NOT_FOUND, "named symbol not found"),
	E(ERROR_NOT_READY, "device not ready"),
	E(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	E(ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"),
	E(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	E(ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory is already registered"),
	E(ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory is not registered"),
	E(ERROR_NOT_PERMITTED, "operation not permitted"),
	E(ERROR_NOT_SUPPORTED, "operation not supported"),
	E(ERROR_SYSTEM_NOT_READY, "system not ready"),
	E(ERROR_SYSTEM_DRIVER_MISMATCH, "kernel module and library do not go together"),
	E(ERROR_TIMEOUT, "timeout"),
	E(ERROR_UNKNOWN, "unknown error"),
};

static int find(CUresult error)
{
	int i, n = sizeof(errors) / sizeof(errors[0]);

	for (i = 0; i < n && errors[i].error != error; i++)
		;
	return i < n ? i : -1;
}

SIM_EXPORT CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	int i = find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = i < 0 ? NULL : errors[i].name;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	int i = find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = i < 0 ? NULL : errors[i].text;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
