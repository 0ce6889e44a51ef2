// SPDX-License-Identifier: MIT
/* rm_fake.c - the GPU driver's resource manager, as a stand-in for unit tests. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda.h>
#include <gpu_sim.h>

#include "cufile_fake.h"
#include "os.h"
#include "rm/wire.h"
#include "rm_fake.h"
#include "tree.h"

#define CLIENT 0xc1d01234u	/* the first one; each has the next number */
#define GPU_ID 0x1b00u
#define INSTANCE 3
#define FDS 256
#define OBJECTS 256
#define VIEWS 1024

struct rm_fake rm_fake;

static const struct os_ops *below;
static struct os_ops ops;
static char pci[32];

/* lock guards all that follows. A node's descriptor: plain -> registered -> mapped. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	enum { FREE, CONTROL, NODE, REGISTERED, MAPPED } kind;
	int fd;
	void *at;		/* MAPPED: what mmap shows */
	size_t len;
} fds[FDS];
static struct {
	uint32_t client, name, class;	/* name 0: free */
	void *at;		/* of memory: a mapping of ours */
	size_t size;
	void *source;		/* of memory: where the simulated GPU has it */
	uint32_t space;		/* of a peers object: the address space that it was given */
} object[OBJECTS];
/* What a peers object lists, the oldest first; memory 0: free, behind the last one. */
static struct {
	uint32_t client, memory;
	uint64_t va, size;
	char *at;		/* our mapping of what was at va when it was listed */
} entry[OBJECTS];
static struct {
	void *at;
	size_t len;
} view[VIEWS];
static char *elsewhere;		/* memory that is nobody's */
static uint32_t last_client;

static void broken(const char *rule)
{
	fprintf(stderr, "fake resource manager: broken rule: %s\n", rule);
	atomic_fetch_add(&rm_fake.violations, 1);
}

static bool fails(enum rm_step step)
{
	return (int)step == atomic_load(&rm_fake.fail);
}

/* A status by which a step that is to fail does so; *r: what the system call returns. */
static uint32_t status(enum rm_step step, int *r)
{
	*r = 0;
	if (!fails(step))
		return 0;
	if (rm_fake.result < 0)
		*r = rm_fake.result;
	return rm_fake.result > 0 ? rm_fake.result : 0;
}

/* lock held */
static int slot_of(int fd)
{
	int i;

	for (i = 0; i < FDS; i++)
		if (fds[i].kind != FREE && fds[i].fd == fd)
			return i;
	return -1;
}

/* lock held */
static int find_object(uint32_t client, uint32_t name)
{
	int i;

	for (i = 0; i < OBJECTS; i++)
		if (name && object[i].name == name && object[i].client == client)
			return i;
	return -1;
}

/* lock held */
static bool is(uint32_t client, uint32_t name, uint32_t class)
{
	int i = find_object(client, name);

	return i >= 0 && object[i].class == class;
}

/* lock held */
static int add(uint32_t client, uint32_t name, uint32_t class, void *at, size_t size)
{
	int i;

	for (i = 0; i < OBJECTS && object[i].name; i++)
		;
	assert_true(i < OBJECTS);
	object[i].client = client;
	object[i].name = name;
	object[i].class = class;
	object[i].at = at;
	object[i].size = size;
	return i;
}

static int rm_open_file(const char *path, int flags)
{
	bool control = !strcmp(path, "/dev/nvidiactl"), node = !strcmp(path, "/dev/nvidia7");
	enum rm_step step = control ? RM_OPEN_CONTROL : RM_OPEN_NODE;
	int fd, i;

	if (!control && !node)
		return below->open(path, flags);
	if ((flags & O_ACCMODE) != O_RDWR)
		broken("mode of a node's open");
	if (fails(step))
		return rm_fake.result < 0 ? rm_fake.result : -EIO;
	fd = os_real.open("/dev/null", flags);
	pthread_mutex_lock(&lock);
	for (i = 0; i < FDS && fds[i].kind != FREE; i++)
		;
	assert_true(i < FDS);
	fds[i].kind = control ? CONTROL : NODE;
	fds[i].fd = fd;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&rm_fake.nodes, 1);
	return fd;
}

