// SPDX-License-Identifier: MIT
/*
 * t_param.c - settings by calls: when they may be made, what they stand before, what is
 * told about those that cannot be taken. Fails when a value goes to another setting, a
 * weaker setting wins, or one is kept beyond its open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "driver.h"

#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)
#define BATCH CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE
#define FAILS(call, code) assert_int_equal((call).err, CU_FILE_##code)

static size_t size_of(CUFileSizeTConfigParameter_t p)
{
	size_t v = 0x5a5a;

	OK(cuFileGetParameterSizeT(p, &v));
	return v;
}

static bool bool_of(CUFileBoolConfigParameter_t p)
{
	bool v;

	OK(cuFileGetParameterBool(p, &v));
	return v;
}

static const char *text_of(CUFileStringConfigParameter_t p)
{
	static char v[256];

	OK(cuFileGetParameterString(p, v, sizeof(v)));
	return v;
}

/* The whole log of this test's machine, "" without one */
static const char *logged(void)
{
	static char text[65536];
	char path[128];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", fake.dir);
	f = fopen(path, "r");
	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	return text;
}

static void keep_log(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/log", fake.dir);
	setenv("CUFILE_LOGFILE_PATH", path, 1);
	setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
}

static int setup(void **state)
{
	unsetenv("CUFILE_LOGGING_LEVEL");
	unsetenv("CUFILE_FORCE_COMPAT_MODE");
	unsetenv("CUFILE_ALLOW_COMPAT_MODE");
	unsetenv("CUFILE_NVTX");
	return fake_setup(state);
}

/* -- the table -- */

static const struct {
	CUFileSizeTConfigParameter_t param;
	size_t usual, min, max, good, bad;
} size_row[] = {
	{ CUFILE_PARAM_PROFILE_STATS, 0, 0, 0, 2, 4 },
	{ CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, 128, 1, 256, 64, 257 },
	{ CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 4, 0, 32, 0, 33 },
	{ CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, 8192, 4, 4294967295, 16, 3 },
	{ CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM, 4, 0, 8, 2, 9 },
	{ CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 16384, 64, 16384, 128, 100 },
	{ CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 131072, 0, CONFIG_KB_MAX, 4096,
	  SIZE_MAX },
	{ CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 1024, 64, 16384, 128, 65 },
	{ CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, 33554432, 64, CONFIG_KB_MAX, 4096,
	  63 },
	{ CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 128, 1, 256, 16, 0 },
	{ CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, 4, 4, CONFIG_KB_MAX, 8, 5 },
	{ CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS, 5, 1, 1000, 50, 1001 },
};
#define SIZES (sizeof(size_row) / sizeof(size_row[0]))

/* On a machine where nothing was set and nothing is open. */
static void t_defaults(void **state)
{
	char text[64];
	size_t i, lo, hi;

	for (i = 0; i < SIZES; i++) {
		assert_int_equal(size_of(size_row[i].param), size_row[i].usual);
		if (size_row[i].param == CUFILE_PARAM_PROFILE_STATS) {
			FAILS(cuFileGetParameterMinMaxValue(size_row[i].param, &lo, &hi),
			      INVALID_VALUE);
			continue;
		}
		OK(cuFileGetParameterMinMaxValue(size_row[i].param, &lo, &hi));
		assert_int_equal(lo, size_row[i].min);
		assert_int_equal(hi, size_row[i].max);
	}
	for (i = 0; i <= CUFILE_PARAM_STREAM_MEMOPS_BYPASS; i++)
		assert_int_equal(bool_of(i),
				 i == CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE ||
					 i == CUFILE_PARAM_EXECUTION_PARALLEL_IO ||
					 i == CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY);
	assert_string_equal(text_of(CUFILE_PARAM_LOGGING_LEVEL), "ERROR");
	assert_string_equal(text_of(CUFILE_PARAM_LOG_DIR), "");
	unsetenv("CUFILE_LOGFILE_PATH");
	FAILS(cuFileGetParameterString(CUFILE_PARAM_ENV_LOGFILE_PATH, text, 64), INVALID_VALUE);
	setenv("CUFILE_LOGFILE_PATH", "", 1);
	assert_string_equal(text_of(CUFILE_PARAM_ENV_LOGFILE_PATH), "");
	assert_int_equal(cuFileUseCount(), 0);
}

