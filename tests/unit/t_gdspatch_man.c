// SPDX-License-Identifier: MIT
/*
 * t_gdspatch_man.c - man/gdspatch.8: every command, option, set and refusal is in it, and its
 * examples run, one after the other, on a made-up machine; a page that is behind fails.
 */
#include "gdspatch_root.h"

static char *page;

static bool mentions(const char *fmt, const char *name)
{
	char text[100];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), fmt, name);
#pragma GCC diagnostic pop
	return strstr(page, text);
}

static void t_complete(void **state)
{
	for (size_t i = 0; options[i].name; i++)
		if (!mentions(".It Fl \\&-%s", options[i].name) &&
		    !mentions(" , Fl \\&-%s", options[i].name))
			fail_msg("the page does not have --%s", options[i].name);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!mentions(".It Cm %s\n", commands[i].name) &&
		    !mentions(".It Cm %s Fl", commands[i].name))
			fail_msg("the page does not have %s", commands[i].name);
	for (enum gp_set s = GP_BIF; s < GP_NR_SETS; s++)
		assert_true(mentions(".It Cm %s\n", gp_set_name[s]));
	for (int s = GP_ST_PRISTINE; s <= GP_ST_UNKNOWN; s++)
		assert_true(mentions(".Li %s", gp_state_name[s]));
	for (enum gp_id id = GP_OK + 1; id < GP_NR_IDS; id++)
		if (!mentions("%s", gp_id_name(id)))
			fail_msg("the page does not have %s", gp_id_name(id));
	(void)state;
}

/* an example as it is run here: the tree, the kernel and the root are ours */
static void example(const char *line)
{
	char here[600] = "", copy[200], *save = NULL;
	bool rooted = strncmp(line, "explain", 7) != 0;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		if (!strcmp(w, "open-gpu-kernel-modules"))
			w = tree_dir;
		else if (!strcmp(w, "6.12.48"))
			w = (char *)KERNEL;
		else if (!strcmp(w, "opengds-result.json"))
			w = (char *)"/dev/null";
		n += snprintf(here + n, sizeof(here) - n, "%s%s", n ? " " : "", w);
	}
	if (rooted)
		snprintf(here + n, sizeof(here) - n, " --root %s", root);
	OK("%s", here);
	assert_true(*out_text);
}

static void t_examples(void **state)
{
	static const char mark[] = "\n.Dl gdspatch ";
	char *before, *now;
	int n = 0;

	unpack(layout("595"));
	fresh(".xz");
	assert_true(tree_put(root, "usr/src/nvidia-595.45.04/dkms.conf", ""));
	assert_true(tree_put(root, "etc/modprobe.d/blacklist.conf", "blacklist nouveau\n"));
	assert_true(tree_put(root, "etc/kernel/postinst.d/dkms", "#!/bin/sh\n"));
	assert_true(tree_put(root, "proc/sys/kernel/osrelease", KERNEL "\n"));
	before = snapshot(base);
	for (const char *p = page; (p = strstr(p, mark)); n++) {
		char line[200];

		p += strlen(mark);
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
		example(line);
	}
	print_message("%d examples\n", n);
	assert_true(n >= 12);
	/* they take back what they do, but for what make left */
	now = snapshot_but(base, "kernel-open");
	assert_same(now, before);
	free(now);
	free(before);
	(void)state;
}

static int setup(void **state)
{
	size_t len;
	int r = root_setup(state);

	return r ? r : pk_read_file("man/gdspatch.8", &page, &len, NULL);
}

static int teardown(void **state)
{
	free(page);
	return fixture_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_complete),
		cmocka_unit_test(t_examples),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
