// SPDX-License-Identifier: GPL-2.0-only
/*
 * t_hook_builder.c - kernel/nvme-hook on the host: the lists it builds, decoded again by
 * the rules of the NVMe specification, and that every failure gives everything back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../kernel/nvme-hook/nvfs_build.c"
#include "../../kernel/nvme-hook/nvfs.c"
#include "../../kernel/nvme-hook/nvfs_v1.c"

#define MIB (1u << 20)
#define PAGE 4096u
#define MAX_RUNS 4096

struct kstub kstub = { .fail_after = -1 };
struct page kstub_pages[1];

static struct device dev;
static struct dma_pool large = { .size = PAGE }, small = { .size = 256 };

struct run {
	u64 addr;
	u32 len;
};

/* runs joined where they follow on */
struct runs {
	struct run r[MAX_RUNS];
	unsigned int n;
	u64 bytes;
};

static struct runs want, got;
static struct scatterlist sgl[MAX_RUNS];
static int nents;

static void add(struct runs *rs, u64 addr, u32 len)
{
	struct run *last = rs->n ? &rs->r[rs->n - 1] : NULL;

	rs->bytes += len;
	if (last && last->addr + last->len == addr) {
		last->len += len;
		return;
	}
	assert_true(rs->n < MAX_RUNS);
	rs->r[rs->n++] = (struct run) { addr, len };
}

static void start(void)
{
	want.n = 0;
	want.bytes = 0;
	nents = 0;
}

/* one entry of the mapped list */
static void entry(u64 addr, u32 len)
{
	add(&want, addr, len);
	if (nents)
		sgl[nents - 1].end = false;
	sgl[nents++] = (struct scatterlist) { .dma_address = addr, .dma_length = len, .end = true };
}

static struct nvfs_target target(u32 threshold)
{
	return (struct nvfs_target) {
		.dev = &dev,
		.page_pool = &large,
		.small_pool = &small,
		.sgl = threshold,
		.sgl_threshold = threshold,
	};
}

static void *at(u64 dma)
{
	assert_true(dma & KSTUB_DMA);
	return (void *)(uintptr_t)(dma & ~KSTUB_DMA);
}

/* what a controller makes of PRP1 and PRP2 */
static void decode_prps(const struct nvme_command *cmd, u32 left)
{
	u64 prp1 = cmd->common.dptr.prp1, prp2 = cmd->common.dptr.prp2;
	u32 n = min_t(u32, PAGE - prp1 % PAGE, left);
	unsigned int slot = 0;
	u64 *list;

	assert_int_equal(prp1 % 4, 0);
	add(&got, prp1, n);
	left -= n;
	if (!left) {
		assert_int_equal(prp2, 0);
		return;
	}
	if (left <= PAGE) {
		assert_int_equal(prp2 % PAGE, 0);
		add(&got, prp2, left);
		return;
	}
	list = at(prp2);
	while (left) {
		if (slot == 511 && left > PAGE) {
			list = at(list[slot]);
			slot = 0;
			continue;
		}
		n = min_t(u32, PAGE, left);
		assert_int_equal(list[slot] % PAGE, 0);
		add(&got, list[slot++], n);
		left -= n;
	}
}

static void check_sge(const struct nvme_sgl_desc *d, u8 type)
{
	assert_int_equal(d->type, type << 4);
	assert_int_equal(d->rsvd[0] | d->rsvd[1] | d->rsvd[2], 0);
}

static void decode_sgl(const struct nvme_command *cmd)
{
	const struct nvme_sgl_desc *d = &cmd->common.dptr.sgl;
	unsigned int n = 1;

	if (d->type >> 4 == NVME_SGL_FMT_LAST_SEG_DESC) {
		check_sge(d, NVME_SGL_FMT_LAST_SEG_DESC);
		assert_int_equal(d->length % sizeof(*d), 0);
		n = d->length / sizeof(*d);
		assert_in_range(n, 2, 256);
		d = at(d->addr);
	}
	while (n--) {
		check_sge(d, NVME_SGL_FMT_DATA_DESC);
		add(&got, d->addr, d->length);
		d++;
	}
}

