// SPDX-License-Identifier: GPL-2.0-only
/*
 * user.c - how much shadow and pinned GPU memory each user has, and the limits of it.
 *
 * The user is the one of the process that made the mapping, as the initial user namespace
 * numbers him. In a namespace that an ordinary user has made, every number inside is his:
 * he pays, or a new namespace would be a new allowance.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "nvidia-fs.h"
#include "log.h"

struct nvfs_user {
	struct hlist_node node;		/* nvfs_users */
	kuid_t uid;
	unsigned int mappings;		/* with none it goes */
	u64 bytes[NVFS_CHARGES];
};

static DEFINE_HASHTABLE(nvfs_users, 6);		/* nvfs_user_lock */
static DEFINE_SPINLOCK(nvfs_user_lock);		/* a leaf; process context */

static int nvfs_user_max_mb[NVFS_CHARGES] = {
	[NVFS_CHARGE_SHADOW] = -1,
};
module_param_named(user_max_shadow_mb, nvfs_user_max_mb[NVFS_CHARGE_SHADOW], int, 0644);
MODULE_PARM_DESC(user_max_shadow_mb, "MiB of shadow buffers that one user may have; 0: no limit, -1: a quarter of the memory (-1)");
module_param_named(user_max_pinned_mb, nvfs_user_max_mb[NVFS_CHARGE_PINNED], int, 0644);
MODULE_PARM_DESC(user_max_pinned_mb, "MiB of GPU memory that one user may have pinned; 0: no limit (0)");

static const char * const nvfs_charge_name[NVFS_CHARGES] = {
	[NVFS_CHARGE_SHADOW] = "shadow",
	[NVFS_CHARGE_PINNED] = "pinned",
};

/* bytes; 0: no limit */
static u64 nvfs_user_max(enum nvfs_charge what)
{
	int mb = READ_ONCE(nvfs_user_max_mb[what]);

	if (mb >= 0)
		return (u64)mb << 20;
	return what == NVFS_CHARGE_SHADOW ? (u64)totalram_pages() << PAGE_SHIFT >> 2 : 0;
}

static kuid_t nvfs_payer(void)
{
	struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return current_uid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	/* of one that root has made the numbers are root's to give */
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ? current_uid() : ns->owner;
}

/* nvfs_user_lock held */
static struct nvfs_user *nvfs_user_find(kuid_t uid)
{
	struct nvfs_user *u;

	hash_for_each_possible(nvfs_users, u, node, __kuid_val(uid))
		if (uid_eq(u->uid, uid))
			return u;
	return NULL;
}

/* The caller's user, for one more mapping; NULL when memory is short. Blocks. */
struct nvfs_user *nvfs_user_get(void)
{
	struct nvfs_user *u, *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	kuid_t uid = nvfs_payer();

	if (!fresh)
		return NULL;
	spin_lock(&nvfs_user_lock);
	u = nvfs_user_find(uid);
	if (!u) {
		u = fresh;
		fresh = NULL;
		u->uid = uid;
		hash_add(nvfs_users, &u->node, __kuid_val(uid));
	}
	u->mappings++;
	spin_unlock(&nvfs_user_lock);
	kfree(fresh);
	return u;
}

/* A mapping of his is gone, and uncharged. */
void nvfs_user_put(struct nvfs_user *u)
{
	bool last;

	spin_lock(&nvfs_user_lock);
	last = !--u->mappings;
	if (last)
		hash_del(&u->node);
	spin_unlock(&nvfs_user_lock);
	if (last)
		kfree(u);
}

/*
 * Count bytes more for u, by the caller's call. -ENOMEM, nothing counted, when that is more
 * than the limit; who may exceed resource limits (CAP_SYS_RESOURCE) may exceed this one.
 */
int nvfs_user_charge(struct nvfs_user *u, enum nvfs_charge what, u64 bytes)
{
	u64 max = nvfs_user_max(what), have;
	bool ok;

	spin_lock(&nvfs_user_lock);
	have = u->bytes[what];
	ok = !max || (have <= max && bytes <= max - have);
	if (ok)
		u->bytes[what] += bytes;
	spin_unlock(&nvfs_user_lock);
	if (ok)
		return 0;
	if (capable(CAP_SYS_RESOURCE)) {
		spin_lock(&nvfs_user_lock);
		u->bytes[what] += bytes;
		spin_unlock(&nvfs_user_lock);
		return 0;
	}
	nvfs_say("user %u asked for %llu KiB of %s memory, has %llu KiB, and the limit is %llu KiB (-ENOMEM): unmap some, or raise user_max_%s_mb of the module\n",
		 from_kuid(&init_user_ns, u->uid), bytes >> 10, nvfs_charge_name[what],
		 have >> 10, max >> 10, nvfs_charge_name[what]);
	return -ENOMEM;
}

void nvfs_user_uncharge(struct nvfs_user *u, enum nvfs_charge what, u64 bytes)
{
	spin_lock(&nvfs_user_lock);
	u->bytes[what] -= bytes;
	spin_unlock(&nvfs_user_lock);
}

/* One line a user. */
void nvfs_users_show(struct seq_file *s)
{
	struct nvfs_user *u;
	unsigned int b;

	spin_lock(&nvfs_user_lock);
	hash_for_each(nvfs_users, b, u, node)
		seq_printf(s, "user %u: shadow_bytes=%llu pinned_bytes=%llu\n",
			   from_kuid(&init_user_ns, u->uid), u->bytes[NVFS_CHARGE_SHADOW],
			   u->bytes[NVFS_CHARGE_PINNED]);
	spin_unlock(&nvfs_user_lock);
}
