// SPDX-License-Identifier: MIT
/*
 * cufile_async.c - batches and stream operations on real files and a real (or simulated) GPU:
 *
 *   cufile_async FILE [--direct]
 *
 * A file is written by a batch from registered memory and read back by another, in pieces of
 * odd sizes too; then 256 stream reads are queued on two streams with copies and fills
 * between them, with offsets that a host function of the stream sets. Everything is compared
 * on the host. --direct: the batch's whole blocks must go direct. Prints what was done.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opengds.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define PIECES 64
#define PIECE ((size_t)256 * 1024)
#define SIZE (PIECES * PIECE)
#define OPS 256
#define OP_BYTES ((size_t)32 * 1024)

static CUfileHandle_t fh;
static CUdeviceptr mem;
static unsigned char *want, *got;

static void cufile(CUfileError_t e, const char *what)
{
	if (e.err)
		t_die("%s: %d (%s), CUDA %d", what, e.err, cufileop_status_error(e.err), e.cu_err);
}

static void cuda(CUresult r, const char *what)
{
	if (r)
		t_die("%s: CUDA error %d", what, r);
}

static void clear(int byte)
{
	cuda(cuMemsetD8(mem, byte, SIZE), "cuMemsetD8");
	cuda(cuCtxSynchronize(), "cuCtxSynchronize");
}

static void compare(size_t at, size_t from, size_t n, const char *what)
{
	size_t i;

	t_gpu_get(got, mem + at, n);
	for (i = 0; i < n && got[i] == want[from + i]; i++)
		;
	if (i < n)
		t_die("%s: byte %zu of the file is %02x in GPU memory, expected %02x", what,
		      from + i, got[i], want[from + i]);
}

/* Every piece, the last byte left out of every third one. */
static void batch(CUfileOpcode_t op)
{
	CUfileIOParams_t p[PIECES] = { 0 };
	CUfileIOEvents_t ev[PIECES];
	CUfileBatchHandle_t b;
	unsigned int i, nr, have = 0;

	for (i = 0; i < PIECES; i++) {
		p[i].mode = CUFILE_BATCH;
		p[i].fh = fh;
		p[i].opcode = op;
		p[i].cookie = &p[i];
		p[i].u.batch.devPtr_base = (void *)(uintptr_t)mem;
		p[i].u.batch.devPtr_offset = p[i].u.batch.file_offset = i * PIECE;
		p[i].u.batch.size = op == CUFILE_READ && i % 3 == 1 ? PIECE - 1 : PIECE;
	}
	cufile(cuFileBatchIOSetUp(&b, PIECES), "cuFileBatchIOSetUp");
	cufile(cuFileBatchIOSubmit(b, PIECES, p, 0), "cuFileBatchIOSubmit");
	for (; have < PIECES; have += nr) {
		nr = PIECES - have;
		cufile(cuFileBatchIOGetStatus(b, nr, &nr, ev, NULL), "cuFileBatchIOGetStatus");
		for (i = 0; i < nr; i++) {
			const CUfileIOParams_t *q = ev[i].cookie;

			if (ev[i].status != CUFILE_COMPLETE || ev[i].ret != q->u.batch.size)
				t_die("entry %zd: status %d, result %zd", q - p, ev[i].status,
				      (ssize_t)ev[i].ret);
		}
	}
	cuFileBatchIODestroy(b);
	printf("batch: %u entries %s\n", have, op == CUFILE_READ ? "read" : "written");
}

static struct number {
	size_t size;
	off_t off, buf_off;
	ssize_t bytes;
	unsigned int op;
} number[OPS];

/* In stream order: the numbers of this operation are set only now. */
static void set_numbers(void *arg)
{
	struct number *n = arg;

	n->size = OP_BYTES - n->op % 7;
	n->off = n->op * OP_BYTES + n->op % 5;
	n->buf_off = n->op * OP_BYTES;
}

