// SPDX-License-Identifier: MIT
/*
 * set.c - edit sets: what to change, in a text file.
 *
 * A text file and not C tables: the inserted code reads as code, a new kernel series is a
 * new file and no new program, and a distribution can carry its own. Tools whose edits
 * depend on what they find (gdspatch) call locate.c and edit.c themselves.
 *
 *   # comment
 *   set NAME
 *   file PATH [make]            the next lines are about this file (C, or a make file)
 *   forbid PATTERN              refuse (E110) where this is in the file
 *   expect FUNCTION : PATTERN   refuse (E106) unless the parameters are exactly this
 *   after-include "x.h"         or <x.h>
 *   before-member STRUCT : PATTERN      after-member STRUCT : PATTERN
 *   before-function NAME        above the comment that belongs to it
 *   first-in FUNCTION           first statement, after the declarations
 *   before FUNCTION : PATTERN   after FUNCTION : PATTERN    replace FUNCTION : PATTERN
 *   after-line PATTERN          in a make file
 *   |TEXT                       a line to insert, for the verb above it
 *   add PATH from SOURCE        a new file; SOURCE is relative to the set file
 *
 * PATTERN is tokens, see patchkit.h. Each place must be there exactly once.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchkit.h"

enum verb {
	V_FORBID,
	V_EXPECT,
	V_AFTER_INCLUDE,
	V_BEFORE_MEMBER,
	V_AFTER_MEMBER,
	V_BEFORE_FUNCTION,
	V_FIRST_IN,
	V_BEFORE,
	V_AFTER,
	V_REPLACE,
	V_AFTER_LINE,
};

static const struct {
	const char *name;
	bool scope;		/* "NAME : PATTERN", else one argument */
	bool text;		/* takes |TEXT */
} verbs[] = {
	[V_FORBID] = { "forbid", false, false },
	[V_EXPECT] = { "expect", true, false },
	[V_AFTER_INCLUDE] = { "after-include", false, true },
	[V_BEFORE_MEMBER] = { "before-member", true, true },
	[V_AFTER_MEMBER] = { "after-member", true, true },
	[V_BEFORE_FUNCTION] = { "before-function", false, true },
	[V_FIRST_IN] = { "first-in", false, true },
	[V_BEFORE] = { "before", true, true },
	[V_AFTER] = { "after", true, true },
	[V_REPLACE] = { "replace", true, true },
	[V_AFTER_LINE] = { "after-line", false, true },
};

struct op {
	enum verb verb;
	char *scope, *arg;	/* arg: the pattern or the only argument */
	struct pk_buf text;
	unsigned int line;
};

struct file {
	char *path;
	enum pk_lang lang;
	struct op *op;
	size_t nop;
	/* added files: no ops */
	char *data;
	size_t len;
};

struct pk_set {
	char *path, *name;
	char key[65];
	struct file *f;
	size_t n;
};

const char *pk_set_name(const struct pk_set *set)
{
	return set->name;
}

const char *pk_set_key(const struct pk_set *set)
{
	return set->key;
}

void pk_set_free(struct pk_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n; i++) {
		struct file *f = &set->f[i];

		for (size_t j = 0; j < f->nop; j++) {
			free(f->op[j].scope);
			free(f->op[j].arg);
			pk_buf_free(&f->op[j].text);
		}
		free(f->op);
		free(f->path);
		free(f->data);
	}
	free(set->f);
	free(set->path);
	free(set->name);
	free(set);
}

/* ---- reading ---- */

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

static int syntax(const struct pk_set *set, unsigned int line, const char *what,
		  struct pk_error *err)
{
	return pk_refuse(err, PK_E117_SET_SYNTAX, "%s:%u: %s", set->path, line, what);
}

/* a path below the root: relative, no way up */
static bool good_path(const char *p)
{
	const char *q;

	if (!*p || *p == '/')
		return false;
	for (q = p; *q; q += strcspn(q, "/"), q += *q == '/')
		if (!strncmp(q, "..", 2) && (!q[2] || q[2] == '/'))
			return false;
	return true;
}

