// SPDX-License-Identifier: MIT
/* differ_stream.c - cases of differ: cuFileReadAsync, cuFileWriteAsync, cuFileStream*. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "differ.h"

/* The four numbers of an operation; plain memory, as callers have it. */
static struct number {
	size_t size;
	off_t off, buf_off;
	ssize_t bytes;
} num[256];

static CUstream stream(void)
{
	CUstream s;

	if (cuStreamCreate(&s, CU_STREAM_NON_BLOCKING))
		t_die("cuStreamCreate failed");
	return s;
}

static void set(struct number *n, size_t size, off_t off, off_t buf_off)
{
	n->size = size;
	n->off = off;
	n->buf_off = buf_off;
	n->bytes = -12345;
}

static CUfileError_t read_async(struct d *d, struct number *n, CUstream s)
{
	return lib.ReadAsync(d->fh, d_ptr(d, 0), &n->size, &n->off, &n->buf_off, &n->bytes, s);
}

static CUfileError_t write_async(struct d *d, struct number *n, CUstream s)
{
	return lib.WriteAsync(d->fh, d_ptr(d, 0), &n->size, &n->off, &n->buf_off, &n->bytes, s);
}

/* -- registering streams -- */

static void flags(struct d *d, long arg)
{
	CUstream s = stream();

	d_err("register", lib.StreamRegister(s, arg));
	d_err("deregister", lib.StreamDeregister(s));
	cuStreamDestroy(s);
}

static void twice(struct d *d, long arg)
{
	CUstream s = stream();

	d_err("register", lib.StreamRegister(s, 0));
	d_err("again", lib.StreamRegister(s, 0xf));
	d_err("deregister", lib.StreamDeregister(s));
	d_err("again", lib.StreamDeregister(s));
	d_err("register", lib.StreamRegister(s, 0xf));
}

static void null_stream(struct d *d, long arg)
{
	d_err("register", lib.StreamRegister(NULL, 0));
	d_err("deregister", lib.StreamDeregister(NULL));
}

static void not_registered(struct d *d, long arg)
{
	CUstream s = stream();

	if (arg)
		d_err("open", lib.DriverOpen());
	d_err("deregister", lib.StreamDeregister(s));
	d_num("uses", lib.UseCount());
}

/* -- arguments -- */

static void null_argument(struct d *d, long which)
{
	struct number *n = num;
	CUstream s = stream();

	d_file(d, O_RDWR | O_DIRECT);
	set(n, 64 * K, 0, 0);
	d_err("read", lib.ReadAsync(which == 0 ? NULL : d->fh, which == 1 ? NULL : d_ptr(d, 0),
				    which == 2 ? NULL : &n->size, which == 3 ? NULL : &n->off,
				    which == 4 ? NULL : &n->buf_off, which == 5 ? NULL : &n->bytes,
				    s));
	cuStreamSynchronize(s);
}

static void bad_handle(struct d *d, long arg)
{
	CUstream s = stream();

	d_err("open", lib.DriverOpen());
	d_file(d, O_RDWR);
	if (arg)
		lib.HandleDeregister(d->fh);
	else
		d->fh = NEVER;
	set(num, 64 * K, 0, 0);
	d_err("read", read_async(d, num, s));
	d_err("write", write_async(d, num, s));
	cuStreamSynchronize(s);
	d_num("uses", lib.UseCount());
}

/* The operation is right or wrong by its numbers: what the call and what *bytes_p say. */
struct odd {
	size_t size;
	off_t off, buf_off;
};

static const struct odd odds[] = {
	{ 64 * K, 0, 0 },
	{ 0, 0, 0 },
	{ 5001, 17, 3 },
	{ 64 * K, M, 0 },		/* 100 bytes are there */
	{ 64 * K, 8 * M, 0 },
	{ 64 * K, -4096, 0 },
	{ 64 * K, 0, -4096 },
	{ 2 * M, 0, 3 * M },		/* leaves the allocation */
	{ MEM_SIZE, 0, 0 },
};

static void numbers(struct d *d, long arg)
{
	const struct odd *o = &odds[arg % 100];
	CUstream s = stream();

	d_file(d, O_RDWR | O_DIRECT);
	if (arg >= 100)
		d_err("buffer", lib.BufRegister(d_ptr(d, 0), MEM_SIZE, 0));
	set(num, o->size, o->off, o->buf_off);
	d_err("read", read_async(d, num, s));
	d_num("sync", cuStreamSynchronize(s));
	d_num("bytes", num->bytes);
}

