// SPDX-License-Identifier: GPL-2.0-only
/*
 * p2p.c - nvidia_p2p_*: page tables of device memory for other drivers, and their DMA
 * mappings. Rules of the real driver that callers depend on:
 *
 *  - get, put and dma_map take the RM lock; dma_unmap takes the table's own lock only, so
 *    it works inside a free callback, and must not come after one.
 *  - A callback runs once, under the RM lock, when the memory is freed, its process ends
 *    or the card goes; then the driver frees the table and every mapping made from it.
 *    A put that comes meanwhile waits, and any put after that returns 0.
 *  - A persistent pin keeps the memory past all of this, until it is put.
 */
#include <linux/dma-mapping.h>
#include <linux/hashtable.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "gpu_sim.h"
#include "nv_p2p_abi.h"

/*
 * Two pins may cover one page, so a peer may map it twice. Device memory has no CPU cache
 * lines that this could confuse; the attribute says so to CONFIG_DMA_API_DEBUG.
 */
#define GPU_DMA_ATTRS DMA_ATTR_SKIP_CPU_SYNC

struct gpu_pin {
	struct nvidia_p2p_page_table table;	/* what the caller sees */
	struct hlist_node hash;			/* in gpu_pins: the pin is live; RM lock */
	struct list_head link;			/* mem->pins; RM lock */
	struct gpu_mem *mem;			/* referenced, and used; constant */
	u64 va;					/* constant, as all below up to lock */
	u32 first;				/* index of its first page in mem */
	u32 npages;				/* of 64 KiB */
	bool persistent;
	void (*callback)(void *data);
	void *data;
	struct nvidia_p2p_page *page;		/* table.pages points into it */

	struct mutex lock;			/* maps */
	struct list_head maps;			/* lock */
};

/* A physically contiguous run, mapped as one. */
struct gpu_dma_run {
	dma_addr_t iova;
	size_t len;
};

struct gpu_dma {
	struct nvidia_p2p_dma_mapping map;	/* what the caller sees */
	struct list_head link;			/* pin->maps; pin->lock */
	struct pci_dev *peer;			/* referenced; constant */
	bool translated;			/* runs came from dma_map_resource() */
	u32 nruns;
	struct gpu_dma_run *runs;
};

static char *pin_mode = "both";
module_param(pin_mode, charp, 0444);
MODULE_PARM_DESC(pin_mode, "pins that work: both, persistent or callback (both)");

static bool persistent_works = true, callback_works = true;

static DEFINE_MUTEX(gpu_rm_mutex);
static DEFINE_HASHTABLE(gpu_pins, 8);		/* live pins by address of the table; RM lock */
static struct task_struct *gpu_in_callback;	/* W: RM lock; R: compared with current */

void gpu_rm_lock(void)
{
	mutex_lock(&gpu_rm_mutex);
}

void gpu_rm_unlock(void)
{
	mutex_unlock(&gpu_rm_mutex);
}

void gpu_rm_assert_held(void)
{
	lockdep_assert_held(&gpu_rm_mutex);
}

/* Enter from another driver. Out of a free callback the real driver hangs for ever. */
static int gpu_rm_enter(const char *who)
{
	if (WARN_ONCE(READ_ONCE(gpu_in_callback) == current,
		      "gpu-sim: %s called from a free callback: the real driver deadlocks here\n",
		      who))
		return -EDEADLK;
	gpu_rm_lock();
	return 0;
}

/* The live pin of a table that may long be gone: compares, never dereferences it. */
static struct gpu_pin *gpu_pin_find(const struct nvidia_p2p_page_table *table)
{
	struct gpu_pin *pin;

	gpu_rm_assert_held();
	hash_for_each_possible(gpu_pins, pin, hash, (unsigned long)table) {
		if (&pin->table == table)
			return pin;
	}
	return NULL;
}

static void gpu_dma_free(struct gpu_dma *dma)
{
	u32 i;

	for (i = 0; dma->translated && i < dma->nruns; i++)
		dma_unmap_resource(&dma->peer->dev, dma->runs[i].iova, dma->runs[i].len,
				   DMA_BIDIRECTIONAL, GPU_DMA_ATTRS);
	pci_dev_put(dma->peer);
	kvfree(dma->runs);
	kvfree(dma->map.dma_addresses);
	kfree(dma);
}

