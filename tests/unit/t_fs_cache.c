// SPDX-License-Identifier: MIT
/*
 * t_fs_cache.c - what is kept of file systems, in a mount namespace of its own: after a mount,
 * an unmount, a remount, a mount over another and a change of namespace the answer is the new
 * one, and in between the mount table is not read; a file whose device number it has not is found
 * by the number of its mount. Fails when a change is not noticed, when the table is read for each
 * file, when such a file is of no file system, and when a descriptor stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs_cache.h"
#include "os.h"
#include "t_descriptors.h"

static char dir[64];
static bool own_namespace;

static dev_t dev_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_dev;
}

static struct fs_facts look(dev_t dev)
{
	struct fs_facts f;

	fs_cache_find(dev, -1, &f);
	return f;
}

/* True when the answer needed no look at the table. */
static bool kept(dev_t dev)
{
	unsigned long before = fs_cache_reads();

	look(dev);
	return fs_cache_reads() == before;
}

static void need_namespace(void)
{
	if (own_namespace)
		return;
	print_message("no mount namespace of its own (%s): this case needs the right to make one\n",
		      strerror(errno));
	skip();
}

static void mount_tmpfs(const char *options)
{
	assert_int_equal(mount("t_fs_cache", dir, "tmpfs", 0, options), 0);
}

static void t_changes(void **state)
{
	dev_t dev, other;
	unsigned int i;

	need_namespace();
	mount_tmpfs("size=1m");
	dev = dev_of(dir);
	assert_string_equal(look(dev).mount.fs, "tmpfs");
	assert_true(facts_option(look(dev).mount.options, "size", "1024k"));
	for (i = 0; i < 100; i++)
		assert_true(kept(dev));
	/* another one beside it does not mix with it, and is no reason to read for each file */
	other = dev_of("/proc");
	assert_string_equal(look(other).mount.fs, "proc");
	assert_true(kept(other) && kept(dev));

	assert_int_equal(mount("t_fs_cache", dir, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=2m"), 0);
	assert_true(facts_option(look(dev).mount.options, "size", "2048k"));
	assert_true(facts_option(look(dev).mount.options, "ro", NULL));
	assert_true(kept(dev));

	/* over it: another file system with a number of its own */
	mount_tmpfs("size=3m");
	other = dev_of(dir);
	assert_int_not_equal(other, dev);
	assert_true(facts_option(look(other).mount.options, "size", "3072k"));
	assert_true(facts_option(look(dev).mount.options, "size", "2048k"));

	assert_int_equal(umount(dir), 0);
	assert_int_equal(look(other).mount_err, -ENOENT);
	/* what is not there is not kept: it may come by a way that nobody tells of */
	assert_false(kept(other));
	assert_true(facts_option(look(dev).mount.options, "size", "2048k"));
	assert_int_equal(umount(dir), 0);
	assert_int_equal(look(dev).mount_err, -ENOENT);

	/* the number is given out again */
	for (i = 0; i < 50; i++) {
		mount_tmpfs(i % 2 ? "size=4m" : "size=5m");
		dev = dev_of(dir);
		assert_true(facts_option(look(dev).mount.options, "size",
					 i % 2 ? "4096k" : "5120k"));
		assert_int_equal(umount(dir), 0);
	}
}

/* What is mounted in a namespace that we leave is not there any more. */
static void t_namespace(void **state)
{
	dev_t dev;

	need_namespace();
	mount_tmpfs("size=1m");
	dev = dev_of(dir);
	look(dev);
	assert_true(kept(dev));
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_false(kept(dev));
	assert_int_equal(look(dev).mount_err, 0);
	assert_int_equal(umount(dir), 0);
	/* in the namespace that was left it is still mounted: nobody told the old watch */
	assert_int_equal(look(dev).mount_err, -ENOENT);
}

static void t_release(void **state)
{
	dev_t dev = dev_of("/proc");
	unsigned int before;

	fs_cache_release();
	before = t_descriptors();
	look(dev);
	assert_true(kept(dev));
	assert_int_equal(t_descriptors(), before + 1);
	fs_cache_release();
	assert_int_equal(t_descriptors(), before);
	assert_false(kept(dev));
	fs_cache_release();
}

/* A device number that the table has not, as of btrfs: the mount of the file tells. */
static void t_no_such_number(void **state)
{
	const dev_t none = makedev(0, 0xfffff);
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fs_facts f;

	assert_true(fd >= 0);
	assert_int_equal(look(none).mount_err, -ENOENT);
	fs_cache_find(none, fd, &f);
	assert_int_equal(f.mount_err, 0);
	assert_string_equal(f.mount.fs, "proc");
	close(fd);
	/* and it is not kept: somebody else may have that number next time */
	assert_int_equal(look(none).mount_err, -ENOENT);
	fs_cache_find(none, fd, &f);
	assert_int_equal(f.mount_err, -ENOENT);
}

/* More file systems than are kept: each answer is its own. */
static void t_many(void **state)
{
	enum { N = 50 };
	char path[N][96];
	char text[32];
	dev_t dev[N];
	unsigned int i, round;

	need_namespace();
	mount_tmpfs("size=1m");
	for (i = 0; i < N; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%u", dir, i);
		assert_int_equal(mkdir(path[i], 0755), 0);
		snprintf(text, sizeof(text), "size=%um", i + 1);
		assert_int_equal(mount("t_fs_cache", path[i], "tmpfs", 0, text), 0);
		dev[i] = dev_of(path[i]);
	}
	for (round = 0; round < 3; round++)
		for (i = 0; i < N; i++) {
			snprintf(text, sizeof(text), "%uk", (i + 1) * 1024);
			assert_true(facts_option(look(dev[i]).mount.options, "size", text));
			assert_true(kept(dev[i]));
		}
	for (i = 0; i < N; i++)
		assert_int_equal(umount(path[i]), 0);
	assert_int_equal(umount(dir), 0);
	assert_int_equal(look(dev[7]).mount_err, -ENOENT);
}

static int begin(void **state)
{
	const char *base = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/t_fs_cache.XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	own_namespace = !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	return 0;
}

static int end(void **state)
{
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_changes), cmocka_unit_test(t_namespace),
		cmocka_unit_test(t_release), cmocka_unit_test(t_many),
		cmocka_unit_test(t_no_such_number),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
