// SPDX-License-Identifier: MIT
/*
 * journal.c - a plan on disk: all files or none, also across a crash.
 *
 * ROOT/.patchkit holds:
 *   journal.tmp   written first: says which PATH.pk-new a dead run may have left
 *   orig.HASH     the files as they were, kept for revert
 *   journal       journal.tmp renamed, once every PATH.pk-new is complete: the commit point
 *   manifest      what is applied; written after the last rename, before journal goes
 *
 * A crash before the commit point leaves the files as they were; after it, the next
 * pk_tree_open() goes on: forward while the new texts are there (they are), else back from
 * the originals. It decides by hashes only, so it may itself be interrupted and repeated.
 * A file that is neither old nor new stops it (E114): somebody's work is not overwritten.
 *
 * File form, both: "patchkit 1", "op apply|revert", "set NAME KEY", "file BEFORE AFTER MODE
 * PATH" each (hashes, "-": no such file), "end".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "patchkit.h"

#define META ".patchkit"
#define STAGED ".pk-new"

struct rec {
	char before[65], after[65];	/* "-": no such file */
	mode_t mode;
	char *path;
};

struct log {
	bool revert;
	char *set;
	char key[65];
	struct rec *r;
	size_t n;
};

static void log_free(struct log *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->r[i].path);
	free(l->r);
	free(l->set);
	*l = (struct log) { 0 };
}

static char *in_root(const struct pk_tree *t, const char *path, const char *suffix)
{
	char *full;

	return asprintf(&full, "%s/%s%s", t->root, path, suffix) < 0 ? NULL : full;
}

static char *in_meta(const struct pk_tree *t, const char *name, const char *suffix)
{
	char *full;

	return asprintf(&full, "%s/" META "/%s%s", t->root, name, suffix) < 0 ? NULL : full;
}

static bool none(const char *hash)
{
	return !strcmp(hash, "-");
}

/* "-" when there is no such file */
static int hash_file(const char *path, char hex[65])
{
	char *data;
	size_t len;
	int r = path ? pk_read_file(path, &data, &len, NULL) : -ENOMEM;

	if (r == -ENOENT) {
		strcpy(hex, "-");
		return 0;
	}
	if (r)
		return r;
	pk_sha256(data, len, hex);
	free(data);
	return 0;
}

static int hash_in_root(const struct pk_tree *t, const char *path, const char *suffix, char hex[65])
{
	char *full = in_root(t, path, suffix);
	int r = hash_file(full, hex);

	free(full);
	return r;
}

static int remove_file(const char *path)
{
	if (!path)
		return -ENOMEM;
	return pk_os->unlink(path) && errno != ENOENT ? -errno : 0;
}

static int remove_meta(const struct pk_tree *t, const char *name, const char *suffix)
{
	char *path = in_meta(t, name, suffix);
	int r = remove_file(path);

	free(path);
	return r;
}

static int rename_synced(const char *from, const char *to)
{
	if (!from || !to)
		return -ENOMEM;
	if (pk_os->rename(from, to))
		return -errno;
	return pk_sync_dir_of(to);
}

/* ---- journal and manifest ---- */

static int log_write(const struct pk_tree *t, const struct log *l, const char *name)
{
	struct pk_buf b = { 0 };
	char *path = in_meta(t, name, "");
	int r;

	r = pk_buf_printf(&b, "patchkit 1\nop %s\nset %s %s\n", l->revert ? "revert" : "apply",
			  l->set, l->key);
	for (size_t i = 0; i < l->n && !r; i++)
		r = pk_buf_printf(&b, "file %s %s %04o %s\n", l->r[i].before, l->r[i].after,
				  (unsigned int)l->r[i].mode, l->r[i].path);
	r = r ? r : pk_buf_puts(&b, "end\n");
	r = r ? r : path ? pk_write_file(path, b.data, b.len, 0644) : -ENOMEM;
	r = r ? r : pk_sync_dir_of(path);
	pk_buf_free(&b);
	free(path);
	return r;
}

