// SPDX-License-Identifier: MIT
/* sweep_point.c - what a point of a sweep says: routes, rates, whether it went as asked. */
#include <stdarg.h>
#include <string.h>

#include "sweep.h"

struct json_object *sweep_get(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	return o && json_object_object_get_ex(o, key, &v) ? v : NULL;
}

const char *sweep_text(struct json_object *o, const char *key)
{
	struct json_object *v = sweep_get(o, key);

	return v ? json_object_get_string(v) : "";
}

double sweep_real(struct json_object *o, const char *key)
{
	return json_object_get_double(sweep_get(o, key));
}

uint64_t sweep_int(struct json_object *o, const char *key)
{
	return json_object_get_uint64(sweep_get(o, key));
}

struct json_object *sweep_result(struct json_object *point)
{
	struct json_object *passes = sweep_get(point, "passes");

	if (*sweep_text(point, "error") || !passes || !json_object_array_length(passes))
		return NULL;
	return json_object_array_get_idx(passes, 0);
}

/* Appends; what does not fit is cut. */
static size_t __attribute__((format(printf, 4, 5))) add(char *text, size_t len, size_t at,
							const char *fmt, ...)
{
	va_list ap;
	int n;

	if (at >= len)
		return at;
	va_start(ap, fmt);
	n = vsnprintf(text + at, len - at, fmt, ap);
	va_end(ap);
	return n > 0 ? at + n : at;
}

static size_t route_count(struct json_object *point, struct json_object **list)
{
	*list = sweep_get(sweep_result(point), "routes");
	return *list ? json_object_array_length(*list) : 0;
}

const char *sweep_routes(struct json_object *point, char *text, size_t len)
{
	const uint64_t bytes = sweep_int(sweep_result(point), "bytes");
	struct json_object *list, *r;
	size_t n = route_count(point, &list), i, at = 0;

	text[0] = '\0';
	for (i = 0; i < n; i++) {
		r = json_object_array_get_idx(list, i);
		at = add(text, len, at, "%s%s", i ? " + " : "", sweep_text(r, "route"));
		if (n > 1)
			at = add(text, len, at, " %.1f %%", 100.0 * sweep_int(r, "bytes") / bytes);
	}
	if (!n)
		add(text, len, 0, "none");
	return text;
}

const char *sweep_rates(struct json_object *point, char *text, size_t len)
{
	struct json_object *list, *r;
	size_t n = route_count(point, &list), i, at = 0;

	text[0] = '\0';
	for (i = 0; i < n; i++) {
		r = json_object_array_get_idx(list, i);
		if (n > 1)
			at = add(text, len, at, "%s%s ", i ? " + " : "", sweep_text(r, "route"));
		at = add(text, len, at, "%.3f", sweep_real(r, "gib_per_s"));
	}
	return text;
}

const char *sweep_checksum(struct json_object *point)
{
	struct json_object *passes = sweep_get(point, "passes");
	size_t n = sweep_result(point) ? json_object_array_length(passes) : 0;

	return n ? sweep_text(json_object_array_get_idx(passes, n - 1), "checksum") : "";
}

bool sweep_as_asked(struct json_object *point)
{
	const char *way = sweep_text(point, "way");
	struct json_object *list, *r = sweep_result(point);

	if (route_count(point, &list) != 1)
		return false;
	if (gdsio_xfer_find(way) >= 0)
		return !json_object_get_boolean(sweep_get(r, "fell_back"));
	return !strcmp(sweep_text(json_object_array_get_idx(list, 0), "route"), way);
}

unsigned int sweep_way_index(struct json_object *doc, const char *name)
{
	struct json_object *ways = sweep_get(doc, "ways");
	size_t n = ways ? json_object_array_length(ways) : 0, i;

	for (i = 0; i < n; i++) {
		if (!strcmp(json_object_get_string(json_object_array_get_idx(ways, i)), name))
			return (unsigned int)i;
	}
	return 0;
}
