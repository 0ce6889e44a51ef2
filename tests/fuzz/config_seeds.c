// SPDX-License-Identifier: MIT
/*
 * config_seeds.c - a corpus for config_fuzz out of the table of keys: for each a file with a right
 * value, by its name and by its alias, one with a value of a wrong type, one beyond its range.
 * And a dictionary: the names, and words of JSON.
 *
 *   config_seeds DIR DICTIONARY
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_keys.h"

static FILE *create(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f) {
		perror(path);
		exit(1);
	}
	return f;
}

static FILE *seed(const char *dir, unsigned int key, const char *kind)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/key-%03u-%s", dir, key, kind);
	return create(path);
}

/* {"a": {"b": ... and the braces behind it; returns how many there are */
static unsigned int open_path(FILE *f, const char *dotted)
{
	unsigned int depth = 0;
	size_t n;

	for (;;) {
		n = strcspn(dotted, ".");
		fprintf(f, "{\"%.*s\": ", (int)n, dotted);
		depth++;
		if (!dotted[n])
			return depth;
		dotted += n + 1;
	}
}

static void close_path(FILE *f, unsigned int depth)
{
	while (depth--)
		fputc('}', f);
	fputc('\n', f);
}

static void right_value(FILE *f, const struct config_key *k)
{
	switch (k->type) {
	case CONFIG_BOOL:
		fputs("true", f);
		break;
	case CONFIG_INT:
	case CONFIG_SIZE:
		fprintf(f, "%" PRId64, k->max);
		break;
	case CONFIG_LEVEL:
		fputs("\"WARN\"", f);
		break;
	case CONFIG_TEXT:
		fputs("\"/a\\u0062\"", f);
		break;
	case CONFIG_NAMES:
		fputs("[\"/a\", \"b\"]", f);
		break;
	case CONFIG_ROUTES:
		fputs("[\"nvfs\", \"host\"]", f);
		break;
	case CONFIG_SIZES:
		fprintf(f, "[%" PRId64 ", 8]", k->min);
		break;
	case CONFIG_LIST:
		fputs("[1]", f);
		break;
	default:
		fputs("{}", f);
	}
}

static void each_key(const char *dir, unsigned int i, const struct config_key *k)
{
	unsigned int depth;
	FILE *f;

	f = seed(dir, i, "right");
	depth = open_path(f, k->name);
	right_value(f, k);
	close_path(f, depth);
	fclose(f);

	f = seed(dir, i, "alias");
	depth = open_path(f, k->alias ? k->alias : k->name);
	right_value(f, k);
	close_path(f, depth);
	fclose(f);

	f = seed(dir, i, "wrong");
	depth = open_path(f, k->name);
	fputs(k->type == CONFIG_BOOL ? "\"true\" /* a text */" : "false // a switch\n", f);
	close_path(f, depth);
	fclose(f);

	f = seed(dir, i, "beyond");
	depth = open_path(f, k->name);
	fprintf(f, "%" PRId64, k->min - 1);
	close_path(f, depth);
	fclose(f);
}

static void dictionary(const char *path)
{
	static const char *const words[] = {
		"{", "}", "[", "]", ":", ",", "//", "/*", "*/", "\\\"", "\\\\u0000", "\\\\ud800",
		"true", "false", "null", "NaN", "Infinity", "-0", "1e999", "9223372036854775808",
		"18446744073709551616", "0x10",
	};
	const struct config_key *k;
	FILE *f = create(path);
	const char *at;
	unsigned int i;
	size_t n;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		fprintf(f, "\"%s\"\n", words[i]);
	for (i = 0; (k = config_key_at(i)); i++)
		for (at = k->name; *at; at += n + (at[n] == '.')) {
			n = strcspn(at, ".");
			fprintf(f, "\"\\\"%.*s\\\":\"\n", (int)n, at);
		}
	fclose(f);
}

int main(int argc, char **argv)
{
	const struct config_key *k;
	unsigned int i;

	if (argc != 3) {
		fprintf(stderr, "usage: config_seeds DIR DICTIONARY\n");
		return 2;
	}
	for (i = 0; (k = config_key_at(i)); i++)
		each_key(argv[1], i, k);
	dictionary(argv[2]);
	return 0;
}
