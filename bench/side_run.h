/* SPDX-License-Identifier: MIT */
/*
 * side_run.h - one run: its contestants, the rounds of a cell, what is made of them.
 *
 * A cell is one row of a table: the same order to each contestant, in rounds. In each round all
 * take their turn, in an order that rotates and is reversed every other round, so that what
 * disturbs the machine disturbs all.
 */
#ifndef BENCH_SIDE_RUN_H
#define BENCH_SIDE_RUN_H

#include <stdio.h>

#include "side.h"

#define SIDE_ROUNDS 31
#define SIDE_LIMITS 8
#define SIDE_GIB (1024.0 * 1024 * 1024)
#define SIDE_SPLIT (1UL << 20)	/* from here on a request can be shared among threads */

/* --limit NAME=COMMAND: what a machine can do, by a program that prints GiB/s. */
struct side_limit {
	char name[24];
	const char *command;
	double gib_s;		/* the better one of before and after the table */
};

struct side_sample {
	double seconds, whole, cpu;
	uint64_t bytes, requests, verified;
};

struct side_cell {
	const char *kind;		/* "buffered", "direct"; "warm", "cold" */
	bool hidden;			/* a limit of others, not a row of the table */
	struct side_order o;
	uint32_t who;			/* bits of contestants */
	struct side_sample s[SIDE_MAX][SIDE_ROUNDS];
	unsigned int rounds[SIDE_MAX];	/* that were measured */
	char *failed[SIDE_MAX];		/* why it was not, or not to the end */
	double resident;		/* part of the file that was cached; -1: not asked */
};

struct side_run {
	const char *bench;		/* "indirect", "loader" */
	const char *dir, *json;
	char file[4096];
	int gpu, rounds, argc;
	char **argv;
	double seconds;			/* of a measurement */
	bool unregistered, no_compare;
	struct side s[SIDE_MAX];	/* libraries, the first is ours; then raw, copy, store */
	unsigned int count, libs, raw, copy, store;	/* the last two: 0 when there is none */
	struct side_limit limit[SIDE_LIMITS];
	unsigned int limits, failed;
	/* before the turn of a contestant, without being measured; NULL */
	void (*before)(struct side_run *run, struct side_cell *c);
};

/* An option that all benches of this kind have: 0, 1: none of these, -1: wrong, and said so. */
#define SIDE_OPTIONS                                                                         \
	{ "lib", 1, 0, 'l' }, { "dir", 1, 0, 'd' }, { "rounds", 1, 0, 'r' },                 \
	{ "json", 1, 0, 'j' }, { "gpu", 1, 0, 'g' }, { "unregistered", 0, 0, 'u' },          \
	{ "no-compare", 0, 0, 'n' }, { "limit", 1, 0, 'L' }
int side_option(struct side_run *run, int o, char *arg);
#define SIDE_USAGE                                                                           \
	"  --lib NAME=PATH[,VARIABLE=VALUE]...  a libcufile, with environment of its own;\n" \
	"                     the first is the one that the others are compared with\n"      \
	"  --dir DIR          folder of the data file (removed at the end)\n"                \
	"  --rounds N         measurements of each cell and contestant (5, odd)\n"           \
	"  --json FILE        all rounds and the machine's facts\n"                          \
	"  --gpu N            (0)\n"                                                         \
	"  --unregistered     no cuFileBufRegister\n"                                        \
	"  --limit NAME=COMMAND  prints GiB/s: what the machine can move into the GPU\n"     \
	"  --no-compare       measure and verify, print no ratios\n"

/*
 * Checks what was asked for and the kernel, starts all contestants: 0, or an exit status. Where the
 * driver does not let the CPU see GPU memory there is no `store`, and that is said.
 */
int side_begin(struct side_run *run, bool limits);
/* A warm-up, then the rounds. */
void side_measure(struct side_run *run, struct side_cell *c);
/* SIGINT or SIGTERM came: the table ends here. */
bool side_stopped(void);
/* Limits once more, contestants end, the file is removed. */
void side_end(struct side_run *run);

double side_rate(const struct side_cell *c, unsigned int who);	/* GiB/s, median; 0: none */
double side_whole(const struct side_cell *c, unsigned int who);	/* seconds, median */
double side_cpu_gib(const struct side_cell *c, unsigned int who);	/* seconds a GiB */

/* Part of the file's first `size` bytes that is cached; with `fill` all is read first. */
double side_cached(const char *file, uint64_t size, bool fill);

/* The machine, for people; all of it with the rounds, to run->json: 0 or -1. */
void side_machine(FILE *f, const struct side_run *run);
int side_json(const struct side_run *run, const struct side_cell *cell, unsigned int cells);

#endif /* BENCH_SIDE_RUN_H */
