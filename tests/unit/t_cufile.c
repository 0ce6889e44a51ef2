// SPDX-License-Identifier: MIT
/*
 * t_cufile.c - the library as a program sees it, on a machine of our own making (see
 * cufile_fake.h): every route, faults of the module, configuration.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#include "cufile_fake.h"
#include "gpu.h"
#include "opengds.h"
#include "os.h"

#define MIB (1024 * 1024)
#define FILE_BYTES (8 * MIB)
#define GUARD 65536

static void *gpu_alloc(size_t size)
{
	CUdeviceptr p;

	assert_int_equal(cuMemAlloc(&p, size), 0);
	return (void *)(uintptr_t)p;
}

static void gpu_free(void *p)
{
	assert_int_equal(cuMemFree((uintptr_t)p), 0);
}

static void gpu_put(void *dst, const void *src, size_t n)
{
	assert_int_equal(cuMemcpyHtoD((uintptr_t)dst, src, n), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
}

static void gpu_get(void *dst, const void *src, size_t n)
{
	assert_int_equal(cuMemcpyDtoH(dst, (uintptr_t)src, n), 0);
}

static struct ogds_report last(void)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	assert_int_equal(ogds_last_io(&r), 0);
	return r;
}

/* -- random requests against a model in memory -- */

struct model {
	CUfileHandle_t fh;
	int fd;
	char *file;	/* what the file holds */
	size_t size;
	char *gpu;	/* device memory, GUARD on both sides of the target */
	char *host;	/* what it holds */
	size_t gpu_size;
};

static void one_request(struct model *m, uint64_t *seed, bool direct)
{
	uint64_t r = fake_random(seed), bits = 1 + r % 21;
	size_t size = 1 + fake_random(seed) % (1u << bits), off, at, whole;
	bool write = r & 0x1000;
	struct ogds_report rep;
	ssize_t n, want;

	off = fake_random(seed) % m->size;
	if (r & 0x2000)
		off &= ~(size_t)4095;
	at = GUARD + fake_random(seed) % 70000;
	if (r & 0x4000)
		at = GUARD + off % 4096 + (at & ~(size_t)4095) - GUARD / 2;
	if (write && size > m->size - off)
		size = m->size - off;
	want = size < m->size - off ? size : m->size - off;

	fake_fill(m->host, m->gpu_size, seed);
	gpu_put(m->gpu, m->host, m->gpu_size);
	n = write ? cuFileWrite(m->fh, m->gpu, size, off, at) :
		    cuFileRead(m->fh, m->gpu, size, off, at);
	if (n != want)
		fail_msg("%s off %zu size %zu at %zu: %zd (errno %d), not %zd",
			 write ? "write" : "read", off, size, at, n, errno, want);
	if (write)
		memcpy(m->file + off, m->host + at, size);
	else
		memcpy(m->host + at, m->file + off, want);
	/* the memory is as the model says, also around the target */
	{
		char *got = malloc(m->gpu_size);

		gpu_get(got, m->gpu, m->gpu_size);
		assert_memory_equal(got, m->host, m->gpu_size);
		free(got);
	}
	rep = last();
	whole = off + want > (off + 4095) / 4096 * 4096 ?
			(off + want) / 4096 * 4096 - (off + 4095) / 4096 * 4096 : 0;
	assert_int_equal(rep.whole_bytes, (ssize_t)whole > 0 ? whole : 0);
	assert_int_equal(rep.whole_bytes + rep.edge_bytes, want);
	if (direct) {
		assert_int_equal(rep.whole_direct, rep.whole_bytes);
		assert_int_equal(rep.retried, 0);
	} else {
		assert_int_equal(rep.whole_direct, 0);
	}
}

static void file_is(const struct model *m)
{
	char *got = malloc(m->size);

	assert_int_equal(pread(m->fd, got, m->size, 0), m->size);
	assert_memory_equal(got, m->file, m->size);
	free(got);
}

