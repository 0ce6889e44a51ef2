// SPDX-License-Identifier: MIT
/*
 * edit.c - edits of one source: collected as byte ranges, checked, rendered.
 *
 * Inserted text takes the line ends of the line it is put next to. An insertion never
 * splits a line: if code shares the line on the wrong side of the anchor, it is refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "patchkit.h"

void pk_edits_free(struct pk_edits *es)
{
	for (size_t i = 0; i < es->n; i++)
		free(es->e[i].text);
	free(es->e);
	*es = (struct pk_edits) { 0 };
}

/* takes over the text of b */
static int add(struct pk_edits *es, size_t off, size_t len, struct pk_buf *b)
{
	struct pk_edit *e = realloc(es->e, (es->n + 1) * sizeof(*e));

	if (!e) {
		pk_buf_free(b);
		return -ENOMEM;
	}
	es->e = e;
	es->e[es->n] = (struct pk_edit) { .off = off, .len = len, .text = b->data, .order = es->n };
	es->n++;
	return 0;
}

static size_t line_start(const struct pk_source *s, size_t off)
{
	while (off && s->text[off - 1] != '\n')
		off--;
	return off;
}

/* after the '\n' of the line of off, or the end of the file */
static size_t line_end(const struct pk_source *s, size_t off)
{
	while (off < s->len && s->text[off] != '\n')
		off++;
	return off < s->len ? off + 1 : off;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/* is [from, to) white space only? */
static bool is_blank(const struct pk_source *s, size_t from, size_t to)
{
	for (; from < to; from++)
		if (!blank(s->text[from]) && s->text[from] != '\n')
			return false;
	return true;
}

/* the line end used at off: that of its line, or of the line before it */
static const char *eol_at(const struct pk_source *s, size_t off)
{
	size_t end = line_end(s, off);

	if (!end || s->text[end - 1] != '\n')
		end = line_start(s, off);
	return end > 1 && s->text[end - 1] == '\n' && s->text[end - 2] == '\r' ? "\r\n" : "\n";
}

/* text with its '\n' turned into eol */
static int with_eol(struct pk_buf *b, const char *text, const char *eol)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		int r = pk_buf_add(b, text, n);

		text += n;
		if (!r && *text == '\n') {
			r = pk_buf_puts(b, eol);
			text++;
		}
		if (r)
			return r;
	}
	return pk_buf_add(b, "", 0);
}

static int shared(const struct pk_source *s, size_t token, const char *side, struct pk_error *err)
{
	return pk_refuse(err, PK_E107_LINE_SHARED,
			 "%s:%u: expected a line of its own for `%.*s`, found code %s it", s->name,
			 s->tok[token].line, (int)(s->tok[token].len > 60 ? 60 : s->tok[token].len),
			 s->text + s->tok[token].off, side);
}

/* insert whole lines at off, which is the start of a line or the end of the file */
static int insert_lines(struct pk_edits *es, const struct pk_source *s, size_t off,
			const char *text, struct pk_error *err)
{
	bool no_newline = off == s->len && off && s->text[off - 1] != '\n';
	const char *eol = eol_at(s, no_newline || off == s->len ? off - !!off : off);
	struct pk_buf b = { 0 };
	int r = 0;

	/* a file without a final newline stays without one */
	if (no_newline)
		r = pk_buf_puts(&b, eol);
	if (!r)
		r = with_eol(&b, text, eol);
	if (!r && no_newline && b.len >= strlen(eol))
		b.data[b.len - strlen(eol)] = '\0';
	if (!r)
		r = add(es, off, 0, &b);
	else
		pk_buf_free(&b);
	return r ? pk_system(err, r, "edit", s->name) : 0;
}

int pk_edit_before_line(struct pk_edits *es, const struct pk_source *s, size_t token,
			const char *text, struct pk_error *err)
{
	size_t off = line_start(s, s->tok[token].off);

	if (!is_blank(s, off, s->tok[token].off))
		return shared(s, token, "before", err);
	return insert_lines(es, s, off, text, err);
}

/* the start of the line after the token; comments behind it belong to it */
static int after_token(const struct pk_source *s, size_t token, size_t *off, struct pk_error *err)
{
	size_t i = s->tok[token].off + s->tok[token].len;

	while (i < s->len && s->text[i] != '\n') {
		if (s->cls[i] == PK_COMMENT)
			while (i < s->len && s->cls[i] == PK_COMMENT)
				i++;
		else if (blank(s->text[i]))
			i++;
		else
			return shared(s, token, "after", err);
	}
	*off = i < s->len ? i + 1 : i;
	return 0;
}

