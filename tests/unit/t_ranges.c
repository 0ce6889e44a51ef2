// SPDX-License-Identifier: MIT
/*
 * t_ranges.c - the tables of registrations and of handles against models: who covers these
 * bytes, with ranges that overlap, hold each other and come and go; a handle finds its object
 * and no other. Fails when a look-up answers anything but what the model does, when an old
 * handle finds something, or when threads that look up see what is not there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"
#include "ranges.h"

static uint64_t random_from(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* -- ranges -- */

#define SPACE 4096	/* addresses of the model: one range may begin at each */

static struct {
	uint64_t end[SPACE];	/* of the range that begins here; 0: none does */
	size_t n;
} model;

/* What the table must find: the one that begins last and covers. */
static uint64_t model_cover(uint64_t va, uint64_t size, bool *touched)
{
	uint64_t at;

	*touched = false;
	for (at = va + 1; at-- > 0;) {
		if (model.end[at] <= va)
			continue;
		*touched = true;
		if (model.end[at] >= va + size)
			return at + 1;
	}
	return 0;
}

static void *name_of(uint64_t start)
{
	return (void *)(uintptr_t)(start + 1);
}

static void one_change(struct ranges *r, uint64_t *seed, uint64_t dense)
{
	uint64_t at = random_from(seed) % SPACE, len = 1 + random_from(seed) % 64;
	int want = model.end[at] ? -EEXIST : 0;

	if (random_from(seed) % 50 == 0)
		len = 1 + random_from(seed) % SPACE;	/* holds many others */
	if (random_from(seed) % 100 < dense) {
		assert_int_equal(ranges_add(r, at, at + len, name_of(at)), want);
		if (!want) {
			model.end[at] = at + len;
			model.n++;
		}
	} else {
		assert_ptr_equal(ranges_take(r, at), model.end[at] ? name_of(at) : NULL);
		model.n -= model.end[at] != 0;
		model.end[at] = 0;
	}
	assert_int_equal(r->n, model.n);
}

static void one_question(const struct ranges *r, uint64_t *seed)
{
	uint64_t va = random_from(seed) % SPACE, size = 1 + random_from(seed) % 80, want;
	bool touched, model_touched;
	void *got;

	want = model_cover(va, size, &model_touched);
	got = ranges_cover(r, va, size, &touched);
	if (got != (void *)(uintptr_t)want || touched != model_touched)
		fail_msg("%llu + %llu of %zu ranges: %zu (touched %d), not %llu (%d)",
			 (unsigned long long)va, (unsigned long long)size, r->n,
			 (size_t)(uintptr_t)got, touched, (unsigned long long)want,
			 model_touched);
	assert_ptr_equal(ranges_at(r, va), model.end[va] ? name_of(va) : NULL);
}

static void t_ranges_model(void **state)
{
	struct ranges r = { 0 };
	uint64_t seed = 20261129;
	unsigned int i, phase;
	size_t n = 0;

	memset(&model, 0, sizeof(model));
	/* filled, emptied and filled again: chunks are split and joined */
	for (phase = 0; phase < 4; phase++)
		for (i = 0; i < 20000; i++) {
			one_change(&r, &seed, phase % 2 ? 10 : 80);
			one_question(&r, &seed);
		}
	for (i = 0; i < 5000; i++)
		one_change(&r, &seed, 80);
	assert_true(r.heads > 3);
	while (ranges_drain(&r))
		n++;
	assert_int_equal(n, model.n);
	assert_null(r.head);
}

/* 100,000 of them, side by side, and one that holds them all: whatever is asked, few steps. */
static void t_ranges_many(void **state)
{
	const uint64_t n = 100000, step = 8192;
	struct ranges r = { 0 };
	uint64_t seed = 5, i, at;
	bool touched;

	for (i = 0; i < n; i++) {
		at = i * 7919 % n * step + step;	/* in no order */
		assert_int_equal(ranges_add(&r, at, at + 4096, name_of(at)), 0);
	}
	assert_int_equal(ranges_add(&r, 1, (n + 1) * step, name_of(1)), 0);
	assert_true(r.heads < n / (RANGES_CHUNK / 4));
	for (i = 0; i < 50000; i++) {
		at = (1 + random_from(&seed) % n) * step;
		assert_ptr_equal(ranges_cover(&r, at + 4095, 1, &touched), name_of(at));
		/* in between, and across: only the large one covers */
		assert_ptr_equal(ranges_cover(&r, at + 4096, 1, &touched), name_of(1));
		assert_ptr_equal(ranges_cover(&r, at, 4097, &touched), name_of(1));
	}
	for (i = 0; i < n; i++) {
		at = i * 104729 % n * step + step;
		assert_ptr_equal(ranges_take(&r, at), name_of(at));
	}
	assert_int_equal(r.heads, 1);
	assert_ptr_equal(ranges_cover(&r, 77 * step, 10, &touched), name_of(1));
	assert_non_null(ranges_drain(&r));
	assert_null(ranges_drain(&r));
}