static void random_requests(int flags, bool registered, bool direct, unsigned int n)
{
	uint64_t seed = 20261129 + flags + registered;
	struct model m = { .size = FILE_BYTES - 77, .gpu_size = 3 * MIB };
	const char *path = fake_file("data", m.size, seed);
	char *raw = gpu_alloc(m.gpu_size + 8192);
	unsigned int i;
	int fd;

	m.file = malloc(m.size);
	m.host = malloc(m.gpu_size);
	m.fh = fake_register(path, flags | O_RDWR, &fd);
	m.fd = open(path, O_RDONLY);
	assert_int_equal(pread(m.fd, m.file, m.size, 0), m.size);
	for (i = 0; i < n; i++) {
		/* other remainders of the buffer itself, modulo 4096 and 64 KiB */
		m.gpu = raw + (i / 50 % 4) * 512 * (i / 50 % 3);
		if (registered && i % 50 == 0)
			assert_int_equal(cuFileBufRegister(m.gpu, m.gpu_size, 0).err, 0);
		one_request(&m, &seed, direct);
		if (registered && i % 50 == 49)
			assert_int_equal(cuFileBufDeregister(m.gpu).err, 0);
		if (i % 25 == 0)
			file_is(&m);
	}
	file_is(&m);
	cuFileHandleDeregister(m.fh);
	assert_int_equal(cuFileDriverClose().err, 0);
	close(fd);
	close(m.fd);
	gpu_free(raw);
	free(m.file);
	free(m.host);
}

static void t_registered(void **state)
{
	random_requests(O_DIRECT, true, true, 200);
	assert_true(atomic_load(&fake.bytes) > 0);
}

static void t_registered_buffered_fd(void **state)
{
	random_requests(0, true, true, 100);
}

static void t_unregistered(void **state)
{
	random_requests(O_DIRECT, false, true, 200);
}

static void t_bounce(void **state)
{
	fake_configure("{\"properties\": {\"force_compat_mode\": true}}");
	random_requests(O_DIRECT, false, false, 100);
	assert_int_equal(atomic_load(&fake.ios), 0);
}

static void t_bounce_buffered_fd(void **state)
{
	fake_configure("{\"properties\": {\"force_compat_mode\": true}}");
	random_requests(0, true, false, 100);
}

/* -- large requests -- */

static void t_large(void **state)
{
	size_t size = 20 * MIB + 12345;
	const char *path = fake_file("large", size, 5);
	char *p = gpu_alloc(size + 4096), *want = malloc(size), *got = malloc(size);
	struct ogds_report rep;
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(path, O_RDWR, &fd);
	assert_int_equal(pread(fd, want, size, 0), size);
	/* more than a window, registered */
	assert_int_equal(cuFileBufRegister(p, size, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, size, 0, 0), size);
	gpu_get(got, p, size);
	assert_memory_equal(got, want, size);
	assert_int_equal(last().bytes[OGDS_ROUTE_NVFS], size / 4096 * 4096);
	assert_int_equal(cuFileBufDeregister(p).err, 0);
	/* large, aligned, unregistered: pinned for the one request */
	memset(got, 0, size);
	gpu_put(p, got, size);
	assert_int_equal(cuFileRead(fh, p, size, 0, 0), size);
	gpu_get(got, p, size);
	assert_memory_equal(got, want, size);
	rep = last();
	assert_int_equal(rep.bytes[OGDS_ROUTE_NVFS], size / 4096 * 4096);
	/* where it cannot be pinned it is staged, nobody is told a lie */
	atomic_store(&fake.map_error, 0);
	assert_int_equal(cuFileRead(fh, p + 1, size - 1, 0, 0), size - 1);
	gpu_get(got, p + 1, size - 1);
	assert_memory_equal(got, want, size - 1);
	assert_int_equal(last().bytes[OGDS_ROUTE_STAGED], size - 1);
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(p);
	free(want);
	free(got);
}

/* -- faults -- */

