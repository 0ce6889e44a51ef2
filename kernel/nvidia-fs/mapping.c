// SPDX-License-Identifier: GPL-2.0-only
/*
 * mapping.c - the object behind one mmap of a device node, from mmap over MAP to its end.
 *
 * The user's pages of the mapping carry nothing: they exist so that the address is the
 * caller's own, and hold zeroes when touched. What stands for GPU memory during I/O are
 * the carriers, which no process can reach.
 */
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "log.h"
#include "p2p.h"
#include "trace.h"
#include "view.h"

static DEFINE_HASHTABLE(nvfs_hash, 12);		/* by (mm, cpuvaddr) */
static DEFINE_SPINLOCK(nvfs_hash_lock);		/* writers; readers use RCU */
static struct workqueue_struct *nvfs_teardown_wq;

static unsigned long nvfs_hash_key(struct mm_struct *mm, unsigned long cpuvaddr)
{
	return (unsigned long)mm ^ (cpuvaddr >> PAGE_SHIFT);
}

/* The caller's mapping that starts at cpuvaddr, with a reference, or NULL. */
struct nvfs_mapping *nvfs_mapping_get(u64 cpuvaddr)
{
	struct mm_struct *mm = current->mm;
	struct nvfs_mapping *m;

	rcu_read_lock();
	hash_for_each_possible_rcu(nvfs_hash, m, node, nvfs_hash_key(mm, cpuvaddr)) {
		if (m->mm == mm && m->cpuvaddr == cpuvaddr && kref_get_unless_zero(&m->ref)) {
			rcu_read_unlock();
			return m;
		}
	}
	rcu_read_unlock();
	return NULL;
}

/* Undo what MAP set up; nobody else has access any more, or MAP itself failed. */
static void nvfs_mapping_unmap(struct nvfs_mapping *m)
{
	nvfs_p2p_unmap(m);
	nvfs_peers_unmap(m);
	nvfs_gpu_unpin(m);
	nvfs_user_uncharge(m->user, NVFS_CHARGE_PINNED, m->charged);
	m->charged = 0;
	nvfs_carriers_free(m);
	if (m->fence) {
		unpin_user_pages_dirty_lock(&m->fence, 1, true);
		m->fence = NULL;
	}
}

static void nvfs_mapping_teardown(struct work_struct *work)
{
	struct nvfs_mapping *m = container_of(work, struct nvfs_mapping, teardown);

	trace_nvfs_die(m, NVFS_DEATH_GONE);
	if (m->mapped) {
		nvfs_dbg("the mapping at 0x%lx is torn down\n", m->cpuvaddr);
		nvfs_mapping_unmap(m);
		nvfs_stat_inc(NVFS_ST_MAP_FREE);
		nvfs_stat_dec(NVFS_ST_MAP_ACTIVE);
	}
	nvfs_stat_add(NVFS_ST_SHADOW_BYTES, -(s64)m->vma_size);
	nvfs_user_uncharge(m->user, NVFS_CHARGE_SHADOW, m->vma_size);
	nvfs_user_put(m->user);
	kfree_rcu(m, rcu);
}

static void nvfs_mapping_release(struct kref *ref)
{
	struct nvfs_mapping *m = container_of(ref, struct nvfs_mapping, ref);

	queue_work(nvfs_teardown_wq, &m->teardown);
}

/* Any context. */
void nvfs_mapping_put(struct nvfs_mapping *m)
{
	kref_put(&m->ref, nvfs_mapping_release);
}

/* Keep pin and DMA mappings usable until nvfs_mapping_leave(). */
bool nvfs_mapping_enter(struct nvfs_mapping *m, enum nvfs_state *why)
{
	bool ok;

	if (nvfs_fault(NVFS_FAULT_TRANSIT)) {
		*why = NVFS_REVOKED;
		return false;
	}
	spin_lock(&m->lock);
	ok = m->state == NVFS_READY;
	if (ok)
		m->users++;
	*why = m->state;
	spin_unlock(&m->lock);
	return ok;
}

/*
 * The GPU memory goes: no new request. Whoever calls this then waits until `users` is 0. freed:
 * by the GPU driver's free callback, so the pin goes with it. Process context.
 */
void nvfs_mapping_revoke(struct nvfs_mapping *m, bool freed)
{
	spin_lock(&m->lock);
	if (freed)
		m->pin.gone = true;
	if (m->state != NVFS_CLOSED)
		m->state = NVFS_REVOKED;
	if (m->users)
		nvfs_stat_inc(NVFS_ST_DELAY_FREE);
	spin_unlock(&m->lock);
	nvfs_blocks_wake_all(m);
}

