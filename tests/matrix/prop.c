// SPDX-License-Identifier: MIT
/*
 * prop.c - matrix_prop, the property test of a cell: random operations on one file, against a model
 * of it in memory, and the route that each request took against the one that is expected.
 *
 * README.md has the operations. It stops at the first thing that is wrong, says what it did then,
 * and how it is repeated. Exit status 0, or 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prop.h"

static const char * const ops[OPS + 1] = {
	[OP_READ] = "read", [OP_WRITE] = "write", [OP_EXTEND] = "extend",
	[OP_TRUNCATE] = "truncate", [OP_PUNCH] = "punch", [OP_UNWRITTEN] = "unwritten",
	[OP_STORE] = "mmap", [OP_LOAD] = "load", [OP_BUFFERED] = "buffered",
	[OP_FSYNC] = "fsync", [OP_DROP] = "drop", [OP_REOPEN] = "reopen", [OP_RACE] = "race",
	[OP_THREAD] = "thread", [OP_PROCESS] = "process", [OP_APPEND] = "append",
	[OP_DIRECT] = "direct",
};

static const char * const ways[WAYS] = {
	[WAY_NVFS] = "nvfs", [WAY_P2PDMA] = "p2pdma", [WAY_STAGED] = "staged",
	[WAY_BAR] = "bar", [WAY_BOUNCE] = "bounce", [WAY_RAW] = "raw",
};

/* How often each comes beside the others; those that take long come once, in the first round. */
static const unsigned int weight[OPS] = {
	[OP_READ] = 20, [OP_WRITE] = 16, [OP_EXTEND] = 4, [OP_TRUNCATE] = 3, [OP_PUNCH] = 4,
	[OP_UNWRITTEN] = 3, [OP_STORE] = 4, [OP_LOAD] = 4, [OP_BUFFERED] = 5, [OP_FSYNC] = 1,
	[OP_DROP] = 2, [OP_REOPEN] = 1,
};

const char *op_name(unsigned int op)
{
	return op <= OPS ? ops[op] : "unknown";
}

const char *way_name(unsigned int way)
{
	return way < WAYS ? ways[way] : "unknown";
}

void bad(const struct prop *p, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "BAD %s%s: ", p->child ? "second process, " : "", p->doing);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (seed %llu)\n", (unsigned long long)p->seed);
	tally_print(p);
	fflush(stdout);
	/* threads may be about: no handlers of the end */
	_exit(1);
}

static bool lacked(const struct prop *p, unsigned int op)
{
	const unsigned int ends = 1u << OP_EXTEND | 1u << OP_TRUNCATE | 1u << OP_UNWRITTEN |
				  1u << OP_RACE;
	const unsigned int reads = 1u << OP_READ | 1u << OP_LOAD | 1u << OP_DROP | 1u << OP_REOPEN;

	if (p->read_only && !(reads & 1u << op))
		return true;
	if (p->device && (ends & 1u << op))
		return true;
	if (op == OP_RACE)
		return p->lacks & 1u << OP_TRUNCATE;
	if (op == OP_LOAD)
		return !p->map;
	/* what is lacked of it is looked at there */
	return op != OP_APPEND && p->lacks & 1u << op;
}

/* -- operations that are no request -- */

static void extend(struct prop *p)
{
	struct request r;

	io_pick(p, &r, true);
	r.size = least(r.size, 256 * KB);
	switch (below(p, 4)) {
	case 0: r.off = p->end - least(below(p, r.size), p->end); break;
	case 1: r.off = p->end + below(p, 64 * KB); break;
	default: r.off = p->end; break;
	}
	if (p->way == WAY_RAW)
		r.off &= ~(T_BLOCK - 1L);
	if (r.off + r.size <= LIMIT)
		io_do(p, &r);
}

static void set_end(struct prop *p)
{
	off_t end = below(p, 3) ? p->end - below(p, p->end + 1) / 4 : p->end + below(p, 256 * KB);

	if (!below(p, 3))
		end = (end + T_BLOCK - 1) & ~(T_BLOCK - 1L);
	end = least(end, LIMIT);
	snprintf(p->doing, sizeof(p->doing), "ftruncate to %lld from %lld", (long long)end,
		 (long long)p->end);
	if (ftruncate(p->plain, end))
		bad(p, "%s", strerror(errno));
	if (end > p->end)
		model_hole(p, p->end, end - p->end);
	p->end = end;
	file_check(p, end, end);
}

