/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kstub.h - as much of the kernel as kernel/nvme-hook and the callbacks of nvidia-fs need,
 * for unit tests on the host.
 *
 * Single-threaded. Memory and DMA pools count what is live and can be told to fail; locks
 * and RCU check that they are balanced and that nothing that may sleep runs inside.
 */
#ifndef KSTUB_H
#define KSTUB_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef int32_t __s32;
typedef int64_t __s64;
typedef u64 __le64;
typedef u32 __le32;
typedef u16 __le16;
typedef u64 dma_addr_t;
typedef u64 sector_t;
typedef int64_t s64;
typedef unsigned int gfp_t;
typedef u8 blk_status_t;

#define __rcu
#define __percpu
#define __user
#define __iomem
#define __force
#define GFP_KERNEL 0u
#define GFP_ATOMIC 1u
#define __GFP_NOWARN 2u
#define U32_MAX UINT32_MAX
#define S64_MAX INT64_MAX
#define PAGE_SHIFT 12
#define PAGE_SIZE 4096ul
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define SECTOR_SHIFT 9
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, v) ((x) = (v))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define SZ_64K 65536u
#define HZ 100
#define likely(x) (x)
#define unlikely(x) (x)
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define min_t(t, a, b) ((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b) ((t)(a) > (t)(b) ? (t)(a) : (t)(b))
#define container_of(p, t, m) ((t *)((char *)(p) - offsetof(t, m)))
#define struct_size(p, member, n) (sizeof(*(p)) + sizeof((p)->member[0]) * (n))
/* the tests run on little-endian hosts only, as the kernels do */
#define cpu_to_le64(x) ((__le64)(x))
#define cpu_to_le32(x) ((__le32)(x))
#define le64_to_cpu(x) ((u64)(x))
#define le32_to_cpu(x) ((u32)(x))

/* ---- what the tests look at and set ---- */

struct kstub {
	int live;		/* allocations of any kind not yet freed */
	int fail_after;		/* that many more succeed, then they fail; -1: never */
	int rcu_depth;
	int lock_depth;
	int syncs;		/* grace periods waited for */
	char log[512];		/* the last line printed */
	unsigned int lines;
	void (*waiting)(void);	/* called while somebody waits for a completion */
};

extern struct kstub kstub;

static inline bool kstub_fails(void)
{
	if (kstub.fail_after < 0)
		return false;
	if (!kstub.fail_after)
		return true;
	kstub.fail_after--;
	return false;
}

static inline void might_sleep(void)
{
	assert(!kstub.rcu_depth && !kstub.lock_depth);
}

/* ---- memory ---- */

static inline void *kmalloc(size_t n, gfp_t gfp)
{
	void *p;

	if (!(gfp & GFP_ATOMIC))
		might_sleep();
	if (kstub_fails())
		return NULL;
	p = malloc(n);
	memset(p, 0xa5, n);
	kstub.live++;
	return p;
}

static inline void *kzalloc(size_t n, gfp_t gfp)
{
	void *p = kmalloc(n, gfp);

	return p ? memset(p, 0, n) : NULL;
}

static inline void kfree(const void *p)
{
	kstub.live -= !!p;
	free((void *)p);
}

/* a "DMA address" is the address of the block with a bit set that no pointer has */
#define KSTUB_DMA (1ULL << 62)

struct dma_pool {
	size_t size;
	int live;
	unsigned int allocs;	/* ever */
};

static inline void *dma_pool_alloc(struct dma_pool *pool, gfp_t gfp, dma_addr_t *dma)
{
	void *p;

	assert(gfp & GFP_ATOMIC);
	if (kstub_fails())
		return NULL;
	p = malloc(pool->size);
	memset(p, 0x5a, pool->size);
	*dma = (uintptr_t)p | KSTUB_DMA;
	kstub.live++;
	pool->live++;
	pool->allocs++;
	return p;
}

static inline void dma_pool_free(struct dma_pool *pool, void *p, dma_addr_t dma)
{
	assert(dma == ((uintptr_t)p | KSTUB_DMA));
	kstub.live--;
	pool->live--;
	free(p);
}

/* ---- printing ---- */

#define kstub_print(...)                                                  \
	do {                                                              \
		snprintf(kstub.log, sizeof(kstub.log), __VA_ARGS__);      \
		kstub.lines++;                                            \
	} while (0)
/* %ps is the kernel's own; the host prints the pointer and an "s" */
#define pr_info(...) kstub_print(__VA_ARGS__)
#define pr_warn(...) kstub_print(__VA_ARGS__)
#define pr_err(...) kstub_print(__VA_ARGS__)
#define pr_info_ratelimited(...) kstub_print(__VA_ARGS__)
#define dev_err_ratelimited(dev, ...) ((void)(dev), kstub.lines++, \
	(void)snprintf(kstub.log, sizeof(kstub.log), __VA_ARGS__))

