// SPDX-License-Identifier: MIT
/*
 * t_p2pdma.c - route p2pdma as a program sees it: when it is taken, what a drive moved and what a
 * CPU did, refusals of kernel and module, and that others know of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "cufile_fake.h"
#include "opengds.h"

#define K 1024UL
#define SIZE (1024 * K)
#define SKIP (12 * K)		/* of the buffer in its GPU page */
#define ONLY "{\"opengds\": {\"routes\": [\"p2pdma\", \"bounce\"]}}"

/* A file of SIZE, registered memory as large, and what both hold. */
static struct {
	CUfileHandle_t fh;
	CUdeviceptr alloc;
	char *gpu, *file, *got;
	int fd;
} t;

static void fill(uint64_t seed)
{
	fake_fill(t.file, SIZE, &seed);
	assert_int_equal(pwrite(t.fd, t.file, SIZE, 0), SIZE);
}

static void begin(const char *json)
{
	if (json)
		fake_configure(json);
	t.fh = fake_register(fake_file("a", SIZE, 1), O_RDWR, &t.fd);
	assert_int_equal(cuMemAlloc(&t.alloc, SIZE + 64 * K), 0);
	t.gpu = (char *)(uintptr_t)t.alloc + SKIP;
	t.file = malloc(SIZE);
	t.got = malloc(SIZE);
	fill(7);
	assert_int_equal(cuFileBufRegister(t.gpu, SIZE, 0).err, 0);
}

static void end(void)
{
	assert_int_equal(cuFileBufDeregister(t.gpu).err, 0);
	cuFileHandleDeregister(t.fh);
	cuMemFree(t.alloc);
	close(t.fd);
	free(t.file);
	free(t.got);
}

static struct ogds_report last(void)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	assert_int_equal(ogds_last_io(&r), 0);
	return r;
}

/* Reads, and the memory is the file's; the report. */
static struct ogds_report reads(size_t size, off_t off)
{
	struct ogds_report r;
	ssize_t n;

	assert_int_equal(cuMemsetD8((CUdeviceptr)(uintptr_t)t.gpu, 0xee, SIZE), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	n = cuFileRead(t.fh, t.gpu, size, off, 0);
	r = last();
	assert_int_equal(n, size);
	cuMemcpyDtoH(t.got, (CUdeviceptr)(uintptr_t)t.gpu, SIZE);
	assert_memory_equal(t.got, t.file + off, size);
	return r;
}

static const char *planned(unsigned int *route)
{
	struct ogds_plan plan = OGDS_PLAN_INIT;

	assert_int_equal(ogds_explain(t.fh, t.gpu, SIZE, 0, &plan), 0);
	assert_int_equal(plan.error, 0);
	*route = plan.piece[0].route;
	return ogds_reason_id(plan.piece[0].reason);
}

/* nvfs first: it is quicker. Nobody asks for the pages then. */
static void t_after_nvfs(void **state)
{
	struct ogds_report r;

	begin(NULL);
	r = reads(SIZE, 0);
	assert_int_equal(r.bytes[OGDS_ROUTE_NVFS], SIZE);
	assert_int_equal(atomic_load(&fake.pages_asked), 0);
	end();
}

static void t_asked_for(void **state)
{
	static const size_t size[] = { 4 * K, 64 * K, 200 * K, SIZE };
	struct ogds_report r;
	unsigned int i, route;

	begin(ONLY);
	assert_string_equal(planned(&route), "R-ROUTE-DENIED");
	assert_int_equal(route, OGDS_ROUTE_P2PDMA);
	ogds_handle_set_strict(t.fh, true);
	for (i = 0; i < 4; i++) {
		r = reads(size[i], SIZE - size[i]);
		assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], size[i]);
		assert_int_equal(r.whole_direct, size[i]);
		assert_int_equal(r.witnessed, size[i]);
		assert_int_equal(r.retried, 0);
	}
	ogds_handle_set_strict(t.fh, false);
	/* edges go another way, whole blocks this one */
	assert_int_equal(cuFileRead(t.fh, t.gpu, 20 * K, 100, 100), 20 * K);
	r = last();
	assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], 16 * K);
	assert_int_equal(r.edge_bytes, 4 * K);
	cuMemcpyDtoH(t.got, (CUdeviceptr)(uintptr_t)t.gpu, SIZE);
	assert_memory_equal(t.got + 100, t.file + 100, 20 * K);

	cuMemcpyHtoD((CUdeviceptr)(uintptr_t)t.gpu, t.file + 4 * K, 64 * K);
	cuCtxSynchronize();
	assert_int_equal(cuFileWrite(t.fh, t.gpu, 64 * K, 128 * K, 0), 64 * K);
	r = last();
	assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], 64 * K);
	assert_int_equal(pread(t.fd, t.got, 64 * K, 128 * K), 64 * K);
	assert_memory_equal(t.got, t.file + 4 * K, 64 * K);
	assert_int_equal(atomic_load(&fake.pages_asked), 1);
	assert_int_equal(atomic_load(&fake.ios), 0);
	end();
}

