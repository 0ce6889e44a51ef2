// SPDX-License-Identifier: MIT
/* object.c - handles, registrations, files and memory: they come, go, and come back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stress.h"

/* programs that look it up by its text call this one */
#undef cuFileDriverClose

/* -- handles -- */

CUfileHandle_t ob_no_handle(struct worker *w)
{
	if (w->nstale && !st_one_in(w, 3))
		return w->stale[st_below(w, w->nstale)];
	return (CUfileHandle_t)(uintptr_t)(t_random(&w->rnd) | 1);
}

static void remember(struct worker *w, CUfileHandle_t fh)
{
	w->stale[w->nstale < STALE ? w->nstale++ : st_below(w, STALE)] = fh;
}

struct handle *ob_handle(struct worker *w, bool write, bool wrong)
{
	int bad = write ? O_RDONLY : O_WRONLY;
	unsigned int i, at = st_below(w, MOST_HANDLES + SHARED_HANDLES);
	struct handle *h;

	for (i = 0; i < MOST_HANDLES + SHARED_HANDLES; i++) {
		at = (at + 1) % (MOST_HANDLES + SHARED_HANDLES);
		h = at < MOST_HANDLES ? &w->handle[at] : &w->shared[at - MOST_HANDLES];
		if (h->fh && (h->mode == bad) == wrong)
			return h;
	}
	return NULL;
}

static int open_file(struct worker *w, const struct file_model *f, int flags)
{
	int fd = open(f->path, flags | O_CLOEXEC);

	if (fd < 0)
		st_bad(w, "open of %s: errno %d", f->path, errno);
	return fd;
}

static int some_flags(struct worker *w)
{
	static const int mode[] = { O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY };
	int flags = mode[st_below(w, 5)];

	if (st_one_in(w, 2))
		flags |= O_DIRECT;
	if (st_one_in(w, 8))
		flags |= O_NOATIME;
	return flags;
}

/* A descriptor that is there, a duplicate of one, or a new one; NULL: no room for a new one. */
static struct fd_model *some_fd(struct worker *w)
{
	struct fd_model *d, *like = &w->fd[st_below(w, MOST_HANDLES)];
	unsigned int i;

	if (like->handles && st_one_in(w, 5))
		return like;
	for (i = 0; i < MOST_HANDLES && w->fd[i].handles; i++)
		;
	if (i == MOST_HANDLES)
		return NULL;
	d = &w->fd[i];
	if (like->handles && st_one_in(w, 3)) {
		*d = *like;
		d->fd = fcntl(like->fd, F_DUPFD_CLOEXEC, 3);
		if (d->fd < 0)
			st_bad(w, "dup: errno %d", errno);
	} else {
		d->flags = some_flags(w);
		d->names = &w->file[st_below(w, FILES + 1)];
		d->fd = open_file(w, d->names, d->flags);
	}
	d->handles = 0;
	return d;
}

static void put_fd(struct fd_model *d)
{
	if (!d->handles)
		close(d->fd);
}

/* The live handle that the number of the descriptor belongs to. */
static struct handle *claimer(struct worker *w, const struct fd_model *d)
{
	unsigned int i;

	for (i = 0; i < MOST_HANDLES; i++)
		if (w->handle[i].fh && w->handle[i].d == d && w->handle[i].claims)
			return &w->handle[i];
	return NULL;
}

