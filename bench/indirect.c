// SPDX-License-Identifier: MIT
/*
 * indirect.c - any number of libcufile files side by side, the raw file and the copy engine.
 *
 * See the text of --help, and docs/performance.md for what the columns mean.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "indirect.h"
#include "t_pattern.h"

#define MAX_CELLS 256
#define BEST_BYTES SIDE_GIB	/* in flight at once, at most, where the best raw is looked for */
#define ENGINE (16UL << 20)	/* piece at which the copy engine is as fast as it gets */

#define PINNED (256UL << 10)	/* below, the calling thread does it all */

static const char usage[] =
	"usage: indirect --dir DIR --lib NAME=PATH [--lib NAME=PATH]... [OPTIONS]\n"
	"\n"
	"Measures libcufile files side by side, plain pread and pwrite (raw), the copy engine (copy)\n"
	"and pread straight into GPU memory (store), in rounds that take turns; each in a process of\n"
	"its own. Looks at every byte that was moved in the last round. Without a GPU: sim/run --\n"
	"indirect ...\n"
	"\n"
	SIDE_USAGE
	"  --rows KINDS:OPS:SIZES:THREADS  lists with commas, in place of the full table; may be\n"
	"                     repeated: buffered,direct:read,write:4K,1M:1,16\n"
	"  --ms N             of a measurement (150)\n"
	"  --range SIZE       a thread's part of the file, at most, and its buffer (64M)\n"
	"  --pin              requests below 256K: each thread on a processor of its own, in all\n"
	"                     contestants the same one, else one's luck with it is in the figures\n"
	"  --no-best          do not look for raw's best number of threads\n"
	"\n"
	"Exit status: 0; 1 when a byte was wrong or a library failed; 2: wrong arguments, or a\n"
	"contestant does not start; 3: this machine is not one to compare on (gVisor).\n";

static const char *const full_table[] = {
	"buffered:read:4K,64K,1M,16M,256M:1,4,16",
	"buffered:write:4K,64K,1M,16M:1,4,16",
	"buffered:write:256M:1",
	"direct:read,write:4K,64K,128K,1M,16M:1,4,16",
	"direct:read,write:256M:1",
};

struct bench {
	struct side_run run;
	struct side_cell *cell;
	unsigned int cells;
	uint64_t range;
	uint64_t file_size;
	bool no_best, pin;
};

static void __attribute__((noreturn)) give_up(const char *what, const char *arg)
{
	fprintf(stderr, "indirect: %s: %s\n", arg, what);
	exit(2);
}

/* -- the table -- */

static struct side_cell *find(struct bench *b, uint32_t flags, uint64_t size, unsigned int threads)
{
	struct side_cell *c;

	for (c = b->cell; c < b->cell + b->cells; c++)
		if ((c->o.flags & (SIDE_WRITE | SIDE_DIRECT)) == flags && c->o.size == size &&
		    c->o.threads == threads)
			return c;
	return NULL;
}

static struct side_cell *add(struct bench *b, uint32_t flags, uint64_t size, unsigned int threads)
{
	struct side_cell *c = find(b, flags, size, threads);
	uint64_t range = b->range / size * size;

	if (c)
		return c;
	if (b->cells == MAX_CELLS)
		give_up("too many rows", "--rows");
	c = &b->cell[b->cells++];
	memset(c, 0, sizeof(*c));
	c->kind = flags & SIDE_DIRECT ? "direct" : "buffered";
	c->resident = -1;
	c->o.what = SIDE_CELL;
	c->o.flags = flags | (b->run.unregistered ? 0 : SIDE_REGISTERED);
	if (b->pin && size < PINNED)
		c->o.flags |= SIDE_PIN;
	c->o.size = size;
	c->o.range = range ? range : size;
	c->o.threads = threads;
	c->o.seconds = b->run.seconds;
	c->o.seed = b->cells * 100000ULL;
	return c;
}

static uint32_t flags_of(const char *kind, const char *op, const char *spec)
{
	uint32_t f = 0;

	if (!strcmp(kind, "direct"))
		f |= SIDE_DIRECT;
	else if (strcmp(kind, "buffered"))
		give_up("the kinds are buffered and direct", spec);
	if (!strcmp(op, "write"))
		f |= SIDE_WRITE;
	else if (strcmp(op, "read"))
		give_up("the operations are read and write", spec);
	return f;
}

/* Up to 16 words of a list. */
static unsigned int words(char *list, char *word[16], const char *spec)
{
	unsigned int n = 0;
	char *at, *w;

	for (w = strtok_r(list, ",", &at); w; w = strtok_r(NULL, ",", &at)) {
		if (n == 16)
			give_up("a list of more than 16", spec);
		word[n++] = w;
	}
	if (!n)
		give_up("an empty list", spec);
	return n;
}

