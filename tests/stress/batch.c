// SPDX-License-Identifier: MIT
/* batch.c - batches: submitted, asked for, cancelled, destroyed, with entries of all sorts. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stress.h"

#define ENTRY_BYTES ZONE	/* of an entry, at most: several find room */

static void set_up(struct worker *w, struct batch *b)
{
	const size_t most = w->all->set.batch;
	unsigned int nr = 1 + st_below(w, most < MOST_ENTRIES ? most : MOST_ENTRIES);
	CUfileBatchHandle_t h, *to = &h;
	int err = 0;

	if (st_one_in(w, 6)) {
		err = CU_FILE_INVALID_VALUE;
		switch (st_below(w, 3)) {
		case 0:
			nr = 0;
			break;
		case 1:
			nr = most + 1 + st_below(w, 100);
			break;
		default:
			to = NULL;
		}
	}
	st_call(w, "cuFileBatchIOSetUp of %ld at %#lx", nr, (long)to, 0, 0, 0, 0);
	st_status(w, cuFileBatchIOSetUp(to, nr), err, 0);
	*(err ? &w->tally.setup_err : &w->tally.setup_ok) += 1;
	if (!err) {
		memset(b, 0, sizeof(*b));
		b->h = h;
		b->capacity = nr;
	}
}

/* -- what comes of an entry -- */

static void give_back(struct batch *b, struct entry *e)
{
	if (e->claimed)
		md_claim(&e->c, -1);
	e->claimed = false;
	e->fate = FREE_ENTRY;
	b->waiting--;
}

static void finish(struct worker *w, struct entry *e)
{
	md_apply(w, &e->a, e->want.n);
	w->tally.batch_bytes[e->a.write] += e->want.n;
	if (e->claimed)
		md_check(w, &e->a, &e->c);
}

/* It is over, done or not: its bytes tell which. Its zones are free from here on. */
static void resolve(struct worker *w, struct entry *e)
{
	const struct ask *a = &e->a;
	const unsigned char *now, *old, *new;
	size_t n = e->want.n;

	e->fate = WAS_EITHER;
	if (n) {
		old = a->write ? a->file->want + a->rel : a->m->want + a->at;
		new = a->write ? a->m->want + a->at : a->file->want + a->rel;
		now = (unsigned char *)a->m->span + a->at;
		if (a->write) {
			now = w->scratch;
			if (pread(a->file->look, w->scratch, n, a->off) != (ssize_t)n)
				st_bad(w, "%s: pread: errno %d", a->file->path, errno);
		}
		if (memcmp(now, old, n))
			e->fate = WAS_DONE;
		else if (memcmp(now, new, n))
			e->fate = WAS_DROPPED;
		else
			w->tally.unsure = true;
		if (e->fate == WAS_DONE)
			finish(w, e);
	}
	if (e->claimed)
		md_claim(&e->c, -1);
	e->claimed = false;
}

static void resolve_all(struct worker *w, struct batch *b)
{
	unsigned int i;

	for (i = 0; i < MOST_ENTRIES; i++)
		if (b->e[i].fate == UNDER_WAY)
			resolve(w, &b->e[i]);
}

/* The event must be that of an entry, and say what the model says. */
static void event(struct worker *w, struct batch *b, const CUfileIOEvents_t *ev)
{
	struct entry *e = ev->cookie;
	bool dropped = ev->status == CUFILE_CANCELED, may_be_dropped, must_be_dropped;
	ssize_t ret = (ssize_t)ev->ret;
	int status;

	if (e < b->e || e >= b->e + MOST_ENTRIES || e->fate == FREE_ENTRY)
		st_bad(w, "an event of no entry: cookie %p, status %d", ev->cookie, ev->status);
	may_be_dropped = e->fate == WAS_DROPPED || e->fate == WAS_EITHER;
	must_be_dropped = e->fate == WAS_DROPPED;
	status = dropped ? CUFILE_CANCELED : e->want.err ? CUFILE_FAILED : CUFILE_COMPLETE;
	if ((int)ev->status != status || (dropped && !may_be_dropped) ||
	    (!dropped && must_be_dropped) ||
	    (!dropped && ret != (e->want.err ? -e->want.err : (ssize_t)e->want.n)) ||
	    (dropped && ret))
		st_bad(w, "entry %zd (%s of %zu at %lld): status %#x, %zd bytes; it must be %zu, error %d, fate %d",
		       e - b->e, e->a.write ? "write" : "read", e->a.size, (long long)e->a.off,
		       ev->status, ret, e->want.n, e->want.err, e->fate);
	if (e->fate == UNDER_WAY)
		finish(w, e);
	give_back(b, e);
}

/* -- submission -- */

/* An entry without bytes to move needs no zone, so a batch can be full of them. */
static bool idle_entry(struct worker *w, struct entry *e)
{
	struct ask *a = &e->a;

	memset(a, 0, sizeof(*a));
	a->write = st_one_in(w, 2);
	a->h = ob_handle(w, a->write, false);
	if (!a->h)
		return false;
	a->fh = a->h->fh;
	a->m = &w->mem[HOST_SHARED];
	a->base = a->m->span;
	return true;
}

