// SPDX-License-Identifier: MIT
/*
 * config_keys.c - the table of the keys of cufile.json, and which of them a misspelt or
 * misplaced one was meant to be.
 */
#include <stdio.h>
#include <string.h>

#include "config_keys.h"

#define AT(member) offsetof(struct config, member)

#define BOOL(key, member)                                                       \
	{ .name = key, .type = CONFIG_BOOL, .target = AT(member), .set = CONFIG_NOWHERE }
#define SIZE(key, member, lo, hi, ...)                                          \
	{ .name = key, .type = CONFIG_SIZE, .target = AT(member), .set = CONFIG_NOWHERE, \
	  .min = lo, .max = hi, __VA_ARGS__ }
/* `member` has a twin member_set */
#define CAP(key, member, twin, lo, hi, ...)                                     \
	{ .name = key, .type = CONFIG_SIZE, .target = AT(member), .set = AT(twin), \
	  .min = lo, .max = hi, __VA_ARGS__ }
#define NAMES(key, other, member)                                               \
	{ .name = key, .alias = other, .type = CONFIG_NAMES, .target = AT(member), \
	  .set = CONFIG_NOWHERE, .item = sizeof(((struct config *)0)->member[0]) }
/* kept, and without effect in this version */
#define IDLE(key, member)                                                       \
	{ .name = key, .type = CONFIG_BOOL, .target = AT(member), .set = CONFIG_NOWHERE, \
	  .no_effect = true }
