// SPDX-License-Identifier: MIT
/*
 * hook.c - a hook of the package manager: after each new kernel it looks at the driver's source,
 * at the modules of that kernel, and lets the doctor judge the machine.
 *
 * One file, put in place and taken away by patchkit's journal. It calls `gdspatch hook run`, does
 * nothing once OpenGDS is gone, and never makes an update fail.
 */
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts.h"
#include "gdscheck.h"
#include "gdspatch.h"
#include "modprobe.h"

#define SET "hook"
#define SET_FOLDER "hook+folder" /* the folder of the file is ours, too */

#define MARK "# OpenGDS: written by gdspatch hook install; gdspatch hook remove takes it away.\n"

/* the first one whose `probe` is there is the machine's */
static const struct kind {
	const char *name, *probe;
	const char *tree, *folder, *file; /* below the root; below the tree; below the folder */
	mode_t mode;
	const char *text;
} kinds[] = {
	{ "pacman", "etc/pacman.d", "etc/pacman.d", "hooks", "95-opengds-check.hook", 0644,
	  MARK "[Trigger]\n"
	       "Type = Path\n"
	       "Operation = Install\n"
	       "Operation = Upgrade\n"
	       "Target = usr/lib/modules/*/vmlinuz\n"
	       "\n"
	       "[Action]\n"
	       "Description = Looking at the GPU driver and the way to the drives (OpenGDS)...\n"
	       "When = PostTransaction\n"
	       "NeedsTargets\n"
	       "Exec = /bin/sh -c 'while read -r t; do t=${t#usr/lib/modules/}; "
	       "gdspatch hook run --kernel \"${t%%/*}\" || :; done'\n" },
	{ "Debian", "etc/kernel/postinst.d", "etc/kernel", "postinst.d", "zz-opengds-check", 0755,
	  "#!/bin/sh\n" MARK "command -v gdspatch >/dev/null 2>&1 || exit 0\n"
	  "gdspatch hook run --kernel \"$1\" || :\n"
	  "exit 0\n" },
	{ "kernel-install", "usr/lib/kernel/install.d", "etc/kernel", "install.d",
	  "95-opengds-check.install", 0755,
	  "#!/bin/sh\n" MARK "[ \"$1\" = add ] || exit 0\n"
	  "command -v gdspatch >/dev/null 2>&1 || exit 0\n"
	  "gdspatch hook run --kernel \"$2\" || :\n"
	  "exit 0\n" },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

struct hook {
	const struct gp_options *o;
	const struct kind *k;
	char tree[512], folder[560], path[640];
	struct pk_tree pk;
};

static bool there(const char *root, const char *name)
{
	char path[560];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return !access(path, F_OK);
}

static int find_kind(struct hook *h, struct gp_error *err)
{
	const char *root = h->o->root;

	for (h->k = kinds; h->k < kinds + KINDS; h->k++)
		if (there(root, h->k->probe))
			break;
	if (h->k == kinds + KINDS)
		return gp_refuse(
			err, GP_NO_PLACE, *root ? root : "/", 0, "",
			"/etc/pacman.d, /etc/kernel/postinst.d or /usr/lib/kernel/install.d",
			"none of them");
	snprintf(h->tree, sizeof(h->tree), "%.400s/%s", root, h->k->tree);
	snprintf(h->folder, sizeof(h->folder), "%s/%s", h->tree, h->k->folder);
	snprintf(h->path, sizeof(h->path), "%s/%s", h->folder, h->k->file);
	return 0;
}

static int open_hook(struct hook *h, const struct gp_options *o, struct gp_error *err)
{
	struct pk_error e;
	int r;

	*h = (struct hook){ .o = o, .pk = { .lock_fd = -1 } };
	r = find_kind(h, err);
	if (r)
		return r;
	/* of kernel-install nothing else need be there */
	if (o->dry_run && access(h->tree, F_OK))
		return 0;
	if (pk_os->mkdir(h->tree, 0755) && errno != EEXIST)
		return gp_system(err, -errno, "make", h->tree);
	r = pk_tree_open(&h->pk, h->tree, &e);
	return r ? gp_from_pk(err, r, &e, h->tree, "") : 0;
}

static int plan_hook(const struct hook *h, const char *set, struct pk_plan *plan,
		     struct gp_error *err)
{
	*plan = (struct pk_plan){ .set = strdup(set), .c = calloc(1, sizeof(*plan->c)), .n = 1 };
	if (!plan->set || !plan->c ||
	    asprintf(&plan->c->path, "%s/%s", h->k->folder, h->k->file) < 0)
		return gp_system(err, -ENOMEM, "plan", h->path);
	plan->c->after = strdup(h->k->text);
	if (!plan->c->after)
		return gp_system(err, -ENOMEM, "plan", h->path);
	plan->c->after_len = strlen(plan->c->after);
	plan->c->mode = h->k->mode;
	pk_sha256(plan->c->after, plan->c->after_len, plan->key);
	return 0;
}

static int remove_folder(const struct hook *h, struct gp_error *err)
{
	if (pk_os->rmdir(h->folder) && errno != ENOTEMPTY && errno != ENOENT && errno != EEXIST)
		return gp_system(err, -errno, "remove", h->folder);
	return 0;
}

/* 1: it was not there */
static int take_away(struct hook *h, struct gp_error *err)
{
	bool folder = h->pk.state != PK_PRISTINE && !strcmp(h->pk.set, SET_FOLDER);
	struct pk_error e;
	int r;

	if (h->pk.state == PK_PRISTINE)
		return 1;
	r = pk_revert(&h->pk, &e);
	if (r)
		return gp_from_pk(err, r, &e, h->path, "");
	return folder ? remove_folder(h, err) : 0;
}

/* 1: it is there already */
static int put_in_place(struct hook *h, struct gp_error *err)
{
	const char *set = SET;
	struct pk_plan plan;
	struct pk_error e;
	int r;

	r = plan_hook(h, set, &plan, err);
	/* of an older version: that one goes first */
	if (!r && h->pk.state == PK_APPLIED && strcmp(h->pk.key, plan.key))
		r = take_away(h, err);
	if (!r && h->pk.state == PK_PRISTINE && !access(h->path, F_OK))
		r = gp_refuse(err, GP_FOREIGN, h->path, 0, "", "no such file",
			      "one that is not ours");
	if (!r && h->pk.state == PK_PRISTINE) {
		if (!pk_os->mkdir(h->folder, 0755))
			set = SET_FOLDER;
		else if (errno != EEXIST)
			r = gp_system(err, -errno, "make", h->folder);
	}
	if (!r && !strcmp(set, SET_FOLDER)) {
		pk_plan_free(&plan);
		r = plan_hook(h, set, &plan, err);
	}
	if (!r) {
		r = pk_apply(&h->pk, &plan, &e);
		if (r < 0)
			gp_from_pk(err, r, &e, h->path, "");
		if (r < 0 && !strcmp(set, SET_FOLDER))
			pk_os->rmdir(h->folder);
	}
	pk_plan_free(&plan);
	return r;
}

static void say(const struct hook *h, bool on, bool changed)
{
	const char *dry = h->o->dry_run ? "would be " : "";

	if (h->o->json)
		printf("{ \"file\": \"%s\", \"kind\": \"%s\", \"present\": %s, \"changed\": %s }\n",
		       h->path, h->k->name, (h->o->dry_run ? on != changed : on) ? "true" : "false",
		       changed && !h->o->dry_run ? "true" : "false");
	else if (!changed)
		printf("%s: %s\n", h->path, on ? "already there" : "not there");
	else
		printf("%s: %s%s (hook of %s)\n", h->path, dry, on ? "written" : "removed",
		       h->k->name);
}

static int hook_file(const struct gp_options *o, bool on)
{
	struct gp_error err;
	struct hook h;
	int r = open_hook(&h, o, &err);

	if (!r && o->dry_run) {
		say(&h, on, on == (h.pk.state == PK_PRISTINE));
	} else if (!r) {
		r = on ? put_in_place(&h, &err) : take_away(&h, &err);
		if (r >= 0) {
			say(&h, on, !r);
			r = 0;
		}
	}
	pk_tree_close(&h.pk);
	return r ? gp_fail(&err, o->json) : GP_EXIT_OK;
}

bool gp_hook_there(const char *root)
{
	const struct gp_options o = { .root = root };
	struct hook h = { .o = &o };
	struct gp_error err;

	return !find_kind(&h, &err) && !access(h.path, F_OK);
}

/* ---- what the hook does ---- */

/* where a module of this name is below lib/modules/V, whatever its compression; "": nowhere */
static void find_module(const char *root, const char *kernel, const char *name, char *out,
			size_t len)
{
	char dir[512];
	char *dirs[] = { dir, NULL };
	size_t n = strlen(name);
	FTSENT *e;
	FTS *fts;

	*out = '\0';
	snprintf(dir, sizeof(dir), "%.300s/lib/modules/%.100s", root, kernel);
	fts = fts_open(dirs, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	while (fts && !*out && (e = fts_read(fts)))
		if (e->fts_info == FTS_F && !strncmp(e->fts_name, name, n) &&
		    !strncmp(e->fts_name + n, ".ko", 3))
			snprintf(out, len, "%s", e->fts_path + strlen(root));
	if (fts)
		fts_close(fts);
}

static void say_module(const char *root, const char *kernel, const char *name, const char *or)
{
	char at[600];

	find_module(root, kernel, name, at, sizeof(at));
	if (*at)
		printf("  module %s: %s\n", name, at);
	else
		printf("  module %s: this kernel has none: dkms autoinstall -k %s%s\n", name, kernel,
		       or);
}

/* modules of ours are of one kernel: a new one has the package's again */
static void say_installed(const char *root, const char *kernel)
{
	char other[256];
	bool mine = false;

	gp_installed(root, kernel, &mine, other, sizeof(other));
	if (mine)
		puts("  patched modules: in place for this kernel");
	else if (*other)
		printf("  patched modules: of kernel %s only: gdspatch build --kernel %s TREE, then gdspatch install --kernel %s TREE\n",
		       other, kernel, kernel);
	else
		puts("  patched modules: none, of any kernel");
}

static void say_source(void *arg, const char *path, const struct gp_seen *seen)
{
	const char *root = arg;

	printf("  source %s: %s%s%s", path + strlen(root), gp_state_name[seen->state],
	       seen->set ? " " : "", seen->set ? gp_set_name[seen->set] : "");
	if (seen->why.id != GP_OK)
		printf(" (%s: gdspatch inspect %s)", gp_id_name(seen->why.id), path + strlen(root));
	putchar('\n');
}

static void say_doctor(const char *root)
{
	struct gc_machine *m = malloc(sizeof(*m));
	struct gc_report r;

	if (!m || gc_machine_read(m, root, NULL, 0) || gc_doctor(m, &r)) {
		puts("  gdscheck: it cannot judge this machine: run it by itself");
		free(m);
		return;
	}
	printf("  gdscheck, on the kernel that runs: %u FAIL, %u WARN, %u OK, %u SKIP\n",
	       r.count[GC_FAIL], r.count[GC_WARN], r.count[GC_OK], r.count[GC_SKIP]);
	if (r.first)
		printf("  next: %s: %s\n", r.first->check->id, r.first->remedy);
	else
		puts("  next: reboot into it, then prove it: gdscheck --prove FILE");
	gc_report_free(&r);
	free(m);
}

static int run_hook(const struct gp_options *o)
{
	char names[MP_NAMES][64], running[128] = "";
	const char *kernel = o->kernel;
	int n = mp_module_names(o->root, names);

	if (!kernel) {
		gp_running_kernel(o->root, running, sizeof(running));
		kernel = running;
	}
	if (!*kernel) {
		gp_note("which kernel? --kernel V is missing, and /proc does not tell one");
		return GP_EXIT_USAGE;
	}
	printf("OpenGDS, of kernel %s:\n", kernel);
	for (int i = 0; i < n; i++)
		say_module(o->root, kernel, names[i], ", or the package of its modules");
	say_module(o->root, kernel, "nvidia-fs", "");
	say_installed(o->root, kernel);
	gp_each_source(o->root, say_source, (void *)o->root);
	say_doctor(o->root);
	return GP_EXIT_OK;
}

int gp_cmd_hook(const struct gp_options *o, const char *what)
{
	bool run = !strcmp(what, "run");

	if (o->kernel && (!run || !*o->kernel || strchr(o->kernel, '/'))) {
		gp_note("--kernel V goes with hook run, and is a kernel's release");
		return GP_EXIT_USAGE;
	}
	if (run && (o->json || o->dry_run)) {
		gp_note("hook run takes neither --json nor --dry-run: gdspatch result is for programs");
		return GP_EXIT_USAGE;
	}
	if (run)
		return run_hook(o);
	if (!strcmp(what, "install") || !strcmp(what, "remove"))
		return hook_file(o, what[0] == 'i');
	gp_note("hook install, hook remove or hook run");
	return GP_EXIT_USAGE;
}
