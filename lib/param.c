// SPDX-License-Identifier: MIT
/* param.c - cuFileSetParameter*, cuFileGetParameter*: settings by calls. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "cufio-param"
#include "config_keys.h"
#include "cufile.h"
#include "driver.h"
#include "errmap.h"
#include "log.h"
#include "param.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SLABS_MAX 64	/* sizes that can be staged; an open takes fewer */

/* The key of cufile.json that each stands in for; range, default and target are the key's. */
static const char *const size_key[] = {
	[CUFILE_PARAM_PROFILE_STATS] = "profile.cufile_stats",
	[CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH] = "execution.max_io_queue_depth",
	[CUFILE_PARAM_EXECUTION_MAX_IO_THREADS] = "execution.max_io_threads",
	[CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB] = "execution.min_io_threshold_size_kb",
	[CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM] = "execution.max_request_parallelism",
	[CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB] = "properties.max_direct_io_size_kb",
	[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB] = "properties.max_device_cache_size_kb",
	[CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB] = "properties.per_buffer_cache_size_kb",
	[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] =
		"properties.max_device_pinned_mem_size_kb",
	[CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE] = "properties.io_batchsize",
	[CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB] = "properties.poll_mode_max_size_kb",
	[CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS] = "properties.max_batch_io_timeout_msecs",
};

static const char *const bool_key[] = {
	[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE] = "properties.use_poll_mode",
	[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE] = "properties.allow_compat_mode",
	[CUFILE_PARAM_FORCE_COMPAT_MODE] = "properties.force_compat_mode",
	[CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE] = "miscellaneous.api_check_aggressive",
	[CUFILE_PARAM_EXECUTION_PARALLEL_IO] = "execution.parallel_io",
	[CUFILE_PARAM_PROFILE_NVTX] = "profile.nvtx",
	[CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY] = "properties.allow_system_memory",
	[CUFILE_PARAM_USE_PCIP2PDMA] = "properties.use_pci_p2pdma",
	[CUFILE_PARAM_PREFER_IO_URING] = "properties.prefer_iouring",
	[CUFILE_PARAM_FORCE_ODIRECT_MODE] = "properties.force_odirect_mode",
	[CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION] = "miscellaneous.skip_topology_detection",
	[CUFILE_PARAM_STREAM_MEMOPS_BYPASS] = "miscellaneous.stream_memops_bypass",
};

#define TEXTS 3

struct slabs {
	size_t n;	/* 0: not set */
	size_t kb[SLABS_MAX], count[SLABS_MAX];
};

/* Guarded by driver_hold: all of it. `defaults` is filled when it is asked for. */
static struct {
	bool size_set[COUNT(size_key)], bool_set[COUNT(bool_key)];
	size_t size[COUNT(size_key)];
	bool flag[COUNT(bool_key)];
	char text[TEXTS][CONFIG_PATH];	/* "": not set */
	struct slabs posix, gpu;
} staged;
static char level_as_set[CONFIG_PATH];	/* of the open library; "": not by a call */
static struct config defaults;

static const struct config_key *key_of(const char *name)
{
	bool alias;

	return config_key_find(name, &alias);
}

static void *member(struct config *c, size_t offset)
{
	return (char *)c + offset;
}

static const void *look(const struct config *c, size_t offset)
{
	return (const char *)c + offset;
}

/* Held. What a parameter that is not staged is: of the open library, else the default. */
static const struct config *unstaged(bool open)
{
	if (open)
		return driver_config();
	config_defaults(&defaults);
	return &defaults;
}

/* -- an open takes them -- */

struct out {
	config_say_fn *say;
	void *arg;
};

__attribute__((format(printf, 3, 4)))
static void tell(const struct out *o, enum log_level level, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!o->say)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o->say(o->arg, level, text);
}

static void apply_size(struct config *c, const char *name, size_t value, const struct out *o)
{
	const struct config_key *k = key_of(name);
	char multiple[48] = "";

	if (value < (size_t)k->min || value > (size_t)k->max ||
	    (k->multiple && value % k->multiple)) {
		if (k->multiple)
			snprintf(multiple, sizeof(multiple), ", a multiple of %u", k->multiple);
		tell(o, LOG_WARN,
		     "cuFileSetParameterSizeT: %s is ignored: %zu is out of range; set it to %lld..%lld%s",
		     name, value, (long long)k->min, (long long)k->max, multiple);
		return;
	}
	*(size_t *)member(c, k->target) = value;
	if (k->set != CONFIG_NOWHERE)
		*(bool *)member(c, k->set) = true;
}

