// SPDX-License-Identifier: MIT
/*
 * locate.c - places in a source, found by meaning.
 *
 * Everything here works on tokens. "The only" is checked, never assumed: a second match
 * is as much a refusal as none.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "patchkit.h"

#define NONE ((size_t)-1)

static bool is(const struct pk_source *s, size_t i, const char *text)
{
	return pk_token_is(s, i, text);
}

static bool same_text(const struct pk_source *a, size_t i, const struct pk_source *b, size_t j)
{
	const struct pk_token *x = &a->tok[i], *y = &b->tok[j];

	return x->len == y->len && !memcmp(a->text + x->off, b->text + y->off, x->len);
}

static int bracket(const struct pk_source *s, size_t i)
{
	if (s->tok[i].kind != PK_T_PUNCT || s->tok[i].len != 1)
		return 0;
	switch (s->text[s->tok[i].off]) {
	case '(': case '[': case '{':
		return 1;
	case ')': case ']': case '}':
		return -1;
	default:
		return 0;
	}
}

/* does one token of the pattern match one of the source? records captures */
static bool match_one(const struct pk_source *s, size_t i, const struct pk_source *p, size_t j,
		      struct pk_match *m)
{
	const char *pt = p->text + p->tok[j].off;

	if (p->tok[j].kind == PK_T_IDENT && *pt == '$' && p->tok[j].len == 2) {
		for (size_t k = 0; k < m->ncap; k++)
			if (m->cap_name[k] == pt[1])
				return same_text(s, i, s, m->cap_tok[k]);
		if (m->ncap == PK_CAPTURES || s->tok[i].kind == PK_T_DIRECTIVE)
			return false;
		m->cap_name[m->ncap] = pt[1];
		m->cap_tok[m->ncap++] = i;
		return true;
	}
	return s->tok[i].kind == p->tok[j].kind && same_text(s, i, p, j);
}

/*
 * Does the pattern match at token i, before end? Like a file name glob: when the rest of
 * the pattern fails, the latest `...` takes one token more.
 */
static bool match_at(const struct pk_source *s, size_t i, size_t end, const struct pk_source *p,
		     struct pk_match *m)
{
	size_t j = 0, star_j = NONE, star_i = 0, star_caps = 0;
	int nest = 0;		/* brackets opened by what the latest `...` took */

	m->ncap = 0;
	m->span.first = i;
	while (j < p->ntok) {
		if (p->tok[j].kind == PK_T_PUNCT && is(p, j, "...")) {
			star_j = ++j;
			star_i = i;
			star_caps = m->ncap;
			nest = 0;
			continue;
		}
		while (i < end && s->tok[i].kind == PK_T_DIRECTIVE &&
		       p->tok[j].kind != PK_T_DIRECTIVE)
			i++;
		if (i < end && (j != star_j || !nest) && match_one(s, i, p, j, m)) {
			i++;
			j++;
			continue;
		}
		if (star_j == NONE || star_i >= end)
			return false;
		/* one more for `...`: brackets go as a whole, a closing one of ours ends it */
		do {
			nest += bracket(s, star_i);
			if (nest < 0)
				return false;
			star_i++;
		} while (nest && star_i < end);
		if (nest)
			return false;
		i = star_i;
		j = star_j;
		m->ncap = star_caps;
	}
	m->span.end = i;
	return true;
}

long pk_count(const struct pk_source *s, const struct pk_span *in, const char *pattern,
	      struct pk_match *m, struct pk_error *err)
{
	struct pk_span all = { 0, s->ntok };
	struct pk_match mm;
	struct pk_source p;
	long n = 0;
	int r;

	r = pk_lex(&p, "pattern", s->lang == PK_LANG_MAKE ? PK_LANG_MAKE : PK_LANG_FRAGMENT,
		   pattern, strlen(pattern), err);
	if (r)
		return r;
	if (!in)
		in = &all;
	for (size_t i = in->first; p.ntok && i < in->end; i++) {
		if (s->tok[i].kind == PK_T_DIRECTIVE && p.tok[0].kind != PK_T_DIRECTIVE)
			continue;
		if (!match_at(s, i, in->end, &p, &mm))
			continue;
		/* words of a make file belong together only on one line */
		if (s->lang == PK_LANG_MAKE &&
		    s->tok[mm.span.end - 1].line != s->tok[mm.span.first].line)
			continue;
		if (!n++ && m)
			*m = mm;
	}
	pk_source_free(&p);
	return n;
}

