// SPDX-License-Identifier: MIT
/* bar.c - GPU memory as the CPU sees it through BAR1. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LOG_MODULE "cufio-bar"
#include "bar.h"
#include "cpu.h"
#include "device.h"
#include "errmap.h"
#include "facts.h"
#include "lane.h"
#include "log.h"
#include "object.h"
#include "os.h"
#include "rm/rm.h"

/* BAR1 of at least this many bytes takes whole ranges; a smaller one takes windows. */
#define WHOLE_BAR1 ((uint64_t)4 << 30)
#define WINDOW ((size_t)8 << 20)
/* What others need of BAR1: the driver's own mappings, other processes. */
#define SPARE(bar1) ((bar1) / 4)

#define PROOF_BYTES 64

enum state { EMPTY, BUSY, READY };

struct window {
	_Atomic(char *) at;	/* of its first byte, when READY; else NULL */
	enum state state;
	unsigned int users;	/* of a bar that is not `fixed` */
	uint64_t used;		/* bar_gpu.clock of the last use */
	struct rm_view view;
};

/* Final but for refs, off and the windows. */
struct bar {
	atomic_uint refs;
	struct device *dev;
	void *ctx;
	uint64_t va;
	size_t len;
	uint32_t object;	/* our name of the driver's memory */
	uint64_t off;		/* of va in it */
	atomic_uint reason;	/* why it is off, or REASON_NONE */
	bool fixed;		/* one window, which stays */
	struct bar *next;	/* in bar_gpu.windows */
	unsigned int n;
	size_t bytes;		/* of a window; the last one may have fewer */
	struct window w[];
};

void bar_gpu_init(struct bar_gpu *g, struct device *dev)
{
	pthread_mutex_init(&g->lock, NULL);
	g->dev = dev;
}

static void off(struct bar_gpu *g, unsigned int reason, const char *step, int r)
{
	const struct facts_reason_text *t = facts_reason(reason);

	atomic_store(&g->reason, reason);
	/* a machine without the driver's files is nothing to be told of unasked */
	log_at(reason == REASON_BAR_NODES ? LOG_INFO : LOG_NOTICE,
	       "GPU %s: no stores through BAR1: %s: %s%s%d (%s: %s; %s)", g->dev->pci, step,
		   r < 0 ? log_errno(r) : "the driver's status ", r < 0 ? ", " : "", r, t->id,
		   t->text, t->remedy);
}

/* Connects at the first use. 0, or -EBUSY (another thread does), or -ENODEV with a reason. */
static int open_gpu(struct bar_gpu *g)
{
	const char *step = "";
	struct rm *rm = NULL;
	uint64_t bar1 = 0;
	int r;

	if (atomic_load(&g->reason))
		return -ENODEV;
	pthread_mutex_lock(&g->lock);
	r = g->rm ? 0 : g->opening ? -EBUSY : 1;
	if (r == 1)
		g->opening = true;
	pthread_mutex_unlock(&g->lock);
	if (r <= 0)
		return r;

	r = rm_open(g->dev->pci, &rm, &step);
	if (!r && (facts_pci_bar1(os_root, g->dev->pci, &bar1) || !bar1)) {
		step = "size of BAR1 in /sys";
		rm_close(rm);
		rm = NULL;
		r = -ENODEV;
	}
	if (r)
		off(g, r < 0 ? REASON_BAR_NODES : REASON_BAR_REFUSED, step, r);
	pthread_mutex_lock(&g->lock);
	g->opening = false;
	g->rm = rm;
	g->room = bar1 - SPARE(bar1);
	pthread_mutex_unlock(&g->lock);
	return r ? -ENODEV : 0;
}

/* -- one range -- */

/* This memory's own affair: other memory may have a bar. */
static unsigned int refused(const struct bar_gpu *g, uint64_t va, unsigned int reason,
			    const char *step, const char *why)
{
	const struct facts_reason_text *t = facts_reason(reason);

	log_info("GPU %s: 0x%llx: %s: %s: not seen through BAR1 (%s: %s; %s)", g->dev->pci,
		 (unsigned long long)va, step, why, t->id, t->text, t->remedy);
	return reason;
}

/* Our name of the driver's object that has all of va .. va + len: REASON_NONE, or why not. */
static unsigned int name_object(struct bar_gpu *g, const struct gpu_ptr *mem, uint64_t va,
				size_t len, struct object *o, uint32_t *name)
{
	int r = object_find(mem, o);
	const char *step = "";
	char why[32];

	if (!r && !object_covers(o, va, len))
		r = -E2BIG;
	if (r == -EPROTO) {
		off(g, REASON_BAR_REFUSED, "contents of an IPC handle", r);
		return REASON_BAR_REFUSED;
	}
	if (r == -ENOENT)
		return refused(g, va, REASON_BAR_NO_HANDLE,
			       mem->mapped ? "export as a descriptor" : "cuIpcGetMemHandle",
			       gpu->error(o->result));
	if (!r)
		r = object_name(g->rm, o, name, &step);
	object_end(o);
	if (r == -E2BIG)
		return refused(g, va, REASON_BAR_SEVERAL, "the driver's object", "not one");
	if (!r)
		return REASON_NONE;
	snprintf(why, sizeof(why), "%d", r);
	return refused(g, va, REASON_BAR_REFUSED, step, why);
}

