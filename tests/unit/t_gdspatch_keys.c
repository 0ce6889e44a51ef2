// SPDX-License-Identifier: MIT
/*
 * t_gdspatch_keys.c - mode R below a made-up root: the keys of each release, the traps, the
 * file written and removed, what is shown of a running driver; nothing else is touched.
 */
#include <json-c/json.h>

#include "gdspatch_fixture.h"

#define FILE_NAME "etc/modprobe.d/opengds-nvidia.conf"

static char root[100];

/* a root with one installed release */
static void fresh(const char *release)
{
	char path[200];

	drop(root);
	assert_int_equal(mkdir(root, 0755), 0);
	assert_true(tree_put(root, "etc/modprobe.d/other.conf", "options snd x=1\n"));
	if (!release)
		return;
	snprintf(path, sizeof(path), "usr/src/nvidia-%s/dkms.conf", release);
	assert_true(tree_put(root, path, "PACKAGE_NAME=nvidia\n"));
}

static void running(const char *release, const char *flavour, const char *keys)
{
	char text[400];

	snprintf(text, sizeof(text),
		 "NVRM version: NVIDIA UNIX %s for x86_64  %s  Release Build\nGCC version: 12\n",
		 flavour, release);
	assert_true(tree_put(root, "proc/driver/nvidia/version", text));
	snprintf(text, sizeof(text), "ResmanDebugLevel: 4294967295\nRegistryDwords: \"%s\"\n",
		 keys);
	assert_true(tree_put(root, "proc/driver/nvidia/params", text));
}

static char *file(void)
{
	char path[200], *data;
	size_t len;

	snprintf(path, sizeof(path), "%s/" FILE_NAME, root);
	return pk_read_file(path, &data, &len, NULL) ? NULL : data;
}

static bool has_line(const char *line)
{
	char *text = file(), *at = text ? strstr(text, line) : NULL;
	bool yes = at && (at == text || at[-1] == '\n');

	free(text);
	return yes;
}