static void t_pin_refused(void **state)
{
	const char *path = fake_file("f", MIB, 1);
	char *p = gpu_alloc(MIB);
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(path, O_RDWR | O_DIRECT, &fd);
	atomic_store(&fake.map_error, ENOMEM);
	/* falling back is allowed: the buffer is registered, the requests bounce and say why */
	assert_int_equal(cuFileBufRegister(p, MIB, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_BOUNCE], MIB);
	assert_string_equal(ogds_reason_id(last().reason), "R-PIN-FAILED");
	assert_int_equal(last().retried, 0);
	/* strict refuses */
	assert_int_equal(ogds_handle_set_strict(fh, true), 0);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_IO_NOT_SUPPORTED);
	cuFileHandleDeregister(fh);
	cuFileDriverClose();
	/* and a library that is strict refuses the registration */
	setenv("OPENGDS_STRICT", "1", 1);
	assert_int_equal(cuFileBufRegister(p, MIB, 0).err, CU_FILE_GPU_MEMORY_PINNING_FAILED);
	unsetenv("OPENGDS_STRICT");
	close(fd);
	gpu_free(p);
}

static void t_request_fails(void **state)
{
	const char *path = fake_file("f", MIB, 2);
	char *p = gpu_alloc(MIB), *want = malloc(MIB), *got = malloc(MIB);
	struct ogds_report rep;
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(path, O_RDWR | O_DIRECT, &fd);
	assert_int_equal(cuFileBufRegister(p, MIB, 0).err, 0);
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, want, MIB, 0), MIB);
	/* the drive fails: once, another way, counted */
	atomic_store(&fake.io_error, EIO);
	atomic_store(&fake.io_failures, 1);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	rep = last();
	assert_int_equal(rep.bytes[OGDS_ROUTE_BOUNCE], MIB);
	assert_int_equal(rep.retried, MIB);
	assert_string_equal(ogds_reason_id(rep.reason), "R-DIRECT-FAILED");
	gpu_get(got, p, MIB);
	assert_memory_equal(got, want, MIB);
	/* the next one is direct again */
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_NVFS], MIB);
	/* strict: an error is an error */
	ogds_handle_set_strict(fh, true);
	atomic_store(&fake.io_failures, 1);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), -1);
	assert_int_equal(errno, EIO);
	ogds_handle_set_strict(fh, false);
	/* a full file system is not mended by another way */
	atomic_store(&fake.io_error, ENOSPC);
	atomic_store(&fake.io_failures, 1);
	assert_int_equal(cuFileWrite(fh, p, MIB, 0, 0), -1);
	assert_int_equal(errno, ENOSPC);
	/* the module refuses the file, and there are no pages: remembered */
	atomic_store(&fake.no_pages, EOPNOTSUPP);
	atomic_store(&fake.io_error, EOPNOTSUPP);
	atomic_store(&fake.io_failures, 1);
	assert_int_equal(cuFileWrite(fh, p, MIB, 0, 0), MIB);
	atomic_store(&fake.ios, 0);
	assert_int_equal(cuFileWrite(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(atomic_load(&fake.ios), 0);
	assert_string_equal(ogds_reason_id(last().reason), "R-MODULE-REFUSED");
	close(fd);
	gpu_free(p);
	free(want);
	free(got);
}

/* Buffer, handle and the file's bytes; the memory is poisoned. */
struct whole {
	CUfileHandle_t fh;
	char *gpu, *want, *got;
	size_t size;
	int fd;
};

static void whole_open(struct whole *w, const char *path, size_t size)
{
	w->size = size;
	w->fh = fake_register(path, O_RDWR | O_DIRECT, &w->fd);
	close(w->fd);
	w->fd = open(path, O_RDONLY);
	w->gpu = gpu_alloc(size);
	w->want = malloc(size);
	w->got = malloc(size);
	assert_int_equal(cuFileBufRegister(w->gpu, size, 0).err, 0);
}

/* Reads all of it over poison; the bytes are the file's. */
static struct ogds_report whole_read(struct whole *w)
{
	assert_int_equal(pread(w->fd, w->want, w->size, 0), w->size);
	memset(w->got, 0xa5, w->size);
	gpu_put(w->gpu, w->got, w->size);
	assert_int_equal(cuFileRead(w->fh, w->gpu, w->size, 0, 0), w->size);
	gpu_get(w->got, w->gpu, w->size);
	assert_memory_equal(w->got, w->want, w->size);
	return last();
}

static void whole_close(struct whole *w)
{
	assert_int_equal(cuFileBufDeregister(w->gpu).err, 0);
	cuFileHandleDeregister(w->fh);
	close(w->fd);
	gpu_free(w->gpu);
	free(w->want);
	free(w->got);
}

/* A file of 20 MiB with a hole of 64 KiB in its second MiB. */
static const char *holed(void)
{
	const char *path = fake_file("holed", 20 * MIB, 7);
	int fd = open(path, O_RDWR);

	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 65536), 0);
	close(fd);
	return path;
}