void nvfs_mapping_leave(struct nvfs_mapping *m)
{
	spin_lock(&m->lock);
	if (!--m->users && wq_has_sleeper(&m->idle))
		wake_up_all(&m->idle);
	spin_unlock(&m->lock);
}

/* -- the VMA -- */

/*
 * A second VMA of the same mapping (fork after MADV_DOFORK, the new place of a refused
 * mremap): it is not the caller's handle, so it has no mapping and faults on touch.
 */
static void nvfs_vma_open(struct vm_area_struct *vma)
{
	vma->vm_private_data = NULL;
}

/*
 * It takes no new request, and nobody finds it any more. Drops the VMA's reference. UNMAP
 * does not come between a MAP: -EBUSY, and nothing is done. mmap_lock held for writing.
 */
static int nvfs_mapping_close(struct nvfs_mapping *m, enum nvfs_death why)
{
	int r = 0;

	spin_lock(&m->lock);
	if (why == NVFS_DEATH_UNMAP && m->state == NVFS_INIT)
		r = -EBUSY;
	else
		m->state = NVFS_CLOSED;
	spin_unlock(&m->lock);
	if (r)
		return r;

	trace_nvfs_die(m, why);
	nvfs_stat_inc(NVFS_ST_MUNMAP);
	spin_lock(&nvfs_hash_lock);
	hash_del_rcu(&m->node);
	spin_unlock(&nvfs_hash_lock);
	nvfs_blocks_wake_all(m);
	nvfs_mapping_put(m);
	return 0;
}

static void nvfs_vma_close(struct vm_area_struct *vma)
{
	struct nvfs_mapping *m = vma->vm_private_data;

	vma->vm_private_data = NULL;
	if (m)
		nvfs_mapping_close(m, NVFS_DEATH_MUNMAP);
}

/* The handle is one piece: an unmap or mprotect of a part of it is refused. */
static int nvfs_vma_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -ENOMEM;
}

/* ... and stays where it is: its address is its identity. */
static int nvfs_vma_mremap(struct vm_area_struct *vma)
{
	return -ENOMEM;
}

/* A touch finds a zeroed page of its own, also again after MADV_DONTNEED. */
static vm_fault_t nvfs_vma_fault(struct vm_fault *vmf)
{
	struct page *page;
	int r;

	if (!vmf->vma->vm_private_data)
		return VM_FAULT_SIGBUS;
	page = alloc_page(GFP_HIGHUSER | __GFP_ZERO | __GFP_ACCOUNT);
	if (!page)
		return VM_FAULT_OOM;
	r = nvfs_fault(NVFS_FAULT_INSERT_PAGE) ? -EFAULT :
	    vm_insert_page(vmf->vma, vmf->address & PAGE_MASK, page);
	put_page(page);
	if (r && r != -EBUSY)		/* -EBUSY: another thread was quicker */
		return r == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
	return VM_FAULT_NOPAGE;
}

static const struct vm_operations_struct nvfs_vm_ops = {
	.open = nvfs_vma_open,
	.close = nvfs_vma_close,
	.may_split = nvfs_vma_may_split,
	.mremap = nvfs_vma_mremap,
	.fault = nvfs_vma_fault,
};

/* Of every range of ours in a process: not grown, not dumped, not inherited, not run. */
void nvfs_vma_flags(struct vm_area_struct *vma)
{
	const vm_flags_t set = VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY;

#ifdef HAVE_VM_FLAGS_SET
	vm_flags_mod(vma, set, VM_MAYEXEC);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~VM_MAYEXEC;
#endif
}

static int nvfs_mmap_check(const struct vm_area_struct *vma, size_t len)
{
	const vm_flags_t want = VM_READ | VM_WRITE | VM_MAYREAD | VM_MAYWRITE | VM_SHARED;

	if (vma->vm_pgoff)
		return -EIO;
	if (len > NVFS_MAX_SHADOW_SIZE)
		return -EINVAL;
	if (len < NVFS_GPU_PAGE_SIZE ? len % NVFS_BLOCK_SIZE : len % NVFS_GPU_PAGE_SIZE)
		return -EINVAL;
	if ((vma->vm_flags & want) != want || (vma->vm_flags & VM_EXEC))
		return -EINVAL;
	return 0;
}

