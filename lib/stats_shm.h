/* SPDX-License-Identifier: MIT */
/*
 * stats_shm.h - where statistics are counted, readable by another process while it goes on.
 *
 * POSIX shared memory of mode 0600 named STATS_SHM_NAME with the process id. What counts is
 * spread over shards, one a group of threads, each on cache lines of its own. The counting
 * process updates a shard under a lock of its own and makes `seq` odd meanwhile; who reads
 * from outside takes a shard again when seq was odd or has changed. So each request is seen
 * as a whole or not at all. Rows (by route, GPU and file), names of files and pools have a seq
 * each: such a thing is whole in itself, but may be some requests older or newer than another.
 * The version changes with the layout: read no other. docs/gds_stats.md has all of it.
 */
#ifndef STATS_SHM_H
#define STATS_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "cufile.h"

#define STATS_SHM_NAME "/opengds-stats.%d"
#define STATS_SHM_MAGIC 0x7374617473646730ULL
#define STATS_SHM_VERSION 2

/* TSan's deadlock detector gives up at 64 locks held, and a snapshot holds all of these. */
#define STATS_SHARDS 32
#define STATS_GPUS CUFILE_STATS_MAX_GPUS
#define STATS_BUCKETS 16	/* below 4 KiB, 8 KiB, ... 64 MiB, and the rest */
#define STATS_TIMES 24		/* below 1 us, 2 us, ... 2^22 us, and the rest */
#define STATS_ROUTES 8		/* room; how many there are stands in the area */
#define STATS_ROUTE_NAME 16
#define STATS_FILES 64		/* those that moved most; row STATS_FILES is of all others */
#define STATS_FILE_NAME 240

/* Things that succeed or fail; in the order of CUfileStatsLevel1_t */
enum stats_what {
	STATS_READ,
	STATS_WRITE,
	STATS_HANDLE_REGISTER,
	STATS_HANDLE_DEREGISTER,
	STATS_BUFFER_REGISTER,
	STATS_BUFFER_DEREGISTER,
	STATS_BATCH_SUBMIT,
	STATS_BATCH_COMPLETE,
	STATS_BATCH_SETUP,
	STATS_BATCH_CANCEL,
	STATS_BATCH_DESTROY,
	STATS_BATCH_ENQUEUED,
	STATS_BATCH_POSIX_ENQUEUED,
	STATS_BATCH_PROCESSED,
	STATS_BATCH_POSIX_PROCESSED,
	STATS_BATCH_NVFS_SUBMIT,
	STATS_BATCH_P2P_SUBMIT,
	STATS_BATCH_AIO_SUBMIT,
	STATS_BATCH_IOURING_SUBMIT,
	STATS_BATCH_MIXED_SUBMIT,
	STATS_BATCH_TOTAL_SUBMIT,
	STATS_WHATS
};

/* Index 0 of each [2] is of reads, 1 of writes. Nothing but uint64_t: it is read by words. */
struct stats_gpu_way {
	uint64_t n, p2p, nvfs, posix, unaligned, err, bytes, ns;
};

struct stats_gpu {
	struct stats_gpu_way way[2];
	uint64_t registered, register_errors, deregistered, register_bytes;
};

struct stats_shard {
	_Alignas(64) uint64_t seq;	/* odd: it is being changed */
	uint64_t ok[STATS_WHATS], err[STATS_WHATS];
	uint64_t bytes[2], ns[2];
	uint64_t batch_bytes[2], batch_submit_ns, batch_complete_ns;
	uint64_t hist[2][STATS_BUCKETS];
	struct stats_gpu gpu[STATS_GPUS];
};

/* Of a row, one direction. Requests, entries of batches and operations of streams alike. */
struct stats_way {
	/* of a route: requests that moved bytes by it; those in which a part failed on it */
	uint64_t n, err;
	uint64_t bytes, ns;
	uint64_t retried;	/* bytes that failed on a direct route and went another way */
	uint64_t route[STATS_ROUTES];	/* bytes by each; not of a route's own row */
	uint64_t size[STATS_BUCKETS], time[STATS_TIMES];	/* requests */
};

