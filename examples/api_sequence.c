// SPDX-License-Identifier: MIT
/*
 * api_sequence.c - one request of each kind, and which way its bytes went.
 *
 *   api_sequence FILE
 *
 * Makes FILE (8 MiB) and prints a line for each route a step took: `route bytes  what`,
 * bytes in decimal. Where no direct route exists the lines say bounce instead of nvfs and
 * staged, followed by the reason. Exit status: 0, or 1 when a step failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>

#include "cufile.h"
#include "opengds.h"

#define MIB (1024UL * 1024)
#define FILE_SIZE (8 * MIB)

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void cuda(cudaError_t res, const char *what)
{
	if (res != cudaSuccess)
		die("%s: %s", what, cudaGetErrorString(res));
}

static void cufile(CUfileError_t status, const char *what)
{
	if (status.err != CU_FILE_SUCCESS)
		die("%s: %d: %s", what, status.err, cufileop_status_error(status.err));
}

static const char *io_error(int err)
{
	return IS_CUFILE_ERR(err) ? CUFILE_ERRSTR(err) : strerror(err);
}

/* A file whose blocks are on the drive: nothing of it is a hole or still in memory. */
static int make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0664);
	char *buf = malloc(MIB);
	size_t at;

	if (fd < 0)
		die("open %s: %s", path, strerror(errno));
	if (!buf)
		die("out of memory");
	for (at = 0; at < FILE_SIZE; at += MIB) {
		memset(buf, 'a' + at / MIB, MIB);
		if (pwrite(fd, buf, MIB, at) != (ssize_t)MIB)
			die("write %s: %s", path, strerror(errno));
	}
	free(buf);
	if (fsync(fd))
		die("fsync %s: %s", path, strerror(errno));
	close(fd);
	fd = open(path, O_RDWR | O_DIRECT);
	if (fd < 0)
		die("open %s with O_DIRECT: %s", path, strerror(errno));
	return fd;
}

/* The report is this thread's: nobody else's request can come between. */
static void print_last(const char *what)
{
	struct ogds_report r = OGDS_REPORT_INIT;
	int i;

	if (ogds_last_io(&r))
		die("ogds_last_io: not known to this library");
	for (i = 0; i < OGDS_ROUTES; i++)
		if (r.bytes[i])
			printf("%-7s %10" PRIu64 "  %s\n", ogds_route_name(i), r.bytes[i], what);
	if (r.reason)
		printf("%-7s %10s  %s: %s\n", "", "", ogds_reason_id(r.reason),
		       ogds_reason_text(r.reason));
}

static void read_step(CUfileHandle_t fh, void *base, size_t size, off_t off, off_t buf_off,
		      const char *what)
{
	ssize_t n = cuFileRead(fh, base, size, off, buf_off);

	if (n < 0)
		die("%s: %s", what, io_error(errno));
	if (n != (ssize_t)size)
		die("%s: %zd bytes instead of %zu", what, n, size);
	print_last(what);
}

static void write_step(CUfileHandle_t fh, const void *base, size_t size, off_t off,
		       off_t buf_off, const char *what)
{
	ssize_t n = cuFileWrite(fh, base, size, off, buf_off);

	if (n < 0)
		die("%s: %s", what, io_error(errno));
	if (n != (ssize_t)size)
		die("%s: %zd bytes instead of %zu", what, n, size);
	print_last(what);
}

/* What would happen, without any I/O: the pieces in file order, each with its reason. */
static void explain_step(CUfileHandle_t fh, const void *ptr, size_t size, off_t off)
{
	struct ogds_plan plan = OGDS_PLAN_INIT;
	uint32_t i;

	plan.op = OGDS_OP_READ;
	if (ogds_explain(fh, ptr, size, off, &plan))
		die("ogds_explain: the handle is not known");
	printf("%-7s %10" PRIu64 "  plan: whole blocks, %" PRIu64 " of them direct\n", "plan",
	       plan.whole_bytes, plan.whole_direct);
	for (i = 0; i < plan.npieces; i++)
		printf("%-7s %10" PRIu64 "  plan: at %" PRId64 "%s%s\n",
		       ogds_route_name(plan.piece[i].route), plan.piece[i].size,
		       plan.piece[i].file_off, plan.piece[i].reason ? ": " : "",
		       plan.piece[i].reason ? ogds_reason_id(plan.piece[i].reason) : "");
}

/* Strict: what would not go direct is refused, with the reason, instead of going another way. */
static void strict_step(CUfileHandle_t fh, void *base)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	if (ogds_handle_set_strict(fh, true))
		die("ogds_handle_set_strict: the handle is not known");
	if (cuFileRead(fh, base, MIB, 0, 0) == (ssize_t)MIB) {
		print_last("read, strict");
		return;
	}
	if (errno != CU_FILE_IO_NOT_SUPPORTED)
		die("read, strict: %s", io_error(errno));
	ogds_last_io(&r);
	printf("%-7s %10d  read, strict: refused: %s: %s; %s\n", "none", 0,
	       ogds_reason_id(r.reason), ogds_reason_text(r.reason), ogds_reason_remedy(r.reason));
}

int main(int argc, char **argv)
{
	CUfileDescr_t descr = { 0 };
	void *mine, *other, *host;
	CUfileHandle_t fh;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: api_sequence FILE\n");
		return 2;
	}
	fd = make_file(argv[1]);
	cufile(cuFileDriverOpen(), "cuFileDriverOpen");
	descr.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
	descr.handle.fd = fd;
	cufile(cuFileHandleRegister(&fh, &descr), "cuFileHandleRegister");

	cuda(cudaMalloc(&mine, 4 * MIB), "cudaMalloc");
	cuda(cudaMalloc(&other, 4 * MIB), "cudaMalloc");
	cuda(cudaMallocHost(&host, MIB), "cudaMallocHost");
	cufile(cuFileBufRegister(mine, 4 * MIB, 0), "cuFileBufRegister");

	/* registered and aligned alike: the drive writes into this very memory */
	read_step(fh, mine, 2 * MIB, 1 * MIB, 0, "read, registered, aligned");
	write_step(fh, mine, 2 * MIB, 4 * MIB, 0, "write, registered, aligned");

	/* a pointer inside a registered range is found whichever way it is told */
	read_step(fh, (char *)mine + 4096, 64 * 1024, 4096, 0, "read, pointer moved on");
	read_step(fh, mine, 64 * 1024, 4096, 4096, "read, the same by bufPtr_offset");

	/* not registered: into pinned GPU memory of the library, then a copy in the GPU */
	read_step(fh, other, 2 * MIB, 0, 0, "read, not registered");

	/* no alignment at all: whole blocks direct, the edges through host memory */
	read_step(fh, mine, 1 * MIB, 1000, 3, "read, 1 MiB at byte 1000");
	write_step(fh, mine, 1 * MIB, 5 * MIB + 7, 77, "write, 1 MiB at an odd byte");
	read_step(fh, mine, 100, 5000, 0, "read, 100 bytes: less than a block");

	/* host pointers are fine, too */
	read_step(fh, host, MIB, 0, 0, "read into host memory");

	explain_step(fh, (char *)mine + 3, 1 * MIB, 1000);
	strict_step(fh, mine);

	cufile(cuFileBufDeregister(mine), "cuFileBufDeregister");
	cuFileHandleDeregister(fh);
	cufile(cuFileDriverClose(), "cuFileDriverClose");
	cuda(cudaFree(mine), "cudaFree");
	cuda(cudaFree(other), "cudaFree");
	cuda(cudaFreeHost(host), "cudaFreeHost");
	close(fd);
	return 0;
}
