// SPDX-License-Identifier: MIT
/*
 * t_config.c - the values of the configuration and what is said about wrong ones. Fails when
 * a value goes elsewhere than its key says, a wrong one is taken, something wrong passes
 * without a message, or a message names another line.
 */
#include "t_config.h"

/* ---- values ---- */

/* So many lines, and each says no more than that a key has no effect in this version. */
static void assert_only_idle(unsigned int n)
{
	unsigned int i;

	assert_int_equal(nsaid, n);
	for (i = 0; i < nsaid; i++) {
		assert_int_equal(said[i].level, LOG_INFO);
		assert_non_null(strstr(said[i].text, "has no effect in this version"));
	}
}

static void t_defaults(void **state)
{
	struct config c;

	memset(&c, 0x5a, sizeof(c));
	config_defaults(&c);
	assert_string_equal(c.log_path, "");
	assert_string_equal(c.log_dir, "");
	assert_int_equal(c.log_level, LOG_ERROR);
	assert_int_equal(c.log_max_mb, 32);
	assert_true(c.allow_compat);
	assert_false(c.force_compat);
	assert_true(c.allow_system_memory);
	assert_false(c.force_odirect);
	assert_false(c.use_poll_mode);
	assert_int_equal(c.poll_max_kb, 4);
	assert_int_equal(c.max_direct_io_kb, 16384);
	assert_int_equal(c.max_cache_kb, 131072);
	assert_int_equal(c.per_buffer_cache_kb, 1024);
	assert_int_equal(c.max_pinned_kb, 33554432);
	assert_false(c.max_direct_io_set || c.max_cache_set || c.max_pinned_set);
	assert_int_equal(c.io_batchsize, 128);
	assert_int_equal(c.batch_timeout_ms, 5);
	assert_false(c.posix_unaligned_writes);
	assert_int_equal(c.nslabs, 0);
	assert_true(c.parallel_io);
	assert_int_equal(c.max_io_threads, 4);
	assert_int_equal(c.max_io_queue_depth, 128);
	assert_int_equal(c.min_io_threshold_kb, 8192);
	assert_int_equal(c.max_request_parallelism, 4);
	assert_false(c.strict);
	assert_int_equal(c.staging_max_mb, 256);
	assert_true(c.register_peers);
	assert_int_equal(c.routes, 0x3f);
	assert_string_equal(c.path, "");
	assert_string_equal(c.deny_mounts[0], "");
}

