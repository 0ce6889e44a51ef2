// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu.c - pins GPU memory and reaches it from peers. Nothing else calls nvidia_p2p_*.
 *
 * The functions are looked up by name, so that the module loads without a GPU driver and
 * works with whichever exports them. What is used is decided by which symbols exist and
 * by the parameter pin_mode, never by a version.
 *
 * The GPU driver's free callback and our own unmapping may run at the same time. The rule:
 * `gone` is set by the callback under nvfs_mapping.lock, which then waits until `users`
 * is 0; whoever touches DMA mappings first raises `users`, and only while `gone` is not
 * set. Who unpins waits for a callback that has begun, and leaves put_pages out then; a
 * callback that begins later makes put_pages wait in the driver. Making a mapping takes
 * the driver's own lock, which a callback holds, so a mapping in the making is not counted
 * in `users`: its result is looked at again afterwards.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "log.h"
#include "trace.h"
#include "view.h"

/* blocks of a pin are numbered with 32 bits, and one number means none */
#define NVFS_MAX_PIN ((u64)S32_MAX << NVFS_BLOCK_SHIFT)

struct nvfs_gpu_ops {
	typeof(&nvidia_p2p_get_pages) get;
	typeof(&nvidia_p2p_put_pages) put;
	typeof(&nvidia_p2p_get_pages_persistent) get_persistent;
	typeof(&nvidia_p2p_put_pages_persistent) put_persistent;
	typeof(&nvidia_p2p_dma_map_pages) dma_map;
	typeof(&nvidia_p2p_dma_unmap_pages) dma_unmap;
	typeof(&nvidia_p2p_free_page_table) free_table;
};

static const struct {
	const char *name;
	size_t off;
	bool persistent;	/* one of the pair that older drivers lack */
} nvfs_gpu_symbols[] = {
#define SYM(member, name, persistent) { name, offsetof(struct nvfs_gpu_ops, member), persistent }
	SYM(get, "nvidia_p2p_get_pages", false),
	SYM(put, "nvidia_p2p_put_pages", false),
	SYM(dma_map, "nvidia_p2p_dma_map_pages", false),
	SYM(dma_unmap, "nvidia_p2p_dma_unmap_pages", false),
	SYM(free_table, "nvidia_p2p_free_page_table", false),
	SYM(get_persistent, "nvidia_p2p_get_pages_persistent", true),
	SYM(put_persistent, "nvidia_p2p_put_pages_persistent", true),
#undef SYM
};

static struct nvfs_gpu_ops nvfs_gpu;	/* valid while nvfs_gpu_users > 0 */
static unsigned int nvfs_gpu_users;	/* nvfs_gpu_lock */
static DEFINE_MUTEX(nvfs_gpu_lock);

char *nvfs_pin_mode = "auto";
module_param_named(pin_mode, nvfs_pin_mode, charp, 0444);
MODULE_PARM_DESC(pin_mode, "how GPU memory is pinned: auto (persistent where the GPU driver has it), persistent, callback");

/* what pin_mode comes to, and where root changes it afterwards */
static bool nvfs_legacy = true;
module_param_named(use_legacy_p2p_allocation, nvfs_legacy, bool, 0644);
MODULE_PARM_DESC(use_legacy_p2p_allocation, "new MAPs pin with callbacks, whatever the GPU driver has; set from pin_mode when loaded");

/* pin_mode is known. What was given for the other parameter does not count, as in the original. */
int nvfs_gpu_init(void)
{
	if (strcmp(nvfs_pin_mode, "auto") && strcmp(nvfs_pin_mode, "persistent") &&
	    strcmp(nvfs_pin_mode, "callback")) {
		nvfs_warn("pin_mode=%s: one of auto, persistent, callback (-EINVAL)\n",
			  nvfs_pin_mode);
		return -EINVAL;
	}
	nvfs_legacy = !strcmp(nvfs_pin_mode, "callback");
	return 0;
}

static void **nvfs_gpu_slot(unsigned int i)
{
	return (void **)((char *)&nvfs_gpu + nvfs_gpu_symbols[i].off);
}

static void nvfs_gpu_drop(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nvfs_gpu_symbols); i++) {
		if (*nvfs_gpu_slot(i))
			__symbol_put(nvfs_gpu_symbols[i].name);
		*nvfs_gpu_slot(i) = NULL;
	}
}

/*
 * Hold the GPU driver's functions; -ENODEV and a line that names the missing one when
 * there is no driver that has them.
 */
