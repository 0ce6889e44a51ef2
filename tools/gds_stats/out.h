/* SPDX-License-Identifier: MIT */
/* out.h - snapshots as text, JSON and for Prometheus. */
#ifndef GDS_STATS_OUT_H
#define GDS_STATS_OUT_H

#include <stddef.h>
#include <stdio.h>

#include "snapshot.h"

/* The layout of the vendor's tool, then what it does not have; `level` 1..3. */
void out_text(FILE *f, const struct snapshot *s, int level);

/* One document, version 1: docs/gds_stats.md */
void out_json(FILE *f, const struct snapshot *const *s, unsigned int n);

/* The text exposition format, version 0.0.4 */
void out_prometheus(FILE *f, const struct snapshot *const *s, unsigned int n);

/* -- calls that are counted -- */

/* One of them: its name in the document, its label in metrics (NULL: no metric), its counter. */
struct operation {
	const char *name, *label;
	size_t at;		/* in CUfileStatsLevel1_t */
};

#define OPERATIONS 13
extern const struct operation operations[OPERATIONS];

const CUfileOpCounter_t *operation_count(const struct operation *o, const CUfileStatsLevel1_t *l);

/* -- names, which may hold any bytes -- */

/* What a terminal may get: what is not printable, or not UTF-8, is \xHH. */
void put_plain(FILE *f, const char *text);
/* Between the quotes of a JSON string; what is not UTF-8 is U+FFFD. Of a label: it is \xHH. */
void put_json(FILE *f, const char *text);
void put_label(FILE *f, const char *text);
/* Bytes of the character at `text`: 0 when it is not UTF-8. */
unsigned int utf8_bytes(const char *text);

/* "0-4(KiB)", "65536-...(KiB)"; "0-1(us)", ... */
const char *size_name(unsigned int row, char out[32]);
const char *time_name(unsigned int row, char out[32]);

/* The 16 bytes in hexadecimal. */
const char *uuid_text(const char uuid[CUFILE_GPU_UUID_LEN], char out[40]);

#endif /* GDS_STATS_OUT_H */
