/* SPDX-License-Identifier: MIT */
/* xfer.h - between the files that hold the transfer types. */
#ifndef GDSIO_XFER_H
#define GDSIO_XFER_H

#include "gdsio.h"

/* By pread or pwrite, until all is moved: bytes or -errno. */
ssize_t gdsio_posix(const struct gdsio_io *io, uint8_t *buf);

/* As round of struct gdsio_xfer_ops. */
int gdsio_cpu_async_gpu(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n);
int gdsio_gpud_stream(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n);
int gdsio_gpu_batch(struct gdsio_worker *w, struct gdsio_io *io, unsigned int n);

#endif /* GDSIO_XFER_H */