static void t_all_that_counts(void **state)
{
	struct config c = parse(
		"// comments of both kinds\n"
		"{ \"logging\": { \"dir\": \"/var/log\", \"level\": \"trace\", \"max_file_size_mb\": 8 },\n"
		"  /* and\n"
		"     long ones */\n"
		"  \"execution\": { \"max_io_queue_depth\": 64, \"max_io_threads\": 0,\n"
		"    \"parallel_io\": false, \"min_io_threshold_size_kb\": 4294967295,\n"
		"    \"max_request_parallelism\": 8 },\n"
		"  \"properties\": { \"max_direct_io_size_kb\": 128, \"max_device_cache_size_kb\": 4096,\n"
		"    \"per_buffer_cache_size_kb\": 64, \"max_device_pinned_mem_size_kb\": 65536,\n"
		"    \"use_poll_mode\": true, \"poll_mode_max_size_kb\": 8, \"allow_compat_mode\": false,\n"
		"    \"force_compat_mode\": true, \"io_batchsize\": 16384,\n"
		"    \"max_batch_io_timeout_msecs\": 1000, \"force_odirect_mode\": true,\n"
		"    \"allow_system_memory\": false,\n"
		"    \"gpu_bounce_buffer_slab_config\": { \"slab_size_kb\": [1024, 8192],\n"
		"      \"slab_count\": [128, 8] },\n"
		"    \"posix_pool_slab_size_kb\": [4, 64], \"posix_pool_slab_count\": [2, 3] },\n"
		"  \"fs\": { \"generic\": { \"posix_unaligned_writes\": true } },\n"
		"  \"denylist\": { \"drivers\": [\"dr\"], \"devices\": [\"/dev/a\", \"/dev/b\"],\n"
		"    \"mounts\": [\"/m\"], \"filesystems\": [\"xfs\"] },\n"
		"  \"opengds\": { \"strict\": true, \"staging_max_mb\": 64,\n"
		"    \"register_peers\": false,\n"
		"    \"routes\": [\"nvfs\", \"bounce\", \"host\"] }\n"
		"}\n");

	/* the two of requests, the threshold, one buffer, polling, unaligned writes */
	assert_only_idle(6);
	assert_string_equal(c.path, "f.json");
	assert_string_equal(c.log_dir, "/var/log");
	assert_int_equal(c.log_level, LOG_TRACE);
	assert_int_equal(c.log_max_mb, 8);
	assert_int_equal(c.max_io_queue_depth, 64);
	assert_int_equal(c.max_io_threads, 0);
	assert_false(c.parallel_io);
	assert_int_equal(c.min_io_threshold_kb, 4294967295);
	assert_int_equal(c.max_request_parallelism, 8);
	assert_int_equal(c.max_direct_io_kb, 128);
	assert_true(c.max_direct_io_set);
	assert_int_equal(c.max_cache_kb, 4096);
	assert_true(c.max_cache_set);
	assert_int_equal(c.per_buffer_cache_kb, 64);
	assert_int_equal(c.max_pinned_kb, 65536);
	assert_true(c.max_pinned_set);
	assert_true(c.use_poll_mode);
	assert_int_equal(c.poll_max_kb, 8);
	assert_false(c.allow_compat);
	assert_true(c.force_compat);
	assert_int_equal(c.io_batchsize, 16384);
	assert_int_equal(c.batch_timeout_ms, 1000);
	assert_true(c.force_odirect);
	assert_false(c.allow_system_memory);
	assert_int_equal(c.nslabs, 2);
	assert_int_equal(c.slab_kb[0], 1024);
	assert_int_equal(c.slab_kb[1], 8192);
	assert_int_equal(c.slab_count[0], 128);
	assert_int_equal(c.slab_count[1], 8);
	assert_true(c.posix_slabs_set);
	assert_int_equal(c.nposix_slabs, 2);
	assert_int_equal(c.posix_slab_kb[0], 4);
	assert_int_equal(c.posix_slab_kb[1], 64);
	assert_int_equal(c.posix_slab_count[0], 2);
	assert_int_equal(c.posix_slab_count[1], 3);
	assert_true(c.posix_unaligned_writes);
	assert_string_equal(c.deny_drivers[0], "dr");
	assert_string_equal(c.deny_devices[0], "/dev/a");
	assert_string_equal(c.deny_devices[1], "/dev/b");
	assert_string_equal(c.deny_devices[2], "");
	assert_string_equal(c.deny_mounts[0], "/m");
	assert_string_equal(c.deny_filesystems[0], "xfs");
	assert_true(c.strict);
	assert_false(c.register_peers);
	assert_int_equal(c.staging_max_mb, 64);
	assert_int_equal(c.routes, 1u << OGDS_ROUTE_NVFS | 1u << OGDS_ROUTE_BOUNCE |
				   1u << OGDS_ROUTE_HOST);
}

/* The caps are told apart from their defaults even when the value is the same. */
static void t_partial(void **state)
{
	struct config c = parse("{\"properties\": {\"max_direct_io_size_kb\": 16384}}");

	assert_int_equal(nsaid, 0);
	assert_true(c.max_direct_io_set);
	assert_false(c.max_cache_set);
	assert_false(c.max_pinned_set);
	c.max_direct_io_set = false;
	assert_defaults(&c);
	c = parse("{}");
	assert_int_equal(nsaid, 0);
	assert_defaults(&c);
}

static void t_alias(void **state)
{
	struct config c = parse("{\"properties\": {\"use_compat_mode\": false},\n"
				" \"profile\": {\"io_batchsize\": 7},\n"
				" \"blacklist\": {\"mounts\": [\"/m\"]}}");

	assert_int_equal(nsaid, 0);
	assert_false(c.allow_compat);
	assert_int_equal(c.io_batchsize, 7);
	assert_string_equal(c.deny_mounts[0], "/m");
}

