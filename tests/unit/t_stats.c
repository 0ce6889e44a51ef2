// SPDX-License-Identifier: MIT
/*
 * t_stats.c - statistics: what counts where, when, for whom, and what another process sees.
 * Fails when a request is counted twice, in a wrong place, outside Start and Stop or in
 * parts, and when something is published that should not be. Runs under TSan as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "driver.h"
#include "file.h"
#include "gpu.h"
#include "stats.h"

#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)
#define FAILS(call, code) assert_int_equal((call).err, CU_FILE_##code)
#define KIB 1024
#define MIB (1024 * 1024)

static void *gpu_alloc(size_t size)
{
	CUdeviceptr p;

	assert_int_equal(cuMemAlloc(&p, size), 0);
	return (void *)(uintptr_t)p;
}

static CUfileStatsLevel3_t all(void)
{
	CUfileStatsLevel3_t s;

	memset(&s, 0x5a, sizeof(s));
	OK(cuFileGetStatsL3(&s));
	return s;
}

static const char *shm_path(int pid)
{
	static char path[64];

	snprintf(path, sizeof(path), "/dev/shm" STATS_SHM_NAME, pid);
	return path;
}

static bool published(void)
{
	return !access(shm_path(getpid()), F_OK);
}

/* A time that the tests turn on, so that rates can be told */
static struct os_ops clock_ops;
static _Atomic uint64_t clock_ns;

static uint64_t now_ns(void)
{
	return atomic_load(&clock_ns);
}

static void own_clock(void)
{
	clock_ops = *os;
	clock_ops.now_ns = now_ns;
	os = &clock_ops;
	atomic_store(&clock_ns, 1000);
}

static void pass_ms(uint64_t ms)
{
	atomic_fetch_add(&clock_ns, ms * 1000000);
}

/* What a request by `route` would report */
static struct ogds_report report(unsigned int route, uint64_t bytes, uint64_t edge)
{
	struct ogds_report r = OGDS_REPORT_INIT;

	r.bytes[route] = bytes;
	r.edge_bytes = edge;
	return r;
}

/* As if a request on `rows_file` had ended, whose time was all on the routes of its bytes. */
static struct file rows_file = { .name = "/data/f" };

static struct stats_done done(enum ogds_op op, const struct ogds_report *rep, int dev, uint64_t ns,
			      bool failed, struct stats_spent *spent)
{
	unsigned int i;

	memset(spent, 0, sizeof(*spent));
	for (i = 0; i < OGDS_ROUTES; i++)
		spent->ns[i] = rep->bytes[i] ? ns : 0;
	return (struct stats_done){ .op = op, .rep = rep, .spent = spent, .file = &rows_file,
				    .dev = dev, .ns = ns, .failed = failed };
}

static void io(enum ogds_op op, const struct ogds_report *rep, int dev, uint64_t ns, bool failed)
{
	struct stats_spent spent;
	struct stats_done d = done(op, rep, dev, ns, failed, &spent);

	stats_io(&d);
}

static void entry(enum ogds_op op, const struct ogds_report *rep, bool failed)
{
	struct stats_spent spent;
	struct stats_done d = done(op, rep, -1, 0, failed, &spent);

	stats_batch_entry(&d);
}

/* What a call sets is for later opens as well. */
static int teardown(void **state)
{
	int r = fake_teardown(state);

	atomic_store(&rows_file.stats_row, 0);
	return cuFileSetStatsLevel(0).err ? -1 : r;
}

static void collect(int level)
{
	OK(cuFileDriverOpen());
	OK(cuFileSetStatsLevel(level));
	OK(cuFileStatsStart());
}

/* -- control -- */

