/* SPDX-License-Identifier: MIT */
/*
 * object.h - the GPU driver's object behind memory of CUDA's, and a name of ours for it: for what
 * the CPU is to see (bar.h) and what other drivers are to pin (peers.h).
 *
 * Memory of cudaMalloc is told by its IPC handle; small allocations share an object. Memory of
 * cuMemCreate has none, but can be exported as a descriptor when it was made for that. Of a range
 * of addresses there (cuMemAddressReserve) each cuMemMap is another object, which begins where it
 * is mapped, as cuMemMap takes no other offset than 0.
 *
 * CUDA gives each allocation, and each mapping of cuMemMap, an id that never comes again
 * (BUFFER_ID): 580 does so also when the same memory is mapped at the same address once more
 * (tests/gpu/peers/exported.c). So what is made of an object is good for the memory of that id, and
 * for no byte beside the allocation or the mapping. A driver that gives neighbours one id would
 * not tell when one of them is another: then there is no object.
 */
#ifndef OBJECT_H
#define OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu.h"

struct rm;

struct object {
	/* CUDA's names of it, which come again once it is freed; 0: it is told by a descriptor */
	uint32_t client, source;
	int fd;			/* that one; -1: it is not */
	uint64_t va;		/* where the object would begin in CUDA's addresses */
	uint64_t base_va, len;	/* the allocation, or the mapping, which the id is of */
	int result;		/* of CUDA, when there is none */
};

/*
 * Of the memory at mem->at_va, which device_own() has seen. 0: until object_end(). -ENOENT: it has
 * neither handle nor descriptor; -E2BIG: it cannot be told from its neighbours; -EPROTO: a handle
 * holds what none of driver 580 does, and no other is to be believed. Calls CUDA, takes no lock.
 */
int object_find(const struct gpu_ptr *mem, struct object *o);
void object_end(struct object *o);

/* All of va .. va + len is of the allocation or mapping. */
bool object_covers(const struct object *o, uint64_t va, size_t len);

/* A name of ours, to be dropped with rm_drop(). As rm_dup() and rm_import(). */
int object_name(struct rm *rm, const struct object *o, uint32_t *name, const char **step);

#endif /* OBJECT_H */