/* Each number is its own: after an open with all of them set, each has its value. */
static void t_sizes(void **state)
{
	CUfileDrvProps_t props;
	size_t i;

	for (i = 0; i < SIZES; i++) {
		OK(cuFileSetParameterSizeT(size_row[i].param, size_row[i].bad));
		assert_int_equal(size_of(size_row[i].param), size_row[i].bad);
		OK(cuFileSetParameterSizeT(size_row[i].param, size_row[i].good));
		assert_int_equal(size_of(size_row[i].param), size_row[i].good);
	}
	OK(cuFileDriverOpen());
	for (i = 0; i < SIZES; i++)
		assert_int_equal(size_of(size_row[i].param), size_row[i].good);
	assert_int_equal(driver_config()->stats_level, 2);
	assert_int_equal(driver_config()->max_io_queue_depth, 64);
	assert_int_equal(driver_config()->max_io_threads, 0);
	assert_int_equal(driver_config()->min_io_threshold_kb, 16);
	assert_int_equal(driver_config()->max_request_parallelism, 2);
	OK(cuFileDriverGetProperties(&props));
	assert_int_equal(props.nvfs.max_direct_io_size, 128);
	assert_int_equal(props.max_device_cache_size, 4096);
	assert_int_equal(props.per_buffer_cache_size, 128);
	assert_int_equal(props.max_device_pinned_mem_size, 4096);
	assert_int_equal(props.max_batch_io_size, 16);
	assert_int_equal(props.nvfs.poll_thresh_size, 8);
	assert_int_equal(props.max_batch_io_timeout_msecs, 50);
	/* set is a hard cap, as it is in the file */
	assert_true(driver_config()->max_direct_io_set && driver_config()->max_cache_set &&
		    driver_config()->max_pinned_set);
}

/* Out of range: kept, told and passed over by the open; what stands behind it counts. */
static void t_out_of_range(void **state)
{
	char want[96];
	size_t i;

	keep_log();
	fake_configure("{\"execution\": {\"max_io_queue_depth\": 99}}");
	for (i = 0; i < SIZES; i++)
		OK(cuFileSetParameterSizeT(size_row[i].param, size_row[i].bad));
	OK(cuFileDriverOpen());
	for (i = 0; i < SIZES; i++)
		assert_int_equal(size_of(size_row[i].param),
				 size_row[i].param == CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH ?
					 99 : size_row[i].usual);
	for (i = 0; i < SIZES; i++) {
		snprintf(want, sizeof(want), "is ignored: %zu is out of range", size_row[i].bad);
		assert_non_null(strstr(logged(), want));
	}
	assert_non_null(strstr(logged(), "WARN   cufio-drv"));
	assert_false(driver_config()->max_direct_io_set || driver_config()->max_cache_set ||
		     driver_config()->max_pinned_set);
}

static void t_bools(void **state)
{
	size_t i;
	bool usual;

	for (i = 0; i <= CUFILE_PARAM_STREAM_MEMOPS_BYPASS; i++) {
		usual = bool_of(i);
		OK(cuFileSetParameterBool(i, !usual));
		assert_int_equal(bool_of(i), !usual);
		/* one at a time, so that one that goes to another's place is seen */
		keep_log();
		OK(cuFileDriverOpen());
		assert_int_equal(bool_of(i), !usual);
		if (i != CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE)
			assert_true(driver_config()->allow_compat);
		assert_int_equal(driver_config()->force_compat,
				 i == CUFILE_PARAM_FORCE_COMPAT_MODE);
		assert_int_equal(driver_config()->use_poll_mode,
				 i == CUFILE_PARAM_PROPERTIES_USE_POLL_MODE);
		assert_int_equal(driver_config()->force_odirect,
				 i == CUFILE_PARAM_FORCE_ODIRECT_MODE);
		assert_int_equal(driver_config()->parallel_io,
				 i != CUFILE_PARAM_EXECUTION_PARALLEL_IO);
		assert_int_equal(driver_config()->allow_system_memory,
				 i != CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY);
		OK(cuFileDriverClose());
		assert_int_equal(bool_of(i), usual);
	}
	assert_non_null(strstr(logged(), "properties.use_pci_p2pdma has no effect"));
	assert_null(strstr(logged(), "force_compat_mode has no effect"));
}