static unsigned int span_line(const struct pk_source *s, const struct pk_span *in)
{
	if (!in || !s->ntok)
		return 1;
	return s->tok[in->first < s->ntok ? in->first : s->ntok - 1].line;
}

int pk_find(const struct pk_source *s, const struct pk_span *in, const char *pattern,
	    const char *what, struct pk_match *m, struct pk_error *err)
{
	long n = pk_count(s, in, pattern, m, err);

	if (n < 0)
		return (int)n;
	if (!n)
		return pk_refuse(err, PK_E103_ANCHOR_NOT_FOUND, "%s:%u: %s: expected `%s`, found none",
				 s->name, span_line(s, in), what, pattern);
	if (n > 1)
		return pk_refuse(err, PK_E104_ANCHOR_AMBIGUOUS,
				 "%s:%u: %s: expected `%s` once, found it %ld times", s->name,
				 s->tok[m->span.first].line, what, pattern, n);
	return 0;
}

/* the token after the bracket that matches the opening one at i; NONE if there is none */
static size_t after_mate(const struct pk_source *s, size_t i)
{
	int nest = 0;

	for (; i < s->ntok; i++) {
		nest += bracket(s, i);
		if (!nest)
			return i + 1;
	}
	return NONE;
}

/* the '}' of the '{' at open: the first of the same depth */
static size_t closing(const struct pk_source *s, size_t open)
{
	for (size_t i = open + 1; i < s->ntok; i++)
		if (s->tok[i].depth == s->tok[open].depth && is(s, i, "}"))
			return i;
	return NONE;
}

/* after the parameters: the '{' of a definition, annotations may come before; else NONE */
static size_t body_open(const struct pk_source *s, size_t i)
{
	while (i < s->ntok) {
		if (is(s, i, "{"))
			return i;
		if (s->tok[i].kind != PK_T_IDENT)
			return NONE;
		i++;
		if (is(s, i, "("))
			i = after_mate(s, i);
	}
	return NONE;
}

int pk_find_function(const struct pk_source *s, const char *name, struct pk_function *f,
		     struct pk_error *err)
{
	size_t found = 0, d;

	for (size_t i = 0; i + 1 < s->ntok; i++) {
		size_t end, open, close;

		if (s->tok[i].depth || s->tok[i].kind != PK_T_IDENT || !is(s, i, name) ||
		    !is(s, i + 1, "("))
			continue;
		end = after_mate(s, i + 1);
		if (end == NONE)
			continue;
		open = body_open(s, end);
		if (open == NONE || s->tok[open].depth)
			continue;
		close = closing(s, open);
		if (close == NONE || s->tok[close].cond != s->tok[open].cond)
			return pk_refuse(err, PK_E105_BODY_SHAPE,
					 "%s:%u: function %s: expected one body, found one that ends inside an #if",
					 s->name, s->tok[i].line, name);
		if (found++)
			return pk_refuse(err, PK_E104_ANCHOR_AMBIGUOUS,
					 "%s:%u: function %s: expected one definition, found another at line %u",
					 s->name, s->tok[f->open].line, name, s->tok[i].line);
		for (d = i; d > 0; d--)
			if (s->tok[d - 1].kind == PK_T_DIRECTIVE || is(s, d - 1, ";") ||
			    is(s, d - 1, "}") || is(s, d - 1, "{"))
				break;
		f->decl = (struct pk_span) { d, open };
		f->params = (struct pk_span) { i + 2, end - 1 };
		f->open = open;
		f->close = close;
		f->body = (struct pk_span) { open + 1, close };
	}
	if (!found)
		return pk_refuse(err, PK_E103_ANCHOR_NOT_FOUND,
				 "%s:1: expected the definition of function %s, found none", s->name,
				 name);
	return 0;
}

int pk_find_struct(const struct pk_source *s, const char *name, struct pk_span *body,
		   struct pk_error *err)
{
	size_t found = 0;

