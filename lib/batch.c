// SPDX-License-Identifier: MIT
/* batch.c - cuFileBatchIO*: many requests at once, on the library's threads. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "cufio-batch"
#include "batch.h"
#include "driver.h"
#include "errmap.h"
#include "handles.h"
#include "log.h"
#include "os.h"
#include "rings.h"
#include "rw.h"
#include "stats.h"
#include "workers.h"

/*
 * An entry's way:
 *
 *	FREE --submit--> QUEUED --a thread takes it--> RUNNING --> DONE --reported--> FREE
 *
 * A cancel begins a new epoch of the batch; an entry of an older one is not performed when a
 * thread takes it, and ends as CANCELED: its job is the pool's until then. DONE entries stand
 * on the list `done` in the order of completion.
 *
 * Small entries that may go by the GPU's pages in the process are a group, one job: what can go
 * so is RUNNING in one ring, begun and waited for by one system call. What cannot, or did not, has
 * a job of its own after that, and a thread takes it as if it had just been submitted.
 */
enum entry_state { FREE, QUEUED, RUNNING, DONE };

struct entry {
	struct job job;
	struct batch *batch;
	enum entry_state state;
	struct entry *next;	/* of `done` or `free` */

	enum ogds_op op;
	bool bad_opcode;
	struct file *file;	/* referenced until DONE */
	uint64_t base;
	size_t size;
	int64_t off, buf_off;
	CUfileIOEvents_t event;	/* when DONE */
	unsigned int epoch;	/* of the batch, when it was submitted */
};

/*
 * lock guards all that follows it. `changed` is signalled when an entry becomes DONE. The
 * batch is freed with its last reference: the table's, and one for each call that is in it.
 */
struct batch {
	atomic_uint refs;
	unsigned int capacity;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct entry *free, *done, **done_last;
	unsigned int nfree, ndone;	/* the rest is QUEUED or RUNNING */
	unsigned int epoch;	/* a cancel ends it: entries of an older one are dropped */
	bool stale;		/* what is DONE may be dropped by the next submission */
	/* since nothing was busy: when that was, what was moved, whether all went well */
	uint64_t began, read_bytes, written_bytes;
	bool failed;
	struct entry entry[];
};

static void hold(void *object)
{
	atomic_fetch_add(&((struct batch *)object)->refs, 1);
}

static struct handles batches = HANDLES_INIT(hold);

static void put(struct batch *b)
{
	if (atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->changed);
	free(b);
}

/* b->lock held */
static unsigned int busy(const struct batch *b)
{
	return b->capacity - b->nfree - b->ndone;
}

/* b->lock held */
static void give_free(struct batch *b, struct entry *e)
{
	e->state = FREE;
	e->next = b->free;
	b->free = e;
	b->nfree++;
}

/* b->lock held. The oldest of what is done. */
static struct entry *take_done(struct batch *b)
{
	struct entry *e = b->done;

	b->done = e->next;
	if (!b->done)
		b->done_last = &b->done;
	b->ndone--;
	return e;
}

/* -- running -- */

/* Inside driver_enter(). */
static ssize_t perform(struct entry *e)
{
	if (e->bad_opcode)
		return -EINVAL;
	return rw_run(e->op, e->file, e->base, e->size, e->off, e->buf_off, false);
}

/* b->lock held. The entry is over with r. */
static void set_done(struct batch *b, struct entry *e, ssize_t r, bool dropped)
{
	e->state = DONE;
	e->event.status = dropped ? CUFILE_CANCELED : r < 0 ? CUFILE_FAILED : CUFILE_COMPLETE;
	e->event.ret = r < 0 ? (size_t)(ssize_t)-errmap_errno(r) : (size_t)r;
	e->next = NULL;
	*b->done_last = e;
	b->done_last = &e->next;
	b->ndone++;
	b->failed |= r < 0;
	if (r > 0 && e->op == OGDS_OP_READ)
		b->read_bytes += r;
	else if (r > 0)
		b->written_bytes += r;
}

