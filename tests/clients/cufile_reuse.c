// SPDX-License-Identifier: MIT
/*
 * cufile_reuse.c - GPU memory that is freed and given out again at the same address, under load.
 *
 *   cufile_reuse --dir D [--seconds N] [--threads N] [--seed N] [--most N] [--vmm]
 *
 * Each thread lives through allocations: it takes memory at the address of its last one, on purpose
 * (others that it is given are held until that one comes), registers it or not, reads into it
 * with any size and alignment by a buffered or an O_DIRECT descriptor, looks at every byte and at
 * those beside them, and frees it; sometimes with the registration left behind. A library that
 * takes the new memory for the old one lets the bytes go where nobody looks, and what was
 * there before is found. Registering memory whose address was registered in an earlier life is
 * no error. --vmm: memory of cuMemCreate, mapped at one address again and again.
 *
 * Then --most times (2): 90 % of the GPU's free memory is taken, read into, freed, taken again at
 * once, which must work, and read into.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define K 1024UL
#define M (1024 * K)
#define FILE_SIZE (16 * M)
#define GUARD 64		/* bytes looked at on both sides of a request */
#define ROOM (4 * M)		/* the largest size, in whole 2 MiB */
#define TRIES 6			/* allocations until the old address comes */
#define MAX_THREADS 64
#define MAX_LEFT 4096

enum life { PLAIN, REGISTERED, LEFT, LIVES };

/* Up to 1 MiB they share a 2-MiB object of the driver with others; these come back soonest. */
static const size_t sizes[] = { 64 * K, 64 * K, 192 * K, 192 * K, 1 * M, 1 * M, 2 * M, 3 * M };

struct user {
	unsigned int n;
	pthread_t thread;
	uint64_t rnd;
	unsigned char *got, *want;
	CUdeviceptr last;	/* where the last life was */
	size_t last_size;
	bool left;		/* its registration was left behind */
	CUdeviceptr room;	/* --vmm: addresses for the largest memory */
};

static struct {
	const char *dir;
	double seconds;
	unsigned int threads, most;
	bool vmm;
	uint64_t seed;
	char path[4096];
	unsigned char *file;
	CUfileHandle_t fh[2];	/* buffered; O_DIRECT where the file system has it */
	int fd[2], files;
	struct t_gpu gpu;
	double until;
	pthread_mutex_t lock;	/* gone, gones */
	CUdeviceptr gone[MAX_LEFT];	/* addresses of registrations that were left behind */
	unsigned int gones;
	atomic_ulong lives, again, left, reads, bytes;
} all = { .seconds = 4, .threads = 6, .most = 2, .seed = 1, .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static size_t below(struct user *u, size_t n)
{
	return next(&u->rnd) % n;
}

static void ok(CUfileError_t e, const char *what, CUdeviceptr mem, size_t size)
{
	if (e.err)
		t_die("BAD %s of %zu bytes at 0x%llx: %d: %s", what, size, (unsigned long long)mem,
		      (int)e.err, cufileop_status_error(e.err));
}

/* -- requests -- */

/* `n` bytes of the file at `off` to `at` of the memory; base: advanced by the caller, or not. */
static void read_at(struct user *u, CUdeviceptr mem, size_t size, size_t at, size_t n, off_t off)
{
	size_t front = at < GUARD ? at : GUARD, rest = size - at - n;
	unsigned int f = below(u, all.files), advanced = below(u, 2);
	unsigned char old = below(u, 256);
	size_t len = front + n + (rest < GUARD ? rest : GUARD), i;
	ssize_t r;

	memset(u->want, old, len);
	t_gpu_put(mem + at - front, u->want, len);
	r = cuFileRead(all.fh[f], (void *)(uintptr_t)(mem + (advanced ? at : 0)), n, off,
		       advanced ? 0 : at);
	if (r != (ssize_t)n)
		t_die("BAD read of %zu bytes at %lld to 0x%llx + %zu of %zu: %zd (%s)", n,
		      (long long)off, (unsigned long long)mem, at, size, r,
		      r == -1 && IS_CUFILE_ERR(errno) ? CUFILE_ERRSTR(errno) : strerror(errno));
	memcpy(u->want + front, all.file + off, n);
	t_gpu_get(u->got, mem + at - front, len);
	for (i = 0; i < len && u->got[i] == u->want[i]; i++)
		;
	if (i < len)
		t_die("BAD thread %u: byte %zd of %zu, read from %lld to 0x%llx + %zu of %zu, is 0x%02x, 0x%02x was expected; 0x%02x was there before",
		      u->n, (ssize_t)i - (ssize_t)front, n, (long long)off,
		      (unsigned long long)mem, at, size, u->got[i], u->want[i], old);
	atomic_fetch_add(&all.reads, 1);
	atomic_fetch_add(&all.bytes, n);
}

static void read_some(struct user *u, CUdeviceptr mem, size_t size)
{
	size_t top = 1UL << below(u, 24), n, at;
	off_t off;

	if (top > size)
		top = size;
	n = 1 + below(u, top);
	at = below(u, size - n + 1);
	off = below(u, FILE_SIZE - n + 1);
	/* every other one with blocks that lie alike in file and memory, as direct requests want */
	if (below(u, 2)) {
		at &= ~4095UL;
		off &= ~4095L;
		if (n > 4096)
			n &= ~4095UL;
	}
	read_at(u, mem, size, at, n, off);
}

/* -- lives -- */

static void cuda(CUresult r, const char *what)
{
	const char *name = "?";

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorName(r, &name);
	t_die("%s: %s", what, name);
}

/* Other memory at the thread's one address; the mapping alone keeps it. */
static CUdeviceptr map_memory(struct user *u, size_t size)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.allocFlags = { .gpuDirectRDMACapable = 1 },
	};
	const CUmemAccessDesc desc = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle h;

	if (!u->room)
		cuda(cuMemAddressReserve(&u->room, ROOM, 0, 0, 0), "cuMemAddressReserve");
	cuda(cuMemCreate(&h, size, &prop, 0), "cuMemCreate");
	cuda(cuMemMap(u->room, size, 0, h, 0), "cuMemMap");
	cuda(cuMemSetAccess(u->room, size, &desc, 1), "cuMemSetAccess");
	cuda(cuMemRelease(h), "cuMemRelease");
	return u->room;
}

