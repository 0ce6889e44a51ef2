/* SPDX-License-Identifier: MIT */
/*
 * patchkit.h - change C sources by meaning, all or nothing.
 *
 * A source is lexed once; places are found by token patterns (white space, comments,
 * strings and dead code cannot be mistaken for code); edits are collected and rendered in
 * memory; only then files are written, under a journal. Nothing is ever guessed: an anchor
 * that is missing or there twice is a refusal with an id, the file, the line and what to do.
 *
 * Layers, each usable alone: lexer -> locate -> edit -> diff, set (a text file that
 * describes edits) and journal (files on disk). Functions return 0 or a negative errno and
 * fill struct pk_error; err->id is set for refusals. Not thread-safe per object; no globals
 * but the table of system calls.
 */
#ifndef PATCHKIT_H
#define PATCHKIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- errors ---- */

enum pk_id {
	PK_OK,
	PK_E101_NO_FILE,
	PK_E102_NOT_UNDERSTOOD,
	PK_E103_ANCHOR_NOT_FOUND,
	PK_E104_ANCHOR_AMBIGUOUS,
	PK_E105_BODY_SHAPE,
	PK_E106_SIGNATURE,
	PK_E107_LINE_SHARED,
	PK_E108_EDITS_OVERLAP,
	PK_E109_FILE_EXISTS,
	PK_E110_FOREIGN,
	PK_E111_MIXED,
	PK_E112_CHANGED_SINCE,
	PK_E113_OTHER_SET,
	PK_E114_JOURNAL,
	PK_E115_NOT_APPLIED,
	PK_E116_PATH,
	PK_E117_SET_SYNTAX,
	PK_E118_BUSY,
	PK_E190_SYSTEM,
	PK_NR_IDS
};

struct pk_error {
	enum pk_id id;
	char text[600];		/* "FILE:LINE: what; expected ...", without id and next step */
};