static void t_closed(void **state)
{
	CUfileStatsLevel3_t s;
	int level;

	FAILS(cuFileSetStatsLevel(4), INVALID_VALUE);
	OK(cuFileSetStatsLevel(2));
	OK(cuFileGetStatsLevel(&level));
	assert_int_equal(level, 2);
	FAILS(cuFileStatsStart(), DRIVER_NOT_INITIALIZED);
	FAILS(cuFileStatsStop(), DRIVER_NOT_INITIALIZED);
	FAILS(cuFileStatsReset(), DRIVER_NOT_INITIALIZED);
	FAILS(cuFileGetStatsL1(&s.detailed.basic), DRIVER_NOT_INITIALIZED);
	FAILS(cuFileGetStatsL3(&s), DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuFileUseCount(), 0);
	/* it is for the next open, and the one after that */
	for (level = 0; level < 2; level++) {
		OK(cuFileDriverOpen());
		OK(cuFileGetStatsL2(&s.detailed));
		FAILS(cuFileGetStatsL3(&s), INVALID_VALUE);
		OK(cuFileDriverClose());
	}
	FAILS(cuFileStatsStart(), DRIVER_NOT_INITIALIZED);
}

static void t_levels(void **state)
{
	CUfileStatsLevel3_t s;
	int level = 7, n;

	OK(cuFileDriverOpen());
	OK(cuFileGetStatsLevel(&level));
	assert_int_equal(level, 0);
	FAILS(cuFileSetStatsLevel(-1), INVALID_VALUE);
	FAILS(cuFileSetStatsLevel(4), INVALID_VALUE);
	FAILS(cuFileGetStatsLevel(NULL), INVALID_VALUE);
	for (level = 0; level <= 3; level++) {
		OK(cuFileSetStatsLevel(level));
		OK(cuFileGetStatsLevel(&n));
		assert_int_equal(n, level);
		assert_int_equal(cuFileGetStatsL1(&s.detailed.basic).err,
				 level >= 1 ? 0 : CU_FILE_INVALID_VALUE);
		assert_int_equal(cuFileGetStatsL2(&s.detailed).err,
				 level >= 2 ? 0 : CU_FILE_INVALID_VALUE);
		assert_int_equal(cuFileGetStatsL3(&s).err, level >= 3 ? 0 : CU_FILE_INVALID_VALUE);
	}
	FAILS(cuFileGetStatsL1(NULL), INVALID_VALUE);
	FAILS(cuFileGetStatsL2(NULL), INVALID_VALUE);
	FAILS(cuFileGetStatsL3(NULL), INVALID_VALUE);
}

/* What the call fills is its level's structure and not a byte more. */
static void t_layouts(void **state)
{
	struct {
		CUfileStatsLevel2_t s;
		unsigned char guard[64];
	} l2;
	struct {
		CUfileStatsLevel1_t s;
		unsigned char guard[64];
	} l1;
	int i;

	collect(3);
	memset(&l1, 0x5a, sizeof(l1));
	memset(&l2, 0x5a, sizeof(l2));
	OK(cuFileGetStatsL1(&l1.s));
	OK(cuFileGetStatsL2(&l2.s));
	for (i = 0; i < 64; i++) {
		assert_int_equal(l1.guard[i], 0x5a);
		assert_int_equal(l2.guard[i], 0x5a);
	}
	assert_int_equal(l1.s.last_batch_write_bytes, 0);
	assert_int_equal(l2.s.write_size_kb_hist[31], 0);
}