static void hole_is_read(struct whole *w)
{
	struct ogds_report rep = whole_read(w);

	/* the window with the hole by CPU, what is behind it direct again */
	assert_int_equal(rep.bytes[OGDS_ROUTE_BOUNCE], 16 * MIB);
	assert_int_equal(rep.bytes[OGDS_ROUTE_NVFS], 4 * MIB);
	assert_int_equal(rep.retried, 16 * MIB);
	assert_string_equal(ogds_reason_id(rep.reason), "R-HOLE");
}

static void t_hole(void **state)
{
	struct whole w;

	whole_open(&w, holed(), 20 * MIB);
	hole_is_read(&w);
	/* what the file system copies has another name */
	atomic_store(&fake.cpu_reads, 1);
	assert_int_equal(cuFileRead(w.fh, w.gpu, MIB, 4 * MIB, 0), MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_BOUNCE], MIB);
	assert_string_equal(ogds_reason_id(last().reason), "R-FS-CPU");
	/* strict refuses and says by which rule */
	ogds_handle_set_strict(w.fh, true);
	assert_int_equal(cuFileRead(w.fh, w.gpu, MIB, MIB, 0), -1);
	assert_int_equal(errno, CU_FILE_IO_NOT_SUPPORTED);
	assert_string_equal(ogds_reason_id(last().reason), "R-HOLE");
	assert_string_equal(ogds_reason_id(last().refused_by), "R-STRICT");
	whole_close(&w);
}

static off_t asked_from;
static size_t asked_size;

static int noted_hole(int fd, off_t off, size_t size)
{
	asked_from = off;
	asked_size = size;
	return os_real.hole(fd, off, size);
}

/* A drive reads whole blocks: so is a hole looked for; and the end of the file is none. */
static void t_hole_in_a_block(void **state)
{
	const char *path = fake_file("ends", 5 * 4096 + 1000, 7);
	const struct os_ops *old = os;
	static struct os_ops mine;
	struct whole w;
	int fd;

	/* staged reads take parts of blocks along */
	fake_configure("{\"opengds\": {\"routes\": [\"staged\", \"bounce\"]}}");
	whole_open(&w, path, 5 * 4096 + 1000);
	mine = *os;
	mine.hole = noted_hole;
	os = &mine;
	atomic_store(&fake.cpu_reads, 1);
	assert_int_equal(cuFileRead(w.fh, w.gpu, 4 * 4096, 500, 0), 4 * 4096);
	assert_string_equal(ogds_reason_id(last().reason), "R-FS-CPU");
	assert_int_equal(asked_from, 0);
	assert_int_equal(asked_size, 5 * 4096);
	atomic_store(&fake.cpu_reads, 1);
	assert_string_equal(ogds_reason_id(whole_read(&w).reason), "R-FS-CPU");
	assert_int_equal(asked_size, 6 * 4096);
	/* a hole that lies before the bytes asked for, in their first block */
	fd = open(path, O_RDWR);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	close(fd);
	assert_int_equal(cuFileRead(w.fh, w.gpu, 4 * 4096, 4000, 0), 4 * 4096);
	assert_string_equal(ogds_reason_id(last().reason), "R-HOLE");
	os = old;
	whole_close(&w);
}

