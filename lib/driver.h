/* SPDX-License-Identifier: MIT */
/*
 * driver.h - the open library: its state, its configuration, who is inside.
 *
 *	CLOSED --open--> OPEN --last close--> CLOSING --all out--> CLOSED
 *	OPEN, CLOSING --fork, in the child--> FORKED (for good)
 *
 * Every exported function that uses the state is bracketed by driver_enter() and
 * driver_leave(). A close sets CLOSING first and then waits until nobody is inside, so what
 * hangs off the state (files, buffers, devices, lanes) is freed with nobody looking at it.
 * A request looks at driver_closing() between its pieces and ends with DRIVER_CLOSING.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"

/*
 * Enters, and opens first when the library is closed. 0, or an error (errmap.h): nothing
 * was entered. Blocks while another thread opens or closes.
 */
int driver_enter(void);

/* Enters only when it is open: 0, or `never` when it never was, `closed` after a close. */
int driver_enter_open(int never, int closed);

/*
 * The same for calls that do not open: 1: entered; 0: it is closed; or an error, of a close
 * that is under way or of a forked child.
 */
int driver_enter_if_open(void);

/* The error of a call that found it closed, in the log that an open would write to. */
__attribute__((format(printf, 1, 2))) void driver_log_closed(const char *fmt, ...);

void driver_leave(void);
bool driver_closing(void);

/*
 * The configuration of this open; valid inside. Written by the opening thread before the
 * state is OPEN; the setters of cuFileDriverSet* change single words of it atomically.
 */
const struct config *driver_config(void);

/*
 * What is kept from before an open, and what asks for it, is guarded by the lock of open and
 * close: nothing opens or closes between these and driver_let_go(). 0: held. driver_hold:
 * *open tells whether it is; driver_hold_closed: DRIVER_ALREADY_OPEN when it is, or when
 * driver_configured() was called since the last close. Both fail during a close and in a forked
 * child.
 */
int driver_hold(bool *open);
int driver_hold_closed(void);
void driver_let_go(void);

/* Held, from driver_hold: settings are as good as read, no parameter can be set. */
void driver_configured(void);

/* For the words that the setters change. */
static inline size_t driver_word(const size_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline bool driver_flag(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

#endif /* DRIVER_H */
