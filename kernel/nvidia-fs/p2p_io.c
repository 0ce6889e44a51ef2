// SPDX-License-Identifier: GPL-2.0-only
/*
 * p2p_io.c - requests over P2PDMA pages: what the file system gets, and who moved the bytes.
 *
 * The file system gets bvecs of the BAR's own pages, so whoever touches them touches GPU memory,
 * a drive or a CPU, and no byte has to be repaired. What has to be told is which it was. The
 * drive's driver has no hook, so the kernel's tracepoint of a request that a driver has taken
 * (block_rq_issue; nvme has mapped all of it for DMA by then) is our witness: a bio borrows
 * the array of bvecs that we gave, so its address and place say which blocks of which mapping.
 *
 * One request has one kind of memory. The block layer takes the way to all of its pages from
 * the first one (bus address or through the host bridge), but it joins neighbours on the disk
 * without a look at that. It never joins bios of different I/O priorities; so ours carry a
 * hint, one for each card, that nobody else uses. Should one be joined all the same (a cgroup
 * policy that sets priorities), the witness sees it and the request fails.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hashtable.h>
#include <linux/ioprio.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "nvidia-fs.h"
#include "hook.h"
#include "io.h"
#include "log.h"
#include "p2p.h"
#include "p2p_core.h"
#include "view.h"

#ifdef NVFS_HAVE_P2P
#include <trace/events/block.h>

/*
 * Arrays of bvecs by address, in steps of what one may be long at most: so each lies in two
 * steps at most. Written under nvfs_p2p_lock, read under RCU.
 */
#define NVFS_P2P_STEP_SHIFT ilog2(NVFS_MAX_SHADOW_SIZE / NVFS_BLOCK_SIZE * sizeof(struct bio_vec))
static DEFINE_HASHTABLE(nvfs_p2p_hash, 8);

static struct tracepoint *nvfs_p2p_tracepoint;	/* nvfs_p2p_lock */
static bool nvfs_p2p_watches;			/* our probe is in it; nvfs_p2p_lock */

static unsigned long nvfs_p2p_key(const struct bio_vec *bv)
{
	return (unsigned long)bv >> NVFS_P2P_STEP_SHIFT;
}

/* The mapping whose array this bvec stands in, or NULL. RCU read lock held. Any context. */
static struct nvfs_p2p *nvfs_p2p_of(const struct bio_vec *bv)
{
	struct nvfs_p2p_step *st;

	hash_for_each_possible_rcu(nvfs_p2p_hash, st, node, nvfs_p2p_key(bv))
		if (bv >= st->p->bv && bv < st->p->bv + st->p->nbv)
			return st->p;
	return NULL;
}

static const struct bio_vec *nvfs_p2p_bio_bvec(const struct bio *bio)
{
	return &bio->bi_io_vec[bio->bi_iter.bi_idx];
}

/* One look at the first page tells host memory; only pages of a BAR are looked up. */
static bool nvfs_p2p_bio_bar(const struct bio *bio)
{
	return bio_has_data((struct bio *)bio) && is_pci_p2pdma_page(bio_page(bio));
}

static struct nvfs_p2p *nvfs_p2p_bio(const struct bio *bio)
{
	return nvfs_p2p_bio_bar(bio) ? nvfs_p2p_of(nvfs_p2p_bio_bvec(bio)) : NULL;
}

/* The peer that serves a queue; NVFS_NO_PEER when it is none. RCU read lock held. */
static unsigned int nvfs_p2p_slot(const struct request *rq)
{
	struct device *dev = rq->q->disk ? disk_to_dev(rq->q->disk) : NULL;
	struct nvfs_peer *peer;

	while (dev && !dev_is_pci(dev))
		dev = dev->parent;
	peer = dev ? nvfs_peer_find(dev) : NULL;
	return peer ? peer->slot : NVFS_NO_PEER;
}