/* lock held. What was listed is still what CUDA has at that address: both names show one byte. */
static bool is_same(int i, uint64_t va)
{
	volatile char *now = (char *)va, *then = entry[i].at + (va - entry[i].va);
	char was = *now;
	bool same;

	*then ^= 1;
	same = *now != was;
	*then ^= 1;
	return same;
}

/* lock held. The entries of a client's: of one object of memory, or of all (0). */
static void unlist(uint32_t client, uint32_t memory)
{
	int i, k;

	for (i = k = 0; i < OBJECTS && entry[i].memory; i++)
		if (entry[i].client != client || (memory && entry[i].memory != memory))
			entry[k++] = entry[i];
	atomic_fetch_sub(&rm_fake.listed, i - k);
	memset(&entry[k], 0, (OBJECTS - k) * sizeof(entry[0]));
}

/* lock held. All that hangs below an object of ours. */
static void drop(int i)
{
	if (!object[i].class)
		unlist(object[i].client, object[i].name);
	if (object[i].class == RM_CLASS_PEERS)
		unlist(object[i].client, 0);
	if (object[i].class == RM_CLASS_DEVICE)
		atomic_fetch_sub(&rm_fake.devices, 1);
	if (!object[i].class)
		atomic_fetch_sub(&rm_fake.dups, 1);
	if (object[i].at)
		munmap(object[i].at, object[i].size);
	memset(&object[i], 0, sizeof(object[i]));
}

static int rm_close_file(int fd)
{
	int i;

	pthread_mutex_lock(&lock);
	i = slot_of(fd);
	if (i >= 0) {
		fds[i].kind = FREE;
		atomic_fetch_sub(&rm_fake.nodes, 1);
	}
	pthread_mutex_unlock(&lock);
	return below->close(fd);
}

/* -- requests -- */

/* lock held */
static int do_alloc(struct rm_alloc *a)
{
	const struct rm_device_params *d = (void *)(uintptr_t)a->params;
	const struct rm_subdevice_params *s = (void *)(uintptr_t)a->params;
	const struct rm_peers_params *p = (void *)(uintptr_t)a->params;
	static const struct rm_va_space_params none;
	int r;

	switch (a->class) {
	case RM_CLASS_CLIENT:
		if (a->client || a->parent || a->object || a->params || a->size)
			broken("fields of a client");
		a->status = status(RM_CLIENT, &r);
		if (r || a->status)
			return r;
		a->object = last_client = last_client ? last_client + 1 : CLIENT;
		atomic_fetch_add(&rm_fake.clients, 1);
		add(a->object, a->object, RM_CLASS_CLIENT, NULL, 0);
		return 0;
	case RM_CLASS_DEVICE:
		if (!is(a->client, a->parent, RM_CLASS_CLIENT) || a->size != sizeof(*d) ||
		    d->instance != INSTANCE || d->share_client || d->target_client || d->flags ||
		    d->va_size || d->va_mode || find_object(a->client, a->object) >= 0)
			broken("fields of a device");
		a->status = status(RM_DEVICE, &r);
		if (r || a->status)
			return r;
		atomic_fetch_add(&rm_fake.devices, 1);
		add(a->client, a->object, RM_CLASS_DEVICE, NULL, 0);
		return 0;
	case RM_CLASS_SUBDEVICE:
		if (!is(a->client, a->parent, RM_CLASS_DEVICE) || a->size != sizeof(*s) ||
		    s->instance)
			broken("fields of a subdevice");
		a->status = status(RM_SUBDEVICE, &r);
		if (!r && !a->status)
			add(a->client, a->object, RM_CLASS_SUBDEVICE, NULL, 0);
		return r;
	case RM_CLASS_PEERS:
		if (!is(a->client, a->parent, RM_CLASS_SUBDEVICE) || a->size != sizeof(*p) ||
		    p->flags != RM_PEERS_BAR1)
			broken("fields of a peers object");
		a->status = status(RM_PEERS, &r);
		if (!r && !a->status)
			add(a->client, a->object, RM_CLASS_PEERS, NULL, 0);
		return r;
	case RM_CLASS_VA_SPACE:
		if (!is(a->client, a->parent, RM_CLASS_DEVICE) || a->size != sizeof(none) ||
		    memcmp(p, &none, sizeof(none)))
			broken("fields of an address space");
		a->status = status(RM_VA_SPACE, &r);
		if (!r && !a->status)
			add(a->client, a->object, RM_CLASS_VA_SPACE, NULL, 0);
		return r;
	}
	broken("class");
	return -EINVAL;
}

