// SPDX-License-Identifier: MIT
/* target.c - temporary names, and what is right to be put in the place of what. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "sys.h"
#include "target.h"

#define MARK ".gdscp-"
#define RANDOM 6	/* characters behind it */
#define TRIES 100

static const struct gdscp_sys real_sys = { ftruncate, fallocate, fsync, renameat2 };
const struct gdscp_sys *gdscp_sys = &real_sys;

/* For the handler: the name is there before dir is not -1. */
static struct {
	atomic_int dir;
	char name[NAME_MAX + 1];
} now = { .dir = -1 };

static int __attribute__((format(printf, 3, 4))) explain(char why[TARGET_WHY], int err,
							 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, TARGET_WHY, fmt, ap);
	va_end(ap);
	return err;
}

/* -- where -- */

const char *target_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A path that is in `out` as DIR/NAME of the source, without the slashes at the ends of both. */
static int join(const char *dir, const char *src, char out[PATH_MAX])
{
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (snprintf(out, PATH_MAX, "%.*s/%s", (int)len, dir, target_base_name(src)) >= PATH_MAX)
		return -ENAMETOOLONG;
	return 0;
}

/* What a link leads to, so that the link stays and its file is replaced. */
static int through_link(struct target *t, char why[TARGET_WHY])
{
	struct stat st;
	char *real;
	size_t len;

	if (lstat(t->path, &st) || !S_ISLNK(st.st_mode))
		return 0;
	real = realpath(t->path, NULL);
	if (!real)
		return explain(why, -errno,
			       "%s is a symbolic link that leads nowhere (%s): remove it, or name its file",
			       t->path, strerror(errno));
	len = strlen(real);
	if (len >= sizeof(t->path)) {
		free(real);
		return explain(why, -ENAMETOOLONG, "%s: %s", t->path, strerror(ENAMETOOLONG));
	}
	memcpy(t->path, real, len + 1);
	free(real);
	return 0;
}

static int open_folder(struct target *t, char why[TARGET_WHY])
{
	const char *name = target_base_name(t->path);
	size_t len = name - t->path;
	char dir[PATH_MAX];

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return explain(why, -EISDIR, "%s: no such folder, and no name of a file", t->path);
	if (strlen(name) > NAME_MAX)
		return explain(why, -ENAMETOOLONG, "%s: %s", t->path, strerror(ENAMETOOLONG));
	memcpy(t->name, name, strlen(name) + 1);
	snprintf(dir, sizeof(dir), "%.*s", len ? (int)len : 1, len ? t->path : ".");
	t->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir < 0)
		return explain(why, -errno, "folder %s: %s: make it, or name another", dir,
			       strerror(errno));
	return 0;
}

int target_find(struct target *t, const char *src, const struct stat *src_st, const char *dst,
		bool force, char why[TARGET_WHY])
{
	struct stat st;
	int r;

	*t = (struct target){ .dir = -1, .fd = -1 };
	if (!stat(dst, &st) && S_ISDIR(st.st_mode))
		r = join(dst, src, t->path);
	else
		r = snprintf(t->path, sizeof(t->path), "%s", dst) >= (int)sizeof(t->path) ?
			    -ENAMETOOLONG : 0;
	if (r)
		return explain(why, r, "%s: %s", dst, strerror(-r));
	r = through_link(t, why);
	if (!r)
		r = open_folder(t, why);
	if (r)
		return r;
	if (fstatat(t->dir, t->name, &t->old, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			return explain(why, -errno, "%s: %s", t->path, strerror(errno));
		return 0;
	}
	t->exists = true;
	if (t->old.st_dev == src_st->st_dev && t->old.st_ino == src_st->st_ino)
		return explain(why, -EINVAL, "%s and %s are the same file", src, t->path);
	if (S_ISDIR(t->old.st_mode))
		return explain(why, -EISDIR, "%s is a folder: a file does not replace it", t->path);
	if (!S_ISREG(t->old.st_mode))
		return explain(why, -EINVAL, "%s is no regular file: only such a one is replaced",
			       t->path);
	if (!force)
		return explain(why, -EEXIST, "%s exists: give -f to replace it", t->path);
	return 0;
}

/* -- the temporary file -- */

static void make_name(struct target *t)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	const size_t room = NAME_MAX - 1 - strlen(MARK) - RANDOM;
	unsigned char r[RANDOM];
	char tail[RANDOM + 1];
	unsigned int i;

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		memset(r, 0, sizeof(r));
	for (i = 0; i < RANDOM; i++)
		tail[i] = letters[r[i] % (sizeof(letters) - 1)];
	tail[RANDOM] = '\0';
	snprintf(t->temporary, sizeof(t->temporary), ".%.*s" MARK "%s", (int)room, t->name, tail);
}

static bool is_temporary(const char *name)
{
	size_t len = strlen(name), i;

	if (name[0] != '.' || len <= strlen(MARK) + RANDOM + 1)
		return false;
	for (i = len - RANDOM; i < len; i++)
		if (!isdigit((unsigned char)name[i]) && !islower((unsigned char)name[i]))
			return false;
	return !strncmp(name + len - RANDOM - strlen(MARK), MARK, strlen(MARK));
}

