// SPDX-License-Identifier: MIT
/* differ_io.c - cases of differ: cuFileRead, cuFileWrite. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "differ.h"

/* What GPU memory holds of the file, and what the file of GPU memory. */
static void fill(struct d *d)
{
	unsigned char *buf = malloc(MEM_SIZE);
	size_t i;

	for (i = 0; i < MEM_SIZE; i++)
		buf[i] = d_byte(i);
	t_gpu_put(d->mem, buf, MEM_SIZE);
	free(buf);
}

/* The file holds d_byte(mem_off...) at off, and around it, where the file was, its own bytes. */
static void file_holds(const char *step, size_t off, size_t len, size_t mem_off)
{
	unsigned char *buf = calloc(1, len + 2);
	int fd = open("data", O_RDONLY);
	bool left = off != 0;
	struct stat st;

	fstat(fd, &st);
	if (pread(fd, buf, len + 1 + left, off - left) < (ssize_t)len)
		d_say("%s=short", step);
	else
		d_bytes(step, buf + left, len, mem_off);
	if (left && off - 1 < FILE_SIZE && buf[0] != d_byte(off - 1))
		d_say("%s-left=wrong", step);
	if (off + len < FILE_SIZE && (off_t)(off + len) < st.st_size &&
	    buf[len + left] != d_byte(off + len))
		d_say("%s-right=wrong", step);
	d_num("size", st.st_size);
	close(fd);
	free(buf);
}

enum { REGISTERED = 1, DIRECT = 2, WRITE = 4 };

static void begin(struct d *d, long how)
{
	d_file(d, O_RDWR | (how & DIRECT ? O_DIRECT : 0));
	if (how & REGISTERED)
		d_err("buffer", lib.BufRegister(d_ptr(d, 0), 2 * M, 0));
	if (how & WRITE)
		fill(d);
}

/* -- arguments -- */

static void null_handle(struct d *d, long arg)
{
	begin(d, 0);
	d_io("read", lib.Read(NULL, d_ptr(d, 0), 4 * K, 0, 0));
	d_io("write", lib.Write(NULL, d_ptr(d, 0), 4 * K, 0, 0));
}

static void null_buffer(struct d *d, long arg)
{
	begin(d, 0);
	d_io("read", lib.Read(d->fh, NULL, 4 * K, 0, 0));
	d_io("write", lib.Write(d->fh, NULL, 4 * K, 0, 0));
}

static void never_issued(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_io("read", lib.Read(NEVER, d_ptr(d, 0), 4 * K, 0, 0));
	d_io("write", lib.Write(NEVER, d_ptr(d, 0), 4 * K, 0, 0));
	d_num("uses", lib.UseCount());
}

static void deregistered(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	begin(d, 0);
	lib.HandleDeregister(d->fh);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	d_num("uses", lib.UseCount());
}

static void size_0(struct d *d, long how)
{
	begin(d, how);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 0, 0, 0));
	d_io("unaligned", lib.Read(d->fh, d_ptr(d, 0), 0, 17, 3));
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 0, 0, 0));
	d_io("at-end", lib.Read(d->fh, d_ptr(d, 0), 0, FILE_SIZE, 0));
}

static void size_huge(struct d *d, long how)
{
	begin(d, how);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), SIZE_MAX, 0, 0));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), (size_t)SSIZE_MAX, 0, 0));
}

static void offset_negative(struct d *d, long how)
{
	begin(d, how);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, -4096, 0));
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 4 * K, -1, 0));
}

static void buffer_offset_negative(struct d *d, long how)
{
	begin(d, how);
	d_io("read", lib.Read(d->fh, d_ptr(d, M), 4 * K, 0, -4096));
	d_io("write", lib.Write(d->fh, d_ptr(d, M), 4 * K, 0, -1));
}

