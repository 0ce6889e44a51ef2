/* SPDX-License-Identifier: MIT */
/*
 * rm_fake.h - the GPU driver's resource manager for tests of the library, in front of the
 * system calls of cufile_fake.h: it checks each field of each request, and shows the memory of
 * the simulated GPU in host memory. It can refuse a step, lie, and count what was not given back.
 */
#ifndef RM_FAKE_H
#define RM_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A step of the driver, in the order in which a client makes them. */
enum rm_step {
	RM_OPEN_CONTROL = 1, RM_CLIENT, RM_PROBED, RM_PCI, RM_ATTACH, RM_ID, RM_DEVICE,
	RM_SUBDEVICE, RM_DUP, RM_OPEN_NODE, RM_REGISTER, RM_MAP, RM_MMAP,
	RM_PEERS, RM_VA_SPACE, RM_JOIN, RM_LIST, RM_UNLIST, RM_IMPORT, RM_IMPORT_END, RM_STEPS
};

struct rm_fake {
	atomic_int fail;	/* this step fails; 0: none */
	int result;		/* < 0: by this errno; > 0: by this status */
	atomic_int lie;		/* mappings show the memory this many bytes further on */
	atomic_int other;	/* ... or other memory altogether */
	atomic_ulong violations;	/* of the interface; each is printed */
	atomic_ulong clients, devices, dups, views, nodes;	/* that exist now */
	atomic_ulong mapped;	/* bytes in views now */
	atomic_ulong most;	/* the highest it was */
	atomic_ulong made;	/* views made so far */
	atomic_ulong listed;	/* entries of memory for peers that exist now */
	atomic_ulong pins;	/* that the driver made or refused so far (rm_fake_geforce) */
	atomic_int objects;	/* that an exported descriptor names; 0: one */
	atomic_int type;	/* of what it names; 0: RM_IMPORTED_VIDMEM */
	atomic_ulong imports;	/* names made by a descriptor so far */
	void (*at_pin)(void);	/* NULL, or called at each pin, before it is decided */
};

extern struct rm_fake rm_fake;

/* After fake_machine(), before the library is opened. bar1: its size, bytes. */
void rm_fake_begin(uint64_t bar1);
/*
 * After rm_fake_begin(): the driver pins only memory that a peers object lists, by the first entry
 * that has its address. An entry whose allocation was freed since is a broken rule there.
 */
void rm_fake_geforce(void);
/* Fails the test unless all was given back and no rule was broken. */
void rm_fake_check(void);

#endif /* RM_FAKE_H */
