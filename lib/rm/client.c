// SPDX-License-Identifier: MIT
/* client.c - a client of the GPU driver's resource manager: connection, objects, views. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os.h"
#include "rm/rm.h"
#include "rm/wire.h"

#define PAGE 4096
/* Names of objects that we choose; the driver's own and CUDA's are far from them. */
#define FIRST_NAME 0xd0000001u
#define MOST_NAMES 0x0f000000u

/*
 * All final after rm_open but next_name. The driver does its own locking: its calls are made
 * without a lock of ours.
 */
struct rm {
	int control;		/* /dev/nvidiactl */
	char node[32];		/* "/dev/nvidia0" */
	uint32_t client, device, subdevice;
	atomic_uint next_name;
};

static uint32_t new_name(struct rm *rm)
{
	return FIRST_NAME + atomic_fetch_add(&rm->next_name, 1) % MOST_NAMES;
}

/* -errno of the call, else the status that the driver left in the request. */
static int ask(struct rm *rm, unsigned long nr, void *request, const uint32_t *status)
{
	int r = os->ioctl(rm->control, nr, request);

	return r < 0 ? r : (int)*status;
}

static int control_of(struct rm *rm, uint32_t object, uint32_t command, void *params,
		      uint32_t size)
{
	struct rm_control c = {
		.client = rm->client,
		.object = object,
		.command = command,
		.params = (uintptr_t)params,
		.size = size,
	};

	return ask(rm, RM_IOC_CONTROL, &c, &c.status);
}

static int control(struct rm *rm, uint32_t command, void *params, uint32_t size)
{
	return control_of(rm, rm->client, command, params, size);
}

/* *object: the name asked for, 0: the driver's choice; and the one that it has. */
static int alloc(struct rm *rm, uint32_t parent, uint32_t *object, uint32_t class, void *params,
		 uint32_t size)
{
	struct rm_alloc a = {
		.client = rm->client,
		.parent = parent,
		.object = *object,
		.class = class,
		.params = (uintptr_t)params,
		.size = size,
	};
	int r = ask(rm, RM_IOC_ALLOC, &a, &a.status);

	if (!r)
		*object = a.object;
	return r;
}

static void drop(struct rm *rm, uint32_t parent, uint32_t object)
{
	struct rm_free f = { .client = rm->client, .parent = parent, .object = object };

	os->ioctl(rm->control, RM_IOC_FREE, &f);
}

/* The number of the GPU's node, from the driver's own list below /proc. */
static int find_node(const char *pci, char *node, size_t len)
{
	char path[256], line[128];
	unsigned int minor;
	int r = -ENODEV;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus/%s/information", os_root, pci);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Device Minor: %u", &minor) == 1) {
			snprintf(node, len, "/dev/nvidia%u", minor);
			r = 0;
		}
	fclose(f);
	return r;
}

/* The driver's number of the GPU at this address. */
static int find_id(struct rm *rm, const char *pci, uint32_t *id)
{
	unsigned int domain, bus, slot, fn;
	struct rm_probed_ids ids;
	struct rm_pci_info at;
	int i, r;

	if (sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) != 4)
		return -EINVAL;
	memset(&ids, 0xff, sizeof(ids));
	r = control(rm, RM_CTRL_PROBED_IDS, &ids, sizeof(ids));
	for (i = 0; !r && i < RM_MAX_GPUS && ids.id[i] != RM_NO_ID; i++) {
		memset(&at, 0, sizeof(at));
		at.id = ids.id[i];
		r = control(rm, RM_CTRL_PCI_INFO, &at, sizeof(at));
		if (!r && at.domain == domain && at.bus == bus && at.slot == slot) {
			*id = at.id;
			return 0;
		}
	}
	return r ? r : -ENODEV;
}

static int attach(struct rm *rm, uint32_t id, struct rm_id_info *info)
{
	struct rm_attach_ids a;
	int r;

	memset(&a, 0xff, sizeof(a));
	a.id[0] = id;
	r = control(rm, RM_CTRL_ATTACH_IDS, &a, sizeof(a));
	if (r)
		return r;
	memset(info, 0, sizeof(*info));
	info->id = id;
	return control(rm, RM_CTRL_ID_INFO, info, sizeof(*info));
}

