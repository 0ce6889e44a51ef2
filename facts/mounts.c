// SPDX-License-Identifier: MIT
/*
 * mounts.c - the mount table: /proc/self/mountinfo.
 *
 * A line is: id parent MAJOR:MINOR root POINT OPTIONS [optional fields] - FS SOURCE OPTIONS
 * with blanks, tabs, newlines and backslashes of a field as \ooo.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "read.h"

#define OPTION_MAX 128		/* longer ones are paths ("lowerdir=..."): left out */

/* The next field of *line, ended by a NUL; NULL at its end. */
static char *field(char **line)
{
	char *start = *line + strspn(*line, " ");

	if (!*start)
		return NULL;
	*line = start + strcspn(start, " ");
	if (**line)
		*(*line)++ = '\0';
	return start;
}

static bool octal(const char *p)
{
	return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' &&
	       p[2] <= '7';
}

/* Copies a field without its escapes: 0 or -EOVERFLOW */
static int unescape(const char *from, char *to, size_t len)
{
	size_t n = 0;

	while (*from) {
		if (n + 1 >= len)
			return -EOVERFLOW;
		if (*from == '\\' && octal(from + 1)) {
			to[n++] = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
					 (from[3] - '0'));
			from += 4;
		} else {
			to[n++] = *from++;
		}
	}
	to[n] = '\0';
	return 0;
}

/*
 * Appends a list to the options. Each is there whole or not at all: half of one could pass
 * for another. Escapes stay, as a comma of a value is one.
 */
static int add_options(char *to, size_t len, const char *list)
{
	size_t used = strlen(to), n;

	for (; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (!n || n > OPTION_MAX)
			continue;
		if (used + n + 2 > len)
			return -EOVERFLOW;
		if (used)
			to[used++] = ',';
		memcpy(to + used, list, n);
		used += n;
		to[used] = '\0';
	}
	return 0;
}

/* Which line: the mount's own number, or if that is negative the device's. */
struct want {
	int64_t id;
	unsigned int major, minor;
};

static bool wanted(const struct want *w, int64_t id, unsigned int major, unsigned int minor)
{
	if (w->id >= 0)
		return id == w->id;
	return major == w->major && minor == w->minor;
}

/* 0: *out is filled; 1: it is another one's; -EPROTO, -EOVERFLOW */
static int parse(char *line, const struct want *want, struct facts_mount *out)
{
	char *f[6], *fs, *source, *super, *sep, *rest;
	unsigned int a, b, i;
	int end = 0, ret;
	int64_t id;

	for (i = 0; i < 6; i++) {
		f[i] = field(&line);
		if (!f[i])
			return -EPROTO;
	}
	id = strtoll(f[0], &rest, 10);
	if (*rest || sscanf(f[2], "%u:%u%n", &a, &b, &end) != 2 || f[2][end])
		return -EPROTO;
	if (want && !wanted(want, id, a, b))
		return 1;
	do
		sep = field(&line);
	while (sep && strcmp(sep, "-"));
	fs = field(&line);
	source = field(&line);
	super = field(&line);
	if (!fs || !source)
		return -EPROTO;
	if (!super) {	/* the kernel writes an empty source as nothing between two blanks */
		super = source;
		source = (char *)"";
	}
	memset(out, 0, sizeof(*out));
	out->major = a;
	out->minor = b;
	ret = unescape(fs, out->fs, sizeof(out->fs));
	if (!ret)
		ret = add_options(out->options, sizeof(out->options), f[5]);
	if (!ret)
		ret = add_options(out->options, sizeof(out->options), super);
	if (ret)
		return ret;
	/* these two are for messages: a long one is cut */
	unescape(source, out->source, sizeof(out->source));
	unescape(f[4], out->point, sizeof(out->point));
	return 0;
}

struct search {
	const struct want *want;
	struct facts_mount *out;
	int ret;	/* of the last line that is wanted */
	int (*each)(void *arg, const struct facts_mount *m);
	void *arg;
};

/* The last line of a device is what a look-up by path would find. */
static int of_wanted(void *arg, char *line)
{
	struct search *s = arg;
	int one = parse(line, s->want, s->out);

	if (one <= 0)
		s->ret = one;
	return one == -EPROTO ? one : 0;
}

static int find(const char *root, const struct want *want, struct facts_mount *out)
{
	struct search s = { .want = want, .out = out, .ret = -ENOENT };
	int ret;

	memset(out, 0, sizeof(*out));
	ret = facts_lines(root, "proc/self/mountinfo", of_wanted, &s);
	if (!ret)
		ret = s.ret;
	if (ret)
		memset(out, 0, sizeof(*out));
	return ret;
}

int facts_mount_find(const char *root, unsigned int major, unsigned int minor,
		     struct facts_mount *out)
{
	const struct want want = { .id = -1, .major = major, .minor = minor };

	return find(root, &want, out);
}

int facts_mount_by_id(const char *root, int64_t id, struct facts_mount *out)
{
	const struct want want = { .id = id };

	if (id < 0) {
		memset(out, 0, sizeof(*out));
		return -ENOENT;
	}
	return find(root, &want, out);
}

static int of_any(void *arg, char *line)
{
	struct search *s = arg;

	/* one that does not fit or is no line of the table leaves the others as they are */
	return parse(line, NULL, s->out) ? 0 : s->each(s->arg, s->out);
}

int facts_mounts(const char *root, int (*each)(void *arg, const struct facts_mount *m), void *arg)
{
	struct facts_mount m;
	struct search s = { .out = &m, .each = each, .arg = arg };

	return facts_lines(root, "proc/self/mountinfo", of_any, &s);
}

bool facts_option(const char *options, const char *key, const char *value)
{
	size_t k = strlen(key), n;

	for (; *options; options += n + (options[n] == ',')) {
		n = strcspn(options, ",");
		if (n < k || strncmp(options, key, k))
			continue;
		if (value ? options[k] == '=' && n == k + 1 + strlen(value) &&
				    !strncmp(options + k + 1, value, strlen(value)) :
			    n == k)
			return true;
	}
	return false;
}
