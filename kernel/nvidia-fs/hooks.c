// SPDX-License-Identifier: GPL-2.0-only
/*
 * hooks.c - the storage drivers that are known to have the hook: found by the names of the
 * functions that they export, attached when this module loads, when they load, and at each
 * open of a node; detached when this module goes.
 */
#include <linux/device/driver.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/seq_file.h>

#include "nvidia-fs.h"
#include "hook.h"
#include "log.h"

/* which table a pair of functions takes */
enum nvfs_table { NVFS_V1_NVME, NVFS_V1_ANY, NVFS_V2 };

struct nvfs_way {
	enum nvfs_table table;
	const char *reg;
	const char *unreg;
};

#define NVFS_MAX_WAYS 3

struct nvfs_hook {
	const char *key;		/* in proc file `modules`; user space knows them */
	const char *pci_driver;		/* to name its version, or NULL */
	struct nvfs_way ways[NVFS_MAX_WAYS];	/* tried in this order; reg NULL ends them */
	const struct nvfs_way *way;	/* attached by it, or NULL */
	nvfs_unregister_dma_ops_fn unreg;	/* its symbol is held while attached */
	char reason[160];		/* why not attached */
};

#define NVFS_PAIR(t, name, ops) \
	{ .table = t, .reg = name "_register_" ops, .unreg = name "_unregister_" ops }
#define NVFS_DRIVER(k, t, name) { .key = k, .ways = { NVFS_PAIR(t, name, "nvfs_dma_ops") } }

static struct nvfs_hook nvfs_hooks[] = {	/* nvfs_hook_lock */
	{
		.key = "nvme",
		.pci_driver = "nvme",
		/*
		 * The name follows the ABI; drivers were shipped that take the v1 table under
		 * the v2 name. Trying is safe: each side looks at the feature bits first.
		 */
		.ways = {
			NVFS_PAIR(NVFS_V2, "nvme_v2", "nvfs_dma_ops"),
			NVFS_PAIR(NVFS_V1_NVME, "nvme_v2", "nvfs_dma_ops"),
			NVFS_PAIR(NVFS_V1_NVME, "nvme_v1", "nvfs_dma_ops"),
		},
	},
	NVFS_DRIVER("nvme_rdma", NVFS_V1_NVME, "nvme_rdma_v1"),
	NVFS_DRIVER("sfxvdriver", NVFS_V1_NVME, "sfxv_v1"),
	NVFS_DRIVER("nvmeib_common", NVFS_V1_NVME, "nvmesh_v1"),
	NVFS_DRIVER("lnet", NVFS_V1_ANY, "lustre_v1"),
	NVFS_DRIVER("beegfs", NVFS_V1_ANY, "beegfs_v1"),
	NVFS_DRIVER("mmfslinux", NVFS_V1_ANY, "ibm_scale_v1"),
	NVFS_DRIVER("rpcrdma", NVFS_V1_ANY, "rpcrdma"),
	NVFS_DRIVER("scatefs", NVFS_V1_ANY, "scatefs"),
	{
		.key = "scsi_mod",
		.ways = { NVFS_PAIR(NVFS_V1_ANY, "scsi_v1", "dma_scsi_ops") },
	},
};

static DEFINE_MUTEX(nvfs_hook_lock);
static unsigned int nvfs_hooks_attached;	/* written under nvfs_hook_lock */

static const char nvfs_absent[] =
	"no loaded module exports its hook: is it loaded, and is it the patched one?";

bool nvfs_hooks_any(void)
{
	return READ_ONCE(nvfs_hooks_attached);
}

/* Does the PCI driver of that name ask us for addresses? Others than those in the table do. */
bool nvfs_hooks_serve(const char *driver)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++)
		if (nvfs_hooks[i].pci_driver && !strcmp(nvfs_hooks[i].pci_driver, driver))
			return READ_ONCE(nvfs_hooks[i].way);
	return nvfs_hooks_any();
}

static bool nvfs_has_table(enum nvfs_table table)
{
#ifndef HAVE_BLK_DMA_ITER
	if (table == NVFS_V2)
		return false;
#endif
	return true;
}

static int nvfs_hand_over(void *reg, enum nvfs_table table)
{
	switch (table) {
	case NVFS_V1_NVME:
		return ((nvfs_register_dma_ops_fn)reg)(&nvfs_v1_nvme_ops);
	case NVFS_V1_ANY:
		return ((nvfs_register_dma_ops_fn)reg)(&nvfs_v1_ops);
	case NVFS_V2:
#ifdef HAVE_BLK_DMA_ITER
		return ((nvfs_register_blk_iter_ops_fn)reg)(&nvfs_v2_ops);
#endif
		break;
	}
	return -EOPNOTSUPP;
}

