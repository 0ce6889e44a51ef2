// SPDX-License-Identifier: MIT
/*
 * lexer.c - what each byte of a source is, and its tokens.
 *
 * Not a compiler: no macros are expanded, both arms of an #ifdef are live. Only `#if 0`
 * and the else-part of `#if 1` are dead. Braces are counted per arm: at #else the depth
 * goes back to that of the #if. Those of `extern "C" { }` around a file's text do not count:
 * they stand in two different arms, and what is between them is at file level.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "patchkit.h"

#define COND_MAX 64		/* nested #if levels */

struct lexer {
	struct pk_source *s;
	struct pk_error *err;
	size_t pos, cap;
	unsigned int line;
	int depth;
	int linkage;		/* open `extern "C" {` */
	bool line_start;	/* only white space (or comments) so far on this line */
	struct {
		int depth;	/* at the #if */
		bool zero, one;	/* #if 0, #if 1 and still in its first arm */
	} cond[COND_MAX];
	int ncond;
};

static bool ident_start(int c)
{
	return isalpha(c) || c == '_' || c == '$';
}

static bool ident_char(int c)
{
	return isalnum(c) || c == '_' || c == '$';
}

static int at(const struct lexer *lx, size_t i)
{
	return i < lx->s->len ? (unsigned char)lx->s->text[i] : 0;
}

/* length of a backslash-newline (or with CR) at i, 0 if there is none */
static size_t splice(const struct lexer *lx, size_t i)
{
	if (at(lx, i) != '\\')
		return 0;
	if (at(lx, i + 1) == '\n')
		return 2;
	return at(lx, i + 1) == '\r' && at(lx, i + 2) == '\n' ? 3 : 0;
}

static void mark(struct lexer *lx, size_t from, size_t end, enum pk_class c)
{
	for (size_t i = from; i < end; i++) {
		lx->s->cls[i] = c;
		if (lx->s->text[i] == '\n')
			lx->line++;
	}
}

static int add_token(struct lexer *lx, size_t off, size_t end, enum pk_kind kind, unsigned int line)
{
	struct pk_source *s = lx->s;

	if (s->ntok == lx->cap) {
		size_t cap = lx->cap ? lx->cap * 2 : 1024;
		struct pk_token *t = realloc(s->tok, cap * sizeof(*t));

		if (!t)
			return -ENOMEM;
		s->tok = t;
		lx->cap = cap;
	}
	s->tok[s->ntok++] = (struct pk_token) {
		.off = off,
		.len = end - off,
		.kind = kind,
		.line = line,
		.depth = lx->depth,
		.cond = lx->ncond,
	};
	return 0;
}

/* end of the comment that starts at i; 0: there is none; SIZE_MAX: it does not end */
static size_t comment_end(const struct lexer *lx, size_t i)
{
	if (at(lx, i) != '/')
		return 0;
	if (at(lx, i + 1) == '/') {
		for (i += 2; i < lx->s->len && at(lx, i) != '\n';)
			i += splice(lx, i) ? splice(lx, i) : 1;
		if (i && i < lx->s->len && at(lx, i - 1) == '\r')
			i--;
		return i;
	}
	if (at(lx, i + 1) != '*')
		return 0;
	for (i += 2; i + 1 < lx->s->len; i++)
		if (at(lx, i) == '*' && at(lx, i + 1) == '/')
			return i + 2;
	return SIZE_MAX;
}

/* end of a string or character constant; 0 if the line ends first */
static size_t quote_end(const struct lexer *lx, size_t i)
{
	int q = at(lx, i++);

	while (i < lx->s->len) {
		size_t n = splice(lx, i);

		if (n)
			i += n;
		else if (at(lx, i) == '\\')
			i += 2;
		else if (at(lx, i) == '\n')
			return 0;
		else if (at(lx, i++) == q)
			return i;
	}
	return 0;
}

static int bad(struct lexer *lx, const char *what)
{
	return pk_refuse(lx->err, PK_E102_NOT_UNDERSTOOD, "%s:%u: %s", lx->s->name, lx->line, what);
}

/* the end of a preprocessor line: comments and continuations belong to it */
static int directive_end(struct lexer *lx, size_t *end)
{
	size_t i = lx->pos, n;

	while (i < lx->s->len && at(lx, i) != '\n') {
		if ((n = splice(lx, i))) {
			i += n;
			continue;
		}
		n = comment_end(lx, i);
		if (n == SIZE_MAX)
			return bad(lx, "this comment does not end");
		if (n) {
			i = n;
			continue;
		}
		/* an apostrophe in #error prose is no quote */
		if (at(lx, i) == '"' && (n = quote_end(lx, i))) {
			i = n;
			continue;
		}
		i++;
	}
	if (i > lx->pos && i < lx->s->len && at(lx, i - 1) == '\r')
		i--;
	*end = i;
	return 0;
}

