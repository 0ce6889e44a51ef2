// SPDX-License-Identifier: MIT
/*
 * t_ranges.c - the tables of registrations and of handles against models: who covers these
 * bytes, with ranges that overlap, hold each other and come and go; a handle finds its object
 * and no other. Fails when a look-up answers anything but what the model does, when an old
 * handle finds something, when an addition that has no memory leaves a trace, or when threads
 * that look up see what is not there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"
#include "rounds.h"

/* Allocations of the tables under test: the one after `fail_after` more fails; -1: none does. */
static int fail_after = -1;

static bool fails(void)
{
	return fail_after >= 0 && fail_after-- == 0;
}

static void *t_aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : aligned_alloc(align, size);
}

static void *t_realloc(void *p, size_t size)
{
	return fails() ? NULL : realloc(p, size);
}

static void *t_calloc(size_t n, size_t size)
{
	return fails() ? NULL : calloc(n, size);
}

#define aligned_alloc t_aligned_alloc
#define realloc t_realloc
#define calloc t_calloc
#include "../../lib/crowd.c"
#include "../../lib/ranges.c"
#undef aligned_alloc
#undef realloc
#undef calloc

static uint64_t random_from(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* -- ranges -- */

#define SPACE 4096	/* addresses of the model: one range may begin at each */

/* An address of the model is `unit` real ones, from `base` on. */
static struct {
	uint64_t base, unit;
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

static uint64_t real(uint64_t at)
{
	return model.base + at * model.unit;
}

static void *name_of(uint64_t start)
{
	return (void *)(uintptr_t)(start + 1);
}

/* Of any class, and shorter ones more often. */
static uint64_t any_length(uint64_t *seed)
{
	return 1 + random_from(seed) % (1u << random_from(seed) % 13);
}

static int add(struct ranges *r, uint64_t at, uint64_t len)
{
	return ranges_add(r, real(at), real(at + len), name_of(real(at)));
}

static void one_change(struct ranges *r, uint64_t *seed, uint64_t dense)
{
	uint64_t at = random_from(seed) % SPACE, len = any_length(seed);
	int want = model.end[at] ? -EEXIST : 0;

	if (random_from(seed) % 100 < dense) {
		assert_int_equal(add(r, at, len), want);
		if (!want) {
			model.end[at] = at + len;
			model.n++;
		}
	} else {
		assert_ptr_equal(ranges_take(r, real(at)),
				 model.end[at] ? name_of(real(at)) : NULL);
		model.n -= model.end[at] != 0;
		model.end[at] = 0;
	}
	assert_int_equal(r->n, model.n);
}

static void one_question(const struct ranges *r, uint64_t *seed)
{
	uint64_t va = random_from(seed) % SPACE, size = any_length(seed), want;
	bool touched, model_touched;
	void *got;

	want = model_cover(va, size, &model_touched);
	got = ranges_cover(r, real(va), size * model.unit, &touched);
	if (got != (want ? name_of(real(want - 1)) : NULL) || touched != model_touched)
		fail_msg("%llu + %llu of %zu ranges (unit %#llx): %p (touched %d), not that at %lld (%d)",
			 (unsigned long long)va, (unsigned long long)size, r->n,
			 (unsigned long long)model.unit, got, touched, (long long)want - 1,
			 model_touched);
	assert_ptr_equal(ranges_at(r, real(va)), model.end[va] ? name_of(real(va)) : NULL);
}

static void start_model(uint64_t base, uint64_t unit)
{
	memset(&model, 0, sizeof(model));
	model.base = base;
	model.unit = unit;
}

static void drain_model(struct ranges *r)
{
	size_t n = 0;

	while (ranges_drain(r))
		n++;
	assert_int_equal(n, model.n);
	assert_null(r->slot);
	assert_int_equal(r->room, 0);
}

static void model_at(uint64_t base, uint64_t unit)
{
	struct ranges r = { 0 };
	uint64_t seed = 20261129;
	unsigned int i, phase;

	start_model(base, unit);
	/* filled, emptied and filled again: crowds come and go, the table grows and shrinks */
	for (phase = 0; phase < 4; phase++)
		for (i = 0; i < 12000; i++) {
			one_change(&r, &seed, phase % 2 ? 5 : 80);
			one_question(&r, &seed);
			assert_true(r.room >= 2 * r.used);
		}
	for (i = 0; i < 5000; i++)
		one_change(&r, &seed, 80);
	drain_model(&r);
}

static void t_ranges_model(void **state)
{
	model_at(0, 1);
	model_at(0x7f0000001000, 1);
	model_at(0x7f0000001000, 4096);
	model_at(0, 1ULL << 51);
	/* up to the last address of all */
	model_at(-(2 * SPACE * 4096ULL), 4096);
}

/* An addition that fails for want of memory changes nothing, whichever allocation it was. */
static void t_ranges_no_memory(void **state)
{
	struct ranges r = { 0 }, before;
	uint64_t seed = 7, at, len;
	unsigned int i, k, failed = 0, twice = 0;
	int n, ret;

	start_model(0x7f0000001000, 16);
	for (i = 0; i < 3000; i++) {
		at = random_from(&seed) % SPACE;
		len = any_length(&seed);
		for (n = 0;; n++) {
			before = r;
			fail_after = n;
			ret = add(&r, at, len);
			fail_after = -1;
			if (ret != -ENOMEM)
				break;
			failed++;
			twice += n == 1;
			assert_int_equal(r.n, before.n);
			assert_int_equal(r.classes, before.classes);
			for (k = 0; k < 3; k++)
				one_question(&r, &seed);
		}
		assert_int_equal(ret, model.end[at] ? -EEXIST : 0);
		if (!ret) {
			model.end[at] = at + len;
			model.n++;
		}
		one_question(&r, &seed);
	}
	assert_true(failed > 20 && twice > 5);
	/* what is taken out needs no memory; the table stays as large as it is without */
	before = r;
	while (model.n > 10) {
		fail_after = 0;
		one_change(&r, &seed, 0);
		fail_after = -1;
		one_question(&r, &seed);
	}
	assert_int_equal(r.room, before.room);
	drain_model(&r);
}

/* The most slots that any search of what is in the table looks at. */
static size_t longest_search(const struct ranges *r)
{
	size_t i, n, at, most = 0;

	for (i = 0; i < r->room; i++) {
		if (!r->slot[i].key)
			continue;
		n = 1;
		for (at = home(r, r->slot[i].key); r->slot[at].key; at = after(r, at))
			n++;
		most = n > most ? n : most;
	}
	return most;
}

/* 100,000 of them, side by side, and one that holds them all: whatever is asked, few steps. */
static void side_by_side(uint64_t base, uint64_t step, uint64_t len)
{
	const uint64_t n = 100000;
	struct ranges r = { 0 };
	uint64_t seed = 5, i, at;
	bool touched;

	for (i = 0; i < n; i++) {
		at = base + i * 7919 % n * step;	/* in no order */
		assert_int_equal(ranges_add(&r, at, at + len, name_of(at)), 0);
	}
	assert_int_equal(ranges_add(&r, base - 1, base + n * step, name_of(base - 1)), 0);
	assert_true(r.room <= 8 * n && longest_search(&r) < 100);
	for (i = 0; i < 50000; i++) {
		at = base + random_from(&seed) % n * step;
		assert_ptr_equal(ranges_cover(&r, at + len - 1, 1, &touched), name_of(at));
		assert_ptr_equal(ranges_cover(&r, at, len, &touched), name_of(at));
		/* in between, and across: only the large one covers */
		if (len < step)
			assert_ptr_equal(ranges_cover(&r, at + len, 1, &touched),
					 name_of(base - 1));
		if (at + step < base + n * step)
			assert_ptr_equal(ranges_cover(&r, at, len + 1, &touched),
					 name_of(base - 1));
	}
	for (i = 0; i < n; i++) {
		at = base + i * 104729 % n * step;
		assert_ptr_equal(ranges_take(&r, at), name_of(at));
	}
	assert_true(r.room <= LEAST_ROOM);
	assert_ptr_equal(ranges_cover(&r, base + 77 * step, 10, &touched), name_of(base - 1));
	assert_non_null(ranges_drain(&r));
	assert_null(ranges_drain(&r));
}

static void t_ranges_many(void **state)
{
	side_by_side(0x7f0000000000, 8192, 4096);
	side_by_side(0x7f0000000200, 4096, 4096);
	side_by_side(0x7f0000000123, 3 << 20, 2500000);
	side_by_side(0x7f0000000000, 1 << 30, 1 << 20);
}

/* Byte by byte, all of one class and in one block: in order, and none of them in a slot. */
static void t_ranges_crowd(void **state)
{
	const uint64_t n = 20000, len = 40000, base = 1 << 20;
	struct ranges r = { 0 };
	uint64_t seed = 9, i, at, low;
	bool touched;

	for (i = 0; i < n; i++) {
		at = base + i * 7919 % n;
		assert_int_equal(ranges_add(&r, at, at + len, name_of(at)), 0);
		assert_int_equal(ranges_add(&r, at, at + 3 * len, name_of(at)), -EEXIST);
	}
	assert_true(r.used <= 3 && r.room == LEAST_ROOM);
	/* others do not notice */
	assert_int_equal(ranges_add(&r, base - 4096, base - 2048, name_of(1)), 0);
	assert_ptr_equal(ranges_cover(&r, base - 4000, 1, &touched), name_of(1));
	assert_ptr_equal(ranges_take(&r, base - 4096), name_of(1));
	for (i = 0; i < 20000; i++) {
		at = base + random_from(&seed) % n;
		assert_ptr_equal(ranges_cover(&r, at, len, &touched), name_of(at));
		assert_ptr_equal(ranges_cover(&r, at + len - 1, 1, &touched),
				 name_of(at + len - 1 < base + n ? at + len - 1 : base + n - 1));
		assert_null(ranges_cover(&r, at, len + 1, &touched));
		assert_true(touched);
	}
	/* the higher ones go, then all but three, which stand in slots again */
	for (i = n; i-- > 3;) {
		assert_ptr_equal(ranges_take(&r, base + i), name_of(base + i));
		if (i % 100)
			continue;
		low = base + random_from(&seed) % i;
		assert_ptr_equal(ranges_cover(&r, low, len, &touched), name_of(low));
		assert_ptr_equal(ranges_cover(&r, base + i + 10, 1, &touched),
				 name_of(base + i - 1));
	}
	assert_true(r.used >= 3 && r.used <= 6);
	for (i = 0; i < r.room; i++)
		assert_true(!r.slot[i].key || r.slot[i].range.end);
	assert_ptr_equal(ranges_cover(&r, base + 1, len, &touched), name_of(base + 1));
	for (i = 0; i < 3; i++)
		assert_non_null(ranges_drain(&r));
	assert_null(ranges_drain(&r));
}

/* Each in the one before: the classes are as many as the lengths have bits. */
static void t_ranges_nested(void **state)
{
	const uint64_t n = 30000, base = 1ULL << 32, half = n + 10;
	struct ranges r = { 0 };
	bool touched;
	uint64_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(ranges_add(&r, base + i, base + 2 * half - i, name_of(base + i)),
				 0);
	for (i = 0; i < n; i++) {
		assert_ptr_equal(ranges_cover(&r, base + i, 2 * (half - i), &touched),
				 name_of(base + i));
		/* behind the end of those that lie further inside */
		assert_ptr_equal(ranges_cover(&r, base + 2 * half - i - 1, 1, &touched),
				 name_of(base + i));
		assert_ptr_equal(ranges_cover(&r, base + half, half - i, &touched),
				 name_of(base + i));
	}
	assert_null(ranges_cover(&r, base + 2 * half, 1, &touched));
	assert_false(touched);
	for (i = n; i-- > 0;) {
		assert_ptr_equal(ranges_cover(&r, base + half, 1, &touched), name_of(base + i));
		assert_ptr_equal(ranges_take(&r, base + i), name_of(base + i));
	}
	assert_int_equal(r.classes, 0);
	assert_null(ranges_drain(&r));
}

/* More than half of all addresses: it lies in two blocks of the largest class. */
static void t_ranges_whole(void **state)
{
	struct ranges r = { 0 };
	bool touched;

	assert_int_equal(ranges_add(&r, 5, UINT64_MAX, name_of(5)), 0);
	assert_int_equal(ranges_add(&r, 7, 8, name_of(7)), 0);
	assert_ptr_equal(ranges_cover(&r, 5, UINT64_MAX - 5, &touched), name_of(5));
	assert_ptr_equal(ranges_cover(&r, UINT64_MAX - 1, 1, &touched), name_of(5));
	assert_ptr_equal(ranges_cover(&r, 7, 1, &touched), name_of(7));
	assert_ptr_equal(ranges_cover(&r, 7, 2, &touched), name_of(5));
	assert_null(ranges_cover(&r, 4, 1, &touched));
	assert_false(touched);
	assert_null(ranges_cover(&r, 5, UINT64_MAX - 4, &touched));
	assert_true(touched);
	assert_ptr_equal(ranges_take(&r, 5), name_of(5));
	assert_null(ranges_cover(&r, 1ULL << 63, 1, &touched));
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
	enum { N = T_ROUNDS(100000) };
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
		cmocka_unit_test(t_ranges_model),   cmocka_unit_test(t_ranges_no_memory),
		cmocka_unit_test(t_ranges_many),    cmocka_unit_test(t_ranges_crowd),
		cmocka_unit_test(t_ranges_nested),  cmocka_unit_test(t_ranges_whole),
		cmocka_unit_test(t_handles_many),   cmocka_unit_test(t_handles_free_slots),
		cmocka_unit_test(t_handles_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