static void register_good(struct worker *w)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct handle *h, *old;
	struct fd_model *d;
	CUfileHandle_t fh;
	unsigned int i;
	bool twice;

	for (i = 0; i < MOST_HANDLES && w->handle[i].fh; i++)
		;
	d = i < MOST_HANDLES ? some_fd(w) : NULL;
	if (!d) {
		ob_deregister(w);
		return;
	}
	h = &w->handle[i];
	old = claimer(w, d);
	twice = old && old->file == d->names;
	descr.handle.fd = d->fd;
	st_call(w, "cuFileHandleRegister fd %ld of file %ld, flags %#lx", d->fd,
		d->names - w->file, d->flags, 0, 0, 0);
	st_status(w, cuFileHandleRegister(&fh, &descr),
		  twice ? CU_FILE_HANDLE_ALREADY_REGISTERED : 0, 0);
	*(twice ? &w->tally.handle_err : &w->tally.handle_ok) += 1;
	if (!twice) {
		if (old)
			old->claims = false;
		*h = (struct handle){ .fh = fh, .file = (struct file_model *)d->names,
				      .mode = d->flags & O_ACCMODE, .d = d, .claims = true };
		d->handles++;
	}
	put_fd(d);
}

/* What must be refused, and how. */
static void register_bad(struct worker *w)
{
	static const struct {
		const char *path;	/* NULL: a pipe, "": the thread's own file */
		int flags, err;
	} bad[] = {
		{ "", O_RDWR | O_APPEND, CU_FILE_INVALID_FILE_OPEN_FLAG },
		{ "", O_RDONLY | O_NONBLOCK, CU_FILE_INVALID_FILE_OPEN_FLAG },
		{ "", O_RDONLY | O_NOFOLLOW, CU_FILE_INVALID_FILE_OPEN_FLAG },
		{ "", O_PATH, CU_FILE_INVALID_VALUE },
		{ "/", O_RDONLY, CU_FILE_INVALID_FILE_TYPE },
		{ "/", O_RDONLY | O_DIRECTORY, CU_FILE_INVALID_FILE_OPEN_FLAG },
		{ "/dev/null", O_RDWR, CU_FILE_INVALID_FILE_TYPE },
		{ NULL, 0, CU_FILE_INVALID_FILE_TYPE },
	};
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = -1 };
	CUfileHandle_t fh, *to = &fh;
	CUfileDescr_t *from = &descr;
	int which = st_below(w, 14), ends[2] = { -1, -1 }, err = CU_FILE_INVALID_VALUE;

	if (which < 8) {
		err = bad[which].err;
		if (!bad[which].path) {
			if (pipe2(ends, O_CLOEXEC))
				st_bad(w, "pipe: errno %d", errno);
		} else if (bad[which].path[0]) {
			ends[0] = open(bad[which].path, bad[which].flags | O_CLOEXEC);
		} else {
			ends[0] = open_file(w, &w->file[FILES], bad[which].flags);
		}
		descr.handle.fd = ends[0];
	} else if (which == 8) {
		to = NULL;
	} else if (which == 9) {
		from = NULL;
	} else if (which == 10) {
		descr.handle.fd = 1 << 30;
	} else if (which == 11) {
		descr.type = CU_FILE_HANDLE_TYPE_USERSPACE_FS;
		err = CU_FILE_IO_NOT_SUPPORTED;
	} else if (which == 12) {
		descr.type = CU_FILE_HANDLE_TYPE_OPAQUE_WIN32;
		err = CU_FILE_IO_NOT_SUPPORTED;
	}
	st_call(w, "cuFileHandleRegister, wrong in way %ld", which, 0, 0, 0, 0, 0);
	st_status(w, cuFileHandleRegister(to, from), err, 0);
	w->tally.handle_err++;
	if (ends[0] >= 0)
		close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
}

void ob_register(struct worker *w)
{
	if (st_one_in(w, 5))
		register_bad(w);
	else
		register_good(w);
}

static void drop(struct worker *w, struct handle *h)
{
	struct fd_model *d = h->d;
	CUfileHandle_t fh = h->fh;

	/* its number may go to another thread at once, which cannot have this file */
	bool first = d->handles == 1 && d->names->own && h->file->own && st_one_in(w, 2);

	h->fh = NULL;
	d->handles--;
	if (first)
		put_fd(d);
	st_call(w, "cuFileHandleDeregister %#lx", (long)fh, 0, 0, 0, 0, 0);
	cuFileHandleDeregister(fh);
	st_result(w, 0, 0);
	w->tally.drop_ok++;
	if (!first)
		put_fd(d);
	remember(w, fh);
}

