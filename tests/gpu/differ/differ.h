/* SPDX-License-Identifier: MIT */
/*
 * differ.h - what the cases of differ are made of.
 *
 * A case makes calls to the library under test and says, step by step, what came back:
 * codes, errnos, counts; never an address, a time or a rate. Two libraries that say the
 * same behave the same in that case.
 */
#ifndef DIFFER_H
#define DIFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cufile.h"
#include "t_gpu.h"

#define K 1024UL
#define M (1024 * K)
#define FILE_SIZE (M + 100)			/* bytes of a case's file */
#define MEM_SIZE (4 * M)			/* bytes of its GPU memory */
#define NEVER ((CUfileHandle_t)0x1234567)	/* a handle that nobody was given */

/* Every function of cufile.h; looked up by name in the library under test. */
#define D_FUNCTIONS(X) \
	X(DriverOpen) X(DriverClose) X(DriverClose_v2) X(UseCount) X(DriverGetProperties) \
	X(DriverSetPollMode) X(DriverSetMaxDirectIOSize) X(DriverSetMaxCacheSize) \
	X(DriverSetMaxPinnedMemSize) X(GetVersion) X(HandleRegister) X(HandleDeregister) \
	X(BufRegister) X(BufDeregister) X(Read) X(Write) X(Readv) X(Writev) \
	X(BatchIOSetUp) X(BatchIOSubmit) X(BatchIOGetStatus) X(BatchIOCancel) X(BatchIODestroy) \
	X(ReadAsync) X(WriteAsync) X(StreamRegister) X(StreamDeregister) \
	X(GetParameterSizeT) X(GetParameterBool) X(GetParameterString) X(SetParameterSizeT) \
	X(SetParameterBool) X(SetParameterString) X(GetParameterMinMaxValue) \
	X(SetParameterPosixPoolSlabArray) X(GetParameterPosixPoolSlabArray) \
	X(SetParameterGpuBounceBufferSlabArray) X(GetParameterGpuBounceBufferSlabArray) \
	X(DriverSetP2PFlags) X(DriverGetP2PFlags) X(SetStatsLevel) X(GetStatsLevel) \
	X(StatsStart) X(StatsStop) X(StatsReset) X(GetStatsL1) X(GetStatsL2) X(GetStatsL3) \
	X(GetBARSizeInKB) X(ExportPCIeTopology)

struct d_lib {
#define X(name) __typeof__(cuFile##name) *name;
	D_FUNCTIONS(X)
#undef X
};

extern struct d_lib lib;	/* a function that it lacks is NULL */

/* One case: its folder is the working directory, "data" in it a file of FILE_SIZE bytes. */
struct d {
	struct t_gpu gpu;
	CUdeviceptr mem;		/* MEM_SIZE bytes, 0xa5 everywhere */
	CUfileHandle_t fh;
	int fd;				/* the last one that was opened */
};

struct d_case {
	const char *name;
	void (*run)(struct d *d, long arg);
	long arg;
	const char *config;		/* cufile.json instead of the ordinary one */
	const char *env;		/* NAME=VALUE */
	const char *needs;		/* a function without which there is nothing to see */
};

extern const struct d_case driver_cases[], handle_cases[], buffer_cases[], io_cases[],
	batch_cases[], stream_cases[], param_cases[], stats_cases[];

/* -- what was seen; each adds one step to the result -- */

void d_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* step=0, step=5022, step=5011/201; step=0/801 for a cu_err beside success */
void d_err(const char *step, CUfileError_t e);
/* step=4096, step=-1/EINVAL, step=-1/5027, step=-5022; looks at errno */
void d_io(const char *step, ssize_t n);
void d_num(const char *step, long long n);
void d_flag(const char *step, bool yes);
/* Nothing to see here, and why; ends the case. */
void d_not_here(const char *why) __attribute__((noreturn));

/* -- pieces -- */

/* Byte `off` of the file that every case begins with. */
unsigned char d_byte(size_t off);
void *d_ptr(const struct d *d, size_t off);
/* step=ok when GPU memory from mem_off holds the file's bytes from off, else where not */
void d_data(struct d *d, const char *step, size_t mem_off, size_t len, size_t off);
/* the same of host memory */
void d_bytes(const char *step, const unsigned char *p, size_t len, size_t off);
/* Opens "data" (or whatever path) and gives the descriptor; -1 is said. */
int d_open(struct d *d, const char *path, int flags);
CUfileError_t d_register(struct d *d, int fd);
/* Opens and registers "data"; says so only when that failed. */
void d_file(struct d *d, int flags);
/* A symbol of the CUDA driver that the simulator may lack. */
void *d_cuda(const char *name);

#endif /* DIFFER_H */