/* Where an operation without a request goes. */
static size_t range(struct prop *p, off_t *off, size_t most)
{
	size_t n = 1 + below(p, most);

	n = least(n, p->end);
	*off = below(p, p->end - n + 1);
	if (below(p, 2)) {
		*off &= ~(T_BLOCK - 1L);
		n = least((n + T_BLOCK - 1) & ~(T_BLOCK - 1UL), p->end - *off);
	}
	return n;
}

static void punch(struct prop *p)
{
	size_t n;
	off_t off;

	if (!p->end)
		return;
	n = range(p, &off, 128 * KB);
	if (p->device) {
		off &= ~(T_BLOCK - 1L);
		n = (n + T_BLOCK - 1) & ~(T_BLOCK - 1UL);
	}
	snprintf(p->doing, sizeof(p->doing), "a hole of %zu at %lld", n, (long long)off);
	if (fallocate(p->plain, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, n))
		bad(p, "%s", strerror(errno));
	model_hole(p, off, n);
	file_check(p, off, off + n);
}

/* Blocks without data, behind the end or where a hole is. */
static void unwritten(struct prop *p)
{
	off_t off = below(p, 2) ? p->end : below(p, p->end + 1);
	size_t n = 1 + below(p, 256 * KB);

	n = least(n, LIMIT - off);
	if (!n)
		return;
	snprintf(p->doing, sizeof(p->doing), "fallocate of %zu at %lld", n, (long long)off);
	if (fallocate(p->plain, 0, off, n))
		bad(p, "%s", strerror(errno));
	if (off + (off_t)n > p->end) {
		model_hole(p, p->end, off + n - p->end);
		p->end = off + n;
	}
	file_check(p, off, off + n);
}

static void by_cpu(struct prop *p, unsigned int op)
{
	size_t n;
	off_t off;
	ssize_t r;

	if (!p->end)
		return;
	n = range(p, &off, 64 * KB);
	snprintf(p->doing, sizeof(p->doing), "%s of %zu at %lld", op_name(op), n, (long long)off);
	if (op == OP_STORE) {
		fresh(p, p->a, n);
		memcpy(p->map + off, p->a, n);
		model_wrote(p, off, p->a, n);
	} else if (op == OP_LOAD) {
		if (memcmp(p->map + off, p->m->data + off, n))
			bad(p, "the mapping has other bytes than the file should have");
	} else if (below(p, 2)) {
		fresh(p, p->a, n);
		plain_write(p, off, p->a, n);
	} else {
		r = pread(p->plain, p->a, n, off);
		if (r != (ssize_t)n || memcmp(p->a, p->m->data + off, n))
			bad(p, "buffered read: %zd of %zu, or other bytes", r, n);
	}
}

static void sync_file(struct prop *p)
{
	snprintf(p->doing, sizeof(p->doing), "fsync");
	if (below(p, 2) ? fsync(p->plain) : fdatasync(p->direct >= 0 ? p->direct : p->plain))
		bad(p, "%s", strerror(errno));
}

static void drop(struct prop *p)
{
	if (!p->read_only)
		sync_file(p);
	posix_fadvise(p->plain, 0, 0, POSIX_FADV_DONTNEED);
}

static void reopen(struct prop *p)
{
	snprintf(p->doing, sizeof(p->doing), "a new registration");
	io_deregister(p);
	io_register(p);
}

static void operate(struct prop *p, unsigned int op, const char *self)
{
	struct request r;

	p->done[op]++;
	switch (op) {
	case OP_READ:
	case OP_WRITE:
		io_pick(p, &r, op == OP_WRITE);
		io_do(p, &r);
		break;
	case OP_EXTEND: extend(p); break;
	case OP_TRUNCATE: set_end(p); break;
	case OP_PUNCH: punch(p); break;
	case OP_UNWRITTEN: unwritten(p); break;
	case OP_STORE:
	case OP_LOAD:
	case OP_BUFFERED: by_cpu(p, op); break;
	case OP_FSYNC: sync_file(p); break;
	case OP_DROP: drop(p); break;
	case OP_REOPEN: reopen(p); break;
	case OP_RACE: race(p); break;
	case OP_THREAD: beside_thread(p); break;
	case OP_PROCESS: beside_process(p, self); break;
	case OP_APPEND:
		snprintf(p->doing, sizeof(p->doing), "O_APPEND");
		io_append(p);
		break;
	}
}

/* -- the order of things -- */

/* The file as it is at the beginning: small ones are inline, say, until they are written. */
static void first_reads(struct prop *p)
{
	struct request r;
	int i;

	for (i = 0; i < 3; i++) {
		io_pick(p, &r, false);
		r.off = 0;
		r.size = p->largest;
		if (p->way != WAY_RAW)
			r.size -= i;
		r.target = GUARD;
		io_do(p, &r);
	}
}

