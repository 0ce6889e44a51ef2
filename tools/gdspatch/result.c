// SPDX-License-Identifier: MIT
/*
 * result.c - what was inspected, planned and applied here and what the doctor says, as one JSON
 * file that can be shown to others. docs/geforce.md has its format.
 *
 * It is made of what is listed here, and of nothing else: no path of a tree, no evidence of a
 * check. Sentences go through gdscheck's scrub all the same.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "gdscheck.h"
#include "gdspatch.h"
#include "modprobe.h"
#include "scrub.h"

struct result {
	const struct gp_options *o;
	struct json_object *top, *trees, *plans, *applied;
	struct scrub scrub;
	unsigned int n; /* trees */
};

static void put(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

/* A sentence: paths in it lose their names, numbers of devices become others of their shape. */
static void put_clean(struct result *r, struct json_object *o, const char *key, const char *text)
{
	char out[4 * GC_TEXT], word[GC_TEXT], clean[2 * GC_TEXT];
	size_t used = 0, n;

	out[0] = '\0';
	while (*text && used + 1 < sizeof(out)) {
		n = strcspn(text, " ,;:()");
		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		if (!strncmp(word, "/dev/", 5))
			scrub_source(&r->scrub, word, clean, sizeof(clean));
		else if (word[0] == '/' && strncmp(word, "/sys/", 5) && strncmp(word, "/proc/", 6))
			scrub_path(&r->scrub, word, clean, sizeof(clean));
		else
			snprintf(clean, sizeof(clean), "%s", word);
		used += snprintf(out + used, sizeof(out) - used, "%s", clean);
		text += n;
		n = strspn(text, " ,;:()");
		if (used < sizeof(out))
			used += snprintf(out + used, sizeof(out) - used, "%.*s", (int)n, text);
		text += n;
	}
	n = strlen(out);
	out[scrub_text(&r->scrub, out, n)] = '\0';
	put(o, key, out);
}

/* ---- the machine ---- */

static void machine(struct result *r, const struct gc_machine *m)
{
	struct json_object *o = json_object_new_object(), *gpus = json_object_new_array(), *g;
	char id[16];

	put_clean(r, o, "kernel", m->release);
	if (!m->driver_err) {
		put(o, "driver", m->driver.version);
		put(o, "flavour", m->driver.open ? "open" : "closed");
	}
	if (!m->nvfs_err)
		put(o, "nvidia_fs", m->nvfs.ours ? "OpenGDS" : "NVIDIA");
	for (unsigned int i = 0; i < m->gpus; i++) {
		g = json_object_new_object();
		put_clean(r, g, "model", m->gpu[i].model);
		snprintf(id, sizeof(id), "%04x:%04x", m->gpu[i].pci->vendor, m->gpu[i].pci->device);
		put(g, "id", id);
		json_object_object_add(g, "bar1_mib",
				       json_object_new_int64((int64_t)(m->gpu[i].bar1 >> 20)));
		json_object_array_add(gpus, g);
	}
	json_object_object_add(o, "gpus", gpus);
	json_object_object_add(r->top, "machine", o);
}

static void doctor(struct result *r, const struct gc_machine *m)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array(), *c;
	struct gc_report report;

	if (gc_doctor(m, &report)) {
		json_object_put(list);
		json_object_put(o);
		return;
	}
	put(o, "verdict", gc_verdict_name(report.first ? report.first->verdict : GC_OK));
	if (report.first) {
		put(o, "next", report.first->check->id);
		put_clean(r, o, "next_step", report.first->remedy);
	}
	for (size_t i = 0; i < report.n; i++) {
		c = json_object_new_object();
		put(c, "id", report.finding[i].check->id);
		put(c, "verdict", gc_verdict_name(report.finding[i].verdict));
		put_clean(r, c, "text", report.finding[i].text);
		json_object_array_add(list, c);
	}
	json_object_object_add(o, "checks", list);
	json_object_object_add(r->top, "doctor", o);
	gc_report_free(&report);
}

/* ---- trees ---- */

static void refusal(struct json_object *o, const struct gp_error *why)
{
	if (why->id != GP_OK)
		put(o, "refused", gp_id_name(why->id));
}

static struct json_object *sites(const struct gp_tree *t)
{
	static const char *const state[] = { "absent", "pristine", "edited" };
	struct json_object *o = json_object_new_object();

	for (enum gp_site s = 0; s < GP_NR_SITES; s++)
		put(o, gp_site_name[s], state[t->site[s].state]);
	return o;
}

/* What each set would do now: how many files, or the refusal. */
static void plans(struct result *r, const struct gp_seen *seen)
{
	struct json_object *o;
	struct pk_plan plan;
	struct gp_error err;

	for (enum gp_set set = GP_BIF; set < GP_NR_SETS; set++) {
		o = json_object_new_object();
		json_object_object_add(o, "tree", json_object_new_int((int)r->n));
		put(o, "set", gp_set_name[set]);
		if (seen->state != GP_ST_PRISTINE) {
			refusal(o, &seen->why);
			if (seen->state == GP_ST_APPLIED)
				put(o, "refused", seen->set == set ? "applied" :
							gp_id_name(GP_OTHER_SET));
		} else if (gp_set_available(&seen->tree, set, &err) ||
			   gp_plan(&seen->tree, set, &plan, &err)) {
			refusal(o, &err);
		} else {
			json_object_object_add(o, "files", json_object_new_int((int)plan.n));
			pk_plan_free(&plan);
		}
		json_object_array_add(r->plans, o);
	}
}

