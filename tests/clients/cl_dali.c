// SPDX-License-Identifier: MIT
/*
 * cl_dali.c - DALI: the library under either name, the close by the symbol that there is,
 * descriptor 0 saved before and put back after an open and a close (ours must not touch it),
 * reads until all bytes are there: a 0 before the end of the file would spin.
 */
#include <sys/stat.h>

#include "cl.h"

#define SIZE (3 * M + 1234)
#define CHUNK (2 * M)

static void *lib;

static bool stdin_is(const struct stat *want)
{
	struct stat now;

	return !fstat(0, &now) && now.st_ino == want->st_ino && now.st_dev == want->st_dev;
}

/* Calls an open or a close with descriptor 0 guarded. */
static void guarded(const char *name)
{
	__typeof__(cuFileDriverOpen) *f;
	int saved = dup(0);
	struct stat before;

	CL_LOAD(lib, f, name);
	if (fstat(0, &before))
		t_die("descriptor 0 is not open");
	cl_ok(name, f());
	if (!stdin_is(&before))
		t_die("%s: descriptor 0 is another file now", name);
	dup2(saved, 0);
	close(saved);
}

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	__typeof__(cuFileHandleRegister) *handle_register;
	__typeof__(cuFileHandleDeregister) *handle_deregister;
	__typeof__(cuFileBufRegister) *buf_register;
	__typeof__(cuFileBufDeregister) *buf_deregister;
	__typeof__(cuFileRead) *read_it;
	char *mem = cl_gpu_alloc(4 * M);
	size_t at, left, done;
	CUfileHandle_t fh;
	CUfileDescr_t d;
	ssize_t r;
	int fd;

	lib = dlopen("libcufile.so.0", RTLD_NOW);
	if (!lib)
		lib = dlopen("libcufile.so", RTLD_NOW);
	CL_LOAD(lib, handle_register, "cuFileHandleRegister");
	CL_LOAD(lib, handle_deregister, "cuFileHandleDeregister");
	CL_LOAD(lib, buf_register, "cuFileBufRegister");
	CL_LOAD(lib, buf_deregister, "cuFileBufDeregister");
	CL_LOAD(lib, read_it, "cuFileRead");
	cl_make(path, SIZE, 40);
	guarded("cuFileDriverOpen");
	fd = t_open(path, O_RDONLY | O_DIRECT);
	d = cl_descr(fd);
	cl_ok("cuFileHandleRegister", handle_register(&fh, &d));
	cl_ok("cuFileBufRegister", buf_register(mem, 4 * M, 0));
	for (at = 0; at < SIZE; at += CHUNK) {
		left = SIZE - at < CHUNK ? SIZE - at : CHUNK;
		for (done = 0; done < left; done += r) {
			r = read_it(fh, mem, left - done, at + done, at + done);
			if (r <= 0)
				t_die("cuFileRead: %zd at %zu of %d", r, at + done, (int)SIZE);
		}
	}
	cl_gpu_is(mem, SIZE, 0, 40);
	cl_ok("cuFileBufDeregister", buf_deregister(mem));
	handle_deregister(fh);
	close(fd);
	guarded(dlsym(lib, "cuFileDriverClose_v2") ? "cuFileDriverClose_v2" : "cuFileDriverClose");
	return cl_end();
}
