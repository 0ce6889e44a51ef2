// SPDX-License-Identifier: MIT
/* calls.c - properties, parameters, counts: what is neither object nor request. */
#include <errno.h>
#include <string.h>

#include "stress.h"

/* -- counts -- */

static void use_count(struct worker *w)
{
	struct stress *s = w->all;
	long least, most, n, done = atomic_load(&s->opens_done), closed;

	closed = atomic_load(&s->closes_done);
	st_call(w, "cuFileUseCount", 0, 0, 0, 0, 0, 0);
	n = cuFileUseCount();
	st_result(w, n, 0);
	least = s->base_uses + done - atomic_load(&s->closes_begun);
	most = s->base_uses + atomic_load(&s->opens_begun) - closed;
	if (n < least || n > most)
		st_bad(w, "%ld uses; it must be %ld to %ld", n, least, most);
}

static void version(struct worker *w)
{
	int v = 0;

	st_call(w, "cuFileGetVersion", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetVersion(&v), 0, 0);
	if (v != 1180)
		st_bad(w, "version %d", v);
	st_call(w, "cuFileGetVersion NULL", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetVersion(NULL), CU_FILE_INVALID_VALUE, 0);
}

static void is(struct worker *w, const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		st_bad(w, "%s is %llu and must be %llu", what, (unsigned long long)got,
		       (unsigned long long)want);
}

/* -- properties and their setters: those that change are one thread's -- */

static size_t max_direct_kb(const struct stress *s)
{
	return s->direct_kb ? s->direct_kb : s->set.direct_kb ? s->set.direct_kb : 16384;
}

static void own_properties(struct worker *w, const CUfileDrvProps_t *p)
{
	const struct stress *s = w->all;
	const struct setup *set = &s->set;
	size_t direct = max_direct_kb(s), cache = s->cache_kb;

	if (!s->direct_kb && !set->direct_kb && set->slab_kb)
		direct = set->slab_kb;
	if (!cache)
		cache = set->slab_kb ? set->slab_kb * set->slab_count : 131072;
	is(w, "max_direct_io_size", p->nvfs.max_direct_io_size, direct);
	is(w, "max_device_cache_size", p->max_device_cache_size, cache);
	is(w, "max_device_pinned_mem_size", p->max_device_pinned_mem_size,
	   s->pinned_kb ? s->pinned_kb : 33554432);
	is(w, "poll_thresh_size", p->nvfs.poll_thresh_size, s->poll_kb ? s->poll_kb : 4);
	is(w, "use_poll_mode", p->nvfs.dcontrolflags & 1u << CU_FILE_USE_POLL_MODE, s->poll);
}

static void properties(struct worker *w)
{
	const struct setup *set = &w->all->set;
	bool direct = set->module && !set->force_compat;
	CUfileDrvProps_t p;
	unsigned int f;

	memset(&p, 0x5a, sizeof(p));
	st_call(w, "cuFileDriverGetProperties", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileDriverGetProperties(&p), 0, 0);
	is(w, "nvfs.major_version", p.nvfs.major_version, direct ? 2 : 0);
	is(w, "nvfs.minor_version", p.nvfs.minor_version, direct ? 28 : 0);
	is(w, "dstatusflags", p.nvfs.dstatusflags, direct ? 1u << CU_FILE_NVME_SUPPORTED : 0);
	f = 1u << CU_FILE_DYN_ROUTING_SUPPORTED | 1u << CU_FILE_BATCH_IO_SUPPORTED;
	if (set->threads)
		f |= 1u << CU_FILE_STREAMS_SUPPORTED | 1u << CU_FILE_PARALLEL_IO_SUPPORTED;
	is(w, "fflags", p.fflags, f);
	is(w, "allow_compat_mode", p.nvfs.dcontrolflags >> CU_FILE_ALLOW_COMPAT_MODE,
	   set->allow_compat);
	is(w, "max_batch_io_size", p.max_batch_io_size, set->batch);
	is(w, "max_batch_io_timeout_msecs", p.max_batch_io_timeout_msecs, 5);
	is(w, "per_buffer_cache_size", p.per_buffer_cache_size, direct ? 1024 : 0);
	if (!w->n)
		own_properties(w, &p);
	st_call(w, "cuFileDriverGetProperties NULL", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileDriverGetProperties(NULL), CU_FILE_INVALID_VALUE, 0);
}