/* ---- locks, RCU, references, completions ---- */

struct mutex {
	int held;
};

#define DEFINE_MUTEX(m) struct mutex m

static inline void mutex_lock(struct mutex *m)
{
	might_sleep();
	assert(!m->held++);
	kstub.lock_depth++;
}

static inline void mutex_unlock(struct mutex *m)
{
	assert(m->held--);
	kstub.lock_depth--;
}

#define lockdep_is_held(m) ((m)->held)
#define rcu_read_lock() ((void)kstub.rcu_depth++)
#define rcu_read_unlock() ((void)kstub.rcu_depth--)
#define rcu_dereference(p) (assert(kstub.rcu_depth), (p))
#define rcu_dereference_check(p, c) (assert(kstub.rcu_depth || (c)), (p))
#define rcu_access_pointer(p) ((p))
#define rcu_assign_pointer(p, v) ((p) = (v))
#define rcu_replace_pointer(p, v, c) (assert(c), kstub_swap((void **)&(p), (v)))
#define synchronize_rcu() (might_sleep(), (void)kstub.syncs++)

static inline void *kstub_swap(void **p, void *v)
{
	void *old = *p;

	*p = v;
	return old;
}

struct completion {
	int done;
};

#define init_completion(c) ((c)->done = 0)
#define complete(c) ((c)->done++)

static inline unsigned long wait_for_completion_timeout(struct completion *c, unsigned long t)
{
	might_sleep();
	if (!c->done && kstub.waiting)
		kstub.waiting();
	return c->done ? t : 0;
}

struct percpu_ref {
	long count;
	bool dead;
	void (*release)(struct percpu_ref *ref);
};

static inline int percpu_ref_init(struct percpu_ref *ref, void (*release)(struct percpu_ref *),
				  unsigned int flags, gfp_t gfp)
{
	(void)flags;
	(void)gfp;
	if (kstub_fails())
		return -ENOMEM;
	*ref = (struct percpu_ref) { .count = 1, .release = release };
	kstub.live++;
	return 0;
}

static inline void percpu_ref_exit(struct percpu_ref *ref)
{
	(void)ref;
	kstub.live--;
}

static inline bool percpu_ref_tryget_live(struct percpu_ref *ref)
{
	if (ref->dead)
		return false;
	ref->count++;
	return true;
}

static inline void percpu_ref_put(struct percpu_ref *ref)
{
	assert(ref->count > 0);
	if (!--ref->count)
		ref->release(ref);
}

static inline void percpu_ref_kill(struct percpu_ref *ref)
{
	assert(!ref->dead);
	ref->dead = true;
	percpu_ref_put(ref);
}

typedef struct {
	int v;
} atomic_t;

#define atomic_read(a) ((a)->v)
#define atomic_add(n, a) ((a)->v += (n))
#define atomic_sub(n, a) ((a)->v -= (n))
#define atomic_inc(a) ((a)->v++)
#define atomic_dec(a) ((a)->v--)
#define set_bit(n, p) (*(p) |= 1ul << (n))

struct kref {
	int v;
};

#define kref_get(k) (assert((k)->v > 0), (k)->v++)

/* only members of, or arguments of, what is never looked at */
struct file;
struct vm_area_struct;
struct mm_struct;
struct seq_file;

struct hlist_node {
	int unused;
};

struct list_head {
	int unused;
};

struct rcu_head {
	int unused;
};

struct work_struct {
	int unused;
};

typedef struct {
	int unused;
} spinlock_t, wait_queue_head_t;

/* ---- modules, per-CPU ---- */

struct kernel_param {
	void *arg;
};

