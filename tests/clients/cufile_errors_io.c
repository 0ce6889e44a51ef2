// SPDX-License-Identifier: MIT
/* cufile_errors_io.c - cases of cufile_errors: buffers and requests. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_errors.h"
#include "opengds.h"

/* -- buffers -- */

static void buffer_null(struct t *t)
{
	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_gpu(t);
	e_object(t, "%p", e_mem(t));
	e_want(t, "NULL", cuFileBufRegister(NULL, M, 0), CU_FILE_INVALID_VALUE);
	e_want(t, "length 0", cuFileBufRegister(e_mem(t), 0, 0), CU_FILE_INVALID_VALUE);
}

static void buffer_twice(struct t *t)
{
	e_gpu(t);
	e_object(t, "%p", e_mem(t));
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M, 0), 0);
	e_want(t, "the same base", cuFileBufRegister(e_mem(t), M / 2, 0),
	     CU_FILE_MEMORY_ALREADY_REGISTERED);
	e_want(t, "a part of it", cuFileBufRegister((char *)e_mem(t) + M / 2, M / 4, 0), 0);
	e_want(t, "Deregister of the part", cuFileBufDeregister((char *)e_mem(t) + M / 2), 0);
	e_want(t, "Deregister", cuFileBufDeregister(e_mem(t)), 0);
	e_want(t, "the same base after Deregister", cuFileBufRegister(e_mem(t), M, 0), 0);
}

static void buffer_beyond(struct t *t)
{
	e_gpu(t);
	e_object(t, "%p", e_mem(t));
	e_want(t, "more than the allocation", cuFileBufRegister(e_mem(t), 2 * M, 0),
	     CU_FILE_CUDA_POINTER_RANGE_ERROR);
	e_want(t, "a range that leaves it",
	     cuFileBufRegister((char *)e_mem(t) + M - 4096, 8192, 0),
	     CU_FILE_CUDA_POINTER_RANGE_ERROR);
}

static void buffer_limit(struct t *t)
{
	CUfileError_t e;

	e_gpu(t);
	e_object(t, "%p", e_mem(t));
	e_want(t, "cuFileDriverSetMaxPinnedMemSize", cuFileDriverSetMaxPinnedMemSize(64), 0);
	e = cuFileBufRegister(e_mem(t), M, 0);
	if (e.err != CU_FILE_INVALID_MAPPING_SIZE && e.err != CU_FILE_GPU_MEMORY_PINNING_FAILED)
		e_breach(t, "1 MiB with a limit of 64 KB gave %d, expected 5016 or 5036", e.err);
}

static void buffer_host(struct t *t)
{
	void *pageable = malloc(M), *pinned;

	e_gpu(t);
	if (!pageable || cuMemAllocHost(&pinned, M) != CUDA_SUCCESS)
		t_die("out of memory");
	e_want(t, "pageable memory", cuFileBufRegister(pageable, M, 0), 0);
	e_want(t, "pinned memory", cuFileBufRegister(pinned, M, 0), 0);
	e_want(t, "Deregister, pageable", cuFileBufDeregister(pageable), 0);
	e_want(t, "Deregister, pinned", cuFileBufDeregister(pinned), 0);
	free(pageable);
}

static void buffer_flags(struct t *t)
{
	e_gpu(t);
	e_want(t, "flags 1", cuFileBufRegister(e_mem(t), 65536, 1), 0);
	e_want(t, "flags -1", cuFileBufRegister((char *)e_mem(t) + 65536, 65536, -1), 0);
}

static void deregister_unknown(struct t *t)
{
	e_want(t, "NULL, never open", cuFileBufDeregister(NULL), CU_FILE_INVALID_VALUE);
	e_gpu(t);
	e_want(t, "never open", cuFileBufDeregister(e_mem(t)), CU_FILE_DRIVER_CLOSING);
	e_want_uses(t, "after that", 0);
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M, 0), 0);
	e_object(t, "%p", (void *)((char *)e_mem(t) + 4096));
	e_want(t, "NULL", cuFileBufDeregister(NULL), CU_FILE_INVALID_VALUE);
	e_want(t, "not the base", cuFileBufDeregister((char *)e_mem(t) + 4096),
	     CU_FILE_MEMORY_NOT_REGISTERED);
	e_want(t, "cuFileDriverClose", cuFileDriverClose(), 0);
	e_want(t, "after the last close", cuFileBufDeregister(e_mem(t)), CU_FILE_DRIVER_CLOSING);
}

