// SPDX-License-Identifier: MIT
/*
 * record.c - this machine as the doctor sees it, in a tar archive that --root takes unpacked.
 *
 * The doctor runs once, and every path that it looks at is noted (facts_seen). Each file goes in by
 * the rule that the table has for it: the lines that are asked for, a new text of the same meaning,
 * or, below /proc and /sys alone, as it is. What no rule knows is left out. docs/gdscheck.md has
 * the format.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gdscheck.h"
#include "read.h"
#include "scrub.h"
#include "tar.h"

#define WHOLE (1024 * 1024)	/* bytes of a file that is taken as it is */

struct look {
	char *path;
	enum facts_look how;
};

struct recorder {
	struct look *look;
	size_t n, room;
	bool full;		/* of memory: what follows is lost */
	const char *root;	/* "": this machine */
	struct gc_machine *m;
	struct scrub scrub;
	FILE *tar, *out;
	char *buf;		/* what the member at hand holds */
	size_t len, buf_room;
	unsigned int members, confs;
};

static struct recorder *recorder;	/* facts_seen has no argument */

/* -- what is looked at -- */

static void add(struct recorder *r, const char *path, enum facts_look how)
{
	struct look *more;

	if (r->n == r->room) {
		more = realloc(r->look, (r->room + 512) * sizeof(*more));
		if (!more) {
			r->full = true;
			return;
		}
		r->look = more;
		r->room += 512;
	}
	r->look[r->n].how = how;
	r->look[r->n].path = strdup(path);
	r->full |= !r->look[r->n].path;
	r->n += r->look[r->n].path != NULL;
}

static void seen(const char *root, const char *path, enum facts_look how)
{
	add(recorder, path, how);
}

static int listed(void *arg, const char *name)
{
	const char *dir = arg;
	char path[FACTS_SYSFS_PATH];

	if (!facts_join(dir, name, path, sizeof(path)))
		add(recorder, path, FACTS_LOOK_THERE);
	return 0;
}

/* The names in folders of the kernel; of other folders those that were looked at are enough. */
static void list_folders(struct recorder *r)
{
	size_t i, n = r->n;
	char *dir;

	for (i = 0; i < n; i++) {
		if (r->look[i].how != FACTS_LOOK_DIR ||
		    (strncmp(r->look[i].path, "sys/", 4) && strncmp(r->look[i].path, "proc/", 5)))
			continue;
		dir = strdup(r->look[i].path);
		if (dir)
			facts_entries(r->root, dir, listed, dir);
		else
			r->full = true;
		free(dir);
	}
}

/* By path; of several looks at one the one that takes most: file, link, there, folder */
static int by_path(const void *a, const void *b)
{
	const struct look *p = a, *q = b;
	int r = strcmp(p->path, q->path);

	return r ? r : (int)p->how - (int)q->how;
}

/* -- texts -- */

static void text(struct recorder *r, const char *line)
{
	size_t n = strlen(line);
	char *more;

	if (r->len + n + 2 > r->buf_room) {
		more = realloc(r->buf, r->buf_room + n + WHOLE);
		if (!more) {
			r->full = true;
			return;
		}
		r->buf = more;
		r->buf_room += n + WHOLE;
	}
	memcpy(r->buf + r->len, line, n + 1);
	r->len += n;
}

/* A rule: what of a file goes in. `words`: keep the lines that hold one of them. */
struct rule {
	const char *path;	/* a pattern of the shell */
	const char *words[6];
	void (*take)(struct recorder *r, const char *path);
	const char *says;	/* of what is left out */
};

static const char *const *keep;	/* words of the rule at hand */

static int keep_line(void *arg, char *line)
{
	struct recorder *r = arg;
	size_t i;

	for (i = 0; keep[i]; i++) {
		if (!strstr(line, keep[i]))
			continue;
		text(r, line);
		text(r, "\n");
		break;
	}
	return 0;
}

static void take_whole(struct recorder *r, const char *path)
{
	char *buf = malloc(WHOLE);
	int n;

	n = buf ? facts_read(r->root, path, buf, WHOLE) : -ENOMEM;
	if (n >= 0) {
		text(r, buf);
		text(r, "\n");
	}
	free(buf);
}

static int first_processor(void *arg, char *line)
{
	static const char *const words[] = { "vendor_id", "cpu family", "flags\t", NULL };

	keep = words;
	keep_line(arg, line);
	return !line[0];
}

static void take_cpu(struct recorder *r, const char *path)
{
	facts_lines(r->root, path, first_processor, r);
}

