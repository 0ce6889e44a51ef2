// SPDX-License-Identifier: MIT
/*
 * fuse.c - matrix_fuse: a FUSE server on /dev/fuse, without a library: the files of one folder.
 *
 *   matrix_fuse [--direct-io | --passthrough] MOUNTPOINT FOLDER
 *
 * It mounts, goes into the background, and ends when it is unmounted. --direct-io: files are
 * opened such that the kernel keeps nothing of them (FOPEN_DIRECT_IO). --passthrough: reads and
 * writes go to the file below in the kernel (Linux 6.9 and later). Exit status 77 when this kernel
 * has no passthrough.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "t_gpu.h"

/* Of protocol 7.40, which the headers of Debian 12 do not have. */
#define INIT_PASSTHROUGH2 (1u << 5)	/* of flags2 */
#define OPEN_PASSTHROUGH (1u << 7)
struct backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

#define MAX_WRITE (256 * 1024)
#define NODES 256

/* A file that the kernel knows; its number is the index plus 2. Names stay until the end. */
struct node {
	char name[256];
	unsigned int opens;
	int32_t backing;	/* of all opens: the kernel wants one for an inode */
};

static struct {
	int dev, dir;
	bool direct_io, passthrough;
	struct node node[NODES];
	char in[MAX_WRITE + 4096], out[MAX_WRITE + 4096];
} fs;

static void reply(uint64_t unique, int err, const void *data, size_t n)
{
	size_t len = err ? 0 : n;
	struct fuse_out_header h = { .unique = unique, .error = err, .len = sizeof(h) + len };
	struct iovec v[2] = { { &h, sizeof(h) }, { (void *)(uintptr_t)data, len } };

	/* ENOENT: the request was interrupted and nobody waits for it */
	if (writev(fs.dev, v, 2) < 0 && errno != ENOENT)
		t_die("/dev/fuse: write: %s", strerror(errno));
}

static struct node *node_of(uint64_t id)
{
	return id >= 2 && id < NODES + 2 && fs.node[id - 2].name[0] ? &fs.node[id - 2] : NULL;
}

static uint64_t id_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < NODES && fs.node[i].name[0]; i++)
		if (!strcmp(fs.node[i].name, name))
			return i + 2;
	if (i == NODES || strlen(name) >= sizeof(fs.node[i].name))
		return 0;
	strcpy(fs.node[i].name, name);
	return i + 2;
}

static int attr_of(uint64_t id, struct fuse_attr *a)
{
	const struct node *n = node_of(id);
	struct stat st;

	if (n ? fstatat(fs.dir, n->name, &st, AT_SYMLINK_NOFOLLOW) : fstat(fs.dir, &st))
		return -errno;
	memset(a, 0, sizeof(*a));
	a->ino = id;
	a->size = st.st_size;
	a->blocks = st.st_blocks;
	a->mode = st.st_mode;
	a->nlink = st.st_nlink;
	a->blksize = 4096;
	a->mtime = st.st_mtim.tv_sec;
	a->mtimensec = st.st_mtim.tv_nsec;
	return 0;
}

static int entry(const char *name, struct fuse_entry_out *e)
{
	memset(e, 0, sizeof(*e));
	e->nodeid = id_of(name);
	e->attr_valid = e->entry_valid = 1;
	if (!e->nodeid)
		return -ENOSPC;
	return attr_of(e->nodeid, &e->attr);
}

