// SPDX-License-Identifier: MIT
/*
 * keys.c - mode R: one file of modprobe.d with the registry keys for the installed release.
 *
 * The same number means different things before and after release 575, so the values are by
 * release, and an unknown release gets none. A running driver is never touched: the file counts
 * from the next time the module is loaded.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "gdspatch.h"
#include "modprobe.h"

#define RECOVERY "modprobe.blacklist=nvidia,nvidia_modeset,nvidia_drm,nvidia_uvm"

/* what the keys mean, by the first number of the release; -1: no such key */
static const struct meaning {
	unsigned int from, to;
	int force_type, pcie_type, static_bar1;
} meanings[] = {
	{ 535, 560, 2, -1, -1 }, /* 2: BAR1 */
	{ 565, 570, 2, -1, 2 }, /* static BAR1 2: where it fits */
	{ 575, 595, 1, 1, 2 }, /* 1: PCIe, of the kind BAR1; 2 would be NVLink only */
};

static const unsigned int branches[] = {
	535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595,
};

struct facts {
	char release[32], running[32];
	const struct meaning *meaning;
	char keys[160];
	int elsewhere, trap1, trap2, firmware;
	const struct gp_options *o;
	struct gp_error *err;
	struct json_object *warnings;
};

static const struct meaning *meaning_of(const char *release)
{
	unsigned long n = strtoul(release, NULL, 10);
	bool known = false;

	for (size_t i = 0; i < sizeof(branches) / sizeof(*branches); i++)
		known |= branches[i] == n;
	for (size_t i = 0; known && i < sizeof(meanings) / sizeof(*meanings); i++)
		if (n >= meanings[i].from && n <= meanings[i].to)
			return &meanings[i];
	return NULL;
}

static void warn(struct facts *f, const char *text)
{
	if (f->o->json)
		json_object_array_add(f->warnings, json_object_new_string(text));
	else
		gp_note("warning: %s", text);
}

static int find_release(struct facts *f)
{
	const struct gp_options *o = f->o;
	struct facts_gpu_driver running;
	char all[256], text[200];
	int n;

	if (!facts_gpu_driver(o->root, &running))
		snprintf(f->running, sizeof(f->running), "%.31s", running.version);
	n = mp_installed(o->root, all, sizeof(all));
	if (o->driver)
		snprintf(f->release, sizeof(f->release), "%s", o->driver);
	else if (n > 1)
		return gp_refuse(f->err, GP_DRIVER_UNKNOWN, "usr", 0, "", "one installed release",
				 "%s", all);
	else if (n)
		snprintf(f->release, sizeof(f->release), "%.31s", all);
	else
		snprintf(f->release, sizeof(f->release), "%s", f->running);
	if (!*f->release)
		return gp_refuse(f->err, GP_DRIVER_UNKNOWN, *o->root ? o->root : "/", 0, "",
				 "an installed driver", "none");
	f->meaning = meaning_of(f->release);
	if (!f->meaning)
		return gp_refuse(f->err, GP_DRIVER_UNKNOWN, *o->root ? o->root : "/", 0, "",
				 "a release whose keys are known", "%s", f->release);
	if (*f->running && strcmp(f->running, f->release)) {
		snprintf(text, sizeof(text),
			 "the running driver is %s; the keys are for %s, which is loaded next",
			 f->running, f->release);
		warn(f, text);
	}
	if (*f->running && !running.open)
		warn(f,
		     "the running driver is the closed flavour; what the keys do was read in the open one");
	return 0;
}

/* each line of options: another list of keys, and values that do harm */
static int look(void *arg, const struct mp_option *op)
{
	struct facts *f = arg;
	unsigned long v;
	char text[400];

	if (mp_key(op->text, "RMForceP2PType", &v) && v == 2 && f->meaning &&
	    f->meaning->pcie_type == 1) {
		snprintf(
			text, sizeof(text),
			"%s:%u: RMForceP2PType=2 means NVLink only from release 575 on (it was BAR1 before): PCIe peers vanish; set 1 or remove it",
			op->file, op->line);
		warn(f, text);
		f->trap1++;
	}
	if (mp_key(op->text, "RMForceStaticBar1", &v) && v == 1) {
		snprintf(
			text, sizeof(text),
			"%s:%u: RMForceStaticBar1=1: with BAR1 smaller than GPU memory the GPU does not start; set 2",
			op->file, op->line);
		warn(f, text);
		f->trap2++;
	}
	if (mp_key(op->text, "NVreg_EnableGpuFirmware", &v) && !v) {
		snprintf(
			text, sizeof(text),
			"%s:%u: NVreg_EnableGpuFirmware=0 has no effect on the open driver; remove it",
			op->file, op->line);
		warn(f, text);
		f->firmware++;
	}
	if (!op->ours && strstr(op->text, "NVreg_RegistryDwords=") && !f->elsewhere++ && f->o->set)
		gp_refuse(f->err, GP_KEYS_ELSEWHERE, op->file, op->line, "NVreg_RegistryDwords",
			  "no other list of keys", "one");
	return 0;
}

