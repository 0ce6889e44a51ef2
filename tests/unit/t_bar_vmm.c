// SPDX-License-Identifier: MIT
/*
 * t_bar_vmm.c - reads that end by stores in memory of cuMemCreate, on the driver of rm_fake.h.
 * Fails when a byte is wrong or stands in memory that is not mapped there any more, when a request
 * takes another way than it says, when several pieces are taken for one, or anything of the driver
 * stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cufile_fake.h"
#include "gpu.h"
#include "rm_fake.h"
#include "t_bar.h"

static CUdeviceptr vmm_new(size_t size, unsigned int types)
{
	return (uintptr_t)fake_vmm(size, types);
}

/* Reads of odd sizes and places by this route; the memory around them stays as it is. */
static void reads_by(CUfileHandle_t fh, const char *want, CUdeviceptr p, size_t size,
		     enum ogds_route route)
{
	static const struct {
		size_t n, at;
		off_t off;
	} r[] = { { 1, 0, 7 }, { 4096, 4096, 0 }, { 8191, 12345, 100 }, { 50001, 65531, 513 } };
	unsigned int i;

	for (i = 0; i < sizeof(r) / sizeof(*r); i++) {
		clear(p, size);
		read_by(fh, p, r[i].n, r[i].off, r[i].at, r[i].n, route);
		check_memory(p, size, want + r[i].off, r[i].at, r[i].at + r[i].n);
	}
}

struct vmm_file {
	CUfileHandle_t fh;
	char *want;
	int fd;
};

static void vmm_file_open(struct vmm_file *f, uint64_t seed)
{
	const char *path = fake_file("f", MIB, seed);

	f->want = contents(path, MIB);
	f->fh = fake_register(path, O_RDONLY, &f->fd);
}

static void vmm_file_close(struct vmm_file *f)
{
	cuFileHandleDeregister(f->fh);
	close(f->fd);
	free(f->want);
}

/* Registered and not; what it was named by goes with the registration, or when it is idle. */
static void t_vmm(void **state)
{
	const size_t size = 4 * MIB;
	CUdeviceptr p = vmm_new(size, FAKE_FD), none = vmm_new(size, 0);
	struct vmm_file f;

	rm_fake_begin(16 * GIB);
	vmm_file_open(&f, 31);
	OK(cuFileBufRegister((void *)(uintptr_t)p, size, 0));
	reads_by(f.fh, f.want, p, size, OGDS_ROUTE_BAR);
	assert_int_equal(atomic_load(&rm_fake.imports), 1);
	assert_int_equal(atomic_load(&rm_fake.made), 1);
	OK(cuFileBufDeregister((void *)(uintptr_t)p));
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	/* a part of it */
	OK(cuFileBufRegister((void *)(uintptr_t)(p + MIB + 512), 2 * MIB, 0));
	reads_by(f.fh, f.want, p + MIB + 512, 2 * MIB, OGDS_ROUTE_BAR);
	OK(cuFileBufDeregister((void *)(uintptr_t)(p + MIB + 512)));
	read_by(f.fh, p, 4096, 0, 0, 4096, OGDS_ROUTE_BOUNCE);
	reads_by(f.fh, f.want, p, size, OGDS_ROUTE_BAR);
	assert_int_equal(atomic_load(&rm_fake.imports), 3);
	/* made for no handle: its own affair */
	OK(cuFileBufRegister((void *)(uintptr_t)none, size, 0));
	reads_by(f.fh, f.want, none, size, OGDS_ROUTE_BOUNCE);
	OK(cuFileBufDeregister((void *)(uintptr_t)none));
	reads_by(f.fh, f.want, p, size, OGDS_ROUTE_BAR);
	vmm_file_close(&f);
	cuFileDriverClose();
	fake_vmm_free((char *)(uintptr_t)p, size);
	fake_vmm_free((char *)(uintptr_t)none, size);
}

/* The driver says of a descriptor what this library cannot use: that memory's own affair. */
static void t_vmm_refused(void **state)
{
	static const struct {
		int objects, type, step;
	} how[] = { { 2, 0, 0 }, { 1, 2, 0 }, { 1, 0, RM_IMPORT }, { 1, 0, RM_IMPORT_END } };
	const size_t size = 2 * MIB;
	CUdeviceptr p = vmm_new(size, FAKE_FD), q = gpu_new(size);
	struct vmm_file f;
	unsigned int i;

	rm_fake_begin(16 * GIB);
	rm_fake.result = 0x56;
	vmm_file_open(&f, 32);
	for (i = 0; i < sizeof(how) / sizeof(*how); i++) {
		atomic_store(&rm_fake.objects, how[i].objects);
		atomic_store(&rm_fake.type, how[i].type);
		atomic_store(&rm_fake.fail, how[i].step);
		OK(cuFileBufRegister((void *)(uintptr_t)p, size, 0));
		reads_by(f.fh, f.want, p, size, OGDS_ROUTE_BOUNCE);
		assert_int_equal(atomic_load(&rm_fake.dups), 0);
		OK(cuFileBufDeregister((void *)(uintptr_t)p));
		OK(cuFileBufRegister((void *)(uintptr_t)q, size, 0));
		reads_by(f.fh, f.want, q, size, OGDS_ROUTE_BAR);
		OK(cuFileBufDeregister((void *)(uintptr_t)q));
	}
	atomic_store(&rm_fake.objects, 1);
	atomic_store(&rm_fake.type, 0);
	atomic_store(&rm_fake.fail, 0);
	OK(cuFileBufRegister((void *)(uintptr_t)p, size, 0));
	reads_by(f.fh, f.want, p, size, OGDS_ROUTE_BAR);
	OK(cuFileBufDeregister((void *)(uintptr_t)p));
	vmm_file_close(&f);
	cuMemFree(q);
	fake_vmm_free((char *)(uintptr_t)p, size);
}

