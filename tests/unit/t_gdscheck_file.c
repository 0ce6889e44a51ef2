// SPDX-License-Identifier: MIT
/*
 * t_gdscheck_file.c - the checks of gdscheck that open the named file, D-62 and D-63, in pairs: a
 * file with one bad property and its twin without it, on a kernel that tells what it is told to.
 * Fails when the verdict of the one does not flip, when the other says something else of the two,
 * when a problem has no evidence or no remedy, or when a descriptor stays open.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gdscheck.h"
#include "read.h"

#define FD 7701

/* What the kernel says of the file; the members of a bad one differ from `plain` in one. */
static struct file {
	unsigned long long attributes;	/* statx */
	unsigned int flags;		/* FS_IOC_GETFLAGS */
	int no_flags;			/* ... or its errno */
	unsigned int align;		/* statx; 0: the kernel does not tell */
	int no_direct, no_open;		/* errno of an open with O_DIRECT, of any */
} now;

static const struct file plain = { .flags = FS_EXTENT_FL, .align = 512 };
static int opens;

static int fake_open(const char *path, int flags)
{
	errno = flags & O_DIRECT && now.no_direct ? now.no_direct : now.no_open;
	if (errno)
		return -1;
	assert_int_equal(flags & O_ACCMODE, O_RDONLY);
	opens++;
	return FD;
}

static int fake_close(int fd)
{
	assert_int_equal(fd, FD);
	opens--;
	return 0;
}

static int fake_statx(int fd, const char *path, int at, unsigned int mask, struct statx *st)
{
	assert_int_equal(fd, FD);
	assert_string_equal(path, "");
	assert_true(at & AT_EMPTY_PATH);
	memset(st, 0, sizeof(*st));
	st->stx_attributes = now.attributes;
#ifdef STATX_DIOALIGN
	if (mask & STATX_DIOALIGN && now.align) {
		st->stx_mask |= STATX_DIOALIGN;
		st->stx_dio_offset_align = now.align;
	}
#endif
	return 0;
}

static int fake_ioctl(int fd, unsigned long nr, unsigned int *flags)
{
	assert_int_equal(fd, FD);
	assert_true(nr == FS_IOC_GETFLAGS);
	errno = now.no_flags;
	if (errno)
		return -1;
	*flags = now.flags;
	return 0;
}

#define open(path, flags) fake_open(path, flags)
#define close(fd) fake_close(fd)
#define statx(fd, path, at, mask, st) fake_statx(fd, path, at, mask, st)
#define ioctl(fd, nr, arg) fake_ioctl(fd, nr, arg)
#include "../../tools/gdscheck/checks_storage.c"
#undef open
#undef close
#undef statx
#undef ioctl

static struct gc_machine machine;
static char path[] = "/tmp/t_gdscheck_file.XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return -1;
	close(fd);
	machine.root = "";
	machine.stores = 1;
	machine.stores_named = true;
	snprintf(machine.store[0].path, sizeof(machine.store[0].path), "%s", path);
	return 0;
}

static int teardown(void **state)
{
	return unlink(path);
}

static struct gc_finding of(const char *id, const struct file *f)
{
	struct gc_finding found = { 0 };
	size_t i;

	for (i = 0; i < gc_n_storage && strcmp(gc_checks_storage[i].id, id); i++)
		;
	assert_true(i < gc_n_storage);
	now = *f;
	found.check = &gc_checks_storage[i];
	found.check->run(&machine, &found);
	assert_int_equal(opens, 0);
	return found;
}

