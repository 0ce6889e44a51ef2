// SPDX-License-Identifier: MIT
/*
 * page.c - the page of a sweep: one file, with its style and its plots in it and no script.
 *
 * Nothing is fetched: no font, no image, no address. It is as readable on a telephone as on a
 * wide screen, in light and dark; only the table scrolls sideways, in itself.
 */
#include <inttypes.h>
#include <string.h>

#include "number.h"
#include "sweep.h"

static const char style[] =
	":root{color-scheme:light dark;--bg:#fcfcfb;--fg:#1c1f23;--dim:#5b6470;--line:#dfe2e6;"
	"--card:#fff;--bad:#a31515;\n"
	"--w0:#0b62c4;--w1:#b45309;--w2:#047857;--w3:#a21caf;--w4:#b91c1c;--w5:#0e7490;"
	"--w6:#6d28d9;--w7:#4d5c0a}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e7e9ec;--dim:#a0a8b3;"
	"--line:#343a42;--card:#1c2026;--bad:#ff8f8f;\n"
	"--w0:#6cb0ff;--w1:#f5a34a;--w2:#4fd09d;--w3:#ec8df5;--w4:#ff8b8b;--w5:#5cd0e6;"
	"--w6:#b79cff;--w7:#c5d25c}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;max-width:1400px;padding:1rem;background:var(--bg);color:var(--fg);"
	"font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}\n"
	"h1{font-size:1.35rem;margin:.2rem 0}h2{font-size:1.1rem;margin:1.8rem 0 .4rem}\n"
	"p{margin:.3rem 0;max-width:75ch}.dim,figcaption,dt{color:var(--dim)}\n"
	".bad{border-left:4px solid var(--bad);padding:.3rem .7rem;background:var(--card)}\n"
	"dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,260px),1fr));"
	"gap:.6rem 1.2rem;margin:1rem 0}\n"
	"dt{font-size:.8rem}dd{margin:0}\n"
	".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,330px),1fr));"
	"gap:1rem}\n"
	"figure{margin:0;padding:.5rem;background:var(--card);border:1px solid var(--line);"
	"border-radius:6px;max-width:640px}\n"
	"figcaption{font-size:.85rem}svg{display:block;width:100%;height:auto}\n"
	"svg text{font:11px system-ui,sans-serif;fill:var(--fg)}svg .unit{fill:var(--dim)}\n"
	".grid{stroke:var(--line);fill:none}.l{fill:none;stroke:currentColor;stroke-width:1.8}\n"
	".dashed{stroke-dasharray:5 4}\n"
	".m{fill:currentColor;stroke:currentColor;stroke-width:1.6}.hollow{fill:var(--card)}\n"
	".legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.6rem 0;"
	"list-style:none}.legend svg{display:inline-block;width:34px;height:14px;"
	"vertical-align:-2px;margin-right:.4rem}.legend span{color:var(--fg)}\n"
	".scroll{overflow-x:auto;border:1px solid var(--line);border-radius:6px;"
	"background:var(--card)}\n"
	"table{border-collapse:collapse;width:100%;font-size:.82rem;font-variant-numeric:tabular-nums;"
	"overflow-wrap:normal}\n"
	"th,td{padding:.3rem .45rem;text-align:right;border-bottom:1px solid var(--line);"
	"white-space:nowrap}\n"
	"td.t,th.t{text-align:left}td.wrap{white-space:normal}.why{display:block}"
	".why div{margin:.4rem 0}\n";

void sweep_escape(FILE *f, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		default: fputc(*text, f);
		}
	}
}

/* -- facts -- */

static void fact(FILE *f, const char *name, const char *value)
{
	fprintf(f, "<div><dt>%s</dt><dd>", name);
	sweep_escape(f, *value ? value : "unknown");
	fputs("</dd></div>\n", f);
}

/* "16.0GT/s x16", as gdsio prints it */
static const char *link_text(struct json_object *end, char text[64])
{
	struct json_object *l = sweep_get(end, "link");
	const unsigned int speed = (unsigned int)sweep_int(l, "mt_per_s");

	if (!l)
		return "unknown";
	snprintf(text, 64, "%u.%uGT/s x%" PRIu64, speed / 1000, speed % 1000 / 100,
		 sweep_int(l, "width"));
	return text;
}

