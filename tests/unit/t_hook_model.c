// SPDX-License-Identifier: GPL-2.0-only
/*
 * t_hook_model.c - provider and consumer of the hook, both forms, on the host: requests over
 * GPU memory that lies in many patterns, cut into bvecs, bios and commands in many ways. What
 * the controller is told is decoded again and must be, byte for byte, where the GPU memory
 * is; with as few pieces as the memory allows; and every reference must come back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../kernel/nvidia-fs/hook_v1.c"
#include "../../kernel/nvidia-fs/hook_v2.c"

/* the consumer; a name that nvidia-fs uses for something else */
#define nvfs_map hook_map
#include "../../kernel/nvme-hook/nvfs_build.c"
#include "../../kernel/nvme-hook/nvfs.c"
#undef nvfs_map
/* both forms at once: `form` says which is asked */
int v1_form_map(struct nvfs_rq *rq, struct request *req, unsigned int room, const char **why);
int v1_form_unmap(struct nvfs_rq *rq);
int v2_form_map(struct nvfs_rq *rq, struct request *req, unsigned int room, const char **why);
int v2_form_unmap(struct nvfs_rq *rq);
#define nvfs_form_map v1_form_map
#define nvfs_form_unmap v1_form_unmap
#include "../../kernel/nvme-hook/nvfs_v1.c"
#undef nvfs_form_map
#undef nvfs_form_unmap
#undef NVFS_FT_NEEDED
#define nvfs_form_map v2_form_map
#define nvfs_form_unmap v2_form_unmap
#include "../../kernel/nvme-hook/nvfs_v2.c"
#undef nvfs_form_map
#undef nvfs_form_unmap

#define KIB 1024u
#define MIB (1u << 20)
#define BLOCK NVFS_BLOCK_SIZE
#define GPAGE NVFS_GPU_PAGE_SIZE
#define NPAGES 160u			/* GPU pages of a mapping: 10 MiB */
#define NBLOCKS 4096u			/* carrier blocks of a mapping */
#define MAX_BVECS 2100
#define MAX_RUNS 4096

struct kstub kstub = { .fail_after = -1 };
struct page kstub_pages[2 * NBLOCKS + 64];
struct nvfs_stats nvfs_stats;

enum form { V1, V1_ANY, V2, FORMS };
static enum form form;

int nvfs_form_map(struct nvfs_rq *rq, struct request *req, unsigned int room, const char **why)
{
	return form == V2 ? v2_form_map(rq, req, room, why) : v1_form_map(rq, req, room, why);
}

int nvfs_form_unmap(struct nvfs_rq *rq)
{
	return form == V2 ? v2_form_unmap(rq) : v1_form_unmap(rq);
}

/* ---- the rest of nvidia-fs ---- */

static struct nvfs_mapping maps[2];
static struct nvfs_carrier carriers[2][NBLOCKS / 512];
static u64 dma_addr[2][NPAGES];
static u32 run_end[2][NPAGES], gpu_blk[2][NBLOCKS];
static u8 sectors[2][NBLOCKS];
static struct nvidia_p2p_dma_mapping dma[2];
static struct nvfs_peer_map pms[2];
static struct nvfs_peer peer = { .slot = 3 };
static struct device dev;
static bool no_peer;
static int missed;

/* mapping i has the pages from i * NBLOCKS on, in carriers of 2 MiB that touch */
const struct nvfs_carrier *nvfs_carrier_find(struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	assert_true(kstub.rcu_depth);
	if (pfn >= 2 * NBLOCKS)
		return NULL;
	return &carriers[pfn / NBLOCKS][pfn % NBLOCKS / 512];
}

void nvfs_blocks_mark(struct nvfs_mapping *m, u64 pos, u32 len)
{
	assert_int_equal(pos % 512 + len % 512, 0);
	for (; len; len -= 512, pos += 512)
		m->sectors[pos / BLOCK] |= 1 << pos % BLOCK / 512;
}

void nvfs_blocks_by(struct nvfs_mapping *m, u64 pos, u32 len, unsigned int slot)
{
}

