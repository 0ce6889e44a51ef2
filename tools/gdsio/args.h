/* SPDX-License-Identifier: MIT */
/* args.h - what the command line asks for. */
#ifndef GDSIO_ARGS_H
#define GDSIO_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pieces.h"

#define GDSIO_MAX_JOBS 64
#define GDSIO_MAX_THREADS 1024	/* of all jobs together */

enum gdsio_rw { RW_READ, RW_WRITE, RW_RANDREAD, RW_RANDWRITE };

enum gdsio_xfer { XFER_GPUD, XFER_CPUONLY, XFER_CPU_GPU, XFERS };

/* One group of -f or -D with its -d, -n and -w. */
struct gdsio_job {
	const char *path;
	int gpu;		/* -1: not said */
	int node;		/* -1: not said; no effect in this version */
	unsigned int threads;	/* 0: not said */
};

struct gdsio_args {
	struct gdsio_job job[GDSIO_MAX_JOBS];
	unsigned int jobs;
	unsigned int threads;	/* of all jobs */
	bool dirs;		/* the paths are folders (-D) */
	uint64_t size;		/* bytes a job */
	uint64_t start;		/* file offset of the first one */
	struct gdsio_sizes io;
	enum gdsio_rw rw;
	enum gdsio_xfer xfer;
	unsigned int seconds;	/* -T; 0: until the data set is done */
	uint64_t seed;
	bool no_register;
	bool buffered;		/* open without O_DIRECT */
	bool verify;
	bool allow_fallback;
	bool help;
	bool version;
};

static inline bool gdsio_is_write(enum gdsio_rw rw)
{
	return rw == RW_WRITE || rw == RW_RANDWRITE;
}

static inline bool gdsio_is_random(enum gdsio_rw rw)
{
	return rw == RW_RANDREAD || rw == RW_RANDWRITE;
}

/*
 * 0, or -EINVAL with a text in why that names the option and what it takes. Paths point
 * into argv. With help or version set nothing else was checked.
 */
int gdsio_args_parse(int argc, char **argv, struct gdsio_args *args, char *why, size_t why_len);

/* "64K", "1M", "2G" or plain bytes: 0 or -EINVAL */
int gdsio_parse_size(const char *text, uint64_t *bytes);

#endif /* GDSIO_ARGS_H */
