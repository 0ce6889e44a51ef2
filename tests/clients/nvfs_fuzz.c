// SPDX-License-Identifier: MIT
/*
 * nvfs_fuzz.c - structured random calls on the nodes, valid ones mixed in.
 *
 *   nvfs_fuzz --dir D [--count N] [--seed X] [--threads T] [--kcov FILE]
 *
 * Every thread has its own GPU buffers, its own file and a model of what it did, so it
 * knows for each request whether it may succeed. A bug is: success of a request that
 * cannot be right, wrong bytes after a success, an unknown errno, or failure of a request
 * with nothing wrong in it. Workers are processes; some of them are killed in the middle.
 *
 * The seed is printed: the same seed, count and threads give each thread the same calls.
 * --kcov: which instrumented places of the module ran (tests/fuzz/coverage reads it).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nvfs_fuzz.h"

#define CALLS_A_WORKER 4000
#define MAX_THREADS 8

static struct totals *totals;
static const char *dir, *kcov;

static void *work(void *arg)
{
	struct fuzz *f = arg;
	int i;

	cuCtxSetCurrent(f->ctx);
	if (kcov)
		fuzz_kcov_thread(&f->kcov);
	while (f->left && !atomic_load(&f->t->bugs))
		fuzz_step(f);
	for (i = 0; i < SLOTS; i++)
		if (f->slot[i].cpu)
			drop_slot(f, &f->slot[i]);
	return NULL;
}

/* The block device below the directory, by a node of our own; -1 when there is none. */
static int open_drive(int fd_dir, int index)
{
	char path[sizeof(((struct fuzz *)0)->path)];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/fuzz%d.drive", dir, index);
	unlink(path);
	if (fstat(fd_dir, &st) || mknod(path, S_IFBLK | 0600, st.st_dev))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	unlink(path);
	return fd;
}

static void set_up(struct fuzz *f, struct nvfs *nv, const struct t_gpu *gpu, int index,
		   uint64_t seed, unsigned long calls)
{
	int i;

	memset(f, 0, sizeof(*f));
	f->t = totals;
	f->nv = nv;
	f->ctx = gpu->ctx;
	f->rnd = seed;
	f->left = calls;
	f->kcov.fd = -1;
	f->next_refusal = seed >> 40;
	snprintf(f->path, sizeof(f->path), "%s/fuzz%d", dir, index);
	f->fd_rw = t_open(f->path, O_RDWR | O_DIRECT);
	f->fd_ro = t_open(f->path, O_RDONLY | O_DIRECT);
	f->fd_wo = t_open(f->path, O_WRONLY | O_DIRECT);
	f->fd_buffered = t_open(f->path, O_RDWR);
	f->fd_dir = t_open(dir, O_RDONLY | O_DIRECTORY);
	f->fd_append = t_open(f->path, O_RDWR | O_DIRECT | O_APPEND);
	f->fd_block = open_drive(f->fd_dir, index);
	/* root may open them so, whatever their modes say */
	f->fd_no_read = open("/proc/self/clear_refs", O_RDONLY | O_CLOEXEC);
	f->fd_no_write = open("/proc/self/maps", O_RDWR | O_CLOEXEC);
	f->file_seed = FILE_SEED + index;
	f->arena = mmap(NULL, (SLOTS + 1) * SLOT_STRIDE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	f->fence = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < SLOTS; i++) {
		f->slot[i].fence = aligned_alloc(4096, 4096);
		if (!f->slot[i].fence)
			t_die("out of memory");
		memset(f->slot[i].fence, 0, 4096);
	}
	f->scratch = aligned_alloc(4096, FILE_SIZE);
	if (f->arena == MAP_FAILED || f->fence == MAP_FAILED || !f->scratch)
		t_die("out of memory");
	for (i = 0; i < BUFFERS; i++)
		op_buffer(f);
}

