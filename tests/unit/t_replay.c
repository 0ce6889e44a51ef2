// SPDX-License-Identifier: MIT
/*
 * t_replay.c - what tests/matrix/cut/replay.c leaves of a drive, on made-up logs. Fails when a
 * write that a flush covers, or one with FUA, is not there; when none of the others is ever lost,
 * or all of them always; when an older write of a sector wins; when the switches of a drive that
 * lies do nothing; when a damaged log is taken for a good one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "../matrix/cut/replay.c"

#define SEEDS 200
#define IMAGE (64u << 10)

static char log_path[] = "/tmp/t_replay.XXXXXX", list_path[] = "/tmp/t_replay_list.XXXXXX";
static int log_fd, list_fd, image_fd;
static uint64_t log_at, log_entries;
static uint32_t log_sector;
static struct replay r;

static void log_begin(uint32_t sector_size)
{
	log_sector = sector_size;
	log_at = sector_size;
	log_entries = 0;
	assert_false(ftruncate(log_fd, 0));
	assert_false(ftruncate(image_fd, 0));
	assert_false(ftruncate(image_fd, IMAGE));
}

/* n sectors of the log's size full of `byte`; a discard has none */
static void entry(uint64_t flags, uint64_t sector, uint64_t n, char byte)
{
	struct log_entry e = { htole64(sector), htole64(n), htole64(flags), 0 };
	char *data = malloc(n * log_sector + 1);

	assert_int_equal(pwrite(log_fd, &e, sizeof(e), log_at), sizeof(e));
	log_at += log_sector;
	memset(data, byte, n * log_sector);
	if (n && !(flags & REPLAY_DISCARD)) {
		assert_int_equal(pwrite(log_fd, data, n * log_sector, log_at), n * log_sector);
		log_at += n * log_sector;
	}
	free(data);
	log_entries++;
}

/* as a guest writes it to the sector kept for marks */
static void mark(uint64_t sector, uint64_t number)
{
	uint64_t le = htole64(number);

	entry(0, sector, 1, 0);
	assert_int_equal(pwrite(log_fd, REPLAY_MAGIC, 8, log_at - log_sector), 8);
	assert_int_equal(pwrite(log_fd, &le, 8, log_at - log_sector + 8), 8);
}

static void log_end(void)
{
	struct log_super s = { htole64(LOG_MAGIC), htole64(1), htole64(log_entries),
			       htole32(log_sector) };

	assert_int_equal(pwrite(log_fd, &s, sizeof(s), 0), sizeof(s));
	assert_false(ftruncate(log_fd, log_at));
}

static void load(int64_t marks_at)
{
	int err = replay_load(&r, log_path, marks_at);

	if (err)
		fail_msg("%s", r.why);
}

/* What byte the sector of the image is full of; -1: more than one */
static int at(uint64_t sector)
{
	char buf[SECTOR];

	assert_int_equal(pread(image_fd, buf, SECTOR, sector * SECTOR), SECTOR);
	return memcmp(buf, buf + 1, SECTOR - 1) ? -1 : buf[0];
}

static struct replay_result apply(struct replay_cut c)
{
	struct replay_result done;
	int err;

	assert_false(ftruncate(image_fd, 0));
	assert_false(ftruncate(image_fd, IMAGE));
	err = replay_apply(&r, image_fd, &c, &done);
	if (err)
		fail_msg("%s", r.why);
	return done;
}

static int setup(void **state)
{
	log_fd = mkstemp(log_path);
	list_fd = mkstemp(list_path);
	image_fd = memfd_create("image", 0);
	return log_fd < 0 || list_fd < 0 || image_fd < 0;
}

static int teardown(void **state)
{
	unlink(log_path);
	unlink(list_path);
	close(log_fd);
	close(list_fd);
	close(image_fd);
	return 0;
}

static int end(void **state)
{
	replay_close(&r);
	return 0;
}

