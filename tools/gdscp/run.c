// SPDX-License-Identifier: MIT
/* run.c - gdscp: one file after the other, and what is told of it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "copy.h"
#include "run.h"
#include "sys.h"
#include "target.h"

#ifndef GDSCP_VERSION
#define GDSCP_VERSION "unknown"
#endif

#define TOLD_NS 1000000000	/* between two lines of progress */
#define FRESH_NS 20000000	/* a change in this time may not show in the next time stamp */

static atomic_int stop;		/* the signal that came, or 0 */

struct run {
	struct gdscp_args args;
	struct slots slots;
	mode_t umask;
	bool ready, registered, terminal;
	bool not_direct;
	/* of the line of progress */
	const char *name;
	uint64_t began_ns, told_ns;
};

static void __attribute__((format(printf, 1, 2))) complain(const char *fmt, ...)
{
	char text[TARGET_WHY + PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fflush(stdout);
	fprintf(stderr, "gdscp: %s\n", text);
}

static void on_signal(int sig)
{
	if (!atomic_exchange(&stop, sig))
		return;
	/* the second one does not wait for what is under way */
	target_drop_now();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void catch_signals(void)
{
	static const int sig[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, was;
	size_t i;

	for (i = 0; i < sizeof(sig) / sizeof(sig[0]); i++) {
		/* what the caller ignores stays so: nohup */
		if (!sigaction(sig[i], NULL, &was) && was.sa_handler != SIG_IGN)
			sigaction(sig[i], &act, NULL);
	}
	/* a limit of the size of files is an error of the write */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* -- the GPU -- */

static int cuda(CUresult r, const char *what)
{
	const char *name = NULL, *text = NULL;

	if (!r)
		return 0;
	cuGetErrorName(r, &name);
	cuGetErrorString(r, &text);
	complain("%s: %s (%s)", what, text ? text : "CUDA error", name ? name : "unknown");
	return -EIO;
}

static int open_gpu(struct run *run)
{
	CUdevice dev;
	int n = 0;

	if (cuda(cuInit(0), "cuInit: is there a GPU and its driver?") ||
	    cuda(cuDeviceGetCount(&n), "cuDeviceGetCount"))
		return -EIO;
	if (run->args.gpu >= n) {
		complain("GPU %d: there %s %d, numbered from 0", run->args.gpu,
			 n == 1 ? "is" : "are", n);
		return -ENODEV;
	}
	if (cuda(cuDeviceGet(&dev, run->args.gpu), "cuDeviceGet") ||
	    cuda(cuDevicePrimaryCtxRetain(&run->slots.ctx, dev), "cuDevicePrimaryCtxRetain") ||
	    cuda(cuCtxSetCurrent(run->slots.ctx), "cuCtxSetCurrent"))
		return -EIO;
	return 0;
}

/* The largest source tells how large a slot need be. Halved until the GPU has as much. */
static int open_slots(struct run *run)
{
	struct slots *s = &run->slots;
	uint64_t most = 0, bytes = (uint64_t)run->args.slot_mib << 20;
	struct stat st;
	unsigned int i;
	CUfileError_t e;
	CUresult r;

	for (i = 0; i < run->args.sources; i++)
		if (!stat(run->args.src[i], &st) && (uint64_t)st.st_size > most)
			most = st.st_size;
	while (bytes > 1 << 20 && bytes / 2 * run->args.slots >= most)
		bytes /= 2;
	s->n = run->args.slots;
	for (;;) {
		r = cuMemAlloc(&s->mem, bytes * s->n);
		if (r != CUDA_ERROR_OUT_OF_MEMORY || bytes <= 1 << 20)
			break;
		bytes /= 2;
	}
	if (cuda(r, "cuMemAlloc: free memory of the GPU, or lower --slots"))
		return -ENOMEM;
	s->bytes = bytes;
	e = cuFileBufRegister((void *)(uintptr_t)s->mem, bytes * s->n, 0);
	run->registered = !e.err;
	if (run->args.verbose)
		printf("GPU %d: %u slots of %" PRIu64 " MiB, %s\n", run->args.gpu, s->n, bytes >> 20,
		       run->registered ? "registered" : CUFILE_ERRSTR(e.err));
	return 0;
}

/* Once it is sure that there is something to copy. */
static int get_ready(struct run *run)
{
	if (run->ready)
		return 0;
	if (open_gpu(run) || open_slots(run))
		return -EIO;
	run->ready = true;
	return 0;
}

static void close_slots(struct run *run)
{
	if (run->registered)
		cuFileBufDeregister((void *)(uintptr_t)run->slots.mem);
	if (run->slots.mem)
		cuMemFree(run->slots.mem);
}

/* -- progress -- */

static void tell_progress(void *arg, const struct copy *c)
{
	struct run *run = arg;
	uint64_t now = now_ns(CLOCK_MONOTONIC), done = atomic_load(&c->written);
	double s = (double)(now - run->began_ns) / 1e9;

	/* the digest may be behind */
	if (c->digest_fd >= 0 && atomic_load(&c->seen) < done)
		done = atomic_load(&c->seen);
	if ((!run->terminal && !run->args.progress) || now < run->told_ns + TOLD_NS)
		return;
	run->told_ns = now;
	fprintf(stderr, "%s%s: %u %% of %.1f MiB, %.1f MiB/s%s", run->terminal ? "\r" : "",
		run->name, c->size ? (unsigned int)((double)done * 100 / (double)c->size) : 100,
		(double)c->size / (1 << 20), s > 0 ? (double)done / s / (1 << 20) : 0,
		run->terminal ? "\033[K" : "\n");
}

static void end_progress(struct run *run)
{
	if (run->terminal && run->told_ns)
		fputs("\r\033[K", stderr);
}

/* -- one file -- */

/* What is open of one source and its target. */
struct job {
	const char *src;
	struct stat st;
	int fd, plain_fd;	/* plain_fd: without O_DIRECT */
	struct target to;
	CUfileHandle_t in, out;
	struct copy copy;
	char why[TARGET_WHY];
};

static int open_source(struct job *j)
{
	j->fd = j->plain_fd = -1;
	/* a pipe would wait for who writes into it */
	j->plain_fd = open(j->src, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (j->plain_fd < 0 || fstat(j->plain_fd, &j->st)) {
		complain("%s: %s", j->src, strerror(errno));
		return -errno;
	}
	if (!S_ISREG(j->st.st_mode)) {
		complain("%s is %s: only regular files are copied", j->src,
			 S_ISDIR(j->st.st_mode) ? "a folder" : "no regular file");
		return -EINVAL;
	}
	j->fd = open(j->src, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (j->fd < 0)
		j->fd = open(j->src, O_RDONLY | O_CLOEXEC);
	if (j->fd < 0) {
		complain("%s: %s", j->src, strerror(errno));
		return -errno;
	}
	return 0;
}

/*
 * A time stamp is some milliseconds coarse: what is written in the one that we compare with
 * would not show. So that one must be over.
 */
static void settle(struct job *j)
{
	uint64_t changed = (uint64_t)j->st.st_ctim.tv_sec * 1000000000 + j->st.st_ctim.tv_nsec;
	uint64_t now = now_ns(CLOCK_REALTIME);
	const struct timespec nap = { .tv_nsec = FRESH_NS };

	if (now >= changed && now - changed < FRESH_NS)
		nanosleep(&nap, NULL);
	fstat(j->plain_fd, &j->st);
}

static bool changed(const struct job *j)
{
	struct stat st;

	return fstat(j->plain_fd, &st) || st.st_size != j->st.st_size ||
	       st.st_mtim.tv_sec != j->st.st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != j->st.st_mtim.tv_nsec ||
	       st.st_ctim.tv_sec != j->st.st_ctim.tv_sec ||
	       st.st_ctim.tv_nsec != j->st.st_ctim.tv_nsec;
}

/* Its size at once, so that holes stay; room for all data, so that it does not end half way. */
static int make_room(struct job *j)
{
	struct extents e;
	struct piece p;
	int r;

	if (gdscp_sys->ftruncate(j->to.fd, j->st.st_size)) {
		r = -errno;
		complain("%s: %" PRIu64 " bytes: %s", j->to.path, (uint64_t)j->st.st_size,
			 strerror(errno));
		return r;
	}
	extents_begin(&e, j->plain_fd, j->st.st_size, UINT64_MAX);
	while ((r = extents_next(&e, &p)) > 0) {
		if (p.hole || !gdscp_sys->fallocate(j->to.fd, 0, (off_t)p.off, (off_t)p.len))
			continue;
		if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
			return 0;	/* none is made in advance: a write will tell */
		r = -errno;
		complain("%s: no room for %" PRIu64 " bytes at %" PRIu64 ": %s: make some",
			 j->to.path, p.len, p.off, strerror(-r));
		return r;
	}
	if (r < 0)
		complain("%s: search for holes: %s", j->src, strerror(-r));
	return r;
}

static int register_files(struct job *j)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = j->fd };
	CUfileError_t e = cuFileHandleRegister(&j->in, &d);

	if (e.err) {
		complain("%s: cuFileHandleRegister: %s", j->src, copy_error_text(e.err));
		return -EIO;
	}
	d.handle.fd = j->to.fd;
	e = cuFileHandleRegister(&j->out, &d);
	if (e.err) {
		complain("%s: cuFileHandleRegister: %s", j->to.path, copy_error_text(e.err));
		return -EIO;
	}
	return 0;
}

static int move_bytes(struct run *run, struct job *j)
{
	struct copy *c = &j->copy;
	int r = register_files(j);

	c->slots = &run->slots;
	c->from = j->in;
	c->to = j->out;
	c->fd = j->plain_fd;
	c->digest_fd = run->args.no_checksum ? -1 : j->plain_fd;
	c->size = j->st.st_size;
	c->stop = &stop;
	c->progress = tell_progress;
	c->arg = run;
	run->name = j->src;
	run->began_ns = now_ns(CLOCK_MONOTONIC);
	run->told_ns = 0;
	if (!r) {
		r = copy_run(c);
		end_progress(run);
		if (r && r != -EINTR)
			complain("%s to %s: %s", j->src, j->to.path, c->why);
	}
	if (j->in)
		cuFileHandleDeregister(j->in);
	if (j->out)
		cuFileHandleDeregister(j->out);
	return r;
}

/* The digest of what the target has on its drive. */
static int verify(struct job *j)
{
	char text[2 * MD5_BYTES + 1];
	uint8_t sum[MD5_BYTES];
	char path[64];
	int fd, r;

	if (gdscp_sys->fsync(j->to.fd)) {
		complain("%s: fsync: %s", j->to.path, strerror(errno));
		return -errno;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", j->to.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		complain("%s: to be read back: %s", j->to.path, strerror(errno));
		return -errno;
	}
	/* not what is cached of it */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	r = copy_digest(fd, j->st.st_size, &stop, sum);
	close(fd);
	if (r) {
		if (r != -EINTR)
			complain("%s: read back: %s", j->to.path, strerror(-r));
		return r;
	}
	md5_text(sum, text);
	printf("target md5:%s\n", text);
	if (!memcmp(sum, j->copy.cpu_sum, MD5_BYTES))
		return 0;
	complain("%s: what was read back is not what was written: do not trust this drive",
		 j->to.path);
	return -EIO;
}

static int compare(struct run *run, struct job *j)
{
	char gpu[2 * MD5_BYTES + 1], cpu[2 * MD5_BYTES + 1];

	if (run->args.no_checksum)
		return 0;
	md5_text(j->copy.gpu_sum, gpu);
	md5_text(j->copy.cpu_sum, cpu);
	printf("gpu md5:%s\ncpu md5:%s\n", gpu, cpu);
	if (strcmp(gpu, cpu)) {
		puts("md5sum Mismatch!!");
		complain("%s: what was in GPU memory is not what the CPU reads: run gdscheck --prove on its file system, and look at the kernel log",
			 j->src);
		return -EIO;
	}
	if (run->args.verify) {
		int r = verify(j);

		if (r)
			return r;
	}
	puts("md5sum Match!!");
	return 0;
}

static void tell_way(const char *what, const struct ways *w)
{
	unsigned int i;

	printf("%s:", what);
	for (i = 0; i < OGDS_ROUTES; i++)
		if (w->bytes[i])
			printf(" %s: %" PRIu64, ogds_route_name(i), w->bytes[i]);
	printf(" whole_blocks: %" PRIu64 " direct: %" PRIu64 " edge: %" PRIu64 " retried: %" PRIu64
	       "\n", w->whole, w->direct, w->edges, w->retried);
	for (i = 0; i < w->reasons; i++)
		printf("Reason: %s: %s; %s\n", ogds_reason_id(w->reason[i]),
		       ogds_reason_text(w->reason[i]), ogds_reason_remedy(w->reason[i]));
}

static void say_swept(const char *path, const char *name)
{
	complain("removed %s beside %s, which a gdscp that was killed has left", name, path);
}

/* Everything behind target_find(): what is there by then is undone by the caller. */
static int copy_to(struct run *run, struct job *j)
{
	const struct gdscp_args *a = &run->args;
	int r;

	r = get_ready(run);
	if (r)
		return r;
	target_sweep(&j->to, say_swept);
	r = target_create(&j->to, j->why);
	if (r) {
		complain("%s", j->why);
		return r;
	}
	if (a->verbose)
		printf("%s -> %s (as %s)\n", j->src, j->to.path, j->to.temporary);
	settle(j);
	r = make_room(j);
	if (!r)
		r = move_bytes(run, j);
	/* before digests are compared: theirs would be of two states */
	if (!r && changed(j)) {
		complain("%s has changed while it was copied: copy it again when nobody writes to it",
			 j->src);
		r = -ESTALE;
	}
	if (!r)
		r = compare(run, j);
	if (!r && atomic_load(&stop))
		r = -EINTR;
	if (r)
		return r;
	r = target_finish(&j->to, &j->st, run->umask, a->preserve, a->force, j->why);
	if (r) {
		complain("%s", j->why);
		return r;
	}
	tell_way("Read", &j->copy.in);
	tell_way("Written", &j->copy.out);
	if (j->copy.in.direct < j->copy.in.whole || j->copy.out.direct < j->copy.out.whole)
		run->not_direct = true;
	return 0;
}

static int copy_file(struct run *run, const char *src)
{
	struct job *j = calloc(1, sizeof(*j));
	int r;

	if (!j) {
		complain("%s: out of memory", src);
		return -ENOMEM;
	}
	j->src = src;
	j->to.dir = j->to.fd = -1;
	r = open_source(j);
	if (!r) {
		r = target_find(&j->to, src, &j->st, run->args.dst, run->args.force, j->why);
		if (r)
			complain("%s", j->why);
	}
	if (!r)
		r = copy_to(run, j);
	target_close(&j->to);
	if (j->fd >= 0)
		close(j->fd);
	if (j->plain_fd >= 0)
		close(j->plain_fd);
	free(j);
	return r;
}

/* -- all of them -- */

/* Two of one name would be one file, and nobody knows which. */
static int check_names(const struct gdscp_args *a)
{
	unsigned int i, j;

	for (i = 1; i < a->sources; i++) {
		const char *name = target_base_name(a->src[i]);

		for (j = 0; j < i; j++) {
			if (strcmp(name, target_base_name(a->src[j])))
				continue;
			complain("%s and %s would both be %s/%s: copy them apart", a->src[j], a->src[i],
				 a->dst, name);
			return -EINVAL;
		}
	}
	return 0;
}

/* Several go into a folder alone. */
static int check_target(const struct gdscp_args *a)
{
	struct stat st;
	size_t len = strlen(a->dst);
	bool folder = !stat(a->dst, &st) && S_ISDIR(st.st_mode);

	if (folder || (a->sources == 1 && a->dst[len - 1] != '/'))
		return 0;
	complain("%s is no folder%s", a->dst,
		 a->sources > 1 ? ", and several files go into one alone: make it" : ": make it");
	return -ENOTDIR;
}

/* As the caller's shell wants to see it. */
static void end_by(int sig)
{
	fflush(stdout);
	signal(sig, SIG_DFL);
	raise(sig);
}

int gdscp_run(int argc, char **argv)
{
	static struct run run;
	char why[PATH_MAX + 256];
	unsigned int i;
	int failed = 0;

	memset(&run, 0, sizeof(run));
	if (gdscp_args_parse(argc, argv, &run.args, why, sizeof(why))) {
		complain("%s (gdscp --help shows all options)", why);
		return GDSCP_USAGE;
	}
	if (run.args.help || run.args.version) {
		fputs(run.args.help ? gdscp_help : "gdscp version :" GDSCP_VERSION " (OpenGDS)\n",
		      stdout);
		return fflush(stdout) ? GDSCP_FAILED : GDSCP_OK;
	}
	catch_signals();
	run.umask = umask(0);
	umask(run.umask);
	run.terminal = isatty(STDERR_FILENO);
	if (check_target(&run.args) || check_names(&run.args))
		return GDSCP_FAILED;
	for (i = 0; i < run.args.sources && !atomic_load(&stop); i++)
		failed |= copy_file(&run, run.args.src[i]);
	close_slots(&run);
	/* one that came when all was done changes nothing */
	if (atomic_load(&stop) && (failed || i < run.args.sources)) {
		complain("stopped by a signal: %s", strsignal(atomic_load(&stop)));
		end_by(atomic_load(&stop));
	}
	if (fflush(stdout) || ferror(stdout)) {
		complain("standard output: %s", strerror(errno));
		return GDSCP_FAILED;
	}
	if (failed)
		return GDSCP_FAILED;
	return run.args.require_direct && run.not_direct ? GDSCP_NOT_DIRECT : GDSCP_OK;
}