static void add_row(struct bench *b, uint32_t flags, const char *size, const char *threads,
		    const char *spec)
{
	uint64_t bytes = side_size(size);
	char *end;
	unsigned long t = strtoul(threads, &end, 10);

	if (!bytes || bytes % T_BLOCK || bytes > 1UL << 30)
		give_up("sizes are multiples of 4K, 1G at most", spec);
	if (*end || !t || t > SIDE_THREADS)
		give_up("1 to 64 threads", spec);
	add(b, flags, bytes, t)->hidden = false;
}

static void add_rows(struct bench *b, const char *spec)
{
	char *copy = strdup(spec), *part[4], *word[4][16], *at;
	unsigned int n[4], i[4], p;

	if (!copy)
		give_up("out of memory", spec);
	for (p = 0; p < 4; p++) {
		part[p] = strtok_r(p ? NULL : copy, ":", &at);
		if (!part[p])
			give_up("KINDS:OPS:SIZES:THREADS is wanted", spec);
		n[p] = words(part[p], word[p], spec);
	}
	for (i[0] = 0; i[0] < n[0]; i[0]++)
		for (i[1] = 0; i[1] < n[1]; i[1]++)
			for (i[2] = 0; i[2] < n[2]; i[2]++)
				for (i[3] = 0; i[3] < n[3]; i[3]++)
					add_row(b, flags_of(word[0][i[0]], word[1][i[1]], spec),
						word[2][i[2]], word[3][i[3]], spec);
	free(copy);
}

/*
 * What limits the rows: the copy engine at each size and number of threads (once, whichever kind
 * of file) and with big pieces from some threads; one call of 4 KiB; and, for O_DIRECT, the
 * file alone at further numbers of threads.
 */
static void add_limits(struct bench *b)
{
	static const unsigned int threads[] = { 1, 4, 8, 16, 32 };
	uint64_t piece = b->range < ENGINE ? b->range : ENGINE;	/* smaller: a smoke test */
	unsigned int rows = b->cells, i, t, op, first;
	struct side_run *run = &b->run;
	struct side_cell *c;

	for (i = 0; i < rows; i++) {
		c = &b->cell[i];
		c->who = (1u << run->libs) - 1;
		c->who |= 1u << run->raw;
		if (run->store && c->o.size < SIDE_SPLIT &&
		    !(c->o.flags & (SIDE_WRITE | SIDE_DIRECT)))
			c->who |= 1u << run->store;
		c = find(b, c->o.flags & SIDE_WRITE, c->o.size, c->o.threads);
		if (!c || c == &b->cell[i])
			b->cell[i].who |= 1u << run->copy;
	}
	for (i = 0; i < rows && !b->no_best; i++) {
		c = &b->cell[i];
		if (!(c->o.flags & SIDE_DIRECT))
			continue;
		for (t = 0; t < sizeof(threads) / sizeof(threads[0]); t++) {
			if (threads[t] * c->o.size > BEST_BYTES)
				continue;
			first = b->cells;
			c = add(b, c->o.flags & (SIDE_DIRECT | SIDE_WRITE), c->o.size, threads[t]);
			if (b->cells > first) {
				c->hidden = true;
				c->who = 1u << run->raw;
			}
			c = &b->cell[i];
		}
	}
	for (op = 0; op < 2; op++) {
		uint32_t f = op ? SIDE_WRITE : 0;

		for (i = 0; i < rows && (b->cell[i].o.flags & SIDE_WRITE) != f; i++)
			;
		if (i == rows)
			continue;
		for (t = 0; t < 2; t++) {
			first = b->cells;
			c = add(b, f, t ? piece : 4096, t ? 4 : 1);
			if (b->cells > first)
				c->hidden = true;
			c->who |= 1u << run->copy;
		}
	}
}

/* Rows of one kind stand together, as the table is read; a limit beside what it limits. */
static int in_order(const void *x, const void *y)
{
	const struct side_cell *a = x, *b = y;
	uint64_t ka = (uint64_t)(a->o.flags & (SIDE_DIRECT | SIDE_WRITE)) << 48 | a->o.size;
	uint64_t kb = (uint64_t)(b->o.flags & (SIDE_DIRECT | SIDE_WRITE)) << 48 | b->o.size;

	/* reads of a kind before its writes, the page cache before the drive */
	ka ^= a->o.flags & SIDE_DIRECT ? 1ULL << 62 : 0;
	kb ^= b->o.flags & SIDE_DIRECT ? 1ULL << 62 : 0;
	if (ka != kb)
		return ka < kb ? -1 : 1;
	return (int)a->o.threads - (int)b->o.threads;
}

/* -- the file -- */

