// SPDX-License-Identifier: GPL-2.0-only
/*
 * dev.c - /dev/gpu-simN: allocations of a process, and its own mappings of them.
 *
 * An allocation belongs to the process (thread group) that opened the file. It ends by
 * FREE or with the last close; then its mappings are zapped, the free callbacks of its
 * pins run, and its pages go back when no persistent pin holds them.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gpu_sim.h"

#define GPU_MAX_MEMS 65536	/* allocations of one file */
#define GPU_MAX_PIECES 65536	/* pieces that one WHERE tells */
#define GPU_MAX_VA (1ULL << 56)
#define GPU_FIRST_OBJECT 0x5c000001U	/* far from the names that clients of the RM choose */

static void gpu_mem_free_struct(struct kref *ref)
{
	struct gpu_mem *mem = container_of(ref, struct gpu_mem, ref);

	gpu_card_put(mem->card);
	kvfree(mem);
}

void gpu_mem_get(struct gpu_mem *mem)
{
	kref_get(&mem->ref);
}

void gpu_mem_put(struct gpu_mem *mem)
{
	kref_put(&mem->ref, gpu_mem_free_struct);
}

/* True: that was the last user, call gpu_vram_release() without the RM lock. RM lock held. */
bool gpu_mem_unuse(struct gpu_mem *mem)
{
	gpu_rm_assert_held();
	return --mem->users == 0;
}

/* The first live allocation of the process that has a byte in the range. RM lock held. */
static struct gpu_mem *gpu_mem_overlap(struct pid *tgid, u64 va, u64 len)
{
	struct gpu_client *client;
	struct gpu_card *card;
	struct gpu_mem *mem;

	gpu_rm_assert_held();
	list_for_each_entry(card, &gpu_cards, link) {
		list_for_each_entry(client, &card->clients, link) {
			if (client->tgid != tgid)
				continue;
			list_for_each_entry(mem, &client->mems, link) {
				if (mem->va && va < mem->va + mem->size && mem->va < va + len)
					return mem;
			}
		}
	}
	return NULL;
}

/* The allocation of the process that holds the whole range, or NULL. RM lock held. */
struct gpu_mem *gpu_mem_find(struct pid *tgid, u64 va, u64 len)
{
	struct gpu_mem *mem;

	if (!len || va >= GPU_MAX_VA || len > GPU_MAX_VA)
		return NULL;
	mem = gpu_mem_overlap(tgid, va, len);
	if (!mem || va < mem->va || va + len > mem->va + mem->size)
		return NULL;
	return mem;
}

/* Caller holds the RM lock or card->life. */
static struct gpu_mem *gpu_mem_by_handle(struct gpu_client *client, u64 handle)
{
	struct gpu_mem *mem;

	list_for_each_entry(mem, &client->mems, link) {
		if (mem->handle == handle)
			return mem;
	}
	return NULL;
}

/* The open file that CUDA IPC handles name so. RM lock held. */
struct gpu_client *gpu_client_named(u32 name)
{
	struct gpu_client *client;
	struct gpu_card *card;

	gpu_rm_assert_held();
	list_for_each_entry(card, &gpu_cards, link) {
		list_for_each_entry(client, &card->clients, link) {
			if (client->rm_name == name)
				return client;
		}
	}
	return NULL;
}

/* Its allocation of that name, or NULL: there is none, or not any more. RM lock held. */
struct gpu_mem *gpu_mem_named(struct gpu_client *client, u32 object)
{
	struct gpu_mem *mem;

	gpu_rm_assert_held();
	list_for_each_entry(mem, &client->mems, link) {
		if (mem->object == object)
			return mem;
	}
	return NULL;
}

/*
 * End an allocation: no mapping shows it any more, no look-up finds it, callbacks have
 * run. RM lock held; true as gpu_mem_unuse(), the caller has the list's reference now.
 */
