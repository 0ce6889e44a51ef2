// SPDX-License-Identifier: MIT
/* memory.c - a worker's buffers, streams and batch, by memory type; made by the main thread. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gdsio.h"

#define BLOCK 4096
#define GPU_PAGE (64 * 1024ULL)

void *gdsio_slot(const struct gdsio_worker *w, unsigned int n)
{
	const uint64_t at = n * w->run->stride;

	return w->buf.gpu ? (void *)(uintptr_t)(w->buf.gpu + at) : w->buf.host + at;
}

uint8_t *gdsio_image(const struct gdsio_worker *w, unsigned int n)
{
	return w->image.host ? w->image.host : gdsio_slot(w, n);
}

/* cuFile is ordered with no stream: the copy must have ended before it reads the memory. */
int gdsio_put(struct gdsio_worker *w, unsigned int slot, size_t len)
{
	int err;

	if (!w->buf.gpu)
		return 0;
	err = gdsio_cuda(cuMemcpyHtoD((uintptr_t)gdsio_slot(w, slot), w->image.host, len),
			 "copy to the GPU");
	return err ? err : gdsio_cuda(cuCtxSynchronize(), "wait for the GPU");
}

int gdsio_get(struct gdsio_worker *w, unsigned int slot, size_t len)
{
	if (!w->buf.gpu)
		return 0;
	return gdsio_cuda(cuMemcpyDtoH(w->image.host, (uintptr_t)gdsio_slot(w, slot), len),
			  "copy from the GPU");
}

/* Slots on GPU pages of their own: pins and DMA of two of them never share one. */
static int gpu_memory(struct gdsio_worker *w)
{
	const struct gdsio_args *a = w->run->args;
	struct gdsio_memory *m = &w->buf;

	m->size = w->run->depth * w->run->stride + GPU_PAGE;
	if (a->mem == MEM_VMM) {
		if (gdsio_vmm_alloc(w->job->gpu, m))
			return -EIO;
	} else if (gdsio_cuda(cuMemAlloc(&m->alloc, m->size), "GPU memory for a buffer")) {
		return -EIO;
	}
	m->gpu = (m->alloc + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE + a->align * BLOCK;
	return 0;
}

static int host_memory(const struct gdsio_worker *w, enum gdsio_mem mem, unsigned int slots,
		       struct gdsio_memory *m)
{
	const size_t size = slots * w->run->stride;
	void *p = NULL;
	int err = 0;

	if (mem == MEM_CUDA_HOST) {
		if (gdsio_cuda(cuMemHostAlloc(&p, size, 0), "pinned host memory"))
			return -EIO;
	} else if (mem == MEM_MMAP) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		err = p == MAP_FAILED ? errno : 0;
	} else {
		err = posix_memalign(&p, BLOCK, size);
	}
	if (err) {
		gdsio_err("%zu bytes of host memory: %s; give a smaller -i, -B or -w", size,
			  strerror(err));
		return -EIO;
	}
	memset(p, 0, size);
	m->host = p;
	m->size = size;
	return 0;
}

static void free_host(enum gdsio_mem mem, struct gdsio_memory *m)
{
	if (!m->host)
		return;
	if (mem == MEM_CUDA_HOST)
		cuMemFreeHost(m->host);
	else if (mem == MEM_MMAP)
		munmap(m->host, m->size);
	else
		free(m->host);
}

static int know_slots(struct gdsio_worker *w)
{
	const struct gdsio_run *run = w->run;
	CUfileError_t status;

	while (w->registered < run->depth) {
		status = cuFileBufRegister(gdsio_slot(w, w->registered), run->buffer, 0);
		if (status.err) {
			fprintf(stderr, "buffer register error: %s GPU :%d size :%" PRIu64 "\n",
				cufileop_status_error(status.err), w->job->gpu, run->buffer);
			gdsio_err("error %d: cufile.log has the cause; gdscheck --explain-error %d has what to do",
				  (int)status.err, (int)status.err);
			return -EIO;
		}
		w->registered++;
	}
	return 0;
}

