// SPDX-License-Identifier: MIT
/* file.c - cuFileHandle*: registered files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LOG_MODULE "cufio-fs"
#include "driver.h"
#include "errmap.h"
#include "file.h"
#include "file_facts.h"
#include "fs_cache.h"
#include "handles.h"
#include "log.h"
#include "opengds.h"
#include "os.h"
#include "stats.h"
#include "user_fs.h"

static void hold(void *object)
{
	atomic_fetch_add(&((struct file *)object)->refs, 1);
}

/* Never the last reference. */
static void unhold(void *object)
{
	atomic_fetch_sub(&((struct file *)object)->refs, 1);
}

static struct handles files = HANDLES_INIT(hold);

struct file *file_get(CUfileHandle_t fh)
{
	return handles_get(&files, fh);
}

static void close_own(struct file *f)
{
	int i, fd;

	if (f->fd_direct >= 0)
		os->close(f->fd_direct);
	if (f->fd_cached >= 0)
		os->close(f->fd_cached);
	f->fd_direct = f->fd_cached = -1;
	for (i = 0; i < FILE_MORE; i++) {
		fd = atomic_exchange(&f->fd_more[i], 0);
		if (fd > 0)
			os->close(fd - 1);
	}
}

void file_put(struct file *f)
{
	if (atomic_fetch_sub(&f->refs, 1) != 1)
		return;
	close_own(f);
	stats_file_gone(f);
	pthread_mutex_destroy(&f->sum_lock);
	if (f->user)
		user_fs_free(f->user);
	free(f);
}

struct file *file_borrow(CUfileHandle_t fh)
{
	return handles_borrow(&files, fh, BORROW_FILE);
}

void file_return(struct file *f)
{
	if (!borrow_back(BORROW_FILE, f))
		file_put(f);
}

/*
 * The caller's descriptor may be registered once: the file by its number. lock guards it; a
 * file is in it from before it has a handle until it has none any more.
 */
static struct {
	pthread_mutex_t lock;
	struct file **file;
	unsigned int n;
} by_fd = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* by_fd.lock held */
static int make_room(unsigned int fd)
{
	unsigned int n = by_fd.n ? by_fd.n : 64;
	struct file **p;

	while (n <= fd)
		n *= 2;
	if (n == by_fd.n)
		return 0;
	p = realloc(by_fd.file, n * sizeof(*p));
	if (!p)
		return -ENOMEM;
	memset(p + by_fd.n, 0, (n - by_fd.n) * sizeof(*p));
	by_fd.file = p;
	by_fd.n = n;
	return 0;
}

static int claim_fd(struct file *f)
{
	struct file *g;
	int r;

	pthread_mutex_lock(&by_fd.lock);
	r = make_room(f->user_fd);
	g = r ? NULL : by_fd.file[f->user_fd];
	/* a number that was closed and names another file now is not the same */
	if (g && g->st.st_dev == f->st.st_dev && g->st.st_ino == f->st.st_ino)
		r = ERR(HANDLE_ALREADY_REGISTERED);
	if (!r)
		by_fd.file[f->user_fd] = f;
	pthread_mutex_unlock(&by_fd.lock);
	return r;
}

static void drop_fd(const struct file *f)
{
	pthread_mutex_lock(&by_fd.lock);
	if ((unsigned int)f->user_fd < by_fd.n && by_fd.file[f->user_fd] == f)
		by_fd.file[f->user_fd] = NULL;
	pthread_mutex_unlock(&by_fd.lock);
}

void files_release(void)
{
	struct file *f;

	while ((f = handles_drain(&files)))
		file_put(f);
	free(by_fd.file);
	by_fd.file = NULL;
	by_fd.n = 0;
	fs_cache_release();
}

/* -- registration -- */

