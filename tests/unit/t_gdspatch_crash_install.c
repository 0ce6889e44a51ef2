// SPDX-License-Identifier: MIT
/*
 * t_gdspatch_crash_install.c - install and uninstall die, or are refused a write, at every call
 * that changes something and at every program that they run: the same again goes to the end,
 * taking back gives what was there first, modules, depmod's list and initramfs, to the byte.
 */
#include "gdspatch_crash.h"

static char install[300], uninstall[300];

/* after a death; the root is the old one again when this returns */
static void settle_modules(const char *old, const char *new, bool on)
{
	char *now;

	if (on) {
		/* the same again goes to the end */
		OK("%s", install);
		now = snapshot(root);
		assert_same(now, new);
		free(now);
		OK("%s", uninstall);
	} else if (run("%s", uninstall) && !said("E-NOT-APPLIED")) {
		/* back at once: there may be nothing to take back */
		fail_msg("%s", err_text);
	}
	now = snapshot(root);
	assert_same(now, old);
	free(now);
}

static void t_modules(void **state)
{
	int before = total, status;
	char *old, *new;

	snprintf(install, sizeof(install), "install --kernel " KERNEL " --root %s %s", root,
		 tree_dir);
	snprintf(uninstall, sizeof(uninstall), "uninstall --kernel " KERNEL " --root %s", root);
	fresh("");
	old = snapshot(root);
	built();
	OK("%s", install);
	new = snapshot(root);
	OK("%s", uninstall);
	for (int w = 0; w < 2; w++)
		for (int f = DIES; f <= FAILS; f++) {
			int n;

			for (n = 0;; n++) {
				if (w)
					OK("%s", install);
				if (!struck(f, n, w ? uninstall : install, &status))
					break;
				settle_modules(old, new, n % 2);
			}
			settle_modules(old, new, false);
			assert_true(n > 30);
		}
	print_message("modules: %d deaths and refused writes\n", total - before);
	free(old);
	free(new);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(t_modules) };

	return cmocka_run_group_tests(tests, root_setup, fixture_teardown);
}
