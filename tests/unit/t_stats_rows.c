// SPDX-License-Identifier: MIT
/*
 * t_stats_rows.c - statistics by route, GPU and file, the pools, and how another process reads
 * them. Fails when a request counts on a wrong route or file, when the table of files loses
 * bytes or forgets the hottest, and when what somebody wrote into the segment gets out of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "driver.h"
#include "file.h"
#include "rounds.h"
#include "snapshot.h"
#include "stats_rows.h"

#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)
#define KIB 1024
#define MIB (1024 * 1024)

static struct snapshot seen;

static const struct snapshot *look(void)
{
	const struct stats_area *a;

	assert_int_equal(stats_area_open(getpid(), &a), 0);
	snapshot_take(a, 0, &seen);
	stats_area_close(a);
	return &seen;
}

static const struct snap_file *file_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < seen.files; i++)
		if (!strcmp(seen.file[i].name, name))
			return &seen.file[i];
	return NULL;
}

static int teardown(void **state)
{
	int r = fake_teardown(state);

	return cuFileSetStatsLevel(0).err ? -1 : r;
}

static void collect(int level)
{
	OK(cuFileDriverOpen());
	OK(cuFileSetStatsLevel(level));
}

/* A file as it is registered, without one on a disk. */
static struct file *made(const char *name)
{
	struct file *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->name, sizeof(f->name), "%s", name);
	return f;
}

static void gone(struct file *f)
{
	stats_file_gone(f);
	free(f);
}

struct many {
	uint64_t bytes[OGDS_ROUTES], ns[OGDS_ROUTES], retried[OGDS_ROUTES];
	unsigned int failed_on;
	uint64_t all_ns;
	bool failed, batch;
};

static void request(struct file *f, enum ogds_op op, int dev, const struct many *m)
{
	struct ogds_report rep = OGDS_REPORT_INIT;
	struct stats_spent spent = { .failed = m->failed_on };
	struct stats_done d = { .op = op, .rep = &rep, .spent = &spent, .file = f, .dev = dev,
				.ns = m->all_ns, .failed = m->failed };
	unsigned int i;

	for (i = 0; i < OGDS_ROUTES; i++) {
		rep.bytes[i] = m->bytes[i];
		spent.ns[i] = m->ns[i];
		spent.retried[i] = m->retried[i];
	}
	if (m->batch)
		stats_batch_entry(&d);
	else
		stats_io(&d);
}

static void read_of(struct file *f, uint64_t bytes)
{
	struct many m = { .bytes[OGDS_ROUTE_NVFS] = bytes, .ns[OGDS_ROUTE_NVFS] = 1000,
			  .all_ns = 1000 };

	request(f, OGDS_OP_READ, 0, &m);
}

/* -- routes -- */

