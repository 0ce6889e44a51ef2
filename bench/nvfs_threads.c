// SPDX-License-Identifier: MIT
/*
 * nvfs_threads.c - how the module scales with threads, in one run.
 *
 *   nvfs_threads --file F [--threads 1,2,...] [--size 4K] [--op read] [--rounds N] [--ms T]
 *   nvfs_threads --file F --requests N --threads T [--size 4K] [--op read]
 *   nvfs_threads --file F --host [--threads T] [--size 4K] [--op read] [--ms T]
 *
 * Three ways, which take turns in every round: host memory by pread and pwrite, the module
 * with a mapping for each thread, the module with one mapping for all. Every thread has
 * the same share of the memory in each way, a file offset that only it uses, and one
 * request in flight. Compared are medians of requests a second over the rounds; the rounds
 * have host memory twice, whose deviation from itself is what this bench cannot tell apart.
 *
 * The second form does N requests a thread with a mapping each and prints nothing: load
 * for tests that look at the module meanwhile. The third measures host memory once, prints
 * requests a second and microseconds of CPU a request, and needs neither GPU nor module.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "nvfs_client.h"
#include "t_gpu.h"

#define MEMORY (8UL * 1024 * 1024)
#define SHARE(threads) (MEMORY / (threads))
#define MAX_THREADS 32
#define MAX_ROUNDS 51
#define MIN_SPEED 0.95		/* a mapping for each thread, relative to host memory */
#define MIN_ONE 0.9		/* one mapping for all, relative to that */
#define MAX_CPU 1.2		/* CPU of the guest a request, relative to host memory */

enum way { HOST_A, HOST_B, EACH, ONE, WAYS };

struct sample {
	double rate, cpu;	/* requests a second; seconds a request */
};

struct bench {
	const char *file;
	bool write;
	size_t size;
	int rounds, ms;
	unsigned long requests;
	int fd;
	char *host;
	struct nvfs nv;
	struct nvfs_ioctl_ioargs args;	/* as a library keeps them for an open file */
	struct nvfs_map one, each[MAX_THREADS];
	unsigned int threads;
};

struct worker {
	struct bench *b;
	enum way way;
	unsigned int index;
	unsigned long done;
};

static atomic_bool stop;
static pthread_barrier_t start;

static void request(const struct worker *w, unsigned long n)
{
	struct bench *b = w->b;
	size_t share = SHARE(b->threads), at = n * b->size % share;
	off_t off = (off_t)w->index * share + at;
	struct nvfs_ioctl_ioargs args;
	ssize_t r;
	int err;

	if (w->way == HOST_A || w->way == HOST_B) {
		char *mem = b->host + w->index * share + at;

		r = b->write ? pwrite(b->fd, mem, b->size, off) : pread(b->fd, mem, b->size, off);
		err = r < 0 ? -errno : 0;
	} else {
		const struct nvfs_map *map = w->way == ONE ? &b->one : &b->each[w->index];

		args = b->args;
		args.cpuvaddr = (uintptr_t)map->cpu;
		args.offset = off;
		args.size = b->size;
		args.devptroff = at + (w->way == ONE ? w->index * share : 0);
		err = nvfs_submit(b->nv.fd[w->index % b->nv.nfds], b->write, &args, &r);
	}
	if (err || r != (ssize_t)b->size)
		t_die("%s of %zu at %lld: %zd (%s)", b->write ? "write" : "read", b->size,
		      (long long)off, r, nvfs_errname(err));
}

static void *work(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(&start);
	while (w->b->requests ? w->done < w->b->requests :
				!atomic_load_explicit(&stop, memory_order_relaxed))
		request(w, w->done++);
	return NULL;
}

static struct sample measure(struct bench *b, enum way way)
{
	struct worker w[MAX_THREADS];
	pthread_t id[MAX_THREADS];
	unsigned long total = 0;
	double t0, cpu;
	unsigned int i;

