// SPDX-License-Identifier: MIT
/*
 * config_fuzz.c - the entry point of libFuzzer for cufile.json, and of its short cut in the
 * unit tests. Any bytes are a file. What must hold whatever they are: the reader comes back,
 * each value is one that its key allows, each text ends, an ERROR leaves all defaults, each
 * message is one line that names file and line, and the same bytes mean the same again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "config_json.h"
#include "config_keys.h"
#include "config_fuzz.h"
#include "opengds.h"

#define NAME "f.json"
#define MESSAGES 4096	/* without effect (INFO), all keys of a file can have one */

struct said {
	unsigned int lines, errors;
	uint64_t hash;
};

static void must(int cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "config_fuzz: broken: %s\n", what);
	abort();
}

static void say(void *arg, enum log_level level, const char *text)
{
	struct said *s = arg;
	const char *p;

	must(strlen(text) < CONFIG_MESSAGE, "a message is longer than its limit");
	must(!strchr(text, '\n'), "a message has more than one line");
	must(!strncmp(text, NAME ":", sizeof(NAME)), "a message names no file");
	must(strtoul(text + sizeof(NAME), NULL, 10) > 0, "a message names no line");
	must(level == LOG_ERROR || level == LOG_WARN || level == LOG_INFO, "the level of a message");
	must(++s->lines <= MESSAGES, "the number of messages");
	s->errors += level == LOG_ERROR;
	for (p = text; *p; p++)
		s->hash = (s->hash ^ (unsigned char)*p) * 0x100000001b3ull;
}

static void check_number(const struct config *c, const struct config_key *k)
{
	const char *at = (const char *)c + k->target;
	uint64_t n;

	n = k->type == CONFIG_INT ? (uint64_t)(int64_t)*(const int *)at : *(const size_t *)at;
	must((int64_t)n >= k->min && (int64_t)n <= k->max, "a number is out of its range");
	must(!k->multiple || !(n % k->multiple), "a number is no multiple of its unit");
	must(!k->no_zero || n, "a number is 0");
}

static void check_names(const char *list, size_t item)
{
	size_t i;

	for (i = 0; i < CONFIG_DENY; i++)
		must(memchr(list + i * item, '\0', item) != NULL, "a name does not end");
	must(!list[(CONFIG_DENY - 1) * item], "a list of names does not end");
}

static void check_key(const struct config *c, const struct config_key *k)
{
	const char *at = (const char *)c + k->target;

	switch (k->type) {
	case CONFIG_INT:
	case CONFIG_SIZE:
		check_number(c, k);
		break;
	case CONFIG_BOOL:
		must(*(const unsigned char *)at <= 1, "a switch is neither on nor off");
		break;
	case CONFIG_TEXT:
		must(memchr(at, '\0', CONFIG_PATH) != NULL, "a text does not end");
		break;
	case CONFIG_LEVEL:
		must(c->log_level >= LOG_NOTICE && c->log_level <= LOG_TRACE, "the level of the log");
		break;
	case CONFIG_NAMES:
		check_names(at, k->item);
		break;
	case CONFIG_ROUTES:
		must(c->routes && c->routes < 1u << OGDS_ROUTES, "the routes");
		break;
	default:
		break;
	}
}

static void check(const struct config *c)
{
	const struct config_key *k;
	unsigned int i;

	for (i = 0; (k = config_key_at(i)); i++)
		if (k->target != CONFIG_NOWHERE)
			check_key(c, k);
	must(!c->nslabs || !config_slabs_wrong(c->slab_kb, c->slab_count, c->nslabs),
	     "the slabs of the GPU");
	must(!config_slabs_wrong(c->posix_slab_kb, c->posix_slab_count, c->nposix_slabs),
	     "the slabs of the host");
	must(c->posix_slabs_set || c->nposix_slabs == 3, "the usual slabs of the host");
	must(!strcmp(c->path, NAME), "the path");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct said one = { 0 }, two = { 0 };
	struct config *c = malloc(3 * sizeof(*c));
	char *text = malloc(size ? size : 1);

	must(c && text, "memory");
	/* a block of its own: what reads behind it is seen */
	if (size)
		memcpy(text, data, size);
	/* filled alike, so that what lies between the members is alike */
	memset(&c[0], 0x5a, sizeof(*c));
	memset(&c[1], 0x5a, sizeof(*c));
	memset(&c[2], 0x5a, sizeof(*c));
	config_parse(&c[0], NAME, text, size, say, &one);
	check(&c[0]);
	config_parse(&c[1], NAME, text, size, say, &two);
	must(one.lines == two.lines && one.hash == two.hash, "it says something else again");
	config_defaults(&c[2]);
	if (one.errors) {
		memcpy(c[2].path, c[0].path, sizeof(c[2].path));
		must(one.errors == 1, "more than one ERROR");
		must(!memcmp(&c[0], &c[2], sizeof(*c)), "an ERROR, and a setting is taken");
	}
	/* without anybody to tell it is the same */
	config_parse(&c[2], NAME, text, size, NULL, NULL);
	must(!memcmp(&c[0], &c[1], sizeof(*c)) && !memcmp(&c[0], &c[2], sizeof(*c)),
	     "it means something else again");
	free(text);
	free(c);
	return 0;
}