static bool gpu_mem_retire(struct gpu_client *client, struct gpu_mem *mem)
{
	down_write(&mem->card->life);
	mem->freed = true;
	list_del_init(&mem->link);
	up_write(&mem->card->life);
	client->nmems--;
	ida_free(&client->objects, mem->object);
	unmap_mapping_range(client->mapping, mem->handle, mem->size, 1);
	gpu_p2p_revoke(mem);
	return gpu_mem_unuse(mem);
}

static int gpu_open(struct inode *inode, struct file *file)
{
	struct gpu_card *card = container_of(file->private_data, struct gpu_card, misc);
	struct gpu_client *client;

	client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	if (!client)
		return -ENOMEM;
	client->card = card;
	gpu_card_get(card);
	client->tgid = get_pid(task_tgid(current));
	client->mapping = file->f_mapping;
	client->pattern = GPU_SIM_CONTIG;
	client->rm_name = gpu_rm_new_client();
	ida_init(&client->objects);
	INIT_LIST_HEAD(&client->link);
	INIT_LIST_HEAD(&client->mems);
	/* no RM lock here: misc_open() holds a lock that all misc devices share */
	file->private_data = client;
	return 0;
}

static int gpu_release(struct inode *inode, struct file *file)
{
	struct gpu_client *client = file->private_data;
	struct gpu_mem *mem;
	bool last;

	gpu_rm_lock();
	while ((mem = list_first_entry_or_null(&client->mems, struct gpu_mem, link))) {
		last = gpu_mem_retire(client, mem);
		gpu_rm_unlock();
		if (last)
			gpu_vram_release(mem);
		gpu_mem_put(mem);
		gpu_rm_lock();
	}
	list_del(&client->link);
	gpu_rm_unlock();
	put_pid(client->tgid);
	gpu_card_put(client->card);
	ida_destroy(&client->objects);
	kfree(client);
	return 0;
}