/* A direct part that failed and was done again, and a hole: each route has its own. */
static void t_routes(void **state)
{
	const struct many mixed = {
		.bytes = { [OGDS_ROUTE_NVFS] = 8192, [OGDS_ROUTE_BOUNCE] = 100 },
		.ns = { [OGDS_ROUTE_NVFS] = 5000, [OGDS_ROUTE_BOUNCE] = 3000000 },
		.retried = { [OGDS_ROUTE_NVFS] = 100 },
		.failed_on = 1u << OGDS_ROUTE_NVFS, .all_ns = 3100000,
	};
	const struct many all_wrong = { .retried = { [OGDS_ROUTE_STAGED] = 7 },
					.failed_on = 1u << OGDS_ROUTE_STAGED, .failed = true };
	const struct many entry = { .bytes = { [OGDS_ROUTE_STAGED] = 4096 },
				    .ns = { [OGDS_ROUTE_STAGED] = 999 }, .all_ns = 999,
				    .batch = true };
	struct file *f = made("/d/f");
	const struct snapshot *s;
	const struct stats_way *w;

	collect(3);
	request(f, OGDS_OP_READ, 0, &mixed);
	request(f, OGDS_OP_WRITE, 0, &all_wrong);
	request(f, OGDS_OP_WRITE, 0, &entry);
	s = look();
	assert_int_equal(s->level, 3);
	assert_true(s->running);
	assert_int_equal(s->routes, OGDS_ROUTES);
	assert_string_equal(s->route_name[OGDS_ROUTE_STAGED], "staged");
	w = &s->route[OGDS_ROUTE_NVFS][0];
	assert_int_equal(w->n, 1);
	assert_int_equal(w->err, 1);
	assert_int_equal(w->bytes, 8192);
	assert_int_equal(w->ns, 5000);
	assert_int_equal(w->retried, 100);
	assert_int_equal(w->size[2], 1);
	assert_int_equal(w->time[3], 1);
	w = &s->route[OGDS_ROUTE_BOUNCE][0];
	assert_int_equal(w->n, 1);
	assert_int_equal(w->err, 0);
	assert_int_equal(w->bytes, 100);
	assert_int_equal(w->size[0], 1);
	assert_int_equal(w->time[12], 1);
	assert_int_equal(s->route[OGDS_ROUTE_BOUNCE][1].n, 0);
	assert_int_equal(s->route[OGDS_ROUTE_HOST][0].n, 0);
	w = &s->route[OGDS_ROUTE_STAGED][1];
	assert_int_equal(w->n, 1);
	assert_int_equal(w->err, 1);
	assert_int_equal(w->retried, 7);
	assert_int_equal(w->bytes, 4096);
	/* below a microsecond */
	assert_int_equal(w->time[0], 1);
	w = &s->gpu[0][0];
	assert_int_equal(w->n, 1);
	assert_int_equal(w->err, 0);
	assert_int_equal(w->bytes, 8292);
	assert_int_equal(w->ns, 3100000);
	assert_int_equal(w->retried, 100);
	assert_int_equal(w->route[OGDS_ROUTE_NVFS], 8192);
	assert_int_equal(w->route[OGDS_ROUTE_BOUNCE], 100);
	w = &s->gpu[0][1];
	assert_int_equal(w->n, 1);
	assert_int_equal(w->err, 1);
	assert_int_equal(w->bytes, 4096);
	assert_memory_equal(s->file[0].way, s->gpu[0], sizeof(s->gpu[0]));
	assert_int_equal(snapshot_sum(s, 0).bytes, 8292);
	OK(cuFileStatsReset());
	s = look();
	assert_int_equal(snapshot_sum(s, 0).bytes, 0);
	assert_int_equal(s->gpu[0][0].n, 0);
	assert_int_equal(s->file[0].way[0].n, 0);
	assert_int_equal(s->file[0].users, 1);
	gone(f);
}

/* What a level leaves out stays 0. */
static void t_levels(void **state)
{
	struct file *f = made("/d/f");
	const struct snapshot *s;

	collect(1);
	read_of(f, 4096);
	s = look();
	assert_int_equal(s->route[OGDS_ROUTE_NVFS][0].n, 1);
	assert_int_equal(s->route[OGDS_ROUTE_NVFS][0].size[1], 0);
	assert_int_equal(s->gpu[0][0].n, 0);
	assert_int_equal(s->files, 0);
	OK(cuFileSetStatsLevel(2));
	read_of(f, 4096);
	s = look();
	assert_int_equal(s->route[OGDS_ROUTE_NVFS][0].size[1], 1);
	assert_int_equal(s->route[OGDS_ROUTE_NVFS][0].time[1], 1);
	assert_int_equal(s->gpu[0][0].n, 0);
	assert_int_equal(s->files, 0);
	/* registered before the level was 3 */
	OK(cuFileSetStatsLevel(3));
	read_of(f, 4096);
	s = look();
	assert_int_equal(s->files, 1);
	assert_int_equal(s->file[0].way[0].n, 1);
	OK(cuFileStatsStop());
	read_of(f, 4096);
	assert_int_equal(look()->route[OGDS_ROUTE_NVFS][0].n, 3);
	assert_false(seen.running);
	gone(f);
}

/* -- files -- */

/* Handles of one name share a row, also one after the other. */
static void t_same_name(void **state)
{
	struct file *f = made("/d/same"), *g = made("/d/same");

	collect(3);
	read_of(f, 10);
	read_of(g, 20);
	look();
	assert_int_equal(seen.files, 1);
	assert_int_equal(seen.file[0].users, 2);
	gone(f);
	f = made("/d/same");
	read_of(f, 30);
	gone(f);
	gone(g);
	look();
	assert_int_equal(seen.files, 1);
	assert_int_equal(seen.file[0].users, 0);
	assert_int_equal(seen.file[0].way[0].bytes, 60);
}

