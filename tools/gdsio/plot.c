// SPDX-License-Identifier: MIT
/*
 * plot.c - a plot as SVG: logarithmic both ways, a line and a marker for each way, the point's
 * words as its title. Colours are CSS variables of the page.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "number.h"
#include "sweep.h"

/* Units of the viewBox; about pixels where a plot is as wide as a telephone. */
#define WIDTH 400
#define HEIGHT 260
#define LEFT 46
#define RIGHT 12
#define TOP 10
#define BOTTOM 38

struct axes {
	double x_min, x_max;	/* log2 of bytes */
	double y_min, y_max;	/* log10 of the value */
	bool any;
};

void sweep_marker(FILE *f, unsigned int way, double x, double y, bool hollow)
{
	const char *kind = hollow ? "m hollow" : "m";

	switch (way % 4) {
	case 0:
		fprintf(f, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", kind, x, y);
		break;
	case 1:
		fprintf(f, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\"/>",
			kind, x - 3.5, y - 3.5);
		break;
	case 2:
		fprintf(f, "<path class=\"%s\" d=\"M%.1f %.1fl5 8h-10z\"/>", kind, x, y - 5);
		break;
	default:
		fprintf(f, "<path class=\"%s\" d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\"/>", kind, x, y - 5);
	}
}

static double x_of(const struct axes *a, double bytes)
{
	const double room = WIDTH - LEFT - RIGHT - 16;

	if (a->x_max <= a->x_min)
		return LEFT + 8 + room / 2;
	return LEFT + 8 + room * (log2(bytes) - a->x_min) / (a->x_max - a->x_min);
}

static double y_of(const struct axes *a, double value)
{
	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log10(value) - a->y_min) /
	       (a->y_max - a->y_min);
}

static struct json_object *point_at(struct json_object *doc, size_t i)
{
	struct json_object *list = sweep_get(doc, "points");

	return list && i < json_object_array_length(list) ? json_object_array_get_idx(list, i) :
							     NULL;
}

/* All plots of a metric have the same axes, so that they can be compared. */
static void find_axes(struct json_object *doc, const struct plot *p, struct axes *a)
{
	struct json_object *point;
	unsigned int line;
	double v, x;
	size_t i;

	*a = (struct axes){ 0 };
	for (i = 0; (point = point_at(doc, i)); i++) {
		for (line = 0; line < p->lines; line++) {
			v = sweep_result(point) ? p->value(point, line) : 0;
			if (v <= 0)
				continue;
			x = log2(sweep_int(point, "io_bytes"));
			v = log10(v);
			a->x_min = !a->any || x < a->x_min ? x : a->x_min;
			a->x_max = !a->any || x > a->x_max ? x : a->x_max;
			a->y_min = !a->any || v < a->y_min ? v : a->y_min;
			a->y_max = !a->any || v > a->y_max ? v : a->y_max;
			a->any = true;
		}
	}
	/* some room, and never a range of nothing */
	a->y_min -= 0.08;
	a->y_max += 0.08;
	if (a->y_max - a->y_min < 0.5) {
		v = (a->y_max + a->y_min) / 2;
		a->y_min = v - 0.25;
		a->y_max = v + 0.25;
	}
}

static void tick(FILE *f, const struct axes *a, double value)
{
	const double y = y_of(a, value);

	fprintf(f, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
		"text-anchor=\"end\">%g</text>\n", LEFT, y, WIDTH - RIGHT, LEFT - 5, y + 4, value);
}

static void y_axis(FILE *f, const struct axes *a, const char *unit)
{
	static const double steps[] = { 1, 2, 5 };
	/* over many decades the ones between would stand on one another */
	const int per = a->y_max - a->y_min > 2.2 ? 1 : 3;
	int decade, i;
	double v;

	for (decade = (int)floor(a->y_min); decade <= a->y_max; decade++) {
		for (i = 0; i < per; i++) {
			v = steps[i] * pow(10, decade);
			if (log10(v) >= a->y_min && log10(v) <= a->y_max)
				tick(f, a, v);
		}
	}
	fprintf(f, "<text class=\"unit\" x=\"%d\" y=\"%d\">%s</text>\n", 4, HEIGHT - 6, unit);
}

