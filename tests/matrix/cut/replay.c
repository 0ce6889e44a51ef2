// SPDX-License-Identifier: MIT
/* replay.c - a drive as a power cut leaves it, from the log of its writes: see replay.h. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay.h"
#include "t_random.h"

#define SECTOR 512u
#define CHUNK (1u << 20)	/* bytes that are copied at a time */
#define HOLE 4096u		/* zeros of that size and place are left out of the image */

/* drivers/md/dm-log-writes.c; little-endian */
struct log_super {
	uint64_t magic;
	uint64_t version;
	uint64_t entries;
	uint32_t sector_size;
} __attribute__((packed));
_Static_assert(sizeof(struct log_super) == 28, "the log's first sector");

struct log_entry {
	uint64_t sector;
	uint64_t sectors;
	uint64_t flags;
	uint64_t data_len;	/* of a mark */
} __attribute__((packed));
_Static_assert(sizeof(struct log_entry) == 32, "the sector in front of the data");

#define LOG_MAGIC 0x6a736677736872ULL
#define LOG_VERSION 1
#define LOG_FLAGS (REPLAY_FLUSH | REPLAY_FUA | REPLAY_DISCARD | REPLAY_MARK)

static int bad(struct replay *r, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int bad(struct replay *r, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	return err;
}

/* -- the log -- */

static int get(struct replay *r, void *buf, size_t len, uint64_t at)
{
	ssize_t n = pread(r->fd, buf, len, at);

	if (n < 0)
		return bad(r, -errno, "read at %" PRIu64 ": %s", at, strerror(errno));
	if ((size_t)n != len)
		return bad(r, -EINVAL, "it ends at %" PRIu64 ", inside an entry", at + n);
	return 0;
}

/* The number of a mark that a guest wrote to the sector kept for them; -1: it is none. */
static int written_mark(struct replay *r, struct replay_entry *e)
{
	struct {
		char magic[8];
		uint64_t number;
	} mark;
	int err = get(r, &mark, sizeof(mark), e->data);

	if (err)
		return err;
	if (!memcmp(mark.magic, REPLAY_MAGIC, sizeof(mark.magic)))
		e->mark = le64toh(mark.number);
	return 0;
}

/* A mark of dm-log-writes: its text ends in its number. */
static int text_mark(struct replay *r, struct replay_entry *e, uint64_t len, size_t i)
{
	char text[64] = "";
	size_t n;
	int err;

	if (len >= sizeof(text))
		return bad(r, -EINVAL, "entry %zu: a mark of %" PRIu64 " bytes", i, len);
	err = get(r, text, len, e->data);
	if (err)
		return err;
	for (n = strlen(text); n && text[n - 1] >= '0' && text[n - 1] <= '9'; n--)
		;
	if (!text[n])
		return bad(r, -EINVAL, "entry %zu: no number ends the mark '%s'", i, text);
	e->mark = strtoll(text + n, NULL, 10);
	return 0;
}

static int load_entry(struct replay *r, size_t i, uint64_t *at, uint32_t size, int64_t marks_at)
{
	struct replay_entry *e = &r->entry[i];
	struct log_entry raw;
	uint64_t flags;
	int err = get(r, &raw, sizeof(raw), *at);

	if (err)
		return err;
	flags = le64toh(raw.flags);
	if (flags & ~(uint64_t)LOG_FLAGS)
		return bad(r, -EINVAL, "entry %zu: unknown flags 0x%" PRIx64, i, flags);
	if (le64toh(raw.sectors) > UINT32_MAX || le64toh(raw.sector) > UINT64_MAX / size)
		return bad(r, -EINVAL, "entry %zu: sector %" PRIu64 " and %" PRIu64 " more", i,
			   le64toh(raw.sector), le64toh(raw.sectors));
	e->sector = le64toh(raw.sector) * (size / SECTOR);
	e->sectors = le64toh(raw.sectors) * (size / SECTOR);
	e->flags = flags;
	e->data = *at + size;
	e->mark = -1;
	*at = e->data;
	if (flags & REPLAY_MARK) {
		*at += (le64toh(raw.data_len) + size - 1) / size * size;
		return text_mark(r, e, le64toh(raw.data_len), i);
	}
	if (flags & REPLAY_DISCARD)
		return 0;
	*at += e->sectors * SECTOR;
	if (marks_at >= 0 && e->sector == (uint64_t)marks_at && e->sectors)
		return written_mark(r, e);
	return 0;
}

int replay_load(struct replay *r, const char *path, int64_t marks_at)
{
	struct log_super super;
	uint64_t at, size;
	struct stat st;
	size_t i;
	int err;

	memset(r, 0, sizeof(*r));
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return bad(r, -errno, "open: %s", strerror(errno));
	err = get(r, &super, sizeof(super), 0);
	if (err)
		goto out;
	size = le32toh(super.sector_size);
	if (le64toh(super.magic) != LOG_MAGIC || le64toh(super.version) != LOG_VERSION ||
	    size < SECTOR || size > 65536 || (size & (size - 1))) {
		err = bad(r, -EINVAL, "no log of dm-log-writes, version 1");
		goto out;
	}
	/* each entry takes a sector: a number that the file has no room for is not believed */
	at = le64toh(super.entries);
	if (!fstat(r->fd, &st) && S_ISREG(st.st_mode) && at > (uint64_t)st.st_size / size) {
		err = bad(r, -EINVAL, "%" PRIu64 " entries in a file of %lld bytes", at,
			  (long long)st.st_size);
		goto out;
	}
	r->entry = calloc(at ? at : 1, sizeof(*r->entry));
	if (!r->entry) {
		err = bad(r, -ENOMEM, "no memory for %" PRIu64 " entries", at);
		goto out;
	}
	r->n = at;
	for (i = 0, at = size; i < r->n && !err; i++)
		err = load_entry(r, i, &at, size, marks_at);
out:
	if (err)
		replay_close(r);
	return err;
}

void replay_close(struct replay *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->entry);
	r->fd = -1;
	r->entry = NULL;
	r->n = 0;
}

