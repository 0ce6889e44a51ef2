// SPDX-License-Identifier: MIT
/*
 * setup.c - what all threads share, and the epochs: an open of the library with settings of
 * its own, what a closed library says, and that a close leaves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/cufile_fake.h"
#include "gpu.h"
#include "stress.h"

#define STRETCH (ZONES * ZONE + 77)	/* bytes of a thread in a shared file: odd on purpose */
#define ROOM (SPAN + 104)		/* the same in a shared memory */
#define NOWHERE ((size_t)1 << 20)

static struct gpu_ops wordless;

static int no_word(void *stream, uint32_t *word, uint32_t value)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* -- once -- */

static void *reserve(size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("stress: mmap");
		exit(1);
	}
	return p;
}

static unsigned char *bytes(size_t n)
{
	unsigned char *p = calloc(1, n);

	if (!p) {
		perror("stress: calloc");
		exit(1);
	}
	return p;
}

static void make_worker(struct stress *s, struct worker *w)
{
	struct file_model *f;
	struct mem *m;
	unsigned int i;

	w->scratch = bytes(SPAN);
	for (i = 0; i < MEMS; i++) {
		m = &w->mem[i];
		m->kind = i;
		m->host = i == HOST_SHARED || i == PINNED_OWN;
		m->want = bytes(SPAN);
		if (i > HOST_SHARED)
			continue;
		m->base = s->mem[i];
		m->len = s->mem_len[i];
		m->span = m->base + 64 + w->n * ROOM;
		t_random_fresh(&w->rnd, m->want, SPAN);
		memcpy(m->span, m->want, SPAN);
	}
	for (i = 0; i <= FILES; i++) {
		f = &w->file[i];
		f->own = i == FILES;
		f->want = bytes(ZONES * ZONE);
		f->look = -1;
		f->start = f->own ? 0 : (off_t)(w->n * STRETCH);
		f->end = f->own ? 0 : (off_t)(s->opt.threads * STRETCH);
		if (f->own)
			snprintf(f->path, sizeof(f->path), "%.63s/own%u", fake.dir, w->n);
		else
			snprintf(f->path, sizeof(f->path), "%.63s/shared%u", fake.dir, i);
	}
}

static void fill_file(struct worker *w, struct file_model *f)
{
	f->look = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	f->size = ZONES * ZONE;
	t_random_fresh(&w->rnd, w->scratch, STRETCH < SPAN ? STRETCH : SPAN);
	memcpy(f->want, w->scratch, ZONES * ZONE);
	if (f->look < 0 || pwrite(f->look, w->scratch, STRETCH, f->start) != (ssize_t)STRETCH)
		st_bad(w, "%s: errno %d", f->path, errno);
}

void se_begin(struct stress *s)
{
	static const int mode[4] = { O_RDWR | O_DIRECT, O_RDWR, O_RDONLY | O_DIRECT, O_WRONLY };
	unsigned int i, t;
	CUdeviceptr p;

	_Static_assert(STRETCH <= SPAN, "a stretch does not fit the scratch memory");
	for (i = 0; i < 2; i++)
		s->mem_len[i] = 64 + s->opt.threads * ROOM + 1000;
	if (cuMemAlloc(&p, s->mem_len[DEV_SHARED])) {
		fprintf(stderr, "stress: no GPU memory\n");
		exit(1);
	}
	s->mem[DEV_SHARED] = (char *)(uintptr_t)p;
	s->mem[HOST_SHARED] = reserve(s->mem_len[HOST_SHARED], PROT_READ | PROT_WRITE);
	s->nowhere = reserve(NOWHERE, PROT_NONE);
	wordless = gpu_cuda;
	wordless.wait_word = no_word;
	for (t = 0; t < s->opt.threads; t++) {
		make_worker(s, &s->w[t]);
		for (i = 0; i < FILES; i++)
			fill_file(&s->w[t], &s->w[t].file[i]);
	}
	for (i = 0; i < SHARED_HANDLES; i++)
		s->fd[i] = open(s->w[0].file[i / 4].path, mode[i % 4] | O_CLOEXEC);
}