void nvfs_mapping_put(struct nvfs_mapping *m)
{
	assert_true(m->ref.v > 1);	/* the request has one as long as its pages are in use */
	m->ref.v--;
}

struct nvfs_peer *nvfs_peer_find(struct device *d)
{
	return d == &dev && !no_peer ? &peer : NULL;
}

void nvfs_peer_missed(struct nvfs_mapping *m, struct device *d)
{
	assert_ptr_equal(d, &dev);
	assert_ptr_equal(m, &maps[0]);
	missed++;
}

/* ---- GPU memory in patterns ---- */

static u32 rnd(u32 n)
{
	static u64 x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (u32)(x % n);
}

enum pattern { CONTIG, RUNS_2M, APART, REVERSE, ALTERNATE, RANDOM, PATTERNS };

static u64 place(enum pattern p, u32 page)
{
	const u64 base = 0x2000000000ull;

	switch (p) {
	case CONTIG:
		return base + (u64)page * GPAGE;
	case RUNS_2M:
		return base + (u64)(page / 32) * 8 * MIB + page % 32 * GPAGE;
	case APART:
		return base + (u64)page * 2 * GPAGE;
	case REVERSE:
		return base + (u64)(NPAGES - page) * GPAGE;
	case ALTERNATE:
		return base + (u64)(page ^ 1) * GPAGE;
	default:
		return base + (u64)rnd(1 << 20) * GPAGE;
	}
}

static void lay_out(int i, enum pattern p)
{
	struct nvfs_mapping *m = &maps[i];

	for (u32 page = 0; page < NPAGES; page++)
		dma_addr[i][page] = place(p, page) + (u64)i * 0x1000000000ull;
	for (u32 page = NPAGES; page--;)
		run_end[i][page] = page + 1 < NPAGES &&
				   dma_addr[i][page + 1] == dma_addr[i][page] + GPAGE ?
				   run_end[i][page + 1] : page + 1;
	dma[i].dma_addresses = dma_addr[i];
	pms[i] = (struct nvfs_peer_map) { .dma = &dma[i], .run_end = run_end[i] };
	*m = (struct nvfs_mapping) {
		.ref.v = 1, .nblocks = NBLOCKS, .gpu_blk = gpu_blk[i], .sectors = sectors[i],
		.pin = { .pages = NPAGES, .run_end = run_end[i] },
	};
	m->peer_map[peer.slot] = &pms[i];
	for (u32 c = 0; c < NBLOCKS / 512; c++)
		carriers[i][c] = (struct nvfs_carrier) {
			.m = m, .page = &kstub_pages[i * NBLOCKS + c * 512], .first = c * 512,
			.order = 9,
		};
	memset(gpu_blk[i], 0xff, sizeof(gpu_blk[i]));
	memset(sectors[i], 0, sizeof(sectors[i]));
	peer.segments.v = 0;
}

/* ---- requests ---- */

static struct bio_vec vecs[MAX_BVECS];
static struct bio bios[4];
static unsigned int nvecs, nbios;
static struct request_queue queue;
static struct request rq;
static struct nvfs_rq *slot;
static struct nvme_command cmd;
static struct dma_pool large = { .size = 4096 }, small = { .size = 256 };

struct runs {
	struct {
		u64 addr;
		u32 len;
	} r[MAX_RUNS];
	unsigned int n;
	u32 bytes;
};

static struct runs want, got;

static void add(struct runs *rs, u64 addr, u32 len)
{
	rs->bytes += len;
	if (rs->n && rs->r[rs->n - 1].addr + rs->r[rs->n - 1].len == addr) {
		rs->r[rs->n - 1].len += len;
		return;
	}
	assert_true(rs->n < MAX_RUNS);
	rs->r[rs->n].addr = addr;
	rs->r[rs->n++].len = len;
}

static void new_request(int op)
{
	nvecs = nbios = 0;
	want.n = want.bytes = 0;
	rq = (struct request) { .q = &queue, .op = op };
	slot = NULL;
}

