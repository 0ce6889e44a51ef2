// SPDX-License-Identifier: MIT
/* scrub.c - takes names out of what is recorded. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "scrub.h"

#define EXTENDED 256	/* where the extended capabilities of a PCI function begin */
#define ID_SERIAL 3	/* that of a serial number: 8 bytes behind its header */

static unsigned int number_of(struct scrub *s, const char *kind, const char *name)
{
	unsigned int i, number = 1;

	for (i = 0; i < s->n; i++) {
		if (strcmp(s->known[i].kind, kind))
			continue;
		if (!strncasecmp(s->known[i].name, name, SCRUB_NAME - 1))
			return s->known[i].number;
		number++;
	}
	/* a machine of more names than that: the rest shares one */
	if (s->n == SCRUB_NAMES)
		return number;
	s->known[s->n].kind = kind;
	snprintf(s->known[s->n].name, SCRUB_NAME, "%s", name);
	s->known[s->n++].number = number;
	return number;
}

void scrub_name(struct scrub *s, const char *kind, const char *name, char *out, size_t len)
{
	snprintf(out, len, "%s%u", kind, number_of(s, kind, name));
}

/* Length of what looks like `shape` at p: x is a hexadecimal digit, others are themselves. */
static size_t shaped(const char *p, const char *end, const char *shape)
{
	size_t n = strlen(shape), i;

	if ((size_t)(end - p) < n)
		return 0;
	for (i = 0; i < n; i++)
		if (shape[i] == 'x' ? !isxdigit((unsigned char)p[i]) : p[i] != shape[i])
			return 0;
	/* part of a longer number is none */
	return p + n < end && isxdigit((unsigned char)p[n]) ? 0 : n;
}

/* "naa.", "eui." and eight digits at least */
static size_t wide(const char *p, const char *end)
{
	size_t n = 4;

	if (end - p < 12 || (strncasecmp(p, "naa.", 4) && strncasecmp(p, "eui.", 4)))
		return 0;
	while (p + n < end && isxdigit((unsigned char)p[n]))
		n++;
	return n >= 12 ? n : 0;
}

static void put(struct scrub *s, const char *kind, char *at, size_t n, const char *fmt_head)
{
	char name[SCRUB_NAME], tail[16];
	size_t k;

	snprintf(name, sizeof(name), "%.*s", (int)n, at);
	k = (size_t)snprintf(tail, sizeof(tail), "%u", number_of(s, kind, name));
	memcpy(at, fmt_head, n < strlen(fmt_head) ? n : strlen(fmt_head));
	memcpy(at + n - k, tail, k);
}

size_t scrub_text(struct scrub *s, char *text, size_t len)
{
	static const char uuid[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	static const char mac[] = "xx:xx:xx:xx:xx:xx";
	char *p, *end = text + len;
	size_t n;

	for (p = text; p < end; p += n ? n : 1) {
		n = 0;
		/* not in the middle of a number */
		if (p > text && isxdigit((unsigned char)p[-1]))
			continue;
		n = shaped(p, end, uuid);
		if (n) {
			put(s, "uuid", p, n, "00000000-0000-4000-8000-000000000000");
			continue;
		}
		n = shaped(p, end, mac);
		if (n) {
			put(s, "mac", p, n, "02:00:00:00:00:00");
			continue;
		}
		n = wide(p, end);
		if (n)
			put(s, "wwn", p + 4, n - 4, "0000000000000000000000000000000000000000");
	}
	return len;
}

void scrub_path(struct scrub *s, const char *path, char *out, size_t len)
{
	static const char *const usual[] = {
		"boot", "data", "dev", "efi", "etc", "home", "hugepages", "lib", "local", "media",
		"mnt", "mqueue", "nvme", "opt", "proc", "pts", "run", "scratch", "shm", "srv",
		"sys", "tmp", "usr", "var", "log", "cache", "kernel", "fs", "cgroup", "bpf",
		"debug", "tracing", "security", "config",
	};
	char one[SCRUB_NAME], word[SCRUB_NAME];
	size_t used = 0, n, i;

	out[0] = '\0';
	for (; *path; path += n) {
		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (!n)
			break;
		snprintf(one, sizeof(one), "%.*s", (int)n, path);
		for (i = 0; i < sizeof(usual) / sizeof(usual[0]) && strcmp(usual[i], one); i++)
			;
		if (i == sizeof(usual) / sizeof(usual[0]))
			scrub_name(s, "dir", one, word, sizeof(word));
		else
			snprintf(word, sizeof(word), "%s", one);
		if (used + strlen(word) + 2 > len)
			return;
		used += (size_t)snprintf(out + used, len - used, "/%s", word);
	}
	if (!used)
		snprintf(out, len, "/");
}

/* "nvme0n1p2", "sda1", "md127": names that the kernel gives */
static bool is_device(const char *name)
{
	static const struct { const char *kind; size_t letters; const char *then; } kinds[] = {
		{ "nvme", 0, "0123456789cnp" }, { "md", 0, "0123456789p" },
		{ "dm-", 0, "0123456789" },	{ "loop", 0, "0123456789p" },
		{ "mmcblk", 0, "0123456789p" },	{ "sd", 3, "0123456789" },
		{ "vd", 3, "0123456789" },	{ "xvd", 3, "0123456789" },
	};
	const char *rest;
	size_t i, n;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		n = strlen(kinds[i].kind);
		if (strncmp(name, kinds[i].kind, n))
			continue;
		rest = name + n;
		n = kinds[i].letters ? strspn(rest, "abcdefghijklmnopqrstuvwxyz") : 0;
		if (n <= kinds[i].letters && strspn(rest + n, kinds[i].then) == strlen(rest + n))
			return true;
	}
	return false;
}

void scrub_source(struct scrub *s, const char *source, char *out, size_t len)
{
	static const char mapper[] = "/dev/mapper/";
	char word[SCRUB_NAME];

	if (!strncmp(source, mapper, strlen(mapper))) {
		scrub_name(s, "vol", source + strlen(mapper), word, sizeof(word));
		snprintf(out, len, "%s%s", mapper, word);
	} else if (!strncmp(source, "/dev/", 5) && is_device(source + 5)) {
		snprintf(out, len, "%s", source);
	} else {
		scrub_name(s, "source", source, out, len);
	}
}

void scrub_config(unsigned char *c, size_t len)
{
	size_t at = EXTENDED, left = len / 8;

	while (at >= EXTENDED && at + 12 <= len && left--) {
		if ((c[at] | c[at + 1] << 8) == ID_SERIAL)
			memset(c + at + 4, 0, 8);
		at = (size_t)((c[at + 2] | c[at + 3] << 8) >> 4) & ~3UL;
	}
}
