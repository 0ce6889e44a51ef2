/* SPDX-License-Identifier: MIT */
/*
 * target.h - a file that is under its name as a whole or not at all: written under a temporary
 * name in the same folder, ".NAME.gdscp-XXXXXX", and renamed when it is complete and on the drive.
 *
 * Who writes it holds a lock (flock) on it. One without a lock is what a killed process left.
 */
#ifndef GDSCP_TARGET_H
#define GDSCP_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#define TARGET_WHY (2 * PATH_MAX)

struct target {
	char path[PATH_MAX];	/* as messages name it */
	char name[NAME_MAX + 1];	/* in the folder */
	char temporary[NAME_MAX + 1];	/* "": there is none */
	int dir, fd;		/* -1: not open */
	bool exists;
	struct stat old;	/* what is replaced, if `exists` */
};

/* What follows the last slash. */
const char *target_base_name(const char *path);

/*
 * Where `dst` is to be written: in a folder by the name of `src`; through a symbolic link, at the
 * place that it leads to. Looks, and changes nothing. force: it may replace a file. 0 or -errno and
 * why: it may not be, with what to do.
 */
int target_find(struct target *t, const char *src, const struct stat *src_st, const char *dst,
		bool force, char why[TARGET_WHY]);

/* The temporary file, open for reading and writing, O_DIRECT where that is to be had. */
int target_create(struct target *t, char why[TARGET_WHY]);

/*
 * Mode, then on the drive, then under its name. preserve: owner, mode and times of `src`. force:
 * what is there by now may be replaced. On -errno the temporary file is still there.
 */
int target_finish(struct target *t, const struct stat *src, mode_t umask, bool preserve, bool force,
		  char why[TARGET_WHY]);

/* Removes the temporary file, if there is one, and closes. */
void target_close(struct target *t);

/* For a handler of signals: the file that is being written goes. */
void target_drop_now(void);

/*
 * What killed processes of this user have left in the folder of `t` goes; `said` gets the name of
 * each. Once for a folder.
 */
void target_sweep(const struct target *t, void (*said)(const char *dir, const char *name));

#endif /* GDSCP_TARGET_H */
