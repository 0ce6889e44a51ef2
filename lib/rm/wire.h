/* SPDX-License-Identifier: MIT */
/*
 * wire.h - the requests of the GPU driver's resource manager that lib/rm makes, as they
 * stand in memory. Seen with driver 580; sizes and offsets are asserted, and each call gives
 * its size along, so that a driver with others refuses instead of misreading. The simulated
 * GPU's module answers by this file, too: it is plain C for both worlds.
 *
 * Numbers of the kind "object" are names that the client chooses; a client is known to other
 * processes' clients by its number, too.
 */
#ifndef RM_WIRE_H
#define RM_WIRE_H

#ifdef __KERNEL__
#include <linux/ioctl.h>
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#endif

/* On the control node, but RM_IOC_MAP's descriptor and RM_IOC_REGISTER_FD. */
#define RM_IOC_FREE _IOWR('F', 0x29, struct rm_free)
#define RM_IOC_CONTROL _IOWR('F', 0x2a, struct rm_control)
#define RM_IOC_ALLOC _IOWR('F', 0x2b, struct rm_alloc)
#define RM_IOC_DUP _IOWR('F', 0x34, struct rm_dup)
#define RM_IOC_MAP _IOWR('F', 0x4e, struct rm_map)
/* On the GPU's node. */
#define RM_IOC_REGISTER_FD _IOWR('F', 201, struct rm_register_fd)

#define RM_CLASS_CLIENT 0x41
#define RM_CLASS_DEVICE 0x80
#define RM_CLASS_SUBDEVICE 0x2080
#define RM_CLASS_PEERS 0x503c	/* third-party peer-to-peer: memory that other drivers may pin */
#define RM_CLASS_VA_SPACE 0x90f1

/* Controls of the client. */
#define RM_CTRL_ID_INFO 0x205
#define RM_CTRL_PROBED_IDS 0x214
#define RM_CTRL_ATTACH_IDS 0x215
#define RM_CTRL_PCI_INFO 0x21b
#define RM_CTRL_IMPORT 0x3d0c	/* objects that a descriptor of another client's names */

/* Controls of a RM_CLASS_PEERS object. */
#define RM_CTRL_PEERS_VA_SPACE 0x503c0102
#define RM_CTRL_PEERS_REGISTER 0x503c0104
#define RM_CTRL_PEERS_UNREGISTER 0x503c0105

/* Of the driver's own list of statuses: those that the simulated one answers. */
enum rm_status {
	RM_OK = 0,
	RM_GPU_IS_LOST = 0x0f,
	RM_DUPLICATE_NAME = 0x19,
	RM_NO_RESOURCES = 0x1a,
	RM_NO_PERMISSION = 0x1b,
	RM_INVALID_ADDRESS = 0x1e,
	RM_INVALID_ARGUMENT = 0x1f,
	RM_INVALID_BASE = 0x20,
	RM_INVALID_CLASS = 0x22,
	RM_INVALID_CLIENT = 0x23,
	RM_INVALID_COMMAND = 0x24,
	RM_INVALID_DEVICE = 0x26,
	RM_INVALID_FLAGS = 0x29,
	RM_INVALID_LIMIT = 0x2e,
	RM_INVALID_HANDLE = 0x33,
	RM_INVALID_PARENT = 0x36,
	RM_INVALID_PARAMS = 0x3a,
	RM_INVALID_PARAMETER = 0x3b,
	RM_NO_MEMORY = 0x51,
	RM_NOT_FOUND = 0x57,
	RM_OUT_OF_RANGE = 0x5b,
	RM_STATE_IN_USE = 0x63
};

#define RM_MAX_GPUS 32
#define RM_NO_ID 0xffffffffu