static void offset_most(struct d *d, long how)
{
	begin(d, how);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, INT64_MAX & ~4095L, 0));
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 8 * K, INT64_MAX - 4096, 0));
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 8 * K, INT64_MAX - 4096, 0));
}

static void wrong_way(struct d *d, long arg)
{
	d_file(d, arg | O_DIRECT);
	if ((arg & O_ACCMODE) == O_WRONLY)
		d_io("read", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
	else
		d_io("write", lib.Write(d->fh, d_ptr(d, 0), 4 * K, 0, 0));
}

static void wrong_way_unaligned(struct d *d, long arg)
{
	d_file(d, arg);
	if ((arg & O_ACCMODE) == O_WRONLY)
		d_io("read", lib.Read(d->fh, d_ptr(d, 0), 1000, 10, 0));
	else
		d_io("write", lib.Write(d->fh, d_ptr(d, 0), 1000, 10, 0));
}

/* A write-only file takes writes, whole blocks and less. */
static void write_only(struct d *d, long arg)
{
	fill(d);
	d_file(d, O_WRONLY | arg);
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_io("unaligned", lib.Write(d->fh, d_ptr(d, 5000), 1000, 5000, 0));
	file_holds("data", 0, 64 * K, 0);
}

/* -- where the range ends -- */

static void past_range(struct d *d, long arg)
{
	begin(d, DIRECT);
	d_err("buffer", lib.BufRegister(d_ptr(d, 0), 64 * K, 0));
	d_io("fits", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_io("longer", lib.Read(d->fh, d_ptr(d, 0), 128 * K, 0, 0));
	d_io("offset", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 4096));
	d_io("behind", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 0, 64 * K));
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 128 * K, 0, 0));
	d_io("unaligned", lib.Read(d->fh, d_ptr(d, 0), 1000, 10, 64 * K - 500));
}

/* The pointer is inside a registered range, and the request leaves it. */
static void past_range_inside(struct d *d, long arg)
{
	begin(d, DIRECT);
	d_err("buffer", lib.BufRegister(d_ptr(d, 0), 64 * K, 0));
	d_io("fits", lib.Read(d->fh, d_ptr(d, 32 * K), 32 * K, 0, 0));
	d_io("longer", lib.Read(d->fh, d_ptr(d, 32 * K), 64 * K, 0, 0));
}

static void past_allocation(struct d *d, long arg)
{
	begin(d, arg);
	d_io("read", lib.Read(d->fh, d_ptr(d, MEM_SIZE - 4 * K), 64 * K, 0, 0));
	d_io("write", lib.Write(d->fh, d_ptr(d, MEM_SIZE - 4 * K), 64 * K, 0, 0));
	d_io("all", lib.Read(d->fh, d_ptr(d, MEM_SIZE - 4 * K), 4 * K, 0, 0));
}

static void freed_memory(struct d *d, long arg)
{
	CUdeviceptr p = t_gpu_alloc(64 * M);

	begin(d, DIRECT);
	t_gpu_free(p);
	d_io("read", lib.Read(d->fh, (void *)(uintptr_t)p, 64 * K, 0, 0));
	d_io("write", lib.Write(d->fh, (void *)(uintptr_t)p, 64 * K, 0, 0));
}

/* -- the end of the file -- */

static void end_of_file(struct d *d, long how)
{
	begin(d, how);
	d_io("across", lib.Read(d->fh, d_ptr(d, 0), 8 * K, M - 4 * K, 0));
	d_data(d, "data", 0, 4 * K + 100, M - 4 * K);
	d_io("tail", lib.Read(d->fh, d_ptr(d, 0), 4 * K, M, 0));
	d_io("inside-tail", lib.Read(d->fh, d_ptr(d, 0), 4 * K, M + 50, 0));
	d_io("at", lib.Read(d->fh, d_ptr(d, 0), 4 * K, FILE_SIZE, 0));
	d_io("block-behind", lib.Read(d->fh, d_ptr(d, 0), 4 * K, M + 4 * K, 0));
	d_io("far", lib.Read(d->fh, d_ptr(d, 0), M, 1L << 40, 0));
	d_io("all", lib.Read(d->fh, d_ptr(d, 0), 2 * M, 0, 0));
	d_data(d, "data", 0, FILE_SIZE, 0);
}

