// SPDX-License-Identifier: MIT
/*
 * cufile_vmm.c - reads that end in memory of cuMemCreate by stores through BAR1, on a simulated
 * card or a real GPU:
 *
 *   cufile_vmm --dir D [--seed N]
 *
 * Two pieces of memory are mapped beside each other in one reservation. Small reads of a cached
 * file go to each by bar, registered and not; the second piece is unmapped and another one mapped
 * at its address, then the same once more, with its registration left behind and without one: no
 * byte may be missing there, nor be found in the memory that was there before and lies elsewhere
 * now. What goes over both pieces, and memory that was made for no handle, bounces. Every byte of a
 * read and those beside it are compared. Nothing of the GPU's memory may be kept at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opengds.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_random.h"

#define M (1024 * 1024UL)
#define FILE_SIZE (4 * M)
#define PIECE (2 * M)
#define GUARD 64
#define MOST 60000UL		/* bytes of a read: up to 64 KiB stores are always taken */

static struct {
	const char *dir;
	char path[4096];
	uint64_t seed, rnd;
	unsigned char *file, got[MOST + 2 * GUARD], want[MOST + 2 * GUARD];
	int fd;
	CUfileHandle_t fh;
	struct t_gpu gpu;
	CUdeviceptr va;		/* of the first piece; the second one is behind it */
	unsigned long reads[2];	/* by bounce, by bar */
} all = { .seed = 1 };

static void cuda(CUresult r, const char *what)
{
	const char *name = "?";

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorName(r, &name);
	t_die("BAD %s: %s", what, name);
}

static void ok(CUfileError_t e, const char *what)
{
	if (e.err)
		t_die("BAD %s: %d: %s", what, (int)e.err, cufileop_status_error(e.err));
}

static void *pointer(CUdeviceptr mem)
{
	return (void *)(uintptr_t)mem;
}

/* -- memory -- */

static CUmemGenericAllocationHandle create(unsigned int types)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = types,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.allocFlags = { .gpuDirectRDMACapable = 1 },
	};
	CUmemGenericAllocationHandle h;

	cuda(cuMemCreate(&h, PIECE, &prop, 0), "cuMemCreate");
	return h;
}

static void map(CUdeviceptr at, CUmemGenericAllocationHandle h)
{
	const CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				       CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

	cuda(cuMemMap(at, PIECE, 0, h, 0), "cuMemMap");
	cuda(cuMemSetAccess(at, PIECE, &desc, 1), "cuMemSetAccess");
}

static void unmap(CUdeviceptr at)
{
	cuda(cuMemUnmap(at, PIECE), "cuMemUnmap");
}

/* -- one read -- */

static void read_at(CUdeviceptr at, size_t n, int bar, const char *what)
{
	struct ogds_report r = OGDS_REPORT_INIT;
	off_t off = t_random_below(&all.rnd, FILE_SIZE - n + 1);
	size_t i, len = n + 2 * GUARD;
	ssize_t got;

	t_random_fresh(&all.rnd, all.want, len);
	t_gpu_put(at - GUARD, all.want, len);
	got = cuFileRead(all.fh, pointer(at), n, off, 0);
	if (got != (ssize_t)n)
		t_die("BAD %s: read of %zu bytes at %lld: %zd, errno %d", what, n, (long long)off,
		      got, errno);
	if (ogds_last_io(&r) || r.bytes[bar ? OGDS_ROUTE_BAR : OGDS_ROUTE_BOUNCE] != n)
		t_die("BAD %s: of %zu bytes %llu by bar, %llu by bounce; the log says why", what, n,
		      (unsigned long long)r.bytes[OGDS_ROUTE_BAR],
		      (unsigned long long)r.bytes[OGDS_ROUTE_BOUNCE]);
	memcpy(all.want + GUARD, all.file + off, n);
	t_gpu_get(all.got, at - GUARD, len);
	for (i = 0; i < len && all.got[i] == all.want[i]; i++)
		;
	if (i < len)
		t_die("BAD %s: byte %zd of %zu is 0x%02x, 0x%02x was expected", what,
		      (ssize_t)i - GUARD, n, all.got[i], all.want[i]);
	all.reads[bar]++;
}

/* Some of any size, within the piece. */
static void reads_in(CUdeviceptr piece, int bar, const char *what)
{
	CUdeviceptr at;
	unsigned int i;
	size_t n;

	for (i = 0; i < 8; i++) {
		n = 1 + t_random_below(&all.rnd, MOST);
		at = piece + GUARD + t_random_below(&all.rnd, PIECE - n - 2 * GUARD);
		read_at(at, n, bar, what);
	}
}

/* -- the parts -- */

static void registered(CUdeviceptr piece, const char *what)
{
	ok(cuFileBufRegister(pointer(piece), PIECE, 0), what);
	reads_in(piece, 1, what);
}