/* -- FUA, as the guest's kernel told it -- */

struct write_id {
	uint64_t sector, sectors;
	size_t nth;		/* index in the log, or number of the line */
	bool fua;
};

static int by_place(const void *a, const void *b)
{
	const struct write_id *x = a, *y = b;

	if (x->sector != y->sector)
		return x->sector < y->sector ? -1 : 1;
	if (x->sectors != y->sectors)
		return x->sectors < y->sectors ? -1 : 1;
	return x->nth < y->nth ? -1 : x->nth > y->nth;
}

static bool same_place(const struct write_id *a, const struct write_id *b)
{
	return a->sector == b->sector && a->sectors == b->sectors;
}

static int read_writes(struct replay *r, const char *path, struct write_id **list, size_t *count)
{
	FILE *f = fopen(path, "re");
	struct write_id *more;
	size_t n = 0, room = 0;
	char line[128], kind;
	int err = 0;

	if (!f)
		return bad(r, -errno, "%s: %s", path, strerror(errno));
	while (!err && fgets(line, sizeof(line), f)) {
		if (n == room) {
			room = room ? 2 * room : 1024;
			more = realloc(*list, room * sizeof(**list));
			if (!more) {
				err = bad(r, -ENOMEM, "%s: no memory for its lines", path);
				break;
			}
			*list = more;
		}
		if (sscanf(line, "%c %" SCNu64 " %" SCNu64, &kind, &(*list)[n].sector,
			   &(*list)[n].sectors) != 3 || (kind != 'W' && kind != 'F'))
			err = bad(r, -EINVAL, "%s:%zu: expected W or F, sector, sectors", path, n + 1);
		(*list)[n].nth = n;
		(*list)[n].fua = kind == 'F';
		n++;
	}
	fclose(f);
	*count = n;
	return err;
}

int replay_writes(struct replay *r, const char *path)
{
	struct write_id *line = NULL, *in_log;
	size_t nlines = 0, n = 0, i, k;
	int err = read_writes(r, path, &line, &nlines);

	in_log = calloc(r->n ? r->n : 1, sizeof(*in_log));
	if (!err && !in_log)
		err = bad(r, -ENOMEM, "no memory for %zu entries", r->n);
	if (err)
		goto out;
	for (i = 0; i < r->n; i++) {
		const struct replay_entry *e = &r->entry[i];

		if (e->sectors && !(e->flags & (REPLAY_DISCARD | REPLAY_MARK)))
			in_log[n++] = (struct write_id){ e->sector, e->sectors, i, false };
	}
	qsort(in_log, n, sizeof(*in_log), by_place);
	if (nlines)
		qsort(line, nlines, sizeof(*line), by_place);
	/* the k-th write of a place in one list is the k-th of it in the other */
	for (i = 0, k = 0; i < nlines && !err; i++) {
		while (k < n && (in_log[k].sector < line[i].sector ||
				 (in_log[k].sector == line[i].sector &&
				  in_log[k].sectors < line[i].sectors)))
			k++;
		if (k < n && same_place(&in_log[k], &line[i])) {
			if (line[i].fua)
				r->entry[in_log[k].nth].flags |= REPLAY_FUA;
			k++;
		} else {
			err = bad(r, -ENOENT, "%s:%zu: no such write of %" PRIu64 " sectors at %"
				  PRIu64, path, line[i].nth + 1, line[i].sectors, line[i].sector);
		}
	}
out:
	free(in_log);
	free(line);
	return err;
}

/* -- cut points -- */