static void end_fact(FILE *f, const char *name, struct json_object *end)
{
	char text[512], link[64];

	if (!end)
		return;
	snprintf(text, sizeof(text), "%s, PCI %s, link %s", sweep_text(end, "name"),
		 *sweep_text(end, "pci") ? sweep_text(end, "pci") : "none",
		 link_text(end, link));
	fact(f, name, text);
}

/* The job of the first point that has this end, "drive" or "gpu". */
static struct json_object *find_end(struct json_object *doc, const char *key)
{
	struct json_object *list = sweep_get(doc, "points"), *end;
	size_t i;

	for (i = 0; list && i < json_object_array_length(list); i++) {
		end = sweep_get(sweep_get(json_object_array_get_idx(list, i), "job"), key);
		if (end)
			return end;
	}
	return NULL;
}

static void facts(FILE *f, struct json_object *doc)
{
	struct json_object *m = sweep_get(doc, "machine"), *s = sweep_get(doc, "settings");
	struct json_object *fs = find_end(doc, "file_system");
	char text[512], size[24];

	fputs("<dl>\n", f);
	snprintf(text, sizeof(text), "%s (%s)", sweep_text(s, "file"),
		 fs ? json_object_get_string(fs) : "unknown");
	fact(f, "File", text);
	end_fact(f, "Drive", find_end(doc, "drive"));
	end_fact(f, "GPU", find_end(doc, "gpu"));
	snprintf(text, sizeof(text), "%s, %s of data, %" PRIu64 " s a point (0: once)",
		 sweep_text(s, "io_type"), gdsio_size_text(sweep_int(s, "data_bytes"), size),
		 sweep_int(s, "seconds"));
	fact(f, "I/O", text);
	fact(f, "Kernel", sweep_text(m, "kernel"));
	snprintf(text, sizeof(text), "%s, %" PRIu64 " usable, %.1f GiB of memory",
		 sweep_text(m, "cpu"), sweep_int(m, "cpus"),
		 sweep_int(m, "memory_bytes") / 1073741824.0);
	fact(f, "Processors", text);
	snprintf(text, sizeof(text), "libcufile %" PRIu64 ".%" PRIu64 ", nvidia-fs %s",
		 sweep_int(m, "cufile_version") / 1000, sweep_int(m, "cufile_version") % 1000 / 10,
		 sweep_text(m, "nvidia_fs"));
	fact(f, "Software", text);
	fact(f, "Began", sweep_text(doc, "began"));
	fputs("</dl>\n", f);
}

/* -- plots -- */

static double throughput(struct json_object *point, unsigned int line)
{
	return sweep_real(sweep_result(point), "gib_per_s");
}

static double latency(struct json_object *point, unsigned int line)
{
	return sweep_real(sweep_get(sweep_result(point), "latency_us"), line ? "p99" : "p50");
}

static double cpu(struct json_object *point, unsigned int line)
{
	return sweep_real(sweep_result(point), "cpu_s_per_gib");
}

static const struct metric {
	const char *name, *unit, *text;
	double (*value)(struct json_object *point, unsigned int line);
	unsigned int lines;
} metrics[] = {
	{ "Throughput", "GiB/s", "All bytes of a point over its time. Where they went several "
	  "ways, each has its own rate in the point's words and in the table.", throughput, 1 },
	{ "Latency", "us", "Of one I/O: the median (solid), and what 99 of 100 do not exceed "
	  "(dashed).", latency, 2 },
	{ "CPU", "s/GiB", "Time of the process, user and system, for each GiB.", cpu, 1 },
};

/* Was any point of the way measured, or none tried yet? */
static bool all_failed(struct json_object *doc, const char *way)
{
	struct json_object *list = sweep_get(doc, "points"), *p;
	bool tried = false;
	size_t i;

	for (i = 0; list && i < json_object_array_length(list); i++) {
		p = json_object_array_get_idx(list, i);
		if (strcmp(sweep_text(p, "way"), way))
			continue;
		if (sweep_result(p))
			return false;
		tried = true;
	}
	return tried;
}

