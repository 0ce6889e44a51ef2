// SPDX-License-Identifier: MIT
/*
 * t_sim_cuda.c - the simulated CUDA where there is no card: devices, contexts, memory,
 * pointers, plain copies, and the runtime API.
 */
#include "t_sim.h"

static void before_init(void **state)
{
	CUdeviceptr p;
	CUstream s;
	int n;

	assert_int_equal(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuMemAlloc(&p, 1), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuStreamCreate(&s, 0), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(gpu_sim_cards(), -ENODEV);
	assert_int_equal(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	OK(cuDriverGetVersion(&n));
	assert_int_equal(n, CUDA_VERSION);
	OK(cuInit(0));
	assert_int_equal(cuMemAlloc(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

static void devices(void **state)
{
	char name[64], pci[32];
	CUuuid a, b;
	CUdevice d;
	size_t size;
	int n, v;

	OK(cuDeviceGetCount(&n));
	assert_int_equal(n, 2);
	assert_int_equal(gpu_sim_cards(), 0);
	assert_int_equal(cuDeviceGet(&d, 2), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGet(&d, -1), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetName(name, sizeof(name), 0));
	assert_non_null(strstr(name, "simulated"));
	OK(cuDeviceTotalMem(&size, 1));
	assert_int_equal(size, 64 * MIB);
	OK(cuDeviceGetUuid(&a, 0));
	OK(cuDeviceGetUuid(&b, 1));
	assert_memory_not_equal(&a, &b, sizeof(a));
	assert_int_equal(cuDeviceGetPCIBusId(pci, 12, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetPCIBusId(pci, 13, 1));
	OK(cuDeviceGetByPCIBusId(&d, pci));
	assert_int_equal(d, 1);
	assert_int_equal(cuDeviceGetByPCIBusId(&d, "0000:77:00.0"), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGetByPCIBusId(&d, "nonsense"), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
	assert_int_equal(v, 1);
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0));
	assert_int_equal(v, 0);
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 1));
	assert_int_equal(v, 1);
	assert_int_equal(cuDeviceGetAttribute(&v, 100000, 0), CUDA_ERROR_INVALID_VALUE);
}

static void contexts(void **state)
{
	CUcontext own, got;
	unsigned int flags;
	CUdeviceptr p;
	size_t free_bytes, total;
	CUdevice d;
	int active;

	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 1);
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	assert_int_equal(active, 0);
	assert_int_equal(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxDestroy(ctx), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxCreate(&own, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 1));
	OK(cuCtxGetCurrent(&got));
	assert_ptr_equal(got, own);
	OK(cuCtxGetDevice(&d));
	assert_int_equal(d, 1);
	/* what lives in a context ends with it */
	p = alloc(8 * MIB);
	OK(cuMemsetD8(p, 1, 8 * MIB));
	OK(cuMemGetInfo(&free_bytes, &total));
	assert_int_equal(free_bytes, total - 8 * MIB);
	OK(cuCtxDestroy(own));
	OK(cuCtxGetCurrent(&got));
	assert_ptr_equal(got, ctx);
	assert_int_equal(cuCtxPushCurrent(own), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxCreate(&own, NULL, 0, 1));
	OK(cuMemGetInfo(&free_bytes, &total));
	assert_int_equal(free_bytes, total);
	OK(cuCtxPopCurrent(&got));
	assert_ptr_equal(got, own);
	OK(cuCtxDestroy(own));
	OK(cuCtxSetCurrent(NULL));
	assert_int_equal(cuCtxPopCurrent(&got), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(ctx));
}

static void memory(void **state)
{
	CUdeviceptr a, b, c, base;
	size_t size, free_bytes, total;

	OK(cuMemGetInfo(&free_bytes, &total));
	assert_int_equal(cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAlloc(&a, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc(&a, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree(0));

	/* small ones share a 2-MiB block, aligned to 512 bytes */
	a = alloc(1);
	b = alloc(1000);
	c = alloc(512);
	assert_int_equal(a % (2 * MIB), 0);
	assert_int_equal(b - a, 512);
	assert_int_equal(c - b, 1024);
	OK(cuMemGetAddressRange(&base, &size, b + 999));
	assert_int_equal(base, b);
	assert_int_equal(size, 1000);
	assert_int_equal(cuMemGetAddressRange(&base, &size, b + 1000), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(cuMemFree(b + 1), CUDA_ERROR_INVALID_VALUE);

	/* a gap is used again, and is poison again */
	assert_true(poisoned(b, 1000));
	OK(cuMemsetD8(b, 7, 1000));
	assert_false(poisoned(b, 1000));
	OK(cuMemFree(b));
	assert_int_equal(cuMemFree(b), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(alloc(900), b);
	assert_true(poisoned(b, 896));

	/* large ones have blocks of their own */
	base = alloc(3 * MIB);
	assert_int_equal(base % (2 * MIB), 0);
	assert_true(poisoned(base, 3 * MIB));
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	OK(cuMemFree(c));
	OK(cuMemFree(base));
	a = alloc(total);
	assert_int_equal(cuMemAlloc(&b, 1), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree(a));
}

static void copies(void **state)
{
	char in[4096], out[4096];
	CUdeviceptr a = alloc(4096), b = alloc(4096);
	size_t i;

	for (i = 0; i < sizeof(in); i++)
		in[i] = (char)(i * 7);
	OK(cuMemcpyHtoD(a, in, sizeof(in)));
	OK(cuMemcpyDtoD(b + 8, a, 4000));
	OK(cuMemcpyDtoH(out, b + 8, 4000));
	assert_memory_equal(in, out, 4000);
	OK(cuMemcpy((uintptr_t)out, a + 96, 4000));
	assert_memory_equal(in + 96, out, 4000);
	OK(cuMemcpyHtoD(a, in, 0));
	OK(cuMemsetD32(b, 0x01020304, 1024));
	OK(cuMemcpyDtoH(out, b, 4096));
	assert_int_equal(out[0], 4);
	assert_int_equal(out[4095], 1);
	assert_int_equal(cuMemsetD32(b + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD8(b, 0, 4097), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD32(b, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD(a, in, 4097), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD(a + 4096 * 2, in, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD((uintptr_t)out, in, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyDtoH((void *)(uintptr_t)a, b, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyDtoH(NULL, b, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(a));
	OK(cuMemFree(b));
}

static void pointers(void **state)
{
	CUpointer_attribute ask[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				      CU_POINTER_ATTRIBUTE_RANGE_SIZE };
	CUdeviceptr a = alloc(5000), b = alloc(3 * MIB), start, device;
	unsigned long long id1, id2;
	unsigned int type, flags;
	size_t size;
	int ordinal, local;
	void *answer[] = { &type, &ordinal, &size };
	void *host;

	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 4999));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, b + MIB));
	assert_int_equal(start, b);
	OK(cuPointerGetAttribute(&id1, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
	OK(cuPointerGetAttribute(&id2, CU_POINTER_ATTRIBUTE_BUFFER_ID, b));
	assert_true(id1 != id2);
	OK(cuMemFree(b));
	b = alloc(3 * MIB);
	OK(cuPointerGetAttribute(&id1, CU_POINTER_ATTRIBUTE_BUFFER_ID, b));
	assert_true(id1 != id2);
	assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					       (uintptr_t)&local), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, a),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuPointerGetAttributes(3, ask, answer, b));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	assert_int_equal(ordinal, 0);
	assert_int_equal(size, 3 * MIB);
	OK(cuPointerGetAttributes(3, ask, answer, (uintptr_t)&local));
	assert_int_equal(type, 0);
	assert_int_equal(ordinal, -2);
	OK(cuMemFree(a));
	OK(cuMemFree(b));

	host = aligned_alloc(4096, 8192);
	OK(cuMemHostRegister(host, 8192, CU_MEMHOSTREGISTER_PORTABLE));
	assert_int_equal(cuMemHostRegister((char *)host + 4096, 8192, 0),
			 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostGetDevicePointer(&device, (char *)host + 100, 0));
	assert_int_equal(device, (uintptr_t)host + 100);
	OK(cuMemHostGetFlags(&flags, host));
	assert_int_equal(flags, CU_MEMHOSTREGISTER_PORTABLE);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)host + 1));
	assert_int_equal(type, CU_MEMORYTYPE_HOST);
	assert_int_equal(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemHostUnregister((char *)host + 1),
			 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	OK(cuMemHostUnregister(host));
	assert_int_equal(cuMemHostGetDevicePointer(&device, host, 0), CUDA_ERROR_INVALID_VALUE);
	free(host);
	assert_int_equal(gpu_sim_where(&local, 4, NULL, 0), -ENODEV);
}

static void entry_points(void **state)
{
	CUdriverProcAddressQueryResult status;
	CUresult (*get_count)(int *);
	const char *text;
	void *fn, *older;
	int n;

	OK(cuGetProcAddress("cuDeviceGetCount", &fn, 12000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
	memcpy(&get_count, &fn, sizeof(fn));
	OK(get_count(&n));
	assert_int_equal(n, 2);
	OK(cuGetProcAddress("cuCtxCreate", &older, 10000, 0, &status));
	OK(cuGetProcAddress("cuCtxCreate", &fn, 13000, 0, &status));
	assert_ptr_not_equal(fn, older);
	OK(cuGetProcAddress("cuNothing", &fn, 13000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	assert_null(fn);
	OK(cuGetProcAddress("cuLaunchHostFunc", &fn, 9000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	assert_int_equal(cuGetProcAddress("cuNothing", &fn, 13000, 0, NULL), CUDA_ERROR_NOT_FOUND);

	OK(cuGetErrorName(CUDA_ERROR_NOT_READY, &text));
	assert_string_equal(text, "CUDA_ERROR_NOT_READY");
	OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	assert_string_equal(text, "out of memory");
	assert_int_equal(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	assert_null(text);
}

static void runtime(void **state)
{
	struct cudaPointerAttributes attr;
	unsigned char in[3000], out[3000];
	cudaStream_t s;
	void *dev, *host;
	int n;

	assert_int_equal(cudaGetDeviceCount(&n), cudaSuccess);
	assert_int_equal(n, 2);
	assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
	assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	assert_int_equal(cudaGetDevice(&n), cudaSuccess);
	assert_int_equal(n, 1);
	assert_int_equal(cudaMalloc(&dev, sizeof(in)), cudaSuccess);
	memset(in, 0x3c, sizeof(in));
	assert_int_equal(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice), cudaSuccess);
	assert_int_equal(cudaMemset((char *)dev + 10, 1, 5), cudaSuccess);
	assert_int_equal(cudaMemcpy(out, dev, sizeof(in), cudaMemcpyDefault), cudaSuccess);
	memset(in + 10, 1, 5);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(cudaPointerGetAttributes(&attr, dev), cudaSuccess);
	assert_int_equal(attr.type, cudaMemoryTypeDevice);
	assert_int_equal(attr.device, 1);
	assert_int_equal(cudaPointerGetAttributes(&attr, in), cudaSuccess);
	assert_int_equal(attr.type, cudaMemoryTypeUnregistered);
	assert_int_equal(cudaMallocHost(&host, 3000), cudaSuccess);
	assert_int_equal(cudaStreamCreate(&s), cudaSuccess);
	assert_int_equal(cudaMemcpyAsync(host, dev, 3000, cudaMemcpyDeviceToHost, s), cudaSuccess);
	assert_int_equal(cudaStreamSynchronize(s), cudaSuccess);
	assert_memory_equal(in, host, 3000);
	assert_int_equal(cudaMemcpy(out, dev, 3001, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpy(out, dev, 1, (enum cudaMemcpyKind)9),
			 cudaErrorInvalidMemcpyDirection);
	assert_string_equal(cudaGetErrorName(cudaGetLastError()),
			    "cudaErrorInvalidMemcpyDirection");
	assert_int_equal(cudaStreamDestroy(s), cudaSuccess);
	assert_int_equal(cudaFreeHost(host), cudaSuccess);
	assert_int_equal(cudaFree(dev), cudaSuccess);
	assert_int_equal(cudaFree(NULL), cudaSuccess);
	assert_int_equal(cudaDeviceReset(), cudaSuccess);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
}

static CUmemGenericAllocationHandle vmm_memory(size_t size, unsigned int types)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = types,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
	};
	CUmemGenericAllocationHandle h;

	OK(cuMemCreate(&h, size, &prop, 0));
	return h;
}

/* Addresses and memory apart; what the memory is by its pointer; that it lives while it must. */
static void virtual_memory(void **state)
{
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
				 CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle a = vmm_memory(2 * MIB, 1), b = vmm_memory(4 * MIB, 0), h;
	unsigned long long id, other;
	size_t size, before, now, total;
	CUdeviceptr va, again, base;
	CUipcMemHandle ipc;
	CUcontext of, one;
	uint32_t word = 0, words[34];
	int fd, dev;

	OK(cuDevicePrimaryCtxRetain(&one, 1));
	OK(cuCtxSetCurrent(one));
	OK(cuMemGetInfo(&before, &total));
	assert_int_equal(total - before, 6 * MIB);
	OK(cuMemAddressReserve(&va, 8 * MIB, 0, 0, 0));
	assert_int_equal(va % (2 * MIB), 0);
	assert_int_equal(cuMemMap(va + MIB, 2 * MIB, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(va + 8 * MIB, 2 * MIB, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(va, 2 * MIB, 4096, a, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(va, 2 * MIB, 0, a, 0));
	assert_int_equal(cuMemMap(va, 4 * MIB, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(va + 2 * MIB, 2 * MIB, 0, a, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemMap(va + 2 * MIB, 4 * MIB, 0, b, 0));
	/* nobody was given access yet */
	assert_int_equal(cuMemsetD32(va, 7, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemSetAccess(va, 4 * MIB, &desc, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemSetAccess(va, 2 * MIB, &desc, 1));
	OK(cuMemSetAccess(va + 2 * MIB, 4 * MIB, &desc, 1));
	OK(cuMemsetD32(va + MIB, 0x11223344, 16));
	OK(cuMemcpyDtoD(va + 3 * MIB, va + MIB, 64));
	OK(cuMemcpyDtoH(&word, va + 3 * MIB + 60, 4));
	assert_int_equal(word, 0x11223344);
	assert_true(poisoned(va, MIB));

	/* over the border of two mappings, and not into the hole behind them */
	OK(cuMemsetD32(va + 2 * MIB - 64, 0x55667788, 32));
	OK(cuMemcpyDtoH(words, va + 2 * MIB - 68, sizeof(words)));
	assert_int_not_equal(words[0], 0x55667788);
	assert_int_equal(words[1], 0x55667788);
	assert_int_equal(words[32], 0x55667788);
	assert_int_not_equal(words[33], 0x55667788);
	OK(cuMemcpyDtoD(va + 4 * MIB, va + 2 * MIB - 68, sizeof(words)));
	OK(cuMemcpyDtoH(&word, va + 4 * MIB + 128, 4));
	assert_int_equal(word, 0x55667788);
	assert_int_equal(cuMemsetD32(va + 6 * MIB - 64, 7, 32), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoH(&word, va + 6 * MIB - 64, 4));
	assert_int_not_equal(word, 7);

	/* the mapping; attributes tell what was reserved */
	OK(cuMemGetAddressRange(&base, &size, va + 5 * MIB));
	assert_int_equal(base, va + 2 * MIB);
	assert_int_equal(size, 4 * MIB);
	OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, va + 5 * MIB));
	assert_int_equal(base, va);
	OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, va + 5 * MIB));
	assert_int_equal(size, 8 * MIB);
	OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, va));
	assert_null(of);
	OK(cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, va));
	assert_int_equal(dev, 1);
	OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, va));
	assert_int_equal(cuIpcGetMemHandle(&ipc, va), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemFree(va), CUDA_ERROR_INVALID_VALUE);

	OK(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)(va + 4096)));
	assert_int_equal(h, a);
	assert_int_equal(cuMemRetainAllocationHandle(&h, &word), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemExportToShareableHandle(&fd, a, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	close(fd);
	assert_int_equal(cuMemExportToShareableHandle(&fd, b,
						      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			 CUDA_ERROR_INVALID_VALUE);

	/* a handle of two that are given back, and the mapping keeps it */
	OK(cuMemRelease(a));
	OK(cuMemRelease(a));
	assert_int_equal(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoH(&word, va + MIB, 4));
	OK(cuMemGetInfo(&now, &total));
	assert_int_equal(now, before);
	assert_int_equal(cuMemUnmap(va + MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(va, 2 * MIB));
	OK(cuMemGetInfo(&now, &total));
	assert_int_equal(now - before, 2 * MIB);
	assert_int_equal(cuMemcpyDtoH(&word, va, 4), CUDA_ERROR_INVALID_VALUE);

	/* other memory there is another allocation; the same memory keeps its content */
	OK(cuMemUnmap(va + 2 * MIB, 4 * MIB));
	OK(cuMemMap(va, 4 * MIB, 0, b, 0));
	OK(cuMemSetAccess(va, 4 * MIB, &desc, 1));
	OK(cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, va));
	assert_int_not_equal(id, other);
	OK(cuMemcpyDtoH(&word, va + MIB, 4));
	assert_int_equal(word, 0x11223344);
	assert_int_equal(cuMemAddressFree(va, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(va, 4 * MIB));
	OK(cuMemRelease(b));
	OK(cuMemAddressFree(va, 8 * MIB));
	/* an address comes again as soon as it can */
	OK(cuMemAddressReserve(&again, 2 * MIB, 0, 0, 0));
	assert_int_equal(again, va);
	OK(cuMemAddressFree(again, 2 * MIB));
	OK(cuMemGetInfo(&now, &total));
	assert_int_equal(now, total);
	OK(cuCtxSetCurrent(ctx));
	OK(cuDevicePrimaryCtxRelease(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_init),
		T_SIM(devices),
		T_SIM(contexts),
		T_SIM(memory),
		T_SIM(copies),
		T_SIM(pointers),
		T_SIM(entry_points),
		T_SIM(virtual_memory),
		T_SIM(runtime),
	};

	settings();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
