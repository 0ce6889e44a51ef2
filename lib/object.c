// SPDX-License-Identifier: MIT
/* object.c - the GPU driver's object behind memory of CUDA's. */
#include <errno.h>

#include "object.h"
#include "os.h"
#include "rm/rm.h"

static bool has_id(uint64_t va, uint64_t id)
{
	uint64_t got;

	return !gpu->id(va, &got) && got == id;
}

/* What one cuMemMap put there. */
static int find_mapping(const struct gpu_ptr *mem, struct object *o)
{
	size_t len = 0;

	o->result = gpu->mapping(mem->ctx, mem->at_va, &o->base_va, &len);
	if (o->result)
		return -ENOENT;
	o->va = o->base_va;
	o->len = len;
	if (mem->at_va < o->base_va || mem->at_va - o->base_va >= len)
		return -E2BIG;
	/* without an id of its own, from end to end, nobody could tell when it is unmapped */
	if (!mem->id || has_id(o->base_va - 1, mem->id) || has_id(o->base_va + len, mem->id) ||
	    !has_id(o->base_va, mem->id) || !has_id(o->base_va + len - 1, mem->id))
		return -E2BIG;
	o->result = gpu->export_fd(mem->ctx, o->base_va, len, &o->fd);
	if (o->result)
		return -ENOENT;
	return o->fd < 0 ? -E2BIG : 0;
}

int object_find(const struct gpu_ptr *mem, struct object *o)
{
	unsigned char ipc[RM_IPC_BYTES];
	struct rm_memory m;

	*o = (struct object){ .fd = -1 };
	if (mem->mapped)
		return find_mapping(mem, o);
	o->result = gpu->ipc(mem->ctx, mem->base_va, ipc);
	if (o->result)
		return -ENOENT;
	if (rm_memory_of(ipc, &m) || m.size < mem->len || m.off > mem->base_va)
		return -EPROTO;
	o->client = m.client;
	o->source = m.object;
	o->va = mem->base_va - m.off;
	o->base_va = mem->base_va;
	o->len = mem->len;
	return 0;
}

void object_end(struct object *o)
{
	if (o->fd >= 0)
		os->close(o->fd);
	o->fd = -1;
}

bool object_covers(const struct object *o, uint64_t va, size_t len)
{
	return va >= o->base_va && va - o->base_va <= o->len &&
	       len <= o->len - (va - o->base_va);
}

int object_name(struct rm *rm, const struct object *o, uint32_t *name, const char **step)
{
	struct rm_memory m = { .client = o->client, .object = o->source };

	return o->fd < 0 ? rm_dup(rm, &m, name, step) : rm_import(rm, o->fd, name, step);
}
