/* SPDX-License-Identifier: MIT */
/*
 * t_checkpoint.h - the proof from outside the guest, for programs inside it.
 *
 * A checkpoint asks the host's `proof watch` what the drives' controllers moved since
 * the section's begin mark, and what the cards' memory holds now. It works in a guest
 * of `vm/run --trace`.
 */
#ifndef T_CHECKPOINT_H
#define T_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define T_MAX_CARDS 8

struct t_proof {
	uint64_t bar[T_MAX_CARDS];	/* bytes moved by DMA into or out of card n's BAR */
	uint64_t bar_all;		/* their sum */
	uint64_t range;			/* of them, inside the ranges asked about */
	uint64_t ram;			/* all other data bytes of the controllers */
	uint64_t unresolved;		/* I/O addresses that the trace did not resolve */
	uint64_t bytes;			/* length of the ranges */
	bool poisoned;			/* every word of the ranges is the poison word */
	char sha256[65];		/* of the ranges, in buffer order */
};

/* One stretch of GPU memory of the caller. */
struct t_range {
	uint64_t va;
	size_t len;
};

enum t_mark { T_MARK_NONE, T_MARK_BEGIN, T_MARK_END };

/*
 * 0 or -errno, with the reason on stderr. Ranges are taken as one buffer in the order
 * given. After T_MARK_BEGIN the DMA counts start at 0.
 */
int t_checkpoint(enum t_mark mark, const char *section, const struct t_range *range,
		 unsigned int n, struct t_proof *proof);

/* true when this guest has a proof daemon */
bool t_checkpoint_available(void);

/* Parse an answer's text; for t_checkpoint and its unit test. */
int t_proof_parse(const char *text, struct t_proof *proof);

#endif /* T_CHECKPOINT_H */
