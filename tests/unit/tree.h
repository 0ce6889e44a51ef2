/* SPDX-License-Identifier: MIT */
/*
 * tree.h - trees of small files below a folder of a test: a made-up /proc and /sys. No shell: a
 * process with a sanitizer's memory forks slowly, and hundreds of tests make a tree each.
 */
#ifndef TREE_H
#define TREE_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes root/path into full, with all folders above it. False: that cannot be. */
static inline bool tree_path(char *full, size_t len, const char *root, const char *path)
{
	char *at;

	if ((size_t)snprintf(full, len, "%s/%s", root, path) >= len)
		return false;
	for (at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	return true;
}

static inline bool tree_put(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *f;
	bool ok;

	if (!tree_path(full, sizeof(full), root, path))
		return false;
	f = fopen(full, "w");
	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return !fclose(f) && ok;
}

/* root/path becomes a symbolic link, in place of one that there was. */
static inline bool tree_link(const char *root, const char *path, const char *to)
{
	char full[512];

	if (!tree_path(full, sizeof(full), root, path))
		return false;
	unlink(full);
	return !symlink(to, full);
}

static inline int tree_drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static inline bool tree_remove(const char *dir)
{
	return !nftw(dir, tree_drop, 16, FTW_DEPTH | FTW_PHYS);
}

#endif /* TREE_H */
