// SPDX-License-Identifier: MIT
/*
 * cufile_many.c - very many handles and registered buffers at once, on real files and a real
 * (or simulated) GPU:
 *
 *   cufile_many DIR [--handles N] [--buffers N] [--reads N]	(30,000, 10,000, 2,000)
 *
 * Sixteen files in DIR are registered under N descriptors in turn, and N pieces of 4 KiB of GPU
 * memory, PER_PAGE in each of its pages. Reads pick a handle, a buffer and a block by chance and
 * are compared; all of them have to go direct. Then handles and buffers go in no order, with
 * reads when half of them are gone. At the end memory, mappings and descriptors of the process
 * are what they were. Ends with a text at the first thing that is not so. Prints what was done.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "opengds.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_random.h"

#define NAMES 16
#define BLOCKS 16		/* of a file */
#define PER_PAGE 4
#define GPU_PAGE 65536UL
#define STRIDE 104729		/* a prime: all of them, in no order */
#define SLACK (256 * 1024UL)	/* bytes that may stay; so many of anything are more */

struct many {
	const char *dir;
	unsigned long handles, buffers, reads;
	CUdeviceptr mem;
	int *fd;
	CUfileHandle_t *fh;
	bool *gone;			/* the buffer */
	uint64_t rnd;
	double t0;
};

struct held {
	size_t heap;		/* bytes that malloc has given out */
	size_t mapped;		/* bytes of all mappings but the heap */
	size_t fds;
};

static void cufile(CUfileError_t e, const char *what, unsigned long i)
{
	if (e.err)
		t_die("%s %lu: %d (%s), CUDA %d", what, i, e.err, cufileop_status_error(e.err),
		      e.cu_err);
}

static void done(struct many *m, const char *what)
{
	printf("%s: %.1f s\n", what, t_now() - m->t0);
	fflush(stdout);
	m->t0 = t_now();
}

static CUdeviceptr buffer(const struct many *m, unsigned long i)
{
	return m->mem + i / PER_PAGE * GPU_PAGE + i % PER_PAGE * T_BLOCK;
}

static void *pointer(const struct many *m, unsigned long i)
{
	return (void *)(uintptr_t)buffer(m, i);
}

static struct held held(void)
{
	struct held h = { .heap = mallinfo2().uordblks + mallinfo2().hblkhd };
	FILE *maps = fopen("/proc/self/maps", "re");
	DIR *d = opendir("/proc/self/fd");
	unsigned long start, end;
	char line[1000];

	if (!maps || !d)
		t_die("/proc/self: %s", strerror(errno));
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && !strstr(line, "[heap]"))
			h.mapped += end - start;
	while (readdir(d))
		h.fds++;
	fclose(maps);
	closedir(d);
	return h;
}

static void file_name(const struct many *m, unsigned int k, char *path, size_t len)
{
	snprintf(path, len, "%s/many%u", m->dir, k);
}

static void make_files(const struct many *m)
{
	char path[512];
	unsigned int k;

	for (k = 0; k < NAMES; k++) {
		file_name(m, k, path, sizeof(path));
		t_file_make(path, BLOCKS * T_BLOCK, k + 1);
	}
}

static void register_handles(struct many *m)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	char path[512];
	unsigned long i;

	for (i = 0; i < m->handles; i++) {
		file_name(m, i % NAMES, path, sizeof(path));
		m->fd[i] = i < NAMES ? t_open(path, O_RDWR | O_DIRECT) : dup(m->fd[i % NAMES]);
		if (m->fd[i] < 0)
			t_die("descriptor %lu: %s", i, strerror(errno));
		d.handle.fd = m->fd[i];
		cufile(cuFileHandleRegister(&m->fh[i], &d), "cuFileHandleRegister", i);
	}
}

static void register_buffers(struct many *m)
{
	unsigned long i;

	for (i = 0; i < m->buffers; i++) {
		cufile(cuFileBufRegister(pointer(m, i), T_BLOCK, 0), "cuFileBufRegister", i);
		m->gone[i] = false;
	}
}

/* By handle k into buffer b. */
static void read_one(struct many *m, unsigned long k, unsigned long b)
{
	struct ogds_report rep = OGDS_REPORT_INIT;
	uint64_t block = t_random_below(&m->rnd, BLOCKS);
	static char got[T_BLOCK];
	char why[200];
	ssize_t n;

	memset(got, 0xa5, T_BLOCK);
	t_gpu_put(buffer(m, b), got, T_BLOCK);
	n = cuFileRead(m->fh[k], pointer(m, b), T_BLOCK, block * T_BLOCK, 0);
	if (n != T_BLOCK)
		t_die("a read by handle %lu into buffer %lu: %zd, errno %d", k, b, n, errno);
	t_gpu_get(got, buffer(m, b), T_BLOCK);
	if (t_pattern_check(got, T_BLOCK, k % NAMES + 1, block, why, sizeof(why)))
		t_die("a read by handle %lu into buffer %lu: %s", k, b, why);
	if (ogds_last_io(&rep))
		t_die("ogds_last_io fails");
	if (rep.bytes[OGDS_ROUTE_NVFS] != T_BLOCK)
		t_die("a read by handle %lu into buffer %lu did not go direct: %s", k, b,
		      ogds_reason_id(rep.reason));
}

