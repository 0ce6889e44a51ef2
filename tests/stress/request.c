// SPDX-License-Identifier: MIT
/* request.c - cuFileRead, cuFileWrite and the vector forms. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "stress.h"

#define MOST_PIECES 6

/* -- choosing -- */

/* Where it begins in the windows: every other one with whole blocks alike in file and memory. */
static void place(struct worker *w, struct ask *a, const struct claim *c, size_t room)
{
	size_t mlo = GUARD + c->mz * ZONE, flo = c->fz * ZONE, at, rel;
	uint64_t va;

	at = mlo + st_below(w, c->nm * ZONE - a->size + 1);
	rel = flo + st_below(w, room - a->size + 1);
	if (st_one_in(w, 2)) {
		off_t off = c->file->start + (off_t)rel;

		rel -= (size_t)off % 4096 <= rel - flo ? (size_t)off % 4096 : 0;
		off = c->file->start + (off_t)rel;
		va = (uintptr_t)c->m->span + at;
		va = (va - (uint64_t)off) % 4096;
		at -= va <= at - mlo ? va : 0;
	}
	a->at = at;
	a->rel = rel;
	a->off = c->file->start + (off_t)rel;
}

/* Bytes of the file window that the request may have. */
static size_t file_room(struct worker *w, const struct ask *a, const struct claim *c,
			bool in_flight)
{
	const struct setup *s = &w->all->set;
	size_t room = c->nf * ZONE, from = c->fz * ZONE;

	if (!a->write || !c->file->own)
		return room;
	/* what is under way elsewhere knows the size; and where no hole may be, none is made */
	if (c->file->frozen || in_flight)
		return c->file->size <= from ? 0 :
		       c->file->size - from < room ? c->file->size - from : room;
	if ((s->strict || !s->allow_compat) && c->file->size < from)
		return 0;
	return room;
}

/* New bytes in the target of a write. */
static void fill(struct worker *w, const struct ask *a)
{
	t_random_fresh(&w->rnd, a->m->want + a->at, a->size);
	memcpy(a->m->span + a->at, a->m->want + a->at, a->size);
}

void rq_aim(struct worker *w, struct ask *a, const struct claim *c, bool in_flight)
{
	struct mem *m = a->m;
	char *target = m->span + a->at, *base = target;
	unsigned int i;

	switch (st_below(w, 4)) {
	case 0:
		if (!in_flight || m->base != m->span)
			base = m->base;
		break;
	case 1:
		base = m->span + GUARD + c->mz * ZONE;
		break;
	case 2:
		if (!m->regs)
			break;
		/* the registration that begins there, whether it reaches that far or not */
		i = st_below(w, m->regs);
		if (m->reg[i].start <= target &&
		    (!in_flight || m->reg[i].start >= m->span + GUARD + c->mz * ZONE))
			base = m->reg[i].start;
		break;
	}
	a->base = base;
	a->buf_off = target - base;
}

bool rq_pick(struct worker *w, struct ask *a, struct claim *c, bool in_flight)
{
	size_t room;

	memset(a, 0, sizeof(*a));
	memset(c, 0, sizeof(*c));
	a->write = st_one_in(w, 2);
	a->h = ob_handle(w, a->write, false);
	a->m = &w->mem[st_below(w, MEMS)];
	if (!a->h || !md_mem_window(w, a->m, &c->mz, &c->nm) ||
	    !md_file_window(w, a->h->file, &c->fz, &c->nf))
		return false;
	a->fh = a->h->fh;
	c->file = a->file = a->h->file;
	c->m = a->m;
	room = file_room(w, a, c, in_flight);
	if (!room)
		return false;
	a->size = st_size(w, room < c->nm * ZONE ? room : c->nm * ZONE);
	place(w, a, c, room);
	/* a file without holes is written to from its end on, not from behind it */
	if (a->write && c->file->own && a->rel > c->file->size &&
	    (w->all->set.strict || !w->all->set.allow_compat)) {
		a->rel = c->file->size;
		a->off = a->rel;
	}
	if (a->write)
		fill(w, a);
	return true;
}

