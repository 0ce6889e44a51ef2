/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trace.h - tracepoints, system nvfs: the life of a mapping and of a request. A request and
 * its segments find each other by the mapping's address (cpu) and the place in the pinned
 * range (gpu_off, bytes). All of them may be on in production; none allocates or locks.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nvfs

#if !defined(NVIDIA_FS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NVIDIA_FS_TRACE_H

#include <linux/tracepoint.h>

struct device;
struct nvfs_mapping;
struct nvfs_req;

#define NVFS_TRACE_DEV 20	/* a PCI address, or what fits of another name */

#ifndef NVFS_TRACE_DEATHS
#define NVFS_TRACE_DEATHS
/* why a mapping dies */
enum nvfs_death {
	NVFS_DEATH_MUNMAP,	/* munmap or exit */
	NVFS_DEATH_UNMAP,	/* the ioctl */
	NVFS_DEATH_FREED,	/* the GPU driver's free callback */
	NVFS_DEATH_GONE,	/* the last reference went: torn down */
};
#endif

TRACE_DEFINE_ENUM(NVFS_DEATH_MUNMAP);
TRACE_DEFINE_ENUM(NVFS_DEATH_UNMAP);
TRACE_DEFINE_ENUM(NVFS_DEATH_FREED);
TRACE_DEFINE_ENUM(NVFS_DEATH_GONE);

/* MAP is over */
TRACE_EVENT(nvfs_map,
	TP_PROTO(const struct nvfs_mapping *m, u64 gpu_va, int ret),
	TP_ARGS(m, gpu_va, ret),
	TP_STRUCT__entry(
		__field(unsigned long, cpu)
		__field(u64, gpu_va)
		__field(u64, size)
		__field(u32, blocks)
		__field(bool, persistent)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->cpu = m->cpuvaddr;
		__entry->gpu_va = gpu_va;
		__entry->size = m->size;
		__entry->blocks = m->nblocks;
		__entry->persistent = m->pin.persistent;
		__entry->ret = ret;
	),
	TP_printk("cpu=0x%lx gpu_va=0x%llx size=%llu blocks=%u pin=%s ret=%d", __entry->cpu,
		  __entry->gpu_va, __entry->size, __entry->blocks,
		  __entry->persistent ? "persistent" : "callback", __entry->ret)
);

/* one window goes to the file system; by_cpu: over host pages, else over carriers */
TRACE_EVENT(nvfs_submit,
	TP_PROTO(const struct nvfs_req *rq, size_t len, bool async),
	TP_ARGS(rq, len, async),
	TP_STRUCT__entry(
		__field(unsigned long, cpu)
		__field(u64, ino)
		__field(u64, pos)
		__field(u64, len)
		__field(u64, gpu_off)
		__field(bool, write)
		__field(bool, by_cpu)
		__field(bool, async)
	),
	TP_fast_assign(
		__entry->cpu = rq->m->cpuvaddr;
		__entry->ino = file_inode(rq->file)->i_ino;
		__entry->pos = rq->pos;
		__entry->len = len;
		__entry->gpu_off = rq->gpu_off;
		__entry->write = rq->write;
		__entry->by_cpu = rq->by_cpu;
		__entry->async = async;
	),
	TP_printk("%s cpu=0x%lx ino=%llu pos=%llu len=%llu gpu_off=%llu by_cpu=%d async=%d",
		  __entry->write ? "WRITE" : "READ", __entry->cpu, __entry->ino, __entry->pos,
		  __entry->len, __entry->gpu_off, __entry->by_cpu, __entry->async)
);

/* ... and is over; ret: bytes that are where they belong, or -errno */
TRACE_EVENT(nvfs_complete,
	TP_PROTO(const struct nvfs_req *rq, ssize_t ret),
	TP_ARGS(rq, ret),
	TP_STRUCT__entry(
		__field(unsigned long, cpu)
		__field(u64, ino)
		__field(u64, pos)
		__field(u64, gpu_off)
		__field(bool, write)
		__field(long, ret)
	),
	TP_fast_assign(
		__entry->cpu = rq->m->cpuvaddr;
		__entry->ino = file_inode(rq->file)->i_ino;
		__entry->pos = rq->pos;
		__entry->gpu_off = rq->gpu_off;
		__entry->write = rq->write;
		__entry->ret = ret;
	),
	TP_printk("%s cpu=0x%lx ino=%llu pos=%llu gpu_off=%llu ret=%ld",
		  __entry->write ? "WRITE" : "READ", __entry->cpu, __entry->ino, __entry->pos,
		  __entry->gpu_off, __entry->ret)
);

/* a storage driver has got an address for a segment */
TRACE_EVENT(nvfs_dma_map,
	TP_PROTO(struct device *dev, const struct nvfs_mapping *m, u64 gpu_off, u64 len,
		 u64 addr_iova),
	TP_ARGS(dev, m, gpu_off, len, addr_iova),
	TP_STRUCT__entry(
		__array(char, dev, NVFS_TRACE_DEV)
		__field(unsigned long, cpu)
		__field(u64, gpu_off)
		__field(u64, len)
		__field(u64, addr_iova)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(dev), NVFS_TRACE_DEV);
		__entry->cpu = m->cpuvaddr;
		__entry->gpu_off = gpu_off;
		__entry->len = len;
		__entry->addr_iova = addr_iova;
	),
	TP_printk("dev=%s cpu=0x%lx gpu_off=%llu len=%llu addr=0x%llx", __entry->dev,
		  __entry->cpu, __entry->gpu_off, __entry->len, __entry->addr_iova)
);

/* ... and gives it back */
TRACE_EVENT(nvfs_dma_unmap,
	TP_PROTO(struct device *dev, const struct nvfs_mapping *m, u64 len, u64 addr_iova),
	TP_ARGS(dev, m, len, addr_iova),
	TP_STRUCT__entry(
		__array(char, dev, NVFS_TRACE_DEV)
		__field(unsigned long, cpu)
		__field(u64, len)
		__field(u64, addr_iova)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(dev), NVFS_TRACE_DEV);
		__entry->cpu = m->cpuvaddr;
		__entry->len = len;
		__entry->addr_iova = addr_iova;
	),
	TP_printk("dev=%s cpu=0x%lx len=%llu addr=0x%llx", __entry->dev, __entry->cpu,
		  __entry->len, __entry->addr_iova)
);

TRACE_EVENT(nvfs_die,
	TP_PROTO(const struct nvfs_mapping *m, enum nvfs_death why),
	TP_ARGS(m, why),
	TP_STRUCT__entry(
		__field(unsigned long, cpu)
		__field(u64, size)
		__field(unsigned int, users)
		__field(int, why)
	),
	TP_fast_assign(
		__entry->cpu = m->cpuvaddr;
		__entry->size = m->size;
		__entry->users = READ_ONCE(m->users);
		__entry->why = why;
	),
	TP_printk("cpu=0x%lx size=%llu users=%u why=%s", __entry->cpu, __entry->size,
		  __entry->users,
		  __print_symbolic(__entry->why, { NVFS_DEATH_MUNMAP, "munmap" },
				   { NVFS_DEATH_UNMAP, "unmap" }, { NVFS_DEATH_FREED, "freed" },
				   { NVFS_DEATH_GONE, "gone" }))
);

#endif /* NVIDIA_FS_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