	for (size_t i = 0; i + 2 < s->ntok; i++) {
		size_t close;

		if (!is(s, i, "struct") || !is(s, i + 1, name) || !is(s, i + 2, "{"))
			continue;
		close = closing(s, i + 2);
		if (close == NONE)
			continue;
		if (found++)
			return pk_refuse(err, PK_E104_ANCHOR_AMBIGUOUS,
					 "%s:%u: struct %s: expected one definition, found another at line %u",
					 s->name, s->tok[body->first - 1].line, name,
					 s->tok[i].line);
		*body = (struct pk_span) { i + 3, close };
	}
	if (!found)
		return pk_refuse(err, PK_E103_ANCHOR_NOT_FOUND,
				 "%s:1: expected the definition of struct %s, found none", s->name,
				 name);
	return 0;
}

/* is this directive `#include operand`? */
static bool is_include(const struct pk_source *s, size_t i, const char *operand)
{
	const char *p = s->text + s->tok[i].off, *end = p + s->tok[i].len;
	size_t n = strlen(operand);

	for (p++; p < end && (*p == ' ' || *p == '\t'); p++)
		;
	if ((size_t)(end - p) < 7 || strncmp(p, "include", 7))
		return false;
	for (p += 7; p < end && (*p == ' ' || *p == '\t'); p++)
		;
	return (size_t)(end - p) >= n && !memcmp(p, operand, n) &&
	       (p + n == end || isspace((unsigned char)p[n]) || p[n] == '/');
}

int pk_find_include(const struct pk_source *s, const char *operand, size_t *token,
		    struct pk_error *err)
{
	size_t found = 0;

	for (size_t i = 0; i < s->ntok; i++) {
		if (s->tok[i].kind != PK_T_DIRECTIVE || !is_include(s, i, operand))
			continue;
		if (found++)
			return pk_refuse(err, PK_E104_ANCHOR_AMBIGUOUS,
					 "%s:%u: expected one #include %s, found another at line %u",
					 s->name, s->tok[*token].line, operand, s->tok[i].line);
		*token = i;
	}
	if (!found)
		return pk_refuse(err, PK_E103_ANCHOR_NOT_FOUND,
				 "%s:1: expected #include %s, found none", s->name, operand);
	return 0;
}

/* the operand of `#define NAME`, or NULL: another directive, another name */
static const char *define_of(const struct pk_source *s, size_t i, const char *name, size_t *len)
{
	const char *p = s->text + s->tok[i].off, *end = p + s->tok[i].len;
	size_t n = strlen(name);

	for (p++; p < end && (*p == ' ' || *p == '\t'); p++)
		;
	if ((size_t)(end - p) < 7 || strncmp(p, "define", 6))
		return NULL;
	for (p += 6; p < end && (*p == ' ' || *p == '\t'); p++)
		;
	if ((size_t)(end - p) < n || memcmp(p, name, n) ||
	    (p + n < end && (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '$')))
		return NULL;
	*len = end - p - n;
	return p + n;
}

int pk_find_define(const struct pk_source *s, const char *name, struct pk_buf *value,
		   struct pk_error *err)
{
	unsigned int found = 0;
	const char *text = NULL;
	struct pk_source v;
	size_t len = 0;
	int r;

	for (size_t i = 0; i < s->ntok; i++) {
		const char *p = NULL;
		size_t n;

		if (s->tok[i].kind == PK_T_DIRECTIVE)
			p = define_of(s, i, name, &n);
		if (!p)
			continue;
		if (found)
			return pk_refuse(err, PK_E104_ANCHOR_AMBIGUOUS,
					 "%s:%u: expected one #define %s, found another at line %u",
					 s->name, found, name, s->tok[i].line);
		found = s->tok[i].line;
		text = p;
		len = n;
	}
	if (!found)
		return pk_refuse(err, PK_E103_ANCHOR_NOT_FOUND,
				 "%s:1: expected #define %s, found none", s->name, name);
	r = pk_lex(&v, s->name, PK_LANG_FRAGMENT, text, len, err);
	if (r)
		return r;
	r = pk_buf_puts(value, "");
	for (size_t i = 0; i < v.ntok && !r; i++) {
		r = i ? pk_buf_puts(value, " ") : 0;
		r = r ? r : pk_buf_add(value, v.text + v.tok[i].off, v.tok[i].len);
	}
	pk_source_free(&v);
	return r ? pk_system(err, r, "read", s->name) : 0;
}

