// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvfs_build.c - PRP and SGL lists straight from the DMA addresses of GPU memory.
 *
 * Why not the driver's own builders: they read the driver's scatterlist, which has room
 * for as many entries as the *carriers* have segments. GPU memory is cut elsewhere: one
 * carrier of 8 MiB may be 129 runs. Here the list is only bounded by the payload (PRPs)
 * or by one list page (SGLs, 256 runs; more than that takes PRPs).
 *
 * Runs that follow on are joined first; all rules below are about joined runs.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "nvfs.h"

#define NVFS_PAGE 4096u			/* the controller page size this driver sets */
#define NVFS_PRPS (NVFS_PAGE / sizeof(__le64))
#define NVFS_SMALL 256u			/* bytes in a list of the small pool */
#define NVFS_SGES (NVFS_PAGE / sizeof(struct nvme_sgl_desc))

/* walks a mapped scatterlist by joined runs */
struct nvfs_runs {
	struct scatterlist *sg;
	int left;			/* entries from sg on */
	dma_addr_t addr;		/* the current run */
	u32 len;
};

/* what the first walk found */
struct nvfs_shape {
	unsigned int runs;
	u64 bytes;
	bool prp_ok;			/* gaps only at page borders */
};

static void nvfs_runs_init(struct nvfs_runs *r, struct scatterlist *sgl, int nents)
{
	r->sg = sgl;
	r->left = nents;
	r->addr = 0;
	r->len = 0;
}

static bool nvfs_next_run(struct nvfs_runs *r)
{
	if (!r->left)
		return false;
	r->addr = sg_dma_address(r->sg);
	r->len = sg_dma_len(r->sg);
	for (;;) {
		r->sg = sg_next(r->sg);
		if (!--r->left || !r->len || sg_dma_address(r->sg) != r->addr + r->len ||
		    sg_dma_len(r->sg) > U32_MAX - r->len)
			return true;
		r->len += sg_dma_len(r->sg);
	}
}

/* -EINVAL: not the payload, or an address that no command can carry */
static int nvfs_measure(struct scatterlist *sgl, int nents, u32 payload, struct nvfs_shape *s)
{
	bool aligned_end = true;
	struct nvfs_runs r;

	s->runs = 0;
	s->bytes = 0;
	s->prp_ok = true;
	nvfs_runs_init(&r, sgl, nents);
	while (nvfs_next_run(&r)) {
		if (!r.len || ((r.addr | r.len) & 3))
			return -EINVAL;
		if (s->runs && (!aligned_end || r.addr % NVFS_PAGE))
			s->prp_ok = false;
		aligned_end = !((r.addr + r.len) % NVFS_PAGE);
		s->bytes += r.len;
		s->runs++;
	}
	return s->bytes == payload ? 0 : -EINVAL;
}

/* The next list, linked from nowhere yet. -EFBIG: more than a command may have. */
static void *nvfs_add_list(struct nvfs_lists *l, dma_addr_t *dma, int *err)
{
	void *p;

	if (l->nr == NVFS_MAX_LISTS) {
		*err = -EFBIG;
		return NULL;
	}
	p = dma_pool_alloc(l->pool, GFP_ATOMIC, dma);
	if (!p) {
		*err = -ENOMEM;
		return NULL;
	}
	if (!l->nr)
		l->first_dma = *dma;
	l->list[l->nr++] = p;
	return p;
}

/* the address of the next 4-KiB page (the last may be shorter) of a list that fits PRPs */
static __le64 nvfs_next_page(struct nvfs_runs *r)
{
	dma_addr_t addr;
	u32 n;

	if (!r->len)
		nvfs_next_run(r);
	addr = r->addr;
	n = min_t(u32, NVFS_PAGE - addr % NVFS_PAGE, r->len);
	r->addr += n;
	r->len -= n;
	return cpu_to_le64(addr);
}

