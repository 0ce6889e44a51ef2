// SPDX-License-Identifier: MIT
/*
 * t_patchkit_tree.c - edit sets on files: all or nothing, also when the process dies or a
 * system call fails at any step; revert is byte for byte; everything odd is refused.
 */
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

static int no_fsync(int fd)
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

static void put(const char *dir, const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void run(const char *cmd, const char *arg)
{
	char line[400];

	snprintf(line, sizeof(line), cmd, arg);
	assert_int_equal(system(line), 0);
}

static bool is(const char *name, const char *text)
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

static bool old_files(void)
{
	return is("src/drv.c", drv) && is("Makefile", mk) && is("src/hook.h", NULL);
}

static bool new_files(void)
{
	return is("src/drv.c", drv_after) && is("Makefile", mk_after) && is("src/hook.h", hook_h);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_all(const char *path)
{
	if (!access(path, F_OK))
		assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int files_found;

/* counts what is not below .patchkit */
static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_F && !strstr(path, "/.patchkit/"))
		files_found++;
	return 0;
}

/* nothing but the three files, and our folder only if applied */
static void assert_clean(bool applied)
{
	char meta[100];

	files_found = 0;
	assert_int_equal(nftw(root, count_one, 8, FTW_PHYS), 0);
	assert_int_equal(files_found, applied ? 3 : 2);
	snprintf(meta, sizeof(meta), "%s/.patchkit", root);
	assert_int_equal(!access(meta, F_OK), applied);
}

static void fresh_with(const char *source, const char *set)
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

static void fresh(void)
{
	fresh_with(drv, the_set);
}

/* what `patchkit apply` does; 1: already applied */
static int apply(void)
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

static int revert(void)
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

static void must(int r)
{
	if (r)
		fail_msg("%s: %s", pk_id_name(err.id), err.text);
}

static void refused(int r, enum pk_id id)
{
	if (r >= 0 || err.id != id)
		fail_msg("expected %s, got %d %s %s", pk_id_name(id), r, pk_id_name(err.id), err.text);
}

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

/* ---- crashes and failing calls ---- */

enum fault { NO_FAULT, DIES, FAILS };

static struct {
	enum fault fault;
	int left;		/* calls until it strikes */
	int calls;
	/* what was synced, for the rule: never rename a file that is not on the disk */
	struct {
		int fd;
		char path[200];
		bool synced;
	} open[16];
	int unsynced;
} seam;

/* does this call strike? */
static bool strikes(void)
{
	seam.calls++;
	if (seam.fault == NO_FAULT || seam.left-- > 0)
		return false;
	if (seam.fault == DIES)
		_exit(42);
	if (seam.left < -1)
		return false;	/* fails once */
	errno = EIO;
	return true;
}

static int s_open(const char *path, int flags, mode_t mode)
{
	int fd;

	if (strikes())
		return -1;
	fd = pk_os_libc.open(path, flags, mode);
	if (fd >= 0 && flags & O_CREAT)
		for (int i = 0; i < 16; i++)
			if (!seam.open[i].path[0] || !strcmp(seam.open[i].path, path)) {
				seam.open[i].fd = fd;
				seam.open[i].synced = false;
				snprintf(seam.open[i].path, 200, "%s", path);
				break;
			}
	return fd;
}

static ssize_t s_write(int fd, const void *data, size_t len)
{
	/* half a file is what a crash leaves */
	if (seam.fault != NO_FAULT && !seam.left && len > 1) {
		ssize_t n = write(fd, data, len / 2);

		(void)n;
	}
	return strikes() ? -1 : write(fd, data, len > 700 ? 700 : len);
}

static int s_fsync(int fd)
{
	if (strikes())
		return -1;
	for (int i = 0; i < 16; i++)
		if (seam.open[i].path[0] && seam.open[i].fd == fd)
			seam.open[i].synced = true;
	return 0;
}

static int s_close(int fd)
{
	bool bad = strikes();

	for (int i = 0; i < 16; i++)
		if (seam.open[i].fd == fd)
			seam.open[i].fd = -1;
	close(fd);
	return bad ? -1 : 0;
}

static int s_rename(const char *from, const char *to)
{
	if (strikes())
		return -1;
	for (int i = 0; i < 16; i++)
		if (!strcmp(seam.open[i].path, from) && !seam.open[i].synced)
			seam.unsynced++;
	return rename(from, to);
}

static int s_unlink(const char *path)
{
	return strikes() ? -1 : unlink(path);
}

static int s_mkdir(const char *path, mode_t mode)
{
	return strikes() ? -1 : mkdir(path, mode);
}

static int s_rmdir(const char *path)
{
	return strikes() ? -1 : rmdir(path);
}

static const struct pk_os os_seam = {
	s_open, s_write, s_fsync, s_close, s_rename, s_unlink, s_mkdir, s_rmdir,
};

static int with_seam(enum fault fault, int after, int (*what)(void))
{
	int r;

	memset(&seam, 0, sizeof(seam));
	seam.fault = fault;
	seam.left = after;
	pk_os = &os_seam;
	r = what();
	pk_os = &os_quick;
	return r;
}

static int open_only(void)
{
	struct pk_tree t;
	int r = pk_tree_open(&t, root, &err);

	if (!r)
		pk_tree_close(&t);
	return r;
}

/* runs it in a child that dies at the n-th call; true: it died, false: it was done before */
static bool crash(int n, int (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int r = with_seam(DIES, n, what);

		_exit(r ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_in_set(WEXITSTATUS(status), ((uintmax_t[]) { 0, 42 }), 2);
	return WEXITSTATUS(status) == 42;
}

/* after a crash, and after crashes of the recovery: one of the two states, and usable */
static void check_recovered(bool want_new_possible, bool *was_new)
{
	must(open_only());
	*was_new = new_files();
	assert_true(*was_new || old_files());
	assert_true(want_new_possible);
	assert_clean(*was_new);
}

static void t_crash_apply(void **state)
{
	int n, news = 0;
	bool is_new;

	for (n = 0; ; n++) {
		fresh();
		if (!crash(n, apply))
			break;
		check_recovered(true, &is_new);
		news += is_new;
		assert_int_equal(apply(), is_new ? 1 : 0);
		must(revert());
		assert_true(old_files());
		assert_clean(false);
	}
	assert_true(new_files());
	/* both outcomes came up, and there were many places to die at */
	assert_in_range(news, 5, n - 5);
	(void)state;
}

static void t_crash_revert(void **state)
{
	int n, news = 0;
	bool is_new;

	for (n = 0; ; n++) {
		fresh();
		must(apply());
		if (!crash(n, revert))
			break;
		check_recovered(true, &is_new);
		news += is_new;
		if (is_new)
			must(revert());
		assert_true(old_files());
		assert_clean(false);
	}
	assert_true(old_files());
	assert_in_range(news, 5, n - 5);
	(void)state;
}

/* die while applying, die again while recovering, at every pair of places after the commit */
static void t_crash_recovery(void **state)
{
	bool is_new;
	int pairs = 0;

	/* steps that have no common factor, so that all kinds of places come up */
	for (int n = 0; ; n += 7) {
		for (int m = n % 3; ; m += 3) {
			bool died;

			fresh();
			if (!crash(n, apply))
				goto out;
			died = crash(m, open_only);
			check_recovered(true, &is_new);
			pairs++;
			if (!died)
				break;
		}
	}
out:
	assert_true(pairs > 30);
	(void)state;
}

/* the new texts are lost after the commit point: back to the old ones, from the copies */
static void t_roll_back(void **state)
{
	char journal[100], staged[100];
	int rolled = 0;

	snprintf(journal, sizeof(journal), "%s/.patchkit/journal", root);
	snprintf(staged, sizeof(staged), "%s/src/drv.c.pk-new", root);
	for (int n = 0; ; n++) {
		bool committed;

		fresh();
		if (!crash(n, apply))
			break;
		committed = !access(journal, F_OK);
		committed &= !unlink(staged);
		must(open_only());
		assert_true(old_files() || new_files());
		if (committed) {
			assert_true(old_files());
			rolled++;
		}
		assert_clean(new_files());
	}
	assert_true(rolled > 0);

	/* a file that is neither old nor new is not touched, whatever the journal says */
	for (int n = 0; ; n++) {
		fresh();
		assert_true(crash(n, apply));
		if (!access(journal, F_OK))
			break;
	}
	put(root, "Makefile", "mine\n");
	refused(apply(), PK_E114_JOURNAL);
	assert_true(is("Makefile", "mine\n"));
	(void)state;
}

/* one call fails: an error that says so, and the files are all old or all new at once */
static void t_failing_calls(void **state)
{
	int (*const what[])(void) = { apply, revert };

	for (int w = 0; w < 2; w++) {
		int n, r = -1, failed = 0;

		for (n = 0; n < 500; n++) {
			fresh();
			if (w)
				must(apply());
			r = with_seam(FAILS, n, what[w]);
			if (seam.left >= 0)
				break;
			assert_int_equal(seam.unsynced, 0);
			assert_true(old_files() || new_files());
			if (r) {
				failed++;
				assert_true(r < 0);
				assert_true(err.id != PK_OK);
			}
			must(open_only());
			assert_clean(new_files());
		}
		assert_int_equal(r, 0);
		assert_true(failed > 20);
		assert_true(w ? old_files() : new_files());
	}
	(void)state;
}

static int group_setup(void **state)
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

static int group_teardown(void **state)
{
	(void)state;
	remove_all(base);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_apply_revert),
		cmocka_unit_test(t_other_shapes),
		cmocka_unit_test(t_mutations),
		cmocka_unit_test(t_states),
		cmocka_unit_test(t_busy),
		cmocka_unit_test(t_set_syntax),
		cmocka_unit_test(t_crash_apply),
		cmocka_unit_test(t_crash_revert),
		cmocka_unit_test(t_crash_recovery),
		cmocka_unit_test(t_roll_back),
		cmocka_unit_test(t_failing_calls),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