static void past_range(struct d *d, long arg)
{
	CUstream s = stream();

	d_file(d, O_RDWR | O_DIRECT);
	d_err("buffer", lib.BufRegister(d_ptr(d, 0), 64 * K, 0));
	set(num, 128 * K, 0, 0);
	d_err("read", read_async(d, num, s));
	cuStreamSynchronize(s);
	d_num("bytes", num->bytes);
}

static void wrong_way(struct d *d, long arg)
{
	CUstream s = stream();

	d_file(d, arg);
	set(num, 64 * K, 0, 0);
	d_err("call", arg == O_WRONLY ? read_async(d, num, s) : write_async(d, num, s));
	cuStreamSynchronize(s);
	d_num("bytes", num->bytes);
}

static void host_memory(struct d *d, long pinned)
{
	void *p = malloc(64 * K), *q = p;
	CUstream s = stream();

	if (pinned && cuMemAllocHost(&q, 64 * K))
		d_not_here("no pinned memory");
	memset(q, 0, 64 * K);
	d_file(d, O_RDWR | O_DIRECT);
	set(num, 64 * K, 0, 0);
	d_err("read", lib.ReadAsync(d->fh, q, &num->size, &num->off, &num->buf_off, &num->bytes,
				    s));
	cuStreamSynchronize(s);
	d_num("bytes", num->bytes);
	d_bytes("data", q, 64 * K, 0);
	if (pinned)
		cuMemFreeHost(q);
	free(p);
}

/* -- right operations -- */

static void reads(struct d *d, long flags)
{
	CUstream s = flags == -2 ? NULL : stream();
	int i;

	d_file(d, O_RDWR | O_DIRECT);
	if (flags >= 0)
		d_err("register", lib.StreamRegister(s, flags));
	for (i = 0; i < 16; i++) {
		set(&num[i], 64 * K, i * 64 * K, i * 64 * K);
		if (read_async(d, &num[i], s).err)
			d_num("refused", i);
	}
	cuStreamSynchronize(s);
	for (i = 0; i < 16 && num[i].bytes == (ssize_t)(64 * K); i++)
		;
	d_num("complete", i);
	d_data(d, "data", 0, M, 0);
}

static void writes(struct d *d, long flags)
{
	static unsigned char buf[M];
	CUstream s = stream();
	size_t i;
	int fd;

	for (i = 0; i < M; i++)
		buf[i] = d_byte(i + 5);
	d_file(d, O_RDWR | O_DIRECT);
	if (flags >= 0)
		d_err("register", lib.StreamRegister(s, flags));
	t_gpu_put(d->mem, buf, M);
	set(num, M, 0, 0);
	d_err("write", write_async(d, num, s));
	cuStreamSynchronize(s);
	d_num("bytes", num->bytes);
	fd = open("data", O_RDONLY);
	if (pread(fd, buf, M, 0) == (ssize_t)M)
		d_bytes("data", buf, M, 5);
	close(fd);
}

/* A fill before, a read, a copy behind it, another fill: each sees what it must. */
static void order(struct d *d, long flags)
{
	static unsigned char before[64 * K];
	unsigned char after = 0;
	CUstream s = stream();

	d_file(d, O_RDWR | O_DIRECT);
	if (flags >= 0)
		d_err("register", lib.StreamRegister(s, flags));
	set(num, 64 * K, 0, 0);
	cuMemsetD8Async(d->mem, 0x22, 64 * K, s);
	d_err("read", read_async(d, num, s));
	cuMemcpyDtoHAsync(before, d->mem, sizeof(before), s);
	cuMemsetD8Async(d->mem, 0x11, 64 * K, s);
	cuStreamSynchronize(s);
	d_num("bytes", num->bytes);
	d_bytes("behind", before, sizeof(before), 0);
	t_gpu_get(&after, d->mem, 1);
	d_flag("last", after == 0x11);
}

static atomic_bool queued;

/* In stream order, and not before the operation behind it was queued (or 2 s are over). */
static void halve(void *arg)
{
	struct number *n = arg;
	int i;

	for (i = 0; i < 2000 && !atomic_load(&queued); i++)
		usleep(1000);
	n->size /= 2;
	n->off += 64 * K;
	n->buf_off += 4 * K;
}

static void late(struct d *d, long flags)
{
	CUstream s = stream();

	d_file(d, O_RDWR | O_DIRECT);
	if (flags >= 0)
		d_err("register", lib.StreamRegister(s, flags));
	set(num, 128 * K, 0, 0);
	atomic_store(&queued, false);
	cuLaunchHostFunc(s, halve, num);
	d_err("read", read_async(d, num, s));
	atomic_store(&queued, true);
	cuStreamSynchronize(s);
	d_num("bytes", num->bytes);
	if (num->bytes == (ssize_t)(64 * K))
		d_data(d, "data", 4 * K, 64 * K, 64 * K);
}

