// SPDX-License-Identifier: MIT
/* t_vram.c - memory of the simulated cards, looked at by the BAR in sysfs. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu_sim.h"
#include "t_gpu.h"
#include "t_vram.h"

static struct {
	pthread_mutex_t lock;	/* the making of `at` */
	unsigned char *at[GPU_SIM_MAX_CARDS];	/* kept to the end, once made */
} vram = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* "/sys/bus/pci/devices/ADDRESS/FILE" */
static void path_of(int card, const char *file, char *path, size_t len)
{
	char pci[32], *c;
	CUdevice dev;

	if (cuDeviceGet(&dev, card) || cuDeviceGetPCIBusId(pci, sizeof(pci), dev))
		t_die("card %d: it has no PCI address", card);
	for (c = pci; *c; c++)
		*c = *c >= 'A' && *c <= 'F' ? *c + 32 : *c;
	snprintf(path, len, "/sys/bus/pci/devices/%s/%s", pci, file);
}

unsigned char *t_vram_map(int card, size_t *len)
{
	char path[128];
	CUdevice dev;
	void *p;
	int fd;

	if (cuDeviceGet(&dev, card) || cuDeviceTotalMem(len, dev))
		t_die("card %d: its size is not known", card);
	path_of(card, "resource2_wc", path, sizeof(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		path_of(card, "resource2", path, sizeof(path));
		fd = t_open(path, O_RDWR);
	}
	p = mmap(NULL, *len, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		t_die("%s: mmap: %s", path, strerror(errno));
	close(fd);
	return p;
}

static const unsigned char *vram_of(int card)
{
	size_t len;

	pthread_mutex_lock(&vram.lock);
	if (!vram.at[card])
		vram.at[card] = t_vram_map(card, &len);
	pthread_mutex_unlock(&vram.lock);
	return vram.at[card];
}

void t_vram_get(void *dst, CUdeviceptr src, size_t size)
{
	unsigned int most = size / GPU_SIM_PAGE_SIZE + 2;
	struct gpu_sim_piece *p = calloc(most, sizeof(*p));
	int n, i;

	if (!p)
		t_die("out of memory");
	n = gpu_sim_where((void *)(uintptr_t)src, size, p, most);
	if (n < 1 || n > (int)most)
		t_die("%zu bytes at 0x%llx: gpu_sim_where: %d", size, (unsigned long long)src, n);
	for (i = 0; i < n; i++)
		memcpy((char *)dst + p[i].buf_off, vram_of(p[i].card) + p[i].card_off, p[i].len);
	free(p);
}

long t_vram_counter(int card, const char *name)
{
	char path[128], file[64];
	long value;
	FILE *f;

	snprintf(file, sizeof(file), "gpu_sim/%s", name);
	path_of(card, file, path, sizeof(path));
	f = fopen(path, "re");
	if (!f || fscanf(f, "%ld", &value) != 1)
		t_die("%s: no number can be read", path);
	fclose(f);
	return value;
}

void t_vram_parameter(const char *name, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/gpu_sim/parameters/%s", name);
	f = fopen(path, "we");
	if (!f || fputs(value, f) < 0 || fclose(f))
		t_die("%s: cannot be written", path);
}
