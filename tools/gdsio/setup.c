// SPDX-License-Identifier: MIT
/* setup.c - files and GPUs of a run, opened and closed by the main thread. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gdsio.h"
#include "stamp.h"

#define GPU_PAGE (64 * 1024ULL)

/* -- files -- */

static const char *open_hint(int err, bool write)
{
	switch (err) {
	case ENOENT: return write ? "make the folder" : "write it first with -I 1";
	case EINVAL: return "the file system may have no O_DIRECT: try -O 1";
	case EACCES: return "check the permissions of the file and its folders";
	case ENOSPC: return "free some space on the file system";
	case EROFS: return "mount the file system for writing";
	default: return "see open(2)";
	}
}

static int open_file(struct gdsio_file *file, bool write, bool buffered)
{
	int flags = O_CLOEXEC | (buffered ? 0 : O_DIRECT), err;
	struct stat st;

	/* for writing also readable: a block's rest is read when a part of it is written */
	flags |= write ? O_RDWR | O_CREAT : O_RDONLY;
	file->fd = open(file->path, flags, 0644);
	if (file->fd >= 0)
		return 0;
	err = errno;
	if (!stat(file->path, &st) && S_ISDIR(st.st_mode))
		gdsio_err("%s: it is a folder; name a file in it, or say -D", file->path);
	else
		gdsio_err("%s: open: %s (%s); %s", file->path, strerror(err),
			  gdsio_errno_name(err), open_hint(err, write));
	return -EIO;
}

static int check_file(const struct gdsio_file *file, bool write)
{
	struct stat st;
	off_t end;

	if (fstat(file->fd, &st)) {
		gdsio_err("%s: fstat: %s", file->path, strerror(errno));
		return -EIO;
	}
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
		gdsio_err("%s: neither a file nor a block device; name one with -f", file->path);
		return -EIO;
	}
	if (write && S_ISREG(st.st_mode))
		return 0;
	end = S_ISREG(st.st_mode) ? st.st_size : lseek(file->fd, 0, SEEK_END);
	if (end >= 0 && (uint64_t)end >= file->need)
		return 0;
	gdsio_err("%s: %lld bytes long, but -o and -s reach to %" PRIu64 "; write it first with "
		  "-I 1, or give a smaller -s", file->path, (long long)end, file->need);
	return -EIO;
}

/* A block has its stamp's head where the data set has whole blocks; else all is generation 0. */
static uint64_t first_block(const struct gdsio_file *file)
{
	const uint64_t first = (file->start + STAMP_BLOCK - 1) / STAMP_BLOCK * STAMP_BLOCK;

	return first + STAMP_BLOCK <= file->need ? first : UINT64_MAX;
}

/* One of the run: jobs may write into the same file. */
static int new_generation(struct gdsio_run *run, struct gdsio_file *file)
{
	while (!run->generation) {
		if (getrandom(&run->generation, sizeof(run->generation), 0) < 0) {
			gdsio_err("getrandom: %s", strerror(errno));
			return -EIO;
		}
	}
	file->generation = first_block(file) == UINT64_MAX ? 0 : run->generation;
	return 0;
}

/*
 * What an earlier run wrote there. A block without a stamp leaves generation 0, and the pass
 * will name what is wrong with it.
 */
static int find_generation(struct gdsio_file *file)
{
	uint64_t at = first_block(file);
	void *block;
	ssize_t n;

	if (at == UINT64_MAX)
		at = file->start / STAMP_BLOCK * STAMP_BLOCK;
	if (posix_memalign(&block, STAMP_BLOCK, STAMP_BLOCK))
		return -EIO;
	n = pread(file->fd, block, STAMP_BLOCK, (off_t)at);
	if (n != STAMP_BLOCK || !stamp_generation(block, at / STAMP_BLOCK, &file->generation))
		file->generation = 0;
	free(block);
	return 0;
}

static int know_file(struct gdsio_file *file)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileError_t status;

	descr.handle.fd = file->fd;
	status = cuFileHandleRegister(&file->fh, &descr);
	if (status.err) {
		fprintf(stderr, "file register error: %s filename :%s\n",
			cufileop_status_error(status.err), file->path);
		return -EIO;
	}
	file->known = true;
	return 0;
}

static int open_files(struct gdsio_run *run)
{
	const struct gdsio_args *a = run->args;
	const bool write = gdsio_is_write(a->rw) || a->mix;
	struct gdsio_file *file;
	unsigned int i;
	int err;

	for (i = 0; i < run->files; i++) {
		file = &run->file[i];
		err = open_file(file, write, a->buffered);
		if (!err)
			err = check_file(file, write && !a->mix);
		if (!err && (a->verify || a->verify_after))
			err = write ? new_generation(run, file) : find_generation(file);
		if (!err && gdsio_by_cufile(a->xfer))
			err = know_file(file);
		if (err)
			return err;
	}
	return 0;
}

/* Files of one folder are numbered through, also those of another job in it. */
static unsigned int first_number(const struct gdsio_args *a, unsigned int job)
{
	unsigned int i, n = 0;

	for (i = 0; i < job; i++) {
		if (!strcmp(a->job[i].path, a->job[job].path))
			n += a->job[i].threads;
	}
	return n;
}

