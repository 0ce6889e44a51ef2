// SPDX-License-Identifier: MIT
/*
 * cufile_bar.c - reads that end in GPU memory through BAR1, on a simulated card:
 *
 *   cufile_bar read --file F [--direct] [--threads N] [--reads N] [--seed N]
 *   cufile_bar kept --file F
 *   cufile_bar lie --file F
 *   cufile_bar fault --file F
 *   cufile_bar late --file F
 *   cufile_bar gone --file F
 *   cufile_bar pages --file F
 *
 *   read    random sizes and places, registered memory and other, of threads: with "routes" of
 *           bar alone. --direct: by O_DIRECT
 *   kept    what is registered stays allocated when CUDA frees it, until it is deregistered; what
 *           is not registered goes back when nobody used it for a while
 *   lie     the driver shows other memory than asked for: bounce, for good
 *   fault   the driver refuses every request: bounce, for good
 *   late    it refuses from the second buffer on: the first one is not touched by that
 *   gone    says "held", waits for a line on stdin while the card is unbound; then the same
 *           read is refused, and everything is given back
 *   pages   memory that was read through BAR1 before it was registered goes direct afterwards: its
 *           pages can be those of the drive's own transfers. With a module, and any routes
 *
 * Each byte of a read and those beside it are looked at by the card's BAR in sysfs. All but
 * read, kept and gone want "routes" of bar and bounce. In a guest, as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opengds.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_random.h"
#include "t_vram.h"

#define K 1024UL
#define M (1024 * K)
#define FILE_SIZE (24 * M)
#define GUARD 64		/* bytes looked at on both sides of a request */
#define LARGEST (4 * M)		/* of a read, but for the whole of the shared buffer */
#define MAX_THREADS 16

/* Memory of a thread. Up to 1 MiB it shares the driver's object with others'. */
static const struct kind {
	const char *name;
	size_t size;
	bool registered;
} kinds[] = {
	{ "registered, of its own", 9 * M + 12 * K, true },
	{ "registered, a part of a block", 70001, true },
	{ "not registered, of its own", 3 * M, false },
	{ "not registered, a part of a block", 100000, false },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct user {
	unsigned int n;
	pthread_t thread;
	uint64_t rnd;
	unsigned char *got, *want;
	CUdeviceptr mem[KINDS];
};

static struct {
	const char *path;
	bool direct;
	unsigned int threads, reads;
	uint64_t seed;
	unsigned char *file;
	int fd;
	CUfileHandle_t fh;
	struct t_gpu gpu;
	CUdeviceptr shared;	/* registered; each thread has a stripe of it */
	atomic_ulong done, bytes;
} all = { .threads = 4, .reads = 60, .seed = 1 };

static void ok(CUfileError_t e, const char *what)
{
	if (e.err)
		t_die("BAD %s: %d: %s", what, (int)e.err, cufileop_status_error(e.err));
}

static void *pointer(CUdeviceptr mem)
{
	return (void *)(uintptr_t)mem;
}

/* -- one read -- */

static void went(unsigned int route, size_t n, const char *what)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	if (ogds_last_io(&r))
		t_die("BAD %s: no report", what);
	if (r.bytes[route] != n)
		t_die("BAD %s: %llu of %zu bytes by %s, %llu by bounce", what,
		      (unsigned long long)r.bytes[route], n, ogds_route_name(route),
		      (unsigned long long)r.bytes[OGDS_ROUTE_BOUNCE]);
}

static void is_planned(unsigned int route, CUdeviceptr at, size_t n, off_t off, const char *what)
{
	struct ogds_plan p = OGDS_PLAN_INIT;

	if (ogds_explain(all.fh, pointer(at), n, off, &p))
		t_die("BAD %s: no plan", what);
	if (p.error || p.npieces != 1 || p.piece[0].route != route)
		t_die("BAD %s: planned are %u pieces, error %d, %s, wanted %s", what, p.npieces,
		      p.error, ogds_route_name(p.piece[0].route), ogds_route_name(route));
}

/* What the memory holds is `want`, seen from elsewhere. */
static void compare(struct user *u, CUdeviceptr mem, size_t len, size_t front, const char *what)
{
	size_t i;

	t_vram_get(u->got, mem, len);
	for (i = 0; i < len && u->got[i] == u->want[i]; i++)
		;
	if (i < len)
		t_die("BAD %s, thread %u: byte %zd of the request is 0x%02x, 0x%02x was expected",
		      what, u->n, (ssize_t)i - (ssize_t)front, u->got[i], u->want[i]);
}

