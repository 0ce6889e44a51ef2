/* SPDX-License-Identifier: MIT */
/*
 * param.h - settings that a program makes by calls, before it opens the library.
 *
 * They are staged: kept as they were given, whatever they are, until an open takes those
 * that are in range, over file and environment, and forgets them all.
 */
#ifndef PARAM_H
#define PARAM_H

#include "config.h"

/* Both by the opening thread, with the lock of open and close: before, and after it. */
void param_apply(struct config *c, config_say_fn *say, void *arg);
void param_forget(void);

#endif /* PARAM_H */
