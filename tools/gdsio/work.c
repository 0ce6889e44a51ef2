// SPDX-License-Identifier: MIT
/* work.c - one pass over the data set: the threads, their pieces, the clock. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* -- what went wrong; the first line of each kind has the form that scripts know -- */

static const char *next_step(const struct gdsio_worker *w, int err)
{
	switch (err) {
	case EINVAL:
		if (!w->run->ops->cufile && !w->run->args->buffered)
			return "O_DIRECT wants -i, -s and -o in whole blocks: round them, or -O 1";
		return "cufile.log may say more";
	case ENOSPC: return "free some space on the file system";
	case EIO: return "the kernel log may name the drive";
	default:
		return w->run->ops->cufile ? "cufile.log may say more" : "see the kernel log";
	}
}

static void io_failed(const struct gdsio_worker *w, ssize_t ret, size_t len, off_t off)
{
	bool write = gdsio_is_write(w->run->pass.rw);
	int err = ret < 0 ? errno : 0;

	if (ret >= 0)
		fprintf(stderr, "Tid: %u incomplete %s, done = %zd issued = %zu\n", w->tid,
			write ? "Write" : "Read", ret, len);
	else
		fprintf(stderr, "io failed :ret :%zd errno :%d, file offset :%lld, block size  "
			":%zu\n", ret, err, (long long)off, len);
	fprintf(stderr, "Error: IO failed stopping traffic, fd :%d ret:%zd errno :%d\n",
		w->file->fd, ret, err);
	if (ret < 0)
		gdsio_err("%s: %s of %zu bytes at %lld: %s (%s); %s", w->file->path,
			  write ? "write" : "read", len, (long long)off, gdsio_errno_text(err),
			  gdsio_errno_name(err), next_step(w, err));
	else
		gdsio_err("%s: %s of %zu bytes at %lld moved %zd; is the file being truncated?",
			  w->file->path, write ? "write" : "read", len, (long long)off, ret);
}

