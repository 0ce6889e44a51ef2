/* SPDX-License-Identifier: MIT */
/*
 * t_vram.h - memory of the simulated cards as it looks from elsewhere: by the BAR in sysfs, past
 * the simulator and whatever mappings of its own a program has. In a guest, as root. These
 * end the program with a text on failure.
 */
#ifndef T_VRAM_H
#define T_VRAM_H

#include <stddef.h>

#include <cuda.h>

/* All of a card's VRAM, to read; the caller's to munmap. */
unsigned char *t_vram_map(int card, size_t *len);

/* GPU memory of this process, which lies in one allocation. Any thread. */
void t_vram_get(void *dst, CUdeviceptr src, size_t size);

/* A counter of a card: free_pages, pins, rm_names, ... */
long t_vram_counter(int card, const char *name);

/* Sets a parameter of gpu-sim.ko that can be written: a fault, a lie. */
void t_vram_parameter(const char *name, const char *value);

#endif /* T_VRAM_H */
