// SPDX-License-Identifier: GPL-2.0-only
/*
 * pci.c - binds QEMU's ivshmem-plain function and makes a card of it; BAR 2 is its VRAM.
 *
 * No region is requested: the BAR stays open to sysfs resource2 mappings, which is how
 * tests look at VRAM from elsewhere in the guest.
 */
#include <linux/bitops.h>
#include <linux/pci-p2pdma.h>
#include <linux/slab.h>

#include "gpu_sim.h"

static const struct pci_device_id gpu_ids[] = {
	{ PCI_DEVICE(0x1af4, 0x1110) },
	{ }
};
MODULE_DEVICE_TABLE(pci, gpu_ids);

bool gpu_wc;
module_param_named(wc, gpu_wc, bool, 0444);
MODULE_PARM_DESC(wc, "map the BAR write-combined, as GPU drivers do unless told not to (0)");

static bool gpu_own_pages;
module_param_named(own_pages, gpu_own_pages, bool, 0444);
MODULE_PARM_DESC(own_pages, "make P2PDMA pages of the whole BAR, as NVIDIA's driver does where BAR1 is static (0)");

LIST_HEAD(gpu_cards);

static void gpu_card_release(struct kref *ref)
{
	struct gpu_card *card = container_of(ref, struct gpu_card, ref);

	gpu_vram_exit(card);
	pci_dev_put(card->pdev);
	kfree(card);
}

void gpu_card_get(struct gpu_card *card)
{
	kref_get(&card->ref);
}

void gpu_card_put(struct gpu_card *card)
{
	kref_put(&card->ref, gpu_card_release);
}

static u64 gpu_pci_order(struct pci_dev *pdev)
{
	return (u64)pci_domain_nr(pdev->bus) << 16 | pci_dev_id(pdev);
}

/*
 * Index = rank by PCI address among the cards present; after a hot plug the first that
 * is not taken, since an index never changes while it is in use. RM lock held.
 */
static int gpu_card_index(struct pci_dev *pdev)
{
	DECLARE_BITMAP(taken, GPU_SIM_MAX_CARDS) = { };
	struct pci_dev *other = NULL;
	struct gpu_card *card;
	unsigned int rank = 0;

	for_each_pci_dev(other) {
		if (pci_match_id(gpu_ids, other) && gpu_pci_order(other) < gpu_pci_order(pdev))
			rank++;
	}
	list_for_each_entry(card, &gpu_cards, link)
		__set_bit(card->index, taken);
	if (rank >= GPU_SIM_MAX_CARDS || test_bit(rank, taken))
		rank = find_first_zero_bit(taken, GPU_SIM_MAX_CARDS);
	return rank < GPU_SIM_MAX_CARDS ? (int)rank : -ENOSPC;
}

/* A UUID that stays the same over boots: FNV-1a of the PCI address, stretched. */
static void gpu_card_uuid(struct gpu_card *card)
{
	u64 h = 0xcbf29ce484222325ULL ^ gpu_pci_order(card->pdev);
	unsigned int i;

	for (i = 0; i < sizeof(card->uuid); i++) {
		h = (h ^ i) * 0x100000001b3ULL;
		card->uuid[i] = h >> 32;
	}
}

static int gpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct gpu_card *card;
	int ret;

	ret = pci_enable_device(pdev);
	if (ret) {
		dev_err(&pdev->dev, "cannot enable the device: %pe\n", ERR_PTR(ret));
		return ret;
	}
	ret = -ENODEV;
	if (!(pci_resource_flags(pdev, GPU_SIM_BAR) & IORESOURCE_MEM) ||
	    pci_resource_len(pdev, GPU_SIM_BAR) < GPU_SIM_BLOCK_SIZE) {
		dev_err(&pdev->dev, "BAR 2 is no memory of 2 MiB or more: is it ivshmem-plain?\n");
		goto disable;
	}
	ret = -ENOMEM;
	card = kzalloc(sizeof(*card), GFP_KERNEL);
	if (!card)
		goto disable;
	kref_init(&card->ref);
	init_rwsem(&card->life);
	INIT_LIST_HEAD(&card->clients);
	INIT_LIST_HEAD(&card->link);
	INIT_LIST_HEAD(&card->views);
	card->pdev = pci_dev_get(pdev);
	card->phys = pci_resource_start(pdev, GPU_SIM_BAR);
	card->bus = pci_bus_address(pdev, GPU_SIM_BAR);
	card->npages = pci_resource_len(pdev, GPU_SIM_BAR) >> GPU_SIM_PAGE_SHIFT;
	card->next_handle = GPU_SIM_BLOCK_SIZE;
	gpu_card_uuid(card);
	card->vram = gpu_wc ? ioremap_wc(card->phys, (u64)card->npages << GPU_SIM_PAGE_SHIFT) :
			      ioremap(card->phys, (u64)card->npages << GPU_SIM_PAGE_SHIFT);
	if (!card->vram)
		goto put;
	if (gpu_own_pages) {
		/* devres of the function: they go after gpu_remove() */
		ret = pci_p2pdma_add_resource(pdev, GPU_SIM_BAR, 0, 0);
		if (ret) {
			dev_err(&pdev->dev, "own_pages=1: the kernel gives BAR 2 no P2PDMA pages (CONFIG_PCI_P2PDMA, %s): %pe\n",
				IS_ENABLED(CONFIG_PCI_P2PDMA) ? "yes" : "no", ERR_PTR(ret));
			goto unmap;
		}
	}
	ret = gpu_vram_init(card);
	if (ret)
		goto unmap;
	gpu_rm_lock();
	ret = gpu_card_index(pdev);
	if (ret >= 0) {
		card->index = ret;
		list_add_tail(&card->link, &gpu_cards);
	}
	gpu_rm_unlock();
	if (ret < 0) {
		dev_err(&pdev->dev, "more than %d cards\n", GPU_SIM_MAX_CARDS);
		goto unmap;
	}
	pci_set_drvdata(pdev, card);
	ret = gpu_dev_register(card);
	if (ret) {
		dev_err(&pdev->dev, "cannot make /dev/%s: %pe\n", card->name, ERR_PTR(ret));
		goto unlist;
	}
	ret = gpu_node_add(card);
	if (ret) {
		dev_err(&pdev->dev, "cannot make /dev/%s: %pe\n", card->node_name, ERR_PTR(ret));
		goto unregister;
	}
	dev_info(&pdev->dev, "%s: %u MiB of VRAM at %pa\n", card->name, card->npages / 16,
		 &card->phys);
	return 0;

