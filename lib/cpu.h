/* SPDX-License-Identifier: MIT */
/* cpu.h - the two instructions that C has no word for. */
#ifndef CPU_H
#define CPU_H

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <stdatomic.h>
#endif

/* A loop that waits for another processor gives way to it. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Stores into write-combined memory are on their way to the device before any later store. */
static inline void cpu_store_fence(void)
{
#if defined(__x86_64__)
	__builtin_ia32_sfence();
#elif defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif /* CPU_H */
