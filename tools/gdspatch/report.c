// SPDX-License-Identifier: MIT
/* report.c - what gdspatch found, for people and as JSON. */
#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gdspatch.h"

static const char *const site_state[] = { "absent", "pristine", "edited" };

void gp_note(const char *fmt, ...)
{
	va_list ap;

	fputs("gdspatch: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void add(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static void put(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static struct json_object *error_object(const struct gp_error *err)
{
	struct json_object *o = json_object_new_object();

	add(o, "id", gp_id_name(err->id));
	add(o, "file", err->file);
	json_object_object_add(o, "line", json_object_new_int((int)err->line));
	add(o, "function", err->function);
	add(o, "expected", err->expected);
	add(o, "found", err->found);
	add(o, "next", gp_id_next(err->id));
	return o;
}

int gp_fail(const struct gp_error *err, bool json)
{
	struct pk_buf text = { 0 };

	if (json) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "error", error_object(err));
		put(o);
	} else {
		gp_error_text(err, &text);
		gp_note("%s", text.data ? text.data : gp_id_name(err->id));
		pk_buf_free(&text);
	}
	return err->id == GP_SYSTEM || err->id == GP_TOOL_FAILED ? GP_EXIT_SYSTEM : GP_EXIT_REFUSED;
}

static struct json_object *site_object(const struct gp_tree *t, enum gp_site s)
{
	const struct gp_place *p = &t->site[s];
	struct json_object *o = json_object_new_object();

	add(o, "name", gp_site_name[s]);
	add(o, "file", gp_path[gp_site_file(s)]);
	json_object_object_add(o, "line", json_object_new_int((int)p->line));
	add(o, "state", site_state[p->state]);
	add(o, "found", p->found);
	return o;
}

static void json_seen(const struct gp_seen *seen, const char *root)
{
	struct json_object *o = json_object_new_object(), *sites = json_object_new_array();
	const struct gp_tree *t = &seen->tree;
	struct pk_buf sig = { 0 };

	add(o, "tree", root);
	add(o, "release", t->version);
	add(o, "state", gp_state_name[seen->state]);
	add(o, "set", gp_set_name[seen->set]);
	gp_signature(&t->layout, &sig);
	add(o, "layout", sig.data ? sig.data : "");
	pk_buf_free(&sig);
	add(o, "layout_of", t->row ? t->row->tags : "");
	for (enum gp_site s = 0; s < GP_NR_SITES; s++)
		json_object_array_add(sites, site_object(t, s));
	json_object_object_add(o, "sites", sites);
	if (seen->why.id != GP_OK)
		json_object_object_add(o, "error", error_object(&seen->why));
	put(o);
}

static void print_sets(const struct gp_tree *t)
{
	for (enum gp_set set = GP_BIF; set < GP_NR_SETS; set++) {
		struct gp_error err;
		int sites = 0;

		for (enum gp_site s = 0; s < GP_NR_SITES; s++)
			sites += gp_in_set(set, s) && t->site[s].state != GP_ABSENT;
		if (gp_set_available(t, set, &err))
			printf("set %s: not for this tree: %s\n", gp_set_name[set],
			       gp_id_next(err.id));
		else
			printf("set %s: %d sites\n", gp_set_name[set], sites);
	}
}

void gp_report_seen(const struct gp_seen *seen, const char *root, bool json)
{
	const struct gp_tree *t = &seen->tree;
	struct pk_buf text = { 0 };

	if (json) {
		json_seen(seen, root);
		return;
	}
	printf("tree: %s\nrelease: %s\n", root, *t->version ? t->version : "?");
	printf("state: %s%s%s\n", gp_state_name[seen->state], seen->set ? " " : "",
	       seen->set ? gp_set_name[seen->set] : "");
	printf("layout: %s\n", t->row ? t->row->tags : "not known");
	for (enum gp_site s = 0; s < GP_NR_SITES; s++) {
		const struct gp_place *p = &t->site[s];

		if (p->state == GP_ABSENT)
			printf("  %-34s absent\n", gp_site_name[s]);
		else
			printf("  %-34s %-8s %s:%u: %s\n", gp_site_name[s], site_state[p->state],
			       strrchr(gp_path[gp_site_file(s)], '/') + 1, p->line, p->found);
	}
	if (t->row)
		print_sets(t);
	if (seen->why.id == GP_OK)
		return;
	gp_error_text(&seen->why, &text);
	printf("%s\n", text.data ? text.data : "");
	pk_buf_free(&text);
}

static void json_plan(const struct gp_seen *seen, const struct pk_plan *plan, enum gp_set set,
		      const char *diff)
{
	struct json_object *o = json_object_new_object(), *files = json_object_new_array();

	add(o, "release", seen->tree.version);
	add(o, "state", gp_state_name[seen->state]);
	add(o, "set", gp_set_name[set]);
	add(o, "enables", gp_set_enables[set]);
	add(o, "does_not", gp_set_not[set]);
	for (size_t i = 0; i < plan->n; i++) {
		struct json_object *f = json_object_new_object();
		char hash[65];

		add(f, "file", plan->c[i].path);
		pk_sha256(plan->c[i].before, plan->c[i].before_len, hash);
		add(f, "sha256_before", hash);
		pk_sha256(plan->c[i].after, plan->c[i].after_len, hash);
		add(f, "sha256_after", hash);
		json_object_array_add(files, f);
	}
	json_object_object_add(o, "files", files);
	add(o, "diff", diff);
	put(o);
}

/* The diff alone goes to standard output: it can be piped into patch. */
void gp_report_plan(const struct gp_seen *seen, const struct pk_plan *plan, enum gp_set set,
		    const char *diff, bool json)
{
	if (json) {
		json_plan(seen, plan, set, diff);
		return;
	}
	gp_note("set %s enables: %s", gp_set_name[set], gp_set_enables[set]);
	gp_note("set %s does not: %s", gp_set_name[set], gp_set_not[set]);
	fputs(diff, stdout);
}

void gp_print_set(enum gp_set set)
{
	printf("enables: %s\ndoes not: %s\n", gp_set_enables[set], gp_set_not[set]);
}