/* Addresses tell nothing here and are a secret: zeros. */
static int symbol(void *arg, char *line)
{
	static const char *const names[] = {
		"nvme_v1_register_nvfs_dma_ops", "nvme_v2_register_nvfs_dma_ops",
		"p2pdma_pgmap_ops",
	};
	char *name = strchr(line, ' ');
	size_t i, n;

	name = name ? strchr(name + 1, ' ') : NULL;
	for (i = 0; name && i < 3; i++) {
		n = strlen(names[i]);
		if (strncmp(name + 1, names[i], n) || (name[1 + n] && name[1 + n] != '\t'))
			continue;
		text(arg, "0000000000000000 t ");
		text(arg, names[i]);
		text(arg, "\n");
	}
	return 0;
}

static void take_symbols(struct recorder *r, const char *path)
{
	facts_lines(r->root, path, symbol, r);
}

/* "(user@host)" of who built the driver */
static int builder(void *arg, char *line)
{
	char *open = strchr(line, '('), *shut = open ? strchr(open, ')') : NULL;

	if (strncmp(line, "NVRM", 4))
		return 0;
	if (open && shut)
		memmove(open, shut + 1, strlen(shut + 1) + 1);
	text(arg, line);
	text(arg, "\n");
	return 1;
}

static void take_version(struct recorder *r, const char *path)
{
	facts_lines(r->root, path, builder, r);
}

/* "LVM-" and what follows: the first part says which kind it is */
static void take_dm(struct recorder *r, const char *path)
{
	char uuid[FACTS_PATH];

	if (facts_read(r->root, path, uuid, sizeof(uuid)) <= 0)
		return;
	uuid[strcspn(uuid, "-")] = '\0';
	text(r, uuid);
	text(r, "-\n");
}

/* The words of options lines that the doctor asks for */
static int modprobe_words(void *arg, char *line)
{
	static const char *const words[] = { "NVreg_RegistryDwords=", "NVreg_EnableGpuFirmware=" };
	const char *at;
	char one[FACTS_PATH];
	size_t i, n;

	line += strspn(line, " \t");
	if (strncmp(line, "options", 7) || !strstr(line, "nvidia"))
		return 0;
	for (i = 0; i < 2; i++) {
		at = strstr(line, words[i]);
		if (!at)
			continue;
		n = strlen(words[i]);
		n += at[n] == '"' ? strcspn(at + n + 1, "\"") + 2 : strcspn(at + n, " \t");
		snprintf(one, sizeof(one), "options nvidia %.*s\n", (int)n, at);
		text(arg, one);
	}
	return 0;
}

static void take_modprobe(struct recorder *r, const char *path)
{
	facts_lines(r->root, path, modprobe_words, r);
}

static int one_mount(void *arg, const struct facts_mount *m)
{
	static const char *const kept[] = { "rw", "ro", "dax", "nodatacow" };
	static const char *const modes[] = { "journal", "ordered", "writeback" };
	char point[FACTS_PATH], source[FACTS_PATH], head[3 * FACTS_PATH];
	struct recorder *r = arg;
	size_t i, n = 0;

	scrub_path(&r->scrub, m->point, point, sizeof(point));
	scrub_source(&r->scrub, m->source, source, sizeof(source));
	snprintf(head, sizeof(head), "%u 0 %u:%u / %s rw - %s %s ", r->members, m->major, m->minor,
		 point, m->fs, source);
	text(r, head);
	for (i = 0; i < 4; i++) {
		if (!facts_option(m->options, kept[i], NULL))
			continue;
		text(r, n++ ? "," : "");
		text(r, kept[i]);
	}
	for (i = 0; i < 3; i++) {
		if (!facts_option(m->options, "data", modes[i]))
			continue;
		text(r, n++ ? ",data=" : "data=");
		text(r, modes[i]);
	}
	text(r, n ? "\n" : "rw\n");
	return 0;
}

static void take_mounts(struct recorder *r, const char *path)
{
	facts_mounts(r->root, one_mount, r);
}

/* Of the configuration what is judged: the rest has addresses and folders in it. */
static void take_json(struct recorder *r, const char *path)
{
	static const char *const routes[] = { "nvfs", "p2pdma", "staged", "bar", "bounce", "host" };
	const struct config *c = &r->m->config;
	size_t i, n = 0;

	if (!r->m->config_found)
		return;
	text(r, "{ \"properties\": { \"allow_compat_mode\": ");
	text(r, c->allow_compat ? "true" : "false");
	text(r, ", \"force_compat_mode\": ");
	text(r, c->force_compat ? "true" : "false");
	text(r, " }, \"opengds\": { \"strict\": ");
	text(r, c->strict ? "true" : "false");
	text(r, ", \"register_peers\": ");
	text(r, c->register_peers ? "true" : "false");
	text(r, ", \"routes\": [");
	for (i = 0; i < 6; i++) {
		if (!(c->routes & 1u << i))
			continue;
		text(r, n++ ? ", \"" : " \"");
		text(r, routes[i]);
		text(r, "\"");
	}
	text(r, " ] } }\n");
}

