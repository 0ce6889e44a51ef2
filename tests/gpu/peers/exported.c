// SPDX-License-Identifier: MIT
/*
 * exported.c - what a GPU's driver answers to a process that lists memory of cuMemCreate for other
 * drivers: by a descriptor, as such memory has no IPC handle. Each step with its status, for memory
 * of several sizes; how many objects of the driver it is; that the imported object is the memory;
 * what CUDA tells of memory that is mapped, unmapped and mapped again. No pin is asked for.
 *
 *	exported [GPU]
 *
 * Exit status: 0 when the steps that lib/peers.c takes were answered as it expects, else 1; 77
 * without a GPU.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <cuda.h>

/* one import at a time, which only the client itself makes */
#include "rm/client.c"

#include "gpu.h"

#define MIB ((uint64_t)1 << 20)
#define MOST 4096	/* objects of one descriptor that are counted */

static int bad;

static struct {
	CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
	CUresult (*unreserve)(CUdeviceptr, size_t);
	CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			   unsigned long long);
	CUresult (*release)(CUmemGenericAllocationHandle);
	CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			unsigned long long);
	CUresult (*unmap)(CUdeviceptr, size_t);
	CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
	CUresult (*set)(CUdeviceptr, unsigned int, size_t);
	CUresult (*get)(void *, CUdeviceptr, size_t);
	CUresult (*push)(CUcontext);
	CUresult (*granularity)(size_t *, const CUmemAllocationProp *,
				CUmemAllocationGranularity_flags);
	CUresult (*info)(size_t *, size_t *);
	/* not every driver, nor the simulated one */
	CUresult (*pool)(CUdeviceptr *, size_t, CUstream);
} cu;

/* want < 0: whatever it is, it is told */
static void told(const char *name, const char *what, int r, int want)
{
	bool ok = want < 0 || r == want;
	char text[128];

	snprintf(text, sizeof(text), "%s: %s", name, what);
	if (r < 0)
		printf("%-62s %s%s\n", text, strerror(-r), ok ? "" : "   UNEXPECTED");
	else
		printf("%-62s 0x%x%s\n", text, r, ok ? "" : "   UNEXPECTED");
	bad += !ok;
}

static void is(const char *name, const char *what, bool yes)
{
	char text[128];

	snprintf(text, sizeof(text), "%s: %s", name, what);
	printf("%-62s %s\n", text, yes ? "yes" : "no   UNEXPECTED");
	bad += !yes;
}

static bool find_calls(void)
{
	static const struct {
		const char *name;
		void *to;
	} call[] = {
		{ "cuMemAddressReserve", &cu.reserve },
		{ "cuMemAddressFree", &cu.unreserve },
		{ "cuMemCreate", &cu.create },
		{ "cuMemRelease", &cu.release },
		{ "cuMemMap", &cu.map },
		{ "cuMemUnmap", &cu.unmap },
		{ "cuMemSetAccess", &cu.access },
		{ "cuMemsetD32_v2", &cu.set },
		{ "cuMemcpyDtoH_v2", &cu.get },
		{ "cuCtxPushCurrent_v2", &cu.push },
		{ "cuMemGetAllocationGranularity", &cu.granularity },
		{ "cuMemGetInfo_v2", &cu.info },
		{ "cuMemAllocAsync", &cu.pool },
	};
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *at;
	unsigned int i;

	for (i = 0; i < sizeof(call) / sizeof(*call); i++) {
		at = lib ? dlsym(lib, call[i].name) : NULL;
		if (!at && call[i].to != &cu.pool) {
			printf("libcuda.so.1 has no %s\n", call[i].name);
			return false;
		}
		memcpy(call[i].to, &at, sizeof(at));
	}
	return true;
}

/* -- memory -- */

struct piece {
	const char *name;
	uint64_t size;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;
	uint32_t object;	/* ours; 0: none */
};

static int make(struct piece *p, int dev, unsigned int types)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = types,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, dev },
		.allocFlags = { .gpuDirectRDMACapable = 1 },
	};

	return cu.create(&p->handle, p->size, &prop, 0);
}

static int map_it(struct piece *p, int dev)
{
	CUmemAccessDesc desc = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, dev },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	int r = cu.map(p->va, p->size, 0, p->handle, 0);

	return r ? r : cu.access(p->va, p->size, &desc, 1);
}

