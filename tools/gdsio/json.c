// SPDX-License-Identifier: MIT
/* json.c - the document of --json. */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "machine.h"

static void add_int(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

static void add_text(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static void add_bool(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

/* Six digits, as the result line has them */
static void add_real(struct json_object *o, const char *key, double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.6f", value);
	json_object_object_add(o, key, json_object_new_double_s(value, text));
}

static struct json_object *routes(const struct gdsio_result *r)
{
	struct json_object *list = json_object_new_array(), *o;
	unsigned int i;

	for (i = 0; i < OGDS_ROUTES; i++) {
		if (!r->tally.route[i])
			continue;
		o = json_object_new_object();
		add_text(o, "route", ogds_route_name(i));
		add_bool(o, "direct", OGDS_DIRECT_MASK & 1u << i);
		add_int(o, "bytes", r->tally.route[i]);
		add_real(o, "gib_per_s", gdsio_rate(r, r->tally.route[i]));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *reasons(const struct gdsio_result *r)
{
	struct json_object *list = json_object_new_array(), *o;
	unsigned int i;

	for (i = 0; gdsio_fell_back(r) && i < GDSIO_REASON_WORDS * 64; i++) {
		if (!(r->tally.reason[i / 64] & 1ULL << i % 64))
			continue;
		o = json_object_new_object();
		add_text(o, "id", ogds_reason_id(i));
		add_text(o, "text", ogds_reason_text(i));
		add_text(o, "remedy", ogds_reason_remedy(i));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *latency(const struct gdsio_result *r)
{
	struct json_object *o = json_object_new_object();
	unsigned int i;

	add_real(o, "avg", r->tally.ops ? r->tally.ns / 1000.0 / r->tally.ops : 0.0);
	for (i = 0; i < GDSIO_PARTS; i++)
		add_real(o, gdsio_parts[i].name,
			 gdsio_hist_part(&r->tally.hist, gdsio_parts[i].part) / 1000.0);
	return o;
}

struct json_object *gdsio_json_pass(const struct gdsio_result *r)
{
	struct json_object *o = json_object_new_object(), *sizes = json_object_new_object();
	const struct gdsio_tally *t = &r->tally;

	add_text(o, "io_type", gdsio_rw_name(r->rw));
	add_text(o, "xfer_type", gdsio_xfer_name(r->xfer));
	add_int(o, "threads", r->threads);
	add_int(o, "io_depth", r->depth);
	add_int(o, "queue_depth", (uint64_t)r->threads * r->depth);
	add_int(o, "mix_percent_reads", r->mix);
	add_int(sizes, "min", r->io.min);
	add_int(sizes, "max", r->io.max);
	add_int(sizes, "step", r->io.step);
	json_object_object_add(o, "io_bytes", sizes);
	add_int(o, "requested_bytes", r->requested);
	add_int(o, "bytes", t->bytes);
	add_int(o, "written_bytes", t->written);
	add_int(o, "ops", t->ops);
	add_real(o, "seconds", r->seconds);
	add_real(o, "gib_per_s", gdsio_rate(r, t->bytes));
	json_object_object_add(o, "latency_us", latency(r));
	add_real(o, "cpu_s_per_gib", gdsio_cpu_per_gib(r));
	json_object_object_add(o, "routes", routes(r));
	add_int(o, "whole_block_bytes", t->whole);
	add_int(o, "direct_bytes", t->direct);
	add_int(o, "edge_bytes", t->edge);
	add_int(o, "retried_bytes", t->retried);
	add_int(o, "witnessed_bytes", t->witnessed);
	add_bool(o, "fell_back", gdsio_fell_back(r));
	json_object_object_add(o, "reasons", reasons(r));
	add_text(o, "checksum", gdsio_checksum(r));
	add_int(o, "compared_bytes", t->checked);
	return o;
}

static struct json_object *end(const struct gdsio_end *e)
{
	struct json_object *o = json_object_new_object(), *link;

	add_text(o, "name", e->name);
	add_text(o, "pci", e->pci);
	if (!e->linked) {
		json_object_object_add(o, "link", NULL);
		return o;
	}
	link = json_object_new_object();
	add_int(link, "mt_per_s", e->link.speed);
	add_int(link, "width", e->link.width);
	add_int(link, "max_mt_per_s", e->link.max_speed);
	add_int(link, "max_width", e->link.max_width);
	json_object_object_add(o, "link", link);
	return o;
}

/* The files of a job are in one folder, or one: the first tells for all. */
static const struct gdsio_file *file_of(const struct gdsio_run *run, const struct gdsio_job *job)
{
	unsigned int i;

	for (i = 0; i < run->files && run->file[i].job != job; i++)
		;
	return i < run->files ? &run->file[i] : NULL;
}

static struct json_object *job(const struct gdsio_run *run, const struct gdsio_job *j)
{
	const struct gdsio_file *file = file_of(run, j);
	struct json_object *o = json_object_new_object();
	struct gdsio_place place;
	struct gdsio_end gpu;

	add_text(o, run->args->dirs ? "directory" : "file", j->path);
	add_int(o, "threads", j->threads);
	add_int(o, "size_bytes", j->size);
	add_int(o, "start_offset", j->start);
	json_object_object_add(o, "numa_node", j->node < 0 ? NULL : json_object_new_int(j->node));
	gdsio_place("", file ? file->fd : -1, &place);
	add_text(o, "file_system", place.fs);
	json_object_object_add(o, "drive", place.drive.name[0] ? end(&place.drive) : NULL);
	if (gdsio_needs_gpu(run->args))
		gdsio_gpu(j->gpu, &gpu);
	json_object_object_add(o, "gpu", gdsio_needs_gpu(run->args) ? end(&gpu) : NULL);
	return o;
}

struct json_object *gdsio_json_machine(void)
{
	struct json_object *o = json_object_new_object();
	struct gdsio_machine m;

	gdsio_machine("", &m);
	add_text(o, "kernel", m.kernel);
	add_text(o, "cpu", m.cpu);
	add_int(o, "cpus", m.cpus);
	add_int(o, "memory_bytes", m.memory);
	add_int(o, "cufile_version", (uint64_t)m.cufile);
	add_text(o, "nvidia_fs", m.module);
	return o;
}

struct json_object *gdsio_json_run(const struct gdsio_run *run)
{
	struct json_object *doc = json_object_new_object(), *jobs = json_object_new_array();
	const struct gdsio_args *a = run->args;
	unsigned int i;

	add_int(doc, "gdsio", GDSIO_JSON_FORMAT);
	json_object_object_add(doc, "name", a->name ? json_object_new_string(a->name) : NULL);
	json_object_object_add(doc, "machine", gdsio_json_machine());
	for (i = 0; i < a->jobs; i++)
		json_object_array_add(jobs, job(run, &a->job[i]));
	json_object_object_add(doc, "jobs", jobs);
	add_int(doc, "mem_type", a->mem);
	add_bool(doc, "o_direct", !a->buffered);
	add_bool(doc, "registered", !a->no_register && gdsio_by_cufile(a->xfer) && gdsio_in_gpu(a));
	json_object_object_add(doc, "passes", json_object_new_array());
	return doc;
}

void gdsio_json_add_pass(struct json_object *doc, const struct gdsio_run *run,
			 const struct gdsio_result *r)
{
	struct json_object *pass = gdsio_json_pass(r), *jobs;
	struct gdsio_result *one;
	unsigned int i;

	one = run->args->per_job ? malloc(sizeof(*one)) : NULL;
	if (one) {
		jobs = json_object_new_array();
		for (i = 0; i < run->args->jobs; i++) {
			gdsio_job_result(run, i, r, one);
			json_object_array_add(jobs, gdsio_json_pass(one));
		}
		json_object_object_add(pass, "jobs", jobs);
		free(one);
	}
	json_object_array_add(json_object_object_get(doc, "passes"), pass);
}