#define RM_ASSERT(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#define RM_OFFSET(type, member, off) \
	_Static_assert(offsetof(struct type, member) == (off), #type "." #member)

struct rm_free {
	uint32_t client, parent, object, status;
};
RM_ASSERT(rm_free, 16);

struct rm_control {
	uint32_t client, object, command, flags;
	uint64_t params;	/* user address */
	uint32_t size, status;
};
RM_ASSERT(rm_control, 32);
RM_OFFSET(rm_control, params, 16);

struct rm_alloc {
	uint32_t client, parent, object, class;
	uint64_t params;	/* user address; 0: none */
	uint32_t size, status;
};
RM_ASSERT(rm_alloc, 32);
RM_OFFSET(rm_alloc, params, 16);

struct rm_dup {
	uint32_t client, parent, object;
	uint32_t source_client, source_object;
	uint32_t flags, status;
};
RM_ASSERT(rm_dup, 28);

struct rm_map {
	uint32_t client, device, memory, pad0;
	uint64_t off, len;	/* bytes, in the memory object */
	uint64_t address;	/* out; of no use to user space */
	uint32_t status, flags;
	int32_t fd;		/* a fresh descriptor of the GPU's node */
	uint32_t pad1;
};
RM_ASSERT(rm_map, 56);
RM_OFFSET(rm_map, off, 16);
RM_OFFSET(rm_map, status, 40);
RM_OFFSET(rm_map, fd, 48);

struct rm_register_fd {
	int32_t control;
};
RM_ASSERT(rm_register_fd, 4);

/* -- parameters of classes and controls -- */

struct rm_device_params {
	uint32_t instance;
	uint32_t share_client, target_client, target_device;
	uint32_t flags, pad0;
	uint64_t va_size, va_start, va_limit;
	uint32_t va_mode, pad1;
};
RM_ASSERT(rm_device_params, 56);
RM_OFFSET(rm_device_params, va_size, 24);

struct rm_subdevice_params {
	uint32_t instance;
};
RM_ASSERT(rm_subdevice_params, 4);

#define RM_PEERS_BAR1 1

struct rm_peers_params {
	uint32_t flags;		/* RM_PEERS_BAR1 */
};
RM_ASSERT(rm_peers_params, 4);

struct rm_va_space_params {
	uint32_t index, flags;
	uint64_t size, start, limit;
	uint32_t big_page, pad0;
	uint64_t base;
	uint32_t pasid, pad1;
};
RM_ASSERT(rm_va_space_params, 56);
RM_OFFSET(rm_va_space_params, base, 40);

struct rm_peers_va_space {
	uint32_t va_space, pad0;
	uint64_t token;		/* out */
};
RM_ASSERT(rm_peers_va_space, 16);

struct rm_peers_register {
	uint32_t memory, pad0;
	uint64_t va, size;	/* as CUDA has it */
	uint64_t off;		/* in the memory object */
};
RM_ASSERT(rm_peers_register, 32);
RM_OFFSET(rm_peers_register, va, 8);

struct rm_peers_unregister {
	uint32_t memory;
};
RM_ASSERT(rm_peers_unregister, 4);

struct rm_id_info {
	uint32_t id;		/* in */
	uint32_t flags, device_instance, subdevice_instance, sli, board, gpu_instance;
	int32_t numa;
};
RM_ASSERT(rm_id_info, 32);

struct rm_probed_ids {
	uint32_t id[RM_MAX_GPUS], excluded[RM_MAX_GPUS];	/* RM_NO_ID ends each */
	uint32_t flags[RM_MAX_GPUS];
};
RM_ASSERT(rm_probed_ids, 384);

struct rm_attach_ids {
	uint32_t id[RM_MAX_GPUS];	/* RM_NO_ID ends it */
	uint32_t failed;
};
RM_ASSERT(rm_attach_ids, 132);

struct rm_pci_info {
	uint32_t id;		/* in */
	uint32_t domain;
	uint16_t bus, slot;
};
RM_ASSERT(rm_pci_info, 12);

#define RM_IMPORTS 128

#define RM_IMPORTED_NONE 0
#define RM_IMPORTED_VIDMEM 1	/* the card's own memory */

/* Those from `index` on, `count` of them: more than there are is RM_OUT_OF_RANGE. */
struct rm_import {
	int32_t fd;
	uint32_t parent;
	uint32_t object[RM_IMPORTS];	/* names that the client chooses */
	uint8_t type[RM_IMPORTS];	/* out */
	uint16_t count, index;
};
RM_ASSERT(rm_import, 652);
RM_OFFSET(rm_import, type, 520);
RM_OFFSET(rm_import, count, 648);

#endif /* RM_WIRE_H */
