// SPDX-License-Identifier: MIT
/* differ_batch.c - cases of differ: cuFileBatchIO*. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "differ.h"

#define MOST 256
#define PIECE (16 * K)

static CUfileIOParams_t params[MOST + 1];
static CUfileIOEvents_t events[MOST + 1];

/* Entries that read piece after piece; cookies are 1, 2, ... */
static void make(struct d *d, unsigned int n)
{
	unsigned int i;

	memset(params, 0, sizeof(params));
	for (i = 0; i < n; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = d->fh;
		params[i].opcode = CUFILE_READ;
		params[i].cookie = (void *)(uintptr_t)(i + 1);
		params[i].u.batch.devPtr_base = d_ptr(d, 0);
		params[i].u.batch.file_offset = i % 64 * PIECE;
		params[i].u.batch.devPtr_offset = i % 64 * PIECE;
		params[i].u.batch.size = PIECE;
	}
}

static const char *status_name(int status)
{
	switch (status) {
	case CUFILE_WAITING: return "waiting";
	case CUFILE_PENDING: return "pending";
	case CUFILE_INVALID: return "invalid";
	case CUFILE_CANCELED: return "canceled";
	case CUFILE_COMPLETE: return "complete";
	case CUFILE_TIMEOUT: return "timeout";
	case CUFILE_FAILED: return "failed";
	}
	return "none";
}

/* Asks until n events have come, a second each; says them in the order of their cookies. */
static void collect(CUfileBatchHandle_t b, unsigned int n, bool each)
{
	unsigned int have = 0, i, nr, seen[MOST + 1] = { 0 }, complete = 0, wrong = 0;
	CUfileIOEvents_t by[MOST + 1];
	CUfileError_t e = { 0 };
	struct timespec second;
	int rounds;

	for (rounds = 0; have < n && rounds < 5; rounds++) {
		nr = n - have;
		second.tv_sec = 1;
		second.tv_nsec = 0;
		e = lib.BatchIOGetStatus(b, nr, &nr, events, &second);
		if (e.err)
			break;
		for (i = 0; i < nr && i <= MOST; i++) {
			uintptr_t c = (uintptr_t)events[i].cookie;

			if (c < 1 || c > n || seen[c]++) {
				wrong++;
				continue;
			}
			by[c] = events[i];
			complete += events[i].status == CUFILE_COMPLETE;
		}
		have += nr;
	}
	d_err("status", e);
	d_num("events", have);
	if (wrong)
		d_num("wrong-cookies", wrong);
	if (!each)
		d_num("complete", complete);
	for (i = 1; each && i <= n; i++)
		if (seen[i])
			d_say("%u=%s/%zd", i, status_name(by[i].status), (ssize_t)by[i].ret);
}

static CUfileBatchHandle_t set_up(struct d *d, unsigned int n, unsigned int entries)
{
	CUfileBatchHandle_t b = NULL;

	d_file(d, O_RDWR | O_DIRECT);
	d_err("setup", lib.BatchIOSetUp(&b, n));
	make(d, entries);
	return b;
}

/* -- set-up -- */

static void limit(struct d *d, long nr)
{
	CUfileBatchHandle_t b = NULL;

	d_err("setup", lib.BatchIOSetUp(&b, nr));
	d_flag("handle", b);
	if (b)
		lib.BatchIODestroy(b);
	d_num("uses", lib.UseCount());
}

static void limit_raised(struct d *d, long nr)
{
	CUfileBatchHandle_t b = NULL;

	d_err("set", lib.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, nr));
	d_err("setup", lib.BatchIOSetUp(&b, nr));
	d_err("more", lib.BatchIOSetUp(&b, nr + 1));
}

static void setup_null(struct d *d, long arg)
{
	d_err("setup", lib.BatchIOSetUp(NULL, 4));
}

/* -- entries that are right -- */

