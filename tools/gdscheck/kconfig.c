// SPDX-License-Identifier: MIT
/*
 * kconfig.c - what the running kernel was built with, and what it has logged.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "gdscheck.h"
#include "read.h"

struct option {
	const char *name;
	char value;
};

/* "CONFIG_X=y", or "# CONFIG_X is not set" */
static int option_line(void *arg, char *line)
{
	struct option *o = arg;
	size_t n = strlen(o->name);

	if (!strncmp(line, "# ", 2) && !strncmp(line + 2, o->name, n) && line[2 + n] == ' ')
		o->value = 'n';
	else if (!strncmp(line, o->name, n) && line[n] == '=')
		o->value = line[n + 1];
	return o->value;
}

/* The compressed copy that a kernel may carry */
static void packed(const char *root, struct option *o)
{
	char full[PATH_MAX], line[1024];
	gzFile f;

	if (facts_join(root, "proc/config.gz", full, sizeof(full)))
		return;
	if (facts_seen)
		facts_seen(root, "proc/config.gz", FACTS_LOOK_FILE);
	f = gzopen(full, "re");
	if (!f)
		return;
	while (!o->value && gzgets(f, line, sizeof(line)))
		option_line(o, line);
	/* an option whose menu is shut is not named at all */
	if (!o->value && gzeof(f))
		o->value = 'n';
	gzclose(f);
}

char gc_kconfig(const struct gc_machine *m, const char *option, char *file, size_t len)
{
	static const char *const before[] = { "boot/config-", "lib/modules/" };
	static const char *const after[] = { "", "/config" };
	struct option o = { .name = option };
	size_t i;

	for (i = 0; i < 2 && m->release[0]; i++) {
		snprintf(file, len, "%s%s%s", before[i], m->release, after[i]);
		if (facts_lines(m->root, file, option_line, &o) >= 0)
			return o.value ? o.value : 'n';
	}
	snprintf(file, len, "proc/config.gz");
	packed(m->root, &o);
	return o.value;
}

struct grep {
	const char *const *words;	/* NULL ends them */
	char *line;
	size_t len;
	bool found;
};

static int grep_line(void *arg, char *line)
{
	struct grep *g = arg;
	const char *text = strchr(line, ';');
	size_t i;

	text = text ? text + 1 : line;	/* /dev/kmsg: numbers, then the text */
	for (i = 0; g->words[i]; i++)
		if (!strstr(text, g->words[i]))
			return 0;
	snprintf(g->line, g->len, "%s", text);
	g->found = true;
	return 1;
}

int gc_kmsg(const struct gc_machine *m, const char *const *words, char *line, size_t len)
{
	struct grep g = { words, line, len, false };
	int r = facts_lines(m->root, "dev/kmsg", grep_line, &g);

	return r < 0 ? r : g.found;
}
