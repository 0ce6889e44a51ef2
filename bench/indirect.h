/* SPDX-License-Identifier: MIT */
/* indirect.h - the table of bench/indirect, and what limits its rows. */
#ifndef BENCH_INDIRECT_H
#define BENCH_INDIRECT_H

#include "side_run.h"

/* The slower one of the two ways that the bytes of a row have to go. */
struct indirect_limit {
	double gib_s;		/* 0: not measured */
	const char *name;
};

struct indirect_limit indirect_limit(const struct side_run *run, const struct side_cell *cell,
				     unsigned int cells, const struct side_cell *c);
void indirect_report(FILE *f, const struct side_run *run, const struct side_cell *cell,
		     unsigned int cells);

#endif /* BENCH_INDIRECT_H */