/* The other module says that all went well where no drive moved a byte. */
static void t_other_module(void **state)
{
	struct ogds_report rep;
	struct whole w;

	fake_theirs();
	whole_open(&w, holed(), 20 * MIB);
	hole_is_read(&w);
	hole_is_read(&w);
	atomic_store(&fake.cpu_reads, 2);
	rep = whole_read(&w);
	assert_int_equal(rep.bytes[OGDS_ROUTE_BOUNCE], 20 * MIB);
	assert_int_equal(rep.witnessed, 0);
	atomic_store(&fake.died, 1);
	rep = whole_read(&w);
	assert_int_equal(rep.bytes[OGDS_ROUTE_BOUNCE], 20 * MIB);
	assert_string_equal(ogds_reason_id(rep.reason), "R-DIRECT-FAILED");
	/* a write that fails and returns 0 bytes */
	memset(w.got, 0x5a, MIB);
	gpu_put(w.gpu, w.got, MIB);
	atomic_store(&fake.lost_writes, 1);
	assert_int_equal(cuFileWrite(w.fh, w.gpu, MIB, 2 * MIB, 0), MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_BOUNCE], MIB);
	assert_int_equal(pread(w.fd, w.want, MIB, 2 * MIB), MIB);
	assert_memory_equal(w.want, w.got, MIB);
	whole_close(&w);
}

static void t_no_module(void **state)
{
	const char *path = fake_file("f", MIB, 2);
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	char *p = gpu_alloc(MIB);
	CUfileDrvProps_t props;
	CUfileHandle_t fh;
	int fd;

	atomic_store(&fake.no_node, EACCES);
	assert_int_equal(cuFileDriverOpen().err, 0);
	assert_int_equal(cuFileDriverGetProperties(&props).err, 0);
	assert_int_equal(props.nvfs.major_version, 0);
	fh = fake_register(path, O_RDWR, &fd);
	assert_int_equal(cuFileBufRegister(p, MIB, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_string_equal(ogds_reason_id(last().reason), "R-MODULE-ACCESS");
	cuFileDriverClose();
	/* falling back forbidden: the open says so */
	setenv("CUFILE_ALLOW_COMPAT_MODE", "false", 1);
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_PERMISSION_DENIED);
	assert_int_equal(cuFileUseCount(), 0);
	d.handle.fd = fd;
	assert_int_equal(cuFileHandleRegister(&fh, &d).err, CU_FILE_PERMISSION_DENIED);
	/* with the module it opens, and a file that cannot go direct is refused */
	atomic_store(&fake.no_node, 0);
	assert_int_equal(cuFileDriverOpen().err, 0);
	assert_int_equal(cuFileDriverGetProperties(&props).err, 0);
	assert_int_equal(props.nvfs.major_version, 2);
	assert_int_equal(props.nvfs.dstatusflags, 1 << CU_FILE_NVME_SUPPORTED);
	assert_int_equal(cuFileHandleRegister(&fh, &d).err, 0);
	unsetenv("CUFILE_ALLOW_COMPAT_MODE");
	close(fd);
	gpu_free(p);
}

/* A container with the first node of several: all requests go through it, direct. */
static void t_first_node_only(void **state)
{
	const char *path = fake_file("f", MIB, 2);
	char *p = gpu_alloc(MIB);
	CUfileHandle_t fh;
	int fd;

	fake.first_node_only = true;
	assert_int_equal(cuFileDriverOpen().err, 0);
	fh = fake_register(path, O_RDWR, &fd);
	assert_int_equal(cuFileBufRegister(p, MIB, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_NVFS], MIB);
	assert_int_equal(last().reason, 0);
	cuFileDriverClose();
	close(fd);
	gpu_free(p);
}

static void module_says(const char *version)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/root/proc/driver/nvidia-fs/version", fake.dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(version, f);
	fclose(f);
}

static int no_gpu(char *what, size_t len)
{
	snprintf(what, len, "cuInit Failed, error CUDA_ERROR_NO_DEVICE");
	return CUDA_ERROR_NO_DEVICE;
}