/* lock held. The controls of a peers object. */
static int do_peers(struct rm_control *c)
{
	void *params = (void *)(uintptr_t)c->params;
	const struct rm_peers_unregister *u = params;
	const struct rm_peers_register *g = params;
	struct rm_peers_va_space *s = params;
	int i, k, o = find_object(c->client, c->object), m, r = -EINVAL;

	if (o < 0 || object[o].class != RM_CLASS_PEERS || c->flags) {
		broken("object of a control for peers");
		return r;
	}
	if (c->command == RM_CTRL_PEERS_VA_SPACE) {
		if (c->size != sizeof(*s) || object[o].space ||
		    !is(c->client, s->va_space, RM_CLASS_VA_SPACE))
			broken("fields of an address space for peers");
		c->status = status(RM_JOIN, &r);
		if (!r && !c->status)
			object[o].space = s->va_space;
		return r;
	}
	m = find_object(c->client, u->memory);
	if (m < 0 || object[m].class) {
		broken("what is listed or no longer is no memory");
		return r;
	}
	for (i = 0; i < OBJECTS && entry[i].memory &&
	     (c->command == RM_CTRL_PEERS_REGISTER || entry[i].client != c->client ||
	      entry[i].memory != u->memory); i++)
		;
	assert_true(i < OBJECTS);
	if (c->command == RM_CTRL_PEERS_UNREGISTER) {
		if (c->size != sizeof(*u) || !entry[i].memory)
			broken("the end of a listing that is none");
		c->status = status(RM_UNLIST, &r);
		if (!r && !c->status)
			unlist(c->client, u->memory);
		return r;
	}
	if (c->size != sizeof(*g) || !object[o].space || !g->size || g->off > object[m].size ||
	    g->size > object[m].size - g->off || g->va % 65536 || g->size % 65536 ||
	    (char *)object[m].source + g->off != (char *)g->va)
		broken("fields of a listing");
	for (k = 0; k < i; k++)
		if (entry[k].memory == g->memory ||
		    (g->va < entry[k].va + entry[k].size && entry[k].va < g->va + g->size))
			broken("an address that is listed already");
	c->status = status(RM_LIST, &r);
	if (r || c->status)
		return r;
	entry[i].client = c->client;
	entry[i].memory = g->memory;
	entry[i].va = g->va;
	entry[i].size = g->size;
	entry[i].at = (char *)object[m].at + g->off;
	atomic_fetch_add(&rm_fake.listed, 1);
	return 0;
}

/* The first entry with the address decides. */
static bool geforce_pins(uint64_t va, size_t size)
{
	bool yes = false;
	int i;

	atomic_fetch_add(&rm_fake.pins, 1);
	if (rm_fake.at_pin)
		rm_fake.at_pin();
	pthread_mutex_lock(&lock);
	for (i = 0; i < OBJECTS && entry[i].memory; i++)
		if (va >= entry[i].va && va - entry[i].va < entry[i].size) {
			yes = size <= entry[i].size - (va - entry[i].va);
			if (!rm_fake.at_pin && !is_same(i, va))
				broken("a pin by an entry whose memory was freed");
			break;
		}
	pthread_mutex_unlock(&lock);
	return yes;
}