/* -- precedence: set, environment, file, default -- */

static void t_precedence(void **state)
{
	static const char *const json =
		"{\"properties\": {\"force_compat_mode\": true, \"io_batchsize\": 7},"
		" \"profile\": {\"nvtx\": true}, \"logging\": {\"level\": \"WARN\"}}";

	fake_configure(json);
	OK(cuFileDriverOpen());
	assert_true(bool_of(CUFILE_PARAM_FORCE_COMPAT_MODE));
	assert_true(bool_of(CUFILE_PARAM_PROFILE_NVTX));
	assert_int_equal(size_of(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 7);
	assert_string_equal(text_of(CUFILE_PARAM_LOGGING_LEVEL), "WARN");
	OK(cuFileDriverClose());

	setenv("CUFILE_FORCE_COMPAT_MODE", "false", 1);
	setenv("CUFILE_NVTX", "false", 1);
	setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
	OK(cuFileDriverOpen());
	assert_false(bool_of(CUFILE_PARAM_FORCE_COMPAT_MODE));
	assert_false(bool_of(CUFILE_PARAM_PROFILE_NVTX));
	assert_string_equal(text_of(CUFILE_PARAM_LOGGING_LEVEL), "INFO");
	OK(cuFileDriverClose());

	OK(cuFileSetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, true));
	OK(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 9));
	OK(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 10));
	OK(cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "DEBUG"));
	OK(cuFileDriverOpen());
	assert_true(bool_of(CUFILE_PARAM_FORCE_COMPAT_MODE));
	assert_int_equal(size_of(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 10);
	assert_string_equal(text_of(CUFILE_PARAM_LOGGING_LEVEL), "DEBUG");
	OK(cuFileDriverClose());

	/* forgotten: the file and the environment are back */
	assert_int_equal(size_of(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 128);
	OK(cuFileDriverOpen());
	assert_false(bool_of(CUFILE_PARAM_FORCE_COMPAT_MODE));
	assert_int_equal(size_of(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 7);
	assert_string_equal(text_of(CUFILE_PARAM_LOGGING_LEVEL), "INFO");
}

/* -- when -- */

static void t_only_while_closed(void **state)
{
	const size_t one[] = { 4 };
	CUfileDrvProps_t props;

	OK(cuFileDriverOpen());
	FAILS(cuFileSetParameterSizeT(BATCH, 1), DRIVER_ALREADY_OPEN);
	FAILS(cuFileSetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, true), DRIVER_ALREADY_OPEN);
	FAILS(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, "/x"), DRIVER_ALREADY_OPEN);
	FAILS(cuFileSetParameterPosixPoolSlabArray(one, one, 1), DRIVER_ALREADY_OPEN);
	FAILS(cuFileSetParameterGpuBounceBufferSlabArray(one, one, 1), DRIVER_ALREADY_OPEN);
	OK(cuFileDriverGetProperties(&props));
	assert_int_equal(props.max_batch_io_size, 128);
	/* a second use is closed: still open */
	OK(cuFileDriverOpen());
	OK(cuFileDriverClose());
	FAILS(cuFileSetParameterSizeT(BATCH, 1), DRIVER_ALREADY_OPEN);
	OK(cuFileDriverClose());
	OK(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 1));
	OK(cuFileDriverOpen());
	assert_int_equal(size_of(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 1);
}

