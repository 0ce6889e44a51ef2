// SPDX-License-Identifier: MIT
/*
 * cl_deepspeed.c - DeepSpeed's GDS op: the largest direct I/O is set right after the open to
 * block size times queue depth, which is above any limit, and an error ends the process; a
 * handle is registered for each operation.
 */
#include "cl.h"

#define BLOCK M
#define QUEUE_DEPTH 128

static void one(const char *path, char *mem, size_t size, bool write)
{
	int fd = open(path, write ? O_RDWR | O_DIRECT | O_CREAT : O_RDONLY | O_DIRECT, 0664);
	CUfileDescr_t d = cl_descr(fd);
	CUfileHandle_t fh;
	size_t at;

	if (fd < 0)
		t_die("%s: %s", path, strerror(errno));
	cl_ok("cuFileHandleRegister", cuFileHandleRegister(&fh, &d));
	for (at = 0; at < size; at += BLOCK)
		if (write)
			cl_bytes("cuFileWrite", cuFileWrite(fh, mem, BLOCK, at, at), BLOCK);
		else
			cl_bytes("cuFileRead", cuFileRead(fh, mem, BLOCK, at, at), BLOCK);
	cuFileHandleDeregister(fh);
	close(fd);
}

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	size_t size = 6 * M;
	char *mem = cl_gpu_alloc(size);
	int i;

	unlink(path);
	cl_ok("cuFileDriverOpen", cuFileDriverOpen());
	cl_ok("cuFileDriverSetMaxDirectIOSize",
	      cuFileDriverSetMaxDirectIOSize(BLOCK * QUEUE_DEPTH / 1024));
	cl_ok("cuFileBufRegister", cuFileBufRegister(mem, size, 0));
	for (i = 0; i < 3; i++) {
		cl_gpu_fill(mem, size, 0, 6 + i);
		one(path, mem, size, true);
		cl_file_is(path, 0, size, 6 + i);
		cl_gpu_poison(mem, size);
		one(path, mem, size, false);
		cl_gpu_is(mem, size, 0, 6 + i);
	}
	cl_ok("cuFileBufDeregister", cuFileBufDeregister(mem));
	cl_ok("cuFileDriverClose", cuFileDriverClose());
	return cl_end();
}
