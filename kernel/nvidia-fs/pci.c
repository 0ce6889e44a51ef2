// SPDX-License-Identifier: GPL-2.0-only
/*
 * pci.c - the storage functions that may DMA into GPU memory, as they come and go.
 *
 * Every NVMe function bound to a driver with the hook is a peer. MAP makes DMA mappings
 * for all of them in process context; a peer that comes later is mapped before the next
 * request. Other drivers' functions (network cards of RDMA storage) are peers from the first
 * time they ask for a DMA address on: that request of theirs fails inside, and io.c submits
 * once more. A peer that goes is drained and unmapped before its driver lets go of it.
 */
#include <linux/delay.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "nvidia-fs.h"
#include "log.h"
#include "p2p.h"

#define NVFS_DRAIN_MS 5000
#define NVFS_WANTED 8

DEFINE_MUTEX(nvfs_topo_lock);		/* peers, and which mappings are mapped for them */

/* slots are filled and cleared under nvfs_topo_lock, read under RCU */
static struct nvfs_peer __rcu *nvfs_peer[NVFS_MAX_PEERS];
static unsigned long nvfs_peer_gen = 1;		/* raised when a peer comes; nvfs_topo_lock */
static LIST_HEAD(nvfs_pinned);			/* mappings with a pin; nvfs_topo_lock */

/* functions that asked and are no peers yet; referenced */
static struct pci_dev *nvfs_wanted[NVFS_WANTED];
static DEFINE_SPINLOCK(nvfs_wanted_lock);	/* taken in the dispatch path */

static const char * const nvfs_peer_drivers[] = { "nvme" };

static bool nvfs_is_peer(const struct pci_dev *pdev)
{
	unsigned int i;

	if (pdev->class != PCI_CLASS_STORAGE_EXPRESS || !pdev->dev.driver)
		return false;
	for (i = 0; i < ARRAY_SIZE(nvfs_peer_drivers); i++)
		if (!strcmp(pdev->dev.driver->name, nvfs_peer_drivers[i]))
			return true;
	return false;
}

/* The peer behind a DMA device, or NULL. RCU read lock held, or nvfs_topo_lock. */
struct nvfs_peer *nvfs_peer_find(struct device *dev)
{
	unsigned int i;

	for (i = 0; i < NVFS_MAX_PEERS; i++) {
		struct nvfs_peer *p = rcu_dereference_check(nvfs_peer[i],
							    lockdep_is_held(&nvfs_topo_lock));

		if (p && &p->pdev->dev == dev)
			return p;
	}
	return NULL;
}

static void nvfs_peer_add(struct pci_dev *pdev)
{
	struct nvfs_peer *p;
	unsigned int i;

	mutex_lock(&nvfs_topo_lock);
	p = nvfs_peer_find(&pdev->dev);
	if (p)
		goto out;
	for (i = 0; i < NVFS_MAX_PEERS; i++)
		if (!rcu_access_pointer(nvfs_peer[i]))
			break;
	p = i < NVFS_MAX_PEERS ? kzalloc(sizeof(*p), GFP_KERNEL) : NULL;
	if (!p) {
		nvfs_warn("%s: not used for direct I/O: %s\n", pci_name(pdev),
			  i < NVFS_MAX_PEERS ? "out of memory" : "more drives than NVFS_MAX_PEERS");
		goto out;
	}
	p->pdev = pci_dev_get(pdev);
	p->slot = i;
	rcu_assign_pointer(nvfs_peer[i], p);
	WRITE_ONCE(nvfs_peer_gen, nvfs_peer_gen + 1);
out:
	mutex_unlock(&nvfs_topo_lock);
}

static bool nvfs_peer_drained(struct nvfs_peer *p, unsigned int ms)
{
	for (; atomic_read(&p->segments) && ms; ms -= 20)
		msleep(20);
	return !atomic_read(&p->segments);
}

/* nvfs_topo_lock held, no segment of p mapped in m */
static void nvfs_peer_unmap_one(struct nvfs_mapping *m, struct nvfs_peer *p)
{
	struct nvfs_peer_map *pm;

	pm = rcu_replace_pointer(m->peer_map[p->slot], NULL, lockdep_is_held(&nvfs_topo_lock));
	if (!pm)
		return;
	synchronize_rcu();
	nvfs_gpu_unmap_peer(m, pm, p->pdev);
}

/*
 * The peer's driver is about to let go (`last` false), or has (`last` true). From now on
 * the hook refuses it; what is in flight ends by itself, unless the drive is dead, and
 * then its driver ends it while it unbinds: that is what the second chance is for.
 */
