// SPDX-License-Identifier: MIT
/*
 * t_gdspatch_hook.c - the hook of the package manager and the file for others. Fails when the hook
 * does not come and go to the byte, for each of the three package managers, when one that somebody
 * changed is touched, when the script makes an update fail or calls another thing than the one
 * command, when that misses what a new kernel lacks, and when a planted name is in a result.
 */
#include "gdspatch_crash.h"
#include "machine.h"

static const struct manager {
	const char *name, *probe, *file;
	unsigned int mode;
} managers[] = {
	{ "pacman", "etc/pacman.d/mirrorlist", "etc/pacman.d/hooks/95-opengds-check.hook", 0644 },
	{ "Debian", "etc/kernel/postinst.d/dkms", "etc/kernel/postinst.d/zz-opengds-check", 0755 },
	{ "kernel-install", "usr/lib/kernel/install.d/50-depmod.install",
	  "etc/kernel/install.d/95-opengds-check.install", 0755 },
};

#define MANAGERS (sizeof(managers) / sizeof(*managers))

static void empty_root(void)
{
	drop(root);
	assert_int_equal(mkdir(root, 0755), 0);
}

static char *in_root_text(const char *path)
{
	char full[300], *data;
	size_t len;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	return pk_read_file(full, &data, &len, NULL) ? NULL : data;
}

static void t_comes_and_goes(void **state)
{
	for (size_t i = 0; i < MANAGERS; i++) {
		const struct manager *m = &managers[i];
		char *before, *now, *text, full[300];
		struct stat st;

		empty_root();
		assert_true(tree_put(root, m->probe, "x\n"));
		/* the folder of kernel-install's plugins may not be there; the others' may */
		if (i == 2)
			assert_true(tree_put(root, "etc/kernel/cmdline", "quiet\n"));
		before = snapshot(root);
		OK("hook remove --root %s", root);
		assert_true(said("not there"));
		OK("hook install --dry-run --root %s", root);
		assert_true(said("would be written") && said(m->name) && said(m->file));
		now = snapshot(root);
		assert_same(now, before);
		free(now);

		OK("hook install --root %s", root);
		snprintf(full, sizeof(full), "%s/%s", root, m->file);
		assert_int_equal(stat(full, &st), 0);
		assert_int_equal(st.st_mode & 07777, m->mode);
		text = in_root_text(m->file);
		assert_non_null(strstr(text, "gdspatch hook run --kernel "));
		free(text);
		OK("hook install --root %s", root);
		assert_true(said("already there"));
		OK("hook install --json --root %s", root);
		assert_true(said("\"present\": true, \"changed\": false"));
		OK("hook remove --dry-run --root %s", root);
		assert_true(said("would be removed"));
		assert_int_equal(stat(full, &st), 0);
		OK("hook remove --root %s", root);
		now = snapshot(root);
		assert_same(now, before);
		free(now);
		free(before);
	}
	(void)state;
}

/* A machine that has the plugins of kernel-install and nothing in /etc/kernel. */
static void t_no_folder(void **state)
{
	char *now, *before;

	empty_root();
	assert_true(tree_put(root, managers[2].probe, "x\n"));
	assert_true(tree_put(root, "etc/hostname", "x\n"));
	before = snapshot(root);
	OK("hook install --dry-run --root %s", root);
	assert_true(said("would be written"));
	now = snapshot(root);
	assert_same(now, before);
	free(now);
	free(before);
	OK("hook install --root %s", root);
	now = in_root_text(managers[2].file);
	assert_non_null(now);
	free(now);
	OK("hook remove --root %s", root);
	assert_null(in_root_text(managers[2].file));
	(void)state;
}

