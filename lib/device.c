// SPDX-License-Identifier: MIT
/* device.c - the GPUs of this open. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define LOG_MODULE "cufio-gpu"
#include "device.h"
#include "driver.h"
#include "errmap.h"
#include "facts.h"
#include "gpu.h"
#include "lane.h"
#include "log.h"
#include "os.h"
#include "slots.h"

/* lock: held while one is made. A pointer is stored with release once all else is there. */
static struct {
	pthread_mutex_t lock;
	struct device *dev[GPU_MAX];
} devices = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* devices.lock held */
static struct device *make(int index, int *err)
{
	struct device *d = calloc(1, sizeof(*d));
	int r;

	if (!d) {
		*err = -ENOMEM;
		return NULL;
	}
	d->index = index;
	r = gpu->primary_get(index, &d->ctx);
	if (r) {
		log_error("GPU %d: cuDevicePrimaryCtxRetain: %s: check the GPU with nvidia-smi",
			  index, gpu->error(r));
		goto fail;
	}
	r = gpu->pci(index, &d->pdevinfo, d->pci, sizeof(d->pci));
	if (r) {
		log_error("GPU %d: cuDeviceGetPCIBusId: %s: check the GPU with nvidia-smi", index,
			  gpu->error(r));
		gpu->primary_put(index);
		goto fail;
	}
	d->node = facts_pci_numa(os_root, d->pci);
	staging_init(&d->staging, d);
	bar_gpu_init(&d->bar, d);
	peers_gpu_init(&d->peers, d);
	log_info("GPU %d is %s", index, d->pci);
	return d;

fail:
	free(d);
	*err = err_cuda(r);
	return NULL;
}

struct device *device_get(int index, int *err)
{
	struct device *d;

	if (index < 0 || index >= GPU_MAX) {
		*err = ERR(DEVICE_NOT_FOUND);
		return NULL;
	}
	d = __atomic_load_n(&devices.dev[index], __ATOMIC_ACQUIRE);
	if (d)
		return d;
	pthread_mutex_lock(&devices.lock);
	d = devices.dev[index];
	if (!d) {
		d = make(index, err);
		__atomic_store_n(&devices.dev[index], d, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&devices.lock);
	return d;
}

bool device_no_p2p(struct device *d, dev_t files)
{
	unsigned int i;
	uint64_t was;

	for (i = 0; i < DEVICE_NO_P2P; i++) {
		was = atomic_load_explicit(&d->no_p2p[i], memory_order_relaxed);
		if (was == (uint64_t)files + 1)
			return true;
		if (!was)
			return false;
	}
	return false;
}

/* More of them than there is room for are learned by each request anew. */
void device_set_no_p2p(struct device *d, dev_t files)
{
	unsigned int i;
	uint64_t was;

	for (i = 0; i < DEVICE_NO_P2P; i++) {
		was = 0;
		if (atomic_compare_exchange_strong(&d->no_p2p[i], &was, (uint64_t)files + 1) ||
		    was == (uint64_t)files + 1)
			return;
	}
}

void device_own(const struct device *d, struct gpu_ptr *mem)
{
	if (!mem->ctx) {
		mem->ctx = d->ctx;
		mem->mapped = true;
	}
}

int device_pin(struct device *d, size_t size)
{
	size_t limit = driver_word(&driver_config()->max_pinned_kb) * 1024;
	size_t have = atomic_load(&d->pinned);

	do {
		if (have > limit || size > limit - have)
			return -ENOMEM;
	} while (!atomic_compare_exchange_weak(&d->pinned, &have, have + size));
	return 0;
}

void device_unpin(struct device *d, size_t size)
{
	atomic_fetch_sub(&d->pinned, size);
}

void devices_release(void)
{
	int i;

	slots_release();
	lanes_release();
	for (i = 0; i < GPU_MAX; i++) {
		struct device *d = devices.dev[i];

		if (!d)
			continue;
		bar_gpu_release(&d->bar);
		staging_release(&d->staging);
		peers_gpu_release(&d->peers);
		gpu->primary_put(d->index);
		devices.dev[i] = NULL;
		free(d);
	}
}
