// SPDX-License-Identifier: MIT
/* many.c - the transfer types that have several I/Os under way: batches, streams, copies. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "gdsio.h"
#include "xfer.h"

/* -- in stream order -- */

/* On a thread of CUDA's; the stream is waited for before `ended` is read. */
static void ends_now(void *arg)
{
	struct gdsio_io *io = arg;

	io->ended = gdsio_now_ns();
}

static int end_of(struct gdsio_io *io, CUstream stream)
{
	return gdsio_cuda(cuLaunchHostFunc(stream, ends_now, io), "cuLaunchHostFunc");
}

static int wait_for(struct gdsio_worker *w, unsigned int slot)
{
	return gdsio_cuda(cuStreamSynchronize(w->stream[slot]), "wait for the stream");
}

/* Whatever is under way may still write into buffers that go away: waited for, not told twice. */
static int drained(struct gdsio_worker *w, unsigned int n, int err)
{
	unsigned int i;

	for (i = 0; err && i < n; i++)
		cuStreamSynchronize(w->stream[i]);
	return err;
}

/* -- 5 and 7: cuFile's operations on the worker's first stream, one or a batch of them -- */

static int queue_one(struct gdsio_worker *w, struct gdsio_io *io)
{
	CUfileError_t status;

	io->buf_off = 0;
	io->got = 0;
	io->began = gdsio_now_ns();
	if (io->write)
		status = cuFileWriteAsync(w->file->fh, gdsio_slot(w, io->slot), &io->len, &io->off,
					  &io->buf_off, &io->got, w->stream[0]);
	else
		status = cuFileReadAsync(w->file->fh, gdsio_slot(w, io->slot), &io->len, &io->off,
					 &io->buf_off, &io->got, w->stream[0]);
	if (!status.err)
		return end_of(io, w->stream[0]);
	gdsio_err("%s: cuFile%sAsync: %s (%d); cufile.log may say more", w->file->path,
		  io->write ? "Write" : "Read", cufileop_status_error(status.err),
		  (int)status.err);
	return -EIO;
}

int gdsio_gpud_stream(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = queue_one(w, &io[i]);
	return err ? drained(w, 1, err) : wait_for(w, 0);
}

/* -- 6: cuFile's batches -- */

static int batch_failed(const struct gdsio_worker *w, const char *call, CUfileError_t status)
{
	gdsio_err("%s: %s: %s (%d); cufile.log may say more", w->file->path, call,
		  cufileop_status_error(status.err), (int)status.err);
	return -EIO;
}

static int batch_events(struct gdsio_worker *w, unsigned int left)
{
	CUfileIOEvents_t event[64];
	struct gdsio_io *io;
	CUfileError_t status;
	unsigned int nr, i;
	uint64_t now;

	while (left) {
		nr = left < 64 ? left : 64;
		status = cuFileBatchIOGetStatus(w->batch, 1, &nr, event, NULL);
		if (status.err)
			return batch_failed(w, "cuFileBatchIOGetStatus", status);
		now = gdsio_now_ns();
		for (i = 0; i < nr; i++) {
			io = event[i].cookie;
			io->ended = now;
			io->got = (ssize_t)event[i].ret;
			if (event[i].status != CUFILE_COMPLETE && io->got >= 0)
				io->got = -EIO;
		}
		left -= nr < left ? nr : left;
	}
	return 0;
}

int gdsio_gpu_batch(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n)
{
	CUfileIOParams_t *p = w->params;
	CUfileError_t status;
	unsigned int i;
	uint64_t now;
	int err;

	for (i = 0; i < n; i++) {
		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH,
			.u.batch.devPtr_base = gdsio_slot(w, io[i].slot),
			.u.batch.file_offset = io[i].off,
			.u.batch.size = io[i].len,
			.fh = w->file->fh,
			.opcode = io[i].write ? CUFILE_WRITE : CUFILE_READ,
			.cookie = &io[i],
		};
	}
	now = gdsio_now_ns();
	for (i = 0; i < n; i++)
		io[i].began = now;
	status = cuFileBatchIOSubmit(w->batch, n, p, 0);
	if (status.err)
		return batch_failed(w, "cuFileBatchIOSubmit", status);
	err = batch_events(w, n);
	if (err)
		cuFileBatchIOCancel(w->batch);
	return err;
}

/* -- 3: storage to host memory, and copies that overlap with the next piece -- */

static int async_read(struct gdsio_worker *w, struct gdsio_io *io)
{
	uint8_t *host = w->bounce.host + io->slot * w->run->stride;

	io->began = gdsio_now_ns();
	io->got = gdsio_posix(io, host);
	io->ended = gdsio_now_ns();
	if (io->got <= 0)
		return 0;
	if (gdsio_cuda(cuMemcpyHtoDAsync((uintptr_t)gdsio_slot(w, io->slot), host, io->got,
					 w->stream[io->slot]), "copy to the GPU"))
		return -EIO;
	return end_of(io, w->stream[io->slot]);
}

/* All copies are on their way before the first piece is written. */
static int async_copy(struct gdsio_worker *w, struct gdsio_io *io)
{
	io->began = gdsio_now_ns();
	return gdsio_cuda(cuMemcpyDtoHAsync(w->bounce.host + io->slot * w->run->stride,
					    (uintptr_t)gdsio_slot(w, io->slot), io->len,
					    w->stream[io->slot]), "copy from the GPU");
}

static int async_write(struct gdsio_worker *w, struct gdsio_io *io)
{
	int err = wait_for(w, io->slot);

	if (err)
		return err;
	io->got = gdsio_posix(io, w->bounce.host + io->slot * w->run->stride);
	io->ended = gdsio_now_ns();
	return 0;
}

int gdsio_cpu_async_gpu(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = io[i].write ? async_copy(w, &io[i]) : async_read(w, &io[i]);
	for (i = 0; i < n && !err; i++)
		err = io[i].write ? async_write(w, &io[i]) : wait_for(w, i);
	for (i = 0; i < n && !err; i++) {
		if (io[i].got > 0)
			gdsio_tally_plain(&w->tally, OGDS_ROUTE_BOUNCE, io[i].off, io[i].got);
	}
	return drained(w, n, err);
}
