// SPDX-License-Identifier: MIT
/*
 * hello_gds.c - GPU memory to a file and back, in the form of a published walk-through.
 *
 *   hello_gds FILE [SIZE]          SIZE: bytes, or a number with K, M or G (1G)
 *
 * Opens the driver, makes a GPU buffer with a pattern in it, registers buffer and file,
 * writes the one to the other, clears the buffer, reads the file and compares. The file
 * stays. Its word at byte offset o (o a multiple of 8, little-endian) is the low 64 bits of
 * (o / 8 + 1) * 0x9e3779b97f4a7c15, so anybody can check it. Exit status: 0 verified,
 * 1 something failed, 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cuda_runtime.h>

#include "cufile.h"
#include "opengds.h"

#define CHUNK (8UL * 1024 * 1024)	/* host memory used to fill and to compare */

struct hello {
	const char *path;
	size_t size;
	int fd;
	void *gpu;
	uint64_t *host;			/* CHUNK bytes */
	CUfileHandle_t fh;
	bool driver, buffer, handle;	/* what is to be undone */
	uint64_t route[2][OGDS_ROUTE_SLOTS];	/* bytes, by enum ogds_op and enum ogds_route */
};

static int cuda_failed(const char *what, cudaError_t res)
{
	if (res == cudaSuccess)
		return 0;
	fprintf(stderr, "%s: %s: %s\n", what, cudaGetErrorName(res), cudaGetErrorString(res));
	return -1;
}

static int cufile_failed(const char *what, CUfileError_t status)
{
	if (status.err == CU_FILE_SUCCESS)
		return 0;
	if (IS_CUDA_ERR(status))
		fprintf(stderr, "%s: %d: %s (CUDA error %d)\n", what, status.err,
			cufileop_status_error(status.err), (int)CU_FILE_CUDA_ERR(status));
	else
		fprintf(stderr, "%s: %d: %s\n", what, status.err, cufileop_status_error(status.err));
	return -1;
}

/* errno after cuFileRead and cuFileWrite is a CUfileOpError or a system errno. */
static const char *io_error(int err)
{
	return IS_CUFILE_ERR(err) ? CUFILE_ERRSTR(err) : strerror(err);
}

static void pattern(uint64_t *word, size_t bytes, size_t off)
{
	uint64_t w = (off / sizeof(*word)) * 0x9e3779b97f4a7c15ULL;
	size_t i;

	for (i = 0; i < bytes / sizeof(*word); i++)
		word[i] = w += 0x9e3779b97f4a7c15ULL;
}

static int set_up(struct hello *h)
{
	CUfileDescr_t descr;

	if (cufile_failed("cuFileDriverOpen", cuFileDriverOpen()))
		return -1;
	h->driver = true;
	if (cuda_failed("cudaMalloc", cudaMalloc(&h->gpu, h->size)))
		return -1;

	/* O_DIRECT is what tells the library that the page cache is not wanted */
	h->fd = open(h->path, O_CREAT | O_RDWR | O_DIRECT, 0664);
	if (h->fd < 0) {
		fprintf(stderr, "open %s: %s\n", h->path, strerror(errno));
		return -1;
	}
	if (ftruncate(h->fd, 0)) {
		fprintf(stderr, "truncate %s: %s\n", h->path, strerror(errno));
		return -1;
	}
	if (cufile_failed("cuFileBufRegister", cuFileBufRegister(h->gpu, h->size, 0)))
		return -1;
	h->buffer = true;

	memset(&descr, 0, sizeof(descr));
	descr.type = CU_FILE_handle_TYPE_OPAQUE_FD;
	descr.cookie = (void *)(intptr_t)h->fd;
	if (cufile_failed("cuFileHandleRegister", cuFileHandleRegister(&h->fh, &descr)))
		return -1;
	h->handle = true;
	return 0;
}

static void tear_down(struct hello *h)
{
	if (h->handle)
		cuFileHandleDeregister(h->fh);
	if (h->buffer)
		cufile_failed("cuFileBufDeregister", cuFileBufDeregister(h->gpu));
	if (h->fd >= 0)
		close(h->fd);
	if (h->gpu)
		cuda_failed("cudaFree", cudaFree(h->gpu));
	if (h->driver)
		cufile_failed("cuFileDriverClose", cuFileDriverClose());
	free(h->host);
}

/* cuFile is ordered with no stream: what fills the buffer has to be done before. */
static int wait_for_gpu(void)
{
	return cuda_failed("cudaDeviceSynchronize", cudaDeviceSynchronize());
}