/* `n` bytes of the file at `off` to `at` of the memory, all of them by `route`. */
static void read_by(struct user *u, unsigned int route, CUdeviceptr mem, size_t size, size_t at,
		    size_t n, off_t off, const char *what)
{
	size_t front = at < GUARD ? at : GUARD, rest = size - at - n;
	size_t len = front + n + (rest < GUARD ? rest : GUARD);
	bool advanced = t_random_below(&u->rnd, 2);
	ssize_t r;

	t_random_fresh(&u->rnd, u->want, len);
	t_gpu_put(mem + at - front, u->want, len);
	r = cuFileRead(all.fh, pointer(mem + (advanced ? at : 0)), n, off, advanced ? 0 : at);
	if (r != (ssize_t)n)
		t_die("BAD %s: read of %zu at %lld to %zu of %zu: %zd, errno %d", what, n,
		      (long long)off, at, size, r, errno);
	went(route, n, what);
	is_planned(route, mem + at, n, off, what);
	memcpy(u->want + front, all.file + off, n);
	compare(u, mem + at - front, len, front, what);
	atomic_fetch_add(&all.done, 1);
	atomic_fetch_add(&all.bytes, n);
}

/* The first request of unregistered memory has no mapping yet, and here no other way. */
static void first_is_refused(CUdeviceptr mem, const char *what)
{
	ssize_t r = cuFileRead(all.fh, pointer(mem), 1, 0, 0);

	if (r != -1 || errno != CU_FILE_IO_NOT_SUPPORTED)
		t_die("BAD %s: the first read: %zd, errno %d", what, r, errno);
}

/* -- the parts -- */

static struct user *new_user(unsigned int n)
{
	struct user *u = calloc(1, sizeof(*u));

	if (!u)
		t_die("out of memory");
	u->n = n;
	u->rnd = all.seed * 1000 + n;
	u->got = malloc(FILE_SIZE + 2 * GUARD);
	u->want = malloc(FILE_SIZE + 2 * GUARD);
	if (!u->got || !u->want)
		t_die("out of memory");
	return u;
}

static void free_user(struct user *u)
{
	free(u->got);
	free(u->want);
	free(u);
}

static void read_some(struct user *u, CUdeviceptr mem, size_t size, size_t from, size_t room,
		      const char *what)
{
	size_t top = 1UL << t_random_below(&u->rnd, 23), n, at;

	if (top > LARGEST)
		top = LARGEST;
	if (top > room)
		top = room;
	n = 1 + t_random_below(&u->rnd, top);
	at = from + t_random_below(&u->rnd, room - n + 1);
	read_by(u, OGDS_ROUTE_BAR, mem, size, at, n, t_random_below(&u->rnd, FILE_SIZE - n + 1),
		what);
}

static void *work(void *arg)
{
	size_t stripe = FILE_SIZE / all.threads;
	struct user *u = arg;
	unsigned int i, k;

	if (cuCtxSetCurrent(all.gpu.ctx) != CUDA_SUCCESS)
		t_die("cuCtxSetCurrent failed");
	for (k = 0; k < KINDS; k++) {
		u->mem[k] = t_gpu_alloc(kinds[k].size);
		if (kinds[k].registered)
			ok(cuFileBufRegister(pointer(u->mem[k]), kinds[k].size, 0), kinds[k].name);
		else
			first_is_refused(u->mem[k], kinds[k].name);
	}
	for (i = 0; i < all.reads; i++) {
		k = t_random_below(&u->rnd, KINDS + 1);
		if (k < KINDS)
			read_some(u, u->mem[k], kinds[k].size, 0, kinds[k].size, kinds[k].name);
		else
			read_some(u, all.shared, FILE_SIZE, u->n * stripe + GUARD,
				  stripe - 2 * GUARD, "registered, of all threads");
	}
	for (k = 0; k < KINDS; k++) {
		if (kinds[k].registered)
			ok(cuFileBufDeregister(pointer(u->mem[k])), kinds[k].name);
		t_gpu_free(u->mem[k]);
	}
	return NULL;
}

static void part_read(void)
{
	struct user *u[MAX_THREADS];
	unsigned int i;

	all.shared = t_gpu_alloc(FILE_SIZE);
	ok(cuFileBufRegister(pointer(all.shared), FILE_SIZE, 0), "cuFileBufRegister");
	for (i = 0; i < all.threads; i++)
		u[i] = new_user(i);
	/* then all of it is mapped: of two threads that map one part, one has to go another way */
	read_by(u[0], OGDS_ROUTE_BAR, all.shared, FILE_SIZE, 0, FILE_SIZE, 0, "the whole");
	for (i = 0; i < all.threads; i++)
		if (pthread_create(&u[i]->thread, NULL, work, u[i]))
			t_die("pthread_create: %s", strerror(errno));
	for (i = 0; i < all.threads; i++) {
		pthread_join(u[i]->thread, NULL);
		free_user(u[i]);
	}
	ok(cuFileBufDeregister(pointer(all.shared)), "cuFileBufDeregister");
	t_gpu_free(all.shared);
}