/* What the kernel was built with, by whichever file told it */
static void take_kconfig(struct recorder *r)
{
	char file[FACTS_PATH], path[FACTS_PATH];
	char v = gc_kconfig(r->m, "CONFIG_PCI_P2PDMA", file, sizeof(file));

	r->len = 0;
	if (!v || !r->m->release[0])
		return;
	snprintf(path, sizeof(path), "boot/config-%s", r->m->release);
	text(r, v == 'n' ? "# CONFIG_PCI_P2PDMA is not set\n" : "CONFIG_PCI_P2PDMA=y\n");
	if (!tar_file(r->tar, path, 0644, r->buf, r->len))
		r->members++;
	fprintf(r->out, "  /%s: all options but CONFIG_PCI_P2PDMA\n", file);
}

static const struct rule rules[] = {
	{ "proc/kallsyms", .take = take_symbols, .says = "all symbols but those of the hook and of P2PDMA, all addresses" },
	{ "proc/cpuinfo", .take = take_cpu, .says = "all but vendor, family and flags of the first processor" },
	{ "proc/driver/nvidia/version", .take = take_version, .says = "who built the driver" },
	{ "proc/driver/nvidia/params", { "RegistryDwords:", "EnableGpuFirmware:" }, .says = "all but RegistryDwords and EnableGpuFirmware" },
	{ "proc/driver/nvidia/gpus/*/information", { "Model:", "GPU Firmware:", "Device Minor:" }, .says = "all but model, firmware and minor number" },
	{ "proc/self/limits", { "Max locked memory", "Max open files" }, .says = "all but locked memory and open files" },
	{ "proc/self/status", { "Seccomp:" }, .says = "all but Seccomp" },
	{ "proc/self/mountinfo", .take = take_mounts, .says = "names of folders, volumes and servers (replaced), most options" },
	{ "proc/fs/ext4/*/options", { "data=" }, .says = "all but the journal mode" },
	{ "dev/kmsg", { "nvidia_fs: disagrees about", "no symbol version for nvidia_p2p", "Unknown symbol nvidia_p2p", "no space for BAR1 mappings" }, .says = "all but complaints about nvidia-fs and BAR1" },
	{ "*/dm/uuid", .take = take_dm, .says = "all but the kind of the volume" },
	{ "*modprobe.d/*.conf", .take = take_modprobe, .says = "its name, and all but NVreg_RegistryDwords and NVreg_EnableGpuFirmware" },
	{ "usr/src/*/g_kern_bus_nvoc.c", { "&kbusGetBar1P2PDmaInfo_", "ForBar1P2P_", "&kbusHasPcieBar1P2PMapping_", "&kbusIsPcieBar1P2PMappingSupported_" }, .says = "all but the lines that a patch changes" },
	{ "etc/cufile.json", .take = take_json, .says = "all but compat modes, strict, register_peers and routes" },
	{ "sys/*", .take = take_whole },
	{ "proc/*", .take = take_whole },
};

/* -- members -- */

static void take_file(struct recorder *r, const char *path, unsigned int mode)
{
	const struct rule *rule = rules, *end = rules + sizeof(rules) / sizeof(rules[0]);
	char name[FACTS_PATH];

	while (rule < end && fnmatch(rule->path, path, 0))
		rule++;
	if (rule == end) {
		fprintf(r->out, "  /%s: left out\n", path);
		return;
	}
	r->len = 0;
	if (rule->take) {
		rule->take(r, path);
	} else {
		keep = rule->words;
		facts_lines(r->root, path, keep_line, r);
	}
	/* an empty file is there all the same */
	if (r->len)
		r->len = scrub_text(&r->scrub, r->buf, r->len);
	snprintf(name, sizeof(name), "%s", path);
	if (rule->take == take_modprobe) {
		if (!r->len)
			return;
		snprintf(name, sizeof(name), "%.*s/file%u.conf",
			 (int)(strrchr(path, '/') - path), path, ++r->confs);
	}
	if (rule->says)
		fprintf(r->out, "  /%s: %s\n", path, rule->says);
	if (tar_file(r->tar, name, mode, r->buf, r->len))
		r->full = true;
	r->members++;
}

