// SPDX-License-Identifier: MIT
/*
 * config_json.c - the text of cufile.json into a configuration. json-c reads it; each value
 * that is wrong gets a message with its line and leaves the default alone.
 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config_json.h"
#include "config_keys.h"
#include "config_scan.h"
#include "opengds.h"

#define MESSAGES_MAX 100	/* warnings and errors of one file */
#define SECTIONS_MAX 4		/* of known names in each other: more than any key has */
#define TEXT_MAX (1 << 20)	/* bytes */

/* Two lists that make one configuration: of the GPU, of the host */
enum slabs { GPU_SLABS, POSIX_SLABS, SLABS };

static const char *const slabs_name[SLABS] = {
	[GPU_SLABS] = "properties.gpu_bounce_buffer_slab_config",
	[POSIX_SLABS] = "properties.posix_pool_slab_*",
};

/* How a key was given */
enum seen { SEEN_NOT, SEEN_ALIAS, SEEN_NAME };

struct load {
	struct config *c;
	const char *path;
	config_say_fn *say;
	void *arg;
	unsigned int messages;
	struct config_scan scan;
	unsigned char seen[CONFIG_KEYS_MAX];
	struct {
		unsigned int sizes, counts;	/* members of the two lists */
		unsigned int line;
		bool bad;			/* one of the lists was told about */
	} slabs[SLABS];
};

/* A value and where it is */
struct value {
	const char *name;	/* dotted */
	unsigned int line;
	struct json_object *json;
};

__attribute__((format(printf, 4, 5)))
static void tell(struct load *l, enum log_level level, unsigned int line, const char *fmt, ...)
{
	char text[CONFIG_MESSAGE];
	va_list ap;
	size_t n;

	if (!l->say || (level != LOG_INFO && l->messages > MESSAGES_MAX))
		return;
	if (level != LOG_INFO && ++l->messages > MESSAGES_MAX) {
		snprintf(text, sizeof(text),
			 "%.300s:%u: more is wrong from here on; further messages are left out",
			 l->path, line);
		l->say(l->arg, LOG_WARN, text);
		return;
	}
	snprintf(text, sizeof(text), "%.300s:%u: ", l->path, line);
	n = strlen(text);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	l->say(l->arg, level, text);
}

static const char *type_name(const struct json_object *json)
{
	switch (json_object_get_type(json)) {
	case json_type_null: return "null";
	case json_type_boolean: return "a boolean";
	case json_type_double: return "a number with a fraction";
	case json_type_int: return "an integer";
	case json_type_object: return "an object";
	case json_type_array: return "a list";
	case json_type_string: return "a text in quotes";
	}
	return "something else";
}

static void wrong_type(struct load *l, const struct value *v, const char *want)
{
	tell(l, LOG_WARN, v->line, "%s is ignored: it is %s and must be %s", v->name,
	     type_name(v->json), want);
}

/* The text of a string; NULL when it is none, or has a NUL inside */
static const char *text_of(struct json_object *json)
{
	const char *text;

	if (!json_object_is_type(json, json_type_string))
		return NULL;
	text = json_object_get_string(json);
	return strlen(text) == (size_t)json_object_get_string_len(json) ? text : NULL;
}

static void *member(struct config *c, size_t offset)
{
	return (char *)c + offset;
}

static int set_bool(struct load *l, const struct config_key *k, const struct value *v)
{
	if (!json_object_is_type(v->json, json_type_boolean)) {
		wrong_type(l, v, "true or false");
		return -EINVAL;
	}
	*(bool *)member(l->c, k->target) = json_object_get_boolean(v->json);
	return 0;
}

