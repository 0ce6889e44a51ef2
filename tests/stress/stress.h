/* SPDX-License-Identifier: MIT */
/*
 * stress.h - random calls of the whole API on many threads against a model of what files and
 * memory hold.
 *
 * Every thread owns a stretch of each shared file and a span of each shared memory, cut into
 * ZONES; what is under way in a batch or a stream has zones of its own until it is over. So
 * the model knows each byte and each result, though handles, registrations, files,
 * allocations and the library's tables are shared.
 */
#ifndef STRESS_H
#define STRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cuda.h>

#include "cufile.h"
#include "opengds.h"
#include "../clients/t_random.h"

#define MOST_THREADS 32
#define ZONES 8
#define ZONE ((size_t)144 * 1024)
#define GUARD ((size_t)256)			/* around the zones of a span */
#define SPAN (ZONES * ZONE + 2 * GUARD)
#define AROUND ((size_t)64)			/* bytes looked at on both sides of a target */
#define FILES 3					/* shared ones */
#define SHARED_HANDLES (FILES * 4)
#define MOST_HANDLES 12				/* of a thread, at a time */
#define MOST_REGS 10				/* of a memory, at a time */
#define STALE 16				/* dead handles that are tried again */
#define BATCHES 2
#define MOST_ENTRIES 40
#define STREAMS 2
#define MOST_OPS 6				/* of a burst in one stream */
#define TRACE 20				/* calls that a failure prints */

struct options {
	uint64_t seed;
	unsigned long calls;			/* 0: no limit */
	double seconds;				/* 0: no limit */
	unsigned int threads;
	unsigned int look;			/* at everything, every so many calls of a thread */
	unsigned int epoch;			/* calls of each thread in one, about */
	bool quiet;				/* no progress */
};

/* What an epoch runs with: from one open of the library to its last close. */
struct setup {
	bool strict, force_compat, allow_compat, system_memory;
	bool module;				/* nvidia-fs is there */
	bool theirs;				/* and is not ours */
	bool faults;				/* direct requests and pins fail now and then */
	bool words;				/* streams can wait for a word */
	bool whole[2];				/* the shared memories are registered as a whole */
	unsigned int routes;			/* allowed ones */
	unsigned int threads;			/* of the library; 0: none */
	size_t batch;				/* entries of a batch, at most */
	size_t direct_kb;			/* 0: not set */
	size_t slab_kb, slab_count;		/* of the GPU; 0: not set */
	size_t posix_kb, posix_count;		/* of the host; 0: not set */
	int stats;				/* level */
	const char *level;			/* of the log */
};

/* A file, or this thread's stretch of one. */
struct file_model {
	char path[128];
	bool own;				/* of this thread alone: it grows and shrinks */
	bool holes;				/* or had some */
	off_t start;				/* of the zones */
	size_t size;				/* bytes from start on that are the thread's */
	off_t end;				/* of the whole file, when it is shared */
	unsigned char *want;			/* ZONES * ZONE */
	int look;				/* a descriptor for the test */
	uint64_t inode;
	unsigned int busy[ZONES];		/* requests under way in each */
	unsigned int frozen;			/* requests under way that its size matters to */
};

struct reg {
	char *start;
	size_t len;
};

enum mem_kind { DEV_SHARED, HOST_SHARED, DEV_OWN, PINNED_OWN, MEMS };

struct mem {
	enum mem_kind kind;
	bool host;
	char *base;				/* of the allocation; NULL: none at the moment */
	size_t len;
	char *span;				/* SPAN bytes, this thread's */
	unsigned char *want;
	unsigned int busy[ZONES];
	unsigned int fixed;			/* requests that each registration matters to */
	struct reg reg[MOST_REGS];
	unsigned int regs;
};

/* A descriptor of the program's, and what it names at the moment. */
struct fd_model {
	int fd;
	int flags;
	const struct file_model *names;
	unsigned int handles;
};

struct handle {
	CUfileHandle_t fh;
	struct file_model *file;
	int mode;				/* O_RDONLY, O_WRONLY, O_RDWR */
	struct fd_model *d;			/* NULL: a shared one */
	bool claims;				/* the descriptor's number is this handle's */
};

