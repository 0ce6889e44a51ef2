// SPDX-License-Identifier: MIT
/* stats.c - cuFileStats*, cuFileGetStats*: what is counted, and who asks. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_MODULE "cufio-stats"
#include "driver.h"
#include "errmap.h"
#include "gpu.h"
#include "log.h"
#include "stats_rows.h"
#include "stats_text.h"

/*
 * lock: guards level, kept, running, shared, and the making of the area; taken before any lock
 * of a shard. `kept` is the level that a call has set, for this and for later opens. `area` is
 * there before the gate opens and goes when nobody is inside. The gate is looked at again under
 * the lock of a shard, so that nothing is counted after a Stop that has gone through all of
 * these.
 */
static struct {
	pthread_mutex_t lock;
	int level, kept;
	bool running, shared;
	struct stats_area *area;
} st = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
	_Alignas(64) pthread_mutex_t lock;
} shard[STATS_SHARDS] = {
	[0 ... STATS_SHARDS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER }
};

atomic_int stats_gate;

/* -- counting -- */

struct update {
	unsigned int slot;
	int level;
	struct stats_shard *s;
};

static unsigned int my_slot(void)
{
	static atomic_uint next;
	static __thread unsigned int mine;

	if (!mine)
		mine = 1 + atomic_fetch_add(&next, 1) % STATS_SHARDS;
	return mine - 1;
}

/* False: nothing is collected. */
static bool begin(struct update *u)
{
	if (!atomic_load_explicit(&stats_gate, memory_order_relaxed))
		return false;
	u->slot = my_slot();
	pthread_mutex_lock(&shard[u->slot].lock);
	u->level = atomic_load_explicit(&stats_gate, memory_order_acquire);
	if (!u->level) {
		pthread_mutex_unlock(&shard[u->slot].lock);
		return false;
	}
	u->s = &st.area->shard[u->slot];
	stats_add(&u->s->seq, 1);
	return true;
}

static void end(struct update *u)
{
	stats_add(&u->s->seq, 1);
	pthread_mutex_unlock(&shard[u->slot].lock);
}

static struct stats_gpu *gpu_of(struct update *u, int dev)
{
	return u->level >= 3 && dev >= 0 && dev < STATS_GPUS ? &u->s->gpu[dev] : NULL;
}

static void count(struct update *u, enum stats_what what, uint64_t n, bool ok)
{
	stats_add(ok ? &u->s->ok[what] : &u->s->err[what], n);
}

static uint64_t bytes_of(const struct ogds_report *rep)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < OGDS_ROUTES; i++)
		n += rep->bytes[i];
	return n;
}

static void count_way(struct stats_gpu_way *w, const struct ogds_report *rep, uint64_t bytes,
		      uint64_t ns, bool failed)
{
	bool p2p = rep->bytes[OGDS_ROUTE_P2PDMA];
	bool nvfs = rep->bytes[OGDS_ROUTE_NVFS] || rep->bytes[OGDS_ROUTE_STAGED];

	stats_add(&w->n, 1);
	if (failed) {
		stats_add(&w->err, 1);
		return;
	}
	stats_add(&w->p2p, p2p);
	stats_add(&w->nvfs, nvfs);
	stats_add(&w->posix, !p2p && !nvfs);
	stats_add(&w->unaligned, rep->edge_bytes != 0);
	stats_add(&w->bytes, bytes);
	stats_add(&w->ns, ns);
}

/* Its row; of no meaning below level 3, which looks at it alone. */
static unsigned int row_of(struct file *f)
{
	return atomic_load_explicit(&stats_gate, memory_order_acquire) >= 3 ? stats_rows_file(f) :
									      STATS_FILES;
}

void stats_io(const struct stats_done *d)
{
	uint64_t bytes = bytes_of(d->rep);
	unsigned int row = row_of(d->file);
	struct stats_gpu *g;
	struct update u;

	if (!begin(&u))
		return;
	count(&u, d->op == OGDS_OP_READ ? STATS_READ : STATS_WRITE, 1, !d->failed);
	if (!d->failed) {
		stats_add(&u.s->bytes[d->op], bytes);
		stats_add(&u.s->ns[d->op], d->ns);
		if (u.level >= 2)
			stats_add(&u.s->hist[d->op][stats_bucket(bytes)], 1);
	}
	g = gpu_of(&u, d->dev);
	if (g)
		count_way(&g->way[d->op], d->rep, bytes, d->ns, d->failed);
	stats_rows_count(&st.area->rows[u.slot], u.level, d, row);
	end(&u);
}

void stats_count(enum stats_what what, bool ok)
{
	struct update u;

	if (!begin(&u))
		return;
	count(&u, what, 1, ok);
	end(&u);
}

void stats_register(int dev, size_t size, bool ok)
{
	struct stats_gpu *g;
	struct update u;

	if (!begin(&u))
		return;
	count(&u, STATS_BUFFER_REGISTER, 1, ok);
	g = gpu_of(&u, dev);
	if (g && ok) {
		stats_add(&g->registered, 1);
		stats_add(&g->register_bytes, size);
	} else if (g) {
		stats_add(&g->register_errors, 1);
	}
	end(&u);
}

