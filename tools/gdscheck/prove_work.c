// SPDX-License-Identifier: MIT
/*
 * prove_work.c - the requests of one run, in a process of its own.
 *
 * For each place in the file: poison the GPU memory, read into it, compare with what the file
 * has; then fill it, write it, and compare the file, read past the page cache. What stands where
 * comes from tools/gdsio/stamp.c, under a key of this run, so no older bytes can pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prove.h"
#include "stamp.h"

#define BLOCK 4096
#define AROUND ((size_t)BLOCK)	/* looked at before and behind the bytes of a request */
#define START 65536UL		/* of the bytes in GPU memory: whole GPU pages */
#define BUFFER (START + (2UL << 20))
#define POISON 0xa5
#define KEYS 40			/* bits of a file offset, below the key of its content */

/* Far enough from one another that no AROUND touches the next */
static const struct {
	uint64_t size, off;
} places[PROVE_CASES] = {
	{ 64 << 10, 64 << 10 },
	{ 1 << 20, 1 << 20 },
	{ 100000, (3 << 20) + 1000 },
};

struct work {
	const struct prove_api *api;
	struct prove_run *run;
	int fd;
	CUfileHandle_t fh;
	CUdeviceptr gpu;
	uint8_t *host;		/* BUFFER bytes, of whole pages */
	uint64_t key;
};

static void failed(struct work *w, int code, const char *what, const char *text)
{
	w->run->code = code;
	snprintf(w->run->failed, sizeof(w->run->failed), "%s: %s", what, text);
}

static bool cuda(struct work *w, CUresult r, const char *call)
{
	char text[64];

	if (!r)
		return true;
	snprintf(text, sizeof(text), "CUDA error %d", r);
	failed(w, r, call, text);
	return false;
}

/* "5033: NVFS driver initialization error", with CUDA's number where there is one */
static void status_text(CUfileError_t s, char *out, size_t len)
{
	if (IS_CUDA_ERR(s))
		snprintf(out, len, "%d: %s (CUDA error %d)", s.err, cufileop_status_error(s.err),
			 (int)CU_FILE_CUDA_ERR(s));
	else
		snprintf(out, len, "%d: %s", s.err, cufileop_status_error(s.err));
}

static bool cufile(struct work *w, CUfileError_t s, const char *call)
{
	char text[160];

	if (!s.err)
		return true;
	status_text(s, text, sizeof(text));
	failed(w, s.err, call, text);
	return false;
}

/* ---- the file, without the library ---- */

/* What stands in the file at `off`, before (0) and after (1) the write of a place */
static uint64_t stamp_at(const struct work *w, unsigned int age, uint64_t off)
{
	return ((w->key << 1 | age) << KEYS) + off;
}

static bool whole(ssize_t n, size_t want)
{
	if (n >= 0 && (size_t)n != want)
		errno = EIO;
	return n >= 0 && (size_t)n == want;
}

/* All of the file anew, and on the drive. Without the page cache where that can be done. */
static bool fill_file(struct work *w)
{
	uint64_t at;

	for (at = 0; at < PROVE_FILE; at += START) {
		stamp_fill(w->host, START, stamp_at(w, 0, at), 0);
		if (!whole(pwrite(w->fd, w->host, START, (off_t)at), START))
			goto bad;
	}
	if (fdatasync(w->fd))
		goto bad;
	posix_fadvise(w->fd, 0, 0, POSIX_FADV_DONTNEED);
	return true;
bad:
	failed(w, errno, "the test file cannot be filled", strerror(errno));
	return false;
}

/* Whole blocks around the bytes, from the drive: with O_DIRECT the cache has no say. */
static bool read_file(struct work *w, uint64_t from, size_t n)
{
	if (fdatasync(w->fd))
		return false;
	posix_fadvise(w->fd, 0, 0, POSIX_FADV_DONTNEED);
	return whole(pread(w->fd, w->host, n, (off_t)from), n);
}

/* ---- comparing ---- */

static bool is_stamp(struct work *w, struct prove_row *row, const char *where, const uint8_t *at,
		     size_t n, unsigned int age, uint64_t off)
{
	struct stamp_miss m;

	if (!stamp_check(at, n, stamp_at(w, age, off), 0, &m))
		return true;
	snprintf(row->wrong, sizeof(row->wrong),
		 "%s: byte %" PRIu64 " of the file is 0x%02x, wanted 0x%02x", where,
		 m.off - stamp_at(w, age, 0), m.found[0], m.want[0]);
	return false;
}

static bool is_poison(struct prove_row *row, const uint8_t *at, size_t n, uint64_t first)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (at[i] != POISON) {
			snprintf(row->wrong, sizeof(row->wrong),
				 "GPU memory: byte %" PRIu64 " beside the request was overwritten",
				 first + i);
			return false;
		}
	return true;
}

