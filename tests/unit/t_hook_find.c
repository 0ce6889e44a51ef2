// SPDX-License-Identifier: GPL-2.0-only
/*
 * t_hook_find.c - which storage drivers are attached, by which of their names and with which
 * table, and what is said of the others; with every symbol that is taken put again. Fails when
 * a driver gets a table it refused, half a pair is used, or a reason is another.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../kernel/nvidia-fs/hooks.c"

struct kstub kstub = { .fail_after = -1 };
struct page kstub_pages[1];
int pci_bus_type;
struct nvfs_dma_rw_ops nvfs_v1_nvme_ops = { .ft_bmap = 0xf };
struct nvfs_dma_rw_ops nvfs_v1_ops = { .ft_bmap = 0xf };
struct nvfs_dma_rw_blk_iter_ops nvfs_v2_ops = { .ft_bmap = NVFS_FT_V2 };

bool nvfs_info_enabled = true, nvfs_dbg_enabled;
static char out[4096];

void seq_printf(struct seq_file *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + strlen(out), sizeof(out) - strlen(out), fmt, ap);
	va_end(ap);
}

static struct module nvme_module = { .version = "1.0" };
static struct device_driver nvme_driver = { .owner = &nvme_module };

struct device_driver *driver_find(const char *name, const void *bus)
{
	assert_string_equal(name, "nvme");
	return &nvme_driver;
}

void nvfs_peers_changed(void)
{
}

const struct nvfs_carrier *nvfs_carrier_find(struct page *page)
{
	return NULL;
}

/* ---- a driver: takes tables that have the bits `needs`, says `refuses` else ---- */

static u64 needs;
static int refuses;
static const void *taken;
static int unregistered;

static int reg_any(struct nvfs_dma_rw_ops *ops)
{
	if (refuses || (ops->ft_bmap & needs) != needs)
		return refuses ? refuses : -EOPNOTSUPP;
	assert_null(taken);
	taken = ops;
	return 0;
}

static void unreg_any(void)
{
	assert_non_null(taken);
	taken = NULL;
	unregistered++;
}

static const char *exported[4];
static int refs[4];

void *__symbol_get(const char *name)
{
	for (int i = 0; i < 4; i++)
		if (exported[i] && !strcmp(exported[i], name)) {
			refs[i]++;
			return strstr(name, "unregister") ? (void *)unreg_any : (void *)reg_any;
		}
	return NULL;
}

void __symbol_put(const char *name)
{
	for (int i = 0; i < 4; i++)
		if (exported[i] && !strcmp(exported[i], name)) {
			assert_true(refs[i]-- > 0);
			return;
		}
	fail_msg("put of %s, which was not got", name);
}

static struct notifier_block *notifier;

int register_module_notifier(struct notifier_block *nb)
{
	notifier = nb;
	return 0;
}

int unregister_module_notifier(struct notifier_block *nb)
{
	assert_ptr_equal(notifier, nb);
	notifier = NULL;
	return 0;
}

static void driver(u64 bits, const char *reg, const char *unreg)
{
	memset(exported, 0, sizeof(exported));
	memset(refs, 0, sizeof(refs));
	needs = bits;
	refuses = 0;
	unregistered = 0;
	exported[0] = reg;
	exported[1] = unreg;
}

static int held(void)
{
	return refs[0] + refs[1] + refs[2] + refs[3];
}

static const char *reasons(void)
{
	out[0] = '\0';
	nvfs_hooks_show_reasons(NULL);
	return out;
}

static const char *modules(void)
{
	out[0] = '\0';
	nvfs_hooks_show(NULL);
	return out;
}

#define V1_BITS (NVFS_FT_PREP_SGLIST | NVFS_FT_MAP_SGLIST)
#define V2_BITS (NVFS_FT_ITER_START | NVFS_FT_ITER_NEXT)