unregister:
	gpu_dev_unregister(card);
	gpu_dev_kill(card);	/* it is listed no more, and below that does no harm */
unlist:
	gpu_rm_lock();
	list_del_init(&card->link);
	gpu_rm_unlock();
unmap:
	iounmap(card->vram);
put:
	gpu_card_put(card);
disable:
	pci_disable_device(pdev);
	return ret;
}

/* Unbind and hot unplug, with files, mappings and pins possibly alive. */
static void gpu_remove(struct pci_dev *pdev)
{
	struct gpu_card *card = pci_get_drvdata(pdev);

	gpu_node_del(card);
	gpu_dev_unregister(card);
	gpu_dev_kill(card);
	iounmap(card->vram);
	pci_disable_device(pdev);
	gpu_card_put(card);
}

#define GPU_ATTR(_name, _fmt, _value)                                                          \
	static ssize_t _name##_show(struct device *dev, struct device_attribute *attr,         \
				    char *buf)                                                  \
	{                                                                                      \
		struct gpu_card *card = dev_get_drvdata(dev);                                  \
											\
		return sysfs_emit(buf, _fmt "\n", _value);                                     \
	}                                                                                      \
	static DEVICE_ATTR_RO(_name)

GPU_ATTR(index, "%u", card->index);
GPU_ATTR(uuid, "%pUb", card->uuid);
GPU_ATTR(total_pages, "%u", card->npages);
GPU_ATTR(free_pages, "%u", READ_ONCE(card->nfree));
GPU_ATTR(pins, "%u", READ_ONCE(card->npins));
GPU_ATTR(dma_maps, "%d", atomic_read(&card->nmaps));
GPU_ATTR(rm_names, "%u", READ_ONCE(card->nnames));
GPU_ATTR(rm_views, "%u", READ_ONCE(card->nviews));

static struct attribute *gpu_attrs[] = {
	&dev_attr_index.attr,
	&dev_attr_uuid.attr,
	&dev_attr_total_pages.attr,
	&dev_attr_free_pages.attr,
	&dev_attr_pins.attr,
	&dev_attr_dma_maps.attr,
	&dev_attr_rm_names.attr,
	&dev_attr_rm_views.attr,
	NULL
};

static const struct attribute_group gpu_group = { .name = "gpu_sim", .attrs = gpu_attrs };
static const struct attribute_group *gpu_groups[] = { &gpu_group, NULL };

static struct pci_driver gpu_driver = {
	.name = "gpu-sim",
	.id_table = gpu_ids,
	.probe = gpu_probe,
	.remove = gpu_remove,
	.dev_groups = gpu_groups,
};

static int __init gpu_init(void)
{
	int ret = gpu_p2p_init();

	if (ret)
		return ret;
	ret = gpu_rm_init();
	if (ret)
		return ret;
	ret = pci_register_driver(&gpu_driver);
	if (ret)
		gpu_rm_exit();
	return ret;
}

static void __exit gpu_exit(void)
{
	pci_unregister_driver(&gpu_driver);
	gpu_rm_exit();
}

module_init(gpu_init);
module_exit(gpu_exit);
MODULE_DESCRIPTION("OpenGDS: a GPU that is not there");
MODULE_VERSION("1");
MODULE_LICENSE("GPL");