/*
 * More files than rows: all that are used keep theirs; of those that are not, the one that moved
 * least gives way; no byte is lost.
 */
static void t_hottest(void **state)
{
	struct file *f[STATS_FILES + 1];
	const struct snapshot *s;
	uint64_t sum = 0, want = 0;
	char name[32];
	unsigned int i;

	collect(3);
	for (i = 0; i < STATS_FILES; i++) {
		snprintf(name, sizeof(name), "/d/%u", i);
		f[i] = made(name);
		read_of(f[i], 1000 + i);
		want += 1000 + i;
	}
	/* all rows are of files that are used */
	f[STATS_FILES] = made("/d/late");
	read_of(f[STATS_FILES], 5);
	s = look();
	assert_int_equal(s->files, STATS_FILES);
	assert_null(file_of("/d/late"));
	assert_int_equal(s->others[0].bytes, 5);
	/* it has none as long as it is registered */
	gone(f[7]);
	gone(f[40]);
	read_of(f[STATS_FILES], 5);
	assert_int_equal(look()->others[0].bytes, 10);
	gone(f[STATS_FILES]);
	/* the colder of the two gives way, and its bytes are those of the others */
	f[7] = made("/d/new");
	read_of(f[7], 9);
	s = look();
	assert_non_null(file_of("/d/new"));
	assert_null(file_of("/d/7"));
	assert_non_null(file_of("/d/40"));
	assert_int_equal(file_of("/d/new")->way[0].bytes, 9);
	assert_int_equal(file_of("/d/new")->way[0].n, 1);
	assert_int_equal(s->others[0].bytes, 10 + 1007);
	assert_int_equal(s->others[0].n, 3);
	assert_int_equal(s->others[0].size[0], 3);
	for (i = 0; i < s->files; i++)
		sum += s->file[i].way[0].bytes;
	assert_int_equal(sum + s->others[0].bytes, want + 10 + 9);
	for (i = 0; i < STATS_FILES; i++)
		if (i != 40)
			gone(f[i]);
}

/* Of those that moved as much, the one that was left first. */
static void t_oldest(void **state)
{
	struct file *f;
	char name[32];
	unsigned int i;

	collect(3);
	for (i = 0; i < STATS_FILES + 3; i++) {
		snprintf(name, sizeof(name), "/d/%u", i);
		f = made(name);
		read_of(f, 4096);
		gone(f);
	}
	look();
	assert_null(file_of("/d/0"));
	assert_null(file_of("/d/2"));
	assert_non_null(file_of("/d/3"));
	assert_non_null(file_of("/d/66"));
	assert_int_equal(seen.others[0].n, 3);
}

