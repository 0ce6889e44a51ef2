// SPDX-License-Identifier: MIT
/*
 * cl_cuda_python.c - the test-suite of cuda-python's bindings: parameters and slab arrays
 * (sizes that are meant as bytes) set before the first open and read back, statistics of all
 * levels, a batch whose timeout is the address of four bytes with a number of milliseconds,
 * nothing but -1 an error.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "cl.h"

#define X_SIZES(X) \
	X(PROFILE_STATS, 3) X(EXECUTION_MAX_IO_QUEUE_DEPTH, 64) X(EXECUTION_MAX_IO_THREADS, 4) \
	X(EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, 4096) X(PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 1024) \
	X(PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 65536) X(PROPERTIES_IO_BATCHSIZE, 64) \
	X(POLLTHRESHOLD_SIZE_KB, 8) X(PROPERTIES_BATCH_IO_TIMEOUT_MS, 100)

static void parameters(void)
{
	static const size_t kb[] = { 4096, 65536, 1048576, 16777216 }, count[] = { 10, 5, 3, 2 };
	static const char *const level[] = { "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "NOTICE" };
	char text[256];
	size_t i, v, lo, hi;
	bool flag;

#define X(name, value)                                                                     \
	cl_ok(#name, cuFileSetParameterSizeT(CUFILE_PARAM_##name, value));                 \
	cl_ok(#name, cuFileGetParameterSizeT(CUFILE_PARAM_##name, &v));                    \
	if (v != (value))                                                                  \
		t_die(#name ": %zu instead of %d", v, value);
	X_SIZES(X)
#undef X
	for (i = 0; i <= CUFILE_PARAM_STREAM_MEMOPS_BYPASS; i++) {
		bool was;

		cl_ok("GetParameterBool", cuFileGetParameterBool(i, &was));
		cl_ok("SetParameterBool", cuFileSetParameterBool(i, !was));
		cl_ok("GetParameterBool", cuFileGetParameterBool(i, &flag));
		if (flag == was)
			t_die("bool %zu is not what was set", i);
		cl_ok("SetParameterBool", cuFileSetParameterBool(i, was));
	}
	for (i = 0; i < 6; i++) {
		cl_ok("level", cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, level[i]));
		cl_ok("level", cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, 256));
		if (strcmp(text, level[i]))
			t_die("level %s is %s", level[i], text);
	}
	if (!cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "").err)
		t_die("an empty level is accepted");
	cl_ok("level", cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "ERROR"));
	cl_ok("MinMax", cuFileGetParameterMinMaxValue(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &lo,
						      &hi));
	if (lo > 64 || hi < 64)
		t_die("a batch of 64 is not within %zu..%zu", lo, hi);
	cl_ok("slabs", cuFileSetParameterPosixPoolSlabArray(kb, count, 4));
}

static void slabs(void)
{
	size_t kb[4], count[4];

	cl_ok("slabs", cuFileGetParameterPosixPoolSlabArray(kb, count, 4));
	if (kb[3] != 16777216 || count[0] != 10)
		t_die("slabs: %zu KB, %zu", kb[3], count[0]);
	if (cuFileSetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, 0).err !=
	    CU_FILE_DRIVER_ALREADY_OPEN)
		t_die("a parameter is set while the library is open");
}

/* The last four bytes before memory that is not there hold the number. */
static struct timespec *milliseconds(int ms)
{
	char *p = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 0xff, 4096);
	memcpy(p, &ms, sizeof(ms));
	memset(p + sizeof(ms), 0, 4);
	return (struct timespec *)p;
}

static void batch(CUfileHandle_t fh, char *mem)
{
	CUfileIOParams_t p[2];
	CUfileIOEvents_t ev[2];
	CUfileBatchHandle_t b;
	unsigned int i, n = 2;

	memset(p, 0, sizeof(p));
	for (i = 0; i < 2; i++) {
		p[i].mode = CUFILE_BATCH;
		p[i].fh = fh;
		p[i].u.batch.devPtr_base = mem;
		p[i].u.batch.devPtr_offset = p[i].u.batch.file_offset = i * 64 * K;
		p[i].u.batch.size = 64 * K;
		p[i].cookie = (void *)(uintptr_t)(i + 1);
	}
	cl_gpu_poison(mem, 128 * K);
	cl_ok("BatchIOSetUp", cuFileBatchIOSetUp(&b, 4));
	cl_ok("BatchIOSubmit", cuFileBatchIOSubmit(b, 2, p, 0));
	cl_ok("BatchIOGetStatus", cuFileBatchIOGetStatus(b, 2, &n, ev, milliseconds(5000)));
	if (n != 2 || ev[0].ret + ev[1].ret != 128 * K)
		t_die("batch: %u events", n);
	cuFileBatchIODestroy(b);
	cl_gpu_is(mem, 128 * K, 0, 60);
}

static void statistics(CUfileHandle_t fh, char *mem)
{
	static CUfileStatsLevel3_t s;
	int level;

	cl_ok("SetStatsLevel", cuFileSetStatsLevel(3));
	cl_ok("GetStatsLevel", cuFileGetStatsLevel(&level));
	if (level != 3)
		t_die("level %d", level);
	cl_ok("StatsStart", cuFileStatsStart());
	cl_ok("StatsReset", cuFileStatsReset());
	cl_bytes("cuFileRead", cuFileRead(fh, mem, 64 * K, 0, 0), 64 * K);
	cl_ok("GetStatsL1", cuFileGetStatsL1(&s.detailed.basic));
	cl_ok("GetStatsL2", cuFileGetStatsL2(&s.detailed));
	cl_ok("GetStatsL3", cuFileGetStatsL3(&s));
	if (s.detailed.basic.read_bytes != 64 * K || !s.num_gpus || s.num_gpus > 16)
		t_die("statistics: %llu bytes, %u GPUs",
		      (unsigned long long)s.detailed.basic.read_bytes, s.num_gpus);
	cl_ok("StatsStop", cuFileStatsStop());
}

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	char *mem = cl_gpu_alloc(M);
	CUfileHandle_t fh;
	CUfileDescr_t d;
	int fd;

	cl_make(path, M, 60);
	parameters();
	cl_ok("cuFileDriverOpen", cuFileDriverOpen());
	slabs();
	fd = t_open(path, O_RDWR | O_DIRECT);
	d = cl_descr(fd);
	cl_ok("cuFileHandleRegister", cuFileHandleRegister(&fh, &d));
	cl_ok("cuFileBufRegister", cuFileBufRegister(mem, M, 0));
	if (cuFileRead(NULL, mem, 4096, 0, 0) != -1 || errno != EINVAL)
		t_die("no handle: not -1 with EINVAL, but %d", errno);
	batch(fh, mem);
	statistics(fh, mem);
	cl_ok("cuFileBufDeregister", cuFileBufDeregister(mem));
	cuFileHandleDeregister(fh);
	close(fd);
	cl_ok("cuFileDriverClose", cuFileDriverClose());
	return cl_end();
}
