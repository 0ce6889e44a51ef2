// SPDX-License-Identifier: MIT
/*
 * device.c - start-up: which cards there are, and what each one is like.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "internal.h"

struct sim_state sim = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static uint64_t env_number(const char *name, uint64_t fallback, uint64_t max)
{
	const char *text = getenv(name);
	char *end;
	uint64_t value;

	if (!text || !*text)
		return fallback;
	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end || value > max) {
		fprintf(stderr, "gpu-sim: %s=%s is no number up to %llu: %llu is taken\n", name,
			text, (unsigned long long)max, (unsigned long long)fallback);
		return fallback;
	}
	return value;
}

/* GPU_SIM_SCATTER as the argument of the ioctl; DEFAULT when it is not set. */
static bool env_pattern(struct gpu_sim_pattern_arg *arg)
{
	static const struct {
		const char *name;
		unsigned int pattern;
	} names[] = {
		{ "contig", GPU_SIM_CONTIG },
		{ "2m", GPU_SIM_2M },
		{ "64k", GPU_SIM_64K },
		{ "reverse", GPU_SIM_64K },
		{ "alternate", GPU_SIM_ALTERNATE },
	};
	const char *text = getenv("GPU_SIM_SCATTER");
	char *end;
	size_t i;

	memset(arg, 0, sizeof(*arg));
	if (!text || !*text)
		return true;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(text, names[i].name)) {
			arg->pattern = names[i].pattern;
			return true;
		}
	}
	if (!strncmp(text, "random:", 7) && text[7]) {
		arg->pattern = GPU_SIM_RANDOM;
		arg->seed = strtoull(text + 7, &end, 0);
		if (!*end)
			return true;
	}
	fprintf(stderr,
		"gpu-sim: GPU_SIM_SCATTER=%s is unknown: use contig, 2m, 64k, reverse, "
		"alternate or random:SEED\n", text);
	return false;
}

static int by_index(const void *a, const void *b)
{
	const struct sim_device *x = a, *y = b;

	return (x->info.index > y->info.index) - (x->info.index < y->info.index);
}

static CUresult open_cards(const struct gpu_sim_pattern_arg *pattern)
{
	struct sim_device *d;
	char path[32];
	int i, fd;

	for (i = 0; i < SIM_MAX_DEVICES; i++) {
		snprintf(path, sizeof(path), "/dev/gpu-sim%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0) {
			if (errno != ENOENT)
				fprintf(stderr, "gpu-sim: %s: %s\n", path, strerror(errno));
			continue;
		}
		d = &sim.device[sim.ndevices];
		if (ioctl(fd, GPU_SIM_IOC_INFO, &d->info) || d->info.abi != GPU_SIM_ABI ||
		    (pattern->pattern && ioctl(fd, GPU_SIM_IOC_PATTERN, pattern))) {
			fprintf(stderr, "gpu-sim: %s: module and library differ (ABI %u, %d)\n",
				path, d->info.abi, GPU_SIM_ABI);
			close(fd);
			return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
		}
		d->fd = fd;
		sim.ndevices++;
	}
	qsort(sim.device, sim.ndevices, sizeof(sim.device[0]), by_index);
	return CUDA_SUCCESS;
}

static void make_host_devices(void)
{
	uint64_t n = env_number("GPU_SIM_HOST_GPUS", 1, SIM_MAX_DEVICES);
	uint64_t mb = env_number("GPU_SIM_HOST_MB", 1024, 1 << 20);
	struct sim_device *d;
	uint64_t i;

	sim.host = true;
	for (i = 0; i < n; i++) {
		d = &sim.device[i];
		d->fd = -1;
		d->info.abi = GPU_SIM_ABI;
		d->info.index = i;
		d->info.pci_bdf = i << 3;
		d->info.pci_domain = 0xffff;	/* no machine's own */
		d->info.vram_bytes = mb << 20;
		d->info.page_size = GPU_SIM_PAGE_SIZE;
		d->info.poison = GPU_SIM_POISON;
		d->info.rm_client = GPU_SIM_RM_CLIENT;
		memcpy(d->info.uuid, "gpu-sim in host", sizeof(d->info.uuid));
		d->info.uuid[15] = i;
		strcpy(d->info.name, "OpenGDS simulated GPU (host)");
		sim.ndevices++;
	}
}

/* The child of a fork has no GPU: its first use of CUDA fails, as with the real driver.
 * Its copies of the descriptors would keep the parent's memory alive. */
static void after_fork_child(void)
{
	int i;

	pthread_mutex_init(&sim.lock, NULL);
	pthread_cond_init(&sim.changed, NULL);
	if (!sim.ready)
		return;
	sim.forked = true;
	for (i = 0; i < sim.ndevices; i++) {
		if (sim.device[i].fd >= 0)
			close(sim.device[i].fd);
		sim.device[i].fd = -1;
	}
}