static void t_alias_and_name(void **state)
{
	struct config c;

	c = parse("{\"profile\": {\"io_batchsize\": 7},\n\"properties\": {\"io_batchsize\": 9}}");
	assert_int_equal(c.io_batchsize, 9);
	assert_int_equal(nsaid, 0);
	c = parse("{\"properties\": {\"io_batchsize\": 9},\n\"profile\": {\"io_batchsize\": 7}}");
	assert_int_equal(c.io_batchsize, 9);
	one(LOG_INFO, "f.json:2: profile.io_batchsize is ignored: properties.io_batchsize is set");
}

/* ---- what is wrong ---- */

static void t_unknown(void **state)
{
	struct config c = parse("{\n  \"weather\": {\n    \"rain\": true\n  }\n}\n");

	one(LOG_WARN, "f.json:2: unknown key weather is ignored; remove it or correct its name");
	assert_defaults(&c);
}

static void t_block_under_fs(void **state)
{
	parse("{\n\"fs\": {\n\"generic\": {},\n\n\"block\": {\"nvme\": {\"use_pci_p2pdma\": true}}}}");
	one(LOG_WARN, "f.json:5: unknown key fs.block is ignored; did you mean block, an object");
}

static void t_did_you_mean(void **state)
{
	static const char *const row[][2] = {
		{ "{\"properties\": {\n\"alow_compat_mode\": false}}",
		  "f.json:2: unknown key properties.alow_compat_mode is ignored; did you mean properties.allow_compat_mode" },
		{ "{\"propertis\": {\"allow_compat_mode\": false}}",
		  "f.json:1: unknown key propertis is ignored; did you mean properties, an object" },
		/* in the wrong place */
		{ "{\n\n\"allow_compat_mode\": false}",
		  "f.json:3: unknown key allow_compat_mode is ignored; did you mean properties.allow_compat_mode" },
		{ "{\"properties\": {\"max_io_threads\": 3}}",
		  "f.json:1: unknown key properties.max_io_threads is ignored; did you mean execution.max_io_threads" },
		{ "{\"nvme\": {\"use_pci_p2pdma\": true}}",
		  "f.json:1: unknown key nvme is ignored; did you mean block.nvme" },
		/* the nearest of two */
		{ "{\"fs\": {\"gps\": {}}}",
		  "f.json:1: unknown key fs.gps is ignored; did you mean fs.gpfs" },
		/* of an alias */
		{ "{\"properties\": {\"use_compat_mod\": false}}",
		  "f.json:1: unknown key properties.use_compat_mod is ignored; did you mean properties.use_compat_mode" },
		/* the dot is part of the name */
		{ "{\"properties.allow_compat_mode\": false}",
		  "f.json:1: unknown key \"properties.allow_compat_mode\" is ignored; did you mean properties.allow_compat_mode? A dot" },
		{ "{\"\": false}", "f.json:1: unknown key \"\" is ignored; remove" },
		{ "{\"f\": {}}", "f.json:1: unknown key f is ignored; remove" },
		{ "{\"properties\": {\"allow\": false}}",
		  "f.json:1: unknown key properties.allow is ignored; remove" },
	};
	struct config c;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		c = parse(row[i][0]);
		one(LOG_WARN, row[i][1]);
		assert_defaults(&c);
	}
}

/* A key that has its name from an escape is the same key. */
static void t_escaped_key(void **state)
{
	struct config c;

	c = parse("{\"opengds\": {\"str\\u0069ct\": true}}");
	assert_int_equal(nsaid, 0);
	assert_true(c.strict);
	parse("{\"opengds\": {\n\"str\\u0069ct\": 5}}");
	one(LOG_WARN, "f.json:2: opengds.strict is ignored");
}

