// SPDX-License-Identifier: MIT
/*
 * cut_check.c - the notes, and the files after a power cut against them.
 *
 * Steps come one after another, so a file has a row of states, and each fsync (or write with
 * O_DSYNC) that was over before the cut makes all but the last of them impossible. What is left:
 * the size lies between the least and the largest of the states, and each sector of 512 bytes is
 * that of one of them. Nothing else may be there, neither zeros nor what blocks held before.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cut.h"
#include "t_gpu.h"

#define SECTOR 512
#define SHOWN 4		/* wrong places that are told of a file */
#define BYTES (CUT_MAX + SECTOR)

struct state {
	struct state *older;
	unsigned int step;
	bool there;
	uint64_t size;
	unsigned char *data;	/* zeros behind size */
};

const char *const cut_kind_name[CUT_KINDS] = {
	"write", "truncate", "alloc", "punch", "new", "sync"
};

static const char *const file_name[CUT_FILES] = {
	"direct", "direct2", "buffered", "buffered2", "synced", "later", "still"
};

/* -- notes -- */

static uint64_t word(uint64_t seed, uint64_t i)
{
	uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15ULL + i * 0xd6e8feb86659fd93ULL;

	z = (z ^ z >> 32) * 0xd6e8feb86659fd93ULL;
	return z ^ z >> 29;
}

void cut_fill(unsigned char *buf, size_t len, const struct cut_step *s, uint64_t off)
{
	uint64_t seed = (uint64_t)s->number * CUT_FILES + s->file;
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = word(seed, (off + i) / 8) >> (off + i) % 8 * 8;
}

int cut_note(FILE *notes, const struct cut_step *s)
{
	fprintf(notes, "%u %s %s %" PRIu64 " %" PRIu64 "\n", s->number, cut_kind_name[s->kind],
		file_name[s->file], s->off, s->len);
	return fflush(notes) ? -errno : 0;
}

static int lookup(const char *const *names, int n, const char *name)
{
	while (n-- > 0 && strcmp(names[n], name))
		;
	return n;
}

int cut_read_note(FILE *notes, struct cut_step *s)
{
	char line[128], kind[16], file[16];
	int k, f;

	if (!fgets(line, sizeof(line), notes))
		return 0;
	if (sscanf(line, "%u %15s %15s %" SCNu64 " %" SCNu64, &s->number, kind, file, &s->off,
		   &s->len) != 5)
		return -EINVAL;
	k = lookup(cut_kind_name, CUT_KINDS, kind);
	f = lookup(file_name, CUT_FILES, file);
	if (k < 0 || f < 0 || s->off > CUT_MAX || s->len > CUT_MAX - s->off)
		return -EINVAL;
	s->kind = k;
	s->file = f;
	return 1;
}

void cut_path(char *path, size_t len, const char *dir, enum cut_file file)
{
	snprintf(path, len, "%s/%s", dir, file_name[file]);
}

/* -- states -- */

static struct state *next(struct state *old, unsigned int step)
{
	struct state *s = calloc(1, sizeof(*s));

	if (s)
		s->data = calloc(1, BYTES);
	if (!s || !s->data)
		t_die("out of memory");
	s->older = old;
	s->step = step;
	if (old) {
		s->there = old->there;
		s->size = old->size;
		memcpy(s->data, old->data, BYTES);
	}
	return s;
}

static void forget(struct state *s)
{
	struct state *older;

	for (; s; s = older) {
		older = s->older;
		free(s->data);
		free(s);
	}
}

static void change(struct state *s, const struct cut_step *c)
{
	switch (c->kind) {
	case CUT_WRITE:
		cut_fill(s->data + c->off, c->len, c, c->off);
		break;
	case CUT_TRUNCATE:
		if (c->off < s->size)
			memset(s->data + c->off, 0, s->size - c->off);
		s->size = c->off;
		return;
	case CUT_PUNCH:
		memset(s->data + c->off, 0, c->len);
		return;
	case CUT_NEW:
		s->there = true;
		return;
	case CUT_ALLOC:
	case CUT_SYNC:
	case CUT_KINDS:
		break;
	}
	if (c->off + c->len > s->size)
		s->size = c->off + c->len;
}

