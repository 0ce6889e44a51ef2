// SPDX-License-Identifier: MIT
/* bounce_copy.c - the parts of a piece's way through a slot. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define LOG_MODULE "cufio-bounce"
#include "bounce_copy.h"
#include "errmap.h"
#include "log.h"
#include "os.h"
#include "rw.h"

#define SPIN_NS 20000			/* then a wait for a copy sleeps */

int copy_failed(const struct request *rq, size_t n, int r)
{
	log_error("%zu bytes between host and GPU %s: %s: check the GPU with nvidia-smi", n,
		  rq->dev->pci, gpu->error(r));
	return err_cuda(r);
}

struct slot *slot_more(struct flow *f, bool holds)
{
	unsigned int may = f->rq->deferred ? 0 : SLOT_MAY_MAKE;
	struct slot *s;
	uint64_t i;
	int err;

	if (atomic_load(&f->next) >= atomic_load(&f->stop))
		return NULL;
	if (holds)
		return slot_take(f->rq->dev, 0, &err);
	if (!pthread_equal(pthread_self(), f->caller))
		return slot_take(f->rq->dev, may, &err);
	s = slot_take(f->rq->dev, may | SLOT_MAY_WAIT, &err);
	if (!s && flow_next(f, &i))
		flow_stop(f, i, 0, err);
	return s;
}

bool copy_queue(struct flow *f, struct slot *s, uint64_t i, size_t n)
{
	char *host = s->host + flow_skip(f, i);
	int r = f->rq->op == OGDS_OP_READ ? gpu->to_gpu(s->s, flow_va(f, i), host, n) :
					    gpu->to_host(s->s, host, flow_va(f, i), n);

	if (!r) {
		r = gpu->event_record(&s->mark, s->s);
		if (r)
			gpu->sync(s->s);
	}
	if (r)
		flow_stop(f, i, 0, copy_failed(f->rq, n, r));
	return !r;
}

bool copy_over(struct slot *s)
{
	bool done;

	return gpu->event_query(&s->mark, &done) || done;
}

/*
 * Sleeps until the mark is behind us. The alarm is set here and not at every copy: its interrupt
 * costs more than a small one is worth. What the stream got meanwhile is waited for, too.
 */
static int sleep_copy(struct slot *s)
{
	int r = gpu->event_record(&s->alarm, s->s);

	return r ? r : gpu->event_sync(&s->alarm);
}

static int wait_copy(struct slot *s)
{
	uint64_t until = 0;
	bool done;
	int r;

	for (;;) {
		r = gpu->event_query(&s->mark, &done);
		if (r || done)
			return r;
		if (!until) {
			until = os->now_ns() + SPIN_NS;
		} else if (os->now_ns() > until) {
			r = sleep_copy(s);
			if (r)
				return r;
		}
	}
}

bool copy_wait(struct flow *f, struct slot *s, uint64_t i)
{
	int r = wait_copy(s);

	if (r)
		flow_stop(f, i, 0, copy_failed(f->rq, flow_bytes(f, i), r));
	return !r;
}

bool piece_came(struct flow *f, struct slot *s, uint64_t i, ssize_t got)
{
	if (got < (ssize_t)flow_bytes(f, i))
		flow_stop(f, i, got < 0 ? 0 : got, got < 0 ? got : 0);
	return got > 0 && copy_queue(f, s, i, got);
}

void piece_write(struct flow *f, struct slot *s, uint64_t i)
{
	size_t skip = flow_skip(f, i), left = flow_bytes(f, i), done = 0, n;
	ssize_t r;

	for (; left; done += n, left -= n) {
		n = left;
		if (f->direct && (skip + done) % PLAN_BLOCK)
			n = PLAN_BLOCK - skip;
		else if (f->direct && left > PLAN_BLOCK)
			n = left / PLAN_BLOCK * PLAN_BLOCK;
		n = n < left ? n : left;
		r = file_pwrite(f->rq->file, s->host + skip + done, n, flow_begin(f, i) + done);
		if (r == (ssize_t)n)
			continue;
		flow_stop(f, i, done + (r > 0 ? r : 0), r < 0 ? r : -EIO);
		return;
	}
}
