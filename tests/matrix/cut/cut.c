// SPDX-License-Identifier: MIT
/*
 * cut.c - writes by cuFile whose fate in a power cut is known.
 *
 *   matrix_cut run DIR --notes FILE --device DEV --marks-at SECTOR --route nvfs|p2pdma|bounce
 *                      [--seed N] [--steps N]
 *   matrix_cut check DIR --notes FILE --mark M
 *
 * run: random writes from GPU memory (over what is there, behind the end, into holes and unwritten
 * blocks, with edges), truncates, holes and fsync, on files opened with and without O_DIRECT, and
 * with O_DSYNC. After each step the drive DEV, on which DIR lies, gets a mark at SECTOR, which no
 * file system uses. Fails when a whole block did not go by the route that is named. check: what
 * cut.h says must be there after a cut whose last mark is M.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cut.h"
#include "opengds.h"
#include "replay.h"
#include "t_gpu.h"
#include "t_random.h"

#define BLOCK 4096u

struct cut {
	const char *dir, *notes_path, *device, *route;
	uint64_t rnd, marks_at;
	unsigned int steps, mark, syncs;
	FILE *notes;
	int fd[CUT_FILES], dev, dir_fd;
	CUfileHandle_t fh[CUT_FILES];
	uint64_t size[CUT_FILES];
	CUdeviceptr mem;
	unsigned char *buf;
	uint64_t whole, direct, edges, by[OGDS_ROUTES];
};

static void cufile(CUfileError_t e, const char *what)
{
	if (e.err)
		t_die("%s: %d (%s), CUDA %d", what, e.err, cufileop_status_error(e.err), e.cu_err);
}

static void note(struct cut *c, const struct cut_step *s)
{
	int err = cut_note(c->notes, s);

	if (err)
		t_die("%s: %s", c->notes_path, strerror(-err));
}

/* Everything up to this step has been answered by the drive when the mark has. */
static void mark(struct cut *c, unsigned int step)
{
	static unsigned char sector[512] __attribute__((aligned(BLOCK)));
	uint64_t n = htole64(step);

	memcpy(sector, REPLAY_MAGIC, 8);
	memcpy(sector + 8, &n, 8);
	if (pwrite(c->dev, sector, sizeof(sector), c->marks_at * 512) != sizeof(sector))
		t_die("%s: mark at sector %" PRIu64 ": %s", c->device, c->marks_at,
		      strerror(errno));
}

static void register_file(struct cut *c, enum cut_file f, int flags)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	char path[4096];

	if (f != CUT_BUFFERED && f != CUT_BUFFERED_2)
		flags |= O_DIRECT;
	if (f == CUT_SYNCED)
		flags |= O_DSYNC;
	cut_path(path, sizeof(path), c->dir, f);
	c->fd[f] = t_open(path, O_RDWR | flags);
	d.handle.fd = c->fd[f];
	cufile(cuFileHandleRegister(&c->fh[f], &d), path);
}

/* What is there before the first mark. */
static void make(struct cut *c, enum cut_file f, size_t size)
{
	struct cut_step s = { 0, CUT_WRITE, f, 0, size };
	char path[4096];
	int fd;

	cut_path(path, sizeof(path), c->dir, f);
	fd = t_open(path, O_RDWR | O_CREAT | O_EXCL);
	cut_fill(c->buf, size, &s, 0);
	if (pwrite(fd, c->buf, size, 0) != (ssize_t)size || fsync(fd))
		t_die("%s: %s", path, strerror(errno));
	close(fd);
	c->size[f] = size;
	note(c, &s);
	register_file(c, f, 0);
}

static void write_gpu(struct cut *c, const struct cut_step *s)
{
	struct ogds_report rep = OGDS_REPORT_INIT;
	/* where file and memory agree modulo 4096 the drive can do it by itself */
	size_t target = s->off % BLOCK;
	ssize_t n;
	int i;

	cut_fill(c->buf, s->len, s, s->off);
	t_gpu_put(c->mem + target, c->buf, s->len);
	n = cuFileWrite(c->fh[s->file], (void *)(uintptr_t)c->mem, s->len, s->off, target);
	if (n != (ssize_t)s->len)
		t_die("step %u: cuFileWrite of %" PRIu64 " at %" PRIu64 ": %zd, errno %d", s->number,
		      s->len, s->off, n, errno);
	if (ogds_last_io(&rep))
		t_die("ogds_last_io");
	c->whole += rep.whole_bytes;
	c->direct += rep.whole_direct;
	c->edges += rep.edge_bytes;
	for (i = 0; i < OGDS_ROUTES; i++)
		c->by[i] += rep.bytes[i];
}