void rq_claim(struct worker *w, const struct ask *a, struct claim *c)
{
	if (a->size) {
		c->mz = (a->at - GUARD) / ZONE;
		c->nm = (a->at + a->size - 1 - GUARD) / ZONE - c->mz + 1;
		c->fz = a->rel / ZONE;
		c->nf = (a->rel + a->size - 1) / ZONE - c->fz + 1;
	}
	md_claim(c, 1);
}

/* One thing about it is wrong, or odd. What is under way may not depend on more than it has. */
void rq_spoil(struct worker *w, struct ask *a, bool in_flight)
{
	struct handle *h;

	switch (st_below(w, 11)) {
	case 0:
		a->size = 0;
		break;
	case 1:
		a->off = -1 - (off_t)st_below(w, 1 << 20);
		break;
	case 2:
		a->buf_off = -1 - (off_t)st_below(w, 1 << 20);
		break;
	case 3:
		a->size = (size_t)INT64_MAX + 1 + st_below(w, 5000);
		break;
	case 4:
		a->size = (size_t)INT64_MAX;
		a->off = 0;
		a->buf_off = INT64_MAX;
		break;
	case 5:
		/* not over the edge of host memory, which nobody knows */
		if (!a->m->host)
			a->size = a->m->base + a->m->len - (a->base + a->buf_off) + 1 +
				  st_below(w, 5000);
		break;
	case 6:
		h = ob_handle(w, a->write, true);
		if (h) {
			a->h = h;
			a->fh = h->fh;
		}
		break;
	case 7:
		/* behind the end the kernel itself makes the file longer, with no byte written */
		if (a->write && a->file->own && a->rel > a->file->size)
			break;
		a->m = NULL;
		a->base = w->all->nowhere + st_below(w, 4096);
		a->buf_off = 0;
		if (a->size > 65536)
			a->size = 65536;
		break;
	case 8:
		if (!a->write)
			a->off = (off_t)1 << 60;
		break;
	case 9:
		if (in_flight)
			break;
		a->h = NULL;
		a->fh = st_one_in(w, 4) ? NULL : ob_no_handle(w);
		break;
	case 10:
		if (in_flight)
			break;
		a->m = NULL;
		a->base = NULL;
		a->buf_off = 0;
		break;
	}
}

/* -- the call -- */

static struct answer predict(struct worker *w, const struct ask *a)
{
	struct answer r = { 0 };

	if (!a->fh || !a->base)
		r.err = EINVAL;
	else if (!a->h)
		r.err = CU_FILE_HANDLE_NOT_REGISTERED;
	else
		return md_predict(w, a);
	return r;
}

void rq_count(struct worker *w, bool write, ssize_t n)
{
	if (n < 0)
		w->tally.err[write]++;
	else
		w->tally.ok[write]++;
	if (n > 0)
		w->tally.bytes[write] += n;
}

/* The report of the request: what it says of itself adds up. */
static void check_report(struct worker *w, bool write, ssize_t n, int err)
{
	struct ogds_report rep = OGDS_REPORT_INIT;
	uint64_t sum = 0, device;
	unsigned int i;

	if (ogds_last_io(&rep))
		st_bad(w, "ogds_last_io fails");
	for (i = 0; i < OGDS_ROUTES; i++)
		sum += rep.bytes[i];
	device = sum - rep.bytes[OGDS_ROUTE_HOST];
	if (rep.sequence <= w->sequence || rep.op != (write ? OGDS_OP_WRITE : OGDS_OP_READ) ||
	    rep.result != n || (n < 0 && rep.error != err))
		st_bad(w, "the report is of another request: number %llu after %llu, result %lld, error %d",
		       (unsigned long long)rep.sequence, (unsigned long long)w->sequence,
		       (long long)rep.result, rep.error);
	w->sequence = rep.sequence;
	if (n < 0)
		return;
	if (sum != (uint64_t)n || rep.whole_bytes + rep.edge_bytes != device ||
	    rep.whole_direct > rep.whole_bytes)
		st_bad(w, "the report does not add up: %llu bytes, %llu whole, %llu edge, %llu direct",
		       (unsigned long long)sum, (unsigned long long)rep.whole_bytes,
		       (unsigned long long)rep.edge_bytes, (unsigned long long)rep.whole_direct);
}

