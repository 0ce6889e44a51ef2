// SPDX-License-Identifier: MIT
/*
 * t_borrow.c - references for the length of one call: each note that was made before an object
 * left its table becomes a counted reference, once, whoever comes when. Fails when an object is
 * freed under a borrower, or never.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "borrow.h"
#include "shards.h"

struct thing {
	atomic_int refs;
	int data;		/* 1 while it lives */
};

static atomic_int alive;

static struct thing *thing_new(void)
{
	struct thing *t = calloc(1, sizeof(*t));

	atomic_init(&t->refs, 1);
	t->data = 1;
	atomic_fetch_add(&alive, 1);
	return t;
}

static void hold(void *t)
{
	atomic_fetch_add(&((struct thing *)t)->refs, 1);
}

static void unhold(void *t)
{
	assert_true(atomic_fetch_sub(&((struct thing *)t)->refs, 1) > 1);
}

static void put(struct thing *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	t->data = 0;
	atomic_fetch_sub(&alive, 1);
	free(t);
}

static void t_one(void **state)
{
	struct thing *t = thing_new(), *u = thing_new();

	/* nobody comes: it costs nothing and leaves nothing */
	assert_true(borrow(BORROW_FILE, t));
	assert_true(borrow_back(BORROW_FILE, t));
	assert_int_equal(atomic_load(&t->refs), 1);
	/* a second one of the same kind counts, one of the other kind does not */
	assert_true(borrow(BORROW_FILE, t));
	assert_false(borrow(BORROW_FILE, u));
	assert_true(borrow(BORROW_BUFFER, u));
	assert_false(borrow_back(BORROW_FILE, u));
	/* collected: whoever borrowed it has a reference of his own */
	borrow_collect(BORROW_FILE, t, hold, unhold);
	assert_int_equal(atomic_load(&t->refs), 2);
	assert_int_equal(atomic_load(&u->refs), 1);
	assert_false(borrow_back(BORROW_FILE, t));
	put(t);
	assert_int_equal(t->data, 1);
	/* what is over is not collected */
	assert_true(borrow_back(BORROW_BUFFER, u));
	borrow_collect(BORROW_BUFFER, u, hold, unhold);
	assert_int_equal(atomic_load(&u->refs), 1);
	/* and the slot can be used again */
	assert_true(borrow(BORROW_FILE, u));
	assert_true(borrow_back(BORROW_FILE, u));
	put(t);
	put(u);
	assert_int_equal(atomic_load(&alive), 0);
}

/* -- a table of one place, readers of it, and one who changes what is in it -- */

enum { READERS = 6, CHANGES = 3000 };

static struct shards lock = SHARDS_INIT;
static struct thing *place;
static atomic_bool stop;
static atomic_ulong bad;

static void *reads(void *arg)
{
	pthread_mutex_t *part;
	struct thing *t;

	while (!atomic_load(&stop)) {
		part = shards_read(&lock);
		t = place;
		if (!borrow(BORROW_FILE, t))
			hold(t);
		shards_done(part);
		if (t->data != 1)
			atomic_fetch_add(&bad, 1);
		if (!borrow_back(BORROW_FILE, t))
			put(t);
	}
	return NULL;
}

static void t_many(void **state)
{
	pthread_t thread[READERS];
	struct thing *old;
	int i;

	place = thing_new();
	atomic_store(&stop, false);
	for (i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, reads, NULL), 0);
	for (i = 0; i < CHANGES; i++) {
		shards_write(&lock);
		old = place;
		place = thing_new();
		shards_write_done(&lock);
		borrow_collect(BORROW_FILE, old, hold, unhold);
		put(old);
	}
	atomic_store(&stop, true);
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	put(place);
	assert_int_equal(atomic_load(&bad), 0);
	assert_int_equal(atomic_load(&alive), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_one),
		cmocka_unit_test(t_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
