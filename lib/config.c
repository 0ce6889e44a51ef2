// SPDX-License-Identifier: MIT
/*
 * config.c - defaults, then cufile.json, then the environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "config.h"
#include "config_json.h"
#include "opengds.h"

#define SYSTEM_FILE "/etc/cufile.json"
#define FILE_MAX (1 << 20)	/* bytes; a configuration of people is a thousand times less */

void config_defaults(struct config *c)
{
	*c = (struct config){
		.log_level = LOG_ERROR,
		.log_max_mb = 32,
		.allow_compat = true,
		.allow_system_memory = true,
		.poll_max_kb = 4,
		.max_direct_io_kb = 16384,
		.max_cache_kb = 131072,
		.per_buffer_cache_kb = 1024,
		.max_pinned_kb = 33554432,
		.io_batchsize = 128,
		.batch_timeout_ms = 5,
		.parallel_io = true,
		.max_io_threads = 4,
		.max_io_queue_depth = 128,
		.min_io_threshold_kb = 8192,
		.max_request_parallelism = 4,
		.nposix_slabs = 3,
		.posix_slab_kb = { 4, 1024, 16384 },
		.posix_slab_count = { 128, 64, 64 },
		.staging_max_mb = 256,
		.register_peers = true,
		.routes = (1u << OGDS_ROUTES) - 1,
	};
}

int config_bool(const char *text, bool *out)
{
	static const char *const word[2][4] = {
		{ "false", "0", "no", "off" },
		{ "true", "1", "yes", "on" },
	};
	unsigned int v, i;

	for (v = 0; v < 2; v++) {
		for (i = 0; i < 4; i++) {
			if (!strcasecmp(text, word[v][i])) {
				*out = v;
				return 0;
			}
		}
	}
	return -EINVAL;
}

