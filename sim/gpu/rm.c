// SPDX-License-Identifier: GPL-2.0-only
/*
 * rm.c - /dev/nvidiactl: clients of the simulated resource manager, their objects, and the
 * requests that lib/rm makes. Layouts and statuses stand in lib/rm/wire.h.
 *
 * Stricter than the real driver where a client could get away with a mistake: a device has to
 * be attached first, a size has to be exact, and no name is chosen for an object but a client's.
 */
#include <linux/compat.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gpu_rm.h"

#define GPU_FIRST_CLIENT 0xc1d00000U
#define GPU_CLIENT_NAMES 0x100000U	/* then they come again */
#define GPU_MAX_OBJECTS 65536		/* of one client */

static bool rm = true;
module_param(rm, bool, 0444);
MODULE_PARM_DESC(rm, "offer the GPU driver's resource manager: /dev/nvidiactl, /dev/nvidiaN (1)");

struct proc_dir_entry *gpu_proc;
static struct proc_dir_entry *gpu_proc_top;

/* A name for a client, of CUDA's or of /dev/nvidiactl. Takes no lock. */
u32 gpu_rm_new_client(void)
{
	static atomic_t last = ATOMIC_INIT(0);

	return GPU_FIRST_CLIENT + (u32)atomic_inc_return(&last) % GPU_CLIENT_NAMES;
}

/* -- look-ups; RM lock held -- */

/* A client is its process's, and that of the descriptor that made it. */
static struct gpu_rm_client *gpu_client_find(struct gpu_ctl *ctl, u32 name)
{
	struct gpu_rm_client *client;

	gpu_rm_assert_held();
	list_for_each_entry(client, &ctl->clients, link) {
		if (client->name == name && client->tgid == task_tgid(current))
			return client;
	}
	return NULL;
}

static struct gpu_object *gpu_object_find(struct gpu_rm_client *client, u32 name, u32 class)
{
	struct gpu_object *object = xa_load(&client->objects, name);

	return object && object->class == class ? object : NULL;
}

static u32 gpu_id(const struct gpu_card *card)
{
	return (u32)pci_domain_nr(card->pdev->bus) << 16 | (u32)card->pdev->bus->number << 8 |
	       PCI_SLOT(card->pdev->devfn);
}

static struct gpu_card *gpu_card_by_id(u32 id)
{
	struct gpu_card *card;

	list_for_each_entry(card, &gpu_cards, link) {
		if (gpu_id(card) == id)
			return card;
	}
	return NULL;
}

/* -- objects; RM lock held, but where said -- */

static u32 gpu_object_add(struct gpu_rm_client *client, const struct gpu_object *like)
{
	struct gpu_object *object;
	int ret;

	if (!like->name || like->name == client->name)
		return RM_INVALID_HANDLE;
	if (client->nobjects >= GPU_MAX_OBJECTS)
		return RM_NO_RESOURCES;
	object = kmemdup(like, sizeof(*like), GFP_KERNEL_ACCOUNT);
	if (!object)
		return RM_NO_MEMORY;
	INIT_LIST_HEAD(&object->gone);
	INIT_LIST_HEAD(&object->peers);
	INIT_LIST_HEAD(&object->entries);
	ret = xa_insert(&client->objects, object->name, object, GFP_KERNEL_ACCOUNT);
	if (ret) {
		kfree(object);
		return ret == -EBUSY ? RM_DUPLICATE_NAME : RM_NO_MEMORY;
	}
	client->nobjects++;
	gpu_card_get(object->card);
	if (object->mem) {
		gpu_mem_get(object->mem);
		object->mem->users++;
		object->card->nnames++;
	}
	if (object->class == RM_CLASS_PEERS)
		gpu_peers_add(object);
	return RM_OK;
}

/* No look-up finds it any more, and no mapping shows it. */
static void gpu_object_unlist(struct gpu_rm_client *client, struct gpu_object *object,
			      struct list_head *gone)
{
	xa_erase(&client->objects, object->name);
	client->nobjects--;
	gpu_peers_forget(client, object);
	list_add_tail(&object->gone, gone);
	if (object->mem) {
		gpu_node_forget(object);
		object->card->nnames--;
		object->last = gpu_mem_unuse(object->mem);
	}
}

