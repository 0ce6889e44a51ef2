// SPDX-License-Identifier: MIT
/*
 * t_config_file.c - the text of cufile.json, its file and the environment. Fails when a text
 * that is no JSON, or too deep or too large, is taken or told with another line, when a file
 * is read that was not asked for, or when the environment does not win over the file.
 */
#include "t_config.h"

/* ---- no JSON ---- */

static void t_no_json(void **state)
{
	static const char *const row[][2] = {
		{ "{\n\"opengds\": {\n\"strict\": true\n\"staging_max_mb\": 3}}", "f.json:4: this is no valid JSON" },
		{ "{\n\n\"opengds\": {\"strict\": yes}}", "f.json:3: this is no valid JSON" },
		{ "{\n\"opengds\": {\"strict\": true}\n", "f.json:3: this is no valid JSON: it ends too early" },
		{ "{\n\"opengds", "f.json:2: this is no valid JSON: it ends too early" },
		{ "", "f.json:1: this is no valid JSON: it must be an object" },
		{ "5", "f.json:1: this is no valid JSON: it must be an object" },
		{ "\n[]", "f.json:1: this is no valid JSON: it must be an object" },
		{ "null", "f.json:1: this is no valid JSON: it must be an object" },
		{ "{\"opengds\": {\"strict\": true}}\n}\n", "f.json:2: this is no valid JSON: something follows" },
		{ "{\"opengds\": {\"strict\": true}}\n{}", "f.json:2: this is no valid JSON: something follows" },
		{ "{\"opengds\": {\"strict\": true}}\n\"x\"", "f.json:2: this is no valid JSON: something follows" },
	};
	struct config c;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		c = parse(row[i][0]);
		one(LOG_ERROR, row[i][1]);
		assert_defaults(&c);
	}
	c = parse_len("{\"opengds\":\n{\"strict\": true}\0}", 30);
	one(LOG_ERROR, "f.json:2: this is no valid JSON: a zero byte");
	assert_defaults(&c);
}

static void t_comments(void **state)
{
	struct config c;

	c = parse("// {\n/* \" \n*/{\"opengds\": /* \"a\": 1, */ {\n// \"b\": 2,\n"
		  "\"strict\": true, /**/ \"x/*\": 1\n}} // end\n/* \n { */\n");
	assert_true(c.strict);
	one(LOG_WARN, "f.json:5: unknown key opengds.x/* is ignored");
	/* what looks like a comment in a text is none */
	c = parse("{\"logging\": {\"dir\": \"http://a/*\"},\n\"y\": 1}");
	assert_string_equal(c.log_dir, "http://a/*");
	one(LOG_WARN, "f.json:2: unknown key y is ignored");
	/* lines go on inside a text */
	c = parse("{\"logging\": {\"dir\": \"a\n\nb\"},\n\"y\": 1}");
	assert_string_equal(c.log_dir, "a\n\nb");
	one(LOG_WARN, "f.json:4: unknown key y is ignored");
	/* nor does an escaped quote end one */
	c = parse("{\"logging\": {\"dir\": \"a\\\"\\\\\"},\n\"y\": 1}");
	assert_string_equal(c.log_dir, "a\"\\");
	one(LOG_WARN, "f.json:2: unknown key y is ignored");
}

/* ---- bounds ---- */

static char *nested(unsigned int depth)
{
	char *text = NULL;
	unsigned int i;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (i = 0; i < depth; i++)
		fprintf(f, "{\"deep\":\n");
	fprintf(f, "1");
	for (i = 0; i < depth; i++)
		fprintf(f, "}");
	fclose(f);
	return text;
}

static void t_deep(void **state)
{
	struct config c;
	char *text;

	text = nested(20);
	c = parse(text);
	one(LOG_WARN, "f.json:1: unknown key deep is ignored");
	free(text);
	text = nested(40);
	c = parse(text);
	one(LOG_ERROR, "f.json:3");
	assert_non_null(strstr(said[0].text, "nesting"));
	assert_defaults(&c);
	free(text);
	text = nested(100000);
	c = parse(text);
	assert_int_equal(nsaid, 1);
	assert_int_equal(said[0].level, LOG_ERROR);
	free(text);
}

