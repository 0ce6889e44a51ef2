// SPDX-License-Identifier: MIT
/* shards.c - numbers of threads. */
#include <stdatomic.h>

#include "shards.h"

__thread unsigned int shards_number;

unsigned int shards_number_new(void)
{
	static atomic_uint next;

	shards_number = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % 0x7fffffff;
	return shards_number;
}