static int log_add(struct log *l, const char *before, const char *after, mode_t mode,
		   const char *path)
{
	struct rec *r = realloc(l->r, (l->n + 1) * sizeof(*r));

	if (!r)
		return -ENOMEM;
	l->r = r;
	r = &l->r[l->n];
	snprintf(r->before, sizeof(r->before), "%s", before);
	snprintf(r->after, sizeof(r->after), "%s", after);
	r->mode = mode;
	r->path = strdup(path);
	if (!r->path)
		return -ENOMEM;
	l->n++;
	return 0;
}

static int parse_line(struct log *l, char *line, bool *end)
{
	char before[65], after[65], name[256], key[65];
	unsigned int mode;
	int pos = 0;

	if (!strcmp(line, "end")) {
		*end = true;
		return 0;
	}
	if (!strcmp(line, "op apply") || !strcmp(line, "op revert")) {
		l->revert = line[3] == 'r';
		return 0;
	}
	if (sscanf(line, "set %255s %64s", name, key) == 2) {
		free(l->set);
		l->set = strdup(name);
		memcpy(l->key, key, sizeof(key));
		return l->set ? 0 : -ENOMEM;
	}
	if (sscanf(line, "file %64s %64s %o %n", before, after, &mode, &pos) == 3 && pos)
		return log_add(l, before, after, mode & 07777, line + pos);
	return -EBADMSG;
}

/* -ENOENT; -EBADMSG: not complete */
static int log_read(const struct pk_tree *t, const char *name, struct log *l)
{
	char *path = in_meta(t, name, ""), *text, *s, *save = NULL;
	bool end = false;
	size_t len;
	int r;

	*l = (struct log) { 0 };
	r = path ? pk_read_file(path, &text, &len, NULL) : -ENOMEM;
	free(path);
	if (r)
		return r;
	s = strtok_r(text, "\n", &save);
	r = s && !strcmp(s, "patchkit 1") ? 0 : -EBADMSG;
	while (!r && (s = strtok_r(NULL, "\n", &save)))
		r = end ? -EBADMSG : parse_line(l, s, &end);
	if (!r && (!end || !l->set))
		r = -EBADMSG;
	free(text);
	if (r)
		log_free(l);
	return r;
}

/* ---- recovery ---- */

/* without a manifest nothing of ours stays; unknown files are left, and the folder with them */
static int sweep(const struct pk_tree *t)
{
	char *dir = in_meta(t, "", "");
	struct dirent *e;
	DIR *d;
	int r = 0;

	if (!dir)
		return -ENOMEM;
	d = opendir(dir);
	while (d && !r && (e = readdir(d)))
		if (!strncmp(e->d_name, "orig.", 5) || !strcmp(e->d_name, "manifest.tmp") ||
		    !strcmp(e->d_name, "journal.tmp"))
			r = remove_meta(t, e->d_name, "");
	if (d) {
		closedir(d);
		if (!r && pk_os->rmdir(dir) && errno != ENOTEMPTY && errno != ENOENT)
			r = -errno;
	}
	free(dir);
	return r;
}

static int drop_staged(const struct pk_tree *t, const struct log *l)
{
	int r = 0;

	for (size_t i = 0; i < l->n && !r; i++) {
		char *path = in_root(t, l->r[i].path, STAGED);

		r = remove_file(path);
		free(path);
	}
	return r;
}

/* put one file into its new state; fine if it is there already */
static int step_forward(const struct pk_tree *t, const struct rec *rec)
{
	char cur[65], *path, *staged;
	int r;

	r = hash_in_root(t, rec->path, "", cur);
	if (r || !strcmp(cur, rec->after))
		return r;
	path = in_root(t, rec->path, "");
	staged = in_root(t, rec->path, STAGED);
	if (none(rec->after)) {
		r = remove_file(path);
		r = r ? r : pk_sync_dir_of(path);
	} else {
		r = rename_synced(staged, path);
	}
	free(path);
	free(staged);
	return r;
}