/*
 * A driver has taken a request, all of it mapped for DMA. Any context; also for requests that
 * are none of ours, and then it costs a look at one page of each bio.
 */
static void nvfs_p2p_issued(void *data, struct request *rq)
{
	struct nvfs_p2p_gpu *gpu = NULL;
	struct nvfs_p2p *p;
	bool mixed = false, first = true;
	unsigned int slot;
	struct bio *bio;

	rcu_read_lock();
	__rq_for_each_bio(bio, rq) {
		p = nvfs_p2p_bio(bio);
		if (!p && nvfs_p2p_bio_bar(bio))
			nvfs_view_mark(bio);
		if (!first && gpu != (p ? p->gpu : NULL))
			mixed = true;
		if (p)
			gpu = p->gpu;
		first = false;
	}
	if (!gpu)
		goto out;
	slot = mixed ? NVFS_BY_MIXED : nvfs_p2p_slot(rq);
	__rq_for_each_bio(bio, rq) {
		u32 len = bio->bi_iter.bi_size;
		u64 pos;

		p = nvfs_p2p_bio(bio);
		if (!p || !len)
			continue;
		/* our bvecs begin with their page, so what is past that is done */
		pos = ((u64)p->start[nvfs_p2p_bio_bvec(bio) - p->bv] << NVFS_BLOCK_SHIFT) +
		      mp_bvec_iter_offset(bio->bi_io_vec, bio->bi_iter);
		nvfs_blocks_mark(p->m, pos, len);
		nvfs_blocks_by(p->m, pos, len, slot);
	}
	if (mixed)
		nvfs_stat_inc(NVFS_ST_MIXED);
out:
	rcu_read_unlock();
}

static void nvfs_p2p_tracepoint_is(struct tracepoint *tp, void *priv)
{
	if (!strcmp(tp->name, "block_rq_issue"))
		nvfs_p2p_tracepoint = tp;
}

/*
 * Know p's requests again when they go to a drive. The tracepoint is taken by the first mapping and
 * kept until the module goes: taking it means patching the kernel's code on all processors, which
 * is nothing to do for each MAP. nvfs_p2p_lock held. Blocks.
 */
enum nvfs_p2p_why nvfs_p2p_watch(struct nvfs_p2p *p)
{
	unsigned int i;

	check_trace_callback_type_block_rq_issue(nvfs_p2p_issued);
	if (!nvfs_p2p_watches) {
		for_each_kernel_tracepoint(nvfs_p2p_tracepoint_is, NULL);
		if (!nvfs_p2p_tracepoint ||
		    tracepoint_probe_register(nvfs_p2p_tracepoint, nvfs_p2p_issued, NULL))
			return NVFS_P2P_NO_WITNESS;
		nvfs_p2p_watches = true;
	}
	for (i = 0; i < 2; i++) {
		unsigned long key = nvfs_p2p_key(i ? p->bv + p->nbv - 1 : p->bv);

		p->step[i].p = p;
		if (!i || key != nvfs_p2p_key(p->bv))
			hash_add_rcu(nvfs_p2p_hash, &p->step[i].node, key);
	}
	return NVFS_P2P_USED;
}

/* None of p's requests is in flight. nvfs_p2p_lock held. Blocks. */
void nvfs_p2p_unwatch(struct nvfs_p2p *p)
{
	unsigned int i;

	if (!p->step[0].p)
		return;
	for (i = 0; i < 2; i++)
		hash_del_rcu(&p->step[i].node);
}

/* The module goes; no mapping is left. nvfs_p2p_lock held. Blocks. */
void nvfs_p2p_watch_no_more(void)
{
	if (!nvfs_p2p_watches)
		return;
	tracepoint_probe_unregister(nvfs_p2p_tracepoint, nvfs_p2p_issued, NULL);
	tracepoint_synchronize_unregister();
	nvfs_p2p_watches = false;
}

/* -- before a request: may it? -- */

