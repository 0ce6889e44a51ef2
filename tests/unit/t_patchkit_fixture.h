/* SPDX-License-Identifier: MIT */
/*
 * t_patchkit_fixture.h - a small driver in a folder, an edit set for it, and what the tests
 * of trees do with them. For t_patchkit_tree.c and t_patchkit_crash.c.
 */
#ifndef T_PATCHKIT_FIXTURE_H
#define T_PATCHKIT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patchkit.h"

static struct pk_error err;
static char base[64], root[80], set_path[80];

/* a small quarantine: AddressSanitizer's usual one makes a fork slow, and we fork a lot */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1";
}

static inline int no_fsync(int fd)
{
	(void)fd;
	return 0;
}

/* as libc, but a thousand runs do not wait for a disk */
static struct pk_os os_quick;

/* ---- a small driver, and a set for it ---- */

static const char drv[] =
	"/* a driver */\n"
	"#include <linux/a.h>\n"
	"#include \"drv.h\"\n"
	"\n"
	"struct drv_io {\n"
	"\tstruct drv_request req;\n"
	"\tint first;\n"
	"};\n"
	"\n"
	"/* give it back */\n"
	"static void drv_unmap(struct drv_dev *dev, struct drv_request *req)\n"
	"{\n"
	"\tstruct drv_io *io = to_io(req);\n"
	"\n"
	"\tif (io->first)\n"
	"\t\treturn;\n"
	"}\n"
	"\n"
	"static int drv_map(struct drv_dev *dev, struct drv_request *req)\n"
	"{\n"
	"\tint ret = -1;\n"
	"\n"
	"\tret = simple(dev, req);\n"
	"\treturn ret;\n"
	"}\n";

static const char drv_after[] =
	"/* a driver */\n"
	"#include <linux/a.h>\n"
	"#include \"drv.h\"\n"
	"#include \"hook.h\"\n"
	"\n"
	"struct drv_io {\n"
	"\tstruct drv_request req;\n"
	"\tstruct hook *hook;\n"
	"\tint first;\n"
	"};\n"
	"\n"
	"static int drv_hook(struct drv_request *req);\n"
	"/* give it back */\n"
	"static void drv_unmap(struct drv_dev *dev, struct drv_request *req)\n"
	"{\n"
	"\tstruct drv_io *io = to_io(req);\n"
	"\n"
	"\tif (io->hook)\n"
	"\t\treturn;\n"
	"\n"
	"\tif (io->first)\n"
	"\t\treturn;\n"
	"}\n"
	"\n"
	"static int drv_map(struct drv_dev *dev, struct drv_request *req)\n"
	"{\n"
	"\tint ret = -1;\n"
	"\n"
	"\tret = clever(dev, req);\n"
	"\treturn ret;\n"
	"}\n";

static const char mk[] = "obj-m := drv.o\n# drv-y += main.o\ndrv-y\t+= main.o\n";
static const char mk_after[] = "obj-m := drv.o\n# drv-y += main.o\ndrv-y\t+= main.o\ndrv-y += hook.o\n";
static const char hook_h[] = "struct hook;\n";

static const char the_set[] =
	"# a set\n"
	"set hook\n"
	"file src/drv.c\n"
	"forbid vendor_hook\n"
	"expect drv_map : struct drv_dev *dev, struct drv_request *req\n"
	"after-include \"drv.h\"\n"
	"|#include \"hook.h\"\n"
	"after-member drv_io : struct drv_request req;\n"
	"|\tstruct hook *hook;\n"
	"before-function drv_unmap\n"
	"|static int drv_hook(struct drv_request *req);\n"
	"first-in drv_unmap\n"
	"|\tif (io->hook)\n"
	"|\t\treturn;\n"
	"replace drv_map : ret = simple(...);\n"
	"|ret = clever(dev, req);\n"
	"file Makefile make\n"
	"after-line drv-y += main.o\n"
	"|drv-y += hook.o\n"
	"add src/hook.h from hook.in\n";

