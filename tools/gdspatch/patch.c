// SPDX-License-Identifier: MIT
/*
 * patch.c - the state of a tree, and what the commands of mode P make of it.
 *
 * pristine -> applied and back are the only ways; every other request names the state.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "gdspatch.h"

const char *const gp_state_name[] = { "pristine", "applied", "foreign", "mixed", "unknown" };

void gp_seen_free(struct gp_seen *seen)
{
	gp_tree_free(&seen->tree);
}

/* how many sites are edited, for the message */
static int edited(const struct gp_tree *t)
{
	int n = 0;

	for (enum gp_site s = 0; s < GP_NR_SITES; s++)
		n += t->site[s].state == GP_EDITED;
	return n;
}

/* Also for a tree that is refused: then the state is unknown, and why. */
int gp_look(struct gp_seen *seen, const struct pk_tree *pk, const char *root)
{
	int r;

	*seen = (struct gp_seen){ .state = GP_ST_UNKNOWN };
	r = gp_tree_read(&seen->tree, root, &seen->why);
	if (pk->state == PK_CHANGED)
		return gp_from_pk(&seen->why, -EBADMSG, &pk->changed, root, "");
	if (r)
		return r;
	if (!gp_set_found(&seen->tree, &seen->set)) {
		seen->state = GP_ST_MIXED;
		return gp_refuse(&seen->why, GP_MIXED_STATE, root, 0, "",
				 "no site of a set edited, or all", "%d edited",
				 edited(&seen->tree));
	}
	if (pk->state == PK_APPLIED && !strcmp(pk->set, gp_set_name[seen->set])) {
		seen->state = GP_ST_APPLIED;
	} else if (pk->state == PK_APPLIED) {
		return gp_refuse(&seen->why, GP_OTHER_SET, root, 0, "", gp_set_name[seen->set],
				 "a manifest of set %s", pk->set);
	} else if (seen->set == GP_NO_SET) {
		seen->state = GP_ST_PRISTINE;
	} else {
		seen->state = GP_ST_FOREIGN;
		return gp_refuse(&seen->why, GP_FOREIGN, root, 0, "", "an unpatched tree",
				 "the edits of set %s, and no manifest of ours",
				 gp_set_name[seen->set]);
	}
	return 0;
}

/* opens the tree (a run that died is finished or undone first) and looks */
static int open_tree(struct pk_tree *pk, struct gp_seen *seen, const char *root,
		     struct gp_error *err)
{
	struct pk_error e;
	int r = pk_tree_open(pk, root, &e);

	if (r)
		return gp_from_pk(err, r, &e, root, "");
	gp_look(seen, pk, root);
	return 0;
}

static void close_tree(struct pk_tree *pk, struct gp_seen *seen)
{
	gp_seen_free(seen);
	pk_tree_close(pk);
}

/* a tree of another release than the driver that runs may be meant: told, not refused */
static void compare_running(const struct gp_options *o, const char *version)
{
	struct facts_gpu_driver running;

	if (facts_gpu_driver(o->root, &running))
		return;
	if (strcmp(running.version, version))
		gp_note("warning: the running driver is %s, this tree is %s: user space must be of the tree's release",
			running.version, version);
	if (!running.open)
		gp_note("warning: the running driver is the closed flavour; modules of this tree take its place");
}

int gp_cmd_inspect(const struct gp_options *o, const char *root)
{
	struct gp_seen seen;
	struct gp_error err;
	struct pk_tree pk;
	int r;

	if (open_tree(&pk, &seen, root, &err))
		return gp_fail(&err, o->json);
	if (!o->json)
		compare_running(o, seen.tree.version);
	gp_report_seen(&seen, root, o->json);
	r = seen.state <= GP_ST_APPLIED ? GP_EXIT_OK : GP_EXIT_REFUSED;
	close_tree(&pk, &seen);
	return r;
}

/* can this set be put on this tree now? 1: it is there already */
static int ready(const struct gp_options *o, const struct gp_seen *seen, enum gp_set set,
		 struct gp_error *err)
{
	const char *root = seen->tree.root;

	if (seen->state == GP_ST_APPLIED && seen->set == set)
		return 1;
	if (seen->state == GP_ST_APPLIED)
		return gp_refuse(err, GP_OTHER_SET, root, 0, "", "an unpatched tree", "set %s",
				 gp_set_name[seen->set]);
	if (seen->state != GP_ST_PRISTINE &&
	    !(seen->state == GP_ST_FOREIGN && o->adopt && seen->set == set)) {
		*err = seen->why;
		return -EBADMSG;
	}
	if (seen->state == GP_ST_PRISTINE && o->adopt)
		return gp_refuse(err, GP_NOT_APPLIED, root, 0, "", "edits to take over", "none");
	return gp_set_available(&seen->tree, set, err);
}

/* sets that would change nothing on this machine; only when something is to be written */
static int worthwhile(const struct gp_options *o, const struct gp_seen *seen, enum gp_set set,
		      struct gp_error *err)
{
	if (seen->state == GP_ST_FOREIGN)
		return 0;
	if (set == GP_BIF)
		return gp_refuse(
			err, GP_NOTHING_TO_DO, seen->tree.root, 0, "bif", "",
			"registry keys do the same without a patch: `gdspatch keys --set gpu-gpu`");
	if (seen->tree.row->gb20x && gp_only_gb20x(o->root))
		return gp_refuse(
			err, GP_NOTHING_TO_DO, seen->tree.root, 0, gp_set_name[set], "",
			"all GPUs of this machine (root `%s`) are of the GB20x family, for which release %s has the functions already",
			*o->root ? o->root : "/", seen->tree.version);
	return 0;
}