int pk_edit_after_line(struct pk_edits *es, const struct pk_source *s, size_t token,
		       const char *text, struct pk_error *err)
{
	size_t off;
	int r = after_token(s, token, &off, err);

	return r ? r : insert_lines(es, s, off, text, err);
}

/* is the line that ends before off (a line start) a comment and nothing else? */
static bool comment_line(const struct pk_source *s, size_t off, size_t *start)
{
	bool any = false;

	if (!off)
		return false;
	*start = line_start(s, off - 1);
	for (size_t i = *start; i < off; i++) {
		if (s->cls[i] == PK_COMMENT)
			any = true;
		else if (!blank(s->text[i]) && s->text[i] != '\n')
			return false;
	}
	return any;
}

/* the comment right above a function is part of it, so the text goes above that */
int pk_edit_before_function(struct pk_edits *es, const struct pk_source *s,
			    const struct pk_function *f, const char *text, struct pk_error *err)
{
	size_t first = f->decl.first, off = line_start(s, s->tok[first].off), above;

	if (!is_blank(s, off, s->tok[first].off))
		return shared(s, first, "before", err);
	while (comment_line(s, off, &above))
		off = above;
	/* the file may start with the comment's first line only half above */
	if (off && s->cls[off] == PK_COMMENT && s->cls[off - 1] == PK_COMMENT)
		return shared(s, first, "before", err);
	return insert_lines(es, s, off, text, err);
}

/*
 * First statement of a body: after the declarations and the blank line below them, with
 * a blank line between it and what follows.
 */
int pk_edit_first(struct pk_edits *es, const struct pk_source *s, const struct pk_function *f,
		  const char *text, struct pk_error *err)
{
	struct pk_buf b = { 0 };
	size_t last, off, next;
	int r;

	r = pk_last_declaration(s, f, &last, err);
	if (!r)
		r = after_token(s, last, &off, err);
	if (r)
		return r;
	if (off > s->tok[f->close].off || line_start(s, s->tok[f->close].off) < off)
		return shared(s, last, "after", err);
	next = line_end(s, off);
	if (is_blank(s, off, next))
		off = next;
	else if (last != f->open)
		r = pk_buf_puts(&b, "\n");
	if (!r)
		r = pk_buf_puts(&b, text);
	if (!r && line_start(s, s->tok[f->close].off) > off)
		r = pk_buf_puts(&b, "\n");
	r = r ? pk_system(err, r, "edit", s->name) : insert_lines(es, s, off, b.data, err);
	pk_buf_free(&b);
	return r;
}

int pk_edit_replace(struct pk_edits *es, const struct pk_source *s, const struct pk_span *span,
		    const char *text, struct pk_error *err)
{
	size_t off = s->tok[span->first].off;
	const struct pk_token *last = &s->tok[span->end - 1];
	struct pk_buf b = { 0 };
	int r = with_eol(&b, text, eol_at(s, off));

	if (!r)
		r = add(es, off, last->off + last->len - off, &b);
	else
		pk_buf_free(&b);
	return r ? pk_system(err, r, "edit", s->name) : 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct pk_edit *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int pk_render(struct pk_edits *es, const struct pk_source *s, struct pk_buf *out,
	      struct pk_error *err)
{
	size_t pos = 0;
	int r = 0;

	if (es->n)
		qsort(es->e, es->n, sizeof(*es->e), by_offset);
	for (size_t i = 0; i < es->n; i++) {
		const struct pk_edit *e = &es->e[i];

		if (e->off < pos) {
			pk_buf_free(out);
			return pk_refuse(err, PK_E108_EDITS_OVERLAP,
					 "%s:%u: two edits change the same bytes", s->name,
					 pk_line_of(s, e->off));
		}
		r = r ? r : pk_buf_add(out, s->text + pos, e->off - pos);
		r = r ? r : pk_buf_puts(out, e->text);
		pos = e->off + e->len;
	}
	r = r ? r : pk_buf_add(out, s->text + pos, s->len - pos);
	if (r) {
		pk_buf_free(out);
		return pk_system(err, r, "edit", s->name);
	}
	return 0;
}