static const struct pair {
	const char *name, *id, *other;
	enum gc_verdict verdict;
	const char *says;
	struct file bad;
} pairs[] = {
#define PLAIN .flags = FS_EXTENT_FL, .align = 512
	{ "encrypted", "D-62", "D-63", GC_FAIL, "encrypted",
	  { PLAIN, .attributes = STATX_ATTR_ENCRYPTED } },
	{ "verity", "D-62", "D-63", GC_FAIL, "verity", { PLAIN, .attributes = STATX_ATTR_VERITY } },
	{ "compressed", "D-62", "D-63", GC_FAIL, "compressed",
	  { PLAIN, .attributes = STATX_ATTR_COMPRESSED } },
	{ "dax", "D-62", "D-63", GC_FAIL, "(DAX)", { PLAIN, .attributes = STATX_ATTR_DAX } },
	{ "journalled", "D-62", "D-63", GC_FAIL, "chattr +j",
	  { .flags = FS_EXTENT_FL | FS_JOURNAL_DATA_FL, .align = 512 } },
	{ "inline", "D-62", "D-63", GC_FAIL, "inline",
	  { .flags = FS_EXTENT_FL | FS_INLINE_DATA_FL, .align = 512 } },
	{ "no O_DIRECT", "D-63", "D-62", GC_FAIL, "cannot be opened with O_DIRECT",
	  { PLAIN, .no_direct = EINVAL } },
	{ "large blocks", "D-63", "D-62", GC_FAIL, "in units of 65536 bytes",
	  { .flags = FS_EXTENT_FL, .align = 65536 } },
	/* what must not flip: one block, a kernel or a file system that does not tell */
	{ "whole blocks", "D-63", "D-62", GC_OK, "can be opened",
	  { .flags = FS_EXTENT_FL, .align = 4096 } },
	{ "alignment not told", "D-63", "D-62", GC_OK, "can be opened",
	  { .flags = FS_EXTENT_FL } },
	{ "flags not told", "D-62", "D-63", GC_OK, "a plain file", { PLAIN, .no_flags = ENOTTY } },
	{ "other attributes", "D-62", "D-63", GC_OK, "a plain file",
	  { PLAIN, .attributes = STATX_ATTR_IMMUTABLE } },
#undef PLAIN
};

static void t_pairs(void **state)
{
	struct gc_finding good, bad, other;
	const struct pair *p;
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		p = &pairs[i];
		good = of(p->id, &plain);
		bad = of(p->id, &p->bad);
		if (good.verdict != GC_OK)
			fail_msg("%s: the good twin's %s says %s", p->name, p->id, good.text);
		if (bad.verdict != p->verdict || !strstr(bad.text, p->says))
			fail_msg("%s: the bad twin's %s says %s: %s", p->name, p->id,
				 gc_verdict_name(bad.verdict), bad.text);
		assert_true(bad.file[0] && bad.value[0]);
		assert_true(bad.verdict < GC_WARN || bad.remedy[0]);
		assert_string_equal(bad.file, path);
		good = of(p->other, &plain);
		other = of(p->other, &p->bad);
		if (good.verdict != other.verdict || strcmp(good.text, other.text))
			fail_msg("%s: %s changes too, to %s: %s", p->name, p->other,
				 gc_verdict_name(other.verdict), other.text);
	}
}

/* Not looked at is not OK: the file may not be read, none is named, the machine is a record. */
static void t_not_looked_at(void **state)
{
	const struct file denied = { .no_open = EACCES };
	struct gc_finding f;

	f = of("D-62", &denied);
	assert_int_equal(f.verdict, GC_SKIP);
	assert_non_null(strstr(f.text, strerror(EACCES)));
	machine.recorded = true;
	assert_int_equal(of("D-62", &plain).verdict, GC_SKIP);
	assert_int_equal(of("D-63", &plain).verdict, GC_SKIP);
	machine.recorded = false;
	machine.stores_named = false;
	assert_int_equal(of("D-62", &plain).verdict, GC_SKIP);
	assert_int_equal(of("D-63", &plain).verdict, GC_SKIP);
	machine.stores_named = true;
	snprintf(machine.store[0].path, sizeof(machine.store[0].path), "/tmp");
	assert_int_equal(of("D-62", &plain).verdict, GC_SKIP);
	snprintf(machine.store[0].path, sizeof(machine.store[0].path), "%s", path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_pairs),
		cmocka_unit_test(t_not_looked_at),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
