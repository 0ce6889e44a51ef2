// SPDX-License-Identifier: MIT
/*
 * cl_nixl.c - NIXL, backend GDS: a pool of batch handles that is used again and again, the
 * address of an entry as its cookie, no flags, no timeout; entries of 16 MiB; a cancel in
 * between.
 */
#include <stdio.h>

#include "cl.h"

#define POOL 16
#define ENTRIES 128
#define PIECE (16 * K)
#define CHUNK (16 * M)
#define SIZE (2 * CHUNK)

static CUfileIOParams_t params[ENTRIES];
static CUfileIOEvents_t events[ENTRIES];

static void entry(CUfileIOParams_t *p, CUfileHandle_t fh, void *mem, size_t at, size_t size,
		  CUfileOpcode_t op)
{
	memset(p, 0, sizeof(*p));
	p->mode = CUFILE_BATCH;
	p->fh = fh;
	p->u.batch.devPtr_base = (char *)mem + at;
	p->u.batch.file_offset = at;
	p->u.batch.size = size;
	p->opcode = op;
	p->cookie = p;
}

/* All of nr entries, as one call or by asking again and again. */
static void reap(CUfileBatchHandle_t b, unsigned int nr, bool poll)
{
	struct timespec zero = { 0, 0 };
	unsigned int have = 0, n, i;

	while (have < nr) {
		n = nr;
		if (poll)
			cl_ok("GetStatus", cuFileBatchIOGetStatus(b, 0, &n, events, &zero));
		else
			cl_ok("GetStatus", cuFileBatchIOGetStatus(b, n, &n, events, NULL));
		for (i = 0; i < n; i++) {
			CUfileIOParams_t *p = events[i].cookie;

			if (p < params || p >= params + nr)
				t_die("an event with the cookie %p", (void *)p);
			if (events[i].status != CUFILE_COMPLETE || events[i].ret != p->u.batch.size)
				t_die("entry %td: status %d, %zd bytes", p - params,
				      (int)events[i].status, (ssize_t)events[i].ret);
		}
		have += n;
		if (!poll && have < nr)
			t_die("%u of %u events without a timeout", have, nr);
	}
}

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	char *mem = cl_gpu_alloc(SIZE);
	CUfileBatchHandle_t pool[POOL];
	CUfileHandle_t fh;
	CUfileDescr_t d;
	unsigned int i, round;
	int fd;

	cl_make(path, SIZE, 3);
	cl_ok("cuFileDriverOpen", cuFileDriverOpen());
	fd = t_open(path, O_RDWR | O_DIRECT);
	d = cl_descr(fd);
	cl_ok("cuFileHandleRegister", cuFileHandleRegister(&fh, &d));
	cl_ok("cuFileBufRegister", cuFileBufRegister(mem, SIZE, 0));
	for (i = 0; i < POOL; i++)
		cl_ok("cuFileBatchIOSetUp", cuFileBatchIOSetUp(&pool[i], ENTRIES));
	for (round = 0; round < 2 * POOL + 5; round++) {
		for (i = 0; i < ENTRIES; i++)
			entry(&params[i], fh, mem, i * PIECE, PIECE, CUFILE_READ);
		cl_gpu_poison(mem, ENTRIES * PIECE);
		cl_ok("cuFileBatchIOSubmit",
		      cuFileBatchIOSubmit(pool[round % POOL], ENTRIES, params, 0));
		if (round % 5 == 4) {
			/* another path gives up; the handle goes back to the pool */
			cl_ok("cuFileBatchIOCancel", cuFileBatchIOCancel(pool[round % POOL]));
			continue;
		}
		reap(pool[round % POOL], ENTRIES, round % 2);
		cl_gpu_is(mem, ENTRIES * PIECE, 0, 3);
	}
	for (i = 0; i < SIZE / CHUNK; i++)
		entry(&params[i], fh, mem, i * CHUNK, CHUNK, CUFILE_WRITE);
	cl_gpu_fill(mem, SIZE, 0, 4);
	cl_ok("cuFileBatchIOSubmit", cuFileBatchIOSubmit(pool[4], SIZE / CHUNK, params, 0));
	reap(pool[4], SIZE / CHUNK, true);
	cl_file_is(path, 0, SIZE, 4);
	for (i = 0; i < POOL; i++)
		cuFileBatchIODestroy(pool[i]);
	cl_ok("cuFileBufDeregister", cuFileBufDeregister(mem));
	cuFileHandleDeregister(fh);
	close(fd);
	cl_ok("cuFileDriverClose", cuFileDriverClose());
	return cl_end();
}