static char *many(unsigned int keys)
{
	char *text = NULL;
	unsigned int i;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fprintf(f, "{\"opengds\": {\"strict\": true}");
	for (i = 2; i < keys; i++)
		fprintf(f, ",\n\"zzzzz%u\": 1", i);
	fprintf(f, "}\n");
	fclose(f);
	return text;
}

static void t_many(void **state)
{
	struct config c;
	char *text;

	text = many(4096);
	c = parse(text);
	free(text);
	assert_true(c.strict);
	assert_int_equal(nsaid, 101);
	assert_non_null(strstr(said[99].text, "f.json:101: unknown key zzzzz101 is"));
	assert_non_null(strstr(said[100].text, "f.json:102: more is wrong"));
	text = many(4097);
	c = parse(text);
	free(text);
	one(LOG_ERROR, "f.json:4096: more than 4096 keys");
	assert_defaults(&c);
}

static void t_no_say(void **state)
{
	static const char text[] = "{\"x\": 1, \"x\": 2, \"opengds\": {\"strict\": true}}";
	struct config c;

	config_parse(&c, "f.json", text, strlen(text), NULL, NULL);
	assert_true(c.strict);
	config_parse(&c, "f.json", "{", 1, NULL, NULL);
	assert_defaults(&c);
}

/* ---- file and environment ---- */

static void load(struct config *c)
{
	nsaid = 0;
	memset(c, 0x5a, sizeof(*c));
	config_load(c, say, &nsaid);
}

