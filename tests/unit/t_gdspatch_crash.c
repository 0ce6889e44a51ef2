// SPDX-License-Identifier: MIT
/*
 * t_gdspatch_crash.c - apply, revert and --adopt die, or are refused a write, at every call that
 * changes something: the tree is as before or as after, the next run goes on, and what is taken
 * back is what was there first, to the byte.
 */
#include "gdspatch_crash.h"

static const char *const set = "gpu-gpu";
static char *pristine, *applied;

/* after a death: opening finishes or undoes; the tree is pristine again when this returns */
static bool settle_tree(bool thoroughly)
{
	bool is_new = !run("verify --set %s %s", set, tree_dir);
	char *now;

	if (!is_new && !said("E-NOT-APPLIED"))
		fail_msg("neither: %s", err_text);
	now = snapshot_but(tree_dir, ".patchkit");
	assert_same(now, is_new ? applied : pristine);
	free(now);
	if (thoroughly && !is_new)
		OK("apply --root %s --set %s %s", base, set, tree_dir);
	if (thoroughly || is_new)
		OK("revert %s", tree_dir);
	now = snapshot(tree_dir);
	assert_same(now, pristine);
	free(now);
	return is_new;
}

static void t_tree(void **state)
{
	char apply[200], revert[200];
	int status;

	unpack(layout("595"));
	pristine = snapshot(tree_dir);
	OK("apply --root %s --set %s %s", base, set, tree_dir);
	applied = snapshot_but(tree_dir, ".patchkit");
	OK("revert %s", tree_dir);
	snprintf(apply, sizeof(apply), "apply --root %s --set %s %s", base, set, tree_dir);
	snprintf(revert, sizeof(revert), "revert %s", tree_dir);
	for (int w = 0; w < 2; w++) {
		int news = 0, n;

		for (n = 0;; n++) {
			if (w)
				OK("%s", apply);
			if (!struck(DIES, n, w ? revert : apply, &status))
				break;
			news += settle_tree(n % 8 == 7);
		}
		/* both outcomes came up; what was not struck is done */
		assert_in_range(news, 5, n - 5);
		assert_true(settle_tree(false) != w);
		for (n = 0;; n++) {
			if (w)
				OK("%s", apply);
			if (!struck(FAILS, n, w ? revert : apply, &status))
				break;
			/* told as a read-only place, unless the edits were complete */
			assert_true(status == GP_EXIT_REFUSED || status == GP_EXIT_OK);
			settle_tree(false);
		}
		settle_tree(false);
	}
	print_message("source trees: %d deaths and refused writes\n", total);
	free(applied);
	(void)state;
}

/* the edits are there, the manifest is not: taking them over dies */
static void t_adopt(void **state)
{
	char line[200], meta[200], *now;
	int adopted = 0, n, before = total, status;

	snprintf(line, sizeof(line), "apply --root %s --adopt --set %s %s", base, set, tree_dir);
	snprintf(meta, sizeof(meta), "%s/.patchkit", tree_dir);
	for (n = 0;; n++) {
		OK("apply --root %s --set %s %s", base, set, tree_dir);
		assert_true(tree_remove(meta));
		if (!struck(DIES, n, line, &status))
			break;
		if (run("verify --set %s %s", set, tree_dir)) {
			assert_true(said("E-FOREIGN"));
			OK("%s", line);
		} else {
			adopted++;
		}
		OK("revert %s", tree_dir);
		now = snapshot(tree_dir);
		assert_same(now, pristine);
		free(now);
	}
	print_message("taken over: %d deaths\n", total - before);
	assert_true(adopted > 0 && n > 20);
	free(pristine);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_tree),
		cmocka_unit_test(t_adopt),
	};

	return cmocka_run_group_tests(tests, root_setup, fixture_teardown);
}
