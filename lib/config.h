/* SPDX-License-Identifier: MIT */
/*
 * config.h - the configuration of one open: defaults, then cufile.json, then environment.
 *
 * The file is that of CUFILE_ENV_PATH_JSON, else /etc/cufile.json, else there is none.
 * json-c reads it (comments and all); what is said about a key's line comes from our own
 * scan of the text. An unknown key and a wrong type give one WARN each with file and line,
 * and the default stays; a file that is no JSON gives one ERROR with file and line, and
 * all defaults stay.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

#define CONFIG_PATH 1024
#define CONFIG_SLABS 8
#define CONFIG_DENY 16
#define CONFIG_KB_MAX 18014398509481980 /* the largest multiple of 4 whose bytes fit 64 bits */

struct config {
	/* logging */
	char log_path[CONFIG_PATH];	/* CUFILE_LOGFILE_PATH; "": unset */
	char log_dir[CONFIG_PATH];	/* "": the working directory */
	enum log_level log_level;
	int log_max_mb;

	/* properties; sizes in KB. The *_set flags: configured, so a hard cap. */
	bool allow_compat;
	bool force_compat;
	bool allow_system_memory;
	bool force_odirect;
	bool use_poll_mode;
	size_t poll_max_kb;
	size_t max_direct_io_kb;
	bool max_direct_io_set;
	size_t max_cache_kb;
	bool max_cache_set;
	size_t per_buffer_cache_kb;
	size_t max_pinned_kb;
	bool max_pinned_set;
	size_t io_batchsize;
	size_t batch_timeout_ms;
	bool posix_unaligned_writes;

	/* properties.gpu_bounce_buffer_slab_config; nslabs 0: unset */
	unsigned int nslabs;
	size_t slab_kb[CONFIG_SLABS], slab_count[CONFIG_SLABS];
	/* properties.posix_pool_slab_*; posix_slabs_set: configured, so a cap */
	bool posix_slabs_set;
	unsigned int nposix_slabs;
	size_t posix_slab_kb[CONFIG_SLABS], posix_slab_count[CONFIG_SLABS];

	/* Kept for who asks for them, without effect in this version. */
	bool nvtx;
	bool use_pci_p2pdma;
	bool prefer_iouring, prefer_iouring_set;	/* false and set: never */
	bool api_check_aggressive;
	bool skip_topology;
	bool stream_memops_bypass;

	/* profile */
	size_t stats_level;		/* 0: no statistics */

	/* denylist.drivers, devices, mounts, filesystems: lists of text, "" ends each */
	char deny_filesystems[CONFIG_DENY][64];
	char deny_devices[CONFIG_DENY][64];
	char deny_mounts[CONFIG_DENY][CONFIG_PATH];
	char deny_drivers[CONFIG_DENY][64];

	/* execution */
	bool parallel_io;
	size_t max_io_threads;
	bool max_io_threads_set;
	size_t max_io_queue_depth;
	size_t min_io_threshold_kb;
	size_t max_request_parallelism;

	/* "opengds" */
	bool strict;
	size_t staging_max_mb;		/* per GPU */
	bool register_peers;		/* list memory for nvidia-fs where pins are refused */
	uint32_t routes;		/* allowed ones, bit n: enum ogds_route n */

	char path[CONFIG_PATH];		/* of the file that was read; "": none */
};

/* All defaults of cufile-api.md 8.1 and 9.2. */
void config_defaults(struct config *c);

/*
 * Fills *c: defaults, file, environment (secure_getenv). Never fails. What there is to
 * say goes to `say` (level, text without newline), which may be NULL: the log may not be
 * open yet, so the caller keeps or writes it.
 */
typedef void config_say_fn(void *arg, enum log_level level, const char *text);
void config_load(struct config *c, config_say_fn *say, void *arg);

/*
 * Defaults, then a text; `path` is what messages call it, and c->path. For config_load and
 * tests.
 */
void config_parse(struct config *c, const char *path, const char *text, size_t len,
		  config_say_fn *say, void *arg);

/* true/false, 1/0, yes/no, on/off, any case: 0; else -EINVAL */
int config_bool(const char *text, bool *out);

/* "ERROR", any case: 0; else -EINVAL */
int config_level(const char *text, enum log_level *out);

/*
 * What is wrong with slabs of these sizes, n of them; NULL: nothing. Sizes are multiples of 4
 * and ascend, and all of it fits the largest number of KB.
 */
const char *config_slabs_wrong(const size_t *kb, const size_t *count, size_t n);

/* All of them together, KB. */
static inline size_t config_slabs_kb(const size_t *kb, const size_t *count, size_t n)
{
	size_t all = 0;

	while (n--)
		all += kb[n] * count[n];
	return all;
}

#endif /* CONFIG_H */
