// SPDX-License-Identifier: MIT
/* sweep_args.c - the command line of gdsio sweep. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "sweep.h"

struct parser {
	struct sweep_args *a;
	char *why;
	size_t why_len;
};

static int __attribute__((format(printf, 2, 3))) refuse(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int take_size(struct parser *p, const char *text)
{
	struct sweep_args *a = p->a;
	uint64_t v;

	if (gdsio_parse_size(text, &v) || !v || v > 1ULL << 30)
		return refuse(p, "--sizes %s: it takes sizes up to 1G, 4K,64K,1M", text);
	a->size[a->sizes++] = v;
	return 0;
}

static int take_threads(struct parser *p, const char *text)
{
	struct sweep_args *a = p->a;
	uint64_t v;

	if (gdsio_parse_number(text, GDSIO_MAX_THREADS, &v) || !v)
		return refuse(p, "--threads %s: it takes numbers from 1 to %d", text,
			      GDSIO_MAX_THREADS);
	a->threads[a->thread_counts++] = (unsigned int)v;
	return 0;
}

/* Routes that a list can leave alone; host is what CPUONLY is. */
static int take_way(struct parser *p, const char *text)
{
	static const char *const route[] = { "nvfs", "p2pdma", "staged", "bar", "bounce" };
	struct sweep_way *w = &p->a->way[p->a->ways];
	int named = gdsio_xfer_find(text);
	uint64_t v;
	size_t i;

	*w = (struct sweep_way){ .xfer = XFER_GPUD };
	for (i = 0; i < sizeof(route) / sizeof(route[0]) && !w->route; i++)
		w->route = !strcmp(text, route[i]);
	if (!w->route && named < 0 && gdsio_parse_number(text, XFERS - 1, &v))
		return refuse(p, "--ways %s: it takes transfer types (GPUD, 6) and routes (nvfs, "
			      "p2pdma, staged, bar, bounce)", text);
	if (!w->route)
		w->xfer = (enum gdsio_xfer)(named < 0 ? (int)v : named);
	snprintf(w->name, sizeof(w->name), "%s", w->route ? text : gdsio_xfer_name(w->xfer));
	for (i = 0; i < p->a->ways; i++) {
		if (!strcmp(p->a->way[i].name, w->name))
			return refuse(p, "--ways: %s is named twice", w->name);
	}
	p->a->ways++;
	return 0;
}

/* Calls take for each word between commas. */
static int take_list(struct parser *p, const char *text, unsigned int *n,
		     int (*take)(struct parser *p, const char *word))
{
	char copy[1024], *save = NULL, *word;

	*n = 0;
	if (strlen(text) >= sizeof(copy))
		return refuse(p, "a list of more than %zu bytes", sizeof(copy) - 1);
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (*n == SWEEP_LIST)
			return refuse(p, "%s: more than %d in a list", text, SWEEP_LIST);
		if (take(p, word))
			return -EINVAL;
	}
	return *n ? 0 : refuse(p, "an empty list");
}

static int take_number(struct parser *p, int opt, const char *text, uint64_t min, uint64_t max,
		       unsigned int *to)
{
	uint64_t v;

	if (gdsio_parse_number(text, max, &v) || v < min)
		return refuse(p, "-%c %s: it takes a number from %u to %u", opt, text,
			      (unsigned int)min, (unsigned int)max);
	*to = (unsigned int)v;
	return 0;
}

static int take(struct parser *p, int opt, const char *text)
{
	struct sweep_args *a = p->a;
	unsigned int v = 0;

	switch (opt) {
	case 'f': a->file = text; return 0;
	case 'O': a->out = text; return 0;
	case 'd': return take_number(p, opt, text, 0, 255, &a->gpu);
	case 'T': return take_number(p, opt, text, 0, 3600, &a->seconds);
	case 'B': return take_number(p, opt, text, 1, GDSIO_MAX_BATCH, &a->batch);
	case 'I':
		if (take_number(p, opt, text, 0, RW_RANDWRITE, &v))
			return -EINVAL;
		a->rw = (enum gdsio_rw)v;
		return 0;
	case 's':
		if (gdsio_parse_size(text, &a->data) || !a->data || a->data > 1ULL << 50)
			return refuse(p, "-s %s: it takes a size, digits and then K, M or G", text);
		return 0;
	case 'z': return take_list(p, text, &a->sizes, take_size);
	case 't': return take_list(p, text, &a->thread_counts, take_threads);
	case 'w': return take_list(p, text, &a->ways, take_way);
	case 'n': a->no_verify = true; return 0;
	case 'o': a->overwrite = true; return 0;
	case 'r': a->resume = true; return 0;
	default: a->help = true; return 0;
	}
}

static int check(struct parser *p)
{
	struct sweep_args *a = p->a;
	unsigned int i, most = 0;

	if (!a->file)
		return refuse(p, "no file: name one with -f");
	for (i = 0; i < a->thread_counts; i++)
		most = a->threads[i] > most ? a->threads[i] : most;
	for (i = 0; i < a->sizes; i++) {
		if (a->size[i] * most > a->data)
			return refuse(p, "-s: the data set has no I/O of %llu bytes for each of %u "
				      "threads", (unsigned long long)a->size[i], most);
	}
	return 0;
}

int sweep_args_parse(int argc, char **argv, struct sweep_args *a, char *why, size_t why_len)
{
	static const struct option longs[] = {
		{ "sizes", required_argument, NULL, 'z' },
		{ "threads", required_argument, NULL, 't' },
		{ "ways", required_argument, NULL, 'w' },
		{ "out", required_argument, NULL, 'O' },
		{ "no-verify", no_argument, NULL, 'n' },
		{ "overwrite", no_argument, NULL, 'o' },
		{ "resume", no_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct parser p = { .a = a, .why = why, .why_len = why_len };
	int opt;

	*a = (struct sweep_args){ .out = "gdsio-sweep", .data = 256 << 20, .seconds = 2,
				  .batch = 16 };
	take_list(&p, "4K,16K,64K,256K,1M,4M", &a->sizes, take_size);
	take_list(&p, "1,4,16", &a->thread_counts, take_threads);
	take_list(&p, "GPUD,CPU_GPU,CPUONLY", &a->ways, take_way);
	opterr = 0;
	optind = 0;	/* glibc: start anew */
	while ((opt = getopt_long(argc, argv, ":f:d:s:T:I:B:h", longs, NULL)) != -1) {
		if (opt == ':')
			return refuse(&p, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return refuse(&p, "%s is no option of sweep", argv[optind - 1]);
		if (take(&p, opt, optarg))
			return -EINVAL;
		if (a->help)
			return 0;
	}
	if (optind < argc)
		return refuse(&p, "%s: what is it? Name the file with -f", argv[optind]);
	return check(&p);
}
