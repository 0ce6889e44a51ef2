// SPDX-License-Identifier: MIT
/*
 * t_patchkit_crash.c - edit sets when the process dies, or a system call fails, at any step:
 * the files are all old or all new, and the next run goes on from there.
 */
#include "t_patchkit_fixture.h"

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

	for (n = 0; ; n += 2) {
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
	assert_in_range(news, 5, n / 2 - 5);
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
	for (int n = 1; ; n += 2) {
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
	for (int n = 20; ; n++) {
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

/* the process dies while it takes over files: the manifest is there or nothing is */
static int adopt(void)
{
	struct pk_change c = {
		.path = (char *)"src/drv.c", .before = (char *)drv, .before_len = strlen(drv),
		.after = (char *)drv_after, .after_len = strlen(drv_after),
	};
	struct pk_plan plan = { .set = (char *)"hook", .key = "k", .c = &c, .n = 1 };
	struct pk_tree t;
	int r = pk_tree_open(&t, root, &err);

	if (!r) {
		r = pk_adopt(&t, &plan, &err);
		pk_tree_close(&t);
	}
	return r;
}

static void t_crash_adopt(void **state)
{
	int n, adopted = 0;

	for (n = 0; ; n++) {
		fresh();
		put(root, "src/drv.c", drv_after);
		if (!crash(n, adopt))
			break;
		assert_true(is("src/drv.c", drv_after));
		if (!revert()) {
			assert_true(old_files());
			adopted++;
		} else {
			assert_int_equal(err.id, PK_E115_NOT_APPLIED);
		}
		assert_clean(false);
	}
	assert_in_range(adopted, 1, n - 5);
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
				/* and nothing lies about: what was begun is cleaned up */
				files_found = 0;
				assert_int_equal(nftw(root, count_one, 8, FTW_PHYS), 0);
				assert_int_equal(files_found, new_files() ? 3 : 2);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_crash_apply),
		cmocka_unit_test(t_crash_revert),
		cmocka_unit_test(t_crash_adopt),
		cmocka_unit_test(t_crash_recovery),
		cmocka_unit_test(t_roll_back),
		cmocka_unit_test(t_failing_calls),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