int64_t replay_mark(const struct replay *r, size_t cut)
{
	while (cut-- > 0)
		if (r->entry[cut].mark >= 0)
			return r->entry[cut].mark;
	return -1;
}

int64_t replay_behind(const struct replay *r, int64_t mark)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->entry[i].mark == mark)
			return i + 1;
	return -ENOENT;
}

static int by_number(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

size_t replay_points(const struct replay *r, size_t from, uint64_t seed, size_t n, size_t *point)
{
	size_t got = 0, tries, at, i;

	if (from >= r->n)
		return 0;
	for (tries = 0; got < n && tries < 64 * n; tries++) {
		at = from + 1 + t_random_below(&seed, r->n - from);
		if (got % 2 == 0) {
			while (at < r->n && r->entry[at - 1].mark < 0)
				at++;
			if (r->entry[at - 1].mark < 0)
				continue;
		}
		for (i = 0; i < got && point[i] != at; i++)
			;
		if (i == got)
			point[got++] = at;
	}
	qsort(point, got, sizeof(*point), by_number);
	return got;
}

/* -- the image -- */

static bool zeros(const char *buf, size_t len)
{
	return !buf[0] && !memcmp(buf, buf + 1, len - 1);
}

static int put(struct replay *r, int image, const char *buf, size_t len, uint64_t at)
{
	ssize_t n = pwrite(image, buf, len, at);
	int err = n < 0 ? errno : ENOSPC;

	if (n == (ssize_t)len)
		return 0;
	return bad(r, -err, "the image, at %" PRIu64 ": %s", at, strerror(err));
}

static int punch(struct replay *r, int image, uint64_t at, uint64_t len)
{
	if (fallocate(image, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len))
		return bad(r, -errno, "the image, hole at %" PRIu64 ": %s", at, strerror(errno));
	return 0;
}

/* One write, or its sectors from `first` on; zeros become holes, so that an image stays small. */
static int copy(struct replay *r, int image, char *buf, uint64_t from, uint64_t at, uint64_t len)
{
	uint64_t n, i, step;
	int err = 0;

	for (; len && !err; len -= n, from += n, at += n) {
		n = len < CHUNK ? len : CHUNK;
		err = get(r, buf, n, from);
		for (i = 0; i < n && !err; i += step) {
			step = HOLE - (at + i) % HOLE;
			if (step > n - i)
				step = n - i;
			if (step == HOLE && zeros(buf + i, step))
				err = punch(r, image, at + i, step);
			else
				err = put(r, image, buf + i, step, at + i);
		}
	}
	return err;
}

static int whole(struct replay *r, int image, char *buf, const struct replay_entry *e)
{
	if (e->flags & REPLAY_DISCARD)
		return punch(r, image, e->sector * SECTOR, e->sectors * SECTOR);
	return copy(r, image, buf, e->data, e->sector * SECTOR, e->sectors * SECTOR);
}

static int part(struct replay *r, int image, char *buf, const struct replay_entry *e,
		uint64_t *seed)
{
	uint64_t i;
	int err = 0;

	for (i = 0; i < e->sectors && !err; i++)
		if (t_random(seed) >> 63)
			err = copy(r, image, buf, e->data + i * SECTOR, (e->sector + i) * SECTOR,
				   SECTOR);
	return err;
}

int replay_apply(struct replay *r, int image, const struct replay_cut *c,
		 struct replay_result *result)
{
	uint64_t seed = c->seed;
	char *buf = malloc(CHUNK);
	size_t i;
	int err = 0;

	memset(result, 0, sizeof(*result));
	if (!buf)
		return bad(r, -ENOMEM, "no memory");
	if (c->cut > r->n || c->from > c->cut) {
		free(buf);
		return bad(r, -EINVAL, "cut %zu from %zu of %zu entries", c->cut, c->from, r->n);
	}
	result->flushed = c->from;
	for (i = c->from; i < c->cut && !c->no_flush; i++)
		if (r->entry[i].flags & REPLAY_FLUSH)
			result->flushed = i;
	for (i = c->from; i < c->cut && !err; i++) {
		const struct replay_entry *e = &r->entry[i];

		if (!e->sectors || e->mark >= 0)	/* a mark is no file system's */
			continue;
		if (i < result->flushed || ((e->flags & REPLAY_FUA) && !c->no_fua)) {
			err = whole(r, image, buf, e);
			continue;
		}
		result->open++;
		if (t_random_below(&seed, 100) >= c->keep)
			continue;
		if (c->torn && !(e->flags & REPLAY_DISCARD) && t_random(&seed) >> 63) {
			result->torn++;
			err = part(r, image, buf, e, &seed);
		} else {
			result->kept++;
			err = whole(r, image, buf, e);
		}
	}
	free(buf);
	return err;
}