static void reads(struct d *d, long how)
{
	CUfileBatchHandle_t b;

	b = set_up(d, 64, 64);
	if (how)
		d_err("buffer", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("submit", lib.BatchIOSubmit(b, 64, params, 0));
	collect(b, 64, false);
	d_data(d, "data", 0, M, 0);
	lib.BatchIODestroy(b);
}

static void writes(struct d *d, long how)
{
	CUfileBatchHandle_t b = set_up(d, 64, 64);
	unsigned char *buf = malloc(M);
	size_t i;

	for (i = 0; i < M; i++)
		buf[i] = d_byte(i + 3);
	t_gpu_put(d->mem, buf, M);
	for (i = 0; i < 64; i++)
		params[i].opcode = CUFILE_WRITE;
	if (how)
		d_err("buffer", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("submit", lib.BatchIOSubmit(b, 64, params, 0));
	collect(b, 64, false);
	lib.BatchIODestroy(b);
	if (pread(d->fd, buf, M, 0) != (ssize_t)M) {
		int fd = open("data", O_RDONLY);

		if (pread(fd, buf, M, 0) != (ssize_t)M)
			d_say("file=short");
		close(fd);
	}
	d_bytes("data", buf, M, 3);
	free(buf);
}

static void host_memory(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 4);
	unsigned char *p = aligned_alloc(4096, M);
	int i;

	memset(p, 0, M);
	for (i = 0; i < 4; i++)
		params[i].u.batch.devPtr_base = p;
	d_err("submit", lib.BatchIOSubmit(b, 4, params, 0));
	collect(b, 4, true);
	d_bytes("data", p, 4 * PIECE, 0);
	free(p);
}

static void odd(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 8, 6);

	params[0].u.batch.size = 5001;
	params[1].u.batch.file_offset += 17;
	params[2].u.batch.devPtr_offset += 3;
	params[3].u.batch.size = 1;
	params[4].u.batch.file_offset = M;	/* 100 bytes are there */
	params[5].u.batch.file_offset = 8 * M;
	d_err("submit", lib.BatchIOSubmit(b, 6, params, 0));
	collect(b, 6, true);
	d_data(d, "data", PIECE, PIECE, PIECE + 17);
}

static void size_0(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);

	params[0].u.batch.size = 0;
	d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
	collect(b, 2, true);
}

static void big_entry(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 2, 1);
	CUdeviceptr p = t_gpu_alloc(40 * M);

	if (truncate("data", 40 * M))
		return;
	params[0].u.batch.devPtr_base = (void *)(uintptr_t)p;
	params[0].u.batch.devPtr_offset = 0;
	params[0].u.batch.size = 40 * M;
	d_err("submit", lib.BatchIOSubmit(b, 1, params, 0));
	collect(b, 1, true);
	lib.BatchIODestroy(b);
	t_gpu_free(p);
}

/* -- entries that are wrong -- */

static void change(struct d *d, long what)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);
	int fd = -1;

	switch (what) {
	case 0:
		params[1].mode = 0;
		break;
	case 1:
		params[1].fh = NEVER;
		break;
	case 2:
		params[1].fh = NULL;
		break;
	case 3:
		params[1].opcode = 7;
		break;
	case 4:
		params[1].u.batch.file_offset = -4096;
		break;
	case 5:
		params[1].u.batch.devPtr_offset = -4096;
		break;
	case 6:
		params[1].u.batch.devPtr_base = NULL;
		break;
	case 7:
		params[1].u.batch.devPtr_offset = MEM_SIZE;
		break;
	case 8:
		fd = open("data", O_WRONLY);
		if (!d_register(d, fd).err)
			params[1].fh = d->fh;
		break;
	case 9:
		fd = open("data", O_RDONLY);
		if (!d_register(d, fd).err)
			params[1].fh = d->fh;
		params[1].opcode = CUFILE_WRITE;
		break;
	case 10:
		d_err("buffer", lib.BufRegister(d_ptr(d, 0), 2 * PIECE - 4 * K, 0));
		break;
	}
	d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
	collect(b, 2, true);
	lib.BatchIODestroy(b);
	if (fd >= 0)
		close(fd);
}