const char *pk_id_name(enum pk_id id);		/* "PK-E103 anchor-not-found" */
const char *pk_id_next(enum pk_id id);		/* the next step, a sentence */
int pk_refuse(struct pk_error *err, enum pk_id id, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int pk_system(struct pk_error *err, int negative_errno, const char *what, const char *path);

/* ---- growing bytes ---- */

struct pk_buf {
	char *data;		/* NUL-terminated when not NULL */
	size_t len, cap;
};

int pk_buf_add(struct pk_buf *b, const char *data, size_t len);
int pk_buf_puts(struct pk_buf *b, const char *s);
int pk_buf_printf(struct pk_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pk_buf_free(struct pk_buf *b);

/* ---- lexer ---- */

enum pk_lang {
	PK_LANG_C,
	PK_LANG_MAKE,		/* words; '#' comments */
	PK_LANG_FRAGMENT,	/* C whose brackets need not match: patterns, inserted text */
};

/* what a byte of the source belongs to */
enum pk_class {
	PK_CODE,
	PK_COMMENT,
	PK_STRING,
	PK_CHAR,
	PK_DIRECTIVE,		/* a preprocessor line with its continuations */
	PK_DEAD,		/* #if 0 ... */
	PK_SPLICE,		/* backslash-newline in code */
};

enum pk_kind {
	PK_T_IDENT,
	PK_T_NUMBER,
	PK_T_PUNCT,
	PK_T_STRING,
	PK_T_CHAR,
	PK_T_DIRECTIVE,
};

struct pk_token {
	size_t off, len;
	enum pk_kind kind;
	unsigned int line;	/* from 1 */
	int depth;		/* open braces before it; a '}' has the depth of its '{' */
	int cond;		/* open #if levels */
};

struct pk_source {
	char *name;		/* for messages */
	enum pk_lang lang;
	char *text;		/* the bytes as they are, NUL-terminated */
	size_t len;
	unsigned char *cls;	/* enum pk_class per byte */
	struct pk_token *tok;	/* without comments and dead code */
	size_t ntok;
};

int pk_lex(struct pk_source *s, const char *name, enum pk_lang lang, const char *text, size_t len,
	   struct pk_error *err);
void pk_source_free(struct pk_source *s);
/* same length as the text, everything but code blanked, newlines kept; caller frees */
char *pk_mask(const struct pk_source *s);
bool pk_token_is(const struct pk_source *s, size_t i, const char *text);
unsigned int pk_line_of(const struct pk_source *s, size_t off);

/* ---- locate ---- */

#define PK_CAPTURES 8

/* a range of tokens, [first, end) */
struct pk_span {
	size_t first, end;
};

/*
 * A pattern is C tokens; `$x` matches any one token (the same one at each further `$x`),
 * `...` matches as few tokens as needed, never out of the brackets it stands in.
 */
struct pk_match {
	struct pk_span span;
	char cap_name[PK_CAPTURES];
	size_t cap_tok[PK_CAPTURES];
	size_t ncap;
};

/* the only match of pattern within span (all of the file if NULL); what: for messages */
int pk_find(const struct pk_source *s, const struct pk_span *in, const char *pattern,
	    const char *what, struct pk_match *m, struct pk_error *err);
/* how often it matches; the first is stored when m is not NULL; negative errno on error */
long pk_count(const struct pk_source *s, const struct pk_span *in, const char *pattern,
	      struct pk_match *m, struct pk_error *err);

struct pk_function {
	struct pk_span decl;	/* from the first specifier to the token before '{' */
	struct pk_span params;	/* between the parentheses */
	size_t open, close;	/* the braces */
	struct pk_span body;	/* between them */
};

/* the only definition of a function */
int pk_find_function(const struct pk_source *s, const char *name, struct pk_function *f,
		     struct pk_error *err);
/* the only definition of a struct; body between its braces */
int pk_find_struct(const struct pk_source *s, const char *name, struct pk_span *body,
		   struct pk_error *err);
/* operand with its delimiters, as "nvme.h" or <linux/pci.h>; token index */
int pk_find_include(const struct pk_source *s, const char *operand, size_t *token,
		    struct pk_error *err);
/* the only #define of a name: the tokens after it, a blank between them, are added to value */
int pk_find_define(const struct pk_source *s, const char *name, struct pk_buf *value,
		   struct pk_error *err);
/* last declaration at the start of a body, or the '{': the token after which statements start */
int pk_last_declaration(const struct pk_source *s, const struct pk_function *f, size_t *token,
			struct pk_error *err);
/* are all tokens of this text in the source, in a row? */
int pk_contains(const struct pk_source *s, const char *text, bool *yes, unsigned int *line,
		struct pk_error *err);

/* ---- edit ---- */

struct pk_edit {
	size_t off, len;	/* bytes of the old text that go */
	char *text;		/* what comes instead */
	size_t order;
};

struct pk_edits {
	struct pk_edit *e;
	size_t n;
};

void pk_edits_free(struct pk_edits *es);
/* text: whole lines with '\n'; written with the line ends of the place */
int pk_edit_before_line(struct pk_edits *es, const struct pk_source *s, size_t token,
			const char *text, struct pk_error *err);
int pk_edit_after_line(struct pk_edits *es, const struct pk_source *s, size_t token,
		       const char *text, struct pk_error *err);
int pk_edit_before_function(struct pk_edits *es, const struct pk_source *s,
			    const struct pk_function *f, const char *text, struct pk_error *err);
int pk_edit_first(struct pk_edits *es, const struct pk_source *s, const struct pk_function *f,
		  const char *text, struct pk_error *err);
/* text replaces the bytes from the first to the last token of span */
int pk_edit_replace(struct pk_edits *es, const struct pk_source *s, const struct pk_span *span,
		    const char *text, struct pk_error *err);
/* sorts and checks, then renders */
int pk_render(struct pk_edits *es, const struct pk_source *s, struct pk_buf *out,
	      struct pk_error *err);

/* ---- diff ---- */

/* git's form, context of 3; old NULL: the file is new; equal texts add nothing */
int pk_diff(struct pk_buf *out, const char *path, const char *old, size_t old_len, const char *new,
	    size_t new_len);

/* ---- sets ---- */

/* one file of a plan: before and after, both in memory */
struct pk_change {
	char *path;		/* below the root */
	char *before;		/* NULL: the file is added */
	size_t before_len;
	char *after;
	size_t after_len;
	mode_t mode;		/* of a file that is added; 0: 0644 */
};

struct pk_plan {
	char *set;		/* name */
	char key[65];		/* sha256 of the set and its sources */
	struct pk_change *c;
	size_t n;
};

/* the form of set files is described in set.c */
struct pk_set;
int pk_set_load(struct pk_set **set, const char *path, struct pk_error *err);
void pk_set_free(struct pk_set *set);
const char *pk_set_name(const struct pk_set *set);
const char *pk_set_key(const struct pk_set *set);
/* what the set would do to a pristine tree; reads only */
int pk_set_plan(const struct pk_set *set, const char *root, struct pk_plan *plan,
		struct pk_error *err);
void pk_plan_free(struct pk_plan *plan);
int pk_plan_diff(const struct pk_plan *plan, const char *prefix, struct pk_buf *out);

/* ---- journal: trees on disk ---- */

enum pk_state {
	PK_PRISTINE,		/* no manifest */
	PK_APPLIED,		/* manifest, and every file is as it says */
	PK_CHANGED,		/* manifest, but a file was changed since: E112 names it */
};

struct pk_tree {
	char *root;
	int lock_fd;
	enum pk_state state;
	char *set;		/* applied or changed: name and key of the set */
	char key[65];
	struct pk_error changed;
};

/* locks the tree, finishes or undoes what a crash left, finds the state */
int pk_tree_open(struct pk_tree *t, const char *root, struct pk_error *err);
void pk_tree_close(struct pk_tree *t);
int pk_apply(struct pk_tree *t, const struct pk_plan *plan, struct pk_error *err);
/*
 * Takes over files that are what the plan would make of them, by hand or by another tool: from
 * now on they count as applied, and revert gives the plan's `before`. They are not written.
 */
int pk_adopt(struct pk_tree *t, const struct pk_plan *plan, struct pk_error *err);
int pk_revert(struct pk_tree *t, struct pk_error *err);

/* ---- the seam: all calls that change something go through it ---- */

struct pk_os {
	int (*open)(const char *path, int flags, mode_t mode);
	ssize_t (*write)(int fd, const void *data, size_t len);
	int (*fsync)(int fd);
	int (*close)(int fd);
	int (*rename)(const char *from, const char *to);
	int (*unlink)(const char *path);
	int (*mkdir)(const char *path, mode_t mode);
	int (*rmdir)(const char *path);
};

extern const struct pk_os pk_os_libc;
extern const struct pk_os *pk_os;	/* tests replace it */

/* a whole regular file, NUL added; -ENOENT and others as they are */
int pk_read_file(const char *path, char **data, size_t *len, mode_t *mode);
/* create or replace, fsync; the caller renames and syncs the folder */
int pk_write_file(const char *path, const char *data, size_t len, mode_t mode);
int pk_sync_dir_of(const char *path);
void pk_sha256(const void *data, size_t len, char hex[65]);

#endif /* PATCHKIT_H */
