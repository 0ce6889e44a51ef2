/* SPDX-License-Identifier: MIT */
/*
 * side_cuda.h - the CUDA driver API for benches that run on any machine: loaded, not linked.
 *
 * What is loaded is libcuda.so.1 of the library path: the real driver, or the simulator's
 * under sim/run.
 */
#ifndef BENCH_SIDE_CUDA_H
#define BENCH_SIDE_CUDA_H

#include <stddef.h>

#include <cuda.h>

/* member, symbol, arguments */
#define SIDE_CUDA(X)                                                                         \
	X(init, "cuInit", (unsigned int flags))                                              \
	X(version, "cuDriverGetVersion", (int *version))                                     \
	X(error_name, "cuGetErrorName", (CUresult error, const char **name))                 \
	X(device, "cuDeviceGet", (CUdevice *dev, int index))                                 \
	X(device_name, "cuDeviceGetName", (char *name, int len, CUdevice dev))               \
	X(retain, "cuDevicePrimaryCtxRetain", (CUcontext *ctx, CUdevice dev))                \
	X(set_current, "cuCtxSetCurrent", (CUcontext ctx))                                   \
	X(settle, "cuCtxSynchronize", (void))                                                \
	X(alloc, "cuMemAlloc_v2", (CUdeviceptr *ptr, size_t size))                           \
	X(free, "cuMemFree_v2", (CUdeviceptr ptr))                                           \
	X(host_alloc, "cuMemHostAlloc", (void **p, size_t size, unsigned int flags))         \
	X(host_free, "cuMemFreeHost", (void *p))                                             \
	X(set, "cuMemsetD8_v2", (CUdeviceptr dst, unsigned char byte, size_t size))          \
	X(put, "cuMemcpyHtoD_v2", (CUdeviceptr dst, const void *src, size_t size))           \
	X(get, "cuMemcpyDtoH_v2", (void *dst, CUdeviceptr src, size_t size))                 \
	X(put_async, "cuMemcpyHtoDAsync_v2",                                                 \
	  (CUdeviceptr dst, const void *src, size_t size, CUstream s))                       \
	X(get_async, "cuMemcpyDtoHAsync_v2",                                                 \
	  (void *dst, CUdeviceptr src, size_t size, CUstream s))                             \
	X(stream, "cuStreamCreate", (CUstream *s, unsigned int flags))                       \
	X(sync, "cuStreamSynchronize", (CUstream s))                                         \
	X(attribute, "cuPointerGetAttribute",                                                \
	  (void *out, CUpointer_attribute what, CUdeviceptr ptr))                            \
	X(pci, "cuDeviceGetPCIBusId", (char *out, int len, CUdevice dev))                    \
	X(ipc, "cuIpcGetMemHandle", (CUipcMemHandle *out, CUdeviceptr ptr))

struct side_cuda {
#define SIDE_CUDA_MEMBER(member, symbol, args) CUresult (*member) args;
	SIDE_CUDA(SIDE_CUDA_MEMBER)
#undef SIDE_CUDA_MEMBER
};

extern struct side_cuda cu;

/* Loads the driver and opens GPU `index`; its primary context is current. 0, or -1 and why. */
int side_cuda_open(int index, CUcontext *ctx, char *why, size_t len);
const char *side_cuda_error(CUresult r);

#endif /* BENCH_SIDE_CUDA_H */
