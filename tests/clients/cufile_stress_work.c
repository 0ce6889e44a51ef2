// SPDX-License-Identifier: MIT
/* cufile_stress_work.c - the threads of the stress test: requests, and what comes and goes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_stress.h"
#include "t_random.h"

void s_bad(struct stress *s, const char *fmt, ...)
{
	va_list ap;

	flockfile(stderr);
	fputs("BAD ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	funlockfile(stderr);
	atomic_store(&s->bad, true);
	atomic_store(&s->over, true);
}

const char *s_io_error(int err)
{
	return IS_CUFILE_ERR(err) ? CUFILE_ERRSTR(err) : strerror(err);
}

/* Errors that a request may end with once the library or its handle was taken away. */
static bool s_fair(const struct stress *s, int err)
{
	switch (s->stop) {
	case STOP_CLOSE:
		return err == CU_FILE_DRIVER_NOT_INITIALIZED || err == CU_FILE_DRIVER_CLOSING ||
		       err == CU_FILE_HANDLE_NOT_REGISTERED;
	case STOP_DEREGISTER:
		return err == CU_FILE_HANDLE_NOT_REGISTERED;
	default:
		return false;
	}
}

/* -- a worker's step -- */

struct io {
	enum kind kind;
	bool write;
	size_t at, size, target;	/* in the stretch, and in the buffer */
};

static void pick(struct worker *w, struct io *io)
{
	size_t top = 1UL << t_random_below(&w->rnd, 21);

	io->kind = t_random_below(&w->rnd, KINDS);
	io->write = t_random_below(&w->rnd, 2);
	io->size = 1 + t_random_below(&w->rnd, top);
	io->at = t_random_below(&w->rnd, STRETCH - io->size + 1);
	io->target = GUARD + t_random_below(&w->rnd, 4096);
	/* every other one with whole blocks that lie alike in file and memory */
	if (t_random_below(&w->rnd, 2))
		io->target = 4096 + (w->base + io->at) % 4096;
}

static unsigned char *base_of(struct worker *w, enum kind kind)
{
	return kind == HOST ? w->host : (unsigned char *)(uintptr_t)w->gpu[kind];
}

static void to_buffer(struct worker *w, const struct io *io, const void *src)
{
	if (io->kind == HOST)
		memcpy(w->host + io->target - GUARD, src, io->size + 2 * GUARD);
	else
		t_gpu_put(w->gpu[io->kind] + io->target - GUARD, src, io->size + 2 * GUARD);
}

static void from_buffer(struct worker *w, const struct io *io, void *dst)
{
	if (io->kind == HOST)
		memcpy(dst, w->host + io->target - GUARD, io->size + 2 * GUARD);
	else
		t_gpu_get(dst, w->gpu[io->kind] + io->target - GUARD, io->size + 2 * GUARD);
}

/* Buffer and guards after a request: `want` inside, guard bytes around. */
static void check_buffer(struct worker *w, const struct io *io, const unsigned char *want)
{
	static const char *const name[] = { "registered", "unregistered", "host" };
	unsigned char *got = w->scratch;
	size_t i;

	from_buffer(w, io, got);
	for (i = 0; i < io->size + 2 * GUARD; i++) {
		bool inside = i >= GUARD && i < GUARD + io->size;
		unsigned char byte = inside ? want[i - GUARD] : GUARD_BYTE;

		if (got[i] == byte)
			continue;
		s_bad(w->all, "thread %u: %s of %zu at %lld of %s, %s memory: byte %zd of the "
		    "buffer is %02x, expected %02x", w->n, io->write ? "write" : "read", io->size,
		    (long long)(w->base + io->at), w->all->path[w->file], name[io->kind],
		    (ssize_t)i - GUARD, got[i], byte);
		return;
	}
}

/* A request that failed: true when that was fair. */
static bool failed_fairly(struct worker *w, const struct io *io, ssize_t got, int err)
{
	if (got < 0 && atomic_load(&w->all->may_fail) && s_fair(w->all, err)) {
		w->refused++;
		return true;
	}
	s_bad(w->all, "thread %u: %s of %zu at %lld of %s gave %zd: %s", w->n,
	    io->write ? "write" : "read", io->size, (long long)(w->base + io->at),
	    w->all->path[w->file], got, got < 0 ? s_io_error(err) : "short");
	return false;
}