/* An integer that the key allows, else a message and -EINVAL. `index`: "[2]" of a list or "" */
static int number(struct load *l, const struct config_key *k, const struct value *v,
		  const char *index, struct json_object *json, int64_t *out)
{
	char multiple[48] = "";
	int64_t n;

	if (!json_object_is_type(json, json_type_int)) {
		tell(l, LOG_WARN, v->line, "%s%s is ignored: it is %s and must be an integer",
		     v->name, index, type_name(json));
		return -EINVAL;
	}
	n = json_object_get_int64(json);	/* larger ones as INT64_MAX */
	if (n >= k->min && n <= k->max && !(k->multiple && n % k->multiple) &&
	    !(k->no_zero && !n)) {
		*out = n;
		return 0;
	}
	if (k->multiple)
		snprintf(multiple, sizeof(multiple), ", a multiple of %u", k->multiple);
	tell(l, LOG_WARN, v->line,
	     "%s%s is ignored: %" PRId64 " is out of range; set it to %" PRId64 "..%" PRId64 "%s%s",
	     v->name, index, n, k->min, k->max, multiple, k->no_zero ? ", not 0" : "");
	return -EINVAL;
}

static int set_number(struct load *l, const struct config_key *k, const struct value *v)
{
	int64_t n;

	if (number(l, k, v, "", v->json, &n))
		return -EINVAL;
	if (k->type == CONFIG_INT)
		*(int *)member(l->c, k->target) = (int)n;
	else
		*(size_t *)member(l->c, k->target) = (size_t)n;
	return 0;
}

static int set_text(struct load *l, const struct config_key *k, const struct value *v)
{
	const char *text = text_of(v->json);

	if (!json_object_is_type(v->json, json_type_string)) {
		wrong_type(l, v, "a text in quotes");
		return -EINVAL;
	}
	if (!text || strlen(text) >= CONFIG_PATH) {
		if (text)
			tell(l, LOG_WARN, v->line, "%s is ignored: it is longer than %d bytes",
			     v->name, CONFIG_PATH - 1);
		else
			tell(l, LOG_WARN, v->line, "%s is ignored: it holds a zero byte", v->name);
		return -EINVAL;
	}
	snprintf(member(l->c, k->target), CONFIG_PATH, "%s", text);
	return 0;
}

static int set_level(struct load *l, const struct config_key *k, const struct value *v)
{
	const char *text = text_of(v->json);

	if (text && !config_level(text, member(l->c, k->target)))
		return 0;
	tell(l, LOG_WARN, v->line, "%s is ignored: it must be one of " CONFIG_LEVELS, v->name);
	return -EINVAL;
}

/*
 * The members of a list that are no usable text are told and left out; the rest counts: a
 * denylist that is dropped for one bad line would allow all that it denies.
 */
static int set_names(struct load *l, const struct config_key *k, const struct value *v)
{
	char *to = member(l->c, k->target);
	size_t i, n, used = 0;
	const char *text;

	if (!json_object_is_type(v->json, json_type_array)) {
		wrong_type(l, v, "a list of texts");
		return -EINVAL;
	}
	memset(to, 0, CONFIG_DENY * k->item);
	n = json_object_array_length(v->json);
	for (i = 0; i < n; i++) {
		text = text_of(json_object_array_get_idx(v->json, i));
		if (!text || !text[0] || strlen(text) >= k->item) {
			tell(l, LOG_WARN, v->line,
			     "%s[%zu] is ignored: it must be a text of 1 to %zu bytes", v->name, i,
			     k->item - 1);
			continue;
		}
		if (used == CONFIG_DENY - 1) {
			tell(l, LOG_WARN, v->line, "%s[%zu] and what follows is ignored: %u names are the most",
			     v->name, i, CONFIG_DENY - 1);
			break;
		}
		snprintf(to + used++ * k->item, k->item, "%s", text);
	}
	return 0;
}

#define ROUTE_NAMES "nvfs, p2pdma, staged, bar, bounce, host"

/* The bit of a route's name, 0: no route */
static uint32_t route_bit(const char *text)
{
	static const char *const name[OGDS_ROUTES] = {
		[OGDS_ROUTE_NVFS] = "nvfs", [OGDS_ROUTE_P2PDMA] = "p2pdma",
		[OGDS_ROUTE_STAGED] = "staged", [OGDS_ROUTE_BAR] = "bar",
		[OGDS_ROUTE_BOUNCE] = "bounce", [OGDS_ROUTE_HOST] = "host",
	};
	unsigned int i;

	for (i = 0; text && i < OGDS_ROUTES; i++)
		if (!strcmp(text, name[i]))
			return 1u << i;
	return 0;
}

