// SPDX-License-Identifier: GPL-2.0-only
/*
 * view.c - the P2PDMA pages of a mapping, mapped into its process.
 *
 * The process does plain O_DIRECT requests on them; the kernel pins pages of this kind for a drive
 * that may have them, and for nobody else (no long-term pins, no pipes, no other processes). A CPU
 * that reads or writes them reads or writes GPU memory, uncached as the kernel's own mapping is.
 * So every byte is right whatever a file system does. Which of them a drive moved is noted where
 * the process can look without a system call: the drive's requests are seen as they are issued
 * (p2p_io.c), and their pages lead to the byte of `seen`.
 *
 * A view is found by its number, which is the upper part of its place in the node's file: so the
 * zap reaches its page table entries and no others. nvfs_view.lock: below mmap_lock, above those of
 * page tables. The table of GPU pages: nvfs_p2p_lock, read under RCU.
 */
#include <linux/bio.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>

#include "nvidia-fs.h"
#include "log.h"
#include "p2p.h"
#include "p2p_core.h"
#include "sectors.h"
#include "view.h"

#ifdef NVFS_HAVE_P2P
/* The page offset of a view: number, which of its two ranges, page. Positive in bytes, too. */
#define NVFS_VIEW_ID_SHIFT 32
#define NVFS_VIEW_IDS BIT(18)
#define NVFS_VIEW_SEEN BIT(31)
#define NVFS_VIEW_AROUND SZ_2M		/* what one fault gives pages to */

/* One GPU page of a view. */
struct nvfs_view_at {
	struct nvfs_view_at *next;	/* of the same GPU page; nvfs_p2p_lock, RCU */
	unsigned long gpu_page;		/* physical address >> NVFS_GPU_PAGE_SHIFT */
	u8 *seen;			/* of its first block */
};

struct nvfs_view {
	refcount_t ref;			/* the mapping, each VMA of the pages, who looks it up */
	struct rcu_head rcu;
	struct nvfs_mapping *m;		/* NULL when its pages are gone; RCU */
	struct mm_struct *mm;		/* whose it is: compared, never dereferenced */
	struct nvfs_user *user;		/* charged with seen_len */
	u32 id;
	size_t len;			/* bytes of the pages */
	size_t seen_len;
	u8 *seen;
	struct mutex lock;		/* vmas and space */
	unsigned int vmas;		/* of the pages; lock */
	struct address_space *space;	/* theirs, while there are some; lock */
	u32 npages;			/* of the GPU */
	struct nvfs_view_at at[];
};

static DEFINE_XARRAY_ALLOC1(nvfs_views);	/* by number */
static DEFINE_XARRAY(nvfs_view_pages);		/* by nvfs_view_at.gpu_page */

static void nvfs_view_free(struct rcu_head *rcu)
{
	struct nvfs_view *v = container_of(rcu, struct nvfs_view, rcu);

	vfree(v->seen);
	kvfree(v);
}

/* Process context. */
static void nvfs_view_put(struct nvfs_view *v)
{
	if (!refcount_dec_and_test(&v->ref))
		return;
	xa_erase(&nvfs_views, v->id);
	nvfs_user_uncharge(v->user, NVFS_CHARGE_SHADOW, v->seen_len);
	nvfs_user_put(v->user);
	call_rcu(&v->rcu, nvfs_view_free);
}

/* With a reference, or NULL: none of the caller's. */
static struct nvfs_view *nvfs_view_find(unsigned long id, const struct mm_struct *mm)
{
	struct nvfs_view *v;

	rcu_read_lock();
	v = xa_load(&nvfs_views, id);
	if (v && (v->mm != mm || !refcount_inc_not_zero(&v->ref)))
		v = NULL;
	rcu_read_unlock();
	return v;
}

/* -- what a drive moved -- */

/* A drive has taken a request over pages of a BAR that no request of ours is over. Any context. */
void nvfs_view_mark(const struct bio *bio)
{
	struct bvec_iter it;
	struct bio_vec bv;

	bio_for_each_bvec(bv, bio, it) {
		u64 phys = bvec_phys(&bv);
		u32 left = bv.bv_len, n;

		for (; left; left -= n, phys += n) {
			u32 in = phys % NVFS_GPU_PAGE_SIZE;
			struct nvfs_view_at *at;

			n = min_t(u32, left, NVFS_GPU_PAGE_SIZE - in);
			at = xa_load(&nvfs_view_pages, phys >> NVFS_GPU_PAGE_SHIFT);
			for (; at; at = READ_ONCE(at->next))
				nvfs_sectors_mark(at->seen, in, n);
		}
	}
}