/* Counted from the first level to Stop, kept over a Stop, gone after Reset and after a close. */
static void t_start_stop(void **state)
{
	struct ogds_report r = report(OGDS_ROUTE_NVFS, 4096, 0);

	OK(cuFileDriverOpen());
	assert_int_equal(stats_begin(), 0);
	OK(cuFileSetStatsLevel(3));
	OK(cuFileStatsStart());
	assert_int_not_equal(stats_begin(), 0);
	io(OGDS_OP_READ, &r, 0, 1000, false);
	assert_int_equal(all().detailed.basic.read_ops.ok, 1);
	OK(cuFileStatsStop());
	io(OGDS_OP_READ, &r, 0, 1000, false);
	assert_int_equal(all().detailed.basic.read_ops.ok, 1);
	OK(cuFileStatsStart());
	io(OGDS_OP_READ, &r, 0, 1000, false);
	assert_int_equal(all().detailed.basic.read_ops.ok, 2);
	OK(cuFileStatsReset());
	assert_int_equal(all().detailed.basic.read_ops.ok, 0);
	assert_int_equal(all().per_gpu_stats[0].n_total_reads, 0);
	io(OGDS_OP_READ, &r, 0, 1000, false);
	assert_int_equal(all().detailed.basic.read_ops.ok, 1);
	OK(cuFileSetStatsLevel(0));
	io(OGDS_OP_READ, &r, 0, 1000, false);
	OK(cuFileSetStatsLevel(3));
	assert_int_equal(all().detailed.basic.read_ops.ok, 1);
	OK(cuFileDriverClose());

	OK(cuFileDriverOpen());
	assert_int_equal(all().detailed.basic.read_ops.ok, 0);
	/* without a Start */
	io(OGDS_OP_READ, &r, 0, 1000, false);
	assert_int_equal(all().detailed.basic.read_ops.ok, 1);
}

/* -- what is counted -- */

static void t_counters(void **state)
{
	struct ogds_report r = report(OGDS_ROUTE_NVFS, 1000000, 0);
	CUfileStatsLevel1_t l;
	unsigned int i, j;

	own_clock();
	collect(1);
	for (i = STATS_HANDLE_REGISTER; i < STATS_WHATS; i++) {
		for (j = 0; j < i; j++)
			stats_count(i, true);
		for (j = 0; j < 100 + i; j++)
			stats_count(i, false);
	}
	for (i = 0; i < 4; i++)
		io(OGDS_OP_READ, &r, 0, 250000 * i, false);
	io(OGDS_OP_WRITE, &r, 0, 7000, false);
	io(OGDS_OP_READ, &r, 0, 999000, true);
	pass_ms(2000);
	OK(cuFileStatsStop());
	pass_ms(5000);	/* not of the time that was collected */
	OK(cuFileGetStatsL1(&l));
	assert_int_equal(l.read_ops.ok, 4);
	assert_int_equal(l.read_ops.err, 1);
	assert_int_equal(l.write_ops.ok, 1);
	assert_int_equal(l.read_bytes, 4000000);
	assert_int_equal(l.write_bytes, 1000000);
	assert_int_equal(l.read_bw_bytes_per_sec, 2000000);
	assert_int_equal(l.write_bw_bytes_per_sec, 500000);
	assert_int_equal(l.read_ops_per_sec, 2);
	assert_int_equal(l.read_lat_sum_us, 1500);
	assert_int_equal(l.read_lat_avg_us, 375);
	assert_int_equal(l.write_lat_avg_us, 7);
#define BOTH(member, what)                                      \
	do {                                                    \
		assert_int_equal(l.member.ok, what);            \
		assert_int_equal(l.member.err, 100 + (what));   \
	} while (0)
	BOTH(hdl_register_ops, STATS_HANDLE_REGISTER);
	BOTH(hdl_deregister_ops, STATS_HANDLE_DEREGISTER);
	BOTH(buf_register_ops, STATS_BUFFER_REGISTER);
	BOTH(buf_deregister_ops, STATS_BUFFER_DEREGISTER);
	BOTH(batch_submit_ops, STATS_BATCH_SUBMIT);
	BOTH(batch_complete_ops, STATS_BATCH_COMPLETE);
	BOTH(batch_setup_ops, STATS_BATCH_SETUP);
	BOTH(batch_cancel_ops, STATS_BATCH_CANCEL);
	BOTH(batch_destroy_ops, STATS_BATCH_DESTROY);
	BOTH(batch_enqueued_ops, STATS_BATCH_ENQUEUED);
	BOTH(batch_posix_enqueued_ops, STATS_BATCH_POSIX_ENQUEUED);
	BOTH(batch_processed_ops, STATS_BATCH_PROCESSED);
	BOTH(batch_posix_processed_ops, STATS_BATCH_POSIX_PROCESSED);
	BOTH(batch_nvfs_submit_ops, STATS_BATCH_NVFS_SUBMIT);
	BOTH(batch_p2p_submit_ops, STATS_BATCH_P2P_SUBMIT);
	BOTH(batch_aio_submit_ops, STATS_BATCH_AIO_SUBMIT);
	BOTH(batch_iouring_submit_ops, STATS_BATCH_IOURING_SUBMIT);
	BOTH(batch_mixed_io_submit_ops, STATS_BATCH_MIXED_SUBMIT);
	BOTH(batch_total_submit_ops, STATS_BATCH_TOTAL_SUBMIT);
}