static void t_wrong_type(void **state)
{
	static const char *const row[][2] = {
		{ "{\"properties\": {\n\"allow_compat_mode\": \"false\"}}",
		  "f.json:2: properties.allow_compat_mode is ignored: it is a text in quotes and must be true or false" },
		{ "{\"properties\": {\"force_compat_mode\": 1}}",
		  "f.json:1: properties.force_compat_mode is ignored: it is an integer" },
		{ "{\"properties\": {\"io_batchsize\": \"9\"}}",
		  "f.json:1: properties.io_batchsize is ignored: it is a text in quotes and must be an integer" },
		{ "{\"properties\": {\"io_batchsize\": 9.5}}",
		  "f.json:1: properties.io_batchsize is ignored: it is a number with a fraction" },
		{ "{\"properties\": {\"io_batchsize\": null}}",
		  "f.json:1: properties.io_batchsize is ignored: it is null" },
		{ "{\"properties\": 9}",
		  "f.json:1: properties is ignored: it is an integer and must be an object" },
		{ "{\"logging\": {\"dir\": 9}}",
		  "f.json:1: logging.dir is ignored: it is an integer and must be a text" },
		{ "{\"logging\": {\"dir\": \"a\\u0000b\"}}",
		  "f.json:1: logging.dir is ignored: it holds a zero byte" },
		{ "{\"logging\": {\"level\": \"LOUD\"}}",
		  "f.json:1: logging.level is ignored: it must be one of NOTICE, ERROR" },
		{ "{\"logging\": {\"level\": 3}}", "f.json:1: logging.level is ignored" },
		{ "{\"denylist\": {\"mounts\": \"/m\"}}",
		  "f.json:1: denylist.mounts is ignored: it is a text in quotes and must be a list" },
		{ "{\"opengds\": {\"routes\": \"nvfs\"}}",
		  "f.json:1: opengds.routes is ignored: it is a text in quotes" },
		/* of a key without effect */
		{ "{\"properties\": {\"use_pci_p2pdma\": 1}}",
		  "f.json:1: properties.use_pci_p2pdma is ignored: it is an integer" },
	};
	struct config c;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		c = parse(row[i][0]);
		one(LOG_WARN, row[i][1]);
		assert_defaults(&c);
	}
}

/* Both ends of each range, and what is beside them */
static void t_ranges(void **state)
{
	static const struct {
		const char *section, *key;
		const char *good[4], *bad[5];
	} row[] = {
		{ "logging", "max_file_size_mb", { "-1", "1", "4096" }, { "-2", "0", "4097" } },
		{ "execution", "max_io_queue_depth", { "1", "256" }, { "0", "257" } },
		{ "execution", "max_io_threads", { "0", "32" }, { "-1", "33" } },
		{ "execution", "min_io_threshold_size_kb", { "4", "4294967295" },
		  { "3", "4294967296" } },
		{ "execution", "max_request_parallelism", { "0", "8" }, { "-1", "9" } },
		{ "properties", "max_direct_io_size_kb", { "64", "16384" },
		  { "0", "63", "65", "16448" } },
		{ "properties", "max_device_cache_size_kb", { "0", "18014398509481980" },
		  { "-1", "18014398509481981", "99999999999999999999" } },
		{ "properties", "per_buffer_cache_size_kb", { "64", "16384" },
		  { "32", "100", "16448" } },
		{ "properties", "max_device_pinned_mem_size_kb", { "64", "18014398509481980" },
		  { "63", "-1" } },
		{ "properties", "poll_mode_max_size_kb", { "4", "18014398509481980" },
		  { "0", "3", "6" } },
		{ "properties", "io_batchsize", { "1", "16384" }, { "0", "16385", "-1" } },
		{ "properties", "max_batch_io_timeout_msecs", { "1", "1000" }, { "0", "1001" } },
		{ "opengds", "staging_max_mb", { "0", "1048576" }, { "-1", "1048577" } },
	};
	char text[256], want[256];
	struct config c;
	unsigned int i, j;

	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		for (j = 0; row[i].good[j]; j++) {
			snprintf(text, sizeof(text), "{\"%s\": {\"%s\": %s}}", row[i].section,
				 row[i].key, row[i].good[j]);
			parse(text);
			assert_only_idle(nsaid < 2 ? nsaid : 1);
		}
		for (j = 0; row[i].bad[j]; j++) {
			snprintf(text, sizeof(text), "{\"%s\":\n{\"%s\": %s}}", row[i].section,
				 row[i].key, row[i].bad[j]);
			snprintf(want, sizeof(want), "f.json:2: %s.%s is ignored: ",
				 row[i].section, row[i].key);
			c = parse(text);
			one(LOG_WARN, want);
			assert_non_null(strstr(said[0].text, "is out of range; set it to "));
			assert_defaults(&c);
		}
	}
}

