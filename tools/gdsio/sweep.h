/* SPDX-License-Identifier: MIT */
/* sweep.h - gdsio sweep: many runs, one page and one document. */
#ifndef GDSIO_SWEEP_H
#define GDSIO_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#include "args.h"

#define SWEEP_FORMAT 1
#define SWEEP_LIST 32

/* A way of the bytes: a transfer type, or type 0 with one route of the library alone. */
struct sweep_way {
	char name[24];		/* "GPUD", "bounce" */
	enum gdsio_xfer xfer;
	bool route;		/* the name is one of a route */
};

struct sweep_args {
	const char *file;
	const char *out;	/* without .html and .json */
	unsigned int gpu;
	uint64_t data;		/* bytes of the data set */
	uint64_t size[SWEEP_LIST];
	unsigned int threads[SWEEP_LIST];
	struct sweep_way way[SWEEP_LIST];
	unsigned int sizes, thread_counts, ways;
	unsigned int seconds;	/* of a point; 0: the data set once */
	unsigned int batch;
	enum gdsio_rw rw;
	bool no_verify;
	bool overwrite;
	bool resume;
	bool help;
};

/* 0, or -EINVAL with a text in why. Texts point into argv. */
int sweep_args_parse(int argc, char **argv, struct sweep_args *a, char *why, size_t why_len);

/* Exit status */
int gdsio_sweep(int argc, char **argv);

/* The page of a document as docs/gdsio.md describes it. */
void sweep_page(FILE *f, struct json_object *doc);

/* -- members of a document; 0, "" and NULL where there is none -- */

struct json_object *sweep_get(struct json_object *o, const char *key);
const char *sweep_text(struct json_object *o, const char *key);
double sweep_real(struct json_object *o, const char *key);
uint64_t sweep_int(struct json_object *o, const char *key);

/* The pass of a point that is measured; NULL: it failed. */
struct json_object *sweep_result(struct json_object *point);

/* What was compared: "verified", "not_checked", ... of the pass that compares, if there was. */
const char *sweep_checksum(struct json_object *point);

/* "nvfs", or "nvfs 93.8 % + bounce 6.2 %" */
const char *sweep_routes(struct json_object *point, char *text, size_t len);

/* Each its own rate: "1.23", or "nvfs 1.15 + bounce 0.08" (GiB/s) */
const char *sweep_rates(struct json_object *point, char *text, size_t len);

/* Every byte by one route; for a type of cuFile that asks for the direct way, a direct one. */
bool sweep_as_asked(struct json_object *point);

/* -- plots -- */

struct plot {
	const char *title;	/* of the metric, for screen readers */
	const char *unit;
	unsigned int threads;
	/* The values of a point: up to two lines, the second dashed. */
	double (*value)(struct json_object *point, unsigned int line);
	unsigned int lines;
};

/* One SVG: sizes to the right, the value upwards, a line for each way. */
void sweep_plot(FILE *f, struct json_object *doc, const struct plot *p);

/* The text with the characters of HTML replaced. */
void sweep_escape(FILE *f, const char *text);

/* The number of a way, for its colour and marker. */
unsigned int sweep_way_index(struct json_object *doc, const char *name);
#define SWEEP_COLOURS 8

/* The marker of a way, around x, y; hollow: the bytes did not go as asked. */
void sweep_marker(FILE *f, unsigned int way, double x, double y, bool hollow);

#endif /* GDSIO_SWEEP_H */