static void t_batch(void **state)
{
	struct ogds_report direct = report(OGDS_ROUTE_STAGED, 5000, 0);
	struct ogds_report host = report(OGDS_ROUTE_BOUNCE, 300, 0);
	CUfileStatsLevel1_t l;

	collect(1);
	stats_batch_submit(3, 8000, true);
	stats_batch_submit(9, 5000000, false);
	entry(OGDS_OP_READ, &direct, false);
	entry(OGDS_OP_WRITE, &host, false);
	entry(OGDS_OP_READ, &host, true);
	stats_batch_complete(5000, 300, 20000, true);
	OK(cuFileGetStatsL1(&l));
	assert_int_equal(l.batch_submit_ops.ok, 1);
	assert_int_equal(l.batch_submit_ops.err, 1);
	assert_int_equal(l.batch_enqueued_ops.ok, 3);
	assert_int_equal(l.batch_processed_ops.ok, 2);
	assert_int_equal(l.batch_processed_ops.err, 1);
	assert_int_equal(l.batch_posix_processed_ops.ok, 1);
	assert_int_equal(l.batch_read_bytes, 5000);
	assert_int_equal(l.batch_write_bytes, 300);
	assert_int_equal(l.last_batch_read_bytes, 5000);
	assert_int_equal(l.last_batch_write_bytes, 300);
	assert_int_equal(l.batch_submit_lat_avg_us, 8);
	assert_int_equal(l.batch_completion_lat_avg_us, 20);
	assert_int_equal(l.read_ops.ok, 0);
	OK(cuFileStatsReset());
	OK(cuFileGetStatsL1(&l));
	assert_int_equal(l.last_batch_read_bytes, 0);
}

/* 0-4, 4-8, ... 32768-65536 KiB and above: the lower end belongs to a row. */
static void t_histogram(void **state)
{
	struct ogds_report r;
	CUfileStatsLevel3_t s;
	unsigned int i;

	collect(3);
	for (i = 0; i < 16; i++) {
		r = report(OGDS_ROUTE_NVFS, i ? (uint64_t)2048 << i : 0, 0);
		io(OGDS_OP_READ, &r, 0, 1, false);
		r = report(OGDS_ROUTE_NVFS, ((uint64_t)4096 << i) - 1, 0);
		io(OGDS_OP_WRITE, &r, 0, 1, false);
	}
	r = report(OGDS_ROUTE_NVFS, (uint64_t)1 << 40, 0);
	io(OGDS_OP_READ, &r, 0, 1, false);
	io(OGDS_OP_READ, &r, 0, 1, true);
	s = all();
	for (i = 0; i < 32; i++) {
		assert_int_equal(s.detailed.read_size_kb_hist[i], i < 15 ? 1 : i == 15 ? 2 : 0);
		assert_int_equal(s.detailed.write_size_kb_hist[i], i < 16);
	}
	OK(cuFileStatsReset());
	OK(cuFileSetStatsLevel(1));
	io(OGDS_OP_READ, &r, 0, 1, false);
	OK(cuFileSetStatsLevel(2));
	OK(cuFileGetStatsL2(&s.detailed));
	assert_int_equal(s.detailed.read_size_kb_hist[15], 0);
	assert_int_equal(s.detailed.basic.read_ops.ok, 1);
}

