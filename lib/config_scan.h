/* SPDX-License-Identifier: MIT */
/*
 * config_scan.h - in which line each key of a JSON text is, and which are there twice. Of
 * texts that json-c took; private to config*.c.
 */
#ifndef CONFIG_SCAN_H
#define CONFIG_SCAN_H

#include <stddef.h>
#include <stdint.h>

#define CONFIG_SCAN_DEPTH 32	/* of objects and lists in each other */
#define CONFIG_SCAN_KEYS 4096	/* of a file */
#define CONFIG_SCAN_NAME 256	/* of a dotted name in messages; a longer one is cut */

struct config_scan {
	struct {
		uint64_t hash;
		unsigned int line;
	} *key;
	unsigned int keys;
};

/* `name`: dotted; `first`: the line where it was before */
typedef void config_scan_twice_fn(void *arg, const char *name, unsigned int line,
				  unsigned int first);

/*
 * Fills *s, which config_scan_free frees. 0, or -E2BIG: too many keys or too deep; -EBADMSG:
 * something follows the text's value; -ENOMEM. *line is where it went wrong.
 */
int config_scan(struct config_scan *s, const char *text, size_t len, unsigned int *line,
		config_scan_twice_fn *twice, void *arg);
void config_scan_free(struct config_scan *s);

/* The line of a key's last appearance, 0 when it is not known */
unsigned int config_scan_line(const struct config_scan *s, uint64_t hash);

/* What stands for the key `name` in an object whose own hash is `parent` (0: the outermost) */
uint64_t config_scan_hash(uint64_t parent, const char *name, size_t len);

/*
 * Appends a key to the dotted path of its object, of CONFIG_SCAN_NAME bytes. A key that
 * holds a dot, or nothing, is put in quotes, so that no key looks like a nested one.
 */
void config_scan_append(char *path, const char *name, size_t len);

/* The line, from 1, of the byte at `offset` */
unsigned int config_scan_line_at(const char *text, size_t len, size_t offset);

#endif /* CONFIG_SCAN_H */
