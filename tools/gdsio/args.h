/* SPDX-License-Identifier: MIT */
/* args.h - what the command line or a job file asks for. */
#ifndef GDSIO_ARGS_H
#define GDSIO_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pieces.h"

#define GDSIO_MAX_JOBS 64
#define GDSIO_MAX_THREADS 1024	/* of all jobs together */
#define GDSIO_MAX_BATCH 16384
#define GDSIO_TEXT (64 * 1024)	/* bytes of all values of a job file */

enum gdsio_rw { RW_READ, RW_WRITE, RW_RANDREAD, RW_RANDWRITE };

enum gdsio_xfer {
	XFER_GPUD,
	XFER_CPUONLY,
	XFER_CPU_GPU,
	XFER_CPU_ASYNC_GPU,
	XFER_CPU_CACHED_GPU,
	XFER_GPUD_ASYNC,
	XFER_GPU_BATCH,
	XFER_GPU_BATCH_STREAM,
	XFERS
};

enum gdsio_mem { MEM_CUDA, MEM_VMM, MEM_CUDA_HOST, MEM_MALLOC, MEM_MMAP, MEMS };

/* One group of -f or -D with its -d, -n and -w; in a job file it may have its own part. */
struct gdsio_job {
	const char *path;
	int gpu;		/* -1: not said */
	int node;		/* -1: not said */
	unsigned int threads;	/* 0: not said */
	uint64_t size;		/* bytes; 0 while parsing: that of the run */
	uint64_t start;		/* file offset of the first one */
	bool own_start;
};

struct gdsio_args {
	struct gdsio_job job[GDSIO_MAX_JOBS];
	unsigned int jobs;
	unsigned int threads;	/* of all jobs */
	const char *name;	/* of a job file; NULL: none */
	bool dirs;		/* the paths are folders (-D) */
	uint64_t size;		/* bytes of a job that has no size of its own */
	uint64_t start;
	struct gdsio_sizes io;
	enum gdsio_rw rw;
	enum gdsio_xfer xfer;
	enum gdsio_mem mem;
	unsigned int batch;	/* I/Os at a time, of the types that have a depth; else 1 */
	unsigned int mix;	/* percent of reads, 1 .. 99; 0: no mix */
	unsigned int seconds;	/* -T; 0: until the data set is done */
	unsigned int align;	/* 4-KiB steps from a GPU page to the buffer */
	uint64_t seed;
	bool no_register;
	bool buffered;		/* open without O_DIRECT */
	bool unaligned;		/* random offsets of any byte */
	bool random_fill;
	bool refill;
	bool verify;
	bool verify_after;	/* a pass of its own that compares, after the one that reads */
	bool per_job;
	bool nvlink;
	bool allow_fallback;
	bool json;
	bool progress;
	bool help;
	bool version;
	char text[GDSIO_TEXT];	/* what a job file's values point into */
};

static inline bool gdsio_is_write(enum gdsio_rw rw)
{
	return rw == RW_WRITE || rw == RW_RANDWRITE;
}

static inline bool gdsio_is_random(enum gdsio_rw rw)
{
	return rw == RW_RANDREAD || rw == RW_RANDWRITE;
}

/* The words of the result line; the number of a word, or -1. */
const char *gdsio_rw_name(enum gdsio_rw rw);
const char *gdsio_xfer_name(enum gdsio_xfer xfer);
int gdsio_xfer_find(const char *name);

/* Types by which cuFile moves the bytes, those with an I/O depth, those that need a stream. */
bool gdsio_by_cufile(enum gdsio_xfer xfer);
bool gdsio_has_depth(enum gdsio_xfer xfer);
bool gdsio_on_stream(enum gdsio_xfer xfer);

/* The buffers that are read and written lie in GPU memory; anything at all needs CUDA. */
bool gdsio_in_gpu(const struct gdsio_args *args);
bool gdsio_needs_gpu(const struct gdsio_args *args);

/*
 * 0, or -EINVAL with a text in why that names the option and what it takes, and for a job
 * file its line. Paths point into argv or args. With help or version set nothing else was
 * checked.
 */
int gdsio_args_parse(int argc, char **argv, struct gdsio_args *args, char *why, size_t why_len);

/* -- between args.c and jobfile.c -- */

struct gdsio_parser {
	struct gdsio_args *args;
	struct gdsio_job *job;	/* the group that is being filled */
	bool has_size, has_io, has_files, has_batch, has_mem;
	char *why;
	size_t why_len;
};

int gdsio_refuse(struct gdsio_parser *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int gdsio_take(struct gdsio_parser *p, int opt, const char *text);
int gdsio_next_job(struct gdsio_parser *p);
int gdsio_take_size(struct gdsio_parser *p, int opt, const char *text, uint64_t min,
		    uint64_t *value);
int gdsio_jobfile(struct gdsio_parser *p, const char *path);

#endif /* GDSIO_ARGS_H */