/* What a CPU moved does not count as direct, whatever it was that made it do so. */
static void t_by_a_cpu(void **state)
{
	struct ogds_report r;

	begin(ONLY);
	atomic_store(&fake.cpu_pages, 1);
	r = reads(256 * K, 0);
	assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], 0);
	assert_int_equal(r.bytes[OGDS_ROUTE_BOUNCE], 256 * K);
	assert_int_equal(r.whole_direct, 0);
	assert_int_equal(r.witnessed, 0);
	assert_int_equal(r.retried, 256 * K);
	assert_string_equal(ogds_reason_id(r.reason), "R-FS-CPU");
	/* a hole behind 64 KiB */
	assert_int_equal(ftruncate(t.fd, 64 * K), 0);
	assert_int_equal(ftruncate(t.fd, 128 * K), 0);
	memset(t.file + 64 * K, 0, 64 * K);
	r = reads(128 * K, 0);
	assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], 64 * K);
	assert_int_equal(r.bytes[OGDS_ROUTE_BOUNCE], 64 * K);
	assert_int_equal(r.whole_direct, 64 * K);
	assert_string_equal(ogds_reason_id(r.reason), "R-HOLE");
	/* a file system that writes by CPU */
	atomic_store(&fake.cpu_pages, 1);
	assert_int_equal(cuFileWrite(t.fh, t.gpu, 64 * K, 0, 0), 64 * K);
	r = last();
	assert_int_equal(r.bytes[OGDS_ROUTE_BOUNCE], 64 * K);
	assert_string_equal(ogds_reason_id(r.reason), "R-FS-CPU");
	/* strict: then it fails */
	ogds_handle_set_strict(t.fh, true);
	assert_int_equal(cuFileRead(t.fh, t.gpu, 128 * K, 0, 0), 64 * K);
	assert_int_equal(cuFileRead(t.fh, t.gpu, 64 * K, 64 * K, 0), -1);
	assert_int_equal(errno, CU_FILE_IO_NOT_SUPPORTED);
	assert_string_equal(ogds_reason_id(last().reason), "R-HOLE");
	end();
}

/* The kernel's verdict on a device is learned once, told, and forgotten at the close. */
static void refused_with(int err)
{
	CUfileHandle_t other;
	struct ogds_report r;
	unsigned int route;
	unsigned long n;
	int fd;

	begin(ONLY);
	atomic_store(&fake.page_error, err);
	atomic_store(&fake.page_failures, 1);
	r = reads(128 * K, 0);
	assert_int_equal(r.bytes[OGDS_ROUTE_BOUNCE], 128 * K);
	assert_int_equal(r.retried, 128 * K);
	assert_string_equal(ogds_reason_id(r.reason), "R-PAGES-DEVICE");
	n = atomic_load(&fake.page_ios);
	r = reads(128 * K, 0);
	assert_int_equal(r.retried, 0);
	assert_string_equal(ogds_reason_id(r.reason), "R-PAGES-DEVICE");
	assert_string_equal(planned(&route), "R-PAGES-DEVICE");
	other = fake_register(fake_file("b", 64 * K, 2), O_RDWR, &fd);
	assert_int_equal(cuFileRead(other, t.gpu, 64 * K, 0, 0), 64 * K);
	assert_int_equal(atomic_load(&fake.page_ios), n);
	cuFileHandleDeregister(other);
	close(fd);
	end();
	cuFileDriverClose();
	begin(NULL);
	assert_int_equal(reads(128 * K, 0).bytes[OGDS_ROUTE_P2PDMA], 128 * K);
	end();
}