static void apply_bool(struct config *c, const char *name, bool value, const struct out *o)
{
	const struct config_key *k = key_of(name);

	*(bool *)member(c, k->target) = value;
	if (k->set != CONFIG_NOWHERE)
		*(bool *)member(c, k->set) = true;
	if (k->no_effect)
		tell(o, LOG_INFO, "cuFileSetParameterBool: %s has no effect in this version", name);
}

static void apply_texts(struct config *c)
{
	if (staged.text[CUFILE_PARAM_LOGGING_LEVEL][0])
		config_level(staged.text[CUFILE_PARAM_LOGGING_LEVEL], &c->log_level);
	if (staged.text[CUFILE_PARAM_ENV_LOGFILE_PATH][0])
		memcpy(c->log_path, staged.text[CUFILE_PARAM_ENV_LOGFILE_PATH], CONFIG_PATH);
	if (staged.text[CUFILE_PARAM_LOG_DIR][0])
		memcpy(c->log_dir, staged.text[CUFILE_PARAM_LOG_DIR], CONFIG_PATH);
}

/* True when they are in range, and taken. They cost nothing until requests need them. */
static bool apply_slabs(const struct slabs *s, const char *call, size_t *kb, size_t *count,
			unsigned int *n, const struct out *o)
{
	const char *why;

	if (!s->n)
		return false;
	why = config_slabs_wrong(s->kb, s->count, s->n);
	if (why) {
		tell(o, LOG_WARN, "%s is ignored: %s", call, why);
		return false;
	}
	memcpy(kb, s->kb, s->n * sizeof(*kb));
	memcpy(count, s->count, s->n * sizeof(*count));
	*n = s->n;
	return true;
}

void param_apply(struct config *c, config_say_fn *say, void *arg)
{
	const struct out o = { say, arg };
	size_t i;

	for (i = 0; i < COUNT(size_key); i++)
		if (staged.size_set[i])
			apply_size(c, size_key[i], staged.size[i], &o);
	for (i = 0; i < COUNT(bool_key); i++)
		if (staged.bool_set[i])
			apply_bool(c, bool_key[i], staged.flag[i], &o);
	apply_texts(c);
	apply_slabs(&staged.gpu, "cuFileSetParameterGpuBounceBufferSlabArray", c->slab_kb,
		    c->slab_count, &c->nslabs, &o);
	if (apply_slabs(&staged.posix, "cuFileSetParameterPosixPoolSlabArray", c->posix_slab_kb,
			c->posix_slab_count, &c->nposix_slabs, &o))
		c->posix_slabs_set = true;
}

void param_forget(void)
{
	memcpy(level_as_set, staged.text[CUFILE_PARAM_LOGGING_LEVEL], CONFIG_PATH);
	memset(&staged, 0, sizeof(staged));
}

/* -- numbers and switches -- */

CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value)
{
	int r;

	if ((unsigned int)param >= COUNT(size_key))
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold_closed();
	if (r)
		return errmap_status(r);
	staged.size[param] = value;
	staged.size_set[param] = true;
	driver_let_go();
	return errmap_status(0);
}

CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value)
{
	bool open;
	int r;

	if ((unsigned int)param >= COUNT(size_key) || !value)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold(&open);
	if (r)
		return errmap_status(r);
	if (!open && staged.size_set[param])
		*value = staged.size[param];
	else
		*value = driver_word(look(unstaged(open), key_of(size_key[param])->target));
	driver_let_go();
	return errmap_status(0);
}

CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
{
	int r;

	if ((unsigned int)param >= COUNT(bool_key))
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold_closed();
	if (r)
		return errmap_status(r);
	staged.flag[param] = value;
	staged.bool_set[param] = true;
	driver_let_go();
	return errmap_status(0);
}

CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value)
{
	bool open;
	int r;

	if ((unsigned int)param >= COUNT(bool_key) || !value)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold(&open);
	if (r)
		return errmap_status(r);
	if (!open && staged.bool_set[param])
		*value = staged.flag[param];
	else
		*value = driver_flag(look(unstaged(open), key_of(bool_key[param])->target));
	driver_let_go();
	return errmap_status(0);
}

/*
 * What the key allows, but for the batch size: cufile.json takes more than the interface
 * knows of, and a program that compares with its limit must not be surprised.
 */
CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param, size_t *min_value,
					    size_t *max_value)
{
	const struct config_key *k;

	if ((unsigned int)param >= COUNT(size_key) || param == CUFILE_PARAM_PROFILE_STATS ||
	    !min_value || !max_value)
		return errmap_status(ERR(INVALID_VALUE));
	k = key_of(size_key[param]);
	*min_value = k->min;
	*max_value = param == CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE ? 256 : k->max;
	return errmap_status(0);
}

