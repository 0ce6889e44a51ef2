// SPDX-License-Identifier: MIT
/* side_run.c - the rounds. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "compare.h"
#include "side_run.h"

#define WARM_UP 0.3	/* of a measurement's time */

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	stopped = 1;
}

bool side_stopped(void)
{
	return stopped;
}

static int wrong(const char *fmt, const char *arg)
{
	fprintf(stderr, fmt, arg);
	fputc('\n', stderr);
	return -1;
}

static int add_library(struct side_run *run, const char *arg)
{
	char why[512];
	unsigned int i;

	if (run->libs == SIDE_MAX - 3)
		return wrong("%s: too many libraries", arg);
	if (side_parse(&run->s[run->libs], arg, why, sizeof(why)))
		return wrong("%s", why);
	for (i = 0; i < run->libs; i++)
		if (!strcmp(run->s[i].name, run->s[run->libs].name))
			return wrong("%s: there is a library of this name", arg);
	if (!strcmp(run->s[run->libs].name, "raw") || !strcmp(run->s[run->libs].name, "copy") ||
	    !strcmp(run->s[run->libs].name, "store"))
		return wrong("%s: this name is taken", arg);
	run->libs++;
	return 0;
}

static int add_limit(struct side_run *run, const char *arg)
{
	struct side_limit *l = &run->limit[run->limits];
	const char *eq = strchr(arg, '=');

	if (run->limits == SIDE_LIMITS)
		return wrong("%s: too many limits", arg);
	if (!eq || eq == arg || (size_t)(eq - arg) >= sizeof(l->name) || !eq[1])
		return wrong("%s: NAME=COMMAND is wanted", arg);
	snprintf(l->name, sizeof(l->name), "%.*s", (int)(eq - arg), arg);
	l->command = eq + 1;
	run->limits++;
	return 0;
}

int side_option(struct side_run *run, int o, char *arg)
{
	switch (o) {
	case 'l': return add_library(run, arg);
	case 'L': return add_limit(run, arg);
	case 'd': run->dir = arg; return 0;
	case 'j': run->json = arg; return 0;
	case 'g': run->gpu = atoi(arg); return 0;
	case 'u': run->unregistered = true; return 0;
	case 'n': run->no_compare = true; return 0;
	case 'r':
		run->rounds = atoi(arg);
		if (run->rounds < 1 || run->rounds > SIDE_ROUNDS || run->rounds % 2 == 0)
			return wrong("--rounds %s: an odd number, 31 at most", arg);
		return 0;
	default: return 1;
	}
}

/* The better of what it said before and says now. */
static int ask_limits(struct side_run *run)
{
	struct side_limit *l;
	double v;
	FILE *f;
	int bad = 0, got;

	for (l = run->limit; l < run->limit + run->limits; l++) {
		fflush(NULL);
		f = popen(l->command, "re");
		v = 0;
		got = f ? fscanf(f, "%lf", &v) : 0;
		while (f && fgetc(f) != EOF)
			;
		if (!f || pclose(f) || got != 1 || v <= 0) {
			fprintf(stderr, "--limit %s: '%s' printed no number of GiB/s, or failed\n",
				l->name, l->command);
			bad = -1;
		} else if (v > l->gib_s) {
			l->gib_s = v;
		}
	}
	return bad;
}

/* gVisor's system calls cost other things than Linux's: its figures say nothing of a machine. */
static int check_kernel(const struct side_run *run)
{
	const char *release = getenv("OPENGDS_BENCH_UNAME");	/* for the test of this rule */
	struct utsname u;

	uname(&u);
	if (strcmp(release ? release : u.release, "4.4.0") || run->no_compare)
		return 0;
	fputs("uname -r is 4.4.0: this is gVisor, and nothing can be compared here; take another machine (or --no-compare, for a look)\n",
	      stderr);
	return 3;
}

static unsigned int add_contestant(struct side_run *run, enum side_kind kind, const char *name)
{
	run->s[run->count].kind = kind;
	snprintf(run->s[run->count].name, sizeof(run->s[0].name), "%s", name);
	return run->count++;
}

int side_begin(struct side_run *run, bool limits)
{
	const struct sigaction act = { .sa_handler = stop, .sa_flags = SA_RESTART };
	struct side *s;
	int status;

	if (!run->libs || !run->dir)
		return wrong("%s: --lib and --dir are wanted; see --help", run->bench), 2;
	status = check_kernel(run);
	if (status)
		return status;
	if (mkdir(run->dir, 0755) && errno != EEXIST) {
		fprintf(stderr, "%s: %s\n", run->dir, strerror(errno));
		return 2;
	}
	snprintf(run->file, sizeof(run->file), "%s/%s.dat", run->dir, run->bench);
	run->count = run->libs;
	run->raw = add_contestant(run, SIDE_RAW, "raw");
	if (limits) {
		run->copy = add_contestant(run, SIDE_COPY, "copy");
		run->store = add_contestant(run, SIDE_STORE, "store");
	}
	if (ask_limits(run))
		return 2;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	for (s = run->s; s < run->s + run->count; s++) {
		s->file = run->file;
		s->gpu = run->gpu;
		if (!side_start(s))
			continue;
		fprintf(stderr, "%s%s%s: %s\n", s->name, s->path ? " " : "", s->path ? s->path : "",
			s->hello.text);
		if (s->kind != SIDE_STORE)
			return 2;
		run->count--;
		run->store = 0;
	}
	return 0;
}

