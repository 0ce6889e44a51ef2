// SPDX-License-Identifier: GPL-2.0-only
/* trace.c - where the tracepoints of trace.h are made. */
#include <linux/device.h>
#include <linux/string.h>

#include "io.h"
#include "nvidia-fs.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