/* -- texts -- */

CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param, const char *text)
{
	enum log_level level;
	int r;

	if ((unsigned int)param >= TEXTS || !text || !text[0] || strlen(text) >= CONFIG_PATH ||
	    (param == CUFILE_PARAM_LOGGING_LEVEL && config_level(text, &level)))
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold_closed();
	if (r)
		return errmap_status(r);
	snprintf(staged.text[param], CONFIG_PATH, "%s", text);
	driver_let_go();
	return errmap_status(0);
}

static const char *level_text(enum log_level level)
{
	static const char *const name[] = {
		[LOG_NOTICE] = "NOTICE", [LOG_ERROR] = "ERROR", [LOG_WARN] = "WARN",
		[LOG_INFO] = "INFO", [LOG_DEBUG] = "DEBUG", [LOG_TRACE] = "TRACE",
	};

	return level > LOG_OFF && level <= LOG_TRACE ? name[level] : "";
}

/* Held. NULL: there is none. */
static const char *text_of(CUFileStringConfigParameter_t param, bool open)
{
	const struct config *c = unstaged(open);
	const char *env;

	if (!open && staged.text[param][0])
		return staged.text[param];
	switch (param) {
	case CUFILE_PARAM_LOGGING_LEVEL:
		if (open && level_as_set[0])
			return level_as_set;
		return level_text(c->log_level);
	case CUFILE_PARAM_LOG_DIR:
		return c->log_dir;
	case CUFILE_PARAM_ENV_LOGFILE_PATH:
		/* an empty variable is one too */
		env = secure_getenv("CUFILE_LOGFILE_PATH");
		return open && (c->log_path[0] || env) ? c->log_path : env;
	}
	return NULL;
}

CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char *out, int len)
{
	const char *text;
	bool open;
	int r;

	if ((unsigned int)param >= TEXTS || !out || len <= 0)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold(&open);
	if (r)
		return errmap_status(r);
	text = text_of(param, open);
	if (!text || strlen(text) >= (size_t)len)
		r = ERR(INVALID_VALUE);
	else
		memcpy(out, text, strlen(text) + 1);
	driver_let_go();
	return errmap_status(r);
}

/* -- slabs -- */

static CUfileError_t set_slabs(struct slabs *s, const size_t *sizes, const size_t *counts, int len)
{
	int r;

	if (!sizes || !counts || len <= 0 || len > SLABS_MAX)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold_closed();
	if (r)
		return errmap_status(r);
	memcpy(s->kb, sizes, len * sizeof(*sizes));
	memcpy(s->count, counts, len * sizeof(*counts));
	s->n = len;
	driver_let_go();
	return errmap_status(0);
}

/* Of the open library, or what is set for the next open. */
static CUfileError_t get_slabs(bool gpu, size_t *sizes, size_t *counts, int len)
{
	const struct slabs *s = gpu ? &staged.gpu : &staged.posix;
	const struct config *c = driver_config();
	const size_t *kb, *count;
	size_t n;
	bool open;
	int r;

	if (!sizes || !counts || len <= 0)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold(&open);
	if (r)
		return errmap_status(r);
	n = !open ? s->n : gpu ? c->nslabs : c->nposix_slabs;
	kb = !open ? s->kb : gpu ? c->slab_kb : c->posix_slab_kb;
	count = !open ? s->count : gpu ? c->slab_count : c->posix_slab_count;
	if ((size_t)len != n) {
		r = ERR(INVALID_VALUE);
	} else {
		memcpy(sizes, kb, n * sizeof(*sizes));
		memcpy(counts, count, n * sizeof(*counts));
	}
	driver_let_go();
	return errmap_status(r);
}

CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *size_values,
						   const size_t *count_values, int len)
{
	return set_slabs(&staged.posix, size_values, count_values, len);
}

CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *size_values, size_t *count_values,
						   int len)
{
	return get_slabs(false, size_values, count_values, len);
}

CUfileError_t cuFileSetParameterGpuBounceBufferSlabArray(const size_t *size_values,
							 const size_t *count_values, int len)
{
	return set_slabs(&staged.gpu, size_values, count_values, len);
}

CUfileError_t cuFileGetParameterGpuBounceBufferSlabArray(size_t *size_values,
							 size_t *count_values, int len)
{
	return get_slabs(true, size_values, count_values, len);
}