/* known, and without effect in this version */
#define INERT(key, kind)                                                        \
	{ .name = key, .type = CONFIG_##kind, .target = CONFIG_NOWHERE, .set = CONFIG_NOWHERE }

static const struct config_key table[] = {
	{ .name = "logging.dir", .type = CONFIG_TEXT, .target = AT(log_dir),
	  .set = CONFIG_NOWHERE },
	{ .name = "logging.level", .type = CONFIG_LEVEL, .target = AT(log_level),
	  .set = CONFIG_NOWHERE },
	{ .name = "logging.max_file_size_mb", .type = CONFIG_INT, .target = AT(log_max_mb),
	  .set = CONFIG_NOWHERE, .min = -1, .max = 4096, .no_zero = true },

	IDLE("profile.nvtx", nvtx),
	SIZE("profile.cufile_stats", stats_level, 0, 3),

	SIZE("execution.max_io_queue_depth", max_io_queue_depth, 1, 256,
	     .no_effect = true),
	CAP("execution.max_io_threads", max_io_threads, max_io_threads_set, 0, 32),
	BOOL("execution.parallel_io", parallel_io),
	SIZE("execution.min_io_threshold_size_kb", min_io_threshold_kb, 4, 4294967295,
	     .no_effect = true),
	SIZE("execution.max_request_parallelism", max_request_parallelism, 0, 8,
	     .no_effect = true),

	CAP("properties.max_direct_io_size_kb", max_direct_io_kb, max_direct_io_set, 64, 16384,
	    .multiple = 64),
	CAP("properties.max_device_cache_size_kb", max_cache_kb, max_cache_set, 0, CONFIG_KB_MAX),
	SIZE("properties.per_buffer_cache_size_kb", per_buffer_cache_kb, 64, 16384,
	     .multiple = 64, .no_effect = true),
	CAP("properties.max_device_pinned_mem_size_kb", max_pinned_kb, max_pinned_set, 64,
	    CONFIG_KB_MAX),
	{ .name = "properties.gpu_bounce_buffer_slab_config.slab_size_kb", .type = CONFIG_SIZES,
	  .target = AT(slab_kb), .set = CONFIG_NOWHERE, .min = 4, .max = CONFIG_KB_MAX,
	  .multiple = 4 },
	{ .name = "properties.gpu_bounce_buffer_slab_config.slab_count", .type = CONFIG_SIZES,
	  .target = AT(slab_count), .set = CONFIG_NOWHERE, .min = 1, .max = 65536 },
	{ .name = "properties.posix_pool_slab_size_kb", .type = CONFIG_SIZES,
	  .target = AT(posix_slab_kb), .set = CONFIG_NOWHERE, .min = 4, .max = CONFIG_KB_MAX,
	  .multiple = 4 },
	{ .name = "properties.posix_pool_slab_count", .type = CONFIG_SIZES,
	  .target = AT(posix_slab_count), .set = CONFIG_NOWHERE, .min = 1, .max = 65536 },
	IDLE("properties.use_poll_mode", use_poll_mode),
	SIZE("properties.poll_mode_max_size_kb", poll_max_kb, 4, CONFIG_KB_MAX, .multiple = 4),
	{ .name = "properties.allow_compat_mode", .alias = "properties.use_compat_mode",
	  .type = CONFIG_BOOL, .target = AT(allow_compat), .set = CONFIG_NOWHERE },
	BOOL("properties.force_compat_mode", force_compat),
	IDLE("properties.use_pci_p2pdma", use_pci_p2pdma),
	INERT("properties.gds_rdma_write_support", BOOL),
	/* the interface reports 256 as the largest; more is this library's own */
	SIZE("properties.io_batchsize", io_batchsize, 1, 16384, .alias = "profile.io_batchsize"),
	SIZE("properties.max_batch_io_timeout_msecs", batch_timeout_ms, 1, 1000),
	INERT("properties.io_priority", TEXT),
	BOOL("properties.force_odirect_mode", force_odirect),
	{ .name = "properties.prefer_iouring", .type = CONFIG_BOOL, .target = AT(prefer_iouring),
	  .set = AT(prefer_iouring_set) },
	BOOL("properties.allow_system_memory", allow_system_memory),
	INERT("properties.vanilla_posix_io_mode", BOOL),
	INERT("properties.gds_fallback_io", BOOL),
	INERT("properties.compat_odirect_unaligned_read_split", BOOL),
	INERT("properties.compat_odirect_unaligned_read_split_min_size_kb", INT),
	INERT("properties.allow_rdma_token_reset", BOOL),
	INERT("properties.rdma_dev_addr_list", LIST),
	{ .name = "properties.rdma_load_balancing_policy",
	  .alias = "properties.rdma_peer_affinity_policy", .type = CONFIG_TEXT,
	  .target = CONFIG_NOWHERE, .set = CONFIG_NOWHERE },
	INERT("properties.rdma_dynamic_routing", BOOL),
	INERT("properties.rdma_dynamic_routing_order", LIST),
	INERT("properties.rdma_peer_type", TEXT),
	INERT("properties.rdma_topN_ranks", INT),
	INERT("properties.rdma_transport_type", TEXT),
	INERT("properties.rdma_dc_key", TEXT),
	INERT("properties.rdma_access_mask", TEXT),
	INERT("properties.rdma_multipath_enabled", ANY),
	INERT("properties.rdma_max_backup_devices", ANY),
	INERT("properties.rdma_io_retry_count", ANY),
	INERT("properties.rdma_io_retry_delay_ms", ANY),
	INERT("properties.rdma_failback_enabled", ANY),
	INERT("properties.rdma_failback_delay_ms", ANY),
	INERT("properties.rdma_health_check_interval_ms", ANY),
	INERT("properties.rdma_async_event_monitoring", ANY),
	INERT("properties.rdma_unhealthy_threshold", ANY),

	IDLE("fs.generic.posix_unaligned_writes", posix_unaligned_writes),
	INERT("fs.lustre.posix_gds_min_kb", INT),
	INERT("fs.beegfs.posix_gds_min_kb", INT),
	INERT("fs.scatefs.posix_gds_min_kb", INT),
	INERT("fs.lustre.rdma_dev_addr_list", LIST),
	INERT("fs.beegfs.rdma_dev_addr_list", LIST),
	INERT("fs.nfs.rdma_dev_addr_list", LIST),
	INERT("fs.weka.rdma_dev_addr_list", LIST),
	INERT("fs.gpfs.rdma_dev_addr_list", LIST),
	INERT("fs.lustre.mount_table", OBJECT),
	INERT("fs.beegfs.mount_table", OBJECT),
	INERT("fs.nfs.mount_table", OBJECT),
	INERT("fs.weka.mount_table", OBJECT),
	INERT("fs.gpfs.mount_table", OBJECT),
	INERT("fs.lustre.use_pci_p2pdma", BOOL),
	INERT("fs.nfs.use_pci_p2pdma", BOOL),
	INERT("fs.gpfs.use_pci_p2pdma", BOOL),
	INERT("fs.beegfs.use_pci_p2pdma", BOOL),
	INERT("fs.scatefs.use_pci_p2pdma", BOOL),
	INERT("fs.virtiofs.use_pci_p2pdma", BOOL),
	INERT("fs.gpfs.gds_write_support", BOOL),
	INERT("fs.gpfs.gds_async_support", BOOL),
	INERT("fs.weka.rdma_write_support", BOOL),

	INERT("block.nvme.use_pci_p2pdma", BOOL),
	INERT("block.nvmeof.use_pci_p2pdma", BOOL),
	INERT("block.raid.use_pci_p2pdma", BOOL),
	INERT("block.raid1.use_pci_p2pdma", BOOL),
	INERT("block.raid10.use_pci_p2pdma", BOOL),

	INERT("sparse.p2p_compat_enable", BOOL),
	INERT("sparse.min_p2pdma_threshold_kb", INT),

	NAMES("denylist.drivers", "blacklist.drivers", deny_drivers),
	NAMES("denylist.devices", "blacklist.devices", deny_devices),
	NAMES("denylist.mounts", "blacklist.mounts", deny_mounts),
	NAMES("denylist.filesystems", "blacklist.filesystems", deny_filesystems),

	IDLE("miscellaneous.api_check_aggressive", api_check_aggressive),
	IDLE("miscellaneous.skip_topology_detection", skip_topology),
	IDLE("miscellaneous.stream_memops_bypass", stream_memops_bypass),
	{ .name = "miscellaneous.enable_static_routing", .alias = "sparse.enable_static_routing",
	  .type = CONFIG_BOOL, .target = CONFIG_NOWHERE, .set = CONFIG_NOWHERE },
	{ .name = "miscellaneous.static_routing_filepath",
	  .alias = "sparse.static_routing_filepath", .type = CONFIG_TEXT,
	  .target = CONFIG_NOWHERE, .set = CONFIG_NOWHERE },
	INERT("miscellaneous.rdma_token_reset_timeout_secs", INT),

	BOOL("opengds.strict", strict),
	SIZE("opengds.staging_max_mb", staging_max_mb, 0, 1048576),
	BOOL("opengds.register_peers", register_peers),
	{ .name = "opengds.routes", .type = CONFIG_ROUTES, .target = AT(routes),
	  .set = CONFIG_NOWHERE },
};

#define KEYS (sizeof(table) / sizeof(*table))

_Static_assert(KEYS <= CONFIG_KEYS_MAX, "CONFIG_KEYS_MAX is too small");

const struct config_key *config_key_find(const char *dotted, bool *is_alias)
{
	size_t i;

	for (i = 0; i < KEYS; i++) {
		*is_alias = table[i].alias && !strcmp(table[i].alias, dotted);
		if (*is_alias || !strcmp(table[i].name, dotted))
			return &table[i];
	}
	return NULL;
}

const struct config_key *config_key_at(unsigned int i)
{
	return i < KEYS ? &table[i] : NULL;
}

unsigned int config_key_index(const struct config_key *key)
{
	return (unsigned int)(key - table);
}

static bool below(const char *name, const char *section, size_t len)
{
	return name && !strncmp(name, section, len) && name[len] == '.';
}

bool config_key_section(const char *dotted)
{
	size_t len = strlen(dotted), i;

	for (i = 0; i < KEYS; i++)
		if (below(table[i].name, dotted, len) || below(table[i].alias, dotted, len))
			return true;
	return false;
}

#define NEAR_LEN 96	/* bytes of names that are compared */
#define NEAR_MAX 2	/* edits */

/* Insertions, deletions and replaced bytes between a and b of n and m bytes, m < NEAR_LEN */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t row[NEAR_LEN + 1], i, j, diagonal, up, best;

	for (j = 0; j <= m; j++)
		row[j] = j;
	for (i = 1; i <= n; i++) {
		diagonal = row[0];
		row[0] = i;
		for (j = 1; j <= m; j++) {
			up = row[j];
			best = diagonal + (a[i - 1] != b[j - 1]);
			if (up + 1 < best)
				best = up + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			diagonal = up;
		}
	}
	return row[m];
}

