// SPDX-License-Identifier: MIT
/*
 * config_scan.c - the lines of the keys of a JSON text.
 *
 * json-c keeps no lines and takes the last of two equal keys without a word. This walks
 * over the same text, comments included, and notes each key of each object.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config_scan.h"

struct level {
	bool object;		/* else a list */
	unsigned int members;	/* of a list: objects and lists so far */
	uint64_t hash;
	size_t path_len;	/* of the path of the object itself */
};

struct walk {
	struct config_scan *s;
	const char *text;
	size_t len, at;
	unsigned int line;

	struct level level[CONFIG_SCAN_DEPTH];
	unsigned int depth;
	uint64_t hash;		/* of the last key */
	bool key_next;		/* a string here is a key */

	char path[CONFIG_SCAN_NAME];
	config_scan_twice_fn *twice;
	void *arg;
};

/* FNV-1a, 64 bits */
static uint64_t mix(uint64_t h, const char *p, size_t n)
{
	while (n--)
		h = (h ^ (unsigned char)*p++) * 0x100000001b3ull;
	return h;
}

uint64_t config_scan_hash(uint64_t parent, const char *name, size_t len)
{
	uint64_t n = len;
	uint64_t h = mix(0xcbf29ce484222325ull ^ parent, (const char *)&n, sizeof(n));

	return mix(h, name, len);
}

void config_scan_append(char *path, const char *name, size_t len)
{
	bool quote = !len || memchr(name, '.', len);
	size_t used = strlen(path), i;
	char c;

	if (used && used < CONFIG_SCAN_NAME - 1)
		path[used++] = '.';
	if (quote && used < CONFIG_SCAN_NAME - 1)
		path[used++] = '"';
	for (i = 0; i < len && used < CONFIG_SCAN_NAME - 1; i++) {
		c = name[i];
		path[used++] = (unsigned char)c < ' ' || c == 0x7f || c == '"' ? '?' : c;
	}
	if (quote && used < CONFIG_SCAN_NAME - 1)
		path[used++] = '"';
	path[used] = '\0';
}

unsigned int config_scan_line_at(const char *text, size_t len, size_t offset)
{
	unsigned int line = 1;
	size_t i;

	for (i = 0; i < offset && i < len; i++)
		line += text[i] == '\n';
	return line;
}

unsigned int config_scan_line(const struct config_scan *s, uint64_t hash)
{
	unsigned int i;

	for (i = s->keys; i > 0; i--)
		if (s->key[i - 1].hash == hash)
			return s->key[i - 1].line;
	return 0;
}

void config_scan_free(struct config_scan *s)
{
	free(s->key);
	*s = (struct config_scan){ 0 };
}

/* A comment or nothing; at its first byte. Moves past it. */
static bool comment(struct walk *w)
{
	const char *p = w->text + w->at;
	size_t left = w->len - w->at;
	bool block;

	if (left < 2 || p[0] != '/' || (p[1] != '/' && p[1] != '*'))
		return false;
	block = p[1] == '*';
	for (w->at += 2; w->at < w->len; w->at++) {
		if (w->text[w->at] == '\n') {
			if (!block)
				return true;	/* the newline is counted by the caller */
			w->line++;
		}
		if (block && w->text[w->at] == '/' && w->text[w->at - 1] == '*' &&
		    w->text + w->at > p + 2) {
			w->at++;
			return true;
		}
	}
	return true;
}

/* Notes a key. 0 or -errno */
static int note(struct walk *w, const char *name, size_t len)
{
	const struct level *top = &w->level[w->depth - 1];
	unsigned int before;

	w->path[top->path_len] = '\0';
	config_scan_append(w->path, name, len);
	w->hash = config_scan_hash(top->hash, name, len);
	before = config_scan_line(w->s, w->hash);
	if (before)
		w->twice(w->arg, w->path, w->line, before);
	if (w->s->keys == CONFIG_SCAN_KEYS)
		return -E2BIG;
	w->s->key[w->s->keys].hash = w->hash;
	w->s->key[w->s->keys++].line = w->line;
	return 0;
}

/* A key with escapes: json-c itself says what it reads. `raw` has the quotes. */
static int note_escaped(struct walk *w, const char *raw, size_t len)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *name;
	int ret = -ENOMEM;
	const char *text;

	if (!tok)
		return ret;
	name = json_tokener_parse_ex(tok, raw, (int)len);
	text = json_object_get_string(name);
	if (text)
		ret = note(w, text, strlen(text));	/* a name ends at a NUL in it */
	json_object_put(name);
	json_tokener_free(tok);
	return ret;
}

/* A string, at its quote; a key when the place is one. */
static int string(struct walk *w)
{
	const char *raw = w->text + w->at;
	const char quote = *raw;
	bool escaped = false, key = w->depth && w->key_next;
	unsigned int lines = 0;
	size_t n = 1;
	int ret = 0;

	while (n < w->len - w->at && raw[n] != quote) {
		if (raw[n] == '\\') {
			escaped = true;
			n++;
		}
		if (n < w->len - w->at)
			lines += raw[n++] == '\n';
	}
	if (n >= w->len - w->at)
		return -EBADMSG;
	n++;
	w->key_next = false;
	if (key)
		ret = escaped ? note_escaped(w, raw, n) : note(w, raw + 1, n - 2);
	w->at += n;
	w->line += lines;
	return ret;
}

static int open_level(struct walk *w, bool object)
{
	struct level *up = w->depth ? &w->level[w->depth - 1] : NULL;
	struct level *l;

	if (w->depth == CONFIG_SCAN_DEPTH)
		return -E2BIG;
	l = &w->level[w->depth++];
	l->object = object;
	l->members = 0;
	l->hash = up ? w->hash : 0;
	if (up && !up->object)	/* the members of a list hold keys of their own each */
		l->hash = up->hash + ++up->members * 0x9e3779b97f4a7c15ull;
	l->path_len = strlen(w->path);
	w->key_next = object;
	return 0;
}

/* One thing of the text that is no string and no comment */
static int punctuation(struct walk *w)
{
	const char c = w->text[w->at++];

	switch (c) {
	case '\n':
		w->line++;
		return 0;
	case '{':
	case '[':
		return open_level(w, c == '{');
	case '}':
	case ']':
		if (!w->depth)
			return -EBADMSG;
		w->path[w->level[--w->depth].path_len] = '\0';
		w->key_next = false;
		return 0;
	case ',':
		w->key_next = w->depth && w->level[w->depth - 1].object;
		return 0;
	default:
		return 0;
	}
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

static int run(struct walk *w)
{
	bool begun = false;
	int ret;

	while (w->at < w->len) {
		const char c = w->text[w->at];

		if (comment(w))
			continue;
		if (begun && !w->depth && !blank(c))
			return -EBADMSG;
		ret = c == '"' || c == '\'' ? string(w) : punctuation(w);
		if (ret)
			return ret;
		begun = begun || w->depth;
	}
	return w->depth ? -EBADMSG : 0;
}

int config_scan(struct config_scan *s, const char *text, size_t len, unsigned int *line,
		config_scan_twice_fn *twice, void *arg)
{
	struct walk w = { .s = s, .text = text, .len = len, .line = 1, .twice = twice, .arg = arg };
	int ret;

	*s = (struct config_scan){ 0 };
	s->key = calloc(CONFIG_SCAN_KEYS, sizeof(*s->key));
	if (!s->key)
		return -ENOMEM;
	ret = run(&w);
	*line = w.line;
	if (ret)
		config_scan_free(s);
	return ret;
}
