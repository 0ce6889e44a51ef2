/* SPDX-License-Identifier: MIT */
/*
 * pin_cost.h - whether pinning unregistered memory for one request beats staging it.
 *
 * Measured by the library while it runs, per GPU: what pinning and unpinning cost, and what
 * the extra copy of a staged request costs a byte. Until both are known large requests try
 * each once. Any thread; the words are independent and a stale one only costs time.
 */
#ifndef PIN_COST_H
#define PIN_COST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Below this size pinning is never worth it: it is a system call or two on its own. */
#define PIN_MIN_BYTES ((size_t)16 * 1024 * 1024)

struct pin_cost {
	_Atomic uint64_t pin_ns;	/* of one pin and unpin, 0: unknown */
	_Atomic uint64_t pin_bytes;	/* of that one */
	_Atomic uint64_t copy_ns_mib;	/* of the copy of 1 MiB inside the GPU, 0: unknown */
};

/* The cost grows with the number of pages: ns for `size` bytes, by what was seen. */
static inline bool pin_cost_worth(struct pin_cost *c, size_t size)
{
	uint64_t pin = atomic_load(&c->pin_ns), bytes = atomic_load(&c->pin_bytes);
	uint64_t copy = atomic_load(&c->copy_ns_mib);

	if (size < PIN_MIN_BYTES)
		return false;
	if (!pin)
		return true;
	if (!copy)
		return false;
	if (size > bytes)
		pin = pin * (size / bytes + 1);
	return pin < copy * (size >> 20);
}

static inline void pin_cost_pinned(struct pin_cost *c, size_t size, uint64_t ns)
{
	atomic_store(&c->pin_bytes, size);
	atomic_store(&c->pin_ns, ns ? ns : 1);
}

static inline void pin_cost_copied(struct pin_cost *c, size_t size, uint64_t ns)
{
	uint64_t old = atomic_load(&c->copy_ns_mib);
	uint64_t now = size >= 1u << 20 ? ns / (size >> 20) : 0;

	if (now)
		atomic_store(&c->copy_ns_mib, old ? (old * 7 + now) / 8 : now);
}

#endif /* PIN_COST_H */