static void t_per_gpu(void **state)
{
	struct ogds_report nvfs = report(OGDS_ROUTE_NVFS, 8192, 0);
	struct ogds_report staged = report(OGDS_ROUTE_STAGED, 8192, 100);
	struct ogds_report p2p = report(OGDS_ROUTE_P2PDMA, 4096, 0);
	struct ogds_report host = report(OGDS_ROUTE_BOUNCE, 1, 1);
	CUfileStatsLevel3_t s;
	CUfilePerGpuStats_t *g = &s.per_gpu_stats[0];
	unsigned char want[16];
	unsigned int i, n;

	own_clock();
	collect(3);
	io(OGDS_OP_READ, &nvfs, 0, 1000000, false);
	io(OGDS_OP_READ, &staged, 0, 1000000, false);
	io(OGDS_OP_READ, &p2p, 0, 0, false);
	io(OGDS_OP_READ, &host, 0, 0, false);
	io(OGDS_OP_READ, &host, 0, 0, true);
	io(OGDS_OP_WRITE, &nvfs, 0, 90000000, false);
	io(OGDS_OP_WRITE, &host, 0, 90000000, false);
	/* memory of the host, and a GPU beyond those that there is room for, are no GPU's */
	io(OGDS_OP_READ, &host, -1, 0, false);
	io(OGDS_OP_READ, &host, 16, 0, false);
	stats_register(0, 65536, true);
	stats_register(0, 65536, false);
	stats_register(-1, 4096, true);
	stats_register(0, 4096, true);
	stats_deregister(0, 65536, true);
	pass_ms(100);
	s = all();
	assert_int_equal(s.num_gpus, gpu->count());
	for (i = 0; i < s.num_gpus; i++) {
		assert_int_equal(gpu->uuid(i, want), 0);
		assert_memory_equal(s.per_gpu_stats[i].uuid, want, 16);
		for (n = 0; i && n < sizeof(*g); n++)
			assert_true(n < 16 || !((char *)&s.per_gpu_stats[i])[n]);
	}
	assert_int_equal(g->read_bytes, 8192 + 8192 + 4096 + 1);
	assert_int_equal(g->n_total_reads, 5);
	assert_int_equal(g->n_nvfs_reads, 2);
	assert_int_equal(g->n_p2p_reads, 1);
	assert_int_equal(g->n_posix_reads, 1);
	assert_int_equal(g->n_unaligned_reads, 2);
	assert_int_equal(g->n_reads_err, 1);
	assert_int_equal(g->read_duration_us, 2000);
	assert_int_equal(g->read_utilization, 2);
	assert_int_equal(g->read_bw_bytes_per_sec, 204810);
	assert_int_equal(g->writes_bytes, 8193);
	assert_int_equal(g->n_total_writes, 2);
	assert_int_equal(g->n_posix_writes, 1);
	assert_int_equal(g->write_utilization, 100);	/* the two overlap */
	assert_int_equal(g->n_mmap, 3);
	assert_int_equal(g->n_mmap_ok, 2);
	assert_int_equal(g->n_mmap_err, 1);
	assert_int_equal(g->n_mmap_free, 1);
	/* what is registered now */
	assert_int_equal(g->reg_bytes, 4096);
	assert_int_equal(s.detailed.basic.buf_register_ops.ok, 3);
	/* and what was before it was counted is no debt */
	stats_deregister(0, 65536, true);
	assert_int_equal(all().per_gpu_stats[0].reg_bytes, 0);
	assert_int_equal(s.detailed.basic.read_ops.ok, 6);
}

