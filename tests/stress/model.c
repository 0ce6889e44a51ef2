// SPDX-License-Identifier: MIT
/* model.c - what files and memory hold, and what a request has to come to. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stress.h"

#define BLOCK 4096

/* -- zones -- */

/* Any zones side by side that nothing is under way in: false when there are none. */
static bool window(struct worker *w, const unsigned int *busy, unsigned int *first,
		   unsigned int *n)
{
	unsigned int at = st_below(w, ZONES), i, left = st_below(w, ZONES), right;

	for (i = 0; i < ZONES && busy[(at + i) % ZONES]; i++)
		;
	if (i == ZONES)
		return false;
	at = (at + i) % ZONES;
	*first = at;
	*n = 1;
	while (left-- && *first && !busy[*first - 1]) {
		--*first;
		++*n;
	}
	right = st_below(w, ZONES);
	while (right-- && *first + *n < ZONES && !busy[*first + *n])
		++*n;
	return true;
}

bool md_mem_window(struct worker *w, const struct mem *m, unsigned int *first, unsigned int *n)
{
	return m->base && window(w, m->busy, first, n);
}

bool md_file_window(struct worker *w, const struct file_model *f, unsigned int *first,
		    unsigned int *n)
{
	return window(w, f->busy, first, n);
}

/* A registration may not come or go at the base of something under way. */
bool md_start_is_busy(const struct mem *m, const char *start)
{
	size_t at = start - m->span;

	return at >= GUARD && at < SPAN - GUARD && m->busy[(at - GUARD) / ZONE];
}

void md_claim(const struct claim *c, int by)
{
	unsigned int i;

	for (i = 0; i < c->nf; i++)
		c->file->busy[c->fz + i] += by;
	for (i = 0; i < c->nm; i++)
		c->m->busy[c->mz + i] += by;
	c->file->frozen += by;
	if (c->fixed)
		c->m->fixed += by;
}

/* -- results -- */

/* The registration of a shared memory as a whole, which is nobody's in special. */
static bool whole(struct worker *w, const struct mem *m)
{
	return m->kind <= HOST_SHARED && w->all->set.whole[m->kind];
}

bool md_covered(struct worker *w, const struct mem *m, uint64_t va, size_t size)
{
	uint64_t start;
	unsigned int i;

	if (whole(w, m) && va >= (uintptr_t)m->base && va - (uintptr_t)m->base < m->len &&
	    size <= m->len - (va - (uintptr_t)m->base))
		return true;
	for (i = 0; i < m->regs; i++) {
		start = (uintptr_t)m->reg[i].start;
		if (va >= start && va - start < m->reg[i].len &&
		    size <= m->reg[i].len - (va - start))
			return true;
	}
	return false;
}

bool md_starts(struct worker *w, const struct mem *m, uint64_t va)
{
	unsigned int i;

	if (whole(w, m) && va == (uintptr_t)m->base)
		return true;
	for (i = 0; i < m->regs; i++)
		if (va == (uintptr_t)m->reg[i].start)
			return true;
	return false;
}

static off_t end_of(const struct file_model *f)
{
	return f->own ? (off_t)f->size : f->end;
}

static size_t whole_blocks(off_t off, size_t n)
{
	off_t from = (off + BLOCK - 1) / BLOCK * BLOCK, to = (off + (off_t)n) / BLOCK * BLOCK;

	return to > from ? to - from : 0;
}

static bool direct_possible(const struct setup *s)
{
	return s->module && !s->force_compat && s->routes & OGDS_DIRECT_MASK;
}

