// SPDX-License-Identifier: MIT
/*
 * t_peers.c - a GPU driver that pins for nvidia-fs only what this process lists, as on GeForce: on
 * the driver of rm_fake.h. Fails when a request does not go direct although it could, when a pin
 * is asked for by an entry of memory that was freed, when a refusal of the driver is not the end
 * of it for the process, or when an entry, a name or a pin stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "opengds.h"
#include "rm_fake.h"
#include "t_descriptors.h"

#define MIB ((size_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)

static int setup(void **state)
{
	fake_machine("ext4", "rw,data=ordered", true);
	rm_fake_begin(16 * GIB);
	rm_fake_geforce();
	return 0;
}

static int teardown(void **state)
{
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	rm_fake_check();
	fake_check();
	fake_end();
	return 0;
}

static struct ogds_report last(void)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	assert_int_equal(ogds_last_io(&r), 0);
	return r;
}

/* A read of all of it, by this route; every byte is compared. */
static void read_by(CUfileHandle_t fh, int fd, char *p, size_t size, enum ogds_route route)
{
	char *want = malloc(size), *got = malloc(size);

	fake_gpu_set(p, 0xee, size);
	assert_int_equal(cuFileRead(fh, p, size, 0, 0), size);
	assert_int_equal(last().bytes[route], size);
	assert_int_equal(pread(fd, want, size, 0), size);
	assert_int_equal(cuMemcpyDtoH(got, (uintptr_t)p, size), 0);
	assert_memory_equal(got, want, size);
	free(want);
	free(got);
}

static unsigned long listed(void)
{
	return atomic_load(&rm_fake.listed);
}

/* Registered: direct. The way is found once; then nobody asks for a pin that is refused. */
static void t_listed(void **state)
{
	char *p = fake_gpu(4 * MIB), *q = fake_gpu(4 * MIB), *tail = q + MIB;
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(fake_file("f", MIB, 1), O_RDWR, &fd);
	OK(cuFileBufRegister(p, 2 * MIB, 0));
	assert_int_equal(atomic_load(&rm_fake.pins), 2);
	assert_int_equal(listed(), 1);
	read_by(fh, fd, p, MIB, OGDS_ROUTE_NVFS);
	/* two ranges of one allocation are one entry */
	OK(cuFileBufRegister(q, 65536, 0));
	OK(cuFileBufRegister(tail, MIB, 0));
	assert_int_equal(atomic_load(&rm_fake.pins), 4);
	assert_int_equal(listed(), 2);
	read_by(fh, fd, tail, MIB, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(q));
	assert_int_equal(listed(), 2);
	OK(cuFileBufDeregister(tail));
	assert_int_equal(listed(), 1);
	assert_int_equal(atomic_load(&rm_fake.dups), 1);
	OK(cuFileBufDeregister(p));
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	/* once more, in the same open */
	OK(cuFileBufRegister(p, 4 * MIB, 0));
	read_by(fh, fd, p, MIB, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(p));
	fake_gpu_free(p);
	fake_gpu_free(q);
	close(fd);
}

/* Unregistered memory goes by way of staging, which is memory of the library's and listed, too. */
static void t_staged(void **state)
{
	char *p = fake_gpu(MIB);
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(fake_file("f", MIB, 2), O_RDWR, &fd);
	read_by(fh, fd, p, MIB, OGDS_ROUTE_STAGED);
	assert_true(listed() > 0);
	cuFileDriverClose();
	assert_int_equal(listed(), 0);
	fake_gpu_free(p);
	close(fd);
}

/* Another part of an object that small allocations share: its entry is there already. */
static void t_shared(void **state)
{
	char *p = fake_gpu(4096), *q = fake_gpu(98304), *r = fake_gpu(300000);
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(fake_file("f", 65536, 3), O_RDWR, &fd);
	OK(cuFileBufRegister(p, 4096, 0));
	OK(cuFileBufRegister(q, 98304, 0));
	assert_int_equal(listed(), 1);
	/* freed while registered: others of the object live */
	fake_gpu_free(q);
	OK(cuFileBufRegister(r, 300000, 0));
	assert_int_equal(listed(), 1);
	assert_int_equal(atomic_load(&rm_fake.dups), 1);
	read_by(fh, fd, r, 65536, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(p));
	OK(cuFileBufDeregister(q));
	assert_int_equal(listed(), 1);
	OK(cuFileBufDeregister(r));
	fake_gpu_free(p);
	fake_gpu_free(r);
	close(fd);
}

