/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * refuse.h - a name for each branch that refuses a request; tests/fuzz/checks lists them.
 *
 * KCOV tells blocks apart, and the compiler joins branches that end alike: the empty piece of
 * assembly, another text in each, keeps them apart. tests/fuzz/coverage finds the names in the
 * source and says which of the branches a run has taken: by the line of the block's beginning,
 * so nothing but a message comes before it in its branch, and nothing else stands in its line.
 */
#ifndef NVIDIA_FS_REFUSE_H
#define NVIDIA_FS_REFUSE_H

#define nvfs_refused(check, err) ({ asm volatile(".if 0\n\t" #check "\n\t.endif"); (err); })

#endif /* NVIDIA_FS_REFUSE_H */