static void json_file(char *path, size_t len, const char *text, size_t pad)
{
	FILE *f;

	snprintf(path, len, "%s/c.json", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	while (pad--)
		fputc(' ', f);
	assert_int_equal(fclose(f), 0);
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
}

static void t_file(void **state)
{
	char path[128], want[256];
	struct config c;

	json_file(path, sizeof(path), "{\"opengds\": {\"strict\": true},\n\"y\": 1}", 0);
	load(&c);
	assert_true(c.strict);
	assert_string_equal(c.path, path);
	snprintf(want, sizeof(want), "%s:2: unknown key y is ignored", path);
	one(LOG_WARN, want);
}

/* No settings, and nothing to say about it. */
static void t_null_device(void **state)
{
	struct config c;

	setenv("CUFILE_ENV_PATH_JSON", "/dev/null", 1);
	load(&c);
	assert_int_equal(nsaid, 0);
	assert_defaults(&c);
}

static void t_file_unreadable(void **state)
{
	char path[128], want[256];
	struct config c;

	snprintf(path, sizeof(path), "%s/none.json", dir);
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	load(&c);
	snprintf(want, sizeof(want),
		 "cannot read the configuration %s (of CUFILE_ENV_PATH_JSON): ENOENT: ", path);
	one(LOG_ERROR, want);
	assert_defaults(&c);
	assert_string_equal(c.path, "");

	setenv("CUFILE_ENV_PATH_JSON", dir, 1);
	load(&c);
	assert_int_equal(nsaid, 1);
	assert_non_null(strstr(said[0].text, "EISDIR"));

	assert_int_equal(mkfifo(path, 0600), 0);
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	load(&c);
	assert_int_equal(nsaid, 1);
	assert_non_null(strstr(said[0].text, "EINVAL"));
	assert_defaults(&c);
}

static void t_file_size(void **state)
{
	const char text[] = "{\"opengds\": {\"strict\": true}}";
	const size_t max = 1 << 20;
	char path[128], want[256];
	struct config c;

	json_file(path, sizeof(path), text, max - strlen(text));
	load(&c);
	assert_int_equal(nsaid, 0);
	assert_true(c.strict);
	json_file(path, sizeof(path), text, max - strlen(text) + 1);
	load(&c);
	snprintf(want, sizeof(want), "%s (of CUFILE_ENV_PATH_JSON) is larger than 1 MiB", path);
	one(LOG_ERROR, want);
	assert_defaults(&c);
}

static void t_environment(void **state)
{
	char path[128];
	struct config c;

	json_file(path, sizeof(path),
		  "{\"logging\": {\"level\": \"INFO\", \"max_file_size_mb\": 8},\n"
		  "\"properties\": {\"allow_compat_mode\": true, \"force_compat_mode\": false},\n"
		  "\"opengds\": {\"strict\": true}}", 0);
	setenv("CUFILE_LOGFILE_PATH", "/var/log/x", 1);
	setenv("CUFILE_LOGGING_LEVEL", "debug", 1);
	setenv("CUFILE_LOGFILE_MAX_SIZE_MB", "-1", 1);
	setenv("CUFILE_FORCE_COMPAT_MODE", "yes", 1);
	setenv("CUFILE_ALLOW_COMPAT_MODE", "0", 1);
	setenv("OPENGDS_STRICT", "off", 1);
	load(&c);
	assert_int_equal(nsaid, 0);
	assert_string_equal(c.log_path, "/var/log/x");
	assert_int_equal(c.log_level, LOG_DEBUG);
	assert_int_equal(c.log_max_mb, -1);
	assert_true(c.force_compat);
	assert_false(c.allow_compat);
	assert_false(c.strict);
}

static void t_environment_wrong(void **state)
{
	static const char *const row[][3] = {
		{ "CUFILE_LOGGING_LEVEL", "LOUD", "CUFILE_LOGGING_LEVEL=LOUD is ignored" },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", "0", "CUFILE_LOGFILE_MAX_SIZE_MB=0 is ignored" },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", "4097", "CUFILE_LOGFILE_MAX_SIZE_MB=4097" },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", "8x", "CUFILE_LOGFILE_MAX_SIZE_MB=8x is ignored" },
		{ "CUFILE_FORCE_COMPAT_MODE", "2", "CUFILE_FORCE_COMPAT_MODE=2 is ignored" },
		{ "CUFILE_ALLOW_COMPAT_MODE", "nope", "CUFILE_ALLOW_COMPAT_MODE=nope is ignored" },
		{ "OPENGDS_STRICT", "please", "OPENGDS_STRICT=please is ignored" },
	};
	char path[128], *name;
	struct config c;
	unsigned int i;

	json_file(path, sizeof(path), "{}", 0);
	for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
		setenv(row[i][0], row[i][1], 1);
		load(&c);
		one(LOG_WARN, row[i][2]);
		assert_defaults(&c);
		/* set to nothing is not set */
		setenv(row[i][0], "", 1);
		load(&c);
		assert_int_equal(nsaid, 0);
		unsetenv(row[i][0]);
	}
	name = malloc(CONFIG_PATH + 2);
	assert_non_null(name);
	memset(name, 'n', CONFIG_PATH + 1);
	name[CONFIG_PATH + 1] = '\0';
	setenv("CUFILE_LOGFILE_PATH", name, 1);
	free(name);
	load(&c);
	one(LOG_WARN, "CUFILE_LOGFILE_PATH is ignored");
	assert_string_equal(c.log_path, "");
}

static void t_environment_inert(void **state)
{
	char path[128];
	struct config c;

	json_file(path, sizeof(path), "{}", 0);
	setenv("CUFILE_USE_PCIP2PDMA", "true", 1);
	load(&c);
	one(LOG_INFO, "CUFILE_USE_PCIP2PDMA has no effect in this version");
}

static void t_bool(void **state)
{
	static const char *const yes[] = { "true", "TRUE", "1", "yes", "On" };
	static const char *const no[] = { "false", "False", "0", "NO", "off" };
	static const char *const bad[] = { "", "2", "truee", "tru", " true", "y" };
	unsigned int i;
	bool b;

	for (i = 0; i < 5; i++) {
		b = false;
		assert_int_equal(config_bool(yes[i], &b), 0);
		assert_true(b);
		assert_int_equal(config_bool(no[i], &b), 0);
		assert_false(b);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(config_bool(bad[i], &b), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(t_no_json), T(t_comments), T(t_deep), T(t_many), T(t_no_say), T(t_file),
		T(t_null_device),
		T(t_file_unreadable), T(t_file_size), T(t_environment), T(t_environment_wrong),
		T(t_environment_inert), T(t_bool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