/* The entry is over with r, and no reference of it is left. */
static void over(struct entry *e, ssize_t r, bool dropped, bool counted)
{
	struct batch *b = e->batch;

	file_put(e->file);
	pthread_mutex_lock(&b->lock);
	set_done(b, e, r, dropped);
	if (!busy(b)) {
		/* before anybody can see that it is over */
		if (b->began && counted)
			stats_batch_complete(b->read_bytes, b->written_bytes,
					     os->now_ns() - b->began, !b->failed);
		b->began = b->read_bytes = b->written_bytes = 0;
		b->failed = false;
	}
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

/* False: a cancel came first. */
static bool start(struct entry *e)
{
	bool ok;

	pthread_mutex_lock(&e->batch->lock);
	ok = e->epoch == e->batch->epoch;
	e->state = RUNNING;
	pthread_mutex_unlock(&e->batch->lock);
	return ok;
}

static void run(struct job *job)
{
	struct entry *e = (struct entry *)job;
	struct batch *b = e->batch;
	bool dropped = !start(e);
	ssize_t r = 0;
	int closing;

	closing = driver_enter_open(ERR(DRIVER_CLOSING), ERR(DRIVER_CLOSING));
	if (!dropped)
		r = closing ? closing : perform(e);
	over(e, r, dropped, !closing);
	if (!closing)
		driver_leave();
	put(b);
}

/* A job of its own; where no thread can be had this one does it. */
static void queue(struct entry *e)
{
	if (!workers_submit(&e->job))
		run(&e->job);
}

/* -- groups -- */

struct member {
	struct entry *entry;	/* NULL: it is over */
	struct rw_pages pages;
};

/* Of the submitting thread, then of the job, which frees it. */
struct group {
	struct job job;
	unsigned int n, room;
	struct member member[];
};

/* What of the group can go by pages goes, in one ring. Inside driver_enter(). */
static void ride(struct group *g, struct os_ring *ring)
{
	unsigned int i, added = 0, begun;
	struct member *m;
	struct batch *b;
	ssize_t r;

	for (i = 0; i < g->n; i++) {
		struct entry *e = g->member[i].entry;

		m = &g->member[added];
		/* those that are added stand in front, in the order in which they are begun */
		if (!start(e) || !rw_pages_begin(&m->pages, e->op, e->file, e->base, e->size,
						 e->off, e->buf_off))
			continue;
		m->pages.io.tag = m;
		if (os->ring_add(ring, &m->pages.io)) {
			rw_pages_end(&m->pages, -EBUSY);
			break;
		}
		g->member[i].entry = m->entry;
		m->entry = e;
		added++;
	}
	begun = added ? os->ring_go(ring) : 0;
	for (i = begun; i < added; i++)
		rw_pages_end(&g->member[i].pages, -EBUSY);
	while (begun--) {
		m = os->ring_next(ring, &r);
		if (!rw_pages_end(&m->pages, r))
			continue;
		b = m->entry->batch;
		over(m->entry, r, false, true);
		m->entry = NULL;
		put(b);
	}
}

static void run_group(struct job *job)
{
	struct group *g = (struct group *)job;
	struct os_ring *ring;
	unsigned int i;

	if (!driver_enter_open(-1, -1)) {
		ring = ring_take_deep();
		if (ring) {
			ride(g, ring);
			ring_give_deep(ring);
		}
		driver_leave();
	}
	for (i = 0; i < g->n; i++)
		if (g->member[i].entry)
			queue(g->member[i].entry);
	free(g);
}

static void send_group(struct group *g)
{
	if (g->n > 1 && workers_submit(&g->job))
		return;
	while (g->n--)
		queue(g->member[g->n].entry);
	free(g);
}

/* Takes the entry when it is one for a group; *g is the one that fills, or NULL. left: entries. */
static bool join(struct group **g, struct entry *e, unsigned int left)
{
	unsigned int room = left < RING_DEEP ? left : RING_DEEP;

	if (e->bad_opcode || e->size > RW_PAGES_MOST || !rw_by_pages(e->file))
		return false;
	if (!*g) {
		*g = malloc(sizeof(**g) + room * sizeof((*g)->member[0]));
		if (!*g)
			return false;
		(*g)->job.run = run_group;
		(*g)->n = 0;
		(*g)->room = room;
	}
	(*g)->member[(*g)->n++].entry = e;
	if ((*g)->n == (*g)->room) {
		send_group(*g);
		*g = NULL;
	}
	return true;
}

/* -- calls -- */

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *handle, unsigned int nr)
{
	pthread_condattr_t attr;
	struct batch *b = NULL;
	unsigned int i;
	size_t most;
	int r;

	r = driver_enter_if_open();
	if (r < 0)
		return errmap_status(r);
	if (!r) {
		driver_log_closed("cuFileBatchIOSetUp: the library is not open: open it, or register a file first");
		return errmap_status(ERR(INVALID_VALUE));
	}
	r = 0;
	most = driver_config()->io_batchsize;
	if (!handle || !nr || nr > most) {
		log_error("cuFileBatchIOSetUp: %u entries%s: from 1 to %zu; raise properties.io_batchsize for more",
			  nr, handle ? "" : " and no handle", most);
		r = ERR(INVALID_VALUE);
		goto out;
	}
	b = calloc(1, sizeof(*b) + nr * sizeof(b->entry[0]));
	if (!b) {
		r = ERR(NOMEM_ERROR);
		goto out;
	}
	atomic_init(&b->refs, 1);
	b->capacity = nr;
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->changed, &attr);
	pthread_condattr_destroy(&attr);
	b->done_last = &b->done;
	for (i = nr; i-- > 0;) {
		b->entry[i].batch = b;
		b->entry[i].job.run = run;
		give_free(b, &b->entry[i]);
	}
	r = handles_put_in(&batches, b, handle);
	if (r)
		put(b);
