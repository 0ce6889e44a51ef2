// SPDX-License-Identifier: MIT
/*
 * t_gds_stats.c - each form of output against tests/fixtures/gds_stats, and what others parse
 * against the rules of its format; processes that end, and segments that are not what they say.
 * Fails when a byte of a layout moves, when a name of a file gets out of its quotes, and when a
 * segment can stop the reader. T_RECORD=1 writes the fixtures anew (and fails).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "out.h"
#include "source.h"
#include "view.h"

#define FIXTURES "tests/fixtures/gds_stats/"

/* -- two processes -- */

static struct snapshot full, poor;
static const struct snapshot *const both[2] = { &full, &poor };

static void set_way(struct stats_way *w, uint64_t n, uint64_t bytes, uint64_t ns, unsigned int size,
		    unsigned int time)
{
	w->n = n;
	w->bytes = bytes;
	w->ns = ns;
	w->size[size] = n - 1;
	w->size[size + 1] = 1;
	w->time[time] = n - 2;
	w->time[time + 3] = 2;
}

static void set_basic(CUfileStatsLevel1_t *l)
{
	CUfileOpCounter_t *c = &l->read_ops;
	unsigned int i;

	for (i = 0; i < 6; i++)
		c[i] = (CUfileOpCounter_t){ 100 + i, i };
	c = &l->batch_submit_ops;
	for (i = 0; i < 9; i++)
		c[i] = (CUfileOpCounter_t){ 200 + i, 10 + i };
	l->read_bytes = 3000000000;
	l->write_bytes = 5 << 20;
	l->read_bw_bytes_per_sec = (uint64_t)5 << 29;
	l->write_bw_bytes_per_sec = 1000;
	l->read_lat_avg_us = 124;
	l->write_lat_avg_us = 77;
	l->read_lat_sum_us = 12400;
	l->write_lat_sum_us = 7777;
	l->batch_read_bytes = 9 << 20;
	l->batch_write_bytes = 8 << 20;
	l->batch_read_bw_bytes = 1 << 30;
	l->batch_write_bw_bytes = 1 << 29;
	l->batch_submit_lat_avg_us = 11;
	l->batch_completion_lat_avg_us = 12;
	l->batch_submit_lat_sum_us = 111;
	l->batch_completion_lat_sum_us = 122;
}

static void set_gpu(CUfilePerGpuStats_t *g)
{
	unsigned int i;

	for (i = 0; i < sizeof(g->uuid); i++)
		g->uuid[i] = (char)(0xf0 + i);
	g->read_bytes = 64 << 20;
	g->read_bw_bytes_per_sec = 3 << 28;
	g->read_utilization = 99;
	g->n_total_reads = 41;
	g->n_posix_reads = 42;
	g->n_unaligned_reads = 43;
	g->n_reads_err = 44;
	g->writes_bytes = 65 << 20;
	g->write_bw_bytes_per_sec = 1 << 28;
	g->write_utilization = 98;
	g->n_total_writes = 51;
	g->n_posix_writes = 52;
	g->n_unaligned_writes = 53;
	g->n_writes_err = 54;
	g->n_mmap = 61;
	g->n_mmap_ok = 60;
	g->n_mmap_err = 1;
	g->n_mmap_free = 59;
	g->reg_bytes = 66 << 20;
}