/* An object that is freed, and memory at its address again. */
static char *again(char *p, size_t size)
{
	char *other[64];
	int n = 0;

	fake_gpu_free(p);
	while (n < 64 && (other[n] = fake_gpu(size)) != p)
		n++;
	assert_true(n < 64);
	while (n)
		fake_gpu_free(other[--n]);
	return p;
}

/*
 * Other memory comes to the address of what is registered: the entry would lead to the old memory,
 * and the driver takes no second one. other() puts it there, and returns where.
 */
static void other_memory(char *p, char *(*other)(char *p, size_t size))
{
	const size_t size = 2 * MIB;
	CUfileHandle_t fh;
	int fd, i;

	fh = fake_register(fake_file("f", size, 3), O_RDWR, &fd);
	OK(cuFileBufRegister(p, size / 2, 0));
	for (i = 0; i < 3; i++) {
		assert_ptr_equal(other(p, size), p);
		/* another part of it: the old registration is still there */
		OK(cuFileBufRegister(p + 65536 * (i + 1), size - 65536 * (i + 1), 0));
		assert_int_equal(listed(), 1);
		assert_int_equal(atomic_load(&rm_fake.dups), i + 2);
	}
	OK(cuFileBufRegister(p, size, 0));
	read_by(fh, fd, p, size, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(p));
	for (i = 0; i < 3; i++)
		OK(cuFileBufDeregister(p + 65536 * (i + 1)));
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	close(fd);
}

/* Freed while it was registered, and the address given out again. */
static void t_reused(void **state)
{
	char *p = fake_gpu(2 * MIB);

	other_memory(p, again);
	fake_gpu_free(p);
}

/* Memory of cuMemCreate has no IPC handle: it is listed by a descriptor. */
static void t_exported(void **state)
{
	char *p = fake_vmm(4 * MIB, FAKE_FD), *tail = p + MIB;
	CUfileHandle_t fh;
	unsigned int open;
	int fd;

	fh = fake_register(fake_file("f", 2 * MIB, 8), O_RDWR, &fd);
	OK(cuFileBufRegister(p, 65536, 0));
	open = t_descriptors();
	OK(cuFileBufDeregister(p));
	OK(cuFileBufRegister(p, 65536, 0));
	assert_int_equal(t_descriptors(), open);
	OK(cuFileBufRegister(tail, 3 * MIB, 0));
	/* one entry, of one name */
	assert_int_equal(listed(), 1);
	assert_int_equal(atomic_load(&rm_fake.imports), 2);
	read_by(fh, fd, tail, 2 * MIB, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(p));
	assert_int_equal(listed(), 1);
	OK(cuFileBufDeregister(tail));
	assert_int_equal(listed(), 0);
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	OK(cuFileBufRegister(p, 4 * MIB, 0));
	read_by(fh, fd, p, 2 * MIB, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(p));
	fake_vmm_free(p, 4 * MIB);
	close(fd);
}

static char *mapped_again(char *p, size_t size)
{
	assert_int_equal(cuMemUnmap((uintptr_t)p, size), 0);
	fake_vmm_map((uintptr_t)p, size, FAKE_FD);
	return p;
}

/* Unmapped while it was registered, and other memory mapped at its address. */
static void t_exported_again(void **state)
{
	char *p = fake_vmm(2 * MIB, FAKE_FD);

	other_memory(p, mapped_again);
	fake_vmm_free(p, 2 * MIB);
}

