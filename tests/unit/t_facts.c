// SPDX-License-Identifier: MIT
/*
 * t_facts.c - what facts/ reads out of a tree of /proc and /sys, made in a temporary folder
 * after the layout of real kernels. Fails when a mount, a kind of block device, the PCI
 * address of a drive or a module's version is told wrong, when a link leads out of the
 * tree, or when a reason is without its id, text or next step.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts.h"

#define PCI0 "sys/devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0"
#define PCI1 "sys/devices/pci0000:00/0000:00:05.0/10000:02:00.1/nvme/nvme1"
#define FABRIC "sys/devices/virtual/nvme-fabrics/ctl/nvme2"
#define SUBSYS "sys/devices/virtual/nvme-subsystem/nvme-subsys0"

static char root[] = "/tmp/t_facts.XXXXXX";

/* ---- a tree ---- */

static int drop(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	return nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static void in_root(char *out, size_t len, const char *path)
{
	assert_true((size_t)snprintf(out, len, "%s/%s", root, path) < len);
}

/* The folders above a file */
static void folders(const char *path)
{
	char full[1024], *p;

	in_root(full, sizeof(full), path);
	for (p = full + sizeof(root); (p = strchr(p, '/')); p++) {
		*p = '\0';
		assert_true(!mkdir(full, 0755) || errno == EEXIST);
		*p = '/';
	}
}

static void put(const char *path, const char *text)
{
	char full[1024];
	FILE *f;

	folders(path);
	in_root(full, sizeof(full), path);
	f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void put_in(const char *dir, const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	put(path, text);
}

static void ln(const char *path, const char *to)
{
	char full[1024];

	folders(path);
	in_root(full, sizeof(full), path);
	assert_int_equal(symlink(to, full), 0);
}

/* ---- mounts ---- */

static void mounts(const char *text)
{
	put("proc/self/mountinfo", text);
}

static void t_mount(void **state)
{
	struct facts_mount m;

	mounts("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	       "36 22 259:1 / /data rw,noatime shared:2 master:3 - ext4 /dev/nvme0n1p1 "
	       "rw,data=ordered\n"
	       "37 22 25:91 / /no rw - xfs /dev/sdx rw\n");
	assert_int_equal(facts_mount_find(root, 259, 1, &m), 0);
	assert_string_equal(m.fs, "ext4");
	assert_string_equal(m.source, "/dev/nvme0n1p1");
	assert_string_equal(m.point, "/data");
	assert_string_equal(m.options, "rw,noatime,rw,data=ordered");
	assert_int_equal(facts_mount_find(root, 25, 9, &m), -ENOENT);
	assert_string_equal(m.fs, "");
}

static void t_mount_no_optional_field(void **state)
{
	struct facts_mount m;

	/* no optional field, and no newline at the end */
	mounts("36 22 259:1 / /data ro - xfs /dev/nvme0n1 rw,attr2");
	assert_int_equal(facts_mount_find(root, 259, 1, &m), 0);
	assert_string_equal(m.fs, "xfs");
	assert_string_equal(m.options, "ro,rw,attr2");
}

static void t_mount_dash_names(void **state)
{
	struct facts_mount m;

	/* "-" ends the optional fields; before it, as a folder's name, it does not */
	mounts("36 22 0:50 / - rw - tmpfs - rw,size=4k\n");
	assert_int_equal(facts_mount_find(root, 0, 50, &m), 0);
	assert_string_equal(m.point, "-");
	assert_string_equal(m.fs, "tmpfs");
	assert_string_equal(m.source, "-");
	assert_string_equal(m.options, "rw,rw,size=4k");
}

static void t_mount_escapes(void **state)
{
	struct facts_mount m;

	mounts("36 22 259:1 / /a\\040b\\011c\\134040 rw - fuse.x /dev/a\\012b rw,name=x\\054dax\n");
	assert_int_equal(facts_mount_find(root, 259, 1, &m), 0);
	assert_string_equal(m.point, "/a b\tc\\040");
	assert_string_equal(m.source, "/dev/a\nb");
	/* a comma inside a value does not become an option */
	assert_false(facts_option(m.options, "dax", NULL));
}

static void t_mount_last_wins(void **state)
{
	struct facts_mount m;

	mounts("36 22 259:1 / /data rw - ext4 /dev/nvme0n1p1 rw,data=ordered\n"
	       "37 36 259:1 /sub /data ro - ext4 /dev/nvme0n1p1 rw,data=journal\n"
	       "38 22 259:2 / /other rw - xfs /dev/nvme0n1p2 rw\n");
	assert_int_equal(facts_mount_find(root, 259, 1, &m), 0);
	assert_string_equal(m.options, "ro,rw,data=journal");
}

/* btrfs: no line has the device number of a file, but one has the number of its mount. */
static void t_mount_by_id(void **state)
{
	struct facts_mount m;

	mounts("36 22 0:50 / /data rw - btrfs /dev/nvme0n1 rw,subvol=/\n"
	       "136 22 0:50 /sub /data/sub ro - btrfs /dev/nvme0n1 rw,subvol=/sub\n"
	       "6 22 259:2 / /other rw - xfs /dev/nvme0n1p2 rw\n");
	assert_int_equal(facts_mount_find(root, 0, 51, &m), -ENOENT);
	assert_int_equal(facts_mount_by_id(root, 36, &m), 0);
	assert_string_equal(m.fs, "btrfs");
	assert_string_equal(m.point, "/data");
	assert_int_equal(facts_mount_by_id(root, 136, &m), 0);
	assert_string_equal(m.point, "/data/sub");
	assert_int_equal(facts_mount_by_id(root, 3, &m), -ENOENT);
	assert_string_equal(m.fs, "");
	assert_int_equal(facts_mount_by_id(root, -ENOSYS, &m), -ENOENT);
	mounts("x36 22 0:50 / /data rw - btrfs /dev/nvme0n1 rw\n");
	assert_int_equal(facts_mount_by_id(root, 36, &m), -EPROTO);
}

static void t_mount_empty_source(void **state)
{
	struct facts_mount m;

	mounts("36 22 0:60 / /t rw - tmpfs  rw,size=8k\n");
	assert_int_equal(facts_mount_find(root, 0, 60, &m), 0);
	assert_string_equal(m.source, "");
	assert_string_equal(m.options, "rw,rw,size=8k");
}

/* A table larger than the buffer: lines that lie across its end are still whole. */
static void t_mount_many(void **state)
{
	struct facts_mount m;
	char *text = NULL;
	size_t len = 0;
	unsigned int i;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (i = 0; i < 2000; i++)
		fprintf(f, "%u 22 0:%u / /mnt/%u rw - tmpfs t%u rw,size=%uk\n", i, i, i, i, i);
	fclose(f);
	assert_true(len > 65536);
	mounts(text);
	free(text);
	for (i = 0; i < 2000; i += 37) {
		char want[32];

		assert_int_equal(facts_mount_find(root, 0, i, &m), 0);
		snprintf(want, sizeof(want), "/mnt/%u", i);
		assert_string_equal(m.point, want);
		snprintf(want, sizeof(want), "rw,rw,size=%uk", i);
		assert_string_equal(m.options, want);
	}
	assert_int_equal(facts_mount_find(root, 0, 2000, &m), -ENOENT);
}

/* A path of options is left out; what is too much besides is an error, never half a list. */
static void t_mount_long_options(void **state)
{
	char text[4096], dirs[300];
	struct facts_mount m;
	size_t n, i;

	memset(dirs, 'd', sizeof(dirs) - 1);
	dirs[sizeof(dirs) - 1] = '\0';
	snprintf(text, sizeof(text),
		 "36 22 0:70 / /o rw - overlay overlay rw,lowerdir=%s,data=journal\n", dirs);
	mounts(text);
	assert_int_equal(facts_mount_find(root, 0, 70, &m), 0);
	assert_string_equal(m.options, "rw,rw,data=journal");

	n = (size_t)snprintf(text, sizeof(text), "36 22 0:71 / /o rw - ext4 /dev/x rw");
	for (i = 0; i < 60; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",option%zu", i);
	snprintf(text + n, sizeof(text) - n, ",data=journal\n");
	mounts(text);
	assert_int_equal(facts_mount_find(root, 0, 71, &m), -EOVERFLOW);
	assert_string_equal(m.options, "");
}

static void t_mount_bad(void **state)
{
	struct facts_mount m;

	assert_int_equal(facts_mount_find(root, 1, 2, &m), -ENOENT);
	mounts("nonsense\n");
	assert_int_equal(facts_mount_find(root, 1, 2, &m), -EPROTO);
	mounts("36 22 0:70 / /o rw shared:1\n");
	assert_int_equal(facts_mount_find(root, 0, 70, &m), -EPROTO);
}

static void t_option(void **state)
{
	const char *o = "rw,data=ordered,dax=inode,nodelalloc";

	assert_true(facts_option(o, "rw", NULL));
	assert_true(facts_option(o, "nodelalloc", NULL));
	assert_false(facts_option(o, "delalloc", NULL));
	assert_false(facts_option(o, "nodelallo", NULL));
	assert_false(facts_option(o, "dax", NULL));
	assert_true(facts_option(o, "data", "ordered"));
	assert_false(facts_option(o, "data", "order"));
	assert_false(facts_option(o, "data", "orderedx"));
	assert_false(facts_option(o, "dat", "ordered"));
	assert_false(facts_option("", "rw", NULL));
}

/* ---- block devices ---- */

static void nvme_drive(void)
{
	put(PCI0 "/nvme0n1/queue/logical_block_size", "512\n");
	put(PCI0 "/nvme0n1/integrity/format", "none\n");
	put(PCI0 "/nvme0n1/nvme0n1p2/partition", "2\n");
	ln("sys/dev/block/259:0",
	   "../../devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0/nvme0n1");
	ln("sys/dev/block/259:2",
	   "../../devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2");
}

static void t_block_nvme(void **state)
{
	struct facts_block b;

	nvme_drive();
	assert_int_equal(facts_block_find(root, 259, 0, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME);
	assert_string_equal(b.name, "nvme0n1");
	assert_string_equal(b.disk, "nvme0n1");
	assert_string_equal(b.pci, "0000:01:00.0");
	assert_int_equal(b.logical_block, 512);
	assert_false(b.integrity);
	assert_int_equal(facts_block_find(root, 259, 2, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME);
	assert_string_equal(b.name, "nvme0n1p2");
	assert_string_equal(b.disk, "nvme0n1");
	assert_string_equal(b.pci, "0000:01:00.0");
	assert_int_equal(b.logical_block, 512);
}

/* podman puts an empty folder in the place of sys/dev/block. */
static void t_block_masked(void **state)
{
	struct facts_block b;
	char text[16];

	put(PCI0 "/nvme0n1/queue/logical_block_size", "512\n");
	put(PCI0 "/nvme0n1/dev", "259:0\n");
	put(PCI0 "/nvme0n1/nvme0n1p2/partition", "2\n");
	put(PCI0 "/nvme0n1/nvme0n1p2/dev", "259:2\n");
	put("sys/dev/block/.keep", "");
	ln("sys/class/block/nvme0n1",
	   "../../devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0/nvme0n1");
	ln("sys/class/block/nvme0n1p2",
	   "../../devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2");
	assert_int_equal(facts_block_find(root, 259, 2, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME);
	assert_string_equal(b.name, "nvme0n1p2");
	assert_string_equal(b.disk, "nvme0n1");
	assert_int_equal(facts_block_find(root, 259, 0, &b), 0);
	assert_string_equal(b.name, "nvme0n1");
	assert_true(facts_block_text(root, 259, 2, "queue/logical_block_size", text,
				     sizeof(text)) > 0);
	assert_string_equal(text, "512");
	assert_int_equal(facts_block_find(root, 259, 22, &b), -ENOENT);
}

static void t_block_integrity(void **state)
{
	struct facts_block b;

	nvme_drive();
	put(PCI0 "/nvme0n1/integrity/format", "T10-DIF-TYPE1-CRC\n");
	assert_int_equal(facts_block_find(root, 259, 2, &b), 0);
	assert_true(b.integrity);
	put(PCI0 "/nvme0n1/integrity/format", "nop\n");
	assert_int_equal(facts_block_find(root, 259, 2, &b), 0);
	assert_false(b.integrity);
}

static void t_block_fabric(void **state)
{
	struct facts_block b;

	put(FABRIC "/nvme2n1/queue/logical_block_size", "4096\n");
	ln("sys/dev/block/259:7", "../../devices/virtual/nvme-fabrics/ctl/nvme2/nvme2n1");
	assert_int_equal(facts_block_find(root, 259, 7, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME_FABRIC);
	assert_string_equal(b.pci, "");
	assert_int_equal(b.logical_block, 4096);
}

/* The head nvme0n1 of a subsystem, and the controller nvme0 that does not reach it yet */
static void head(void)
{
	put(SUBSYS "/nvme0n1/queue/logical_block_size", "512\n");
	put(SUBSYS "/nvme0n1/nvme0n1p1/partition", "1\n");
	put(SUBSYS "/subsysnqn", "nqn\n");
	ln("sys/dev/block/259:10", "../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1");
	ln("sys/dev/block/259:11",
	   "../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/nvme0n1p1");
	put(PCI0 "/state", "live\n");
	ln(SUBSYS "/nvme0", "../../../pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0");
}

static void t_block_head_one_path(void **state)
{
	struct facts_block b;

	head();
	put(PCI0 "/nvme0c0n1/hidden", "1\n");
	assert_int_equal(facts_block_find(root, 259, 11, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME);
	assert_string_equal(b.name, "nvme0n1p1");
	assert_string_equal(b.disk, "nvme0n1");
	assert_string_equal(b.pci, "0000:01:00.0");
	assert_int_equal(b.logical_block, 512);
}

/* A second controller that reaches another namespace only is no path of this one. */
static void t_block_head_other_namespace(void **state)
{
	struct facts_block b;

	head();
	put(PCI0 "/nvme0c0n1/hidden", "1\n");
	ln(SUBSYS "/nvme1", "../../../pci0000:00/0000:00:05.0/10000:02:00.1/nvme/nvme1");
	put(PCI1 "/nvme0c1n2/hidden", "1\n");
	assert_int_equal(facts_block_find(root, 259, 10, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME);
	assert_string_equal(b.pci, "0000:01:00.0");
}

static void t_block_head_two_paths(void **state)
{
	struct facts_block b;

	head();
	put(PCI0 "/nvme0c0n1/hidden", "1\n");
	ln(SUBSYS "/nvme1", "../../../pci0000:00/0000:00:05.0/10000:02:00.1/nvme/nvme1");
	put(PCI1 "/nvme0c1n1/hidden", "1\n");
	assert_int_equal(facts_block_find(root, 259, 10, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME_MULTIPATH);
	assert_string_equal(b.pci, "");
}

static void t_block_head_fabric(void **state)
{
	struct facts_block b;

	head();
	ln(SUBSYS "/nvme2", "../../nvme-fabrics/ctl/nvme2");
	put(FABRIC "/nvme0c2n1/hidden", "1\n");
	assert_int_equal(facts_block_find(root, 259, 10, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME_FABRIC);
	assert_string_equal(b.pci, "");
}

static void t_block_head_no_path(void **state)
{
	struct facts_block b;

	head();
	assert_int_equal(facts_block_find(root, 259, 10, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME_MULTIPATH);
	assert_string_equal(b.pci, "");
}

/* More digits in the domain, as behind a volume management device */
static void t_block_domain(void **state)
{
	struct facts_block b;

	put(PCI1 "/nvme1n1/size", "1\n");
	ln("sys/dev/block/259:20",
	   "../../devices/pci0000:00/0000:00:05.0/10000:02:00.1/nvme/nvme1/nvme1n1");
	assert_int_equal(facts_block_find(root, 259, 20, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_NVME);
	assert_string_equal(b.pci, "10000:02:00.1");
	assert_int_equal(b.logical_block, 0);
}

static void t_block_others(void **state)
{
	static const struct {
		const char *disk, *part;
		enum facts_block_kind kind;
	} row[] = {
		{ "virtual/block/dm-3", NULL, FACTS_BLOCK_DM },
		{ "virtual/block/md127", "md127p1", FACTS_BLOCK_MD },
		{ "virtual/block/loop0", NULL, FACTS_BLOCK_OTHER },
		{ "pci0000:00/0000:00:02.0/ata1/block/sda", "sda1", FACTS_BLOCK_OTHER },
		/* a name alone makes no drive */
		{ "virtual/block/nvme9n1", NULL, FACTS_BLOCK_OTHER },
	};
	char dir[256], link[64], to[512];
	struct facts_block b;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		snprintf(dir, sizeof(dir), "sys/devices/%s", row[i].disk);
		put_in(dir, "size", "8\n");
		snprintf(to, sizeof(to), "../../devices/%s%s%s", row[i].disk,
			 row[i].part ? "/" : "", row[i].part ? row[i].part : "");
		if (row[i].part) {
			snprintf(dir, sizeof(dir), "sys/devices/%s/%s", row[i].disk, row[i].part);
			put_in(dir, "partition", "1\n");
		}
		snprintf(link, sizeof(link), "sys/dev/block/9:%u", i);
		ln(link, to);
		assert_int_equal(facts_block_find(root, 9, i, &b), 0);
		assert_int_equal(b.kind, row[i].kind);
		assert_string_equal(b.disk, strrchr(row[i].disk, '/') + 1);
		assert_string_equal(b.name, strrchr(to, '/') + 1);
		assert_string_equal(b.pci, "");
	}
}

/* A named md device has no number in its name, but its folder. */
static void t_block_md_named(void **state)
{
	struct facts_block b;

	put("sys/devices/virtual/block/md_home/md/level", "raid0\n");
	ln("sys/dev/block/9:99", "../../devices/virtual/block/md_home");
	assert_int_equal(facts_block_find(root, 9, 99, &b), 0);
	assert_int_equal(b.kind, FACTS_BLOCK_MD);
}

static void t_block_bad(void **state)
{
	struct facts_block b;

	assert_int_equal(facts_block_find(root, 0, 31, &b), -ENOENT);
	ln("sys/dev/block/1:1", "../../../../../../etc");
	assert_int_equal(facts_block_find(root, 1, 1, &b), -EXDEV);
	put("sys/dev/block/1:2/size", "1\n");
	assert_int_equal(facts_block_find(root, 1, 2, &b), -EINVAL);
	assert_string_equal(b.name, "");
}

/* ---- the module ---- */

static void module(const char *version, const char *devcount)
{
	put("proc/driver/nvidia-fs/version", version);
	put("proc/driver/nvidia-fs/devcount", devcount);
}

static void t_nvfs(void **state)
{
	struct facts_nvfs v;

	assert_int_equal(facts_nvfs_find(root, &v), -ENODEV);
	module("version: 2.28\n", "16\n");
	assert_int_equal(facts_nvfs_find(root, &v), 0);
	assert_int_equal(v.major, 2);
	assert_int_equal(v.minor, 28);
	assert_int_equal(v.devcount, 16);
	assert_false(v.ours);
	put("proc/driver/nvidia-fs/opengds", "version: 2.28.4\npin_mode: auto\n");
	module("version: 2.7.50\n", "0\n");
	assert_int_equal(facts_nvfs_find(root, &v), 0);
	assert_int_equal(v.minor, 7);
	assert_int_equal(v.devcount, 0);
	assert_true(v.ours);
}

static void t_nvfs_bad(void **state)
{
	static const char *const row[][2] = {
		{ "", "16" }, { "2.28", "16" }, { "version: 2", "16" }, { "version: -2.28", "16" },
		{ "version: 2.28 x", "16" }, { "version: 2.28.", "16" }, { "version: 2.28", "" },
		{ "version: 2.28", "many" }, { "version: 2.28", "-1" }, { "version: 2.28", "9999" },
		{ "version: 2.28", "16 17" },
	};
	struct facts_nvfs v;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		module(row[i][0], row[i][1]);
		assert_int_equal(facts_nvfs_find(root, &v), -EPROTO);
		assert_int_equal(v.major, 0);
	}
	module("version: 2.28", "16");
	assert_int_equal(facts_nvfs_find(root, &v), 0);
}

static void t_nvfs_no_devcount(void **state)
{
	struct facts_nvfs v;

	put("proc/driver/nvidia-fs/version", "version: 2.28\n");
	assert_int_equal(facts_nvfs_find(root, &v), -EPROTO);
}

/* ---- reasons ---- */

static void t_reasons(void **state)
{
	const struct facts_reason_text *r, *other;
	unsigned int i, j;
	const char *p;

	for (i = 0; i < REASONS; i++) {
		r = facts_reason(i);
		assert_int_equal(strncmp(r->id, "R-", 2), 0);
		for (p = r->id; *p; p++)
			assert_true(isupper((unsigned char)*p) || *p == '-');
		assert_true(r->text[0] && r->text[strlen(r->text) - 1] != '.');
		assert_true(r->remedy[0] && r->remedy[strlen(r->remedy) - 1] != '.');
		for (j = 0; j < i; j++) {
			other = facts_reason(j);
			assert_string_not_equal(r->id, other->id);
			assert_string_not_equal(r->text, other->text);
		}
	}
	assert_string_equal(facts_reason(REASONS)->id, "R-UNKNOWN");
	assert_string_equal(facts_reason(UINT32_MAX)->id, "R-UNKNOWN");
}

/* The ids that programs and people hold on to */
static void t_reason_ids(void **state)
{
#define ID(name, want) assert_string_equal(facts_reason(REASON_##name)->id, want)
	ID(NONE, "R-NONE");
	ID(HOST_MEMORY, "R-HOST-MEMORY");
	ID(EDGE, "R-EDGE");
	ID(EOF_BLOCK, "R-EOF-BLOCK");
	ID(OFFSET_MISMATCH, "R-OFFSET-MISMATCH");
	ID(NOT_REGISTERED, "R-NOT-REGISTERED");
	ID(FORCE_COMPAT, "R-FORCE-COMPAT");
	ID(ROUTE_DENIED, "R-ROUTE-DENIED");
	ID(NO_MODULE, "R-NO-MODULE");
	ID(MODULE_ACCESS, "R-MODULE-ACCESS");
	ID(MODULE_NODES, "R-MODULE-NODES");
	ID(MODULE_VERSION, "R-MODULE-VERSION");
	ID(PIN_FAILED, "R-PIN-FAILED");
	ID(PIN_GATED, "R-PIN-GATED");
	ID(PIN_LIMIT, "R-PIN-LIMIT");
	ID(MANAGED_MEMORY, "R-MANAGED-MEMORY");
	ID(OTHER_CONTEXT, "R-OTHER-CONTEXT");
	ID(FS_TYPE, "R-FS-TYPE");
	ID(FS_UNKNOWN, "R-FS-UNKNOWN");
	ID(FS_JOURNAL, "R-FS-JOURNAL");
	ID(FS_ATTRIBUTE, "R-FS-ATTRIBUTE");
	ID(NO_ODIRECT, "R-NO-ODIRECT");
	ID(DIO_ALIGN, "R-DIO-ALIGN");
	ID(NOT_NVME, "R-NOT-NVME");
	ID(STACKED, "R-STACKED");
	ID(INTEGRITY, "R-INTEGRITY");
	ID(MODULE_REFUSED, "R-MODULE-REFUSED");
	ID(DIRECT_FAILED, "R-DIRECT-FAILED");
	ID(NO_STAGING, "R-NO-STAGING");
	ID(HOLE, "R-HOLE");
	ID(STRICT, "R-STRICT");
	ID(COMPAT_FORBIDDEN, "R-COMPAT-FORBIDDEN");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(t_mount), T(t_mount_no_optional_field), T(t_mount_dash_names),
		T(t_mount_escapes), T(t_mount_last_wins), T(t_mount_empty_source),
		T(t_mount_by_id), T(t_mount_many), T(t_mount_long_options), T(t_mount_bad),
		T(t_option),
		T(t_block_nvme), T(t_block_masked), T(t_block_integrity), T(t_block_fabric),
		T(t_block_head_one_path), T(t_block_head_other_namespace),
		T(t_block_head_two_paths), T(t_block_head_fabric), T(t_block_head_no_path),
		T(t_block_domain), T(t_block_others), T(t_block_md_named), T(t_block_bad),
		T(t_nvfs), T(t_nvfs_bad), T(t_nvfs_no_devcount),
		T(t_reasons), T(t_reason_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