/* 0, or why the memory cannot be had for the request. */
static int memory_error(struct worker *w, const struct ask *a)
{
	const struct setup *s = &w->all->set;
	uint64_t base = (uintptr_t)a->base, va = base + a->buf_off;

	if (!a->m)
		return s->system_memory ? 0 : CU_FILE_CUDA_MEMORY_TYPE_INVALID;
	if (!md_covered(w, a->m, va, a->size)) {
		if (md_starts(w, a->m, base))
			return CU_FILE_INVALID_MAPPING_RANGE;
		if (!a->m->host &&
		    (va - (uintptr_t)a->m->base > a->m->len ||
		     a->size > a->m->len - (va - (uintptr_t)a->m->base)))
			return EIO;
	}
	return a->m->host && !s->system_memory ? CU_FILE_CUDA_MEMORY_TYPE_INVALID : 0;
}

/* From the numbers on: what a request, an entry and an operation have in common. */
struct answer md_predict(struct worker *w, const struct ask *a)
{
	const struct setup *s = &w->all->set;
	uint64_t base = (uintptr_t)a->base;
	struct answer r = { 0 };
	size_t n = a->size;
	off_t end;

	if (a->off < 0 || a->size > (size_t)INT64_MAX || a->off > INT64_MAX - (off_t)a->size) {
		r.err = CU_FILE_INVALID_VALUE;
	} else if (a->buf_off < 0 || base + a->buf_off < base ||
		   base + a->buf_off + a->size < base) {
		r.err = CU_FILE_INTERNAL_ERROR;
	} else if (a->size) {
		if (a->h->mode == (a->write ? O_RDONLY : O_WRONLY))
			r.err = CU_FILE_INVALID_FILE_OPEN_FLAG;
		else
			r.err = memory_error(w, a);
		end = end_of(a->h->file);
		if (!a->write)
			n = a->off >= end ? 0 : (off_t)n > end - a->off ? end - a->off : n;
		if (!r.err && n && !a->m)
			r.err = EFAULT;
		if (!r.err && a->m && !a->m->host && s->strict && !direct_possible(s) &&
		    whole_blocks(a->off, n))
			r.err = CU_FILE_IO_NOT_SUPPORTED;
	}
	r.n = r.err || !a->size ? 0 : n;
	return r;
}

/* -- contents -- */

void md_apply(struct worker *w, const struct ask *a, size_t n)
{
	struct file_model *f;

	if (!n)
		return;
	f = a->file;
	if (!a->write) {
		memcpy(a->m->want + a->at, f->want + a->rel, n);
		return;
	}
	if (f->own && a->rel > f->size) {
		memset(f->want + f->size, 0, a->rel - f->size);
		f->holes = true;
	}
	memcpy(f->want + a->rel, a->m->want + a->at, n);
	if (f->own && a->rel + n > f->size)
		f->size = a->rel + n;
}

#define TELLING 16	/* bytes that are in no two places by chance */

/* Whose bytes are there? The other threads are not stopped: a hint, no proof. */
__attribute__((no_sanitize_thread))
static void whence(const struct stress *s, const unsigned char *got, size_t n)
{
	const struct worker *w;
	const unsigned char *p;
	unsigned int t, i;

	for (t = 0; n >= TELLING && t < s->opt.threads; t++) {
		w = &s->w[t];
		for (i = 0; i < MEMS; i++) {
			p = memmem(w->mem[i].want, SPAN, got, TELLING);
			if (p)
				fprintf(stderr, "  the first of them are in memory %u of thread %u at %zu\n",
					i, t, p - w->mem[i].want);
		}
		for (i = 0; i <= FILES; i++) {
			p = memmem(w->file[i].want, ZONES * ZONE, got, TELLING);
			if (p)
				fprintf(stderr, "  the first of them are in file %u of thread %u at %zu\n",
					i, t, p - w->file[i].want);
		}
	}
}

/*
 * memcmp for what nobody should touch any more: ThreadSanitizer's own takes most of the time
 * of a run. Near the target of a request it is used.
 */
#define LARGE ((size_t)16384)

