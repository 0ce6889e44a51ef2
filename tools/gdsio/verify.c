// SPDX-License-Identifier: MIT
/*
 * gdsio_verify - is what cuFile puts into GPU memory what the file system reads?
 *
 * Nothing is written. Before each I/O the GPU memory holds the complement of what must come
 * (and so not a byte of it can be right by chance), after it exactly the bytes that were
 * asked for may have changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "number.h"
#include "report.h"
#include "told.h"

#define GUARD 4096
#define GPU_PAGE (64 * 1024ULL)

enum status { EXIT_OK, EXIT_BAD, EXIT_USAGE };

struct ask {
	const char *path;
	uint64_t gpu, buf_off, ptr_off, align, off, size, chunk, ios;
	bool sync, skip_register, verbose, fsync;
};

struct work {
	const struct ask *ask;
	int fd, plain_fd;
	uint64_t end;		/* of the file, bytes */
	CUfileHandle_t fh;
	CUdeviceptr alloc, buf;	/* buf: what is registered and passed, before ptr_off */
	CUstream stream;	/* of asynchronous ones */
	uint8_t *want, *found;	/* of the whole buffer, with the guard behind it */
	size_t room;		/* bytes of each */
	struct gdsio_tally tally;
};

static const char help[] =
	"usage: gdsio_verify -f FILE [-d GPU] -s SIZE [options]\n"
	"\n"
	"Reads a file by cuFile and by the file system and compares; writes nothing.\n"
	"  -f FILE    the file\n"
	"  -d GPU     its number (0)\n"
	"  -s SIZE    bytes of one I/O\n"
	"  -n COUNT   I/Os, one after another in the file, from its start again at its end (1)\n"
	"  -c SIZE    bytes of one call (all at once)\n"
	"  -o OFFSET  where the first I/O is in the file (0)\n"
	"  -t OFFSET  in the GPU buffer, as cuFile's argument (0)\n"
	"  -b OFFSET  of the pointer that cuFile gets from that of the buffer (0)\n"
	"  -g BYTES   the buffer begins so many bytes into a GPU page (0)\n"
	"  -m 1|0     cuFileRead, or cuFileReadAsync on a stream (1)\n"
	"  -S         do not register the buffer\n"
	"  -p         fsync the file first\n"
	"  -V         a line for each I/O\n"
	"  -v, -h     version, this help\n"
	"sizes have the suffixes K, M and G\n"
	"exit status: 0 all is equal; 1 it is not, or an error; 2 wrong usage\n";

/* -- the command line -- */

static int usage(const char *what, const char *text)
{
	gdsio_err("%s %s (gdsio_verify -h shows all options)", what, text);
	return -EINVAL;
}

static int take(struct ask *a, int opt, const char *text)
{
	const struct {
		char opt;
		uint64_t *to, min, max;
	} size[] = {
		{ 'd', &a->gpu, 0, 255 }, { 't', &a->buf_off, 0, 1ULL << 40 },
		{ 'b', &a->ptr_off, 0, 1ULL << 40 }, { 'g', &a->align, 0, GPU_PAGE - 1 },
		{ 'o', &a->off, 0, INT64_MAX / 2 }, { 's', &a->size, 1, 1ULL << 40 },
		{ 'c', &a->chunk, 1, 1ULL << 40 }, { 'n', &a->ios, 1, UINT32_MAX },
	};
	char name[] = { '-', (char)opt, '\0' };
	size_t i;

	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		if (size[i].opt != opt)
			continue;
		if (gdsio_parse_size(text, size[i].to) || *size[i].to < size[i].min ||
		    *size[i].to > size[i].max)
			return usage(name, "takes a number or a size, and not this one");
		return 0;
	}
	switch (opt) {
	case 'f': a->path = text; return 0;
	case 'm':
		if (strcmp(text, "0") && strcmp(text, "1"))
			return usage("-m", "takes 1 (synchronous) or 0 (asynchronous)");
		a->sync = *text == '1';
		return 0;
	case 'S': a->skip_register = true; return 0;
	case 'V': a->verbose = true; return 0;
	case 'p': a->fsync = true; return 0;
	case ':':
		name[1] = (char)optopt;
		return usage(name, "needs a value");
	default:
		name[1] = (char)optopt;
		return usage(name, "is no option");
	}
}

