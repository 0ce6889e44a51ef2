/* SPDX-License-Identifier: MIT */
/* json.h - a run as JSON; the form is described in docs/gdsio.md. */
#ifndef GDSIO_JSON_H
#define GDSIO_JSON_H

#include <json-c/json.h>

#include "gdsio.h"

#define GDSIO_JSON_FORMAT 1

/* The caller owns what is returned. */
struct json_object *gdsio_json_run(const struct gdsio_run *run);
struct json_object *gdsio_json_machine(void);
struct json_object *gdsio_json_pass(const struct gdsio_result *r);

/* Adds a pass of all jobs, and with -J those of each. */
void gdsio_json_add_pass(struct json_object *doc, const struct gdsio_run *run,
			 const struct gdsio_result *r);

#endif /* GDSIO_JSON_H */
