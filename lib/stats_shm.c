// SPDX-License-Identifier: MIT
/*
 * stats_shm.c - the memory that statistics are counted in, and how it is read. Needs nothing
 * of the library, so that tools can be built with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stats_shm.h"

static void name_of(int pid, char *out, size_t len)
{
	snprintf(out, len, STATS_SHM_NAME, pid);
}

/* 0, 1 and 2 are the program's, open or not. */
static int shm_fd(const char *name, int flags)
{
	int fd = shm_open(name, flags | O_NOFOLLOW, 0600), up, err;

	if (fd < 0)
		return -errno;
	if (fd > 2)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	err = errno;
	close(fd);
	return up < 0 ? -err : up;
}

uint64_t stats_started(int pid)
{
	char path[32], text[1024], *p;
	uint64_t ticks = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* the second field is the command, in brackets, of any characters */
	p = strrchr(text, ')');
	if (p && sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
			&ticks) != 1)
		ticks = 0;
	return ticks;
}

/* Ours, of a process with this number that did not get to remove it. */
static bool is_mine(const char *name)
{
	int fd = shm_fd(name, O_RDONLY);
	struct stat st;
	bool mine;

	if (fd < 0)
		return false;
	mine = !fstat(fd, &st) && st.st_uid == geteuid();
	close(fd);
	return mine;
}

int stats_area_create(struct stats_area **out)
{
	char name[64];
	int fd, r = 0;
	void *p;

	name_of(getpid(), name, sizeof(name));
	fd = shm_fd(name, O_RDWR | O_CREAT | O_EXCL);
	if (fd == -EEXIST && is_mine(name)) {
		shm_unlink(name);
		fd = shm_fd(name, O_RDWR | O_CREAT | O_EXCL);
	}
	if (fd < 0)
		return fd;
	/* whatever the umask; memory that is not there yet would end the program at its use */
	r = fchmod(fd, 0600) ? errno : posix_fallocate(fd, 0, sizeof(**out));
	if (!r) {
		p = mmap(NULL, sizeof(**out), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			r = errno;
		else
			*out = p;
	}
	close(fd);
	if (r)
		shm_unlink(name);
	return -r;
}

void stats_area_unname(void)
{
	char name[64];

	name_of(getpid(), name, sizeof(name));
	shm_unlink(name);
}

struct stats_area *stats_area_private(void)
{
	void *p = mmap(NULL, sizeof(struct stats_area), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void stats_area_free(struct stats_area *a)
{
	munmap(a, sizeof(*a));
}

int stats_area_map(int fd, int pid, const struct stats_area **out, uint32_t *version)
{
	const struct stats_area *a;
	uint64_t head[2] = { 0, 0 };
	struct stat st;

	*version = 0;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    pread(fd, head, sizeof(head), 0) != sizeof(head) || head[0] != STATS_SHM_MAGIC)
		return -EPROTO;
	memcpy(version, &head[1], sizeof(*version));
	/* a shorter one would end us when we look behind its end */
	if (*version != STATS_SHM_VERSION || st.st_size != sizeof(*a))
		return -EPROTO;
	a = mmap(NULL, sizeof(*a), PROT_READ, MAP_SHARED, fd, 0);
	if (a == MAP_FAILED)
		return -errno;
	if (__atomic_load_n(&a->magic, __ATOMIC_ACQUIRE) != STATS_SHM_MAGIC ||
	    a->size != sizeof(*a) || a->pid != pid) {
		stats_area_close(a);
		return -EPROTO;
	}
	*out = a;
	return 0;
}

int stats_area_open(int pid, const struct stats_area **out)
{
	uint32_t version;
	char name[64];
	int fd, r;

	name_of(pid, name, sizeof(name));
	fd = shm_fd(name, O_RDONLY);
	if (fd < 0)
		return fd;
	r = stats_area_map(fd, pid, out, &version);
	close(fd);
	return r;
}

void stats_area_close(const struct stats_area *a)
{
	munmap((void *)(uintptr_t)a, sizeof(*a));
}

/* -- reading -- */

void stats_words(const uint64_t *from, uint64_t *to, size_t n, unsigned int *tries)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	size_t i;

	for (;;) {
		to[0] = __atomic_load_n(&from[0], __ATOMIC_ACQUIRE);
		for (i = 1; i < n; i++)
			to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
		if (!(to[0] & 1) && __atomic_load_n(&from[0], __ATOMIC_RELAXED) == to[0])
			return;
		if (!*tries)
			return;
		/* the writer may be off its processor */
		if (--*tries % 16 == 0)
			nanosleep(&nap, NULL);
	}
}

static void sum_up(const struct stats_area *a, struct stats_shard *sum, unsigned int *tries)
{
	const size_t n = sizeof(*sum) / sizeof(uint64_t);
	struct stats_shard one;
	size_t i, j;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < STATS_SHARDS; i++) {
		stats_words((const uint64_t *)&a->shard[i], (uint64_t *)&one, n, tries);
		for (j = 1; j < n; j++)
			((uint64_t *)sum)[j] += ((uint64_t *)&one)[j];
	}
}

static uint64_t per_second(uint64_t n, uint64_t ns)
{
	return ns ? (uint64_t)((double)n * 1e9 / (double)ns) : 0;
}

static uint64_t average_us(uint64_t ns, uint64_t n)
{
	return n ? ns / n / 1000 : 0;
}