/* Whole blocks while it is still so: of a small file no read has any. */
static void first_write(struct prop *p)
{
	struct request r;

	io_pick(p, &r, true);
	r.off = 0;
	r.size = 2 * T_BLOCK;
	r.target = 2 * GUARD;
	io_do(p, &r);
}

static unsigned int pick_op(struct prop *p)
{
	unsigned int i, sum = 0, at;

	for (i = 0; i < OPS; i++)
		sum += weight[i] * !!(p->ops & 1u << i);
	at = below(p, sum);
	for (i = 0; at >= weight[i] * !!(p->ops & 1u << i); i++)
		at -= weight[i] * !!(p->ops & 1u << i);
	return i;
}

static void run(struct prop *p, const char *self)
{
	unsigned int i, n = 0, order[OPS + 1], steps;

	first_reads(p);
	for (i = 0; i < OPS; i++)
		if (lacked(p, i))
			p->ops &= ~(1u << i);
	if (p->ops & 1u << OP_WRITE)
		first_write(p);
	if (p->grow) {
		fill(p, 64 * KB);
		sync_file(p);
	}
	/* each at least once, in any order, and then a new look at what the file is by now */
	for (i = 0; i < OPS; i++)
		if (p->ops & 1u << i) {
			unsigned int at = below(p, n + 1);

			order[n] = order[at];
			order[at] = i;
			n++;
		}
	order[n++] = OP_REOPEN;
	for (i = 0; i < n; i++)
		operate(p, order[i], self);
	for (steps = 0; steps < p->steps; steps++)
		operate(p, pick_op(p), self);
}

static void *take_model(struct prop *p)
{
	void *m;

	if (!p->child) {
		p->model_fd = memfd_create("model", 0);
		if (p->model_fd < 0 || ftruncate(p->model_fd, sizeof(struct model)))
			t_die("memfd_create: %s", strerror(errno));
	}
	m = mmap(NULL, sizeof(struct model), PROT_READ | PROT_WRITE, MAP_SHARED, p->model_fd, 0);
	if (m == MAP_FAILED)
		t_die("mmap of the model: %s", strerror(errno));
	return m;
}

static void set_up(struct prop *p)
{
	snprintf(p->doing, sizeof(p->doing), "at the beginning");
	p->rnd = p->seed;
	p->m = take_model(p);
	p->gpu_want = malloc(ROOM);
	if (!p->gpu_want || posix_memalign((void **)&p->a, T_BLOCK, LIMIT + T_BLOCK) ||
	    posix_memalign((void **)&p->b, T_BLOCK, LIMIT + T_BLOCK))
		t_die("out of memory");
	file_open(p);
	if (p->way == WAY_RAW && p->direct < 0)
		t_die("%s: the module wants O_DIRECT, which this file system lacks", p->file);
	file_begin(p);
	io_open(p);
	io_register(p);
}

static void summary(const struct prop *p)
{
	unsigned int i;

	printf("seed %llu:", (unsigned long long)p->seed);
	for (i = 0; i < OPS; i++)
		if (p->done[i])
			printf(" %s %lu", op_name(i), p->done[i]);
	printf("\n");
}

/* -- options -- */

static const char help[] =
"usage: matrix_prop --file F --route R --takes T[+T] [OPTION...]\n"
"  --route R      nvfs, p2pdma, staged, bar, bounce (the library) or raw (the module's ioctls)\n"
"  --takes T      what whole blocks must take: these routes, cpu (of raw), none (refused)\n"
"  --reason ID    and why it is not the one asked for\n"
"  --strict       refuse rather than take another way\n"
"  --seed N       of all that is random (1)\n"
"  --steps N      operations after one of each kind (60)\n"
"  --start BYTES  size of the file at the beginning (1500000)\n"
"  --made SEED    the file is one of `matrix_file make`, and begins as that\n"
"  --read-only    only reads\n"
"  --soft         content that can be compressed, as `matrix_file make ... --soft`\n"
"  --grow         after the first reads and write the file gets 64 KiB and is synced\n"
"  --ops LIST     only these, besides read and write\n"
"  --lacks LIST   what the file system has not: append (with O_DIRECT), direct, mmap, punch,\n"
"                 truncate, unwritten\n"
"  --pins         plain reads pin the memory that they fill, which a view of the BAR cannot be\n"
"  --write-hole   a write into blocks without data may go by CPU\n"
"  --keep F       write there what the file has at the end\n"
"  --card N       the GPU (0)\n"
"  --verbose      a line for each request\n";