/* m's pages stay until nvfs_mapping_leave(); NULL when it has none, or not any more. */
struct nvfs_p2p *nvfs_p2p_hold(struct nvfs_mapping *m)
{
	struct nvfs_p2p *p;

	spin_lock(&m->lock);
	p = m->state == NVFS_READY ? m->p2p : NULL;
	if (p)
		m->users++;
	spin_unlock(&m->lock);
	return p;
}

/*
 * The kernel's own verdict on card and drive, asked once for each drive that comes. gen is from
 * before the drive was found in its slot.
 */
static bool nvfs_p2p_pair(struct nvfs_p2p_gpu *gpu, struct pci_dev *drive, unsigned int slot,
			  unsigned long gen)
{
	u64 bit = BIT_ULL(slot);
	bool known, ok;

	spin_lock(&gpu->lock);
	if (gpu->gen != gen) {
		gpu->gen = gen;
		gpu->asked = 0;
	}
	known = gpu->asked & bit;
	ok = gpu->allowed & bit;
	spin_unlock(&gpu->lock);
	if (known)
		return ok;
	ok = pci_p2pdma_distance(gpu->pdev, &drive->dev, false) >= 0;
	spin_lock(&gpu->lock);
	if (gpu->gen == gen) {
		gpu->asked |= bit;
		gpu->allowed = ok ? gpu->allowed | bit : gpu->allowed & ~bit;
	}
	spin_unlock(&gpu->lock);
	return ok;
}

/*
 * May m's pages go to this drive? bdev is all that is below the file: a namespace of the drive
 * or a partition of it, so there is one queue, one pair of functions and one type of mapping.
 */
enum nvfs_p2p_why nvfs_p2p_drive(struct nvfs_mapping *m, struct block_device *bdev,
				 struct pci_dev *drive)
{
	enum nvfs_p2p_why why = NVFS_P2P_USED;
	unsigned long gen = nvfs_peers_gen();
	unsigned long pair;
	struct nvfs_peer *peer;
	unsigned int slot = 0;
	struct nvfs_p2p *p;

	rcu_read_lock();
	peer = drive ? nvfs_peer_find(&drive->dev) : NULL;
	if (peer)
		slot = peer->slot;
	rcu_read_unlock();
	/*
	 * A small request is one of many to one drive: the pair that was allowed last is a word of
	 * the mapping, no lock. It holds until a drive comes or goes; pages that go meanwhile are
	 * nvfs_mapping_enter()'s matter, as they are after any answer of this function.
	 */
	pair = gen * 2 * NVFS_MAX_PEERS + NVFS_MAX_PEERS + slot;
	if (peer && READ_ONCE(m->p2p_pair) == pair && READ_ONCE(m->state) == NVFS_READY)
		return blk_queue_pci_p2pdma(bdev_get_queue(bdev)) ? why : NVFS_P2P_QUEUE;
	p = nvfs_p2p_hold(m);
	if (!p)
		return m->p2p_why;
	if (!peer)
		why = NVFS_P2P_DRIVE;
	else if (!blk_queue_pci_p2pdma(bdev_get_queue(bdev)))
		why = NVFS_P2P_QUEUE;
	else if (!nvfs_p2p_pair(p->gpu, drive, slot, gen))
		why = NVFS_P2P_PAIR;
	else
		WRITE_ONCE(m->p2p_pair, pair);
	nvfs_mapping_leave(m);
	return why;
}

/* -- of a request; whoever calls these has entered the mapping -- */

/* Where a byte of the pinned range is in the CPU's address space. */
u64 nvfs_p2p_phys(const struct nvfs_mapping *m, u64 gpu_off)
{
	return m->pin.table->pages[gpu_off >> NVFS_GPU_PAGE_SHIFT]->physical_address +
	       gpu_off % NVFS_GPU_PAGE_SIZE;
}

/*
 * Bvecs for the GPU memory from gpu_off on, in the slots of blocks [first, first + n) that the
 * caller owns; how many. One lies in one unit: a bvec has to be of one page map.
 */