void se_end(struct stress *s)
{
	struct worker *w;
	unsigned int i, t;

	for (t = 0; t < s->opt.threads; t++) {
		w = &s->w[t];
		sm_free(w);
		for (i = 0; i <= FILES; i++) {
			close(w->file[i].look);
			free(w->file[i].want);
		}
		for (i = 0; i < MOST_HANDLES; i++)
			if (w->fd[i].handles)
				close(w->fd[i].fd);
		if (w->mem[DEV_OWN].base)
			cuMemFree((uintptr_t)w->mem[DEV_OWN].base);
		if (w->mem[PINNED_OWN].base)
			cuMemFreeHost(w->mem[PINNED_OWN].base);
		for (i = 0; i < MEMS; i++)
			free(w->mem[i].want);
		free(w->scratch);
	}
	for (i = 0; i < SHARED_HANDLES; i++)
		close(s->fd[i]);
	cuMemFree((uintptr_t)s->mem[DEV_SHARED]);
	munmap(s->mem[HOST_SHARED], s->mem_len[HOST_SHARED]);
	munmap(s->nowhere, NOWHERE);
	gpu = &gpu_cuda;
}

/* -- the settings of an epoch -- */

void se_choose(struct stress *s)
{
	static const char *const level[] = { "ERROR", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };
	static const unsigned int routes[] = {
		0x3f, 0x3f, 0x3f, 1u << OGDS_ROUTE_BOUNCE | 1u << OGDS_ROUTE_HOST,
		1u << OGDS_ROUTE_STAGED | 1u << OGDS_ROUTE_BOUNCE | 1u << OGDS_ROUTE_HOST,
		1u << OGDS_ROUTE_NVFS | 1u << OGDS_ROUTE_BOUNCE | 1u << OGDS_ROUTE_HOST,
	};
	struct worker *w = &s->w[0];
	struct setup *t = &s->set;

	memset(t, 0, sizeof(*t));
	t->allow_compat = !st_one_in(w, 6);
	t->strict = st_one_in(w, 6);
	t->force_compat = st_one_in(w, 8);
	t->system_memory = !st_one_in(w, 8);
	t->module = !t->allow_compat || !st_one_in(w, 6);
	t->theirs = t->module && st_one_in(w, 4);
	t->routes = t->strict || !t->allow_compat ? 0x3f : routes[st_below(w, 6)];
	t->faults = t->module && !t->strict && t->allow_compat && st_one_in(w, 3);
	/* once a GPU cannot, it never can */
	t->words = s->opt.seed % 4 || s->epoch < 3;
	t->whole[DEV_SHARED] = st_one_in(w, 4);
	t->whole[HOST_SHARED] = t->system_memory && st_one_in(w, 4);
	t->threads = st_one_in(w, 6) ? 0 : 1 + st_below(w, 16);
	t->batch = st_one_in(w, 3) ? 1 + st_below(w, 20) : 128;
	if (st_one_in(w, 3))
		t->direct_kb = 64 * (1 + st_below(w, 8));
	if (st_one_in(w, 3)) {
		t->slab_kb = 64 << st_below(w, 7);
		t->slab_count = 1024 / t->slab_kb + 1 + st_below(w, 8);
	}
	if (st_one_in(w, 3)) {
		t->posix_kb = 4 << st_below(w, 11);
		t->posix_count = 1 + st_below(w, 20);
	}
	t->stats = st_below(w, 4);
	t->level = level[st_below(w, 6)];
}

static void module_is(const struct setup *t)
{
	char path[160];
	FILE *f;

	atomic_store(&fake.no_node, t->module ? 0 : ENOENT);
	fake.theirs = t->theirs;
	snprintf(path, sizeof(path), "%s/root/proc/driver/nvidia-fs/opengds", fake.dir);
	unlink(path);
	f = t->theirs ? NULL : fopen(path, "w");
	if (f) {
		fputs("opengds 0.1.0\n", f);
		fclose(f);
	}
}

static const char *yes(bool b)
{
	return b ? "true" : "false";
}

static size_t add_routes(char *at, size_t room, unsigned int routes)
{
	const char *comma = "";
	unsigned int i;
	size_t n = 0;

	for (i = 0; i < OGDS_ROUTES; i++) {
		if (!(routes & 1u << i))
			continue;
		n += snprintf(at + n, room - n, "%s\"%s\"", comma, ogds_route_name(i));
		comma = ", ";
	}
	return n;
}

