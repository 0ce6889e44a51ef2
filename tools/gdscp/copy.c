// SPDX-License-Identifier: MIT
/* copy.c - threads that pass slots of GPU memory on. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "copy.h"

#define CHUNK ((size_t)1024 * 1024)	/* that is in host memory at a time */
#define TICK_NS 200000000

const char *copy_error_text(int err)
{
	return IS_CUFILE_ERR(err) ? CUFILE_ERRSTR(err) : strerror(err);
}

/* -- what the threads have in common -- */

/* The first error is that of the copy. */
static void __attribute__((format(printf, 3, 4))) fail(struct copy *c, int err, const char *fmt,
						       ...)
{
	va_list ap;

	pthread_mutex_lock(&c->lock);
	if (!c->err) {
		c->err = err;
		va_start(ap, fmt);
		vsnprintf(c->why, sizeof(c->why), fmt, ap);
		va_end(ap);
	}
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static bool cuda_ok(struct copy *c, CUresult r, const char *what)
{
	const char *text = NULL;

	if (!r)
		return true;
	cuGetErrorString(r, &text);
	fail(c, -EIO, "%s: %s", what, text ? text : "CUDA error");
	return false;
}

/* c->lock held. It is over before its end. */
static bool broken(const struct copy *c)
{
	return c->err || *c->stop;
}

static bool over(struct copy *c)
{
	bool is;

	pthread_mutex_lock(&c->lock);
	is = broken(c);
	pthread_mutex_unlock(&c->lock);
	return is;
}

/* c->lock held. Pieces that nobody needs any more. */
static uint64_t done_with(const struct copy *c)
{
	return c->digest_fd >= 0 && c->digested < c->emptied ? c->digested : c->emptied;
}

static CUdeviceptr slot_of(const struct copy *c, uint64_t n)
{
	return c->slots->mem + n % c->slots->n * c->slots->bytes;
}

/* Waits until piece n is filled. False: there is none, or it is over. */
static bool take(struct copy *c, uint64_t n, struct piece *out)
{
	bool is;

	pthread_mutex_lock(&c->lock);
	while (!broken(c) && n == c->filled && !c->all_filled)
		pthread_cond_wait(&c->changed, &c->lock);
	is = !broken(c) && n < c->filled;
	if (is)
		*out = c->piece[n % c->slots->n];
	pthread_mutex_unlock(&c->lock);
	return is;
}

/* Waits until there is a slot for piece n. */
static bool room(struct copy *c, uint64_t n)
{
	bool is;

	pthread_mutex_lock(&c->lock);
	while (!broken(c) && n >= done_with(c) + c->slots->n)
		pthread_cond_wait(&c->changed, &c->lock);
	is = !broken(c);
	pthread_mutex_unlock(&c->lock);
	return is;
}

static void count(struct copy *c, uint64_t *what)
{
	pthread_mutex_lock(&c->lock);
	++*what;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void add_way(struct ways *w)
{
	struct ogds_report r = OGDS_REPORT_INIT;
	unsigned int i;

	if (ogds_last_io(&r))
		return;
	for (i = 0; i < OGDS_ROUTES; i++)
		w->bytes[i] += r.bytes[i];
	w->whole += r.whole_bytes;
	w->direct += r.whole_direct;
	w->edges += r.edge_bytes;
	w->retried += r.retried;
	for (i = 0; r.reason && i < w->reasons && w->reason[i] != r.reason; i++)
		;
	if (r.reason && i == w->reasons && i < COPY_REASONS)
		w->reason[w->reasons++] = r.reason;
}

/* -- reading -- */

/* All of a piece: fewer bytes than it has are the end of a file that was longer. */
static bool read_piece(struct copy *c, const struct piece *p, CUdeviceptr to)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < p->len) {
		if (*c->stop)
			return false;
		n = cuFileRead(c->from, (void *)(uintptr_t)c->slots->mem, p->len - done,
			       (off_t)(p->off + done), (off_t)(to - c->slots->mem + done));
		if (n < 0) {
			int err = n == -1 ? errno : (int)-n;

			if (err == EINTR)
				continue;
			add_way(&c->in);
			fail(c, -err, "read of %" PRIu64 " bytes at %" PRIu64 ": %s",
			     p->len - done, p->off + done, copy_error_text(err));
			return false;
		}
		add_way(&c->in);
		if (!n) {
			fail(c, -ESTALE, "it has become shorter than %" PRIu64 " bytes while it was copied",
			     c->size);
			return false;
		}
		done += n;
	}
	return true;
}

static void *reader(void *arg)
{
	struct copy *c = arg;
	struct extents e;
	struct piece p;
	uint64_t n = 0;
	int r = 0;

	if (!cuda_ok(c, cuCtxSetCurrent(c->slots->ctx), "cuCtxSetCurrent"))
		return NULL;
	extents_begin(&e, c->fd, c->size, c->slots->bytes);
	while (room(c, n)) {
		r = extents_next(&e, &p);
		if (r <= 0)
			break;
		if (!p.hole && !read_piece(c, &p, slot_of(c, n)))
			return NULL;
		c->piece[n % c->slots->n] = p;
		n++;
		count(c, &c->filled);
	}
	if (r < 0)
		fail(c, r, "search for holes: %s", strerror(-r));
	pthread_mutex_lock(&c->lock);
	c->all_filled = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* -- writing -- */

static bool write_piece(struct copy *c, const struct piece *p, CUdeviceptr from)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < p->len) {
		if (*c->stop)
			return false;
		n = cuFileWrite(c->to, (void *)(uintptr_t)c->slots->mem, p->len - done,
				(off_t)(p->off + done), (off_t)(from - c->slots->mem + done));
		if (n <= 0) {
			/* one that moves nothing has no error: there is no room */
			int err = !n ? ENOSPC : n == -1 ? errno : (int)-n;

			if (err == EINTR)
				continue;
			add_way(&c->out);
			fail(c, -err, "write of %" PRIu64 " bytes at %" PRIu64 ": %s",
			     p->len - done, p->off + done, copy_error_text(err));
			return false;
		}
		add_way(&c->out);
		done += n;
	}
	return true;
}

