// SPDX-License-Identifier: GPL-2.0-only
/*
 * p2p.c - struct pages for the parts of a card's BAR that mappings need.
 *
 * A page map of our own for each 2 MiB, a unit: the kernel takes it for one of its P2PDMA
 * core's, because it is embedded in a structure of the same layout (probe/p2p_pagemap.h, proven
 * when the module is built). So a unit goes when its last mapping goes, nothing of it is in a
 * pool, and nobody else can be given a page of it. Where the card's driver has made P2PDMA
 * pages itself, these are used.
 *
 * What is the card's driver's: the provider that a page map points to. It dies when that
 * driver is unbound, so all is given back in BUS_NOTIFY_UNBIND_DRIVER, which comes before.
 */
#include <linux/ioprio.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "log.h"
#include "p2p.h"
#include "p2p_core.h"
#include "view.h"

static char *nvfs_carriers_param = "auto";
module_param_named(carriers, nvfs_carriers_param, charp, 0444);
MODULE_PARM_DESC(carriers, "what stands for GPU memory in a request: auto (host pages where the drive's driver has the hook, else P2PDMA pages), shadow (host pages only), p2pdma (P2PDMA pages only)");

static enum nvfs_carriers nvfs_carriers = NVFS_CARRIERS_AUTO;

static const char * const nvfs_carriers_names[] = {
	[NVFS_CARRIERS_AUTO] = "auto",
	[NVFS_CARRIERS_SHADOW] = "shadow",
	[NVFS_CARRIERS_P2PDMA] = "p2pdma",
};

static const char * const nvfs_p2p_texts[NVFS_P2P_WHYS] = {
	[NVFS_P2P_USED] = "used",
	[NVFS_P2P_OFF] = "switched off (carriers=shadow, or by the mapping's owner)",
	[NVFS_P2P_HOOKED] = "not needed: the nvme driver has the hook (carriers=p2pdma takes it all the same)",
	[NVFS_P2P_NO_CONFIG] = "the kernel is built without CONFIG_PCI_P2PDMA",
	[NVFS_P2P_NO_PROOF] = "when the module was built the kernel's page map could not be proven to be as expected (type information in vmlinux, interface of Linux 7)",
	[NVFS_P2P_NO_WITNESS] = "the kernel has no tracepoint block_rq_issue, so nobody could tell what a drive moved",
	[NVFS_P2P_NO_BAR] = "the GPU memory is not in a memory BAR of one PCI function",
	[NVFS_P2P_NO_DRIVER] = "the GPU has no driver, or it is being unbound",
	[NVFS_P2P_WC] = "the BAR is mapped write-combined (by the GPU's driver: its setting for uncached mappings is needed)",
	[NVFS_P2P_FOREIGN] = "the BAR has pages of another kind",
	[NVFS_P2P_PAGES] = "the kernel gives the BAR no pages",
	[NVFS_P2P_QUEUE] = "the drive's queue has no P2PDMA feature",
	[NVFS_P2P_PAIR] = "the kernel allows no peer-to-peer transfer between this drive and the GPU (a host bridge that is not on its list, or ACS)",
	[NVFS_P2P_DRIVE] = "the drive is no PCI NVMe function of the nvme driver",
	[NVFS_P2P_GONE] = "the GPU's driver has been unbound",
	[NVFS_P2P_DRIVERS] = "the GPU's driver has made the pages, so their references are not ours to count",
};

DEFINE_MUTEX(nvfs_p2p_lock);	/* cards, their units, which mapping has pages; see p2p.h */

static atomic64_t nvfs_p2p_counts[NVFS_P2P_WHYS];	/* of each reason, MAPs and requests */
static unsigned int nvfs_p2p_units_made;		/* by us, and there; nvfs_p2p_lock */

const char *nvfs_p2p_text(enum nvfs_p2p_why why)
{
	return nvfs_p2p_texts[why];
}

void nvfs_p2p_count(enum nvfs_p2p_why why)
{
	atomic64_inc(&nvfs_p2p_counts[why]);
}