static void submit_arguments(struct d *d, long what)
{
	CUfileBatchHandle_t b = set_up(d, 4, 8);

	switch (what) {
	case 0:
		d_err("submit", lib.BatchIOSubmit(b, 0, params, 0));
		break;
	case 1:
		d_err("submit", lib.BatchIOSubmit(b, 5, params, 0));
		break;
	case 2:
		d_err("submit", lib.BatchIOSubmit(b, 2, params, 1));
		collect(b, 2, false);
		break;
	case 3:
		d_err("submit", lib.BatchIOSubmit(b, 2, NULL, 0));
		break;
	case 4:
		d_err("submit", lib.BatchIOSubmit(NULL, 2, params, 0));
		break;
	case 5:
		d_err("submit", lib.BatchIOSubmit(NEVER, 2, params, 0));
		break;
	}
	/* it is still good for what is right */
	d_err("next", lib.BatchIOSubmit(b, 2, params, 0));
	collect(b, 2, false);
}

static void full(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 8);

	d_err("submit", lib.BatchIOSubmit(b, 4, params, 0));
	d_err("full", lib.BatchIOSubmit(b, 1, params + 4, 0));
	collect(b, 4, false);
	d_err("after", lib.BatchIOSubmit(b, 4, params, 0));
	collect(b, 4, false);
}

static void partly_full(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 8);

	d_err("submit", lib.BatchIOSubmit(b, 3, params, 0));
	d_err("two-more", lib.BatchIOSubmit(b, 2, params + 3, 0));
	d_err("one-more", lib.BatchIOSubmit(b, 1, params + 3, 0));
	collect(b, 4, false);
}

/* -- status -- */

static void status_arguments(struct d *d, long what)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);
	struct timespec second = { 1, 0 };
	unsigned int nr = 2;

	d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
	switch (what) {
	case 0:
		nr = 1;
		d_err("status", lib.BatchIOGetStatus(b, 2, &nr, events, &second));
		break;
	case 1:
		d_err("status", lib.BatchIOGetStatus(b, 2, NULL, events, &second));
		break;
	case 2:
		d_err("status", lib.BatchIOGetStatus(b, 2, &nr, NULL, &second));
		break;
	case 3:
		d_err("status", lib.BatchIOGetStatus(NULL, 2, &nr, events, &second));
		break;
	case 4:
		d_err("status", lib.BatchIOGetStatus(NEVER, 2, &nr, events, &second));
		break;
	}
	collect(b, 2, false);
}

/* Nothing was submitted. */
static void status_idle(struct d *d, long min)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);
	struct timespec wait = { 0, 20000000 };
	unsigned int nr = 4;

	d_err("status", lib.BatchIOGetStatus(b, min, &nr, events, &wait));
	d_num("events", nr);
}

/* More is wanted than was submitted. */
static void status_more(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);
	struct timespec wait = { 1, 0 };
	unsigned int nr = 4;

	d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
	d_err("status", lib.BatchIOGetStatus(b, 4, &nr, events, &wait));
	d_num("events", nr);
}

static void status_no_limit(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 4);
	unsigned int nr = 4;

	d_err("submit", lib.BatchIOSubmit(b, 4, params, 0));
	d_err("status", lib.BatchIOGetStatus(b, 4, &nr, events, NULL));
	d_num("events", nr);
}

static void status_polled(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 4);
	unsigned int nr, have = 0, i;
	CUfileError_t e = { 0 };

	d_err("submit", lib.BatchIOSubmit(b, 4, params, 0));
	for (i = 0; have < 4 && i < 5000 && !e.err; i++) {
		struct timespec zero = { 0, 0 };

		nr = 4;
		e = lib.BatchIOGetStatus(b, 0, &nr, events, &zero);
		have += nr;
		usleep(1000);
	}
	d_err("status", e);
	d_num("events", have);
}