static void __attribute__((noreturn)) usage(const char *what, const char *value)
{
	if (what)
		fprintf(stderr, "matrix_prop: %s %s: see --help\n", what, value ? value : "is missing");
	else
		fputs(help, stdout);
	exit(what ? 2 : 0);
}

static unsigned int names(const char *what, char *list, const char * const *table, unsigned int n)
{
	unsigned int bits = 0, i;
	char *save, *word;

	for (word = strtok_r(list, ",+", &save); word; word = strtok_r(NULL, ",+", &save)) {
		for (i = 0; i < n && strcmp(table[i], word); i++)
			;
		if (i == n)
			usage(what, word);
		bits |= 1u << i;
	}
	return bits;
}

static void parse(struct prop *p, int argc, char **argv)
{
	static const struct option opts[] = {
		{ "file", 1, 0, 'f' }, { "route", 1, 0, 'r' }, { "takes", 1, 0, 't' },
		{ "reason", 1, 0, 'y' }, { "strict", 0, 0, 's' }, { "seed", 1, 0, 'e' },
		{ "steps", 1, 0, 'n' }, { "start", 1, 0, 'b' }, { "made", 1, 0, 'm' },
		{ "read-only", 0, 0, 'R' }, { "soft", 0, 0, 'S' }, { "grow", 0, 0, 'g' },
		{ "ops", 1, 0, 'o' }, { "lacks", 1, 0, 'l' }, { "write-hole", 0, 0, 'w' },
		{ "pins", 0, 0, 'p' },
		{ "keep", 1, 0, 'd' }, { "card", 1, 0, 'c' }, { "verbose", 0, 0, 'v' },
		{ "help", 0, 0, 'h' }, { "child", 1, 0, 'C' }, { "end", 1, 0, 'E' }, { 0 },
	};
	const char *took[TOOKS];
	unsigned int bits = 0, i;
	int o;

	for (i = 0; i < TOOKS; i++)
		took[i] = took_name(i);
	p->way = WAYS;
	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'f': p->file = optarg; break;
		case 'r':
			bits = names("--route", optarg, ways, WAYS);
			for (p->way = 0; bits >> p->way > 1; p->way++)
				;
			break;
		case 't':
			bits = names("--takes", optarg, took, TOOKS);
			for (i = 0; i < TOOKS; i++)
				p->takes[i] = bits & 1u << i;
			break;
		case 'y': p->reason = strcmp(optarg, "-") ? optarg : NULL; break;
		case 's': p->strict = true; break;
		case 'e': p->seed = strtoull(optarg, NULL, 0); break;
		case 'n': p->steps = strtoul(optarg, NULL, 0); break;
		case 'b': p->start = least(t_size(optarg), LIMIT); break;
		case 'm': p->made_seed = strtoull(optarg, NULL, 0); break;
		case 'R': p->read_only = true; break;
		case 'S': p->soft = true; break;
		case 'g': p->grow = true; break;
		case 'o':
			p->ops = 1u << OP_READ | 1u << OP_WRITE | names("--ops", optarg, ops, OPS);
			break;
		case 'l': p->lacks = names("--lacks", optarg, ops, OPS + 1); break;
		case 'w': p->write_hole = true; break;
		case 'p': p->pins = true; break;
		case 'd': p->keep = optarg; break;
		case 'c': p->card = strtol(optarg, NULL, 0); break;
		case 'v': p->verbose = true; break;
		case 'C': p->child = true; p->model_fd = strtol(optarg, NULL, 0); break;
		case 'E': p->end = strtoll(optarg, NULL, 0); break;
		case 'h': usage(NULL, NULL);
		default: exit(2);
		}
	}
	if (!p->file)
		usage("--file", NULL);
	if (p->way == WAYS)
		usage("--route", NULL);
	for (i = 0; i < TOOKS && !p->takes[i]; i++)
		;
	if (i == TOOKS)
		usage("--takes", NULL);
	/* from 64 KiB on the library measures whether stores are the quicker way */
	p->largest = p->way == WAY_BAR ? 60 * KB : LARGEST;
}

int main(int argc, char **argv)
{
	static struct prop p = {
		.seed = 1, .steps = 60, .start = 1500000, .ops = (1u << OPS) - 1,
	};

	parse(&p, argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	set_up(&p);
	if (p.child) {
		child_run(&p);
		io_close(&p);
		return 0;
	}
	run(&p, argv[0]);
	snprintf(p.doing, sizeof(p.doing), "at the end");
	io_close(&p);
	file_check_cold(&p);
	if (p.keep)
		file_keep(&p, p.keep);
	summary(&p);
	judge_all(&p);
	tally_print(&p);
	return 0;
}
