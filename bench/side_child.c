// SPDX-License-Identifier: MIT
/* side_child.c - a contestant's process: start, library, threads, orders. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "side_child.h"

struct side_here here = {
	.plain.fd = -1,
	.direct.fd = -1,
	.look = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.begin = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
};

void side_die(const char *fmt, ...)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	struct side_result r = { .failed = 1 };
	va_list ap;

	pthread_mutex_lock(&once);	/* for ever: the first to fail speaks */
	va_start(ap, fmt);
	vsnprintf(r.text, sizeof(r.text), fmt, ap);
	va_end(ap);
	send(here.socket, &r, sizeof(r), MSG_NOSIGNAL);
	_exit(1);
}

void side_cu(CUresult r, const char *what)
{
	if (r)
		side_die("%s: %s", what, side_cuda_error(r));
}

void side_ok(CUfileError_t e, const char *what)
{
	if (!e.err)
		return;
	if (IS_CUDA_ERR(e))
		side_die("%s: %s", what, side_cuda_error(e.cu_err));
	side_die("%s: %d (%s)", what, (int)e.err, CUFILE_ERRSTR(e.err));
}

const char *side_io_error(int err)
{
	return IS_CUFILE_ERR(err) ? CUFILE_ERRSTR(err) : strerror(err);
}

double side_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* -- threads -- */

/* This thread on the n-th of the processors that the process has, or again on all of them. */
static void pin(unsigned int n, bool on)
{
	static cpu_set_t all;
	static atomic_bool known;
	cpu_set_t one;
	int cpu;

	if (!on && !atomic_load(&known))
		return;
	pthread_mutex_lock(&here.lock);
	if (!atomic_load(&known) && sched_getaffinity(getpid(), sizeof(all), &all))
		side_die("sched_getaffinity: %s", strerror(errno));
	atomic_store(&known, true);
	pthread_mutex_unlock(&here.lock);
	one = all;
	if (on) {
		CPU_ZERO(&one);
		n %= CPU_COUNT(&all);
		for (cpu = 0; !CPU_ISSET(cpu, &all) || n--; cpu++)
			;
		CPU_SET(cpu, &one);
	}
	if (sched_setaffinity(0, sizeof(one), &one))
		side_die("sched_setaffinity: %s", strerror(errno));
}

static void *worker(void *arg)
{
	struct side_worker *w = arg;
	unsigned int seen = 0;
	void (*job)(struct side_worker *w);

	if (here.kind != SIDE_RAW)
		side_cu(cu.set_current(here.ctx), "cuCtxSetCurrent");
	w->scratch = aligned_alloc(4096, 2 * SIDE_CHUNK);
	if (!w->scratch)
		side_die("out of memory");
	for (;;) {
		pthread_mutex_lock(&here.lock);
		while (seen == here.generation)
			pthread_cond_wait(&here.begin, &here.lock);
		seen = here.generation;
		job = w->n < here.threads ? here.job : NULL;
		pthread_mutex_unlock(&here.lock);
		if (!job)
			continue;
		pin(w->n, here.o.flags & SIDE_PIN);
		job(w);
		pthread_mutex_lock(&here.lock);
		if (!--here.left)
			pthread_cond_signal(&here.done);
		pthread_mutex_unlock(&here.lock);
	}
	return NULL;
}

void side_each(unsigned int threads, void (*job)(struct side_worker *w))
{
	struct side_worker *w;

	for (; here.workers < threads; here.workers++) {
		w = &here.w[here.workers];
		w->n = here.workers;
		if (pthread_create(&w->thread, NULL, worker, w))
			side_die("thread %u: %s", w->n, strerror(errno));
	}
	atomic_store(&here.ready, 0);
	atomic_store(&here.go, false);
	pthread_mutex_lock(&here.lock);
	here.job = job;
	here.threads = here.left = threads;
	here.generation++;
	pthread_cond_broadcast(&here.begin);
	while (here.left)
		pthread_cond_wait(&here.done, &here.lock);
	pthread_mutex_unlock(&here.lock);
}

double side_line(void)
{
	if (atomic_fetch_add(&here.ready, 1) + 1 == here.threads) {
		here.t0 = side_now();
		atomic_store(&here.go, true);
	} else {
		while (!atomic_load(&here.go))
			sched_yield();
	}
	return here.t0;
}

