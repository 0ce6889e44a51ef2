// SPDX-License-Identifier: MIT
/* live.c - keys, the terminal, and who is looked at. What is shown is made in view.c. */
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "live.h"
#include "view.h"

#define ESCAPE 27
#define INTERVAL_MIN 0.1
#define INTERVAL_MAX 60.0

struct live {
	struct view view;
	struct view_screen screen;
	int pid;			/* the only one; 0: all */
	struct source one;
	struct view_process **p;	/* by the order of the view */
	unsigned int n;
	bool quit;
};

/* -- looking -- */

static struct view_process *find(const struct live *l, int pid)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (l->p[i]->now.pid == pid)
			return l->p[i];
	return NULL;
}

/* Looks at one of them, new or seen before. NULL: it cannot be read now, or no memory. */
static struct view_process *look(const struct live *l, const struct source *s)
{
	struct view_process *was = find(l, s->pid), *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (source_read(s, &p->now)) {
		free(p);
		return NULL;
	}
	p->before = was ? was->now : p->now;
	p->gone = !source_lives(s);
	return p;
}

static void forget(struct live *l)
{
	while (l->n)
		free(l->p[--l->n]);
	free(l->p);
	l->p = NULL;
}

static void replace(struct live *l, struct view_process **p, unsigned int n)
{
	forget(l);
	l->p = p;
	l->n = n;
}

static void refresh_one(struct live *l)
{
	struct view_process **p = calloc(1, sizeof(*p));
	bool ended = l->n && l->p[0]->gone;

	/* what it did in the end stays to be read */
	if (p && !ended)
		p[0] = look(l, &l->one);
	if (p && p[0])
		replace(l, p, 1);
	else
		free(p);
}

static void refresh_all(struct live *l)
{
	struct view_process **p, *kept = find(l, l->view.pid);
	struct source *s = NULL;
	int found = source_list(&s), i;
	unsigned int n = 0;

	if (found < 0)
		return;
	p = calloc(found + 1, sizeof(*p));
	for (i = 0; i < found; i++) {
		if (p)
			p[n] = look(l, &s[i]);
		n += p && p[n];
		if (kept && s[i].pid == kept->now.pid)
			kept = NULL;
		source_close(&s[i]);
	}
	free(s);
	if (!p)
		return;
	/* the one that is looked at does not vanish below the eyes */
	if (kept && l->view.page != VIEW_PROCESSES) {
		p[n] = malloc(sizeof(*kept));
		if (p[n]) {
			*p[n] = *kept;
			p[n++]->gone = true;
		}
	}
	replace(l, p, n);
}

/* -- the terminal -- */

static void show(struct live *l)
{
	static const attr_t look[] = {
		[LOOK_PLAIN] = A_NORMAL, [LOOK_TITLE] = A_REVERSE | A_BOLD, [LOOK_HEAD] = A_BOLD,
		[LOOK_CURSOR] = A_REVERSE, [LOOK_BAD] = A_BOLD,
	};
	time_t now = time(NULL);
	struct tm tm;
	unsigned int i;

	erase();
	if (LINES < VIEW_ROWS || COLS < VIEW_COLUMNS) {
		mvprintw(0, 0, "%dx%d: make the terminal", COLS, LINES);
		mvprintw(1, 0, "%dx%d at least, or q", VIEW_COLUMNS, VIEW_ROWS);
		refresh();
		return;
	}
	l->view.rows = LINES < VIEW_MOST_ROWS ? LINES : VIEW_MOST_ROWS;
	l->view.columns = COLS < VIEW_MOST_COLUMNS ? COLS : VIEW_MOST_COLUMNS;
	strftime(l->view.clock, sizeof(l->view.clock), "%H:%M:%S", localtime_r(&now, &tm));
	view_draw(&l->view, l->p, l->n, &l->screen);
	for (i = 0; i < l->screen.rows; i++) {
		attrset(look[l->screen.look[i]]);
		mvaddstr(i, 0, l->screen.text[i]);
	}
	attrset(A_NORMAL);
	refresh();
}

