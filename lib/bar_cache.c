// SPDX-License-Identifier: MIT
/* bar_cache.c - bars of unregistered allocations, and the end of all. */
#include <errno.h>

#include "bar.h"
#include "device.h"
#include "facts.h"
#include "os.h"
#include "rm/rm.h"

#define IDLE_NS ((uint64_t)2000000000)

/* bar_gpu.lock held. Takes the bar of entry i out: the caller puts it without the lock. */
static struct bar *take(struct bar_gpu *g, int i)
{
	struct bar *b = g->cached[i].bar;

	g->cached_bytes -= b ? g->cached[i].len : 0;
	g->cached[i].bar = NULL;
	g->cached[i].id = 0;
	return b;
}

/* bar_gpu.lock held. The entry of an allocation, else the one to replace. */
static int find(struct bar_gpu *g, uint64_t id)
{
	int i, old = 0;

	for (i = 0; i < BAR_CACHED; i++) {
		if (g->cached[i].id == id)
			return i;
		if (g->cached[i].used_ns < g->cached[old].used_ns)
			old = i;
	}
	return old;
}

/* Those that nobody used for a while: their memory may have been freed since. */
static void drop_idle(struct bar_gpu *g, uint64_t now)
{
	struct bar *gone[BAR_CACHED];
	int i, n = 0;

	pthread_mutex_lock(&g->lock);
	g->swept_ns = now;
	for (i = 0; i < BAR_CACHED; i++)
		if (g->cached[i].bar && now - g->cached[i].used_ns > IDLE_NS)
			gone[n++] = take(g, i);
	pthread_mutex_unlock(&g->lock);
	while (n--)
		bar_put(gone[n]);
}

/* All that has this id, when there is room for as much. */
static bool find_whole(struct bar_gpu *g, const struct gpu_ptr *mem, uint64_t *va, size_t *len)
{
	bool room;

	*va = mem->base_va;
	*len = mem->len;
	if (mem->mapped && gpu->mapping(mem->ctx, mem->at_va, va, len))
		return false;
	pthread_mutex_lock(&g->lock);
	room = *len <= BAR_CACHED_BYTES && g->cached_bytes + *len <= BAR_CACHED_SUM;
	pthread_mutex_unlock(&g->lock);
	return room;
}

struct bar *bar_cached(struct device *dev, const struct gpu_ptr *mem, unsigned int *reason)
{
	struct bar_gpu *g = &dev->bar;
	struct bar *b = NULL, *gone = NULL;
	uint64_t now = os->now_ns();
	bool make = false;
	size_t len;
	uint64_t va;
	int i;

	/* whatever this request is for: who frees memory may never use that size again */
	if (now - atomic_load(&g->swept_ns) > IDLE_NS)
		drop_idle(g, now);
	*reason = atomic_load(&g->reason);
	if (*reason || !mem->id || (!mem->mapped && mem->len > BAR_CACHED_BYTES))
		return NULL;
	pthread_mutex_lock(&g->lock);
	i = find(g, mem->id);
	if (g->cached[i].id != mem->id) {
		gone = take(g, i);
		g->cached[i].id = mem->id;
		g->cached[i].seen = 0;
		g->cached[i].reason = REASON_NONE;
	}
	g->cached[i].used_ns = now;
	b = g->cached[i].bar;
	*reason = g->cached[i].reason;
	if (b)
		bar_hold(b);
	else if (!*reason && ++g->cached[i].seen == 2)
		make = true;
	pthread_mutex_unlock(&g->lock);
	if (gone)
		bar_put(gone);
	if (!make || !find_whole(g, mem, &va, &len))
		return b;

	b = bar_new(dev, mem, va, len, reason);
	pthread_mutex_lock(&g->lock);
	i = find(g, mem->id);
	if (g->cached[i].id == mem->id && !g->cached[i].bar) {
		g->cached[i].reason = *reason;
		/* nobody's fault: the next one tries again */
		if (!b && !*reason)
			g->cached[i].seen = 1;
		if (b) {
			bar_hold(b);
			g->cached[i].bar = b;
			g->cached[i].len = len;
			g->cached_bytes += len;
		}
	}
	pthread_mutex_unlock(&g->lock);
	return b;
}

void bar_cached_drop(struct device *dev, uint64_t id)
{
	struct bar_gpu *g = &dev->bar;
	struct bar *b = NULL;
	int i;

	pthread_mutex_lock(&g->lock);
	i = find(g, id);
	if (g->cached[i].id == id)
		b = take(g, i);
	pthread_mutex_unlock(&g->lock);
	if (b)
		bar_put(b);
}

void bar_gpu_release(struct bar_gpu *g)
{
	struct bar *b;
	int i;

	for (i = 0; i < BAR_CACHED; i++) {
		b = take(g, i);
		if (b)
			bar_put(b);
	}
	if (g->rm)
		rm_close(g->rm);
	g->rm = NULL;
	pthread_mutex_destroy(&g->lock);
}
