// SPDX-License-Identifier: MIT
/* args.c - options and operands of gdscp. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "copy.h"

const char gdscp_help[] =
	"usage: gdscp [options] SOURCE TARGET [GPU]\n"
	"       gdscp [options] SOURCE... FOLDER [GPU]\n"
	"\n"
	"Copies files through the memory of a GPU (0) by cuFile, and compares digests. A\n"
	"last operand of digits is the GPU; a folder of such a name is ./0.\n"
	"\n"
	"  -d GPU             its number\n"
	"  -f, --force        replace a file that is there\n"
	"  -p, --preserve     mode, times and, where allowed, owner of the source\n"
	"  -v, --verbose      what is done\n"
	"  --no-checksum      no digests\n"
	"  --verify           read the target back from the drive and compare it, too\n"
	"  --require-direct   status 3 when whole 4-KiB blocks did not go direct\n"
	"  --progress         say how far it is also when standard error is no terminal\n"
	"  --slots N          pieces under way, 2 to 64 (4)\n"
	"  --slot-mib N       MiB of GPU memory for each, 1 to 256 (16)\n"
	"  -h, --help         this help\n"
	"  --version          version\n"
	"\n"
	"A target is whole or not there: it is written as .NAME.gdscp-XXXXXX in its folder.\n"
	"\n"
	"exit status: 0; 1 an error; 2 wrong usage; 3 with --require-direct, the copy is\n"
	"whole, but not all of it went direct\n";

static int __attribute__((format(printf, 3, 4))) refuse(char *why, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

/* From min to max: 0 or -EINVAL. */
static int number(const char *text, unsigned long min, unsigned long max, unsigned int *out)
{
	unsigned long v;

	if (!is_number(text) || strlen(text) > 9)
		return -EINVAL;
	v = strtoul(text, NULL, 10);
	*out = (unsigned int)v;
	return v < min || v > max ? -EINVAL : 0;
}

/* SOURCE... TARGET [GPU], and -d before it. */
static int take_operands(struct gdscp_args *a, char **at, int n, bool gpu_said, char *why,
			 size_t len)
{
	unsigned int gpu;

	if (n >= 3 && is_number(at[n - 1])) {
		if (gpu_said)
			return refuse(why, len, "-d and %s both name a GPU: a folder of that name is ./%s",
				      at[n - 1], at[n - 1]);
		if (number(at[n - 1], 0, 255, &gpu))
			return refuse(why, len, "GPU %s: it takes a number from 0 to 255", at[n - 1]);
		a->gpu = (int)gpu;
		n--;
	}
	if (n < 2)
		return refuse(why, len, n ? "no target: name one behind %s" : "no source and no target%s",
			      n ? at[0] : "");
	a->src = at;
	a->sources = n - 1;
	a->dst = at[n - 1];
	if (!*a->dst)
		return refuse(why, len, "the name of the target is empty");
	for (n = 0; n < (int)a->sources; n++)
		if (!*at[n])
			return refuse(why, len, "the name of a source is empty");
	return 0;
}

int gdscp_args_parse(int argc, char **argv, struct gdscp_args *a, char *why, size_t len)
{
	static const struct option longs[] = {
		{ "force", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ "no-checksum", no_argument, NULL, 'C' },
		{ "preserve", no_argument, NULL, 'p' },
		{ "progress", no_argument, NULL, 'P' },
		{ "require-direct", no_argument, NULL, 'D' },
		{ "slot-mib", required_argument, NULL, 'M' },
		{ "slots", required_argument, NULL, 'S' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "verify", no_argument, NULL, 'V' },
		{ "version", no_argument, NULL, 'W' },
		{ 0 },
	};
	bool gpu_said = false;
	unsigned int gpu;
	int opt;

	*a = (struct gdscp_args){ .slots = 4, .slot_mib = 16 };
	opterr = 0;
	optind = 0;	/* glibc: start anew */
	while ((opt = getopt_long(argc, argv, ":d:fhpv", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			if (number(optarg, 0, 255, &gpu))
				return refuse(why, len, "-d %s: it takes a number from 0 to 255", optarg);
			a->gpu = (int)gpu;
			gpu_said = true;
			break;
		case 'S':
			if (number(optarg, 2, COPY_SLOTS_MAX, &a->slots))
				return refuse(why, len, "--slots %s: it takes 2 to %d", optarg,
					      COPY_SLOTS_MAX);
			break;
		case 'M':
			if (number(optarg, 1, 256, &a->slot_mib))
				return refuse(why, len, "--slot-mib %s: it takes 1 to 256", optarg);
			break;
		case 'f': a->force = true; break;
		case 'p': a->preserve = true; break;
		case 'v': a->verbose = true; break;
		case 'C': a->no_checksum = true; break;
		case 'D': a->require_direct = true; break;
		case 'P': a->progress = true; break;
		case 'V': a->verify = true; break;
		case 'h': a->help = true; return 0;
		case 'W': a->version = true; return 0;
		case ':':
			return refuse(why, len, "%s needs a value", argv[optind - 1]);
		default:
			return refuse(why, len, "%s is no option", argv[optind - 1]);
		}
	}
	if (a->verify && a->no_checksum)
		return refuse(why, len, "--verify compares digests, and --no-checksum makes none");
	return take_operands(a, argv + optind, argc - optind, gpu_said, why, len);
}
