// SPDX-License-Identifier: MIT
/*
 * cufile_stress.c - 64 threads on four files and all cards, every byte checked, while
 * handles and buffers come and go; and the ends that this can come to.
 *
 *   cufile_stress --dir D [--dir D2] [--seconds N] [--threads N] [--cards N] [--seed N]
 *                 [--stop none|close|deregister|free|kill]
 *
 *   none         until the time is over
 *   close        cuFileDriverClose in the middle: later requests fail with 5001, 5006 or 5027
 *   deregister   buffers are deregistered under the threads, which must not notice; then
 *                the handles: later requests fail with 5027
 *   free         buffers are deregistered, freed and made anew, with I/O on all others
 *   kill         a child does it all and ends with SIGKILL
 *
 * Each thread owns a stretch of one file; the stretches lie byte to byte, so that two
 * threads write parts of one block. A thread knows what its stretch holds. A write that did
 * not end well leaves each of its bytes old or new, never anything else. Exit status: 0 when
 * no byte was wrong and no call failed that should not.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cufile_stress.h"
#include "t_random.h"

static const char *const stop_name[] = { "none", "close", "deregister", "free", "kill" };

static void nap(double seconds)
{
	struct timespec t = { seconds, (seconds - (long)seconds) * 1e9 };

	nanosleep(&t, NULL);
}

/* -- around it -- */

static void cufile_ok(struct stress *s, CUfileError_t status, const char *what)
{
	if (status.err != CU_FILE_SUCCESS)
		s_bad(s, "%s: %d: %s", what, status.err, cufileop_status_error(status.err));
}

static void make_files(struct stress *s)
{
	unsigned int i, t;
	int fd;

	for (i = 0; i < FILES; i++) {
		snprintf(s->path[i], sizeof(s->path[i]), "%s/stress.%u", s->dir[i % s->dirs], i);
		fd = t_open(s->path[i], O_RDWR | O_CREAT | O_TRUNC);
		for (t = i; t < s->threads; t += FILES)
			if (pwrite(fd, s->st[t].now, STRETCH, t / FILES * STRETCH) !=
			    (ssize_t)STRETCH)
				t_die("%s: write: %s", s->path[i], strerror(errno));
		t_file_drop(fd);
		close(fd);
	}
}

/* Two files with O_DIRECT, two without: the library reads both ways. */
static void open_files(struct stress *s)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	unsigned int i;

	for (i = 0; i < FILES; i++) {
		s->fd[i] = i / 2 ? -1 : open(s->path[i], O_RDWR | O_DIRECT | O_CLOEXEC);
		if (s->fd[i] < 0)
			s->fd[i] = t_open(s->path[i], O_RDWR);
		descr.handle.fd = s->fd[i];
		cufile_ok(s, cuFileHandleRegister(&s->fh[i], &descr), "cuFileHandleRegister");
	}
}

static void make_buffers(struct worker *w)
{
	w->gpu[REGISTERED] = t_gpu_alloc(BUFFER);
	w->gpu[UNREGISTERED] = t_gpu_alloc(BUFFER);
	cufile_ok(w->all, cuFileBufRegister((void *)(uintptr_t)w->gpu[REGISTERED], BUFFER, 0),
		  "cuFileBufRegister");
}

static void free_buffers(struct worker *w, bool deregister)
{
	if (deregister)
		cufile_ok(w->all, cuFileBufDeregister((void *)(uintptr_t)w->gpu[REGISTERED]),
			  "cuFileBufDeregister");
	t_gpu_free(w->gpu[REGISTERED]);
	t_gpu_free(w->gpu[UNREGISTERED]);
}

static void use_card(struct stress *s, int card)
{
	if (cuCtxSetCurrent(s->gpu[card].ctx) != CUDA_SUCCESS)
		t_die("cuCtxSetCurrent failed");
}

static void start(struct stress *s)
{
	struct worker *w;
	unsigned int i;

	cufile_ok(s, cuFileDriverOpen(), "cuFileDriverOpen");
	open_files(s);
	for (i = 0; i < s->threads; i++) {
		w = &s->w[i];
		*w = (struct worker){ .all = s, .n = i, .file = i % FILES, .card = i % s->cards,
				      .base = i / FILES * STRETCH, .rnd = s->seed + i,
				      .st = &s->st[i] };
		pthread_mutex_init(&w->lock, NULL);
		w->host = malloc(BUFFER);
		w->scratch = malloc(IO_MAX + 2 * GUARD);
		if (!w->host || !w->scratch)
			t_die("out of memory");
		use_card(s, w->card);
		make_buffers(w);
	}
	for (i = 0; i < s->threads; i++)
		if (pthread_create(&s->w[i].thread, NULL, s_work, &s->w[i]))
			t_die("pthread_create failed");
	if (pthread_create(&s->churn, NULL, s_churn, s))
		t_die("pthread_create failed");
}