enum nvfs_carriers nvfs_carriers_of(const struct nvfs_mapping *m)
{
	return nvfs_carriers == NVFS_CARRIERS_AUTO ? m->choice : nvfs_carriers;
}

/* What does not depend on GPU and drive. */
static enum nvfs_p2p_why nvfs_p2p_here(enum nvfs_carriers carriers)
{
	if (carriers == NVFS_CARRIERS_SHADOW)
		return NVFS_P2P_OFF;
	if (!IS_ENABLED(CONFIG_PCI_P2PDMA))
		return NVFS_P2P_NO_CONFIG;
#ifndef NVFS_HAVE_P2P
	return NVFS_P2P_NO_PROOF;
#endif
	if (carriers == NVFS_CARRIERS_AUTO && nvfs_hooks_serve("nvme"))
		return NVFS_P2P_HOOKED;
	return NVFS_P2P_USED;
}

#ifdef NVFS_HAVE_P2P
#define NVFS_P2P_PAGES (NVFS_P2P_UNIT >> PAGE_SHIFT)

/* 2 MiB of a BAR; nvfs_p2p_lock */
struct nvfs_p2p_part {
	struct nvfs_p2p_pagemap map;	/* unless it is the card's driver's own */
	struct dev_pagemap *foreign;	/* then this, and we have a reference */
	bool pooled;			/* the core's own, all of it taken by us */
	u32 refs;			/* GPU pages of mappings in it */
};

static LIST_HEAD(nvfs_p2p_gpus);
static unsigned int nvfs_p2p_seed;	/* where the hints begin: nobody has them by accident */
static unsigned int nvfs_p2p_next;	/* card */

static struct page *nvfs_p2p_page(const struct nvfs_p2p_gpu *gpu, unsigned long unit)
{
	return pfn_to_page(PHYS_PFN(gpu->start + ((u64)unit << NVFS_P2P_UNIT_SHIFT)));
}

/* The last reference of a page of ours went: one of its page map's goes with it. Any context. */
static const struct dev_pagemap_ops nvfs_p2p_pgmap_ops = NVFS_P2P_PGMAP_OPS;

/* Hand out all pages of a unit, to ourselves: each with the count 1. */
static void nvfs_p2p_take(struct nvfs_p2p_gpu *gpu, unsigned long unit, struct dev_pagemap *pgmap)
{
	struct page *page = nvfs_p2p_page(gpu, unit);
	u32 i;

	percpu_ref_get_many(&pgmap->ref, NVFS_P2P_PAGES);
	for (i = 0; i < NVFS_P2P_PAGES; i++)
		nvfs_p2p_first_ref(page + i);
}

/*
 * Is the kernel's own mapping of these pages as it must be for P2PDMA? Where somebody has the BAR
 * mapped write-combined, the kernel makes ours so, too, and then what a file system stores into
 * a page (a hole) is in the card some time later.
 */
static bool nvfs_p2p_is_wc(const void *addr)
{
#ifdef CONFIG_X86
	const pteval_t bits = _PAGE_PWT | _PAGE_PCD;
	unsigned int level;
	pte_t *pte = lookup_address((unsigned long)addr, &level);

	return !pte || ((pte_flags(*pte) ^ pgprot_val(pgprot_noncached(PAGE_KERNEL))) & bits);
#else
	return false;	/* only x86 gives what others have */
#endif
}

/* Pages that somebody has made: of this card's P2PDMA, or another kind. */
static enum nvfs_p2p_why nvfs_p2p_foreign(struct nvfs_p2p_gpu *gpu, struct nvfs_p2p_part *part,
					  u64 from)
{
	struct dev_pagemap *a = nvfs_p2p_pgmap_at(from);
	struct dev_pagemap *b = nvfs_p2p_pgmap_at(from + NVFS_P2P_UNIT - 1);
	struct nvfs_p2p_pagemap *map = container_of(a, struct nvfs_p2p_pagemap, pgmap);
	enum nvfs_p2p_why why = NVFS_P2P_USED;

	if (!a && !b)
		return NVFS_P2P_USED;
	if (a != b || a->type != MEMORY_DEVICE_PCI_P2PDMA ||
	    nvfs_p2p_owner(map) != &gpu->pdev->dev)
		why = NVFS_P2P_FOREIGN;
	else if (nvfs_p2p_is_wc(page_address(pfn_to_page(PHYS_PFN(from)))))
		why = NVFS_P2P_WC;
	if (why)
		put_dev_pagemap(a);
	else
		part->foreign = a;
	put_dev_pagemap(b);
	return why;
}

