// SPDX-License-Identifier: GPL-2.0-only
/*
 * rm_peers.c - peers objects: the memory of a process that other drivers may pin. Statuses are
 * those that driver 580 gave (tests/gpu/peers). A GeForce's driver pins nothing else, as CUDA makes
 * no such object there; on other boards it does, and here all memory of CUDA's can be pinned.
 */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "gpu_rm.h"

static bool geforce;
module_param(geforce, bool, 0644);
MODULE_PARM_DESC(geforce, "pin only what a peers object lists, else -EINVAL, as a GeForce's driver does (0)");

static LIST_HEAD(gpu_peers);	/* peers objects of all clients, the oldest first; RM lock */

/* Is memory pinned by what is listed, and nothing else? */
bool gpu_peers_decide(void)
{
	return READ_ONCE(geforce);
}

void gpu_peers_add(struct gpu_object *peers)
{
	gpu_rm_assert_held();
	list_add_tail(&peers->peers, &gpu_peers);
}

static void gpu_entry_end(struct gpu_entry *entry)
{
	list_del(&entry->link);
	kfree(entry);
}

/* An object of the client's is freed: no entry leads to it or is in it any more. RM lock held. */
void gpu_peers_forget(struct gpu_rm_client *client, struct gpu_object *object)
{
	struct gpu_entry *entry, *next;
	struct gpu_object *peers;

	gpu_rm_assert_held();
	list_for_each_entry_safe(entry, next, &object->entries, link)
		gpu_entry_end(entry);
	list_del_init(&object->peers);
	list_for_each_entry(peers, &gpu_peers, peers) {
		/* names are a client's own, so memory decides: it is named by one client alone */
		list_for_each_entry_safe(entry, next, &peers->entries, link) {
			if (entry->memory == object)
				gpu_entry_end(entry);
		}
	}
}

u32 gpu_peers_size(u32 command)
{
	switch (command) {
	case RM_CTRL_PEERS_VA_SPACE:
		return sizeof(struct rm_peers_va_space);
	case RM_CTRL_PEERS_REGISTER:
		return sizeof(struct rm_peers_register);
	case RM_CTRL_PEERS_UNREGISTER:
		return sizeof(struct rm_peers_unregister);
	default:
		return 0;
	}
}

static struct gpu_object *gpu_object_of(struct gpu_rm_client *client, u32 name, u32 class)
{
	struct gpu_object *object = xa_load(&client->objects, name);

	return object && object->class == class ? object : NULL;
}

static u32 gpu_peers_join(struct gpu_rm_client *client, struct gpu_object *peers,
			  const struct rm_peers_va_space *p)
{
	if (!gpu_object_of(client, p->va_space, RM_CLASS_VA_SPACE))
		return RM_NOT_FOUND;
	if (peers->va_space)
		return RM_STATE_IN_USE;
	peers->va_space = p->va_space;
	return RM_OK;
}

static u32 gpu_peers_register(struct gpu_rm_client *client, struct gpu_object *peers,
			      const struct rm_peers_register *p)
{
	struct gpu_object *memory = gpu_object_of(client, p->memory, GPU_CLASS_MEMORY);
	struct gpu_entry *entry;

	if (!memory)
		return RM_NOT_FOUND;
	if (!peers->va_space || memory->card != peers->card || !p->size ||
	    !IS_ALIGNED(p->va | p->size | p->off, GPU_SIM_PAGE_SIZE) ||
	    p->off > memory->mem->size || p->size > memory->mem->size - p->off ||
	    p->va + p->size < p->va)
		return RM_INVALID_ARGUMENT;
	list_for_each_entry(entry, &peers->entries, link) {
		if (entry->memory == memory ||
		    (p->va < entry->va + entry->len && entry->va < p->va + p->size))
			return RM_DUPLICATE_NAME;
	}
	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return RM_NO_MEMORY;
	entry->memory = memory;
	entry->va = p->va;
	entry->len = p->size;
	entry->off = p->off;
	list_add_tail(&entry->link, &peers->entries);
	return RM_OK;
}

static u32 gpu_peers_unregister(struct gpu_rm_client *client, struct gpu_object *peers,
				const struct rm_peers_unregister *p)
{
	struct gpu_entry *entry;

	list_for_each_entry(entry, &peers->entries, link) {
		if (entry->memory->name == p->memory) {
			gpu_entry_end(entry);
			return RM_OK;
		}
	}
	return RM_NOT_FOUND;
}

/* A control of the client's peers object of that name; params have their size. RM lock held. */
u32 gpu_peers_control(struct gpu_rm_client *client, u32 name, u32 command, const void *params)
{
	struct gpu_object *peers = gpu_object_of(client, name, RM_CLASS_PEERS);

	if (!peers)
		return RM_NOT_FOUND;
	if (command == RM_CTRL_PEERS_VA_SPACE)
		return gpu_peers_join(client, peers, params);
	if (command == RM_CTRL_PEERS_REGISTER)
		return gpu_peers_register(client, peers, params);
	return gpu_peers_unregister(client, peers, params);
}

/*
 * What va .. va + len of the calling process is by the first entry that has va: memory, and the
 * page of it that va is. NULL: nothing, or the range leaves the entry. RM lock held.
 */
struct gpu_mem *gpu_peers_find(u64 va, u64 len, u32 *first)
{
	struct gpu_object *peers;
	struct gpu_entry *entry;

	gpu_rm_assert_held();
	list_for_each_entry(peers, &gpu_peers, peers) {
		if (peers->tgid != task_tgid(current))
			continue;
		list_for_each_entry(entry, &peers->entries, link) {
			if (va < entry->va || va - entry->va >= entry->len)
				continue;
			if (len > entry->len - (va - entry->va))
				return NULL;
			*first = (entry->off + (va - entry->va)) >> GPU_SIM_PAGE_SHIFT;
			return entry->memory->mem;
		}
	}
	return NULL;
}
