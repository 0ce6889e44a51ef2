// SPDX-License-Identifier: MIT
/* differ_driver.c - cases of differ: open, close, use count, properties and their setters. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "differ.h"

static void uses(const char *step)
{
	d_num(step, lib.UseCount());
}

/* -- version, open, close -- */

/* Has to be the first case: no library of this process was open before it. */
static void never_open(struct d *d, long arg)
{
	uses("uses");
	d_err("deregister-null", lib.BufDeregister(NULL));
	d_err("deregister", lib.BufDeregister(d_ptr(d, 0)));
	d_err("close", lib.DriverClose_v2());
	uses("uses");
}

static void version(struct d *d, long arg)
{
	int v = 0;

	d_err("get", lib.GetVersion(&v));
	d_num("version", v);
	uses("uses");
}

static void version_null(struct d *d, long arg)
{
	d_err("get", lib.GetVersion(NULL));
}

static void open_close(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	uses("uses");
	d_err("open", lib.DriverOpen());
	uses("uses");
	d_err("close", lib.DriverClose_v2());
	uses("uses");
	d_err("close", lib.DriverClose_v2());
	uses("uses");
}

static void close_too_many(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_err("close", lib.DriverClose_v2());
	d_err("close", lib.DriverClose_v2());
	uses("uses");
}

static void close_legacy(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_err("open", lib.DriverOpen());
	d_err("close", lib.DriverClose());
	uses("uses");
	d_err("close", lib.DriverClose());
	uses("uses");
	d_err("close", lib.DriverClose());
}

static void reopen(struct d *d, long arg)
{
	int i;

	for (i = 0; i < 3; i++) {
		d_err("open", lib.DriverOpen());
		d_file(d, O_RDWR | O_DIRECT);
		d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
		d_err("close", lib.DriverClose_v2());
	}
	d_data(d, "data", 0, 64 * K, 0);
}

static void close_forgets_buffers(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_err("register", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("close", lib.DriverClose_v2());
	d_err("deregister", lib.BufDeregister(d_ptr(d, 0)));
	d_err("open", lib.DriverOpen());
	d_err("deregister", lib.BufDeregister(d_ptr(d, 0)));
	d_err("register", lib.BufRegister(d_ptr(d, 0), M, 0));
}

static void close_forgets_handles(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR);
	d_err("close", lib.DriverClose_v2());
	d_err("open", lib.DriverOpen());
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	d_err("register", d_register(d, d->fd));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
}

static void close_keeps_when_used(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR);
	d_err("open", lib.DriverOpen());
	d_err("close", lib.DriverClose_v2());
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	d_data(d, "data", 0, 4 * K, 0);
	uses("uses");
}

/* -- which calls open -- */

enum opener { BY_HANDLE, BY_BUFFER, BY_READ, BY_WRITE, BY_BATCH, BY_STREAM, BY_ASYNC, BY_PROPS,
	      BY_BAD_HANDLE, BY_BAD_BUFFER };

static void implicit(struct d *d, long arg)
{
	CUfileBatchHandle_t batch;
	CUfileDrvProps_t props;
	ssize_t bytes = 0;
	size_t size = 4 * K;
	off_t off = 0;
	CUstream s;

	switch (arg) {
	case BY_HANDLE:
		d_err("register", d_register(d, d_open(d, "data", O_RDWR)));
		break;
	case BY_BUFFER:
		d_err("register", lib.BufRegister(d_ptr(d, 0), M, 0));
		break;
	case BY_READ:
		d_io("read", lib.Read(NEVER, d_ptr(d, 0), 4 * K, 0, 0));
		break;
	case BY_WRITE:
		d_io("write", lib.Write(NEVER, d_ptr(d, 0), 4 * K, 0, 0));
		break;
	case BY_BATCH:
		d_err("setup", lib.BatchIOSetUp(&batch, 4));
		break;
	case BY_STREAM:
		cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
		d_err("register", lib.StreamRegister(s, 0));
		break;
	case BY_ASYNC:
		cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
		d_err("read", lib.ReadAsync(NEVER, d_ptr(d, 0), &size, &off, &off, &bytes, s));
		break;
	case BY_PROPS:
		d_err("get", lib.DriverGetProperties(&props));
		break;
	case BY_BAD_HANDLE:
		d_err("register", d_register(d, -1));
		break;
	case BY_BAD_BUFFER:
		d_err("register", lib.BufRegister(NULL, M, 0));
		break;
	}
	uses("uses");
	d_err("open", lib.DriverOpen());
	uses("uses");
}