static void t_long_dir(void **state)
{
	char text[CONFIG_PATH + 100], name[CONFIG_PATH + 1], want[128];
	struct config c;

	memset(name, 'd', CONFIG_PATH);
	name[CONFIG_PATH - 1] = '\0';
	snprintf(text, sizeof(text), "{\"logging\": {\"dir\": \"%s\"}}", name);
	c = parse(text);
	assert_int_equal(nsaid, 0);
	assert_string_equal(c.log_dir, name);
	name[CONFIG_PATH - 1] = 'd';
	name[CONFIG_PATH] = '\0';
	snprintf(text, sizeof(text), "{\"logging\": {\"dir\": \"%s\"}}", name);
	c = parse(text);
	snprintf(want, sizeof(want), "f.json:1: logging.dir is ignored: it is longer than %d bytes",
		 CONFIG_PATH - 1);
	one(LOG_WARN, want);
	assert_string_equal(c.log_dir, "");
}

/* A bad member does not take the good ones with it. */
static void t_denylist(void **state)
{
	char text[600] = "{\"denylist\": {\n\"devices\": [";
	struct config c;
	unsigned int i;
	size_t n;

	c = parse("{\"denylist\": {\n\"filesystems\": [\"xfs\", 5, \"\", \"ext4\"]}}");
	assert_int_equal(nsaid, 2);
	assert_int_equal(strncmp(said[0].text, "f.json:2: denylist.filesystems[1] is ignored", 44), 0);
	assert_int_equal(strncmp(said[1].text, "f.json:2: denylist.filesystems[2] is ignored", 44), 0);
	assert_string_equal(c.deny_filesystems[0], "xfs");
	assert_string_equal(c.deny_filesystems[1], "ext4");
	assert_string_equal(c.deny_filesystems[2], "");

	for (i = 0; i < 18; i++) {
		n = strlen(text);
		snprintf(text + n, sizeof(text) - n, "%s\"d%u\"", i ? ", " : "", i);
	}
	n = strlen(text);
	snprintf(text + n, sizeof(text) - n, "]}}");
	c = parse(text);
	one(LOG_WARN, "f.json:2: denylist.devices[15] and what follows is ignored");
	assert_string_equal(c.deny_devices[14], "d14");
	assert_string_equal(c.deny_devices[15], "");
}

static void t_routes(void **state)
{
	struct config c;

	c = parse("{\"opengds\": {\"routes\": [\"staged\", \"bar\", \"p2pdma\"]}}");
	assert_int_equal(nsaid, 0);
	assert_int_equal(c.routes, 1u << OGDS_ROUTE_STAGED | 1u << OGDS_ROUTE_BAR |
				   1u << OGDS_ROUTE_P2PDMA);
	c = parse("{\"opengds\": {\n\"routes\": [\"nvfs\", \"hots\"]}}");
	one(LOG_WARN, "f.json:2: opengds.routes[1] is ignored: it must be one of nvfs, p2pdma");
	assert_int_equal(c.routes, 1u << OGDS_ROUTE_NVFS);
	c = parse("{\"opengds\": {\"routes\": []}}");
	one(LOG_WARN, "f.json:1: opengds.routes is ignored: it names no route");
	assert_defaults(&c);
}

/* The lists of a GPU row as those of the host: told about with `why`, and not taken. */
static void posix_slabs(const char *lists, const char *why)
{
	char text[400] = "{\"properties\":\n{", *to = text + strlen(text);
	struct config c, usual;
	const char *from;

	for (from = lists; *from; from++) {
		if (!strncmp(from, "\"slab", 5)) {
			memcpy(to, "\"posix_pool_", 12);
			to += 12;
		} else {
			*to++ = *from;
		}
	}
	strcpy(to, "}}");
	c = parse(text);
	one(LOG_WARN, "f.json:2: properties.posix_pool_slab_");
	if (!strstr(said[0].text, why))
		assert_string_equal(said[0].text, why);
	assert_defaults(&c);
	config_defaults(&usual);
	assert_false(c.posix_slabs_set);
	assert_int_equal(c.nposix_slabs, 3);
	assert_memory_equal(c.posix_slab_kb, usual.posix_slab_kb, sizeof(c.posix_slab_kb));
	assert_memory_equal(c.posix_slab_count, usual.posix_slab_count,
			    sizeof(c.posix_slab_count));
}

