// SPDX-License-Identifier: MIT
/*
 * checks_storage.c - D-60 .. D-68: file systems, what they lie on, the drives.
 *
 * Where the caller names no file, a machine is judged by its best file system: that the root is
 * on btrfs hurts nobody whose data are on XFS.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gdscheck.h"
#include "read.h"

#ifndef STATX_ATTR_VERITY
#define STATX_ATTR_VERITY 0x00100000
#endif
#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

#define BLOCK 4096	/* bytes: what the direct routes move at least */

typedef void judge_fn(const struct gc_machine *m, const struct gc_store *s, struct gc_finding *f);

static const char *place(const struct gc_store *s)
{
	return s->path[0] ? s->path : s->mount.point;
}

static void append(char *list, const char *what, const char *why)
{
	size_t n = strlen(list);
	int k = snprintf(list + n, GC_TEXT - n, "%s%s (%s)", n ? ", " : "", what, why);

	/* one that does not fit is left out whole */
	if (k < 0 || (size_t)k >= GC_TEXT - n)
		list[n] = '\0';
}

/* The worst verdict of the file systems that count; what the others lack is a note. */
static void judge(const struct gc_machine *m, struct gc_finding *f, judge_fn *one)
{
	struct gc_finding got, keep = *f;
	char others[GC_TEXT] = "";
	bool good = false, counts;
	unsigned int i;

	for (i = 0; i < m->stores; i++)
		good |= gc_store_good(m, &m->store[i]);
	for (i = 0; i < m->stores; i++) {
		got = keep;
		one(m, &m->store[i], &got);
		counts = m->stores_named || !good || gc_store_good(m, &m->store[i]);
		if (counts && (got.verdict > f->verdict || !f->text[0]))
			*f = got;
		if (!counts && got.verdict > GC_OK)
			append(others, place(&m->store[i]), got.text);
	}
	if (!m->stores)
		gc_say(f, GC_SKIP, "no file system lies on an NVMe drive; name a file or folder to judge another");
	else if (others[0] && !f->note[0])
		gc_note(f, "does not hold for %s", others);
}

/* -- mounts -- */

static void one_fs(const struct gc_machine *m, const struct gc_store *s, struct gc_finding *f)
{
	gc_seen(f, "proc/self/mountinfo", "%s: %s", s->mount.point, s->mount.fs);
	if (!strcmp(s->mount.fs, "xfs") || !strcmp(s->mount.fs, "ext4")) {
		gc_say(f, GC_OK, "%s is on %s", place(s), s->mount.fs);
		return;
	}
	gc_say(f, GC_FAIL, "%s is on %s, which does not pass GPU memory down to the drive", place(s),
	       s->mount.fs);
	gc_remedy(f, "keep the data on ext4 or XFS; until then they go by the bounce route");
}

static void fs_type(const struct gc_machine *m, struct gc_finding *f)
{
	judge(m, f, one_fs);
}

static void one_journal(const struct gc_machine *m, const struct gc_store *s, struct gc_finding *f)
{
	char path[FACTS_PATH], text[4096];
	bool journal;

	if (strcmp(s->mount.fs, "ext4")) {
		gc_say(f, GC_OK, "%s is not on ext4", place(s));
		gc_seen(f, "proc/self/mountinfo", "%s: %s", s->mount.point, s->mount.fs);
		return;
	}
	snprintf(path, sizeof(path), "proc/fs/ext4/%.32s/options", s->block.name);
	journal = facts_option(s->mount.options, "data", "journal");
	if (facts_read(m->root, path, text, sizeof(text)) > 0) {
		gc_seen(f, path, strstr(text, "data=journal") ? "data=journal" :
			strstr(text, "data=writeback") ? "data=writeback" : "data=ordered");
		journal |= strstr(text, "data=journal") != NULL;
	} else {
		gc_seen(f, "proc/self/mountinfo", "%s: %s", s->mount.point, s->mount.options);
	}
	if (!journal) {
		gc_say(f, GC_OK, "%s journals metadata only", place(s));
		if (!facts_option(s->mount.options, "data", "ordered"))
			gc_note(f, "some releases of NVIDIA's library want data=ordered spelled out in the mount options");
		return;
	}
	gc_say(f, GC_FAIL, "%s is mounted with data=journal: its bytes go through the journal", place(s));
	gc_remedy(f, "mount it with data=ordered");
}

