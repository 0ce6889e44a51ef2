// SPDX-License-Identifier: GPL-2.0-only
/*
 * rm_node.c - /dev/nvidiaN: what the CPU sees of memory that has a second name, and the
 * card's file below /proc/driver/nvidia/gpus. The rules of its objects are in gpu_rm.h.
 */
#include <linux/compat.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gpu_rm.h"

static const struct file_operations gpu_node_fops;

/* -- views -- */

/* It shows nothing any more; mappings may have pages yet. RM lock held. */
static void gpu_view_end(struct gpu_node *node)
{
	struct gpu_card *card = node->card;
	struct gpu_mem *mem = node->mem;

	gpu_rm_assert_held();
	down_write(&card->life);
	node->mem = NULL;
	up_write(&card->life);
	node->object = NULL;
	list_del_init(&node->link);
	card->nviews--;
	card->viewed -= node->len;
	gpu_mem_put(mem);
}

/* A name is freed: nobody sees the memory by it from here on. RM lock held. */
void gpu_node_forget(struct gpu_object *object)
{
	struct gpu_node *node, *next;

	list_for_each_entry_safe(node, next, &object->card->views, link) {
		if (node->object != object)
			continue;
		gpu_view_end(node);
		unmap_mapping_range(node->mapping, 0, 0, 1);
	}
}

/* The card is dead already: what is mapped faults from here on. RM lock held. */
void gpu_node_kill(struct gpu_card *card)
{
	struct gpu_node *node;

	list_for_each_entry(node, &card->views, link)
		unmap_mapping_range(node->mapping, 0, 0, 1);
}

/*
 * The file is to show len bytes of the object from off on, when it is mmapped. Returns a
 * status. RM lock held.
 */
u32 gpu_node_show(struct file *file, struct file *ctl, struct gpu_object *object, u64 off, u64 len)
{
	struct gpu_node *node = file->private_data;
	struct gpu_card *card = object->card;
	struct gpu_mem *mem = object->mem;

	gpu_rm_assert_held();
	if (file->f_op != &gpu_node_fops || node->ctl != ctl || node->card != card)
		return RM_INVALID_ARGUMENT;
	if (node->len)
		return RM_STATE_IN_USE;
	if (card->dead)
		return RM_GPU_IS_LOST;
	if (!PAGE_ALIGNED(off) || !PAGE_ALIGNED(len))
		return RM_INVALID_ARGUMENT;
	if (off >= mem->size)
		return RM_INVALID_BASE;
	if (!len || len > mem->size - off)
		return RM_INVALID_LIMIT;
	if (card->pinned + card->viewed + len > gpu_fault_bar1_bytes())
		return RM_NO_RESOURCES;
	gpu_mem_get(mem);
	down_write(&card->life);
	node->mem = mem;
	node->off = off;
	node->len = len;
	node->lie = min(gpu_fault_rm_lie(), mem->size - PAGE_SIZE);
	up_write(&card->life);
	node->object = object;
	list_add_tail(&node->link, &card->views);
	card->nviews++;
	card->viewed += len;
	return RM_OK;
}

/* card->life held; off: in the view */
static unsigned long gpu_view_pfn(const struct gpu_node *node, u64 off)
{
	u64 at = node->off + node->lie + off;

	if (at >= node->mem->size)
		at -= node->mem->size;
	return (gpu_page_phys(node->mem, at >> GPU_SIM_PAGE_SHIFT) + at % GPU_SIM_PAGE_SIZE) >>
	       PAGE_SHIFT;
}

/* Fills the 2 MiB around the address. The mapping holds the file, and so the node. */
static vm_fault_t gpu_view_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct gpu_node *node = vma->vm_file->private_data;
	unsigned long addr = max(vmf->address & ~(GPU_SIM_BLOCK_SIZE - 1UL), vma->vm_start);
	unsigned long end = min((vmf->address | (GPU_SIM_BLOCK_SIZE - 1UL)) + 1, vma->vm_end);
	vm_fault_t ret = VM_FAULT_SIGBUS;
	u64 off;

	off = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (addr - vma->vm_start);
	down_read(&node->card->life);
	if (!node->mem || node->card->dead)
		goto unlock;
	for (; addr < end && off < node->len; addr += PAGE_SIZE, off += PAGE_SIZE) {
		ret = vmf_insert_pfn(vma, addr, gpu_view_pfn(node, off));
		if (ret != VM_FAULT_NOPAGE)
			break;
	}
unlock:
	up_read(&node->card->life);
	return ret;
}

static const struct vm_operations_struct gpu_view_ops = {
	.fault = gpu_view_fault,
};