static void assert_same(void)
{
	assert_int_equal(got.bytes, want.bytes);
	assert_int_equal(got.n, want.n);
	for (unsigned int i = 0; i < want.n; i++) {
		assert_int_equal(got.r[i].addr, want.r[i].addr);
		assert_int_equal(got.r[i].len, want.r[i].len);
	}
}

static unsigned int build_ok(u32 threshold, bool expect_sgl)
{
	struct nvfs_target t = target(threshold);
	struct nvme_command cmd = { 0 };
	struct nvfs_lists l = { 0 };
	unsigned int lists;

	assert_int_equal(nvfs_build(&t, sgl, nents, want.bytes, &cmd, &l), 0);
	assert_int_equal(!!(cmd.common.flags & NVME_CMD_SGL_METABUF), expect_sgl);
	got.n = 0;
	got.bytes = 0;
	if (expect_sgl)
		decode_sgl(&cmd);
	else
		decode_prps(&cmd, want.bytes);
	assert_same();
	lists = l.nr;
	assert_int_equal(kstub.live, lists);
	nvfs_free_lists(&l);
	assert_int_equal(kstub.live, 0);
	assert_int_equal(large.live + small.live, 0);
	return lists;
}

static int build_err(u32 threshold, u32 payload)
{
	struct nvfs_target t = target(threshold);
	struct nvme_command cmd = { 0 };
	struct nvfs_lists l = { 0 };
	int err = nvfs_build(&t, sgl, nents, payload, &cmd, &l);

	assert_int_equal(kstub.live, 0);
	assert_int_equal(l.nr, 0);
	return err;
}

/* list pages for n entries after the first: 512 in the last page, 511 and a link else */
static u32 lists_for(u32 n)
{
	if (n < 2)
		return 0;
	return n <= 512 ? 1 : 1 + DIV_ROUND_UP(n - 512, 511);
}

/* one run, every count of list entries around the borders, every kind of start */
static void t_single_run(void **state)
{
	static const u32 offs[] = { 0, 4, 512, 2048, 4092 };

	for (unsigned int o = 0; o < 5; o++)
		for (u32 pages = 1; pages <= 2048; pages++) {
			/* a whole number of pages, some bytes less, some more */
			for (int extra = -512; extra <= 512; extra += 512) {
				u32 len = pages * PAGE + extra, first = PAGE - offs[o], lists = 0;

				if (len > 8 * MIB)
					continue;
				start();
				entry(0x800000000ull + offs[o], len);
				if (len > first)
					lists = lists_for(DIV_ROUND_UP(len - first, PAGE));
				assert_int_equal(build_ok(0, false), lists);
			}
		}
	(void)state;
}

static void t_small_pool(void **state)
{
	unsigned int before = small.allocs;

	start();
	entry(0x1000000, 33 * PAGE);	/* 32 entries after the first: 256 bytes */
	assert_int_equal(build_ok(0, false), 1);
	assert_int_equal(small.allocs, before + 1);
	start();
	entry(0x1000000, 34 * PAGE);
	build_ok(0, false);
	assert_int_equal(small.allocs, before + 1);

	start();
	for (int i = 0; i < 16; i++)
		entry(0x1000000 + i * 2 * MIB, 64 * 1024);
	build_ok(SZ_64K / 2, true);
	assert_int_equal(small.allocs, before + 2);
	entry(0x8000000, 64 * 1024);
	build_ok(SZ_64K / 2, true);
	assert_int_equal(small.allocs, before + 2);
	(void)state;
}

/* 64-KiB pieces that lie anywhere, starting inside one: more runs than the driver's list has */
static void scatter_8m(u32 into)
{
	u32 left = 8 * MIB, n = 64 * 1024 - into;
	u64 addr = 0x4000000000ull + into;

	start();
	for (int i = 0; left; i++) {
		n = min_t(u32, n, left);
		entry(addr, n);
		left -= n;
		n = 64 * 1024;
		addr = 0x4000000000ull + (u64)((i * 73 + 11) % 256) * 2 * MIB;
	}
}