int config_level(const char *text, enum log_level *out)
{
	static const char *const name[] = {
		[LOG_NOTICE] = "NOTICE", [LOG_ERROR] = "ERROR", [LOG_WARN] = "WARN",
		[LOG_INFO] = "INFO", [LOG_DEBUG] = "DEBUG", [LOG_TRACE] = "TRACE",
	};
	unsigned int i;

	for (i = LOG_NOTICE; i <= LOG_TRACE; i++) {
		if (!strcasecmp(text, name[i])) {
			*out = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *config_slabs_wrong(const size_t *kb, const size_t *count, size_t n)
{
	size_t i, one, all = 0;

	if (!n || n > CONFIG_SLABS)
		return "1..8 slab sizes are allowed";
	for (i = 0; i < n; i++) {
		if (!kb[i] || kb[i] % 4)
			return "slab_size_kb must be multiples of 4";
		if (i && kb[i] <= kb[i - 1])
			return "slab_size_kb must ascend";
		if (!count[i] || count[i] > 65536)
			return "slab_count must be 1..65536";
		if (__builtin_mul_overflow(kb[i], count[i], &one) ||
		    __builtin_add_overflow(all, one, &all) || all > CONFIG_KB_MAX)
			return "all slabs together are larger than any memory";
	}
	return NULL;
}

/* Where messages go */
struct out {
	config_say_fn *say;
	void *arg;
};

__attribute__((format(printf, 3, 4)))
static void tell(const struct out *o, enum log_level level, const char *fmt, ...)
{
	char text[CONFIG_MESSAGE];
	va_list ap;

	if (!o->say)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o->say(o->arg, level, text);
}

/* /dev/null says "no settings", whatever stands in /etc */
static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* The file's bytes into *text, of *len; the caller frees. -EFBIG, -EINVAL: no plain file */
static int read_file(const char *path, char **text, size_t *len)
{
	struct stat st;
	size_t have = 0;
	ssize_t n = 0;
	char *buf;
	int fd, ret;

	/* O_NONBLOCK: a FIFO without a writer would hold us here */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : S_ISDIR(st.st_mode) ? -EISDIR :
	      !S_ISREG(st.st_mode) && !is_null_device(&st) ? -EINVAL :
	      st.st_size > FILE_MAX ? -EFBIG : 0;
	buf = ret ? NULL : malloc(FILE_MAX + 1);
	if (!ret && !buf)
		ret = -ENOMEM;
	while (!ret && have <= FILE_MAX) {
		n = read(fd, buf + have, FILE_MAX + 1 - have);
		if (n == 0)
			break;
		if (n > 0)
			have += (size_t)n;
		else if (errno != EINTR)
			ret = -errno;
	}
	close(fd);
	if (!ret && have > FILE_MAX)	/* it grew */
		ret = -EFBIG;
	if (ret) {
		free(buf);
		return ret;
	}
	*text = buf;
	*len = have;
	return 0;
}

static void load_file(struct config *c, const struct out *o)
{
	const char *env = secure_getenv("CUFILE_ENV_PATH_JSON"), *path;
	const char *of = "";
	char *text = NULL;
	size_t len = 0;
	int ret;

	path = SYSTEM_FILE;
	if (env && env[0]) {
		path = env;
		of = " (of CUFILE_ENV_PATH_JSON)";
	}
	ret = read_file(path, &text, &len);
	if (ret == -ENOENT && path != env)
		return;
	if (ret == -EFBIG)
		tell(o, LOG_ERROR, "%s%s is larger than 1 MiB (EFBIG): it is not read and the defaults are used; make it smaller",
		     path, of);
	else if (ret)
		tell(o, LOG_ERROR, "cannot read the configuration %s%s: %s: the defaults are used; correct the path or make the file readable",
		     path, of, log_errno(ret));
	if (ret)
		return;
	if (len)
		config_parse(c, path, text, len, o->say, o->arg);
	free(text);
}

/* Like secure_getenv; NULL for an empty value too */
static const char *env_text(const char *name)
{
	const char *text = secure_getenv(name);

	return text && text[0] ? text : NULL;
}

static void env_bool(const struct out *o, const char *name, bool *value)
{
	const char *text = env_text(name);

	if (text && config_bool(text, value))
		tell(o, LOG_WARN, "%s=%.64s is ignored: set it to true or false", name, text);
}

static void env_log(struct config *c, const struct out *o)
{
	const char *text;
	char *end;
	long mb;

	text = env_text("CUFILE_LOGFILE_PATH");
	if (text && strlen(text) >= sizeof(c->log_path))
		tell(o, LOG_WARN, "CUFILE_LOGFILE_PATH is ignored: it is longer than %zu bytes",
		     sizeof(c->log_path) - 1);
	else if (text)
		snprintf(c->log_path, sizeof(c->log_path), "%s", text);

	text = env_text("CUFILE_LOGGING_LEVEL");
	if (text && config_level(text, &c->log_level))
		tell(o, LOG_WARN, "CUFILE_LOGGING_LEVEL=%.64s is ignored: set it to one of "
		     CONFIG_LEVELS, text);

	text = env_text("CUFILE_LOGFILE_MAX_SIZE_MB");
	if (!text)
		return;
	errno = 0;
	mb = strtol(text, &end, 10);
	if (errno || *end || !(mb == -1 || (mb >= 1 && mb <= 4096)))
		tell(o, LOG_WARN,
		     "CUFILE_LOGFILE_MAX_SIZE_MB=%.64s is ignored: set it to -1 or to 1..4096",
		     text);
	else
		c->log_max_mb = (int)mb;
}

static void load_env(struct config *c, const struct out *o)
{
	bool dmabuf;
	const struct {
		const char *name;
		bool *value;
	} idle[] = {
		{ "CUFILE_USE_PCIP2PDMA", &c->use_pci_p2pdma },
		{ "CUFILE_SKIP_TOPOLOGY_DETECTION", &c->skip_topology },
		{ "CUFILE_NVTX", &c->nvtx },
		{ "CUFILE_DMABUF_ENABLE", &dmabuf },
	};
	size_t i;

	env_log(c, o);
	env_bool(o, "CUFILE_FORCE_COMPAT_MODE", &c->force_compat);
	env_bool(o, "CUFILE_ALLOW_COMPAT_MODE", &c->allow_compat);
	env_bool(o, "OPENGDS_STRICT", &c->strict);
	for (i = 0; i < sizeof(idle) / sizeof(*idle); i++) {
		if (!env_text(idle[i].name))
			continue;
		config_bool(env_text(idle[i].name), idle[i].value);
		tell(o, LOG_INFO, "%s has no effect in this version", idle[i].name);
	}
}

void config_load(struct config *c, config_say_fn *say, void *arg)
{
	const struct out o = { say, arg };

	config_defaults(c);
	load_file(c, &o);
	load_env(c, &o);
}