static void make_file(struct bench *b)
{
	size_t chunk = 4UL << 20, n;
	char *buf = aligned_alloc(4096, chunk);
	unsigned int i;
	uint64_t at, size;
	int fd;

	for (i = 0; i < b->cells; i++) {
		if (!(b->cell[i].who & ~(1u << b->run.copy)))
			continue;
		size = b->cell[i].o.range * b->cell[i].o.threads;
		if (size > b->file_size)
			b->file_size = size;
	}
	fprintf(stderr, "making %s: %.2f GiB\n", b->run.file, b->file_size / SIDE_GIB);
	fd = open(b->run.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || !buf)
		give_up(strerror(errno), b->run.file);
	for (at = 0; at < b->file_size; at += n) {
		n = b->file_size - at < chunk ? b->file_size - at : chunk;
		t_pattern_fill(buf, n, 1, at / T_BLOCK);
		if (pwrite(fd, buf, n, at) != (ssize_t)n)
			give_up(strerror(errno), b->run.file);
	}
	if (fsync(fd))
		give_up(strerror(errno), b->run.file);
	close(fd);
	free(buf);
}

/* The same state of the page cache before each row: clean; full or, for O_DIRECT, empty. */
static void settle(struct bench *b, struct side_cell *c)
{
	int fd;

	if (c->who == 1u << b->run.copy)
		return;
	fd = open(b->run.file, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fdatasync(fd))
		give_up(strerror(errno), b->run.file);
	if (c->o.flags & SIDE_DIRECT)
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	else
		c->resident = side_cached(b->run.file, c->o.range * c->o.threads, true);
	close(fd);
	if (c->resident >= 0 && c->resident < 0.99)
		fprintf(stderr, "\nonly %.0f %% of the file stay in the page cache\n",
			c->resident * 100);
}

static void progress(const struct bench *b, unsigned int i, double begun)
{
	const struct side_cell *c = &b->cell[i];
	unsigned int who;
	char size[16];

	fprintf(stderr, "[%u/%u, %.0f s] %s %s %s x %u:", i + 1, b->cells, side_now() - begun, c->kind,
		c->o.flags & SIDE_WRITE ? "write" : "read", side_size_text(c->o.size, size),
		c->o.threads);
	for (who = 0; who < b->run.count; who++)
		if (c->who & 1u << who)
			fprintf(stderr, " %s %.2f", b->run.s[who].name, side_rate(c, who));
	fputs(" GiB/s\n", stderr);
}

static void parse(struct bench *b, int argc, char **argv)
{
	static const struct option option[] = {
		SIDE_OPTIONS, { "rows", 1, 0, 'R' }, { "ms", 1, 0, 'm' }, { "range", 1, 0, 'a' },
		{ "no-best", 0, 0, 'b' }, { "pin", 0, 0, 'P' },
		{ "help", 0, 0, 'h' }, { 0 },
	};
	const char *rows[32];
	unsigned int n = 0, i;
	int o, r;

	while ((o = getopt_long(argc, argv, "", option, NULL)) != -1) {
		r = side_option(&b->run, o, optarg);
		if (r < 0)
			exit(2);
		if (!r)
			continue;
		switch (o) {
		case 'R':
			if (n == 32)
				give_up("too many of them", "--rows");
			rows[n++] = optarg;
			break;
		case 'm':
			b->run.seconds = atoi(optarg) / 1000.0;
			if (b->run.seconds <= 0)
				give_up("milliseconds", optarg);
			break;
		case 'a':
			b->range = side_size(optarg);
			if (!b->range || b->range % T_BLOCK)
				give_up("a multiple of 4K", optarg);
			break;
		case 'b': b->no_best = true; break;
		case 'P': b->pin = true; break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs("see --help\n", stderr);
			exit(2);
		}
	}
	if (optind < argc)
		give_up("no such argument; see --help", argv[optind]);
	for (i = 0; i < n; i++)
		add_rows(b, rows[i]);
	for (i = 0; !n && i < sizeof(full_table) / sizeof(full_table[0]); i++)
		add_rows(b, full_table[i]);
}

int main(int argc, char **argv)
{
	static struct bench b = {
		.run = { .bench = "indirect", .rounds = 5, .seconds = 0.15 },
		.range = 64UL << 20,
	};
	unsigned int i;
	double begun;
	int status;

	side_here(argc, argv);
	b.run.argc = argc;
	b.run.argv = argv;
	b.cell = calloc(MAX_CELLS, sizeof(*b.cell));
	if (!b.cell)
		give_up("out of memory", "rows");
	parse(&b, argc, argv);
	status = side_begin(&b.run, true);
	if (status)
		return status;
	add_limits(&b);
	qsort(b.cell, b.cells, sizeof(*b.cell), in_order);
	make_file(&b);
	side_machine(stdout, &b.run);
	begun = side_now();
	for (i = 0; i < b.cells && !side_stopped(); i++) {
		settle(&b, &b.cell[i]);
		side_measure(&b.run, &b.cell[i]);
		progress(&b, i, begun);
		/* so far: a run that is cut off has its rounds */
		if (side_json(&b.run, b.cell, i + 1))
			return 2;
	}
	side_end(&b.run);
	indirect_report(stdout, &b.run, b.cell, b.cells);
	if (side_json(&b.run, b.cell, b.cells))
		return 2;
	return b.run.failed ? 1 : 0;
}
