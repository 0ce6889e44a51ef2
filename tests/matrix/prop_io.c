// SPDX-License-Identifier: MIT
/* prop_io.c - requests: by the library or by the module's ioctls, and what they left behind. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prop.h"

#define UP(n) (((n) + T_BLOCK - 1) & ~(size_t)(T_BLOCK - 1))
#define DOWN(n) ((n) & ~(T_BLOCK - 1L))

static const char * const routes[WAYS] = {
	[WAY_NVFS] = "\"nvfs\", \"bounce\"", [WAY_P2PDMA] = "\"p2pdma\", \"bounce\"",
	[WAY_STAGED] = "\"staged\", \"bounce\"", [WAY_BAR] = "\"bar\", \"bounce\"",
	[WAY_BOUNCE] = "\"bounce\"",
};

/* -- opening -- */

static void ok(const struct prop *p, CUfileError_t status, const char *what)
{
	if (status.err != CU_FILE_SUCCESS)
		bad(p, "%s: %d: %s", what, status.err, cufileop_status_error(status.err));
}

/* The library's settings, in a file that is gone again. */
static void library_open(struct prop *p)
{
	char path[] = "/tmp/matrix-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f || fprintf(f, "{\"logging\": {\"level\": \"INFO\"}, \"opengds\": {\"strict\": %s, \"routes\": [%s]}}\n",
			  p->strict ? "true" : "false", routes[p->way]) < 0 || fclose(f))
		t_die("%s: %s", path, strerror(errno));
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	ok(p, cuFileDriverOpen(), "cuFileDriverOpen");
	unlink(path);
}

void io_open(struct prop *p)
{
	t_gpu_open(&p->gpu, p->card);
	p->mem = t_gpu_alloc(ROOM);
	if (p->way != WAY_RAW)
		library_open(p);
	else if (nvfs_open(&p->nv, NULL, NULL))
		t_die("%s", nvfs_error());
	t_random_fresh(&p->rnd, p->gpu_want, ROOM);
	t_gpu_put(p->mem, p->gpu_want, ROOM);
	p->open = true;
}

void io_register(struct prop *p)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	if (p->way == WAY_RAW) {
		if (nvfs_map(&p->nv, &p->nmap, p->mem, ROOM, 0, p->gpu.pdevinfo))
			bad(p, "%s", nvfs_error());
		p->nmapped = true;
		return;
	}
	p->fd = p->direct >= 0 && below(p, 2) ? p->direct : p->plain;
	descr.handle.fd = p->fd;
	ok(p, cuFileHandleRegister(&p->fh, &descr), "cuFileHandleRegister");
	/* these two look at memory that is not registered as well, and go the same way */
	p->registered = (p->way != WAY_STAGED && p->way != WAY_BOUNCE) || below(p, 2);
	if (p->registered)
		ok(p, cuFileBufRegister((void *)(uintptr_t)p->mem, ROOM, 0), "cuFileBufRegister");
}

void io_deregister(struct prop *p)
{
	if (p->way == WAY_RAW) {
		if (nvfs_unmap(&p->nmap))
			bad(p, "%s", nvfs_error());
		p->nmapped = false;
		return;
	}
	if (p->registered)
		ok(p, cuFileBufDeregister((void *)(uintptr_t)p->mem), "cuFileBufDeregister");
	cuFileHandleDeregister(p->fh);
	p->registered = false;
}

void io_close(struct prop *p)
{
	io_deregister(p);
	if (p->way == WAY_RAW)
		nvfs_close(&p->nv);
	else
		ok(p, cuFileDriverClose(), "cuFileDriverClose");
	t_gpu_free(p->mem);
	p->open = false;
}

/* -- one request -- */

