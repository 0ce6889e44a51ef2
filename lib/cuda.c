// SPDX-License-Identifier: MIT
/* cuda.c - the CUDA driver API, loaded at run time. Nothing else knows CUDA symbols. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

#include "gpu.h"
#include "os.h"

/* Name in the library, member, type of the function. */
#define CUDA_FUNCTIONS(X)                                                                    \
	X("cuInit", init, CUresult (*)(unsigned int))                                        \
	X("cuGetErrorName", error_name, CUresult (*)(CUresult, const char **))               \
	X("cuDeviceGetCount", count, CUresult (*)(int *))                                    \
	X("cuDeviceGet", device, CUresult (*)(CUdevice *, int))                              \
	X("cuDeviceGetPCIBusId", pci, CUresult (*)(char *, int, CUdevice))                   \
	X("cuDeviceGetUuid_v2", uuid, CUresult (*)(CUuuid *, CUdevice))                      \
	X("cuDevicePrimaryCtxRetain", retain, CUresult (*)(CUcontext *, CUdevice))           \
	X("cuDevicePrimaryCtxRelease_v2", release, CUresult (*)(CUdevice))                   \
	X("cuCtxPushCurrent_v2", push, CUresult (*)(CUcontext))                              \
	X("cuCtxPopCurrent_v2", pop, CUresult (*)(CUcontext *))                              \
	X("cuPointerGetAttributes", attributes,                                              \
	  CUresult (*)(unsigned int, CUpointer_attribute *, void **, CUdeviceptr))           \
	X("cuPointerGetAttribute", attribute,                                                \
	  CUresult (*)(void *, CUpointer_attribute, CUdeviceptr))                            \
	X("cuPointerSetAttribute", set_attribute,                                            \
	  CUresult (*)(const void *, CUpointer_attribute, CUdeviceptr))                      \
	X("cuMemAlloc_v2", alloc, CUresult (*)(CUdeviceptr *, size_t))                       \
	X("cuMemFree_v2", free, CUresult (*)(CUdeviceptr))                                   \
	X("cuMemHostAlloc", host_alloc, CUresult (*)(void **, size_t, unsigned int))         \
	X("cuMemFreeHost", host_free, CUresult (*)(void *))                                  \
	X("cuMemHostRegister_v2", host_register, CUresult (*)(void *, size_t, unsigned int)) \
	X("cuMemHostUnregister", host_unregister, CUresult (*)(void *))                      \
	X("cuMemcpyHtoDAsync_v2", to_gpu,                                                    \
	  CUresult (*)(CUdeviceptr, const void *, size_t, CUstream))                         \
	X("cuMemcpyDtoHAsync_v2", to_host,                                                   \
	  CUresult (*)(void *, CUdeviceptr, size_t, CUstream))                               \
	X("cuMemcpyDtoDAsync_v2", inside,                                                    \
	  CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUstream))                          \
	X("cuStreamCreate", stream_new, CUresult (*)(CUstream *, unsigned int))              \
	X("cuStreamDestroy_v2", stream_free, CUresult (*)(CUstream))                         \
	X("cuStreamSynchronize", stream_sync, CUresult (*)(CUstream))                        \
	X("cuEventCreate", event_new, CUresult (*)(CUevent *, unsigned int))                 \
	X("cuEventDestroy_v2", event_free, CUresult (*)(CUevent))                            \
	X("cuEventRecord", event_record, CUresult (*)(CUevent, CUstream))                    \
	X("cuEventQuery", event_query, CUresult (*)(CUevent))                                \
	X("cuEventSynchronize", event_sync, CUresult (*)(CUevent))                           \
	X("cuLaunchHostFunc", host_func, CUresult (*)(CUstream, CUhostFn, void *))

#define MEMBER(name, member, type) __typeof__((type)0) member;
static struct {
	CUDA_FUNCTIONS(MEMBER)
} cu;
#undef MEMBER

/*
 * lock: held while `state` and the table above are filled; they are final once `ready`
 * was seen true (acquire) and are never taken back: a driver cannot be unloaded.
 */
static struct {
	pthread_mutex_t lock;
	bool ready;
	void *lib;
	int ndev;
	CUdevice dev[GPU_MAX];
} cuda = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool load_functions(void *lib, const char **missing)
{
	void *at;

#define LOAD(name, member, type)                                \
	at = dlsym(lib, name);                                  \
	if (!at) {                                              \
		*missing = name;                                \
		return false;                                   \
	}                                                       \
	memcpy(&cu.member, &at, sizeof(at));
	CUDA_FUNCTIONS(LOAD)
#undef LOAD
	return true;
}

