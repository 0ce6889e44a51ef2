// SPDX-License-Identifier: MIT
/*
 * loader.c - loading a safetensors file with any number of libcufile files, side by side.
 *
 * See the text of --help, and docs/performance.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side_run.h"
#include "t_pattern.h"

#define TENSORS 64
#define MAX_CELLS 32

static const char usage[] =
	"usage: loader --dir DIR --lib NAME=PATH [--lib NAME=PATH]... [OPTIONS]\n"
	"\n"
	"Makes a safetensors file, reads its header and its 64 tensors in file order, each with one\n"
	"call into memory of its own, and compares every byte in the last round. raw is pread into\n"
	"host memory.\n"
	"\n"
	SIDE_USAGE
	"  --kinds LIST       of warm (page cache), cold (it is empty), direct (O_DIRECT);\n"
	"                     warm,cold when it is left out\n"
	"  --threads LIST     1,4,16\n"
	"  --size SIZE        of the file, about (2G)\n"
	"  --drop-caches      cold: drop the caches of the whole machine, too (as root)\n"
	"  --mixed            tensors of many sizes, odd ones too, in place of equal ones\n"
	"\n"
	"Exit status: as of indirect.\n";

struct bench {
	struct side_run run;
	struct side_cell cell[MAX_CELLS];
	unsigned int cells;
	uint64_t size, file_size;
	bool mixed, drop;
};

static void __attribute__((noreturn)) give_up(const char *what, const char *arg)
{
	fprintf(stderr, "loader: %s: %s\n", arg, what);
	exit(2);
}

/* -- the file -- */

/* All alike; or, with eight kinds in turn, a half of what is left each and at last a tiny one. */
static uint64_t tensor_bytes(const struct bench *b, unsigned int i)
{
	uint64_t each = b->size / TENSORS & ~511ULL, part;

	if (!b->mixed)
		return each;
	part = each * 8 >> (i % 8 + 1);
	return i % 8 == 7 ? 6 : part - part % 2 + 2 * (i % 5);
}

static char *header(const struct bench *b, uint64_t *data)
{
	size_t room = TENSORS * 160 + 64;
	char *text = malloc(room);
	uint64_t at = 0, len;
	unsigned int i;
	size_t n = 0;

	if (!text)
		give_up("out of memory", "header");
	for (i = 0; i < TENSORS; i++) {
		len = tensor_bytes(b, i);
		n += snprintf(text + n, room - n,
			      "%s\"model.layers.%u.weight\":{\"dtype\":\"BF16\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}",
			      i ? "," : "{", i, (unsigned long long)len / 2, (unsigned long long)at,
			      (unsigned long long)(at + len));
		at += len;
	}
	n += snprintf(text + n, room - n, "}");
	while (n % 8)
		n += snprintf(text + n, room - n, " ");
	*data = at;
	return text;
}

/* The bytes of the tensors are a pattern that starts anew behind the header. */
static void make_file(struct bench *b)
{
	size_t chunk = 4UL << 20, n;
	char *buf = aligned_alloc(4096, chunk), *text;
	uint64_t len, data, at;
	int fd;

	text = header(b, &data);
	len = strlen(text);
	fd = open(b->run.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || !buf)
		give_up(strerror(errno), b->run.file);
	b->file_size = sizeof(len) + len + data;
	fprintf(stderr, "making %s: %.2f GiB\n", b->run.file, b->file_size / SIDE_GIB);
	if (write(fd, &len, sizeof(len)) != sizeof(len) || write(fd, text, len) != (ssize_t)len)
		give_up(strerror(errno), b->run.file);
	for (at = 0; at < data; at += n) {
		n = data - at < chunk ? data - at : chunk;
		t_pattern_fill(buf, chunk, 1, at / T_BLOCK);
		if (write(fd, buf, n) != (ssize_t)n)
			give_up(strerror(errno), b->run.file);
	}
	if (fsync(fd))
		give_up(strerror(errno), b->run.file);
	close(fd);
	free(buf);
	free(text);
}

/* Before each turn: the page cache as the cell wants it. */
static void settle(struct side_run *run, struct side_cell *c)
{
	struct bench *b = (struct bench *)run;
	bool warm = !strcmp(c->kind, "warm");
	int fd = open(run->file, O_RDONLY | O_CLOEXEC), all;
	double part;

	if (fd < 0)
		give_up(strerror(errno), run->file);
	if (!warm) {
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		all = b->drop ? open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC) : -1;
		if (b->drop && (all < 0 || write(all, "1", 1) != 1))
			give_up(strerror(errno), "/proc/sys/vm/drop_caches");
		if (all >= 0)
			close(all);
	}
	close(fd);
	part = side_cached(run->file, b->file_size, warm);
	/* the worst one seen */
	if (c->resident < 0 || (warm ? part < c->resident : part > c->resident))
		c->resident = part;
}

/* -- the table -- */

static void add(struct bench *b, const char *kind, const char *threads)
{
	struct side_cell *c = &b->cell[b->cells++];
	unsigned long t = strtoul(threads, NULL, 10);

	if (b->cells == MAX_CELLS)
		give_up("too many rows", kind);
	if (!t || t > SIDE_THREADS)
		give_up("1 to 64 threads", threads);
	c->kind = !strcmp(kind, "warm") ? "warm" : !strcmp(kind, "cold") ? "cold" : "direct";
	if (strcmp(c->kind, kind))
		give_up("the kinds are warm, cold and direct", kind);
	c->resident = -1;
	c->o.what = SIDE_LOAD;
	c->o.flags = b->run.unregistered ? 0 : SIDE_REGISTERED;
	if (!strcmp(kind, "direct"))
		c->o.flags |= SIDE_DIRECT;
	c->o.threads = t;
	c->o.seed = b->cells * 100000ULL;
	c->who = (2u << b->run.libs) - 1;
}