static void t_refused(void **state)
{
	refused_with(EREMOTEIO);
}

static void t_refused_by_driver(void **state)
{
	refused_with(EINVAL);
}

/* The next direct route does it, also under strict; another error is none of the device's. */
static void t_next_route(void **state)
{
	struct ogds_report r;
	unsigned int route;

	begin("{\"opengds\": {\"routes\": [\"p2pdma\", \"staged\"]}}");
	ogds_handle_set_strict(t.fh, true);
	atomic_store(&fake.page_error, EIO);
	atomic_store(&fake.page_failures, 1);
	assert_int_equal(cuFileRead(t.fh, t.gpu, 64 * K, 0, 0), -1);
	assert_int_equal(errno, EIO);
	planned(&route);
	assert_int_equal(route, OGDS_ROUTE_P2PDMA);
	atomic_store(&fake.page_error, EREMOTEIO);
	atomic_store(&fake.page_failures, 1);
	r = reads(128 * K, 0);
	assert_int_equal(r.bytes[OGDS_ROUTE_STAGED], 128 * K);
	assert_int_equal(r.whole_direct, 128 * K);
	assert_int_equal(r.retried, 128 * K);
	end();
}

/* The request that learns it is refused with the same error as all that come after it. */
static void t_strict_learns(void **state)
{
	int i;

	begin(ONLY);
	ogds_handle_set_strict(t.fh, true);
	atomic_store(&fake.page_error, EREMOTEIO);
	atomic_store(&fake.page_failures, 1);
	for (i = 0; i < 2; i++) {
		assert_int_equal(cuFileRead(t.fh, t.gpu, 64 * K, 0, 0), -1);
		assert_int_equal(errno, CU_FILE_IO_NOT_SUPPORTED);
		assert_string_equal(ogds_reason_id(last().reason), "R-PAGES-DEVICE");
	}
	assert_int_equal(atomic_load(&fake.page_failures), 0);
	end();
}

/* A file that the module refuses at run time goes by pages in the same request. */
static void t_module_refuses(void **state)
{
	struct ogds_report r;

	begin(NULL);
	ogds_handle_set_strict(t.fh, true);
	atomic_store(&fake.io_error, EOPNOTSUPP);
	atomic_store(&fake.io_failures, 1);
	r = reads(128 * K, 0);
	assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], 128 * K);
	assert_int_equal(r.retried, 128 * K);
	r = reads(128 * K, 0);
	assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], 128 * K);
	assert_int_equal(r.retried, 0);
	end();
}

/* md: nothing for the module, so pages by themselves; unless they are denied. */
static void t_md(void **state)
{
	unsigned int route;

	fake_md();
	begin(NULL);
	assert_string_equal(planned(&route), "R-STACKED");
	assert_int_equal(route, OGDS_ROUTE_P2PDMA);
	assert_int_equal(reads(SIZE, 0).bytes[OGDS_ROUTE_P2PDMA], SIZE);
	end();
	cuFileDriverClose();
	begin("{\"opengds\": {\"routes\": [\"nvfs\", \"staged\", \"bounce\"]}}");
	assert_string_equal(planned(&route), "R-STACKED");
	assert_int_equal(route, OGDS_ROUTE_BOUNCE);
	end();
}

