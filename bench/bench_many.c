// SPDX-License-Identifier: MIT
/*
 * bench_many.c - what a request costs among very many handles and registered buffers at once.
 *
 *   bench_many [--most N] [--reads N] [--rounds N] [--host] DIR	(100,000, 2,000, 50)
 *
 * With 100, 1,000, 10,000, ... and N handles and as many buffers of 4 KiB registered, cuFileRead of
 * 4 KiB from the page cache, in two orders: `few`, the same 64 handles and buffers, spread over all
 * of them, so that what a look-up does is seen alone; `any`, all of them in no order, so that the
 * processor's caches have to hold the tables, too. Beside each what plain pread of the same blocks
 * by the same descriptors into the same number of places takes: what the kernel and the caches cost
 * without us. Numbers are measured going up and once more coming down, so that a machine that
 * becomes slower shows as one; told is the least of all rounds, in nanoseconds of the calling
 * thread's own time, and in brackets how many times that of 100.
 *
 * --host: the buffers are host memory, into which the library preads. So it is done on the
 * simulated GPU, whose copies by another thread cost more than all else.
 *
 * The bytes of the 64 are compared at each number. Status 1 when `few` has grown by a quarter
 * more than pread beside it: a look-up that grows with what is registered is many times that.
 *
 * To carry: this program and libcufile.so.0, with LD_LIBRARY_PATH; where there is no GPU also the
 * simulated libcuda.so.1. As root, or with `ulimit -n` of 3 descriptors a handle.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cufile.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define NAMES 16
#define BLOCKS 16		/* of a file */
#define FEW 64
#define LEAST 100
#define MOST_STEPS 8
#define STRIDE 104729UL		/* a prime: all of them, in no order */
#define TOO_MUCH 1.25

enum { OURS_FEW, OURS_ANY, BARE_FEW, BARE_ANY, COLUMNS };

struct many {
	const char *dir;
	unsigned long most, have, reads;
	unsigned int rounds;
	bool by_host;
	CUdeviceptr mem;		/* or the address of host memory */
	char *host;			/* as many places for pread */
	int *fd;
	CUfileHandle_t *fh;
	struct step {
		unsigned long n;
		double ns[COLUMNS];	/* the least so far; 0: none */
	} step[MOST_STEPS];
	unsigned int steps;
};

static void *buffer(const struct many *m, unsigned long i)
{
	return (void *)(uintptr_t)(m->mem + i * T_BLOCK);
}

static void put(const struct many *m, unsigned long i, const void *from)
{
	if (m->by_host)
		memcpy(buffer(m, i), from, T_BLOCK);
	else
		t_gpu_put(m->mem + i * T_BLOCK, from, T_BLOCK);
}

static void get(const struct many *m, unsigned long i, void *to)
{
	if (m->by_host)
		memcpy(to, buffer(m, i), T_BLOCK);
	else
		t_gpu_get(to, m->mem + i * T_BLOCK, T_BLOCK);
}

static off_t block(unsigned long i)
{
	return (off_t)(i / NAMES % BLOCKS * T_BLOCK);
}

static void file_name(const struct many *m, unsigned int k, char *path, size_t len)
{
	snprintf(path, len, "%s/bench_many.%u", m->dir, k);
}

static void cufile(CUfileError_t e, const char *what, unsigned long i)
{
	if (e.err)
		t_die("%s %lu: %d (%s), CUDA %d", what, i, e.err, cufileop_status_error(e.err),
		      e.cu_err);
}

static void read_by(struct many *m, unsigned long i)
{
	ssize_t n = cuFileRead(m->fh[i], buffer(m, i), T_BLOCK, block(i), 0);

	if (n != T_BLOCK)
		t_die("a read by handle %lu: %zd, errno %d", i, n, errno);
}

/* Up to n of both, each used once; or down to n. */
static void have(struct many *m, unsigned long n)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	char path[512];

	for (; m->have < n; m->have++) {
		unsigned long i = m->have;

		file_name(m, i % NAMES, path, sizeof(path));
		m->fd[i] = i < NAMES ? t_open(path, O_RDONLY) : dup(m->fd[i % NAMES]);
		if (m->fd[i] < 0)
			t_die("descriptor %lu: %s", i, strerror(errno));
		d.handle.fd = m->fd[i];
		cufile(cuFileHandleRegister(&m->fh[i], &d), "cuFileHandleRegister", i);
		cufile(cuFileBufRegister(buffer(m, i), T_BLOCK, 0), "cuFileBufRegister", i);
		read_by(m, i);
	}
	while (m->have > n) {
		m->have--;
		cuFileHandleDeregister(m->fh[m->have]);
		cufile(cuFileBufDeregister(buffer(m, m->have)), "cuFileBufDeregister", m->have);
		close(m->fd[m->have]);
	}
}

static unsigned long pick(const struct many *m, unsigned int column, unsigned long i)
{
	if (column == OURS_FEW || column == BARE_FEW)
		return i % FEW * m->have / FEW;
	return i * STRIDE % m->have;
}