/* An open that fails takes nothing: the one that is tried next has the settings. */
static void t_failed_open(void **state)
{
	fake_end();
	fake_machine("ext4", "rw,data=ordered", false);
	OK(cuFileSetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false));
	FAILS(cuFileDriverOpen(), DRIVER_NOT_INITIALIZED);
	FAILS(cuFileDriverOpen(), DRIVER_NOT_INITIALIZED);
	OK(cuFileSetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, true));
	OK(cuFileDriverOpen());
}

static void t_forked(void **state)
{
	int status;
	size_t v;
	pid_t pid;

	OK(cuFileDriverOpen());
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		_exit(cuFileSetParameterSizeT(0, 1).err != CU_FILE_DRIVER_NOT_INITIALIZED ||
		      cuFileGetParameterSizeT(0, &v).err != CU_FILE_DRIVER_NOT_INITIALIZED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*
 * P2P flags: one is known, of 14 kinds of file systems. To ask or tell is as good as reading
 * the configuration: parameters cannot be set until a close.
 */
static void t_p2p_flags(void **state)
{
	CUfileP2PFlags_t flags = 7;
	unsigned int i;

	OK(cuFileDriverOpen());
	OK(cuFileDriverClose());
	OK(cuFileSetParameterSizeT(BATCH, 3));
	for (i = 0; i < 32; i++)
		if (i > 1)
			FAILS(cuFileDriverSetP2PFlags(4, (CUfileP2PFlags_t)i), INVALID_VALUE);
	FAILS(cuFileDriverSetP2PFlags(14, 1), INVALID_VALUE);
	FAILS(cuFileDriverSetP2PFlags(-1, 1), INVALID_VALUE);
	FAILS(cuFileDriverGetP2PFlags(14, &flags), INVALID_VALUE);
	FAILS(cuFileDriverGetP2PFlags(4, NULL), INVALID_VALUE);
	/* what was refused read nothing */
	OK(cuFileSetParameterSizeT(BATCH, 4));
	OK(cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &flags));
	assert_int_equal(flags, 0);
	FAILS(cuFileSetParameterSizeT(BATCH, 5), DRIVER_ALREADY_OPEN);
	assert_int_equal(cuFileUseCount(), 0);
	OK(cuFileDriverSetP2PFlags(CU_FILE_NVME_SUPPORTED, 1));
	OK(cuFileDriverSetP2PFlags(CU_FILE_NVME_SUPPORTED, 0));
	OK(cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &flags));
	assert_int_equal(flags, CU_FILE_P2P_FLAG_PCI_P2PDMA);
	OK(cuFileDriverGetP2PFlags(CU_FILE_NFS_SUPPORTED, &flags));
	assert_int_equal(flags, 0);
	OK(cuFileDriverOpen());
	assert_int_equal(size_of(BATCH), 4);
	OK(cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &flags));
	assert_int_equal(flags, 1);
	OK(cuFileDriverClose());
	OK(cuFileSetParameterSizeT(BATCH, 6));
	OK(cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &flags));
	assert_int_equal(flags, 0);
	/* who asks for a route that is not there is told */
	keep_log();
	OK(cuFileDriverOpen());
	OK(cuFileDriverSetP2PFlags(CU_FILE_NVME_SUPPORTED, 0));
	assert_null(strstr(logged(), "kept without effect"));
	OK(cuFileDriverSetP2PFlags(CU_FILE_NVME_SUPPORTED, 1));
	assert_non_null(strstr(logged(), "file system 4: CU_FILE_P2P_FLAG_PCI_P2PDMA is kept without effect"));
}

