// SPDX-License-Identifier: MIT
/* build.c - builds the modules of a tree for a kernel; nothing outside the tree is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "modules.h"

/* an unpatched tree can be built as well: told, not refused */
static int check_tree(const char *tree, struct gp_error *err)
{
	struct gp_seen seen;
	struct pk_tree pk;
	struct pk_error e;
	int r = pk_tree_open(&pk, tree, &e);

	if (r)
		return gp_from_pk(err, r, &e, tree, "");
	r = gp_look(&seen, &pk, tree);
	*err = seen.why;
	if (!r && seen.state == GP_ST_PRISTINE)
		gp_note("warning: %s is unpatched: `gdspatch apply` comes first", tree);
	gp_seen_free(&seen);
	pk_tree_close(&pk);
	return r;
}

int gp_cmd_build(const struct gp_options *o, const char *tree)
{
	char uname[128], source[600], jobs[16];
	const char *argv[] = { "make", "-C", tree, "modules", uname, jobs, NULL, NULL };
	struct gm_modules ms = { 0 };
	struct gp_error err;
	int r;

	snprintf(uname, sizeof(uname), "KERNEL_UNAME=%s", o->kernel);
	snprintf(jobs, sizeof(jobs), "-j%u", facts_cpus(""));
	snprintf(source, sizeof(source), "SYSSRC=%s/lib/modules/%s/build", o->root, o->kernel);
	if (*o->root)
		argv[6] = source;
	r = check_tree(tree, &err);
	if (!r && o->dry_run) {
		for (int i = 0; argv[i]; i++)
			printf("%s%s", i ? " " : "", argv[i]);
		putchar('\n');
		return GP_EXIT_OK;
	}
	r = r ? r : gp_exec(argv, &err);
	r = r ? r : gm_find(&ms, o, tree, &err);
	if (r) {
		gm_free(&ms);
		return gp_fail(&err, false);
	}
	for (size_t i = 0; i < ms.n; i++)
		printf("%s.ko: built for %s\n", ms.m[i].name, o->kernel);
	gm_free(&ms);
	return GP_EXIT_OK;
}
