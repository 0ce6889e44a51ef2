/* SPDX-License-Identifier: MIT */
/* prove_look.h - what a machine tells beside the requests: counters and logs. */
#ifndef GDSCHECK_PROVE_LOOK_H
#define GDSCHECK_PROVE_LOOK_H

#include "prove.h"

#define LOOK_TEXT 16384

struct look {
	char stats[LOOK_TEXT];	/* of nvidia-fs, before */
	char own[LOOK_TEXT];	/* /proc/driver/nvidia-fs/opengds */
	int kmsg;		/* the kernel log from now on; below 0: -errno */
};

void prove_look_begin(struct look *look);

/* Fills counters with what changed, kernel with new lines that are known. Closes. */
void prove_look_end(struct look *look, struct prove_notes *counters, struct prove_notes *kernel);

/*
 * Errors and warnings of a child's log, under `name`; *why: the reason that its last line with
 * a reason names, as facts/reasons.c has it.
 */
void prove_look_log(const char *path, struct prove_notes *notes, const char *name,
		    struct prove_why *why);

/* What two texts of `stats` differ in: "Reads: ok +3", one note a line. */
void prove_look_changes(const char *before, const char *after, struct prove_notes *notes);

#endif /* GDSCHECK_PROVE_LOOK_H */