static struct bio *new_bio(void)
{
	struct bio *b = &bios[nbios];

	*b = (struct bio) { .vec = &vecs[nvecs], .bi_io_vec = &vecs[nvecs] };
	if (nbios++)
		bios[nbios - 2].bi_next = b;
	else
		rq.bio = b;
	return b;
}

static void add_vec(struct bio *b, struct page *page, u32 off, u32 len)
{
	assert_true(nvecs < MAX_BVECS);
	vecs[nvecs++] = (struct bio_vec) { page, len, off };
	b->nvec++;
	b->bi_iter.bi_size += len;
	rq.nr_phys_segments++;
}

/*
 * A bio over len bytes from `into` bytes inside block `first` of mapping i on, which stand
 * for the GPU memory from block gpu on; in bvecs of at most `most` bytes, that end with the
 * carriers.
 */
static void gpu_bio(int i, u32 first, u32 into, u32 gpu, u32 len, u32 most)
{
	struct bio *b = new_bio();
	u64 pos = (u64)first * BLOCK + into, off = (u64)gpu * BLOCK + into;

	for (u32 k = 0; k < DIV_ROUND_UP(into + len, BLOCK); k++)
		gpu_blk[i][first + k] = gpu + k;
	for (u32 k = 0; k < len; k += 512)
		add(&want, dma_addr[i][(off + k) / GPAGE] + (off + k) % GPAGE, 512);
	while (len) {
		u32 carrier = pos / (2 * MIB), in = pos % (2 * MIB);
		u32 n = min(min(len, most), 2 * MIB - in);

		/* offsets past a page, as the block layer has them */
		add_vec(b, &kstub_pages[i * NBLOCKS + carrier * 512 + in / BLOCK / 2],
			in - in / BLOCK / 2 * BLOCK, n);
		pos += n;
		len -= n;
	}
}

static void host_bio(void)
{
	add_vec(new_bio(), &kstub_pages[2 * NBLOCKS], 0, BLOCK);
	want.bytes += BLOCK;
}

/* the status, or -1: not ours */
static int map(u32 threshold)
{
	struct nvfs_target t = {
		.dev = &dev, .page_pool = &large, .small_pool = &small, .sgl = threshold,
		.sgl_threshold = threshold,
	};
	blk_status_t status = 77;

	memset(&cmd, 0, sizeof(cmd));
	if (!nvfs_attached() || !hook_map(&t, &rq, &cmd, &slot, &status))
		return -1;
	return status;
}

static void *at(u64 addr)
{
	assert_true(addr & KSTUB_DMA);
	return (void *)(uintptr_t)(addr & ~KSTUB_DMA);
}

static void decode_prps(u32 left)
{
	u64 *list = &cmd.common.dptr.prp1;
	unsigned int n = 0, end = 2;

	for (u32 len; left; left -= len) {
		if (n == 1 && list == &cmd.common.dptr.prp1 && left > 4096) {
			list = at(list[1]);
			n = 0;
			end = 512;
		} else if (n == end - 1 && end == 512 && left > 4096) {
			list = at(list[n]);
			n = 0;
		}
		len = min_t(u32, left, 4096 - list[n] % 4096);
		add(&got, list[n++], len);
	}
}

static void decode(void)
{
	const struct nvme_sgl_desc *d = &cmd.common.dptr.sgl;
	unsigned int n = 1;

	got.n = got.bytes = 0;
	if (!(cmd.common.flags & NVME_CMD_SGL_METABUF)) {
		decode_prps(want.bytes);
		return;
	}
	if (d->type >> 4 == NVME_SGL_FMT_LAST_SEG_DESC) {
		n = d->length / sizeof(*d);
		d = at(d->addr);
	}
	for (; n--; d++)
		add(&got, d->addr, d->length);
}

static void check_command(void)
{
	decode();
	assert_int_equal(got.bytes, want.bytes);
	assert_int_equal(got.n, want.n);
	for (unsigned int i = 0; i < want.n; i++) {
		assert_int_equal(got.r[i].addr, want.r[i].addr);
		assert_int_equal(got.r[i].len, want.r[i].len);
	}
}

