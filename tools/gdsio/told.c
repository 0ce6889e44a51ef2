// SPDX-License-Identifier: MIT
/* told.c - messages, names of errors, the clock. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cufile.h"
#include "told.h"

#define NS 1000000000ULL

uint64_t gdsio_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

void gdsio_err(const char *fmt, ...)
{
	char text[PATH_MAX + 512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* one call: threads do not mix their lines */
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
}

int gdsio_cuda(CUresult res, const char *what)
{
	const char *name = NULL, *text = NULL;

	if (res == CUDA_SUCCESS)
		return 0;
	cuGetErrorName(res, &name);
	cuGetErrorString(res, &text);
	gdsio_err("%s: %s (%s)", what, text ? text : "CUDA error", name ? name : "unknown");
	return -EIO;
}

const char *gdsio_errno_text(int err)
{
	return IS_CUFILE_ERR(err) ? CUFILE_ERRSTR(err) : strerror(err);
}

const char *gdsio_errno_name(int err)
{
	const char *name = strerrorname_np(err);

	if (IS_CUFILE_ERR(err))
		return "cuFile error";
	return name ? name : "unknown errno";
}
