/* SPDX-License-Identifier: MIT */
/*
 * cut.h - what `matrix_cut run` did to its files, step by step, and what of it must be there when
 * the power went: the notes that it leaves and `matrix_cut check` reads.
 *
 * A line of the notes is "STEP KIND FILE OFFSET LENGTH". It is written before the step is done;
 * behind it the drive gets a mark with the step's number. So up to the last mark of a cut all is
 * done, and the step behind it may be, as a whole or in part.
 */
#ifndef CUT_H
#define CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CUT_MAX (1u << 20)	/* bytes, the most that a file has */

enum cut_kind { CUT_WRITE, CUT_TRUNCATE, CUT_ALLOC, CUT_PUNCH, CUT_NEW, CUT_SYNC, CUT_KINDS };

/*
 * The files. DIRECT and BUFFERED are made durable by fsync, SYNCED (O_DSYNC) by each write. STILL
 * is never touched, NEW is not there at the beginning.
 */
enum cut_file {
	CUT_DIRECT, CUT_DIRECT_2, CUT_BUFFERED, CUT_BUFFERED_2, CUT_SYNCED, CUT_LATER, CUT_STILL,
	CUT_FILES
};

struct cut_step {
	unsigned int number;	/* 0: from before the first mark */
	enum cut_kind kind;
	enum cut_file file;
	uint64_t off, len;	/* of a truncate: off is the size */
};

extern const char *const cut_kind_name[CUT_KINDS];

/* Bytes of a file that no other step, file or place has; len bytes of it from offset off. */
void cut_fill(unsigned char *buf, size_t len, const struct cut_step *s, uint64_t off);

int cut_note(FILE *notes, const struct cut_step *s);
/* 1: a step, 0: the end, -EINVAL: a line that is none */
int cut_read_note(FILE *notes, struct cut_step *s);

void cut_path(char *path, size_t len, const char *dir, enum cut_file file);

/* The end state of DIR against the notes, up to the mark: how many places are wrong. */
unsigned int cut_check(const char *dir, const char *notes, unsigned int mark);

#endif /* CUT_H */
