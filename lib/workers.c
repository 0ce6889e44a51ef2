// SPDX-License-Identifier: MIT
/* workers.c - threads of the library. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define LOG_MODULE "cufio-work"
#include "driver.h"
#include "facts.h"
#include "log.h"
#include "os.h"
#include "workers.h"

#define MOST 16
#define MOST_CONFIGURED 32	/* largest value of max_io_threads */

/*
 * lock guards all of it but `cpus`. `work` is signalled for each job queued and when `leaving`
 * is set. cpus: looked up once an open; 0: not yet.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct job *first, **last;
	unsigned int queued, threads, idle;
	pthread_t thread[MOST_CONFIGURED];
	bool leaving;
	atomic_uint cpus;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.last = &pool.first,
};

unsigned int workers_cpus(void)
{
	unsigned int n = atomic_load_explicit(&pool.cpus, memory_order_relaxed);

	if (!n) {
		n = facts_cpus(os_root);
		atomic_store_explicit(&pool.cpus, n, memory_order_relaxed);
	}
	return n;
}

unsigned int workers_cap(void)
{
	const struct config *c = driver_config();
	unsigned int n;

	if (!c->parallel_io)
		return 0;
	if (c->max_io_threads_set)
		return c->max_io_threads;
	n = workers_cpus();
	/* a copy waits for the drive most of the time: one processor can drive several */
	return n < 4 ? 4 : n > MOST ? MOST : n;
}

static void *serve(void *arg)
{
	struct job *j;

	pthread_mutex_lock(&pool.lock);
	for (;;) {
		while (!pool.first && !pool.leaving) {
			pool.idle++;
			pthread_cond_wait(&pool.work, &pool.lock);
			pool.idle--;
		}
		j = pool.first;
		if (!j)
			break;
		pool.first = j->next;
		pool.queued--;
		if (!pool.first)
			pool.last = &pool.first;
		pthread_mutex_unlock(&pool.lock);
		j->run(j);
		pthread_mutex_lock(&pool.lock);
	}
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

/* pool.lock held */
static int start_one(void)
{
	int r = os->thread(&pool.thread[pool.threads], serve, NULL);

	if (!r)
		pool.threads++;
	return r;
}

bool workers_submit(struct job *job)
{
	unsigned int cap = workers_cap();
	int r = 0;

	pthread_mutex_lock(&pool.lock);
	/* leaving: by a job, whose own thread is there to do it */
	if (!pool.leaving && pool.idle <= pool.queued && pool.threads < cap &&
	    pool.threads < MOST_CONFIGURED)
		r = start_one();
	if (!pool.threads) {
		pthread_mutex_unlock(&pool.lock);
		if (r)
			log_warn("a thread for I/O: %s: the caller does it; raise the limit of processes (ulimit -u)",
				 log_errno(r));
		return false;
	}
	job->next = NULL;
	pool.queued++;
	*pool.last = job;
	pool.last = &job->next;
	pthread_cond_signal(&pool.work);
	pthread_mutex_unlock(&pool.lock);
	return true;
}

void workers_release(void)
{
	unsigned int i;

	pthread_mutex_lock(&pool.lock);
	pool.leaving = true;
	pthread_cond_broadcast(&pool.work);
	pthread_mutex_unlock(&pool.lock);
	/* joined, not only told: their code must not be unmapped under them by a dlclose */
	for (i = 0; i < pool.threads; i++)
		pthread_join(pool.thread[i], NULL);
	pool.threads = 0;
	pool.leaving = false;
	atomic_store_explicit(&pool.cpus, 0, memory_order_relaxed);
}
