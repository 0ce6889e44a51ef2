// SPDX-License-Identifier: MIT
/*
 * t_ends.c - libcufile.so.0 as it is loaded and how it ends, by the numbers of spec section 13:
 * dlopen and dlclose a hundred times, with RTLD_NODELETE too (1); nothing of it on descriptor
 * 0, no stray log (4); 64 threads on one handle, and a close among them (10); exit without a
 * close, with threads running, close after CUDA was torn down (11); fork, and the exit of the
 * child (12). Each case is a process of its own on the simulated GPU. Fails on a crash, a hang,
 * a wrong byte, a mapping, thread or descriptor that stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#include "cufile.h"
#include "tree.h"

#define BYTES 20000
#define HANG 100	/* seconds after which a case hangs */

static char lib[512], dir[64], path[128];
static char want[BYTES];

/* -- the library, by its names -- */

static struct {
	void *so;
	__typeof__(cuFileDriverOpen) *open;
	__typeof__(cuFileDriverClose) *close;
	__typeof__(cuFileHandleRegister) *reg;
	__typeof__(cuFileHandleDeregister) *dereg;
	__typeof__(cuFileBufRegister) *buf;
	__typeof__(cuFileBufDeregister) *unbuf;
	__typeof__(cuFileRead) *read;
	__typeof__(cuFileReadAsync) *read_async;
	__typeof__(cuFileUseCount) *uses;
	__typeof__(cuFileBatchIOSetUp) *setup;
	__typeof__(cuFileBatchIOSubmit) *submit;
	__typeof__(cuFileBatchIOGetStatus) *status;
	__typeof__(cuFileBatchIODestroy) *destroy;
} cf;

/* In a child: what must be, else it ends with a line. */
#define MUST(what)                                                                         \
	do {                                                                               \
		if (!(what)) {                                                             \
			fprintf(stderr, "t_ends.c:%d: %s (errno %d)\n", __LINE__, #what, errno); \
			_exit(1);                                                          \
		}                                                                          \
	} while (0)

static void load(int flags)
{
	static const struct {
		const char *name;
		void *to;
	} table[] = {
		{ "cuFileDriverOpen", &cf.open },
		{ "cuFileDriverClose", &cf.close },
		{ "cuFileDriverClose_v2", &cf.close },
		{ "cuFileHandleRegister", &cf.reg },
		{ "cuFileHandleDeregister", &cf.dereg },
		{ "cuFileBufRegister", &cf.buf },
		{ "cuFileBufDeregister", &cf.unbuf },
		{ "cuFileRead", &cf.read },
		{ "cuFileReadAsync", &cf.read_async },
		{ "cuFileUseCount", &cf.uses },
		{ "cuFileBatchIOSetUp", &cf.setup },
		{ "cuFileBatchIOSubmit", &cf.submit },
		{ "cuFileBatchIOGetStatus", &cf.status },
		{ "cuFileBatchIODestroy", &cf.destroy },
	};
	size_t i;
	void *at;

	cf.so = dlopen(lib, flags);
	if (!cf.so)
		fprintf(stderr, "%s\n", dlerror());
	MUST(cf.so);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		at = dlsym(cf.so, table[i].name);
		MUST(at);
		memcpy(table[i].to, &at, sizeof(at));
	}
}

static CUcontext start_cuda(void)
{
	CUcontext ctx;
	CUdevice dev;

	MUST(!cuInit(0) && !cuDeviceGet(&dev, 0) && !cuDevicePrimaryCtxRetain(&ctx, dev) &&
	     !cuCtxSetCurrent(ctx));
	return ctx;
}

static char *gpu_alloc(size_t size)
{
	CUdeviceptr p;

	MUST(!cuMemAlloc(&p, size));
	return (char *)(uintptr_t)p;
}

static CUfileHandle_t open_file(int *fd)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh;

	*fd = open(path, O_RDWR);
	MUST(*fd >= 0);
	d.handle.fd = *fd;
	MUST(!cf.reg(&fh, &d).err);
	return fh;
}