static void set_property(struct worker *w)
{
	struct stress *s = w->all;
	size_t kb = 1 + st_below(w, 20000);
	unsigned int which = st_below(w, 6);

	st_call(w, "cuFileDriverSet*, way %ld, %ld KB", which, kb, 0, 0, 0, 0);
	if (which == 0) {
		st_status(w, cuFileDriverSetPollMode(true, st_one_in(w, 2) ? 0 : kb | 1),
			  CU_FILE_DRIVER_UNSUPPORTED_LIMIT, 0);
	} else if (which == 1) {
		st_status(w, cuFileDriverSetMaxDirectIOSize(0), CU_FILE_DRIVER_UNSUPPORTED_LIMIT,
			  0);
	} else if (w->n) {
		/* nothing is changed by these */
		st_status(w, st_one_in(w, 2) ? cuFileDriverSetMaxCacheSize(0) :
					       cuFileDriverSetMaxPinnedMemSize(0), 0, 0);
	} else if (which == 2) {
		st_status(w, cuFileDriverSetMaxDirectIOSize(kb), 0, 0);
		s->direct_kb = kb < 64 ? 64 : kb > 16384 ? 16384 : kb / 64 * 64;
	} else if (which == 3) {
		s->cache_kb = 1024 + kb;
		st_status(w, cuFileDriverSetMaxCacheSize(s->cache_kb), 0, 0);
	} else if (which == 4) {
		s->pinned_kb = 33554432 + kb;
		st_status(w, cuFileDriverSetMaxPinnedMemSize(s->pinned_kb), 0, 0);
	} else {
		s->poll = st_one_in(w, 2);
		s->poll_kb = kb * 4;
		st_status(w, cuFileDriverSetPollMode(s->poll, s->poll_kb), 0, 0);
	}
}

/* -- parameters -- */

/* Of all of them; SIZE_MAX: another thread may change it. */
static size_t size_parameter(struct worker *w, int which)
{
	const struct stress *s = w->all;
	bool mine = !w->n;

	switch (which) {
	case CUFILE_PARAM_PROFILE_STATS:
		return s->set.stats;
	case CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH:
		return 128;
	case CUFILE_PARAM_EXECUTION_MAX_IO_THREADS:
		return s->set.threads;
	case CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB:
		return 8192;
	case CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM:
		return 4;
	case CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB:
		return mine ? max_direct_kb(s) : SIZE_MAX;
	case CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB:
		return !mine ? SIZE_MAX : s->cache_kb ? s->cache_kb : 131072;
	case CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB:
		return 1024;
	case CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB:
		return !mine ? SIZE_MAX : s->pinned_kb ? s->pinned_kb : 33554432;
	case CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE:
		return s->set.batch;
	case CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB:
		return !mine ? SIZE_MAX : s->poll_kb ? s->poll_kb : 4;
	default:
		return 5;
	}
}

static void sizes(struct worker *w)
{
	static const size_t most = 18014398509481980;
	static const size_t range[12][2] = {
		{ 0 }, { 1, 256 }, { 0, 32 }, { 4, 4294967295 }, { 0, 8 }, { 64, 16384 },
		{ 0, most }, { 64, 16384 }, { 64, most }, { 1, 256 }, { 4, most }, { 1, 1000 },
	};
	int which = st_below(w, 13);
	bool none = which == 12;
	size_t got = 0, want, lo = 0, hi = 0;

	st_call(w, "cuFileGetParameterSizeT %ld", which, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetParameterSizeT(which, &got), none ? CU_FILE_INVALID_VALUE : 0, 0);
	want = none ? SIZE_MAX : size_parameter(w, which);
	if (want != SIZE_MAX)
		is(w, "the parameter", got, want);
	st_call(w, "cuFileSetParameterSizeT %ld, open", which, 0, 0, 0, 0, 0);
	st_status(w, cuFileSetParameterSizeT(which, st_below(w, 100)),
		  none ? CU_FILE_INVALID_VALUE : CU_FILE_DRIVER_ALREADY_OPEN, 0);
	none |= !which;
	st_call(w, "cuFileGetParameterMinMaxValue %ld", which, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetParameterMinMaxValue(which, &lo, &hi),
		  none ? CU_FILE_INVALID_VALUE : 0, 0);
	if (none)
		return;
	is(w, "the least value", lo, range[which][0]);
	is(w, "the largest value", hi, range[which][1]);
}

static void bools(struct worker *w)
{
	const struct setup *s = &w->all->set;
	int which = st_below(w, 13), want = 0;
	bool none = which == 12, got = false;

	st_call(w, "cuFileGetParameterBool %ld", which, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetParameterBool(which, &got), none ? CU_FILE_INVALID_VALUE : 0, 0);
	if (which == CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE)
		want = s->allow_compat;
	else if (which == CUFILE_PARAM_FORCE_COMPAT_MODE)
		want = s->force_compat;
	else if (which == CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY)
		want = s->system_memory;
	else if (which == CUFILE_PARAM_EXECUTION_PARALLEL_IO)
		want = true;
	if (!none && which != CUFILE_PARAM_PROPERTIES_USE_POLL_MODE)
		is(w, "the parameter", got, want);
	st_call(w, "cuFileSetParameterBool %ld, open", which, 0, 0, 0, 0, 0);
	st_status(w, cuFileSetParameterBool(which, true),
		  none ? CU_FILE_INVALID_VALUE : CU_FILE_DRIVER_ALREADY_OPEN, 0);
}

