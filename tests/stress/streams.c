// SPDX-License-Identifier: MIT
/*
 * streams.c - bursts of operations in streams: in order, with numbers that change until their
 * turn comes, and promises that they do not.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "stress.h"

/* How the numbers of a burst become what they are when their turn comes. */
enum late { AT_ONCE, BY_STREAM, BY_CALLER };

static void host_sets(void *arg)
{
	struct op *o = arg;

	o->size = o->late_size;
	o->off = o->late_off;
	o->buf_off = o->late_buf_off;
}

static void host_waits(void *arg)
{
	struct burst *u = arg;

	while (!atomic_load(&u->gate))
		usleep(50);
}

static void cuda(struct worker *w, CUresult r, const char *what)
{
	if (r)
		st_bad(w, "%s: CUDA %d", what, r);
}

/* -- streams -- */

static void make_stream(struct worker *w, struct burst *u)
{
	unsigned int flags = st_one_in(w, 4) ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;

	cuda(w, cuStreamCreate(&u->stream, flags), "cuStreamCreate");
	u->exists = true;
	u->registered = false;
}

static void promise(struct worker *w, struct burst *u)
{
	unsigned int flags = st_below(w, 16);
	int err = u->registered ? CU_FILE_INVALID_VALUE : 0;

	st_call(w, "cuFileStreamRegister, flags %ld", flags, 0, 0, 0, 0, 0);
	st_status(w, cuFileStreamRegister(u->stream, flags), err, 0);
	if (!err)
		u->flags = flags;
	u->registered = true;
}

static void take_back(struct worker *w, struct burst *u)
{
	int err = u->registered ? 0 : CU_FILE_INVALID_VALUE;

	st_call(w, "cuFileStreamDeregister", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileStreamDeregister(u->stream), err, 0);
	u->registered = false;
}

static void drop_stream(struct worker *w, struct burst *u)
{
	/* its address may be another stream's next */
	if (u->registered)
		take_back(w, u);
	cuda(w, cuStreamDestroy(u->stream), "cuStreamDestroy");
	u->exists = false;
}

/* -- a burst -- */

/* Both sets of numbers lie in the zones of the burst, also mixed. */
static bool make_op(struct worker *w, struct burst *u, struct op *o)
{
	struct claim *c = &u->c;
	size_t lo = GUARD + c->mz * ZONE, hi = lo + c->nm * ZONE;
	size_t flo = c->fz * ZONE, room = c->nf * ZONE;
	struct ask *a = &o->a;

	memset(o, 0, sizeof(*o));
	a->write = st_one_in(w, 2);
	a->h = ob_handle(w, a->write, false);
	/* of the burst's own file */
	if (!a->h || a->h->file != c->file)
		return false;
	a->fh = a->h->fh;
	a->file = c->file;
	a->m = c->m;
	if (a->write && c->file->own)
		room = c->file->size <= flo ? 0 :
		       c->file->size - flo < room ? c->file->size - flo : room;
	if (!room)
		return false;
	o->size = st_size(w, room < hi - lo ? room : hi - lo);
	o->late_size = st_one_in(w, 2) ? o->size : 1 + st_below(w, o->size);
	o->off = c->file->start + (off_t)(flo + st_below(w, room - o->size + 1));
	o->late_off = c->file->start + (off_t)(flo + st_below(w, room - o->size + 1));
	a->at = lo + st_below(w, hi - lo - o->size + 1);
	rq_aim(w, a, c, true);
	/* neither target lies before the base */
	if (a->base > a->m->span + lo)
		lo = a->base - a->m->span;
	o->buf_off = (off_t)(lo + st_below(w, hi - lo - o->size + 1)) - (a->base - a->m->span);
	o->late_buf_off = (off_t)(lo + st_below(w, hi - lo - o->size + 1)) -
			  (a->base - a->m->span);
	o->bytes = -12345;
	return true;
}