/* Frees the table, its mappings and its hold on the memory's structure, not on its use. */
static void gpu_pin_free(struct gpu_pin *pin)
{
	struct gpu_card *card = pin->mem->card;
	struct gpu_dma *dma, *next;

	list_for_each_entry_safe(dma, next, &pin->maps, link) {
		list_del(&dma->link);
		atomic_dec(&card->nmaps);
		gpu_dma_free(dma);
	}
	kvfree(pin->table.pages);
	kvfree(pin->page);
	mutex_destroy(&pin->lock);
	gpu_mem_put(pin->mem);
	kfree(pin);
	module_put(THIS_MODULE);
}

/* No look-up finds the pin any more. True: it was the last user of the memory. */
static bool gpu_pin_unlist(struct gpu_pin *pin)
{
	struct gpu_card *card = pin->mem->card;

	gpu_rm_assert_held();
	hash_del(&pin->hash);
	list_del(&pin->link);
	card->npins--;
	card->pinned -= (u64)pin->npages << GPU_SIM_PAGE_SHIFT;
	return gpu_mem_unuse(pin->mem);
}

/*
 * The memory goes away: tell the holders of callback pins and drop their pins. RM lock
 * held, and kept over the callbacks. The caller uses mem, so no pin is its last user.
 */
void gpu_p2p_revoke(struct gpu_mem *mem)
{
	struct gpu_pin *pin, *next;

	gpu_rm_assert_held();
	list_for_each_entry_safe(pin, next, &mem->pins, link) {
		if (pin->persistent)
			continue;
		gpu_fault_delay_callback();
		WRITE_ONCE(gpu_in_callback, current);
		pin->callback(pin->data);
		WRITE_ONCE(gpu_in_callback, NULL);
		gpu_pin_unlist(pin);
		gpu_pin_free(pin);
	}
}

static int gpu_pin_fill(struct gpu_pin *pin)
{
	struct nvidia_p2p_page_table *table = &pin->table;
	u32 shift = gpu_fault_page_shift(), step = 1U << (shift - GPU_SIM_PAGE_SHIFT), i;
	struct gpu_mem *mem = pin->mem;
	phys_addr_t phys;

	table->version = gpu_fault_table_version();
	table->page_size = step == 1 ? NVIDIA_P2P_PAGE_SIZE_64KB : NVIDIA_P2P_PAGE_SIZE_128KB;
	table->entries = pin->npages / step;
	table->gpu_uuid = mem->card->uuid;
	/* a table of major 1 ends before flags: who reads them reads this */
	table->flags = NVIDIA_P2P_MAJOR(table->version) >= 2 ? 0 : ~0U;
	if (pin->npages % step)
		return -EINVAL;
	table->pages = kvcalloc(table->entries, sizeof(*table->pages), GFP_KERNEL);
	pin->page = kvcalloc(table->entries, sizeof(*pin->page), GFP_KERNEL);
	if (!table->pages || !pin->page)
		return -ENOMEM;
	for (i = 0; i < table->entries; i++) {
		phys = gpu_page_phys(mem, pin->first + i * step);
		if (step > 1 && (!IS_ALIGNED(phys, 1ULL << shift) ||
				 gpu_page_phys(mem, pin->first + i * step + 1) !=
				 phys + GPU_SIM_PAGE_SIZE))
			return -EINVAL;
		pin->page[i].physical_address = phys;
		table->pages[i] = &pin->page[i];
	}
	return 0;
}

/* Arguments are checked. RM lock held. */
static int gpu_pin_make(u64 va, u64 len, struct nvidia_p2p_page_table **table,
			void (*callback)(void *data), void *data)
{
	struct gpu_card *card;
	struct gpu_pin *pin;
	struct gpu_mem *mem;
	u32 first;
	int ret;

	ret = gpu_fault(GPU_FAULT_GET_PAGES);
	if (ret)
		return ret;
	if (gpu_peers_decide()) {
		mem = gpu_peers_find(va, len, &first);
	} else {
		mem = gpu_mem_find(task_tgid(current), va, len);
		first = mem ? (va - mem->va) >> GPU_SIM_PAGE_SHIFT : 0;
	}
	if (!mem)
		return -EINVAL;
	card = mem->card;
	if (card->dead)
		return -ENODEV;
	if (card->pinned + len > gpu_fault_bar1_bytes())
		return -ENOMEM;
	pin = kzalloc(sizeof(*pin), GFP_KERNEL);
	if (!pin)
		return -ENOMEM;
	pin->mem = mem;
	pin->va = va;
	pin->first = first;
	pin->npages = len >> GPU_SIM_PAGE_SHIFT;
	pin->persistent = !callback;
	pin->callback = callback;
	pin->data = data;
	mutex_init(&pin->lock);
	INIT_LIST_HEAD(&pin->maps);
	ret = gpu_pin_fill(pin);
	if (ret)
		goto free;
	/* the caller is linked to us, so this only fails while the module is torn down */
	ret = -ENODEV;
	if (!try_module_get(THIS_MODULE))
		goto free;
	gpu_mem_get(mem);
	mem->users++;
	card->npins++;
	card->pinned += len;
	list_add_tail(&pin->link, &mem->pins);
	hash_add(gpu_pins, &pin->hash, (unsigned long)&pin->table);
	*table = &pin->table;
	return 0;

free:
	kvfree(pin->table.pages);
	kvfree(pin->page);
	mutex_destroy(&pin->lock);
	kfree(pin);
	return ret;
}