/* What a program passed that took the argument for a number of milliseconds. */
static void status_odd_time(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);
	struct timespec odd = { 5000, arg };
	unsigned int nr = 2;

	d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
	d_err("status", lib.BatchIOGetStatus(b, 2, &nr, events, &odd));
	d_num("events", nr);
}

static void status_once(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);
	struct timespec wait = { 0, 20000000 };
	unsigned int nr = 4;

	d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
	collect(b, 2, false);
	d_err("again", lib.BatchIOGetStatus(b, 0, &nr, events, &wait));
	d_num("events", nr);
}

/* One at a time: room for one event. */
static void status_room(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 4);
	struct timespec wait;
	unsigned int nr, have = 0, i;

	d_err("submit", lib.BatchIOSubmit(b, 4, params, 0));
	for (i = 0; i < 4; i++) {
		nr = 1;
		wait.tv_sec = 1;
		wait.tv_nsec = 0;
		if (lib.BatchIOGetStatus(b, 1, &nr, events, &wait).err)
			break;
		have += nr;
	}
	d_num("events", have);
}

/* -- cancel, destroy, once more -- */

static void cancel_wrong(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_err("cancel", lib.BatchIOCancel(arg ? NEVER : NULL));
	d_num("uses", lib.UseCount());
}

static void cancel_idle(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);

	d_err("cancel", lib.BatchIOCancel(b));
	d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
	collect(b, 2, false);
}

static void cancel_running(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 64, 64);

	d_err("submit", lib.BatchIOSubmit(b, 64, params, 0));
	d_err("cancel", lib.BatchIOCancel(b));
	d_err("submit", lib.BatchIOSubmit(b, 64, params, 0));
	lib.BatchIODestroy(b);
}

static void cancel_done(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 4);

	d_err("submit", lib.BatchIOSubmit(b, 4, params, 0));
	collect(b, 4, false);
	d_err("cancel", lib.BatchIOCancel(b));
	d_err("submit", lib.BatchIOSubmit(b, 4, params, 0));
	collect(b, 4, false);
}

static void destroy_wrong(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	lib.BatchIODestroy(arg ? NEVER : NULL);
	d_num("uses", lib.UseCount());
}

static void destroy_running(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 64, 64);

	d_err("submit", lib.BatchIOSubmit(b, 64, params, 0));
	lib.BatchIODestroy(b);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), M, 0, 0));
	d_data(d, "data", 0, M, 0);
}

static void destroyed(struct d *d, long what)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);
	struct timespec wait = { 0, 20000000 };
	unsigned int nr = 2;

	lib.BatchIODestroy(b);
	if (what == 0)
		d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
	else if (what == 1)
		d_err("status", lib.BatchIOGetStatus(b, 0, &nr, events, &wait));
	else
		lib.BatchIODestroy(b);
	d_num("uses", lib.UseCount());
}

static void after_close(struct d *d, long arg)
{
	CUfileBatchHandle_t b = set_up(d, 4, 2);

	d_err("close", lib.DriverClose_v2());
	d_err("submit", lib.BatchIOSubmit(b, 2, params, 0));
}

static void reuse(struct d *d, long times)
{
	CUfileBatchHandle_t b = set_up(d, 16, 16);
	struct timespec wait;
	unsigned int nr, ok = 0, i;
	long n;

	for (n = 0; n < times; n++) {
		if (lib.BatchIOSubmit(b, 16, params, 0).err)
			break;
		nr = 16;
		wait.tv_sec = 5;
		wait.tv_nsec = 0;
		if (lib.BatchIOGetStatus(b, 16, &nr, events, &wait).err)
			break;
		for (i = 0; i < nr; i++)
			ok += events[i].status == CUFILE_COMPLETE && events[i].ret == PIECE;
	}
	d_num("rounds", n);
	d_num("complete", ok);
}

