// SPDX-License-Identifier: MIT
/* side_json.c - what machine it was, and all rounds, for people and as JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "side_run.h"
#include "t_pattern.h"

struct facts {
	struct utsname u;
	char cpu[128], driver[256], fs[32], gpu[128];
	long cpus;
	double memory_gib;
	int cuda;
};

/* The rest of the first line of a file that begins with `key`, after blanks and a colon. */
static void line_of(const char *path, const char *key, char *out, size_t len)
{
	FILE *f = fopen(path, "re");
	char line[512], *at;

	snprintf(out, len, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		at = line + strlen(key);
		at += strspn(at, " \t:");
		at[strcspn(at, "\n")] = '\0';
		snprintf(out, len, "%s", at);
		break;
	}
	if (f)
		fclose(f);
}

static void file_system(const char *dir, char *out, size_t len)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} known[] = {
		{ 0xef53, "ext4" }, { 0x58465342, "xfs" }, { 0x9123683e, "btrfs" },
		{ 0x01021994, "tmpfs" }, { 0x794c7630, "overlay" }, { 0x6969, "nfs" },
	};
	struct statfs s;
	size_t i;

	if (statfs(dir, &s)) {
		snprintf(out, len, "unknown");
		return;
	}
	snprintf(out, len, "0x%lx", (unsigned long)s.f_type);
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].magic == (unsigned long)s.f_type)
			snprintf(out, len, "%s", known[i].name);
}

static void ask_machine(const struct side_run *run, struct facts *m)
{
	const struct side *s = &run->s[0];

	uname(&m->u);
	line_of("/proc/cpuinfo", "model name", m->cpu, sizeof(m->cpu));
	line_of("/proc/driver/nvidia/version", "NVRM version", m->driver, sizeof(m->driver));
	if (access("/proc/driver/nvidia/version", F_OK))
		snprintf(m->driver, sizeof(m->driver), "none: a simulated GPU");
	file_system(run->dir, m->fs, sizeof(m->fs));
	m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	m->memory_gib = (double)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / SIDE_GIB;
	snprintf(m->gpu, sizeof(m->gpu), "%.127s", s->hello.text);
	m->cuda = s->hello.cuda;
}

static void digest(const char *path, char hex[65], off_t *size)
{
	FILE *f = fopen(path, "re");
	struct t_sha256 s;
	struct stat st;
	char buf[65536];
	size_t n;

	*size = stat(path, &st) ? -1 : st.st_size;
	snprintf(hex, 65, "unknown");
	if (!f)
		return;
	t_sha256_init(&s);
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		t_sha256_add(&s, buf, n);
	if (!ferror(f))
		t_sha256_end(&s, hex);
	fclose(f);
}

void side_machine(FILE *f, const struct side_run *run)
{
	const struct side *s;
	struct facts m;
	char hex[65];
	off_t size;

	ask_machine(run, &m);
	fprintf(f, "kernel %s (uname -r), %ld CPUs (%s), %.0f GiB\n", m.u.release, m.cpus, m.cpu,
		m.memory_gib);
	fprintf(f, "GPU %s; driver %s; CUDA %d\n", m.gpu, m.driver, m.cuda);
	fprintf(f, "file %s (%s)\n", run->file, m.fs);
	for (s = run->s; s < run->s + run->libs; s++) {
		digest(s->path, hex, &size);
		fprintf(f, "%s: %s, version %d, sha256 %.12s\n", s->name, s->path, s->hello.version, hex);
	}
}

/* -- JSON -- */