/* The numbers that count are the late ones, where nothing was promised. */
static void settle(struct worker *w, const struct burst *u, struct op *o, enum late late)
{
	unsigned int flags = u->registered ? u->flags : 0;
	struct ask *a = &o->a, odd;

	if (late == AT_ONCE) {
		o->late_size = o->size;
		o->late_off = o->off;
		o->late_buf_off = o->buf_off;
	}
	/* numbers of both sets are not mixed where one is wrong */
	if (st_one_in(w, 10) && (late == AT_ONCE || !(flags & 7))) {
		odd = *a;
		odd.size = o->late_size;
		odd.off = o->late_off;
		odd.buf_off = o->late_buf_off;
		rq_spoil(w, &odd, true);
		a->h = odd.h;
		a->fh = odd.fh;
		a->m = odd.m;
		a->base = odd.base;
		o->late_size = odd.size;
		o->late_off = odd.off;
		o->late_buf_off = odd.buf_off;
		if (late == AT_ONCE || !odd.m) {
			o->size = odd.size;
			o->off = odd.off;
			o->buf_off = odd.buf_off;
		}
	}
	a->size = flags & CU_FILE_STREAM_FIXED_FILE_SIZE ? o->size : o->late_size;
	a->off = flags & CU_FILE_STREAM_FIXED_FILE_OFFSET ? o->off : o->late_off;
	a->buf_off = flags & CU_FILE_STREAM_FIXED_BUF_OFFSET ? o->buf_off : o->late_buf_off;
	a->rel = a->off - a->file->start;
	if (a->m)
		a->at = (uintptr_t)a->base + (uint64_t)a->buf_off - (uintptr_t)a->m->span;
	o->want = md_predict(w, a);
}

/* What the operation's *bytes_p has to be. */
static ssize_t told(const struct answer *want)
{
	int err = want->err == CU_FILE_INVALID_MAPPING_RANGE ? CU_FILE_INVALID_MAPPING_SIZE :
							       want->err;

	return err ? -err : (ssize_t)want->n;
}

static CUfileError_t submit(struct op *o, CUstream stream)
{
	if (o->a.write)
		return cuFileWriteAsync(o->a.fh, o->a.base, &o->size, &o->off, &o->buf_off,
					&o->bytes, stream);
	return cuFileReadAsync(o->a.fh, o->a.base, &o->size, &o->off, &o->buf_off, &o->bytes,
			       stream);
}

static void start(struct worker *w, struct burst *u)
{
	const struct setup *s = &w->all->set;
	/* where the library may wait for the stream, the stream may not wait for its caller */
	enum late late = s->threads && s->words ? st_below(w, 3) : AT_ONCE;
	unsigned int want = 1 + st_below(w, MOST_OPS), i;
	struct ask first;
	struct op *o;

	memset(&u->c, 0, sizeof(u->c));
	if (!rq_pick(w, &first, &u->c, true))
		return;
	if (first.size > 2 * ZONE)
		first.size = 2 * ZONE;
	rq_claim(w, &first, &u->c);
	u->n = 0;
	atomic_store(&u->gate, false);
	/* a submission looks at the numbers, too: they change when all of them are over */
	if (late != AT_ONCE)
		cuda(w, cuLaunchHostFunc(u->stream, host_waits, u), "cuLaunchHostFunc");
	for (i = 0; i < 4 * want && u->n < want; i++) {
		o = &u->op[u->n];
		if (!make_op(w, u, o))
			continue;
		settle(w, u, o, late);
		if (o->a.m && md_starts(w, o->a.m, (uintptr_t)o->a.base) && !u->c.fixed) {
			u->c.fixed = true;
			u->c.m->fixed++;
		}
		if (late == BY_STREAM)
			cuda(w, cuLaunchHostFunc(u->stream, host_sets, o), "cuLaunchHostFunc");
		st_call(w, o->a.write ? "cuFileWriteAsync %ld at %ld, buffer offset %ld, as it will be; file %ld, late %ld" :
					"cuFileReadAsync %ld at %ld, buffer offset %ld, as it will be; file %ld, late %ld",
			o->a.size, o->a.off, o->a.buf_off, o->a.h->file - w->file, late, 0);
		st_status(w, submit(o, u->stream), s->threads ? 0 : CU_FILE_ASYNC_NOT_SUPPORTED, 0);
		if (s->threads)
			u->n++;
	}
	for (i = 0; i < u->n && late == BY_CALLER; i++)
		host_sets(&u->op[i]);
	atomic_store(&u->gate, true);
	if (!u->n)
		md_claim(&u->c, -1);
}

