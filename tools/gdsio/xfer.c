// SPDX-License-Identifier: MIT
/* xfer.c - the transfer types that do one thing after another: cuFile, host memory, copies. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gdsio.h"
#include "xfer.h"

/* -- 0: storage to GPU, by cuFile -- */

static ssize_t account(struct gdsio_worker *w, ssize_t n)
{
	struct ogds_report io = OGDS_REPORT_INIT;
	int err;

	if (n <= 0)
		return n;
	err = ogds_last_io(&io);
	if (!err && io.result != n)
		err = -EPROTO;
	if (err) {
		gdsio_err("%s: the library does not tell which way %zd bytes went: %s; is "
			  "libcufile.so.0 the one that gdsio was built with?", w->file->path, n,
			  strerror(-err));
		return err;
	}
	gdsio_tally_io(&w->tally, &io);
	return n;
}

static int gpud(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n)
{
	struct ogds_report report = OGDS_REPORT_INIT;

	io->began = gdsio_now_ns();
	io->got = io->write ? cuFileWrite(w->file->fh, gdsio_slot(w, 0), io->len, io->off, 0) :
			      cuFileRead(w->file->fh, gdsio_slot(w, 0), io->len, io->off, 0);
	io->ended = gdsio_now_ns();
	if (io->got == -1) {
		io->got = errno ? -errno : -EIO;
		io->reason = ogds_last_io(&report) ? 0 : report.reason;
	}
	io->got = account(w, io->got);
	return 0;
}

/* -- by the file system -- */

static ssize_t one_io(int fd, bool write, uint8_t *buf, size_t len, off_t off)
{
	ssize_t n;

	do
		n = write ? pwrite(fd, buf, len, off) : pread(fd, buf, len, off);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t gdsio_posix(const struct gdsio_io *io, uint8_t *buf)
{
	size_t done = 0;
	ssize_t n;

	while (done < io->len) {
		n = one_io(io->w->file->fd, io->write, buf + done, io->len - done,
			   io->off + (off_t)done);
		if (n < 0)
			return n;
		if (!n)
			break;
		done += n;
	}
	return (ssize_t)done;
}

/* -- 1: storage to host memory -- */

static int cpu_only(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n)
{
	io->began = gdsio_now_ns();
	io->got = gdsio_posix(io, gdsio_slot(w, 0));
	io->ended = gdsio_now_ns();
	if (io->got > 0)
		gdsio_tally_plain(&w->tally, OGDS_ROUTE_HOST, io->off, io->got);
	return 0;
}

/* -- 2 and 4: storage to host memory, with O_DIRECT or not, then a copy to the GPU -- */

static int cpu_gpu(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n)
{
	const CUdeviceptr gpu = (uintptr_t)gdsio_slot(w, 0);
	int err = 0;

	io->began = gdsio_now_ns();
	if (io->write)
		err = gdsio_cuda(cuMemcpyDtoH(w->bounce.host, gpu, io->len), "copy from the GPU");
	if (!err)
		io->got = gdsio_posix(io, w->bounce.host);
	if (!err && !io->write && io->got > 0)
		err = gdsio_cuda(cuMemcpyHtoD(gpu, w->bounce.host, io->got), "copy to the GPU");
	io->ended = gdsio_now_ns();
	if (!err && io->got > 0)
		gdsio_tally_plain(&w->tally, OGDS_ROUTE_BOUNCE, io->off, io->got);
	return err;
}

const struct gdsio_xfer_ops gdsio_xfer_ops[XFERS] = {
	[XFER_GPUD] = { .round = gpud },
	[XFER_CPUONLY] = { .round = cpu_only },
	[XFER_CPU_GPU] = { .round = cpu_gpu, .bounces = 1 },
	[XFER_CPU_ASYNC_GPU] = { .round = gdsio_cpu_async_gpu, .bounces = 2 },
	[XFER_CPU_CACHED_GPU] = { .round = cpu_gpu, .bounces = 1 },
	[XFER_GPUD_ASYNC] = { .round = gdsio_gpud_stream, .by_file = true },
	[XFER_GPU_BATCH] = { .round = gdsio_gpu_batch, .by_file = true },
	[XFER_GPU_BATCH_STREAM] = { .round = gdsio_gpud_stream, .by_file = true },
};