/* lock held. A descriptor of the simulated CUDA's holds the number of the object. */
static int do_import(struct rm_control *c)
{
	struct rm_import *p = (void *)(uintptr_t)c->params;
	int have = atomic_load(&rm_fake.objects), r, type = atomic_load(&rm_fake.type);
	uint32_t number;
	size_t size;
	void *at;

	if (c->size != sizeof(*p) || p->count != 1 || !is(c->client, p->parent, RM_CLASS_DEVICE) ||
	    !p->object[0] || find_object(c->client, p->object[0]) >= 0)
		broken("fields of an import");
	c->status = status(p->index ? RM_IMPORT_END : RM_IMPORT, &r);
	if (r || c->status)
		return r;
	if (pread(p->fd, &number, sizeof(number), 0) != sizeof(number) ||
	    gpu_sim_rm_object(number, &at, &size)) {
		broken("import of what is no exported memory");
		return -EINVAL;
	}
	if (p->index >= (have ? have : 1)) {
		c->status = RM_OUT_OF_RANGE;
		return 0;
	}
	p->type[0] = type ? type : RM_IMPORTED_VIDMEM;
	r = add(c->client, p->object[0], 0, mremap(at, 0, size, MREMAP_MAYMOVE), size);
	assert_true(object[r].at != MAP_FAILED);
	object[r].source = at;
	atomic_fetch_add(&rm_fake.dups, 1);
	atomic_fetch_add(&rm_fake.imports, 1);
	return 0;
}

static int do_control(struct rm_control *c)
{
	void *p = (void *)(uintptr_t)c->params;
	struct rm_probed_ids *ids = p;
	struct rm_attach_ids *attach = p;
	struct rm_id_info *info = p;
	struct rm_pci_info *at = p;
	unsigned int domain, bus, slot;
	int r = -EINVAL;

	if (c->command >> 16 == RM_CLASS_PEERS)
		return do_peers(c);
	if (!is(c->client, c->object, RM_CLASS_CLIENT) || c->flags)
		broken("fields of a control");
	switch (c->command) {
	case RM_CTRL_IMPORT:
		return do_import(c);
	case RM_CTRL_PROBED_IDS:
		if (c->size != sizeof(*ids))
			broken("size of the probed ids");
		memset(ids, 0xff, sizeof(*ids));
		ids->id[0] = GPU_ID + 1;
		ids->id[1] = GPU_ID;
		c->status = status(RM_PROBED, &r);
		return r;
	case RM_CTRL_PCI_INFO:
		sscanf(pci, "%x:%x:%x", &domain, &bus, &slot);
		if (c->size != sizeof(*at) || (at->id != GPU_ID && at->id != GPU_ID + 1))
			broken("fields of the PCI address");
		at->domain = domain;
		at->bus = at->id == GPU_ID ? bus : bus + 1;
		at->slot = slot;
		c->status = status(RM_PCI, &r);
		return r;
	case RM_CTRL_ATTACH_IDS:
		if (c->size != sizeof(*attach) || attach->id[0] != GPU_ID ||
		    attach->id[1] != RM_NO_ID)
			broken("fields of the ids to attach");
		c->status = status(RM_ATTACH, &r);
		return r;
	case RM_CTRL_ID_INFO:
		if (c->size != sizeof(*info) || info->id != GPU_ID)
			broken("fields of the id");
		info->device_instance = INSTANCE;
		c->status = status(RM_ID, &r);
		return r;
	}
	broken("control");
	return r;
}