/* What is asked for, and what has to come. */
struct ask {
	bool write;
	CUfileHandle_t fh;
	struct handle *h;			/* NULL: fh is none */
	struct file_model *file;		/* of h when it was picked: h may go meanwhile */
	struct mem *m;				/* NULL: memory that is not there */
	char *base;
	off_t buf_off;
	size_t size;
	off_t off;
	size_t at, rel;				/* in the span, in the zones of the file */
};

struct answer {
	size_t n;				/* bytes moved */
	int err;				/* errno or CUfileOpError; 0: none */
};

/* Zones that an entry or a burst has. */
struct claim {
	struct file_model *file;
	struct mem *m;
	unsigned int fz, nf, mz, nm;		/* first and number */
	bool fixed;				/* no registration of the memory comes or goes */
};

/* The last three: a cancel ended it, and it is not reported yet. */
enum fate { FREE_ENTRY, UNDER_WAY, WAS_DONE, WAS_DROPPED, WAS_EITHER };

struct entry {
	enum fate fate;
	struct ask a;
	struct answer want;
	struct claim c;
	bool claimed, bad_opcode;
};

struct batch {
	CUfileBatchHandle_t h;			/* NULL: none */
	unsigned int capacity, waiting;		/* entries; those not reported */
	bool stale;				/* cancelled, and nothing submitted since */
	struct entry e[MOST_ENTRIES];
};

/* The four numbers of one operation, and what the first three will be when its turn comes. */
struct op {
	struct ask a;				/* with those that count */
	struct answer want;
	size_t size, late_size;
	off_t off, late_off, buf_off, late_buf_off;
	ssize_t bytes;
};

struct burst {
	CUstream stream;
	bool exists, registered;
	unsigned int flags;
	unsigned int n;				/* operations under way */
	atomic_bool gate;
	struct claim c;
	struct op op[MOST_OPS];
};

struct traced {
	const char *fmt;
	long arg[6], result;
	int err;
};

/* What the library's statistics have to say at the end. */
struct tally {
	uint64_t ok[2], err[2], bytes[2];
	uint64_t handle_ok, handle_err, drop_ok, drop_err, buf_ok, buf_err, undo_ok, undo_err;
	uint64_t setup_ok, setup_err, submit_ok, submit_err, cancel, destroy_ok, destroy_err;
	uint64_t batch_bytes[2];
	bool unsure;				/* of the bytes of batches: some were cancelled */
};

struct worker {
	struct stress *all;
	unsigned int n;
	pthread_t thread;
	uint64_t rnd;
	unsigned long calls;			/* of all epochs; the thread's own */
	atomic_ulong shown;			/* the same, for others to read */
	struct traced trace[TRACE];
	struct file_model file[FILES + 1];	/* the last one is the thread's own */
	struct mem mem[MEMS];
	struct fd_model fd[MOST_HANDLES];
	struct handle handle[MOST_HANDLES];
	struct handle shared[SHARED_HANDLES];	/* this thread's view of them */
	CUfileHandle_t stale[STALE];
	unsigned int nstale;
	struct batch batch[BATCHES];
	struct burst burst[STREAMS];
	unsigned int uses;			/* opens not given back */
	uint64_t sequence;			/* of the last request, as reported */
	struct tally tally;
	unsigned char *scratch;			/* SPAN bytes */
};

struct stress {
	struct options opt;
	struct setup set;
	unsigned int epoch;
	bool stop;				/* written between two epochs */
	pthread_barrier_t begin, end;
	unsigned long quota;			/* calls of each thread in this epoch */
	char *mem[2];				/* the shared ones */
	size_t mem_len[2];
	char *nowhere;				/* address space without memory */
	int fd[SHARED_HANDLES];
	CUfileHandle_t fh[SHARED_HANDLES];
	/* of the extra opens: begun, done; and closes */
	atomic_long opens_begun, opens_done, closes_begun, closes_done;
	long base_uses;
	struct tally tally;			/* of what the main thread does */
	atomic_bool time_is_up;
	char json[160];
	/* settings that thread 0 alone changes; KB, 0: not set */
	size_t direct_kb, cache_kb, pinned_kb, poll_kb;
	bool poll;
	struct worker w[MOST_THREADS];
};