static void give_back(CUdeviceptr mem, size_t size)
{
	if (all.vmm)
		cuda(cuMemUnmap(mem, size), "cuMemUnmap");
	else
		t_gpu_free(mem);
}

/* Memory of the last life's address and size; others are taken and given back meanwhile. */
static CUdeviceptr take_again(struct user *u, size_t size)
{
	CUdeviceptr held[TRIES], mem = 0;
	unsigned int n = 0;

	while (n < TRIES && !mem && cuMemAlloc(&held[n], size) == CUDA_SUCCESS) {
		if (held[n] == u->last)
			mem = held[n];
		else
			n++;
	}
	/* none of them, or no room for so many: any will do, as long as all the others are back */
	while (n)
		t_gpu_free(held[--n]);
	return mem ? mem : t_gpu_alloc(size);
}

static void note_left(CUdeviceptr mem)
{
	unsigned int i;

	pthread_mutex_lock(&all.lock);
	for (i = 0; i < all.gones && all.gone[i] != mem; i++)
		;
	if (i == all.gones && i < MAX_LEFT)
		all.gone[all.gones++] = mem;
	pthread_mutex_unlock(&all.lock);
}

static void live(struct user *u)
{
	size_t size = u->last && below(u, 4) ? u->last_size :
					       sizes[below(u, sizeof(sizes) / sizeof(sizes[0]))];
	enum life kind = below(u, LIVES);
	unsigned int n = 1 + below(u, 4);
	CUdeviceptr mem;

	if (all.vmm) {
		size = (size + 2 * M - 1) & ~(2 * M - 1);
		mem = map_memory(u, size);
	} else {
		mem = u->last && size == u->last_size ? take_again(u, size) : t_gpu_alloc(size);
	}
	if (mem == u->last)
		atomic_fetch_add(&all.again, 1);
	/* before a registration, too: then the old one is all that the library knows */
	if (u->left && mem == u->last)
		read_some(u, mem, size);
	if (kind != PLAIN)
		ok(cuFileBufRegister((void *)(uintptr_t)mem, size, 0), "cuFileBufRegister", mem, size);
	while (n--)
		read_some(u, mem, size);
	if (kind == REGISTERED)
		ok(cuFileBufDeregister((void *)(uintptr_t)mem), "cuFileBufDeregister", mem, size);
	if (kind == LEFT)
		note_left(mem);
	give_back(mem, size);
	u->last = mem;
	u->last_size = size;
	u->left = kind == LEFT;
	atomic_fetch_add(&all.lives, 1);
	atomic_fetch_add(&all.left, kind == LEFT);
}

static void *work(void *arg)
{
	struct user *u = arg;

	if (cuCtxSetCurrent(all.gpu.ctx) != CUDA_SUCCESS)
		t_die("cuCtxSetCurrent failed");
	while (t_now() < all.until)
		live(u);
	return NULL;
}

/* -- most of the memory -- */

static CUdeviceptr take_most(size_t size, const char *when)
{
	CUdeviceptr mem;
	CUresult r = cuMemAlloc(&mem, size);
	size_t left = 0, total = 0;
	const char *name = "?";

	if (r == CUDA_SUCCESS)
		return mem;
	cuGetErrorName(r, &name);
	cuMemGetInfo(&left, &total);
	t_die("BAD %zu MiB, 90 %% of what was free, %s: %s; %zu MiB of %zu are free", size / M, when,
	      name, left / M, total / M);
}

static void read_most(struct user *u, CUdeviceptr mem, size_t size)
{
	static const size_t n[] = { 4096, 64 * K, 1 * M, 16 * M };
	unsigned int i;

	for (i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		read_at(u, mem, size, 0, n[i], 0);
		read_at(u, mem, size, size - n[i], n[i], FILE_SIZE - n[i]);
		read_at(u, mem, size, size / 2 + 777, n[i] - 777, 123);
	}
}