/* Every size of the points once, and as many words as have room. */
static void x_axis(FILE *f, struct json_object *doc, const struct plot *p, const struct axes *a)
{
	double last = -1000, x;
	struct json_object *point;
	char text[24];
	size_t i;

	for (i = 0; (point = point_at(doc, i)); i++) {
		if (sweep_int(point, "threads") != p->threads)
			continue;
		x = x_of(a, sweep_int(point, "io_bytes"));
		if (x < last + 30)
			continue;
		last = x;
		fprintf(f, "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
			"text-anchor=\"middle\">%s</text>\n", x, TOP, HEIGHT - BOTTOM, x,
			HEIGHT - BOTTOM + 15, gdsio_size_text(sweep_int(point, "io_bytes"), text));
	}
	fprintf(f, "<text class=\"unit\" x=\"%d\" y=\"%d\" text-anchor=\"end\">bytes of one I/O"
		"</text>\n", WIDTH - RIGHT, HEIGHT - 6);
}

static void point_title(FILE *f, struct json_object *point)
{
	struct json_object *r = sweep_result(point), *l = sweep_get(r, "latency_us");
	char size[24], text[256];

	fprintf(f, "<title>");
	sweep_escape(f, sweep_text(point, "way"));
	fprintf(f, ", %s x %" PRIu64 " threads\nroute: ",
		gdsio_size_text(sweep_int(point, "io_bytes"), size), sweep_int(point, "threads"));
	sweep_escape(f, sweep_routes(point, text, sizeof(text)));
	fprintf(f, "\nGiB/s: %s\n", sweep_rates(point, text, sizeof(text)));
	fprintf(f, "latency: p50 %.1f us, p99 %.1f us\nCPU: %.3f s/GiB\nqueue depth: %" PRIu64
		", checksum: %s</title>", sweep_real(l, "p50"), sweep_real(l, "p99"),
		sweep_real(r, "cpu_s_per_gib"), sweep_int(r, "queue_depth"),
		sweep_checksum(point));
}

/* The points of one way come in the order of their sizes. */
static void one_line(FILE *f, struct json_object *doc, const struct plot *p, const struct axes *a,
		     const char *way, unsigned int line)
{
	struct json_object *point;
	bool first = true;
	double v;
	size_t i;

	fprintf(f, "<path class=\"l%s\" d=\"", line ? " dashed" : "");
	for (i = 0; (point = point_at(doc, i)); i++) {
		if (sweep_int(point, "threads") != p->threads ||
		    strcmp(sweep_text(point, "way"), way) || !sweep_result(point))
			continue;
		v = p->value(point, line);
		if (v <= 0)
			continue;
		fprintf(f, "%s%.1f %.1f", first ? "M" : "L", x_of(a, sweep_int(point, "io_bytes")),
			y_of(a, v));
		first = false;
	}
	fputs("\"/>\n", f);
}

static void markers(FILE *f, struct json_object *doc, const struct plot *p, const struct axes *a,
		    const char *way, unsigned int index)
{
	struct json_object *point;
	unsigned int line;
	char text[256];
	double v;
	size_t i;

	for (i = 0; (point = point_at(doc, i)); i++) {
		if (sweep_int(point, "threads") != p->threads ||
		    strcmp(sweep_text(point, "way"), way) || !sweep_result(point))
			continue;
		for (line = 0; line < p->lines; line++) {
			v = p->value(point, line);
			if (v <= 0)
				continue;
			fputs("<g class=\"point\" data-route=\"", f);
			sweep_escape(f, sweep_routes(point, text, sizeof(text)));
			fputs("\">", f);
			point_title(f, point);
			sweep_marker(f, index, x_of(a, sweep_int(point, "io_bytes")), y_of(a, v),
				     !sweep_as_asked(point));
			fputs("</g>\n", f);
		}
	}
}

void sweep_plot(FILE *f, struct json_object *doc, const struct plot *p)
{
	struct json_object *ways = sweep_get(doc, "ways");
	const size_t n = ways ? json_object_array_length(ways) : 0;
	const char *way;
	struct axes a;
	unsigned int line;
	size_t i;

	find_axes(doc, p, &a);
	fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s by I/O size, %u thread%s; "
		"the table has all numbers\">\n", WIDTH, HEIGHT, p->title, p->threads,
		p->threads == 1 ? "" : "s");
	if (a.any) {
		y_axis(f, &a, p->unit);
		x_axis(f, doc, p, &a);
	} else {
		fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">nothing measured yet"
			"</text>\n", WIDTH / 2, HEIGHT / 2);
	}
	for (i = 0; i < n && a.any; i++) {
		way = json_object_get_string(json_object_array_get_idx(ways, i));
		fprintf(f, "<g class=\"w%zu\">\n", i % SWEEP_COLOURS);
		for (line = 0; line < p->lines; line++)
			one_line(f, doc, p, &a, way, line);
		markers(f, doc, p, &a, way, (unsigned int)i);
		fputs("</g>\n", f);
	}
	fputs("</svg>\n", f);
}
