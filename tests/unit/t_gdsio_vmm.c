// SPDX-License-Identifier: MIT
/*
 * t_gdsio_vmm.c - gdsio's memory type 1, on a driver that only writes down its calls.
 *
 * Guards that the memory is made, mapped and taken back in the order that the driver wants,
 * that a step which fails takes back what came before it and nothing else, and that a driver
 * without these calls is refused with the name of the one that is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../tools/gdsio/vmm.c"

#define UNIT (2UL << 20)
#define VA 0x700000000000ULL
#define HANDLE 77ULL

static char calls[256], told[256];
static const char *failing, *missing;

void gdsio_err(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(told, sizeof(told), fmt, ap);
	va_end(ap);
}

int gdsio_cuda(CUresult res, const char *what)
{
	return res ? -EIO : 0;
}

static CUresult note(const char *name)
{
	size_t n = strlen(calls);

	snprintf(calls + n, sizeof(calls) - n, "%s ", name);
	return failing && !strcmp(failing, name) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult granularity(size_t *bytes, const struct vmm_prop *prop, int option)
{
	assert_int_equal(prop->type, 1);
	assert_int_equal(prop->location.id, 3);
	assert_int_equal(prop->gpudirect, 1);
	assert_int_equal(prop->handle_types, 1);
	*bytes = UNIT;
	return note("granularity");
}

static CUresult create(unsigned long long *handle, size_t size, const struct vmm_prop *prop,
		       unsigned long long flags)
{
	assert_int_equal(size % UNIT, 0);
	*handle = HANDLE;
	return note("create");
}

static CUresult reserve(CUdeviceptr *ptr, size_t size, size_t align, CUdeviceptr addr,
			unsigned long long flags)
{
	*ptr = VA;
	return note("reserve");
}

static CUresult map(CUdeviceptr ptr, size_t size, size_t off, unsigned long long handle,
		    unsigned long long flags)
{
	assert_int_equal(ptr, VA);
	assert_int_equal(handle, HANDLE);
	return note("map");
}

static CUresult grant(CUdeviceptr ptr, size_t size, const struct vmm_access *desc, size_t n)
{
	assert_int_equal(n, 1);
	assert_int_equal(desc->location.id, 3);
	assert_int_equal(desc->flags, 3);
	return note("access");
}

static CUresult unmap(CUdeviceptr ptr, size_t size)
{
	assert_int_equal(ptr, VA);
	return note("unmap");
}

static CUresult release(unsigned long long handle)
{
	assert_int_equal(handle, HANDLE);
	return note("release");
}

static CUresult unreserve(CUdeviceptr ptr, size_t size)
{
	assert_int_equal(ptr, VA);
	return note("unreserve");
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags,
				  CUdriverProcAddressQueryResult *found)
{
	static const struct {
		const char *name;
		void *fn;
	} all[] = {
		{ "cuMemGetAllocationGranularity", granularity }, { "cuMemCreate", create },
		{ "cuMemAddressReserve", reserve }, { "cuMemMap", map },
		{ "cuMemSetAccess", grant }, { "cuMemUnmap", unmap },
		{ "cuMemRelease", release }, { "cuMemAddressFree", unreserve },
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!strcmp(all[i].name, symbol) && (!missing || strcmp(missing, symbol)))
			*pfn = all[i].fn;
	}
	return CUDA_SUCCESS;
}

static void made_and_taken_back(void **state)
{
	struct gdsio_memory m = { .size = UNIT + 1 };

	calls[0] = '\0';
	assert_int_equal(gdsio_vmm_alloc(3, &m), 0);
	assert_int_equal(m.size, 2 * UNIT);
	assert_int_equal(m.alloc, VA);
	assert_string_equal(calls, "granularity create reserve map access ");
	calls[0] = '\0';
	gdsio_vmm_free(&m);
	assert_string_equal(calls, "unmap unreserve release ");
}

static void failures_leave_nothing(void **state)
{
	static const struct {
		const char *step, *calls;
	} cases[] = {
		{ "granularity", "granularity " },
		{ "create", "granularity create " },
		{ "reserve", "granularity create reserve release " },
		{ "map", "granularity create reserve map unreserve release " },
		{ "access", "granularity create reserve map access unmap unreserve release " },
	};
	struct gdsio_memory m;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m = (struct gdsio_memory){ .size = 1 };
		calls[0] = '\0';
		failing = cases[i].step;
		assert_int_equal(gdsio_vmm_alloc(3, &m), -EIO);
		assert_string_equal(calls, cases[i].calls);
		assert_int_equal(m.alloc, 0);
	}
	failing = NULL;
}

static void old_driver_is_refused(void **state)
{
	struct gdsio_memory m = { .size = 1 };

	calls[0] = '\0';
	missing = "cuMemSetAccess";
	assert_int_equal(gdsio_vmm_alloc(3, &m), -EIO);
	assert_non_null(strstr(told, "libcuda has no cuMemSetAccess"));
	assert_string_equal(calls, "");
	missing = NULL;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_and_taken_back),
		cmocka_unit_test(failures_leave_nothing),
		cmocka_unit_test(old_driver_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