/* Several pieces in one reservation, with a hole: each is listed by itself, and no more than it. */
static void t_exported_several(void **state)
{
	const size_t size = 2 * MIB;
	CUfileHandle_t fh;
	CUdeviceptr va;
	char *p;
	int fd;

	assert_int_equal(cuMemAddressReserve(&va, 3 * size, 0, 0, 0), 0);
	fake_vmm_map(va, size, FAKE_FD);
	fake_vmm_map(va + size, size, FAKE_FD);
	p = (char *)(uintptr_t)va;
	fh = fake_register(fake_file("f", size, 12), O_RDWR, &fd);
	OK(cuFileBufRegister(p, 2 * size, 0));
	assert_int_equal(listed(), 0);
	read_by(fh, fd, p, size, OGDS_ROUTE_STAGED);
	OK(cuFileBufDeregister(p));
	/* the way is there, for what is one piece; staging has an entry of its own */
	OK(cuFileBufRegister(p, size, 0));
	OK(cuFileBufRegister(p + size, size, 0));
	assert_int_equal(atomic_load(&rm_fake.imports), 2);
	read_by(fh, fd, p, size, OGDS_ROUTE_NVFS);
	read_by(fh, fd, p + size, size, OGDS_ROUTE_NVFS);
	/* the second one is replaced: it alone is listed anew */
	assert_int_equal(cuMemUnmap(va + size, size), 0);
	fake_vmm_map(va + size, size, FAKE_FD);
	OK(cuFileBufRegister(p + size, size, 0));
	assert_int_equal(atomic_load(&rm_fake.imports), 3);
	read_by(fh, fd, p + size, size, OGDS_ROUTE_NVFS);
	read_by(fh, fd, p, size, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(p));
	OK(cuFileBufDeregister(p + size));
	cuFileDriverClose();
	assert_int_equal(cuMemUnmap(va, size), 0);
	assert_int_equal(cuMemUnmap(va + size, size), 0);
	assert_int_equal(cuMemAddressFree(va, 3 * size), 0);
	close(fd);
}

/*
 * What cannot be listed is that memory's own affair: it goes by way of staging, and other memory
 * goes direct as before.
 */
static void not_listed(CUfileHandle_t fh, int fd, char *p)
{
	char *q = fake_gpu(MIB);

	OK(cuFileBufRegister(p, MIB, 0));
	read_by(fh, fd, p, MIB, OGDS_ROUTE_STAGED);
	OK(cuFileBufDeregister(p));
	OK(cuFileBufRegister(q, MIB, 0));
	read_by(fh, fd, q, MIB, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(q));
	fake_gpu_free(q);
}

static void t_not_exported(void **state)
{
	char *none = fake_vmm(2 * MIB, 0), *p = fake_vmm(2 * MIB, FAKE_FD);
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(fake_file("f", MIB, 10), O_RDWR, &fd);
	/* made without a type of handle */
	not_listed(fh, fd, none);
	/* several objects of the driver; memory of the host's */
	atomic_store(&rm_fake.objects, 2);
	not_listed(fh, fd, p);
	assert_true(atomic_load(&rm_fake.imports) >= 2);
	atomic_store(&rm_fake.objects, 1);
	atomic_store(&rm_fake.type, 2);
	not_listed(fh, fd, p);
	atomic_store(&rm_fake.type, 0);
	OK(cuFileBufRegister(p, MIB, 0));
	read_by(fh, fd, p, MIB, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(p));
	fake_vmm_free(none, 2 * MIB);
	fake_vmm_free(p, 2 * MIB);
	close(fd);
}

/* -- freed by another thread, while the pin is asked for -- */

static char *raced;

static void free_and_reuse(void)
{
	if (!raced)
		return;
	fake_gpu_free(raced);
	assert_ptr_equal(fake_gpu(MIB / 2), raced);
	raced = NULL;
}