static int check_flags(const struct file *f)
{
	static const struct {
		int flag;
		const char *name;
	} bad[] = {
		{ O_APPEND, "O_APPEND" },
		{ O_NONBLOCK, "O_NONBLOCK" },
		{ O_NOFOLLOW, "O_NOFOLLOW" },
		{ O_DIRECTORY, "O_DIRECTORY" },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (f->flags & bad[i].flag) {
			log_error("cuFileHandleRegister: %s is open with %s: open it without",
				  f->name, bad[i].name);
			return ERR(INVALID_FILE_OPEN_FLAG);
		}
	if (f->flags & O_PATH) {
		log_error("cuFileHandleRegister: %s is open with O_PATH: open it for reading or writing",
			  f->name);
		return ERR(INVALID_VALUE);
	}
	return 0;
}

/* No descriptor is left. One that is missing for that reason would look like no O_DIRECT. */
static int no_descriptor(struct file *f, int err)
{
	struct rlimit limit = { 0 };

	/* the log may need one */
	close_own(f);
	getrlimit(RLIMIT_NOFILE, &limit);
	log_error("cuFileHandleRegister: %s: a handle needs two descriptors of its own: %s: %s (%llu a process now), or deregister handles",
		  f->name, log_errno(err),
		  err == -EMFILE ? "raise the limit of open files, ulimit -n" :
				   "raise the limit of the machine, sysctl fs.file-max",
		  (unsigned long long)limit.rlim_cur);
	return ERR(GETNEWFD_FAILED);
}

/*
 * Descriptors of our own, with and without O_DIRECT. /proc/self/fd opens the same inode,
 * deleted or not. Where it does not (no /proc, no permission), a duplicate of the
 * caller's serves for the kind that it has.
 */
static int open_own(struct file *f)
{
	int mode = f->flags & (O_ACCMODE | O_SYNC | O_DSYNC), had = f->flags & O_DIRECT, r;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->user_fd);
	f->fd_cached = os->open(path, mode);
	f->fd_direct = os->open(path, mode | O_DIRECT);
	r = f->fd_cached < 0 ? f->fd_cached : f->fd_direct;
	if (r == -EMFILE || r == -ENFILE)
		return no_descriptor(f, r);
	if (had ? f->fd_direct < 0 : f->fd_cached < 0) {
		r = os->dup(f->user_fd);
		if (r < 0)
			return no_descriptor(f, r);
		if (had)
			f->fd_direct = r;
		else
			f->fd_cached = r;
	}
	if (f->fd_cached < 0)
		f->fd_cached = -1;
	if (f->fd_direct < 0)
		f->fd_direct = -1;
	return 0;
}

static int look(struct file *f)
{
	char link[64];
	ssize_t n;
	int r;

	snprintf(f->name, sizeof(f->name), "fd %d", f->user_fd);
	r = os->getfl(f->user_fd);
	if (r < 0) {
		log_error("cuFileHandleRegister: fd %d: %s: give a descriptor that is open",
			  f->user_fd, log_errno(r));
		return ERR(INVALID_VALUE);
	}
	f->flags = r;
	r = os->fstat(f->user_fd, &f->st);
	if (r)
		return r;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", f->user_fd);
	n = readlink(link, f->name, sizeof(f->name) - 1);
	if (n > 0)
		f->name[n] = '\0';
	r = check_flags(f);
	if (!r && !S_ISREG(f->st.st_mode) && !S_ISBLK(f->st.st_mode)) {
		log_error("cuFileHandleRegister: %s is neither a regular file nor a block device: unsupported file type; pass a descriptor of one of these",
			  f->name);
		return ERR(INVALID_FILE_TYPE);
	}
	return r;
}

/* What the facts say about it, and whether that is an error. */
static int judge(struct file *f)
{
	const struct config *c = driver_config();
	const struct facts_reason_text *t;
	unsigned int why;

	f->may_ring = file_may_ring(f);
	f->reason = f->user ? REASON_USER_FS : file_facts(f, false);
	f->pages_reason = f->reason == REASON_STACKED ? file_facts(f, true) : f->reason;
	why = c->routes & 1u << OGDS_ROUTE_P2PDMA ? f->pages_reason : f->reason;
	why = c->force_compat ? REASON_FORCE_COMPAT : why ? why : nvfs_reason();
	if (why == REASON_NONE)
		return 0;
	t = facts_reason(why);
	if (!c->allow_compat && !c->force_compat) {
		log_error("cuFileHandleRegister error: GPUDirect Storage not supported on current file %s: %s: %s, and allow_compat_mode is false; %s",
			  f->name, t->id, t->text, t->remedy);
		return ERR(IO_NOT_SUPPORTED);
	}
	log_notice("cuFileHandleRegister GDS not supported or disabled by config, using cuFile posix read/write with compat mode enabled: %s: %s: %s; %s",
		   f->name, t->id, t->text, t->remedy);
	return 0;
}