static void nvfs_view_forget(struct nvfs_view *v, u32 n)
{
	u32 i;

	lockdep_assert_held(&nvfs_p2p_lock);
	for (i = 0; i < n; i++) {
		unsigned long key = v->at[i].gpu_page;
		struct nvfs_view_at *at = xa_load(&nvfs_view_pages, key), *next = v->at[i].next;

		if (at != &v->at[i]) {
			while (at->next != &v->at[i])
				at = at->next;
			WRITE_ONCE(at->next, next);
		} else if (next) {
			/* there is a slot: it does not fail */
			xa_store(&nvfs_view_pages, key, next, GFP_KERNEL);
		} else {
			xa_erase(&nvfs_view_pages, key);
		}
	}
}

static int nvfs_view_note(const struct nvfs_mapping *m, struct nvfs_view *v)
{
	u32 i;
	int r;

	lockdep_assert_held(&nvfs_p2p_lock);
	for (i = 0; i < v->npages; i++) {
		struct nvfs_view_at *at = &v->at[i];

		at->gpu_page = nvfs_p2p_phys(m, (u64)i << NVFS_GPU_PAGE_SHIFT) >>
			       NVFS_GPU_PAGE_SHIFT;
		at->seen = v->seen + ((u64)i << (NVFS_GPU_PAGE_SHIFT - NVFS_BLOCK_SHIFT));
		at->next = xa_load(&nvfs_view_pages, at->gpu_page);
		r = xa_err(xa_store(&nvfs_view_pages, at->gpu_page, at, GFP_KERNEL));
		if (r) {
			nvfs_view_forget(v, i);
			return r;
		}
	}
	return 0;
}

/* -- the pages in the process -- */

/* The mapping, referenced, or NULL when it has no pages any more. */
static struct nvfs_mapping *nvfs_view_mapping(struct nvfs_view *v)
{
	struct nvfs_mapping *m;

	rcu_read_lock();
	m = READ_ONCE(v->m);
	if (m && !kref_get_unless_zero(&m->ref))
		m = NULL;
	rcu_read_unlock();
	return m;
}

/* Not by the GPU driver's table: the free callback gives that back before we are through. */
static struct page *nvfs_view_page(const struct nvfs_view *v, u64 off)
{
	u64 phys = (u64)v->at[off >> NVFS_GPU_PAGE_SHIFT].gpu_page << NVFS_GPU_PAGE_SHIFT;

	return pfn_to_page(PHYS_PFN(phys + off % NVFS_GPU_PAGE_SIZE));
}

/* Pages for the 2 MiB around addr. 0 or -errno of that one. The mapping is entered. */
static int nvfs_view_insert(struct vm_area_struct *vma, const struct nvfs_view *v,
			    unsigned long addr)
{
	unsigned long from = max(round_down(addr, NVFS_VIEW_AROUND), vma->vm_start);
	unsigned long to = min(round_down(addr, NVFS_VIEW_AROUND) + NVFS_VIEW_AROUND, vma->vm_end);
	unsigned long at;
	int r, found = 0;

	for (at = from; at < to; at += PAGE_SIZE) {
		r = vm_insert_page(vma, at, nvfs_view_page(v, at - vma->vm_start));
		if (r && r != -EBUSY && at <= addr)
			found = r;
		if (r && r != -EBUSY)
			break;
	}
	return found;
}

static vm_fault_t nvfs_view_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct nvfs_view *v = vma->vm_private_data;
	struct nvfs_mapping *m;
	int r = -EIO;

	if (vma->vm_mm != v->mm)
		return VM_FAULT_SIGBUS;
	m = nvfs_view_mapping(v);
	if (!m)
		return VM_FAULT_SIGBUS;
	if (nvfs_p2p_hold(m)) {
		r = nvfs_view_insert(vma, v, vmf->address & PAGE_MASK);
		nvfs_mapping_leave(m);
	}
	nvfs_mapping_put(m);
	if (r)
		return r == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
	return VM_FAULT_NOPAGE;
}

/* A second VMA: of a fork, or the new place of a refused mremap. The zap has to reach it, too. */
static void nvfs_view_vma_open(struct vm_area_struct *vma)
{
	struct nvfs_view *v = vma->vm_private_data;

	refcount_inc(&v->ref);
	mutex_lock(&v->lock);
	v->vmas++;
	mutex_unlock(&v->lock);
}

static void nvfs_view_vma_close(struct vm_area_struct *vma)
{
	struct nvfs_view *v = vma->vm_private_data;

	mutex_lock(&v->lock);
	if (!--v->vmas)
		v->space = NULL;
	mutex_unlock(&v->lock);
	nvfs_view_put(v);
}