static void legend(FILE *f, struct json_object *doc)
{
	struct json_object *ways = sweep_get(doc, "ways");
	size_t n = ways ? json_object_array_length(ways) : 0, i;
	const char *way;

	fputs("<ul class=\"legend\">\n", f);
	for (i = 0; i < n; i++) {
		fprintf(f, "<li class=\"w%zu\"><svg viewBox=\"0 0 34 14\" aria-hidden=\"true\">"
			"<path class=\"l\" d=\"M0 7H34\"/>", i % SWEEP_COLOURS);
		sweep_marker(f, (unsigned int)i, 17, 7, false);
		fputs("</svg><span>", f);
		way = json_object_get_string(json_object_array_get_idx(ways, i));
		sweep_escape(f, way);
		fprintf(f, "%s</span></li>\n", all_failed(doc, way) ? " (failed)" : "");
	}
	fputs("<li class=\"dim\">hollow: bytes went another way than the name says</li></ul>\n", f);
}

static uint64_t threads_of(struct json_object *points, size_t i)
{
	return sweep_int(json_object_array_get_idx(points, i), "threads");
}

/* A figure for each number of threads, in the order of the points. */
static void figures(FILE *f, struct json_object *doc, const struct metric *m)
{
	struct json_object *list = sweep_get(doc, "points");
	struct plot p = { m->name, m->unit, 0, m->value, m->lines };
	size_t i, j;

	fputs("<div class=\"plots\">\n", f);
	for (i = 0; list && i < json_object_array_length(list); i++) {
		for (j = 0; j < i && threads_of(list, j) != threads_of(list, i); j++)
			;
		if (j < i)
			continue;
		p.threads = (unsigned int)threads_of(list, i);
		fprintf(f, "<figure><figcaption>%u thread%s, %s</figcaption>\n", p.threads,
			p.threads == 1 ? "" : "s", m->unit);
		sweep_plot(f, doc, &p);
		fputs("</figure>\n", f);
	}
	fputs("</div>\n", f);
}

static void plots(FILE *f, struct json_object *doc)
{
	size_t i;

	for (i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		fprintf(f, "<section><h2>%s</h2>\n<p class=\"dim\">%s</p>\n", metrics[i].name,
			metrics[i].text);
		legend(f, doc);
		figures(f, doc, &metrics[i]);
		fputs("</section>\n", f);
	}
}

/* -- the table -- */

static void cell(FILE *f, const char *class, const char *text)
{
	fprintf(f, "<td%s%s%s>", class ? " class=\"" : "", class ? class : "", class ? "\"" : "");
	sweep_escape(f, text);
	fputs("</td>", f);
}

/* The names of the reasons; what they mean stands once, below the table. */
static void reason_ids(FILE *f, struct json_object *point)
{
	struct json_object *list = sweep_get(sweep_result(point), "reasons");
	size_t i;

	fputs("<td class=\"t\">", f);
	for (i = 0; list && i < json_object_array_length(list); i++) {
		fputs(i ? " " : "", f);
		sweep_escape(f, sweep_text(json_object_array_get_idx(list, i), "id"));
	}
	fputs("</td>", f);
}

