// SPDX-License-Identifier: MIT
/*
 * cl_fastsafetensors.c - fastsafetensors: functions by name from libcufile.so.0, limits set
 * after the open, sub-ranges of one allocation registered, no O_DIRECT, the old name of the
 * close.
 */
#include "cl.h"

#define PART (4 * M)
#define PARTS 4

#undef cuFileDriverClose

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	char *mem = cl_gpu_alloc(PARTS * PART);
	__typeof__(cuFileGetVersion) *version;
	__typeof__(cuFileDriverOpen) *open_it, *close_it;
	__typeof__(cuFileDriverSetMaxDirectIOSize) *max_direct, *max_pinned;
	__typeof__(cuFileBufRegister) *buf_register;
	__typeof__(cuFileBufDeregister) *buf_deregister;
	__typeof__(cuFileHandleRegister) *handle_register;
	__typeof__(cuFileHandleDeregister) *handle_deregister;
	__typeof__(cuFileRead) *read_it;
	void *lib = dlopen("libcufile.so.0", RTLD_LAZY | RTLD_GLOBAL | RTLD_NODELETE);
	CUfileHandle_t fh;
	CUfileDescr_t d;
	int fd, i, v = 0;

	CL_LOAD(lib, version, "cuFileGetVersion");
	CL_LOAD(lib, open_it, "cuFileDriverOpen");
	CL_LOAD(lib, close_it, "cuFileDriverClose");
	CL_LOAD(lib, max_direct, "cuFileDriverSetMaxDirectIOSize");
	CL_LOAD(lib, max_pinned, "cuFileDriverSetMaxPinnedMemSize");
	CL_LOAD(lib, buf_register, "cuFileBufRegister");
	CL_LOAD(lib, buf_deregister, "cuFileBufDeregister");
	CL_LOAD(lib, handle_register, "cuFileHandleRegister");
	CL_LOAD(lib, handle_deregister, "cuFileHandleDeregister");
	CL_LOAD(lib, read_it, "cuFileRead");
	cl_ok("cuFileGetVersion", version(&v));
	if (v < 1070)
		t_die("version %d has no files without O_DIRECT", v);
	cl_make(path, PARTS * PART + 100, 2);
	cl_ok("cuFileDriverOpen", open_it());
	cl_ok("cuFileDriverSetMaxDirectIOSize", max_direct(16 * K));
	cl_ok("cuFileDriverSetMaxPinnedMemSize", max_pinned(1024 * K));
	for (i = 0; i < PARTS; i++)
		cl_ok("cuFileBufRegister of a part", buf_register(mem + i * PART, PART, 0));
	fd = t_open(path, O_RDONLY);
	d = cl_descr(fd);
	cl_ok("cuFileHandleRegister", handle_register(&fh, &d));
	/* the base of a part, and offsets into it */
	for (i = 0; i < PARTS; i++) {
		char *part = mem + i * PART;

		cl_bytes("cuFileRead", read_it(fh, part, PART / 2, i * PART, 0), PART / 2);
		cl_bytes("cuFileRead", read_it(fh, part, PART / 2, i * PART + PART / 2, PART / 2),
			 PART / 2);
	}
	cl_gpu_is(mem, PARTS * PART, 0, 2);
	/* the last piece of the file is asked for as a whole block */
	cl_bytes("cuFileRead", read_it(fh, mem, 4096, PARTS * PART, 0), 100);
	handle_deregister(fh);
	close(fd);
	for (i = 0; i < PARTS; i++)
		cl_ok("cuFileBufDeregister", buf_deregister(mem + i * PART));
	cl_ok("cuFileDriverClose", close_it());
	dlclose(lib);
	return cl_end();
}