void ob_deregister(struct worker *w)
{
	struct handle *h = &w->handle[st_below(w, MOST_HANDLES)];
	CUfileHandle_t fh;

	if (h->fh && !st_one_in(w, 8)) {
		drop(w, h);
		return;
	}
	fh = st_one_in(w, 4) ? NULL : ob_no_handle(w);
	st_call(w, "cuFileHandleDeregister %#lx, which is none", (long)fh, 0, 0, 0, 0, 0);
	cuFileHandleDeregister(fh);
	st_result(w, 0, 0);
	w->tally.drop_err++;
}

/* The number of a registered descriptor names another file now: the handle is still its own's. */
static void swap_fd(struct worker *w)
{
	struct fd_model *d = &w->fd[st_below(w, MOST_HANDLES)];
	const struct file_model *f = &w->file[st_below(w, FILES + 1)];
	int flags = some_flags(w), fd;

	if (!d->handles)
		return;
	fd = open_file(w, f, flags);
	if (dup3(fd, d->fd, O_CLOEXEC) < 0)
		st_bad(w, "dup3: errno %d", errno);
	close(fd);
	d->flags = flags;
	d->names = f;
}

/* -- registered memory -- */

static void buf_bad(struct worker *w, struct mem *m)
{
	const struct setup *s = &w->all->set;
	char *p = m->span + GUARD;
	size_t len = 4096;
	int err = CU_FILE_INVALID_VALUE;

	switch (st_below(w, 5)) {
	case 0:
		p = NULL;
		break;
	case 1:
		len = 0;
		break;
	case 2:
		len = (size_t)0 - (uintptr_t)p + st_below(w, 5000);
		err = CU_FILE_CUDA_POINTER_RANGE_ERROR;
		break;
	case 3:
		if (!m->regs || (m->host && !s->system_memory))
			return;
		p = m->reg[st_below(w, m->regs)].start;
		err = CU_FILE_MEMORY_ALREADY_REGISTERED;
		break;
	default:
		/* a start that nothing else has, and an end outside the allocation */
		p = m->span + SPAN - 3;
		if (md_starts(w, m, (uintptr_t)p))
			return;
		len = m->base + m->len - p + 1 + st_below(w, 8192);
		err = CU_FILE_CUDA_POINTER_RANGE_ERROR;
		if (m->host && s->system_memory)
			return;
		if (m->host)
			err = CU_FILE_CUDA_MEMORY_TYPE_INVALID;
	}
	st_call(w, "cuFileBufRegister %#lx + %ld, wrong", (long)p, len, 0, 0, 0, 0);
	st_status(w, cuFileBufRegister(p, len, 0), err, 0);
	w->tally.buf_err++;
}

void ob_buf_register(struct worker *w)
{
	struct mem *m = &w->mem[st_below(w, MEMS)];
	size_t from, len;
	int err = 0;

	if (!m->base || m->fixed)
		return;
	if (st_one_in(w, 6)) {
		buf_bad(w, m);
		return;
	}
	if (m->regs == MOST_REGS) {
		ob_buf_deregister(w);
		return;
	}
	from = st_below(w, SPAN);
	if (st_one_in(w, 2))
		from &= ~(size_t)4095;
	len = st_one_in(w, 3) ? SPAN - from : st_size(w, SPAN - from);
	if (md_start_is_busy(m, m->span + from))
		return;
	if (md_starts(w, m, (uintptr_t)m->span + from))
		err = CU_FILE_MEMORY_ALREADY_REGISTERED;
	else if (m->host && !w->all->set.system_memory)
		err = CU_FILE_CUDA_MEMORY_TYPE_INVALID;
	st_call(w, "cuFileBufRegister of memory %ld from %ld, %ld bytes (%#lx)", m->kind, from,
		len, (long)m->span + from, 0, 0);
	st_status(w, cuFileBufRegister(m->span + from, len, st_below(w, 4)), err, 0);
	*(err ? &w->tally.buf_err : &w->tally.buf_ok) += 1;
	if (!err)
		m->reg[m->regs++] = (struct reg){ m->span + from, len };
}