static void join(struct stress *s)
{
	unsigned int i;

	for (i = 0; i < s->threads; i++)
		pthread_join(s->w[i].thread, NULL);
	atomic_store(&s->over, true);
	pthread_join(s->churn, NULL);
}

/* Until the last use is given back: a request that came late may have opened it again. */
static void close_driver(struct stress *s)
{
	int i;

	for (i = 0; i < 100 && cuFileUseCount() > 0; i++)
		cuFileDriverClose();
	if (cuFileUseCount() != 0)
		s_bad(s, "cuFileDriverClose: %ld uses stay", cuFileUseCount());
}

static void stop_deregister(struct stress *s)
{
	unsigned int i;

	for (i = 0; i < s->threads; i++)
		cufile_ok(s, cuFileBufDeregister((void *)(uintptr_t)s->w[i].gpu[REGISTERED]),
			  "cuFileBufDeregister under I/O");
	nap(s->seconds / 4);
	atomic_store(&s->may_fail, true);
	for (i = 0; i < FILES; i++)
		cuFileHandleDeregister(s->fh[i]);
}

/* One thread at a time waits, the others go on. */
static void stop_free(struct stress *s, double until)
{
	struct worker *w;
	unsigned int i = 0;

	while (t_now() < until && !atomic_load(&s->over)) {
		w = &s->w[i++ % s->threads];
		atomic_store(&w->wanted, true);
		pthread_mutex_lock(&w->lock);
		use_card(s, w->card);
		free_buffers(w, true);
		make_buffers(w);
		pthread_mutex_unlock(&w->lock);
		atomic_store(&w->wanted, false);
		s->freed += 2;
	}
}

/* The middle and the end of a run, by mode. Registered buffers: true when there still are. */
static bool drive(struct stress *s)
{
	double until = t_now() + s->seconds;

	nap(s->seconds / 2);
	switch (s->stop) {
	case STOP_CLOSE:
		atomic_store(&s->may_fail, true);
		cufile_ok(s, cuFileDriverClose(), "cuFileDriverClose under I/O");
		join(s);
		close_driver(s);
		return false;
	case STOP_DEREGISTER:
		stop_deregister(s);
		join(s);
		return false;
	case STOP_FREE:
		stop_free(s, until);
		break;
	case STOP_KILL:
		kill(getpid(), SIGKILL);
		break;
	default:
		break;
	}
	while (t_now() < until && !atomic_load(&s->over))
		nap(0.05);
	atomic_store(&s->over, true);
	join(s);
	return true;
}

/* Bytes of the file are those of the stretch; within a write that began: old or new ones. */
static int check_stretch(const struct stress *s, unsigned int t, const unsigned char *got)
{
	const struct stretch *st = &s->st[t];
	size_t i;

	for (i = 0; i < STRETCH; i++) {
		if (got[i] == st->now[i])
			continue;
		if (i >= st->next_at && i - st->next_at < st->next_len &&
		    got[i] == st->next[i - st->next_at])
			continue;
		fprintf(stderr, "BAD %s: byte %zu of thread %u, at %llu, is %02x, expected %02x\n",
			s->path[t % FILES], i, t,
			(unsigned long long)(t / FILES * STRETCH + i), got[i], st->now[i]);
		return 1;
	}
	return 0;
}

static int check_files(const struct stress *s)
{
	unsigned char *buf = malloc(STRETCH);
	unsigned int t;
	int fd, err = 0;

	if (!buf)
		t_die("out of memory");
	for (t = 0; t < s->threads; t++) {
		fd = t_open(s->path[t % FILES], O_RDONLY);
		t_file_drop(fd);
		if (pread(fd, buf, STRETCH, t / FILES * STRETCH) != (ssize_t)STRETCH)
			t_die("%s: short", s->path[t % FILES]);
		err |= check_stretch(s, t, buf);
		close(fd);
	}
	free(buf);
	return err;
}

/* Whatever happened, the library has to work as before. */
static void once_more(struct stress *s)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	unsigned char *buf = malloc(IO_MAX);
	CUfileHandle_t fh;

	if (!buf)
		t_die("out of memory");
	descr.handle.fd = t_open(s->path[0], O_RDWR);
	cufile_ok(s, cuFileHandleRegister(&fh, &descr), "cuFileHandleRegister, once more");
	if (!atomic_load(&s->bad) && cuFileRead(fh, buf, IO_MAX, 0, 0) != (ssize_t)IO_MAX)
		s_bad(s, "a read after it all: %s", s_io_error(errno));
	cuFileHandleDeregister(fh);
	close(descr.handle.fd);
	free(buf);
}