/*
 * The object and what was made below it: a device has the names of memory and address spaces, a
 * subdevice the peers objects.
 */
static void gpu_object_end(struct gpu_rm_client *client, struct gpu_object *object,
			   struct list_head *gone)
{
	struct gpu_object *below;
	unsigned long name;

	if (object->class == RM_CLASS_DEVICE) {
		xa_for_each(&client->objects, name, below) {
			if (below->parent == object->name && below->class == RM_CLASS_SUBDEVICE)
				gpu_object_end(client, below, gone);
		}
	}
	if (object->class == RM_CLASS_DEVICE || object->class == RM_CLASS_SUBDEVICE) {
		xa_for_each(&client->objects, name, below) {
			if (below->parent == object->name)
				gpu_object_unlist(client, below, gone);
		}
	}
	gpu_object_unlist(client, object, gone);
}

static void gpu_client_end(struct gpu_rm_client *client, struct list_head *gone)
{
	struct gpu_object *object;
	unsigned long name;

	xa_for_each(&client->objects, name, object)
		gpu_object_unlist(client, object, gone);
	xa_destroy(&client->objects);
	list_del(&client->link);
	put_pid(client->tgid);
	kfree(client);
}

/* Without the RM lock: giving pages back takes it, and poisons them before. */
static void gpu_objects_free(struct list_head *gone)
{
	struct gpu_object *object, *next;

	list_for_each_entry_safe(object, next, gone, gone) {
		if (object->last)
			gpu_vram_release(object->mem);
		if (object->mem)
			gpu_mem_put(object->mem);
		put_pid(object->tgid);
		gpu_card_put(object->card);
		kfree(object);
	}
}

/* -- requests: each returns a status -- */

static u32 gpu_rm_alloc_client(struct gpu_ctl *ctl, struct rm_alloc *a)
{
	struct gpu_rm_client *client;

	if (a->client || a->parent || a->object)
		return RM_INVALID_HANDLE;
	client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	if (!client)
		return RM_NO_MEMORY;
	client->name = gpu_rm_new_client();
	client->tgid = get_pid(task_tgid(current));
	xa_init(&client->objects);
	gpu_rm_lock();
	list_add_tail(&client->link, &ctl->clients);
	gpu_rm_unlock();
	a->object = client->name;
	return RM_OK;
}

/* RM lock held. A device's instance is the index of its card. */
static u32 gpu_rm_alloc_device(struct gpu_rm_client *client, const struct rm_alloc *a,
			       const struct rm_device_params *p)
{
	struct gpu_object like = { .name = a->object, .parent = a->parent, .class = a->class };

	if (a->parent != client->name)
		return RM_INVALID_PARENT;
	if (p->share_client || p->target_client || p->target_device || p->flags || p->va_size ||
	    p->va_start || p->va_limit || p->va_mode)
		return RM_INVALID_ARGUMENT;
	if (p->instance >= GPU_SIM_MAX_CARDS || !test_bit(p->instance, &client->attached))
		return RM_INVALID_DEVICE;
	list_for_each_entry(like.card, &gpu_cards, link) {
		if (like.card->index == p->instance)
			return gpu_object_add(client, &like);
	}
	return RM_GPU_IS_LOST;
}

/* RM lock held */
static u32 gpu_rm_alloc_subdevice(struct gpu_rm_client *client, const struct rm_alloc *a,
				  const struct rm_subdevice_params *p)
{
	struct gpu_object *device = gpu_object_find(client, a->parent, RM_CLASS_DEVICE);
	struct gpu_object like = { .name = a->object, .parent = a->parent, .class = a->class };

	if (!device)
		return RM_INVALID_PARENT;
	if (p->instance)
		return RM_INVALID_ARGUMENT;
	like.card = device->card;
	return gpu_object_add(client, &like);
}