/* As many sizes between 64 and 128 as between 512K and 1M; half of them near a block's edge. */
static size_t pick_size(struct prop *p)
{
	unsigned int bits = 0;
	size_t n;

	while (p->largest >> bits > 1)
		bits++;
	n = 1UL << (6 + below(p, bits - 5));
	n += below(p, n);
	switch (below(p, 4)) {
	case 0: n = UP(n); break;
	case 1: n = UP(n) + (size_t[]){ 1, T_BLOCK - 1, 512 }[below(p, 3)]; break;
	}
	return least(n, p->largest);
}

static off_t pick_off(struct prop *p, off_t from, off_t to)
{
	off_t off = from + below(p, to - from + 1);

	switch (below(p, 4)) {
	case 0: off = DOWN(off); break;
	case 1: off = DOWN(off) + 512; break;
	case 2: off = below(p, 2) ? from : to; break;
	}
	return off < from ? from : off > to ? to : off;
}

void io_pick(struct prop *p, struct request *r, bool write)
{
	off_t from = p->from, to = p->to ? p->to : p->end;
	size_t room;

	memset(r, 0, sizeof(*r));
	r->write = write;
	r->size = least(pick_size(p), to - from);
	if (!r->size)
		r->size = 1;
	r->off = pick_off(p, from, to - (off_t)r->size > from ? to - r->size : from);
	/* reads at and past the end, too */
	if (!write && !p->to && !p->device && !below(p, 12))
		r->off = p->end + below(p, 2) * below(p, 2 * T_BLOCK);
	if (p->way == WAY_RAW) {
		r->off = DOWN(r->off);
		r->size = UP(r->size);
		if (p->to && r->off + (off_t)r->size > p->to)
			r->off = p->to - r->size;
	}
	r->off = least(r->off, LIMIT - T_BLOCK);
	r->size = least(r->size, LIMIT - r->off);
	room = ROOM - 2 * GUARD - r->size;
	r->target = GUARD + below(p, room + 1);
	if (p->way == WAY_RAW || below(p, 4)) {
		r->target = DOWN(r->target);
		if (p->way != WAY_RAW && r->target + r->off % T_BLOCK <= GUARD + room)
			r->target += r->off % T_BLOCK;
	}
	r->target = r->target < GUARD ? GUARD : r->target;
}

static void window(const struct request *r, size_t *at, size_t *n)
{
	*at = r->target - GUARD;
	*n = r->size + 2 * GUARD;
}

void io_prepare(struct prop *p, struct request *r)
{
	size_t at, n;

	window(r, &at, &n);
	fresh(p, p->gpu_want + at, n);
	t_gpu_put(p->mem + at, p->gpu_want + at, n);
}

static ssize_t submit_raw_part(struct prop *p, struct request *r, size_t done, size_t n)
{
	struct nvfs_ogds_rw a = { 0 };
	unsigned int op = r->write ? NVFS_IO_OP_WRITE : NVFS_IO_OP_READ;

	a.io.cpuvaddr = (uintptr_t)p->nmap.cpu;
	a.io.offset = r->off + done;
	a.io.size = n;
	a.io.devptroff = r->target + done;
	a.io.flags = NVFS_IO_SYNC | op << NVFS_IO_OPTYPE_SHIFT |
		     (p->strict ? NVFS_IO_DIRECT_ONLY : 0);
	if (nvfs_fill_file(&a.io, p->direct))
		bad(p, "fstat: %s", strerror(errno));
	if (ioctl(p->nv.fd[0], NVFS_IOCTL_OGDS_RW, &a)) {
		r->err = errno == EPERM && a.io.ioctl_return < 0 ? -a.io.ioctl_return : errno;
		return -1;
	}
	r->dma += a.dma_bytes;
	r->cpu += a.cpu_bytes;
	return a.io.ioctl_return;
}