static int name_file(struct gdsio_file *file, const struct gdsio_args *a, unsigned int job,
		     unsigned int thread)
{
	const char *path = a->job[job].path;
	int n;

	if (a->dirs)
		n = snprintf(file->path, sizeof(file->path), "%s/gdsio.%u", path,
			     first_number(a, job) + thread);
	else
		n = snprintf(file->path, sizeof(file->path), "%s", path);
	if (n < (int)sizeof(file->path))
		return 0;
	gdsio_err("%s: the name is too long", path);
	return -EIO;
}

/* Who moves which bytes of which file. */
static int plan(struct gdsio_run *run)
{
	const struct gdsio_args *a = run->args;
	struct gdsio_file *file = run->file;
	struct gdsio_worker *w = run->worker;
	unsigned int job, t;
	uint64_t off, len;

	for (job = 0; job < a->jobs; job++) {
		for (t = 0; t < a->job[job].threads; t++, w++) {
			if ((a->dirs || !t) && name_file(file, a, job, t))
				return -EIO;
			gdsio_slice(a->job[job].size, a->io.max, a->job[job].threads, t, &off,
				    &len);
			*w = (struct gdsio_worker){
				.run = run,
				.job = &a->job[job],
				.file = file,
				.tid = (unsigned int)(w - run->worker),
				.off = a->job[job].start + (a->dirs ? 0 : off),
				.len = len,
			};
			file->job = &a->job[job];
			file->start = a->job[job].start;
			file->need = w->off + w->len;
			if (a->dirs || t + 1 == a->job[job].threads)
				file++;
		}
	}
	return 0;
}

/* -- GPUs -- */

static int open_gpu(struct gdsio_run *run, int index)
{
	CUdevice dev;
	int count;

	if (run->ctx[index])
		return 0;
	if (gdsio_cuda(cuInit(0), "cuInit") ||
	    gdsio_cuda(cuDeviceGetCount(&count), "cuDeviceGetCount"))
		return -EIO;
	if (index >= count) {
		gdsio_err("-d %d: this machine has %d GPU%s, numbered from 0", index, count,
			  count == 1 ? "" : "s");
		return -EIO;
	}
	if (gdsio_cuda(cuDeviceGet(&dev, index), "cuDeviceGet"))
		return -EIO;
	return gdsio_cuda(cuDevicePrimaryCtxRetain(&run->ctx[index], dev),
			  "cuDevicePrimaryCtxRetain");
}

static int open_driver(struct gdsio_run *run)
{
	CUfileError_t status = cuFileDriverOpen();

	if (!status.err) {
		run->driver = true;
		return 0;
	}
	fprintf(stderr, "cuFile driver open error: %d\n", (int)status.err);
	gdsio_err("%s; cufile.log has the details", cufileop_status_error(status.err));
	return -EIO;
}

/* -- all -- */

static int init_sync(struct gdsio_run *run)
{
	pthread_condattr_t attr;
	int err;

	pthread_mutex_init(&run->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = pthread_cond_init(&run->ended, &attr);
	pthread_condattr_destroy(&attr);
	return -err;
}

static int acquire(struct gdsio_run *run)
{
	unsigned int i;
	int err = 0;

	if (run->args->nvlink)
		gdsio_err("-p has no effect: this library sends nothing over NVLink");
	for (i = 0; i < run->args->jobs && !err && gdsio_needs_gpu(run->args); i++)
		err = open_gpu(run, run->args->job[i].gpu);
	if (!err && gdsio_by_cufile(run->args->xfer))
		err = open_driver(run);
	if (!err)
		err = open_files(run);
	for (i = 0; i < run->workers && !err; i++)
		err = gdsio_worker_open(&run->worker[i]);
	return err;
}

int gdsio_run_open(struct gdsio_run *run, const struct gdsio_args *args)
{
	unsigned int i;

	*run = (struct gdsio_run){
		.args = args,
		.ops = &gdsio_xfer_ops[args->xfer],
		.buffer = args->io.max,
		.stride = (args->io.max + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE,
		.depth = args->batch,
	};
	if (run->depth < run->ops->bounces)
		run->depth = run->ops->bounces;
	run->files = args->dirs ? args->threads : args->jobs;
	run->file = calloc(run->files, sizeof(*run->file));
	run->worker = calloc(args->threads, sizeof(*run->worker));
	if (!run->file || !run->worker || init_sync(run)) {
		gdsio_err("out of memory for %u threads", args->threads);
		run->files = 0;
		return -EIO;
	}
	run->workers = args->threads;
	for (i = 0; i < run->files; i++)
		run->file[i].fd = -1;
	for (i = 0; i < run->workers; i++)
		run->worker[i].run = run;
	return plan(run) ? -EIO : acquire(run);
}

void gdsio_run_close(struct gdsio_run *run)
{
	struct gdsio_file *file;
	unsigned int i;
	CUdevice dev;

	for (i = 0; i < run->workers; i++)
		gdsio_worker_close(&run->worker[i]);
	for (i = 0; i < run->files; i++) {
		file = &run->file[i];
		if (file->known)
			cuFileHandleDeregister(file->fh);
		if (file->fd >= 0)
			close(file->fd);
	}
	if (run->driver)
		cuFileDriverClose();
	for (i = 0; i < sizeof(run->ctx) / sizeof(run->ctx[0]); i++) {
		if (run->ctx[i] && !cuDeviceGet(&dev, (int)i))
			cuDevicePrimaryCtxRelease(dev);
	}
	free(run->worker);
	free(run->file);
}