static bool made(struct piece *p, int dev, unsigned int types)
{
	int r = make(p, dev, types);

	told(p->name, "cuMemCreate", r, -1);
	if (r)
		return false;
	r = cu.reserve(&p->va, p->size, 0, 0, 0);
	if (!r)
		r = map_it(p, dev);
	told(p->name, "mapped", r, 0);
	return !r;
}

static void unmake(struct piece *p)
{
	cu.unmap(p->va, p->size);
	cu.unreserve(p->va, p->size);
	cu.release(p->handle);
}

/* What lib/peers.c knows it by: its place, that it is of no context, an id. */
static uint64_t look(const struct piece *p)
{
	struct gpu_ptr mem;
	int r = gpu->pointer((void *)(uintptr_t)(p->va + p->size / 2), &mem);

	told(p->name, "pointer attributes", r, 0);
	if (r)
		return 0;
	printf("    context %s, id 0x%llx, kind %d\n", mem.ctx ? "there" : "none",
	       (unsigned long long)mem.id, mem.kind);
	is(p->name, "begins and ends where it is mapped",
	   mem.kind == GPU_MEM_DEVICE && mem.base_va == p->va && mem.len == p->size);
	is(p->name, "has an id", mem.id != 0);
	return mem.id;
}

/* -- the descriptor -- */

static void count(struct rm *rm, const struct piece *p, int fd)
{
	unsigned int n, type, first = 0;
	uint32_t object;
	int r = 0;

	for (n = 0; n < MOST; n++) {
		r = import_at(rm, fd, n, &object, &type);
		if (r || type == RM_IMPORTED_NONE)
			break;
		if (!n)
			first = type;
		rm_drop(rm, object);
	}
	printf("%s: objects: %u, the first of type %u, then 0x%x\n", p->name, n, first, r);
}

/* Words written by the GPU are seen through the object where they should be, and the end of it. */
static void same_memory(struct rm *rm, void *ctx, const struct piece *p)
{
	const uint64_t at[] = { 0,	  2 * MIB - 4096, 32 * MIB - 4096,
				32 * MIB, p->size / 2,	  p->size - 4096 };
	const char *step = "";
	struct rm_view v;
	uint32_t word, seen;
	bool ok = true;
	unsigned int i;
	int r;

	for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
		if (at[i] > p->size - 4096)
			continue;
		word = 0x5eed0000 + i + (uint32_t)p->size;
		cu.set(p->va + at[i], word, 1024);
		cu.get(&seen, p->va + at[i], sizeof(seen));	/* waits for it, too */
		r = rm_view(rm, p->object, at[i], 4096, &v, &step);
		if (r) {
			told(p->name, step, r, -1);
			ok = false;
			continue;
		}
		ok &= *(volatile uint32_t *)v.at == word;
		*(volatile uint32_t *)v.at = ~word;
		__sync_synchronize();
		rm_unview(&v);
		cu.get(&seen, p->va + at[i], sizeof(seen));
		ok &= seen == ~word;
	}
	is(p->name, "the object is the memory, both ways", ok);
}

static bool import(struct rm *rm, void *ctx, struct piece *p)
{
	const char *step = "";
	unsigned char ipc[64];
	int fd = -1, r;

	r = gpu->ipc(ctx, p->va, ipc);
	told(p->name, "cuIpcGetMemHandle", r, -1);
	is(p->name, "has no IPC handle", r != 0);
	r = gpu->export_fd(ctx, p->va, p->size, &fd);
	told(p->name, "exported as a descriptor", r, 0);
	if (r)
		return false;
	count(rm, p, fd);
	r = rm_import(rm, fd, &p->object, &step);
	told(p->name, "imported", r, 0);
	if (r)
		printf("    failed at: %s\n", step);
	close(fd);
	return !r;
}

static int list(struct rm *rm, const struct rm_peers *peers, const struct piece *p,
		const char *how, uint64_t va, uint64_t len, uint64_t off, int want)
{
	const char *step = "";
	char text[96];
	int r = rm_peers_register(rm, peers, p->object, va, len, off, &step);

	snprintf(text, sizeof(text), "list %s", how);
	told(p->name, text, r, want);
	return r;
}

static void unlist(struct rm *rm, const struct rm_peers *peers, const struct piece *p, int want)
{
	const char *step = "";

	told(p->name, "take off", rm_peers_unregister(rm, peers, p->object, &step), want);
}