static void t_flush(void **state)
{
	unsigned int there = 0, seed;

	log_begin(512);
	entry(0, 0, 1, 'a');
	entry(0, 1, 1, 'b');
	entry(REPLAY_FLUSH, 0, 0, 0);
	entry(0, 2, 1, 'c');
	log_end();
	load(-1);
	assert_int_equal(r.n, 4);
	for (seed = 0; seed < SEEDS; seed++) {
		struct replay_result d = apply((struct replay_cut){ .cut = 4, .keep = 50,
								    .seed = seed });

		assert_int_equal(at(0), 'a');
		assert_int_equal(at(1), 'b');
		assert_true(at(2) == 'c' || at(2) == 0);
		assert_int_equal(d.flushed, 2);
		assert_int_equal(d.open, 1);
		assert_int_equal(d.kept, at(2) == 'c');
		there += d.kept;
	}
	assert_in_range(there, SEEDS / 4, 3 * SEEDS / 4);

	/* behind the cut nothing is there, and a flush that was not answered covers nothing */
	for (there = 0, seed = 0; seed < SEEDS; seed++) {
		apply((struct replay_cut){ .cut = 2, .keep = 50, .seed = seed });
		assert_int_equal(at(2), 0);
		there += at(0) == 'a';
	}
	assert_in_range(there, SEEDS / 4, 3 * SEEDS / 4);
}

static void t_no_flush(void **state)
{
	unsigned int lost = 0, seed;

	log_begin(512);
	entry(0, 0, 1, 'a');
	entry(REPLAY_FLUSH, 0, 0, 0);
	entry(REPLAY_FUA, 1, 1, 'b');
	log_end();
	load(-1);
	for (seed = 0; seed < SEEDS; seed++) {
		apply((struct replay_cut){ .cut = 3, .keep = 50, .seed = seed, .no_flush = true });
		lost += at(0) == 0;
		assert_int_equal(at(1), 'b');
	}
	assert_in_range(lost, SEEDS / 4, 3 * SEEDS / 4);
	for (lost = 0, seed = 0; seed < SEEDS; seed++) {
		apply((struct replay_cut){ .cut = 3, .keep = 50, .seed = seed, .no_fua = true });
		lost += at(1) == 0;
		assert_int_equal(at(0), 'a');
	}
	assert_in_range(lost, SEEDS / 4, 3 * SEEDS / 4);
}

/* dm-log-writes has flush and data in one entry: the data is younger than its flush */
static void t_flush_with_data(void **state)
{
	unsigned int there = 0, seed;

	log_begin(512);
	entry(0, 0, 1, 'a');
	entry(REPLAY_FLUSH, 1, 1, 'b');
	entry(REPLAY_FLUSH | REPLAY_FUA, 2, 1, 'c');
	log_end();
	load(-1);
	for (seed = 0; seed < SEEDS; seed++) {
		apply((struct replay_cut){ .cut = 2, .keep = 50, .seed = seed });
		assert_int_equal(at(0), 'a');
		there += at(1) == 'b';
		apply((struct replay_cut){ .cut = 3, .keep = 0, .seed = seed });
		assert_int_equal(at(1), 'b');
		assert_int_equal(at(2), 'c');
	}
	assert_in_range(there, SEEDS / 4, 3 * SEEDS / 4);
}

static void t_order(void **state)
{
	unsigned int first = 0, second = 0, seed;

	log_begin(512);
	entry(0, 0, 1, 'a');
	entry(0, 0, 1, 'b');
	entry(REPLAY_FLUSH, 0, 0, 0);
	entry(0, 8, 1, 'a');
	entry(0, 8, 1, 'b');
	log_end();
	load(-1);
	for (seed = 0; seed < SEEDS; seed++) {
		struct replay_result d = apply((struct replay_cut){ .cut = 5, .keep = 50,
								    .seed = seed });

		assert_int_equal(at(0), 'b');
		if (d.kept == 2)
			assert_int_equal(at(8), 'b');
		first += at(8) == 'a';
		second += at(8) == 'b';
	}
	assert_true(first > 0 && second > first);
}

static void t_torn(void **state)
{
	unsigned int some = 0, all = 0, none = 0, seed, i, n;

	log_begin(512);
	entry(0, 0, 8, 'a');
	log_end();
	load(-1);
	for (seed = 0; seed < SEEDS; seed++) {
		struct replay_result d = apply((struct replay_cut){ .cut = 1, .keep = 70,
								    .seed = seed, .torn = true });

		for (n = 0, i = 0; i < 8; i++) {
			assert_true(at(i) == 'a' || at(i) == 0);
			n += at(i) == 'a';
		}
		assert_int_equal(d.kept + d.torn <= 1, 1);
		if (d.kept)
			assert_int_equal(n, 8);
		none += n == 0;
		all += n == 8;
		some += n > 0 && n < 8;
	}
	assert_true(some > SEEDS / 10 && all > SEEDS / 10 && none > SEEDS / 10);
}