__attribute__((no_sanitize_thread))
static bool same(const unsigned char *a, const unsigned char *b, size_t n)
{
	uint64_t x, y, differs = 0;
	size_t i;

	for (i = 0; i + sizeof(x) <= n; i += sizeof(x)) {
		__builtin_memcpy(&x, a + i, sizeof(x));
		__builtin_memcpy(&y, b + i, sizeof(y));
		differs |= x ^ y;
	}
	for (; i < n; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

static void differ(struct worker *w, const char *what, const unsigned char *got,
		   const unsigned char *want, size_t n, size_t from)
{
	size_t i, k;

	if (n > LARGE ? same(got, want, n) : !memcmp(got, want, n))
		return;
	for (i = 0; got[i] == want[i]; i++)
		;
	for (k = n; got[k - 1] == want[k - 1]; k--)
		;
	whence(w->all, got + i, k - i);
	st_bad(w, "%s: bytes from %zu to %zu differ, the first is %02x and must be %02x", what,
	       from + i, from + k, got[i], want[i]);
}

void md_check_mem(struct worker *w, const struct mem *m, size_t from, size_t to)
{
	static const char *const name[MEMS] = {
		"the shared GPU memory", "the shared host memory", "GPU memory", "pinned memory",
	};

	/* the simulated GPU's memory is the host's */
	if (from < to)
		differ(w, name[m->kind], (unsigned char *)m->span + from, m->want + from,
		       to - from, from);
}

void md_check_file(struct worker *w, const struct file_model *f, size_t from, size_t to)
{
	struct stat st;
	ssize_t n;

	if (fstat(f->look, &st))
		st_bad(w, "fstat of %s: errno %d", f->path, errno);
	if (st.st_size != end_of(f))
		st_bad(w, "%s has %lld bytes and must have %lld", f->path, (long long)st.st_size,
		       (long long)end_of(f));
	if (to > f->size)
		to = f->size;
	if (from >= to)
		return;
	n = pread(f->look, w->scratch, to - from, f->start + (off_t)from);
	if (n != (ssize_t)(to - from))
		st_bad(w, "%s: pread of %zu at %lld: %zd", f->path, to - from,
		       (long long)(f->start + (off_t)from), n);
	differ(w, f->path, w->scratch, f->want + from, to - from, from);
}

static size_t less(size_t at, size_t by, size_t least)
{
	return at < least + by ? least : at - by;
}

static size_t more(size_t at, size_t by, size_t most)
{
	return at + by > most ? most : at + by;
}

void md_check(struct worker *w, const struct ask *a, const struct claim *c)
{
	size_t lo = GUARD + c->mz * ZONE, hi = lo + c->nm * ZONE;
	/* what was asked for may be more than the window: it is not touched, but for the end */
	size_t n = a->size > ZONES * ZONE ? 0 : a->size;

	if (!c->mz)
		lo = 0;
	if (c->mz + c->nm == ZONES)
		hi = SPAN;
	if (a->m)
		md_check_mem(w, a->m, less(a->at, AROUND, lo), more(a->at, n + AROUND, hi));
	if (!a->h || !a->write)
		return;
	lo = c->fz * ZONE;
	hi = lo + c->nf * ZONE;
	md_check_file(w, c->file, less(a->rel, AROUND, lo), more(a->rel, n + AROUND, hi));
}

void md_check_all(struct worker *w)
{
	const struct file_model *f;
	const struct mem *m;
	unsigned int i, z;

	for (i = 0; i < MEMS; i++) {
		m = &w->mem[i];
		if (!m->base)
			continue;
		md_check_mem(w, m, 0, GUARD);
		md_check_mem(w, m, SPAN - GUARD, SPAN);
		for (z = 0; z < ZONES; z++)
			if (!m->busy[z])
				md_check_mem(w, m, GUARD + z * ZONE, GUARD + (z + 1) * ZONE);
	}
	for (i = 0; i <= FILES; i++) {
		f = &w->file[i];
		for (z = 0; z < ZONES; z++)
			if (!f->busy[z])
				md_check_file(w, f, z * ZONE, (z + 1) * ZONE);
	}
}