static void take_and_free(struct user *u, unsigned int round)
{
	size_t left, total, size;
	bool reg = round % 2;
	CUdeviceptr mem;

	if (cuMemGetInfo(&left, &total) != CUDA_SUCCESS)
		t_die("cuMemGetInfo failed");
	size = left / 10 * 9 & ~(2 * M - 1);
	if (size < 20 * M)
		t_die("only %zu MiB of GPU memory are free", left / M);
	mem = take_most(size, "at first");
	if (reg)
		ok(cuFileBufRegister((void *)(uintptr_t)mem, size, 0), "cuFileBufRegister", mem, size);
	read_most(u, mem, size);
	if (reg)
		ok(cuFileBufDeregister((void *)(uintptr_t)mem), "cuFileBufDeregister", mem, size);
	t_gpu_free(mem);
	mem = take_most(size, "right after a read into them and cuMemFree");
	read_most(u, mem, size);
	t_gpu_free(mem);
}

/* -- the run -- */

static void make_file(void)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	int i;

	snprintf(all.path, sizeof(all.path), "%s/reuse.dat", all.dir);
	t_file_make(all.path, FILE_SIZE, all.seed);
	all.file = malloc(FILE_SIZE);
	if (!all.file)
		t_die("out of memory");
	t_pattern_fill(all.file, FILE_SIZE, all.seed, 0);
	for (i = 0; i < 2; i++) {
		all.fd[i] = open(all.path, O_RDWR | O_CLOEXEC | (i ? O_DIRECT : 0));
		if (all.fd[i] < 0 && i)
			break;
		if (all.fd[i] < 0)
			t_die("%s: %s", all.path, strerror(errno));
		descr.handle.fd = all.fd[i];
		ok(cuFileHandleRegister(&all.fh[i], &descr), "cuFileHandleRegister", 0, 0);
		all.files++;
	}
}

static void run(void)
{
	struct user *u = calloc(all.threads, sizeof(*u));
	unsigned int i;

	if (!u)
		t_die("out of memory");
	for (i = 0; i < all.threads; i++) {
		u[i].n = i;
		u[i].rnd = all.seed * 1000 + i;
		u[i].got = malloc(FILE_SIZE + 2 * GUARD);
		u[i].want = malloc(FILE_SIZE + 2 * GUARD);
		if (!u[i].got || !u[i].want)
			t_die("out of memory");
	}
	all.until = t_now() + all.seconds;
	for (i = 0; i < all.threads; i++)
		if (pthread_create(&u[i].thread, NULL, work, &u[i]))
			t_die("pthread_create: %s", strerror(errno));
	for (i = 0; i < all.threads; i++)
		pthread_join(u[i].thread, NULL);
	/* who left them behind cleans up at last; some were replaced, and are not there any more */
	for (i = 0; i < all.gones; i++)
		cuFileBufDeregister((void *)(uintptr_t)all.gone[i]);
	for (i = 0; i < all.most; i++)
		take_and_free(&u[0], i);
	for (i = 0; i < all.threads; i++) {
		if (u[i].room)
			cuda(cuMemAddressFree(u[i].room, ROOM), "cuMemAddressFree");
		free(u[i].got);
		free(u[i].want);
	}
	free(u);
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: cufile_reuse --dir D [--seconds N] [--threads N] [--seed N] [--most N] [--vmm]\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "dir", 1, 0, 'd' }, { "seconds", 1, 0, 'n' }, { "threads", 1, 0, 't' },
		{ "seed", 1, 0, 's' }, { "most", 1, 0, 'm' }, { "vmm", 0, 0, 'v' }, { 0 },
	};
	int o, i;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'd': all.dir = optarg; break;
		case 'n': all.seconds = strtod(optarg, NULL); break;
		case 't': all.threads = strtoul(optarg, NULL, 0); break;
		case 's': all.seed = strtoull(optarg, NULL, 0); break;
		case 'm': all.most = strtoul(optarg, NULL, 0); break;
		case 'v': all.vmm = true; break;
		default: usage();
		}
	}
	if (!all.dir || !all.threads || all.threads > MAX_THREADS || optind < argc)
		usage();
	t_gpu_open(&all.gpu, 0);
	make_file();
	run();
	for (i = 0; i < all.files; i++) {
		cuFileHandleDeregister(all.fh[i]);
		close(all.fd[i]);
	}
	ok(cuFileDriverClose(), "cuFileDriverClose", 0, 0);
	unlink(all.path);
	printf("cufile_reuse: seed %llu: %lu lives, %lu of them at the address of the one before, %lu left their registration behind; %lu reads, %lu bytes compared; 90 %% of the memory %u times\n",
	       (unsigned long long)all.seed, atomic_load(&all.lives), atomic_load(&all.again),
	       atomic_load(&all.left), atomic_load(&all.reads), atomic_load(&all.bytes), all.most);
	if (!atomic_load(&all.again) || !atomic_load(&all.left))
		t_die("BAD no address came twice, or no registration was left behind: nothing was tried");
	free(all.file);
	return 0;
}