/* A long name is its end, from the start of a character on; what the library cut has both marks. */
static void t_long_name(void **state)
{
	char name[FACTS_PATH], want[STATS_FILE_NAME];
	struct file *f;

	collect(3);
	memset(name, 'a', sizeof(name));
	memcpy(name, "/d", 2);
	name[STATS_FILE_NAME - 1] = '\0';
	f = made(name);
	read_of(f, 1);
	look();
	assert_string_equal(seen.file[0].name, name);
	gone(f);
	/* two bytes more, of one character where the cut is */
	memset(name, 'a', sizeof(name));
	memcpy(name, "/d", 2);
	name[4] = (char)0xc3;
	name[5] = (char)0xa9;
	name[STATS_FILE_NAME + 1] = '\0';
	f = made(name);
	read_of(f, 1);
	look();
	assert_int_equal(seen.files, 2);
	memcpy(want, "...", 3);
	memcpy(want + 3, name + 6, STATS_FILE_NAME - 4);
	assert_string_equal(seen.file[1].name, want);
	gone(f);
	memset(name, 'b', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	f = made(name);
	read_of(f, 1);
	look();
	assert_int_equal(strlen(seen.file[2].name), STATS_FILE_NAME - 1);
	assert_memory_equal(seen.file[2].name, "...b", 4);
	assert_string_equal(seen.file[2].name + STATS_FILE_NAME - 5, "b...");
	gone(f);
}

/* -- the calls themselves -- */

static void t_through_the_api(void **state)
{
	const char *path = fake_file("f", 4 * MIB, 5);
	CUfileIOParams_t p = { .mode = CUFILE_BATCH, .opcode = CUFILE_READ };
	CUfileIOEvents_t e;
	CUfileBatchHandle_t b;
	CUfileHandle_t fh;
	CUdeviceptr mem, loose;
	unsigned int n = 1;
	int fd;

	assert_int_equal(cuMemAlloc(&mem, MIB), 0);
	assert_int_equal(cuMemAlloc(&loose, MIB), 0);
	fake_configure("{\"profile\": {\"cufile_stats\": 3}}");
	OK(cuFileDriverOpen());
	fh = fake_register(path, O_RDWR | O_DIRECT, &fd);
	OK(cuFileBufRegister((void *)(uintptr_t)mem, MIB, 0));
	assert_int_equal(cuFileRead(fh, (void *)(uintptr_t)mem, MIB, 0, 0), MIB);
	assert_int_equal(cuFileRead(fh, (void *)(uintptr_t)loose, 64 * KIB, 0, 0), 64 * KIB);
	fake.io_error = EIO;
	fake.io_failures = 1;
	assert_int_equal(cuFileRead(fh, (void *)(uintptr_t)mem, 8 * KIB, 0, 0), 8 * KIB);
	look();
	assert_int_equal(seen.route[OGDS_ROUTE_NVFS][0].n, 1);
	assert_int_equal(seen.route[OGDS_ROUTE_NVFS][0].bytes, MIB);
	assert_true(seen.route[OGDS_ROUTE_NVFS][0].ns > 0);
	assert_int_equal(seen.route[OGDS_ROUTE_NVFS][0].err, 1);
	assert_int_equal(seen.route[OGDS_ROUTE_NVFS][0].retried, 8 * KIB);
	assert_int_equal(seen.route[OGDS_ROUTE_STAGED][0].bytes, 64 * KIB);
	assert_int_equal(seen.route[OGDS_ROUTE_BOUNCE][0].bytes, 8 * KIB);
	/* its slots are there, and none is used now */
	assert_int_equal(seen.staged[0].slot_bytes, MIB);
	assert_true(seen.staged[0].slots >= 1);
	assert_int_equal(seen.staged[0].used, 0);
	assert_int_equal(seen.staged[0].most, 1);
	assert_int_equal(seen.host[0].used, 0);
	assert_int_equal(seen.files, 1);
	assert_string_equal(seen.file[0].name, path);
	assert_int_equal(seen.file[0].users, 1);
	assert_int_equal(seen.file[0].way[0].n, 3);
	assert_int_equal(seen.gpu[0][0].route[OGDS_ROUTE_NVFS], MIB);
	/* an entry of a batch is in the rows, and of the counters of batches alone */
	OK(cuFileBatchIOSetUp(&b, 1));
	p.fh = fh;
	p.u.batch.devPtr_base = (void *)(uintptr_t)mem;
	p.u.batch.size = 16 * KIB;
	OK(cuFileBatchIOSubmit(b, 1, &p, 0));
	OK(cuFileBatchIOGetStatus(b, 1, &n, &e, NULL));
	assert_int_equal(e.ret, 16 * KIB);
	cuFileBatchIODestroy(b);
	look();
	assert_int_equal(seen.all.detailed.basic.read_ops.ok, 3);
	assert_int_equal(seen.all.detailed.basic.batch_read_bytes, 16 * KIB);
	assert_int_equal(seen.route[OGDS_ROUTE_NVFS][0].n, 2);
	assert_int_equal(seen.file[0].way[0].n, 4);
	OK(cuFileBufDeregister((void *)(uintptr_t)mem));
	cuFileHandleDeregister(fh);
	assert_int_equal(look()->file[0].users, 0);
	close(fd);
	cuMemFree(mem);
	cuMemFree(loose);
}

/* -- what somebody wrote into it -- */

/* Any word of it may be anything: nothing leaves its range, and it ends. */
static void t_crafted(void **state)
{
	struct stats_area *a = stats_area_private();
	uint64_t *word = (uint64_t *)a, seed = 7;
	size_t i, n = sizeof(*a) / sizeof(*word);
	unsigned int round;

	assert_non_null(a);
	for (round = 0; round < 2; round++) {
		/* changes that nobody ends, by all of them and by some */
		for (i = 0; i < n; i++)
			word[i] = round ? fake_random(&seed) : UINT64_MAX;
		snapshot_take(a, fake_random(&seed), &seen);
		assert_in_range(seen.level, 0, 3);
		assert_in_range(seen.routes, 0, STATS_ROUTES);
		assert_in_range(seen.files, 0, STATS_FILES);
		assert_in_range(seen.all.num_gpus, 0, STATS_GPUS);
		for (i = 0; i < STATS_ROUTES; i++)
			assert_true(strlen(seen.route_name[i]) < STATS_ROUTE_NAME);
		for (i = 0; i < seen.files; i++)
			assert_true(strlen(seen.file[i].name) < STATS_FILE_NAME);
	}
	stats_area_free(a);
}

/* -- threads -- */

#define THREADS 4
#define ROUNDS T_ROUNDS(400)

static atomic_bool stop;
static atomic_ulong torn;

/* Files come and go while others look: the table is full, and each row gives way. */
static void *come_and_go(void *arg)
{
	char name[32];
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct file *f;

		snprintf(name, sizeof(name), "/d/%d", (int)(uintptr_t)arg * ROUNDS + i);
		f = made(name);
		/* the size is of the name: a row with two sizes is of two files */
		read_of(f, 4096 + (uintptr_t)arg * ROUNDS + i);
		read_of(f, 4096 + (uintptr_t)arg * ROUNDS + i);
		gone(f);
	}
	return NULL;
}

