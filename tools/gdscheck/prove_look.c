// SPDX-License-Identifier: MIT
/* prove_look.c - the module's counters, the kernel log and the library's log. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codes.h"
#include "explain.h"
#include "prove_look.h"
#include "reasons.h"

#define PROC "/proc/driver/nvidia-fs/"
#define KMSG_RECORD 8192	/* the kernel's records are shorter */

static void read_text(const char *path, char *out, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n;

	if (fd >= 0) {
		while (have < len - 1 && (n = read(fd, out + have, len - 1 - have)) > 0)
			have += (size_t)n;
		close(fd);
	}
	out[have] = '\0';
}

void prove_look_begin(struct look *look)
{
	read_text(PROC "stats", look->stats, sizeof(look->stats));
	read_text(PROC "opengds", look->own, sizeof(look->own));
	look->kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (look->kmsg < 0)
		look->kmsg = -errno;
	else
		lseek(look->kmsg, 0, SEEK_END);
}

/* ---- counters ---- */

/* The label of a line ("Reads"): its bytes up to a tab or a colon */
static size_t label(const char *line)
{
	return strcspn(line, "\t:\n");
}

/*
 * The value of `key` on the lines of that label; the n-th such line, because a label may come
 * twice. False: not there.
 */
static bool value_of(const char *text, const char *name, size_t name_len, const char *key,
		     size_t key_len, long long *out)
{
	const char *line, *p, *end;

	for (line = text; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		if (label(line) != name_len || strncmp(line, name, name_len))
			continue;
		for (p = line + name_len; p < end; p++) {
			if (key_len && !strncmp(p, key, key_len) && p[key_len] == '=' &&
			    isspace((unsigned char)p[-1])) {
				*out = strtoll(p + key_len + 1, NULL, 10);
				return true;
			}
			if (!key_len && *p == ':') {
				*out = strtoll(p + 1, NULL, 10);
				return true;
			}
		}
	}
	return false;
}

static void change(const char *before, const char *line, size_t name, const char *key,
		   size_t key_len, const char *number, struct prove_notes *notes)
{
	long long was = 0, is;
	char *end;

	is = strtoll(number, &end, 10);
	if (end == number || !value_of(before, line, name, key, key_len, &was) || is == was)
		return;
	prove_note(notes, "%.*s%s%.*s: %+lld", (int)name, line, key_len ? " " : "", (int)key_len,
		   key, is - was);
}

void prove_look_changes(const char *before, const char *after, struct prove_notes *notes)
{
	const char *line, *end, *p, *key;
	size_t name;
	bool pairs;

	for (line = after; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		name = label(line);
		if (!name || line[name] == '\n' || !line[name])
			continue;
		pairs = false;
		for (p = line + name; p < end; p++)
			if (*p == '=') {
				for (key = p; key > line && !isspace((unsigned char)key[-1]); key--)
					;
				pairs = true;
				change(before, line, name, key, (size_t)(p - key), p + 1, notes);
			}
		p = memchr(line, ':', (size_t)(end - line));
		if (!pairs && p && p < end)
			change(before, line, name, "", 0, p + 1, notes);
	}
}

/* Why a storage driver is not attached: that is what a refusal of the module rests on. */
static void note_drivers(const char *own, struct prove_notes *notes)
{
	const char *line, *end;

	for (line = own; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		if (!strncmp(line, "driver nvme:", 12) || !strncmp(line, "p2pdma:", 7))
			prove_note(notes, "/proc/driver/nvidia-fs/opengds: %.*s",
				   (int)(end - line), line);
	}
}

/* ---- the kernel log ---- */

/* A record is "PRIORITY,NUMBER,TIME,-;TEXT"; each kind is told once. */
static void note_record(char *record, struct prove_notes *notes, const struct explain_kind **last)
{
	const struct explain_kind *k;
	char *text = strchr(record, ';');
	const struct facts_code *c;
	int e;

	if (!text)
		return;
	text[strcspn(text, "\n")] = '\0';
	k = explain_kind(++text);
	if (!k || k == *last)
		return;
	*last = k;
	e = explain_errno(text);
	c = e ? facts_code_errno(e) : NULL;
	prove_note(notes, "%s", text);
	prove_note(notes, "  means: %s; %s", k->means, k->next);
	if (c && c->cause[0].what)
		prove_note(notes, "  -%d %s: %s", e, c->name, c->means);
}

static void note_kmsg(int fd, struct prove_notes *notes)
{
	const struct explain_kind *last = NULL;
	char record[KMSG_RECORD];
	ssize_t n;

	for (;;) {
		n = read(fd, record, sizeof(record) - 1);
		/* EPIPE: records were overwritten before they were read; the next read goes on */
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			return;
		record[n] = '\0';
		note_record(record, notes, &last);
	}
}

void prove_look_end(struct look *look, struct prove_notes *counters, struct prove_notes *kernel)
{
	char now[LOOK_TEXT];

	read_text(PROC "stats", now, sizeof(now));
	prove_look_changes(look->stats, now, counters);
	read_text(PROC "opengds", now, sizeof(now));
	prove_look_changes(look->own, now, counters);
	note_drivers(now, kernel);
	if (look->kmsg < 0) {
		prove_note(kernel, "the kernel log may not be read (%s): run as root to see its lines",
			   strerror(-look->kmsg));
		return;
	}
	note_kmsg(look->kmsg, kernel);
	close(look->kmsg);
}

/* ---- the library's log ---- */

/* The reason that a line names first. Rules (strict, a list of routes) are no causes. */
static unsigned int reason_in(const char *line)
{
	const char *p, *best = NULL;
	unsigned int i, found = 0;
	size_t n;

	for (i = 1; i < REASONS; i++) {
		if (i == REASON_STRICT || i == REASON_COMPAT_FORBIDDEN || i == REASON_ROUTE_DENIED)
			continue;
		n = strlen(facts_reason(i)->id);
		p = strstr(line, facts_reason(i)->id);
		if (p && p[n] != '-' && !isupper((unsigned char)p[n]) && (!best || p < best)) {
			best = p;
			found = i;
		}
	}
	return found;
}

void prove_look_log(const char *path, struct prove_notes *notes, const char *name,
		    struct prove_why *why)
{
	const struct explain_kind *k, *last = NULL;
	const struct facts_reason_text *t;
	unsigned int reason = 0, r;
	char *line = NULL, *text;
	FILE *f = fopen(path, "re");
	size_t len = 0;

	if (!f)
		return;
	while (getline(&line, &len, f) >= 0) {
		r = reason_in(line);
		reason = r ? r : reason;
		text = strstr(line, "] ERROR ");
		if (!text)
			text = strstr(line, "] WARN ");
		if (!text)
			continue;
		text[strcspn(text, "\n")] = '\0';
		/* what was refused under strict stands in the table; others come once each */
		k = explain_kind(line);
		if (k && k != last && strcmp(k->name, "log-strict"))
			prove_note(notes, "%s: %s", name, text + 2);
		last = k;
	}
	free(line);
	fclose(f);
	if (!reason)
		return;
	t = facts_reason(reason);
	snprintf(why->id, sizeof(why->id), "%s", t->id);
	snprintf(why->text, sizeof(why->text), "%s", t->text);
	snprintf(why->remedy, sizeof(why->remedy), "%s", t->remedy);
}
