/* SPDX-License-Identifier: MIT */
/*
 * cufile_load.h - libcufile.so.0, whichever the loader finds: what it says of itself is reported,
 * so it is not linked. Functions that a release may lack are NULL then.
 */
#ifndef CUFILE_LOAD_H
#define CUFILE_LOAD_H

#include <stddef.h>

#include "cufile.h"
#include "opengds.h"

struct gc_cufile {
	CUfileError_t (*open)(void);
	CUfileError_t (*close)(void);
	CUfileError_t (*properties)(CUfileDrvProps_t *props);
	CUfileError_t (*handle_register)(CUfileHandle_t *fh, CUfileDescr_t *descr);
	void (*handle_deregister)(CUfileHandle_t fh);
	CUfileError_t (*buf_register)(const void *base, size_t length, int flags);
	CUfileError_t (*buf_deregister)(const void *base);
	ssize_t (*read)(CUfileHandle_t fh, void *base, size_t size, off_t file_off, off_t buf_off);

	/* these need not be there */
	CUfileError_t (*version)(int *version);
	CUfileError_t (*get_size)(CUFileSizeTConfigParameter_t param, size_t *value);
	CUfileError_t (*get_bool)(CUFileBoolConfigParameter_t param, bool *value);
	CUfileError_t (*get_posix)(size_t *sizes, size_t *counts, int len);
	CUfileError_t (*get_bounce)(size_t *sizes, size_t *counts, int len);
	CUfileError_t (*p2p_flags)(CUfileDriverStatusFlags_t type, CUfileP2PFlags_t *flags);
	int (*last_io)(struct ogds_report *report);	/* of OpenGDS alone */
	const char *(*route_name)(uint32_t route);
	const char *(*reason_id)(uint32_t reason);
};

/* 0, or -ENOENT with the reason in `why`. What is loaded stays until the process ends. */
int gc_cufile_load(struct gc_cufile *c, char *why, size_t len);

/* The text of a result, "success" included */
const char *gc_cufile_text(CUfileError_t e);

#endif /* CUFILE_LOAD_H */