static int set_routes(struct load *l, const struct config_key *k, const struct value *v)
{
	uint32_t mask = 0, bit;
	size_t i, n;

	if (!json_object_is_type(v->json, json_type_array)) {
		wrong_type(l, v, "a list of " ROUTE_NAMES);
		return -EINVAL;
	}
	n = json_object_array_length(v->json);
	for (i = 0; i < n; i++) {
		bit = route_bit(text_of(json_object_array_get_idx(v->json, i)));
		if (!bit)
			tell(l, LOG_WARN, v->line,
			     "%s[%zu] is ignored: it must be one of " ROUTE_NAMES, v->name, i);
		mask |= bit;
	}
	if (!mask) {
		tell(l, LOG_WARN, v->line, "%s is ignored: it names no route", v->name);
		return -EINVAL;
	}
	*(uint32_t *)member(l->c, k->target) = mask;
	return 0;
}

/* A list of the slab configuration; whether the two fit is seen when both are read. */
static int set_sizes(struct load *l, const struct config_key *k, const struct value *v)
{
	size_t *to = member(l->c, k->target);
	bool posix = to == l->c->posix_slab_kb || to == l->c->posix_slab_count;
	bool sizes = to == l->c->slab_kb || to == l->c->posix_slab_kb;
	__typeof__(l->slabs[0]) *s = &l->slabs[posix ? POSIX_SLABS : GPU_SLABS];
	char index[32];
	size_t i, n;
	int64_t one;

	s->line = v->line;
	if (!json_object_is_type(v->json, json_type_array)) {
		wrong_type(l, v, "a list of integers");
		goto bad;
	}
	n = json_object_array_length(v->json);
	if (!n || n > CONFIG_SLABS) {
		tell(l, LOG_WARN, v->line, "%s is ignored: it has %zu members, 1..%u are allowed",
		     v->name, n, CONFIG_SLABS);
		goto bad;
	}
	for (i = 0; i < n; i++) {
		snprintf(index, sizeof(index), "[%zu]", i);
		if (number(l, k, v, index, json_object_array_get_idx(v->json, i), &one))
			goto bad;
		to[i] = (size_t)one;
	}
	*(sizes ? &s->sizes : &s->counts) = (unsigned int)n;
	return 0;
bad:
	s->bad = true;
	return -EINVAL;
}

/* The type of a key without effect; nothing is stored. */
static void inert(struct load *l, const struct config_key *k, const struct value *v)
{
	static const struct {
		enum json_type json;
		const char *name;
	} want[] = {
		[CONFIG_BOOL] = { json_type_boolean, "true or false" },
		[CONFIG_INT] = { json_type_int, "an integer" },
		[CONFIG_TEXT] = { json_type_string, "a text in quotes" },
		[CONFIG_LIST] = { json_type_array, "a list" },
		[CONFIG_OBJECT] = { json_type_object, "an object" },
	};

	if (k->type != CONFIG_ANY && !json_object_is_type(v->json, want[k->type].json))
		wrong_type(l, v, want[k->type].name);
	else
		tell(l, LOG_INFO, v->line, "%s has no effect in this version", v->name);
}

static int set(struct load *l, const struct config_key *k, const struct value *v)
{
	switch (k->type) {
	case CONFIG_BOOL:
		return set_bool(l, k, v);
	case CONFIG_INT:
	case CONFIG_SIZE:
		return set_number(l, k, v);
	case CONFIG_LEVEL:
		return set_level(l, k, v);
	case CONFIG_TEXT:
		return set_text(l, k, v);
	case CONFIG_NAMES:
		return set_names(l, k, v);
	case CONFIG_ROUTES:
		return set_routes(l, k, v);
	case CONFIG_SIZES:
		return set_sizes(l, k, v);
	default:
		return -EINVAL;
	}
}

/* A key of the table. Its own name counts more than its alias, whichever comes first. */
static void known(struct load *l, const struct config_key *k, bool alias, const struct value *v)
{
	unsigned char *seen = &l->seen[config_key_index(k)];
	const unsigned char now = alias ? SEEN_ALIAS : SEEN_NAME;

	if (*seen > now) {
		tell(l, LOG_INFO, v->line, "%s is ignored: %s is set as well", v->name, k->name);
		return;
	}
	if (k->target == CONFIG_NOWHERE) {
		inert(l, k, v);
	} else if (!set(l, k, v)) {
		*seen = now;
		if (k->set != CONFIG_NOWHERE)
			*(bool *)member(l->c, k->set) = true;
		if (k->no_effect)
			tell(l, LOG_INFO, v->line, "%s has no effect in this version", v->name);
	}
}

