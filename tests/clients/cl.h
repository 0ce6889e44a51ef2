/* SPDX-License-Identifier: MIT */
/*
 * cl.h - what the cl_* programs share. Each makes the calls of one known client of cuFile, in
 * its order and with its habits, on the file that it is given: cl_NAME FILE. Bytes that are
 * wrong, a short count or an unexpected code end it with a text and status 1.
 */
#ifndef CL_H
#define CL_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cufile.h"
#include "t_gpu.h"

#define K 1024UL
#define M (1024 * K)

/* Opens the GPU; FILE of the command line. Linked with libcufile or not, no call of it. */
const char *cl_begin(int argc, char **argv);
/* Prints that all went well; 0. */
int cl_end(void);

/* A symbol of a library that was opened by the client; ends the program without it. */
void *cl_symbol(void *lib, const char *name);
#define CL_LOAD(lib, variable, name) (*(void **)&(variable) = cl_symbol(lib, name))

void cl_ok(const char *call, CUfileError_t e);
/* r is `want` bytes; errno as the clients decode it else */
void cl_bytes(const char *call, ssize_t r, size_t want);

/* The file: byte i is cl_byte(i, seed). */
unsigned char cl_byte(size_t i, unsigned int seed);
void cl_make(const char *path, size_t size, unsigned int seed);
void cl_file_is(const char *path, size_t off, size_t size, unsigned int seed);

/* GPU memory as if it were the file from `off` on: filled, compared, poisoned. */
void cl_gpu_fill(const void *p, size_t size, size_t off, unsigned int seed);
void cl_gpu_is(const void *p, size_t size, size_t off, unsigned int seed);
void cl_gpu_poison(const void *p, size_t size);
void *cl_gpu_alloc(size_t size);

/* A descriptor as most clients fill it: all zero but for these two. */
CUfileDescr_t cl_descr(int fd);

#endif /* CL_H */