static int gpu_pin_get(u64 va, u64 len, struct nvidia_p2p_page_table **table,
		       void (*callback)(void *data), void *data, const char *who)
{
	int ret;

	if (!table || !len || !IS_ALIGNED(va, GPU_SIM_PAGE_SIZE) ||
	    !IS_ALIGNED(len, GPU_SIM_PAGE_SIZE))
		return -EINVAL;
	ret = gpu_rm_enter(who);
	if (ret)
		return ret;
	ret = gpu_pin_make(va, len, table, callback, data);
	gpu_rm_unlock();
	return ret;
}

int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 va, u64 len,
			 struct nvidia_p2p_page_table **table,
			 void (*free_callback)(void *data), void *data)
{
	if (!callback_works)
		return -ENOTSUPP;
	if (p2p_token || va_space || !free_callback)
		return -EINVAL;
	return gpu_pin_get(va, len, table, free_callback, data, __func__);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages);

int nvidia_p2p_get_pages_persistent(u64 va, u64 len, struct nvidia_p2p_page_table **table,
				    u32 flags)
{
	if (!persistent_works)
		return -ENOTSUPP;
	if (flags)
		return -EINVAL;
	return gpu_pin_get(va, len, table, NULL, NULL, __func__);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages_persistent);

/* 0, or `gone` when there is no such live pin. */
static int gpu_pin_put(u64 va, struct nvidia_p2p_page_table *table, bool persistent, int gone,
		       const char *who)
{
	struct gpu_mem *mem;
	struct gpu_pin *pin;
	bool last;
	int ret;

	if (!table)
		return -EINVAL;
	ret = gpu_rm_enter(who);
	if (ret)
		return ret;
	pin = gpu_pin_find(table);
	if (!pin || pin->persistent != persistent || pin->va != va) {
		gpu_rm_unlock();
		return pin ? -EINVAL : gone;
	}
	mem = pin->mem;
	gpu_mem_get(mem);
	last = gpu_pin_unlist(pin);
	gpu_pin_free(pin);
	gpu_rm_unlock();
	if (last)
		gpu_vram_release(mem);
	gpu_mem_put(mem);
	return 0;
}

int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 va,
			 struct nvidia_p2p_page_table *table)
{
	if (p2p_token || va_space)
		return -EINVAL;
	return gpu_pin_put(va, table, false, 0, __func__);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages);

int nvidia_p2p_put_pages_persistent(u64 va, struct nvidia_p2p_page_table *table, u32 flags)
{
	if (flags)
		return -EINVAL;
	return gpu_pin_put(va, table, true, -EINVAL, __func__);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages_persistent);

static bool gpu_peer_translates(struct pci_dev *peer)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&peer->dev);

	return domain && domain->type != IOMMU_DOMAIN_IDENTITY;
}

/* Bytes of physically contiguous memory from page i of the pin on. */
static size_t gpu_pin_run(const struct gpu_pin *pin, u32 i)
{
	const struct gpu_mem *mem = pin->mem;
	u32 n = 1;

	while (i + n < pin->npages &&
	       mem->page[pin->first + i + n] == mem->page[pin->first + i] + n)
		n++;
	return (size_t)n << GPU_SIM_PAGE_SHIFT;
}

static int gpu_dma_map_run(struct gpu_dma *dma, struct gpu_card *card, phys_addr_t phys,
			   struct gpu_dma_run *run)
{
	struct device *dev = &dma->peer->dev;

	if (dma->translated) {
		run->iova = dma_map_resource(dev, phys, run->len, DMA_BIDIRECTIONAL,
					     GPU_DMA_ATTRS);
		return dma_mapping_error(dev, run->iova) ? -EIO : 0;
	}
	/* without translation a peer sees bus addresses, which are not always the CPU's */
	run->iova = card->bus + (phys - card->phys);
	return run->iova + run->len - 1 > dma_get_mask(dev) ? -ENOTSUPP : 0;
}