static void buf_drop(struct worker *w, struct mem *m, unsigned int i)
{
	char *p = m->reg[i].start;

	m->reg[i] = m->reg[--m->regs];
	st_call(w, "cuFileBufDeregister of memory %ld from %ld", m->kind, p - m->span, 0, 0, 0, 0);
	st_status(w, cuFileBufDeregister(p), 0, 0);
	w->tally.undo_ok++;
}

void ob_buf_deregister(struct worker *w)
{
	struct mem *m = &w->mem[st_below(w, MEMS)];
	unsigned int i;
	char *p;

	if (!m->base || m->fixed)
		return;
	if (m->regs && !st_one_in(w, 8)) {
		i = st_below(w, m->regs);
		if (!md_start_is_busy(m, m->reg[i].start))
			buf_drop(w, m, i);
		return;
	}
	p = st_one_in(w, 4) ? NULL : m->span + st_below(w, SPAN);
	if (p && md_starts(w, m, (uintptr_t)p))
		return;
	st_call(w, "cuFileBufDeregister %#lx, which is no start", (long)p, 0, 0, 0, 0, 0);
	st_status(w, cuFileBufDeregister(p),
		  p ? CU_FILE_MEMORY_NOT_REGISTERED : CU_FILE_INVALID_VALUE, 0);
	w->tally.undo_err += p != NULL;
}

/* -- memory and files of one thread -- */

static bool any_busy(const unsigned int *busy)
{
	unsigned int i;

	for (i = 0; i < ZONES; i++)
		if (busy[i])
			return true;
	return false;
}

static void renew_memory(struct worker *w, struct mem *m)
{
	size_t extra = st_below(w, 9000), at;
	CUdeviceptr p;
	CUresult r;
	void *host;

	if (any_busy(m->busy))
		return;
	while (m->regs)
		buf_drop(w, m, m->regs - 1);
	if (m->base) {
		r = m->host ? cuMemFreeHost(m->base) : cuMemFree((uintptr_t)m->base);
		if (r)
			st_bad(w, "memory %d is not freed: CUDA %d", m->kind, r);
		m->base = NULL;
		return;
	}
	m->len = SPAN + extra;
	if (m->host) {
		r = cuMemHostAlloc(&host, m->len, 0);
		m->base = host;
	} else {
		r = cuMemAlloc(&p, m->len);
		m->base = (char *)(uintptr_t)p;
	}
	if (r)
		st_bad(w, "%zu bytes of memory %d: CUDA %d", m->len, m->kind, r);
	at = st_below(w, extra + 1);
	m->span = m->base + at;
	t_random_fresh(&w->rnd, m->want, SPAN);
	memcpy(m->span, m->want, SPAN);
}

/* Another file under the old name, not longer than the zones. */
static void renew_file(struct worker *w, struct file_model *f)
{
	struct stat st;
	unsigned int i;

	for (i = 0; i < MOST_HANDLES; i++)
		if (w->handle[i].fh && (w->handle[i].file == f || w->handle[i].d->names == f))
			drop(w, &w->handle[i]);
	if (f->look >= 0) {
		close(f->look);
		unlink(f->path);
	}
	f->look = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (f->look < 0 || fstat(f->look, &st))
		st_bad(w, "open of %s: errno %d", f->path, errno);
	f->inode = st.st_ino;
	f->holes = false;
	f->size = st_one_in(w, 4) ? st_below(w, 5000) : st_below(w, ZONES * ZONE);
	t_random_fresh(&w->rnd, f->want, f->size);
	if (pwrite(f->look, f->want, f->size, 0) != (ssize_t)f->size)
		st_bad(w, "pwrite of %s: errno %d", f->path, errno);
}