static void finish(struct worker *w, struct burst *u)
{
	unsigned int i;
	struct op *o;

	cuda(w, cuStreamSynchronize(u->stream), "cuStreamSynchronize");
	for (i = 0; i < u->n; i++) {
		o = &u->op[i];
		if (o->bytes != told(&o->want))
			st_bad(w, "operation %u of a stream, %s of %zu at %lld: %zd; it must be %zd",
			       i, o->a.write ? "write" : "read", o->a.size,
			       (long long)o->a.off, o->bytes, told(&o->want));
		md_apply(w, &o->a, o->want.n);
		rq_count(w, o->a.write, o->want.err ? -1 : (ssize_t)o->want.n);
	}
	u->n = 0;
	md_claim(&u->c, -1);
	md_check_mem(w, u->c.m, GUARD + u->c.mz * ZONE, GUARD + (u->c.mz + u->c.nm) * ZONE);
	md_check_file(w, u->c.file, u->c.fz * ZONE, (u->c.fz + u->c.nf) * ZONE);
}

/* -- calls that are wrong -- */

static void wrong(struct worker *w, struct burst *u)
{
	bool threads = w->all->set.threads;
	struct handle *h = ob_handle(w, false, false);
	CUstream bad = (CUstream)(uintptr_t)0x5eed0;
	unsigned int way = st_below(w, 8);
	off_t off = 0, buf_off = 0;
	char *base = w->mem[HOST_SHARED].span;
	ssize_t bytes = 0;
	size_t size = 1;
	CUfileError_t e;
	int err = CU_FILE_INVALID_VALUE, cu = 0;

	if (!h)
		return;
	st_call(w, "a stream call, wrong in way %ld", way, 0, 0, 0, 0, 0);
	switch (way) {
	case 0:
		e = cuFileReadAsync(h->fh, NULL, &size, &off, &buf_off, &bytes, u->stream);
		break;
	case 1:
		e = cuFileReadAsync(h->fh, base, NULL, &off, &buf_off, &bytes, u->stream);
		break;
	case 2:
		e = cuFileWriteAsync(h->fh, base, &size, NULL, &buf_off, &bytes, u->stream);
		break;
	case 3:
		e = cuFileReadAsync(h->fh, base, &size, &off, NULL, &bytes, u->stream);
		break;
	case 4:
		e = cuFileWriteAsync(h->fh, base, &size, &off, &buf_off, NULL, u->stream);
		break;
	case 5:
		e = cuFileReadAsync(st_one_in(w, 3) ? NULL : ob_no_handle(w), base, &size, &off,
				    &buf_off, &bytes, u->stream);
		err = threads ? err : CU_FILE_ASYNC_NOT_SUPPORTED;
		break;
	case 6:
		e = cuFileReadAsync(h->fh, base, &size, &off, &buf_off, &bytes, bad);
		err = threads ? CU_FILE_CUDA_DRIVER_ERROR : CU_FILE_ASYNC_NOT_SUPPORTED;
		cu = threads ? CUDA_ERROR_INVALID_HANDLE : 0;
		break;
	default:
		e = st_one_in(w, 2) ? cuFileStreamRegister(bad, 0) : cuFileStreamDeregister(bad);
		err = CU_FILE_CUDA_DRIVER_ERROR;
		cu = CUDA_ERROR_INVALID_HANDLE;
	}
	st_status(w, e, err, cu);
}

void sm_one(struct worker *w)
{
	struct burst *u = &w->burst[st_below(w, STREAMS)];
	unsigned int dice = st_below(w, 100);

	if (u->n) {
		if (dice < 60)
			finish(w, u);
		return;
	}
	if (!u->exists)
		make_stream(w, u);
	if (dice < 75)
		start(w, u);
	else if (dice < 83)
		promise(w, u);
	else if (dice < 90)
		take_back(w, u);
	else if (dice < 96)
		wrong(w, u);
	else
		drop_stream(w, u);
}

void sm_begin(struct worker *w)
{
	unsigned int i;

	/* the close forgot what was promised */
	for (i = 0; i < STREAMS; i++)
		w->burst[i].registered = false;
}

void sm_end(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < STREAMS; i++)
		if (w->burst[i].n)
			finish(w, &w->burst[i]);
}

void sm_free(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < STREAMS; i++)
		if (w->burst[i].exists)
			cuda(w, cuStreamDestroy(w->burst[i].stream), "cuStreamDestroy");
}