/* What can go direct does, unless something is made to fail. */
static void check_direct(struct worker *w, const struct ask *a, ssize_t n)
{
	const struct setup *s = &w->all->set;
	struct ogds_report rep = OGDS_REPORT_INIT;
	const unsigned int any = 1u << OGDS_ROUTE_STAGED;

	if (n <= 0 || a->m->host || s->faults || !s->module || s->theirs || s->force_compat ||
	    !(s->routes & any) || a->h->file->holes || ogds_last_io(&rep))
		return;
	if (rep.whole_direct != rep.whole_bytes)
		st_bad(w, "%llu bytes of whole blocks, and only %llu went direct: %s",
		       (unsigned long long)rep.whole_bytes,
		       (unsigned long long)rep.whole_direct, ogds_reason_id(rep.reason));
}

void rq_one(struct worker *w)
{
	struct answer want;
	struct claim c;
	struct ask a;
	ssize_t n;
	int err;

	if (!rq_pick(w, &a, &c, false))
		return;
	rq_aim(w, &a, &c, false);
	if (st_one_in(w, 6))
		rq_spoil(w, &a, false);
	want = predict(w, &a);
	st_call(w, a.write ? "cuFileWrite file %ld at %ld, memory %ld + %ld (offset %ld), %ld bytes" :
			     "cuFileRead file %ld at %ld, memory %ld + %ld (offset %ld), %ld bytes",
		a.h ? a.h->file - w->file : -1, a.off, a.m ? (long)a.m->kind : -1, a.at, a.buf_off,
		a.size);
	errno = 0;
	n = a.write ? cuFileWrite(a.fh, a.base, a.size, a.off, a.buf_off) :
		      cuFileRead(a.fh, a.base, a.size, a.off, a.buf_off);
	err = errno;
	st_result(w, n, err);
	if (n != (want.err ? -1 : (ssize_t)want.n) || (want.err && err != want.err))
		st_bad(w, "%zd, errno %d; it must be %zu, errno %d", n, err, want.n, want.err);
	if (a.fh && a.base)
		rq_count(w, a.write, n);
	md_apply(w, &a, want.n);
	check_report(w, a.write, n, err);
	if (a.m && a.h)
		check_direct(w, &a, n);
	md_check(w, &a, &c);
}

/* -- vectors -- */

/* Pieces of one direction and one file, behind one another there. */
static size_t pick_pieces(struct worker *w, struct ask *a, struct claim *c, size_t most)
{
	size_t n = 0, room, rel;
	struct ask *p;

	if (!rq_pick(w, &a[0], &c[0], false))
		return 0;
	room = (c[0].fz + c[0].nf) * ZONE - a[0].rel;
	if (a[0].write && a[0].file->own && a[0].file->frozen &&
	    room > a[0].file->size - a[0].rel)
		room = a[0].file->size - a[0].rel;
	rel = a[0].rel;
	most = 1 + st_below(w, most);
	for (n = 0; n < most && room; n++) {
		p = &a[n];
		if (n) {
			*p = a[0];
			c[n] = c[0];
			p->m = c[n].m = &w->mem[st_below(w, MEMS)];
			if (!md_mem_window(w, p->m, &c[n].mz, &c[n].nm))
				break;
		}
		p->size = st_size(w, room < c[n].nm * ZONE ? room : c[n].nm * ZONE);
		p->at = GUARD + c[n].mz * ZONE + st_below(w, c[n].nm * ZONE - p->size + 1);
		p->rel = rel;
		p->off = a[0].off + (off_t)(rel - a[0].rel);
		p->base = p->m->span + p->at;
		p->buf_off = 0;
		rel += p->size;
		room -= p->size;
	}
	return n;
}

