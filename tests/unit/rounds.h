/* SPDX-License-Identifier: MIT */
/*
 * rounds.h - how often a test does the same. ThreadSanitizer takes ten times as long, and a race is
 * one whatever the numbers: it sees a quarter of them.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#ifdef __SANITIZE_THREAD__
#define T_ROUNDS(n) ((n) / 4)
#else
#define T_ROUNDS(n) (n)
#endif

#endif /* ROUNDS_H */