/* -- with compatible mode forbidden, forced -- */

static void compat_off(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	uses("uses");
	d_err("buffer", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("handle", d_register(d, d_open(d, "data", O_RDWR | O_DIRECT)));
	uses("uses");
	d_err("close", lib.DriverClose_v2());
}

static void compat_off_by_call(struct d *d, long arg)
{
	d_err("set", lib.SetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false));
	d_err("open", lib.DriverOpen());
}

static void compat_off_batch(struct d *d, long arg)
{
	CUfileBatchHandle_t batch;

	d_err("setup", lib.BatchIOSetUp(&batch, 4));
}

static void compat_off_io(struct d *d, long arg)
{
	d_io("read", lib.Read(NEVER, d_ptr(d, 0), 4 * K, 0, 0));
}

static void compat_forced(struct d *d, long arg)
{
	CUfileDrvProps_t props = { 0 };

	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR | O_DIRECT);
	d_err("buffer", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), M, 0, 0));
	d_data(d, "data", 0, M, 0);
	d_err("properties", lib.DriverGetProperties(&props));
	d_num("control", props.nvfs.dcontrolflags);
}

/* The answers to configurations that are not what they should be; read works or not. */
static void configured(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR | O_DIRECT);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	d_data(d, "data", 0, 4 * K, 0);
}

static void stdio_kept(struct d *d, long arg)
{
	struct stat before[3], after;
	int i;

	for (i = 0; i < 3; i++)
		fstat(i, &before[i]);
	lib.DriverOpen();
	lib.BufRegister(d_ptr(d, 0), M, 0);
	lib.DriverClose_v2();
	for (i = 0; i < 3; i++)
		d_flag("kept", !fstat(i, &after) && after.st_ino == before[i].st_ino);
}

/* -- other states of the process -- */

static void no_context(struct d *d, long arg)
{
	cuCtxSetCurrent(NULL);
	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR);
	d_err("buffer", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	cuCtxSetCurrent(d->gpu.ctx);
	d_data(d, "data", 0, 64 * K, 0);
}

/* What a child of fork() is told of what its parent had open; `arg`: which call. */
static int forked(struct d *d, long arg)
{
	switch (arg) {
	case 0:
		return lib.DriverOpen().err;
	case 1:
		return lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0) < 0 ? errno : 0;
	case 2:
		return lib.DriverClose_v2().err;
	case 3:
		return 0;
	}
	return -1;
}