/* 0; a mismatch does not come back: it is printed and ends the process with status 1. */
int stress_run(const struct options *opt);

/* -- for the parts -- */

size_t st_below(struct worker *w, size_t n);
bool st_one_in(struct worker *w, unsigned int n);
/* 1 .. most, each order of magnitude alike */
size_t st_size(struct worker *w, size_t most);

__attribute__((format(printf, 2, 3), noreturn))
void st_bad(struct worker *w, const char *fmt, ...);

/* Notes a call: fmt takes up to six longs. Then its result. */
void st_call(struct worker *w, const char *fmt, long a, long b, long c, long d, long e, long f);
void st_result(struct worker *w, long result, int err);
/* The same of a call that gives a status, which has to be `err` (and of CUDA `cu`). */
void st_status(struct worker *w, CUfileError_t got, int err, int cu);

/* model.c */
bool md_mem_window(struct worker *w, const struct mem *m, unsigned int *first, unsigned int *n);
bool md_file_window(struct worker *w, const struct file_model *f, unsigned int *first,
		    unsigned int *n);
bool md_start_is_busy(const struct mem *m, const char *start);
void md_claim(const struct claim *c, int by);
struct answer md_predict(struct worker *w, const struct ask *a);
/* The request was done: what changes by it. */
void md_apply(struct worker *w, const struct ask *a, size_t n);
/* Target and file range are as the model says, and what is around them in the window. */
void md_check(struct worker *w, const struct ask *a, const struct claim *window);
void md_check_mem(struct worker *w, const struct mem *m, size_t from, size_t to);
void md_check_file(struct worker *w, const struct file_model *f, size_t from, size_t to);
/* All that is not under way. */
void md_check_all(struct worker *w);
bool md_covered(struct worker *w, const struct mem *m, uint64_t va, size_t size);
bool md_starts(struct worker *w, const struct mem *m, uint64_t va);

/* object.c */
void ob_begin(struct worker *w);		/* of an epoch, the library open */
void ob_end(struct worker *w);
void ob_register(struct worker *w);
void ob_deregister(struct worker *w);
void ob_buf_register(struct worker *w);
void ob_buf_deregister(struct worker *w);
void ob_come_and_go(struct worker *w);
CUfileHandle_t ob_no_handle(struct worker *w);
/* A handle for that direction; `wrong`: or the other one; NULL: there is none. */
struct handle *ob_handle(struct worker *w, bool write, bool wrong);

/* request.c */
void rq_one(struct worker *w);
void rq_vector(struct worker *w);
/* A request inside the window, right in all; false: there is no room. Data of a write is new. */
bool rq_pick(struct worker *w, struct ask *a, struct claim *window, bool in_flight);
/* The window becomes the zones that the request needs, and is claimed. */
void rq_claim(struct worker *w, const struct ask *a, struct claim *window);
void rq_count(struct worker *w, bool write, ssize_t n);
void rq_aim(struct worker *w, struct ask *a, const struct claim *window, bool in_flight);
void rq_spoil(struct worker *w, struct ask *a, bool in_flight);

/* batch.c */
void bt_one(struct worker *w);
void bt_end(struct worker *w);

/* streams.c */
void sm_one(struct worker *w);
void sm_end(struct worker *w);
void sm_begin(struct worker *w);		/* of an epoch */
void sm_free(struct worker *w);

/* calls.c: what is neither object nor request */
void cl_one(struct worker *w);

/* setup.c: by one thread, nobody inside */
void se_begin(struct stress *s);		/* once: memory and files */
void se_end(struct stress *s);
void se_choose(struct stress *s);
void se_stage(struct stress *s);		/* closed: what the next open is to find */
void se_open(struct stress *s);
void se_close(struct stress *s);		/* the threads are at rest */
void se_closed(struct stress *s);		/* what a closed library says */

#endif /* STRESS_H */
