// SPDX-License-Identifier: MIT
/*
 * t_section.c - a section of the proof around a program that does not ask for it itself.
 *
 *   t_section begin NAME
 *   t_section end NAME --bar-bytes N [--ram-max N] [--ram-min N]
 *             [--witness FILE --file F --buffers N]
 *
 * `end` fails unless the drives moved exactly --bar-bytes over the cards' BARs since
 * `begin`, and not more (or less) than that many other data bytes. With the lines of
 * t_witness.so: that there are so many buffers, each was poison before, all those bytes
 * went into or out of the buffers, and each holds what the file has at the place of the
 * buffer's last request. Sizes have the suffixes K, M and G.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t_checkpoint.h"
#include "t_gpu.h"
#include "t_pattern.h"

struct wanted {
	const char *name, *witness, *file;
	uint64_t bar, ram_max, ram_min;
	unsigned int buffers;
	bool has_bar;
};

static int bad(const char *name, const char *what, uint64_t is, uint64_t want)
{
	printf("BAD  %s: %s: %llu, wanted %llu\n", name, what, (unsigned long long)is,
	       (unsigned long long)want);
	return 1;
}

static int check_counts(const struct wanted *w, const struct t_proof *p)
{
	int n = 0;

	if (p->bar_all != w->bar)
		n += bad(w->name, "bytes that drives moved over BARs", p->bar_all, w->bar);
	if (p->unresolved)
		n += bad(w->name, "I/O addresses without a translation", p->unresolved, 0);
	if (p->ram > w->ram_max)
		n += bad(w->name, "most bytes to or from host memory", p->ram, w->ram_max);
	if (p->ram < w->ram_min)
		n += bad(w->name, "fewest bytes to or from host memory", p->ram, w->ram_min);
	return n;
}

static void file_digest(int fd, const char *path, uint64_t off, size_t size, char hex[65])
{
	char *buf = malloc(size);

	if (!buf)
		t_die("out of memory");
	if (pread(fd, buf, size, (off_t)off) != (ssize_t)size)
		t_die("%s: read at %llu: %s", path, (unsigned long long)off, strerror(errno));
	t_sha256(buf, size, hex);
	free(buf);
}

/* One line of t_witness.so; adds the buffer's bytes of DMA. */
static int check_buffer(const struct wanted *w, int fd, const char *line, uint64_t *moved)
{
	unsigned long long off, range;
	char hex[65], want[65];
	size_t len, size;
	int poisoned;

	if (sscanf(line, "buffer len=%zu poisoned=%d off=%llu size=%zu range=%llu sha256=%64s",
		   &len, &poisoned, &off, &size, &range, hex) != 6)
		t_die("%s: a line makes no sense: %s", w->witness, line);
	*moved += range;
	if (!poisoned) {
		printf("BAD  %s: a buffer was not poison before; it proves nothing\n", w->name);
		return 1;
	}
	if (size != len)
		return bad(w->name, "bytes of a buffer's last request", size, len);
	file_digest(fd, w->file, off, size, want);
	if (!strcmp(hex, want))
		return 0;
	printf("BAD  %s: a buffer seen from outside is %.12s, the file at %llu is %.12s\n",
	       w->name, hex, off, want);
	return 1;
}

static int check_witness(const struct wanted *w)
{
	int n = 0, fd = t_open(w->file, O_RDONLY);
	FILE *f = fopen(w->witness, "re");
	unsigned int lines = 0;
	uint64_t moved = 0;
	char line[512];

	if (!f)
		t_die("%s: %s; did the program run with t_witness.so and register a buffer?",
		      w->witness, strerror(errno));
	t_file_drop(fd);
	while (fgets(line, sizeof(line), f)) {
		n += check_buffer(w, fd, line, &moved);
		lines++;
	}
	fclose(f);
	close(fd);
	if (lines != w->buffers)
		n += bad(w->name, "buffers", lines, w->buffers);
	if (moved != w->bar)
		n += bad(w->name, "bytes that drives moved within the buffers", moved, w->bar);
	return n;
}

static int end(const struct wanted *w)
{
	struct t_proof p;
	int n;

	if (t_checkpoint(T_MARK_END, w->name, NULL, 0, &p))
		return 1;
	n = check_counts(w, &p);
	if (w->witness)
		n += check_witness(w);
	printf("%s %s: %llu bytes over BARs, %llu other\n", n ? "BAD " : "ok  ", w->name,
	       (unsigned long long)p.bar_all, (unsigned long long)p.ram);
	return n ? 1 : 0;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: t_section begin NAME\n"
	      "       t_section end NAME --bar-bytes N [--ram-max N] [--ram-min N]\n"
	      "                 [--witness FILE --file F --buffers N]\n", stderr);
	exit(2);
}

static void parse_end(int argc, char **argv, struct wanted *w)
{
	static const struct option opts[] = {
		{ "bar-bytes", 1, 0, 'b' }, { "ram-max", 1, 0, 'M' }, { "ram-min", 1, 0, 'm' },
		{ "witness", 1, 0, 'w' }, { "file", 1, 0, 'f' }, { "buffers", 1, 0, 'n' }, { 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'b': w->bar = t_size(optarg); w->has_bar = true; break;
		case 'M': w->ram_max = t_size(optarg); break;
		case 'm': w->ram_min = t_size(optarg); break;
		case 'w': w->witness = optarg; break;
		case 'f': w->file = optarg; break;
		case 'n': w->buffers = (unsigned int)t_size(optarg); break;
		default: usage();
		}
	}
	if (optind != argc || !w->has_bar || !w->witness != !w->file || !w->witness != !w->buffers)
		usage();
}

int main(int argc, char **argv)
{
	struct wanted w = { .ram_max = UINT64_MAX };
	struct t_proof p;

	if (argc < 3)
		usage();
	w.name = argv[2];
	if (!strcmp(argv[1], "begin") && argc == 3)
		return t_checkpoint(T_MARK_BEGIN, w.name, NULL, 0, &p) ? 1 : 0;
	if (strcmp(argv[1], "end"))
		usage();
	parse_end(argc - 2, argv + 2, &w);
	return end(&w);
}