static void t_8m_scattered(void **state)
{
	scatter_8m(0);
	assert_int_equal(nents, 128);
	assert_int_equal(build_ok(0, false), 4 + 1);
	assert_int_equal(build_ok(SZ_64K / 2, true), 1);
	scatter_8m(512);
	assert_int_equal(nents, 129);
	assert_int_equal(build_ok(0, false), 5);
	assert_int_equal(build_ok(SZ_64K / 2, true), 1);
	scatter_8m(PAGE);
	assert_int_equal(build_ok(0, false), 5);
	(void)state;
}

static void t_sgl_choice(void **state)
{
	start();
	entry(0x1000000, 32 * 1024);
	assert_int_equal(build_ok(32 * 1024, true), 0);		/* one run: in the command */
	assert_int_equal(build_ok(32 * 1024 + 1, false), 1);	/* below the threshold */
	assert_int_equal(build_ok(0, false), 1);		/* no SGLs here */

	start();
	for (int i = 0; i < 256; i++)
		entry(0x1000000 + i * 2ull * MIB, PAGE);
	assert_int_equal(build_ok(1, true), 1);
	entry(0x1000000 + 256 * 2ull * MIB, PAGE);
	assert_int_equal(build_ok(1, false), 1);		/* 257 runs do not fit a page */

	/* entries that follow on are one run */
	start();
	for (int i = 0; i < 512; i++)
		entry(0x1000000 + i * 512, 512);
	assert_int_equal(want.n, 1);
	assert_int_equal(build_ok(32 * 1024, true), 0);
	assert_int_equal(build_ok(0, false), 1);
	(void)state;
}

static void t_gaps(void **state)
{
	start();
	entry(0x1000000, PAGE);
	entry(0x2000200, PAGE);		/* starts inside a page */
	entry(0x3000000, PAGE);
	assert_int_equal(build_err(0, want.bytes), -EIO);
	assert_int_equal(build_ok(1024, true), 1);	/* SGLs can say that */
	assert_int_equal(build_ok(1 << 20, true), 1);	/* also where PRPs are preferred */

	start();
	entry(0x1000000, 2 * PAGE - 512);	/* ends inside a page */
	entry(0x2000000, PAGE);
	assert_int_equal(build_err(0, want.bytes), -EIO);

	start();
	entry(0x1000200, PAGE - 512);	/* the first may start, the last may end anywhere */
	entry(0x2000000, 3 * PAGE);
	entry(0x9000000, 512);
	build_ok(0, false);

	start();
	entry(0x1000200, 512);		/* the first does not reach the border */
	entry(0x2000000, PAGE);
	assert_int_equal(build_err(0, want.bytes), -EIO);
	(void)state;
}

static void t_not_the_request(void **state)
{
	start();
	entry(0x1000000, 2 * PAGE);
	assert_int_equal(build_err(0, 2 * PAGE - 512), -EINVAL);
	assert_int_equal(build_err(0, 3 * PAGE), -EINVAL);
	assert_int_equal(build_err(1, 3 * PAGE), -EINVAL);
	entry(0x2000000, 0);
	assert_int_equal(build_err(0, 2 * PAGE), -EINVAL);
	start();
	entry(0, 0);
	assert_int_equal(build_err(0, PAGE), -EINVAL);
	start();
	entry(0x1000002, PAGE);
	assert_int_equal(build_err(0, PAGE), -EINVAL);
	assert_int_equal(build_err(1, PAGE), -EINVAL);
	start();
	entry(0x1000000, 30 * MIB);
	assert_int_equal(build_err(0, 30 * MIB), -EFBIG);
	(void)state;
}

static void t_alloc_failures(void **state)
{
	for (u32 into = 0; into <= 512; into += 512) {
		scatter_8m(into);
		for (int i = 0; i < 5; i++) {
			kstub.fail_after = i;
			assert_int_equal(build_err(0, 8 * MIB), -ENOMEM);
		}
		kstub.fail_after = 0;
		assert_int_equal(build_err(1, 8 * MIB), -ENOMEM);
		kstub.fail_after = 5;
		assert_int_equal(build_ok(0, false), 5);
		kstub.fail_after = -1;
	}
	(void)state;
}

static u32 rnd(u32 n)
{
	static u64 x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (u32)(x % n);
}