static void check_read(CUfileHandle_t fh, char *p)
{
	char got[BYTES];

	MUST(cf.read(fh, p, BYTES, 0, 0) == BYTES);
	MUST(!cuMemcpyDtoH(got, (uintptr_t)p, BYTES));
	MUST(!memcmp(got, want, BYTES));
}

/* Work for the library's threads; they stay until the close. */
static void use_batch(CUfileHandle_t fh, char *p, bool wait)
{
	CUfileIOParams_t io = { .mode = CUFILE_BATCH, .fh = fh, .opcode = CUFILE_READ };
	CUfileIOEvents_t event;
	CUfileBatchHandle_t b;
	unsigned int nr = 1;

	io.u.batch.devPtr_base = p;
	io.u.batch.size = BYTES;
	MUST(!cf.setup(&b, 4).err && !cf.submit(b, 1, &io, 0).err);
	if (!wait)
		return;
	MUST(!cf.status(b, 1, &nr, &event, NULL).err && nr == 1 && event.ret == BYTES);
	cf.destroy(b);
}

static unsigned int entries(const char *of)
{
	DIR *d = opendir(of);
	unsigned int n = 0;

	MUST(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];
	bool yes = false;

	MUST(f);
	while (fgets(line, sizeof(line), f))
		yes |= strstr(line, "libcufile.so") != NULL;
	fclose(f);
	return yes;
}

/* -- the cases: each in a process of its own, status 0 -- */

static void in_child(void (*fn)(void), int wanted)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(HANG);
		fn();
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("ended by signal %d%s", WTERMSIG(status),
			 WTERMSIG(status) == SIGALRM ? ": it hung" : "");
	assert_int_equal(WEXITSTATUS(status), wanted);
}

static void again(int flags)
{
	unsigned int i, fds = 0, tasks = 0;
	char *p;
	int fd;

	start_cuda();
	p = gpu_alloc(BYTES);
	for (i = 0; i < 100; i++) {
		CUfileHandle_t fh;

		load(RTLD_LAZY | RTLD_LOCAL | flags);
		fh = open_file(&fd);
		check_read(fh, p);
		if (i % 10 == 0)
			use_batch(fh, p, true);
		/* every third one leaves all to dlclose; with NODELETE nobody would do it */
		if (i % 3 || flags) {
			cf.dereg(fh);
			MUST(!cf.close().err && !cf.uses());
		}
		MUST(!dlclose(cf.so));
		close(fd);
		MUST(mapped() == (flags == RTLD_NODELETE));
		if (i == 10) {
			fds = entries("/proc/self/fd");
			tasks = entries("/proc/self/task");
		}
	}
	MUST(entries("/proc/self/fd") == fds);
	/* a thread that was joined is seen for a moment longer */
	for (i = 0; i < 1000 && entries("/proc/self/task") > tasks; i++)
		usleep(5000);
	MUST(entries("/proc/self/task") <= tasks);
}

static void dlopen_100(void)
{
	again(0);
}

static void nodelete_100(void)
{
	again(RTLD_NODELETE);
}