/* A unit that the core has in its pool, all of it taken by us; nvfs_p2p_lock. */
struct nvfs_p2p_pooled {
	struct list_head node;
	struct pci_dev *pdev;		/* referenced */
	void *addr;
};

static LIST_HEAD(nvfs_p2p_pooled);	/* nvfs_p2p_lock */

/*
 * Let the core know the card, where that takes a pool: this unit becomes the pool. 0 or -errno.
 * The device lock of the card and nvfs_p2p_lock held. Blocks.
 */
static int nvfs_p2p_pool(struct nvfs_p2p_gpu *gpu, unsigned long unit)
{
	struct nvfs_p2p_pooled *pooled;
	int r;

	if (!NVFS_P2P_NEEDS_POOL || rcu_access_pointer(gpu->pdev->p2pdma))
		return 0;
	pooled = kzalloc(sizeof(*pooled), GFP_KERNEL);
	if (!pooled)
		return -ENOMEM;
	r = pci_p2pdma_add_resource(gpu->pdev, gpu->bar, NVFS_P2P_UNIT,
				    (u64)unit << NVFS_P2P_UNIT_SHIFT);
	pooled->addr = r ? NULL : pci_alloc_p2pmem(gpu->pdev, NVFS_P2P_UNIT);
	if (!pooled->addr) {
		kfree(pooled);
		return r ?: -ENOMEM;
	}
	pooled->pdev = pci_dev_get(gpu->pdev);
	list_add(&pooled->node, &nvfs_p2p_pooled);
	return 0;
}

static bool nvfs_p2p_is_pooled(u64 from)
{
	struct nvfs_p2p_pooled *pooled;

	list_for_each_entry(pooled, &nvfs_p2p_pooled, node)
		if (page_to_phys(virt_to_page(pooled->addr)) == from)
			return true;
	return false;
}

/* Of one card, or of all: NULL. Nobody uses the pages. nvfs_p2p_lock held. */
static void nvfs_p2p_unpool(const struct pci_dev *pdev)
{
	struct nvfs_p2p_pooled *pooled, *next;

	list_for_each_entry_safe(pooled, next, &nvfs_p2p_pooled, node) {
		if (pdev && pooled->pdev != pdev)
			continue;
		pci_free_p2pmem(pooled->pdev, pooled->addr, NVFS_P2P_UNIT);
		list_del(&pooled->node);
		pci_dev_put(pooled->pdev);
		kfree(pooled);
	}
}

/* Give a unit pages. The device lock of the card and nvfs_p2p_lock held. Blocks. */
static enum nvfs_p2p_why nvfs_p2p_make(struct nvfs_p2p_gpu *gpu, struct nvfs_p2p_part *part,
				       unsigned long unit)
{
	u64 from = gpu->start + ((u64)unit << NVFS_P2P_UNIT_SHIFT);
	struct dev_pagemap *pgmap = &part->map.pgmap;
	enum nvfs_p2p_why why;
	void *addr;

	if (nvfs_p2p_pool(gpu, unit))
		return NVFS_P2P_PAGES;
	why = nvfs_p2p_foreign(gpu, part, from);
	part->pooled = nvfs_p2p_is_pooled(from);
	if (why || part->foreign)
		return why;
	if (nvfs_p2p_core(&part->map, gpu->pdev, gpu->bar))
		return NVFS_P2P_PAGES;
	pgmap->type = MEMORY_DEVICE_PCI_P2PDMA;
	pgmap->ops = &nvfs_p2p_pgmap_ops;
	pgmap->nr_range = 1;
	pgmap->range.start = from;
	pgmap->range.end = from + NVFS_P2P_UNIT - 1;
	addr = memremap_pages(pgmap, dev_to_node(&gpu->pdev->dev));
	if (IS_ERR(addr)) {
		nvfs_warn("%s: no pages for the BAR at 0x%llx: %pe\n", pci_name(gpu->pdev), from,
			  addr);
		return NVFS_P2P_PAGES;
	}
	if (nvfs_p2p_is_wc(addr)) {
		memunmap_pages(pgmap);
		return NVFS_P2P_WC;
	}
	nvfs_p2p_take(gpu, unit, pgmap);
	nvfs_p2p_units_made++;
	return NVFS_P2P_USED;
}

