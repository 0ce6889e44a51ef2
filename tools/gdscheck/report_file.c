// SPDX-License-Identifier: MIT
/*
 * report_file.c - gdscheck -f: registers a file and reads 4 KiB of it into each GPU, by libcufile.
 *
 * GPU memory is filled with a pattern first, so that what is compared afterwards was read. The
 * library's own account, where it has one, tells which way the bytes went.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cufile_load.h"
#include "gdscheck.h"
#include "gpu.h"
#include "read.h"

#define BYTES 4096	/* of a read */
#define GPU_PAGE 65536	/* of an allocation, so that it can be pinned */
#define ROUNDS 64	/* reads; their mean is printed */
#define POISON 0xa5

struct verify {
	struct gc_cufile cufile;
	CUfileHandle_t fh;
	unsigned char want[BYTES];
	size_t len;		/* of the file, BYTES at most */
	/* of the last read; of several GPUs, that of the first one which is not proven */
	struct ogds_report io;
	bool told, unproven;	/* the library gave that account; it proves nothing */
};

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The route that moved all bytes; OGDS_ROUTES: there is no single one */
static uint32_t only_route(const struct verify *v)
{
	uint32_t i;

	for (i = 0; i < OGDS_ROUTES; i++)
		if (v->io.bytes[i] == v->len)
			break;
	return i;
}

/* Proven: one direct route, and the module saw each of the bytes mapped for the drive. */
static void account(struct verify *v)
{
	if (v->unproven)
		return;
	v->io = (struct ogds_report)OGDS_REPORT_INIT;
	v->told = v->cufile.last_io && !v->cufile.last_io(&v->io);
	v->unproven = !v->told || !(1u << only_route(v) & OGDS_DIRECT_MASK) ||
		      v->io.witnessed != v->len;
}

/* True: the file's bytes are in GPU memory. *us: mean of the reads */
static bool read_and_compare(struct verify *v, struct gpu_stream *s, uint64_t va, double *us)
{
	unsigned char got[BYTES];
	double start = 0;
	ssize_t n = 0;
	int i;

	memset(got, POISON, sizeof(got));
	if (gpu->to_gpu(s, va, got, BYTES) || gpu->sync(s))
		return false;
	for (i = 0; i <= ROUNDS; i++) {
		if (i == 1)	/* the first one makes what the others find */
			start = now_us();
		n = v->cufile.read(v->fh, (void *)(uintptr_t)va, v->len, 0, 0);
		if (n != (ssize_t)v->len)
			return false;
	}
	*us = (now_us() - start) / ROUNDS;
	account(v);
	return !gpu->to_host(s, got, va, BYTES) && !gpu->sync(s) && !memcmp(got, v->want, v->len);
}

/* "0000:34:00.0" as scripts know it: "34:00:00" */
static void short_address(const char *address, char *to, size_t len)
{
	unsigned int bus, dev, fn;

	if (sscanf(address, "%*x:%x:%x.%x", &bus, &dev, &fn) == 3)
		snprintf(to, len, "%02x:%02x:%02x", bus, dev, fn);
	else
		snprintf(to, len, "unknown");
}

static int one_gpu(struct verify *v, int dev, FILE *out)
{
	char address[FACTS_NAME] = "", name[FACTS_NAME];
	struct gpu_stream s;
	uint64_t pdevinfo, va;
	double us = 0;
	void *ctx;
	bool ok;

	if (gpu->pci(dev, &pdevinfo, address, sizeof(address)))
		address[0] = '\0';
	short_address(address, name, sizeof(name));
	if (gpu->primary_get(dev, &ctx) || gpu->stream_new(ctx, &s)) {
		fprintf(stderr, "gdscheck: GPU %d: no context can be made; see nvidia-smi\n", dev);
		return -EIO;
	}
	if (gpu->alloc(ctx, GPU_PAGE, &va)) {
		fprintf(stderr, "gdscheck: GPU %d: no memory for a read of 4 KiB; end other programs\n",
			dev);
		gpu->stream_free(&s);
		return -ENOMEM;
	}
	/* what cannot be registered is read all the same, another way */
	v->cufile.buf_register((void *)(uintptr_t)va, GPU_PAGE, 0);
	ok = read_and_compare(v, &s, va, &us);
	v->cufile.buf_deregister((void *)(uintptr_t)va);
	gpu->free(ctx, va);
	gpu->stream_free(&s);
	gpu->primary_put(dev);
	fprintf(out, "GPU %s : %.2f(us) read_verification: %s\n", name, us, ok ? "pass" : "fail");
	return ok ? 0 : -EIO;
}

static void route(const struct verify *v, FILE *out)
{
	uint32_t i = only_route(v);

	if (!v->unproven)
		fprintf(out, "route: proven %s\n", v->cufile.route_name(i));
	else if (v->told && i < OGDS_ROUTES && !(1u << i & OGDS_DIRECT_MASK))
		fprintf(out, "route: not proven, run --prove (this read took %s: %s)\n",
			v->cufile.route_name(i), v->cufile.reason_id(v->io.reason));
	else
		fputs("route: not proven, run --prove\n", out);
}

static int open_file(struct verify *v, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC), plain;
	ssize_t n = -1;

	plain = open(path, O_RDONLY | O_CLOEXEC);
	if (plain >= 0)
		n = pread(plain, v->want, BYTES, 0);
	if (n <= 0) {
		fprintf(stderr, "gdscheck: %s: %s\n", path,
			n ? strerror(errno) : "the file is empty: name one that has bytes to read");
		if (plain >= 0)
			close(plain);
		if (fd >= 0)
			close(fd);
		return -EIO;
	}
	v->len = (size_t)n;
	if (fd < 0)
		return plain;
	close(plain);
	return fd;
}

static int each_gpu(struct verify *v, FILE *out)
{
	char what[GC_TEXT];
	int i, err = 0, one;

	if (gpu->open(what, sizeof(what))) {
		fprintf(stderr, "gdscheck: %s\n", what);
		return -ENODEV;
	}
	for (i = 0; i < gpu->count(); i++) {
		one = one_gpu(v, i, out);
		if (!err)
			err = one;
	}
	route(v, out);
	return err;
}

int gc_verify_file(const char *path, FILE *out)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct verify v = { 0 };
	CUfileError_t e;
	char why[GC_TEXT];
	int fd, err;

	if (gc_cufile_load(&v.cufile, why, sizeof(why))) {
		fprintf(stderr, "gdscheck: %s\n", why);
		return GC_EXIT_ERROR;
	}
	fd = open_file(&v, path);
	if (fd < 0)
		return GC_EXIT_ERROR;
	e = v.cufile.open();
	if (e.err != CU_FILE_SUCCESS) {
		fprintf(stderr, "gdscheck: cuFile driver open error: %d (%s)\n", (int)e.err,
			gc_cufile_text(e));
		close(fd);
		return GC_EXIT_ERROR;
	}
	descr.handle.fd = fd;
	e = v.cufile.handle_register(&v.fh, &descr);
	if (e.err != CU_FILE_SUCCESS) {
		fprintf(stderr, "gdscheck: file register error: %s filename :%s\n",
			gc_cufile_text(e), path);
		err = -EIO;
	} else {
		fputs("GDS register success\ngenerating 4k read latency matrix :\n", out);
		err = each_gpu(&v, out);
		v.cufile.handle_deregister(v.fh);
	}
	v.cufile.close();
	close(fd);
	return err ? GC_EXIT_ERROR : GC_EXIT_OK;
}