/* by_call: bit n: a parameter call will say the opposite of what the file does. */
enum { C_MEMORY, C_FORCE, C_THREADS, C_BATCH, C_DIRECT, C_SLABS, C_POSIX, C_LEVEL, CALLS };

static void write_file(const struct setup *t, unsigned int by_call)
{
	char text[2048];
	size_t n;

#define SAYS(bit, value, other) ((by_call >> (bit) & 1) ? (other) : (value))
	n = snprintf(text, sizeof(text),
		     "{ \"logging\": { \"level\": \"%s\" }, \"profile\": { \"cufile_stats\": %d },\n"
		     "\"execution\": { \"max_io_threads\": %u },\n"
		     "\"properties\": { \"allow_compat_mode\": %s, \"force_compat_mode\": %s,\n"
		     "\"allow_system_memory\": %s, \"io_batchsize\": %zu",
		     SAYS(C_LEVEL, t->level, "NOTICE"), t->stats,
		     SAYS(C_THREADS, t->threads, 3u), yes(t->allow_compat),
		     yes(SAYS(C_FORCE, t->force_compat, !t->force_compat)),
		     yes(SAYS(C_MEMORY, t->system_memory, !t->system_memory)),
		     SAYS(C_BATCH, t->batch, (size_t)77));
	if (t->direct_kb)
		n += snprintf(text + n, sizeof(text) - n, ",\n\"max_direct_io_size_kb\": %zu",
			      SAYS(C_DIRECT, t->direct_kb, (size_t)1024));
	if (t->slab_kb)
		n += snprintf(text + n, sizeof(text) - n,
			      ",\n\"gpu_bounce_buffer_slab_config\": { \"slab_size_kb\": [%zu], \"slab_count\": [%zu] }",
			      SAYS(C_SLABS, t->slab_kb, (size_t)8), t->slab_count);
	if (t->posix_kb)
		n += snprintf(text + n, sizeof(text) - n,
			      ",\n\"posix_pool_slab_size_kb\": [%zu], \"posix_pool_slab_count\": [%zu]",
			      SAYS(C_POSIX, t->posix_kb, (size_t)12), t->posix_count);
	n += snprintf(text + n, sizeof(text) - n, " },\n\"opengds\": { \"strict\": %s, \"routes\": [",
		      yes(t->strict));
	n += add_routes(text + n, sizeof(text) - n, t->routes);
	snprintf(text + n, sizeof(text) - n, "] } }\n");
	fake_configure(text);
#undef SAYS
}

static void set_size(struct worker *w, int which, size_t value)
{
	size_t got = 0;

	st_call(w, "cuFileSetParameterSizeT %ld to %ld", which, value, 0, 0, 0, 0);
	st_status(w, cuFileSetParameterSizeT(which, value), 0, 0);
	st_status(w, cuFileGetParameterSizeT(which, &got), 0, 0);
	if (got != value)
		st_bad(w, "parameter %d is %zu and must be %zu", which, got, value);
}

static void set_bool(struct worker *w, int which, bool value)
{
	bool got = !value;

	st_call(w, "cuFileSetParameterBool %ld to %ld", which, value, 0, 0, 0, 0);
	st_status(w, cuFileSetParameterBool(which, value), 0, 0);
	st_status(w, cuFileGetParameterBool(which, &got), 0, 0);
	if (got != value)
		st_bad(w, "parameter %d is %d and must be %d", which, got, value);
}

void se_stage(struct stress *s)
{
	struct worker *w = &s->w[0];
	const struct setup *t = &s->set;
	unsigned int by_call = st_one_in(w, 2) ? 0 : st_below(w, 1 << CALLS);

	module_is(t);
	gpu = t->words ? &gpu_cuda : &wordless;
	write_file(t, by_call);
	if (by_call >> C_MEMORY & 1)
		set_bool(w, CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY, t->system_memory);
	if (by_call >> C_FORCE & 1)
		set_bool(w, CUFILE_PARAM_FORCE_COMPAT_MODE, t->force_compat);
	if (by_call >> C_THREADS & 1)
		set_size(w, CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, t->threads);
	if (by_call >> C_BATCH & 1)
		set_size(w, CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, t->batch);
	if (by_call >> C_DIRECT & 1 && t->direct_kb)
		set_size(w, CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, t->direct_kb);
	if (by_call >> C_SLABS & 1 && t->slab_kb)
		st_status(w, cuFileSetParameterGpuBounceBufferSlabArray(&t->slab_kb,
									&t->slab_count, 1), 0, 0);
	if (by_call >> C_POSIX & 1 && t->posix_kb)
		st_status(w, cuFileSetParameterPosixPoolSlabArray(&t->posix_kb, &t->posix_count, 1),
			  0, 0);
	if (by_call >> C_LEVEL & 1)
		st_status(w, cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, t->level), 0, 0);
}