/* Waits for whoever has a reference to one of the pages. nvfs_p2p_lock held. */
static void nvfs_p2p_unmake(struct nvfs_p2p_gpu *gpu, struct nvfs_p2p_part *part,
			    unsigned long unit)
{
	struct page *page = nvfs_p2p_page(gpu, unit);
	u32 i;

	if (part->foreign) {
		put_dev_pagemap(part->foreign);
		return;
	}
	for (i = 0; i < NVFS_P2P_PAGES; i++)
		put_page(page + i);
	memunmap_pages(&part->map.pgmap);
	nvfs_p2p_units_made--;
}

/* nvfs_p2p_lock and the card's device lock held */
static enum nvfs_p2p_why nvfs_p2p_part_get(struct nvfs_p2p_gpu *gpu, unsigned long unit)
{
	struct nvfs_p2p_part *part = xa_load(&gpu->parts, unit);
	enum nvfs_p2p_why why = NVFS_P2P_PAGES;

	if (!part) {
		part = kzalloc(sizeof(*part), GFP_KERNEL_ACCOUNT);
		if (!part || xa_err(xa_store(&gpu->parts, unit, part, GFP_KERNEL)))
			goto free;
		why = nvfs_p2p_make(gpu, part, unit);
		if (why)
			goto erase;
		gpu->nparts++;
		gpu->nforeign += !!part->foreign;
	}
	part->refs++;
	return NVFS_P2P_USED;
erase:
	xa_erase(&gpu->parts, unit);
free:
	kfree(part);
	return why;
}

/* nvfs_p2p_lock held */
static void nvfs_p2p_part_put(struct nvfs_p2p_gpu *gpu, unsigned long unit)
{
	struct nvfs_p2p_part *part = xa_load(&gpu->parts, unit);

	if (--part->refs)
		return;
	gpu->nparts--;
	gpu->nforeign -= !!part->foreign;
	nvfs_p2p_unmake(gpu, part, unit);
	xa_erase(&gpu->parts, unit);
	kfree(part);
}

/* Every page of p has one reference by us, and others only while somebody uses it. */
bool nvfs_p2p_ours(const struct nvfs_p2p *p)
{
	const struct nvfs_p2p_part *part;
	u32 i;

	lockdep_assert_held(&nvfs_p2p_lock);
	for (i = 0; i < p->npages; i++) {
		part = xa_load(&p->gpu->parts, p->unit[i]);
		if (part->foreign && !part->pooled)
			return false;
	}
	return true;
}

/* nvfs_p2p_lock held */
static struct nvfs_p2p_gpu *nvfs_p2p_gpu_get(struct pci_dev *pdev, int bar)
{
	struct nvfs_p2p_gpu *gpu;

	list_for_each_entry(gpu, &nvfs_p2p_gpus, node)
		if (gpu->pdev == pdev && gpu->bar == bar)
			return gpu;
	gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
	if (!gpu)
		return NULL;
	INIT_LIST_HEAD(&gpu->users);
	xa_init(&gpu->parts);
	spin_lock_init(&gpu->lock);
	gpu->pdev = pci_dev_get(pdev);
	gpu->bar = bar;
	gpu->start = pci_resource_start(pdev, bar);
	/* hints up to 7 mean something to SCSI disks; the upper half is nobody's */
	gpu->hint = IOPRIO_NR_HINTS / 2 +
		    (nvfs_p2p_seed + nvfs_p2p_next++) % (IOPRIO_NR_HINTS / 2);
	list_add(&gpu->node, &nvfs_p2p_gpus);
	return gpu;
}

