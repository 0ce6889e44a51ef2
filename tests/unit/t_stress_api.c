// SPDX-License-Identifier: MIT
/*
 * t_stress_api.c - a short cut of the random calls of tests/stress, 8 threads against a model
 * of files and memory. Fails when a result, a byte, a count of uses or of the statistics, or a
 * number of descriptors or pins is not as the model says. T_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "../stress/stress.h"
#include "cufile_fake.h"

static void run(uint64_t seed)
{
	struct options o = { .seed = seed, .calls = 5000, .seconds = 4, .threads = 8, .look = 100,
			     .epoch = 60, .quiet = true };
	const char *text = getenv("T_SEED");

	if (text)
		o.seed = strtoull(text, NULL, 0);
	assert_int_equal(stress_run(&o), 0);
}

static void t_late_streams(void **state)
{
	run(30);
}

static void t_streams_without_words(void **state)
{
	run(4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_late_streams), cmocka_unit_test(t_streams_without_words),
	};

	setenv("GPU_SIM_DELAY_US", "10", 0);
	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