static int add_file(struct pk_set *set, const char *path, unsigned int line, struct pk_error *err)
{
	struct file *f;

	if (!good_path(path))
		return pk_refuse(err, PK_E116_PATH, "%s:%u: `%s` leaves the root", set->path, line,
				 path);
	for (size_t i = 0; i < set->n; i++)
		if (!strcmp(set->f[i].path, path))
			return syntax(set, line, "a file is named once", err);
	f = realloc(set->f, (set->n + 1) * sizeof(*f));
	if (!f)
		return pk_system(err, -ENOMEM, "read", set->path);
	set->f = f;
	set->f[set->n] = (struct file) { .path = strdup(path) };
	if (!set->f[set->n].path)
		return pk_system(err, -ENOMEM, "read", set->path);
	set->n++;
	return 0;
}

static int parse_file(struct pk_set *set, char *arg, unsigned int line, struct pk_error *err)
{
	char *lang = strchr(arg, ' ');
	int r;

	if (lang)
		*lang++ = '\0';
	if (lang && strcmp(trim(lang), "make"))
		return syntax(set, line, "expected `file PATH` or `file PATH make`", err);
	r = add_file(set, arg, line, err);
	if (!r && lang)
		set->f[set->n - 1].lang = PK_LANG_MAKE;
	return r;
}

/* SOURCE is next to the set file */
static int parse_add(struct pk_set *set, char *arg, unsigned int line, struct pk_error *err)
{
	char *from = strstr(arg, " from "), *full, *dir;
	struct file *f;
	int r;

	if (!from)
		return syntax(set, line, "expected `add PATH from SOURCE`", err);
	*from = '\0';
	r = add_file(set, trim(arg), line, err);
	if (r)
		return r;
	f = &set->f[set->n - 1];
	dir = strdup(set->path);
	if (!dir || asprintf(&full, "%s/%s", dirname(dir), trim(from + 6)) < 0) {
		free(dir);
		return pk_system(err, -ENOMEM, "read", set->path);
	}
	free(dir);
	r = pk_read_file(full, &f->data, &f->len, NULL);
	if (r)
		r = pk_system(err, r, "read", full);
	free(full);
	return r;
}

static int parse_op(struct pk_set *set, const char *word, char *arg, unsigned int line,
		    struct pk_error *err)
{
	struct file *f = set->n ? &set->f[set->n - 1] : NULL;
	struct op *op, o = { .line = line };
	char *colon = NULL;
	size_t v;

	for (v = 0; v < sizeof(verbs) / sizeof(*verbs); v++)
		if (!strcmp(verbs[v].name, word))
			break;
	if (v == sizeof(verbs) / sizeof(*verbs))
		return syntax(set, line, "unknown verb", err);
	if (!f || f->data)
		return syntax(set, line, "a `file` line has to come first", err);
	if (verbs[v].scope) {
		colon = strstr(arg, " : ");
		if (!colon)
			return syntax(set, line, "expected `NAME : PATTERN`", err);
		*colon = '\0';
	}
	if (!*arg)
		return syntax(set, line, "the argument is missing", err);
	o.verb = v;
	o.scope = colon ? strdup(trim(arg)) : NULL;
	o.arg = strdup(trim(colon ? colon + 3 : arg));
	op = realloc(f->op, (f->nop + 1) * sizeof(*op));
	if (op)
		f->op = op;
	if (!op || !o.arg || (colon && !o.scope)) {
		free(o.scope);
		free(o.arg);
		return pk_system(err, -ENOMEM, "read", set->path);
	}
	f->op[f->nop++] = o;
	return 0;
}

