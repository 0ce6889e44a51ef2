// SPDX-License-Identifier: GPL-2.0-only
/*
 * p2p_test.c - gpu-sim-test.ko: a consumer of nvidia_p2p_* that a test program steers.
 * For root and for tests only: it does what it is told, also what a driver must not do.
 */
#include <linux/delay.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "nv_p2p_abi.h"
#include "p2p_test_abi.h"

/*
 * Table and mapping are kept after the driver freed them: that is what is tested. The
 * callback may run at any time and touches atomics and what GET set, nothing else.
 */
struct test_slot {
	struct mutex lock;		/* the operations of a test, not the callback */
	struct nvidia_p2p_page_table *table;
	struct nvidia_p2p_dma_mapping *map;
	struct pci_dev *peer;		/* referenced while map is there */
	u64 va;
	u32 flags;
	atomic_t callbacks;
	struct work_struct put_work;
	atomic_t put_done;
	int put_ret;			/* valid when put_done */
	bool blocked;
};

static struct test_slot slots[P2P_TEST_SLOTS];

static void test_put_work(struct work_struct *work)
{
	struct test_slot *s = container_of(work, struct test_slot, put_work);

	s->put_ret = nvidia_p2p_put_pages(0, 0, s->va, s->table);
	atomic_set_release(&s->put_done, 1);
}

static void test_callback(void *data)
{
	struct test_slot *s = data;

	atomic_inc(&s->callbacks);
	if (s->flags & P2P_TEST_CB_UNMAP && s->map) {
		if (nvidia_p2p_dma_unmap_pages(s->peer, s->table, s->map))
			pr_err("gpu-sim-test: BUG: unmap in a callback failed\n");
		s->map = NULL;
	}
	if (s->flags & P2P_TEST_CB_PUT) {
		schedule_work(&s->put_work);
		msleep(100);
		s->blocked = !atomic_read_acquire(&s->put_done);
	}
	nvidia_p2p_free_page_table(s->table);
}

static void test_get(struct test_slot *s, struct p2p_test *t)
{
	u32 i;

	s->va = t->va;
	s->flags = t->flags;
	s->map = NULL;
	s->blocked = false;
	atomic_set(&s->callbacks, 0);
	atomic_set(&s->put_done, 0);
	if (t->flags & P2P_TEST_PERSISTENT)
		t->ret = nvidia_p2p_get_pages_persistent(t->va, t->len, &s->table, 0);
	else
		t->ret = nvidia_p2p_get_pages(0, 0, t->va, t->len, &s->table, test_callback, s);
	/* in the races of the tests the table may be gone already: then tell nothing of it */
	if (t->ret || t->len == 0 || atomic_read(&s->callbacks) || t->entries == ~0U)
		return;
	t->version = s->table->version;
	t->entries = s->table->entries;
	t->page_size = s->table->page_size;
	for (i = 0; i < min(t->entries, (u32)P2P_TEST_PAGES); i++)
		t->addr[i] = s->table->pages[i]->physical_address;
}

static void test_map(struct test_slot *s, struct p2p_test *t)
{
	struct pci_dev *peer;
	u32 i;

	peer = pci_get_domain_bus_and_slot(t->peer >> 32, t->peer >> 8 & 0xff, t->peer & 0xff);
	if (!peer) {
		t->ret = -ENODEV;
		return;
	}
	t->ret = nvidia_p2p_dma_map_pages(peer, s->table, &s->map);
	if (t->ret) {
		pci_dev_put(peer);
		return;
	}
	pci_dev_put(s->peer);
	s->peer = peer;
	if (t->entries == ~0U)
		return;
	t->version = s->map->version;
	t->entries = s->map->entries;
	t->page_size = s->map->page_size_type;
	for (i = 0; i < min(t->entries, (u32)P2P_TEST_PAGES); i++)
		t->addr[i] = s->map->dma_addresses[i];
}

static void test_state(struct test_slot *s, struct p2p_test *t)
{
	flush_work(&s->put_work);
	t->callbacks = atomic_read(&s->callbacks);
	t->blocked = s->blocked;
	t->put_ret = s->put_ret;
	t->ret = 0;
}