static void unknown(struct load *l, const struct value *v)
{
	char near[CONFIG_SCAN_NAME];

	/* the search for what was meant costs more than all the rest: not for nobody */
	if (!l->say || l->messages > MESSAGES_MAX)
		return;
	if (!config_key_near(v->name, near, sizeof(near)))
		tell(l, LOG_WARN, v->line, "unknown key %s is ignored; remove it or correct its name",
		     v->name);
	else if (!strchr(near, '.'))
		tell(l, LOG_WARN, v->line,
		     "unknown key %s is ignored; did you mean %s, an object of its own at the top",
		     v->name, near);
	else
		tell(l, LOG_WARN, v->line, "unknown key %s is ignored; did you mean %s%s", v->name,
		     near, strchr(v->name, '"') ? "? A dot in a name does not nest" : "");
}

/* An object whose keys are looked at one after the other */
struct section {
	struct json_object_iterator at, end;
	uint64_t hash;
	char path[CONFIG_SCAN_NAME];
};

static void enter(struct section *s, struct json_object *json, uint64_t hash, const char *path)
{
	s->at = json_object_iter_begin(json);
	s->end = json_object_iter_end(json);
	s->hash = hash;
	snprintf(s->path, sizeof(s->path), "%s", path);
}

/* Handles one key. true: it is a section that the caller enters, by *hash, path and v->json */
static bool one_key(struct load *l, struct section *s, char *path, uint64_t *hash,
		    struct value *v)
{
	const char *name = json_object_iter_peek_name(&s->at);
	const struct config_key *k;
	bool alias;

	snprintf(path, CONFIG_SCAN_NAME, "%s", s->path);
	config_scan_append(path, name, strlen(name));
	*hash = config_scan_hash(s->hash, name, strlen(name));
	v->name = path;
	v->line = config_scan_line(&l->scan, *hash);
	v->json = json_object_iter_peek_value(&s->at);
	json_object_iter_next(&s->at);
	k = config_key_find(path, &alias);
	if (k) {
		known(l, k, alias, v);
		return false;
	}
	if (!config_key_section(path)) {
		unknown(l, v);
		return false;
	}
	if (json_object_is_type(v->json, json_type_object))
		return true;
	wrong_type(l, v, "an object");
	return false;
}

static void walk(struct load *l, struct json_object *root)
{
	struct section section[SECTIONS_MAX];
	char path[CONFIG_SCAN_NAME];
	unsigned int depth = 1;
	struct section *top;
	struct value v;
	uint64_t hash;

	enter(&section[0], root, 0, "");
	while (depth) {
		top = &section[depth - 1];
		if (json_object_iter_equal(&top->at, &top->end))
			depth--;
		else if (one_key(l, top, path, &hash, &v) && depth < SECTIONS_MAX)
			enter(&section[depth++], v.json, hash, path);
	}
}

/* After the walk: the two lists make one configuration, or none. True: they do. */
static bool slabs_fit(struct load *l, enum slabs which, const size_t *kb, const size_t *count)
{
	__typeof__(l->slabs[0]) *s = &l->slabs[which];
	const char *why = NULL;

	if (!s->sizes || !s->counts)
		why = "both slab_size_kb and slab_count must be given";
	else if (s->sizes != s->counts)
		why = "slab_size_kb and slab_count must be of equal length";
	if (!why)
		why = config_slabs_wrong(kb, count, s->sizes);
	if (!why && !s->bad)
		return true;
	if (!s->bad)
		tell(l, LOG_WARN, s->line, "%s is ignored: %s", slabs_name[which], why);
	return false;
}

