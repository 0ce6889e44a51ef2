// SPDX-License-Identifier: MIT
/*
 * cudart.c - the CUDA runtime API on the driver API: start-up on first use, a current
 * device for each thread, and the last error.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "cuda.h"
#include "cuda_runtime.h"

#define EXPORT __attribute__((visibility("default")))

#define MAX_DEVICES 64

static __thread cudaError_t last_error;
static __thread int device;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[MAX_DEVICES];		/* lock; retained once, by the first user */

/* Most numbers are the driver's own. */
static cudaError_t translate(CUresult r)
{
	switch (r) {
	case CUDA_ERROR_DEINITIALIZED:
		return cudaErrorCudartUnloading;
	case CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE:
	case CUDA_ERROR_MAP_FAILED:
	case CUDA_ERROR_UNMAP_FAILED:
	case CUDA_ERROR_ALREADY_MAPPED:
	case CUDA_ERROR_NOT_MAPPED:
	case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
		return cudaErrorUnknown;
	default:
		return (cudaError_t)r;
	}
}

static cudaError_t done(CUresult r)
{
	cudaError_t e = translate(r);

	/* not ready is an answer, no failure */
	if (e && e != cudaErrorNotReady)
		last_error = e;
	return e;
}

static cudaError_t fail(cudaError_t e)
{
	last_error = e;
	return e;
}

/* The thread works in the primary context of its device from here on. */
static CUresult enter(void)
{
	CUcontext ctx = NULL, wanted;
	CUresult r;

	r = cuInit(0);
	if (r)
		return r;
	r = cuCtxGetCurrent(&ctx);
	if (r)
		return r;
	/* a context that the program made current by the driver API stays */
	if (ctx)
		return CUDA_SUCCESS;
	if (device < 0 || device >= MAX_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primary[device])
		r = cuDevicePrimaryCtxRetain(&primary[device], device);
	wanted = primary[device];
	pthread_mutex_unlock(&lock);
	return r ? r : cuCtxSetCurrent(wanted);
}

EXPORT cudaError_t cudaDriverGetVersion(int *driverVersion)
{
	return done(cuDriverGetVersion(driverVersion));
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	if (!runtimeVersion)
		return fail(cudaErrorInvalidValue);
	*runtimeVersion = CUDART_VERSION;
	return cudaSuccess;
}

#define E(name, text) { cuda##name, "cuda" #name, text }

static const struct {
	cudaError_t error;
	const char *name;
	const char *text;
} errors[] = {
	E(Success, "no error"),
	E(ErrorInvalidValue, "invalid argument"),
	E(ErrorMemoryAllocation, "out of memory"),
	E(ErrorInitializationError, "initialization error"),
	E(ErrorCudartUnloading, "driver shutting down"),
	E(ErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
	E(ErrorStubLibrary, "stub library in place of the driver's"),
	E(ErrorInsufficientDriver, "driver too old for this runtime"),
	E(ErrorDevicesUnavailable, "device busy or gone"),
	E(ErrorNoDevice, "no CUDA-capable device is detected"),
	E(ErrorInvalidDevice, "invalid device ordinal"),
	E(ErrorDeviceUninitialized, "invalid device context"),
	E(ErrorOperatingSystem, "an operating system call failed"),
	E(ErrorInvalidResourceHandle, "invalid resource handle"),
	E(ErrorIllegalState, "the operation is not allowed in this state"),
	E(ErrorSymbolNotFound, "named symbol not found"),
	E(ErrorNotReady, "device not ready"),
	E(ErrorIllegalAddress, "an illegal memory access was encountered"),
	E(ErrorContextIsDestroyed, "context is destroyed"),
	E(ErrorHostMemoryAlreadyRegistered, "host memory is already registered"),
	E(ErrorHostMemoryNotRegistered, "host memory is not registered"),
	E(ErrorNotPermitted, "operation not permitted"),
	E(ErrorNotSupported, "operation not supported"),
	E(ErrorSystemNotReady, "system not ready"),
	E(ErrorSystemDriverMismatch, "kernel module and library do not go together"),
	E(ErrorTimeout, "timeout"),
	E(ErrorUnknown, "unknown error"),
};

static size_t find_error(cudaError_t error)
{
	size_t i, n = sizeof(errors) / sizeof(errors[0]);

	for (i = 0; i < n && errors[i].error != error; i++)
		;
	return i;
}

EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	size_t i = find_error(error);

	return i < sizeof(errors) / sizeof(errors[0]) ? errors[i].name : "unrecognized error code";
}

EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	size_t i = find_error(error);

	return i < sizeof(errors) / sizeof(errors[0]) ? errors[i].text : "unrecognized error code";
}

EXPORT cudaError_t cudaGetLastError(void)
{
	cudaError_t e = last_error;

	last_error = cudaSuccess;
	return e;
}

EXPORT cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
	CUresult r = cuInit(0);

	return done(r ? r : cuDeviceGetCount(count));
}

EXPORT cudaError_t cudaGetDevice(int *dev)
{
	CUdevice current;

	if (!dev)
		return fail(cudaErrorInvalidValue);
	/* a context of the driver API decides, where there is one */
	*dev = cuCtxGetDevice(&current) ? device : current;
	return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int dev)
{
	CUcontext ctx = NULL;
	int count, old = device;
	CUresult r = cuInit(0);

	if (!r)
		r = cuDeviceGetCount(&count);
	if (r)
		return done(r);
	if (dev < 0 || dev >= count)
		return fail(cudaErrorInvalidDevice);
	r = cuCtxGetCurrent(&ctx);
	if (!r && ctx)
		r = cuCtxSetCurrent(NULL);
	device = dev;
	if (!r)
		r = enter();
	if (r)
		device = old;
	return done(r);
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int dev)
{
	CUresult r = cuInit(0);

	return done(r ? r : cuDeviceGetAttribute(value, (CUdevice_attribute)attr, dev));
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int dev)
{
	CUresult r = cuInit(0);

	return done(r ? r : cuDeviceGetPCIBusId(pciBusId, len, dev));
}

EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *dev, const char *pciBusId)
{
	CUresult r = cuInit(0);

	return done(r ? r : cuDeviceGetByPCIBusId(dev, pciBusId));
}

EXPORT cudaError_t cudaDeviceSynchronize(void)
{
	CUresult r = enter();

	return done(r ? r : cuCtxSynchronize());
}

EXPORT cudaError_t cudaDeviceReset(void)
{
	CUresult r = cuInit(0);
	CUcontext ctx = NULL;

	if (r)
		return done(r);
	pthread_mutex_lock(&lock);
	if (primary[device]) {
		if (!cuCtxGetCurrent(&ctx) && ctx == primary[device])
			cuCtxSetCurrent(NULL);
		primary[device] = NULL;
		r = cuDevicePrimaryCtxReset(device);
	}
	pthread_mutex_unlock(&lock);
	return done(r);
}

EXPORT cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	CUdeviceptr p = 0;
	CUresult r;

	if (!devPtr)
		return fail(cudaErrorInvalidValue);
	r = enter();
	if (!r && size)
		r = cuMemAlloc(&p, size);
	if (!r)
		*devPtr = (void *)(uintptr_t)p;
	return done(r);
}

EXPORT cudaError_t cudaFree(void *devPtr)
{
	CUresult r = enter();

	return done(r ? r : cuMemFree((uintptr_t)devPtr));
}

EXPORT cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	CUresult r = enter();

	return done(r ? r : cuMemHostAlloc(pHost, size, flags));
}

EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

EXPORT cudaError_t cudaFreeHost(void *ptr)
{
	CUresult r = enter();

	return done(r || !ptr ? r : cuMemFreeHost(ptr));
}

EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	CUresult r = enter();

	return done(r ? r : cuMemHostRegister(ptr, size, flags));
}

EXPORT cudaError_t cudaHostUnregister(void *ptr)
{
	CUresult r = enter();

	return done(r ? r : cuMemHostUnregister(ptr));
}