static void counter_is(const char *name, long want, const char *when)
{
	long is = t_vram_counter(0, name);

	if (is != want)
		t_die("BAD %s: %s is %ld, wanted %ld", when, name, is, want);
}

/* Soon, but not without requests: one of them finds what nobody used for a while. */
static void comes_back(CUdeviceptr other, long want)
{
	double until = t_now() + 20;

	while (t_vram_counter(0, "free_pages") != want) {
		if (t_now() > until)
			t_die("BAD idle memory does not come back: %ld pages of %ld are free",
			      t_vram_counter(0, "free_pages"), want);
		usleep(300000);
		cuFileRead(all.fh, pointer(other), 1, 0, 0);
	}
}

static void part_kept(void)
{
	struct user *u = new_user(0);
	CUdeviceptr mem, other;
	long before;

	other = t_gpu_alloc(70 * M);	/* so much has no mapping, unless it is registered */
	before = t_vram_counter(0, "free_pages");
	mem = t_gpu_alloc(4 * M);
	ok(cuFileBufRegister(pointer(mem), 4 * M, 0), "cuFileBufRegister");
	read_by(u, OGDS_ROUTE_BAR, mem, 4 * M, 5, 3 * M, 7, "registered");
	counter_is("rm_names", 1, "registered");
	counter_is("rm_views", 1, "registered");
	t_gpu_free(mem);
	counter_is("free_pages", before - 64, "freed, and registered yet");
	ok(cuFileBufDeregister(pointer(mem)), "cuFileBufDeregister");
	counter_is("rm_views", 0, "deregistered");
	counter_is("rm_names", 0, "deregistered");
	counter_is("free_pages", before, "deregistered");

	mem = t_gpu_alloc(2 * M);
	first_is_refused(mem, "not registered");
	read_by(u, OGDS_ROUTE_BAR, mem, 2 * M, 9, 1 * M, 3, "not registered");
	t_gpu_free(mem);
	counter_is("free_pages", before - 32, "freed, and in use a moment ago");
	comes_back(other, before);
	counter_is("rm_names", 0, "idle");
	t_gpu_free(other);
	free_user(u);
}

static CUdeviceptr registered(size_t size)
{
	CUdeviceptr mem = t_gpu_alloc(size);

	ok(cuFileBufRegister(pointer(mem), size, 0), "cuFileBufRegister");
	return mem;
}

static void drop(CUdeviceptr mem)
{
	ok(cuFileBufDeregister(pointer(mem)), "cuFileBufDeregister");
	t_gpu_free(mem);
}

/* The driver is well again after the first read: the way stays off all the same. */
static void part_off(const char *parameter, const char *value)
{
	struct user *u = new_user(0);
	CUdeviceptr mem = registered(1 * M), next;

	t_vram_parameter(parameter, value);
	read_by(u, OGDS_ROUTE_BOUNCE, mem, 1 * M, 1000, 60000, 11, parameter);
	t_vram_parameter(parameter, "0");
	read_by(u, OGDS_ROUTE_BOUNCE, mem, 1 * M, 0, 100, 5, "the same memory again");
	next = registered(3 * M);
	read_by(u, OGDS_ROUTE_BOUNCE, next, 3 * M, 4097, 5000, 0, "other memory");
	drop(next);
	drop(mem);
	free_user(u);
}

static void part_late(void)
{
	struct user *u = new_user(0);
	CUdeviceptr mem = registered(1 * M), next = registered(3 * M), third;

	read_by(u, OGDS_ROUTE_BAR, mem, 1 * M, 1, 1000, 0, "before");
	t_vram_parameter("fault_rm", "-1:12");	/* ENOMEM */
	read_by(u, OGDS_ROUTE_BOUNCE, next, 3 * M, 1, 1000, 0, "a refused second name");
	read_by(u, OGDS_ROUTE_BAR, mem, 1 * M, 77, 5000, 1, "mapped before");
	t_vram_parameter("fault_rm", "0");
	third = registered(3 * M);
	read_by(u, OGDS_ROUTE_BAR, third, 3 * M, 100, 50000, 9, "after");
	drop(third);
	drop(next);
	drop(mem);
	free_user(u);
}