static const char *cuda_error(int result)
{
	const char *name = NULL;

	if (!cu.error_name || cu.error_name(result, &name) || !name)
		return result == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" :
		       result == CUDA_ERROR_NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED" :
							      "CUDA error";
	return name;
}

/* cuda.lock held */
static int open_locked(char *what, size_t len)
{
	const char *missing = NULL;
	void *lib;
	int i, n, r;

	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		snprintf(what, len, "%s: install the GPU driver, or run on the simulated GPU",
			 dlerror());
		return CUDA_ERROR_NO_DEVICE;
	}
	if (!load_functions(lib, &missing)) {
		snprintf(what, len,
			 "libcuda.so.1 has no %s: it is older than CUDA 11.4; update the driver",
			 missing);
		return CUDA_ERROR_NOT_FOUND;
	}
	r = cu.init(0);
	if (r) {
		snprintf(what, len, "cuInit Failed, error %s: check the GPU with nvidia-smi",
			 cuda_error(r));
		return r;
	}
	r = cu.count(&n);
	if (!r && n < 1)
		r = CUDA_ERROR_NO_DEVICE;
	for (i = 0; !r && i < n && i < GPU_MAX; i++)
		r = cu.device(&cuda.dev[i], i);
	if (r) {
		snprintf(what, len,
			 "cuDeviceGetCount: %s: check CUDA_VISIBLE_DEVICES and nvidia-smi",
			 cuda_error(r));
		return r;
	}
	cuda.lib = lib;
	cuda.ndev = i;
	return 0;
}

static int cuda_open(char *what, size_t len)
{
	int r = 0;

	if (__atomic_load_n(&cuda.ready, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&cuda.lock);
	if (!cuda.ready) {
		r = open_locked(what, len);
		if (!r)
			__atomic_store_n(&cuda.ready, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&cuda.lock);
	return r;
}

static int cuda_count(void)
{
	return __atomic_load_n(&cuda.ready, __ATOMIC_ACQUIRE) ? cuda.ndev : 0;
}

static int cuda_pointer(const void *ptr, struct gpu_ptr *out)
{
	CUpointer_attribute want[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_CONTEXT,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		CU_POINTER_ATTRIBUTE_BUFFER_ID,
	};
	unsigned int type = 0, managed = 0;
	CUdeviceptr start = 0;
	CUcontext ctx = NULL;
	int dev = -1;
	size_t len = 0;
	unsigned long long id = 0;
	void *got[] = { &type, &managed, &dev, &ctx, &start, &len, &id };
	CUresult r;

	memset(out, 0, sizeof(*out));
	out->dev = -1;
	r = cu.attributes(sizeof(want) / sizeof(want[0]), want, got, (uintptr_t)ptr);
	/* memory that CUDA does not know is the CPU's */
	if (r == CUDA_ERROR_INVALID_VALUE || (!r && !type))
		return 0;
	if (r)
		return r;
	if (managed)
		out->kind = GPU_MEM_MANAGED;
	else if (type == CU_MEMORYTYPE_DEVICE)
		out->kind = GPU_MEM_DEVICE;
	else
		return 0;
	out->dev = dev;
	out->ctx = ctx;
	out->base_va = start;
	out->len = len;
	out->at_va = (uintptr_t)ptr;
	out->id = id;
	return 0;
}

static int cuda_id(uint64_t va, uint64_t *id)
{
	unsigned long long got = 0;
	CUresult r = cu.attribute(&got, CU_POINTER_ATTRIBUTE_BUFFER_ID, va);

	*id = got;
	return r;
}

static int cuda_primary_get(int dev, void **ctx)
{
	CUcontext c;
	CUresult r;

	if (dev < 0 || dev >= cuda.ndev)
		return CUDA_ERROR_INVALID_DEVICE;
	r = cu.retain(&c, cuda.dev[dev]);
	if (!r)
		*ctx = c;
	return r;
}

static void cuda_primary_put(int dev)
{
	cu.release(cuda.dev[dev]);
}

static int cuda_pci(int dev, uint64_t *pdevinfo, char *text, size_t len)
{
	unsigned int domain, bus, slot, fn = 0;
	char id[32];
	CUresult r;

	r = cu.pci(id, sizeof(id), cuda.dev[dev]);
	if (r)
		return r;
	id[sizeof(id) - 1] = '\0';
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) < 3)
		return CUDA_ERROR_UNKNOWN;
	*pdevinfo = (uint64_t)domain << 32 | bus << 8 | slot << 3 | fn;
	snprintf(text, len, "%04x:%02x:%02x.%x", domain, bus, slot, fn);
	return 0;
}