/* The calls themselves: each of them counts once, with its outcome. */
static void t_through_the_api(void **state)
{
	const char *path = fake_file("f", 4 * MIB, 5);
	CUfileDescr_t bad = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = -1 };
	char *p = gpu_alloc(MIB), *host = malloc(MIB);
	CUfileHandle_t fh, none;
	CUfileStatsLevel3_t s;
	int fd;

	fake_configure("{\"profile\": {\"cufile_stats\": 3}}");
	OK(cuFileDriverOpen());
	fh = fake_register(path, O_RDWR | O_DIRECT, &fd);
	assert_int_not_equal(cuFileHandleRegister(&none, &bad).err, 0);
	OK(cuFileBufRegister(p, MIB, 0));
	assert_int_not_equal(cuFileBufRegister(p, MIB, 0).err, 0);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 0), MIB);
	assert_int_equal(cuFileRead(fh, p, 5000, 3, 0), 5000);
	assert_int_equal(cuFileWrite(fh, p, 8192, 0, 0), 8192);
	assert_int_equal(cuFileRead(fh, host, 100, 0, 0), 100);
	assert_int_equal(cuFileRead(fh, p, MIB, 0, 4096), -1);
	assert_int_equal(cuFileWrite((void *)8, p, MIB, 0, 0), -1);
	OK(cuFileBufDeregister(p));
	assert_int_not_equal(cuFileBufDeregister(p).err, 0);
	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(fh);
	s = all();
#define OPS(member, good, bad)                                               \
	do {                                                                 \
		assert_int_equal(s.detailed.basic.member.ok, good);          \
		assert_int_equal(s.detailed.basic.member.err, bad);          \
	} while (0)
	OPS(hdl_register_ops, 1, 1);
	OPS(hdl_deregister_ops, 1, 1);
	OPS(buf_register_ops, 1, 1);
	OPS(buf_deregister_ops, 1, 1);
	OPS(read_ops, 3, 1);
	OPS(write_ops, 1, 1);
	assert_int_equal(s.detailed.basic.read_bytes, MIB + 5100);
	assert_int_equal(s.detailed.basic.write_bytes, 8192);
	assert_int_equal(s.detailed.read_size_kb_hist[0], 1);
	assert_int_equal(s.detailed.read_size_kb_hist[1], 1);
	assert_int_equal(s.detailed.read_size_kb_hist[9], 1);
	assert_int_equal(s.per_gpu_stats[0].n_total_reads, 2);
	assert_int_equal(s.per_gpu_stats[0].n_nvfs_reads, 1);
	assert_int_equal(s.per_gpu_stats[0].n_unaligned_reads, 1);
	assert_int_equal(s.per_gpu_stats[0].n_total_writes, 1);
	assert_int_equal(s.per_gpu_stats[0].n_mmap_free, 1);
	assert_int_equal(s.per_gpu_stats[0].reg_bytes, 0);
	assert_int_equal(s.per_gpu_stats[0].n_mmap, 1);
	assert_true(s.detailed.basic.read_lat_sum_us > 0);
	close(fd);
	free(host);
	assert_int_equal(cuMemFree((uintptr_t)p), 0);
}

/* At INFO the table stands in the log after a close. */
static void t_table(void **state)
{
	struct ogds_report r = report(OGDS_ROUTE_NVFS, 3 * MIB, 0);
	char path[128], text[16384];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/log", fake.dir);
	setenv("CUFILE_LOGFILE_PATH", path, 1);
	setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
	collect(1);
	unsetenv("CUFILE_LOGGING_LEVEL");
	io(OGDS_OP_WRITE, &r, 0, 5000, false);
	OK(cuFileDriverClose());
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	assert_non_null(strstr(text, "Write: ok = 1 err = 0"));
	assert_non_null(strstr(text, "Total Write Size (MiB): 3"));
	assert_non_null(strstr(text, "Avg Write Latency (us): 5"));
}

/* -- another process -- */