static inline void put(const char *dir, const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline void run(const char *cmd, const char *arg)
{
	char line[1024];

	snprintf(line, sizeof(line), cmd, arg);
	assert_int_equal(system(line), 0);
}

static inline bool is(const char *name, const char *text)
{
	char path[200], *data;
	size_t len;
	bool same;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (pk_read_file(path, &data, &len, NULL))
		return !text;
	same = text && len == strlen(text) && !memcmp(data, text, len);
	free(data);
	return same;
}

static inline bool old_files(void)
{
	return is("src/drv.c", drv) && is("Makefile", mk) && is("src/hook.h", NULL);
}

static inline bool new_files(void)
{
	return is("src/drv.c", drv_after) && is("Makefile", mk_after) && is("src/hook.h", hook_h);
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline void remove_all(const char *path)
{
	if (!access(path, F_OK))
		assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int files_found;

/* counts what is not below .patchkit */
static inline int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_F && !strstr(path, "/.patchkit/"))
		files_found++;
	return 0;
}

/* nothing but the three files, and our folder only if applied */
static inline void assert_clean(bool applied)
{
	char meta[100];

	files_found = 0;
	assert_int_equal(nftw(root, count_one, 8, FTW_PHYS), 0);
	assert_int_equal(files_found, applied ? 3 : 2);
	snprintf(meta, sizeof(meta), "%s/.patchkit", root);
	assert_int_equal(!access(meta, F_OK), applied);
}

static inline void fresh_with(const char *source, const char *set)
{
	char src[100];

	remove_all(root);
	snprintf(src, sizeof(src), "%s/src", root);
	assert_int_equal(mkdir(root, 0755), 0);
	assert_int_equal(mkdir(src, 0755), 0);
	put(src, "drv.c", source);
	put(root, "Makefile", mk);
	put(base, "hook.in", hook_h);
	put(base, "set", set);
	snprintf(src, sizeof(src), "%s/src/drv.c", root);
	assert_int_equal(chmod(src, 0640), 0);
}

static inline void fresh(void)
{
	fresh_with(drv, the_set);
}

/* what `patchkit apply` does; 1: already applied */
static inline int apply(void)
{
	struct pk_set *set = NULL;
	struct pk_plan plan = { 0 };
	struct pk_tree t;
	int r;

	memset(&err, 0, sizeof(err));
	r = pk_set_load(&set, set_path, &err);
	if (r)
		return r;
	r = pk_tree_open(&t, root, &err);
	if (!r) {
		if (t.state == PK_APPLIED && !strcmp(t.key, pk_set_key(set))) {
			r = 1;
		} else if (t.state != PK_PRISTINE) {
			/* the plan would be refused first: ask the journal */
			plan.set = (char *)"hook";
			strcpy(plan.key, pk_set_key(set));
			r = pk_apply(&t, &plan, &err);
		} else {
			r = pk_set_plan(set, root, &plan, &err);
			if (!r)
				r = pk_apply(&t, &plan, &err);
			pk_plan_free(&plan);
		}
		pk_tree_close(&t);
	}
	pk_set_free(set);
	return r;
}

static inline int revert(void)
{
	struct pk_tree t;
	int r;

	memset(&err, 0, sizeof(err));
	r = pk_tree_open(&t, root, &err);
	if (!r) {
		r = pk_revert(&t, &err);
		pk_tree_close(&t);
	}
	return r;
}

static inline void must(int r)
{
	if (r)
		fail_msg("%s: %s", pk_id_name(err.id), err.text);
}

static inline void refused(int r, enum pk_id id)
{
	if (r >= 0 || err.id != id)
		fail_msg("expected %s, got %d %s %s", pk_id_name(id), r, pk_id_name(err.id), err.text);
}

static inline int group_setup(void **state)
{
	/* thousands of small files: memory if there is some */
	strcpy(base, "/dev/shm/t_patchkit.XXXXXX");
	if (!mkdtemp(base)) {
		strcpy(base, "/tmp/t_patchkit.XXXXXX");
		if (!mkdtemp(base))
			return -1;
	}
	os_quick = pk_os_libc;
	os_quick.fsync = no_fsync;
	pk_os = &os_quick;
	snprintf(root, sizeof(root), "%s/root", base);
	snprintf(set_path, sizeof(set_path), "%s/set", base);
	(void)state;
	return 0;
}

static inline int group_teardown(void **state)
{
	(void)state;
	remove_all(base);
	return 0;
}

#endif /* T_PATCHKIT_FIXTURE_H */