/* lock held */
static int do_dup(struct rm_dup *d)
{
	void *at, *source;
	size_t size;
	int r;

	if (!is(d->client, d->parent, RM_CLASS_DEVICE) || d->flags ||
	    d->source_client != GPU_SIM_RM_CLIENT || find_object(d->client, d->object) >= 0)
		broken("fields of a second name");
	d->status = status(RM_DUP, &r);
	if (r || d->status)
		return r;
	if (gpu_sim_rm_object(d->source_object, &at, &size)) {
		d->status = 0x57;	/* no such object */
		return 0;
	}
	source = at;
	at = mremap(at, 0, size, MREMAP_MAYMOVE);
	assert_true(at != MAP_FAILED);
	object[add(d->client, d->object, 0, at, size)].source = source;
	atomic_fetch_add(&rm_fake.dups, 1);
	return 0;
}

/* lock held */
static int do_map(struct rm_map *m)
{
	int o = find_object(m->client, m->memory), f = slot_of(m->fd), r;

	if (!is(m->client, m->device, RM_CLASS_DEVICE) || m->flags ||
	    m->off % 4096 || m->len % 4096 || !m->len)
		broken("fields of a mapping");
	if (f < 0 || fds[f].kind != REGISTERED) {
		broken("a mapping's descriptor: not a fresh one, or not of the client");
		return -EINVAL;
	}
	if (o < 0 || object[o].class) {
		broken("a mapping of what is no memory");
		return -EINVAL;
	}
	m->status = status(RM_MAP, &r);
	if (!r && !m->status && m->off + m->len > object[o].size)
		m->status = 0x1a;
	if (r || m->status)
		return r;
	fds[f].kind = MAPPED;
	fds[f].at = (char *)object[o].at + m->off;
	fds[f].len = m->len;
	if (atomic_load(&rm_fake.other))
		fds[f].at = elsewhere;
	return 0;
}

static int rm_ioctl(int fd, unsigned long nr, void *arg)
{
	const struct rm_register_fd *reg = arg;
	const struct rm_free *f = arg;
	int i, o, r = -EINVAL;

	if ((nr >> 8 & 0xff) != 'F')
		return below->ioctl(fd, nr, arg);
	pthread_mutex_lock(&lock);
	i = slot_of(fd);
	if (i < 0)
		broken("a descriptor that is no node of the driver");
	else if (nr == RM_IOC_REGISTER_FD) {
		o = slot_of(reg->control);
		if (fds[i].kind != NODE || o < 0 || fds[o].kind != CONTROL)
			broken("registration of a descriptor");
		status(RM_REGISTER, &r);
		if (!r)
			fds[i].kind = REGISTERED;
	} else if (fds[i].kind != CONTROL)
		broken("a request on a descriptor that is not the control node's");
	else if (nr == RM_IOC_ALLOC)
		r = do_alloc(arg);
	else if (nr == RM_IOC_CONTROL)
		r = do_control(arg);
	else if (nr == RM_IOC_DUP)
		r = do_dup(arg);
	else if (nr == RM_IOC_MAP)
		r = do_map(arg);
	else if (nr == RM_IOC_FREE) {
		o = find_object(f->client, f->object);
		r = 0;
		if (o < 0)
			broken("freeing what is not there");
		else if (object[o].class == RM_CLASS_CLIENT) {
			for (o = 0; o < OBJECTS; o++)
				if (object[o].name && object[o].client == f->client)
					drop(o);
			atomic_fetch_sub(&rm_fake.clients, 1);
		} else
			drop(o);
	} else
		broken("request");
	pthread_mutex_unlock(&lock);
	return r;
}

/* -- what the CPU sees -- */

static void *rm_mmap(int fd, size_t size)
{
	void *p = NULL;
	int i, v;

	pthread_mutex_lock(&lock);
	i = slot_of(fd);
	if (i < 0 || fds[i].kind == CONTROL) {
		pthread_mutex_unlock(&lock);
		return below->mmap_node(fd, size);
	}
	errno = EINVAL;
	if (fds[i].kind != MAPPED || size != fds[i].len)
		broken("mmap of a node");
	else if (fails(RM_MMAP))
		errno = rm_fake.result < 0 ? -rm_fake.result : EIO;
	else
		p = mremap((char *)fds[i].at + atomic_load(&rm_fake.lie), 0, size, MREMAP_MAYMOVE);
	if (p && p != MAP_FAILED) {
		for (v = 0; v < VIEWS && view[v].at; v++)
			;
		assert_true(v < VIEWS);
		view[v].at = p;
		view[v].len = size;
		atomic_fetch_add(&rm_fake.views, 1);
		atomic_fetch_add(&rm_fake.made, 1);
		if (atomic_fetch_add(&rm_fake.mapped, size) + size > atomic_load(&rm_fake.most))
			atomic_store(&rm_fake.most, atomic_load(&rm_fake.mapped));
	}
	pthread_mutex_unlock(&lock);
	return p == MAP_FAILED ? NULL : p;
}

