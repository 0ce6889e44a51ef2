// SPDX-License-Identifier: MIT
/*
 * t_user_fs.c - files of a user-space file system, as a client of cuFile gives it: every call
 * of its table, short counts, each kind of error, every kind of memory and every kind of
 * request. Fails when a byte is wrong, a function gets other arguments than documented, an
 * error is told as another, or a function is called for a handle that is deregistered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "opengds.h"

#define MIB (1024 * 1024)
#define SIZE (2 * MIB + 777)
#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)

/* -- the file system: one file in memory -- */

enum fault {
	NONE,
	MINUS_ERRNO,
	MINUS_ONE,
	MINUS_ONE_ALONE,
	CUFILE_ERROR,
	TOO_MUCH,
	NONSENSE,
	ZERO
};

/* lock guards data and size; what the test sets is set while no request runs. */
static struct ufs {
	pthread_mutex_t lock;
	char data[2 * SIZE];
	size_t size, room;	/* room: a write beyond it is -ENOSPC */
	size_t step;		/* a call moves this at most */
	int interrupted;	/* so many calls end with -EINTR first */
	enum fault fault;
	off_t fault_at;		/* calls from this offset on have it */
	int delay_us;
	atomic_ulong reads, writes, types, lists, priorities, inside, wrong;
	atomic_bool gone;	/* nobody may call any more */
} ufs = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void expect(bool yes, const char *what)
{
	if (yes)
		return;
	fprintf(stderr, "user-space file system: %s\n", what);
	atomic_fetch_add(&ufs.wrong, 1);
}

static void check_call(const void *handle, const cufileRDMAInfo_t *rdma)
{
	expect(handle == &ufs, "another handle than was registered");
	expect(!atomic_load(&ufs.gone), "called for a handle that is deregistered");
	expect(rdma && !rdma->desc_len && rdma->desc_str && !rdma->desc_str[0],
	       "RDMA info that says something");
}

/* 1: the call has a fault, and its result is *r */
static int faulty(off_t off, size_t size, ssize_t *r)
{
	if (ufs.interrupted > 0) {
		ufs.interrupted--;
		*r = -EINTR;
		return 1;
	}
	if (off < ufs.fault_at)
		return 0;
	switch (ufs.fault) {
	case NONE:
		return 0;
	case MINUS_ERRNO:
		*r = -ENXIO;
		return 1;
	case MINUS_ONE:
		errno = EDQUOT;
		*r = -1;
		return 1;
	case MINUS_ONE_ALONE:
		*r = -1;
		return 1;
	case CUFILE_ERROR:
		*r = -CU_FILE_IO_DISABLED;
		return 1;
	case TOO_MUCH:
		*r = size + 1;
		return 1;
	case NONSENSE:
		*r = -4999;
		return 1;
	case ZERO:
		*r = 0;
		return 1;
	}
	return 0;
}

/* Bytes of one call; the lock is held */
static size_t share(size_t size, off_t off, size_t end)
{
	size_t n = (size_t)off >= end ? 0 : end - off < size ? end - off : size;

	return ufs.step && n > ufs.step ? ufs.step : n;
}

static ssize_t ufs_read(const void *handle, char *buf, size_t size, loff_t off,
			const cufileRDMAInfo_t *rdma)
{
	ssize_t r;

	check_call(handle, rdma);
	atomic_fetch_add(&ufs.reads, 1);
	atomic_fetch_add(&ufs.inside, 1);
	if (ufs.delay_us)
		usleep(ufs.delay_us);
	pthread_mutex_lock(&ufs.lock);
	if (!faulty(off, size, &r)) {
		r = share(size, off, ufs.size);
		memcpy(buf, ufs.data + off, r);
	}
	pthread_mutex_unlock(&ufs.lock);
	atomic_fetch_sub(&ufs.inside, 1);
	return r;
}

