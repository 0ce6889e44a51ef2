// SPDX-License-Identifier: MIT
/* driver.c - cuFileDriver*: open, close, properties and their setters. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_MODULE "cufio-drv"
#include "batch.h"
#include "buffer.h"
#include "crew.h"
#include "device.h"
#include "driver.h"
#include "errmap.h"
#include "file.h"
#include "gpu.h"
#include "lane.h"
#include "log.h"
#include "nvfs.h"
#include "opengds.h"
#include "p2p.h"
#include "param.h"
#include "rings.h"
#include "rw.h"
#include "shards.h"
#include "slots.h"
#include "stats.h"
#include "stream.h"
#include "workers.h"

#define API_VERSION 1180
#define KEPT_MESSAGES 64

enum state { CLOSED, OPEN, CLOSING, FORKED };

/* One counter per group of threads, a cache line each: who is inside. */
#define INSIDE_SLOTS 64
static struct {
	_Alignas(64) atomic_long n;
} inside[INSIDE_SLOTS];

/*
 * lock: held over all of an open and a close; guards uses, ever, configured and what the
 * setters keep.
 * state: written under the lock (but FORKED), read by anybody.
 */
static struct {
	pthread_mutex_t lock;
	atomic_int state;
	long uses;
	bool ever;		/* was open once */
	bool hooked;		/* the fork handler is installed */
	bool configured;	/* parameters cannot be set though it is closed */
	struct config cfg;

	/* set before an open, in force from the next one: cuFileDriverSet*; 0: not set */
	size_t set_direct_kb, set_cache_kb, set_pinned_kb;
	bool set_poll, poll;
	size_t poll_kb;
} drv = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_long *my_slot(void)
{
	return &inside[shards_thread() % INSIDE_SLOTS].n;
}

const struct config *driver_config(void)
{
	return &drv.cfg;
}

bool driver_closing(void)
{
	return atomic_load(&drv.state) != OPEN;
}

/* A child shares no state with its parent: what was open is not the child's to use. */
static void in_child(void)
{
	if (atomic_load(&drv.state) != CLOSED)
		atomic_store(&drv.state, FORKED);
}

/* -- open -- */

/* What the configuration has to say before the log is set up. */
struct kept {
	unsigned int n;
	struct {
		enum log_level level;
		char text[512];
	} line[KEPT_MESSAGES];
};

static void keep(void *arg, enum log_level level, const char *text)
{
	struct kept *k = arg;

	if (k->n == KEPT_MESSAGES)
		return;
	k->line[k->n].level = level;
	snprintf(k->line[k->n++].text, sizeof(k->line[0].text), "%s", text);
}

static void open_log(void)
{
	static struct kept kept;	/* drv.lock is held */
	unsigned int i;

	kept.n = 0;
	config_load(&drv.cfg, keep, &kept);
	param_apply(&drv.cfg, keep, &kept);
	log_setup(drv.cfg.log_path[0] ? drv.cfg.log_path : NULL,
		  drv.cfg.log_dir[0] ? drv.cfg.log_dir : NULL, drv.cfg.log_level,
		  drv.cfg.log_max_mb);
	for (i = 0; i < kept.n; i++)
		log_at(kept.line[i].level, "%s", kept.line[i].text);
	if (kept.n == KEPT_MESSAGES)
		log_warn("%s: more than %d messages about the configuration, the rest is left out",
			 drv.cfg.path, KEPT_MESSAGES);
}

/* Requests read these words while they change; each stands for itself. */
static void store(size_t *word, size_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void raise_flag(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELAXED);
}

static void apply_setters(void)
{
	if (drv.set_direct_kb) {
		store(&drv.cfg.max_direct_io_kb, drv.set_direct_kb);
		raise_flag(&drv.cfg.max_direct_io_set);
	}
	if (drv.set_cache_kb) {
		store(&drv.cfg.max_cache_kb, drv.set_cache_kb);
		raise_flag(&drv.cfg.max_cache_set);
	}
	if (drv.set_pinned_kb) {
		store(&drv.cfg.max_pinned_kb, drv.set_pinned_kb);
		raise_flag(&drv.cfg.max_pinned_set);
	}
	if (drv.set_poll) {
		__atomic_store_n(&drv.cfg.use_poll_mode, drv.poll, __ATOMIC_RELAXED);
		store(&drv.cfg.poll_max_kb, drv.poll_kb);
	}
}