out:
	stats_count(STATS_BATCH_SETUP, !r);
	driver_leave();
	return errmap_status(r);
}

/* Enters and finds the batch; an error: neither. */
static int enter_batch(const char *call, CUfileBatchHandle_t handle, int none, struct batch **b)
{
	int r = driver_enter();

	if (r)
		return r;
	*b = handle ? handles_get(&batches, handle) : NULL;
	if (*b)
		return 0;
	log_error("%s: %p is no batch: set one up with cuFileBatchIOSetUp", call, handle);
	driver_leave();
	return none;
}

/* What is wrong with an entry, before it is queued; NULL: nothing, and *file is referenced. */
static const char *entry_wrong(const CUfileIOParams_t *p, struct file **file)
{
	const char *wrong = NULL;
	int mode;

	*file = NULL;
	if (p->mode != CUFILE_BATCH)
		return "its mode is not CUFILE_BATCH; set it";
	*file = file_get(p->fh);
	if (!*file)
		return "its handle is not registered; register the file";
	mode = (*file)->flags & O_ACCMODE;
	if (p->u.batch.file_offset < 0)
		wrong = "its file offset is negative; give 0 or more";
	else if (p->u.batch.devPtr_offset < 0)
		wrong = "its buffer offset is negative; give 0 or more";
	else if (p->opcode == CUFILE_READ && mode == O_WRONLY)
		wrong = "it reads a file that is open for writing only; open it with O_RDWR";
	else if (p->opcode == CUFILE_WRITE && mode == O_RDONLY)
		wrong = "it writes a file that is open for reading only; open it with O_RDWR";
	if (wrong)
		file_put(*file);
	return wrong;
}

/* All files of the entries, referenced into files[]; -1: one entry is wrong. */
static int get_files(struct file **files, const CUfileIOParams_t *p, unsigned int nr)
{
	const char *wrong;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		wrong = entry_wrong(&p[i], &files[i]);
		if (!wrong)
			continue;
		log_error("cuFileBatchIOSubmit: entry %u: %s: nothing is queued", i, wrong);
		while (i--)
			file_put(files[i]);
		return -1;
	}
	return 0;
}

static void fill_entry(struct entry *e, const CUfileIOParams_t *p, struct file *file)
{
	e->op = p->opcode == CUFILE_WRITE ? OGDS_OP_WRITE : OGDS_OP_READ;
	e->bad_opcode = p->opcode != CUFILE_READ && p->opcode != CUFILE_WRITE;
	e->file = file;
	e->base = (uintptr_t)p->u.batch.devPtr_base;
	e->size = p->u.batch.size;
	e->off = p->u.batch.file_offset;
	e->buf_off = p->u.batch.devPtr_offset;
	memset(&e->event, 0, sizeof(e->event));
	e->event.cookie = p->cookie;
}

/* b->lock held. After a cancel nobody asked for the rest: it makes room. */
static void drop_stale(struct batch *b)
{
	if (!b->stale)
		return;
	while (b->ndone)
		give_free(b, take_done(b));
	b->stale = false;
}

/* b->lock held. Entries for all of them, linked by `next`; NULL with *err set. */
static struct entry *reserve(struct batch *b, const CUfileIOParams_t *p, struct file **files,
			     unsigned int nr, int *err)
{
	struct entry *first = NULL, **at = &first, *e;
	unsigned int i;

	drop_stale(b);
	if (nr > b->nfree) {
		*err = ERR(INTERNAL_BATCH_SUBMIT_ERROR);
		log_error("cuFileBatchIOSubmit: %u entries, but %u of %u are free: ask for events first, or set up a larger batch",
			  nr, b->nfree, b->capacity);
		return NULL;
	}
	for (i = 0; i < nr; i++) {
		e = b->free;
		b->free = e->next;
		b->nfree--;
		fill_entry(e, &p[i], files[i]);
		e->state = QUEUED;
		e->epoch = b->epoch;
		e->next = NULL;
		*at = e;
		at = &e->next;
	}
	return first;
}

static int submit(struct batch *b, unsigned int nr, const CUfileIOParams_t *p)
{
	struct file **files = malloc(nr * sizeof(files[0]));
	struct entry *e, *next;
	struct group *g = NULL;
	unsigned int left;
	int r = 0;

	if (!files)
		return ERR(NOMEM_ERROR);
	if (get_files(files, p, nr)) {
		free(files);
		return ERR(INTERNAL_BATCH_SUBMIT_ERROR);
	}
	pthread_mutex_lock(&b->lock);
	if (!busy(b))
		b->began = stats_begin();
	e = reserve(b, p, files, nr, &r);
	pthread_mutex_unlock(&b->lock);
	if (!e)
		while (nr--)
			file_put(files[nr]);
	for (left = nr; e; e = next, left--) {
		next = e->next;
		hold(b);
		if (!join(&g, e, left))
			queue(e);
	}
	if (g)
		send_group(g);
	free(files);
	return r;
}

CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t handle, unsigned int nr,
				  CUfileIOParams_t *params, unsigned int flags)
{
	uint64_t began = stats_begin();
	struct batch *b;
	int r;

	r = enter_batch("cuFileBatchIOSubmit", handle, ERR(INTERNAL_BATCH_SUBMIT_ERROR), &b);
	if (r)
		return errmap_status(r);
	if (flags)
		log_info("cuFileBatchIOSubmit: flags 0x%x are passed over: none has a meaning", flags);
	if (!nr || nr > b->capacity || !params) {
		log_error("cuFileBatchIOSubmit: %u entries%s: give 1 to %u; nothing is queued", nr,
			  params ? "" : " at NULL", b->capacity);
		r = ERR(INTERNAL_BATCH_SUBMIT_ERROR);
	} else {
		r = submit(b, nr, params);
	}
	if (began)
		stats_batch_submit(nr, os->now_ns() - began, !r);
	put(b);
	driver_leave();
	return errmap_status(r);
}

/* When the caller's patience ends, on the clock of `changed`; what is no time is no patience. */
static struct timespec deadline(const struct timespec *timeout)
{
	struct timespec t;
	long nsec = timeout->tv_nsec;

	clock_gettime(CLOCK_MONOTONIC, &t);
	/* programs pass other things than a timespec here: an odd part of a second is left out */
	if (nsec < 0 || nsec >= 1000000000)
		nsec = 0;
	if (timeout->tv_sec > 0)
		t.tv_sec += timeout->tv_sec < 1000000000 ? timeout->tv_sec : 1000000000;
	t.tv_nsec += nsec;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t handle, unsigned int min_nr,
				     unsigned int *nr, CUfileIOEvents_t *events,
				     struct timespec *timeout)
{
	struct timespec until;
	struct batch *b;
	struct entry *e;
	unsigned int n = 0;
	int r;

	r = enter_batch("cuFileBatchIOGetStatus", handle, ERR(INTERNAL_BATCH_GETSTATUS_ERROR), &b);
	if (r)
		return errmap_status(r);
	if (!nr || min_nr > *nr || (*nr && !events)) {
		log_error("cuFileBatchIOGetStatus: room for %u events, at least %u wanted: give room for as many",
			  nr ? *nr : 0, min_nr);
		r = ERR(INVALID_VALUE);
		goto out;
	}
	if (timeout)
		until = deadline(timeout);
	pthread_mutex_lock(&b->lock);
	/* more than there are would never come */
	while (b->ndone < min_nr && busy(b)) {
		if (!timeout)
			pthread_cond_wait(&b->changed, &b->lock);
		else if (pthread_cond_timedwait(&b->changed, &b->lock, &until) == ETIMEDOUT)
			break;
	}
	while (n < *nr && b->ndone) {
		e = take_done(b);
		events[n++] = e->event;
		give_free(b, e);
	}
	pthread_mutex_unlock(&b->lock);
	*nr = n;
out:
	put(b);
	driver_leave();
	return errmap_status(r);
}

/* Drops what has not begun, waits for the rest. */
static void cancel(struct batch *b)
{
	pthread_mutex_lock(&b->lock);
	b->epoch++;
	while (busy(b))
		pthread_cond_wait(&b->changed, &b->lock);
	b->stale = true;
	pthread_mutex_unlock(&b->lock);
}

CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t handle)
{
	struct batch *b;
	int r;

	/* what is no batch has nothing that could go on: said in the log, and no error */
	r = enter_batch("cuFileBatchIOCancel", handle, 1, &b);
	if (r)
		return errmap_status(r);
	cancel(b);
	stats_count(STATS_BATCH_CANCEL, true);
	put(b);
	driver_leave();
	return errmap_status(0);
}

void cuFileBatchIODestroy(CUfileBatchHandle_t handle)
{
	struct batch *b;

	if (driver_enter_open(-1, -1))
		return;
	b = handle ? handles_take_out(&batches, handle) : NULL;
	stats_count(STATS_BATCH_DESTROY, b);
	if (b) {
		cancel(b);
		put(b);
	} else {
		log_error("cuFileBatchIODestroy: %p is no batch: destroy each once", handle);
	}
	driver_leave();
}

void batches_release(void)
{
	struct batch *b;

	while ((b = handles_drain(&batches)))
		put(b);
}
