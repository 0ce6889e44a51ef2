// SPDX-License-Identifier: MIT
/* shards.c - numbers of threads. */
#include <stdatomic.h>

#include "shards.h"

unsigned int shards_thread(void)
{
	static atomic_uint next;
	static __thread unsigned int mine;

	if (!mine)
		mine = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % 0x7fffffff;
	return mine - 1;
}
