/* SPDX-License-Identifier: MIT */
/* cufile_prop.h - the property test: its state, and the choice of what is tried. */
#ifndef CUFILE_PROP_H
#define CUFILE_PROP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cufile.h"
#include "opengds.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define K 1024UL
#define M (1024UL * 1024)
#define BIG (64 * M)			/* what the summary counts as large */
#define MAX_SIZE (256 * M)
#define GPU_GUARD (64 * K)
#define FILE_GUARD (8 * K)
#define SLACK (64 * K)			/* room for buffer offsets under the largest size */
#define ALLOC (2 * (GPU_GUARD + T_BLOCK) + SLACK + MAX_SIZE)
#define CHUNK (1 * M)			/* host memory at a time */
#define SEEN_MAX (8 * M)		/* larger steps are not hashed, but for one */

struct step {
	size_t size;
	off_t off;
	size_t target;		/* first byte, from the allocation's start */
	bool write, registered;
	bool advanced;		/* pointer moved on instead of bufPtr_offset */
	bool hole;
};

struct prop {
	const char *file, *mirror;
	uint64_t seed, rnd;
	unsigned int triples, holes, proof;
	size_t max_bytes, file_size;
	int card;
	bool must_be_direct;

	int fd, look, mfd;	/* cuFile's, the one to look with, the mirror's */
	CUfileHandle_t fh;
	struct t_gpu gpu;
	CUdeviceptr mem[2];	/* [1] is registered */
	size_t reg_at;		/* where the registered range starts in its allocation */
	size_t *size;		/* of each step */
	char *a, *b;		/* CHUNK + T_BLOCK bytes, aligned for O_DIRECT */
	char *poison;		/* CHUNK bytes */
	uint64_t requests;
	bool seen_big;

	uint64_t done[2], moved, big, whole, edge, route[OGDS_ROUTE_SLOTS], witnessed;
	uint64_t direct, bar;	/* reported as direct; that must have crossed the BAR for it */
	uint64_t slack;		/* that may have crossed it besides: direct, failed, done again */
	uint64_t seen;		/* steps looked at from outside */
};

static inline uint64_t prop_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t prop_next(struct prop *p);
uint64_t prop_below(struct prop *p, uint64_t n);
/* Uniform in the logarithm: as many sizes between 1 and 2 as between 128M and 256M. */
size_t prop_log_size(struct prop *p, size_t max);
/* Half of all values stay, the others move to where errors live. */
uint64_t prop_interesting(struct prop *p, uint64_t v);
/*
 * Sizes that together fit --max-bytes. As many as fit half of it, 20 at most, stay above
 * 64 MiB, as small as need be; the others are drawn again, smaller, the largest first.
 */
void prop_plan_sizes(struct prop *p);
/* The rest of a step, for a file of `end` bytes. */
void prop_pick(struct prop *p, struct step *s, size_t size, off_t end, bool hole);

#endif /* CUFILE_PROP_H */