static void text(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", *s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

static void member(FILE *f, const char *name, const char *value)
{
	fprintf(f, "\"%s\": ", name);
	text(f, value);
}

static void json_machine(FILE *f, const struct side_run *run)
{
	struct facts m;
	char when[32];
	time_t now = time(NULL);

	ask_machine(run, &m);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	fputs("  \"machine\": { ", f);
	member(f, "time", when);
	fputs(", ", f);
	member(f, "uname_r", m.u.release);
	fputs(", ", f);
	member(f, "cpu", m.cpu);
	fprintf(f, ", \"cpus\": %ld, \"memory_gib\": %.1f,\n    ", m.cpus, m.memory_gib);
	member(f, "gpu", m.gpu);
	fputs(", ", f);
	member(f, "driver", m.driver);
	fprintf(f, ", \"cuda\": %d, ", m.cuda);
	member(f, "file_system", m.fs);
	fputs(" },\n", f);
}

static void json_libraries(FILE *f, const struct side_run *run)
{
	const struct side *s;
	char hex[65];
	unsigned int i;
	off_t size;

	fputs("  \"libraries\": [", f);
	for (s = run->s; s < run->s + run->libs; s++) {
		digest(s->path, hex, &size);
		fputs(s == run->s ? "\n    { " : ",\n    { ", f);
		member(f, "name", s->name);
		fputs(", ", f);
		member(f, "path", s->path);
		fprintf(f, ", \"version\": %d, \"size\": %lld, ", s->hello.version, (long long)size);
		member(f, "sha256", hex);
		fputs(", \"env\": [", f);
		for (i = 0; s->env && s->env[i]; i++) {
			fputs(i ? ", " : "", f);
			text(f, s->env[i]);
		}
		fputs("] }", f);
	}
	fputs("\n  ],\n", f);
}

static void json_contestant(FILE *f, const struct side_run *run, const struct side_cell *c,
			    unsigned int who)
{
	const struct side_sample *s;
	unsigned int i;

	fputs("        { ", f);
	member(f, "name", run->s[who].name);
	fprintf(f, ", \"gib_s\": %.4f, \"cpu_s_per_gib\": %.5f, ", side_rate(c, who),
		side_cpu_gib(c, who));
	if (c->failed[who]) {
		member(f, "failed", c->failed[who]);
		fputs(", ", f);
	}
	fputs("\"rounds\": [", f);
	for (i = 0; i < c->rounds[who]; i++) {
		s = &c->s[who][i];
		fprintf(f,
			"%s\n          { \"seconds\": %.6f, \"bytes\": %llu, \"requests\": %llu, \"cpu_s\": %.6f",
			i ? "," : "", s->seconds, (unsigned long long)s->bytes,
			(unsigned long long)s->requests, s->cpu);
		if (s->whole > 0)
			fprintf(f, ", \"whole_s\": %.6f", s->whole);
		fprintf(f, ", \"verified\": %llu }", (unsigned long long)s->verified);
	}
	fputs("] }", f);
}

static void json_cell(FILE *f, const struct side_run *run, const struct side_cell *c)
{
	bool first = true;
	unsigned int i;

	fputs("    { ", f);
	member(f, "kind", c->kind);
	fprintf(f, ", \"op\": \"%s\", \"size\": %llu, \"threads\": %u, \"limit_only\": %s",
		c->o.flags & SIDE_WRITE ? "write" : "read", (unsigned long long)c->o.size, c->o.threads,
		c->hidden ? "true" : "false");
	if (c->resident >= 0)
		fprintf(f, ", \"cached_before\": %.4f", c->resident);
	fputs(",\n      \"contestants\": [\n", f);
	for (i = 0; i < run->count; i++) {
		if (!(c->who & 1u << i))
			continue;
		fputs(first ? "" : ",\n", f);
		first = false;
		json_contestant(f, run, c, i);
	}
	fputs("\n      ] }", f);
}

int side_json(const struct side_run *run, const struct side_cell *cell, unsigned int cells)
{
	unsigned int i;
	FILE *f;

	if (!run->json)
		return 0;
	f = fopen(run->json, "we");
	if (!f) {
		fprintf(stderr, "%s: %s\n", run->json, strerror(errno));
		return -1;
	}
	fputs("{ ", f);
	member(f, "bench", run->bench);
	fputs(", \"format\": 1,\n  \"command\": [", f);
	for (i = 0; i < (unsigned int)run->argc; i++) {
		fputs(i ? ", " : "", f);
		text(f, run->argv[i]);
	}
	fputs("],\n", f);
	json_machine(f, run);
	json_libraries(f, run);
	fprintf(f, "  \"rounds\": %d, \"seconds\": %.3f, \"registered\": %s, \"failed\": %u,\n",
		run->rounds, run->seconds, run->unregistered ? "false" : "true", run->failed);
	fputs("  \"limits\": [", f);
	for (i = 0; i < run->limits; i++) {
		fputs(i ? ", { " : "{ ", f);
		member(f, "name", run->limit[i].name);
		fputs(", ", f);
		member(f, "command", run->limit[i].command);
		fprintf(f, ", \"gib_s\": %.3f }", run->limit[i].gib_s);
	}
	fputs("],\n  \"cells\": [\n", f);
	for (i = 0; i < cells; i++) {
		fputs(i ? ",\n" : "", f);
		json_cell(f, run, &cell[i]);
	}
	fputs("\n  ]\n}\n", f);
	if (ferror(f) | fclose(f)) {
		fprintf(stderr, "%s: it could not be written: %s\n", run->json, strerror(errno));
		return -1;
	}
	return 0;
}