struct stats_row {
	_Alignas(64) uint64_t seq;	/* odd: it is being changed */
	struct stats_way way[2];
};

/* The rows of one shard. Routes from level 1 on, the histograms from 2, GPUs and files at 3. */
struct stats_rows {
	struct stats_row route[STATS_ROUTES];
	struct stats_row gpu[STATS_GPUS];
	struct stats_row file[STATS_FILES + 1];
};

/*
 * What the row of this number is of. While seq is odd or other than before the row was read,
 * that may be of two files.
 */
struct stats_file {
	_Alignas(64) uint64_t seq;
	uint64_t users;		/* handles that are registered */
	char name[STATS_FILE_NAME];	/* "": nobody's; a long one is "..." and its end */
};

/* Slots of a pool. `most`: used at a time; `waits`: somebody found none and waited. */
struct stats_pool {
	_Alignas(64) uint64_t seq;
	uint64_t slot_bytes, slots, used, most, waits;
};

struct stats_area {
	uint64_t magic;		/* stored last */
	uint32_t version, size;	/* bytes of all of this */
	int32_t pid;
	uint32_t gpus;
	uint64_t level;		/* 0..3 */
	/* collecting: before, ns; since, on the monotonic clock (0: not now) */
	uint64_t seq, run_ns, since_ns;
	uint64_t last_batch_bytes[2];
	uint8_t uuid[STATS_GPUS][CUFILE_GPU_UUID_LEN];
	/* since version 2 */
	uint64_t started;	/* of the process, as /proc/PID/stat has it (field 22) */
	uint64_t routes;
	char route_name[STATS_ROUTES][STATS_ROUTE_NAME];
	struct stats_pool staged[STATS_GPUS];	/* GPU memory of the library */
	struct stats_pool host[STATS_GPUS];	/* used by a GPU; slots: all, they serve any GPU */
	struct stats_file file[STATS_FILES];
	struct stats_shard shard[STATS_SHARDS];
	struct stats_rows rows[STATS_SHARDS];
};

/*
 * The counting side. Zeroed and backed by memory in full, so that writing to it cannot
 * fail; a stale one of the same user is replaced. 0 or -errno. The caller stores `magic`.
 */
int stats_area_create(struct stats_area **out);
void stats_area_unname(void);
/* Without a name, for where there is no shared memory. NULL: no memory. */
struct stats_area *stats_area_private(void);
void stats_area_free(struct stats_area *a);

/* When the process began, in the kernel's ticks since the boot; 0: not to be had. */
uint64_t stats_started(int pid);

/* -- changing it. Who does that holds the lock of the part -- */

/* Release: a reader of another process that sees one of these sees the odd seq as well. */
static inline void stats_put(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline void stats_add(uint64_t *word, uint64_t value)
{
	stats_put(word, *word + value);
}

/* -- reading it -- */

/* The reading side. -ENOENT: the process publishes nothing; -EPROTO: another version. */
int stats_area_open(int pid, const struct stats_area **out);
/* The same of what is open already; *version: what it says it is, 0: nothing of the kind. */
int stats_area_map(int fd, int pid, const struct stats_area **out, uint32_t *version);
void stats_area_close(const struct stats_area *a);

/*
 * n words at `from`, whose first is their seq, as they were at one moment. *tries: how often
 * that may fail, in all; when it is used up, what somebody who died has left is taken as it is.
 */
void stats_words(const uint64_t *from, uint64_t *to, size_t n, unsigned int *tries);
#define STATS_TRIES 16000	/* with naps, a tenth of a second */

/* Time that was collected, at `now_ns` of the monotonic clock. */
uint64_t stats_area_ns(const struct stats_area *a, uint64_t now_ns, unsigned int *tries);

/* All of it at `now_ns` of the monotonic clock; what the level leaves out is 0. */
void stats_area_read(const struct stats_area *a, uint64_t now_ns, CUfileStatsLevel3_t *out);

#endif /* STATS_SHM_H */
