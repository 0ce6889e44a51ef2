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
	RM_SUBDEVICE, RM_DUP, RM_OPEN_NODE, RM_REGISTER, RM_MAP, RM_MMAP, RM_STEPS
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
};

extern struct rm_fake rm_fake;

/* After fake_machine(), before the library is opened. bar1: its size, bytes. */
void rm_fake_begin(uint64_t bar1);
/* Fails the test unless all was given back and no rule was broken. */
void rm_fake_check(void);

#endif /* RM_FAKE_H */