/* Memory behind what was read stays as it was. */
static void end_leaves_rest(struct d *d, long how)
{
	unsigned char buf[8 * K];
	size_t i;

	begin(d, how);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 8 * K, M, 0));
	t_gpu_get(buf, d->mem, sizeof(buf));
	for (i = 100; i < sizeof(buf) && buf[i] == 0xa5; i++)
		;
	d_flag("rest-untouched", i == sizeof(buf));
}

static void truncated(struct d *d, long how)
{
	begin(d, how);
	if (truncate("data", 64 * K))
		return;
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), M, 0, 0));
	d_io("behind", lib.Read(d->fh, d_ptr(d, 0), 4 * K, 128 * K, 0));
}

static void grown(struct d *d, long how)
{
	begin(d, how);
	if (truncate("data", 2 * M))
		return;
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 2 * M, 0, 0));
	d_data(d, "data", 0, FILE_SIZE, 0);
}

/* -- alignment -- */

static void read_at(struct d *d, const char *step, size_t off, size_t len, size_t buf_off)
{
	d_io(step, lib.Read(d->fh, d_ptr(d, 0), len, off, buf_off));
	d_data(d, "data", buf_off, len, off);
}

static void unaligned_read(struct d *d, long how)
{
	begin(d, how);
	read_at(d, "offset", 10, 64 * K, 0);
	read_at(d, "sector", 512, 64 * K, 0);
	read_at(d, "size", 4096, 5000, 0);
	read_at(d, "small", 7, 100, 0);
	read_at(d, "buffer", 4096, 64 * K, 3);
	read_at(d, "all", 4001, 70001, 1001);
	read_at(d, "across", 4090, 12, 0);
}

static void write_at(struct d *d, const char *step, size_t off, size_t len)
{
	d_io(step, lib.Write(d->fh, d_ptr(d, 0), len, off, off));
	file_holds("data", off, len, off);
}

static void unaligned_write(struct d *d, long how)
{
	begin(d, how | WRITE);
	write_at(d, "offset", 10, 64 * K);
	write_at(d, "sector", 512, 64 * K);
	write_at(d, "size", 4096, 5000);
	write_at(d, "small", 7, 100);
	write_at(d, "across", 4090, 12);
	write_at(d, "last", FILE_SIZE - 50, 50);
}

/* Bytes of GPU memory at another place than in the file. */
static void shifted_write(struct d *d, long how)
{
	begin(d, how | WRITE);
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 64 * K, 4096, 4097));
	file_holds("data", 4096, 64 * K, 4097);
}

/* -- writes -- */

static void write_past_end(struct d *d, long how)
{
	begin(d, how | WRITE);
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 64 * K, M, 0));
	file_holds("data", M, 64 * K, 0);
	d_io("hole", lib.Write(d->fh, d_ptr(d, 0), 4 * K, 3 * M, 0));
	file_holds("data", 3 * M, 4 * K, 0);
	d_io("odd", lib.Write(d->fh, d_ptr(d, 0), 1000, 4 * M + 10, 0));
	file_holds("data", 4 * M + 10, 1000, 0);
}

static void write_to_empty(struct d *d, long how)
{
	begin(d, how | WRITE);
	if (truncate("data", 0))
		return;
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 5000, 0, 0));
	file_holds("data", 0, 5000, 0);
}

static void sparse(struct d *d, long how)
{
	unsigned char buf[64 * K];
	size_t i;

	begin(d, how);
	if (truncate("data", 0) || truncate("data", M))
		return;
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 128 * K, 0));
	t_gpu_get(buf, d->mem, sizeof(buf));
	for (i = 0; i < sizeof(buf) && !buf[i]; i++)
		;
	d_flag("zeros", i == sizeof(buf));
}

