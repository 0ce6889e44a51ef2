// SPDX-License-Identifier: MIT
/* modprobe.c - the driver's options in modprobe.d, and which release they are for. */
#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gdspatch.h"
#include "modprobe.h"

/* "options nvidia ..." or Debian's "options nvidia-current-open ...": the rest of the line */
static const char *driver_options(char *line)
{
	char *save = NULL, *word = strtok_r(line, " \t\n", &save);

	if (!word || strcmp(word, "options"))
		return NULL;
	word = strtok_r(NULL, " \t\n", &save);
	if (!word || (strcmp(word, "nvidia") && strncmp(word, "nvidia-current", 14) &&
		      strncmp(word, "nvidia_current", 14)))
		return NULL;
	return save;
}

static int file_options(const char *path, const char *file,
			int (*each)(void *arg, const struct mp_option *o), void *arg)
{
	char *line = NULL;
	unsigned int n = 0;
	size_t cap = 0;
	int r = 0;
	FILE *f = fopen(path, "re");

	while (f && !r && getline(&line, &cap, f) >= 0) {
		struct mp_option o = { file, ++n, !strcmp(file, MP_FILE), driver_options(line) };

		if (o.text && *o.text)
			r = each(arg, &o);
	}
	free(line);
	if (f)
		fclose(f);
	return r;
}

int mp_options(const char *root, int (*each)(void *arg, const struct mp_option *o), void *arg)
{
	static const char *const dirs[] = {
		"etc/modprobe.d",     "run/modprobe.d", "usr/local/lib/modprobe.d",
		"usr/lib/modprobe.d", "lib/modprobe.d",
	};
	int r = 0;

	for (size_t d = 0; d < sizeof(dirs) / sizeof(*dirs) && !r; d++) {
		char pattern[600];
		glob_t g;

		snprintf(pattern, sizeof(pattern), "%s/%s/*.conf", root, dirs[d]);
		if (glob(pattern, 0, NULL, &g))
			continue;
		for (size_t i = 0; i < g.gl_pathc && !r; i++)
			r = file_options(g.gl_pathv[i], g.gl_pathv[i] + strlen(root) + 1, each,
					 arg);
		globfree(&g);
	}
	return r;
}

/* one more word, unless it is there; false: no room */
static bool add_word(char *out, size_t len, const char *word)
{
	size_t n = strlen(out), w = strlen(word);
	const char *p = out;

	while ((p = strstr(p, word))) {
		if ((p == out || p[-1] == ' ') && (!p[w] || p[w] == ' '))
			return true;
		p += w;
	}
	return (size_t)snprintf(out + n, len - n, "%s%s", n ? " " : "", word) < len - n;
}

int mp_installed(const char *root, char *out, size_t len)
{
	/* the part after the last separator of the second column is the release */
	static const struct {
		const char *pattern;
		char before;
	} places[] = {
		{ "usr/src/nvidia*-[0-9]*.[0-9]*/dkms.conf", '-' },
		{ "usr/lib/*-linux-gnu/libcuda.so.[0-9]*.[0-9]*", 0 },
		{ "usr/lib/*-linux-gnu/nvidia/current/libcuda.so.[0-9]*.[0-9]*", 0 },
		{ "usr/lib64/libcuda.so.[0-9]*.[0-9]*", 0 },
		{ "usr/lib/libcuda.so.[0-9]*.[0-9]*", 0 },
	};
	int n = 0;

	*out = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char pattern[600];
		glob_t g;

		snprintf(pattern, sizeof(pattern), "%s/%s", root, places[i].pattern);
		if (glob(pattern, 0, NULL, &g))
			continue;
		for (size_t k = 0; k < g.gl_pathc; k++) {
			char *p = g.gl_pathv[k], *v;

			if (places[i].before) {
				*strrchr(p, '/') = '\0';
				v = strrchr(p, places[i].before) + 1;
			} else {
				v = strstr(strrchr(p, '/'), ".so.") + 4;
			}
			/* "1.1" of old drivers is a link, "555.58.02" a release */
			if (strspn(v, "0123456789.") == strlen(v) && strcspn(v, ".") == 3)
				add_word(out, len, v);
		}
		globfree(&g);
	}
	for (const char *p = out; *p; p++)
		n += p == out || p[-1] == ' ';
	return n;
}

/* the stem of "nvidia-current-open.ko.xz" if that is the driver itself and none of its helpers */
static bool driver_stem(const char *name, char stem[64])
{
	const char *ko = strstr(name, ".ko");

	if (!ko || (size_t)(ko - name) >= 64)
		return false;
	snprintf(stem, 64, "%.*s", (int)(ko - name), name);
	return !strcmp(stem, "nvidia") || !strcmp(stem, "nvidia-current") ||
	       !strcmp(stem, "nvidia-current-open");
}

int mp_module_names(const char *root, char names[MP_NAMES][64])
{
	char path[512], *const paths[] = { path, NULL };
	FTSENT *e;
	int n = 0;
	FTS *fts;

	snprintf(path, sizeof(path), "%s/lib/modules", root);
	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	while (fts && (e = fts_read(fts))) {
		char stem[64];
		int i;

		/* the kernel's own modules are thousands; the build link leads out */
		if (e->fts_info == FTS_D && e->fts_level == 2 && !strcmp(e->fts_name, "source"))
			fts_set(fts, e, FTS_SKIP);
		if (e->fts_info != FTS_F || !driver_stem(e->fts_name, stem))
			continue;
		for (i = 0; i < n && strcmp(names[i], stem); i++)
			;
		if (i == n && n < MP_NAMES)
			strcpy(names[n++], stem);
	}
	if (fts)
		fts_close(fts);
	if (!n)
		strcpy(names[n++], "nvidia");
	return n;
}

bool mp_key(const char *text, const char *key, unsigned long *value)
{
	size_t n = strlen(key);

	for (const char *p = text; *p; p++) {
		char *end;

		if (strncasecmp(p, key, n) || p[n] != '=' ||
		    (p > text && !strchr(";\"'= \t", p[-1])))
			continue;
		*value = strtoul(p + n + 1, &end, 0);
		return end > p + n + 1;
	}
	return false;
}
