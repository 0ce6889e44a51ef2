// SPDX-License-Identifier: MIT
/* prove_judge.c - what a request proves. Nothing here looks at the machine. */
#include <stddef.h>

#include "prove.h"

uint64_t prove_direct_bytes(const struct prove_row *row)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < OGDS_ROUTE_SLOTS; i++)
		if (OGDS_DIRECT_MASK & 1u << i)
			n += row->bytes[i];
	return n;
}

/*
 * Direct is what was seen: the module saw every sector of every byte on a direct route, and all
 * whole blocks took one. Counters that went up, or the library's word alone, are not enough.
 */
enum prove_verdict prove_judge(const struct prove_row *row)
{
	uint64_t direct = prove_direct_bytes(row);

	if (!row->made || row->result < 0)
		return PROVE_NOT_RUN;
	if (!row->right)
		return PROVE_WRONG;
	if (!row->told || !row->whole || row->whole_direct != row->whole)
		return PROVE_INDIRECT;
	return row->witnessed == direct && direct >= row->whole ? PROVE_DIRECT : PROVE_UNSEEN;
}

const struct prove_row *prove_first_not_direct(const struct prove_run *run)
{
	unsigned int i;

	for (i = 0; i < PROVE_ROWS; i++)
		if (run->row[i].made && prove_judge(&run->row[i]) != PROVE_DIRECT)
			return &run->row[i];
	return NULL;
}

static bool any(const struct prove_run *run, enum prove_verdict v)
{
	unsigned int i;

	for (i = 0; i < PROVE_ROWS; i++)
		if (run->row[i].made && prove_judge(&run->row[i]) == v)
			return true;
	return false;
}

int prove_exit(const struct prove_run *configured, const struct prove_run *all, size_t n)
{
	unsigned int i, direct = 0, moved = 0;
	enum prove_verdict v;
	size_t j;

	for (j = 0; j < n; j++)
		if (any(&all[j], PROVE_WRONG))
			return PROVE_EXIT_WRONG;
	for (i = 0; i < PROVE_ROWS; i++) {
		v = prove_judge(&configured->row[i]);
		direct += v == PROVE_DIRECT;
		moved += v != PROVE_NOT_RUN;
	}
	if (direct == PROVE_ROWS)
		return PROVE_EXIT_DIRECT;
	return moved == PROVE_ROWS ? PROVE_EXIT_INDIRECT : PROVE_EXIT_NOT_RUN;
}