static int make(void **state)
{
	static const char *const route[] = { "nvfs", "p2pdma", "staged", "bar", "bounce", "host" };
	struct snapshot *s = &full;
	unsigned int i;

	memset(&full, 0, sizeof(full));
	memset(&poor, 0, sizeof(poor));
	s->pid = 4711;
	snprintf(s->command, sizeof(s->command), "py\"th\\on\n");
	s->level = 3;
	s->running = true;
	s->ns = 2500000000;
	s->taken_ns = 9000000000;
	s->routes = 6;
	for (i = 0; i < 6; i++) {
		snprintf(s->route_name[i], STATS_ROUTE_NAME, "%s", route[i]);
		snprintf(poor.route_name[i], STATS_ROUTE_NAME, "%s", route[i]);
	}
	set_basic(&s->all.detailed.basic);
	for (i = 0; i < STATS_BUCKETS; i++) {
		s->all.detailed.read_size_kb_hist[i] = 1000 + i;
		s->all.detailed.write_size_kb_hist[i] = 2000 + i;
	}
	s->all.num_gpus = 2;
	set_gpu(&s->all.per_gpu_stats[0]);
	set_way(&s->route[0][0], 4000, (uint64_t)4000 << 20, 800000000, 9, 8);
	set_way(&s->route[4][1], 30, 30 << 16, 9000000, 5, 9);
	s->route[0][0].err = 3;
	s->route[0][0].retried = 3 << 20;
	set_way(&s->gpu[0][0], 4000, (uint64_t)4000 << 20, 900000000, 9, 8);
	s->gpu[0][0].route[0] = (uint64_t)4000 << 20;
	set_way(&s->gpu[0][1], 30, 30 << 16, 9500000, 5, 9);
	s->gpu[0][1].route[4] = 30 << 16;
	s->staged[0] = (struct stats_pool){ .slot_bytes = 1 << 20, .slots = 16, .used = 3,
					    .most = 5, .waits = 2 };
	s->host[0] = (struct stats_pool){ .slot_bytes = 2 << 20, .slots = 4, .used = 1, .most = 4 };
	s->files = 3;
	snprintf(s->file[0].name, STATS_FILE_NAME, "/data/model-00001-of-00030.safetensors");
	s->file[0].users = 2;
	set_way(&s->file[0].way[0], 3990, (uint64_t)3990 << 20, 890000000, 9, 8);
	s->file[0].way[0].route[0] = (uint64_t)3990 << 20;
	/* quotes, a line, a command to the terminal, a byte that is no UTF-8, an umlaut */
	snprintf(s->file[1].name, STATS_FILE_NAME, "/d/\"a\\b\n\x1b[2J\xff\xc3\xa4");
	s->file[1].users = 1;
	set_way(&s->file[1].way[1], 30, 30 << 16, 9500000, 5, 9);
	s->file[1].way[1].route[4] = 30 << 16;
	snprintf(s->file[2].name, STATS_FILE_NAME, "/d/\"a\\b\n\x1b[2J\xfe\xc3\xa4");
	set_way(&s->others[0], 10, 10 << 20, 10000000, 9, 8);
	s->others[0].route[0] = 10 << 20;

	poor.pid = 815;
	snprintf(poor.command, sizeof(poor.command), "loader");
	poor.level = 1;
	poor.routes = 6;
	poor.ns = 1000000000;
	poor.taken_ns = 9000000000;
	poor.all.detailed.basic.write_ops.ok = 7;
	poor.route[5][1].n = 7;
	poor.route[5][1].bytes = 7 << 20;
	poor.route[5][1].ns = 7000;
	return 0;
}

/* -- against the fixtures -- */

static bool recorded;

static char *text_of(void (*put)(FILE *f))
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	put(f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void like(const char *name, void (*put)(FILE *f))
{
	char path[128], *is = text_of(put), *want;
	size_t n = strlen(is);
	FILE *f;

	snprintf(path, sizeof(path), FIXTURES "%s", name);
	if (getenv("T_RECORD")) {
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(is, f);
		fclose(f);
		recorded = true;
	}
	want = calloc(1, n + 2);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fread(want, 1, n + 1, f), n);
	fclose(f);
	assert_string_equal(is, want);
	free(want);
	free(is);
}

static void text_1(FILE *f) { out_text(f, &full, 1); }
static void text_2(FILE *f) { out_text(f, &full, 2); }
static void text_3(FILE *f) { out_text(f, &full, 3); }
static void text_poor(FILE *f) { out_text(f, &poor, 1); }
static void json(FILE *f) { out_json(f, both, 2); }
static void json_none(FILE *f) { out_json(f, both, 0); }
static void prometheus(FILE *f) { out_prometheus(f, both, 2); }

