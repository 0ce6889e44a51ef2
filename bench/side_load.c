// SPDX-License-Identifier: MIT
/*
 * side_load.c - a loader: the header of a safetensors file, then its tensors in file order, each
 * with one call into memory of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side_child.h"

#define TENSORS 1024
#define HEADER (1024 * 1024)
#define POISON 0xa7

struct tensor {
	off_t at;		/* in the file */
	size_t len;
	CUdeviceptr gpu;
	unsigned char *host;	/* SIDE_RAW */
};

static struct {
	struct tensor t[TENSORS];
	unsigned int count;
	struct side_file f;
	atomic_uint next;
} load;

/* Length of the header, then JSON whose data_offsets count from its end. */
static unsigned int read_header(int fd, struct tensor *t)
{
	static char text[HEADER + 1];
	unsigned long long from, to;
	unsigned int n = 0;
	uint64_t len;
	char *at;

	if (pread(fd, &len, sizeof(len), 0) != sizeof(len) || len > HEADER ||
	    pread(fd, text, len, sizeof(len)) != (ssize_t)len)
		side_die("%s: no safetensors file", here.file);
	text[len] = '\0';
	for (at = text; n < TENSORS && (at = strstr(at, "\"data_offsets\":[")); n++) {
		at += strlen("\"data_offsets\":[");
		if (sscanf(at, "%llu,%llu", &from, &to) != 2 || to <= from)
			side_die("%s: data_offsets of tensor %u", here.file, n);
		t[n].at = sizeof(len) + len + from;
		t[n].len = to - from;
	}
	return n;
}

/* O_DIRECT wants an aligned buffer: the header is read by another descriptor, as loaders do. */
static void set_up(void)
{
	struct tensor *t;

	if (load.count)
		return;
	here.look = open(here.file, O_RDONLY | O_CLOEXEC);
	if (here.look < 0)
		side_die("%s: %s", here.file, strerror(errno));
	load.count = read_header(here.look, load.t);
	if (!load.count)
		side_die("%s: no tensors", here.file);
	for (t = load.t; t < load.t + load.count; t++) {
		if (here.kind == SIDE_RAW) {
			t->host = aligned_alloc(4096, (t->len + 8191) & ~4095UL);
			if (!t->host)
				side_die("out of memory");
		} else {
			side_cu(cu.alloc(&t->gpu, t->len), "cuMemAlloc");
		}
	}
}

static struct tensor *next_one(void)
{
	unsigned int i = atomic_fetch_add(&load.next, 1);

	return i < load.count ? &load.t[i] : NULL;
}

static void poison(struct side_worker *w)
{
	struct tensor *t;

	while ((t = next_one())) {
		if (here.kind == SIDE_RAW)
			memset(t->host, POISON, t->len);
		else
			side_cu(cu.set(t->gpu, POISON, t->len), "cuMemsetD8");
	}
	if (here.kind != SIDE_RAW)
		side_cu(cu.settle(), "cuCtxSynchronize");
}

/* One read of a tensor from `done` on. O_DIRECT into host memory takes whole blocks alone. */
static ssize_t piece(const struct tensor *t, size_t done)
{
	off_t off = t->at + done, from = off & ~4095L;
	ssize_t n;

	if (here.kind == SIDE_LIBRARY)
		return here.call.read(load.f.fh, (void *)(uintptr_t)t->gpu, t->len - done, off,
				      done);
	if (!(here.o.flags & SIDE_DIRECT))
		return pread(load.f.fd, t->host + done, t->len - done, off);
	/* the block's beginning lands in front; a loader would move nothing, it keeps an offset */
	n = pread(load.f.fd, t->host, (t->len - done + (off - from) + 4095) & ~4095UL, from);
	n -= off - from;
	return n > (ssize_t)(t->len - done) ? (ssize_t)(t->len - done) : n;
}

static void read_tensors(struct side_worker *w)
{
	struct tensor *t;
	size_t done;
	ssize_t n;

	side_line();
	w->requests = w->bytes = 0;
	while ((t = next_one())) {
		for (done = 0; done < t->len; done += n) {
			n = piece(t, done);
			if (n <= 0)
				side_die("tensor at %lld: %zu bytes at %zu: %zd (%s)", (long long)t->at,
					 t->len - done, done, n, n < 0 ? side_io_error(errno) : "short");
			w->requests++;
		}
		w->bytes += t->len;
	}
	w->end = side_now();
}

static void verify(struct side_worker *w)
{
	unsigned char *want = w->scratch + SIDE_CHUNK;
	struct tensor *t;
	size_t at, n, i;

	w->verified = 0;
	while ((t = next_one())) {
		for (at = 0; at < t->len; at += n) {
			n = t->len - at < SIDE_CHUNK ? t->len - at : SIDE_CHUNK;
			side_cu(cu.get(w->scratch, t->gpu + at, n), "cuMemcpyDtoH");
			if (pread(here.look, want, n, t->at + at) != (ssize_t)n)
				side_die("%s: %s", here.file, strerror(errno));
			if (!memcmp(w->scratch, want, n))
				continue;
			for (i = 0; w->scratch[i] == want[i]; i++)
				;
			side_die("WRONG BYTE: load with %u threads: byte %lld of the file is 0x%02x in GPU memory, 0x%02x in the file",
				 here.o.threads, (long long)(t->at + at + i), w->scratch[i],
				 want[i]);
		}
		w->verified += t->len;
	}
}

static void nothing(struct side_worker *w)
{
}

static void register_all(bool on)
{
	struct tensor *t;

	if (here.kind != SIDE_LIBRARY || !(here.o.flags & SIDE_REGISTERED))
		return;
	for (t = load.t; t < load.t + load.count; t++) {
		if (on)
			side_ok(here.call.buffer((void *)(uintptr_t)t->gpu, t->len, 0),
				"cuFileBufRegister");
		else
			side_ok(here.call.buffer_end((void *)(uintptr_t)t->gpu),
				"cuFileBufDeregister");
	}
}

static void each_tensor(void (*job)(struct side_worker *w))
{
	atomic_store(&load.next, 0);
	side_each(here.o.threads, job);
}

void side_load(struct side_result *r)
{
	static struct tensor seen[TENSORS];
	double begin, start, cpu, end = 0;
	unsigned int i;

	set_up();
	/* in either case the threads are there when the time begins */
	each_tensor(here.o.flags & SIDE_PREPARE ? poison : nothing);
	cpu = side_cpu();
	begin = side_now();
	register_all(true);
	start = side_now();
	side_file_open(&load.f, O_RDONLY | (here.o.flags & SIDE_DIRECT ? O_DIRECT : 0));
	if (read_header(here.o.flags & SIDE_DIRECT ? here.look : load.f.fd, seen) != load.count)
		side_die("%s: it changed", here.file);
	each_tensor(read_tensors);
	for (i = 0; i < here.o.threads; i++) {
		r->bytes += here.w[i].bytes;
		r->requests += here.w[i].requests;
		if (here.w[i].end > end)
			end = here.w[i].end;
	}
	r->seconds = end - start;
	side_file_close(&load.f);
	register_all(false);
	r->whole = side_now() - begin;
	r->cpu = side_cpu() - cpu;
	if (!(here.o.flags & SIDE_VERIFY) || here.kind != SIDE_LIBRARY)
		return;
	each_tensor(verify);
	for (i = 0; i < here.o.threads; i++)
		r->verified += here.w[i].verified;
	if (r->verified != r->bytes)
		side_die("%llu bytes were read, %llu looked at", (unsigned long long)r->bytes,
			 (unsigned long long)r->verified);
}