/* 1: help or version was told. */
static int parse(int argc, char **argv, struct ask *a)
{
	int opt;

	*a = (struct ask){ .ios = 1, .sync = true };
	opterr = 0;
	while ((opt = getopt(argc, argv, ":f:d:t:b:g:o:s:c:n:m:SVpvh")) != -1) {
		if (opt == 'h' || opt == 'v') {
			fputs(opt == 'h' ? help : "gdsio_verify version :" GDSIO_VERSION
			      " (OpenGDS)\n", stdout);
			return 1;
		}
		if (take(a, opt, optarg))
			return -EINVAL;
	}
	if (optind < argc)
		return usage(argv[optind], "is no option; name the file with -f");
	if (!a->path)
		return usage("which file?", "Give -f");
	if (!a->size)
		return usage("how many bytes?", "Give -s");
	if (!a->chunk || a->chunk > a->size)
		a->chunk = a->size;
	return 0;
}

/* -- what is needed -- */

static int open_file(struct work *w)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	const struct ask *a = w->ask;
	CUfileError_t status;
	off_t end;

	w->fd = open(a->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (w->fd < 0 && errno == EINVAL)
		w->fd = open(a->path, O_RDONLY | O_CLOEXEC);
	w->plain_fd = w->fd < 0 ? -1 : open(a->path, O_RDONLY | O_CLOEXEC);
	if (w->plain_fd < 0) {
		gdsio_err("%s: open: %s (%s)", a->path, strerror(errno), gdsio_errno_name(errno));
		return -EIO;
	}
	if (a->fsync && fsync(w->plain_fd)) {
		gdsio_err("%s: fsync: %s", a->path, strerror(errno));
		return -EIO;
	}
	end = lseek(w->plain_fd, 0, SEEK_END);
	if (end < 0 || (uint64_t)end < a->off + a->size) {
		gdsio_err("%s: %lld bytes long, but -o and -s reach to %" PRIu64 "; give smaller "
			  "ones", a->path, (long long)end, a->off + a->size);
		return -EIO;
	}
	w->end = (uint64_t)end;
	descr.handle.fd = w->fd;
	status = cuFileHandleRegister(&w->fh, &descr);
	if (!status.err)
		return 0;
	fprintf(stderr, "file register error: %s filename :%s\n",
		cufileop_status_error(status.err), a->path);
	return -EIO;
}