static const char *hex(const uint8_t *bytes, size_t n, char text[24])
{
	size_t i;

	text[0] = '\0';
	for (i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

static int compare(struct gdsio_worker *w, size_t len, off_t off)
{
	char want[24], found[24], other[64] = "";
	struct stamp_miss miss;

	if (w->run->ops->get(w, len))
		return -EIO;
	if (!stamp_check(w->data, len, off, &miss))
		return 0;
	if (miss.other)
		snprintf(other, sizeof(other), " (the stamp of offset %" PRIu64 ")",
			 miss.other_off);
	gdsio_err("%s: wrong data at offset %" PRIu64 ": expected %s, found %s%s; was the file "
		  "written with -I 1 -V, or has something changed it?", w->file->path, miss.off,
		  hex(miss.want, miss.len, want), hex(miss.found, miss.len, found), other);
	return -EILSEQ;
}

/* -- a thread -- */

static int one_piece(struct gdsio_worker *w, size_t len, off_t off)
{
	const struct gdsio_run *run = w->run;
	bool write = gdsio_is_write(run->pass.rw);
	uint64_t start;
	ssize_t n;

	if (write && run->pass.stamp) {
		stamp_fill(w->data, len, off);
		if (run->ops->put(w, len))
			return -EIO;
	}
	start = now_ns();
	n = write ? run->ops->write(w, len, off) : run->ops->read(w, len, off);
	w->tally.ns += now_ns() - start;
	if (n != (ssize_t)len) {
		io_failed(w, n, len, off);
		return -EIO;
	}
	w->tally.bytes += len;
	w->tally.ops++;
	atomic_fetch_add_explicit(&w->progress, len, memory_order_relaxed);
	return run->pass.check ? compare(w, len, off) : 0;
}

/* Without stamps all pieces have one content; never what was in GPU memory before. */
static int fill_once(struct gdsio_worker *w)
{
	stamp_fill(w->data, w->run->buffer, w->off);
	return w->run->ops->put(w, w->run->buffer);
}

static int all_pieces(struct gdsio_worker *w)
{
	const struct gdsio_run *run = w->run;
	const struct gdsio_args *a = run->args;
	struct gdsio_cursor c;
	int err = 0;
	size_t len;
	off_t off;

	if (run->ops->gpu && gdsio_cuda(cuCtxSetCurrent(w->ctx), "cuCtxSetCurrent"))
		return -EIO;
	if (gdsio_is_write(run->pass.rw) && !run->pass.stamp && fill_once(w))
		return -EIO;
	/* far apart, so that no two threads walk the same sequence */
	gdsio_cursor_init(&c, &a->io, w->off, w->len, gdsio_is_random(run->pass.rw),
			  (a->seed + 1) * GDSIO_MAX_THREADS + w->tid);
	while (!err && !gdsio_stopped()) {
		if (!gdsio_cursor_next(&c, &off, &len)) {
			if (!run->until_ns)
				break;
			gdsio_cursor_again(&c);
			continue;
		}
		err = one_piece(w, len, off);
		if (run->until_ns && now_ns() >= run->until_ns)
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

static void show_progress(const struct gdsio_run *run, uint64_t start, uint64_t requested)
{
	double seconds = (now_ns() - start) / (double)NS;
	uint64_t done = 0;
	unsigned int i;

	for (i = 0; i < run->workers; i++)
		done += atomic_load_explicit(&run->worker[i].progress, memory_order_relaxed);
	if (run->until_ns)
		fprintf(stderr, "\rgdsio: %.0f of %u s, %.0f MiB, %.0f MiB/s\033[K", seconds,
			run->args->seconds, done / MIB, done / MIB / seconds);
	else
		fprintf(stderr, "\rgdsio: %.0f of %.0f MiB, %.0f%%, %.0f MiB/s\033[K", done / MIB,
			requested / MIB, 100.0 * done / requested, done / MIB / seconds);
}

/* Until all workers have ended; someone at a terminal sees how far they are. */
static void watch(struct gdsio_run *run, uint64_t start, uint64_t requested)
{
	struct timespec next = { .tv_sec = start / NS, .tv_nsec = start % NS };
	bool tty = isatty(STDERR_FILENO), shown = false;

	pthread_mutex_lock(&run->lock);
	next.tv_sec++;
	while (run->running) {
		if (pthread_cond_timedwait(&run->ended, &run->lock, &next) != ETIMEDOUT)
			continue;
		next.tv_sec++;
		if (!tty)
			continue;
		show_progress(run, start, requested);
		shown = true;
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

int gdsio_pass(struct gdsio_run *run, const struct gdsio_pass *pass, struct gdsio_result *result)
{
	const struct gdsio_args *a = run->args;
	unsigned int i, started;
	uint64_t start;

	*result = (struct gdsio_result){
		.rw = pass->rw,
		.xfer = a->xfer,
		.threads = a->threads,
		.io = a->io,
		.requested = a->size * a->jobs,
	};
	run->pass = *pass;
	start = now_ns();
	run->until_ns = a->seconds ? start + a->seconds * NS : 0;
	started = start_workers(run);
	watch(run, start, result->requested);
	for (i = 0; i < started; i++) {
		pthread_join(run->worker[i].thread, NULL);
		gdsio_tally_add(&result->tally, &run->worker[i].tally);
	}
	result->seconds = (now_ns() - start) / (double)NS;
	switch (gdsio_stopped()) {
	case STOP_NOT: return 0;
	case STOP_SIGNAL: return -EINTR;
	default: return -EIO;
	}
}

int gdsio_clear(struct gdsio_run *run)
{
	struct gdsio_worker *w;
	unsigned int i;

	for (i = 0; i < run->workers; i++) {
		w = &run->worker[i];
		memset(w->data, 0xff, run->buffer);
		if (!run->ops->gpu)
			continue;
		if (gdsio_cuda(cuCtxSetCurrent(w->ctx), "cuCtxSetCurrent") ||
		    run->ops->put(w, run->buffer))
			return -EIO;
	}
	return 0;
}
