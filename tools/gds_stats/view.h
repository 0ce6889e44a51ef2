/* SPDX-License-Identifier: MIT */
/* view.h - what the live view shows, as lines of text: drawn by live.c, compared by tests. */
#ifndef GDS_STATS_VIEW_H
#define GDS_STATS_VIEW_H

#include "snapshot.h"

#define VIEW_ROWS 24	/* a smaller terminal is told so */
#define VIEW_COLUMNS 80
#define VIEW_MOST_ROWS 200
#define VIEW_MOST_COLUMNS 300

enum view_page { VIEW_PROCESSES, VIEW_PROCESS, VIEW_FILES, VIEW_HISTOGRAM };
enum view_sort { SORT_READ, SORT_WRITE, SORT_ERRORS, SORT_PID, SORTS };
enum view_look { LOOK_PLAIN, LOOK_TITLE, LOOK_HEAD, LOOK_CURSOR, LOOK_BAD };

/* A process now, and at the look before; before.taken_ns == now.taken_ns: there was none. */
struct view_process {
	struct snapshot now, before;
	bool gone;		/* it has ended: these are its last numbers */
};

struct view {
	unsigned int rows, columns;
	enum view_page page;
	enum view_sort sort;
	int pid;		/* of the process at the cursor, 0: the first */
	unsigned int scroll;	/* first file */
	unsigned int route;	/* of the histograms; the number of routes: all of them */
	bool sizes;		/* histograms of sizes, not of times */
	double interval;	/* seconds */
	char clock[16];		/* "14:02:11" */
};

struct view_screen {
	unsigned int rows;
	char text[VIEW_MOST_ROWS][VIEW_MOST_COLUMNS * 4 + 1];	/* UTF-8 */
	enum view_look look[VIEW_MOST_ROWS];
};

/* Sorts `p`, moves the cursor to a process that is there, and fills the screen. */
void view_draw(struct view *v, struct view_process **p, unsigned int n, struct view_screen *out);

/* The cursor goes up (-1) or down (1); by the order of the last view_draw(). */
void view_move(struct view *v, struct view_process *const *p, unsigned int n, int by);

#endif /* GDS_STATS_VIEW_H */
