// SPDX-License-Identifier: MIT
/*
 * nvfs_fuzz_refused.c - requests with just one thing wrong, so that each check of READ and
 * WRITE is reached, also those that chance would hardly find. The code must be the right one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nvfs_fuzz.h"

/* names as in tests/fuzz/checks, in the order of the checks */
enum refusal {
	NEGATIVE_OFFSET, OFFSET_IN_BLOCK, SIZE_IN_BLOCK, RANGE_OVERFLOW, NO_FILE, DIRECTORY,
	NO_FILE_KIND, NOT_FOR_READING, NOT_FOR_WRITING, CANNOT_READ, CANNOT_WRITE, NO_INUM,
	NO_MAJDEV, STALE_INUM, STALE_MAJOR, STALE_MINOR, STALE_GENERATION, NO_MAPPING, NOT_READY,
	NOT_DIRECT, APPEND, NO_FENCE_VALUE, MORE_THAN_BUFFER, PAST_BUFFER, GPU_IN_BLOCK,
	LEAVES_GPU_PAGE, REFUSALS,
};

static const struct {
	const char *name;
	char way;		/* r, w, or - for both */
	int code;
} refusals[REFUSALS] = {
	[NEGATIVE_OFFSET] = { "negative_offset", '-', -EINVAL },
	[OFFSET_IN_BLOCK] = { "offset_in_block", '-', -EINVAL },
	[SIZE_IN_BLOCK] = { "size_in_block", '-', -EINVAL },
	[RANGE_OVERFLOW] = { "range_overflow", '-', -EINVAL },
	[NO_FILE] = { "no_file", '-', -EINVAL },
	[DIRECTORY] = { "directory", '-', -EISDIR },
	[NO_FILE_KIND] = { "no_file_kind", '-', -EINVAL },
	[NOT_FOR_READING] = { "not_for_reading", 'r', -EBADF },
	[NOT_FOR_WRITING] = { "not_for_writing", 'w', -EBADF },
	[CANNOT_READ] = { "cannot_read", 'r', -EINVAL },
	[CANNOT_WRITE] = { "cannot_write", 'w', -EINVAL },
	[NO_INUM] = { "no_inum", '-', -EINVAL },
	[NO_MAJDEV] = { "no_majdev", 'r', -EINVAL },
	[STALE_INUM] = { "stale_inum", '-', -ESTALE },
	[STALE_MAJOR] = { "stale_major", '-', -ESTALE },
	[STALE_MINOR] = { "stale_minor", '-', -ESTALE },
	[STALE_GENERATION] = { "stale_generation", '-', -ESTALE },
	[NO_MAPPING] = { "no_mapping", '-', -EINVAL },
	[NOT_READY] = { "not_ready", '-', -EBUSY },
	[NOT_DIRECT] = { "not_direct", '-', -EINVAL },
	[APPEND] = { "append", 'w', -EINVAL },
	[NO_FENCE_VALUE] = { "no_fence_value", '-', -EINVAL },
	[MORE_THAN_BUFFER] = { "more_than_buffer", '-', -EINVAL },
	[PAST_BUFFER] = { "past_buffer", '-', -EINVAL },
	[GPU_IN_BLOCK] = { "gpu_in_block", '-', -EINVAL },
	[LEAVES_GPU_PAGE] = { "leaves_gpu_page", '-', -EINVAL },
};

/* Another file; false when it could not be opened. */
static bool file(struct nvfs_ioctl_ioargs *a, int fd)
{
	return !nvfs_fill_file(a, fd);
}

/* A start inside a GPU page, and more bytes than are left of the page. */
static bool leave_page(const struct fuzz *f, const struct slot *s, struct nvfs_ioctl_ioargs *a)
{
	uint64_t start = (f->buf[s->buf].va + s->skip) % (64 * K);

	a->devptroff = start ? 0 : 4096;
	a->size = 64 * K - (start + a->devptroff) % (64 * K) + 4096;
	return a->devptroff + a->size <= s->size;
}

/* Make a good request a bad one; false when that cannot be done here. */
static bool spoil(struct fuzz *f, const struct slot *s, struct nvfs_ioctl_ioargs *a,
		  enum refusal which)
{
	switch (which) {
	case NEGATIVE_OFFSET: a->offset = -4096; break;
	case OFFSET_IN_BLOCK: a->offset += 512; break;
	case SIZE_IN_BLOCK: a->size = 512; break;
	case RANGE_OVERFLOW: a->offset = INT64_MAX - 4095; break;
	case NO_FILE: a->fd = -1; break;
	case DIRECTORY: return file(a, f->fd_dir);
	case NO_FILE_KIND: return file(a, f->nv->fd[0]);
	case NOT_FOR_READING: return file(a, f->fd_wo);
	case NOT_FOR_WRITING: return file(a, f->fd_ro);
	case CANNOT_READ: return file(a, f->fd_no_read);
	case CANNOT_WRITE: return file(a, f->fd_no_write);
	case NO_INUM: a->inum = 0; break;
	case NO_MAJDEV:
		if (!file(a, f->fd_block))
			return false;
		a->majdev = 0;
		break;
	case STALE_INUM: a->inum++; break;
	case STALE_MAJOR: a->majdev++; break;
	case STALE_MINOR: a->mindev++; break;
	case STALE_GENERATION: a->generation = 0xdeadbeef; break;
	case NO_MAPPING:
		if (s->len == 4096)
			return false;
		a->cpuvaddr += 4096;
		break;
	case NOT_READY: break;
	case NOT_DIRECT: return file(a, f->fd_buffered);
	case APPEND: return file(a, f->fd_append);
	case NO_FENCE_VALUE:
		a->flags = 0;
		a->end_fence_value = 0;
		break;
	case MORE_THAN_BUFFER: a->size = s->size + 4096; break;
	case PAST_BUFFER: a->devptroff = s->size; break;
	case GPU_IN_BLOCK:
		a->devptroff = 512;
		return s->size >= a->size + 512;
	case LEAVES_GPU_PAGE: return leave_page(f, s, a);
	case REFUSALS: return false;
	}
	return true;
}

/* On the first mapping that will do for it; without one the next of the list comes next. */
void op_refused(struct fuzz *f)
{
	enum refusal which = f->next_refusal % REFUSALS;
	bool write = refusals[which].way == '-' ? rnd(f, 2) : refusals[which].way == 'w';
	bool sync = rnd(f, 2);
	struct nvfs_ioctl_ioargs a;
	char what[80];
	int i, r;

	for (i = 0; i < SLOTS; i++) {
		struct slot *s = &f->slot[i];

		if (!s->cpu || s->torn || s->ready == (which == NOT_READY))
			continue;
		memset(&a, 0, sizeof(a));
		if (!file(&a, f->fd_rw))
			return;
		a.cpuvaddr = (uintptr_t)s->cpu;
		a.size = 4096;
		a.offset = write ? FILE_SIZE : 0;
		a.flags = sync ? NVFS_IO_SYNC : 0;
		a.end_fence_value = s->value + 1;	/* a refusal does not write it */
		if (!spoil(f, s, &a, which))
			continue;
		f->next_refusal++;
		r = call(f, write ? NVFS_IOCTL_WRITE : NVFS_IOCTL_READ, &a);
		atomic_fetch_add(&f->t->refused, 1);
		snprintf(what, sizeof(what), "not refused as %s", refusals[which].name);
		if (!r || errno != EPERM || a.ioctl_return != refusals[which].code)
			bug(f, what, r ? a.ioctl_return : 0, errno);
		return;
	}
	if (any_slot(f, true))
		f->next_refusal++;
}