static void fork_child(struct d *d, long arg)
{
	int status, code = -1, fd[2];
	pid_t pid;

	lib.DriverOpen();
	d_file(d, O_RDWR);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	if (pipe(fd))
		return;
	pid = fork();
	if (!pid) {
		signal(SIGALRM, SIG_DFL);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		alarm(5);
		code = forked(d, arg);
		if (write(fd[1], &code, sizeof(code)) != sizeof(code))
			_exit(1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	close(fd[1]);
	if (read(fd[0], &code, sizeof(code)) == sizeof(code))
		d_num("child", code);
	else
		d_say("child=%s", WTERMSIG(status) == SIGALRM ? "hung" : "died");
	close(fd[0]);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	d_err("close", lib.DriverClose_v2());
}

/* -- properties -- */

static void props_null(struct d *d, long arg)
{
	lib.DriverOpen();
	d_err("get", lib.DriverGetProperties(NULL));
}

static void props_version(struct d *d, long arg)
{
	CUfileDrvProps_t p = { 0 };

	lib.DriverOpen();
	d_err("get", lib.DriverGetProperties(&p));
	d_say("nvfs=%u.%u", p.nvfs.major_version, p.nvfs.minor_version);
	d_say("status=0x%x", p.nvfs.dstatusflags);
}

static void props_flags(struct d *d, long arg)
{
	CUfileDrvProps_t p = { 0 };

	lib.DriverOpen();
	d_err("get", lib.DriverGetProperties(&p));
	d_say("control=0x%x features=0x%x", p.nvfs.dcontrolflags, p.fflags);
}

static void props_sizes(struct d *d, long arg)
{
	CUfileDrvProps_t p = { 0 };

	lib.DriverOpen();
	d_err("get", lib.DriverGetProperties(&p));
	d_num("poll", p.nvfs.poll_thresh_size);
	d_num("cache", p.max_device_cache_size);
	d_num("pinned", p.max_device_pinned_mem_size);
	d_num("batch", p.max_batch_io_size);
	d_num("batch-ms", p.max_batch_io_timeout_msecs);
}

static void props_direct(struct d *d, long arg)
{
	CUfileDrvProps_t p = { 0 };

	lib.DriverOpen();
	d_err("get", lib.DriverGetProperties(&p));
	d_num("direct", p.nvfs.max_direct_io_size);
	d_num("per-buffer", p.per_buffer_cache_size);
}

/* -- setters; arg: the value, negative: before the open -- */

static void poll_mode(struct d *d, long arg)
{
	CUfileDrvProps_t p = { 0 };
	long kb = arg < 0 ? -arg - 1 : arg;

	if (arg >= 0)
		d_err("open", lib.DriverOpen());
	d_err("set", lib.DriverSetPollMode(true, kb));
	if (arg < 0)
		d_err("open", lib.DriverOpen());
	lib.DriverGetProperties(&p);
	d_num("poll", p.nvfs.poll_thresh_size);
	d_num("control", p.nvfs.dcontrolflags);
}

#define SETTER(name, call, member) \
static void name(struct d *d, long arg) \
{ \
	CUfileDrvProps_t p = { 0 }; \
	long kb = arg < 0 ? -arg - 1 : arg; \
\
	if (arg >= 0) \
		d_err("open", lib.DriverOpen()); \
	d_err("set", lib.call(kb)); \
	if (arg < 0) \
		d_err("open", lib.DriverOpen()); \
	lib.DriverGetProperties(&p); \
	d_num("is", p.member); \
}

SETTER(max_direct, DriverSetMaxDirectIOSize, nvfs.max_direct_io_size)
SETTER(max_cache, DriverSetMaxCacheSize, max_device_cache_size)
SETTER(max_pinned, DriverSetMaxPinnedMemSize, max_device_pinned_mem_size)

/* A setter's argument, for before the open. */
#define BEFORE(kb) (-(kb) - 1)
#define NO_COMPAT "{ \"properties\": { \"allow_compat_mode\": false } }\n"
#define FORCED \
	"{ \"properties\": { \"allow_compat_mode\": true, \"force_compat_mode\": true } }\n"

const struct d_case driver_cases[] = {
	{ "never-open", never_open },
	{ "version", version },
	{ "version-null", version_null },
	{ "open-close", open_close },
	{ "close-too-many", close_too_many },
	{ "close-legacy", close_legacy },
	{ "reopen", reopen },
	{ "close-forgets-buffers", close_forgets_buffers },
	{ "close-forgets-handles", close_forgets_handles },
	{ "close-keeps-when-used", close_keeps_when_used },
	{ "open-by-handle", implicit, BY_HANDLE },
	{ "open-by-buffer", implicit, BY_BUFFER },
	{ "open-by-read", implicit, BY_READ },
	{ "open-by-write", implicit, BY_WRITE },
	{ "open-by-batch", implicit, BY_BATCH },
	{ "open-by-stream", implicit, BY_STREAM },
	{ "open-by-async", implicit, BY_ASYNC },
	{ "open-by-properties", implicit, BY_PROPS },
	{ "open-by-bad-handle", implicit, BY_BAD_HANDLE },
	{ "open-by-bad-buffer", implicit, BY_BAD_BUFFER },
	{ "compat-off", compat_off, 0, NO_COMPAT },
	{ "compat-off-env", compat_off, 0, NULL, "CUFILE_ALLOW_COMPAT_MODE=false" },
	{ "compat-off-call", compat_off_by_call },
	{ "compat-off-batch", compat_off_batch, 0, NO_COMPAT },
	{ "compat-off-read", compat_off_io, 0, NO_COMPAT },
	{ "compat-forced", compat_forced, 0, FORCED },
	{ "compat-forced-env", compat_forced, 0, NULL, "CUFILE_FORCE_COMPAT_MODE=true" },
	{ "config-empty-object", configured, 0, "{}\n" },
	{ "config-empty-file", configured, 0, "" },
	{ "config-no-json", configured, 0, "this is no JSON {\n" },
	{ "config-comments", configured, 0,
	  "// one\n{ /* two */ \"properties\": { \"allow_compat_mode\": true } }\n" },
	{ "config-unknown-key", configured, 0,
	  "{ \"properties\": { \"allow_compat_mode\": true, \"no_such_key\": 1 } }\n" },
	{ "config-wrong-type", configured, 0,
	  "{ \"properties\": { \"allow_compat_mode\": true, \"io_batchsize\": \"many\" } }\n" },
	{ "config-out-of-range", configured, 0,
	  "{ \"properties\": { \"allow_compat_mode\": true, \"io_batchsize\": 100000 } }\n" },
	{ "config-no-threads", configured, 0,
	  "{ \"properties\": { \"allow_compat_mode\": true },"
	  " \"execution\": { \"max_io_threads\": 0, \"parallel_io\": false } }\n" },
	{ "stdio-kept", stdio_kept },
	{ "stdio-kept-compat-off", stdio_kept, 0, NO_COMPAT },
	{ "no-context", no_context },
	{ "fork-open", fork_child, 0 },
	{ "fork-read", fork_child, 1 },
	{ "fork-close", fork_child, 2 },
	{ "fork-exit", fork_child, 3 },
	{ "properties-null", props_null },
	{ "properties-version", props_version },
	{ "properties-flags", props_flags },
	{ "properties-sizes", props_sizes },
	{ "properties-direct", props_direct },
	{ "poll-8", poll_mode, 8 },
	{ "poll-5", poll_mode, 5 },
	{ "poll-0", poll_mode, 0 },
	{ "poll-8-closed", poll_mode, BEFORE(8) },
	{ "poll-5-closed", poll_mode, BEFORE(5) },
	{ "max-direct-0", max_direct, 0 },
	{ "max-direct-63", max_direct, 63 },
	{ "max-direct-64", max_direct, 64 },
	{ "max-direct-100", max_direct, 100 },
	{ "max-direct-2048", max_direct, 2048 },
	{ "max-direct-16384", max_direct, 16384 },
	{ "max-direct-16448", max_direct, 16448 },
	{ "max-direct-closed", max_direct, BEFORE(2048) },
	{ "max-cache-0", max_cache, 0 },
	{ "max-cache-65536", max_cache, 65536 },
	{ "max-cache-100", max_cache, 100 },
	{ "max-cache-closed", max_cache, BEFORE(65536) },
	{ "max-pinned-0", max_pinned, 0 },
	{ "max-pinned-1048576", max_pinned, 1048576 },
	{ "max-pinned-100", max_pinned, 100 },
	{ "max-pinned-closed", max_pinned, BEFORE(1048576) },
	{ NULL }
};