/* No direct route: fine when falling back is allowed, and said either way. */
static int judge_module(void)
{
	unsigned int why = nvfs_reason();
	const struct facts_reason_text *t = facts_reason(why);
	struct facts_nvfs v;

	if (why == REASON_NONE || drv.cfg.force_compat) {
		if (drv.cfg.force_compat)
			log_notice("running in compatible mode: force_compat_mode is set");
		return 0;
	}
	if (why == REASON_NO_MODULE)
		log_at(drv.cfg.allow_compat ? LOG_INFO : LOG_ERROR,
		       "nvidia-fs.ko driver not loaded");
	if (drv.cfg.allow_compat) {
		log_notice("running in compatible mode: %s: %s; %s", t->id, t->text, t->remedy);
		return 0;
	}
	log_error("cuFileDriverOpen: %s: %s, and allow_compat_mode is false; %s", t->id, t->text,
		  t->remedy);
	switch (why) {
	case REASON_MODULE_ACCESS:
		return ERR(PERMISSION_DENIED);
	case REASON_MODULE_VERSION:
		nvfs_version(&v);
		return v.major ? ERR(DRIVER_VERSION_MISMATCH) : ERR(DRIVER_VERSION_READ_ERROR);
	case REASON_MODULE_NODES:
		return ERR(NVFS_SETUP_ERROR);
	default:
		return ERR(DRIVER_NOT_INITIALIZED);
	}
}

/* drv.lock held, state CLOSED */
static int open_locked(void)
{
	char what[256];
	int r;

	open_log();
	apply_setters();
	lanes_open(&drv.cfg);
	slots_open(&drv.cfg);
	rings_open(&drv.cfg);
	r = gpu->open(what, sizeof(what));
	if (r) {
		log_error("cuFileDriverOpen: %s", what);
		log_close();
		return err_cuda(r);
	}
	if (!drv.hooked) {
		pthread_atfork(NULL, NULL, in_child);
		drv.hooked = true;
	}
	nvfs_open();
	r = judge_module();
	if (r) {
		nvfs_close();
		log_close();
		return r;
	}
	param_forget();
	stats_open(drv.cfg.stats_level);
	drv.ever = true;
	atomic_store(&drv.state, OPEN);
	return 0;
}

int driver_enter(void)
{
	atomic_long *slot = my_slot();
	int r = 0;

	for (;;) {
		atomic_fetch_add(slot, 1);
		switch (atomic_load(&drv.state)) {
		case OPEN:
			return 0;
		case FORKED:
			atomic_fetch_sub(slot, 1);
			return ERR(DRIVER_NOT_INITIALIZED);
		case CLOSING:
			atomic_fetch_sub(slot, 1);
			return ERR(DRIVER_CLOSING);
		}
		atomic_fetch_sub(slot, 1);
		pthread_mutex_lock(&drv.lock);
		if (atomic_load(&drv.state) == CLOSED) {
			r = open_locked();
			if (!r)
				drv.uses = 1;
		}
		pthread_mutex_unlock(&drv.lock);
		if (r)
			return r;
	}
}

int driver_enter_open(int never, int closed)
{
	atomic_long *slot = my_slot();
	int r = never;

	atomic_fetch_add(slot, 1);
	if (atomic_load(&drv.state) == OPEN)
		return 0;
	atomic_fetch_sub(slot, 1);
	switch (atomic_load(&drv.state)) {
	case FORKED:
		/* the lock may be held for good by a thread of the parent */
		return never;
	case CLOSING:
		/* held by who closes, and he may be waiting for us */
		return closed;
	}
	pthread_mutex_lock(&drv.lock);
	if (drv.ever)
		r = closed;
	pthread_mutex_unlock(&drv.lock);
	return r;
}

int driver_enter_if_open(void)
{
	atomic_long *slot = my_slot();

	atomic_fetch_add(slot, 1);
	if (atomic_load(&drv.state) == OPEN)
		return 1;
	atomic_fetch_sub(slot, 1);
	switch (atomic_load(&drv.state)) {
	case FORKED:
		return ERR(DRIVER_NOT_INITIALIZED);
	case CLOSING:
		return ERR(DRIVER_CLOSING);
	}
	return 0;
}

void driver_log_closed(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	bool open;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (driver_hold(&open))
		return;
	if (!open)
		open_log();
	log_error("%s", text);
	if (!open)
		log_close();
	driver_let_go();
}

void driver_leave(void)
{
	atomic_fetch_sub(my_slot(), 1);
}

/* -- what is kept from before an open -- */