/* What an open can end with, each by its own code; falling back makes most of them fine. */
static void t_open_errors(void **state)
{
	struct gpu_ops none = gpu_cuda;
	CUfileError_t e;

	setenv("CUFILE_ALLOW_COMPAT_MODE", "false", 1);
	module_says("version: 3.0.1\n");
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_DRIVER_VERSION_MISMATCH);
	module_says("no version at all\n");
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_DRIVER_VERSION_READ_ERROR);
	module_says("version: 2.28.4\n");
	atomic_store(&fake.no_node, ENOENT);
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_NVFS_SETUP_ERROR);
	atomic_store(&fake.no_node, EACCES);
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_PERMISSION_DENIED);
	unsetenv("CUFILE_ALLOW_COMPAT_MODE");
	none.open = no_gpu;
	gpu = &none;
	e = cuFileDriverOpen();
	gpu = &gpu_cuda;
	assert_int_equal(e.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(e.cu_err, CUDA_ERROR_NO_DEVICE);
	assert_int_equal(cuFileUseCount(), 0);
	assert_int_equal(cuFileDriverOpen().err, 0);
}

static void facts_say(const char *fs, const char *options, const char *reason)
{
	struct ogds_plan plan = OGDS_PLAN_INIT;
	CUfileHandle_t fh;
	char *p;
	int fd;

	fake_end();
	fake_machine(fs, options, true);
	p = gpu_alloc(MIB);
	fh = fake_register(fake_file("f", MIB, 2), O_RDWR, &fd);
	assert_int_equal(ogds_explain(fh, p, MIB, 0, &plan), 0);
	assert_int_equal(plan.npieces, 1);
	if (reason) {
		assert_int_equal(plan.piece[0].route, OGDS_ROUTE_BOUNCE);
		assert_string_equal(ogds_reason_id(plan.piece[0].reason), reason);
		assert_int_equal(plan.whole_direct, 0);
	} else {
		assert_int_equal(plan.piece[0].route, OGDS_ROUTE_STAGED);
		assert_int_equal(plan.whole_direct, MIB);
	}
	cuFileDriverClose();
	close(fd);
	gpu_free(p);
}

static void t_file_facts(void **state)
{
	facts_say("ext4", "rw,data=journal", "R-FS-JOURNAL");
	facts_say("btrfs", "rw", "R-FS-TYPE");
	facts_say("xfs", "rw,attr2", NULL);
	facts_say("ext4", "rw", NULL);
}

static void t_limits(void **state)
{
	const char *path = fake_file("f", 4 * MIB, 2);
	char *p = gpu_alloc(4 * MIB);
	CUfileHandle_t fh;
	int fd;

	fake_configure("{\"properties\": {\"max_device_pinned_mem_size_kb\": 3072, "
		  "\"max_device_cache_size_kb\": 1024}}");
	fh = fake_register(path, O_RDWR, &fd);
	assert_int_equal(cuFileBufRegister(p, 4 * MIB, 0).err, CU_FILE_INVALID_MAPPING_SIZE);
	/* one slot of staging serves any size */
	assert_int_equal(cuFileRead(fh, p, 4 * MIB, 0, 0), 4 * MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_STAGED], 4 * MIB);
	cuFileDriverClose();
	/* no staging at all */
	fake_configure("{\"properties\": {\"max_device_cache_size_kb\": 0}}");
	fh = fake_register(path, O_RDWR, &fd);
	assert_int_equal(cuFileRead(fh, p, 4 * MIB, 0, 0), 4 * MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_BOUNCE], 4 * MIB);
	assert_string_equal(ogds_reason_id(last().reason), "R-NO-STAGING");
	gpu_free(p);
}

/*
 * Memory that was freed while registered: the old pages are nobody's. Small allocations
 * share a block of the simulated driver, so the next one gets the address back.
 */