static void finish_slabs(struct load *l)
{
	struct config usual, *c = l->c;

	config_defaults(&usual);
	if (l->slabs[GPU_SLABS].line) {
		if (slabs_fit(l, GPU_SLABS, c->slab_kb, c->slab_count)) {
			c->nslabs = l->slabs[GPU_SLABS].sizes;
		} else {
			memset(c->slab_kb, 0, sizeof(c->slab_kb));
			memset(c->slab_count, 0, sizeof(c->slab_count));
		}
	}
	if (!l->slabs[POSIX_SLABS].line)
		return;
	if (slabs_fit(l, POSIX_SLABS, c->posix_slab_kb, c->posix_slab_count)) {
		c->nposix_slabs = l->slabs[POSIX_SLABS].sizes;
		c->posix_slabs_set = true;
	} else {
		memcpy(c->posix_slab_kb, usual.posix_slab_kb, sizeof(c->posix_slab_kb));
		memcpy(c->posix_slab_count, usual.posix_slab_count, sizeof(c->posix_slab_count));
	}
}

static void twice(void *arg, const char *name, unsigned int line, unsigned int first)
{
	tell(arg, LOG_WARN, line, "%s is set again, first in line %u: the last one counts", name,
	     first);
}

/* The root of the text; NULL and a message when there is none */
static struct json_object *parse(struct load *l, const char *text, size_t len)
{
	struct json_tokener *tok = json_tokener_new_ex(CONFIG_SCAN_DEPTH);
	enum json_tokener_error err;
	struct json_object *root;
	const char *why;
	size_t at;

	if (!tok) {
		tell(l, LOG_ERROR, 1, "no memory to read it (ENOMEM): the defaults are used");
		return NULL;
	}
	root = json_tokener_parse_ex(tok, text, (int)len);
	err = json_tokener_get_error(tok);
	at = err == json_tokener_success ? 0 : json_tokener_get_parse_end(tok);
	json_tokener_free(tok);
	if (err == json_tokener_success && json_object_is_type(root, json_type_object))
		return root;
	if (err == json_tokener_success || !memchr(text, '{', len))
		why = "it must be an object in braces";
	else if (err == json_tokener_continue)
		why = "it ends too early: a brace, a bracket or a quote is not closed";
	else
		why = json_tokener_error_desc(err);
	tell(l, LOG_ERROR, config_scan_line_at(text, len, at),
	     "this is no valid JSON: %s: no setting of the file is used; correct this line", why);
	json_object_put(root);
	return NULL;
}

/* 0, or -errno after a message */
static int scan(struct load *l, const char *text, size_t len)
{
	unsigned int line = 1;
	int ret = config_scan(&l->scan, text, len, &line, twice, l);

	if (ret == -E2BIG)
		tell(l, LOG_ERROR, line,
		     "more than %u keys (E2BIG): no setting of the file is used; make it smaller",
		     CONFIG_SCAN_KEYS);
	else if (ret == -EBADMSG)
		tell(l, LOG_ERROR, line,
		     "this is no valid JSON: something follows the closing brace: no setting of the file is used; correct this line");
	else if (ret)
		tell(l, LOG_ERROR, line, "cannot read it: %s: the defaults are used",
		     log_errno(ret));
	return ret;
}

/* 0, or -EINVAL after a message */
static int check_text(struct load *l, const char *text, size_t len)
{
	const char *nul = memchr(text, '\0', len);

	if (len > TEXT_MAX)
		tell(l, LOG_ERROR, 1, "larger than 1 MiB: no setting of the file is used");
	else if (nul)
		tell(l, LOG_ERROR, config_scan_line_at(text, len, (size_t)(nul - text)),
		     "this is no valid JSON: a zero byte: no setting of the file is used; correct this line");
	else
		return 0;
	return -EINVAL;
}

void config_parse(struct config *c, const char *path, const char *text, size_t len,
		  config_say_fn *say, void *arg)
{
	struct load l = { .c = c, .path = path, .say = say, .arg = arg };
	struct json_object *root;

	config_defaults(c);
	snprintf(c->path, sizeof(c->path), "%s", path);
	if (check_text(&l, text, len))
		return;
	root = parse(&l, text, len);
	if (!root)
		return;
	if (!scan(&l, text, len)) {
		walk(&l, root);
		finish_slabs(&l);
		config_scan_free(&l.scan);
	}
	json_object_put(root);
}