static long gpu_ioctl_info(struct gpu_client *client, void __user *arg)
{
	struct gpu_card *card = client->card;
	struct gpu_sim_info info = {
		.abi = GPU_SIM_ABI,
		.index = card->index,
		.pci_domain = pci_domain_nr(card->pdev->bus),
		.pci_bdf = pci_dev_id(card->pdev),
		.vram_bytes = (u64)card->npages << GPU_SIM_PAGE_SHIFT,
		.free_bytes = (u64)READ_ONCE(card->nfree) << GPU_SIM_PAGE_SHIFT,
		.poison = GPU_SIM_POISON,
		.page_size = GPU_SIM_PAGE_SIZE,
		.flags = gpu_vram_poisons() ? GPU_SIM_INFO_POISONS : 0,
		.name = GPU_SIM_NAME,
		.rm_client = client->rm_name,
	};

	memcpy(info.uuid, card->uuid, sizeof(info.uuid));
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

/* RM lock held. */
static int gpu_mem_add(struct gpu_client *client, struct gpu_mem *mem, u32 pattern, u64 seed)
{
	struct gpu_card *card = client->card;
	int ret;

	if (card->dead)
		return -ENODEV;
	if (client->nmems >= GPU_MAX_MEMS)
		return -ENOMEM;
	if (mem->va && gpu_mem_overlap(client->tgid, mem->va, mem->size))
		return -EEXIST;
	if (pattern == GPU_SIM_DEFAULT) {
		pattern = client->pattern;
		seed = client->seed;
	}
	ret = ida_alloc_min(&client->objects, GPU_FIRST_OBJECT, GFP_KERNEL);
	if (ret < 0)
		return ret;
	mem->object = ret;
	ret = gpu_vram_take(card, mem, pattern, seed);
	if (ret) {
		ida_free(&client->objects, mem->object);
		return ret;
	}
	mem->handle = card->next_handle;
	card->next_handle += mem->size;
	client->nmems++;
	if (list_empty(&client->link))
		list_add_tail(&client->link, &card->clients);
	down_write(&card->life);
	list_add_tail(&mem->link, &client->mems);
	up_write(&card->life);
	return 0;
}

static long gpu_free_handle(struct gpu_client *client, u64 handle)
{
	struct gpu_mem *mem;
	bool last = false;

	gpu_rm_lock();
	mem = gpu_mem_by_handle(client, handle);
	if (mem)
		last = gpu_mem_retire(client, mem);
	gpu_rm_unlock();
	if (!mem)
		return -ENOENT;
	if (last)
		gpu_vram_release(mem);
	gpu_mem_put(mem);
	return 0;
}

static long gpu_ioctl_alloc(struct gpu_client *client, void __user *arg)
{
	struct gpu_card *card = client->card;
	struct gpu_sim_alloc a;
	struct gpu_mem *mem;
	u32 npages;
	long ret;

	if (copy_from_user(&a, arg, sizeof(a)))
		return -EFAULT;
	if (!a.size || a.pattern >= GPU_SIM_PATTERNS ||
	    !IS_ALIGNED(a.va, GPU_SIM_PAGE_SIZE) || a.va >= GPU_MAX_VA)
		return -EINVAL;
	if (a.size > (u64)card->npages << GPU_SIM_PAGE_SHIFT)
		return -ENOMEM;
	ret = gpu_fault(GPU_FAULT_ALLOC);
	if (ret)
		return ret;
	npages = DIV_ROUND_UP_ULL(a.size, GPU_SIM_PAGE_SIZE);
	mem = kvzalloc(struct_size(mem, page, npages), GFP_KERNEL_ACCOUNT);
	if (!mem)
		return -ENOMEM;
	kref_init(&mem->ref);
	INIT_LIST_HEAD(&mem->link);
	INIT_LIST_HEAD(&mem->pins);
	mem->card = card;
	gpu_card_get(card);
	mem->va = a.va;
	mem->size = (u64)npages << GPU_SIM_PAGE_SHIFT;
	mem->npages = npages;

	gpu_rm_lock();
	ret = gpu_mem_add(client, mem, a.pattern, a.seed);
	a.handle = mem->handle;
	a.object = mem->object;
	a.size = mem->size;
	gpu_rm_unlock();
	if (ret) {
		gpu_mem_put(mem);
		return ret;
	}
	if (copy_to_user(arg, &a, sizeof(a))) {
		gpu_free_handle(client, a.handle);
		return -EFAULT;
	}
	return 0;
}

static long gpu_ioctl_free(struct gpu_client *client, void __user *arg)
{
	struct gpu_sim_free f;

	if (copy_from_user(&f, arg, sizeof(f)))
		return -EFAULT;
	if (f.reserved)
		return -EINVAL;
	return gpu_free_handle(client, f.handle);
}

static long gpu_map_locked(struct gpu_client *client, const struct gpu_sim_map *m)
{
	struct gpu_mem *mem = gpu_mem_by_handle(client, m->handle);

	if (!mem)
		return -ENOENT;
	if (!m->va) {
		gpu_p2p_revoke(mem);
		mem->va = 0;
		return 0;
	}
	if (mem->va)
		return -EBUSY;
	if (gpu_mem_overlap(client->tgid, m->va, mem->size))
		return -EEXIST;
	mem->va = m->va;
	return 0;
}

static long gpu_ioctl_map(struct gpu_client *client, void __user *arg)
{
	struct gpu_sim_map m;
	long ret;

	if (copy_from_user(&m, arg, sizeof(m)))
		return -EFAULT;
	if (!IS_ALIGNED(m.va, GPU_SIM_PAGE_SIZE) || m.va >= GPU_MAX_VA)
		return -EINVAL;
	gpu_rm_lock();
	ret = gpu_map_locked(client, &m);
	gpu_rm_unlock();
	return ret;
}

static long gpu_ioctl_export(struct gpu_client *client, void __user *arg)
{
	struct gpu_sim_export e;
	struct gpu_mem *mem;
	long ret = -ENOENT;

	if (copy_from_user(&e, arg, sizeof(e)))
		return -EFAULT;
	if (e.reserved)
		return -EINVAL;
	gpu_rm_lock();
	mem = gpu_mem_by_handle(client, e.handle);
	if (mem)
		ret = gpu_rm_export(mem, e.fd);
	gpu_rm_unlock();
	return ret;
}

static long gpu_ioctl_pattern(struct gpu_client *client, void __user *arg)
{
	struct gpu_sim_pattern_arg p;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	if (p.reserved || p.pattern == GPU_SIM_DEFAULT || p.pattern >= GPU_SIM_PATTERNS)
		return -EINVAL;
	gpu_rm_lock();
	client->pattern = p.pattern;
	client->seed = p.seed;
	gpu_rm_unlock();
	return 0;
}

/* Cut [off, off + len) of mem at physical breaks; returns the number of pieces. */
static u32 gpu_mem_pieces(const struct gpu_mem *mem, u64 off, u64 len,
			  struct gpu_sim_piece *pieces, u32 room)
{
	u64 done = 0, card_off, next = 0, chunk;
	u32 n = 0;

	while (done < len) {
		card_off = ((u64)mem->page[(off + done) >> GPU_SIM_PAGE_SHIFT]
			    << GPU_SIM_PAGE_SHIFT) + (off + done) % GPU_SIM_PAGE_SIZE;
		chunk = min(len - done, GPU_SIM_PAGE_SIZE - (off + done) % GPU_SIM_PAGE_SIZE);
		if (!n || card_off != next) {
			if (n < room)
				pieces[n] = (struct gpu_sim_piece){
					.card = mem->card->index,
					.card_off = card_off,
					.buf_off = done,
				};
			n++;
		}
		if (n <= room)
			pieces[n - 1].len += chunk;
		next = card_off + chunk;
		done += chunk;
	}
	return n;
}

static long gpu_ioctl_where(struct gpu_client *client, void __user *arg)
{
	struct gpu_sim_piece *pieces = NULL;
	struct gpu_sim_where w;
	struct gpu_mem *mem;
	long ret = 0;
	u32 n = 0;

	if (copy_from_user(&w, arg, sizeof(w)))
		return -EFAULT;
	if (w.reserved || !w.len || w.count > GPU_MAX_PIECES)
		return -EINVAL;
	if (w.count) {
		pieces = kvcalloc(w.count, sizeof(*pieces), GFP_KERNEL_ACCOUNT);
		if (!pieces)
			return -ENOMEM;
	}
	gpu_rm_lock();
	mem = gpu_mem_find(client->tgid, w.va, w.len);
	if (mem)
		n = gpu_mem_pieces(mem, w.va - mem->va, w.len, pieces, w.count);
	gpu_rm_unlock();
	if (!mem)
		ret = -ENOENT;
	else if (copy_to_user(u64_to_user_ptr(w.pieces), pieces,
			      min(n, w.count) * sizeof(*pieces)))
		ret = -EFAULT;
	kvfree(pieces);
	if (ret)
		return ret;
	w.count = n;
	return copy_to_user(arg, &w, sizeof(w)) ? -EFAULT : 0;
}

static long gpu_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct gpu_client *client = file->private_data;
	void __user *p = (void __user *)arg;

	if (cmd == GPU_SIM_IOC_INFO)
		return gpu_ioctl_info(client, p);
	if (client->tgid != task_tgid(current))
		return -EPERM;
	switch (cmd) {
	case GPU_SIM_IOC_ALLOC:
		return gpu_ioctl_alloc(client, p);
	case GPU_SIM_IOC_FREE:
		return gpu_ioctl_free(client, p);
	case GPU_SIM_IOC_PATTERN:
		return gpu_ioctl_pattern(client, p);
	case GPU_SIM_IOC_WHERE:
		return gpu_ioctl_where(client, p);
	case GPU_SIM_IOC_MAP:
		return gpu_ioctl_map(client, p);
	case GPU_SIM_IOC_EXPORT:
		return gpu_ioctl_export(client, p);
	default:
		return -ENOTTY;
	}
}

