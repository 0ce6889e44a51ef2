// SPDX-License-Identifier: MIT
/*
 * diff.c - unified diffs in git's form, without index lines.
 *
 * Edits are few, and far apart for their size: at a difference the nearest point where
 * CONTEXT lines agree again is searched. The result is right for any two texts, and as
 * short as the edits for ours.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "patchkit.h"

#define CONTEXT 3

struct line {
	const char *p;
	size_t len;		/* with its '\n', if it has one */
};

struct lines {
	struct line *l;
	size_t n;
};

/* one changed range of lines: old [a, a+an) became new [b, b+bn) */
struct change {
	size_t a, an, b, bn;
};

static int split(struct lines *ls, const char *text, size_t len)
{
	size_t cap = 0;

	*ls = (struct lines) { 0 };
	while (len) {
		const char *nl = memchr(text, '\n', len);
		size_t n = nl ? (size_t)(nl - text) + 1 : len;

		if (ls->n == cap) {
			struct line *l;

			cap = cap ? cap * 2 : 256;
			l = realloc(ls->l, cap * sizeof(*l));
			if (!l)
				return -ENOMEM;
			ls->l = l;
		}
		ls->l[ls->n++] = (struct line) { text, n };
		text += n;
		len -= n;
	}
	return 0;
}

static bool same(const struct lines *x, size_t i, const struct lines *y, size_t j)
{
	return i < x->n && j < y->n && x->l[i].len == y->l[j].len &&
	       !memcmp(x->l[i].p, y->l[j].p, x->l[i].len);
}

/* do CONTEXT lines (or all that is left of both) agree from here on? */
static bool in_step(const struct lines *x, size_t i, const struct lines *y, size_t j)
{
	for (int n = 0; n < CONTEXT; n++, i++, j++) {
		if (i == x->n && j == y->n)
			return true;
		if (!same(x, i, y, j))
			return false;
	}
	return true;
}

/* The nearest point at or after (i, j) where the texts agree again. */
static void resync(const struct lines *x, size_t *i, const struct lines *y, size_t *j)
{
	size_t most = x->n - *i + y->n - *j;

	for (size_t d = 1; d <= most; d++)
		for (size_t di = 0; di <= d; di++) {
			if (*i + di > x->n || *j + d - di > y->n)
				continue;
			if (in_step(x, *i + di, y, *j + d - di)) {
				*i += di;
				*j += d - di;
				return;
			}
		}
	*i = x->n;
	*j = y->n;
}

static int put_lines(struct pk_buf *out, char sign, const struct lines *ls, size_t from, size_t n)
{
	int r = 0;

	for (size_t i = from; i < from + n && !r; i++) {
		r = pk_buf_add(out, &sign, 1);
		r = r ? r : pk_buf_add(out, ls->l[i].p, ls->l[i].len);
		if (!r && ls->l[i].p[ls->l[i].len - 1] != '\n')
			r = pk_buf_puts(out, "\n\\ No newline at end of file\n");
	}
	return r;
}

/* "12,3" as diff writes it: from 1; a range of none names the line before it */
static int put_range(struct pk_buf *out, char sign, size_t from, size_t n)
{
	if (n == 1)
		return pk_buf_printf(out, "%c%zu", sign, from + 1);
	return pk_buf_printf(out, "%c%zu,%zu", sign, n ? from + 1 : from, n);
}

/* changes c[0..n) in one hunk, with context */
static int put_hunk(struct pk_buf *out, const struct lines *x, const struct lines *y,
		    const struct change *c, size_t n)
{
	const struct change *z = &c[n - 1];
	size_t head = c->a < CONTEXT ? c->a : CONTEXT;
	size_t after = x->n - (z->a + z->an), tail = after < CONTEXT ? after : CONTEXT;
	size_t a = c->a - head, b = c->b - head;
	int r;

	r = pk_buf_puts(out, "@@ ");
	r = r ? r : put_range(out, '-', a, z->a + z->an + tail - a);
	r = r ? r : pk_buf_puts(out, " ");
	r = r ? r : put_range(out, '+', b, z->b + z->bn + tail - b);
	r = r ? r : pk_buf_puts(out, " @@\n");
	for (size_t i = 0; i < n && !r; i++) {
		r = put_lines(out, ' ', x, a, c[i].a - a);
		r = r ? r : put_lines(out, '-', x, c[i].a, c[i].an);
		r = r ? r : put_lines(out, '+', y, c[i].b, c[i].bn);
		a = c[i].a + c[i].an;
	}
	return r ? r : put_lines(out, ' ', x, a, tail);
}

static int put_hunks(struct pk_buf *out, const struct lines *x, const struct lines *y)
{
	struct change *c = NULL;
	size_t n = 0, i = 0, j = 0, first = 0;
	int r = 0;

	while (i < x->n || j < y->n) {
		struct change *p, now = { .a = i, .b = j };

		if (same(x, i, y, j)) {
			i++;
			j++;
			continue;
		}
		resync(x, &i, y, &j);
		now.an = i - now.a;
		now.bn = j - now.b;
		p = realloc(c, (n + 1) * sizeof(*c));
		if (!p) {
			free(c);
			return -ENOMEM;
		}
		c = p;
		c[n++] = now;
	}
	for (i = 1; i <= n && !r; i++)
		if (i == n || c[i].a - (c[i - 1].a + c[i - 1].an) > 2 * CONTEXT) {
			r = put_hunk(out, x, y, c + first, i - first);
			first = i;
		}
	free(c);
	return r;
}

int pk_diff(struct pk_buf *out, const char *path, const char *old, size_t old_len, const char *new,
	    size_t new_len)
{
	struct lines x, y = { 0 };
	int r;

	if (old && old_len == new_len && !memcmp(old, new, new_len))
		return 0;
	r = split(&x, old, old ? old_len : 0);
	r = r ? r : split(&y, new, new_len);
	r = r ? r : pk_buf_printf(out, "diff --git a/%s b/%s\n", path, path);
	if (!old)
		r = r ? r : pk_buf_printf(out, "new file mode 100644\n--- /dev/null\n+++ b/%s\n", path);
	else
		r = r ? r : pk_buf_printf(out, "--- a/%s\n+++ b/%s\n", path, path);
	r = r ? r : put_hunks(out, &x, &y);
	free(x.l);
	free(y.l);
	return r;
}