/* after the commit point: the renames, the manifest, the end of the journal */
static int go_forward(const struct pk_tree *t, const struct log *l)
{
	char *tmp = in_meta(t, "manifest", ".tmp"), *manifest = in_meta(t, "manifest", "");
	int r = 0;

	for (size_t i = 0; i < l->n && !r; i++)
		r = step_forward(t, &l->r[i]);
	if (!r && l->revert) {
		r = remove_file(manifest);
		r = r ? r : pk_sync_dir_of(manifest);
	} else if (!r) {
		r = log_write(t, l, "manifest.tmp");
		r = r ? r : rename_synced(tmp, manifest);
	}
	r = r ? r : drop_staged(t, l);
	r = r ? r : remove_meta(t, "journal", "");
	r = r ? r : pk_sync_dir_of(manifest);
	if (!r && l->revert)
		r = sweep(t);
	free(tmp);
	free(manifest);
	return r;
}

/* what stood there before, from orig.HASH */
static int stage_orig(const struct pk_tree *t, const char *hash, const char *path, mode_t mode)
{
	char *orig = in_meta(t, "orig.", hash), *staged = in_root(t, path, STAGED), *data = NULL;
	char hex[65];
	size_t len;
	int r;

	r = orig && staged ? pk_read_file(orig, &data, &len, NULL) : -ENOMEM;
	if (!r) {
		pk_sha256(data, len, hex);
		r = strcmp(hex, hash) ? -EBADMSG : pk_write_file(staged, data, len, mode);
	}
	free(data);
	free(orig);
	free(staged);
	return r;
}

static int step_back(const struct pk_tree *t, const struct rec *rec)
{
	struct rec back = *rec;
	char cur[65];
	int r;

	r = hash_in_root(t, rec->path, "", cur);
	if (r || !strcmp(cur, rec->before))
		return r;
	memcpy(back.after, rec->before, sizeof(back.after));
	if (!none(back.after))
		r = stage_orig(t, back.after, back.path, back.mode);
	return r ? r : step_forward(t, &back);
}

static int go_back(const struct pk_tree *t, const struct log *l)
{
	int r = 0;

	for (size_t i = 0; i < l->n && !r; i++)
		r = step_back(t, &l->r[i]);
	r = r ? r : drop_staged(t, l);
	r = r ? r : remove_meta(t, "journal", "");
	return r || l->revert ? r : sweep(t);
}

/* may the journal be finished? every file must be old or new, and the new text be there */
static int can_forward(const struct pk_tree *t, const struct log *l, bool *yes,
		       struct pk_error *err)
{
	char cur[65], staged[65];
	int r = 0;

	*yes = true;
	for (size_t i = 0; i < l->n && !r; i++) {
		const struct rec *rec = &l->r[i];

		r = hash_in_root(t, rec->path, "", cur);
		r = r ? r : hash_in_root(t, rec->path, STAGED, staged);
		if (r)
			return pk_system(err, r, "read", rec->path);
		if (strcmp(cur, rec->before) && strcmp(cur, rec->after))
			return pk_refuse(err, PK_E114_JOURNAL,
					 "%s:1: expected the old or the new text of an interrupted run, found another",
					 rec->path);
		if (strcmp(cur, rec->after) && !none(rec->after) && strcmp(staged, rec->after))
			*yes = false;
	}
	return r;
}

static int recover(const struct pk_tree *t, struct pk_error *err)
{
	struct log l;
	bool forward;
	int r;

	r = log_read(t, "journal", &l);
	if (r == -EBADMSG)
		return pk_refuse(err, PK_E114_JOURNAL, META "/journal:1: it is damaged");
	if (!r) {
		r = can_forward(t, &l, &forward, err);
		if (!r) {
			r = forward ? go_forward(t, &l) : go_back(t, &l);
			if (r)
				pk_system(err, r, "finish the interrupted run in", t->root);
		}
		log_free(&l);
		return r;
	}
	if (r != -ENOENT)
		return pk_system(err, r, "read the journal of", t->root);
	/* died while staging: journal.tmp was complete before the first staged file */
	r = log_read(t, "journal.tmp", &l);
	if (!r) {
		r = drop_staged(t, &l);
		log_free(&l);
	}
	if (!r || r == -EBADMSG)
		r = remove_meta(t, "journal.tmp", "");
	return r && r != -ENOENT ? pk_system(err, r, "clean up", t->root) : 0;
}