static int make_plan(const struct gp_seen *seen, enum gp_set set, struct pk_plan *plan,
		     struct gp_error *err)
{
	if (seen->state == GP_ST_FOREIGN)
		return gp_plan_back(&seen->tree, set, plan, err);
	return gp_plan(&seen->tree, set, plan, err);
}

static int show_plan(const struct gp_options *o, const struct gp_seen *seen, enum gp_set set,
		     struct gp_error *err)
{
	struct pk_buf diff = { 0 };
	struct pk_plan plan;
	int r = make_plan(seen, set, &plan, err);

	if (r)
		return r;
	r = pk_plan_diff(&plan, "", &diff);
	if (r)
		gp_system(err, r, "make the diff of", seen->tree.root);
	else
		gp_report_plan(seen, &plan, set, diff.data ? diff.data : "", o->json);
	pk_buf_free(&diff);
	pk_plan_free(&plan);
	return r;
}

/* the result is looked at as if it were anybody's: what is not applied(set) goes back */
static int check_result(struct pk_tree *pk, const char *root, enum gp_set set, struct gp_error *err)
{
	struct gp_seen after;
	struct pk_error e;
	int r = gp_look(&after, pk, root);

	if (!r && (after.state != GP_ST_APPLIED || after.set != set))
		r = gp_refuse(&after.why, GP_MIXED_STATE, root, 0, "", gp_set_name[set], "%s",
			      gp_state_name[after.state]);
	*err = after.why;
	gp_seen_free(&after);
	if (r)
		pk_revert(pk, &e);
	return r;
}

static int do_apply(const struct gp_options *o, struct pk_tree *pk, const struct gp_seen *seen,
		    enum gp_set set, struct gp_error *err)
{
	struct pk_plan plan;
	struct pk_error e;
	int r;

	r = worthwhile(o, seen, set, err);
	r = r ? r : make_plan(seen, set, &plan, err);
	if (r)
		return r;
	if (seen->state == GP_ST_FOREIGN)
		r = pk_adopt(pk, &plan, &e);
	else
		r = pk_apply(pk, &plan, &e);
	pk_plan_free(&plan);
	if (r)
		return gp_from_pk(err, r, &e, seen->tree.root, "");
	return check_result(pk, seen->tree.root, set, err);
}

static int plan_or_apply(const struct gp_options *o, const char *root, bool write)
{
	enum gp_set set = gp_set_of(o->set ? o->set : "bar1p2p");
	struct gp_seen seen;
	struct gp_error err;
	struct pk_tree pk;
	int r;

	if (set == GP_NO_SET) {
		gp_note("no set `%s`: one of bif, bar1p2p, gpu-gpu", o->set);
		return GP_EXIT_USAGE;
	}
	r = open_tree(&pk, &seen, root, &err);
	if (r)
		return gp_fail(&err, o->json);
	r = ready(o, &seen, set, &err);
	if (!r && !o->json)
		compare_running(o, seen.tree.version);
	if (r == 1)
		printf(o->json ? "{ \"state\": \"applied\", \"set\": \"%s\", \"changed\": false }\n"
			       : "set %s: already applied\n",
		       gp_set_name[set]);
	else if (!r && !write)
		r = show_plan(o, &seen, set, &err);
	else if (!r)
		r = do_apply(o, &pk, &seen, set, &err);
	if (!r && write && o->json) {
		printf("{ \"state\": \"applied\", \"set\": \"%s\", \"changed\": true }\n",
		       gp_set_name[set]);
	} else if (!r && write) {
		printf("set %s: %s\n", gp_set_name[set],
		       seen.state == GP_ST_FOREIGN ? "taken over" : "applied");
		gp_print_set(set);
		gp_print_risks();
		gp_print_after();
	}
	r = r < 0 ? gp_fail(&err, o->json) : GP_EXIT_OK;
	close_tree(&pk, &seen);
	return r;
}

int gp_cmd_plan(const struct gp_options *o, const char *root)
{
	return plan_or_apply(o, root, false);
}

int gp_cmd_apply(const struct gp_options *o, const char *root)
{
	return plan_or_apply(o, root, !o->dry_run);
}

int gp_cmd_verify(const struct gp_options *o, const char *root)
{
	struct gp_seen seen;
	struct gp_error err;
	struct pk_tree pk;
	int r = GP_EXIT_OK;

	if (open_tree(&pk, &seen, root, &err))
		return gp_fail(&err, o->json);
	err = seen.why;
	if (seen.state == GP_ST_PRISTINE)
		gp_refuse(&err, GP_NOT_APPLIED, root, 0, "", "a set", "an unpatched tree");
	else if (seen.state == GP_ST_APPLIED && o->set && strcmp(o->set, gp_set_name[seen.set]))
		gp_refuse(&err, GP_OTHER_SET, root, 0, "", o->set, "set %s", gp_set_name[seen.set]);
	if (err.id != GP_OK)
		r = gp_fail(&err, o->json);
	else if (o->json)
		gp_report_seen(&seen, root, true);
	else
		printf("set %s: applied, every site as it should be\n", gp_set_name[seen.set]);
	close_tree(&pk, &seen);
	return r;
}

int gp_cmd_revert(const struct gp_options *o, const char *root)
{
	struct gp_error err;
	struct pk_tree pk;
	struct pk_error e;
	int r;

	r = pk_tree_open(&pk, root, &e);
	if (!r) {
		r = pk_revert(&pk, &e);
		pk_tree_close(&pk);
	}
	if (r) {
		gp_from_pk(&err, r, &e, root, "");
		return gp_fail(&err, o->json);
	}
	puts(o->json ? "{ \"state\": \"pristine\", \"changed\": true }"
		     : "reverted, byte for byte");
	return GP_EXIT_OK;
}
