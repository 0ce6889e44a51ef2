/* SPDX-License-Identifier: MIT */
/*
 * rw.h - one request on its way, and the way of a byte: cuFileRead and cuFileWrite.
 */
#ifndef RW_H
#define RW_H

#include "buffer.h"
#include "device.h"
#include "file.h"
#include "plan.h"

/* Belongs to the calling thread while the request runs. */
struct request {
	enum ogds_op op;
	struct file *file;	/* referenced */
	struct buffer *buf;	/* in use; NULL: unregistered */
	struct gpu_ptr mem;	/* where the memory is */
	struct device *dev;	/* NULL: host memory */
	bool primary;		/* the memory is of dev's primary context */
};

#endif /* RW_H */
