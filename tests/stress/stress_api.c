// SPDX-License-Identifier: MIT
/*
 * stress_api.c - random calls of the whole API against a model (stress.h).
 *
 *   stress_api [--calls N] [--threads T] [--seed S] [--seconds S] [--look N] [--quiet]
 *
 * Default: 100,000 calls, 8 threads, a seed of the clock. Progress every 10 s; the last line
 * has the seed and how many calls there were. A result, a byte of a buffer or of a file, a
 * count or a descriptor that is not as the model says prints the seed, the thread, the number
 * of the call and the thread's last 20 calls, and ends with status 1. --look 1 looks at all of a
 * thread's memory and files after each call, not every 300: it finds the call that did it. The same seed and number
 * of threads make the same choices in each thread; how the threads meet is up to the machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../unit/cufile_fake.h"
#include "stress.h"

static int usage(void)
{
	fprintf(stderr, "usage: stress_api [--calls N] [--threads T] [--seed S] [--seconds S] [--look N] [--quiet]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option option[] = {
		{ "calls", 1, 0, 'c' }, { "threads", 1, 0, 't' }, { "seed", 1, 0, 's' },
		{ "seconds", 1, 0, 'n' }, { "look", 1, 0, 'l' }, { "quiet", 0, 0, 'q' }, { 0 },
	};
	struct options o = { .threads = 8, .look = 300, .epoch = 1500 };
	struct timespec t;
	int c;

	clock_gettime(CLOCK_REALTIME, &t);
	o.seed = (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
	while ((c = getopt_long(argc, argv, "", option, NULL)) != -1) {
		switch (c) {
		case 'c': o.calls = strtoul(optarg, NULL, 0); break;
		case 't': o.threads = strtoul(optarg, NULL, 0); break;
		case 's': o.seed = strtoull(optarg, NULL, 0); break;
		case 'n': o.seconds = strtod(optarg, NULL); break;
		case 'l': o.look = strtoul(optarg, NULL, 0); break;
		case 'q': o.quiet = true; break;
		default: return usage();
		}
	}
	if (optind < argc || !o.threads || o.threads > MOST_THREADS)
		return usage();
	if (!o.calls && o.seconds <= 0)
		o.calls = 100000;
	setenv("GPU_SIM_DELAY_US", o.seed % 3 ? "0" : "30", 0);
	if (fake_cuda(NULL))
		return usage();
	return stress_run(&o) ? 1 : 0;
}