static int parse_text(struct pk_set *set, const char *text, unsigned int line, struct pk_error *err)
{
	struct file *f = set->n ? &set->f[set->n - 1] : NULL;
	struct op *op = f && f->nop ? &f->op[f->nop - 1] : NULL;

	if (!op || !verbs[op->verb].text)
		return syntax(set, line, "text without a verb that takes text", err);
	if (pk_buf_puts(&op->text, text) || pk_buf_puts(&op->text, "\n"))
		return pk_system(err, -ENOMEM, "read", set->path);
	return 0;
}

static int parse_line(struct pk_set *set, char *s, unsigned int line, struct pk_error *err)
{
	char *word, *arg;

	while (*s == ' ' || *s == '\t')
		s++;
	if (*s == '|')
		return parse_text(set, s + 1, line, err);
	word = trim(s);
	if (!*word || *word == '#')
		return 0;
	arg = word + strcspn(word, " \t");
	if (*arg)
		*arg++ = '\0';
	arg = trim(arg);
	if (!strcmp(word, "set")) {
		if (set->name || !*arg)
			return syntax(set, line, "expected one `set NAME`", err);
		set->name = strdup(arg);
		return set->name ? 0 : pk_system(err, -ENOMEM, "read", set->path);
	}
	if (!strcmp(word, "file"))
		return parse_file(set, arg, line, err);
	if (!strcmp(word, "add"))
		return parse_add(set, arg, line, err);
	return parse_op(set, word, arg, line, err);
}

/* a verb that takes text needs some */
static int check(const struct pk_set *set, struct pk_error *err)
{
	if (!set->name || strpbrk(set->name, " \t"))
		return syntax(set, 1, "expected `set NAME`, NAME one word", err);
	for (size_t i = 0; i < set->n; i++)
		for (size_t j = 0; j < set->f[i].nop; j++) {
			const struct op *op = &set->f[i].op[j];

			if (verbs[op->verb].text && !op->text.len)
				return syntax(set, op->line, "the text to insert is missing", err);
		}
	return 0;
}

static int make_key(struct pk_set *set, const char *text, size_t len)
{
	struct pk_buf b = { 0 };
	char hex[65];
	int r;

	r = pk_buf_add(&b, text, len);
	for (size_t i = 0; i < set->n && !r; i++)
		if (set->f[i].data) {
			pk_sha256(set->f[i].data, set->f[i].len, hex);
			r = pk_buf_puts(&b, hex);
		}
	if (!r)
		pk_sha256(b.data, b.len, set->key);
	pk_buf_free(&b);
	return r;
}

int pk_set_load(struct pk_set **out, const char *path, struct pk_error *err)
{
	struct pk_set *set = calloc(1, sizeof(*set));
	char *text = NULL, *copy = NULL, *s, *next;
	unsigned int line = 0;
	size_t len;
	int r;

	if (!set || !(set->path = strdup(path))) {
		free(set);
		return pk_system(err, -ENOMEM, "read", path);
	}
	r = pk_read_file(path, &text, &len, NULL);
	if (!r && !(copy = strdup(text)))
		r = -ENOMEM;
	if (r)
		r = pk_system(err, r, "read", path);
	for (s = copy; s && *s && !r; s = next) {
		next = s + strcspn(s, "\n");
		if (*next)
			*next++ = '\0';
		r = parse_line(set, s, ++line, err);
	}
	if (!r)
		r = check(set, err);
	if (!r && make_key(set, text, len))
		r = pk_system(err, -ENOMEM, "read", path);
	free(copy);
	free(text);
	if (r) {
		pk_set_free(set);
		return r;
	}
	*out = set;
	return 0;
}

/* ---- planning ---- */

static int in_function(const struct op *op, const struct pk_source *s, struct pk_edits *es,
		       const struct pk_function *f, struct pk_error *err)
{
	struct pk_match m;
	char what[160];
	int r;

	snprintf(what, sizeof(what), "function %.100s", op->scope);
	r = pk_find(s, &f->body, op->arg, what, &m, err);
	if (r)
		return r;
	if (op->verb == V_BEFORE)
		return pk_edit_before_line(es, s, m.span.first, op->text.data, err);
	if (op->verb == V_AFTER)
		return pk_edit_after_line(es, s, m.span.end - 1, op->text.data, err);
	/* a replacement ends where the old text ended: without the last newline */
	op->text.data[op->text.len - 1] = '\0';
	r = pk_edit_replace(es, s, &m.span, op->text.data, err);
	op->text.data[op->text.len - 1] = '\n';
	return r;
}