/* What the pieces must come to, one after another; what is done is applied. */
static struct answer run_model(struct worker *w, const struct ask *a, size_t n)
{
	struct answer one, all = { 0 };
	size_t i;

	for (i = 0; i < n; i++) {
		if (!a[i].size)
			continue;
		if (!a[i].base)
			one = (struct answer){ .err = EINVAL };
		else
			one = md_predict(w, &a[i]);
		if (one.err && !all.n)
			all.err = one.err;
		if (one.err)
			break;
		md_apply(w, &a[i], one.n);
		all.n += one.n;
		if (one.n < a[i].size)
			break;
	}
	return all;
}

/* The first pieces are tried with something wrong: what must come of it, 0: it is not known yet. */
static int spoil_call(struct worker *w, struct ask *a, size_t *n, unsigned int *flags)
{
	switch (st_below(w, 4)) {
	case 0:
		*flags = 1 + st_below(w, 7);
		return EINVAL;
	case 1:
		a->fh = NULL;
		return EINVAL;
	case 2:
		a->fh = ob_no_handle(w);
		return CU_FILE_HANDLE_NOT_REGISTERED;
	default:
		*n = 0;
		return 0;
	}
}

void rq_vector(struct worker *w)
{
	CUfileIOVec_t iov[MOST_PIECES], *list = iov;
	struct claim c[MOST_PIECES];
	struct ask a[MOST_PIECES];
	size_t n = pick_pieces(w, a, c, MOST_PIECES), i, used = n;
	unsigned int flags = 0;
	struct answer want = { 0 };
	ssize_t got;
	int err;

	if (!n)
		return;
	for (i = 0; i < n && a[0].write; i++)
		fill(w, &a[i]);
	if (st_one_in(w, 6)) {
		i = st_below(w, n);
		a[i].base = NULL;
		a[i].m = NULL;
		if (st_one_in(w, 2))
			a[i].size = 0;
	}
	if (st_one_in(w, 8))
		want.err = spoil_call(w, a, &used, &flags);
	for (i = 0; i < n; i++) {
		iov[i] = (CUfileIOVec_t){ a[i].base, a[i].size };
		if (!i)
			continue;
		/* a piece that became nothing moves those behind it */
		a[i].off = a[i - 1].off + (off_t)a[i - 1].size;
		a[i].rel = a[i - 1].rel + a[i - 1].size;
	}
	if (!used && st_one_in(w, 2))
		list = NULL;
	st_call(w, a[0].write ? "cuFileWritev file %ld at %ld, %ld pieces, the first of %ld, flags %ld" :
				"cuFileReadv file %ld at %ld, %ld pieces, the first of %ld, flags %ld",
		a[0].h->file - w->file, a[0].off, used, a[0].size, flags, 0);
	if (!want.err)
		want = run_model(w, a, used);
	errno = 0;
	got = a[0].write ? cuFileWritev(a[0].fh, list, used, a[0].off, flags) :
			   cuFileReadv(a[0].fh, list, used, a[0].off, flags);
	err = errno;
	st_result(w, got, err);
	if (got != (want.err ? -1 : (ssize_t)want.n) || (want.err && err != want.err))
		st_bad(w, "%zd, errno %d; it must be %zu, errno %d", got, err, want.n, want.err);
	if (a[0].fh && !flags)
		rq_count(w, a[0].write, got);
	check_report(w, a[0].write, got, err);
	for (i = 0; i < n; i++)
		md_check(w, &a[i], &c[i]);
}