static long test_run(struct p2p_test *t)
{
	struct test_slot *s = &slots[t->slot];

	switch (t->op) {
	case P2P_TEST_GET:
		test_get(s, t);
		return 0;
	case P2P_TEST_PUT:
		t->ret = s->flags & P2P_TEST_PERSISTENT ?
				 nvidia_p2p_put_pages_persistent(t->va, s->table, 0) :
				 nvidia_p2p_put_pages(0, 0, t->va, s->table);
		return 0;
	case P2P_TEST_MAP:
		test_map(s, t);
		return 0;
	case P2P_TEST_UNMAP:
		t->ret = nvidia_p2p_dma_unmap_pages(s->peer, s->table, s->map);
		return 0;
	case P2P_TEST_STATE:
		test_state(s, t);
		return 0;
	case P2P_TEST_FORGET:
		pci_dev_put(s->peer);
		s->peer = NULL;
		s->table = NULL;
		t->ret = 0;
		return 0;
	default:
		return -EINVAL;
	}
}

static long test_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct p2p_test *t;
	long ret;

	if (cmd != P2P_TEST_IOC)
		return -ENOTTY;
	t = memdup_user((void __user *)arg, sizeof(*t));
	if (IS_ERR(t))
		return PTR_ERR(t);
	ret = -EINVAL;
	if (t->slot < P2P_TEST_SLOTS) {
		mutex_lock(&slots[t->slot].lock);
		ret = test_run(t);
		mutex_unlock(&slots[t->slot].lock);
	}
	if (!ret && copy_to_user((void __user *)arg, t, sizeof(*t)))
		ret = -EFAULT;
	kfree(t);
	return ret;
}

static const struct file_operations test_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = test_ioctl,
};

static struct miscdevice test_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gpu-sim-test",
	.mode = 0600,
	.fops = &test_fops,
};

/*
 * Parameter p2pdma: write two addresses "dddd:bb:dd.f dddd:bb:dd.f", read what the kernel
 * itself thinks of the pair: the number of hops, -1 for "do not", or "none" when this kernel
 * has no opinion (CONFIG_PCI_P2PDMA). The sysfs core lets one write in at a time.
 */
static int test_distance;

static struct pci_dev *test_function(const char *at)
{
	unsigned int domain, bus, slot, fn;

	if (sscanf(at, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) != 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, fn));
}

static int test_p2pdma_set(const char *val, const struct kernel_param *kp)
{
	const char *second = strchr(val, ' ');
	struct pci_dev *a = test_function(val);
	struct pci_dev *b = second ? test_function(second + 1) : NULL;
	struct device *client = b ? &b->dev : NULL;
	int r = -ENODEV;

	if (a && b) {
		test_distance = pci_p2pdma_distance_many(a, &client, 1, true);
		r = 0;
	}
	pci_dev_put(a);
	pci_dev_put(b);
	return r;
}

static int test_p2pdma_get(char *buffer, const struct kernel_param *kp)
{
	if (!IS_ENABLED(CONFIG_PCI_P2PDMA))
		return sysfs_emit(buffer, "none\n");
	return sysfs_emit(buffer, "%d\n", test_distance);
}

static const struct kernel_param_ops test_p2pdma_ops = {
	.set = test_p2pdma_set,
	.get = test_p2pdma_get,
};
module_param_cb(p2pdma, &test_p2pdma_ops, NULL, 0600);
MODULE_PARM_DESC(p2pdma, "two PCI functions; reads as the kernel's distance between them");

static int __init test_init(void)
{
	int i;

	for (i = 0; i < P2P_TEST_SLOTS; i++) {
		mutex_init(&slots[i].lock);
		INIT_WORK(&slots[i].put_work, test_put_work);
	}
	return misc_register(&test_misc);
}

static void __exit test_exit(void)
{
	int i;

	misc_deregister(&test_misc);
	for (i = 0; i < P2P_TEST_SLOTS; i++) {
		flush_work(&slots[i].put_work);
		pci_dev_put(slots[i].peer);
	}
}

module_init(test_init);
module_exit(test_exit);
MODULE_DESCRIPTION("OpenGDS: steers nvidia_p2p_* for tests");
MODULE_LICENSE("GPL");
