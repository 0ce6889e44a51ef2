// SPDX-License-Identifier: MIT
/* buffer.c - cuFileBuf*: registered memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "cufio-buf"
#include "borrow.h"
#include "buffer.h"
#include "cufile.h"
#include "device.h"
#include "driver.h"
#include "errmap.h"
#include "log.h"
#include "ranges.h"
#include "shards.h"
#include "stats.h"

/*
 * Registrations by address. lock guards the set and keeps a buffer in it while a request begins
 * to use it. `idle` is signalled when the last user of a buffer goes that somebody waits for.
 */
static struct {
	struct shards lock;
	struct ranges set;
	pthread_mutex_t idle_lock;
	pthread_cond_t idle;
} table = {
	.lock = SHARDS_INIT,
	.idle_lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
};

/* In `users`: somebody waits until the rest of it is 0. */
#define AWAITED 0x80000000u

static void hold(void *buffer)
{
	atomic_fetch_add(&((struct buffer *)buffer)->users, 1);
}

static void unhold(void *buffer)
{
	atomic_fetch_sub(&((struct buffer *)buffer)->users, 1);
}

struct buffer *buffer_get(uint64_t base, uint64_t off, size_t size, int *err)
{
	pthread_mutex_t *part = shards_read(&table.lock);
	struct buffer *b;
	bool touched;

	*err = 0;
	b = ranges_cover(&table.set, base + off, size, &touched);
	if (b && !borrow(BORROW_BUFFER, b))
		hold(b);
	else if (!b && ranges_at(&table.set, base))
		*err = ERR(INVALID_MAPPING_RANGE);
	shards_done(part);
	return b;
}

void buffer_put(struct buffer *b)
{
	if (borrow_back(BORROW_BUFFER, b))
		return;
	/* who waits may free it at once: from here on it is not touched */
	if (atomic_fetch_sub(&b->users, 1) != (AWAITED | 1))
		return;
	pthread_mutex_lock(&table.idle_lock);
	pthread_cond_broadcast(&table.idle);
	pthread_mutex_unlock(&table.idle_lock);
}

static int insert(struct buffer *b)
{
	int r;

	shards_write(&table.lock);
	r = ranges_add(&table.set, b->va, b->va + b->len, b);
	shards_write_done(&table.lock);
	return r == -EEXIST ? ERR(MEMORY_ALREADY_REGISTERED) : r;
}

/* What begins at va; `only`: and is this one, when that is not NULL. */
static struct buffer *take_out(uint64_t va, const struct buffer *only)
{
	struct buffer *b = NULL;

	shards_write(&table.lock);
	if (!only || ranges_at(&table.set, va) == only)
		b = ranges_take(&table.set, va);
	shards_write_done(&table.lock);
	if (b)
		borrow_collect(BORROW_BUFFER, b, hold, unhold);
	return b;
}

static bool registered(uint64_t va)
{
	pthread_mutex_t *part = shards_read(&table.lock);
	bool yes = ranges_at(&table.set, va);

	shards_done(part);
	return yes;
}

struct bar *buffer_bar(struct buffer *b, unsigned int *reason)
{
	unsigned int state = atomic_load_explicit(&b->bar_state, memory_order_acquire);
	struct bar *bar;

	*reason = REASON_NONE;
	if (state == 2) {
		*reason = b->bar_reason;
		return b->bar;
	}
	if (state == 1 || !atomic_compare_exchange_strong(&b->bar_state, &state, 1))
		return NULL;
	bar = bar_new(b->dev, &b->mem, b->va, b->len, reason);
	b->bar = bar;
	b->bar_reason = *reason;
	/* nobody's fault: the next one tries again */
	atomic_store(&b->bar_state, bar || *reason ? 2 : 0);
	return bar;
}

unsigned int buffer_pages(struct buffer *b)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (!b->pinned)
		return b->reason;
	if (atomic_load_explicit(&b->pages_asked, memory_order_acquire))
		return b->pages_reason;
	pthread_mutex_lock(&lock);
	if (!atomic_load(&b->pages_asked)) {
		b->pages_reason = nvfs_win_pages(&b->win);
		atomic_store(&b->pages_asked, true);
	}
	pthread_mutex_unlock(&lock);
	return b->pages_reason;
}