/* One run after the other; IOVAs of a run follow on. RM lock held. */
static int gpu_dma_fill(struct gpu_dma *dma, struct gpu_pin *pin)
{
	struct gpu_card *card = pin->mem->card;
	u32 step = pin->npages / pin->table.entries, i, k;
	struct gpu_dma_run *run;
	int ret;

	for (i = 0; i < pin->npages; i += run->len >> GPU_SIM_PAGE_SHIFT) {
		run = &dma->runs[dma->nruns];
		run->len = gpu_pin_run(pin, i);
		ret = gpu_dma_map_run(dma, card, gpu_page_phys(pin->mem, pin->first + i), run);
		if (ret)
			return ret;
		dma->nruns++;
		for (k = 0; k < run->len >> GPU_SIM_PAGE_SHIFT; k += step)
			dma->map.dma_addresses[(i + k) / step] =
				run->iova + ((u64)k << GPU_SIM_PAGE_SHIFT);
	}
	return 0;
}

static int gpu_dma_make(struct pci_dev *peer, struct gpu_pin *pin,
			struct nvidia_p2p_dma_mapping **mapping)
{
	struct gpu_card *card = pin->mem->card;
	struct gpu_dma *dma;
	u32 nruns = 0, i;
	int ret;

	if (card->dead)
		return -ENODEV;
	ret = gpu_fault(GPU_FAULT_DMA_MAP);
	if (ret)
		return ret;
	dma = kzalloc(sizeof(*dma), GFP_KERNEL);
	if (!dma)
		return -ENOMEM;
	dma->peer = pci_dev_get(peer);
	dma->translated = gpu_peer_translates(peer);
	for (i = 0; i < pin->npages; i += gpu_pin_run(pin, i) >> GPU_SIM_PAGE_SHIFT)
		nruns++;
	dma->runs = kvcalloc(nruns, sizeof(*dma->runs), GFP_KERNEL);
	dma->map.dma_addresses = kvcalloc(pin->table.entries, sizeof(u64), GFP_KERNEL);
	ret = -ENOMEM;
	if (!dma->runs || !dma->map.dma_addresses)
		goto free;
	dma->map.version = NVIDIA_P2P_DMA_MAPPING_VERSION_2;
	dma->map.page_size_type = pin->table.page_size;
	dma->map.entries = pin->table.entries;
	dma->map.pci_dev = peer;
	ret = gpu_dma_fill(dma, pin);
	if (ret)
		goto free;
	mutex_lock(&pin->lock);
	list_add_tail(&dma->link, &pin->maps);
	mutex_unlock(&pin->lock);
	atomic_inc(&card->nmaps);
	*mapping = &dma->map;
	return 0;

free:
	gpu_dma_free(dma);
	return ret;
}

int nvidia_p2p_dma_map_pages(struct pci_dev *peer, struct nvidia_p2p_page_table *table,
			     struct nvidia_p2p_dma_mapping **mapping)
{
	struct gpu_pin *pin;
	int ret;

	if (!peer || !table || !mapping)
		return -EINVAL;
	ret = gpu_rm_enter(__func__);
	if (ret)
		return ret;
	pin = gpu_pin_find(table);
	ret = pin ? gpu_dma_make(peer, pin, mapping) : -EINVAL;
	gpu_rm_unlock();
	return ret;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_dma_map_pages);

/* Dereferences the table, as the real one does: not after the free callback returned. */
int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer, struct nvidia_p2p_page_table *table,
			       struct nvidia_p2p_dma_mapping *mapping)
{
	struct gpu_dma *dma, *found = NULL;
	struct gpu_card *card;
	struct gpu_pin *pin;

	if (!peer || !table || !mapping)
		return -EINVAL;
	pin = container_of(table, struct gpu_pin, table);
	card = pin->mem->card;
	mutex_lock(&pin->lock);
	list_for_each_entry(dma, &pin->maps, link) {
		if (&dma->map == mapping && dma->peer == peer) {
			found = dma;
			list_del(&dma->link);
			break;
		}
	}
	mutex_unlock(&pin->lock);
	if (!found)
		return -EINVAL;
	atomic_dec(&card->nmaps);
	gpu_dma_free(found);
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_dma_unmap_pages);

/* For free callbacks. The driver frees both itself when the callback has returned. */
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *table)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_free_page_table);

int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *mapping)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_free_dma_mapping);

int gpu_p2p_init(void)
{
	if (!strcmp(pin_mode, "persistent"))
		callback_works = false;
	else if (!strcmp(pin_mode, "callback"))
		persistent_works = false;
	else if (strcmp(pin_mode, "both"))
		return -EINVAL;
	return 0;
}
