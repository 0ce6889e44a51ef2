/* SPDX-License-Identifier: MIT */
/*
 * copy.h - the bytes of one file through GPU memory.
 *
 * Slots of GPU memory go round: one thread fills the next by cuFileRead while another empties
 * those before it by cuFileWrite and a third takes the digest of what is in them. Holes take no
 * slot. A fourth reads the source by the CPU, for a digest to compare with.
 */
#ifndef GDSCP_COPY_H
#define GDSCP_COPY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "cufile.h"
#include "extents.h"
#include "md5.h"
#include "opengds.h"

#define COPY_SLOTS_MAX 64
#define COPY_REASONS 8
#define COPY_WHY 512

/* GPU memory, for all files of a run. */
struct slots {
	CUcontext ctx;
	CUdeviceptr mem;
	uint64_t bytes;		/* of a slot, whole blocks */
	unsigned int n;
};

/* What the requests of one direction did. */
struct ways {
	uint64_t bytes[OGDS_ROUTES];
	uint64_t whole, direct, edges, retried;
	uint32_t reason[COPY_REASONS];	/* distinct ones of whole blocks that were not direct */
	unsigned int reasons;
};

/*
 * Who begins one sets the first part. lock guards the second while it runs: filled, emptied and
 * digested are numbers of pieces, each counted by its thread; piece n is in place n % slots->n.
 */
struct copy {
	const struct slots *slots;
	CUfileHandle_t from, to;
	int fd;			/* of the source, for holes; its offset is moved */
	int digest_fd;		/* the same for the digest of the CPU; -1: no digests */
	uint64_t size;
	const atomic_int *stop;	/* not 0: no further piece is begun */
	void (*progress)(void *arg, const struct copy *c);	/* some times a second; NULL */
	void *arg;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct piece piece[COPY_SLOTS_MAX];
	uint64_t filled, emptied, digested;
	bool all_filled;	/* there is no further one */
	unsigned int running;	/* threads */
	int err;		/* the first one */
	char why[COPY_WHY];

	_Atomic uint64_t written, seen;	/* bytes of the file, holes too: written, digested */
	struct ways in, out;
	uint8_t gpu_sum[MD5_BYTES], cpu_sum[MD5_BYTES];
};

/* 0; -EINTR: it was stopped; -errno, with why, that names neither file. */
int copy_run(struct copy *c);

/* Digest of a file by the CPU: 0 or -errno; -EINTR: stopped; -ENODATA: it is shorter. */
int copy_digest(int fd, uint64_t size, const atomic_int *stop, uint8_t sum[MD5_BYTES]);

/* "No space left on device", "device pointer lookup failure": of an errno or CUfileOpError. */
const char *copy_error_text(int err);

#endif /* GDSCP_COPY_H */