static int join(struct rm *rm, const char *pci, const char **step)
{
	struct rm_subdevice_params sub = { 0 };
	struct rm_device_params dev = { 0 };
	struct rm_id_info info;
	uint32_t id;
	int r;

	*step = "the driver's list of GPUs in /proc";
	r = find_node(pci, rm->node, sizeof(rm->node));
	if (r)
		return r;
	*step = "open of /dev/nvidiactl";
	rm->control = os->open("/dev/nvidiactl", O_RDWR);
	if (rm->control < 0)
		return rm->control;
	*step = "client";
	r = alloc(rm, 0, &rm->client, RM_CLASS_CLIENT, NULL, 0);
	if (r)
		return r;
	*step = "number of the GPU";
	r = find_id(rm, pci, &id);
	if (r)
		return r;
	*step = "attaching the GPU";
	r = attach(rm, id, &info);
	if (r)
		return r;
	*step = "device";
	dev.instance = info.device_instance;
	rm->device = new_name(rm);
	r = alloc(rm, rm->client, &rm->device, RM_CLASS_DEVICE, &dev, sizeof(dev));
	if (r)
		return r;
	*step = "subdevice";
	sub.instance = info.subdevice_instance;
	rm->subdevice = new_name(rm);
	return alloc(rm, rm->device, &rm->subdevice, RM_CLASS_SUBDEVICE, &sub, sizeof(sub));
}

int rm_open(const char *pci, struct rm **out, const char **step)
{
	struct rm *rm = calloc(1, sizeof(*rm));
	const char *at = "memory";
	int r = -ENOMEM;

	if (rm) {
		rm->control = -1;
		r = join(rm, pci, &at);
	}
	if (!r) {
		*out = rm;
		return 0;
	}
	*step = at;
	if (rm)
		rm_close(rm);
	return r;
}

/* Freeing the client frees all that it has. */
void rm_close(struct rm *rm)
{
	if (rm->client)
		drop(rm, rm->client, rm->client);
	if (rm->control >= 0)
		os->close(rm->control);
	free(rm);
}

int rm_memory_of(const unsigned char ipc[RM_IPC_BYTES], struct rm_memory *m)
{
	uint32_t w[RM_IPC_BYTES / 4];

	memcpy(w, ipc, sizeof(w));
	m->size = w[4] | (uint64_t)w[5] << 32;
	m->off = w[7];
	m->client = w[12];
	m->object = w[13];
	if (!m->size || !m->client || !m->object)
		return -EPROTO;
	return 0;
}

int rm_dup(struct rm *rm, const struct rm_memory *m, uint32_t *object, const char **step)
{
	struct rm_dup d = {
		.client = rm->client,
		.parent = rm->device,
		.object = new_name(rm),
		.source_client = m->client,
		.source_object = m->object,
	};
	int r = ask(rm, RM_IOC_DUP, &d, &d.status);

	if (r)
		*step = "a second name for the memory";
	else
		*object = d.object;
	return r;
}

/* What stands at `index` of the descriptor. *type RM_IMPORTED_NONE: nothing, no name is made. */
static int import_at(struct rm *rm, int fd, unsigned int index, uint32_t *object,
		     unsigned int *type)
{
	struct rm_import p = { .fd = fd, .parent = rm->device, .count = 1, .index = index };
	int r;

	p.object[0] = new_name(rm);
	r = control(rm, RM_CTRL_IMPORT, &p, sizeof(p));
	*object = p.object[0];
	*type = p.type[0];
	return r;
}