/* false: no further step makes sense */
static bool step(struct worker *w)
{
	CUfileHandle_t fh = w->all->fh[w->file];
	struct stretch *st = w->st;
	struct io io;
	ssize_t got;

	pick(w, &io);
	memset(w->scratch, GUARD_BYTE, io.size + 2 * GUARD);
	if (io.write) {
		t_random_fresh(&w->rnd, st->next, io.size);
		memcpy(w->scratch + GUARD, st->next, io.size);
		st->next_at = io.at;
		atomic_signal_fence(memory_order_seq_cst);
		st->next_len = io.size;
	}
	to_buffer(w, &io, w->scratch);
	if (io.write)
		got = cuFileWrite(fh, base_of(w, io.kind), io.size, w->base + io.at, io.target);
	else
		got = cuFileRead(fh, base_of(w, io.kind), io.size, w->base + io.at, io.target);
	if (got != (ssize_t)io.size) {
		failed_fairly(w, &io, got, errno);
		return false;
	}
	w->bytes += io.size;
	w->reads += !io.write;
	w->writes += io.write;
	if (io.write) {
		memcpy(st->now + io.at, st->next, io.size);
		atomic_signal_fence(memory_order_seq_cst);
		st->next_len = 0;
	}
	check_buffer(w, &io, st->now + io.at);
	return true;
}

void *s_work(void *arg)
{
	struct worker *w = arg;
	bool on = true;

	if (cuCtxSetCurrent(w->all->gpu[w->card].ctx) != CUDA_SUCCESS)
		t_die("cuCtxSetCurrent failed");
	while (on && !atomic_load(&w->all->over)) {
		if (atomic_load(&w->wanted)) {
			sched_yield();
			continue;
		}
		pthread_mutex_lock(&w->lock);
		on = step(w);
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

/* -- handles and buffers that come and go -- */

/* A call of the churning thread: fine, or refused after the end was ordered. */
static bool churn_ok(struct stress *s, CUfileError_t status, const char *what)
{
	int err = status.err;

	if (err == CU_FILE_SUCCESS)
		return true;
	if (!atomic_load(&s->may_fail) ||
	    !(s_fair(s, err) || err == CU_FILE_MEMORY_NOT_REGISTERED))
		s_bad(s, "%s of the thread that comes and goes: %d: %s", what, err,
		    cufileop_status_error(status.err));
	return false;
}

static bool churn_once(struct stress *s, uint64_t *rnd, CUdeviceptr mem)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	unsigned int file = t_random_below(rnd, FILES);
	void *base = (void *)(uintptr_t)mem;
	CUfileHandle_t fh;
	bool mapped, ok;
	ssize_t got;

	descr.handle.fd = t_open(s->path[file], O_RDWR | (fcntl(s->fd[file], F_GETFL) & O_DIRECT));
	ok = churn_ok(s, cuFileHandleRegister(&fh, &descr), "cuFileHandleRegister");
	if (!ok) {
		close(descr.handle.fd);
		return false;
	}
	mapped = churn_ok(s, cuFileBufRegister(base, IO_MAX, 0), "cuFileBufRegister");
	got = cuFileRead(fh, base, 1 + t_random_below(rnd, IO_MAX), 0, 0);
	if (got <= 0 && !(got < 0 && atomic_load(&s->may_fail) && s_fair(s, errno)))
		s_bad(s, "a read of the thread that comes and goes gave %zd: %s", got,
		    got < 0 ? s_io_error(errno) : "nothing");
	if (mapped)
		ok = churn_ok(s, cuFileBufDeregister(base), "cuFileBufDeregister");
	cuFileHandleDeregister(fh);
	close(descr.handle.fd);
	atomic_fetch_add(&s->churned, 1);
	return ok && mapped;
}

void *s_churn(void *arg)
{
	struct stress *s = arg;
	uint64_t rnd = s->seed ^ 0x636875726e;
	CUdeviceptr mem;

	if (cuCtxSetCurrent(s->gpu[0].ctx) != CUDA_SUCCESS)
		t_die("cuCtxSetCurrent failed");
	mem = t_gpu_alloc(IO_MAX);
	while (!atomic_load(&s->over) && churn_once(s, &rnd, mem))
		;
	t_gpu_free(mem);
	return NULL;
}