static struct file *file_new(int user_fd)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	atomic_init(&f->refs, 1);
	pthread_mutex_init(&f->sum_lock, NULL);
	f->user_fd = user_fd;
	f->fd_direct = f->fd_cached = f->nvfs.fd = -1;
	return f;
}

static int register_fd(CUfileHandle_t *fh, int fd)
{
	struct file *f = file_new(fd);
	dev_t dev;
	int r;

	if (!f)
		return -ENOMEM;
	r = look(f);
	if (!r)
		r = open_own(f);
	if (!r)
		r = judge(f);
	if (r)
		goto fail;
	dev = S_ISBLK(f->st.st_mode) ? f->st.st_rdev : f->st.st_dev;
	f->nvfs.fd = f->fd_direct;
	f->nvfs.inum = f->st.st_ino;
	f->nvfs.major = major(dev);
	f->nvfs.minor = minor(dev);
	atomic_init(&f->strict, driver_config()->strict);
	r = claim_fd(f);
	if (!r) {
		r = handles_put_in(&files, f, fh);
		if (r)
			drop_fd(f);
	}
	if (r) {
		log_error("cuFileHandleRegister: %s (fd %d): %s: deregister its handle first",
			  f->name, fd, errmap_text(r));
		goto fail;
	}
	return 0;
fail:
	file_put(f);
	return r;
}

/* One cookie may be registered several times: what it stands for is the file system's matter. */
static int register_user(CUfileHandle_t *fh, const CUfileDescr_t *descr)
{
	struct file *f;
	int r;

	if (!descr->fs_ops) {
		log_error("cuFileHandleRegister: a user-space file system and fs_ops is NULL: GPUDirect Storage not supported on current file; pass its table of functions");
		return ERR(IO_NOT_SUPPORTED);
	}
	f = file_new(-1);
	if (!f)
		return -ENOMEM;
	f->flags = O_RDWR;
	r = user_fs_new(descr->fs_ops, descr->handle.handle, &f->user, f->name, sizeof(f->name));
	if (!r)
		r = judge(f);
	atomic_init(&f->strict, driver_config()->strict);
	if (!r)
		r = handles_put_in(&files, f, fh);
	if (r)
		file_put(f);
	return r;
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr)
{
	int r;

	r = driver_enter();
	if (r)
		return errmap_status(r);
	if (!fh || !descr) {
		log_error("cuFileHandleRegister: the %s is NULL: pass the address of one",
			  fh ? "descriptor" : "handle");
		r = ERR(INVALID_VALUE);
	} else if (descr->type == CU_FILE_HANDLE_TYPE_OPAQUE_FD) {
		r = register_fd(fh, descr->handle.fd);
	} else if (descr->type == CU_FILE_HANDLE_TYPE_USERSPACE_FS) {
		r = register_user(fh, descr);
	} else {
		log_error("cuFileHandleRegister: handle type %d: GPUDirect Storage not supported on current file; use CU_FILE_HANDLE_TYPE_OPAQUE_FD or CU_FILE_HANDLE_TYPE_USERSPACE_FS",
			  descr->type);
		r = ERR(IO_NOT_SUPPORTED);
	}
	stats_count(STATS_HANDLE_REGISTER, !r);
	driver_leave();
	return errmap_status(r);
}

void cuFileHandleDeregister(CUfileHandle_t fh)
{
	struct file *f;

	if (driver_enter_open(-1, -1))
		return;
	f = handles_take_out(&files, fh);
	stats_count(STATS_HANDLE_DEREGISTER, f);
	if (f) {
		borrow_collect(BORROW_FILE, f, hold, unhold);
		drop_fd(f);
		/* what is behind the handle may be gone once this has returned */
		if (f->user)
			user_fs_leave(f->user);
		file_put(f);
	} else {
		log_error("cuFileHandleDeregister: %p is no registered handle: deregister each once",
			  fh);
	}
	driver_leave();
}

int ogds_handle_set_strict(CUfileHandle_t fh, bool strict)
{
	struct file *f;
	int r = -EINVAL;

	if (driver_enter_open(-1, -1))
		return -EINVAL;
	f = file_get(fh);
	if (f) {
		atomic_store(&f->strict, strict);
		file_put(f);
		r = 0;
	}
	driver_leave();
	return r;
}

bool file_say_once(struct file *f, unsigned int reason)
{
	uint64_t bit = 1ULL << (reason & 63);

	return !(atomic_fetch_or(&f->said, bit) & bit);
}
