// SPDX-License-Identifier: MIT
/*
 * t_gdspatch_install.c - build, install and uninstall below a made-up root, with stand-ins for
 * make, strip, depmod, chroot, sign-file and update-initramfs: what is called, what ends up
 * where, the old modules back to the byte.
 */
#include "gdspatch_root.h"

static void put_script(const char *path, const char *text)
{
	char full[300];

	assert_true(tree_put(base, path, text));
	snprintf(full, sizeof(full), "%s/%s", base, path);
	assert_int_equal(chmod(full, 0755), 0);
}

/* real programs that stand for those of PATH; each writes its arguments into a log */
static void put_tools(void)
{
	char path[4096];

	put_script(
		"bin/make",
		"#!/bin/sh\necho \"make $*\" >>\"$T/log\"\n[ \"$FAIL\" != make ] || exit 2\n"
		"mkdir -p \"$2/kernel-open\"\n"
		"for m in nvidia nvidia-uvm nvidia-modeset; do\n"
		"	printf '%s built\\nvermagic=%s SMP\\n' $m \"${4#*=}\" >\"$2/kernel-open/$m.ko\"\n"
		"done\n");
	put_script("bin/strip", "#!/bin/sh\nprintf 'stripped\\n' >>\"$2\"\n");
	put_script(
		"bin/depmod",
		"#!/bin/sh\necho \"depmod $*\" >>\"$T/log\"\n"
		"cd \"$2/lib/modules/$3\" && find . -name '*.ko*' | sort | xargs cksum >modules.dep\n");
	put_script("bin/chroot", "#!/bin/sh\necho \"chroot $*\" >>\"$T/log\"\nexport ROOT=\"$1\"\n"
				 "t=$ROOT/usr/sbin/$2\nshift 2\nexec \"$t\" \"$@\"\n");
	snprintf(path, sizeof(path), "%s/bin:%s", base, getenv("PATH"));
	setenv("PATH", path, 1);
	setenv("T", base, 1);
}

static bool logged(const char *fmt, const char *arg)
{
	char path[200], *data;
	size_t len;
	bool yes;

	snprintf(path, sizeof(path), "%s/log", base);
	if (pk_read_file(path, &data, &len, NULL))
		return false;
	snprintf(called, sizeof(called), "%s", data);
	free(data);
	yes = was_called(fmt, arg);
	called[0] = '\0';
	return yes;
}

static void t_build(void **state)
{
	char source[200];

	fresh("");
	unpack(layout("575"));
	OK("build --kernel " KERNEL " --dry-run --root %s %s", root, tree_dir);
	assert_true(said("make -C ") && said(" modules KERNEL_UNAME=" KERNEL " -j"));
	assert_string_equal(called, "");
	OK("build --kernel " KERNEL " --root %s %s", root, tree_dir);
	assert_non_null(strstr(err_text, "is unpatched"));
	assert_true(said("nvidia-uvm.ko: built for " KERNEL));
	assert_true(was_called("make -C %s modules KERNEL_UNAME=" KERNEL " -j", tree_dir));
	snprintf(source, sizeof(source), "SYSSRC=%s/lib/modules/" KERNEL "/build", root);
	assert_true(was_called("%s", source));
	OK("apply --root %s %s", root, tree_dir);
	OK("build --kernel " KERNEL " --root %s %s", root, tree_dir);
	assert_null(strstr(err_text, "unpatched"));
	other_kernel = "6.1.0";
	REFUSED("E-WRONG-KERNEL", "build --kernel " KERNEL " --root %s %s", root, tree_dir);
	other_kernel = NULL;
	fails = "make";
	assert_int_equal(run("build --kernel " KERNEL " --root %s %s", root, tree_dir),
			 GP_EXIT_SYSTEM);
	assert_true(said("E-TOOL-FAILED") && said("make"));
	fails = "";
	REFUSED("E-NOT-A-TREE", "build --kernel " KERNEL " --root %s %s", root, root);
	/* half a patch is not built */
	assert_int_equal(edit(GP_F_BIF, " 0x11;", " BIF_P2P_NOT_OVERRIDEN;", 2), 2);
	REFUSED("E-HASH-CHANGED", "build --kernel " KERNEL " --root %s %s", root, tree_dir);
	(void)state;
}