/* A request from inside a GPU page may not leave it: that part goes by itself. */
static ssize_t submit_raw(struct prop *p, struct request *r)
{
	size_t done = 0, n, inside;
	ssize_t got;

	while (done < r->size) {
		inside = (p->mem + r->target + done) % NVFS_GPU_PAGE_SIZE;
		n = r->size - done;
		if (inside)
			n = least(n, NVFS_GPU_PAGE_SIZE - inside);
		got = submit_raw_part(p, r, done, n);
		if (got < 0)
			return -1;
		done += got;
		if (got < (ssize_t)n)
			break;
	}
	return done;
}

ssize_t io_submit(struct prop *p, struct request *r)
{
	void *base = (void *)(uintptr_t)p->mem;
	off_t skip = r->target;

	errno = 0;
	r->err = 0;
	if (p->way == WAY_RAW) {
		r->got = submit_raw(p, r);
		return r->got;
	}
	if (below(p, 2)) {
		base = (char *)base + skip;
		skip = 0;
	}
	r->got = r->write ? cuFileWrite(p->fh, base, r->size, r->off, skip) :
			    cuFileRead(p->fh, base, r->size, r->off, skip);
	if (r->got < 0)
		r->err = errno;
	return r->got;
}

/* -- after it -- */

void io_check_gpu(struct prop *p, const struct request *r)
{
	size_t at, n, i;

	window(r, &at, &n);
	t_gpu_get(p->b, p->mem + at, n);
	if (!memcmp(p->b, p->gpu_want + at, n))
		return;
	for (i = 0; p->b[i] == p->gpu_want[at + i]; i++)
		;
	bad(p, "GPU memory: byte %zd of the request is %02x, expected %02x",
	    (ssize_t)i - (ssize_t)GUARD, p->b[i], p->gpu_want[at + i]);
}

/* What a read put there; of what was refused when it ran a part may be there, or none. */
static void expect_gpu(struct prop *p, struct request *r)
{
	uint8_t *want = p->gpu_want + r->target;
	size_t n = r->got > 0 ? r->got : 0, i;

	if (r->write)
		return;
	memcpy(want, p->m->data + r->off, n);
	if (!r->touched && (p->way != WAY_RAW || n == r->size))
		return;
	/* raw: the file system may zero the rest of the last block */
	t_gpu_get(p->b, p->mem + r->target, r->size);
	for (i = n; i < r->size && (r->touched || i < UP(n)); i++) {
		bool there = r->touched && r->off + (off_t)i < p->end &&
			     p->b[i] == p->m->data[r->off + i];

		if (there || (!p->b[i] && (!r->touched || r->off + (off_t)i >= p->end)))
			want[i] = p->b[i];
	}
}

/*
 * A write that was refused when it ran: what it did not write is as it was, but for zeros where
 * no data was. The model takes what is there.
 */
static void settle_file(struct prop *p, const struct request *r)
{
	const uint8_t *data = p->gpu_want + r->target;
	struct stat st;
	ssize_t n;
	off_t i;

	if (fstat(p->plain, &st))
		bad(p, "fstat: %s", strerror(errno));
	if (!p->device && st.st_size != p->end) {
		if (st.st_size < p->end || st.st_size > r->off + (off_t)r->size)
			bad(p, "the file has %lld bytes after a refusal, it had %lld",
			    (long long)st.st_size, (long long)p->end);
		model_hole(p, p->end, st.st_size - p->end);
		p->end = st.st_size;
	}
	n = pread(p->plain, p->b, least(r->size, p->end > r->off ? p->end - r->off : 0), r->off);
	if (n < 0)
		bad(p, "pread: %s", strerror(errno));
	for (i = 0; i < n; i++) {
		uint8_t *was = p->m->data + r->off + i;

		if (p->b[i] != *was && p->b[i] != data[i])
			bad(p, "the file after a refusal: byte %lld is %02x, it was %02x",
			    (long long)(r->off + i), p->b[i], *was);
		*was = p->b[i];
	}
}