/* What is somebody else's stays as it is. */
static void t_not_ours(void **state)
{
	const struct manager *m = &managers[1];
	char *text;

	empty_root();
	REFUSED("E-NO-PLACE", "hook install --root %s", root);
	assert_true(tree_put(root, m->probe, "x\n"));
	assert_true(tree_put(root, m->file, "theirs\n"));
	REFUSED("E-FOREIGN", "hook install --root %s", root);
	text = in_root_text(m->file);
	assert_string_equal(text, "theirs\n");
	free(text);
	drop(root);
	empty_root();
	assert_true(tree_put(root, m->probe, "x\n"));
	OK("hook install --root %s", root);
	assert_true(tree_put(root, m->file, "#!/bin/sh\nmine\n"));
	REFUSED("E-HASH-CHANGED", "hook remove --root %s", root);
	REFUSED("E-HASH-CHANGED", "hook install --root %s", root);
	text = in_root_text(m->file);
	assert_string_equal(text, "#!/bin/sh\nmine\n");
	free(text);
	(void)state;
}

/* The shell's PATH has this gdspatch, or (NULL) none. The script's status; *log: what it called. */
static int call(const char *command, const char *program, char *log, size_t len)
{
	char line[1024], path[200];
	char *text;
	int status;

	snprintf(path, sizeof(path), "%s/bin/gdspatch", base);
	unlink(path);
	if (program) {
		assert_true(tree_put(base, "bin/gdspatch", program));
		assert_int_equal(chmod(path, 0755), 0);
	} else {
		assert_true(tree_put(base, "bin/other", ""));
	}
	assert_true(tree_put(base, "calls", ""));
	snprintf(line, sizeof(line), "PATH=%s/bin:/usr/bin:/bin CALLS=%s/calls; export PATH CALLS; %s",
		 base, base, command);
	status = system(line);
	snprintf(path, sizeof(path), "%s/calls", base);
	assert_int_equal(pk_read_file(path, &text, &(size_t){ 0 }, NULL), 0);
	snprintf(log, len, "%s", text);
	free(text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As the package managers call it: with the right arguments, and whatever comes of it. */
static void t_called(void **state)
{
	static const char notes[] = "#!/bin/sh\necho \"$*\" >>\"$CALLS\"\n",
			  fails_too[] = "#!/bin/sh\necho \"$*\" >>\"$CALLS\"\nexit 3\n";
	static const char *const how[] = { "", "%s/%s 7.9.9 /boot/vmlinuz-7.9.9",
					   "%s/%s add 7.9.9 /efi/x/7.9.9 /boot/vmlinuz" };
	char log[256], command[700], *text, *exec, *end;

	for (size_t i = 1; i < MANAGERS; i++) {
		empty_root();
		assert_true(tree_put(root, managers[i].probe, "x\n"));
		assert_true(tree_put(root, "etc/kernel/cmdline", "quiet\n"));
		OK("hook install --root %s", root);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(command, sizeof(command), how[i], root, managers[i].file);
#pragma GCC diagnostic pop
		assert_int_equal(call(command, notes, log, sizeof(log)), 0);
		assert_string_equal(log, "hook run --kernel 7.9.9\n");
		assert_int_equal(call(command, fails_too, log, sizeof(log)), 0);
		assert_string_equal(log, "hook run --kernel 7.9.9\n");
		assert_int_equal(call(command, NULL, log, sizeof(log)), 0);
		assert_string_equal(log, "");
	}
	snprintf(command, sizeof(command), "%s/%s remove 7.9.9", root, managers[2].file);
	assert_int_equal(call(command, notes, log, sizeof(log)), 0);
	assert_string_equal(log, "");

	/* pacman's: a command in a line, targets on standard input */
	empty_root();
	assert_true(tree_put(root, managers[0].probe, "x\n"));
	OK("hook install --root %s", root);
	text = in_root_text(managers[0].file);
	exec = strstr(text, "\nExec = ");
	assert_non_null(exec);
	exec += 8;
	end = strchr(exec, '\n');
	assert_non_null(end);
	snprintf(command, sizeof(command),
		 "printf 'usr/lib/modules/%%s/vmlinuz\\n' 7.9.9 7.8-lts | %.*s", (int)(end - exec),
		 exec);
	assert_int_equal(call(command, notes, log, sizeof(log)), 0);
	assert_string_equal(log, "hook run --kernel 7.9.9\nhook run --kernel 7.8-lts\n");
	assert_int_equal(call(command, fails_too, log, sizeof(log)), 0);
	free(text);
	(void)state;
}

/* Deaths and refused writes at every call: afterwards it is there or not, to the byte. */
static void t_dies(void **state)
{
	const struct manager *m = &managers[1];
	char line[2][200], *old, *new, *now;
	int status, n, before = total;

	empty_root();
	assert_true(tree_put(root, m->probe, "x\n"));
	snprintf(line[0], sizeof(line[0]), "hook install --root %s", root);
	snprintf(line[1], sizeof(line[1]), "hook remove --root %s", root);
	old = snapshot(root);
	OK("%s", line[0]);
	new = snapshot(root);
	OK("%s", line[1]);
	for (int w = 0; w < 2; w++)
		for (int f = DIES; f <= FAILS; f++) {
			for (n = 0;; n++) {
				if (w)
					OK("%s", line[0]);
				if (!struck(f, n, line[w], &status))
					break;
				/* the next run finishes or undoes what was left */
				OK("%s", line[n % 2]);
				now = snapshot(root);
				assert_same(now, n % 2 ? old : new);
				free(now);
				OK("%s", line[1]);
				now = snapshot(root);
				assert_same(now, old);
				free(now);
			}
			OK("%s", line[1]);
			assert_true(n > 8);
		}
	print_message("the hook: %d deaths and refused writes\n", total - before);
	free(old);
	free(new);
	(void)state;
}

/* A whole machine: a desktop with a GeForce, the driver's source and modules of its kernel. */
static void a_machine(const char *name)
{
	char line[400];

	empty_root();
	machine_unpack(root, "tests/fixtures/machines/desktop.machine");
	machine_write(root, "proc/driver/nvidia/gpus/0000:01:00.0/information",
		      "Model: \t\t NVIDIA GeForce RTX 3060\nGPU UUID: \t GPU-8a0b1c2d-0000-1111-2222-333344445555\n"
		      "Device Minor: \t 0\nGPU Firmware: \t 590.48.01\n");
	unpack(layout("595"));
	snprintf(line, sizeof(line), "mkdir -p %s/usr/src && cp -r %s %s/usr/src/nvidia-%s", root,
		 tree_dir, root, name);
	assert_int_equal(system(line), 0);
	machine_write(root, "lib/modules/7.3.4-desktop/updates/dkms/nvidia.ko.zst", "");
	machine_write(root, "lib/modules/7.3.4-desktop/updates/dkms/nvidia-fs.ko.zst", "");
	machine_write(root, "lib/modules/7.3.4-desktop/.patchkit/manifest", "patchkit 1\n");
	machine_write(root, "lib/modules/7.9.9/kernel/fs/ext4.ko", "");
}

static void t_run(void **state)
{
	char *before, *now;

	a_machine("595.45.04");
	before = snapshot(root);
	OK("hook run --kernel 7.9.9 --root %s", root);
	assert_true(said("OpenGDS, of kernel 7.9.9:"));
	assert_true(said("module nvidia: this kernel has none"));
	assert_true(said("module nvidia-fs: this kernel has none"));
	assert_true(said("patched modules: of kernel 7.3.4-desktop only: gdspatch build --kernel 7.9.9"));
	assert_true(said("source /usr/src/nvidia-595.45.04: pristine\n"));
	assert_true(said("next: D-04: "));
	/* of the kernel that runs */
	OK("hook run --root %s", root);
	assert_true(said("of kernel 7.3.4-desktop:"));
	assert_true(said("module nvidia: /lib/modules/7.3.4-desktop/updates/dkms/nvidia.ko.zst"));
	assert_true(said("patched modules: in place for this kernel"));
	now = snapshot(root);
	assert_same(now, before);
	free(now);
	free(before);
	/* an edit that the package took away, or half of one */
	OK("apply --root %s %s/usr/src/nvidia-595.45.04", root, root);
	OK("hook run --root %s", root);
	assert_true(said("nvidia-595.45.04: applied bar1p2p\n"));
	assert_int_equal(run("hook run --json --root %s", root), GP_EXIT_USAGE);
	assert_int_equal(run("hook walk --root %s", root), GP_EXIT_USAGE);
	assert_int_equal(run("hook install --kernel 7.9.9 --root %s", root), GP_EXIT_USAGE);
	(void)state;
}

/* A machine full of names: none is in the result, and what it is about is. */
static void t_result(void **state)
{
	static const char *const secrets[] = {
		"alice", "acme",	 "8a0b1c2d", "S3CR3T", "00:1b:21", "naa.5000c500",
		base,	 "333344445555",
	};
	char file[200], *text;

	a_machine("alice");
	machine_write(root, "proc/self/mountinfo",
		      "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
		      "41 22 0:44 / /srv/alice/acme rw - btrfs /dev/mapper/acme-S3CR3T rw\n");
	snprintf(file, sizeof(file), "%s/etc/modprobe.d/gds.conf", root);
	assert_int_equal(unlink(file), 0);
	machine_write(root, "etc/modprobe.d/alice.conf",
		      "# acme\noptions nvidia NVreg_RegistryDwords=\"RMForceStaticBar1=2;ForceP2P=0x11\"\n");
	machine_write(root, "proc/driver/nvidia-fs/opengds",
		      "version: 0.1.0\ndriver nvme: not attached: 4d5e6f70-1111-2222-3333-444455556666 00:1b:21:aa:bb:cc naa.5000c500a1b2c3d4\n"
		      "carriers: auto\np2pdma: not used: of 00:1b:21:aa:bb:cc\n");
	machine_write(root, "dev/kmsg", "4,1,1,-;alice: nvidia_fs: no symbol version for nvidia_p2p_x\n");
	snprintf(file, sizeof(file), "%s/result", base);
	OK("result --out %s --root %s", file, root);
	assert_int_equal(pk_read_file(file, &text, &(size_t){ 0 }, NULL), 0);
	for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++)
		if (strcasestr(text, secrets[i]))
			fail_msg("'%s' is in the result: %s", secrets[i], text);
	assert_non_null(strstr(text, "\"what\":\"OpenGDS result\""));
	assert_non_null(strstr(text, "\"model\":\"NVIDIA GeForce RTX 3060\""));
	assert_non_null(strstr(text, "\"driver\":\"590.48.01\""));
	assert_non_null(strstr(text, "\"bar1_mib\":16384"));
	assert_non_null(strstr(text, "\"state\":\"pristine\""));
	assert_non_null(strstr(text, "\"release\":\"595.45.04\""));
	assert_non_null(strstr(text, "\"set\":\"gpu-gpu\",\n      \"files\":"));
	assert_non_null(strstr(text, "\"keys\":\"RMForceStaticBar1=2;ForceP2P=0x11\""));
	assert_non_null(strstr(text, "\"modules\":\"of the kernel that runs\""));
	assert_non_null(strstr(text, "\"hook\":false"));
	assert_non_null(strstr(text, "\"id\":\"D-04\",\n        \"verdict\":\"WARN\""));
	assert_non_null(strstr(text, "\"id\":\"D-06\",\n        \"verdict\":\"WARN\""));
	free(text);

	/* what was applied, the hook, a tree that is named; one of an unknown layout */
	machine_write(root, "etc/kernel/postinst.d/dkms", "x");
	OK("hook install --root %s", root);
	OK("apply --set gpu-gpu --root %s %s", root, tree_dir);
	OK("result --out %s --root %s %s", file, root, tree_dir);
	assert_int_equal(pk_read_file(file, &text, &(size_t){ 0 }, NULL), 0);
	assert_non_null(strstr(text, "\"hook\":true"));
	assert_non_null(strstr(text, "\"state\":\"applied\""));
	assert_non_null(strstr(text, "\"tree\":\"gpu-gpu\""));
	free(text);
	REFUSED("E-NOT-A-TREE", "result --out %s --root %s %s/none", file, root, base);
	assert_int_equal(run("result --root %s", root), GP_EXIT_USAGE);
	assert_int_equal(run("result --out /dev/full --root %s", root), GP_EXIT_SYSTEM);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_comes_and_goes),
		cmocka_unit_test(t_no_folder),
		cmocka_unit_test(t_not_ours),
		cmocka_unit_test(t_called),
		cmocka_unit_test(t_dies),
		cmocka_unit_test(t_run),
		cmocka_unit_test(t_result),
	};

	return cmocka_run_group_tests(tests, root_setup, fixture_teardown);
}