static void part_gone(void)
{
	struct user *u = new_user(0);
	CUdeviceptr mem = registered(4 * M);
	ssize_t r;

	read_by(u, OGDS_ROUTE_BAR, mem, 4 * M, 0, 60000, 0, "before");
	printf("held\n");
	fflush(stdout);
	(void)getchar();
	r = cuFileRead(all.fh, pointer(mem), 60000, 0, 0);
	if (r != -1 || errno != CU_FILE_IO_NOT_SUPPORTED)
		t_die("BAD a read without the card: %zd, errno %d", r, errno);
	drop(mem);
	free_user(u);
}

static void part_pages(void)
{
	struct user *u = new_user(0);
	CUdeviceptr mem = t_gpu_alloc(2 * M);

	/* the second request of an allocation makes it visible */
	if (cuFileRead(all.fh, pointer(mem), 100, 0, 1) != 100)
		t_die("BAD the first read: errno %d", errno);
	read_by(u, OGDS_ROUTE_BAR, mem, 2 * M, 1, 1000, 5, "not registered");
	counter_is("rm_views", 1, "not registered");
	ok(cuFileBufRegister(pointer(mem), 2 * M, 0), "cuFileBufRegister");
	counter_is("rm_views", 0, "registered");
	read_by(u, OGDS_ROUTE_NVFS, mem, 2 * M, 64 * K, 1 * M, 128 * K, "registered");
	/* a part of a block, and whole ones once more */
	read_by(u, OGDS_ROUTE_BAR, mem, 2 * M, 3, 500, 1, "an edge");
	read_by(u, OGDS_ROUTE_NVFS, mem, 2 * M, 0, 2 * M, 4 * M, "after the edge");
	drop(mem);
	free_user(u);
}

/* -- around them -- */

static void open_all(void)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	t_gpu_open(&all.gpu, 0);
	t_file_make(all.path, FILE_SIZE, all.seed);
	all.file = malloc(FILE_SIZE);
	if (!all.file)
		t_die("out of memory");
	t_pattern_fill(all.file, FILE_SIZE, all.seed, 0);
	all.fd = t_open(all.path, O_RDWR | (all.direct ? O_DIRECT : 0));
	/* cached: the reads are to find it there */
	if (!all.direct && pread(all.fd, all.file, FILE_SIZE, 0) != (ssize_t)FILE_SIZE)
		t_die("%s: cannot be read", all.path);
	descr.handle.fd = all.fd;
	ok(cuFileHandleRegister(&all.fh, &descr), "cuFileHandleRegister");
}

static void close_all(void)
{
	cuFileHandleDeregister(all.fh);
	ok(cuFileDriverClose(), "cuFileDriverClose");
	close(all.fd);
	unlink(all.path);
	free(all.file);
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: cufile_bar read|kept|lie|fault|late|gone|pages --file F [--direct]\n"
	      "                  [--threads N] [--reads N] [--seed N]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "file", 1, 0, 'f' }, { "direct", 0, 0, 'd' }, { "threads", 1, 0, 't' },
		{ "reads", 1, 0, 'r' }, { "seed", 1, 0, 's' }, { 0 },
	};
	const char *part = argc > 1 ? argv[1] : "";
	int o;

	optind = 2;
	while (argc > 1 && (o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'f': all.path = optarg; break;
		case 'd': all.direct = true; break;
		case 't': all.threads = strtoul(optarg, NULL, 0); break;
		case 'r': all.reads = strtoul(optarg, NULL, 0); break;
		case 's': all.seed = strtoull(optarg, NULL, 0); break;
		default: usage();
		}
	}
	if (!all.path || !all.threads || all.threads > MAX_THREADS || optind < argc)
		usage();
	open_all();
	if (!strcmp(part, "read"))
		part_read();
	else if (!strcmp(part, "kept"))
		part_kept();
	else if (!strcmp(part, "lie"))
		part_off("rm_lie", "64");
	else if (!strcmp(part, "fault"))
		part_off("fault_rm", "-1");
	else if (!strcmp(part, "late"))
		part_late();
	else if (!strcmp(part, "gone"))
		part_gone();
	else if (!strcmp(part, "pages"))
		part_pages();
	else
		usage();
	close_all();
	printf("cufile_bar %s: seed %llu: %lu reads, %lu bytes compared\n", part,
	       (unsigned long long)all.seed, atomic_load(&all.done), atomic_load(&all.bytes));
	return 0;
}