static void t_text(void **state)
{
	like("level-1", text_1);
	like("level-2", text_2);
	like("level-3", text_3);
	like("poor", text_poor);
}

static void t_json(void **state)
{
	char *is = text_of(json), *none = text_of(json_none);
	struct json_object *o = json_tokener_parse(is), *p, *files, *name, *empty;

	assert_non_null(o);
	assert_true(json_object_object_get_ex(o, "processes", &p));
	assert_int_equal(json_object_array_length(p), 2);
	assert_true(json_object_object_get_ex(json_object_array_get_idx(p, 0), "command", &name));
	assert_string_equal(json_object_get_string(name), full.command);
	assert_true(json_object_object_get_ex(json_object_array_get_idx(p, 0), "files", &files));
	assert_true(json_object_object_get_ex(json_object_array_get_idx(files, 1), "name", &name));
	assert_string_equal(json_object_get_string(name),
			    "/d/\"a\\b\n\x1b[2J\xef\xbf\xbd\xc3\xa4");
	json_object_put(o);
	empty = json_tokener_parse(none);
	assert_non_null(empty);
	json_object_put(empty);
	free(is);
	free(none);
	like("two.json", json);
}

/* -- the rules of the text exposition format -- */

static bool name_ok(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!isalpha((unsigned char)s[i]) && s[i] != '_' &&
		    !(i && isdigit((unsigned char)s[i])))
			return false;
	return n > 0;
}

/* Behind {...} of a sample; NULL: a label is wrong. */
static const char *labels(const char *p)
{
	const char *start;

	for (p++; *p != '}'; p++) {
		for (start = p; *p && *p != '='; p++)
			;
		if (!name_ok(start, p - start) || p[1] != '"')
			return NULL;
		for (p += 2; *p != '"'; p++) {
			if (!*p || (*p == '\\' && !strchr("\\\"n", *++p)))
				return NULL;
			if (!utf8_bytes(p))
				return NULL;
			p += utf8_bytes(p) - 1;
		}
		if (p[1] != ',' && p[1] != '}')
			return NULL;
		if (*++p == '}')
			break;
	}
	return p + 1;
}

/* The metric that a sample belongs to, by the TYPE above it. */
static bool of_metric(const char *sample, size_t n, const char *metric, const char *type)
{
	static const char *const part[] = { "_bucket", "_sum", "_count" };
	size_t m = strlen(metric), i;

	if (strncmp(sample, metric, m))
		return false;
	if (strcmp(type, "histogram"))
		return n == m;
	for (i = 0; i < 3; i++)
		if (n == m + strlen(part[i]) && !strncmp(sample + m, part[i], n - m))
			return true;
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void t_prometheus(void **state)
{
	static char *seen[4096], *series[8192];
	char *is = text_of(prometheus), *line, *save, metric[128] = "", type[32] = "";
	unsigned int nseen = 0, nseries = 0, i;
	double before = 0, value;
	const char *end;
	size_t n;

	for (line = strtok_r(is, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "# HELP ", 7)) {
			sscanf(line, "# HELP %127s", metric);
			for (i = 0; i < nseen; i++)
				assert_string_not_equal(metric, seen[i]);
			seen[nseen++] = strdup(metric);
			continue;
		}
		if (!strncmp(line, "# TYPE ", 7)) {
			char of[128];

			assert_int_equal(sscanf(line, "# TYPE %127s %31s", of, type), 2);
			assert_string_equal(of, metric);
			/* counters say so in their name, and nothing else does */
			n = strlen(of);
			assert_int_equal(!strcmp(type, "counter"),
					 n > 6 && !strcmp(of + n - 6, "_total"));
			continue;
		}
		n = strcspn(line, "{ ");
		assert_true(name_ok(line, n));
		assert_true(of_metric(line, n, metric, type));
		end = line[n] == '{' ? labels(line + n) : line + n;
		assert_non_null(end);
		assert_int_equal(*end, ' ');
		value = strtod(end + 1, NULL);
		/* buckets grow up to the last, which is the count */
		if (n > 7 && !strncmp(line + n - 7, "_bucket", 7)) {
			before = strstr(line, "le=\"4095\"") || strstr(line, "le=\"1e-06\"") ? 0 :
										before;
			assert_true(value >= before);
			before = value;
		} else if (n > 6 && !strcmp(type, "histogram") &&
			   !strncmp(line + n - 6, "_count", 6)) {
			assert_true(value == before);
		}
		series[nseries] = strdup(line);
		series[nseries++][end - line] = '\0';
	}
	assert_true(nseries > 300);
	/* one that is there twice makes the whole scrape void */
	qsort(series, nseries, sizeof(series[0]), by_text);
	for (i = 1; i < nseries; i++)
		assert_string_not_equal(series[i], series[i - 1]);
	for (i = 0; i < nseen; i++)
		free(seen[i]);
	for (i = 0; i < nseries; i++)
		free(series[i]);
	free(is);
	like("two.prom", prometheus);
}