static int nvfs_view_vma_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -ENOMEM;
}

static int nvfs_view_vma_mremap(struct vm_area_struct *vma)
{
	return -ENOMEM;
}

static const struct vm_operations_struct nvfs_view_vm_ops = {
	.open = nvfs_view_vma_open,
	.close = nvfs_view_vma_close,
	.may_split = nvfs_view_vma_may_split,
	.mremap = nvfs_view_vma_mremap,
	.fault = nvfs_view_fault,
};

static int nvfs_view_mmap_pages(struct file *file, struct vm_area_struct *vma, struct nvfs_view *v)
{
	bool taken;

	mutex_lock(&v->lock);
	taken = v->vmas;
	if (!taken) {
		v->vmas = 1;
		v->space = file->f_mapping;
	}
	mutex_unlock(&v->lock);
	if (taken)
		return -EBUSY;
	refcount_inc(&v->ref);
	nvfs_vma_flags(vma);
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_private_data = v;
	vma->vm_ops = &nvfs_view_vm_ops;
	return 0;
}

/* -EIO: the place in the file is that of no view of the caller's. */
int nvfs_view_mmap(struct file *file, struct vm_area_struct *vma)
{
	const vm_flags_t want = VM_READ | VM_WRITE | VM_MAYREAD | VM_MAYWRITE | VM_SHARED;
	struct nvfs_view *v = nvfs_view_find(vma->vm_pgoff >> NVFS_VIEW_ID_SHIFT, vma->vm_mm);
	unsigned long at = vma->vm_pgoff & (BIT(NVFS_VIEW_ID_SHIFT) - 1);
	size_t len = vma->vm_end - vma->vm_start;
	int r = -EINVAL;

	if (!v)
		return -EIO;
	if ((vma->vm_flags & want) != want || (vma->vm_flags & VM_EXEC))
		goto put;
	if (!at && len == v->len) {
		r = nvfs_view_mmap_pages(file, vma, v);
	} else if (at == NVFS_VIEW_SEEN && len == v->seen_len) {
		nvfs_vma_flags(vma);
		r = remap_vmalloc_range(vma, v->seen, 0);	/* these have a reference each */
	}
put:
	nvfs_view_put(v);
	return r;
}

/* -- its beginning -- */

static struct nvfs_view *nvfs_view_alloc(struct nvfs_mapping *m, int *err)
{
	struct nvfs_view *v;

	*err = -ENOMEM;
	v = kvzalloc(struct_size(v, at, m->pin.pages), GFP_KERNEL_ACCOUNT);
	if (!v)
		return NULL;
	refcount_set(&v->ref, 1);
	mutex_init(&v->lock);
	v->m = m;
	v->mm = m->mm;
	v->npages = m->pin.pages;
	v->len = m->pin.len;
	v->seen_len = PAGE_ALIGN(m->pin.len >> NVFS_BLOCK_SHIFT);
	v->user = nvfs_user_get();
	if (!v->user)
		goto free;
	*err = nvfs_user_charge(v->user, NVFS_CHARGE_SHADOW, v->seen_len);
	if (*err)
		goto put_user;
	*err = -ENOMEM;
	v->seen = vmalloc_user(v->seen_len);
	if (!v->seen)
		goto uncharge;
	*err = xa_alloc(&nvfs_views, &v->id, v, XA_LIMIT(1, NVFS_VIEW_IDS - 1), GFP_KERNEL);
	if (!*err)
		return v;
	vfree(v->seen);
uncharge:
	nvfs_user_uncharge(v->user, NVFS_CHARGE_SHADOW, v->seen_len);
put_user:
	nvfs_user_put(v->user);
free:
	kvfree(v);
	return NULL;
}

/* m is entered, so what it has of the card stays. The view with a reference for the caller. */
static struct nvfs_view *nvfs_view_make(struct nvfs_mapping *m, struct nvfs_p2p *p, int *err)
{
	struct nvfs_view *v = m->view;

	lockdep_assert_held(&nvfs_p2p_lock);
	*err = 0;
	if (!v) {
		v = nvfs_view_alloc(m, err);
		if (!v)
			return NULL;
		*err = nvfs_view_note(m, v);
		if (*err) {
			nvfs_view_put(v);
			return NULL;
		}
		spin_lock(&m->lock);
		m->view = v;
		spin_unlock(&m->lock);
	}
	refcount_inc(&v->ref);
	return v;
}

static unsigned long nvfs_view_map(struct file *file, const struct nvfs_view *v, unsigned long at,
				   size_t len)
{
	unsigned long pgoff = (unsigned long)v->id << NVFS_VIEW_ID_SHIFT | at;

	return vm_mmap(file, 0, len, PROT_READ | PROT_WRITE, MAP_SHARED, pgoff << PAGE_SHIFT);
}

