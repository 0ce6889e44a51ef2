/* SPDX-License-Identifier: GPL-2.0-only */
/* what kernel/probe.sh makes for a kernel that has what the tests look at */
#ifndef KSTUB_PROBE_H
#define KSTUB_PROBE_H

#define HAVE_BLK_DMA_ITER 1

#endif /* KSTUB_PROBE_H */