u32 nvfs_p2p_bvec(struct nvfs_mapping *m, u32 first, u32 n, u64 gpu_off)
{
	u64 end = gpu_off + ((u64)n << NVFS_BLOCK_SHIFT), off = gpu_off;
	struct nvfs_p2p *p = m->p2p;
	u32 i = first;

	while (off < end) {
		u64 phys = nvfs_p2p_phys(m, off);
		u64 len = min(end - off, nvfs_run_left(m, off));

		len = min(len, NVFS_P2P_UNIT - phys % NVFS_P2P_UNIT);
		bvec_set_page(&p->bv[i], pfn_to_page(PHYS_PFN(phys)), len, 0);
		p->start[i++] = first + ((off - gpu_off) >> NVFS_BLOCK_SHIFT);
		off += len;
	}
	return i - first;
}

/* The I/O priority for bios over m's pages: joined with others over this card's pages only. */
u16 nvfs_p2p_ioprio(const struct nvfs_mapping *m, u16 ioprio)
{
	return IOPRIO_PRIO_VALUE_HINT(IOPRIO_PRIO_CLASS(ioprio), IOPRIO_PRIO_LEVEL(ioprio),
				      m->p2p->gpu->hint);
}

/* Did any of the first len bytes go in a command with pages of another kind? */
bool nvfs_p2p_mixed(const struct nvfs_mapping *m, u32 first, size_t len)
{
	u32 end = first + DIV_ROUND_UP_ULL(len, NVFS_BLOCK_SIZE), i;

	for (i = first; i < end; i++)
		if (m->sectors[i] && m->by[i] == NVFS_BY_MIXED)
			return true;
	return false;
}

/* The GPU memory of a block that a request owns, as the kernel's own mapping has it. */
void *nvfs_p2p_addr(const struct nvfs_mapping *m, u32 blk)
{
	u64 phys = nvfs_p2p_phys(m, (u64)m->gpu_blk[blk] << NVFS_BLOCK_SHIFT);

	return page_address(pfn_to_page(PHYS_PFN(phys))) + offset_in_page(phys);
}

/*
 * The CPU moved some of len bytes, between the file and GPU memory: they are where they belong,
 * or in the file. They are counted, and stores have to be in the card before this returns: a
 * read does not overtake them on the bus.
 */
ssize_t nvfs_p2p_settle(const struct nvfs_req *rq, u32 first, size_t len)
{
	struct nvfs_witness w = { 0 };

	nvfs_blocks_witness(rq->m, first, len, &w);
	nvfs_stat_add(rq->write ? NVFS_ST_CPU_WRITE_BYTES : NVFS_ST_CPU_READ_BYTES, w.cpu_bytes);
	if (!rq->write) {
		wmb();	/* before the read below, on every architecture */
		(void)READ_ONCE(*(u32 *)nvfs_p2p_addr(rq->m, first));
	}
	return len;
}
#else /* a kernel where it cannot be: no mapping has pages, so only the first is ever called */
enum nvfs_p2p_why nvfs_p2p_drive(struct nvfs_mapping *m, struct block_device *bdev,
				 struct pci_dev *drive)
{
	return m->p2p_why;
}

u32 nvfs_p2p_bvec(struct nvfs_mapping *m, u32 first, u32 n, u64 gpu_off)
{
	return 0;
}

u16 nvfs_p2p_ioprio(const struct nvfs_mapping *m, u16 ioprio)
{
	return ioprio;
}

bool nvfs_p2p_mixed(const struct nvfs_mapping *m, u32 first, size_t len)
{
	return false;
}

void *nvfs_p2p_addr(const struct nvfs_mapping *m, u32 blk)
{
	return NULL;
}

ssize_t nvfs_p2p_settle(const struct nvfs_req *rq, u32 first, size_t len)
{
	return len;
}
#endif