static void take(struct state **file, const struct cut_step *c, unsigned int mark)
{
	bool durable = c->kind == CUT_SYNC || c->file == CUT_SYNCED || !c->number;

	if (c->kind != CUT_SYNC) {
		*file = next(*file, c->number);
		/* set-up: what is there from the beginning */
		if (!c->number)
			(*file)->there = true;
		change(*file, c);
	}
	if (durable && c->number <= mark && *file) {
		forget((*file)->older);
		(*file)->older = NULL;
	}
}

/* -- the comparison -- */

/* Where the sector lies in the file, only the bytes in front of its end count. */
static bool one_of(const struct state *s, const unsigned char *got, uint64_t at, size_t len)
{
	for (; s; s = s->older)
		if (!memcmp(s->data + at, got, len))
			return true;
	return false;
}

static unsigned int compare(const struct state *s, const char *path, const unsigned char *got,
			    uint64_t size)
{
	uint64_t least = UINT64_MAX, most = 0, at, i;
	const struct state *o;
	unsigned int bad = 0;
	size_t len;

	for (o = s; o; o = o->older) {
		least = o->size < least ? o->size : least;
		most = o->size > most ? o->size : most;
	}
	if (size < least || size > most) {
		printf("BAD %s: %" PRIu64 " bytes, expected %" PRIu64 " to %" PRIu64 "\n", path,
		       size, least, most);
		bad++;
	}
	for (at = 0; at < size && at < CUT_MAX; at += SECTOR) {
		len = size - at < SECTOR ? size - at : SECTOR;
		if (one_of(s, got + at, at, len))
			continue;
		if (bad++ >= SHOWN)
			continue;
		for (i = at; got[i] == s->data[i]; i++)
			;
		printf("BAD %s: sector at %" PRIu64 ": byte %" PRIu64 " is %02x, expected %02x "
		       "(step %u)%s\n", path, at, i, got[i], s->data[i], s->step,
		       s->older ? ", or all of it from an older step" : "");
	}
	return bad;
}

static unsigned int check_file(const struct state *s, const char *path)
{
	const struct state *o;
	unsigned char *got;
	unsigned int bad;
	ssize_t n, size = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		for (o = s; o && o->there; o = o->older)
			;
		/* in a state that is possible, or before the first, it was not there */
		if (errno == ENOENT && (!s || o))
			return 0;
		printf("BAD %s: %s\n", path, strerror(errno));
		return 1;
	}
	if (!s) {
		printf("BAD %s: nobody has made it\n", path);
		close(fd);
		return 1;
	}
	got = calloc(1, BYTES);
	if (!got)
		t_die("out of memory");
	while ((n = read(fd, got + size, BYTES - size)) > 0)
		size += n;
	close(fd);
	if (n < 0) {
		printf("BAD %s: read at %zd: %s\n", path, size, strerror(errno));
		bad = 1;
	} else {
		bad = compare(s, path, got, size);
	}
	free(got);
	return bad;
}

unsigned int cut_check(const char *dir, const char *notes, unsigned int mark)
{
	struct state *file[CUT_FILES] = { NULL };
	unsigned int bad = 0, steps = 0;
	FILE *f = fopen(notes, "re");
	char path[4096];
	struct cut_step s;
	int i, r = 0;

	if (!f)
		t_die("%s: %s", notes, strerror(errno));
	while ((r = cut_read_note(f, &s)) == 1 && s.number <= mark + 1) {
		/* before it was made */
		if (s.kind == CUT_NEW && !file[s.file])
			file[s.file] = next(NULL, 0);
		take(&file[s.file], &s, mark);
		steps++;
	}
	fclose(f);
	if (r < 0)
		t_die("%s: a line that is no note", notes);
	if (!steps)
		t_die("%s: no notes", notes);
	for (i = 0; i < CUT_FILES; i++) {
		cut_path(path, sizeof(path), dir, i);
		bad += check_file(file[i], path);
		forget(file[i]);
	}
	printf("%u steps, mark %u: %u wrong\n", steps, mark, bad);
	return bad;
}