static void worker(uint64_t seed, int threads, unsigned long calls)
{
	struct fuzz *f = calloc(threads, sizeof(*f));
	pthread_t thread[MAX_THREADS];
	struct t_gpu gpu;
	struct nvfs nv;
	int i;

	if (!f)
		t_die("out of memory");
	t_gpu_open(&gpu, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	for (i = 0; i < threads; i++) {
		set_up(&f[i], &nv, &gpu, i, seed + i * 0x9e3779b97f4a7c15ULL, calls / threads);
		if (pthread_create(&thread[i], NULL, work, &f[i]))
			t_die("pthread_create failed");
	}
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}

/* Every third worker is killed at a random moment. */
static void run_worker(uint64_t seed, int threads, unsigned long calls, unsigned int serial)
{
	struct timespec pause = { .tv_nsec = (seed >> 20) % 900000000 };
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		t_die("fork: %s", strerror(errno));
	if (!pid)
		worker(seed, threads, calls);
	if (serial % 3 == 2) {
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		atomic_fetch_add(&totals->killed, 1);
	}
	if (waitpid(pid, &status, 0) != pid)
		t_die("waitpid: %s", strerror(errno));
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
		fprintf(stderr, "BUG: a worker died of signal %d\n", WTERMSIG(status));
		atomic_fetch_add(&totals->bugs, 1);
	} else if (WIFEXITED(status) && WEXITSTATUS(status)) {
		atomic_fetch_add(&totals->bugs, 1);
	}
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "dir", 1, 0, 'd' }, { "count", 1, 0, 'c' }, { "seed", 1, 0, 's' },
		{ "threads", 1, 0, 't' }, { "kcov", 1, 0, 'k' }, { 0 },
	};
	unsigned long count = 20000, done, share;
	uint64_t seed = time(NULL);
	unsigned int serial = 0;
	int threads = 3, o;
	char path[512];

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'd': dir = optarg; break;
		case 'c': count = strtoul(optarg, NULL, 0); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 't': threads = atoi(optarg); break;
		case 'k': kcov = optarg; break;
		default: dir = NULL;
		}
	}
	if (!dir || threads < 1 || threads > MAX_THREADS) {
		fputs("usage: nvfs_fuzz --dir D [--count N] [--seed X] [--threads 1..8] [--kcov FILE]\n",
		      stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu, %lu calls, %d threads\n", (unsigned long long)seed, count, threads);
	totals = mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (totals == MAP_FAILED)
		t_die("mmap: %s", strerror(errno));
	if (kcov)
		fuzz_kcov_begin();
	for (o = 0; o < threads; o++) {
		snprintf(path, sizeof(path), "%s/fuzz%d", dir, o);
		t_file_make(path, FILE_SIZE * 2, FILE_SEED + o);
	}
	while ((done = atomic_load(&totals->calls)) < count && !atomic_load(&totals->bugs)) {
		share = count - done < CALLS_A_WORKER ? count - done : CALLS_A_WORKER;
		run_worker(seed + serial * 1000003ULL, threads, share + threads, serial);
		serial++;
	}
	printf("%lu calls: %lu requests succeeded (%lu verified), %lu refused, and %lu with just one "
	       "thing wrong; %lu MAPs, %lu mmaps; %u workers, %lu killed; %d bugs\n",
	       atomic_load(&totals->calls), atomic_load(&totals->io_good),
	       atomic_load(&totals->verified), atomic_load(&totals->io_bad),
	       atomic_load(&totals->refused), atomic_load(&totals->maps),
	       atomic_load(&totals->mmaps), serial, atomic_load(&totals->killed),
	       atomic_load(&totals->bugs));
	if (kcov)
		fuzz_kcov_write(kcov, atomic_load(&totals->calls));
	if (!atomic_load(&totals->verified)) {
		fputs("BUG: not one request succeeded: the calls were no test\n", stderr);
		return 1;
	}
	return !!atomic_load(&totals->bugs);
}