void stats_deregister(int dev, size_t size, bool ok)
{
	struct stats_gpu *g;
	struct update u;

	if (!begin(&u))
		return;
	count(&u, STATS_BUFFER_DEREGISTER, 1, ok);
	g = gpu_of(&u, dev);
	if (g && ok) {
		stats_add(&g->deregistered, 1);
		stats_add(&g->register_bytes, -(uint64_t)size);
	}
	end(&u);
}

void stats_batch_submit(unsigned int n, uint64_t ns, bool ok)
{
	struct update u;

	if (!begin(&u))
		return;
	count(&u, STATS_BATCH_SUBMIT, 1, ok);
	count(&u, STATS_BATCH_TOTAL_SUBMIT, 1, ok);
	if (ok) {
		count(&u, STATS_BATCH_ENQUEUED, n, true);
		stats_add(&u.s->batch_submit_ns, ns);
	}
	end(&u);
}

void stats_batch_entry(const struct stats_done *d)
{
	bool direct = d->rep->bytes[OGDS_ROUTE_NVFS] || d->rep->bytes[OGDS_ROUTE_P2PDMA] ||
		      d->rep->bytes[OGDS_ROUTE_STAGED];
	unsigned int row = row_of(d->file);
	struct update u;

	if (!begin(&u))
		return;
	count(&u, STATS_BATCH_PROCESSED, 1, !d->failed);
	if (!direct)
		count(&u, STATS_BATCH_POSIX_PROCESSED, 1, !d->failed);
	if (!d->failed)
		stats_add(&u.s->batch_bytes[d->op], bytes_of(d->rep));
	stats_rows_count(&st.area->rows[u.slot], u.level, d, row);
	end(&u);
}

void stats_batch_complete(uint64_t read_bytes, uint64_t write_bytes, uint64_t ns, bool ok)
{
	struct update u;

	if (!begin(&u))
		return;
	count(&u, STATS_BATCH_COMPLETE, 1, ok);
	if (ok)
		stats_add(&u.s->batch_complete_ns, ns);
	__atomic_store_n(&st.area->last_batch_bytes[0], read_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&st.area->last_batch_bytes[1], write_bytes, __ATOMIC_RELAXED);
	end(&u);
}

/* -- control. st.lock is held -- */

void stats_lock_all(void)
{
	unsigned int i;

	for (i = 0; i < STATS_SHARDS; i++)
		pthread_mutex_lock(&shard[i].lock);
}

void stats_unlock_all(void)
{
	unsigned int i;

	for (i = 0; i < STATS_SHARDS; i++)
		pthread_mutex_unlock(&shard[i].lock);
}

static void set_clock(uint64_t run_ns, uint64_t since_ns)
{
	struct stats_area *a = st.area;

	stats_add(&a->seq, 1);
	stats_put(&a->run_ns, run_ns);
	stats_put(&a->since_ns, since_ns);
	stats_add(&a->seq, 1);
}

/* Brings gate and clock to what level and running say. */
static void update_gate(void)
{
	int gate = st.running ? st.level : 0;
	struct stats_area *a = st.area;
	uint64_t now = os->now_ns();

	if (!a)
		return;
	stats_put(&a->level, st.level);
	if (gate && !a->since_ns)
		set_clock(a->run_ns, now);
	else if (!gate && a->since_ns)
		set_clock(a->run_ns + now - a->since_ns, 0);
	atomic_store_explicit(&stats_gate, gate, memory_order_release);
	/* who passed the gate before is done after this */
	stats_lock_all();
	stats_unlock_all();
}

static int make_area(void)
{
	struct stats_area *a;
	unsigned int i;
	int r;

	if (st.area)
		return 0;
	r = stats_area_create(&a);
	st.shared = !r;
	if (r) {
		log_warn("statistics: shared memory: %s: gds_stats will not see them; make room in /dev/shm",
			 log_errno(r));
		a = stats_area_private();
		if (!a)
			return -ENOMEM;
	}
	a->version = STATS_SHM_VERSION;
	a->size = sizeof(*a);
	a->pid = getpid();
	a->started = stats_started(a->pid);
	a->routes = OGDS_ROUTES;
	for (i = 0; i < OGDS_ROUTES; i++)
		snprintf(a->route_name[i], STATS_ROUTE_NAME, "%s", ogds_route_name(i));
	a->gpus = gpu->count() < STATS_GPUS ? gpu->count() : STATS_GPUS;
	for (i = 0; i < a->gpus; i++) {
		r = gpu->uuid(i, a->uuid[i]);
		if (r)
			log_warn("statistics: GPU %u: cuDeviceGetUuid: %s: it has none in them", i,
				 gpu->error(r));
	}
	stats_put(&a->magic, STATS_SHM_MAGIC);
	st.area = a;
	stats_rows_publish(a);
	return 0;
}

