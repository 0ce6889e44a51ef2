// SPDX-License-Identifier: MIT
/* xfer.c - the transfer types: cuFile, host memory, host memory and a copy. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gdsio.h"

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
		errno = -err;
		return -1;
	}
	gdsio_tally_io(&w->tally, &io);
	return n;
}

static ssize_t gpud_read(struct gdsio_worker *w, size_t len, off_t off)
{
	return account(w, cuFileRead(w->file->fh, (void *)(uintptr_t)w->gpu, len, off, 0));
}

static ssize_t gpud_write(struct gdsio_worker *w, size_t len, off_t off)
{
	return account(w, cuFileWrite(w->file->fh, (void *)(uintptr_t)w->gpu, len, off, 0));
}

/* cuFile is ordered with no stream: the copy must have ended before it reads the memory. */
static int gpu_put(struct gdsio_worker *w, size_t len)
{
	int err = gdsio_cuda(cuMemcpyHtoD(w->gpu, w->data, len), "copy to the GPU");

	return err ? err : gdsio_cuda(cuCtxSynchronize(), "wait for the GPU");
}

static int gpu_get(struct gdsio_worker *w, size_t len)
{
	return gdsio_cuda(cuMemcpyDtoH(w->data, w->gpu, len), "copy from the GPU");
}

/* -- by the file system -- */

static ssize_t posix_read(const struct gdsio_worker *w, uint8_t *buf, size_t len, off_t off)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pread(w->file->fd, buf + done, len - done, off + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		done += n;
	}
	return (ssize_t)done;
}

static ssize_t posix_write(const struct gdsio_worker *w, const uint8_t *buf, size_t len, off_t off)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pwrite(w->file->fd, buf + done, len - done, off + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		done += n;
	}
	return (ssize_t)done;
}

static ssize_t plain(struct gdsio_worker *w, enum ogds_route route, ssize_t n, off_t off)
{
	if (n > 0)
		gdsio_tally_plain(&w->tally, route, off, n);
	return n;
}

/* -- 1: storage to host memory -- */

static ssize_t cpu_read(struct gdsio_worker *w, size_t len, off_t off)
{
	return plain(w, OGDS_ROUTE_HOST, posix_read(w, w->data, len, off), off);
}

static ssize_t cpu_write(struct gdsio_worker *w, size_t len, off_t off)
{
	return plain(w, OGDS_ROUTE_HOST, posix_write(w, w->data, len, off), off);
}

/* w->data is the buffer itself */
static int cpu_nothing(struct gdsio_worker *w, size_t len)
{
	return 0;
}

/* -- 2: storage to host memory, then a copy to the GPU -- */

static ssize_t copied(int err, ssize_t n)
{
	if (!err)
		return n;
	errno = -err;
	return -1;
}

static ssize_t cpu_gpu_read(struct gdsio_worker *w, size_t len, off_t off)
{
	ssize_t n = posix_read(w, w->bounce, len, off);

	if (n > 0)
		n = copied(gdsio_cuda(cuMemcpyHtoD(w->gpu, w->bounce, n), "copy to the GPU"), n);
	return plain(w, OGDS_ROUTE_BOUNCE, n, off);
}

static ssize_t cpu_gpu_write(struct gdsio_worker *w, size_t len, off_t off)
{
	int err = gdsio_cuda(cuMemcpyDtoH(w->bounce, w->gpu, len), "copy from the GPU");

	if (err)
		return copied(err, 0);
	return plain(w, OGDS_ROUTE_BOUNCE, posix_write(w, w->bounce, len, off), off);
}

const struct gdsio_xfer_ops gdsio_xfer_ops[XFERS] = {
	[XFER_GPUD] = {
		.gpu = true,
		.cufile = true,
		.read = gpud_read,
		.write = gpud_write,
		.put = gpu_put,
		.get = gpu_get,
	},
	[XFER_CPUONLY] = {
		.read = cpu_read,
		.write = cpu_write,
		.put = cpu_nothing,
		.get = cpu_nothing,
	},
	[XFER_CPU_GPU] = {
		.gpu = true,
		.bounce = true,
		.read = cpu_gpu_read,
		.write = cpu_gpu_write,
		.put = gpu_put,
		.get = gpu_get,
	},
};