static void read_some(struct many *m)
{
	unsigned long i, k, b;

	for (i = 0; i < m->reads;) {
		k = t_random_below(&m->rnd, m->handles);
		b = t_random_below(&m->rnd, m->buffers);
		if (!m->fh[k] || m->gone[b])
			continue;
		read_one(m, k, b);
		i++;
	}
}

/* The first half of either, or the second. */
static void take_away(struct many *m, unsigned int half)
{
	unsigned long i, k;

	for (i = half * (m->handles / 2); i < (half ? m->handles : m->handles / 2); i++) {
		k = i * STRIDE % m->handles;
		cuFileHandleDeregister(m->fh[k]);
		m->fh[k] = NULL;
		close(m->fd[k]);
	}
	for (i = half * (m->buffers / 2); i < (half ? m->buffers : m->buffers / 2); i++) {
		k = i * STRIDE % m->buffers;
		cufile(cuFileBufDeregister(pointer(m, k)), "cuFileBufDeregister", k);
		m->gone[k] = true;
	}
}

static void all(struct many *m)
{
	m->t0 = t_now();
	register_handles(m);
	done(m, "handles registered");
	register_buffers(m);
	done(m, "buffers registered");
	read_some(m);
	done(m, "read");
	take_away(m, 0);
	read_some(m);
	take_away(m, 1);
	done(m, "taken away");
	cufile(cuFileDriverClose(), "cuFileDriverClose", 0);
}

/* Room for all descriptors: the caller's, and two of each handle. */
static void raise_limit(unsigned long handles)
{
	struct rlimit limit;

	limit.rlim_cur = limit.rlim_max = 3 * handles + 1000;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		t_die("%llu descriptors: %s: be root, and raise sysctl fs.nr_open",
		      (unsigned long long)limit.rlim_max, strerror(errno));
}

static void compare(const struct held *before, const struct held *after)
{
	printf("before and after: heap %zu and %zu, mapped %zu and %zu, descriptors %zu and %zu\n",
	       before->heap, after->heap, before->mapped, after->mapped, before->fds,
	       after->fds);
	if (after->fds != before->fds)
		t_die("descriptors stay open");
	/* malloc may keep a mapping of its own */
	if (after->mapped > before->mapped + 4 * SLACK)
		t_die("mappings stay");
	if (after->heap > before->heap + SLACK)
		t_die("memory stays");
}

int main(int argc, char **argv)
{
	static const struct option option[] = {
		{ "handles", 1, 0, 'h' }, { "buffers", 1, 0, 'b' }, { "reads", 1, 0, 'r' }, { 0 },
	};
	struct many m = { .handles = 30000, .buffers = 10000, .reads = 2000, .rnd = 5 }, few;
	struct held before, after;
	struct t_gpu gpu;
	int c;

	while ((c = getopt_long(argc, argv, "", option, NULL)) != -1) {
		switch (c) {
		case 'h': m.handles = t_size(optarg); break;
		case 'b': m.buffers = t_size(optarg); break;
		case 'r': m.reads = t_size(optarg); break;
		default: return 2;
		}
	}
	if (optind != argc - 1 || m.handles < 2 * NAMES || m.buffers < 2 * PER_PAGE)
		t_die("usage: cufile_many DIR [--handles N] [--buffers N] [--reads N]");
	m.dir = argv[optind];
	raise_limit(m.handles);
	m.fd = calloc(m.handles, sizeof(*m.fd));
	m.fh = calloc(m.handles, sizeof(*m.fh));
	m.gone = calloc(m.buffers, sizeof(*m.gone));
	if (!m.fd || !m.fh || !m.gone)
		t_die("out of memory");
	t_gpu_open(&gpu, 0);
	m.mem = t_gpu_alloc((m.buffers + PER_PAGE - 1) / PER_PAGE * GPU_PAGE);
	make_files(&m);
	/* once with few: what is made once and stays is there */
	few = m;
	few.handles = NAMES;
	few.buffers = 2 * PER_PAGE;
	few.reads = 10;
	all(&few);
	before = held();
	all(&m);
	after = held();
	compare(&before, &after);
	t_gpu_free(m.mem);
	printf("%lu handles and %lu buffers at once, %lu reads compared\n", m.handles, m.buffers,
	       2 * m.reads);
	return 0;
}
