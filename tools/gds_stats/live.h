/* SPDX-License-Identifier: MIT */
/* live.h - the live view: processes, and what one of them does, until somebody quits. */
#ifndef GDS_STATS_LIVE_H
#define GDS_STATS_LIVE_H

#include "source.h"

/* pid 0: all processes. 0, or -errno and why. */
int live_run(int pid, double interval, char why[SOURCE_WHY]);

#endif /* GDS_STATS_LIVE_H */