/* The best so far */
struct near {
	const char *name;
	size_t len;		/* a section is the beginning of a name */
	size_t edits;		/* NEAR_MAX + 1: the same last component, elsewhere */
};

/* Where the last component of n bytes begins */
static size_t last_component(const char *name, size_t n)
{
	while (n && name[n - 1] != '.')
		n--;
	return n;
}

static void consider(struct near *best, const char *want, size_t n, const char *name, size_t m)
{
	size_t edits, at = last_component(want, n), to = last_component(name, m);

	if (m >= NEAR_LEN)
		return;
	/* as many edits as one is longer at least, which needs no table */
	edits = n > m + NEAR_MAX || m > n + NEAR_MAX ? NEAR_MAX + 1 : distance(want, n, name, m);
	/* two edits make any short word of any other */
	if (edits > NEAR_MAX || edits * 2 >= m) {
		if (n - at != m - to || memcmp(want + at, name + to, n - at))
			return;
		edits = NEAR_MAX + 1;
	}
	if (best->name && best->edits <= edits)
		return;
	*best = (struct near){ name, m, edits };
}

const char *config_key_near(const char *dotted, char *buf, size_t len)
{
	char want[NEAR_LEN];
	struct near best = { 0 };
	size_t n = 0, i, m;
	const char *name;

	/* the quotes mark a name that holds dots: it is compared as if they nested */
	for (; *dotted; dotted++) {
		if (*dotted == '"')
			continue;
		if (n == sizeof(want))
			return NULL;
		want[n++] = *dotted;
	}
	for (i = 0; i < 2 * KEYS; i++) {
		name = i < KEYS ? table[i].name : table[i - KEYS].alias;
		if (!name)
			continue;
		consider(&best, want, n, name, strlen(name));
		for (m = 0; name[m]; m++)
			if (name[m] == '.')
				consider(&best, want, n, name, m);
	}
	if (!best.name)
		return NULL;
	snprintf(buf, len, "%.*s", (int)best.len, best.name);
	return buf;
}