/* -- handles -- */

struct thing {
	atomic_uint refs;
	void *handle;
};

static void hold(void *object)
{
	atomic_fetch_add(&((struct thing *)object)->refs, 1);
}

static void t_handles_many(void **state)
{
	enum { N = 100000 };
	struct handles t = HANDLES_INIT(hold);
	struct thing *thing = calloc(N, sizeof(*thing));
	void *old;
	uint64_t seed = 3, i, k;

	for (i = 0; i < N; i++)
		assert_int_equal(handles_put_in(&t, &thing[i], &thing[i].handle), 0);
	for (i = 0; i < N; i++)
		assert_ptr_equal(handles_get(&t, thing[i].handle), &thing[i]);
	/* one goes and comes again: the old handle is nobody's, the slot is used again */
	for (i = 0; i < 3 * N; i++) {
		k = random_from(&seed) % N;
		old = thing[k].handle;
		assert_ptr_equal(handles_take_out(&t, old), &thing[k]);
		assert_null(handles_take_out(&t, old));
		assert_int_equal(handles_put_in(&t, &thing[k], &thing[k].handle), 0);
		assert_null(handles_get(&t, old));
		assert_ptr_equal(handles_get(&t, thing[k].handle), &thing[k]);
	}
	assert_in_range(t.slots, N, 2 * N);
	assert_null(handles_get(&t, NULL));
	assert_null(handles_get(&t, (void *)-1));
	assert_null(handles_get(&t, &t));
	for (i = 0; handles_drain(&t); i++)
		;
	assert_int_equal(i, N);
	free(thing);
}

/* A slot given back is found without a search, wherever it lies. */
static void t_handles_free_slots(void **state)
{
	enum { N = 1000 };
	struct handles t = HANDLES_INIT(hold);
	struct thing thing[N] = { 0 };
	unsigned int i, slots;

	for (i = 0; i < N; i++)
		assert_int_equal(handles_put_in(&t, &thing[i], &thing[i].handle), 0);
	slots = t.slots;
	for (i = 0; i < N; i++)
		assert_ptr_equal(handles_take_out(&t, thing[i].handle), &thing[i]);
	for (i = 0; i < N; i++)
		assert_int_equal(handles_put_in(&t, &thing[i], &thing[i].handle), 0);
	assert_int_equal(t.slots, slots);
	while (handles_drain(&t))
		;
}

/* -- threads: some change, others look -- */

#define THREADS 6
#define THINGS 64

static struct {
	struct handles t;
	struct thing thing[THINGS];
	void *_Atomic handle[THINGS];	/* 0: out at the moment */
	atomic_bool stop;
	atomic_ulong found, wrong;
} many = { .t = HANDLES_INIT(hold) };

static void *look(void *arg)
{
	uint64_t seed = 11 + (uintptr_t)arg;
	struct thing *got;
	void *h;
	size_t k;

	while (!atomic_load(&many.stop)) {
		k = random_from(&seed) % THINGS;
		h = atomic_load(&many.handle[k]);
		got = h ? handles_get(&many.t, h) : NULL;
		if (!got)
			continue;
		atomic_fetch_add(got != &many.thing[k] ? &many.wrong : &many.found, 1);
		atomic_fetch_sub(&got->refs, 1);
	}
	return NULL;
}

static void t_handles_threads(void **state)
{
	pthread_t thread[THREADS];
	uint64_t seed = 9;
	uintptr_t i;
	void *h;
	size_t k;

	for (k = 0; k < THINGS; k++) {
		assert_int_equal(handles_put_in(&many.t, &many.thing[k], &h), 0);
		atomic_store(&many.handle[k], h);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, look, (void *)i), 0);
	for (i = 0; i < 5000 || atomic_load(&many.found) < 1000; i++) {
		k = random_from(&seed) % THINGS;
		h = atomic_exchange(&many.handle[k], NULL);
		if (handles_take_out(&many.t, h) != &many.thing[k])
			atomic_fetch_add(&many.wrong, 1);
		if (handles_put_in(&many.t, &many.thing[k], &h))
			atomic_fetch_add(&many.wrong, 1);
		atomic_store(&many.handle[k], h);
	}
	atomic_store(&many.stop, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&many.wrong), 0);
	for (k = 0; k < THINGS; k++)
		assert_int_equal(atomic_load(&many.thing[k].refs), 0);
	while (handles_drain(&many.t))
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_ranges_model),   cmocka_unit_test(t_ranges_many),
		cmocka_unit_test(t_handles_many),   cmocka_unit_test(t_handles_free_slots),
		cmocka_unit_test(t_handles_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