/* Seconds of this thread's own processor time: what others do on the machine is not in it. */
static double spent(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Nanoseconds of one request. */
static double measure(struct many *m, unsigned int column)
{
	bool bare = column == BARE_FEW || column == BARE_ANY;
	unsigned long i, k;
	double t0 = spent();

	for (i = 0; i < m->reads; i++) {
		k = pick(m, column, i);
		if (!bare)
			read_by(m, k);
		else if (pread(m->fd[k], m->host + k * T_BLOCK, T_BLOCK, block(k)) != T_BLOCK)
			t_die("pread by descriptor %lu: %s", k, strerror(errno));
	}
	return (spent() - t0) / m->reads * 1e9;
}

static void compare_bytes(struct many *m)
{
	static char got[T_BLOCK];
	unsigned long i, k;
	char why[200];

	memset(got, 0xa5, T_BLOCK);
	for (i = 0; i < FEW; i++)
		put(m, pick(m, OURS_FEW, i), got);
	for (i = 0; i < FEW; i++)
		read_by(m, pick(m, OURS_FEW, i));
	for (i = 0; i < FEW; i++) {
		k = pick(m, OURS_FEW, i);
		get(m, k, got);
		if (t_pattern_check(got, T_BLOCK, k % NAMES + 1, block(k) / T_BLOCK, why,
				    sizeof(why)))
			t_die("a read by handle %lu of %lu: %s", k, m->have, why);
	}
}

static void measure_all(struct many *m, struct step *s)
{
	unsigned int round, column;
	double ns;

	have(m, s->n);
	compare_bytes(m);
	for (round = 0; round < m->rounds; round++)
		for (column = 0; column < COLUMNS; column++) {
			ns = measure(m, column);
			if (!s->ns[column] || ns < s->ns[column])
				s->ns[column] = ns;
		}
}

static int table(const struct many *m)
{
	const double *first = m->step[0].ns, *ns;
	double grown, worst = 0;
	unsigned int i, column;

	printf("%9s | %15s | %15s | %15s | %15s\n", "both", "few", "any", "pread few", "pread any");
	for (i = 0; i < m->steps; i++) {
		ns = m->step[i].ns;
		printf("%9lu", m->step[i].n);
		for (column = 0; column < COLUMNS; column++)
			printf(" | %8.0f (%.2f)", ns[column], ns[column] / first[column]);
		putchar('\n');
		grown = ns[OURS_FEW] / first[OURS_FEW] / (ns[BARE_FEW] / first[BARE_FEW]);
		worst = grown > worst ? grown : worst;
	}
	if (worst <= TOO_MUCH)
		return 0;
	printf("a request among many costs %.2f times that among %d, as pread goes\n", worst, LEAST);
	return 1;
}

static void raise_limit(unsigned long handles)
{
	struct rlimit limit = { .rlim_cur = 3 * handles + 1000, .rlim_max = 3 * handles + 1000 };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		t_die("%lu descriptors: %s: raise the hard limit (ulimit -n, or be root), or say --most", 3 * handles + 1000,
		      strerror(errno));
}

int main(int argc, char **argv)
{
	static const struct option option[] = {
		{ "most", 1, 0, 'm' }, { "reads", 1, 0, 'r' }, { "rounds", 1, 0, 'n' },
		{ "host", 0, 0, 'h' }, { 0 },
	};
	static struct many m = { .most = 100000, .reads = 2000, .rounds = 50 };
	struct t_gpu gpu;
	char path[512];
	unsigned long n;
	unsigned int i;
	int c, r;

	while ((c = getopt_long(argc, argv, "", option, NULL)) != -1) {
		switch (c) {
		case 'm': m.most = strtoul(optarg, NULL, 0); break;
		case 'r': m.reads = strtoul(optarg, NULL, 0); break;
		case 'n': m.rounds = strtoul(optarg, NULL, 0); break;
		case 'h': m.by_host = true; break;
		default: return 2;
		}
	}
	if (optind != argc - 1 || m.most < LEAST || m.most > 1000000 || !m.reads || !m.rounds)
		t_die("usage: bench_many [--most 100..1000000] [--reads N] [--rounds N] [--host] DIR");
	m.dir = argv[optind];
	raise_limit(m.most);
	setenv("CUFILE_LOGFILE_PATH", "/dev/null", 0);
	m.fd = calloc(m.most, sizeof(*m.fd));
	m.fh = calloc(m.most, sizeof(*m.fh));
	m.host = calloc(m.most, T_BLOCK);
	if (!m.fd || !m.fh || !m.host)
		t_die("out of memory");
	memset(m.host, 1, m.most * T_BLOCK);
	t_gpu_open(&gpu, 0);
	m.mem = m.by_host ? (uintptr_t)aligned_alloc(T_BLOCK, m.most * T_BLOCK) :
			    t_gpu_alloc(m.most * T_BLOCK);
	if (!m.mem)
		t_die("out of memory");
	for (i = 0; i < NAMES; i++) {
		file_name(&m, i, path, sizeof(path));
		t_file_make(path, BLOCKS * T_BLOCK, i + 1);
	}
	for (n = LEAST; n < m.most; n *= 10)
		m.step[m.steps++].n = n;
	m.step[m.steps++].n = m.most;
	for (i = 0; i < m.steps; i++)
		measure_all(&m, &m.step[i]);
	for (i = m.steps; i-- > 0;)
		measure_all(&m, &m.step[i]);
	r = table(&m);
	have(&m, 0);
	cufile(cuFileDriverClose(), "cuFileDriverClose", 0);
	if (m.by_host)
		free((void *)(uintptr_t)m.mem);
	else
		t_gpu_free(m.mem);
	for (i = 0; i < NAMES; i++) {
		file_name(&m, i, path, sizeof(path));
		unlink(path);
	}
	return r;
}
