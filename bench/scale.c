// SPDX-License-Identifier: MIT
/*
 * scale.c - what more drives, more cards and a stripe give together, in one run.
 *
 *   scale --file F [--file F]... [--stripe F] [--cards M] [--threads N] [--size 1M] [--op read]
 *         [--rounds N] [--ms T]
 *
 * Each F lies on a drive of its own, the stripe over several. Ways: the first 1, 2, 4... files by
 * 1, 2, 4... cards, and the stripe by as many. In every way N threads (8) make requests by cuFile,
 * each with a handle, a registered buffer and a part of a file of its own; thread i takes file
 * and card in turn, so a way with more of them does the same on more. Every round has all ways, in
 * an order that is turned; compared are medians over the rounds of bytes a second of all threads
 * together with those of one drive and one card. A whole block that does not go direct ends it.
 * Status 1 when a way is more than 10 % slower than one drive and one card.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opengds.h"
#include "t_gpu.h"

#define MAX_FILES 16
#define MAX_CARDS 8
#define MAX_THREADS 64
#define MAX_WAYS 32
#define MAX_ROUNDS 51
#define SHARE (8UL << 20)	/* of the file and of GPU memory, a thread's */
#define MIN_SPEED 0.9

struct way {
	unsigned int files, cards;	/* files 0: the stripe */
	double rate[MAX_ROUNDS];
};

struct bench {
	const char *file[MAX_FILES + 1];	/* the last one: the stripe */
	int fd[MAX_FILES + 1];
	unsigned int files, cards, threads, rounds, ms, nways;
	bool write;
	size_t size;
	struct way way[MAX_WAYS];
	CUdeviceptr mem[MAX_CARDS];	/* SHARE for each thread */
	struct t_gpu gpu[MAX_CARDS];
};

struct worker {
	struct bench *b;
	const struct way *way;
	unsigned int index;
	uint64_t bytes;
};

static atomic_bool stop;
static pthread_barrier_t start;

static void cufile(CUfileError_t e, const char *what)
{
	if (e.err)
		t_die("%s: %d (%s), CUDA %d", what, e.err, cufileop_status_error(e.err), e.cu_err);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct bench *b = w->b;
	unsigned int card = w->index % w->way->cards;
	unsigned int file = w->way->files ? w->index % w->way->files : MAX_FILES;
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = b->fd[file] };
	char *base = (char *)(uintptr_t)(b->mem[card] + w->index * SHARE);
	struct ogds_report rep = OGDS_REPORT_INIT;
	CUfileHandle_t fh;
	size_t at = 0;
	ssize_t n;

	if (cuCtxSetCurrent(b->gpu[card].ctx))
		t_die("cuCtxSetCurrent");
	cufile(cuFileHandleRegister(&fh, &d), b->file[file]);
	cufile(cuFileBufRegister(base, SHARE, 0), "cuFileBufRegister");
	pthread_barrier_wait(&start);
	while (!stop) {
		n = b->write ? cuFileWrite(fh, base, b->size, w->index * SHARE + at, at) :
			       cuFileRead(fh, base, b->size, w->index * SHARE + at, at);
		if (n != (ssize_t)b->size)
			t_die("%s: %zd of %zu bytes, errno %d", b->file[file], n, b->size, errno);
		if (ogds_last_io(&rep) || rep.whole_direct != b->size)
			t_die("%s: a request did not go direct: %s", b->file[file],
			      ogds_reason_text(rep.reason));
		w->bytes += n;
		at = (at + b->size) % SHARE;
	}
	cufile(cuFileBufDeregister(base), "cuFileBufDeregister");
	cuFileHandleDeregister(fh);
	return NULL;
}