EXPORT cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
	CUdeviceptr p = 0;
	CUresult r;

	if (!pDevice)
		return fail(cudaErrorInvalidValue);
	r = enter();
	if (!r)
		r = cuMemHostGetDevicePointer(&p, pHost, flags);
	if (!r)
		*pDevice = (void *)(uintptr_t)p;
	return done(r);
}

EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	CUresult r = enter();

	return done(r ? r : cuMemGetInfo(free, total));
}

EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
					    const void *ptr)
{
	CUmemorytype type = 0;
	int dev = -2;
	CUresult r;

	if (!attributes)
		return fail(cudaErrorInvalidValue);
	r = enter();
	if (r)
		return done(r);
	attributes->type = cudaMemoryTypeUnregistered;
	attributes->device = -2;
	attributes->devicePointer = NULL;
	attributes->hostPointer = (void *)ptr;
	/* a pointer nobody registered is no error since CUDA 11 */
	if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)ptr) ||
	    cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (uintptr_t)ptr))
		return cudaSuccess;
	attributes->device = dev;
	attributes->devicePointer = (void *)ptr;
	if (type == CU_MEMORYTYPE_DEVICE) {
		attributes->type = cudaMemoryTypeDevice;
		attributes->hostPointer = NULL;
	} else {
		attributes->type = cudaMemoryTypeHost;
	}
	return cudaSuccess;
}

static cudaError_t copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			CUstream stream, bool async)
{
	CUdeviceptr to = (uintptr_t)dst, from = (uintptr_t)src;
	CUresult r;

	if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
		return fail(cudaErrorInvalidMemcpyDirection);
	r = enter();
	if (r)
		return done(r);
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return done(async ? cuMemcpyHtoDAsync(to, src, count, stream) :
				    cuMemcpyHtoD(to, src, count));
	case cudaMemcpyDeviceToHost:
		return done(async ? cuMemcpyDtoHAsync(dst, from, count, stream) :
				    cuMemcpyDtoH(dst, from, count));
	case cudaMemcpyDeviceToDevice:
		return done(async ? cuMemcpyDtoDAsync(to, from, count, stream) :
				    cuMemcpyDtoD(to, from, count));
	default:
		return done(async ? cuMemcpyAsync(to, from, count, stream) :
				    cuMemcpy(to, from, count));
	}
}

EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	return copy(dst, src, count, kind, NULL, false);
}

EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
				   enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy(dst, src, count, kind, stream, true);
}

EXPORT cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
	CUresult r = enter();

	return done(r ? r : cuMemsetD8((uintptr_t)devPtr, (unsigned char)value, count));
}

EXPORT cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	CUresult r = enter();

	if (!r)
		r = cuMemsetD8Async((uintptr_t)devPtr, (unsigned char)value, count, stream);
	return done(r);
}

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	CUresult r = enter();

	return done(r ? r : cuStreamCreate(pStream, flags));
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
	return cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	CUresult r = enter();

	return done(r ? r : cuStreamDestroy(stream));
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	CUresult r = enter();

	return done(r ? r : cuStreamSynchronize(stream));
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	CUresult r = enter();

	return done(r ? r : cuStreamQuery(stream));
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	CUresult r = enter();

	return done(r ? r : cuStreamWaitEvent(stream, event, flags));
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	CUresult r = enter();

	return done(r ? r : cuLaunchHostFunc(stream, fn, userData));
}

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	CUresult r = enter();

	return done(r ? r : cuEventCreate(event, flags));
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	CUresult r = enter();

	return done(r ? r : cuEventDestroy(event));
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	CUresult r = enter();

	return done(r ? r : cuEventRecord(event, stream));
}

EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
	CUresult r = enter();

	return done(r ? r : cuEventQuery(event));
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	CUresult r = enter();

	return done(r ? r : cuEventSynchronize(event));
}

EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	CUresult r = enter();

	return done(r ? r : cuEventElapsedTime(ms, start, end));
}