static void tree(void *arg, const char *path, const struct gp_seen *seen)
{
	struct json_object *o = json_object_new_object();
	const struct gp_tree *t = &seen->tree;
	struct result *r = arg;
	struct pk_buf sig = { 0 };

	json_object_object_add(o, "tree", json_object_new_int((int)++r->n));
	put(o, "release", t->version);
	put(o, "state", gp_state_name[seen->state]);
	if (seen->set)
		put(o, "set", gp_set_name[seen->set]);
	gp_signature(&t->layout, &sig);
	put(o, "layout", sig.data ? sig.data : "");
	pk_buf_free(&sig);
	put(o, "layout_of", t->row ? t->row->tags : "");
	json_object_object_add(o, "sites", sites(t));
	refusal(o, &seen->why);
	json_object_array_add(r->trees, o);
	plans(r, seen);
	if (seen->state == GP_ST_APPLIED)
		put(r->applied, "tree", gp_set_name[seen->set]);
	(void)path;
}

static int given_tree(struct result *r, const char *path, struct gp_error *err)
{
	struct pk_error e;
	struct gp_seen seen;
	struct pk_tree pk;
	int ret = pk_tree_open(&pk, path, &e);

	if (ret)
		return gp_from_pk(err, ret, &e, path, "");
	gp_look(&seen, &pk, path);
	tree(r, path, &seen);
	gp_seen_free(&seen);
	pk_tree_close(&pk);
	return 0;
}

/* ---- what was put in place ---- */

static int keys(void *arg, const struct mp_option *op)
{
	struct json_object *list = arg;
	const char *at = strstr(op->text, "NVreg_RegistryDwords=");
	struct json_object *o;
	char text[400];

	if (!at)
		return 0;
	at += strlen("NVreg_RegistryDwords=");
	at += *at == '"';
	o = json_object_new_object();
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\" \t"), at);
	put(o, "keys", text);
	json_object_object_add(o, "ours", json_object_new_boolean(op->ours));
	json_object_array_add(list, o);
	return 0;
}

static void in_place(struct result *r, const struct gc_machine *m)
{
	struct json_object *list = json_object_new_array();
	char other[256];
	bool mine = false;

	mp_options(r->o->root, keys, list);
	json_object_object_add(r->applied, "keys", list);
	put(r->applied, "keys_in_force", m->registry);
	gp_installed(r->o->root, m->release, &mine, other, sizeof(other));
	put(r->applied, "modules", mine ? "of the kernel that runs" : *other ? "of another kernel" :
									      "none");
	json_object_object_add(r->applied, "hook",
			       json_object_new_boolean(gp_hook_there(r->o->root)));
}

static int write_out(const struct result *r, struct gp_error *err)
{
	const char *text = json_object_to_json_string_ext(
		r->top, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	FILE *f = fopen(r->o->out, "we");
	int e = f ? 0 : errno;

	if (f && (fprintf(f, "%s\n", text) < 0 || fflush(f)))
		e = errno ? errno : EIO;
	if (f && fclose(f) && !e)
		e = errno;
	return e ? gp_system(err, -e, "write", r->o->out) : 0;
}

static int fill(struct result *r, const char *path, struct gp_error *err)
{
	struct gc_machine *m = malloc(sizeof(*m));
	int ret = m ? gc_machine_read(m, r->o->root, NULL, 0) : -ENOMEM;

	if (ret) {
		gp_system(err, ret, "judge the machine below", *r->o->root ? r->o->root : "/");
		free(m);
		return ret;
	}
	machine(r, m);
	if (path)
		ret = given_tree(r, path, err);
	else
		gp_each_source(r->o->root, tree, r);
	if (!ret) {
		in_place(r, m);
		doctor(r, m);
	}
	free(m);
	return ret;
}

int gp_cmd_result(const struct gp_options *o, const char *path)
{
	struct result *r = calloc(1, sizeof(*r));
	struct gp_error err;
	int ret;

	if (!o->out || !*o->out) {
		gp_note("--out FILE is missing: where the result goes");
		free(r);
		return GP_EXIT_USAGE;
	}
	if (!r) {
		gp_system(&err, -ENOMEM, "make", o->out);
		return gp_fail(&err, false);
	}
	r->o = o;
	r->top = json_object_new_object();
	r->trees = json_object_new_array();
	r->plans = json_object_new_array();
	r->applied = json_object_new_object();
	put(r->top, "what", "OpenGDS result");
	json_object_object_add(r->top, "format", json_object_new_int(1));
	json_object_object_add(r->top, "inspected", r->trees);
	json_object_object_add(r->top, "planned", r->plans);
	json_object_object_add(r->top, "applied", r->applied);
	ret = fill(r, path, &err);
	ret = ret ? ret : write_out(r, &err);
	if (!ret)
		printf("%s: written: %u trees, no names of users, hosts, folders or devices. Look at it before you share it.\n",
		       o->out, r->n);
	json_object_put(r->top);
	free(r);
	return ret ? gp_fail(&err, false) : GP_EXIT_OK;
}

int gp_cmd_result_here(const struct gp_options *o)
{
	return gp_cmd_result(o, NULL);
}