static void gpu_vma_open(struct vm_area_struct *vma)
{
	gpu_mem_get(vma->vm_private_data);
}

static void gpu_vma_close(struct vm_area_struct *vma)
{
	gpu_mem_put(vma->vm_private_data);
}

/* Fills the 2 MiB around the address, so that a copy faults once for each. */
static vm_fault_t gpu_vma_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct gpu_mem *mem = vma->vm_private_data;
	unsigned long addr = max(vmf->address & ~(GPU_SIM_BLOCK_SIZE - 1UL), vma->vm_start);
	unsigned long end = min((vmf->address | (GPU_SIM_BLOCK_SIZE - 1UL)) + 1, vma->vm_end);
	vm_fault_t ret = VM_FAULT_SIGBUS;
	u64 off;

	/* open coded offset: vm_pgoff counts from the handle, whatever was split or moved */
	off = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (addr - vma->vm_start) - mem->handle;
	down_read(&mem->card->life);
	if (mem->freed || mem->card->dead)
		goto unlock;
	for (; addr < end && off < mem->size; addr += PAGE_SIZE, off += PAGE_SIZE) {
		ret = vmf_insert_pfn(vma, addr,
				     (gpu_page_phys(mem, off >> GPU_SIM_PAGE_SHIFT) +
				      off % GPU_SIM_PAGE_SIZE) >> PAGE_SHIFT);
		if (ret != VM_FAULT_NOPAGE)
			break;
	}