/* every sector of the request was noted, and no other */
static void check_sectors(int i, u32 first, u32 into, u32 len)
{
	for (u64 s = 0; s < (u64)NBLOCKS * 8; s++) {
		u64 from = (u64)first * 8 + into / 512;
		bool on = sectors[i][s / 8] >> s % 8 & 1;

		assert_int_equal(on, s >= from && s < from + len / 512);
	}
}

static void check_released(void)
{
	assert_int_equal(maps[0].ref.v, 1);
	assert_int_equal(maps[1].ref.v, 1);
	assert_int_equal(peer.segments.v, 0);
	assert_int_equal(large.live + small.live, 0);
	assert_int_equal(kstub.rcu_depth, 0);
}

static void attach(enum form f)
{
	form = f;
	queue.max_segment_size = 64 * KIB;
	no_peer = false;
	missed = 0;
	memset(&nvfs_stats, 0, sizeof(nvfs_stats));
	switch (f) {
	case V1:
		assert_int_equal(nvme_v1_register_nvfs_dma_ops(&nvfs_v1_nvme_ops), 0);
		break;
	case V1_ANY:
		assert_int_equal(nvme_v1_register_nvfs_dma_ops(&nvfs_v1_ops), 0);
		break;
	default:
		assert_int_equal(nvme_v2_register_nvfs_dma_ops(&nvfs_v2_ops), 0);
		break;
	}
}

static void detach(void)
{
	nvfs_unregister();
	assert_int_equal(kstub.live, 0);
}

/* how many pieces the memory itself demands */
static void check_pieces(void)
{
	if (form != V1_ANY) {
		assert_int_equal(slot->nents, want.n);
		return;
	}
	/* the default table keeps to the queue's limit */
	for (int i = 0; i < slot->nents; i++)
		assert_true(sg_dma_len(&slot->sgl[i]) <= queue.max_segment_size);
	assert_in_range(slot->nents, want.n, want.n + want.bytes / queue.max_segment_size + 1 +
			nvecs);
}

/* scatter x commands x bvecs x start: the table */
static void t_table(void **state)
{
	static const u32 mdts[] = { 4 * KIB, 128 * KIB, 512 * KIB, MIB, 8 * MIB };
	static const u32 most[] = { 4 * KIB, 64 * KIB, 2 * MIB };
	static const struct {
		u32 first, gpu, into;
	} starts[] = { { 0, 0, 0 }, { 5, 3, 0 }, { 511, 15, 512 }, { 513, 32, 3584 } };
	static const u32 thresholds[] = { 0, 4 * KIB, 32 * KIB, 1u << 30 };

	for (form = 0; form < FORMS; form++) {
		attach(form);
		for (unsigned int k = 0; k < PATTERNS * 5 * 3 * 4 * 4; k++) {
			u32 len = mdts[k / PATTERNS % 5], v = most[k / PATTERNS / 5 % 3];
			u32 s = k / PATTERNS / 5 / 3 % 4, th = thresholds[k / PATTERNS / 5 / 3 / 4];

			lay_out(0, k % PATTERNS);
			lay_out(1, CONTIG);
			new_request(k & 1 ? REQ_OP_WRITE : REQ_OP_READ);
			gpu_bio(0, starts[s].first, starts[s].into, starts[s].gpu, len, v);
			assert_int_equal(map(th), BLK_STS_OK);
			check_command();
			check_pieces();
			check_sectors(0, starts[s].first, starts[s].into, len);
			assert_int_equal(maps[0].ref.v, 1 + slot->nents);
			assert_int_equal(peer.segments.v, slot->nents);
			nvfs_unmap(&slot);
			check_released();
		}
		detach();
	}
}