/* RM lock held. Of the kinds of peer memory there is BAR1. */
static u32 gpu_rm_alloc_peers(struct gpu_rm_client *client, const struct rm_alloc *a,
			      const struct rm_peers_params *p)
{
	struct gpu_object *subdevice = gpu_object_find(client, a->parent, RM_CLASS_SUBDEVICE);
	struct gpu_object like = { .name = a->object, .parent = a->parent, .class = a->class };
	struct gpu_object *other;
	unsigned long name;
	u32 status;

	if (!subdevice)
		return RM_INVALID_PARENT;
	if (p->flags != RM_PEERS_BAR1)
		return RM_INVALID_ARGUMENT;
	/* a client has one of a card */
	xa_for_each(&client->objects, name, other) {
		if (other->class == RM_CLASS_PEERS && other->parent == a->parent)
			return RM_STATE_IN_USE;
	}
	like.card = subdevice->card;
	like.tgid = get_pid(client->tgid);
	status = gpu_object_add(client, &like);
	if (status)
		put_pid(like.tgid);
	return status;
}

/* RM lock held */
static u32 gpu_rm_alloc_va_space(struct gpu_rm_client *client, const struct rm_alloc *a,
				 const struct rm_va_space_params *p)
{
	struct gpu_object *device = gpu_object_find(client, a->parent, RM_CLASS_DEVICE);
	struct gpu_object like = { .name = a->object, .parent = a->parent, .class = a->class };

	if (!device)
		return RM_INVALID_PARENT;
	if (memchr_inv(p, 0, sizeof(*p)))
		return RM_INVALID_ARGUMENT;
	like.card = device->card;
	return gpu_object_add(client, &like);
}

union gpu_params {
	struct rm_device_params device;
	struct rm_subdevice_params subdevice;
	struct rm_peers_params peers;
	struct rm_va_space_params va_space;
};

static u32 gpu_params_size(u32 class)
{
	switch (class) {
	case RM_CLASS_DEVICE:
		return sizeof(struct rm_device_params);
	case RM_CLASS_SUBDEVICE:
		return sizeof(struct rm_subdevice_params);
	case RM_CLASS_PEERS:
		return sizeof(struct rm_peers_params);
	case RM_CLASS_VA_SPACE:
		return sizeof(struct rm_va_space_params);
	default:
		return 0;
	}
}

static u32 gpu_rm_alloc(struct gpu_ctl *ctl, struct rm_alloc *a)
{
	u32 size = gpu_params_size(a->class), status;
	struct gpu_rm_client *client;
	union gpu_params p;

	if (a->class == RM_CLASS_CLIENT)
		return gpu_rm_alloc_client(ctl, a);
	if (!size)
		return RM_INVALID_CLASS;
	if (a->size != size)
		return RM_INVALID_PARAMS;
	if (copy_from_user(&p, u64_to_user_ptr(a->params), a->size))
		return RM_INVALID_ADDRESS;
	gpu_rm_lock();
	client = gpu_client_find(ctl, a->client);
	if (!client)
		status = RM_INVALID_CLIENT;
	else if (a->class == RM_CLASS_DEVICE)
		status = gpu_rm_alloc_device(client, a, &p.device);
	else if (a->class == RM_CLASS_SUBDEVICE)
		status = gpu_rm_alloc_subdevice(client, a, &p.subdevice);
	else if (a->class == RM_CLASS_PEERS)
		status = gpu_rm_alloc_peers(client, a, &p.peers);
	else
		status = gpu_rm_alloc_va_space(client, a, &p.va_space);
	gpu_rm_unlock();
	return status;
}

union gpu_control {
	struct rm_import import;
	struct rm_peers_va_space va_space;
	struct rm_peers_register reg;
	struct rm_peers_unregister unreg;
	struct rm_probed_ids probed;
	struct rm_pci_info pci;
	struct rm_attach_ids attach;
	struct rm_id_info info;
};

static u32 gpu_control_size(u32 command)
{
	switch (command) {
	case RM_CTRL_PROBED_IDS:
		return sizeof(struct rm_probed_ids);
	case RM_CTRL_PCI_INFO:
		return sizeof(struct rm_pci_info);
	case RM_CTRL_ATTACH_IDS:
		return sizeof(struct rm_attach_ids);
	case RM_CTRL_ID_INFO:
		return sizeof(struct rm_id_info);
	case RM_CTRL_IMPORT:
		return sizeof(struct rm_import);
	default:
		return gpu_peers_size(command);
	}
}