static void add_all(struct bench *b, const char *kinds, const char *threads)
{
	char *k = strdup(kinds), *t, *kind, *thread, *at, *inner;

	for (kind = strtok_r(k, ",", &at); kind; kind = strtok_r(NULL, ",", &at)) {
		t = strdup(threads);
		for (thread = strtok_r(t, ",", &inner); thread; thread = strtok_r(NULL, ",", &inner))
			add(b, kind, thread);
		free(t);
	}
	free(k);
	if (!b->cells)
		give_up("nothing to do", "--kinds, --threads");
}

static void report(const struct bench *b)
{
	const struct side_run *r = &b->run;
	const struct side_cell *c;
	unsigned int i;
	double ours;

	printf("\n%-7s %4s |", "file", "thr");
	for (i = 0; i <= r->libs; i++)
		printf(" %8.8s", r->s[i].name);
	printf(" | whole, ms:");
	for (i = 0; i < r->libs; i++)
		printf(" %8.8s", r->s[i].name);
	for (i = 1; i <= r->libs && !r->no_compare; i++)
		printf("%s :%-7.7s", i == 1 ? " |" : "", r->s[i].name);
	printf(" | CPU s/GiB:");
	for (i = 0; i <= r->libs; i++)
		printf(" %7.7s", r->s[i].name);
	printf(" | cached\n");
	for (c = b->cell; c < b->cell + b->cells; c++) {
		printf("%-7s %4u |", c->kind, c->o.threads);
		for (i = 0; i <= r->libs; i++)
			if (c->failed[i])
				printf(" %8s", "FAILED");
			else
				printf(" %8.2f", side_rate(c, i));
		printf(" | %10s", "");
		for (i = 0; i < r->libs; i++)
			printf(" %8.0f", side_whole(c, i) * 1e3);
		ours = side_rate(c, 0);
		for (i = 1; i <= r->libs && !r->no_compare; i++)
			printf("%s %8.2f", i == 1 ? " |" : "",
			       side_rate(c, i) > 0 ? ours / side_rate(c, i) : 0);
		printf(" | %10s", "");
		for (i = 0; i <= r->libs; i++)
			printf(" %7.3f", side_cpu_gib(c, i));
		printf(" | %3.0f %%\n", c->resident * 100);
	}
	printf("\nGiB/s from the open of the file to the end of the last tensor, medians of %d rounds; whole: with the\n"
	       "registration of %d buffers and its end (%s); %d tensors, %.2f GiB; cached: of the file, before\n",
	       r->rounds, TENSORS, r->unregistered ? "left out" : "done", TENSORS, b->file_size / SIDE_GIB);
	if (r->failed)
		printf("%u FAILED: see above\n", r->failed);
	else
		printf("every byte of the last rounds was compared\n");
}

int main(int argc, char **argv)
{
	static const struct option option[] = {
		SIDE_OPTIONS, { "kinds", 1, 0, 'k' }, { "threads", 1, 0, 't' }, { "size", 1, 0, 's' },
		{ "mixed", 0, 0, 'x' }, { "drop-caches", 0, 0, 'D' }, { "help", 0, 0, 'h' }, { 0 },
	};
	static struct bench b = {
		.run = { .bench = "loader", .rounds = 5, .before = settle },
		.size = 2ULL << 30,
	};
	const char *kinds = "warm,cold", *threads = "1,4,16";
	int o, r, status;
	unsigned int i;

	side_here(argc, argv);
	b.run.argc = argc;
	b.run.argv = argv;
	while ((o = getopt_long(argc, argv, "", option, NULL)) != -1) {
		r = side_option(&b.run, o, optarg);
		if (r < 0)
			return 2;
		if (!r)
			continue;
		switch (o) {
		case 'k': kinds = optarg; break;
		case 't': threads = optarg; break;
		case 'x': b.mixed = true; break;
		case 'D': b.drop = true; break;
		case 's':
			b.size = side_size(optarg);
			if (b.size < TENSORS * 4096 || b.size > 64ULL << 30)
				give_up("256K to 64G", optarg);
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs("see --help\n", stderr);
			return 2;
		}
	}
	if (optind < argc)
		give_up("no such argument; see --help", argv[optind]);
	status = side_begin(&b.run, false);
	if (status)
		return status;
	add_all(&b, kinds, threads);
	make_file(&b);
	side_machine(stdout, &b.run);
	for (i = 0; i < b.cells && !side_stopped(); i++) {
		side_measure(&b.run, &b.cell[i]);
		fprintf(stderr, "[%u/%u] %s x %u: %s %.2f GiB/s\n", i + 1, b.cells, b.cell[i].kind,
			b.cell[i].o.threads, b.run.s[0].name, side_rate(&b.cell[i], 0));
	}
	side_end(&b.run);
	report(&b);
	if (side_json(&b.run, b.cell, b.cells))
		return 2;
	return b.run.failed ? 1 : 0;
}