static ssize_t ufs_write(const void *handle, const char *buf, size_t size, loff_t off,
			 const cufileRDMAInfo_t *rdma)
{
	ssize_t r;

	check_call(handle, rdma);
	atomic_fetch_add(&ufs.writes, 1);
	pthread_mutex_lock(&ufs.lock);
	if (!faulty(off, size, &r)) {
		r = share(size, off, ufs.room);
		memcpy(ufs.data + off, buf, r);
		if (off + (size_t)r > ufs.size)
			ufs.size = off + r;
		if (!r)
			r = -ENOSPC;
	}
	pthread_mutex_unlock(&ufs.lock);
	return r;
}

static const char *ufs_type(const void *handle)
{
	expect(handle == &ufs, "fs_type: another handle than was registered");
	atomic_fetch_add(&ufs.types, 1);
	return "memfs";
}

static int ufs_list(const void *handle, sockaddr_t **addr)
{
	static sockaddr_t list[2];
	struct sockaddr_in in = { .sin_family = AF_INET };

	expect(handle == &ufs, "getRDMADeviceList: another handle than was registered");
	atomic_fetch_add(&ufs.lists, 1);
	inet_pton(AF_INET, "192.0.2.1", &in.sin_addr);
	memcpy(&list[0], &in, sizeof(in));
	inet_pton(AF_INET, "192.0.2.2", &in.sin_addr);
	memcpy(&list[1], &in, sizeof(in));
	*addr = list;
	return 2;
}

/* The second one is better. */
static int ufs_priority(const void *handle, char *buf, size_t size, loff_t off, sockaddr_t *addr)
{
	struct sockaddr_in in;

	memcpy(&in, addr, sizeof(in));
	expect(handle == &ufs && buf && size, "getRDMADevicePriority: arguments");
	atomic_fetch_add(&ufs.priorities, 1);
	return in.sin_addr.s_addr == inet_addr("192.0.2.2") ? 7 : 3;
}

static CUfileFSOps_t table = {
	.fs_type = ufs_type,
	.getRDMADeviceList = ufs_list,
	.getRDMADevicePriority = ufs_priority,
	.read = ufs_read,
	.write = ufs_write,
};

static CUfileHandle_t register_it(void)
{
	CUfileFSOps_t mine = table;
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS, .fs_ops = &mine };
	CUfileHandle_t fh;

	d.handle.handle = &ufs;
	OK(cuFileHandleRegister(&fh, &d));
	/* the table is the caller's: the library has a copy */
	memset(&mine, 0x55, sizeof(mine));
	return fh;
}

static int setup(void **state)
{
	uint64_t seed = 4711;

	fake_setup(state);
	pthread_mutex_lock(&ufs.lock);
	ufs.size = SIZE;
	ufs.room = sizeof(ufs.data);
	ufs.step = 0;
	ufs.interrupted = 0;
	ufs.fault = NONE;
	ufs.fault_at = 0;
	ufs.delay_us = 0;
	memset(ufs.data, 0, sizeof(ufs.data));
	fake_fill(ufs.data, SIZE, &seed);
	pthread_mutex_unlock(&ufs.lock);
	atomic_store(&ufs.gone, false);
	atomic_store(&ufs.wrong, 0);
	atomic_store(&ufs.reads, 0);
	atomic_store(&ufs.writes, 0);
	return 0;
}

static int teardown(void **state)
{
	unsetenv("CUFILE_LOGGING_LEVEL");
	fake_teardown(state);
	assert_int_equal(atomic_load(&ufs.wrong), 0);
	assert_int_equal(atomic_load(&fake.ios), 0);
	return 0;
}

static char *gpu_alloc(size_t size)
{
	CUdeviceptr p;

	assert_int_equal(cuMemAlloc(&p, size), 0);
	return (char *)(uintptr_t)p;
}

static void gpu_put(char *dst, const char *src, size_t n)
{
	assert_int_equal(cuMemcpyHtoD((uintptr_t)dst, src, n), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
}

static struct ogds_report last(void)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	assert_int_equal(ogds_last_io(&r), 0);
	return r;
}

