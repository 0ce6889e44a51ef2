/* SPDX-License-Identifier: MIT */
/*
 * rm.h - the GPU driver's own interface: a client beside CUDA's in this process, which makes
 * the CPU see memory that CUDA allocated, and lets other drivers pin it. No privilege, no module.
 * Nothing else of the library issues the driver's ioctls.
 *
 * The layouts are the driver's own business and may change with it. Nothing here is to be
 * believed: who uses a view proves first that it shows the memory it is meant to (bar.h).
 *
 * One struct rm is a connection to one GPU. Its calls may be made by several threads; each
 * makes system calls and blocks as long as the driver does. Errors: 0, -errno, or the driver's
 * status (> 0). Address spaces: `off` counts in a memory object of the driver.
 */
#ifndef RM_H
#define RM_H

#include <stddef.h>
#include <stdint.h>

struct rm;

/* The memory behind a CUDA IPC handle. */
struct rm_memory {
	uint32_t client, object;	/* CUDA's names of it */
	uint64_t off;		/* of the allocation in the object: small ones share one */
	uint64_t size;		/* of the allocation */
};

#define RM_IPC_BYTES 64

/* 0, or -EPROTO: these bytes cannot be what driver 580 puts into a handle. */
int rm_memory_of(const unsigned char ipc[RM_IPC_BYTES], struct rm_memory *m);

/*
 * pci: "0000:3b:00.0". *step: the name of what failed, a literal; unchanged else. The
 * connection is the caller's: rm_close.
 */
int rm_open(const char *pci, struct rm **out, const char **step);
void rm_close(struct rm *rm);

/*
 * The memory by a name of ours: it lives until rm_drop, whatever CUDA frees meanwhile, and so
 * does all of the object that it is a part of.
 */
int rm_dup(struct rm *rm, const struct rm_memory *m, uint32_t *object, const char **step);
/*
 * The same of memory that CUDA exported as a descriptor, which stays the caller's. -E2BIG: it is
 * several objects; -EOPNOTSUPP: it is not this card's memory.
 */
int rm_import(struct rm *rm, int fd, uint32_t *object, const char **step);
void rm_drop(struct rm *rm, uint32_t object);

/* What the CPU sees of an object. */
struct rm_view {
	void *at;	/* of `off` as asked for */
	size_t len;	/* bytes, as asked for */
	void *map;	/* of the page that holds it */
	size_t map_len;
};

/* Writing combines stores: a caller ends with a store fence. Reading is slow. */
int rm_view(struct rm *rm, uint32_t object, uint64_t off, size_t len, struct rm_view *v,
	    const char **step);
void rm_unview(struct rm_view *v);

/*
 * Memory that other drivers may pin by its address in CUDA. The pin of the GPU's driver looks for
 * an object that lists the address; CUDA makes one itself on the boards that NVIDIA sells for it,
 * and there none of ours is needed.
 */
struct rm_peers {
	uint32_t object, va_space;
};

int rm_peers_open(struct rm *rm, struct rm_peers *p, const char **step);
void rm_peers_close(struct rm *rm, const struct rm_peers *p);

/*
 * va .. va + len, CUDA's addresses of `object` (a name of ours) from `off` on, until it is
 * unregistered, dropped, or the client goes.
 */
int rm_peers_register(struct rm *rm, const struct rm_peers *p, uint32_t object, uint64_t va,
		      uint64_t len, uint64_t off, const char **step);
int rm_peers_unregister(struct rm *rm, const struct rm_peers *p, uint32_t object,
			const char **step);

#endif /* RM_H */