/* -- library and files -- */

static void *name(void *lib, const char *symbol)
{
	void *f = dlsym(lib, symbol);

	if (!f)
		side_die("%s has no %s", here.path, symbol);
	return f;
}

static void load(struct side_result *hello)
{
	void *lib = dlopen(here.path, RTLD_NOW | RTLD_GLOBAL);
	struct side_calls *c = &here.call;
	int version;

	if (!lib)
		side_die("%s", dlerror());
	*(void **)&c->open = name(lib, "cuFileDriverOpen");
	*(void **)&c->close = name(lib, "cuFileDriverClose_v2");
	*(void **)&c->handle = name(lib, "cuFileHandleRegister");
	*(void **)&c->handle_end = name(lib, "cuFileHandleDeregister");
	*(void **)&c->buffer = name(lib, "cuFileBufRegister");
	*(void **)&c->buffer_end = name(lib, "cuFileBufDeregister");
	*(void **)&c->read = name(lib, "cuFileRead");
	*(void **)&c->write = name(lib, "cuFileWrite");
	*(void **)&c->version = dlsym(lib, "cuFileGetVersion");
	side_ok(c->open(), "cuFileDriverOpen");
	if (c->version && !c->version(&version).err)
		hello->version = version;
}

void side_file_open(struct side_file *f, int flags)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	f->fd = open(here.file, flags | O_CLOEXEC);
	if (f->fd < 0)
		side_die("%s%s: %s", here.file, flags & O_DIRECT ? " with O_DIRECT" : "",
			 strerror(errno));
	descr.handle.fd = f->fd;
	if (here.kind == SIDE_LIBRARY)
		side_ok(here.call.handle(&f->fh, &descr), "cuFileHandleRegister");
}

void side_file_close(struct side_file *f)
{
	if (f->fd < 0)
		return;
	if (here.kind == SIDE_LIBRARY)
		here.call.handle_end(f->fh);
	close(f->fd);
	f->fd = -1;
}

const struct side_file *side_file(void)
{
	bool direct = here.o.flags & SIDE_DIRECT;
	struct side_file *f = direct ? &here.direct : &here.plain;

	if (f->fd < 0)
		side_file_open(f, O_RDWR | (direct ? O_DIRECT : 0));
	return f;
}

/* -- orders -- */

static void hello(void)
{
	struct side_result r = { 0 };
	char why[256];
	CUdevice dev;
	int version;

	if (here.kind != SIDE_RAW) {
		if (side_cuda_open(here.gpu, &here.ctx, why, sizeof(why)))
			side_die("%s", why);
		side_cu(cu.device(&dev, here.gpu), "cuDeviceGet");
		side_cu(cu.device_name(r.text, sizeof(r.text), dev), "cuDeviceGetName");
		side_cu(cu.version(&version), "cuDriverGetVersion");
		r.cuda = version;
	}
	if (here.kind == SIDE_STORE)
		side_store_open(dev);
	if (here.kind == SIDE_LIBRARY)
		load(&r);
	send(here.socket, &r, sizeof(r), MSG_NOSIGNAL);
}

static void serve(void)
{
	struct side_result r;

	hello();
	while (recv(here.socket, &here.o, sizeof(here.o), MSG_WAITALL) == sizeof(here.o)) {
		memset(&r, 0, sizeof(r));
		if (!here.o.threads || here.o.threads > SIDE_THREADS)
			side_die("%u threads: 1 to %u", here.o.threads, SIDE_THREADS);
		if (here.o.what == SIDE_LOAD)
			side_load(&r);
		else
			side_cell(&r);
		send(here.socket, &r, sizeof(r), MSG_NOSIGNAL);
	}
	side_file_close(&here.plain);
	side_file_close(&here.direct);
	if (here.kind == SIDE_LIBRARY)
		here.call.close();
}

void side_here(int argc, char **argv)
{
	if (argc != 7 || strcmp(argv[1], "--side"))
		return;
	here.kind = atoi(argv[2]);
	here.path = argv[3];
	here.file = argv[4];
	here.gpu = atoi(argv[5]);
	here.socket = atoi(argv[6]);
	serve();
	_exit(0);
}