static CUresult start(void)
{
	struct gpu_sim_pattern_arg pattern;
	CUresult r;

	if (!access("/proc/driver/nvidia/version", F_OK)) {
		fprintf(stderr, "gpu-sim: a real GPU driver is loaded: run without sim/run\n");
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	}
	if (!env_pattern(&pattern))
		return CUDA_ERROR_INVALID_VALUE;
	sim.seed = env_number("GPU_SIM_SEED", 0, UINT64_MAX);
	sim.delay_us = env_number("GPU_SIM_DELAY_US", 100, 10000000);
	r = open_cards(&pattern);
	if (r)
		return r;
	if (!sim.ndevices)
		make_host_devices();
	if (pthread_atfork(NULL, NULL, after_fork_child))
		return CUDA_ERROR_OPERATING_SYSTEM;
	return sim.ndevices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

SIM_EXPORT CUresult cuInit(unsigned int Flags)
{
	CUresult r = CUDA_SUCCESS;

	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	if (sim.forked) {
		r = CUDA_ERROR_NOT_INITIALIZED;
	} else if (!sim.ready) {
		r = start();
		sim.ready = !r;
	}
	pthread_mutex_unlock(&sim.lock);
	return r;
}

CUresult sim_enter(void)
{
	bool ok;

	pthread_mutex_lock(&sim.lock);
	ok = sim.ready && !sim.forked;
	pthread_mutex_unlock(&sim.lock);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

struct sim_device *sim_device(CUdevice dev)
{
	return dev >= 0 && dev < sim.ndevices ? &sim.device[dev] : NULL;
}

SIM_EXPORT int gpu_sim_cards(void)
{
	if (sim_enter())
		return -ENODEV;
	return sim.host ? 0 : sim.ndevices;
}

SIM_EXPORT CUresult cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = CUDA_VERSION;
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetCount(int *count)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = sim.ndevices;
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

/* The device of a call that needs one and somewhere to put the answer. */
static CUresult device_for(CUdevice dev, const void *out, struct sim_device **d)
{
	CUresult r = sim_enter();

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*d = sim_device(dev);
	return *d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SIM_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	struct sim_device *d;
	CUresult r = device_for(dev, name, &d);

	if (r)
		return r;
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, len, "%s", d->info.name);
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	struct sim_device *d;
	CUresult r = device_for(dev, bytes, &d);

	if (!r)
		*bytes = d->info.vram_bytes;
	return r;
}

SIM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	struct sim_device *d;
	CUresult r = device_for(dev, uuid, &d);

	if (!r)
		memcpy(uuid->bytes, d->info.uuid, sizeof(uuid->bytes));
	return r;
}

SIM_EXPORT CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	struct sim_device *d;
	CUresult r = device_for(dev, pciBusId, &d);

	if (r)
		return r;
	/* the driver writes upper case and wants room for 13 bytes */
	if (len < 13)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(pciBusId, len, "%04X:%02X:%02X.%X", d->info.pci_domain, d->info.pci_bdf >> 8,
		 d->info.pci_bdf >> 3 & 0x1f, d->info.pci_bdf & 7);
	return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned int domain = 0, bus, slot, fn = 0, bdf;
	CUresult r = sim_enter();
	int i;

	if (r)
		return r;
	if (!dev || !pciBusId)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) < 3) {
		domain = 0;
		fn = 0;
		if (sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &fn) < 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	bdf = bus << 8 | slot << 3 | fn;
	for (i = 0; i < sim.ndevices; i++) {
		if (sim.device[i].info.pci_domain == domain && sim.device[i].info.pci_bdf == bdf) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

/* Attributes that are the same for every simulated card. */
static const struct {
	CUdevice_attribute attribute;
	int value;
} constants[] = {
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
	{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
	{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000 },
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1 },
	{ CU_DEVICE_ATTRIBUTE_INTEGRATED, 0 },
	{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0 },
	{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
	{ CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000 },
	{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64 },
	{ CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0 },
	{ CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2 },
	{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
	{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0 },
	{ CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0 },
	{ CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0 },
	{ CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0 },
	{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 1 },
	{ CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 200 },
	{ CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1 },
	{ CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0 },
};

SIM_EXPORT CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	struct sim_device *d;
	CUresult r = device_for(dev, pi, &d);
	size_t i;

	if (r)
		return r;
	switch ((int)attrib) {
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		*pi = d->info.pci_domain;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*pi = d->info.pci_bdf >> 8;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
		*pi = d->info.pci_bdf >> 3 & 0x1f;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
		*pi = !sim.host;
		return CUDA_SUCCESS;
	}
	for (i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		if (constants[i].attribute == attrib) {
			*pi = constants[i].value;
			return CUDA_SUCCESS;
		}
	}
	/* known to CUDA, of no concern here: 0, as on a device without the feature */
	if ((int)attrib > 0 && (int)attrib < 160) {
		*pi = 0;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_ALIAS(cuDeviceGetUuid_v2, "cuDeviceGetUuid");