/* -- the node -- */

static int gpu_node_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned long flags = VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY;
	struct gpu_node *node = file->private_data;
	int ret = 0;

	if (node->tgid != task_tgid(current))
		return -EPERM;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	down_read(&node->card->life);
	if (!node->mem || node->card->dead)
		ret = -EINVAL;
	else if (vma->vm_pgoff || vma->vm_end - vma->vm_start != node->len)
		ret = -ENXIO;
	up_read(&node->card->life);
	if (ret)
		return ret;
#ifdef HAVE_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
	vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	vma->vm_ops = &gpu_view_ops;
	return 0;
}

/* Once, and before it can have a view. */
static long gpu_node_register(struct gpu_node *node, void __user *arg)
{
	struct rm_register_fd reg;
	struct file *ctl;
	int ret;

	if (copy_from_user(&reg, arg, sizeof(reg)))
		return -EFAULT;
	ret = gpu_fault(GPU_FAULT_RM);
	if (ret)
		return ret;
	ctl = fget(reg.control);
	if (!ctl)
		return -EINVAL;
	ret = -EINVAL;
	gpu_rm_lock();
	if (ctl->f_op == &gpu_ctl_fops && !node->ctl) {
		node->ctl = ctl;
		ret = 0;
	}
	gpu_rm_unlock();
	if (ret)
		fput(ctl);
	return ret;
}

static long gpu_node_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct gpu_node *node = file->private_data;

	if (node->tgid != task_tgid(current))
		return -EPERM;
	return cmd == RM_IOC_REGISTER_FD ? gpu_node_register(node, (void __user *)arg) : -ENOTTY;
}

/* No RM lock here: misc_open() holds a lock that all misc devices share. */
static int gpu_node_open(struct inode *inode, struct file *file)
{
	struct gpu_card *card = container_of(file->private_data, struct gpu_card, node);
	struct gpu_node *node = kzalloc(sizeof(*node), GFP_KERNEL_ACCOUNT);

	if (!node)
		return -ENOMEM;
	node->card = card;
	gpu_card_get(card);
	node->tgid = get_pid(task_tgid(current));
	node->mapping = file->f_mapping;
	INIT_LIST_HEAD(&node->link);
	file->private_data = node;
	return 0;
}

static int gpu_node_release(struct inode *inode, struct file *file)
{
	struct gpu_node *node = file->private_data;

	gpu_rm_lock();
	if (node->object)
		gpu_view_end(node);
	gpu_rm_unlock();
	if (node->ctl)
		fput(node->ctl);
	put_pid(node->tgid);
	gpu_card_put(node->card);
	kfree(node);
	return 0;
}

static const struct file_operations gpu_node_fops = {
	.owner = THIS_MODULE,
	.open = gpu_node_open,
	.release = gpu_node_release,
	.unlocked_ioctl = gpu_node_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = gpu_node_mmap,
};

/* -- a card comes and goes -- */

static int gpu_information(struct seq_file *m, void *v)
{
	struct gpu_card *card = m->private;

	seq_printf(m, "Model: \t\t %s\n",
		   gpu_peers_decide() ? GPU_SIM_GEFORCE_NAME : GPU_SIM_NAME);
	seq_printf(m, "GPU UUID: \t GPU-%pUb\n", card->uuid);
	seq_printf(m, "Bus Location: \t %s\n", pci_name(card->pdev));
	seq_printf(m, "Device Minor: \t %u\n", card->index);
	seq_puts(m, "GPU Excluded:\t No\n");
	return 0;
}

int gpu_node_add(struct gpu_card *card)
{
	int ret;

	snprintf(card->node_name, sizeof(card->node_name), "nvidia%u", card->index);
	if (!gpu_proc)
		return 0;
	card->node.minor = MISC_DYNAMIC_MINOR;
	card->node.name = card->node_name;
	card->node.mode = 0666;
	card->node.fops = &gpu_node_fops;
	card->node.parent = &card->pdev->dev;
	ret = misc_register(&card->node);
	if (ret)
		return ret;
	card->proc = proc_mkdir(pci_name(card->pdev), gpu_proc);
	if (card->proc && proc_create_single_data("information", 0444, card->proc,
						  gpu_information, card))
		return 0;
	proc_remove(card->proc);
	misc_deregister(&card->node);
	return -ENOMEM;
}

/* After this nobody opens the node any more, and nobody reads of the card; open files live on. */
void gpu_node_del(struct gpu_card *card)
{
	if (!gpu_proc)
		return;
	proc_remove(card->proc);
	misc_deregister(&card->node);
}
