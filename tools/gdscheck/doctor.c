// SPDX-License-Identifier: MIT
/*
 * doctor.c - runs the checks and tells what they found, for people and for programs.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "gdscheck.h"

#define COLUMNS 96	/* of a line for people */

static const struct {
	const char *name;
	const struct gc_check *check;
	const size_t *n;
} groups[] = {
	{ "GPU driver", gc_checks_gpu, &gc_n_gpu },
	{ "nvidia-fs and the nvme driver", gc_checks_module, &gc_n_module },
	{ "Kernel and platform", gc_checks_kernel, &gc_n_kernel },
	{ "Between GPU and drive", gc_checks_pcie, &gc_n_pcie },
	{ "Storage", gc_checks_storage, &gc_n_storage },
	{ "Process and container", gc_checks_process, &gc_n_process },
	{ "Proof of the path", gc_checks_path, &gc_n_path },
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

const char *gc_verdict_name(enum gc_verdict v)
{
	static const char *const names[] = { "SKIP", "OK", "WARN", "FAIL" };

	return names[v];
}

/* Of what is to be mended, the first: the heavier verdict, then the cause that others follow */
static bool before(const struct gc_finding *a, const struct gc_finding *b)
{
	if (a->verdict != b->verdict)
		return a->verdict > b->verdict;
	return a->check->rank < b->check->rank;
}

/* The order of problems; those of one rank stand as in the tables. */
static bool comes_after(const struct gc_finding *a, const struct gc_finding *b)
{
	return before(b, a) || (!before(a, b) && a > b);
}

int gc_doctor(const struct gc_machine *m, struct gc_report *r)
{
	struct gc_finding *f;
	size_t g, i, n = 0;

	memset(r, 0, sizeof(*r));
	for (g = 0; g < GROUPS; g++)
		n += *groups[g].n;
	r->finding = calloc(n, sizeof(*r->finding));
	if (!r->finding)
		return -ENOMEM;
	for (g = 0; g < GROUPS; g++) {
		for (i = 0; i < *groups[g].n; i++) {
			f = &r->finding[r->n++];
			f->check = &groups[g].check[i];
			f->group = groups[g].name;
			f->check->run(m, f);
			r->count[f->verdict]++;
			if (f->verdict > GC_OK && (!r->first || before(f, r->first)))
				r->first = f;
		}
	}
	return 0;
}

void gc_report_free(struct gc_report *r)
{
	free(r->finding);
	memset(r, 0, sizeof(*r));
}

int gc_report_status(const struct gc_report *r)
{
	return r->count[GC_FAIL] ? GC_EXIT_FAIL : r->count[GC_WARN] ? GC_EXIT_WARN : GC_EXIT_OK;
}

/* -- for people -- */

/* Breaks a text at blanks; the lines after the first one begin with `indent` blanks. */
static void wrap(FILE *out, const char *text, int indent)
{
	int room = COLUMNS - indent, n, k;

	while ((int)strlen(text) > room) {
		for (n = room; n > 0 && text[n] != ' '; n--)
			;
		if (!n)
			n = (int)strcspn(text, " ");
		for (k = n; k > 0 && text[k - 1] == ' '; k--)
			;
		fprintf(out, "%.*s\n%*s", k, text, indent, "");
		text += n + strspn(text + n, " ");
	}
	fprintf(out, "%s\n", text);
}

static void detail(FILE *out, const char *label, const char *text)
{
	if (!text[0])
		return;
	fprintf(out, "        %-6s", label);
	wrap(out, text, 14);
}

/* One finding; with what was seen and what to do when it is a problem */
static void one(FILE *out, const struct gc_finding *f)
{
	char seen[2 * GC_TEXT + 4];

	fprintf(out, "  %-4s  %s  %-18s", gc_verdict_name(f->verdict), f->check->id, f->check->name);
	wrap(out, f->text, 32);
	if (f->verdict < GC_WARN)
		return;
	snprintf(seen, sizeof(seen), "%s: %s", f->file, f->value);
	detail(out, "seen", seen);
	detail(out, "do", f->remedy);
	detail(out, "note", f->note);
}

/* Adds a word to a list that is broken at the last column. */
static void list_word(FILE *out, int *column, int indent, const char *before, const char *word)
{
	int n = (int)(strlen(before) + strlen(word));

	if (*column + n > COLUMNS) {
		fprintf(out, "%s\n%*s", before[0] == ',' ? "," : "", indent, "");
		*column = indent;
		before = "";
	}
	*column += fprintf(out, "%s%s", before, word);
}

/* What needs a hand, the worst first: as often as there are such, the next one of them */
static void problems(const struct gc_report *r, FILE *out)
{
	const struct gc_finding *last = NULL, *next;
	size_t i;

	for (;; last = next) {
		next = NULL;
		for (i = 0; i < r->n; i++) {
			const struct gc_finding *f = &r->finding[i];

			if (f->verdict < GC_WARN || f == last || (last && !comes_after(f, last)))
				continue;
			if (!next || comes_after(next, f))
				next = f;
		}
		if (!next)
			return;
		one(out, next);
	}
}

static void fine(const struct gc_report *r, FILE *out)
{
	const char *group = "";
	int column = 0;
	size_t i;

	for (i = 0; i < r->n; i++) {
		const struct gc_finding *f = &r->finding[i];

		if (f->verdict != GC_OK)
			continue;
		if (strcmp(group, f->group)) {
			column = fprintf(out, "%s  OK    %s: ", group[0] ? "\n" : "", f->group);
			if (group[0])
				column--;
			list_word(out, &column, 8, "", f->check->name);
		} else {
			list_word(out, &column, 8, ", ", f->check->name);
		}
		group = f->group;
	}
	fputs(group[0] ? "\n" : "", out);
}

static void skipped(const struct gc_report *r, FILE *out)
{
	int column = 8, n = 0;
	size_t i;

	for (i = 0; i < r->n; i++) {
		if (r->finding[i].verdict != GC_SKIP)
			continue;
		if (!n++)
			fputs("  SKIP  ", out);
		list_word(out, &column, 8, n > 1 ? " " : "", r->finding[i].check->id);
	}
	if (n)
		fputs("\n", out);
}

/* Everything, group by group */
static void in_full(const struct gc_report *r, FILE *out)
{
	const char *group = "";
	size_t i;

	for (i = 0; i < r->n; i++) {
		if (strcmp(group, r->finding[i].group))
			fprintf(out, "%s%s\n", group[0] ? "\n" : "", r->finding[i].group);
		group = r->finding[i].group;
		one(out, &r->finding[i]);
		if (r->finding[i].verdict == GC_OK)
			detail(out, "note", r->finding[i].note);
	}
}

void gc_report_text(const struct gc_report *r, bool all, FILE *out)
{
	char next[2 * GC_TEXT];

	if (all) {
		in_full(r, out);
	} else {
		problems(r, out);
		fine(r, out);
		skipped(r, out);
	}
	fprintf(out, "\n%u FAIL, %u WARN, %u OK, %u SKIP%s\n", r->count[GC_FAIL],
		r->count[GC_WARN], r->count[GC_OK], r->count[GC_SKIP],
		all ? "" : " (-a: all of them, with reasons)");
	if (r->first)
		snprintf(next, sizeof(next), "%s: %s", r->first->check->id, r->first->remedy);
	else
		snprintf(next, sizeof(next), "%s", "nothing that can be seen is in the way; prove it: gdscheck --prove FILE");
	fputs("Next: ", out);
	wrap(out, next, 6);
}

/* -- for programs: gdscheck.md describes the members -- */

static void member(struct json_object *o, const char *name, const char *text)
{
	if (text[0])
		json_object_object_add(o, name, json_object_new_string(text));
}

static struct json_object *finding(const struct gc_finding *f)
{
	struct json_object *o = json_object_new_object();

	member(o, "id", f->check->id);
	member(o, "name", f->check->name);
	member(o, "group", f->group);
	member(o, "verdict", gc_verdict_name(f->verdict));
	member(o, "text", f->text);
	member(o, "file", f->file);
	member(o, "value", f->value);
	member(o, "remedy", f->remedy);
	member(o, "note", f->note);
	return o;
}

static struct json_object *counts(const struct gc_report *r)
{
	struct json_object *o = json_object_new_object();
	int v;

	for (v = GC_FAIL; v >= GC_SKIP; v--)
		json_object_object_add(o, gc_verdict_name((enum gc_verdict)v),
				       json_object_new_int((int)r->count[v]));
	return o;
}

int gc_report_json(const struct gc_machine *m, const struct gc_report *r, FILE *out)
{
	struct json_object *top = json_object_new_object(), *list = json_object_new_array();
	size_t i;
	int n;

	json_object_object_add(top, "format", json_object_new_int(1));
	json_object_object_add(top, "recorded", json_object_new_boolean(m->recorded));
	member(top, "verdict", gc_verdict_name(r->first ? r->first->verdict : GC_OK));
	json_object_object_add(top, "counts", counts(r));
	if (r->first)
		member(top, "next", r->first->check->id);
	for (i = 0; i < r->n; i++)
		json_object_array_add(list, finding(&r->finding[i]));
	json_object_object_add(top, "checks", list);
	n = fprintf(out, "%s\n", json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
							       JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
	return n < 0 ? -EIO : 0;
}