/*
 * Locked, and there still: who sweeps may have had the lock first, and have removed it. A file
 * system without such locks has none that sweep, either.
 */
static bool hold(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return false;
	return !fstat(fd, &st) && st.st_nlink;
}

static int open_new(struct target *t)
{
	static const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = openat(t->dir, t->temporary, flags | O_DIRECT, 0600);

	if (fd < 0 && errno == EINVAL)
		fd = openat(t->dir, t->temporary, flags, 0600);
	/* some file systems make it first and refuse O_DIRECT then */
	if (fd < 0 && errno == EEXIST && !unlinkat(t->dir, t->temporary, 0))
		fd = openat(t->dir, t->temporary, flags, 0600);
	return fd;
}

int target_create(struct target *t, char why[TARGET_WHY])
{
	unsigned int i;

	for (i = 0; i < TRIES; i++) {
		make_name(t);
		if (!faccessat(t->dir, t->temporary, F_OK, AT_SYMLINK_NOFOLLOW))
			continue;
		memcpy(now.name, t->temporary, sizeof(now.name));
		atomic_store(&now.dir, t->dir);
		t->fd = open_new(t);
		if (t->fd >= 0 && hold(t->fd))
			return 0;
		atomic_store(&now.dir, -1);
		if (t->fd < 0 && errno != EEXIST)
			break;
		if (t->fd >= 0)
			close(t->fd);
		t->fd = -1;
	}
	i = errno;
	t->temporary[0] = '\0';
	return explain(why, -(int)i, "a file in the folder of %s: %s", t->path, strerror(i));
}

/* -- the end -- */

/* What cannot be kept is given up as cp does: owner and group, and with them set-id bits. */
static int set_mode(const struct target *t, const struct stat *src, mode_t mask, bool preserve)
{
	mode_t mode = src->st_mode & 0777 & ~mask;
	struct timespec times[2] = { src->st_atim, src->st_mtim };

	if (t->exists)
		mode = t->old.st_mode & 0777;
	if (preserve) {
		mode = src->st_mode & 07777;
		if (fchown(t->fd, src->st_uid, src->st_gid))
			mode &= 0777;
	}
	if (fchmod(t->fd, mode))
		return -errno;
	return preserve && futimens(t->fd, times) ? -errno : 0;
}

/* Under its name; where one is there by now and may not be replaced, -EEXIST. */
static int put_in_place(struct target *t, bool force)
{
	if (!gdscp_sys->renameat2(t->dir, t->temporary, t->dir, t->name,
				  force ? 0 : RENAME_NOREPLACE))
		return 0;
	if (force || errno != EINVAL)
		return -errno;
	/* a file system without RENAME_NOREPLACE: a second name does not replace, either */
	if (linkat(t->dir, t->temporary, t->dir, t->name, 0))
		return -errno;
	unlinkat(t->dir, t->temporary, 0);
	return 0;
}

int target_finish(struct target *t, const struct stat *src, mode_t mask, bool preserve, bool force,
		  char why[TARGET_WHY])
{
	int r = set_mode(t, src, mask, preserve);

	if (r)
		return explain(why, r, "mode and times of %s: %s", t->path, strerror(-r));
	if (gdscp_sys->fsync(t->fd))
		return explain(why, -errno, "%s: fsync: %s", t->path, strerror(errno));
	r = put_in_place(t, force);
	if (r == -EEXIST)
		return explain(why, r, "%s has come meanwhile: give -f to replace it", t->path);
	if (r)
		return explain(why, r, "%s: rename: %s", t->path, strerror(-r));
	t->temporary[0] = '\0';
	atomic_store(&now.dir, -1);
	if (gdscp_sys->fsync(t->dir))
		return explain(why, -errno,
			       "the folder of %s: fsync: %s: the file is complete, but may be gone after a loss of power",
			       t->path, strerror(errno));
	return 0;
}

void target_close(struct target *t)
{
	if (t->temporary[0])
		unlinkat(t->dir, t->temporary, 0);
	t->temporary[0] = '\0';
	atomic_store(&now.dir, -1);
	if (t->fd >= 0)
		close(t->fd);
	if (t->dir >= 0)
		close(t->dir);
	t->fd = t->dir = -1;
}

void target_drop_now(void)
{
	int dir = atomic_load(&now.dir);

	if (dir >= 0)
		unlinkat(dir, now.name, 0);
}

/* -- what others left -- */

static bool is_dead(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	bool dead;

	if (fd < 0)
		return false;
	dead = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       st.st_nlink == 1 && !flock(fd, LOCK_EX | LOCK_NB);
	/* with the lock, so that who has just made it sees that it is gone */
	if (dead)
		dead = !unlinkat(dir, name, 0);
	close(fd);
	return dead;
}

void target_sweep(const struct target *t, void (*said)(const char *dir, const char *name))
{
	static dev_t dev;
	static ino_t ino;
	struct dirent *d;
	struct stat st;
	DIR *dir;
	int fd;

	if (fstat(t->dir, &st) || (st.st_dev == dev && st.st_ino == ino))
		return;
	dev = st.st_dev;
	ino = st.st_ino;
	fd = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((d = readdir(dir)))
		if (is_temporary(d->d_name) && is_dead(t->dir, d->d_name))
			said(t->path, d->d_name);
	closedir(dir);
}