static bool make_entry(struct worker *w, struct entry *e)
{
	memset(e, 0, sizeof(*e));
	if (st_one_in(w, 4) || !rq_pick(w, &e->a, &e->c, true)) {
		if (!idle_entry(w, e))
			return false;
	} else {
		if (e->a.size > ENTRY_BYTES)
			e->a.size = ENTRY_BYTES;
		e->claimed = true;
		rq_claim(w, &e->a, &e->c);
		rq_aim(w, &e->a, &e->c, true);
		if (st_one_in(w, 12))
			rq_spoil(w, &e->a, true);
		/* a write is inside of its file, see rq_spoil() */
		if (st_one_in(w, 40)) {
			e->a.m = NULL;
			e->a.base = NULL;
			e->a.buf_off = 0;
		}
		e->c.fixed = e->a.m && md_starts(w, e->a.m, (uintptr_t)e->a.base);
		if (e->c.fixed)
			e->c.m->fixed++;
	}
	e->bad_opcode = st_one_in(w, 50);
	if (e->bad_opcode)
		e->want = (struct answer){ .err = EINVAL };
	else
		e->want = md_predict(w, &e->a);
	return true;
}

static void put_params(struct entry *e, CUfileIOParams_t *p)
{
	memset(p, 0, sizeof(*p));
	p->mode = CUFILE_BATCH;
	p->u.batch.devPtr_base = e->a.base;
	p->u.batch.devPtr_offset = e->a.buf_off;
	p->u.batch.file_offset = e->a.off;
	p->u.batch.size = e->a.size;
	p->fh = e->a.fh;
	p->opcode = e->bad_opcode ? 7 : e->a.write ? CUFILE_WRITE : CUFILE_READ;
	p->cookie = e;
}

/* Wrong in a way that refuses the submission as a whole? */
static bool refused(const struct entry *e)
{
	if (e->a.off < 0 || e->a.buf_off < 0)
		return true;
	return !e->bad_opcode && e->a.h->mode == (e->a.write ? O_RDONLY : O_WRONLY);
}

static void drop_reported(struct batch *b)
{
	unsigned int i;

	for (i = 0; i < MOST_ENTRIES; i++)
		if (b->e[i].fate >= WAS_DONE)
			give_back(b, &b->e[i]);
	b->stale = false;
}

static void submit(struct worker *w, struct batch *b)
{
	CUfileIOParams_t p[MOST_ENTRIES];
	struct entry *e[MOST_ENTRIES];
	unsigned int n = 0, i, k, want = 1 + st_below(w, b->capacity);
	bool bad = false;

	if (st_one_in(w, 3))
		want = 1 + st_below(w, 3);
	/* places of the model: what a cancel left is still in some */
	for (i = 0; i < MOST_ENTRIES && n < want; i++) {
		if (b->e[i].fate != FREE_ENTRY)
			continue;
		if (!make_entry(w, &b->e[i]))
			break;
		e[n] = &b->e[i];
		put_params(e[n], &p[n]);
		bad |= refused(e[n]);
		n++;
	}
	if (!n)
		return;
	if (st_one_in(w, 30)) {
		k = st_below(w, n);
		bad = true;
		if (st_one_in(w, 2))
			p[k].mode = st_one_in(w, 2) ? 0 : 2;
		else
			p[k].fh = st_one_in(w, 3) ? NULL : ob_no_handle(w);
	}
	if (!bad && n > b->capacity - (b->stale ? 0 : b->waiting))
		bad = true;
	if (n > b->capacity)
		bad = true;
	st_call(w, "cuFileBatchIOSubmit %ld of %ld, %ld waiting, the first: size %ld at %ld, file %ld",
		n, b->capacity, b->waiting, e[0]->a.size, e[0]->a.off, e[0]->a.h->file - w->file);
	st_status(w, cuFileBatchIOSubmit(b->h, n, p, st_below(w, 2)),
		  bad ? CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR : 0, 0);
	*(bad ? &w->tally.submit_err : &w->tally.submit_ok) += 1;
	if (!bad && b->stale)
		drop_reported(b);
	for (i = 0; i < n; i++) {
		e[i]->fate = UNDER_WAY;
		b->waiting++;
		if (bad)
			give_back(b, e[i]);
	}
}

/* -- the rest -- */

static unsigned int under_way(const struct batch *b)
{
	unsigned int i, n = 0;

	for (i = 0; i < MOST_ENTRIES; i++)
		n += b->e[i].fate == UNDER_WAY;
	return n;
}