int nvfs_gpu_get(void)
{
	const char *missing = NULL;
	unsigned int i;
	int r = 0;

	mutex_lock(&nvfs_gpu_lock);
	if (nvfs_gpu_users)
		goto held;
	for (i = 0; i < ARRAY_SIZE(nvfs_gpu_symbols); i++) {
		*nvfs_gpu_slot(i) = __symbol_get(nvfs_gpu_symbols[i].name);
		if (!*nvfs_gpu_slot(i) && !nvfs_gpu_symbols[i].persistent && !missing)
			missing = nvfs_gpu_symbols[i].name;
	}
	if (missing) {
		nvfs_say("MAP: no loaded module exports %s (-ENODEV): load the GPU driver (nvidia, or gpu-sim) first\n",
			 missing);
		nvfs_gpu_drop();
		r = -ENODEV;
		goto out;
	}
held:
	nvfs_gpu_users++;
out:
	mutex_unlock(&nvfs_gpu_lock);
	return r;
}

void nvfs_gpu_put(void)
{
	mutex_lock(&nvfs_gpu_lock);
	if (!--nvfs_gpu_users)
		nvfs_gpu_drop();
	mutex_unlock(&nvfs_gpu_lock);
}

/*
 * The GPU memory goes away. Runs once, in the context that frees it, below the GPU
 * driver's locks; when it returns no DMA may touch the memory any more.
 */
static void nvfs_gpu_free_callback(void *data)
{
	struct nvfs_mapping *m = data;

	nvfs_stat_inc(NVFS_ST_CALLBACK);
	trace_nvfs_die(m, NVFS_DEATH_FREED);
	nvfs_dbg("the GPU memory of the mapping at 0x%lx is freed\n", m->cpuvaddr);
	nvfs_mapping_revoke(m, true);
	wait_event(m->idle, !READ_ONCE(m->users));
	nvfs_view_quiet(m);
	nvfs_fence_state(m, NVFS_FENCE_DIED);
	if (m->pin.table)
		nvfs_gpu.free_table(m->pin.table);

	spin_lock(&m->lock);
	m->pin.callback_done = true;
	wake_up_all(&m->idle);		/* below the lock: who unpins may free m after it */
	spin_unlock(&m->lock);
}

/* True when a callback has ended the pin; waits for it to be through. */
static bool nvfs_gpu_revoked(struct nvfs_mapping *m)
{
	bool gone;

	spin_lock(&m->lock);
	gone = m->pin.gone;
	spin_unlock(&m->lock);
	if (!gone)
		return false;
	wait_event(m->idle, READ_ONCE(m->pin.callback_done));
	spin_lock(&m->lock);
	spin_unlock(&m->lock);
	return true;
}