static void t_bad_arguments(void **state)
{
	const size_t four[] = { 4 };
	char text[4];
	size_t v, w;
	bool b;

	FAILS(cuFileGetParameterSizeT(12, &v), INVALID_VALUE);
	FAILS(cuFileGetParameterSizeT(-1, &v), INVALID_VALUE);
	FAILS(cuFileGetParameterSizeT(0, NULL), INVALID_VALUE);
	FAILS(cuFileSetParameterSizeT(12, 1), INVALID_VALUE);
	FAILS(cuFileGetParameterBool(12, &b), INVALID_VALUE);
	FAILS(cuFileGetParameterBool(0, NULL), INVALID_VALUE);
	FAILS(cuFileSetParameterBool(12, true), INVALID_VALUE);
	FAILS(cuFileGetParameterMinMaxValue(12, &v, &w), INVALID_VALUE);
	FAILS(cuFileGetParameterMinMaxValue(1, NULL, &w), INVALID_VALUE);
	FAILS(cuFileGetParameterMinMaxValue(1, &v, NULL), INVALID_VALUE);
	FAILS(cuFileGetParameterString(3, text, 4), INVALID_VALUE);
	FAILS(cuFileGetParameterString(0, NULL, 4), INVALID_VALUE);
	FAILS(cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, text, 0), INVALID_VALUE);
	FAILS(cuFileSetParameterString(3, "x"), INVALID_VALUE);
	FAILS(cuFileSetParameterPosixPoolSlabArray(NULL, four, 1), INVALID_VALUE);
	FAILS(cuFileSetParameterPosixPoolSlabArray(four, NULL, 1), INVALID_VALUE);
	FAILS(cuFileSetParameterPosixPoolSlabArray(four, four, 0), INVALID_VALUE);
	FAILS(cuFileSetParameterPosixPoolSlabArray(four, four, 65), INVALID_VALUE);
}

/* -- texts -- */

static void t_strings(void **state)
{
	static const char *const level[] = { "NOTICE", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };
	char text[CONFIG_PATH + 1], path[128];
	size_t i;

	for (i = 0; i < 6; i++) {
		OK(cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, level[i]));
		assert_string_equal(text_of(CUFILE_PARAM_LOGGING_LEVEL), level[i]);
	}
	FAILS(cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "LOUD"), INVALID_VALUE);
	for (i = 0; i < 3; i++) {
		FAILS(cuFileSetParameterString(i, ""), INVALID_VALUE);
		FAILS(cuFileSetParameterString(i, NULL), INVALID_VALUE);
	}
	memset(text, 'x', CONFIG_PATH);
	text[CONFIG_PATH] = '\0';
	FAILS(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, text), INVALID_VALUE);
	text[CONFIG_PATH - 1] = '\0';
	OK(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, text));
	FAILS(cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, text, CONFIG_PATH - 1),
	      INVALID_VALUE);
	OK(cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, text, CONFIG_PATH));
	OK(cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "INFO"));
	FAILS(cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, 4), INVALID_VALUE);
	OK(cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, 5));

	/* the log goes where the call says, whatever the environment says */
	snprintf(path, sizeof(path), "%s/log", fake.dir);
	OK(cuFileSetParameterString(CUFILE_PARAM_ENV_LOGFILE_PATH, path));
	OK(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, "/nowhere"));
	OK(cuFileSetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, true));
	OK(cuFileDriverOpen());
	assert_string_equal(text_of(CUFILE_PARAM_ENV_LOGFILE_PATH), path);
	assert_string_equal(text_of(CUFILE_PARAM_LOG_DIR), "/nowhere");
	assert_non_null(strstr(logged(), "running in compatible mode"));
}

static void t_log_dir(void **state)
{
	char path[128];

	unsetenv("CUFILE_LOGFILE_PATH");
	OK(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, fake.dir));
	OK(cuFileSetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, true));
	OK(cuFileDriverOpen());
	snprintf(path, sizeof(path), "%s/cufile.log", fake.dir);
	assert_int_equal(access(path, F_OK), 0);
}

/* -- slabs -- */

static size_t resident_kb(void)
{
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
	fclose(f);
	return pages * 4;
}

