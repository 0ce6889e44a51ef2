/* SPDX-License-Identifier: MIT */
/*
 * way_cost.h - which of two ways of a read by the CPU is quicker: stores through BAR1 or the
 * copy engine. Learnt while the library runs, per GPU and class of sizes.
 *
 * A class holds the cost of a byte by each way, averaged over the last requests; the cheaper one
 * is taken, and every 64th request of a class tries the other, every 1024th where that costs twice
 * as much and more. While as many store as the bus has
 * room for, large requests take the copy engine, which adds what is left of it. Small requests
 * are not measured:
 * one copy costs more than all of their stores. Any thread; the words are independent and a
 * stale one only costs time.
 */
#ifndef WAY_COST_H
#define WAY_COST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAY_MEASURED ((size_t)64 * 1024)	/* below: always stores */
#define WAY_STORES_FIRST ((size_t)4 << 20)	/* up to here stores, until it is known */
#define WAY_STORERS 6		/* threads that store as fast as the bus takes it, about */
#define WAY_MIXED ((size_t)512 * 1024)	/* from here on the copy engine helps beside them */
#define WAY_LARGE ((size_t)4 << 20)	/* and here it is good at it */
#define WAY_CLASSES 16		/* of log2: 64 KiB, 128 KiB, ... */
#define WAY_RETRY 64
#define WAY_RETRY_DEAR 1024

enum way { WAY_STORE, WAY_COPY, WAYS };

struct way_cost {
	struct {
		_Atomic uint64_t ps[WAYS];	/* picoseconds a byte; 0: unknown */
		atomic_uint n;			/* requests asked for */
	} of[WAY_CLASSES];
	/* that store now: threads, and requests of theirs that are large enough to be shared */
	atomic_uint threads, requests;
};

static inline unsigned int way_class(size_t size)
{
	unsigned int k = 0;

	for (size /= WAY_MEASURED; size > 1 && k < WAY_CLASSES - 1; size /= 2)
		k++;
	return k;
}

static inline enum way way_choose(struct way_cost *c, size_t size)
{
	unsigned int k, n, retry;
	uint64_t store, copy;
	enum way best;

	if (size < WAY_MEASURED)
		return WAY_STORE;
	/* more of them do not store faster; the copy engine has a way of its own to the bus */
	n = atomic_load_explicit(size < WAY_LARGE ? &c->requests : &c->threads,
				 memory_order_relaxed);
	if (size >= WAY_MIXED && n >= WAY_STORERS)
		return WAY_COPY;
	k = way_class(size);
	store = atomic_load_explicit(&c->of[k].ps[WAY_STORE], memory_order_relaxed);
	copy = atomic_load_explicit(&c->of[k].ps[WAY_COPY], memory_order_relaxed);
	if (!store && !copy)
		return size <= WAY_STORES_FIRST ? WAY_STORE : WAY_COPY;
	/* the second one is known soon: the first eight requests take turns */
	n = atomic_fetch_add_explicit(&c->of[k].n, 1, memory_order_relaxed);
	if (!store || !copy)
		return (n % 2) == !store ? WAY_STORE : WAY_COPY;
	best = store <= copy ? WAY_STORE : WAY_COPY;
	/* the first ones of a way made what later ones find: it is tried again soon */
	if (n < WAY_RETRY)
		return n % 8 == 7 ? !best : best;
	retry = store / 2 >= copy || copy / 2 >= store ? WAY_RETRY_DEAR : WAY_RETRY;
	return n % retry == retry - 1 ? !best : best;
}

static inline void way_took(struct way_cost *c, enum way way, size_t size, uint64_t ns)
{
	uint64_t now = ns * 1000 / size, old;
	_Atomic uint64_t *at;

	if (size < WAY_MEASURED)
		return;
	at = &c->of[way_class(size)].ps[way];
	old = atomic_load_explicit(at, memory_order_relaxed);
	now = now ? now : 1;
	/* quickly down, slowly up: what is slow once may have waited for something else */
	if (old)
		now = now < old ? (old + now * 3) / 4 : (old * 7 + now) / 8;
	atomic_store_explicit(at, now ? now : 1, memory_order_relaxed);
}

#endif /* WAY_COST_H */