/*
 * Unmapped, and mapped anew at the same address: other memory, then the same. No store goes to
 * what was there before, which lies elsewhere now.
 */
static void again_at(bool registered)
{
	const CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				       CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	const size_t size = 2 * MIB;
	CUdeviceptr p = vmm_new(size, FAKE_FD), elsewhere;
	CUmemGenericAllocationHandle old;
	struct vmm_file f;
	int i;

	vmm_file_open(&f, 33);
	assert_int_equal(cuMemAddressReserve(&elsewhere, size, 0, 0, 0), 0);
	for (i = 0; i < 4; i++) {
		if (registered)
			OK(cuFileBufRegister((void *)(uintptr_t)p, size, 0));
		else
			read_by(f.fh, p, 4096, 0, 0, 4096, OGDS_ROUTE_BOUNCE);
		reads_by(f.fh, f.want, p, size, OGDS_ROUTE_BAR);
		clear(p, size);
		assert_int_equal(cuMemRetainAllocationHandle(&old, (void *)(uintptr_t)p), 0);
		assert_int_equal(cuMemUnmap(p, size), 0);
		if (i % 2) {
			assert_int_equal(cuMemMap(p, size, 0, old, 0), 0);
			assert_int_equal(cuMemSetAccess(p, size, &desc, 1), 0);
		} else {
			fake_vmm_map(p, size, FAKE_FD);
			assert_int_equal(cuMemMap(elsewhere, size, 0, old, 0), 0);
			assert_int_equal(cuMemSetAccess(elsewhere, size, &desc, 1), 0);
		}
		/* by no registration, the old one being of memory that is gone; not by bar yet */
		read_by(f.fh, p, 8000, 100, 50, 8000, OGDS_ROUTE_BOUNCE);
		check_memory(p, size, f.want + 100, 50, 8050);
		if (!(i % 2)) {
			check_memory(elsewhere, size, f.want, 0, 0);
			assert_int_equal(cuMemUnmap(elsewhere, size), 0);
		}
		assert_int_equal(cuMemRelease(old), 0);
		if (!registered) {
			assert_int_equal(cuMemUnmap(p, size), 0);
			fake_vmm_map(p, size, FAKE_FD);
		}
	}
	if (registered)
		OK(cuFileBufDeregister((void *)(uintptr_t)p));
	vmm_file_close(&f);
	cuFileDriverClose();
	fake_vmm_free((char *)(uintptr_t)p, size);
	assert_int_equal(cuMemAddressFree(elsewhere, size), 0);
}

static void t_vmm_again(void **state)
{
	rm_fake_begin(16 * GIB);
	again_at(true);
	again_at(false);
}