/* ---- trees ---- */

static int find_state(struct pk_tree *t, struct pk_error *err)
{
	struct log l;
	int r;

	r = log_read(t, "manifest", &l);
	if (r == -ENOENT) {
		r = sweep(t);
		return r ? pk_system(err, r, "clean up", t->root) : 0;
	}
	if (r == -EBADMSG)
		return pk_refuse(err, PK_E114_JOURNAL, META "/manifest:1: it is damaged");
	if (r)
		return pk_system(err, r, "read the manifest of", t->root);
	t->state = PK_APPLIED;
	t->set = strdup(l.set);
	memcpy(t->key, l.key, sizeof(t->key));
	for (size_t i = 0; i < l.n && !r; i++) {
		char cur[65];

		r = hash_in_root(t, l.r[i].path, "", cur);
		if (!r && strcmp(cur, l.r[i].after) && t->state == PK_APPLIED) {
			t->state = PK_CHANGED;
			pk_refuse(&t->changed, PK_E112_CHANGED_SINCE,
				  "%s:1: expected the text that set %s left, found another",
				  l.r[i].path, l.set);
		}
	}
	log_free(&l);
	if (!t->set)
		r = -ENOMEM;
	return r ? pk_system(err, r, "read", t->root) : 0;
}

int pk_tree_open(struct pk_tree *t, const char *root, struct pk_error *err)
{
	int r;

	*t = (struct pk_tree) { .root = strdup(root), .lock_fd = -1, .state = PK_PRISTINE };
	if (!t->root)
		return pk_system(err, -ENOMEM, "open", root);
	t->lock_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->lock_fd < 0)
		r = errno == ENOENT ? pk_refuse(err, PK_E101_NO_FILE, "%s:1: expected a folder, found none",
						root) :
				      pk_system(err, -errno, "open", root);
	else if (flock(t->lock_fd, LOCK_EX | LOCK_NB))
		r = errno == EWOULDBLOCK ? pk_refuse(err, PK_E118_BUSY,
						     "%s:1: another run works on this tree", root) :
					   pk_system(err, -errno, "lock", root);
	else
		r = recover(t, err);
	r = r ? r : find_state(t, err);
	if (r)
		pk_tree_close(t);
	return r;
}

void pk_tree_close(struct pk_tree *t)
{
	if (t->lock_fd >= 0)
		close(t->lock_fd);
	free(t->root);
	free(t->set);
	*t = (struct pk_tree) { .lock_fd = -1 };
}

/* ---- apply and revert ---- */

static void undo_staging(const struct pk_tree *t, const struct log *l)
{
	drop_staged(t, l);
	remove_meta(t, "journal.tmp", "");
	if (!l->revert)
		sweep(t);
}

/* everything is staged: make it so */
static int commit(const struct pk_tree *t, const struct log *l, struct pk_error *err)
{
	char *tmp = in_meta(t, "journal", ".tmp"), *journal = in_meta(t, "journal", "");
	struct pk_error ignored;
	int r;

	r = rename_synced(tmp, journal);
	free(tmp);
	free(journal);
	r = r ? r : go_forward(t, l);
	if (!r)
		return 0;
	pk_system(err, r, l->revert ? "revert" : "apply the set to", t->root);
	/* back to one of the two states, now or at the next run */
	recover(t, &ignored);
	return r;
}