/* bios of one request: of one mapping that go on, or do not, and of two mappings */
static void t_merged(void **state)
{
	for (form = 0; form < FORMS; form++) {
		attach(form);
		for (int two = 0; two < 2; two++) {
			lay_out(0, RUNS_2M);
			lay_out(1, APART);
			new_request(REQ_OP_READ);
			gpu_bio(0, 0, 0, 0, 256 * KIB, 2 * MIB);
			gpu_bio(0, 64, 0, 64, 256 * KIB, 64 * KIB);	/* goes on */
			gpu_bio(two, 200, 0, 1024, 128 * KIB, 4 * KIB);
			assert_int_equal(map(32 * KIB), BLK_STS_OK);
			check_command();
			check_pieces();
			nvfs_unmap(&slot);
			check_released();
		}
		assert_int_equal(nvfs_stats.v[NVFS_ST_MIXED], 0);
		detach();
	}
}

/* host memory before, behind or between: refused, counted, nothing kept; alone: not ours */
static void t_mixed(void **state)
{
	for (form = 0; form < FORMS; form++) {
		attach(form);
		for (int how = 0; how < 4; how++) {
			lay_out(0, APART);
			lay_out(1, CONTIG);
			new_request(REQ_OP_WRITE);
			if (how != 1)
				host_bio();
			if (how < 3)
				gpu_bio(0, 7, 0, 7, 128 * KIB, 64 * KIB);
			if (how == 1 || how == 2)
				host_bio();
			assert_int_equal(map(0), how == 3 ? -1 : BLK_STS_IOERR);
			check_released();
			assert_null(slot);
			assert_int_equal(nvfs_stats.v[NVFS_ST_MIXED], min(how + 1, 3));
		}
		detach();
	}
}

/* lists that the driver made: host memory first or last fails, alone it is not ours */
static void t_mixed_list(void **state)
{
	struct scatterlist sgl[3];
	struct page *gpu = &kstub_pages[0], *host = &kstub_pages[2 * NBLOCKS];

	attach(V1_ANY);
	lay_out(0, APART);
	lay_out(1, CONTIG);
	for (u32 k = 0; k < 3; k++)
		gpu_blk[0][k] = k;
	for (int how = 0; how < 8; how++) {
		int n, peers = 0;

		for (int gone = 0; gone < 2; gone++) {
			no_peer = gone;
			sg_init_table(sgl, 3);
			for (int k = 0; k < 3; k++)
				sg_set_page(&sgl[k], how >> k & 1 ? gpu + k : host, BLOCK, 0);
			n = nvfs_v1_ops.nvfs_dma_map_sg_attrs(&dev, sgl, 3, DMA_TO_DEVICE, 0);
			if (!how)
				assert_int_equal(n, NVFS_BAD_REQ);
			else if (how == 7 && !gone)
				assert_int_equal(n, 3);
			else
				assert_int_equal(n, NVFS_IO_ERR);
			if (n == 3)
				peers = nvfs_v1_ops.nvfs_dma_unmap_sg(&dev, sgl, 3, DMA_TO_DEVICE);
			check_released();
		}
		assert_int_equal(peers, how == 7 ? 3 : 0);
	}
	assert_int_equal(nvfs_stats.v[NVFS_ST_MIXED], 6);
	no_peer = false;
	detach();
}

/* a device that the memory is not mapped for: refused inside, and told to who comes again */
static void t_no_mapping(void **state)
{
	for (form = 0; form < FORMS; form++) {
		attach(form);
		lay_out(1, CONTIG);
		for (int how = 0; how < 3; how++) {
			lay_out(0, APART);
			no_peer = how == 0;
			peer.dead = how == 1;
			if (how == 2)
				maps[0].peer_map[peer.slot] = NULL;
			missed = 0;
			new_request(REQ_OP_READ);
			gpu_bio(0, 0, 0, 0, 128 * KIB, 64 * KIB);
			assert_int_equal(map(0), BLK_STS_IOERR);
			assert_int_equal(how == 2 ? (int)maps[0].missed : missed, 1);
			assert_int_equal(nvfs_stats.v[NVFS_ST_DMA_MAP_ERR], how + 1);
			check_released();
		}
		peer.dead = no_peer = false;
		detach();
	}
}

