// SPDX-License-Identifier: MIT
/*
 * view.c - the pages of the live view. Rates are those between two looks; with one look alone,
 * since collection began.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"
#include "view.h"

#define BAR 24	/* columns of the longest bar of a histogram */

static const char *const sort_name[SORTS] = { "read", "write", "errors", "pid" };

/* -- lines -- */

static unsigned int columns_of(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void __attribute__((format(printf, 4, 5))) say(struct view_screen *o, const struct view *v,
						      enum view_look look, const char *fmt, ...)
{
	char *text, *p;
	unsigned int n = 0;
	va_list ap;

	/* the last one is that of the keys */
	if (o->rows + 1 >= v->rows)
		return;
	text = o->text[o->rows];
	va_start(ap, fmt);
	vsnprintf(text, sizeof(o->text[0]), fmt, ap);
	va_end(ap);
	for (p = text; *p; p++) {
		n += (*p & 0xc0) != 0x80;
		if (n > v->columns) {
			*p = '\0';
			break;
		}
	}
	o->look[o->rows++] = look;
}

/* Any name, printable, in so many columns: the end of a long one. */
static const char *fit(const char *name, unsigned int columns, char *out, size_t len)
{
	char *plain = NULL, *from;
	size_t size;
	FILE *f = open_memstream(&plain, &size);
	unsigned int n;

	out[0] = '\0';
	if (!f)
		return out;
	put_plain(f, name);
	fclose(f);
	n = columns_of(plain);
	from = plain;
	if (n > columns) {
		for (n -= columns - 3; n; n--)
			from += utf8_bytes(from);
		snprintf(out, len, "...%s", from);
	} else {
		snprintf(out, len, "%s%*s", plain, (int)(columns - n), "");
	}
	free(plain);
	return out;
}

/* -- rates -- */

struct rate {
	double mib, ops, us;	/* a second, a second, on average */
	uint64_t err;
};

static struct rate rate_of(const struct view_process *p, const struct stats_way *now,
			   const struct stats_way *before)
{
	bool first = p->before.taken_ns == p->now.taken_ns;
	double s = (double)(first ? p->now.ns : p->now.taken_ns - p->before.taken_ns) / 1e9;
	struct stats_way old = { 0 };
	struct rate r = { .err = now->err };
	uint64_t n;

	/* fewer than before: it was set to 0 meanwhile */
	if (!first && before->n <= now->n && before->bytes <= now->bytes && before->ns <= now->ns)
		old = *before;
	n = now->n - old.n;
	if (s > 0) {
		r.mib = (double)(now->bytes - old.bytes) / s / (1 << 20);
		r.ops = (double)n / s;
	}
	r.us = n ? (double)(now->ns - old.ns) / (double)n / 1000 : 0;
	return r;
}

static struct rate rate_of_all(const struct view_process *p, int op)
{
	struct stats_way now = snapshot_sum(&p->now, op), before = snapshot_sum(&p->before, op);

	return rate_of(p, &now, &before);
}

/* "12.3", "4567", "1.2M": six columns */
static const char *number(double v, char out[16])
{
	if (v < 0.05)
		snprintf(out, 16, "%s", v > 0 ? "0.0" : "0");
	else if (v < 1000)
		snprintf(out, 16, "%.1f", v);
	else if (v < 100000)
		snprintf(out, 16, "%.0f", v);
	else if (v < 1e7)
		snprintf(out, 16, "%.0fk", v / 1e3);
	else if (v < 1e10)
		snprintf(out, 16, "%.0fM", v / 1e6);
	else
		snprintf(out, 16, "%.2g", v);
	return out;
}

/* A whole number. */
static const char *count(uint64_t n, char out[16])
{
	if (n >= 100000)
		return number((double)n, out);
	snprintf(out, 16, "%" PRIu64, n);
	return out;
}

/* "READ MiB/s  ops/s  us", six columns each */
static const char *rates(const struct rate *r, char out[64])
{
	char a[16], b[16], c[16];

	snprintf(out, 64, "%7s %7s %7s", number(r->mib, a), number(r->ops, b), number(r->us, c));
	return out;
}

/*
 * Of the bytes of GPU memory that went since the look before (`lately`) or ever, those that a
 * drive moved itself: "100%", "-": there were none. The names are those of ogds_route_name().
 */
static const char *direct(const struct view_process *p, bool lately, char out[16])
{
	uint64_t all = 0, some = 0, n;
	unsigned int i, op;

	for (i = 0; i < p->now.routes; i++) {
		const char *name = p->now.route_name[i];

		if (!strcmp(name, "host"))
			continue;
		for (op = 0; op < 2; op++) {
			n = p->now.route[i][op].bytes;
			if (lately && p->before.taken_ns != p->now.taken_ns &&
			    p->before.route[i][op].bytes <= n)
				n -= p->before.route[i][op].bytes;
			all += n;
			if (!strcmp(name, "nvfs") || !strcmp(name, "p2pdma") ||
			    !strcmp(name, "staged"))
				some += n;
		}
	}
	/* neither all nor nothing unless it is */
	n = all ? (uint64_t)((double)some * 100 / (double)all) : 0;
	if (!all)
		snprintf(out, 16, "-");
	else if (some && !n)
		snprintf(out, 16, "<1%%");
	else
		snprintf(out, 16, "%u%%", (unsigned int)(n > 99 && some < all ? 99 : n));
	return out;
}

static uint64_t errors_of(const struct snapshot *s)
{
	const CUfileStatsLevel1_t *l = &s->all.detailed.basic;

	return l->read_ops.err + l->write_ops.err + l->batch_processed_ops.err;
}

/* -- the list of processes -- */

static const struct view *sorted_for;

static int compare(const void *a, const void *b)
{
	const struct view_process *p = *(struct view_process *const *)a;
	const struct view_process *q = *(struct view_process *const *)b;
	double x = 0, y = 0;

	switch (sorted_for->sort) {
	case SORT_READ:
		x = rate_of_all(p, 0).mib, y = rate_of_all(q, 0).mib;
		break;
	case SORT_WRITE:
		x = rate_of_all(p, 1).mib, y = rate_of_all(q, 1).mib;
		break;
	case SORT_ERRORS:
		x = (double)errors_of(&p->now), y = (double)errors_of(&q->now);
		break;
	default:
		break;
	}
	return x > y ? -1 : x < y ? 1 : (p->now.pid > q->now.pid) - (p->now.pid < q->now.pid);
}

static unsigned int at_cursor(const struct view *v, struct view_process *const *p, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (p[i]->now.pid == v->pid)
			return i;
	return 0;
}

void view_move(struct view *v, struct view_process *const *p, unsigned int n, int by)
{
	unsigned int at = at_cursor(v, p, n);

	if (n && (by < 0 ? at > 0 : at + 1 < n))
		v->pid = p[by < 0 ? at - 1 : at + 1]->now.pid;
}

static void draw_processes(const struct view *v, struct view_process *const *p, unsigned int n,
			   struct view_screen *o)
{
	unsigned int at = at_cursor(v, p, n), room = v->rows - 3, first, i;
	char r[64], w[64], d[16], e[16], name[64];

	say(o, v, LOOK_HEAD, "%7s %-12s %7s %7s %7s %7s %7s %7s %6s %4s", "PID", "COMMAND",
	    "R MiB/s", "ops/s", "avg us", "W MiB/s", "ops/s", "avg us", "DIRECT", "ERR");
	if (!n) {
		say(o, v, LOOK_PLAIN, "%s", "");
		say(o, v, LOOK_PLAIN, "  no process of yours publishes statistics");
		say(o, v, LOOK_PLAIN, "  set \"profile\": {\"cufile_stats\": 3} in its cufile.json");
	}
	/* the cursor stays on the screen */
	first = at >= room ? at + 1 - room : 0;
	for (i = first; i < n; i++) {
		struct rate rr = rate_of_all(p[i], 0), rw = rate_of_all(p[i], 1);

		say(o, v, i == at ? LOOK_CURSOR : LOOK_PLAIN, "%7d %s %s %s %6s %4s", p[i]->now.pid,
		    fit(p[i]->now.command, 12, name, sizeof(name)), rates(&rr, r), rates(&rw, w),
		    direct(p[i], true, d), count(errors_of(&p[i]->now), e));
	}
}

/* -- one process -- */

static bool any(const struct stats_way *way)
{
	return way[0].n || way[0].err || way[1].n || way[1].err;
}

static void say_way(struct view_screen *o, const struct view *v, const struct view_process *p,
		    const char *name, const struct stats_way now[2],
		    const struct stats_way before[2])
{
	struct rate r = rate_of(p, &now[0], &before[0]), w = rate_of(p, &now[1], &before[1]);
	char a[64], b[64], c[16], d[16];

	say(o, v, LOOK_PLAIN, "%s %s %s %7s %6s", name, rates(&r, a), rates(&w, b),
	    number((double)(now[0].retried + now[1].retried) / (1 << 20), c),
	    count(now[0].err + now[1].err, d));
}

static void head(struct view_screen *o, const struct view *v, const char *what, unsigned int width)
{
	say(o, v, LOOK_HEAD, "%-*s %7s %7s %7s %7s %7s %7s %7s %6s", (int)width, what, "R MiB/s",
	    "ops/s", "avg us", "W MiB/s", "ops/s", "avg us", "RETRIED", "ERR");
}

#define NAME 14	/* columns of what a row is of */

static const struct snap_file *same_file(const struct snapshot *s, const char *name)
{
	static const struct snap_file none;
	unsigned int i;

	for (i = 0; i < s->files; i++)
		if (!strcmp(s->file[i].name, name))
			return &s->file[i];
	return &none;
}

static int busier(const void *a, const void *b)
{
	const struct snap_file *p = *(const struct snap_file *const *)a;
	const struct snap_file *q = *(const struct snap_file *const *)b;
	uint64_t x = p->way[0].bytes + p->way[1].bytes, y = q->way[0].bytes + q->way[1].bytes;

	return x > y ? -1 : x < y ? 1 : strcmp(p->name, q->name);
}

/* From file `first` on, those that moved most before the others. */
static void draw_files(const struct view *v, const struct view_process *p, unsigned int first,
		       struct view_screen *o)
{
	const struct snap_file *file[STATS_FILES];
	unsigned int i, width = v->columns - 63;
	char name[VIEW_MOST_COLUMNS * 4];

	head(o, v, "FILE", width);
	for (i = 0; i < p->now.files; i++)
		file[i] = &p->now.file[i];
	qsort(file, p->now.files, sizeof(file[0]), busier);
	for (i = first; i < p->now.files; i++)
		say_way(o, v, p, fit(file[i]->name, width, name, sizeof(name)), file[i]->way,
			same_file(&p->before, file[i]->name)->way);
	if (any(p->now.others))
		say_way(o, v, p, fit("(all others)", width, name, sizeof(name)), p->now.others,
			p->before.others);
	if (p->now.level < 3)
		say(o, v, LOOK_PLAIN, "  by file and GPU at level 3; this process collects level %d",
		    p->now.level);
}

static void draw_gpus(const struct view *v, const struct view_process *p, struct view_screen *o)
{
	char name[32], text[16];
	unsigned int i;

	head(o, v, "GPU", NAME);
	for (i = 0; i < p->now.all.num_gpus; i++) {
		snprintf(text, sizeof(text), "GPU %u", i);
		if (any(p->now.gpu[i]))
			say_way(o, v, p, fit(text, NAME, name, sizeof(name)), p->now.gpu[i],
				p->before.gpu[i]);
	}
	for (i = 0; i < p->now.all.num_gpus; i++) {
		const struct stats_pool *s = &p->now.staged[i], *h = &p->now.host[i];

		if (s->slots || h->most)
			say(o, v, LOOK_PLAIN,
			    "GPU %u slots: staged %" PRIu64 "/%" PRIu64 ", most %" PRIu64 ", waits %"
			    PRIu64 "; host %" PRIu64 "/%" PRIu64 ", most %" PRIu64 ", waits %" PRIu64,
			    i, s->used, s->slots, s->most, s->waits, h->used, h->slots, h->most,
			    h->waits);
	}
}

static void draw_process(const struct view *v, const struct view_process *p, struct view_screen *o)
{
	struct stats_way r = snapshot_sum(&p->now, 0), w = snapshot_sum(&p->now, 1);
	char name[64], a[16], b[16], c[16], d[16];
	unsigned int i;

	say(o, v, LOOK_PLAIN, "since the start: read %s MiB, written %s MiB, %s errors, direct %s",
	    number((double)r.bytes / (1 << 20), a), number((double)w.bytes / (1 << 20), b),
	    count(errors_of(&p->now), c), direct(p, false, d));
	head(o, v, "ROUTE", NAME);
	for (i = 0; i < p->now.routes; i++)
		if (any(p->now.route[i]))
			say_way(o, v, p, fit(p->now.route_name[i], NAME, name, sizeof(name)),
				p->now.route[i], p->before.route[i]);
	draw_gpus(v, p, o);
	draw_files(v, p, 0, o);
}

/* -- histograms -- */

static const char *bar(uint64_t n, uint64_t most, char out[BAR + 1])
{
	unsigned int len = most ? (unsigned int)((double)n * BAR / (double)most) : 0;

	/* what is there at all is seen */
	len = n && !len ? 1 : len > BAR ? BAR : len;
	memset(out, '#', len);
	out[len] = '\0';
	return out;
}

static void draw_histogram(const struct view *v, const struct view_process *p,
			   struct view_screen *o)
{
	const struct snapshot *s = &p->now;
	bool one = v->route < s->routes;
	struct stats_way r = one ? s->route[v->route][0] : snapshot_sum(s, 0);
	struct stats_way w = one ? s->route[v->route][1] : snapshot_sum(s, 1);
	const uint64_t *x = v->sizes ? r.size : r.time, *y = v->sizes ? w.size : w.time;
	unsigned int n = v->sizes ? STATS_BUCKETS : STATS_TIMES, i, first = n, last = 0;
	char name[32], a[BAR + 1], b[BAR + 1], c[16], d[16];
	uint64_t most = 0;

	for (i = 0; i < n; i++) {
		if (!x[i] && !y[i])
			continue;
		first = first < n ? first : i;
		last = i;
		most = x[i] > most ? x[i] : most;
		most = y[i] > most ? y[i] : most;
	}
	say(o, v, LOOK_HEAD, "%-18s %7s %-*s %7s %s", v->sizes ? "SIZE" : "TIME", "READS", BAR,
	    one ? s->route_name[v->route] : "all routes", "WRITES", "since the start");
	for (i = first; i <= last && i < n; i++)
		say(o, v, LOOK_PLAIN, "%-18s %7s %-*s %7s %s",
		    v->sizes ? size_name(i, name) : time_name(i, name), count(x[i], c), BAR,
		    bar(x[i], most, a), count(y[i], d), bar(y[i], most, b));
	if (first == n)
		say(o, v, LOOK_PLAIN, "  %s", s->level < 2 ?
		    "histograms are counted from level 2 on" : "nothing was counted yet");
}

/* -- all of it -- */

static void title(const struct view *v, struct view_process *const *p, unsigned int n,
		  struct view_screen *o)
{
	const struct view_process *one = p[at_cursor(v, p, n)];
	char text[256], name[32];

	if (v->page == VIEW_PROCESSES)
		snprintf(text, sizeof(text), "gds_stats: %u process%s, by %s", n,
			 n == 1 ? "" : "es", sort_name[v->sort]);
	else
		snprintf(text, sizeof(text), "gds_stats: %d %s level %d%s", one->now.pid,
			 fit(one->now.command, 15, name, sizeof(name)), one->now.level,
			 one->gone ? ", it has ended: its last numbers" :
			 one->now.running ? "" : ", not collecting");
	say(o, v, LOOK_TITLE, "%-*s%s", (int)(v->columns - strlen(v->clock)), text, v->clock);
}

void view_draw(struct view *v, struct view_process **p, unsigned int n, struct view_screen *o)
{
	static const char *const keys[] = {
		[VIEW_PROCESSES] = "q quit  s sort  up/down choose  enter look at it",
		[VIEW_PROCESS] = "q quit  esc back  f files  h histograms",
		[VIEW_FILES] = "q quit  esc back  up/down scroll  h histograms",
		[VIEW_HISTOGRAM] = "q quit  esc back  t times or sizes  r route  f files",
	};
	static struct view_process nothing;
	struct view_process *none = &nothing;

	o->rows = 0;
	sorted_for = v;
	if (n)
		qsort(p, n, sizeof(*p), compare);
	if (n)
		v->pid = p[at_cursor(v, p, n)]->now.pid;
	else
		v->page = VIEW_PROCESSES;
	title(v, n ? p : &none, n, o);
	switch (v->page) {
	case VIEW_PROCESSES:
		draw_processes(v, p, n, o);
		break;
	case VIEW_PROCESS:
		draw_process(v, p[at_cursor(v, p, n)], o);
		break;
	case VIEW_FILES:
		draw_files(v, p[at_cursor(v, p, n)], v->scroll, o);
		break;
	case VIEW_HISTOGRAM:
		draw_histogram(v, p[at_cursor(v, p, n)], o);
		break;
	}
	while (o->rows + 1 < v->rows)
		say(o, v, LOOK_PLAIN, "%s", "");
	o->rows = v->rows - 1;
	v->rows++;
	say(o, v, LOOK_HEAD, "%s  +/- every %g s", keys[v->page], v->interval);
	v->rows--;
}
