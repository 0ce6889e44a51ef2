// SPDX-License-Identifier: MIT
/*
 * prop_pair.c - two at a time: requests while the file is truncated under them, beside a thread
 * that writes another part of the file through the page cache or a mapping, and beside a process
 * that has its own cuFile on the same file.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prop.h"

#define RACE_END ((off_t)MB)	/* of the file, while it is truncated */
#define RACES 6
#define PAIRS 8			/* requests beside the other one */

/* -- truncates under I/O -- */

struct truncater {
	struct prop *p;
	pthread_t thread;
	off_t low;
	atomic_bool stop;
	int err;
};

static void *truncate_run(void *arg)
{
	struct truncater *t = arg;

	do {
		if (ftruncate(t->p->plain, t->low) || ftruncate(t->p->plain, RACE_END))
			t->err = errno;
	} while (!t->err && !atomic_load(&t->stop));
	return NULL;
}

/* Bytes from `low` on may be zero, others are what they were. */
static void read_under(struct prop *p, const struct request *r, off_t low)
{
	size_t i, sure = r->off < low ? least(r->size, low - r->off) : 0;
	uint8_t *want = p->gpu_want + r->target;

	if (r->got < (ssize_t)sure && r->got >= 0 && !p->strict)
		bad(p, "returned %zd, but %zu bytes were always there", r->got, sure);
	t_gpu_get(p->b, p->mem + r->target, r->size);
	for (i = 0; i < r->size; i++) {
		uint8_t was = p->m->data[r->off + i], got = p->b[i];
		bool old = r->got < 0 || (ssize_t)i >= r->got;

		if (got != was && (old ? got && got != want[i] : i < sure || got))
			bad(p, "GPU memory: byte %zu is %02x, the file had %02x, the memory %02x; returned %zd",
			    i, got, was, want[i], r->got);
		want[i] = got;
	}
}

/* A block of the file, as p->b has it: what was written or was there, from `low` on zero. */
static void settle_block(struct prop *p, const struct request *r, off_t low, off_t at)
{
	bool beside = !r->write || at >= r->off + (off_t)r->size || at + T_BLOCK <= r->off;
	const uint8_t *data = p->gpu_want + r->target;
	off_t i;

	/* one by one a million bytes take seconds in an emulated guest */
	if (beside && (at >= low || at + T_BLOCK <= low)) {
		if (at >= low)
			memset(p->m->data + at, 0, T_BLOCK);
		if (!memcmp(p->b + at, p->m->data + at, T_BLOCK))
			return;
	}
	for (i = at; i < at + T_BLOCK; i++) {
		bool asked = r->write && i >= r->off && i < r->off + (off_t)r->size;
		bool written = asked && i < r->off + r->got;
		uint8_t *was = p->m->data + i;

		if ((written && i < low) || (asked && p->b[i] == data[i - r->off]))
			*was = data[i - r->off];
		/* it was cut at least once, before the write or after it */
		else if (i >= low)
			*was = 0;
		if (p->b[i] != *was)
			bad(p, "the file: byte %lld is %02x, it was %02x", (long long)i, p->b[i], *was);
	}
}

static void settle_under(struct prop *p, const struct request *r, off_t low)
{
	struct stat st;
	off_t at;

	if (fstat(p->plain, &st) || st.st_size != RACE_END)
		bad(p, "the file has %lld bytes, expected %lld", (long long)st.st_size,
		    (long long)RACE_END);
	if (pread(p->plain, p->b, RACE_END, 0) != RACE_END)
		bad(p, "the file is short: %s", strerror(errno));
	for (at = 0; at < RACE_END; at += T_BLOCK)
		settle_block(p, r, low, at);
	memset(p->m->sure + low, 0, RACE_END - low);
	p->end = RACE_END;
}

static void race_once(struct prop *p, bool write)
{
	struct truncater t = { .p = p, .low = 1 + below(p, RACE_END - 1) };
	struct request r;

	if (below(p, 2))
		t.low = (t.low + T_BLOCK - 1) & ~(T_BLOCK - 1L);
	t.low = least(t.low, RACE_END - 1);
	if (p->end > RACE_END && ftruncate(p->plain, RACE_END))
		bad(p, "ftruncate: %s", strerror(errno));
	p->end = least(p->end, RACE_END);
	fill(p, RACE_END);
	io_pick(p, &r, write);
	/* over the place where it is cut */
	r.off = t.low - least(t.low, below(p, r.size + 1));
	if (p->way == WAY_RAW)
		r.off &= ~(T_BLOCK - 1L);
	r.size = least(r.size, RACE_END - r.off);
	if (p->way == WAY_RAW)
		r.target &= ~(T_BLOCK - 1L);
	snprintf(p->doing, sizeof(p->doing), "%s of %zu at %lld while the file is cut at %lld",
		 write ? "write" : "read", r.size, (long long)r.off, (long long)t.low);
	io_prepare(p, &r);
	if (pthread_create(&t.thread, NULL, truncate_run, &t))
		t_die("no thread");
	io_submit(p, &r);
	atomic_store(&t.stop, true);
	pthread_join(t.thread, NULL);
	if (t.err)
		bad(p, "ftruncate: %s", strerror(t.err));
	if (r.got < 0 && !(p->strict && (r.err == CU_FILE_IO_NOT_SUPPORTED || r.err == ENOTBLK ||
					 r.err == EOPNOTSUPP)))
		bad(p, "failed: errno %d", r.err);
	if (write && r.got >= 0 && r.got != (ssize_t)r.size && !p->strict)
		bad(p, "returned %zd of %zu", r.got, r.size);
	if (!write)
		read_under(p, &r, t.low);
	settle_under(p, &r, t.low);
	io_check_gpu(p, &r);
	file_check(p, r.off, r.off + r.size);
}