static void numbers(FILE *f, struct json_object *point)
{
	static const char *const part[] = { "p50", "p90", "p99", "p99.9", "max" };
	struct json_object *r = sweep_result(point), *job = sweep_get(point, "job");
	char text[256], link[2][64];
	size_t i;

	cell(f, NULL, sweep_rates(point, text, sizeof(text)));
	for (i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		fprintf(f, "<td>%.1f</td>", sweep_real(sweep_get(r, "latency_us"), part[i]));
	fprintf(f, "<td>%.3f</td><td>%" PRIu64 "</td>", sweep_real(r, "cpu_s_per_gib"),
		sweep_int(r, "queue_depth"));
	cell(f, "t", sweep_checksum(point));
	snprintf(text, sizeof(text), "%s / %s", link_text(sweep_get(job, "drive"), link[0]),
		 sweep_get(job, "gpu") ? link_text(sweep_get(job, "gpu"), link[1]) : "no GPU");
	cell(f, "t", text);
	reason_ids(f, point);
}

static void row(FILE *f, struct json_object *point)
{
	char text[256];

	fprintf(f, "<tr data-route=\"");
	sweep_escape(f, sweep_routes(point, text, sizeof(text)));
	fputs("\">", f);
	cell(f, NULL, gdsio_size_text(sweep_int(point, "io_bytes"), text));
	fprintf(f, "<td>%" PRIu64 "</td>", sweep_int(point, "threads"));
	cell(f, "t", sweep_text(point, "way"));
	if (sweep_result(point)) {
		cell(f, "t", sweep_routes(point, text, sizeof(text)));
		numbers(f, point);
	} else {
		fputs("<td class=\"t wrap\" colspan=\"12\">failed: ", f);
		sweep_escape(f, sweep_text(point, "error"));
		fputs("</td>", f);
	}
	fputs("</tr>\n", f);
}

/* Has a point before this one the reason, too? */
static bool told_before(struct json_object *points, size_t before, const char *id)
{
	struct json_object *list;
	size_t i, j;

	for (i = 0; i < before; i++) {
		list = sweep_get(sweep_result(json_object_array_get_idx(points, i)), "reasons");
		for (j = 0; list && j < json_object_array_length(list); j++) {
			if (!strcmp(sweep_text(json_object_array_get_idx(list, j), "id"), id))
				return true;
		}
	}
	return false;
}

static void reasons(FILE *f, struct json_object *doc)
{
	struct json_object *points = sweep_get(doc, "points"), *list, *r;
	size_t i, j;

	fputs("<dl class=\"why\">\n", f);
	for (i = 0; points && i < json_object_array_length(points); i++) {
		list = sweep_get(sweep_result(json_object_array_get_idx(points, i)), "reasons");
		for (j = 0; list && j < json_object_array_length(list); j++) {
			r = json_object_array_get_idx(list, j);
			if (told_before(points, i, sweep_text(r, "id")))
				continue;
			fputs("<div><dt>", f);
			sweep_escape(f, sweep_text(r, "id"));
			fputs("</dt><dd>", f);
			sweep_escape(f, sweep_text(r, "text"));
			fputs("; ", f);
			sweep_escape(f, sweep_text(r, "remedy"));
			fputs("</dd></div>\n", f);
		}
	}
	fputs("</dl>\n", f);
}

static void table(FILE *f, struct json_object *doc)
{
	struct json_object *list = sweep_get(doc, "points");
	size_t i;

	fputs("<section><h2>All points</h2>\n<div class=\"scroll\" tabindex=\"0\"><table>\n"
	      "<thead><tr><th>I/O</th><th>threads</th><th class=\"t\">way</th>"
	      "<th class=\"t\">route</th><th>GiB/s</th><th>p50 us</th><th>p90</th><th>p99</th>"
	      "<th>p99.9</th><th>max</th><th>CPU s/GiB</th><th>depth</th>"
	      "<th class=\"t\">checksum</th><th class=\"t\">link of drive / GPU</th>"
	      "<th class=\"t\">reason</th></tr></thead>\n<tbody>\n", f);
	for (i = 0; list && i < json_object_array_length(list); i++)
		row(f, json_object_array_get_idx(list, i));
	fputs("</tbody></table></div>\n", f);
	reasons(f, doc);
	fputs("</section>\n", f);
}

void sweep_page(FILE *f, struct json_object *doc)
{
	struct json_object *list = sweep_get(doc, "points");
	int i;

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<title>gdsio sweep: ", f);
	sweep_escape(f, sweep_text(sweep_get(doc, "settings"), "file"));
	fprintf(f, "</title>\n<style>\n%s", style);
	for (i = 0; i < SWEEP_COLOURS; i++)
		fprintf(f, ".w%d{color:var(--w%d)}", i, i);
	fputs("\n</style></head><body>\n<header><h1>gdsio sweep: ", f);
	sweep_escape(f, sweep_text(sweep_get(doc, "settings"), "file"));
	fputs("</h1>\n", f);
	if (!json_object_get_boolean(sweep_get(doc, "complete")))
		fprintf(f, "<p class=\"bad\"><strong>Incomplete:</strong> %zu of %" PRIu64
			" points were measured.</p>\n", list ? json_object_array_length(list) : 0,
			sweep_int(doc, "points_asked"));
	fputs("<p class=\"dim\">Both axes are logarithmic. Point at a marker for its route and its "
	      "numbers; the table has them all.</p>\n", f);
	facts(f, doc);
	fputs("</header>\n<main>\n", f);
	plots(f, doc);
	table(f, doc);
	fputs("</main></body></html>\n", f);
}
