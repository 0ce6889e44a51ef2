// SPDX-License-Identifier: MIT
/* peers.c - GPU memory that nvidia-fs may pin because this process has listed it. */
#include <errno.h>
#include <stdlib.h>

#define LOG_MODULE "cufio-peers"
#include "device.h"
#include "driver.h"
#include "gpu.h"
#include "log.h"
#include "object.h"
#include "os.h"
#include "peers.h"

#define SHARED ((uint64_t)2 << 20)	/* an object of the driver that small allocations share */
#define GPU_PAGE ((uint64_t)64 << 10)

/* One window of an allocation. Final; the list of them is guarded by g->lock. */
struct peers_use {
	struct peers_cover *cover;
	uint64_t base_va, id;	/* of the allocation or mapping */
	struct peers_use *next;
};

/* One object of the driver. g->lock guards `listed`, `uses` and `next`. */
struct peers_cover {
	/* CUDA's names of it, which come again once it is freed; 0: it came by a descriptor */
	uint32_t client, source;
	uint32_t object;		/* ours */
	uint64_t va, len;		/* what is listed: whole GPU pages */
	bool listed;
	struct peers_use *uses;
	struct peers_cover *next;
};

void peers_gpu_init(struct peers_gpu *g, struct device *dev)
{
	pthread_mutex_init(&g->lock, NULL);
	g->dev = dev;
}

void peers_gpu_release(struct peers_gpu *g)
{
	if (g->rm) {
		rm_peers_close(g->rm, &g->list);
		rm_close(g->rm);
	}
	pthread_mutex_destroy(&g->lock);
}

/* lock held. What is listed stays so; nothing more is. */
static void off(struct peers_gpu *g, const char *step, int r)
{
	if (g->state == PEERS_OFF)
		return;
	g->state = PEERS_OFF;
	if (r < 0)
		log_warn("GPU %s: memory cannot be listed for nvidia-fs: %s: %s: pins that need it are not tried any more; docs/geforce.md",
			 g->dev->pci, step, log_errno(r));
	else
		log_warn("GPU %s: memory cannot be listed for nvidia-fs: %s: status 0x%x of the driver: pins that need it are not tried any more; docs/geforce.md",
			 g->dev->pci, step, r);
}

/* lock held */
static int connect_rm(struct peers_gpu *g)
{
	const char *step = "";
	int r;

	if (g->rm)
		return 0;
	r = rm_open(g->dev->pci, &g->rm, &step);
	if (!r) {
		r = rm_peers_open(g->rm, &g->list, &step);
		if (r) {
			rm_close(g->rm);
			g->rm = NULL;
		}
	}
	if (r)
		off(g, step, r);
	return r;
}

/* lock held */
static void unlist(struct peers_gpu *g, struct peers_cover *c)
{
	const char *step = "";
	int r;

	if (!c->listed)
		return;
	c->listed = false;
	r = rm_peers_unregister(g->rm, &g->list, c->object, &step);
	/* an entry that stays would lead the next pin to memory that is nobody's */
	if (r)
		off(g, step, r);
}

static bool is_alive(const struct peers_use *u)
{
	uint64_t id;

	return !gpu->id(u->base_va, &id) && id == u->id;
}

/* lock held. An object that has a living allocation has not been freed. */
static bool has_alive(const struct peers_cover *c)
{
	const struct peers_use *u;

	for (u = c->uses; u; u = u->next)
		if (is_alive(u))
			return true;
	return false;
}

/* lock held. The entry of this object as it is now; entries of freed ones are taken off. */
static struct peers_cover *find(struct peers_gpu *g, const struct object *o, uint64_t len)
{
	struct peers_cover *c, *found = NULL;

	for (c = g->covers; c; c = c->next) {
		if (!c->listed || c->va >= o->va + len || o->va >= c->va + c->len)
			continue;
		if (c->client == o->client && c->source == o->source && c->va == o->va &&
		    has_alive(c))
			found = c;
		else
			unlist(g, c);
	}
	return found;
}

/* lock held. The driver takes whole GPU pages, and an address once. NULL: it refused. */
static struct peers_cover *list(struct peers_gpu *g, const struct object *o, uint64_t len)
{
	struct peers_cover *c = calloc(1, sizeof(*c));
	const char *step = "";
	int r;

	if (!c)
		return NULL;
	c->client = o->client;
	c->source = o->source;
	c->va = o->va;
	c->len = len;
	r = object_name(g->rm, o, &c->object, &step);
	if (r)
		goto fail;
	r = rm_peers_register(g->rm, &g->list, c->object, o->va, len, 0, &step);
	if (r) {
		rm_drop(g->rm, c->object);
		goto fail;
	}
	c->listed = true;
	c->next = g->covers;
	g->covers = c;
	return c;

fail:
	if (r == -E2BIG || r == -EOPNOTSUPP)	/* this memory's own */
		log_info("GPU %s: 0x%llx: %s: it cannot be listed for nvidia-fs; take cudaMalloc memory, or allocate less at a time",
			 g->dev->pci, (unsigned long long)o->va,
			 r == -E2BIG ? "the driver holds it in several objects" :
				       "it is not this GPU's own memory");
	else
		off(g, step, r);
	free(c);
	return NULL;
}