struct bar *bar_new(struct device *dev, const struct gpu_ptr *mem, uint64_t va, size_t len,
		    unsigned int *reason)
{
	struct bar_gpu *g = &dev->bar;
	struct object o;
	size_t bytes;
	struct bar *b;
	bool fixed;
	int r;

	r = open_gpu(g);
	*reason = r == -EBUSY ? REASON_NONE : atomic_load(&g->reason);
	if (r)
		return NULL;
	fixed = g->room >= WHOLE_BAR1 - SPARE(WHOLE_BAR1);
	bytes = fixed ? len : WINDOW;
	b = calloc(1, sizeof(*b) + (len + bytes - 1) / bytes * sizeof(b->w[0]));
	if (!b)
		return NULL;
	*reason = name_object(g, mem, va, len, &o, &b->object);
	if (*reason) {
		free(b);
		return NULL;
	}
	atomic_init(&b->refs, 1);
	b->dev = dev;
	b->ctx = mem->ctx;
	b->va = va;
	b->len = len;
	b->off = va - o.va;
	b->fixed = fixed;
	b->bytes = bytes;
	b->n = (len + bytes - 1) / bytes;
	if (!fixed) {
		pthread_mutex_lock(&g->lock);
		b->next = g->windows;
		g->windows = b;
		pthread_mutex_unlock(&g->lock);
	}
	return b;
}

void bar_hold(struct bar *b)
{
	atomic_fetch_add(&b->refs, 1);
}

bool bar_holds(const struct bar *b, uint64_t va, size_t len)
{
	return va >= b->va && va - b->va <= b->len && len <= b->len - (va - b->va);
}

static size_t window_len(const struct bar *b, unsigned int i)
{
	size_t from = (size_t)i * b->bytes;

	return b->len - from < b->bytes ? b->len - from : b->bytes;
}