static void many_handles(struct d *d, long arg)
{
	CUfileBatchHandle_t b[16];
	int i, ok = 0;

	for (i = 0; i < 16; i++)
		ok += !lib.BatchIOSetUp(&b[i], 128).err;
	d_num("set-up", ok);
	for (i = 0; i < ok; i++)
		lib.BatchIODestroy(b[i]);
}

const struct d_case batch_cases[] = {
	{ "batch-setup-0", limit, 0 },
	{ "batch-setup-1", limit, 1 },
	{ "batch-setup-128", limit, 128 },
	{ "batch-setup-129", limit, 129 },
	{ "batch-setup-256", limit, 256 },
	{ "batch-setup-100000", limit, 100000 },
	{ "batch-setup-raised-256", limit_raised, 256 },
	{ "batch-setup-raised-512", limit_raised, 512 },
	{ "batch-setup-lowered-8", limit_raised, 8 },
	{ "batch-setup-null", setup_null },
	{ "batch-read", reads, 0 },
	{ "batch-read-registered", reads, 1 },
	{ "batch-write", writes, 0 },
	{ "batch-write-registered", writes, 1 },
	{ "batch-host", host_memory },
	{ "batch-odd", odd },
	{ "batch-size-0", size_0 },
	{ "batch-big-entry", big_entry },
	{ "batch-mode-0", change, 0 },
	{ "batch-handle-never", change, 1 },
	{ "batch-handle-null", change, 2 },
	{ "batch-opcode-7", change, 3 },
	{ "batch-offset-negative", change, 4 },
	{ "batch-buffer-offset-negative", change, 5 },
	{ "batch-buffer-null", change, 6 },
	{ "batch-past-allocation", change, 7 },
	{ "batch-read-of-wronly", change, 8 },
	{ "batch-write-to-rdonly", change, 9 },
	{ "batch-past-range", change, 10 },
	{ "batch-submit-0", submit_arguments, 0 },
	{ "batch-submit-too-many", submit_arguments, 1 },
	{ "batch-submit-flags", submit_arguments, 2 },
	{ "batch-submit-null", submit_arguments, 3 },
	{ "batch-submit-null-handle", submit_arguments, 4 },
	{ "batch-submit-no-handle", submit_arguments, 5 },
	{ "batch-full", full },
	{ "batch-partly-full", partly_full },
	{ "batch-status-min-over-room", status_arguments, 0 },
	{ "batch-status-null-nr", status_arguments, 1 },
	{ "batch-status-null-events", status_arguments, 2 },
	{ "batch-status-null-handle", status_arguments, 3 },
	{ "batch-status-no-handle", status_arguments, 4 },
	{ "batch-status-idle-0", status_idle, 0 },
	{ "batch-status-idle-1", status_idle, 1 },
	{ "batch-status-more", status_more },
	{ "batch-status-no-limit", status_no_limit },
	{ "batch-status-polled", status_polled },
	{ "batch-status-odd-time", status_odd_time, 0x7fffffff7fffL },
	{ "batch-status-negative-time", status_odd_time, -5 },
	{ "batch-status-once", status_once },
	{ "batch-status-room-1", status_room },
	{ "batch-cancel-null", cancel_wrong, 0 },
	{ "batch-cancel-no-handle", cancel_wrong, 1 },
	{ "batch-cancel-idle", cancel_idle },
	{ "batch-cancel-running", cancel_running },
	{ "batch-cancel-done", cancel_done },
	{ "batch-destroy-null", destroy_wrong, 0 },
	{ "batch-destroy-no-handle", destroy_wrong, 1 },
	{ "batch-destroy-running", destroy_running },
	{ "batch-destroyed-submit", destroyed, 0 },
	{ "batch-destroyed-status", destroyed, 1 },
	{ "batch-destroyed-twice", destroyed, 2 },
	{ "batch-after-close", after_close },
	{ "batch-reuse", reuse, 200 },
	{ "batch-many-handles", many_handles },
	{ NULL }
};
