/* SPDX-License-Identifier: MIT */
/*
 * opengds.h - what this library has beyond cuFile: which way the bytes went, and why.
 *
 * Structures begin with their size, set by the caller (OGDS_*_INIT does it), so that later
 * versions can add members. All functions may be called by any number of threads and
 * return 0 or -errno.
 */
#ifndef OPENGDS_H
#define OPENGDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cufile.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* The ways of a byte. Direct: the drive moves it into or out of GPU memory by itself. */
enum ogds_route {
	OGDS_ROUTE_NVFS = 0,	/* direct, through the nvidia-fs module, registered memory */
	OGDS_ROUTE_P2PDMA = 1,	/* direct, on GPU pages mapped into the process */
	OGDS_ROUTE_STAGED = 2,	/* direct into GPU memory of the library, then a copy in the GPU */
	OGDS_ROUTE_BAR = 3,	/* CPU stores through BAR1 */
	OGDS_ROUTE_BOUNCE = 4,	/* host memory and the copy engine */
	OGDS_ROUTE_HOST = 5,	/* host pointers: the file system alone */
	OGDS_ROUTES = 6,
	OGDS_ROUTE_SLOTS = 16	/* room in the structures below */
};

#define OGDS_DIRECT_MASK \
	(1u << OGDS_ROUTE_NVFS | 1u << OGDS_ROUTE_P2PDMA | 1u << OGDS_ROUTE_STAGED)

enum ogds_op {
	OGDS_OP_READ = 0,
	OGDS_OP_WRITE = 1
};

/* Part of a request, in file order. */
struct ogds_piece {
	int64_t file_off;
	uint64_t size;		/* bytes */
	uint32_t route;		/* enum ogds_route */
	uint32_t reason;	/* why not a better route; 0: it is the best. ogds_reason_*() */
};

#define OGDS_PLAN_PIECES 8

struct ogds_plan {
	size_t struct_size;	/* in: sizeof(struct ogds_plan) */
	uint32_t op;		/* in: enum ogds_op */
	uint32_t npieces;	/* out */
	int32_t error;		/* out: 0, or the CUfileOpError or errno of the refusal */
	uint32_t reason;	/* out: why the refused bytes would not go direct */
	uint64_t whole_bytes;	/* out: bytes of whole 4-KiB blocks in the request */
	uint64_t whole_direct;	/* out: of them, bytes that go direct */
	/* out: the rule that refuses: R-STRICT, R-COMPAT-FORBIDDEN, R-ROUTE-DENIED; 0: none */
	uint32_t refused_by;
	uint32_t pad;
	struct ogds_piece piece[OGDS_PLAN_PIECES];
};

#define OGDS_PLAN_INIT { .struct_size = sizeof(struct ogds_plan) }

/* What one request really did. */
struct ogds_report {
	size_t struct_size;	/* in: sizeof(struct ogds_report) */
	uint64_t sequence;	/* number of this thread's request, from 1; 0: there was none */
	int64_t result;		/* bytes, or -1 */
	int32_t error;		/* errno or CUfileOpError when result is -1 */
	uint32_t op;
	uint64_t bytes[OGDS_ROUTE_SLOTS];	/* moved by each route, index enum ogds_route */
	uint64_t whole_bytes;	/* bytes moved that are whole 4-KiB blocks of the file */
	uint64_t whole_direct;	/* of them, moved direct */
	uint64_t edge_bytes;	/* bytes moved that are parts of a block */
	uint64_t witnessed;	/* direct bytes whose every sector the module saw mapped for DMA */
	uint64_t retried;	/* bytes that failed on a direct route and went another way */
	uint32_t reason;	/* of the first whole block that did not go direct; 0: none */
	uint32_t refused_by;	/* the rule that forbade another way, as in struct ogds_plan */
};

#define OGDS_REPORT_INIT { .struct_size = sizeof(struct ogds_report) }

/*
 * What a request would do, without doing it. ptr: the first byte of memory (base plus
 * offset). Fills `plan`; -EINVAL for an unknown handle or a structure of no known size.
 * Blocks for no I/O; opens the library when it is not.
 */
int ogds_explain(CUfileHandle_t fh, const void *ptr, size_t size, off_t file_offset,
		 struct ogds_plan *plan);

/* The last cuFileRead or cuFileWrite of the calling thread. -EINVAL: no known size. */
int ogds_last_io(struct ogds_report *report);

/*
 * What the entries of batches and the operations of streams on this file did, whichever thread
 * of the library it was: all that ended since the last call, or since the handle was
 * registered. An entry is in it before its event can be had, an operation before its
 * *bytes_p. Sums, but for: sequence, how many they were; op, of the last one; error, reason
 * and refused_by, the first that is not 0; result, bytes of those that did not fail. -EINVAL
 * for an unknown handle or a structure of no known size. Does not block.
 */
int ogds_handle_io(CUfileHandle_t fh, struct ogds_report *report);

/*
 * With strict set, a request of this file and GPU memory whose whole 4-KiB blocks would not all
 * go direct fails (errno CU_FILE_IO_NOT_SUPPORTED) instead of taking another way; bytes at the
 * edges may, and so may host memory, which has no other way. OPENGDS_STRICT=1 and
 * "opengds": {"strict": true} set it for all files.
 */
int ogds_handle_set_strict(CUfileHandle_t fh, bool strict);

/* "nvfs", "staged", ...; "unknown" for a number that is none. Static text. */
const char *ogds_route_name(uint32_t route);

/* Stable name ("R-FS-TYPE"), cause, next step of a reason; static text, never NULL. */
const char *ogds_reason_id(uint32_t reason);
const char *ogds_reason_text(uint32_t reason);
const char *ogds_reason_remedy(uint32_t reason);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* OPENGDS_H */