static void texts(struct worker *w)
{
	const char *want = w->all->set.level;
	char text[64];

	st_call(w, "cuFileGetParameterString, the level", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, sizeof(text)), 0,
		  0);
	if (strcmp(text, want))
		st_bad(w, "the level is %s and must be %s", text, want);
	st_call(w, "cuFileGetParameterString, no room", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, strlen(want)),
		  CU_FILE_INVALID_VALUE, 0);
	st_call(w, "cuFileSetParameterString, open", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "INFO"),
		  CU_FILE_DRIVER_ALREADY_OPEN, 0);
	st_call(w, "cuFileSetParameterString, no level", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "LOUD"),
		  CU_FILE_INVALID_VALUE, 0);
}

static void slabs(struct worker *w)
{
	const struct setup *s = &w->all->set;
	size_t kb[8] = { 0 }, count[8] = { 0 };
	int n = s->slab_kb ? 1 : 0;

	st_call(w, "cuFileGetParameterGpuBounceBufferSlabArray", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetParameterGpuBounceBufferSlabArray(kb, count, 1),
		  n ? 0 : CU_FILE_INVALID_VALUE, 0);
	is(w, "the GPU's slab", kb[0] * count[0], s->slab_kb * s->slab_count);
	n = s->posix_kb ? 1 : 3;
	st_call(w, "cuFileGetParameterPosixPoolSlabArray", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetParameterPosixPoolSlabArray(kb, count, n), 0, 0);
	is(w, "the host's slab", kb[0], s->posix_kb ? s->posix_kb : 4);
	is(w, "the number of the host's slabs", count[0], s->posix_kb ? s->posix_count : 128);
	st_call(w, "cuFileGetParameterPosixPoolSlabArray, another number", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetParameterPosixPoolSlabArray(kb, count, n + 1), CU_FILE_INVALID_VALUE,
		  0);
	st_call(w, "cuFileSetParameterPosixPoolSlabArray, open", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileSetParameterPosixPoolSlabArray(kb, count, 1),
		  CU_FILE_DRIVER_ALREADY_OPEN, 0);
}

/* -- the rest -- */

static void others(struct worker *w)
{
	CUfileP2PFlags_t flags = 7;
	size_t kb;

	st_call(w, "cuFileDriverGetP2PFlags", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileDriverGetP2PFlags(st_below(w, CU_FILE_MAX_TARGET_TYPES), &flags), 0, 0);
	is(w, "the P2P flags", flags, 0);
	st_call(w, "cuFileDriverSetP2PFlags, wrong", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileDriverSetP2PFlags(st_below(w, 20), CU_FILE_P2P_FLAG_DMABUF),
		  CU_FILE_INVALID_VALUE, 0);
	st_call(w, "cuFileGetBARSizeInKB", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetBARSizeInKB(0, &kb), CU_FILE_DEVICE_NOT_FOUND, 0);
	st_call(w, "cuFileGetBARSizeInKB of none", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetBARSizeInKB(1, &kb), CU_FILE_INVALID_VALUE, 0);
	st_call(w, "cuFileGetStatsL1 NULL", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetStatsL1(NULL), CU_FILE_INVALID_VALUE, 0);
}

/* The plan has all bytes of the request, or its error. */
static void explain(struct worker *w)
{
	struct ogds_plan plan = OGDS_PLAN_INIT;
	struct answer want;
	struct claim c;
	uint64_t sum = 0;
	struct ask a;
	unsigned int i;
	int r;

	if (!rq_pick(w, &a, &c, false))
		return;
	a.base = a.m->span + a.at;
	want = md_predict(w, &a);
	plan.op = a.write ? OGDS_OP_WRITE : OGDS_OP_READ;
	st_call(w, "ogds_explain file %ld at %ld, %ld bytes", a.file - w->file, a.off, a.size, 0, 0,
		0);
	r = ogds_explain(a.fh, a.base, a.size, a.off, &plan);
	st_result(w, r, 0);
	for (i = 0; i < plan.npieces; i++)
		sum += plan.piece[i].size;
	if (r || plan.error != want.err || (!want.err && sum != want.n))
		st_bad(w, "%d, error %d, %llu bytes; it must be error %d, %zu bytes", r, plan.error,
		       (unsigned long long)sum, want.err, want.n);
}

void cl_one(struct worker *w)
{
	switch (st_below(w, 12)) {
	case 0:
	case 1:
		use_count(w);
		break;
	case 2:
		version(w);
		break;
	case 3:
		properties(w);
		break;
	case 4:
		set_property(w);
		break;
	case 5:
		sizes(w);
		break;
	case 6:
		bools(w);
		break;
	case 7:
		texts(w);
		break;
	case 8:
		slabs(w);
		break;
	case 9:
		others(w);
		break;
	default:
		explain(w);
	}
}