static void add_key(struct facts *f, const char *key, const char *value)
{
	size_t n = strlen(f->keys);

	snprintf(f->keys + n, sizeof(f->keys) - n, "%s%s=%s", n ? ";" : "", key, value);
}

static int choose(struct facts *f)
{
	const char *set = f->o->set;

	if (!strcmp(set, "storage"))
		return gp_refuse(
			f->err, GP_NOTHING_TO_DO, MP_FILE, 0, set, "",
			"no registry key lets storage reach GPU memory: what the pin lacks is an object that user space makes (mode U)");
	if (!strcmp(set, "gpu-gpu")) {
		add_key(f, "ForceP2P", "0x11");
		add_key(f, "RMForceP2PType", f->meaning->force_type == 1 ? "1" : "2");
		if (f->meaning->pcie_type == 1)
			add_key(f, "RMPcieP2PType", "1");
	} else if (f->meaning->static_bar1 < 0) {
		return gp_refuse(f->err, GP_SET_UNAVAILABLE, MP_FILE, 0, set,
				 "release 565 or later", "%s", f->release);
	}
	/* 2, never 1: with 1 a GPU whose BAR1 is too small does not start */
	if (f->meaning->static_bar1 > 0)
		add_key(f, "RMForceStaticBar1", "2");
	if (!strcmp(set, "pages"))
		add_key(f, "RmForceDisableIomapWC", "1");
	return 0;
}

static int file_text(const struct facts *f, struct pk_buf *b)
{
	char names[MP_NAMES][64];
	int r, n = mp_module_names(f->o->root, names);

	r = pk_buf_printf(
		b,
		MP_MARK
		" --set %s\n"
		"# For release %s; run it again when the release changes.\n"
		"# If the machine does not come up: add to the kernel's command line, once,\n"
		"#   " RECOVERY "\n"
		"# and then: gdspatch keys --remove\n",
		f->o->set, f->release);
	for (int i = 0; i < n && !r; i++)
		r = pk_buf_printf(b, "options %s NVreg_RegistryDwords=\"%s\"\n", names[i], f->keys);
	return r;
}

static char *in_root(const char *root, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", root, name) < 0 ? NULL : path;
}

/* a file that is not ours stays; *text: what is there now, NULL when nothing is */
static int read_ours(const struct facts *f, const char *path, char **text)
{
	size_t len;
	int r = pk_read_file(path, text, &len, NULL);

	if (r) {
		*text = NULL;
		return r == -ENOENT || r == -ENOTDIR ? 0 : gp_system(f->err, r, "read", path);
	}
	if (!strncmp(*text, MP_MARK, strlen(MP_MARK)))
		return 0;
	free(*text);
	*text = NULL;
	return gp_refuse(f->err, GP_FOREIGN, path, 1, "", "the first line of a file of ours",
			 "another");
}

/* removes a file, and the half of one that a run which died may have left beside it */
static int unlink_file(const struct facts *f, const char *path)
{
	char *tmp;
	int r = 0;

	if (asprintf(&tmp, "%s.new", path) < 0)
		return gp_system(f->err, -ENOMEM, "remove", path);
	if ((pk_os->unlink(tmp) && errno != ENOENT && errno != ENOTDIR) ||
	    (pk_os->unlink(path) && errno != ENOENT && errno != ENOTDIR))
		r = -errno;
	free(tmp);
	return r ? gp_system(f->err, r, "remove", path) : 0;
}

static int write_file(const struct facts *f, const char *path, const struct pk_buf *b)
{
	char *dir = in_root(f->o->root, "etc/modprobe.d"), *tmp = NULL;
	int r = 0;

	if (!dir || asprintf(&tmp, "%s.new", path) < 0) {
		free(dir);
		return gp_system(f->err, -ENOMEM, "write", path);
	}
	if (pk_os->mkdir(dir, 0755) && errno != EEXIST)
		r = -errno;
	r = r ? r : pk_write_file(tmp, b->data, b->len, 0644);
	if (!r && pk_os->rename(tmp, path))
		r = -errno;
	r = r ? r : pk_sync_dir_of(path);
	if (r)
		pk_os->unlink(tmp);
	free(tmp);
	free(dir);
	return r ? gp_system(f->err, r, "write", path) : 0;
}

static void say_next(const struct facts *f)
{
	const char *tool = gp_initramfs_tool(f->o->root);

	printf("next: regenerate the initramfs (%s), then reboot; afterwards `gdspatch keys --show` compares\n"
	       "    with what the driver took. A running driver is not touched.\n",
	       !strcmp(tool, "dracut")	     ? "dracut --force"
	       : !strcmp(tool, "mkinitcpio") ? "mkinitcpio -P"
					     : "update-initramfs -u");
}

static int put_json(struct facts *f, const char *path, bool present, bool changed)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "file", json_object_new_string(path));
	json_object_object_add(o, "present", json_object_new_boolean(present));
	json_object_object_add(o, "changed", json_object_new_boolean(changed));
	json_object_object_add(o, "release", json_object_new_string(f->release));
	json_object_object_add(o, "keys", json_object_new_string(f->keys));
	json_object_object_add(o, "recovery", json_object_new_string(RECOVERY));
	json_object_object_add(o, "warnings", json_object_get(f->warnings));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
	return 0;
}

