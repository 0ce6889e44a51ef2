/* SPDX-License-Identifier: MIT */
/* prop.h - the property test of a cell: its state, the model of file and GPU memory. */
#ifndef MATRIX_PROP_H
#define MATRIX_PROP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cufile.h"
#include "nvfs_client.h"
#include "opengds.h"
#include "soft.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_random.h"

#define KB 1024UL
#define MB (1024 * KB)
#define LIMIT (4 * MB)			/* no file is longer, of a device no more is used */
#define GUARD (16 * KB)			/* GPU memory looked at on both sides of a request */
#define LARGEST (1 * MB)		/* of a request */
#define ROOM (2 * GUARD + LARGEST + 64 * KB)	/* GPU memory */
/* Two that run beside one another have their own part of the file, and nobody what is between. */
#define LOW_END (3 * MB / 2)
#define HIGH_BEGIN (2 * MB)
#define HIGH_END (3 * MB)

enum way { WAY_NVFS, WAY_P2PDMA, WAY_STAGED, WAY_BAR, WAY_BOUNCE, WAY_RAW, WAYS };

/* What a route is called in a cell; the last two are of the raw ABI alone. */
enum took {
	TOOK_NVFS, TOOK_P2PDMA, TOOK_STAGED, TOOK_BAR, TOOK_BOUNCE, TOOK_CPU, TOOK_NONE, TOOKS
};

/* Operations that a file system may lack, and --ops names. */
enum op {
	OP_READ, OP_WRITE, OP_EXTEND, OP_TRUNCATE, OP_PUNCH, OP_UNWRITTEN, OP_STORE, OP_LOAD,
	OP_BUFFERED, OP_FSYNC, OP_DROP, OP_REOPEN, OP_RACE, OP_THREAD, OP_PROCESS, OP_APPEND, OPS,
	OP_DIRECT = OPS		/* opening with O_DIRECT: to lack, not to do */
};

/* A row of what was counted: requests that moved bytes by a route, for a reason. */
struct tally {
	const char *route, *reason;
	unsigned long requests;
	uint64_t bytes;
};
#define TALLIES 24

/*
 * What the file has. It is shared with the second process, which writes the part of the file
 * that is its own, and the same part here.
 */
struct model {
	uint8_t data[LIMIT];
	/* of a byte: written since it was a hole or an unwritten block: its block has data */
	uint8_t sure[LIMIT];
};

struct prop {
	const char *file;
	enum way way;
	bool strict, takes[TOOKS], read_only, write_hole, pins, soft, grow, child, verbose;
	const char *reason;	/* NULL: the route that is asked for */
	uint64_t seed, rnd;
	unsigned int steps, lacks, ops;	/* bits of enum op */
	size_t start, made_seed, largest;
	off_t from, to;		/* requests stay in this part; 0: of the file as it is */
	int card, model_fd;
	const char *keep;

	bool device;		/* a block device: it has no end to move */
	int plain, direct, fd;	/* descriptors; direct -1: lacked; fd: the one cuFile has */
	CUfileHandle_t fh;
	bool open, registered;
	struct t_gpu gpu;
	CUdeviceptr mem;
	uint8_t *gpu_want;	/* what GPU memory holds, ROOM bytes */
	uint8_t *a, *b;		/* LIMIT bytes, for O_DIRECT */
	uint8_t *map;		/* a mapping of LIMIT bytes that stays; NULL: lacked */
	off_t end;		/* of the file */
	struct model *m;
	struct nvfs nv;
	struct nvfs_map nmap;
	bool nmapped;

	unsigned long done[OPS];
	struct tally tally[TALLIES];
	unsigned long judged[TOOKS];	/* requests of whole blocks that took it, no exceptions */
	const char *why;		/* the reason of those that took another one */
	char doing[200];
};

/* One request: what is asked for, what came of it. */
struct request {
	bool write;
	off_t off;
	size_t size, target;	/* target: from the begin of GPU memory */
	/* after it */
	ssize_t got;
	int err;		/* errno or CUfileOpError when got is -1 */
	size_t whole;		/* bytes of whole blocks in what should be moved */
	bool refused;		/* by strict, as it had to be or may be */
	bool touched;		/* and perhaps only when it ran: some bytes may have moved */
	const char *route, *reason;
	uint64_t dma, cpu;	/* raw: the module's witness */
};

static inline size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t below(struct prop *p, size_t n)
{
	return n ? t_random_below(&p->rnd, n) : 0;
}

/* Ends the program: a byte, a route or a reason is wrong. */
void bad(const struct prop *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
const char *op_name(unsigned int op);
const char *took_name(unsigned int took);
const char *way_name(unsigned int way);

/* prop_file.c: the file and the model of it */
void file_open(struct prop *p);
void file_begin(struct prop *p);
/* Compares [from, to) and the size, by O_DIRECT or the page cache. */
void file_check(struct prop *p, off_t from, off_t to);
/* All of it, with none of its pages cached; below, on_again() of the cell sees to that. */
void file_check_cold(struct prop *p);
/* What the file has to have, for `matrix_file check`. */
void file_keep(const struct prop *p, const char *path);
/* Bytes that were nowhere yet. */
void fresh(struct prop *p, uint8_t *data, size_t n);
void model_wrote(struct prop *p, off_t off, const uint8_t *data, size_t n);
/* A range is a hole, or unwritten: zero. */
void model_hole(struct prop *p, off_t off, size_t n);
/* Does each block that [off, off + n) touches have data? */
bool model_sure(const struct prop *p, off_t off, size_t n);
/* By the page cache, all of it or the end of the test. */
void plain_write(struct prop *p, off_t off, const uint8_t *data, size_t n);
/* Buffered writes until the file has `end` bytes, all of them data. */
void fill(struct prop *p, off_t end);

/* prop_io.c: requests */
void io_open(struct prop *p);
void io_close(struct prop *p);
void io_register(struct prop *p);	/* file and memory, in one of several ways */
void io_deregister(struct prop *p);
/* Random size, place and target; write: within the file. */
void io_pick(struct prop *p, struct request *r, bool write);
/* Does it, judges route and reason, compares GPU memory and the file. */
void io_do(struct prop *p, struct request *r);
/* Puts new bytes into the target and around it; of a write they are left in p->a. */
void io_prepare(struct prop *p, struct request *r);
ssize_t io_submit(struct prop *p, struct request *r);
/* GPU memory around and in the target is what p->gpu_want says. */
void io_check_gpu(struct prop *p, const struct request *r);
/* O_APPEND is refused, and nothing is written. */
void io_append(struct prop *p);

/* prop_judge.c: routes and reasons */
void judge(struct prop *p, struct request *r);
void tally_print(const struct prop *p);
/* Did whole blocks take what was expected, at all? */
void judge_all(const struct prop *p);

/* prop_pair.c: two at a time */
void race(struct prop *p);
void beside_thread(struct prop *p);
void beside_process(struct prop *p, const char *self);
void child_run(struct prop *p);

#endif /* MATRIX_PROP_H */
