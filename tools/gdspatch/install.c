// SPDX-License-Identifier: MIT
/*
 * install.c - built modules into lib/modules/V and out again.
 *
 * The modules are one plan of patchkit in lib/modules/V: all or none, the old ones kept there.
 * depmod and the initramfs follow. STEPS says for which modules they ran last, so that a run
 * that died in between is finished by the next one, or undone:
 *
 *	modules		STEPS		what is left to do
 *	ours, key K	K		nothing
 *	ours, key K	other or none	STEPS = PENDING, both steps, then STEPS = K
 *	the old ones	there		STEPS = PENDING, both steps, then STEPS goes
 *	the old ones	none		nothing: the steps never ran for ours
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules.h"

#define STEPS ".gdspatch-steps"
#define SET "modules"
#define PENDING "pending"

struct place {
	const struct gp_options *o;
	char dir[512]; /* lib/modules/V below the root */
	char steps[560];
	struct pk_tree tree;
};

/* ---- depmod and initramfs ---- */

static size_t initramfs_command(const struct gp_options *o, const char *tool, const char *argv[8])
{
	size_t n = 0;

	/* these know no other root */
	if (*o->root) {
		argv[n++] = "chroot";
		argv[n++] = o->root;
	}
	argv[n++] = tool;
	if (!strcmp(tool, "mkinitcpio")) {
		argv[n++] = "-P";
	} else if (!strcmp(tool, "dracut")) {
		argv[n++] = "--force";
		argv[n++] = "--kver";
		argv[n++] = o->kernel;
	} else {
		argv[n++] = "-u";
		argv[n++] = "-k";
		argv[n++] = o->kernel;
	}
	argv[n] = NULL;
	return n;
}

static size_t depmod_command(const struct gp_options *o, const char *argv[8])
{
	size_t n = 0;

	argv[n++] = "depmod";
	if (*o->root) {
		argv[n++] = "-b";
		argv[n++] = o->root;
	}
	argv[n++] = o->kernel;
	argv[n] = NULL;
	return n;
}

static int run_steps(const struct gp_options *o, struct gp_error *err)
{
	const char *tool = gp_initramfs_tool(o->root), *argv[8];
	int r;

	depmod_command(o, argv);
	r = gp_exec(argv, err);
	if (r)
		return r;
	if (!*tool) {
		gp_note("warning: no update-initramfs, dracut or mkinitcpio below %s: regenerate the initramfs",
			*o->root ? o->root : "/");
		return 0;
	}
	initramfs_command(o, tool, argv);
	return gp_exec(argv, err);
}

static void print_command(const char *const *argv)
{
	fputs("would run:", stdout);
	for (; *argv; argv++)
		printf(" %s", *argv);
	putchar('\n');
}

/* ---- the place ---- */

static int open_place(struct place *p, const struct gp_options *o, struct gp_error *err)
{
	struct pk_error e;
	int r;

	p->o = o;
	snprintf(p->dir, sizeof(p->dir), "%s/lib/modules/%s", o->root, o->kernel);
	snprintf(p->steps, sizeof(p->steps), "%s/" STEPS, p->dir);
	r = pk_tree_open(&p->tree, p->dir, &e);
	if (r && e.id == PK_E101_NO_FILE)
		return gp_refuse(err, GP_WRONG_KERNEL, p->dir, 0, "", "the modules of that kernel",
				 "none");
	return r ? gp_from_pk(err, r, &e, p->dir, "") : 0;
}

static int steps_of(const struct place *p, char key[65])
{
	char *data;
	size_t len;
	int r = pk_read_file(p->steps, &data, &len, NULL);

	*key = '\0';
	if (r)
		return r == -ENOENT ? 0 : r;
	snprintf(key, 65, "%.64s", data);
	free(data);
	return 0;
}

static int set_steps(const struct place *p, const char *key)
{
	char tmp[600];
	int r = 0;

	if (!*key) {
		if (pk_os->unlink(p->steps) && errno != ENOENT)
			return -errno;
		return pk_sync_dir_of(p->steps);
	}
	snprintf(tmp, sizeof(tmp), "%s.new", p->steps);
	r = pk_write_file(tmp, key, strlen(key), 0644);
	if (!r && pk_os->rename(tmp, p->steps))
		r = -errno;
	return r ? r : pk_sync_dir_of(p->steps);
}

/* brings depmod and initramfs to where the modules are */
static int finish(const struct place *p, struct gp_error *err)
{
	const char *want = p->tree.state == PK_PRISTINE ? "" : p->tree.key;
	char updates[560], key[65], tmp[600];
	int r;

	snprintf(tmp, sizeof(tmp), "%s.new", p->steps);
	if (pk_os->unlink(tmp) && errno != ENOENT)
		return gp_system(err, -errno, "remove", tmp);
	r = steps_of(p, key);
	if (r)
		return gp_system(err, r, "read", p->steps);
	if (!strcmp(key, want))
		return 0;
	/* from here on depmod may have seen either: whoever dies leaves that to be known */
	r = set_steps(p, PENDING);
	if (r)
		return gp_system(err, r, "write", p->steps);
	if (!*want) {
		/* ours, if it is empty: a package's would have something in it */
		snprintf(updates, sizeof(updates), "%s/updates", p->dir);
		if (pk_os->rmdir(updates) && errno != ENOTEMPTY && errno != ENOENT &&
		    errno != EEXIST)
			return gp_system(err, -errno, "remove", updates);
	}
	r = run_steps(p->o, err);
	if (r)
		return r;
	r = set_steps(p, want);
	return r ? gp_system(err, r, "write", p->steps) : 0;
}