static int in_struct(const struct op *op, const struct pk_source *s, struct pk_edits *es,
		     struct pk_error *err)
{
	struct pk_span body;
	struct pk_match m;
	char what[160];
	int r;

	snprintf(what, sizeof(what), "struct %.100s", op->scope);
	r = pk_find_struct(s, op->scope, &body, err);
	r = r ? r : pk_find(s, &body, op->arg, what, &m, err);
	if (r)
		return r;
	if (op->verb == V_BEFORE_MEMBER)
		return pk_edit_before_line(es, s, m.span.first, op->text.data, err);
	return pk_edit_after_line(es, s, m.span.end - 1, op->text.data, err);
}

static int expect(const struct op *op, const struct pk_source *s, struct pk_error *err)
{
	struct pk_function f;
	struct pk_match m;
	long n;
	int r;

	r = pk_find_function(s, op->scope, &f, err);
	if (r)
		return r;
	n = pk_count(s, &f.params, op->arg, &m, err);
	if (n < 0)
		return (int)n;
	if (n == 1 && m.span.first == f.params.first && m.span.end == f.params.end)
		return 0;
	return pk_refuse(err, PK_E106_SIGNATURE,
			 "%s:%u: function %s: expected the parameters (%s), found others", s->name,
			 s->tok[f.open].line, op->scope, op->arg);
}

static int forbid(const struct op *op, const struct pk_source *s, struct pk_error *err)
{
	struct pk_match m;
	long n = pk_count(s, NULL, op->arg, &m, err);

	if (n <= 0)
		return (int)n;
	return pk_refuse(err, PK_E110_FOREIGN, "%s:%u: expected a source without `%s`, found it",
			 s->name, s->tok[m.span.first].line, op->arg);
}

static int run_op(const struct op *op, const struct pk_source *s, struct pk_edits *es,
		  struct pk_error *err)
{
	struct pk_function f;
	struct pk_match m;
	size_t t;
	int r;

	switch (op->verb) {
	case V_FORBID:
		return forbid(op, s, err);
	case V_EXPECT:
		return expect(op, s, err);
	case V_AFTER_INCLUDE:
		r = pk_find_include(s, op->arg, &t, err);
		return r ? r : pk_edit_after_line(es, s, t, op->text.data, err);
	case V_BEFORE_MEMBER:
	case V_AFTER_MEMBER:
		return in_struct(op, s, es, err);
	case V_AFTER_LINE:
		r = pk_find(s, NULL, op->arg, "line", &m, err);
		return r ? r : pk_edit_after_line(es, s, m.span.end - 1, op->text.data, err);
	case V_BEFORE_FUNCTION:
	case V_FIRST_IN:
		r = pk_find_function(s, op->arg, &f, err);
		if (r)
			return r;
		if (op->verb == V_FIRST_IN)
			return pk_edit_first(es, s, &f, op->text.data, err);
		return pk_edit_before_function(es, s, &f, op->text.data, err);
	case V_BEFORE:
	case V_AFTER:
	case V_REPLACE:
		r = pk_find_function(s, op->scope, &f, err);
		return r ? r : in_function(op, s, es, &f, err);
	}
	return 0;
}

