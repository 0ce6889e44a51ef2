/* SPDX-License-Identifier: MIT */
/*
 * t_config.h - what the tests of the configuration share: messages are kept, files are in
 * a temporary folder, the environment is empty of our variables.
 */
#ifndef T_CONFIG_H
#define T_CONFIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "opengds.h"

#define SAID 160

static char dir[] = "/tmp/t_config.XXXXXX";

static struct {
	enum log_level level;
	char text[800];
} said[SAID];
static unsigned int nsaid;

static void say(void *arg, enum log_level level, const char *text)
{
	assert_ptr_equal(arg, &nsaid);
	assert_true(nsaid < SAID);
	assert_null(strchr(text, '\n'));
	said[nsaid].level = level;
	snprintf(said[nsaid++].text, sizeof(said[0].text), "%s", text);
}

static const char *const env_names[] = {
	"CUFILE_ENV_PATH_JSON", "CUFILE_LOGFILE_PATH", "CUFILE_LOGGING_LEVEL",
	"CUFILE_LOGFILE_MAX_SIZE_MB", "CUFILE_FORCE_COMPAT_MODE", "CUFILE_ALLOW_COMPAT_MODE",
	"OPENGDS_STRICT", "CUFILE_USE_PCIP2PDMA", "CUFILE_SKIP_TOPOLOGY_DETECTION",
	"CUFILE_NVTX", "CUFILE_DMABUF_ENABLE",
};

static int drop(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	unsigned int i;

	nsaid = 0;
	for (i = 0; i < sizeof(env_names) / sizeof(*env_names); i++)
		unsetenv(env_names[i]);
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	return nftw(dir, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static inline struct config parse_len(const char *text, size_t len)
{
	struct config c;

	nsaid = 0;
	memset(&c, 0x5a, sizeof(c));
	config_parse(&c, "f.json", text, len, say, &nsaid);
	return c;
}

static inline struct config parse(const char *text)
{
	return parse_len(text, strlen(text));
}

/* All members but the path */
static inline void assert_defaults(const struct config *c)
{
	struct config d;

	config_defaults(&d);
	assert_int_equal(c->log_level, d.log_level);
	assert_int_equal(c->log_max_mb, d.log_max_mb);
	assert_string_equal(c->log_dir, d.log_dir);
	assert_int_equal(c->allow_compat, d.allow_compat);
	assert_int_equal(c->force_compat, d.force_compat);
	assert_int_equal(c->io_batchsize, d.io_batchsize);
	assert_int_equal(c->max_io_threads, d.max_io_threads);
	assert_int_equal(c->max_direct_io_kb, d.max_direct_io_kb);
	assert_int_equal(c->max_direct_io_set, false);
	assert_int_equal(c->nslabs, 0);
	assert_int_equal(c->strict, d.strict);
	assert_int_equal(c->routes, d.routes);
	assert_int_equal(c->staging_max_mb, d.staging_max_mb);
	assert_int_equal(c->register_peers, d.register_peers);
}

/* One message, of this level and beginning with this text */
static inline void one(enum log_level level, const char *want)
{
	assert_int_equal(nsaid, 1);
	assert_int_equal(said[0].level, level);
	if (strncmp(said[0].text, want, strlen(want)))
		assert_string_equal(said[0].text, want);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif /* T_CONFIG_H */