static void t_nothing_at_level_0(void **state)
{
	int level;

	OK(cuFileDriverOpen());
	FAILS(cuFileStatsStart(), INTERNAL_ERROR);
	OK(cuFileStatsReset());
	OK(cuFileGetStatsLevel(&level));
	assert_false(published());
	OK(cuFileSetStatsLevel(1));
	assert_true(published());
	OK(cuFileDriverClose());
	assert_false(published());
}

static void t_published(void **state)
{
	struct ogds_report r = report(OGDS_ROUTE_NVFS, 8192, 0);
	const struct stats_area *a;
	CUfileStatsLevel3_t seen, own;
	struct stat st;
	mode_t mask = umask(0777);

	own_clock();
	assert_int_equal(stats_area_open(getpid(), &a), -ENOENT);
	collect(3);
	umask(mask);
	assert_int_equal(stat(shm_path(getpid()), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	io(OGDS_OP_READ, &r, 0, 4000, false);
	assert_int_equal(stats_area_open(getpid(), &a), 0);
	pass_ms(10);
	stats_area_read(a, now_ns(), &seen);
	own = all();
	assert_memory_equal(&seen, &own, sizeof(own));
	assert_int_equal(seen.detailed.basic.read_bw_bytes_per_sec, 819200);
	assert_int_equal(a->level, 3);
	/* it goes on while it is looked at */
	io(OGDS_OP_READ, &r, 0, 4000, false);
	stats_area_read(a, now_ns(), &seen);
	assert_int_equal(seen.detailed.basic.read_ops.ok, 2);
	stats_area_close(a);
}

/* A process that was killed left one; a file of another length or version is not read. */
static void t_stale(void **state)
{
	const struct stats_area *a;
	struct stats_area *w;
	int fd;

	fd = open(shm_path(getpid()), O_CREAT | O_EXCL | O_RDWR, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	assert_int_equal(stats_area_open(getpid(), &a), -EPROTO);
	collect(1);
	assert_int_equal(stats_area_open(getpid(), &a), 0);
	stats_area_close(a);
	OK(cuFileDriverClose());

	assert_int_equal(stats_area_create(&w), 0);
	assert_int_equal(stats_area_open(getpid(), &a), -EPROTO);
	w->version = STATS_SHM_VERSION + 1;
	w->size = sizeof(*w);
	w->pid = getpid();
	w->magic = STATS_SHM_MAGIC;
	assert_int_equal(stats_area_open(getpid(), &a), -EPROTO);
	w->version = STATS_SHM_VERSION;
	assert_int_equal(stats_area_open(getpid(), &a), 0);
	stats_area_close(a);
	stats_area_unname();
	stats_area_free(w);
}

/* A child that ends, by exit too, takes nothing from its parent. */
static void t_forked(void **state)
{
	CUfileStatsLevel1_t l;
	int status, level;
	pid_t pid;

	collect(1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		_exit(cuFileGetStatsLevel(&level).err != CU_FILE_DRIVER_NOT_INITIALIZED ||
		      stats_area_open(getpid(), &(const struct stats_area *){ NULL }) != -ENOENT);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(published());
	OK(cuFileGetStatsL1(&l));
}

/* -- threads -- */

#define THREADS 8
#define ROUNDS 2000

static atomic_bool stop;
static atomic_ulong torn;

static void *count_thread(void *arg)
{
	struct ogds_report r = report(OGDS_ROUTE_NVFS, 5000, 0);
	int i;

	for (i = 0; i < ROUNDS; i++)
		io(OGDS_OP_READ, &r, 0, 3000, false);
	return NULL;
}

/* In every snapshot the bytes, the histogram and the GPU are of the same requests. */
static void look(const CUfileStatsLevel3_t *s)
{
	uint64_t n = s->detailed.basic.read_ops.ok;

	if (s->detailed.basic.read_bytes != n * 5000 || s->detailed.read_size_kb_hist[1] != n ||
	    s->per_gpu_stats[0].n_total_reads != n || s->per_gpu_stats[0].read_bytes != n * 5000 ||
	    s->detailed.basic.read_lat_sum_us != n * 3)
		atomic_fetch_add(&torn, 1);
}

static void *look_thread(void *arg)
{
	const struct stats_area *a = arg;
	CUfileStatsLevel3_t s;

	while (!atomic_load(&stop)) {
		if (a)
			stats_area_read(a, 0, &s);
		else if (cuFileGetStatsL3(&s).err)
			atomic_fetch_add(&torn, 1);
		look(&s);
	}
	return NULL;
}

static void t_threads(void **state)
{
	pthread_t t[THREADS], inside, outside;
	const struct stats_area *a;
	CUfileStatsLevel3_t s;
	int i;

	atomic_store(&stop, false);
	atomic_store(&torn, 0);
	collect(3);
	assert_int_equal(stats_area_open(getpid(), &a), 0);
	assert_int_equal(pthread_create(&inside, NULL, look_thread, NULL), 0);
	assert_int_equal(pthread_create(&outside, NULL, look_thread, (void *)a), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, count_thread, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	atomic_store(&stop, true);
	pthread_join(inside, NULL);
	pthread_join(outside, NULL);
	s = all();
	look(&s);
	assert_int_equal(atomic_load(&torn), 0);
	assert_int_equal(s.detailed.basic.read_ops.ok, THREADS * ROUNDS);
	stats_area_close(a);
}

/* A writer that is off its processor in the middle of most of its updates */
static void *slow_thread(void *arg)
{
	struct stats_shard *s = arg;
	uint64_t n;

	for (n = 1; !atomic_load(&stop); n++) {
		__atomic_store_n(&s->seq, 2 * n - 1, __ATOMIC_RELEASE);
		__atomic_store_n(&s->ok[STATS_READ], n, __ATOMIC_RELEASE);
		usleep(20);
		__atomic_store_n(&s->bytes[0], n * 5000, __ATOMIC_RELEASE);
		__atomic_store_n(&s->seq, 2 * n, __ATOMIC_RELEASE);
		usleep(1);
	}
	return NULL;
}

static void t_torn(void **state)
{
	struct stats_area *a = stats_area_private();
	CUfileStatsLevel3_t s;
	pthread_t t;
	int i;

	assert_non_null(a);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&t, NULL, slow_thread, &a->shard[3]), 0);
	/* until the other thread has come to it */
	memset(&s, 0, sizeof(s));
	for (i = 0; i < 200 || !s.detailed.basic.read_ops.ok; i++) {
		stats_area_read(a, 0, &s);
		assert_int_equal(s.detailed.basic.read_bytes,
				 s.detailed.basic.read_ops.ok * 5000);
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	assert_true(s.detailed.basic.read_ops.ok > 0);
	/* who died in an update does not hold the reader for ever */
	a->shard[3].seq = 1;
	stats_area_read(a, 0, &s);
	assert_true(s.detailed.basic.read_ops.ok > 0);
	stats_area_free(a);
}

/* After a Stop has returned nothing is added, whoever was on the way. */
static void t_stop_is_a_stop(void **state)
{
	pthread_t t[THREADS];
	CUfileStatsLevel1_t a, b;
	int i, round;

	collect(1);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, count_thread, NULL), 0);
	for (round = 0; round < 20; round++) {
		OK(cuFileStatsStart());
		usleep(100);
		OK(cuFileStatsStop());
		OK(cuFileGetStatsL1(&a));
		usleep(100);
		OK(cuFileGetStatsL1(&b));
		assert_int_equal(a.read_ops.ok, b.read_ops.ok);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_closed),	 T(t_levels),	T(t_layouts),	T(t_start_stop),
		T(t_counters),	 T(t_batch),	T(t_histogram), T(t_per_gpu),
		T(t_through_the_api), T(t_table), T(t_nothing_at_level_0), T(t_published),
		T(t_stale),	 T(t_forked),	T(t_threads),	T(t_stop_is_a_stop), T(t_torn),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
