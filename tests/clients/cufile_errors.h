/* SPDX-License-Identifier: MIT */
/* cufile_errors.h - what the cases of cufile_errors are made of. */
#ifndef CUFILE_ERRORS_H
#define CUFILE_ERRORS_H

#include <stddef.h>
#include <sys/types.h>

#include "cufile.h"
#include "t_gpu.h"

#define M (1024UL * 1024)
#define FILE_SIZE (M + 100)
#define NEVER ((CUfileHandle_t)0x1234567)	/* a handle that nobody was given */
#define COMPAT_OFF "CUFILE_ALLOW_COMPAT_MODE=false"

enum need { ANY, MODULE, NO_MODULE, BLOCK, TWO_GPUS };

/* What the child tells its parent. */
struct told {
	char why[400];			/* first breach; "": none */
	char object[400];		/* what the log line has to name */
};

struct t {
	const char *dir, *block;
	char path[512];			/* FILE_SIZE bytes, byte n is (n * 7 + 1) & 0xff */
	struct told *told;

	struct t_gpu gpu;
	CUdeviceptr mem;		/* 1 MiB */
	int fd;
	CUfileHandle_t fh;
};

struct kase {
	const char *name;
	void (*run)(struct t *t);
	const char *level;		/* of the log line that must come; NULL: none */
	enum need need;
	const char *env;		/* NAME=VALUE before the first call */
};

extern const struct kase open_kases[], io_kases[];	/* a NULL name ends each */

/* Notes the first thing that is wrong. */
void e_breach(struct t *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What the log line of this case has to name. */
void e_object(struct t *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void e_want(struct t *t, const char *what, CUfileError_t got, int err);
/* n < 0: it must fail with this errno */
void e_want_io(struct t *t, const char *what, ssize_t got, ssize_t n, int err);
void e_want_uses(struct t *t, const char *when, long n);
/* The first bytes of GPU memory are those of the file at `from`. */
void e_want_bytes(struct t *t, size_t len, size_t from);

unsigned char e_byte_at(size_t n);
void e_make_file(const char *path);
CUfileError_t e_register_fd(struct t *t, int fd);
void *e_mem(const struct t *t);
void e_gpu(struct t *t);
/* GPU memory and a registered file, open with `flags` */
void e_file(struct t *t, int flags);

#endif /* CUFILE_ERRORS_H */
