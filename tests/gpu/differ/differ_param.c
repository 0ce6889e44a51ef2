// SPDX-License-Identifier: MIT
/* differ_param.c - cases of differ: cuFileSetParameter*, cuFileGetParameter*, slabs. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "differ.h"

/* -- numbers; arg: which -- */

static void size_default(struct d *d, long p)
{
	size_t v = 12345, min = 1, max = 1;

	d_err("get", lib.GetParameterSizeT(p, &v));
	d_num("default", v);
	v = 12345;
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterSizeT(p, &v));
	d_num("open", v);
	d_err("minmax", lib.GetParameterMinMaxValue(p, &min, &max));
	if (p != CUFILE_PARAM_PROFILE_STATS)
		d_say("%zu..%zu", min, max);
}

/* A value of each that is in range and not the default. */
static const size_t good[] = { 1, 64, 8, 4096, 2, 2048, 65536, 2048, 1048576, 64, 8, 50 };

static void size_set(struct d *d, long p)
{
	size_t v = 12345;

	d_err("set", lib.SetParameterSizeT(p, good[p]));
	d_err("get", lib.GetParameterSizeT(p, &v));
	d_flag("kept", v == good[p]);
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterSizeT(p, &v));
	d_num("open", v);
	d_err("set", lib.SetParameterSizeT(p, good[p]));
	d_err("close", lib.DriverClose_v2());
	d_err("get", lib.GetParameterSizeT(p, &v));
	d_num("closed", v);
}

static void size_bad(struct d *d, long p)
{
	size_t v = 12345;

	d_err("set", lib.SetParameterSizeT(p, (size_t)1 << 50));
	d_err("get", lib.GetParameterSizeT(p, &v));
	d_flag("kept", v == (size_t)1 << 50);
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterSizeT(p, &v));
	d_num("open", v);
}

static void size_last_wins(struct d *d, long p)
{
	size_t v = 0;

	d_err("set", lib.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 16));
	d_err("set", lib.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 32));
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &v));
	d_num("open", v);
	d_err("close", lib.DriverClose_v2());
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &v));
	d_num("reopened", v);
}

static void size_over_file(struct d *d, long p)
{
	size_t v = 0;

	d_err("get", lib.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &v));
	d_num("before", v);
	if (p)
		d_err("set", lib.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 32));
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &v));
	d_num("open", v);
}

static void unknown(struct d *d, long p)
{
	char text[64];
	bool b;
	size_t v, w;

	d_err("get", lib.GetParameterSizeT(p, &v));
	d_err("set", lib.SetParameterSizeT(p, 1));
	d_err("minmax", lib.GetParameterMinMaxValue(p, &v, &w));
	d_err("get-bool", lib.GetParameterBool(p, &b));
	d_err("set-bool", lib.SetParameterBool(p, true));
	d_err("get-text", lib.GetParameterString(p, text, sizeof(text)));
	d_err("set-text", lib.SetParameterString(p, "a"));
}

static void null_out(struct d *d, long which)
{
	size_t v;

	switch (which) {
	case 0:
		d_err("get", lib.GetParameterSizeT(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, NULL));
		break;
	case 1:
		d_err("get", lib.GetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, NULL));
		break;
	case 2:
		d_err("get", lib.GetParameterString(CUFILE_PARAM_LOGGING_LEVEL, NULL, 16));
		break;
	case 3:
		d_err("minmax", lib.GetParameterMinMaxValue(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB,
							    NULL, &v));
		break;
	case 4:
		d_err("minmax", lib.GetParameterMinMaxValue(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB,
							    &v, NULL));
		break;
	case 5:
		d_err("set", lib.SetParameterString(CUFILE_PARAM_LOG_DIR, NULL));
		break;
	}
}

/* -- switches -- */

static void bool_param(struct d *d, long p)
{
	bool v = false, was;

	d_err("get", lib.GetParameterBool(p, &v));
	d_flag("default", v);
	was = v;
	d_err("set", lib.SetParameterBool(p, !was));
	d_err("get", lib.GetParameterBool(p, &v));
	d_flag("flipped", v != was);
	/* set back: an open with it flipped is another case where that can be seen */
	d_err("set", lib.SetParameterBool(p, was));
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterBool(p, &v));
	d_flag("open", v);
	d_err("set", lib.SetParameterBool(p, !was));
}

