// SPDX-License-Identifier: MIT
/*
 * machine_store.c - the file systems that matter, and which devices each of them lies on.
 *
 * A caller names files or folders; else all file systems on NVMe drives are looked at, whatever
 * device mapper or md is between.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gdscheck.h"
#include "read.h"

#define DEPTH 8		/* of devices on devices */
#define NODES 64	/* of one file system */

/* What the letters before the first dash of a device mapper's uuid mean */
static const struct {
	const char *prefix, *name;
} dm_kinds[] = {
	{ "LVM-", "LVM" },
	{ "CRYPT-", "encryption" },
	{ "mpath-", "multipath" },
	{ "DMRAID-", "RAID of the board" },
	{ "VERITY-", "dm-verity" },
};

/* -- the devices below a file system -- */

struct stack {
	const struct gc_machine *m;
	struct gc_store *s;
	struct { unsigned int major, minor; } node[NODES];
	unsigned int n;
};

static int push(void *arg, unsigned int major, unsigned int minor)
{
	struct stack *st = arg;
	unsigned int i;

	for (i = 0; i < st->n; i++)
		if (st->node[i].major == major && st->node[i].minor == minor)
			return 0;
	if (st->n < NODES) {
		st->node[st->n].major = major;
		st->node[st->n++].minor = minor;
	}
	return 0;
}

static void layer(struct gc_store *s, const char *name, const char *kind)
{
	size_t n = strlen(s->layers);

	snprintf(s->layers + n, sizeof(s->layers) - n, "%s%s%s%s%s", n ? ", on " : "", name,
		 kind[0] ? " (" : "", kind, kind[0] ? ")" : "");
}

static void mapped(struct stack *st, unsigned int i, const struct facts_block *b)
{
	const char *kind = "device mapper";
	char uuid[FACTS_PATH];
	size_t k;

	if (facts_block_text(st->m->root, st->node[i].major, st->node[i].minor, "dm/uuid", uuid,
			     sizeof(uuid)) > 0) {
		for (k = 0; k < sizeof(dm_kinds) / sizeof(dm_kinds[0]); k++)
			if (!strncmp(uuid, dm_kinds[k].prefix, strlen(dm_kinds[k].prefix)))
				kind = dm_kinds[k].name;
	}
	snprintf(st->s->dm, sizeof(st->s->dm), "%s", kind);
	layer(st->s, b->disk, kind);
}

static void array(struct stack *st, unsigned int i, const struct facts_block *b)
{
	if (facts_block_text(st->m->root, st->node[i].major, st->node[i].minor, "md/level",
			     st->s->md, sizeof(st->s->md)) <= 0)
		snprintf(st->s->md, sizeof(st->s->md), "md");
	layer(st->s, b->disk, st->s->md);
}

static void leaf(struct stack *st, unsigned int i, const struct facts_block *b)
{
	struct gc_store *s = st->s;

	layer(s, b->disk, "");
	if (s->leaves == GC_LEAVES)
		return;
	s->leaf_major[s->leaves] = st->node[i].major;
	s->leaf_minor[s->leaves] = st->node[i].minor;
	s->leaf[s->leaves++] = *b;
}

static void devices(const struct gc_machine *m, struct gc_store *s)
{
	struct stack st = { .m = m, .s = s };
	struct facts_block b;
	unsigned int i;

	push(&st, s->major, s->minor);
	for (i = 0; i < st.n; i++) {
		if (facts_block_find(m->root, st.node[i].major, st.node[i].minor, &b))
			continue;
		if (!i) {
			s->block = b;
			s->has_block = true;
		}
		if (b.kind == FACTS_BLOCK_DM)
			mapped(&st, i, &b);
		else if (b.kind == FACTS_BLOCK_MD)
			array(&st, i, &b);
		else
			leaf(&st, i, &b);
		if (b.kind == FACTS_BLOCK_DM || b.kind == FACTS_BLOCK_MD)
			facts_block_below(m->root, st.node[i].major, st.node[i].minor, push, &st);
	}
}

