/* SPDX-License-Identifier: MIT */
/* sweep.h - gdsio sweep: many runs, one page. */
#ifndef GDSIO_SWEEP_H
#define GDSIO_SWEEP_H

int gdsio_sweep(int argc, char **argv);

#endif
