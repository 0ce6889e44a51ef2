/* SPDX-License-Identifier: MIT */
/*
 * replay.h - a drive as a power cut leaves it, from the log of its writes.
 *
 * The log is that of the kernel's dm-log-writes, which QEMU's blklogwrites keeps too: one sector
 * with the number of entries, then for each entry a sector that describes it and its data. An
 * entry stands where the drive had completed it. A cut point is a number of entries: those are
 * what the drive had answered when the power went.
 *
 * What was answered before the last flush in front of the cut is there, and what was written with
 * FUA. Of the rest each write is there or not, as a drive with a volatile cache may have it;
 * the order of writes to the same sector is kept.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* flags of an entry, as they stand in the log */
#define REPLAY_FLUSH	(1u << 0)	/* of what was answered before; its own data is not in it */
#define REPLAY_FUA	(1u << 1)
#define REPLAY_DISCARD	(1u << 2)	/* has a range and no data */
#define REPLAY_MARK	(1u << 3)	/* its data is a text, nothing is written */

/* A write of 512 bytes that begins so, then a number, is a mark, too (replay_load). */
#define REPLAY_MAGIC "OGDSMARK"

struct replay_entry {
	uint64_t sector;	/* of 512 bytes, as all here */
	uint64_t sectors;
	uint64_t data;		/* offset in the log, bytes */
	uint32_t flags;
	int64_t mark;		/* its number; -1: it is none */
};

struct replay {
	int fd;
	size_t n;
	struct replay_entry *entry;
	char why[200];		/* what an error was about */
};

/* How a cut goes. */
struct replay_cut {
	size_t from;		/* the image holds the entries in front of this one */
	size_t cut;		/* entries that were answered; `from` to the number of all */
	unsigned int keep;	/* percent of the writes that no flush covers */
	bool torn;		/* of some that are kept only a part of the sectors */
	bool no_flush;		/* a drive that lies: flushes do nothing */
	bool no_fua;		/* ... and FUA does nothing */
	uint64_t seed;
};

struct replay_result {
	size_t flushed;		/* the entries in front of this one were covered by a flush */
	size_t open;		/* writes and discards behind it */
	size_t kept;		/* of them, there as a whole */
	size_t torn;		/* of them, there in part */
};

/*
 * Reads the log's entries. marks_at: a sector whose writes are marks when they begin with
 * REPLAY_MAGIC and a little-endian 64-bit number; -1: there is none. 0 or -errno.
 */
int replay_load(struct replay *r, const char *path, int64_t marks_at);
void replay_close(struct replay *r);

/*
 * Which writes had FUA, where the log does not tell (QEMU's nvme drops it): a line for each write
 * that the kernel of the guest saw complete, from the log's beginning on, "W SECTOR SECTORS" or
 * "F SECTOR SECTORS" with FUA. 0, -EINVAL for a line that is none, -ENOENT when the log lacks one.
 */
int replay_writes(struct replay *r, const char *path);

/* The number of the last mark in front of the cut point, -1: none. */
int64_t replay_mark(const struct replay *r, size_t cut);

/* The cut point right behind a mark; -ENOENT: there is none. */
int64_t replay_behind(const struct replay *r, int64_t mark);

/*
 * Chooses up to n different cut points behind `from`, in order: every other one right behind a
 * mark, where what the mark promises is youngest. Returns how many.
 */
size_t replay_points(const struct replay *r, size_t from, uint64_t seed, size_t n, size_t *point);

/* Changes the image, a file, as the cut says. 0 or -errno. */
int replay_apply(struct replay *r, int image, const struct replay_cut *c,
		 struct replay_result *result);

#endif /* REPLAY_H */
