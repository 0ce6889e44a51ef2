// SPDX-License-Identifier: MIT
/* error.c - the refusals of patchkit, in one table, and the growing buffer. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchkit.h"

static const struct {
	const char *name, *next;
} ids[PK_NR_IDS] = {
	[PK_OK] = { "ok", "" },
	[PK_E101_NO_FILE] = { "PK-E101 no-file", "give the folder that the set is made for" },
	[PK_E102_NOT_UNDERSTOOD] = { "PK-E102 not-understood",
		"the source is damaged or uses a form that this tool does not know: report it" },
	[PK_E103_ANCHOR_NOT_FOUND] = { "PK-E103 anchor-not-found",
		"this version of the source needs an edit set of its own" },
	[PK_E104_ANCHOR_AMBIGUOUS] = { "PK-E104 anchor-ambiguous",
		"this version of the source needs an edit set of its own" },
	[PK_E105_BODY_SHAPE] = { "PK-E105 body-shape",
		"this version of the source needs an edit set of its own" },
	[PK_E106_SIGNATURE] = { "PK-E106 signature",
		"this version of the source needs an edit set of its own" },
	[PK_E107_LINE_SHARED] = { "PK-E107 line-shared",
		"put the place on a line of its own, or write an edit that replaces it" },
	[PK_E108_EDITS_OVERLAP] = { "PK-E108 edits-overlap", "correct the edit set" },
	[PK_E109_FILE_EXISTS] = { "PK-E109 file-exists",
		"move the file away if it is not yours, then try again" },
	[PK_E110_FOREIGN] = { "PK-E110 already-patched-by-something-else",
		"start from the unpatched source, or undo the other patch first" },
	[PK_E111_MIXED] = { "PK-E111 partly-patched", "start from the unpatched source" },
	[PK_E112_CHANGED_SINCE] = { "PK-E112 changed-since",
		"undo that change, or start again from the unpatched source" },
	[PK_E113_OTHER_SET] = { "PK-E113 other-set", "revert the other set first" },
	[PK_E114_JOURNAL] = { "PK-E114 journal",
		"a run was interrupted and files were changed since: restore the tree from its source" },
	[PK_E115_NOT_APPLIED] = { "PK-E115 not-applied", "nothing to do" },
	[PK_E116_PATH] = { "PK-E116 path", "name a regular file below the root" },
	[PK_E117_SET_SYNTAX] = { "PK-E117 set-syntax", "correct the edit set" },
	[PK_E118_BUSY] = { "PK-E118 busy", "wait for the other run to end" },
	[PK_E190_SYSTEM] = { "PK-E190 system", "see the system's error, correct it, run again" },
};

const char *pk_id_name(enum pk_id id)
{
	return ids[id].name;
}

const char *pk_id_next(enum pk_id id)
{
	return ids[id].next;
}

int pk_refuse(struct pk_error *err, enum pk_id id, const char *fmt, ...)
{
	va_list ap;

	err->id = id;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

int pk_system(struct pk_error *err, int negative_errno, const char *what, const char *path)
{
	err->id = PK_E190_SYSTEM;
	snprintf(err->text, sizeof(err->text), "%s: cannot %s: %s (%s)", path, what,
		 strerror(-negative_errno), strerrorname_np(-negative_errno));
	return negative_errno;
}

int pk_buf_add(struct pk_buf *b, const char *data, size_t len)
{
	if (b->cap - b->len <= len) {
		size_t cap = (b->len + len + 1) * 2;
		char *p = realloc(b->data, cap);

		if (!p)
			return -ENOMEM;
		b->data = p;
		b->cap = cap;
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int pk_buf_puts(struct pk_buf *b, const char *s)
{
	return pk_buf_add(b, s, strlen(s));
}

int pk_buf_printf(struct pk_buf *b, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n, r;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	r = pk_buf_add(b, s, n);
	free(s);
	return r;
}

void pk_buf_free(struct pk_buf *b)
{
	free(b->data);
	*b = (struct pk_buf) { 0 };
}
