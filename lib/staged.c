// SPDX-License-Identifier: MIT
/* staged.c - slabs of pinned GPU memory and who holds which slot. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "cufio-stage"
#include "device.h"
#include "driver.h"
#include "gpu.h"
#include "log.h"
#include "staged.h"
#include "stats.h"

#define GPU_PAGE ((uint64_t)65536)

void staging_init(struct staging *s, struct device *dev)
{
	memset(s, 0, sizeof(*s));
	s->dev = dev;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->given, NULL);
}

static size_t cap(void)
{
	const struct config *c = driver_config();
	size_t kb;

	if (driver_flag(&c->max_cache_set))
		return driver_word(&c->max_cache_kb) * 1024;
	kb = config_slabs_kb(c->slab_kb, c->slab_count, c->nslabs);
	return kb ? kb * 1024 : c->staging_max_mb * 1024 * 1024;
}

/* The most slots of a slab: gpu_bounce_buffer_slab_config has no larger one. */
static unsigned int slab_slots(void)
{
	const struct config *c = driver_config();
	size_t slots = c->nslabs ? c->slab_kb[c->nslabs - 1] * 1024 / SLOT_BYTES : SLAB_SLOTS;

	return slots > SLAB_SLOTS ? SLAB_SLOTS : slots ? slots : 1;
}

static void slab_free(struct staging *s, struct slab *b)
{
	size_t bytes = b->slots * SLOT_BYTES;

	peers_win_close(s->dev, &b->win);
	gpu->free(s->dev->ctx, b->alloc_va);
	device_unpin(s->dev, bytes);
	free(b);
}

void staging_release(struct staging *s)
{
	unsigned int i;

	while (s->slabs)
		slab_free(s, s->slab[--s->slabs]);
	for (i = 0; i <= SLAB_SLOTS; i++)
		if (s->spare_va[i])
			gpu->free(s->dev->ctx, s->spare_va[i]);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->given);
}

/*
 * At the start of a GPU page: a slot that starts inside one would need two requests. CUDA puts
 * 2 MiB and more there by itself; where it does not, the first try is freed, which waits.
 */
static int alloc_aligned(struct staging *s, size_t bytes, struct slab *b)
{
	uint64_t *spare_va = &s->spare_va[b->slots];
	size_t more = b->slots == 1 ? GPU_PAGE : 0;
	void *ctx = s->dev->ctx;
	int r = 0;

	b->alloc_va = *spare_va;
	*spare_va = 0;
	if (!b->alloc_va) {
		r = gpu->alloc(ctx, bytes + more, &b->alloc_va);
		if (!r && !more && b->alloc_va & (GPU_PAGE - 1)) {
			gpu->free(ctx, b->alloc_va);
			r = gpu->alloc(ctx, bytes + GPU_PAGE, &b->alloc_va);
		}
	}
	if (r)
		return r;
	b->va = (b->alloc_va + GPU_PAGE - 1) & ~(GPU_PAGE - 1);
	return r;
}

/* Without the lock: allocates and pins. NULL: not possible, *reason says why. */
static struct slab *slab_new(struct staging *s, unsigned int slots, unsigned int *reason)
{
	struct slab *b = calloc(1, sizeof(*b));
	size_t bytes = slots * SLOT_BYTES;
	int r;

	if (!b) {
		*reason = REASON_NO_STAGING;
		return NULL;
	}
	if (device_pin(s->dev, bytes)) {
		*reason = REASON_PIN_LIMIT;
		goto fail;
	}
	b->slots = slots;
	r = alloc_aligned(s, bytes, b);
	if (r) {
		log_warn("GPU %s: %zu bytes for staging: %s; free GPU memory, or register the buffers",
			 s->dev->pci, bytes, gpu->error(r));
		*reason = REASON_NO_STAGING;
		goto unpin;
	}
	r = peers_win_open(s->dev, &b->win, b->va, bytes, NVFS_WIN_STAGING, reason);
	if (r) {
		s->spare_va[slots] = b->alloc_va;
		goto unpin;
	}
	return b;

unpin:
	device_unpin(s->dev, bytes);
fail:
	free(b);
	return NULL;
}