int nvfs_mmap(struct file *file, struct vm_area_struct *vma)
{
	size_t len = vma->vm_end - vma->vm_start;
	struct nvfs_mapping *m;
	int r;

	if (vma->vm_pgoff) {
		r = nvfs_view_mmap(file, vma);
		if (r != -EIO)
			return r;
	}
	nvfs_stat_inc(NVFS_ST_MMAP);
	r = nvfs_mmap_check(vma, len);
	if (r)
		goto err;
	r = -ENOMEM;
	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		goto err;
	m->user = nvfs_user_get();
	if (!m->user)
		goto free;
	r = nvfs_user_charge(m->user, NVFS_CHARGE_SHADOW, len);
	if (r)
		goto put_user;
	m->mm = vma->vm_mm;
	m->cpuvaddr = vma->vm_start;
	m->vma_size = len;
	kref_init(&m->ref);
	spin_lock_init(&m->lock);
	mutex_init(&m->sparse_lock);
	init_waitqueue_head(&m->idle);
	INIT_LIST_HEAD(&m->waiters);
	INIT_LIST_HEAD(&m->pinned);
	INIT_WORK(&m->teardown, nvfs_mapping_teardown);
	m->state = NVFS_FREE;

	nvfs_vma_flags(vma);
	vma->vm_ops = &nvfs_vm_ops;
	vma->vm_private_data = m;
	spin_lock(&nvfs_hash_lock);
	hash_add_rcu(nvfs_hash, &m->node, nvfs_hash_key(m->mm, m->cpuvaddr));
	spin_unlock(&nvfs_hash_lock);
	nvfs_stat_inc(NVFS_ST_MMAP_OK);
	nvfs_stat_add(NVFS_ST_SHADOW_BYTES, len);
	return 0;
put_user:
	nvfs_user_put(m->user);
free:
	kfree(m);
err:
	nvfs_stat_inc(NVFS_ST_MMAP_ERR);
	return r;
}

/* -- MAP -- */

static int nvfs_map_check(const struct nvfs_mapping *m, const struct nvfs_ioctl_map *a)
{
	u64 end;

	if (a->size <= 0 || !a->gpuvaddr || check_add_overflow(a->gpuvaddr, (u64)a->size, &end) ||
	    end > U64_MAX - NVFS_GPU_PAGE_SIZE) {
		nvfs_say("MAP: GPU range 0x%llx + %lld is not a range\n", a->gpuvaddr, a->size);
		return -EINVAL;
	}
	if (!a->sbuf_block || a->sbuf_block > m->vma_size >> NVFS_BLOCK_SHIFT) {
		nvfs_say("MAP: sbuf_block %u, but the mapping at 0x%lx has 1..%zu blocks\n",
			 a->sbuf_block, m->cpuvaddr, m->vma_size >> NVFS_BLOCK_SHIFT);
		return -EINVAL;
	}
	if (!a->end_fence_addr || a->end_fence_addr % NVFS_BLOCK_SIZE) {
		nvfs_say("MAP: the fence page 0x%llx is not a 4-KiB aligned address\n",
			 a->end_fence_addr);
		return -EINVAL;
	}
	return 0;
}

static int nvfs_charge_pin(struct nvfs_mapping *m, u64 bytes)
{
	int r = nvfs_user_charge(m->user, NVFS_CHARGE_PINNED, bytes);

	if (!r)
		m->charged = bytes;
	return r;
}

static int nvfs_pin_fence(struct nvfs_mapping *m, u64 addr)
{
	struct page *page;
	int r = -EFAULT;

	if (!nvfs_fault(NVFS_FAULT_FENCE_PAGE))
		r = pin_user_pages_fast(addr, 1, FOLL_WRITE | FOLL_LONGTERM, &page);
	if (r != 1) {
		nvfs_say("MAP: the fence page 0x%llx is not writable memory (%d)\n", addr, r);
		return r < 0 ? r : -EFAULT;
	}
	m->fence = page;
	return 0;
}

/*
 * Tie the caller's mapping to GPU memory. Returns 0 or -errno with everything undone.
 * Blocks: pins, allocates, makes DMA mappings.
 */