static void t_discard(void **state)
{
	unsigned int gone = 0, seed;

	log_begin(512);
	entry(0, 0, 16, 'a');
	entry(REPLAY_FLUSH, 0, 0, 0);
	entry(REPLAY_DISCARD, 0, 8, 0);
	log_end();
	load(-1);
	for (seed = 0; seed < SEEDS; seed++) {
		apply((struct replay_cut){ .cut = 3, .keep = 50, .seed = seed });
		assert_true(at(0) == 0 || at(0) == 'a');
		assert_int_equal(at(7), at(0));
		assert_int_equal(at(8), 'a');
		gone += at(0) == 0;
	}
	assert_in_range(gone, SEEDS / 4, 3 * SEEDS / 4);
}

/* zeros are written as well, over what was there, whole blocks of them and parts */
static void t_zeros(void **state)
{
	log_begin(512);
	entry(0, 0, 32, 'a');
	entry(0, 7, 17, 0);
	log_end();
	load(-1);
	apply((struct replay_cut){ .cut = 2, .keep = 100 });
	assert_int_equal(at(6), 'a');
	assert_int_equal(at(7), 0);
	assert_int_equal(at(15), 0);
	assert_int_equal(at(23), 0);
	assert_int_equal(at(24), 'a');
}

static void t_marks(void **state)
{
	log_begin(512);
	entry(0, 0, 1, 'a');
	mark(100, 0);
	entry(0, 1, 1, 'b');
	entry(0, 100, 1, 'x');		/* no mark, though it is there */
	mark(100, 1);
	entry(0, 2, 1, 'c');
	log_end();
	load(100);
	assert_int_equal(replay_mark(&r, 1), -1);
	assert_int_equal(replay_mark(&r, 2), 0);
	assert_int_equal(replay_mark(&r, 4), 0);
	assert_int_equal(replay_mark(&r, 6), 1);
	assert_int_equal(replay_behind(&r, 0), 2);
	assert_int_equal(replay_behind(&r, 1), 5);
	assert_int_equal(replay_behind(&r, 2), -ENOENT);
	/* the image that holds the first part gets the second */
	apply((struct replay_cut){ .cut = 6, .from = 2, .keep = 100 });
	assert_int_equal(at(0), 0);
	assert_int_equal(at(1), 'b');
	replay_close(&r);
	load(-1);
	assert_int_equal(replay_mark(&r, 6), -1);
}

/* a log in sectors of 4 KiB, with a mark as dm-log-writes makes it */
static void t_large_sectors(void **state)
{
	struct log_entry e = { 0, 0, htole64(REPLAY_MARK), htole64(7) };

	log_begin(4096);
	entry(0, 1, 2, 'a');
	assert_int_equal(pwrite(log_fd, &e, sizeof(e), log_at), sizeof(e));
	assert_int_equal(pwrite(log_fd, "fsync41", 7, log_at + 4096), 7);
	log_at += 2 * 4096;
	log_entries++;
	entry(0, 3, 1, 'b');
	log_end();
	load(-1);
	assert_int_equal(replay_mark(&r, 3), 41);
	apply((struct replay_cut){ .cut = 3, .keep = 100 });
	assert_int_equal(at(7), 0);
	assert_int_equal(at(8), 'a');
	assert_int_equal(at(23), 'a');
	assert_int_equal(at(24), 'b');
	assert_int_equal(at(32), 0);
}

static void list(const char *text)
{
	assert_false(ftruncate(list_fd, 0));
	assert_int_equal(pwrite(list_fd, text, strlen(text), 0), strlen(text));
}