/* table of the keys: by release and set; NULL: refused with the id */
static void t_values(void **state)
{
	static const struct {
		const char *release, *set, *keys, *id;
	} rows[] = {
		{ "535.288.01", "gpu-gpu", "ForceP2P=0x11;RMForceP2PType=2", NULL },
		{ "550.163.01", "gpu-gpu", "ForceP2P=0x11;RMForceP2PType=2", NULL },
		{ "560.35.03", "gpu-gpu", "ForceP2P=0x11;RMForceP2PType=2", NULL },
		{ "560.35.03", "pages", NULL, "E-SET-UNAVAILABLE" },
		{ "565.77", "gpu-gpu", "ForceP2P=0x11;RMForceP2PType=2;RMForceStaticBar1=2", NULL },
		{ "570.211.01", "gpu-gpu", "ForceP2P=0x11;RMForceP2PType=2;RMForceStaticBar1=2",
		  NULL },
		{ "570.211.01", "pages", "RMForceStaticBar1=2;RmForceDisableIomapWC=1", NULL },
		{ "575.51.02", "gpu-gpu",
		  "ForceP2P=0x11;RMForceP2PType=1;RMPcieP2PType=1;RMForceStaticBar1=2", NULL },
		{ "580.95.05", "gpu-gpu",
		  "ForceP2P=0x11;RMForceP2PType=1;RMPcieP2PType=1;RMForceStaticBar1=2", NULL },
		{ "595.45.04", "pages", "RMForceStaticBar1=2;RmForceDisableIomapWC=1", NULL },
		{ "595.45.04", "storage", NULL, "E-NOTHING-TO-DO" },
		{ "530.41.03", "gpu-gpu", NULL, "E-DRIVER-UNKNOWN" },
		{ "610.43.03", "gpu-gpu", NULL, "E-DRIVER-UNKNOWN" },
		{ "585.10", "gpu-gpu", NULL, "E-DRIVER-UNKNOWN" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char line[256], *text;
		int status;

		fresh(rows[i].release);
		if (rows[i].id) {
			REFUSED(rows[i].id, "keys --set %s --root %s", rows[i].set, root);
			text = file();
			assert_null(text);
			continue;
		}
		OK("keys --set %s --root %s", rows[i].set, root);
		snprintf(line, sizeof(line), "options nvidia NVreg_RegistryDwords=\"%s\"\n",
			 rows[i].keys);
		if (!has_line(line))
			fail_msg("release %s, set %s: no %s", rows[i].release, rows[i].set, line);
		/* the traps and the way back are told, on the terminal and in the file */
		assert_true(said("RMForceP2PType=2 was BAR1") &&
			    said("RMForceStaticBar1=1 keeps a GPU"));
		assert_true(said("recovery:") && said("modprobe.blacklist=nvidia,"));
		text = file();
		assert_non_null(strstr(
			text, "modprobe.blacklist=nvidia,nvidia_modeset,nvidia_drm,nvidia_uvm"));
		assert_non_null(strstr(text, "gdspatch keys --remove"));
		/* neither trap is ever written */
		assert_null(strstr(text, "RMForceStaticBar1=1"));
		status = atoi(rows[i].release);
		assert_true(status <= 570 || !strstr(text, "RMForceP2PType=2"));
		free(text);
	}
	(void)state;
}

static void t_write_remove(void **state)
{
	char *before, *now, path[200];
	struct stat st, again;

	fresh("580.95.05");
	before = snapshot(root);
	OK("keys --set pages --dry-run --root %s", root);
	assert_true(said("would write") && said("RmForceDisableIomapWC=1"));
	now = snapshot(root);
	assert_string_equal(now, before);
	free(now);
	OK("keys --set pages --root %s", root);
	snprintf(path, sizeof(path), "%s/" FILE_NAME, root);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	OK("keys --set pages --root %s", root);
	assert_true(said("already so"));
	assert_int_equal(stat(path, &again), 0);
	assert_int_equal(st.st_ino, again.st_ino);
	/* another set: the file is replaced, not added to */
	OK("keys --set gpu-gpu --root %s", root);
	assert_false(has_line("options nvidia NVreg_RegistryDwords=\"RMForceStaticBar1=2;RmForce"));
	assert_true(has_line("options nvidia NVreg_RegistryDwords=\"ForceP2P=0x11"));
	OK("keys --remove --dry-run --root %s", root);
	assert_true(said("would be removed"));
	OK("keys --remove --root %s", root);
	now = snapshot(root);
	assert_string_equal(now, before);
	OK("keys --remove --root %s", root);
	assert_true(said("not there"));
	free(now);
	free(before);

	/* a file of that name that somebody else wrote stays */
	assert_true(tree_put(root, FILE_NAME, "options nvidia NVreg_EnableMSI=1\n"));
	REFUSED("E-FOREIGN", "keys --set pages --root %s", root);
	REFUSED("E-FOREIGN", "keys --remove --root %s", root);
	REFUSED("E-FOREIGN", "keys --show --root %s", root);
	assert_true(has_line("options nvidia NVreg_EnableMSI=1\n"));
	(void)state;
}

/* where the release comes from */
static void t_release(void **state)
{
	fresh(NULL);
	REFUSED("E-DRIVER-UNKNOWN", "keys --set pages --root %s", root);
	OK("keys --set pages --driver 580.1 --root %s", root);

	static const char *const libraries[] = {
		"usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05",
		"usr/lib64/libcuda.so.580.95.05",
		"usr/lib/libcuda.so.580.95.05",
		"usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.580.95.05",
		"usr/src/nvidia-current-open-580.95.05/dkms.conf",
		"usr/src/nvidia-580.95.05/dkms.conf",
	};
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		fresh(NULL);
		assert_true(tree_put(root, libraries[i], ""));
		OK("keys --set pages --root %s", root);
		assert_true(said("580.95.05"));
	}
	/* the same release twice is one, the link libcuda.so.1 none */
	assert_true(tree_put(root, libraries[0], ""));
	assert_true(tree_put(root, "usr/lib64/libcuda.so.1.1", ""));
	OK("keys --set pages --root %s", root);
	assert_true(tree_put(root, "usr/src/nvidia-575.64.05/dkms.conf", ""));
	REFUSED("E-DRIVER-UNKNOWN", "keys --set pages --root %s", root);
	assert_true(said("580.95.05 ") || said("575.64.05 "));

	/* the next boot counts: the running one is only told of */
	fresh("580.95.05");
	running("570.211.01", "Open Kernel Module", "");
	OK("keys --set gpu-gpu --root %s", root);
	assert_true(
		has_line("options nvidia NVreg_RegistryDwords=\"ForceP2P=0x11;RMForceP2PType=1;"));
	assert_non_null(strstr(err_text, "running driver is 570.211.01"));
	fresh(NULL);
	running("570.211.01", "x86_64 Kernel Module", "");
	OK("keys --set gpu-gpu --root %s", root);
	assert_true(
		has_line("options nvidia NVreg_RegistryDwords=\"ForceP2P=0x11;RMForceP2PType=2;"));
	assert_non_null(strstr(err_text, "closed"));
	(void)state;
}