static void sync_file(struct cut *c, enum cut_file f)
{
	/* the name of a new file is its folder's */
	if (fsync(c->fd[f]) || (f == CUT_LATER && fsync(c->dir_fd)))
		t_die("fsync: %s", strerror(errno));
	c->syncs++;
}

static void perform(struct cut *c, const struct cut_step *s)
{
	int fd = c->fd[s->file], r = 0;

	switch (s->kind) {
	case CUT_WRITE:
		write_gpu(c, s);
		break;
	case CUT_TRUNCATE:
		r = ftruncate(fd, s->off);
		c->size[s->file] = s->off;
		break;
	case CUT_ALLOC:
		r = fallocate(fd, 0, s->off, s->len);
		break;
	case CUT_PUNCH:
		r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, s->off, s->len);
		break;
	case CUT_NEW:
		register_file(c, s->file, O_CREAT | O_EXCL);
		break;
	case CUT_SYNC:
	case CUT_KINDS:
		sync_file(c, s->file);
		break;
	}
	if (r)
		t_die("step %u: %s: %s", s->number, cut_kind_name[s->kind], strerror(errno));
	if ((s->kind == CUT_WRITE || s->kind == CUT_ALLOC) && s->off + s->len > c->size[s->file])
		c->size[s->file] = s->off + s->len;
}

/* 1 byte to 128 KiB, small ones as often as large ones */
static uint64_t some_length(struct cut *c)
{
	uint64_t most = 1ULL << (1 + t_random_below(&c->rnd, 17));

	return 1 + t_random_below(&c->rnd, most);
}

/* Over what is there, from its end on, or behind a gap. */
static void pick_range(struct cut *c, struct cut_step *s)
{
	uint64_t size = c->size[s->file], room;

	s->len = some_length(c);
	switch (t_random_below(&c->rnd, 4)) {
	case 0:
		s->off = size;
		break;
	case 1:
		s->off = size + some_length(c);
		break;
	default:
		s->off = t_random_below(&c->rnd, size + 1);
	}
	if (t_random_below(&c->rnd, 3)) {
		s->off = s->off / BLOCK * BLOCK;
		s->len = (s->len + BLOCK - 1) / BLOCK * BLOCK;
	}
	if (s->off >= CUT_MAX)
		s->off = t_random_below(&c->rnd, CUT_MAX / BLOCK) * BLOCK;
	room = CUT_MAX - s->off;
	s->len = s->len < room ? s->len : room;
}

static void pick(struct cut *c, struct cut_step *s)
{
	/* of 16: mostly writes, an fsync every fourth step */
	static const enum cut_kind kinds[16] = {
		CUT_SYNC, CUT_SYNC, CUT_SYNC, CUT_SYNC, CUT_TRUNCATE, CUT_ALLOC, CUT_PUNCH,
	};

	s->file = t_random_below(&c->rnd, CUT_STILL);
	s->kind = kinds[t_random_below(&c->rnd, 16)];
	if (s->file == CUT_LATER && c->fd[CUT_LATER] < 0)
		s->kind = CUT_NEW;
	else if (s->file == CUT_SYNCED)
		s->kind = CUT_WRITE;
	s->off = s->len = 0;
	switch (s->kind) {
	case CUT_TRUNCATE:
		s->off = t_random_below(&c->rnd, c->size[s->file] + 1);
		if (t_random(&c->rnd) >> 63)
			s->off = s->off / BLOCK * BLOCK;
		break;
	case CUT_WRITE:
	case CUT_ALLOC:
		pick_range(c, s);
		break;
	case CUT_PUNCH:
		pick_range(c, s);
		if (s->off + s->len > c->size[s->file])
			s->off = s->len = 0;
		if (!s->len)
			s->kind = CUT_SYNC;
		break;
	case CUT_NEW:
	case CUT_SYNC:
	case CUT_KINDS:
		break;
	}
}

