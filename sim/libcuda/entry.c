// SPDX-License-Identifier: MIT
/*
 * entry.c - cuGetProcAddress: functions by the name that programs write, and the version
 * of CUDA whose signature they expect.
 */
#include <string.h>

#include "internal.h"

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);
CUresult cuCtxCreate_v3(CUcontext *pctx, void *params, int n, unsigned int flags, CUdevice dev);

#define F(name, since) { #name, since, (void (*)(void))(name) }
/* a name that cuda.h maps to a newer symbol: the macro must not rename the text */
#define V(text, since, symbol) { text, since, (void (*)(void))(symbol) }

/* Entries of one name stand together, older first. */
static const struct {
	const char *name;
	int since;		/* CUDA version, as in CUDA_VERSION */
	void (*fn)(void);
} entries[] = {
	F(cuInit, 2000),
	F(cuDriverGetVersion, 2020),
	F(cuGetErrorName, 6000),
	F(cuGetErrorString, 6000),
	V("cuGetProcAddress", 12000, cuGetProcAddress),
	F(cuDeviceGetCount, 2000),
	F(cuDeviceGet, 2000),
	F(cuDeviceGetName, 2000),
	F(cuDeviceGetAttribute, 2000),
	F(cuDeviceGetPCIBusId, 4010),
	F(cuDeviceGetByPCIBusId, 4010),
	V("cuDeviceGetUuid", 9020, cuDeviceGetUuid),
	V("cuDeviceTotalMem", 3020, cuDeviceTotalMem),
	F(cuDevicePrimaryCtxRetain, 7000),
	V("cuDevicePrimaryCtxRelease", 7000, cuDevicePrimaryCtxRelease),
	V("cuDevicePrimaryCtxReset", 7000, cuDevicePrimaryCtxReset),
	V("cuDevicePrimaryCtxSetFlags", 7000, cuDevicePrimaryCtxSetFlags),
	F(cuDevicePrimaryCtxGetState, 7000),
	V("cuCtxCreate", 3020, cuCtxCreate_v2),
	V("cuCtxCreate", 11040, cuCtxCreate_v3),
	V("cuCtxCreate", 12050, cuCtxCreate_v4),
	V("cuCtxDestroy", 4000, cuCtxDestroy),
	F(cuCtxSetCurrent, 4000),
	F(cuCtxGetCurrent, 4000),
	V("cuCtxPushCurrent", 4000, cuCtxPushCurrent),
	V("cuCtxPopCurrent", 4000, cuCtxPopCurrent),
	F(cuCtxGetDevice, 2000),
	F(cuCtxSynchronize, 2000),
	V("cuMemGetInfo", 3020, cuMemGetInfo),
	V("cuMemAlloc", 3020, cuMemAlloc),
	V("cuMemFree", 3020, cuMemFree),
	V("cuMemGetAddressRange", 3020, cuMemGetAddressRange),
	F(cuMemGetAllocationGranularity, 10020),
	F(cuMemAddressReserve, 10020),
	F(cuMemAddressFree, 10020),
	F(cuMemCreate, 10020),
	F(cuMemRelease, 10020),
	F(cuMemMap, 10020),
	F(cuMemUnmap, 10020),
	F(cuMemSetAccess, 10020),
	F(cuMemRetainAllocationHandle, 11000),
	F(cuMemExportToShareableHandle, 10020),
	V("cuMemAllocHost", 3020, cuMemAllocHost),
	F(cuMemHostAlloc, 2020),
	F(cuMemFreeHost, 2000),
	V("cuMemHostRegister", 6050, cuMemHostRegister),
	F(cuMemHostUnregister, 4000),
	V("cuMemHostGetDevicePointer", 3020, cuMemHostGetDevicePointer),
	F(cuMemHostGetFlags, 2030),
	F(cuMemcpy, 4000),
	V("cuMemcpyHtoD", 3020, cuMemcpyHtoD),
	V("cuMemcpyDtoH", 3020, cuMemcpyDtoH),
	V("cuMemcpyDtoD", 3020, cuMemcpyDtoD),
	F(cuMemcpyAsync, 4000),
	V("cuMemcpyHtoDAsync", 3020, cuMemcpyHtoDAsync),
	V("cuMemcpyDtoHAsync", 3020, cuMemcpyDtoHAsync),
	V("cuMemcpyDtoDAsync", 3020, cuMemcpyDtoDAsync),
	V("cuMemsetD8", 3020, cuMemsetD8),
	V("cuMemsetD32", 3020, cuMemsetD32),
	F(cuMemsetD8Async, 3020),
	F(cuMemsetD32Async, 3020),
	F(cuIpcGetMemHandle, 4010),
	F(cuPointerGetAttribute, 4000),
	F(cuPointerGetAttributes, 7000),
	F(cuPointerSetAttribute, 6000),
	F(cuStreamCreate, 2000),
	F(cuStreamCreateWithPriority, 5050),
	V("cuStreamDestroy", 4000, cuStreamDestroy),
	F(cuStreamSynchronize, 2000),
	F(cuStreamQuery, 2000),
	F(cuStreamWaitEvent, 3020),
	F(cuStreamAddCallback, 5000),
	F(cuLaunchHostFunc, 10000),
	F(cuStreamGetCtx, 9020),
	F(cuStreamGetFlags, 5050),
	F(cuStreamGetPriority, 5050),
	V("cuStreamWriteValue32", 8000, cuStreamWriteValue32),
	V("cuStreamWriteValue64", 8000, cuStreamWriteValue64),
	V("cuStreamWaitValue32", 8000, cuStreamWaitValue32),
	V("cuStreamWaitValue64", 8000, cuStreamWaitValue64),
	F(cuEventCreate, 2000),
	V("cuEventDestroy", 4000, cuEventDestroy),
	F(cuEventRecord, 2000),
	F(cuEventQuery, 2000),
	F(cuEventSynchronize, 2000),
	V("cuEventElapsedTime", 2000, cuEventElapsedTime),
};

SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
					cuuint64_t flags,
					CUdriverProcAddressQueryResult *symbolStatus)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	size_t i;

	if (!symbol || !pfn)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_NOT_SUPPORTED;
	*pfn = NULL;
	for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (strcmp(entries[i].name, symbol))
			continue;
		if (entries[i].since <= cudaVersion) {
			memcpy(pfn, &entries[i].fn, sizeof(*pfn));
			status = CU_GET_PROC_ADDRESS_SUCCESS;
		} else if (!*pfn) {
			status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
		}
	}
	if (symbolStatus)
		*symbolStatus = status;
	return *pfn || symbolStatus ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v1(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
	__asm__("cuGetProcAddress");

/* CUDA 11.3's, which programs find by dlsym(): no status, so a miss is an error. */
SIM_EXPORT CUresult cuGetProcAddress_v1(const char *symbol, void **pfn, int cudaVersion,
					cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}
