/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kstub.h - as much of the kernel as kernel/nvme-hook needs, for unit tests on the host.
 *
 * Single-threaded. Memory and DMA pools count what is live and can be told to fail; locks
 * and RCU check that they are balanced and that nothing that may sleep runs inside.
 */
#ifndef KSTUB_H
#define KSTUB_H

#include <assert.h>
#include <errno.h>
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
typedef u64 __le64;
typedef u32 __le32;
typedef u16 __le16;
typedef u64 dma_addr_t;
typedef u64 sector_t;
typedef unsigned int gfp_t;
typedef u8 blk_status_t;

#define __rcu
#define __percpu
#define __force
#define GFP_KERNEL 0u
#define GFP_ATOMIC 1u
#define __GFP_NOWARN 2u
#define U32_MAX UINT32_MAX
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
#define this_cpu_inc(x) ((x)++)
#define per_cpu_ptr(p, cpu) ((void)(cpu), (p))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define sysfs_emit(buf, ...) snprintf(buf, 4096, __VA_ARGS__)

/* ---- devices, scatterlists ---- */

enum dma_data_direction { DMA_BIDIRECTIONAL, DMA_TO_DEVICE, DMA_FROM_DEVICE, DMA_NONE };
#define DMA_ATTR_NO_WARN (1UL << 8)

struct device {
	int unused;
};

struct page {
	bool gpu;
};

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

/* ---- block layer ---- */

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len, bv_offset;
};

struct bio {
	struct bio *bi_next;
	struct bio_vec *vec;
	int nvec;
};

struct request_queue {
	int unused;
};

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

#define bio_page(b) ((b)->vec[0].bv_page)
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