static int open_node(uint64_t id, uint32_t flags, uint32_t mode, struct fuse_open_out *o)
{
	struct node *n = node_of(id);
	int fd;

	memset(o, 0, sizeof(*o));
	if (!n)
		return -ENOENT;
	/* the server's own way to the file is the page cache, whatever the caller's is */
	flags &= O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC;
	/* the kernel reads around what is written in part */
	if ((flags & O_ACCMODE) == O_WRONLY)
		flags = (flags & ~O_ACCMODE) | O_RDWR;
	fd = openat(fs.dir, n->name, flags | O_CLOEXEC, mode & 07777);
	if (fd < 0)
		return -errno;
	if (fs.passthrough) {
		if (!n->opens) {
			struct backing_map m = { .fd = fd };

			n->backing = ioctl(fs.dev, BACKING_OPEN, &m);
		}
		if (n->backing <= 0) {
			close(fd);
			return -EIO;
		}
		o->open_flags |= OPEN_PASSTHROUGH;
		o->padding = n->backing;
	} else if (fs.direct_io) {
		o->open_flags |= FOPEN_DIRECT_IO;
	}
	n->opens++;
	o->fh = fd;
	return 0;
}

static void release(uint64_t id, const struct fuse_release_in *r)
{
	struct node *n = node_of(id);

	close(r->fh);
	if (n && !--n->opens && fs.passthrough)
		ioctl(fs.dev, BACKING_CLOSE, &n->backing);
}

static int set_attr(uint64_t id, const struct fuse_setattr_in *s, struct fuse_attr_out *out)
{
	const struct node *n = node_of(id);
	int fd, r = 0;

	if (s->valid & FATTR_SIZE) {
		fd = s->valid & FATTR_FH ? (int)s->fh :
		     n ? openat(fs.dir, n->name, O_RDWR | O_CLOEXEC) : -1;
		if (fd < 0)
			return -EINVAL;
		r = ftruncate(fd, s->size) ? -errno : 0;
		if (!(s->valid & FATTR_FH))
			close(fd);
	}
	memset(out, 0, sizeof(*out));
	out->attr_valid = 1;
	return r ? r : attr_of(id, &out->attr);
}

static void init(uint64_t unique, const struct fuse_init_in *in)
{
	struct fuse_init_out o = {
		.major = FUSE_KERNEL_VERSION, .minor = in->minor < 40 ? in->minor : 40,
		.max_readahead = in->max_readahead, .max_write = MAX_WRITE,
		.max_pages = MAX_WRITE / 4096, .max_background = 16, .time_gran = 1,
	};

	o.flags = in->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_INIT_EXT);
	if (fs.passthrough) {
		if (!(in->flags & FUSE_INIT_EXT) || !(in->flags2 & INIT_PASSTHROUGH2))
			exit(77);
		o.flags2 = INIT_PASSTHROUGH2;
		o.unused[0] = 1;	/* max_stack_depth */
	}
	reply(unique, 0, &o, sizeof(o));
}