/* ---- requests ---- */

/* Where in GPU memory the bytes of a place are */
static size_t at_gpu(const struct work *w, uint64_t off)
{
	return START + (off + w->run->skew) % BLOCK;
}

static void copy(char *to, size_t len, const char *from)
{
	snprintf(to, len, "%s", from ? from : "");
}

/* What the library says that it did */
static void ask(struct work *w, struct prove_row *row)
{
	struct ogds_report rep = OGDS_REPORT_INIT;

	if (!w->api->last_io || w->api->last_io(&rep))
		return;
	row->told = true;
	memcpy(row->bytes, rep.bytes, sizeof(row->bytes));
	row->whole = rep.whole_bytes;
	row->whole_direct = rep.whole_direct;
	row->edge = rep.edge_bytes;
	row->witnessed = rep.witnessed;
	row->retried = rep.retried;
	if (rep.reason && w->api->reason_id) {
		copy(row->why.id, sizeof(row->why.id), w->api->reason_id(rep.reason));
		copy(row->why.text, sizeof(row->why.text), w->api->reason_text(rep.reason));
		copy(row->why.remedy, sizeof(row->why.remedy),
		     w->api->reason_remedy(rep.reason));
	}
	if (rep.refused_by && w->api->reason_id)
		copy(row->refused_by, sizeof(row->refused_by), w->api->reason_id(rep.refused_by));
}

/* The call is over: n bytes. False: there is nothing to compare. */
static bool ended(struct work *w, struct prove_row *row, ssize_t n)
{
	row->error = n < 0 ? errno : 0;
	row->result = n;
	row->made = true;
	ask(w, row);
	if (n >= 0 && (uint64_t)n != row->size)
		snprintf(row->wrong, sizeof(row->wrong), "%zd bytes moved, asked for %" PRIu64, n,
			 row->size);
	return n >= 0 && !row->wrong[0];
}

/* Poisons all of the GPU memory and looks whether it is. */
static bool poison(struct work *w)
{
	struct prove_row none = { .made = false };
	const struct prove_api *api = w->api;

	if (!cuda(w, api->fill(w->gpu, POISON, BUFFER), "cuMemsetD8") ||
	    !cuda(w, api->sync(), "cuCtxSynchronize") ||
	    !cuda(w, api->from_gpu(w->host, w->gpu, BUFFER), "cuMemcpyDtoH"))
		return false;
	if (is_poison(&none, w->host, BUFFER, 0))
		return true;
	failed(w, EIO, "GPU memory", "does not keep what is written to it");
	return false;
}

static bool try_read(struct work *w, struct prove_row *row)
{
	size_t at = at_gpu(w, row->file_off);

	if (!poison(w))
		return false;
	if (!ended(w, row, w->api->read(w->fh, (void *)(uintptr_t)w->gpu, row->size,
					(off_t)row->file_off, (off_t)at)))
		return true;
	if (!cuda(w, w->api->from_gpu(w->host, w->gpu, BUFFER), "cuMemcpyDtoH"))
		return false;
	row->right = is_stamp(w, row, "read", w->host + at, row->size, 0, row->file_off) &&
		     is_poison(row, w->host, at, 0) &&
		     is_poison(row, w->host + at + row->size, BUFFER - at - row->size,
			       at + row->size);
	return true;
}

static bool try_write(struct work *w, struct prove_row *row)
{
	size_t at = at_gpu(w, row->file_off), skip;
	uint64_t from, end;

	if (!poison(w))
		return false;
	stamp_fill(w->host, row->size, stamp_at(w, 1, row->file_off), 0);
	if (!cuda(w, w->api->to_gpu(w->gpu + at, w->host, row->size), "cuMemcpyHtoD") ||
	    !cuda(w, w->api->sync(), "cuCtxSynchronize"))
		return false;
	if (!ended(w, row, w->api->write(w->fh, (void *)(uintptr_t)w->gpu, row->size,
					 (off_t)row->file_off, (off_t)at)))
		return true;
	from = row->file_off / BLOCK * BLOCK - AROUND;
	end = (row->file_off + row->size + BLOCK - 1) / BLOCK * BLOCK + AROUND;
	if (!read_file(w, from, end - from)) {
		snprintf(row->wrong, sizeof(row->wrong), "write: the file cannot be read back: %s",
			 strerror(errno));
		return true;
	}
	skip = row->file_off - from;
	row->right = is_stamp(w, row, "write", w->host + skip, row->size, 1, row->file_off) &&
		     is_stamp(w, row, "before the write", w->host, skip, 0, from) &&
		     is_stamp(w, row, "behind the write", w->host + skip + row->size,
			      end - from - skip - row->size, 0, row->file_off + row->size);
	return true;
}