/* -- every byte, against a model -- */

enum kind { GPU, GPU_REGISTERED, HOST };

static void round_trips(enum kind kind, size_t step)
{
	const size_t room = MIB + 50000;
	char *model = malloc(sizeof(ufs.data)), *want = malloc(room), *got = malloc(room);
	char *p = kind == HOST ? malloc(room) : gpu_alloc(room);
	CUfileHandle_t fh = register_it();
	size_t end = ufs.size, off, at, size, moved;
	uint64_t seed = 99 + kind;
	unsigned int i;
	ssize_t n;
	bool write;

	memcpy(model, ufs.data, sizeof(ufs.data));
	ufs.step = step;
	if (kind == GPU_REGISTERED)
		OK(cuFileBufRegister(p, room, 0));
	for (i = 0; i < 16; i++) {
		write = fake_random(&seed) & 1;
		size = 1 + fake_random(&seed) % (i % 4 ? 20000 : MIB);
		off = fake_random(&seed) % end;
		at = fake_random(&seed) % 5000;
		fake_fill(want, room, &seed);
		if (kind == HOST)
			memcpy(p, want, room);
		else
			gpu_put(p, want, room);
		n = write ? cuFileWrite(fh, p, size, off, at) : cuFileRead(fh, p, size, off, at);
		moved = write || size < end - off ? size : end - off;
		assert_int_equal(n, moved);
		if (write) {
			memcpy(model + off, want + at, moved);
			end = off + moved > end ? off + moved : end;
		} else {
			memcpy(want + at, model + off, moved);
		}
		if (kind == HOST)
			memcpy(got, p, room);
		else
			assert_int_equal(cuMemcpyDtoH(got, (uintptr_t)p, room), 0);
		assert_memory_equal(got, want, room);
		assert_memory_equal(ufs.data, model, sizeof(ufs.data));
		assert_int_equal(last().bytes[kind == HOST ? OGDS_ROUTE_HOST : OGDS_ROUTE_BOUNCE],
				 moved);
	}
	/* at the end, and beyond */
	assert_int_equal(cuFileRead(fh, p, 100, end, 0), 0);
	assert_int_equal(cuFileRead(fh, p, 100, end + 12345, 0), 0);
	assert_int_equal(cuFileRead(fh, p, 100, end - 7, 0), 7);
	if (kind == GPU_REGISTERED)
		OK(cuFileBufDeregister(p));
	cuFileHandleDeregister(fh);
	if (kind == HOST)
		free(p);
	else
		cuMemFree((uintptr_t)p);
	free(model);
	free(want);
	free(got);
}

static void t_gpu(void **state)
{
	round_trips(GPU, 0);
}

static void t_gpu_registered(void **state)
{
	round_trips(GPU_REGISTERED, 0);
}

static void t_host(void **state)
{
	round_trips(HOST, 0);
}

/* A call may move fewer bytes than asked for: that is no end. */
static void t_short_counts(void **state)
{
	round_trips(GPU, 5000);
	round_trips(HOST, 4097);
}

/* -- errors -- */

