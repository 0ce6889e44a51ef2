// SPDX-License-Identifier: MIT
/*
 * cl_cucim.c - cuCIM: symbols looked up one by one in a library that stays, all properties read
 * and set, the old name of the close; a file read at odd offsets into registered and other
 * memory, and into memory of the host.
 */
#include "cl.h"

#undef cuFileDriverClose

#define SIZE (2 * M + 777)

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	void *lib = dlopen("libcufile.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
	__typeof__(cuFileDriverOpen) *open_it, *close_it;
	__typeof__(cuFileDriverGetProperties) *get;
	__typeof__(cuFileDriverSetPollMode) *poll;
	__typeof__(cuFileDriverSetMaxDirectIOSize) *max_direct, *max_cache, *max_pinned;
	__typeof__(cuFileHandleRegister) *handle_register;
	__typeof__(cuFileHandleDeregister) *handle_deregister;
	__typeof__(cuFileBufRegister) *buf_register;
	__typeof__(cuFileBufDeregister) *buf_deregister;
	__typeof__(cuFileRead) *read_it;
	__typeof__(cuFileWrite) *write_it;
	char *mem = cl_gpu_alloc(4 * M), *host = malloc(M);
	CUfileDrvProps_t p, q;
	CUfileHandle_t fh;
	CUfileDescr_t d;
	size_t i;
	int fd;

	CL_LOAD(lib, open_it, "cuFileDriverOpen");
	CL_LOAD(lib, close_it, "cuFileDriverClose");
	CL_LOAD(lib, get, "cuFileDriverGetProperties");
	CL_LOAD(lib, poll, "cuFileDriverSetPollMode");
	CL_LOAD(lib, max_direct, "cuFileDriverSetMaxDirectIOSize");
	CL_LOAD(lib, max_cache, "cuFileDriverSetMaxCacheSize");
	CL_LOAD(lib, max_pinned, "cuFileDriverSetMaxPinnedMemSize");
	CL_LOAD(lib, handle_register, "cuFileHandleRegister");
	CL_LOAD(lib, handle_deregister, "cuFileHandleDeregister");
	CL_LOAD(lib, buf_register, "cuFileBufRegister");
	CL_LOAD(lib, buf_deregister, "cuFileBufDeregister");
	CL_LOAD(lib, read_it, "cuFileRead");
	CL_LOAD(lib, write_it, "cuFileWrite");
	cl_make(path, SIZE, 50);
	cl_ok("cuFileDriverOpen", open_it());
	cl_ok("cuFileDriverGetProperties", get(&p));
	cl_ok("cuFileDriverSetPollMode", poll(false, p.nvfs.poll_thresh_size));
	cl_ok("cuFileDriverSetMaxDirectIOSize", max_direct(p.nvfs.max_direct_io_size));
	cl_ok("cuFileDriverSetMaxCacheSize", max_cache(p.max_device_cache_size));
	cl_ok("cuFileDriverSetMaxPinnedMemSize", max_pinned(p.max_device_pinned_mem_size));
	cl_ok("cuFileDriverGetProperties", get(&q));
	if (memcmp(&p, &q, sizeof(p)))
		t_die("properties that were set to themselves are others");
	fd = t_open(path, O_RDWR | O_DIRECT);
	d = cl_descr(fd);
	cl_ok("cuFileHandleRegister", handle_register(&fh, &d));
	cl_ok("cuFileBufRegister", buf_register(mem, 2 * M, 0));
	/* tiles: registered memory, then the rest of the allocation */
	cl_bytes("cuFileRead", read_it(fh, mem, 300001, 1001, 13), 300001);
	cl_gpu_is(mem + 13, 300001, 1001, 50);
	cl_bytes("cuFileRead", read_it(fh, mem + 2 * M, M, 777, 0), M);
	cl_gpu_is(mem + 2 * M, M, 777, 50);
	cl_bytes("cuFileRead", read_it(fh, mem, 2 * M, M, 0), SIZE - M);
	cl_gpu_is(mem, SIZE - M, M, 50);
	cl_bytes("cuFileRead", read_it(fh, host, 5000, 99, 7), 5000);
	for (i = 0; i < 5000; i++)
		if ((unsigned char)host[7 + i] != cl_byte(99 + i, 50))
			t_die("host memory: byte %zu is wrong", i);
	cl_gpu_fill(mem, 70001, 4001, 51);
	cl_bytes("cuFileWrite", write_it(fh, mem, 70001, 4001, 0), 70001);
	cl_file_is(path, 4001, 70001, 51);
	cl_file_is(path, 0, 4001, 50);
	cl_ok("cuFileBufDeregister", buf_deregister(mem));
	handle_deregister(fh);
	close(fd);
	cl_ok("cuFileDriverClose", close_it());
	return cl_end();
}
