// SPDX-License-Identifier: MIT
/*
 * jobfile.c - a run described in a file: [global] and [jobN] sections of key=value lines.
 *
 * Each key is an option of the command line and goes through the same checks. `#` begins a
 * comment, a blank line ends a section, $NAME and ${NAME} are the environment's.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "args.h"

enum section { OUTSIDE, GLOBAL, JOB };

struct reader {
	struct gdsio_parser *p;
	const char *path;
	unsigned int line;
	enum section in;
	size_t used;		/* of args->text */
	const char *io;		/* the value of bs or io_size, whichever came first */
};

static const struct key {
	const char *name;
	int opt;		/* of gdsio_take(); 0: handled by its name */
	bool flag;		/* 0 or 1: the option has no value */
} global_keys[] = {
	{ "name", 0 }, { "xfer_type", 'x' }, { "rw", 0 }, { "bs", 'i' }, { "io_size", 'i' },
	{ "size", 's' }, { "runtime", 'T' }, { "do_verify", 'V', true },
	{ "skip_bufregister", 'b', true }, { "enable_nvlinks", 'p', true },
	{ "random_seed", 'k' }, { "fill_random", 'R', true }, { "refill_buffer", 'F', true },
	{ "unaligned_random", 'U', true }, { "start_offset", 'o' }, { "mem_type", 'm' },
	{ "fd_type", 'O' }, { "batch_size", 'B' },
}, job_keys[] = {
	{ "numa_node", 'n' }, { "gpu_dev_id", 'd' }, { "num_threads", 'w' },
	{ "directory", 'D' }, { "filename", 'f' }, { "rdma_url", 'P' },
	{ "start_offset", 0 }, { "size", 0 },
};

/* The parser's text gets the place in front. */
static int at_line(struct reader *r)
{
	char text[512];

	snprintf(text, sizeof(text), "%s", r->p->why);
	return gdsio_refuse(r->p, "%s:%u: %s", r->path, r->line, text);
}

static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t\r");
	for (n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

static int put(struct reader *r, const char *from, size_t n)
{
	if (r->used + n + 1 > GDSIO_TEXT)
		return gdsio_refuse(r->p, "the values are longer than %d bytes in all", GDSIO_TEXT);
	memcpy(r->p->args->text + r->used, from, n);
	r->used += n;
	return 0;
}

/* `at` is behind a $: the variable's value, and how many characters its name took. */
static int put_variable(struct reader *r, const char *at, size_t *taken)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
				      "0123456789";
	const bool braces = *at == '{';
	const char *value;
	char name[128];
	size_t n;

	at += braces;
	n = strspn(at, letters);
	if (!n || n >= sizeof(name) || (braces && at[n] != '}'))
		return gdsio_refuse(r->p, "what stands behind $ is no name of a variable");
	memcpy(name, at, n);
	name[n] = '\0';
	value = getenv(name);
	if (!value)
		return gdsio_refuse(r->p, "$%s is not set in the environment", name);
	*taken = n + 2 * braces;
	return put(r, value, strlen(value));
}

/* The value with its variables, in memory that stays. NULL: refused. */
static const char *expand(struct reader *r, const char *text)
{
	const size_t start = r->used;
	size_t n;
	int err = 0;

	while (*text && !err) {
		n = strcspn(text, "$");
		err = put(r, text, n);
		text += n;
		if (err || !*text)
			continue;
		err = put_variable(r, text + 1, &n);
		text += n + 1;
	}
	if (err || put(r, "", 1))
		return NULL;
	return r->p->args->text + start;
}

static int take_rw(struct reader *r, const char *value)
{
	int i;

	for (i = RW_READ; i <= RW_RANDWRITE; i++) {
		if (strcasecmp(value, gdsio_rw_name((enum gdsio_rw)i)))
			continue;
		r->p->args->rw = (enum gdsio_rw)i;
		return 0;
	}
	return gdsio_refuse(r->p, "rw=%s: it takes read, write, randread or randwrite", value);
}

/* What no option of the command line has. */
static int take_special(struct reader *r, const struct key *key, const char *value)
{
	struct gdsio_job *job = r->p->job;

	if (!strcmp(key->name, "name")) {
		r->p->args->name = value;
		return 0;
	}
	if (!strcmp(key->name, "rw"))
		return take_rw(r, value);
	if (!strcmp(key->name, "size"))
		return gdsio_take_size(r->p, 's', value, 1, &job->size);
	job->own_start = true;
	return gdsio_take_size(r->p, 'o', value, 0, &job->start);
}