static void go(struct live *l, enum view_page page)
{
	l->view.page = page;
	l->view.scroll = 0;
}

static void back(struct live *l)
{
	if (l->view.page != VIEW_PROCESS)
		go(l, VIEW_PROCESS);
	else if (!l->pid)
		go(l, VIEW_PROCESSES);
}

static void move_by(struct live *l, int by)
{
	struct view *v = &l->view;

	if (v->page == VIEW_PROCESSES)
		view_move(v, l->p, l->n, by);
	else if (v->page == VIEW_FILES && (by > 0 ? v->scroll < STATS_FILES : v->scroll > 0))
		v->scroll += by;
}

static void next_route(struct live *l)
{
	const struct view_process *p = find(l, l->view.pid);

	if (p)
		l->view.route = l->view.route >= p->now.routes ? 0 : l->view.route + 1;
}

static void on_key(struct live *l, int key)
{
	struct view *v = &l->view;

	switch (key) {
	case 'q':
		l->quit = true;
		break;
	case KEY_UP:
	case 'k':
		move_by(l, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move_by(l, 1);
		break;
	case '\n':
	case KEY_ENTER:
		if (v->page == VIEW_PROCESSES && l->n)
			go(l, VIEW_PROCESS);
		break;
	case ESCAPE:
	case KEY_BACKSPACE:
	case KEY_LEFT:
		back(l);
		break;
	case 's':
		v->sort = (v->sort + 1) % SORTS;
		break;
	case 'f':
		if (v->page != VIEW_PROCESSES)
			go(l, VIEW_FILES);
		break;
	case 'h':
		if (v->page != VIEW_PROCESSES)
			go(l, VIEW_HISTOGRAM);
		break;
	case 't':
		v->sizes = !v->sizes;
		break;
	case 'r':
		next_route(l);
		break;
	case '+':
		v->interval = v->interval * 2 < INTERVAL_MAX ? v->interval * 2 : INTERVAL_MAX;
		break;
	case '-':
		v->interval = v->interval / 2 > INTERVAL_MIN ? v->interval / 2 : INTERVAL_MIN;
		break;
	}
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Until somebody quits, or the terminal is gone. */
static void loop(struct live *l)
{
	double next = 0, left;
	int key;

	while (!l->quit) {
		if (seconds() >= next) {
			if (l->pid)
				refresh_one(l);
			else
				refresh_all(l);
			next = seconds() + l->view.interval;
		}
		show(l);
		left = next - seconds();
		timeout(left > 0 ? (int)(left * 1000) + 1 : 0);
		errno = 0;
		key = getch();
		if (key == ERR && errno && errno != EINTR && errno != EAGAIN)
			return;
		on_key(l, key);
	}
}

int live_run(int pid, double interval, char why[SOURCE_WHY])
{
	struct live *l;
	SCREEN *screen;
	int r = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		snprintf(why, SOURCE_WHY,
			 "--live needs a terminal, and standard %s is none: use -p, --json or --prometheus",
			 isatty(STDOUT_FILENO) ? "input" : "output");
		return -ENOTTY;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		snprintf(why, SOURCE_WHY, "no memory");
		return -ENOMEM;
	}
	l->pid = pid;
	l->view = (struct view){ .interval = interval, .route = STATS_ROUTES, .pid = pid,
				 .page = pid ? VIEW_PROCESS : VIEW_PROCESSES };
	if (pid)
		r = source_open(pid, false, &l->one, why);
	if (r)
		goto out;
	setlocale(LC_ALL, "");
	/* of a key alone: the start of a sequence follows sooner */
	set_escdelay(50);
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		snprintf(why, SOURCE_WHY, "the terminal type '%s' is unknown: set TERM",
			 getenv("TERM") ? getenv("TERM") : "");
		r = -ENOTTY;
		goto out;
	}
	cbreak();
	noecho();
	keypad(stdscr, true);
	curs_set(0);
	/* a screen is drawn as a whole, also when the next key is there already */
	typeahead(-1);
	loop(l);
	endwin();
	delscreen(screen);
out:
	forget(l);
	source_close(&l->one);
	free(l);
	return r;
}