static void release(struct buffer *b)
{
	if (b->bar)
		bar_put(b->bar);
	if (b->pinned) {
		peers_win_close(b->dev, &b->win);
		device_unpin(b->dev, b->len);
	}
	free(b);
}

/* Waits for its requests. It is out of the table. */
static void wait_idle(struct buffer *b)
{
	if (!atomic_fetch_or(&b->users, AWAITED))
		return;
	pthread_mutex_lock(&table.idle_lock);
	while (atomic_load(&b->users) != AWAITED)
		pthread_cond_wait(&table.idle, &table.idle_lock);
	pthread_mutex_unlock(&table.idle_lock);
}

/* What is registered at va, when other memory is there now. It may be gone already. */
static const struct buffer *stale_at(uint64_t va, const struct gpu_ptr *now)
{
	pthread_mutex_t *part = shards_read(&table.lock);
	const struct buffer *b = ranges_at(&table.set, va);
	bool stale = b && (b->mem.kind != now->kind || b->mem.id != now->id);

	shards_done(part);
	return stale ? b : NULL;
}

bool buffer_stale(uint64_t va, const struct gpu_ptr *now)
{
	return stale_at(va, now);
}

/*
 * The memory of a registration was freed, and the address given out again: the old pin
 * holds pages that are nobody's. It makes room for the new registration.
 */
static void drop_stale(uint64_t va, const struct gpu_ptr *now)
{
	const struct buffer *old = stale_at(va, now);
	struct buffer *b;

	if (!old)
		return;
	/* another thread may have done so meanwhile, and registered it anew */
	b = take_out(va, old);
	if (!b)
		return;
	log_warn("cuFileBufRegister: 0x%llx was freed while registered: call cuFileBufDeregister before the memory is freed",
		 (unsigned long long)va);
	wait_idle(b);
	release(b);
}

/*
 * Pins when a direct route could use it. 0 also when it cannot be pinned and falling back
 * is allowed: b->reason says why, and each request on it will.
 */
static int pin(struct buffer *b)
{
	const struct config *c = driver_config();
	const struct facts_reason_text *t;
	int r;

	b->reason = c->force_compat ? REASON_FORCE_COMPAT : nvfs_reason();
	if (b->reason)
		return 0;
	if (device_pin(b->dev, b->len)) {
		log_error("cuFileBufRegister: %zu bytes at 0x%llx on GPU %s: max_device_pinned_mem_size_kb is %zu and %zu KB are pinned: raise it, or deregister others",
			  b->len, (unsigned long long)b->va, b->dev->pci,
			  driver_word(&c->max_pinned_kb), atomic_load(&b->dev->pinned) / 1024);
		return ERR(INVALID_MAPPING_SIZE);
	}
	r = peers_win_open(b->dev, &b->win, b->va, b->len, 0, &b->reason);
	if (!r) {
		b->pinned = true;
		return 0;
	}
	device_unpin(b->dev, b->len);
	t = facts_reason(b->reason);
	log_error("cuFileBufRegister error, object allocation failed: %zu bytes at 0x%llx on GPU %s: %s: %s; %s",
		  b->len, (unsigned long long)b->va, b->dev->pci, log_errno(r), t->text, t->remedy);
	return c->allow_compat && !c->strict ? 0 : ERR(GPU_MEMORY_PINNING_FAILED);
}

