/* SPDX-License-Identifier: GPL-2.0-only */
/* the real one: the C library's errno.h includes it by this name */
#include_next <linux/errno.h>