/* hashes and modes; the tree must still be what was planned on */
static int log_plan(const struct pk_tree *t, const struct pk_plan *plan, struct log *l,
		    struct pk_error *err)
{
	l->set = strdup(plan->set);
	memcpy(l->key, plan->key, sizeof(l->key));
	for (size_t i = 0; i < plan->n; i++) {
		const struct pk_change *c = &plan->c[i];
		char *path = in_root(t, c->path, ""), *data = NULL;
		char before[65] = "-", now[65] = "-", after[65];
		mode_t mode = c->mode ? c->mode : 0644;
		size_t len;
		int r = path && l->set ? pk_read_file(path, &data, &len, &mode) : -ENOMEM;

		free(path);
		if (!r)
			pk_sha256(data, len, now);
		free(data);
		if (c->before)
			pk_sha256(c->before, c->before_len, before);
		pk_sha256(c->after, c->after_len, after);
		if (r == -ENOENT)
			r = 0;
		if (!r && strcmp(now, before))
			return pk_refuse(err, PK_E112_CHANGED_SINCE,
					 "%s:1: it was changed while the edits were planned", c->path);
		r = r ? r : log_add(l, before, after, mode, c->path);
		if (r)
			return pk_system(err, r, "read", c->path);
	}
	return 0;
}

/* the owner of a file that root changes for somebody stays */
static void keep_owner(const char *path, const char *staged)
{
	struct stat st;

	if (!geteuid() && !lstat(path, &st) && lchown(staged, st.st_uid, st.st_gid))
		return;		/* the text is right, who owns it is a courtesy */
}

static int stage_apply(const struct pk_tree *t, const struct pk_plan *plan, const struct log *l)
{
	int r = 0;

	for (size_t i = 0; i < plan->n && !r; i++) {
		const struct pk_change *c = &plan->c[i];
		char *path = in_root(t, c->path, ""), *staged = in_root(t, c->path, STAGED);
		char *orig = in_meta(t, "orig.", l->r[i].before);

		if (!path || !staged || !orig)
			r = -ENOMEM;
		if (!r && c->before)
			r = pk_write_file(orig, c->before, c->before_len, 0600);
		r = r ? r : pk_write_file(staged, c->after, c->after_len, l->r[i].mode);
		if (!r)
			keep_owner(path, staged);
		r = r ? r : pk_sync_dir_of(staged);
		free(path);
		free(staged);
		free(orig);
	}
	return r;
}

/* the folder of the journal, synced: nothing else may be lost before it */
static int make_meta(const struct pk_tree *t)
{
	char *meta = in_meta(t, "", "");
	int r = 0;

	if (!meta)
		return -ENOMEM;
	if (pk_os->mkdir(meta, 0755) && errno != EEXIST)
		r = -errno;
	meta[strlen(meta) - 1] = '\0';	/* the slash: sync the root, not META */
	r = r ? r : pk_sync_dir_of(meta);
	free(meta);
	return r;
}

/* what revert gives back, then the manifest, which is the commit point */
static int write_adoption(const struct pk_tree *t, const struct pk_plan *plan, const struct log *l)
{
	char *tmp = in_meta(t, "manifest", ".tmp"), *manifest = in_meta(t, "manifest", "");
	int r = make_meta(t);

	for (size_t i = 0; i < plan->n && !r; i++) {
		char *orig = in_meta(t, "orig.", l->r[i].before);

		r = orig ? pk_write_file(orig, plan->c[i].before, plan->c[i].before_len, 0600) :
			   -ENOMEM;
		free(orig);
	}
	r = r ? r : log_write(t, l, "manifest.tmp");
	r = r ? r : rename_synced(tmp, manifest);
	free(tmp);
	free(manifest);
	return r;
}

