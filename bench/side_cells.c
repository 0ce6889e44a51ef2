// SPDX-License-Identifier: MIT
/*
 * side_cells.c - requests of one size for some time: memory, the measured loop, verification.
 *
 * Thread n owns bytes [n * range, (n + 1) * range) of the file and a buffer of as many bytes;
 * byte i of its buffer is byte i of its range, so that each buffer can be compared as a whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu.h"
#include "side_child.h"
#include "t_pattern.h"

#define PIECE (16UL * 1024 * 1024)	/* of the copy engine: pinned memory of a thread, at most */
#define CLOCK_EVERY (64UL * 1024)	/* the clock is read after as many bytes */

static bool writes(void)
{
	return here.o.flags & SIDE_WRITE;
}

static off_t base_of(const struct side_worker *w)
{
	return (off_t)w->n * here.o.range;
}

/* No file has so many equal bytes that a poisoned stretch passes for it. */
static unsigned char poison(void)
{
	return 0x80 | (here.o.seed * 37 + 11);
}

/* -- memory -- */

static void drop(struct side_worker *w)
{
	if (here.kind == SIDE_STORE && w->host)
		side_store_unmap(w);
	if (w->registered)
		side_ok(here.call.buffer_end((void *)(uintptr_t)w->gpu), "cuFileBufDeregister");
	if (w->gpu)
		side_cu(cu.free(w->gpu), "cuMemFree");
	if (w->host && here.kind == SIDE_COPY)
		side_cu(cu.host_free(w->host), "cuMemFreeHost");
	else if (w->host && here.kind == SIDE_RAW)
		munmap(w->host, w->len);
	w->registered = false;
	w->gpu = 0;
	w->host = NULL;
	w->len = 0;
}