static int verdict(const struct cut *c)
{
	uint64_t want = strcmp(c->route, "bounce") ? c->whole : 0;
	int i;

	printf("%u steps, %u fsyncs; %" PRIu64 " bytes of whole blocks, %" PRIu64 " direct, %" PRIu64
	       " of edges; by route:", c->steps, c->syncs, c->whole, c->direct, c->edges);
	for (i = 0; i < OGDS_ROUTES; i++)
		if (c->by[i])
			printf(" %s %" PRIu64, ogds_route_name(i), c->by[i]);
	printf("\n");
	for (i = 0; i < OGDS_ROUTES && strcmp(ogds_route_name(i), c->route); i++)
		;
	if (i < OGDS_ROUTES && c->by[i] && c->direct == want)
		return 0;
	printf("BAD route: expected %s, %" PRIu64 " bytes direct\n", c->route, want);
	return 1;
}

static int run(struct cut *c)
{
	struct cut_step s;
	struct t_gpu gpu;
	unsigned int i;

	c->notes = fopen(c->notes_path, "we");
	if (!c->notes)
		t_die("%s: %s", c->notes_path, strerror(errno));
	c->dev = t_open(c->device, O_WRONLY | O_DIRECT);
	c->dir_fd = t_open(c->dir, O_RDONLY | O_DIRECTORY);
	c->buf = malloc(CUT_MAX);
	if (!c->buf)
		t_die("out of memory");
	t_gpu_open(&gpu, 0);
	c->mem = t_gpu_alloc(CUT_MAX + BLOCK);
	cufile(cuFileDriverOpen(), "cuFileDriverOpen");
	cufile(cuFileBufRegister((void *)(uintptr_t)c->mem, CUT_MAX + BLOCK, 0),
	       "cuFileBufRegister");
	for (i = 0; i < CUT_FILES; i++) {
		c->fd[i] = -1;
		if (i != CUT_LATER)
			make(c, i, CUT_MAX / 8 + i * 50000);
	}
	if (fsync(c->dir_fd) || syncfs(c->dir_fd))
		t_die("%s: sync: %s", c->dir, strerror(errno));
	mark(c, 0);
	for (i = 1; i <= c->steps; i++) {
		pick(c, &s);
		s.number = i;
		note(c, &s);
		perform(c, &s);
		mark(c, i);
	}
	fclose(c->notes);
	cufile(cuFileBufDeregister((void *)(uintptr_t)c->mem), "cuFileBufDeregister");
	for (i = 0; i < CUT_FILES; i++) {
		if (c->fd[i] < 0)
			continue;
		cuFileHandleDeregister(c->fh[i]);
		close(c->fd[i]);
	}
	cufile(cuFileDriverClose(), "cuFileDriverClose");
	t_gpu_free(c->mem);
	free(c->buf);
	close(c->dev);
	close(c->dir_fd);
	return verdict(c);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "notes", required_argument, NULL, 'n' },
		{ "device", required_argument, NULL, 'd' },
		{ "marks-at", required_argument, NULL, 'a' },
		{ "route", required_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'N' },
		{ "mark", required_argument, NULL, 'm' },
		{ }
	};
	struct cut c = { .rnd = 1, .steps = 100, .marks_at = UINT64_MAX, .mark = UINT32_MAX };
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'n': c.notes_path = optarg; break;
		case 'd': c.device = optarg; break;
		case 'a': c.marks_at = strtoull(optarg, NULL, 0); break;
		case 'r': c.route = optarg; break;
		case 's': c.rnd = strtoull(optarg, NULL, 0); break;
		case 'N': c.steps = strtoul(optarg, NULL, 0); break;
		case 'm': c.mark = strtoul(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (optind + 2 != argc || !c.notes_path)
		t_die("run DIR or check DIR, and --notes; see cut.c");
	c.dir = argv[optind + 1];
	if (!strcmp(argv[optind], "run") && c.device && c.route && c.marks_at != UINT64_MAX)
		return run(&c);
	if (!strcmp(argv[optind], "check") && c.mark != UINT32_MAX)
		return cut_check(c.dir, c.notes_path, c.mark) ? 1 : 0;
	t_die("run needs --device, --route and --marks-at; check needs --mark");
}