void nvfs_view_close(const struct nvfs_ogds_pages *a)
{
	vm_munmap(a->pages, a->size);
	vm_munmap(a->seen, a->seen_size);
}

/* Map m's pages into the caller. 0 with *a filled, or -errno (and the reason). Blocks. */
int nvfs_view_open(struct file *file, struct nvfs_mapping *m, struct nvfs_ogds_pages *a)
{
	enum nvfs_p2p_why why = NVFS_P2P_USED;
	struct nvfs_view *v = NULL;
	struct nvfs_p2p *p;
	unsigned long at;
	int r = -EOPNOTSUPP;

	mutex_lock(&nvfs_p2p_lock);
	p = nvfs_p2p_hold(m);
	if (!p)
		why = m->p2p_why;
	else if (!nvfs_p2p_ours(p))
		why = NVFS_P2P_DRIVERS;
	else
		v = nvfs_view_make(m, p, &r);
	mutex_unlock(&nvfs_p2p_lock);
	if (p)
		nvfs_mapping_leave(m);
	if (!v) {
		if (why)
			strscpy(a->reason, nvfs_p2p_text(why), sizeof(a->reason));
		return p || why ? r : -EINVAL;
	}
	r = 0;
	at = nvfs_view_map(file, v, 0, v->len);
	if (IS_ERR_VALUE(at)) {
		r = at;
		goto put;
	}
	a->pages = at;
	a->size = v->len;
	at = nvfs_view_map(file, v, NVFS_VIEW_SEEN, v->seen_len);
	if (IS_ERR_VALUE(at)) {
		r = at;
		vm_munmap(a->pages, a->size);
		a->pages = 0;
		a->size = 0;
		goto put;
	}
	a->seen = at;
	a->seen_size = v->seen_len;
	a->offset = m->page_off;
put:
	nvfs_view_put(v);
	return r;
}

/* -- its end; see view.h -- */

/* Somebody besides the module and page tables has a reference. */
static bool nvfs_view_in_use(struct page *page)
{
	return page_ref_count(page) > 1 + folio_mapcount(page_folio(page));
}

/*
 * The mapping is not READY, and nobody is inside. When this returns no request of the process's own
 * is under way on its pages, and none can begin. The page maps stay meanwhile: it counts as a user.
 * A request is waited for by looking: a page tells nobody when it is given back. Blocks.
 */
void nvfs_view_quiet(struct nvfs_mapping *m)
{
	struct nvfs_view *v;
	u64 off;

	spin_lock(&m->lock);
	v = m->p2p ? m->view : NULL;
	if (v)
		m->users++;
	spin_unlock(&m->lock);
	if (!v)
		return;
	mutex_lock(&v->lock);
	if (v->vmas)
		unmap_mapping_range(v->space,
				    (loff_t)v->id << (NVFS_VIEW_ID_SHIFT + PAGE_SHIFT), v->len, 1);
	mutex_unlock(&v->lock);
	for (off = 0; off < v->len; off += PAGE_SIZE)
		while (nvfs_view_in_use(nvfs_view_page(v, off)))
			schedule_timeout_uninterruptible(1);
	nvfs_mapping_leave(m);
}

/* Quiet, and nobody uses the pages of m any more. nvfs_p2p_lock held. */
void nvfs_view_end(struct nvfs_mapping *m)
{
	struct nvfs_view *v = m->view;

	if (!v)
		return;
	nvfs_view_forget(v, v->npages);
	WRITE_ONCE(v->m, NULL);
	spin_lock(&m->lock);
	m->view = NULL;
	spin_unlock(&m->lock);
	nvfs_view_put(v);
}
#else /* a kernel where it cannot be: no mapping has pages */
int nvfs_view_open(struct file *file, struct nvfs_mapping *m, struct nvfs_ogds_pages *a)
{
	strscpy(a->reason, nvfs_p2p_text(IS_ENABLED(CONFIG_PCI_P2PDMA) ? NVFS_P2P_NO_PROOF :
					 NVFS_P2P_NO_CONFIG), sizeof(a->reason));
	return -ENODEV;
}

void nvfs_view_close(const struct nvfs_ogds_pages *a) { }

int nvfs_view_mmap(struct file *file, struct vm_area_struct *vma)
{
	return -EIO;
}

void nvfs_view_mark(const struct bio *bio) { }
void nvfs_view_quiet(struct nvfs_mapping *m) { }
void nvfs_view_end(struct nvfs_mapping *m) { }
#endif
