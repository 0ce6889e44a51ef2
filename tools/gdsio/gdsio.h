/* SPDX-License-Identifier: MIT */
/*
 * gdsio.h - a run: its files, threads and buffers.
 *
 * The main thread makes and removes everything; a worker touches its own struct worker and
 * the few members of struct run that are atomic or never change while workers live.
 */
#ifndef GDSIO_H
#define GDSIO_H

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cuda.h>

#include "args.h"
#include "cufile.h"
#include "report.h"
#include "told.h"

#define GDSIO_GPUS 256

enum gdsio_stop { STOP_NOT, STOP_SIGNAL, STOP_ERROR };

struct gdsio_file {
	char path[PATH_MAX];
	int fd;			/* -1: not open */
	CUfileHandle_t fh;
	bool known;		/* fh is registered */
	const struct gdsio_job *job;
	uint64_t start, need;	/* the data set in it, bytes */
	uint64_t generation;	/* of its stamps; 0: of the first form */
	struct gdsio_tally tally;	/* routes of batches and streams, by file */
};

/* One I/O under way. Members above the line are set before it is submitted. */
struct gdsio_io {
	struct gdsio_worker *w;
	bool write;
	unsigned int slot;	/* which of the worker's buffers */
	size_t len;
	off_t off;		/* of the file */
	/* ---- */
	off_t buf_off;		/* for the stream API, which reads it by a pointer; 0 */
	uint64_t began, ended;	/* CLOCK_MONOTONIC, ns */
	ssize_t got;		/* bytes, or -errno, or minus a CUfileOpError */
	uint32_t reason;	/* of the library, why a failed one would not go direct; 0: none */
};

/* Memory of a worker, in slots of run->stride bytes. */
struct gdsio_memory {
	uint8_t *host;		/* NULL: none */
	CUdeviceptr gpu;	/* 0: none; the first slot */
	CUdeviceptr alloc;	/* what cuMemAlloc or the VMM calls gave */
	unsigned long long vmm;	/* handle of memory type 1 */
	size_t size;		/* bytes at alloc or host */
};

struct gdsio_worker {
	struct gdsio_run *run;
	const struct gdsio_job *job;
	struct gdsio_file *file;
	unsigned int tid;	/* of all workers */
	uint64_t off, len;	/* its part of the file, bytes */

	CUcontext ctx;
	struct gdsio_memory buf;	/* what is read and written */
	unsigned int registered;	/* slots of it */
	struct gdsio_memory bounce;	/* pinned; of types that copy */
	struct gdsio_memory image;	/* what is stamped and compared; none for host memory */
	struct gdsio_io *io;		/* run->depth of them */
	CUstream *stream;		/* likewise, of types that need them; else NULL */
	CUfileBatchHandle_t batch;
	bool has_batch;
	CUfileIOParams_t *params;	/* run->depth of them, with a batch */

	pthread_t thread;
	uint64_t rng;			/* of content and of the mix */
	struct gdsio_tally tally;	/* read after the join */
	_Atomic uint64_t progress;	/* bytes, for who watches */
};

/* What one pass does with each piece. */
struct gdsio_pass {
	enum gdsio_rw rw;
	bool stamp;		/* write: each piece has its place's content */
	bool check;		/* read: compare */
	bool timed;		/* -T counts */
};

struct gdsio_run {
	const struct gdsio_args *args;
	const struct gdsio_xfer_ops *ops;
	struct gdsio_file *file;
	unsigned int files;
	struct gdsio_worker *worker;
	unsigned int workers;
	struct gdsio_pass pass;
	CUcontext ctx[GDSIO_GPUS];	/* by GPU; NULL: not retained */
	bool driver;		/* cuFileDriverOpen succeeded */
	unsigned int depth;	/* I/Os of a worker at a time */
	uint64_t buffer;	/* bytes, of each slot */
	uint64_t stride;	/* bytes from slot to slot */
	uint64_t generation;	/* of the stamps that this run writes; 0: none yet */
	uint64_t until_ns;	/* CLOCK_MONOTONIC; 0: no limit */

	pthread_mutex_t lock;
	pthread_cond_t ended;	/* a worker did; CLOCK_MONOTONIC */
	unsigned int running;	/* workers of this pass; under lock */
};

/* A transfer type. */
struct gdsio_xfer_ops {
	bool by_file;		/* the library tells the routes by file, after the pass */
	unsigned int bounces;	/* pinned host buffers beside the GPU's, and so the depth */
	/*
	 * Performs n I/Os, of the slots 0 .. n - 1: sets got, began and ended of each and adds
	 * the routes to the worker's tally unless they are told by file. 0, or -EIO and told:
	 * then nothing of it is under way any more.
	 */
	int (*round)(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n);
};

extern const struct gdsio_xfer_ops gdsio_xfer_ops[XFERS];

/*
 * Files open and long enough, buffers there and known: 0, or -EIO and told. What was
 * acquired is in the run either way; gdsio_run_close() takes it back.
 */
int gdsio_run_open(struct gdsio_run *run, const struct gdsio_args *args);
void gdsio_run_close(struct gdsio_run *run);

/* The same for one worker's memory, streams and batch; its context is current. */
int gdsio_worker_open(struct gdsio_worker *w);
void gdsio_worker_close(struct gdsio_worker *w);

/* Where slot n of the buffer is: a pointer for cuFile, in GPU memory or not. */
void *gdsio_slot(const struct gdsio_worker *w, unsigned int n);

/* What is stamped and compared of slot n, in host memory. */
uint8_t *gdsio_image(const struct gdsio_worker *w, unsigned int n);

/* That to and from the buffer: 0, or -EIO and told. Nothing to do for host memory. */
int gdsio_put(struct gdsio_worker *w, unsigned int slot, size_t len);
int gdsio_get(struct gdsio_worker *w, unsigned int slot, size_t len);

/* Memory type 1, virtual memory management: size is rounded up to what the GPU wants. */
int gdsio_vmm_alloc(int gpu, struct gdsio_memory *m);
void gdsio_vmm_free(struct gdsio_memory *m);

/* This thread and the memory it makes: on the node's processors; was: for going back. */
int gdsio_numa_bind(const char *root, int node, cpu_set_t *was);

/*
 * All that was moved since the last call by batches and streams of this file: 0, or -EIO and
 * told.
 */
int gdsio_file_account(struct gdsio_file *file);

/* 0, -EINTR when it was interrupted (the result is right so far), -EIO when told. */
int gdsio_pass(struct gdsio_run *run, const struct gdsio_pass *pass, struct gdsio_result *result);

/* What job number n did in the last pass; result as gdsio_pass() filled it, of all jobs. */
void gdsio_job_result(const struct gdsio_run *run, unsigned int n,
		      const struct gdsio_result *all, struct gdsio_result *result);

/* Fills all buffers with what no file has, before they are read into again. */
int gdsio_clear(struct gdsio_run *run);

/* Ends the pass soon; async-signal-safe. */
void gdsio_stop(enum gdsio_stop why);
enum gdsio_stop gdsio_stopped(void);

#endif /* GDSIO_H */