/* -- open and close -- */

void se_open(struct stress *s)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct worker *w = &s->w[0];
	unsigned int i;

	memset(&s->tally, 0, sizeof(s->tally));
	s->direct_kb = s->cache_kb = s->pinned_kb = s->poll_kb = 0;
	s->poll = false;
	s->base_uses = 1;
	/* or the first registration does it */
	if (st_one_in(w, 2)) {
		st_call(w, "cuFileDriverOpen, the first", 0, 0, 0, 0, 0, 0);
		st_status(w, cuFileDriverOpen(), 0, 0);
	}
	for (i = 0; i < SHARED_HANDLES; i++) {
		descr.handle.fd = s->fd[i];
		st_call(w, "cuFileHandleRegister of shared file %ld, fd %ld", i / 4, s->fd[i], 0, 0,
			0, 0);
		st_status(w, cuFileHandleRegister(&s->fh[i], &descr), 0, 0);
		s->tally.handle_ok++;
	}
	for (i = 0; i < 2; i++) {
		if (!s->set.whole[i])
			continue;
		st_call(w, "cuFileBufRegister of all of shared memory %ld", i, 0, 0, 0, 0, 0);
		st_status(w, cuFileBufRegister(s->mem[i], s->mem_len[i], 0), 0, 0);
		s->tally.buf_ok++;
	}
}

static void add(struct tally *to, const struct tally *t)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		to->ok[i] += t->ok[i];
		to->err[i] += t->err[i];
		to->bytes[i] += t->bytes[i];
		to->batch_bytes[i] += t->batch_bytes[i];
	}
	to->handle_ok += t->handle_ok;
	to->handle_err += t->handle_err;
	to->drop_ok += t->drop_ok;
	to->drop_err += t->drop_err;
	to->buf_ok += t->buf_ok;
	to->buf_err += t->buf_err;
	to->undo_ok += t->undo_ok;
	to->undo_err += t->undo_err;
	to->setup_ok += t->setup_ok;
	to->setup_err += t->setup_err;
	to->submit_ok += t->submit_ok;
	to->submit_err += t->submit_err;
	to->cancel += t->cancel;
	to->destroy_ok += t->destroy_ok;
	to->destroy_err += t->destroy_err;
	to->unsure |= t->unsure;
}

/* The library counted what the threads did. */
static void check_stats(struct stress *s)
{
	struct tally *t = &s->tally;
	struct worker *w = &s->w[0];
	CUfileStatsLevel1_t l1;
	unsigned int i;

	st_call(w, "cuFileGetStatsL1", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileGetStatsL1(&l1), s->set.stats ? 0 : CU_FILE_INVALID_VALUE, 0);
	if (!s->set.stats)
		return;
	for (i = 0; i < s->opt.threads; i++)
		add(t, &s->w[i].tally);
	const struct {
		const char *what;
		uint64_t got, want;
	} row[] = {
		{ "reads", l1.read_ops.ok, t->ok[0] },
		{ "failed reads", l1.read_ops.err, t->err[0] },
		{ "writes", l1.write_ops.ok, t->ok[1] },
		{ "failed writes", l1.write_ops.err, t->err[1] },
		{ "bytes read", l1.read_bytes, t->bytes[0] },
		{ "bytes written", l1.write_bytes, t->bytes[1] },
		{ "handles", l1.hdl_register_ops.ok, t->handle_ok },
		{ "failed handles", l1.hdl_register_ops.err, t->handle_err },
		{ "dropped handles", l1.hdl_deregister_ops.ok, t->drop_ok },
		{ "dropped handles that are none", l1.hdl_deregister_ops.err, t->drop_err },
		{ "buffers", l1.buf_register_ops.ok, t->buf_ok },
		{ "failed buffers", l1.buf_register_ops.err, t->buf_err },
		{ "dropped buffers", l1.buf_deregister_ops.ok, t->undo_ok },
		{ "dropped buffers that are none", l1.buf_deregister_ops.err, t->undo_err },
		{ "batches", l1.batch_setup_ops.ok, t->setup_ok },
		{ "failed batches", l1.batch_setup_ops.err, t->setup_err },
		{ "submissions", l1.batch_submit_ops.ok, t->submit_ok },
		{ "failed submissions", l1.batch_submit_ops.err, t->submit_err },
		{ "cancels", l1.batch_cancel_ops.ok, t->cancel },
		{ "destroyed batches", l1.batch_destroy_ops.ok, t->destroy_ok },
		{ "destroyed batches that are none", l1.batch_destroy_ops.err, t->destroy_err },
		{ "bytes read by batches", t->unsure ? 0 : l1.batch_read_bytes,
		  t->unsure ? 0 : t->batch_bytes[0] },
		{ "bytes written by batches", t->unsure ? 0 : l1.batch_write_bytes,
		  t->unsure ? 0 : t->batch_bytes[1] },
	};
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (row[i].got != row[i].want)
			st_bad(w, "the statistics have %llu %s; it must be %llu",
			       (unsigned long long)row[i].got, row[i].what,
			       (unsigned long long)row[i].want);
}

