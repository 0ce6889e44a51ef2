// SPDX-License-Identifier: MIT
/*
 * kernel.c - what the kernel says of itself in /proc: labelled lines, symbols; and modes of files.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "facts.h"
#include "read.h"

struct label {
	const char *name;
	char *buf;
	size_t len;
	int ret;
};

static int label_line(void *arg, char *line)
{
	struct label *l = arg;
	size_t n = strlen(l->name), end;

	if (strncmp(line, l->name, n))
		return 0;
	line += n;
	line += strspn(line, " \t");
	if (*line++ != ':')
		return 0;
	line += strspn(line, " \t");
	end = strlen(line);
	while (end && strchr(" \t", line[end - 1]))
		line[--end] = '\0';
	if (end >= l->len) {
		l->ret = -EOVERFLOW;
		return 1;
	}
	memcpy(l->buf, line, end + 1);
	l->ret = (int)end;
	return 1;
}

int facts_label(const char *root, const char *path, const char *label, char *buf, size_t len)
{
	struct label l = { label, buf, len, -ENODATA };
	int r = facts_lines(root, path, label_line, &l);

	return r < 0 ? r : l.ret;
}

struct symbols {
	const char *const *names;
	unsigned int n;
	int64_t found;
};

/* "ffffffff81000000 T name", perhaps a tab and "[module]" */
static int symbol_line(void *arg, char *line)
{
	struct symbols *s = arg;
	char *name = strchr(line, ' ');
	unsigned int i;

	name = name ? strchr(name + 1, ' ') : NULL;
	if (!name)
		return 0;
	name++;
	name[strcspn(name, " \t")] = '\0';
	for (i = 0; i < s->n; i++)
		if (!strcmp(name, s->names[i]))
			s->found |= 1LL << i;
	return 0;
}

int64_t facts_symbols(const char *root, const char *const *names, unsigned int n)
{
	struct symbols s = { names, n, 0 };
	int r = facts_lines(root, "proc/kallsyms", symbol_line, &s);

	return r < 0 ? r : s.found;
}

int facts_mode(const char *root, const char *path)
{
	char full[PATH_MAX];
	struct stat st;
	int r = facts_join(root, path, full, sizeof(full));

	if (r)
		return r;
	if (facts_seen)
		facts_seen(root, path, FACTS_LOOK_THERE);
	return stat(full, &st) ? -errno : (int)(st.st_mode & 07777);
}