int rm_import(struct rm *rm, int fd, uint32_t *object, const char **step)
{
	unsigned int type, more_type;
	uint32_t more;
	int r;

	*step = "import of the memory";
	r = import_at(rm, fd, 0, object, &type);
	if (r)
		return r;
	if (type != RM_IMPORTED_VIDMEM) {
		if (type != RM_IMPORTED_NONE)
			rm_drop(rm, *object);
		return -EOPNOTSUPP;
	}
	/* where the second one would begin is not told, so there must be none */
	*step = "end of the imported memory";
	r = import_at(rm, fd, 1, &more, &more_type);
	if (r == RM_OUT_OF_RANGE || (!r && more_type == RM_IMPORTED_NONE))
		return 0;
	if (!r) {
		rm_drop(rm, more);
		r = -E2BIG;
	}
	rm_drop(rm, *object);
	return r;
}

void rm_drop(struct rm *rm, uint32_t object)
{
	drop(rm, rm->device, object);
}

int rm_view(struct rm *rm, uint32_t object, uint64_t off, size_t len, struct rm_view *v,
	    const char **step)
{
	struct rm_register_fd reg = { .control = rm->control };
	uint64_t skip = off % PAGE;
	struct rm_map m = {
		.client = rm->client,
		.device = rm->device,
		.memory = object,
		.off = off - skip,
		.len = (skip + len + PAGE - 1) / PAGE * PAGE,
	};
	int r;

	/* of a fresh open: one descriptor holds one mapping */
	m.fd = os->open(rm->node, O_RDWR);
	if (m.fd < 0) {
		*step = "open of the GPU's node";
		return m.fd;
	}
	*step = "the GPU's node as one of our client";
	r = os->ioctl(m.fd, RM_IOC_REGISTER_FD, &reg);
	if (r < 0)
		goto fail;
	*step = "a mapping of the memory";
	r = ask(rm, RM_IOC_MAP, &m, &m.status);
	if (r)
		goto fail;
	*step = "mmap of the GPU's node";
	v->map = os->mmap_node(m.fd, m.len);
	if (!v->map) {
		r = -errno;
		goto fail;
	}
	v->map_len = m.len;
	v->at = (char *)v->map + skip;
	v->len = len;
	/* the mapping keeps what it needs of it */
	os->close(m.fd);
	return 0;

fail:
	os->close(m.fd);
	return r;
}

void rm_unview(struct rm_view *v)
{
	os->munmap(v->map, v->map_len);
}

int rm_peers_open(struct rm *rm, struct rm_peers *p, const char **step)
{
	struct rm_peers_params peers = { .flags = RM_PEERS_BAR1 };
	struct rm_va_space_params space = { 0 };
	struct rm_peers_va_space join = { 0 };
	int r;

	*step = "third-party peer-to-peer object";
	p->va_space = 0;
	p->object = new_name(rm);
	r = alloc(rm, rm->subdevice, &p->object, RM_CLASS_PEERS, &peers, sizeof(peers));
	if (r)
		return r;
	*step = "address space";
	p->va_space = new_name(rm);
	r = alloc(rm, rm->device, &p->va_space, RM_CLASS_VA_SPACE, &space, sizeof(space));
	if (r) {
		p->va_space = 0;
		goto fail;
	}
	*step = "the address space, as one of that object";
	join.va_space = p->va_space;
	r = control_of(rm, p->object, RM_CTRL_PEERS_VA_SPACE, &join, sizeof(join));
	if (!r)
		return 0;
fail:
	rm_peers_close(rm, p);
	return r;
}

void rm_peers_close(struct rm *rm, const struct rm_peers *p)
{
	drop(rm, rm->subdevice, p->object);
	if (p->va_space)
		drop(rm, rm->device, p->va_space);
}

int rm_peers_register(struct rm *rm, const struct rm_peers *p, uint32_t object, uint64_t va,
		      uint64_t len, uint64_t off, const char **step)
{
	struct rm_peers_register reg = { .memory = object, .va = va, .size = len, .off = off };

	*step = "registration of the memory for peers";
	return control_of(rm, p->object, RM_CTRL_PEERS_REGISTER, &reg, sizeof(reg));
}

int rm_peers_unregister(struct rm *rm, const struct rm_peers *p, uint32_t object,
			const char **step)
{
	struct rm_peers_unregister un = { .memory = object };

	*step = "end of the registration for peers";
	return control_of(rm, p->object, RM_CTRL_PEERS_UNREGISTER, &un, sizeof(un));
}
