// SPDX-License-Identifier: MIT
/* workers.c - threads of the library. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define LOG_MODULE "cufio-work"
#include "driver.h"
#include "log.h"
#include "workers.h"

#define MOST 16
#define MOST_CONFIGURED 32	/* largest value of max_io_threads */

/*
 * lock guards all of it. `work` is signalled for each job queued and when `leaving` is set.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct job *first, **last;
	unsigned int queued, threads, idle;
	pthread_t thread[MOST_CONFIGURED];
	bool leaving;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.last = &pool.first,
};

unsigned int workers_cap(void)
{
	const struct config *c = driver_config();
	cpu_set_t set;
	int n;

	if (!c->parallel_io)
		return 0;
	if (c->max_io_threads_set)
		return c->max_io_threads;
	n = sched_getaffinity(0, sizeof(set), &set) ? 4 : CPU_COUNT(&set);
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

/* pool.lock held. Signals are the program's: none is delivered to a thread of ours. */
static int start_one(void)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&pool.thread[pool.threads], NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!r)
		pool.threads++;
	return -r;
}

bool workers_submit(struct job *job)
{
	unsigned int cap = workers_cap();
	int r = 0;

	pthread_mutex_lock(&pool.lock);
	if (pool.idle <= pool.queued && pool.threads < cap && pool.threads < MOST_CONFIGURED)
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
}