static void t_freed_at_the_pin(void **state)
{
	char *keep = fake_gpu(4096), *first = fake_gpu(MIB), *p = fake_gpu(MIB / 2);
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(fake_file("f", MIB / 2, 4), O_RDWR, &fd);
	OK(cuFileBufRegister(first, MIB, 0));
	raced = p;
	rm_fake.at_pin = free_and_reuse;
	OK(cuFileBufRegister(p, MIB / 2, 0));
	rm_fake.at_pin = NULL;
	assert_null(raced);
	/* the pin may have been of memory that is nobody's, and was given back */
	assert_int_equal(listed(), 1);
	assert_int_equal(atomic_load(&fake.maps) - atomic_load(&fake.unmaps), 1);
	read_by(fh, fd, p, MIB / 2, OGDS_ROUTE_STAGED);
	OK(cuFileBufDeregister(p));
	OK(cuFileBufRegister(p, MIB / 2, 0));
	read_by(fh, fd, p, MIB / 2, OGDS_ROUTE_NVFS);
	OK(cuFileBufDeregister(p));
	OK(cuFileBufDeregister(first));
	fake_gpu_free(p);
	fake_gpu_free(first);
	fake_gpu_free(keep);
	close(fd);
}

/* -- what the driver may refuse -- */

static void refused(char *p, const int *steps, unsigned int nsteps)
{
	unsigned int i, k;
	CUfileHandle_t fh;
	unsigned long n;
	int fd;

	for (i = 0; i < nsteps; i++)
		for (k = 0; k < 2; k++) {
			fh = fake_register(fake_file("f", MIB, 5), O_RDWR, &fd);
			atomic_store(&rm_fake.fail, steps[i]);
			rm_fake.result = k ? -EPERM : 0x56;
			OK(cuFileBufRegister(p, MIB, 0));
			/* it may work from now on, and is not tried again in this open */
			atomic_store(&rm_fake.fail, 0);
			n = atomic_load(&rm_fake.pins);
			OK(cuFileBufDeregister(p));
			OK(cuFileBufRegister(p, MIB, 0));
			assert_int_equal(atomic_load(&rm_fake.pins), n + 1);
			assert_int_equal(listed(), 0);
			assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
			assert_int_equal(last().whole_direct, 0);
			assert_string_equal(ogds_reason_id(last().reason), "R-PIN-GATED");
			OK(cuFileBufDeregister(p));
			cuFileHandleDeregister(fh);
			close(fd);
			cuFileDriverClose();
			rm_fake_check();
		}
}

static void t_refused(void **state)
{
	static const int steps[] = { RM_OPEN_CONTROL, RM_CLIENT, RM_PROBED, RM_PCI, RM_ATTACH,
				     RM_ID, RM_DEVICE, RM_SUBDEVICE, RM_DUP, RM_PEERS, RM_VA_SPACE,
				     RM_JOIN, RM_LIST };
	static const int exported[] = { RM_CLIENT, RM_PEERS, RM_IMPORT, RM_IMPORT_END, RM_LIST };
	char *p = fake_gpu(MIB), *q = fake_vmm(2 * MIB, FAKE_FD);

	refused(p, steps, sizeof(steps) / sizeof(*steps));
	refused(q, exported, sizeof(exported) / sizeof(*exported));
	fake_gpu_free(p);
	fake_vmm_free(q, 2 * MIB);
}

/* An entry that cannot be taken off is the end of it: what is pinned stays right. */
static void t_not_taken_off(void **state)
{
	char *p = fake_gpu(2 * MIB), *q = fake_gpu(2 * MIB);
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(fake_file("f", MIB, 6), O_RDWR, &fd);
	OK(cuFileBufRegister(p, MIB, 0));
	OK(cuFileBufRegister(q, MIB, 0));
	atomic_store(&rm_fake.fail, RM_UNLIST);
	rm_fake.result = 0x57;
	OK(cuFileBufDeregister(p));
	atomic_store(&rm_fake.fail, 0);
	read_by(fh, fd, q, MIB, OGDS_ROUTE_NVFS);
	OK(cuFileBufRegister(p, MIB, 0));
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_string_equal(ogds_reason_id(last().reason), "R-PIN-GATED");
	OK(cuFileBufDeregister(p));
	OK(cuFileBufDeregister(q));
	assert_int_equal(listed(), 0);
	fake_gpu_free(p);
	fake_gpu_free(q);
	close(fd);
}

static bool never_pins(uint64_t va, size_t size)
{
	atomic_fetch_add(&rm_fake.pins, 1);
	return false;
}