static void report(struct stress *s)
{
	uint64_t reads = 0, writes = 0, bytes = 0, refused = 0;
	unsigned int i;

	for (i = 0; i < s->threads; i++) {
		reads += s->w[i].reads;
		writes += s->w[i].writes;
		bytes += s->w[i].bytes;
		refused += s->w[i].refused;
	}
	printf("cufile_stress: stop %s, seed %" PRIu64 ": %u threads, %d cards, %" PRIu64
	       " reads, %" PRIu64 " writes, %" PRIu64 " bytes, %" PRIu64 " refused, %lu handles and "
	       "buffers came and went, %lu were freed\n", stop_name[s->stop], s->seed, s->threads, s->cards, reads,
	       writes, bytes, refused, atomic_load(&s->churned), s->freed);
	if (!reads || !writes || !atomic_load(&s->churned) || (s->stop == STOP_FREE && !s->freed))
		s_bad(s, "nothing happened");
}

static int run(struct stress *s)
{
	bool registered;
	unsigned int i;
	int count;

	if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&count) != CUDA_SUCCESS)
		t_die("no CUDA");
	s->cards = s->cards ? s->cards : count < MAX_CARDS ? count : MAX_CARDS;
	for (i = 0; i < (unsigned int)s->cards; i++)
		t_gpu_open(&s->gpu[i], i);
	start(s);
	registered = drive(s);
	if (!atomic_load(&s->bad))
		once_more(s);
	for (i = 0; i < s->threads; i++) {
		use_card(s, s->w[i].card);
		free_buffers(&s->w[i], registered);
		free(s->w[i].host);
		free(s->w[i].scratch);
	}
	for (i = 0; i < FILES; i++) {
		if (registered)
			cuFileHandleDeregister(s->fh[i]);
		close(s->fd[i]);
	}
	close_driver(s);
	report(s);
	if (s->stop == STOP_CLOSE || s->stop == STOP_DEREGISTER)
		for (i = 0; i < s->threads; i++)
			if (!s->w[i].refused)
				s_bad(s, "thread %u was never refused", i);
	return atomic_load(&s->bad);
}

/* In a child, from before the first CUDA call; here only the files are looked at. */
static int run_killed(struct stress *s)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		t_die("fork: %s", strerror(errno));
	if (!pid)
		_exit(run(s));
	if (waitpid(pid, &status, 0) != pid)
		t_die("waitpid: %s", strerror(errno));
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
		fprintf(stderr, "BAD the child was not killed: status %#x\n", status);
		return 1;
	}
	printf("cufile_stress: stop kill, seed %" PRIu64 ": killed as ordered\n", s->seed);
	return 0;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: cufile_stress --dir D [--dir D2] [--seconds N] [--threads N] [--cards N]\n"
	      "                     [--seed N] [--stop none|close|deregister|free|kill]\n", stderr);
	exit(2);
}

static enum stop stop_of(const char *text)
{
	unsigned int i;

	for (i = 0; i < sizeof(stop_name) / sizeof(stop_name[0]); i++)
		if (!strcmp(text, stop_name[i]))
			return i;
	usage();
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "dir", 1, 0, 'd' }, { "seconds", 1, 0, 'n' }, { "threads", 1, 0, 't' },
		{ "cards", 1, 0, 'c' }, { "seed", 1, 0, 's' }, { "stop", 1, 0, 'o' }, { 0 },
	};
	struct stress s = { .seconds = 8, .threads = 64, .seed = 1 };
	uint64_t rnd;
	unsigned int i;
	int o, err;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'd':
			if (s.dirs == 2)
				usage();
			s.dir[s.dirs++] = optarg;
			break;
		case 'n': s.seconds = strtod(optarg, NULL); break;
		case 't': s.threads = strtoul(optarg, NULL, 0); break;
		case 'c': s.cards = strtol(optarg, NULL, 0); break;
		case 's': s.seed = strtoull(optarg, NULL, 0); break;
		case 'o': s.stop = stop_of(optarg); break;
		default: usage();
		}
	}
	if (!s.dirs || s.threads < FILES || s.threads > MAX_THREADS || s.cards < 0 ||
	    s.cards > MAX_CARDS || optind < argc)
		usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	s.w = calloc(s.threads, sizeof(*s.w));
	s.st = mmap(NULL, s.threads * sizeof(*s.st), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!s.w || s.st == MAP_FAILED)
		t_die("out of memory");
	rnd = s.seed;
	for (i = 0; i < s.threads; i++)
		t_random_fresh(&rnd, s.st[i].now, STRETCH);
	make_files(&s);
	err = s.stop == STOP_KILL ? run_killed(&s) : run(&s);
	err |= check_files(&s);
	for (i = 0; i < FILES && !err; i++)
		unlink(s.path[i]);
	free(s.w);
	return err ? 1 : 0;
}