/* ---- install ---- */

static int plan_module(const struct place *p, const struct gm_modules *ms,
		       const struct gm_module *m, struct pk_change *c, struct gp_error *err)
{
	char *path;
	int r = 0;

	c->path = strdup(m->place);
	if (!c->path || asprintf(&path, "%s/%s", p->dir, m->place) < 0)
		return gp_system(err, -ENOMEM, "plan", m->name);
	if (m->there) {
		r = pk_read_file(path, &c->before, &c->before_len, NULL);
		if (r)
			gp_system(err, r, "read", path);
	}
	free(path);
	return r ? r : gm_finish(ms, m, &c->after, &c->after_len, err);
}

/* the key is that of the new modules: the same ones again are nothing to do */
static void plan_key(struct pk_plan *plan)
{
	struct pk_buf b = { 0 };
	char hash[65];

	pk_buf_puts(&b, "gdspatch 1 " SET);
	for (size_t i = 0; i < plan->n; i++) {
		pk_sha256(plan->c[i].after, plan->c[i].after_len, hash);
		pk_buf_printf(&b, "\n%s %s", plan->c[i].path, hash);
	}
	pk_sha256(b.data ? b.data : "", b.len, plan->key);
	pk_buf_free(&b);
}

static int make_plan(const struct place *p, const struct gm_modules *ms, struct pk_plan *plan,
		     struct gp_error *err)
{
	int r = 0;

	*plan = (struct pk_plan){ .set = strdup(SET), .c = calloc(GM_MAX, sizeof(*plan->c)) };
	if (!plan->set || !plan->c)
		r = gp_system(err, -ENOMEM, "plan", p->dir);
	for (size_t i = 0; i < ms->n && !r; i++)
		r = plan_module(p, ms, &ms->m[i], &plan->c[plan->n++], err);
	if (!r)
		plan_key(plan);
	return r;
}

static void show_install(const struct place *p, const struct gm_modules *ms)
{
	const char *tool = gp_initramfs_tool(p->o->root), *argv[8];

	for (size_t i = 0; i < ms->n; i++)
		printf("would %s: %s (stripped%s%s)\n", ms->m[i].there ? "replace" : "add",
		       ms->m[i].place, *ms->key ? ", signed" : "",
		       *ms->m[i].suffix ? ", compressed" : "");
	depmod_command(p->o, argv);
	print_command(argv);
	if (*tool) {
		initramfs_command(p->o, tool, argv);
		print_command(argv);
	}
}

static int put_modules(struct place *p, const struct gm_modules *ms, struct gp_error *err)
{
	struct pk_plan plan;
	struct pk_error e;
	char updates[560];
	int r;

	r = make_plan(p, ms, &plan, err);
	if (!r && ms->new_folder) {
		snprintf(updates, sizeof(updates), "%s/updates", p->dir);
		if (pk_os->mkdir(updates, 0755) && errno != EEXIST)
			r = gp_system(err, -errno, "make", updates);
	}
	if (!r) {
		r = pk_apply(&p->tree, &plan, &e);
		if (r < 0)
			gp_from_pk(err, r, &e, p->dir, "");
	}
	pk_plan_free(&plan);
	return r;
}

static void say(const struct gp_options *o, const char *state, bool changed)
{
	if (o->json)
		printf("{ \"kernel\": \"%s\", \"state\": \"%s\", \"changed\": %s }\n", o->kernel,
		       state, changed ? "true" : "false");
	else
		printf("modules of %s: %s%s\n", o->kernel, state, changed ? "" : " already");
}

int gp_cmd_install(const struct gp_options *o, const char *tree)
{
	struct gm_modules ms = { 0 };
	struct gp_error err;
	struct place p;
	int r, done = 0;

	r = open_place(&p, o, &err);
	if (r)
		return gp_fail(&err, o->json);
	/* the places of our own modules are those of the old ones: only forms can differ */
	r = gm_find(&ms, o, tree, &err);
	if (!r && o->dry_run) {
		show_install(&p, &ms);
	} else if (!r) {
		done = put_modules(&p, &ms, &err);
		r = done < 0 ? done : finish(&p, &err);
		if (!r)
			say(o, "installed", done != 1);
		if (!r && !o->json)
			gp_print_after();
	}
	gm_free(&ms);
	pk_tree_close(&p.tree);
	return r ? gp_fail(&err, o->json) : GP_EXIT_OK;
}

int gp_cmd_uninstall(const struct gp_options *o)
{
	struct gp_error err;
	struct pk_error e;
	struct place p;
	char key[65];
	int r;

	r = open_place(&p, o, &err);
	if (r)
		return gp_fail(&err, o->json);
	if (o->dry_run) {
		const char *tool = gp_initramfs_tool(o->root), *argv[8];

		printf("would restore the old modules of %s\n", o->kernel);
		depmod_command(o, argv);
		print_command(argv);
		if (*tool) {
			initramfs_command(o, tool, argv);
			print_command(argv);
		}
		pk_tree_close(&p.tree);
		return GP_EXIT_OK;
	}
	/* reverted already, and then died: only the steps are left */
	r = steps_of(&p, key);
	if (r)
		gp_system(&err, r, "read", p.steps);
	if (!r && !(p.tree.state == PK_PRISTINE && *key)) {
		r = pk_revert(&p.tree, &e);
		if (r)
			gp_from_pk(&err, r, &e, p.dir, "");
	}
	r = r ? r : finish(&p, &err);
	if (!r)
		say(o, "as they were", true);
	pk_tree_close(&p.tree);
	return r ? gp_fail(&err, o->json) : GP_EXIT_OK;
}
