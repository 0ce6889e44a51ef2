// SPDX-License-Identifier: MIT
/*
 * nvfs_bench.c - the module against O_DIRECT into host memory, in one run.
 *
 *   nvfs_bench --file F [--p2pdma] [--rounds N] [--ms T] [--ops read,write] [--sizes 4K,...]
 *
 * Four ways move the same bytes of the same file: host memory twice (in 2-MiB huge pages,
 * by pread and pwrite), the module into GPU memory in 2-MiB runs, and the module into GPU
 * memory whose 64-KiB pages never follow on. The ways take turns in every round, in an
 * order that rotates, so that what disturbs the machine disturbs all. What is compared is
 * medians over the rounds. Host against host is what this bench cannot tell apart: its
 * deviation from 1 is the spread, and a miss that the spread explains is no failure.
 *
 * --p2pdma is for the kernel's own nvme driver: in place of scattered memory there are pread and pwrite
 * on the module's P2PDMA pages in the process, and host memory in 4-KiB pages, twice, which that is
 * compared with: its pages are as small.
 *
 * CPU is that of all processors that were not idle, interrupts included, and beside it
 * that of the thread. Exit status 1 when a target is missed by more than the spread.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"
#include "nvfs_client.h"
#include "t_gpu.h"

#define BUFFER (8UL * 1024 * 1024)
#define FILE_SIZE (64UL * 1024 * 1024)
#define MAX_ROUNDS 101
#define MIN_SPEED 0.9		/* module's speed relative to host memory */
#define MAX_CPU 1.3		/* module's CPU relative to host memory */
#define P2P_SPEED 0.95		/* with --p2pdma, of either way to its own host memory */
#define P2P_SPEED_4K 0.8	/* ... of the pages at 4 KiB */
#define P2P_CPU 1.1
#define NOISY 0.2		/* a spread that makes the run worthless */

enum way { HOST_A, HOST_B, MODULE, SCATTER, SMALL_A, SMALL_B, PAGES, WAYS };

struct order {
	int write;
	size_t size;
	unsigned int count;
};

struct result {
	double seconds, guest, thread;	/* of one request */
};

struct cell {
	int write;
	size_t size;
	unsigned int count;		/* requests a measurement */
	struct result r[WAYS][MAX_ROUNDS];
};

struct bench {
	const char *file;
	int rounds, ms;
	int fd;
	const enum way *way;		/* those that take turns */
	int ways;
	void *at[WAYS];			/* memory of the ways by pread and pwrite */
	struct nvfs nv;
	struct nvfs_map map;
	struct nvfs_ioctl_ioargs args;	/* as a library keeps them for an open file */
	int to_child, from_child;
};

static double thread_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static ssize_t one_by_module(struct bench *b, const struct order *o, off_t off)
{
	struct nvfs_ioctl_ioargs args = b->args;
	ssize_t n;
	int err;

	args.offset = off;
	args.size = o->size;
	err = nvfs_submit(b->nv.fd[0], o->write, &args, &n);
	return err ? err : n;
}

static void one(struct bench *b, enum way way, const struct order *o, off_t off)
{
	ssize_t n;

	if (way == MODULE)
		n = one_by_module(b, o, off);
	else
		n = o->write ? pwrite(b->fd, b->at[way], o->size, off) :
			       pread(b->fd, b->at[way], o->size, off);
	if (n != (ssize_t)o->size)
		t_die("%s of %zu at %lld: %zd (%s)", o->write ? "write" : "read", o->size,
		      (long long)off, n, nvfs_errname(way == MODULE ? n : errno));
}

/* count requests one after the other, at offsets that walk through the file */
static struct result measure(struct bench *b, enum way way, const struct order *o)
{
	unsigned int i, places = FILE_SIZE / o->size;
	struct result r;

	r.guest = t_cpu_guest();
	r.thread = thread_cpu();
	r.seconds = t_now();
	for (i = 0; i < o->count; i++)
		one(b, way, o, (off_t)(i % places) * o->size);
	r.seconds = (t_now() - r.seconds) / o->count;
	r.thread = (thread_cpu() - r.thread) / o->count;
	r.guest = (t_cpu_guest() - r.guest) / o->count;
	return r;
}

static void set_up_module(struct bench *b)
{
	struct t_gpu gpu;
	CUdeviceptr ptr;

	b->fd = t_open(b->file, O_RDWR | O_DIRECT);
	t_gpu_open(&gpu, 0);
	ptr = t_gpu_alloc(BUFFER);
	if (nvfs_open(&b->nv, NULL, NULL) ||
	    nvfs_map(&b->nv, &b->map, ptr, BUFFER, 0, gpu.pdevinfo))
		t_die("%s", nvfs_error());
	if (nvfs_fill_file(&b->args, b->fd))
		t_die("%s: fstat: %s", b->file, strerror(errno));
	b->args.cpuvaddr = (uintptr_t)b->map.cpu;
	b->args.flags = NVFS_IO_SYNC;
}