static int cuda_uuid(int dev, uint8_t out[16])
{
	CUuuid id;
	CUresult r = cu.uuid(&id, cuda.dev[dev]);

	if (!r)
		memcpy(out, id.bytes, sizeof(id.bytes));
	return r;
}

static int enter(void *ctx)
{
	return cu.push(ctx);
}

static void leave(void)
{
	CUcontext c;

	cu.pop(&c);
}

static int cuda_alloc(void *ctx, size_t size, uint64_t *va)
{
	CUdeviceptr p = 0;
	int r = enter(ctx);

	if (r)
		return r;
	r = cu.alloc(&p, size);
	leave();
	*va = p;
	return r;
}

static void cuda_free(void *ctx, uint64_t va)
{
	if (enter(ctx))
		return;
	cu.free(va);
	leave();
}

static int cuda_host_alloc(void *ctx, size_t size, void **host)
{
	int r = enter(ctx);

	if (r)
		return r;
	*host = os->mmap_large(size);
	r = *host ? cu.host_register(*host, size, CU_MEMHOSTREGISTER_PORTABLE) : 0;
	if (*host && r)
		os->munmap(*host, size);
	if (!*host || r)
		r = cu.host_alloc(host, size, CU_MEMHOSTALLOC_PORTABLE);
	leave();
	return r;
}

static void cuda_host_free(void *ctx, void *host, size_t size)
{
	if (enter(ctx))
		return;
	if (!cu.host_unregister(host))
		os->munmap(host, size);
	else
		cu.host_free(host);
	leave();
}

static int cuda_stream_new(void *ctx, struct gpu_stream *out)
{
	CUstream s;
	int r = enter(ctx);

	if (r)
		return r;
	r = cu.stream_new(&s, CU_STREAM_NON_BLOCKING);
	leave();
	if (!r) {
		out->ctx = ctx;
		out->stream = s;
	}
	return r;
}

static void cuda_stream_free(struct gpu_stream *s)
{
	if (enter(s->ctx))
		return;
	cu.stream_free(s->stream);
	leave();
}

static int cuda_to_gpu(struct gpu_stream *s, uint64_t dst_va, const void *src, size_t size)
{
	int r = enter(s->ctx);

	if (r)
		return r;
	r = cu.to_gpu(dst_va, src, size, s->stream);
	leave();
	return r;
}

static int cuda_to_host(struct gpu_stream *s, void *dst, uint64_t src_va, size_t size)
{
	int r = enter(s->ctx);

	if (r)
		return r;
	r = cu.to_host(dst, src_va, size, s->stream);
	leave();
	return r;
}

static int cuda_inside(struct gpu_stream *s, uint64_t dst_va, uint64_t src_va, size_t size)
{
	int r = enter(s->ctx);

	if (r)
		return r;
	r = cu.inside(dst_va, src_va, size, s->stream);
	leave();
	return r;
}

static int cuda_sync(struct gpu_stream *s)
{
	int r = enter(s->ctx);

	if (r)
		return r;
	r = cu.stream_sync(s->stream);
	leave();
	return r;
}

static int cuda_event_new(void *ctx, bool sleeps, struct gpu_event *out)
{
	CUevent e;
	int r = enter(ctx);

	if (r)
		return r;
	r = cu.event_new(&e, (sleeps ? CU_EVENT_BLOCKING_SYNC : 0) | CU_EVENT_DISABLE_TIMING);
	leave();
	if (!r) {
		out->ctx = ctx;
		out->event = e;
	}
	return r;
}

static void cuda_event_free(struct gpu_event *e)
{
	if (enter(e->ctx))
		return;
	cu.event_free(e->event);
	leave();
}

static int cuda_event_record(struct gpu_event *e, struct gpu_stream *s)
{
	int r = enter(s->ctx);

	if (r)
		return r;
	r = cu.event_record(e->event, s->stream);
	leave();
	return r;
}

/* These two want no current context. */
static int cuda_event_query(struct gpu_event *e, bool *done)
{
	int r = cu.event_query(e->event);

	*done = !r;
	return r == CUDA_ERROR_NOT_READY ? 0 : r;
}

static int cuda_event_sync(struct gpu_event *e)
{
	return cu.event_sync(e->event);
}

static int cuda_sync_memops(uint64_t va, void *ctx)
{
	int on = 1, r = enter(ctx);

	if (r)
		return r;
	r = cu.set_attribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, va);
	leave();
	return r;
}

static int cuda_host_func(void *stream, void (*fn)(void *arg), void *arg)
{
	return cu.host_func(stream, fn, arg);
}

