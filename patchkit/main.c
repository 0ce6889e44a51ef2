// SPDX-License-Identifier: MIT
/*
 * main.c - the command patchkit.
 *
 * Exit status: 0 done (or nothing to do), 1 the system failed, 2 usage, 3 refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchkit.h"

enum { EXIT_SYSTEM = 1, EXIT_USAGE = 2, EXIT_REFUSED = 3 };

static const char usage[] =
	"usage: patchkit plan   [--prefix P] SET ROOT    show the edits as a diff, change nothing\n"
	"       patchkit apply  [--prefix P] SET ROOT    make them, all or none\n"
	"       patchkit verify SET ROOT                 are they there, unchanged?\n"
	"       patchkit revert ROOT                     take them back, byte for byte\n"
	"       patchkit status ROOT                     what is applied\n"
	"--prefix P: put P (as drivers/nvme/host/) before the paths of the diff\n";

static int fail(const struct pk_error *err)
{
	fprintf(stderr, "patchkit: %s: %s; %s\n", pk_id_name(err->id), err->text, pk_id_next(err->id));
	return err->id == PK_E190_SYSTEM ? EXIT_SYSTEM : EXIT_REFUSED;
}

/* applied: by this very set? */
static bool ours(const struct pk_tree *t, const struct pk_set *set)
{
	return t->state == PK_APPLIED && !strcmp(t->key, pk_set_key(set));
}

static int verify(const struct pk_tree *t, const struct pk_set *set)
{
	struct pk_error err;

	if (t->state == PK_CHANGED)
		return fail(&t->changed);
	if (t->state == PK_PRISTINE)
		pk_refuse(&err, PK_E115_NOT_APPLIED, "%s:1: no set is applied", t->root);
	else if (!ours(t, set))
		pk_refuse(&err, PK_E113_OTHER_SET, "%s:1: set %s is applied, not this version of %s",
			  t->root, t->set, pk_set_name(set));
	else
		return printf("%s: set %s is applied\n", t->root, t->set) < 0 ? EXIT_SYSTEM : 0;
	return fail(&err);
}

static int plan_or_apply(struct pk_tree *t, const struct pk_set *set, bool apply,
			 const char *prefix)
{
	struct pk_buf diff = { 0 };
	struct pk_plan plan = { 0 };
	struct pk_error err;
	int r;

	if (ours(t, set)) {
		printf("%s: set %s: already applied\n", t->root, t->set);
		return 0;
	}
	if (t->state == PK_CHANGED)
		return fail(&t->changed);
	if (t->state == PK_APPLIED)
		return verify(t, set);
	r = pk_set_plan(set, t->root, &plan, &err);
	if (!r && apply)
		r = pk_apply(t, &plan, &err);
	if (!r && !apply) {
		r = pk_plan_diff(&plan, prefix, &diff);
		if (r)
			pk_system(&err, r, "make the diff of", t->root);
		else if (diff.len && fwrite(diff.data, 1, diff.len, stdout) != diff.len)
			r = pk_system(&err, -EIO, "write the diff of", t->root);
	}
	if (!r && apply)
		printf("%s: set %s applied to %zu files\n", t->root, plan.set, plan.n);
	pk_buf_free(&diff);
	pk_plan_free(&plan);
	return r ? fail(&err) : 0;
}

static int with_set(const char *cmd, const char *set_path, const char *root, const char *prefix)
{
	struct pk_set *set;
	struct pk_tree t;
	struct pk_error err;
	int r;

	if (pk_set_load(&set, set_path, &err))
		return fail(&err);
	if (pk_tree_open(&t, root, &err)) {
		r = fail(&err);
	} else {
		if (!strcmp(cmd, "verify"))
			r = verify(&t, set);
		else
			r = plan_or_apply(&t, set, !strcmp(cmd, "apply"), prefix);
		pk_tree_close(&t);
	}
	pk_set_free(set);
	return r;
}

static int without_set(const char *cmd, const char *root)
{
	static const char *const states[] = { "pristine", "applied", "changed" };
	struct pk_tree t;
	struct pk_error err;
	int r = 0;

	if (pk_tree_open(&t, root, &err))
		return fail(&err);
	if (!strcmp(cmd, "status")) {
		printf("%s%s%s\n", states[t.state], t.set ? " " : "", t.set ? t.set : "");
		if (t.state == PK_CHANGED)
			r = fail(&t.changed);
	} else if (pk_revert(&t, &err)) {
		r = fail(&err);
	} else {
		printf("%s: reverted\n", root);
	}
	pk_tree_close(&t);
	return r;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "prefix", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *prefix = "", *cmd;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'p') {
			prefix = optarg;
		} else {
			fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : EXIT_USAGE;
		}
	}
	cmd = optind < argc ? argv[optind] : "";
	if (argc - optind == 3 &&
	    (!strcmp(cmd, "plan") || !strcmp(cmd, "apply") || !strcmp(cmd, "verify")))
		return with_set(cmd, argv[optind + 1], argv[optind + 2], prefix);
	if (argc - optind == 2 && (!strcmp(cmd, "revert") || !strcmp(cmd, "status")))
		return without_set(cmd, argv[optind + 1]);
	fputs(usage, stderr);
	return EXIT_USAGE;
}