static void journal(const struct gc_machine *m, struct gc_finding *f)
{
	judge(m, f, one_journal);
}

/* -- the named file itself -- */

static bool is_live_file(const struct gc_machine *m, struct gc_finding *f)
{
	struct stat st;

	if (m->recorded) {
		gc_say(f, GC_SKIP, "needs the live machine: a file is opened");
		return false;
	}
	if (!m->stores_named || stat(m->store[0].path, &st) || !S_ISREG(st.st_mode)) {
		gc_say(f, GC_SKIP, "name a file to look at its own properties");
		return false;
	}
	return true;
}

static void features(const struct gc_machine *m, struct gc_finding *f)
{
	const char *path = m->store[0].path, *bad = NULL;
	unsigned int flags = 0;
	struct statx st;
	int fd;

	if (!is_live_file(m, f))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st)) {
		gc_say(f, GC_SKIP, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags))
		flags = 0;
	close(fd);
	if (st.stx_attributes & STATX_ATTR_ENCRYPTED)
		bad = "encrypted";
	else if (st.stx_attributes & STATX_ATTR_VERITY)
		bad = "protected by verity";
	else if (st.stx_attributes & STATX_ATTR_COMPRESSED)
		bad = "compressed";
	else if (st.stx_attributes & STATX_ATTR_DAX)
		bad = "mapped directly (DAX)";
	else if (flags & FS_JOURNAL_DATA_FL)
		bad = "journalled (chattr +j)";
	else if (flags & FS_INLINE_DATA_FL)
		bad = "inline in its inode";
	gc_seen(f, path + 1, "attributes 0x%llx, flags 0x%x", (unsigned long long)st.stx_attributes,
		flags);
	if (!bad) {
		gc_say(f, GC_OK, "a plain file");
		return;
	}
	gc_say(f, GC_FAIL, "the file is %s: the CPU has to move its bytes", bad);
	gc_remedy(f, "copy it to a file without that property");
}

static void o_direct(const struct gc_machine *m, struct gc_finding *f)
{
	const char *path = m->store[0].path;
	unsigned int align = 0;
	int fd;

	if (!is_live_file(m, f))
		return;
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0) {
		gc_say(f, GC_FAIL, "the file cannot be opened with O_DIRECT");
		gc_seen(f, path + 1, "%s", strerror(errno));
		gc_remedy(f, "keep it on a file system with direct I/O (ext4, XFS)");
		return;
	}
#ifdef STATX_DIOALIGN
	struct statx st;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) && st.stx_mask & STATX_DIOALIGN)
		align = st.stx_dio_offset_align;
#endif
	close(fd);
	gc_seen(f, path + 1, align ? "O_DIRECT, in units of %u bytes" : "O_DIRECT", align);
	if (align <= BLOCK) {
		gc_say(f, GC_OK, "the file can be opened with O_DIRECT");
		return;
	}
	gc_say(f, GC_FAIL, "direct I/O of this file goes in units of %u bytes; the direct routes move %d",
	       align, BLOCK);
	gc_remedy(f, "make the file system with blocks of 4096 bytes");
}

/* -- devices -- */

