/* SPDX-License-Identifier: MIT */
/*
 * stats_shm.h - where statistics are counted, readable by another process while it goes on.
 *
 * POSIX shared memory of mode 0600 named STATS_SHM_NAME with the process id. What counts is
 * spread over shards, one a group of threads, each on cache lines of its own. The counting
 * process updates a shard under a lock of its own and makes `seq` odd meanwhile; who reads
 * from outside takes a shard again when seq was odd or has changed. So each request is seen
 * as a whole or not at all. The version changes with the layout: read no other.
 */
#ifndef STATS_SHM_H
#define STATS_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "cufile.h"

#define STATS_SHM_NAME "/opengds-stats.%d"
#define STATS_SHM_MAGIC 0x7374617473646730ULL
#define STATS_SHM_VERSION 1

/* TSan's deadlock detector gives up at 64 locks held, and a snapshot holds all of these. */
#define STATS_SHARDS 32
#define STATS_GPUS CUFILE_STATS_MAX_GPUS
#define STATS_BUCKETS 16	/* below 4 KiB, 8 KiB, ... 64 MiB, and the rest */

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
	struct stats_shard shard[STATS_SHARDS];
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

/* The reading side. -ENOENT: the process publishes nothing; -EPROTO: another version. */
int stats_area_open(int pid, const struct stats_area **out);
void stats_area_close(const struct stats_area *a);

/* All of it at `now_ns` of the monotonic clock; what the level leaves out is 0. */
void stats_area_read(const struct stats_area *a, uint64_t now_ns, CUfileStatsLevel3_t *out);

#endif /* STATS_SHM_H */