struct kernel_param_ops {
	int (*get)(char *buf, const struct kernel_param *kp);
};

#define module_param_cb(name, ops, arg, perm) \
	static const void *const kstub_param_##name[] __attribute__((unused)) = { (ops), (arg) }
#define KSTUB_NOTHING(n) _Static_assert(1, "")
#define MODULE_PARM_DESC(name, text) KSTUB_NOTHING(name)
#define MODULE_INFO(name, text) KSTUB_NOTHING(name)
#define MODULE_DESCRIPTION(text) KSTUB_NOTHING(0)
#define EXPORT_SYMBOL_GPL(name) KSTUB_NOTHING(name)
#define DEFINE_PER_CPU(type, name) __typeof__(type) name
#define DECLARE_PER_CPU(type, name) extern __typeof__(type) name
#define this_cpu_add(x, n) ((x) += (n))
#define this_cpu_inc(x) ((x)++)
#define per_cpu_ptr(p, cpu) ((void)(cpu), (p))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define sysfs_emit(buf, ...) snprintf(buf, 4096, __VA_ARGS__)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ERR_PTR(e) ((void *)(intptr_t)(e))
#define THIS_MODULE ((void *)1)
#define NOTIFY_OK 1
enum { MODULE_STATE_LIVE, MODULE_STATE_COMING, MODULE_STATE_GOING };

struct notifier_block {
	int (*notifier_call)(struct notifier_block *nb, unsigned long event, void *data);
};

/* the tests' own: who exports what, and what is written where */
void *__symbol_get(const char *name);
void __symbol_put(const char *name);
int register_module_notifier(struct notifier_block *nb);
int unregister_module_notifier(struct notifier_block *nb);
void seq_printf(struct seq_file *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define seq_puts(s, text) seq_printf(s, "%s", text)
/* for %pe the host prints the pointer and an "e" */
#define scnprintf snprintf
#define strscpy(to, from, n) ((void)snprintf(to, n, "%s", from))

/* ---- devices, scatterlists ---- */

enum dma_data_direction { DMA_BIDIRECTIONAL, DMA_TO_DEVICE, DMA_FROM_DEVICE, DMA_NONE };
#define DMA_ATTR_NO_WARN (1UL << 8)

struct device {
	int unused;
};

struct module {
	const char *version;
};

struct device_driver {
	struct module *owner;
};

extern int pci_bus_type;
struct device_driver *driver_find(const char *name, const void *bus);

struct page {
	bool gpu;
};

/* page frame numbers, for tests whose pages stand in one array */
extern struct page kstub_pages[];
#define page_to_pfn(p) ((unsigned long)((p) - kstub_pages))
#define pfn_to_page(n) (kstub_pages + (n))

struct scatterlist {
	struct page *page;
	unsigned int offset, length;
	dma_addr_t dma_address;
	unsigned int dma_length;
	bool end;
};

#define sg_dma_address(sg) ((sg)->dma_address)
#define sg_dma_len(sg) ((sg)->dma_length)

static inline struct scatterlist *sg_next(struct scatterlist *sg)
{
	return sg->end ? NULL : sg + 1;
}

static inline void sg_init_table(struct scatterlist *sg, unsigned int n)
{
	memset(sg, 0, n * sizeof(*sg));
	sg[n - 1].end = true;
}

#define sg_page(sg) ((sg)->page)
#define sg_is_last(sg) ((sg)->end)
#define sg_mark_end(sg) ((sg)->end = true)
#define sg_unmark_end(sg) ((sg)->end = false)
#define for_each_sg(sgl, sg, n, i) for ((i) = 0, (sg) = (sgl); (i) < (n); (i)++, (sg) = sg_next(sg))

static inline void sg_set_page(struct scatterlist *sg, struct page *page, unsigned int len,
			       unsigned int offset)
{
	sg->page = page;
	sg->length = len;
	sg->offset = offset;
}

/* ---- block layer ---- */

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len, bv_offset;
};

struct bvec_iter {
	unsigned int bi_size, bi_idx, bi_bvec_done;
};

/* vec and nvec are for most; the iterator is for tests that set it up */
struct bio {
	struct bio *bi_next;
	struct bio_vec *vec;
	int nvec;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};