/* A real library hangs here; the alarm tells. */
static void free_registered(struct t *t)
{
	e_gpu(t);
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M, 0), 0);
	t_gpu_free(t->mem);
	e_want(t, "Deregister of freed memory", cuFileBufDeregister(e_mem(t)), 0);
}

/* -- requests -- */

static void io_null(struct t *t)
{
	e_file(t, O_RDWR);
	e_object(t, "NULL");
	e_want_io(t, "NULL handle", cuFileRead(NULL, e_mem(t), M, 0, 0), -1, EINVAL);
	e_want_io(t, "NULL handle", cuFileWrite(NULL, e_mem(t), M, 0, 0), -1, EINVAL);
	e_want_io(t, "NULL buffer", cuFileRead(t->fh, NULL, M, 0, 0), -1, EINVAL);
	e_want_io(t, "NULL buffer", cuFileWrite(t->fh, NULL, M, 0, 0), -1, EINVAL);
}

static void io_never(struct t *t)
{
	e_gpu(t);
	e_object(t, "%p", NEVER);
	e_want_io(t, "cuFileRead", cuFileRead(NEVER, e_mem(t), M, 0, 0), -1,
		CU_FILE_HANDLE_NOT_REGISTERED);
	e_want_io(t, "cuFileWrite", cuFileWrite(NEVER, e_mem(t), M, 0, 0), -1,
		CU_FILE_HANDLE_NOT_REGISTERED);
}

static void io_deregistered(struct t *t)
{
	e_file(t, O_RDWR);
	e_object(t, "%p", t->fh);
	cuFileHandleDeregister(t->fh);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, 0, 0), -1,
		CU_FILE_HANDLE_NOT_REGISTERED);
	e_want_io(t, "cuFileWrite", cuFileWrite(t->fh, e_mem(t), M, 0, 0), -1,
		CU_FILE_HANDLE_NOT_REGISTERED);
	e_want_uses(t, "after that", 1);
}

static void io_size0(struct t *t)
{
	e_file(t, O_RDWR);
	e_want_io(t, "cuFileRead of 0", cuFileRead(t->fh, e_mem(t), 0, 0, 0), 0, 0);
	e_want_io(t, "cuFileWrite of 0", cuFileWrite(t->fh, e_mem(t), 0, 4096, 0), 0, 0);
}

static void io_file_offset(struct t *t)
{
	e_file(t, O_RDWR);
	e_object(t, "offset -1:");
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, -1, 0), -1, CU_FILE_INVALID_VALUE);
	e_want_io(t, "cuFileWrite", cuFileWrite(t->fh, e_mem(t), M, -4096, 0), -1,
		CU_FILE_INVALID_VALUE);
}

static void io_buffer_offset(struct t *t)
{
	e_file(t, O_RDWR);
	e_object(t, "offset -4096:");
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, (char *)e_mem(t) + 4096, 4096, 0, -4096), -1,
		CU_FILE_INTERNAL_ERROR);
	e_want_io(t, "cuFileWrite", cuFileWrite(t->fh, (char *)e_mem(t) + 4096, 4096, 0, -1), -1,
		CU_FILE_INTERNAL_ERROR);
}

static void io_write_only(struct t *t)
{
	e_file(t, O_WRONLY);
	e_object(t, "%s", t->path);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, 0, 0), -1,
		CU_FILE_INVALID_FILE_OPEN_FLAG);
}

static void io_read_only(struct t *t)
{
	e_file(t, O_RDONLY);
	e_object(t, "%s", t->path);
	e_want_io(t, "cuFileWrite", cuFileWrite(t->fh, e_mem(t), M, 0, 0), -1,
		CU_FILE_INVALID_FILE_OPEN_FLAG);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
}

static void io_past_range(struct t *t)
{
	e_file(t, O_RDWR);
	e_object(t, "%p", e_mem(t));
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M / 2, 0), 0);
	e_want_io(t, "past the range", cuFileRead(t->fh, e_mem(t), M, 0, 0), -1,
		CU_FILE_INVALID_MAPPING_RANGE);
	e_want_io(t, "past it, by offset", cuFileWrite(t->fh, e_mem(t), 4096, 0, M / 2 - 1), -1,
		CU_FILE_INVALID_MAPPING_RANGE);
	e_want_io(t, "up to its end", cuFileRead(t->fh, e_mem(t), 4096, 0, M / 2 - 4096), 4096, 0);
}