static void uses_are(struct worker *w, long want)
{
	long n;

	st_call(w, "cuFileUseCount", 0, 0, 0, 0, 0, 0);
	n = cuFileUseCount();
	st_result(w, n, 0);
	if (n != want)
		st_bad(w, "%ld uses; it must be %ld", n, want);
}

static void close_once(struct worker *w, int err)
{
	st_call(w, "cuFileDriverClose", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileDriverClose(), err, 0);
}

void se_close(struct stress *s)
{
	struct worker *w = &s->w[0];

	check_stats(s);
	uses_are(w, s->base_uses);
	close_once(w, 0);
	uses_are(w, 0);
	if (atomic_load(&fake.violations))
		st_bad(w, "rules of the module's interface were broken");
	if (atomic_load(&fake.maps) != atomic_load(&fake.unmaps))
		st_bad(w, "%lu mappings were made and %lu undone", atomic_load(&fake.maps),
		       atomic_load(&fake.unmaps));
	atomic_store(&fake.io_failures, 0);
	atomic_store(&fake.cpu_reads, 0);
	atomic_store(&fake.lost_writes, 0);
	atomic_store(&fake.map_error, 0);
}

void se_closed(struct stress *s)
{
	struct worker *w = &s->w[0];
	CUfileBatchHandle_t b;
	CUfileDrvProps_t p;
	unsigned int nr = 0;
	ssize_t n;

	close_once(w, CU_FILE_DRIVER_NOT_INITIALIZED);
	st_call(w, "cuFileRead, closed", 0, 0, 0, 0, 0, 0);
	n = cuFileRead(s->fh[0], s->mem[HOST_SHARED], 1, 0, 0);
	st_result(w, n, errno);
	if (n != -1 || errno != CU_FILE_HANDLE_NOT_REGISTERED)
		st_bad(w, "%zd, errno %d", n, errno);
	st_call(w, "cuFileBufDeregister, closed", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileBufDeregister(s->mem[0]), CU_FILE_DRIVER_CLOSING, 0);
	st_call(w, "cuFileHandleDeregister, closed", 0, 0, 0, 0, 0, 0);
	cuFileHandleDeregister(s->fh[0]);
	st_call(w, "cuFileBatchIOSetUp, closed", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileBatchIOSetUp(&b, 1), CU_FILE_INVALID_VALUE, 0);
	st_call(w, "cuFileDriverGetProperties, closed", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileDriverGetProperties(&p), 0, 0);
	uses_are(w, 0);
	w->sequence = 0;	/* the main thread's requests are not this thread's */
	if (!st_one_in(w, 4))
		return;
	/* this one opens */
	st_call(w, "cuFileBatchIOGetStatus of none, closed", 0, 0, 0, 0, 0, 0);
	st_status(w, cuFileBatchIOGetStatus(s->fh[0], 0, &nr, NULL, NULL),
		  CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR, 0);
	uses_are(w, 1);
	close_once(w, 0);
}
