/* SPDX-License-Identifier: MIT */
/* t_row.h - one line a check: "ok  NAME", or "BAD NAME: what it was instead". */
#ifndef T_ROW_H
#define T_ROW_H

#include <stdbool.h>

/* fmt tells what was found; it is printed for a check that failed. One thread. */
void t_row(bool ok, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* 1 when a check failed: the exit status of the program */
int t_rows_bad(void);

#endif /* T_ROW_H */