static void io_past_allocation(struct t *t)
{
	e_file(t, O_RDWR);
	e_object(t, "%p", (void *)((char *)e_mem(t) + M - 4096));
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, (char *)e_mem(t) + M - 4096, 8192, 0, 0), -1, EIO);
	e_want_io(t, "cuFileWrite", cuFileWrite(t->fh, e_mem(t), 8192, 0, M - 4096), -1, EIO);
}

static void io_eof(struct t *t)
{
	off_t last = FILE_SIZE - 5000;

	e_file(t, O_RDWR);
	e_want_io(t, "a read across the end", cuFileRead(t->fh, e_mem(t), 65536, last, 0), 5000, 0);
	e_want_bytes(t, 5000, last);
	e_want_io(t, "a read at the end", cuFileRead(t->fh, e_mem(t), 4096, FILE_SIZE, 0), 0, 0);
	e_want_io(t, "a read past it", cuFileRead(t->fh, e_mem(t), 4096, 8 * M, 0), 0, 0);
}

static void io_unaligned(struct t *t)
{
	e_file(t, O_RDWR);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), 12345, 777, 0), 12345, 0);
	e_want_bytes(t, 12345, 777);
	e_want_io(t, "cuFileWrite", cuFileWrite(t->fh, e_mem(t), 12345, 777, 0), 12345, 0);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	e_want_bytes(t, M, 0);
}

/* Past the end: the file grows, and what lies between is zeros. */
static void io_extend(struct t *t)
{
	unsigned char buf[8192];
	size_t i;

	e_file(t, O_RDWR);
	e_want_io(t, "a write past the end", cuFileWrite(t->fh, e_mem(t), 10, 3 * M + 1, 0), 10, 0);
	if (lseek(t->fd, 0, SEEK_END) != 3 * (off_t)M + 11)
		e_breach(t, "the file does not end where the write did");
	t_gpu_put(t->mem, memset(buf, 0xee, sizeof(buf)), sizeof(buf));
	e_want_io(t, "a read of the hole", cuFileRead(t->fh, e_mem(t), 8192, 2 * M, 0), 8192, 0);
	t_gpu_get(buf, t->mem, sizeof(buf));
	for (i = 0; i < sizeof(buf) && !buf[i]; i++)
		;
	if (i < sizeof(buf))
		e_breach(t, "byte %zu of a hole reads as %02x", i, buf[i]);
}

static void io_larger_than_piece(struct t *t)
{
	e_want(t, "cuFileDriverSetMaxDirectIOSize", cuFileDriverSetMaxDirectIOSize(64), 0);
	e_file(t, O_RDWR | O_DIRECT);
	e_want(t, "cuFileBufRegister", cuFileBufRegister(e_mem(t), M, 0), 0);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	e_want_bytes(t, M, 0);
}

/* What somebody wrote through the page cache and did not sync is in the file. */
static void io_page_cache(struct t *t)
{
	unsigned char head[4096];
	size_t i;
	int fd;

	for (i = 0; i < sizeof(head); i++)
		head[i] = e_byte_at(i + 3);
	fd = t_open(t->path, O_RDWR);
	if (pwrite(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head))
		t_die("%s: write: %s", t->path, strerror(errno));
	e_file(t, O_RDWR | O_DIRECT);
	e_want_io(t, "cuFileRead", cuFileRead(t->fh, e_mem(t), 65536, 0, 0), 65536, 0);
	e_want_bytes(t, sizeof(head), 3);
	t_gpu_get(head, t->mem + 4096, sizeof(head));
	if (head[0] != e_byte_at(4096))
		e_breach(t, "the block behind the one in the page cache is wrong");
}

static void io_other_card(struct t *t)
{
	struct t_gpu second;
	int n;

	e_file(t, O_RDWR);
	if (cuDeviceGetCount(&n) != CUDA_SUCCESS || n < 2)
		t_die("this case needs two GPUs: vm/run --gpus 2");
	t_gpu_open(&second, 1);
	t->mem = t_gpu_alloc(M);
	if (cuCtxSetCurrent(t->gpu.ctx) != CUDA_SUCCESS)
		t_die("cuCtxSetCurrent failed");
	e_want_io(t, "a read into the other GPU", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	if (cuCtxSetCurrent(second.ctx) != CUDA_SUCCESS)
		t_die("cuCtxSetCurrent failed");
	e_want_bytes(t, M, 0);
}

/* Whole blocks are refused where nothing goes direct; less than a block is not. */
static void strict(struct t *t)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	e_object(t, "%s", t->path);
	e_want_io(t, "a strict read", cuFileRead(t->fh, e_mem(t), M, 0, 0), -1,
		  CU_FILE_IO_NOT_SUPPORTED);
	if (ogds_last_io(&r) || !r.reason || r.result != -1 || r.error != CU_FILE_IO_NOT_SUPPORTED)
		e_breach(t, "the report of a refusal: result %lld, error %d, reason %u",
			 (long long)r.result, r.error, r.reason);
	e_want_io(t, "a strict write", cuFileWrite(t->fh, e_mem(t), M, 0, 0), -1,
		  CU_FILE_IO_NOT_SUPPORTED);
	e_want_io(t, "less than a block", cuFileRead(t->fh, e_mem(t), 100, 10, 0), 100, 0);
}

