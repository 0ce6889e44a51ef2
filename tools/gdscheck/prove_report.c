// SPDX-License-Identifier: MIT
/* prove_report.c - what --prove found, for people and as JSON. */
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "codes.h"
#include "prove.h"

static const char *const route_names[OGDS_ROUTES] = {
	[OGDS_ROUTE_NVFS] = "nvfs",	[OGDS_ROUTE_P2PDMA] = "p2pdma",
	[OGDS_ROUTE_STAGED] = "staged", [OGDS_ROUTE_BAR] = "bar",
	[OGDS_ROUTE_BOUNCE] = "bounce", [OGDS_ROUTE_HOST] = "host",
};

static const char *const verdict_names[] = {
	[PROVE_NOT_RUN] = "not run",	[PROVE_WRONG] = "WRONG DATA",
	[PROVE_INDIRECT] = "not direct", [PROVE_UNSEEN] = "not seen direct",
	[PROVE_DIRECT] = "direct",
};

static const char *op_name(uint32_t op)
{
	return op == OGDS_OP_READ ? "read" : "write";
}

/* "nvfs 98304 + bounce 1696"; "-" when nothing moved or nobody told */
static void moved(const struct prove_row *row, char *out, size_t len)
{
	unsigned int i;
	size_t at = 0;

	snprintf(out, len, "-");
	for (i = 0; i < OGDS_ROUTES && at < len; i++)
		if (row->bytes[i])
			at += (size_t)snprintf(out + at, len - at, "%s%s %" PRIu64,
					       at ? " + " : "", route_names[i], row->bytes[i]);
}

/* Who saw it: of the bytes on direct routes. Edges are no drive's to move. */
static void witness(const struct prove_row *row, char *out, size_t len)
{
	uint64_t direct = prove_direct_bytes(row);

	if (!row->told)
		snprintf(out, len, "none: this library tells nothing");
	else if (direct)
		snprintf(out, len, "kernel saw %" PRIu64 " of %" PRIu64, row->witnessed, direct);
	else
		snprintf(out, len, "library's word");
}

static const char *data_word(const struct prove_row *row)
{
	return !row->made || row->result < 0 ? "-" : row->right ? "ok" : "WRONG";
}

static void error_text(const struct prove_row *row, char *out, size_t len)
{
	const struct facts_code *c;

	c = row->error > CUFILEOP_BASE_ERR ? facts_code_cufile(row->error) :
					     facts_code_errno(row->error);
	snprintf(out, len, "%d %s", row->error, c ? c->name : strerror(row->error));
}

static bool any_moved(const struct prove_run *run)
{
	unsigned int i;

	for (i = 0; i < PROVE_ROWS; i++)
		if (prove_judge(&run->row[i]) != PROVE_NOT_RUN)
			return true;
	return false;
}

static const struct prove_row *first_failed(const struct prove_run *run)
{
	unsigned int i;

	for (i = 0; i < PROVE_ROWS; i++)
		if (run->row[i].made && run->row[i].result < 0)
			return &run->row[i];
	return NULL;
}

static void print_row(const struct prove_run *run, const struct prove_row *row, FILE *out)
{
	char how[160], who[80], error[80];

	if (row->made && row->result < 0) {
		error_text(row, error, sizeof(error));
		fprintf(out, "%-11s%-6s%8" PRIu64 " %8" PRIu64 "  %-6s failed: %s%s%s\n", run->name,
			op_name(row->op), row->size, row->file_off, "-", error,
			row->why.id[0] ? ", " : "", row->why.id);
		return;
	}
	moved(row, how, sizeof(how));
	witness(row, who, sizeof(who));
	fprintf(out, "%-11s%-6s%8" PRIu64 " %8" PRIu64 "  %-6s %-26s %-30s %s\n", run->name,
		op_name(row->op), row->size, row->file_off, data_word(row), how, who,
		verdict_names[prove_judge(row)]);
	if (row->wrong[0])
		fprintf(out, "           ^ %s\n", row->wrong);
}

static void print_why(const struct prove_why *why, FILE *out)
{
	if (why->id[0])
		fprintf(out, "  %s: %s\n    next: %s\n", why->id, why->text, why->remedy);
}

static void print_not_run(const struct prove_run *run, const struct prove_why *why, FILE *out)
{
	const struct prove_row *row = first_failed(run);
	char error[80];

	fprintf(out, "%-11sdid not run", run->name);
	if (run->failed[0]) {
		fprintf(out, ": %s", run->failed);
	} else if (row) {
		error_text(row, error, sizeof(error));
		fprintf(out, ": %s of %" PRIu64 " bytes: %s", op_name(row->op), row->size, error);
	}
	fputc('\n', out);
	print_why(why, out);
}

static void print_notes(const struct prove_notes *n, const char *title, FILE *out)
{
	size_t i;

	if (!n->n)
		return;
	fprintf(out, "\n%s\n", title);
	for (i = 0; i < n->n; i++)
		fprintf(out, "  %s\n", n->line[i]);
}

static const char *summary(const struct prove_report *r)
{
	const struct prove_row *row;

	if (r->failed[0])
		return "could not run";
	switch (r->status) {
	case PROVE_EXIT_DIRECT:
		return "proven direct: all whole blocks, both directions";
	case PROVE_EXIT_WRONG:
		return "WRONG DATA: do not use this path";
	case PROVE_EXIT_INDIRECT:
		row = prove_first_not_direct(&r->run[0]);
		return row && prove_judge(row) == PROVE_UNSEEN ?
			       "works; the library says direct, but nothing saw it" :
			       "works, not direct";
	default:
		return any_moved(&r->run[0]) ? "some requests failed as configured" :
					       "could not run as configured";
	}
}