static void t_errors(void **state)
{
	static const struct {
		enum fault fault;
		int error;
	} row[] = {
		{ MINUS_ERRNO, ENXIO },		{ MINUS_ONE, EDQUOT },
		{ MINUS_ONE_ALONE, EPERM },	{ CUFILE_ERROR, CU_FILE_IO_DISABLED },
		{ TOO_MUCH, EIO },		{ NONSENSE, EIO },
	};
	char *p = gpu_alloc(3 * MIB), *host = malloc(3 * MIB);
	CUfileHandle_t fh = register_it();
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ufs.fault = row[i].fault;
		ufs.fault_at = 0;
		errno = 0;
		assert_int_equal(cuFileRead(fh, p, 4096, 0, 0), -1);
		assert_int_equal(errno, row[i].error);
		errno = 0;
		assert_int_equal(cuFileWrite(fh, p, 4096, 0, 0), -1);
		assert_int_equal(errno, row[i].error);
		errno = 0;
		assert_int_equal(cuFileRead(fh, host, 4096, 0, 0), -1);
		assert_int_equal(errno, row[i].error);
		/* after some bytes: as many as are there, no error */
		ufs.fault_at = MIB;
		assert_int_equal(cuFileRead(fh, p, 3 * MIB, 0, 0), MIB);
	}
	/* a write that moves nothing is none; a read that does is at the end */
	ufs.fault = ZERO;
	ufs.fault_at = 0;
	assert_int_equal(cuFileWrite(fh, p, 4096, 0, 0), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(cuFileRead(fh, p, 4096, 0, 0), 0);
	ufs.fault = NONE;
	ufs.interrupted = 3;
	assert_int_equal(cuFileRead(fh, p, 4096, 0, 0), 4096);
	assert_int_equal(ufs.interrupted, 0);
	ufs.room = SIZE;
	assert_int_equal(cuFileWrite(fh, p, 4096, SIZE, 0), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(cuFileWrite(fh, p, 4096, SIZE - 96, 0), -1);
	cuFileHandleDeregister(fh);
	free(host);
	cuMemFree((uintptr_t)p);
}

static void t_registration(void **state)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS };
	unsigned long types = atomic_load(&ufs.types), lists = atomic_load(&ufs.lists);
	unsigned long priorities = atomic_load(&ufs.priorities);
	CUfileFSOps_t half = { .read = ufs_read };
	CUfileFSOps_t none = { .fs_type = ufs_type };
	char *p = gpu_alloc(8192), log[8192] = "", path[128];
	CUfileHandle_t fh, second;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", fake.dir);
	setenv("CUFILE_LOGFILE_PATH", path, 1);
	setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
	d.handle.handle = &ufs;
	assert_int_equal(cuFileHandleRegister(&fh, &d).err, CU_FILE_IO_NOT_SUPPORTED);
	d.fs_ops = &none;
	assert_int_equal(cuFileHandleRegister(&fh, &d).err, CU_FILE_IO_NOT_SUPPORTED);
	/* only what is needed: no type, no addresses, no write */
	d.fs_ops = &half;
	OK(cuFileHandleRegister(&fh, &d));
	assert_int_equal(cuFileRead(fh, p, 8192, 0, 0), 8192);
	assert_int_equal(cuFileWrite(fh, p, 8192, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_IO_NOT_SUPPORTED);
	cuFileHandleDeregister(fh);
	assert_int_equal(atomic_load(&ufs.types), types);
	/* all of it; the cookie is the file system's: twice is no error */
	fh = register_it();
	second = register_it();
	assert_ptr_not_equal(fh, second);
	assert_int_equal(atomic_load(&ufs.types), types + 2);
	assert_int_equal(atomic_load(&ufs.lists), lists + 2);
	assert_int_equal(cuFileRead(fh, p, 8192, 4096, 0), 8192);
	assert_int_equal(cuFileRead(fh, p, 8192, 0, 0), 8192);
	/* each address once a file */
	assert_int_equal(atomic_load(&ufs.priorities), priorities + 2);
	assert_string_equal(ogds_reason_id(last().reason), "R-USER-FS");
	cuFileHandleDeregister(fh);
	assert_int_equal(cuFileRead(fh, p, 8192, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_HANDLE_NOT_REGISTERED);
	assert_int_equal(cuFileRead(second, p, 8192, 0, 0), 8192);
	/* strict: whole blocks cannot go direct */
	assert_int_equal(ogds_handle_set_strict(second, true), 0);
	assert_int_equal(cuFileRead(second, p, 8192, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_IO_NOT_SUPPORTED);
	cuFileHandleDeregister(second);
	OK(cuFileDriverClose());

	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(log, 1, sizeof(log) - 1, f) > 0);
	fclose(f);
	assert_non_null(strstr(log, "memfs offers 2 RDMA addresses"));
	assert_non_null(strstr(log, "memfs prefers the RDMA address 192.0.2.2 (priority 7)"));
	assert_non_null(strstr(log, "R-USER-FS"));

	/* where falling back is forbidden it cannot be registered */
	fake_configure("{\"properties\": {\"allow_compat_mode\": false}}");
	d.fs_ops = &table;
	assert_int_equal(cuFileHandleRegister(&fh, &d).err, CU_FILE_IO_NOT_SUPPORTED);
	cuMemFree((uintptr_t)p);
}

/* -- other ways to ask -- */

static void t_batch(void **state)
{
	enum { N = 16, PIECE = 70000 };
	char *p = gpu_alloc(N * PIECE), *got = malloc(N * PIECE);
	CUfileHandle_t fh = register_it();
	CUfileIOParams_t io[N];
	CUfileIOEvents_t event[N];
	CUfileBatchHandle_t batch;
	unsigned int i, nr = N;

	ufs.step = 30000;
	OK(cuFileBatchIOSetUp(&batch, N));
	for (i = 0; i < N; i++)
		io[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH,
			.fh = fh,
			.opcode = CUFILE_READ,
			.cookie = &io[i],
			.u.batch = { .devPtr_base = p, .devPtr_offset = (off_t)i * PIECE,
				     .file_offset = (off_t)i * PIECE, .size = PIECE },
		};
	OK(cuFileBatchIOSubmit(batch, N, io, 0));
	OK(cuFileBatchIOGetStatus(batch, N, &nr, event, NULL));
	assert_int_equal(nr, N);
	for (i = 0; i < N; i++) {
		assert_int_equal(event[i].status, CUFILE_COMPLETE);
		assert_int_equal(event[i].ret, PIECE);
	}
	assert_int_equal(cuMemcpyDtoH(got, (uintptr_t)p, N * PIECE), 0);
	assert_memory_equal(got, ufs.data, N * PIECE);
	/* an error is each entry's own */
	ufs.fault = MINUS_ERRNO;
	ufs.fault_at = 8 * PIECE;
	nr = N;
	OK(cuFileBatchIOSubmit(batch, N, io, 0));
	OK(cuFileBatchIOGetStatus(batch, N, &nr, event, NULL));
	for (i = 0; i < N; i++) {
		bool bad = (CUfileIOParams_t *)event[i].cookie >= &io[8];

		assert_int_equal(event[i].status, bad ? CUFILE_FAILED : CUFILE_COMPLETE);
		if (bad)
			assert_int_equal((ssize_t)event[i].ret, -ENXIO);
	}
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(fh);
	free(got);
	cuMemFree((uintptr_t)p);
}

static void t_stream(void **state)
{
	const size_t size = 300000;
	char *p = gpu_alloc(size), *got = malloc(size), *want = malloc(size);
	CUfileHandle_t fh = register_it();
	size_t n = size, zero_size = 100;
	off_t off = 4097, zero = 0, far = SIZE - 50;
	ssize_t wrote = 0, read = 0, end = 0, failed = 0;
	uint64_t seed = 3;
	CUstream s;

	assert_int_equal(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), 0);
	fake_fill(want, size, &seed);
	assert_int_equal(cuMemcpyHtoDAsync((uintptr_t)p, want, size, s), 0);
	OK(cuFileWriteAsync(fh, p, &n, &off, &zero, &wrote, s));
	assert_int_equal(cuMemsetD8Async((uintptr_t)p, 0, size, s), 0);
	OK(cuFileReadAsync(fh, p, &n, &off, &zero, &read, s));
	assert_int_equal(cuMemcpyDtoHAsync(got, (uintptr_t)p, size, s), 0);
	assert_int_equal(cuStreamSynchronize(s), 0);
	assert_int_equal(wrote, size);
	assert_int_equal(read, size);
	assert_memory_equal(got, want, size);
	assert_memory_equal(ufs.data + off, want, size);
	OK(cuFileReadAsync(fh, p, &zero_size, &far, &zero, &end, s));
	assert_int_equal(cuStreamSynchronize(s), 0);
	assert_int_equal(end, 50);
	ufs.fault = MINUS_ONE;
	OK(cuFileReadAsync(fh, p, &n, &off, &zero, &failed, s));
	assert_int_equal(cuStreamSynchronize(s), 0);
	assert_int_equal(failed, -EDQUOT);
	cuFileHandleDeregister(fh);
	assert_int_equal(cuStreamDestroy(s), 0);
	free(got);
	free(want);
	cuMemFree((uintptr_t)p);
}