static void fill_basic(const struct stats_shard *s, uint64_t ns, CUfileStatsLevel1_t *l)
{
	CUfileOpCounter_t *first = &l->read_ops, *batch = &l->batch_submit_ops;
	unsigned int i;

	for (i = STATS_READ; i < STATS_WHATS; i++) {
		CUfileOpCounter_t *c = i < STATS_BATCH_SUBMIT ? first + i :
								batch + (i - STATS_BATCH_SUBMIT);

		c->ok = s->ok[i];
		c->err = s->err[i];
	}
	l->read_bytes = s->bytes[0];
	l->write_bytes = s->bytes[1];
	l->read_bw_bytes_per_sec = per_second(s->bytes[0], ns);
	l->write_bw_bytes_per_sec = per_second(s->bytes[1], ns);
	l->read_lat_avg_us = average_us(s->ns[0], s->ok[STATS_READ]);
	l->write_lat_avg_us = average_us(s->ns[1], s->ok[STATS_WRITE]);
	l->read_ops_per_sec = per_second(s->ok[STATS_READ], ns);
	l->write_ops_per_sec = per_second(s->ok[STATS_WRITE], ns);
	l->read_lat_sum_us = s->ns[0] / 1000;
	l->write_lat_sum_us = s->ns[1] / 1000;
	l->batch_read_bytes = s->batch_bytes[0];
	l->batch_write_bytes = s->batch_bytes[1];
	l->batch_read_bw_bytes = per_second(s->batch_bytes[0], ns);
	l->batch_write_bw_bytes = per_second(s->batch_bytes[1], ns);
	l->batch_submit_lat_avg_us = average_us(s->batch_submit_ns, s->ok[STATS_BATCH_SUBMIT]);
	l->batch_completion_lat_avg_us =
		average_us(s->batch_complete_ns, s->ok[STATS_BATCH_COMPLETE]);
	l->batch_submit_ops_per_sec = per_second(s->ok[STATS_BATCH_SUBMIT], ns);
	l->batch_complete_ops_per_sec = per_second(s->ok[STATS_BATCH_COMPLETE], ns);
	l->batch_submit_lat_sum_us = s->batch_submit_ns / 1000;
	l->batch_completion_lat_sum_us = s->batch_complete_ns / 1000;
}

/* Of a hundred; requests that overlap are no more than all of the time. */
static uint64_t busy(uint64_t busy_ns, uint64_t ns)
{
	return !ns ? 0 : busy_ns >= ns ? 100 : (uint64_t)((double)busy_ns * 100 / (double)ns);
}

static void fill_gpu(const struct stats_gpu *s, uint64_t ns, CUfilePerGpuStats_t *g)
{
	const struct stats_gpu_way *r = &s->way[0], *w = &s->way[1];

	g->read_bytes = r->bytes;
	g->read_bw_bytes_per_sec = per_second(r->bytes, ns);
	g->read_utilization = busy(r->ns, ns);
	g->read_duration_us = r->ns / 1000;
	g->n_total_reads = r->n;
	g->n_p2p_reads = r->p2p;
	g->n_nvfs_reads = r->nvfs;
	g->n_posix_reads = r->posix;
	g->n_unaligned_reads = r->unaligned;
	g->n_reads_err = r->err;
	g->writes_bytes = w->bytes;
	g->write_bw_bytes_per_sec = per_second(w->bytes, ns);
	g->write_utilization = busy(w->ns, ns);
	g->write_duration_us = w->ns / 1000;
	g->n_total_writes = w->n;
	g->n_p2p_writes = w->p2p;
	g->n_nvfs_writes = w->nvfs;
	g->n_posix_writes = w->posix;
	g->n_unaligned_writes = w->unaligned;
	g->n_writes_err = w->err;
	g->n_mmap = s->registered + s->register_errors;
	g->n_mmap_ok = s->registered;
	g->n_mmap_err = s->register_errors;
	g->n_mmap_free = s->deregistered;
	/* negative when more was given back than registered since it is counted */
	g->reg_bytes = (int64_t)s->register_bytes < 0 ? 0 : s->register_bytes;
}

uint64_t stats_area_ns(const struct stats_area *a, uint64_t now_ns, unsigned int *tries)
{
	uint64_t clock[3];

	stats_words(&a->seq, clock, 3, tries);
	return clock[1] + (clock[2] && now_ns > clock[2] ? now_ns - clock[2] : 0);
}

void stats_area_read(const struct stats_area *a, uint64_t now_ns, CUfileStatsLevel3_t *out)
{
	CUfileStatsLevel1_t *l = &out->detailed.basic;
	unsigned int i, tries = STATS_TRIES;
	struct stats_shard s;
	uint64_t ns;

	memset(out, 0, sizeof(*out));
	sum_up(a, &s, &tries);
	ns = stats_area_ns(a, now_ns, &tries);
	fill_basic(&s, ns, l);
	l->last_batch_read_bytes = __atomic_load_n(&a->last_batch_bytes[0], __ATOMIC_RELAXED);
	l->last_batch_write_bytes = __atomic_load_n(&a->last_batch_bytes[1], __ATOMIC_RELAXED);
	memcpy(out->detailed.read_size_kb_hist, s.hist[0], sizeof(s.hist[0]));
	memcpy(out->detailed.write_size_kb_hist, s.hist[1], sizeof(s.hist[1]));
	out->num_gpus = a->gpus < STATS_GPUS ? a->gpus : STATS_GPUS;
	for (i = 0; i < out->num_gpus; i++) {
		memcpy(out->per_gpu_stats[i].uuid, a->uuid[i], CUFILE_GPU_UUID_LEN);
		fill_gpu(&s.gpu[i], ns, &out->per_gpu_stats[i]);
	}
}
