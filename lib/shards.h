/* SPDX-License-Identifier: MIT */
/*
 * shards.h - a lock for what many threads look at and few change: a reader takes the part
 * that is its thread's, a writer takes all of them. Up to SHARDS threads never share a part,
 * so looking does not bounce a cache line between processors; a change costs SHARDS locks.
 *
 * A part is held for a look-up, never across a system call. Parts are not recursive.
 */
#ifndef SHARDS_H
#define SHARDS_H

#include <pthread.h>

#define SHARDS 32

struct shards {
	struct {
		_Alignas(64) pthread_mutex_t lock;
	} part[SHARDS];
};

#define SHARDS_INIT { .part = { [0 ... SHARDS - 1] = { PTHREAD_MUTEX_INITIALIZER } } }

/*
 * The number below + 1; 0: none yet. Of this library alone, so that a function finds all that is
 * its thread's by one look-up: a small request makes a dozen of them.
 */
extern __thread unsigned int shards_number
	__attribute__((visibility("hidden"), tls_model("local-dynamic")));
unsigned int shards_number_new(void);

/* A small number of the calling thread's, the same for its whole life: 0, 1, 2, ... */
static inline unsigned int shards_thread(void)
{
	unsigned int n = shards_number;

	return (n ? n : shards_number_new()) - 1;
}

/* The part that was taken, for shards_done. */
static inline pthread_mutex_t *shards_read(struct shards *s)
{
	pthread_mutex_t *lock = &s->part[shards_thread() % SHARDS].lock;

	pthread_mutex_lock(lock);
	return lock;
}

static inline void shards_done(pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
}

static inline void shards_write(struct shards *s)
{
	int i;

	for (i = 0; i < SHARDS; i++)
		pthread_mutex_lock(&s->part[i].lock);
}

static inline void shards_write_done(struct shards *s)
{
	int i;

	for (i = SHARDS; i-- > 0;)
		pthread_mutex_unlock(&s->part[i].lock);
}

#endif /* SHARDS_H */
