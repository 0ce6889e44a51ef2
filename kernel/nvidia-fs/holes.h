/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * holes.h - which blocks of a read are holes, as the fence page lists them. Pure, so that
 * tests/unit/t_holes.c runs it.
 *
 * User space zeroes what is listed. So a block is listed only when no sector of it came by
 * DMA and the CPU left zeros in its carrier: a block of inline data, or of a fallback to
 * the page cache, must not be.
 */
#ifndef NVIDIA_FS_HOLES_H
#define NVIDIA_FS_HOLES_H

/*
 * sectors: one byte a block, as in sectors.h. zero(arg, i): does the carrier of block i
 * hold zeros? Fills hole[] with at most max runs and returns how many blocks they speak
 * for: all of them, or up to the run that had no room.
 */
static inline u32 nvfs_holes_list(const u8 *sectors, u32 blocks,
				  bool (*zero)(const void *arg, u32 blk), const void *arg,
				  struct nvfs_fence_hole *hole, u32 max, u32 *nholes)
{
	bool before = false;
	u32 i, n = 0;

	for (i = 0; i < blocks; i++) {
		bool is = !sectors[i] && zero(arg, i);

		if (is && before) {
			hole[n - 1].npages++;
		} else if (is) {
			if (n == max)
				break;
			hole[n].start = i;
			hole[n++].npages = 1;
		}
		before = is;
	}
	*nholes = n;
	return i;
}

#endif /* NVIDIA_FS_HOLES_H */