static void t_vector(void **state)
{
	char *p = gpu_alloc(20000), host[5000];
	CUfileIOVec_t iov[] = { { p + 3, 9000 }, { host, sizeof(host) }, { p + 10000, 10000 } };
	char *got = malloc(20000);
	CUfileHandle_t fh = register_it();

	assert_int_equal(cuFileReadv(fh, iov, 3, 11, 0), 24000);
	assert_int_equal(cuMemcpyDtoH(got, (uintptr_t)p, 20000), 0);
	assert_memory_equal(got + 3, ufs.data + 11, 9000);
	assert_memory_equal(host, ufs.data + 9011, sizeof(host));
	assert_memory_equal(got + 10000, ufs.data + 14011, 10000);
	cuFileHandleDeregister(fh);
	free(got);
	cuMemFree((uintptr_t)p);
}

/* -- the end of a handle -- */

static struct {
	CUfileHandle_t fh;
	atomic_ulong ended, wrong;
} user;

static void *reader(void *arg)
{
	char buf[10000];
	ssize_t n;

	for (;;) {
		n = cuFileRead(user.fh, buf, sizeof(buf), 0, 0);
		if (n == sizeof(buf))
			continue;
		if (n != -1 || (errno != CU_FILE_HANDLE_NOT_REGISTERED &&
				errno != CU_FILE_DRIVER_CLOSING)) {
			fprintf(stderr, "cuFileRead: %zd, errno %d\n", n, errno);
			atomic_fetch_add(&user.wrong, 1);
		}
		break;
	}
	atomic_fetch_add(&user.ended, 1);
	return NULL;
}