/* What answers with a number alone, or with data that are in fs.out. */
static int serve(const struct fuse_in_header *h, const char *arg, size_t *n)
{
	union {
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
		struct fuse_write_out write;
		struct fuse_statfs_out statfs;
		struct {
			struct fuse_entry_out entry;
			struct fuse_open_out open;
		} create;
	} *o = (void *)fs.out;
	const struct fuse_create_in *c = (const void *)arg;
	const struct fuse_read_in *rd = (const void *)arg;
	const struct fuse_write_in *wr = (const void *)arg;
	const struct fuse_fallocate_in *fa = (const void *)arg;
	const struct fuse_open_in *op = (const void *)arg;
	ssize_t r;

	*n = 0;
	switch (h->opcode) {
	case FUSE_LOOKUP:
		*n = sizeof(o->entry);
		return entry(arg, &o->entry);
	case FUSE_GETATTR:
		*n = sizeof(o->attr);
		memset(&o->attr, 0, sizeof(o->attr));
		return attr_of(h->nodeid, &o->attr.attr);
	case FUSE_SETATTR:
		*n = sizeof(o->attr);
		return set_attr(h->nodeid, (const void *)arg, &o->attr);
	case FUSE_OPEN:
		*n = sizeof(o->open);
		return open_node(h->nodeid, op->flags, 0, &o->open);
	case FUSE_CREATE:
		*n = sizeof(o->create);
		if (!id_of(arg + sizeof(*c)))
			return -ENOSPC;
		r = open_node(id_of(arg + sizeof(*c)), c->flags | O_CREAT, c->mode,
			      &o->create.open);
		return r ? r : entry(arg + sizeof(*c), &o->create.entry);
	case FUSE_READ:
		r = pread(rd->fh, fs.out, rd->size, rd->offset);
		*n = r > 0 ? r : 0;
		return r < 0 ? -errno : 0;
	case FUSE_WRITE:
		r = pwrite(wr->fh, arg + sizeof(*wr), wr->size, wr->offset);
		memset(&o->write, 0, sizeof(o->write));
		o->write.size = r > 0 ? r : 0;
		*n = sizeof(o->write);
		return r < 0 ? -errno : 0;
	case FUSE_FALLOCATE:
		return fallocate(fa->fh, fa->mode, fa->offset, fa->length) ? -errno : 0;
	case FUSE_FSYNC:
		return fsync(((const struct fuse_fsync_in *)arg)->fh) ? -errno : 0;
	case FUSE_FLUSH:
		return 0;
	case FUSE_RELEASE:
		release(h->nodeid, (const void *)arg);
		return 0;
	case FUSE_UNLINK:
		return unlinkat(fs.dir, arg, 0) ? -errno : 0;
	case FUSE_STATFS:
		memset(&o->statfs, 0, sizeof(o->statfs));
		o->statfs.st.bsize = o->statfs.st.frsize = 4096;
		o->statfs.st.namelen = 255;
		*n = sizeof(o->statfs);
		return 0;
	}
	return -ENOSYS;
}

static void loop(void)
{
	const struct fuse_in_header *h = (const void *)fs.in;
	const char *arg = fs.in + sizeof(*h);
	ssize_t got;
	size_t n;
	int err;

	for (;;) {
		got = read(fs.dev, fs.in, sizeof(fs.in));
		if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
			continue;
		if (got < 0 && errno == ENODEV)	/* unmounted */
			return;
		if (got < (ssize_t)sizeof(*h))
			t_die("/dev/fuse: read: %s", got < 0 ? strerror(errno) : "short");
		switch (h->opcode) {
		case FUSE_INIT:
			init(h->unique, (const void *)arg);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			err = serve(h, arg, &n);
			reply(h->unique, err, fs.out, n);
		}
	}
}

int main(int argc, char **argv)
{
	char opts[128];
	struct stat st;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--direct-io"))
			fs.direct_io = true;
		else if (!strcmp(argv[i], "--passthrough"))
			fs.passthrough = true;
		else
			argc = 0;
	}
	if (argc != i + 2)
		t_die("[--direct-io | --passthrough] MOUNTPOINT FOLDER");
	fs.dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fs.dev < 0)
		t_die("/dev/fuse: %s: is the module fuse loaded?", strerror(errno));
	fs.dir = open(argv[i + 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fs.dir < 0 || fstat(fs.dir, &st))
		t_die("%s: %s", argv[i + 1], strerror(errno));
	snprintf(opts, sizeof(opts), "fd=%d,rootmode=%o,user_id=0,group_id=0", fs.dev,
		 st.st_mode & S_IFMT);
	if (mount("matrix_fuse", argv[i], "fuse", 0, opts))
		t_die("mount on %s: %s", argv[i], strerror(errno));
	/* what the kernel asks first tells whether it has what is wanted */
	if (read(fs.dev, fs.in, sizeof(fs.in)) < (ssize_t)sizeof(struct fuse_in_header))
		t_die("/dev/fuse: the first request: %s", strerror(errno));
	init(((struct fuse_in_header *)fs.in)->unique,
	     (const void *)(fs.in + sizeof(struct fuse_in_header)));
	if (daemon(1, 1))
		t_die("daemon: %s", strerror(errno));
	loop();
	return 0;
}
