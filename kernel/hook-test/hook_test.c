// SPDX-License-Identifier: GPL-2.0-only
/*
 * hook_test.c - the other consumers of the hook, for the tests: a disk in memory whose driver
 * takes the default v1 table, as network and cluster file systems do, and checks what the
 * table promises.
 *
 * It stands for three drivers, told by the symbols it exports:
 *   beegfs    a whole pair: it attaches, and /dev/hooktest0 moves bytes between its memory
 *             and GPU memory by the DMA addresses that it gets
 *   lnet      half a pair
 *   scatefs   a whole pair that refuses the table while parameter `refuse` is set
 *
 * The disk hangs below the PCI function `disk` and asks for addresses for function `dma`.
 * It has no controller that does DMA: the CPU stores at the addresses, so they must be
 * the card's BAR as the CPU sees it (no translating IOMMU).
 *
 * ht_sem: held for reading by each request from the look at ht_ops to its last call; taken
 * for writing by register and unregister, which so wait for requests in flight.
 */
#define pr_fmt(fmt) "hook-test: " fmt

#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "nvfs_hook.h"
#include "probe.h"

#define HT_BYTES (16u << 20)
#define HT_SG 512
#define HT_MAX_SEGMENT 65536

static char *disk, *dma;
module_param(disk, charp, 0444);
MODULE_PARM_DESC(disk, "PCI function (dddd:bb:dd.f) that the disk hangs below");
module_param(dma, charp, 0444);
MODULE_PARM_DESC(dma, "PCI function that addresses are asked for; the same by default");
static bool own_sg, mixed, refuse;
module_param(own_sg, bool, 0644);
MODULE_PARM_DESC(own_sg, "make the list here and only have it mapped, as rpcrdma does");
module_param(mixed, bool, 0644);
MODULE_PARM_DESC(mixed, "put host memory into each request of GPU memory");
module_param(refuse, bool, 0644);
MODULE_PARM_DESC(refuse, "scatefs refuses its table");
static unsigned int gpu_requests, host_requests, refused, bad;
module_param(gpu_requests, uint, 0444);
module_param(host_requests, uint, 0444);
module_param(refused, uint, 0444);
MODULE_PARM_DESC(refused, "requests that the provider failed");
module_param(bad, uint, 0444);
MODULE_PARM_DESC(bad, "promises that were broken");

static DECLARE_RWSEM(ht_sem);
static struct nvfs_dma_rw_ops *ht_ops;	/* ht_sem */
static struct nvfs_dma_rw_ops *ht_scate;	/* registered and never used */
static struct pci_dev *ht_disk_dev, *ht_dma_dev;
static struct page *ht_host_page;
static struct gendisk *ht_disk;
static struct blk_mq_tag_set ht_set;
static u8 *ht_store;

static void ht_promise(bool kept, const char *what)
{
	if (kept)
		return;
	bad++;
	pr_info_ratelimited("broken: %s\n", what);
}

/* ---- requests ---- */

static void ht_host(struct request *rq, u64 pos)
{
	struct req_iterator iter;
	struct bio_vec bv;

	host_requests++;
	rq_for_each_segment(bv, rq, iter) {
		if (rq_data_dir(rq) == WRITE)
			memcpy_from_bvec(ht_store + pos, &bv);
		else
			memcpy_to_bvec(&bv, ht_store + pos);
		pos += bv.bv_len;
	}
}

/* A list of 4-KiB pieces at most. Entries, or 0 when there are too many. */
static int ht_make_sg(struct request *rq, struct scatterlist *sgl)
{
	struct scatterlist *sg = sgl;
	struct req_iterator iter;
	struct bio_vec bv;
	int n = 0;

	rq_for_each_segment(bv, rq, iter) {
		if (n == HT_SG)
			return 0;
		sg_set_page(sg, bv.bv_page, bv.bv_len, bv.bv_offset);
		sg = sg_next(sg);
		n++;
	}
	return n;
}

static void ht_move(struct scatterlist *sgl, int n, u64 pos, bool write)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, n, i) {
		void __iomem *io = ioremap_wc(sg_dma_address(sg), sg_dma_len(sg));

		ht_promise(io, "an address that can be mapped");
		if (!io)
			return;
		if (write)
			memcpy_fromio(ht_store + pos, io, sg_dma_len(sg));
		else
			memcpy_toio(io, ht_store + pos, sg_dma_len(sg));
		iounmap(io);
		pos += sg_dma_len(sg);
	}
}

/* what the table says of a list that it filled */
static void ht_check_list(struct request *rq, struct scatterlist *sgl, int n)
{
	struct scatterlist *sg;
	u64 sum = 0;
	int i;

	for_each_sg(sgl, sg, n, i) {
		ht_promise(sg->length <= queue_max_segment_size(rq->q),
			   "no entry is longer than the queue's segments");
		ht_promise(sg_is_last(sg) == (i == n - 1), "the last entry has the end mark");
		sum += sg->length;
	}
	ht_promise(sum == blk_rq_bytes(rq), "the entries are the request's bytes");
}