int pk_adopt(struct pk_tree *t, const struct pk_plan *plan, struct pk_error *err)
{
	struct log l = { .set = strdup(plan->set) };
	int r = l.set ? 0 : -ENOMEM;

	if (t->state != PK_PRISTINE) {
		free(l.set);
		return pk_refuse(err, PK_E113_OTHER_SET, "%s:1: set %s is applied", t->root, t->set);
	}
	memcpy(l.key, plan->key, sizeof(l.key));
	for (size_t i = 0; i < plan->n && !r; i++) {
		const struct pk_change *c = &plan->c[i];
		char *path = in_root(t, c->path, ""), *data = NULL, before[65], after[65];
		mode_t mode;
		size_t len;

		r = path ? pk_read_file(path, &data, &len, &mode) : -ENOMEM;
		free(path);
		if (!r && (len != c->after_len || memcmp(data, c->after, len)))
			r = pk_refuse(err, PK_E112_CHANGED_SINCE,
				      "%s:1: expected what set %s makes of it, found another text",
				      c->path, plan->set);
		free(data);
		if (r == -EBADMSG) {
			log_free(&l);
			return r;
		}
		pk_sha256(c->before, c->before_len, before);
		pk_sha256(c->after, c->after_len, after);
		r = r ? r : log_add(&l, before, after, mode, c->path);
	}
	r = r ? r : write_adoption(t, plan, &l);
	if (r) {
		pk_system(err, r, "take over", t->root);
		sweep(t);
	} else {
		t->state = PK_APPLIED;
		t->set = l.set;
		l.set = NULL;
		memcpy(t->key, plan->key, sizeof(t->key));
	}
	log_free(&l);
	return r;
}

/* Returns 1 when this very set is applied already: nothing was written. */
int pk_apply(struct pk_tree *t, const struct pk_plan *plan, struct pk_error *err)
{
	struct log l = { 0 };
	int r;

	if (t->state == PK_CHANGED)
		*err = t->changed;
	if (t->state != PK_PRISTINE) {
		if (t->state == PK_CHANGED)
			return -EBADMSG;
		if (!strcmp(t->key, plan->key))
			return 1;
		return pk_refuse(err, PK_E113_OTHER_SET, "%s:1: set %s is applied%s", t->root, t->set,
				 strcmp(t->set, plan->set) ? "" : " in another version");
	}
	r = log_plan(t, plan, &l, err);
	if (r)
		goto out;
	r = make_meta(t);
	r = r ? r : log_write(t, &l, "journal.tmp");
	r = r ? r : stage_apply(t, plan, &l);
	if (r) {
		pk_system(err, r, "write the new files of", t->root);
		undo_staging(t, &l);
		goto out;
	}
	r = commit(t, &l, err);
	if (!r) {
		t->state = PK_APPLIED;
		t->set = strdup(plan->set);
		memcpy(t->key, plan->key, sizeof(t->key));
	}
out:
	log_free(&l);
	return r;
}

static int stage_revert(const struct pk_tree *t, const struct log *l)
{
	int r = 0;

	for (size_t i = 0; i < l->n && !r; i++) {
		const struct rec *rec = &l->r[i];
		char *path = in_root(t, rec->path, ""), *staged = in_root(t, rec->path, STAGED);

		r = path && staged ? 0 : -ENOMEM;
		if (!r && !none(rec->after)) {
			r = stage_orig(t, rec->after, rec->path, rec->mode);
			if (!r)
				keep_owner(path, staged);
			r = r ? r : pk_sync_dir_of(staged);
		}
		free(path);
		free(staged);
	}
	return r;
}

int pk_revert(struct pk_tree *t, struct pk_error *err)
{
	struct log l;
	int r;

	if (t->state == PK_PRISTINE)
		return pk_refuse(err, PK_E115_NOT_APPLIED, "%s:1: no set is applied", t->root);
	if (t->state == PK_CHANGED) {
		*err = t->changed;
		return -EBADMSG;
	}
	r = log_read(t, "manifest", &l);
	if (r)
		return pk_system(err, r, "read the manifest of", t->root);
	l.revert = true;
	for (size_t i = 0; i < l.n; i++) {
		char hash[65];

		memcpy(hash, l.r[i].before, sizeof(hash));
		memcpy(l.r[i].before, l.r[i].after, sizeof(hash));
		memcpy(l.r[i].after, hash, sizeof(hash));
	}
	r = log_write(t, &l, "journal.tmp");
	r = r ? r : stage_revert(t, &l);
	if (r) {
		pk_system(err, r, "restore the old files of", t->root);
		undo_staging(t, &l);
	} else {
		r = commit(t, &l, err);
	}
	if (!r)
		t->state = PK_PRISTINE;
	log_free(&l);
	return r;
}