/* -- the scattered memory lives in a process of its own: the pattern is one a process -- */

static void whole(int fd, void *buf, size_t len, bool out)
{
	ssize_t n = out ? write(fd, buf, len) : read(fd, buf, len);

	if (n != (ssize_t)len)
		exit(n ? 1 : 0);
}

static void start_child(struct bench *b)
{
	int to[2], from[2];
	struct order o;
	struct result r;
	pid_t pid;

	if (pipe(to) || pipe(from))
		t_die("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		t_die("fork: %s", strerror(errno));
	if (pid) {
		close(to[0]);
		close(from[1]);
		b->to_child = to[1];
		b->from_child = from[0];
		return;
	}
	close(to[1]);
	close(from[0]);
	setenv("GPU_SIM_SCATTER", "64k", 1);
	set_up_module(b);
	for (;;) {
		whole(to[0], &o, sizeof(o), false);
		r = measure(b, MODULE, &o);
		whole(from[1], &r, sizeof(r), true);
	}
}

static struct result measure_scatter(struct bench *b, struct order *o)
{
	struct result r;

	whole(b->to_child, o, sizeof(*o), true);
	if (read(b->from_child, &r, sizeof(r)) != sizeof(r))
		t_die("the process with scattered memory ended");
	return r;
}

/* -- rounds -- */

static void run_cell(struct bench *b, struct cell *c, int round)
{
	struct order o = { c->write, c->size, c->count };
	int i, way;

	for (i = 0; i < b->ways; i++) {
		way = b->way[(i + round) % b->ways];
		c->r[way][round] = way == SCATTER ? measure_scatter(b, &o) :
						    measure(b, way, &o);
	}
}

/* As many requests as take b->ms in host memory; and everything is warm then. */
static void calibrate(struct bench *b, struct cell *c)
{
	struct order o = { c->write, c->size, 16 };
	struct result r;
	int i;

	for (i = 0; i < b->ways; i++)
		r = b->way[i] == SCATTER ? measure_scatter(b, &o) : measure(b, b->way[i], &o);
	r = measure(b, HOST_A, &o);
	c->count = b->ms / 1000.0 / r.seconds;
	if (c->count < 4)
		c->count = 4;
}

static double median(const struct cell *c, int way, int rounds, size_t member)
{
	double v[MAX_ROUNDS];
	int i;

	for (i = 0; i < rounds; i++)
		v[i] = *(const double *)((const char *)&c->r[way][i] + member);
	return compare_median(v, rounds);
}

/* CPU is summed: one measurement has few clock ticks, their sum has enough */
static double total(const struct cell *c, int way, int rounds, size_t member)
{
	double sum = 0;
	int i;

	for (i = 0; i < rounds; i++)
		sum += *(const double *)((const char *)&c->r[way][i] + member);
	return sum;
}

#define SECONDS offsetof(struct result, seconds)
#define GUEST offsetof(struct result, guest)
#define THREAD offsetof(struct result, thread)

static void print_size(char *text, size_t len, size_t size)
{
	if (size >= 1024 * 1024)
		snprintf(text, len, "%zuM", size >> 20);
	else
		snprintf(text, len, "%zuK", size >> 10);
}

static int report(const struct bench *b, const struct cell *cell, int cells)
{
	double speed_spread = 0, cpu_spread = 0, host, hh, speed, cpu, own, d;
	const struct cell *c;
	char size[16];
	int missed = 0;

	for (c = cell; c < cell + cells; c++) {
		d = compare_deviation(median(c, HOST_A, b->rounds, SECONDS) /
				      median(c, HOST_B, b->rounds, SECONDS));
		speed_spread = fmax(speed_spread, d);
		d = compare_deviation(total(c, HOST_A, b->rounds, GUEST) /
				      total(c, HOST_B, b->rounds, GUEST));
		cpu_spread = fmax(cpu_spread, d);
	}
	printf("\n%d rounds; relative to O_DIRECT into host memory in 2-MiB pages; GPU memory in "
	       "2-MiB runs\n\n", b->rounds);
	printf("%-6s %5s %9s %9s | %6s %-13s | %5s %-13s %7s | %9s | %9s\n", "", "", "host us",
	       "module us", "speed", "", "CPU", "", "thread", "host:host", "scattered");
	for (c = cell; c < cell + cells; c++) {
		host = median(c, HOST_A, b->rounds, SECONDS);
		hh = host / median(c, HOST_B, b->rounds, SECONDS);
		speed = host / median(c, MODULE, b->rounds, SECONDS);
		cpu = total(c, MODULE, b->rounds, GUEST) / total(c, HOST_A, b->rounds, GUEST);
		own = total(c, MODULE, b->rounds, THREAD) / total(c, HOST_A, b->rounds, THREAD);
		print_size(size, sizeof(size), c->size);
		printf("%-6s %5s %9.1f %9.1f | %6.2f %-13s | %5.2f %-13s %7.2f | %9.2f | %9.2f\n",
		       c->write ? "write" : "read", size, host * 1e6, host / speed * 1e6, speed,
		       compare_judge(speed, MIN_SPEED, 1, speed_spread, &missed), cpu,
		       compare_judge(cpu, MAX_CPU, 0, cpu_spread, &missed), own, hh,
		       host / median(c, SCATTER, b->rounds, SECONDS));
	}
	printf("\nspread (largest deviation of host against host): speed %.2f, CPU %.2f\n",
	       speed_spread, cpu_spread);
	if (speed_spread > NOISY)
		printf("the machine is busy: a run with a spread above %.2f tells little\n", NOISY);
	printf("targets: speed >= %.1f, CPU of the guest <= %.1f: %s\n", MIN_SPEED, MAX_CPU,
	       missed ? "MISSED" : "met, or missed by less than the spread where it says so");
	return missed ? 1 : 0;
}

/* One way beside the host memory that it is compared with. */
static void report_pair(const struct bench *b, const struct cell *cell, int cells,
			const char *name, enum way way, enum way host, int *missed)
{
	double speed_spread = 0, cpu_spread = 0, least, t, speed, cpu;
	const struct cell *c;
	char size[16];

	for (c = cell; c < cell + cells; c++) {
		speed_spread = fmax(speed_spread, compare_deviation(
			median(c, host, b->rounds, SECONDS) /
			median(c, host + 1, b->rounds, SECONDS)));
		cpu_spread = fmax(cpu_spread, compare_deviation(
			total(c, host, b->rounds, GUEST) / total(c, host + 1, b->rounds, GUEST)));
	}
	printf("\n%s; spread: speed %.2f, CPU %.2f%s\n\n", name, speed_spread, cpu_spread,
	       speed_spread > NOISY ? " (the machine is busy: this tells little)" : "");
	printf("%-6s %5s %9s %9s | %6s %-13s | %5s %-13s %7s | %9s\n", "", "", "host us", "GPU us",
	       "speed", "", "CPU", "", "thread", "host:host");
	for (c = cell; c < cell + cells; c++) {
		t = median(c, host, b->rounds, SECONDS);
		speed = t / median(c, way, b->rounds, SECONDS);
		cpu = total(c, way, b->rounds, GUEST) / total(c, host, b->rounds, GUEST);
		least = way == PAGES && c->size < 65536 ? P2P_SPEED_4K : P2P_SPEED;
		print_size(size, sizeof(size), c->size);
		printf("%-6s %5s %9.1f %9.1f | %6.2f %-13s | %5.2f %-13s %7.2f | %9.2f\n",
		       c->write ? "write" : "read", size, t * 1e6, t / speed * 1e6, speed,
		       compare_judge(speed, least, 1, speed_spread, missed), cpu,
		       compare_judge(cpu, P2P_CPU, 0, cpu_spread, missed),
		       total(c, way, b->rounds, THREAD) / total(c, host, b->rounds, THREAD),
		       t / median(c, host + 1, b->rounds, SECONDS));
	}
}

static int report_p2pdma(const struct bench *b, const struct cell *cell, int cells)
{
	const struct cell *c;
	char size[16];
	int missed = 0;

	printf("\n%d rounds\n", b->rounds);
	report_pair(b, cell, cells, "the module over P2PDMA pages : host memory in 2-MiB pages",
		    MODULE, HOST_A, &missed);
	report_pair(b, cell, cells, "pread and pwrite on these pages : host memory in 4-KiB pages",
		    PAGES, SMALL_A, &missed);
	printf("\nof both, the pages in the process : the module\n\n");
	for (c = cell; c < cell + cells; c++) {
		print_size(size, sizeof(size), c->size);
		printf("%-6s %5s speed %5.2f, CPU %5.2f\n", c->write ? "write" : "read", size,
		       median(c, MODULE, b->rounds, SECONDS) / median(c, PAGES, b->rounds, SECONDS),
		       total(c, PAGES, b->rounds, GUEST) / total(c, MODULE, b->rounds, GUEST));
	}
	printf("\ntargets: speed >= %.2f (pages at 4 KiB: %.2f), CPU of the guest <= %.1f: %s\n",
	       P2P_SPEED, P2P_SPEED_4K, P2P_CPU,
	       missed ? "MISSED" : "met, or missed by less than the spread where it says so");
	return missed ? 1 : 0;
}

static int parse(char *ops, char *sizes, struct cell *cell, int max)
{
	char *op, *size, *outer, *inner, copy[256];
	int n = 0;

	for (op = strtok_r(ops, ",", &outer); op; op = strtok_r(NULL, ",", &outer)) {
		snprintf(copy, sizeof(copy), "%s", sizes);
		for (size = strtok_r(copy, ",", &inner); size && n < max;
		     size = strtok_r(NULL, ",", &inner), n++) {
			cell[n].write = !strcmp(op, "write");
			cell[n].size = t_size(size);
			if (cell[n].size > BUFFER || cell[n].size % 4096)
				t_die("%s: a multiple of 4K, 8M at most", size);
		}
	}
	return n;
}

/* Host memory in pages of 4 KiB, present. */
static void *small_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, size, MADV_NOHUGEPAGE))
		t_die("mmap: %s", strerror(errno));
	memset(p, 1, size);
	return p;
}