static void one_stack(const struct gc_machine *m, const struct gc_store *s, struct gc_finding *f)
{
	char path[FACTS_PATH];
	unsigned int i;

	snprintf(path, sizeof(path), "sys/dev/block/%u:%u", s->major, s->minor);
	gc_seen(f, path, "%s", s->has_block ? s->layers : "no block device");
	if (!s->has_block) {
		gc_say(f, GC_FAIL, "%s is on no block device of this machine", place(s));
		gc_remedy(f, "keep the data on a local NVMe drive");
		return;
	}
	if (s->dm[0]) {
		gc_say(f, GC_FAIL, "%s is on %s: device mapper, which no direct route passes through",
		       place(s), s->layers);
		gc_remedy(f, "put the file system on a partition of the drive itself");
		return;
	}
	if (s->md[0]) {
		gc_say(f, GC_FAIL, "%s is on %s: in this version no direct route passes through md",
		       place(s), s->layers);
		gc_remedy(f, "put the file system on one drive; several can be used by several files");
		if (!strcmp(s->md, "raid0"))
			gc_note(f, "NVIDIA's library goes direct on raid0");
		return;
	}
	for (i = 0; i < s->leaves; i++) {
		if (!s->leaf[i].integrity)
			continue;
		gc_say(f, GC_FAIL, "drive %s is formatted with protection information (T10 PI), which the CPU has to compute",
		       s->leaf[i].disk);
		gc_seen(f, path, "%s: integrity/format", s->leaf[i].disk);
		gc_remedy(f, "format the namespace without metadata (nvme format --lbaf=...; this erases it)");
		return;
	}
	gc_say(f, GC_OK, "%s is on a drive without layers between", place(s));
}

static void stack(const struct gc_machine *m, struct gc_finding *f)
{
	judge(m, f, one_stack);
}

static void one_transport(const struct gc_machine *m, const struct gc_store *s,
			  struct gc_finding *f)
{
	const struct facts_block *b;
	char text[FACTS_NAME];
	unsigned int i;

	for (i = 0; i < s->leaves; i++) {
		b = &s->leaf[i];
		if (b->kind == FACTS_BLOCK_NVME || b->kind == FACTS_BLOCK_NVME_MULTIPATH)
			continue;
		if (facts_block_text(m->root, s->leaf_major[i], s->leaf_minor[i],
				     "device/transport", text, sizeof(text)) <= 0)
			snprintf(text, sizeof(text), "no NVMe");
		gc_seen(f, "sys/class/block", "%s: %s", b->disk, text);
		gc_remedy(f, "keep the data on a local NVMe drive");
		if (b->kind == FACTS_BLOCK_NVME_FABRIC)
			gc_say(f, GC_FAIL, "%s is reached over a network (NVMe-oF, %s)", b->disk, text);
		else
			gc_say(f, GC_FAIL, "%s is no NVMe drive", b->disk);
		if (b->kind == FACTS_BLOCK_NVME_FABRIC && !strcmp(text, "rdma"))
			gc_note(f, "NVIDIA's stack goes direct with its own nvme-rdma");
		return;
	}
	gc_say(f, GC_OK, s->leaves ? "%s is on a local NVMe drive" : "%s is on no drive of this machine",
	       place(s));
	gc_seen(f, "sys/class/block", "%s", s->layers);
}

static void transport(const struct gc_machine *m, struct gc_finding *f)
{
	size_t i;

	for (i = 0; i < m->npci && m->pci[i].kind != FACTS_PCI_NVME; i++)
		;
	if (!m->stores && i == m->npci) {
		gc_say(f, GC_FAIL, "there is no NVMe drive on the PCI bus");
		gc_seen(f, "sys/bus/pci/devices", "no function of class 0108");
		gc_remedy(f, "GPU memory is reached directly by NVMe drives only; without one all I/O is bounced");
		return;
	}
	judge(m, f, one_transport);
}

static void one_multipath(const struct gc_machine *m, const struct gc_store *s,
			  struct gc_finding *f)
{
	char text[FACTS_NAME];
	unsigned int i;