	atomic_store(&stop, false);
	pthread_barrier_init(&start, NULL, b->threads + 1);
	for (i = 0; i < b->threads; i++) {
		w[i] = (struct worker){ .b = b, .way = way, .index = i };
		if (pthread_create(&id[i], NULL, work, &w[i]))
			t_die("no thread: %s", strerror(errno));
	}
	pthread_barrier_wait(&start);
	t0 = t_now();
	cpu = t_cpu_guest();
	if (!b->requests)
		usleep(b->ms * 1000);
	atomic_store(&stop, true);
	for (i = 0; i < b->threads; i++) {
		pthread_join(id[i], NULL);
		total += w[i].done;
	}
	pthread_barrier_destroy(&start);
	return (struct sample){
		.rate = total / (t_now() - t0),
		.cpu = (t_cpu_guest() - cpu) / total,
	};
}

static void map_all(struct bench *b, CUdeviceptr gpu, uint64_t pdevinfo)
{
	unsigned int i;

	for (i = 0; i < b->threads; i++)
		if (nvfs_map(&b->nv, &b->each[i], gpu + i * SHARE(b->threads), SHARE(b->threads),
			     0, pdevinfo))
			t_die("%s", nvfs_error());
}

static void unmap_all(struct bench *b)
{
	unsigned int i;

	for (i = 0; i < b->threads; i++)
		nvfs_unmap(&b->each[i]);
}

static double median(struct sample s[MAX_ROUNDS], int rounds, size_t member)
{
	double v[MAX_ROUNDS];
	int i;

	for (i = 0; i < rounds; i++)
		v[i] = *(const double *)((const char *)&s[i] + member);
	return compare_median(v, rounds);
}

#define RATE offsetof(struct sample, rate)
#define CPU offsetof(struct sample, cpu)

/* One line of the table: so many threads. */
static void run_line(struct bench *b, CUdeviceptr gpu, uint64_t pdevinfo, int *missed)
{
	static struct sample s[WAYS][MAX_ROUNDS];
	double host, each, one, cpu, speed_spread, cpu_spread;
	int i, round;

	map_all(b, gpu, pdevinfo);
	for (i = 0; i < WAYS; i++)	/* warm */
		measure(b, i);
	for (round = 0; round < b->rounds; round++)
		for (i = 0; i < WAYS; i++)
			s[(i + round) % WAYS][round] = measure(b, (i + round) % WAYS);
	unmap_all(b);
	host = median(s[HOST_A], b->rounds, RATE);
	each = median(s[EACH], b->rounds, RATE);
	one = median(s[ONE], b->rounds, RATE);
	cpu = median(s[EACH], b->rounds, CPU) / median(s[HOST_A], b->rounds, CPU);
	speed_spread = compare_deviation(host / median(s[HOST_B], b->rounds, RATE));
	cpu_spread = compare_deviation(median(s[HOST_A], b->rounds, CPU) /
				       median(s[HOST_B], b->rounds, CPU));
	printf("%7u | %9.0f | %6.2f %-13s | %5.2f %-13s | %6.2f %-13s | %6.2f %6.2f\n", b->threads,
	       host,
	       each / host, compare_judge(each / host, MIN_SPEED, 1, speed_spread, missed),
	       cpu, compare_judge(cpu, MAX_CPU, 0, cpu_spread, missed),
	       one / each, compare_judge(one / each, MIN_ONE, 1, speed_spread, missed),
	       speed_spread, cpu_spread);
}