/* nvfs_p2p_lock held */
static void nvfs_p2p_gpu_put(struct nvfs_p2p_gpu *gpu)
{
	if (!list_empty(&gpu->users))
		return;
	list_del(&gpu->node);
	xa_destroy(&gpu->parts);
	pci_dev_put(gpu->pdev);
	kfree_rcu(gpu, rcu);
}

/* Undo nvfs_p2p_fill(), all of it or the part that was done. nvfs_p2p_lock held. Blocks. */
static void nvfs_p2p_give(struct nvfs_p2p *p)
{
	u32 i;

	nvfs_p2p_unwatch(p);
	for (i = 0; i < p->nheld; i++)
		nvfs_p2p_part_put(p->gpu, p->unit[i]);
	list_del(&p->node);
	nvfs_p2p_gpu_put(p->gpu);
}

/* Pages for all units of p. The device lock of pdev and nvfs_p2p_lock held. Blocks. */
static enum nvfs_p2p_why nvfs_p2p_fill(struct nvfs_p2p *p, struct pci_dev *pdev, int bar)
{
	enum nvfs_p2p_why why = NVFS_P2P_USED;

	if (!pdev->dev.driver)		/* what the core adds now would keep one from binding */
		return NVFS_P2P_NO_DRIVER;
	p->gpu = nvfs_p2p_gpu_get(pdev, bar);
	if (!p->gpu)
		return NVFS_P2P_PAGES;
	list_add(&p->node, &p->gpu->users);
	for (p->nheld = 0; !why && p->nheld < p->npages; p->nheld += !why)
		why = nvfs_p2p_part_get(p->gpu, p->unit[p->nheld]);
	if (!why)
		why = nvfs_p2p_watch(p);
	if (why)
		nvfs_p2p_give(p);
	return why;
}

static void nvfs_p2p_free(struct nvfs_p2p *p)
{
	kvfree(p->unit);
	kvfree(p->bv);
	kvfree(p->start);
	kfree_rcu(p, rcu);	/* the watcher of requests may still compare with it */
}

static struct nvfs_p2p *nvfs_p2p_alloc(struct nvfs_mapping *m)
{
	struct nvfs_p2p *p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);

	if (!p)
		return NULL;
	p->m = m;
	p->npages = m->pin.pages;
	p->nbv = m->nblocks;
	p->unit = kvmalloc_array(p->npages, sizeof(*p->unit), GFP_KERNEL_ACCOUNT);
	p->bv = kvmalloc_array(p->nbv, sizeof(*p->bv), GFP_KERNEL_ACCOUNT);
	p->start = kvmalloc_array(p->nbv, sizeof(*p->start), GFP_KERNEL_ACCOUNT);
	if (p->unit && p->bv && p->start)
		return p;
	nvfs_p2p_free(p);
	return NULL;
}

/* Which units the mapping's memory is in. */
static enum nvfs_p2p_why nvfs_p2p_units(struct nvfs_p2p *p, const struct pci_dev *pdev, int bar,
					const u64 *phys)
{
	u64 start = pci_resource_start(pdev, bar), len = pci_resource_len(pdev, bar);
	u32 i;

	if (!IS_ALIGNED(start, NVFS_P2P_UNIT) || !IS_ALIGNED(len, NVFS_P2P_UNIT) ||
	    !(pci_resource_flags(pdev, bar) & IORESOURCE_MEM))
		return NVFS_P2P_NO_BAR;
	for (i = 0; i < p->npages; i++) {
		if (phys[i] < start || phys[i] - start >= len ||
		    !IS_ALIGNED(phys[i], NVFS_GPU_PAGE_SIZE))
			return NVFS_P2P_NO_BAR;
		p->unit[i] = (phys[i] - start) >> NVFS_P2P_UNIT_SHIFT;
	}
	return NVFS_P2P_USED;
}