static void size_limit(struct d *d, long how)
{
	struct rlimit old, now = { 2 * M, 2 * M };

	begin(d, how | WRITE);
	getrlimit(RLIMIT_FSIZE, &old);
	now.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &now);
	d_io("behind", lib.Write(d->fh, d_ptr(d, 0), 64 * K, 2 * M, 0));
	d_io("across", lib.Write(d->fh, d_ptr(d, 0), 128 * K, 2 * M - 64 * K, 0));
	setrlimit(RLIMIT_FSIZE, &old);
}

/* -- memory of other kinds, and other places of the same -- */

static void advanced(struct d *d, long how)
{
	begin(d, how);
	d_io("base", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 128 * K));
	d_data(d, "data", 128 * K, 64 * K, 0);
	d_io("advanced", lib.Read(d->fh, d_ptr(d, 256 * K), 64 * K, 64 * K, 0));
	d_data(d, "data", 256 * K, 64 * K, 64 * K);
	d_io("both", lib.Read(d->fh, d_ptr(d, 256 * K), 64 * K, 64 * K, 64 * K));
	d_data(d, "data", 320 * K, 64 * K, 64 * K);
}

static void of_host(struct d *d, void *p)
{
	memset(p, 0, 2 * M);
	begin(d, DIRECT);
	d_io("read", lib.Read(d->fh, p, M, 0, 0));
	d_bytes("data", p, M, 0);
	d_io("unaligned", lib.Read(d->fh, p, 5001, 4001, 3));
	d_bytes("data", (unsigned char *)p + 3, 5001, 4001);
	memset(p, 0, 2 * M);
	d_io("end", lib.Read(d->fh, p, 2 * M, 0, 0));
	d_bytes("data", p, FILE_SIZE, 0);
	d_io("write", lib.Write(d->fh, p, 64 * K, 64 * K, 64 * K));
	file_holds("data", 64 * K, 64 * K, 64 * K);
}

static void host_malloc(struct d *d, long arg)
{
	void *p = malloc(2 * M);

	of_host(d, p);
	free(p);
}

static void host_pinned(struct d *d, long arg)
{
	void *p;

	if (cuMemAllocHost(&p, 2 * M))
		d_not_here("no pinned memory");
	of_host(d, p);
	cuMemFreeHost(p);
}

static void managed(struct d *d, long arg)
{
	CUresult (*alloc)(CUdeviceptr *p, size_t n, unsigned int how) = NULL;
	CUdeviceptr p;

	*(void **)&alloc = d_cuda("cuMemAllocManaged");
	if (alloc(&p, 2 * M, 1))
		d_not_here("no managed memory");
	of_host(d, (void *)(uintptr_t)p);
	cuMemFree(p);
}

static void nowhere(struct d *d, long arg)
{
	begin(d, arg);
	d_io("read", lib.Read(d->fh, (void *)0x10000, 4 * K, 0, 0));
	d_io("write", lib.Write(d->fh, (void *)0x10000, 4 * K, 0, 0));
}

static void large(struct d *d, long how)
{
	CUdeviceptr p = t_gpu_alloc(48 * M);

	begin(d, how);
	d_io("write", lib.Write(d->fh, (void *)(uintptr_t)p, 40 * M, 0, 0));
	d_io("read", lib.Read(d->fh, (void *)(uintptr_t)p, 48 * M, 0, 0));
	t_gpu_free(p);
}

