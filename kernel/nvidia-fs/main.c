// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - device nodes, ioctls, load and unload.
 *
 * Unload: an open file holds the module, a mapping holds its file, a synchronous request
 * holds both, and an asynchronous one the module, so rmmod fails at once while anything is
 * in use, and no node opens once it has begun to succeed. What may still run then is the last
 * lines of asynchronous requests and the teardown of mappings; that is waited for. Then the
 * storage drivers are detached, and what they used goes; the nodes go last.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "log.h"
#include "p2p.h"

#if PAGE_SHIFT != NVFS_BLOCK_SHIFT
#error "nvidia-fs is made and tested for kernels with pages of 4 KiB; this kernel has larger ones"
#endif

#define NVFS_NAME "nvidia-fs"

static unsigned int nvfs_max_devices = NVFS_MAX_DEVICES;
module_param_named(max_devices, nvfs_max_devices, uint, 0444);
MODULE_PARM_DESC(max_devices, "number of device nodes, 1..16 (0: 16); read when loaded");

static umode_t nvfs_dev_mode = 0666;
static int nvfs_dev_mode_set(const char *val, const struct kernel_param *kp)
{
	unsigned int mode;

	if (kstrtouint(val, 8, &mode) || mode & ~0777) {
		nvfs_warn("dev_mode=%s: permission bits in octal, 0 to 777 (-EINVAL)\n", val);
		return -EINVAL;
	}
	nvfs_dev_mode = mode;
	return 0;
}

static int nvfs_dev_mode_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%04o\n", nvfs_dev_mode);
}

static const struct kernel_param_ops nvfs_dev_mode_ops = {
	.set = nvfs_dev_mode_set,
	.get = nvfs_dev_mode_get,
};
module_param_cb(dev_mode, &nvfs_dev_mode_ops, NULL, 0444);
MODULE_PARM_DESC(dev_mode, "permissions of the device nodes, octal (0666)");

static unsigned int nvfs_dev_gid;
module_param_named(dev_gid, nvfs_dev_gid, uint, 0444);
MODULE_PARM_DESC(dev_gid, "group of the device nodes, a number (0)");

bool nvfs_info_enabled = true;
module_param_named(info_enabled, nvfs_info_enabled, bool, 0644);
MODULE_PARM_DESC(info_enabled, "log why a call was refused, and which drivers are attached (1)");

bool nvfs_dbg_enabled;
module_param_named(dbg_enabled, nvfs_dbg_enabled, bool, 0644);
MODULE_PARM_DESC(dbg_enabled, "log mappings and requests as well (0)");

bool nvfs_rw_stats_enabled;
module_param_named(rw_stats_enabled, nvfs_rw_stats_enabled, bool, 0644);
MODULE_PARM_DESC(rw_stats_enabled, "count reads and writes that succeed (0)");

bool nvfs_peer_stats_enabled;
module_param_named(peer_stats_enabled, nvfs_peer_stats_enabled, bool, 0644);
MODULE_PARM_DESC(peer_stats_enabled, "count which drives reached which GPUs (0)");

unsigned int nvfs_device_count;
static int nvfs_major;
static struct class *nvfs_class;

static int nvfs_open(struct inode *inode, struct file *file)
{
	if (iminor(inode) >= nvfs_device_count)
		return -ENODEV;
	nvfs_hooks_attach();
	nvfs_stat_inc(NVFS_ST_OPENS);
	return 0;
}

static int nvfs_release(struct inode *inode, struct file *file)
{
	nvfs_stat_dec(NVFS_ST_OPENS);
	nvfs_mapping_flush();	/* what this process unmapped is gone when close returns */
	return 0;
}

static long nvfs_ioctl_rw(void __user *arg, bool write)
{
	struct nvfs_ioctl_ioargs a;
	int r;

	if (copy_from_user(&a, arg, sizeof(a)))
		return -EFAULT;
	r = a.flags & NVFS_IO_SYNC ? nvfs_rw(&a, write) : nvfs_async_rw(&a, write);
	/* the input stays as it was: only the result is written back */
	if (put_user(a.ioctl_return, &((struct nvfs_ioctl_ioargs __user *)arg)->ioctl_return))
		return -EFAULT;
	return r ? -EPERM : 0;
}

