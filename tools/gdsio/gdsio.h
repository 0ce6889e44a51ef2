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
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cuda.h>

#include "args.h"
#include "cufile.h"
#include "report.h"

enum gdsio_stop { STOP_NOT, STOP_SIGNAL, STOP_ERROR };

struct gdsio_file {
	char path[PATH_MAX];
	int fd;			/* -1: not open */
	CUfileHandle_t fh;
	bool known;		/* fh is registered */
	uint64_t need;		/* end of the data set in it, bytes */
};

struct gdsio_worker {
	struct gdsio_run *run;
	const struct gdsio_job *job;
	struct gdsio_file *file;
	unsigned int tid;	/* of all workers */
	uint64_t off, len;	/* its part of the file, bytes */

	CUcontext ctx;
	CUdeviceptr alloc;	/* 0: none */
	CUdeviceptr gpu;	/* the buffer in it, on a GPU page of its own */
	bool registered;
	uint8_t *bounce;	/* pinned; CPU_GPU only */
	uint8_t *data;		/* what is stamped and compared; with CPUONLY the buffer itself */

	pthread_t thread;
	struct gdsio_tally tally;	/* read after the join */
	_Atomic uint64_t progress;	/* bytes, for who watches */
};

/* What one pass does with each piece. */
struct gdsio_pass {
	enum gdsio_rw rw;
	bool stamp;		/* write: each piece has its place's content */
	bool check;		/* read: compare */
};

struct gdsio_run {
	const struct gdsio_args *args;
	const struct gdsio_xfer_ops *ops;
	struct gdsio_file *file;
	unsigned int files;
	struct gdsio_worker *worker;
	unsigned int workers;
	struct gdsio_pass pass;
	CUcontext ctx[256];	/* by GPU; NULL: not retained */
	bool driver;		/* cuFileDriverOpen succeeded */
	uint64_t buffer;	/* bytes, of each worker */
	uint64_t until_ns;	/* CLOCK_MONOTONIC; 0: no limit */

	pthread_mutex_t lock;
	pthread_cond_t ended;	/* a worker did; CLOCK_MONOTONIC */
	unsigned int running;	/* workers of this pass; under lock */
};

/* A transfer type. Sizes are at most run->buffer. */
struct gdsio_xfer_ops {
	bool gpu;		/* needs CUDA and a GPU buffer */
	bool cufile;		/* needs cuFile */
	bool bounce;		/* needs pinned host memory beside it */
	/* Bytes moved, or -1 with errno; adds the routes to the worker's tally. */
	ssize_t (*read)(struct gdsio_worker *w, size_t len, off_t off);
	ssize_t (*write)(struct gdsio_worker *w, size_t len, off_t off);
	/* w->data to or from the buffer that is read and written: 0, or -EIO and told. */
	int (*put)(struct gdsio_worker *w, size_t len);
	int (*get)(struct gdsio_worker *w, size_t len);
};

extern const struct gdsio_xfer_ops gdsio_xfer_ops[XFERS];

/* "gdsio: ..." on stderr */
void gdsio_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* 0, or -EIO and told: "gdsio: WHAT: CUDA_ERROR_X" */
int gdsio_cuda(CUresult res, const char *what);

/* The text of an errno of cuFile calls, which may be a CUfileOpError. */
const char *gdsio_errno_text(int err);
const char *gdsio_errno_name(int err);

/*
 * Files open and long enough, buffers there and known: 0, or -EIO and told. What was
 * acquired is in the run either way; gdsio_run_close() takes it back.
 */
int gdsio_run_open(struct gdsio_run *run, const struct gdsio_args *args);
void gdsio_run_close(struct gdsio_run *run);

/* 0, -EINTR when it was interrupted (the result is right so far), -EIO when told. */
int gdsio_pass(struct gdsio_run *run, const struct gdsio_pass *pass, struct gdsio_result *result);

/* Fills all buffers with what no file has, before they are read into again. */
int gdsio_clear(struct gdsio_run *run);

/* Ends the pass soon; async-signal-safe. */
void gdsio_stop(enum gdsio_stop why);
enum gdsio_stop gdsio_stopped(void);

#endif /* GDSIO_H */
