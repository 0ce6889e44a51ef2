// SPDX-License-Identifier: MIT
/* work.c - one pass over the data set: the threads, their pieces, the clock. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gdsio.h"
#include "stamp.h"

#define NS 1000000000ULL
#define MIB (1024 * 1024.0)

static atomic_int stop_why;

/* An error stays the verdict, whatever else happens before or after it. */
void gdsio_stop(enum gdsio_stop why)
{
	int not_yet = STOP_NOT;

	if (why == STOP_ERROR)
		atomic_store(&stop_why, STOP_ERROR);
	else
		atomic_compare_exchange_strong(&stop_why, &not_yet, (int)why);
}

enum gdsio_stop gdsio_stopped(void)
{
	return (enum gdsio_stop)atomic_load(&stop_why);
}

/* -- what went wrong; the first line of each kind has the form that scripts know -- */

static const char *next_step(const struct gdsio_worker *w, int err)
{
	switch (err) {
	case EINVAL:
		if (!gdsio_by_cufile(w->run->args->xfer) && !w->run->args->buffered)
			return "O_DIRECT wants -i, -s and -o in whole blocks: round them, or -O 1";
		return "cufile.log may say more";
	case ENOSPC: return "free some space on the file system";
	case EIO: return "the kernel log may name the drive";
	default:
		return gdsio_by_cufile(w->run->args->xfer) ? "cufile.log may say more" : "see the kernel log";
	}
}

static void io_failed(const struct gdsio_worker *w, const struct gdsio_io *io)
{
	const int err = io->got < 0 ? (int)-io->got : 0;
	const char *verb = io->write ? "write" : "read";
	const ssize_t ret = err ? -1 : io->got;

	if (err)
		fprintf(stderr, "io failed :ret :%zd errno :%d, file offset :%lld, block size  "
			":%zu\n", ret, err, (long long)io->off, io->len);
	else
		fprintf(stderr, "Tid: %u incomplete %s, done = %zd issued = %zu\n", w->tid,
			io->write ? "Write" : "Read", io->got, io->len);
	fprintf(stderr, "Error: IO failed stopping traffic, fd :%d ret:%zd errno :%d\n",
		w->file->fd, ret, err);
	if (err && io->reason)
		gdsio_err("%s: %s of %zu bytes at %lld: %s (%s): %s: %s; %s", w->file->path, verb,
			  io->len, (long long)io->off, gdsio_errno_text(err),
			  gdsio_errno_name(err), ogds_reason_id(io->reason),
			  ogds_reason_text(io->reason), ogds_reason_remedy(io->reason));
	else if (err)
		gdsio_err("%s: %s of %zu bytes at %lld: %s (%s); %s", w->file->path, verb,
			  io->len, (long long)io->off, gdsio_errno_text(err),
			  gdsio_errno_name(err), next_step(w, err));
	else
		gdsio_err("%s: %s of %zu bytes at %lld moved %zd; is the file being truncated?",
			  w->file->path, verb, io->len, (long long)io->off, io->got);
}

