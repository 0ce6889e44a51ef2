/* SPDX-License-Identifier: MIT */
/*
 * prove.h - which way the bytes of a file go, by moving some and looking.
 *
 * Each way is tried in a process of its own, because the library reads its configuration once.
 * Parent and child share a struct prove_run.
 */
#ifndef GDSCHECK_PROVE_H
#define GDSCHECK_PROVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cuda.h>

#include "cufile.h"
#include "opengds.h"

/* Exit statuses of --prove; 2 is a wrong command line. */
enum {
	PROVE_EXIT_DIRECT = 0,		/* as configured, every whole block was seen going direct */
	PROVE_EXIT_INTERNAL = 1,	/* the program itself could not go on */
	PROVE_EXIT_INDIRECT = 3,	/* the data is right, but not seen going direct */
	PROVE_EXIT_WRONG = 4,		/* data was wrong */
	PROVE_EXIT_NOT_RUN = 5,		/* a request failed as configured, or none could be made */
};

/*
 * Reads and writes a file of its own in the folder `path` (or that of the file `path`, which is
 * only asked about), by the way that the configuration gives and by each way alone. Its file is
 * removed at the end, also after SIGINT, SIGTERM and SIGHUP. Returns the exit status.
 */
int gc_prove(const char *path, bool json, FILE *out);

/* What the child calls. With another libcufile the functions of opengds.h are NULL. */
struct prove_api {
	__typeof__(cuFileDriverOpen) *open;
	__typeof__(cuFileDriverClose) *close;
	__typeof__(cuFileHandleRegister) *file;
	__typeof__(cuFileHandleDeregister) *unfile;
	__typeof__(cuFileBufRegister) *buf;
	__typeof__(cuFileBufDeregister) *unbuf;
	__typeof__(cuFileRead) *read;
	__typeof__(cuFileWrite) *write;
	__typeof__(ogds_last_io) *last_io;
	__typeof__(ogds_explain) *explain;
	__typeof__(ogds_reason_id) *reason_id;
	__typeof__(ogds_reason_text) *reason_text;
	__typeof__(ogds_reason_remedy) *reason_remedy;
	__typeof__(cuInit) *init;
	__typeof__(cuDeviceGetCount) *count;
	__typeof__(cuDeviceGet) *device;
	__typeof__(cuDeviceGetPCIBusId) *pci;
	__typeof__(cuDevicePrimaryCtxRetain) *retain;
	__typeof__(cuCtxSetCurrent) *current;
	__typeof__(cuCtxSynchronize) *sync;
	__typeof__(cuMemAlloc) *alloc;
	__typeof__(cuMemFree) *free;
	__typeof__(cuMemsetD8) *fill;
	__typeof__(cuMemcpyHtoD) *to_gpu;
	__typeof__(cuMemcpyDtoH) *from_gpu;
};

/* Loads libcuda.so.1 and libcufile.so.0 by their names. False: `why` says which is missing. */
bool prove_api_load(struct prove_api *api, char *why, size_t len);

#define PROVE_CASES 3	/* 64 KiB, 1 MiB, unaligned */
#define PROVE_ROWS (2 * PROVE_CASES)
#define PROVE_FILE (4ULL << 20)	/* bytes of the file */

/* A reason, as the library words it */
struct prove_why {
	char id[32], text[200], remedy[256];
};

/* One request */
struct prove_row {
	bool made;		/* the call was made */
	uint32_t op;		/* enum ogds_op */
	uint64_t size, file_off;
	int64_t result;
	int error;		/* errno or CUfileOpError */
	bool right;		/* all bytes were right, and those around them untouched */
	char wrong[200];	/* which were not */
	bool told;		/* the library told what it did: the rest is its word */
	uint64_t bytes[OGDS_ROUTE_SLOTS];
	uint64_t whole, whole_direct, edge, witnessed, retried;
	struct prove_why why;	/* why whole blocks did not go direct; "" in id: none */
	char refused_by[32];
};

enum prove_verdict {
	PROVE_NOT_RUN,		/* no bytes moved */
	PROVE_WRONG,
	PROVE_INDIRECT,
	PROVE_UNSEEN,		/* the library says direct, and nobody saw it */
	PROVE_DIRECT,
};

struct prove_run {
	const char *name;	/* of the route, or "configured" */
	bool writes;		/* the route can write */
	bool strict;
	bool registered;
	uint64_t skew;		/* bytes between file offset and address, modulo a block */
	char gpu[32];		/* PCI address */
	char failed[300];	/* what kept all requests from being made; "": nothing */
	char pin[300];		/* what kept the memory from being registered */
	int code;		/* CUfileOpError or errno of either */
	bool opened;		/* the library was opened */
	const char *file;	/* a file that is asked about beside, and not touched; NULL: none */
	char file_says[400];	/* what a read of it would do */
	struct prove_row row[PROVE_ROWS];
};

/* The child's work on the open file; returns when all is tried. */
void prove_work(const struct prove_api *api, int fd, uint64_t key, struct prove_run *run);

/* Bytes on direct routes, those of edges that a staged read takes along among them */
uint64_t prove_direct_bytes(const struct prove_row *row);

enum prove_verdict prove_judge(const struct prove_row *row);

/* All rows of a run: the worst of those made, and whether both directions were direct. */
int prove_exit(const struct prove_run *configured, const struct prove_run *all, size_t n);

/* The first request of a run, of those that were made, that did not go direct; NULL: none */
const struct prove_row *prove_first_not_direct(const struct prove_run *run);

#define PROVE_NOTES 24

/* Lines beside the runs: what changed in the module's counters, what logs say */
struct prove_notes {
	char *line[PROVE_NOTES];
	size_t n;
};

void prove_note(struct prove_notes *notes, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct prove_report {
	const char *path;
	const char *folder;	/* where the file was made */
	const char *module;	/* "OpenGDS 2.28", ...; "" when none is loaded */
	char failed[400];	/* nothing was tried, because of this */
	struct prove_run *run;	/* run[0] is the configured one */
	size_t runs;
	struct prove_why *cause; /* of a run that did not go direct, [runs] */
	struct prove_notes counters, kernel, library;
	int status;
};

void prove_print(const struct prove_report *r, FILE *out);
void prove_print_json(const struct prove_report *r, FILE *out);

#endif /* GDSCHECK_PROVE_H */