static void t_stale_registration(void **state)
{
	const size_t size = MIB / 2;
	const char *path = fake_file("f", size, 3);
	char *keep = gpu_alloc(4096), *p = gpu_alloc(size), *want = malloc(size);
	char *got = malloc(size);
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(path, O_RDWR, &fd);
	assert_int_equal(pread(fd, want, size, 0), size);
	assert_int_equal(cuFileBufRegister(p, size, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, size, 0, 0), size);
	assert_int_equal(last().bytes[OGDS_ROUTE_NVFS], size);
	gpu_free(p);
	assert_ptr_equal(gpu_alloc(size), p);
	assert_int_equal(cuFileRead(fh, p, size, 0, 0), size);
	assert_int_equal(last().bytes[OGDS_ROUTE_STAGED], size);
	gpu_get(got, p, size);
	assert_memory_equal(got, want, size);
	/* registering it again is no error: the old registration makes room */
	assert_int_equal(cuFileBufRegister(p, size, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, size, 0, 0), size);
	assert_int_equal(last().bytes[OGDS_ROUTE_NVFS], size);
	assert_int_equal(cuFileBufDeregister(p).err, 0);
	/* a smaller one bounds no request for what is there now */
	assert_int_equal(cuFileBufRegister(p, 65536, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, size, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_INVALID_MAPPING_RANGE);
	gpu_free(p);
	assert_ptr_equal(gpu_alloc(size), p);
	assert_int_equal(cuFileRead(fh, p, size, 0, 0), size);
	gpu_get(got, p, size);
	assert_memory_equal(got, want, size);
	gpu_free(p);
	gpu_free(keep);
	close(fd);
	free(want);
	free(got);
}

/*
 * Memory of no context and without an IPC handle, as cuMemCreate and pools give (a real driver says
 * so of both): it is the device's, and goes each way that other memory goes.
 */
static const struct gpu_ops *whole_gpu;

static int pointer_of_no_context(const void *ptr, struct gpu_ptr *out)
{
	int r = whole_gpu->pointer(ptr, out);

	out->ctx = NULL;
	return r;
}

static int no_handle(void *ctx, uint64_t va, unsigned char out[64])
{
	return CUDA_ERROR_INVALID_VALUE;
}

static void no_context(const char *path, bool registered, int flags, enum ogds_route want)
{
	char *p = gpu_alloc(MIB), *file = malloc(MIB), *got = malloc(MIB);
	int fd, plain = open(path, O_RDONLY);
	CUfileHandle_t fh;

	fh = fake_register(path, O_RDWR | flags, &fd);
	if (registered)
		assert_int_equal(cuFileBufRegister(p, MIB, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(last().bytes[want], MIB);
	assert_int_equal(pread(plain, file, MIB, 0), MIB);
	gpu_get(got, p, MIB);
	assert_memory_equal(got, file, MIB);
	/* what is no whole block, and the way back */
	assert_int_equal(cuFileRead(fh, p, 5000, 1234, 77), 5000);
	gpu_get(got, p, MIB);
	assert_memory_equal(got + 77, file + 1234, 5000);
	assert_int_equal(cuFileWrite(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(last().bytes[want], MIB);
	assert_int_equal(pread(plain, file, MIB, 0), MIB);
	assert_memory_equal(got, file, MIB);
	if (registered)
		assert_int_equal(cuFileBufDeregister(p).err, 0);
	cuFileHandleDeregister(fh);
	close(fd);
	close(plain);
	gpu_free(p);
	free(file);
	free(got);
}

static void t_no_context(void **state)
{
	const char *path = fake_file("f", MIB, 1);
	struct gpu_ops ops = *gpu;

	whole_gpu = gpu;
	ops.pointer = pointer_of_no_context;
	ops.ipc = no_handle;
	gpu = &ops;
	no_context(path, true, O_DIRECT, OGDS_ROUTE_NVFS);
	no_context(path, false, O_DIRECT, OGDS_ROUTE_STAGED);
	cuFileDriverClose();
	fake_configure("{\"opengds\": {\"routes\": [\"bar\", \"bounce\", \"host\"]}}");
	no_context(path, true, O_DIRECT, OGDS_ROUTE_BOUNCE);
	no_context(path, false, 0, OGDS_ROUTE_BOUNCE);
	cuFileDriverClose();
	gpu = whole_gpu;
}

/* One extent of the file, pieces of memory of every kind. */
static void t_vector(void **state)
{
	const size_t size = MIB;
	const char *path = fake_file("f", size, 11);
	char *a = gpu_alloc(size), *b = gpu_alloc(size), *want = malloc(size);
	char *got = malloc(size), *host = malloc(size);
	CUfileIOVec_t iov[5] = {
		{ a, 8192 }, { host, 1000 }, { NULL, 0 }, { b + 3, 300000 }, { a + 65536, 600000 },
	};
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(path, O_RDWR, &fd);
	assert_int_equal(pread(fd, want, size, 0), size);
	assert_int_equal(cuFileBufRegister(a, size, 0).err, 0);
	assert_int_equal(cuFileReadv(fh, iov, 5, 4096, 0), 909192);
	gpu_get(got, a, 8192);
	assert_memory_equal(got, want + 4096, 8192);
	assert_memory_equal(host, want + 12288, 1000);
	gpu_get(got, b + 3, 300000);
	assert_memory_equal(got, want + 13288, 300000);
	gpu_get(got, a + 65536, 600000);
	assert_memory_equal(got, want + 313288, 600000);
	/* one report for all pieces */
	assert_int_equal(last().result, 909192);
	assert_int_equal(last().bytes[OGDS_ROUTE_HOST], 1000);
	assert_int_equal(last().bytes[OGDS_ROUTE_NVFS], 8192);
	/* the end of the file ends it, wherever that is in the list */
	assert_int_equal(cuFileReadv(fh, iov, 5, size - 8500, 0), 8500);
	assert_int_equal(cuFileReadv(fh, iov, 5, size, 0), 0);
	/* and back */
	memset(host, 0x5a, 1000);
	assert_int_equal(cuFileWritev(fh, iov + 1, 1, 100, 0), 1000);
	assert_int_equal(pread(fd, got, 1000, 100), 1000);
	assert_memory_equal(got, host, 1000);
	assert_int_equal(cuFileReadv(fh, iov, 0, 0, 0), 0);
	assert_int_equal(cuFileReadv(fh, iov, 5, 0, 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(cuFileReadv(fh, NULL, 5, 0, 0), -1);
	assert_int_equal(cuFileReadv(NULL, iov, 5, 0, 0), -1);
	iov[0].base = NULL;
	assert_int_equal(cuFileReadv(fh, iov, 5, 0, 0), -1);
	assert_int_equal(errno, EINVAL);
	cuFileHandleDeregister(fh);
	assert_int_equal(cuFileReadv(fh, iov, 5, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_HANDLE_NOT_REGISTERED);
	close(fd);
	gpu_free(b);
	gpu_free(a);
	free(want);
	free(got);
	free(host);
}

/* A child has no use of its parent's library, says so, and disturbs nothing. */
static void t_fork(void **state)
{
	const char *path = fake_file("f", MIB, 2);
	char *p = gpu_alloc(MIB);
	CUfileHandle_t fh;
	int fd, status;
	pid_t pid;

	fh = fake_register(path, O_RDWR, &fd);
	assert_int_equal(cuFileBufRegister(p, MIB, 0).err, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int bad = cuFileRead(fh, p, MIB, 0, 0) != -1;

		bad |= cuFileDriverOpen().err != CU_FILE_DRIVER_NOT_INITIALIZED;
		bad |= cuFileDriverClose().err != CU_FILE_DRIVER_NOT_INITIALIZED;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(last().bytes[OGDS_ROUTE_NVFS], MIB);
	cuFileHandleDeregister(fh);
	assert_int_equal(cuFileBufDeregister(p).err, 0);
	close(fd);
	gpu_free(p);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		T(t_registered),   T(t_registered_buffered_fd), T(t_unregistered),
		T(t_bounce),	   T(t_bounce_buffered_fd),	T(t_large),
		T(t_pin_refused),  T(t_request_fails),		T(t_no_module),	T(t_open_errors),
		T(t_first_node_only),
		T(t_file_facts),   T(t_limits),			T(t_stale_registration),
		T(t_no_context),	T(t_vector),	   T(t_fork),			T(t_hole),
		T(t_hole_in_a_block),	T(t_other_module),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
