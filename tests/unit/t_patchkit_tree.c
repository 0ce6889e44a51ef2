// SPDX-License-Identifier: MIT
/*
 * t_patchkit_tree.c - edit sets on files: all or nothing, revert byte for byte, and
 * everything odd is refused. Crashes: t_patchkit_crash.c.
 */
#include "t_patchkit_fixture.h"

static mode_t mode_of(const char *name)
{
	char path[200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void t_apply_revert(void **state)
{
	for (int i = 0; i < 2; i++) {
		if (!i)
			fresh();
		pk_os = i ? &pk_os_libc : &os_quick;
		must(apply());
		assert_true(new_files());
		assert_clean(true);
		assert_int_equal(mode_of("src/drv.c"), 0640);
		assert_int_equal(apply(), 1);
		assert_true(new_files());
		must(revert());
		assert_true(old_files());
		assert_clean(false);
		assert_int_equal(mode_of("src/drv.c"), 0640);
		refused(revert(), PK_E115_NOT_APPLIED);
	}
	pk_os = &os_quick;
	(void)state;
}

/* white space, comments and line ends are not meaning: the edits find their places */
static void t_other_shapes(void **state)
{
	char *crlf = malloc(2 * sizeof(drv)), *p = crlf;

	assert_non_null(crlf);
	for (const char *s = drv; *s; s++) {
		if (*s == '\n')
			*p++ = '\r';
		*p++ = *s;
	}
	*p = '\0';
	fresh_with(crlf, the_set);
	must(apply());
	assert_false(is("src/drv.c", drv_after));
	run("tr -d '\\r' <%1$s/root/src/drv.c >%1$s/x && ! grep -qv '\r$' %1$s/root/src/drv.c", base);
	run("mv %1$s/x %1$s/root/src/drv.c", base);
	assert_true(is("src/drv.c", drv_after));
	free(crlf);

	/* one sed script each: the text changes, the meaning does not */
	static const char *const same[] = {
		"s/^static void drv_unmap(/static void\\n\\ndrv_unmap(\\n\\t/",
		"s/req)$/req) {/; /^{$/d",
		"s/;$/ ; \\/* return drv_map(x); *\\//",
		"s/struct drv_request req;/struct\\tdrv_request\\n\\t\\treq;/",
		"1i #if 0\\nstatic int drv_map(void) { return simple(1); }\\n#endif",
		"1i const char *s = \"static int drv_map(int) { ret = simple(x); }\";",
		"s/^/\\n/",
		"s/#include \"drv.h\"/#  include \"drv.h\" \\/\\/ ours/",
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		char cmd[300];

		fresh();
		snprintf(cmd, sizeof(cmd), "sed -i '%s' %s/src/drv.c && cp %s/src/drv.c %s/was", same[i],
			 root, root, base);
		assert_int_equal(system(cmd), 0);
		if (apply())
			fail_msg("%s: %s: %s", same[i], pk_id_name(err.id), err.text);
		run("grep -q '#include \"hook.h\"' %1$s/root/src/drv.c && "
		    "test $(grep -c 'io->hook' %1$s/root/src/drv.c) = 1 && "
		    "test $(grep -c 'clever(dev, req)' %1$s/root/src/drv.c) = 1 && "
		    "test $(grep -c 'struct hook .hook' %1$s/root/src/drv.c) = 1", base);
		must(revert());
		run("cmp %1$s/was %1$s/root/src/drv.c", base);
	}
	(void)state;
}

/* a change of meaning at each anchor in turn: refused, and not one byte is written */
static void t_mutations(void **state)
{
	static const struct {
		const char *sed;
		enum pk_id id;
	} muts[] = {
		{ "s/drv_unmap/drv_free/", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/drv_map/drv_submit/", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/struct drv_io {/struct drv_iod {/", PK_E103_ANCHOR_NOT_FOUND },
		{ "/struct drv_request req;/d", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/struct drv_request req;/struct drv_request req, other;/", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/struct drv_request req;/&\\n&/", PK_E104_ANCHOR_AMBIGUOUS },
		{ "s/simple(/other(/", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/\\tret = simple.*/&\\n&/", PK_E104_ANCHOR_AMBIGUOUS },
		{ "s/\\tret = simple.*/\\/* & *\\//", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/\\tret = simple.*/\\tg(\"ret = simple(dev, req);\");/", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/\\tret = simple.*/#if 0\\n&\\n#endif/", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/#include \"drv.h\"/#include \"drv2.h\"/", PK_E103_ANCHOR_NOT_FOUND },
		{ "s/#include \"drv.h\"/&\\n&/", PK_E104_ANCHOR_AMBIGUOUS },
		{ "s/^static int drv_map(struct drv_dev .dev, /static int drv_map(/", PK_E106_SIGNATURE },
		{ "s/^static int drv_map(.*/static int drv_map(struct drv_dev *dev, struct drv_request *req, int x)/",
		  PK_E106_SIGNATURE },
		{ "$a static int drv_map(struct drv_dev *dev, struct drv_request *req) { return 1; }",
		  PK_E104_ANCHOR_AMBIGUOUS },
		{ "s/^{$/{ if (dev) return;/", PK_E107_LINE_SHARED },
		{ "1i static int vendor_hook;", PK_E110_FOREIGN },
		{ "s/#include \"drv.h\"/&\\n#include \"hook.h\"/", PK_E111_MIXED },
		{ "s/.*return ret;/\\/* &/", PK_E102_NOT_UNDERSTOOD },
		{ "$d", PK_E102_NOT_UNDERSTOOD },
	};

	for (size_t i = 0; i < sizeof(muts) / sizeof(*muts); i++) {
		char cmd[400];

		fresh();
		snprintf(cmd, sizeof(cmd), "cd %s && sed -i '%s' src/drv.c && cp -a %s %s.was", root,
			 muts[i].sed, root, root);
		assert_int_equal(system(cmd), 0);
		if (apply() >= 0 || err.id != muts[i].id)
			fail_msg("%s: expected %s, got %s %s", muts[i].sed, pk_id_name(muts[i].id),
				 pk_id_name(err.id), err.text);
		assert_memory_equal(err.text, "src/drv.c:", 10);
		run("diff -r %1$s/root %1$s/root.was && rm -r %1$s/root.was", base);
	}
	/* all files or none: the second one is the wrong one */
	fresh();
	put(root, "Makefile", "drv-y := main.o\n");
	refused(apply(), PK_E103_ANCHOR_NOT_FOUND);
	assert_true(is("src/drv.c", drv));
	assert_clean(false);
	(void)state;
}

static void t_states(void **state)
{
	/* the edits without our manifest */
	fresh();
	must(apply());
	run("rm -r %s/root/.patchkit %1$s/root/src/hook.h", base);
	refused(apply(), PK_E110_FOREIGN);

	/* the added file is there */
	fresh();
	put(root, "src/hook.h", hook_h);
	refused(apply(), PK_E109_FILE_EXISTS);
	assert_true(is("src/drv.c", drv));

	/* changed since: neither applied again nor reverted */
	fresh();
	must(apply());
	put(root, "Makefile", "mine\n");
	refused(apply(), PK_E112_CHANGED_SINCE);
	assert_memory_equal(err.text, "Makefile:", 9);
	refused(revert(), PK_E112_CHANGED_SINCE);
	assert_true(is("Makefile", "mine\n"));
	assert_true(is("src/drv.c", drv_after));

	/* another version of the set, and of a file it adds */
	fresh();
	must(apply());
	put(base, "set", "set other\nfile Makefile make\nafter-line drv-y += main.o\n|x\n");
	refused(apply(), PK_E113_OTHER_SET);
	put(base, "set", the_set);
	put(base, "hook.in", "struct hook2;\n");
	refused(apply(), PK_E113_OTHER_SET);
	assert_true(new_files());

	/* files that are not there, or no files */
	fresh();
	run("rm %s/root/src/drv.c", base);
	refused(apply(), PK_E101_NO_FILE);
	run("ln -s ../Makefile %s/root/src/drv.c", base);
	refused(apply(), PK_E116_PATH);
	run("rm -r %s/root", base);
	refused(apply(), PK_E101_NO_FILE);

	/* damaged manifest, journal of somebody who is elsewhere by now */
	fresh();
	must(apply());
	run("sed -i '$d' %s/root/.patchkit/manifest", base);
	refused(apply(), PK_E114_JOURNAL);
	(void)state;
}

/* somebody changes a file between the plan and the writing of it */
static void t_changed_under_us(void **state)
{
	struct pk_set *set;
	struct pk_plan plan;
	struct pk_tree t;

	fresh();
	must(pk_set_load(&set, set_path, &err));
	must(pk_tree_open(&t, root, &err));
	must(pk_set_plan(set, root, &plan, &err));
	put(root, "Makefile", "mine\n");
	refused(pk_apply(&t, &plan, &err), PK_E112_CHANGED_SINCE);
	pk_plan_free(&plan);
	pk_tree_close(&t);
	pk_set_free(set);
	assert_true(is("Makefile", "mine\n"));
	assert_true(is("src/drv.c", drv));
	assert_clean(false);
	(void)state;
}

/* files that somebody else changed just as the set would: taken over, then reverted like ours */
static void t_adopt(void **state)
{
	struct pk_change c = {
		.path = (char *)"src/drv.c", .before = (char *)drv, .before_len = strlen(drv),
		.after = (char *)drv_after, .after_len = strlen(drv_after),
	};
	struct pk_plan plan = { .set = (char *)"hook", .key = "k", .c = &c, .n = 1 };
	struct pk_tree t;

	/* other files than the plan's: nothing is left behind */
	fresh();
	must(pk_tree_open(&t, root, &err));
	refused(pk_adopt(&t, &plan, &err), PK_E112_CHANGED_SINCE);
	pk_tree_close(&t);
	assert_true(old_files());
	assert_clean(false);

	put(root, "src/drv.c", drv_after);
	must(pk_tree_open(&t, root, &err));
	must(pk_adopt(&t, &plan, &err));
	assert_int_equal(t.state, PK_APPLIED);
	refused(pk_adopt(&t, &plan, &err), PK_E113_OTHER_SET);
	pk_tree_close(&t);
	assert_true(is("src/drv.c", drv_after));
	must(pk_tree_open(&t, root, &err));
	assert_int_equal(t.state, PK_APPLIED);
	assert_string_equal(t.set, "hook");
	assert_string_equal(t.key, "k");
	pk_tree_close(&t);
	must(revert());
	assert_true(old_files());
	assert_clean(false);
	(void)state;
}

static void t_busy(void **state)
{
	struct pk_tree t;
	pid_t pid;
	int status;

	fresh();
	assert_int_equal(pk_tree_open(&t, root, &err), 0);
	pid = fork();
	if (!pid)
		_exit(apply() < 0 && err.id == PK_E118_BUSY ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pk_tree_close(&t);
	must(apply());
	(void)state;
}

static void t_set_syntax(void **state)
{
	static const struct {
		const char *set;
		enum pk_id id;
		const char *where;
	} bad[] = {
		{ "file a\n", PK_E117_SET_SYNTAX, ":1:" },
		{ "set a\nset b\n", PK_E117_SET_SYNTAX, ":2:" },
		{ "set a b\n", PK_E117_SET_SYNTAX, ":1:" },
		{ "set a\nforbid x\n", PK_E117_SET_SYNTAX, ":2:" },
		{ "set a\nfile f\njump x\n", PK_E117_SET_SYNTAX, ":3:" },
		{ "set a\nfile f\nbefore x\n|y\n", PK_E117_SET_SYNTAX, ":3:" },
		{ "set a\nfile f\nfirst-in x\n", PK_E117_SET_SYNTAX, ":3:" },
		{ "set a\nfile f\nforbid x\n|y\n", PK_E117_SET_SYNTAX, ":4:" },
		{ "set a\nfile f\nfile f\n", PK_E117_SET_SYNTAX, ":3:" },
		{ "set a\nfile f cobol\n", PK_E117_SET_SYNTAX, ":2:" },
		{ "set a\nadd f hook.in\n", PK_E117_SET_SYNTAX, ":2:" },
		{ "set a\nadd f from hook.in\nfirst-in x\n|y\n", PK_E117_SET_SYNTAX, ":3:" },
		{ "set a\nfile ../f\n", PK_E116_PATH, ":2:" },
		{ "set a\nfile b/../../f\n", PK_E116_PATH, ":2:" },
		{ "set a\nadd /etc/f from hook.in\n", PK_E116_PATH, ":2:" },
		{ "set a\nadd f from nothere\n", PK_E190_SYSTEM, "nothere" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		fresh_with(drv, bad[i].set);
		if (apply() >= 0 || err.id != bad[i].id || !strstr(err.text, bad[i].where))
			fail_msg("`%s`: %s %s", bad[i].set, pk_id_name(err.id), err.text);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_apply_revert),
		cmocka_unit_test(t_other_shapes),
		cmocka_unit_test(t_mutations),
		cmocka_unit_test(t_states),
		cmocka_unit_test(t_changed_under_us),
		cmocka_unit_test(t_adopt),
		cmocka_unit_test(t_busy),
		cmocka_unit_test(t_set_syntax),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