/* btrfs shows its files under numbers of no device: its source names one. */
static void source_numbers(const struct gc_machine *m, struct gc_store *s)
{
	char path[FACTS_SYSFS_PATH], text[32];

	s->major = s->mount.major;
	s->minor = s->mount.minor;
	if (s->major || strncmp(s->mount.source, "/dev/", 5) ||
	    facts_link(m->root, "sys/class/block", facts_base(s->mount.source), path,
		       sizeof(path)) ||
	    facts_read_in(m->root, path, "dev", text, sizeof(text)) < 0 ||
	    sscanf(text, "%9u:%9u", &s->major, &s->minor) != 2)
		return;
}

static void store(const struct gc_machine *m, const struct facts_mount *mount, const char *path,
		  struct gc_store *s)
{
	memset(s, 0, sizeof(*s));
	s->mount = *mount;
	snprintf(s->path, sizeof(s->path), "%s", path);
	source_numbers(m, s);
	if (s->major)
		devices(m, s);
}

static bool on_nvme(const struct gc_store *s)
{
	unsigned int i;

	for (i = 0; i < s->leaves; i++)
		if (s->leaf[i].kind == FACTS_BLOCK_NVME ||
		    s->leaf[i].kind == FACTS_BLOCK_NVME_FABRIC ||
		    s->leaf[i].kind == FACTS_BLOCK_NVME_MULTIPATH)
			return true;
	return false;
}

bool gc_store_good(const struct gc_machine *m, const struct gc_store *s)
{
	const struct facts_mount *t = &s->mount;
	bool fs = !strcmp(t->fs, "xfs") ||
		  (!strcmp(t->fs, "ext4") && !facts_option(t->options, "data", "journal"));

	return fs && s->has_block && s->block.kind == FACTS_BLOCK_NVME && !s->block.integrity;
}

/* -- all of them, or the named ones -- */

/* The first mount of each file system on an NVMe drive; never the small ones of the firmware */
static int consider(void *arg, const struct facts_mount *mount)
{
	struct gc_machine *m = arg;
	struct gc_store *s = &m->store[m->stores];
	unsigned int i;

	if (m->stores == GC_STORES || !strcmp(mount->fs, "vfat"))
		return 0;
	for (i = 0; i < m->stores; i++)
		if (m->store[i].mount.major == mount->major &&
		    m->store[i].mount.minor == mount->minor)
			return 0;
	store(m, mount, "", s);
	if (on_nvme(s))
		m->stores++;
	return 0;
}

struct longest {
	const char *path;
	struct facts_mount best;
	size_t len;
	bool found;
};

/* Of mounts that hold the path, the deepest; of those at one place, the last */
static int deepest(void *arg, const struct facts_mount *mount)
{
	struct longest *l = arg;
	size_t n = strlen(mount->point);

	if (n == 1)	/* "/" */
		n = 0;
	if (strncmp(mount->point, l->path, n) || (l->path[n] && l->path[n] != '/') ||
	    (l->found && n < l->len))
		return 0;
	l->best = *mount;
	l->len = n;
	l->found = true;
	return 0;
}

static int named(struct gc_machine *m, const char *path)
{
	char full[PATH_MAX];
	struct longest l = { .path = path };
	int r;

	if (!m->recorded) {
		if (!realpath(path, full)) {
			r = -errno;
			fprintf(stderr, "gdscheck: %s: %s: name a file or folder that exists\n",
				path, strerror(-r));
			return r;
		}
		l.path = full;
	}
	r = facts_mounts(m->root, deepest, &l);
	if (r || !l.found || m->stores == GC_STORES) {
		fprintf(stderr, "gdscheck: %s: the mount table of this machine has no file system for it\n",
			path);
		return r ? r : -ENOENT;
	}
	store(m, &l.best, l.path, &m->store[m->stores++]);
	return 0;
}

int gc_stores_read(struct gc_machine *m, char *const *paths, size_t npaths)
{
	size_t i;
	int r;

	if (!npaths) {
		facts_mounts(m->root, consider, m);
		return 0;
	}
	m->stores_named = true;
	for (i = 0; i < npaths; i++) {
		r = named(m, paths[i]);
		if (r)
			return r;
	}
	return 0;
}
