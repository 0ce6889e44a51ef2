// SPDX-License-Identifier: MIT
/*
 * cl_lmcache.c - LMCache, by the Python package cufile: the unversioned name of the library, a
 * buffer registered before the driver is open, a header written through the page cache and the
 * data behind it by cuFileWrite through another descriptor without O_DIRECT and without fsync,
 * a handle for each file, several threads, the old name of the close.
 */
#include <pthread.h>
#include <stdio.h>

#include "cl.h"

#undef cuFileDriverClose

#define THREADS 4
#define FILES 4			/* of each thread */
#define CHUNK (2 * M)
#define HEADER 4096

static __typeof__(cuFileDriverOpen) *open_it, *close_it;
static __typeof__(cuFileBufRegister) *buf_register;
static __typeof__(cuFileBufDeregister) *buf_deregister;
static __typeof__(cuFileHandleRegister) *handle_register;
static __typeof__(cuFileHandleDeregister) *handle_deregister;
/* ctypes: the result is an unsigned number */
static size_t (*read_it)(CUfileHandle_t, void *, size_t, off_t, off_t);
static size_t (*write_it)(CUfileHandle_t, const void *, size_t, off_t, off_t);

static const char *path;
static char *pool;

static void transfer(const char *name, char *mem, bool write)
{
	int fd = open(name, write ? O_CREAT | O_RDWR : O_RDONLY, 0644);
	CUfileDescr_t d = cl_descr(fd);
	CUfileHandle_t fh;
	size_t n;

	if (fd < 0)
		t_die("%s: %s", name, strerror(errno));
	cl_ok("cuFileHandleRegister", handle_register(&fh, &d));
	n = write ? write_it(fh, pool, CHUNK, HEADER, mem - pool) :
		    read_it(fh, pool, CHUNK, HEADER, mem - pool);
	if (n != CHUNK)
		t_die("%s: %zd bytes", name, (ssize_t)n);
	handle_deregister(fh);
	close(fd);
}

static void *work(void *arg)
{
	long me = (long)arg, i;
	char name[512], *mem = pool + me * CHUNK;
	struct t_gpu gpu;

	t_gpu_open(&gpu, 0);
	for (i = 0; i < FILES; i++) {
		unsigned int seed = 30 + me * FILES + i;

		snprintf(name, sizeof(name), "%s.%ld.%ld", path, me, i);
		/* the header, buffered */
		cl_make(name, HEADER, seed);
		cl_gpu_fill(mem, CHUNK, HEADER, seed);
		transfer(name, mem, true);
		cl_file_is(name, 0, HEADER + CHUNK, seed);
		cl_gpu_poison(mem, CHUNK);
		transfer(name, mem, false);
		cl_gpu_is(mem, CHUNK, HEADER, seed);
		unlink(name);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *lib = dlopen("libcufile.so", RTLD_LAZY);
	pthread_t thread[THREADS];
	long i;

	path = cl_begin(argc, argv);
	CL_LOAD(lib, open_it, "cuFileDriverOpen");
	CL_LOAD(lib, close_it, "cuFileDriverClose");
	CL_LOAD(lib, buf_register, "cuFileBufRegister");
	CL_LOAD(lib, buf_deregister, "cuFileBufDeregister");
	CL_LOAD(lib, handle_register, "cuFileHandleRegister");
	CL_LOAD(lib, handle_deregister, "cuFileHandleDeregister");
	CL_LOAD(lib, read_it, "cuFileRead");
	CL_LOAD(lib, write_it, "cuFileWrite");
	pool = cl_gpu_alloc(THREADS * CHUNK);
	cl_ok("cuFileBufRegister", buf_register(pool, THREADS * CHUNK, 0));
	cl_ok("cuFileDriverOpen", open_it());
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			t_die("no thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cl_ok("cuFileBufDeregister", buf_deregister(pool));
	cl_ok("cuFileDriverClose", close_it());
	return cl_end();
}