/* what hand-written files say */
static void t_traps(void **state)
{
	fresh("575.64.05");
	assert_true(tree_put(root, "etc/modprobe.d/nv.conf",
			     "# options nvidia NVreg_RegistryDwords=\"RMForceP2PType=2\"\n"
			     "options nvidia NVreg_EnableGpuFirmware=0\n"
			     "options snd RMForceStaticBar1=1\n"));
	OK("keys --set gpu-gpu --root %s", root);
	assert_non_null(strstr(err_text, "nv.conf:2: NVreg_EnableGpuFirmware=0 has no effect"));
	assert_null(strstr(err_text, "NVLink"));
	OK("keys --remove --root %s", root);

	assert_true(tree_put(root, "usr/lib/modprobe.d/nv.conf",
			     "options nvidia NVreg_RegistryDwords=\"ForceP2P=17;rmforcep2ptype=2;"
			     "RMForceStaticBar1=0x1\"\n"));
	OK("keys --show --root %s", root);
	assert_non_null(strstr(err_text,
			       "usr/lib/modprobe.d/nv.conf:1: RMForceP2PType=2 means NVLink only"));
	assert_non_null(strstr(err_text, "RMForceStaticBar1=1"));
	/* two lists of keys: the driver takes one of them */
	REFUSED("E-KEYS-ELSEWHERE", "keys --set gpu-gpu --root %s", root);
	assert_true(said("usr/lib/modprobe.d/nv.conf:1"));
	assert_null(file());
	/* before 575 the same number is right */
	fresh("570.211.01");
	assert_true(tree_put(
		root, "etc/modprobe.d/nv.conf",
		"options nvidia NVreg_RegistryDwords=\"RMForceP2PType=2;RMForceStaticBar1=2\"\n"));
	OK("keys --show --root %s", root);
	assert_null(strstr(err_text, "NVLink"));
	assert_null(strstr(err_text, "does not start"));
	(void)state;
}

static void t_show(void **state)
{
	struct json_object *o, *v;

	fresh("580.95.05");
	OK("keys --show --root %s", root);
	assert_true(said("not there") && said("no driver is loaded"));
	OK("keys --set pages --root %s", root);
	running("580.95.05", "Open Kernel Module", "");
	OK("keys --show --root %s", root);
	assert_true(said(FILE_NAME ": RMForceStaticBar1=2;RmForceDisableIomapWC=1\n"));
	assert_non_null(strstr(err_text, "other keys than the file"));
	/* only the first pair was taken */
	running("580.95.05", "Open Kernel Module", "RMForceStaticBar1=2");
	OK("keys --show --root %s", root);
	assert_non_null(strstr(err_text, "only the first pair"));
	running("580.95.05", "Open Kernel Module", "RMForceStaticBar1=2;RmForceDisableIomapWC=1");
	OK("keys --show --root %s", root);
	assert_string_equal(err_text, "");
	OK("keys --show --json --root %s", root);
	o = json_tokener_parse(out_text);
	assert_non_null(o);
	assert_true(json_object_object_get_ex(o, "keys", &v));
	assert_string_equal(json_object_get_string(v),
			    "RMForceStaticBar1=2;RmForceDisableIomapWC=1");
	assert_true(json_object_object_get_ex(o, "present", &v) && json_object_get_boolean(v));
	assert_true(json_object_object_get_ex(o, "warnings", &v));
	assert_int_equal(json_object_array_length(v), 0);
	json_object_put(o);
	(void)state;
}