static inline struct bio_vec mp_bvec_iter_bvec(const struct bio_vec *bv, struct bvec_iter it)
{
	unsigned int left = bv[it.bi_idx].bv_len - it.bi_bvec_done;

	return (struct bio_vec) {
		.bv_page = bv[it.bi_idx].bv_page,
		.bv_offset = bv[it.bi_idx].bv_offset + it.bi_bvec_done,
		.bv_len = left < it.bi_size ? left : it.bi_size,
	};
}

static inline void bvec_iter_advance(const struct bio_vec *bv, struct bvec_iter *it, unsigned int n)
{
	assert(n <= it->bi_size);
	it->bi_size -= n;
	n += it->bi_bvec_done;
	while (n && n >= bv[it->bi_idx].bv_len)
		n -= bv[it->bi_idx++].bv_len;
	it->bi_bvec_done = n;
}

struct request_queue {
	unsigned int max_segment_size;
};

#define queue_max_segment_size(q) ((q)->max_segment_size)

enum { REQ_OP_READ, REQ_OP_WRITE, REQ_OP_FLUSH, REQ_OP_DISCARD, REQ_OP_DRV_IN };
#define RQF_SPECIAL_PAYLOAD 1u
enum { READ, WRITE };

struct request {
	struct request_queue *q;
	struct bio *bio;
	int op;
	unsigned int rq_flags;
	bool integrity;
	unsigned short nr_phys_segments;
	sector_t pos;
};

struct req_iterator {
	struct bio *bio;
	int i;
};

#define bio_page(b) ((b)->vec[0].bv_page + (b)->vec[0].bv_offset / PAGE_SIZE)
#define bio_offset(b) ((b)->vec[0].bv_offset % PAGE_SIZE)
#define req_op(r) ((r)->op)
#define rq_data_dir(r) ((r)->op == REQ_OP_WRITE ? WRITE : READ)
#define rq_dma_dir(r) ((r)->op == REQ_OP_WRITE ? DMA_TO_DEVICE : DMA_FROM_DEVICE)
#define blk_integrity_rq(r) ((r)->integrity)
#define blk_rq_nr_phys_segments(r) ((r)->nr_phys_segments)
#define blk_rq_pos(r) ((r)->pos)
#define __rq_for_each_bio(b, r) for (b = (r)->bio; b; b = b->bi_next)
#define rq_for_each_bvec(bv, r, it)                                       \
	for ((it).bio = (r)->bio; (it).bio; (it).bio = (it).bio->bi_next)  \
		for ((it).i = 0; (it).i < (it).bio->nvec &&                \
				 ((bv) = (it).bio->vec[(it).i], (void)(bv), 1); (it).i++)

static inline unsigned int blk_rq_payload_bytes(struct request *r)
{
	struct req_iterator it;
	struct bio_vec bv;
	unsigned int n = 0;

	rq_for_each_bvec(bv, r, it)
		n += bv.bv_len;
	return n;
}

enum { BLK_STS_OK = 0, BLK_STS_RESOURCE = 9, BLK_STS_IOERR = 10 };

/* the DMA iterator of kernels that have one */
struct dma_iova_state {
	dma_addr_t addr;
};

struct blk_map_iter {
	struct bvec_iter iter;
	struct bio *bio;
	struct bio_vec *bvecs;
	bool is_integrity;
};

enum { PCI_P2PDMA_MAP_UNKNOWN, PCI_P2PDMA_MAP_NONE };

struct blk_dma_iter {
	dma_addr_t addr;
	u32 len;
	struct {
		int map;
	} p2pdma;
	blk_status_t status;
	struct blk_map_iter iter;
};

/* ---- nvme ---- */

struct nvme_sgl_desc {
	__le64 addr;
	__le32 length;
	u8 rsvd[3];
	u8 type;
};

union nvme_data_ptr {
	struct {
		__le64 prp1, prp2;
	};
	struct nvme_sgl_desc sgl;
};

struct nvme_command {
	struct {
		u8 opcode, flags;
		union nvme_data_ptr dptr;
	} common;
};

#define NVME_CMD_SGL_METABUF (1 << 6)
enum { NVME_SGL_FMT_DATA_DESC = 0, NVME_SGL_FMT_LAST_SEG_DESC = 3 };

#endif /* KSTUB_H */