static int table(struct bench *b, char *threads, CUdeviceptr gpu, uint64_t pdevinfo)
{
	char *t, *rest = threads;
	int missed = 0;

	printf("%s of %zu KiB, %d rounds of %d ms; host: requests a second\n\n",
	       b->write ? "write" : "read", b->size >> 10, b->rounds, b->ms);
	printf("%7s | %9s | %-20s | %-19s | %-20s | %s\n", "threads", "host", "a mapping each",
	       "CPU", "one for all:each", "spread: speed, CPU");
	while ((t = strtok_r(rest, ",", &rest))) {
		b->threads = atoi(t);
		if (!b->threads || b->threads > MAX_THREADS ||
		    SHARE(b->threads) % (b->size > 65536 ? b->size : 65536))
			t_die("%s threads: 1 to %d, a power of two, with room for a request each",
			      t, MAX_THREADS);
		run_line(b, gpu, pdevinfo, &missed);
	}
	printf("\ntargets: a mapping each >= %.2f of host memory, CPU <= %.1f, one for all >= %.2f of that: %s\n",
	       MIN_SPEED, MAX_CPU, MIN_ONE,
	       missed ? "MISSED" : "met, or missed by less than the spread where it says so");
	return missed ? 1 : 0;
}

static int host_once(struct bench *b, const char *threads)
{
	struct sample s;
	bool huge;

	b->threads = strchr(threads, ',') ? 1 : atoi(threads);
	if (!b->threads || b->threads > MAX_THREADS)
		t_die("--threads: 1 to %d", MAX_THREADS);
	b->host = t_host_alloc(MEMORY, &huge);
	measure(b, HOST_A);	/* warm */
	s = measure(b, HOST_A);
	printf("%.0f %.3f\n", s.rate, s.cpu * 1e6);
	return 0;
}

static int usage(void)
{
	fputs("usage: nvfs_threads --file F [--threads 1,2,4,8,16,32] [--size 4K] [--op read|write]\n"
	      "                    [--rounds 1..51] [--ms T] [--requests N] [--host]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "file", 1, 0, 'f' }, { "threads", 1, 0, 't' }, { "size", 1, 0, 's' },
		{ "op", 1, 0, 'o' }, { "rounds", 1, 0, 'r' }, { "ms", 1, 0, 'm' },
		{ "requests", 1, 0, 'n' }, { "host", 0, 0, 'h' }, { 0 },
	};
	struct bench b = { .rounds = 9, .ms = 150, .size = 4096 };
	char threads[64] = "1,2,4,8,16,32";
	struct t_gpu dev;
	CUdeviceptr gpu;
	int o, r = 0;
	bool huge, host = false;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'f': b.file = optarg; break;
		case 't': snprintf(threads, sizeof(threads), "%s", optarg); break;
		case 's': b.size = t_size(optarg); break;
		case 'o': b.write = !strcmp(optarg, "write"); break;
		case 'r': b.rounds = atoi(optarg); break;
		case 'm': b.ms = atoi(optarg); break;
		case 'n': b.requests = strtoul(optarg, NULL, 0); break;
		case 'h': host = true; break;
		default: return usage();
		}
	}
	if (!b.file || b.rounds < 1 || b.rounds > MAX_ROUNDS || b.ms < 1 || !b.size ||
	    b.size % 4096 || b.size > MEMORY)
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	t_file_make(b.file, MEMORY, 1);
	b.fd = t_open(b.file, O_RDWR | O_DIRECT);
	if (host)
		return host_once(&b, threads);
	t_gpu_open(&dev, 0);
	setenv("GPU_SIM_SCATTER", "2m", 0);
	gpu = t_gpu_alloc(MEMORY);
	b.host = t_host_alloc(MEMORY, &huge);
	if (nvfs_open(&b.nv, NULL, NULL) || nvfs_map(&b.nv, &b.one, gpu, MEMORY, 0, dev.pdevinfo))
		t_die("%s", nvfs_error());
	if (nvfs_fill_file(&b.args, b.fd))
		t_die("%s: fstat: %s", b.file, strerror(errno));
	b.args.flags = NVFS_IO_SYNC;
	if (b.requests) {
		b.threads = atoi(threads);
		if (!b.threads || b.threads > MAX_THREADS)
			return usage();
		map_all(&b, gpu, dev.pdevinfo);
		measure(&b, EACH);
		unmap_all(&b);
	} else {
		r = table(&b, threads, gpu, dev.pdevinfo);
	}
	nvfs_unmap(&b.one);
	nvfs_close(&b.nv);
	t_gpu_free(gpu);
	return r;
}
