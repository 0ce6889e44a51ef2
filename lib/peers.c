// SPDX-License-Identifier: MIT
/* peers.c - GPU memory that nvidia-fs may pin because this process has listed it. */
#include <errno.h>
#include <stdlib.h>

#define LOG_MODULE "cufio-peers"
#include "device.h"
#include "driver.h"
#include "gpu.h"
#include "log.h"
#include "peers.h"

/* One allocation. g->lock guards all but `mem`, which is final. */
struct peers_cover {
	struct gpu_ptr mem;
	uint32_t object;	/* our name of the driver's */
	unsigned int windows;
	bool listed;
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

/* lock held. Entries of freed allocations whose addresses are those of `mem` now. */
static void unlist_stale(struct peers_gpu *g, const struct gpu_ptr *mem)
{
	struct peers_cover *c;

	for (c = g->covers; c; c = c->next)
		if (c->mem.id != mem->id && c->mem.base_va < mem->base_va + mem->len &&
		    mem->base_va < c->mem.base_va + c->mem.len)
			unlist(g, c);
}

/* lock held. 0, -errno, or the status of a driver (> 0), which has turned the way off. */
static int list(struct peers_gpu *g, struct peers_cover *c)
{
	unsigned char ipc[RM_IPC_BYTES];
	struct rm_memory m;
	const char *step = "";
	int r;

	r = gpu->ipc(c->mem.ctx, c->mem.base_va, ipc);
	if (r) {
		/* this memory's own: of a pool, or made by cuMemCreate */
		log_info("GPU %s: 0x%llx: cuIpcGetMemHandle: %s: it cannot be listed for nvidia-fs; cudaMalloc memory can",
			 g->dev->pci, (unsigned long long)c->mem.base_va, gpu->error(r));
		return -EOPNOTSUPP;
	}
	if (rm_memory_of(ipc, &m) || m.size < c->mem.len) {
		off(g, "contents of an IPC handle", -EPROTO);
		return -EPROTO;
	}
	r = rm_dup(g->rm, &m, &c->object, &step);
	if (r) {
		off(g, step, r);
		return r;
	}
	unlist_stale(g, &c->mem);
	if (g->state == PEERS_OFF)
		r = -EIO;
	else
		r = rm_peers_register(g->rm, &g->list, c->object, c->mem.base_va, c->mem.len, m.off,
				      &step);
	if (r) {
		rm_drop(g->rm, c->object);
		off(g, step, r);
		return r;
	}
	c->listed = true;
	return 0;
}

static void uncover(struct peers_gpu *g, struct peers_cover *c)
{
	struct peers_cover **at;

	pthread_mutex_lock(&g->lock);
	if (!--c->windows) {
		for (at = &g->covers; *at != c; at = &(*at)->next)
			;
		*at = c->next;
		unlist(g, c);
		rm_drop(g->rm, c->object);
		free(c);
	}
	pthread_mutex_unlock(&g->lock);
}

/* The allocation of va on the list, by one window more. NULL: it is not. */
static struct peers_cover *cover(struct peers_gpu *g, uint64_t va)
{
	struct peers_cover *c = NULL;
	struct gpu_ptr mem;

	if (gpu->pointer((void *)(uintptr_t)va, &mem) || mem.kind != GPU_MEM_DEVICE)
		return NULL;
	pthread_mutex_lock(&g->lock);
	if (g->state == PEERS_OFF || connect_rm(g))
		goto out;
	for (c = g->covers; c; c = c->next)
		if (c->listed && c->mem.id == mem.id)
			break;
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			goto out;
		c->mem = mem;
		if (list(g, c)) {
			free(c);
			c = NULL;
			goto out;
		}
		c->next = g->covers;
		g->covers = c;
	}
	c->windows++;
out:
	pthread_mutex_unlock(&g->lock);
	return c;
}

/* The pin, once the memory is listed. */
static int open_listed(struct peers_gpu *g, struct nvfs_win *w, uint64_t va, size_t size,
		       unsigned int flags)
{
	struct peers_cover *c = cover(g, va);
	uint64_t id;
	int r;

	if (!c)
		return -EINVAL;
	r = nvfs_win_open(w, va, size, g->dev->pdevinfo, flags);
	if (!r && (gpu->id(c->mem.base_va, &id) || id != c->mem.id)) {
		nvfs_win_close(w);
		r = -ESTALE;
	}
	if (!r) {
		w->cover = c;
		pthread_mutex_lock(&g->lock);
		if (g->state == PEERS_UNTRIED) {
			g->state = PEERS_NEEDED;
			log_info("GPU %s: its driver pins for nvidia-fs what this process lists (as on GeForce)",
				 g->dev->pci);
		}
		pthread_mutex_unlock(&g->lock);
		return 0;
	}
	uncover(g, c);
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
	struct peers_cover *c = w->cover;

	nvfs_win_close(w);
	if (c)
		uncover(&dev->peers, c);
}