static void t_random(void **state)
{
	for (int round = 0; round < 20000; round++) {
		u32 runs = 1 + rnd(rnd(4) ? 8 : 300), max = rnd(2) ? 4 : 40;
		u32 threshold = rnd(3) ? 0 : 4096u << rnd(6);
		bool gap = false, expect_sgl;
		int err;

		start();
		for (u32 i = 0; i < runs && want.bytes < 7 * MIB; i++) {
			u64 addr = 0x100000000ull + (u64)rnd(1 << 16) * 16 * PAGE;
			u32 len = (1 + rnd(max)) * PAGE;

			if (!i && rnd(2)) {
				u32 o = 4 * rnd(1024);

				addr += o;
				len -= o;
			}
			if (i + 1 == runs && len > 512 && rnd(2))
				len -= 4 * rnd(128);
			if (!rnd(400) && len > 1024)
				len -= 512;
			entry(addr, len);
		}
		for (u32 i = 0; i < want.n; i++)
			gap |= (i && want.r[i].addr % PAGE) ||
			       (i + 1 < want.n && (want.r[i].addr + want.r[i].len) % PAGE);
		expect_sgl = threshold && want.n <= 256 &&
			     (gap || DIV_ROUND_UP(want.bytes, want.n) >= threshold);
		if (gap && !expect_sgl) {
			err = build_err(threshold, want.bytes);
			assert_int_equal(err, -EIO);
		} else {
			build_ok(threshold, expect_sgl);
		}
	}
	(void)state;
}

/* ---- map and unmap ---- */

static struct page gpu_pages[3] = { { .gpu = true }, { .gpu = true }, { .gpu = true } }, host_page;
static struct request_queue queue;

static struct {
	int map_sg, dma_map, dma_unmap, asked;	/* calls */
	int refs;				/* entries mapped and not unmapped */
	int sg_ret, dma_ret;			/* 0: as it should be */
	int gap;				/* make PRPs impossible */
	bool says_host;
	bool raises_segments;
} prov;

static int p_map_sg(struct request_queue *q, struct request *req, struct scatterlist *sg)
{
	struct req_iterator it;
	struct bio_vec bv;
	int n = 0;

	assert_ptr_equal(q, &queue);
	assert_int_equal(kstub.rcu_depth, 0);
	prov.map_sg++;
	if (prov.raises_segments)
		req->nr_phys_segments = 999;
	if (prov.sg_ret)
		return prov.sg_ret;
	if (prov.says_host)
		return 0;
	rq_for_each_bvec(bv, req, it) {
		u32 left = bv.bv_len, off = bv.bv_offset;

		while (left) {
			u32 len = min_t(u32, left, SZ_64K - off % SZ_64K);

			/* the room that was promised is there */
			if (n)
				assert_false(sg[n - 1].end);
			sg[n].page = bv.bv_page;
			sg[n].offset = off;
			sg[n].length = len;
			n++;
			off += len;
			left -= len;
		}
	}
	sg[n - 1].end = true;
	return n;
}

static int p_dma_map(struct device *d, struct scatterlist *sg, int n, enum dma_data_direction dir,
		     unsigned long attrs)
{
	assert_ptr_equal(d, &dev);
	assert_true(attrs & DMA_ATTR_NO_WARN);
	assert_true(dir == DMA_TO_DEVICE || dir == DMA_FROM_DEVICE);
	prov.dma_map++;
	if (prov.dma_ret)
		return prov.dma_ret;
	for (int i = 0; i < n; i++) {
		sg[i].dma_address = 0x2000000000ull + (u64)((i * 37) % 512) * 2 * MIB +
				    sg[i].offset % SZ_64K + (i ? prov.gap : 0);
		sg[i].dma_length = sg[i].length;
	}
	prov.refs += n;
	return n;
}

static int p_dma_unmap(struct device *d, struct scatterlist *sg, int n, enum dma_data_direction dir)
{
	assert_ptr_equal(d, &dev);
	assert_true(dir == DMA_TO_DEVICE || dir == DMA_FROM_DEVICE);
	for (int i = 0; i < n; i++)
		assert_true(sg[i].dma_length);
	prov.dma_unmap++;
	prov.refs -= n;
	return n;
}

static bool p_is_gpu(struct page *page)
{
	assert_true(kstub.rcu_depth > 0);
	prov.asked++;
	return page->gpu;
}

