/* SPDX-License-Identifier: MIT */
/* stats_text.h - statistics in the words of the vendor's gds_stats, for it and for the log. */
#ifndef STATS_TEXT_H
#define STATS_TEXT_H

#include "cufile.h"

/* "GLOBAL STATS:" and the lines below it, each without its end, to line(). */
void stats_text_global(const CUfileStatsLevel1_t *l, void (*line)(void *arg, const char *text),
		       void *arg);

#endif /* STATS_TEXT_H */
