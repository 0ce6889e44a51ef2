/* SPDX-License-Identifier: MIT */
/* told.h - messages of gdsio and gdsio_verify, and the clock. */
#ifndef GDSIO_TOLD_H
#define GDSIO_TOLD_H

#include <stdint.h>

#include <cuda.h>

/* "gdsio: ..." on stderr, with the name that the program has */
void gdsio_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* 0, or -EIO and told: "gdsio: WHAT: CUDA_ERROR_X" */
int gdsio_cuda(CUresult res, const char *what);

/* The text of an errno of cuFile calls, which may be a CUfileOpError. */
const char *gdsio_errno_text(int err);
const char *gdsio_errno_name(int err);

uint64_t gdsio_now_ns(void);

#endif /* GDSIO_TOLD_H */