/* RM lock held */
static void gpu_rm_probed(struct rm_probed_ids *p)
{
	struct gpu_card *card;
	u32 n = 0;

	memset(p, 0xff, sizeof(*p));
	memset(p->flags, 0, sizeof(p->flags));
	list_for_each_entry(card, &gpu_cards, link)
		p->id[n++] = gpu_id(card);
}

/* RM lock held */
static u32 gpu_rm_attach(struct gpu_rm_client *client, struct rm_attach_ids *p)
{
	struct gpu_card *card;
	u32 i;

	for (i = 0; i < RM_MAX_GPUS && p->id[i] != RM_NO_ID; i++) {
		card = gpu_card_by_id(p->id[i]);
		if (!card) {
			p->failed = p->id[i];
			return RM_INVALID_ARGUMENT;
		}
		__set_bit(card->index, &client->attached);
	}
	return RM_OK;
}

/* RM lock held. The commands on a card: its id is the first word of both. */
static u32 gpu_rm_tell(u32 command, union gpu_control *p)
{
	struct gpu_card *card = gpu_card_by_id(p->info.id);

	if (!card)
		return RM_INVALID_ARGUMENT;
	if (command == RM_CTRL_PCI_INFO) {
		p->pci.domain = pci_domain_nr(card->pdev->bus);
		p->pci.bus = card->pdev->bus->number;
		p->pci.slot = PCI_SLOT(card->pdev->devfn);
	} else {
		p->info = (struct rm_id_info){
			.id = p->info.id,
			.device_instance = card->index,
			.board = p->info.id,
			.gpu_instance = card->index,
			.numa = -1,
		};
	}
	return RM_OK;
}

/*
 * RM lock held. The memory of a descriptor by a name of the client's, whoever exported it. There is
 * one object in each: the driver holds what cuMemCreate makes in one piece.
 */
static u32 gpu_rm_import_locked(struct gpu_rm_client *client, struct rm_import *p,
				struct gpu_mem *mem)
{
	struct gpu_object *device = gpu_object_find(client, p->parent, RM_CLASS_DEVICE);
	struct gpu_object like = { .name = p->object[0], .parent = p->parent,
				   .class = GPU_CLASS_MEMORY, .mem = mem };
	u32 status;

	if (!mem || p->count > RM_IMPORTS)
		return RM_INVALID_PARAMETER;
	if (p->index + p->count > 1)
		return RM_OUT_OF_RANGE;
	if (!p->count)
		return RM_OK;
	if (!device || device->card != mem->card)
		return RM_INVALID_PARENT;
	like.card = device->card;
	status = like.card->dead ? RM_GPU_IS_LOST : gpu_object_add(client, &like);
	if (!status)
		p->type[0] = RM_IMPORTED_VIDMEM;
	return status;
}

/* RM lock held */
static u32 gpu_rm_import(struct gpu_rm_client *client, struct rm_import *p)
{
	struct file *file = fget(p->fd);
	struct gpu_ctl *ctl;
	u32 status;

	if (!file)
		return RM_INVALID_PARAMETER;
	ctl = file->f_op == &gpu_ctl_fops ? file->private_data : NULL;
	status = gpu_rm_import_locked(client, p, ctl ? ctl->exported : NULL);
	/* the last reference is dropped when the task is back in user space, without the lock */
	fput(file);
	return status;
}

/* The descriptor names the memory. RM lock held. */
int gpu_rm_export(struct gpu_mem *mem, int fd)
{
	struct file *file = fget(fd);
	struct gpu_ctl *ctl;
	int ret = -EINVAL;

	gpu_rm_assert_held();
	if (!file)
		return -EBADF;
	ctl = file->f_op == &gpu_ctl_fops ? file->private_data : NULL;
	if (ctl && !ctl->exported) {
		gpu_mem_get(mem);
		mem->users++;
		ctl->exported = mem;
		ret = 0;
	}
	fput(file);
	return ret;
}