/* The list of a request: entries, 0 for host memory, -1. */
static int ht_list(struct request *rq, struct scatterlist *sgl)
{
	struct bio *last = rq->biotail;
	struct bio_vec bv;
	struct bio bio;
	int n;

	if (own_sg) {
		n = ht_make_sg(rq, sgl);
		if (n && mixed)
			sg_set_page(&sgl[n - 1], ht_host_page, sgl[n - 1].length, 0);
		return n;
	}
	if (mixed) {
		bio_init(&bio, ht_disk->part0, &bv, 1, rq->cmd_flags);
		__bio_add_page(&bio, ht_host_page, PAGE_SIZE, 0);
		last->bi_next = &bio;
	}
	n = ht_ops->nvfs_blk_rq_map_sg(rq->q, rq, sgl);
	if (mixed) {
		last->bi_next = NULL;
		bio_uninit(&bio);
	}
	if (n > 0)
		ht_check_list(rq, sgl, n);
	return n;
}

/* ht_sem held for reading, ht_ops set */
static blk_status_t ht_gpu(struct request *rq, struct scatterlist *sgl, u64 pos)
{
	struct device *dev = &ht_dma_dev->dev;
	int n, m;

	sg_init_table(sgl, HT_SG);
	n = ht_list(rq, sgl);
	if (!n) {
		ht_host(rq, pos);
		return BLK_STS_OK;
	}
	m = n < 0 ? n : ht_ops->nvfs_dma_map_sg_attrs(dev, sgl, n, rq_dma_dir(rq), 0);
	if (m == NVFS_BAD_REQ && own_sg) {
		ht_host(rq, pos);
		return BLK_STS_OK;
	}
	if (m != n || n < 0) {
		ht_promise(m == NVFS_IO_ERR, "a failure is -1");
		refused++;
		rq->rq_flags |= RQF_QUIET;	/* provoked */
		return BLK_STS_IOERR;
	}
	gpu_requests++;
	ht_promise(ht_ops->nvfs_is_gpu_page(sg_page(sgl)), "a page of GPU memory is known as one");
	ht_move(sgl, n, pos, rq_data_dir(rq) == WRITE);
	m = ht_ops->nvfs_dma_unmap_sg(dev, sgl, n, rq_dma_dir(rq));
	ht_promise(m == n, "all entries are released");
	return BLK_STS_OK;
}

static blk_status_t ht_request(struct request *rq)
{
	u64 pos = blk_rq_pos(rq) << SECTOR_SHIFT;
	struct scatterlist *sgl;
	blk_status_t status = BLK_STS_OK;

	if (req_op(rq) == REQ_OP_FLUSH)
		return BLK_STS_OK;
	if ((req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE) ||
	    pos + blk_rq_bytes(rq) > HT_BYTES)
		return BLK_STS_IOERR;
	sgl = kvmalloc_array(HT_SG, sizeof(*sgl), GFP_NOIO);
	if (!sgl)
		return BLK_STS_RESOURCE;
	down_read(&ht_sem);
	if (ht_ops)
		status = ht_gpu(rq, sgl, pos);
	else
		ht_host(rq, pos);
	up_read(&ht_sem);
	kvfree(sgl);
	return status;
}

static blk_status_t ht_queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	blk_mq_start_request(bd->rq);
	blk_mq_end_request(bd->rq, ht_request(bd->rq));
	return BLK_STS_OK;
}

static const struct blk_mq_ops ht_mq_ops = { .queue_rq = ht_queue_rq };
static const struct block_device_operations ht_fops = { .owner = THIS_MODULE };

/* ---- what nvidia-fs looks for ---- */

int beegfs_v1_register_nvfs_dma_ops(struct nvfs_dma_rw_ops *ops);
int beegfs_v1_register_nvfs_dma_ops(struct nvfs_dma_rw_ops *ops)
{
	const u64 need = NVFS_FT_PREP_SGLIST | NVFS_FT_MAP_SGLIST | NVFS_FT_IS_GPU_PAGE |
			 NVFS_FT_DEVICE_PRIORITY;	/* as Lustre does */
	int r = 0;

	if ((ops->ft_bmap & need) != need)
		return -EOPNOTSUPP;
	down_write(&ht_sem);
	if (ht_ops)
		r = -EBUSY;
	else
		ht_ops = ops;
	up_write(&ht_sem);
	return r;
}
EXPORT_SYMBOL_GPL(beegfs_v1_register_nvfs_dma_ops);

void beegfs_v1_unregister_nvfs_dma_ops(void);
void beegfs_v1_unregister_nvfs_dma_ops(void)
{
	down_write(&ht_sem);
	ht_ops = NULL;
	up_write(&ht_sem);
}
EXPORT_SYMBOL_GPL(beegfs_v1_unregister_nvfs_dma_ops);