/* every pair of the ABI, and the table it gets */
static void t_pairs(void **state)
{
	static const struct {
		const char *key, *reg, *unreg;
		u64 bits;
		const void *table;
		const char *form;
	} rows[] = {
#define ROW(k, n, bits, table, form) \
	{ k, n "_register_nvfs_dma_ops", n "_unregister_nvfs_dma_ops", bits, table, form }
		ROW("nvme", "nvme_v2", V2_BITS, &nvfs_v2_ops, "v2"),
		ROW("nvme", "nvme_v2", V1_BITS, &nvfs_v1_nvme_ops, "v1"),
		ROW("nvme", "nvme_v1", V1_BITS, &nvfs_v1_nvme_ops, "v1"),
		ROW("nvme_rdma", "nvme_rdma_v1", V1_BITS, &nvfs_v1_nvme_ops, "v1"),
		ROW("sfxvdriver", "sfxv_v1", V1_BITS, &nvfs_v1_nvme_ops, "v1"),
		ROW("nvmeib_common", "nvmesh_v1", V1_BITS, &nvfs_v1_nvme_ops, "v1"),
		ROW("lnet", "lustre_v1", V1_BITS, &nvfs_v1_ops, "v1"),
		ROW("beegfs", "beegfs_v1", V1_BITS, &nvfs_v1_ops, "v1"),
		ROW("mmfslinux", "ibm_scale_v1", V1_BITS, &nvfs_v1_ops, "v1"),
		ROW("rpcrdma", "rpcrdma", V1_BITS, &nvfs_v1_ops, "v1"),
		ROW("scatefs", "scatefs", V1_BITS, &nvfs_v1_ops, "v1"),
		{ "scsi_mod", "scsi_v1_register_dma_scsi_ops", "scsi_v1_unregister_dma_scsi_ops",
		  V1_BITS, &nvfs_v1_ops, "v1" },
	};
	char line[200];

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		driver(rows[i].bits, rows[i].reg, rows[i].unreg);
		assert_int_equal(nvfs_hooks_init(), 0);
		assert_ptr_equal(taken, rows[i].table);
		assert_true(nvfs_hooks_any());
		assert_int_equal(refs[0], 0);
		assert_int_equal(refs[1], 1);	/* unregister: the driver cannot go */
		snprintf(line, sizeof(line), "driver %s: attached (%s)\n", rows[i].key,
			 rows[i].form);
		assert_non_null(strstr(reasons(), line));
		snprintf(line, sizeof(line), "%s: %s\nwekafsio: 1\n", rows[i].key,
			 strcmp(rows[i].key, "nvme") ? "(null)" : "1.0");
		assert_string_equal(modules(), line);
		nvfs_hooks_attach();	/* who is attached is left alone */
		assert_int_equal(refs[1], 1);
		nvfs_hooks_exit();
		assert_int_equal(unregistered, 1);
		assert_null(taken);
		assert_int_equal(held(), 0);
		assert_false(nvfs_hooks_any());
	}
}

static void t_half(void **state)
{
	static const char reg[] = "nvme_v2_register_nvfs_dma_ops";
	static const char unreg[] = "nvme_v2_unregister_nvfs_dma_ops";

	for (int half = 0; half < 2; half++) {
		driver(V2_BITS, half ? NULL : reg, half ? unreg : NULL);
		assert_int_equal(nvfs_hooks_init(), 0);
		assert_null(taken);
		assert_int_equal(held(), 0);
		assert_non_null(strstr(reasons(), half ?
			"driver nvme: not attached: half a hook: nvme_v2_unregister_nvfs_dma_ops is exported, nvme_v2_register_nvfs_dma_ops is not\n" :
			"driver nvme: not attached: half a hook: nvme_v2_register_nvfs_dma_ops is exported, nvme_v2_unregister_nvfs_dma_ops is not\n"));
		assert_string_equal(modules(), "wekafsio: 1\n");
		nvfs_hooks_exit();
		assert_int_equal(unregistered, 0);
	}
}

/* refused: by its first reason, once in the log; tried again whenever there is cause */
static void t_refused(void **state)
{
	unsigned int lines;

	driver(V2_BITS, "nvme_v2_register_nvfs_dma_ops", "nvme_v2_unregister_nvfs_dma_ops");
	refuses = -EBUSY;
	lines = kstub.lines;
	assert_int_equal(nvfs_hooks_init(), 0);
	assert_int_equal(kstub.lines, lines + 1);
	assert_non_null(strstr(kstub.log, "nvme_v2_register_nvfs_dma_ops refused the v2 table ("));
	assert_non_null(strstr(reasons(), "driver nvme: not attached: nvme_v2_register_nvfs_dma_ops refused the v2 table ("));
	assert_int_equal(held(), 0);
	nvfs_hooks_attach();
	assert_int_equal(kstub.lines, lines + 1);

	/* a module loads: coming is too early, and going is no cause */
	refuses = 0;
	notifier->notifier_call(notifier, MODULE_STATE_COMING, &nvme_module);
	notifier->notifier_call(notifier, MODULE_STATE_GOING, &nvme_module);
	assert_null(taken);
	notifier->notifier_call(notifier, MODULE_STATE_LIVE, &nvme_module);
	assert_ptr_equal(taken, &nvfs_v2_ops);
	assert_non_null(strstr(kstub.log, "nvme: attached (v2)"));
	nvfs_hooks_exit();
	assert_null(notifier);
	assert_int_equal(held(), 0);
}

/* nothing is there: each is listed, and only nvme's absence is worth a line */
static void t_absent(void **state)
{
	unsigned int lines, n = 0;
	const char *p;

	driver(0, NULL, NULL);
	assert_int_equal(nvfs_hooks_init(), 0);
	lines = kstub.lines;
	for (p = reasons(); (p = strstr(p, "not attached: no loaded module exports its hook")); p++)
		n++;
	assert_int_equal(n, ARRAY_SIZE(nvfs_hooks));
	nvfs_hooks_attach();
	assert_int_equal(kstub.lines, lines);
	nvfs_hooks_exit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_pairs),
		cmocka_unit_test(t_half),
		cmocka_unit_test(t_refused),
		cmocka_unit_test(t_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