static void strict_handle(struct t *t)
{
	e_file(t, O_RDWR);
	e_want_io(t, "a read", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
	if (ogds_handle_set_strict(t->fh, true))
		e_breach(t, "ogds_handle_set_strict failed");
	strict(t);
	if (ogds_handle_set_strict(t->fh, false))
		e_breach(t, "ogds_handle_set_strict failed");
	e_want_io(t, "a read", cuFileRead(t->fh, e_mem(t), M, 0, 0), M, 0);
}

static void strict_environment(struct t *t)
{
	e_file(t, O_RDWR);
	strict(t);
}

/* The header: unknown handles and sizes are -EINVAL, and nothing is said of them. */
static void extras_invalid(struct t *t)
{
	struct ogds_report r = { .struct_size = 1 };
	struct ogds_plan p = OGDS_PLAN_INIT;

	e_gpu(t);
	if (ogds_handle_set_strict(NEVER, true) != -EINVAL)
		e_breach(t, "ogds_handle_set_strict of no handle is not -EINVAL");
	if (ogds_explain(NEVER, e_mem(t), M, 0, &p) != -EINVAL)
		e_breach(t, "ogds_explain of no handle is not -EINVAL");
	if (ogds_last_io(&r) != -EINVAL || ogds_last_io(NULL) != -EINVAL)
		e_breach(t, "ogds_last_io of an unknown size is not -EINVAL");
	p.struct_size = 8;
	e_file(t, O_RDWR);
	if (ogds_explain(t->fh, e_mem(t), M, 0, &p) != -EINVAL)
		e_breach(t, "ogds_explain of an unknown size is not -EINVAL");
}

static void poll_threshold(struct t *t)
{
	e_want(t, "cuFileDriverOpen", cuFileDriverOpen(), 0);
	e_object(t, "cuFileDriverSetPollMode");
	e_want(t, "a threshold of 5 KB", cuFileDriverSetPollMode(true, 5),
	     CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
	e_want(t, "a threshold of 8 KB", cuFileDriverSetPollMode(true, 8), 0);
}

const struct kase io_kases[] = {
	{ "buffer-null", buffer_null, "ERROR" },
	{ "buffer-twice", buffer_twice, "ERROR" },
	{ "buffer-beyond", buffer_beyond, "ERROR" },
	{ "buffer-limit", buffer_limit, "ERROR", MODULE },
	{ "buffer-host", buffer_host },
	{ "buffer-flags", buffer_flags },
	{ "deregister-unknown", deregister_unknown, "ERROR" },
	{ "free-registered", free_registered },
	{ "io-null", io_null, "ERROR" },
	{ "io-never", io_never, "ERROR" },
	{ "io-deregistered", io_deregistered, "ERROR" },
	{ "io-size0", io_size0 },
	{ "io-file-offset", io_file_offset, "ERROR" },
	{ "io-buffer-offset", io_buffer_offset, "ERROR" },
	{ "io-write-only", io_write_only, "ERROR" },
	{ "io-read-only", io_read_only, "ERROR" },
	{ "io-past-range", io_past_range, "ERROR" },
	{ "io-past-allocation", io_past_allocation, "ERROR" },
	{ "io-eof", io_eof },
	{ "io-unaligned", io_unaligned },
	{ "io-extend", io_extend },
	{ "io-larger-than-piece", io_larger_than_piece },
	{ "io-page-cache", io_page_cache },
	{ "io-other-card", io_other_card, NULL, TWO_GPUS, "GPU_SIM_HOST_GPUS=2" },
	{ "strict-handle", strict_handle, "ERROR", NO_MODULE },
	{ "strict-environment", strict_environment, "ERROR", NO_MODULE, "OPENGDS_STRICT=1" },
	{ "extras-invalid", extras_invalid },
	{ "poll-threshold", poll_threshold, "ERROR" },
	{ NULL }
};