static void exit_open(void)
{
	CUfileHandle_t fh;
	size_t size = BYTES;
	off_t zero = 0;
	static ssize_t done;
	CUstream s;
	char *p;
	int fd;

	start_cuda();
	load(RTLD_NOW);
	p = gpu_alloc(BYTES);
	MUST(!cf.open().err && !cf.open().err);
	fh = open_file(&fd);
	MUST(!cf.buf(p, BYTES, 0).err);
	check_read(fh, p);
	/* a batch and a stream operation are under way */
	use_batch(fh, p, false);
	MUST(!cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	MUST(!cf.read_async(fh, p, &size, &zero, &zero, &done, s).err);
}

#define THREADS 64

static CUfileHandle_t shared;
static CUcontext shared_ctx;
static atomic_ulong reads;
static atomic_bool closing;

/* Until something explains the end. */
static void *read_on(void *arg)
{
	char *p, got[BYTES];
	ssize_t n;

	MUST(!cuCtxSetCurrent(shared_ctx));
	p = gpu_alloc(BYTES);
	for (;;) {
		/* the close may come at any place: later calls open the library again */
		if (cf.buf(p, BYTES, 0).err && !atomic_load(&closing))
			_exit(2);
		n = cf.read(shared, p, BYTES, 0, 0);
		if (n != BYTES)
			break;
		MUST(!cuMemcpyDtoH(got, (uintptr_t)p, BYTES) && !memcmp(got, want, BYTES));
		atomic_fetch_add(&reads, 1);
		if (cf.unbuf(p).err && !atomic_load(&closing))
			_exit(3);
	}
	MUST(n == -1 && atomic_load(&closing));
	MUST(errno == CU_FILE_DRIVER_CLOSING || errno == CU_FILE_HANDLE_NOT_REGISTERED);
	return NULL;
}

static void start_threads(pthread_t *t, int n)
{
	int fd;

	shared_ctx = start_cuda();
	load(RTLD_NOW);
	shared = open_file(&fd);
	while (n--)
		MUST(!pthread_create(&t[n], NULL, read_on, NULL));
	while (atomic_load(&reads) < 100)
		usleep(1000);
}

static void exit_threads(void)
{
	pthread_t t[8];

	start_threads(t, 8);
	/* requests that the exit ends */
	atomic_store(&closing, true);
}

static void close_threads(void)
{
	pthread_t t[THREADS];
	int i;

	start_threads(t, THREADS);
	atomic_store(&closing, true);
	MUST(!cf.close().err);
	for (i = 0; i < THREADS; i++)
		MUST(!pthread_join(t[i], NULL));
	while (cf.uses() > 0)
		MUST(!cf.close().err);
}

/* The context goes first, as when a framework ends CUDA at its own exit. */
static void torn_down(void)
{
	CUfileHandle_t fh;
	CUdevice dev;
	char *p;
	int fd;

	start_cuda();
	load(RTLD_NOW);
	p = gpu_alloc(BYTES);
	fh = open_file(&fd);
	MUST(!cf.buf(p, BYTES, 0).err);
	check_read(fh, p);
	use_batch(fh, p, true);
	MUST(!cuDeviceGet(&dev, 0) && !cuDevicePrimaryCtxReset(dev));
	/* any answer, no crash and no hang */
	cf.read(fh, p, BYTES, 0, 0);
	cf.unbuf(p);
	cf.dereg(fh);
	MUST(!cf.close().err && !cf.uses());
	/* and once more, from the beginning */
	start_cuda();
	p = gpu_alloc(BYTES);
	fh = open_file(&fd);
	check_read(fh, p);
	MUST(!cf.close().err);
}

/*
 * In the child, memory that only threads of the parent knew of is nobody's, and all of it once
 * the library is unmapped: a search for leaks at the child's exit would find it.
 */
#ifdef __SANITIZE_ADDRESS__
#define LEAK_CHECK 1
#else
#define LEAK_CHECK 0
#endif

static void forked(void)
{
	static void (*const end[])(int) = { exit, _exit };
	CUfileHandle_t fh;
	unsigned int i;
	int fd, status;
	char *p;
	pid_t pid;

	start_cuda();
	load(RTLD_NOW);
	p = gpu_alloc(BYTES);
	fh = open_file(&fd);
	MUST(!cf.buf(p, BYTES, 0).err);
	check_read(fh, p);
	use_batch(fh, p, true);
	for (i = 0; i < 6; i++) {
		pid = fork();
		MUST(pid >= 0);
		if (!pid) {
			alarm(20);
			/* what was open is the parent's: an error, no hang */
			if (cf.read(fh, p, BYTES, 0, 0) != -1 || !cf.open().err || cf.uses())
				_exit(4);
			if (i / 2 == 1)
				cf.dereg(fh);
			if (i / 2 == 2)
				dlclose(cf.so);
			end[i % 2 || LEAK_CHECK](0);
		}
		MUST(waitpid(pid, &status, 0) == pid);
		MUST(WIFEXITED(status) && !WEXITSTATUS(status));
		check_read(fh, p);
		use_batch(fh, p, true);
	}
	MUST(cf.uses() == 1);
	cf.dereg(fh);
	MUST(!cf.close().err);
}

/* Started without 0, 1 and 2, as a daemon may be: none of ours takes their place. */
static void no_stdin(void)
{
	char *p;
	int fd, i;

	MUST(!chdir(dir));
	unsetenv("CUFILE_LOGFILE_PATH");
	start_cuda();
	load(RTLD_NOW);
	p = gpu_alloc(BYTES);
	fd = open(path, O_RDWR);
	MUST(fd > 2);
	for (i = 0; i < 3; i++)
		close(i);
	{
		CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
		CUfileHandle_t fh;

		/* failures of the open, then one that works */
		setenv("CUFILE_ALLOW_COMPAT_MODE", "false", 1);
		if (!cf.open().err)
			_exit(5);
		setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 1);
		d.handle.fd = fd;
		if (cf.reg(&fh, &d).err || cf.read(fh, p, BYTES, 0, 0) != BYTES)
			_exit(6);
		use_batch(fh, p, true);
		for (i = 0; i < 3; i++)
			if (fcntl(i, F_GETFD) != -1)
				_exit(7);
		cf.dereg(fh);
		if (cf.close().err)
			_exit(8);
	}
	for (i = 0; i < 3; i++)
		if (fcntl(i, F_GETFD) != -1)
			_exit(9);
	_exit(0);
}