	if (facts_read(m->root, "sys/module/nvme_core/parameters/multipath", text, sizeof(text)) < 0)
		snprintf(text, sizeof(text), "not told");
	gc_seen(f, "sys/module/nvme_core/parameters/multipath", "%s", text);
	for (i = 0; i < s->leaves; i++) {
		if (s->leaf[i].kind != FACTS_BLOCK_NVME_MULTIPATH)
			continue;
		gc_say(f, GC_FAIL, "%s is a namespace with several paths: which drive gets a request is not known beforehand",
		       s->leaf[i].disk);
		gc_remedy(f, "boot with nvme_core.multipath=N");
		return;
	}
	gc_say(f, GC_OK, "no drive of %s has several paths", place(s));
	if (!strcmp(text, "Y"))
		gc_note(f, "NVIDIA's P2PDMA mode wants nvme_core.multipath=N in any case");
}

static void multipath(const struct gc_machine *m, struct gc_finding *f)
{
	judge(m, f, one_multipath);
}

static long queue(const struct gc_machine *m, const struct gc_store *s, unsigned int i,
		  const char *name)
{
	char text[FACTS_NAME];

	return facts_block_text(m->root, s->leaf_major[i], s->leaf_minor[i], name, text,
				sizeof(text)) > 0 ? strtol(text, NULL, 10) : 0;
}

static void one_limit(const struct gc_machine *m, const struct gc_store *s, struct gc_finding *f)
{
	unsigned int i;
	long kb, segments;

	gc_say(f, GC_SKIP, "the queue of %s tells no limits", place(s));
	for (i = 0; i < s->leaves; i++) {
		kb = queue(m, s, i, "queue/max_hw_sectors_kb");
		segments = queue(m, s, i, "queue/max_segments");
		if (!kb)
			continue;
		gc_seen(f, "sys/class/block", "%s/queue: max_hw_sectors_kb %ld, max_segments %ld",
			s->leaf[i].disk, kb, segments);
		if (kb >= 128) {
			gc_say(f, GC_OK, "%s takes %ld KiB in one command", s->leaf[i].disk, kb);
			continue;
		}
		gc_say(f, GC_WARN, "%s takes %ld KiB in one command: large requests become many",
		       s->leaf[i].disk, kb);
		gc_remedy(f, "none but another drive; the bytes go direct all the same");
		return;
	}
}

static void limits(const struct gc_machine *m, struct gc_finding *f)
{
	judge(m, f, one_limit);
}

static void drive_state(const struct gc_machine *m, struct gc_finding *f)
{
	char file[FACTS_NAME], text[FACTS_NAME];
	const struct facts_pci *p;
	unsigned int drives = 0;
	size_t i;

	for (i = 0; i < m->npci; i++) {
		p = &m->pci[i];
		if (p->kind != FACTS_PCI_NVME)
			continue;
		drives++;
		snprintf(file, sizeof(file), "nvme/%s/state", p->name);
		if (!p->name[0] ||
		    facts_pci_text(m->root, p->address, file, text, sizeof(text)) <= 0)
			snprintf(text, sizeof(text), "no driver");
		gc_seen(f, "sys/bus/pci/devices", "%s: %s", p->address, text);
		if (!strcmp(text, "live"))
			continue;
		gc_say(f, GC_WARN, "drive %s is not live: %s", p->address, text);
		gc_remedy(f, "look at its lines in the kernel's log; bind it to the nvme driver if it has none");
		return;
	}
	if (drives)
		gc_say(f, GC_OK, "%u NVMe drive%s live", drives, drives > 1 ? "s" : "");
	else
		gc_say(f, GC_SKIP, "there is no NVMe drive on the PCI bus");
}

const struct gc_check gc_checks_storage[] = {
	{ "D-60", "file system", fs_type, 50 },
	{ "D-61", "journal mode", journal, 51 },
	{ "D-62", "file features", features, 52 },
	{ "D-63", "O_DIRECT", o_direct, 53 },
	{ "D-64", "block stack", stack, 48 },
	{ "D-65", "transport", transport, 47 },
	{ "D-66", "multipath", multipath, 49 },
	{ "D-67", "drive limits", limits, 96 },
	{ "D-68", "drive state", drive_state, 46 },
};
const size_t gc_n_storage = sizeof(gc_checks_storage) / sizeof(gc_checks_storage[0]);