static bool one_of(const struct pk_source *s, size_t i, const char *const *words)
{
	for (; *words; words++)
		if (is(s, i, *words))
			return true;
	return false;
}

static bool ident_at(const struct pk_source *s, size_t i)
{
	return i < s->ntok && s->tok[i].kind == PK_T_IDENT;
}

/* does a declaration start at token i? Decided by form: there is no table of types. */
static bool declaration(const struct pk_source *s, size_t i)
{
	static const char *const statements[] = {
		"return", "goto", "if", "for", "while", "do", "switch", "case", "default",
		"break", "continue", "else", "asm", "__asm__", "sizeof", NULL,
	};
	static const char *const types[] = {
		"static", "const", "volatile", "struct", "union", "enum", "unsigned", "signed",
		"int", "char", "long", "short", "void", "bool", "_Bool", "float", "double",
		"register", "auto", "extern", "typedef", "__auto_type", "typeof", "__typeof__",
		"__attribute__", "_Static_assert", NULL,
	};
	size_t j;

	if (!ident_at(s, i) || one_of(s, i, statements))
		return false;
	if (one_of(s, i, types))
		return true;
	if (is(s, i + 1, "("))
		return !strncmp(s->text + s->tok[i].off, "DECLARE_", 8) ||
		       !strncmp(s->text + s->tok[i].off, "DEFINE_", 7) || is(s, i, "LIST_HEAD");
	if (ident_at(s, i + 1))
		return true;
	for (j = i + 1; is(s, j, "*") || is(s, j, "const"); j++)
		;
	return j > i + 1 && ident_at(s, j) &&
	       (is(s, j + 1, "=") || is(s, j + 1, ";") || is(s, j + 1, ",") || is(s, j + 1, "["));
}

/* the ';' that ends the declaration at i */
static size_t declaration_end(const struct pk_source *s, size_t i, size_t end)
{
	int nest = 0;

	for (; i < end; i++) {
		nest += bracket(s, i);
		if (!nest && is(s, i, ";"))
			return i;
	}
	return NONE;
}

int pk_last_declaration(const struct pk_source *s, const struct pk_function *f, size_t *token,
			struct pk_error *err)
{
	int base = s->tok[f->open].cond, cond = base;
	bool open_arm = false;	/* a declaration stands in an #if that is still open */
	size_t i = f->body.first;

	*token = f->open;
	while (i < f->body.end) {
		if (s->tok[i].kind == PK_T_DIRECTIVE) {
			/* the count of a directive token is that after it */
			cond = s->tok[i].cond;
			if (open_arm && cond == base) {
				*token = i;
				open_arm = false;
			}
			i++;
			continue;
		}
		if (!declaration(s, i))
			break;
		i = declaration_end(s, i, f->body.end);
		if (i == NONE)
			break;
		if (cond == base)
			*token = i;
		else
			open_arm = true;
		i++;
	}
	if (i == NONE || open_arm)
		return pk_refuse(err, PK_E105_BODY_SHAPE,
				 "%s:%u: expected plain declarations at the start of the body, found an #if or a declaration that goes on into the code",
				 s->name, s->tok[f->open].line);
	return 0;
}

int pk_contains(const struct pk_source *s, const char *text, bool *yes, unsigned int *line,
		struct pk_error *err)
{
	struct pk_source p;
	size_t i, j;
	int r;

	*yes = false;
	r = pk_lex(&p, "inserted text",
		   s->lang == PK_LANG_MAKE ? PK_LANG_MAKE : PK_LANG_FRAGMENT, text, strlen(text),
		   err);
	if (r)
		return r;
	for (i = 0; p.ntok && i + p.ntok <= s->ntok && !*yes; i++) {
		for (j = 0; j < p.ntok && s->tok[i + j].kind == p.tok[j].kind &&
			    same_text(s, i + j, &p, j); j++)
			;
		if (j == p.ntok) {
			*yes = true;
			*line = s->tok[i].line;
		}
	}
	pk_source_free(&p);
	return 0;
}
