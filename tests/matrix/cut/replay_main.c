// SPDX-License-Identifier: MIT
/*
 * replay_main.c - the command for replay.c.
 *
 *   replay LOG [--marks-at SECTOR] [--writes FILE]            what is in the log
 *   replay LOG ... --points N [--seed S] [--from-mark M]      cut points, one a line
 *   replay LOG ... --image FILE --cut N|mark:M|end [--from-mark M] [--keep PERCENT] [--torn]
 *                  [--seed S] [--no-flush] [--no-fua]         the drive after the cut
 *
 * --from-mark M: the image holds what was written up to there. The last form prints what it did:
 * `cut N mark M flushed N open N kept N torn N`.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay.h"

enum { IMAGE = 256, CUT, FROM, KEEP, TORN, SEED, NO_FLUSH, NO_FUA, POINTS, MARKS_AT, WRITES };

static const struct option options[] = {
	{ "image", required_argument, NULL, IMAGE },
	{ "cut", required_argument, NULL, CUT },
	{ "from-mark", required_argument, NULL, FROM },
	{ "keep", required_argument, NULL, KEEP },
	{ "torn", no_argument, NULL, TORN },
	{ "seed", required_argument, NULL, SEED },
	{ "no-flush", no_argument, NULL, NO_FLUSH },
	{ "no-fua", no_argument, NULL, NO_FUA },
	{ "points", required_argument, NULL, POINTS },
	{ "marks-at", required_argument, NULL, MARKS_AT },
	{ "writes", required_argument, NULL, WRITES },
	{ }
};

static int usage(void)
{
	fputs("replay: LOG, then --points N, or --image FILE --cut N; see replay_main.c\n", stderr);
	return 2;
}

static int number(const char *option, const char *text, int64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 0);
	if (!errno && end != text && !*end && *value >= 0)
		return 0;
	fprintf(stderr, "replay: --%s %s: a number is expected\n", option, text);
	return -EINVAL;
}

static void summary(const struct replay *r)
{
	size_t flushes = 0, fua = 0, discards = 0, marks = 0, i;

	for (i = 0; i < r->n; i++) {
		flushes += !!(r->entry[i].flags & REPLAY_FLUSH);
		fua += !!(r->entry[i].flags & REPLAY_FUA);
		discards += !!(r->entry[i].flags & REPLAY_DISCARD);
		marks += r->entry[i].mark >= 0;
	}
	printf("entries %zu flushes %zu fua %zu discards %zu marks %zu\n", r->n, flushes, fua,
	       discards, marks);
}

static int print_points(const struct replay *r, size_t from, uint64_t seed, size_t n)
{
	size_t *point = calloc(n ? n : 1, sizeof(*point)), i;

	if (!point)
		return -ENOMEM;
	n = replay_points(r, from, seed, n, point);
	for (i = 0; i < n; i++)
		printf("%zu\n", point[i]);
	free(point);
	return n ? 0 : -ENOENT;
}

/* "end", "mark:M" or a number of entries */
static int cut_point(const struct replay *r, const char *text, size_t *cut)
{
	int64_t v;

	if (!strcmp(text, "end")) {
		*cut = r->n;
		return 0;
	}
	if (!strncmp(text, "mark:", 5)) {
		if (number("cut", text + 5, &v))
			return -EINVAL;
		v = replay_behind(r, v);
		if (v < 0)
			fprintf(stderr, "replay: the log has no mark %s\n", text + 5);
	} else if (number("cut", text, &v)) {
		return -EINVAL;
	}
	*cut = v;
	return v < 0 ? -ENOENT : 0;
}

static int apply(struct replay *r, const char *image, const char *cut, struct replay_cut *c)
{
	struct replay_result done;
	int fd, err = cut_point(r, cut, &c->cut);

	if (err)
		return err;
	fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0) {
		fprintf(stderr, "replay: %s: %s\n", image, strerror(errno));
		return -errno;
	}
	err = replay_apply(r, fd, c, &done);
	close(fd);
	if (err)
		return err;
	printf("cut %zu mark %" PRId64 " flushed %zu open %zu kept %zu torn %zu\n", c->cut,
	       replay_mark(r, c->cut), done.flushed, done.open, done.kept, done.torn);
	return 0;
}

int main(int argc, char **argv)
{
	int64_t marks_at = -1, points = -1, from = -1, v = 0;
	const char *image = NULL, *cut = NULL, *writes = NULL;
	struct replay_cut c = { .keep = 50, .seed = 1 };
	struct replay r;
	int o, index, err;

	while ((o = getopt_long(argc, argv, "", options, &index)) != -1) {
		switch (o) {
		case IMAGE: image = optarg; continue;
		case CUT: cut = optarg; continue;
		case WRITES: writes = optarg; continue;
		case TORN: c.torn = true; continue;
		case NO_FLUSH: c.no_flush = true; continue;
		case NO_FUA: c.no_fua = true; continue;
		case '?': return usage();
		}
		if (number(options[index].name, optarg, &v))
			return 2;
		switch (o) {
		case FROM: from = v; break;
		case KEEP: c.keep = v; break;
		case SEED: c.seed = v; break;
		case POINTS: points = v; break;
		case MARKS_AT: marks_at = v; break;
		}
	}
	if (optind + 1 != argc || !image != !cut || (image && points >= 0))
		return usage();
	err = replay_load(&r, argv[optind], marks_at);
	if (!err && writes)
		err = replay_writes(&r, writes);
	if (err) {
		fprintf(stderr, "replay: %s: %s\n", argv[optind], r.why);
		return 1;
	}
	if (from >= 0) {
		v = replay_behind(&r, from);
		if (v < 0) {
			fprintf(stderr, "replay: %s: no mark %" PRId64 "\n", argv[optind], from);
			return 1;
		}
		c.from = v;
	}
	r.why[0] = '\0';
	if (image)
		err = apply(&r, image, cut, &c);
	else if (points >= 0)
		err = print_points(&r, c.from, c.seed, points);
	else
		summary(&r);
	if (err && r.why[0])
		fprintf(stderr, "replay: %s: %s\n", argv[optind], r.why);
	replay_close(&r);
	return err ? 1 : 0;
}