static struct nvfs_dma_rw_ops ops = {
	.ft_bmap = NVFS_FT_V1,
	.nvfs_blk_rq_map_sg = p_map_sg,
	.nvfs_dma_map_sg_attrs = p_dma_map,
	.nvfs_dma_unmap_sg = p_dma_unmap,
	.nvfs_is_gpu_page = p_is_gpu,
};

static struct bio_vec vecs[4];
static struct bio bios[2];
static struct request rq;
static struct nvfs_rq *slot;

/* a request of one bio of one segment */
static void request(int op, u32 off, u32 len)
{
	memset(&prov, 0, sizeof(prov));
	vecs[0] = (struct bio_vec) { gpu_pages, len, off };
	bios[0] = (struct bio) { .vec = vecs, .nvec = 1 };
	rq = (struct request) { .q = &queue, .bio = bios, .op = op, .nr_phys_segments = 1 };
	slot = NULL;
}

/* the status of a request that is ours; -1: it is not */
static int map(void)
{
	struct nvfs_target t = target(0);
	struct nvme_command cmd = { 0 };
	blk_status_t status = 77;

	if (!nvfs_attached())
		return -1;
	if (!nvfs_map(&t, &rq, &cmd, &slot, &status)) {
		assert_int_equal(status, 77);
		assert_null(slot);
		return -1;
	}
	assert_int_equal(!!slot, status == BLK_STS_OK);
	return status;
}

static int registered(void **state)
{
	(void)state;
	kstub = (struct kstub) { .fail_after = -1 };
	return nvme_v1_register_nvfs_dma_ops(&ops);
}

static int unregistered(void **state)
{
	(void)state;
	nvme_v1_unregister_nvfs_dma_ops();
	return kstub.live || kstub.rcu_depth || kstub.lock_depth;
}

static void t_register(void **state)
{
	struct nvfs_dma_rw_ops bad = ops;

	assert_int_equal(nvme_v1_register_nvfs_dma_ops(NULL), -EINVAL);
	bad.ft_bmap = NVFS_FT_V2;
	assert_int_equal(nvme_v1_register_nvfs_dma_ops(&bad), -EOPNOTSUPP);
	assert_non_null(strstr(kstub.log, "bit 0 (prep sglist) bit 1 (map sglist)"));
	bad.ft_bmap = NVFS_FT_V1 & ~NVFS_FT_MAP_SGLIST;
	assert_int_equal(nvme_v1_register_nvfs_dma_ops(&bad), -EOPNOTSUPP);
	assert_null(strstr(kstub.log, "bit 0"));
	assert_non_null(strstr(kstub.log, "bit 1"));
	bad = ops;
	bad.nvfs_dma_unmap_sg = NULL;
	assert_int_equal(nvme_v1_register_nvfs_dma_ops(&bad), -EINVAL);
	bad = ops;
	bad.nvfs_is_gpu_page = NULL;
	assert_int_equal(nvme_v1_register_nvfs_dma_ops(&bad), -EINVAL);

	for (int i = 0; i < 2; i++) {
		kstub.fail_after = i;
		assert_int_equal(nvme_v1_register_nvfs_dma_ops(&ops), -ENOMEM);
		kstub.fail_after = -1;
		assert_int_equal(kstub.live, 0);
		assert_false(nvfs_attached());
	}

	assert_int_equal(nvme_v1_register_nvfs_dma_ops(&ops), 0);
	assert_true(nvfs_attached());
	assert_int_equal(nvme_v1_register_nvfs_dma_ops(&ops), -EBUSY);
	nvme_v1_unregister_nvfs_dma_ops();
	assert_false(nvfs_attached());
	nvme_v1_unregister_nvfs_dma_ops();	/* nobody there: nothing happens */
	assert_int_equal(kstub.live, 0);

	/* the original only needs bits 0 and 1: then every request is shown to the provider */
	bad = ops;
	bad.ft_bmap = NVFS_FT_NEEDED;
	bad.nvfs_is_gpu_page = NULL;
	assert_int_equal(nvme_v1_register_nvfs_dma_ops(&bad), 0);
	request(REQ_OP_READ, 0, PAGE);
	prov.says_host = true;
	assert_int_equal(map(), -1);
	assert_int_equal(prov.map_sg, 1);
	nvme_v1_unregister_nvfs_dma_ops();
	assert_int_equal(kstub.live, 0);
	(void)state;
}

