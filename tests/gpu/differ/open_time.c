// SPDX-License-Identifier: MIT
/*
 * open_time.c - what a library costs a process that has just begun.
 *
 *   open_time LIBRARY FILE
 *
 * CUDA is started first, with a context and memory. Prints on one line, in microseconds: load
 * (dlopen), open, register (a file), first (a read of 4 KiB), second (one more), close.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile.h"
#include "t_gpu.h"

static double last;

static void lap(const char *what)
{
	double now = t_now();

	printf("%s=%.0f ", what, (now - last) * 1e6);
	last = t_now();
}

static void *name(void *h, const char *symbol)
{
	void *f = dlsym(h, symbol);

	if (!f)
		t_die("%s: %s", symbol, dlerror());
	return f;
}

int main(int argc, char **argv)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	__typeof__(cuFileHandleRegister) *reg;
	__typeof__(cuFileDriverOpen) *open_it, *close_it;
	__typeof__(cuFileRead) *read_it;
	CUfileHandle_t fh;
	struct t_gpu gpu;
	CUdeviceptr mem;
	void *h;

	if (argc != 3) {
		fputs("usage: open_time LIBRARY FILE\n", stderr);
		return 2;
	}
	t_gpu_open(&gpu, 0);
	mem = t_gpu_alloc(1024 * 1024);
	descr.handle.fd = t_open(argv[2], O_RDWR | O_DIRECT);
	last = t_now();
	h = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!h)
		t_die("%s", dlerror());
	lap("load");
	*(void **)&reg = name(h, "cuFileHandleRegister");
	*(void **)&open_it = name(h, "cuFileDriverOpen");
	*(void **)&close_it = name(h, "cuFileDriverClose_v2");
	*(void **)&read_it = name(h, "cuFileRead");
	last = t_now();
	if (open_it().err)
		t_die("cuFileDriverOpen failed");
	lap("open");
	if (reg(&fh, &descr).err)
		t_die("cuFileHandleRegister failed");
	lap("register");
	if (read_it(fh, (void *)(uintptr_t)mem, 4096, 0, 0) != 4096)
		t_die("cuFileRead failed: %d", errno);
	lap("first");
	if (read_it(fh, (void *)(uintptr_t)mem, 4096, 0, 0) != 4096)
		t_die("cuFileRead failed: %d", errno);
	lap("second");
	if (close_it().err)
		t_die("cuFileDriverClose failed");
	lap("close");
	putchar('\n');
	return 0;
}
