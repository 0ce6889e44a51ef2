// SPDX-License-Identifier: MIT
/*
 * proof: proves from outside a guest where a drive's DMA went. Started by vm/run --trace;
 * see vm/README.md for the protocol and the meaning of each number.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proof.h"

static int usage(FILE *f)
{
	fputs("usage: proof watch DIR\n"
	      "       proof report DIR\n"
	      "       proof parse TRACE PCI.TXT [CARD:OFFSET:LENGTH...]\n"
	      "\n"
	      "watch   serve the checkpoints of the guest whose results folder is DIR\n"
	      "report  print the checkpoints that were served, as a table\n"
	      "parse   count the data bytes in a recorded trace; with ranges of cards, also\n"
	      "        how many of them fell into the ranges\n",
	      f);
	return f == stdout ? 0 : 2;
}

static int fail(const char *what, const char *name, int err)
{
	fprintf(stderr, "proof: %s %s: %s\n", what, name, strerror(-err));
	return 1;
}

/* The value of KEY in a line of key=value words, or "-" */
static const char *value(const char *line, const char *key, char *buf, size_t len)
{
	size_t n = strlen(key);
	const char *p = line;

	while (p && (strncmp(p, key, n) || p[n] != '=')) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	if (!p)
		return "-";
	p += n + 1;
	snprintf(buf, len, "%.*s", (int)strcspn(p, " \n"), p);
	return buf;
}

/* Bytes into or out of all cards */
static uint64_t all_bars(const char *line)
{
	char key[32], buf[32];
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < PROOF_CARDS; i++) {
		snprintf(key, sizeof(key), "bar%u_bytes", i);
		sum += strtoull(value(line, key, buf, sizeof(buf)), NULL, 10);
	}
	return sum;
}

static int report(const char *dir)
{
	static const char *const columns[] = {
		"range_bytes", "ram_bytes", "unresolved", "poisoned",
	};
	char path[4096], *line = NULL, a[256], b[256];
	size_t room = 0, i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/sections.log", dir);
	f = fopen(path, "re");
	if (!f)
		return fail("no checkpoints were served:", path, -errno);
	printf("%-20s %-16s %12s %12s %12s %12s %-8s %s\n", "checkpoint", "section", "to cards",
	       "in ranges", "to memory", "unresolved", "poisoned", "sha256");
	while (getline(&line, &room, f) > 0) {
		const char *error = strstr(line, " error=");

		printf("%-20s ", value(line, "checkpoint", a, sizeof(a)));
		if (error) {
			printf("error: %s", error + 7);
			continue;
		}
		printf("%-16s %12" PRIu64, value(line, "section", b, sizeof(b)), all_bars(line));
		for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
			printf(i < 3 ? " %12s" : " %-8s", value(line, columns[i], a, sizeof(a)));
		printf(" %.16s\n", value(line, "sha256", a, sizeof(a)));
	}
	free(line);
	fclose(f);
	return 0;
}

/* CARD:OFFSET:LENGTH words as the text of a request */
static char *ranges_text(char **arg, int n)
{
	uint64_t at = 0, off, len;
	size_t text_len = 0;
	char *text = NULL;
	unsigned int card;
	int i, end;
	FILE *f = open_memstream(&text, &text_len);

	if (!f)
		return NULL;
	for (i = 0; i < n; i++) {
		end = 0;
		if (sscanf(arg[i], "%u:%" SCNu64 ":%" SCNu64 "%n", &card, &off, &len, &end) != 3 ||
		    arg[i][end]) {
			fprintf(stderr, "proof: '%s' is no CARD:OFFSET:LENGTH\n", arg[i]);
			fclose(f);
			free(text);
			return NULL;
		}
		fprintf(f, "range %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", card, off, len, at);
		at += len;
	}
	fclose(f);
	return text;
}

static int parse(const char *trace, const char *pci_txt, char **range, int ranges)
{
	const struct proof_extent *ext;
	const struct proof_count *c;
	struct proof_request req;
	struct proof_trace *t;
	struct proof_pci pci;
	char why[512], *text;
	uint64_t hit = 0;
	unsigned int i;
	int ret, fd;
	size_t n;

	ret = proof_pci_read(pci_txt, &pci);
	if (ret)
		return fail("cannot read", pci_txt, ret);
	text = ranges_text(range, ranges);
	if (!text)
		return 2;
	ret = proof_request_parse(text, &pci, &req, why, sizeof(why));
	free(text);
	if (ret) {
		fprintf(stderr, "proof: %s\n", why);
		proof_request_free(&req);
		return 2;
	}
	fd = open(trace, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		proof_request_free(&req);
		return fail("cannot open", trace, -errno);
	}
	t = proof_trace_new(&pci);
	ret = t ? proof_trace_file(t, fd) : -ENOMEM;
	if (!ret) {
		ext = proof_trace_extents(t, &n);
		ret = proof_ranges_hit(&req, ext, n, &hit);
	}
	if (!ret) {
		c = proof_trace_count(t);
		for (i = 0; i < pci.cards; i++)
			printf("bar%u_bytes=%" PRIu64 "\n", i, c->bar[i]);
		if (ranges)
			printf("range_bytes=%" PRIu64 "\n", hit);
		printf("ram_bytes=%" PRIu64 "\nunresolved=%" PRIu64 "\nfailed_bytes=%" PRIu64
		       "\ncommands=%" PRIu64 "\n", c->ram, c->unresolved, c->failed, c->commands);
	}
	proof_trace_free(t);
	proof_request_free(&req);
	close(fd);
	return ret ? fail("cannot parse", trace, ret) : 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return usage(stdout);
	if (argc == 3 && !strcmp(argv[1], "watch"))
		return proof_watch(argv[2]) ? 1 : 0;
	if (argc == 3 && !strcmp(argv[1], "report"))
		return report(argv[2]);
	if (argc >= 4 && !strcmp(argv[1], "parse"))
		return parse(argv[2], argv[3], argv + 4, argc - 4);
	return usage(stderr);
}