/* The life of one piece, as lib/peers.c has it, and what it does not do. */
static void life(struct rm *rm, void *ctx, const struct rm_peers *peers, struct piece *p, int dev)
{
	if (!made(p, dev, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) {
		printf("    left out: no memory of that size\n");
		return;
	}
	look(p);
	if (import(rm, ctx, p)) {
		same_memory(rm, ctx, p);
		if (!list(rm, peers, p, "all of it", p->va, p->size, 0, 0))
			unlist(rm, peers, p, 0);
		if (!list(rm, peers, p, "64 KiB more than there is", p->va, p->size + 65536, 0, -1))
			unlist(rm, peers, p, -1);
		if (!list(rm, peers, p, "its second half", p->va + p->size / 2, p->size / 2,
			  p->size / 2, -1))
			unlist(rm, peers, p, -1);
		rm_drop(rm, p->object);
	}
	unmake(p);
}

/* Unmapped while it is listed; then its own memory, then other memory at that address. */
static void again(struct rm *rm, void *ctx, const struct rm_peers *peers, int dev)
{
	struct piece p = { .name = "mapped again", .size = 4 * MIB }, other = p;
	uint64_t id, second, third;

	if (!made(&p, dev, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return;
	id = look(&p);
	if (!import(rm, ctx, &p)) {
		unmake(&p);
		return;
	}
	list(rm, peers, &p, "all of it", p.va, p.size, 0, 0);
	told(p.name, "unmapped while listed", cu.unmap(p.va, p.size), 0);
	told(p.name, "the same at that address", map_it(&p, dev), 0);
	second = look(&p);
	printf("    the same memory, mapped again, has %s id\n", second == id ? "the same" : "another");
	cu.unmap(p.va, p.size);
	cu.release(p.handle);
	other.name = "other memory there";
	other.va = p.va;
	told(other.name, "cuMemCreate", make(&other, dev, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
	     0);
	told(other.name, "mapped", map_it(&other, dev), 0);
	third = look(&other);
	is(other.name, "has an id of its own", third != id && third != second);
	if (import(rm, ctx, &other)) {
		list(rm, peers, &other, "while the old entry is there", other.va, other.size, 0, -1);
		unlist(rm, peers, &p, 0);
		list(rm, peers, &other, "once it is gone", other.va, other.size, 0, 0);
		same_memory(rm, ctx, &other);
		unlist(rm, peers, &other, 0);
		rm_drop(rm, other.object);
	}
	rm_drop(rm, p.object);
	unmake(&other);
}

/* Two of them in one reservation, a hole behind: what CUDA tells of each, as lib/object.c asks. */
static void beside(void *ctx, int dev)
{
	struct piece p[2] = { { .name = "the first of two", .size = 4 * MIB },
			      { .name = "the second of two", .size = 4 * MIB } };
	uint64_t id[2] = { 0 }, base_va;
	struct gpu_ptr mem;
	CUdeviceptr va;
	unsigned int i;
	size_t len;
	int fd, r;

	if (cu.reserve(&va, 12 * MIB, 0, 0, 0))
		return;
	for (i = 0; i < 2; i++) {
		told(p[i].name, "cuMemCreate",
		     make(&p[i], dev, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), 0);
		p[i].va = va + i * 4 * MIB;
		told(p[i].name, "mapped", map_it(&p[i], dev), 0);
	}
	for (i = 0; i < 2; i++) {
		r = gpu->pointer((void *)(uintptr_t)(p[i].va + MIB), &mem);
		told(p[i].name, "pointer attributes", r, 0);
		printf("    range from %+lld of it, %llu MiB\n", (long long)(mem.base_va - p[i].va),
		       (unsigned long long)(mem.len / MIB));
		id[i] = mem.id;
		r = gpu->mapping(ctx, p[i].va + MIB, &base_va, &len);
		told(p[i].name, "cuMemGetAddressRange", r, 0);
		is(p[i].name, "tells what was mapped", base_va == p[i].va && len == p[i].size);
	}
	is(p[1].name, "has an id of its own", id[0] && id[1] && id[0] != id[1]);
	r = gpu->export_fd(ctx, va, 8 * MIB, &fd);
	told("both", "exported as a descriptor", r, 0);
	is("both", "is not one piece", fd < 0);
	if (fd >= 0)
		close(fd);
	/* the other one is mapped anew: its id is another, the first one's is not */
	cu.unmap(p[1].va, p[1].size);
	told(p[1].name, "mapped anew", map_it(&p[1], dev), 0);
	gpu->pointer((void *)(uintptr_t)p[1].va, &mem);
	is(p[1].name, "has another id then", mem.id && mem.id != id[1] && mem.id != id[0]);
	gpu->pointer((void *)(uintptr_t)va, &mem);
	is(p[0].name, "has the same id as before", mem.id == id[0]);
	for (i = 0; i < 2; i++) {
		cu.unmap(p[i].va, p[i].size);
		cu.release(p[i].handle);
	}
	cu.unreserve(va, 12 * MIB);
}

/* The imported name keeps what CUDA has released, and gives it back. */
static void kept(struct rm *rm, void *ctx, int dev)
{
	struct piece p = { .name = "released", .size = 64 * MIB };
	size_t before, with, after, total;

	cu.info(&before, &total);
	if (!made(&p, dev, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) || !import(rm, ctx, &p))
		return;
	unmake(&p);
	cu.info(&with, &total);
	rm_drop(rm, p.object);
	cu.info(&after, &total);
	is(p.name, "stays while it is imported", with < before);
	is(p.name, "comes back when that name is dropped", after > with);
}

static void other_kinds(void *ctx, int dev)
{
	struct piece p = { .name = "made for no handle", .size = 2 * MIB };
	CUdeviceptr pool = 0;
	uint64_t plain = 0;
	int fd, r;

	if (made(&p, dev, 0)) {
		r = gpu->export_fd(ctx, p.va, 2 * MIB, &fd);
		told(p.name, "exported as a descriptor", r, -1);
		is(p.name, "is not exported", r != 0);
		unmake(&p);
	}
	if (cu.pool && !cu.pool(&pool, 2 * MIB, NULL)) {
		r = gpu->export_fd(ctx, pool, 2 * MIB, &fd);
		told("of a pool", "exported as a descriptor", r, -1);
		is("of a pool", "is not exported", r != 0);
	}
	r = gpu->alloc(ctx, 2 * MIB, &plain);
	p.va = plain;
	if (!r) {
		r = gpu->export_fd(ctx, p.va, 2 * MIB, &fd);
		told("of cuMemAlloc", "exported as a descriptor", r, -1);
		is("of cuMemAlloc", "is not exported", r != 0);
		gpu->free(ctx, p.va);
	}
}

int main(int argc, char **argv)
{
	static struct piece piece[] = {
		{ .name = "2 MiB", .size = 2 * MIB },	    { .name = "4 MiB", .size = 4 * MIB },
		{ .name = "34 MiB", .size = 34 * MIB },	    { .name = "256 MiB", .size = 256 * MIB },
		{ .name = "1 GiB", .size = 1024 * MIB },    { .name = "6 GiB", .size = 6144 * MIB },
	};
	int dev = argc > 1 ? atoi(argv[1]) : 0, r;
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, dev },
	};
	struct rm_peers peers;
	char what[128], pci[32];
	const char *step = "";
	uint64_t info;
	size_t unit = 0;
	unsigned int i;
	struct rm *rm;
	void *ctx;

	if (gpu->open(what, sizeof(what)) || gpu->count() <= dev || gpu->primary_get(dev, &ctx)) {
		printf("no GPU %d: %s\n", dev, what);
		return 77;
	}
	if (!find_calls() || cu.push(ctx) || gpu->pci(dev, &info, pci, sizeof(pci)))
		return 1;
	printf("GPU %s, user %u\n", pci, getuid());
	told("all", "granularity", cu.granularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
	     0);
	printf("    %zu bytes\n", unit);
	r = rm_open(pci, &rm, &step);
	told("all", "client, device, subdevice", r, 0);
	if (r) {
		printf("    failed at: %s\n", step);
		return 1;
	}
	r = rm_peers_open(rm, &peers, &step);
	told("all", "peers object, address space, both joined", r, 0);
	if (r) {
		printf("    failed at: %s\n", step);
		return 1;
	}
	for (i = 0; i < sizeof(piece) / sizeof(*piece); i++)
		life(rm, ctx, &peers, &piece[i], dev);
	again(rm, ctx, &peers, dev);
	beside(ctx, dev);
	kept(rm, ctx, dev);
	other_kinds(ctx, dev);
	rm_peers_close(rm, &peers);
	rm_close(rm);
	gpu->primary_put(dev);
	printf("%d unexpected\n", bad);
	return bad != 0;
}
