// SPDX-License-Identifier: MIT
/*
 * cl_kvikio.c - KvikIO (and cuDF through it): every symbol but the version is needed; the open
 * is explicit; properties are read and set to what they are; of a file only the O_DIRECT
 * descriptor is registered, with a zeroed description; a batch without a timeout; stream
 * operations whose numbers are in memory of malloc, when there is a configuration file. With
 * CL_DIRECT=1 in its environment it wants a version of the module, as KvikIO does where GDS is
 * to be there.
 */
#include <stdio.h>

#include "cl.h"

#define SYMBOLS(X) \
	X(HandleRegister) X(HandleDeregister) X(Read) X(Write) X(BufRegister) X(BufDeregister) \
	X(DriverOpen) X(DriverClose_v2) X(DriverGetProperties) X(DriverSetPollMode) \
	X(DriverSetMaxCacheSize) X(DriverSetMaxPinnedMemSize) X(GetVersion) X(BatchIOSetUp) \
	X(BatchIOSubmit) X(BatchIOGetStatus) X(BatchIOCancel) X(BatchIODestroy) X(ReadAsync) \
	X(WriteAsync) X(StreamRegister) X(StreamDeregister)

static struct {
#define X(name) __typeof__(cuFile##name) *name;
	SYMBOLS(X)
#undef X
} cu;

#define SIZE (4 * M)
#define TASK M

static void properties(void)
{
	CUfileDrvProps_t p;
	int v;

	cl_ok("GetVersion", cu.GetVersion(&v));
	if (v < 1070)
		t_die("version %d has no stream interface", v);
	cl_ok("GetProperties", cu.DriverGetProperties(&p));
	if (getenv("CL_DIRECT") && !p.nvfs.major_version && !p.nvfs.minor_version)
		t_die("version 0.0 of the module: GDS is taken as not available");
	cl_ok("SetPollMode", cu.DriverSetPollMode(false, p.nvfs.poll_thresh_size));
	cl_ok("SetMaxCacheSize", cu.DriverSetMaxCacheSize(p.max_device_cache_size));
	cl_ok("SetMaxPinnedMemSize", cu.DriverSetMaxPinnedMemSize(p.max_device_pinned_mem_size));
}

/* Tasks of one size; the last one is not a multiple of a page. */
static void tasks(CUfileHandle_t fh, char *mem, size_t size)
{
	size_t at, n;

	for (at = 0; at < size; at += n) {
		n = size - at < TASK ? size - at : TASK;
		cl_bytes("cuFileRead", cu.Read(fh, mem, n, at, at), n);
	}
	cl_gpu_is(mem, size, 0, 20);
}

static void batch(CUfileHandle_t fh, char *mem)
{
	CUfileIOParams_t p[8];
	CUfileIOEvents_t ev[8];
	CUfileBatchHandle_t b;
	unsigned int i, n = 8;

	cl_ok("BatchIOSetUp", cu.BatchIOSetUp(&b, 8));
	memset(p, 0, sizeof(p));
	for (i = 0; i < 8; i++) {
		p[i].mode = CUFILE_BATCH;
		p[i].fh = fh;
		p[i].u.batch.devPtr_base = mem;
		p[i].u.batch.devPtr_offset = p[i].u.batch.file_offset = i * 64 * K;
		p[i].u.batch.size = 64 * K;
	}
	cl_gpu_poison(mem, 8 * 64 * K);
	cl_ok("BatchIOSubmit", cu.BatchIOSubmit(b, 8, p, 0));
	cl_ok("BatchIOGetStatus", cu.BatchIOGetStatus(b, 8, &n, ev, NULL));
	for (i = 0; i < n; i++)
		if (ev[i].status != CUFILE_COMPLETE || ev[i].ret != 64 * K)
			t_die("batch: status %d, %zd bytes", (int)ev[i].status, (ssize_t)ev[i].ret);
	if (n != 8)
		t_die("batch: %u events of 8", n);
	cl_gpu_is(mem, 8 * 64 * K, 0, 20);
	cl_ok("BatchIOCancel", cu.BatchIOCancel(b));
	cu.BatchIODestroy(b);
}

struct future {
	size_t size;
	off_t off, buf_off;
	ssize_t bytes_done;
};

static void streams(CUfileHandle_t fh, char *mem)
{
	struct future *f[2];
	CUstream s;
	int i;

	if (cuStreamCreate(&s, CU_STREAM_NON_BLOCKING))
		t_die("no stream");
	cl_ok("StreamRegister", cu.StreamRegister(s, 0));
	for (i = 0; i < 2; i++) {
		f[i] = calloc(1, sizeof(*f[i]));
		f[i]->size = SIZE;
	}
	cl_gpu_poison(mem, SIZE);
	cl_ok("ReadAsync", cu.ReadAsync(fh, mem, &f[0]->size, &f[0]->off, &f[0]->buf_off,
					&f[0]->bytes_done, s));
	cl_ok("WriteAsync", cu.WriteAsync(fh, mem, &f[1]->size, &f[1]->off, &f[1]->buf_off,
					  &f[1]->bytes_done, s));
	cuStreamSynchronize(s);
	for (i = 0; i < 2; i++) {
		cl_bytes("bytes_done", f[i]->bytes_done, SIZE);
		free(f[i]);
	}
	cl_ok("StreamDeregister", cu.StreamDeregister(s));
	cuStreamDestroy(s);
	cl_gpu_is(mem, SIZE, 0, 20);
}

int main(int argc, char **argv)
{
	const char *path = cl_begin(argc, argv);
	void *lib = dlopen("libcufile.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
	char *mem = cl_gpu_alloc(SIZE + 4096);
	int cached, direct;
	CUfileHandle_t fh;
	CUfileDescr_t d;

#define X(name) CL_LOAD(lib, cu.name, "cuFile" #name);
	SYMBOLS(X)
#undef X
	cl_make(path, SIZE, 20);
	cl_ok("DriverOpen", cu.DriverOpen());
	properties();
	cached = t_open(path, O_RDWR);
	direct = t_open(path, O_RDWR | O_DIRECT);
	d = cl_descr(direct);
	cl_ok("HandleRegister", cu.HandleRegister(&fh, &d));
	tasks(fh, mem, SIZE);
	cl_ok("BufRegister", cu.BufRegister(mem, SIZE, 0));
	cl_gpu_poison(mem, SIZE);
	tasks(fh, mem, SIZE);
	batch(fh, mem);
	if (getenv("CUFILE_ENV_PATH_JSON") || !access("/etc/cufile.json", R_OK))
		streams(fh, mem);
	cl_bytes("cuFileWrite", cu.Write(fh, mem, SIZE, 0, 0), SIZE);
	cl_file_is(path, 0, SIZE, 20);
	cl_ok("BufDeregister", cu.BufDeregister(mem));
	cu.HandleDeregister(fh);
	close(direct);
	close(cached);
	cl_ok("DriverClose", cu.DriverClose_v2());
	return cl_end();
}