static void try_all(struct work *w)
{
	struct prove_row *row = w->run->row;
	unsigned int i;

	for (i = 0; i < PROVE_CASES; i++) {
		row[2 * i] = (struct prove_row){ .op = OGDS_OP_READ, .size = places[i].size,
						 .file_off = places[i].off };
		row[2 * i + 1] = row[2 * i];
		row[2 * i + 1].op = OGDS_OP_WRITE;
	}
	for (i = 0; i < PROVE_CASES; i++) {
		if (!try_read(w, &row[2 * i]) ||
		    (w->run->writes && !try_write(w, &row[2 * i + 1])))
			return;
	}
}

/* ---- what stands around them ---- */

static bool start_cuda(struct work *w)
{
	const struct prove_api *api = w->api;
	CUcontext ctx;
	CUdevice dev;
	int n = 0;

	if (!cuda(w, api->init(0), "cuInit") || !cuda(w, api->count(&n), "cuDeviceGetCount"))
		return false;
	if (!n) {
		failed(w, ENODEV, "CUDA", "it has no GPU for this process");
		return false;
	}
	return cuda(w, api->device(&dev, 0), "cuDeviceGet") &&
	       cuda(w, api->pci(w->run->gpu, sizeof(w->run->gpu), dev), "cuDeviceGetPCIBusId") &&
	       cuda(w, api->retain(&ctx, dev), "cuDevicePrimaryCtxRetain") &&
	       cuda(w, api->current(ctx), "cuCtxSetCurrent") &&
	       cuda(w, api->alloc(&w->gpu, BUFFER), "cuMemAlloc");
}

/* A refused registration ends nothing: the library can go another way, and says which. */
static void pin(struct work *w)
{
	CUfileError_t s = w->api->buf((void *)(uintptr_t)w->gpu, BUFFER, 0);
	char text[160];

	if (!s.err)
		return;
	status_text(s, text, sizeof(text));
	w->run->code = s.err;
	snprintf(w->run->pin, sizeof(w->run->pin), "cuFileBufRegister: %s", text);
}

/* What would be done with the file that the user named; nothing of it is read. */
static void ask_about(struct work *w, const char *path)
{
	struct ogds_plan plan = OGDS_PLAN_INIT;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	char *out = w->run->file_says;
	size_t len = sizeof(w->run->file_says);
	CUfileHandle_t fh;
	CUfileError_t s;
	uint32_t why;
	int fd;

	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0 && errno == EINVAL)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(out, len, "it cannot be opened: %s", strerror(errno));
		return;
	}
	descr.handle.fd = fd;
	s = w->api->file(&fh, &descr);
	if (s.err) {
		status_text(s, out, len);
		close(fd);
		return;
	}
	if (w->api->explain(fh, (void *)(uintptr_t)(w->gpu + START), 1 << 20, 0, &plan)) {
		snprintf(out, len, "the library cannot tell");
	} else if (!plan.whole_bytes) {
		snprintf(out, len, "it is shorter than a block of 4096 bytes, which no drive moves alone");
	} else if (plan.whole_direct == plan.whole_bytes) {
		snprintf(out, len, "a read of its first MiB would go direct");
	} else {
		why = plan.reason ? plan.reason : plan.piece[0].reason;
		snprintf(out, len, "a read of it would not go direct: %s: %s; %s",
			 w->api->reason_id(why), w->api->reason_text(why),
			 w->api->reason_remedy(why));
	}
	w->api->unfile(fh);
	close(fd);
}

void prove_work(const struct prove_api *api, int fd, uint64_t key, struct prove_run *run)
{
	struct work w = { .api = api, .run = run, .fd = fd, .key = key };
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	bool pinned = false;

	w.host = aligned_alloc(BLOCK, BUFFER);
	if (!w.host) {
		failed(&w, ENOMEM, "memory", strerror(ENOMEM));
		return;
	}
	if (!fill_file(&w) || !start_cuda(&w) || !cufile(&w, api->open(), "cuFileDriverOpen"))
		goto out;
	run->opened = true;
	if (run->registered) {
		pin(&w);
		pinned = !run->pin[0];
	}
	descr.handle.fd = fd;
	if (cufile(&w, api->file(&w.fh, &descr), "cuFileHandleRegister")) {
		try_all(&w);
		api->unfile(w.fh);
	}
	if (run->file && api->explain && api->reason_id)
		ask_about(&w, run->file);
	if (pinned)
		api->unbuf((void *)(uintptr_t)w.gpu);
	api->close();
out:
	if (w.gpu)
		api->free(w.gpu);
	free(w.host);
}