/* Which pair is used; -EOPNOTSUPP when pin_mode asks for one that is not there. */
static int nvfs_gpu_persistent(bool *persistent)
{
	bool have = nvfs_gpu.get_persistent && nvfs_gpu.put_persistent;
	bool legacy = READ_ONCE(nvfs_legacy);

	*persistent = have && !legacy;
	if (!have && !legacy && !strcmp(nvfs_pin_mode, "persistent")) {
		nvfs_say("MAP: pin_mode=persistent, but the GPU driver has no nvidia_p2p_get_pages_persistent\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int nvfs_gpu_check_table(const struct nvidia_p2p_page_table *t, u32 pages)
{
	u32 i, major = NVIDIA_P2P_MAJOR(t->version);

	if (major != 1 && major != 2) {
		nvfs_say("MAP: page table version 0x%08x of the GPU driver is unknown (majors 1 and 2 are known)\n",
			 t->version);
		return -EINVAL;
	}
	if (t->page_size != NVIDIA_P2P_PAGE_SIZE_64KB) {
		nvfs_say("MAP: the GPU driver gave pages of size class %u, not 64 KiB\n",
			 t->page_size);
		return -EINVAL;
	}
	if (t->entries < pages || !t->pages) {
		nvfs_say("MAP: the GPU driver pinned %u of %u pages\n", t->entries, pages);
		return -EINVAL;
	}
	for (i = 0; i < pages; i++) {
		if (!t->pages[i]) {
			nvfs_say("MAP: page %u of the GPU driver's page table is missing\n", i);
			return -EINVAL;
		}
	}
	return 0;
}

static void nvfs_runs_physical(const struct nvidia_p2p_page_table *t, u32 pages, u32 *run_end)
{
	u32 i;

	for (i = pages; i--;) {
		bool joins = i + 1 < pages && t->pages[i + 1]->physical_address ==
			     t->pages[i]->physical_address + NVFS_GPU_PAGE_SIZE;

		run_end[i] = joins ? run_end[i + 1] : i + 1;
	}
}

static void nvfs_gpu_put_pages(struct nvfs_pin *pin, struct nvidia_p2p_page_table *t)
{
	int r = pin->persistent ? nvfs_gpu.put_persistent(pin->va, t, 0) :
				  nvfs_gpu.put(0, 0, pin->va, t);

	if (r)
		nvfs_warn("the GPU driver refused to release 0x%llx + 0x%llx (%d)\n",
			  pin->va, pin->len, r);
}

/* why a GPU driver refuses to pin, as far as its code tells, and what to do */
static const char *nvfs_gpu_refusal(int r)
{
	switch (r) {
	case -EINVAL:
		return "no GPU memory of this process there, or a GeForce, of which peers get only what its process lists: the libcufile of OpenGDS does that";
	case -ENOMEM:
		return "BAR1 is full: register less at a time, or use a card with a larger BAR1";
	default:
		return "the GPU driver's own lines in this log may say more";
	}
}

/*
 * Pin [va, va + len), multiples of 64 KiB, of the calling process. Called by MAP alone.
 * Returns 0 or the GPU driver's own -errno; nothing is held then. Blocks.
 */
int nvfs_gpu_pin(struct nvfs_mapping *m, u64 va, u64 len)
{
	struct nvfs_pin *pin = &m->pin;
	struct nvidia_p2p_page_table *t = NULL;
	const char *fn;
	int r;

	r = nvfs_gpu_get();
	if (r)
		return r;
	memset(pin, 0, sizeof(*pin));
	r = -EINVAL;
	if (len > NVFS_MAX_PIN)
		goto put_ops;
	pin->va = va;
	pin->len = len;
	pin->pages = len >> NVFS_GPU_PAGE_SHIFT;
	r = nvfs_gpu_persistent(&pin->persistent);
	if (r)
		goto put_ops;
	if (pin->persistent) {
		fn = "nvidia_p2p_get_pages_persistent";
		r = nvfs_gpu.get_persistent(va, len, &t, 0);
		/* there, but not on this platform: the other kind will do, unless told not to */
		pin->persistent = r != -ENOTSUPP || !strcmp(nvfs_pin_mode, "persistent");
	}
	if (!pin->persistent) {
		fn = "nvidia_p2p_get_pages";
		r = nvfs_gpu.get(0, 0, va, len, &t, nvfs_gpu_free_callback, m);
	}
	if (r || !t) {
		r = r < 0 ? r : -EIO;
		nvfs_say("MAP: %s(0x%llx, %llu bytes) refused: %d (%s)\n", fn, va, len, r,
			 nvfs_gpu_refusal(r));
		goto put_ops;
	}
	r = nvfs_fault(NVFS_FAULT_P2P_PAGE) ? -EINVAL : nvfs_gpu_check_table(t, pin->pages);
	if (r)
		goto put_pages;
	r = -ENOMEM;
	pin->run_end = kvmalloc_array(pin->pages, sizeof(*pin->run_end), GFP_KERNEL_ACCOUNT);
	if (!pin->run_end)
		goto put_pages;
	nvfs_runs_physical(t, pin->pages, pin->run_end);
	pin->table = t;
	nvfs_gpustat_pin(m, t);
	return 0;

put_pages:
	if (!nvfs_gpu_revoked(m))
		nvfs_gpu_put_pages(pin, t);
put_ops:
	nvfs_gpu_put();
	return r;
}

/* Undo nvfs_gpu_pin(); no peer is mapped any more and no request is in flight. Blocks. */
void nvfs_gpu_unpin(struct nvfs_mapping *m)
{
	struct nvfs_pin *pin = &m->pin;

	if (!pin->table)
		return;
	if (!nvfs_gpu_revoked(m))
		nvfs_gpu_put_pages(pin, pin->table);
	pin->table = NULL;
	nvfs_gpustat_unpin(m);
	kvfree(pin->run_end);
	pin->run_end = NULL;
	nvfs_gpu_put();
}

/* Count as a user of the DMA mappings unless the GPU driver has taken them. */
static bool nvfs_gpu_hold(struct nvfs_mapping *m)
{
	bool ok;

	spin_lock(&m->lock);
	ok = !m->pin.gone;
	if (ok)
		m->users++;
	spin_unlock(&m->lock);
	return ok;
}

/* Where the pinned pages are, one address each; -EIO when the memory was freed meanwhile. */
int nvfs_gpu_addresses(struct nvfs_mapping *m, u64 *phys)
{
	u32 i;

	if (!nvfs_gpu_hold(m))
		return -EIO;
	for (i = 0; i < m->pin.pages; i++)
		phys[i] = m->pin.table->pages[i]->physical_address;
	nvfs_mapping_leave(m);
	return 0;
}

static bool nvfs_dma_joins(const struct nvidia_p2p_dma_mapping *d, u32 i)
{
	return d->dma_addresses[i + 1] == d->dma_addresses[i] + NVFS_GPU_PAGE_SIZE;
}

static int nvfs_gpu_check_dma(struct nvfs_mapping *m, const struct nvidia_p2p_dma_mapping *d,
			      struct pci_dev *pdev)
{
	u32 i;

	if (d->entries < m->pin.pages || d->page_size_type != NVIDIA_P2P_PAGE_SIZE_64KB ||
	    !d->dma_addresses) {
		nvfs_warn("%s: the GPU driver mapped %u of %u pages (size class %u)\n",
			  pci_name(pdev), d->entries, m->pin.pages, d->page_size_type);
		return -EIO;
	}
	for (i = 0; i < m->pin.pages; i++) {
		if (!d->dma_addresses[i]) {
			nvfs_warn("%s: no DMA address for page %u of 0x%llx\n",
				  pci_name(pdev), i, m->pin.va);
			return -EIO;
		}
	}
	return 0;
}

/*
 * DMA addresses of the pinned range for one peer. Takes the GPU driver's locks; blocks.
 * nvfs_topo_lock held. ERR_PTR(-errno) when the GPU driver refuses the pair.
 */
struct nvfs_peer_map *nvfs_gpu_map_peer(struct nvfs_mapping *m, struct pci_dev *pdev)
{
	struct nvidia_p2p_dma_mapping *dma = NULL;
	struct nvfs_peer_map *pm;
	u32 i, end;
	int r;

	pm = kzalloc(sizeof(*pm), GFP_KERNEL_ACCOUNT);
	if (!pm)
		return ERR_PTR(-ENOMEM);
	pm->run_end = kvmalloc_array(m->pin.pages, sizeof(*pm->run_end), GFP_KERNEL_ACCOUNT);
	r = -ENOMEM;
	if (!pm->run_end)
		goto free;
	r = nvfs_gpu.dma_map(pdev, m->pin.table, &dma);
	if (r || !dma) {
		r = r < 0 ? r : -EIO;
		nvfs_warn("%s: nvidia_p2p_dma_map_pages refused: %d (is peer-to-peer possible between this drive and the GPU?)\n",
			  pci_name(pdev), r);
		goto free;
	}
	r = -EIO;
	if (!nvfs_gpu_hold(m))
		goto free;		/* freed meanwhile, and the mapping with it */
	r = nvfs_gpu_check_dma(m, dma, pdev);
	if (r) {
		nvfs_gpu.dma_unmap(pdev, m->pin.table, dma);
		nvfs_mapping_leave(m);
		goto free;
	}
	for (i = m->pin.pages; i--;) {
		bool joins = i + 1 < m->pin.pages && nvfs_dma_joins(dma, i);

		end = joins ? pm->run_end[i + 1] : i + 1;
		pm->run_end[i] = end;
		if (end < m->pin.run_end[i])
			WRITE_ONCE(m->pin.run_end[i], end);
	}
	pm->dma = dma;
	nvfs_mapping_leave(m);
	return pm;
free:
	kvfree(pm->run_end);
	kfree(pm);
	return ERR_PTR(r);
}

/* Nobody finds pm any more and no segment of this peer is mapped. Blocks. */
void nvfs_gpu_unmap_peer(struct nvfs_mapping *m, struct nvfs_peer_map *pm, struct pci_dev *pdev)
{
	if (nvfs_gpu_hold(m)) {
		nvfs_gpu.dma_unmap(pdev, m->pin.table, pm->dma);
		nvfs_mapping_leave(m);
	}
	kvfree(pm->run_end);
	kfree(pm);
}