/* This memory's own affair: no reason to list no other. */
static void say_none(const struct peers_gpu *g, uint64_t va, const struct object *o, int r)
{
	if (r == -ENOENT)
		log_info("GPU %s: 0x%llx: neither an IPC handle nor a descriptor (%s): it cannot be listed for nvidia-fs; memory of cudaMalloc can, and of cuMemCreate with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
			 g->dev->pci, (unsigned long long)va, gpu->error(o->result));
	else
		log_info("GPU %s: 0x%llx: not one piece of memory that is mapped on GPU pages: it cannot be listed for nvidia-fs; register what each cuMemMap mapped by itself",
			 g->dev->pci, (unsigned long long)va);
}

/* lock held. The object on the list, which has all of va .. va + size. NULL: it is not. */
static struct peers_cover *cover(struct peers_gpu *g, const struct object *o, uint64_t va,
				 size_t size)
{
	uint64_t len = o->base_va - o->va + o->len;
	struct peers_cover *c;

	if (!object_covers(o, va, size) || o->va & (GPU_PAGE - 1)) {
		say_none(g, va, o, -E2BIG);
		return NULL;
	}
	len = o->fd < 0 && len <= SHARED ? SHARED : (len + GPU_PAGE - 1) & ~(GPU_PAGE - 1);
	c = find(g, o, len);
	if (!c && g->state != PEERS_OFF)
		c = list(g, o, len);
	return c;
}

/* lock held */
static void uncover(struct peers_gpu *g, struct peers_use *u)
{
	struct peers_cover *c = u->cover, **at;
	struct peers_use **use;

	for (use = &c->uses; *use != u; use = &(*use)->next)
		;
	*use = u->next;
	free(u);
	if (c->uses)
		return;
	for (at = &g->covers; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	unlist(g, c);
	rm_drop(g->rm, c->object);
	free(c);
}

static void stop_using(struct peers_gpu *g, struct peers_use *u)
{
	pthread_mutex_lock(&g->lock);
	uncover(g, u);
	pthread_mutex_unlock(&g->lock);
}

/* lock held. The memory of va .. va + size on the list, for one window more. NULL: it is not. */
static struct peers_use *use_object(struct peers_gpu *g, const struct gpu_ptr *mem,
				    const struct object *o, uint64_t va, size_t size)
{
	struct peers_use *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->base_va = o->base_va;
	u->id = mem->id;
	u->cover = cover(g, o, va, size);
	if (!u->cover) {
		free(u);
		return NULL;
	}
	u->next = u->cover->uses;
	u->cover->uses = u;
	return u;
}

static struct peers_use *use(struct peers_gpu *g, uint64_t va, size_t size)
{
	struct peers_use *u = NULL;
	struct gpu_ptr mem;
	struct object o;
	int r;

	if (gpu->pointer((void *)(uintptr_t)va, &mem) || mem.kind != GPU_MEM_DEVICE)
		return NULL;
	device_own(g->dev, &mem);
	pthread_mutex_lock(&g->lock);
	if (g->state == PEERS_OFF || connect_rm(g))
		goto out;
	r = object_find(&mem, &o);
	if (!r)
		u = use_object(g, &mem, &o, va, size);
	else if (r == -EPROTO)
		off(g, "contents of an IPC handle", r);
	else
		say_none(g, va, &o, r);
	object_end(&o);
out:
	pthread_mutex_unlock(&g->lock);
	return u;
}

/* The pin, once the memory is listed. */
static int open_listed(struct peers_gpu *g, struct nvfs_win *w, uint64_t va, size_t size,
		       unsigned int flags)
{
	struct peers_use *u = use(g, va, size);
	int r;

	if (!u)
		return -EINVAL;
	r = nvfs_win_open(w, va, size, g->dev->pdevinfo, flags);
	if (!r && !is_alive(u)) {
		nvfs_win_close(w);
		r = -ESTALE;
	}
	if (!r) {
		w->listed = u;
		pthread_mutex_lock(&g->lock);
		if (g->state == PEERS_UNTRIED) {
			g->state = PEERS_NEEDED;
			log_info("GPU %s: its driver pins for nvidia-fs what this process lists (as on GeForce)",
				 g->dev->pci);
		}
		pthread_mutex_unlock(&g->lock);
		return 0;
	}
	stop_using(g, u);
	if (r == -EINVAL) {
		pthread_mutex_lock(&g->lock);
		off(g, "a pin of listed memory is refused as before", r);
		pthread_mutex_unlock(&g->lock);
	}
	return r;
}

int peers_win_open(struct device *dev, struct nvfs_win *w, uint64_t va, size_t size,
		   unsigned int flags, unsigned int *reason)
{
	struct peers_gpu *g = &dev->peers;
	bool may = driver_config()->register_peers, needed;
	int r = -EINVAL;

	pthread_mutex_lock(&g->lock);
	may = may && g->state != PEERS_OFF;
	needed = may && g->state == PEERS_NEEDED;
	pthread_mutex_unlock(&g->lock);
	if (!needed)
		r = nvfs_win_open(w, va, size, dev->pdevinfo, may ? flags | NVFS_WIN_TRY : flags);
	if (r == -EINVAL && may)
		r = open_listed(g, w, va, size, flags);
	*reason = !r ? REASON_NONE : r == -EINVAL ? REASON_PIN_GATED : REASON_PIN_FAILED;
	return r;
}

void peers_win_close(struct device *dev, struct nvfs_win *w)
{
	struct peers_use *u = w->listed;

	nvfs_win_close(w);
	if (u)
		stop_using(&dev->peers, u);
}
