/* SPDX-License-Identifier: MIT */
/*
 * rw.h - one request on its way, and the way of a byte: cuFileRead and cuFileWrite.
 */
#ifndef RW_H
#define RW_H

#include "buffer.h"
#include "device.h"
#include "file.h"
#include "os.h"
#include "plan.h"
#include "stats.h"

/* Belongs to the calling thread while the request runs. */
struct request {
	enum ogds_op op;
	struct file *file;	/* referenced */
	struct buffer *buf;	/* in use; NULL: unregistered */
	struct gpu_ptr mem;	/* where the memory is */
	struct device *dev;	/* NULL: host memory */
	bool primary;		/* the memory is of dev's primary context */
	bool deferred;		/* see rw_run() */
	struct plan_in in;	/* what its plan was made of */
	struct bar *bar;	/* reads: how the CPU sees the memory; NULL: it does not */
	bool bar_held;		/* of an unregistered allocation: to be put */
	uint64_t began;		/* ns; of no meaning without `spent` */
	struct stats_spent *spent;	/* NULL: it is not counted */
	struct ogds_report *rep;	/* of the calling thread; what each route moved */
	bool by_drive;		/* not small, and not from the page cache: see file_by_drive() */
};

/*
 * One request on a referenced file, inside driver_enter(): bytes or an error (errmap.h). The
 * report of the calling thread is its. `deferred`: it runs on a thread of the library while
 * a stream waits for it, so nothing is done that waits for the whole GPU.
 */
ssize_t rw_run(enum ogds_op op, struct file *file, uint64_t base, size_t size, int64_t off,
	       int64_t buf_off, bool deferred);

/* -- for pieces.c -- */

/* "cuFileRead" */
const char *rw_call_name(enum ogds_op op);

/*
 * The pages of registered memory in this process, made when the request could go by them and not by
 * the module: it is quicker. True when there are some.
 */
bool rw_find_pages(struct request *rq, struct plan_in *in);

/* -- for batch.c -- */

/*
 * Small requests that go by the GPU's pages in the process, many at a time: their owner asks the
 * kernel for all of them together. A request is the owner's from a true rw_pages_begin() to its
 * rw_pages_end(), inside driver_enter(). None of them says anything or counts what did not go so:
 * such a request goes by rw_run() from its beginning.
 */
#define RW_PAGES_MOST ((size_t)64 * 1024)	/* larger ones keep a drive busy by themselves */

struct rw_pages {
	struct request rq;
	struct stats_spent spent;
	struct os_io io;	/* what to ask of the kernel; the tag is the owner's */
	uint64_t va;
	unsigned int reason;	/* why no better route does it */
};

/* Whether requests of a file like this may go so. Costs little, and holds nothing. */
bool rw_by_pages(const struct file *f);
/* True: it can, if the file does not end before it. Sleeps only to make the pages, once. */
bool rw_pages_begin(struct rw_pages *p, enum ogds_op op, struct file *file, uint64_t base,
		    size_t size, int64_t off, int64_t buf_off);
/* io ended with r. True: a drive moved all of it, and it is counted. False: rw_run() it. */
bool rw_pages_end(struct rw_pages *p, ssize_t r);

#endif /* RW_H */