static void bool_open(struct d *d, long p)
{
	CUfileDrvProps_t props = { 0 };
	bool v = false, was = false;

	lib.GetParameterBool(p, &was);
	d_err("set", lib.SetParameterBool(p, !was));
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterBool(p, &v));
	d_flag("flipped", v != was);
	lib.DriverGetProperties(&props);
	d_say("control=0x%x features=0x%x", props.nvfs.dcontrolflags, props.fflags);
	d_file(d, O_RDWR | O_DIRECT);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), 64 * K, 0, 0));
	d_err("close", lib.DriverClose_v2());
	d_err("get", lib.GetParameterBool(p, &v));
	d_flag("closed", v);
}

/* -- texts -- */

static void get_text(const char *step, int p, int len)
{
	char text[512] = "?";
	CUfileError_t e = lib.GetParameterString(p, text, len);

	d_err(step, e);
	if (!e.err)
		d_say("\"%s\"", text);
}

static void text_default(struct d *d, long p)
{
	get_text("get", p, 256);
	d_err("open", lib.DriverOpen());
	get_text("get", p, 256);
}

static void text_set(struct d *d, long p)
{
	static const char *const value[] = { "WARN", "here.log", "." };

	d_err("set", lib.SetParameterString(p, value[p]));
	get_text("get", p, 256);
	d_err("open", lib.DriverOpen());
	get_text("get", p, 256);
	d_err("set", lib.SetParameterString(p, value[p]));
	d_err("close", lib.DriverClose_v2());
	get_text("get", p, 256);
}

static void text_length(struct d *d, long p)
{
	d_err("set", lib.SetParameterString(CUFILE_PARAM_LOG_DIR, "/tmp"));
	get_text("exact", CUFILE_PARAM_LOG_DIR, 5);
	get_text("no-nul", CUFILE_PARAM_LOG_DIR, 4);
	get_text("short", CUFILE_PARAM_LOG_DIR, 2);
	get_text("none", CUFILE_PARAM_LOG_DIR, 0);
}

static void text_negative(struct d *d, long p)
{
	get_text("get", CUFILE_PARAM_LOGGING_LEVEL, -1);
}

static void text_empty(struct d *d, long p)
{
	d_err("set", lib.SetParameterString(p, ""));
	get_text("get", p, 256);
}

static void text_long(struct d *d, long len)
{
	static char text[8192];

	memset(text, 'a', len);
	text[len] = '\0';
	d_err("set", lib.SetParameterString(CUFILE_PARAM_LOG_DIR, text));
}

static void level(struct d *d, long i)
{
	static const char *const levels[] = {
		"TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "error", "NONE", "FATAL",
	};

	d_err("set", lib.SetParameterString(CUFILE_PARAM_LOGGING_LEVEL, levels[i]));
	get_text("get", CUFILE_PARAM_LOGGING_LEVEL, 64);
	d_err("open", lib.DriverOpen());
	get_text("get", CUFILE_PARAM_LOGGING_LEVEL, 64);
}

/* -- slabs -- */

static void slabs_default(struct d *d, long arg)
{
	size_t kb[16], n[16], i;

	d_err("closed", lib.GetParameterPosixPoolSlabArray(kb, n, 3));
	d_err("open", lib.DriverOpen());
	for (i = 1; i <= 5; i++)
		d_err("get", lib.GetParameterPosixPoolSlabArray(kb, n, i));
	if (!lib.GetParameterPosixPoolSlabArray(kb, n, 3).err)
		d_say("%zu/%zu %zu/%zu %zu/%zu", kb[0], n[0], kb[1], n[1], kb[2], n[2]);
}

static void slabs_set(struct d *d, long arg)
{
	const size_t kb[] = { 4, 64, 1024 }, n[] = { 8, 4, 2 };
	size_t a[3] = { 0 }, b[3] = { 0 };

	d_err("set", lib.SetParameterPosixPoolSlabArray(kb, n, 3));
	d_err("get", lib.GetParameterPosixPoolSlabArray(a, b, 3));
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterPosixPoolSlabArray(a, b, 3));
	d_flag("same", !memcmp(a, kb, sizeof(a)) && !memcmp(b, n, sizeof(b)));
	d_err("two", lib.GetParameterPosixPoolSlabArray(a, b, 2));
	d_err("set", lib.SetParameterPosixPoolSlabArray(kb, n, 3));
	d_file(d, O_RDWR | O_DIRECT);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), M, 0, 0));
	d_data(d, "data", 0, M, 0);
}