static void status(struct worker *w, struct batch *b, bool all)
{
	CUfileIOEvents_t ev[MOST_ENTRIES + 4];
	struct timespec t = { 0 }, *timeout = NULL;
	unsigned int room, least, nr, i, must;

	room = all ? MOST_ENTRIES : st_below(w, MOST_ENTRIES + 5);
	least = all ? b->waiting : st_below(w, 3) ? 0 : st_below(w, room + 1);
	if (!all && st_one_in(w, 2)) {
		timeout = &t;
		t.tv_nsec = st_one_in(w, 2) ? 0 : st_below(w, 300000);
	}
	nr = room;
	st_call(w, "cuFileBatchIOGetStatus, room %ld, at least %ld, timeout %ld, %ld waiting", room,
		least, timeout ? timeout->tv_nsec : -1, b->waiting, 0, 0);
	st_status(w, cuFileBatchIOGetStatus(b->h, least, &nr, ev, timeout), 0, 0);
	/* what a cancel ended is there at once */
	if (!under_way(b))
		must = room < b->waiting ? room : b->waiting;
	else
		must = timeout ? 0 : least < b->waiting ? least : b->waiting;
	if (nr > room || nr > b->waiting || nr < must)
		st_bad(w, "%u events of %u, room for %u, at least %u wanted", nr, b->waiting, room,
		       must);
	for (i = 0; i < nr; i++)
		event(w, b, &ev[i]);
}

static void cancel(struct worker *w, struct batch *b)
{
	st_call(w, "cuFileBatchIOCancel, %ld waiting", b->waiting, 0, 0, 0, 0, 0);
	st_status(w, cuFileBatchIOCancel(b->h), 0, 0);
	w->tally.cancel++;
	b->stale = true;
	resolve_all(w, b);
}

static void destroy(struct worker *w, struct batch *b)
{
	CUfileBatchHandle_t h = b->h;

	st_call(w, "cuFileBatchIODestroy, %ld waiting", b->waiting, 0, 0, 0, 0, 0);
	cuFileBatchIODestroy(h);
	st_result(w, 0, 0);
	w->tally.destroy_ok++;
	resolve_all(w, b);
	drop_reported(b);
	b->h = NULL;
}

/* Calls that are wrong in themselves: on a batch that is none, or with other arguments. */
static void wrong(struct worker *w, struct batch *b)
{
	CUfileBatchHandle_t none = st_one_in(w, 3) ? NULL : (void *)ob_no_handle(w);
	CUfileIOParams_t p = { .mode = CUFILE_BATCH };
	CUfileIOEvents_t ev[2];
	unsigned int nr = 2, way = st_below(w, 10);
	CUfileError_t e = { 0 };
	int err = 0;

	st_call(w, "a batch call, wrong in way %ld", way, 0, 0, 0, 0, 0);
	switch (way) {
	case 0:
		e = cuFileBatchIOSubmit(none, 1, &p, 0);
		err = CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
		break;
	case 1:
		e = cuFileBatchIOGetStatus(none, 0, &nr, ev, NULL);
		err = CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR;
		break;
	case 2:
		e = cuFileBatchIOCancel(none);
		break;
	case 3:
		cuFileBatchIODestroy(none);
		w->tally.destroy_err++;
		break;
	case 4:
		e = cuFileBatchIOSubmit(b->h, 0, &p, 0);
		err = CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
		w->tally.submit_err++;
		break;
	case 5:
		e = cuFileBatchIOSubmit(b->h, 1, NULL, 0);
		err = CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
		w->tally.submit_err++;
		break;
	case 6:
		e = cuFileBatchIOSubmit(b->h, b->capacity + 1, &p, 0);
		err = CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
		w->tally.submit_err++;
		break;
	case 7:
		e = cuFileBatchIOGetStatus(b->h, 0, NULL, ev, NULL);
		err = CU_FILE_INVALID_VALUE;
		break;
	case 8:
		e = cuFileBatchIOGetStatus(b->h, 3, &nr, ev, NULL);
		err = CU_FILE_INVALID_VALUE;
		break;
	default:
		e = cuFileBatchIOGetStatus(b->h, 0, &nr, NULL, NULL);
		err = CU_FILE_INVALID_VALUE;
	}
	st_status(w, e, err, 0);
}

void bt_one(struct worker *w)
{
	struct batch *b = &w->batch[st_below(w, BATCHES)];
	unsigned int dice = st_below(w, 100);

	if (!b->h)
		set_up(w, b);
	else if (dice < 40)
		submit(w, b);
	else if (dice < 82)
		status(w, b, false);
	else if (dice < 88)
		cancel(w, b);
	else if (dice < 94)
		wrong(w, b);
	else
		destroy(w, b);
}

/* What is under way is over; some are left for the close. */
void bt_end(struct worker *w)
{
	struct batch *b;
	unsigned int i;

	for (i = 0; i < BATCHES; i++) {
		b = &w->batch[i];
		if (!b->h)
			continue;
		if (st_one_in(w, 3)) {
			destroy(w, b);
			continue;
		}
		status(w, b, true);
		if (b->waiting)
			st_bad(w, "%u entries have no event", b->waiting);
		b->h = NULL;
	}
}
