// SPDX-License-Identifier: MIT
/* explain.c - error numbers and reasons, out of the tables of facts/. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "codes.h"
#include "cufile.h"
#include "explain.h"
#include "reasons.h"

static void tell(const struct facts_code *c, const char *number, FILE *out)
{
	const struct facts_cause *k;
	unsigned int i;

	fprintf(out, "%s %s: %s\n", number, c->name, c->means);
	fprintf(out, "  seen in:  %s\n", c->seen);
	for (i = 0; i < FACTS_CAUSES && c->cause[i].what; i++) {
		k = &c->cause[i];
		fprintf(out, "  cause %u:  %s\n    seen by: %s\n    next:    %s\n", i + 1, k->what,
			k->tell, k->next);
	}
}

static void tell_errno(const struct facts_code *c, FILE *out)
{
	char number[16];

	snprintf(number, sizeof(number), "-%d", c->number);
	tell(c, number, out);
	fprintf(out, "  open, close and registration of the library give it as %d (%s)\n",
		facts_code_of_errno(c->number),
		cufileop_status_error(facts_code_of_errno(c->number)));
}

static void tell_cufile(const struct facts_code *c, FILE *out)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", c->number);
	tell(c, number, out);
	fprintf(out, "  the library's text: %s\n", cufileop_status_error(c->number));
}

static void tell_cuda(const struct facts_code *c, FILE *out)
{
	char number[32];

	snprintf(number, sizeof(number), "CUDA %d", c->number);
	tell(c, number, out);
}

/* An errno that this stack gives no meaning of its own */
static bool tell_plain_errno(int number, FILE *out)
{
	const char *name = strerrorname_np(number);

	if (!name)
		return false;
	fprintf(out, "-%d %s: %s\n", number, name, strerror(number));
	fprintf(out, "  nothing special to this stack: see errno(3) and the line of dmesg or cufile.log it stands in\n");
	return true;
}

static bool number_known(long n, FILE *out)
{
	const struct facts_code *e = NULL, *f = NULL, *c = NULL;
	bool plain = false;

	if (n < 0 && n >= -4095)
		e = facts_code_errno((int)-n);
	else if (n > CUFILEOP_BASE_ERR)
		f = facts_code_cufile((int)n);
	else if (n > 0) {
		e = facts_code_errno((int)n);
		c = facts_code_cuda((int)n);
	} else if (n < -CUFILEOP_BASE_ERR) {
		f = facts_code_cufile((int)-n);
	}
	if (e)
		tell_errno(e, out);
	else if (n && n >= -4095 && n <= 4095 && !c)
		plain = tell_plain_errno(abs((int)n), out);
	if (f)
		tell_cufile(f, out);
	if (c && e)
		fprintf(out, "\nas a result of CUDA:\n");
	if (c)
		tell_cuda(c, out);
	return e || f || c || plain;
}

static bool name_known(const char *name, FILE *out)
{
	const struct facts_code *c;
	size_t i;

	for (i = 0; (c = facts_code_errno_at(i)); i++)
		if (!strcasecmp(name, c->name) || (name[0] == '-' && !strcasecmp(name + 1, c->name))) {
			tell_errno(c, out);
			return true;
		}
	for (i = 0; (c = facts_code_cufile_at(i)); i++)
		if (!strcasecmp(name, c->name) || (!strncmp(c->name, "CU_FILE_", 8) &&
						   !strcasecmp(name, c->name + 8))) {
			tell_cufile(c, out);
			return true;
		}
	for (i = 0; (c = facts_code_cuda_at(i)); i++)
		if (!strcasecmp(name, c->name)) {
			tell_cuda(c, out);
			return true;
		}
	/* what this stack does not speak of, glibc does */
	for (i = 1; i < 134; i++)
		if (strerrorname_np((int)i) && !strcasecmp(name, strerrorname_np((int)i)))
			return tell_plain_errno((int)i, out);
	return false;
}

static bool reason_known(const char *id, FILE *out)
{
	const struct facts_reason_text *t;
	unsigned int i;

	for (i = 0; i < REASONS; i++) {
		t = facts_reason(i);
		if (strcasecmp(id, t->id))
			continue;
		fprintf(out, "%s: %s\n", t->id, t->text);
		fprintf(out, "  seen in:  ogds_explain, ogds_last_io, the library's log, gdscheck --prove, gdsio\n");
		fprintf(out, "  next:     %s\n", t->remedy);
		return true;
	}
	return false;
}

int gc_explain_error(const char *code, FILE *out)
{
	bool known;
	char *end;
	long n;

	errno = 0;
	n = strtol(code, &end, 0);
	if (end != code && !*end && !errno)
		known = number_known(n, out);
	else
		known = reason_known(code, out) || name_known(code, out);
	if (known)
		return EXPLAIN_EXIT_KNOWN;
	fprintf(out, "%.64s: not known. An errno (-22, EINVAL), a CUfileOpError (5001..%d), a result of CUDA (205) or the id of a reason (R-FS-TYPE) can be asked for\n",
		code, CU_FILE_IO_MAX_ERROR);
	return EXPLAIN_EXIT_UNKNOWN;
}
