/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sectors.h - which 512-byte sectors of carrier blocks a driver took DMA addresses for:
 * one byte a block, bit n for sector n. Pure, so that tests/unit/t_sectors.c runs it.
 *
 * Sectors, not blocks: a file system with 1-KiB blocks may give three quarters of a block
 * to the drive and fill the rest, a hole, by CPU.
 */
#ifndef NVIDIA_FS_SECTORS_H
#define NVIDIA_FS_SECTORS_H

#define NVFS_SECTORS_ALL 0xff
#define NVFS_SECTOR 512u
#define NVFS_SECTORS_BLOCK 4096u

/* bits of the sectors [first, first + n) of one block, n > 0 */
static inline u8 nvfs_sector_bits(u32 first, u32 n)
{
	return ((1u << n) - 1) << first;
}

/* Two commands may map two parts of one block on two CPUs. */
static inline void nvfs_sectors_or(u8 *p, u8 bits)
{
	u8 old = READ_ONCE(*p);

	while (!try_cmpxchg(p, &old, (u8)(old | bits)))
		;
}

/* Note the sectors of len bytes at byte pos; both are multiples of 512. */
static inline void nvfs_sectors_mark(u8 *s, u64 pos, u32 len)
{
	u32 in = pos % NVFS_SECTORS_BLOCK, n;

	s += pos / NVFS_SECTORS_BLOCK;
	if (in && len) {
		n = min(len, NVFS_SECTORS_BLOCK - in);
		nvfs_sectors_or(s++, nvfs_sector_bits(in / NVFS_SECTOR, n / NVFS_SECTOR));
		len -= n;
	}
	n = len / NVFS_SECTORS_BLOCK;
	memset(s, NVFS_SECTORS_ALL, n);
	len %= NVFS_SECTORS_BLOCK;
	if (len)
		nvfs_sectors_or(s + n, nvfs_sector_bits(0, len / NVFS_SECTOR));
}

/*
 * Blocks of the first len bytes with a sector that was not noted, a part counts whole; and
 * how many runs of neighbours they make.
 */
static inline u32 nvfs_sectors_missing(const u8 *s, size_t len, u32 *regions)
{
	u32 whole = len / NVFS_SECTORS_BLOCK, tail = len % NVFS_SECTORS_BLOCK, i, n = 0;
	bool before = false;

	*regions = 0;
	if (whole && memchr_inv(s, NVFS_SECTORS_ALL, whole)) {
		for (i = 0; i < whole; i++) {
			bool missing = s[i] != NVFS_SECTORS_ALL;

			n += missing;
			*regions += missing && !before;
			before = missing;
		}
	}
	if (tail) {
		u8 want = nvfs_sector_bits(0, (tail + NVFS_SECTOR - 1) / NVFS_SECTOR);
		bool missing = (s[whole] & want) != want;

		n += missing;
		*regions += missing && !before;
	}
	return n;
}

/*
 * The first sector of [from, end) that was not noted, and how many more follow it in its
 * block and below end: *n, at least 1. Returns end when there is none.
 */
static inline u32 nvfs_sectors_next(const u8 *s, u32 from, u32 end, u32 *n)
{
	const u32 per = NVFS_SECTORS_BLOCK / NVFS_SECTOR;
	u32 at = from, to;

	while (at < end && (s[at / per] & 1u << at % per)) {
		if (!(at % per) && s[at / per] == NVFS_SECTORS_ALL)
			at += per;
		else
			at++;
	}
	if (at >= end)
		return end;
	to = at + 1;
	while (to < end && to % per && !(s[to / per] & 1u << to % per))
		to++;
	*n = to - at;
	return at;
}

#endif /* NVIDIA_FS_SECTORS_H */