static void set_up_p2pdma(struct bench *b)
{
	struct nvfs_ogds_pages view;

	if (nvfs_pages(&b->map, &view))
		t_die("%s", nvfs_error());
	b->at[PAGES] = (char *)(uintptr_t)view.pages + view.offset;
	b->at[SMALL_A] = small_pages(BUFFER);
	b->at[SMALL_B] = small_pages(BUFFER);
}

int main(int argc, char **argv)
{
	static const enum way by_hook[] = { HOST_A, HOST_B, MODULE, SCATTER };
	static const enum way by_p2pdma[] = { HOST_A, HOST_B, MODULE, SMALL_A, SMALL_B, PAGES };
	static const struct option opts[] = {
		{ "file", 1, 0, 'f' }, { "rounds", 1, 0, 'r' }, { "ms", 1, 0, 'm' },
		{ "ops", 1, 0, 'o' }, { "sizes", 1, 0, 's' }, { "p2pdma", 0, 0, 'p' }, { 0 },
	};
	char ops[64] = "read,write", sizes[64] = "4K,64K,1M,8M";
	struct bench b = { .rounds = 15, .ms = 60, .way = by_hook, .ways = 4 };
	struct cell *cell = calloc(16, sizeof(*cell));
	int o, cells, i, round;
	bool huge[2];

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'f': b.file = optarg; break;
		case 'r': b.rounds = atoi(optarg); break;
		case 'm': b.ms = atoi(optarg); break;
		case 'o': snprintf(ops, sizeof(ops), "%s", optarg); break;
		case 's': snprintf(sizes, sizeof(sizes), "%s", optarg); break;
		case 'p': b.way = by_p2pdma, b.ways = 6; break;
		default: b.file = NULL;
		}
	}
	if (!b.file || b.rounds < 1 || b.rounds > MAX_ROUNDS || b.ms < 1 || !cell) {
		fputs("usage: nvfs_bench --file F [--p2pdma] [--rounds 1..101] [--ms T]\n"
		      "                  [--ops read,write] [--sizes 4K,64K,1M,8M]\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	cells = parse(ops, sizes, cell, 16);
	t_file_make(b.file, FILE_SIZE, 1);
	if (b.way == by_hook)
		start_child(&b);
	setenv("GPU_SIM_SCATTER", "2m", 1);
	set_up_module(&b);
	if (b.way == by_p2pdma)
		set_up_p2pdma(&b);
	for (i = 0; i < 2; i++)
		b.at[HOST_A + i] = t_host_alloc(BUFFER, &huge[i]);
	if (!huge[0] || !huge[1])
		t_die("no huge pages: echo 16 > /proc/sys/vm/nr_hugepages");

	for (i = 0; i < cells; i++)
		calibrate(&b, &cell[i]);
	for (round = 0; round < b.rounds; round++) {
		for (i = 0; i < cells; i++)
			run_cell(&b, &cell[i], round);
		printf(".");
		fflush(stdout);
	}
	putchar('\n');
	if (b.way == by_p2pdma)
		return report_p2pdma(&b, cell, cells);
	close(b.to_child);
	wait(NULL);
	return report(&b, cell, cells);
}