/* The first 4 KiB of the configuration, with the serial number taken out */
static void take_pci(struct recorder *r, const char *path)
{
	unsigned char c[4096];
	char full[PATH_MAX];
	ssize_t n;
	int fd;

	if (facts_join(r->root, path, full, sizeof(full)))
		return;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, c, sizeof(c));
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	scrub_config(c, (size_t)n);
	if (tar_file(r->tar, path, 0644, c, (size_t)n))
		r->full = true;
	r->members++;
}

static bool is_config_space(const char *path)
{
	return !strncmp(path, "sys/devices/", 12) && !strcmp(facts_base(path), "config");
}

static void take(struct recorder *r, const struct look *l)
{
	char full[PATH_MAX], to[FACTS_SYSFS_PATH];
	struct stat st;
	ssize_t n;

	if (facts_join(r->root, l->path, full, sizeof(full)) || lstat(full, &st))
		return;
	if (!strncmp(l->path, "boot/", 5) || !strncmp(l->path, "lib/modules/", 12) ||
	    !strcmp(l->path, "proc/config.gz"))
		return;		/* take_kconfig() */
	if (l->how == FACTS_LOOK_FILE) {
		if (is_config_space(l->path))
			take_pci(r, l->path);
		else
			take_file(r, l->path, st.st_mode);
		return;
	}
	if (S_ISLNK(st.st_mode)) {
		n = readlink(full, to, sizeof(to) - 1);
		if (n <= 0)
			return;
		to[n] = '\0';
		r->full |= tar_link(r->tar, l->path, to) != 0;
	} else if (S_ISDIR(st.st_mode)) {
		r->full |= tar_dir(r->tar, l->path) != 0;
	} else {
		r->full |= tar_file(r->tar, l->path, st.st_mode, "", 0) != 0;
	}
	r->members++;
}

/* The configuration of all functions that matter, also those that no check asked for */
static void all_pci(struct recorder *r)
{
	char path[FACTS_SYSFS_PATH], file[FACTS_SYSFS_PATH];
	size_t i;

	for (i = 0; i < r->m->npci; i++)
		if (!facts_link(r->root, "sys/bus/pci/devices", r->m->pci[i].address, path,
				sizeof(path)) &&
		    !facts_join(path, "config", file, sizeof(file)))
			add(r, file, FACTS_LOOK_FILE);
}

static int look_around(struct recorder *r)
{
	struct gc_report report;
	int err;

	recorder = r;
	facts_seen = seen;
	err = gc_machine_read(r->m, r->root, NULL, 0);
	if (!err)
		err = gc_doctor(r->m, &report);
	facts_seen = NULL;
	if (err)
		return err;
	gc_report_free(&report);
	all_pci(r);
	list_folders(r);
	qsort(r->look, r->n, sizeof(*r->look), by_path);
	return 0;
}

static int write_archive(struct recorder *r)
{
	size_t i;

	fputs("left out or replaced:\n", r->out);
	/* so that an empty machine has it, too: --root looks for this folder */
	r->full |= tar_dir(r->tar, "proc") != 0;
	for (i = 0; i < r->n; i++)
		if (!i || strcmp(r->look[i].path, r->look[i - 1].path))
			take(r, &r->look[i]);
	take_kconfig(r);
	return r->full || tar_end(r->tar) ? -EIO : 0;
}

static void forget(struct recorder *r)
{
	while (r->n)
		free(r->look[--r->n].path);
	free(r->look);
	free(r->buf);
	free(r->m);
	free(r);
}

int gc_record(const char *root, const char *file, FILE *out)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		goto out;
	r->root = root;
	r->out = out;
	r->m = malloc(sizeof(*r->m));
	if (r->m)
		err = look_around(r);
	if (!err) {
		r->tar = fopen(file, "we");
		err = r->tar ? write_archive(r) : -errno;
	}
	if (r->tar && fclose(r->tar) && !err)
		err = -errno;
	if (!err)
		fprintf(out, "%s: %u members; names of hosts and users are in none of them. Look at it before you share it:\n"
			"  mkdir DIR && tar -xf %s -C DIR && gdscheck --root DIR\n",
			file, r->members, file);
	forget(r);
out:
	if (err)
		fprintf(stderr, "gdscheck: %s: %s: nothing is recorded; name another file\n", file,
			strerror(-err));
	return err ? GC_EXIT_ERROR : GC_EXIT_OK;
}