int nvfs_map(struct nvfs_ioctl_map *a)
{
	struct nvfs_mapping *m;
	u64 pin_va, pin_len;
	int r;

	nvfs_stat_inc(NVFS_ST_MAP);
	m = nvfs_mapping_get(a->cpuvaddr);
	if (!m) {
		nvfs_say("MAP: 0x%llx is not the start of a mapping of this process\n",
			 a->cpuvaddr);
		r = -EINVAL;
		goto out;
	}
	r = nvfs_map_check(m, a);
	if (r)
		goto put;

	spin_lock(&m->lock);
	r = m->state == NVFS_FREE ? 0 : m->state == NVFS_CLOSED ? -EINVAL : -EBUSY;
	if (!r)
		m->state = NVFS_INIT;
	spin_unlock(&m->lock);
	if (r) {
		nvfs_say("MAP: the mapping at 0x%lx is in use already; munmap it first\n",
			 m->cpuvaddr);
		goto put;
	}

	m->size = a->size;
	m->page_off = a->gpuvaddr % NVFS_GPU_PAGE_SIZE;
	m->is_bounce = a->is_bounce_buffer;
	pin_va = a->gpuvaddr - m->page_off;
	pin_len = round_up(a->gpuvaddr + a->size, NVFS_GPU_PAGE_SIZE) - pin_va;

	r = nvfs_pin_fence(m, a->end_fence_addr);
	if (!r)
		r = nvfs_carriers_alloc(m, a->sbuf_block);
	if (!r)
		r = nvfs_charge_pin(m, pin_len);
	if (!r)
		r = nvfs_gpu_pin(m, pin_va, pin_len);
	if (!r)
		r = nvfs_peers_map(m);
	if (!r)
		nvfs_p2p_map(m);
	if (!r && nvfs_fault(NVFS_FAULT_TRANSIT))
		r = -EIO;

	spin_lock(&m->lock);
	if (!r && m->state == NVFS_REVOKED)
		r = -EIO;		/* freed while we were pinning it */
	else if (!r && m->state == NVFS_INIT)
		m->state = NVFS_READY;
	spin_unlock(&m->lock);

	if (r) {
		nvfs_mapping_unmap(m);
		spin_lock(&m->lock);
		if (m->state != NVFS_CLOSED)
			m->state = NVFS_FREE;
		spin_unlock(&m->lock);
	} else {
		m->mapped = true;
		nvfs_stat_inc(NVFS_ST_MAP_ACTIVE);
		nvfs_dbg("MAP: 0x%lx stands for 0x%llx + %lld, %s pin\n", m->cpuvaddr, a->gpuvaddr,
			 a->size, m->pin.persistent ? "persistent" : "callback");
	}
	trace_nvfs_map(m, a->gpuvaddr, r);
put:
	nvfs_mapping_put(m);
out:
	nvfs_stat_inc(r ? NVFS_ST_MAP_ERR : NVFS_ST_MAP_OK);
	return r;
}

/* Take the mapping from its VMA, which stays as a range without use. */
static int nvfs_unmap_vma(struct nvfs_mapping *m)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	int r = -EINVAL;

	if (mmap_write_lock_killable(mm))
		return -EINTR;
	vma = find_vma(mm, m->cpuvaddr);
	if (vma && vma->vm_ops == &nvfs_vm_ops && vma->vm_private_data == m) {
		r = nvfs_mapping_close(m, NVFS_DEATH_UNMAP);
		if (!r)
			vma->vm_private_data = NULL;
	}
	mmap_write_unlock(mm);
	return r;
}

/*
 * UNMAP: 0 when the GPU memory is released. -EINTR when the caller is being killed; then it
 * is released a moment later, as after munmap. Waits for the requests in flight.
 */
int nvfs_mapping_withdraw(u64 cpuvaddr)
{
	struct nvfs_mapping *m = nvfs_mapping_get(cpuvaddr);
	int r;

	if (!m) {
		nvfs_say("UNMAP: 0x%llx is not the start of a mapping of this process (-EINVAL)\n",
			 cpuvaddr);
		return -EINVAL;
	}
	r = nvfs_unmap_vma(m);
	if (!r)
		r = wait_event_killable(m->idle, !READ_ONCE(m->users)) ? -EINTR : 0;
	/* who has left still holds a reference for a few instructions; nobody gets a new one */
	while (!r && kref_read(&m->ref) > 1)
		r = schedule_timeout_killable(1) && fatal_signal_pending(current) ? -EINTR : 0;
	nvfs_mapping_put(m);
	if (!r)
		nvfs_mapping_flush();
	return r;
}

/* Wait until every mapping whose last reference went before this call is torn down. */
void nvfs_mapping_flush(void)
{
	nvfs_async_flush();	/* what has told its fence holds a reference a moment longer */
	flush_workqueue(nvfs_teardown_wq);
}

int nvfs_mapping_init(void)
{
	nvfs_teardown_wq = alloc_workqueue("nvidia-fs", WQ_UNBOUND, 0);
	return nvfs_teardown_wq ? 0 : -ENOMEM;
}

void nvfs_mapping_exit(void)
{
	destroy_workqueue(nvfs_teardown_wq);
	rcu_barrier();
}