/* Bytes a second of all threads together */
static double measure(struct bench *b, const struct way *way)
{
	struct worker w[MAX_THREADS] = { 0 };
	pthread_t thread[MAX_THREADS];
	uint64_t bytes = 0;
	unsigned int i;
	double t0;

	stop = false;
	pthread_barrier_init(&start, NULL, b->threads + 1);
	for (i = 0; i < b->threads; i++) {
		w[i] = (struct worker){ b, way, i, 0 };
		if (pthread_create(&thread[i], NULL, work, &w[i]))
			t_die("no thread");
	}
	pthread_barrier_wait(&start);
	t0 = t_now();
	usleep(b->ms * 1000);
	stop = true;
	for (i = 0; i < b->threads; i++) {
		pthread_join(thread[i], NULL);
		bytes += w[i].bytes;
	}
	t0 = t_now() - t0;
	pthread_barrier_destroy(&start);
	return bytes / t0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int table(struct bench *b)
{
	double base = 0, median, low, high;
	unsigned int i, slow = 0, n = b->rounds;

	printf("%u threads, %s of %zu bytes, medians of %u rounds\n", b->threads,
	       b->write ? "writes" : "reads", b->size, n);
	printf("%8s | %5s | %9s | %9s | %9s | %s\n", "drives", "cards", "MiB/s", "least", "most",
	       "of one drive and card");
	for (i = 0; i < b->nways; i++) {
		struct way *w = &b->way[i];
		char drives[16];

		qsort(w->rate, n, sizeof(*w->rate), by_value);
		median = w->rate[n / 2], low = w->rate[0], high = w->rate[n - 1];
		base = i ? base : median;
		slow += median < MIN_SPEED * base;
		snprintf(drives, sizeof(drives), w->files ? "%u" : "stripe", w->files);
		printf("%8s | %5u | %9.1f | %9.1f | %9.1f | %.2f%s\n", drives, w->cards,
		       median / (1 << 20), low / (1 << 20), high / (1 << 20), median / base,
		       median < MIN_SPEED * base ? "  SLOWER" : "");
	}
	return slow ? 1 : 0;
}

static void make(struct bench *b, unsigned int i)
{
	/* blocks that were written: a read of a hole would not go direct */
	t_file_make(b->file[i], b->threads * SHARE, i + 1);
	b->fd[i] = t_open(b->file[i], O_RDWR | O_DIRECT);
}

static int run(struct bench *b)
{
	unsigned int i, r, f, c;

	for (c = 0; c < b->cards; c++) {
		t_gpu_open(&b->gpu[c], c);
		b->mem[c] = t_gpu_alloc(b->threads * SHARE);
	}
	for (i = 0; i < b->files; i++)
		make(b, i);
	if (b->file[MAX_FILES])
		make(b, MAX_FILES);
	for (f = 1; f <= b->files; f *= 2)
		for (c = 1; c <= b->cards; c *= 2)
			b->way[b->nways++] = (struct way){ f, c };
	for (c = 1; b->file[MAX_FILES] && c <= b->cards; c *= 2)
		b->way[b->nways++] = (struct way){ 0, c };
	cufile(cuFileDriverOpen(), "cuFileDriverOpen");
	for (i = 0; i < b->nways; i++)
		measure(b, &b->way[i]);		/* once for nothing: everything is there then */
	for (r = 0; r < b->rounds; r++)
		for (i = 0; i < b->nways; i++) {
			/* each way stands at each place of the order, once forth and once back */
			unsigned int k = (i + r / 2) % b->nways;

			k = r % 2 ? b->nways - 1 - k : k;
			b->way[k].rate[r] = measure(b, &b->way[k]);
		}
	cufile(cuFileDriverClose(), "cuFileDriverClose");
	return table(b);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "file", required_argument, NULL, 'f' },
		{ "stripe", required_argument, NULL, 's' },
		{ "cards", required_argument, NULL, 'c' },
		{ "threads", required_argument, NULL, 't' },
		{ "size", required_argument, NULL, 'S' },
		{ "op", required_argument, NULL, 'o' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "ms", required_argument, NULL, 'm' },
		{ }
	};
	static struct bench b = {
		.cards = 1, .threads = 8, .size = 1 << 20, .rounds = 9, .ms = 300,
	};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'f':
			if (b.files == MAX_FILES)
				t_die("more than %d files", MAX_FILES);
			b.file[b.files++] = optarg;
			break;
		case 's': b.file[MAX_FILES] = optarg; break;
		case 'c': b.cards = strtoul(optarg, NULL, 0); break;
		case 't': b.threads = strtoul(optarg, NULL, 0); break;
		case 'S': b.size = t_size(optarg); break;
		case 'o': b.write = !strcmp(optarg, "write"); break;
		case 'r': b.rounds = strtoul(optarg, NULL, 0); break;
		case 'm': b.ms = strtoul(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (!b.files || !b.cards || b.cards > MAX_CARDS || !b.threads || b.threads > MAX_THREADS ||
	    !b.rounds || b.rounds > MAX_ROUNDS || !b.size || SHARE % b.size)
		t_die("--file F; 1 to %d cards, %d threads, %d rounds; a size that divides %lu", MAX_CARDS,
		      MAX_THREADS, MAX_ROUNDS, SHARE);
	return run(&b);
}