static void *look_on(void *arg)
{
	static struct snapshot s;
	unsigned int i;

	while (!atomic_load(&stop)) {
		snapshot_take(arg, 0, &s);
		for (i = 0; i < s.files; i++)
			if (s.file[i].way[0].bytes !=
			    s.file[i].way[0].n * (4096 + strtoul(s.file[i].name + 3, NULL, 10)))
				atomic_fetch_add(&torn, 1);
	}
	return NULL;
}

static void t_threads(void **state)
{
	pthread_t t[THREADS], looker;
	const struct stats_area *a;
	uint64_t sum = 0;
	uintptr_t i;

	atomic_store(&stop, false);
	atomic_store(&torn, 0);
	collect(3);
	assert_int_equal(stats_area_open(getpid(), &a), 0);
	assert_int_equal(pthread_create(&looker, NULL, look_on, (void *)a), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, come_and_go, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	atomic_store(&stop, true);
	pthread_join(looker, NULL);
	stats_area_close(a);
	assert_int_equal(atomic_load(&torn), 0);
	look();
	for (i = 0; i < seen.files; i++)
		sum += seen.file[i].way[0].n;
	assert_int_equal(sum + seen.others[0].n, 2 * THREADS * ROUNDS);
	assert_int_equal(seen.files, STATS_FILES);
}

/* A row that is of one file, then of another, between most looks at its name and its numbers. */
static void *turn_about(void *arg)
{
	struct stats_area *a = arg;
	struct stats_row *last = &a->rows[STATS_SHARDS - 1].file[0];
	uint64_t n;

	for (n = 1; !atomic_load(&stop); n++) {
		stats_add(&a->file[0].seq, 1);
		stats_put((uint64_t *)a->file[0].name, 'a' + n % 2);
		stats_add(&last->seq, 1);
		stats_put(&last->way[0].bytes, 'a' + n % 2);
		stats_add(&last->seq, 1);
		stats_add(&a->file[0].seq, 1);
		usleep(10);
	}
	return NULL;
}

static void t_row_moved(void **state)
{
	struct stats_area *a = stats_area_private();
	pthread_t t;
	int i, n = 0;

	assert_non_null(a);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&t, NULL, turn_about, a), 0);
	for (i = 0; i < T_ROUNDS(400) || !n; i++) {
		snapshot_take(a, 0, &seen);
		n += seen.files;
		if (seen.files)
			assert_int_equal(seen.file[0].way[0].bytes, seen.file[0].name[0]);
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	stats_area_free(a);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_routes), T(t_levels), T(t_same_name), T(t_hottest), T(t_oldest), T(t_long_name),
		T(t_through_the_api), T(t_crafted), T(t_threads),
		T(t_row_moved),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