static void t_slabs(void **state)
{
	static const char *const row[][2] = {
		{ "\"slab_size_kb\": [4, 8]", "both slab_size_kb and slab_count must be given" },
		{ "\"slab_count\": [4, 8]", "both slab_size_kb and slab_count must be given" },
		{ "\"slab_size_kb\": [4, 8], \"slab_count\": [1]", "must be of equal length" },
		{ "\"slab_size_kb\": [8, 4], \"slab_count\": [1, 1]", "must ascend" },
		{ "\"slab_size_kb\": [8, 8], \"slab_count\": [1, 1]", "must ascend" },
		{ "\"slab_size_kb\": [4, 6], \"slab_count\": [1, 1]",
		  "slab_size_kb[1] is ignored: 6 is out of range; set it to 4..18014398509481980, a multiple of 4" },
		{ "\"slab_size_kb\": [4], \"slab_count\": [0]", "slab_count[0] is ignored: 0" },
		{ "\"slab_size_kb\": [4], \"slab_count\": [true]",
		  "slab_count[0] is ignored: it is a boolean" },
		{ "\"slab_size_kb\": [], \"slab_count\": [1]", "it has 0 members, 1..8 are allowed" },
		{ "\"slab_size_kb\": [4], \"slab_count\": [1,2,3,4,5,6,7,8,9]", "it has 9 members" },
		{ "\"slab_size_kb\": 4, \"slab_count\": [1]", "it is an integer and must be a list" },
	};
	char text[300];
	struct config c;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		snprintf(text, sizeof(text),
			 "{\"properties\":\n{\"gpu_bounce_buffer_slab_config\":\n{%s}}}", row[i][0]);
		c = parse(text);
		one(LOG_WARN, "f.json:3: properties.gpu_bounce_buffer_slab_config");
		if (!strstr(said[0].text, row[i][1]))
			assert_string_equal(said[0].text, row[i][1]);
		assert_defaults(&c);
		assert_int_equal(c.slab_kb[0], 0);
		assert_int_equal(c.slab_count[0], 0);
		/* the same of the host's, where the defaults come back */
		posix_slabs(row[i][0], row[i][1]);
	}
}

static void t_twice(void **state)
{
	struct config c;

	c = parse("{\"properties\": {\n\"io_batchsize\": 7,\n\n\"io_batchsize\": 8}}");
	one(LOG_WARN, "f.json:4: properties.io_batchsize is set again, first in line 2: the last one counts");
	assert_int_equal(c.io_batchsize, 8);

	/* a whole section: what only the first one had is gone */
	c = parse("{\"properties\": {\"io_batchsize\": 7},\n\"properties\":\n{\"force_compat_mode\": true}}");
	one(LOG_WARN, "f.json:2: properties is set again, first in line 1");
	assert_int_equal(c.io_batchsize, 128);
	assert_true(c.force_compat);

	/* the value that counts is told with its own line */
	c = parse("{\"opengds\": {\n\"strict\": true,\n\"strict\": 1}}");
	assert_int_equal(nsaid, 2);
	assert_int_equal(strncmp(said[1].text, "f.json:3: opengds.strict is ignored", 35), 0);

	/* in an object of a list */
	parse("{\"fs\": {\"nfs\": {\"mount_table\": {\"/a\": [{\"x\": 1},\n{\"x\": 1,\n\"x\": 2}]}}}}");
	assert_int_equal(nsaid, 2);
	assert_string_equal(said[0].text, "f.json:3: fs.nfs.mount_table./a.x is set again, first in line 2: the last one counts");

	/* equal names in two objects are two keys, of a list as well */
	parse("{\"block\": {\"nvme\": {\"use_pci_p2pdma\": true}, \"nvmeof\": {\"use_pci_p2pdma\": true}},"
	      "\"fs\": {\"nfs\": {\"mount_table\": {\"/a\": {\"l\": [{\"x\": 1}, {\"x\": 2}]}}}}}");
	assert_int_equal(nsaid, 3);
	assert_int_equal(said[0].level, LOG_INFO);
	assert_int_equal(said[1].level, LOG_INFO);
	assert_int_equal(said[2].level, LOG_INFO);
}