static const char *hex(const uint8_t *bytes, size_t n, char text[24])
{
	size_t i;

	text[0] = '\0';
	for (i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

/* What is known of the block that holds the first wrong byte. */
static const char *kind_text(const struct stamp_miss *miss, char text[128])
{
	switch (miss->kind) {
	case STAMP_MISPLACED:
		snprintf(text, 128, " (misplaced: the stamp of offset %" PRIu64 ")",
			 miss->other_off);
		break;
	case STAMP_STALE:
		snprintf(text, 128, " (stale: left by another run, %016" PRIx64 ")",
			 miss->other_generation);
		break;
	case STAMP_FOREIGN:
		snprintf(text, 128, " (stale and misplaced: the stamp of offset %" PRIu64
			 " of another run, %016" PRIx64 ")", miss->other_off,
			 miss->other_generation);
		break;
	case STAMP_SHIFTED:
		snprintf(text, 128, " (shifted: this block's stamp begins %" PRIu64 " bytes late)",
			 miss->shift);
		break;
	default:
		text[0] = '\0';
	}
	return text;
}

static int compare(struct gdsio_worker *w, const struct gdsio_io *io)
{
	char want[24], found[24], kind[128];
	struct stamp_miss miss;

	if (gdsio_get(w, io->slot, io->len))
		return -EIO;
	if (!stamp_check(gdsio_image(w, io->slot), io->len, io->off, w->file->generation, &miss)) {
		w->tally.checked += io->len;
		return 0;
	}
	gdsio_err("%s: wrong data at offset %" PRIu64 ": expected %s, found %s%s; was the file "
		  "written with -I 1 -V, or has something changed it?", w->file->path, miss.off,
		  hex(miss.want, miss.len, want), hex(miss.found, miss.len, found),
		  kind_text(&miss, kind));
	return -EILSEQ;
}

/* -- a thread -- */

/* What a write writes: random words, or the stamps of a place; never what was in memory. */
static int fill(struct gdsio_worker *w, unsigned int slot, size_t len, off_t off,
		uint64_t generation)
{
	uint8_t *image = gdsio_image(w, slot);
	uint64_t word;
	size_t i, n;

	if (!w->run->args->random_fill || w->run->pass.stamp) {
		stamp_fill(image, len, off, generation);
		return gdsio_put(w, slot, len);
	}
	for (i = 0; i < len; i += n) {
		word = gdsio_random(&w->rng);
		n = len - i < sizeof(word) ? len - i : sizeof(word);
		memcpy(image + i, &word, n);
	}
	return gdsio_put(w, slot, len);
}

/* Without stamps all pieces have one content. */
static int fill_once(struct gdsio_worker *w)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < w->run->depth && !err; i++)
		err = fill(w, i, w->run->buffer, (off_t)w->off, 0);
	return err;
}

/* The next pieces, as many as the depth allows: their number. */
static unsigned int next_round(struct gdsio_worker *w, struct gdsio_cursor *c)
{
	const struct gdsio_run *run = w->run;
	const unsigned int mix = run->args->mix;
	struct gdsio_io *io;
	unsigned int n;

	for (n = 0; n < run->depth; n++) {
		io = &w->io[n];
		if (!gdsio_cursor_next(c, &io->off, &io->len))
			break;
		io->w = w;
		io->slot = n;
		io->got = 0;
		io->reason = 0;
		io->write = mix ? gdsio_random(&w->rng) % 100 >= mix :
				  gdsio_is_write(run->pass.rw);
	}
	return n;
}

static int account(struct gdsio_worker *w, const struct gdsio_io *io)
{
	const uint64_t ns = io->ended - io->began;

	if (io->got != (ssize_t)io->len) {
		io_failed(w, io);
		return -EIO;
	}
	w->tally.bytes += io->len;
	w->tally.written += io->write ? io->len : 0;
	w->tally.ops++;
	w->tally.ns += ns;
	gdsio_hist_put(&w->tally.hist, ns);
	atomic_fetch_add_explicit(&w->progress, io->len, memory_order_relaxed);
	return w->run->pass.check ? compare(w, io) : 0;
}

static int one_round(struct gdsio_worker *w, unsigned int n)
{
	const struct gdsio_run *run = w->run;
	const bool refill = run->pass.stamp || run->args->refill;
	struct gdsio_io *io;
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		io = &w->io[i];
		if (io->write && refill)
			err = fill(w, i, io->len, io->off,
				   run->pass.stamp ? w->file->generation : 0);
	}
	if (!err)
		err = run->ops->round(w, w->io, n);
	for (i = 0; i < n && !err; i++)
		err = account(w, &w->io[i]);
	return err;
}

static int bind_worker(struct gdsio_worker *w)
{
	cpu_set_t was;

	if (w->job->node >= 0 && gdsio_numa_bind("", w->job->node, &was))
		return -EIO;
	return w->ctx ? gdsio_cuda(cuCtxSetCurrent(w->ctx), "cuCtxSetCurrent") : 0;
}

