// SPDX-License-Identifier: MIT
/*
 * calls.c - a fixed number of requests and nothing else: what an instruction counter runs.
 *
 *   calls FILE SIZE N [FILES BUFFERS]
 *
 * N reads of SIZE bytes into a registered buffer, one after the other, of a file that is in the
 * page cache, after one read that is not counted as N. Twice with different N gives what a
 * request costs, without start and end (bench/instructions). FILES and BUFFERS (1): so many handles
 * of the file and so many buffers of SIZE bytes besides are registered, and the reads take these in
 * turn: what a request costs among many, and with N of 0 what the registrations do (bench/growth).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "cufile.h"

#define PLACES 16	/* of requests in the file and in the buffer, in turn */
#define STRIDE 104729	/* a prime: all of many, in no order */

static void die(const char *what, int code)
{
	fprintf(stderr, "calls: %s: %d\n", what, code);
	exit(1);
}

/* Handles and buffers in turn; each of the latter is read by its own first bytes. */
static int among_many(int fd, size_t size, unsigned long n, unsigned long files,
		      unsigned long buffers)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t *fh = calloc(files, sizeof(*fh));
	unsigned long i;
	CUdeviceptr mem;

	if (!fh || cuMemAlloc(&mem, size * buffers))
		die("memory", errno);
	for (i = 0; i < files; i++) {
		descr.handle.fd = dup(fd);
		if (descr.handle.fd < 0 || cuFileHandleRegister(&fh[i], &descr).err)
			die("handle", errno);
	}
	for (i = 0; i < buffers; i++)
		if (cuFileBufRegister((void *)(uintptr_t)(mem + i * size), size, 0).err)
			die("buffer", errno);
	for (i = 0; i <= n; i++)
		if (cuFileRead(fh[i * STRIDE % files],
			       (void *)(uintptr_t)(mem + i * STRIDE % buffers * size), size,
			       i % PLACES * size, 0) != (ssize_t)size)
			die("cuFileRead", errno);
	if (cuFileDriverClose().err)
		die("cuFileDriverClose", errno);
	return 0;
}

int main(int argc, char **argv)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	size_t size, at;
	unsigned long n, i;
	CUfileHandle_t fh;
	CUdeviceptr mem;
	CUcontext ctx;
	CUresult r;

	if (argc != 4 && argc != 6) {
		fputs("usage: calls FILE SIZE N [FILES BUFFERS]\n", stderr);
		return 2;
	}
	size = strtoul(argv[2], NULL, 0);
	n = strtoul(argv[3], NULL, 0);
	r = cuInit(0);
	if (!r)
		r = cuDevicePrimaryCtxRetain(&ctx, 0);
	if (!r)
		r = cuCtxSetCurrent(ctx);
	if (!r)
		r = cuMemAlloc(&mem, size * PLACES);
	if (r)
		die("CUDA", r);
	descr.handle.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (descr.handle.fd < 0)
		die(argv[1], errno);
	if (argc == 6)
		return among_many(descr.handle.fd, size, n, strtoul(argv[4], NULL, 0),
				  strtoul(argv[5], NULL, 0));
	if (cuFileHandleRegister(&fh, &descr).err ||
	    cuFileBufRegister((void *)(uintptr_t)mem, size * PLACES, 0).err)
		die("registration", errno);
	for (i = 0; i <= n; i++) {
		at = i % PLACES * size;
		if (cuFileRead(fh, (void *)(uintptr_t)mem, size, at, at) != (ssize_t)size)
			die("cuFileRead", errno);
	}
	if (cuFileDriverClose().err)
		die("cuFileDriverClose", errno);
	return 0;
}