unlock:
	up_read(&mem->card->life);
	return ret;
}

static const struct vm_operations_struct gpu_vm_ops = {
	.open = gpu_vma_open,
	.close = gpu_vma_close,
	.fault = gpu_vma_fault,
};

static int gpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct gpu_client *client = file->private_data;
	unsigned long flags = VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY;
	u64 handle = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct gpu_mem *mem;

	if (client->tgid != task_tgid(current))
		return -EPERM;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	down_read(&client->card->life);
	mem = gpu_mem_by_handle(client, handle);
	if (mem)
		gpu_mem_get(mem);
	up_read(&client->card->life);
	if (!mem)
		return -ENOENT;
	if (vma->vm_end - vma->vm_start > mem->size) {
		gpu_mem_put(mem);
		return -EINVAL;
	}
#ifdef HAVE_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
	vma->vm_page_prot = gpu_wc ? pgprot_writecombine(vma->vm_page_prot) :
				     pgprot_noncached(vma->vm_page_prot);
	vma->vm_private_data = mem;
	vma->vm_ops = &gpu_vm_ops;
	return 0;
}

static const struct file_operations gpu_fops = {
	.owner = THIS_MODULE,
	.open = gpu_open,
	.release = gpu_release,
	.unlocked_ioctl = gpu_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = gpu_mmap,
};

int gpu_dev_register(struct gpu_card *card)
{
	snprintf(card->name, sizeof(card->name), "gpu-sim%u", card->index);
	card->misc.minor = MISC_DYNAMIC_MINOR;
	card->misc.name = card->name;
	card->misc.mode = 0666;
	card->misc.fops = &gpu_fops;
	card->misc.parent = &card->pdev->dev;
	return misc_register(&card->misc);
}

/* After this nobody opens the card any more; open files live on. */
void gpu_dev_unregister(struct gpu_card *card)
{
	misc_deregister(&card->misc);
}

/*
 * The card goes away: what is allocated stays allocated for its owner, but nothing
 * touches the BAR after this, and callback pins have had their callback.
 */
void gpu_dev_kill(struct gpu_card *card)
{
	struct gpu_client *client;
	struct gpu_mem *mem;

	gpu_rm_lock();
	down_write(&card->life);
	card->dead = true;
	up_write(&card->life);
	list_for_each_entry(client, &card->clients, link) {
		unmap_mapping_range(client->mapping, 0, 0, 1);
		list_for_each_entry(mem, &client->mems, link)
			gpu_p2p_revoke(mem);
	}
	gpu_node_kill(card);
	list_del_init(&card->link);
	gpu_rm_unlock();
}