static int all_pieces(struct gdsio_worker *w)
{
	const struct gdsio_run *run = w->run;
	const struct gdsio_args *a = run->args;
	/* far apart, so that no two threads walk the same sequence */
	const uint64_t seed = (a->seed + 1) * GDSIO_MAX_THREADS + w->tid;
	const bool writes = gdsio_is_write(run->pass.rw) || a->mix;
	struct gdsio_cursor c;
	unsigned int n;
	int err;

	err = bind_worker(w);
	w->rng = ~seed;
	if (!err && writes && !run->pass.stamp)
		err = fill_once(w);
	gdsio_cursor_init(&c, &a->io, w->off, w->len, gdsio_is_random(run->pass.rw), seed);
	if (a->unaligned)
		c.unit = 1;
	while (!err && !gdsio_stopped()) {
		n = next_round(w, &c);
		if (!n && !run->until_ns)
			break;
		if (!n)
			gdsio_cursor_again(&c);
		else
			err = one_round(w, n);
		if (run->until_ns && gdsio_now_ns() >= run->until_ns)
			break;
	}
	return err;
}

static void *worker_main(void *arg)
{
	struct gdsio_worker *w = arg;
	struct gdsio_run *run = w->run;

	if (all_pieces(w))
		gdsio_stop(STOP_ERROR);
	pthread_mutex_lock(&run->lock);
	run->running--;
	pthread_cond_signal(&run->ended);
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

/* -- the pass -- */

/*
 * On a terminal one line that changes, elsewhere (--progress) a line for each second. What is
 * left is told from the time, or from the bytes at the rate so far.
 */
static void show_progress(const struct gdsio_run *run, uint64_t start, uint64_t requested, bool tty)
{
	double seconds = (gdsio_now_ns() - start) / (double)NS, all = run->args->seconds;
	uint64_t done = 0;
	char of[32];
	unsigned int i;

	for (i = 0; i < run->workers; i++)
		done += atomic_load_explicit(&run->worker[i].progress, memory_order_relaxed);
	if (!run->until_ns)
		all = done ? seconds / done * requested : 0;
	snprintf(of, sizeof(of), " of %.0f", requested / MIB);
	fprintf(stderr, "%sgdsio: %.0f%s MiB, %.0f MiB/s, %.0f s, %.0f s left%s", tty ? "\r" : "",
		done / MIB, run->until_ns ? "" : of, done / MIB / seconds, seconds,
		all > seconds ? all - seconds : 0, tty ? "\033[K" : "\n");
}

/* Until all workers have ended. */
static void watch(struct gdsio_run *run, uint64_t start, uint64_t requested)
{
	struct timespec next = { .tv_sec = start / NS, .tv_nsec = start % NS };
	const bool tty = isatty(STDERR_FILENO);
	bool shown = false;

	pthread_mutex_lock(&run->lock);
	next.tv_sec++;
	while (run->running) {
		if (pthread_cond_timedwait(&run->ended, &run->lock, &next) != ETIMEDOUT)
			continue;
		next.tv_sec++;
		if (!tty && !run->args->progress)
			continue;
		show_progress(run, start, requested, tty);
		shown = tty;
	}
	pthread_mutex_unlock(&run->lock);
	if (shown)
		fputs("\r\033[K", stderr);
}

/* Signals are the main thread's: an I/O is never cut short by one. */
static unsigned int start_workers(struct gdsio_run *run)
{
	sigset_t all, old;
	unsigned int i;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	run->running = run->workers;
	for (i = 0; i < run->workers; i++) {
		run->worker[i].tally = (struct gdsio_tally){ 0 };
		atomic_store(&run->worker[i].progress, 0);
	}
	for (i = 0; i < run->workers; i++) {
		err = pthread_create(&run->worker[i].thread, NULL, worker_main, &run->worker[i]);
		if (err) {
			gdsio_err("thread %u of %u: %s; give a smaller -w", i + 1, run->workers,
				  strerror(err));
			gdsio_stop(STOP_ERROR);
			pthread_mutex_lock(&run->lock);
			run->running -= run->workers - i;
			pthread_mutex_unlock(&run->lock);
			break;
		}
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return i;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int gdsio_file_account(struct gdsio_file *file)
{
	struct ogds_report io = OGDS_REPORT_INIT;
	int err = ogds_handle_io(file->fh, &io);

	if (err) {
		gdsio_err("%s: the library does not tell which way the bytes went: %s",
			  file->path, strerror(-err));
		return -EIO;
	}
	file->tally = (struct gdsio_tally){ 0 };
	gdsio_tally_io(&file->tally, &io);
	return 0;
}

/* Of job `job`, or of all (NULL). */
static void add_tallies(const struct gdsio_run *run, const struct gdsio_job *job,
			struct gdsio_tally *sum)
{
	unsigned int i;

	for (i = 0; i < run->workers; i++) {
		if (!job || run->worker[i].job == job)
			gdsio_tally_add(sum, &run->worker[i].tally);
	}
	for (i = 0; i < run->files && run->ops->by_file; i++) {
		if (!job || run->file[i].job == job)
			gdsio_tally_add(sum, &run->file[i].tally);
	}
}

static int account_files(struct gdsio_run *run)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < run->files && run->ops->by_file && !err; i++)
		err = gdsio_file_account(&run->file[i]);
	return err;
}

void gdsio_job_result(const struct gdsio_run *run, unsigned int n,
		      const struct gdsio_result *all, struct gdsio_result *result)
{
	const struct gdsio_job *job = &run->args->job[n];

	*result = *all;
	result->tally = (struct gdsio_tally){ 0 };
	result->threads = job->threads;
	result->requested = job->size;
	add_tallies(run, job, &result->tally);
}

static void describe(const struct gdsio_run *run, struct gdsio_result *result)
{
	const struct gdsio_args *a = run->args;
	unsigned int i;

	*result = (struct gdsio_result){
		.rw = run->pass.rw,
		.xfer = a->xfer,
		.host_memory = !gdsio_in_gpu(a),
		.threads = a->threads,
		.depth = run->depth,
		.mix = a->mix,
		.io = a->io,
		.stamped = run->pass.stamp,
		.compared = run->pass.check,
	};
	for (i = 0; i < a->jobs; i++)
		result->requested += a->job[i].size;
}

int gdsio_pass(struct gdsio_run *run, const struct gdsio_pass *pass, struct gdsio_result *result)
{
	const uint64_t seconds = pass->timed ? run->args->seconds : 0;
	unsigned int i, started;
	uint64_t start;
	double cpu;

	run->pass = *pass;
	describe(run, result);
	if (account_files(run))
		return -EIO;
	cpu = cpu_seconds();
	start = gdsio_now_ns();
	run->until_ns = seconds ? start + seconds * NS : 0;
	started = start_workers(run);
	watch(run, start, result->requested);
	for (i = 0; i < started; i++)
		pthread_join(run->worker[i].thread, NULL);
	result->seconds = (gdsio_now_ns() - start) / (double)NS;
	result->cpu_seconds = cpu_seconds() - cpu;
	if (gdsio_stopped() == STOP_ERROR || account_files(run))
		return -EIO;
	add_tallies(run, NULL, &result->tally);
	if (gdsio_unattributed(&result->tally)) {
		gdsio_err("%" PRIu64 " bytes were moved, but the library tells the way of %" PRIu64
			  "; no rate is printed that cannot be attributed", result->tally.bytes,
			  result->tally.bytes - gdsio_unattributed(&result->tally));
		return -EIO;
	}
	return gdsio_stopped() == STOP_SIGNAL ? -EINTR : 0;
}

int gdsio_clear(struct gdsio_run *run)
{
	struct gdsio_worker *w;
	unsigned int i, slot;

	for (i = 0; i < run->workers; i++) {
		w = &run->worker[i];
		if (w->ctx && gdsio_cuda(cuCtxSetCurrent(w->ctx), "cuCtxSetCurrent"))
			return -EIO;
		for (slot = 0; slot < run->depth; slot++) {
			memset(gdsio_image(w, slot), 0xff, run->buffer);
			if (gdsio_put(w, slot, run->buffer))
				return -EIO;
		}
	}
	return 0;
}