static enum nvfs_p2p_why nvfs_p2p_build_at(struct nvfs_mapping *m, struct nvfs_p2p *p,
					   const u64 *phys)
{
	enum nvfs_p2p_why why;
	struct pci_dev *pdev;
	int bar;

	pdev = nvfs_pci_at(phys[0], &bar);
	if (!pdev)
		return NVFS_P2P_NO_BAR;
	why = nvfs_p2p_units(p, pdev, bar, phys);
	if (!why) {
		/* the core's part is the driver's devres, so it must not be unbound now */
		device_lock(&pdev->dev);
		mutex_lock(&nvfs_p2p_lock);
		why = nvfs_p2p_fill(p, pdev, bar);
		if (!why) {
			spin_lock(&m->lock);
			m->p2p = p;
			spin_unlock(&m->lock);
		}
		mutex_unlock(&nvfs_p2p_lock);
		device_unlock(&pdev->dev);
	}
	pci_dev_put(pdev);
	return why;
}

static enum nvfs_p2p_why nvfs_p2p_build(struct nvfs_mapping *m)
{
	enum nvfs_p2p_why why = NVFS_P2P_PAGES;
	struct nvfs_p2p *p = nvfs_p2p_alloc(m);
	u64 *phys = NULL;

	if (!p)
		return why;
	phys = kvmalloc_array(p->npages, sizeof(*phys), GFP_KERNEL_ACCOUNT);
	if (phys)
		why = nvfs_gpu_addresses(m, phys) ? NVFS_P2P_GONE : nvfs_p2p_build_at(m, p, phys);
	if (why)
		nvfs_p2p_free(p);
	kvfree(phys);
	return why;
}

/* The pages go; the teardown, or the unbinding. Blocks. */
static void nvfs_p2p_end(struct nvfs_mapping *m)
{
	struct nvfs_p2p *p = m->p2p;

	lockdep_assert_held(&nvfs_p2p_lock);
	if (!p)
		return;
	/* the free callback may be looking at the pages, see nvfs_view_quiet() */
	spin_lock(&m->lock);
	while (m->users) {
		spin_unlock(&m->lock);
		wait_event(m->idle, !READ_ONCE(m->users));
		spin_lock(&m->lock);
	}
	m->p2p = NULL;
	spin_unlock(&m->lock);
	nvfs_view_end(m);
	nvfs_p2p_give(p);
	nvfs_p2p_free(p);
}

void nvfs_p2p_unmap(struct nvfs_mapping *m)
{
	nvfs_view_quiet(m);	/* may take as long as a request: not below the lock of all */
	mutex_lock(&nvfs_p2p_lock);
	nvfs_p2p_end(m);
	mutex_unlock(&nvfs_p2p_lock);
}

static struct nvfs_p2p_gpu *nvfs_p2p_gpu_of(const struct pci_dev *pdev)
{
	struct nvfs_p2p_gpu *gpu;

	list_for_each_entry(gpu, &nvfs_p2p_gpus, node)
		if (gpu->pdev == pdev)
			return gpu;
	return NULL;
}

/*
 * The driver of pdev is about to be unbound, its device lock is held. Mappings with pages of
 * that card take no new request; those in flight are waited for; then the pages go. A mapping
 * that is being torn down stays in our list until we give the lock back.
 */
void nvfs_p2p_unbind(struct pci_dev *pdev)
{
	struct nvfs_p2p_gpu *gpu;
	struct nvfs_p2p *p;

	mutex_lock(&nvfs_p2p_lock);
	while ((gpu = nvfs_p2p_gpu_of(pdev))) {
		bool last = false;

		list_for_each_entry(p, &gpu->users, node)
			nvfs_mapping_revoke(p->m, false);
		while (!last) {
			struct nvfs_mapping *m;

			p = list_first_entry(&gpu->users, struct nvfs_p2p, node);
			last = list_is_singular(&gpu->users);
			m = p->m;
			wait_event(m->idle, !READ_ONCE(m->users));
			nvfs_view_quiet(m);
			nvfs_fence_state(m, NVFS_FENCE_DIED);
			m->p2p_why = NVFS_P2P_GONE;
			nvfs_p2p_end(m);
		}
	}
	nvfs_p2p_unpool(pdev);
	mutex_unlock(&nvfs_p2p_lock);
}

