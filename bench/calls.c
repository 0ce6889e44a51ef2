// SPDX-License-Identifier: MIT
/*
 * calls.c - a fixed number of requests and nothing else: what an instruction counter runs.
 *
 *   calls FILE SIZE N
 *
 * N reads of SIZE bytes into a registered buffer, one after the other, of a file that is in the
 * page cache, after one read that is not counted as N. Twice with different N gives what a
 * request costs, without start and end (bench/instructions).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "cufile.h"

#define PLACES 16	/* of requests in the file and in the buffer, in turn */

static void die(const char *what, int code)
{
	fprintf(stderr, "calls: %s: %d\n", what, code);
	exit(1);
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

	if (argc != 4) {
		fputs("usage: calls FILE SIZE N\n", stderr);
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