static u32 gpu_rm_control(struct gpu_ctl *ctl, const struct rm_control *c)
{
	u32 size = gpu_control_size(c->command), status = RM_OK;
	struct gpu_rm_client *client;
	union gpu_control p;

	if (!size)
		return RM_INVALID_COMMAND;
	if (c->size != size || c->flags)
		return RM_INVALID_PARAMS;
	if (copy_from_user(&p, u64_to_user_ptr(c->params), size))
		return RM_INVALID_ADDRESS;
	gpu_rm_lock();
	client = gpu_client_find(ctl, c->client);
	if (!client)
		status = RM_INVALID_CLIENT;
	else if (gpu_peers_size(c->command))
		status = gpu_peers_control(client, c->object, c->command, &p);
	else if (c->object != client->name)
		status = RM_NOT_FOUND;
	else if (c->command == RM_CTRL_PROBED_IDS)
		gpu_rm_probed(&p.probed);
	else if (c->command == RM_CTRL_ATTACH_IDS)
		status = gpu_rm_attach(client, &p.attach);
	else if (c->command == RM_CTRL_IMPORT)
		status = gpu_rm_import(client, &p.import);
	else
		status = gpu_rm_tell(c->command, &p);
	gpu_rm_unlock();
	if (copy_to_user(u64_to_user_ptr(c->params), &p, size))
		return RM_INVALID_ADDRESS;
	return status;
}

/*
 * RM lock held. Another name for memory of CUDA's, by what an IPC handle tells. The object is a
 * whole allocation of the card: small ones of CUDA share it.
 */
static u32 gpu_rm_dup_locked(struct gpu_ctl *ctl, const struct rm_dup *d)
{
	struct gpu_object like = { .name = d->object, .parent = d->parent,
				   .class = GPU_CLASS_MEMORY };
	struct gpu_rm_client *client = gpu_client_find(ctl, d->client);
	struct gpu_client *source = gpu_client_named(d->source_client);
	struct gpu_object *device;

	if (!client || !source)
		return RM_INVALID_CLIENT;
	if (d->flags)
		return RM_INVALID_FLAGS;
	device = gpu_object_find(client, d->parent, RM_CLASS_DEVICE);
	if (!device)
		return RM_INVALID_PARENT;
	if (source->tgid != client->tgid)
		return RM_NO_PERMISSION;
	like.mem = gpu_mem_named(source, d->source_object);
	if (!like.mem)
		return RM_NOT_FOUND;
	if (like.mem->card != device->card)
		return RM_INVALID_PARENT;
	like.card = device->card;
	return like.card->dead ? RM_GPU_IS_LOST : gpu_object_add(client, &like);
}

static u32 gpu_rm_dup(struct gpu_ctl *ctl, const struct rm_dup *d)
{
	u32 status;

	gpu_rm_lock();
	status = gpu_rm_dup_locked(ctl, d);
	gpu_rm_unlock();
	return status;
}

/* RM lock held */
static u32 gpu_rm_map_locked(struct file *file, struct file *node, const struct rm_map *m)
{
	struct gpu_rm_client *client = gpu_client_find(file->private_data, m->client);
	struct gpu_object *device, *memory;

	if (!client)
		return RM_INVALID_CLIENT;
	if (m->flags)
		return RM_INVALID_FLAGS;
	device = gpu_object_find(client, m->device, RM_CLASS_DEVICE);
	memory = gpu_object_find(client, m->memory, GPU_CLASS_MEMORY);
	if (!device || !memory)
		return RM_NOT_FOUND;
	if (memory->parent != device->name)
		return RM_INVALID_DEVICE;
	return gpu_node_show(node, file, memory, m->off, m->len);
}

static u32 gpu_rm_map(struct file *file, const struct rm_map *m)
{
	struct file *node = fget(m->fd);
	u32 status;

	if (!node)
		return RM_INVALID_ARGUMENT;
	gpu_rm_lock();
	status = gpu_rm_map_locked(file, node, m);
	gpu_rm_unlock();
	fput(node);
	return status;
}

/* As the real driver's, it does not look at the parent. */
static u32 gpu_rm_free(struct gpu_ctl *ctl, const struct rm_free *f)
{
	struct gpu_rm_client *client;
	struct gpu_object *object;
	u32 status = RM_OK;
	LIST_HEAD(gone);

	gpu_rm_lock();
	client = gpu_client_find(ctl, f->client);
	object = client ? xa_load(&client->objects, f->object) : NULL;
	if (!client)
		status = RM_INVALID_CLIENT;
	else if (f->object == client->name)
		gpu_client_end(client, &gone);
	else if (object)
		gpu_object_end(client, object, &gone);
	else
		status = RM_NOT_FOUND;
	gpu_rm_unlock();
	gpu_objects_free(&gone);
	return status;
}