/* A buffered write of another descriptor, without fsync, and then the library's. */
static void page_cache(struct d *d, long how)
{
	static unsigned char buf[64 * K];
	int fd = open("data", O_RDWR);
	size_t i;

	for (i = 0; i < sizeof(buf); i++)
		buf[i] = d_byte(i + 7);
	if (pwrite(fd, buf, sizeof(buf), 0) != (ssize_t)sizeof(buf))
		return;
	begin(d, how);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_data(d, "data", 0, 64 * K, 7);
	fill(d);
	d_io("write", lib.Write(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	if (pread(fd, buf, sizeof(buf), 0) != (ssize_t)sizeof(buf))
		return;
	d_bytes("cached", buf, sizeof(buf), 0);
	close(fd);
}

/* The descriptor's own position is not the library's to move. */
static void position(struct d *d, long how)
{
	begin(d, how);
	lseek(d->fd, 12345, SEEK_SET);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_io("odd", lib.Read(d->fh, d_ptr(d, 0), 1000, 10, 0));
	d_num("position", lseek(d->fd, 0, SEEK_CUR));
}

static void vectors(struct d *d, long how)
{
	CUfileIOVec_t v[3] = {
		{ d_ptr(d, 0), 64 * K }, { d_ptr(d, M), 1000 }, { d_ptr(d, 2 * M), 64 * K },
	};

	begin(d, how);
	d_io("read", lib.Readv(d->fh, v, 3, 0, 0));
	d_data(d, "data", 0, 64 * K, 0);
	d_data(d, "data", M, 1000, 64 * K);
	d_data(d, "data", 2 * M, 64 * K, 64 * K + 1000);
	d_io("flags", lib.Readv(d->fh, v, 3, 0, 1));
	d_io("none", lib.Readv(d->fh, v, 0, 0, 0));
	d_io("write", lib.Writev(d->fh, v, 3, 0, 0));
}

#define BOTH(name, run) \
	{ "io-" name, run, 0 }, { "io-" name "-registered", run, REGISTERED | DIRECT }

const struct d_case io_cases[] = {
	{ "io-null-handle", null_handle },
	{ "io-null-buffer", null_buffer },
	{ "io-never-issued", never_issued },
	{ "io-deregistered", deregistered },
	BOTH("size-0", size_0),
	BOTH("size-huge", size_huge),
	BOTH("offset-negative", offset_negative),
	BOTH("buffer-offset-negative", buffer_offset_negative),
	BOTH("offset-most", offset_most),
	{ "io-read-of-wronly", wrong_way, O_WRONLY },
	{ "io-write-to-rdonly", wrong_way, O_RDONLY },
	{ "io-read-of-wronly-unaligned", wrong_way_unaligned, O_WRONLY },
	{ "io-write-to-rdonly-unaligned", wrong_way_unaligned, O_RDONLY },
	{ "io-wronly", write_only, 0 },
	{ "io-wronly-direct", write_only, O_DIRECT },
	{ "io-past-range", past_range },
	{ "io-past-range-inside", past_range_inside },
	{ "io-past-allocation", past_allocation, 0 },
	{ "io-past-allocation-direct", past_allocation, DIRECT },
	{ "io-freed-memory", freed_memory },
	BOTH("end-of-file", end_of_file),
	BOTH("end-leaves-rest", end_leaves_rest),
	BOTH("truncated", truncated),
	BOTH("grown", grown),
	BOTH("unaligned-read", unaligned_read),
	BOTH("unaligned-write", unaligned_write),
	BOTH("shifted-write", shifted_write),
	BOTH("write-past-end", write_past_end),
	BOTH("write-to-empty", write_to_empty),
	BOTH("sparse", sparse),
	BOTH("size-limit", size_limit),
	BOTH("advanced", advanced),
	{ "io-malloc", host_malloc },
	{ "io-pinned", host_pinned },
	{ "io-managed", managed },
	{ "io-nowhere", nowhere, 0 },
	{ "io-nowhere-direct", nowhere, DIRECT },
	BOTH("large", large),
	BOTH("page-cache", page_cache),
	BOTH("position", position),
	{ "io-vectors", vectors, 0, NULL, NULL, "Readv" },
	{ NULL }
};
