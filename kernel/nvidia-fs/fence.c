// SPDX-License-Identifier: GPL-2.0-only
/*
 * fence.c - the end-fence page: one page of the user's, pinned by MAP for as long as the
 * mapping lives, in which the kernel tells of asynchronous results, of holes, and of GPU
 * memory that was freed.
 */
#include <linux/highmem.h>
#include <linux/string.h>

#include "nvidia-fs.h"
#include "holes.h"
#include "p2p.h"

void nvfs_fence_state(struct nvfs_mapping *m, u32 state)
{
	struct nvfs_fence_page *f;

	if (!m->fence)
		return;
	f = kmap_local_page(m->fence);
	WRITE_ONCE(f->state, state);
	kunmap_local(f);
}

/*
 * The request that owns the fence is over. The GPU may be waiting for the value, so it is
 * one 8-byte store, and the result is there before it, for devices too. m->lock held.
 */
void nvfs_fence_signal(struct nvfs_mapping *m, s64 result, u64 value)
{
	struct nvfs_fence_page *f = kmap_local_page(m->fence);

	WRITE_ONCE(f->result, result);
	wmb();		/* who sees the value sees the result, the GPU as well */
	WRITE_ONCE(f->end_fence_val, value);
	kunmap_local(f);
}

struct nvfs_hole_src {
	const struct nvfs_mapping *m;
	u32 first;
	bool p2p;		/* the carriers are the GPU memory itself */
};

static bool nvfs_block_is_zero(const void *arg, u32 blk)
{
	const struct nvfs_hole_src *src = arg;
	const void *at = src->p2p ? nvfs_p2p_addr(src->m, src->first + blk) :
				    nvfs_block_addr(src->m, src->first + blk);

	return !memchr_inv(at, 0, NVFS_BLOCK_SIZE);
}

/*
 * A READ of len bytes at file offset pos has ended in the blocks from first on, and some of
 * them no driver mapped. Lists the holes among them and says state SPARSE; nothing is
 * written when none is a hole. Called before the blocks are given back. Returns the bytes
 * that the list speaks for: fewer than len when it ran full.
 */
size_t nvfs_fence_holes(struct nvfs_mapping *m, loff_t pos, u32 first, size_t len, bool p2p)
{
	struct nvfs_hole_src src = { .m = m, .first = first, .p2p = p2p };
	u32 blocks = DIV_ROUND_UP_ULL(len, NVFS_BLOCK_SIZE), told, n;
	struct nvfs_fence_page *f;

	mutex_lock(&m->sparse_lock);
	f = kmap_local_page(m->fence);
	told = nvfs_holes_list(m->sectors + first, blocks, nvfs_block_is_zero, &src, f->hole,
			       NVFS_FENCE_MAX_HOLES, &n);
	if (n) {
		f->start_magic = NVFS_FENCE_START_MAGIC;
		f->meta_version = NVFS_FENCE_META_VERSION;
		f->nholes = n;
		f->start_fd_offset = pos;
		smp_wmb();	/* who sees the state sees the list */
		WRITE_ONCE(f->state, NVFS_FENCE_SPARSE);
	}
	kunmap_local(f);
	mutex_unlock(&m->sparse_lock);
	return min_t(u64, len, (u64)told << NVFS_BLOCK_SHIFT);
}