static void turn(struct side_run *run, struct side_cell *c, unsigned int who, int round)
{
	struct side_order o = c->o;
	struct side_result r;
	struct side_sample *s;

	if (c->failed[who])
		return;
	if (round < 0)
		o.seconds *= WARM_UP;
	/* the last round's bytes are looked at; they are no earlier round's, and nobody else's */
	if (round < 0)
		o.flags |= SIDE_PREPARE;
	else if (round == run->rounds - 1)
		o.flags |= SIDE_PREPARE | SIDE_VERIFY;
	o.seed = c->o.seed + who * 1000 + round + 1;
	if (run->before)
		run->before(run, c);
	if (side_ask(&run->s[who], &o, &r)) {
		fprintf(stderr, "\nFAILED %s: %s\n", run->s[who].name, r.text);
		c->failed[who] = strdup(r.text);
		run->failed++;
		return;
	}
	if (round == run->rounds - 1 && !r.verified &&
	    (run->s[who].kind == SIDE_LIBRARY || run->s[who].kind == SIDE_STORE)) {
		fprintf(stderr, "\nFAILED %s: no byte was looked at\n", run->s[who].name);
		c->failed[who] = strdup("no byte was looked at");
		run->failed++;
	}
	if (round < 0)
		return;
	s = &c->s[who][c->rounds[who]++];
	s->seconds = r.seconds;
	s->whole = r.whole;
	s->cpu = r.cpu;
	s->bytes = r.bytes;
	s->requests = r.requests;
	s->verified = r.verified;
}

void side_measure(struct side_run *run, struct side_cell *c)
{
	unsigned int who[SIDE_MAX], n = 0, i, k;
	int round;

	for (i = 0; i < run->count; i++)
		if (c->who & 1u << i)
			who[n++] = i;
	for (round = -1; round < run->rounds && !stopped; round++)
		for (i = 0; i < n; i++) {
			k = (i + round + 1) % n;
			turn(run, c, who[round % 2 ? n - 1 - k : k], round);
		}
}

void side_end(struct side_run *run)
{
	unsigned int i;

	if (stopped)
		fprintf(stderr, "\nstopped by a signal: the rows that are missing were not measured\n");
	if (stopped || ask_limits(run))
		run->failed++;
	for (i = 0; i < run->count; i++)
		side_stop(&run->s[i]);
	unlink(run->file);
}

/* -- figures -- */

double side_rate(const struct side_cell *c, unsigned int who)
{
	double v[SIDE_ROUNDS];
	unsigned int i;

	for (i = 0; i < c->rounds[who]; i++)
		v[i] = c->s[who][i].bytes / SIDE_GIB / c->s[who][i].seconds;
	return i ? compare_median(v, i) : 0;
}

double side_whole(const struct side_cell *c, unsigned int who)
{
	double v[SIDE_ROUNDS];
	unsigned int i;

	for (i = 0; i < c->rounds[who]; i++)
		v[i] = c->s[who][i].whole;
	return i ? compare_median(v, i) : 0;
}

/* Summed: one measurement of a fast contestant has few ticks of it. */
double side_cpu_gib(const struct side_cell *c, unsigned int who)
{
	double cpu = 0, bytes = 0;
	unsigned int i;

	for (i = 0; i < c->rounds[who]; i++) {
		cpu += c->s[who][i].cpu;
		bytes += c->s[who][i].bytes;
	}
	return bytes ? cpu / (bytes / SIDE_GIB) : 0;
}

static int fill_cache(int fd, uint64_t size)
{
	size_t chunk = 8UL << 20;
	char *buf = malloc(chunk);
	uint64_t at;

	if (!buf)
		return -1;
	for (at = 0; at < size; at += chunk)
		if (pread(fd, buf, chunk, at) <= 0)
			break;
	free(buf);
	return 0;
}

double side_cached(const char *file, uint64_t size, bool fill)
{
	size_t pages = (size + 4095) / 4096, i, in = 0;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	unsigned char *vec = malloc(pages);
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	double part = -1;
	int try;

	for (try = 0; map != MAP_FAILED && vec && try < 3; try++) {
		if (mincore(map, size, vec))
			break;
		for (i = in = 0; i < pages; i++)
			in += vec[i] & 1;
		part = pages ? (double)in / pages : 0;
		if (!fill || in == pages || fill_cache(fd, size))
			break;
	}
	if (map != MAP_FAILED)
		munmap(map, size);
	if (fd >= 0)
		close(fd);
	free(vec);
	return part;
}