static long nvfs_ioctl_batch(void __user *arg)
{
	struct nvfs_ioctl_batch b;

	if (copy_from_user(&b, arg, sizeof(b)))
		return -EFAULT;
	return nvfs_batch(&b);
}

static long nvfs_ioctl_set_rdma(void __user *arg)
{
	struct nvfs_ioctl_set_rdma s;

	if (copy_from_user(&s, arg, sizeof(s)))
		return -EFAULT;
	return nvfs_rdma_set(&s);
}

static long nvfs_ioctl_get_rdma(void __user *arg)
{
	struct nvfs_ioctl_get_rdma g;
	int r;

	if (copy_from_user(&g, arg, sizeof(g)))
		return -EFAULT;
	r = nvfs_rdma_get(&g);
	if (!r && copy_to_user(arg, &g, sizeof(g)))
		r = -EFAULT;
	return r;
}

static long nvfs_ioctl_clear_rdma(void __user *arg)
{
	struct nvfs_ioctl_clear_rdma c;

	if (copy_from_user(&c, arg, sizeof(c)))
		return -EFAULT;
	return nvfs_rdma_clear(c.cpuvaddr);
}

static long nvfs_ioctl_map(void __user *arg)
{
	struct nvfs_ioctl_map a;
	int r;

	if (copy_from_user(&a, arg, sizeof(a)))
		return -EFAULT;
	r = nvfs_map(&a);
	if (!r)
		return 0;
	if (put_user((u64)(s64)r, &((struct nvfs_ioctl_map __user *)arg)->end_fence_addr))
		return -EFAULT;
	return -EPERM;
}

static long nvfs_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *argp = (void __user *)arg;

	switch (cmd) {
	case NVFS_IOCTL_REMOVE:
		/* releases nothing by itself; afterwards what was unmapped before is gone */
		nvfs_mapping_flush();
		return 0;
	case NVFS_IOCTL_READ:
		return nvfs_ioctl_rw(argp, false);
	case NVFS_IOCTL_WRITE:
		return nvfs_ioctl_rw(argp, true);
	case NVFS_IOCTL_MAP:
		return nvfs_ioctl_map(argp);
	case NVFS_IOCTL_BATCH_IO:
		return nvfs_ioctl_batch(argp);
	case NVFS_IOCTL_SET_RDMA_REG_INFO:
		return nvfs_ioctl_set_rdma(argp);
	case NVFS_IOCTL_GET_RDMA_REG_INFO:
		return nvfs_ioctl_get_rdma(argp);
	case NVFS_IOCTL_CLEAR_RDMA_REG_INFO:
		return nvfs_ioctl_clear_rdma(argp);
	case NVFS_IOCTL_OGDS_QUERY:
		return nvfs_ogds_query(argp);
	case NVFS_IOCTL_OGDS_UNMAP:
		return nvfs_ogds_unmap(argp);
	case NVFS_IOCTL_OGDS_RW:
		return nvfs_ogds_rw(argp);
	case NVFS_IOCTL_OGDS_CARRIERS:
		return nvfs_ogds_carriers(argp);
	case NVFS_IOCTL_OGDS_PAGES:
		return nvfs_ogds_pages(file, argp);
	}
	return -ENOTTY;
}

static const struct file_operations nvfs_fops = {
	.owner = THIS_MODULE,
	.open = nvfs_open,
	.release = nvfs_release,
	.mmap = nvfs_mmap,
	.unlocked_ioctl = nvfs_ioctl,
	.compat_ioctl = compat_ptr_ioctl,	/* the structures are the same for 32 bits */
};

/* for devtmpfs and, by the uevent, for udev */
#ifdef HAVE_TYPE_DEVNODE_CONST
static char *nvfs_devnode(const struct device *dev, umode_t *mode, kuid_t *uid, kgid_t *gid)
#else
static char *nvfs_devnode(struct device *dev, umode_t *mode, kuid_t *uid, kgid_t *gid)
#endif
{
	if (mode)
		*mode = nvfs_dev_mode;
	if (gid)
		*gid = make_kgid(&init_user_ns, nvfs_dev_gid);
	return NULL;
}