static void t_writes(void **state)
{
	unsigned int lost = 0, seed, i;

	log_begin(512);
	entry(0, 0, 1, 'a');
	entry(0, 8, 2, 'b');
	entry(0, 8, 2, 'c');
	entry(0, 8, 1, 'd');
	entry(0, 16, 1, 'e');
	log_end();
	load(-1);
	list("W 0 1\nW 8 2\nF 8 2\nW 8 1\n");
	assert_int_equal(replay_writes(&r, list_path), 0);
	for (i = 0; i < r.n; i++)
		assert_int_equal(r.entry[i].flags, i == 2 ? REPLAY_FUA : 0);
	for (seed = 0; seed < SEEDS; seed++) {
		apply((struct replay_cut){ .cut = 5, .keep = 50, .seed = seed });
		assert_int_equal(at(9), 'c');
		lost += at(0) == 0;
	}
	assert_in_range(lost, SEEDS / 4, 3 * SEEDS / 4);

	list("W 8 2\nW 8 2\nF 8 2\n");
	assert_int_equal(replay_writes(&r, list_path), -ENOENT);
	list("F 8 3\n");
	assert_int_equal(replay_writes(&r, list_path), -ENOENT);
	list("W 8 2\nX 8 2\n");
	assert_int_equal(replay_writes(&r, list_path), -EINVAL);
	assert_non_null(strstr(r.why, ":2:"));
	list("");
	assert_int_equal(replay_writes(&r, list_path), 0);
	assert_int_equal(replay_writes(&r, "/nowhere"), -ENOENT);
}

static void t_points(void **state)
{
	size_t point[20], again[20], n, i, marks = 0;

	log_begin(512);
	for (i = 0; i < 100; i++) {
		entry(0, i % 50, 1, 'a');
		if (i % 10 == 9)
			mark(100, i / 10);
	}
	log_end();
	load(100);
	n = replay_points(&r, 11, 7, 20, point);
	assert_int_equal(n, replay_points(&r, 11, 7, 20, again));
	assert_memory_equal(point, again, n * sizeof(*point));
	assert_in_range(n, 10, 20);
	for (i = 0; i < n; i++) {
		assert_in_range(point[i], 12, r.n);
		assert_true(!i || point[i] > point[i - 1]);
		marks += r.entry[point[i] - 1].mark >= 0;
	}
	assert_true(marks >= 5 && marks < n);
	assert_int_equal(replay_points(&r, r.n, 7, 20, point), 0);
}

static void damaged(int64_t marks_at, const char *why)
{
	struct replay x;

	assert_int_equal(replay_load(&x, log_path, marks_at), -EINVAL);
	if (!strstr(x.why, why))
		fail_msg("'%s' does not say '%s'", x.why, why);
	assert_null(x.entry);
}

static void t_damaged(void **state)
{
	const uint64_t large = htole64(1ULL << 33);
	struct replay x;

	log_begin(512);
	damaged(-1, "ends at 0");
	entry(0, 0, 1, 'a');
	damaged(-1, "no log");		/* no first sector yet */
	log_end();
	assert_false(ftruncate(log_fd, log_at - 1));
	/* what follows the last header is looked at when it is used */
	load(-1);
	assert_int_equal(replay_apply(&r, image_fd, &(struct replay_cut){ .cut = 1, .keep = 100 },
				      &(struct replay_result){ 0 }), -EINVAL);
	log_end();
	entry(0x10, 0, 1, 'a');
	log_end();
	damaged(-1, "entry 1: unknown flags 0x10");
	log_entries = 1ULL << 40;
	log_end();
	damaged(-1, "1099511627776 entries");
	log_begin(512);
	entry(0, 0, 1ULL, 'a');
	entry(0, 0, 0, 0);
	log_end();
	assert_int_equal(pwrite(log_fd, &large, 8, 512 + 8), 8);
	damaged(-1, "entry 0: sector 0 and 8589934592 more");
	assert_int_equal(replay_load(&x, "/nowhere", -1), -ENOENT);
	assert_int_equal(replay_apply(&r, image_fd, &(struct replay_cut){ .cut = 2 },
				      &(struct replay_result){ 0 }), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(t_flush, end),
		cmocka_unit_test_teardown(t_no_flush, end),
		cmocka_unit_test_teardown(t_flush_with_data, end),
		cmocka_unit_test_teardown(t_order, end),
		cmocka_unit_test_teardown(t_torn, end),
		cmocka_unit_test_teardown(t_discard, end),
		cmocka_unit_test_teardown(t_zeros, end),
		cmocka_unit_test_teardown(t_marks, end),
		cmocka_unit_test_teardown(t_large_sectors, end),
		cmocka_unit_test_teardown(t_writes, end),
		cmocka_unit_test_teardown(t_points, end),
		cmocka_unit_test_teardown(t_damaged, end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
