/* SPDX-License-Identifier: MIT */
/* t_random.h - random numbers by a seed, and bytes that are nowhere else. */
#ifndef T_RANDOM_H
#define T_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Any state is a good one; each call gives the next number of its sequence. */
uint64_t t_random(uint64_t *state);

/* 0 .. n - 1 */
size_t t_random_below(uint64_t *state, size_t n);

/* Bytes that no other call gives: old ones that stay are noticed wherever they lie. */
void t_random_fresh(uint64_t *state, void *buf, size_t len);

#endif /* T_RANDOM_H */