/* the word after '#', and where its operand starts */
static size_t directive_word(const struct lexer *lx, size_t i, char word[16])
{
	size_t n = 0;

	for (i++; at(lx, i) == ' ' || at(lx, i) == '\t'; i++)
		;
	while (ident_char(at(lx, i)) && n < 15)
		word[n++] = (char)at(lx, i++);
	word[n] = '\0';
	while (at(lx, i) == ' ' || at(lx, i) == '\t')
		i++;
	return i;
}

/* Skip dead code up to the directive that ends it: its '#' becomes the position. */
static int skip_dead(struct lexer *lx)
{
	size_t from = lx->pos, n;
	bool start = false;	/* the position is in the rest of the #if line */
	int level = 0;
	char word[16];

	while (lx->pos < lx->s->len) {
		int c = at(lx, lx->pos);

		n = comment_end(lx, lx->pos);
		if (n == SIZE_MAX)
			return bad(lx, "this comment does not end");
		if (n) {
			lx->pos = n;
			continue;
		}
		if (c == '#' && start) {
			directive_word(lx, lx->pos, word);
			if (!strncmp(word, "if", 2))
				level++;
			else if (!level && (!strcmp(word, "else") || !strcmp(word, "elif") ||
					    !strcmp(word, "endif")))
				break;
			else if (!strcmp(word, "endif"))
				level--;
		}
		if ((c == '"' || c == '\'') && (n = quote_end(lx, lx->pos))) {
			lx->pos = n;
			start = false;
			continue;
		}
		if (c == '\n')
			start = true;
		else if (!isspace(c))
			start = false;
		lx->pos++;
	}
	mark(lx, from, lx->pos, PK_DEAD);
	lx->line_start = true;
	return 0;
}

static int lex_directive(struct lexer *lx)
{
	unsigned int line = lx->line;
	bool dead = false;
	size_t end = lx->pos, op, oplen;
	char word[16];
	int r;

	r = directive_end(lx, &end);
	if (r)
		return r;
	op = directive_word(lx, lx->pos, word);
	for (oplen = 0; op + oplen < end && ident_char(at(lx, op + oplen)); oplen++)
		;
	if (!strcmp(word, "if") || !strcmp(word, "ifdef") || !strcmp(word, "ifndef")) {
		bool plain = !strcmp(word, "if") && oplen == 1;

		if (lx->ncond == COND_MAX)
			return bad(lx, "too many nested #if");
		lx->cond[lx->ncond].depth = lx->depth;
		lx->cond[lx->ncond].zero = dead = plain && at(lx, op) == '0';
		lx->cond[lx->ncond].one = plain && at(lx, op) == '1';
		lx->ncond++;
	} else if (!strcmp(word, "else") || !strcmp(word, "elif")) {
		if (!lx->ncond)
			return bad(lx, "#else without #if");
		lx->depth = lx->cond[lx->ncond - 1].depth;
		dead = lx->cond[lx->ncond - 1].one;
	} else if (!strcmp(word, "endif")) {
		if (!lx->ncond)
			return bad(lx, "#endif without #if");
		lx->ncond--;
	}
	r = add_token(lx, lx->pos, end, PK_T_DIRECTIVE, line);
	mark(lx, lx->pos, end, PK_DIRECTIVE);
	lx->pos = end;
	return r ? r : dead ? skip_dead(lx) : 0;
}

static size_t punct_len(const struct lexer *lx)
{
	static const char *const ops[] = {
		"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&",
		"||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##",
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		size_t n = strlen(ops[i]);

		if (lx->s->len - lx->pos >= n && !memcmp(lx->s->text + lx->pos, ops[i], n))
			return n;
	}
	return 1;
}

/* is the last token the '{' of a linkage specification: at file level, after `extern "C"`? */
static bool opens_linkage(const struct lexer *lx)
{
	const struct pk_source *s = lx->s;

	return !lx->depth && s->ntok > 2 && s->tok[s->ntok - 2].kind == PK_T_STRING &&
	       pk_token_is(s, s->ntok - 3, "extern");
}

/* A '{' that became a token, a '}' that will be one; false: nothing opened it. */
static bool count_brace(struct lexer *lx, int c)
{
	if (c == '{' && opens_linkage(lx))
		lx->linkage++;
	else if (c == '{')
		lx->depth++;
	else if (!lx->depth && lx->linkage)
		lx->linkage--;
	else if (--lx->depth < 0 && lx->s->lang != PK_LANG_FRAGMENT)
		return false;
	return true;
}