static void *writer(void *arg)
{
	struct copy *c = arg;
	struct piece p;
	uint64_t n;

	if (!cuda_ok(c, cuCtxSetCurrent(c->slots->ctx), "cuCtxSetCurrent"))
		return NULL;
	for (n = 0; take(c, n, &p); n++) {
		if (!p.hole && !write_piece(c, &p, slot_of(c, n)))
			return NULL;
		atomic_fetch_add(&c->written, p.len);
		count(c, &c->emptied);
	}
	return NULL;
}

/* -- digests -- */

static const uint8_t zeros[CHUNK];

/* Of what is in GPU memory, by a copy of it; of holes, where nothing is. */
static bool digest_piece(struct copy *c, const struct piece *p, CUdeviceptr at, uint8_t *host,
			 struct md5 *m)
{
	uint64_t done;
	size_t n;

	for (done = 0; done < p->len; done += n) {
		n = p->len - done < CHUNK ? p->len - done : CHUNK;
		if (over(c))
			return false;
		if (!p->hole && !cuda_ok(c, cuMemcpyDtoH(host, at + done, n), "cuMemcpyDtoH"))
			return false;
		md5_add(m, p->hole ? zeros : host, n);
		atomic_fetch_add(&c->seen, n);
	}
	return true;
}

static void *gpu_digester(void *arg)
{
	struct copy *c = arg;
	uint8_t *host = malloc(CHUNK);
	struct piece p;
	struct md5 m;
	uint64_t n;

	if (!host)
		fail(c, -ENOMEM, "%zu bytes for a digest: out of memory", CHUNK);
	if (!host || !cuda_ok(c, cuCtxSetCurrent(c->slots->ctx), "cuCtxSetCurrent"))
		goto out;
	md5_begin(&m);
	for (n = 0; take(c, n, &p); n++) {
		if (!digest_piece(c, &p, slot_of(c, n), host, &m))
			goto out;
		count(c, &c->digested);
	}
	md5_end(&m, c->gpu_sum);
out:
	free(host);
	return NULL;
}

int copy_digest(int fd, uint64_t size, const atomic_int *stop, uint8_t sum[MD5_BYTES])
{
	uint8_t *host = malloc(CHUNK);
	uint64_t done = 0;
	struct md5 m;
	ssize_t n = 0;
	int r = 0;

	if (!host)
		return -ENOMEM;
	md5_begin(&m);
	while (done < size && !r) {
		n = pread(fd, host, size - done < CHUNK ? size - done : CHUNK, (off_t)done);
		if (*stop)
			r = -EINTR;
		else if (n < 0 && errno != EINTR)
			r = -errno;
		else if (!n)
			r = -ENODATA;
		if (n > 0) {
			md5_add(&m, host, n);
			done += n;
		}
	}
	md5_end(&m, sum);
	free(host);
	return r;
}

static void *cpu_digester(void *arg)
{
	struct copy *c = arg;
	int r = copy_digest(c->digest_fd, c->size, c->stop, c->cpu_sum);

	if (r == -ENODATA)
		fail(c, -ESTALE, "it has become shorter than %" PRIu64 " bytes while it was copied",
		     c->size);
	else if (r && r != -EINTR)
		fail(c, r, "read by the CPU: %s", strerror(-r));
	return NULL;
}

/* -- all of it -- */

struct worker {
	struct copy *c;
	void *(*run)(void *arg);
	pthread_t thread;
	bool started;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	w->run(w->c);
	pthread_mutex_lock(&w->c->lock);
	w->c->running--;
	pthread_cond_broadcast(&w->c->changed);
	pthread_mutex_unlock(&w->c->lock);
	return NULL;
}

/* Until all threads have ended. A signal sets *stop and wakes nobody: we look. */
static void watch(struct copy *c)
{
	struct timespec t;

	pthread_mutex_lock(&c->lock);
	while (c->running) {
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += TICK_NS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		if (pthread_cond_timedwait(&c->changed, &c->lock, &t) != ETIMEDOUT)
			continue;
		if (*c->stop)
			pthread_cond_broadcast(&c->changed);
		pthread_mutex_unlock(&c->lock);
		if (c->progress)
			c->progress(c->arg, c);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
}

int copy_run(struct copy *c)
{
	struct worker w[] = {
		{ c, reader }, { c, writer }, { c, gpu_digester }, { c, cpu_digester },
	};
	unsigned int n = c->digest_fd >= 0 ? 4 : 2, i;
	int r;

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->filled = c->emptied = c->digested = 0;
	c->all_filled = false;
	c->err = 0;
	for (i = 0; i < n; i++) {
		pthread_mutex_lock(&c->lock);
		c->running++;
		pthread_mutex_unlock(&c->lock);
		r = pthread_create(&w[i].thread, NULL, work, &w[i]);
		w[i].started = !r;
		if (!r)
			continue;
		pthread_mutex_lock(&c->lock);
		c->running--;
		pthread_mutex_unlock(&c->lock);
		fail(c, -r, "a thread: %s", strerror(r));
	}
	watch(c);
	for (i = 0; i < n; i++)
		if (w[i].started)
			pthread_join(w[i].thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	if (c->err)
		return c->err;
	return *c->stop ? -EINTR : 0;
}
