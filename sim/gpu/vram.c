// SPDX-License-Identifier: GPL-2.0-only
/*
 * vram.c - 64-KiB pages of a card's BAR: which are taken, in which order, and poison.
 */
#include <linux/bitmap.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "gpu_sim.h"

#define PAGES_PER_BLOCK (GPU_SIM_BLOCK_SIZE / GPU_SIM_PAGE_SIZE)

static bool poison = true;
module_param(poison, bool, 0444);
MODULE_PARM_DESC(poison, "fill VRAM with the poison word at load and at every free (1)");

bool gpu_vram_poisons(void)
{
	return poison;
}

static void gpu_poison_page(struct gpu_card *card, u32 page)
{
	u8 __iomem *p = card->vram + ((u64)page << GPU_SIM_PAGE_SHIFT);
	u8 __iomem *end = p + GPU_SIM_PAGE_SIZE;

	for (; p < end; p += 64) {
		writeq(GPU_SIM_POISON, p);
		writeq(GPU_SIM_POISON, p + 8);
		writeq(GPU_SIM_POISON, p + 16);
		writeq(GPU_SIM_POISON, p + 24);
		writeq(GPU_SIM_POISON, p + 32);
		writeq(GPU_SIM_POISON, p + 40);
		writeq(GPU_SIM_POISON, p + 48);
		writeq(GPU_SIM_POISON, p + 56);
	}
}

/* Before the card is published: nobody else touches it. */
int gpu_vram_init(struct gpu_card *card)
{
	u32 i;

	card->used = bitmap_zalloc(card->npages, GFP_KERNEL);
	if (!card->used)
		return -ENOMEM;
	card->nfree = card->npages;
	for (i = 0; poison && i < card->npages; i++) {
		gpu_poison_page(card, i);
		cond_resched();
	}
	wmb();	/* stores are out before anybody looks */
	return 0;
}

void gpu_vram_exit(struct gpu_card *card)
{
	bitmap_free(card->used);
}

static void gpu_take_page(struct gpu_card *card, struct gpu_mem *mem, u32 *n, u32 page)
{
	__set_bit(page, card->used);
	mem->page[(*n)++] = page;
}

static bool gpu_block_is_free(const struct gpu_card *card, u32 first)
{
	return find_next_bit(card->used, first + PAGES_PER_BLOCK, first) ==
	       first + PAGES_PER_BLOCK;
}

static void gpu_take_contig(struct gpu_card *card, struct gpu_mem *mem, u32 *n)
{
	u32 first = bitmap_find_next_zero_area(card->used, card->npages, 0, mem->npages, 0);

	if (first >= card->npages)
		return;
	while (*n < mem->npages)
		gpu_take_page(card, mem, n, first++);
}

/* Whole aligned 2-MiB blocks from the top, so that no block follows the one before. */
static void gpu_take_blocks(struct gpu_card *card, struct gpu_mem *mem, u32 *n)
{
	u32 block = card->npages / PAGES_PER_BLOCK, i;

	while (block-- > 0 && *n < mem->npages) {
		if (!gpu_block_is_free(card, block * PAGES_PER_BLOCK))
			continue;
		for (i = 0; i < PAGES_PER_BLOCK && *n < mem->npages; i++)
			gpu_take_page(card, mem, n, block * PAGES_PER_BLOCK + i);
	}
}

static void gpu_take_down(struct gpu_card *card, struct gpu_mem *mem, u32 *n)
{
	u32 page = card->npages;

	while (page-- > 0 && *n < mem->npages) {
		if (!test_bit(page, card->used))
			gpu_take_page(card, mem, n, page);
	}
}

static void gpu_take_up(struct gpu_card *card, struct gpu_mem *mem, u32 *n, u32 step)
{
	u32 page;

	for (page = 0; page < card->npages && *n < mem->npages; page += step) {
		if (!test_bit(page, card->used))
			gpu_take_page(card, mem, n, page);
	}
}

/* The head of a Fisher-Yates shuffle of all free pages. */
static int gpu_take_random(struct gpu_card *card, struct gpu_mem *mem, u32 *n, u64 seed)
{
	u32 *pool = kvmalloc_array(card->nfree, sizeof(*pool), GFP_KERNEL);
	struct rnd_state rnd;
	u32 count = 0, page, pick;

	if (!pool)
		return -ENOMEM;
	for_each_clear_bit(page, card->used, card->npages)
		pool[count++] = page;
	prandom_seed_state(&rnd, seed);
	while (*n < mem->npages && count) {
		pick = prandom_u32_state(&rnd) % count;
		gpu_take_page(card, mem, n, pool[pick]);
		pool[pick] = pool[--count];
	}
	kvfree(pool);
	return 0;
}

/* Fill mem->page. RM lock held. */
int gpu_vram_take(struct gpu_card *card, struct gpu_mem *mem, u32 pattern, u64 seed)
{
	u32 n = 0;
	int ret = 0;

	gpu_rm_assert_held();
	if (mem->npages > card->nfree)
		return -ENOMEM;
	switch (pattern) {
	case GPU_SIM_CONTIG:
		gpu_take_contig(card, mem, &n);
		break;
	case GPU_SIM_2M:
		gpu_take_blocks(card, mem, &n);
		break;
	case GPU_SIM_64K:
		gpu_take_down(card, mem, &n);
		break;
	case GPU_SIM_ALTERNATE:
		gpu_take_up(card, mem, &n, 2);
		break;
	case GPU_SIM_RANDOM:
		ret = gpu_take_random(card, mem, &n, seed);
		if (ret)
			return ret;
		break;
	default:
		return -EINVAL;
	}
	/* what the pattern could not place: there is room, so place it somehow */
	gpu_take_up(card, mem, &n, 1);
	card->nfree -= n;
	mem->users = 1;
	return 0;
}

/*
 * The last user of mem's pages is gone: poison them and give them back. Takes the RM lock
 * for the giving back only, since the poisoning of much VRAM takes long; until then the
 * pages count as used.
 */
void gpu_vram_release(struct gpu_mem *mem)
{
	struct gpu_card *card = mem->card;
	u32 i;

	for (i = 0; poison && i < mem->npages; i++) {
		down_read(&card->life);
		if (!card->dead)
			gpu_poison_page(card, mem->page[i]);
		up_read(&card->life);
		cond_resched();
	}
	wmb();	/* the poison is in place before the pages have a new owner */
	gpu_rm_lock();
	for (i = 0; i < mem->npages; i++)
		__clear_bit(mem->page[i], card->used);
	card->nfree += mem->npages;
	gpu_rm_unlock();
}
