/* SPDX-License-Identifier: MIT */
/*
 * compare.h - how benches compare: medians over rounds, and verdicts that know how far two
 * measurements of the same thing lie apart.
 */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdlib.h>

static inline int compare_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts v. */
static inline double compare_median(double *v, int n)
{
	qsort(v, n, sizeof(v[0]), compare_by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* How far a ratio is from 1, whichever way. */
static inline double compare_deviation(double ratio)
{
	return ratio > 1 ? ratio - 1 : 1 / ratio - 1;
}

/*
 * A value against its target (`least`: it must be reached; else not be passed). A miss that
 * the spread explains is none; another is counted.
 */
static inline const char *compare_judge(double value, double target, int least, double spread,
					int *missed)
{
	double by = least ? target - value : value - target;

	if (by <= 0)
		return "ok";
	if (by <= spread * target)
		return "within spread";
	*missed += 1;
	return "MISSED";
}

#endif /* BENCH_COMPARE_H */