static void t_read_write(void **state)
{
	static const u32 lens[] = { 512, PAGE, 64 * 1024, MIB, 8 * MIB };

	for (int op = REQ_OP_READ; op <= REQ_OP_WRITE; op++)
		for (unsigned int i = 0; i < 5; i++)
			for (u32 off = 0; off <= 512; off += 512) {
				unsigned long before = nvfs_counts.v[NVFS_REQUESTS];
				int live = kstub.live;

				request(op, off, lens[i]);
				assert_int_equal(map(), BLK_STS_OK);
				assert_true(prov.refs > 0);
				nvfs_unmap(&slot);
				assert_null(slot);
				assert_int_equal(prov.refs, 0);
				assert_int_equal(prov.dma_unmap, 1);
				assert_int_equal(kstub.live, live);
				assert_int_equal(nvfs_counts.v[NVFS_REQUESTS], before + 1);
			}
	(void)state;
}

static void t_not_ours(void **state)
{
	request(REQ_OP_READ, 0, PAGE);
	vecs[0].bv_page = &host_page;
	assert_int_equal(map(), -1);
	assert_int_equal(prov.asked, 1);
	assert_int_equal(prov.map_sg, 0);

	request(REQ_OP_FLUSH, 0, PAGE);
	assert_int_equal(map(), -1);
	request(REQ_OP_DISCARD, 0, PAGE);
	assert_int_equal(map(), -1);
	request(REQ_OP_DRV_IN, 0, PAGE);
	assert_int_equal(map(), -1);
	request(REQ_OP_WRITE, 0, PAGE);
	rq.rq_flags = RQF_SPECIAL_PAYLOAD;
	assert_int_equal(map(), -1);
	request(REQ_OP_WRITE, 0, PAGE);
	rq.integrity = true;
	assert_int_equal(map(), -1);
	assert_int_equal(prov.asked, 0);

	/* the provider changes its mind: nothing stays behind, the request is as it was */
	request(REQ_OP_WRITE, 0, PAGE);
	prov.says_host = true;
	prov.raises_segments = true;
	assert_int_equal(map(), -1);
	assert_int_equal(rq.nr_phys_segments, 1);
	assert_int_equal(prov.dma_map, 0);
	(void)state;
}

/* merged bios: the second one is the GPU's; the provider is asked and obeyed */
static void t_mixed(void **state)
{
	request(REQ_OP_READ, 0, PAGE);
	vecs[0].bv_page = &host_page;
	vecs[1] = (struct bio_vec) { gpu_pages, PAGE, 0 };
	bios[0].bi_next = &bios[1];
	bios[1] = (struct bio) { .vec = &vecs[1], .nvec = 1 };
	rq.nr_phys_segments = 2;
	prov.sg_ret = NVFS_IO_ERR;
	assert_int_equal(map(), BLK_STS_IOERR);
	assert_int_equal(prov.map_sg, 1);
	prov.sg_ret = 0;
	prov.says_host = true;
	assert_int_equal(map(), -1);
	(void)state;
}

/* carriers that touch count as one segment; the room must not depend on that */
static void t_room(void **state)
{
	request(REQ_OP_READ, 0, PAGE);
	for (int i = 0; i < 4; i++)
		vecs[i] = (struct bio_vec) { gpu_pages, 60 * 1024, 8192 };
	bios[0].nvec = 4;
	assert_int_equal(map(), BLK_STS_OK);
	assert_int_equal(slot->nents, 8);
	nvfs_unmap(&slot);
	(void)state;
}

