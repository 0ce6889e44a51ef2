// SPDX-License-Identifier: GPL-2.0-only
/* 6.9 and later: a disk is made with its limits */
#include <linux/blk-mq.h>

struct gendisk *probe(struct blk_mq_tag_set *set, struct queue_limits *lim);
struct gendisk *probe(struct blk_mq_tag_set *set, struct queue_limits *lim)
{
	return blk_mq_alloc_disk(set, lim, NULL);
}