static int take_flag(struct reader *r, const struct key *key, const char *value)
{
	if (!strcmp(value, "0") || !strcasecmp(value, "false"))
		return 0;
	if (strcmp(value, "1") && strcasecmp(value, "true"))
		return gdsio_refuse(r->p, "%s=%s: it takes 0 or 1", key->name, value);
	return gdsio_take(r->p, key->opt, NULL);
}

/* A key that stands twice in a job would begin the next one, as options do. */
static int check_twice(struct reader *r, const struct key *key)
{
	const struct gdsio_job *job = r->p->job;
	const bool twice = (key->opt == 'd' && job->gpu >= 0) ||
			   (key->opt == 'n' && job->node >= 0) ||
			   (key->opt == 'w' && job->threads) ||
			   ((key->opt == 'f' || key->opt == 'D') && job->path);

	return twice ? gdsio_refuse(r->p, "%s: this job has one already", key->name) : 0;
}

static int take_key(struct reader *r, const char *name, const char *value)
{
	const struct key *keys = r->in == GLOBAL ? global_keys : job_keys, *key = NULL;
	const size_t n = r->in == GLOBAL ? sizeof(global_keys) / sizeof(global_keys[0]) :
					   sizeof(job_keys) / sizeof(job_keys[0]);
	size_t i;

	for (i = 0; i < n && !key; i++)
		key = strcmp(name, keys[i].name) ? NULL : &keys[i];
	if (!key)
		return gdsio_refuse(r->p, "%s is no key of a [%s] section", name,
				    r->in == GLOBAL ? "global" : "jobN");
	value = expand(r, value);
	if (!value)
		return -EINVAL;
	if (key->flag)
		return take_flag(r, key, value);
	if (r->in == JOB && check_twice(r, key))
		return -EINVAL;
	if (!key->opt)
		return take_special(r, key, value);
	if (key->opt == 'T' && !strcmp(value, "0"))
		return 0;	/* no limit, as without the key */
	if (key->opt == 'i' && r->io && strcmp(r->io, value))
		return gdsio_refuse(r->p, "bs and io_size are one thing, but differ: %s and %s",
				    r->io, value);
	if (key->opt == 'i')
		r->io = value;
	return gdsio_take(r->p, key->opt, value);
}

static int take_section(struct reader *r, char *line)
{
	size_t n = strlen(line);

	if (line[n - 1] != ']')
		return gdsio_refuse(r->p, "%s: the section's name does not end with ]", line);
	line[n - 1] = '\0';
	line++;
	if (!strcmp(line, "global")) {
		r->in = GLOBAL;
		return 0;
	}
	n = strspn(line + (strncmp(line, "job", 3) ? 0 : 3), "0123456789");
	if (strncmp(line, "job", 3) || !n || line[3 + n])
		return gdsio_refuse(r->p, "[%s] is no section; there are [global] and [job0], "
				    "[job1], ...", line);
	r->in = JOB;
	return gdsio_next_job(r->p);
}

static int take_line(struct reader *r, char *line)
{
	char *comment = line, *value;
	bool blank = !*trim(line);

	while ((comment = strchr(comment, '#')) && comment != line &&
	       !isspace((unsigned char)comment[-1]))
		comment++;
	if (comment)
		*comment = '\0';
	line = trim(line);
	if (blank)
		r->in = OUTSIDE;
	if (!*line)
		return 0;
	if (*line == '[')
		return take_section(r, line);
	value = strchr(line, '=');
	if (!value)
		return gdsio_refuse(r->p, "%s: neither a section nor key=value", line);
	*value = '\0';
	if (r->in == OUTSIDE)
		return gdsio_refuse(r->p, "%s stands in no section (a blank line ends one)",
				    trim(line));
	return take_key(r, trim(line), trim(value + 1));
}

int gdsio_jobfile(struct gdsio_parser *p, const char *path)
{
	struct reader r = { .p = p, .path = path };
	FILE *f = fopen(path, "re");
	char line[4352];
	int err = 0;

	if (!f)
		return gdsio_refuse(p, "%s: %s; name a job file, or give options (gdsio -h)", path,
				    strerror(errno));
	while (!err && fgets(line, sizeof(line), f)) {
		r.line++;
		if (strlen(line) == sizeof(line) - 1 && line[sizeof(line) - 2] != '\n')
			err = gdsio_refuse(p, "the line is longer than %zu bytes", sizeof(line) - 2);
		else
			err = take_line(&r, line);
		if (err)
			at_line(&r);
	}
	if (!err && ferror(f))
		err = gdsio_refuse(p, "%s: it cannot be read", path);
	fclose(f);
	return err;
}