static void slabs_wrong(struct d *d, long what)
{
	static const size_t kb[][3] = {
		{ 4096, 1048576, 16777216 }, { 1024, 64, 4 }, { 5, 7, 9 }, { 0, 0, 0 },
		{ 64, 64, 64 },
	};
	const size_t n[] = { 1, 1, 1 };
	size_t a[3] = { 0 }, b[3];

	d_err("set", lib.SetParameterPosixPoolSlabArray(kb[what], n, 3));
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterPosixPoolSlabArray(a, b, 3));
	d_flag("same", !memcmp(a, kb[what], sizeof(a)));
	d_file(d, O_RDWR | O_DIRECT);
	d_io("read", lib.Read(d->fh, d_ptr(d, 0), M, 0, 0));
}

static void slabs_arguments(struct d *d, long what)
{
	size_t kb[4] = { 4, 64, 1024, 4096 }, n[4] = { 1, 1, 1, 1 };

	switch (what) {
	case 0:
		d_err("set", lib.SetParameterPosixPoolSlabArray(NULL, n, 3));
		break;
	case 1:
		d_err("set", lib.SetParameterPosixPoolSlabArray(kb, NULL, 3));
		break;
	case 2:
		d_err("set", lib.SetParameterPosixPoolSlabArray(kb, n, 0));
		break;
	case 3:
		d_err("set", lib.SetParameterPosixPoolSlabArray(kb, n, -1));
		break;
	case 4:
		d_err("open", lib.DriverOpen());
		d_err("get", lib.GetParameterPosixPoolSlabArray(NULL, n, 3));
		break;
	case 5:
		d_err("open", lib.DriverOpen());
		d_err("get", lib.GetParameterPosixPoolSlabArray(kb, NULL, 3));
		break;
	}
}

static void gpu_slabs(struct d *d, long arg)
{
	const size_t kb[] = { 1024, 4096 }, n[] = { 4, 2 };
	size_t a[2] = { 0 }, b[2] = { 0 };

	d_err("set", lib.SetParameterGpuBounceBufferSlabArray(kb, n, 2));
	d_err("open", lib.DriverOpen());
	d_err("get", lib.GetParameterGpuBounceBufferSlabArray(a, b, 2));
	d_flag("same", !memcmp(a, kb, sizeof(a)) && !memcmp(b, n, sizeof(b)));
}

/* -- P2P flags, topology -- */

static void p2p_set(struct d *d, long flags)
{
	CUfileP2PFlags_t f = 99;

	d_err("get", lib.DriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &f));
	d_num("first", f);
	d_err("set", lib.DriverSetP2PFlags(CU_FILE_NVME_SUPPORTED, flags));
	d_err("get", lib.DriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &f));
	d_num("flags", f);
	d_num("uses", lib.UseCount());
	d_err("parameter", lib.SetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, false));
}

static void p2p_type(struct d *d, long type)
{
	CUfileP2PFlags_t f = 0;

	d_err("set", lib.DriverSetP2PFlags(type, CU_FILE_P2P_FLAG_PCI_P2PDMA));
	d_err("get", lib.DriverGetP2PFlags(type, &f));
}

static void topology(struct d *d, long what)
{
	static const char *const path[] = { NULL, "", "/no/such/folder/x", "topology.json" };

	d_err("export", lib.ExportPCIeTopology(path[what]));
}

#define SIZES(prefix, run) \
	{ prefix "stats", run, 0 }, { prefix "queue-depth", run, 1 }, \
	{ prefix "threads", run, 2 }, { prefix "min-threshold", run, 3 }, \
	{ prefix "parallelism", run, 4 }, { prefix "max-direct", run, 5 }, \
	{ prefix "cache", run, 6 }, { prefix "per-buffer", run, 7 }, \
	{ prefix "pinned", run, 8 }, { prefix "batchsize", run, 9 }, { prefix "poll", run, 10 }, \
	{ prefix "batch-timeout", run, 11 }
#define BOOLS(prefix, run) \
	{ prefix "poll", run, 0 }, { prefix "allow-compat", run, 1 }, \
	{ prefix "force-compat", run, 2 }, { prefix "aggressive", run, 3 }, \
	{ prefix "parallel", run, 4 }, { prefix "nvtx", run, 5 }, { prefix "system-memory", run, 6 }, \
	{ prefix "p2pdma", run, 7 }, { prefix "iouring", run, 8 }, { prefix "odirect", run, 9 }, \
	{ prefix "topology", run, 10 }, { prefix "bypass", run, 11 }