/* our own edits found in a tree without a manifest: somebody else applied them */
static int check_present(const struct file *f, const struct pk_source *s, struct pk_error *err)
{
	unsigned int line = 0, l;
	size_t want = 0, have = 0;

	for (size_t i = 0; i < f->nop; i++) {
		bool yes;
		int r;

		if (!verbs[f->op[i].verb].text)
			continue;
		want++;
		r = pk_contains(s, f->op[i].text.data, &yes, &l, err);
		if (r)
			return r;
		if (yes && !have++)
			line = l;
	}
	if (have && have == want)
		return pk_refuse(err, PK_E110_FOREIGN,
				 "%s:%u: expected a pristine source, found all edits of this set, but no manifest",
				 s->name, line);
	if (have)
		return pk_refuse(err, PK_E111_MIXED,
				 "%s:%u: expected a pristine source, found %zu of %zu edits of this set",
				 s->name, line, have, want);
	return 0;
}

static int plan_edit(const struct file *f, struct pk_change *c, struct pk_error *err)
{
	struct pk_edits es = { 0 };
	struct pk_buf out = { 0 };
	struct pk_source s;
	int r;

	r = pk_lex(&s, f->path, f->lang, c->before, c->before_len, err);
	if (r)
		return r;
	r = check_present(f, &s, err);
	for (size_t i = 0; i < f->nop && !r; i++)
		r = run_op(&f->op[i], &s, &es, err);
	if (!r)
		r = pk_render(&es, &s, &out, err);
	if (!r) {
		c->after = out.data;
		c->after_len = out.len;
	}
	pk_edits_free(&es);
	pk_source_free(&s);
	return r;
}

static int plan_file(const struct pk_set *set, const struct file *f, const char *root,
		     struct pk_change *c, struct pk_error *err)
{
	char *full;
	int r;

	if (asprintf(&full, "%s/%s", root, f->path) < 0)
		return pk_system(err, -ENOMEM, "read", f->path);
	r = pk_read_file(full, &c->before, &c->before_len, NULL);
	free(full);
	c->path = strdup(f->path);
	if (!c->path)
		return pk_system(err, -ENOMEM, "read", f->path);
	if (f->data) {
		if (r != -ENOENT)
			return pk_refuse(err, PK_E109_FILE_EXISTS,
					 "%s:1: expected no such file: set %s adds it", f->path,
					 set->name);
		c->after = malloc(f->len + 1);
		if (!c->after)
			return pk_system(err, -ENOMEM, "read", f->path);
		memcpy(c->after, f->data, f->len + 1);
		c->after_len = f->len;
		return 0;
	}
	if (r == -ENOENT || r == -ENOTDIR)
		return pk_refuse(err, PK_E101_NO_FILE, "%s:1: expected this file below %s, found none",
				 f->path, root);
	if (r == -ELOOP || r == -EINVAL)
		return pk_refuse(err, PK_E116_PATH, "%s:1: expected a regular file", f->path);
	if (r)
		return pk_system(err, r, "read", f->path);
	return plan_edit(f, c, err);
}

int pk_set_plan(const struct pk_set *set, const char *root, struct pk_plan *plan,
		struct pk_error *err)
{
	int r = 0;

	*plan = (struct pk_plan) { .set = strdup(set->name) };
	memcpy(plan->key, set->key, sizeof(plan->key));
	plan->c = calloc(set->n + 1, sizeof(*plan->c));
	if (!plan->c || !plan->set)
		r = pk_system(err, -ENOMEM, "plan", set->path);
	for (size_t i = 0; i < set->n && !r; i++) {
		plan->n++;
		r = plan_file(set, &set->f[i], root, &plan->c[i], err);
	}
	if (r)
		pk_plan_free(plan);
	return r;
}

void pk_plan_free(struct pk_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		free(plan->c[i].path);
		free(plan->c[i].before);
		free(plan->c[i].after);
	}
	free(plan->c);
	free(plan->set);
	*plan = (struct pk_plan) { 0 };
}

int pk_plan_diff(const struct pk_plan *plan, const char *prefix, struct pk_buf *out)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct pk_change *c = &plan->c[i];
		char *path;
		int r;

		if (asprintf(&path, "%s%s", prefix, c->path) < 0)
			return -ENOMEM;
		r = pk_diff(out, path, c->before, c->before_len, c->after, c->after_len);
		free(path);
		if (r)
			return r;
	}
	return 0;
}