static int open_batch(struct gdsio_worker *w)
{
	const unsigned int n = w->run->depth;
	CUfileError_t status;

	w->params = calloc(n, sizeof(*w->params));
	if (!w->params)
		return -ENOMEM;
	status = cuFileBatchIOSetUp(&w->batch, n);
	if (status.err) {
		gdsio_err("-B %u: %s (%d); properties.io_batchsize of cufile.json is the limit",
			  n, cufileop_status_error(status.err), (int)status.err);
		return -EIO;
	}
	w->has_batch = true;
	return 0;
}

static int open_streams(struct gdsio_worker *w)
{
	unsigned int i;

	w->stream = calloc(w->run->depth, sizeof(*w->stream));
	if (!w->stream)
		return -ENOMEM;
	for (i = 0; i < w->run->depth; i++) {
		if (gdsio_cuda(cuStreamCreate(&w->stream[i], CU_STREAM_NON_BLOCKING), "a stream"))
			return -EIO;
	}
	return 0;
}

static int acquire(struct gdsio_worker *w)
{
	const struct gdsio_run *run = w->run;
	const struct gdsio_args *a = run->args;
	const bool in_gpu = gdsio_in_gpu(a);
	int err;

	if (gdsio_needs_gpu(a)) {
		w->ctx = run->ctx[w->job->gpu];
		if (gdsio_cuda(cuCtxSetCurrent(w->ctx), "cuCtxSetCurrent"))
			return -EIO;
	}
	err = in_gpu ? gpu_memory(w) : host_memory(w, a->mem, run->depth, &w->buf);
	if (!err && in_gpu)
		err = host_memory(w, MEM_CUDA_HOST, 1, &w->image);
	if (!err && run->ops->bounces)
		err = host_memory(w, MEM_CUDA_HOST, run->ops->bounces, &w->bounce);
	if (!err && in_gpu && gdsio_by_cufile(a->xfer) && !a->no_register)
		err = know_slots(w);
	if (!err && a->xfer == XFER_GPU_BATCH)
		err = open_batch(w);
	if (!err && gdsio_on_stream(a->xfer))
		err = open_streams(w);
	if (err)
		return err;
	w->io = calloc(run->depth, sizeof(*w->io));
	return w->io ? 0 : -ENOMEM;
}

int gdsio_worker_open(struct gdsio_worker *w)
{
	cpu_set_t was;
	int err;

	/* memory is near the processor that touches it first */
	if (w->job->node >= 0 && gdsio_numa_bind("", w->job->node, &was))
		return -EIO;
	err = acquire(w);
	if (w->job->node >= 0)
		sched_setaffinity(0, sizeof(was), &was);
	if (err == -ENOMEM)
		gdsio_err("thread %u: no memory; give a smaller -w or -B", w->tid);
	return err;
}

void gdsio_worker_close(struct gdsio_worker *w)
{
	const struct gdsio_args *a = w->run->args;
	unsigned int i;

	if (w->ctx)
		cuCtxSetCurrent(w->ctx);
	if (w->has_batch)
		cuFileBatchIODestroy(w->batch);
	for (i = 0; w->stream && i < w->run->depth; i++) {
		if (w->stream[i])
			cuStreamDestroy(w->stream[i]);
	}
	while (w->registered)
		cuFileBufDeregister(gdsio_slot(w, --w->registered));
	free_host(MEM_CUDA_HOST, &w->image);
	free_host(MEM_CUDA_HOST, &w->bounce);
	free_host(a->mem, &w->buf);
	if (w->buf.alloc && a->mem == MEM_VMM)
		gdsio_vmm_free(&w->buf);
	else if (w->buf.alloc)
		cuMemFree(w->buf.alloc);
	free(w->params);
	free(w->stream);
	free(w->io);
}
