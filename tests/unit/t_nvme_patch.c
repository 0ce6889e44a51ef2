// SPDX-License-Identifier: MIT
/*
 * t_nvme_patch.c - kernel/nvme-hook on the real driver sources of the cache: the patch goes
 * through `git am` and is what `prepare` makes; a source whose anchors are broken is refused
 * and nothing is written. Skips what the cache does not hold (vm/kernels/source fills it).
 *
 * Runs shell lines: what is tested are two shell programs. The working directory is the tree.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[64];

/* the status of a shell line; $B is the scratch folder, $S the driver's sources */
static int sh(const char *line)
{
	int status = system(line);

	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define OK(line)                                                     \
	do {                                                         \
		if (sh(line))                                        \
			fail_msg("this shell line failed: %s", line); \
	} while (0)

/* sets $S to drivers/nvme/host of a series in the cache; false: it is not there */
static bool source(const char *series)
{
	const char *cache = getenv("OPENGDS_CACHE");
	char pattern[300];
	glob_t g;
	bool found;

	/* both forms: the whole source, and the part that `prepare` fetches */
	snprintf(pattern, sizeof(pattern), "%s/source/linux-source-%s*/drivers/nvme/host/pci.c",
		 cache ? cache : "/var/cache/opengds", series);
	found = !glob(pattern, 0, NULL, &g) && g.gl_pathc;
	if (found) {
		*strrchr(g.gl_pathv[0], '/') = '\0';
		setenv("S", g.gl_pathv[0], 1);
		globfree(&g);
	} else {
		print_message("no source of %s in the cache: run vm/kernels/source --part "
			      "'drivers/nvme/host/*' %s\n", series, series);
	}
	return found;
}

/* a kernel tree of just the driver, as a git repository */
static void make_tree(void)
{
	OK("rm -rf $B/* && mkdir -p $B/tree/drivers/nvme && cp -r \"$S\" $B/tree/drivers/nvme/host && "
	   "chmod -R u+w $B/tree");
	OK("cd $B/tree && git init -q . && git add . && git -c user.name=t -c user.email=t@t commit -qm src");
}

/* form: v1 or v2 */
static void patch_and_compare(const char *form)
{
	setenv("F", form, 1);
	make_tree();
	OK("SOURCE_DATE_EPOCH=0 GIT_AUTHOR_NAME='A Name' GIT_AUTHOR_EMAIL=a@example.org "
	   "kernel/nvme-hook/make-patch $B/tree $B/out >$B/name");
	OK("test \"$(ls $B/out/*)\" = \"$(cat $B/name)\"");
	OK("cd $B/tree && test -z \"$(git status --porcelain)\"");
	OK("cd $B/tree && git -c user.name=t -c user.email=t@t am -q $B/out/*.patch");
	OK("cd $B/tree && git log -1 --format='%an %ae %at %s' >$B/log");
	OK("echo 'A Name a@example.org 0 nvme-pci: let a provider map requests of GPU memory' | cmp - $B/log");
	/* what the patch makes is what prepare makes, and the other files are untouched */
	OK("kernel/nvme-hook/prepare \"$S\" $B/dir");
	OK("for f in pci.c nvme.h trace.h nvfs.c nvfs_build.c nvfs_$F.c nvfs.h nvfs_hook.h; do "
	   "cmp $B/dir/$f $B/tree/drivers/nvme/host/$f || exit 1; done");
	OK("cd $B/tree && test \"$(git diff --name-only HEAD~ | xargs -n1 basename | sort | tr '\\n' ' ')\" = "
	   "\"Makefile nvfs.c nvfs.h nvfs_build.c nvfs_hook.h nvfs_$F.c pci.c \"");
	OK("grep -q \"^nvme-y.*nvfs.o nvfs_build.o nvfs_$F.o$\" $B/tree/drivers/nvme/host/Makefile");
	OK("grep -q \"ABI $F;\" $B/out/*.patch");
	OK("test \"$(ls $B/dir/nvfs_v?.c)\" = $B/dir/nvfs_$F.c && test -f $B/dir/Kbuild");
	/* insertions only: the driver's own lines are all still there, in their order */
	OK("cd $B/tree && ! git diff HEAD~ | grep -q '^-[^-]'");
	/* a patched tree is refused */
	assert_int_equal(sh("kernel/nvme-hook/make-patch $B/tree $B/out2 2>$B/err"), 3);
	OK("grep -q PK-E11 $B/err && test ! -e $B/out2");
	assert_int_equal(sh("kernel/nvme-hook/prepare $B/tree/drivers/nvme/host $B/dir2 2>$B/err"), 3);
	OK("test ! -e $B/dir2");
}

static void t_git_am(void **state)
{
	int done = 0;

	/* series of the cache: pci-sg.edits, pci-sg.edits, pci-iter.edits */
	if (source("6.12")) {
		patch_and_compare("v1");
		done++;
	}
	if (source("6.1-")) {
		patch_and_compare("v1");
		done++;
	}
	if (source("7")) {
		patch_and_compare("v2");
		done++;
	}
	if (!done)
		skip();
}

/* files that stay the same are not touched: nothing is built again */
static void t_prepare_twice(void **state)
{
	if (!source("6.12"))
		skip();
	OK("rm -rf $B/* && kernel/nvme-hook/prepare \"$S\" $B/dir && touch -d '2001-01-01' $B/dir/*");
	OK("echo >>$B/dir/nvfs.c && touch -d '2001-01-01' $B/dir/nvfs.c");
	OK("kernel/nvme-hook/prepare \"$S\" $B/dir");
	OK("test \"$(find $B/dir -type f -newermt 2002-01-01 -printf '%f')\" = nvfs.c");
	OK("cmp $B/dir/nvfs.c kernel/nvme-hook/nvfs.c");
	/* the same folder for a driver of the other form */
	if (!source("7"))
		return;
	OK("kernel/nvme-hook/prepare \"$S\" $B/dir && test \"$(ls $B/dir/nvfs_v?.c)\" = $B/dir/nvfs_v2.c");
}

/* each anchor in turn is not what it was */
struct broken {
	const char *file, *sed, *id;
};

static void break_each(const char *set, const struct broken *breaks, size_t n);

static void t_broken_anchors(void **state)
{
	static const struct broken breaks[] = {
		{ "pci.c", "s/#include \"nvme.h\"/#include \"nvme2.h\"/", "PK-E103" },
		{ "pci.c", "s/^\\tstruct nvme_request req;/\\tstruct nvme_request rq;/", "PK-E103" },
		{ "pci.c", "s/^struct nvme_iod {/struct nvme_iodata {/", "PK-E103" },
		{ "pci.c", "s/nvme_unmap_data/nvme_release_data/", "PK-E103" },
		{ "pci.c", "s/nvme_map_data/nvme_fill_data/", "PK-E103" },
		{ "pci.c", "s/^\\t\\tstruct nvme_command .cmnd)/\\t\\tstruct nvme_command *c)/", "PK-E106" },
		{ "pci.c", "s/^static void nvme_unmap_data(struct nvme_dev .dev, /static void nvme_unmap_data(/",
		  "PK-E106" },
		{ "pci.c", "$a static void nvme_unmap_data(struct nvme_dev *d, struct request *r)\\n{\\n}",
		  "PK-E104" },
		{ "pci.c", "/^static blk_status_t nvme_map_data/,/^}/s/blk_status_t ret = BLK_STS_RESOURCE;/"
			   "blk_status_t ret = BLK_STS_RESOURCE; dev++;/", "PK-E107" },
		{ "pci.c", "$a static struct nvfs_dma_rw_ops *nvfs_ops;", "PK-E110" },
		{ "pci.c", "$a #include \"nvfs.h\"", "PK-E111" },
		{ "pci.c", "$a /* no end", "PK-E102" },
		{ "Makefile", "s/pci.o/host.o/", "PK-E103" },
		{ "Makefile", "s/^nvme-y/# nvme-y/", "PK-E103" },
	};

	if (!source("6.12"))
		skip();
	break_each("pci-sg.edits", breaks, sizeof(breaks) / sizeof(*breaks));
}

static void t_broken_anchors_iter(void **state)
{
	static const struct broken breaks[] = {
		{ "pci.c", "s/#include \"nvme.h\"/#include \"nvme2.h\"/", "PK-E103" },
		{ "pci.c", "s/^\\tstruct nvme_request req;/\\tstruct nvme_request rq;/", "PK-E103" },
		{ "pci.c", "s/nvme_unmap_data/nvme_release_data/", "PK-E103" },
		{ "pci.c", "s/nvme_map_data/nvme_fill_data/", "PK-E103" },
		{ "pci.c", "s/nvme_map_data(struct request .req)/nvme_map_data(struct request *r)/",
		  "PK-E106" },
		{ "pci.c", "s/nvme_unmap_data(struct request .req)/nvme_unmap_data(struct request *req, int n)/",
		  "PK-E106" },
		{ "pci.c", "$a static struct nvfs_dma_rw_blk_iter_ops *ops;", "PK-E110" },
		{ "pci.c", "$a #include \"nvfs.h\"", "PK-E111" },
		{ "Makefile", "s/^nvme-y/# nvme-y/", "PK-E103" },
	};

	if (!source("7"))
		skip();
	break_each("pci-iter.edits", breaks, sizeof(breaks) / sizeof(*breaks));
}

static void break_each(const char *set, const struct broken *breaks, size_t n)
{
	char line[600];

	for (size_t i = 0; i < n; i++) {
		snprintf(line, sizeof(line),
			 "rm -rf $B/* && mkdir -p $B/tree/drivers/nvme/host && cd $B/tree/drivers/nvme/host && "
			 "cp \"$S\"/pci.c \"$S\"/nvme.h \"$S\"/trace.h \"$S\"/Makefile . && "
			 "sed -i '%s' %s && ! cmp -s %s \"$S\"/%s && cp -r $B/tree $B/was", breaks[i].sed,
			 breaks[i].file, breaks[i].file, breaks[i].file);
		OK(line);
		assert_int_equal(sh("kernel/nvme-hook/prepare $B/tree/drivers/nvme/host $B/dir 2>$B/err"), 3);
		snprintf(line, sizeof(line),
			 "grep -q '%s: patchkit: %s[^;]*%s:[0-9]*:' $B/err || { cat $B/err; exit 1; }", set,
			 breaks[i].id, breaks[i].file);
		OK(line);
		OK("test $(wc -l <$B/err) = 1 && test ! -e $B/dir");
		/* make-patch goes the same way: some will do */
		if (i % 4 == 0) {
			assert_int_equal(sh("kernel/nvme-hook/make-patch $B/tree $B/out 2>$B/err"), 3);
			OK(line);
		}
		OK("test ! -e $B/out && diff -r $B/tree $B/was");
	}
}

/* a driver of a form that nobody knows: refused, and what each set expected is said */
static void t_other_form(void **state)
{
	if (!source("7"))
		skip();
	OK("rm -rf $B/* && mkdir -p $B/host && cp \"$S\"/pci.c \"$S\"/nvme.h \"$S\"/trace.h "
	   "\"$S\"/Makefile $B/host && "
	   "sed -i 's/nvme_map_data(struct request .req)/nvme_map_data(struct nvme_iod *iod)/' $B/host/pci.c");
	assert_int_equal(sh("kernel/nvme-hook/prepare $B/host $B/dir 2>$B/err"), 3);
	OK("grep -q 'pci-sg.edits: .*PK-E106.*expected the parameters (struct nvme_dev.*"
	   "pci-iter.edits: .*PK-E106.*expected the parameters (struct request' $B/err && test ! -e $B/dir");
}

static int group_setup(void **state)
{
	char cwd[200];

	strcpy(base, "/tmp/t_nvme_patch.XXXXXX");
	if (!mkdtemp(base) || !getcwd(cwd, sizeof(cwd)))
		return -1;
	if (access("kernel/nvme-hook/prepare", X_OK)) {
		print_error("%s: run this test in the top folder of the tree\n", cwd);
		return -1;
	}
	setenv("B", base, 1);
	/* nothing of the user's git */
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_SYSTEM", "/dev/null", 1);
	unsetenv("GIT_DIR");
	return 0;
}

static int group_teardown(void **state)
{
	return sh("rm -rf $B");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_git_am),
		cmocka_unit_test(t_prepare_twice),
		cmocka_unit_test(t_broken_anchors),
		cmocka_unit_test(t_broken_anchors_iter),
		cmocka_unit_test(t_other_form),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