static void nvfs_peer_del(struct pci_dev *pdev, bool last)
{
	struct nvfs_mapping *m;
	struct nvfs_peer *p;

	mutex_lock(&nvfs_topo_lock);
	p = nvfs_peer_find(&pdev->dev);
	if (!p)
		goto out;
	WRITE_ONCE(p->dead, true);
	synchronize_rcu();
	if (!nvfs_peer_drained(p, NVFS_DRAIN_MS)) {
		if (!last)
			goto out;
		nvfs_warn("%s: %d segments were never given back by its driver; their GPU mappings stay\n",
			  pci_name(pdev), atomic_read(&p->segments));
		goto out;
	}
	list_for_each_entry(m, &nvfs_pinned, pinned)
		nvfs_peer_unmap_one(m, p);
	RCU_INIT_POINTER(nvfs_peer[p->slot], NULL);
	synchronize_rcu();
	pci_dev_put(p->pdev);
	kfree(p);
out:
	mutex_unlock(&nvfs_topo_lock);
}

static int nvfs_bus_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);

	switch (event) {
	case BUS_NOTIFY_BOUND_DRIVER:
		if (nvfs_is_peer(pdev))
			nvfs_peer_add(pdev);
		break;
	case BUS_NOTIFY_UNBIND_DRIVER:
		nvfs_p2p_unbind(pdev);
		nvfs_peer_del(pdev, false);
		break;
	case BUS_NOTIFY_UNBOUND_DRIVER:
		nvfs_peer_del(pdev, true);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block nvfs_bus_nb = { .notifier_call = nvfs_bus_event };

/*
 * A driver asked for addresses of m for a device that m is not mapped for. Whoever submitted
 * the request finds m->missed set, scans and comes again. Any context; RCU read lock held.
 */
void nvfs_peer_missed(struct nvfs_mapping *m, struct device *dev)
{
	struct pci_dev *pdev;
	unsigned long flags;
	int i, room = -1;

	if (dev && dev_is_pci(dev) && !nvfs_peer_find(dev)) {
		pdev = to_pci_dev(dev);
		spin_lock_irqsave(&nvfs_wanted_lock, flags);
		for (i = 0; i < NVFS_WANTED && nvfs_wanted[i] != pdev; i++)
			if (!nvfs_wanted[i])
				room = i;
		if (i == NVFS_WANTED && room >= 0)
			nvfs_wanted[room] = pci_dev_get(pdev);
		spin_unlock_irqrestore(&nvfs_wanted_lock, flags);
	}
	set_bit(0, &m->missed);
}

/* One function that asked, no longer noted; the caller puts it. NULL: no more. */
static struct pci_dev *nvfs_wanted_take(void)
{
	struct pci_dev *pdev = NULL;
	int i;

	spin_lock_irq(&nvfs_wanted_lock);
	for (i = 0; i < NVFS_WANTED && !pdev; i++)
		swap(pdev, nvfs_wanted[i]);
	spin_unlock_irq(&nvfs_wanted_lock);
	return pdev;
}

/*
 * Add every function that is bound already, and those that asked. NVMe functions that come
 * later tell by themselves. Blocks.
 */
void nvfs_peers_scan(void)
{
	struct pci_dev *pdev;

	while ((pdev = nvfs_wanted_take())) {
		device_lock(&pdev->dev);
		if (pdev->dev.driver)
			nvfs_peer_add(pdev);
		device_unlock(&pdev->dev);
		pci_dev_put(pdev);
	}
	while ((pdev = pci_get_class(PCI_CLASS_STORAGE_EXPRESS, pdev))) {
		device_lock(&pdev->dev);	/* so that an unbind does not pass us by */
		if (nvfs_is_peer(pdev))
			nvfs_peer_add(pdev);
		device_unlock(&pdev->dev);
	}
}

/*
 * nvfs_topo_lock held. 0, or the first error; the others are mapped all the same. Who has no hook
 * asks for no address: without any, and for P2PDMA carriers, there is nothing to map.
 */
static int nvfs_peers_map_locked(struct nvfs_mapping *m)
{
	bool asks = nvfs_hooks_any() && nvfs_carriers_of(m) != NVFS_CARRIERS_P2PDMA;
	unsigned int i;
	int r = 0;

	for (i = 0; asks && i < NVFS_MAX_PEERS; i++) {
		struct nvfs_peer *p = rcu_dereference_protected(nvfs_peer[i],
								lockdep_is_held(&nvfs_topo_lock));
		struct nvfs_peer_map *pm;

		if (!p || p->dead || rcu_access_pointer(m->peer_map[i]))
			continue;
		pm = nvfs_gpu_map_peer(m, p->pdev);
		if (IS_ERR(pm)) {
			r = r ?: PTR_ERR(pm);
			continue;
		}
		rcu_assign_pointer(m->peer_map[i], pm);
	}
	m->peer_gen = nvfs_peer_gen;
	return r;
}

/*
 * Make DMA mappings for all peers. A peer that the GPU driver refuses is left out (its
 * requests fail, and say so); only a GPU that vanished meanwhile fails MAP. Blocks.
 */
int nvfs_peers_map(struct nvfs_mapping *m)
{
	int r;

	mutex_lock(&nvfs_topo_lock);
	list_add_tail(&m->pinned, &nvfs_pinned);
	r = nvfs_peers_map_locked(m);
	mutex_unlock(&nvfs_topo_lock);
	return m->pin.gone || r == -ENOMEM ? r : 0;
}

/* No request is in flight, so nobody looks at the peers' mappings. Blocks. */
void nvfs_peers_unmap(struct nvfs_mapping *m)
{
	unsigned int i;

	mutex_lock(&nvfs_topo_lock);
	list_del_init(&m->pinned);
	for (i = 0; i < NVFS_MAX_PEERS; i++) {
		struct nvfs_peer *p = rcu_dereference_protected(nvfs_peer[i],
								lockdep_is_held(&nvfs_topo_lock));
		struct nvfs_peer_map *pm;

		pm = rcu_replace_pointer(m->peer_map[i], NULL, lockdep_is_held(&nvfs_topo_lock));
		if (pm)		/* a peer keeps its slot while a mapping uses it */
			nvfs_gpu_unmap_peer(m, pm, p->pdev);
	}
	mutex_unlock(&nvfs_topo_lock);
}

/* Before a request: map peers that came since. Nothing to do nearly always. May block. */
int nvfs_peers_refresh(struct nvfs_mapping *m)
{
	int r = 0;

	if (READ_ONCE(m->peer_gen) == READ_ONCE(nvfs_peer_gen))
		return 0;
	mutex_lock(&nvfs_topo_lock);
	if (READ_ONCE(m->state) == NVFS_READY)	/* later states: the request finds out */
		r = nvfs_peers_map_locked(m);
	mutex_unlock(&nvfs_topo_lock);
	return r;
}

/* A storage driver with the hook came: mappings made before it need their addresses. Blocks. */
void nvfs_peers_changed(void)
{
	mutex_lock(&nvfs_topo_lock);
	WRITE_ONCE(nvfs_peer_gen, nvfs_peer_gen + 1);
	mutex_unlock(&nvfs_topo_lock);
}

/* Another number than before: a slot may stand for another drive. */
unsigned long nvfs_peers_gen(void)
{
	return READ_ONCE(nvfs_peer_gen);
}

/* How many peers stand in slots, and the name of the first one's driver. */
unsigned int nvfs_peers_named(u64 slots, char *driver, size_t len)
{
	unsigned int i, n = 0;

	rcu_read_lock();
	for (i = 0; i < NVFS_MAX_PEERS; i++) {
		struct nvfs_peer *p = slots & BIT_ULL(i) ? rcu_dereference(nvfs_peer[i]) : NULL;

		if (p && !n++)
			strscpy(driver, dev_driver_string(&p->pdev->dev), len);
	}
	rcu_read_unlock();
	return n;
}

int nvfs_peers_init(void)
{
	int r = bus_register_notifier(&pci_bus_type, &nvfs_bus_nb);

	if (!r)
		nvfs_peers_scan();
	return r;
}

void nvfs_peers_exit(void)
{
	struct pci_dev *pdev;
	unsigned int i;

	bus_unregister_notifier(&pci_bus_type, &nvfs_bus_nb);
	while ((pdev = nvfs_wanted_take()))
		pci_dev_put(pdev);
	mutex_lock(&nvfs_topo_lock);
	for (i = 0; i < NVFS_MAX_PEERS; i++) {
		struct nvfs_peer *p = rcu_replace_pointer(nvfs_peer[i], NULL,
							  lockdep_is_held(&nvfs_topo_lock));

		if (!p)
			continue;
		synchronize_rcu();
		pci_dev_put(p->pdev);
		kfree(p);
	}
	mutex_unlock(&nvfs_topo_lock);
}