static void many(struct d *d, long n)
{
	CUstream s = stream();
	int i, ok = 0, full = 0;

	d_file(d, O_RDWR | O_DIRECT);
	for (i = 0; i < n; i++) {
		set(&num[i], 4 * K, i * 4 * K, i * 4 * K);
		ok += !read_async(d, &num[i], s).err;
	}
	cuStreamSynchronize(s);
	for (i = 0; i < n; i++)
		full += num[i].bytes == (ssize_t)(4 * K);
	d_num("queued", ok);
	d_num("complete", full);
	d_data(d, "data", 0, n * 4 * K, 0);
}

static void no_threads(struct d *d, long arg)
{
	CUfileDrvProps_t p = { 0 };
	CUstream s = stream();

	d_file(d, O_RDWR | O_DIRECT);
	lib.DriverGetProperties(&p);
	d_say("features=0x%x", p.fflags);
	d_err("register", lib.StreamRegister(s, 0));
	set(num, 64 * K, 0, 0);
	d_err("read", read_async(d, num, s));
	cuStreamSynchronize(s);
	d_num("bytes", num->bytes);
}

static void close_then(struct d *d, long arg)
{
	CUstream s = stream();

	d_file(d, O_RDWR | O_DIRECT);
	d_err("register", lib.StreamRegister(s, 0));
	set(num, 64 * K, 0, 0);
	d_err("read", read_async(d, num, s));
	cuStreamSynchronize(s);
	d_err("close", lib.DriverClose_v2());
	d_err("deregister", lib.StreamDeregister(s));
	d_num("uses", lib.UseCount());
}

#define THREADS(n, parallel) \
	"{ \"properties\": { \"allow_compat_mode\": true },\n" \
	"  \"execution\": { \"parallel_io\": " parallel ", \"max_io_threads\": " n " } }\n"

const struct d_case stream_cases[] = {
	{ "stream-flags-0", flags, 0 },
	{ "stream-flags-1", flags, 1 },
	{ "stream-flags-15", flags, 15 },
	{ "stream-flags-16", flags, 16 },
	{ "stream-flags-255", flags, 255 },
	{ "stream-twice", twice },
	{ "stream-null", null_stream },
	{ "stream-not-registered", not_registered, 1 },
	{ "stream-not-registered-closed", not_registered, 0 },
	{ "stream-null-handle", null_argument, 0 },
	{ "stream-null-buffer", null_argument, 1 },
	{ "stream-null-size", null_argument, 2 },
	{ "stream-null-offset", null_argument, 3 },
	{ "stream-null-buffer-offset", null_argument, 4 },
	{ "stream-null-bytes", null_argument, 5 },
	{ "stream-never-issued", bad_handle, 0 },
	{ "stream-deregistered", bad_handle, 1 },
	{ "stream-plain", numbers, 0 },
	{ "stream-size-0", numbers, 1 },
	{ "stream-unaligned", numbers, 2 },
	{ "stream-end", numbers, 3 },
	{ "stream-behind-end", numbers, 4 },
	{ "stream-offset-negative", numbers, 5 },
	{ "stream-buffer-offset-negative", numbers, 6 },
	{ "stream-past-allocation", numbers, 7 },
	{ "stream-across-end", numbers, 8 },
	{ "stream-plain-registered", numbers, 100 },
	{ "stream-unaligned-registered", numbers, 102 },
	{ "stream-end-registered", numbers, 103 },
	{ "stream-offset-negative-registered", numbers, 105 },
	{ "stream-past-allocation-registered", numbers, 107 },
	{ "stream-past-range", past_range },
	{ "stream-read-of-wronly", wrong_way, O_WRONLY },
	{ "stream-write-to-rdonly", wrong_way, O_RDONLY },
	{ "stream-malloc", host_memory, 0 },
	{ "stream-pinned", host_memory, 1 },
	{ "stream-read", reads, -1 },
	{ "stream-read-default-stream", reads, -2 },
	{ "stream-read-fixed", reads, 15 },
	{ "stream-write", writes, -1 },
	{ "stream-write-fixed", writes, 15 },
	{ "stream-order", order, -1 },
	{ "stream-order-fixed", order, 15 },
	{ "stream-late", late, -1 },
	{ "stream-late-fixed", late, 7 },
	{ "stream-many-100", many, 100 },
	{ "stream-many-256", many, 256 },
	{ "stream-no-threads", no_threads, 0, THREADS("0", "true") },
	{ "stream-not-parallel", no_threads, 0, THREADS("4", "false") },
	{ "stream-after-close", close_then },
	{ NULL }
};