void race(struct prop *p)
{
	int i;

	for (i = 0; i < RACES; i++)
		race_once(p, !p->read_only && i % 2);
}

/* -- requests in the lower part -- */

static void requests_below(struct prop *p)
{
	off_t from = p->from, to = p->to;
	struct request r;
	int i;

	p->from = 0;
	p->to = LOW_END;
	for (i = 0; i < PAIRS; i++) {
		io_pick(p, &r, below(p, 2));
		io_do(p, &r);
	}
	p->from = from;
	p->to = to;
}

/* -- a thread in the upper one -- */

struct beside {
	struct prop *p;
	uint64_t rnd;
	bool map;
	atomic_bool stop;
	char why[200];
};

static void *beside_run(void *arg)
{
	struct beside *b = arg;
	struct prop *p = b->p;
	static uint8_t data[64 * KB], back[64 * KB];

	do {
		size_t n = 1 + t_random_below(&b->rnd, sizeof(data));
		off_t off = HIGH_BEGIN + t_random_below(&b->rnd, HIGH_END - HIGH_BEGIN - n + 1);

		t_random_fresh(&b->rnd, data, n);
		if (b->map) {
			memcpy(p->map + off, data, n);
			memcpy(back, p->map + off, n);
		} else if (pwrite(p->plain, data, n, off) != (ssize_t)n ||
			   pread(p->plain, back, n, off) != (ssize_t)n) {
			snprintf(b->why, sizeof(b->why), "%zu bytes at %lld: %s", n, (long long)off,
				 strerror(errno));
			break;
		}
		if (memcmp(data, back, n)) {
			snprintf(b->why, sizeof(b->why), "%zu bytes at %lld are not what was written",
				 n, (long long)off);
			break;
		}
		memcpy(p->m->data + off, data, n);
		memset(p->m->sure + off, 1, n);
		usleep(1000);
	} while (!atomic_load(&b->stop));
	return NULL;
}

void beside_thread(struct prop *p)
{
	struct beside b = { .p = p, .rnd = t_random(&p->rnd), .map = p->map && below(p, 2) };
	pthread_t thread;

	fill(p, HIGH_END);
	if (pthread_create(&thread, NULL, beside_run, &b))
		t_die("no thread");
	requests_below(p);
	atomic_store(&b.stop, true);
	pthread_join(thread, NULL);
	snprintf(p->doing, sizeof(p->doing), "a thread beside, by %s", b.map ? "a mapping" : "pwrite");
	if (b.why[0])
		bad(p, "%s", b.why);
	file_check(p, HIGH_BEGIN, HIGH_END);
}

/* -- a process in the upper one -- */

/* The arguments of the second process: those of the first, and its part of the file. */
static void start_child(struct prop *p, const char *self, pid_t *pid)
{
	char seed[32], model[16], end[32], takes[64] = "", card[16];
	const char *argv[24] = { self, "--child", model, "--end", end, "--file", p->file, "--seed",
				 seed, "--takes", takes, "--card", card, "--route",
				 way_name(p->way) };
	unsigned int i, n = 15;

	for (i = 0; i < TOOKS; i++)
		if (p->takes[i])
			snprintf(takes + strlen(takes), sizeof(takes) - strlen(takes), "%s%s",
				 takes[0] ? "+" : "", took_name(i));
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)t_random(&p->rnd));
	snprintf(model, sizeof(model), "%d", p->model_fd);
	snprintf(end, sizeof(end), "%lld", (long long)p->end);
	snprintf(card, sizeof(card), "%d", p->card);
	if (p->strict)
		argv[n++] = "--strict";
	if (p->soft)
		argv[n++] = "--soft";
	if (p->write_hole)
		argv[n++] = "--write-hole";
	if (p->pins)
		argv[n++] = "--pins";
	if (p->reason) {
		argv[n++] = "--reason";
		argv[n++] = p->reason;
	}
	if (p->lacks & 1u << OP_DIRECT) {
		argv[n++] = "--lacks";
		argv[n++] = p->map ? "direct" : "direct,mmap";
	} else if (!p->map) {
		argv[n++] = "--lacks";
		argv[n++] = "mmap";
	}
	*pid = fork();
	if (*pid < 0)
		t_die("fork: %s", strerror(errno));
	if (*pid)
		return;
	execv("/proc/self/exe", (char **)(uintptr_t)argv);
	_exit(127);
}

void beside_process(struct prop *p, const char *self)
{
	int status;
	pid_t pid;

	fill(p, HIGH_END);
	fflush(stdout);
	start_child(p, self, &pid);
	requests_below(p);
	snprintf(p->doing, sizeof(p->doing), "a process beside");
	if (waitpid(pid, &status, 0) < 0 || status)
		bad(p, "the second process ended with status 0x%x", status);
	file_check(p, HIGH_BEGIN, HIGH_END);
}

/* In the second process. */
void child_run(struct prop *p)
{
	struct request r;
	int i;

	p->from = HIGH_BEGIN;
	p->to = HIGH_END;
	for (i = 0; i < PAIRS; i++) {
		io_pick(p, &r, i % 2);
		io_do(p, &r);
	}
	file_check(p, HIGH_BEGIN, HIGH_END);
}