static int register_gpu(struct buffer *b)
{
	int err = 0;

	if (b->va < b->mem.base_va || b->len > b->mem.len - (b->va - b->mem.base_va)) {
		log_error("cuFileBufRegister: %zu bytes at 0x%llx leave their allocation of %zu bytes at 0x%llx: register at most that",
			  b->len, (unsigned long long)b->va, b->mem.len,
			  (unsigned long long)b->mem.base_va);
		return ERR(CUDA_POINTER_RANGE_ERROR);
	}
	b->dev = device_get(b->mem.dev, &err);
	if (!b->dev)
		return err;
	device_own(b->dev, &b->mem);
	if (b->mem.kind == GPU_MEM_MANAGED) {
		b->reason = REASON_MANAGED_MEMORY;
		return 0;
	}
	bar_cached_drop(b->dev, b->mem.id);
	/* a driver that does not know it has memory operations that wait by themselves */
	err = gpu->sync_memops(b->va, b->mem.ctx);
	if (err)
		log_debug("cuPointerSetAttribute(SYNC_MEMOPS) of 0x%llx: %s",
			  (unsigned long long)b->va, gpu->error(err));
	return pin(b);
}

/* *dev: of the memory, -1 for the host's, or when it is not known */
static int register_range(const void *ptr, size_t len, int *dev)
{
	struct gpu_ptr mem;
	struct buffer *b;
	int r;

	if (!ptr || !len) {
		log_error("cuFileBufRegister: %p + %zu is no range of memory: give its start and its length",
			  ptr, len);
		return ERR(INVALID_VALUE);
	}
	if (len > (uintptr_t)-1 - (uintptr_t)ptr) {
		log_error("cuFileBufRegister: %p + %zu goes round the end of all addresses: give the length of the memory",
			  ptr, len);
		return ERR(CUDA_POINTER_RANGE_ERROR);
	}
	r = gpu->pointer(ptr, &mem);
	if (r) {
		log_error("cuFileBufRegister: %p: cuPointerGetAttributes: %s: check the GPU with nvidia-smi",
			  ptr, gpu->error(r));
		return err_cuda(r);
	}
	*dev = mem.dev;
	drop_stale((uintptr_t)ptr, &mem);
	if (registered((uintptr_t)ptr)) {
		r = ERR(MEMORY_ALREADY_REGISTERED);
		goto said;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->va = (uintptr_t)ptr;
	b->len = len;
	b->mem = mem;
	if (b->mem.kind != GPU_MEM_HOST) {
		r = register_gpu(b);
	} else {
		b->reason = REASON_HOST_MEMORY;
		if (!driver_config()->allow_system_memory) {
			log_error("cuFileBufRegister: %p is host memory and allow_system_memory is false: set it, or use GPU memory",
				  ptr);
			r = ERR(CUDA_MEMORY_TYPE_INVALID);
		}
	}
	if (r) {
		free(b);
		return r;
	}
	r = insert(b);
	if (!r)
		return 0;
	release(b);
said:
	log_error("cuFileBufRegister: %p + %zu: %s: deregister it first", ptr, len, errmap_text(r));
	return r;
}

CUfileError_t cuFileBufRegister(const void *ptr, size_t length, int flags)
{
	int r, dev = -1;

	/* opens whatever the arguments are, as the registration of a handle does */
	r = driver_enter();
	if (r)
		return errmap_status(r);
	r = register_range(ptr, length, &dev);
	/* what was registered before was not tried on the GPU */
	stats_register(r == ERR(MEMORY_ALREADY_REGISTERED) ? -1 : dev, length, !r);
	driver_leave();
	return errmap_status(r);
}

CUfileError_t cuFileBufDeregister(const void *ptr)
{
	struct buffer *b;
	int r;

	if (!ptr)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_enter_open(ERR(DRIVER_CLOSING), ERR(DRIVER_CLOSING));
	if (r)
		return errmap_status(r);
	b = take_out((uintptr_t)ptr, NULL);
	stats_deregister(b ? b->mem.dev : -1, b ? b->len : 0, b);
	if (b) {
		wait_idle(b);
		release(b);
	} else {
		log_error("cuFileBufDeregister: %p is not the start of a registered range: give the address that was registered",
			  ptr);
		r = ERR(MEMORY_NOT_REGISTERED);
	}
	driver_leave();
	return errmap_status(r);
}

void buffers_release(void)
{
	struct buffer *b;

	while ((b = ranges_drain(&table.set)))
		release(b);
}