/* -- the live view -- */

static struct view view;

static void draw(FILE *f)
{
	static struct view_process a, b;
	struct view_process *p[2] = { &b, &a };
	static struct view_screen screen;
	unsigned int i, page;

	a.now = full;
	a.before = full;
	/* in the second before, a tenth of it */
	a.before.taken_ns -= 1000000000;
	a.before.route[0][0].n -= 400;
	a.before.route[0][0].bytes -= (uint64_t)400 << 20;
	a.before.route[0][0].ns -= 80000000;
	a.before.gpu[0][0] = a.before.route[0][0];
	a.before.file[0].way[0].n -= 399;
	a.before.file[0].way[0].bytes -= (uint64_t)399 << 20;
	a.before.file[0].way[0].ns -= 89000000;
	b.now = b.before = poor;
	b.gone = true;
	for (page = VIEW_PROCESSES; page <= VIEW_HISTOGRAM; page++) {
		view.page = page;
		view_draw(&view, p, 2, &screen);
		assert_int_equal(screen.rows, view.rows);
		for (i = 0; i < screen.rows; i++)
			fprintf(f, "%d|%s\n", screen.look[i], screen.text[i]);
	}
	view_move(&view, p, 2, 1);
	view.sizes = true;
	view_draw(&view, p, 2, &screen);
	for (i = 0; i < screen.rows; i++)
		fprintf(f, "%d|%s\n", screen.look[i], screen.text[i]);
}