#define BATCH_16 "{ \"properties\": { \"allow_compat_mode\": true, \"io_batchsize\": 16 } }\n"

const struct d_case param_cases[] = {
	SIZES("param-default-", size_default),
	SIZES("param-set-", size_set),
	SIZES("param-bad-", size_bad),
	{ "param-last-wins", size_last_wins },
	{ "param-of-file", size_over_file, 0, BATCH_16 },
	{ "param-over-file", size_over_file, 1, BATCH_16 },
	{ "param-unknown-12", unknown, 12 },
	{ "param-unknown-minus-1", unknown, -1 },
	{ "param-null-size", null_out, 0 },
	{ "param-null-bool", null_out, 1 },
	{ "param-null-text", null_out, 2 },
	{ "param-null-min", null_out, 3 },
	{ "param-null-max", null_out, 4 },
	{ "param-null-set", null_out, 5 },
	BOOLS("param-bool-", bool_param),
	BOOLS("param-bool-open-", bool_open),
	{ "param-text-level", text_default, 0 },
	{ "param-text-file", text_default, 1 },
	{ "param-text-file-env", text_default, 1, NULL, "CUFILE_LOGFILE_PATH=there.log" },
	{ "param-text-file-env-empty", text_default, 1, NULL, "CUFILE_LOGFILE_PATH=" },
	{ "param-text-dir", text_default, 2 },
	{ "param-text-set-level", text_set, 0 },
	{ "param-text-set-file", text_set, 1 },
	{ "param-text-set-dir", text_set, 2 },
	{ "param-text-length", text_length },
	{ "param-text-negative", text_negative },
	{ "param-text-empty-level", text_empty, 0 },
	{ "param-text-empty-file", text_empty, 1 },
	{ "param-text-empty-dir", text_empty, 2 },
	{ "param-text-200", text_long, 200 },
	{ "param-text-300", text_long, 300 },
	{ "param-text-5000", text_long, 5000 },
	{ "param-level-trace", level, 0 },
	{ "param-level-debug", level, 1 },
	{ "param-level-info", level, 2 },
	{ "param-level-notice", level, 3 },
	{ "param-level-warn", level, 4 },
	{ "param-level-error", level, 5 },
	{ "param-level-small", level, 6 },
	{ "param-level-none", level, 7 },
	{ "param-level-fatal", level, 8 },
	{ "slabs-default", slabs_default },
	{ "slabs-set", slabs_set },
	{ "slabs-giant", slabs_wrong, 0 },
	{ "slabs-descending", slabs_wrong, 1 },
	{ "slabs-odd", slabs_wrong, 2 },
	{ "slabs-zero", slabs_wrong, 3 },
	{ "slabs-equal", slabs_wrong, 4 },
	{ "slabs-null-sizes", slabs_arguments, 0 },
	{ "slabs-null-counts", slabs_arguments, 1 },
	{ "slabs-none", slabs_arguments, 2 },
	{ "slabs-negative", slabs_arguments, 3 },
	{ "slabs-get-null-sizes", slabs_arguments, 4 },
	{ "slabs-get-null-counts", slabs_arguments, 5 },
	{ "slabs-gpu", gpu_slabs, 0, NULL, NULL, "SetParameterGpuBounceBufferSlabArray" },
	{ "p2p-set-0", p2p_set, 0, NULL, NULL, "DriverSetP2PFlags" },
	{ "p2p-set-1", p2p_set, 1, NULL, NULL, "DriverSetP2PFlags" },
	{ "p2p-set-2", p2p_set, 2, NULL, NULL, "DriverSetP2PFlags" },
	{ "p2p-type-13", p2p_type, 13, NULL, NULL, "DriverSetP2PFlags" },
	{ "p2p-type-14", p2p_type, 14, NULL, NULL, "DriverSetP2PFlags" },
	{ "p2p-type-minus-1", p2p_type, -1, NULL, NULL, "DriverSetP2PFlags" },
	{ "topology-null", topology, 0, NULL, NULL, "ExportPCIeTopology" },
	{ "topology-empty", topology, 1, NULL, NULL, "ExportPCIeTopology" },
	{ "topology-nowhere", topology, 2, NULL, NULL, "ExportPCIeTopology" },
	{ "topology-file", topology, 3, NULL, NULL, "ExportPCIeTopology" },
	{ NULL }
};
