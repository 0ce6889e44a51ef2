// SPDX-License-Identifier: MIT
/*
 * cl_fio.c - fio's engine libcufile with thread=1: each job opens the driver, registers its own
 * buffer and file and gives base and offset; a short count is asked on, and 0 would spin for
 * ever.
 */
#include <pthread.h>

#include "cl.h"

#define JOBS 4
#define SIZE (4 * M)
#define BS (128 * K)

static const char *path;
static int failed[JOBS];

/* The engine's loop: 0 when all came. */
static int all(CUfileHandle_t fh, char *mem, size_t size, off_t off, off_t buf_off, bool write)
{
	size_t done = 0;
	ssize_t r;

	while (done < size) {
		r = write ? cuFileWrite(fh, mem, size - done, off + done, buf_off + done) :
			    cuFileRead(fh, mem, size - done, off + done, buf_off + done);
		if (r < 0)
			return errno;
		if (!r)
			return EIO;
		done += r;
	}
	return 0;
}

static void *job(void *arg)
{
	long me = (long)arg;
	CUfileHandle_t fh = NULL;
	struct t_gpu gpu;
	CUfileDescr_t d;
	size_t at;
	char *mem;
	int fd, r = 0;

	t_gpu_open(&gpu, 0);
	cl_ok("cuFileDriverOpen", cuFileDriverOpen());
	mem = cl_gpu_alloc(SIZE);
	cl_ok("cuFileBufRegister", cuFileBufRegister(mem, SIZE, 0));
	fd = t_open(path, O_RDWR | O_DIRECT);
	d = cl_descr(fd);
	cl_ok("cuFileHandleRegister", cuFileHandleRegister(&fh, &d));
	/* rw=read, then rw=randwrite of the job's own part with what was read */
	for (at = 0; !r && at < SIZE; at += BS)
		r = all(fh, mem, BS, me * SIZE + at, at, false);
	cl_gpu_is(mem, SIZE, me * SIZE, 9);
	cl_gpu_fill(mem, SIZE, me * SIZE, 10);
	for (at = 0; !r && at < SIZE; at += BS)
		r = all(fh, mem, BS, me * SIZE + (at * 7) % SIZE, (at * 7) % SIZE, true);
	failed[me] = r;
	cl_ok("cuFileBufDeregister", cuFileBufDeregister(mem));
	cuFileHandleDeregister(fh);
	close(fd);
	cl_ok("cuFileDriverClose", cuFileDriverClose());
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[JOBS];
	long i;

	path = cl_begin(argc, argv);
	cl_make(path, JOBS * SIZE, 9);
	for (i = 0; i < JOBS; i++)
		if (pthread_create(&thread[i], NULL, job, (void *)i))
			t_die("no thread");
	for (i = 0; i < JOBS; i++) {
		pthread_join(thread[i], NULL);
		if (failed[i])
			t_die("job %ld: errno %d", i, failed[i]);
	}
	cl_file_is(path, 0, JOBS * SIZE, 10);
	if (cuFileUseCount())
		t_die("a job's driver is still open");
	return cl_end();
}