/* Debian's file names are the names that options go by; each initramfs tool is named */
static void t_names(void **state)
{
	static const struct {
		const char *path, *command;
	} tools[] = {
		{ "usr/sbin/update-initramfs", "update-initramfs -u" },
		{ "usr/bin/dracut", "dracut --force" },
		{ "usr/bin/mkinitcpio", "mkinitcpio -P" },
	};

	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		char path[200];

		fresh("550.163.01");
		assert_true(tree_put(root, tools[i].path, "#!/bin/sh\n"));
		snprintf(path, sizeof(path), "%s/%s", root, tools[i].path);
		assert_int_equal(chmod(path, 0755), 0);
		assert_true(tree_put(
			root, "lib/modules/6.1.0/updates/dkms/nvidia-current-open.ko.xz", "x"));
		assert_true(tree_put(
			root, "lib/modules/6.1.0/updates/dkms/nvidia-current-open-uvm.ko.xz", "x"));
		OK("keys --set gpu-gpu --root %s", root);
		assert_true(has_line("options nvidia-current-open NVreg_RegistryDwords="));
		assert_false(has_line("options nvidia NVreg_RegistryDwords="));
		assert_false(has_line("options nvidia-current-open-uvm"));
		assert_true(said(tools[i].command));
	}
	(void)state;
}

/* ---- every system call of writing and removing is the last one ---- */

static int left;

static bool strikes(void)
{
	return left-- <= 0;
}

static int d_open(const char *path, int flags, mode_t mode)
{
	if (strikes())
		_exit(42);
	return pk_os_libc.open(path, flags, mode);
}

static ssize_t d_write(int fd, const void *data, size_t len)
{
	if (left == 0 && len > 1 && write(fd, data, len / 2) < 0)
		_exit(43);
	if (strikes())
		_exit(42);
	return write(fd, data, len);
}

static int d_fsync(int fd)
{
	if (strikes())
		_exit(42);
	return 0;
}

static int d_close(int fd)
{
	if (strikes())
		_exit(42);
	return close(fd);
}

static int d_rename(const char *from, const char *to)
{
	if (strikes())
		_exit(42);
	return rename(from, to);
}

static int d_unlink(const char *path)
{
	if (strikes())
		_exit(42);
	return unlink(path);
}

static int d_mkdir(const char *path, mode_t mode)
{
	if (strikes())
		_exit(42);
	return mkdir(path, mode);
}

static const struct pk_os dying = {
	d_open, d_write, d_fsync, d_close, d_rename, d_unlink, d_mkdir, rmdir,
};

/* the command in a child that dies at its n-th call; false: it was done before */
static bool dies(int n, const char *line)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		pk_os = &dying;
		left = n;
		_exit(run("%s", line));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42);
	return WEXITSTATUS(status) == 42;
}

static void t_dies(void **state)
{
	char set[200], remove[200], *none, *done;
	int crashes = 0;

	fresh("580.95.05");
	none = snapshot(root);
	OK("keys --set pages --root %s", root);
	done = file();
	snprintf(set, sizeof(set), "keys --set pages --root %s", root);
	snprintf(remove, sizeof(remove), "keys --remove --root %s", root);
	for (int i = 0; i < 2; i++)
		for (int n = 0;; n++, crashes++) {
			char *text, *now;

			fresh("580.95.05");
			if (i)
				OK("%s", set);
			if (!dies(n, i ? remove : set))
				break;
			/* all of the file or none of it; the same command again finishes */
			text = file();
			assert_true(!text || !strcmp(text, done));
			free(text);
			/* and every other time it is removed at once: no half file stays */
			OK("%s", n % 2 ? remove : set);
			if (n % 2) {
				now = snapshot(root);
				assert_same(now, none);
				free(now);
				OK("%s", set);
			}
			text = file();
			assert_string_equal(text, done);
			free(text);
			OK("%s", remove);
			now = snapshot(root);
			assert_string_equal(now, none);
			free(now);
		}
	print_message("%d deaths of keys\n", crashes);
	assert_true(crashes >= 12);
	free(none);
	free(done);
	(void)state;
}

static int setup(void **state)
{
	int r = fixture_setup(state);

	snprintf(root, sizeof(root), "%s/root", base);
	return r;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_values),  cmocka_unit_test(t_write_remove),
		cmocka_unit_test(t_release), cmocka_unit_test(t_traps),
		cmocka_unit_test(t_show),    cmocka_unit_test(t_names),
		cmocka_unit_test(t_dies),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
