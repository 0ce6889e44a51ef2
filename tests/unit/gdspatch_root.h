/* SPDX-License-Identifier: MIT */
/*
 * gdspatch_root.h - for the tests of modules: a made-up root with a kernel and the driver's
 * modules, and what stands for the programs that gdspatch calls. A process takes milliseconds to
 * start, so most tests have them as a function; t_install runs real ones from PATH.
 */
#ifndef GDSPATCH_ROOT_H
#define GDSPATCH_ROOT_H

#include "gdspatch_fixture.h"

#define KERNEL	    "6.12.0-test"
#define MODULES	    "lib/modules/" KERNEL "/"
#define BUILT(name) name " built\nvermagic=" KERNEL " SMP\nstripped\n"

static char root[100], called[8192];
static const char *fails = ""; /* the program that fails */
static const char *other_kernel; /* what make builds for, in place of what it is told */

static inline void put_in_root(const char *path, const char *text)
{
	assert_true(tree_put(root, path, text));
}

static inline void append(const char *path, const char *text)
{
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline void fake_make(const char *dir, const char *uname)
{
	static const char *const names[] = { "nvidia", "nvidia-uvm", "nvidia-modeset" };

	uname = strchr(uname, '=') + 1;
	for (int i = 0; i < 3; i++) {
		char path[200], text[200];

		snprintf(path, sizeof(path), "kernel-open/%s.ko", names[i]);
		snprintf(text, sizeof(text), "%s built\nvermagic=%s SMP\n", names[i],
			 other_kernel ? other_kernel : uname);
		assert_true(tree_put(dir, path, text));
	}
}

/* a list of the modules with what they hold */
static inline void fake_depmod(void)
{
	char dir[200], path[300];
	char *list;
	FILE *f;

	snprintf(dir, sizeof(dir), "%s/" MODULES, root);
	snprintf(path, sizeof(path), "%smodules.dep", dir);
	unlink(path);
	list = snapshot_but(dir, ".patchkit");
	f = fopen(path, "w");
	assert_non_null(f);
	/* of the modules alone */
	for (char *p = list; *p; p += strcspn(p, "\n") + 1)
		if (memmem(p, strcspn(p, "\n"), ".ko", 3))
			fprintf(f, "%.*s\n", (int)strcspn(p, "\n"), p);
	assert_int_equal(fclose(f), 0);
	free(list);
}

static inline void fake_initramfs(void)
{
	char path[300], hash[65], *data;
	size_t len;

	snprintf(path, sizeof(path), "%s/" MODULES "modules.dep", root);
	assert_int_equal(pk_read_file(path, &data, &len, NULL), 0);
	pk_sha256(data, len, hash);
	free(data);
	put_in_root("boot/initrd", hash);
}

static inline int fake_exec(const char *const *argv, struct gp_error *err)
{
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	size_t n = strlen(called);
	char line[200];

	if (n > sizeof(called) / 2)
		n = 0;
	for (int i = 0; argv[i]; i++)
		n += snprintf(called + n, sizeof(called) - n, "%s%s", i ? " " : "", argv[i]);
	snprintf(called + n, sizeof(called) - n, "\n");
	if (!strcmp(fails, name)) {
		gp_refuse(err, GP_TOOL_FAILED, name, 0, "", "status 0", "status 1");
		return -ECHILD;
	}
	if (!strcmp(name, "make")) {
		fake_make(argv[2], argv[4]);
	} else if (!strcmp(name, "strip")) {
		append(argv[2], "stripped\n");
	} else if (!strcmp(name, "sign-file") || !strcmp(name, "kmodsign")) {
		snprintf(line, sizeof(line), "signed %s %s\n", argv[1], strrchr(argv[2], '/') + 1);
		append(argv[4], line);
	} else if (!strcmp(name, "depmod")) {
		fake_depmod();
	} else if (!strcmp(name, "chroot")) {
		fake_initramfs();
	} else {
		int r;

		gp_exec_hook = NULL;
		r = gp_exec(argv, err);
		gp_exec_hook = fake_exec;
		return r;
	}
	return 0;
}

/* an initramfs tool that the made-up root has */
static inline void make_tool(const char *path)
{
	char full[200];

	put_in_root(path,
		    "#!/bin/sh\n[ \"$FAIL\" != initramfs ] || exit 1\nmkdir -p \"$ROOT/boot\"\n"
		    "cksum <\"$ROOT/" MODULES "modules.dep\" >\"$ROOT/boot/initrd\"\n");
	snprintf(full, sizeof(full), "%s/%s", root, path);
	assert_int_equal(chmod(full, 0755), 0);
}

/* a root whose kernel has the driver's modules, compressed as said ("": not at all) */
static inline void fresh(const char *suffix)
{
	static const char *const names[] = { "nvidia", "nvidia-uvm" };
	char path[200], line[600];

	drop(root);
	called[0] = '\0';
	assert_int_equal(mkdir(root, 0755), 0);
	put_in_root(MODULES "kernel/fs/ext4.ko", "ext4");
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), MODULES "updates/dkms/%s.ko", names[i]);
		put_in_root(path, i ? "old uvm" : "old nvidia");
		snprintf(line, sizeof(line), "%s %s/%s",
			 !strcmp(suffix, ".xz") ? "xz -f" : "zstd -q -f --rm", root, path);
		if (*suffix)
			assert_int_equal(system(line), 0);
		snprintf(line, sizeof(line), "%s/%s%s", root, path, suffix);
		assert_int_equal(chmod(line, i ? 0640 : 0644), 0);
	}
	make_tool("usr/sbin/update-initramfs");
	fake_depmod();
	fake_initramfs();
}

/* a patched, built tree */
static inline void built(void)
{
	unpack(layout("575"));
	OK("apply --root %s %s", root, tree_dir);
	OK("build --kernel " KERNEL " --root %s %s", root, tree_dir);
}

static inline bool was_called(const char *fmt, const char *arg)
{
	char want[500];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(want, sizeof(want), fmt, arg);
#pragma GCC diagnostic pop
	return strstr(called, want);
}

/* what a module holds when it is unpacked; a static buffer */
static inline const char *module(const char *path)
{
	static char text[512];
	char line[400];
	size_t n;
	FILE *f;

	snprintf(line, sizeof(line), "%s %s/" MODULES "%s",
		 strstr(path, ".xz")	? "xz -dc"
		 : strstr(path, ".zst") ? "zstd -dqc"
					: "cat",
		 root, path);
	f = popen(line, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	assert_int_equal(pclose(f), 0);
	return text;
}

static inline int root_setup(void **state)
{
	int r = fixture_setup(state);

	snprintf(root, sizeof(root), "%s/root", base);
	setenv("TMPDIR", base, 1);
	gp_exec_hook = fake_exec;
	return r;
}

#endif /* GDSPATCH_ROOT_H */