static void t_errors(void **state)
{
	unsigned long before = nvfs_counts.v[NVFS_ERRORS];
	int live = kstub.live;
	struct {
		int sg, dma, gap;
		const char *says;
	} cases[] = {
		{ NVFS_IO_ERR, 0, 0, "refused" },
		{ 100000, 0, 0, "refused" },
		{ 0, NVFS_IO_ERR, 0, "no DMA mapping" },
		{ 0, NVFS_BAD_REQ, 0, "no DMA mapping" },
		{ 0, 1, 0, "no DMA mapping" },
		{ 0, 0, 512, "4-KiB borders" },
		{ 0, 0, 2, "not the request" },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		request(REQ_OP_WRITE, 0, MIB);
		prov.sg_ret = cases[i].sg;
		prov.dma_ret = cases[i].dma;
		prov.gap = cases[i].gap;
		prov.raises_segments = true;
		assert_int_equal(map(), BLK_STS_IOERR);
		assert_non_null(strstr(kstub.log, cases[i].says));
		assert_int_equal(prov.refs, 0);
		assert_int_equal(prov.dma_unmap, cases[i].gap ? 1 : 0);
		assert_int_equal(kstub.live, live);
		assert_int_equal(rq.nr_phys_segments, 1);
		assert_int_equal(nvfs_counts.v[NVFS_ERRORS], before + i + 1);
	}
	(void)state;
}

/* memory is short at any step: the request comes again, nothing is held, nothing is logged */
static void t_no_memory(void **state)
{
	unsigned int lines = kstub.lines;
	int live = kstub.live, i;

	for (i = 0; ; i++) {
		request(REQ_OP_READ, 512, 8 * MIB);
		kstub.fail_after = i;
		if (map() == BLK_STS_OK)
			break;
		kstub.fail_after = -1;
		assert_int_equal(prov.refs, 0);
		assert_int_equal(prov.dma_map, prov.dma_unmap);
		assert_int_equal(kstub.live, live);
	}
	kstub.fail_after = -1;
	assert_int_equal(i, 6);		/* the state and five lists */
	assert_int_equal(kstub.lines, lines);
	nvfs_unmap(&slot);
	assert_int_equal(kstub.live, live);
	(void)state;
}

static struct nvfs_rq *late;
static int waits;

/* somebody waits for us: not registered for new requests, the old one still completes */
static void complete_late(void)
{
	waits++;
	request(REQ_OP_READ, 0, PAGE);
	assert_int_equal(map(), -1);
	assert_int_equal(prov.asked, 0);
	if (waits < 3)
		return;
	prov.refs = late->nents;
	nvfs_unmap(&late);
	assert_int_equal(prov.refs, 0);
}

static void t_unregister_waits(void **state)
{
	assert_int_equal(registered(NULL), 0);
	request(REQ_OP_WRITE, 0, MIB);
	assert_int_equal(map(), BLK_STS_OK);
	late = slot;
	slot = NULL;
	waits = 0;
	kstub.waiting = complete_late;
	nvme_v1_unregister_nvfs_dma_ops();
	kstub.waiting = NULL;
	assert_int_equal(waits, 3);
	assert_int_equal(kstub.syncs, 1);	/* for readers without a reference */
	assert_null(late);
	assert_int_equal(kstub.live, 0);
	(void)state;
}

/* the counters read as one decimal line */
static void t_counters(void **state)
{
	struct kernel_param kp = { .arg = (void *)NVFS_REQUESTS };
	char buf[4096], want_line[32];

	snprintf(want_line, sizeof(want_line), "%lu\n", nvfs_counts.v[NVFS_REQUESTS]);
	assert_true(nvfs_count_ops.get(buf, &kp) > 0);
	assert_string_equal(buf, want_line);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_single_run),
		cmocka_unit_test(t_small_pool),
		cmocka_unit_test(t_8m_scattered),
		cmocka_unit_test(t_sgl_choice),
		cmocka_unit_test(t_gaps),
		cmocka_unit_test(t_not_the_request),
		cmocka_unit_test(t_alloc_failures),
		cmocka_unit_test(t_random),
		cmocka_unit_test(t_register),
		cmocka_unit_test_setup_teardown(t_read_write, registered, unregistered),
		cmocka_unit_test_setup_teardown(t_not_ours, registered, unregistered),
		cmocka_unit_test_setup_teardown(t_mixed, registered, unregistered),
		cmocka_unit_test_setup_teardown(t_room, registered, unregistered),
		cmocka_unit_test_setup_teardown(t_errors, registered, unregistered),
		cmocka_unit_test_setup_teardown(t_no_memory, registered, unregistered),
		cmocka_unit_test(t_unregister_waits),
		cmocka_unit_test(t_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
