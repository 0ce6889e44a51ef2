/* SPDX-License-Identifier: MIT */
/*
 * side_child.h - inside a contestant's process: its threads, its memory, the library.
 *
 * The main thread takes orders; the workers do what it says (side_each), all at once. Between
 * two calls of side_each the main thread alone touches the workers' members.
 */
#ifndef BENCH_SIDE_CHILD_H
#define BENCH_SIDE_CHILD_H

#include <pthread.h>
#include <stdatomic.h>

#include "cufile.h"
#include "rm/rm.h"
#include "side.h"
#include "side_cuda.h"

#define SIDE_CHUNK (1024UL * 1024)	/* bytes looked at, at a time */

struct side_calls {
	__typeof__(cuFileDriverOpen) *open, *close;
	__typeof__(cuFileGetVersion) *version;	/* NULL: an old library */
	__typeof__(cuFileHandleRegister) *handle;
	__typeof__(cuFileHandleDeregister) *handle_end;
	__typeof__(cuFileBufRegister) *buffer;
	__typeof__(cuFileBufDeregister) *buffer_end;
	__typeof__(cuFileRead) *read;
	__typeof__(cuFileWrite) *write;
};

struct side_worker {
	unsigned int n;
	pthread_t thread;
	unsigned char *scratch;		/* SIDE_CHUNK, twice */
	CUdeviceptr gpu;
	/* SIDE_RAW: a mapping; SIDE_COPY: pinned; SIDE_STORE: gpu as the CPU sees it */
	unsigned char *host;
	struct rm_view view;		/* SIDE_STORE: of `object` */
	uint32_t object;
	size_t len;			/* of gpu and host; 0: there is none */
	bool registered;
	CUstream stream;		/* SIDE_COPY */
	/* of a measurement */
	uint64_t requests, bytes, verified;
	double end;
};

struct side_file {
	int fd;				/* -1: not opened */
	CUfileHandle_t fh;
};

struct side_here {
	enum side_kind kind;
	const char *path, *file;
	int gpu, socket;
	CUcontext ctx;
	struct side_calls call;
	struct side_file plain, direct;
	int look;			/* the file, to compare with: never O_DIRECT */
	struct rm *rm;			/* SIDE_STORE */
	struct side_order o;

	struct side_worker w[SIDE_THREADS];
	unsigned int workers;		/* that run */
	pthread_mutex_t lock;		/* job, left, generation */
	pthread_cond_t begin, done;
	void (*job)(struct side_worker *w);
	unsigned int threads, left, generation;
	atomic_uint ready;		/* workers at the starting line */
	atomic_bool go;
	double t0;			/* when all of them were there */
};

extern struct side_here here;

/* Tells the bench and ends the process. Any thread may call it. */
void side_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void side_cu(CUresult r, const char *what);
void side_ok(CUfileError_t e, const char *what);
/* What a failed cuFileRead or cuFileWrite left in errno. */
const char *side_io_error(int err);

/* job(worker) of the first `threads` workers at once; returns when the last is through. */
void side_each(unsigned int threads, void (*job)(struct side_worker *w));
/* In a job: waits for the others, then gives the one time at which all begin. */
double side_line(void);
double side_cpu(void);

/* The open file for the order's flags; opened and registered when first asked for. */
const struct side_file *side_file(void);
/* The same for a loader, which opens it each time. */
void side_file_open(struct side_file *f, int flags);
void side_file_close(struct side_file *f);

/* SIDE_STORE: connects to the GPU's driver; its memory, as the CPU sees it. */
void side_store_open(CUdevice dev);
void side_store_map(struct side_worker *w);
void side_store_unmap(struct side_worker *w);

/* Orders. */
void side_cell(struct side_result *r);
void side_load(struct side_result *r);

#endif /* BENCH_SIDE_CHILD_H */