/* The cause of the configured run; the module's way alone knows it when that one could not open. */
static const struct prove_why *cause(const struct prove_report *r)
{
	size_t i;

	for (i = 0; i < r->runs; i++)
		if (r->cause[i].id[0] && (!i || !strcmp(r->run[i].name, "nvfs")))
			return &r->cause[i];
	return NULL;
}

void prove_print(const struct prove_report *r, FILE *out)
{
	const struct prove_run *run;
	size_t i, j;

	fprintf(out, "path: %s (a file of its own in %s)\nGPU: %s, nvidia-fs: %s\n\n", r->path,
		r->folder[0] ? r->folder : "-", r->runs && r->run[0].gpu[0] ? r->run[0].gpu : "-",
		r->module[0] ? r->module : "not loaded");
	if (r->runs)
		fprintf(out, "%-11s%-6s%8s %8s  %-6s %-26s %-30s %s\n", "route", "op", "bytes",
			"at", "data", "moved by", "witness", "verdict");
	for (i = 0; i < r->runs; i++) {
		run = &r->run[i];
		if (!any_moved(run)) {
			print_not_run(run, &r->cause[i], out);
			continue;
		}
		for (j = 0; j < PROVE_ROWS; j++)
			if (run->row[j].made)
				print_row(run, &run->row[j], out);
		if (run->failed[0])
			fprintf(out, "           ^ stopped: %s\n", run->failed);
		if (run->pin[0])
			fprintf(out, "           ^ %s\n", run->pin);
	}
	if (r->runs && r->run[0].file_says[0])
		fprintf(out, "\n%s itself: %s\n", r->path, r->run[0].file_says);
	print_notes(&r->counters, "counters of nvidia-fs, all users, before and after:", out);
	print_notes(&r->kernel, "the kernel:", out);
	print_notes(&r->library, "the library's log:", out);
	fprintf(out, "\nverdict: %s\n", summary(r));
	if (r->failed[0])
		fprintf(out, "  %s\n", r->failed);
	else if (r->status != PROVE_EXIT_DIRECT && cause(r))
		print_why(cause(r), out);
}

/* ---- JSON ---- */

static void text(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, value[0] ? json_object_new_string(value) : NULL);
}

static void number(struct json_object *o, const char *key, int64_t value)
{
	json_object_object_add(o, key, json_object_new_int64(value));
}

static struct json_object *json_why(const struct prove_why *why)
{
	struct json_object *o;

	if (!why || !why->id[0])
		return NULL;
	o = json_object_new_object();
	text(o, "id", why->id);
	text(o, "text", why->text);
	text(o, "next", why->remedy);
	return o;
}

static struct json_object *json_row(const struct prove_row *row)
{
	struct json_object *o = json_object_new_object(), *b;
	unsigned int i;

	text(o, "op", op_name(row->op));
	number(o, "bytes", (int64_t)row->size);
	number(o, "at", (int64_t)row->file_off);
	number(o, "result", row->result);
	number(o, "error", row->error);
	json_object_object_add(o, "data_ok", json_object_new_boolean(row->right));
	text(o, "wrong", row->wrong);
	text(o, "verdict", verdict_names[prove_judge(row)]);
	json_object_object_add(o, "told", json_object_new_boolean(row->told));
	b = json_object_new_object();
	for (i = 0; i < OGDS_ROUTES; i++)
		if (row->bytes[i])
			number(b, route_names[i], (int64_t)row->bytes[i]);
	json_object_object_add(o, "moved", b);
	number(o, "whole", (int64_t)row->whole);
	number(o, "whole_direct", (int64_t)row->whole_direct);
	number(o, "edge", (int64_t)row->edge);
	number(o, "witnessed", (int64_t)row->witnessed);
	number(o, "retried", (int64_t)row->retried);
	json_object_object_add(o, "reason", json_why(&row->why));
	text(o, "refused_by", row->refused_by);
	return o;
}

static struct json_object *json_run(const struct prove_run *run, const struct prove_why *why)
{
	struct json_object *o = json_object_new_object(), *rows = json_object_new_array();
	unsigned int i;

	text(o, "route", run->name);
	text(o, "failed", run->failed);
	text(o, "registration", run->pin);
	number(o, "code", run->code);
	json_object_object_add(o, "reason", json_why(why));
	for (i = 0; i < PROVE_ROWS; i++)
		if (run->row[i].made)
			json_object_array_add(rows, json_row(&run->row[i]));
	json_object_object_add(o, "requests", rows);
	return o;
}

static void add_notes(struct json_object *o, const char *key, const struct prove_notes *n)
{
	struct json_object *a = json_object_new_array();
	size_t i;

	for (i = 0; i < n->n; i++)
		json_object_array_add(a, json_object_new_string(n->line[i]));
	json_object_object_add(o, key, a);
}

void prove_print_json(const struct prove_report *r, FILE *out)
{
	struct json_object *o = json_object_new_object(), *runs = json_object_new_array();
	size_t i;

	text(o, "path", r->path);
	text(o, "folder", r->folder);
	text(o, "gpu", r->runs ? r->run[0].gpu : "");
	text(o, "nvidia_fs", r->module);
	text(o, "file", r->runs ? r->run[0].file_says : "");
	text(o, "verdict", summary(r));
	number(o, "status", r->status);
	text(o, "failed", r->failed);
	json_object_object_add(o, "reason",
			       r->status == PROVE_EXIT_DIRECT ? NULL : json_why(cause(r)));
	for (i = 0; i < r->runs; i++)
		json_object_array_add(runs, json_run(&r->run[i], &r->cause[i]));
	json_object_object_add(o, "runs", runs);
	add_notes(o, "counters", &r->counters);
	add_notes(o, "kernel", &r->kernel);
	add_notes(o, "library", &r->library);
	fprintf(out, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
							     JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}
