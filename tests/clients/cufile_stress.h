/* SPDX-License-Identifier: MIT */
/* cufile_stress.h - the stress test: its state, and what its threads do. */
#ifndef CUFILE_STRESS_H
#define CUFILE_STRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cufile.h"
#include "t_gpu.h"

#define K 1024UL
#define M (1024UL * 1024)
#define FILES 4
#define MAX_THREADS 256
#define MAX_CARDS 8
#define IO_MAX (1 * M)
#define STRETCH (2 * M - 1234)		/* no stretch but the first starts at a block */
#define GUARD 64			/* bytes looked at on both sides of the target */
#define BUFFER (IO_MAX + 8 * K)		/* room for odd targets and guards */
#define GUARD_BYTE 0xa5

enum kind { REGISTERED, UNREGISTERED, HOST, KINDS };
enum stop { STOP_NONE, STOP_CLOSE, STOP_DEREGISTER, STOP_FREE, STOP_KILL };

/* What a stretch of a file holds. Shared, so that it outlives a process that is killed. */
struct stretch {
	unsigned char now[STRETCH];
	unsigned char next[IO_MAX];	/* of the write that has begun */
	size_t next_at, next_len;	/* next_len 0: none has; set before and after the call */
};

struct worker {
	struct stress *all;
	pthread_t thread;
	unsigned int n, file;
	int card;
	off_t base;			/* of its stretch */
	uint64_t rnd;
	struct stretch *st;
	pthread_mutex_t lock;		/* held over a step; free mode takes it between two */
	atomic_bool wanted;		/* by free mode: the thread leaves it the lock */
	CUdeviceptr gpu[2];		/* by enum kind */
	unsigned char *host, *scratch;
	uint64_t reads, writes, bytes, refused;
};

struct stress {
	const char *dir[2];
	unsigned int dirs, threads;
	int cards;
	double seconds;
	uint64_t seed;
	enum stop stop;

	char path[FILES][512];
	int fd[FILES];
	CUfileHandle_t fh[FILES];
	struct t_gpu gpu[MAX_CARDS];
	struct worker *w;
	struct stretch *st;
	pthread_t churn;
	atomic_bool over;		/* threads come home */
	atomic_bool may_fail;		/* the end was ordered: some errors are fair */
	atomic_bool bad;
	atomic_ulong churned;		/* handles and buffers that came and went */
	unsigned long freed;		/* buffers freed and made anew under I/O */
};

/* Ends the run, with a text and a bad status. */
void s_bad(struct stress *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *s_io_error(int err);

/* Threads; the argument is a struct worker, and the struct stress. */
void *s_work(void *arg);
void *s_churn(void *arg);

#endif /* CUFILE_STRESS_H */