void bar_put(struct bar *b)
{
	struct bar_gpu *g = &b->dev->bar;
	uint64_t bytes = 0;
	struct bar **at;
	unsigned int i;

	if (atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	if (!b->fixed) {
		pthread_mutex_lock(&g->lock);
		for (at = &g->windows; *at != b; at = &(*at)->next)
			;
		*at = b->next;
		pthread_mutex_unlock(&g->lock);
	}
	for (i = 0; i < b->n; i++)
		if (b->w[i].state == READY) {
			rm_unview(&b->w[i].view);
			bytes += window_len(b, i);
		}
	rm_drop(g->rm, b->object);
	pthread_mutex_lock(&g->lock);
	g->used -= bytes;
	pthread_mutex_unlock(&g->lock);
	free(b);
}

/* -- proof -- */

void bar_fence(void)
{
	cpu_store_fence();
}

/* One place: what CUDA wrote must stand in the view, in the CPU's eyes. 1: it does not. */
static int prove_at(struct gpu_stream *s, uint64_t va, const volatile unsigned char *at, size_t n)
{
	unsigned char old[PROOF_BYTES], new[PROOF_BYTES];
	size_t i;
	int r, bad = 0;

	if (getrandom(new, n, 0) != (ssize_t)n)
		return -EIO;
	r = gpu->to_host(s, old, va, n);
	if (!r)
		r = gpu->sync(s);
	if (!r)
		r = gpu->to_gpu(s, va, new, n);
	if (!r)
		r = gpu->sync(s);
	if (r)
		return err_cuda(r);
	for (i = 0; i < n; i++)
		bad |= at[i] != new[i];
	r = gpu->to_gpu(s, va, old, n);
	if (!r)
		r = gpu->sync(s);
	return r ? err_cuda(r) : bad;
}

/* 0: the view shows the memory; 1: it does not; or an error: nobody knows. */
static int prove(struct bar *b, uint64_t first_va, uint64_t end_va, uint64_t view_va, void *view)
{
	size_t n = end_va - first_va < PROOF_BYTES ? end_va - first_va : PROOF_BYTES;
	const unsigned char *at = view;
	struct lane *l;
	int r, err;

	l = lane_take(b->ctx, b->ctx == b->dev->ctx, true, &err);
	if (!l)
		return err;
	r = prove_at(&l->s, first_va, at + (first_va - view_va), n);
	if (!r && end_va - first_va > n)
		r = prove_at(&l->s, end_va - n, at + (end_va - n - view_va), n);
	lane_give(l);
	return r;
}

/* -- windows -- */

/* bar_gpu.lock held. The window used longest ago, that nobody uses; NULL: none. */
static struct window *oldest(struct bar_gpu *g, struct bar **of)
{
	struct window *best = NULL;
	unsigned int i;
	struct bar *b;

	for (b = g->windows; b; b = b->next)
		for (i = 0; i < b->n; i++) {
			struct window *w = &b->w[i];

			if (w->state != READY || w->users || (best && best->used <= w->used))
				continue;
			best = w;
			*of = b;
		}
	return best;
}

/* bar_gpu.lock held; given up meanwhile. 0: `bytes` are counted as used; -EBUSY: no room. */
static int make_room(struct bar_gpu *g, uint64_t bytes)
{
	struct rm_view gone;
	struct window *w;
	struct bar *of;

	while (g->room - g->used < bytes) {
		w = oldest(g, &of);
		if (!w)
			return -EBUSY;
		gone = w->view;
		w->state = EMPTY;
		atomic_store(&w->at, NULL);
		g->used -= window_len(of, w - of->w);
		pthread_mutex_unlock(&g->lock);
		rm_unview(&gone);
		pthread_mutex_lock(&g->lock);
	}
	g->used += bytes;
	return 0;
}

/* The window is BUSY and ours. */
static int map_and_prove(struct bar *b, unsigned int i, uint64_t first_va, uint64_t end_va,
			 unsigned int *reason)
{
	uint64_t from = (uint64_t)i * b->bytes, view_va = b->va + from;
	size_t len = window_len(b, i);
	struct window *w = &b->w[i];
	const char *step = "";
	int r;

	r = rm_view(b->dev->bar.rm, b->object, b->off + from, len, &w->view, &step);
	if (r) {
		*reason = REASON_BAR_REFUSED;
		log_notice("GPU %s: %zu bytes at 0x%llx: %s: %s%d: not seen through BAR1", b->dev->pci,
			   len, (unsigned long long)view_va, step, r < 0 ? "" : "status ", r);
		return r < 0 ? r : -EIO;
	}
	/* of the request only what lies in this window */
	if (first_va < view_va)
		first_va = view_va;
	if (end_va > view_va + len)
		end_va = view_va + len;
	r = prove(b, first_va, end_va, view_va, w->view.at);
	if (!r)
		return 0;
	rm_unview(&w->view);
	if (r < 0)
		return r;
	*reason = REASON_BAR_PROOF;
	off(&b->dev->bar, *reason, "proof of a mapping", -EBADMSG);
	return -EBADMSG;
}

static int fill_window(struct bar *b, unsigned int i, uint64_t first_va, uint64_t end_va,
		       unsigned int *reason)
{
	struct bar_gpu *g = &b->dev->bar;
	struct window *w = &b->w[i];
	int r = 0;

	pthread_mutex_lock(&g->lock);
	if (w->state == BUSY)
		r = -EBUSY;
	else if (w->state == EMPTY) {
		w->state = BUSY;
		r = make_room(g, window_len(b, i));
		if (r) {
			w->state = EMPTY;
			if (b->fixed) {
				*reason = REASON_BAR_FULL;
				r = -ENOSPC;
			}
		} else {
			pthread_mutex_unlock(&g->lock);
			r = map_and_prove(b, i, first_va, end_va, reason);
			pthread_mutex_lock(&g->lock);
			if (r) {
				w->state = EMPTY;
				g->used -= window_len(b, i);
			} else {
				w->state = READY;
				atomic_store(&w->at, w->view.at);
			}
		}
	}
	if (!r && !b->fixed) {
		w->users++;
		w->used = ++g->clock;
	}
	pthread_mutex_unlock(&g->lock);
	if (r && r != -EBUSY && *reason)
		atomic_store(&b->reason, *reason);
	return r;
}

int bar_use(struct bar *b, uint64_t va, size_t len, uint64_t first_va, uint64_t end_va,
	    struct bar_use *u, unsigned int *reason)
{
	unsigned int i = (va - b->va) / b->bytes;
	size_t in = (va - b->va) - (size_t)i * b->bytes;
	char *at = b->fixed ? atomic_load_explicit(&b->w[i].at, memory_order_acquire) : NULL;
	int r;

	*reason = atomic_load_explicit(&b->reason, memory_order_relaxed);
	if (*reason)
		return -ENODEV;
	if (!at) {
		*reason = atomic_load(&b->dev->bar.reason);
		if (*reason)
			return -ENODEV;
		r = fill_window(b, i, first_va, end_va, reason);
		if (r)
			return r;
		at = b->w[i].view.at;
	}
	u->bar = b;
	u->window = i;
	u->at = at + in;
	u->len = window_len(b, i) - in;
	if (u->len > len)
		u->len = len;
	return 0;
}

bool bar_ready(struct bar *b)
{
	return b->fixed && atomic_load_explicit(&b->w[0].at, memory_order_acquire);
}

void bar_done(struct bar_use *u)
{
	struct bar *b = u->bar;

	if (b->fixed)
		return;
	pthread_mutex_lock(&b->dev->bar.lock);
	b->w[u->window].users--;
	pthread_mutex_unlock(&b->dev->bar.lock);
}
