// SPDX-License-Identifier: MIT
/*
 * cl_torch.c - torch.cuda.gds: linked, always O_DIRECT, never opens or closes the driver, and
 * takes nothing but the exact count.
 */
#include "cl.h"

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	size_t size = 8 * M;
	char *a = cl_gpu_alloc(size), *b = cl_gpu_alloc(size);
	CUfileDescr_t d;
	CUfileHandle_t fh;
	int fd;

	fd = open(path, O_CREAT | O_RDWR | O_TRUNC | O_DIRECT, 0664);
	if (fd < 0)
		t_die("%s: %s", path, strerror(errno));
	d = cl_descr(fd);
	cl_ok("cuFileHandleRegister", cuFileHandleRegister(&fh, &d));
	cl_gpu_fill(a, size, 0, 1);
	/* gds_register_buffer of both storages, save, load */
	cl_ok("cuFileBufRegister", cuFileBufRegister(a, size, 0));
	cl_ok("cuFileBufRegister", cuFileBufRegister(b, size, 0));
	cl_bytes("cuFileWrite", cuFileWrite(fh, a, size, 0, 0), size);
	cl_file_is(path, 0, size, 1);
	cl_bytes("cuFileRead", cuFileRead(fh, b, size, 0, 0), size);
	cl_gpu_is(b, size, 0, 1);
	cl_ok("cuFileBufDeregister", cuFileBufDeregister(a));
	/* a storage that is not registered, at an offset of the file */
	cl_gpu_fill(a, M, size, 1);
	cl_bytes("cuFileWrite", cuFileWrite(fh, a, M, size, 0), M);
	cl_file_is(path, 0, size + M, 1);
	cuFileHandleDeregister(fh);
	close(fd);
	/* b stays registered, and nobody closes the driver */
	return cl_end();
}
