/* SPDX-License-Identifier: MIT */
/*
 * nvfs_fuzz.h - the fuzzer: the state of one thread, and what its files offer each other.
 */
#ifndef NVFS_FUZZ_H
#define NVFS_FUZZ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nvfs_client.h"
#include "t_gpu.h"

#define K 1024UL
#define M (1024UL * 1024)
#define FILE_SIZE (2 * M)
#define FILE_SEED 0xfa22
#define SLOTS 6
#define BUFFERS 3
#define BLOCK (2 * M)		/* what the card gives at a time: no two buffers share one, as a
				 * MAP of too many bytes may go through and reach the neighbour */
#define SLOT_STRIDE (16 * M)	/* a slot of full length touches the next one */

/* shared by all workers */
struct totals {
	atomic_ulong calls, io_good, io_bad, maps, mmaps, verified, refused, killed;
	atomic_int bugs;
};

struct buffer {
	CUdeviceptr va;		/* 0: none */
	size_t size;
	int users;		/* slots that are mapped to it */
};

struct slot {
	char *cpu;		/* NULL: free */
	size_t len;
	bool ready;		/* MAP went through */
	bool torn;		/* its address range was changed: nothing is known */
	int buf;
	size_t size, skip;	/* of the MAP: bytes, start inside the buffer */
	struct nvfs_fence_page *fence;	/* its own, so that asynchronous results are told apart */
	uint64_t value;		/* of its last asynchronous request */
};

/* The kernel's record of what ran in this thread (KCOV); fd < 0: none is kept. */
struct fuzz_kcov {
	int fd;
	uint64_t *area;		/* how many addresses follow, then they */
};

struct fuzz {
	struct totals *t;
	struct nvfs *nv;
	uint64_t rnd;
	struct slot slot[SLOTS];
	struct buffer buf[BUFFERS];
	char *arena;		/* address space of the slots; no other thread maps there */
	char *fence, *scratch;
	uint64_t file_seed;
	char path[512];
	int fd_rw, fd_ro, fd_wo, fd_buffered, fd_dir, fd_append;
	int fd_block;		/* the drive itself, or -1 */
	int fd_no_read, fd_no_write;	/* open for it, but their files have no such operation */
	unsigned int next_refusal;
	struct fuzz_kcov kcov;
	uint64_t serial;	/* seed of the next content written */
	CUcontext ctx;
	unsigned long left;
};

/* nvfs_fuzz_ops.c */
uint32_t rnd(struct fuzz *f, uint32_t n);
void bug(struct fuzz *f, const char *what, long a, long b);
int call(struct fuzz *f, unsigned long nr, void *arg);
struct slot *any_slot(struct fuzz *f, bool used);
void drop_slot(struct fuzz *f, struct slot *s);
void op_buffer(struct fuzz *f);
void fuzz_step(struct fuzz *f);

/* nvfs_fuzz_refused.c: a request with one thing wrong in it, of each kind in turn */
void op_refused(struct fuzz *f);

/* nvfs_fuzz_kcov.c: which instrumented places of the module have run, for --kcov */
void fuzz_kcov_begin(void);
void fuzz_kcov_thread(struct fuzz_kcov *k);
void fuzz_kcov_harvest(struct fuzz_kcov *k, unsigned long call);
void fuzz_kcov_write(const char *path, unsigned long calls);

#endif /* NVFS_FUZZ_H */
