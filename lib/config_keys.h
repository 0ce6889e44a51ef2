/* SPDX-License-Identifier: MIT */
/* config_keys.h - the keys of cufile.json. Private to config*.c and param.c. */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include "config.h"

enum config_type {
	CONFIG_BOOL,
	CONFIG_INT,	/* into an int */
	CONFIG_SIZE,	/* an integer into a size_t */
	CONFIG_LEVEL,	/* "ERROR" */
	CONFIG_TEXT,	/* into char[CONFIG_PATH] */
	CONFIG_NAMES,	/* list of strings into char[CONFIG_DENY][item] */
	CONFIG_ROUTES,	/* list of route names into a mask */
	CONFIG_SIZES,	/* list of integers into size_t[CONFIG_SLABS], see config.c */
	/* of keys that have no target */
	CONFIG_LIST,
	CONFIG_OBJECT,
	CONFIG_ANY,
};

#define CONFIG_NOWHERE ((size_t)-1)

struct config_key {
	const char *name;	/* dotted: "properties.io_batchsize" */
	const char *alias;	/* another name, or NULL */
	enum config_type type;
	size_t target;		/* offset in struct config; CONFIG_NOWHERE: without effect */
	size_t set;		/* offset of the bool that tells it was set, or CONFIG_NOWHERE */
	int64_t min, max;	/* of integers, both allowed */
	unsigned int multiple;	/* integers are a multiple of this; 0: any */
	bool no_zero;		/* 0 lies between min and max but means nothing */
	bool no_effect;		/* in this version, though it has a target */
	size_t item;		/* bytes of a member of CONFIG_NAMES */
};

#define CONFIG_KEYS_MAX 160	/* at least as many as there are */

/* The key of this name or alias, NULL when there is none */
const struct config_key *config_key_find(const char *dotted, bool *is_alias);

/* The key at a place of the table, NULL behind the last */
const struct config_key *config_key_at(unsigned int i);

/* Its place in the table, below CONFIG_KEYS_MAX */
unsigned int config_key_index(const struct config_key *key);

/* True when keys lie below this name */
bool config_key_section(const char *dotted);

/*
 * The key or section that somebody who wrote `dotted` most likely meant, NULL: cannot tell.
 * Writes it to buf.
 */
const char *config_key_near(const char *dotted, char *buf, size_t len);

#endif /* CONFIG_KEYS_H */