/* Sizes that a program means as bytes: 16 GiB slabs. They cost nothing until they are used. */
static void t_giant_slabs(void **state)
{
	static const size_t kb[] = { 4096, 65536, 1048576, 16777216 }, count[] = { 10, 5, 3, 2 };
	size_t got_kb[4] = { 0 }, got_count[4] = { 0 }, before;

	OK(cuFileSetParameterPosixPoolSlabArray(kb, count, 4));
	OK(cuFileSetParameterGpuBounceBufferSlabArray(kb, count, 4));
	FAILS(cuFileGetParameterPosixPoolSlabArray(got_kb, got_count, 3), INVALID_VALUE);
	OK(cuFileGetParameterPosixPoolSlabArray(got_kb, got_count, 4));
	assert_memory_equal(got_kb, kb, sizeof(kb));
	memset(got_kb, 0, sizeof(got_kb));
	before = resident_kb();
	OK(cuFileDriverOpen());
	assert_in_range(resident_kb(), 0, before + 65536);
	FAILS(cuFileGetParameterPosixPoolSlabArray(got_kb, got_count, 3), INVALID_VALUE);
	FAILS(cuFileGetParameterPosixPoolSlabArray(got_kb, got_count, 5), INVALID_VALUE);
	FAILS(cuFileGetParameterPosixPoolSlabArray(NULL, got_count, 4), INVALID_VALUE);
	OK(cuFileGetParameterPosixPoolSlabArray(got_kb, got_count, 4));
	assert_memory_equal(got_kb, kb, sizeof(kb));
	assert_memory_equal(got_count, count, sizeof(count));
	memset(got_kb, 0, sizeof(got_kb));
	OK(cuFileGetParameterGpuBounceBufferSlabArray(got_kb, got_count, 4));
	assert_memory_equal(got_kb, kb, sizeof(kb));
	OK(cuFileDriverClose());

	/* of the next open: the defaults */
	OK(cuFileDriverOpen());
	OK(cuFileGetParameterPosixPoolSlabArray(got_kb, got_count, 3));
	assert_int_equal(got_kb[2], 16384);
	assert_int_equal(got_count[0], 128);
	FAILS(cuFileGetParameterGpuBounceBufferSlabArray(got_kb, got_count, 4), INVALID_VALUE);
}

static void t_slabs_out_of_range(void **state)
{
	static const struct {
		size_t kb[2], count[2];
		const char *why;
	} row[] = {
		{ { 4, 6 }, { 1, 1 }, "multiples of 4" },
		{ { 8, 4 }, { 1, 1 }, "ascend" },
		{ { 0, 4 }, { 1, 1 }, "multiples of 4" },
		{ { 4, 8 }, { 1, 0 }, "slab_count" },
		{ { 4, CONFIG_KB_MAX }, { 1, 2 }, "larger than any memory" },
		{ { 4, SIZE_MAX - 3 }, { 1, 65536 }, "larger than any memory" },
	};
	size_t kb[9] = { 4, 8, 12, 16, 20, 24, 28, 32, 36 }, i;

	for (i = 0; i <= sizeof(row) / sizeof(row[0]); i++) {
		keep_log();
		if (i < sizeof(row) / sizeof(row[0]))
			OK(cuFileSetParameterGpuBounceBufferSlabArray(row[i].kb, row[i].count, 2));
		else
			OK(cuFileSetParameterGpuBounceBufferSlabArray(kb, kb, 9));
		OK(cuFileDriverOpen());
		assert_int_equal(driver_config()->nslabs, 0);
		assert_non_null(strstr(logged(), i < sizeof(row) / sizeof(row[0]) ?
							 row[i].why : "1..8 slab sizes"));
		OK(cuFileDriverClose());
		unlink(getenv("CUFILE_LOGFILE_PATH"));
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		T(t_defaults),	T(t_sizes),	    T(t_out_of_range), T(t_bools),
		T(t_precedence), T(t_only_while_closed), T(t_failed_open), T(t_forked),
		T(t_bad_arguments), T(t_strings), T(t_log_dir), T(t_giant_slabs),
		T(t_slabs_out_of_range), T(t_p2p_flags),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