static void streams(void)
{
	static unsigned char before[OP_BYTES];
	CUstream s[2];
	unsigned int i;

	clear(0);
	for (i = 0; i < 2; i++)
		cuda(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	for (i = 0; i < OPS; i++) {
		number[i].op = i;
		number[i].size = OP_BYTES;
		cuda(cuLaunchHostFunc(s[i % 2], set_numbers, &number[i]), "cuLaunchHostFunc");
		cufile(cuFileReadAsync(fh, (void *)(uintptr_t)mem, &number[i].size,
				       &number[i].off, &number[i].buf_off, &number[i].bytes,
				       s[i % 2]), "cuFileReadAsync");
	}
	/* behind the reads: this sees their bytes, and they do not see what follows it */
	cuda(cuMemcpyDtoHAsync(before, mem + OP_BYTES * (OPS - 2), OP_BYTES, s[0]),
	     "cuMemcpyDtoHAsync");
	cuda(cuMemsetD8Async(mem + OP_BYTES * (OPS - 2), 0x11, OP_BYTES, s[0]), "cuMemsetD8Async");
	for (i = 0; i < 2; i++)
		cuda(cuStreamSynchronize(s[i]), "cuStreamSynchronize");
	for (i = 0; i < OPS; i++) {
		if (number[i].bytes != (ssize_t)number[i].size)
			t_die("stream operation %u gave %zd, expected %zu", i, number[i].bytes,
			      number[i].size);
		if (i != OPS - 2)
			compare(number[i].buf_off, number[i].off, number[i].size, "stream read");
	}
	if (memcmp(before, want + number[OPS - 2].off, number[OPS - 2].size))
		t_die("a copy behind a stream read does not see its bytes");
	t_gpu_get(got, mem + OP_BYTES * (OPS - 2), OP_BYTES);
	for (i = 0; i < OP_BYTES; i++)
		if (got[i] != 0x11)
			t_die("a stream read came after the fill behind it (byte %u)", i);
	for (i = 0; i < 2; i++)
		cuda(cuStreamDestroy(s[i]), "cuStreamDestroy");
	printf("streams: %d reads on 2 streams, numbers set in stream order\n", OPS);
}

int main(int argc, char **argv)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct ogds_plan plan = OGDS_PLAN_INIT;
	bool direct = argc == 3 && !strcmp(argv[2], "--direct");
	struct t_gpu g;
	int i;

	if (argc != 2 && !direct) {
		fputs("usage: cufile_async FILE [--direct]\n", stderr);
		return 2;
	}
	t_gpu_open(&g, 0);
	want = malloc(SIZE);
	got = malloc(SIZE);
	mem = t_gpu_alloc(SIZE);
	t_pattern_fill(want, SIZE, 99, 0);
	t_gpu_put(mem, want, SIZE);
	d.handle.fd = t_open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	cufile(cuFileHandleRegister(&fh, &d), "cuFileHandleRegister");
	cufile(cuFileBufRegister((void *)(uintptr_t)mem, SIZE, 0), "cuFileBufRegister");
	batch(CUFILE_WRITE);
	clear(0);
	batch(CUFILE_READ);
	for (i = 0; i < PIECES; i++)
		compare(i * PIECE, i * PIECE, i % 3 == 1 ? PIECE - 1 : PIECE, "batch read");
	if (ogds_explain(fh, (void *)(uintptr_t)mem, SIZE, 0, &plan))
		t_die("ogds_explain: no answer");
	if (direct && plan.whole_direct != SIZE)
		t_die("only %llu bytes would go direct: %s", (unsigned long long)plan.whole_direct,
		      ogds_reason_text(plan.piece[0].reason));
	streams();
	cufile(cuFileBufDeregister((void *)(uintptr_t)mem), "cuFileBufDeregister");
	streams();
	cuFileHandleDeregister(fh);
	close(d.handle.fd);
	t_gpu_free(mem);
	cufile(cuFileDriverClose(), "cuFileDriverClose");
	printf("async OK\n");
	return 0;
}