static void t_install(void **state)
{
	static const char *const suffixes[] = { "", ".xz", ".zst" };

	for (int i = 0; i < 3; i++) {
		char *before, *after, *now, path[100], full[300];
		struct stat st;

		fresh(suffixes[i]);
		built();
		before = snapshot(root);
		OK("install --kernel " KERNEL " --dry-run --root %s %s", root, tree_dir);
		snprintf(path, sizeof(path), "would replace: updates/dkms/nvidia.ko%s",
			 suffixes[i]);
		assert_true(said(path) && said("would run: depmod -b ") &&
			    said("would run: chroot "));
		now = snapshot(root);
		assert_string_equal(now, before);
		free(now);

		OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
		assert_true(said("installed") && said("then run `gdscheck`"));
		snprintf(path, sizeof(path), "updates/dkms/nvidia-uvm.ko%s", suffixes[i]);
		assert_string_equal(module(path),
				    "nvidia-uvm built\nvermagic=" KERNEL " SMP\nstripped\n");
		snprintf(full, sizeof(full), "%s/" MODULES "%s", root, path);
		assert_int_equal(stat(full, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		/* one that no package had yet: beside nvidia.ko */
		snprintf(path, sizeof(path), "updates/dkms/nvidia-modeset.ko%s", suffixes[i]);
		assert_string_equal(module(path),
				    "nvidia-modeset built\nvermagic=" KERNEL " SMP\nstripped\n");
		assert_true(was_called("depmod -b %s " KERNEL "\n", root));
		assert_true(was_called("chroot %s update-initramfs -u -k " KERNEL "\n", root));

		/* again: nothing is written, no tool runs */
		after = snapshot(root);
		called[0] = '\0';
		OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
		assert_true(said("installed already"));
		now = snapshot(root);
		assert_string_equal(now, after);
		free(now);
		free(after);
		assert_false(was_called("depmod", ""));

		OK("uninstall --kernel " KERNEL " --dry-run --root %s", root);
		assert_false(was_called("depmod", ""));
		OK("uninstall --kernel " KERNEL " --root %s", root);
		now = snapshot(root);
		assert_string_equal(now, before);
		free(now);
		free(before);
		assert_true(was_called("depmod -b %s", root) && was_called("chroot %s", root));
		REFUSED("E-NOT-APPLIED", "uninstall --kernel " KERNEL " --root %s", root);
	}
	(void)state;
}

static void t_signed(void **state)
{
	static const char *const keys[][2] = {
		{ "var/lib/dkms/mok.key", "var/lib/dkms/mok.pub" },
		{ "var/lib/shim-signed/mok/MOK.priv", "var/lib/shim-signed/mok/MOK.der" },
		{ "etc/pki/akmods/private/private_key.priv",
		  "etc/pki/akmods/certs/public_key.der" },
	};
	static const char *const tools[] = {
		MODULES "build/scripts/sign-file",
		"usr/src/linux-headers-" KERNEL "/scripts/sign-file",
		NULL,
	};

	for (int i = 0; i < 3; i++) {
		char want[400];

		fresh(".xz");
		put_in_root(keys[i][0], "key");
		put_in_root(keys[i][1], "cert");
		if (i)
			put_in_root("boot/config-" KERNEL,
				    "CONFIG_A=y\nCONFIG_MODULE_SIG_HASH=\"sha512\"\n");
		if (tools[i])
			put_in_root(tools[i], "");
		built();
		OK("install --kernel " KERNEL " --dry-run --root %s %s", root, tree_dir);
		assert_true(said("stripped, signed, compressed"));
		OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
		snprintf(want, sizeof(want), "%s%s%s %s %s/%s %s/%s ", tools[i] ? root : "",
			 tools[i] ? "/" : "", tools[i] ? tools[i] : "kmodsign",
			 i ? "sha512" : "sha256", root, keys[i][0], root, keys[i][1]);
		assert_true(was_called("%s", want));
		/* stripped first, then signed, then packed */
		snprintf(want, sizeof(want),
			 "nvidia built\nvermagic=" KERNEL " SMP\nstripped\nsigned %s %s\n",
			 i ? "sha512" : "sha256", strrchr(keys[i][0], '/') + 1);
		assert_string_equal(module("updates/dkms/nvidia.ko.xz"), want);
	}
	(void)state;
}

static void t_refused(void **state)
{
	char *before, *now, path[300];

	fresh("");
	unpack(layout("575"));
	REFUSED("E-NO-MODULE", "install --kernel " KERNEL " --root %s %s", root, tree_dir);
	built();
	REFUSED("E-WRONG-KERNEL", "install --kernel 6.1.0 --root %s %s", root, tree_dir);
	put_in_root("lib/modules/6.1.0/kernel/a.ko", "a");
	REFUSED("E-WRONG-KERNEL", "install --kernel 6.1.0 --root %s %s", root, tree_dir);

	before = snapshot(root);
	snprintf(path, sizeof(path),
		 "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
	put_in_root(path, "\006\006\006\006\001");
	REFUSED("E-NO-KEY", "install --kernel " KERNEL " --root %s %s", root, tree_dir);
	assert_true(said("mokutil"));
	snprintf(path, sizeof(path), "%s/sys", root);
	assert_true(tree_remove(path));
	put_in_root(MODULES "extra/nvidia-uvm.ko", "another");
	REFUSED("E-MODULE-TWICE", "install --kernel " KERNEL " --root %s %s", root, tree_dir);
	assert_true(said("extra/nvidia-uvm.ko") && said("updates/dkms/nvidia-uvm.ko"));
	snprintf(path, sizeof(path), "%s/" MODULES "extra", root);
	assert_true(tree_remove(path));
	now = snapshot(root);
	assert_string_equal(now, before);
	free(now);
	free(before);

	/* a package replaced a module of ours: what is there now is not ours to remove */
	OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
	put_in_root(MODULES "updates/dkms/nvidia.ko", "a package's");
	REFUSED("E-HASH-CHANGED", "uninstall --kernel " KERNEL " --root %s", root);
	assert_true(said("updates/dkms/nvidia.ko"));
	assert_string_equal(module("updates/dkms/nvidia.ko"), "a package's");
	(void)state;
}

/* other modules than those that are in place */
static void t_other_build(void **state)
{
	char path[200];

	fresh("");
	built();
	OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
	snprintf(path, sizeof(path), "kernel-open/nvidia.ko");
	assert_true(tree_put(tree_dir, path, "another\nvermagic=" KERNEL " SMP\n"));
	REFUSED("E-OTHER-SET", "install --kernel " KERNEL " --root %s %s", root, tree_dir);
	assert_true(said("gdspatch uninstall"));
	(void)state;
}

/* no module of the driver yet: updates/, packed like the kernel's; and it goes again */
static void t_first(void **state)
{
	char *before, *now, path[300];

	fresh("");
	snprintf(path, sizeof(path), "%s/" MODULES "updates", root);
	assert_true(tree_remove(path));
	snprintf(path, sizeof(path), "%s/" MODULES "kernel/fs/ext4.ko", root);
	assert_int_equal(unlink(path), 0);
	put_in_root(MODULES "kernel/fs/ext4.ko.zst", "ext4");
	fake_depmod();
	fake_initramfs();
	before = snapshot(root);
	built();
	OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
	assert_string_equal(module("updates/nvidia.ko.zst"),
			    "nvidia built\nvermagic=" KERNEL " SMP\nstripped\n");
	OK("uninstall --kernel " KERNEL " --root %s", root);
	now = snapshot(root);
	assert_string_equal(now, before);
	free(now);
	free(before);
	(void)state;
}

/* Debian's file names; the three initramfs tools */
static void t_names(void **state)
{
	static const struct {
		const char *path, *call;
	} tools[] = {
		{ "usr/bin/dracut", "dracut --force --kver " KERNEL "\n" },
		{ "usr/bin/mkinitcpio", "mkinitcpio -P\n" },
		{ NULL, NULL },
	};
	char path[300];

	for (int i = 0; i < 3; i++) {
		fresh("");
		snprintf(path, sizeof(path), "%s/usr/sbin/update-initramfs", root);
		assert_int_equal(unlink(path), 0);
		if (tools[i].path)
			make_tool(tools[i].path);
		snprintf(path, sizeof(path), "%s/" MODULES "updates", root);
		assert_true(tree_remove(path));
		put_in_root(MODULES "updates/dkms/nvidia-current-open.ko", "old");
		put_in_root(MODULES "updates/dkms/nvidia-current-open-uvm.ko", "old");
		built();
		OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
		assert_non_null(
			strstr(module("updates/dkms/nvidia-current-open.ko"), "nvidia built"));
		assert_non_null(
			strstr(module("updates/dkms/nvidia-current-open-uvm.ko"), "uvm built"));
		if (tools[i].call)
			assert_true(was_called("%s", tools[i].call));
		else
			assert_non_null(strstr(err_text, "regenerate the initramfs"));
	}
	(void)state;
}

/* a program fails after the modules are in place: told, and the next run finishes */
static void t_tools_fail(void **state)
{
	static const char *const programs[] = { "depmod", "chroot" };
	char *before, *now;

	for (int i = 0; i < 2; i++) {
		fresh("");
		built();
		before = snapshot(root);
		fails = programs[i];
		assert_int_equal(run("install --kernel " KERNEL " --root %s %s", root, tree_dir),
				 GP_EXIT_SYSTEM);
		assert_true(said("E-TOOL-FAILED") && said("run the same again"));
		fails = "";
		OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
		assert_true(was_called("chroot %s", root));
		fails = programs[i];
		assert_int_equal(run("uninstall --kernel " KERNEL " --root %s", root),
				 GP_EXIT_SYSTEM);
		fails = "";
		OK("uninstall --kernel " KERNEL " --root %s", root);
		now = snapshot(root);
		assert_string_equal(now, before);
		free(now);
		free(before);
	}
	(void)state;
}

/* real processes: found by PATH, with these arguments, in this order; a status is noticed */
static void t_programs(void **state)
{
	char *before, *now, want[300], *depmod, *chroot;

	gp_exec_hook = NULL;
	fresh(".xz");
	snprintf(want, sizeof(want), "depmod -b %s " KERNEL " && chroot %s update-initramfs", root,
		 root);
	assert_int_equal(system(want), 0);
	before = snapshot(root);
	built();
	OK("install --kernel " KERNEL " --root %s %s", root, tree_dir);
	assert_string_equal(module("updates/dkms/nvidia.ko.xz"), BUILT("nvidia"));
	assert_true(logged("make -C %s modules KERNEL_UNAME=" KERNEL " -j", tree_dir));
	assert_true(logged("depmod -b %s " KERNEL "\n", root));
	snprintf(want, sizeof(want), "%s/log", base);
	{
		size_t len;

		assert_int_equal(pk_read_file(want, &now, &len, NULL), 0);
		depmod = strstr(strstr(now, "make"), "depmod");
		chroot = strstr(depmod, "chroot");
		assert_non_null(chroot);
		assert_non_null(strstr(chroot, "update-initramfs -u -k " KERNEL "\n"));
		free(now);
	}
	setenv("FAIL", "initramfs", 1);
	assert_int_equal(run("uninstall --kernel " KERNEL " --root %s", root), GP_EXIT_SYSTEM);
	assert_true(said("E-TOOL-FAILED: chroot"));
	setenv("FAIL", "make", 1);
	assert_int_equal(run("build --kernel " KERNEL " --root %s %s", root, tree_dir),
			 GP_EXIT_SYSTEM);
	assert_true(said("status 2"));
	unsetenv("FAIL");
	OK("uninstall --kernel " KERNEL " --root %s", root);
	now = snapshot(root);
	assert_string_equal(now, before);
	free(now);
	free(before);
	snprintf(want, sizeof(want), "%s/bin/depmod", base);
	assert_int_equal(unlink(want), 0);
	setenv("PATH", base, 1);
	assert_int_equal(run("build --kernel " KERNEL " --root %s %s", root, tree_dir),
			 GP_EXIT_SYSTEM);
	assert_true(said("ENOENT"));
	gp_exec_hook = fake_exec;
	(void)state;
}

static int setup(void **state)
{
	int r = root_setup(state);

	put_tools();
	return r;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_build),	 cmocka_unit_test(t_install),
		cmocka_unit_test(t_signed),	 cmocka_unit_test(t_refused),
		cmocka_unit_test(t_other_build), cmocka_unit_test(t_first),
		cmocka_unit_test(t_names),	 cmocka_unit_test(t_tools_fail),
		cmocka_unit_test(t_programs),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