static int open_gpu(const struct ask *a)
{
	CUcontext ctx;
	CUdevice dev;
	int count = 0;

	if (gdsio_cuda(cuInit(0), "cuInit") ||
	    gdsio_cuda(cuDeviceGetCount(&count), "cuDeviceGetCount"))
		return -EIO;
	if ((int)a->gpu >= count) {
		gdsio_err("-d %" PRIu64 ": this machine has %d GPUs, numbered from 0", a->gpu,
			  count);
		return -EIO;
	}
	if (gdsio_cuda(cuDeviceGet(&dev, (int)a->gpu), "cuDeviceGet") ||
	    gdsio_cuda(cuDevicePrimaryCtxRetain(&ctx, dev), "cuDevicePrimaryCtxRetain"))
		return -EIO;
	return gdsio_cuda(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
}

static int open_buffer(struct work *w)
{
	const struct ask *a = w->ask;
	const size_t used = a->ptr_off + a->buf_off + a->size;
	CUfileError_t status;

	w->room = used + GUARD;
	w->want = malloc(w->room);
	w->found = malloc(w->room);
	if (!w->want || !w->found) {
		gdsio_err("%zu bytes of memory: %s; give a smaller -s", w->room, strerror(ENOMEM));
		return -EIO;
	}
	if (gdsio_cuda(cuMemAlloc(&w->alloc, w->room + 2 * GPU_PAGE), "GPU memory"))
		return -EIO;
	w->buf = (w->alloc + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE + a->align;
	if (!a->sync && gdsio_cuda(cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING), "a stream"))
		return -EIO;
	if (a->skip_register)
		return 0;
	status = cuFileBufRegister((void *)(uintptr_t)w->buf, used, 0);
	if (!status.err)
		return 0;
	fprintf(stderr, "buffer register error: %s GPU :%" PRIu64 " size :%zu\n",
		cufileop_status_error(status.err), a->gpu, used);
	return -EIO;
}

static int open_all(struct work *w)
{
	CUfileError_t status = cuFileDriverOpen();

	if (status.err) {
		fprintf(stderr, "cuFile driver open error: %d\n", (int)status.err);
		return -EIO;
	}
	return open_gpu(w->ask) || open_file(w) || open_buffer(w) ? -EIO : 0;
}

/* The process ends next: only what another one could see is taken back. */
static void close_all(struct work *w)
{
	if (w->buf && !w->ask->skip_register)
		cuFileBufDeregister((void *)(uintptr_t)w->buf);
	if (w->stream)
		cuStreamDestroy(w->stream);
	if (w->alloc)
		cuMemFree(w->alloc);
	if (w->fh)
		cuFileHandleDeregister(w->fh);
	cuFileDriverClose();
	free(w->want);
	free(w->found);
}

/* -- an I/O -- */

/* What the file system reads at off, into the place that cuFile is to fill. */
static int read_plain(struct work *w, uint64_t off)
{
	const struct ask *a = w->ask;
	uint8_t *at = w->want + a->ptr_off + a->buf_off;
	size_t done = 0;
	ssize_t n;

	while (done < a->size) {
		n = pread(w->plain_fd, at + done, a->size - done, (off_t)(off + done));
		if (n > 0) {
			done += n;
		} else if (!n || errno != EINTR) {
			gdsio_err("%s: read at %" PRIu64 ": %s", a->path, off + done,
				  n ? strerror(errno) : "the file ends there by now");
			return -EIO;
		}
	}
	return 0;
}

/* The complement where bytes must come, a pattern around it. */
static int poison(struct work *w)
{
	const struct ask *a = w->ask;
	const size_t from = a->ptr_off + a->buf_off;
	size_t i;

	memset(w->want, 0xa5, from);
	memset(w->want + from + a->size, 0xa5, w->room - from - a->size);
	memcpy(w->found, w->want, w->room);
	for (i = from; i < from + a->size; i++)
		w->found[i] = (uint8_t)~w->want[i];
	if (gdsio_cuda(cuMemcpyHtoD(w->buf, w->found, w->room), "copy to the GPU"))
		return -EIO;
	return gdsio_cuda(cuCtxSynchronize(), "wait for the GPU");
}

static int account(struct work *w)
{
	struct ogds_report io = OGDS_REPORT_INIT;
	int err = w->ask->sync ? ogds_last_io(&io) : ogds_handle_io(w->fh, &io);

	if (err) {
		gdsio_err("%s: the library does not tell which way the bytes went: %s",
			  w->ask->path, strerror(-err));
		return -EIO;
	}
	gdsio_tally_io(&w->tally, &io);
	return 0;
}

static ssize_t one_call(struct work *w, size_t size, off_t off, off_t buf_off)
{
	void *ptr = (void *)(uintptr_t)(w->buf + w->ask->ptr_off);
	CUfileError_t status;
	ssize_t got = 0;

	if (w->ask->sync) {
		got = cuFileRead(w->fh, ptr, size, off, buf_off);
		return got == -1 ? -errno : got;
	}
	status = cuFileReadAsync(w->fh, ptr, &size, &off, &buf_off, &got, w->stream);
	if (status.err)
		return -(ssize_t)status.err;
	return gdsio_cuda(cuStreamSynchronize(w->stream), "wait for the stream") ? -EIO : got;
}

static int read_cufile(struct work *w, uint64_t off)
{
	const struct ask *a = w->ask;
	uint64_t done = 0, step;
	ssize_t n;

	while (done < a->size) {
		step = a->size - done < a->chunk ? a->size - done : a->chunk;
		n = one_call(w, step, (off_t)(off + done), (off_t)(a->buf_off + done));
		if (n <= 0 || account(w)) {
			printf("cuFileRead returned error(ret=%zd, step_size=%" PRIu64
			       ", bytes_left=%" PRIu64 ")\n", n < 0 ? -1 : n, step,
			       a->size - done);
			gdsio_err("%s: read of %" PRIu64 " bytes at %" PRIu64 ": %s (%s)", a->path,
				  step, off + done, n < 0 ? gdsio_errno_text((int)-n) :
				  "nothing came", n < 0 ? gdsio_errno_name((int)-n) : "0");
			return -EIO;
		}
		done += n;
		w->tally.bytes += n;
	}
	return 0;
}

static int compare(struct work *w, uint64_t off)
{
	const struct ask *a = w->ask;
	const size_t from = a->ptr_off + a->buf_off;
	size_t i;

	if (gdsio_cuda(cuMemcpyDtoH(w->found, w->buf, w->room), "copy from the GPU"))
		return -EIO;
	if (!memcmp(w->want, w->found, w->room))
		return 0;
	for (i = 0; w->want[i] == w->found[i]; i++)
		;
	if (i < from || i >= from + a->size)
		gdsio_err("%s: the byte %zu of the buffer was changed, but the I/O fills %zu to "
			  "%zu", a->path, i, from, from + a->size - 1);
	else
		gdsio_err("%s: wrong data at offset %" PRIu64 ": the file system reads %02x, GPU "
			  "memory holds %02x%s", a->path, off + i - from, w->want[i], w->found[i],
			  w->found[i] == (uint8_t)~w->want[i] ? " (nothing came)" : "");
	return -EILSEQ;
}

static int one_io(struct work *w, uint64_t n)
{
	const struct ask *a = w->ask;
	const uint64_t regions = (w->end - a->off) / a->size;
	const uint64_t off = a->off + n % regions * a->size;
	int err;

	err = read_plain(w, off);
	if (!err)
		err = poison(w);
	if (!err)
		err = read_cufile(w, off);
	if (!err)
		err = compare(w, off);
	if (!err && a->verbose)
		printf("io %" PRIu64 " :file offset :%" PRIu64 " bytes :%" PRIu64 " equal\n", n, off,
		       a->size);
	return err;
}

int main(int argc, char **argv)
{
	static struct work w;
	struct ask a;
	uint64_t n;
	int err;

	err = parse(argc, argv, &a);
	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	printf("gpu index :%" PRIu64 ",file :%s, gpu buffer alignment :%" PRIu64
	       ", gpu buffer offset :%" PRIu64 ", gpu devptr offset :%" PRIu64
	       ", file offset :%" PRIu64 ", io_requested :%" PRIu64 ", io_chunk_size :%" PRIu64
	       ", bufregister :%s, sync :%d, nr ios :%" PRIu64 ", \nfsync :%d, \nBatch mode: 0\n",
	       a.gpu, a.path, a.align, a.buf_off, a.ptr_off, a.off, a.size, a.chunk,
	       a.skip_register ? "false" : "true", a.sync, a.ios, a.fsync);
	w = (struct work){ .ask = &a, .fd = -1, .plain_fd = -1 };
	err = open_all(&w);
	for (n = 0; n < a.ios && !err; n++)
		err = one_io(&w, n);
	close_all(&w);
	puts(err ? "Data Verification Failed" : "Data Verification Success");
	if (!err)
		gdsio_print_routes(stdout, &w.tally);
	return err || fflush(stdout) ? EXIT_BAD : EXIT_OK;
}