/* What not every driver has: looked up when it is first asked for. NULL: it has it not. */
static void *late(void **kept, const char *name)
{
	void *at = __atomic_load_n(kept, __ATOMIC_ACQUIRE);

	if (!at) {
		at = dlsym(cuda.lib, name);
		__atomic_store_n(kept, at, __ATOMIC_RELEASE);
	}
	return at;
}

static int cuda_ipc(void *ctx, uint64_t va, unsigned char out[64])
{
	static void *kept;
	void *at = late(&kept, "cuIpcGetMemHandle");
	CUresult (*get)(CUipcMemHandle *, CUdeviceptr);
	CUipcMemHandle h;
	int r;

	if (!at)
		return CUDA_ERROR_NOT_SUPPORTED;
	memcpy(&get, &at, sizeof(get));
	r = enter(ctx);
	if (r)
		return r;
	r = get(&h, va);
	leave();
	if (!r)
		memcpy(out, h.reserved, sizeof(h.reserved));
	return r;
}

static int cuda_mapping(void *ctx, uint64_t va, uint64_t *base_va, size_t *len)
{
	static void *kept;
	void *at = late(&kept, "cuMemGetAddressRange_v2");
	CUresult (*get)(CUdeviceptr *, size_t *, CUdeviceptr);
	CUdeviceptr base = 0;
	int r;

	if (!at)
		return CUDA_ERROR_NOT_SUPPORTED;
	memcpy(&get, &at, sizeof(get));
	r = enter(ctx);
	if (r)
		return r;
	r = get(&base, len, va);
	leave();
	*base_va = base;
	return r;
}

/* The handles of memory that is mapped stay with its maker; ours are given back at once. */
static int cuda_export_fd(void *ctx, uint64_t va, size_t len, int *fd)
{
	static void *kept[3];
	void *retain_at = late(&kept[0], "cuMemRetainAllocationHandle");
	void *export_at = late(&kept[1], "cuMemExportToShareableHandle");
	void *release_at = late(&kept[2], "cuMemRelease");
	CUresult (*retain)(CUmemGenericAllocationHandle *, void *);
	CUresult (*export)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
			   unsigned long long);
	CUresult (*release)(CUmemGenericAllocationHandle);
	CUmemGenericAllocationHandle h, last;
	int r;

	if (!retain_at || !export_at || !release_at)
		return CUDA_ERROR_NOT_SUPPORTED;
	memcpy(&retain, &retain_at, sizeof(retain));
	memcpy(&export, &export_at, sizeof(export));
	memcpy(&release, &release_at, sizeof(release));
	r = enter(ctx);
	if (r)
		return r;
	*fd = -1;
	r = retain(&h, (void *)(uintptr_t)va);
	if (!r) {
		r = retain(&last, (void *)(uintptr_t)(va + len - 1));
		if (!r) {
			if (last == h)
				r = export(fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
			release(last);
		}
		release(h);
	}
	leave();
	return r;
}

static int cuda_wait_word(void *stream, uint32_t *word, uint32_t value)
{
	static void *kept;
	void *at = late(&kept, "cuStreamWaitValue32_v2");
	CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);

	if (!at)
		return CUDA_ERROR_NOT_SUPPORTED;
	memcpy(&wait, &at, sizeof(wait));
	return wait(stream, (uintptr_t)word, value, CU_STREAM_WAIT_VALUE_GEQ);
}

static int cuda_stream_sync(void *stream)
{
	return cu.stream_sync(stream);
}

const struct gpu_ops gpu_cuda = {
	.open = cuda_open,
	.count = cuda_count,
	.error = cuda_error,
	.pointer = cuda_pointer,
	.id = cuda_id,
	.primary_get = cuda_primary_get,
	.primary_put = cuda_primary_put,
	.pci = cuda_pci,
	.uuid = cuda_uuid,
	.alloc = cuda_alloc,
	.free = cuda_free,
	.host_alloc = cuda_host_alloc,
	.host_free = cuda_host_free,
	.stream_new = cuda_stream_new,
	.stream_free = cuda_stream_free,
	.to_gpu = cuda_to_gpu,
	.to_host = cuda_to_host,
	.inside = cuda_inside,
	.sync = cuda_sync,
	.event_new = cuda_event_new,
	.event_free = cuda_event_free,
	.event_record = cuda_event_record,
	.event_query = cuda_event_query,
	.event_sync = cuda_event_sync,
	.host_func = cuda_host_func,
	.wait_word = cuda_wait_word,
	.stream_sync = cuda_stream_sync,
	.ipc = cuda_ipc,
	.mapping = cuda_mapping,
	.export_fd = cuda_export_fd,
	.sync_memops = cuda_sync_memops,
};

const struct gpu_ops *gpu = &gpu_cuda;
