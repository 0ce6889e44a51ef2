// SPDX-License-Identifier: MIT
/*
 * vmm.c - memory type 1: GPU memory of the driver's virtual memory management.
 *
 * Its calls are asked for at run time: an old driver has none. The layouts are the driver's,
 * fixed since CUDA 10.2.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gdsio.h"

enum { TYPE_PINNED = 1, HANDLE_FD = 1, LOCATION_DEVICE = 1, ACCESS_READ_WRITE = 3,
       GRANULARITY_MINIMUM = 0 };

struct vmm_location {
	int type;
	int id;
};

struct vmm_prop {
	int type;
	int handle_types;
	struct vmm_location location;
	void *win32;
	unsigned char compression;
	unsigned char gpudirect;	/* peers (NICs, drives) may reach it */
	unsigned short usage;
	unsigned char reserved[4];
};

struct vmm_access {
	struct vmm_location location;
	int flags;
};

_Static_assert(sizeof(struct vmm_prop) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(struct vmm_access) == 12, "CUmemAccessDesc");

static struct {
	CUresult (*granularity)(size_t *bytes, const struct vmm_prop *prop, int option);
	CUresult (*reserve)(CUdeviceptr *ptr, size_t size, size_t align, CUdeviceptr addr,
			    unsigned long long flags);
	CUresult (*create)(unsigned long long *handle, size_t size, const struct vmm_prop *prop,
			   unsigned long long flags);
	CUresult (*map)(CUdeviceptr ptr, size_t size, size_t off, unsigned long long handle,
			unsigned long long flags);
	CUresult (*access)(CUdeviceptr ptr, size_t size, const struct vmm_access *desc, size_t n);
	CUresult (*unmap)(CUdeviceptr ptr, size_t size);
	CUresult (*release)(unsigned long long handle);
	CUresult (*unreserve)(CUdeviceptr ptr, size_t size);
} vmm;

/* Main thread only, as all that makes memory. */
static int find_calls(void)
{
	static const struct {
		const char *name;
		void *to;
	} call[] = {
		{ "cuMemGetAllocationGranularity", &vmm.granularity },
		{ "cuMemAddressReserve", &vmm.reserve }, { "cuMemCreate", &vmm.create },
		{ "cuMemMap", &vmm.map }, { "cuMemSetAccess", &vmm.access },
		{ "cuMemUnmap", &vmm.unmap }, { "cuMemRelease", &vmm.release },
		{ "cuMemAddressFree", &vmm.unreserve },
	};
	CUdriverProcAddressQueryResult found;
	void *fn;
	size_t i;

	for (i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
		fn = NULL;
		if (cuGetProcAddress(call[i].name, &fn, 11000, 0, &found) || !fn) {
			gdsio_err("-m 1: libcuda has no %s, so no virtual memory management; take "
				  "-m 0", call[i].name);
			return -EIO;
		}
		memcpy(call[i].to, &fn, sizeof(fn));
	}
	return 0;
}

int gdsio_vmm_alloc(int gpu, struct gdsio_memory *m)
{
	/* a descriptor of it is what a GeForce's driver is told of it by (docs/geforce.md) */
	const struct vmm_prop prop = {
		.type = TYPE_PINNED,
		.handle_types = HANDLE_FD,
		.location = { LOCATION_DEVICE, gpu },
		.gpudirect = 1,
	};
	const struct vmm_access access = { { LOCATION_DEVICE, gpu }, ACCESS_READ_WRITE };
	size_t unit;

	if (find_calls())
		return -EIO;
	if (gdsio_cuda(vmm.granularity(&unit, &prop, GRANULARITY_MINIMUM),
		       "cuMemGetAllocationGranularity"))
		return -EIO;
	m->size = (m->size + unit - 1) / unit * unit;
	if (gdsio_cuda(vmm.create(&m->vmm, m->size, &prop, 0), "cuMemCreate for a buffer"))
		return -EIO;
	if (gdsio_cuda(vmm.reserve(&m->alloc, m->size, 0, 0, 0), "cuMemAddressReserve"))
		goto release;
	if (gdsio_cuda(vmm.map(m->alloc, m->size, 0, m->vmm, 0), "cuMemMap"))
		goto unreserve;
	if (gdsio_cuda(vmm.access(m->alloc, m->size, &access, 1), "cuMemSetAccess"))
		goto unmap;
	return 0;

unmap:
	vmm.unmap(m->alloc, m->size);
unreserve:
	vmm.unreserve(m->alloc, m->size);
release:
	vmm.release(m->vmm);
	m->alloc = 0;
	return -EIO;
}

void gdsio_vmm_free(struct gdsio_memory *m)
{
	vmm.unmap(m->alloc, m->size);
	vmm.unreserve(m->alloc, m->size);
	vmm.release(m->vmm);
}