/* s->lock held. The longest run of free slots, at most `want`; 0: none is free. */
static unsigned int find(struct staging *s, unsigned int want, struct stage *out)
{
	unsigned int i, j, run, best = 0;

	for (i = 0; i < s->slabs && best < want; i++) {
		struct slab *b = s->slab[i];

		for (run = 0, j = 0; j < b->slots && best < want; j++) {
			run = b->used & 1u << j ? 0 : run + 1;
			if (run <= best)
				continue;
			best = run;
			out->slab = b;
			out->first = j + 1 - run;
			out->n = run;
		}
	}
	return best;
}

/* s->lock held, given up meanwhile. */
static void grow(struct staging *s)
{
	size_t left = cap() > s->bytes ? cap() - s->bytes : 0;
	unsigned int slots = left / SLOT_BYTES, reason = REASON_NONE;
	struct slab *b = NULL;

	if (slots > slab_slots())
		slots = slab_slots();
	s->growing = true;
	pthread_mutex_unlock(&s->lock);
	/* a GPU that is nearly full may still have a smaller one */
	for (; slots && !b; slots /= 2)
		b = slab_new(s, slots, &reason);
	pthread_mutex_lock(&s->lock);
	s->growing = false;
	if (b) {
		s->bytes += b->slots * SLOT_BYTES;
		s->slab[s->slabs++] = b;
	} else if (!s->slabs) {
		s->reason = reason ? reason : REASON_NO_STAGING;
	}
	pthread_cond_broadcast(&s->given);
}

static bool may_grow(const struct staging *s)
{
	return !s->growing && s->slabs < SLABS_MAX && cap() >= s->bytes + SLOT_BYTES;
}

unsigned int staging_reason(struct staging *s)
{
	unsigned int r;

	pthread_mutex_lock(&s->lock);
	r = s->reason;
	if (!r && !s->slabs && cap() < SLOT_BYTES)
		r = REASON_NO_STAGING;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* s->lock held. Slots more or less are used now. */
static void tell(struct staging *s, int more, bool waited)
{
	struct stats_area *a = stats_show();

	s->used += more;
	if (a)
		stats_pool(a->staged, s->dev->index, SLOT_BYTES, s->bytes / SLOT_BYTES, s->used,
			   waited);
}

int staging_take(struct staging *s, size_t want, bool wait, struct stage *out)
{
	unsigned int slots = (want + SLOT_BYTES - 1) / SLOT_BYTES;
	bool tried = false, waited = false;

	if (slots > slab_slots())
		slots = slab_slots();
	pthread_mutex_lock(&s->lock);
	while (!find(s, slots, out)) {
		if (may_grow(s) && !tried && !(wait && s->slabs)) {
			/* slots may have come back meanwhile: look again before waiting */
			grow(s);
			tried = true;
			continue;
		}
		if (s->reason || (!s->slabs && !s->growing)) {
			pthread_mutex_unlock(&s->lock);
			return -ENOMEM;
		}
		pthread_cond_wait(&s->given, &s->lock);
		tried = false;
		waited = true;
	}
	out->slab->used |= ((1u << out->n) - 1) << out->first;
	tell(s, out->n, waited);
	pthread_mutex_unlock(&s->lock);
	out->va = out->slab->va + out->first * SLOT_BYTES;
	out->size = out->n * SLOT_BYTES;
	return 0;
}

void staging_give(struct staging *s, struct stage *st)
{
	pthread_mutex_lock(&s->lock);
	st->slab->used &= ~(((1u << st->n) - 1) << st->first);
	tell(s, -(int)st->n, false);
	pthread_cond_broadcast(&s->given);
	pthread_mutex_unlock(&s->lock);
}