/* No line is wider than the screen, in characters. */
static void t_view(void **state)
{
	char *is, *line, *save;

	view = (struct view){ .rows = 24, .columns = 80, .interval = 1, .route = 0,
			      .clock = "12:34:56" };
	is = text_of(draw);
	for (line = strtok_r(is, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned int n = 0, i;

		for (i = 2; line[i]; i++)
			n += (line[i] & 0xc0) != 0x80;
		assert_in_range(n, 0, 80);
	}
	free(is);
	view.page = VIEW_PROCESSES;
	view.pid = 0;
	view.sizes = false;
	like("view", draw);
}

/* -- segments -- */

static struct stats_area *publish(void)
{
	struct stats_area *a;

	assert_int_equal(stats_area_create(&a), 0);
	a->version = STATS_SHM_VERSION;
	a->size = sizeof(*a);
	a->pid = getpid();
	a->level = 3;
	a->started = stats_started(getpid());
	a->magic = STATS_SHM_MAGIC;
	return a;
}

/* Cut short while it is mapped: that would end a reader which does not look out. */
static void t_cut(void **state)
{
	static struct snapshot s;
	struct stats_area *a = publish();
	struct source src;
	char why[SOURCE_WHY], path[64];

	assert_int_equal(source_open(getpid(), false, &src, why), 0);
	assert_int_equal(source_read(&src, &s), 0);
	assert_int_equal(s.level, 3);
	assert_int_equal(s.pid, getpid());
	snprintf(path, sizeof(path), "/dev/shm" STATS_SHM_NAME, getpid());
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(source_read(&src, &s), -EBUSY);
	/* and once more: the handler is the one from before */
	assert_int_equal(source_read(&src, &s), -EBUSY);
	source_close(&src);
	assert_int_equal(source_open(getpid(), false, &src, why), -EPROTO);
	stats_area_unname();
	stats_area_free(a);
}

static void t_refused(void **state)
{
	struct stats_area *a = publish();
	struct source src;
	char why[SOURCE_WHY];

	a->version = 1;
	assert_int_equal(source_open(getpid(), false, &src, why), -EPROTO);
	assert_non_null(strstr(why, "version 1 of the statistics, this gds_stats reads version 2"));
	a->version = STATS_SHM_VERSION;
	a->size++;
	assert_int_equal(source_open(getpid(), false, &src, why), -EPROTO);
	a->size--;
	a->pid++;
	assert_int_equal(source_open(getpid(), false, &src, why), -EPROTO);
	a->pid--;
	a->magic++;
	assert_int_equal(source_open(getpid(), false, &src, why), -EPROTO);
	a->magic--;
	/* of another process that had this number */
	a->started++;
	assert_int_equal(source_open(getpid(), false, &src, why), -ESTALE);
	assert_non_null(strstr(why, "--left"));
	assert_int_equal(source_open(getpid(), true, &src, why), 0);
	source_close(&src);
	stats_area_unname();
	stats_area_free(a);
	assert_int_equal(source_open(getpid(), false, &src, why), -ENOENT);
	assert_non_null(strstr(why, "cufile_stats"));
	assert_non_null(strstr(why, "has no libcufile.so loaded"));
}

/* A process is killed while it counts and is read: what it left is whole, and can be had. */
static void t_dies(void **state)
{
	static struct snapshot s;
	struct source src, *all;
	char why[SOURCE_WHY];
	int ready[2], i, n, status, found = 0;
	struct stats_area *a;
	uint64_t last = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		a = publish();
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;) {
			stats_add(&a->rows[0].route[0].seq, 1);
			stats_add(&a->rows[0].route[0].way[0].n, 1);
			stats_add(&a->rows[0].route[0].way[0].bytes, 512);
			stats_add(&a->rows[0].route[0].seq, 1);
		}
	}
	assert_int_equal(read(ready[0], why, 1), 1);
	assert_int_equal(source_open(pid, false, &src, why), 0);
	n = source_list(&all);
	for (i = 0; i < n; i++) {
		found += all[i].pid == pid;
		source_close(&all[i]);
	}
	free(all);
	assert_int_equal(found, 1);
	for (i = 0; i < 200; i++) {
		if (i == 100) {
			kill(pid, SIGKILL);
			assert_int_equal(waitpid(pid, &status, 0), pid);
		}
		assert_int_equal(source_read(&src, &s), 0);
		/* but for the one request that it was in when it died */
		if (i < 100)
			assert_int_equal(s.route[0][0].bytes, 512 * s.route[0][0].n);
		assert_true(s.route[0][0].n >= last);
		last = s.route[0][0].n;
	}
	assert_false(source_lives(&src));
	source_close(&src);
	assert_int_equal(source_open(pid, false, &src, why), -ESRCH);
	assert_non_null(strstr(why, "was killed and left its statistics"));
	assert_int_equal(source_open(pid, true, &src, why), 0);
	assert_int_equal(source_read(&src, &s), 0);
	assert_int_equal(s.route[0][0].n, last);
	source_close(&src);
	snprintf(why, sizeof(why), "/dev/shm" STATS_SHM_NAME, pid);
	assert_int_equal(unlink(why), 0);
	assert_int_equal(source_open(pid, false, &src, why), -ESRCH);
	assert_null(strstr(why, "left"));
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, make)
	const struct CMUnitTest tests[] = {
		T(t_text), T(t_json), T(t_prometheus), T(t_view), T(t_cut), T(t_refused), T(t_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) || recorded;
}