/* The second piece, while `other` is unmapped from there and lies at `elsewhere`. */
static void replaced(CUdeviceptr elsewhere, CUmemGenericAllocationHandle old,
		     CUmemGenericAllocationHandle other, int left, const char *what)
{
	CUdeviceptr second = all.va + PIECE;
	unsigned char *was = malloc(PIECE), *is = malloc(PIECE);
	unsigned int i;

	if (!was || !is)
		t_die("out of memory");
	t_gpu_get(was, second, PIECE);
	unmap(second);
	map(second, other);
	if (old != other)
		map(elsewhere, old);
	/* nothing is known of it yet, whatever is registered or was read there before */
	read_at(second + 4096, 5000, 0, what);
	if (left)
		registered(second, what);
	else
		reads_in(second, 1, what);
	if (left)
		ok(cuFileBufDeregister(pointer(second)), what);
	if (old != other) {
		t_gpu_get(is, elsewhere, PIECE);
		for (i = 0; i < PIECE; i++)
			if (is[i] != was[i])
				t_die("BAD %s: byte %u of the memory that was there before has changed",
				      what, i);
		unmap(elsewhere);
	}
	free(was);
	free(is);
}

static void run(void)
{
	const unsigned int fd_type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CUmemGenericAllocationHandle a = create(fd_type), b = create(fd_type), c = create(fd_type);
	CUmemGenericAllocationHandle none = create(0);
	CUdeviceptr elsewhere, second;

	cuda(cuMemAddressReserve(&all.va, 3 * PIECE, 0, 0, 0), "cuMemAddressReserve");
	cuda(cuMemAddressReserve(&elsewhere, PIECE, 0, 0, 0), "cuMemAddressReserve");
	second = all.va + PIECE;
	map(all.va, a);
	map(second, b);
	registered(all.va, "the first piece, registered");
	registered(second, "the second piece, registered");
	replaced(elsewhere, b, c, 1, "other memory at a registered address");
	registered(second, "the same, registered");
	replaced(elsewhere, c, c, 1, "the same memory, mapped anew");
	reads_in(all.va, 1, "the first piece, all the while");
	ok(cuFileBufDeregister(pointer(all.va)), "cuFileBufDeregister");

	read_at(all.va + GUARD, 5000, 0, "the first piece, not registered");
	reads_in(all.va, 1, "the first piece, not registered");
	read_at(second - 20000, 40000, 0, "over both");
	read_at(second + 4096, 5000, 0, "the second piece, not registered");
	reads_in(second, 1, "the second piece, not registered");
	replaced(elsewhere, c, b, 0, "other memory, not registered");
	replaced(elsewhere, b, b, 0, "the same memory, mapped anew, not registered");
	ok(cuFileBufRegister(pointer(all.va), 2 * PIECE, 0), "both");
	read_at(second - 20000, 40000, 0, "both, registered");
	reads_in(all.va, 0, "both, registered");
	ok(cuFileBufDeregister(pointer(all.va)), "both");

	unmap(second);
	map(second, none);
	ok(cuFileBufRegister(pointer(second), PIECE, 0), "made for no handle");
	reads_in(second, 0, "made for no handle");
	ok(cuFileBufDeregister(pointer(second)), "made for no handle");
	unmap(second);
	unmap(all.va);
	cuda(cuMemAddressFree(all.va, 3 * PIECE), "cuMemAddressFree");
	cuda(cuMemAddressFree(elsewhere, PIECE), "cuMemAddressFree");
	cuda(cuMemRelease(a), "cuMemRelease");
	cuda(cuMemRelease(b), "cuMemRelease");
	cuda(cuMemRelease(c), "cuMemRelease");
	cuda(cuMemRelease(none), "cuMemRelease");
}

static void open_file(void)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	snprintf(all.path, sizeof(all.path), "%s/vmm.dat", all.dir);
	t_file_make(all.path, FILE_SIZE, all.seed);
	all.file = malloc(FILE_SIZE);
	if (!all.file)
		t_die("out of memory");
	all.fd = t_open(all.path, O_RDONLY);
	/* cached: the reads are to find it there */
	if (pread(all.fd, all.file, FILE_SIZE, 0) != (ssize_t)FILE_SIZE)
		t_die("%s: cannot be read", all.path);
	descr.handle.fd = all.fd;
	ok(cuFileHandleRegister(&all.fh, &descr), "cuFileHandleRegister");
}

int main(int argc, char **argv)
{
	static const struct option opts[] = { { "dir", 1, 0, 'd' }, { "seed", 1, 0, 's' }, { 0 } };
	size_t before, after, total;
	int o;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		if (o == 'd') {
			all.dir = optarg;
		} else if (o == 's') {
			all.seed = strtoull(optarg, NULL, 0);
		} else {
			fputs("usage: cufile_vmm --dir D [--seed N]\n", stderr);
			return 2;
		}
	}
	if (!all.dir) {
		fputs("usage: cufile_vmm --dir D [--seed N]\n", stderr);
		return 2;
	}
	all.rnd = all.seed;
	t_gpu_open(&all.gpu, 0);
	open_file();
	/* what the library and CUDA make once is there then; what is kept of ours grows */
	run();
	cuda(cuMemGetInfo(&before, &total), "cuMemGetInfo");
	run();
	cuFileHandleDeregister(all.fh);
	ok(cuFileDriverClose(), "cuFileDriverClose");
	cuda(cuMemGetInfo(&after, &total), "cuMemGetInfo");
	if (after + PIECE <= before)
		t_die("BAD %zu MiB of GPU memory are kept", (before - after) / M);
	close(all.fd);
	unlink(all.path);
	free(all.file);
	printf("cufile_vmm: seed %llu: %lu reads by bar, %lu by bounce, each byte compared\n",
	       (unsigned long long)all.seed, all.reads[1], all.reads[0]);
	return 0;
}