/* Before it: what the library says it would do is what it then does. */
static void explain(struct prop *p, struct request *r, struct ogds_plan *plan)
{
	*plan = (struct ogds_plan)OGDS_PLAN_INIT;
	plan->op = r->write ? OGDS_OP_WRITE : OGDS_OP_READ;
	if (p->way != WAY_RAW &&
	    ogds_explain(p->fh, (void *)(uintptr_t)(p->mem + r->target), r->size, r->off, plan))
		bad(p, "ogds_explain refuses");
}

static void was_planned(struct prop *p, const struct request *r, const struct ogds_plan *plan)
{
	struct ogds_report rep = OGDS_REPORT_INIT;

	if (p->way == WAY_RAW)
		return;
	if (plan->error && (r->got >= 0 || r->err != plan->error))
		bad(p, "planned is a refusal (%s), and it returned %zd, errno %d",
		    ogds_reason_id(plan->reason), r->got, r->err);
	if (plan->error || r->got < 0 || r->touched || ogds_last_io(&rep) || rep.retried)
		return;
	if (rep.whole_direct != plan->whole_direct)
		bad(p, "planned are %llu direct bytes, it moved %llu so",
		    (unsigned long long)plan->whole_direct, (unsigned long long)rep.whole_direct);
}

void io_do(struct prop *p, struct request *r)
{
	struct ogds_plan plan;

	snprintf(p->doing, sizeof(p->doing),
		 "%s of %zu at %lld, GPU memory+%zu%s, file of %lld%s", r->write ? "write" : "read",
		 r->size, (long long)r->off, r->target, p->registered || p->way == WAY_RAW ? "" :
		 " (not registered)", (long long)p->end,
		 p->way == WAY_RAW || p->fd == p->direct ? ", O_DIRECT" : "");
	io_prepare(p, r);
	explain(p, r, &plan);
	io_submit(p, r);
	judge(p, r);
	was_planned(p, r, &plan);
	if (r->got >= 0 || r->touched)
		expect_gpu(p, r);
	if (r->write && r->got > 0)
		model_wrote(p, r->off, p->gpu_want + r->target, r->got);
	if (r->write && r->touched)
		settle_file(p, r);
	io_check_gpu(p, r);
	if (r->write)
		file_check(p, r->off, r->off + r->size);
	if (p->verbose)
		printf("%s: %s %s\n", p->doing, r->route ? r->route : "-", r->reason ? r->reason : "-");
}

/* -- O_APPEND -- */

void io_append(struct prop *p)
{
	int fd = open(p->file, O_RDWR | O_APPEND | (p->way == WAY_RAW ? O_DIRECT : 0) | O_CLOEXEC);
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd };
	bool lacked = p->way == WAY_RAW && p->lacks & 1u << OP_APPEND;
	struct nvfs_ioctl_ioargs a = { 0 };
	CUfileHandle_t fh;
	CUfileError_t e;
	ssize_t got;
	int r;

	if ((fd < 0) != lacked)
		bad(p, "open with O_APPEND: %s%s", fd < 0 ? strerror(errno) : "there",
		    lacked ? ", and --lacks names it" : "");
	if (fd < 0)
		return;
	if (p->way != WAY_RAW) {
		e = cuFileHandleRegister(&fh, &descr);
		if (e.err != CU_FILE_INVALID_FILE_OPEN_FLAG)
			bad(p, "a file with O_APPEND: %d, expected %d", e.err,
			    CU_FILE_INVALID_FILE_OPEN_FLAG);
	} else {
		a.cpuvaddr = (uintptr_t)p->nmap.cpu;
		a.size = T_BLOCK;
		a.devptroff = GUARD;
		a.flags = NVFS_IO_SYNC;
		if (nvfs_fill_file(&a, fd))
			bad(p, "fstat: %s", strerror(errno));
		r = nvfs_submit(p->nv.fd[0], true, &a, &got);
		if (r != -EINVAL)
			bad(p, "a write to a file with O_APPEND: %d, expected -EINVAL", r);
	}
	close(fd);
	file_check(p, p->end, p->end);
}