static int nvfs_build_prps(const struct nvfs_target *t, struct scatterlist *sgl, int nents,
			   u32 payload, struct nvme_command *cmd, struct nvfs_lists *l)
{
	unsigned int slot = 0;
	struct nvfs_runs r;
	__le64 *list, *next;
	dma_addr_t dma;
	u32 first, left;	/* bytes of the first page; pages after it */
	int err = 0;

	first = NVFS_PAGE - sg_dma_address(sgl) % NVFS_PAGE;
	left = payload > first ? DIV_ROUND_UP(payload - first, NVFS_PAGE) : 0;

	nvfs_runs_init(&r, sgl, nents);
	cmd->common.dptr.prp1 = nvfs_next_page(&r);
	if (left < 2) {
		cmd->common.dptr.prp2 = left ? nvfs_next_page(&r) : 0;
		return 0;
	}

	l->pool = left <= NVFS_SMALL / sizeof(*list) ? t->small_pool : t->page_pool;
	list = nvfs_add_list(l, &dma, &err);
	if (!list)
		return err;
	cmd->common.dptr.prp2 = cpu_to_le64(dma);
	for (; left; left--) {
		/* the last slot of a page holds an address only if it is the very last one */
		if (slot == NVFS_PRPS - 1 && left > 1) {
			next = nvfs_add_list(l, &dma, &err);
			if (!next)
				return err;
			list[slot] = cpu_to_le64(dma);
			list = next;
			slot = 0;
		}
		list[slot++] = nvfs_next_page(&r);
	}
	return 0;
}

static struct nvme_sgl_desc nvfs_sge(dma_addr_t addr, u32 len, u8 type)
{
	return (struct nvme_sgl_desc) {
		.addr = cpu_to_le64(addr),
		.length = cpu_to_le32(len),
		.type = type << 4,
	};
}

static int nvfs_build_sgl(const struct nvfs_target *t, struct scatterlist *sgl, int nents,
			  unsigned int runs, struct nvme_command *cmd, struct nvfs_lists *l)
{
	struct nvme_sgl_desc *sge = &cmd->common.dptr.sgl;
	struct nvfs_runs r;
	dma_addr_t dma;
	int err = 0;

	cmd->common.flags = NVME_CMD_SGL_METABUF;
	if (runs > 1) {
		l->pool = runs * sizeof(*sge) <= NVFS_SMALL ? t->small_pool : t->page_pool;
		sge = nvfs_add_list(l, &dma, &err);
		if (!sge)
			return err;
		cmd->common.dptr.sgl = nvfs_sge(dma, runs * sizeof(*sge),
						NVME_SGL_FMT_LAST_SEG_DESC);
	}
	nvfs_runs_init(&r, sgl, nents);
	while (nvfs_next_run(&r))
		*sge++ = nvfs_sge(r.addr, r.len, NVME_SGL_FMT_DATA_DESC);
	return 0;
}

/**
 * nvfs_build() - point a command at GPU memory
 * @t: the queue
 * @sgl: mapped list: sg_dma_address and sg_dma_len of each of @nents entries count
 * @nents: entries, at least 1
 * @payload: bytes of the request
 * @cmd: gets its data pointer, and the SGL flag
 * @l: gets the lists; free with nvfs_free_lists() after the command
 *
 * Atomic. Returns 0; -ENOMEM (try again later); -EINVAL when the runs are not exactly
 * @payload bytes or not on dwords; -EIO when there is a gap that PRPs cannot express
 * and the queue takes no SGLs, or not so many runs;
 * -EFBIG when the payload needs more lists than a command may have. After an error
 * nothing is held and @cmd must not be sent.
 */
int nvfs_build(const struct nvfs_target *t, struct scatterlist *sgl, int nents, u32 payload,
	       struct nvme_command *cmd, struct nvfs_lists *l)
{
	struct nvfs_shape s;
	bool sgl_ok;
	int err;

	l->nr = 0;
	err = nvfs_measure(sgl, nents, payload, &s);
	if (err)
		return err;
	sgl_ok = t->sgl && s.runs <= NVFS_SGES;
	if (sgl_ok && t->sgl_threshold && DIV_ROUND_UP(payload, s.runs) >= t->sgl_threshold)
		err = nvfs_build_sgl(t, sgl, nents, s.runs, cmd, l);
	else if (s.prp_ok)
		err = nvfs_build_prps(t, sgl, nents, payload, cmd, l);
	else if (sgl_ok)
		err = nvfs_build_sgl(t, sgl, nents, s.runs, cmd, l);
	else
		err = -EIO;
	if (err)
		nvfs_free_lists(l);
	return err;
}

/* any context; a no-op after a build that needed no list */
void nvfs_free_lists(struct nvfs_lists *l)
{
	dma_addr_t dma = l->first_dma;
	unsigned int i;

	for (i = 0; i < l->nr; i++) {
		__le64 *list = l->list[i];
		dma_addr_t next = 0;

		/* slot 511 is a link in every list but the last, and only page lists link */
		if (i + 1 < l->nr)
			next = le64_to_cpu(list[NVFS_PRPS - 1]);
		dma_pool_free(l->pool, list, dma);
		dma = next;
	}
	l->nr = 0;
}
