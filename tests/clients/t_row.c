// SPDX-License-Identifier: MIT
/* t_row.c - one line a check. */
#include <stdarg.h>
#include <stdio.h>

#include "t_row.h"

static int bad;

void t_row(bool ok, const char *name, const char *fmt, ...)
{
	va_list ap;

	printf("%s %s", ok ? "ok " : "BAD", name);
	if (!ok) {
		printf(": ");
		va_start(ap, fmt);
		vprintf(fmt, ap);
		va_end(ap);
		bad = 1;
	}
	putchar('\n');
}

int t_rows_bad(void)
{
	return bad;
}