/* Once the handle is deregistered, or the library closed, the file system hears nothing. */
static void end_under_io(bool close)
{
	pthread_t t[6];
	unsigned int i, round;

	alarm(60);
	ufs.delay_us = 300;
	ufs.step = 1000;
	for (round = 0; round < 3; round++) {
		memset(&user, 0, sizeof(user));
		atomic_store(&ufs.gone, false);
		atomic_store(&ufs.reads, 0);
		user.fh = register_it();
		for (i = 0; i < 6; i++)
			assert_int_equal(pthread_create(&t[i], NULL, reader, NULL), 0);
		while (atomic_load(&ufs.reads) < 30)
			usleep(200);
		if (close)
			OK(cuFileDriverClose());
		else
			cuFileHandleDeregister(user.fh);
		atomic_store(&ufs.gone, true);
		assert_int_equal(atomic_load(&ufs.inside), 0);
		for (i = 0; i < 6; i++)
			pthread_join(t[i], NULL);
		assert_int_equal(atomic_load(&user.wrong), 0);
		while (cuFileUseCount() > 0)
			cuFileDriverClose();
	}
	alarm(0);
}

static void t_deregister_under_io(void **state)
{
	end_under_io(false);
}

static void t_close_under_io(void **state)
{
	end_under_io(true);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_gpu),	   T(t_gpu_registered), T(t_host),	  T(t_short_counts),
		T(t_errors),	   T(t_registration),	T(t_batch),	  T(t_stream),
		T(t_vector),	   T(t_deregister_under_io), T(t_close_under_io),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