/* A driver that refuses all the same: one try, and the process has its answer. */
static void t_of_no_use(void **state)
{
	char *p = fake_gpu(MIB), *q = fake_gpu(MIB);

	fake.pins = never_pins;
	OK(cuFileBufRegister(p, MIB, 0));
	assert_int_equal(atomic_load(&rm_fake.pins), 2);
	assert_int_equal(listed(), 0);
	OK(cuFileBufRegister(q, MIB, 0));
	assert_int_equal(atomic_load(&rm_fake.pins), 3);
	OK(cuFileBufDeregister(p));
	OK(cuFileBufDeregister(q));
	fake_gpu_free(p);
	fake_gpu_free(q);
}

/* Switched off: the driver is not asked for anything. */
static void t_switched_off(void **state)
{
	char *p = fake_gpu(MIB);
	CUfileHandle_t fh;
	int fd;

	fake_configure("{ \"opengds\": { \"register_peers\": false, \"routes\": "
		       "[\"nvfs\", \"staged\", \"bounce\", \"host\"] } }");
	fh = fake_register(fake_file("f", MIB, 7), O_RDWR, &fd);
	OK(cuFileBufRegister(p, MIB, 0));
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_BOUNCE], MIB);
	assert_string_equal(ogds_reason_id(last().reason), "R-PIN-GATED");
	/* staging was found to be no way either: nothing was tried and failed */
	assert_int_equal(last().retried, 0);
	assert_int_equal(atomic_load(&rm_fake.clients), 0);
	OK(cuFileBufDeregister(p));
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_BOUNCE], MIB);
	assert_string_equal(ogds_reason_id(last().reason), "R-PIN-GATED");
	assert_int_equal(last().retried, 0);
	fake_gpu_free(p);
	close(fd);
}

/* A driver that pins by itself is not asked for anything else. */
static void t_not_needed(void **state)
{
	char *p = fake_gpu(MIB);

	fake.pins = NULL;
	fake_configure("{ \"opengds\": { \"routes\": [\"nvfs\", \"bounce\", \"host\"] } }");
	OK(cuFileBufRegister(p, MIB, 0));
	assert_int_equal(atomic_load(&rm_fake.clients), 0);
	OK(cuFileBufDeregister(p));
	fake_gpu_free(p);
}

static void *registers(void *arg)
{
	char *p = arg;
	int i;

	cuCtxSetCurrent(fake_ctx);
	for (i = 0; i < 20; i++) {
		OK(cuFileBufRegister(p, 65536, 0));
		OK(cuFileBufDeregister(p));
	}
	return NULL;
}

/* Parts of one allocation and of several, by many threads at once. */
static void t_threads(void **state)
{
	pthread_t t[8];
	char *p[3];
	int i;

	for (i = 0; i < 2; i++)
		p[i] = fake_gpu(MIB);
	p[2] = fake_vmm(2 * MIB, FAKE_FD);
	OK(cuFileDriverOpen());
	for (i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, registers, p[i % 3] + 65536 * i), 0);
	for (i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(listed(), 0);
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	for (i = 0; i < 2; i++)
		fake_gpu_free(p[i]);
	fake_vmm_free(p[2], 2 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(t_listed, setup, teardown),
		cmocka_unit_test_setup_teardown(t_staged, setup, teardown),
		cmocka_unit_test_setup_teardown(t_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(t_reused, setup, teardown),
		cmocka_unit_test_setup_teardown(t_exported, setup, teardown),
		cmocka_unit_test_setup_teardown(t_exported_several, setup, teardown),
		cmocka_unit_test_setup_teardown(t_exported_again, setup, teardown),
		cmocka_unit_test_setup_teardown(t_not_exported, setup, teardown),
		cmocka_unit_test_setup_teardown(t_freed_at_the_pin, setup, teardown),
		cmocka_unit_test_setup_teardown(t_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(t_not_taken_off, setup, teardown),
		cmocka_unit_test_setup_teardown(t_of_no_use, setup, teardown),
		cmocka_unit_test_setup_teardown(t_switched_off, setup, teardown),
		cmocka_unit_test_setup_teardown(t_not_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(t_threads, setup, teardown),
	};

	alarm(200);	/* what a failed test leaves behind may be waited for for ever */
	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
