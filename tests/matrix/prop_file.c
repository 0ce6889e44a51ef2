// SPDX-License-Identifier: MIT
/* prop_file.c - the file of a cell, and the model of what it has. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prop.h"

#define AROUND ((off_t)(8 * KB))

/* -- the model -- */

void model_wrote(struct prop *p, off_t off, const uint8_t *data, size_t n)
{
	/* from the old end to here nothing was written */
	if (off > p->end && !p->device)
		model_hole(p, p->end, off - p->end);
	memcpy(p->m->data + off, data, n);
	memset(p->m->sure + off, 1, n);
	if ((off_t)(off + n) > p->end)
		p->end = off + n;
}

void fresh(struct prop *p, uint8_t *data, size_t n)
{
	t_random_fresh(&p->rnd, data, n);
	if (p->soft)
		t_soft(data, n);
}

void model_hole(struct prop *p, off_t off, size_t n)
{
	memset(p->m->data + off, 0, n);
	memset(p->m->sure + off, 0, n);
}

bool model_sure(const struct prop *p, off_t off, size_t n)
{
	off_t from = off & ~(T_BLOCK - 1L), to = (off + n + T_BLOCK - 1) & ~(T_BLOCK - 1L);

	to = least(to, p->end);
	return from >= to || !memchr(p->m->sure + from, 0, to - from);
}

/* -- opening -- */

static void lacks(struct prop *p, unsigned int op, bool missing, int err)
{
	if (missing == !!(p->lacks & 1u << op))
		return;
	if (missing)
		bad(p, "%s: %s, and --lacks does not name it", op_name(op), strerror(err));
	bad(p, "%s is there, and --lacks names it", op_name(op));
}

static void open_map(struct prop *p)
{
	int prot = PROT_READ | (p->read_only ? 0 : PROT_WRITE);

	p->map = mmap(NULL, LIMIT, prot, MAP_SHARED, p->plain, 0);
	lacks(p, OP_STORE, p->map == MAP_FAILED, errno);
	if (p->map == MAP_FAILED)
		p->map = NULL;
}

void file_open(struct prop *p)
{
	int mode = p->read_only ? O_RDONLY : O_RDWR | O_CREAT;
	bool anew = !p->read_only && !p->made_seed && !p->child;
	struct stat st;

	p->plain = open(p->file, mode | O_CLOEXEC, 0644);
	if (p->plain < 0 || fstat(p->plain, &st))
		t_die("%s: open: %s", p->file, strerror(errno));
	p->device = S_ISBLK(st.st_mode);
	if (anew && !p->device && st.st_size && ftruncate(p->plain, 0))
		t_die("%s: ftruncate to 0: %s", p->file, strerror(errno));
	p->direct = open(p->file, (mode & ~O_CREAT) | O_DIRECT | O_CLOEXEC);
	lacks(p, OP_DIRECT, p->direct < 0, errno);
}

/* Each once, on a file beside: what is lacked is what --lacks names. */
static void try_operations(struct prop *p)
{
	const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	char path[PATH_MAX];
	int fd, r;

	if (p->read_only || p->device)
		return;
	snprintf(path, sizeof(path), "%s.try", p->file);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || pwrite(fd, p->a, 4 * T_BLOCK, 0) != 4 * T_BLOCK)
		t_die("%s: %s", path, strerror(errno));
	r = ftruncate(fd, T_BLOCK + 1) || ftruncate(fd, 4 * T_BLOCK);
	lacks(p, OP_TRUNCATE, r, errno);
	r = fallocate(fd, hole, 0, T_BLOCK);
	lacks(p, OP_PUNCH, r, errno);
	r = fallocate(fd, 0, 0, 8 * T_BLOCK);
	lacks(p, OP_UNWRITTEN, r, errno);
	close(fd);
	unlink(path);
}