int lustre_v1_register_nvfs_dma_ops(struct nvfs_dma_rw_ops *ops);
int lustre_v1_register_nvfs_dma_ops(struct nvfs_dma_rw_ops *ops)
{
	ht_promise(false, "half a pair is never called");
	return 0;
}
EXPORT_SYMBOL_GPL(lustre_v1_register_nvfs_dma_ops);

int scatefs_register_nvfs_dma_ops(struct nvfs_dma_rw_ops *ops);
int scatefs_register_nvfs_dma_ops(struct nvfs_dma_rw_ops *ops)
{
	if (refuse)
		return -EOPNOTSUPP;
	ht_promise(!ht_scate, "who is attached is not attached again");
	ht_scate = ops;
	return 0;
}
EXPORT_SYMBOL_GPL(scatefs_register_nvfs_dma_ops);

void scatefs_unregister_nvfs_dma_ops(void);
void scatefs_unregister_nvfs_dma_ops(void)
{
	ht_promise(ht_scate, "who refused is not unregistered");
	ht_scate = NULL;
}
EXPORT_SYMBOL_GPL(scatefs_unregister_nvfs_dma_ops);

/* ---- load and unload ---- */

static struct pci_dev *ht_pci(const char *name)
{
	unsigned int domain, bus, slot, fn;
	struct pci_dev *pdev = NULL;

	if (name && sscanf(name, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) == 4)
		pdev = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, fn));
	if (!pdev)
		pr_err("no PCI function %s: give disk=dddd:bb:dd.f\n", name ?: "(none)");
	return pdev;
}

static struct gendisk *ht_alloc_disk(void)
{
#ifdef HAVE_QUEUE_LIMITS_ARG
	struct queue_limits lim = {
		.logical_block_size = SECTOR_SIZE,
		.max_hw_sectors = 2048,
		.max_segments = 128,
		.max_segment_size = HT_MAX_SEGMENT,
	};

	return blk_mq_alloc_disk(&ht_set, &lim, NULL);
#else
	struct gendisk *d = blk_mq_alloc_disk(&ht_set, NULL);

	if (IS_ERR(d))
		return d;
	blk_queue_max_hw_sectors(d->queue, 2048);
	blk_queue_max_segments(d->queue, 128);
	blk_queue_max_segment_size(d->queue, HT_MAX_SEGMENT);
	return d;
#endif
}

static int ht_add_disk(void)
{
	int r;

	ht_set = (struct blk_mq_tag_set) {
		.ops = &ht_mq_ops,
		.nr_hw_queues = 1,
		.queue_depth = 16,
		.numa_node = NUMA_NO_NODE,
		.flags = BLK_MQ_F_BLOCKING,
	};
	r = blk_mq_alloc_tag_set(&ht_set);
	if (r)
		return r;
	ht_disk = ht_alloc_disk();
	if (IS_ERR(ht_disk)) {
		r = PTR_ERR(ht_disk);
		goto tags;
	}
	ht_disk->fops = &ht_fops;
	ht_disk->flags |= GENHD_FL_NO_PART;
	strscpy(ht_disk->disk_name, "hooktest0", sizeof(ht_disk->disk_name));
	set_capacity(ht_disk, HT_BYTES >> SECTOR_SHIFT);
	r = device_add_disk(&ht_disk_dev->dev, ht_disk, NULL);
	if (!r)
		return 0;
	put_disk(ht_disk);
tags:
	blk_mq_free_tag_set(&ht_set);
	return r;
}

static int __init ht_init(void)
{
	int r = -ENODEV;

	ht_disk_dev = ht_pci(disk);
	ht_dma_dev = ht_pci(dma ?: disk);
	if (!ht_disk_dev || !ht_dma_dev)
		goto put;
	r = -ENOMEM;
	ht_host_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	ht_store = vzalloc(HT_BYTES);
	if (!ht_host_page || !ht_store)
		goto mem;
	r = ht_add_disk();
	if (!r)
		return 0;
mem:
	vfree(ht_store);
	if (ht_host_page)
		__free_page(ht_host_page);
put:
	pci_dev_put(ht_dma_dev);
	pci_dev_put(ht_disk_dev);
	return r;
}

static void __exit ht_exit(void)
{
	del_gendisk(ht_disk);
	put_disk(ht_disk);
	blk_mq_free_tag_set(&ht_set);
	vfree(ht_store);
	__free_page(ht_host_page);
	pci_dev_put(ht_dma_dev);
	pci_dev_put(ht_disk_dev);
}

module_init(ht_init);
module_exit(ht_exit);
MODULE_DESCRIPTION("OpenGDS tests: other consumers of the nvfs hook");
MODULE_LICENSE("GPL");