int driver_hold(bool *open)
{
	const struct timespec nap = { .tv_nsec = 100000 };

	for (;;) {
		switch (atomic_load(&drv.state)) {
		case FORKED:
			/* the lock may be held for good by a thread of the parent */
			return ERR(DRIVER_NOT_INITIALIZED);
		case CLOSING:
			/* held by who closes, and he may be waiting for us */
			return ERR(DRIVER_CLOSING);
		}
		if (!pthread_mutex_trylock(&drv.lock))
			break;
		nanosleep(&nap, NULL);
	}
	*open = atomic_load(&drv.state) == OPEN;
	return 0;
}

int driver_hold_closed(void)
{
	bool open;
	int r = driver_hold(&open);

	if (r || (!open && !drv.configured))
		return r;
	pthread_mutex_unlock(&drv.lock);
	return ERR(DRIVER_ALREADY_OPEN);
}

void driver_let_go(void)
{
	pthread_mutex_unlock(&drv.lock);
}

void driver_configured(void)
{
	drv.configured = true;
}

/* -- close -- */

/* True when nobody is inside any more, within the time; msecs < 0: wait for it. */
static bool wait_empty(long msecs)
{
	struct timespec nap = { .tv_nsec = 100000 };
	long waited = 0, sum;
	int i;

	for (;;) {
		for (sum = 0, i = 0; i < INSIDE_SLOTS; i++)
			sum += atomic_load(&inside[i].n);
		if (!sum)
			return true;
		if (msecs >= 0 && waited++ >= msecs * 10)
			return false;
		nanosleep(&nap, NULL);
	}
}

/* drv.lock held, state CLOSING, nobody inside */
static void release_all(void)
{
	workers_release();
	/* after them: their jobs may have helpers */
	crew_release();
	rings_release();
	batches_release();
	streams_release();
	stats_release();
	p2p_forget();
	files_release();
	buffers_release();
	devices_release();
	nvfs_close();
	log_close();
	drv.set_direct_kb = drv.set_cache_kb = drv.set_pinned_kb = 0;
	drv.set_poll = drv.configured = false;
	atomic_store(&drv.state, CLOSED);
}

/* Exit or dlclose without a close. Who is still inside at exit keeps what it uses. */
__attribute__((destructor)) static void at_exit(void)
{
	int open = OPEN;

	if (!atomic_compare_exchange_strong(&drv.state, &open, CLOSING))
		return;
	if (!wait_empty(100) || pthread_mutex_trylock(&drv.lock)) {
		stats_unpublish();
		return;
	}
	drv.uses = 0;
	release_all();
	pthread_mutex_unlock(&drv.lock);
}

/* -- exported -- */

CUfileError_t cuFileDriverOpen(void)
{
	int r = 0;

	if (atomic_load(&drv.state) == FORKED)
		return errmap_status(ERR(DRIVER_NOT_INITIALIZED));
	pthread_mutex_lock(&drv.lock);
	if (atomic_load(&drv.state) == CLOSED)
		r = open_locked();
	if (!r)
		drv.uses++;
	pthread_mutex_unlock(&drv.lock);
	return errmap_status(r);
}

CUfileError_t cuFileDriverClose_v2(void)
{
	if (atomic_load(&drv.state) == FORKED)
		return errmap_status(ERR(DRIVER_NOT_INITIALIZED));
	pthread_mutex_lock(&drv.lock);
	if (atomic_load(&drv.state) != OPEN) {
		pthread_mutex_unlock(&drv.lock);
		return errmap_status(ERR(DRIVER_NOT_INITIALIZED));
	}
	if (!--drv.uses) {
		atomic_store(&drv.state, CLOSING);
		wait_empty(-1);
		release_all();
	}
	pthread_mutex_unlock(&drv.lock);
	return errmap_status(0);
}

/* The first name; programs that look it up by its text want what the second does. */
#undef cuFileDriverClose
CUfileError_t cuFileDriverClose(void)
{
	return cuFileDriverClose_v2();
}

long cuFileUseCount(void)
{
	long n;

	if (atomic_load(&drv.state) == FORKED)
		return 0;
	pthread_mutex_lock(&drv.lock);
	n = drv.uses;
	pthread_mutex_unlock(&drv.lock);
	return n;
}

CUfileError_t cuFileGetVersion(int *version)
{
	if (!version)
		return errmap_status(ERR(INVALID_VALUE));
	*version = API_VERSION;
	return errmap_status(0);
}

/* drv.lock held, state CLOSED: what an open would find, until look_back(). */
static void look_ahead(void)
{
	config_load(&drv.cfg, NULL, NULL);
	param_apply(&drv.cfg, NULL, NULL);
	apply_setters();
	nvfs_open();
}

static void look_back(void)
{
	nvfs_close();
}