static bool dense(const struct setup *s)
{
	return s->strict || !s->allow_compat;
}

static void resize_file(struct worker *w, struct file_model *f)
{
	size_t size = st_below(w, ZONES * ZONE + 1);

	if (dense(&w->all->set) && size > f->size)
		return;
	if (size > f->size) {
		memset(f->want + f->size, 0, size - f->size);
		f->holes = true;
	}
	if (ftruncate(f->look, size))
		st_bad(w, "ftruncate of %s: errno %d", f->path, errno);
	f->size = size;
}

static void one_more_use(struct worker *w)
{
	struct stress *s = w->all;

	st_call(w, "cuFileDriverOpen", 0, 0, 0, 0, 0, 0);
	atomic_fetch_add(&s->opens_begun, 1);
	st_status(w, cuFileDriverOpen(), 0, 0);
	atomic_fetch_add(&s->opens_done, 1);
	w->uses++;
}

static void one_less_use(struct worker *w)
{
	struct stress *s = w->all;

	st_call(w, "cuFileDriverClose", 0, 0, 0, 0, 0, 0);
	atomic_fetch_add(&s->closes_begun, 1);
	st_status(w, st_one_in(w, 2) ? cuFileDriverClose() : cuFileDriverClose_v2(), 0, 0);
	atomic_fetch_add(&s->closes_done, 1);
	w->uses--;
}

void ob_come_and_go(struct worker *w)
{
	struct file_model *f = &w->file[FILES];

	switch (st_below(w, 8)) {
	case 0:
		renew_memory(w, &w->mem[DEV_OWN]);
		break;
	case 1:
		renew_memory(w, &w->mem[PINNED_OWN]);
		break;
	case 2:
		if (!f->frozen)
			renew_file(w, f);
		break;
	case 3:
	case 4:
		if (!f->frozen)
			resize_file(w, f);
		break;
	case 5:
		swap_fd(w);
		break;
	default:
		if (w->uses < 3 && (!w->uses || st_one_in(w, 2)))
			one_more_use(w);
		else
			one_less_use(w);
	}
}

/* -- an epoch -- */

void ob_begin(struct worker *w)
{
	static const int mode[4] = { O_RDWR, O_RDWR, O_RDONLY, O_WRONLY };
	struct stress *s = w->all;
	struct file_model *f = &w->file[FILES];
	unsigned int i;

	/* the close took what was left */
	for (i = 0; i < MOST_HANDLES; i++) {
		if (w->handle[i].fh)
			remember(w, w->handle[i].fh);
		w->handle[i].fh = NULL;
		if (w->fd[i].handles)
			close(w->fd[i].fd);
		w->fd[i].handles = 0;
	}
	for (i = 0; i < MEMS; i++)
		w->mem[i].regs = 0;
	for (i = 0; i < SHARED_HANDLES; i++)
		w->shared[i] = (struct handle){ .fh = s->fh[i], .file = &w->file[i / 4],
						.mode = mode[i % 4] };
	w->uses = 0;
	memset(&w->tally, 0, sizeof(w->tally));
	if (f->look < 0 || (f->holes && dense(&s->set)))
		renew_file(w, f);
}

/* Some of it is left for the close. */
void ob_end(struct worker *w)
{
	bool all = st_one_in(w, 2);
	unsigned int i;

	while (w->uses)
		one_less_use(w);
	for (i = 0; i < MOST_HANDLES; i++)
		if (w->handle[i].fh && (all || st_one_in(w, 3)))
			drop(w, &w->handle[i]);
	for (i = 0; i < MEMS; i++)
		while (w->mem[i].regs && (all || !st_one_in(w, 3)))
			buf_drop(w, &w->mem[i], w->mem[i].regs - 1);
}