static void make_host(struct side_worker *w)
{
	void *p = mmap(NULL, w->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		side_die("%zu bytes of host memory: %s", w->len, strerror(errno));
	madvise(p, w->len, MADV_HUGEPAGE);
	memset(p, 1, w->len);
	w->host = p;
}

static void make(struct side_worker *w, size_t len)
{
	void *p = NULL;

	w->len = len;
	if (here.kind == SIDE_RAW) {
		make_host(w);
		return;
	}
	side_cu(cu.alloc(&w->gpu, len), "cuMemAlloc");
	if (here.kind == SIDE_STORE)
		side_store_map(w);
	if (here.kind == SIDE_COPY) {
		side_cu(cu.host_alloc(&p, len, 0), "cuMemHostAlloc");
		w->host = p;
		memset(p, 1, len);
		if (!w->stream)
			side_cu(cu.stream(&w->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	}
}

/* Buffers as the order wants them; those of other threads and lengths go. */
static void set_up(void)
{
	size_t len = here.o.range;
	struct side_worker *w;
	bool want;

	if (here.kind == SIDE_COPY)
		len = here.o.size < PIECE ? here.o.size : PIECE;
	for (w = here.w; w < here.w + SIDE_THREADS; w++)
		if (w->len && (w->len != len || w >= here.w + here.o.threads))
			drop(w);
	for (w = here.w; w < here.w + here.o.threads; w++) {
		if (!w->len)
			make(w, len);
		want = here.kind == SIDE_LIBRARY && here.o.flags & SIDE_REGISTERED;
		if (want && !w->registered)
			side_ok(here.call.buffer((void *)(uintptr_t)w->gpu, len, 0), "cuFileBufRegister");
		else if (!want && w->registered)
			side_ok(here.call.buffer_end((void *)(uintptr_t)w->gpu), "cuFileBufDeregister");
		w->registered = want;
	}
	if (here.look < 0)
		here.look = open(here.file, O_RDONLY | O_CLOEXEC);
	if (here.look < 0)
		side_die("%s: %s", here.file, strerror(errno));
}

/* Before a measurement whose bytes are looked at, or the first one of a cell. */
static void prepare(struct side_worker *w)
{
	size_t at, n;

	if (here.kind == SIDE_COPY)
		return;
	if (!writes()) {
		if (here.kind == SIDE_RAW)
			memset(w->host, poison(), w->len);
		else
			side_cu(cu.set(w->gpu, poison(), w->len), "cuMemsetD8");
	}
	for (at = 0; writes() && at < w->len; at += n) {
		n = w->len - at < SIDE_CHUNK ? w->len - at : SIDE_CHUNK;
		t_pattern_fill(w->scratch, n, here.o.seed, (base_of(w) + at) / T_BLOCK);
		if (here.kind == SIDE_RAW)
			memcpy(w->host + at, w->scratch, n);
		else
			side_cu(cu.put(w->gpu + at, w->scratch, n), "cuMemcpyHtoD");
	}
	if (here.kind == SIDE_LIBRARY || here.kind == SIDE_STORE)
		side_cu(cu.settle(), "cuCtxSynchronize");
}

/* -- the measured loop -- */

static void by_library(struct side_worker *w, const struct side_file *f, size_t at)
{
	void *p = (void *)(uintptr_t)w->gpu;
	off_t off = base_of(w) + at;
	ssize_t n;

	if (writes())
		n = here.call.write(f->fh, p, here.o.size, off, at);
	else
		n = here.call.read(f->fh, p, here.o.size, off, at);
	if (n != (ssize_t)here.o.size)
		side_die("%s of %llu bytes at %lld: %zd (%s)", writes() ? "cuFileWrite" : "cuFileRead",
			 (unsigned long long)here.o.size, (long long)off, n,
			 n < 0 ? side_io_error(errno) : "short");
}

static void by_kernel(struct side_worker *w, const struct side_file *f, size_t at)
{
	off_t off = base_of(w) + at;
	ssize_t n;

	if (writes())
		n = pwrite(f->fd, w->host + at, here.o.size, off);
	else
		n = pread(f->fd, w->host + at, here.o.size, off);
	if (n != (ssize_t)here.o.size)
		side_die("%s of %llu bytes at %lld: %zd (%s)", writes() ? "pwrite" : "pread",
			 (unsigned long long)here.o.size, (long long)off, n,
			 n < 0 ? strerror(errno) : "short");
}

/*
 * What any path of stores has to do for a request: ask whether this is the memory that was mapped,
 * read the file into it, and see to it that the stores are out.
 */
static void by_stores(struct side_worker *w, const struct side_file *f, size_t at)
{
	unsigned long long id;

	side_cu(cu.attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, w->gpu), "cuPointerGetAttribute");
	by_kernel(w, f, at);
	cpu_store_fence();
}

/* One call of the size, or, of more than a piece, pieces one behind the other. */
static void by_engine(struct side_worker *w)
{
	size_t left, n;

	for (left = here.o.size; left; left -= n) {
		n = left < w->len ? left : w->len;
		if (writes())
			side_cu(cu.get_async(w->host, w->gpu, n, w->stream), "cuMemcpyDtoHAsync");
		else
			side_cu(cu.put_async(w->gpu, w->host, n, w->stream), "cuMemcpyHtoDAsync");
	}
	side_cu(cu.sync(w->stream), "cuStreamSynchronize");
}

static void measure(struct side_worker *w)
{
	size_t at = 0, batch = here.o.size < CLOCK_EVERY ? CLOCK_EVERY / here.o.size : 1, i;
	const struct side_file *f = here.o.flags & SIDE_DIRECT ? &here.direct : &here.plain;
	double until = side_line() + here.o.seconds;

	w->requests = 0;
	do {
		for (i = 0; i < batch; i++) {
			switch (here.kind) {
			case SIDE_LIBRARY: by_library(w, f, at); break;
			case SIDE_RAW: by_kernel(w, f, at); break;
			case SIDE_STORE: by_stores(w, f, at); break;
			case SIDE_COPY: by_engine(w); break;
			}
			at += here.o.size;
			if (at == here.o.range)
				at = 0;
		}
		w->requests += batch;
		w->end = side_now();
	} while (w->end < until);
	w->bytes = w->requests * here.o.size;
}

/* -- verification -- */

static void look(unsigned char *to, size_t n, off_t off)
{
	if (pread(here.look, to, n, off) != (ssize_t)n)
		side_die("%s: %zu bytes at %lld: %s", here.file, n, (long long)off, strerror(errno));
}

static void same(const struct side_worker *w, const unsigned char *is, const unsigned char *want,
		 size_t n, size_t at, size_t moved)
{
	size_t i;

	if (!memcmp(is, want, n))
		return;
	for (i = 0; is[i] == want[i]; i++)
		;
	side_die("WRONG BYTE: thread %u of %u, %s of %llu bytes: byte %lld is 0x%02x in GPU memory, 0x%02x %s",
		 w->n, here.o.threads, here.o.flags & SIDE_DIRECT ? "direct read" : "read",
		 (unsigned long long)here.o.size, (long long)(base_of(w) + at + i), is[i], want[i],
		 at + i < moved ? "in the file" : "was there and no request asked for it");
}

static void verify_read(struct side_worker *w, size_t moved)
{
	unsigned char *want = w->scratch + SIDE_CHUNK;
	size_t at, n;

	for (at = 0; at < w->len; at += n) {
		n = w->len - at < SIDE_CHUNK ? w->len - at : SIDE_CHUNK;
		if (at < moved && n > moved - at)
			n = moved - at;
		side_cu(cu.get(w->scratch, w->gpu + at, n), "cuMemcpyDtoH");
		if (at < moved)
			look(want, n, base_of(w) + at);
		else
			memset(want, poison(), n);
		same(w, w->scratch, want, n, at, moved);
	}
}

static void verify_write(struct side_worker *w, size_t moved)
{
	char why[160];
	size_t at, n;

	if (here.o.flags & SIDE_DIRECT)
		posix_fadvise(here.look, base_of(w), moved, POSIX_FADV_DONTNEED);
	for (at = 0; at < moved; at += n) {
		n = moved - at < SIDE_CHUNK ? moved - at : SIDE_CHUNK;
		look(w->scratch, n, base_of(w) + at);
		if (t_pattern_check(w->scratch, n, here.o.seed, (base_of(w) + at) / T_BLOCK, why,
				    sizeof(why)))
			side_die("WRONG BYTE: thread %u of %u, %s of %llu bytes: the file's %s", w->n,
				 here.o.threads, here.o.flags & SIDE_DIRECT ? "direct write" : "write",
				 (unsigned long long)here.o.size, why);
	}
}

static void verify(struct side_worker *w)
{
	size_t moved = w->bytes < w->len ? w->bytes : w->len;

	if (writes())
		verify_write(w, moved);
	else
		verify_read(w, moved);
	w->verified = moved;
}

void side_cell(struct side_result *r)
{
	unsigned int t = here.o.threads, i;
	double cpu, end = 0;

	if (!here.o.size || here.o.size % T_BLOCK || !here.o.range || here.o.range % here.o.size)
		side_die("requests of %llu bytes in a range of %llu", (unsigned long long)here.o.size,
			 (unsigned long long)here.o.range);
	set_up();
	if (here.kind != SIDE_COPY)
		side_file();
	if (here.o.flags & SIDE_PREPARE)
		side_each(t, prepare);
	cpu = side_cpu();
	side_each(t, measure);
	r->cpu = side_cpu() - cpu;
	for (i = 0; i < t; i++) {
		r->bytes += here.w[i].bytes;
		r->requests += here.w[i].requests;
		if (here.w[i].end > end)
			end = here.w[i].end;
	}
	r->seconds = end - here.t0;
	if (!(here.o.flags & SIDE_VERIFY) || (here.kind != SIDE_LIBRARY && here.kind != SIDE_STORE))
		return;
	side_each(t, verify);
	for (i = 0; i < t; i++)
		r->verified += here.w[i].verified;
}