static int lex_code(struct lexer *lx)
{
	enum pk_kind kind = PK_T_PUNCT;
	enum pk_class cls = PK_CODE;
	unsigned int line = lx->line;
	size_t end = lx->pos;
	int r, c = at(lx, end);

	if (ident_start(c)) {
		kind = PK_T_IDENT;
		while (ident_char(at(lx, end)))
			end++;
	} else if (isdigit(c) || (c == '.' && isdigit(at(lx, end + 1)))) {
		kind = PK_T_NUMBER;
		for (end++; ident_char(at(lx, end)) || at(lx, end) == '.' ||
			    ((at(lx, end) == '+' || at(lx, end) == '-') &&
			     strchr("eEpP", at(lx, end - 1)) && at(lx, lx->pos + 1) != 'x');)
			end++;
	} else if (c == '"' || c == '\'') {
		kind = c == '"' ? PK_T_STRING : PK_T_CHAR;
		cls = c == '"' ? PK_STRING : PK_CHAR;
		end = quote_end(lx, end);
		if (!end)
			return bad(lx, "this string or character constant does not end");
	} else {
		end += punct_len(lx);
		if (c == '}' && !count_brace(lx, c))
			return bad(lx, "'}' without '{'");
	}
	r = add_token(lx, lx->pos, end, kind, line);
	if (c == '{' && kind == PK_T_PUNCT)
		count_brace(lx, c);
	mark(lx, lx->pos, end, cls);
	lx->pos = end;
	lx->line_start = false;
	return r;
}

static int lex_c(struct lexer *lx)
{
	int r = 0;

	while (!r && lx->pos < lx->s->len) {
		int c = at(lx, lx->pos);
		size_t n = splice(lx, lx->pos);

		if (n) {
			mark(lx, lx->pos, lx->pos + n, PK_SPLICE);
			lx->pos += n;
			continue;
		}
		n = comment_end(lx, lx->pos);
		if (n == SIZE_MAX)
			return bad(lx, "this comment does not end");
		if (n) {
			mark(lx, lx->pos, n, PK_COMMENT);
			lx->pos = n;
		} else if (isspace(c)) {
			lx->line_start |= c == '\n';
			mark(lx, lx->pos, lx->pos + 1, PK_CODE);
			lx->pos++;
		} else if (c == '#' && lx->line_start) {
			r = lex_directive(lx);
		} else if (!c) {
			return bad(lx, "a NUL byte: not a text file");
		} else {
			r = lex_code(lx);
		}
	}
	if (lx->s->lang == PK_LANG_FRAGMENT)
		return r;
	if (!r && lx->ncond)
		return bad(lx, "#if without #endif");
	if (!r && (lx->depth || lx->linkage))
		return bad(lx, "'{' without '}'");
	return r;
}

static int lex_make(struct lexer *lx)
{
	int r = 0;

	while (!r && lx->pos < lx->s->len) {
		size_t end = lx->pos, n = splice(lx, end);
		int c = at(lx, end);

		if (n) {
			mark(lx, end, end + n, PK_SPLICE);
			lx->pos += n;
		} else if (c == '#') {
			while (end < lx->s->len && at(lx, end) != '\n')
				end += splice(lx, end) ? splice(lx, end) : 1;
			mark(lx, lx->pos, end, PK_COMMENT);
			lx->pos = end;
		} else if (isspace(c)) {
			mark(lx, end, end + 1, PK_CODE);
			lx->pos++;
		} else if (!c) {
			return bad(lx, "a NUL byte: not a text file");
		} else {
			while (at(lx, end) && !isspace(at(lx, end)) && !splice(lx, end) &&
			       at(lx, end) != '#')
				end++;
			r = add_token(lx, lx->pos, end, PK_T_IDENT, lx->line);
			mark(lx, lx->pos, end, PK_CODE);
			lx->pos = end;
		}
	}
	return r;
}

int pk_lex(struct pk_source *s, const char *name, enum pk_lang lang, const char *text, size_t len,
	   struct pk_error *err)
{
	struct lexer lx = { .s = s, .err = err, .line = 1, .line_start = true };
	int r = -ENOMEM;

	*s = (struct pk_source) { .lang = lang, .len = len };
	s->name = strdup(name);
	s->text = malloc(len + 1);
	s->cls = calloc(1, len + 1);
	if (s->name && s->text && s->cls) {
		memcpy(s->text, text, len);
		s->text[len] = '\0';
		r = lang == PK_LANG_MAKE ? lex_make(&lx) : lex_c(&lx);
	}
	if (r) {
		if (r == -ENOMEM)
			pk_system(err, r, "read", name);
		pk_source_free(s);
	}
	return r;
}

void pk_source_free(struct pk_source *s)
{
	free(s->name);
	free(s->text);
	free(s->cls);
	free(s->tok);
	*s = (struct pk_source) { 0 };
}

char *pk_mask(const struct pk_source *s)
{
	char *m = malloc(s->len + 1);

	if (!m)
		return NULL;
	for (size_t i = 0; i < s->len; i++) {
		bool keep = s->cls[i] == PK_CODE || s->text[i] == '\n' || s->text[i] == '\r';

		m[i] = keep ? s->text[i] : ' ';
	}
	m[s->len] = '\0';
	return m;
}

bool pk_token_is(const struct pk_source *s, size_t i, const char *text)
{
	size_t n = strlen(text);

	return i < s->ntok && s->tok[i].len == n && !memcmp(s->text + s->tok[i].off, text, n);
}

unsigned int pk_line_of(const struct pk_source *s, size_t off)
{
	unsigned int line = 1;

	for (size_t i = 0; i < off && i < s->len; i++)
		line += s->text[i] == '\n';
	return line;
}