/* Where there is nothing to say no file appears; where there is, it stands in the folder. */
static void no_log(void)
{
	char empty[96];

	snprintf(empty, sizeof(empty), "%s/empty", dir);
	MUST(!mkdir(empty, 0700) && !chdir(empty));
	unsetenv("CUFILE_LOGFILE_PATH");
	start_cuda();
	load(RTLD_NOW);
	MUST(!cf.uses() && cf.close().err == CU_FILE_DRIVER_NOT_INITIALIZED);
	MUST(entries(".") == 2);
	/* there is no module: a NOTICE */
	MUST(!cf.open().err && entries(".") == 3 && !access("cufile.log", R_OK));
	MUST(!cf.close().err);
}

#define CASE(fn) static void t_##fn(void **state) { in_child(fn, 0); }

CASE(dlopen_100)
CASE(nodelete_100)
CASE(exit_open)
CASE(exit_threads)
CASE(close_threads)
CASE(torn_down)
CASE(forked)
CASE(no_stdin)
CASE(no_log)

static int begin(void **state)
{
	const char *base = getenv("TMPDIR");
	char self[400];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned int i;
	int fd;

	if (n <= 0)
		return -1;
	self[n] = '\0';
	/* of the same build: beside the folder of the tests */
	snprintf(lib, sizeof(lib), "%s/../../lib/libcufile.so.0", dirname(self));
	snprintf(dir, sizeof(dir), "%.40s/t_ends.XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/data", dir);
	for (i = 0; i < BYTES; i++)
		want[i] = (char)(i * 13 + i / 509);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	n = write(fd, want, BYTES);
	close(fd);
	setenv("CUFILE_ENV_PATH_JSON", "/dev/null", 1);
	setenv("CUFILE_LOGFILE_PATH", "/dev/null", 1);
	return n == BYTES ? 0 : -1;
}

static int end(void **state)
{
	return tree_remove(dir) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_dlopen_100),	   cmocka_unit_test(t_nodelete_100),
		cmocka_unit_test(t_exit_open),	   cmocka_unit_test(t_exit_threads),
		cmocka_unit_test(t_close_threads), cmocka_unit_test(t_torn_down),
		cmocka_unit_test(t_forked),	   cmocka_unit_test(t_no_stdin),
		cmocka_unit_test(t_no_log),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