static int rm_munmap(void *at, size_t size)
{
	int v;

	pthread_mutex_lock(&lock);
	for (v = 0; v < VIEWS && view[v].at != at; v++)
		;
	if (v < VIEWS) {
		if (view[v].len != size)
			broken("munmap of a part");
		view[v].at = NULL;
		atomic_fetch_sub(&rm_fake.views, 1);
		atomic_fetch_sub(&rm_fake.mapped, size);
	}
	pthread_mutex_unlock(&lock);
	return v < VIEWS ? munmap(at, size) : below->munmap(at, size);
}

static void put(const char *path, const char *text)
{
	assert_true(tree_put(os_root, path, text));
}

void rm_fake_begin(uint64_t bar1)
{
	char path[128], text[512];
	CUdevice dev;
	char *c;

	assert_true(os != &ops);
	memset(&rm_fake, 0, sizeof(rm_fake));
	memset(fds, 0, sizeof(fds));
	memset(object, 0, sizeof(object));
	memset(view, 0, sizeof(view));
	memset(entry, 0, sizeof(entry));
	last_client = 0;
	assert_int_equal(cuDeviceGet(&dev, 0), 0);
	assert_int_equal(cuDeviceGetPCIBusId(pci, sizeof(pci), dev), 0);
	for (c = pci; *c; c++)
		*c = *c >= 'A' && *c <= 'F' ? *c + 32 : *c;
	snprintf(path, sizeof(path), "proc/driver/nvidia/gpus/%s/information", pci);
	put(path, "Model: \t\t Fake\nDevice Minor: \t 7\nGPU Excluded:\t No\n");
	snprintf(path, sizeof(path), "sys/devices/pci0000:00/%s/resource", pci);
	snprintf(text, sizeof(text),
		 "0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200\n"
		 "0x0000010000000000 0x%016llx 0x000000000014220c\n"
		 "0x0 0x0 0x0\n0x0 0x0 0x0\n0x0 0x0 0x0\n0x0 0x0 0x0\n",
		 0x10000000000ull + bar1 - 1);
	put(path, text);
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", pci);
	snprintf(text, sizeof(text), "../../../devices/pci0000:00/%s", pci);
	assert_true(tree_link(os_root, path, text));
	if (!elsewhere)
		elsewhere = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(elsewhere != MAP_FAILED);
	below = os;
	ops = *os;
	ops.open = rm_open_file;
	ops.close = rm_close_file;
	ops.ioctl = rm_ioctl;
	ops.mmap_node = rm_mmap;
	ops.munmap = rm_munmap;
	os = &ops;
}

void rm_fake_geforce(void)
{
	fake.pins = geforce_pins;
}

void rm_fake_check(void)
{
	assert_int_equal(atomic_load(&rm_fake.listed), 0);
	assert_int_equal(atomic_load(&rm_fake.violations), 0);
	assert_int_equal(atomic_load(&rm_fake.views), 0);
	assert_int_equal(atomic_load(&rm_fake.mapped), 0);
	assert_int_equal(atomic_load(&rm_fake.dups), 0);
	assert_int_equal(atomic_load(&rm_fake.devices), 0);
	assert_int_equal(atomic_load(&rm_fake.clients), 0);
	assert_int_equal(atomic_load(&rm_fake.nodes), 0);
}