static const struct device_type nvfs_device_type = {
	.name = NVFS_NAME,
	.devnode = nvfs_devnode,
};

static void nvfs_device_release(struct device *dev)
{
	kfree(dev);
}

/* device_create() knows no type, and a class cannot tell the group. 0 or -errno. */
static int nvfs_device_add(unsigned int minor)
{
	struct device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int r;

	if (!dev)
		return -ENOMEM;
	device_initialize(dev);
	dev->class = nvfs_class;
	dev->type = &nvfs_device_type;
	dev->devt = MKDEV(nvfs_major, minor);
	dev->release = nvfs_device_release;
	r = dev_set_name(dev, NVFS_NAME "%u", minor);
	if (!r)
		r = device_add(dev);
	if (r)
		put_device(dev);
	return r;
}

static void nvfs_devices_exit(void)
{
	unsigned int i;

	for (i = 0; i < nvfs_device_count; i++)
		device_destroy(nvfs_class, MKDEV(nvfs_major, i));
	class_destroy(nvfs_class);
	unregister_chrdev(nvfs_major, NVFS_NAME);
}

static int nvfs_devices_init(void)
{
	unsigned int i;
	int r;

	if (!gid_valid(make_kgid(&init_user_ns, nvfs_dev_gid))) {
		nvfs_warn("dev_gid=%u is no group (-EINVAL)\n", nvfs_dev_gid);
		return -EINVAL;
	}
	nvfs_device_count = min_t(unsigned int, nvfs_max_devices ?: NVFS_MAX_DEVICES,
				  NVFS_MAX_DEVICES);
	nvfs_major = register_chrdev(0, NVFS_NAME, &nvfs_fops);
	if (nvfs_major < 0)
		return nvfs_major;
#ifdef HAVE_CLASS_CREATE_ONE_ARG
	nvfs_class = class_create("nvidia-fs-class");
#else
	nvfs_class = class_create(THIS_MODULE, "nvidia-fs-class");
#endif
	if (IS_ERR(nvfs_class)) {
		r = PTR_ERR(nvfs_class);
		goto unregister;
	}
	for (i = 0; i < nvfs_device_count; i++) {
		r = nvfs_device_add(i);
		if (r)
			goto destroy;
	}
	return 0;

destroy:
	while (i--)
		device_destroy(nvfs_class, MKDEV(nvfs_major, i));
	class_destroy(nvfs_class);
unregister:
	unregister_chrdev(nvfs_major, NVFS_NAME);
	return r;
}

static int __init nvfs_init(void)
{
	int r;

	r = nvfs_topo_init();
	if (!r)
		r = nvfs_gpu_init();
	if (!r)
		r = nvfs_p2p_init();
	if (r)
		return r;
	r = nvfs_mapping_init();
	if (r)
		return r;
	r = nvfs_async_init();
	if (r)
		goto mapping;
	r = nvfs_peers_init();
	if (r)
		goto async;
	r = nvfs_hooks_init();
	if (r)
		goto peers;
	r = nvfs_proc_init();
	if (r)
		goto hooks;
	r = nvfs_devices_init();	/* last: from here on there are users */
	if (r)
		goto proc;
	nvfs_faults_init();
	nvfs_note("OpenGDS " NVFS_VERSION_STRING ", %u nodes\n", nvfs_device_count);
	return 0;

proc:
	nvfs_proc_exit();
hooks:
	nvfs_hooks_exit();
peers:
	nvfs_peers_exit();
async:
	nvfs_async_exit();
mapping:
	nvfs_mapping_exit();
	return r;
}

static void __exit nvfs_exit(void)
{
	nvfs_faults_exit();
	nvfs_mapping_flush();
	nvfs_hooks_exit();
	nvfs_proc_exit();
	nvfs_async_exit();
	nvfs_mapping_exit();	/* the teardown uses the peers */
	nvfs_peers_exit();
	nvfs_p2p_exit();
	nvfs_devices_exit();
}

module_init(nvfs_init);
module_exit(nvfs_exit);
MODULE_DESCRIPTION("OpenGDS: direct I/O between drives and GPU memory");
MODULE_LICENSE("GPL");
MODULE_VERSION(NVFS_VERSION_STRING);