/* What is there when the requests begin. */
void file_begin(struct prop *p)
{
	struct stat st;

	open_map(p);
	if (p->child)
		return;
	try_operations(p);
	if (p->made_seed) {
		uint64_t rnd = p->made_seed;

		if (fstat(p->plain, &st) || st.st_size > (off_t)LIMIT)
			t_die("%s: %lld bytes are none that matrix_file made", p->file,
			      (long long)st.st_size);
		p->end = st.st_size;
		t_random_fresh(&rnd, p->m->data, p->end);
		if (p->soft)
			t_soft(p->m->data, p->end);
		memset(p->m->sure, 1, p->end);
		return;
	}
	if (p->device)
		p->start = LIMIT;
	fresh(p, p->a, p->start);
	plain_write(p, 0, p->a, p->start);
	if (fsync(p->plain))
		t_die("%s: fsync: %s", p->file, strerror(errno));
}

/* -- by the page cache -- */

void plain_write(struct prop *p, off_t off, const uint8_t *data, size_t n)
{
	size_t done = 0;
	ssize_t r;

	while (done < n) {
		r = pwrite(p->plain, data + done, n - done, off + done);
		if (r <= 0)
			bad(p, "buffered write of %zu at %lld: %s", n, (long long)off,
			    r ? strerror(errno) : "nothing written");
		done += r;
	}
	model_wrote(p, off, data, n);
}

void fill(struct prop *p, off_t end)
{
	size_t n;

	while (p->end < end) {
		n = least(end - p->end, LIMIT);
		fresh(p, p->a, n);
		plain_write(p, p->end, p->a, n);
	}
}

/* -- comparing -- */

static void differ(const struct prop *p, off_t from, const uint8_t *got, const uint8_t *want,
		   size_t n, const char *by)
{
	size_t i, last;

	if (!memcmp(got, want, n))
		return;
	for (i = 0; got[i] == want[i]; i++)
		;
	for (last = n; got[last - 1] == want[last - 1]; last--)
		;
	bad(p, "the file, %s: byte %lld is %02x, expected %02x (the last wrong one is %lld)", by,
	    (long long)from + i, got[i], want[i], (long long)from + last - 1);
}

static void compare(struct prop *p, int fd, off_t from, off_t to, const char *by)
{
	ssize_t r;
	size_t n;

	for (; from < to; from += n) {
		n = least(to - from, LIMIT);
		/* whole blocks, for O_DIRECT */
		r = pread(fd, p->b, (n + T_BLOCK - 1) & ~(T_BLOCK - 1UL), from);
		if (r < (ssize_t)n)
			bad(p, "the file, %s: read of %zu at %lld: %zd: %s", by, n, (long long)from,
			    r, r < 0 ? strerror(errno) : "short");
		differ(p, from, p->b, p->m->data + from, n, by);
	}
}

static void check_size(const struct prop *p)
{
	struct stat st;

	if (fstat(p->plain, &st))
		bad(p, "fstat: %s", strerror(errno));
	if (!p->device && st.st_size != p->end)
		bad(p, "the file has %lld bytes, expected %lld", (long long)st.st_size,
		    (long long)p->end);
}

void file_check(struct prop *p, off_t from, off_t to)
{
	bool direct = p->direct >= 0 && below(p, 2);

	check_size(p);
	from = from > AROUND ? (from - AROUND) & ~(T_BLOCK - 1L) : 0;
	to = least(to + AROUND, p->end);
	if (p->to) {	/* the other process has the rest */
		from = from > p->from ? from : p->from;
		to = least(to, p->to);
	}
	compare(p, direct ? p->direct : p->plain, from, to, direct ? "by O_DIRECT" : "as cached");
}

void file_check_cold(struct prop *p)
{
	if (p->map && munmap(p->map, LIMIT))
		bad(p, "munmap: %s", strerror(errno));
	p->map = NULL;
	if (!p->read_only && fsync(p->plain))
		bad(p, "fsync: %s", strerror(errno));
	if (p->device && ioctl(p->plain, BLKFLSBUF))
		bad(p, "BLKFLSBUF: %s", strerror(errno));
	posix_fadvise(p->plain, 0, 0, POSIX_FADV_DONTNEED);
	check_size(p);
	compare(p, p->plain, 0, p->end, "read again");
}

void file_keep(const struct prop *p, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(p->m->data, 1, p->end, f) != (size_t)p->end || fclose(f))
		t_die("%s: %s", path, strerror(errno));
}