/* Several pieces beside each other, with a hole behind them: each is memory of its own. */
static void t_vmm_several(void **state)
{
	const size_t size = 2 * MIB, n = 100000;
	const off_t off = 4097;
	CUdeviceptr p, border;
	struct vmm_file f;
	int i;

	rm_fake_begin(16 * GIB);
	assert_int_equal(cuMemAddressReserve(&p, 3 * size, 0, 0, 0), 0);
	fake_vmm_map(p, size, FAKE_FD);
	fake_vmm_map(p + size, size, FAKE_FD);
	border = p + size - n / 2;
	vmm_file_open(&f, 34);
	/* both */
	OK(cuFileBufRegister((void *)(uintptr_t)p, 2 * size, 0));
	reads_by(f.fh, f.want, p, 2 * size, OGDS_ROUTE_BOUNCE);
	read_by(f.fh, p, n, off, border - p, n, OGDS_ROUTE_BOUNCE);
	check_memory(border, n, f.want + off, 0, n);
	assert_int_equal(atomic_load(&rm_fake.imports), 0);
	OK(cuFileBufDeregister((void *)(uintptr_t)p));
	/* each by itself */
	OK(cuFileBufRegister((void *)(uintptr_t)p, size, 0));
	OK(cuFileBufRegister((void *)(uintptr_t)(p + size), size, 0));
	for (i = 0; i < 2; i++) {
		reads_by(f.fh, f.want, p, size, OGDS_ROUTE_BAR);
		reads_by(f.fh, f.want, p + size, size, OGDS_ROUTE_BAR);
	}
	assert_int_equal(atomic_load(&rm_fake.imports), 2);
	/* the second one is another from now on, and the first one knows nothing of it */
	assert_int_equal(cuMemUnmap(p + size, size), 0);
	fake_vmm_map(p + size, size, FAKE_FD);
	read_by(f.fh, p + size, n, off, 0, n, OGDS_ROUTE_BOUNCE);
	check_memory(p + size, n, f.want + off, 0, n);
	reads_by(f.fh, f.want, p, size, OGDS_ROUTE_BAR);
	OK(cuFileBufDeregister((void *)(uintptr_t)p));
	OK(cuFileBufDeregister((void *)(uintptr_t)(p + size)));
	/* not registered: the first one's is not the second one's, nor that of both */
	assert_int_equal(cuMemUnmap(p + size, size), 0);
	fake_vmm_map(p + size, size, FAKE_FD);
	for (i = 0; i < 3; i++) {
		clear(p, 2 * size);
		read_by(f.fh, p, 4096, off, 0, 4096, i ? OGDS_ROUTE_BAR : OGDS_ROUTE_BOUNCE);
		read_by(f.fh, p, n, off, border - p, n, OGDS_ROUTE_BOUNCE);
		check_memory(border, n, f.want + off, 0, n);
		clear(p + size, size);
		read_by(f.fh, p, n, off, size + 4096, n, OGDS_ROUTE_BOUNCE);
		check_memory(p + size, size, f.want + off, 4096, 4096 + n);
	}
	vmm_file_close(&f);
	cuFileDriverClose();
	assert_int_equal(cuMemUnmap(p, size), 0);
	assert_int_equal(cuMemUnmap(p + size, size), 0);
	assert_int_equal(cuMemAddressFree(p, 3 * size), 0);
}

/* A driver whose ids tell reservations, not mappings: they do not tell when one is replaced. */
static CUdeviceptr one_id;
static const struct gpu_ops *whole_gpu;

static int id_of_all(uint64_t va, uint64_t *id)
{
	return whole_gpu->id(va >= one_id && va < one_id + 4 * MIB ? one_id : va, id);
}

static int pointer_of_all(const void *ptr, struct gpu_ptr *out)
{
	int r = whole_gpu->pointer(ptr, out);

	return r || out->kind != GPU_MEM_DEVICE ? r : id_of_all((uintptr_t)ptr, &out->id);
}

/* One that tells what was reserved of a mapping. */
static int mapping_of_all(void *ctx, uint64_t va, uint64_t *base_va, size_t *len)
{
	int r = whole_gpu->mapping(ctx, va, base_va, len);

	if (!r && va >= one_id && va < one_id + 4 * MIB) {
		*base_va = one_id;
		*len = 4 * MIB;
	}
	return r;
}

static void not_told_apart(const struct gpu_ops *ops)
{
	const size_t size = 2 * MIB;
	struct vmm_file f;
	unsigned int i;

	whole_gpu = gpu;
	gpu = ops;
	assert_int_equal(cuMemAddressReserve(&one_id, 2 * size, 0, 0, 0), 0);
	fake_vmm_map(one_id, size, FAKE_FD);
	fake_vmm_map(one_id + size, size, FAKE_FD);
	vmm_file_open(&f, 35);
	for (i = 0; i < 2; i++) {
		OK(cuFileBufRegister((void *)(uintptr_t)(one_id + i * size), size, 0));
		reads_by(f.fh, f.want, one_id + i * size, size, OGDS_ROUTE_BOUNCE);
		OK(cuFileBufDeregister((void *)(uintptr_t)(one_id + i * size)));
	}
	assert_int_equal(atomic_load(&rm_fake.made), 0);
	assert_int_equal(atomic_load(&rm_fake.imports), 0);
	vmm_file_close(&f);
	cuFileDriverClose();
	gpu = whole_gpu;
	for (i = 0; i < 2; i++)
		assert_int_equal(cuMemUnmap(one_id + i * size, size), 0);
	assert_int_equal(cuMemAddressFree(one_id, 2 * size), 0);
}

static void t_vmm_one_id(void **state)
{
	struct gpu_ops ids = *gpu, mappings = *gpu;

	rm_fake_begin(16 * GIB);
	ids.id = id_of_all;
	ids.pointer = pointer_of_all;
	not_told_apart(&ids);
	mappings.mapping = mapping_of_all;
	not_told_apart(&mappings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(t_vmm, setup, teardown),
		cmocka_unit_test_setup_teardown(t_vmm_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(t_vmm_again, setup, teardown),
		cmocka_unit_test_setup_teardown(t_vmm_several, setup, teardown),
		cmocka_unit_test_setup_teardown(t_vmm_one_id, setup, teardown),
	};

	alarm(200);	/* what a failed test leaves behind may be waited for for ever */
	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