static void say_traps(void)
{
	puts("traps of hand-written files:\n"
	     "    RMForceP2PType=2 was BAR1 up to release 570 and is NVLink only from 575 on: PCIe peers vanish.\n"
	     "    RMForceStaticBar1=1 keeps a GPU from starting when BAR1 is smaller than its memory; 2 does not.");
	puts("recovery: boot once with " RECOVERY ", then `gdspatch keys --remove`");
}

static int set_keys(struct facts *f, const char *path)
{
	struct pk_buf b = { 0 };
	char *old = NULL;
	bool same;
	int r;

	r = find_release(f);
	if (r)
		return r;
	mp_options(f->o->root, look, f);
	if (f->elsewhere)
		return -EBADMSG;
	r = choose(f);
	r = r ? r : read_ours(f, path, &old);
	if (!r && file_text(f, &b))
		r = gp_system(f->err, -ENOMEM, "write", path);
	if (r) {
		free(old);
		return r;
	}
	same = old && !strcmp(old, b.data);
	if (!same && !f->o->dry_run)
		r = write_file(f, path, &b);
	if (!r && f->o->json) {
		r = put_json(f, path, !f->o->dry_run || old, !same && !f->o->dry_run);
	} else if (!r) {
		if (same)
			printf("%s: already so\n", path);
		else if (f->o->dry_run)
			printf("would write %s:\n%s", path, b.data);
		else
			printf("%s: written for release %s:\n  %s\n", path, f->release, f->keys);
		say_traps();
		say_next(f);
	}
	free(old);
	pk_buf_free(&b);
	return r;
}

static int remove_keys(struct facts *f, const char *path)
{
	char *old;
	int r = read_ours(f, path, &old);
	bool there = old;

	if (!r && !f->o->dry_run)
		r = unlink_file(f, path);
	if (!r && there && !f->o->dry_run) {
		r = pk_sync_dir_of(path);
		if (r)
			gp_system(f->err, r, "remove", path);
	}
	free(old);
	if (r)
		return r;
	if (f->o->json)
		return put_json(f, path, there && f->o->dry_run, there && !f->o->dry_run);
	printf("%s: %s\n", path,
	       !there	       ? "not there"
	       : f->o->dry_run ? "would be removed"
			       : "removed");
	if (there)
		say_next(f);
	return 0;
}

/* what the driver took, "" when none is loaded */
static void keys_in_force(const char *root, char *out, size_t len)
{
	char path[512], line[1024], *value;
	FILE *f;

	*out = '\0';
	snprintf(path, sizeof(path), "%s/proc/driver/nvidia/params", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "RegistryDwords:", 15)) {
			value = line + 15 + strspn(line + 15, " \"");
			value[strcspn(value, "\"\n")] = '\0';
			snprintf(out, len, "%s", value);
		}
	if (f)
		fclose(f);
}

static int show_keys(struct facts *f, const char *path)
{
	char force[1024], *old, *list;
	struct gp_error why;
	int r;

	r = read_ours(f, path, &old);
	if (r)
		return r;
	/* an unknown release still has something to show */
	f->err = &why;
	find_release(f);
	mp_options(f->o->root, look, f);
	keys_in_force(f->o->root, force, sizeof(force));
	list = old ? strstr(old, "NVreg_RegistryDwords=\"") : NULL;
	if (list) {
		list += strlen("NVreg_RegistryDwords=\"");
		snprintf(f->keys, sizeof(f->keys), "%.*s", (int)strcspn(list, "\""), list);
	}
	if (f->keys[0] && f->running[0] && strcmp(f->keys, force))
		warn(f,
		     "the driver runs with other keys than the file has: regenerate the initramfs and reboot; it may also have taken only the first pair");
	if (!f->o->json) {
		printf("%s: %s\n", path, f->keys[0] ? f->keys : "not there");
		printf("in force: %s\n", *force		 ? force
					 : f->running[0] ? "no keys"
							 : "no driver is loaded");
	} else {
		put_json(f, path, old, false);
	}
	free(old);
	return 0;
}

int gp_cmd_keys(const struct gp_options *o)
{
	struct gp_error err = { 0 };
	struct facts f = { .o = o, .err = &err, .warnings = json_object_new_array() };
	char *path = in_root(o->root, MP_FILE);
	int r;

	if (!!o->set + o->remove + o->show != 1 ||
	    (o->set && strcmp(o->set, "gpu-gpu") && strcmp(o->set, "pages") &&
	     strcmp(o->set, "storage"))) {
		gp_note("one of --set gpu-gpu, --set pages, --set storage, --remove and --show is needed");
		r = GP_EXIT_USAGE;
	} else {
		r = !path	? gp_system(&err, -ENOMEM, "read", MP_FILE)
		    : o->set	? set_keys(&f, path)
		    : o->remove ? remove_keys(&f, path)
				: show_keys(&f, path);
		r = r ? gp_fail(&err, o->json) : GP_EXIT_OK;
	}
	json_object_put(f.warnings);
	free(path);
	return r;
}