/* Every key that is known and does nothing, by its kind of value */
static void t_inert(void **state)
{
	static const char *const row[][2] = {
		{ "true", "profile.nvtx properties.use_pci_p2pdma properties.gds_rdma_write_support "
			  "properties.vanilla_posix_io_mode "
			  "properties.gds_fallback_io properties.compat_odirect_unaligned_read_split "
			  "properties.allow_rdma_token_reset properties.rdma_dynamic_routing "
			  "properties.rdma_multipath_enabled properties.rdma_failback_enabled "
			  "properties.rdma_async_event_monitoring "
			  "fs.lustre.use_pci_p2pdma fs.nfs.use_pci_p2pdma fs.gpfs.use_pci_p2pdma "
			  "fs.beegfs.use_pci_p2pdma fs.scatefs.use_pci_p2pdma "
			  "fs.virtiofs.use_pci_p2pdma fs.gpfs.gds_write_support "
			  "fs.gpfs.gds_async_support fs.weka.rdma_write_support "
			  "block.nvme.use_pci_p2pdma block.nvmeof.use_pci_p2pdma "
			  "block.raid.use_pci_p2pdma block.raid1.use_pci_p2pdma "
			  "block.raid10.use_pci_p2pdma sparse.p2p_compat_enable "
			  "miscellaneous.api_check_aggressive miscellaneous.skip_topology_detection "
			  "miscellaneous.stream_memops_bypass miscellaneous.enable_static_routing "
			  "sparse.enable_static_routing" },
		{ "1", "properties.rdma_topN_ranks "
		       "properties.compat_odirect_unaligned_read_split_min_size_kb "
		       "properties.rdma_max_backup_devices properties.rdma_io_retry_count "
		       "properties.rdma_io_retry_delay_ms properties.rdma_failback_delay_ms "
		       "properties.rdma_health_check_interval_ms properties.rdma_unhealthy_threshold "
		       "fs.lustre.posix_gds_min_kb fs.beegfs.posix_gds_min_kb "
		       "fs.scatefs.posix_gds_min_kb sparse.min_p2pdma_threshold_kb "
		       "miscellaneous.rdma_token_reset_timeout_secs" },
		{ "\"x\"", "properties.io_priority properties.rdma_load_balancing_policy "
			   "properties.rdma_peer_affinity_policy properties.rdma_peer_type "
			   "properties.rdma_transport_type properties.rdma_dc_key "
			   "properties.rdma_access_mask miscellaneous.static_routing_filepath "
			   "sparse.static_routing_filepath" },
		{ "[4]", "properties.rdma_dev_addr_list properties.rdma_dynamic_routing_order "
			 "fs.lustre.rdma_dev_addr_list fs.beegfs.rdma_dev_addr_list "
			 "fs.nfs.rdma_dev_addr_list fs.weka.rdma_dev_addr_list "
			 "fs.gpfs.rdma_dev_addr_list" },
		{ "{\"/mnt\": {\"a\": 1}}", "fs.lustre.mount_table fs.beegfs.mount_table "
					"fs.nfs.mount_table fs.weka.mount_table fs.gpfs.mount_table" },
	};
	char names[2048], text[512], want[256], *name, *part, *rest, *save;
	unsigned int i, depth;
	struct config c;
	size_t n;

	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		snprintf(names, sizeof(names), "%s", row[i][1]);
		for (name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
			snprintf(want, sizeof(want), "f.json:2: %s has no effect in this version",
				 name);
			n = (size_t)snprintf(text, sizeof(text), "\n");
			for (depth = 0, part = name; part; part = rest, depth++) {
				rest = strchr(part, '.');
				if (rest)
					*rest++ = '\0';
				n += (size_t)snprintf(text + n, sizeof(text) - n, "{\"%s\": ", part);
			}
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", row[i][0]);
			while (depth--)
				n += (size_t)snprintf(text + n, sizeof(text) - n, "}");
			c = parse(text);
			one(LOG_INFO, want);
			assert_defaults(&c);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(t_defaults), T(t_all_that_counts), T(t_partial), T(t_alias),
		T(t_alias_and_name), T(t_unknown), T(t_block_under_fs), T(t_did_you_mean),
		T(t_escaped_key), T(t_wrong_type), T(t_ranges), T(t_long_dir), T(t_denylist),
		T(t_routes), T(t_slabs), T(t_twice), T(t_inert),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