/* -- the node -- */

union gpu_request {
	struct rm_alloc alloc;
	struct rm_control control;
	struct rm_dup dup;
	struct rm_map map;
	struct rm_free free;
};

/* -ENOTTY: no request; else the status is in it. */
static int gpu_ctl_request(struct file *file, unsigned int cmd, union gpu_request *r)
{
	struct gpu_ctl *ctl = file->private_data;

	switch (cmd) {
	case RM_IOC_ALLOC:
		r->alloc.status = gpu_rm_alloc(ctl, &r->alloc);
		return 0;
	case RM_IOC_CONTROL:
		r->control.status = gpu_rm_control(ctl, &r->control);
		return 0;
	case RM_IOC_DUP:
		r->dup.status = gpu_rm_dup(ctl, &r->dup);
		return 0;
	case RM_IOC_MAP:
		r->map.status = gpu_rm_map(file, &r->map);
		return 0;
	case RM_IOC_FREE:
		r->free.status = gpu_rm_free(ctl, &r->free);
		return 0;
	default:
		return -ENOTTY;
	}
}

static long gpu_ctl_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *p = (void __user *)arg;
	union gpu_request r;
	int ret = 0;

	if (_IOC_SIZE(cmd) > sizeof(r))
		return -ENOTTY;
	if (copy_from_user(&r, p, _IOC_SIZE(cmd)))
		return -EFAULT;
	/* what is there can always be given back */
	if (cmd != RM_IOC_FREE)
		ret = gpu_fault(GPU_FAULT_RM);
	if (!ret)
		ret = gpu_ctl_request(file, cmd, &r);
	if (ret)
		return ret;
	return copy_to_user(p, &r, _IOC_SIZE(cmd)) ? -EFAULT : 0;
}

/* No RM lock here: misc_open() holds a lock that all misc devices share. */
static int gpu_ctl_open(struct inode *inode, struct file *file)
{
	struct gpu_ctl *ctl = kzalloc(sizeof(*ctl), GFP_KERNEL_ACCOUNT);

	if (!ctl)
		return -ENOMEM;
	INIT_LIST_HEAD(&ctl->clients);
	file->private_data = ctl;
	return 0;
}

static int gpu_ctl_release(struct inode *inode, struct file *file)
{
	struct gpu_ctl *ctl = file->private_data;
	struct gpu_rm_client *client, *next;
	struct gpu_mem *mem = ctl->exported;
	bool last;
	LIST_HEAD(gone);

	gpu_rm_lock();
	list_for_each_entry_safe(client, next, &ctl->clients, link)
		gpu_client_end(client, &gone);
	last = mem && gpu_mem_unuse(mem);
	gpu_rm_unlock();
	gpu_objects_free(&gone);
	if (last)
		gpu_vram_release(mem);
	if (mem)
		gpu_mem_put(mem);
	kfree(ctl);
	return 0;
}

const struct file_operations gpu_ctl_fops = {
	.owner = THIS_MODULE,
	.open = gpu_ctl_open,
	.release = gpu_ctl_release,
	.unlocked_ioctl = gpu_ctl_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice gpu_ctl_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nvidiactl",
	.mode = 0666,
	.fops = &gpu_ctl_fops,
};

int gpu_rm_init(void)
{
	int ret = -ENOMEM;

	if (!rm)
		return 0;
	gpu_proc_top = proc_mkdir("driver/nvidia", NULL);
	if (gpu_proc_top)
		gpu_proc = proc_mkdir("gpus", gpu_proc_top);
	if (gpu_proc)
		ret = misc_register(&gpu_ctl_misc);
	if (ret) {
		pr_err("gpu-sim: no /dev/nvidiactl and /proc/driver/nvidia (%pe): is there a real GPU driver? rm=0 leaves them out\n",
		       ERR_PTR(ret));
		proc_remove(gpu_proc_top);
	}
	return ret;
}

void gpu_rm_exit(void)
{
	if (!gpu_proc)
		return;
	misc_deregister(&gpu_ctl_misc);
	proc_remove(gpu_proc_top);
}