/* True: attached. Else, if something of it is there, why[] says what is wrong with that. */
static bool nvfs_hook_try(struct nvfs_hook *h, const struct nvfs_way *w, char *why, size_t size)
{
	void *reg = __symbol_get(w->reg), *unreg = __symbol_get(w->unreg);
	bool ok = false;
	int r;

	if (reg && unreg) {
		r = nvfs_hand_over(reg, w->table);
		ok = !r;
		if (r)
			scnprintf(why, size, "%s refused the %s table (%pe)", w->reg,
				  w->table == NVFS_V2 ? "v2" : "v1", ERR_PTR(r < 0 ? r : -EIO));
	} else if (reg || unreg) {
		scnprintf(why, size, "half a hook: %s is exported, %s is not",
			  reg ? w->reg : w->unreg, reg ? w->unreg : w->reg);
	}
	if (ok) {
		h->way = w;
		h->unreg = unreg;	/* its reference keeps the driver loaded */
	} else if (unreg) {
		__symbol_put(w->unreg);
	}
	if (reg)
		__symbol_put(w->reg);
	return ok;
}

static void nvfs_hook_attach(struct nvfs_hook *h)
{
	char why[sizeof(h->reason)] = "", more[sizeof(h->reason)];
	unsigned int i;

	for (i = 0; i < NVFS_MAX_WAYS && h->ways[i].reg; i++) {
		if (!nvfs_has_table(h->ways[i].table))
			continue;
		/* the first reason counts: later ways are for drivers of other makes */
		if (!nvfs_hook_try(h, &h->ways[i], why[0] ? more : why, sizeof(why)))
			continue;
		WRITE_ONCE(nvfs_hooks_attached, nvfs_hooks_attached + 1);
		nvfs_peers_changed();
		nvfs_note("%s: attached (%s)\n", h->key, h->way->table == NVFS_V2 ? "v2" : "v1");
		h->reason[0] = '\0';
		return;
	}
	if (!why[0])
		strscpy(why, nvfs_absent, sizeof(why));
	/* once a reason; that a driver nobody has is not there is no news */
	if (strcmp(why, h->reason) && (h->pci_driver || strcmp(why, nvfs_absent)))
		nvfs_note("%s: not attached: %s\n", h->key, why);
	strscpy(h->reason, why, sizeof(h->reason));
}

/* Attach what is loaded and not attached. Blocks. */
void nvfs_hooks_attach(void)
{
	unsigned int i;

	mutex_lock(&nvfs_hook_lock);
	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++)
		if (!nvfs_hooks[i].way)
			nvfs_hook_attach(&nvfs_hooks[i]);
	mutex_unlock(&nvfs_hook_lock);
}

/* Detach all; returns when no driver holds one of our segments. */
static void nvfs_hooks_detach(void)
{
	unsigned int i;

	mutex_lock(&nvfs_hook_lock);
	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++) {
		struct nvfs_hook *h = &nvfs_hooks[i];

		if (!h->way)
			continue;
		h->unreg();
		__symbol_put(h->way->unreg);
		h->way = NULL;
		WRITE_ONCE(nvfs_hooks_attached, nvfs_hooks_attached - 1);
	}
	mutex_unlock(&nvfs_hook_lock);
}

/* A module is loaded and its symbols can be taken: perhaps one of ours. */
static int nvfs_module_event(struct notifier_block *nb, unsigned long event, void *data)
{
	if (event == MODULE_STATE_LIVE && data != THIS_MODULE)
		nvfs_hooks_attach();
	return NOTIFY_OK;
}

static struct notifier_block nvfs_module_nb = { .notifier_call = nvfs_module_event };

int nvfs_hooks_init(void)
{
	int r = register_module_notifier(&nvfs_module_nb);

	if (!r)
		nvfs_hooks_attach();
	return r;
}

void nvfs_hooks_exit(void)
{
	unregister_module_notifier(&nvfs_module_nb);
	nvfs_hooks_detach();
}

static const char *nvfs_hook_version(const struct nvfs_hook *h)
{
	struct device_driver *drv = NULL;

	if (h->pci_driver)
		drv = driver_find(h->pci_driver, &pci_bus_type);
	return drv && drv->owner ? drv->owner->version : NULL;
}

/* The ABI's list: those attached. Libraries read it and take each line for a driver that works. */
void nvfs_hooks_show(struct seq_file *s)
{
	unsigned int i;

	mutex_lock(&nvfs_hook_lock);
	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++)
		if (nvfs_hooks[i].way)
			seq_printf(s, "%s: %s\n", nvfs_hooks[i].key,
				   nvfs_hook_version(&nvfs_hooks[i]) ?: "(null)");
	mutex_unlock(&nvfs_hook_lock);
	seq_puts(s, "wekafsio: 1\n");
}

/* Every driver we know, with its state. */
void nvfs_hooks_show_reasons(struct seq_file *s)
{
	unsigned int i;

	mutex_lock(&nvfs_hook_lock);
	for (i = 0; i < ARRAY_SIZE(nvfs_hooks); i++) {
		const struct nvfs_hook *h = &nvfs_hooks[i];

		if (h->way)
			seq_printf(s, "driver %s: attached (%s)\n", h->key,
				   h->way->table == NVFS_V2 ? "v2" : "v1");
		else
			seq_printf(s, "driver %s: not attached: %s\n", h->key, h->reason);
	}
	mutex_unlock(&nvfs_hook_lock);
}