static int fill(struct hello *h)
{
	size_t at, n;

	for (at = 0; at < h->size; at += n) {
		n = h->size - at < CHUNK ? h->size - at : CHUNK;
		pattern(h->host, n, at);
		if (cuda_failed("cudaMemcpy to the GPU",
				cudaMemcpy((char *)h->gpu + at, h->host, n,
					   cudaMemcpyHostToDevice)))
			return -1;
	}
	/* from pageable memory cudaMemcpy returns before the last bytes have arrived */
	return wait_for_gpu();
}

static int clear(struct hello *h)
{
	if (cuda_failed("cudaMemset", cudaMemset(h->gpu, 0, h->size)))
		return -1;
	return wait_for_gpu();
}

static int compare(struct hello *h)
{
	uint64_t *want = malloc(CHUNK);
	size_t at, n, i;
	int bad = 0;

	if (!want) {
		fprintf(stderr, "out of memory\n");
		return -1;
	}
	for (at = 0; at < h->size && !bad; at += n) {
		n = h->size - at < CHUNK ? h->size - at : CHUNK;
		bad = cuda_failed("cudaMemcpy from the GPU",
				  cudaMemcpy(h->host, (char *)h->gpu + at, n,
					     cudaMemcpyDeviceToHost));
		pattern(want, n, at);
		if (bad || !memcmp(h->host, want, n))
			continue;
		for (i = 0; h->host[i] == want[i]; i++)
			;
		fprintf(stderr, "verify: byte %zu: %016" PRIx64 ", expected %016" PRIx64 "\n",
			at + i * sizeof(*want), h->host[i], want[i]);
		bad = -1;
	}
	free(want);
	return bad;
}

/* One call may move less than it was asked for, so this goes on until all is done. */
static int move(struct hello *h, enum ogds_op op)
{
	const char *name = op == OGDS_OP_WRITE ? "cuFileWrite" : "cuFileRead";
	struct ogds_report report = OGDS_REPORT_INIT;
	size_t done = 0;
	ssize_t n;
	int i;

	while (done < h->size) {
		if (op == OGDS_OP_WRITE)
			n = cuFileWrite(h->fh, h->gpu, h->size - done, done, done);
		else
			n = cuFileRead(h->fh, h->gpu, h->size - done, done, done);
		if (n <= 0) {
			fprintf(stderr, "%s at %zu of %s: %s\n", name, done, h->path,
				n ? io_error(errno) : "nothing moved");
			return -1;
		}
		ogds_last_io(&report);
		for (i = 0; i < OGDS_ROUTES; i++)
			h->route[op][i] += report.bytes[i];
		done += n;
	}
	if (report.reason)
		printf("%s: %s: %s; %s\n", name, ogds_reason_id(report.reason),
		       ogds_reason_text(report.reason), ogds_reason_remedy(report.reason));
	return 0;
}

static void print_routes(const struct hello *h)
{
	static const char *const name[] = { "read", "write" };
	int op, i;

	printf("routes:");
	for (op = OGDS_OP_WRITE; op >= OGDS_OP_READ; op--)
		for (i = 0; i < OGDS_ROUTES; i++)
			if (h->route[op][i])
				printf(" %s %s %" PRIu64, name[op], ogds_route_name(i),
				       h->route[op][i]);
	printf("\n");
}

/* Bytes, a whole number of words; 0: the text is no size. */
static size_t size_of(const char *text)
{
	static const char units[] = "KMG";
	unsigned long long v;
	const char *unit;
	char *end;

	v = strtoull(text, &end, 10);
	if (end == text)
		return 0;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		v <<= 10 * (unit - units + 1);
		end++;
	}
	return *end ? 0 : v & ~7ULL;
}

int main(int argc, char **argv)
{
	struct hello h = { .size = 1UL << 30, .fd = -1 };
	int bad;

	if (argc > 2)
		h.size = size_of(argv[2]);
	if (argc < 2 || argc > 3 || !h.size) {
		fprintf(stderr, "usage: hello_gds FILE [SIZE[K|M|G]]\n");
		return 2;
	}
	h.path = argv[1];
	h.host = malloc(CHUNK);
	if (!h.host) {
		fprintf(stderr, "out of memory\n");
		return 1;
	}
	bad = set_up(&h) || fill(&h) || move(&h, OGDS_OP_WRITE) || clear(&h) ||
	      move(&h, OGDS_OP_READ) || compare(&h);
	if (!bad) {
		print_routes(&h);
		printf("verify OK: %zu bytes\n", h.size);
	}
	tear_down(&h);
	return bad ? 1 : 0;
}