/* Does not open: a program may ask before it sets parameters. */
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props)
{
	const struct config *c = &drv.cfg;
	struct facts_nvfs v;
	size_t cache;
	bool open;
	int r;

	if (!props)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold(&open);
	if (r)
		return errmap_status(r);
	if (!open)
		look_ahead();
	memset(props, 0, sizeof(*props));
	if (!c->force_compat && nvfs_reason() == REASON_NONE) {
		nvfs_version(&v);
		props->nvfs.major_version = v.major;
		props->nvfs.minor_version = v.minor;
		props->nvfs.dstatusflags = 1u << CU_FILE_NVME_SUPPORTED;
		props->per_buffer_cache_size = c->per_buffer_cache_kb;
	}
	/* each request is given its route when it comes */
	props->fflags = 1u << CU_FILE_DYN_ROUTING_SUPPORTED | 1u << CU_FILE_BATCH_IO_SUPPORTED;
	if (workers_cap())
		props->fflags |= 1u << CU_FILE_STREAMS_SUPPORTED |
				 1u << CU_FILE_PARALLEL_IO_SUPPORTED;
	props->nvfs.poll_thresh_size = driver_word(&c->poll_max_kb);
	props->nvfs.max_direct_io_size = c->nslabs && !driver_flag(&c->max_direct_io_set) ?
		c->slab_kb[c->nslabs - 1] : driver_word(&c->max_direct_io_kb);
	if (driver_flag(&c->use_poll_mode))
		props->nvfs.dcontrolflags |= 1u << CU_FILE_USE_POLL_MODE;
	if (c->allow_compat)
		props->nvfs.dcontrolflags |= 1u << CU_FILE_ALLOW_COMPAT_MODE;
	cache = c->nslabs && !driver_flag(&c->max_cache_set) ?
		config_slabs_kb(c->slab_kb, c->slab_count, c->nslabs) :
		driver_word(&c->max_cache_kb);
	props->max_device_cache_size = cache > UINT_MAX ? UINT_MAX : cache;
	props->max_device_pinned_mem_size = driver_word(&c->max_pinned_kb);
	props->max_batch_io_size = c->io_batchsize;
	props->max_batch_io_timeout_msecs = c->batch_timeout_ms;
	if (!open)
		look_back();
	driver_let_go();
	return errmap_status(0);
}

CUfileError_t cuFileDriverSetPollMode(bool poll, size_t threshold_kb)
{
	if (!threshold_kb || threshold_kb % 4) {
		log_error("cuFileDriverSetPollMode: threshold %zu KB: give 4 or a multiple of it",
			  threshold_kb);
		return errmap_status(ERR(DRIVER_UNSUPPORTED_LIMIT));
	}
	if (atomic_load(&drv.state) == FORKED)
		return errmap_status(ERR(DRIVER_NOT_INITIALIZED));
	pthread_mutex_lock(&drv.lock);
	drv.set_poll = true;
	drv.poll = poll;
	drv.poll_kb = threshold_kb;
	if (atomic_load(&drv.state) == OPEN)
		apply_setters();
	pthread_mutex_unlock(&drv.lock);
	return errmap_status(0);
}

/* A value that is kept for the next open and in force at once when there is one; 0: neither. */
static CUfileError_t set_size(const char *call, size_t *kept, size_t value)
{
	if (!value)
		log_warn("%s: 0 KB is no size and changes nothing: give at least 1", call);
	if (atomic_load(&drv.state) == FORKED)
		return errmap_status(ERR(DRIVER_NOT_INITIALIZED));
	pthread_mutex_lock(&drv.lock);
	if (value)
		*kept = value;
	if (atomic_load(&drv.state) == OPEN)
		apply_setters();
	pthread_mutex_unlock(&drv.lock);
	return errmap_status(0);
}

CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t kb)
{
	size_t use = kb < 64 ? 64 : kb > 16384 ? 16384 : kb / 64 * 64;

	if (!kb) {
		log_error("cuFileDriverSetMaxDirectIOSize: 0 KB is no size: give 64 .. 16384");
		return errmap_status(ERR(DRIVER_UNSUPPORTED_LIMIT));
	}
	if (use != kb)
		log_warn("cuFileDriverSetMaxDirectIOSize: %zu KB is taken as %zu (64 .. 16384, a multiple of 64)",
			 kb, use);
	return set_size("cuFileDriverSetMaxDirectIOSize", &drv.set_direct_kb, use);
}

CUfileError_t cuFileDriverSetMaxCacheSize(size_t kb)
{
	return set_size("cuFileDriverSetMaxCacheSize", &drv.set_cache_kb, kb);
}

CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t kb)
{
	return set_size("cuFileDriverSetMaxPinnedMemSize", &drv.set_pinned_kb, kb);
}
