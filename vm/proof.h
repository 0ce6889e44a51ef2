/* SPDX-License-Identifier: MIT */
/*
 * proof: where did the NVMe controllers' DMA go? Shared by the files of vm/proof*.c.
 *
 * Address spaces, told by suffix: _iova what a drive was given, _gpa guest physical
 * (a card's BAR lies in there), _off an offset in a card's memory file.
 */
#ifndef OPENGDS_PROOF_H
#define OPENGDS_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROOF_CARDS	64
#define PROOF_PAGE	4096u

struct proof_card {
	uint64_t bar_gpa;
	uint64_t len;
};

/* What pci.txt says about the guest; made by the guest at boot */
struct proof_pci {
	struct proof_card card[PROOF_CARDS];
	unsigned int cards;
	unsigned int drives;
	bool translated;	/* drives use addresses of a translating IOMMU */
};

/* Some bytes of a card that a drive read or wrote */
struct proof_extent {
	uint32_t card;
	uint64_t off;
	uint64_t len;
};

/* Totals since the start of the trace, of commands that have ended */
struct proof_count {
	uint64_t bar[PROOF_CARDS];	/* data bytes into or out of each card */
	uint64_t ram;			/* all other data bytes that were resolved */
	uint64_t unresolved;		/* data bytes whose address has no translation */
	uint64_t failed;		/* data bytes of commands that ended with an error */
	uint64_t commands;		/* reads, writes and compares that ended */
	size_t extents;			/* how many of the trace's extents there were */
};

struct proof_trace;

/* 0, -errno; -EPROTO for a line that makes no sense */
int proof_pci_read(const char *path, struct proof_pci *pci);

struct proof_trace *proof_trace_new(const struct proof_pci *pci);
void proof_trace_free(struct proof_trace *t);

/* Take a new view of the cards for what comes from now on */
void proof_trace_pci(struct proof_trace *t, const struct proof_pci *pci);

/* One line without its newline. 0, or -ENOMEM */
int proof_trace_line(struct proof_trace *t, const char *line);

/* All whole lines of fd from where the last call stopped. 0, -errno */
int proof_trace_file(struct proof_trace *t, int fd);

/* Where the next proof_trace_file() starts reading, in bytes */
uint64_t proof_trace_offset(const struct proof_trace *t);

const struct proof_count *proof_trace_count(const struct proof_trace *t);

/* The extents in the order of the trace; valid until the next line is read */
const struct proof_extent *proof_trace_extents(const struct proof_trace *t, size_t *n);

/* A piece of a GPU buffer: where it stands on its card, and in the buffer */
struct proof_range {
	uint32_t card;
	uint64_t off;
	uint64_t len;
	uint64_t buf_off;
};

/* What a checkpoint asks for */
struct proof_request {
	enum { PROOF_NO_MARK, PROOF_BEGIN, PROOF_END } mark;
	char section[64];
	bool has_poison;
	uint64_t poison;
	struct proof_range *range;
	size_t ranges;
};

/*
 * Parse a request's text (changed on the way). 0, or -errno with the reason in why.
 * Free with proof_request_free(), also after an error.
 */
int proof_request_parse(char *text, const struct proof_pci *pci, struct proof_request *req,
			char *why, size_t why_len);
void proof_request_free(struct proof_request *req);

/* How many bytes of the extents lie in the request's ranges; 0, -ENOMEM */
int proof_ranges_hit(const struct proof_request *req, const struct proof_extent *ext, size_t n,
		     uint64_t *bytes);

struct proof_content {
	uint64_t bytes;
	bool poisoned;		/* every byte is the poison's */
	char sha256[65];
};

/* Look at the ranges' content in dir/cardN.vram. 0, -errno */
int proof_ranges_content(const char *dir, const struct proof_request *req,
			 struct proof_content *content);

int proof_watch(const char *dir);

#endif