/* Why there are none. */
static void t_none(void **state)
{
	static const struct {
		int err;
		const char *reason;
	} row[] = {
		{ ENODEV, "R-PAGES-KERNEL" }, { EOPNOTSUPP, "R-PAGES-MEMORY" },
		{ ENOMEM, "R-PAGES-MEMORY" },
	};
	struct ogds_report r;
	unsigned int i, route;

	for (i = 0; i < 3; i++) {
		begin(ONLY);
		atomic_store(&fake.no_pages, row[i].err);
		assert_string_equal(planned(&route), row[i].reason);
		assert_int_equal(route, OGDS_ROUTE_BOUNCE);
		r = reads(64 * K, 0);
		assert_string_equal(ogds_reason_id(r.reason), row[i].reason);
		assert_int_equal(r.retried, 0);
		end();
		cuFileDriverClose();
	}
	fake.no_feature = true;
	begin(ONLY);
	assert_string_equal(planned(&route), "R-PAGES-MODULE");
	end();
}

static void t_theirs(void **state)
{
	unsigned int route;

	fake_theirs();
	begin(ONLY);
	assert_string_equal(planned(&route), "R-PAGES-MODULE");
	end();
}

/* The end of the file inside the last block, and a file that was cut meanwhile. */
static void t_end_of_file(void **state)
{
	struct ogds_report r;

	begin(ONLY);
	assert_int_equal(ftruncate(t.fd, 64 * K + 700), 0);
	assert_int_equal(cuFileRead(t.fh, t.gpu, 128 * K, 0, 0), 64 * K + 700);
	r = last();
	assert_int_equal(r.bytes[OGDS_ROUTE_P2PDMA], 64 * K);
	assert_int_equal(r.edge_bytes, 700);
	cuMemcpyDtoH(t.got, (CUdeviceptr)(uintptr_t)t.gpu, SIZE);
	assert_memory_equal(t.got, t.file, 64 * K + 700);
	end();
}

/* One buffer, many threads: the pages are asked for once. */
static void *reader(void *arg)
{
	size_t at = (size_t)arg * 64 * K;
	unsigned int i;

	for (i = 0; i < 20; i++)
		if (cuFileRead(t.fh, t.gpu, 64 * K, at, at) != 64 * K ||
		    last().bytes[OGDS_ROUTE_P2PDMA] != 64 * K)
			return t.gpu;
	return NULL;
}

static void t_threads(void **state)
{
	pthread_t thread[4];
	void *bad;
	size_t i;

	begin(ONLY);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, reader, (void *)i), 0);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(atomic_load(&fake.pages_asked), 1);
	end();
}

/* Two registrations in one GPU page have pages of their own each, and go in any order. */
static void t_two_in_a_page(void **state)
{
	char *page, *at[2];
	unsigned int i;
	CUdeviceptr d;

	begin(ONLY);
	assert_int_equal(cuMemAlloc(&d, 128 * K), 0);
	page = (char *)(uintptr_t)((d + 64 * K - 1) & ~(CUdeviceptr)(64 * K - 1));
	for (i = 0; i < 2; i++) {
		at[i] = page + (1 + 2 * i) * 4 * K;
		assert_int_equal(cuFileBufRegister(at[i], 4 * K, 0).err, 0);
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(cuFileRead(t.fh, at[i % 2], 4 * K, i * 4 * K, 0), 4 * K);
		assert_int_equal(last().bytes[OGDS_ROUTE_P2PDMA], 4 * K);
		assert_int_equal(last().retried, 0);
		cuMemcpyDtoH(t.got, (CUdeviceptr)(uintptr_t)at[i % 2], 4 * K);
		assert_memory_equal(t.got, t.file + i * 4 * K, 4 * K);
	}
	assert_int_equal(cuFileBufDeregister(at[1]).err, 0);
	assert_int_equal(cuFileRead(t.fh, at[0], 4 * K, 0, 0), 4 * K);
	assert_int_equal(last().bytes[OGDS_ROUTE_P2PDMA], 4 * K);
	assert_int_equal(cuFileBufDeregister(at[0]).err, 0);
	cuMemFree(d);
	end();
}

#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(t_after_nvfs), T(t_asked_for), T(t_by_a_cpu), T(t_refused),
		T(t_refused_by_driver), T(t_next_route), T(t_strict_learns),
		T(t_module_refuses), T(t_md), T(t_none), T(t_theirs), T(t_end_of_file),
		T(t_threads), T(t_two_in_a_page),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