/* carrier blocks that no request owns, or that stand for other memory than the rest */
static void t_not_owned(void **state)
{
	for (form = 0; form < FORMS; form++) {
		attach(form);
		lay_out(1, CONTIG);
		for (u32 bad = 0; bad < 32; bad += 31) {
			lay_out(0, CONTIG);
			new_request(REQ_OP_READ);
			gpu_bio(0, 0, 0, 0, 128 * KIB, 128 * KIB);
			gpu_blk[0][bad] = NVFS_NO_GPU_BLOCK;
			assert_int_equal(map(0), BLK_STS_IOERR);
			check_released();
		}
		detach();
	}
}

/* v2 by hand: what the ABI says of starts, ends and cookies */
static void t_v2_rules(void **state)
{
	const struct nvfs_dma_rw_blk_iter_ops *ops = &nvfs_v2_ops;
	struct dma_iova_state iova = { .addr = 5 };
	struct blk_dma_iter it = { .status = 99 };
	void *cookie = NULL;

	lay_out(0, CONTIG);
	lay_out(1, CONTIG);
	new_request(REQ_OP_FLUSH);
	assert_int_equal(ops->nvfs_blk_rq_dma_map_iter_start(&rq, &dev, &iova, &it, &cookie), 0);
	assert_int_equal(it.status, BLK_STS_OK);
	new_request(REQ_OP_READ);
	gpu_bio(0, 0, 0, 0, 64 * KIB, 64 * KIB);
	assert_int_equal(ops->nvfs_blk_rq_dma_map_iter_start(&rq, &dev, &iova, &it, &cookie), 1);
	assert_int_equal(it.p2pdma.map, PCI_P2PDMA_MAP_NONE);
	assert_int_equal(it.len, 64 * KIB);
	assert_ptr_equal(cookie, &maps[0]);
	assert_int_equal(iova.addr, 5);		/* never touched */
	assert_int_equal(ops->nvfs_blk_rq_dma_map_iter_next(&rq, &dev, &iova, &it), 0);
	assert_int_equal(it.status, BLK_STS_OK);
	assert_int_equal(ops->nvfs_dma_unmap_page(&dev, NULL, it.addr, 0, DMA_FROM_DEVICE),
			 NVFS_IO_ERR);
	assert_int_equal(ops->nvfs_dma_unmap_page(&dev, cookie, it.addr, 0, DMA_FROM_DEVICE), 0);
	check_released();
}

static void t_v2_register(void **state)
{
	struct nvfs_dma_rw_blk_iter_ops bad = nvfs_v2_ops;

	assert_int_equal(nvme_v2_register_nvfs_dma_ops(NULL), -EINVAL);
	bad.ft_bmap = NVFS_FT_V1;
	assert_int_equal(nvme_v2_register_nvfs_dma_ops(&bad), -EOPNOTSUPP);
	assert_non_null(strstr(kstub.log, "bit 5 (iter start) bit 6 (iter next)"));
	bad = nvfs_v2_ops;
	bad.nvfs_dma_unmap_page = NULL;
	assert_int_equal(nvme_v2_register_nvfs_dma_ops(&bad), -EINVAL);
	bad = nvfs_v2_ops;
	bad.nvfs_is_gpu_page = NULL;
	assert_int_equal(nvme_v2_register_nvfs_dma_ops(&bad), -EINVAL);
	/* the tables of the two forms refuse each other by their bits */
	assert_int_equal(nvme_v1_register_nvfs_dma_ops((void *)&nvfs_v2_ops), -EOPNOTSUPP);
	assert_int_equal(nvme_v2_register_nvfs_dma_ops((void *)&nvfs_v1_nvme_ops), -EOPNOTSUPP);
	assert_false(nvfs_attached());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_table),
		cmocka_unit_test(t_merged),
		cmocka_unit_test(t_mixed),
		cmocka_unit_test(t_mixed_list),
		cmocka_unit_test(t_no_mapping),
		cmocka_unit_test(t_not_owned),
		cmocka_unit_test(t_v2_rules),
		cmocka_unit_test(t_v2_register),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