/* No mapping is left, and the bus is not watched any more. */
void nvfs_p2p_exit(void)
{
	mutex_lock(&nvfs_p2p_lock);
	nvfs_p2p_watch_no_more();
	nvfs_p2p_unpool(NULL);
	mutex_unlock(&nvfs_p2p_lock);
}

static void nvfs_p2p_seed_hints(void)
{
	nvfs_p2p_seed = get_random_u32();
}

static void nvfs_p2p_show_gpus(struct seq_file *s)
{
	struct nvfs_p2p_gpu *gpu;

	mutex_lock(&nvfs_p2p_lock);
	list_for_each_entry(gpu, &nvfs_p2p_gpus, node)
		seq_printf(s, "p2pdma GPU %s: %u mappings, pages for %u MiB of BAR %d, %u MiB of them by the GPU's driver\n",
			   pci_name(gpu->pdev), (unsigned int)list_count_nodes(&gpu->users),
			   2 * gpu->nparts, gpu->bar, 2 * gpu->nforeign);
	mutex_unlock(&nvfs_p2p_lock);
}
#else /* a kernel where it cannot be */
static enum nvfs_p2p_why nvfs_p2p_build(struct nvfs_mapping *m)
{
	return NVFS_P2P_NO_PROOF;
}

void nvfs_p2p_unmap(struct nvfs_mapping *m) { }
void nvfs_p2p_unbind(struct pci_dev *pdev) { }
void nvfs_p2p_exit(void) { }
static void nvfs_p2p_seed_hints(void) { }
static void nvfs_p2p_show_gpus(struct seq_file *s) { }
#endif

/*
 * Give m pages of its card's BAR if it can have them, and say which way it is. Called by MAP, the
 * memory is pinned. Never fails MAP: the other ways are there. Blocks.
 */
void nvfs_p2p_map(struct nvfs_mapping *m)
{
	enum nvfs_p2p_why why = nvfs_p2p_here(nvfs_carriers_of(m));

	if (!why)
		why = nvfs_p2p_build(m);
	m->p2p_why = why;
	nvfs_p2p_count(why);
	nvfs_dbg("P2PDMA carriers of 0x%lx: %s\n", m->cpuvaddr, nvfs_p2p_text(why));
}

/* carriers= is known. 0 or -errno. */
int nvfs_p2p_init(void)
{
	int i = match_string(nvfs_carriers_names, ARRAY_SIZE(nvfs_carriers_names),
			     nvfs_carriers_param);

	if (i < 0) {
		nvfs_warn("carriers=%s: one of auto, shadow, p2pdma (-EINVAL)\n",
			  nvfs_carriers_param);
		return -EINVAL;
	}
	nvfs_carriers = i;
	nvfs_p2p_seed_hints();
	return 0;
}

/* Which carriers are used, and why not the others. */
void nvfs_p2p_show(struct seq_file *s)
{
	enum nvfs_p2p_why why = nvfs_p2p_here(nvfs_carriers);
	unsigned int i;

	seq_printf(s, "carriers: %s\n", nvfs_carriers_names[nvfs_carriers]);
	seq_printf(s, "p2pdma: %s%s\n", why ? "not used: " : "used where the drive's driver has no hook",
		   why ? nvfs_p2p_text(why) : "");
	seq_printf(s, "p2pdma_pages_mib: %llu\n",
		   (u64)READ_ONCE(nvfs_p2p_units_made) << (NVFS_P2P_UNIT_SHIFT - 20));
	nvfs_p2p_show_gpus(s);
	for (i = 0; i < NVFS_P2P_WHYS; i++) {
		s64 n = atomic64_read(&nvfs_p2p_counts[i]);

		if (i != NVFS_P2P_USED && n)
			seq_printf(s, "p2pdma refused %lld times: %s\n", n, nvfs_p2p_text(i));
	}
}