static int set_level(int level)
{
	int r = level ? make_area() : 0;

	if (r)
		return r;
	/* the first level is a start as well */
	if (!st.level && level)
		st.running = true;
	st.level = level;
	update_gate();
	return 0;
}

static void snapshot(CUfileStatsLevel3_t *out)
{
	stats_lock_all();
	stats_area_read(st.area, os->now_ns(), out);
	stats_unlock_all();
}

void stats_open(size_t level)
{
	pthread_mutex_lock(&st.lock);
	if (set_level(level ? (int)level : st.kept))
		log_error("statistics: no memory (ENOMEM): nothing is counted; free some");
	pthread_mutex_unlock(&st.lock);
}

static void say_line(void *arg, const char *text)
{
	log_info("%s", text);
}

static void say_table(void)
{
	CUfileStatsLevel3_t all;

	snapshot(&all);
	stats_text_global(&all.detailed.basic, say_line, NULL);
}

void stats_release(void)
{
	pthread_mutex_lock(&st.lock);
	if (st.area) {
		if (st.level && log_on(LOG_INFO))
			say_table();
		st.running = false;
		update_gate();
		stats_rows_publish(NULL);
		if (st.shared)
			stats_area_unname();
		stats_area_free(st.area);
	}
	st.area = NULL;
	st.level = 0;
	st.running = st.shared = false;
	pthread_mutex_unlock(&st.lock);
}

/* Without the lock: who holds it may be one that the exit does not wait for. */
void stats_unpublish(void)
{
	stats_area_unname();
}

/* -- exported -- */

/* Inside and locked: 0, or an error. */
static int enter(void)
{
	int r = driver_enter_open(ERR(DRIVER_NOT_INITIALIZED), ERR(DRIVER_NOT_INITIALIZED));

	if (!r)
		pthread_mutex_lock(&st.lock);
	return r;
}

static CUfileError_t leave(int r)
{
	pthread_mutex_unlock(&st.lock);
	driver_leave();
	return errmap_status(r);
}

/* Open or not: what is set while it is closed is for the next open, and those after it. */
CUfileError_t cuFileSetStatsLevel(int level)
{
	int open, r = 0;

	if (level < 0 || level > 3)
		return errmap_status(ERR(INVALID_VALUE));
	open = driver_enter_if_open();
	if (open < 0)
		return errmap_status(open);
	pthread_mutex_lock(&st.lock);
	if (open)
		r = set_level(level);
	if (!r)
		st.kept = level;
	pthread_mutex_unlock(&st.lock);
	if (open)
		driver_leave();
	return errmap_status(r);
}

CUfileError_t cuFileGetStatsLevel(int *level)
{
	int open;

	if (!level)
		return errmap_status(ERR(INVALID_VALUE));
	open = driver_enter_if_open();
	if (open < 0)
		return errmap_status(open);
	pthread_mutex_lock(&st.lock);
	*level = open ? st.level : st.kept;
	pthread_mutex_unlock(&st.lock);
	if (open)
		driver_leave();
	return errmap_status(0);
}

static CUfileError_t run(bool on)
{
	int r = enter();

	if (r)
		return errmap_status(r);
	if (on && !st.level) {
		log_error("cuFileStatsStart: the level is 0, so nothing would be counted: call cuFileSetStatsLevel first");
		return leave(ERR(INTERNAL_ERROR));
	}
	st.running = on;
	update_gate();
	return leave(0);
}

CUfileError_t cuFileStatsStart(void)
{
	return run(true);
}

CUfileError_t cuFileStatsStop(void)
{
	return run(false);
}

CUfileError_t cuFileStatsReset(void)
{
	struct stats_area *a;
	uint64_t *word;
	size_t i, j;
	int r = enter();

	if (r)
		return errmap_status(r);
	a = st.area;
	if (!a)
		return leave(0);
	stats_lock_all();
	for (i = 0; i < STATS_SHARDS; i++) {
		word = &a->shard[i].seq;
		stats_add(word, 1);
		for (j = 1; j < sizeof(a->shard[i]) / sizeof(*word); j++)
			stats_put(&word[j], 0);
		stats_add(word, 1);
	}
	stats_rows_reset(a);
	stats_put(&a->last_batch_bytes[0], 0);
	stats_put(&a->last_batch_bytes[1], 0);
	set_clock(0, a->since_ns ? os->now_ns() : 0);
	stats_unlock_all();
	return leave(0);
}

/* The first `size` bytes of level 3 are those of `level`: each begins with the one below. */
static CUfileError_t get(int level, void *out, size_t size)
{
	CUfileStatsLevel3_t all;
	int r;

	if (!out)
		return errmap_status(ERR(INVALID_VALUE));
	r = enter();
	if (r)
		return errmap_status(r);
	if (level > st.level)
		return leave(ERR(INVALID_VALUE));
	snapshot(&all);
	memcpy(out, &all, size);
	return leave(0);
}

CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats)
{
	return get(1, stats, sizeof(*stats));
}

CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats)
{
	return get(2, stats, sizeof(*stats));
}

CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats)
{
	return get(3, stats, sizeof(*stats));
}
