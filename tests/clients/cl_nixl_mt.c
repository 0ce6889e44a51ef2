// SPDX-License-Identifier: MIT
/*
 * cl_nixl_mt.c - NIXL, backend GDS_MT: many threads on one handle and one registration, each
 * with a pointer that is advanced already and a buffer offset of 0.
 */
#include <pthread.h>

#include "cl.h"

#define THREADS 8
#define PIECE M
#define PIECES 16

static CUfileHandle_t fh;
static char *mem;
static int failed[THREADS];

static void *work(void *arg)
{
	long me = (long)arg, i;

	for (i = me; i < PIECES; i += THREADS)
		if (cuFileRead(fh, mem + i * PIECE, PIECE, i * PIECE, 0) != (ssize_t)PIECE)
			failed[me] = errno;
	for (i = me; i < PIECES; i += THREADS)
		if (cuFileWrite(fh, mem + i * PIECE, PIECE, (PIECES + i) * PIECE, 0) !=
		    (ssize_t)PIECE)
			failed[me] = errno;
	return NULL;
}

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	pthread_t thread[THREADS];
	CUfileDescr_t d;
	long i;
	int fd;

	mem = cl_gpu_alloc(PIECES * PIECE);
	cl_make(path, PIECES * PIECE, 5);
	cl_ok("cuFileDriverOpen", cuFileDriverOpen());
	fd = t_open(path, O_RDWR | O_DIRECT);
	d = cl_descr(fd);
	cl_ok("cuFileHandleRegister", cuFileHandleRegister(&fh, &d));
	cl_ok("cuFileBufRegister", cuFileBufRegister(mem, PIECES * PIECE, 0));
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			t_die("no thread");
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		if (failed[i])
			t_die("thread %ld: errno %d", i, failed[i]);
	}
	cl_gpu_is(mem, PIECES * PIECE, 0, 5);
	cl_file_is(path, 0, PIECES * PIECE, 5);
	/* the second half is the first one again */
	fd = open(path, O_RDONLY);
	for (i = 0; i < PIECES; i++) {
		unsigned char c;

		if (pread(fd, &c, 1, (PIECES + i) * PIECE + 77) != 1 ||
		    c != cl_byte(i * PIECE + 77, 5))
			t_die("piece %ld was not written", i);
	}
	cl_ok("cuFileBufDeregister", cuFileBufDeregister(mem));
	cuFileHandleDeregister(fh);
	cl_ok("cuFileDriverClose", cuFileDriverClose());
	return cl_end();
}
