// SPDX-License-Identifier: MIT
/*
 * t_witness.c - looks at a program's GPU buffers from outside the guest, for programs that
 * know nothing of the proof daemon. Loaded in front of libcufile:
 *
 *   T_WITNESS=FILE LD_PRELOAD=t_witness.so PROGRAM...
 *
 * When the program registers a buffer, the card's memory there must be poison; when it
 * deregisters it, the buffer's content and how many bytes of the open section's DMA went
 * into or out of it are noted. A line a buffer is appended to FILE; `t_section end` judges
 * them. Nothing that the program asks for is changed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cufile.h"
#include "t_checkpoint.h"

#define MAX_BUFFERS 64

struct buffer {
	uint64_t va;		/* 0: free slot */
	size_t len;
	bool poisoned;
	long long off;		/* of the last request: file offset, bytes; -1: none */
	size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer buffers[MAX_BUFFERS];

static void *next(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	if (!fn) {
		fprintf(stderr, "t_witness: no %s behind it: %s\n", name, dlerror());
		abort();
	}
	return fn;
}

/* The buffer that holds va; lock held. */
static struct buffer *find(uint64_t va)
{
	int i;

	for (i = 0; i < MAX_BUFFERS; i++) {
		if (buffers[i].va && va >= buffers[i].va && va - buffers[i].va < buffers[i].len)
			return &buffers[i];
	}
	return NULL;
}

static bool look(const struct buffer *b, struct t_proof *p)
{
	struct t_range range = { b->va, b->len };

	return !t_checkpoint(T_MARK_NONE, "buffer", &range, 1, p);
}

static void begin(uint64_t va, size_t len)
{
	struct buffer b = { .va = va, .len = len, .off = -1 };
	struct t_proof p;
	int i;

	b.poisoned = look(&b, &p) && p.poisoned && p.bytes == len;
	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_BUFFERS && buffers[i].va; i++)
		;
	if (i < MAX_BUFFERS)
		buffers[i] = b;
	pthread_mutex_unlock(&lock);
}

static void end(uint64_t va)
{
	const char *path = getenv("T_WITNESS");
	struct buffer *at, b = { 0 };
	struct t_proof p;
	FILE *f;

	pthread_mutex_lock(&lock);
	at = find(va);
	if (at) {
		b = *at;
		at->va = 0;
	}
	pthread_mutex_unlock(&lock);
	if (!b.va || !path || !look(&b, &p))
		return;
	f = fopen(path, "ae");
	if (!f) {
		perror(path);
		return;
	}
	fprintf(f, "buffer len=%zu poisoned=%d off=%lld size=%zu range=%llu sha256=%s\n", b.len,
		b.poisoned, b.off, b.size, (unsigned long long)p.range, p.sha256);
	fclose(f);
}

static void note(const void *base, off_t buf_off, size_t size, off_t file_off)
{
	struct buffer *b;

	pthread_mutex_lock(&lock);
	b = find((uintptr_t)base + (uint64_t)buf_off);
	if (b) {
		b->off = file_off;
		b->size = size;
	}
	pthread_mutex_unlock(&lock);
}

CUfileError_t cuFileBufRegister(const void *base, size_t len, int flags)
{
	__typeof__(cuFileBufRegister) *fn = next("cuFileBufRegister");
	CUfileError_t status;

	begin((uintptr_t)base, len);
	status = fn(base, len, flags);
	if (status.err) {
		pthread_mutex_lock(&lock);
		if (find((uintptr_t)base))
			find((uintptr_t)base)->va = 0;
		pthread_mutex_unlock(&lock);
	}
	return status;
}

CUfileError_t cuFileBufDeregister(const void *base)
{
	__typeof__(cuFileBufDeregister) *fn = next("cuFileBufDeregister");

	end((uintptr_t)base);
	return fn(base);
}

ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t file_off, off_t buf_off)
{
	__typeof__(cuFileRead) *fn = next("cuFileRead");

	note(base, buf_off, size, file_off);
	return fn(fh, base, size, file_off, buf_off);
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size, off_t file_off,
		    off_t buf_off)
{
	__typeof__(cuFileWrite) *fn = next("cuFileWrite");

	note(base, buf_off, size, file_off);
	return fn(fh, base, size, file_off, buf_off);
}
